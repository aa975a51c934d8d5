/* A toy's vocabulary, either flavour: see toy.h.
 *
 * Words grow from the left, one merge per character: "Ġt" "Ġth" "Ġthe". Each step is a token, and
 * its merge's rank (byte-level BPE) or score (SentencePiece) is its place in the list. */
#include "support/toy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

const char toy_chatml[] =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/* Bytes as they are; the flavour's own form of blanks is made from them. */
static const char *const words[] = {
    " the",    " and",  " of",    " to",      " in",        " is",          " that",
    " for",    " with", " not",   " this",    " tree",      " token",       " draft",
    " target", "def",   "return", "print",    "import",     " self",        " None",
    "    ",    "\n\n",  "hello",  " world",   "ing",        "tion",         "ed",
    "er",      " =",    " ==",    "():",      "\xc3\xa9",   "\xe4\xb8\xad", "12",
    "The",     "You",   " are",   " helpful", " assistant", "system",       "user",
};

enum { max_tokens = 100000, longest_piece = 64 };

typedef enum token_kind { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, UNUSED = 5, BYTE = 6 } token_kind;

typedef struct vocabulary {
    char (*text)[longest_piece]; /* [n] as the file has them */
    int32_t *kind;               /* [n] */
    int64_t n;
    char (*merges)[2 * longest_piece]; /* [n_merges] "left right" */
    int64_t n_merges;
} vocabulary;

static void *allocate(size_t n, size_t size)
{
    void *memory = calloc(n, size);
    if (!memory)
        abort();
    return memory;
}

static bool has_token(const vocabulary *v, const char *text)
{
    for (int64_t i = 0; i < v->n; i++)
        if (strcmp(v->text[i], text) == 0)
            return true;
    return false;
}

static void add_token(vocabulary *v, const char *text, token_kind kind)
{
    if (v->n == max_tokens || strlen(text) >= longest_piece)
        abort();
    memcpy(v->text[v->n], text, strlen(text) + 1);
    v->kind[v->n++] = (int32_t)kind;
}

/* Appends one code point. */
static void append_utf8(char *out, uint32_t c)
{
    size_t n = strlen(out);
    out[n + utf8_write(c, out + n)] = '\0';
}

static bool is_printable(uint32_t byte)
{
    return (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
}

/* GPT-2's alphabet: printable bytes stand for themselves, the others for U+0100 and up in order. */
static uint32_t byte_letter(uint32_t byte)
{
    uint32_t next = 0x100;
    for (uint32_t b = 0; b < byte; b++)
        next += !is_printable(b);
    return is_printable(byte) ? byte : next;
}

static void add_byte_letters(vocabulary *v)
{
    for (int printable = 1; printable >= 0; printable--) {
        for (uint32_t b = 0; b < 256; b++) {
            char text[8] = "";
            append_utf8(text, byte_letter(b));
            if (is_printable(b) == printable)
                add_token(v, text, NORMAL);
        }
    }
}

/* All prefixes of each word, with the merge that makes each. */
static void add_bpe_words(vocabulary *v)
{
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
        char left[longest_piece] = "";
        append_utf8(left, byte_letter((uint8_t)words[w][0]));
        for (const char *c = words[w] + 1; *c; c++) {
            char right[8] = "", whole[longest_piece];
            append_utf8(right, byte_letter((uint8_t)*c));
            memcpy(whole, left, sizeof whole);
            append_utf8(whole, byte_letter((uint8_t)*c));
            if (!has_token(v, whole)) {
                add_token(v, whole, NORMAL);
                snprintf(v->merges[v->n_merges++], sizeof v->merges[0], "%s %s", left, right);
            }
            memcpy(left, whole, sizeof left);
        }
    }
}

/* Length of the UTF-8 character at c. */
static size_t character_bytes(const char *c)
{
    return (size_t)utf8_length((const uint8_t *)c, strlen(c));
}

/* A character as SentencePiece writes it: a blank is U+2581. */
static void append_piece(char *out, const char *c)
{
    if (*c == ' ')
        append_utf8(out, 0x2581);
    else
        strncat(out, c, character_bytes(c));
}

static void add_sentencepiece_words(vocabulary *v)
{
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
        char piece[longest_piece] = "";
        for (const char *c = words[w]; *c; c += character_bytes(c)) {
            append_piece(piece, c);
            if (!has_token(v, piece))
                add_token(v, piece, NORMAL);
        }
    }
    for (char c = '!'; c < 0x7f; c++) {
        char piece[2] = {c};
        if (!has_token(v, piece))
            add_token(v, piece, NORMAL);
    }
}

