/* Sidecars: the bytes are the packed weights, texts are the same with and without, a sidecar that
 * does not fit is refused for a reason that is said, and whatever ends drey_prepare leaves a good
 * one or none. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/path.h"
#include "common/hash.h"
#include "engine/config.h"
#include "kernel/kernel.h"
#include "support/bytes_file.h"
#include "support/writing.h"
#include "weights/sidecar.h"
#include "unit/device.h"

enum { N_TEXT = 12 };

/* Large enough that matrices have several pieces and most pages are not sampled. */
static toy_options large_toy(void)
{
    toy_options toy = toy_default();
    toy.n_embd = 256;
    toy.n_ff = 4096;
    toy.n_layers = 2;
    toy.n_padded = 6000;
    return toy;
}

static drey_model *toy_model(const toy_options *toy)
{
    return toy_open(toy->n_parts > 1 ? "m-00001-of-00003.gguf" : "m.gguf", toy);
}

static drey_prepare_report prepare(const drey_model *m, const char *output, bool check, bool force)
{
    const drey_prepare_options o = {.model = m, .output = output, .check = check, .force = force};
    drey_prepare_report report;
    MUST(drey_prepare, &o, &report);
    assert_true(report.sidecar_bytes > 0);
    return report;
}

static void refused(const drey_prepare_options *o, drey_status status, const char *says)
{
    drey_prepare_report report;
    REFUSED(status, says, drey_prepare, o, &report);
    assert_false(report.written);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void change_byte(const char *path, int64_t at, bool keep_time)
{
    struct stat before;
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &before), 0);
    assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
    fputc(c ^ 0x10, f);
    assert_int_equal(fclose(f), 0);
    struct timespec times[2] = {before.st_atim, before.st_mtim};
    if (keep_time)
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* ---- Bytes ---- */

/* Every matrix of the model, read and packed here by the plain C kernel, against the file. */
static void check_bytes(const drey_model *m, const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    sidecar_head head;
    assert_int_equal(fread(&head, sizeof head, 1, f), 1);
    assert_memory_equal(head.magic, "dreyside", 8);
    const kernel_table *ref = kernel_select("ref");
    for (uint32_t i = 0; i < head.n_matrices; i++) {
        sidecar_entry e;
        long at = (long)(sizeof head + head.n_parts * sizeof(sidecar_stamp) + i * sizeof e);
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        assert_int_equal(fread(&e, sizeof e, 1, f), 1);
        const gguf_tensor *t = gguf_find_tensor(m->file, e.name);
        assert_non_null(t);
        assert_int_equal(e.offset % 4096, 0);
        const matmul_kernel *kernel = &ref->matmul[t->type];
        size_t group_bytes = kernel->group_bytes(e.k);
        int64_t row_bytes = type_row_bytes(type_find(t->type), e.k);
        assert_int_equal(e.n_bytes, (uint64_t)((e.n_rows + 31) / 32) * group_bytes);
        uint8_t *raw = malloc(t->n_bytes), *want = aligned_alloc(64, group_bytes),
                *got = malloc(group_bytes);
        FILE *model = fopen(gguf_shard_path(m->file, t->part), "rb");
        assert_int_equal(fseek(model, (long)t->offset, SEEK_SET), 0);
        assert_int_equal(fread(raw, 1, t->n_bytes, model), t->n_bytes);
        fclose(model);
        assert_int_equal(fseek(f, (long)e.offset, SEEK_SET), 0);
        for (int64_t row = 0; row < e.n_rows; row += 32) {
            int32_t rows = e.n_rows - row < 32 ? (int32_t)(e.n_rows - row) : 32;
            kernel->pack(want, raw + row * row_bytes, row_bytes, rows, e.k);
            assert_int_equal(fread(got, 1, group_bytes, f), group_bytes);
            assert_memory_equal(got, want, group_bytes);
        }
        free(raw);
        free(want);
        free(got);
    }
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    assert_int_equal(ftell(f), head.file_bytes);
    fclose(f);
}

