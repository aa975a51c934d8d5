/* The target's probabilities of the tokens that it wrote, of those that it might have written, and
 * of the tokens of a given text: many per pass by the whole model, one per pass with early exits,
 * which end each pass elsewhere. And a given text's states, as vectors. */
#include "session/logprobs.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/fmath.h"
#include "os/float_mode.h"
#include "session/session.h"
#include "state/cache.h"
#include "text/tokenizer.h"

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

/* The place of the timeline's last token; the grammar has not read it yet. */
static void report_shares(drey_session *s, const float *logits, drey_logprob *written)
{
    const drey_generate_options *o = &s->text.options;
    drey_logprob top[DREY_MAX_TOP];
    int32_t now = o->grammar ? grammar_now(o->grammar) : 0;
    const sampler_context place = {.position = s->n_timeline - 1, .at = {o->grammar, &now}};
    int32_t n = sampler_shares_at(&s->sampler, logits, &place, written, top, o->n_top);
    o->on_logprobs(o->user, written, top, n);
}

/* Receiver of probabilities. */
typedef struct listener {
    drey_logprobs_fn *call;
    void *user;
    int32_t n_top;
} listener;

/* Returns the token's. */
static float report(const drey_session *s, const float *logits, int32_t id, const listener *to)
{
    drey_logprob top[DREY_MAX_TOP];
    assert(to->n_top >= 0 && to->n_top <= DREY_MAX_TOP);
    int32_t n = take_top(logits, s->engine->target.layout.shape.n_vocab, to->n_top, top);
    double sum = log_sum(s, logits);
    for (int32_t i = 0; i < n; i++)
        top[i].logprob = (float)((double)top[i].logprob - sum);
    const drey_logprob written = {.id = id, .logprob = (float)((double)logits[id] - sum)};
    to->call(to->user, &written, top, n);
    return written.logprob;
}

void logprobs_report(drey_session *s, const float *logits)
{
    const drey_generate_options *o = &s->text.options;
    int32_t id = s->timeline[s->n_timeline - 1];
    assert(o->n_top >= 0 && o->n_top <= DREY_MAX_TOP);
    if (!o->ignore_eos && tokenizer_is_end(s->engine->config.target->tokenizer, id))
        return;
    if (o->after_filters)
        report_shares(s, logits, &(drey_logprob){.id = id});
    else
        report(s, logits, id, &(listener){o->on_logprobs, o->user, o->n_top});
}

/* ---- A given text: each token after those before it ---- */

static drey_status check_text(const drey_session *s, const int32_t *ids, size_t n, drey_error *err)
{
    int32_t n_vocab = s->engine->target.layout.shape.n_vocab;
    if (n > (size_t)s->engine->config.n_context)
        FAIL_HINT(err, DREY_ERR_CONTEXT, DREY_HINT_N_CONTEXT,
                  "%zu tokens do not fit into a context of %d; shorten the text or take a larger "
                  "context",
                  n, s->engine->config.n_context);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= n_vocab)
            FAIL(err, DREY_ERR_USAGE, "token id %d does not exist; the model has ids 0 to %d",
                 ids[i], n_vocab - 1);
    return DREY_OK;
}

static drey_status check(const drey_session *s, const int32_t *ids, size_t n, drey_error *err)
{
    if (n < 2)
        FAIL(err, DREY_ERR_USAGE, "scoring needs at least two tokens, not %zu", n);
    if (session_reads_input(s) && s->input.n == 0)
        FAIL(err, DREY_ERR_USAGE,
             "the model has an encoder: what its decoder scores depends on an input, and the "
             "session has none");
    return check_text(s, ids, n, err);
}

static drey_status check_score(const drey_session *s, float logprob, size_t i, drey_error *err)
{
    if (!isfinite(logprob))
        FAIL(err, DREY_ERR_FORMAT,
             "%s: the scores of token %zu are not finite: the file is damaged, fetch it again",
             SHOWN_PATH(gguf_shard_path(s->engine->config.target->file, 0)), i + 1);
    return DREY_OK;
}

/* Destination of scores; one of the three is not NULL. */
typedef struct score_places {
    float *logprob;
    drey_exit_score *score;
    const listener *listener;
} score_places;

static float take_whole(drey_session *s, const score_places *to, size_t i, const float *logits,
                        int32_t next)
{
    if (to->listener)
        return report(s, logits, next, to->listener);
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
                               const score_places *to, drey_error *err)
{
    pass_row *rows = s->target.ws->rows;
    for (size_t i = 0; i < n; i++)
        rows[i] = (pass_row){.token = ids[from + i], .parent = (int32_t)i - 1};
    TRY(pass_rows(&s->target, rows, (int32_t)n, HEAD_ALL, err));
    cache_commit(&s->target_cache, NULL, (int32_t)n);
    int64_t ld = pass_logits_stride(&s->target);
    for (size_t i = 0; i < n; i++) {
        const float *logits = s->target.ws->logits + (int64_t)i * ld;
        float logprob = take_whole(s, to, from + i, logits, ids[from + i + 1]);
        TRY(check_score(s, logprob, from + i, err));
    }
    return DREY_OK;
}

