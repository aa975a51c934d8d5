/* Echoed prompts: see prompt_echo.h. */
#include "serve/prompt_echo.h"

#include <math.h>
#include <string.h>

#include "common/utf8.h"

/* A token's bytes depend on those before it only at a text's beginning: a few are enough. */
enum { TOKENS_BEFORE = 4, MOST_BYTES = RECORD_MOST_BYTES };

typedef struct echo {
    shared *shared;
    sequence *sequence;
    const int32_t *ids; /* [n] */
    size_t n, at;       /* at: the token that is reported next */
    char held[MOST_BYTES];
    size_t n_held; /* bytes that begin a character */
} echo;

/* The bytes of the text that token `at` adds; 0 where they are more than MOST_BYTES. */
static size_t bytes_of(const echo *e, size_t at, char *out)
{
    const drey_model *model = e->shared->options->model;
    size_t from = at > TOKENS_BEFORE ? at - TOKENS_BEFORE : 0, n_before = 0, n_all = 0;
    char text[2 * MOST_BYTES];
    drey_model_info info;
    drey_model_describe(model, &info);
    from += from == 0 && e->ids[0] == info.bos_id; /* no part of the prompt's text */
    if (at < from ||
        drey_detokenize(model, e->ids + from, at - from, DREY_TOKENIZE_SPECIAL, text, sizeof text,
                        &n_before, NULL) != DREY_OK ||
        drey_detokenize(model, e->ids + from, at - from + 1, DREY_TOKENIZE_SPECIAL, text,
                        sizeof text, &n_all, NULL) != DREY_OK ||
        n_all - n_before > MOST_BYTES)
        return 0;
    memcpy(out, text + n_before, n_all - n_before);
    return n_all - n_before;
}

/* Records the whole characters that are held, at the end of the prompt all bytes. */
static void put_text(echo *e)
{
    size_t n = 0;
    while (n < e->n_held) {
        int length = utf8_length((const uint8_t *)e->held + n, e->n_held - n);
        if (length == UTF8_UNFINISHED && e->at + 1 < e->n)
            break;
        n += length > 0 ? (size_t)length : 1;
    }
    if (n > 0)
        sequence_record(e->shared, e->sequence, RECORD_TEXT, e->held, n);
    memmove(e->held, e->held + n, e->n_held -= n);
}

static void add_text(echo *e)
{
    char text[MOST_BYTES];
    size_t n = bytes_of(e, e->at, text);
    n = n < sizeof e->held - e->n_held ? n : sizeof e->held - e->n_held;
    memcpy(e->held + e->n_held, text, n);
    e->n_held += n;
    put_text(e);
    e->at++;
}

static void on_token(void *user, const drey_logprob *token, const drey_logprob *top, int32_t n_top)
{
    echo *e = user;
    drey_logprob all[1 + DREY_MAX_TOP];
    all[0] = *token;
    if (n_top > 0) /* the first token has none */
        memcpy(all + 1, top, (size_t)n_top * sizeof *top);
    sequence_record(e->shared, e->sequence, RECORD_TOKEN, all, (size_t)(1 + n_top) * sizeof *all);
    add_text(e);
}

drey_status echo_prompt(shared *s, sequence *j, drey_session *session, drey_error *err)
{
    echo e = {.shared = s, .sequence = j};
    e.ids = sequence_prompt(j, &e.n);
    if (!echo_computes(j->request)) {
        while (e.at < e.n)
            add_text(&e);
        return DREY_OK;
    }
    on_token(&e, &(drey_logprob){.id = e.ids[0], .logprob = NAN}, NULL, 0);
    if (e.n == 1)
        return DREY_OK;
    return drey_session_score_top(session, e.ids, e.n, j->request->tokens.n_top, on_token, &e, err);
}
