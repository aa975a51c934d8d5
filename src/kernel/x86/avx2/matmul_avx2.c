/* The AVX2 tier's matrix kernels. */
#include "kernel/tiers.h"

#include "kernel/planes_join.h"
#include "kernel/x86/avx2/tile_avx2.h"
#include "kernel/x86/x86.h"

#define DEFINE_DOT_AVX2(TYPE, name, act, block_k, block_bytes) DEFINE_DOT(TYPE, name, act, avx2)
KERNEL_FLOAT_TYPES(DEFINE_DOT_AVX2)
KERNEL_TYPES_32(DEFINE_DOT_AVX2)

DEFINE_PLANE_JOIN(avx2)

void avx2_matmul_init(kernel_table *table)
{
    limits_avx2_set(table);
    pack_avx2_set(table);
    decoded_avx2_set(table);
    books_avx2_set(table);
    quantise_avx2_set(table);
#define SET_TYPE(TYPE, name, act, block_k, block_bytes)                                            \
    table->matmul[TYPE_##TYPE].dot = dot_##name##_avx2;                                            \
    table->matmul[TYPE_##TYPE].tile = tile_##name##_avx2;
    KERNEL_FLOAT_TYPES(SET_TYPE)
    KERNEL_TYPES_32(SET_TYPE)
#undef SET_TYPE
    table->plane_join = plane_join_avx2;
}
