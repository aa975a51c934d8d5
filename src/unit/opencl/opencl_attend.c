/* Attention on an OpenCL device: keys and values that are lent to it, and the pieces that it
 * computes.
 *
 * The arguments of the kernels of attend.cl and q go through io.acts, all results through io.y, as
 * much at a time as fits. Pieces that fold have their sums at the beginning of y until the last one
 * is complete; the blocks' results of the others are fetched when they are ready.
 *
 *   acts | words of the pieces | q of all pieces               |
 *   y    | m, l, m, l, a of all that fold | scores | blocks: m, l, a | scores | blocks ... | */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "common/size_text.h"
#include "unit/opencl/check_attention.h"
#include "unit/opencl/device_source.h"
#include "unit/opencl/opencl_device.h"

/* attend.cl's PIECE_... */
typedef struct piece_words {
    uint64_t keys, values, q, n_pairs, n_blocks, scores, parts, folds, first, from, to, sums;
} piece_words;

enum {
    WORDS_BYTES = DEVICE_PIECES * sizeof(piece_words),
    PAIRS_OF_ITEM = 4,
    LOCAL_ITEMS = 64,
    MOST_BLOCKS = 1000 /* pairs of a piece at a time: CUDA counts groups of items in 16 bits */
};

/* Returns the floats of m and l, for pieces that fold: twice, as one is read while the other is
 * written. */
static size_t header_floats(const device_piece *p)
{
    return attend_partials_floats(p->last - p->first, p->a.k_dim, 0);
}

static size_t part_floats(const device_piece *p)
{
    return attend_partials_floats(p->last - p->first, p->a.k_dim, 1) - header_floats(p);
}

static size_t sums_floats(const device_piece *p)
{
    return (size_t)(p->last - p->first) * (size_t)p->a.k_dim;
}

/* Returns the floats that a piece that folds has at the beginning of y: at most m and l of 96 pairs
 * twice, and its a. */
static size_t front_floats(const device_piece *p)
{
    return p->from > 0 ? 0 : 2 * header_floats(p) + sums_floats(p);
}

enum { FRONT_FLOATS = DEVICE_PIECE_FLOATS + DEVICE_PIECES * 4 * (ATTEND_SPLIT_PAIRS + 16) };
enum { STAGING_BYTES = WORDS_BYTES + FRONT_FLOATS * sizeof(float) };

size_t opencl_attend_bytes(void)
{
    return STAGING_BYTES;
}

/* ---- Loans ---- */

static drey_status part_map(opencl_unit *u, const opencl_loan *loan, int32_t part, drey_error *err)
{
    int32_t code;
    TRY(opencl_event_room(u, err));
    u->api.EnqueueMapBuffer(u->queue, loan->buffer, 0, OPENCL_MAP_READ | OPENCL_MAP_WRITE,
                            loan->at + (size_t)part * loan->part_bytes, loan->part_bytes, 0, NULL,
                            &u->event[u->n_events], &code);
    TRY_CL("EnqueueMapBuffer", code);
    u->n_events++;
    return DREY_OK;
}

static drey_status part_unmap(opencl_unit *u, const opencl_loan *loan, int32_t part,
                              drey_error *err)
{
    TRY(opencl_event_room(u, err));
    TRY_CL("EnqueueUnmapMemObject",
           u->api.EnqueueUnmapMemObject(u->queue, loan->buffer,
                                        loan->memory + (size_t)part * loan->part_bytes, 0, NULL,
                                        &u->event[u->n_events]));
    u->n_events++;
    return DREY_OK;
}

static drey_status loan_map(opencl_unit *u, opencl_loan *loan, drey_error *err)
{
    for (; loan->n_mapped < loan->n_parts; loan->n_mapped++)
        TRY(part_map(u, loan, loan->n_mapped, err));
    return opencl_finish(u, err);
}

/* Errors here have been reported before. */
static void loan_release(opencl_unit *u, opencl_loan *loan)
{
    while (loan->n_mapped > 0 && part_unmap(u, loan, loan->n_mapped - 1, NULL) == DREY_OK)
        loan->n_mapped--;
    opencl_finish(u, NULL);
    if (loan->buffer)
        u->api.ReleaseMemObject(loan->buffer);
    *loan = u->loan[--u->n_loans];
}

