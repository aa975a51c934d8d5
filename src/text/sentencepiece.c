/* SentencePiece BPE: see sentencepiece.h. */
#include "text/sentencepiece.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "text/token_pieces.h"

/* Tokens that a text can become by merging. */
static bool mergeable(const vocab *v, int32_t id)
{
    token_type type = vocab_type(v, id);
    return type == TOKEN_NORMAL || type == TOKEN_USER_DEFINED;
}

static int32_t find_mergeable(const vocab *v, const char *text, size_t n)
{
    int32_t id = vocab_find(v, text, n);
    return id >= 0 && mergeable(v, id) ? id : -1;
}

/* Returns whether a token's text has a blank after another character. */
static bool blank_inside(gguf_string s)
{
    bool other = false;
    for (size_t i = 0; i < s.n_bytes;) {
        bool here = piece_is_blank(s.text + i, s.n_bytes - i);
        if (here && other)
            return true;
        other |= !here;
        i += here ? PIECE_BLANK_BYTES : 1;
    }
    return false;
}

drey_status sentencepiece_init(sentencepiece *s, const vocab *v, const gguf *g, drey_error *err)
{
    *s = (sentencepiece){.vocab = v, .words = true};
    s->scores = gguf_find_key(g, "tokenizer.ggml.scores");
    if (!s->scores || s->scores->kind != GGUF_ARRAY ||
        s->scores->n_items != (uint64_t)v->n_tokens ||
        (s->scores->item_kind != GGUF_F32 && s->scores->item_kind != GGUF_F64))
        FAIL(err, DREY_ERR_FORMAT,
             "tokenizer.ggml.scores does not have one number for each of the %d tokens; use a GGUF "
             "file that carries its whole tokenizer",
             v->n_tokens);
    s->space_prefix = gguf_bool(g, "tokenizer.ggml.add_space_prefix", true);
    s->unknown_id = -1;
    piece_find_bytes(v, s->byte_id);
    for (int32_t id = 0; id < v->n_tokens; id++) {
        token_type type = vocab_type(v, id);
        gguf_string text = vocab_text(v, id);
        if (type == TOKEN_UNKNOWN && s->unknown_id < 0)
            s->unknown_id = id;
        else if (mergeable(v, id) && blank_inside(text))
            s->words = false;
    }
    return DREY_OK;
}

/* Scores grow with merit, priorities fall: the float's bits, made to sort as its value does, then
 * inverted. */
static uint32_t priority_of(double score)
{
    float value = (float)score;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return UINT32_MAX;
    bits = value == 0 ? 0x80000000u : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return ~bits;
}

typedef struct rules {
    const sentencepiece *model;
    const char *text; /* the symbols' text */
} rules;

static void pair_by_score(const void *context, symbol *left, const symbol *right)
{
    const rules *r = context;
    int32_t id =
        find_mergeable(r->model->vocab, r->text + left->at, (size_t)left->n_bytes + right->n_bytes);
    if (id < 0)
        return;
    left->merged = id;
    left->priority = priority_of(gguf_item_number(r->model->scores, (uint64_t)id));
}

/* A symbol that has no token after merging. Bytes without their own token become the unknown token,
 * one for a whole run of them. */
static void fall_back(const sentencepiece *s, const uint8_t *text, size_t n, bool *unknown,
                      id_sink *sink)
{
    for (size_t i = 0; i < n; i++) {
        int32_t id = s->byte_id[text[i]];
        bool repeated = id < 0 && *unknown;
        *unknown = id < 0;
        if (id < 0)
            id = s->unknown_id;
        if (id >= 0 && !repeated)
            id_push(sink, id);
    }
}

/* text[0..n): blanks are written U+2581 already. */
static drey_status encode_word(const rules *r, merger *m, size_t n, id_sink *sink, drey_error *err)
{
    const uint8_t *text = (const uint8_t *)r->text;
    TRY(merge_begin(m, n, err));
    for (size_t i = 0; i < n;) {
        int length = utf8_length(text + i, n - i);
        size_t n_bytes = length > 0 ? (size_t)length : 1;
        merge_push(m, -1, (uint32_t)i, (uint32_t)n_bytes);
        i += n_bytes;
    }
    merge_run(m);
    bool unknown = false;
    for (int32_t i = 0; i >= 0; i = m->symbols[i].next) {
        const symbol *left = &m->symbols[i];
        int32_t id = left->id;
        if (id < 0)
            id = find_mergeable(r->model->vocab, r->text + left->at, left->n_bytes);
        if (id < 0) {
            fall_back(r->model, text + left->at, left->n_bytes, &unknown, sink);
        } else {
            id_push(sink, id);
            unknown = false;
        }
    }
    return DREY_OK;
}

/* Returns how much of text[0..n) to merge at once: blanks and the word after them, or all of it if
 * tokens may span words; never more than a bounded word. */
static size_t part_length(const sentencepiece *s, const char *text, size_t n)
{
    enum { LIMIT = MERGE_WORD_BYTES / PIECE_BLANK_BYTES - 1 };
    bool other = false;
    size_t at = 0;
    while (at < n && at < LIMIT) {
        int length = utf8_length((const uint8_t *)text + at, n - at);
        bool here = text[at] == ' ' || piece_is_blank(text + at, n - at);
        if (here && other && s->words)
            break;
        other |= !here;
        at += length > 0 ? (size_t)length : 1;
    }
    return at;
}

drey_status sentencepiece_encode(const sentencepiece *s, const char *text, size_t n, bool prefix,
                                 id_sink *sink, drey_error *err)
{
    prefix = prefix && s->space_prefix;
    size_t room =
        n < MERGE_WORD_BYTES / PIECE_BLANK_BYTES ? PIECE_BLANK_BYTES * (n + 1) : MERGE_WORD_BYTES;
    char *written = malloc(room);
    if (!written)
        FAIL(err, DREY_ERR_MEMORY, "no memory to tokenize a text of %zu bytes", n);
    rules r = {s, written};
    merger m = {.pair = pair_by_score, .rules = &r};
    drey_status status = DREY_OK;
    for (size_t at = 0; (at < n || prefix) && status == DREY_OK;) {
        size_t part = part_length(s, text + at, n - at), length = 0;
        if (prefix) {
            memcpy(written, piece_blank, PIECE_BLANK_BYTES);
            length = PIECE_BLANK_BYTES;
            prefix = false;
        }
        for (size_t i = at; i < at + part; i++) {
            if (text[i] == ' ') {
                memcpy(written + length, piece_blank, PIECE_BLANK_BYTES);
                length += PIECE_BLANK_BYTES;
            } else {
                written[length++] = text[i];
            }
        }
        status = encode_word(&r, &m, length, sink, err);
        at += part;
    }
    merge_free(&m);
    free(written);
    return status;
}