/* Hash of what is packed of the types that devices have, or of the others. */
static uint64_t layout_hash(bool of_devices)
{
    enum { K = 512 };
    hash64 h;
    hash64_init(&h);
    for (uint32_t type = 0; type < TYPE_LIMIT; type++) {
        const type_traits *traits = type_find(type);
        if (!traits || !traits->runnable || device_can_multiply(type) != of_devices)
            continue;
        const matmul_kernel *kernel = &kernel_select("ref")->matmul[type];
        int64_t row_bytes = type_row_bytes(traits, K);
        size_t group_bytes = kernel->group_bytes(K);
        uint8_t *raw = malloc((size_t)(32 * row_bytes)), *packed = aligned_alloc(64, group_bytes);
        toy_blocks(raw, type, 32 * K / traits->block_elements, 1.0f, 5);
        kernel->pack(packed, raw, row_bytes, 31, K);
        hash64_add(&h, packed, group_bytes);
        free(raw);
        free(packed);
    }
    return hash64_get(&h);
}

/* Files outlive programs: when packing changes, so must the version that they carry. The hashes are
 * what version 1 packs; a failure here asks for the next KERNEL_LAYOUT_VERSION and its hashes. A
 * type that is new changes the second one alone. */
TEST(layout_has_its_version)
{
    uint64_t of_devices = layout_hash(true), others = layout_hash(false);
    assert_int_equal(KERNEL_LAYOUT_VERSION, 1);
    if (of_devices != 0x0e63fe8ec17e175f || others != 0x01d4bc4d9570a140)
        fail_msg("the packed layouts hash to %#llx and %#llx", (unsigned long long)of_devices,
                 (unsigned long long)others);
}

static const int32_t prompt[] = {72, 101, 108, 108, 111, 32, 116, 104, 101, 114, 101};

static void write_text(writing *w, const drey_engine_options *o, double share)
{
    writing_run(w, o, share, prompt, sizeof prompt / sizeof *prompt, N_TEXT, NULL);
    assert_int_equal(w->n_ids, N_TEXT);
}

/* The sidecar's bytes, and texts with it, from memory and streamed; in other ways of reading, with
 * other threads and tiers they are in the matrix of tests/text. */
static void check_model(const toy_options *toy)
{
    static writing want, got;
    drey_model *m = toy_model(toy);
    const drey_engine_options o = plain_options(m, 64, 2);
    write_text(&want, &o, -1);
    assert_false(want.stats.sidecar);
    assert_true(want.stats.sidecar_tokens_per_s == 0); /* it is in memory */
    write_text(&got, &o, 0.3);
    assert_true(got.stats.sidecar_tokens_per_s >= got.stats.tokens_per_s);
    assert_true(got.stats.tokens_per_s > 0);
    char *path = path_with(gguf_shard_path(m->file, 0), SIDECAR_FILE_ENDING);
    assert_true(prepare(m, NULL, false, false).written);
    check_bytes(m, path);
    assert_false(prepare(m, NULL, true, false).written);
    for (int streamed = 0; streamed < 2; streamed++) {
        write_text(&got, &o, streamed ? 0.3 : -1);
        assert_true(got.stats.sidecar && got.stats.sidecar_tokens_per_s == 0);
        assert_true((got.stats.streamed_bytes_per_pass > 0) == streamed);
        assert_memory_equal(got.ids, want.ids, sizeof *want.ids * N_TEXT);
    }
    free(path);
    drey_model_close(&m);
    temp_dir_remove();
}

TEST(every_type)
{
    for (uint32_t type = 0; type < TYPE_LIMIT; type++) {
        const type_traits *traits = type_find(type);
        if (!traits || !traits->runnable)
            continue;
        toy_options toy = toy_default();
        toy.type = type;
        toy.n_embd = 256;
        toy.n_ff = 256;
        toy.n_layers = 2;
        toy.tied = type % 2; /* a tied head is the embedding */
        check_model(&toy);
    }
}

