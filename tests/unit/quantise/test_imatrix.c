/* Importance matrices of a text: the sums are those of a layer computed here in double precision,
 * no threads, budgets or chunks show in the file, experts have their own, and what fails leaves no
 * file. */
#include <unistd.h>

#include "drey/quantize.h"
#include "quantise/importance.h"
#include "session/session_probe.h"
#include "state/cache.h"
#include "support/bytes_file.h"
#include "support/scene.h"

enum { N = 300, WINDOW = 64, WIDEST = 512 };

static int32_t text[N];

static drey_imatrix_options measuring(const drey_engine_options *engine, const char *output)
{
    drey_imatrix_options o;
    drey_imatrix_options_init(&o);
    for (int32_t i = 0; i < N; i++)
        text[i] = 10 + (i * 37 + i * i % 11) % 200;
    o.engine = engine;
    o.ids = text;
    o.n_ids = N;
    o.window = WINDOW;
    o.output = output;
    return o;
}

static toy_options exact_toy(void)
{
    toy_options toy = toy_default();
    toy.type = TYPE_F32;
    return toy;
}

/* ---- Read back ---- */

typedef struct measured {
    importance m;
    gguf *g;
    uint8_t *bytes;
} measured;

static measured take(const char *path, const drey_model *model)
{
    measured f;
    size_t n;
    MUST(importance_read, &f.m, path);
    MUST(importance_check, &f.m, path, model->file);
    MUST(gguf_open, &f.g, path);
    f.bytes = bytes_file_read(path, &n);
    return f;
}

static void leave(measured *f)
{
    importance_free(&f->m);
    gguf_close(&f->g);
    free(f->bytes);
}

static const float *numbers(const uint8_t *bytes, const gguf *g, const char *name)
{
    const gguf_tensor *t = gguf_find_tensor(g, name);
    assert_non_null(t);
    assert_int_equal(t->type, TYPE_F32);
    return (const float *)(const void *)(bytes + t->offset);
}

static const float *means(const measured *f, const char *name, int64_t n)
{
    const importance_entry *e = importance_find(&f->m, name);
    assert_non_null(e);
    assert_int_equal(e->n, n);
    return e->squares;
}

/* ---- A layer in double precision ---- */

typedef struct scalar {
    const drey_model *model;
    uint8_t *bytes;
} scalar;

static const float *weights_of(const scalar *s, const char *name)
{
    return numbers(s->bytes, s->model->file, name);
}

static void norm(const scalar *s, double *y, const double *x, const char *name, int32_t n)
{
    const float *w = weights_of(s, name);
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (int32_t i = 0; i < n; i++)
        y[i] = x[i] / sqrt(sum / n + (double)s->model->shape.norm_eps) * (double)w[i];
}

static void multiply(const scalar *s, double *y, const double *x, const char *name, int32_t n,
                     int32_t k)
{
    const float *w = weights_of(s, name);
    for (int32_t i = 0; i < n; i++) {
        y[i] = 0;
        for (int32_t j = 0; j < k; j++)
            y[i] += (double)w[i * k + j] * x[j];
    }
}

static void embed(const scalar *s, double *x, int32_t id)
{
    const int32_t n = s->model->shape.n_embd;
    for (int32_t i = 0; i < n; i++)
        x[i] = (double)weights_of(s, "token_embd.weight")[id * n + i];
}

/* off: relative. */
static void same_squares(const measured *f, const char *name, const double *x, int32_t n,
                         double off)
{
    const float *got = means(f, name, n);
    double mean = 0;
    for (int32_t i = 0; i < n; i++)
        mean += x[i] * x[i] / n;
    assert_true(mean > 1e-6);
    for (int32_t i = 0; i < n; i++)
        assert_near(got[i], x[i] * x[i], off * (mean + x[i] * x[i]));
}

