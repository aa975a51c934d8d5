/* Quantising: each type's error against what so many bits allow, as drey's own kernels decode it;
 * mixtures; the whole file; what is refused. */
#include "drey/quantize.h"
#include "kernel/code_books.h"
#include "kernel/kernel.h"
#include "quantise/block_encode.h"
#include "quantise/book_search.h"
#include "quantise/importance.h"
#include "support/bytes_file.h"
#include "support/scene.h"

#include <unistd.h>

enum { K = 1024 };

static float normal(rng *r)
{
    return (float)(sqrt(-2 * log(rng_unit(r))) * cos(6.283185307 * rng_unit(r)));
}

/* A row there and back. */
static void round_trip(float *back, uint32_t type, const float *x, const float *weight, int64_t k)
{
    const type_traits *t = type_find(type);
    const matmul_kernel *m = &kernel_select("ref")->matmul[type];
    const int64_t n_bytes = type_row_bytes(t, k);
    uint8_t *blocks = malloc((size_t)n_bytes);
    void *group = aligned_alloc(64, (m->group_bytes(k) + 63) / 64 * 64);
    block_encode_row((tensor_type)type, blocks, x, weight, k);
    assert_true(m->pack(group, blocks, n_bytes, 1, k));
    m->unpack_row(back, group, 0, k);
    free(blocks);
    free(group);
}

static double error_of(const float *x, const float *y, int64_t k)
{
    double error = 0, sum = 0;
    for (int64_t i = 0; i < k; i++) {
        error += pow((double)x[i] - (double)y[i], 2);
        sum += pow((double)x[i], 2);
    }
    return sum > 0 ? sqrt(error / sum) : sqrt(error);
}

static const uint32_t encoded[] = {
    TYPE_IQ2_XXS, TYPE_IQ2_XS, TYPE_IQ2_S, TYPE_IQ3_XXS, TYPE_IQ3_S, /* with code books */
    TYPE_Q4_0,    TYPE_Q4_1,   TYPE_Q5_0,  TYPE_Q5_1,    TYPE_Q8_0,  TYPE_IQ4_NL,
    TYPE_Q2_K,    TYPE_Q3_K,   TYPE_Q4_K,  TYPE_Q5_K,    TYPE_Q6_K,  TYPE_IQ4_XS};
enum { N_BOOKS = 5, N_ENCODED = sizeof encoded / sizeof *encoded };

/* No code of b bits per number has a relative error of normal numbers below 2^-b (Shannon). A
 * uniform one needs a quarter of a bit more, and the ends of its range some: 1.2 bits in all. */
TEST(errors_are_near_the_bound)
{
    rng r = rng_from(1);
    float x[K], back[K];
    for (int i = 0; i < K; i++)
        x[i] = 0.02f * normal(&r);
    for (int i = 0; i < N_ENCODED; i++) {
        const type_traits *t = type_find(encoded[i]);
        double bits = 8.0 * t->block_bytes / t->block_elements, bound = exp2(-bits);
        round_trip(back, encoded[i], x, NULL, K);
        double error = error_of(x, back, K);
        assert_true(error > bound);
        assert_true(error < 2.3 * bound);
    }
}

TEST(floats_are_rounded_once)
{
    rng r = rng_from(2);
    float x[K], back[K];
    for (int i = 0; i < K; i++)
        x[i] = normal(&r);
    round_trip(back, TYPE_F32, x, NULL, K);
    assert_memory_equal(x, back, sizeof x);
    round_trip(back, TYPE_F16, x, NULL, K);
    for (int i = 0; i < K; i++)
        assert_near(back[i], x[i], fabsf(x[i]) * 0x1p-11f);
    round_trip(back, TYPE_BF16, x, NULL, K);
    for (int i = 0; i < K; i++)
        assert_near(back[i], x[i], fabsf(x[i]) * 0x1p-8f);
}

/* What a type can hold comes back as it was, but for the rounding of its scales. */
TEST(what_fits_stays)
{
    float x[K], back[K];
    for (int i = 0; i < N_ENCODED; i++) {
        for (int k = 0; k < K; k++)
            x[k] = i < N_BOOKS ? 0.5f * (float)(k % 2 ? 1 : -1)
                   : encoded[i] == TYPE_IQ4_NL || encoded[i] == TYPE_IQ4_XS
                       ? 0.5f * (float)(k % 2 ? 1 : -127)
                       : 0.5f * (float)(k % 4 == 0);
        round_trip(back, encoded[i], x, NULL, K);
        assert_true(error_of(x, back, K) < 4e-3);
    }
}

