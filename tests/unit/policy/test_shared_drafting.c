/* Drafting of sessions that share a pass: with costs that are made up and turns on a made-up
 * clock. Where eight roots fill the pass nothing is drafted, and no draft reads a prompt; where
 * reads last, everybody drafts; and what does not pay is left alone within a few turns, and
 * tried again. */
#include "common/num.h"
#include "policy/shared_drafting.h"
#include "session/sharing.h"
#include "support/policy_memory.h"
#include "support/scene.h"
#include "support/tree_path.h"

enum { N_TEXTS = 8, N_CONTEXT = 4000 };

/* ---- Eight texts on a made-up clock ---- */

/* Each token is the one before it plus one; a draft's best guess is right but for one in
 * `wrong_each` (0: never). */
typedef struct guesser {
    drafter base;
    int32_t wrong_each;
    int32_t n_unread, n_read; /* tokens of the prompt */
    int32_t n_behind;         /* rows that its next step computes as well, a millisecond each */
} guesser;

static int64_t clock_now_ns;
static double step_s;
static int32_t n_steps;

static int64_t now_ns(void)
{
    return clock_now_ns;
}

static drey_status guess_all(const draft_step *steps, int32_t n, drey_error *err)
{
    for (int32_t i = 0; i < n; i++) {
        guesser *g = (guesser *)steps[i].drafter;
        clock_now_ns += g->n_behind * INT64_C(1000000);
        g->base.n_caught_up = g->n_behind;
        g->n_behind = 0;
        for (int32_t k = 0; k < steps[i].n; k++) {
            int32_t token = steps[i].tree->nodes[steps[i].nodes[k]].token;
            bool wrong = g->wrong_each > 0 && token % g->wrong_each == 0;
            const candidate two[] = {{wrong ? token + 5000 : token + 1, 0.75f},
                                     {token + 10000, 0.1f}};
            tree_guess(steps[i].tree, steps[i].nodes[k], two, 2);
        }
    }
    n_steps++;
    clock_now_ns += (int64_t)(step_s * 1e9);
    return DREY_OK;
}

static drey_status guess_one(drafter *d, token_tree *t, const int32_t *nodes, int32_t n,
                             drey_error *err)
{
    const draft_step step = {d, t, nodes, n};
    return guess_all(&step, 1, err);
}

static bool unread(const drafter *d)
{
    return ((const guesser *)d)->n_unread > 0;
}

static drey_status read_chunk(drafter *d, int64_t until_ns, draft_reading *state, drey_error *err)
{
    guesser *g = (guesser *)d;
    g->n_read += g->n_unread;
    g->n_unread = 0;
    *state = DRAFT_CHUNK_READ;
    return DREY_OK;
}

static const drafter_reader reader = {unread, read_chunk};
static const drafter_class guesses = {
    .expand = guess_one, .expand_all = guess_all, .reader = &reader};

typedef struct world {
    turn_cost cost;
    drafting_trust trust;
    policy_memory memory[N_TEXTS];
    token_tree tree[N_TEXTS];
    guesser guesser[N_TEXTS];
    shared_tree trees[N_TEXTS];
    double one_s, row_s, read_s; /* a pass of one row, each other one, what reads take */
    double time_s;
    int64_t n_tokens;
} world;

/* Pass and step take at first what their bytes do. */
static void open_world(world *w, int32_t wrong_each, double read_s)
{
    step_s = 0.004;
    clock_now_ns = 0;
    *w = (world){.one_s = 0.015, .row_s = 0.003, .read_s = read_s};
    cost_init(&w->cost, (uint64_t)(w->one_s * 30e9), (uint64_t)(read_s * 2.5e9),
              (uint64_t)(step_s * 30e9), 0);
    for (int32_t i = 0; i < N_TEXTS; i++) {
        tree_reset(&w->tree[i], i * 17);
        w->guesser[i] = (guesser){.base.class = &guesses, .wrong_each = wrong_each};
        draft_policy *p = policy_init(&w->memory[i], &policy_optimal, 47, 0);
        p->cost = &w->cost;
        p->now_ns = now_ns;
        w->trees[i] = (shared_tree){&w->guesser[i].base, p, &w->tree[i], 100, false};
    }
}

static double pass_s(const world *w, int32_t rows)
{
    return w->one_s + w->row_s * (rows - 1);
}

static void take(world *w, shared_tree *t)
{
    int32_t path[TREE_MAX_NODES], moved[TREE_MAX_NODES], next;
    int32_t n = tree_counted(t->tree, 5000, path, &next);
    drafting_trust_learn(&w->trust, t->tree, n);
    draft_observe(t->policy, t->tree, path, n, next);
    tree_moves(t->tree, path, n, next, moved);
    tree_reroot(t->tree, next, moved);
    w->n_tokens += n + 1;
}

