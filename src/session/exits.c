/* Passes that stop where their tokens are decided: see exits.h. */
#include "session/exits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fmath.h"
#include "common/num.h"
#include "session/overlap.h"
#include "session/turn.h"
#include "exit/exit_file.h"
#include "os/clock.h"
#include "weights/identity.h"

static const uint64_t random_seed = 1; /* of scores that know nothing */

static bool has_part(const drey_session *s, drey_part part)
{
    return !(s->engine->options.without & DREY_WITHOUT(part));
}

/* Any token of the whole head may leave, and no candidates are asked for. */
static bool takes_any(const drey_engine *e)
{
    return e->tuning.exit_here || e->predictors.kind == EXIT_CONFIDENCE;
}

static int32_t n_layers(const drey_session *s)
{
    return s->engine->target.layout.shape.n_layers;
}

int32_t exits_most_deferred(const drey_engine_options *o)
{
    const policy_class *c = policy_class_of(o->policy);
    return o->exit == DREY_EXIT_OFF ? 0 : !c || c->alone ? EXITS_MOST_SINGLE : EXITS_MOST_PATH;
}

/* ---- Predictors ---- */

/* The file says of itself whose predictors it holds. */
static drey_status check_layers(const drey_engine *e, const char *path, drey_error *err)
{
    int32_t n_layers = e->options.target->shape.n_layers;
    if (e->predictors.n_layers == n_layers)
        return DREY_OK;
    FAIL(err, DREY_ERR_MISMATCH,
         "%s holds predictors for a model of %d layers, and this one has %d; have predictors "
         "trained for this one",
         SHOWN_PATH(path), e->predictors.n_layers, n_layers);
}

typedef struct words {
    char text[160];
} words;

/* Siblings may share a general.name, and files in two folders theirs: both are said. */
static words draft_words(const char *path, const char *name)
{
    words w;
    char shown[64];
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    gguf_printable(shown, sizeof shown, base, strlen(base));
    const char *who = shown[0] ? shown : "a draft";
    if (name[0])
        snprintf(w.text, sizeof w.text, "%s (\"%.80s\")", who, name);
    else
        snprintf(w.text, sizeof w.text, "%s (a model without a name)", who);
    return w;
}

static words trained_with(const exit_predictors *p)
{
    return p->source == EXIT_FROM_TEXT ? (words){"the drafter \"lookup\""}
                                       : draft_words(p->drafter_file, p->drafter);
}

static words guesses_here(const drey_engine_options *o)
{
    words w;
    if (o->draft)
        return draft_words(gguf_part_path(o->draft->file, 0), o->draft->name);
    if (o->drafter == DREY_DRAFTER_NONE)
        return (words){"nothing"};
    snprintf(w.text, sizeof w.text, "the drafter \"%s\"", drey_drafter_name(o->drafter));
    return w;
}

/* Candidates of another drafter than the one they were trained with would be judged by chance. */
static drey_status check_source(const drey_engine *e, const char *path, drey_error *err)
{
    const exit_predictors *p = &e->predictors;
    const drey_engine_options *o = &e->options;
    bool any = p->kind == EXIT_CONFIDENCE || p->source == EXIT_FROM_TARGET;
    if (any || (p->source == EXIT_FROM_TEXT && o->drafter == DREY_DRAFTER_LOOKUP))
        return DREY_OK;
    uint64_t identity = 0;
    if (p->source == EXIT_FROM_DRAFT && o->draft)
        TRY(model_identity(o->draft->file, &identity, err));
    if (o->draft && exit_fits_draft(p, identity))
        return DREY_OK;
    words trained = trained_with(p), here = guesses_here(o);
    FAIL_HINT(
        err, DREY_ERR_MISMATCH, DREY_HINT_EXIT_FILE,
        "%s holds predictors for guesses of %s, and %s guesses here%s; take the former, or have "
        "predictors trained for what guesses here",
        SHOWN_PATH(path), trained.text, here.text,
        strcmp(trained.text, here.text) == 0 ? ", which is another model of that name" : "");
}

static drey_status open_at(drey_engine *e, const char *path, drey_error *err)
{
    const gguf *target = e->options.target->file;
    if (!e->options.exit_file && access(path, F_OK) != 0)
        FAIL_HINT(err, DREY_ERR_IO, DREY_HINT_EXIT_FILE,
                  "early exits need predictors, and there are none in %s; have them trained",
                  SHOWN_PATH(path));
    drey_status status = exit_open(&e->predictors, path, target, err);
    if (status == DREY_OK)
        status = check_layers(e, path, err);
    if (status == DREY_OK)
        return check_source(e, path, err);
    if (err)
        err->hint = DREY_HINT_EXIT_FILE;
    return status;
}