/* Reads all but the last, after which nothing comes; the timeline is still empty. */
static drey_status score_all(drey_session *s, const int32_t *ids, size_t n, const score_places *to,
                             drey_error *err)
{
    drey_session_reset(s);
    size_t chunk = (size_t)s->target.ws->limits.max_logit_rows, n_read = n - 1;
    TRY(session_read_input(s, err));
    for (size_t from = 0; from < n_read; from += chunk)
        TRY(score_chunk(s, ids, from, n_read - from < chunk ? n_read - from : chunk, to, err));
    return DREY_OK;
}

static drey_status score_whole(drey_session *s, const int32_t *ids, size_t n,
                               const score_places *to, drey_error *err)
{
    drey_status status = score_all(s, ids, n, to, err);
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

drey_status drey_session_score_top(drey_session *s, const int32_t *ids, size_t n, int32_t n_top,
                                   drey_logprobs_fn *call, void *user, drey_error *err)
{
    const listener to = {call, user, n_top};
    if (n_top < 0 || n_top > DREY_MAX_TOP || session_reads_input(s))
        FAIL(err, DREY_ERR_USAGE,
             "the likeliest tokens are 0 to %d, and of a model that is a decoder alone",
             DREY_MAX_TOP);
    TRY(check(s, ids, n, err));
    atomic_store(&s->cancel, false);
    float_mode caller = float_mode_enter();
    drey_status status = score_all(s, ids, n, &(score_places){.listener = &to}, err);
    float_mode_leave(caller);
    if (status == DREY_OK)
        status = check_cancel(s, err);
    if (status == DREY_OK)
        session_take_timeline(s, ids, (int32_t)n);
    else
        drey_session_reset(s);
    return status;
}

/* ---- Vectors of a given text ---- */

static drey_status check_embedded(const drey_session *s, const int32_t *ids, size_t n,
                                  drey_pooling pooling, drey_error *err)
{
    if (session_reads_input(s) || pooling == DREY_POOLING_RANK)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s: texts become vectors by models that are a decoder alone, pooled by none, mean, "
             "cls or last",
             SHOWN_PATH(gguf_shard_path(s->engine->config.target->file, 0)));
    if (s->engine->target.layout.shape.streams.n > 0)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s has hyper connections, whose states drey makes into no vectors; use another model",
             SHOWN_PATH(gguf_shard_path(s->engine->config.target->file, 0)));
    if (n == 0 || !drey_pooling_name(pooling))
        FAIL(err, DREY_ERR_USAGE,
             "a vector is that of at least one token, pooled by none, mean, cls or last");
    return check_text(s, ids, n, err);
}

/* States of a text's tokens that are kept: all, one after the other or added, or one. */
typedef struct embed_places {
    float *out; /* [n_embd], or [n][n_embd] */
    bool all, adds;
    size_t one;
} embed_places;

static embed_places places_of(const drey_session *s, size_t n, drey_pooling pooling, float *out)
{
    memset(out, 0, (size_t)s->engine->target.layout.shape.n_embd * sizeof *out);
    return (embed_places){.out = out,
                          .all = pooling == DREY_POOLING_NONE || pooling == DREY_POOLING_MEAN,
                          .adds = pooling == DREY_POOLING_MEAN,
                          .one = pooling == DREY_POOLING_CLS ? 0 : n - 1};
}

/* Tokens [from, from + n) of a text are rows of the pass, from row `row` on. */
static void take_states(const drey_session *s, const embed_places *to, size_t row, size_t from,
                        size_t n)
{
    const size_t n_embd = (size_t)s->engine->target.layout.shape.n_embd;
    for (size_t i = from; i < from + n; i++) {
        if (!to->all && i != to->one)
            continue;
        float *out = to->all && !to->adds ? to->out + i * n_embd : to->out;
        const float *state = pass_state_of(&s->target, (int32_t)(row + i - from));
        for (size_t d = 0; d < n_embd; d++)
            out[d] = to->adds ? out[d] + state[d] : state[d];
    }
}

static void put_rows(pass_row *rows, size_t first, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rows[first + i] = (pass_row){.token = ids[i], .parent = i ? (int32_t)(first + i) - 1 : -1};
}

/* One text, in chunks. The head is left out: nothing asks for the next token. */
static drey_status read_long(drey_session *s, const drey_text_ids *text, drey_pooling pooling,
                             float *out, drey_error *err)
{
    const embed_places to = places_of(s, text->n, pooling, out);
    const size_t chunk = (size_t)s->engine->plan.chunk, n = to.all ? text->n : to.one + 1;
    for (size_t from = 0; from < n; from += chunk) {
        size_t n_rows = n - from < chunk ? n - from : chunk;
        put_rows(s->target.ws->rows, 0, text->ids + from, n_rows);
        TRY(pass_rows(&s->target, s->target.ws->rows, (int32_t)n_rows, HEAD_NONE, err));
        cache_commit(&s->target_cache, NULL, (int32_t)n_rows);
        take_states(s, &to, 0, from, n_rows);
    }
    return DREY_OK;
}