TEST(split_and_large)
{
    toy_options toy = large_toy();
    check_model(&toy);
    toy.type = TOY_TYPE_MIXED;
    toy.architecture = "qwen2";
    toy.n_parts = 3;
    check_model(&toy);
}

/* The least memory there is: the smallest ring, whose pieces are used in place. */
TEST(least_budget)
{
    static writing want, got;
    toy_options toy = large_toy();
    toy.n_layers = 5;
    drey_model *m = toy_model(&toy);
    drey_engine_options o = plain_options(m, 64, 2);
    write_text(&want, &o, -1);
    prepare(m, NULL, false, false);
    drey_plan plan;
    drey_error err = {0};
    o.n_threads = 4; /* more than the ring has pieces for some matrices */
    for (int i = 0; i < 4; i++) {
        o.memory_bytes = 1;
        assert_int_equal(drey_plan_make(&o, 0, &plan, &err), DREY_ERR_MEMORY);
        o.memory_bytes = plan.smallest_budget_bytes + (2 << 20);
        write_text(&got, &o, -1);
        assert_true(got.stats.sidecar && got.stats.streamed_bytes_per_pass > 0);
        assert_memory_equal(got.ids, want.ids, sizeof *want.ids * N_TEXT);
    }
    drey_model_close(&m);
}

/* ---- What is refused ---- */

/* Found next to the model: not used, and the plan says why. Named: an error. */
static void not_used(const drey_model *m, const char *path, drey_status status, const char *says)
{
    drey_engine_options o = plain_options(m, 64, 2);
    drey_plan plan;
    drey_error err = {0};
    drey_engine *e;
    MUST(drey_plan_make, &o, 0, &plan);
    if (plan.sidecar || !strstr(plan.sidecar_refused, says))
        fail_msg("\"%s\" does not say \"%s\"", plan.sidecar_refused, says);
    if (!strstr(plan.sidecar_refused, "continue without it"))
        fail_msg("\"%s\" does not say what to do", plan.sidecar_refused);
    o.sidecar = path;
    assert_int_equal(drey_engine_open(&e, &o, &err), status);
    assert_null(e);
    assert_string_equal(err.message, plan.sidecar_refused);
    drey_prepare_options p = {.model = m, .check = true};
    refused(&p, status, says);
}

static void good(const drey_model *m)
{
    drey_engine_options o = plain_options(m, 64, 2);
    drey_plan plan;
    MUST(drey_plan_make, &o, 0, &plan);
    assert_string_equal(plan.sidecar_refused, "");
    assert_true(plan.sidecar);
    o.no_sidecar = true;
    MUST(drey_plan_make, &o, 0, &plan);
    assert_false(plan.sidecar);
}

