/* Packing and unpacking by the layout table: any type, no speed. */
#include "kernel/ref/ref.h"

static void word_put(uint8_t *part, int32_t i, int32_t row, uint32_t value)
{
    memcpy(part + i * WORD_BYTES + (row / HALF_ROWS) * HALF_BYTES + (row % HALF_ROWS) * 4, &value,
           4);
}

/* One row of a block: file (NULL: a missing row of zeros) to its places in the packed block. */
static void row_pack(uint8_t *block, const uint8_t *file, const type_layout *layout, int32_t row)
{
    for (int32_t p = 0; p < layout->n_parts; p++) {
        const packed_field *part = &layout->parts[p];
        const uint8_t *from = file ? file + part->file_offset : NULL;
        if (part->kind == PART_U8) {
            block[row] = from ? *from : 0;
            block += GROUP_ROWS;
            continue;
        }
        if (part->kind == PART_U16) {
            uint16_t v = from ? load_u16(from) : 0;
            memcpy(block + row * 2, &v, 2);
            block += GROUP_ROWS * 2;
            continue;
        }
        if (part->kind == PART_SPREAD) {
            const uint64_t v = from ? scales_gather(from) : 0;
            for (int i = 0; i < 4; i++, block += GROUP_ROWS * 2) {
                const uint16_t number = (uint16_t)(v >> (16 * i));
                memcpy(block + row * 2, &number, 2);
            }
            continue;
        }
        for (int32_t i = 0; i < part->n_words; i++) {
            uint32_t v = from ? load_u32(from + i * 4) : 0;
            if (part->kind == PART_FLIP)
                v ^= 0x80808080u;
            else if (part->kind == PART_PLANE)
                v = plane_from_bits(v);
            word_put(block, i, row, v);
        }
        block += part->n_words * WORD_BYTES;
    }
}

/* Checks a row's block in the file. */
static bool block_is_finite(tensor_type type, const uint8_t *file, const type_layout *layout)
{
    if (type == TYPE_F32)
        return (load_u32(file) & 0x7fffffff) < F32_INFINITE;
    if (type == TYPE_F16 || type == TYPE_BF16)
        return (load_u16(file) & 0x7fff) < (type == TYPE_F16 ? F16_INFINITE : BF16_INFINITE);
    if (layout->parts[0].kind == PART_U8)
        return *file < E8M0_NONE;
    bool finite = true;
    for (int32_t p = 0; p < layout->n_scales; p++)
        finite &= ((layout->parts[p].kind == PART_SPREAD
                        ? scales_gather(file + layout->parts[p].file_offset)
                        : load_u16(file + layout->parts[p].file_offset)) &
                   0x7fff) < F16_INFINITE;
    return finite;
}

bool pack_ref(tensor_type type, void *group, const void *rows, int64_t row_bytes, int32_t n_rows,
              int64_t k)
{
    const type_layout *layout = layout_find(type);
    bool finite = true;
    for (int32_t row = 0; row < GROUP_ROWS; row++) {
        const uint8_t *file = row < n_rows ? (const uint8_t *)rows + row * row_bytes : NULL;
        for (int64_t b = 0; b < k / layout->block_k; b++) {
            const uint8_t *block = file ? file + b * layout->file_block_bytes : NULL;
            row_pack((uint8_t *)group + b * layout->file_block_bytes * GROUP_ROWS, block, layout,
                     row);
            finite &= !block || block_is_finite(type, block, layout);
        }
    }
    return finite;
}

/* Blocks of 32: d * q, plus m where the type has one. */
static void block_32_unpack(float *out, const row_block *w, bool has_m)
{
    for (int32_t i = 0; i < 32; i++) {
        float product = w->d * (float)w->q[i];
        out[i] = has_m ? product + w->m : product;
    }
}

/* Blocks of 256: (d * scale) * q, minus (dmin * min) where the type has minima. */
static void block_256_unpack(float *out, const row_block *w, int32_t sub_k, bool has_min)
{
    for (int32_t i = 0; i < 256; i++) {
        int32_t s = i / sub_k;
        float product = (w->d * (float)w->scale[s]) * (float)w->q[i];
        out[i] = has_min ? product - w->m * (float)w->min[s] : product;
    }
}

/* Blocks of 64: sixteen weights a scale. */
static void block_64_unpack(float *out, const row_block *w)
{
    for (int32_t i = 0; i < 64; i++)
        out[i] = w->fine[i / 16] * (float)w->q[i];
}

static void block_unpack(tensor_type type, float *out, const uint8_t *block, int32_t r)
{
    const type_decoder *d = &decoders_ref[type];
    row_block w;
    if (type == TYPE_F32) {
        out[0] = decode_f32_ref(block, r);
    } else if (type == TYPE_F16) {
        out[0] = decode_f16_ref(block, r);
    } else if (type == TYPE_BF16) {
        out[0] = decode_bf16_ref(block, r);
    } else {
        d->decode(&w, block, r);
        if (d->sub_k == FLOAT_SUBS)
            block_64_unpack(out, &w);
        else if (d->sub_k)
            block_256_unpack(out, &w, d->sub_k, d->has_m);
        else
            block_32_unpack(out, &w, d->has_m);
    }
}

void unpack_row_ref(tensor_type type, float *out, const void *group, int32_t r, int64_t k)
{
    const type_layout *layout = layout_find(type);
    for (int64_t b = 0; b < k / layout->block_k; b++)
        block_unpack(type, out + b * layout->block_k,
                     (const uint8_t *)group + b * layout->file_block_bytes * GROUP_ROWS, r);
}
