/* Delivers verified tokens to the caller, as ids and as text, until something ends the text. */
#include "session/verified_text.h"

#include "os/clock.h"
#include "session/logprobs.h"
#include "session/session.h"

enum { BY_CALLBACK = -1, BY_ITSELF }; /* drey_statistics.stop_text */

/* stop_text: see drey_statistics. */
static void finish(generation *g, drey_finish why, int32_t stop_text)
{
    if (!g->done) {
        g->stats.finish = why;
        g->stats.stop_text = stop_text;
    }
    g->done = true;
}

static void deliver(drey_session *s, const char *text, size_t n_bytes)
{
    generation *g = &s->text;
    provisional_text_verify(s, text, n_bytes);
    if (n_bytes == 0 || !g->options.on_text || g->refused)
        return;
    g->refused = !g->options.on_text(g->options.user, text, n_bytes);
    if (g->refused)
        finish(g, DREY_FINISH_STOP, BY_CALLBACK);
}

void verified_text_write_at(drey_session *s, int32_t position)
{
    generation *g = &s->text;
    int32_t id = s->timeline[position];
    drey_grammar *grammar = g->options.grammar;
    if (!g->options.ignore_eos && tokenizer_is_end(s->engine->config.target->tokenizer, id)) {
        /* Where no token may come, the text breaks off. */
        bool whole = !grammar || grammar_now_may_end(grammar);
        finish(g, whole ? DREY_FINISH_STOP : DREY_FINISH_LENGTH, BY_ITSELF);
        return;
    }
    if (g->stats.generated_tokens++ == 0)
        g->stats.first_token_s = (double)(clock_ns() - g->marks.begin.t_ns) * 1e-9;
    if (g->options.on_token && !g->options.on_token(g->options.user, id))
        finish(g, DREY_FINISH_STOP, BY_CALLBACK);
    const char *text;
    size_t n_bytes;
    detokenizer_push(&g->detokenizer, id, &text, &n_bytes);
    deliver(s, text, n_bytes);
    if (g->detokenizer.stopped)
        finish(g, DREY_FINISH_STOP, (int32_t)g->detokenizer.stop + 1);
    if (grammar)
        grammar_advance(grammar, id);
    if (grammar && grammar_now_over(grammar))
        finish(g, DREY_FINISH_STOP, BY_ITSELF);
    if (g->stats.generated_tokens >= g->options.n_predict ||
        position + 1 >= s->engine->config.n_context)
        finish(g, DREY_FINISH_LENGTH, 0);
}

static void append(drey_session *s, int32_t i)
{
    const accepted *a = &s->accepted;
    s->timeline[s->n_timeline++] = i < a->n_path ? s->tree.nodes[a->path[i]].token : a->next;
}

int32_t verified_text_write(drey_session *s, const float *logits)
{
    const accepted *a = &s->accepted;
    int32_t n = 0;
    for (; n <= a->n_path && !s->text.done; n++) {
        append(s, n);
        if (s->text.options.on_logprobs && logits)
            logprobs_report(s, logits + s->row_of[n ? a->path[n - 1] : 0] *
                                            pass_logits_stride(&s->target));
        verified_text_write_at(s, s->n_timeline - 1);
    }
    return n;
}

int32_t verified_text_hold_back(drey_session *s)
{
    int32_t n = 0;
    for (; n <= s->accepted.n_path; n++)
        append(s, n);
    s->n_unverified += n;
    return n;
}

void verified_text_flush(drey_session *s)
{
    const char *text;
    size_t n_bytes;
    const drey_statistics *now = &s->text.stats;
    bool by_itself = now->finish == DREY_FINISH_STOP && now->stop_text == BY_ITSELF;
    detokenizer_flush(&s->text.detokenizer, !by_itself, &text, &n_bytes);
    deliver(s, text, n_bytes);
}

void verified_text_drop(drey_session *s)
{
    int32_t n = s->deferred.n;
    if (s->observer) /* passes of others are read ahead as usual */
        pass_hold_from(&s->target, s->target.layout->shape.n_layers);
    if (n == 0)
        return;
    s->n_timeline -= s->n_unverified;
    if (s->n_unverified > 0)
        turn_log_cut(&s->turns, s->n_timeline, s->timeline[s->n_timeline - 1]);
    s->n_unverified = 0;
    deferred_cut(&s->deferred, n);
    session_forget(s, cache_end(&s->target_cache) - n);
}
