/* Gathering the samples of predictors: see exit_samples.h.
 *
 * The model continues a prompt as always, with its drafter and policy. Then its text is processed
 * three times: by the model, whose choices are the labels; by the drafter, token by token as in
 * decoding, for its candidates; and by the model again, this time with a stop after every layer
 * from the middle on, where its whole head is computed for all rows. */
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmath.h"
#include "common/num.h"
#include "draft/drafter.h"
#include "model/pass.h"
#include "model/workspace.h"
#include "os/clock.h"
#include "os/pool.h"
#include "session/session_probe.h"
#include "state/cache.h"
#include "train/exit_samples.h"
#include "drey/train.h"

enum { HEARD = TREE_MAX_GUESSES };

/* ---- Samples ---- */

size_t exit_samples_bytes(int32_t n_layers, int32_t room)
{
    size_t looks = (size_t)room * (size_t)(n_layers - n_layers / 2);
    return arena_size((size_t)room * sizeof(exit_position)) + arena_size(looks * sizeof(exit_look));
}

void exit_samples_init(exit_samples *s, int32_t n_layers, int32_t room, arena *a)
{
    *s = (exit_samples){.n_layers = n_layers, .first = max_i32(n_layers / 2, 1), .room = room};
    s->own_layer = max_i32(s->first, n_layers * 4 / 5);
    s->position = arena_take(a, (size_t)room * sizeof *s->position);
    s->look = arena_take(a, (size_t)room * (size_t)(n_layers - s->first) * sizeof *s->look);
}

/* ---- The text ---- */

/* A prompt and its continuation: rows [first, n - 1) are the positions. */
typedef struct written {
    const int32_t *ids; /* [n]: of the session's timeline */
    int32_t first, n;
    int32_t at; /* index of the first row's position among the samples */
} written;

static drey_status check_cancelled(const exit_gatherer *g, drey_error *err)
{
    if (g->go_on && !g->go_on(g->user))
        FAIL(err, DREY_ERR_CANCELLED, "interrupted; nothing was written");
    return DREY_OK;
}

static void report_progress(const exit_gatherer *g, int32_t n)
{
    if (g->progress)
        g->progress(g->user, n);
}

static bool on_token(void *user, int32_t id)
{
    (void)id;
    exit_gatherer *g = user;
    report_progress(g, 1);
    return !g->go_on || g->go_on(g->user);
}

static drey_status write_text(exit_gatherer *g, const drey_train_prompt *prompt, int32_t n_predict,
                              drey_error *err)
{
    drey_generate_options o;
    drey_generate_options_init(&o);
    o.n_predict = n_predict;
    o.on_token = on_token;
    o.user = g;
    TRY(drey_session_generate(g->session, prompt->ids, prompt->n_ids, &o, NULL, err));
    return check_cancelled(g, err);
}

/* ---- The model's choices, and its drafter's ---- */

/* The rows of a chunk, which continue what is committed. */
static pass_group chunk_of(drey_session *s, const written *t, int32_t from, int32_t n,
                           pass_head head)
{
    runner *target = probe_target(s);
    pass_row *rows = target->ws->rows;
    for (int32_t i = 0; i < n; i++)
        rows[i] = (pass_row){.token = t->ids[from + i], .parent = i - 1};
    return (pass_group){.cache = target->cache, .rows = rows, .n = n, .head = head};
}

/* Results of the target for a row. */
typedef struct computed_row {
    int32_t row, top[HEARD], n_top;
    const float *hidden;
    const pass_group *group; /* group of the row, */
    int32_t place;           /* this one */
} computed_row;

/* The drafter's guesses after timeline[0..row + 1), then the tokens of the text and of the
 * target. */
static drey_status ask_drafter(exit_gatherer *g, const written *t, const computed_row *done,
                               drey_error *err)
{
    int32_t row = done->row;
    drafter *d = probe_drafter(g->session);
    token_tree *tree = &g->tree;
    int32_t moved[TREE_MAX_NODES], root = 0;
    exit_candidates *c = &g->samples->position[t->at + row - t->first].guessed;
    TRY(d->class->expand(d, tree, &root, 1, err));
    c->n = min_i32(tree->nodes[0].n_guesses, EXIT_CANDIDATES);
    for (int32_t i = 0; i < c->n; i++) {
        c->token[i] = tree->nodes[0].guess[i].token;
        c->logp[i] = (float)log_f64((double)tree->nodes[0].guess[i].confidence);
    }
    tree_submit(tree, 0);
    if (d->wants_target_top)
        d->class->listener->take_target_top(d, tree, 0, done->top, done->n_top);
    if (drafter_listens_to(d->class, take_hidden))
        d->class->listener->take_hidden(d, row, done->hidden);
    probe_take_taps(g->session, done->group, done->place, row, t->ids[row + 1]);
    tree_moves(tree, NULL, 0, t->ids[row + 1], moved);
    d->class->reroot(d, tree, NULL, 0, t->ids[row + 1], moved);
    tree_reroot(tree, t->ids[row + 1], moved);
    return DREY_OK;
}

