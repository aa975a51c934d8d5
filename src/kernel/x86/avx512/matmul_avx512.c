/* The AVX-512 (VNNI) tier's matrix kernels, in the shapes of kernel.h. */
#include "kernel/tiers.h"

#include "kernel/planes_join.h"
#include "kernel/x86/avx512/tile_avx512.h"
#include "kernel/x86/x86.h"
#include "os/cpu.h"
#include "os/cpu_tuning.h"

/* Every type: its variants for few tokens by how weights are fetched (sparse, near, far), and for
 * many by the tile's shape (halves, lines, chains). The same name twice where a variant brought
 * nothing. */
#define AVX512_TILES(X)                                                                            \
    X(F32, f32, ACT_F32, sparse, near, far, lines, lines, lines)                                   \
    X(F16, f16, ACT_F32, sparse, near, far, lines, lines, lines)                                   \
    X(BF16, bf16, ACT_F32, sparse, near, far, lines, lines, lines)                                 \
    X(Q4_0, q4_0, ACT_Q8_32, sparse, near, far, halves, lines, lines)                              \
    X(Q4_1, q4_1, ACT_Q8_32, sparse, near, far, halves, lines, lines)                              \
    X(Q5_0, q5_0, ACT_Q8_32, sparse, near, far, halves, lines, lines)                              \
    X(Q5_1, q5_1, ACT_Q8_32, sparse, near, far, halves, lines, lines)                              \
    X(Q8_0, q8_0, ACT_Q8_32, sparse, near, far, halves, lines, lines)                              \
    X(IQ4_NL, iq4_nl, ACT_Q8_32, sparse, near, far, halves, lines, lines)                          \
    X(MXFP4, mxfp4, ACT_Q8_32, sparse, near, far, halves, lines, lines)                            \
    X(Q2_K, q2_k, ACT_Q8_256, sparse, near, far, halves, halves, halves)                           \
    X(Q3_K, q3_k, ACT_Q8_256, sparse, near, far, halves, halves, halves)                           \
    X(Q4_K, q4_k, ACT_Q8_256, sparse, near, far, halves, lines, chains)                            \
    X(Q5_K, q5_k, ACT_Q8_256, sparse, near, far, halves, halves, halves)                           \
    X(Q6_K, q6_k, ACT_Q8_256, sparse, near, far, halves, lines, halves)                            \
    X(IQ4_XS, iq4_xs, ACT_Q8_256, sparse, near, far, lines, lines, lines)

/* The kernel of few and many tokens in one, and the dot product on it. */
#define DEFINE_SHAPE(TYPE, name, act, few, many, even, variant)                                    \
    static void tile_##name##_##variant(float *sums, const uint8_t *weights, const uint8_t *acts,  \
                                        int32_t n_blocks, int32_t m)                               \
    {                                                                                              \
        (m > FEW_TOKENS ? tile_##name##_##many##_avx512                                            \
                        : tile_##name##_##few##_avx512)(sums, weights, acts, n_blocks, m);         \
    }                                                                                              \
    DEFINE_DOT_SHAPE(TYPE, name, act, variant, tile_##name##_##variant, even)

#define DEFINE_TILES(TYPE, name, act, fetch, few, halves, lines, chains)                           \
    DEFINE_SHAPE(TYPE, name, act, few, halves, false, fetch##_halves)                              \
    DEFINE_SHAPE(TYPE, name, act, few, lines, true, fetch##_lines)                                 \
    DEFINE_SHAPE(TYPE, name, act, few, chains, false, fetch##_chains)
#define DEFINE_SHAPES(TYPE, name, act, sparse, near, far, halves, lines, chains)                   \
    DEFINE_TILES(TYPE, name, act, sparse, sparse, halves, lines, chains)                           \
    DEFINE_TILES(TYPE, name, act, near, near, halves, lines, chains)                               \
    DEFINE_TILES(TYPE, name, act, far, far, halves, lines, chains)
AVX512_TILES(DEFINE_SHAPES)

DEFINE_PLANE_JOIN(avx512)

void avx512_matmul_init(kernel_table *table)
{
    const int32_t shape = table->shape;
    const bool lines = shape & SHAPE_LINES;
    limits_avx512_set(table);
    decoded_avx512_set(table, cpu_detect().avx512vbmi);
#define OF_TILE(name) (lines ? name##_lines : shape & SHAPE_CHAINS ? name##_chains : name##_halves)
#define OF_SHAPE(name)                                                                             \
    (shape & SHAPE_NEAR  ? OF_TILE(name##_near)                                                    \
     : shape & SHAPE_FAR ? OF_TILE(name##_far)                                                     \
                         : OF_TILE(name##_sparse))
#define SET_TYPE(TYPE, name, ...)                                                                  \
    table->matmul[TYPE_##TYPE].dot = OF_SHAPE(dot_##name);                                         \
    table->matmul[TYPE_##TYPE].tile = OF_SHAPE(tile_##name);                                       \
    table->matmul[TYPE_##TYPE].even_tiles = lines;                                                 \
    table->matmul[TYPE_##TYPE].decode = NULL;                                                      \
    table->matmul[TYPE_##TYPE].dot_many = NULL;
    AVX512_TILES(SET_TYPE)
#undef SET_TYPE
#undef OF_SHAPE
#undef OF_TILE
    table->plane_join = plane_join_avx512;
}
