/* GGUF files on disk: what is no model file, headers longer than a read, split models, the page
 * cache, and what drey_inspect shows. */
#include "gguf/gguf.h"
#include "support/bytes_file.h"
#include "support/faults/child.h"
#include "support/scene.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static gguf *open_or_fail(const char *path)
{
    gguf *g;
    MUST(gguf_open, &g, path);
    return g;
}

/* The message must name the path and the part, and say what to do. */
static void refused(const char *path, drey_status code, const char *part)
{
    gguf *g;
    drey_error err = {0};
    must_refuse(gguf_open(&g, path, &err), code, part, &err);
    assert_null(g);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strpbrk(err.message, ",;"));
}

/* ---- What is no model ---- */

TEST(refuses_what_is_no_file)
{
    refused(temp_path("none.gguf"), DREY_ERR_IO, "No such file");
    const char *folder = temp_path("folder.gguf");
    assert_int_equal(mkdir(folder, 0700), 0);
    refused(folder, DREY_ERR_IO, "is a directory");
    const char *pipe = temp_path("pipe.gguf");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    refused(pipe, DREY_ERR_IO, "is not a regular file"); /* and does not wait for a writer */
    refused("/dev/null", DREY_ERR_IO, "is not a regular file");
    const char *empty = temp_path("empty.gguf");
    bytes_file_write(empty, "", 0);
    refused(empty, DREY_ERR_FORMAT, "is empty");
}

TEST(refuses_other_files)
{
    const char *path = temp_path("other.gguf");
    bytes_file_write(path, "GG", 2);
    refused(path, DREY_ERR_FORMAT, "is not a GGUF file");
    bytes_file_write(path, "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n", 59);
    refused(path, DREY_ERR_FORMAT, "is a Git LFS pointer");
    bytes_file_write(path, "<!DOCTYPE html><html><body>Not found</body></html>", 50);
    refused(path, DREY_ERR_FORMAT, "is a web page");
    bytes_file_write(path, "GGUF", 4);
    refused(path, DREY_ERR_FORMAT, "ends inside its header");
}

TEST(refuses_a_download_that_stopped)
{
    const char *path = temp_path("stopped.gguf");
    toy_options o = toy_default();
    toy_write(path, &o);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 2), 0);
    refused(path, DREY_ERR_FORMAT, "it is not all there, fetch it again");
    assert_int_equal(truncate(path, 3000), 0);
    refused(path, DREY_ERR_FORMAT, "ends inside its header (3000 bytes)");
}

/* 10 when memory grew by more than 8 MiB, 11 when the file was not refused. */
static int refuse_in_little_memory(void *path)
{
    struct rusage before, after;
    gguf *g;
    drey_error err = {0};
    getrusage(RUSAGE_SELF, &before);
    drey_status status = gguf_open(&g, path, &err);
    getrusage(RUSAGE_SELF, &after);
    if (after.ru_maxrss - before.ru_maxrss > 8 << 10)
        return 10;
    return status == DREY_ERR_FORMAT && strstr(err.message, "no model has more") ? 0 : 11;
}

/* A file of nothing but keys or tensors, which would take several times its own size. */
TEST(refuses_headers_that_take_much)
{
    const char *path = temp_path("keys.gguf");
    for (int tensors = 0; tensors < 2; tensors++) {
        enum { N = 500000 };
        gguf_writer w = {0};
        writer_begin(&w, tensors ? N : 0, tensors ? 0 : N);
        for (int i = 0; i < N; i++) {
            char name[16];
            int64_t dims[1] = {32};
            snprintf(name, sizeof name, "%07d", i);
            if (tensors)
                writer_tensor(&w, name, TYPE_F32, dims, 1, 0);
            else
                writer_key_bool(&w, name, true);
        }
        assert_true(writer_save(&w, path));
        writer_free(&w);
        assert_int_equal(child_run(refuse_in_little_memory, (void *)(uintptr_t)path), 0);
    }
}

/* ---- Headers ---- */

/* Keys point into memory that grows while it is read: they must not move. */
TEST(reads_a_long_header)
{
    enum { n = 200000 };
    const char *path = temp_path("long-header.gguf");
    gguf_writer w = {0};
    char text[32];
    writer_begin(&w, 1, 3);
    writer_key_text(&w, "first", "one");
    writer_key_array(&w, "texts", GGUF_STRING, n);
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, "text %d", i);
        writer_string(&w, text);
    }
    writer_key_u32(&w, "last", 3);
    writer_tensor(&w, "t", TYPE_F32, (int64_t[]){8}, 1, 0);
    writer_align(&w, 32);
    size_t n_header = w.n;
    writer_put(&w, (uint8_t[32]){0}, 32);
    assert_true(writer_save(&w, path));
    writer_free(&w);

    gguf *g = open_or_fail(path);
    assert_int_equal(gguf_int(g, "last", 0), 3);
    assert_memory_equal(gguf_text(g, "first").text, "one", 3);
    gguf_cursor cursor = gguf_strings(gguf_find_key(g, "texts"));
    gguf_string string = {0};
    for (int i = 0; i < n; i++)
        assert_true(gguf_next_string(&cursor, &string));
    assert_memory_equal(string.text, "text 199999", string.n_bytes);
    assert_in_range(gguf_header_bytes(g), n_header - 100, n_header + 8192);
    assert_int_equal(gguf_find_tensor(g, "t")->offset, n_header);
    gguf_close(&g);
}

