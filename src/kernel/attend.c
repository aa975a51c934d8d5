/* The loops around a block kernel (see attend.h), and rows of the cache.
 *
 * A call takes pairs (row, query head) in batches of at most ATTEND_PAIRS. Blocks of the dense prefix
 * that all rows of a batch see are read once for the batch; each row's remainder (the rest of its
 * prefix, then its path) follows for its own pairs. */
#include "kernel/attend.h"

#include <string.h>

#include "base/fmath.h"
#include "kernel/packing.h"

/* A batch's buffers, cut from a thread's scratch. */
typedef struct pair_batch {
    const attention *a;
    int32_t first, n; /* pairs */
    attend_pairs pairs;
    float *packed;                  /* [n][head_dim] */
    float *sums[ATTEND_PAIRS + 16]; /* attend_pairs.a */
    /* Of one row's pairs: kernels write whole vectors, and the others' must stay. */
    float row_m[ATTEND_PAIRS + 16], row_l[ATTEND_PAIRS + 16];
    uint8_t *gathered; /* groups of keys that no one group of slots holds */
} pair_batch;

static size_t packed_floats(int32_t head_dim)
{
    return ATTEND_PAIRS * (size_t)head_dim;
}

enum { P_FLOATS = ATTEND_PAIRS * ATTEND_BLOCK, C_FLOATS = 3 * ATTEND_PAIRS };

size_t attend_scratch_bytes(int32_t head_dim)
{
    size_t floats = packed_floats(head_dim) + P_FLOATS + 2 * C_FLOATS +
                    ATTEND_WIDE_FLOATS(head_dim) + ATTEND_BLOCK * (size_t)head_dim;
    return (floats * sizeof(float) + 255) / 64 * 64;
}

static int32_t row_of(const attention *a, int32_t pair)
{
    return pair / a->n_q;
}

static int64_t offset_of(const attention *a, int32_t pair)
{
    return row_of(a, pair) * a->ld + (int64_t)(pair % a->n_q) * a->head_dim;
}

static pair_batch batch_make(const attention *a, int32_t first, int32_t n, void *scratch)
{
    pair_batch r = {.a = a, .first = first, .n = n};
    float *at = scratch;
    r.packed = at;
    at += packed_floats(a->head_dim);
    r.pairs = (attend_pairs){.n = n, .head_dim = a->head_dim, .scale = a->scale, .q = r.packed};
    r.pairs.p = at;
    at += P_FLOATS;
    r.pairs.c = at;
    at += C_FLOATS;
    r.pairs.m = at;
    r.pairs.l = at + ATTEND_PAIRS + 16;
    at += C_FLOATS;
    r.pairs.wide = at;
    at += ATTEND_WIDE_FLOATS(a->head_dim);
    r.gathered = (uint8_t *)at;
    return r;
}

/* The pairs [from, from + n) of the batch, packed, their sums in `out`. */
static void batch_pack(pair_batch *r, int32_t from, int32_t n)
{
    const float *q[ATTEND_PAIRS];
    for (int32_t i = 0; i < n; i++) {
        int64_t at = offset_of(r->a, r->first + from + i);
        q[i] = r->a->q + at;
        r->sums[i] = r->a->out + at;
    }
    r->pairs.n = n;
    r->pairs.a = r->sums;
    r->a->kernels->attend->pack(r->packed, q, n, r->a->head_dim);
}

static size_t group_bytes(kv_format format, int32_t head_dim)
{
    size_t scales = format == KV_Q8_0 ? KV_GROUP * (size_t)(head_dim / KV_Q8_BLOCK) * 2 : 0;
    return kv_group_numbers(format, head_dim) + scales;
}

size_t kv_head_bytes(kv_format format, int32_t n_slots, int32_t head_dim)
{
    return (size_t)(n_slots + KV_GROUP - 1) / KV_GROUP * group_bytes(format, head_dim);
}

/* Where a slot's value and its scales are. */
static size_t value_at(kv_format format, int32_t slot, int32_t head_dim)
{
    return (size_t)(slot / KV_GROUP) * group_bytes(format, head_dim) +
           (size_t)(slot % KV_GROUP) * (size_t)head_dim * kv_number_bytes(format);
}

static size_t value_d_at(kv_format format, int32_t slot, int32_t head_dim)
{
    return (size_t)(slot / KV_GROUP) * group_bytes(format, head_dim) +
           kv_group_numbers(format, head_dim) +
           (size_t)(slot % KV_GROUP) * (size_t)(head_dim / KV_Q8_BLOCK) * 2;
}

