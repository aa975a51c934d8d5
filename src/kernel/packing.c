/* The table of packed layouts (see packing.h for the picture). */
#include "kernel/packing.h"

#include <assert.h>

const int8_t iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113};

const int8_t mxfp4_levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

#define U16(offset)                                                                                \
    {                                                                                              \
        PART_U16, offset, 1                                                                        \
    }
#define WORDS(offset, n_words)                                                                     \
    {                                                                                              \
        PART_WORDS, offset, n_words                                                                \
    }
#define SPREAD(offset)                                                                             \
    {                                                                                              \
        PART_SPREAD, offset, 1                                                                     \
    }
static const type_layout layouts[TYPE_LIMIT] = {
    [TYPE_F32] = {1, 4, 0, 1, {WORDS(0, 1)}},
    [TYPE_F16] = {1, 2, 0, 1, {U16(0)}},
    [TYPE_BF16] = {1, 2, 0, 1, {U16(0)}},
    [TYPE_Q4_0] = {32, 18, 1, 2, {U16(0), WORDS(2, 4)}},
    [TYPE_Q4_1] = {32, 20, 2, 3, {U16(0), U16(2), WORDS(4, 4)}},
    [TYPE_Q5_0] = {32, 22, 1, 3, {U16(0), {PART_PLANE, 2, 1}, WORDS(6, 4)}},
    [TYPE_Q5_1] = {32, 24, 2, 4, {U16(0), U16(2), {PART_PLANE, 4, 1}, WORDS(8, 4)}},
    [TYPE_Q8_0] = {32, 34, 1, 2, {U16(0), {PART_FLIP, 2, 8}}},
    [TYPE_IQ4_NL] = {32, 18, 1, 2, {U16(0), WORDS(2, 4)}},
    [TYPE_MXFP4] = {32, 17, 1, 2, {{PART_U8, 0, 1}, WORDS(1, 4)}},
    [TYPE_Q2_K] = {256, 84, 2, 4, {U16(80), U16(82), WORDS(0, 4), WORDS(16, 16)}},
    [TYPE_Q3_K] = {256, 110, 1, 4, {U16(108), WORDS(96, 3), WORDS(0, 8), WORDS(32, 16)}},
    [TYPE_Q4_K] = {256, 144, 2, 4, {U16(0), U16(2), WORDS(4, 3), WORDS(16, 32)}},
    [TYPE_Q5_K] = {256, 176, 2, 5, {U16(0), U16(2), WORDS(4, 3), WORDS(16, 8), WORDS(48, 32)}},
    [TYPE_Q6_K] = {256,
                   210,
                   1,
                   14,
                   {U16(208), WORDS(192, 4), WORDS(128, 4), WORDS(0, 4), WORDS(32, 4),
                    WORDS(144, 4), WORDS(16, 4), WORDS(48, 4), WORDS(160, 4), WORDS(64, 4),
                    WORDS(96, 4), WORDS(176, 4), WORDS(80, 4), WORDS(112, 4)}},
    [TYPE_IQ4_XS] = {256, 136, 1, 4, {U16(0), U16(2), WORDS(4, 1), WORDS(8, 32)}},
#define CODED_LAYOUT(X, TYPE, name, act, block_k, block_bytes, sub_k, ...)                         \
    [TYPE_##TYPE] = {block_k,                                                                      \
                     block_bytes,                                                                  \
                     (sub_k) != FLOAT_SUBS,                                                        \
                     sizeof((packed_field[]){__VA_ARGS__}) / sizeof(packed_field),                 \
                     {__VA_ARGS__}},
    CODED_TYPES(CODED_LAYOUT, )
#undef CODED_LAYOUT
};

const type_layout *layout_find(tensor_type type)
{
    assert(layouts[type].n_parts > 0);
    return &layouts[type];
}

size_t act_bytes(act_kind kind, int32_t n, int64_t k)
{
    size_t n_tiles = ((size_t)n + TOKEN_TILE - 1) / TOKEN_TILE;
    return n_tiles * TOKEN_TILE * act_row_bytes(kind, k);
}

void *act_columns(act_kind kind, void *acts, int32_t n, int64_t k)
{
    assert(n <= TOKEN_TILE && k % ACT_COLUMNS == 0);
    return (uint8_t *)acts + act_row_bytes(kind, k) * (size_t)n;
}
