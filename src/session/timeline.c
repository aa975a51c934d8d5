/* A session's timeline: tokens kept, appended and forgotten, and the input of an encoder. */
#include "session/session.h"

#include <assert.h>
#include <string.h>

#include "common/num.h"
#include "os/clock.h"
#include "state/cache.h"
#include "text/tokenizer.h"

drey_status timeline_check(const drey_session *s, const int32_t *ids, size_t n, drey_error *err)
{
    int32_t n_vocab = tokenizer_n_vocab(s->engine->config.target->tokenizer);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= n_vocab)
            FAIL(err, DREY_ERR_USAGE, "token id %d does not exist; the model has ids 0 to %d",
                 ids[i], n_vocab - 1);
    return DREY_OK;
}

drey_status timeline_check_room(const drey_session *s, int32_t from, size_t n, drey_error *err)
{
    int32_t room = max_i32(s->engine->config.n_context - from, 0);
    if (n >= (size_t)room)
        FAIL_HINT(err, DREY_ERR_CONTEXT, DREY_HINT_N_CONTEXT,
                  "the prompt has %zu tokens, but the context has room for %d (one of them to "
                  "write); shorten the prompt or take a larger context",
                  n, room);
    return DREY_OK;
}

int32_t timeline_cut(drey_session *s, int32_t n, int32_t known)
{
    s->n_timeline = s->text.n_kept = n;
    known = min_i32(known, cache_end(&s->target_cache));
    return known < cache_end(&s->target_cache) ? cache_cut(&s->target_cache, known) : known;
}

void session_forget(drey_session *s, int32_t n)
{
    int32_t stay = cache_cut(&s->target_cache, n);
    assert(stay == n);
    (void)stay;
}

void timeline_append(drey_session *s, const int32_t *ids, size_t n)
{
    if (n)
        memcpy(s->timeline + s->n_timeline, ids, n * sizeof *ids);
    s->n_timeline += (int32_t)n;
}

void session_take_timeline(drey_session *s, const int32_t *ids, int32_t n)
{
    assert(s->state == SESSION_IDLE && s->n_timeline == 0 && cache_end(&s->target_cache) < n);
    timeline_append(s, ids, (size_t)n);
    assert(session_is_valid(s));
}

/* ---- The input of an encoder ---- */

int32_t input_given(const drey_session *s)
{
    return s->engine->target.layout.shape.encoder.forced_id >= 0 ? 2 : 1;
}

drey_status input_check(const drey_session *s, size_t n, drey_error *err)
{
    const model_shape *shape = &s->engine->target.layout.shape;
    int32_t room = s->engine->config.n_context;
    if (input_given(s) > room)
        FAIL_HINT(err, DREY_ERR_CONTEXT, DREY_HINT_N_CONTEXT,
                  "the model's texts begin with %d tokens, which is more than the context has; "
                  "take a larger one",
                  input_given(s));
    if (n > (size_t)room && shape->context.ends && room == shape->n_context_train)
        FAIL(
            err, DREY_ERR_CONTEXT,
            "the input has %zu tokens, but the model has positions for %d only; shorten the prompt",
            n, room);
    if (n > (size_t)room)
        FAIL_HINT(err, DREY_ERR_CONTEXT, DREY_HINT_N_CONTEXT,
                  "the input has %zu tokens, but the context lets the encoder read %d; shorten the "
                  "prompt or take a larger context",
                  n, room);
    return DREY_OK;
}

bool input_set(drey_session *s, const int32_t *ids, size_t n)
{
    session_input *in = &s->input;
    const encoder_shape *e = &s->engine->target.layout.shape.encoder;
    bool same = n == (size_t)in->n && (n == 0 || memcmp(in->ids, ids, n * sizeof *ids) == 0);
    if (!same) {
        if (n)
            memcpy(in->ids, ids, n * sizeof *ids);
        in->n = (int32_t)n;
        in->unread = true;
        cache_clear(&s->draft_cache);
    }
    timeline_cut(s, 0, 0);
    if (n)
        timeline_append(s, (int32_t[]){e->start_id, e->forced_id}, (size_t)input_given(s));
    return same;
}

static drey_status sync_input(drey_session *s, const int32_t *ids, size_t n, size_t *n_kept,
                              drey_error *err)
{
    TRY(timeline_check(s, ids, n, err));
    TRY(input_check(s, n, err));
    session_end(s, DREY_FINISH_INTERRUPTED);
    bool same = input_set(s, ids, n);
    if (n_kept)
        *n_kept = same ? n : 0;
    assert(session_is_valid(s));
    return DREY_OK;
}

drey_status session_read_input(drey_session *s, drey_error *err)
{
    drey_engine *e = s->engine;
    session_input *in = &s->input;
    if (!in->unread)
        return DREY_OK;
    int64_t start = clock_ns();
    TRY(encoder_read(&e->target.encoder, e->pool, in->ids, in->n, &in->target, &s->cancel, err));
    if (encoder_is_there(&e->draft.encoder))
        TRY(encoder_read(&e->draft.encoder, e->pool, in->ids, in->n, &in->draft, &s->cancel, err));
    if (s->drafter && drafter_listens_to(s->drafter->class, take_input))
        s->drafter->class->listener->take_input(s->drafter, in->ids, in->n);
    trace_add(&e->trace, 0, TRACE_PROMPT, start, clock_ns(), in->n);
    in->unread = false;
    progress_line line = {e, DREY_PROGRESS_PROMPT, (uint64_t)in->n};
    prompt_report(&line, line.total);
    return DREY_OK;
}

drey_status drey_session_sync(drey_session *s, const int32_t *ids, size_t n, size_t *n_kept,
                              drey_error *err)
{
    if (session_reads_input(s))
        return sync_input(s, ids, n, n_kept, err);
    TRY(timeline_check(s, ids, n, err));
    TRY(timeline_check_room(s, 0, n, err));
    session_end(s, DREY_FINISH_INTERRUPTED);
    int32_t same = 0, most = min_i32(s->n_timeline, (int32_t)n);
    while (same < most && s->timeline[same] == ids[same])
        same++;
    int32_t known = timeline_cut(s, same, min_i32(same, max_i32((int32_t)n - 1, 0)));
    timeline_append(s, ids + same, n - (size_t)same);
    if (n_kept)
        *n_kept = (size_t)known;
    assert(session_is_valid(s));
    return DREY_OK;
}

drey_status drey_session_truncate(drey_session *s, size_t n, drey_error *err)
{
    int32_t n_verified = session_n_verified(s);
    if (n > (size_t)n_verified)
        FAIL(err, DREY_ERR_USAGE, "the first %zu tokens cannot be kept: the session has %d", n,
             n_verified);
    session_end(s, DREY_FINISH_INTERRUPTED);
    timeline_cut(s, (int32_t)n, max_i32((int32_t)n - 1, 0));
    assert(session_is_valid(s));
    return DREY_OK;
}

void drey_session_reset(drey_session *s)
{
    drey_session_truncate(s, 0, NULL);
}

void drey_session_timeline(const drey_session *s, const int32_t **ids, size_t *n)
{
    *ids = s->timeline;
    *n = (size_t)session_n_verified(s);
}
