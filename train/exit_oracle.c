/* Where an oracle would let tokens leave: see drey_exit_oracle_of in drey/train.h. */
#include "common/num.h"
#include "os/float_mode.h"
#include "train/exit_samples.h"

/* The text of one prompt, looked at after each layer of the second half. */
static drey_status gather(exit_samples *samples, drey_engine *e, const drey_train_prompt *prompt,
                          int32_t n_predict, drey_error *err)
{
    exit_gatherer g = {.samples = samples};
    TRY(drey_session_open(&g.session, e, err));
    drey_status status = exit_gather(&g, prompt, 0, n_predict, err);
    drey_session_close(&g.session);
    return status;
}

static void count(const exit_samples *s, drey_exit_oracle *out)
{
    *out = (drey_exit_oracle){.n_layers = s->n_layers, .n_tokens = s->n};
    int64_t layers = 0;
    for (int32_t i = 0; i < s->n; i++) {
        int32_t layer = exit_final_layer(s, i);
        out->at_layer[layer - 1]++;
        layers += layer;
    }
    out->layers_per_token = s->n > 0 ? (double)layers / s->n : s->n_layers;
}

static drey_status look(exit_samples *samples, arena *memory, drey_engine_options *options,
                        const drey_train_prompt *prompt, int32_t n_predict, drey_error *err)
{
    int32_t n_layers = options->target->shape.n_layers;
    size_t bytes = exit_samples_bytes(n_layers, n_predict);
    const engine_tuning tuning = {
        .least_logit_rows = EXIT_LOOK_ROWS, .deferred_rows = 1, .more_bytes = bytes};
    drey_engine *e = NULL;
    TRY(arena_init(memory, bytes, false, err));
    exit_samples_init(samples, n_layers, n_predict, memory);
    TRY(arena_check(memory, err));
    TRY(engine_open(&e, options, &tuning, err));
    drey_status status = gather(samples, e, prompt, n_predict, err);
    drey_engine_close(&e);
    return status;
}

drey_status drey_exit_oracle_of(const drey_engine_options *engine, const drey_train_prompt *prompt,
                                int32_t n_predict, drey_exit_oracle *out, drey_error *err)
{
    arena memory = {0};
    exit_samples samples;
    drey_engine_options options = *engine;
    if (!engine->target)
        FAIL(err, DREY_ERR_USAGE, "no target model was given");
    int32_t n_layers = engine->target->shape.n_layers;
    if (n_layers > EXIT_LAYERS || n_layers < 2)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "a model of %d layers cannot be looked into (2 to %d layers)", n_layers, EXIT_LAYERS);
    if (prompt->n_ids < 1 || prompt->n_ids > DREY_MAX_CONTEXT / 2 || n_predict < 1 ||
        n_predict > DREY_MAX_CONTEXT / 2)
        FAIL(err, DREY_ERR_USAGE, "the prompt or the text has no tokens, or far too many");
    options.n_context = (int32_t)prompt->n_ids + n_predict;
    options.n_sessions = 1;
    options.exit = DREY_EXIT_OFF;
    float_mode caller = float_mode_enter();
    drey_status status = look(&samples, &memory, &options, prompt, n_predict, err);
    if (status == DREY_OK)
        count(&samples, out);
    float_mode_leave(caller);
    arena_free(&memory);
    return status;
}
