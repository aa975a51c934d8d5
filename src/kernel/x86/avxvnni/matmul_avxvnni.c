/* The avxvnni tier's matrix kernels: avx2's, but for the integer products. */
#include "kernel/tiers.h"

#include "kernel/x86/avxvnni/tile_avxvnni.h"
#include "kernel/x86/x86.h"

#define DEFINE_DOT_AVXVNNI(TYPE, name, act, block_k, block_bytes)                                  \
    DEFINE_DOT(TYPE, name, act, avxvnni)
KERNEL_TYPES_32(DEFINE_DOT_AVXVNNI)

void avxvnni_matmul_init(kernel_table *table)
{
    limits_avxvnni_set(table);
    decoded_avxvnni_set(table);
    books_avxvnni_set(table);
#define SET_TYPE(TYPE, name, act, block_k, block_bytes)                                            \
    table->matmul[TYPE_##TYPE].dot = dot_##name##_avxvnni;                                         \
    table->matmul[TYPE_##TYPE].tile = tile_##name##_avxvnni;
    KERNEL_TYPES_32(SET_TYPE)
#undef SET_TYPE
}
