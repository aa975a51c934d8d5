/* Records which experts the texts of a mixture use: see drey_tune_routes. The target writes alone,
 * so that each pass has one row, as the distances mean it; what prompts use is not counted. */
#include <stdlib.h>

#include "common/num.h"
#include "model/layout.h"
#include "model/workspace.h"
#include "os/clock.h"
#include "tune/alone.h"
#include "tune/route_log.h"

enum { TEXT_TOKENS = 64, MOST_TOKENS = 512 };
static const double most_s = 60; /* no further text is begun after that */

typedef struct tuner {
    drey_session *session;
    const drey_tune_options *tune;
    route_log log;
    arena memory;
    int32_t n_prompt; /* prompt tokens of the present text */
    int64_t n_tokens; /* written ones that were counted */
} tuner;

static bool see(void *user, const model_pass *p, int32_t row, int32_t *expert)
{
    tuner *t = user;
    const model_shape *s = &p->r->layout->shape;
    if (p->r->ws->position[row] < t->n_prompt)
        return false;
    route_log_add(&t->log, p->layer, expert, s->experts.router.n_used);
    t->n_tokens += p->layer == shape_first_mixture(s);
    return false;
}

static int32_t text_tokens(const drey_tune_options *tune)
{
    return tune->n_predict ? tune->n_predict : TEXT_TOKENS;
}

static drey_status write_text(tuner *t, const drey_tune_prompt *prompt, drey_error *err)
{
    drey_generate_options o;
    drey_generate_options_init(&o);
    o.n_predict = text_tokens(t->tune);
    TRY(drey_session_sync(t->session, prompt->ids, prompt->n, NULL, err));
    TRY(drey_session_begin(t->session, &o, NULL, err));
    t->n_prompt = (int32_t)prompt->n;
    for (bool done = false; !done;)
        TRY(drey_session_step(t->session, &done, err));
    return DREY_OK;
}

static drey_status write_texts(tuner *t, drey_error *err)
{
    double start = clock_s();
    for (int32_t i = 0; i < t->tune->n_prompts && t->n_tokens < MOST_TOKENS &&
                        (i == 0 || clock_s() - start < most_s);
         i++)
        TRY(write_text(t, &t->tune->prompts[i], err));
    return DREY_OK;
}

static drey_engine_options options_for(const drey_engine_options *options,
                                       const drey_tune_options *tune)
{
    drey_engine_options o = engine_options_alone(options);
    size_t longest = 0;
    for (int32_t i = 0; i < tune->n_prompts; i++)
        longest = max_size(longest, tune->prompts[i].n);
    o.n_context = (int32_t)min_size(longest, INT32_MAX / 2) + text_tokens(tune) + 1;
    return o;
}

static drey_status measure(tuner *t, const drey_engine_options *options, drey_routes *routes,
                           drey_error *err)
{
    const model_shape *shape = &options->target->shape;
    const router_shape *router = &shape->experts.router;
    size_t bytes = route_log_bytes(shape->n_layers, router->n_experts);
    const engine_hooks hooks = {.more_bytes = bytes, .route = {.see = see, .user = t}};
    drey_engine *e = NULL;
    TRY(arena_init(&t->memory, bytes, false, err));
    route_log_init(&t->log, shape->n_layers, router->n_experts, routes->distance, &t->memory);
    TRY(arena_check(&t->memory, err));
    drey_status status = alone_open(&e, &t->session, options_for(options, t->tune), hooks, 1, err);
    if (status == DREY_OK)
        status = write_texts(t, err);
    alone_close(&e, &t->session);
    return status;
}

drey_status drey_tune_routes(const drey_engine_options *options, const drey_tune_options *tune,
                             drey_routes *routes, drey_error *err)
{
    *routes = (drey_routes){.n_tokens = 0};
    drey_experts experts;
    if (!options->target || !drey_model_experts(options->target, &experts))
        FAIL(err, DREY_ERR_USAGE, "the target is no mixture of experts: it has no routes");
    if (tune->n_prompts < 1 || tune->n_predict < 0 || tune->n_predict > DREY_MAX_CONTEXT / 2)
        FAIL(err, DREY_ERR_USAGE, "there is no prompt, or no such number of tokens");
    if (tune->stage)
        tune->stage(tune->user, "which experts its texts use");
    tuner t = {.tune = tune};
    drey_status status = measure(&t, options, routes, err);
    arena_free(&t.memory);
    routes->n_experts = experts.n_experts;
    routes->n_tokens = t.n_tokens;
    if (status == DREY_OK && !drey_routes_are_sound(routes))
        FAIL(err, DREY_ERR_USAGE, "every text ended with its first token: give other prompts");
    return status;
}
