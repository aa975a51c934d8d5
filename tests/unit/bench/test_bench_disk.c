/* The disk benchmark reads a model's tensors, whole, in every way of reading, and refuses what is
 * no model. The speed itself is the machine's affair. */
#include "bench/bench.h"
#include "gguf/gguf.h"
#include "support/bytes_file.h"
#include "support/scene.h"

/* Returns the bytes from the first tensor's first byte to the last one's end, in all parts. */
static uint64_t weight_region(const char *path)
{
    gguf *g = NULL;
    MUST(gguf_open, &g, path);
    uint64_t sum = 0;
    for (int32_t part = 0; part < gguf_n_shards(g); part++) {
        uint64_t begin = UINT64_MAX, end = 0;
        for (uint64_t i = 0; i < gguf_n_tensors(g); i++) {
            const gguf_tensor *t = gguf_tensor_at(g, i);
            if (t->part == part) {
                begin = t->offset < begin ? t->offset : begin;
                end = t->offset + t->n_bytes > end ? t->offset + t->n_bytes : end;
            }
        }
        sum += end > begin ? end - begin : 0;
    }
    gguf_close(&g);
    return sum;
}

/* Once through it, unless that takes two seconds: a machine that did something else is asked
 * again. */
static drey_status read_whole(const char *path, drey_io io, uint64_t read_bytes, uint64_t n_bytes,
                              drey_disk_report *report, drey_error *err)
{
    drey_status status = DREY_OK;
    for (int tries = 0; tries < 50; tries++) {
        status = drey_bench_disk(path, io, read_bytes, 0, report, err);
        if (status != DREY_OK || report->read_bytes >= n_bytes)
            break;
    }
    return status;
}

TEST(reads_all_tensors)
{
    static const char *const paths[] = {"toy.gguf", "split-00001-of-00003.gguf"};
    for (int split = 0; split < 2; split++) {
        const char *path = temp_path(paths[split]);
        toy_options toy = toy_default();
        toy.n_embd = 256;
        toy.n_ff = 1024;
        toy.n_parts = split ? 3 : 1;
        toy_write(path, &toy);
        uint64_t bytes = weight_region(path);
        assert_true(bytes > 1 << 20);
        for (drey_io io = DREY_IO_AUTO; io <= DREY_IO_BUFFERED; io++) {
            drey_disk_report report;
            drey_error err;
            drey_status status = read_whole(path, io, io % 2 ? 256 << 10 : 0, bytes, &report, &err);
            if (io == DREY_IO_URING && status == DREY_ERR_IO &&
                strstr(err.message, "refuses io_uring"))
                continue;
            assert_int_equal(status, DREY_OK);
            assert_int_equal(report.read_bytes, bytes);
            assert_true(report.bytes_per_s > 0);
            if (io == DREY_IO_BUFFERED)
                assert_false(report.direct);
        }
    }
}

TEST(reads_a_sidecar)
{
    toy_options toy = toy_default();
    toy.n_embd = 256;
    drey_model *m = toy_open("packed.gguf", &toy);
    drey_prepare_options options;
    drey_prepare_options_init(&options);
    options.model = m;
    drey_prepare_report prepared;
    MUST(drey_prepare, &options, &prepared);
    drey_model_close(&m);
    drey_disk_report report;
    MUST(read_whole, temp_path("packed.gguf.drey"), DREY_IO_PREAD, 0, prepared.sidecar_bytes,
         &report);
    assert_int_equal(report.read_bytes, prepared.sidecar_bytes);
}

TEST(reads_as_long_as_asked)
{
    const char *path = temp_path("again.gguf");
    toy_options toy = toy_default();
    toy_write(path, &toy);
    drey_disk_report report;
    double seconds = 0.2; /* of which others may have most */
    do
        MUST(drey_bench_disk, path, DREY_IO_PREAD, 0, seconds, &report);
    while (report.read_bytes <= weight_region(path) && (seconds *= 2) < 60);
    assert_true(report.read_bytes > weight_region(path));
}

TEST(refuses_what_is_no_model)
{
    drey_disk_report report;
    drey_error err;
    REFUSED(DREY_ERR_IO, "", drey_bench_disk, "/nonexistent.gguf", DREY_IO_AUTO, 0, 0, &report);
    const char *path = temp_path("text.gguf");
    bytes_file_write(path, "no model at all", 15);
    assert_int_equal(drey_bench_disk(path, DREY_IO_AUTO, 0, 0, &report, &err), DREY_ERR_FORMAT);
    assert_int_equal(drey_bench_disk(path, (drey_io)7, 0, 0, &report, &err), DREY_ERR_USAGE);
    assert_int_equal(drey_bench_disk(NULL, DREY_IO_AUTO, 0, 0, &report, &err), DREY_ERR_USAGE);
    assert_int_equal(drey_bench_disk(path, DREY_IO_AUTO, 4096, 0, &report, &err), DREY_ERR_USAGE);
    REFUSED(DREY_ERR_USAGE, "", drey_bench_disk, path, DREY_IO_AUTO, UINT64_MAX, 0, &report);
    assert_int_equal(drey_bench_disk(path, DREY_IO_AUTO, 0, -1, &report, &err), DREY_ERR_USAGE);
    assert_int_equal(drey_bench_disk(path, DREY_IO_AUTO, 0, NAN, &report, &err), DREY_ERR_USAGE);
}