/* Zeros, one sign only, one number of all, huge and tiny ones: nothing that is not finite, and no
 * error above the numbers themselves. */
TEST(odd_rows)
{
    static const float scales[] = {0, 1, -1, 1e-30f, 1e-6f, 3e4f, 1e30f};
    rng r = rng_from(3);
    float x[K], back[K], none[K] = {0};
    for (int i = 0; i < N_ENCODED; i++)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++)
            for (int kind = 0; kind < 4; kind++) {
                for (int k = 0; k < K; k++)
                    x[k] = scales[s] * (kind == 0   ? 1
                                        : kind == 1 ? (float)rng_unit(&r)
                                        : kind == 2 ? (float)(k % 256 == 17)
                                                    : normal(&r));
                round_trip(back, encoded[i], x, kind == 3 ? none : NULL, K);
                for (int k = 0; k < K; k++)
                    assert_true(isfinite(back[k]));
                /* A book has no 0, and less than an f16's least step between other numbers. */
                if (fabsf(scales[s]) < 1e20f)
                    assert_true(error_of(x, back, K) <= (i < N_BOOKS ? 1.4 : 1.0001));
            }
}

TEST(importance_counts)
{
    rng r = rng_from(4);
    float x[K], plain[K], weighed[K], weight[K];
    for (int i = 0; i < N_ENCODED; i++) {
        if (encoded[i] == TYPE_Q8_0)
            continue; /* which does not ask */
        double without = 0, with = 0;
        for (int k = 0; k < K; k++) {
            x[k] = normal(&r);
            weight[k] = k % 8 == 0 ? 100 : 1;
        }
        round_trip(plain, encoded[i], x, NULL, K);
        round_trip(weighed, encoded[i], x, weight, K);
        for (int k = 0; k < K; k += 8) {
            without += pow((double)(plain[k] - x[k]), 2);
            with += pow((double)(weighed[k] - x[k]), 2);
        }
        assert_true(with < 0.9 * without);
    }
}

/* ---- Code books ---- */

/* Books say more with as many bits than steps of a type of their size do. */
TEST(books_are_better_than_steps)
{
    rng r = rng_from(5);
    float x[K], back[K];
    double error[TYPE_LIMIT];
    for (int i = 0; i < K; i++)
        x[i] = 0.02f * normal(&r);
    for (int i = 0; i < N_ENCODED; i++) {
        round_trip(back, encoded[i], x, NULL, K);
        error[encoded[i]] = error_of(x, back, K);
    }
    assert_true(error[TYPE_IQ3_S] < 0.95 * error[TYPE_Q3_K]); /* 110 bytes both */
    assert_true(error[TYPE_IQ3_XXS] < 1.4 * error[TYPE_IQ3_S]);
    assert_true(error[TYPE_IQ2_S] < 0.95 * error[TYPE_Q2_K]); /* 82 and 84 bytes */
    assert_true(error[TYPE_IQ2_XS] < 1.25 * error[TYPE_IQ2_S]);
    assert_true(error[TYPE_IQ2_XXS] < 1.2 * error[TYPE_IQ2_XS]);
}

static const float *entry_of(uint32_t type, int32_t i, int32_t group)
{
    static float entry[8];
    const void *book = type == TYPE_IQ2_XXS   ? (const void *)(books.iq2_xxs + i)
                       : type == TYPE_IQ2_XS  ? (const void *)(books.iq2_xs + i)
                       : type == TYPE_IQ2_S   ? (const void *)(books.iq2_s + i)
                       : type == TYPE_IQ3_XXS ? (const void *)(books.iq3_xxs + i)
                                              : (const void *)(books.iq3_s + i);
    const float unit = group == 8 ? 8 : type == TYPE_IQ3_XXS ? 4 : 1;
    for (int32_t k = 0; k < group; k++)
        entry[k] = (float)((const uint8_t *)book)[k] / unit;
    return entry;
}

