/* Corrected types of tokens: see token_marks.h. The names are those that llama.cpp's loader and its
 * converters know. */
#include "text/token_marks.h"

#include <stdio.h>
#include <string.h>

/* Ends first, then the parts of texts with a hole. An end that need not be a mark looks like one,
 * or is text in some vocabularies. */
const token_name token_names[] = {{"<|im_end|>", true, true},
                                  {"<|endoftext|>", true, true},
                                  {"<|end_of_text|>", true, true},
                                  {"<|eot_id|>", true, true},
                                  {"<|eom_id|>", true, true},
                                  {"<|end|>", true, true},
                                  {"</s>", false, true},
                                  {"<eos>", true, true},
                                  {"<end_of_turn>", true, true},
                                  {"<EOT>", true, true},
                                  {"_<EOT>", true, true},
                                  {"<|return|>", true, true},
                                  {"<|call|>", true, true},
                                  {"<|calls|>", true, true},
                                  {"<|flush|>", true, true},
                                  {"<|end_of_turn|>", false, true},
                                  {"[EOT]", true, true},
                                  {"[EOS]", true, true},
                                  {"<end_of_utterance>", true, true},
                                  {"<turn|>", true, true},
                                  {"<|tool_response>", false, true},
                                  {"[e~[", true, true},
                                  {"<|EOT|>", false, true},
                                  {"<|eot|>", false, true},
                                  {"<|eom|>", false, true},
                                  {"<|END_OF_TURN_TOKEN|>", false, true},
                                  {"<|role_end|>", false, true},
                                  {"[|endofturn|]", false, true},
                                  {"<|fim_pad|>", true, true},
                                  {"<|repo_name|>", true, true},
                                  {"<|file_sep|>", true, true},
                                  {"<｜end▁of▁sentence｜>", true, true},
                                  {"<|fim_prefix|>", true, false},
                                  {"<fim-prefix>", true, false},
                                  {"<fim_prefix>", true, false},
                                  {"<｜fim▁begin｜>", true, false},
                                  {"<PRE>", true, false},
                                  {"▁<PRE>", true, false},
                                  {"<|code_prefix|>", true, false},
                                  {"<|prefix|>", true, false},
                                  {"<|fim_suffix|>", true, false},
                                  {"<fim-suffix>", true, false},
                                  {"<fim_suffix>", true, false},
                                  {"<｜fim▁hole｜>", true, false},
                                  {"<SUF>", true, false},
                                  {"▁<SUF>", true, false},
                                  {"<|code_suffix|>", true, false},
                                  {"<|suffix|>", true, false},
                                  {"<|fim_middle|>", true, false},
                                  {"<fim-middle>", true, false},
                                  {"<fim_middle>", true, false},
                                  {"<｜fim▁end｜>", true, false},
                                  {"<MID>", true, false},
                                  {"▁<MID>", true, false},
                                  {"<|code_middle|>", true, false},
                                  {"<|middle|>", true, false},
                                  {"<fim-pad>", true, false},
                                  {"<fim_pad>", true, false},
                                  {"<PAD>", true, false},
                                  {"[PAD]", true, false},
                                  {"<|fim_repo|>", true, false},
                                  {"<fim-repo>", true, false},
                                  {"<REPO>", true, false},
                                  {"<reponame>", true, false},
                                  {NULL, false, false}};

static bool begins(gguf_string s, const char *text)
{
    return s.n_bytes >= strlen(text) && memcmp(s.text, text, strlen(text)) == 0;
}

static bool ends(gguf_string s, const char *text)
{
    size_t n = strlen(text);
    return s.n_bytes >= n && memcmp(s.text + s.n_bytes - n, text, n) == 0;
}

/* Something between the brackets, without blanks. */
static bool is_between(gguf_string s, const char *open, const char *close)
{
    for (size_t i = 0; i < s.n_bytes; i++)
        if ((uint8_t)s.text[i] <= ' ')
            return false;
    return s.n_bytes > strlen(open) + strlen(close) && begins(s, open) && ends(s, close);
}

static bool has_bars(gguf_string s)
{
    return is_between(s, "<|", "|>") || is_between(s, "<｜", "｜>");
}

/* The name of a padding row: [PAD123]. */
static bool is_padding(gguf_string s)
{
    return is_between(s, "[PAD", "]") && s.text[4] >= '0' && s.text[4] <= '9';
}

