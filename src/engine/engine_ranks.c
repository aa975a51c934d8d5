/* Dividing a model's layers between ranks (ranks/ranks.h), and opening rank 0's part. */
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "state/cache_room.h"
#include "state/kept_positions.h"
#include "weights/identity.h"

/* ---- What sessions ask ---- */

static void alone_opened(drey_engine *e, runner *target)
{
    (void)e;
    (void)target;
}

static void alone_closed(drey_engine *e, const text_cache *cache)
{
    (void)e;
    (void)cache;
}

static void alone_copy(drey_engine *e, text_cache *to, text_cache *from, int32_t n)
{
    (void)e;
    cache_copy(to, from, n);
}

static void alone_stepped(drey_engine *e)
{
    (void)e;
}

static int64_t alone_idle_ns(const drey_engine *e)
{
    (void)e;
    return 0;
}

static expert_counts alone_experts(const drey_engine *e)
{
    return weights_count_experts(&e->target.weights);
}

static void led_opened(drey_engine *e, runner *target)
{
    target->remote = &e->ranks->remote;
    ranks_open_cache(e->ranks, target->cache);
}

static void led_closed(drey_engine *e, const text_cache *cache)
{
    ranks_close_cache(e->ranks, cache);
}

static void led_copy(drey_engine *e, text_cache *to, text_cache *from, int32_t n)
{
    if (ranks_copy_cache(e->ranks, to, from, n))
        cache_copy(to, from, n);
}

static void led_stepped(drey_engine *e)
{
    ranks_count(e->ranks, &e->target.weights);
}

static int64_t led_idle_ns(const drey_engine *e)
{
    return e->ranks->wait.idle_ns;
}

/* The others' are as many as their latest messages say. */
static expert_counts led_experts(const drey_engine *e)
{
    expert_counts sum = alone_experts(e);
    for (int32_t i = 1; i < e->ranks->n; i++) {
        const expert_counts *others = &e->ranks->member[i].counts.experts;
        sum.used += others->used;
        sum.read += others->read;
        sum.guessed += others->guessed;
        sum.right += others->right;
    }
    return sum;
}

const engine_team *engine_team_of(const drey_ranks *ranks)
{
    static const engine_team alone = {true,          alone_opened,  alone_closed, alone_copy,
                                      alone_stepped, alone_idle_ns, alone_experts},
                             led = {false,       led_opened,  led_closed, led_copy,
                                    led_stepped, led_idle_ns, led_experts};
    return ranks ? &led : &alone;
}

/* ---- Opening ---- */

size_t engine_ranks_bytes(const drey_engine *e)
{
    const engine_config *c = &e->config;
    int32_t rows = max_i32(max_i32(c->prompt_chunk, RANKS_USUAL_ROWS),
                           max_i32(c->drafted.nodes, e->config.part.tree_nodes) + 1);
    bool is_part = e->ranks || e->config.part.is_part;
    size_t paths = (size_t)c->n_sessions * (size_t)rows * sizeof(int32_t);
    return is_part
               ? 2 * ranks_room_bytes(c->n_sessions, rows, shape_width(&c->target->shape)) + paths
               : 0;
}

/* Clears what rank 0 alone has, and what no run with ranks has. */
static void clear_rank_0(drey_engine_options *o)
{
    o->ranks = NULL;
    o->rank_layers = NULL;
    o->n_rank_layers = 0;
    o->kv_folder = NULL;
    o->kv_memory_bytes = 0;
}

drey_engine_options engine_part_options(const drey_engine_options *options)
{
    enum { ANY_CONTEXT = 64 };
    drey_engine_options o = engine_options_alone(options);
    clear_rank_0(&o);
    o.prefixes = NULL;
    o.n_sessions = 1;
    o.n_context = ANY_CONTEXT;
    o.trace_spans = 0;
    o.research = NULL;
    return o;
}

engine_part engine_join_options(drey_engine_options *options, const ranks_join *join)
{
    options->n_context = join->n_context;
    options->n_sessions = join->n_sessions;
    options->prompt_chunk = join->max_rows;
    options->kv = (drey_kv)join->kv;
    return (engine_part){.is_part = true,
                         .first = join->first,
                         .n_layers = join->n_layers,
                         .tree_nodes = join->tree_nodes,
                         .logit_rows = join->max_rows}; /* of rank 0; here without memory */
}