static double weighed_error(const float *q, const float *x, const float *w, int32_t n)
{
    double error = 0;
    for (int32_t k = 0; k < n; k++)
        error += (double)w[k] * pow((double)(q[k] - x[k]), 2);
    return error;
}

/* No entry is nearer than the one that is found, whatever the weights. */
TEST(nearest_entry)
{
    static const int32_t sizes[N_BOOKS] = {256, 512, 1024, 256, 512};
    rng r = rng_from(6);
    for (int i = 0; i < N_BOOKS; i++) {
        const int32_t group = encoded[i] == TYPE_IQ3_XXS || encoded[i] == TYPE_IQ3_S ? 4 : 8;
        const book_search *book = book_search_of((tensor_type)encoded[i]);
        for (int round = 0; round < 400; round++) {
            float x[16], w[16], q[16];
            for (int k = 0; k < 16; k++) {
                x[k] = 1.2f * book_search_most(book) * (float)rng_unit(&r) - 1;
                w[k] = expf(2 * normal(&r));
            }
            book_search_round(book, q, x, w, 16, 1);
            for (int32_t at = 0; at < 16; at += group) {
                const uint32_t number = book_search_number(book, q + at);
                assert_memory_equal(entry_of(encoded[i], (int32_t)number, group), q + at,
                                    sizeof(float) * (size_t)group);
                const double found = weighed_error(q + at, x + at, w + at, group);
                for (int32_t e = 0; e < sizes[i]; e++)
                    assert_true(found <= 1.00001 * weighed_error(entry_of(encoded[i], e, group),
                                                                 x + at, w + at, group));
            }
        }
    }
}

/* Where the number of minuses has to be even, the number that matters least changes its sign. */
TEST(even_minuses)
{
    static const uint32_t types[] = {TYPE_IQ2_XXS, TYPE_IQ2_XS, TYPE_IQ3_XXS};
    float x[K], back[K], weight[K];
    for (int i = 0; i < 3; i++)
        for (int weighed = 0; weighed < 2; weighed++) {
            for (int k = 0; k < K; k++) {
                x[k] = k % 8 == 3 ? 0.5f : k % 8 == 5 ? -1 : k % 16 == 9 ? -0.9f : 1;
                weight[k] = k % 8 == 6 ? 0.01f : 1;
            }
            round_trip(back, types[i], x, weighed ? weight : NULL, K);
            for (int k = 0; k < K; k++) {
                const bool odd = k % 16 < 8, least = k % 8 == (weighed ? 6 : 3);
                assert_int_equal(back[k] < 0, (x[k] < 0) != (odd && least));
            }
        }
}

/* ---- Files ---- */

static toy_options floats(void)
{
    toy_options toy = toy_default();
    toy.n_layers = 8;
    toy.n_vocab = 400;
    toy.type = TYPE_F16;
    toy.n_embd = 256;
    toy.n_ff = 288; /* no multiple of 256 */
    return toy;
}

static drey_quantize_options options(const char *to, const char *type)
{
    drey_quantize_options o;
    drey_quantize_options_init(&o);
    o.input = temp_path("f16.gguf");
    o.output = to;
    o.type = type;
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    o.n_threads = 1;
    return o;
}

static void has_type(const gguf *g, const char *name, uint32_t type)
{
    const gguf_tensor *t = gguf_find_tensor(g, name);
    assert_non_null(t);
    if (t->type != type)
        printf("%s: %s\n", name, type_find(t->type)->name);
    assert_int_equal(t->type, type);
}