/* A sparse file whose one key claims to be longer than any header: no such amount is read. */
TEST(refuses_an_endless_header)
{
    const char *path = temp_path("endless.gguf");
    gguf_writer w = {0};
    writer_begin(&w, 0, 1);
    writer_key(&w, "text", GGUF_STRING);
    writer_u64(&w, (uint64_t)900 << 20);
    assert_true(writer_save(&w, path));
    writer_free(&w);
    assert_int_equal(truncate(path, (off_t)1 << 30), 0);
    refused(path, DREY_ERR_FORMAT, "has a header of more than 64.0M");
}

/* The budget counts the page cache, so reading a header must leave nothing there. */
TEST(leaves_no_page_cache)
{
    const char *path = temp_path("cache.gguf");
    toy_options o = toy_default();
    toy_write(path, &o);
    drop_cached_pages(path);
    if (cached_pages(path) != 0) {
        print_message("not run: this file system keeps its files in memory\n");
        return;
    }
    gguf *g = open_or_fail(path);
    assert_int_equal(cached_pages(path), 0);
    gguf_close(&g);
}

/* ---- Split models ---- */

static void write_split(const char *first, int32_t n_parts, uint64_t seed)
{
    toy_options o = toy_default();
    o.n_parts = n_parts;
    o.seed = seed;
    toy_write(first, &o);
}

TEST(opens_split_models)
{
    const char *whole = temp_path("whole.gguf");
    const char *first = temp_path("split-00001-of-00003.gguf");
    write_split(whole, 1, 5);
    write_split(first, 3, 5);
    gguf *a = open_or_fail(whole), *b = open_or_fail(first);
    assert_int_equal(gguf_n_shards(a), 1);
    assert_int_equal(gguf_n_shards(b), 3);
    assert_string_equal(gguf_shard_path(b, 0), first);
    assert_string_equal(gguf_shard_path(b, 2), temp_path("split-00003-of-00003.gguf"));
    assert_int_equal(gguf_n_tensors(a), gguf_n_tensors(b));
    bool used[3] = {false};
    uint64_t file_bytes = 0;
    for (uint64_t i = 0; i < gguf_n_tensors(a); i++) {
        const gguf_tensor *x = gguf_tensor_at(a, i), *y = gguf_find_tensor(b, x->name);
        assert_non_null(y);
        assert_int_equal(x->n_bytes, y->n_bytes);
        used[y->part] = true;
        uint8_t bytes[2][64];
        FILE *f[2] = {fopen(whole, "rb"), fopen(gguf_shard_path(b, y->part), "rb")};
        uint64_t at[2] = {x->offset, y->offset};
        for (int j = 0; j < 2; j++) {
            assert_non_null(f[j]);
            assert_int_equal(fseek(f[j], (long)at[j], SEEK_SET), 0);
            assert_int_equal(fread(bytes[j], 1, sizeof bytes[j], f[j]), sizeof bytes[j]);
            fclose(f[j]);
        }
        assert_memory_equal(bytes[0], bytes[1], sizeof bytes[0]);
    }
    for (int32_t i = 0; i < 3; i++) {
        struct stat st;
        assert_true(used[i]);
        assert_int_equal(stat(gguf_shard_path(b, i), &st), 0);
        file_bytes += (uint64_t)st.st_size;
    }
    assert_int_equal(gguf_file_bytes(b), file_bytes);
    gguf_close(&a);
    gguf_close(&b);
}

TEST(refuses_broken_splits)
{
    const char *first = temp_path("broken-00001-of-00003.gguf");
    const char *second = temp_path("broken-00002-of-00003.gguf");
    const char *third = temp_path("broken-00003-of-00003.gguf");
    write_split(first, 3, 5);
    refused(second, DREY_ERR_FORMAT, "is part 2 of 3 of a split model; name the first part");
    assert_int_equal(unlink(third), 0);
    gguf *g;
    drey_error err = {0};
    assert_int_equal(gguf_open(&g, first, &err), DREY_ERR_IO);
    assert_non_null(strstr(err.message, third));
    assert_non_null(strstr(err.message, "part 3 of 3 of a split model; put all parts into one"));
    assert_int_equal(link(second, third), 0);
    REFUSED(DREY_ERR_FORMAT, "broken-00003-of-00003.gguf is not part 3 of 3", gguf_open, &g, first);
    assert_int_equal(unlink(third), 0);
    bytes_file_write(third, "GGUF is a format", 16);
    REFUSED(DREY_ERR_UNSUPPORTED, third, gguf_open, &g, first);
    const char *renamed = temp_path("renamed.gguf");
    assert_int_equal(rename(first, renamed), 0);
    refused(renamed, DREY_ERR_FORMAT, "is the first of 3 parts; name them");
}

