/* Code that several blocks share: see block.h. */
#include "model/block/block.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "model/binder.h"
#include "common/num.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "state/cache_room.h"
#include "state/kv.h"

const block_class *const *layer_blocks(const model_shape *s, int32_t layer)
{
    static const block_class *const dense[] = {&attention_block, &feed_forward_block, NULL};
    static const block_class *const mixture[] = {&attention_block, &experts_block, NULL};
    static const block_class *const reading[] = {&attention_block, &cross_block,
                                                 &feed_forward_block, NULL};
    if (s->arch->layers)
        return s->arch->layers->blocks(s, s->first_layer + layer);
    if (shape_reads(s))
        return reading;
    return layer_has_experts(s, layer) ? mixture : dense;
}

static void add_class(block_list *list, const block_class *class)
{
    for (int32_t i = 0; i < list->n; i++)
        if (list->class[i] == class)
            return;
    assert(list->n < BLOCK_CLASSES);
    list->class[list->n++] = class;
}

block_list list_blocks(const model_shape *s)
{
    block_list list = {.class = {&ends_block}, .n = 1};
    for (int32_t layer = 0; layer < s->n_layers; layer++)
        for (const block_class *const *blocks = layer_blocks(s, layer); *blocks; blocks++)
            add_class(&list, *blocks);
    return list;
}

/* The block that has a layer's state; NULL: none has. That of n-grams comes besides. */
static const block_class *state_block(const model_shape *s, int32_t layer)
{
    const block_class *const *b = layer_blocks(s, layer);
    while (*b && (!(*b)->store || *b == &ngram_block))
        b++;
    return *b;
}

/* The store of this class and these sizes, which is added if there is none. */
static int32_t find_store(cache_spec *spec, const store_class *class, const store_shape *shape)
{
    int32_t i = 0;
    for (; i < spec->n_stores; i++) {
        const store_shape *has = &spec->store[i].shape;
        if (spec->store[i].class == class && has->n_heads == shape->n_heads &&
            has->k_dim == shape->k_dim && has->v_dim == shape->v_dim &&
            has->latent == shape->latent && has->n_key_heads == shape->n_key_heads &&
            has->n_taps == shape->n_taps)
            return i;
    }
    assert(i < CACHE_STORES);
    spec->store[i].class = class;
    spec->store[i].shape = *shape;
    spec->n_stores++;
    return i;
}

static layer_place place_in(cache_spec *spec, const store_class *class, const store_shape *shape)
{
    const int32_t store = find_store(spec, class, shape);
    return (layer_place){store, spec->store[store].shape.n_layers++};
}

static store_shape kv_shape(const attention_shape *a, kv_format format)
{
    return (store_shape){.n_heads = a->n_heads_kv,
                         .k_dim = a->head_dim,
                         .v_dim = a->v_dim,
                         .format = format,
                         .latent = a->latent};
}

static bool attends(const model_shape *s, int32_t layer)
{
    bool has = false;
    for (const block_class *const *b = layer_blocks(s, layer); *b; b++)
        has = has || (*b)->attends;
    return has;
}

/* Places of the layers in stores; the first store has keys and values, if only of no layer. */
static void add_layers(cache_spec *spec, const model_shape *s, kv_format format,
                       layer_layout *layer, layer_place *ngram)
{
    const store_shape first = kv_shape(&s->attention[0], format);
    (void)find_store(spec, &kv_class, &first);
    for (int32_t i = 0; i < s->n_layers; i++) {
        const attention_shape *a = layer_attention(s, i);
        const block_class *block = s->arch ? state_block(s, i) : NULL;
        layer_place kv = {.store = -1}, state = {.store = -1};
        if (s->layer[i].kv_before > 0) {
            kv = layer ? layer[i - s->layer[i].kv_before].kv : kv;
        } else if (a && (!s->arch || attends(s, i))) {
            const store_shape shape = kv_shape(a, format);
            kv = place_in(spec, &kv_class, &shape);
        }
        if (block) {
            store_shape shape = {.format = KV_F32};
            block->store_shape(s, i, &shape);
            state = place_in(spec, block->store, &shape);
        }
        if (s->arch && layer_has_ngrams(s, i)) {
            store_shape shape = {.format = KV_F32};
            ngram_block.store_shape(s, i, &shape);
            *ngram = place_in(spec, ngram_block.store, &shape);
        }
        if (layer) {
            layer[i].kv = kv;
            layer[i].state = state;
        }
    }
}

void place_layers(model_layout *l)
{
    cache_spec spec = {.n_stores = 0};
    add_layers(&spec, &l->shape, KV_F16, l->layer, &l->ngram.state);
}

int32_t model_state_stride(const model_shape *s)
{
    size_t most = 0;
    int32_t stride = STORE_BLOCK;
    store_shape shape = {.format = KV_F32};
    for (int32_t i = 0; i < s->n_layers && shape_has_states(s); i++) {
        const block_class *block = state_block(s, i);
        if (!block)
            continue;
        block->store_shape(s, i, &shape);
        most = max_size(most, block->store->state_bytes(block->store, &shape));
    }
    while ((size_t)stride * (size_t)s->n_embd < 16 * most)
        stride *= 2;
    return stride;
}

