/* The floating-point environment in which drey computes: round to nearest, no flushing to zero, no
 * traps. The caller may have set another one, which would change results, and a new thread inherits
 * that of its creator. Each entry point sets the default and restores the caller's. */
#pragma once

#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

typedef struct float_mode {
    uint64_t control; /* MXCSR, or FPCR */
} float_mode;

static inline void float_mode_leave(float_mode before)
{
#if defined(__x86_64__)
    _mm_setcsr((unsigned)before.control);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before.control));
#else
#error "how is the rounding mode set here?"
#endif
}

/* Sets the default; returns what was set, for float_mode_leave. */
static inline float_mode float_mode_enter(void)
{
    float_mode before;
#if defined(__x86_64__)
    before.control = _mm_getcsr();
    float_mode_leave((float_mode){.control = 0x1f80}); /* all exceptions masked */
#else
    __asm__ volatile("mrs %0, fpcr" : "=r"(before.control));
    float_mode_leave((float_mode){.control = 0});
#endif
    return before;
}