drey_status opencl_lend(device *d, const void *memory, size_t part_bytes, int32_t n_parts,
                        drey_error *err)
{
    opencl_unit *u = (opencl_unit *)d;
    const uintptr_t address = (uintptr_t)memory;
    const size_t at = address % OPENCL_PAGE_BYTES, bytes = part_bytes * (size_t)n_parts + at;
    opencl_loan *loans = realloc(u->loan, (size_t)(u->n_loans + 1) * sizeof *loans);
    if (!loans)
        FAIL(err, DREY_ERR_MEMORY, "no memory for what is lent to %s", u->name);
    u->loan = loans;
    if (bytes > u->most_bytes)
        FAIL(err, DREY_ERR_UNSUPPORTED, "a cache of %s is too large for %s", SIZE_TEXT(bytes),
             u->name);
    int32_t code;
    opencl_loan *loan = &loans[u->n_loans++];
    *loan = (opencl_loan){
        .memory = (uint8_t *)address, .at = at, .part_bytes = part_bytes, .n_parts = n_parts};
    loan->buffer = u->api.CreateBuffer(u->context, OPENCL_MEM_READ_ONLY | OPENCL_MEM_USE_HOST_PTR,
                                       bytes, (void *)(address - at), &code);
    drey_status status = code == OPENCL_SUCCESS ? loan_map(u, loan, err)
                                                : opencl_failed(u, "CreateBuffer", code, err);
    if (status != DREY_OK)
        loan_release(u, loan);
    return status;
}

void opencl_take_back(device *d, const void *memory)
{
    opencl_unit *u = (opencl_unit *)d;
    for (int32_t i = u->n_loans - 1; i >= 0; i--)
        if (u->loan[i].memory == memory)
            loan_release(u, &u->loan[i]);
}

static opencl_loan *loan_of(opencl_unit *u, const uint8_t *at)
{
    for (int32_t i = 0; i < u->n_loans; i++) {
        opencl_loan *loan = &u->loan[i];
        if (at >= loan->memory && at < loan->memory + (size_t)loan->n_parts * loan->part_bytes)
            return loan;
    }
    return NULL;
}

/* ---- Pieces ---- */

/* The state of a call. */
typedef struct attending {
    opencl_unit *u;
    const device_piece *piece;
    int32_t n;
    const opencl_loan *keys, *values;
    size_t q[DEVICE_PIECES];     /* position of a piece's q in acts, in floats, */
    size_t front[DEVICE_PIECES]; /* and its front in y */
    bool flip[DEVICE_PIECES];    /* m and l are in the second of two places */
    size_t front_floats;
    int32_t at, block; /* the next piece, and its block */
    /* Counts over the pieces that are computed together: */
    int32_t n_words, most_pairs, most_blocks;
    bool folds;
    int32_t who[DEVICE_PIECES]; /* their pieces, */
    int32_t from[DEVICE_PIECES];
} attending;

static piece_words *words_of(const attending *x)
{
    return (piece_words *)(void *)x->u->staging;
}

/* Lays out q, and the fronts of the pieces that fold. */
static size_t q_pack(attending *x)
{
    float *q = (float *)(void *)(x->u->staging + WORDS_BYTES), *to = q;
    for (int32_t i = 0; i < x->n; i++) {
        const device_piece *p = &x->piece[i];
        x->q[i] = WORDS_BYTES / sizeof(float) + (size_t)(to - q);
        x->front[i] = x->front_floats;
        x->front_floats += front_floats(p);
        for (int32_t pair = p->first; pair < p->last; pair++, to += p->a.k_dim)
            memcpy(to,
                   p->a.q + pair / p->a.n_q * p->a.q_ld + (int64_t)(pair % p->a.n_q) * p->a.k_dim,
                   (size_t)p->a.k_dim * sizeof *to);
    }
    assert(to - q <= DEVICE_PIECE_FLOATS && x->front_floats <= FRONT_FLOATS);
    return (size_t)(to - q) * sizeof *q;
}

/* Blocks [from, from + n) of a piece are among those that are computed next, and have their scores
 * at `at`. */
