/* The options of a text: checked, and copied for as long as it is written. */
#include "session/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer.h"
#include "text/detokenizer.h"

void drey_generate_options_init(drey_generate_options *options)
{
    *options = (drey_generate_options){.n_predict = 512, .sampling = {.top_p = 1.0f}};
}

static drey_status copy_stops(generation *g, drey_error *err)
{
    size_t n = g->options.n_stops, bytes = n * sizeof(char *);
    if (n == 0)
        return DREY_OK;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(g->options.stops[i]) + 1;
    g->stops = malloc(bytes);
    if (!g->stops)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for %zu stop texts", n);
    char *text = (char *)(g->stops + n);
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(g->options.stops[i]) + 1;
        g->stops[i] = memcpy(text, g->options.stops[i], length);
        text += length;
    }
    g->options.stops = (const char *const *)g->stops;
    return DREY_OK;
}

/* The request's, and one for each token that the model never chooses. */
static drey_status copy_biases(drey_session *s, drey_error *err)
{
    generation *g = &s->text;
    const size_t n_own = (size_t)g->options.n_biases;
    size_t n_suppressed;
    const int32_t *suppressed =
        tokenizer_suppressed(s->engine->config.target->tokenizer, &n_suppressed);
    const size_t n = n_own + n_suppressed;
    if (n == 0)
        return DREY_OK;
    g->biases = malloc(n * (sizeof *g->biases + sizeof(float)));
    if (!g->biases)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for %zu biases", n);
    if (n_own > 0)
        memcpy(g->biases, g->options.biases, n_own * sizeof *g->biases);
    for (size_t i = 0; i < n_suppressed; i++)
        g->biases[n_own + i] = (drey_bias){.id = suppressed[i], .bias = -INFINITY};
    g->options.biases = s->sampler.biases = g->biases;
    s->sampler.unbiased = (float *)(g->biases + n);
    s->sampler.n_biases = (int32_t)n;
    return DREY_OK;
}

static drey_status check_biases(const drey_session *s, const drey_generate_options *o,
                                drey_error *err)
{
    int32_t n_vocab = tokenizer_n_vocab(s->engine->config.target->tokenizer);
    for (int32_t i = 0; i < o->n_biases; i++)
        if (o->biases[i].id < 0 || o->biases[i].id >= n_vocab || isnan(o->biases[i].bias))
            FAIL(err, DREY_ERR_USAGE,
                 "the bias %g of token id %d: the model has ids 0 to %d, and a bias is a number",
                 (double)o->biases[i].bias, o->biases[i].id, n_vocab - 1);
    if (o->n_biases < 0 || o->n_top < 0 || o->n_top > DREY_MAX_TOP)
        FAIL(err, DREY_ERR_USAGE, "%d biases and the %d most likely tokens: 0 to %d of those",
             o->n_biases, o->n_top, DREY_MAX_TOP);
    if (o->on_logprobs && s->observer)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "log-probabilities are known of passes that go to their end: open the engine without "
             "early exits");
    return DREY_OK;
}

static drey_status check_grammar(const drey_session *s, const drey_generate_options *o,
                                 drey_error *err)
{
    drey_grammar *g = o->grammar;
    if (!g)
        return DREY_OK;
    if (grammar_tokenizer(g) != s->engine->config.target->tokenizer)
        FAIL(err, DREY_ERR_USAGE, "the grammar was opened for another model; open it for this one");
    if (*grammar_in_use(g))
        FAIL(err, DREY_ERR_USAGE,
             "another text is being written with this grammar; open one for each");
    if (o->ignore_eos)
        FAIL(err, DREY_ERR_USAGE,
             "a text with a grammar ends where the grammar says: do not ignore its end");
    if (s->observer)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "grammars are for passes that go to their end: open the engine without early exits");
    if (session_reads_input(s))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model has an encoder, and its texts have no grammars; write it without one");
    return DREY_OK;
}

static drey_status check_penalties(const drey_session *s, const drey_penalties *p, drey_error *err)
{
    if (!p)
        return DREY_OK;
    TRY(penalties_check(p, err));
    if (s->observer && penalties_are_there(p))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "penalties are for passes that go to their end: open the engine without early exits");
    return DREY_OK;
}

