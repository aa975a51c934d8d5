/* The loops around a block kernel (see attend.h), and rows of the cache.
 *
 * A call takes pairs (row, query head) in batches of at most ATTEND_PAIRS. The dense prefix that
 * all rows of a batch see is read once for the batch; each row's remainder (the rest of its prefix,
 * then its path) follows for its own pairs, sparse: with keys that are turned into rows once
 * a batch. */
#include "kernel/attend.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/fmath.h"
#include "common/num.h"
#include "kernel/packing.h"

/* A batch's buffers, cut from a thread's scratch. */
typedef struct pair_batch {
    const attention *a;
    int32_t first, n;            /* pairs, */
    int32_t first_row, last_row; /* query heads of the rows [first_row, last_row) */
    int32_t n_dense;             /* positions that they all have in the slots of their numbers */
    /* first block of positions that they see; the same for all of them */
    int32_t first_block;
    size_t key_group, value_group;  /* bytes of a group on each side, */
    size_t value_row, value_scales; /* bytes of a value's numbers, and of its scales */
    attend_pairs pairs;
    float *packed;                  /* [n][k_dim] */
    float *sums[ATTEND_PAIRS + 16]; /* attend_pairs.a */
    /* m and l of one row's pairs: kernels write whole vectors, and the others' must stay. */
    float row_m[ATTEND_PAIRS + 16], row_l[ATTEND_PAIRS + 16];
    /* Keys as rows, of k_dim padded. */
    float *turned;       /* [ATTEND_TURNED][KV_GROUP]: of the groups from first_group on, */
    uint32_t is_turned;  /* a bit each */
    int32_t first_group; /* group of the batch with a sparse position */
    float *single;       /* [ATTEND_BLOCK] of positions that are elsewhere, and a group */
    float *latent;       /* [ATTEND_BLOCK] of a block's dense positions, which have the values */
} pair_batch;

static size_t packed_floats(int32_t k_dim)
{
    return ATTEND_PAIRS * (size_t)k_dim;
}

enum { P_FLOATS = ATTEND_PAIRS * ATTEND_BLOCK, C_FLOATS = 3 * ATTEND_PAIRS };

enum { KEY_ROWS = ATTEND_TURNED * KV_GROUP + ATTEND_BLOCK + KV_GROUP };

size_t attend_scratch_bytes(int32_t k_dim, int32_t v_dim, bool latent)
{
    size_t rows = KEY_ROWS + (latent ? ATTEND_BLOCK : 0);
    size_t floats = packed_floats(k_dim) + P_FLOATS + 2 * C_FLOATS +
                    ATTEND_WIDE_FLOATS(max_i32(k_dim, v_dim)) +
                    rows * (size_t)attend_row_floats(k_dim);
    return (floats * sizeof(float) + 255) / 64 * 64;
}

/* The first position that a row sees. */
static int32_t first_seen(const attention *a, int32_t row)
{
    return attend_first_seen(a->window, a->n_prefix[row] + a->n_path[row]);
}

/* Counts the pairs, of n from `first` on, whose rows begin in the block where the first one
 * does. */
static int32_t same_block(const attention *a, int32_t first, int32_t n)
{
    int32_t row = first / a->n_q, block = first_seen(a, row) / ATTEND_BLOCK;
    if (a->window == 0)
        return n;
    while ((row + 1) * a->n_q < first + n && first_seen(a, row + 1) / ATTEND_BLOCK == block)
        row++;
    return min_i32(n, (row + 1) * a->n_q - first);
}

static pair_batch batch_make(const attention *a, int32_t first, int32_t n, void *scratch)
{
    pair_batch r = {.a = a, .first = first, .n = n};
    r.first_row = first / a->n_q;
    r.last_row = (first + n - 1) / a->n_q + 1;
    r.n_dense = a->n_prefix[r.first_row];
    for (int32_t row = r.first_row; row < r.last_row; row++)
        r.n_dense = min_i32(r.n_dense, a->n_prefix[row]);
    r.first_block = first_seen(a, r.first_row) / ATTEND_BLOCK;
    r.key_group = kv_group_bytes(a->format, a->k_dim);
    r.value_group = kv_group_bytes(a->format, a->v_dim);
    r.value_row = (size_t)a->v_dim * kv_number_bytes(a->format);
    r.value_scales = r.value_group / KV_GROUP - r.value_row;
    float *at = scratch;
    r.packed = at;
    at += packed_floats(a->k_dim);
    r.pairs = (attend_pairs){
        .n = n, .k_dim = a->k_dim, .v_dim = a->v_dim, .scale = a->scale, .q = r.packed};
    r.pairs.p = at;
    at += P_FLOATS;
    r.pairs.c = at;
    at += C_FLOATS;
    r.pairs.m = at;
    r.pairs.l = at + ATTEND_PAIRS + 16;
    at += C_FLOATS;
    r.pairs.wide = at;
    at += ATTEND_WIDE_FLOATS(max_i32(a->k_dim, a->v_dim));
    const size_t row = (size_t)attend_row_floats(a->k_dim);
    r.turned = at;
    r.single = at + ATTEND_TURNED * KV_GROUP * row;
    r.latent = at + KEY_ROWS * row;
    return r;
}