static void words_add(attending *x, int32_t from, int32_t n, size_t at)
{
    const int32_t i = x->at, n_pairs = x->piece[i].last - x->piece[i].first;
    const device_piece *p = &x->piece[i];
    const size_t block_bytes = kv_head_bytes(p->a.format, ATTEND_BLOCK, p->a.k_dim),
                 header = header_floats(p);
    words_of(x)[x->n_words] = (piece_words){
        .keys = x->keys->at + (size_t)(p->a.keys - x->keys->memory) + (size_t)from * block_bytes,
        .values =
            x->values->at + (size_t)(p->a.values - x->values->memory) + (size_t)from * block_bytes,
        .q = x->q[i],
        .n_pairs = (uint64_t)n_pairs,
        .n_blocks = (uint64_t)n,
        .scores = at,
        .parts = at + (size_t)n * (size_t)n_pairs * ATTEND_BLOCK,
        .folds = p->from == 0,
        .first = from == 0,
        .from = x->front[i] + (x->flip[i] ? header : 0),
        .to = x->front[i] + (x->flip[i] ? 0 : header),
        .sums = x->front[i] + 2 * header};
    x->flip[i] ^= p->from == 0;
    x->folds = x->folds || p->from == 0;
    x->who[x->n_words] = i;
    x->from[x->n_words++] = from;
    x->most_pairs = max_i32(x->most_pairs, n_pairs);
    x->most_blocks = max_i32(x->most_blocks, n);
}

/* Takes as much as y has room for. */
static void words_fill(attending *x)
{
    const size_t room = OPENCL_PART_BYTES / sizeof(float);
    size_t at = x->front_floats;
    x->n_words = x->most_pairs = x->most_blocks = 0;
    x->folds = false;
    while (x->at < x->n) {
        const device_piece *p = &x->piece[x->at];
        const size_t each = (size_t)(p->last - p->first) * ATTEND_BLOCK + part_floats(p);
        const int32_t left = p->to - x->block,
                      n = min_i32((int32_t)min_size((room - at) / each, MOST_BLOCKS), left);
        if (n == 0)
            return;
        words_add(x, x->block, n, at);
        at += (size_t)n * each;
        x->block += n;
        if (n < left)
            return;
        if (++x->at < x->n)
            x->block = x->piece[x->at].from;
    }
}

typedef struct step_argument {
    size_t bytes;
    const void *value;
} step_argument;

static drey_status step_launch(opencl_unit *u, cl_kernel kernel, const step_argument *argument,
                               uint32_t n, size_t local, size_t global, int32_t n_others,
                               drey_error *err)
{
    const size_t locals[2] = {local, 1},
                 globals[2] = {(global + local - 1) / local * local, (size_t)n_others};
    for (uint32_t i = 0; i < n; i++)
        TRY_CL("SetKernelArg",
               u->api.SetKernelArg(kernel, i, argument[i].bytes, argument[i].value));
    TRY(opencl_event_room(u, err));
    TRY_CL("EnqueueNDRangeKernel",
           u->api.EnqueueNDRangeKernel(u->queue, kernel, 2, NULL, globals, locals, 0, NULL,
                                       &u->event[u->n_events]));
    u->n_events++;
    return DREY_OK;
}

/* Items of a group that go over a head's dimensions, a power of two. */
static size_t items_of(const opencl_unit *u, uint32_t dim)
{
    return min_size(dim & (~dim + 1), LOCAL_ITEMS) / u->items.lanes;
}

static drey_status steps_launch(attending *x, drey_error *err)
{
    opencl_unit *u = x->u;
    const attention *a = &x->piece[0].a;
    const uint32_t dim = (uint32_t)a->k_dim, blocks = (uint32_t)x->most_blocks,
                   pairs = (uint32_t)x->most_pairs,
                   tiles = (pairs + PAIRS_OF_ITEM - 1) / PAIRS_OF_ITEM,
                   group_bytes = (uint32_t)kv_head_bytes(a->format, KV_GROUP, a->k_dim);
    const step_argument words = {sizeof u->io.acts, &u->io.acts}, y = {sizeof u->io.y, &u->io.y},
                        n_dim = {sizeof dim, &dim}, n_tiles = {sizeof tiles, &tiles},
                        group = {sizeof group_bytes, &group_bytes};
    const step_argument scores[] = {words, {sizeof(cl_buffer), &x->keys->buffer}, y, n_tiles, n_dim,
                                    group, {sizeof a->scale, &a->scale}};
    const step_argument weigh[] = {words, y, {sizeof blocks, &blocks}, n_dim};
    const step_argument values[] = {
        words, {sizeof(cl_buffer), &x->values->buffer}, y, n_tiles, n_dim, group};
    const step_argument fold[] = {words, y, {sizeof pairs, &pairs}, n_dim};
    const size_t items = items_of(u, dim), of_head = dim / u->items.lanes;
    TRY(step_launch(u, u->step[STEP_SCORES][a->format], scores, 7, LOCAL_ITEMS / u->items.lanes,
                    (size_t)blocks * (ATTEND_BLOCK / u->items.lanes), x->n_words * (int32_t)tiles,
                    err));
    TRY(step_launch(u, u->step[STEP_WEIGH][0], weigh, 4, SUM_LANES, pairs,
                    x->n_words * x->most_blocks, err));
    TRY(step_launch(u, u->step[STEP_VALUES][a->format], values, 6, items, (size_t)blocks * of_head,
                    x->n_words * (int32_t)tiles, err));
    if (!x->folds)
        return DREY_OK;
    return step_launch(u, u->step[STEP_FOLD][0], fold, 4, items, of_head,
                       x->n_words * x->most_pairs, err);
}

