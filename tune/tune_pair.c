/* Measures beforehand what a session learns about its models and this machine: see drey_tune_pair.
 *
 *      load   passes of 1 to 64 rows   a text   the draft's steps   more texts   trees
 *
 * All in one engine and one session. Texts are drafted as chains: a chain follows the draft's best
 * guesses, so that at each place it passes, and where it fails, all of the draft's guesses meet the
 * token that came; only after a chain that was right to its end nobody had guessed. What heads
 * guess depends on how far ahead they look: they are asked after what came, for each turn's root
 * (heads_truth.h). */
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "draft/drafter_kind.h"
#include "engine/engine.h"
#include "session/session_probe.h"
#include "state/cache.h"
#include "tree/accept.h"
#include "tree/calibration.h"
#include "tree/tree.h"
#include "os/clock.h"
#include "tune/alone.h"
#include "tune/heads_truth.h"
#include "tune/machine_limits.h"
#include "tree/turn_log.h"

enum {
    WIDEST = DREY_PROFILE_ROWS,
    CONTEXT = 256, /* positions before the timed passes */
    CHAIN = 12,
    TEXT_TOKENS = 96,
    ROUNDS = 5,
    TRUTH_NODES = 1 << 14
};
/* No further round, and no further text, is begun beyond these. */
static const double passes_s = 45, texts_s = 60;

enum { NONE_RIGHT = -1, NOT_GUESSED = -2 }; /* in the place of a rank; -1: tree_rank's */

typedef struct tuner {
    turn_watch watch;
    drey_session *session;
    const drey_tune_options *options;
    const drey_engine_options *engine; /* options with the progress function */
    drey_pair_report *report;
    calibration counts;
    token_tree tree; /* tree of the timed steps */
    arena memory;
    truth_log truth[3]; /* truths of every other text, of the others, of all */
    int32_t n_texts;
    int8_t *rank; /* [n_ranks]: of the token at each place of the text that is being written */
    int32_t n_ranks, most;
    heads_places places; /* positions of its turns, where heads draft */
    bool timed_steps;
} tuner;

static void say(const tuner *t, const char *what)
{
    if (t->options->stage)
        t->options->stage(t->options->user, what);
}

/* Reports the part of the present stage. */
static void report_part(const tuner *t, double part)
{
    enum { STEPS = 1000 };
    if (t->engine->progress)
        t->engine->progress(t->engine->progress_user, DREY_PROGRESS_MEASURE,
                            (uint64_t)(STEPS * min_f64(part, 1)), STEPS);
}

/* ---- Passes ---- */

/* Powers of two before all others, so that a machine too slow for all of them has those. */
static void order_widths(int32_t order[WIDEST])
{
    int32_t n = 0;
    for (int32_t rows = 1; rows <= WIDEST; rows *= 2)
        order[n++] = rows;
    for (int32_t rows = 1; rows <= WIDEST; rows++)
        if (rows & (rows - 1))
            order[n++] = rows;
}

/* Interpolates times that no round measured between their neighbours. */
static void fill_gaps(double *pass_s)
{
    for (int32_t i = 1, last = 0; i < WIDEST; i++) {
        if (pass_s[i] <= 0)
            continue;
        for (int32_t k = last + 1; k < i; k++)
            pass_s[k] = pass_s[last] + (pass_s[i] - pass_s[last]) * (k - last) / (i - last);
        last = i;
    }
}

/* More rows never take less: where they seem to, those that were fewer met a busy machine. */
static void take_back_hiccups(double *seconds, int32_t n)
{
    for (int32_t i = n - 2; i >= 0; i--)
        if (seconds[i + 1] > 0)
            seconds[i] = min_f64(seconds[i], seconds[i + 1]);
}

/* Returns how many times as long the slower rounds of a width took as its faster ones: the median
 * of those with rounds enough; 0: none has. seconds: as median has sorted them. */
static double spread_of(double seconds[WIDEST][ROUNDS], const int32_t n[WIDEST])
{
    double ratio[WIDEST];
    int32_t n_ratios = 0;
    for (int32_t i = 0; i < WIDEST; i++)
        if (n[i] >= 3)
            ratio[n_ratios++] = seconds[i][n[i] - 2] / seconds[i][n[i] > 3];
    return n_ratios ? median(ratio, n_ratios) : 0;
}