/* The batch's pairs of a row: [from, to). */
static int32_t row_pairs(const pair_batch *r, int32_t row, int32_t *from)
{
    int32_t at = row * r->a->n_q - r->first;
    *from = max_i32(at, 0);
    return min_i32(at + r->a->n_q, r->n);
}

/* The beginning of those pairs' queries. */
static const float *queries_at(const pair_batch *r, int32_t row, int32_t from)
{
    int32_t head = r->first + from - row * r->a->n_q;
    return r->a->q + row * r->a->q_ld + (int64_t)head * r->a->k_dim;
}

/* The beginning of their sums. */
static float *sums_at(const pair_batch *r, int32_t row, int32_t from)
{
    int32_t head = r->first + from - row * r->a->n_q;
    return r->a->out + row * r->a->out_ld + (int64_t)head * r->a->v_dim;
}

/* The batch's pairs, their sums in `out`; packed for what they see together, unless that
 * is nothing. */
static void batch_pack(pair_batch *r)
{
    const attention *a = r->a;
    const float *q[ATTEND_PAIRS];
    for (int32_t row = r->first_row, i; row < r->last_row; row++) {
        int32_t to = row_pairs(r, row, &i);
        const float *queries = queries_at(r, row, i);
        float *sums = sums_at(r, row, i);
        for (; i < to; i++, queries += a->k_dim, sums += a->v_dim) {
            q[i] = queries;
            r->sums[i] = sums;
        }
    }
    r->pairs.a = r->sums;
    if (r->n_dense)
        a->kernels->attend->pack(r->packed, q, r->n, a->k_dim, r->pairs.wide);
}

size_t kv_head_bytes(kv_format format, int32_t n_slots, int32_t dim)
{
    return (size_t)(n_slots + KV_GROUP - 1) / KV_GROUP * kv_group_bytes(format, dim);
}

/* Values of a block's dense positions, whole groups of them, in rows that its keys are turned
 * into. */
static void latent_values(pair_batch *r, attend_block *b)
{
    const attention *a = r->a;
    const size_t row = (size_t)attend_row_floats(a->k_dim);
    float *rows = r->latent;
    for (int32_t j = 0; j < b->dense; j += KV_GROUP) {
        a->kernels->attend->turn(rows, b->keys[j / KV_GROUP], a->format, a->k_dim);
        for (int32_t i = 0; i < KV_GROUP; i++, rows += row)
            b->value[j + i] = (const uint8_t *)rows;
    }
}

/* The positions from `start` on that are in dense slots: at most 64. */
static void dense_block(pair_batch *r, attend_block *b, int32_t start, int32_t count)
{
    const attention *a = r->a;
    const size_t first = (size_t)(start - a->base) / KV_GROUP;
    const size_t keys = r->key_group, row = r->value_row, scales = r->value_scales;
    b->format = a->format;
    b->value_format = a->values ? a->format : KV_F32;
    b->dense = b->count = count;
    b->ahead_keys = b->ahead_values = NULL;
    b->key_bytes = ATTEND_GROUPS * keys;
    b->value_bytes = ATTEND_GROUPS * r->value_group;
    for (int32_t i = 0; i < ATTEND_GROUPS; i++)
        b->keys[i] = i * KV_GROUP < count ? a->keys + (first + (size_t)i) * keys : NULL;
    if (!a->values) {
        latent_values(r, b);
        return;
    }
    const uint8_t *value = a->values + first * r->value_group;
    for (int32_t j = 0; j < count; j += KV_GROUP, value += r->value_group) {
        const uint8_t *d = value + KV_GROUP * row;
        for (int32_t i = 0; i < KV_GROUP; i++) { /* whole groups: every block takes this way */
            b->value[j + i] = value + (size_t)i * row;
            b->value_d[j + i] = d + (size_t)i * scales;
        }
    }
}

