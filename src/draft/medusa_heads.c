/* Files of Medusa heads, and their products: see medusa_heads.h. */
#include "draft/medusa_heads.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "draft/drafter.h"
#include "drey/tune.h"
#include "model/arch.h"
#include "model/workspace.h"
#include "os/pool.h"
#include "weights/gather_rows.h"
#include "weights/identity.h"
#include "weights/product.h"
#include "weights/weights.h"

#define KEY(name) MEDUSA_ARCHITECTURE "." name

static const char bias_name[] = "blocks.bias";

static bool holds_heads(const gguf *g)
{
    return gguf_is_text(gguf_text(g, "general.architecture"), MEDUSA_ARCHITECTURE);
}

bool drey_is_heads_file(const char *path)
{
    gguf *g;
    if (gguf_open(&g, path, NULL) != DREY_OK)
        return false;
    bool is_one = holds_heads(g);
    gguf_close(&g);
    return is_one;
}

/* ---- The file ---- */

static drey_status read_accuracy(medusa_shape *s, const gguf *g, drey_error *err)
{
    const gguf_key *key = gguf_find_key(g, KEY("accuracy"));
    if (!key || key->kind != GGUF_ARRAY || key->item_kind != GGUF_F32 ||
        key->n_items != (uint64_t)s->n_heads * MEDUSA_RANKS)
        FAIL(err, DREY_ERR_FORMAT, "%s has to be a row of %d numbers for each head",
             KEY("accuracy"), MEDUSA_RANKS);
    for (int32_t i = 0; i < s->n_heads * MEDUSA_RANKS; i++) {
        double a = gguf_item_number(key, (uint64_t)i);
        if (!(a >= 0 && a <= 1))
            FAIL(err, DREY_ERR_FORMAT, "%s holds a number that is no share", KEY("accuracy"));
        s->accuracy[i / MEDUSA_RANKS][i % MEDUSA_RANKS] = (float)a;
    }
    return DREY_OK;
}

static const gguf_key *find_ids(const gguf *g)
{
    return gguf_find_key(g, KEY("tokens"));
}

static drey_status read_ids(medusa_shape *s, const gguf *g, int32_t n_vocab, drey_error *err)
{
    const gguf_key *key = find_ids(g);
    int64_t last = -1;
    if (!key || key->kind != GGUF_ARRAY || key->item_kind != GGUF_U32 || key->n_items < 1)
        FAIL(err, DREY_ERR_FORMAT, "%s has to be a list of token ids", KEY("tokens"));
    for (uint64_t i = 0; i < key->n_items; i++) {
        int64_t id = gguf_item_int(key, i);
        if (id >= n_vocab)
            FAIL(err, DREY_ERR_MISMATCH,
                 "these heads guess token %lld, and the model has %d; train others", (long long)id,
                 n_vocab);
        if (id <= last)
            FAIL(err, DREY_ERR_FORMAT, "%s is no rising list of token ids", KEY("tokens"));
        last = id;
    }
    s->n_ids = (int32_t)key->n_items;
    return DREY_OK;
}

static drey_status read_shape(medusa_shape *s, const gguf *g, const model_shape *target,
                              drey_error *err)
{
    int64_t version, n_heads, n_embd;
    TRY(gguf_require_int(g, KEY("version"), 1, INT32_MAX, &version, err));
    if (version != MEDUSA_VERSION)
        FAIL(err, DREY_ERR_UNSUPPORTED, "these heads are of another version; train them again");
    TRY(gguf_require_int(g, KEY("head_count"), 1, MEDUSA_MAX_HEADS, &n_heads, err));
    TRY(gguf_require_int(g, KEY("embedding_length"), 1, INT32_MAX, &n_embd, err));
    if (n_embd != target->n_embd)
        FAIL(err, DREY_ERR_MISMATCH,
             "these heads are for a model of width %lld, and this one has %d; train others",
             (long long)n_embd, target->n_embd);
    TRY(gguf_check_key(g, KEY("scale"), GGUF_WANT_NUMBER, err));
    *s = (medusa_shape){.n_heads = (int32_t)n_heads,
                        .n_embd = (int32_t)n_embd,
                        .scale = (float)gguf_number(g, KEY("scale"), 1)};
    if (!isfinite(s->scale))
        FAIL(err, DREY_ERR_FORMAT, "%s is no number", KEY("scale"));
    TRY(read_ids(s, g, target->n_vocab, err));
    return read_accuracy(s, g, err);
}

