/* Writes the first inputs of a fuzz target; run by hand when a format changes.
 * Usage: make_corpus gguf|exit|medusa|importance FOLDER */
#include "support/heads_file.h"
#include "support/predictors.h"
#include "support/toy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *folder;
static bool failed;

static const char *path_of(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ---- gguf: toys of both vocabularies cut before their tensors, and every kind of value ---- */

static void save_gguf(gguf_writer *w, const char *name)
{
    if (!writer_save(w, path_of(name))) {
        perror(path_of(name));
        failed = true;
    }
    writer_free(w);
}

static void save_toy(const char *name, const char *architecture, const char *pre)
{
    gguf_writer w = {0};
    gguf *g;
    toy_options o = toy_default();
    o.architecture = architecture;
    o.pre = pre;
    o.n_layers = 1;
    o.n_vocab = 300;
    toy_build(&w, &o, 0);
    if (gguf_parse(&g, w.bytes, w.n, w.n, NULL) != DREY_OK) {
        failed = true;
        return;
    }
    w.n = (size_t)gguf_tensor_at(g, 0)->offset;
    gguf_close(&g);
    save_gguf(&w, name);
}

static void save_kinds(void)
{
    gguf_writer w = {0};
    static const uint8_t ones[8] = {1};
    static const struct {
        gguf_kind kind;
        size_t n_bytes;
    } kinds[] = {{GGUF_U8, 1},  {GGUF_I8, 1},  {GGUF_U16, 2}, {GGUF_I16, 2},
                 {GGUF_U32, 4}, {GGUF_I32, 4}, {GGUF_F32, 4}, {GGUF_BOOL, 1},
                 {GGUF_U64, 8}, {GGUF_I64, 8}, {GGUF_F64, 8}};
    enum { n_kinds = sizeof kinds / sizeof kinds[0] };
    writer_begin(&w, 2, 2 * n_kinds + 3);
    for (size_t i = 0; i < n_kinds; i++) {
        char name[16];
        snprintf(name, sizeof name, "one.%zu", i);
        writer_key(&w, name, kinds[i].kind);
        writer_put(&w, ones, kinds[i].n_bytes);
        snprintf(name, sizeof name, "two.%zu", i);
        writer_key_array(&w, name, kinds[i].kind, 2);
        writer_put(&w, ones, kinds[i].n_bytes);
        writer_put(&w, ones, kinds[i].n_bytes);
    }
    writer_key_text(&w, "text", "a\x1b[31m\xc3\xa9\xff");
    writer_key_array(&w, "texts", GGUF_STRING, 2);
    writer_string(&w, "");
    writer_string(&w, "b");
    writer_key_u32(&w, "general.alignment", 64);
    writer_tensor(&w, "a", TYPE_F32, (int64_t[]){3, 1, 2, 1}, 4, 64);
    writer_tensor(&w, "b", TYPE_Q4_K, (int64_t[]){256}, 1, 128);
    writer_align(&w, 64);
    save_gguf(&w, "kinds");
}

static void make_gguf(void)
{
    gguf_writer empty = {0};
    writer_begin(&empty, 0, 0);
    save_gguf(&empty, "empty-model");
    save_kinds();
    save_toy("bpe", "qwen2", "smollm");
    save_toy("sentencepiece", "llama", NULL);
}

/* ---- exit: good files of each kind, of another model, and of numbers out of their bounds ---- */

static void save_exit(exit_predictors *p, uint64_t identity, const char *name)
{
    drey_error err = {0};
    if (exit_write_as(p, path_of(name), identity, "Toy", &err) != DREY_OK) {
        fprintf(stderr, "%s\n", err.message);
        failed = true;
    }
    exit_close(p);
}

static void make_exit(void)
{
    exit_predictors p;
    make_predictors(&p, 4, 2, 12, 2, 1);
    save_exit(&p, 5, "speculative");
    make_predictors(&p, 3, 1, 16, 1, 2);
    p.source = DREY_EXIT_FROM_TARGET;
    p.source_layer = 1;
    save_exit(&p, 5, "target");
    make_predictors(&p, 4, 2, 12, 2, 1);
    save_exit(&p, 6, "foreign");
    make_predictors(&p, 4, 2, 12, 2, 1);
    p.threshold = 2;
    save_exit(&p, 5, "threshold");
    make_predictors(&p, 4, 2, 12, 2, 1);
    p.expected[4] = 0.9f;
    save_exit(&p, 5, "shares");
}

/* ---- medusa: good files, and files that say one thing that cannot be ---- */

static void make_medusa(void)
{
    const heads_file good = {.architecture = MEDUSA_ARCHITECTURE,
                             .version = MEDUSA_VERSION,
                             .target = 5,
                             .shape = {.n_heads = 2, .n_embd = 32, .n_ids = 320, .scale = 1},
                             .type = TYPE_Q8_0,
                             .spread = 0.02f,
                             .seed = 5};
    static const struct {
        int32_t ids[4], n;
        const char *name;
    } lists[] = {{{3, 64, 65, 319}, 4, "few"}, {{0}, 0, "nobody"},      {{1, 7, 7, 8}, 4, "twice"},
                 {{9, 2}, 2, "falling"},       {{0, 320}, 2, "beyond"}, {{0, -1}, 2, "huge"}};
    heads_file h = good;
    heads_file_write(path_of("all"), &good);
    h.shape.n_ids = 64;
    h.shape.n_heads = 1;
    h.type = TYPE_F32;
    heads_file_write(path_of("slice"), &h);
    h.target = 6;
    heads_file_write(path_of("foreign"), &h);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        h = good;
        h.ids = lists[i].ids;
        h.shape.n_ids = lists[i].n;
        heads_file_write(path_of(lists[i].name), &h);
    }
    h = good;
    h.shape.n_ids = 321;
    heads_file_write(path_of("vocabulary"), &h);
    h = good;
    h.version = 2;
    heads_file_write(path_of("version"), &h);
    h = good;
    h.shape.scale = NAN;
    heads_file_write(path_of("scale"), &h);
    h = good;
    h.shape.accuracy[1][2] = 2;
    heads_file_write(path_of("accuracy"), &h);
}