static drey_status choose_chunk(exit_gatherer *g, const written *t, int32_t from, int32_t n,
                                drey_error *err)
{
    runner *target = probe_target(g->session);
    int64_t ld = pass_logits_stride(target);
    computed_row done[EXIT_LOOK_ROWS];
    pass_group group = chunk_of(g->session, t, from, n, HEAD_ALL);
    probe_offer_taps(g->session, &group);
    TRY(check_cancelled(g, err));
    TRY(pass_run(target, &group, 1, err));
    for (int32_t i = 0; i < n; i++) {
        computed_row *r = &done[i];
        *r = (computed_row){.row = from + i, .group = &group, .place = i};
        r->hidden = group.hidden + i * pass_hidden_stride(target);
        r->n_top = sampler_top(probe_sampler(g->session), group.logits + i * ld, r->top, HEARD);
        g->samples->position[t->at + r->row - t->first].final = r->n_top > 0 ? r->top[0] : 0;
    }
    cache_commit(target->cache, NULL, n);
    for (int32_t i = 0; i < n && probe_drafter(g->session); i++)
        TRY(ask_drafter(g, t, &done[i], err));
    return DREY_OK;
}

/* ---- Looking ---- */

typedef struct looking {
    exit_gatherer *g;
    const written *text;
    int32_t from, n, layer;
    const float *logits;
    _Atomic int32_t next;
} looking;

static void look_at_row(const looking *l, int32_t row)
{
    const runner *target = probe_target(l->g->session);
    const exit_samples *samples = l->g->samples;
    int32_t top[EXIT_CANDIDATES] = {0};
    int32_t i = l->text->at + l->from + row - l->text->first;
    const float *logits = l->logits + row * pass_logits_stride(target);
    exit_position *position = &samples->position[i];
    exit_look *look = exit_look_at(samples, i, l->layer);
    int32_t n = sampler_top(probe_sampler(l->g->session), logits, top, EXIT_CANDIDATES);
    *look = (exit_look){.head = top[0]};
    for (int32_t k = 0; k < n; k++)
        look->own_hit |= top[k] == position->final;
    if (l->layer == samples->own_layer) {
        position->own.n = n;
        memcpy(position->own.token, top, sizeof top);
    }
    for (int32_t k = 0; k < position->guessed.n; k++)
        look->logit[k] = logits[position->guessed.token[k]];
    for (int32_t k = 0; k < position->own.n; k++)
        look->own[k] = logits[position->own.token[k]];
}

static void look_at_rows(void *arg, int32_t thread, int32_t n_threads)
{
    (void)thread;
    (void)n_threads;
    looking *l = arg;
    for (int32_t row; (row = atomic_fetch_add(&l->next, 1)) < l->n;)
        look_at_row(l, row);
}

static void look(exit_gatherer *g, model_pass *p, const written *t, int32_t from, int32_t n)
{
    int32_t rows[EXIT_LOOK_ROWS];
    for (int32_t i = 0; i < n; i++)
        rows[i] = i;
    looking l = {.g = g, .text = t, .from = from, .n = n, .layer = pass_layers_done(p)};
    l.logits = pass_look_head(p, rows, n);
    pool_run(probe_engine(g->session)->pool, look_at_rows, &l);
}

static drey_status look_at_chunk(exit_gatherer *g, const written *t, int32_t from, int32_t n,
                                 drey_error *err)
{
    const exit_samples *samples = g->samples;
    pass_group group = chunk_of(g->session, t, from, n, HEAD_NONE);
    model_pass p;
    pass_state state = PASS_CONTINUES;
    TRY(check_cancelled(g, err));
    TRY(pass_begin(&p, probe_target(g->session), &group, 1, err));
    while (state != PASS_DONE) {
        TRY(pass_step(&p, 0, &state, err));
        if (state == PASS_STARVED)
            pass_wait(&p);
        int32_t layer = pass_layers_done(&p);
        if (state == PASS_CONTINUES && pass_at_layer(&p) && layer >= samples->first &&
            layer < samples->n_layers)
            look(g, &p, t, from, n);
    }
    TRY(pass_end(&p, err));
    cache_commit(probe_target(g->session)->cache, NULL, n);
    report_progress(g, n);
    return DREY_OK;
}

/* ---- All of it ---- */