static drey_status read_block(medusa_heads *m, int32_t k, drey_error *err)
{
    char name[32];
    int64_t d = m->shape.n_embd;
    snprintf(name, sizeof name, "blocks.%d.weight", k);
    const gguf_tensor *t = gguf_find_tensor(m->file, name);
    if (!t || t->dims[0] != 2 * d || t->dims[1] != d || t->dims[2] * t->dims[3] != 1)
        FAIL(err, DREY_ERR_FORMAT, "tensor %s is not there, or has another shape", name);
    TRY(weight_describe(&m->block[k], t, m->kernels, err));
    if (t->type != m->block[0].form.tensor->type)
        FAIL(err, DREY_ERR_FORMAT, "tensor %s has another type than the first block", name);
    m->block[k].resident = true;
    m->block[k].residency.n_pinned = m->block[k].residency.n_groups;
    return DREY_OK;
}

static drey_status read_tensors(medusa_heads *m, drey_error *err)
{
    const medusa_shape *s = &m->shape;
    const gguf_tensor *b = gguf_find_tensor(m->file, bias_name);
    int64_t n = (int64_t)s->n_heads * s->n_embd;
    for (int32_t k = 0; k < s->n_heads; k++)
        TRY(read_block(m, k, err));
    if (!b || b->type != TYPE_F32 || b->dims[0] != n || b->n_bytes != (uint64_t)n * sizeof(float))
        FAIL(err, DREY_ERR_FORMAT, "tensor %s is not there, or has another shape", bias_name);
    return DREY_OK;
}

static drey_status check_file(medusa_heads *m, uint64_t identity, const model_shape *shape,
                              drey_error *err)
{
    const gguf_key *of;
    uint64_t wanted;
    if (!holds_heads(m->file))
        FAIL(err, DREY_ERR_FORMAT, "this is no file of Medusa heads; name another one");
    TRY(read_shape(&m->shape, m->file, shape, err));
    TRY(read_tensors(m, err));
    of = gguf_find_key(m->file, KEY("target"));
    if (!of || of->kind != GGUF_U64)
        FAIL(err, DREY_ERR_FORMAT, "%s is missing: it says for which model these heads are",
             KEY("target"));
    memcpy(&wanted, of->value, sizeof wanted);
    if (identity != wanted)
        FAIL(err, DREY_ERR_MISMATCH,
             "these heads were trained for another model, or the model has changed since; train "
             "others, or continue without them");
    return DREY_OK;
}

drey_status medusa_open(medusa_heads *m, const char *path, const gguf *target,
                        const model_shape *shape, const kernel_table *kernels, drey_error *err)
{
    uint64_t identity;
    *m = (medusa_heads){.kernels = kernels};
    TRY(gguf_open(&m->file, path, err));
    TRY(model_identity(target, &identity, err));
    return error_in_file(err, SHOWN_PATH(path), check_file(m, identity, shape, err));
}

drey_status medusa_parse(medusa_heads *m, const uint8_t *bytes, size_t n_bytes, uint64_t identity,
                         const model_shape *shape, const kernel_table *kernels, drey_error *err)
{
    *m = (medusa_heads){.kernels = kernels};
    TRY(gguf_parse(&m->file, bytes, n_bytes, n_bytes, err));
    return check_file(m, identity, shape, err);
}

void medusa_close(medusa_heads *m)
{
    gguf_close(&m->file);
}

/* ---- Memory ---- */

void medusa_for_roots(medusa_heads *m)
{
    m->for_roots = true;
    m->shape.n_heads = 1;
}

bool medusa_has_head(const medusa_heads *m)
{
    return !m->for_roots || residency_is_whole(&m->head->residency);
}

/* Bytes of the slice, or of the numbers of its rows. */
static size_t slice_bytes(const medusa_heads *m, const weight *head)
{
    if (m->for_roots)
        return (size_t)m->shape.n_ids * sizeof *m->rows;
    return (size_t)gathered_groups(m->shape.n_ids) * head->residency.group_bytes;
}

