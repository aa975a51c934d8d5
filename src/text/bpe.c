/* BPE: see bpe.h. */
#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "common/utf8.h"
#include "text/token_pieces.h"

enum { ALPHABET_END = 0x144 };

/* Bytes that the alphabet spells as they are: the printable ones of Latin-1. */
static bool spelled_as_itself(uint32_t c)
{
    return (c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF);
}

/* The byte that a code point spells; -1: none. The others are numbered from U+0100 in the order of
 * their values: 0x00-0x20, 0x7F-0xA0, 0xAD. */
static int alphabet_byte(uint32_t c)
{
    if (c < 0x100)
        return spelled_as_itself(c) ? (int)c : -1;
    if (c <= 0x120)
        return (int)(c - 0x100);
    if (c <= 0x142)
        return (int)(c - 0x121 + 0x7F);
    return c == 0x143 ? 0xAD : -1;
}

/* Spells a byte; returns the length, 1 or 2. */
static size_t alphabet_spell(uint8_t byte, char out[2])
{
    uint32_t c = byte;
    if (byte <= 0x20)
        c = 0x100u + byte;
    else if (byte >= 0x7F && byte <= 0xA0)
        c = 0x121u + byte - 0x7F;
    else if (byte == 0xAD)
        c = 0x143;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    out[0] = (char)(0xC0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3F));
    return 2;
}

size_t bpe_decode(gguf_string text, char *out, size_t capacity)
{
    const uint8_t *p = (const uint8_t *)text.text;
    size_t n = 0;
    for (size_t i = 0; i < text.n_bytes;) {
        int length = utf8_length(p + i, text.n_bytes - i);
        int byte = length > 0 ? alphabet_byte(utf8_code_point(p + i, length)) : -1;
        if (byte < 0) { /* not spelled in the alphabet */
            if (capacity > 0)
                memcpy(out, text.text, min_size(text.n_bytes, capacity));
            return text.n_bytes;
        }
        if (n < capacity)
            out[n] = (char)byte;
        n++;
        i += (size_t)length;
    }
    return n;
}

/* The slot of a pair: its own, or the empty one where it belongs. *n_probes: slots probed. */
static uint32_t *find_pair(const bpe *b, int32_t left, int32_t right, uint32_t *n_probes)
{
    uint32_t slot = pair_hash_slot(&b->vocab->key, (uint32_t)left, (uint32_t)right);
    for (*n_probes = 1;; slot++, ++*n_probes) {
        uint32_t *entry = &b->slots[slot & b->slot_mask];
        if (*entry == 0)
            return entry;
        const struct bpe_merge *m = &b->merges[*entry - 1];
        if (m->left == left && m->right == right)
            return entry;
    }
}

static void pair_by_rank(const void *rules, symbol *left, const symbol *right)
{
    const bpe *b = rules;
    uint32_t n_probes;
    uint32_t entry = *find_pair(b, left->id, right->id, &n_probes);
    if (entry == 0)
        return;
    left->merged = b->merges[entry - 1].merged;
    left->priority = entry - 1;
}

/* ---- Reading merges ---- */

/* Room for the texts of all merges, at the first one that is no token. */
static bool absent_init(absent_texts *a, uint32_t n_merges)
{
    const size_t n = 3 * (size_t)n_merges; /* of each two parts and what they make */
    a->slot_mask = hash_slots(n) - 1;
    a->texts = malloc(n * sizeof *a->texts);
    a->slots = calloc((size_t)a->slot_mask + 1, sizeof *a->slots);
    return a->texts && a->slots;
}

static bool is_joined(const struct absent_text *x, gguf_string head, gguf_string tail)
{
    const gguf_string parts[] = {x->head, x->tail, head, tail};
    size_t n = head.n_bytes + tail.n_bytes;
    if (x->head.n_bytes + x->tail.n_bytes != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        char a = i < parts[0].n_bytes ? parts[0].text[i] : parts[1].text[i - parts[0].n_bytes];
        char b = i < parts[2].n_bytes ? parts[2].text[i] : parts[3].text[i - parts[2].n_bytes];
        if (a != b)
            return false;
    }
    return true;
}

/* The slot of a text that is no token: its own, or the empty one; NULL: too many were looked at. */
static uint32_t *find_absent(const bpe *b, gguf_string head, gguf_string tail)
{
    const hash_key *key = &b->vocab->key;
    uint64_t hash = text_hash(key, 0, head.text, head.n_bytes);
    uint32_t at = text_hash_slot(key, text_hash(key, hash, tail.text, tail.n_bytes));
    for (uint32_t n_probes = 0; n_probes < HASH_MOST_PROBES; n_probes++, at++) {
        uint32_t *slot = &b->absent.slots[at & b->absent.slot_mask];
        if (*slot == 0 || is_joined(&b->absent.texts[*slot - 1], head, tail))
            return slot;
    }
    return NULL;
}