/* Two parts with given claims and, unless name is NULL, a tensor each; returns the first's path. */
static const char *write_pair(const char *name, uint16_t count, int32_t n_total)
{
    const char *paths[2] = {temp_path("pair-00001-of-00002.gguf"),
                            temp_path("pair-00002-of-00002.gguf")};
    for (uint16_t i = 0; i < 2; i++) {
        gguf_writer w = {0};
        writer_begin(&w, name ? 1 : 0, 3);
        writer_key_u16(&w, "split.no", i);
        writer_key_u16(&w, "split.count", i ? 2 : count);
        writer_key_i32(&w, "split.tensors.count", n_total);
        if (name)
            writer_tensor(&w, i ? name : "a", TYPE_F32, (int64_t[]){8}, 1, 0);
        writer_align(&w, 32);
        writer_put(&w, (uint8_t[32]){0}, name ? 32 : 0);
        assert_true(writer_save(&w, paths[i]));
        writer_free(&w);
    }
    return paths[0];
}

TEST(refuses_parts_that_do_not_fit)
{
    gguf *g = open_or_fail(write_pair("b", 2, 2));
    assert_int_equal(gguf_find_tensor(g, "b")->part, 1);
    gguf_close(&g);
    refused(write_pair("a", 2, 2), DREY_ERR_FORMAT, "has the tensor a twice");
    refused(write_pair("b", 2, 3), DREY_ERR_FORMAT, "have 2 tensors instead of 3");
    refused(write_pair("b", 3, 2), DREY_ERR_FORMAT, "is the first of 3 parts; name them");
}

/* llama-gguf-split leaves a count of 0 in a file that it merged. */
TEST(opens_merged_splits)
{
    const char *path = temp_path("merged.gguf");
    gguf_writer w = {0};
    writer_begin(&w, 0, 3);
    writer_key_u16(&w, "split.no", 0);
    writer_key_u16(&w, "split.count", 0);
    writer_key_i32(&w, "split.tensors.count", 291);
    writer_align(&w, 32);
    assert_true(writer_save(&w, path));
    writer_free(&w);
    gguf *g = open_or_fail(path);
    assert_int_equal(gguf_n_shards(g), 1);
    gguf_close(&g);
}

/* A split model may begin with a part that holds keys alone; here all parts do. */
TEST(opens_parts_without_tensors)
{
    const char *first = write_pair(NULL, 2, 0);
    gguf *g = open_or_fail(first);
    assert_int_equal(gguf_n_tensors(g), 0);
    gguf_close(&g);
}

/* ---- Inspect ---- */

typedef struct seen {
    uint64_t n_keys, n_tensors, file_bytes;
    int n_called;
    char name[64], type[64], value[600]; /* fields of the key whose name is `name` */
    bool runnable;                       /* the last tensor is runnable */
    char tensor_type[32];
} seen;

static void on_header(void *user, uint32_t version, uint64_t n_keys, uint64_t n_tensors,
                      uint64_t file_bytes)
{
    seen *s = user;
    assert_int_equal(version, 3);
    s->n_keys = n_keys;
    s->n_tensors = n_tensors;
    s->file_bytes = file_bytes;
}

static void on_key(void *user, const char *name, const char *type, const char *value)
{
    seen *s = user;
    s->n_called++;
    if (strcmp(name, s->name) != 0)
        return;
    snprintf(s->type, sizeof s->type, "%s", type);
    snprintf(s->value, sizeof s->value, "%s", value);
}

static void on_tensor(void *user, const char *name, const char *type, const int64_t *dims,
                      int n_dims, uint64_t n_bytes, uint64_t offset, bool runnable)
{
    seen *s = user;
    assert_true(name[0] && n_dims > 0 && dims[0] > 0 && n_bytes > 0 && offset > 0);
    s->n_called++;
    s->runnable = runnable;
    snprintf(s->tensor_type, sizeof s->tensor_type, "%s", type);
}

static seen inspect(const char *path, const char *key)
{
    seen s = {0};
    snprintf(s.name, sizeof s.name, "%s", key);
    drey_inspector inspector = {
        .header = on_header, .key = on_key, .tensor = on_tensor, .user = &s};
    MUST(drey_inspect, path, &inspector);
    assert_int_equal((uint64_t)s.n_called, s.n_keys + s.n_tensors);
    return s;
}