drey_status text_check(const drey_session *s, const drey_generate_options *o, drey_error *err)
{
    if (s->state != SESSION_IDLE)
        FAIL(err, DREY_ERR_USAGE, "the session is writing a text already; end that one first");
    if (o->n_predict < 1)
        FAIL(err, DREY_ERR_USAGE, "at least one token must be asked for, not %d", o->n_predict);
    if (o->no_draft && s->observer)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "early exits look at what was guessed: let this text be drafted for, or open the "
             "engine without early exits");
    TRY(check_grammar(s, o, err));
    TRY(check_penalties(s, o->sampling.penalties, err));
    return check_biases(s, o, err);
}

drey_status session_set_sampling(drey_session *s, const drey_sampling *settings, drey_error *err)
{
    int32_t n_vocab = tokenizer_n_vocab(s->engine->config.target->tokenizer);
    arena_rewind(&s->memory.arena, s->memory.base_mark);
    TRY(sampler_init(&s->sampler, settings, n_vocab, s->engine->kernels, &s->memory.arena, err));
    return arena_check(&s->memory.arena, err);
}

static bool holds_breaker(const char *text, size_t n, const drey_penalties *p)
{
    for (size_t b = 0; b < p->n_dry_breakers; b++) {
        size_t length = strlen(p->dry_breakers[b]);
        for (size_t i = 0; length > 0 && i + length <= n; i++)
            if (memcmp(text + i, p->dry_breakers[b], length) == 0)
                return true;
    }
    return false;
}

/* Repetitions end at these tokens. */
static drey_status find_breaks(drey_session *s, const drey_penalties *p, drey_error *err)
{
    const tokenizer *t = s->engine->config.target->tokenizer;
    char *text = malloc(tokenizer_longest_piece(t) + 1);
    if (!text)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for the texts of tokens");
    for (int32_t id = 0; id < tokenizer_n_vocab(t); id++) {
        size_t n = tokenizer_piece(t, id, true, false, text, tokenizer_longest_piece(t) + 1);
        if (holds_breaker(text, n, p))
            penalties_set_break(&s->text.penalties, id);
    }
    free(text);
    return DREY_OK;
}

static drey_status set_penalties(drey_session *s, const drey_penalties *p, drey_error *err)
{
    if (!penalties_are_there(p))
        return DREY_OK;
    penalties_init(&s->text.penalties, p, s->timeline,
                   tokenizer_n_vocab(s->engine->config.target->tokenizer),
                   s->engine->config.n_context, &s->memory.arena);
    TRY(arena_check(&s->memory.arena, err));
    s->sampler.penalties = &s->text.penalties;
    return p->dry_multiplier > 0 ? find_breaks(s, p, err) : DREY_OK;
}

drey_status text_make(drey_session *s, const drey_generate_options *o, drey_error *err)
{
    const tokenizer *t = s->engine->config.target->tokenizer;
    generation *g = &s->text;
    *g = (generation){.options = *o, .n_kept = g->n_kept};
    g->options.sampling.penalties = NULL; /* the session has its own */
    statistics_begin(s);
    if (s->observer)
        s->observer->class->text_begins(s);
    TRY(session_set_sampling(s, &o->sampling, err));
    TRY(set_penalties(s, o->sampling.penalties, err));
    if (s->policy)
        s->policy->sampled = o->sampling.temperature > 0;
    TRY(copy_biases(s, err));
    TRY(copy_stops(g, err));
    TRY(detokenizer_init(&g->detokenizer, t, g->options.stops, o->n_stops, o->special, err));
    if (o->on_event)
        TRY(detokenizer_init(&g->provisional.detokenizer, t, g->options.stops, o->n_stops,
                             o->special, err));
    if (o->grammar) {
        *grammar_in_use(o->grammar) = true;
        grammar_restart(o->grammar);
    }
    return DREY_OK;
}

void text_release(generation *g)
{
    detokenizer_free(&g->detokenizer);
    detokenizer_free(&g->provisional.detokenizer);
    free(g->stops);
    free(g->biases);
    g->stops = NULL;
    g->biases = NULL;
}

void text_release_grammar(drey_session *s)
{
    drey_grammar *grammar = s->text.options.grammar;
    if (!grammar)
        return;
    grammar_hold(grammar, NULL, 0);
    *grammar_in_use(grammar) = false;
    s->text.options.grammar = s->tree.grammar = NULL;
}
