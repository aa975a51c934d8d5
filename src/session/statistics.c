/* What a text took: differences of sums over the engine's spans and reads, from where the text and
 * its decoding began to its end. Where sessions take turns, the time of all of them counts. */
#include "common/num.h"
#include "session/session.h"
#include "os/clock.h"
#include "os/memory.h"

static void take_mark(const drey_engine *e, statistics_mark *m)
{
    *m = (statistics_mark){.t_ns = clock_ns(), .major_faults = memory_major_faults()};
    trace_sum(&e->trace, &m->sums);
    for (int i = 0; i < 2; i++) {
        stream_counters c;
        weights_count(i ? &e->draft.weights : &e->target.weights, &c);
        m->read_bytes += c.read_bytes;
        m->vain_bytes += c.vain_bytes;
        m->busy_ns += c.busy_ns;
    }
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

/* The best that the disk gave while it was busy. */
static double disk_speed(const statistics_mark *from, const statistics_mark *to)
{
    return ratio((double)(to->read_bytes - from->read_bytes), seconds(from->busy_ns, to->busy_ns));
}

uint64_t statistics_pass_bytes(uint64_t streamed, bool may_stop, uint64_t used, int64_t n)
{
    return may_stop && n > 0 ? min_u64(used / (uint64_t)n, streamed) : streamed;
}

/* The ceiling: a turn takes at least its reads or its computation, whichever is longer, and the
 * drafting that outlasts what the ring can take meanwhile. */
static double ceiling(const drey_session *s, uint64_t pass_bytes, double draft_s, double compute_s)
{
    const drey_statistics *t = &s->text.stats;
    double turns = (double)t->n_passes;
    double draft = ratio(draft_s, turns), compute = ratio(compute_s, turns);
    if (t->streamed_bytes_per_pass == 0)
        return ratio(t->tokens_per_pass, compute + draft);
    if (t->disk_bytes_per_s <= 0)
        return 0;
    double hidden = (double)s->engine->plan.ring_bytes[PLAN_TARGET] / t->disk_bytes_per_s;
    double read = (double)pass_bytes / t->disk_bytes_per_s;
    return ratio(t->tokens_per_pass, max_f64(read, compute) + max_f64(draft - hidden, 0));
}

/* packing_s: of all threads. The reads would be the same ones. */
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

void statistics_begin(drey_session *s)
{
    s->text.stats = statistics_of_nothing(s->engine);
    s->text.steps_before = s->drafter ? s->drafter->n_steps : 0;
    take_mark(s->engine, &s->text.begin);
}

static int64_t n_blind(const drey_session *s)
{
    return s->drafter ? s->drafter->n_blind : 0;
}

void statistics_decode(drey_session *s)
{
    generation *g = &s->text;
    if (g->decode.t_ns) /* once: a turn may have to be begun again */
        return;
    take_mark(s->engine, &g->decode);
    g->stats.prompt_s = seconds(g->begin.t_ns, g->decode.t_ns);
    g->stats.load_bytes = g->decode.read_bytes - g->begin.read_bytes;
    g->n_first = g->stats.generated_tokens;
    turn_log_begin(&s->turns, g->decode.t_ns);
    g->n_blind = n_blind(s);
}

void statistics_end(drey_session *s)
{
    generation *g = &s->text;
    drey_statistics *t = &g->stats;
    statistics_mark end;
    statistics_decode(s);
    take_mark(s->engine, &end);
    const statistics_mark *start = &g->decode;
    stream_counters how;
    weights_count(&s->engine->target.weights, &how);
    t->direct = how.direct;
    t->uring = how.uring;
    t->registered = how.registered;
    double decoded = (double)(t->generated_tokens - g->n_first);
    double draft_s = spent(TRACE_DRAFT, start, &end), stall_s = spent(TRACE_STALL, start, &end);
    double hidden_s = spent(TRACE_PROVISIONAL, start, &end);
    double compute_s = max_f64(spent(TRACE_VERIFY, start, &end) - stall_s - hidden_s, 0);
    t->decode_s = seconds(start->t_ns, end.t_ns);
    t->read_bytes = end.read_bytes - start->read_bytes;
    t->disk_bytes_per_s = max_f64(disk_speed(&g->begin, start), disk_speed(start, &end));
    t->tokens_per_s = ratio(decoded, t->decode_s);
    t->tokens_per_pass = ratio(decoded, (double)t->n_passes);
    t->read_bytes_per_s = ratio((double)t->read_bytes, t->decode_s);
    t->stall_share = ratio(stall_s, t->decode_s);
    t->verify_share = ratio(compute_s, t->decode_s);
    t->draft_share = ratio(draft_s, t->decode_s);
    t->provisional_share = ratio(hidden_s, t->decode_s);
    uint64_t used = t->read_bytes - (end.vain_bytes - start->vain_bytes);
    uint64_t pass_bytes =
        statistics_pass_bytes(t->streamed_bytes_per_pass, s->observer, used, t->n_passes);
    t->ceiling_tokens_per_s = ceiling(s, pass_bytes, draft_s, compute_s);
    t->sidecar_tokens_per_s = with_a_sidecar(s, spent(TRACE_PACK, start, &end));
    t->decode_major_faults = end.major_faults - start->major_faults;
    t->peak_memory_bytes = memory_resident_peak();
    g->speculation.outside_slice = n_blind(s) - g->n_blind;
    speculation_end(s, &end);
}

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
                         .peak_memory_bytes = memory_resident_peak()};
}

const char *drey_finish_name(drey_finish finish)
{
    static const char *const names[] = {"stop", "length", "interrupted", "error"};
    return (size_t)finish < sizeof names / sizeof *names ? names[finish] : "error";
}
