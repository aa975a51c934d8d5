/* What a plan will run at: the ceiling, from speeds that were measured or given.
 *
 *   pass = max(read, compute) + drafting that outlasts what the ring takes meanwhile
 *
 * read: streamed bytes at the disk's speed. compute, in memory: matrices and keys and values once
 * through the memory bus, or their multiply-adds at the kernel's speed, whichever takes longer. The
 * draft computes a pass of one row for each node of a tree; lookup takes no time that matters. */
#include "engine/engine.h"

typedef struct pass_work {
    double bytes, numbers; /* through the memory bus; in matrices */
} pass_work;

/* With keys and values of a half-filled context. */
static pass_work work_of(const model_layout *l, uint64_t cache_bytes)
{
    pass_work work = {.bytes = (double)cache_bytes / 2};
    for (int32_t i = l->n_looked_up; i < l->n_matrices; i++) {
        const weight *m = &l->matrix[i];
        work.bytes += (double)m->n_groups * (double)m->group_bytes;
        work.numbers += (double)m->n_rows * (double)m->k;
    }
    return work;
}

static double seconds(pass_work work, int32_t n_rows, const drey_speeds *s)
{
    double ops_per_s = n_rows > 1 ? s->tree_ops_per_s : s->one_ops_per_s;
    double moved = s->memory_bytes_per_s > 0 ? work.bytes / s->memory_bytes_per_s : 0;
    double computed = ops_per_s > 0 ? 2 * n_rows * work.numbers / ops_per_s : 0;
    return moved > computed ? moved : computed;
}

static double longer(double a, double b)
{
    return a > b ? a : b;
}

static double per_second(double s)
{
    return s > 0 ? 1 / s : 0;
}

void engine_predict(drey_engine *e, const drey_speeds *speeds)
{
    drey_plan *t = &e->plan.report;
    t->speeds = *speeds;
    bool reads = t->streamed_bytes_per_pass > 0, knows_disk = speeds->disk_bytes_per_s > 0;
    if (reads && !knows_disk)
        return;
    pass_work target = work_of(&e->target.layout, t->kv_bytes - t->draft_kv_bytes);
    if (reads)
        t->read_s = (double)t->streamed_bytes_per_pass / speeds->disk_bytes_per_s;
    t->compute_s = seconds(target, 1, speeds);
    t->verify_s = longer(t->compute_s, seconds(target, t->tree_rows, speeds));
    if (e->has_draft) {
        pass_work draft = work_of(&e->draft.layout, t->draft_kv_bytes);
        t->draft_s = e->plan.tree_nodes * seconds(draft, 1, speeds);
    }
    double hidden = reads ? (double)e->plan.target_ring / speeds->disk_bytes_per_s : 0;
    t->pass_s = longer(t->read_s, t->verify_s) + longer(t->draft_s - hidden, 0);
    t->alone_pass_s = longer(t->read_s, t->compute_s);
    t->passes_per_s = per_second(t->pass_s);
    t->ceiling_tokens_per_s = per_second(t->alone_pass_s);
}
