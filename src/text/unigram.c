/* Unigram SentencePiece: see unigram.h.
 *
 * In a vocabulary that splits at blanks they begin words. Then a word is cut on its own, as its
 * best cut does not depend on others, and memory is bounded by the longest word. */
#include "text/unigram.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "common/utf8.h"

/* Penalty of an unknown character, as in SentencePiece: how much worse than the worst token an
 * unknown character is. */
static const double unknown_penalty = 10.0;

static const char blank[] = "\xE2\x96\x81"; /* U+2581 */
enum { BLANK_BYTES = 3, WORD_BYTES = 1 << 16 };

/* Best cut of the word's first bytes. */
typedef struct cut {
    double score;
    int32_t id; /* id of its last token; -1: a character that is none */
    uint32_t from;
} cut;

typedef struct encoding {
    const unigram *u;
    id_sink *sink;
    char *word; /* [WORD_BYTES + 8], normalized */
    size_t n;
    cut *cuts;    /* [WORD_BYTES + 9] */
    bool unknown; /* the last character was no token */
} encoding;

static bool is_piece(const vocab *v, int32_t id)
{
    token_type type = vocab_type(v, id);
    return type == TOKEN_NORMAL || type == TOKEN_USER_DEFINED;
}

static double score_of(const unigram *u, int32_t id)
{
    return gguf_item_number(u->pieces->scores, (uint64_t)id);
}

drey_status unigram_init(unigram *u, const sentencepiece *pieces, const gguf *g, drey_error *err)
{
    *u = (unigram){.pieces = pieces, .unknown_score = FLT_MAX};
    TRY(charmap_init(&u->map, g, err));
    u->merges_blanks = gguf_bool(g, "tokenizer.ggml.remove_extra_whitespaces", true);
    for (int32_t id = 0; id < pieces->vocab->n_tokens; id++) {
        if (!is_piece(pieces->vocab, id))
            continue;
        u->longest = max_size(u->longest, vocab_text(pieces->vocab, id).n_bytes);
        if (vocab_type(pieces->vocab, id) == TOKEN_NORMAL && score_of(u, id) < u->unknown_score)
            u->unknown_score = score_of(u, id);
    }
    u->longest = min_size(u->longest, WORD_BYTES);
    u->unknown_score -= unknown_penalty;
    return DREY_OK;
}

/* ---- The best cut of a word ---- */

static void offer(encoding *e, size_t to, cut c)
{
    if (c.score > e->cuts[to].score)
        e->cuts[to] = c;
}

/* All tokens that begin at `at`; a character that is none of them is unknown. */
static void extend(encoding *e, size_t at)
{
    const unigram *u = e->u;
    double score = e->cuts[at].score;
    int length = utf8_length((const uint8_t *)e->word + at, e->n - at);
    size_t character = length > 0 ? (size_t)length : 1, most = min_size(e->n - at, u->longest);
    bool known = false;
    for (size_t n = 1; n <= most; n++) {
        int32_t id = vocab_find(u->pieces->vocab, e->word + at, n);
        if (id < 0 || !is_piece(u->pieces->vocab, id))
            continue;
        bool user = vocab_type(u->pieces->vocab, id) == TOKEN_USER_DEFINED;
        offer(e, at + n, (cut){score + (user ? 0 : score_of(u, id)), id, (uint32_t)at});
        known |= n == character;
    }
    if (!known)
        offer(e, at + character, (cut){score + u->unknown_score, -1, (uint32_t)at});
}

/* Unknown characters that follow each other are one unknown token; where there are bytes, they are
 * spelled. */
static void push_unknown(encoding *e, const char *text, size_t n)
{
    const sentencepiece *p = e->u->pieces;
    bool spelled = true;
    for (size_t i = 0; i < n; i++)
        spelled &= p->byte_id[(uint8_t)text[i]] >= 0;
    for (size_t i = 0; spelled && i < n; i++)
        id_push(e->sink, p->byte_id[(uint8_t)text[i]]);
    if (!spelled && !e->unknown && p->unknown_id >= 0)
        id_push(e->sink, p->unknown_id);
    e->unknown = !spelled;
}

