/* CPU features that the processor has and the operating system lets us use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cpu_features {
    bool avx2;       /* with FMA and F16C */
    bool avxvnni;    /* vpdpbusd for 256 bits in the VEX encoding */
    bool avx512;     /* F, BW, DQ, VL and VNNI */
    bool avx512vbmi; /* permutations of bytes; not a tier's condition */
    bool amx;        /* tiles and int8 products; the process may use them */
    bool neon, dotprod, i8mm;
} cpu_features;

/* The processor's maker, family, model and stepping from CPUID; zeros if there is no CPUID. */
typedef struct cpu_identity {
    char vendor[13];
    int32_t family, model, stepping;
} cpu_identity;
cpu_identity cpu_identify(void);

/* If there is AMX, also requests the use of its registers from Linux, for all threads of the
 * process. */
cpu_features cpu_detect(void);
/* The processor's name for reports, NUL-terminated. */
void cpu_name(char *out, size_t capacity);