/* A text of one token sees itself alone: what the output matrix reads are its values. */
TEST(sums_of_one_token)
{
    const toy_options toy = exact_toy();
    drey_model *m = toy_open("toy.gguf", &toy);
    const model_shape *of = &m->shape;
    const int32_t dim = of->attention[0].head_dim, n_ff = of->layer[0].n_ff;
    const int32_t n_q = of->attention[0].n_heads * dim, n_kv = of->attention[0].n_heads_kv * dim;
    const drey_engine_options engine = plain_options(m, 64, 1);
    drey_imatrix_options o = measuring(&engine, temp_path("imatrix"));
    drey_imatrix_report report;
    const double cached = 2e-3; /* of squares of values that F16 has rounded */
    double x[WIDEST], y[WIDEST], v[WIDEST], att[WIDEST], gate[WIDEST], up[WIDEST];
    size_t n_bytes;
    o.n_ids = 1;
    MUST(drey_imatrix, &o, &report);
    assert_int_equal(report.n_tokens, 1);
    assert_int_equal(report.n_matrices, 7 * of->n_layers);
    measured f = take(o.output, m);
    const scalar s = {m, bytes_file_read(temp_path("toy.gguf"), &n_bytes)};
    embed(&s, x, text[0]);
    norm(&s, y, x, "blk.0.attn_norm.weight", of->n_embd);
    same_squares(&f, "blk.0.attn_q.weight", y, of->n_embd, 1e-5);
    same_squares(&f, "blk.0.attn_v.weight", y, of->n_embd, 1e-5);
    multiply(&s, v, y, "blk.0.attn_v.weight", n_kv, of->n_embd);
    for (int32_t i = 0; i < n_q; i++)
        att[i] = v[i / dim / (n_q / n_kv) * dim + i % dim];
    same_squares(&f, "blk.0.attn_output.weight", att, n_q, cached);
    multiply(&s, y, att, "blk.0.attn_output.weight", of->n_embd, n_q);
    for (int32_t i = 0; i < of->n_embd; i++)
        x[i] += y[i];
    norm(&s, y, x, "blk.0.ffn_norm.weight", of->n_embd);
    same_squares(&f, "blk.0.ffn_gate.weight", y, of->n_embd, cached);
    same_squares(&f, "blk.0.ffn_up.weight", y, of->n_embd, cached);
    multiply(&s, gate, y, "blk.0.ffn_gate.weight", n_ff, of->n_embd);
    multiply(&s, up, y, "blk.0.ffn_up.weight", n_ff, of->n_embd);
    for (int32_t i = 0; i < n_ff; i++)
        gate[i] *= up[i] / (1 + exp(-gate[i]));
    same_squares(&f, "blk.0.ffn_down.weight", gate, n_ff, cached);
    leave(&f);
    free(s.bytes);
    drey_model_close(&m);
}

/* Checks that what the first layer reads of each token does not depend on the others. */
static void check_text(const char *pre)
{
    toy_options toy = exact_toy();
    toy.pre = pre;
    drey_model *m = toy_open("toy.gguf", &toy);
    drey_model_info info;
    drey_model_describe(m, &info);
    const drey_engine_options engine = plain_options(m, 64, 1);
    drey_imatrix_options o = measuring(&engine, temp_path("imatrix"));
    drey_imatrix_report report;
    double x[WIDEST], sum[WIDEST] = {0};
    const int32_t n_embd = m->shape.n_embd, bos = !pre, n_windows = (N - 1) / (WINDOW - bos) + 1;
    size_t n_bytes;
    o.force = true;
    o.dataset = "a text";
    MUST(drey_imatrix, &o, &report);
    assert_int_equal(report.n_windows, n_windows);
    assert_int_equal(report.n_tokens, N + bos * n_windows);
    measured f = take(o.output, m);
    assert_int_equal(f.m.n_chunks, n_windows);
    assert_string_equal(f.m.dataset, "a text");
    assert_int_equal(gguf_int(f.g, "imatrix.chunk_size", 0), WINDOW);
    assert_true(numbers(f.bytes, f.g, "blk.1.ffn_down.weight.counts")[0] == (float)report.n_tokens);
    const scalar s = {m, bytes_file_read(temp_path("toy.gguf"), &n_bytes)};
    for (int32_t i = 0; i < N + bos * n_windows; i++) {
        embed(&s, x, i < N ? text[i] : info.bos_id);
        norm(&s, x, x, "blk.0.attn_norm.weight", n_embd);
        for (int32_t j = 0; j < n_embd; j++)
            sum[j] += x[j] * x[j] / (double)report.n_tokens;
    }
    for (int32_t j = 0; j < n_embd; j++)
        sum[j] = sqrt(sum[j]);
    same_squares(&f, "blk.0.attn_k.weight", sum, n_embd, 1e-5);
    leave(&f);
    free(s.bytes);
    drey_model_close(&m);
}

TEST(sums_of_a_text)
{
    check_text("qwen2");
    check_text(NULL); /* whose texts begin with BOS */
}

/* ---- What does not show ---- */

