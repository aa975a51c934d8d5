/* Macros with which a vector kernel asks for straight code: a tile's accumulators are an array, and
 * they become registers only when every loop over it is unrolled and its counts are constants. */
#pragma once

/* A template: its constant arguments are folded at each call. */
#define INLINE static inline __attribute__((always_inline))

/* Instrumented builds have loops: with every access instrumented, straight code takes compilers
 * minutes and gigabytes per file. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INSTRUMENTED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INSTRUMENTED 1
#endif
#endif

/* UNROLL: before a loop of at most 32 rounds whose count is a constant after inlining.
 * ROLLED: before a loop that must stay one. */
#ifdef INSTRUMENTED
#define UNROLL
#define ROLLED
#elif defined(__clang__)
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("clang loop unroll(disable)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#define ROLLED _Pragma("GCC unroll 1")
#endif
