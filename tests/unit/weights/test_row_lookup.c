/* Rows that are looked up from the disk: those asked for, in any number and order, whole and in
 * parts; given up in the middle; and a disk that fails and recovers. */
#include "gguf/gguf.h"
#include "support/faults/disk.h"
#include "support/scene.h"
#include "weights/row_lookup.h"

enum { ROWS = 300, MOST = 90, WIDTH = 256, THREADS = 2, PART = 96 };

typedef struct rig {
    gguf *file;
    weight table;
    arena memory;
    row_lookup lookup;
    const char *path;
    disk disk;
    uint8_t *raw;
} rig;

/* The embedding of a toy, of a type, is the table. */
static void open_rig(rig *r, uint32_t type)
{
    static char path[2048];
    toy_options toy = toy_default();
    toy.n_embd = WIDTH;
    toy.type = type;
    snprintf(path, sizeof path, "%s/table.gguf", temp_dir());
    toy_write(path, &toy);
    MUST(gguf_open, &r->file, path);
    MUST(weight_describe, &r->table, gguf_find_tensor(r->file, "token_embd.weight"),
         kernel_select(NULL));
    MUST(arena_init, &r->memory, row_lookup_bytes(&r->table, THREADS), false);
    r->path = gguf_shard_path(r->file, 0);
    row_lookup_init(&r->lookup,
                    &(row_lookup_options){.table = &r->table,
                                          .path = r->path,
                                          .was = gguf_part_stamp(r->file, 0),
                                          .n_threads = THREADS,
                                          .fault = disk_read,
                                          .fault_user = &r->disk},
                    &r->memory);
    MUST(arena_check, &r->memory);
    r->raw = malloc((size_t)MOST * (size_t)r->table.form.row_bytes);
    assert_non_null(r->raw);
    assert_true(r->table.form.n_rows >= ROWS);
}

static void close_rig(rig *r)
{
    row_lookup_close(&r->lookup);
    arena_free(&r->memory);
    gguf_close(&r->file);
    free(r->raw);
}

/* The row's bytes are those of the file. */
static void check_raw(const rig *r, int64_t row, const uint8_t *raw)
{
    const size_t n = (size_t)r->table.form.row_bytes;
    uint8_t *want = malloc(n);
    FILE *f = fopen(r->path, "rb");
    assert_true(want && f);
    assert_int_equal(fseek(f, (long)(r->table.form.tensor->offset + (uint64_t)row * n), SEEK_SET),
                     0);
    assert_int_equal(fread(want, n, 1, f), 1);
    assert_memory_equal(raw, want, n);
    fclose(f);
    free(want);
}

static const uint8_t *raw_row(const rig *r, int32_t i)
{
    return r->raw + (int64_t)i * r->table.form.row_bytes;
}

TEST(rows_in_any_number)
{
    rig r = {.disk = {.slow_of = 5, .slow_us = 200}};
    int64_t row[MOST];
    open_rig(&r, TYPE_Q8_0);
    for (int32_t n = 0; n <= MOST; n += n < 3 ? 1 : 29) {
        for (int32_t i = 0; i < n; i++)
            row[i] = i % 4 == 3 ? row[i - 1] : (i * 7919 + n) % ROWS;
        memset(r.raw, 0, (size_t)MOST * (size_t)r.table.form.row_bytes);
        MUST(row_lookup_ask, &r.lookup, row, n, r.raw);
        MUST(row_lookup_wait, &r.lookup);
        for (int32_t i = 0; i < n; i++)
            check_raw(&r, row[i], raw_row(&r, i));
        MUST(row_lookup_wait, &r.lookup);
    }
    assert_true(r.disk.n_reads > 0);
    close_rig(&r);
}

/* A part of a row has the numbers that the whole row has there. */
TEST(numbers_of_parts)
{
    static const uint32_t types[] = {TYPE_F32, TYPE_F16, TYPE_BF16, TYPE_Q8_0, TYPE_Q4_0};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        rig r = {.file = NULL};
        float whole[WIDTH], part[PART];
        open_rig(&r, types[t]);
        MUST(row_lookup_ask, &r.lookup, &(int64_t){17}, 1, r.raw);
        MUST(row_lookup_wait, &r.lookup);
        MUST(row_lookup_numbers, &r.lookup, r.raw, 0, WIDTH, whole, 0);
        for (int64_t from = 0; from + PART <= WIDTH; from += 32) {
            MUST(row_lookup_numbers, &r.lookup, r.raw, from, PART, part, 1);
            assert_memory_equal(part, whole + from, sizeof part);
        }
        close_rig(&r);
    }
}

TEST(given_up_in_the_middle)
{
    rig r = {.disk = {.slow_of = 3, .slow_us = 300}};
    int64_t row[MOST], other[2] = {5, 250};
    open_rig(&r, TYPE_F16);
    for (int32_t i = 0; i < MOST; i++)
        row[i] = i;
    for (int round = 0; round < 20; round++) {
        MUST(row_lookup_ask, &r.lookup, row, MOST, r.raw);
        if (round % 2)
            row_lookup_leave(&r.lookup);
        MUST(row_lookup_ask, &r.lookup, other, 2, r.raw);
        MUST(row_lookup_wait, &r.lookup);
        check_raw(&r, other[0], raw_row(&r, 0));
        check_raw(&r, other[1], raw_row(&r, 1));
    }
    close_rig(&r);
}

TEST(a_disk_that_fails)
{
    rig r = {.file = NULL};
    int64_t row[MOST] = {0};
    open_rig(&r, TYPE_Q8_0);
    atomic_store(&r.disk.fail_of, 1);
    MUST(row_lookup_ask, &r.lookup, row, MOST, r.raw);
    REFUSED(DREY_ERR_IO, "table.gguf", row_lookup_wait, &r.lookup);
    atomic_store(&r.disk.fail_of, 0);
    MUST(row_lookup_ask, &r.lookup, row, MOST, r.raw);
    MUST(row_lookup_wait, &r.lookup);
    check_raw(&r, 0, raw_row(&r, MOST - 1));
    close_rig(&r);
}

/* Numbers that are not finite are refused; the file is named. */
TEST(numbers_that_are_not_finite)
{
    rig r = {.file = NULL};
    float out[WIDTH];
    open_rig(&r, TYPE_F32);
    for (int32_t i = 0; i < WIDTH; i++)
        out[i] = i == 40 ? INFINITY : 1.0f;
    memcpy(r.raw, out, sizeof out);
    MUST(row_lookup_numbers, &r.lookup, r.raw, 64, 32, out, 0);
    REFUSED(DREY_ERR_FORMAT, "token_embd.weight", row_lookup_numbers, &r.lookup, r.raw, 32, 32, out,
            0);
    close_rig(&r);
}
