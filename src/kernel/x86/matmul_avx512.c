/* The AVX-512 (VNNI) tier's matrix kernels. */
#include "kernel/tiers.h"

#include "kernel/x86/tile_avx512.h"
#include "kernel/x86/x86.h"

#define DEFINE_DOT_AVX512(TYPE, name, act, block_k, block_bytes) DEFINE_DOT(TYPE, name, act, avx512)
KERNEL_TYPES(DEFINE_DOT_AVX512)

void avx512_matmul_init(kernel_table *table)
{
    limits_avx512_set(table);
#define SET_TYPE(TYPE, name, act, block_k, block_bytes)                                            \
    table->matmul[TYPE_##TYPE].dot = dot_##name##_avx512;
    KERNEL_TYPES(SET_TYPE)
#undef SET_TYPE
}
