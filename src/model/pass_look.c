/* Looking into a pass between two layers.
 *
 * What the head would say of the residual stream as it is: its final norm, quantised, times rows of
 * the head. At a layer only the residual stream holds anything (workspace.h), so that all else
 * serves here: normed rows are in y, logits of the whole head where those of the pass will be. */
#include <assert.h>
#include <stdatomic.h>

#include "model/layout.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "os/clock.h"
#include "os/pool.h"
#include "weights/weights.h"

/* Looks that threads take one by one. */
typedef struct look_job {
    model_pass *p;
    const pass_look *looks;
    int32_t n;
    _Atomic int32_t next;
} look_job;

bool pass_can_look(const model_pass *p)
{
    const runner *r = p->r;
    return pass_at_layer(p) && weights_loaded(r->weights) && r->layout->shape.streams.n == 0 &&
           !r->layout->table && residency_is_whole(&r->layout->head->residency);
}

/* The final norm of a row, as row i of y. */
static float *norm_row(const model_pass *p, int32_t row, int32_t i)
{
    const runner *r = p->r;
    float *y = r->ws->y + i * pass_embd_ld(p);
    pass_norm(r, y, r->ws->x + row * pass_embd_ld(p), r->layout->last.norm, r->layout->last.bias);
    return y;
}

static void take_look(const model_pass *p, const pass_look *look, int32_t i, int32_t thread)
{
    const runner *r = p->r;
    const weight *head = r->layout->head;
    void *act = r->ws->look + (size_t)thread * look_bytes(r->layout->shape.n_embd);
    assert(look->row >= 0 && look->row < p->n_rows);
    r->kernels->quantise[head->form.kernel->act](act, norm_row(p, look->row, i), pass_embd_ld(p), 0,
                                                 1, 1, head->form.k);
    weights_dot_rows(r->weights, head, look->ids, look->n_ids, act, look->logits, thread);
    pass_finish(r, look->ids, look->logits, look->n_ids);
}

static void looks_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    look_job *j = arg;
    for (int32_t i; (i = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed)) < j->n;)
        take_look(j->p, &j->looks[i], i, thread);
}

void pass_look_ids(model_pass *p, const pass_look *looks, int32_t n)
{
    look_job j = {.p = p, .looks = looks, .n = n};
    assert(pass_can_look(p) && n <= p->r->ws->limits.max_rows + p->r->ws->limits.max_deferred);
    if (n > 1)
        pool_run(p->r->pool, looks_thread, &j);
    else
        looks_thread(&j, 0, 1);
}

float *pass_look_head(model_pass *p, const int32_t *rows, int32_t n)
{
    runner *r = p->r;
    weight *head = r->layout->head;
    assert(pass_can_look(p) && n >= 1 &&
           n <= r->ws->limits.max_logit_rows + r->ws->limits.max_deferred);
    int64_t start = r->trace ? clock_ns() : 0;
    for (int32_t i = 0; i < n; i++)
        norm_row(p, rows[i], i);
    r->kernels->quantise[head->form.kernel->act](r->ws->acts[head->form.kernel->act], r->ws->y,
                                                 pass_embd_ld(p), 0, n, n, head->form.k);
    product_run_aside(r->weights, r->pool, &(product){head, r->ws->logits, pass_logits_stride(r)},
                      r->ws->acts, n);
    for (int32_t i = 0; i < n; i++)
        pass_finish(r, NULL, r->ws->logits + i * pass_logits_stride(r), head->form.n_rows);
    if (r->trace)
        trace_add(r->trace, 0, TRACE_MATMUL, start, clock_ns(), n);
    return r->ws->logits;
}

const float *pass_look_hidden(const model_pass *p)
{
    return p->r->ws->y;
}
