/* Regular expressions: what they have in common in JavaScript, Python and PCRE and an automaton
 * can do. Look-around, back-references, word boundaries and flags are refused.
 *
 * Inside of a JSON string the same pattern is laid over what is written there: a quote of the
 * pattern is \" in the text. */
#include "grammar/readers.h"

#include <stdio.h>
#include <string.h>

#include "common/num.h"
#include "common/utf8.h"

enum { MOST_CLASS_RANGES = 512 };

typedef struct regex {
    grammar_rules *g;
    const char *text;
    size_t n, at;
    bool in_json;  /* inside of a JSON string */
    bool anywhere; /* it may match a part, unless it has anchors */
    int depth;
    drey_error *err;
} regex;

#define WRONG(p, ...)                                                                              \
    do {                                                                                           \
        char what_[160];                                                                           \
        snprintf(what_, sizeof what_, __VA_ARGS__);                                                \
        FAIL((p)->err, DREY_ERR_USAGE, "character %zu of the regular expression: %s",              \
             utf8_count((p)->text, (p)->at) + 1, what_);                                           \
    } while (0)

static int peek(const regex *p)
{
    return p->at < p->n ? (uint8_t)p->text[p->at] : -1;
}

static bool takes(regex *p, const char *word)
{
    size_t n = strlen(word);
    if (p->n - p->at < n || memcmp(p->text + p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

/* ---- Characters ---- */

typedef struct char_set {
    char_range r[MOST_CLASS_RANGES];
    int32_t n;
    bool full;
} char_set;

static void set_add(char_set *s, uint32_t from, uint32_t to)
{
    s->full = s->n == MOST_CLASS_RANGES;
    if (!s->full)
        s->r[s->n++] = (char_range){from, to};
}

static void set_add_named(char_set *s, char name)
{
    static const char_range digits[] = {{'0', '9'}};
    static const char_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const char_range blanks[] = {
        {'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
        {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
    char_range inverted[12];
    const char lower = (char)(name | 0x20);
    const char_range *r = lower == 'd' ? digits : lower == 'w' ? words : blanks;
    int32_t n = lower == 'd' ? 1 : lower == 'w' ? 4 : 10;
    if (name != lower) {
        n = ranges_invert(r, n, inverted);
        r = inverted;
    }
    for (int32_t i = 0; i < n; i++)
        set_add(s, r[i].from, r[i].to);
}

static drey_status read_hex(regex *p, int digits, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < digits; i++, p->at++) {
        int c = peek(p);
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            WRONG(p, "an escape needs %d hexadecimal digits", digits);
        *code = *code << 4 | (uint32_t)digit;
    }
    if (*code >= 0xD800 && *code <= 0xDFFF)
        WRONG(p, "U+%04X is no character", *code);
    return DREY_OK;
}

/* After a backslash: a character, or *named: the letter of a set. */
static drey_status read_escape(regex *p, uint32_t *code, char *named)
{
    int c = peek(p);
    *named = 0;
    p->at += c >= 0;
    switch (c) {
    case 'd':
    case 'D':
    case 'w':
    case 'W':
    case 's':
    case 'S':
        *named = (char)c;
        return DREY_OK;
    case 't':
        *code = '\t';
        return DREY_OK;
    case 'n':
        *code = '\n';
        return DREY_OK;
    case 'r':
        *code = '\r';
        return DREY_OK;
    case 'f':
        *code = '\f';
        return DREY_OK;
    case 'v':
        *code = '\v';
        return DREY_OK;
    case '0':
        *code = 0;
        return DREY_OK;
    case 'x':
        return read_hex(p, 2, code);
    case 'u':
        return read_hex(p, 4, code);
    default:
        break;
    }
    if (c < 0 || (c >= '1' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        c >= 0x80)
        WRONG(p, "the escape \\%c is not supported", c < 0 || c >= 0x80 ? ' ' : c);
    *code = (uint32_t)c;
    return DREY_OK;
}

static drey_status read_character(regex *p, uint32_t *code)
{
    int length = utf8_length((const uint8_t *)p->text + p->at, p->n - p->at);
    if (length <= 0)
        WRONG(p, "it is not UTF-8");
    *code = utf8_code_point((const uint8_t *)p->text + p->at, length);
    p->at += (size_t)length;
    return DREY_OK;
}

static expr class_of(regex *p, char_set *s, bool but_not)
{
    return p->in_json ? json_class(p->g, s->r, s->n, but_not)
                      : expr_class(p->g, s->r, s->n, but_not);
}

static expr character(regex *p, uint32_t code)
{
    char_set s = {.n = 1, .r = {{code, code}}};
    return class_of(p, &s, false);
}

static expr any_character(regex *p)
{
    char_set s = {.n = 2, .r = {{'\n', '\n'}, {'\r', '\r'}}};
    return class_of(p, &s, true);
}

/* ---- Classes ---- */

/* One end of a range, or a set by name. */
static drey_status read_member(regex *p, uint32_t *code, char *named)
{
    *named = 0;
    if (p->at >= p->n)
        WRONG(p, "a class is not closed");
    if (takes(p, "[:"))
        WRONG(p, "classes by name, as [:alpha:], are not supported");
    if (takes(p, "\\b")) {
        *code = '\b';
        return DREY_OK;
    }
    if (takes(p, "\\"))
        return read_escape(p, code, named);
    return read_character(p, code);
}

static drey_status read_class(regex *p, expr *out)
{
    char_set s = {.n = 0};
    bool but_not = takes(p, "^");
    do {
        uint32_t from, to;
        char named, other;
        if (s.n > 0 || peek(p) != ']' || p->anywhere) /* "[]a]": a first bracket is a character */
            if (takes(p, "]"))
                break;
        TRY(read_member(p, &from, &named));
        if (named) {
            set_add_named(&s, named);
            continue;
        }
        to = from;
        if (peek(p) == '-' && p->at + 1 < p->n && p->text[p->at + 1] != ']') {
            p->at++;
            TRY(read_member(p, &to, &other));
            if (other || to < from)
                WRONG(p, "a range in a class ends before it begins");
        }
        set_add(&s, from, to);
    } while (!s.full);
    if (s.full)
        WRONG(p, "a class may have %d ranges", MOST_CLASS_RANGES);
    *out = class_of(p, &s, but_not);
    return DREY_OK;
}

/* ---- Expressions ---- */

static drey_status read_alternatives(regex *p, expr *out);

static drey_status read_group(regex *p, expr *out)
{
    if (takes(p, "?")) {
        bool named = takes(p, "P<") || (p->at + 1 < p->n && p->text[p->at] == '<' &&
                                        p->text[p->at + 1] != '=' && p->text[p->at + 1] != '!');
        if (named)
            while (peek(p) >= 0 && !takes(p, ">"))
                p->at++;
        else if (!takes(p, ":"))
            WRONG(p, "look-around and flags are not supported");
    }
    if (++p->depth > GRAMMAR_MOST_BRACKETS)
        WRONG(p, "brackets are nested deeper than %d", GRAMMAR_MOST_BRACKETS);
    TRY(read_alternatives(p, out));
    p->depth--;
    if (!takes(p, ")"))
        WRONG(p, "a bracket is not closed");
    return DREY_OK;
}

static drey_status read_item(regex *p, expr *out)
{
    uint32_t code;
    char named;
    if (takes(p, "("))
        return read_group(p, out);
    if (takes(p, "["))
        return read_class(p, out);
    if (takes(p, ".")) {
        *out = any_character(p);
        return DREY_OK;
    }
    int c = peek(p);
    if (c == '^' || c == '$')
        WRONG(p, "an anchor is supported at the beginning and at the end alone");
    if (c == '*' || c == '+' || c == '?')
        WRONG(p, "there is nothing to repeat");
    if (takes(p, "\\")) {
        TRY(read_escape(p, &code, &named));
        char_set s = {.n = 0};
        if (named)
            set_add_named(&s, named);
        *out = named ? class_of(p, &s, false) : character(p, code);
        return DREY_OK;
    }
    TRY(read_character(p, &code));
    *out = character(p, code);
    return DREY_OK;
}

static int32_t read_count(regex *p)
{
    int32_t value = -1;
    for (int c; (c = peek(p)) >= '0' && c <= '9'; p->at++)
        value = min_i32((value < 0 ? 0 : value) * 10 + (c - '0'), RULES_MOST_REPEATS);
    return value;
}

/* Whether there are bounds; a bracket that begins none is a character. */
static bool take_bounds(regex *p, int32_t *least, int32_t *most)
{
    size_t from = p->at;
    if (!takes(p, "{"))
        return false;
    *least = *most = read_count(p);
    if (takes(p, ","))
        *most = read_count(p);
    if (*least >= 0 && takes(p, "}"))
        return true;
    p->at = from;
    return false;
}

static drey_status read_repeated(regex *p, expr *out)
{
    TRY(read_item(p, out));
    int32_t least = 0, most = REPEAT_FOREVER;
    if (takes(p, "+"))
        least = 1;
    else if (takes(p, "?"))
        most = 1;
    else if (!takes(p, "*") && !take_bounds(p, &least, &most))
        return DREY_OK;
    if (most >= 0 && most < least)
        WRONG(p, "a repetition ends before it begins");
    if (!takes(p, "?") && takes(p, "+")) /* lazy ones match the same texts */
        WRONG(p, "possessive repetitions are not supported");
    *out = expr_repeat(p->g, *out, least, most);
    return DREY_OK;
}

static drey_status read_sequence(regex *p, expr *out)
{
    *out = EXPR_EMPTY;
    for (int c; (c = peek(p)) >= 0 && c != '|' && c != ')';) {
        expr item;
        if (c == '$' && p->depth == 0) /* an anchor at the end of the whole */
            return DREY_OK;
        TRY(read_repeated(p, &item));
        *out = expr_seq(p->g, *out, item);
    }
    return DREY_OK;
}

/* One or more of what `one` reads, with | between them. */
static drey_status read_any_of(regex *p, drey_status (*one)(regex *, expr *), expr *out)
{
    TRY(one(p, out));
    while (takes(p, "|")) {
        expr other;
        TRY(one(p, &other));
        *out = expr_alt(p->g, *out, other);
    }
    return DREY_OK;
}

static drey_status read_alternatives(regex *p, expr *out)
{
    return read_any_of(p, read_sequence, out);
}

/* One of the alternatives of the whole, each of which has its own anchors. */
static drey_status read_anchored(regex *p, expr *out)
{
    expr any = EXPR_EMPTY;
    if (p->anywhere) {
        char_set none = {.n = 0};
        any = expr_repeat(p->g, class_of(p, &none, true), 0, REPEAT_FOREVER);
    }
    bool from_begin = takes(p, "^");
    TRY(read_sequence(p, out));
    if (!from_begin)
        *out = expr_seq(p->g, any, *out);
    if (!takes(p, "$"))
        *out = expr_seq(p->g, *out, any);
    return DREY_OK;
}

static drey_status read_whole(regex *p, expr *out)
{
    TRY(read_any_of(p, read_anchored, out));
    if (p->at < p->n)
        WRONG(p, p->text[p->at] == ')' ? "a bracket is closed that was not opened"
                                       : "an anchor is supported at the beginning and at the end "
                                         "alone");
    return DREY_OK;
}

drey_status regex_part(grammar_rules *g, const char *pattern, size_t n, bool in_json, expr *out,
                       drey_error *err)
{
    regex p = {.g = g, .text = pattern, .n = n, .in_json = in_json, .anywhere = true, .err = err};
    return read_whole(&p, out);
}

expr regex_known(grammar_rules *g, const char *pattern)
{
    expr out = EXPR_NEVER;
    regex p = {.g = g, .text = pattern, .n = strlen(pattern)};
    read_whole(&p, &out);
    return out;
}

drey_status regex_read(grammar_rules *g, const char *text, size_t n, int32_t *root, drey_error *err)
{
    expr body;
    regex p = {.g = g, .text = text, .n = n, .err = err};
    TRY(read_whole(&p, &body));
    *root = rule_new(g, "regular expression");
    if (!g->full)
        g->rules[*root].body = body;
    return DREY_OK;
}
