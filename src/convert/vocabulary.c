/* Tokens, their types, scores and merges: see vocabulary.h. */
#include "convert/vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, MOST_TOKENS = 1 << 22 };
static const float added_score = -1000, padding_score = -10000;

/* ---- The list ---- */

struct kept_text {
    struct kept_text *next;
    char text[];
};

/* A text of n bytes that lives as long as the list. NULL: no memory. */
static char *tokens_keep(token_list *t, size_t n)
{
    struct kept_text *kept = malloc(sizeof *kept + n + 1);
    if (!kept)
        return NULL;
    kept->next = t->kept;
    t->kept = kept;
    return kept->text;
}

static drey_status tokens_init(token_list *t, int64_t n, drey_error *err)
{
    *t = (token_list){.n = (int32_t)n};
    t->texts = calloc((size_t)n, sizeof *t->texts);
    t->scores = calloc((size_t)n, sizeof *t->scores);
    t->types = calloc((size_t)n, sizeof *t->types);
    if (!t->texts || !t->scores || !t->types)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a vocabulary of %lld tokens", (long long)n);
    return DREY_OK;
}

static void tokens_free(token_list *t)
{
    while (t->kept) {
        struct kept_text *next = t->kept->next;
        free(t->kept);
        t->kept = next;
    }
    free(t->texts);
    free(t->scores);
    free(t->types);
    *t = (token_list){0};
}

drey_status tokens_set(token_list *t, int64_t id, gguf_string text, int32_t type, float score,
                       drey_error *err)
{
    if (id < 0 || id >= t->n)
        FAIL(err, DREY_ERR_FORMAT,
             "the tokenizer has token %lld, and vocab_size of config.json is %d", (long long)id,
             t->n);
    t->texts[id] = text;
    t->types[id] = type;
    t->scores[id] = score;
    return DREY_OK;
}

drey_status tokens_pad(token_list *t, drey_error *err)
{
    for (int32_t i = 0; i < t->n; i++) {
        if (t->texts[i].text)
            continue;
        char *name = tokens_keep(t, 24);
        if (!name)
            FAIL(err, DREY_ERR_MEMORY, "no memory for the names of tokens");
        size_t n = (size_t)snprintf(name, 24, "[PAD%d]", i);
        TRY(tokens_set(t, i, (gguf_string){name, n}, UNUSED, padding_score, err));
    }
    return DREY_OK;
}

/* ---- Added tokens ---- */

/* Some models do not say of tokens that are markup that they are special. */
static bool looks_special(const char *text, size_t n)
{
    static const char *const names[] = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
    static const char *const ends[][2] = {{"<|", "|>"}, {"<｜", "｜>"}, {"<unused", ">"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], text) == 0)
            return true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n_first = strlen(ends[i][0]), n_last = strlen(ends[i][1]);
        if (n >= n_first && n >= n_last && memcmp(text, ends[i][0], n_first) == 0 &&
            memcmp(text + n - n_last, ends[i][1], n_last) == 0)
            return true;
    }
    return false;
}

/* Puts out the text with blanks instead of U+2581. */
static drey_status plain_text(token_list *t, const json_value *content, gguf_string *out,
                              drey_error *err)
{
    static const char blank[] = "▁";
    enum { N_BLANK = sizeof blank - 1 };
    char *text = tokens_keep(t, content->n);
    size_t n = 0;
    if (!text)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the texts of tokens");
    for (size_t i = 0; i < content->n;) {
        bool is_blank = i + N_BLANK <= content->n && memcmp(content->text + i, blank, N_BLANK) == 0;
        text[n++] = is_blank ? ' ' : content->text[i];
        i += is_blank ? N_BLANK : 1;
    }
    *out = (gguf_string){text, n};
    return DREY_OK;
}

static drey_status add_token(token_list *t, const json_value *about, int64_t id, drey_error *err)
{
    const json_value *content = json_member(about, "content");
    bool special;
    if (id >= t->n && t->skips_extra)
        return DREY_OK;
    if (!content || content->type != JSON_STRING)
        FAIL(err, DREY_ERR_FORMAT, "added token %lld of the tokenizer has no text", (long long)id);
    gguf_string text = {content->text, content->n};
    json_member_bool(about, "special", &special);
    special = special || looks_special(content->text, content->n);
    if (!special)
        TRY(plain_text(t, content, &text, err));
    return tokens_set(t, id, text, special ? CONTROL : USER_DEFINED, added_score, err);
}

drey_status tokens_add(token_list *t, const hub_folder *f, drey_error *err)
{
    const json_value *added = json_member_array(f->tokenizer.root, "added_tokens");
    const json_value *more = json_member(f->tokenizer_config.root, "added_tokens_decoder");
    for (const json_value *v = added ? added->first : NULL; v; v = v->next) {
        const json_value *id = json_member(v, "id");
        if (!id || id->type != JSON_NUMBER || !id->is_integer)
            FAIL(err, DREY_ERR_FORMAT, "an added token of tokenizer.json has no id");
        TRY(add_token(t, v, id->integer, err));
    }
    if (!more || more->type != JSON_OBJECT)
        return DREY_OK;
    for (const json_value *v = more->first; v; v = v->next) {
        char *end;
        long long id = strtoll(v->key, &end, 10);
        if (end == v->key || *end)
            FAIL(err, DREY_ERR_FORMAT, "added_tokens_decoder has an id that is no number");
        TRY(add_token(t, v, id, err));
    }
    return DREY_OK;
}

