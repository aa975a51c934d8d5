/* Pre-tokenizers over PCRE2: see pretokenizer.h.
 *
 * Blanks are listed where an expression has \s, because it is White_Space in tokenizer.json but
 * also includes U+180E in PCRE2. A step is matched lazily, only as far as the next word, so that
 * the words of a text need no memory. */
#include "text/pretokenizer.h"

#include <assert.h>
#include <string.h>

#include "common/utf8.h"
#include "gguf/gguf.h"

/* Writes an expression as PCRE2 needs it. */
static void spell_out(const char *expression, char out[PRETOKENIZER_EXPRESSION_BYTES])
{
    static const char *const blanks[][2] = {{"[\\t-\\r\\x{85}\\p{Z}]", "[^\\t-\\r\\x{85}\\p{Z}]"},
                                            {"\\t-\\r\\x{85}\\p{Z}", ""}};
    size_t n = 0;
    bool in_class = false;
    for (const char *p = expression; *p; p++) {
        bool escaped = *p == '\\';
        if (escaped && (p[1] == 's' || p[1] == 'S')) {
            const char *blank = blanks[in_class][*++p == 'S'];
            memcpy(out + n, blank, strlen(blank));
            n += strlen(blank);
        } else {
            if (*p == '[' || *p == ']')
                in_class = *p == '[';
            out[n++] = *p;
            if (escaped)
                out[n++] = *++p;
        }
        assert(n + 32 < PRETOKENIZER_EXPRESSION_BYTES);
    }
    out[n] = '\0';
}

static drey_status compile(pretokenizer *p, const split_step *step, drey_error *err)
{
    char expression[PRETOKENIZER_EXPRESSION_BYTES];
    int code;
    PCRE2_SIZE at;
    spell_out(step->compiled ? step->compiled : step->expression, expression);
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
                                         PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    if (!compiled)
        FAIL(err, DREY_ERR_INTERNAL, "PCRE2 refuses the expression of %s (error %d at %zu)",
             p->family->name, code, at);
    /* If the system allows no executable memory, the interpreter is used. */
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
    p->codes[p->n_steps++] = compiled;
    return DREY_OK;
}

static drey_status refuse(const char *name, size_t n_bytes, drey_error *err)
{
    char shown[64];
    const char *kind = pretokenizer_other(name, n_bytes), *like = pretokenizer_like(name, n_bytes);
    gguf_printable(shown, sizeof shown, name, n_bytes);
    if (kind)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the pre-tokenizer \"%s\" belongs to another kind of tokenizer (%s), which is not "
             "supported with \"gpt2\"; use another model",
             shown, kind);
    FAIL(
        err, DREY_ERR_UNSUPPORTED,
        "the pre-tokenizer \"%s\" is not supported%s%s%s; use a model with one of gpt-2, qwen2, "
        "llama-bpe, smollm, gpt-4o, tekken, deepseek-v3 and the others of docs/reference/models.md",
        shown, like ? " (the nearest one is \"" : "", like ? like : "", like ? "\")" : "");
}

drey_status pretokenizer_init(pretokenizer *p, const char *name, size_t n_bytes, drey_error *err)
{
    *p = (pretokenizer){0};
    if (!name) {
        name = "default";
        n_bytes = strlen(name);
    }
    p->family = pretokenizer_find(name, n_bytes);
    if (!p->family)
        return refuse(name, n_bytes, err);
    drey_status status = DREY_OK;
    const split_step *steps = p->family->steps;
    for (int i = 0; i < PRETOKENIZER_STEPS && steps[i].expression && status == DREY_OK; i++)
        status = compile(p, &steps[i], err);
    if (status != DREY_OK)
        pretokenizer_free(p);
    return status;
}

void pretokenizer_free(pretokenizer *p)
{
    for (int i = 0; i < p->n_steps; i++)
        pcre2_code_free(p->codes[i]);
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

void splitter_begin(splitter *s, const char *text, size_t n)
{
    s->text = text;
    s->at = 0;
    for (int k = 0; k <= PRETOKENIZER_STEPS; k++)
        s->piece[k] = (struct piece_of_text){0, 0, 0, 0};
    s->piece[0].end = n;
}

static size_t character(const splitter *s, size_t at, size_t end)
{
    int length = utf8_length((const uint8_t *)s->text + at, end - at);
    return length > 0 ? (size_t)length : 1;
}

/* Finds the next match of a step in a piece; the piece's end where there is none. */
static void find(splitter *s, const pcre2_code *code, struct piece_of_text *piece)
{
    const PCRE2_SPTR text = (PCRE2_SPTR)s->text + piece->begin;
    size_t n = piece->end - piece->begin, at = s->at - piece->begin;
    uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    /* A word costs a few steps per byte; this also bounds a series of blanks of any length. */
    uint64_t limit = 100000 + 4 * (uint64_t)(n - at);
    pcre2_set_match_limit(s->context, limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX);
    int found = pcre2_match(code, text, n, at, options, s->data, s->context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
        found = pcre2_match(code, text, n, at, options | PCRE2_NO_JIT, s->data, s->context);
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(s->data);
    piece->found = piece->found_end = piece->end;
    if (found >= 0) {
        piece->found = piece->begin + ends[0];
        piece->found_end = piece->begin + ends[1];
    } else if (found != PCRE2_ERROR_NOMATCH) { /* a limit: take one character */
        piece->found = s->at;
        piece->found_end = s->at + character(s, s->at, piece->end);
    }
}

/* The end of the first part of a match that is cut into threes from its end. What was cut off
 * before leaves a multiple of three. */
static size_t first_third(const splitter *s, const struct piece_of_text *piece)
{
    size_t n = 3, end = s->at;
    if (piece->found == s->at) {
        size_t n_all = 0;
        for (size_t i = s->at; i < piece->found_end; i += character(s, i, piece->found_end))
            n_all++;
        n = n_all % 3 ? n_all % 3 : 3;
    }
    for (size_t i = 0; i < n && end < piece->found_end; i++)
        end += character(s, end, piece->found_end);
    return end;
}

/* Makes piece[k + 1], which begins at `at`. */
static void divide(splitter *s, int k)
{
    struct piece_of_text *whole = &s->piece[k], *part = &s->piece[k + 1];
    if (whole->found_end <= s->at)
        find(s, s->pretokenizer->codes[k], whole);
    size_t end = s->at < whole->found ? whole->found : whole->found_end;
    if (s->at >= whole->found && s->pretokenizer->family->steps[k].thirds)
        end = first_third(s, whole);
    *part = (struct piece_of_text){.begin = s->at, .end = end};
}

size_t splitter_next(splitter *s)
{
    int n_steps = s->pretokenizer->n_steps, k = n_steps;
    if (s->at >= s->piece[0].end)
        return 0;
    while (s->piece[k].end <= s->at)
        k--;
    for (; k < n_steps; k++)
        divide(s, k);
    size_t length = s->piece[n_steps].end - s->at;
    s->at = s->piece[n_steps].end;
    return length;
}
