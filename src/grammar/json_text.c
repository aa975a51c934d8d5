/* JSON as a grammar: see json_text.h. */
#include "grammar/json_text.h"

#include <string.h>

#include "common/json_writer.h"

void json_rules_init(json_rules *j)
{
    *j = (json_rules){-1, -1, -1, -1, -1, -1, -1, -1, false};
}

/* The rule's body is set once, after its number is known: it may use itself. */
static bool is_new(grammar_rules *g, int32_t *rule, const char *name)
{
    if (*rule >= 0)
        return false;
    *rule = rule_new(g, name);
    return !g->full;
}

static expr of_regex(grammar_rules *g, int32_t *rule, const char *name, const char *pattern)
{
    if (is_new(g, rule, name))
        g->rules[*rule].body = regex_known(g, pattern);
    return expr_rule(g, *rule);
}

/* Blanks between the parts of an object or array: none, one, or a line break with an indentation.
 */
static expr written_space(grammar_rules *g, json_rules *j)
{
    return of_regex(g, &j->space, "blanks", "(?: |\\n[ \\t]{0,40})?");
}

/* The digits of numbers are limited: a model may else write them without end. */
expr written_integer(grammar_rules *g, json_rules *j)
{
    return of_regex(g, &j->integer, "integer", "-?(?:0|[1-9][0-9]{0,15})");
}

expr written_number(grammar_rules *g, json_rules *j)
{
    return of_regex(g, &j->number, "number",
                    "-?(?:0|[1-9][0-9]{0,15})(?:\\.[0-9]{1,16})?(?:[eE][+-]?[0-9]{1,3})?");
}

/* ---- Strings ---- */

/* Surrogates are escaped in pairs. */
static expr character_itself(grammar_rules *g)
{
    char_range plain[] = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}};
    expr escaped = regex_known(
        g, "\\\\(?:[\"\\\\/bfnrt]|u(?:[0-9a-cA-CefEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|"
           "[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}))");
    return expr_alt(g, expr_class(g, plain, 4, true), escaped);
}

expr written_character(grammar_rules *g, json_rules *j)
{
    if (is_new(g, &j->character, "character"))
        g->rules[j->character].body = character_itself(g);
    return expr_rule(g, j->character);
}

expr written_string(grammar_rules *g, json_rules *j)
{
    if (is_new(g, &j->string, "string")) {
        expr inside = expr_repeat(g, written_character(g, j), 0, REPEAT_FOREVER);
        expr begun = expr_seq(g, expr_text(g, "\""), inside);
        g->rules[j->string].body = expr_seq(g, begun, expr_text(g, "\""));
    }
    return expr_rule(g, j->string);
}

/* Writes the escape of a character that needs one. */
static void write_escape(uint32_t c, char out[8])
{
    static const char named[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    for (const char *n = named; *n; n += 2)
        if ((uint32_t)(uint8_t)*n == c) {
            out[0] = '\\';
            out[1] = n[1];
            out[2] = 0;
            return;
        }
    static const char hex[] = "0123456789abcdef";
    memcpy(out, "\\u00", 4);
    out[4] = hex[c >> 4 & 15];
    out[5] = hex[c & 15];
    out[6] = 0;
}

static bool must_escape(uint32_t c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

expr json_class(grammar_rules *g, char_range *ranges, int32_t n, bool but_not)
{
    enum { MOST = 6010 };
    char_range all[MOST], plain[2 * MOST];
    n = ranges_sort(ranges, n);
    if (n + 2 > MOST)
        return EXPR_NEVER;
    if (but_not)
        n = ranges_invert(ranges, n, all);
    else
        memcpy(all, ranges, (size_t)n * sizeof *all);
    expr out = EXPR_NEVER;
    int32_t n_plain = 0;
    for (int32_t i = 0; i < n; i++) {
        uint32_t from = all[i].from;
        for (uint32_t c = from; c <= all[i].to && c <= '\\'; c++) {
            char escape[8];
            if (!must_escape(c))
                continue;
            write_escape(c, escape);
            out = expr_alt(g, out, expr_text(g, escape));
            if (c > from)
                plain[n_plain++] = (char_range){from, c - 1};
            from = c + 1;
        }
        if (from <= all[i].to)
            plain[n_plain++] = (char_range){from, all[i].to};
    }
    if (n_plain > 0)
        out = expr_alt(g, out, expr_class(g, plain, n_plain, false));
    return out;
}

/* ---- Objects, arrays, values ---- */

expr written_comma(grammar_rules *g, json_rules *j)
{
    return expr_seq(g, expr_text(g, ","), written_space(g, j));
}

expr written_between(grammar_rules *g, json_rules *j, const char *begin, expr inside,
                     const char *end)
{
    expr out = expr_seq(g, expr_text(g, begin), written_space(g, j));
    if (inside != EXPR_EMPTY)
        out = expr_seq(g, expr_seq(g, out, inside), written_space(g, j));
    return expr_seq(g, out, expr_text(g, end));
}

/* item, then more of them after commas; or nothing. */
static expr list_of(grammar_rules *g, json_rules *j, expr item)
{
    expr more = expr_seq(g, written_comma(g, j), item);
    expr some = expr_seq(g, item, expr_repeat(g, more, 0, REPEAT_FOREVER));
    return expr_repeat(g, some, 0, 1);
}

expr written_object(grammar_rules *g, json_rules *j)
{
    if (is_new(g, &j->object, "object")) {
        expr colon = expr_seq(g, expr_text(g, ":"), expr_repeat(g, expr_text(g, " "), 0, 1));
        expr member = expr_seq(g, written_string(g, j), colon);
        member = expr_seq(g, member, written_value(g, j));
        expr all = written_between(g, j, "{", list_of(g, j, member), "}");
        g->rules[j->object].body = all;
    }
    return expr_rule(g, j->object);
}

static expr written_array(grammar_rules *g, json_rules *j)
{
    if (is_new(g, &j->array, "array")) {
        expr items = list_of(g, j, written_value(g, j));
        expr all = written_between(g, j, "[", items, "]");
        g->rules[j->array].body = all;
    }
    return expr_rule(g, j->array);
}

expr written_value(grammar_rules *g, json_rules *j)
{
    if (is_new(g, &j->any, "value")) {
        expr all = expr_alt(g, written_string(g, j), written_number(g, j));
        all = expr_alt(g, all, written_object(g, j));
        all = expr_alt(g, all, written_array(g, j));
        all = expr_alt(g, all, regex_known(g, "true|false|null"));
        g->rules[j->any].body = all;
    }
    return expr_rule(g, j->any);
}

/* ---- Literals ---- */

static void keep(void *user, const char *bytes, size_t n, const char *from)
{
    (void)from;
    grammar_rules_keep(user, bytes, n);
}

expr written_literal(grammar_rules *g, const json_value *v)
{
    int32_t from = g->n_bytes;
    json_writer w = {.put = keep, .user = g};
    json_raw_value(&w, v);
    return expr_kept(g, from);
}

expr written_key(grammar_rules *g, const char *key, size_t n)
{
    int32_t from = g->n_bytes;
    json_writer w = {.put = keep, .user = g};
    json_raw_string(&w, key, n);
    grammar_rules_keep(g, ":", 1);
    expr whole = expr_kept(g, from);
    return expr_seq(g, whole, expr_repeat(g, expr_text(g, " "), 0, 1));
}
