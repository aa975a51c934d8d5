/* Tokenizers: what a GGUF file says about its own, and the way from text to ids and back. */
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "drey/drey_model.h"
#include "text/bpe.h"
#include "text/token_pieces.h"
#include "text/sentencepiece.h"
#include "text/special.h"
#include "text/token_marks.h"
#include "text/unigram.h"

enum { END_TOKENS = 32 };

struct tokenizer {
    vocab vocab;
    special_tokens special;
    bool merges;     /* bpe is in use, else sentencepiece */
    bool byte_level; /* bpe over bytes; else over characters */
    bool by_score;   /* tokens that unigram chooses */
    bpe bpe;
    sentencepiece sentencepiece;
    unigram unigram;
    int32_t bos, eos;
    bool wants_bos, wants_eos;
    bool takes_blanks; /* special tokens do: see blanks_taken */
    int32_t ends[END_TOKENS];
    size_t n_ends;
    int32_t *suppressed; /* [n_suppressed], ascending */
    size_t n_suppressed;
    size_t longest_piece;
};

static drey_status check_id(const tokenizer *t, const char *key, int64_t value, int32_t *id,
                            drey_error *err)
{
    *id = -1;
    if (value < 0 || value == UINT32_MAX) /* some converters write "none" so */
        return DREY_OK;
    if (value >= t->vocab.n_tokens)
        FAIL(err, DREY_ERR_FORMAT, "%s is %lld, but the file has only %d tokens; it is broken", key,
             (long long)value, t->vocab.n_tokens);
    *id = (int32_t)value;
    return DREY_OK;
}

/* fallback: where the file does not say; -1: none. */
static drey_status read_id(const tokenizer *t, const gguf *g, const char *key, int32_t fallback,
                           int32_t *id, drey_error *err)
{
    return check_id(t, key, gguf_int(g, key, fallback), id, err);
}

static int32_t find_text(const tokenizer *t, const char *text)
{
    return vocab_find(&t->vocab, text, strlen(text));
}

/* Returns whether a special token ends no answer. In OpenAI's harmony <|end|> ends a message and
 * not the answer, which may have several: an answer ends with <|return|>, or with <|call|>, which
 * is no such token elsewhere. Solar's are <|flush|> and <|calls|>. */
static bool ends_nothing(const tokenizer *t, const char *name)
{
    bool harmony = find_text(t, "<|return|>") >= 0 && find_text(t, "<|call|>") >= 0;
    bool solar = find_text(t, "<|flush|>") >= 0 && find_text(t, "<|calls|>") >= 0;
    if (strcmp(name, "</s>") == 0) /* a tag of HTML, to Gemma */
        return find_text(t, "<|tool_response>") >= 0;
    if (strcmp(name, "<|end|>") == 0)
        return harmony || solar;
    return strcmp(name, "<|call|>") == 0 && !harmony;
}

static void add_end(tokenizer *t, int32_t id)
{
    if (id >= 0 && t->n_ends < END_TOKENS && !tokenizer_is_end(t, id))
        t->ends[t->n_ends++] = id;
}

/* The ids of SentencePiece's own trainer, if the file does not name one. */
static int32_t default_id(const tokenizer *t, int32_t id)
{
    bool is_control = id < t->vocab.n_tokens && vocab_type(&t->vocab, id) == TOKEN_CONTROL;
    return !t->merges && is_control ? id : -1;
}

static void add_named_ends(tokenizer *t)
{
    for (const token_name *known = token_names; known->name; known++) {
        int32_t id = known->ends ? find_text(t, known->name) : -1;
        if (id < 0 || ends_nothing(t, known->name))
            continue;
        token_type type = vocab_type(&t->vocab, id);
        bool markup = strcmp(known->name, "</s>") == 0; /* a tag of HTML, to Gemma */
        if (type == TOKEN_CONTROL || (type == TOKEN_USER_DEFINED && !markup))
            add_end(t, id);
    }
}

static drey_status read_ends(tokenizer *t, const gguf *g, drey_error *err)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    int32_t bos = t->by_score ? -1 : default_id(t, 1), eos = default_id(t, t->by_score ? 1 : 2), id;
    TRY(read_id(t, g, "tokenizer.ggml.bos_token_id", bos, &t->bos, err));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const gguf_key *key = gguf_find_key(g, keys[i]);
        bool is_list = key && gguf_is_int_array(key);
        for (uint64_t k = 0; k < (is_list ? key->n_items : 1); k++) {
            if (is_list)
                TRY(check_id(t, keys[i], gguf_item_int(key, k), &id, err));
            else
                TRY(read_id(t, g, keys[i], i == 0 ? eos : -1, &id, err));
            if (i == 0 && t->eos < 0)
                t->eos = id;
            add_end(t, id);
        }
    }
    static const char *const holes[] = {"tokenizer.ggml.fim_pad_token_id",
                                        "tokenizer.ggml.fim_rep_token_id",
                                        "tokenizer.ggml.fim_sep_token_id"};
    for (size_t i = 0; i < sizeof holes / sizeof *holes; i++) {
        int64_t hole = gguf_int(g, holes[i], -1);
        if (hole >= 0 && hole < t->vocab.n_tokens)
            add_end(t, (int32_t)hole);
    }
    add_named_ends(t);
    return DREY_OK;
}