TEST(mixture)
{
    const toy_options toy = floats();
    const char *to = temp_path("q4.gguf");
    drey_quantize_options o = options(to, "q4_k_m");
    drey_quantize_report report;
    gguf *g, *from;
    toy_write(o.input, &toy);
    MUST(drey_quantize, &o, &report);
    MUST(gguf_open, &g, to);
    MUST(gguf_open, &from, o.input);
    has_type(g, "output.weight", TYPE_Q6_K);
    has_type(g, "token_embd.weight", TYPE_Q4_K);
    has_type(g, "output_norm.weight", TYPE_F32);
    has_type(g, "blk.0.attn_q.weight", TYPE_Q4_K);
    has_type(g, "blk.0.attn_v.weight", TYPE_Q6_K);
    has_type(g, "blk.1.attn_v.weight", TYPE_Q4_K);
    has_type(g, "blk.3.attn_v.weight", TYPE_Q6_K);
    has_type(g, "blk.7.attn_v.weight", TYPE_Q6_K);
    has_type(g, "blk.0.ffn_down.weight", TYPE_Q8_0); /* for Q6_K, */
    has_type(g, "blk.1.ffn_down.weight", TYPE_Q5_0); /* and Q4_K */
    assert_int_equal(report.n_fallbacks, 8);
    assert_int_equal(gguf_int(g, "general.file_type", -1), 15);
    assert_int_equal(gguf_int(g, "llama.block_count", -1), 8);
    for (uint64_t i = 0; i < gguf_n_keys(from); i++) {
        const gguf_key *key = gguf_key_at(from, i);
        char name[200];
        snprintf(name, sizeof name, "%.*s", (int)key->name.n_bytes, key->name.text);
        const gguf_key *kept = gguf_find_key(g, name);
        assert_non_null(kept);
        assert_int_equal(kept->n_items, key->n_items);
    }
    gguf_close(&from);
    gguf_close(&g);
    drey_model *m; /* and it runs */
    MUST(drey_model_open, &m, to);
    drey_model_close(&m);
}

/* Writes an importance matrix of one entry. */
static void write_importance(const char *path, const char *name, int32_t n);

TEST(mixtures_of_books)
{
    const toy_options toy = floats();
    drey_quantize_options o = options(temp_path("books.gguf"), "IQ3_M");
    drey_quantize_report report;
    gguf *g;
    toy_write(o.input, &toy);
    MUST(drey_quantize, &o, &report);
    MUST(gguf_open, &g, o.output);
    has_type(g, "output.weight", TYPE_Q6_K);
    has_type(g, "token_embd.weight", TYPE_IQ3_S);
    has_type(g, "blk.3.attn_q.weight", TYPE_IQ3_S);
    has_type(g, "blk.3.attn_v.weight", TYPE_Q4_K);
    has_type(g, "blk.3.attn_output.weight", TYPE_Q4_K);
    has_type(g, "blk.0.ffn_down.weight", TYPE_Q5_0);   /* for Q4_K, */
    has_type(g, "blk.1.ffn_down.weight", TYPE_IQ4_NL); /* and IQ3_S */
    assert_int_equal(gguf_int(g, "general.file_type", -1), 27);
    gguf_close(&g);

    o = options(temp_path("two.gguf"), "IQ2_M");
    o.importance = temp_path("imatrix");
    write_importance(o.importance, "blk.3.attn_q.weight", toy.n_embd);
    MUST(drey_quantize, &o, &report);
    MUST(gguf_open, &g, o.output);
    has_type(g, "output.weight", TYPE_Q5_K);
    has_type(g, "token_embd.weight", TYPE_IQ3_S);
    has_type(g, "blk.3.attn_q.weight", TYPE_IQ2_S);
    has_type(g, "blk.4.attn_q.weight", TYPE_Q2_K); /* of which nothing is known */
    has_type(g, "blk.3.attn_output.weight", TYPE_IQ3_S);
    assert_int_equal(report.n_unimportant, report.n_changed - 1);
    const gguf_tensor *t = gguf_find_tensor(g, "blk.3.attn_q.weight");
    assert_int_equal(t->n_bytes, t->dims[1] * (t->dims[0] / 256) * 82);
    gguf_close(&g);
    drey_model *m; /* and it runs */
    MUST(drey_model_open, &m, o.output);
    drey_model_close(&m);
}