static void check_ways(const toy_options *toy)
{
    drey_model *m = toy_open("toy.gguf", toy);
    drey_engine_options engine = plain_options(m, WINDOW, 1);
    char one[4096], other[4096];
    snprintf(one, sizeof one, "%s", temp_path("one"));
    snprintf(other, sizeof other, "%s", temp_path("other"));
    drey_imatrix_options o = measuring(&engine, one);
    o.force = true;
    MUST(drey_imatrix, &o, NULL);
    o.output = other;
    engine.n_threads = 3;
    engine.prompt_chunk = 7;
    MUST(drey_imatrix, &o, NULL);
    assert_true(same_files(one, other));
    drey_status status = DREY_ERR_MEMORY; /* the smallest budget: little is pinned */
    engine.prompt_chunk = 0;
    for (engine.memory_bytes = smallest_budget(&engine, NULL); status == DREY_ERR_MEMORY;
         engine.memory_bytes += 1 << 16)
        status = drey_imatrix(&o, NULL, NULL);
    assert_int_equal(status, DREY_OK);
    assert_true(same_files(one, other));
    drey_model_close(&m);
}

TEST(no_threads_budget_or_chunks_show)
{
    toy_options toy = toy_default();
    toy.n_embd = 256;
    toy.n_ff = 512;
    check_ways(&toy);
    toy.architecture = "qwen3moe";
    toy.experts = (toy_experts){.n = 16, .n_used = 3, .n_ff = 256};
    check_ways(&toy);
}

typedef struct watching {
    int32_t n_calls, n_rows;
} watching;

static void watch(void *user, const weight *matrix, int32_t expert, const float *rows, int64_t ld,
                  int32_t n)
{
    watching *w = user;
    w->n_calls++;
    w->n_rows = n;
}

TEST(logits_are_the_same_when_watched)
{
    const toy_options toy = toy_default();
    enum { ROWS = 5 };
    drey_model *m = toy_open("toy.gguf", &toy);
    const drey_engine_options engine = plain_options(m, WINDOW, 2);
    const engine_hooks hooks = {.least_logit_rows = ROWS};
    drey_session *s = open_alone(&engine, &hooks);
    runner *r = probe_target(s);
    watching seen = {0};
    const pass_inputs inputs = {watch, &seen};
    pass_row rows[ROWS];
    const size_t n = (size_t)pass_logits_stride(r) * ROWS;
    float *logits = malloc(n * sizeof *logits);
    for (int32_t i = 0; i < ROWS; i++)
        rows[i] = (pass_row){.token = 20 + i, .parent = i - 1};
    MUST(pass_rows, r, rows, ROWS, HEAD_ALL);
    cache_clear(r->cache);
    memcpy(logits, r->ws->logits, n * sizeof *logits);
    r->inputs = &inputs;
    MUST(pass_rows, r, rows, ROWS, HEAD_ALL);
    assert_int_equal(seen.n_calls, 4 * m->shape.n_layers + 1);
    assert_int_equal(seen.n_rows, ROWS);
    assert_memory_equal(logits, r->ws->logits, n * sizeof *logits);
    free(logits);
    close_alone(&s);
    drey_model_close(&m);
}

/* ---- Other models ---- */

static void check_experts(bool fused)
{
    enum { EXPERTS = 16, USED = 3, WIDTH = 64 };
    toy_options toy = exact_toy();
    toy.architecture = "qwen3moe";
    toy.experts = (toy_experts){.n = EXPERTS, .n_used = USED, .n_ff = WIDTH, .fused = fused};
    drey_model *m = toy_open("toy.gguf", &toy);
    const drey_engine_options engine = plain_options(m, 64, 2);
    drey_imatrix_options o = measuring(&engine, temp_path("imatrix"));
    drey_imatrix_report report;
    o.force = true;
    MUST(drey_imatrix, &o, &report);
    assert_int_equal(report.n_experts, EXPERTS * toy.n_layers);
    measured f = take(o.output, m);
    const char *up = fused ? "blk.1.ffn_gate_up_exps.weight" : "blk.1.ffn_up_exps.weight";
    char name[80];
    snprintf(name, sizeof name, "%s.counts", up);
    const float *counts = numbers(f.bytes, f.g, name);
    snprintf(name, sizeof name, "%s.in_sum2", up);
    const float *sums = numbers(f.bytes, f.g, name);
    const float *all = numbers(f.bytes, f.g, "blk.1.ffn_gate_inp.weight.in_sum2");
    double rows = 0;
    int32_t most = 0;
    for (int32_t e = 0; e < EXPERTS; e++) {
        rows += (double)counts[e];
        most = counts[e] > counts[most] ? e : most;
    }
    assert_true(rows == N * USED);
    assert_memory_equal(counts, numbers(f.bytes, f.g, "blk.1.ffn_down_exps.weight.counts"),
                        EXPERTS * sizeof *counts);
    /* Each row goes to USED experts, which read what the router has read. */
    for (int32_t j = 0; j < toy.n_embd; j++) {
        double sum = 0;
        for (int32_t e = 0; e < EXPERTS; e++)
            sum += (double)sums[e * toy.n_embd + j];
        assert_near(sum / USED, all[j], 1e-5 * (double)all[j]);
        assert_true(sums[most * toy.n_embd + j] < all[j]);
    }
    means(&f, "blk.1.ffn_down_exps.weight", EXPERTS * WIDTH);
    leave(&f);
    drey_model_close(&m);
}

