/* The loops of packing any type by its layout, around what the including file defines before, for
 * its instruction set:
 *
 *   lanes, static inline lanes lanes_zero(void);
 *       A vector of magnitudes: the bits of floats without their signs, which are in the order of
 *       what they stand for.
 *   static inline lanes most_16(lanes most, const uint8_t *p);
 *   static inline lanes most_32(lanes most, const uint8_t *p);
 *       The largest of those so far and of the 32 floats of 16 or 32 bits at p.
 *   static inline uint32_t largest_16(lanes most), largest_32(lanes most);
 *       The largest of all.
 *   static inline void words_4(uint8_t *out, const uint8_t *rows, int64_t row_bytes, int first,
 *                              uint8_t flip, lanes *most);
 *       Words first .. 3 (of the four at rows) of all 32 rows, every byte flipped by a mask. most,
 *       if not NULL, as in most_32.
 *   static inline void planes_32(uint8_t *part);
 *       plane_from_bits of packing.h in 32 words, in place.
 *   static inline void halves_8(uint8_t *out, const uint8_t *rows, int64_t row_bytes, lanes *most);
 *       8 halves of all 32 rows, half i to out + i * 64. most as in most_16.
 *   static inline void line_fetch(const uint8_t *p);
 *       Reads a line that is used soon into the caches, or does nothing. */
#pragma once

#include "kernel/packing.h"

enum { PIECE_BYTES = 256 }; /* bytes of a row, in a part of a group: 64 floats, or one block */

static void part_u8(uint8_t *out, const uint8_t *rows, int64_t row_bytes)
{
    for (int r = 0; r < GROUP_ROWS; r++)
        out[r] = rows[r * row_bytes];
}

static bool exponents_are_finite(const uint8_t *part)
{
    uint8_t most = 0;
    for (int r = 0; r < GROUP_ROWS; r++)
        most = part[r] > most ? part[r] : most;
    return most < E8M0_NONE;
}

static void part_u16(uint8_t *out, const uint8_t *rows, int64_t row_bytes)
{
    for (int r = 0; r < GROUP_ROWS; r++)
        memcpy(out + r * 2, rows + r * row_bytes, 2);
}

static void part_spread(uint8_t *out, const uint8_t *rows, int64_t row_bytes)
{
    for (int r = 0; r < GROUP_ROWS; r++) {
        const uint64_t v = scales_gather(rows + r * row_bytes);
        for (int i = 0; i < 4; i++) {
            const uint16_t number = (uint16_t)(v >> (16 * i));
            memcpy(out + (i * GROUP_ROWS + r) * 2, &number, 2);
        }
    }
}

static void part_word(uint8_t *out, const uint8_t *rows, int64_t row_bytes)
{
    for (int r = 0; r < GROUP_ROWS; r++)
        memcpy(out + r * 4, rows + r * row_bytes, 4);
}

/* Rows are packed a few columns of all 32 at a time, which no prefetcher follows. So what lies
 * ahead is read in the order of memory first, up to this much of every row (half a MiB in all):
 * with shorter rows that is one run, which memory gives 1.6 to 2.2 times as fast as 32 runs side by
 * side (Zen 5). */
enum { SLICE_BYTES = 16384 };

/* The next `left` bytes of 32 rows, or as many as a slice has. */
static void slice_fetch(const uint8_t *rows, int64_t row_bytes, int64_t left)
{
    const int64_t n = left < SLICE_BYTES ? left : SLICE_BYTES;
    for (int r = 0; r < GROUP_ROWS; r++)
        for (int64_t i = 0; i < n; i += 64)
            line_fetch(rows + r * row_bytes + i);
}

/* Returns the first byte after the part. */
static inline uint8_t *part_pack(uint8_t *out, const uint8_t *rows, int64_t row_bytes,
                                 const packed_field *part)
{
    uint8_t flip = part->kind == PART_FLIP ? 0x80 : 0;
    rows += part->file_offset;
    if (part->kind == PART_U8) {
        part_u8(out, rows, row_bytes);
        return out + GROUP_ROWS;
    }
    if (part->kind == PART_U16) {
        part_u16(out, rows, row_bytes);
        return out + GROUP_ROWS * 2;
    }
    if (part->kind == PART_SPREAD) {
        part_spread(out, rows, row_bytes);
        return out + 4 * GROUP_ROWS * 2;
    }
    if (part->n_words == 3) /* with the word before it: the one after it may not exist */
        words_4(out, rows - 4, row_bytes, 1, flip, NULL);
    else if (part->n_words == 1)
        part_word(out, rows, row_bytes);
    else
        for (int w = 0; w < part->n_words; w += 4)
            words_4(out + w * WORD_BYTES, rows + w * 4, row_bytes, 0, flip, NULL);
    if (part->kind == PART_PLANE)
        planes_32(out);
    return out + part->n_words * WORD_BYTES;
}

