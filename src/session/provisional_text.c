/* Text that is shown before it is verified: after the verified text, the text of tokens that left
 * early and of the tree's most likely path; and the changes of it.
 *
 *     verified text | provisional text          the turn's end:   verified text + "cat s" | "leeps"
 *     The black     | cat sat                                     taken back: "at"
 *
 * A copy of the detokenizer continues where the verified text ends, so that characters and stop
 * texts that are divided between tokens are whole, or held back, as in verified text. */
#include "session/provisional_text.h"
#include "base/usual.h"

#include <string.h>

#include "common/utf8.h"
#include "os/clock.h"
#include "session/session.h"
#include "text/tokenizer.h"

/* Below this probability text would only flicker. */
static const float least_shown = USUAL_LEAST_SHOWN;
static const int64_t least_interval_ns = 50000000;

static void report(const generation *g, drey_event_kind kind, const char *bytes, size_t n)
{
    const drey_event event = {.kind = kind, .bytes = bytes, .n_bytes = n};
    if (n > 0)
        g->options.on_event(g->options.user, &event);
}

/* A byte that belongs to no character counts as one. */
static size_t character(const char *text, size_t n)
{
    int length = utf8_length((const uint8_t *)text, n);
    return length > 0 ? (size_t)length : length == UTF8_UNFINISHED ? n : 1;
}

/* Bytes of the characters that both begin with. */
static size_t common(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t same = 0;
    while (same < n_a && same < n_b) {
        size_t n = character(a + same, n_a - same);
        if (n != character(b + same, n_b - same) || memcmp(a + same, b + same, n) != 0)
            break;
        same += n;
    }
    return same;
}

/* Keeps the first n bytes. */
static void take_back(generation *g, size_t n)
{
    provisional_text *p = &g->provisional;
    report(g, DREY_EVENT_TAKEN_BACK, p->shown + n, p->n_shown - n);
    p->n_shown = n;
}

void provisional_text_clear(drey_session *s)
{
    if (s->text.provisional.n_shown > 0)
        take_back(&s->text, 0);
}

void provisional_text_verify(drey_session *s, const char *text, size_t n_bytes)
{
    generation *g = &s->text;
    provisional_text *p = &g->provisional;
    if (!g->options.on_event)
        return;
    size_t same = common(p->shown, p->n_shown, text, n_bytes);
    if (same < p->n_shown && same < n_bytes)
        take_back(g, same);
    report(g, DREY_EVENT_VERIFIED, text, n_bytes);
    p->n_shown -= same;
    memmove(p->shown, p->shown + same, p->n_shown);
}

/* ---- The likeliest path ---- */

static int32_t best_child(const token_tree *tree, int32_t node)
{
    int32_t best = -1;
    for (int32_t i = node + 1; i < tree->n_nodes; i++)
        if (tree->nodes[i].parent == node && tree->nodes[i].cumulative >= least_shown &&
            (best < 0 || tree->nodes[i].cumulative > tree->nodes[best].cumulative))
            best = i;
    return best;
}

/* Adds a token's text to out; false: it ends there. */
static bool add_token(generation *g, int32_t token, char out[DREY_MAX_PROVISIONAL], size_t *n)
{
    const char *text;
    size_t n_bytes;
    detokenizer *d = &g->provisional.detokenizer;
    if (d->stopped || (!g->options.ignore_eos && tokenizer_is_end(d->tokenizer, token)))
        return false;
    detokenizer_push(d, token, &text, &n_bytes);
    if (*n + n_bytes > DREY_MAX_PROVISIONAL)
        return false;
    memcpy(out + *n, text, n_bytes);
    *n += n_bytes;
    return true;
}

/* Tokens that the caller has not got yet, and the text below the root, as far as there is room. */
static size_t path_text(drey_session *s, char out[DREY_MAX_PROVISIONAL])
{
    generation *g = &s->text;
    const token_tree *tree = &s->tree;
    size_t n = 0;
    bool continues = true;
    detokenizer_follow(&g->provisional.detokenizer, &g->detokenizer);
    for (int32_t i = s->n_unverified; i > 0 && continues; i--)
        continues = add_token(g, s->timeline[s->n_timeline - i], out, &n);
    for (int32_t i = best_child(tree, 0); i > 0 && continues; i = best_child(tree, i))
        continues = add_token(g, tree->nodes[i].token, out, &n);
    return n;
}

void provisional_text_show(drey_session *s, bool soon)
{
    generation *g = &s->text;
    provisional_text *p = &g->provisional;
    char text[DREY_MAX_PROVISIONAL];
    int64_t now = clock_ns();
    if (!g->options.on_event || g->done || (!soon && now < p->show_at_ns))
        return;
    p->show_at_ns = now + least_interval_ns;
    size_t n = path_text(s, text);
    size_t same = common(p->shown, p->n_shown, text, n);
    if (same < p->n_shown)
        take_back(g, same);
    memcpy(p->shown + same, text + same, n - same);
    p->n_shown = n;
    report(g, DREY_EVENT_PROVISIONAL, p->shown + same, n - same);
}
