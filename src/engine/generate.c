/* Writing text: prompt, then turn after turn until something ends it. */
#include <string.h>

#include "engine/engine.h"
#include "os/clock.h"
#include "os/float_mode.h"
#include "os/memory.h"
#include "text/detokenizer.h"
#include "verify/verify.h"

/* One call of drey_session_generate. */
typedef struct generation {
    drey_session *s;
    const drey_generate_options *options;
    drey_statistics *stats;
    detokenizer detokenizer;
    bool done;
    bool refused;   /* on_text wants no more */
    double start_s; /* when the call began */
    double draft_s, verify_s;
    int64_t stall_ns, faults; /* when decoding began */
    uint64_t start_bytes;     /* when the call began */
    int64_t start_busy_ns;    /* likewise */
    uint64_t read_bytes;      /* likewise */
    int64_t busy_ns;
} generation;

/* ---- The turn ---- */

static void finish(generation *g, drey_finish why)
{
    if (!g->done)
        g->stats->finish = why;
    g->done = true;
}

static void deliver(generation *g, const char *text, size_t n_bytes)
{
    if (n_bytes == 0 || !g->options->on_text || g->refused)
        return;
    g->refused = !g->options->on_text(g->options->user, text, n_bytes);
    if (g->refused)
        finish(g, DREY_FINISH_STOP);
}

/* Hands one verified token to the caller. */
static void emit_token(generation *g, int32_t id)
{
    const drey_engine *e = g->s->engine;
    if (!g->options->ignore_eos && tokenizer_is_end(e->options.target->tokenizer, id)) {
        finish(g, DREY_FINISH_STOP);
        return;
    }
    if (g->stats->generated_tokens++ == 0)
        g->stats->first_token_s = clock_s() - g->start_s;
    if (g->options->on_token && !g->options->on_token(g->options->user, id))
        finish(g, DREY_FINISH_STOP);
    const char *text;
    size_t n_bytes;
    detokenizer_push(&g->detokenizer, id, &text, &n_bytes);
    deliver(g, text, n_bytes);
    if (g->detokenizer.stopped)
        finish(g, DREY_FINISH_STOP);
    if (g->stats->generated_tokens >= g->options->n_predict ||
        g->s->n_timeline >= e->options.n_context)
        finish(g, DREY_FINISH_LENGTH);
}

/* The accepted tokens join the timeline; the last of them is the next root. */
static void text_emit(generation *g)
{
    drey_session *s = g->s;
    const accepted *a = &s->accepted;
    for (int32_t i = 0; i <= a->n_path && !g->done; i++) {
        int32_t id = i < a->n_path ? s->tree.nodes[a->path[i]].token : a->next;
        s->timeline[s->n_timeline++] = id;
        emit_token(g, id);
    }
}

/* How deep a draft may go: what may still be written, and what the context still holds. */
static int32_t depth_left(const generation *g)
{
    int64_t tokens = g->options->n_predict - g->stats->generated_tokens;
    int64_t room = g->s->engine->options.n_context - g->s->n_timeline;
    int64_t most = (tokens < room ? tokens : room) - 1;
    return most < 0 ? 0 : (int32_t)most;
}

/* The target's next token becomes the root; what was drafted below it stays. */
static void reroot(drey_session *s)
{
    const accepted *a = &s->accepted;
    int32_t moved[TREE_MAX_NODES];
    tree_moves(&s->tree, a->path, a->n_path, a->next, moved);
    if (s->drafter) {
        draft_observe(s->policy, &s->tree, a->path, a->n_path, a->next);
        s->drafter->class->reroot(s->drafter, &s->tree, a->path, a->n_path, a->next, moved);
    }
    tree_reroot(&s->tree, a->next, moved);
}

/* One turn: guess a tree, run the target over it once, keep the longest right branch. The target
 * alone decides the text; a bad guess costs time, never a token. */
