/* Sessions cancelled in the middle of a pass, at a chosen product or callback: the others write the
 * same text as without that, and the cancelled one is free for a new text at the end of the layer.
 * Cancelled by another thread, at random: test_sessions.c. */
#include "session/session.h"
#include "state/cache.h"
#include "support/toy_models.h"
#include "support/writing.h"

enum { N_CONTEXT = 120, N_SESSIONS = 3, N_TEXT = 20, N_PROMPT = 30 };

typedef struct scene scene;
typedef struct writer { /* data for the callbacks */
    writing text;       /* first */
    scene *scene;
    int i;
    writing *cut; /* the text before it, which was cancelled; NULL: none yet */
} writer;

struct scene {
    engine_place at;
    writer writer[N_SESSIONS];
    writing cut[N_SESSIONS];
    bool begins_again; /* a cancelled session begins its text again in the same step, */
    bool takes_others; /* and cancels all others */
    /* Counts in the pass that loads: products so far, the one after which session cancel_who is
     * cancelled, and the one after which the first text ended. */
    int32_t n_products, cancel_after, cancel_who, end_after;
};

/* Called after each product of the pass that loads, in the thread that takes the steps. */
static void count_product(void *user, drey_progress what, uint64_t done, uint64_t total)
{
    scene *p = user;
    if (what == DREY_PROGRESS_LOAD_TARGET && ++p->n_products == p->cancel_after)
        drey_session_cancel(p->at.session[p->cancel_who]);
}

static void open_scene(scene *p, double share, bool drafts)
{
    drey_engine_options o =
        toys_options(drafts ? DREY_DRAFTER_MODEL : DREY_DRAFTER_NONE, N_CONTEXT, 1);
    *p = (scene){0};
    o.n_sessions = N_SESSIONS;
    o.prompt_chunk = 16;
    o.read_bytes = 64 << 10;
    o.progress = count_product;
    o.progress_user = p;
    const engine_hooks hooks = {.set_share = share <= 1, .share = share};
    p->at = place_open(&o, &hooks);
}

static void begin(scene *p, int i);

static void begin_again(void *user)
{
    writer *w = user;
    scene *p = w->scene;
    if (p->end_after == 0)
        p->end_after = p->n_products;
    for (int i = 0; i < N_SESSIONS && p->takes_others; i++)
        drey_session_cancel(p->at.session[i]);
    if (!p->begins_again || w->cut || w->text.stats.finish != DREY_FINISH_INTERRUPTED)
        return;
    p->cut[w->i] = w->text;
    begin(p, w->i);
    w->cut = &p->cut[w->i];
}

static void begin(scene *p, int i)
{
    int32_t prompt[N_PROMPT];
    rng r = rng_from((uint64_t)i + 1);
    writer *w = &p->writer[i];
    for (int k = 0; k < N_PROMPT; k++)
        prompt[k] = 1 + rng_below(&r, 250);
    *w = (writer){.scene = p, .i = i};
    drey_generate_options g = writing_into(&w->text, N_TEXT);
    g.on_end = begin_again;
    MUST(drey_session_sync, p->at.session[i], prompt, N_PROMPT, NULL);
    MUST(drey_session_begin, p->at.session[i], &g, &w->text.stats);
}

static void write_all(scene *p)
{
    int32_t n_writing;
    do
        MUST(drey_engine_step, p->at.engine, &n_writing);
    while (n_writing);
}

/* Begins all texts from the beginning. */
static void begin_all(scene *p)
{
    for (int i = 0; i < N_SESSIONS; i++)
        drey_session_reset(p->at.session[i]);
    for (int i = 0; i < N_SESSIONS; i++)
        begin(p, i);
}

static void make_right(writing right[N_SESSIONS])
{
    static scene p;
    open_scene(&p, 2, false);
    for (int i = 0; i < N_SESSIONS; i++) {
        begin(&p, i);
        write_all(&p);
        right[i] = p.writer[i].text;
        assert_int_equal(right[i].n_ids, N_TEXT);
    }
    place_close(&p.at);
}

static void check_beginning(const writing *got, const writing *right)
{
    assert_memory_equal(got->ids, right->ids, (size_t)got->n_ids * sizeof *got->ids);
}

/* After each product of the pass that loads, which reads three prompts; a layer has four products,
 * and there is one before the first layer. A cancelled text ends by the end of its layer; the next
 * one of that session and those of the others are right. */
TEST(test_within_a_layer)
{
    static writing right[N_SESSIONS];
    make_right(right);
    for (int32_t n_products = 9, after = 1; after <= n_products; after++) {
        static scene p;
        int i = after % N_SESSIONS;
        open_scene(&p, after % 2 ? 0 : 0.5, after % 3 == 0);
        p.begins_again = true;
        p.cancel_after = after;
        p.cancel_who = i;
        begin_all(&p);
        write_all(&p);
        assert_int_equal(p.writer[i].cut->n_ids, 0);
        /* A mixture loads all matrices before the first layer, which has five products. */
        const model_layout *l = &p.at.engine->target.layout;
        int32_t loads = l->experts ? l->n_matrices : 0;
        assert_in_range(p.end_after, after, (after > loads ? after : loads) + (l->experts ? 5 : 4));
        for (int k = 0; k < N_SESSIONS; k++)
            must_be_same(&right[k], &p.writer[k].text, "not cancelled");
        n_products = p.n_products;
        place_close(&p.at);
    }
}