TEST(experts_have_their_own)
{
    check_experts(false);
    check_experts(true);
}

TEST(parts_of_a_tensor_have_its_name)
{
    toy_options toy = toy_default();
    toy.architecture = "phi3";
    toy.n_layers = 1;
    drey_model *m = toy_open("toy.gguf", &toy);
    const drey_engine_options engine = plain_options(m, 64, 1);
    drey_imatrix_options o = measuring(&engine, temp_path("imatrix"));
    drey_imatrix_report report;
    MUST(drey_imatrix, &o, &report);
    measured f = take(o.output, m); /* which checks that the model has all tensors */
    assert_int_equal(report.n_matrices, 4);
    assert_int_equal(f.m.n_entries, 4);
    means(&f, "blk.0.attn_qkv.weight", toy.n_embd);
    leave(&f);
    drey_model_close(&m);
}

/* ---- What leaves no file ---- */

static bool never(void *user)
{
    return ++*(int32_t *)user < 5;
}

TEST(what_is_refused)
{
    toy_options toy = toy_default();
    drey_model *m = toy_open("toy.gguf", &toy);
    const char *to = temp_path("imatrix");
    drey_engine_options engine = plain_options(m, 64, 1);
    drey_imatrix_options o = measuring(&engine, to);
    int32_t n_asked = 0;
    o.n_ids = 0;
    REFUSED(DREY_ERR_USAGE, "the text is empty", drey_imatrix, &o, NULL);
    o.n_ids = N;
    o.window = 1;
    REFUSED(DREY_ERR_USAGE, "windows of 1 tokens", drey_imatrix, &o, NULL);
    o.window = WINDOW;
    text[7] = 100000;
    REFUSED(DREY_ERR_USAGE, "token id 100000 does not exist", drey_imatrix, &o, NULL);
    o = measuring(&engine, temp_path("toy.gguf"));
    o.force = true;
    REFUSED(DREY_ERR_USAGE, "is what is read", drey_imatrix, &o, NULL);
    o.output = to;
    o.go_on = never;
    o.user = &n_asked;
    assert_int_equal(drey_imatrix(&o, NULL, NULL), DREY_ERR_CANCELLED);
    assert_int_equal(n_asked, 5); /* in the first window */
    o.go_on = NULL;
    engine.memory_bytes = 1 << 20;
    REFUSED(DREY_ERR_MEMORY, "", drey_imatrix, &o, NULL);
    assert_int_not_equal(access(to, F_OK), 0);
    drey_model_close(&m);
    toy.architecture = "t5";
    toy.n_heads_kv = toy.n_heads;
    toy.pre = "t5";
    m = toy_open("t5.gguf", &toy);
    engine = plain_options(m, 64, 1);
    REFUSED(DREY_ERR_UNSUPPORTED, "decoders that read a text alone", drey_imatrix, &o, NULL);
    drey_model_close(&m);
    assert_int_not_equal(access(to, F_OK), 0);
}

TEST(damaged_numbers)
{
    toy_options toy = toy_default();
    toy.type = TYPE_F16;
    drey_model *m = toy_open("toy.gguf", &toy);
    const gguf_tensor *t = gguf_find_tensor(m->file, "blk.1.attn_norm.weight");
    const uint64_t at = t->offset;
    size_t n;
    drey_model_close(&m);
    uint8_t *bytes = bytes_file_read(temp_path("toy.gguf"), &n);
    memcpy(bytes + at, "\xff\xff\x7f\x7f", 4); /* finite; what it gives is not */
    memcpy(bytes + at + 4, "\xff\xff\x7f\x7f", 4);
    bytes_file_write(temp_path("damaged.gguf"), bytes, n);
    free(bytes);
    MUST(drey_model_open, &m, temp_path("damaged.gguf"));
    const drey_engine_options engine = plain_options(m, 64, 1);
    const drey_imatrix_options o = measuring(&engine, temp_path("imatrix"));
    REFUSED(DREY_ERR_FORMAT, "is not finite", drey_imatrix, &o, NULL);
    assert_int_not_equal(access(o.output, F_OK), 0);
    drey_model_close(&m);
}
