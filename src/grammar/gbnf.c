/* GBNF, the notation of llama.cpp's grammars.
 *
 *     root  ::= "[" (item ("," item)*)? "]"     # a comment
 *     item  ::= [a-z]+ | "é"{1,3} | .
 *
 * A rule ends with its line, except inside of brackets and after "::=" and "|". Characters are
 * Unicode code points; "." is any. <[1000]> is the token of that number, <think> the special token
 * of that name, and !<think> any character, as a special token is none. Some words are our own, for
 * answers with calls (src/reply):
 *
 *     %json {"type": "object"}        JSON of a schema
 *     %unordered {"type": "object"}   the same, with the members of objects in any order
 *     %each (a b? c)                  a, c and perhaps b, in any order
 *     %each "," (a b? c)              the same, with commas between them
 *     %token "[TOOL_CALLS]"           the special token of that name, or its text
 *     %without "<call>" "[call]"      a text in which these do not occur
 *     %unlike (.* "<call>" [a-z])     a text with no such beginning; this has no rules
 *     %unlike (a) (b)                 the same, and the whole is not b
 *     %text {"maxLength": 5}          such a text, of the last "%unlike", that is of a schema */
#include "grammar/json_text.h"

#include <stdio.h>
#include <string.h>

#include "common/hex.h"
#include "common/num.h"
#include "common/utf8.h"
#include "grammar/grammar.h"
#include "grammar/vocab_trie.h"
#include "text/tokenizer.h"

enum { MOST_CLASS_RANGES = 1024 };
_Static_assert((int)EACH_MOST == (int)GRAMMAR_MOST_EACH, "a set's bits");

typedef struct gbnf {
    grammar_rules *g;
    const char *text;
    size_t n, at;
    int depth;
    json_rules json, unordered;
    raw_texts raw; /* texts of the last "%unlike" */
    drey_error *err;
    char_range ranges[MOST_CLASS_RANGES];
} gbnf;

static int line_of(const gbnf *p)
{
    int line = 1;
    for (size_t i = 0; i < p->at && i < p->n; i++)
        line += p->text[i] == '\n';
    return line;
}

#define WRONG(p, ...)                                                                              \
    do {                                                                                           \
        char what_[160];                                                                           \
        snprintf(what_, sizeof what_, __VA_ARGS__);                                                \
        FAIL((p)->err, DREY_ERR_USAGE, "line %d of the grammar: %s", line_of(p), what_);           \
    } while (0)

static int peek(const gbnf *p)
{
    return p->at < p->n ? (uint8_t)p->text[p->at] : -1;
}