drey_status exits_open(drey_engine *e, drey_error *err)
{
    if (e->options.exit == DREY_EXIT_OFF || e->tuning.exit_here)
        return DREY_OK;
    if (e->options.exit_file)
        return open_at(e, e->options.exit_file, err);
    char *path = exit_usual_path(e->options.target->file);
    if (!path)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a path");
    drey_status status = open_at(e, path, err);
    free(path);
    return status;
}

/* ---- A session's ---- */

/* Trees end with the rearmost of their nodes: hardly ever early. */
double exits_usual_layers(const drey_engine *e)
{
    const exit_predictors *p = &e->predictors;
    double left = 0, deferred = exits_most_deferred(&e->options);
    if (deferred != EXITS_MOST_SINGLE || p->n_layers == 0)
        return 0;
    for (int32_t layer = p->first; layer <= p->n_layers; layer++)
        left += (double)p->expected[layer] * layer;
    return (deferred * left + p->n_layers) / (deferred + 1);
}

size_t exits_bytes(const drey_engine *e)
{
    return e->options.exit == DREY_EXIT_OFF ? 0 : arena_size(sizeof(session_exits));
}

void exits_init(drey_session *s)
{
    if (s->engine->options.exit != DREY_EXIT_OFF)
        s->exits = arena_take(&s->memory, sizeof *s->exits);
}

void exits_begin(drey_session *s)
{
    session_exits *w = s->exits;
    const drey_engine *e = s->engine;
    if (!w)
        return;
    stream_counters reads;
    weights_count(&e->target.weights, &reads);
    w->vain_before = reads.vain_bytes;
    w->n_layers_run = 0;
    w->count = (drey_exits){.mode = e->options.exit, .n_layers = n_layers(s)};
    if (!e->tuning.exit_here)
        exit_schedule_init(&w->schedule, &e->predictors,
                           has_part(s, DREY_PART_SCHEDULE) ? EXIT_TWO_LEVELS : EXIT_EVERY_LAYER, 0);
}

void exits_drop(drey_session *s)
{
    session_exits *w = s->exits;
    if (!w)
        return;
    pass_hold_from(&s->target, n_layers(s)); /* passes of others are read ahead of as ever */
    int32_t n = s->deferred.n;
    if (n == 0)
        return;
    s->n_timeline -= w->n_unverified;
    if (w->n_unverified > 0)
        turn_log_cut(&s->turns, s->n_timeline, s->timeline[s->n_timeline - 1]);
    w->n_unverified = 0;
    deferred_cut(&s->deferred, n);
    kv_truncate(&s->target_kv, s->target_kv.n_committed - n);
}

bool exits_are_valid(const drey_session *s)
{
    const session_exits *w = s->exits;
    if (!deferred_is_valid(&s->deferred, s->target_kv.n_committed))
        return false;
    if (!w)
        return s->deferred.n == 0;
    return w->n_unverified == (exits_are_exact(s) ? s->deferred.n : 0) &&
           (s->state != SESSION_IDLE || s->deferred.n == 0);
}

/* ---- Watching a pass ---- */

static bool is_active(const drey_session *s, int32_t layer)
{
    if (s->engine->tuning.exit_here)
        return layer < n_layers(s);
    /* The most frequent layers are those of single tokens; a path leaves with its last one. */
    if (s->exits->n_rows > 1 && has_part(s, DREY_PART_SCHEDULE))
        return exit_schedule_near(&s->exits->schedule, layer);
    return exit_schedule_active(&s->exits->schedule, layer);
}

/* The next active layer, the last one where there is none. */
static int32_t next_active(const drey_session *s, int32_t layer)
{
    while (layer < n_layers(s) && !is_active(s, layer))
        layer++;
    return layer;
}

/* May the next n tokens leave? A pass has room for the deferred rows of one session, whoever shares it.
 * In `exact` none may that could end the text by its length: the end is reported when all is
 * verified. */
static bool has_room(const drey_session *s, int32_t n_more)
{
    const drey_engine *e = s->engine;
    int32_t n = n_more;
    for (int32_t i = 0; i < e->n_sessions; i++)
        n += e->sessions[i]->deferred.n;
    if (n > s->deferred.max)
        return false;
    return !exits_are_exact(s) || turn_depth_left(s) >= n_more;
}

