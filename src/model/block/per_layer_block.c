/* The end of a layer that learns about a row's token once more, and whose result has a factor.
 *
 *   p = the layer's part of the token's row in a table, m = norm(the layer's part of Model e)
 *   x += norm(Proj (gelu(Gate x) * (p sqrt(P) + m) / sqrt(2)))      e: the token's embedding
 *   x *= the layer's factor, where the file has one
 *
 * Rows of the table are on the disk (weights/row_lookup.h): they are asked for when a pass begins,
 * and are here, as a rule, before the first layer has got this far. */
#include <math.h>

#include "base/fmath.h"
#include "common/num.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"

enum {
    PER_LAYER_TOKEN = BUFFER_OWN, /* [B][P]: m, and then what the gate multiplies */
    PER_LAYER_PART,               /* [B][P]: p */
    PER_LAYER_GATE                /* [B][P] */
};

/* P is lookup_shape.width. */
typedef struct per_layer_tensors {
    weight *model, *gate, *proj; /* [P][D] twice, [D][P]; NULL: the layer has a factor alone */
    float *norm;                 /* [P] */
    float *factor;               /* [1]; NULL: 1 */
    added_tensors added;
} per_layer_tensors;

static const per_layer_tensors *tensors_of(const model_pass *p, const program_step *s)
{
    return layer_of(p, s)->own;
}

static drey_status bind(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    const int64_t n = s->lookup.width, d = s->n_embd;
    per_layer_tensors *t = bind_own(b, y, sizeof *t);
    TRY(bind_vector_if(b, "layer_output_scale.weight", 1, &t->factor));
    if (n == 0)
        return DREY_OK;
    if (b->layer == 0)
        TRY(bind_looked_up(b, "per_layer_token_embd.weight", n * s->n_layers, s->n_vocab));
    TRY(bind_rows_of(b, "per_layer_model_proj.weight", n * s->n_layers, n * b->layer, n, d,
                     "per_layer_model_proj.weight", &t->model));
    TRY(bind_matrix(b, "inp_gate.weight", n, d, &t->gate));
    TRY(bind_matrix(b, "proj.weight", d, n, &t->proj));
    TRY(bind_whole_vectors(b, "per_layer_proj_norm.weight", n, 1, &t->norm));
    t->added.scale = 1.0f;
    return bind_vector(b, "post_norm.weight", d, &t->added.norm);
}

static drey_status wait(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    return pass_wait_looked_up(p, err);
}

/* m becomes (p sqrt(P) + m) / sqrt(2). */
static void add_part(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    const kernel_table *kernels = p->r->kernels;
    const model_shape *shape = &p->r->layout->shape;
    const int64_t n = shape->lookup.width;
    const int64_t first = (int64_t)(shape->first_layer + s->layer) * n;
    for (int32_t i = from; i < to; i++) {
        float *m = block_row(p, s, PER_LAYER_TOKEN, i), *part = block_row(p, s, PER_LAYER_PART, i);
        pass_looked_up(p, i, 0, first, n, part, thread);
        pass_scale(part, sqrtf((float)n), n);
        pass_scale(m, 1.0f / sqrtf((float)shape->n_embd), n);
        kernels->rmsnorm(m, m, tensors_of(p, s)->norm, n, shape->norm_eps);
        kernels->add(m, part, n);
        pass_scale(m, sqrtf(0.5f), n);
    }
}

static void gate(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    for (int32_t i = from; i < to; i++) {
        float *x = block_row(p, s, PER_LAYER_GATE, i);
        p->r->kernels->geglu(x, x, block_row(p, s, PER_LAYER_TOKEN, i),
                             p->r->layout->shape.lookup.width);
    }
}

static void add(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_add(p, &tensors_of(p, s)->added, from, to);
}

static void multiply(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    for (int32_t i = from; i < to; i++)
        pass_scale(p->r->ws->x + i * pass_embd_ld(p), *tensors_of(p, s)->factor,
                   p->r->layout->shape.n_embd);
}

static void write(program_writer *w)
{
    const per_layer_tensors *t = w->layout->layer[w->layer].own;
    const model_shape *s = &w->layout->shape;
    if (t->model) {
        write_mix(w, wait);
        write_reads(w, BUFFER_WIDE, s->n_embd);
        write_product(w, &(written_product){t->model, PER_LAYER_TOKEN}, 1);
        write_rows(w, add_part);
        write_reads(w, BUFFER_X, s->n_embd);
        write_product(w, &(written_product){t->gate, PER_LAYER_GATE}, 1);
        write_rows(w, gate);
        write_reads(w, PER_LAYER_GATE, s->lookup.width);
        write_product(w, &(written_product){t->proj, BUFFER_Y}, 1);
        write_rows(w, add);
    }
    if (t->factor)
        write_rows(w, multiply);
}

static void needs(buffer_needs *n)
{
    const int64_t width = n->shape->lookup.width;
    const int32_t n_rows = width > 0 ? n->n_rows : 0;
    need_rows(n, PER_LAYER_TOKEN, n_rows, width);
    need_rows(n, PER_LAYER_PART, n_rows, width);
    need_rows(n, PER_LAYER_GATE, n_rows, width);
    need_acts(n, n->n_rows, max_i64(width, n->shape->n_embd), 1);
}

const block_class per_layer_block = {
    .name = "per-layer", .bind = bind, .write = write, .needs = needs};

/* ---- Layers ---- */

static const block_class *const *blocks_of(const model_shape *s, int32_t layer)
{
    static const block_class *const dense[] = {&attention_block, &feed_forward_block,
                                               &per_layer_block, NULL};
    static const block_class *const mixture[] = {&attention_block, &experts_block, &per_layer_block,
                                                 NULL};
    return layer_has_experts(s, layer - s->first_layer) ? mixture : dense;
}

/* A token has a row of its number. */
static void rows_of(const model_pass *p, int32_t row, int32_t token, int64_t *out)
{
    (void)p;
    (void)row;
    *out = token;
}

const arch_layers per_layer_layers = {.blocks = blocks_of, .rows = rows_of};