cache_spec model_cache_spec(const model_shape *s, kv_format format)
{
    cache_spec spec = {.in_blocks = shape_has_states(s)};
    spec.stride = spec.in_blocks ? s->recurrent.stride : 0;
    layer_place ngram;
    add_layers(&spec, s, format, NULL, &ngram);
    return spec;
}

void block_norm(model_pass *p, const float *norm, const float *bias, int32_t from, int32_t to)
{
    workspace *ws = p->r->ws;
    for (int32_t i = from; i < to; i++)
        pass_norm(p->r, ws->y + i * pass_embd_ld(p), ws->x + i * pass_embd_ld(p), norm, bias);
}

void block_add(const model_pass *p, const added_tensors *t, int32_t from, int32_t to)
{
    const kernel_table *kernels = p->r->kernels;
    const model_shape *s = &p->r->layout->shape;
    int64_t n = s->n_embd;
    for (int32_t i = from; i < to; i++) {
        float *x = p->r->ws->x + i * pass_embd_ld(p), *y = p->r->ws->y + i * pass_embd_ld(p);
        if (t->bias)
            kernels->add(y, t->bias, n);
        if (t->norm)
            kernels->rmsnorm(y, y, t->norm, n, s->norm_eps);
        pass_scale(y, t->scale, n);
        if (s->streams.n > 0)
            continue;
        kernels->add(x, y, n);
        if (t->of_both)
            pass_norm(p->r, x, x, t->of_both, t->of_both_bias);
    }
    if (s->streams.n > 0)
        block_add_to_parts(p, from, to);
}

static void norm_ffn(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_norm(p, layer_of(p, s)->ffn.norm, layer_of(p, s)->ffn.norm_bias, from, to);
}

void block_take_normed(model_pass *p, const program_step *s, int32_t from, int32_t to,
                       int32_t thread)
{
    (void)s;
    (void)thread;
    const workspace_buffer *normed = &p->r->ws->buffer[BUFFER_WIDE];
    for (int32_t i = from; i < to; i++)
        memcpy(p->r->ws->y + i * pass_embd_ld(p), (float *)normed->at + i * normed->ld,
               (size_t)p->r->layout->shape.n_embd * sizeof(float));
}

void block_write_ffn_norm(program_writer *w)
{
    if (w->layout->shape.streams.n == 0)
        write_rows(w, w->layout->layer[w->layer].ffn.parallel ? block_take_normed : norm_ffn);
    write_reads(w, BUFFER_Y, w->layout->shape.n_embd);
}

void block_add_ffn(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_add(p, &layer_of(p, s)->ffn.added, from, to);
}

drey_status block_bind_norm(binder *b, const char *role, float **norm, float **bias)
{
    const model_shape *s = &b->layout->shape;
    char name[64];
    snprintf(name, sizeof name, "%s.weight", role);
    if (!binder_has(b, name) && binder_has(b, role)) /* Falcon H1's ffn_norm */
        snprintf(name, sizeof name, "%s", role);
    TRY(bind_vector(b, name, s->n_embd, norm));
    if (!s->arch->layer_norm)
        return DREY_OK;
    if (shape_has_form(s, FORM_NORMS_UNBIASED)) {
        bind_zeros(b, s->n_embd, bias);
        return DREY_OK;
    }
    snprintf(name, sizeof name, "%s.bias", role);
    return bind_vector(b, name, s->n_embd, bias);
}

drey_status block_bind_sums(binder *b, const char *norm, added_tensors *t)
{
    const model_shape *s = &b->layout->shape;
    t->scale = s->scale.residual;
    return s->arch->norms_sums ? block_bind_norm(b, norm, &t->of_both, &t->of_both_bias) : DREY_OK;
}

/* The norm of what a feed-forward part reads. Of a parallel layer it is attention's, with which the
 * router of the layer before may guess. */
static drey_status bind_ffn_norm(binder *b, layer_layout *y)
{
    const arch *a = b->layout->shape.arch;
    feed_forward_tensors *t = &y->ffn;
    if (a->norms_sums || a->forms & FORM_NORMS_AFTER || b->layout->shape.streams.n > 0)
        return DREY_OK;
    if (!(a->forms & FORM_PARALLEL) || binder_has(b, "ffn_norm.weight"))
        return block_bind_norm(b,
                               a->forms & FORM_ONE_BLOCK ? "attn_norm"
                               : a->post_is_ffn_norm     ? "post_attention_norm"
                                                         : "ffn_norm",
                               &t->norm, &t->norm_bias);
    t->parallel = true;
    t->norm = y->attention.norm;
    t->norm_bias = y->attention.norm_bias;
    return DREY_OK;
}

drey_status block_bind_ffn(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    feed_forward_tensors *t = &y->ffn;
    TRY(bind_ffn_norm(b, y));
    TRY(bind_vector_if(b, "ffn_down.bias", s->n_embd, &t->added.bias));
    if (s->arch->post_norms)
        TRY(bind_vector(b, "post_ffw_norm.weight", s->n_embd, &t->added.norm));
    return block_bind_sums(b, "ffn_norm", &t->added);
}