/* A turn of the first n texts. Returns how many steps the draft took. */
static int32_t turn(world *w, int32_t n)
{
    shared_drafting c = {.trees = w->trees, .n = n, .trust = &w->trust, .most = 88};
    int32_t rows = n;
    n_steps = 0;
    int64_t begun_ns = clock_now_ns;
    w->cost.draft_s = 0;
    w->cost.shared = true;
    MUST(shared_drafting_grow, &c);
    shared_drafting_submit(&c);
    for (int32_t i = 0; i < n; i++)
        rows += tree_n_submitted(&w->tree[i]);
    double computing_s = pass_s(w, rows), wall_s = max_f64(computing_s, w->read_s);
    clock_now_ns += (int64_t)(wall_s * 1e9);
    cost_saw_pass(&w->cost, rows, wall_s, wall_s - computing_s);
    w->cost.turn_s = 0;
    for (int32_t i = 0; i < n; i++)
        take(w, &w->trees[i]);
    w->time_s += (double)(clock_now_ns - begun_ns) * 1e-9;
    return n_steps;
}

/* Gain over plain decoding. */
static double gain(const world *w, int32_t n)
{
    return (double)w->n_tokens / w->time_s * max_f64(pass_s(w, n), w->read_s) / n;
}

static void gains(const world *w, int32_t n, double least)
{
    if (gain(w, n) < least)
        fail_msg("%.3f of plain decoding, not %.2f", gain(w, n), least);
}

/* Eight rows take 36 ms, each more 3, and half a step: a node that is right three times in four
 * writes less, 0.75 in 3.5 ms, than all do without it, 8 in 36. */
TEST(a_full_pass_drafts_nothing)
{
    static world w;
    int32_t drafted = 0;
    open_world(&w, 3, 0);
    for (int i = 0; i < 500; i++)
        drafted += turn(&w, N_TEXTS) > 0;
    assert_in_range(drafted, 0, 25);
    gains(&w, N_TEXTS, 0.98);
    /* Two of them are left: at once there is room. */
    w.n_tokens = 0;
    w.time_s = 0;
    for (int i = 0; i < 50; i++)
        turn(&w, 2);
    gains(&w, 2, 1.1);
}

/* Reads last as long as 62 rows: everybody drafts. */
TEST(reads_leave_room)
{
    static world w;
    open_world(&w, 4, 0.2);
    for (int i = 0; i < 100; i++)
        assert_true(turn(&w, N_TEXTS) > 0);
    gains(&w, N_TEXTS, 2);
}

/* A draft that is always wrong, then always right: a few turns, and one now and then. */
TEST(it_stops_and_comes_back)
{
    static world w;
    int32_t last = 0, late = 0;
    open_world(&w, 1, 0);
    for (int i = 0; i < 1000; i++) {
        bool drafts = turn(&w, 2) > 0;
        last = drafts && i < 50 ? i : last;
        late += drafts && i >= 500;
    }
    assert_true(last < 8);
    assert_in_range(late, 1, 50);
    gains(&w, 2, 0.97);
    for (int32_t i = 0; i < N_TEXTS; i++)
        w.guesser[i].wrong_each = 0;
    for (int i = 0; i < 500; i++)
        turn(&w, 2);
    w.n_tokens = 0;
    w.time_s = 0;
    for (int i = 0; i < 100; i++)
        turn(&w, 2);
    gains(&w, 2, 1.3);
}

/* A step that computes a prompt or what was written during a pause says nothing about the others:
 * drafting continues, of one text (an EAGLE layer stopped after its first step) and of two. */
TEST(catching_up_is_no_step)
{
    for (int32_t n = 1; n <= 2; n++) {
        static world w;
        int32_t drafted = 0;
        open_world(&w, 4, 0);
        step_s = 0.0008;
        w.guesser[0].n_behind = w.guesser[1].n_behind = 64;
        for (int i = 0; i < 100; i++) {
            drafted += turn(&w, n) > 0;
            if (i == 50)
                w.guesser[0].n_behind = 300;
        }
        assert_true(drafted > 90 && w.cost.step < 0.0015);
        gains(&w, n, 1.3);
    }
}

/* ---- Promises ---- */

#define near(got, want) assert_near(got, want, 1e-6)

enum { UNIT_S = 1000000 }; /* so long that no clock comes near one */

