/* Regular expressions: what they have in common in JavaScript, Python and PCRE and an automaton
 * can do.
 *
 * Inside of a JSON string the same pattern is laid over what is written there: a quote of the
 * pattern is \" in the text. Anchors that are not at the ends and word boundaries are marks
 * (languages.h); what has to follow the beginning is another pattern, which the whole text
 * matches as well. Such patterns are put together as languages. Look-around elsewhere and
 * back-references are left out: the pattern then is loose. */
#include "grammar/languages.h"
#include "grammar/readers.h"
#include "grammar/unicode/unicode_class.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hex.h"
#include "common/num.h"
#include "common/utf8.h"

enum { MOST_CLASS_RANGES = 6000 };

typedef struct char_set {
    char_range r[MOST_CLASS_RANGES];
    int32_t n;
    bool full;
} char_set;

typedef struct regex {
    grammar_rules *g;
    const char *text;
    size_t n, at;
    bool in_json;  /* inside of a JSON string */
    bool anywhere; /* it may match a part, unless it has anchors */
    int depth;
    bool begins, many; /* only its begin was read so far; it has alternatives */
    bool unknown;      /* the error is a pattern that is valid and not supported */
    regex_pattern *out;
    char_set *set; /* set of the class that is being read */
    drey_error *err;
} regex;

#define WRONG(p, ...)                                                                              \
    do {                                                                                           \
        char what_[160];                                                                           \
        snprintf(what_, sizeof what_, __VA_ARGS__);                                                \
        FAIL((p)->err, DREY_ERR_USAGE, "character %zu of the regular expression: %s",              \
             utf8_count((p)->text, (p)->at) + 1, what_);                                           \
    } while (0)

#define UNKNOWN(p, ...)                                                                            \
    do {                                                                                           \
        (p)->unknown = true;                                                                       \
        WRONG(p, __VA_ARGS__);                                                                     \
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

static void set_add(char_set *s, uint32_t from, uint32_t to)
{
    s->full = s->full || s->n == MOST_CLASS_RANGES;
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
        int digit = hex_digit(peek(p));
        if (digit < 0)
            WRONG(p, "an escape needs %d hexadecimal digits", digits);
        *code = *code << 4 | (uint32_t)digit;
    }
    return DREY_OK;
}

/* After \u: 0041, d83d\ude00, or {1f600}. */
static drey_status read_unicode(regex *p, uint32_t *code)
{
    uint32_t low;
    int digits = 0;
    if (takes(p, "{")) {
        while (p->at + (size_t)digits < p->n && p->text[p->at + (size_t)digits] != '}' &&
               digits < 6)
            digits++;
        TRY(read_hex(p, digits, code));
        if (!takes(p, "}") || digits == 0)
            WRONG(p, "an escape \\u{ is not closed");
    } else {
        TRY(read_hex(p, 4, code));
    }
    if (*code >= 0xD800 && *code <= 0xDBFF && takes(p, "\\u")) {
        TRY(read_hex(p, 4, &low));
        uint32_t pair = utf16_pair(*code, low);
        if (pair == 0)
            WRONG(p, "U+%04X is no character", *code);
        *code = pair;
    }
    if (*code > 0x10FFFF || (*code >= 0xD800 && *code <= 0xDFFF))
        WRONG(p, "U+%04X is no character", *code);
    return DREY_OK;
}

/* After \p or \P: {name}, or a letter. Its characters are added to the set. */
static drey_status read_property(regex *p, bool but_not, char_set *s)
{
    char_range ranges[UNICODE_MOST_RANGES], others[UNICODE_MOST_RANGES + 2];
    const char *name = p->text + p->at, *end = NULL;
    size_t n = p->at < p->n;
    if (takes(p, "{")) {
        end = memchr(++name, '}', p->n - p->at);
        if (!end)
            WRONG(p, "the escape \\p{ is not closed");
        n = (size_t)(end - name);
        p->at++;
    }
    int32_t n_ranges = unicode_class(name, n, ranges);
    if (n_ranges < 0)
        UNKNOWN(p, "there is no class of characters \\p{%.*s}", (int)min_size(n, 40), name);
    p->at += n;
    if (but_not)
        n_ranges = ranges_invert(ranges, n_ranges, others);
    for (int32_t i = 0; i < n_ranges; i++)
        set_add(s, (but_not ? others : ranges)[i].from, (but_not ? others : ranges)[i].to);
    return DREY_OK;
}

