/* Work in the gaps of a pass, on a clock of the test's own: no slice begins while a piece waits,
 * none is longer than it may be, and the disk never has to wait. */
#include "policy/slices.h"
#include "support/rng.h"
#include "support/test.h"

typedef struct world {
    int64_t now, arrives;     /* the time; when the pass can continue */
    int64_t ring_full;        /* when the disk would have to wait */
    int64_t overshoot;        /* a slice ends so late at most */
    int64_t left;             /* work that there is */
    int32_t n_slices, n_late; /* n_late: begun although the pass could continue */
    int64_t longest;          /* slice that was asked for */
    rng r;
} world;

static bool ready(void *user)
{
    const world *w = user;
    return w->now >= w->arrives;
}

static int64_t room_ns(void *user)
{
    const world *w = user;
    return w->ring_full > w->now ? w->ring_full - w->now : 0;
}

static int64_t now(void *user)
{
    return ((world *)user)->now;
}

static bool slice(void *user, int64_t until_ns)
{
    world *w = user;
    if (w->left <= 0)
        return false;
    w->n_slices++;
    w->n_late += w->now >= w->arrives;
    w->longest = until_ns - w->now > w->longest ? until_ns - w->now : w->longest;
    assert_true(until_ns > w->now && until_ns <= w->ring_full);
    int64_t used = until_ns - w->now + (w->overshoot ? rng_below(&w->r, (int32_t)w->overshoot) : 0);
    used = used < w->left ? used : w->left;
    w->left -= used;
    w->now += used;
    return true;
}

static const sliced_work *work_of(world *w)
{
    static sliced_work g;
    g = (sliced_work){
        .ready = ready, .room_ns = room_ns, .clock_ns = now, .slice = slice, .user = w};
    return &g;
}

enum { MS = 1000000 };

TEST(nothing_while_a_piece_waits)
{
    world w = {.now = 5 * MS, .arrives = 5 * MS, .ring_full = 50 * MS, .left = 9 * MS};
    assert_false(slices_run(work_of(&w)));
    assert_int_equal(w.n_slices, 0);
}

/* A gap of 3.5 ms: four slices of 1 ms, and the pass continues half a millisecond late. */
TEST(a_gap)
{
    world w = {.arrives = 3 * MS + MS / 2, .ring_full = 50 * MS, .left = 100 * MS};
    assert_true(slices_run(work_of(&w)));
    assert_int_equal(w.n_slices, 4);
    assert_int_equal(w.now, 4 * MS);
    assert_int_equal(w.longest, SLICE_NS);
}

TEST(a_ring_that_fills)
{
    world w = {.arrives = 30 * MS, .ring_full = 2 * MS + MS / 4, .left = 100 * MS};
    assert_true(slices_run(work_of(&w)));
    assert_int_equal(w.n_slices, 3); /* the last one a quarter of a millisecond */
    assert_int_equal(w.now, w.ring_full);
    assert_false(slices_run(work_of(&w))); /* from now on the caller waits */
    assert_int_equal(w.n_slices, 3);
}

TEST(work_that_ends)
{
    world w = {.arrives = 30 * MS, .ring_full = 50 * MS, .left = MS + MS / 2};
    assert_true(slices_run(work_of(&w)));
    assert_int_equal(w.n_slices, 2);
    assert_int_equal(w.now, MS + MS / 2); /* the rest of the gap is waited for, not spun away */
    assert_false(slices_run(work_of(&w)));
}

/* A whole pass of random gaps. */
TEST(a_pass)
{
    world w = {.left = INT64_MAX, .overshoot = MS / 5, .r = rng_from(3)};
    int64_t latest = 0;
    for (int i = 0; i < 2000; i++) {
        w.arrives = w.now + rng_below(&w.r, 8 * MS) - MS;
        w.ring_full = w.now + rng_below(&w.r, 20 * MS);
        int64_t late = w.now > w.arrives ? w.now - w.arrives : 0;
        slices_run(work_of(&w));
        late = w.now - w.arrives - late;
        latest = late > latest ? late : latest;
    }
    assert_int_equal(w.n_late, 0);
    assert_true(w.n_slices > 2000 && w.longest == SLICE_NS);
    assert_true(latest > 0 && latest < SLICE_NS + w.overshoot);
}