bool tokenizer_names_end(gguf_string text)
{
    bool depends = gguf_is_text(text, "<|end|>") || gguf_is_text(text, "<|call|>");
    for (const token_name *known = token_names; known->name && !depends; known++)
        if (known->ends && gguf_is_text(text, known->name))
            return true;
    return false;
}

void tokenizer_add_end(tokenizer *t, int32_t id)
{
    gguf_string text = vocab_text(&t->vocab, id);
    if (!gguf_is_text(text, "<|end|>") || !ends_nothing(t, "<|end|>"))
        add_end(t, id);
}

/* Returns how many blanks at the beginning of text[0..n) belong to the special token before it. Phi
 * 3's special tokens include them, although its files do not say so. */
static size_t blanks_taken(const tokenizer *t, gguf_string token, const char *text, size_t n)
{
    static const char *const others[] = {"<unk>", "<s>", "<|endoftext|>"};
    bool takes = t->takes_blanks;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        takes &= !gguf_is_text(token, others[i]);
    size_t taken = 0;
    while (takes && taken < n && (text[taken] == ' ' || (text[taken] >= 9 && text[taken] <= 13)))
        taken++;
    return taken;
}

static drey_status resolve_marks(tokenizer *t, const gguf *g, drey_error *err)
{
    bool *from_merges = NULL;
    if (t->merges) {
        from_merges = calloc((size_t)t->vocab.n_tokens, sizeof *from_merges);
        if (!from_merges)
            FAIL(err, DREY_ERR_MEMORY, "no memory for %d tokens", t->vocab.n_tokens);
        for (uint32_t i = 0; i < t->bpe.n_merges; i++) {
            int32_t id = t->bpe.merges[i].merged; /* texts that are no tokens come after them */
            if (id < t->vocab.n_tokens)
                from_merges[id] = true;
        }
    }
    marks_resolve(&t->vocab, g, from_merges);
    free(from_merges);
    return DREY_OK;
}

