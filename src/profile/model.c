/* How fast a model runs here: prefill, decoding, and a pass over n rows, t(n) (DESIGN, "Verify
 * pass"). */
#include <stdlib.h>

#include "engine/engine.h"
#include "os/clock.h"

enum { MOST_ROWS = 64 };
static const int32_t widths[] = {1, 2, 4, 8, 16, 32, 64};
enum { N_WIDTHS = sizeof widths / sizeof *widths };

/* Any tokens do: the work does not depend on them. */
static int32_t some_token(const drey_session *s, int64_t i)
{
    return (int32_t)((i * 7919 + 13) % s->engine->target.layout.shape.n_vocab);
}

/* A pass over n rows in a chain with logits for all, dropped afterwards. */
static drey_status time_pass(drey_session *s, int32_t n, double *best, drey_error *err)
{
    forward_row rows[MOST_ROWS];
    for (int32_t i = 0; i < n; i++)
        rows[i] = (forward_row){.token = some_token(s, i), .parent = i - 1};
    for (int i = 0; i < 3; i++) {
        double start = clock_s();
        TRY(forward(&s->target, rows, n, HEAD_ALL, err));
        double t = clock_s() - start;
        *best = i == 0 || t < *best ? t : *best;
        kv_truncate(&s->target_kv, s->target_kv.n_committed);
    }
    return DREY_OK;
}

static drey_status time_decode(drey_session *s, int32_t n, double *seconds, drey_error *err)
{
    double start = clock_s();
    for (int32_t i = 0; i < n; i++) {
        forward_row row = {.token = some_token(s, i), .parent = -1};
        TRY(forward(&s->target, &row, 1, HEAD_LAST, err));
        kv_commit(&s->target_kv, NULL, 1);
    }
    *seconds = clock_s() - start;
    return DREY_OK;
}

static drey_status time_prompt(drey_session *s, int32_t n, double *seconds, drey_error *err)
{
    int32_t *tokens = s->timeline;
    for (int32_t i = 0; i < n; i++)
        tokens[i] = some_token(s, i);
    double start = clock_s();
    TRY(forward_prompt(&s->target, tokens, n, s->engine->plan.chunk, NULL, NULL, err));
    *seconds = clock_s() - start;
    return DREY_OK;
}

static drey_status measure(drey_session *s, int32_t n_prompt, int32_t n_decode,
                           drey_model_report *r, drey_error *err)
{
    double seconds;
    TRY(time_prompt(s, 1, &seconds, err)); /* loads the weights */
    kv_truncate(&s->target_kv, 0);
    TRY(time_prompt(s, n_prompt, &seconds, err));
    r->prefill_tokens_per_s = n_prompt / seconds;
    kv_truncate(&s->target_kv, 0);
    TRY(time_decode(s, n_decode, &seconds, err));
    r->decode_tokens_per_s = n_decode / seconds;
    for (int i = 0; i < N_WIDTHS; i++) {
        r->rows[i] = widths[i];
        TRY(time_pass(s, widths[i], &r->pass_s[i], err));
        r->n_points = i + 1;
    }
    return DREY_OK;
}

drey_status drey_bench_model(const drey_engine_options *options, int32_t n_prompt, int32_t n_decode,
                             drey_model_report *report, drey_error *err)
{
    *report = (drey_model_report){0};
    if (n_prompt < 1 || n_decode < 1)
        FAIL(err, DREY_ERR_USAGE, "a measurement needs at least one token of prompt and of text");
    drey_engine_options o = *options;
    o.drafter = DREY_DRAFTER_NONE;
    o.draft = NULL;
    o.policy = DREY_POLICY_NONE;
    int32_t longest = n_prompt > n_decode ? n_prompt : n_decode;
    o.n_context = longest + MOST_ROWS + 1;
    if (o.prompt_chunk && o.prompt_chunk < MOST_ROWS)
        o.prompt_chunk = MOST_ROWS;
    drey_engine *e = NULL;
    drey_session *s = NULL;
    drey_status status = engine_open(&e, &o, &(engine_tuning){.least_logit_rows = MOST_ROWS}, err);
    if (status == DREY_OK)
        status = drey_session_open(&s, e, err);
    if (status == DREY_OK)
        status = measure(s, n_prompt, n_decode, report, err);
    drey_session_close(&s);
    drey_engine_close(&e);
    return status;
}