/* Cuts or fills the vocabulary up to n_vocab less the special tokens that follow. */
static void fit(vocabulary *v, int32_t n_vocab, int32_t n_special)
{
    if (n_vocab == 0)
        return;
    int64_t n = n_vocab - n_special;
    if (n < 260)
        abort(); /* the bytes must stay */
    if (v->n > n) {
        int64_t n_cut = v->n - n;
        v->n = n;
        v->n_merges -= n_cut < v->n_merges ? n_cut : v->n_merges;
    }
    while (v->n < n) {
        char text[longest_piece];
        snprintf(text, sizeof text, "tok%lld", (long long)v->n);
        add_token(v, text, NORMAL);
    }
}

static void add_padding(vocabulary *v, int32_t n_padded)
{
    for (int32_t i = 0; i < n_padded; i++) {
        char text[longest_piece];
        snprintf(text, sizeof text, "[PAD%d]", i);
        add_token(v, text, UNUSED);
    }
}

static void put_tokens(gguf_writer *w, const vocabulary *v)
{
    writer_key_array(w, "tokenizer.ggml.tokens", GGUF_STRING, (uint64_t)v->n);
    for (int64_t i = 0; i < v->n; i++)
        writer_string(w, v->text[i]);
    writer_key_array(w, "tokenizer.ggml.token_type", GGUF_I32, (uint64_t)v->n);
    for (int64_t i = 0; i < v->n; i++)
        writer_u32(w, (uint32_t)v->kind[i]);
}

/* Returns the number of keys written. */
static uint64_t put_bpe(gguf_writer *w, vocabulary *v, const toy_options *o)
{
    add_byte_letters(v);
    add_bpe_words(v);
    fit(v, o->n_vocab, 3);
    uint32_t end_of_text = (uint32_t)v->n;
    add_token(v, "<|endoftext|>", CONTROL);
    add_token(v, "<|im_start|>", CONTROL);
    add_token(v, "<|im_end|>", CONTROL);
    add_padding(v, o->n_padded);
    writer_key_text(w, "tokenizer.ggml.model", "gpt2");
    writer_key_text(w, "tokenizer.ggml.pre", o->pre);
    put_tokens(w, v);
    writer_key_array(w, "tokenizer.ggml.merges", GGUF_STRING, (uint64_t)v->n_merges);
    for (int64_t i = 0; i < v->n_merges; i++)
        writer_string(w, v->merges[i]);
    writer_key_u32(w, "tokenizer.ggml.bos_token_id", end_of_text);
    writer_key_u32(w, "tokenizer.ggml.eos_token_id", end_of_text + 2);
    writer_key_bool(w, "tokenizer.ggml.add_bos_token",
                    strcmp(o->pre, "llama-bpe") == 0 || strcmp(o->architecture, "bart") == 0);
    return 8;
}

static uint64_t put_sentencepiece(gguf_writer *w, vocabulary *v, const toy_options *o)
{
    add_token(v, "<unk>", UNKNOWN);
    add_token(v, "<s>", CONTROL);
    add_token(v, "</s>", CONTROL);
    for (int b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", b);
        add_token(v, text, BYTE);
    }
    int64_t n_before = v->n;
    add_sentencepiece_words(v);
    fit(v, o->n_vocab, 0);
    add_padding(v, o->n_padded);
    writer_key_text(w, "tokenizer.ggml.model", "llama");
    writer_key_text(w, "tokenizer.ggml.pre", "default");
    put_tokens(w, v);
    writer_key_array(w, "tokenizer.ggml.scores", GGUF_F32, (uint64_t)v->n);
    for (int64_t i = 0; i < v->n; i++) {
        float score = i < n_before ? 0.0f : (float)(n_before - i);
        writer_put(w, &score, sizeof score);
    }
    writer_key_u32(w, "tokenizer.ggml.bos_token_id", 1);
    writer_key_u32(w, "tokenizer.ggml.eos_token_id", 2);
    writer_key_u32(w, "tokenizer.ggml.unknown_token_id", 0);
    writer_key_bool(w, "tokenizer.ggml.add_bos_token", true);
    return 9;
}

/* A character map as SentencePiece precompiles it: a double-array trie, whose units are placed one
 * node at a time where all their children are free, and the strings. */
typedef struct map_pair {
    const char *from, *to;
} map_pair;

static const map_pair map_pairs[] = {
    {"\t", " "},
    {"\n", " "},
    {"\xc2\xa0", " "},
    {"\xe2\x80\x9c", "\""},
    {"\xef\xac\x81", "fi"},
    {"\xef\xbd\x81", "a"},
    {"e\xcc\x81", "\xc3\xa9"},
    {"\xc2\xad", ""},
};

enum { MAP_PAIRS = sizeof map_pairs / sizeof map_pairs[0], MAP_UNITS = 2048 };

typedef struct map_builder {
    uint32_t units[MAP_UNITS];
    bool used[MAP_UNITS];
    uint32_t values[MAP_PAIRS]; /* beginnings of the pairs' strings */
} map_builder;