/* Other kinds of tokenizers, by the names that files have for them. */
static const char *kind_of(gguf_string model)
{
    static const struct {
        const char *name, *kind;
    } kinds[] = {{"bert", "WordPiece"},
                 {"rwkv", "RWKV's longest match"},
                 {"plamo2", "PLaMo's table of suffixes"},
                 {"whitespace", "BPE over characters"},
                 {"hybriddna", "BPE with parts for DNA"},
                 {"none", "the file has no vocabulary"},
                 {"no_vocab", "the file has no vocabulary"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (gguf_is_text(model, kinds[i].name))
            return kinds[i].kind;
    return NULL;
}

/* The tokenizer model that the file names. */
static drey_status read_kind(tokenizer *t, const gguf *g, drey_error *err)
{
    TRY(tokenizer_keys_check(g, err));
    gguf_string model = gguf_text(g, "tokenizer.ggml.model");
    const char *kind = kind_of(model);
    if (!model.text)
        FAIL(err, DREY_ERR_FORMAT,
             "the file has no tokenizer (tokenizer.ggml.model); use a GGUF file that carries its "
             "tokenizer");
    t->byte_level = gguf_is_text(model, "gpt2");
    t->merges = t->byte_level || gguf_is_text(model, "gemma4");
    t->by_score = gguf_is_text(model, "t5");
    if (!t->merges && !t->by_score && !gguf_is_text(model, "llama"))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the tokenizer model \"%s\" is not supported%s%s%s; use a model with \"gpt2\" "
             "(byte-level BPE), \"llama\" (SentencePiece BPE), \"gemma4\" (BPE over characters) "
             "or \"t5\" (unigram)",
             gguf_printable((char[64]){0}, 64, model.text, model.n_bytes), kind ? " (" : "",
             kind ? kind : "", kind ? ")" : "");
    return DREY_OK;
}

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static drey_status read_suppressed(tokenizer *t, const gguf *g, drey_error *err)
{
    static const char name[] = "tokenizer.ggml.suppress_tokens";
    const gguf_key *key = gguf_find_key(g, name);
    if (!key || (gguf_is_int_array(key) && key->n_items == 0))
        return DREY_OK;
    if (!gguf_is_int_array(key) || key->n_items > (uint64_t)t->vocab.n_tokens)
        FAIL(err, DREY_ERR_FORMAT,
             "%s is no list of at most %d ids; the file is broken, fetch it again", name,
             t->vocab.n_tokens);
    t->suppressed = malloc(key->n_items * sizeof *t->suppressed);
    if (!t->suppressed)
        FAIL(err, DREY_ERR_MEMORY, "no memory for %zu ids", (size_t)key->n_items);
    for (uint64_t i = 0; i < key->n_items; i++) {
        int32_t id;
        TRY(check_id(t, name, gguf_item_int(key, i), &id, err));
        if (id >= 0)
            t->suppressed[t->n_suppressed++] = id;
    }
    qsort(t->suppressed, t->n_suppressed, sizeof *t->suppressed, ascending);
    return DREY_OK;
}

/* Decides whether a text gets the tokens of its beginning and end. */
static void read_wants(tokenizer *t, const gguf *g)
{
    bool characters = t->merges && !t->byte_level, llama = !t->merges && !t->by_score;
    bool wants_bos = llama || (t->byte_level && t->bpe.pretokenizer.family->wants_bos);
    t->wants_bos =
        t->bos >= 0 && (characters || gguf_bool(g, "tokenizer.ggml.add_bos_token", wants_bos));
    bool reads_end = t->by_score || gguf_is_text(gguf_text(g, "general.architecture"), "bart");
    t->wants_eos = reads_end && t->eos >= 0 && gguf_bool(g, "tokenizer.ggml.add_eos_token", true);
}

static drey_status read_model(tokenizer *t, const gguf *g, drey_error *err)
{
    TRY(read_kind(t, g, err));
    bool llama = !t->merges && !t->by_score;
    hash_key key;
    hash_key_draw(&key);
    TRY(vocab_init(&t->vocab, g, &key, err));
    if (t->merges)
        TRY(bpe_init(&t->bpe, &t->vocab, !t->byte_level, g, err));
    TRY(resolve_marks(t, g, err));
    TRY(special_init(&t->special, &t->vocab, err));
    if (!t->merges)
        TRY(sentencepiece_init(&t->sentencepiece, &t->vocab, g, err));
    if (t->by_score)
        TRY(unigram_init(&t->unigram, &t->sentencepiece, g, err));
    TRY(read_ends(t, g, err));
    TRY(read_suppressed(t, g, err));
    t->takes_blanks = llama && gguf_is_text(gguf_text(g, "general.architecture"), "phi3");
    read_wants(t, g);
    return DREY_OK;
}

drey_status tokenizer_open(tokenizer **out, const gguf *g, drey_error *err)
{
    *out = NULL;
    tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a tokenizer");
    t->bos = t->eos = -1;
    drey_status status = read_model(t, g, err);
    if (status != DREY_OK) {
        tokenizer_close(&t);
        return status;
    }
    for (int32_t id = 0; id < t->vocab.n_tokens; id++) {
        /* A token never stands for more bytes than its text has. */
        size_t n = vocab_text(&t->vocab, id).n_bytes;
        if (n > t->longest_piece)
            t->longest_piece = n;
    }
    *out = t;
    return DREY_OK;
}

void tokenizer_close(tokenizer **t)
{
    if (!*t)
        return;
    bpe_free(&(*t)->bpe);
    special_free(&(*t)->special);
    vocab_free(&(*t)->vocab);
    free((*t)->suppressed);
    free(*t);
    *t = NULL;
}

size_t tokenizer_bytes(const tokenizer *t)
{
    return sizeof *t + vocab_bytes(&t->vocab) + t->special.n * sizeof *t->special.tokens +
           t->n_suppressed * sizeof *t->suppressed + (t->merges ? bpe_bytes(&t->bpe) : 0);
}

int32_t tokenizer_n_vocab(const tokenizer *t)
{
    return t->vocab.n_tokens;
}

int32_t tokenizer_bos(const tokenizer *t)
{
    return t->bos;
}

int32_t tokenizer_eos(const tokenizer *t)
{
    return t->eos;
}

bool tokenizer_wants_bos(const tokenizer *t)
{
    return t->wants_bos;
}

bool tokenizer_is_end(const tokenizer *t, int32_t id)
{
    for (size_t i = 0; i < t->n_ends; i++)
        if (t->ends[i] == id)
            return true;
    return false;
}

bool tokenizer_is_special(const tokenizer *t, int32_t id)
{
    if (id < 0 || id >= t->vocab.n_tokens)
        return false;
    token_type type = vocab_type(&t->vocab, id);
    return type == TOKEN_CONTROL || type == TOKEN_UNKNOWN;
}

const int32_t *tokenizer_suppressed(const tokenizer *t, size_t *n)
{
    *n = t->n_suppressed;
    return t->suppressed;
}

bool tokenizer_is_suppressed(const tokenizer *t, int32_t id)
{
    return t->n_suppressed > 0 &&
           bsearch(&id, t->suppressed, t->n_suppressed, sizeof id, ascending) != NULL;
}

size_t tokenizer_longest_piece(const tokenizer *t)
{
    return t->longest_piece;
}

/* Text between special tokens. *begins: only control tokens are before it. */
static drey_status encode_plain(const tokenizer *t, const char *text, size_t n, bool *begins,
                                id_sink *sink, drey_error *err)
{
    bool prefix = *begins;
    *begins = false;
    if (t->merges)
        return bpe_encode(&t->bpe, text, n, sink, err);
    if (t->by_score)
        return unigram_encode(&t->unigram, text, n, sink, err);
    return sentencepiece_encode(&t->sentencepiece, text, n, prefix, sink, err);
}

/* The special token that begins with text[0]; all: control tokens too, within the first n_control
 * bytes. NULL: none. */
static const struct special_token *match(const tokenizer *t, const char *text, size_t n, bool all,
                                         size_t n_control)
{
    if (!all || n_control >= n)
        return special_match(&t->special, text, n, all);
    const struct special_token *user = special_match(&t->special, text, n, false);
    const struct special_token *any = special_match(&t->special, text, n_control, true);
    return any && (!user || any->text.n_bytes >= user->text.n_bytes) ? any : user;
}

static drey_status encode_parts(const tokenizer *t, const parted_text *x, int flags, id_sink *sink,
                                drey_error *err)
{
    const char *text = x->text;
    const text_range *plain = x->plain, *end = x->n_plain > 0 ? plain + x->n_plain : plain;
    bool all = flags & DREY_TOKENIZE_SPECIAL;
    if ((flags & DREY_TOKENIZE_BOS) && t->wants_bos)
        id_push(sink, t->bos);
    /* SentencePiece adds its blank where a text begins, and after control tokens. */
    bool begins = !(flags & DREY_TOKENIZE_INNER);
    size_t done = 0; /* text[done..at) has no special token */
    for (size_t at = 0; at < x->n_bytes;) {
        while (plain < end && plain->end <= at)
            plain++;
        size_t border = plain < end ? max_size(plain->begin, at) : x->n_bytes;
        const struct special_token *s = match(t, text + at, x->n_bytes - at, all, border - at);
        if (!s) {
            at++;
            continue;
        }
        if (at > done || (s->user_defined && begins))
            TRY(encode_plain(t, text + done, at - done, &begins, sink, err));
        id_push(sink, s->id);
        begins = !s->user_defined;
        at += s->text.n_bytes;
        at += blanks_taken(t, s->text, text + at, x->n_bytes - at);
        done = at;
    }
    if (done < x->n_bytes)
        TRY(encode_plain(t, text + done, x->n_bytes - done, &begins, sink, err));
    if ((flags & DREY_TOKENIZE_BOS) && t->wants_eos)
        id_push(sink, t->eos);
    return DREY_OK;
}

drey_status tokenizer_encode_around(const tokenizer *t, const parted_text *x, int flags,
                                    id_sink *sink, drey_error *err)
{
    sink->n = 0;
    drey_status status = encode_parts(t, x, flags, sink, err);
    if (status != DREY_OK) {
        sink->n = 0;
        return status;
    }
    if (sink->n > sink->capacity)
        FAIL(err, DREY_ERR_USAGE, "the text has %zu tokens, but there is room for only %zu",
             sink->n, sink->capacity);
    return DREY_OK;
}

drey_status tokenizer_encode(const tokenizer *t, const char *text, size_t n_bytes, int flags,
                             int32_t *ids, size_t capacity, size_t *n_ids, drey_error *err)
{
    id_sink sink = {ids, capacity, 0};
    drey_status status =
        tokenizer_encode_around(t, &(parted_text){text, n_bytes, NULL, 0}, flags, &sink, err);
    *n_ids = sink.n;
    return status;
}

size_t tokenizer_piece(const tokenizer *t, int32_t id, bool special, bool first, char *out,
                       size_t capacity)
{
    if (id < 0 || id >= t->vocab.n_tokens)
        return 0;
    gguf_string text = vocab_text(&t->vocab, id);
    token_type type = vocab_type(&t->vocab, id);
    bool spelled = type == TOKEN_NORMAL || (type == TOKEN_BYTE && !t->byte_level) ||
                   (type == TOKEN_USER_DEFINED && !t->byte_level);
    if (!spelled) { /* special, unused and, in byte-level BPE, user-defined: as it is written */
        if (!special && type != TOKEN_USER_DEFINED)
            return 0;
        if (capacity > 0)
            memcpy(out, text.text, min_size(text.n_bytes, capacity));
        return text.n_bytes;
    }
    if (t->byte_level)
        return bpe_decode(text, out, capacity);
    size_t n = piece_decode(&t->vocab, id, out, capacity);
    if (!first || !t->sentencepiece.space_prefix || type != TOKEN_NORMAL || n == 0 ||
        text.n_bytes < 3 || memcmp(text.text, "▁", 3) != 0)
        return n;
    size_t written = min_size(n, capacity);
    if (written > 0)
        memmove(out, out + 1, written - 1);
    return n - 1;
}

drey_status tokenizer_decode(const tokenizer *t, const int32_t *ids, size_t n, int flags,
                             char *text, size_t capacity, size_t *n_bytes, drey_error *err)
{
    bool special = flags & DREY_TOKENIZE_SPECIAL, first = !(flags & DREY_TOKENIZE_INNER);
    size_t total = 0;
    *n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= t->vocab.n_tokens)
            FAIL(err, DREY_ERR_USAGE, "token %d does not exist; ids run from 0 to %d", ids[i],
                 t->vocab.n_tokens - 1);
        size_t room = total < capacity ? capacity - total : 0;
        total += tokenizer_piece(t, ids[i], special, first, room ? text + total : NULL, room);
        first = first && tokenizer_is_special(t, ids[i]);
    }
    *n_bytes = total;
    if (total > capacity)
        FAIL(err, DREY_ERR_USAGE, "the text has %zu bytes, but there is room for only %zu", total,
             capacity);
    return DREY_OK;
}

