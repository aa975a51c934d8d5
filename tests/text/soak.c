/* A soak: one process that plays companies (support/faults/company.h) under random faults, and must
 * end as it began: each text right or a right beginning of it, and no more memory, descriptors or
 * threads after hours than after minutes.
 *
 *   soak [--seconds N] [--seed N]        (20 s, a seed from the clock)
 *
 * Each round opens an engine of random budget, drafter, threads and way of reading, over a model
 * with a sidecar or without; lets its sessions write while another thread cancels at random; and
 * closes everything. Reads are interrupted, cut short, delayed, refused once, and now and then
 * refused so long that the text fails. Both ways of reading pass through here: the stream's by its
 * hook, all pread calls by the linker. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/memory.h"
#include "support/faults/company.h"

enum {
    N_PLAYS = 24,       /* plays of a company */
    STUCK_S = 600,      /* a round that takes longer hangs */
    N_BROKEN = 40,      /* attempts that fail in a row: more than are forgiven, on all threads */
    SETTLE_MS = 60000,  /* the kernel's own threads for a ring leave a little later */
    GROWTH_KB = 2 << 10 /* growth of resident memory, from the first half to the last quarter */
};

typedef struct soak {
    drey_model *target, *draft;
    drey_session *alone;
    rng random;
    int64_t n_rounds, n_unopened;
    company_counts n;
    int64_t *resident_kb; /* [capacity]: after each round */
    int64_t capacity;
    int n_fds, n_threads; /* between rounds */
} soak;

/* ---- Faults ---- */

static _Atomic bool faulty;
static _Atomic uint64_t fault_seed, n_attempts;
static _Atomic int32_t n_broken; /* attempts that still have to fail */

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

/* 0, an errno, or minus a number of bytes. */
static int draw_fault(uint32_t n_bytes)
{
    if (!atomic_load(&faulty))
        return 0;
    rng r = rng_from(fault_seed + atomic_fetch_add(&n_attempts, 1));
    int32_t chance = rng_below(&r, 4000);
    if (atomic_load(&n_broken) > 0 && atomic_fetch_sub(&n_broken, 1) > 0)
        return EIO;
    if (chance < 2)
        atomic_store(&n_broken, N_BROKEN);
    if (chance < 20)
        return EIO;
    if (chance < 120)
        return EINTR;
    if (chance < 140)
        return EAGAIN;
    if (chance < 300)
        return -(int)(1 + rng_next(&r) % n_bytes);
    if (chance < 340)
        sleep_us(rng_below(&r, 2000));
    return 0;
}

static int stream_fault(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    return draw_fault(n_bytes);
}

/* The linker sends every pread of the library here. */
ssize_t __real_pread64(int fd, void *to, size_t n, off_t offset);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t offset);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t offset)
{
    int fault = n > 0 && n < INT32_MAX ? draw_fault((uint32_t)n) : 0;
    if (fault > 0) {
        errno = fault;
        return -1;
    }
    if (fault < 0 && (size_t)-fault + 4095 < n) /* whole blocks, for direct reads */
        n = ((size_t)-fault + 4095) & ~(size_t)4095;
    return __real_pread64(fd, to, n, offset);
}

/* ---- Cancellation, from another thread ---- */

static pthread_mutex_t cancel_lock = PTHREAD_MUTEX_INITIALIZER;
static company *cancellable; /* under the lock */
static _Atomic bool leave;

static void *cancel_now_and_then(void *arg)
{
    rng r = rng_from((uint64_t)(uintptr_t)arg);
    while (!atomic_load(&leave)) {
        sleep_us(200 + rng_below(&r, 40 * 1000));
        pthread_mutex_lock(&cancel_lock);
        if (cancellable)
            company_cancel(cancellable, &r);
        pthread_mutex_unlock(&cancel_lock);
    }
    return NULL;
}

static void let_cancel(company *c)
{
    pthread_mutex_lock(&cancel_lock);
    cancellable = c;
    pthread_mutex_unlock(&cancel_lock);
}

/* ---- What must stay the same ---- */

