/* Finds the instruction sets that may be used. A flag of CPUID is not enough on x86: the operating
 * system must also save the registers on a task switch, which XCR0 says; and a process must request
 * the use of AMX's tiles (8 KB). */
#include "os/cpu.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    XCR0_YMM = 0x06,    /* XMM and YMM state */
    XCR0_ZMM = 0xe6,    /* the above, mask registers and both halves of ZMM state */
    XCR0_TILE = 0x60000 /* the tiles' configuration (bit 17) and their data (bit 18) */
};

/* Bits of CPUID leaf 7 that the compilers' headers name differently. */
enum {
    EDX_AMX_TILE = 1 << 24,
    EDX_AMX_INT8 = 1 << 25,
    EAX_1_AVX_VNNI = 1 << 4 /* sub-leaf 1 */
};

static uint32_t xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Linux gives the tiles' state to processes that request it (since 5.16; before, XCR0 lacks it): to
 * all threads, also those that start later. Requesting it twice does no harm. */
static bool tiles_allowed(void)
{
#if defined(__linux__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

/* The one palette there is: 8 tiles of 16 rows of 64 bytes. */
static bool tiles_fit(void)
{
    uint32_t a, b, c, d;
    return __get_cpuid_count(0x1d, 1, &a, &b, &c, &d) && b >> 16 >= 8 && (b & 0xffff) >= 64 &&
           (c & 0xffff) >= 16;
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
    f.avx512vbmi = f.avx512 && (c & bit_AVX512VBMI);
    const uint32_t tiles = EDX_AMX_TILE | EDX_AMX_INT8;
    f.amx = (d & tiles) == tiles && f.avx512 && (state & XCR0_TILE) == XCR0_TILE && tiles_fit() &&
            tiles_allowed();
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
        f.avxvnni = f.avx2 && (a & EAX_1_AVX_VNNI);
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

cpu_identity cpu_identify(void)
{
    cpu_identity id = {0};
    uint32_t a, b, c, d;
    if (!__get_cpuid(0, &a, &b, &c, &d))
        return id;
    memcpy(id.vendor, &b, 4);
    memcpy(id.vendor + 4, &d, 4);
    memcpy(id.vendor + 8, &c, 4);
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return id;
    id.stepping = (int32_t)(a & 15);
    id.model = (int32_t)(a >> 4 & 15);
    id.family = (int32_t)(a >> 8 & 15);
    if (id.family == 6 || id.family == 15)
        id.model += (int32_t)(a >> 16 & 15) << 4;
    if (id.family == 15)
        id.family += (int32_t)(a >> 20 & 255);
    return id;
}

#else

cpu_identity cpu_identify(void)
{
    return (cpu_identity){0};
}

#endif

#if defined(__aarch64__)

#include <asm/hwcap.h>
#include <sys/auxv.h>

cpu_features cpu_detect(void)
{
    unsigned long caps = getauxval(AT_HWCAP);
    cpu_features f = {0};
    f.neon = (caps & HWCAP_ASIMD) != 0;
    f.dotprod = (caps & HWCAP_ASIMDDP) && (caps & HWCAP_ASIMDHP) && (caps & HWCAP_FPHP);
    f.i8mm = (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
    return f;
}

/* The board's name: on Arm the kernel identifies processors only by numbers. */
static void name_read(char *out, size_t capacity)
{
    FILE *f = fopen("/proc/device-tree/model", "r");
    if (!f || !fgets(out, (int)capacity, f))
        snprintf(out, capacity, "aarch64");
    if (f)
        fclose(f);
}

#elif !defined(__x86_64__)

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