size_t medusa_weight_bytes(const medusa_heads *m, const weight *head)
{
    size_t n = (size_t)m->shape.n_heads;
    return n * arena_size(residency_pinned_bytes(&m->block[0].residency)) +
           arena_size(slice_bytes(m, head)) + arena_size((size_t)m->shape.n_ids * sizeof *m->ids) +
           arena_size(n * (size_t)m->shape.n_embd * sizeof(float));
}

static int64_t logits_ld(const medusa_heads *m)
{
    return row_stride((int64_t)gathered_groups(m->shape.n_ids) * GROUP_ROWS);
}

static int64_t gate_ld(const medusa_heads *m)
{
    return row_stride((int64_t)m->block[0].residency.n_groups * GROUP_ROWS);
}

static size_t rows_bytes(int64_t stride)
{
    return (size_t)(DRAFT_MAX_BATCH * stride) * sizeof(float);
}

size_t medusa_work_bytes(const medusa_heads *m, const weight *head)
{
    int64_t d = m->shape.n_embd;
    return 2 * arena_size((size_t)d * sizeof(float)) + arena_size(rows_bytes(row_stride(2 * d))) +
           arena_size(rows_bytes(gate_ld(m))) + arena_size(rows_bytes(row_stride(d))) +
           arena_size(rows_bytes(logits_ld(m))) +
           arena_size(act_bytes(m->block[0].form.kernel->act, DRAFT_MAX_BATCH, 2 * d)) +
           arena_size(act_bytes(head->form.kernel->act, DRAFT_MAX_BATCH, d));
}

static void take_work(medusa_heads *m, arena *a)
{
    int64_t d = m->shape.n_embd;
    m->input_ld = row_stride(2 * d);
    m->gate_ld = gate_ld(m);
    m->x_ld = row_stride(d);
    m->logits_ld = logits_ld(m);
    m->scale = arena_take(a, (size_t)d * sizeof *m->scale);
    m->ones = arena_take(a, (size_t)d * sizeof *m->ones);
    m->input = arena_take(a, rows_bytes(m->input_ld));
    m->gate = arena_take(a, rows_bytes(m->gate_ld));
    m->x = arena_take(a, rows_bytes(m->x_ld));
    m->logits = arena_take(a, rows_bytes(m->logits_ld));
    m->input_acts = arena_take(a, act_bytes(m->block[0].form.kernel->act, DRAFT_MAX_BATCH, 2 * d));
    m->x_acts = arena_take(a, act_bytes(m->slice.form.kernel->act, DRAFT_MAX_BATCH, d));
}

/* ---- Loading ---- */

enum { BOUNCE_BYTES = 256 << 10 };

typedef struct loader {
    file file;
    const char *path;
    uint8_t *bounce, *raw; /* [BOUNCE_BYTES], a group of rows as in the file */
} loader;

static drey_status load_block(weight *w, const loader *l, drey_error *err)
{
    for (int32_t g = 0; g < w->residency.n_groups; g++) {
        int32_t n = (int32_t)min_i64(GROUP_ROWS, w->form.n_rows - (int64_t)g * GROUP_ROWS);
        uint64_t at =
            w->form.tensor->offset + (uint64_t)g * GROUP_ROWS * (uint64_t)w->form.row_bytes;
        TRY(file_read(&l->file, l->path, at, (size_t)(n * w->form.row_bytes), l->raw, l->bounce,
                      BOUNCE_BYTES, err));
        if (!w->form.kernel->pack(w->packed + (size_t)g * w->residency.group_bytes, l->raw,
                                  w->form.row_bytes, n, w->form.k))
            return matrix_refuse(&w->form, l->path, err);
    }
    return DREY_OK;
}

static drey_status load_bias(medusa_heads *m, const loader *l, drey_error *err)
{
    const gguf_tensor *t = gguf_find_tensor(m->file, bias_name);
    int64_t n = (int64_t)m->shape.n_heads * m->shape.n_embd;
    TRY(file_read(&l->file, l->path, t->offset, (size_t)n * sizeof *m->bias, m->bias, l->bounce,
                  BOUNCE_BYTES, err));
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(m->bias[i]))
            FAIL(err, DREY_ERR_FORMAT,
                 "%s: tensor %s holds numbers that are not finite: the file is damaged",
                 SHOWN_PATH(l->path), bias_name);
    return DREY_OK;
}