/* The positions from `start` on that lie in dense slots: at most 64. */
static void dense_block(const attention *a, attend_block *b, int32_t start, int32_t count)
{
    size_t bytes = group_bytes(a->format, a->head_dim);
    b->format = a->format;
    b->count = count;
    for (int32_t i = 0; i < ATTEND_GROUPS; i++)
        b->keys[i] = NULL;
    size_t row = (size_t)a->head_dim * kv_number_bytes(a->format);
    size_t scales = (bytes - KV_GROUP * row) / KV_GROUP; /* of a row */
    for (int32_t j = 0; j < count; j += KV_GROUP) {
        size_t at = (size_t)((start + j) / KV_GROUP) * bytes;
        b->keys[j / KV_GROUP] = a->keys + at;
        const uint8_t *value = a->values + at, *d = value + KV_GROUP * row;
        for (int32_t i = 0; i < KV_GROUP; i++) { /* whole groups: every block takes this way */
            b->value[j + i] = value + (size_t)i * row;
            b->value_d[j + i] = d + (size_t)i * scales;
        }
    }
    b->ahead_keys = b->ahead_values = NULL;
    b->ahead_bytes = ATTEND_GROUPS * bytes;
}

/* Copies a key between places of groups. */
static void copy_key(kv_format format, uint8_t *to_group, int32_t to, const uint8_t *from_group,
                     int32_t from, int32_t head_dim)
{
    size_t size = kv_number_bytes(format);
    for (int32_t i = 0; i < head_dim; i++)
        memcpy(to_group + (size_t)(i * KV_GROUP + to) * size,
               from_group + (size_t)(i * KV_GROUP + from) * size, size);
    if (format != KV_Q8_0)
        return;
    to_group += kv_group_numbers(format, head_dim);
    from_group += kv_group_numbers(format, head_dim);
    for (int32_t i = 0; i < head_dim / KV_Q8_BLOCK; i++)
        memcpy(to_group + (i * KV_GROUP + to) * 2, from_group + (i * KV_GROUP + from) * 2, 2);
}

/* The positions of a row from `start` on; keys of a group that is not dense are gathered. */
static void row_block(const pair_batch *r, attend_block *b, int32_t row, int32_t start,
                      int32_t count)
{
    const attention *a = r->a;
    const int32_t *path = a->path ? a->path + row * a->path_ld : NULL;
    int32_t dense = a->n_prefix[row] - start;
    size_t bytes = group_bytes(a->format, a->head_dim);
    dense_block(a, b, start, dense < 0 ? 0 : dense < count ? dense : count);
    b->count = count;
    for (int32_t j = dense < 0 ? 0 : dense; j < count; j++) {
        int32_t slot = path[start + j - a->n_prefix[row]];
        uint8_t *group = r->gathered + (size_t)(j / KV_GROUP) * bytes;
        if (b->keys[j / KV_GROUP] != group) {
            if (j % KV_GROUP) /* begins dense */
                memcpy(group, b->keys[j / KV_GROUP], bytes);
            b->keys[j / KV_GROUP] = group;
        }
        copy_key(a->format, group, j % KV_GROUP, a->keys + (size_t)(slot / KV_GROUP) * bytes,
                 slot % KV_GROUP, a->head_dim);
        b->value[j] = a->values + value_at(a->format, slot, a->head_dim);
        b->value_d[j] = a->values + value_d_at(a->format, slot, a->head_dim);
    }
}

int32_t attend_dense_blocks(const attention *a, int32_t first, int32_t last)
{
    int32_t n = a->n_prefix[row_of(a, first)];
    for (int32_t row = row_of(a, first); row <= row_of(a, last - 1); row++)
        n = a->n_prefix[row] < n ? a->n_prefix[row] : n;
    return n / ATTEND_BLOCK;
}

/* The batch's pairs over dense blocks [from, to); each is told what comes next. */
static void dense_blocks(pair_batch *r, int32_t from, int32_t to)
{
    const attention *a = r->a;
    size_t bytes = ATTEND_GROUPS * group_bytes(a->format, a->head_dim);
    for (int32_t i = from; i < to; i++) {
        attend_block b;
        dense_block(a, &b, i * ATTEND_BLOCK, ATTEND_BLOCK);
        b.ahead_values = b.value[0];
        b.ahead_keys = i + 1 < to ? b.keys[0] + bytes : NULL;
        a->kernels->attend->block(&r->pairs, &b, i == 0);
    }
}

