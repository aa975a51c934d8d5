/* The time of a text: differences of sums over the engine's spans and reads, from the beginning of
 * the text and of its decoding to its end. If sessions take turns, the time of all of them
 * counts. */
#include "session/statistics.h"

#include "common/num.h"
#include "os/clock.h"
#include "os/memory.h"
#include "session/session.h"

static void take_mark(const drey_engine *e, statistics_mark *m)
{
    *m = (statistics_mark){.t_ns = clock_ns(), .major_faults = memory_major_faults()};
    trace_sum(&e->trace, &m->sums);
    m->joules = e->meters.energy.joules;
    for (int i = 0; i < 2; i++) {
        stream_counters c;
        weights_count(i ? &e->draft.weights : &e->target.weights, &c);
        m->read_bytes += c.read_bytes;
        m->vain_bytes += c.vain_bytes;
        m->busy_ns += c.busy_ns;
    }
    stream_counters kv;
    kv_file_count(&e->target.kv_file, &kv);
    m->kv_bytes = kv.read_bytes;
    m->read_bytes += kv.read_bytes;
    m->busy_ns += kv.busy_ns;
    m->experts = e->team->experts(e);
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static double seconds(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) * 1e-9;
}

static double spent(trace_kind what, const statistics_mark *from, const statistics_mark *to)
{
    return seconds(from->sums.ns[what], to->sums.ns[what]);
}

/* The disk's highest speed while it was busy. */
static double disk_speed(const statistics_mark *from, const statistics_mark *to)
{
    return ratio((double)(to->read_bytes - from->read_bytes), seconds(from->busy_ns, to->busy_ns));
}

uint64_t statistics_pass_bytes(uint64_t streamed, bool may_stop, uint64_t used, int64_t n)
{
    return may_stop && n > 0 ? min_u64(used / (uint64_t)n, streamed) : streamed;
}

/* The highest possible speed: a turn takes at least its reads or its computation, whichever is
 * longer, plus the drafting beyond what the ring can read meanwhile. */
static double ceiling(const drey_session *s, uint64_t pass_bytes, double draft_s, double compute_s)
{
    const drey_statistics *t = &s->text.stats;
    double turns = (double)t->n_passes;
    double draft = ratio(draft_s, turns), compute = ratio(compute_s, turns);
    if (pass_bytes == 0)
        return ratio(t->tokens_per_pass, compute + draft);
    if (t->disk_bytes_per_s <= 0)
        return 0;
    double hidden = (double)s->engine->plan.ring_bytes[PLAN_TARGET] / t->disk_bytes_per_s;
    double read = (double)pass_bytes / t->disk_bytes_per_s;
    return ratio(t->tokens_per_pass, max_f64(read, compute) + max_f64(draft - hidden, 0));
}

/* packing_s: of all threads. The reads would be the same. */
static double with_a_sidecar(const drey_session *s, double packing_s)
{
    const drey_statistics *t = &s->text.stats;
    if (t->sidecar || t->streamed_bytes_per_pass == 0)
        return 0;
    double read_s = ratio((double)t->read_bytes, t->disk_bytes_per_s);
    double others_s = t->decode_s - packing_s / s->engine->plan.report.n_threads;
    return ratio(t->tokens_per_s * t->decode_s, min_f64(max_f64(others_s, read_s), t->decode_s));
}

drey_statistics statistics_of_nothing(const drey_engine *e)
{
    const drey_plan *plan = &e->plan.report;
    return (drey_statistics){.budget_bytes = plan->budget_bytes,
                             .pinned_bytes = plan->pinned_bytes,
                             .streamed_bytes_per_pass = plan->streamed_bytes_per_pass,
                             .session_bytes = plan->session_bytes,
                             .sidecar = plan->sidecar,
                             .kv = plan->kv,
                             .finish = DREY_FINISH_ERROR};
}