/* A node's candidates are its drafter's best guesses. */
static void take_guesses(drey_session *s, watched_row *r)
{
    const tree_node *node = &s->tree.nodes[r->node];
    float logp[EXIT_CANDIDATES];
    int32_t n = min_i32(node->n_guesses, EXIT_CANDIDATES);
    if (r->features.n > 0 || n == 0)
        return;
    for (int32_t i = 0; i < n; i++) {
        r->ids[i] = node->guess[i].token;
        logp[i] = (float)log_f64((double)node->guess[i].confidence);
    }
    exit_features_begin(&r->features, n, logp);
}

static bool has_candidates(drey_session *s)
{
    if (takes_any(s->engine) || s->engine->predictors.source == EXIT_FROM_TARGET)
        return true;
    take_guesses(s, &s->exits->row[0]);
    return s->exits->row[0].features.n > 0;
}

void exits_watch(drey_session *s, const pass_group *group, bool alone)
{
    session_exits *w = s->exits;
    if (!w)
        return;
    w->n_rows = w->stopped = 0;
    bool watched = alone && s->state == SESSION_DECODE && has_room(s, 1) &&
                   (group->n == 1 || has_part(s, DREY_PART_HYPER));
    for (int32_t i = 0; watched && i < s->tree.n_nodes; i++)
        if (s->row_of[i] >= 0)
            w->row[w->n_rows++] = (watched_row){.node = i};
    if (watched && !has_candidates(s)) /* the root leaves first, or none */
        w->n_rows = 0;
    /* What lies behind an exit would be read in vain: reads wait a layer behind the next look, so that
     * the disk has work until then. A path hardly ever leaves. */
    int32_t hold = w->n_rows == 1 ? next_active(s, 1) + 1 : n_layers(s);
    pass_hold_from(&s->target, min_i32(hold, n_layers(s)));
}

/* ---- Looking ---- */

static void compute_heads(drey_session *s, model_pass *pass, const int32_t *rows, int32_t n)
{
    session_exits *w = s->exits;
    int64_t ld = pass_logits_stride(&s->target), start = clock_ns();
    const float *logits = pass_look_head(pass, rows, n);
    for (int32_t i = 0; i < n; i++)
        w->row[rows[i]].head = logits + i * ld;
    w->count.head_s += (double)(clock_ns() - start) * 1e-9;
}

static void compute_all_heads(drey_session *s, model_pass *pass)
{
    int32_t rows[TREE_MAX_ROWS];
    for (int32_t i = 0; i < s->exits->n_rows; i++)
        rows[i] = i;
    compute_heads(s, pass, rows, s->exits->n_rows);
}

/* Where the token behind a row will stand. */
static int32_t position_behind(const drey_session *s, const watched_row *r)
{
    return s->n_timeline + s->tree.nodes[r->node].depth;
}

/* The target's own best at a middle layer. */
static void take_own(drey_session *s, model_pass *pass)
{
    session_exits *w = s->exits;
    compute_all_heads(s, pass);
    for (int32_t i = 0; i < w->n_rows; i++) {
        watched_row *r = &w->row[i];
        int32_t top[EXIT_CANDIDATES];
        int32_t n = sampler_top(&s->sampler, r->head, top, EXIT_CANDIDATES);
        for (int32_t j = 0; j < n; j++)
            r->ids[j] = top[j];
        if (n > 0) /* else its logits are no numbers */
            exit_features_begin(&r->features, n, NULL);
    }
}

static void judge(drey_session *s, watched_row *r, int32_t layer, float score)
{
    const drey_engine *e = s->engine;
    int32_t position = position_behind(s, r);
    float threshold = e->options.exit_threshold;
    if (threshold <= 0)
        threshold = e->predictors.threshold;
    if (e->tuning.exit_here)
        score = e->tuning.exit_here(e->tuning.exit_user, layer, position) ? 1 : -1;
    else if (!has_part(s, DREY_PART_PREDICTORS))
        score = exit_random_score(random_seed, position, layer);
    s->exits->count.looks++;
    r->ready = r->ready || score > threshold;
}