/* Texts that have room in one pass, each a branch of the empty timeline. */
static drey_status read_together(drey_session *s, const drey_text_ids *texts, size_t n_texts,
                                 drey_pooling pooling, float *out, drey_error *err)
{
    const size_t n_embd = (size_t)s->engine->target.layout.shape.n_embd;
    size_t row = 0;
    for (size_t t = 0; t < n_texts; row += texts[t++].n)
        put_rows(s->target.ws->rows, row, texts[t].ids, texts[t].n);
    TRY(pass_rows(&s->target, s->target.ws->rows, (int32_t)row, HEAD_NONE, err));
    cache_commit(&s->target_cache, NULL, 0);
    row = 0;
    for (size_t t = 0; t < n_texts; row += texts[t++].n) {
        const embed_places to = places_of(s, texts[t].n, pooling, out);
        take_states(s, &to, row, 0, texts[t].n);
        out += (pooling == DREY_POOLING_NONE ? texts[t].n : 1) * n_embd;
    }
    return DREY_OK;
}

static drey_status finish_vectors(const drey_session *s, const drey_text_ids *texts, size_t n_texts,
                                  drey_pooling pooling, float *out, drey_error *err)
{
    const size_t n_embd = (size_t)s->engine->target.layout.shape.n_embd;
    for (size_t t = 0; t < n_texts; t++) {
        size_t n = (pooling == DREY_POOLING_NONE ? texts[t].n : 1) * n_embd;
        for (size_t i = 0; i < n; i++, out++) {
            *out /= pooling == DREY_POOLING_MEAN ? (float)texts[t].n : 1;
            if (!isfinite(*out))
                FAIL(err, DREY_ERR_FORMAT,
                     "%s: the states of a text are not finite: the file is "
                     "damaged, fetch it again",
                     SHOWN_PATH(gguf_shard_path(s->engine->config.target->file, 0)));
        }
    }
    return DREY_OK;
}

/* Returns how many of the texts one call computes. */
static size_t n_together(const drey_session *s, const drey_text_ids *texts, size_t n_texts)
{
    size_t n = 0, n_rows = 0;
    if (shape_has_states(&s->engine->target.layout.shape)) /* which keep much of rows in a tree */
        return 1;
    while (n < n_texts && texts[n].n <= (size_t)s->engine->plan.chunk - n_rows)
        n_rows += texts[n++].n;
    return n > 0 ? n : 1;
}

static drey_status embed(drey_session *s, const drey_text_ids *texts, size_t n_texts,
                         drey_pooling pooling, float *out, drey_error *err)
{
    drey_session_reset(s);
    drey_status status = n_texts > 1 ? read_together(s, texts, n_texts, pooling, out, err)
                                     : read_long(s, texts, pooling, out, err);
    drey_session_reset(s);
    return status == DREY_OK ? finish_vectors(s, texts, n_texts, pooling, out, err) : status;
}

drey_status drey_session_embed_texts(drey_session *s, const drey_text_ids *texts, size_t n_texts,
                                     drey_pooling pooling, float *out, size_t *n_done,
                                     drey_error *err)
{
    *n_done = 0;
    if (pooling == DREY_POOLING_MODEL)
        pooling = drey_model_pooling(s->engine->config.target);
    if (n_texts == 0)
        FAIL(err, DREY_ERR_USAGE, "there is no text: a vector is that of at least one token");
    for (size_t t = 0; t < n_texts; t++)
        TRY(check_embedded(s, texts[t].ids, texts[t].n, pooling, err));
    n_texts = n_together(s, texts, n_texts);
    atomic_store(&s->cancel, false);
    float_mode caller = float_mode_enter();
    drey_status status = embed(s, texts, n_texts, pooling, out, err);
    float_mode_leave(caller);
    TRY(status);
    *n_done = n_texts;
    return check_cancel(s, err);
}

drey_status drey_session_embed(drey_session *s, const int32_t *ids, size_t n, drey_pooling pooling,
                               float *out, drey_error *err)
{
    size_t n_done;
    return drey_session_embed_texts(s, &(drey_text_ids){ids, n}, 1, pooling, out, &n_done, err);
}

static double length_of(const float *v, size_t n, int32_t norm)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double x = fabs((double)v[i]);
        if (norm == 0)
            sum = x > sum ? x : sum;
        else
            sum += norm == 1 ? x : x * x;
    }
    return norm == 0 ? sum / 32760.0 : norm == 1 ? sum : sqrt(sum);
}

void drey_embed_normalize(float *v, size_t n, int32_t norm)
{
    double length = norm < 0 ? 0 : length_of(v, n, norm);
    for (size_t i = 0; i < n && length > 0; i++)
        v[i] = (float)((double)v[i] / length);
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