/* Rows of the target's head in separate memory, outside of the order of reads. */
static void take_slice(medusa_heads *m, const weight *head, arena *a)
{
    const gguf_key *ids = find_ids(m->file);
    m->slice = *head;
    weight_stay_whole(&m->slice, m->shape.n_ids);
    void *memory = arena_take(a, slice_bytes(m, head));
    m->ids = arena_take(a, (size_t)m->shape.n_ids * sizeof *m->ids);
    m->slice.packed = m->for_roots ? NULL : memory;
    m->rows = m->for_roots ? memory : NULL;
    for (int32_t i = 0; m->ids && i < m->shape.n_ids; i++) {
        m->ids[i] = (int32_t)gguf_item_int(ids, (uint64_t)i);
        if (m->rows)
            m->rows[i] = m->ids[i];
    }
}

static drey_status load_slice(medusa_heads *m, drey_error *err)
{
    int32_t part = m->head->form.tensor->part;
    if (m->for_roots)
        return DREY_OK;
    return gather_rows(m->head, &m->target->parts[part], m->target->reading.paths[part], m->ids,
                       m->shape.n_ids, m->slice.packed, err);
}

drey_status medusa_load(medusa_heads *m, weights *target, const weight *head, pool *p, arena *a,
                        drey_error *err)
{
    const medusa_shape *s = &m->shape;
    assert(head->form.k == m->shape.n_embd);
    m->target = target;
    m->head = head;
    m->pool = p;
    for (int32_t k = 0; k < s->n_heads; k++)
        m->block[k].packed = arena_take(a, residency_pinned_bytes(&m->block[k].residency));
    m->bias = arena_take(a, (size_t)s->n_heads * (size_t)s->n_embd * sizeof *m->bias);
    take_slice(m, head, a);
    take_work(m, a);
    TRY(arena_check(a, err));
    for (int32_t i = 0; i < s->n_embd; i++) {
        m->scale[i] = s->scale;
        m->ones[i] = 1;
    }
    size_t raw_bytes = (size_t)(GROUP_ROWS * m->block[0].form.row_bytes);
    loader l = {.file.fd = -1, .path = gguf_shard_path(m->file, 0)};
    l.bounce = aligned_alloc(4096, BOUNCE_BYTES);
    l.raw = malloc(raw_bytes);
    drey_status status = DREY_OK;
    if (!l.bounce || !l.raw)
        status = error_set(err, DREY_ERR_MEMORY, "no memory to load %s", SHOWN_PATH(l.path));
    if (status == DREY_OK)
        status = file_open(&l.file, l.path, true, err);
    if (status == DREY_OK)
        status = file_check(&l.file, l.path, gguf_part_stamp(m->file, 0), err);
    for (int32_t k = 0; k < s->n_heads && status == DREY_OK; k++)
        status = load_block(&m->block[k], &l, err);
    if (status == DREY_OK)
        status = load_bias(m, &l, err);
    file_close(&l.file);
    free(l.bounce);
    free(l.raw);
    return status == DREY_OK ? load_slice(m, err) : status;
}

/* ---- Guessing ---- */

static drey_status multiply(medusa_heads *m, weight *matrix, void *acts, int32_t n, float *y,
                            int64_t ldy, drey_error *err)
{
    void *of_kind[ACT_KINDS] = {0};
    of_kind[matrix->form.kernel->act] = acts;
    const product p = {matrix, y, ldy};
    product_begin(m->target, &p, 1, of_kind, n);
    return product_finish(m->target, m->pool, err);
}

