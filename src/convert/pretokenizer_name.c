/* Finds the name of a tokenizer.json's pre-tokenizer: see vocabulary.h.
 *
 * It is a list of steps: splits by an expression, digits, and at last bytes as characters, which
 * may split by GPT-2's expression before. The expressions are compared as texts with those of the
 * table that the tokenizer works by: those of published models are copies of few. */
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"
#include "convert/vocabulary.h"
#include "text/pretokenizer_rules.h"

typedef struct steps {
    char texts[PRETOKENIZER_STEPS][PRETOKENIZER_EXPRESSION_BYTES];
    split_step list[PRETOKENIZER_STEPS + 1];
    int n;
    bool bytes;
} steps;

/* Writes an expression in ASCII, as the table has it. False: it is too long. */
static bool spell(const char *text, char out[PRETOKENIZER_EXPRESSION_BYTES])
{
    size_t at = 0, n = strlen(text);
    for (size_t i = 0; i < n;) {
        int length = utf8_length((const uint8_t *)text + i, n - i);
        if (length < 1 || at + 16 > PRETOKENIZER_EXPRESSION_BYTES)
            return false;
        uint32_t c = utf8_code_point((const uint8_t *)text + i, length);
        i += (size_t)length;
        if (c >= 0x80)
            at += (size_t)snprintf(out + at, 16, "\\x{%X}", c);
        else if (c == '\n' || c == '\r' || c == '\t')
            at += (size_t)snprintf(out + at, 16, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else
            out[at++] = (char)c;
    }
    out[at] = '\0';
    return true;
}

static drey_status add_step(steps *s, const char *expression, bool joins_next, drey_error *err)
{
    if (s->n == PRETOKENIZER_STEPS || s->bytes || !spell(expression, s->texts[s->n]))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "tokenizer.json splits texts in a way that drey does not know");
    s->list[s->n] = (split_step){.expression = s->texts[s->n], .joins_next = joins_next};
    s->n++;
    return DREY_OK;
}

static drey_status read_split(steps *s, const json_value *step, drey_error *err)
{
    bool invert;
    const json_value *pattern = json_member(step, "pattern");
    json_member_bool(step, "invert", &invert);
    bool kept = json_member_is(step, "behavior", "Isolated") ||
                (json_member_is(step, "behavior", "Removed") && invert);
    bool joins_next = !invert && json_member_is(step, "behavior", "MergedWithNext");
    const char *expression = json_member_text(pattern, "Regex");
    if (!expression || (!kept && !joins_next))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "tokenizer.json splits texts in a way that drey does not know");
    return add_step(s, expression, joins_next, err);
}

static drey_status read_step(steps *s, const json_value *step, drey_error *err)
{
    const char *type = json_member_text(step, "type");
    bool set;
    if (type && strcmp(type, "Split") == 0)
        return read_split(s, step, err);
    if (type && strcmp(type, "Digits") == 0) {
        json_member_bool(step, "individual_digits", &set);
        return add_step(s, set ? "\\p{N}" : "\\p{N}+", false, err);
    }
    if (type && strcmp(type, "ByteLevel") == 0 && !s->bytes) {
        json_member_bool(step, "add_prefix_space", &set);
        if (set)
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "tokenizer.json puts a blank before texts "
                 "(add_prefix_space), which drey's byte-level BPE does not");
        if (!json_member_bool(step, "use_regex", &set) || set)
            TRY(add_step(s, pretokenizer_gpt2, false, err));
        s->bytes = true;
        return DREY_OK;
    }
    FAIL(err, DREY_ERR_UNSUPPORTED,
         "tokenizer.json has the pre-tokenizer \"%.40s\", which drey "
         "does not know",
         type ? type : "?");
}

static drey_status name_of(const steps *s, bool ignore_merges, const char **name, drey_error *err)
{
    *name = s->bytes ? pretokenizer_name_of(s->list, ignore_merges) : NULL;
    if (!*name)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "tokenizer.json splits texts by an expression that drey "
             "does not know: %.200s",
             s->n ? s->texts[0] : "none");
    return DREY_OK;
}

/* Texts become others before they are split; NFC is nearly always what they are already, and
 * converters leave it out. A sequence of none of them is what DeepSeek has. */
static drey_status check_normalizer(const json_value *normalizer, drey_error *err)
{
    const json_value *list = json_member_array(normalizer, "normalizers");
    const char *type = json_member_text(normalizer, "type");
    if (!normalizer || normalizer->type == JSON_NULL || (type && strcmp(type, "NFC") == 0))
        return DREY_OK;
    if (list) {
        for (const json_value *v = list->first; v; v = v->next)
            TRY(check_normalizer(v, err));
        return DREY_OK;
    }
    FAIL(err, DREY_ERR_UNSUPPORTED,
         "tokenizer.json has the normalizer \"%.40s\", which drey's byte-level BPE does not do",
         type ? type : "?");
}

drey_status pretokenizer_name(const json_value *root, const char **name, drey_error *err)
{
    const json_value *pre = json_member(root, "pre_tokenizer");
    const json_value *list = json_member_array(pre, "pretokenizers");
    steps s = {.n = 0};
    bool ignore_merges;
    TRY(check_normalizer(json_member(root, "normalizer"), err));
    if (!pre)
        FAIL(err, DREY_ERR_UNSUPPORTED, "tokenizer.json has no pre_tokenizer");
    if (list)
        for (const json_value *v = list->first; v; v = v->next)
            TRY(read_step(&s, v, err));
    else
        TRY(read_step(&s, pre, err));
    json_member_bool(json_member(root, "model"), "ignore_merges", &ignore_merges);
    return name_of(&s, ignore_merges, name, err);
}