/* `at`: in floats of y. */
static drey_status results_read(opencl_unit *u, size_t at, float *to, size_t n, drey_error *err)
{
    TRY(opencl_event_room(u, err));
    TRY_CL("EnqueueReadBuffer",
           u->api.EnqueueReadBuffer(u->queue, u->io.y, 0, at * sizeof(float), n * sizeof(float), to,
                                    0, NULL, &u->event[u->n_events]));
    u->n_events++;
    return DREY_OK;
}

static drey_status words_run(attending *x, drey_error *err)
{
    opencl_unit *u = x->u;
    TRY(opencl_event_room(u, err));
    TRY_CL("EnqueueWriteBuffer",
           u->api.EnqueueWriteBuffer(u->queue, u->io.acts, 0, 0,
                                     (size_t)x->n_words * sizeof(piece_words), u->staging, 0, NULL,
                                     &u->event[u->n_events]));
    u->n_events++;
    TRY(steps_launch(x, err));
    for (int32_t i = 0; i < x->n_words; i++) {
        const device_piece *p = &x->piece[x->who[i]];
        const piece_words *w = &words_of(x)[i];
        if (p->from > 0)
            TRY(results_read(u, w->parts,
                             p->partials + header_floats(p) +
                                 (size_t)(x->from[i] - p->n_first_range) * part_floats(p),
                             w->n_blocks * part_floats(p), err));
    }
    return opencl_finish(u, err); /* words and y are written again */
}

/* Copies the fronts from where they arrived to where they belong. */
static void fronts_unpack(const attending *x)
{
    const float *fronts = (const float *)(void *)(x->u->staging + WORDS_BYTES);
    for (int32_t i = 0; i < x->n; i++) {
        const device_piece *p = &x->piece[i];
        const float *front = fronts + x->front[i], *sums = front + 2 * header_floats(p);
        if (p->from > 0)
            continue;
        memcpy(p->partials, front + (x->flip[i] ? header_floats(p) : 0),
               header_floats(p) * sizeof *front);
        for (int32_t pair = p->first; pair < p->last; pair++, sums += p->a.k_dim)
            memcpy(p->a.out + pair / p->a.n_q * p->a.out_ld +
                       (int64_t)(pair % p->a.n_q) * p->a.k_dim,
                   sums, (size_t)p->a.k_dim * sizeof *sums);
    }
}

static drey_status attend_all(attending *x, drey_error *err)
{
    opencl_unit *u = x->u;
    const size_t q_bytes = q_pack(x);
    TRY(opencl_event_room(u, err));
    TRY_CL("EnqueueWriteBuffer",
           u->api.EnqueueWriteBuffer(u->queue, u->io.acts, 0, WORDS_BYTES, q_bytes,
                                     u->staging + WORDS_BYTES, 0, NULL, &u->event[u->n_events]));
    u->n_events++;
    x->block = x->piece[0].from;
    while (x->at < x->n) {
        words_fill(x);
        TRY(words_run(x, err));
    }
    if (x->front_floats == 0)
        return DREY_OK;
    TRY(results_read(u, 0, (float *)(void *)(u->staging + WORDS_BYTES), x->front_floats, err));
    TRY(opencl_finish(u, err));
    fronts_unpack(x);
    return DREY_OK;
}