static drey_status session_step(generation *g, drey_error *err)
{
    drey_session *s = g->s;
    double start = clock_s();
    int32_t n_before = s->tree.n_nodes;
    if (s->drafter)
        TRY(draft_grow(s->drafter, s->policy, &s->tree, depth_left(g), err));
    double drafted = clock_s();
    tree_submit(&s->tree);
    TRY(verify_tree(&s->target, &s->tree, s->row_of, err));
    g->draft_s += drafted - start;
    g->verify_s += clock_s() - drafted;
    accept_path(&s->accepted, &s->tree, s->row_of, &s->sampler, s->target.ws->logits,
                pass_logits_stride(&s->target), s->n_timeline - 1);
    int32_t rows[TREE_MAX_ROWS] = {s->row_of[0]};
    for (int32_t i = 0; i < s->accepted.n_path; i++)
        rows[1 + i] = s->row_of[s->accepted.path[i]];
    kv_commit(&s->target_kv, rows, 1 + s->accepted.n_path);
    g->stats->n_passes++;
    g->stats->drafted += s->tree.n_nodes - n_before;
    g->stats->accepted += s->accepted.n_path;
    text_emit(g);
    reroot(s);
    return DREY_OK;
}

/* ---- Before and after ---- */

typedef struct progress_line { /* what a progress callback is told about */
    const drey_engine_options *options;
    const char *what;
    uint64_t total;
} progress_line;

static void report_progress(void *user, uint64_t done)
{
    const progress_line *p = user;
    if (p->options->progress)
        p->options->progress(p->options->progress_user, p->what, done < p->total ? done : p->total,
                             p->total);
}

static uint64_t load_total(const weights *w)
{
    uint64_t total = 0;
    for (int64_t i = 0; i < w->n_first; i++)
        total += w->first[i].n_bytes;
    return total;
}

static void report_prompt(void *user, int32_t done)
{
    report_progress(user, (uint64_t)done);
}

/* What follows the prompt's last row needs no turn. */
static void emit_first_token(generation *g)
{
    drey_session *s = g->s;
    const int32_t root_row = 0;
    tree_reset(&s->tree, s->timeline[s->n_timeline - 1]);
    accept_path(&s->accepted, &s->tree, &root_row, &s->sampler, s->target.ws->logits,
                pass_logits_stride(&s->target), s->n_timeline - 1);
    text_emit(g);
}

/* Computes the prompt in both models; the first pass of each loads its weights. Where only the root
 * is left to compute, a turn does that, with a tree below it. */
static drey_status read_prompt(generation *g, drey_error *err)
{
    drey_session *s = g->s;
    drey_engine *e = s->engine;
    int32_t from = s->target_kv.n_committed, n = s->n_timeline - from;
    progress_line target = {&e->options, "load target", load_total(&e->target.weights)};
    progress_line draft = {&e->options, "load draft", load_total(&e->draft.weights)};
    progress_line prompt = {&e->options, "prompt", (uint64_t)n};
    s->target.loading = s->draft.loading = report_progress;
    s->target.loading_user = &target;
    s->draft.loading_user = &draft;
    drey_status status = DREY_OK;
    if (n > 1 || !weights_loaded(&e->target.weights)) {
        status = pass_prompt(&s->target, s->timeline + from, n, e->plan.chunk, HEAD_LAST,
                             report_prompt, &prompt, err);
        if (status == DREY_OK)
            emit_first_token(g);
    }
    tree_reset(&s->tree, s->timeline[s->n_timeline - 1]);
    if (status == DREY_OK && s->drafter && !g->done)
        status = s->drafter->class->begin(s->drafter, s->timeline, s->n_timeline, err);
    s->target.loading = s->draft.loading = NULL;
    return status;
}