static drey_status measure_rounds(tuner *t, double pass_s[WIDEST], double *spread, drey_error *err)
{
    double seconds[WIDEST][ROUNDS], spent = 0;
    int32_t order[WIDEST], n[WIDEST] = {0};
    bool whole = true; /* round, so far */
    order_widths(order);
    for (int32_t round = 0; round < ROUNDS && whole; round++)
        for (int32_t i = 0; i < WIDEST && whole; i++) {
            int32_t rows = order[i];
            double start = clock_s();
            TRY(alone_pass(t->session, rows, &seconds[rows - 1][n[rows - 1]], err));
            n[rows - 1]++;
            spent += clock_s() - start;
            whole = spent < passes_s || (round == 0 && i + 1 < 7); /* the powers of two */
            report_part(t, max_f64(spent / passes_s, (round + (i + 1.0) / WIDEST) / ROUNDS));
        }
    for (int32_t i = 0; i < WIDEST; i++)
        pass_s[i] = n[i] ? median(seconds[i], n[i]) : 0;
    *spread = spread_of(seconds, n);
    fill_gaps(pass_s);
    return DREY_OK;
}

/* A machine that was busy is asked once more: of both times the faster is the models' own. */
static drey_status measure_again(tuner *t, drey_error *err)
{
    drey_profile *p = &t->report->profile;
    double pass_s[WIDEST], spread;
    say(t, "passes once more, as other programs were at work");
    TRY(measure_rounds(t, pass_s, &spread, err));
    for (int32_t i = 0; i < WIDEST; i++)
        if (pass_s[i] > 0 && (pass_s[i] < p->pass_s[i] || p->pass_s[i] <= 0))
            p->pass_s[i] = pass_s[i];
    p->spread = spread > 0 ? min_f64(p->spread, spread) : p->spread;
    return DREY_OK;
}

static drey_status measure_passes(tuner *t, drey_error *err)
{
    drey_profile *p = &t->report->profile;
    double first_s;
    say(t, "passes of 1 to 64 rows");
    TRY(alone_pass(t->session, 1, &first_s, err)); /* brings the weights */
    TRY(cache_make_up(probe_target(t->session)->cache, CONTEXT, err));
    TRY(measure_rounds(t, p->pass_s, &p->spread, err));
    if (p->spread > DREY_PROFILE_BUSY)
        TRY(measure_again(t, err));
    cache_clear(probe_target(t->session)->cache);
    take_back_hiccups(p->pass_s, WIDEST);
    return DREY_OK;
}

/* ---- Steps of the draft ---- */

/* Runs a pass, because a step finds its data in the caches after another step, but not after a
 * pass. If passes wait for a disk, neither matters. */
static drey_status leave_caches(tuner *t, drey_error *err)
{
    double pass_s;
    return t->report->streamed_bytes_per_pass ? DREY_OK : alone_pass(t->session, 1, &pass_s, err);
}

/* Steps over the root, then over n of its children. */
static drey_status time_step(tuner *t, int32_t n, double *root_s, double *step_s, bool *timed,
                             drey_error *err)
{
    drafter *d = probe_drafter(t->session);
    const int32_t *ids;
    size_t n_ids;
    int32_t nodes[DRAFT_MAX_BATCH] = {0};
    TRY(leave_caches(t, err));
    drey_session_timeline(t->session, &ids, &n_ids);
    tree_reset(&t->tree, ids[n_ids - 1]);
    TRY(probe_redraft(t->session, err));
    double start = clock_s();
    TRY(d->class->expand(d, &t->tree, nodes, 1, err));
    *root_s = clock_s() - start;
    const tree_node *root = &t->tree.nodes[0];
    *timed = root->n_guesses >= n;
    if (!*timed)
        return DREY_OK;
    for (int32_t i = 0; i < n; i++)
        nodes[i] = tree_push(&t->tree, 0, root->guess[i].token, root->guess[i].confidence);
    TRY(leave_caches(t, err));
    start = clock_s();
    TRY(d->class->expand(d, &t->tree, nodes, n, err));
    *step_s = clock_s() - start;
    return DREY_OK;
}