/* Block i, of positions that all rows of the batch see; the kernel asks for its values, and for the
 * keys of the next one if there is one. */
static void whole_block(pair_batch *r, attend_block *b, int32_t i, bool is_last)
{
    dense_block(r, b, i * ATTEND_BLOCK, ATTEND_BLOCK);
    b->ahead_values = r->a->values ? b->value[0] : NULL;
    b->ahead_keys = is_last ? NULL : b->keys[0] + b->key_bytes;
}

static int32_t slot_of(const attention *a, int32_t row, int32_t position)
{
    int32_t on_path = position - a->n_prefix[row];
    return on_path < 0 ? position - a->base : a->path[row * a->path_ld + on_path];
}

/* The key of a slot as a row; j: its place in the block. */
static const float *key_row(pair_batch *r, int32_t slot, int32_t j)
{
    const attention *a = r->a;
    int32_t group = slot / KV_GROUP, place = group - r->first_group;
    const uint8_t *keys = a->keys + (size_t)group * kv_group_bytes(a->format, a->k_dim);
    const int64_t row = attend_row_floats(a->k_dim);
    if (place < ATTEND_TURNED) {
        float *rows = r->turned + place * KV_GROUP * row;
        if (!(r->is_turned & 1u << place))
            a->kernels->attend->turn(rows, keys, a->format, a->k_dim);
        r->is_turned |= 1u << place;
        return rows + slot % KV_GROUP * row;
    }
    float *rows = r->single + ATTEND_BLOCK * row;
    a->kernels->attend->turn(rows, keys, a->format, a->k_dim);
    return memcpy(r->single + j * row, rows + slot % KV_GROUP * row, (size_t)row * sizeof *rows);
}

/* The keys of a row's positions from `start` on; the first `dense` are in dense slots. */
static void row_keys(pair_batch *r, attend_block *b, int32_t row, int32_t start)
{
    for (int32_t j = b->dense; j < b->count; j++)
        b->key[j] = key_row(r, slot_of(r->a, row, start + j), j);
}

/* The values of those positions. Rows of keys are made again: another row's may have taken the
 * place of those that stand alone. */
static void row_values(pair_batch *r, attend_block *b, int32_t row, int32_t start)
{
    const attention *a = r->a;
    if (!a->values)
        row_keys(r, b, row, start);
    for (int32_t j = b->dense; !a->values && j < b->count; j++)
        b->value[j] = (const uint8_t *)b->key[j];
    for (int32_t j = b->dense; a->values && j < b->count; j++) {
        int32_t slot = slot_of(a, row, start + j);
        b->value[j] = a->values + kv_value_at(a->format, slot, a->v_dim);
        b->value_d[j] = a->values + kv_value_d_at(a->format, slot, a->v_dim);
    }
}

/* The first group that has a position after the dense ones, of those from `start` on. */
static int32_t first_sparse_group(const pair_batch *r, int32_t start)
{
    const attention *a = r->a;
    int32_t least = INT32_MAX, prefix = max_i32(r->n_dense, start);
    for (int32_t row = r->first_row; row < r->last_row; row++) {
        if (a->n_prefix[row] > prefix)
            least = min_i32(least, prefix - a->base);
        for (int32_t i = 0; i < a->n_path[row]; i++)
            least = min_i32(least, a->path[row * a->path_ld + i]);
    }
    return least / KV_GROUP;
}

/* Softcaps scores [from, to) of the block of n pairs. */
static void cap_scores(const attention *a, float *p, int32_t n, int32_t from, int32_t to)
{
    for (int32_t i = 0; a->cap > 0 && from < to && i < n; i++)
        a->kernels->softcap(p + (int64_t)i * ATTEND_BLOCK + from, to - from, a->cap);
}

/* Scores of the batch's pairs with a block's dense positions. */
static void dense_scores(const attention *a, const attend_pairs *pairs, const attend_block *b)
{
    a->kernels->attend->scores(pairs, b);
    cap_scores(a, pairs->p, pairs->n, 0, b->dense);
}

