/* Pre-tokenizers over PCRE2: see pretokenizer.h.
 *
 * The expressions are the published ones of each model family (its tokenizer.json). Blanks are
 * listed, because \s is White_Space there but also includes U+180E in PCRE2. smollm separates
 * single digits first and applies GPT-2's expression to the rest; in one expression this means that
 * blanks before a digit are treated like blanks at the end. */
#include "text/pretokenizer.h"

#include <string.h>

#include "gguf/gguf.h"
#include "common/utf8.h"

#define BLANK   "\\t-\\r\\x{85}\\p{Z}"
#define NO_WORD "[^" BLANK "\\p{L}\\p{N}]+"
#define TAIL(also)                                                                                 \
    "|[" BLANK "]+(?![^" BLANK also "])"                                                           \
    "|[" BLANK "]+"

static const char gpt2[] = "'(?:s|t|re|ve|m|ll|d)| ?\\p{L}+| ?\\p{N}+| ?" NO_WORD TAIL("");
static const char smollm[] = "'(?:s|t|re|ve|m|ll|d)| ?\\p{L}+|\\p{N}| ?" NO_WORD TAIL("\\p{N}");
#define LATER(digits)                                                                              \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?" NO_WORD             \
    "[\\r\\n]*|[" BLANK "]*[\\r\\n]+" TAIL("")
static const char qwen2[] = LATER("\\p{N}");
static const char llama3[] = LATER("\\p{N}{1,3}");

/* Words are cut where small letters are followed by capitals: gpt-4o, and Mistral's tekken, which
 * has neither contractions nor numbers of several digits. */
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(contraction, digits)                                                                 \
    "[^\\r\\n\\p{L}\\p{N}]?" CAPITALS "*" SMALL "+" contraction "|[^\\r\\n\\p{L}\\p{N}]?" CAPITALS \
    "+" SMALL "*" contraction "|" digits "| ?" NO_WORD "[\\r\\n/]*|[" BLANK "]*[\\r\\n]+" TAIL("")
static const char gpt4o[] = CASED("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "\\p{N}{1,3}");
static const char tekken[] = CASED("", "\\p{N}");

/* Names as converters write them; several families have the same expression. */
static const struct family {
    const char *name, *expression;
    bool ignore_merges, wants_bos;
} families[] = {
    {"default", gpt2, false, false},     {"gpt-2", gpt2, false, false},
    {"a.x-4.0", gpt2, false, false},     {"mellum", gpt2, false, false},
    {"trillion", gpt2, false, false},    {"granite-docling", gpt2, false, false},
    {"qwen2", qwen2, false, false},      {"deepseek-r1-qwen", qwen2, false, false},
    {"megrez", qwen2, false, false},     {"kormo", qwen2, false, false},
    {"smollm", smollm, false, false},    {"refact", smollm, false, false},
    {"starcoder", smollm, false, false}, {"minerva-7b", smollm, false, false},
    {"llama-bpe", llama3, true, true},   {"llama3", llama3, true, true},
    {"llama-v3", llama3, true, true},    {"falcon3", llama3, true, true},
    {"pixtral", llama3, true, true},     {"midm-2.0", llama3, true, true},
    {"dbrx", llama3, false, false},      {"smaug-bpe", llama3, false, false},
    {"gpt-4o", gpt4o, false, false},     {"tekken", tekken, true, true},
};

drey_status pretokenizer_init(pretokenizer *p, const char *name, size_t n_bytes, drey_error *err)
{
    *p = (pretokenizer){0};
    if (!name) {
        name = "default";
        n_bytes = strlen(name);
    }
    const struct family *f = NULL;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strlen(families[i].name) == n_bytes && memcmp(families[i].name, name, n_bytes) == 0)
            f = &families[i];
    if (!f)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the pre-tokenizer \"%s\" is not supported; use a model with one of gpt-2, qwen2, "
             "llama-bpe, smollm, refact, starcoder, dbrx, gpt-4o, tekken",
             gguf_printable((char[64]){0}, 64, name, n_bytes));
    int code;
    PCRE2_SIZE at;
    p->code = pcre2_compile((PCRE2_SPTR)f->expression, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &code, &at, NULL);
    if (!p->code)
        FAIL(err, DREY_ERR_INTERNAL, "PCRE2 refuses the expression of %s (error %d at %zu)",
             f->name, code, at);
    /* If the system allows no executable memory, the interpreter is used. */
    pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE);
    p->ignore_merges = f->ignore_merges;
    p->wants_bos = f->wants_bos;
    return DREY_OK;
}

void pretokenizer_free(pretokenizer *p)
{
    pcre2_code_free(p->code);
    *p = (pretokenizer){0};
}

drey_status splitter_init(splitter *s, const pretokenizer *p, drey_error *err)
{
    *s = (splitter){.pretokenizer = p};
    s->data = pcre2_match_data_create(1, NULL);
    s->context = pcre2_match_context_create(NULL);
    if (!s->data || !s->context) {
        splitter_free(s);
        FAIL(err, DREY_ERR_MEMORY, "no memory to split a text");
    }
    return DREY_OK;
}

void splitter_free(splitter *s)
{
    pcre2_match_data_free(s->data);
    pcre2_match_context_free(s->context);
    *s = (splitter){0};
}

size_t splitter_next(splitter *s, const char *text, size_t n, size_t at)
{
    /* A word costs a few steps per byte; this also bounds a series of blanks of any length. */
    uint64_t limit = 100000 + 4 * (uint64_t)(n - at);
    pcre2_set_match_limit(s->context, limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX);
    const pcre2_code *code = s->pretokenizer->code;
    int found = pcre2_match(code, (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK, s->data, s->context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
        found = pcre2_match(code, (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                            s->data, s->context);
    size_t end = found > 0 ? pcre2_get_ovector_pointer(s->data)[1] : at;
    if (end > at)
        return end - at;
    /* Every character matches some alternative, so only a limit leads here: take one character. */
    int length = utf8_length((const uint8_t *)text + at, n - at);
    return length > 0 ? (size_t)length : 1;
}