drey_status tokens_add_listed(token_list *t, const hub_folder *f, drey_error *err)
{
    const json_value *list = f->added.root;
    for (const json_value *v = list ? list->first : NULL; v; v = v->next) {
        if (v->type != JSON_NUMBER || !v->is_integer)
            FAIL(err, DREY_ERR_FORMAT, "a token of added_tokens.json has no number");
        if (v->integer < t->n) /* as far as the embedding goes */
            TRY(tokens_set(t, v->integer, (gguf_string){v->key, v->n_key}, USER_DEFINED,
                           added_score, err));
    }
    return DREY_OK;
}

void tokens_put(const token_list *t, new_gguf *g, const char *model, const char *pre)
{
    new_gguf_text(g, "tokenizer.ggml.model", model);
    new_gguf_text(g, "tokenizer.ggml.pre", pre);
    new_gguf_texts(g, "tokenizer.ggml.tokens", t->texts, (uint64_t)t->n);
    new_gguf_i32s(g, "tokenizer.ggml.token_type", t->types, (uint64_t)t->n);
}

/* ---- Byte-level BPE ---- */

/* "left right", with no blank inside either; a pair of texts, or both in one. */
static drey_status merge_text(token_list *t, const json_value *v, gguf_string *out, drey_error *err)
{
    static const char blank[] = "Ġ"; /* a byte that is a blank is written so */
    const json_value *left = v->type == JSON_ARRAY ? v->first : NULL;
    const json_value *right = left ? left->next : NULL;
    if (v->type == JSON_STRING) {
        *out = (gguf_string){v->text, v->n};
        return DREY_OK;
    }
    if (!right || right->next || left->type != JSON_STRING || right->type != JSON_STRING)
        FAIL(err, DREY_ERR_FORMAT, "a merge of tokenizer.json is no pair of texts");
    char *text = tokens_keep(t, 2 * ((size_t)left->n + right->n) + 1);
    size_t n = 0;
    if (!text)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the merges of a vocabulary");
    for (const json_value *part = left; part; part = part->next) {
        for (size_t i = 0; i < part->n; i++)
            if (part->text[i] == ' ') {
                memcpy(text + n, blank, sizeof blank - 1);
                n += sizeof blank - 1;
            } else {
                text[n++] = part->text[i];
            }
        if (part == left)
            text[n++] = ' ';
    }
    *out = (gguf_string){text, n};
    return DREY_OK;
}

static drey_status put_merges(token_list *t, const json_value *model, new_gguf *g, drey_error *err)
{
    const json_value *list = json_member_array(model, "merges");
    if (!list || list->n == 0)
        FAIL(err, DREY_ERR_FORMAT, "tokenizer.json has no merges");
    gguf_string *merges = malloc(list->n * sizeof *merges);
    if (!merges)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the merges of a vocabulary");
    drey_status status = DREY_OK;
    uint64_t n = 0;
    for (const json_value *v = list->first; v && status == DREY_OK; v = v->next)
        status = merge_text(t, v, &merges[n++], err);
    if (status == DREY_OK)
        new_gguf_texts(g, "tokenizer.ggml.merges", merges, n);
    free(merges);
    return status;
}

drey_status tokens_set_all(token_list *t, const json_value *vocab, drey_error *err)
{
    for (const json_value *v = vocab->first; v; v = v->next) {
        if (v->type != JSON_NUMBER || !v->is_integer)
            FAIL(err, DREY_ERR_FORMAT, "a token of the tokenizer has no number");
        TRY(tokens_set(t, v->integer, (gguf_string){v->key, v->n_key}, NORMAL, 0, err));
    }
    return DREY_OK;
}

static drey_status bpe_keys(token_list *t, const hub_folder *f, new_gguf *g, drey_error *err)
{
    const json_value *model = json_member(f->tokenizer.root, "model");
    const json_value *vocab = json_member(model, "vocab");
    const char *pre;
    if (!json_member_is(model, "type", "BPE") || !vocab || vocab->type != JSON_OBJECT)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "tokenizer.json is no BPE, and there is no tokenizer.model");
    TRY(pretokenizer_name(f->tokenizer.root, &pre, err));
    TRY(tokens_set_all(t, vocab, err));
    TRY(tokens_add(t, f, err));
    TRY(tokens_pad(t, err));
    tokens_put(t, g, "gpt2", pre);
    return put_merges(t, model, g, err);
}

/* ---- SentencePiece ---- */