/* Builds the node at `at`, which the pairs in `in` reach with their first `depth` bytes. */
static void build_node(map_builder *b, uint32_t at, const bool in[MAP_PAIRS], size_t depth)
{
    bool next[256] = {false};
    int ends = -1;
    for (int i = 0; i < MAP_PAIRS; i++) {
        if (!in[i])
            continue;
        if (map_pairs[i].from[depth])
            next[(uint8_t)map_pairs[i].from[depth]] = true;
        else
            ends = i;
    }
    next[0] = ends >= 0;
    uint32_t offset = 1;
    for (bool fits = false; !fits; offset += !fits) {
        fits = true;
        for (uint32_t c = 0; c < 256; c++)
            fits = fits && !(next[c] && b->used[(at ^ offset) ^ c]);
        if (offset > MAP_UNITS / 2)
            abort();
    }
    uint32_t base = at ^ offset;
    b->units[at] |= offset << 10 | (ends >= 0 ? 1u << 8 : 0);
    for (uint32_t c = 0; c < 256; c++)
        b->used[base ^ c] |= next[c];
    if (ends >= 0)
        b->units[base] = 1u << 31 | b->values[ends];
    for (uint32_t c = 1; c < 256; c++) {
        bool below[MAP_PAIRS];
        for (int i = 0; next[c] && i < MAP_PAIRS; i++)
            below[i] = in[i] && (uint8_t)map_pairs[i].from[depth] == c;
        if (!next[c])
            continue;
        b->units[base ^ c] = c;
        build_node(b, base ^ c, below, depth + 1);
    }
}

static void put_charmap(gguf_writer *w)
{
    map_builder *b = allocate(1, sizeof *b);
    char strings[256];
    uint32_t n = 0;
    bool all[MAP_PAIRS];
    for (int i = 0; i < MAP_PAIRS; i++) {
        size_t length = strlen(map_pairs[i].to) + 1;
        all[i] = true;
        b->values[i] = n;
        memcpy(strings + n, map_pairs[i].to, length);
        n += (uint32_t)length;
    }
    b->used[0] = true;
    build_node(b, 0, all, 0);
    writer_key_array(w, "tokenizer.ggml.precompiled_charsmap", GGUF_U8,
                     4 + sizeof b->units + (uint64_t)n);
    writer_u32(w, sizeof b->units);
    for (int i = 0; i < MAP_UNITS; i++)
        writer_u32(w, b->units[i]);
    writer_put(w, strings, n);
    free(b);
}

/* Writes a vocabulary like T5's: pad 0, end 1, unknown 2. Longer words have better scores. */
static uint64_t put_unigram(gguf_writer *w, vocabulary *v, const toy_options *o)
{
    add_token(v, "<pad>", CONTROL);
    add_token(v, "</s>", CONTROL);
    add_token(v, "<unk>", UNKNOWN);
    add_sentencepiece_words(v);
    fit(v, o->n_vocab, 0);
    add_padding(v, o->n_padded);
    writer_key_text(w, "tokenizer.ggml.model", "t5");
    writer_key_text(w, "tokenizer.ggml.pre", "default");
    put_tokens(w, v);
    writer_key_array(w, "tokenizer.ggml.scores", GGUF_F32, (uint64_t)v->n);
    for (int64_t i = 0; i < v->n; i++) {
        float score = -9.0f + 0.25f * (float)strlen(v->text[i]) - 0.001f * (float)i;
        writer_put(w, &score, sizeof score);
    }
    writer_key_u32(w, "tokenizer.ggml.eos_token_id", 1);
    writer_key_u32(w, "tokenizer.ggml.unknown_token_id", 2);
    writer_key_u32(w, "tokenizer.ggml.padding_token_id", 0);
    writer_key_bool(w, "tokenizer.ggml.add_space_prefix", true);
    writer_key_bool(w, "tokenizer.ggml.remove_extra_whitespaces", true);
    put_charmap(w);
    return 11;
}

uint64_t toy_vocabulary(gguf_writer *w, const toy_options *o, int64_t *n_tokens)
{
    vocabulary v = {
        .text = allocate(max_tokens, sizeof *v.text),
        .kind = allocate(max_tokens, sizeof *v.kind),
        .merges = allocate(1024, sizeof *v.merges),
    };
    uint64_t n_keys = !o->pre                     ? put_sentencepiece(w, &v, o)
                      : strcmp(o->pre, "t5") == 0 ? put_unigram(w, &v, o)
                                                  : put_bpe(w, &v, o);
    if (o->chat_template) {
        writer_key_text(w, "tokenizer.chat_template", o->chat_template);
        n_keys++;
    }
    *n_tokens = v.n;
    free(v.text);
    free(v.kind);
    free(v.merges);
    return n_keys;
}
