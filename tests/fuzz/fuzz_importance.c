/* Property: any bytes are refused as an importance matrix with one sentence, or are entries that
 * are sorted and found by their names, with numbers that can be mean squares. */
#include "fuzz/fuzz.h"
#include "quantise/importance.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void check(const importance *m, size_t n_bytes)
{
    uint64_t n = 0;
    FUZZ_CHECK(m->n_entries > 0);
    fuzz_check_printable(m->dataset);
    for (int64_t i = 0; i < m->n_entries; i++) {
        const importance_entry *e = &m->entry[i];
        FUZZ_CHECK(i == 0 || strcmp(m->entry[i - 1].name, e->name) < 0);
        FUZZ_CHECK(importance_find(m, e->name) == e);
        FUZZ_CHECK(e->n > 0);
        for (int64_t k = 0; k < e->n; k++)
            FUZZ_CHECK(e->squares[k] >= 0 && e->squares[k] <= 3e38f);
        n += (uint64_t)e->n;
    }
    FUZZ_CHECK(n * sizeof(float) <= n_bytes && n * sizeof(float) < m->n_bytes);
    FUZZ_CHECK(!importance_find(m, "blk.99.no_such_tensor"));
}

/* The reader opens a file, which is one in memory. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    importance m;
    drey_error err = {0};
    char path[64];
    int fd = memfd_create("importance", 0);
    FUZZ_CHECK(fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    drey_status status = importance_read(&m, path, &err);
    if (status == DREY_OK) {
        check(&m, n_bytes);
    } else {
        FUZZ_CHECK(strlen(err.message) > 10);
        fuzz_check_refused(status, &err);
    }
    importance_free(&m);
    close(fd);
    return 0;
}