static drey_status set_pieces(token_list *t, const hub_folder *f, piece_settings *settings,
                              drey_error *err)
{
    piece_reader r;
    text_piece piece;
    bool more;
    pieces_begin(&r, f->pieces, f->n_pieces, settings);
    TRY(pieces_next(&r, &piece, &more, settings, err));
    for (int64_t id = 0; more; id++) {
        /* What the trainer was given is no markup; added tokens say what is. */
        int32_t type = piece.type == USER_DEFINED ? NORMAL : piece.type;
        TRY(tokens_set(t, id, piece.text, type, piece.score, err));
        TRY(pieces_next(&r, &piece, &more, settings, err));
    }
    return DREY_OK;
}

/* Returns whether there is SentencePiece's BPE, here or there. */
static bool is_sentencepiece(const hub_folder *f)
{
    const json_value *model = json_member(f->tokenizer.root, "model");
    bool bytes; /* stand for characters that are no piece */
    json_member_bool(model, "byte_fallback", &bytes);
    return f->pieces || (bytes && json_member_is(model, "type", "BPE"));
}

static drey_status sentencepiece_keys(const family *a, token_list *t, const hub_folder *f,
                                      new_gguf *g, drey_error *err)
{
    piece_settings settings = {.method = PIECES_BPE};
    bool blank, in_front = true;
    TRY(f->pieces ? set_pieces(t, f, &settings, err)
                  : merged_pieces(t, f->tokenizer.root, &in_front, err));
    if (settings.method != PIECES_BPE)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "tokenizer.model is not BPE (its method is %d), which is not converted",
             settings.method);
    t->skips_extra = true;
    TRY(tokens_add(t, f, err));
    TRY(tokens_pad(t, err));
    tokens_put(t, g, "llama", "default");
    new_gguf_f32s(g, "tokenizer.ggml.scores", t->scores, (uint64_t)t->n);
    if (a->no_blank)
        new_gguf_bool(g, "tokenizer.ggml.add_space_prefix", false);
    else if (json_member_bool(f->tokenizer_config.root, "add_prefix_space", &blank) || !in_front)
        new_gguf_bool(g, "tokenizer.ggml.add_space_prefix", blank);
    return DREY_OK;
}

/* T5's. */
static drey_status unigram_keys(token_list *t, const hub_folder *f, new_gguf *g, drey_error *err)
{
    piece_settings s;
    TRY(set_pieces(t, f, &s, err));
    if (s.method != PIECES_UNIGRAM)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the SentencePiece vocabulary of the folder is no unigram one (its method is %d), "
             "which is not converted for T5",
             s.method);
    if (s.blanks_end_words || !s.escapes_blanks)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the SentencePiece vocabulary of the folder writes blanks in a way that drey does "
             "not know");
    TRY(tokens_add_listed(t, f, err));
    TRY(tokens_pad(t, err));
    tokens_put(t, g, "t5", "default");
    new_gguf_f32s(g, "tokenizer.ggml.scores", t->scores, (uint64_t)t->n);
    new_gguf_bool(g, "tokenizer.ggml.add_space_prefix", s.dummy_prefix);
    new_gguf_bool(g, "tokenizer.ggml.remove_extra_whitespaces", s.merges_blanks);
    if (s.charsmap.text)
        new_gguf_u8s(g, "tokenizer.ggml.precompiled_charsmap", (const uint8_t *)s.charsmap.text,
                     s.charsmap.n_bytes);
    return DREY_OK;
}

/* ---- All ---- */

/* Counts as many tokens as the embedding has rows. */
static drey_status count_tokens(const hub_folder *f, int64_t *n, drey_error *err)
{
    const json_value *vocab = json_member(json_member(f->tokenizer.root, "model"), "vocab");
    bool there;
    vocab = vocab ? vocab : f->vocab.root;
    TRY(config_int(f, "vocab_size", 1, MOST_TOKENS, n, &there, err));
    if (!there && vocab)
        *n = vocab->n;
    if (!there && !vocab)
        FAIL(err, DREY_ERR_FORMAT, "config.json has no vocab_size");
    return DREY_OK;
}

drey_status vocabulary_keys(const family *a, const hub_folder *f, new_gguf *g, drey_error *err)
{
    int64_t n;
    token_list t = {0};
    bool unigram = a->naming == NAMING_T5;
    if (unigram && !f->pieces)
        FAIL(err, DREY_ERR_IO,
             "the folder has neither spiece.model nor tokenizer.model, of which T5's tokenizer is "
             "made; fetch it too");
    if (!f->pieces && !f->tokenizer.root && !f->vocab.root)
        FAIL(err, DREY_ERR_IO,
             "the folder has no tokenizer: neither tokenizer.json nor "
             "tokenizer.model");
    TRY(count_tokens(f, &n, err));
    drey_status status = tokens_init(&t, n, err);
    if (status == DREY_OK)
        status = unigram               ? unigram_keys(&t, f, g, err)
                 : is_sentencepiece(f) ? sentencepiece_keys(a, &t, f, g, err)
                 : f->tokenizer.root   ? bpe_keys(&t, f, g, err)
                                       : pair_keys(a, &t, f, g, err);
    if (status == DREY_OK)
        status = special_keys(a, f, g, &t, err);
    tokens_free(&t);
    return status;
}
