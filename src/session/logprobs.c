/* The target's probabilities of the tokens that it wrote, of those that it might have written, and
 * of the tokens of a given text: many per pass by the whole model, one per pass with early exits,
 * which end each pass elsewhere. */
#include "session/logprobs.h"

#include <assert.h>
#include <math.h>

#include "base/fmath.h"
#include "os/float_mode.h"
#include "policy/policy.h"
#include "session/session.h"

/* The logarithm of the sum of exp(logit) over the vocabulary. */
static double log_sum(const drey_session *s, const float *logits)
{
    const kernel_table *kernels = s->engine->kernels;
    int64_t n = s->engine->target.layout.shape.n_vocab;
    float top = logits[kernels->arg_max(logits, n)];
    return (double)top + log_f64((double)kernels->sum_exp(logits, n, top, 1.0f));
}

float logprob_of(const drey_session *s, const float *logits, int32_t id)
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

/* ---- A given text: each token after those before it ---- */

static drey_status check(const drey_session *s, const int32_t *ids, size_t n, drey_error *err)
{
    int32_t n_vocab = s->engine->target.layout.shape.n_vocab;
    if (n < 2)
        FAIL(err, DREY_ERR_USAGE, "scoring needs at least two tokens, not %zu", n);
    if (session_reads_input(s) && s->input.n == 0)
        FAIL(err, DREY_ERR_USAGE,
             "the model has an encoder: what its decoder scores depends on an input, and the "
             "session has none");
    if (n > (size_t)s->engine->config.n_context)
        FAIL(err, DREY_ERR_CONTEXT, "%zu tokens do not fit into a context of %d", n,
             s->engine->config.n_context);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= n_vocab)
            FAIL(err, DREY_ERR_USAGE, "token id %d does not exist; the model has ids 0 to %d",
                 ids[i], n_vocab - 1);
    return DREY_OK;
}

static drey_status check_score(const drey_session *s, float logprob, size_t i, drey_error *err)
{
    if (!isfinite(logprob))
        FAIL(err, DREY_ERR_FORMAT,
             "%s: the scores of token %zu are not finite: the file is damaged, fetch it again",
             SHOWN_PATH(gguf_part_path(s->engine->config.target->file, 0)), i + 1);
    return DREY_OK;
}

/* Where scores go; one of the two is NULL. */
typedef struct score_places {
    float *logprob;
    drey_exit_score *score;
} score_places;

static float take_whole(drey_session *s, const score_places *to, size_t i, const float *logits,
                        int32_t next)
{
    float logprob = logprob_of(s, logits, next);
    if (to->logprob) {
        to->logprob[i] = logprob;
    } else {
        to->score[i].whole = logprob;
        to->score[i].whole_top = sampler_choose(&s->sampler, logits, (int64_t)i + 1);
    }
    return logprob;
}

static drey_status score_chunk(drey_session *s, const int32_t *ids, size_t from, size_t n,
                               size_t total, const score_places *to, drey_error *err)
{
    pass_row *rows = s->target.ws->rows;
    for (size_t i = 0; i < n; i++)
        rows[i] = (pass_row){.token = ids[from + i], .parent = (int32_t)i - 1};
    TRY(pass_rows(&s->target, rows, (int32_t)n, HEAD_ALL, err));
    kv_commit(&s->target_kv, NULL, (int32_t)n);
    int64_t ld = pass_logits_stride(&s->target);
    for (size_t i = 0; i < n && from + i + 1 < total; i++) {
        const float *logits = s->target.ws->logits + (int64_t)i * ld;
        float logprob = take_whole(s, to, from + i, logits, ids[from + i + 1]);
        TRY(check_score(s, logprob, from + i, err));
    }
    return DREY_OK;
}

static drey_status score_whole(drey_session *s, const int32_t *ids, size_t n,
                               const score_places *to, drey_error *err)
{
    drey_session_reset(s);
    size_t chunk = (size_t)s->target.ws->limits.max_logit_rows;
    drey_status status = session_read_input(s, err);
    for (size_t from = 0; from < n && status == DREY_OK; from += chunk)
        status = score_chunk(s, ids, from, n - from < chunk ? n - from : chunk, n, to, err);
    drey_session_reset(s);
    return status;
}