TEST(what_a_first_step_promises)
{
    static world w;
    open_world(&w, 0, 0);
    w.cost = small_pass(UNIT_S);
    shared_drafting c = {.trees = w.trees, .n = 2, .most = 40};
    /* 2 tokens in 1 s; with a step 3.5 in 1.104: its first guesses are taken to be worth 0.75. */
    near(shared_drafting_promise(&c), 3.5 / 1.104 / 2 - 1);
    /* With six other rows: 8 in 3 s; with a step of one 8.75 in 3.6, and more without
     * its guess, in 3.1. */
    c.n_plain = 6;
    near(shared_drafting_promise(&c), 3 / 3.1 - 1);
    /* Reads of 4 s hide all that: 8 in 4, 9.5 in 4.104. */
    w.cost.read_s = 4e6;
    near(shared_drafting_promise(&c), 9.5 / 4.104 / 2 - 1);
    /* Of 6 promised tokens 2 came: guesses are worth (2 + 4) / (6 + 4) of that. 8.9 in 4.104. */
    w.trust = (drafting_trust){.came = 2, .promised = 6};
    c.trust = &w.trust;
    near(shared_drafting_promise(&c), 8.9 / 4.104 / 2 - 1);
}

/* ---- Prompts of drafts ---- */

typedef struct place {
    drey_engine engine;
    drey_session session[N_TEXTS];
    drey_session *list[N_TEXTS];
    trace_ring ring;
} place;

static void open_place(place *p, world *w, double read_s)
{
    memset(p, 0, sizeof *p);
    open_world(w, 0, 0);
    w->cost = small_pass(UNIT_S);
    p->engine.cost = small_pass(UNIT_S);
    p->engine.cost.read_s = read_s;
    p->engine.config.n_context = N_CONTEXT;
    p->engine.trace = (trace){.rings = &p->ring, .n_threads = 1};
    for (int32_t i = 0; i < N_TEXTS; i++) {
        drey_session *s = p->list[i] = &p->session[i];
        s->engine = &p->engine;
        s->state = SESSION_DECODE;
        s->drafter = &w->guesser[i].base;
        s->policy = w->trees[i].policy;
        s->policy->cost = &p->engine.cost;
        s->text.options.n_predict = 500;
        s->n_timeline = 300;
        s->draft_cache.n_committed = 100;
        w->guesser[i].n_unread = 200;
        tree_reset(&s->tree, 1);
    }
}

static int32_t n_read(const world *w)
{
    int32_t n = 0;
    for (int32_t i = 0; i < N_TEXTS; i++)
        n += w->guesser[i].n_read;
    return n;
}

TEST(drafts_read_where_it_pays)
{
    static world w;
    static place p;
    /* As above: eight in memory do not. */
    open_place(&p, &w, 0);
    MUST(sharing_draft, p.list, N_TEXTS, 0, 80);
    assert_int_equal(n_read(&w), 0);
    for (int32_t i = 0; i < N_TEXTS; i++) {
        assert_true(p.session[i].drafter->lags && p.session[i].tree.nodes[0].submitted);
        assert_int_equal(p.session[i].tree.n_nodes, 1);
    }
    /* Two of them do, unless six others are about to write. What is promised in one turn, 0.58 of
     * it, might be a mistake, and more is not believed before they had a turn without a draft. */
    MUST(sharing_draft, p.list, 2, 6, 80);
    for (int i = 0; i < 9; i++)
        MUST(sharing_draft, p.list, 2, 0, 80);
    p.engine.cost.pass[1] = p.engine.cost.usual_pass; /* of 2 to 4 rows */
    MUST(sharing_draft, p.list, 2, 0, 80);
    assert_int_equal(n_read(&w), 0);
    MUST(sharing_draft, p.list, 2, 0, 80);
    assert_int_equal(n_read(&w), 400);
    /* One alone always reads. */
    MUST(sharing_draft, p.list + 2, 1, 0, 80);
    assert_int_equal(n_read(&w), 600);
    /* Where reads of 9 s bind, eight do. */
    open_place(&p, &w, 9e6);
    MUST(sharing_draft, p.list, N_TEXTS, 0, 80);
    assert_int_equal(n_read(&w), N_TEXTS * 200);
    assert_true(tree_n_submitted(&p.session[0].tree) > 0);
    /* 200 tokens take 200 / 8 steps of 0.128 s each: 3.2 s. Two texts promise 0.58 of a turn, of
     * which each has a half: of 1 s, and of two tokens. That is 0.146 s a token, and 22 of them are
     * enough. */
    open_place(&p, &w, 0);
    p.engine.promised = 1;
    p.session[0].text.options.n_predict = 21 + 1;
    p.session[1].text.options.n_predict = 22 + 1;
    MUST(sharing_draft, p.list, 2, 0, 80);
    assert_int_equal(w.guesser[0].n_read, 0);
    assert_int_equal(w.guesser[1].n_read, 200);
}