/* What is left of each row of the batch behind `dense` blocks, and the end. */
static void rest_of_rows(pair_batch *r, int32_t dense)
{
    const attention *a = r->a;
    const float *m = r->pairs.m, *l = r->pairs.l;
    int32_t n = r->n;
    r->pairs.m = r->row_m;
    r->pairs.l = r->row_l;
    for (int32_t from = 0, to; from < n; from = to) {
        int32_t row = row_of(a, r->first + from), end = (row + 1) * a->n_q - r->first;
        to = end < n ? end : n;
        if (from > 0 || to < n)
            batch_pack(r, from, to - from);
        memcpy(r->row_m, m + from, (size_t)(to - from) * sizeof(float));
        memcpy(r->row_l, l + from, (size_t)(to - from) * sizeof(float));
        int32_t n_seen = a->n_prefix[row] + a->n_path[row];
        for (int32_t start = dense * ATTEND_BLOCK; start < n_seen; start += ATTEND_BLOCK) {
            attend_block b;
            row_block(r, &b, row, start,
                      n_seen - start < ATTEND_BLOCK ? n_seen - start : ATTEND_BLOCK);
            a->kernels->attend->block(&r->pairs, &b, start == 0);
        }
        a->kernels->attend->divide(&r->pairs);
    }
}

void attend(const attention *a, int32_t first, int32_t last, void *scratch)
{
    for (; first < last; first += ATTEND_PAIRS) {
        int32_t n = last - first < ATTEND_PAIRS ? last - first : ATTEND_PAIRS;
        pair_batch r = batch_make(a, first, n, scratch);
        int32_t dense = attend_dense_blocks(a, first, first + n);
        batch_pack(&r, 0, n);
        dense_blocks(&r, 0, dense);
        rest_of_rows(&r, dense);
    }
}

/* ---- In partials: [m, l of the first range] [blocks: m, l [16] each, a [n][head_dim]] ---- */

static size_t part_floats(int32_t n_pairs, int32_t head_dim)
{
    return 2 * ATTEND_SPLIT_PAIRS + (size_t)n_pairs * (size_t)head_dim;
}

size_t attend_partials_floats(int32_t n_pairs, int32_t head_dim, int32_t n_blocks)
{
    return 2 * ATTEND_SPLIT_PAIRS + (size_t)n_blocks * part_floats(n_pairs, head_dim);
}

void attend_range(const attention *a, int32_t first, int32_t last, int32_t n_first_range,
                  int32_t from_block, int32_t to_block, float *partials, void *scratch)
{
    pair_batch r = batch_make(a, first, last - first, scratch);
    batch_pack(&r, 0, r.n);
    if (from_block == 0) {
        dense_blocks(&r, 0, to_block);
        memcpy(partials, r.pairs.m, (size_t)r.n * sizeof(float));
        memcpy(partials + ATTEND_SPLIT_PAIRS, r.pairs.l, (size_t)r.n * sizeof(float));
        return;
    }
    size_t bytes = ATTEND_GROUPS * group_bytes(a->format, a->head_dim);
    for (int32_t i = from_block; i < to_block; i++) {
        float *part = partials + 2 * ATTEND_SPLIT_PAIRS +
                      (size_t)(i - n_first_range) * part_floats(r.n, a->head_dim);
        r.pairs.m = part;
        r.pairs.l = part + ATTEND_SPLIT_PAIRS;
        for (int32_t j = 0; j < r.n; j++)
            r.sums[j] = part + 2 * ATTEND_SPLIT_PAIRS + (int64_t)j * a->head_dim;
        attend_block b;
        dense_block(a, &b, i * ATTEND_BLOCK, ATTEND_BLOCK);
        b.ahead_values = b.value[0];
        b.ahead_keys = i + 1 < to_block ? b.keys[0] + bytes : NULL;
        a->kernels->attend->block(&r.pairs, &b, true);
    }
}

