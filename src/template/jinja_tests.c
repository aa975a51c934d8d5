/* Tests, "x is NAME": see jinja_run.h. */
#include "template/jinja_run.h"

#include <string.h>

static bool is_defined(jinja *j, value v)
{
    /* Without a clock templates should use their own date. */
    bool clock = v.kind == VALUE_FUNCTION && strcmp(v.text, "strftime_now") == 0;
    return v.kind != VALUE_UNDEFINED && (!clock || j->has_clock);
}

static bool is_iterable(value v)
{
    return v.kind == VALUE_STRING || v.kind == VALUE_LIST || v.kind == VALUE_MAP ||
           v.kind == VALUE_UNDEFINED || v.kind == VALUE_LOOP;
}

static bool is_sequence(value v)
{
    return v.kind == VALUE_LIST ? v.style <= STYLE_TUPLE : is_iterable(v) && v.kind != VALUE_LOOP;
}

/* Tests of a value alone: 1 or 0; -1: there is no such test. */
static int test_alone(jinja *j, value name, value v)
{
    const struct {
        const char *name;
        bool is;
    } known[] = {
        {"defined", is_defined(j, v)},
        {"undefined", !is_defined(j, v)},
        {"none", v.kind == VALUE_NONE},
        {"string", v.kind == VALUE_STRING},
        {"mapping", v.kind == VALUE_MAP},
        {"iterable", is_iterable(v)},
        {"sequence", is_sequence(v)},
        {"boolean", v.kind == VALUE_BOOL},
        {"true", v.kind == VALUE_BOOL && v.b},
        {"false", v.kind == VALUE_BOOL && !v.b},
        {"number", is_number(v) || v.kind == VALUE_BIG},
        {"integer", v.kind == VALUE_INT || v.kind == VALUE_BIG},
        {"float", v.kind == VALUE_FLOAT},
        {"callable", v.kind == VALUE_MACRO || v.kind == VALUE_METHOD || v.kind == VALUE_FUNCTION},
        {"odd", is_whole(v) && number_int(v) % 2 != 0},
        {"even", is_whole(v) && number_int(v) % 2 == 0},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (string_is(name, known[i].name))
            return known[i].is;
    return -1;
}

/* Tests against another value; -1: there is no such test. */
static int test_against(jinja *j, value name, value v, value other)
{
    static const struct {
        const char *name;
        char what;
    } known[] = {{"equalto", '='},     {"eq", '='}, {"==", '='}, {"ne", '!'},
                 {"!=", '!'},          {"lt", '<'}, {"<", '<'},  {"lessthan", '<'},
                 {"le", 'l'},          {"<=", 'l'}, {"gt", '>'}, {">", '>'},
                 {"greaterthan", '>'}, {"ge", 'g'}, {">=", 'g'}, {"in", 'i'},
                 {"divisibleby", '%'}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!string_is(name, known[i].name))
            continue;
        switch (known[i].what) {
        case '=':
            return value_equal(j->r, v, other);
        case '!':
            return !value_equal(j->r, v, other);
        case 'i':
            return jinja_contains(j, other, v);
        case '%':
            return is_whole(v) && is_whole(other) && number_int(other) > 0 &&
                   number_int(v) % number_int(other) == 0;
        case '<':
            return value_order(j->r, v, other) < 0;
        case 'l':
            return value_order(j->r, v, other) <= 0;
        case '>':
            return value_order(j->r, v, other) > 0;
        default:
            return value_order(j->r, v, other) >= 0;
        }
    }
    return -1;
}

bool test_apply(jinja *j, value name, value v, const arguments *a)
{
    int is = a->n_keywords ? -1 : a->n == 0 ? test_alone(j, name, v) : -1;
    if (a->n == 1 && a->n_keywords == 0)
        is = test_against(j, name, v, a->positional[0]);
    if (is < 0)
        heap_fail(j->r, DREY_ERR_UNSUPPORTED,
                  "the test \"%.*s\" with %d arguments is not supported",
                  (int)(name.n < 60 ? name.n : 60), name.text, a->n + a->n_keywords);
    return is > 0;
}