/* Sets a field of the head and makes the checksum fit again. */
static void forge(const char *path, size_t at, uint32_t value)
{
    FILE *f = fopen(path, "r+b");
    sidecar_head head;
    assert_non_null(f);
    assert_int_equal(fread(&head, sizeof head, 1, f), 1);
    size_t n = (size_t)head.table_bytes;
    sidecar_table t = {.bytes = malloc(n), .n_bytes = n};
    rewind(f);
    assert_int_equal(fread(t.bytes, 1, n, f), n);
    memcpy(t.bytes + at, &value, sizeof value);
    t.head = (sidecar_head *)(void *)t.bytes;
    t.head->checksum = sidecar_table_checksum(&t);
    rewind(f);
    assert_int_equal(fwrite(t.bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    sidecar_table_free(&t);
}

TEST(damaged_and_foreign)
{
    toy_options toy = toy_default();
    drey_model *m = toy_model(&toy);
    const char *path = temp_path("m.gguf.drey");
    prepare(m, NULL, false, false);
    good(m);
    size_t n_whole;
    uint8_t *whole = bytes_file_read(path, &n_whole);
    const struct {
        size_t at;
        uint32_t value;
        const char *says;
    } forged[] = {
        {0, 1, "is no sidecar of drey"},
        {offsetof(sidecar_head, byte_order), 0x04030201, "another order of bytes"},
        {offsetof(sidecar_head, version), SIDECAR_VERSION - 1, "another version of drey"},
        {offsetof(sidecar_head, layout), 77, "another version of drey"},
        {offsetof(sidecar_head, group_rows), 16, "another version of drey"},
        {offsetof(sidecar_head, n_parts), 2, "belongs to another model"},
        {offsetof(sidecar_head, n_matrices), 1 << 30, "belongs to another model"},
        {offsetof(sidecar_head, file_bytes), 4096, "lists other matrices"},
        {sizeof(sidecar_head), 5, "the model's size is not what it was"},
        {sizeof(sidecar_head) + 8, 5, "the model's time of change is not"},
        {sizeof(sidecar_head) + 24, 5, "the model's header is not"},
        {sizeof(sidecar_head) + 32, 5, "the model's data is not"},
        {sizeof(sidecar_head) + sizeof(sidecar_stamp), 0x616161, "lists other matrices"},
        {sizeof(sidecar_head) + sizeof(sidecar_stamp) + 88, 8192, "lists other matrices"},
    };
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        bytes_file_write(path, whole, n_whole);
        forge(path, forged[i].at, forged[i].value);
        bool is_format = strstr(forged[i].says, "no sidecar");
        not_used(m, path, is_format ? DREY_ERR_FORMAT : DREY_ERR_MISMATCH, forged[i].says);
    }
    assert_true(prepare(m, NULL, false, true).written); /* over what is no sidecar by now */
    good(m);
    change_byte(path, 700, true);
    not_used(m, path, DREY_ERR_FORMAT, "damaged in its table");
    assert_true(prepare(m, NULL, false, false).written); /* it is one, so no force is needed */
    const long n = (long)n_whole, lengths[] = {0, 5, 8, 64, 300, 5000, n - 4096, n - 1, n + 4096};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        bytes_file_write(path, whole, n_whole);
        assert_int_equal(truncate(path, lengths[i]), 0);
        not_used(m, path, DREY_ERR_FORMAT,
                 i < 2   ? "is no sidecar"
                 : i < 5 ? "ends inside its table"
                         : "it is not all there");
    }
    free(whole);
    drey_model_close(&m);
}

TEST(stale)
{
    toy_options toy = large_toy();
    toy.n_parts = 3;
    drey_model *m = toy_model(&toy);
    const char *path = temp_path("m-00001-of-00003.gguf.drey"),
               *second = temp_path("m-00002-of-00003.gguf");
    prepare(m, NULL, false, false);
    good(m);
    change_byte(second, -1, true); /* on the last page, which is sampled */
    not_used(m, path, DREY_ERR_MISMATCH, "is stale: the model's data");
    prepare(m, NULL, false, false);
    const struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    assert_int_equal(utimensat(AT_FDCWD, second, times, 0), 0);
    not_used(m, path, DREY_ERR_MISMATCH, "is stale: the model's time of change");
    prepare(m, NULL, false, false);
    good(m);
    struct stat about;
    assert_int_equal(stat(second, &about), 0);
    assert_int_equal(truncate(second, about.st_size + 64), 0);
    assert_int_equal(utimensat(AT_FDCWD, second, times, 0), 0);
    not_used(m, path, DREY_ERR_MISMATCH, "is stale: the model's size");
    drey_model_close(&m);

    /* Another model of the same shapes under the same name, as old as the first. */
    toy = toy_default();
    m = toy_model(&toy);
    const char *one = temp_path("m.gguf"), *sidecar = temp_path("m.gguf.drey");
    assert_int_equal(utimensat(AT_FDCWD, one, times, 0), 0);
    prepare(m, NULL, false, false);
    drey_model_close(&m);
    toy.seed += 1;
    m = toy_model(&toy);
    assert_int_equal(utimensat(AT_FDCWD, one, times, 0), 0);
    not_used(m, sidecar, DREY_ERR_MISMATCH, "is stale: the model's data");
    drey_model_close(&m);
}