/* Once a text has begun; leaves the session as if no turn had been drafted yet. */
static drey_status measure_steps(tuner *t, drey_error *err)
{
    double root_s, step_s, steps[DRAFT_MAX_BATCH][ROUNDS];
    int32_t n_timed[DRAFT_MAX_BATCH] = {0};
    bool timed;
    TRY(time_step(t, 1, &root_s, &step_s, &timed, err)); /* reads what the root needs */
    for (int32_t round = 0; round < ROUNDS; round++)
        for (int32_t n = 1; n <= DRAFT_MAX_BATCH; n++) {
            TRY(time_step(t, n, &root_s, &step_s, &timed, err));
            if (timed)
                steps[n - 1][n_timed[n - 1]++] = step_s;
        }
    for (int32_t i = 0; i < DRAFT_MAX_BATCH; i++)
        if (n_timed[i])
            t->report->profile.step_s[i] = median(steps[i], n_timed[i]);
    take_back_hiccups(t->report->profile.step_s, DRAFT_MAX_BATCH);
    return probe_redraft(t->session, err);
}

/* ---- Texts ---- */

static void rank_path(tuner *t, const token_tree *tree, const accepted *a)
{
    for (int32_t i = 0; i <= a->n_path && t->n_ranks < t->most; i++) {
        const tree_node *from = &tree->nodes[i ? a->path[i - 1] : 0];
        int32_t token = i < a->n_path ? tree->nodes[a->path[i]].token : a->next;
        int32_t rank = from->n_guesses ? tree_rank(from, token) : NOT_GUESSED;
        t->rank[t->n_ranks++] = (int8_t)rank;
        t->report->n_places += rank != NOT_GUESSED;
    }
}

/* Returns whether its guesses are measured separately from the text. */
static bool has_heads(const drey_session *s)
{
    return probe_engine(s)->config.drafter == &drafter_medusa;
}

static void note_turn(turn_watch *w, const token_tree *tree, const accepted *a)
{
    tuner *t = (tuner *)w;
    calibration_learn(&t->counts, tree, a->path, a->n_path, a->next);
    t->counts.n_positions = 0; /* nothing of it fades */
    if (!has_heads(t->session))
        rank_path(t, tree, a);
}

static void note(tuner *t, const int8_t *rank, int32_t n)
{
    truth_add(&t->truth[t->n_texts % 2], rank, n);
    truth_add(&t->truth[2], rank, n);
}

static drey_status note_heads(tuner *t, drey_error *err)
{
    heads_answer answer;
    size_t n_ids;
    drey_session_timeline(t->session, &t->places.text, &n_ids);
    t->places.n_text = (int32_t)n_ids;
    for (int32_t place = 0; place < t->places.n; place++) {
        TRY(heads_ranks(probe_drafter(t->session), &t->places, place, &t->tree, &answer, err));
        t->report->n_places += answer.n > 0;
        if (answer.n > 0)
            note(t, answer.rank, answer.n);
    }
    t->places.n = 0;
    return DREY_OK;
}

/* Notes what came after each position of the text. */
static void note_path(tuner *t)
{
    for (int32_t i = 0; i < t->n_ranks; i++) {
        int32_t n = 0;
        while (n < STATIC_DEPTHS && i + n < t->n_ranks && t->rank[i + n] >= 0)
            n++;
        bool known = n == STATIC_DEPTHS || (i + n < t->n_ranks && t->rank[i + n] == NONE_RIGHT);
        if (known)
            note(t, t->rank + i, n);
    }
    t->n_ranks = 0;
}

/* The next turn's root. */
static void keep_place(tuner *t)
{
    const int32_t *ids;
    size_t n_ids;
    drey_session_timeline(t->session, &ids, &n_ids);
    heads_places_keep(&t->places, (const medusa_drafter *)probe_drafter(t->session),
                      (int32_t)n_ids - 1);
}