static bool is_padding(const tokenizer *t, int32_t id)
{
    gguf_string text = vocab_text(&t->vocab, id);
    return vocab_type(&t->vocab, id) == TOKEN_UNUSED ||
           (text.n_bytes >= 4 && memcmp(text.text, "[PAD", 4) == 0);
}

/* A token's text for a message: truncated, and without anything that a terminal would interpret. */
static const char *shown(const tokenizer *t, int32_t id, char out[static 44])
{
    gguf_string s = vocab_text(&t->vocab, id);
    size_t n = min_size(s.n_bytes, 40);
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)s.text[i] < 0x20 || s.text[i] == 0x7F ? '?' : s.text[i];
    memcpy(out + n, s.n_bytes > n ? "..." : "", s.n_bytes > n ? 4 : 1);
    return out;
}

static const char *kind_name(const tokenizer *t)
{
    return t->byte_level ? "byte-level BPE" : t->merges ? "BPE over characters" : "SentencePiece";
}

drey_status tokenizer_compare(const tokenizer *target, const tokenizer *draft, drey_error *err)
{
    static const char advice[] = "use a draft of the target's own family";
    char a[44], b[44];
    if (strcmp(kind_name(target), kind_name(draft)) != 0)
        FAIL(err, DREY_ERR_MISMATCH,
             "target and draft have different kinds of tokenizer (%s, %s); %s", kind_name(target),
             kind_name(draft), advice);
    int32_t n_target = target->vocab.n_tokens, n_draft = draft->vocab.n_tokens;
    int32_t n_both = min_i32(n_target, n_draft);
    for (int32_t id = 0; id < n_both; id++) {
        gguf_string x = vocab_text(&target->vocab, id), y = vocab_text(&draft->vocab, id);
        if (x.n_bytes == y.n_bytes && memcmp(x.text, y.text, x.n_bytes) == 0)
            continue;
        if (is_padding(target, id) || is_padding(draft, id))
            continue;
        FAIL(err, DREY_ERR_MISMATCH, "token %d is \"%s\" in the target and \"%s\" in the draft; %s",
             id, shown(target, id, a), shown(draft, id, b), advice);
    }
    const tokenizer *larger = n_target > n_draft ? target : draft;
    for (int32_t id = n_both; id < larger->vocab.n_tokens; id++)
        if (!is_padding(larger, id))
            FAIL(err, DREY_ERR_MISMATCH, "token %d, \"%s\", exists only in the %s; %s", id,
                 shown(larger, id, a), larger == target ? "target" : "draft", advice);
    return DREY_OK;
}