/* Makes the message: the needs of the least budget besides the target's own cache, and of a mixture
 * its weights. */
drey_status engine_rank_hello(const drey_engine_options *options, ranks_hello *hello,
                              drey_error *err)
{
    drey_planner *p;
    drey_plan plan;
    drey_engine_options alone = *options;
    clear_rank_0(&alone);
    *hello = (ranks_hello){.host = ""};
    TRY(model_identity(options->target->file, &hello->identity, err));
    TRY(drey_planner_open(&p, &alone, err));
    drey_status status = drey_planner_make(p, DREY_MEMORY_UNLIMITED, NULL, &plan, err);
    uint64_t layers = plan.kv_bytes - plan.draft_kv_bytes + plan_staying_bytes(&p->engine.inputs);
    hello->budget_bytes = p->engine.budget_bytes;
    drey_planner_close(&p);
    hello->fixed_bytes = plan.smallest_budget_bytes - min_u64(plan.smallest_budget_bytes, layers);
    snprintf(hello->version, sizeof hello->version, "%s", drey_version());
    return status;
}

/* "blk.N.": N, or -1. */
static int32_t layer_of(const gguf_tensor *t)
{
    char *end;
    if (strncmp(t->name, "blk.", 4) != 0)
        return -1;
    long layer = strtol(t->name + 4, &end, 10);
    return *end == '.' && end > t->name + 4 && layer >= 0 && layer < INT32_MAX ? (int32_t)layer
                                                                               : -1;
}

/* Returns the bytes of each layer with its caches; and of the matrix that says the next token. */
static uint64_t measure(const drey_engine *e, uint64_t *layer_bytes)
{
    const gguf *g = e->config.target->file;
    model_shape one = e->config.target->shape;
    int32_t n = one.n_layers;
    one.n_layers = 1;
    for (int32_t i = 0; i < n; i++) {
        one.first_layer = i;
        const cache_spec spec = model_cache_spec(&one, engine_kv_format(e));
        layer_bytes[i] =
            (uint64_t)e->config.n_sessions * cache_bytes(&spec, e->config.n_context, 0);
    }
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++) {
        const gguf_tensor *t = gguf_tensor_at(g, i);
        int32_t layer = layer_of(t);
        if (layer >= 0 && layer < n)
            layer_bytes[layer] += t->n_bytes;
    }
    const gguf_tensor *head = model_head_tensor(g);
    return head ? head->n_bytes : 0;
}

static uint64_t room_of(const ranks_hello *h, uint64_t head_bytes)
{
    uint64_t fixed = h->fixed_bytes + head_bytes;
    if (h->budget_bytes == DREY_MEMORY_UNLIMITED)
        return UINT64_MAX;
    return h->budget_bytes > fixed ? h->budget_bytes - fixed : 0;
}

/* Checks the division in the options. */
static drey_status check_division(const config_division *d, int32_t n, int32_t n_layers,
                                  drey_error *err)
{
    int64_t sum = 0;
    if (d->n != n)
        FAIL(err, DREY_ERR_USAGE,
             "the layers of %d ranks are given, and there are %d: give a number for each", d->n, n);
    for (int32_t i = 0; i < n; sum += d->layers[i], i++)
        if (d->layers[i] < (i > 0))
            FAIL(err, DREY_ERR_USAGE,
                 "rank %d cannot have %d layers: rank 0 has 0 or more, each other one 1 or more", i,
                 d->layers[i]);
    if (sum != n_layers)
        FAIL(
            err, DREY_ERR_USAGE,
            "the ranks' layers are %lld together, and the model has %d: give numbers with that sum",
            (long long)sum, n_layers);
    return DREY_OK;
}

/* Returns what rank i has for layers. A mixture's are divided by memory alone: each rank then has
 * the same share of its experts in slots, and what has to stay of a layer finds room where it finds
 * room at all. */
static ranks_means means_of(const drey_engine *e, int32_t i, uint64_t head_bytes)
{
    const ranks_hello *h = &e->ranks->member[i].hello;
    uint64_t room = room_of(h, i == 0 ? head_bytes : 0);
    bool mixture = e->config.target->shape.experts.router.n_experts > 0;
    return (ranks_means){room, mixture ? (double)room : h->disk_bytes_per_s};
}