typedef struct settling {
    vocab *vocab;
    const bool *from_merges;
} settling;

static bool is_text(const settling *s, int64_t id)
{
    return s->from_merges && s->from_merges[id];
}

/* SentencePiece's marks, which other families' vocabularies have for no use, and texts as tags. */
static bool is_piece(gguf_string s)
{
    return gguf_is_text(s, "<s>") || gguf_is_text(s, "</s>") || gguf_is_text(s, "<unk>");
}

/* Finds SentencePiece's own tokens by their texts, where there are no types. */
static void set_pieces(vocab *v)
{
    for (int32_t id = 0; id < v->n_tokens; id++) {
        unsigned byte;
        char digits[3] = "";
        gguf_string text = vocab_text(v, id);
        if (text.n_bytes == 6 && begins(text, "<0x") && ends(text, ">")) {
            memcpy(digits, text.text + 3, 2);
            if (sscanf(digits, "%2X", &byte) == 1)
                v->types[id] = TOKEN_BYTE;
        } else if (id < 3 && is_piece(text)) {
            v->types[id] = gguf_is_text(text, "<unk>") ? TOKEN_UNKNOWN : TOKEN_CONTROL;
        }
    }
}

static void set_named(const settling *s)
{
    vocab *v = s->vocab;
    for (const token_name *known = token_names; known->name; known++) {
        int32_t id = known->is_mark ? vocab_find(v, known->name, strlen(known->name)) : -1;
        if (id < 0)
            continue;
        token_type type = vocab_type(v, id);
        if (type == TOKEN_USER_DEFINED || (type == TOKEN_NORMAL && !is_text(s, id)))
            v->types[id] = TOKEN_CONTROL;
    }
}

static void set_keyed_id(const settling *s, int64_t id, bool is_end)
{
    vocab *v = s->vocab;
    if (id < 0 || id >= v->n_tokens)
        return;
    gguf_string text = vocab_text(v, (int32_t)id);
    bool looks = is_between(text, "<", ">") || is_between(text, "[", "]");
    if (!looks && s->from_merges && !s->from_merges[id])
        looks = text.n_bytes > 2; /* more than a byte, spelled */
    token_type type = vocab_type(v, (int32_t)id);
    if (looks && (type == TOKEN_NORMAL || (type == TOKEN_USER_DEFINED && is_end)))
        v->types[id] = TOKEN_CONTROL;
}

static void set_keyed(const settling *s, const gguf *g)
{
    static const struct {
        const char *name;
        bool is_end;
    } keys[] = {{"eos", true},      {"eot", true},      {"eom", true},      {"bos", false},
                {"padding", false}, {"fim_pre", false}, {"fim_suf", false}, {"fim_mid", false},
                {"fim_pad", false}, {"fim_rep", false}, {"fim_sep", false}, {"prefix", false},
                {"suffix", false},  {"middle", false}};
    char name[64];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        snprintf(name, sizeof name, "tokenizer.ggml.%s_token_id", keys[i].name);
        const gguf_key *key = gguf_find_key(g, name);
        if (!key)
            continue;
        set_keyed_id(s, gguf_int(g, name, -1), keys[i].is_end);
        for (uint64_t k = 0; gguf_is_int_array(key) && k < key->n_items; k++)
            set_keyed_id(s, gguf_item_int(key, k), keys[i].is_end);
    }
}

static void set_added(const settling *s)
{
    vocab *v = s->vocab;
    for (int32_t id = 0; id < v->n_tokens; id++) {
        gguf_string text = vocab_text(v, id);
        if (vocab_type(v, id) != TOKEN_NORMAL || is_text(s, id) || text.n_bytes < 3)
            continue;
        if (has_bars(text))
            v->types[id] = TOKEN_CONTROL;
        else if (s->from_merges && is_padding(text))
            v->types[id] = TOKEN_UNUSED;
        else if (s->from_merges && !is_piece(text) &&
                 (is_between(text, "<", ">") || is_between(text, "[", "]")))
            v->types[id] = TOKEN_USER_DEFINED;
    }
}

void marks_resolve(vocab *v, const gguf *g, const bool *from_merges)
{
    const settling s = {v, from_merges};
    if (!from_merges && !v->has_types)
        set_pieces(v);
    set_keyed(&s, g);
    set_named(&s);
    set_added(&s);
}