/* After a backslash: a character, or *named: the letter of a set. */
static drey_status read_escape(regex *p, uint32_t *code, char *named)
{
    int c = peek(p);
    *named = 0;
    p->at += c >= 0;
    switch (c) {
    case 'p':
    case 'P':
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
        return read_unicode(p, code);
    case 'c':
        c = peek(p) | 0x20;
        if (c < 'a' || c > 'z')
            WRONG(p, "a letter was expected after \\c");
        p->at++;
        *code = (uint32_t)c & 31;
        return DREY_OK;
    default:
        break;
    }
    if (c < 0 || (c >= '1' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        c >= 0x80)
        UNKNOWN(p, "the escape \\%c is not supported", c < 0 || c >= 0x80 ? ' ' : c);
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

static expr class_of(const regex *p, char_range *ranges, int32_t n, bool but_not)
{
    return p->in_json ? json_class(p->g, ranges, n, but_not) : expr_class(p->g, ranges, n, but_not);
}

static expr character(const regex *p, uint32_t code)
{
    char_range one[1] = {{code, code}};
    return class_of(p, one, 1, false);
}

static expr any_character(const regex *p)
{
    char_range lines[] = {{'\n', '\n'}, {'\r', '\r'}};
    return class_of(p, lines, 2, true);
}

static expr any_text(const regex *p)
{
    char_range none[1];
    return expr_repeat(p->g, class_of(p, none, 0, true), 0, REPEAT_FOREVER);
}

/* Over characters alone: otherwise the pattern is read again. */
static expr marked(regex *p, uint32_t mark)
{
    p->out->marked = true;
    return p->in_json ? EXPR_EMPTY : character(p, mark);
}

static void loosely(regex *p, const char *why)
{
    p->out->loose = true;
    p->out->why = why;
}

/* ---- Classes ---- */

/* One end of a range, or a set by name. */
static drey_status read_member(regex *p, uint32_t *code, char *named)
{
    *named = 0;
    if (p->at >= p->n)
        WRONG(p, "a class is not closed");
    if (takes(p, "[:"))
        UNKNOWN(p, "classes by name, as [:alpha:], are not supported");
    if (takes(p, "\\b")) {
        *code = '\b';
        return DREY_OK;
    }
    if (takes(p, "\\"))
        return read_escape(p, code, named);
    return read_character(p, code);
}

static drey_status add_named(regex *p, char named, char_set *s)
{
    if (named == 'p' || named == 'P')
        return read_property(p, named == 'P', s);
    set_add_named(s, named);
    return DREY_OK;
}

static drey_status read_class(regex *p, expr *out)
{
    char_set *s = p->set;
    bool but_not = takes(p, "^");
    s->n = 0;
    s->full = false;
    do {
        uint32_t from, to;
        char named, other;
        if (s->n > 0 || peek(p) != ']' || p->anywhere) /* "[]a]": a first bracket is a character */
            if (takes(p, "]"))
                break;
        TRY(read_member(p, &from, &named));
        if (named) {
            TRY(add_named(p, named, s));
            continue;
        }
        to = from;
        if (peek(p) == '-' && p->at + 1 < p->n && p->text[p->at + 1] != ']') {
            p->at++;
            TRY(read_member(p, &to, &other));
            if (other || to < from)
                WRONG(p, "a range in a class ends before it begins");
        }
        set_add(s, from, to);
    } while (!s->full);
    if (s->full)
        UNKNOWN(p, "a class may have %d ranges", MOST_CLASS_RANGES);
    *out = class_of(p, s->r, s->n, but_not);
    return DREY_OK;
}

/* ---- Expressions ---- */

static drey_status read_alternatives(regex *p, expr *out);

static drey_status read_inside(regex *p, expr *out)
{
    if (++p->depth > GRAMMAR_MOST_BRACKETS)
        WRONG(p, "brackets are nested deeper than %d", GRAMMAR_MOST_BRACKETS);
    TRY(read_alternatives(p, out));
    p->depth--;
    if (!takes(p, ")"))
        WRONG(p, "a bracket is not closed");
    return DREY_OK;
}

/* Reads look-around: a pattern that the text has to match as well, or must not. It is held at the
 * beginning and before the end. */
static drey_status read_around(regex *p, bool ahead, bool but_not)
{
    regex_pattern *out = p->out;
    const bool begins = p->begins, was_loose = out->loose;
    expr inside;
    out->loose = p->begins = false;
    TRY(read_inside(p, &inside));
    const bool text_ends = p->n - p->at >= 2 && memcmp(p->text + p->at, "\\Z", 2) == 0;
    const bool at_end =
        p->depth == 0 && (peek(p) == '$' || text_ends || (p->at == p->n && !p->anywhere));
    const bool whole = !out->loose && (ahead ? begins : at_end);
    out->loose = was_loose;
    p->begins = begins;
    if (!whole || out->n_around == PATTERN_MOST_AROUND) {
        loosely(p, "look-around is supported at the beginning, and before the end, alone");
        return DREY_OK;
    }
    out->around[out->n_around] =
        ahead ? expr_seq(p->g, inside, any_text(p)) : expr_seq(p->g, any_text(p), inside);
    out->around_not[out->n_around++] = but_not;
    return DREY_OK;
}

static void skip_name(regex *p)
{
    while (peek(p) >= 0 && !takes(p, ">"))
        p->at++;
}

static drey_status read_group(regex *p, expr *out)
{
    *out = EXPR_EMPTY;
    if (!takes(p, "?")) {
        p->begins = false;
        return read_inside(p, out);
    }
    if (takes(p, "="))
        return read_around(p, true, false);
    if (takes(p, "!"))
        return read_around(p, true, true);
    if (takes(p, "<="))
        return read_around(p, false, false);
    if (takes(p, "<!"))
        return read_around(p, false, true);
    if (takes(p, ">"))
        loosely(p, "atomic groups are not supported");
    else if (takes(p, "P<") || takes(p, "<"))
        skip_name(p);
    else if (!takes(p, ":"))
        UNKNOWN(p, "flags are not supported");
    p->begins = false;
    return read_inside(p, out);
}

/* Takes what stands for no character, as an anchor. False: it is not there. */
static bool take_place(regex *p, expr *out)
{
    static const struct {
        char text[4];
        uint32_t mark;
    } marks[] = {{"^", MARK_BEGIN},        {"$", MARK_END},   {"\\A", MARK_BEGIN},
                 {"\\Z", MARK_END},        {"\\z", MARK_END}, {"\\b", MARK_OF_WORD},
                 {"\\B", MARK_NOT_OF_WORD}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (takes(p, marks[i].text)) {
            *out = marked(p, marks[i].mark);
            return true;
        }
    const bool number = peek(p) == '\\' && p->at + 1 < p->n && p->text[p->at + 1] >= '1' &&
                        p->text[p->at + 1] <= '9';
    if (!number && !takes(p, "\\k<"))
        return false;
    if (number)
        for (p->at++; peek(p) >= '0' && peek(p) <= '9';)
            p->at++;
    else
        skip_name(p);
    loosely(p, "back-references are not supported");
    *out = any_text(p);
    return true;
}

static drey_status read_item(regex *p, expr *out)
{
    uint32_t code;
    char named;
    if (takes(p, "("))
        return read_group(p, out);
    p->begins = false;
    if (takes(p, "["))
        return read_class(p, out);
    if (takes(p, ".")) {
        *out = any_character(p);
        return DREY_OK;
    }
    int c = peek(p);
    if (take_place(p, out))
        return DREY_OK;
    if (c == '*' || c == '+' || c == '?')
        WRONG(p, "there is nothing to repeat");
    if (takes(p, "\\")) {
        TRY(read_escape(p, &code, &named));
        p->set->n = 0;
        p->set->full = false;
        if (named)
            TRY(add_named(p, named, p->set));
        *out = named ? class_of(p, p->set->r, p->set->n, false) : character(p, code);
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

/* Returns whether bounds follow; a bracket that begins none is a character. */
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
        loosely(p, "possessive repetitions are not supported");
    *out = expr_repeat(p->g, *out, least, most);
    return DREY_OK;
}

/* Returns whether an anchor ends one of the alternatives of the whole. */
static bool at_last_anchor(const regex *p)
{
    return p->depth == 0 && peek(p) == '$' && (p->at + 1 == p->n || p->text[p->at + 1] == '|');
}

static drey_status read_sequence(regex *p, expr *out)
{
    *out = EXPR_EMPTY;
    for (int c; (c = peek(p)) >= 0 && c != '|' && c != ')';) {
        expr item;
        if (at_last_anchor(p))
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
        p->many = p->many || p->depth == 0;
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
    expr any = p->anywhere ? any_text(p) : EXPR_EMPTY;
    bool from_begin = takes(p, "^") || takes(p, "\\A");
    p->begins = from_begin || !p->anywhere;
    TRY(read_sequence(p, out));
    if (!from_begin)
        *out = expr_seq(p->g, any, *out);
    if (!takes(p, "$"))
        *out = expr_seq(p->g, *out, any);
    return DREY_OK;
}

static drey_status read_whole(regex *p)
{
    char_set *set = malloc(sizeof *set);
    if (!set)
        FAIL(p->err, DREY_ERR_MEMORY, "not enough memory for a regular expression");
    set->n = 0;
    set->full = false;
    p->set = set;
    drey_status status = read_any_of(p, read_anchored, &p->out->texts);
    free(set);
    TRY(status);
    if (p->at < p->n)
        WRONG(p, "a bracket is closed that was not opened");
    if (p->many && p->out->n_around > 0) {
        p->out->n_around = 0;
        loosely(p, "look-around is supported in patterns without alternatives alone");
    }
    return DREY_OK;
}

drey_status pattern_read(grammar_rules *g, const char *text, size_t n, bool in_json,
                         regex_pattern *out, drey_error *err)
{
    regex p = {.g = g, .text = text, .n = n, .in_json = in_json, .anywhere = true, .err = err};
    p.out = out;
    *out = (regex_pattern){.n_around = 0};
    drey_status status = read_whole(&p);
    if (status == DREY_OK || !p.unknown)
        return status;
    *out = (regex_pattern){.unknown = true, .texts = any_text(&p)};
    return DREY_OK;
}

static expr known(grammar_rules *g, const char *text, bool in_json)
{
    regex_pattern out = {.texts = EXPR_NEVER};
    regex p = {.g = g, .text = text, .n = strlen(text), .in_json = in_json, .out = &out};
    read_whole(&p);
    return out.texts;
}

expr regex_known(grammar_rules *g, const char *text)
{
    return known(g, text, false);
}

expr regex_in_json(grammar_rules *g, const char *text)
{
    return known(g, text, true);
}

/* ---- As languages ---- */

/* l[0]: the texts that match; the others are used. */
static bool language_of_part(const grammar_rules *g, expr e, bool with_marks, language *l[3])
{
    return with_marks ? language_of(l[1], g, e) && language_keep_marks(l[0], l[1], l[2])
                      : language_of(l[0], g, e);
}

bool pattern_language(const grammar_rules *g, const regex_pattern *p, struct language *out)
{
    language *made = malloc(4 * sizeof *made);
    bool fits = made;
    for (int32_t i = -1; i < p->n_around && fits; i++) {
        language *l[3] = {made, made + 1, made + 2};
        fits = language_of_part(g, i < 0 ? p->texts : p->around[i], p->marked, l);
        if (fits && i < 0)
            memcpy(out, made, sizeof *out);
        else if (fits)
            fits = language_both(made + 3, out, made, p->around_not[i]);
        if (fits && i >= 0)
            memcpy(out, made + 3, sizeof *out);
    }
    free(made);
    return fits;
}

static drey_status text_matching(const regex *p, expr *body)
{
    const regex_pattern *out = p->out;
    language *l = malloc(sizeof *l);
    bool fits = l && pattern_language(p->g, out, l);
    *body = fits ? language_written(p->g, l, false) : EXPR_NEVER;
    free(l);
    if (!fits)
        FAIL(p->err, DREY_ERR_USAGE,
             "the regular expression is too large with its look-around and boundaries: shorten it");
    return DREY_OK;
}

drey_status regex_read(grammar_rules *g, const char *text, size_t n, int32_t *root, drey_error *err)
{
    regex_pattern out = {.n_around = 0};
    regex p = {.g = g, .text = text, .n = n, .out = &out, .err = err};
    TRY(read_whole(&p));
    if (out.loose)
        FAIL(err, DREY_ERR_USAGE, "the regular expression cannot be held: %s", out.why);
    expr body = out.texts;
    if (out.marked || out.n_around > 0)
        TRY(text_matching(&p, &body));
    *root = rule_new(g, "regular expression");
    if (!g->full)
        g->rules[*root].body = body;
    return DREY_OK;
}