static drey_status write_text(tuner *t, const drey_tune_prompt *prompt, drey_error *err)
{
    drey_session *s = t->session;
    drey_generate_options o;
    drey_generate_options_init(&o);
    o.n_predict = t->options->n_predict ? t->options->n_predict : TEXT_TOKENS;
    bool heads = has_heads(s);
    bool steps_take_time = !probe_engine(s)->config.drafter->looks_up;
    TRY(drey_session_sync(s, prompt->ids, prompt->n, NULL, err));
    drey_statistics statistics = {0};
    TRY(drey_session_begin(s, &o, &statistics, err));
    for (bool done = false; !done;) {
        if (probe_decodes(s) && heads)
            keep_place(t);
        if (probe_decodes(s) && steps_take_time && !t->timed_steps) {
            t->timed_steps = true;
            TRY(measure_steps(t, err));
        }
        TRY(drey_session_step(s, &done, err));
    }
    t->report->n_tokens += statistics.generated_tokens;
    if (heads)
        TRY(note_heads(t, err));
    else
        note_path(t);
    t->n_texts++;
    return DREY_OK;
}

static drey_status write_texts(tuner *t, drey_error *err)
{
    double start = clock_s();
    say(t, "the draft's steps, and its guesses");
    t->watch.turn = note_turn;
    probe_watch(t->session, &t->watch);
    for (int32_t i = 0; i < t->options->n_prompts && (i == 0 || clock_s() - start < texts_s); i++) {
        TRY(write_text(t, &t->options->prompts[i], err));
        report_part(t, max_f64((clock_s() - start) / texts_s, (i + 1.0) / t->options->n_prompts));
    }
    for (int r = 0; r < CALIBRATION_RANKS; r++)
        for (int bin = 0; bin < CALIBRATION_BINS; bin++) {
            t->report->profile.guessed[r][bin] = t->counts.trials[r][bin];
            t->report->profile.right[r][bin] = t->counts.hits[r][bin];
        }
    return DREY_OK;
}

/* ---- Trees ---- */

static double draft_seconds(const static_tree *t, const double *step_s)
{
    int32_t nodes[STATIC_WIDEST], n = static_tree_steps(t, nodes);
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += step_s[nodes[i] - 1];
    return sum;
}

static static_tree tree_of(const truth_log *truth, int32_t width, bool refined)
{
    rank_shares shares;
    truth_shares(truth, &shares);
    static_tree shape = static_tree_grow(&shares, width);
    if (refined)
        static_tree_refine(&shape, truth);
    return shape;
}

/* Tokens of a pass over trees that were made from half of the texts, on the other half. */
static double held_out(const tuner *t, int32_t width, bool refined)
{
    double tokens = 0;
    int32_t n = 0;
    for (int half = 0; half < 2; half++) {
        const truth_log *from = &t->truth[half], *on = &t->truth[1 - half];
        if (t->n_texts < 2)
            from = on = &t->truth[2];
        static_tree shape = tree_of(from, width, refined);
        tokens += static_tree_measured(&shape, on) * on->nodes[0].count;
        n += on->nodes[0].count;
    }
    return n ? tokens / n : 1;
}

/* A shape has fewer rows than asked for if no more nodes were ever right. */
static void make_tree(const tuner *t, const rank_shares *shares, int32_t width,
                      drey_static_tree *tree)
{
    const drey_profile *p = &t->report->profile;
    static_tree shape = static_tree_grow(shares, width);
    double grown = held_out(t, width, false), refined = held_out(t, width, true);
    tree->width = width;
    tree->expected_tokens = static_tree_expected(&shape, shares);
    tree->refined = refined > grown;
    tree->measured_tokens = max_f64(grown, refined);
    if (tree->refined)
        static_tree_refine(&shape, &t->truth[2]);
    tree->n = shape.n;
    memcpy(tree->parent, shape.parent, sizeof shape.parent);
    memcpy(tree->rank, shape.rank, sizeof shape.rank);
    tree->pass_s = p->pass_s[shape.n - 1];
    tree->draft_s = draft_seconds(&shape, p->step_s);
    tree->tokens_per_s = tree->measured_tokens / (tree->pass_s + tree->draft_s);
}