/* ---- importance: good files of both kinds, and files that say one thing that cannot be ---- */

enum { COLUMNS = 4 };

static void put_floats(gguf_writer *w, int32_t n, float value)
{
    for (int32_t i = 0; i < n; i++)
        writer_put(w, &value, sizeof value);
    writer_align(w, 32);
}

/* Sums of n experts, or 1, of one matrix, or twice the same; and of each the count. */
static void save_sums(const char *name, int32_t n, int32_t n_counts, float sum, float count)
{
    gguf_writer w = {0};
    writer_begin(&w, 2, 4);
    writer_key_text(&w, "general.type", "imatrix");
    writer_key_array(&w, "imatrix.datasets", GGUF_STRING, 1);
    writer_string(&w, "text\x1b");
    writer_key_u32(&w, "imatrix.chunk_count", 3);
    writer_key_u32(&w, "imatrix.chunk_size", 512);
    const uint64_t at = ((uint64_t)n * COLUMNS * sizeof(float) + 31) / 32 * 32;
    writer_tensor(&w, "blk.0.attn_q.weight.in_sum2", TYPE_F32, (int64_t[]){COLUMNS, n}, 2, 0);
    writer_tensor(&w, "blk.0.attn_q.weight.counts", TYPE_F32, (int64_t[]){1, n_counts}, 2, at);
    writer_align(&w, 32);
    put_floats(&w, n * COLUMNS, sum);
    put_floats(&w, n_counts, count);
    save_gguf(&w, name);
}

/* Saves a file of the older kind. */
static void save_old(const char *name, int32_t n_entries, int32_t n_said, const char *matrix)
{
    gguf_writer w = {0};
    writer_u32(&w, (uint32_t)n_entries);
    for (int32_t i = 0; i < n_entries; i++) {
        writer_u32(&w, (uint32_t)strlen(matrix));
        writer_put(&w, matrix, strlen(matrix));
        writer_u32(&w, 2);
        writer_u32(&w, (uint32_t)n_said);
        for (int32_t j = 0; j < COLUMNS; j++)
            writer_put(&w, &(float){1}, sizeof(float));
    }
    writer_u32(&w, 3);
    writer_u32(&w, 4);
    writer_put(&w, "text", 4);
    save_gguf(&w, name);
}

static void make_importance(void)
{
    save_sums("one", 1, 1, 10, 5);
    save_sums("experts", 3, 3, 10, 5);
    save_sums("unused", 2, 2, 0, 0);
    save_sums("counts", 2, 1, 10, 5);
    save_sums("negative", 1, 1, -1, 5);
    save_sums("nan", 1, 1, NAN, 5);
    save_old("old", 1, COLUMNS, "blk.0.attn_q.weight");
    save_old("old-twice", 2, COLUMNS, "blk.0.attn_q.weight");
    save_old("old-long", 1, 1 << 27, "blk.0.attn_q.weight");
    save_old("old-name", 1, COLUMNS, "a\nb");
}

int main(int n_args, char **args)
{
    const char *subject = n_args == 3 ? args[1] : "";
    folder = n_args == 3 ? args[2] : NULL;
    if (strcmp(subject, "gguf") == 0)
        make_gguf();
    else if (strcmp(subject, "exit") == 0)
        make_exit();
    else if (strcmp(subject, "medusa") == 0)
        make_medusa();
    else if (strcmp(subject, "importance") == 0)
        make_importance();
    else
        return 2;
    return failed;
}