/* The first of the slice's rows whose id is not below `id`. */
static int32_t place_of(const medusa_heads *m, int32_t id)
{
    int32_t low = 0, high = m->shape.n_ids;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (m->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void medusa_trees(drey_static_trees *out, const medusa_shape *heads)
{
    _Static_assert((int)MEDUSA_MAX_HEADS == (int)DREY_STATIC_DEPTHS &&
                       (int)MEDUSA_RANKS == (int)DREY_STATIC_RANKS,
                   "heads have other ranks");
    *out = (drey_static_trees){.n_trees = 0};
    for (int32_t k = 0; k < heads->n_heads; k++)
        for (int32_t rank = 0; rank < MEDUSA_RANKS; rank++)
            out->share[k][rank] = (double)heads->accuracy[k][rank];
}

int32_t medusa_ids_below(const medusa_heads *m, int32_t n_vocab)
{
    return place_of(m, n_vocab);
}

/* [h; e(token)]. Tokens that heads guess are in the slice; a root may be outside of it. */
static drey_status fill_input(const medusa_heads *m, float *input, const float *hidden,
                              int32_t token, drey_error *err)
{
    int64_t d = m->shape.n_embd;
    const weight *v = &m->slice;
    float *of_token = input + d;
    const float eps = 1e-6f;
    int32_t place = place_of(m, token);
    memcpy(input, hidden, (size_t)d * sizeof *hidden);
    if (v->packed && place < m->shape.n_ids && m->ids[place] == token)
        v->form.kernel->unpack_row(
            of_token, v->packed + (size_t)(place / GROUP_ROWS) * v->residency.group_bytes,
            place % GROUP_ROWS, d);
    else
        TRY(weights_row_of(m->target, m->head, token, of_token, 0, err));
    m->kernels->rmsnorm(of_token, of_token, m->ones, d, eps);
    return DREY_OK;
}

/* x of the nodes whose head is k, in their places. */
static drey_status run_block(medusa_heads *m, int32_t k, const float *hidden,
                             const medusa_node *nodes, int32_t n, drey_error *err)
{
    const kernel_table *t = m->kernels;
    int64_t d = m->shape.n_embd;
    int32_t place[DRAFT_MAX_BATCH], n_rows = 0;
    for (int32_t i = 0; i < n; i++)
        if (nodes[i].head == k) {
            TRY(fill_input(m, m->input + n_rows * m->input_ld, hidden, nodes[i].token, err));
            place[n_rows++] = i;
        }
    if (n_rows == 0)
        return DREY_OK;
    t->quantise[m->block[k].form.kernel->act](m->input_acts, m->input, m->input_ld, 0, n_rows,
                                              n_rows, 2 * d);
    TRY(multiply(m, &m->block[k], m->input_acts, n_rows, m->gate, m->gate_ld, err));
    for (int32_t i = 0; i < n_rows; i++) {
        float *gate = m->gate + i * m->gate_ld, *x = m->x + place[i] * m->x_ld;
        t->add(gate, m->bias + k * d, d);
        t->swiglu(gate, gate, m->scale, d);
        memcpy(x, hidden, (size_t)d * sizeof *hidden);
        t->add(x, gate, d);
    }
    return DREY_OK;
}

/* Dot products with rows of the target's head, which threads take a few at a time. */
typedef struct dot_job {
    medusa_heads *m;
    float *logits; /* [n_ids] */
    _Atomic int32_t next;
} dot_job;

static void dot_thread(void *arg, int32_t thread, int32_t n_threads)
{
    enum { TAKEN = 512 };
    (void)n_threads;
    dot_job *j = arg;
    const medusa_heads *m = j->m;
    for (int32_t i; (i = atomic_fetch_add(&j->next, TAKEN)) < m->shape.n_ids;)
        weights_dot_rows(m->target, m->head, m->rows + i, min_i32(TAKEN, m->shape.n_ids - i),
                         m->x_acts, j->logits + i, thread);
}

/* One node at a time, as one row is quantised for all its products. */
static void dot_head(medusa_heads *m, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        dot_job j = {.m = m, .logits = m->logits + i * m->logits_ld};
        m->kernels->quantise[m->slice.form.kernel->act](m->x_acts, m->x + i * m->x_ld, m->x_ld, 0,
                                                        1, 1, m->shape.n_embd);
        pool_run(m->pool, dot_thread, &j);
    }
}

drey_status medusa_compute(medusa_heads *m, const float *hidden, const medusa_node *nodes,
                           int32_t n, drey_error *err)
{
    assert(weights_loaded(m->target) && n >= 1 && n <= DRAFT_MAX_BATCH);
    for (int32_t k = 0; k < m->shape.n_heads; k++)
        TRY(run_block(m, k, hidden, nodes, n, err));
    if (m->for_roots) {
        dot_head(m, n);
        return DREY_OK;
    }
    m->kernels->quantise[m->slice.form.kernel->act](m->x_acts, m->x, m->x_ld, 0, n, n,
                                                    m->shape.n_embd);
    return multiply(m, &m->slice, m->x_acts, n, m->logits, m->logits_ld, err);
}