static drey_status attend_unmapped(attending *x, int32_t key_part, int32_t value_part,
                                   drey_error *err)
{
    TRY(part_unmap(x->u, x->keys, key_part, err));
    TRY(part_unmap(x->u, x->values, value_part, err));
    TRY(attend_all(x, err));
    TRY(part_map(x->u, x->keys, key_part, err));
    return part_map(x->u, x->values, value_part, err);
}

drey_status opencl_attend(device *d, const device_piece *piece, int32_t n, drey_error *err)
{
    opencl_unit *u = (opencl_unit *)d;
    opencl_loan *keys = loan_of(u, piece[0].a.keys), *values = loan_of(u, piece[0].a.values);
    assert(keys && values && n <= DEVICE_PIECES);
    const int32_t key_part = (int32_t)((size_t)(piece[0].a.keys - keys->memory) / keys->part_bytes);
    const int32_t value_part =
        (int32_t)((size_t)(piece[0].a.values - values->memory) / values->part_bytes);
    attending x = {.u = u, .piece = piece, .n = n, .keys = keys, .values = values};
    u->io.acts_there = NULL;
    /* The processor has written them, and only reads them while the device reads them. */
    drey_status status = attend_unmapped(&x, key_part, value_part, err);
    if (status == DREY_OK)
        return opencl_finish(u, err);
    opencl_finish(u, NULL); /* nothing is written after an error */
    return status;
}

/* ---- Opening ---- */

static drey_status check_run(void *user, const check_pieces *p, drey_error *err)
{
    opencl_unit *u = user;
    TRY(opencl_lend(&u->device, p->keys, p->bytes, 1, err));
    drey_status status = opencl_lend(&u->device, p->values, p->bytes, 1, err);
    if (status == DREY_OK)
        status = opencl_attend(&u->device, p->piece, p->n, err);
    opencl_take_back(&u->device, p->values);
    opencl_take_back(&u->device, p->keys);
    return status;
}

static drey_status kernels_make(opencl_unit *u, drey_error *err)
{
    static const struct {
        opencl_step step;
        int32_t format;
        const char *name;
    } kernels[] = {{STEP_SCORES, KV_F16, "scores_f16"},
                   {STEP_SCORES, KV_Q8_0, "scores_q8_0"},
                   {STEP_SCORES, KV_F32, "scores_f32"},
                   {STEP_VALUES, KV_F16, "values_f16"},
                   {STEP_VALUES, KV_Q8_0, "values_q8_0"},
                   {STEP_VALUES, KV_F32, "values_f32"},
                   {STEP_WEIGH, 0, "weigh"},
                   {STEP_FOLD, 0, "fold"}};
    TRY(opencl_build_program(u, attend_source, attend_source_bytes, 1, &u->attend_program, err));
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        int32_t code;
        u->step[kernels[i].step][kernels[i].format] =
            u->api.CreateKernel(u->attend_program, kernels[i].name, &code);
        TRY_CL("CreateKernel", code);
    }
    u->staging = aligned_alloc(64, (STAGING_BYTES + 63) / 64 * 64);
    if (!u->staging)
        FAIL(err, DREY_ERR_MEMORY, "no memory for what goes to %s and comes back", u->name);
    return DREY_OK;
}

void opencl_learn_attention(opencl_unit *u)
{
    drey_error err = {0};
    if (!u->shares_memory) {
        snprintf(u->no_attention, sizeof u->no_attention,
                 "%s does not share the processor's memory, where keys and values are written",
                 u->name);
        return;
    }
    drey_status status = kernels_make(u, &err);
    if (status == DREY_OK)
        status = check_attention(check_run, u, u->name, &err);
    if (status != DREY_OK)
        snprintf(u->no_attention, sizeof u->no_attention, "%s", err.message);
}

void opencl_attend_close(opencl_unit *u)
{
    while (u->n_loans > 0)
        loan_release(u, &u->loan[u->n_loans - 1]);
    for (int step = 0; step < STEPS; step++)
        for (int format = 0; format < KV_FORMATS; format++)
            if (u->step[step][format])
                u->api.ReleaseKernel(u->step[step][format]);
    if (u->attend_program)
        u->api.ReleaseProgram(u->attend_program);
    free(u->loan);
    free(u->staging);
}
