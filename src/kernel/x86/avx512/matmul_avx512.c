/* The AVX-512 (VNNI) tier's matrix kernels, in the shapes of kernel.h. */
#include "kernel/tiers.h"

#include "kernel/planes_join.h"
#include "kernel/x86/avx512/tile_avx512.h"
#include "kernel/x86/x86.h"

/* Every type: its variants for few tokens by how weights are fetched (sparse, near, far), and for
 * many without and with SHAPE_LINES. The same name twice where a variant brought nothing. */
#define AVX512_TILES(X)                                                                            \
    X(F32, f32, ACT_F32, sparse, near, far, lines, lines)                                          \
    X(F16, f16, ACT_F32, sparse, near, far, lines, lines)                                          \
    X(BF16, bf16, ACT_F32, sparse, near, far, lines, lines)                                        \
    X(Q4_0, q4_0, ACT_Q8_32, sparse, near, far, halves, lines)                                     \
    X(Q4_1, q4_1, ACT_Q8_32, sparse, near, far, halves, lines)                                     \
    X(Q5_0, q5_0, ACT_Q8_32, sparse, near, far, halves, lines)                                     \
    X(Q5_1, q5_1, ACT_Q8_32, sparse, near, far, halves, lines)                                     \
    X(Q8_0, q8_0, ACT_Q8_32, sparse, near, far, halves, lines)                                     \
    X(IQ4_NL, iq4_nl, ACT_Q8_32, sparse, near, far, halves, lines)                                 \
    X(Q2_K, q2_k, ACT_Q8_256, sparse, near, far, halves, halves)                                   \
    X(Q3_K, q3_k, ACT_Q8_256, sparse, near, far, halves, halves)                                   \
    X(Q4_K, q4_k, ACT_Q8_256, sparse, near, far, halves, lines)                                    \
    X(Q5_K, q5_k, ACT_Q8_256, sparse, near, far, halves, halves)                                   \
    X(Q6_K, q6_k, ACT_Q8_256, sparse, near, far, halves, lines)                                    \
    X(IQ4_XS, iq4_xs, ACT_Q8_256, sparse, near, far, lines, lines)

/* The kernel of few and many tokens in one, and the dot product on it. */
#define DEFINE_SHAPE(TYPE, name, act, few, many, even, variant)                                    \
    static void tile_##name##_##variant(float *sums, const uint8_t *weights, const uint8_t *acts,  \
                                        int32_t n_blocks, int32_t m)                               \
    {                                                                                              \
        (m > FEW_TOKENS ? tile_##name##_##many##_avx512                                            \
                        : tile_##name##_##few##_avx512)(sums, weights, acts, n_blocks, m);         \
    }                                                                                              \
    DEFINE_DOT_SHAPE(TYPE, name, act, variant, tile_##name##_##variant, even)

#define DEFINE_SHAPES(TYPE, name, act, sparse, near, far, halves, lines)                           \
    DEFINE_SHAPE(TYPE, name, act, sparse, halves, false, sparse_halves)                            \
    DEFINE_SHAPE(TYPE, name, act, sparse, lines, true, sparse_lines)                               \
    DEFINE_SHAPE(TYPE, name, act, near, halves, false, near_halves)                                \
    DEFINE_SHAPE(TYPE, name, act, near, lines, true, near_lines)                                   \
    DEFINE_SHAPE(TYPE, name, act, far, halves, false, far_halves)                                  \
    DEFINE_SHAPE(TYPE, name, act, far, lines, true, far_lines)
AVX512_TILES(DEFINE_SHAPES)

DEFINE_PLANE_JOIN(avx512)

void avx512_matmul_init(kernel_table *table)
{
    const bool near = table->shape & SHAPE_NEAR, far = table->shape & SHAPE_FAR;
    const bool lines = table->shape & SHAPE_LINES;
    limits_avx512_set(table);
#define OF_SHAPE(name)                                                                             \
    (near    ? lines ? name##_near_lines : name##_near_halves                                      \
     : far   ? lines ? name##_far_lines : name##_far_halves                                        \
     : lines ? name##_sparse_lines                                                                 \
             : name##_sparse_halves)
#define SET_TYPE(TYPE, name, ...)                                                                  \
    table->matmul[TYPE_##TYPE].dot = OF_SHAPE(dot_##name);                                         \
    table->matmul[TYPE_##TYPE].tile = OF_SHAPE(tile_##name);                                       \
    table->matmul[TYPE_##TYPE].even_tiles = lines;
    AVX512_TILES(SET_TYPE)
#undef SET_TYPE
#undef OF_SHAPE
    table->plane_join = plane_join_avx512;
}
