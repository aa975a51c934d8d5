/* How a vector kernel asks for straight code: a tile's accumulators are an array, and they become
 * registers only when every loop over it is unrolled and its counts are constants. */
#ifndef DREY_KERNEL_UNROLL_H
#define DREY_KERNEL_UNROLL_H

/* A template: its constant arguments are folded at each call. */
#define INLINE static inline __attribute__((always_inline))

/* Before a loop of at most 32 rounds whose count is a constant after inlining. Not where every access
 * is instrumented: compilers then need minutes and gigabytes for a file. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define INSTRUMENTED 1
#endif
#endif
#if defined(INSTRUMENTED) || defined(__SANITIZE_ADDRESS__)
#define UNROLL
#elif defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

#endif