void attend_finish(const attention *a, int32_t first, int32_t last, int32_t n_first_range,
                   int32_t n_blocks, float *partials, void *scratch)
{
    pair_batch r = batch_make(a, first, last - first, scratch);
    batch_pack(&r, 0, r.n);
    memcpy(r.pairs.m, partials, (size_t)r.n * sizeof(float));
    memcpy(r.pairs.l, partials + ATTEND_SPLIT_PAIRS, (size_t)r.n * sizeof(float));
    partials += 2 * ATTEND_SPLIT_PAIRS;
    for (int32_t i = n_first_range; i < n_blocks; i++, partials += part_floats(r.n, a->head_dim))
        a->kernels->attend->fold(&r.pairs, partials, partials + ATTEND_SPLIT_PAIRS,
                                 partials + 2 * ATTEND_SPLIT_PAIRS);
    rest_of_rows(&r, n_blocks);
}

/* ---- Rows of the cache ---- */

/* Quantises a row to q8_0: q[head_dim], d[head_dim / 32] as f16. */
static void to_q8(const kernel_table *kernels, int8_t *q, uint16_t *d, const float *x,
                  int32_t head_dim, void *scratch)
{
    uint8_t *acts = scratch;
    kernels->quantise[ACT_Q8_32](acts, x, head_dim, 0, 1, 1, head_dim);
    for (int32_t i = 0; i < head_dim / KV_Q8_BLOCK; i++, acts += ACT_Q8_32_BYTES) {
        float scale = load_f32(acts + ACT_32_D);
        d[i] = f32_to_f16(scale < 65504.0f ? scale : 65504.0f);
        memcpy(q + i * KV_Q8_BLOCK, acts, KV_Q8_BLOCK);
    }
}

/* A row as the cache keeps it, numbers then scales, in scratch. */
static const uint8_t *convert(const kernel_table *kernels, kv_format format, const float *x,
                              int32_t head_dim, void *scratch)
{
    uint8_t *to = scratch;
    if (format == KV_F32)
        return (const uint8_t *)x;
    if (format == KV_F16)
        kernels->to_f16(scratch, x, head_dim);
    else
        to_q8(kernels, scratch, (uint16_t *)(void *)(to + head_dim), x, head_dim,
              to + 64 * (size_t)(head_dim / 16 + 1));
    return to;
}

void kv_store_key(const kernel_table *kernels, kv_format format, uint8_t *keys, int32_t slot,
                  const float *x, int32_t head_dim, void *scratch)
{
    const uint8_t *row = convert(kernels, format, x, head_dim, scratch);
    size_t size = kv_number_bytes(format);
    uint8_t *group = keys + (size_t)(slot / KV_GROUP) * group_bytes(format, head_dim);
    uint8_t *to = group + (size_t)(slot % KV_GROUP) * size;
    for (int32_t lane = 0; lane < SUM_LANES; lane++)
        for (int32_t i = attend_lane_order[lane]; i < head_dim; i += SUM_LANES) {
            memcpy(to, row + (size_t)i * size, size);
            to += KV_GROUP * size;
        }
    group += kv_group_numbers(format, head_dim) + 2 * (size_t)(slot % KV_GROUP);
    for (int32_t i = 0; format == KV_Q8_0 && i < head_dim / KV_Q8_BLOCK; i++)
        memcpy(group + 2 * i * KV_GROUP, row + head_dim + 2 * i, 2);
}

void kv_store_value(const kernel_table *kernels, kv_format format, uint8_t *values, int32_t slot,
                    const float *x, int32_t head_dim, void *scratch)
{
    const uint8_t *row = convert(kernels, format, x, head_dim, scratch);
    size_t bytes = (size_t)head_dim * kv_number_bytes(format);
    memcpy(values + value_at(format, slot, head_dim), row, bytes);
    if (format == KV_Q8_0)
        memcpy(values + value_d_at(format, slot, head_dim), row + bytes,
               (size_t)(head_dim / KV_Q8_BLOCK) * 2);
}

void kv_move_key(kv_format format, uint8_t *keys, int32_t to, int32_t from, int32_t head_dim)
{
    size_t bytes = group_bytes(format, head_dim);
    copy_key(format, keys + (size_t)(to / KV_GROUP) * bytes, to % KV_GROUP,
             keys + (size_t)(from / KV_GROUP) * bytes, from % KV_GROUP, head_dim);
}

void kv_move_value(kv_format format, uint8_t *values, int32_t to, int32_t from, int32_t head_dim)
{
    memcpy(values + value_at(format, to, head_dim), values + value_at(format, from, head_dim),
           (size_t)head_dim * kv_number_bytes(format));
    if (format == KV_Q8_0)
        memcpy(values + value_d_at(format, to, head_dim),
               values + value_d_at(format, from, head_dim), (size_t)(head_dim / KV_Q8_BLOCK) * 2);
}