/* Divides by what the ranks have. */
static drey_status divide(const drey_engine *e, int32_t *n_of, drey_error *err)
{
    const drey_ranks *r = e->ranks;
    int32_t n_layers = e->config.target->shape.n_layers;
    if (r->n > n_layers)
        FAIL(err, DREY_ERR_USAGE, "%d ranks are more than the model has layers (%d): start fewer",
             r->n, n_layers);
    uint64_t *layer_bytes = malloc((size_t)n_layers * sizeof *layer_bytes);
    ranks_means means[RANKS_MOST];
    if (!layer_bytes)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for an engine");
    uint64_t head = measure(e, layer_bytes);
    for (int32_t i = 0; i < r->n; i++)
        means[i] = means_of(e, i, head);
    ranks_divide(layer_bytes, n_layers, means, r->n, n_of);
    free(layer_bytes);
    return DREY_OK;
}

drey_status engine_divide_ranks(drey_engine *e, drey_error *err)
{
    drey_ranks *r = e->ranks;
    const config_division *given = &e->config.division;
    int32_t n_of[RANKS_MOST], first = 0;
    if (r->n < 2)
        FAIL(err, DREY_ERR_USAGE, "one rank computes all layers itself: open the engine without");
    if (given->n) {
        TRY(check_division(given, r->n, e->config.target->shape.n_layers, err));
        memcpy(n_of, given->layers, sizeof n_of);
    } else {
        TRY(divide(e, n_of, err));
    }
    for (int32_t i = 0; i < r->n; first += n_of[i], i++) {
        r->member[i].first = first;
        r->member[i].n_layers = n_of[i];
    }
    e->config.part.is_part = true;
    e->config.part.n_layers = n_of[0];
    return DREY_OK;
}

drey_status engine_meet_ranks(drey_engine *e, const drey_engine_options *options, drey_error *err)
{
    drey_ranks *r = e->ranks;
    ranks_hello *own = &r->member[0].hello;
    TRY(engine_rank_hello(options, own, err));
    memcpy(own->host, r->host, sizeof own->host);
    own->disk_bytes_per_s = r->disk_bytes_per_s;
    TRY(ranks_hear(r, own->identity, err));
    return engine_divide_ranks(e, err);
}

drey_status drey_engine_check(const drey_engine *e, drey_error *err)
{
    const drey_ranks *r = e->ranks;
    if (!r || r->failed.code == DREY_OK)
        return DREY_OK;
    if (err)
        *err = r->failed;
    return r->failed.code;
}

ranks_join engine_ranks_join(const drey_engine *e)
{
    const plan_result *p = &e->plan;
    return (ranks_join){.n_context = e->config.n_context,
                        .n_sessions = e->config.n_sessions,
                        .tree_nodes = p->tree_nodes,
                        .max_rows = p->max_rows,
                        .kv = (int32_t)e->config.memory.kv};
}

ranks_ready engine_rank_ready(const drey_engine *e)
{
    const drey_plan *t = &e->plan.report;
    return (ranks_ready){t->pinned_bytes, t->streamed_bytes_per_pass, t->expert_bytes,
                         e->inputs.model[PLAN_TARGET].experts.token_bytes};
}

drey_status engine_join_ranks(drey_engine *e, drey_error *err)
{
    drey_ranks *r = e->ranks;
    const plan_result *p = &e->plan;
    const ranks_join join = engine_ranks_join(e);
    r->member[0].ready = engine_rank_ready(e);
    TRY(ranks_join_all(r, &join, err));
    return ranks_make_room(r, e->config.n_sessions, p->max_rows,
                           shape_width(&e->target.layout.shape), err);
}

void engine_add_ranks_cost(drey_engine *e)
{
    const drey_ranks *r = e->ranks;
    const drey_plan *own = &e->plan.report;
    uint64_t step_bytes = plan_step_bytes(&e->inputs, &e->plan);
    mixture_bytes all = {0};
    if (!r)
        return;
    for (int32_t i = 0; i < r->n; i++) {
        const ranks_ready *ready = &r->member[i].ready;
        all.read += ready->streamed_bytes;
        all.token += ready->token_bytes;
        all.pinned += ready->pinned_bytes;
    }
    if (all.token)
        plan_cost_of_mixture(&e->inputs, &all, step_bytes, &e->cost);
    else
        cost_init(&e->cost, own->target_bytes, all.read, step_bytes, own->ring_bytes);
}