static void check_key(const char *path, const char *key, const char *type, const char *value)
{
    seen s = inspect(path, key);
    assert_string_equal(s.type, type);
    assert_string_equal(s.value, value);
}

TEST(inspects_keys)
{
    const char *path = temp_path("kinds.gguf");
    gguf_writer w = {0};
    char digits[301];
    memset(digits, '1', 300), digits[300] = '\0';
    writer_begin(&w, 1, 14);
    writer_key_f32(&w, "whole", 1e5f);
    writer_key_f32(&w, "zero", -0.0f);
    writer_key_u32(&w, "number", 4000000000u);
    writer_key(&w, "negative", GGUF_I64), writer_u64(&w, (uint64_t)-5);
    writer_key(&w, "huge", GGUF_U64), writer_u64(&w, UINT64_MAX);
    writer_key_f32(&w, "float", 1e-6f);
    double third = 1.0 / 3;
    writer_key(&w, "double", GGUF_F64), writer_put(&w, &third, 8);
    writer_key_bool(&w, "yes", true);
    writer_key_text(&w, "text", "a\n\x1b[31m\xc3\xa9 \xff\xc2\x9b");
    writer_key_text(&w, "long", digits);
    writer_key_array(&w, "texts", GGUF_STRING, 2), writer_string(&w, ""), writer_string(&w, "b");
    writer_key_array(&w, "numbers", GGUF_U8, 9), writer_put(&w, "\1\2\3\4\5\6\7\10\11", 9);
    writer_key_array(&w, "none", GGUF_U8, 0);
    writer_key_text(&w, "a\x07\xe4\xb8\xad", "");
    writer_tensor(&w, "t", 41, (int64_t[]){256, 2}, 2, 0);
    writer_align(&w, 32);
    writer_put(&w, (uint8_t[72]){0}, 72);
    assert_true(writer_save(&w, path));
    check_key(path, "whole", "f32", "100000");
    check_key(path, "zero", "f32", "0");
    check_key(path, "number", "u32", "4000000000");
    check_key(path, "negative", "i64", "-5");
    check_key(path, "huge", "u64", "18446744073709551615");
    check_key(path, "float", "f32", "1e-06");
    check_key(path, "double", "f64", "0.3333333333333333");
    check_key(path, "yes", "bool", "true");
    check_key(path, "text", "text", "a\\n\\x1b[31m\xc3\xa9 \\xff\\xc2\\x9b");
    memcpy(digits + 200, "...", 4);
    check_key(path, "long", "text", digits);
    check_key(path, "texts", "text[2]", "[\"\", \"b\"]");
    check_key(path, "numbers", "u8[9]", "[1, 2, 3, 4, 5, 6, 7, 8, ...]");
    check_key(path, "none", "u8[0]", "[]");
    check_key(path, "a\\x07\xe4\xb8\xad", "text", "");
    seen s = inspect(path, "");
    assert_string_equal(s.tensor_type, "Q1_0");
    assert_false(s.runnable);
    assert_int_equal(s.file_bytes, w.n);
    writer_free(&w);
}

TEST(inspects_a_toy)
{
    const char *path = temp_path("inspect.gguf");
    toy_options o = toy_default();
    toy_write(path, &o);
    check_key(path, "general.architecture", "text", "llama");
    check_key(path, "llama.block_count", "u32", "3");
    seen s = inspect(path, "tokenizer.ggml.merges");
    assert_memory_equal(s.value, "[\"\xc4\xa0 t\", \"\xc4\xa0t h\", ", 18);
    assert_true(s.runnable);
    assert_int_equal(s.n_tensors, 3 * 9 + 3);

    drey_error err = {0};
    drey_inspector nothing = {0};
    MUST(drey_inspect, path, &nothing);
    assert_int_equal(drey_inspect(NULL, &nothing, &err), DREY_ERR_USAGE);
    assert_int_equal(drey_inspect(path, NULL, &err), DREY_ERR_USAGE);
    assert_int_equal(drey_inspect(temp_path("none"), &nothing, &err), DREY_ERR_IO);
}

TEST(inspects_a_real_model)
{
    const char *path = real_model("SmolLM2-135M-Instruct.Q4_1.gguf");
    check_key(path, "llama.embedding_length", "u32", "576");
    check_key(path, "tokenizer.ggml.pre", "text", "smollm");
    seen s = inspect(path, "tokenizer.ggml.merges");
    assert_string_equal(s.type, "text[48900]");
    assert_int_equal(s.n_tensors, 272);
    assert_int_equal(s.file_bytes, 98362432);
    assert_true(s.runnable);
}
