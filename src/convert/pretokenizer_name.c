/* Which pre-tokenizer a tokenizer.json has: see vocabulary.h.
 *
 * It is a list of steps: a split by an expression, digits one by one, and bytes as characters,
 * which may split by GPT-2's expression before. The expressions are compared as texts: those of
 * published models are copies of few. */
#include <string.h>

#include "convert/vocabulary.h"

#define WORDS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define TAIL  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CASED(contraction, digits)                                                                 \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"     \
    "+" contraction "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"                 \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" contraction "|" digits                                        \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

static const struct {
    const char *expression, *name;
    const char *merging; /* its name where a word that is a token is cut all the same; NULL: it is
                            `name` */
} splits[] = {
    {CONTRACTION "|" WORDS "|\\p{N}{1,3}" TAIL, "llama-bpe", "dbrx"},
    {CONTRACTION "|" WORDS "|\\p{N}" TAIL, "qwen2", NULL},
    {CASED(CONTRACTION "?", "\\p{N}{1,3}"), "gpt-4o", NULL},
    {CASED("", "\\p{N}"), "tekken", NULL},
};

typedef struct steps {
    const char *expression; /* of the split; NULL: there is none */
    bool digits, bytes;
    bool gpt2; /* bytes split by GPT-2's expression */
} steps;

static drey_status read_split(steps *s, const json_value *step, drey_error *err)
{
    bool invert;
    const json_value *pattern = json_member(step, "pattern");
    json_member_bool(step, "invert", &invert);
    bool kept = json_member_is(step, "behavior", "Isolated") ||
                (json_member_is(step, "behavior", "Removed") && invert);
    const char *expression = json_member_text(pattern, "Regex");
    if (!expression || !kept || s->expression || s->digits)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "tokenizer.json splits texts in a way that drey does not know");
    s->expression = expression;
    return DREY_OK;
}

static drey_status read_step(steps *s, const json_value *step, drey_error *err)
{
    const char *type = json_member_text(step, "type");
    bool set;
    if (type && strcmp(type, "Split") == 0)
        return read_split(s, step, err);
    if (type && strcmp(type, "Digits") == 0 && json_member_bool(step, "individual_digits", &set) &&
        set && !s->expression) {
        s->digits = true;
        return DREY_OK;
    }
    if (type && strcmp(type, "ByteLevel") == 0 && !s->bytes) {
        json_member_bool(step, "add_prefix_space", &set);
        if (set)
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "tokenizer.json puts a blank before texts "
                 "(add_prefix_space), which drey's byte-level BPE does not");
        s->bytes = true;
        s->gpt2 = !json_member_bool(step, "use_regex", &set) || set;
        return DREY_OK;
    }
    FAIL(err, DREY_ERR_UNSUPPORTED,
         "tokenizer.json has the pre-tokenizer \"%.40s\", which drey "
         "does not know",
         type ? type : "?");
}

static drey_status name_of(const steps *s, bool ignore_merges, const char **name, drey_error *err)
{
    *name = NULL;
    if (s->bytes && s->gpt2 && !s->expression)
        *name = s->digits ? "smollm" : "gpt-2";
    for (size_t i = 0; s->bytes && !s->gpt2 && s->expression && i < sizeof splits / sizeof *splits;
         i++)
        if (strcmp(splits[i].expression, s->expression) == 0)
            *name = splits[i].merging && !ignore_merges ? splits[i].merging : splits[i].name;
    if (!*name)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "tokenizer.json splits texts by an expression that drey "
             "does not know: %.200s",
             s->expression ? s->expression : "none");
    return DREY_OK;
}

/* Texts become others before they are split; NFC is nearly always what they are already, and
 * converters leave it out. */
static drey_status check_normalizer(const json_value *normalizer, drey_error *err)
{
    const char *type = json_member_text(normalizer, "type");
    if (!normalizer || (type && strcmp(type, "NFC") == 0))
        return DREY_OK;
    FAIL(err, DREY_ERR_UNSUPPORTED,
         "tokenizer.json has the normalizer \"%.40s\", which drey's byte-level BPE does not do",
         type ? type : "?");
}

drey_status pretokenizer_name(const json_value *tokenizer, const char **name, drey_error *err)
{
    const json_value *pre = json_member(tokenizer, "pre_tokenizer");
    const json_value *list = json_member_array(pre, "pretokenizers");
    steps s = {0};
    bool ignore_merges;
    TRY(check_normalizer(json_member(tokenizer, "normalizer"), err));
    if (!pre)
        FAIL(err, DREY_ERR_UNSUPPORTED, "tokenizer.json has no pre_tokenizer");
    if (list)
        for (const json_value *v = list->first; v; v = v->next)
            TRY(read_step(&s, v, err));
    else
        TRY(read_step(&s, pre, err));
    json_member_bool(json_member(tokenizer, "model"), "ignore_merges", &ignore_merges);
    return name_of(&s, ignore_merges, name, err);
}