/* The id of a text: a token's, or one after them. */
static drey_status find_id(bpe *b, gguf_string head, gguf_string tail, int32_t *id, drey_error *err)
{
    absent_texts *a = &b->absent;
    *id = vocab_find_joined(b->vocab, head, tail);
    if (*id >= 0)
        return DREY_OK;
    if (!a->slots && !absent_init(a, b->n_merges))
        FAIL(err, DREY_ERR_MEMORY, "no memory for the texts of %u merges", b->n_merges);
    uint32_t *slot = find_absent(b, head, tail);
    if (!slot)
        FAIL(err, DREY_ERR_FORMAT,
             "the file's merge list is made to slow its reader down; fetch the model from another "
             "source");
    if (*slot == 0) {
        a->texts[a->n++] = (struct absent_text){head, tail};
        *slot = a->n;
    }
    *id = b->vocab->n_tokens + (int32_t)(*slot - 1);
    return DREY_OK;
}

/* One line of the merge list: "left right", no blanks inside either. */
static drey_status add_merge(bpe *b, gguf_string line, uint32_t rank, drey_error *err)
{
    const char *gap = line.n_bytes > 2 ? memchr(line.text + 1, ' ', line.n_bytes - 2) : NULL;
    struct bpe_merge *m = &b->merges[rank];
    if (!gap)
        FAIL(err, DREY_ERR_FORMAT,
             "merge %u of the tokenizer (\"%s\") is no pair of texts; the file is broken, fetch it "
             "again",
             rank, gguf_printable((char[80]){0}, 80, line.text, line.n_bytes));
    const gguf_string none = {"", 0}, head = {line.text, (size_t)(gap - line.text)};
    const gguf_string tail = {gap + 1, line.n_bytes - head.n_bytes - 1};
    TRY(find_id(b, head, none, &m->left, err));
    TRY(find_id(b, tail, none, &m->right, err));
    TRY(find_id(b, head, tail, &m->merged, err));
    uint32_t n_probes;
    uint32_t *slot = find_pair(b, m->left, m->right, &n_probes);
    b->n_probes += n_probes;
    if (n_probes > HASH_MOST_PROBES)
        FAIL(err, DREY_ERR_FORMAT,
             "the file's merge list is made to slow its reader down (merge %u); fetch the model "
             "from another source",
             rank);
    if (*slot == 0)
        *slot = rank + 1;
    return DREY_OK;
}

static drey_status read_merges(bpe *b, const gguf *g, drey_error *err)
{
    const gguf_key *key = gguf_find_key(g, "tokenizer.ggml.merges");
    if (!key || key->kind != GGUF_ARRAY || key->item_kind != GGUF_STRING)
        FAIL(err, DREY_ERR_FORMAT,
             "the file has no merges (tokenizer.ggml.merges); use a GGUF file that carries its "
             "tokenizer");
    if (key->n_items > VOCAB_MOST_TOKENS)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the file has more than %d merges; fetch the model from another source",
             VOCAB_MOST_TOKENS);
    b->n_merges = (uint32_t)key->n_items;
    uint32_t n_slots = hash_slots(b->n_merges);
    b->slot_mask = n_slots - 1;
    b->merges = malloc((b->n_merges ? b->n_merges : 1) * sizeof *b->merges);
    b->slots = calloc(n_slots, sizeof *b->slots);
    if (!b->merges || !b->slots)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a table of %u merges", b->n_merges);
    gguf_cursor cursor = gguf_strings(key);
    for (uint32_t rank = 0; rank < b->n_merges; rank++) {
        gguf_string line;
        if (!gguf_next_string(&cursor, &line))
            FAIL(err, DREY_ERR_FORMAT, "the file's merge list ends at %u of %u", rank, b->n_merges);
        TRY(add_merge(b, line, rank, err));
    }
    return DREY_OK;
}

/* The ids of bytes as the alphabet spells them. */
static void find_bytes(bpe *b)
{
    const vocab *v = b->vocab;
    for (int byte = 0; byte < 256; byte++) {
        char text[2];
        const gguf_string spelled = {text, alphabet_spell((uint8_t)byte, text)};
        b->byte_id[byte] = vocab_find(v, text, spelled.n_bytes);
        const uint32_t *slot = b->byte_id[byte] < 0 && b->absent.slots
                                   ? find_absent(b, spelled, (gguf_string){"", 0})
                                   : NULL;
        if (slot && *slot)
            b->byte_id[byte] = v->n_tokens + (int32_t)(*slot - 1);
    }
}

