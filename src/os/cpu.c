/* Which instruction sets may be used. A flag of CPUID is not enough on x86: the operating system
 * must also save the registers on a task switch, which XCR0 says. */
#include "os/cpu.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>

enum {
    XCR0_YMM = 0x06, /* XMM and YMM state */
    XCR0_ZMM = 0xe6  /* those, mask registers and both halves of ZMM state */
};

static uint32_t xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

cpu_features cpu_detect(void)
{
    cpu_features f = {0};
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return f;
    const uint32_t wanted = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C;
    if ((c & wanted) != wanted)
        return f;
    uint32_t state = xcr0();
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return f;
    f.avx2 = (b & bit_AVX2) && (state & XCR0_YMM) == XCR0_YMM;
    const uint32_t wide = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    f.avx512 =
        (b & wide) == wide && (c & bit_AVX512VNNI) && f.avx2 && (state & XCR0_ZMM) == XCR0_ZMM;
    return f;
}

static void name_read(char *out, size_t capacity)
{
    uint32_t brand[12];
    if ((uint32_t)__get_cpuid_max(0x80000000u, NULL) < 0x80000004u) {
        snprintf(out, capacity, "x86-64");
        return;
    }
    for (uint32_t i = 0; i < 3; i++)
        __get_cpuid(0x80000002u + i, &brand[i * 4], &brand[i * 4 + 1], &brand[i * 4 + 2],
                    &brand[i * 4 + 3]);
    snprintf(out, capacity, "%.48s", (const char *)brand);
}

#elif defined(__aarch64__)

#include <asm/hwcap.h>
#include <sys/auxv.h>

cpu_features cpu_detect(void)
{
    unsigned long caps = getauxval(AT_HWCAP);
    cpu_features f = {0};
    f.neon = (caps & HWCAP_ASIMD) != 0;
    f.dotprod = (caps & HWCAP_ASIMDDP) && (caps & HWCAP_ASIMDHP) && (caps & HWCAP_FPHP);
    return f;
}

/* The board's name: on Arm the kernel gives processors only as numbers. */
static void name_read(char *out, size_t capacity)
{
    FILE *f = fopen("/proc/device-tree/model", "r");
    if (!f || !fgets(out, (int)capacity, f))
        snprintf(out, capacity, "aarch64");
    if (f)
        fclose(f);
}

#else

cpu_features cpu_detect(void)
{
    return (cpu_features){0};
}

static void name_read(char *out, size_t capacity)
{
    snprintf(out, capacity, "unknown");
}

#endif

void cpu_name(char *out, size_t capacity)
{
    if (capacity == 0)
        return;
    name_read(out, capacity);
    size_t n = strlen(out);
    while (n > 0 && (out[n - 1] == ' ' || out[n - 1] == '\n'))
        out[--n] = '\0';
}