/* Scores of the first block for positions before what a row sees weigh nothing. */
static void hide(const pair_batch *r, float *p, int32_t row, int32_t n_pairs)
{
    int32_t n_hidden = first_seen(r->a, row) % ATTEND_BLOCK;
    for (int32_t i = 0; i < n_pairs; i++, p += ATTEND_BLOCK)
        for (int32_t j = 0; j < n_hidden; j++)
            p[j] = -INFINITY;
}

/* The same for all rows, in a block that all see. */
static void hide_rows(const pair_batch *r)
{
    for (int32_t row = r->first_row; r->a->window != 0 && row < r->last_row; row++) {
        int32_t from, to = row_pairs(r, row, &from);
        hide(r, r->pairs.p + (int64_t)from * ATTEND_BLOCK, row, to - from);
    }
}

/* The batch's pairs over dense blocks [from, to); each knows what comes next. */
static void dense_blocks(pair_batch *r, int32_t from, int32_t to)
{
    const attention *a = r->a;
    for (int32_t i = from; i < to; i++) {
        attend_block b;
        whole_block(r, &b, i, i + 1 == to);
        dense_scores(a, &r->pairs, &b);
        if (i == r->first_block)
            hide_rows(r);
        a->kernels->attend->rest(&r->pairs, &b, i == r->first_block);
    }
}

/* Turns to the batch's pairs of a row. Returns the first of them. */
static int32_t take_row(pair_batch *r, const attend_pairs *all, int32_t row)
{
    int32_t from, to = row_pairs(r, row, &from);
    r->pairs.n = to - from;
    r->pairs.a = all->a + from;
    r->pairs.p = all->p + (int64_t)from * ATTEND_BLOCK;
    r->pairs.q_rows = queries_at(r, row, from);
    return from;
}

/* The rows' positions from `start` on, at most a block, whose first b->dense scores are there; into
 * m, l and a of `all`, as they are if it is the first there. All rows' scores come before what
 * reads them: whole vectors of what was just written in pieces would have to wait for it. */
static void sparse_block(pair_batch *r, const attend_pairs *all, attend_block *b, int32_t start,
                         bool first)
{
    const attention *a = r->a;
    for (int32_t row = r->first_row; row < r->last_row; row++) {
        take_row(r, all, row);
        b->count = min_i32(a->n_prefix[row] + a->n_path[row] - start, ATTEND_BLOCK);
        row_keys(r, b, row, start);
        if (b->count <= 0)
            continue;
        a->kernels->attend->row_scores(&r->pairs, b);
        cap_scores(a, r->pairs.p, r->pairs.n, b->dense, b->count);
    }
    for (int32_t row = r->first_row; row < r->last_row; row++) {
        int32_t from = take_row(r, all, row);
        b->count = min_i32(a->n_prefix[row] + a->n_path[row] - start, ATTEND_BLOCK);
        if (b->count <= 0)
            continue;
        row_values(r, b, row, start);
        size_t bytes = (size_t)r->pairs.n * sizeof(float);
        memcpy(r->row_m, all->m + from, bytes);
        memcpy(r->row_l, all->l + from, bytes);
        if (start == r->first_block * ATTEND_BLOCK)
            hide(r, r->pairs.p, row, r->pairs.n);
        a->kernels->attend->rest(&r->pairs, b, first);
        memcpy(all->m + from, r->row_m, bytes);
        memcpy(all->l + from, r->row_l, bytes);
    }
}

/* Turns to what is left of each row after the batch's dense blocks, from `start` on: scores of the
 * positions that are still dense. Returns how many positions there are. */
static int32_t tail_begin(pair_batch *r, const attend_pairs *all, attend_block *b, int32_t start)
{
    const attention *a = r->a;
    int32_t n_seen = 0;
    for (int32_t row = r->first_row; row < r->last_row; row++)
        n_seen = max_i32(n_seen, a->n_prefix[row] + a->n_path[row]);
    dense_block(r, b, start, max_i32(r->n_dense - start, 0));
    if (b->dense)
        dense_scores(a, all, b);
    r->first_group = first_sparse_group(r, start);
    r->pairs.m = r->row_m;
    r->pairs.l = r->row_l;
    return n_seen;
}