/* AdaInfer's: how far the best of the whole head is ahead. */
static float confidence_score(const drey_session *s, const watched_row *r, int32_t layer)
{
    const kernel_table *kernels = s->engine->kernels;
    int32_t top[2], n_vocab = s->engine->target.layout.shape.n_vocab;
    float x[2];
    if (sampler_top(&s->sampler, r->head, top, 2) < 2)
        return 0;
    float best = r->head[top[0]];
    exit_confidence_put(best, r->head[top[1]], kernels->sum_exp(r->head, n_vocab, best, 1.0f), x);
    return exit_score_of(&s->engine->predictors, layer, x);
}

static void look_at_heads(drey_session *s, model_pass *pass, int32_t layer)
{
    session_exits *w = s->exits;
    bool scores = !s->engine->tuning.exit_here;
    compute_all_heads(s, pass);
    for (int32_t i = 0; i < w->n_rows; i++)
        judge(s, &w->row[i], layer, scores ? confidence_score(s, &w->row[i], layer) : 0);
}

static int32_t likeliest(const watched_row *r)
{
    int32_t best = 0;
    for (int32_t i = 1; i < r->features.n; i++)
        if (r->logits[i] > r->logits[best])
            best = i;
    return (int32_t)r->ids[best];
}

/* The submitted child of a node with this token, or -1. */
static int32_t submitted_child(const drey_session *s, int32_t node, int32_t token)
{
    int32_t child = tree_child(&s->tree, node, token);
    return child >= 0 && s->row_of[child] >= 0 ? child : -1;
}

/* Rows of the path along the likeliest candidates so far, the drafter's best where none was looked
 * at, the root's first. Its last node may have no candidates. */
static int32_t likely_path(drey_session *s, int32_t rows[TREE_MAX_ROWS])
{
    int32_t n = 0;
    for (int32_t node = 0; node >= 0;) {
        watched_row *r = &s->exits->row[s->row_of[node]];
        if (s->engine->predictors.source != EXIT_FROM_TARGET)
            take_guesses(s, r);
        rows[n++] = s->row_of[node];
        node = r->features.n > 0 ? submitted_child(s, node, likeliest(r)) : -1;
    }
    return n;
}

/* Logits of the candidates of all nodes of the likely path, each its own few rows of the head, in one
 * grouped product. Where that turns the path, the nodes of its new end are looked at the next time. */
static void look_at_candidates(drey_session *s, model_pass *pass, int32_t layer)
{
    session_exits *w = s->exits;
    int32_t rows[TREE_MAX_ROWS], n_rows = likely_path(s, rows), n = 0;
    for (int32_t i = 0; i < n_rows; i++) {
        watched_row *r = &w->row[rows[i]];
        if (r->features.n > 0)
            w->look[n++] = (pass_look){
                .row = rows[i], .n_ids = r->features.n, .ids = r->ids, .logits = r->logits};
    }
    if (n > 0)
        pass_look_ids(pass, w->look, n);
    for (int32_t i = 0; i < n; i++) {
        watched_row *r = &w->row[w->look[i].row];
        exit_features_next(&r->features, r->logits);
        judge(s, r, layer, exit_score(&s->engine->predictors, layer, &r->features));
    }
}

/* ---- Leaving ---- */

static bool may_leave(const drey_session *s, const watched_row *r, int32_t token)
{
    bool known = takes_any(s->engine);
    for (int32_t i = 0; i < r->features.n && !known; i++)
        known = r->ids[i] == token;
    bool ends = !s->text.options.ignore_eos &&
                tokenizer_is_end(s->engine->options.target->tokenizer, token);
    /* Where weights are damaged the end of the pass says so. */
    return known && !ends && isfinite(r->head[token]);
}

/* Along what the heads choose, as acceptance goes. False: a row on the way may not leave yet. */
static bool walk(drey_session *s)
{
    session_exits *w = s->exits;
    accepted *a = &s->accepted;
    a->n_path = 0;
    for (int32_t node = 0;;) {
        watched_row *r = &w->row[s->row_of[node]];
        if (!r->ready || !r->head)
            return false;
        int32_t token = sampler_choose(&s->sampler, r->head, position_behind(s, r));
        w->count.candidates++;
        if (!may_leave(s, r, token)) {
            w->count.refused++;
            r->ready = false;
            return false;
        }
        int32_t child = submitted_child(s, node, token);
        if (child < 0) {
            a->next = token;
            return has_room(s, a->n_path + 1);
        }
        a->path[a->n_path++] = child;
        node = child;
    }
}

