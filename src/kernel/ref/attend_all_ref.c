/* Attention with all that its contract has (kernel.h), a pair at a time with the tier's block
 * kernel: what every tier does where there is a bias or a second cache. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/num.h"
#include "kernel/attend.h"

/* A row and one of its query heads, and buffers for a block. */
typedef struct lone_pair {
    const attention *a;
    int32_t row, head;
    attend_pairs pairs;
    const attend_kernel *block;
    float *out, *keys, *turned; /* [v_dim]; rows of keys: [ATTEND_BLOCK], [KV_GROUP] */
    bool begun;                 /* a block has been folded */
} lone_pair;

/* A run of positions as they are in one of the two caches. */
typedef struct positions {
    const uint8_t *keys, *values;
    int32_t n;           /* the row sees 0 .. n - 1, */
    int32_t first;       /* but those in front of this one */
    int32_t at;          /* the row's index among them, */
    bool has_bias;       /* if that matters */
    int32_t n_prefix;    /* so many are in the slots of their numbers, */
    const int32_t *path; /* the others in these */
} positions;

static lone_pair pair_make(const attention *a, int32_t pair, void *scratch)
{
    lone_pair p = {
        .a = a, .row = pair / a->n_q, .head = pair % a->n_q, .block = a->kernels->attend};
    float *buffer = scratch;
    p.out = a->out + p.row * a->out_ld + (int64_t)p.head * a->v_dim;
    p.pairs = (attend_pairs){.n = 1,
                             .k_dim = a->k_dim,
                             .v_dim = a->v_dim,
                             .scale = a->scale,
                             .q_rows = a->q + p.row * a->q_ld + (int64_t)p.head * a->k_dim,
                             .p = buffer};
    p.pairs.m = p.pairs.p + ATTEND_BLOCK;
    p.pairs.l = p.pairs.m + 16;
    p.pairs.c = p.pairs.l + 16;
    p.pairs.wide = p.pairs.c + 3 * (size_t)ATTEND_PAIRS;
    p.keys = p.pairs.wide + ATTEND_WIDE_FLOATS(max_i32(a->k_dim, a->v_dim));
    p.turned = p.keys + ATTEND_BLOCK * (size_t)attend_row_floats(a->k_dim);
    return p;
}

static void take_positions(const lone_pair *p, const positions *of, attend_block *b, int32_t start)
{
    const attention *a = p->a;
    size_t row = (size_t)attend_row_floats(a->k_dim);
    b->format = a->format;
    b->value_format = a->values ? a->format : KV_F32;
    b->dense = 0;
    b->count = min_i32(of->n - start, ATTEND_BLOCK);
    b->ahead_keys = b->ahead_values = NULL;
    b->key_bytes = b->value_bytes = 0;
    int32_t turned = -1; /* the group whose rows are at hand: neighbours share one */
    for (int32_t j = 0; j < b->count; j++) {
        int32_t position = start + j, on_path = position - of->n_prefix;
        int32_t slot = on_path < 0 ? position : of->path[on_path];
        size_t group = (size_t)(slot / KV_GROUP) * kv_group_bytes(a->format, a->k_dim);
        if (slot / KV_GROUP != turned)
            p->block->turn(p->turned, of->keys + group, a->format, a->k_dim);
        turned = slot / KV_GROUP;
        b->key[j] = memcpy(p->keys + (size_t)j * row, p->turned + (size_t)(slot % KV_GROUP) * row,
                           row * sizeof(float));
        b->value[j] = (const uint8_t *)b->key[j];
        if (!a->values)
            continue;
        b->value[j] = of->values + kv_value_at(a->format, slot, a->v_dim);
        b->value_d[j] = of->values + kv_value_d_at(a->format, slot, a->v_dim);
    }
}

static float bias_of(const attend_bias *bias, int32_t head, int32_t distance)
{
    int32_t d = min_i32(max_i32(distance, -bias->n_after), bias->n_before);
    return bias->of[head * bias->ld + bias->n_after + d];
}

static void fold_positions(lone_pair *p, const positions *of)
{
    const attention *a = p->a;
    int32_t start = of->first / ATTEND_BLOCK * ATTEND_BLOCK;
    for (; start < of->n; start += ATTEND_BLOCK) {
        attend_block b;
        float *s = p->pairs.p;
        take_positions(p, of, &b, start);
        p->block->row_scores(&p->pairs, &b);
        if (a->cap > 0)
            a->kernels->softcap(s, b.count, a->cap);
        for (int32_t j = 0; of->has_bias && j < b.count; j++)
            s[j] += bias_of(&a->more->bias, a->group * a->n_q + p->head, of->at - (start + j));
        for (int32_t j = 0; j < of->first - start && j < b.count; j++)
            s[j] = -INFINITY;
        p->block->rest(&p->pairs, &b, !p->begun);
        p->begun = true;
    }
}

void attend_reference(const attention *a, int32_t first, int32_t last, void *scratch)
{
    const attend_fixed *f = &a->more->fixed;
    for (; first < last; first++) {
        lone_pair p = pair_make(a, first, scratch);
        int32_t n = a->n_prefix[p.row] + a->n_path[p.row];
        positions fixed = {.n = f->n, .n_prefix = f->n};
        if (f->n > 0) {
            fixed.keys = f->keys + (size_t)a->group * f->key_bytes;
            fixed.values = a->values ? f->values + (size_t)a->group * f->value_bytes : NULL;
            fixed.has_bias = a->more->bias.of != NULL && f->at != NULL;
            fixed.at = f->at ? f->at[p.row] : 0;
        }
        positions own = {.keys = a->keys,
                         .values = a->values,
                         .n = n,
                         .first = attend_first_seen(a->window, n),
                         .at = n - 1,
                         .has_bias = a->more->bias.of != NULL,
                         .n_prefix = a->n_prefix[p.row],
                         .path = a->path ? a->path + p.row * a->path_ld : NULL};
        p.pairs.a = &p.out;
        fold_positions(&p, &fixed);
        fold_positions(&p, &own);
        assert(p.begun);
        attend_end(a, first, &p.pairs);
    }
}