void attend_end(const attention *a, int32_t first, const attend_pairs *pairs)
{
    if (a->sinks) {
        float m[ATTEND_PAIRS + 16] = {0}, l[ATTEND_PAIRS + 16] = {0};
        for (int32_t i = 0; i < pairs->n; i++) {
            m[i] = a->sinks[a->group * a->n_q + (first + i) % a->n_q];
            l[i] = 1;
        }
        _Static_assert(ATTEND_WIDE_FLOATS(32) >= ATTEND_PAIRS * 32, "wide holds all pairs' sums");
        memset(pairs->wide, 0, (size_t)pairs->n * (size_t)a->v_dim * sizeof(float));
        a->kernels->attend->fold(pairs, m, l, pairs->wide);
    }
    a->kernels->attend->divide(pairs);
}

/* All of that, and the end. */
static void rest_of_rows(pair_batch *r)
{
    const attend_pairs all = r->pairs;
    int32_t start = max_i32(r->n_dense / ATTEND_BLOCK, r->first_block) * ATTEND_BLOCK;
    attend_block b;
    int32_t n_seen = tail_begin(r, &all, &b, start);
    for (; start < n_seen; start += ATTEND_BLOCK, b.dense = 0)
        sparse_block(r, &all, &b, start, start == r->first_block * ATTEND_BLOCK);
    attend_end(r->a, r->first, &all);
}

/* Loads the results that another call left for the batch's pairs. */
static void load_kept(const pair_batch *r)
{
    const attention *a = r->a;
    const float *m = a->kept + r->first, *l = m + (int64_t)a->n_rows * a->n_q;
    memcpy(r->pairs.m, m, (size_t)r->n * sizeof *m);
    memcpy(r->pairs.l, l, (size_t)r->n * sizeof *l);
}

static void keep(const pair_batch *r)
{
    const attention *a = r->a;
    float *m = a->kept + r->first, *l = m + (int64_t)a->n_rows * a->n_q;
    memcpy(m, r->pairs.m, (size_t)r->n * sizeof *m);
    memcpy(l, r->pairs.l, (size_t)r->n * sizeof *l);
}

void attend(const attention *a, int32_t first, int32_t last, void *scratch)
{
    assert(a->base % ATTEND_BLOCK == 0 && a->end % ATTEND_BLOCK == 0);
    if (a->more) {
        assert(a->base == 0 && a->end == 0);
        attend_reference(a, first, last, scratch);
        return;
    }
    for (int32_t n; first < last; first += n) {
        n = same_block(a, first, min_i32(last - first, ATTEND_PAIRS));
        pair_batch r = batch_make(a, first, n, scratch);
        int32_t begin = max_i32(r.first_block, a->base / ATTEND_BLOCK);
        if (a->end && begin >= a->end / ATTEND_BLOCK)
            continue; /* windows that begin after it */
        batch_pack(&r);
        if (begin > r.first_block)
            load_kept(&r);
        dense_blocks(&r, begin, (a->end ? a->end : r.n_dense) / ATTEND_BLOCK);
        if (a->end)
            keep(&r);
        else
            rest_of_rows(&r);
    }
}

/* ---- In partials: [m, l of the first range] [blocks: m, l, a [n][v_dim]] ----
 *
 * m and l are padded to whole vectors of pairs. */

int32_t attend_dense_blocks(const attention *a, int32_t first, int32_t last)
{
    int32_t n = INT32_MAX;
    for (int32_t row = first / a->n_q; row <= (last - 1) / a->n_q; row++)
        n = min_i32(n, a->n_prefix[row]);
    return n / ATTEND_BLOCK;
}

int32_t attend_tail_blocks(const attention *a, int32_t first, int32_t last)
{
    int32_t n = 0;
    for (int32_t row = first / a->n_q; row <= (last - 1) / a->n_q; row++)
        n = max_i32(n, a->n_prefix[row] + a->n_path[row]);
    return ceil_div_i32(n, ATTEND_BLOCK) - attend_dense_blocks(a, first, last);
}

/* Returns the length of m, or of l. */
static int32_t padded_pairs(int32_t n_pairs)
{
    return (n_pairs + 15) / 16 * 16;
}

static size_t part_floats(int32_t n_pairs, int32_t v_dim)
{
    return 2 * (size_t)padded_pairs(n_pairs) + (size_t)n_pairs * (size_t)v_dim;
}

size_t attend_partials_floats(int32_t n_pairs, int32_t v_dim, int32_t n_blocks)
{
    return 2 * (size_t)padded_pairs(n_pairs) + (size_t)n_blocks * part_floats(n_pairs, v_dim);
}

/* Returns the address of a block's results, counted from the first range's end. */
static float *part_at(const pair_batch *r, float *partials, int32_t block)
{
    return partials + attend_partials_floats(r->n, r->a->v_dim, block);
}