drey_status bpe_init(bpe *b, const vocab *v, bool characters, const gguf *g, drey_error *err)
{
    *b = (bpe){.vocab = v, .characters = characters};
    gguf_string pre = gguf_text(g, "tokenizer.ggml.pre");
    drey_status status = DREY_OK;
    if (!characters)
        status = pretokenizer_init(&b->pretokenizer, pre.text, pre.n_bytes, err);
    if (status == DREY_OK)
        status = read_merges(b, g, err);
    if (status != DREY_OK) {
        bpe_free(b);
        return status;
    }
    if (characters)
        piece_find_bytes(v, b->byte_id);
    else
        find_bytes(b);
    return DREY_OK;
}

void bpe_free(bpe *b)
{
    pretokenizer_free(&b->pretokenizer);
    free(b->merges);
    free(b->slots);
    free(b->absent.texts);
    free(b->absent.slots);
    *b = (bpe){0};
}

size_t bpe_bytes(const bpe *b)
{
    const absent_texts *a = &b->absent;
    size_t of_absent = a->slots ? 3 * (size_t)b->n_merges * sizeof *a->texts +
                                      (a->slot_mask + (size_t)1) * sizeof *a->slots
                                : 0;
    return b->n_merges * sizeof *b->merges + (b->slot_mask + (size_t)1) * sizeof *b->slots +
           of_absent;
}

/* The token that spells a whole word; -1: none. */
static int32_t find_word(const bpe *b, const uint8_t *word, size_t n)
{
    char spelled[512];
    size_t n_spelled = 0;
    if (n > sizeof spelled / 2)
        return -1;
    for (size_t i = 0; i < n; i++)
        n_spelled += alphabet_spell(word[i], spelled + n_spelled);
    int32_t id = vocab_find(b->vocab, spelled, n_spelled);
    return id >= 0 && vocab_type(b->vocab, id) == TOKEN_NORMAL ? id : -1;
}

/* A text that is no token is its bytes, as far as those are tokens. */
static void push_bytes(const bpe *b, gguf_string text, id_sink *sink)
{
    const uint8_t *p = (const uint8_t *)text.text;
    for (size_t i = 0; i < text.n_bytes;) {
        int length = b->characters ? 1 : utf8_length(p + i, text.n_bytes - i);
        int byte = b->characters ? p[i]
                   : length > 0  ? alphabet_byte(utf8_code_point(p + i, length))
                                 : -1;
        int32_t id = byte >= 0 ? b->byte_id[byte] : -1;
        if (id >= 0 && id < b->vocab->n_tokens)
            id_push(sink, id);
        i += length > 0 ? (size_t)length : 1;
    }
}

static void push_symbol(const bpe *b, int32_t id, id_sink *sink)
{
    const int32_t n_tokens = b->vocab->n_tokens;
    if (id < n_tokens) {
        id_push(sink, id);
        return;
    }
    push_bytes(b, b->absent.texts[id - n_tokens].head, sink);
    push_bytes(b, b->absent.texts[id - n_tokens].tail, sink);
}

static drey_status encode_word(const bpe *b, merger *m, const uint8_t *word, size_t n,
                               id_sink *sink, drey_error *err)
{
    if (b->pretokenizer.family->ignore_merges) {
        int32_t id = find_word(b, word, n);
        if (id >= 0) {
            id_push(sink, id);
            return DREY_OK;
        }
    }
    while (n > 0) {
        size_t part = min_size(n, MERGE_WORD_BYTES);
        TRY(merge_begin(m, part, err));
        for (size_t i = 0; i < part; i++)
            if (b->byte_id[word[i]] >= 0)
                merge_push(m, b->byte_id[word[i]], (uint32_t)i, 1);
        if (m->n_symbols > 0) {
            merge_run(m);
            for (int32_t i = 0; i >= 0; i = m->symbols[i].next)
                push_symbol(b, m->symbols[i].id, sink);
        }
        word += part;
        n -= part;
    }
    return DREY_OK;
}

/* ---- Over characters ---- */

/* The id of a character, a token's or one of a merge's texts; -1: it has none. */
static int32_t find_character(const bpe *b, const char *text, size_t n)
{
    const gguf_string s = {text, n};
    int32_t id = vocab_find(b->vocab, text, n);
    const uint32_t *slot =
        id < 0 && b->absent.slots ? find_absent(b, s, (gguf_string){"", 0}) : NULL;
    return slot && *slot ? b->vocab->n_tokens + (int32_t)(*slot - 1) : id;
}

