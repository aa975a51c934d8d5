/* SentencePiece's BPE as tokenizer.json has it: see vocabulary.h.
 *
 * tokenizer.model has a score for each piece, and of two neighbours those are joined first whose
 * piece has the best one. tokenizer.json has instead pairs of pieces in the order in which they are
 * joined: all pairs of the best piece, then those of the next. So a piece's place in that order,
 * negative, is its score. */
#include <stdlib.h>
#include <string.h>

#include "convert/vocabulary.h"

#define INSTEAD "; put the model's tokenizer.model into the folder"

static const char blank[] = "▁";

/* ---- How texts are prepared ---- */

static bool is_blank(const json_value *object, const char *member)
{
    return json_member_is(object, member, blank);
}

/* Blanks become U+2581, perhaps with one in front. */
static bool read_normalizer(const json_value *step, bool *blanks, bool *in_front)
{
    const json_value *list = json_member_array(step, "normalizers");
    if (json_member_is(step, "type", "Sequence") && list) {
        for (const json_value *v = list->first; v; v = v->next)
            if (!read_normalizer(v, blanks, in_front))
                return false;
        return true;
    }
    if (json_member_is(step, "type", "Prepend") && is_blank(step, "prepend"))
        *in_front = true;
    else if (json_member_is(step, "type", "Replace") && is_blank(step, "content") &&
             json_member_is(json_member(step, "pattern"), "String", " "))
        *blanks = true;
    else
        return false;
    return true;
}

/* The same as a pre-tokenizer, which must not cut. */
static bool read_metaspace(const json_value *step, bool *blanks, bool *in_front)
{
    bool cuts, front;
    if (!json_member_is(step, "type", "Metaspace") || !is_blank(step, "replacement"))
        return false;
    cuts = !json_member_bool(step, "split", &cuts) || cuts;
    *blanks = true;
    if (json_member(step, "prepend_scheme"))
        *in_front = !json_member_is(step, "prepend_scheme", "never");
    else
        *in_front = !json_member_bool(step, "add_prefix_space", &front) || front;
    return !cuts;
}

static drey_status check_steps(const json_value *tokenizer, bool *in_front, drey_error *err)
{
    const json_value *normalizer = json_member(tokenizer, "normalizer");
    const json_value *pre = json_member(tokenizer, "pre_tokenizer");
    bool blanks = false, merges_ignored;
    *in_front = false;
    json_member_bool(json_member(tokenizer, "model"), "ignore_merges", &merges_ignored);
    bool good = (!normalizer || read_normalizer(normalizer, &blanks, in_front)) &&
                (!pre || (!blanks && !*in_front && read_metaspace(pre, &blanks, in_front)));
    if (!good || !blanks || merges_ignored)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "tokenizer.json prepares texts in another way than SentencePiece" INSTEAD);
    return DREY_OK;
}

/* ---- Pieces ---- */

typedef struct named_id {
    gguf_string text;
    int32_t id;
} named_id;

static int by_text(const void *a, const void *b)
{
    const gguf_string *x = &((const named_id *)a)->text, *y = &((const named_id *)b)->text;
    size_t n = x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes;
    int order = memcmp(x->text, y->text, n);
    return order ? order : (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

/* "<0x0A>" */
static bool is_byte(const json_value *v)
{
    static const char digits[] = "0123456789ABCDEFabcdef";
    return v->n_key == 6 && memcmp(v->key, "<0x", 3) == 0 &&
           memchr(digits, v->key[3], sizeof digits - 1) &&
           memchr(digits, v->key[4], sizeof digits - 1) && v->key[5] == '>';
}

/* names: as many as the vocabulary has. */
static drey_status set_pieces(token_list *t, const json_value *vocab, named_id *names,
                              drey_error *err)
{
    enum { NORMAL = 1, BYTE = 6 };
    size_t n = 0;
    for (const json_value *v = vocab->first; v; v = v->next) {
        const gguf_string text = {v->key, v->n_key};
        if (v->type != JSON_NUMBER || !v->is_integer)
            FAIL(err, DREY_ERR_FORMAT, "a token of tokenizer.json has no number");
        TRY(tokens_set(t, v->integer, text, is_byte(v) ? BYTE : NORMAL, 0, err));
        names[n++] = (named_id){text, (int32_t)v->integer};
    }
    qsort(names, n, sizeof *names, by_text);
    return DREY_OK;
}

/* Writes the piece that a merge makes, "left right" or a pair, to out[0..n). */
static bool join(const json_value *merge, char *out, size_t capacity, size_t *n)
{
    const json_value *left = merge->type == JSON_ARRAY ? merge->first : NULL;
    const json_value *right = left ? left->next : NULL;
    const char *at = merge->type == JSON_STRING ? memchr(merge->text, ' ', merge->n) : NULL;
    gguf_string a, b;
    if (at) {
        a = (gguf_string){merge->text, (size_t)(at - merge->text)};
        b = (gguf_string){at + 1, merge->n - a.n_bytes - 1};
    } else if (right && left->type == JSON_STRING && right->type == JSON_STRING) {
        a = (gguf_string){left->text, left->n};
        b = (gguf_string){right->text, right->n};
    } else {
        return false;
    }
    *n = a.n_bytes + b.n_bytes;
    if (*n > capacity)
        return false;
    memcpy(out, a.text, a.n_bytes);
    memcpy(out + a.n_bytes, b.text, b.n_bytes);
    return true;
}

/* Pairs of a piece follow each other; a piece that comes again has two places. */
static drey_status set_scores(token_list *t, const json_value *merges, const named_id *names,
                              size_t n_names, drey_error *err)
{
    enum { LONGEST = 1024 };
    char text[LONGEST];
    float place = 0;
    int32_t last = -1;
    named_id key = {.text = {text, 0}};
    for (int32_t i = 0; i < t->n; i++)
        t->scores[i] = 1; /* it has no place yet */
    for (const json_value *v = merges->first; v; v = v->next) {
        if (!join(v, text, sizeof text, &key.text.n_bytes))
            FAIL(err, DREY_ERR_FORMAT, "a merge of tokenizer.json is no pair of texts");
        const named_id *made = bsearch(&key, names, n_names, sizeof *names, by_text);
        if (made && made->id == last)
            continue;
        if (!made || t->scores[made->id] <= 0)
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "the merges of tokenizer.json are in no order of pieces" INSTEAD);
        last = made->id;
        t->scores[last] = 0 - place++; /* never -0 */
    }
    for (int32_t i = 0; i < t->n; i++)
        if (t->scores[i] > 0)
            t->scores[i] = 0 - place; /* characters, which nothing is joined to */
    return DREY_OK;
}

drey_status merged_pieces(token_list *t, const json_value *tokenizer, bool *in_front,
                          drey_error *err)
{
    const json_value *model = json_member(tokenizer, "model");
    const json_value *vocab = json_member(model, "vocab");
    const json_value *merges = json_member_array(model, "merges");
    if (!vocab || vocab->type != JSON_OBJECT || vocab->n == 0 || !merges || merges->n == 0)
        FAIL(err, DREY_ERR_FORMAT, "tokenizer.json has no vocabulary, or no merges");
    TRY(check_steps(tokenizer, in_front, err));
    named_id *names = malloc(vocab->n * sizeof *names);
    if (!names)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a vocabulary of %u tokens", vocab->n);
    drey_status status = set_pieces(t, vocab, names, err);
    if (status == DREY_OK)
        status = set_scores(t, merges, names, vocab->n, err);
    free(names);
    return status;
}
