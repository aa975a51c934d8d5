/* Scoring a given text: the log-probability of each token after those before it. */
#include <math.h>

#include "session/session.h"
#include "os/float_mode.h"

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
                 SHOWN_PATH(gguf_part_path(s->engine->options.target->file, 0)), from + i + 1);
    return DREY_OK;
}

static drey_status check(const drey_session *s, const int32_t *ids, size_t n, drey_error *err)
{
    int32_t n_vocab = s->engine->target.layout.shape.n_vocab;
    if (n < 2)
        FAIL(err, DREY_ERR_USAGE, "scoring needs at least two tokens, not %zu", n);
    if (n > (size_t)s->engine->options.n_context)
        FAIL(err, DREY_ERR_CONTEXT, "%zu tokens do not fit into a context of %d", n,
             s->engine->options.n_context);
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
    drey_status status = DREY_OK;
    for (size_t from = 0; from < n && status == DREY_OK; from += chunk)
        status = score_chunk(s, ids, from, n - from < chunk ? n - from : chunk, n, logprob, err);
    drey_session_reset(s);
    float_mode_leave(caller);
    /* Nothing asks behind the last pass, but whoever cancelled wants no further window either. */
    if (status == DREY_OK && atomic_load(&s->cancel))
        status = error_set(err, DREY_ERR_CANCELLED, "cancelled");
    return status;
}