/* Returns whether another session is in the middle of a text. */
static bool others_write(const drey_session *s)
{
    for (int32_t i = 0; i < s->engine->n_sessions; i++)
        if (s->engine->sessions[i] != s && s->engine->sessions[i]->state != SESSION_IDLE)
            return true;
    return false;
}

void statistics_begin(drey_session *s)
{
    drey_engine *e = s->engine;
    if (others_write(s))
        energy_meter_add(&e->meters.energy, e->hooks.energy_root, true);
    else
        energy_meter_skip(&e->meters.energy, e->hooks.energy_root);
    s->text.stats = statistics_of_nothing(s->engine);
    s->text.marks.n_steps = s->drafter ? s->drafter->n_steps : 0;
    take_mark(s->engine, &s->text.marks.begin);
}

static int64_t n_unguessable(const drey_session *s)
{
    return s->drafter ? s->drafter->n_unguessable : 0;
}

void statistics_decode(drey_session *s)
{
    generation *g = &s->text;
    if (g->marks.decode.t_ns) /* once: a turn may be begun again */
        return;
    energy_meter_add(&s->engine->meters.energy, s->engine->hooks.energy_root, true);
    take_mark(s->engine, &g->marks.decode);
    g->stats.prompt_s = seconds(g->marks.begin.t_ns, g->marks.decode.t_ns);
    g->stats.load_bytes = g->marks.decode.read_bytes - g->marks.begin.read_bytes;
    g->marks.n_first = g->stats.generated_tokens;
    turn_log_begin(&s->turns, g->marks.decode.t_ns);
    g->marks.n_unguessable = n_unguessable(s);
}

/* Times, and what the policy knows, from the beginning of decoding to `end`. */
static void end_speculation(drey_session *s, const statistics_mark *end)
{
    drey_speculation *c = &s->text.speculation;
    const int64_t *before = s->text.marks.decode.sums.ns, *after = end->sums.ns;
    int64_t between = after[TRACE_DRAFT] - before[TRACE_DRAFT];
    int64_t during = after[TRACE_PROVISIONAL] - before[TRACE_PROVISIONAL];
    c->draft_s = (double)(between + during) * 1e-9;
    c->hidden_share = during > 0 ? (double)during / (double)(between + during) : 0;
    c->draft_steps = s->drafter ? s->drafter->n_steps - s->text.marks.n_steps : 0;
    c->alpha = s->policy ? (double)s->policy->fallback.alpha : 0;
    c->lossy = drey_policy_is_lossy(s->engine->config.policy_id);
    if (s->engine->config.policy_id == DREY_POLICY_DRAFT)
        c->differed = -1;
}