/* The same bytes from any number of threads, in little memory, and from a split model. */
TEST(same_file_from_any_threads)
{
    toy_options toy = floats();
    drey_quantize_options o;
    for (int i = 0; i < 2; i++) {
        o = options(temp_path("one.gguf"), i ? "Q3_K_M" : "IQ3_S");
        o.force = true;
        toy.n_layers = i ? 8 : 1;
        toy_write(o.input, &toy);
        MUST(drey_quantize, &o, NULL);
        o.output = temp_path("three.gguf");
        o.n_threads = 3;
        MUST(drey_quantize, &o, NULL);
        assert_true(same_files(temp_path("one.gguf"), temp_path("three.gguf")));
    }
    o.output = temp_path("small.gguf");
    o.memory_bytes = 1 << 20;
    REFUSED(DREY_ERR_MEMORY, "M of memory", drey_quantize, &o, NULL);
    assert_int_not_equal(access(o.output, F_OK), 0);
    toy.n_parts = 2;
    toy_write(temp_path("split-00001-of-00002.gguf"), &toy);
    o = options(temp_path("joined.gguf"), "Q3_K_M");
    o.input = temp_path("split-00001-of-00002.gguf");
    MUST(drey_quantize, &o, NULL);
    gguf *g;
    MUST(gguf_open, &g, o.output);
    assert_int_equal(gguf_n_shards(g), 1);
    assert_null(gguf_find_key(g, "split.count"));
    has_type(g, "blk.7.attn_v.weight", TYPE_Q4_K);
    gguf_close(&g);
}

static void refused(const drey_quantize_options *o, drey_status status, const char *says)
{
    char partial[4096];
    REFUSED(status, says, drey_quantize, o, NULL);
    snprintf(partial, sizeof partial, "%s.partial", o->output);
    assert_int_not_equal(access(partial, F_OK), 0);
}

TEST(what_is_refused)
{
    toy_options toy = floats();
    const char *to = temp_path("to.gguf");
    drey_quantize_options o = options(to, "Q4_K_M");
    toy_write(o.input, &toy);
    o.type = "Q4_K_X";
    refused(&o, DREY_ERR_USAGE, "is no type to quantise to; there are IQ2_XXS");
    static const char *const few[] = {"IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS", "IQ3_XS"};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        o.type = few[i];
        refused(&o, DREY_ERR_USAGE, "takes an importance matrix");
    }
    o = options(temp_path("f16.gguf"), "Q4_K_M");
    refused(&o, DREY_ERR_USAGE, "is what is read");
    bytes_file_write(to, "mine", 4);
    o = options(to, "Q4_K_M");
    refused(&o, DREY_ERR_USAGE, "exists; name another file");
    assert_int_equal(unlink(to), 0);
    o.input = temp_path("none.gguf");
    refused(&o, DREY_ERR_IO, "No such file");

    o.input = temp_path("quantised.gguf");
    toy.type = TYPE_Q4_K;
    toy.n_ff = 512;
    toy_write(o.input, &toy);
    o.type = "Q3_K_M";
    refused(&o, DREY_ERR_UNSUPPORTED, "is quantised already");
    assert_int_not_equal(access(to, F_OK), 0);
    o.requantize = true;
    MUST(drey_quantize, &o, NULL);
}

/* A file that ends early, a type that is none, and numbers that are not finite. */
TEST(damaged_input)
{
    const toy_options toy = floats();
    const char *to = temp_path("to.gguf"), *damaged = temp_path("damaged.gguf");
    drey_quantize_options o = options(to, "Q4_K_M");
    size_t n;
    toy_write(o.input, &toy);
    uint8_t *bytes = bytes_file_read(o.input, &n);
    o.input = damaged;
    for (size_t cut = n - 1; cut > 64; cut = cut / 3 * 2) {
        bytes_file_write(damaged, bytes, cut);
        refused(&o, DREY_ERR_FORMAT, "");
    }
    gguf *g;
    MUST(gguf_open, &g, temp_path("f16.gguf"));
    const gguf_tensor *t = gguf_find_tensor(g, "blk.2.ffn_up.weight");
    const uint64_t infinite = t->offset;
    gguf_close(&g);
    memcpy(bytes + infinite, "\x00\x7c", 2);
    bytes_file_write(damaged, bytes, n);
    refused(&o, DREY_ERR_FORMAT, "blk.2.ffn_up.weight has numbers that are not finite");
    uint8_t *info = memmem(bytes, n, "blk.2.ffn_up.weight", 19);
    assert_non_null(info);
    info[19 + 4 + 2 * 8] = 99; /* n_dims, dims, the type */
    bytes_file_write(damaged, bytes, n);
    refused(&o, DREY_ERR_UNSUPPORTED, "");
    assert_int_not_equal(access(to, F_OK), 0);
    free(bytes);
}

/* ---- Importance matrices ---- */