static void flush_word(encoding *e)
{
    for (size_t i = 0; i <= e->n; i++)
        e->cuts[i].score = -DBL_MAX;
    e->cuts[0].score = 0;
    for (size_t at = 0; at < e->n; at++)
        if (e->cuts[at].score > -DBL_MAX)
            extend(e, at);
    /* The best cut is known backwards; turned around, each token knows its end. */
    for (size_t at = e->n, end = 0; at > 0;) {
        size_t from = e->cuts[at].from;
        e->cuts[at].from = (uint32_t)end;
        end = at;
        at = from;
        if (at == 0)
            e->cuts[0].from = (uint32_t)end;
    }
    for (size_t at = 0; at < e->n;) {
        size_t to = e->cuts[at].from;
        if (e->cuts[to].id >= 0)
            id_push(e->sink, e->cuts[to].id);
        else
            push_unknown(e, e->word + at, to - at);
        e->unknown &= e->cuts[to].id < 0;
        at = to;
    }
    e->n = 0;
}

/* ---- Normalizing ---- */

static bool ends_blank(const encoding *e)
{
    return e->n >= BLANK_BYTES && memcmp(e->word + e->n - BLANK_BYTES, blank, BLANK_BYTES) == 0;
}

static void append(encoding *e, const char *text, size_t n)
{
    bool is_blank = n == BLANK_BYTES && memcmp(text, blank, BLANK_BYTES) == 0;
    if ((e->u->pieces->words && is_blank && !ends_blank(e)) || e->n + n > WORD_BYTES)
        flush_word(e);
    memcpy(e->word + e->n, text, n);
    e->n += n;
}

/* A character of the normalized text. */
static void take_character(encoding *e, const char *text, size_t n, bool *in_word, bool *begun)
{
    const sentencepiece *p = e->u->pieces;
    bool is_blank = n == 1 && *text == ' ', merges = e->u->merges_blanks;
    bool starts = !is_blank && !*in_word && (merges || (p->space_prefix && !*begun));
    if (starts || (is_blank && !merges))
        append(e, blank, BLANK_BYTES);
    if (!is_blank)
        append(e, text, n);
    *begun |= starts;
    *in_word = !is_blank;
}

static void encode(encoding *e, const char *text, size_t n)
{
    static const char broken[] = "\xEF\xBF\xBD"; /* U+FFFD */
    bool in_word = false, begun = false;
    for (size_t at = 0; at < n;) {
        gguf_string by = {text + at, 1};
        size_t taken = charmap_match(&e->u->map, text + at, n - at, &by);
        if (taken == 0) {
            int length = utf8_length((const uint8_t *)text + at, n - at);
            taken = length > 0 ? (size_t)length : 1;
            by = length > 0 ? (gguf_string){text + at, taken} : (gguf_string){broken, 3};
        }
        for (size_t i = 0; i < by.n_bytes;) {
            int length = utf8_length((const uint8_t *)by.text + i, by.n_bytes - i);
            size_t bytes = length > 0 ? (size_t)length : 1;
            take_character(e, by.text + i, bytes, &in_word, &begun);
            i += bytes;
        }
        at += taken;
    }
    while (e->u->merges_blanks && ends_blank(e))
        e->n -= BLANK_BYTES;
    flush_word(e);
}

drey_status unigram_encode(const unigram *u, const char *text, size_t n, id_sink *sink,
                           drey_error *err)
{
    encoding e = {.u = u, .sink = sink};
    e.word = malloc(WORD_BYTES + 8);
    e.cuts = malloc((WORD_BYTES + 9) * sizeof *e.cuts);
    drey_status status = DREY_OK;
    if (!e.word || !e.cuts)
        status = error_set(err, DREY_ERR_MEMORY, "no memory to tokenize a text of %zu bytes", n);
    else
        encode(&e, text, n);
    free(e.word);
    free(e.cuts);
    return status;
}