void statistics_end(drey_session *s)
{
    generation *g = &s->text;
    drey_statistics *t = &g->stats;
    statistics_mark end;
    statistics_decode(s);
    energy_meter_add(&s->engine->meters.energy, s->engine->hooks.energy_root, true);
    take_mark(s->engine, &end);
    const statistics_mark *start = &g->marks.decode;
    stream_counters how;
    weights_count(&s->engine->target.weights, &how);
    t->direct = how.direct;
    t->uring = how.uring;
    t->registered = how.registered;
    double decoded = (double)(t->generated_tokens - g->marks.n_first);
    double draft_s = spent(TRACE_DRAFT, start, &end), stall_s = spent(TRACE_STALL, start, &end);
    double hidden_s = spent(TRACE_PROVISIONAL, start, &end);
    double ranks_s = spent(TRACE_RANKS, start, &end), pass_s = spent(TRACE_VERIFY, start, &end);
    double compute_s = max_f64(pass_s - stall_s - hidden_s - ranks_s, 0);
    t->decode_s = seconds(start->t_ns, end.t_ns);
    t->read_bytes = end.read_bytes - start->read_bytes;
    t->disk_bytes_per_s = max_f64(disk_speed(&g->marks.begin, start), disk_speed(start, &end));
    t->tokens_per_s = ratio(decoded, t->decode_s);
    t->tokens_per_pass = ratio(decoded, (double)t->n_passes);
    t->read_bytes_per_s = ratio((double)t->read_bytes, t->decode_s);
    t->stall_share = ratio(stall_s, t->decode_s);
    t->verify_share = ratio(compute_s, t->decode_s);
    t->draft_share = ratio(draft_s, t->decode_s);
    t->provisional_share = ratio(hidden_s, t->decode_s);
    t->ranks_share = ratio(ranks_s, t->decode_s);
    uint64_t kv_bytes = end.kv_bytes - start->kv_bytes;
    uint64_t used = t->read_bytes - kv_bytes - (end.vain_bytes - start->vain_bytes);
    t->experts_used = end.experts.used - start->experts.used;
    t->experts_read = end.experts.read - start->experts.read;
    t->experts_guessed = end.experts.guessed - start->experts.guessed;
    t->guesses_used = end.experts.right - start->experts.right;
    bool varies = s->observer || t->experts_used > 0;
    uint64_t pass_bytes =
        statistics_pass_bytes(t->streamed_bytes_per_pass, varies, used, t->n_passes);
    pass_bytes += kv_bytes / (uint64_t)max_i64(t->n_passes, 1);
    t->ceiling_tokens_per_s = ceiling(s, pass_bytes, draft_s, compute_s + ranks_s);
    t->sidecar_tokens_per_s = with_a_sidecar(s, spent(TRACE_PACK, start, &end));
    t->decode_major_faults = end.major_faults - start->major_faults;
    t->peak_memory_bytes = memory_resident_peak();
    t->joules = end.joules - start->joules;
    g->speculation.outside_slice = n_unguessable(s) - g->marks.n_unguessable;
    end_speculation(s, &end);
}

/* ---- What came of drafting: by depth in the tree, by rank, by tokens of a pass ---- */

static const int32_t deepest = DREY_SPECULATION_DEPTHS - 1, no_rank = DREY_SPECULATION_RANKS;

static int32_t rank_of(const tree_node *node, int32_t token)
{
    int32_t rank = tree_rank(node, token);
    return rank < 0 ? no_rank : min_i32(rank, no_rank);
}

static void count_submitted(drey_speculation *c, const token_tree *tree)
{
    for (int32_t i = 1; i < tree->n_nodes; i++) {
        const tree_node *node = &tree->nodes[i];
        if (!node->submitted)
            continue;
        c->depth_submitted[min_i32(node->depth - 1, deepest)]++;
        c->rank_submitted[rank_of(&tree->nodes[node->parent], node->token)]++;
    }
}

static void count_source(drey_speculation *c, const tree_node *from, int32_t token)
{
    int32_t rank = tree_rank(from, token);
    uint8_t source = rank >= 0 ? from->source[rank] : 0;
    c->accepted_of_draft += source == SOURCE_DRAFT;
    c->accepted_of_text += source == SOURCE_TEXT;
    c->accepted_of_both += source == (SOURCE_DRAFT | SOURCE_TEXT);
}

static void count_chosen(drey_speculation *c, const token_tree *tree, const accepted *a)
{
    for (int32_t i = 0; i <= a->n_path; i++) {
        const tree_node *from = &tree->nodes[i ? a->path[i - 1] : 0];
        bool in_tree = i < a->n_path;
        int32_t rank = rank_of(from, in_tree ? tree->nodes[a->path[i]].token : a->next);
        if (from->n_guesses)
            c->rank_chosen[rank]++;
        if (!in_tree)
            continue;
        count_source(c, from, tree->nodes[a->path[i]].token);
        c->depth_accepted[min_i32(i, deepest)]++;
        c->rank_accepted[rank]++;
    }
}

