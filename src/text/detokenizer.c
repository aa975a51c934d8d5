/* Streaming text: see detokenizer.h. */
#include "text/detokenizer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/utf8.h"
#include "text/tokenizer.h"

drey_status detokenizer_init(detokenizer *d, const tokenizer *t, const char *const *stops,
                             size_t n_stops, bool special, drey_error *err)
{
    *d = (detokenizer){.tokenizer = t, .stops = stops, .n_stops = n_stops, .special = special};
    size_t longest_stop = 0;
    for (size_t i = 0; i < n_stops; i++)
        if (strlen(stops[i]) > longest_stop)
            longest_stop = strlen(stops[i]);
    /* Most bytes held back: a stop text without its last byte, then three bytes of a character. */
    d->capacity = tokenizer_longest_piece(t) + longest_stop + 3;
    d->held = malloc(d->capacity);
    if (!d->held)
        FAIL(err, DREY_ERR_MEMORY, "no memory to hold %zu bytes of text", d->capacity);
    return DREY_OK;
}

void detokenizer_free(detokenizer *d)
{
    free(d->held);
    *d = (detokenizer){0};
}

void detokenizer_follow(detokenizer *d, const detokenizer *other)
{
    assert(d->tokenizer == other->tokenizer && d->capacity == other->capacity);
    char *held = d->held;
    *d = *other;
    d->held = memcpy(held, other->held, other->n_held);
}

/* The beginning of the stop text that is complete first, and its index; n_held: there is none. */
static size_t find_stop(const detokenizer *d, size_t *which)
{
    size_t begin = d->n_held, end = d->n_held + 1;
    for (size_t i = 0; i < d->n_stops; i++) {
        size_t length = strlen(d->stops[i]);
        const char *at = length ? memmem(d->held, d->n_held, d->stops[i], length) : NULL;
        if (!at)
            continue;
        size_t first = (size_t)(at - d->held);
        if (first + length < end || (first + length == end && first < begin)) {
            begin = first;
            end = first + length;
            *which = i;
        }
    }
    return begin;
}

/* The beginning of the longest unfinished stop text at the end; n_held: there is none. */
static size_t unfinished_stop(const detokenizer *d)
{
    size_t longest = 0;
    for (size_t i = 0; i < d->n_stops; i++) {
        size_t length = strlen(d->stops[i]);
        size_t most = length > d->n_held ? d->n_held : length ? length - 1 : 0;
        for (size_t n = most; n > longest; n--)
            if (memcmp(d->held + d->n_held - n, d->stops[i], n) == 0)
                longest = n;
    }
    return d->n_held - longest;
}

/* Moves a cut to the beginning of a character that it would divide. A lead byte is never inside
 * another character, so checking the last three bytes is enough. */
static size_t whole_characters(const detokenizer *d, size_t cut)
{
    for (size_t n = 1; n <= 3 && n <= cut; n++)
        if (utf8_length((const uint8_t *)d->held + cut - n, n) == UTF8_UNFINISHED)
            return cut - n;
    return cut;
}

static void drop_given(detokenizer *d)
{
    d->n_held -= d->n_given;
    memmove(d->held, d->held + d->n_given, d->n_held);
    d->n_given = 0;
}

void detokenizer_push(detokenizer *d, int32_t id, const char **text, size_t *n_bytes)
{
    drop_given(d);
    *text = d->held;
    *n_bytes = 0;
    if (d->stopped)
        return;
    size_t room = d->capacity - d->n_held;
    size_t piece =
        tokenizer_piece(d->tokenizer, id, d->special, !d->started, d->held + d->n_held, room);
    assert(piece <= room);
    d->n_held += piece;
    d->started |= !tokenizer_is_special(d->tokenizer, id);
    size_t cut = find_stop(d, &d->stop);
    if (cut < d->n_held)
        d->stopped = true;
    else
        cut = whole_characters(d, unfinished_stop(d));
    d->n_given = *n_bytes = cut;
    if (d->stopped)
        d->n_held = cut;
}

void detokenizer_flush(detokenizer *d, bool cut_off, const char **text, size_t *n_bytes)
{
    drop_given(d);
    if (cut_off && !d->stopped)
        d->n_held = whole_characters(d, d->n_held);
    *text = d->held;
    *n_bytes = d->n_given = d->n_held;
}
