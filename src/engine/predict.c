/* What a plan will run at: the ceiling, from speeds that were measured or given.
 *
 *   pass = max(read, compute) + drafting that outlasts what the ring takes meanwhile
 *
 * read: streamed bytes at the disk's speed. compute, in memory: matrices and keys and values once
 * through the memory bus, or their multiply-adds at the kernel's speed, whichever takes longer. The
 * draft's steps read it once each; lookup takes no time that matters. */
#include "base/num.h"
#include "engine/plan.h"

typedef struct pass_work {
    double bytes, numbers; /* through the memory bus; in matrices */
} pass_work;

/* With keys and values of a half-filled context. */
static pass_work work_of(const plan_model *model, uint64_t cache_bytes)
{
    pass_work work = {.bytes = (double)cache_bytes / 2};
    for (int32_t i = 0; i < model->n_matrices; i++) {
        const plan_matrix *m = &model->matrix[i];
        if (!m->in_pass)
            continue;
        work.bytes += (double)m->n_groups * (double)m->group_bytes;
        work.numbers += m->numbers;
    }
    return work;
}

static double seconds(pass_work work, int32_t n_rows, const drey_speeds *s)
{
    double ops_per_s = n_rows > 1 ? s->tree_ops_per_s : s->one_ops_per_s;
    double moved = s->memory_bytes_per_s > 0 ? work.bytes / s->memory_bytes_per_s : 0;
    double computed = ops_per_s > 0 ? 2 * n_rows * work.numbers / ops_per_s : 0;
    return max_f64(moved, computed);
}

/* Of a pass that computes for so long if it goes to its end, where passes may be stopped. */
static double mean_pass(const plan_inputs *in, const plan_result *r, pass_work target,
                        double compute_s)
{
    const double at_once = 1e30; /* a speed that is no bound */
    double disk = r->report.speeds.disk_bytes_per_s;
    return plan_pass_s(in, r, in->exit_layers, disk > 0 ? disk : at_once,
                       compute_s > 0 ? target.bytes / compute_s : at_once);
}

static double per_second(double s)
{
    return s > 0 ? 1 / s : 0;
}

void plan_predict(const plan_inputs *in, const drey_speeds *speeds, plan_result *r)
{
    drey_plan *t = &r->report;
    uint64_t draft_kv = t->draft_kv_bytes / (uint64_t)in->n_sessions;
    uint64_t target_kv = t->kv_bytes / (uint64_t)in->n_sessions - draft_kv;
    t->speeds = *speeds;
    bool reads = t->streamed_bytes_per_pass > 0, knows_disk = speeds->disk_bytes_per_s > 0;
    if (reads && !knows_disk)
        return;
    pass_work target = work_of(&in->model[PLAN_TARGET], target_kv);
    if (reads)
        t->read_s = (double)t->streamed_bytes_per_pass / speeds->disk_bytes_per_s;
    t->compute_s = seconds(target, 1, speeds);
    t->verify_s = max_f64(t->compute_s, seconds(target, t->tree_rows, speeds));
    if (in->model[PLAN_DRAFT].n_matrices > 0) {
        pass_work draft = work_of(&in->model[PLAN_DRAFT], draft_kv);
        t->draft_s = in->draft_steps * seconds(draft, 1, speeds);
    }
    if (in->heads_bytes && speeds->memory_bytes_per_s > 0)
        t->draft_s = (double)(in->heads_bytes + in->slice_bytes) / speeds->memory_bytes_per_s;
    if (in->self_draft) {
        target.bytes = (double)t->pinned_bytes;
        t->draft_s = in->draft_steps * seconds(target, 1, speeds);
    }
    double hidden = reads ? (double)r->ring_bytes[PLAN_TARGET] / speeds->disk_bytes_per_s : 0;
    double tree_s = max_f64(t->read_s, t->verify_s);
    t->alone_pass_s = max_f64(t->read_s, t->compute_s);
    if (in->exit_layers > 0) {
        t->alone_pass_s = mean_pass(in, r, target, t->compute_s);
        tree_s = mean_pass(in, r, target, t->verify_s);
    }
    t->pass_s = tree_s + max_f64(t->draft_s - hidden, 0);
    t->passes_per_s = per_second(t->pass_s);
    t->ceiling_tokens_per_s = per_second(t->alone_pass_s);
}