/* One session is cancelled in the middle of a pass, and then all others: at the next layer no
 * session needs the pass any more. */
TEST(test_the_last_leave_together)
{
    static writing right[N_SESSIONS];
    make_right(right);
    for (int i = 0; i < N_SESSIONS; i++) {
        static scene p;
        open_scene(&p, 2, false);
        p.takes_others = true;
        p.cancel_after = 6;
        p.cancel_who = i;
        begin_all(&p);
        write_all(&p);
        p.takes_others = false;
        for (int k = 0; k < N_SESSIONS; k++) {
            assert_int_equal(p.writer[k].text.stats.finish, DREY_FINISH_INTERRUPTED);
            assert_int_equal(p.writer[k].text.n_ids, 0);
            assert_true(session_is_valid(p.at.session[k]));
            begin(&p, k);
        }
        write_all(&p);
        for (int k = 0; k < N_SESSIONS; k++)
            must_be_same(&right[k], &p.writer[k].text, "not cancelled");
        place_close(&p.at);
    }
}

/* session that is cancelled in a callback of another one's text. */
static drey_session *victim;

static bool cancel_other(void *user, int32_t id)
{
    if (((const writing *)user)->n_ids == 2)
        drey_session_cancel(victim);
    return writing_keep_id(user, id);
}

TEST(test_from_a_callback)
{
    static writing right[N_SESSIONS];
    static scene p;
    make_right(right);
    open_scene(&p, 2, true);
    begin(&p, 0);
    begin(&p, 1);
    drey_session_end(p.at.session[1]);
    p.writer[1] = (writer){.scene = &p, .i = 1};
    drey_generate_options g = writing_into(&p.writer[1].text, N_TEXT);
    g.on_token = cancel_other;
    MUST(drey_session_begin, p.at.session[1], &g, &p.writer[1].text.stats);
    /* The victim comes last: its prompt takes two passes, by when the other has three tokens. How
     * many rows of a prompt join a pass is up to clocks. */
    for (int32_t n_writing; p.writer[1].text.n_ids == 0;)
        MUST(drey_engine_step, p.at.engine, &n_writing);
    begin(&p, 2);
    victim = p.at.session[2];
    write_all(&p);
    for (int i = 0; i < N_SESSIONS; i++)
        check_beginning(&p.writer[i].text, &right[i]);
    assert_true(p.writer[0].text.n_ids == N_TEXT && p.writer[1].text.n_ids == N_TEXT);
    assert_int_equal(p.writer[2].text.stats.finish, DREY_FINISH_INTERRUPTED);
    assert_true(p.writer[2].text.n_ids < N_TEXT);
    place_close(&p.at);
}

/* ---- */

static int make_models(void **state)
{
    toy_options toy = toy_asked();
    toy.n_embd = 128;
    toy.n_ff = 256;
    toys_open_pair(&toy);
    return 0;
}

/* Where nobody who stays wants logits, the head's bytes are given back: else the ring would be full
 * of them a few passes later, and the next one would wait for ever. */
TEST(test_nobody_wants_the_head)
{
    static scene p;
    static writing right[N_SESSIONS];
    make_right(right);
    open_scene(&p, 0, false);
    begin(&p, 0);
    write_all(&p); /* the first pass loads */
    const int32_t n_layers = p.at.session[0]->target.layout->shape.n_layers;
    for (int32_t round = 0; round < 5 * n_layers; round++) {
        model_pass pass;
        const pass_row row = {.token = 5, .parent = -1};
        pass_group groups[2];
        for (int i = 0; i < 2; i++)
            groups[i] = (pass_group){.cache = &p.at.session[i]->target_cache,
                                     .rows = &row,
                                     .n = 1,
                                     .head = i == 0 ? HEAD_ALL : HEAD_NONE};
        MUST(pass_begin, &pass, &p.at.session[0]->target, groups, 2);
        for (pass_state at = PASS_CONTINUES; at != PASS_DONE;) {
            MUST(pass_step, &pass, 0, &at);
            if (at == PASS_STARVED)
                pass_wait(&pass);
            if (pass_at_layer(&pass) && pass_layers_done(&pass) == 1 + round % n_layers)
                pass_drop(&pass, 0);
        }
        MUST(pass_end, &pass);
        assert_int_equal(cache_pending(&p.at.session[0]->target_cache), 0);
        assert_int_equal(cache_pending(&p.at.session[1]->target_cache), 1);
        cache_clear(&p.at.session[1]->target_cache);
    }
    begin(&p, 1);
    write_all(&p);
    check_beginning(&p.writer[1].text, &right[1]);
    place_close(&p.at);
}

TEST_GROUP(make_models, toys_close)