/* A cancel during the last pass counts as well: no further window is wanted. */
static drey_status check_cancel(const drey_session *s, drey_error *err)
{
    if (atomic_load(&s->cancel))
        FAIL(err, DREY_ERR_CANCELLED, "cancelled");
    return DREY_OK;
}

drey_status drey_session_score(drey_session *s, const int32_t *ids, size_t n, float *logprob,
                               drey_error *err)
{
    TRY(check(s, ids, n, err));
    atomic_store(&s->cancel, false);
    float_mode caller = float_mode_enter();
    drey_status status = score_whole(s, ids, n, &(score_places){.logprob = logprob}, err);
    float_mode_leave(caller);
    return status == DREY_OK ? check_cancel(s, err) : status;
}

/* ---- The same with early exits ---- */

void forced_take(drey_session *s, const pass_group *group)
{
    const forced_text *f = s->text.forced;
    int32_t i = s->n_timeline - 1, row = s->row_of[0];
    bool stopped = session_pass_stopped(s);
    const float *logits = stopped ? s->observer->class->logits(s, row)
                                  : group->logits + row * pass_logits_stride(&s->target);
    assert(s->accepted.n_path == 0);
    drey_exit_score *to = &f->score[i];
    to->early = logprob_of(s, logits, f->ids[i + 1]);
    to->early_top = s->accepted.next;
    to->n_layers = stopped ? s->observer->stopped : s->engine->target.layout.shape.n_layers;
    s->accepted.next = f->ids[i + 1];
}

static drey_status check_exits(const drey_session *s, drey_error *err)
{
    const engine_config *c = &s->engine->config;
    if (c->exit != DREY_EXIT_FAST || (c->policy && !c->policy->alone))
        FAIL(err, DREY_ERR_USAGE,
             "scores with early exits are those of fast exits and one token per pass: open the "
             "engine with exit fast, and with a drafter the policy single");
    if (session_reads_input(s))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model has an encoder, and its decoder's texts are not scored with early exits; "
             "score it without them");
    return DREY_OK;
}

/* The weights have been read: the first token is a turn's, as all are. */
static drey_status score_early(drey_session *s, const int32_t *ids, size_t n,
                               drey_exit_score *score, drey_error *err)
{
    const forced_text given = {ids, score};
    drey_generate_options o;
    drey_generate_options_init(&o);
    o.n_predict = (int32_t)n - 1;
    o.ignore_eos = true;
    TRY(drey_session_sync(s, ids, 1, NULL, err));
    TRY(drey_session_begin(s, &o, NULL, err));
    s->text.forced = &given;
    drey_status status = DREY_OK;
    for (bool done = false; status == DREY_OK && !done;)
        status = drey_session_step(s, &done, err);
    session_end(s, DREY_FINISH_ERROR);
    for (size_t i = 0; i + 1 < n && status == DREY_OK; i++)
        status = check_score(s, score[i].early, i, err);
    return status;
}

drey_status drey_session_score_exits(drey_session *s, const int32_t *ids, size_t n,
                                     drey_exit_score *score, drey_error *err)
{
    TRY(check_exits(s, err));
    TRY(check(s, ids, n, err));
    drey_session_end(s);
    atomic_store(&s->cancel, false);
    TRY(session_set_sampling(s, &(drey_sampling){.top_p = 1}, err));
    float_mode caller = float_mode_enter();
    drey_status status = score_whole(s, ids, n, &(score_places){.score = score}, err);
    float_mode_leave(caller);
    if (status == DREY_OK)
        status = check_cancel(s, err);
    if (status == DREY_OK)
        status = score_early(s, ids, n, score, err);
    drey_session_reset(s);
    return status == DREY_OK ? check_cancel(s, err) : status;
}
