/* The highest speed that a plan can reach, from speeds that were measured or given.
 *
 *   pass = max(read, compute) + drafting beyond what the ring reads meanwhile
 *
 * read: streamed bytes at the disk's speed. compute, in memory: matrices and keys and values once
 * through the memory bus, or their multiply-adds at the kernel's speed, whichever takes longer;
 * each other row of a tile adds a usual part to the first. In a mixture of experts both add up. The
 * draft's steps read the draft once each; lookup takes no time that matters. Passes and steps that
 * were measured count as measured. */
#include "base/usual.h"
#include "common/num.h"
#include "drey/tune.h"
#include "plan/plan.h"
#include "policy/cost.h"

typedef struct pass_work {
    double bytes, numbers; /* through the memory bus; in matrices */
} pass_work;

/* Work of a pass with keys and values of a half-filled context. */
static pass_work work_of(const plan_model *model, uint64_t cache_bytes)
{
    pass_work work = {.bytes = (double)cache_bytes / 2};
    for (int32_t i = 0; i < model->n_matrices; i++) {
        const plan_matrix *m = &model->matrix[i];
        if (!m->groups.in_pass)
            continue;
        work.bytes += (double)m->groups.n_groups * (double)m->groups.group_bytes;
        work.numbers += m->numbers;
    }
    work.bytes += (double)model->experts.token_bytes;
    work.numbers += model->experts.token_numbers;
    return work;
}

/* row_share: what each other row of a tile adds to what is moved. */
static double seconds(pass_work work, int32_t n_rows, double row_share, const drey_speeds *s)
{
    double ops_per_s = n_rows > 1 ? s->tree_ops_per_s : s->one_ops_per_s;
    double moved = s->memory_bytes_per_s > 0 ? work.bytes / s->memory_bytes_per_s : 0;
    double computed = ops_per_s > 0 ? 2 * n_rows * work.numbers / ops_per_s : 0;
    return max_f64(moved * (1 + row_share * (min_i32(n_rows, USUAL_TILE_ROWS) - 1)), computed);
}

/* Time of a pass that computes for so long if it goes to its end, if passes may be stopped. */
static double mean_pass(const plan_inputs *in, const plan_result *r, pass_work target,
                        double compute_s)
{
    const double at_once = 1e30; /* a speed that is no bound */
    double disk = r->report.speeds.disk_bytes_per_s;
    return plan_mean_pass_s(in, r, disk > 0 ? disk : at_once,
                            compute_s > 0 ? target.bytes / compute_s : at_once);
}

static double per_second(double s)
{
    return s > 0 ? 1 / s : 0;
}

/* A turn at measured speeds. */
typedef struct turn_work {
    const plan_inputs *in;
    const plan_result *r;
    pass_work target, step;
} turn_work;

static double pass_seconds(const turn_work *w, int32_t n_rows)
{
    const drey_profile *p = w->in->draft.profile;
    int32_t rows = min_i32(n_rows, DREY_PROFILE_ROWS);
    double known = p ? p->pass_s[rows - 1] * n_rows / rows : 0;
    const double row = USUAL_ROW_WITHIN_TILE * plan_row_price(w->in->n_threads);
    return known > 0 ? known : seconds(w->target, n_rows, row, &w->r->report.speeds);
}

static double step_seconds(const turn_work *w, int32_t n_nodes)
{
    const drey_profile *p = w->in->draft.profile;
    double known = p ? p->step_s[min_i32(n_nodes, DREY_PROFILE_NODES) - 1] : 0;
    return known > 0 ? known : seconds(w->step, n_nodes, USUAL_STEP_NODE, &w->r->report.speeds);
}

static double own_pass_over(const turn_work *w, int32_t n_rows)
{
    const drey_plan *t = &w->r->report;
    if (t->n_experts) /* they are known when their layer has chosen: little overlaps */
        return t->read_s * cost_union(n_rows, plan_expert_ratio(w->in)) + pass_seconds(w, n_rows);
    double compute_s = max_f64(t->compute_s, pass_seconds(w, n_rows));
    return w->in->exit_layers > 0 ? mean_pass(w->in, w->r, w->target, compute_s)
                                  : max_f64(t->read_s, compute_s);
}

static double pass_over(const turn_work *w, int32_t n_rows)
{
    const plan_remote *b = &w->in->remote;
    return own_pass_over(w, n_rows) + (b->rows_s ? b->rows_s(b->user, n_rows) : 0);
}

/* The time that drafting adds to a pass: beyond what the ring can read meanwhile. */
static double beyond_ring(const plan_result *r, double draft_s)
{
    const drey_plan *t = &r->report;
    double disk = t->streamed_bytes_per_pass ? t->speeds.disk_bytes_per_s : 0;
    double hidden = disk > 0 ? (double)r->ring_bytes[PLAN_TARGET] / disk : 0;
    return max_f64(draft_s - hidden, 0);
}

static double turn_over(const void *user, int32_t n_nodes, int32_t n_steps)
{
    const turn_work *w = user;
    int32_t n = n_steps ? ceil_div_i32(n_nodes, n_steps) : 1;
    double draft_s = n_steps * step_seconds(w, n);
    return pass_over(w, 1 + n_nodes) + beyond_ring(w->r, draft_s);
}

/* The numbers that a step of the draft multiplies. */
static pass_work step_of(const plan_inputs *in, const plan_result *r, pass_work target)
{
    const drey_plan *t = &r->report;
    const plan_model *draft = &in->model[PLAN_DRAFT];
    if (draft->is_view)
        return (pass_work){.bytes = (double)t->pinned_bytes, .numbers = target.numbers};
    if (draft->n_matrices > 0)
        return work_of(draft, t->draft_kv_bytes / (uint64_t)in->n_sessions);
    return (pass_work){.bytes = (double)draft->resident_bytes};
}

static turn_work turn_of(const plan_inputs *in, const plan_result *r)
{
    const drey_plan *t = &r->report;
    turn_work w = {.in = in, .r = r};
    w.target = work_of(&in->model[PLAN_TARGET],
                       (t->kv_bytes - t->draft_kv_bytes) / (uint64_t)in->n_sessions);
    w.step = step_of(in, r, w.target);
    return w;
}

double plan_rows_s(const plan_inputs *in, const plan_result *r, int32_t n_rows)
{
    const turn_work w = turn_of(in, r);
    return pass_over(&w, n_rows);
}

void plan_predict(const plan_inputs *in, const drey_speeds *speeds, plan_result *r)
{
    drey_plan *t = &r->report;
    t->speeds = *speeds;
    /* Half of a context is away on average. */
    const double read_bytes = (double)t->streamed_bytes_per_pass + (double)t->kv_read_bytes / 2;
    bool reads = read_bytes > 0, knows_disk = speeds->disk_bytes_per_s > 0;
    if (reads && !knows_disk)
        return;
    const turn_work w = turn_of(in, r);
    if (reads)
        t->read_s = read_bytes / speeds->disk_bytes_per_s;
    t->compute_s = pass_seconds(&w, 1);
    t->verify_s = max_f64(t->compute_s, pass_seconds(&w, t->tree_rows));
    t->draft_s = in->draft.steps * step_seconds(&w, 1);
    t->alone_pass_s = pass_over(&w, 1);
    t->pass_s = pass_over(&w, t->tree_rows) + beyond_ring(r, t->draft_s);
    t->passes_per_s = per_second(t->pass_s);
    t->ceiling_tokens_per_s = per_second(t->alone_pass_s);
    if (t->alone_pass_s > 0)
        t->expected_tokens_per_s = expect_best(in, turn_over, &w);
}
