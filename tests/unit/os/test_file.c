/* Files: direct and buffered reads of any alignment give the same bytes, refusals fall back, and
 * each failure has its sentence. */
#include <sys/stat.h>
#include <unistd.h>

#include "os/file.h"
#include "support/bytes_file.h"
#include "support/faults/child.h"
#include "support/faults/deny.h"
#include "support/scene.h"

enum { FILE_BYTES = 700001, BOUNCE_BYTES = 64 * 1024 };

static void read_everywhere(bool want_direct)
{
    const char *path = temp_path("data.bin");
    uint8_t *bytes = bytes_file_random(path, FILE_BYTES, 7);
    uint8_t *got = malloc(FILE_BYTES);
    void *bounce = aligned_alloc(BOUNCE_BYTES, BOUNCE_BYTES);
    file f;
    MUST(file_open, &f, path, want_direct);
    assert_int_equal(f.n_bytes, FILE_BYTES);
    assert_true(f.direct ? f.align_bytes >= 512 : f.align_bytes == 1);
    assert_true(want_direct || !f.direct);
    rng random = rng_from(3);
    for (int i = 0; i < 200; i++) {
        size_t n = rng_next(&random) % (i % 4 ? 9000 : FILE_BYTES);
        uint64_t offset = rng_next(&random) % (FILE_BYTES - n + 1);
        memset(got, 0, n);
        MUST(file_read, &f, path, offset, n, got, f.direct ? bounce : NULL, BOUNCE_BYTES);
        assert_memory_equal(got, bytes + offset, n);
    }
    REFUSED(DREY_ERR_IO, "has become shorter: byte 700001", file_read, &f, path, FILE_BYTES - 10,
            11, got, bounce, BOUNCE_BYTES);
    file_close(&f);
    file_close(&f);
    assert_int_equal(f.fd, -1);
    free(bounce), free(got), free(bytes);
}

TEST(direct_reads_of_any_alignment)
{
    read_everywhere(true);
}

TEST(buffered_reads_of_any_alignment)
{
    read_everywhere(false);
}

TEST(buffered_reads_leave_the_cache)
{
    const char *path = temp_path("cache.bin");
    size_t n = 4u << 20;
    uint8_t *bytes = bytes_file_random(path, n, 8);
    drop_cached_pages(path);
    if (cached_pages(path) > 0) {
        free(bytes);
        NOT_RUN("this file system keeps its files in memory");
    }
    file f;
    MUST(file_open, &f, path, false);
    uint8_t *got = malloc(n);
    MUST(file_read, &f, path, 5, n - 9, got, NULL, 0);
    assert_memory_equal(got, bytes + 5, n - 9);
    assert_true(cached_pages(path) <= 64);
    file_close(&f);
    free(got), free(bytes);
}

static int reads_buffered(void *arg)
{
    const char *path = arg;
    if (!deny_direct())
        return CANNOT_TRY;
    file f;
    char got[100];
    if (file_open(&f, path, true, NULL) != DREY_OK || f.direct)
        return 1;
    return file_read(&f, path, 7, sizeof got, got, NULL, 0, NULL) == DREY_OK ? 0 : 2;
}

TEST(refused_direct_falls_back)
{
    const char *path = temp_path("refused.bin");
    free(bytes_file_random(path, 10000, 9));
    int verdict = child_run(reads_buffered, (void *)(uintptr_t)path);
    if (verdict == CANNOT_TRY)
        NOT_RUN("reads that the system refuses: seccomp filters cannot be installed here");
    assert_int_equal(verdict, 0);
}

TEST(memory_file_systems_work)
{
    char path[] = "/dev/shm/drey-test-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        NOT_RUN("there is no /dev/shm");
    uint8_t bytes[5000], got[4000];
    memset(bytes, 0x5a, sizeof bytes);
    assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
    close(fd);
    void *bounce = aligned_alloc(BOUNCE_BYTES, BOUNCE_BYTES);
    file f;
    MUST(file_open, &f, path, true);
    MUST(file_read, &f, path, 999, sizeof got, got, bounce, BOUNCE_BYTES);
    assert_memory_equal(got, bytes, sizeof got);
    file_close(&f);
    unlink(path);
    free(bounce);
}

TEST(truncation_is_reported)
{
    const char *path = temp_path("truncated.bin");
    free(bytes_file_random(path, 100000, 10));
    uint8_t *got = malloc(100000);
    void *bounce = aligned_alloc(BOUNCE_BYTES, BOUNCE_BYTES);
    for (int direct = 0; direct < 2; direct++) {
        free(bytes_file_random(path, 100000, 10));
        file f;
        drey_error err;
        MUST(file_open, &f, path, direct);
        assert_int_equal(truncate(path, 54321), 0);
        MUST(file_read, &f, path, 100, 54221, got, bounce, BOUNCE_BYTES);
        assert_int_equal(file_read(&f, path, 100, 60000, got, bounce, BOUNCE_BYTES, &err),
                         DREY_ERR_IO);
        assert_non_null(strstr(err.message, "byte 54321 is gone"));
        assert_non_null(strstr(err.message, path));
        file_close(&f);
    }
    free(bounce), free(got);
}

TEST(what_is_no_file_is_refused)
{
    file f;
    drey_error err;
    REFUSED(DREY_ERR_IO, "/nonexistent/model.gguf: No such file", file_open, &f,
            "/nonexistent/model.gguf", true);
    REFUSED(DREY_ERR_IO, "not a regular file", file_open, &f, "/", true);
    assert_int_equal(f.fd, -1);
    const char *fifo = temp_path("fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(file_open(&f, fifo, true, &err), DREY_ERR_IO); /* and does not hang */
    const char *empty = temp_path("empty");
    bytes_file_write(empty, "", 0);
    MUST(file_open, &f, empty, true);
    assert_int_equal(f.n_bytes, 0);
    file_close(&f);
}

TEST(reasons_become_sentences)
{
    drey_error err;
    assert_int_equal(file_read_failed("m.gguf", 4096, 5, &err), DREY_ERR_IO);
    assert_string_equal(err.message, "cannot read m.gguf at byte 4096: Input/output error; check "
                                     "the disk, or copy the file again");
}