static bool takes(gbnf *p, const char *word)
{
    size_t n = strlen(word);
    if (p->n - p->at < n || memcmp(p->text + p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

static void skip_blanks(gbnf *p, bool lines)
{
    for (int c;
         (c = peek(p)) == ' ' || c == '\t' || c == '#' || (lines && (c == '\n' || c == '\r'));) {
        if (c == '#')
            while (peek(p) >= 0 && peek(p) != '\n' && peek(p) != '\r')
                p->at++;
        else
            p->at++;
    }
}

static bool in_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static size_t word(gbnf *p)
{
    size_t n = 0;
    for (; in_word(peek(p)); n++)
        p->at++;
    return n;
}

/* ---- Characters ---- */

static drey_status read_hex(gbnf *p, int digits, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < digits; i++, p->at++) {
        int digit = hex_digit(peek(p));
        if (digit < 0)
            WRONG(p, "an escape needs %d hexadecimal digits", digits);
        *code = *code << 4 | (uint32_t)digit;
    }
    return DREY_OK;
}

static drey_status read_escape(gbnf *p, uint32_t *code)
{
    int c = peek(p);
    p->at += c >= 0;
    switch (c) {
    case 'x':
        TRY(read_hex(p, 2, code));
        break;
    case 'u':
        TRY(read_hex(p, 4, code));
        break;
    case 'U':
        TRY(read_hex(p, 8, code));
        break;
    case 't':
        *code = '\t';
        break;
    case 'r':
        *code = '\r';
        break;
    case 'n':
        *code = '\n';
        break;
    case '\\':
    case '"':
    case '[':
    case '-':
    case '^':
    case ']':
        *code = (uint32_t)c;
        break;
    default:
        WRONG(p, "there is no such escape after the backslash");
    }
    if (*code > 0x10FFFF || (*code >= 0xD800 && *code <= 0xDFFF))
        WRONG(p, "U+%04X is no character", *code);
    return DREY_OK;
}

static drey_status read_character(gbnf *p, uint32_t *code)
{
    if (p->at >= p->n)
        WRONG(p, "it ends within a text or a class");
    if (takes(p, "\\"))
        return read_escape(p, code);
    int length = utf8_length((const uint8_t *)p->text + p->at, p->n - p->at);
    if (length <= 0)
        WRONG(p, "a character is not UTF-8");
    *code = utf8_code_point((const uint8_t *)p->text + p->at, length);
    p->at += (size_t)length;
    return DREY_OK;
}

static drey_status read_text(gbnf *p, expr *out)
{
    int32_t from = p->g->n_bytes;
    while (!takes(p, "\"")) {
        uint32_t code;
        char bytes[4];
        TRY(read_character(p, &code));
        grammar_rules_keep(p->g, bytes, utf8_write(code, bytes));
    }
    *out = expr_kept(p->g, from);
    return DREY_OK;
}

static drey_status read_class(gbnf *p, expr *out)
{
    bool but_not = takes(p, "^");
    int32_t n = 0;
    while (!takes(p, "]")) {
        if (n == MOST_CLASS_RANGES)
            WRONG(p, "a class may have %d ranges", MOST_CLASS_RANGES);
        char_range r;
        TRY(read_character(p, &r.from));
        r.to = r.from;
        if (peek(p) == '-' && p->at + 1 < p->n && p->text[p->at + 1] != ']') {
            p->at++;
            TRY(read_character(p, &r.to));
        }
        if (r.to < r.from)
            WRONG(p, "a range in a class ends before it begins");
        p->ranges[n++] = r;
    }
    *out = expr_class(p->g, p->ranges, n, but_not);
    return DREY_OK;
}

/* ---- Words of our own ---- */

/* Over a schema; p->at is at its end then. */
static drey_status skip_schema(gbnf *p, const char **schema, size_t *n_schema)
{
    json_reader json;
    skip_blanks(p, false);
    json_reader_init(&json, p->text + p->at, p->n - p->at, JSON_MOST_DEPTH);
    json_event e = json_next(&json);
    size_t n = json.end;
    while (json.n_levels > 0 && e != JSON_BROKEN) {
        e = json_next(&json);
        n = json.at;
    }
    if (e != JSON_OBJECT && e != JSON_CLOSE)
        WRONG(p, "a schema, a JSON object, was expected after \"%%json\" and the like");
    *schema = p->text + p->at;
    *n_schema = n;
    p->at += n;
    return DREY_OK;
}

static drey_status read_json(gbnf *p, json_rules *json, expr *out)
{
    const char *schema;
    size_t n;
    int32_t rule = 0;
    TRY(skip_schema(p, &schema, &n));
    TRY(json_schema_add(p->g, json, schema, n, &rule, p->err));
    *out = expr_rule(p->g, rule);
    return DREY_OK;
}

static drey_status read_text_of(gbnf *p, expr *out)
{
    const char *schema;
    size_t n;
    if (!p->raw.all)
        WRONG(p, "\"%%text\" comes after an \"%%unlike\"");
    TRY(skip_schema(p, &schema, &n));
    return raw_texts_add(&p->raw, p->g, schema, n, out, p->err);
}

static drey_status read_token(gbnf *p, expr *out)
{
    const uint8_t byte = VOCAB_TRIE_TOKEN;
    expr text;
    skip_blanks(p, false);
    if (!takes(p, "\""))
        WRONG(p, "a text was expected after \"%%token\"");
    TRY(read_text(p, &text));
    *out = expr_alt(p->g, text, expr_seq(p->g, expr_bytes(p->g, &byte, 1), text));
    return DREY_OK;
}

static drey_status read_without(gbnf *p, expr *out)
{
    grammar_word words[GRAMMAR_MOST_WORDS];
    int32_t n = 0;
    for (skip_blanks(p, false); takes(p, "\""); skip_blanks(p, false)) {
        if (n == GRAMMAR_MOST_WORDS)
            WRONG(p, "\"%%without\" takes up to %d texts", GRAMMAR_MOST_WORDS);
        words[n].text = p->text + p->at;
        while (p->at < p->n && p->text[p->at] != '"' && p->text[p->at] != '\\')
            p->at++;
        words[n].n = (size_t)(p->text + p->at - words[n].text);
        if (!takes(p, "\"") || words[n].n == 0 || words[n].n >= GRAMMAR_WORD_CHARACTERS)
            WRONG(p, "\"%%without\" takes texts of 1 to %d bytes without escapes",
                  GRAMMAR_WORD_CHARACTERS - 1);
        n++;
    }
    *out = text_without(p->g, words, n);
    return DREY_OK;
}

/* ---- Tokens by number or name ---- */

static int32_t special_named(const tokenizer *t, const char *name, size_t n)
{
    char piece[VOCAB_TRIE_LONGEST];
    for (int32_t id = 0; id < tokenizer_n_vocab(t); id++)
        if (tokenizer_is_special(t, id) &&
            tokenizer_piece(t, id, true, false, piece, sizeof piece) == n &&
            memcmp(piece, name, n) == 0)
            return id;
    return -1;
}

/* After "<" up to ">": an id, of the vocabulary. */
static drey_status read_id(gbnf *p, int32_t *id)
{
    const tokenizer *t = p->g->tokenizer;
    const char *name = p->text + p->at - 1;
    size_t n = 1;
    int32_t number = -1;
    while (peek(p) >= 0 && peek(p) != '>' && peek(p) != '\n')
        p->at++;
    n += (size_t)(p->text + p->at - name);
    if (!takes(p, ">") || n > VOCAB_TRIE_LONGEST)
        WRONG(p, "a token is <[number]> or <name>");
    if (!t)
        WRONG(p, "tokens by name or number need a model");
    if (name[1] == '[' && name[n - 2] == ']') {
        number = 0;
        for (size_t i = 2; i < n - 2 && number >= 0; i++)
            number = name[i] >= '0' && name[i] <= '9' && number < tokenizer_n_vocab(t)
                         ? number * 10 + (name[i] - '0')
                         : -1;
    }
    *id = name[1] == '[' ? (n > 4 ? number : -1) : special_named(t, name, n);
    if (*id < 0 || *id >= tokenizer_n_vocab(t))
        WRONG(p, "the model has no special token %.*s", (int)min_size(n, 60), name);
    return DREY_OK;
}

static drey_status read_reference(gbnf *p, bool but_not, expr *out)
{
    uint8_t bytes[VOCAB_TRIE_LONGEST];
    int32_t id = -1;
    TRY(read_id(p, &id));
    int32_t n = vocab_trie_piece(p->g->tokenizer, id, bytes);
    if (n == 0)
        WRONG(p, "the token %d ends texts, or has none: leave it out", id);
    if (but_not && bytes[0] != VOCAB_TRIE_TOKEN)
        WRONG(p, "\"!\" is supported in front of special tokens alone");
    *out = but_not ? expr_class(p->g, p->ranges, 0, true) : expr_bytes(p->g, bytes, (size_t)n);
    return DREY_OK;
}

/* ---- Expressions ---- */

static drey_status read_alternatives(gbnf *p, bool nested, expr *out);

static drey_status read_item(gbnf *p, expr *out);

static drey_status read_unlike(gbnf *p, expr *out)
{
    expr begins, but_not = EXPR_NEVER;
    skip_blanks(p, false);
    TRY(read_item(p, &begins));
    skip_blanks(p, false);
    if (peek(p) == '(')
        TRY(read_item(p, &but_not));
    raw_texts_free(&p->raw);
    TRY(grammar_rules_check(p->g, p->err));
    TRY(raw_texts_init(&p->raw, p->g, begins, but_not, p->err));
    *out = raw_texts_expr(p->g, &p->raw);
    return DREY_OK;
}

static drey_status read_each(gbnf *p, expr *out)
{
    each_set set = {.separator = EXPR_EMPTY, .other = EXPR_NEVER};
    expr items[EACH_MOST];
    skip_blanks(p, false);
    if (peek(p) != '(' && peek(p) >= 0)
        TRY(read_item(p, &set.separator));
    skip_blanks(p, false);
    if (!takes(p, "("))
        WRONG(p, "\"%%each\" takes a list in brackets");
    for (skip_blanks(p, true); !takes(p, ")"); skip_blanks(p, true)) {
        if (set.n == EACH_MOST)
            WRONG(p, "\"%%each\" takes up to %d parts", EACH_MOST);
        TRY(read_item(p, &items[set.n]));
        if (!takes(p, "?"))
            set.required |= UINT64_C(1) << set.n;
        set.n++;
    }
    *out = expr_each(p->g, &set, items);
    return DREY_OK;
}

static drey_status read_item(gbnf *p, expr *out)
{
    if (takes(p, "\""))
        return read_text(p, out);
    if (takes(p, "["))
        return read_class(p, out);
    if (takes(p, ".")) {
        *out = expr_class(p->g, p->ranges, 0, true);
        return DREY_OK;
    }
    if (takes(p, "(")) {
        if (++p->depth > GRAMMAR_MOST_BRACKETS)
            WRONG(p, "brackets are nested deeper than %d", GRAMMAR_MOST_BRACKETS);
        skip_blanks(p, true);
        TRY(read_alternatives(p, true, out));
        p->depth--;
        if (!takes(p, ")"))
            WRONG(p, "a bracket is not closed");
        return DREY_OK;
    }
    if (takes(p, "%json"))
        return read_json(p, &p->json, out);
    if (takes(p, "%unordered"))
        return read_json(p, &p->unordered, out);
    if (takes(p, "%text"))
        return read_text_of(p, out);
    if (takes(p, "%unlike"))
        return read_unlike(p, out);
    if (takes(p, "%each"))
        return read_each(p, out);
    if (takes(p, "%token"))
        return read_token(p, out);
    if (takes(p, "%without"))
        return read_without(p, out);
    if (takes(p, "!<"))
        return read_reference(p, true, out);
    if (takes(p, "<"))
        return read_reference(p, false, out);
    const char *name = p->text + p->at;
    size_t n = word(p);
    if (n == 0)
        WRONG(p, "a rule, a text, a class or a bracket was expected");
    *out = expr_rule(p->g, rule_named(p->g, name, n));
    return DREY_OK;
}

/* -1: there are no digits. */
static int32_t read_count(gbnf *p)
{
    int32_t value = -1;
    for (int c; (c = peek(p)) >= '0' && c <= '9'; p->at++)
        value = min_i32((value < 0 ? 0 : value) * 10 + (c - '0'), RULES_MOST_REPEATS);
    return value;
}

static drey_status read_bounds(gbnf *p, int32_t *least, int32_t *most)
{
    skip_blanks(p, false);
    *least = read_count(p);
    skip_blanks(p, false);
    *most = *least;
    if (takes(p, ",")) {
        skip_blanks(p, false);
        *most = read_count(p); /* -1: no end */
        skip_blanks(p, false);
        *least = max_i32(*least, *most < 0 ? *least : 0);
    }
    if (*least < 0 || (*most >= 0 && *most < *least) || !takes(p, "}"))
        WRONG(p, "a repetition is {n}, {n,}, {n,m} or {,m} with n at most m");
    return DREY_OK;
}

static drey_status read_repeated(gbnf *p, bool nested, expr *out)
{
    TRY(read_item(p, out));
    for (;;) {
        int32_t least = 0, most = REPEAT_FOREVER;
        skip_blanks(p, nested);
        if (takes(p, "+"))
            least = 1;
        else if (takes(p, "?"))
            most = 1;
        else if (takes(p, "*"))
            least = 0;
        else if (takes(p, "{"))
            TRY(read_bounds(p, &least, &most));
        else
            return DREY_OK;
        *out = expr_repeat(p->g, *out, least, most);
    }
}

static bool ends_sequence(const gbnf *p)
{
    int c = peek(p);
    return c < 0 || c == '|' || c == ')' || c == '\n' || c == '\r';
}

static drey_status read_sequence(gbnf *p, bool nested, expr *out)
{
    *out = EXPR_EMPTY;
    skip_blanks(p, nested);
    while (!ends_sequence(p)) {
        expr item;
        TRY(read_repeated(p, nested, &item));
        *out = expr_seq(p->g, *out, item);
        skip_blanks(p, nested);
    }
    return DREY_OK;
}

static drey_status read_alternatives(gbnf *p, bool nested, expr *out)
{
    TRY(read_sequence(p, nested, out));
    while (takes(p, "|")) {
        expr other;
        skip_blanks(p, true);
        TRY(read_sequence(p, nested, &other));
        *out = expr_alt(p->g, *out, other);
    }
    return DREY_OK;
}

static drey_status read_rule(gbnf *p)
{
    const char *name = p->text + p->at;
    size_t n = word(p);
    if (n == 0)
        WRONG(p, "a rule's name was expected");
    skip_blanks(p, false);
    if (!takes(p, "::="))
        WRONG(p, "\"::=\" was expected after the name of a rule");
    skip_blanks(p, true);
    int32_t rule = rule_named(p->g, name, n);
    if (!p->g->full && p->g->rules[rule].body >= 0)
        WRONG(p, "the rule \"%.60s\" is defined twice", rule_shown(p->g, rule, (char[64]){0}));
    expr body;
    TRY(read_alternatives(p, false, &body));
    if (!p->g->full)
        p->g->rules[rule].body = body;
    if (peek(p) >= 0 && peek(p) != '\n' && peek(p) != '\r')
        WRONG(p, "the rule continues with something that is not part of a rule");
    skip_blanks(p, true);
    return DREY_OK;
}

static drey_status read_rules(gbnf *p)
{
    skip_blanks(p, true);
    while (p->at < p->n && !p->g->full)
        TRY(read_rule(p));
    return grammar_rules_check(p->g, p->err);
}

drey_status gbnf_read(grammar_rules *g, const char *text, size_t n, int32_t *root, drey_error *err)
{
    gbnf p = {.g = g, .text = text, .n = n, .err = err, .raw = {.counting = -1}};
    json_rules_init(&p.json);
    json_rules_init(&p.unordered);
    p.unordered.unordered = true;
    drey_status status = read_rules(&p);
    raw_texts_free(&p.raw);
    TRY(status);
    int32_t n_rules = g->n_rules;
    *root = rule_named(g, "root", 4);
    if (*root >= n_rules || g->rules[*root].body < 0)
        FAIL(err, DREY_ERR_USAGE, "the grammar has no rule \"root\", which whole texts match");
    return DREY_OK;
}