static void count_reads(const drey_engine *e, uint64_t *bytes, int64_t *busy_ns)
{
    stream_counters c;
    *bytes = 0;
    *busy_ns = 0;
    for (int i = 0; i < 2; i++) {
        const weights *w = i ? &e->draft.weights : &e->target.weights;
        weights_count(w, &c);
        *bytes += c.read_bytes;
        *busy_ns += c.busy_ns;
    }
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* The ceiling: a turn takes at least its reads or its computation, whichever is
 * longer, and the drafting that outlasts what the ring can take meanwhile. */
static double ceiling(const generation *g, double compute_s)
{
    const drey_statistics *t = g->stats;
    double turns = (double)t->n_passes;
    double draft = ratio(g->draft_s, turns), compute = ratio(compute_s, turns);
    if (t->streamed_bytes_per_pass == 0)
        return ratio(t->tokens_per_pass, compute + draft);
    if (t->disk_bytes_per_s <= 0)
        return 0;
    double hidden = (double)g->s->engine->plan.ring_bytes[PLAN_TARGET] / t->disk_bytes_per_s;
    double read = (double)t->streamed_bytes_per_pass / t->disk_bytes_per_s;
    return ratio(t->tokens_per_pass,
                 (read > compute ? read : compute) + (draft > hidden ? draft - hidden : 0));
}

static void statistics_end(generation *g, int64_t n_first, double decode_s)
{
    drey_statistics *t = g->stats;
    double decoded = (double)(t->generated_tokens - n_first);
    const drey_engine *e = g->s->engine;
    uint64_t bytes;
    int64_t busy;
    count_reads(e, &bytes, &busy);
    stream_counters how;
    weights_count(&e->target.weights, &how);
    t->direct = how.direct;
    t->uring = how.uring;
    t->registered = how.registered;
    t->decode_s = decode_s;
    t->read_bytes = bytes - g->read_bytes;
    double loading = ratio((double)t->load_bytes, (double)(g->busy_ns - g->start_busy_ns) * 1e-9);
    double decoding = ratio((double)t->read_bytes, (double)(busy - g->busy_ns) * 1e-9);
    t->disk_bytes_per_s = loading > decoding ? loading : decoding;
    double stall_s = (double)(e->target.weights.stall_ns - g->stall_ns) * 1e-9;
    double compute_s = g->verify_s > stall_s ? g->verify_s - stall_s : 0;
    t->tokens_per_s = ratio(decoded, decode_s);
    t->tokens_per_pass = ratio(decoded, (double)t->n_passes);
    t->read_bytes_per_s = ratio((double)t->read_bytes, decode_s);
    t->stall_share = ratio(stall_s, decode_s);
    t->verify_share = ratio(compute_s, decode_s);
    t->draft_share = ratio(g->draft_s, decode_s);
    t->ceiling_tokens_per_s = ceiling(g, compute_s);
    t->decode_major_faults = memory_major_faults() - g->faults;
    t->peak_memory_bytes = memory_resident_peak();
}

static drey_status decode(generation *g, drey_error *err)
{
    const drey_engine *e = g->s->engine;
    g->faults = memory_major_faults();
    g->stall_ns = e->target.weights.stall_ns;
    count_reads(e, &g->read_bytes, &g->busy_ns);
    g->stats->load_bytes = g->read_bytes - g->start_bytes;
    double start = clock_s();
    int64_t n_first = g->stats->generated_tokens;
    drey_status status = DREY_OK;
    while (!g->done && status == DREY_OK)
        status = session_step(g, err);
    statistics_end(g, n_first, clock_s() - start);
    return status;
}

static drey_status check(const drey_session *s, const int32_t *ids, size_t n,
                         const drey_generate_options *o, drey_error *err)
{
    int32_t room = s->engine->options.n_context - s->n_timeline;
    int32_t n_vocab = tokenizer_n_vocab(s->engine->options.target->tokenizer);
    if (n == 0 && s->n_timeline == 0)
        FAIL(err, DREY_ERR_USAGE, "the prompt is empty; give at least one token");
    if (n == 0 && room < 1)
        FAIL(err, DREY_ERR_CONTEXT, "the context is full; reset the session or raise -c");
    if (n > 0 && n >= (size_t)(room > 0 ? room : 0))
        FAIL(err, DREY_ERR_CONTEXT,
             "the prompt has %zu tokens, but the context has room for %d (one of them to write); "
             "shorten the prompt or raise -c",
             n, room);
    if (o->n_predict < 1)
        FAIL(err, DREY_ERR_USAGE, "at least one token must be asked for, not %d", o->n_predict);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= n_vocab)
            FAIL(err, DREY_ERR_USAGE, "token id %d does not exist; the model has ids 0 to %d",
                 ids[i], n_vocab - 1);
    return DREY_OK;
}