/* text[0..n) is of one kind: characters in which blanks are written U+2581, line breaks, or bytes
 * that are no characters. */
static drey_status encode_line(const bpe *b, merger *m, const char *text, size_t n, id_sink *sink,
                               drey_error *err)
{
    int32_t whole = *text == '\n' ? vocab_find(b->vocab, text, n) : -1;
    if (whole >= 0) {
        id_push(sink, whole);
        return DREY_OK;
    }
    TRY(merge_begin(m, n, err));
    for (size_t i = 0; i < n;) {
        int length = utf8_length((const uint8_t *)text + i, n - i);
        size_t n_bytes = length > 0 ? (size_t)length : 1;
        int32_t id = length > 0 ? find_character(b, text + i, n_bytes) : -1;
        merge_push(m, id, (uint32_t)i, (uint32_t)n_bytes);
        i += n_bytes;
    }
    merge_run(m);
    for (int32_t i = 0; i >= 0; i = m->symbols[i].next) {
        const symbol *s = &m->symbols[i];
        if (s->id >= 0)
            push_symbol(b, s->id, sink);
        else
            push_bytes(b, (gguf_string){text + s->at, s->n_bytes}, sink);
    }
    return DREY_OK;
}

/* Writes blanks as U+2581, until the line or the room ends. Returns how much of the text it took;
 * never a part of a character that is whole. */
static size_t write_line(const char *text, size_t n, char *out, size_t room, size_t *n_out)
{
    size_t at = 0;
    const bool breaks = *text == '\n';
    for (*n_out = 0; at < n && (text[at] == '\n') == breaks;) {
        int length = utf8_length((const uint8_t *)text + at, n - at);
        size_t n_bytes = length > 0 ? (size_t)length : 1;
        const bool blank = text[at] == ' ';
        if (*n_out + (blank ? PIECE_BLANK_BYTES : n_bytes) > room)
            break;
        memcpy(out + *n_out, blank ? piece_blank : text + at, blank ? PIECE_BLANK_BYTES : n_bytes);
        *n_out += blank ? PIECE_BLANK_BYTES : n_bytes;
        at += n_bytes;
    }
    return at;
}

static drey_status encode_characters(const bpe *b, const char *text, size_t n, id_sink *sink,
                                     drey_error *err)
{
    const size_t room = min_size(PIECE_BLANK_BYTES * n, MERGE_WORD_BYTES);
    char *written = malloc(max_size(room, 1));
    if (!written)
        FAIL(err, DREY_ERR_MEMORY, "no memory to tokenize a text of %zu bytes", n);
    merger m = {.pair = pair_by_rank, .rules = b};
    drey_status status = DREY_OK;
    for (size_t at = 0, length; at < n && status == DREY_OK;) {
        at += write_line(text + at, n - at, written, room, &length);
        status = encode_line(b, &m, written, length, sink, err);
    }
    merge_free(&m);
    free(written);
    return status;
}

/* ---- Over bytes ---- */

/* Length of the longest beginning that is valid UTF-8 (valid), or that holds no character (!valid).
 */
static size_t run_length(const uint8_t *p, size_t n, bool valid)
{
    size_t at = 0;
    while (at < n) {
        int length = utf8_length(p + at, n - at);
        if ((length > 0) != valid)
            break;
        at += length > 0 ? (size_t)length : 1;
    }
    return at;
}

drey_status bpe_encode(const bpe *b, const char *text, size_t n, id_sink *sink, drey_error *err)
{
    const uint8_t *bytes = (const uint8_t *)text;
    splitter s;
    if (b->characters)
        return encode_characters(b, text, n, sink, err);
    TRY(splitter_init(&s, &b->pretokenizer, err));
    merger m = {.pair = pair_by_rank, .rules = b};
    drey_status status = DREY_OK;
    for (size_t at = 0; at < n && status == DREY_OK;) {
        /* Bytes that are not UTF-8 are separate words; the parts between them are texts. */
        size_t broken = run_length(bytes + at, n - at, false);
        if (broken)
            status = encode_word(b, &m, bytes + at, broken, sink, err);
        at += broken;
        size_t whole = run_length(bytes + at, n - at, true);
        splitter_begin(&s, text + at, whole);
        for (size_t i = 0, word; status == DREY_OK && (word = splitter_next(&s)) > 0; i += word)
            status = encode_word(b, &m, bytes + at + i, word, sink, err);
        at += whole;
    }
    merge_free(&m);
    splitter_free(&s);
    return status;
}