/* The next block's results go there. */
static void set_part(pair_batch *r, attend_pairs *pairs, float *part)
{
    const int32_t padded = padded_pairs(r->n);
    pairs->m = part;
    pairs->l = part + padded;
    for (int32_t i = 0; i < r->n; i++)
        r->sums[i] = part + 2 * padded + (int64_t)i * r->a->v_dim;
}

void attend_range(const attention *a, int32_t first, int32_t last, int32_t n_first_range,
                  int32_t from_block, int32_t to_block, float *partials, void *scratch)
{
    pair_batch r = batch_make(a, first, last - first, scratch);
    batch_pack(&r);
    if (from_block == 0) {
        dense_blocks(&r, 0, to_block);
        memcpy(partials, r.pairs.m, (size_t)r.n * sizeof(float));
        memcpy(partials + padded_pairs(r.n), r.pairs.l, (size_t)r.n * sizeof(float));
        return;
    }
    for (int32_t i = from_block; i < to_block; i++) {
        set_part(&r, &r.pairs, part_at(&r, partials, i - n_first_range));
        attend_block b;
        whole_block(&r, &b, i, i + 1 == to_block);
        dense_scores(a, &r.pairs, &b);
        a->kernels->attend->rest(&r.pairs, &b, true);
    }
}

void attend_tail(const attention *a, int32_t first, int32_t last, int32_t n_first_range,
                 float *partials, void *scratch)
{
    pair_batch r = batch_make(a, first, last - first, scratch);
    batch_pack(&r);
    attend_pairs all = r.pairs;
    int32_t block = r.n_dense / ATTEND_BLOCK, start = block * ATTEND_BLOCK;
    attend_block b;
    int32_t n_seen = tail_begin(&r, &all, &b, start);
    for (; start < n_seen; start += ATTEND_BLOCK, b.dense = 0, block++) {
        set_part(&r, &all, part_at(&r, partials, block - n_first_range));
        sparse_block(&r, &all, &b, start, true);
    }
}

/* A block of the tail is folded into those rows that see some of it. */
static void fold_tail(pair_batch *r, const attend_pairs *all, int32_t block, const float *part)
{
    const attention *a = r->a;
    for (int32_t row = r->first_row; row < r->last_row; row++) {
        if (a->n_prefix[row] + a->n_path[row] <= block * ATTEND_BLOCK)
            continue;
        int32_t from = take_row(r, all, row);
        size_t bytes = (size_t)r->pairs.n * sizeof(float);
        const float *m = part + from, *l = m + padded_pairs(r->n);
        memcpy(r->row_m, all->m + from, bytes);
        memcpy(r->row_l, all->l + from, bytes);
        a->kernels->attend->fold(&r->pairs, m, l,
                                 part + 2 * padded_pairs(r->n) + (int64_t)from * a->v_dim);
        memcpy(all->m + from, r->row_m, bytes);
        memcpy(all->l + from, r->row_l, bytes);
    }
}

void attend_finish(const attention *a, int32_t first, int32_t last, int32_t n_first_range,
                   bool has_tail, float *partials, void *scratch)
{
    pair_batch r = batch_make(a, first, last - first, scratch);
    const int32_t padded = padded_pairs(r.n);
    batch_pack(&r);
    memcpy(r.pairs.m, partials, (size_t)r.n * sizeof(float));
    memcpy(r.pairs.l, partials + padded, (size_t)r.n * sizeof(float));
    int32_t i = n_first_range, n_blocks = r.n_dense / ATTEND_BLOCK;
    for (; i < n_blocks; i++) {
        const float *part = part_at(&r, partials, i - n_first_range);
        a->kernels->attend->fold(&r.pairs, part, part + padded, part + 2 * padded);
    }
    if (!has_tail) {
        rest_of_rows(&r);
        return;
    }
    const attend_pairs all = r.pairs;
    r.pairs.m = r.row_m;
    r.pairs.l = r.row_l;
    for (n_blocks += attend_tail_blocks(a, first, last); i < n_blocks; i++)
        fold_tail(&r, &all, i, part_at(&r, partials, i - n_first_range));
    attend_end(a, first, &all);
}

/* ---- Rows of the cache ---- */

