/* A soak: one process that writes text after text under random faults and cancellations, and must
 * end as it began: the same text whenever a text ends well, a right beginning of it whenever not,
 * and no more memory, descriptors or threads after hours than after minutes.
 *
 *   soak [--seconds N] [--seed N]        (20 s, a seed from the clock)
 *
 * Each round opens an engine of random budget, drafter, threads and way of reading, over a model
 * with a sidecar or without; writes some texts in some sessions while another thread cancels at
 * random; and closes everything. Reads are interrupted, cut short, delayed, refused once, and now
 * and then refused so long that the text fails; half of those texts are then continued. Both ways
 * of reading pass through here: the stream's by its hook, all pread calls by the linker. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "session/session.h"
#include "os/clock.h"
#include "os/memory.h"
#include "support/rng.h"
#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/writing.h"

enum {
    N_TEXT = 32,
    N_PROMPTS = 4,
    PROMPT = 12,
    STUCK_S = 600,      /* a round that takes longer hangs */
    N_BROKEN = 12,      /* attempts that fail in a row: more than are forgiven, on all threads */
    SETTLE_MS = 60000,  /* the kernel's own threads for a ring leave a little later */
    GROWTH_KB = 2 << 10 /* of resident memory, from the first half to the last quarter */
};

typedef struct tally {
    int64_t rounds, unopened, texts, right, cancelled, failed, continued;
} tally;