static int count_entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static void check_leaks(const soak *s)
{
    int n_fds = count_entries("/proc/self/fd"), n_threads = 0;
    if (n_fds != s->n_fds)
        fail_msg("%d open files after a round instead of %d", n_fds, s->n_fds);
    for (int ms = 0; ms < SETTLE_MS; ms++) {
        n_threads = count_entries("/proc/self/task");
        if (n_threads <= s->n_threads)
            return;
        sleep_us(1000);
    }
    fail_msg("%d threads after a round instead of %d", n_threads, s->n_threads);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median(const int64_t *times, int64_t n)
{
    int64_t *sorted = malloc((size_t)n * sizeof *sorted);
    memcpy(sorted, times, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    int64_t middle = sorted[n / 2];
    free(sorted);
    return middle;
}

/* ---- Playing ---- */

static drey_engine_options random_options(soak *s)
{
    rng *r = &s->random;
    static const uint64_t sizes[] = {0, 64 << 10, 100000, 512 << 10};
    drey_engine_options o = plain_options(s->target, COMPANY_CONTEXT, 1 + rng_below(r, 3));
    o.prompt_chunk = rng_below(r, 3) * 5;
    o.io = (drey_io)rng_below(r, 4);
    if (o.io == DREY_IO_URING)
        o.io = DREY_IO_AUTO; /* it may be refused here */
    o.read_bytes = sizes[rng_below(r, 4)];
    o.drafter = (drey_drafter)rng_below(r, 3);
    o.draft = o.drafter == DREY_DRAFTER_MODEL ? s->draft : NULL;
    o.policy = o.drafter == DREY_DRAFTER_NONE ? DREY_POLICY_NONE
               : rng_below(r, 2)              ? DREY_POLICY_OPTIMAL
                                              : DREY_POLICY_SEQUENCE;
    o.no_sidecar = rng_below(r, 2);
    o.n_sessions = 1 + rng_below(r, 3);
    return o;
}

static void play_round(soak *s)
{
    static company c;
    drey_engine_options o = random_options(s);
    engine_hooks hooks = {.set_share = rng_below(&s->random, 8) > 0,
                          .share = rng_below(&s->random, 10) * 0.1,
                          .fault = stream_fault};
    drey_error err = {0};
    c = company_of(s->alone, rng_next(&s->random));
    drey_status status = company_open(&c, &o, &hooks, &err);
    if (status != DREY_ERR_IO)
        must(status, &err);
    s->n_unopened += status != DREY_OK;
    let_cancel(rng_below(&s->random, 3) ? &c : NULL);
    for (int i = 0; status == DREY_OK && i < N_PLAYS; i++)
        company_play(&c);
    let_cancel(NULL);
    company_close(&c);
    company_counts_add(&s->n, &c.counts);
    s->n_rounds++;
}

/* ---- Before and after ---- */

static void begin(soak *s, uint64_t seed)
{
    toy_options toy = toy_default();
    temp_dir();
    s->random = rng_from(seed);
    toy.n_embd = 256;
    toy.n_ff = 1024;
    s->target = toy_open("target.gguf", &toy);
    toy.noise = 0.005f;
    toy.noise_seed = 3;
    s->draft = toy_open("draft.gguf", &toy);
    const drey_engine_options o = plain_options(s->target, COMPANY_CONTEXT, 1);
    s->alone = open_alone(&o, NULL);
    MUST(drey_session_sync, s->alone, &(int32_t){5}, 1, NULL);
    const drey_generate_options g = greedy(1); /* reads the weights, before reads fail */
    MUST(drey_session_generate, s->alone, NULL, 0, &g, NULL);
    toy_prepare(s->target, NULL, false);
    fault_seed = seed;
    s->capacity = 1 << 20;
    s->resident_kb = calloc((size_t)s->capacity, sizeof *s->resident_kb);
}

static void report(const soak *s, double seconds)
{
    const company_counts *n = &s->n;
    printf("soak: %.0f s, %" PRId64 " engines (%" PRId64 " not opened), %d texts: %d to the end; "
           "%d passes of several; %d steps that failed, %d that nobody wanted; %" PRIu64
           " reads; resident %" PRIu64 " MiB, at most %" PRIu64 " MiB; %d files, %d threads\n",
           seconds, s->n_rounds, s->n_unopened, n->n_texts, n->n_ends[DREY_FINISH_LENGTH],
           n->n_shared, n->n_failed, n->n_left, n_attempts, memory_resident() >> 20,
           memory_resident_peak() >> 20, s->n_fds - 2, s->n_threads - 2);
    fflush(stdout);
}

/* The first quarter fills the allocator, if it is long enough; after that nothing may grow. */
static void check_growth(const soak *s)
{
    int64_t n = s->n_rounds < s->capacity ? s->n_rounds : s->capacity, quarter = n / 4;
    if (quarter < 16) {
        printf("soak: too few rounds to compare memory\n");
        return;
    }
    int64_t before = median(s->resident_kb + quarter, quarter);
    int64_t after = median(s->resident_kb + n - quarter, quarter);
    printf("soak: resident after a round: %" PRId64 " KiB in the second quarter, %" PRId64
           " KiB in the last\n",
           before, after);
#ifndef SOAK_SANITIZED /* they keep what was freed */
    if (after > before + GROWTH_KB)
        fail_msg("memory grows");
#endif
}

int main(int argc, char **argv)
{
    static soak s;
    double seconds = 20;
    uint64_t seed = (uint64_t)time(NULL);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0)
            seconds = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
    }
    printf("soak: seed %" PRIu64 "\n", seed);
    begin(&s, seed);
    pthread_t canceller;
    if (pthread_create(&canceller, NULL, cancel_now_and_then, (void *)(uintptr_t)(seed | 1)) != 0)
        fail_msg("no thread");
    s.n_fds = count_entries("/proc/self/fd");
    s.n_threads = count_entries("/proc/self/task");
    atomic_store(&faulty, true);
    double start = clock_s(), reported = start;
    while (clock_s() - start < seconds) {
        alarm(STUCK_S);
        play_round(&s);
        check_leaks(&s);
        s.resident_kb[(s.n_rounds - 1) % s.capacity] = (int64_t)(memory_resident() >> 10);
        if (clock_s() - reported > 60) {
            report(&s, clock_s() - start);
            reported = clock_s();
        }
    }
    atomic_store(&leave, true);
    pthread_join(canceller, NULL);
    report(&s, clock_s() - start);
    check_growth(&s);
    if (s.n_rounds > 20 && n_attempts > 40000)
        assert_true(s.n.n_ends[DREY_FINISH_LENGTH] && s.n.n_ends[DREY_FINISH_INTERRUPTED] &&
                    s.n.n_failed);
    close_alone(&s.alone);
    drey_model_close(&s.target);
    drey_model_close(&s.draft);
    free(s.resident_kb);
    temp_dir_remove();
    return 0;
}