void speculation_count(drey_session *s, int32_t n_written)
{
    drey_speculation *c = &s->text.speculation;
    count_submitted(c, &s->tree);
    count_chosen(c, &s->tree, &s->accepted);
    if (n_written > 0)
        c->passes_writing[min_i32(n_written, DREY_SPECULATION_WRITTEN) - 1]++;
}

void drey_session_speculation(const drey_session *session, drey_speculation *out)
{
    *out = session->text.speculation;
}

/* ---- All the time ---- */

void drey_engine_count(const drey_engine *e, drey_counts *out)
{
    statistics_mark now;
    take_mark(e, &now);
    const trace_sums *t = &now.sums;
    *out = (drey_counts){.passes = t->n[TRACE_VERIFY],
                         .rows = t->arg[TRACE_VERIFY],
                         .prompt_passes = t->n[TRACE_PROMPT] + t->n[TRACE_LOAD],
                         .prompt_rows = t->arg[TRACE_PROMPT] + t->arg[TRACE_LOAD],
                         .pass_s = seconds(0, t->ns[TRACE_VERIFY]),
                         .prompt_s = seconds(0, t->ns[TRACE_PROMPT] + t->ns[TRACE_LOAD]),
                         .draft_s = seconds(0, t->ns[TRACE_DRAFT]),
                         .hidden_s = seconds(0, t->ns[TRACE_PROVISIONAL]),
                         .stall_s = seconds(0, t->ns[TRACE_STALL]),
                         .read_bytes = now.read_bytes,
                         .read_s = seconds(0, now.busy_ns),
                         .peak_memory_bytes = memory_resident_peak(),
                         .experts_used = now.experts.used,
                         .experts_read = now.experts.read,
                         .joules = now.joules};
}

const char *drey_finish_name(drey_finish finish)
{
    static const char *const names[] = {"stop", "length", "interrupted", "error"};
    return (size_t)finish < sizeof names / sizeof *names ? names[finish] : "error";
}

/* ---- Spans and turns that were kept ---- */

/* A stream's thread may be reading ahead: its lane is copied in portions, while its reads are
 * stopped. */
static int32_t copy_lane(const drey_engine *e, int32_t lane, int64_t *from, trace_span *out,
                         int32_t max)
{
    const weights *w = lane == e->config.n_threads  ? &e->target.weights
                       : lane > e->config.n_threads ? &e->draft.weights
                                                    : NULL;
    if (w)
        weights_hold_reads(w);
    int32_t n = trace_copy(&e->trace, lane, from, out, max);
    if (w)
        weights_let_read(w);
    return n;
}

static void visit_lane(const drey_engine *e, int32_t lane, const drey_trace_visitor *visitor)
{
    trace_span spans[128];
    int64_t from = 0;
    int32_t n;
    while ((n = copy_lane(e, lane, &from, spans, sizeof spans / sizeof *spans)) > 0)
        for (int32_t i = 0; i < n; i++) {
            bool of_draft = lane > e->config.n_threads;
            bool of_expert = spans[i].what == TRACE_READ && spans[i].layer > 0;
            const drey_trace_span span = {
                .layer = (int32_t)spans[i].layer - 1,
                .expert = of_expert ? (int32_t)spans[i].number : -1,
                .n_read = of_expert ? 0 : (int32_t)spans[i].number,
                .t0_ns = spans[i].t0_ns,
                .t1_ns = spans[i].t1_ns,
                .what = of_draft ? "read draft" : trace_kind_name((trace_kind)spans[i].what),
                .amount = spans[i].arg};
            visitor->span(visitor->user, &span);
        }
}

void drey_session_trace(const drey_session *session, const drey_trace_visitor *visitor)
{
    const drey_engine *e = session->engine;
    const int32_t lanes[] = {0, e->config.n_threads, e->config.n_threads + 1};
    for (int i = 0; i < 3 && visitor->span; i++)
        visit_lane(e, lanes[i], visitor);
    if (visitor->turn)
        turn_log_visit(&session->turns, visitor);
}