typedef struct soak {
    drey_model *target, *draft;
    int32_t prompt[N_PROMPTS][PROMPT];
    writing expected[N_PROMPTS];
    rng random;
    tally n;
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
    if (chance == 0)
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
    (void)user;
    (void)part;
    (void)offset;
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
static drey_session *cancellable; /* under the lock */
static _Atomic bool leave;

static void *cancel_now_and_then(void *arg)
{
    rng r = rng_from((uint64_t)(uintptr_t)arg);
    while (!atomic_load(&leave)) {
        sleep_us(200 + rng_below(&r, 120 * 1000));
        pthread_mutex_lock(&cancel_lock);
        if (cancellable)
            drey_session_cancel(cancellable);
        pthread_mutex_unlock(&cancel_lock);
    }
    return NULL;
}

static void let_cancel(drey_session *s)
{
    pthread_mutex_lock(&cancel_lock);
    cancellable = s;
    pthread_mutex_unlock(&cancel_lock);
}

/* ---- What must stay the same ---- */

static void die(const char *what, const char *more)
{
    fprintf(stderr, "soak: %s%s%s\n", what, more ? ": " : "", more ? more : "");
    exit(1);
}

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
    char line[80];
    if (n_fds != s->n_fds) {
        snprintf(line, sizeof line, "%d instead of %d", n_fds, s->n_fds);
        die("open files after a round", line);
    }
    for (int ms = 0; ms < SETTLE_MS; ms++) {
        n_threads = count_entries("/proc/self/task");
        if (n_threads <= s->n_threads)
            return;
        sleep_us(1000);
    }
    snprintf(line, sizeof line, "%d instead of %d", n_threads, s->n_threads);
    die("threads after a round", line);
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

/* ---- Writing ---- */

typedef struct text {
    const drey_session *session;
    const writing *expected;
    int32_t n;
} text;

static void check_state(const drey_session *session)
{
    if (!tree_is_valid(&session->tree))
        die("the tree is not valid", NULL);
    if (!cache_is_valid(&session->target_cache) || !cache_is_valid(&session->draft_cache))
        die("a cache is not valid", NULL);
    if (!weights_is_valid(session->target.weights))
        die("the target's weights are not valid", NULL);
}

static bool check_token(void *user, int32_t id)
{
    text *t = user;
    check_state(t->session);
    if (t->n >= N_TEXT || id != t->expected->ids[t->n])
        die("a token is not the one that should be there", NULL);
    t->n++;
    return true;
}

static void check_session(const drey_session *session)
{
    if (!session_is_valid(session))
        die("a session is not valid", NULL);
}

/* As drey_session_generate, but a step that fails is sometimes tried again. */
static drey_status write_steps(soak *s, drey_session *session, const int32_t *ids, size_t n,
                               const drey_generate_options *g, drey_error *err)
{
    drey_status status = n ? drey_session_sync(session, ids, n, NULL, err) : DREY_OK;
    if (status == DREY_OK)
        status = drey_session_begin(session, g, NULL, err);
    for (bool done = status != DREY_OK; !done;) {
        status = drey_session_step(session, &done, err);
        check_session(session);
        if (status == DREY_ERR_IO && rng_below(&s->random, 2))
            break;
    }
    drey_session_end(session);
    return status;
}

static void write_text(soak *s, drey_session *session, int prompt)
{
    text t = {.session = session, .expected = &s->expected[prompt]};
    drey_error err = {0};
    drey_status status = DREY_OK;
    drey_generate_options g = greedy(N_TEXT);
    g.on_token = check_token;
    g.user = &t;
    s->n.texts++;
    for (int call = 0; t.n < N_TEXT; call++) {
        g.n_predict = N_TEXT - t.n;
        bool first = session->n_timeline == 0;
        const int32_t *ids = first ? s->prompt[prompt] : NULL;
        size_t n = first ? PROMPT : 0;
        status = rng_below(&s->random, 2) ? drey_session_generate(session, ids, n, &g, NULL, &err)
                                          : write_steps(s, session, ids, n, &g, &err);
        check_session(session);
        check_state(session);
        if (status != DREY_OK && status != DREY_ERR_CANCELLED && status != DREY_ERR_IO)
            die("a text ended with", err.message);
        if (status == DREY_ERR_IO && !strstr(err.message, "cannot read"))
            die("a read failed with", err.message);
        if (status == DREY_OK && t.n < N_TEXT)
            die("a text is too short", NULL);
        s->n.cancelled += status == DREY_ERR_CANCELLED;
        s->n.failed += status == DREY_ERR_IO;
        if (status == DREY_OK || rng_below(&s->random, 2))
            break;
        s->n.continued++;
    }
    s->n.right += t.n == N_TEXT;
    drey_session_reset(session);
}

static drey_engine_options random_options(soak *s)
{
    rng *r = &s->random;
    static const uint64_t sizes[] = {0, 64 << 10, 100000, 512 << 10};
    drey_engine_options o = plain_options(s->target, PROMPT + N_TEXT, 1 + rng_below(r, 3));
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
    return o;
}

static void play_round(soak *s)
{
    drey_engine_options o = random_options(s);
    engine_hooks hooks = {.set_share = rng_below(&s->random, 8) > 0,
                          .share = rng_below(&s->random, 10) * 0.1,
                          .fault = stream_fault};
    drey_engine *e = NULL;
    drey_error err = {0};
    drey_status status = engine_open(&e, &o, &hooks, &err);
    if (status != DREY_OK && status != DREY_ERR_IO)
        die("an engine was not opened", err.message);
    s->n.unopened += status != DREY_OK;
    for (int n = status == DREY_OK ? 1 + rng_below(&s->random, 2) : 0; n > 0; n--) {
        drey_session *session = NULL;
        if (drey_session_open(&session, e, &err) != DREY_OK)
            die("a session was not opened", err.message);
        let_cancel(rng_below(&s->random, 3) ? session : NULL);
        for (int texts = 1 + rng_below(&s->random, 3); texts > 0; texts--)
            write_text(s, session, rng_below(&s->random, N_PROMPTS));
        let_cancel(NULL);
        drey_session_close(&session);
    }
    drey_engine_close(&e);
    s->n.rounds++;
}

/* ---- Before and after ---- */

/* Plain decoding in memory, without faults. */
static void write_expected(soak *s)
{
    drey_engine_options o = plain_options(s->target, PROMPT + N_TEXT, 1);
    for (int i = 0; i < N_PROMPTS; i++) {
        writing *w = &s->expected[i];
        for (int j = 0; j < PROMPT; j++)
            s->prompt[i][j] = 1 + rng_below(&s->random, 250);
        writing_run(w, &o, -1, s->prompt[i], PROMPT, N_TEXT, NULL);
        must(w->status, &w->error);
    }
}

static void begin(soak *s, uint64_t seed)
{
    toy_options toy = toy_usual();
    temp_dir();
    s->random = rng_from(seed);
    toy.n_embd = 256;
    toy.n_ff = 1024;
    s->target = toy_open("target.gguf", &toy);
    toy.noise = 0.005f;
    toy.noise_seed = 3;
    s->draft = toy_open("draft.gguf", &toy);
    write_expected(s);
    toy_prepare(s->target, NULL, false);
    fault_seed = seed;
    s->capacity = 1 << 20;
    s->resident_kb = calloc((size_t)s->capacity, sizeof *s->resident_kb);
}

static void report(const soak *s, double seconds)
{
    const tally *n = &s->n;
    printf("soak: %.0f s, %" PRId64 " engines (%" PRId64 " not opened), %" PRId64 " texts: %" PRId64
           " to the end; stopped %" PRId64 " times by cancelling, %" PRId64
           " by errors, continued %" PRId64 " times; %" PRIu64 " reads; resident %" PRIu64
           " MiB, at most %" PRIu64 " MiB; %d files, %d threads\n",
           seconds, n->rounds, n->unopened, n->texts, n->right, n->cancelled, n->failed,
           n->continued, n_attempts, memory_resident() >> 20, memory_resident_peak() >> 20,
           s->n_fds - 2, s->n_threads - 2);
    fflush(stdout);
}

/* The first quarter fills the allocator, if it is long enough; after that nothing may grow. */
static void check_growth(const soak *s)
{
    int64_t n = s->n.rounds < s->capacity ? s->n.rounds : s->capacity, quarter = n / 4;
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
        die("memory grows", NULL);
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
        die("no thread", NULL);
    s.n_fds = count_entries("/proc/self/fd");
    s.n_threads = count_entries("/proc/self/task");
    atomic_store(&faulty, true);
    double start = clock_s(), reported = start;
    while (clock_s() - start < seconds) {
        alarm(STUCK_S);
        play_round(&s);
        check_leaks(&s);
        s.resident_kb[(s.n.rounds - 1) % s.capacity] = (int64_t)(memory_resident() >> 10);
        if (clock_s() - reported > 60) {
            report(&s, clock_s() - start);
            reported = clock_s();
        }
    }
    atomic_store(&leave, true);
    pthread_join(canceller, NULL);
    report(&s, clock_s() - start);
    check_growth(&s);
    if (s.n.rounds > 20 && (!s.n.right || !s.n.cancelled || !s.n.failed))
        die("a kind of ending did not occur", NULL);
    drey_model_close(&s.target);
    drey_model_close(&s.draft);
    free(s.resident_kb);
    temp_dir_remove();
    return 0;
}