/* A float row is a run of words. Returns the largest magnitude. */
static uint32_t floats_pack(uint8_t *group, const uint8_t *rows, int64_t row_bytes, int64_t k)
{
    int64_t i = 0;
    lanes most = lanes_zero();
    for (; i + 4 <= k; i += 4) {
        if (i % (SLICE_BYTES / 4) == 0)
            slice_fetch(rows + i * 4, row_bytes, (k - i) * 4);
        words_4(group + i * WORD_BYTES, rows + i * 4, row_bytes, 0, 0, &most);
    }
    for (; i < k; i++) {
        part_word(group + i * WORD_BYTES, rows + i * 4, row_bytes);
        most = most_32(most, group + i * WORD_BYTES);
    }
    return largest_32(most);
}

/* F16 and BF16. Returns the largest magnitude. */
static uint32_t halves_pack(uint8_t *group, const uint8_t *rows, int64_t row_bytes, int64_t k)
{
    int64_t i = 0;
    lanes most = lanes_zero();
    for (; i + 8 <= k; i += 8) {
        if (i % (SLICE_BYTES / 2) == 0)
            slice_fetch(rows + i * 2, row_bytes, (k - i) * 2);
        halves_8(group + i * 64, rows + i * 2, row_bytes, &most);
    }
    for (; i < k; i++) {
        part_u16(group + i * 64, rows + i * 2, row_bytes);
        most = most_16(most, group + i * 64);
    }
    return largest_16(most);
}

/* 32 rows. Returns whether their numbers, or their blocks' scales, are finite. */
static bool rows_pack(tensor_type type, uint8_t *group, const uint8_t *rows, int64_t row_bytes,
                      int64_t k)
{
    const type_layout *layout = layout_find(type);
    if (type == TYPE_F32)
        return floats_pack(group, rows, row_bytes, k) < F32_INFINITE;
    if (type == TYPE_F16 || type == TYPE_BF16)
        return halves_pack(group, rows, row_bytes, k) <
               (type == TYPE_F16 ? F16_INFINITE : BF16_INFINITE);
    lanes most = lanes_zero();
    bool finite = true;
    const int64_t n_blocks = k / layout->block_k, block_bytes = layout->file_block_bytes;
    const int64_t slice_blocks = SLICE_BYTES / block_bytes;
    for (int64_t b = 0; b < n_blocks; b++) {
        const uint8_t *scales = group;
        if (b % slice_blocks == 0)
            slice_fetch(rows, row_bytes,
                        (n_blocks - b < slice_blocks ? n_blocks - b : slice_blocks) * block_bytes);
        for (int32_t p = 0; p < layout->n_parts; p++)
            group = part_pack(group, rows, row_bytes, &layout->parts[p]);
        /* Only now: right after the stores of single halves a vector would have to wait. */
        if (layout->parts[0].kind == PART_U8)
            finite &= exponents_are_finite(scales);
        else if (layout->n_scales > 0)
            most = most_16(most, scales);
        if (layout->n_scales > 1)
            most = most_16(most, scales + GROUP_ROWS * 2);
        rows += layout->file_block_bytes;
    }
    return finite && largest_16(most) < F16_INFINITE;
}

/* A tensor's last group, piece by piece through a copy with rows of zeros. */
static bool part_rows_pack(tensor_type type, uint8_t *group, const uint8_t *rows, int64_t row_bytes,
                           int32_t n_rows, int64_t k)
{
    const type_layout *layout = layout_find(type);
    const int32_t blocks = layout->block_k == 1 ? 64 : 1;
    uint8_t piece[GROUP_ROWS * PIECE_BYTES] = {0};
    bool finite = true;
    for (int64_t b = 0; b < k / layout->block_k; b += blocks) {
        int64_t left = k / layout->block_k - b, n = left < blocks ? left : blocks;
        size_t bytes = (size_t)(n * layout->file_block_bytes);
        for (int32_t r = 0; r < n_rows; r++)
            memcpy(piece + r * PIECE_BYTES, rows + r * row_bytes, bytes);
        finite &= rows_pack(type, group, piece, PIECE_BYTES, n * layout->block_k);
        group += bytes * GROUP_ROWS;
        rows += bytes;
    }
    return finite;
}

static bool pack(tensor_type type, uint8_t *group, const uint8_t *rows, int64_t row_bytes,
                 int32_t n_rows, int64_t k)
{
    return n_rows == GROUP_ROWS ? rows_pack(type, group, rows, row_bytes, k)
                                : part_rows_pack(type, group, rows, row_bytes, n_rows, k);
}

#define DEFINE_PACK(TYPE, name, act, block_k, block_bytes)                                         \
    static bool pack_##name(void *group, const void *rows, int64_t row_bytes, int32_t n_rows,      \
                            int64_t k)                                                             \
    {                                                                                              \
        return pack(TYPE_##TYPE, group, rows, row_bytes, n_rows, k);                               \
    }
KERNEL_TYPES(DEFINE_PACK)
#undef DEFINE_PACK

/* Sets pack of every type. */
static inline void packs_set(kernel_table *table)
{
#define SET_TYPE(TYPE, name, act, block_k, block_bytes)                                            \
    table->matmul[TYPE_##TYPE].pack = pack_##name;
    KERNEL_TYPES(SET_TYPE)
#undef SET_TYPE
}
