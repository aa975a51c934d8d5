/* The time of a pass that may end before its last layer, by what is pinned of each layer.
 *
 * As long as passes go to their end, a byte in memory is worth the same in every layer: then an
 * equal share of each matrix is best, because computing overlaps with reading all the time. If some
 * end early, a byte in memory is worth less the fewer passes reach its layer, so those of the first
 * layers are worth more. But while layers that are entirely in memory are computed, the disk is
 * idle once its ring is full: what it could read meanwhile need not be in memory. So the first
 * layers keep a share that lets the disk stay busy, and the memory that this saves pins further
 * layers. */
#include "common/num.h"
#include "model/arch.h"
#include "policy/cost.h"
#include "plan/plan.h"

/* The bytes and reads of a matrix that passes multiply. */
typedef struct matrix_work {
    double read_bytes, bytes;
    double share; /* its share, in a pass through so many layers */
} matrix_work;

/* The layer of matrix i. Layers have equally many matrices; those that are only looked up, before
 * them, and the head, after them, have no layer (-1). */
static int32_t layer_of(const plan_model *target, int32_t i)
{
    int32_t head = target->n_matrices - 1, first = 0;
    while (!target->matrix[first].groups.in_pass)
        first++;
    bool is_none = i < first || i == head;
    return is_none ? -1 : (i - first) / ((head - first) / target->shape->n_layers);
}

/* Matrix i, in a pass through `layers` layers, the last of which may be only a part. */
static matrix_work work_of(const plan_inputs *in, const plan_result *r, int32_t i, double layers)
{
    const residency *m = &r->residency[PLAN_TARGET][i];
    int32_t layer = layer_of(&in->model[PLAN_TARGET], i);
    double share = layer < 0 ? m->in_pass : min_f64(max_f64(layers - layer, 0), 1);
    return (matrix_work){.read_bytes = (double)residency_streamed_bytes(m),
                         .bytes = (double)m->n_groups * (double)m->group_bytes,
                         .share = share};
}

double plan_pass_s(const plan_inputs *in, const plan_result *r, double layers, double disk_per_s,
                   double memory_per_s)
{
    double read = 0, computed = 0; /* when the disk and the threads finish what came so far */
    double ahead = (double)r->ring_bytes[PLAN_TARGET] / disk_per_s;
    for (int32_t i = 0; i < in->model[PLAN_TARGET].n_matrices; i++) {
        matrix_work w = work_of(in, r, i, layers);
        if (w.share * w.read_bytes > 0)
            read = max_f64(read, computed - ahead) + w.share * w.read_bytes / disk_per_s;
        computed = max_f64(computed + w.share * w.bytes / memory_per_s, read);
    }
    return computed;
}

double plan_mean_pass_s(const plan_inputs *in, const plan_result *r, double disk_per_s,
                        double memory_per_s)
{
    int32_t n_layers = in->model[PLAN_TARGET].shape->n_layers;
    double sum = 0;
    if (!in->exit_shares)
        return plan_pass_s(in, r, in->exit_layers, disk_per_s, memory_per_s);
    for (int32_t layer = 1; layer <= n_layers; layer++)
        if (in->exit_shares[layer] > 0)
            sum += (double)in->exit_shares[layer] *
                   plan_pass_s(in, r, layer, disk_per_s, memory_per_s);
    return sum;
}

double plan_expected_pass_s(const plan_inputs *in, const plan_result *r)
{
    const uint64_t bytes = 1 << 30;
    turn_cost usual;
    cost_init(&usual, bytes, bytes, 0, 0);
    return plan_mean_pass_s(in, r, (double)bytes / usual.read_s,
                            (double)bytes / cost_pass(&usual, 1 + in->draft.tree_nodes));
}

int64_t plan_leading_layers(const plan_inputs *in, const plan_result *r)
{
    const plan_model *target = &in->model[PLAN_TARGET];
    for (int32_t layer = 0; layer < target->shape->n_layers; layer++) {
        uint64_t all = 0, stays = 0;
        for (int32_t i = 0; i < target->n_matrices; i++)
            if (layer_of(target, i) == layer) {
                const residency *m = &r->residency[PLAN_TARGET][i];
                all += (uint64_t)m->n_groups * m->group_bytes;
                stays += residency_pinned_bytes(m);
            }
        if (stays < all / 2)
            return layer;
    }
    return target->shape->n_layers;
}