/* What the door does not see, the check does: a byte of the data, here and there. */
TEST(check_reads_everything)
{
    const toy_options toy = large_toy();
    drey_model *m = toy_model(&toy);
    const char *path = temp_path("m.gguf.drey");
    const gguf_tensor *t = gguf_find_tensor(m->file, "blk.1.ffn_up.weight");
    drey_prepare_options o = {.model = m, .check = true};
    refused(&o, DREY_ERR_IO, "there is no sidecar");
    prepare(m, NULL, false, false);
    prepare(m, NULL, true, false);
    change_byte(path, (int64_t)t->offset / 2, true);
    good(m);
    refused(&o, DREY_ERR_FORMAT, "is damaged in matrix");
    prepare(m, NULL, false, true);
    prepare(m, NULL, true, false);
    int64_t at = (int64_t)t->offset + 100; /* in one of the many pages that are not sampled */
    change_byte(gguf_shard_path(m->file, 0), at, true);
    good(m);
    refused(&o, DREY_ERR_MISMATCH, "matrix blk.1.ffn_up.weight of the model has changed");
    drey_model_close(&m);
}

/* Returns the sidecar's offset of this matrix. */
static int64_t place_in(const uint8_t *whole, const char *name)
{
    sidecar_head head;
    sidecar_entry e;
    memcpy(&head, whole, sizeof head);
    const uint8_t *at = whole + sizeof head + head.n_parts * sizeof(sidecar_stamp);
    for (uint32_t i = 0; i < head.n_matrices; i++, at += sizeof e) {
        memcpy(&e, at, sizeof e);
        if (strcmp(e.name, name) == 0)
            return (int64_t)e.offset;
    }
    fail_msg("no matrix %s", name);
    return 0;
}

/* What is read of experts depends on the text, so no load compares them; the check does. */
TEST(check_reads_experts)
{
    toy_options toy = large_toy();
    toy.experts = (toy_experts){.n = 8, .n_used = 2, .n_ff = 1024};
    drey_model *m = toy_model(&toy);
    const char *path = temp_path("m.gguf.drey"), *model = gguf_shard_path(m->file, 0);
    const drey_prepare_options o = {.model = m, .check = true};
    static const char *const names[] = {"blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight",
                                        "blk.1.ffn_down_exps.weight"};
    for (int i = 0; i < 3; i++) {
        const gguf_tensor *t = gguf_find_tensor(m->file, names[i]);
        int64_t within = (int64_t)t->n_bytes / 8 * (2 * i + 1) + 5000;
        char says[120];
        prepare(m, NULL, false, true);
        prepare(m, NULL, true, false);
        size_t n_whole;
        uint8_t *whole = bytes_file_read(path, &n_whole);
        change_byte(path, place_in(whole, names[i]) + within, true);
        snprintf(says, sizeof says, "m.gguf.drey is damaged in matrix %s", names[i]);
        refused(&o, DREY_ERR_FORMAT, says);
        bytes_file_write(path, whole, n_whole);
        change_byte(model, (int64_t)t->offset + within, true);
        snprintf(says, sizeof says, "matrix %s of the model has changed", names[i]);
        refused(&o, DREY_ERR_MISMATCH, says);
        change_byte(model, (int64_t)t->offset + within, true);
        free(whole);
    }
    drey_model_close(&m);
}