static bool path_leaves(drey_session *s, model_pass *pass)
{
    int32_t rows[TREE_MAX_ROWS];
    if (!takes_any(s->engine)) {
        int32_t n = likely_path(s, rows);
        for (int32_t i = 0; i < n; i++)
            if (!s->exits->row[rows[i]].ready)
                return false;
        if (!has_room(s, n))
            return false;
        compute_heads(s, pass, rows, n);
    }
    return walk(s);
}

static bool look(drey_session *s, model_pass *pass, int32_t layer)
{
    session_exits *w = s->exits;
    int64_t start = clock_ns();
    double head_s = w->count.head_s;
    for (int32_t i = 0; i < w->n_rows; i++)
        w->row[i].head = NULL;
    if (takes_any(s->engine))
        look_at_heads(s, pass, layer);
    else
        look_at_candidates(s, pass, layer);
    bool leaves = path_leaves(s, pass);
    w->count.look_s += (double)(clock_ns() - start) * 1e-9 - (w->count.head_s - head_s);
    return leaves;
}

bool exits_look(drey_session *s, model_pass *pass)
{
    session_exits *w = s->exits;
    if (!w || w->n_rows == 0 || !pass_can_stop(pass) || !pass_can_look(pass))
        return false;
    int32_t layer = pass_layers_done(pass);
    bool own = !takes_any(s->engine) && s->engine->predictors.source == EXIT_FROM_TARGET;
    if (own && layer == s->engine->predictors.source_layer)
        take_own(s, pass);
    if (!is_active(s, layer))
        return false;
    if (look(s, pass, layer)) {
        w->stopped = layer;
        return true;
    }
    if (w->n_rows == 1)
        pass_read_on(pass, min_i32(next_active(s, layer + 1) + 1, n_layers(s)));
    return false;
}

/* ---- Behind the pass ---- */

/* Streamed bytes of the layers from this one on: what lies behind an exit. */
static uint64_t bytes_behind(const drey_engine *e, int32_t layer)
{
    const weights *w = &e->target.weights;
    uint64_t n_bytes = 0;
    for (int64_t i = e->target.layout.layer[layer].q->cycle_seq; i < w->n_cycle; i++)
        n_bytes += w->cycle[i].n_bytes;
    return n_bytes;
}

void exits_count(drey_session *s, int32_t n)
{
    session_exits *w = s->exits;
    if (!w)
        return;
    drey_exits *c = &w->count;
    stream_counters reads;
    weights_count(&s->engine->target.weights, &reads);
    c->vain_bytes = reads.vain_bytes - w->vain_before;
    int32_t layer = w->stopped ? w->stopped : n_layers(s);
    c->tokens += n;
    c->at_layer[min_i32(layer, DREY_EXITS_LAYERS) - 1] += n;
    w->n_layers_run += (int64_t)n * layer;
    c->layers_per_token = (double)w->n_layers_run / (double)max_i64(c->tokens, 1);
    if (w->stopped) {
        c->left += n;
        c->skipped_bytes += bytes_behind(s->engine, layer);
    }
    for (int32_t i = 0; i < n && !s->engine->tuning.exit_here; i++)
        exit_schedule_note(&w->schedule, layer);
}

/* The text stands at this position, whose token is the root: what stood behind it goes. */
static void go_back(drey_session *s, int32_t position)
{
    idle_give_up(s);
    s->n_timeline = position + 1;
    turn_log_cut(&s->turns, s->n_timeline, s->timeline[position]);
    kv_truncate(&s->target_kv, position);
    if (!s->text.done)
        s->state = SESSION_PROMPT; /* of which nothing is left to read: the draft is told */
}

bool exits_settle(drey_session *s, const pass_group *group)
{
    session_exits *w = s->exits;
    if (!w || group->n_deferred == 0)
        return true;
    int64_t ld = pass_logits_stride(&s->target);
    int32_t n = group->n_deferred, first = s->n_timeline - n;
    w->count.n_full++;
    w->n_unverified = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t *left = &s->timeline[first + i];
        int32_t token = sampler_choose(&s->sampler, group->deferred_logits + i * ld, first + i);
        bool agrees = token == *left;
        w->count.compared++;
        w->count.agreed += agrees;
        if (!exits_are_exact(s))
            continue;
        *left = token;
        text_emit_at(s, first + i);
        w->count.taken_back += agrees ? 0 : n - i;
        if (!agrees || s->text.done) {
            go_back(s, first + i);
            return false;
        }
    }
    return true;
}

void drey_session_exits(const drey_session *session, drey_exits *out)
{
    *out = session->exits ? session->exits->count : (drey_exits){.mode = DREY_EXIT_OFF};
}
