/* The target's probabilities of the tokens that it wrote, and of those that it might have
 * written. */
#include "session/logprobs.h"

#include <assert.h>
#include <math.h>

#include "base/fmath.h"
#include "os/float_mode.h"
#include "session/session.h"

/* The logarithm of the sum of exp(logit) over the vocabulary. */
static double log_sum(const drey_session *s, const float *logits)
{
    const kernel_table *kernels = s->engine->kernels;
    int64_t n = s->engine->target.layout.shape.n_vocab;
    float top = logits[kernels->arg_max(logits, n)];
    return (double)top + log_f64((double)kernels->sum_exp(logits, n, top, 1.0f));
}

/* The natural logarithm of a token's probability by logits[n_vocab]. */
static float logprob_of(const drey_session *s, const float *logits, int32_t id)
{
    return (float)((double)logits[id] - log_sum(s, logits));
}

/* The n largest, falling; of equal ones the lower id first. Returns how many there are. */
static int32_t take_top(const float *logits, int32_t n_vocab, int32_t n, drey_logprob *top)
{
    int32_t n_top = 0;
    for (int32_t id = 0; id < n_vocab; id++) {
        float logit = logits[id];
        if (n_top == n && (n == 0 || !(logit > top[n - 1].logprob)))
            continue;
        int32_t at = n_top < n ? n_top++ : n - 1;
        for (; at > 0 && logit > top[at - 1].logprob; at--)
            top[at] = top[at - 1];
        top[at] = (drey_logprob){.id = id, .logprob = logit};
    }
    return n_top;
}

void logprobs_report(const drey_session *s, const float *logits)
{
    const drey_generate_options *o = &s->text.options;
    int32_t id = s->timeline[s->n_timeline - 1];
    if (!o->ignore_eos && tokenizer_is_end(s->engine->config.target->tokenizer, id))
        return;
    drey_logprob top[DREY_MAX_TOP];
    assert(o->n_top >= 0 && o->n_top <= DREY_MAX_TOP);
    int32_t n = take_top(logits, s->engine->target.layout.shape.n_vocab, o->n_top, top);
    double sum = log_sum(s, logits);
    for (int32_t i = 0; i < n; i++)
        top[i].logprob = (float)((double)top[i].logprob - sum);
    const drey_logprob written = {.id = id, .logprob = (float)((double)logits[id] - sum)};
    o->on_logprobs(o->user, &written, top, n);
}

/* ---- Scoring a given text: each token after those before it ---- */

static drey_status score_chunk(drey_session *s, const int32_t *ids, size_t from, size_t n,
                               size_t total, float *logprob, drey_error *err)
{
    pass_row *rows = s->target.ws->rows;
    for (size_t i = 0; i < n; i++)
        rows[i] = (pass_row){.token = ids[from + i], .parent = (int32_t)i - 1};
    TRY(pass_rows(&s->target, rows, (int32_t)n, HEAD_ALL, err));
    kv_commit(&s->target_kv, NULL, (int32_t)n);
    int64_t ld = pass_logits_stride(&s->target);
    for (size_t i = 0; i < n && from + i + 1 < total; i++)
        logprob[from + i] =
            logprob_of(s, s->target.ws->logits + (int64_t)i * ld, ids[from + i + 1]);
    for (size_t i = 0; i < n && from + i + 1 < total; i++)
        if (!isfinite(logprob[from + i]))
            FAIL(err, DREY_ERR_FORMAT,
                 "%s: the scores of token %zu are not finite: the file is damaged, fetch it again",
                 SHOWN_PATH(gguf_part_path(s->engine->config.target->file, 0)), from + i + 1);
    return DREY_OK;
}

static drey_status check(const drey_session *s, const int32_t *ids, size_t n, drey_error *err)
{
    int32_t n_vocab = s->engine->target.layout.shape.n_vocab;
    if (n < 2)
        FAIL(err, DREY_ERR_USAGE, "scoring needs at least two tokens, not %zu", n);
    if (session_reads_input(s) && s->input.n == 0)
        FAIL(err, DREY_ERR_USAGE,
             "the model has an encoder: what its decoder scores depends on an input, and the "
             "session "
             "has none");
    if (n > (size_t)s->engine->config.n_context)
        FAIL(err, DREY_ERR_CONTEXT, "%zu tokens do not fit into a context of %d", n,
             s->engine->config.n_context);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= n_vocab)
            FAIL(err, DREY_ERR_USAGE, "token id %d does not exist; the model has ids 0 to %d",
                 ids[i], n_vocab - 1);
    return DREY_OK;
}

drey_status drey_session_score(drey_session *s, const int32_t *ids, size_t n, float *logprob,
                               drey_error *err)
{
    TRY(check(s, ids, n, err));
    atomic_store(&s->cancel, false);
    float_mode caller = float_mode_enter();
    drey_session_reset(s);
    size_t chunk = (size_t)s->target.ws->limits.max_logit_rows;
    drey_status status = session_read_input(s, err);
    for (size_t from = 0; from < n && status == DREY_OK; from += chunk)
        status = score_chunk(s, ids, from, n - from < chunk ? n - from : chunk, n, logprob, err);
    drey_session_reset(s);
    float_mode_leave(caller);
    /* A cancel during the last pass counts as well: no further window is wanted. */
    if (status == DREY_OK && atomic_load(&s->cancel))
        status = error_set(err, DREY_ERR_CANCELLED, "cancelled");
    return status;
}