/* Copies a key between places of groups. */
static void copy_key(kv_format format, uint8_t *to_group, int32_t to, const uint8_t *from_group,
                     int32_t from, int32_t dim)
{
    size_t size = kv_number_bytes(format);
    for (int32_t i = 0; i < dim; i++)
        memcpy(to_group + (size_t)(i * KV_GROUP + to) * size,
               from_group + (size_t)(i * KV_GROUP + from) * size, size);
    if (format != KV_Q8_0)
        return;
    to_group += kv_group_numbers(format, dim);
    from_group += kv_group_numbers(format, dim);
    for (int32_t i = 0; i < dim / KV_Q8_BLOCK; i++)
        memcpy(to_group + (i * KV_GROUP + to) * 2, from_group + (i * KV_GROUP + from) * 2, 2);
}

/* Quantises a row to q8_0: q[dim], d[dim / 32] as f16. */
static void to_q8(const kernel_table *kernels, int8_t *q, uint16_t *d, const float *x, int32_t dim,
                  void *scratch)
{
    uint8_t *acts = scratch;
    kernels->quantise[ACT_Q8_32](acts, x, dim, 0, 1, 1, dim);
    for (int32_t i = 0; i < dim / KV_Q8_BLOCK; i++, acts += ACT_Q8_32_BYTES) {
        float scale = load_f32(acts + ACT_32_D);
        d[i] = f32_to_f16(scale < 65504.0f ? scale : 65504.0f);
        memcpy(q + i * KV_Q8_BLOCK, acts, KV_Q8_BLOCK);
    }
}

/* A row as the cache keeps it, numbers then scales, in scratch. */
static const uint8_t *convert(const kernel_table *kernels, kv_format format, const float *x,
                              int32_t dim, void *scratch)
{
    uint8_t *to = scratch;
    if (format == KV_F32)
        return (const uint8_t *)x;
    if (format == KV_F16)
        kernels->to_f16(scratch, x, dim);
    else
        to_q8(kernels, scratch, (uint16_t *)(void *)(to + dim), x, dim,
              to + 64 * (size_t)(dim / 16 + 1));
    return to;
}

void kv_store_key(const kernel_table *kernels, kv_format format, uint8_t *keys, int32_t slot,
                  const float *x, int32_t dim, void *scratch)
{
    const uint8_t *row = convert(kernels, format, x, dim, scratch);
    size_t size = kv_number_bytes(format);
    uint8_t *group = keys + (size_t)(slot / KV_GROUP) * kv_group_bytes(format, dim);
    uint8_t *to = group + (size_t)(slot % KV_GROUP) * size;
    for (int32_t lane = 0; lane < SUM_LANES; lane++)
        for (int32_t i = attend_lane_order[lane]; i < dim; i += SUM_LANES) {
            memcpy(to, row + (size_t)i * size, size);
            to += KV_GROUP * size;
        }
    group += kv_group_numbers(format, dim) + 2 * (size_t)(slot % KV_GROUP);
    for (int32_t i = 0; format == KV_Q8_0 && i < dim / KV_Q8_BLOCK; i++)
        memcpy(group + 2 * i * KV_GROUP, row + dim + 2 * i, 2);
}

void kv_store_value(const kernel_table *kernels, kv_format format, uint8_t *values, int32_t slot,
                    const float *x, int32_t dim, void *scratch)
{
    const uint8_t *row = convert(kernels, format, x, dim, scratch);
    size_t bytes = (size_t)dim * kv_number_bytes(format);
    memcpy(values + kv_value_at(format, slot, dim), row, bytes);
    if (format == KV_Q8_0)
        memcpy(values + kv_value_d_at(format, slot, dim), row + bytes,
               (size_t)(dim / KV_Q8_BLOCK) * 2);
}

void kv_move_key(kv_format format, uint8_t *keys, int32_t to, int32_t from, int32_t dim)
{
    size_t bytes = kv_group_bytes(format, dim);
    copy_key(format, keys + (size_t)(to / KV_GROUP) * bytes, to % KV_GROUP,
             keys + (size_t)(from / KV_GROUP) * bytes, from % KV_GROUP, dim);
}

void kv_move_value(kv_format format, uint8_t *values, int32_t to, int32_t from, int32_t dim)
{
    memcpy(values + kv_value_at(format, to, dim), values + kv_value_at(format, from, dim),
           (size_t)dim * kv_number_bytes(format));
    if (format == KV_Q8_0)
        memcpy(values + kv_value_d_at(format, to, dim), values + kv_value_d_at(format, from, dim),
               (size_t)(dim / KV_Q8_BLOCK) * 2);
}