typedef drey_status chunk_fn(exit_gatherer *g, const written *t, int32_t from, int32_t n,
                             drey_error *err);

/* The cache has committed the rows before t->first. */
static drey_status each_chunk(exit_gatherer *g, const written *t, chunk_fn *fn, drey_error *err)
{
    for (int32_t from = t->first, n; from < t->n - 1; from += n) {
        n = min_i32(EXIT_LOOK_ROWS, t->n - 1 - from);
        TRY(fn(g, t, from, n, err));
    }
    return DREY_OK;
}

/* The rows before t->first, for a drafter that reads states of all of them. */
static drey_status read_tapped(exit_gatherer *g, const written *t, drey_error *err)
{
    for (int32_t from = 0, n; from < t->first; from += n) {
        n = min_i32(EXIT_LOOK_ROWS, t->first - from);
        pass_group group = chunk_of(g->session, t, from, n, HEAD_NONE);
        probe_offer_taps(g->session, &group);
        TRY(pass_run(probe_target(g->session), &group, 1, err));
        cache_commit(probe_target(g->session)->cache, NULL, n);
        for (int32_t i = 0; i < n; i++)
            probe_take_taps(g->session, &group, i, from + i, t->ids[from + i + 1]);
    }
    return DREY_OK;
}

/* The rows before t->first. */
static drey_status read_prompt(exit_gatherer *g, const written *t, drey_error *err)
{
    runner *target = probe_target(g->session);
    drafter *d = probe_drafter(g->session);
    bool shown = d && drafter_listens_to(d->class, take_hidden) && t->first > 0;
    if (d && drafter_listens_to(d->class, take_taps))
        return read_tapped(g, t, err);
    TRY(pass_prompt(target, t->ids, t->first, probe_engine(g->session)->plan.chunk,
                    shown ? HEAD_LAST : HEAD_NONE, NULL, NULL, err));
    if (shown) /* the state of the one row with logits */
        d->class->listener->take_hidden(d, t->first - 1, target->ws->y);
    return DREY_OK;
}

static drey_status look_at_text(exit_gatherer *g, const written *t, drey_error *err)
{
    runner *target = probe_target(g->session);
    drafter *d = probe_drafter(g->session);
    TRY(read_prompt(g, t, err));
    tree_reset(&g->tree, t->ids[t->first]);
    if (d)
        TRY(d->class->begin(d, t->ids, t->first + 1, err));
    TRY(each_chunk(g, t, choose_chunk, err));
    const int32_t known = cache_cut(target->cache, t->first);
    TRY(pass_prompt(target, t->ids + known, t->first - known, probe_engine(g->session)->plan.chunk,
                    HEAD_NONE, NULL, NULL, err));
    return each_chunk(g, t, look_at_chunk, err);
}

/* A session that has not seen the text while it was written: lookup may not know it. */
static drey_status begin_again(exit_gatherer *g, drey_error *err)
{
    drey_engine *e = probe_engine(g->session);
    const drey_sampling likeliest = {.top_p = 1};
    drey_session_close(&g->session);
    TRY(drey_session_open(&g->session, e, err));
    return probe_settings(g->session, &likeliest, err);
}

static drey_status gather_text(exit_gatherer *g, const int32_t *ids, written *t, int32_t number,
                               drey_error *err)
{
    exit_samples *samples = g->samples;
    int32_t n = t->n - 1 - t->first;
    assert(n <= samples->room - samples->n);
    for (int32_t i = 0; i < n; i++)
        samples->position[samples->n + i] = (exit_position){.prompt = number};
    t->ids = ids;
    TRY(begin_again(g, err));
    drey_status status = look_at_text(g, t, err);
    drey_session_reset(g->session);
    if (status == DREY_OK)
        samples->n += n;
    return status;
}

drey_status exit_gather(exit_gatherer *g, const drey_train_prompt *prompt, int32_t number,
                        int32_t n_predict, drey_error *err)
{
    int64_t begun_ns = clock_ns();
    TRY(write_text(g, prompt, n_predict, err));
    int64_t written_ns = clock_ns();
    size_t n_ids;
    written t = {.first = (int32_t)prompt->n_ids - 1, .at = g->samples->n};
    drey_session_timeline(g->session, &t.ids, &n_ids);
    t.n = (int32_t)n_ids;
    int32_t *ids = malloc(n_ids * sizeof *ids);
    if (!ids)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a text of %d tokens", t.n);
    memcpy(ids, t.ids, n_ids * sizeof *ids);
    drey_status status = gather_text(g, ids, &t, number, err);
    free(ids);
    g->write_ns += written_ns - begun_ns;
    g->gather_ns += clock_ns() - written_ns;
    return status;
}
