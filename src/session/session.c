/* The life of a session's text: begun, written step by step, ended. session.h has its states. */
#include "session/session.h"

#include <assert.h>

#include "common/num.h"
#include "os/float_mode.h"
#include "session/overlap.h"
#include "session/step.h"
#include "session/verified_text.h"

/* Lookup has room for a timeline as long as the context: what the prompt leaves is the
 * prediction's, for as long as the text does not need it. An earlier one is forgotten. */
static void take_prediction(drey_session *s)
{
    int64_t room = (int64_t)s->engine->config.n_context - s->n_timeline;
    int64_t n = min_i64((int64_t)s->input.predicted.n, max_i64(room, 0));
    if (s->drafter && drafter_listens_to(s->drafter->class, take_input) && !session_reads_input(s))
        s->drafter->class->listener->take_input(s->drafter, s->input.predicted.ids, (int32_t)n);
    s->input.predicted.n = 0;
}

drey_status drey_session_predict(drey_session *s, const int32_t *ids, size_t n, drey_error *err)
{
    if (s->state != SESSION_IDLE)
        FAIL(err, DREY_ERR_USAGE, "the session is writing a text already; end that one first");
    TRY(timeline_check(s, ids, n, err));
    s->input.predicted.ids = ids;
    s->input.predicted.n = n;
    return DREY_OK;
}

/* Adds ids to the timeline and begins a text there: all of it, or nothing. */
static drey_status begin(drey_session *s, const int32_t *ids, size_t n,
                         const drey_generate_options *options, drey_statistics *report,
                         drey_error *err)
{
    if (n == 0 && s->n_timeline == 0)
        FAIL(err, DREY_ERR_USAGE, "the prompt is empty; give at least one token");
    if (n == 0 && s->n_timeline >= s->engine->config.n_context)
        FAIL_HINT(err, DREY_ERR_CONTEXT, DREY_HINT_N_CONTEXT,
                  "the context is full; reset the session or take a larger context");
    bool input = n > 0 && session_reads_input(s);
    if (n > 0)
        TRY(input ? input_check(s, n, err) : timeline_check_room(s, s->n_timeline, n, err));
    TRY(text_check(s, options, err));
    TRY(timeline_check(s, ids, n, err));
    drey_status status = text_make(s, options, err);
    if (status != DREY_OK) {
        s->text.options.grammar = NULL; /* it was not taken */
        text_release(&s->text);
        return status;
    }
    if (n > 0)
        s->text.n_kept = s->n_timeline;
    if (input)
        input_set(s, ids, n);
    else
        timeline_append(s, ids, n);
    take_prediction(s);
    /* The prompt comes first: the first token keeps its space. An input is another text. */
    s->text.detokenizer.started = !session_reads_input(s) || s->n_timeline > input_given(s);
    prompt_take_known(s);
    s->text.report = report;
    s->text.prompt_from = cache_end(&s->target_cache);
    s->text.prompt_end = s->n_timeline;
    s->text.stats.prompt_tokens = n                 ? (int64_t)n
                                  : s->input.unread ? s->input.n
                                                    : s->n_timeline - cache_end(&s->target_cache);
    s->state = SESSION_PROMPT;
    atomic_store(&s->cancel, false); /* a cancel before the text was not meant for it */
    assert(session_is_valid(s));
    return DREY_OK;
}

drey_status drey_session_begin(drey_session *session, const drey_generate_options *options,
                               drey_statistics *statistics, drey_error *err)
{
    return begin(session, NULL, 0, options, statistics, err);
}

bool drey_session_is_writing(const drey_session *session)
{
    return session->state != SESSION_IDLE;
}

void session_end(drey_session *s, drey_finish why)
{
    generation *g = &s->text;
    if (s->state == SESSION_IDLE)
        return;
    if (!g->done)
        g->stats.finish = why;
    g->done = true;
    verified_text_flush(s);
    provisional_text_clear(s);
    verified_text_drop(s);
    prompt_keep(s, true);
    statistics_end(s);
    text_release_grammar(s);
    text_release(g);
    s->state = SESSION_IDLE;
    if (g->report)
        *g->report = g->stats;
    if (g->options.on_end) /* which may begin the next text */
        g->options.on_end(g->options.user);
}

void session_retry(drey_session *s)
{
    overlap_give_up(s);
    provisional_text_clear(s);
    if (s->state == SESSION_DECODE)
        s->state = SESSION_PROMPT;
}

void drey_session_end(drey_session *session)
{
    session_end(session, DREY_FINISH_INTERRUPTED);
}

void drey_session_cancel(drey_session *session)
{
    atomic_store(&session->cancel, true);
}

drey_status drey_session_step(drey_session *s, bool *done, drey_error *err)
{
    drey_status status = DREY_OK;
    if (s->state != SESSION_IDLE) {
        float_mode caller = float_mode_enter();
        status = sessions_step(&s, 1, err);
        if (status == DREY_ERR_CANCELLED)
            session_end(s, DREY_FINISH_INTERRUPTED);
        float_mode_leave(caller);
    }
    *done = s->state == SESSION_IDLE;
    assert(session_is_valid(s));
    return status;
}

drey_status drey_session_generate(drey_session *s, const int32_t *ids, size_t n,
                                  const drey_generate_options *options, drey_statistics *statistics,
                                  drey_error *err)
{
    drey_status status = begin(s, ids, n, options, statistics, err);
    if (status != DREY_OK) {
        if (statistics)
            *statistics = statistics_of_nothing(s->engine);
        return status;
    }
    for (bool done = false; status == DREY_OK && !done;)
        status = drey_session_step(s, &done, err);
    session_end(s, DREY_FINISH_ERROR);
    return status;
}
