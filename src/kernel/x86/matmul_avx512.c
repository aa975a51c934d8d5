/* The AVX-512 (VNNI) tier's matrix kernels. */
#include "kernel/tiers.h"

#include "kernel/x86/tile_avx512.h"

#define TYPES_AVX512(X)                                                                            \
    X(Q4_0, q4_0, ACT_Q8_32)                                                                       \
    X(Q4_1, q4_1, ACT_Q8_32)                                                                       \
    X(Q5_0, q5_0, ACT_Q8_32)                                                                       \
    X(Q5_1, q5_1, ACT_Q8_32)                                                                       \
    X(Q8_0, q8_0, ACT_Q8_32)                                                                       \
    X(IQ4_NL, iq4_nl, ACT_Q8_32)                                                                   \
    X(Q4_K, q4_k, ACT_Q8_256)

#define DEFINE_DOT_AVX512(TYPE, name, act) DEFINE_DOT(TYPE, name, act, avx512)
TYPES_AVX512(DEFINE_DOT_AVX512)

void avx512_matmul_init(kernel_table *table)
{
#define SET_TYPE(TYPE, name, act) table->matmul[TYPE_##TYPE].dot = dot_##name##_avx512;
    TYPES_AVX512(SET_TYPE)
#undef SET_TYPE
}