/* One of the sampled pages is of these experts: damage there makes the sidecar stale. */
TEST(samples_cover_experts)
{
    toy_options toy = large_toy();
    toy.experts = (toy_experts){.n = 8, .n_used = 2, .n_ff = 1024};
    drey_model *m = toy_model(&toy);
    drey_engine_options o = plain_options(m, 64, 2);
    const gguf_tensor *t = gguf_find_tensor(m->file, "blk.1.ffn_up_exps.weight");
    bool stale = false;
    prepare(m, NULL, false, true);
    for (uint64_t at = 0; at < t->n_bytes && !stale; at += 4096) {
        drey_plan plan;
        change_byte(gguf_shard_path(m->file, 0), (int64_t)(t->offset + at), true);
        MUST(drey_plan_make, &o, NULL, &plan);
        stale = strstr(plan.sidecar_refused, "is stale: the model's data") != NULL;
        change_byte(gguf_shard_path(m->file, 0), (int64_t)(t->offset + at), true);
    }
    assert_true(stale);
    drey_model_close(&m);
}

/* Damage of the i-th matrix in the sidecar: its first byte, its last one, or one between. */
static sidecar_entry damage(const char *path, const uint8_t *whole, size_t n_whole, uint32_t i)
{
    sidecar_head head;
    sidecar_entry e;
    memcpy(&head, whole, sizeof head);
    assert_true(i < head.n_matrices);
    memcpy(&e, whole + sizeof head + head.n_parts * sizeof(sidecar_stamp) + i * sizeof e, sizeof e);
    const uint64_t at[] = {0, e.n_bytes / 2, e.n_bytes - 1};
    bytes_file_write(path, whole, n_whole);
    change_byte(path, (int64_t)(e.offset + at[i % 3]), true);
    return e;
}

/* Loading compares what it reads with the hash of each matrix, wherever the matrix goes; planes
 * that are not pinned whole are the exception. No token is written. */
TEST(damaged_data)
{
    static writing want, got;
    static const double shares[] = {-1, 0.5, 0};
    toy_options toy = large_toy();
    toy.type = TYPE_Q4_0;
    drey_model *m = toy_model(&toy);
    drey_engine_options o = plain_options(m, 64, 2);
    const char *path = temp_path("m.gguf.drey");
    write_text(&want, &o, -1);
    for (int planes = 0; planes < 2; planes++) {
        drey_prepare_options p = {.model = m, .planes = planes};
        MUST(drey_prepare, &p, NULL);
        size_t n_whole;
        uint8_t *whole = bytes_file_read(path, &n_whole);
        sidecar_head head;
        memcpy(&head, whole, sizeof head);
        for (uint32_t i = 0; i < head.n_matrices; i++) {
            double share = planes ? -1 : shares[i % 3];
            sidecar_entry e = damage(path, whole, n_whole, i);
            o.n_threads = 1 + (int32_t)i % 3;
            o.prompt_chunk = i % 2 ? 3 : 0;
            writing_try(&got, &o, share, prompt, sizeof prompt / sizeof *prompt, N_TEXT, NULL);
            assert_int_equal(got.status, DREY_ERR_FORMAT);
            assert_int_equal(got.error.hint, DREY_HINT_SIDECAR);
            assert_int_equal(got.n_ids, 0);
            if (!strstr(got.error.message, "m.gguf.drey is damaged in matrix ") ||
                !strstr(got.error.message, e.name) ||
                !strstr(got.error.message, "continue without"))
                fail_msg("%s: %s", e.name, got.error.message);
        }
        bytes_file_write(path, whole, n_whole);
        write_text(&got, &o, planes ? -1 : 0.5);
        assert_true(got.stats.sidecar);
        assert_memory_equal(got.ids, want.ids, sizeof *want.ids * N_TEXT);
        free(whole);
    }
    drey_model_close(&m);
}

