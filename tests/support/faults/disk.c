/* See disk.h. */
#include "support/faults/disk.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/rng.h"
#include "support/test.h"

int disk_read(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    disk *d = user;
    int32_t fail_of = atomic_load(&d->fail_of);
    rng r = rng_from(offset + atomic_fetch_add(&d->n_reads, 1));
    if (d->slow_of && rng_below(&r, d->slow_of) == 0)
        usleep((useconds_t)rng_below(&r, d->slow_us));
    if (atomic_load(&d->n_broken) > 0 && atomic_fetch_sub(&d->n_broken, 1) > 0)
        return EIO;
    return fail_of && rng_below(&r, fail_of) == 0 ? ENODEV : 0;
}

void disk_set_full(bool full)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = full ? 8000 : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}