static void choose_trees(tuner *t)
{
    drey_static_trees *all = &t->report->trees;
    double tokens[DREY_STATIC_TREES], seconds[DREY_STATIC_TREES];
    rank_shares shares;
    truth_shares(&t->truth[2], &shares);
    for (int32_t d = 0; d < shares.n_depths; d++)
        for (int32_t rank = 0; rank < shares.n_ranks; rank++)
            all->share[d][rank] = (double)shares.share[d][rank];
    for (int32_t width = 1; width <= STATIC_WIDEST; width *= 2) {
        const drey_static_tree *tree = &all->tree[all->n_trees];
        make_tree(t, &shares, width, &all->tree[all->n_trees]);
        tokens[all->n_trees] = tree->measured_tokens;
        seconds[all->n_trees] = tree->pass_s + tree->draft_s;
        all->n_trees++;
    }
    all->best = width_choose(tokens, seconds, all->n_trees);
}

/* ---- The engine ---- */

static drey_status take_memory(tuner *t, const drey_engine_options *o, drey_error *err)
{
    size_t nodes = 3 * arena_size(TRUTH_NODES * sizeof(truth_node));
    size_t ranks = arena_size((size_t)o->n_context);
    int32_t n_embd = o->target->shape.n_embd;
    bool heads = o->drafter == DREY_DRAFTER_MEDUSA;
    size_t places = heads ? heads_places_bytes(o->n_context, n_embd) : 0;
    TRY(arena_init(&t->memory, nodes + ranks + places, false, err));
    for (int i = 0; i < 3; i++)
        truth_init(&t->truth[i], arena_take(&t->memory, nodes / 3), TRUTH_NODES);
    t->rank = arena_take(&t->memory, ranks);
    t->most = o->n_context;
    if (heads)
        heads_places_init(&t->places, o->n_context, n_embd, &t->memory);
    return arena_check(&t->memory, err);
}

static drey_engine_options options_for(const drey_engine_options *options,
                                       const drey_tune_options *tune)
{
    drey_engine_options o = *options;
    size_t longest = CONTEXT;
    for (int32_t i = 0; i < tune->n_prompts; i++)
        longest = max_size(longest, tune->prompts[i].n);
    o.n_context = (int32_t)min_size(longest, INT32_MAX / 2) + WIDEST + 1 +
                  (tune->n_predict ? tune->n_predict : TEXT_TOKENS);
    o.tree_nodes = 0;
    o.draft_tokens = CHAIN;
    o.policy = o.drafter == DREY_DRAFTER_NONE ? DREY_POLICY_NONE : DREY_POLICY_SEQUENCE;
    o.profile = NULL;
    o.research = NULL; /* the draft itself is measured */
    o.exit = DREY_EXIT_OFF;
    return o;
}

static drey_status measure(tuner *t, drey_error *err)
{
    drey_pair_report *r = t->report;
    const drey_engine *e = probe_engine(t->session);
    r->streamed_bytes_per_pass = e->plan.report.streamed_bytes_per_pass;
    r->n_threads = e->plan.report.n_threads;
    TRY(measure_passes(t, err));
    if (!probe_drafter(t->session))
        return DREY_OK;
    TRY(write_texts(t, err));
    choose_trees(t);
    return DREY_OK;
}

drey_status drey_tune_pair(const drey_engine_options *options, const drey_tune_options *tune,
                           drey_pair_report *report, drey_error *err)
{
    *report = (drey_pair_report){.n_tokens = 0};
    if (options->drafter != DREY_DRAFTER_NONE && tune->n_prompts < 1)
        FAIL(err, DREY_ERR_USAGE, "drafting is tuned on prompts, and there are none");
    if (tune->n_prompts < 0 || tune->n_predict < 0 || tune->n_predict > DREY_MAX_CONTEXT / 2)
        FAIL(err, DREY_ERR_USAGE, "there is no such number of prompts or tokens");
    double start = clock_s();
    drey_engine_options o = options_for(options, tune);
    drey_engine *e = NULL;
    tuner *t = calloc(1, sizeof *t);
    if (!t)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory to tune");
    t->options = tune;
    t->engine = options;
    t->report = report;
    drey_status status = take_memory(t, &o, err);
    const engine_hooks hooks = {.more_bytes = t->memory.size_bytes + sizeof *t};
    if (status == DREY_OK)
        status = alone_open(&e, &t->session, o, hooks, WIDEST, err);
    if (status == DREY_OK)
        status = measure(t, err);
    alone_close(&e, &t->session);
    arena_free(&t->memory);
    free(t);
    report->seconds = clock_s() - start;
    return status;
}