TEST(places)
{
    toy_options toy = toy_default();
    drey_model *m = toy_model(&toy);
    drey_prepare_options o = {.model = m, .force = true};
    o.output = temp_path("m.gguf");
    refused(&o, DREY_ERR_USAGE, "is the model itself");
    o.output = temp_path("link");
    assert_int_equal(symlink(temp_path("m.gguf"), o.output), 0);
    refused(&o, DREY_ERR_USAGE, "is the model itself");
    o.output = temp_path("folder");
    assert_int_equal(mkdir(o.output, 0700), 0);
    refused(&o, DREY_ERR_IO, "is not a regular file");
    o.output = temp_path("no/such/folder.drey");
    refused(&o, DREY_ERR_IO, "No such file or directory");
    o.output = temp_path("notes.txt");
    toy_write(o.output, &toy);
    o.force = false;
    refused(&o, DREY_ERR_USAGE, "exists and is no sidecar");
    o.model = NULL;
    refused(&o, DREY_ERR_USAGE, "no model");
    const char *elsewhere = temp_path("elsewhere.drey");
    assert_true(prepare(m, elsewhere, false, false).written);
    assert_false(prepare(m, elsewhere, false, false).written);
    assert_true(prepare(m, elsewhere, false, true).written);
    assert_false(exists(temp_path("m.gguf.drey")));
    drey_engine_options e = plain_options(m, 64, 2);
    e.sidecar = elsewhere;
    static writing w;
    write_text(&w, &e, 0.3);
    assert_true(w.stats.sidecar);
    drey_model_close(&m);
}

/* ---- Ends ---- */

static bool until_zero(void *user)
{
    return --*(int *)user > 0;
}

TEST(interrupted)
{
    toy_options toy = toy_default();
    drey_model *m = toy_model(&toy);
    const char *path = temp_path("m.gguf.drey"), *partial = temp_path("m.gguf.drey.partial");
    int left;
    drey_prepare_options o = {.model = m, .go_on = until_zero, .user = &left, .force = true};
    for (int turn = 0; turn < 2; turn++) {
        drey_error err;
        left = 1 << 20;
        o.check = turn; /* counts the questions; the second time there is a sidecar */
        if (turn)
            MUST(drey_prepare, &o, NULL);
        o.check = false;
        for (int i = 1; i < 20; i += 3) {
            left = i;
            assert_int_equal(drey_prepare(&o, NULL, &err), DREY_ERR_CANCELLED);
            assert_true(exists(path) == turn);
            assert_false(exists(partial));
        }
        if (turn)
            good(m);
        else
            prepare(m, NULL, false, false);
    }
    drey_model_close(&m);
}

/* A process that is killed somewhere in the middle leaves the old sidecar, the new one, or none;
 * and the next prepare is not hindered by what it left. */
TEST(killed)
{
    const toy_options toy = large_toy();
    drey_model *m = toy_model(&toy);
    const char *path = temp_path("m.gguf.drey"), *partial = temp_path("m.gguf.drey.partial");
    uint64_t random = 11;
    int n_partial = 0; /* of those that were killed at work */
    for (int i = 0; i < 24 || (n_partial == 0 && i < 24 * 50); i++) {
        if (i == 12)
            assert_true(prepare(m, NULL, false, true).written);
        pid_t child = fork();
        if (child == 0) {
            for (;;) {
                drey_prepare_options o = {.model = m, .force = true};
                if (i < 12)
                    unlink(path);
                drey_prepare(&o, NULL, NULL);
            }
        }
        /* Longer and longer, where other work keeps it from beginning. */
        struct timespec pause = {.tv_sec = i / 240,
                                 .tv_nsec = (long)(toy_random(&random) % 40000000)};
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how));
        n_partial += exists(partial);
        if (exists(path))
            good(m);
        else
            assert_true(i < 12);
    }
    assert_true(n_partial > 0);
    assert_true(prepare(m, NULL, false, true).written);
    assert_false(prepare(m, NULL, true, false).written);
    assert_false(exists(partial));
    drey_model_close(&m);
}