/* Writes a file of the older kind: one entry. */
static void write_old(gguf_writer *w, const char *name, int32_t n, float value)
{
    *w = (gguf_writer){0};
    writer_u32(w, 1);
    writer_u32(w, (uint32_t)strlen(name));
    writer_put(w, name, strlen(name));
    writer_u32(w, 2); /* calls */
    writer_u32(w, (uint32_t)n);
    for (int32_t i = 0; i < n; i++) {
        float sum = 2 * value * (float)(i + 1);
        writer_put(w, &sum, sizeof sum);
    }
    writer_u32(w, 7);
    writer_u32(w, 4);
    writer_put(w, "text", 4);
}

static void write_new(gguf_writer *w, const char *name, int32_t n, float value)
{
    char sums[80], counts[80];
    snprintf(sums, sizeof sums, "%s.in_sum2", name);
    snprintf(counts, sizeof counts, "%s.counts", name);
    *w = (gguf_writer){0};
    writer_begin(w, 2, 2);
    writer_key_text(w, "general.type", "imatrix");
    writer_key_u32(w, "imatrix.chunk_count", 7);
    writer_tensor(w, sums, TYPE_F32, (int64_t[]){n, 1}, 2, 0);
    writer_tensor(w, counts, TYPE_F32, (int64_t[]){1, 1}, 2, ((uint64_t)n * 4 + 31) / 32 * 32);
    writer_align(w, 32);
    for (int32_t i = 0; i < n; i++) {
        float sum = 10 * value * (float)(i + 1);
        writer_put(w, &sum, sizeof sum);
    }
    writer_align(w, 32);
    writer_put(w, &(float){10}, sizeof(float));
}

static void write_importance(const char *path, const char *name, int32_t n)
{
    gguf_writer w;
    write_old(&w, name, n, 1);
    assert_true(writer_save(&w, path));
    writer_free(&w);
}

TEST(importance_of_both_kinds)
{
    const char *path = temp_path("imatrix");
    for (int kind = 0; kind < 2; kind++) {
        gguf_writer w;
        importance m;
        (kind ? write_new : write_old)(&w, "blk.0.attn_q.weight", 256, 0.5f);
        assert_true(writer_save(&w, path));
        MUST(importance_read, &m, path);
        const importance_entry *e = importance_find(&m, "blk.0.attn_q.weight");
        assert_non_null(e);
        assert_null(importance_find(&m, "blk.0.attn_k.weight"));
        assert_int_equal(e->n, 256);
        assert_int_equal(m.n_chunks, 7);
        assert_near(e->squares[255], 128, 1e-4);
        importance_free(&m);
        for (size_t cut = 0; cut + 12 < w.n; cut += cut < 200 ? 1 : 97) {
            bytes_file_write(path, w.bytes, cut);
            drey_error err;
            assert_int_equal(importance_read(&m, path, &err), DREY_ERR_FORMAT);
            importance_free(&m);
        }
        writer_free(&w);
    }
}

TEST(importance_of_another_model)
{
    const toy_options toy = floats();
    const char *path = temp_path("imatrix");
    drey_quantize_options o = options(temp_path("to.gguf"), "Q4_K_M");
    drey_quantize_report report;
    gguf_writer w;
    toy_write(o.input, &toy);
    o.importance = path;
    write_old(&w, "blk.0.attn_q.weight", 512, 1);
    assert_true(writer_save(&w, path));
    refused(&o, DREY_ERR_MISMATCH, "rows of 512 there and of 256 here");
    writer_free(&w);
    write_new(&w, "blk.60.attn_q.weight", 256, 1);
    assert_true(writer_save(&w, path));
    refused(&o, DREY_ERR_MISMATCH, "this one has no tensor blk.60.attn_q.weight");
    writer_free(&w);
    write_new(&w, "blk.0.attn_q.weight", 256, NAN);
    assert_true(writer_save(&w, path));
    refused(&o, DREY_ERR_FORMAT, "no mean squares");
    writer_free(&w);
    write_new(&w, "blk.0.attn_q.weight", 256, 1);
    assert_true(writer_save(&w, path));
    MUST(drey_quantize, &o, &report);
    assert_int_equal(report.n_unimportant, report.n_changed - 1);
    writer_free(&w);
}