static drey_status prepare(generation *g, const int32_t *ids, size_t n, drey_error *err)
{
    drey_session *s = g->s;
    const drey_engine *e = s->engine;
    const tokenizer *t = e->options.target->tokenizer;
    arena_rewind(&s->memory, s->base_mark);
    TRY(sampler_init(&s->sampler, &g->options->sampling, tokenizer_n_vocab(t), e->kernels,
                     &s->memory, err));
    TRY(arena_check(&s->memory, err));
    TRY(detokenizer_init(&g->detokenizer, t, g->options->stops, g->options->n_stops,
                         g->options->special, err));
    g->detokenizer.started =
        true; /* the text goes on from the prompt: its first token keeps its space */
    /* An earlier text may have ended in the middle of what a turn accepted. The rows of the rest
     * have to go before other tokens take their positions. */
    int32_t known = s->n_timeline > 0 ? s->n_timeline - 1 : 0;
    if (s->target_kv.n_committed > known)
        kv_truncate(&s->target_kv, known);
    if (n)
        memcpy(s->timeline + s->n_timeline, ids, n * sizeof *ids);
    s->n_timeline += (int32_t)n;
    return DREY_OK;
}

static drey_status run(generation *g, const int32_t *ids, size_t n, drey_error *err)
{
    g->start_s = clock_s();
    count_reads(g->s->engine, &g->start_bytes, &g->start_busy_ns);
    TRY(check(g->s, ids, n, g->options, err));
    TRY(prepare(g, ids, n, err));
    TRY(read_prompt(g, err));
    g->stats->prompt_tokens = (int64_t)n;
    g->stats->prompt_s = clock_s() - g->start_s;
    return decode(g, err);
}

drey_status drey_session_generate(drey_session *session, const int32_t *ids, size_t n,
                                  const drey_generate_options *options, drey_statistics *statistics,
                                  drey_error *err)
{
    atomic_store(&session->cancel, false); /* what came before the call was not meant for it */
    float_mode caller = float_mode_enter();
    drey_statistics unused;
    const drey_plan *plan = &session->engine->plan.report;
    generation g = {.s = session, .options = options, .stats = statistics ? statistics : &unused};
    *g.stats = (drey_statistics){.budget_bytes = plan->budget_bytes,
                                 .pinned_bytes = plan->pinned_bytes,
                                 .streamed_bytes_per_pass = plan->streamed_bytes_per_pass,
                                 .session_bytes = plan->session_bytes,
                                 .sidecar = plan->sidecar,
                                 .kv = plan->kv};
    drey_status status = run(&g, ids, n, err);
    const char *text;
    size_t n_bytes;
    if (g.detokenizer.tokenizer) {
        detokenizer_flush(&g.detokenizer, &text, &n_bytes);
        deliver(&g, text, n_bytes);
    }
    if (status != DREY_OK)
        g.stats->finish =
            status == DREY_ERR_CANCELLED ? DREY_FINISH_INTERRUPTED : DREY_FINISH_ERROR;
    detokenizer_free(&g.detokenizer);
    float_mode_leave(caller);
    return status;
}

void drey_generate_options_init(drey_generate_options *options)
{
    *options = (drey_generate_options){.n_predict = 512, .sampling = {.top_p = 1.0f}};
}

const char *drey_finish_name(drey_finish finish)
{
    static const char *const names[] = {"stop", "length", "interrupted", "error"};
    return (size_t)finish < sizeof names / sizeof *names ? names[finish] : "error";
}
