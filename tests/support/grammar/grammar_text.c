/* See grammar_text.h. */
#include "support/grammar/grammar_text.h"

#include "common/json_value.h"
#include "grammar/readers.h"
#include "support/grammar/case_text.h"
#include "support/test.h"

typedef drey_status read_fn(grammar_rules *, const char *, size_t, int32_t *, drey_error *);

static read_fn *const readers[] = {[DREY_GRAMMAR_GBNF] = gbnf_read,
                                   [DREY_GRAMMAR_JSON_SCHEMA] = json_schema_read,
                                   [DREY_GRAMMAR_REGEX] = regex_read,
                                   [DREY_GRAMMAR_CHOICES] = choices_read};

test_grammar *test_grammar_open(drey_grammar_kind kind, const char *text, drey_error *err)
{
    grammar_rules *rules = malloc(sizeof *rules);
    void *scratch = malloc(automaton_scratch_bytes());
    test_grammar *g = calloc(1, sizeof *g);
    assert_true(rules && scratch && g);
    int32_t root = 0;
    grammar_rules_init(rules);
    drey_status status = readers[kind](rules, text, strlen(text), &root, err);
    if (status == DREY_OK)
        status = automaton_build(&g->automaton, rules, root, scratch, err);
    memcpy(g->not_held, rules->left_out, sizeof g->not_held);
    free(rules);
    free(scratch);
    if (status != DREY_OK) {
        free(g);
        return NULL;
    }
    states_init(&g->states, &g->automaton, g->rows);
    return g;
}

test_grammar *test_grammar_of(drey_grammar_kind kind, const char *text)
{
    drey_error err = {0};
    test_grammar *g = test_grammar_open(kind, text, &err);
    if (!g)
        fail_msg("%s: %s", text, err.message);
    return g;
}

size_t test_grammar_takes(test_grammar *g, const char *text, size_t n, bool *whole)
{
    int32_t at = 0;
    size_t i = 0;
    g->states.held[0] = (held_states){&at, 1};
    at = states_first(&g->states);
    for (; i < n; i++) {
        int32_t next = states_step(&g->states, &at, (uint8_t)text[i]);
        if (next == GRAMMAR_NOWHERE)
            break;
        at = next;
    }
    *whole = i == n && g->states.all[at].ends;
    g->states.held[0] = (held_states){NULL, 0};
    return i;
}

bool test_grammar_matches(test_grammar *g, const char *text)
{
    bool whole;
    test_grammar_takes(g, text, strlen(text), &whole);
    return whole;
}

void test_grammar_refused(drey_grammar_kind kind, const char *grammar, const char *words)
{
    drey_error err = {0};
    test_grammar *g = test_grammar_open(kind, grammar, &err);
    if (g || !strstr(err.message, words))
        fail_msg("%s: \"%s\" was expected, not \"%s\"", grammar, words,
                 g ? "to be accepted" : err.message);
}

/* ---- Cases in files ---- */

typedef struct grammar_case {
    char text[16384];
    drey_grammar_kind kind;
    test_grammar *g; /* NULL: refused */
    drey_error err;
} grammar_case;

static void begin_case(grammar_case *c, const char *line)
{
    static const char *const kinds[] = {[DREY_GRAMMAR_GBNF] = "gbnf",
                                        [DREY_GRAMMAR_JSON_SCHEMA] = "schema",
                                        [DREY_GRAMMAR_REGEX] = "regex",
                                        [DREY_GRAMMAR_CHOICES] = "choices"};
    size_t n = strcspn(line, " "), kind = 0;
    while (kind < 4 && (strlen(kinds[kind]) != n || strncmp(line, kinds[kind], n) != 0))
        kind++;
    assert_true(kind < 4 && strlen(line) < sizeof c->text);
    strcpy(c->text, line + n + (line[n] == ' '));
    case_decode(c->text);
    c->kind = (drey_grammar_kind)kind;
    c->err = (drey_error){0};
    free(c->g);
    c->g = test_grammar_open(c->kind, c->text, &c->err);
}

static void check_texts(const grammar_case *c, bool takes, char *texts)
{
    while (texts) {
        char *end = strstr(texts, " ¦ "), *text = texts;
        json_document d;
        texts = end ? end + strlen(" ¦ ") : NULL;
        if (end)
            *end = '\0';
        case_decode(text);
        if (takes && c->kind == DREY_GRAMMAR_JSON_SCHEMA && !json_load(&d, text, strlen(text)))
            fail_msg("not JSON: %s", text); /* the file's own texts are */
        if (takes && c->kind == DREY_GRAMMAR_JSON_SCHEMA)
            json_free(&d);
        if (test_grammar_matches(c->g, text) != takes)
            fail_msg("%s\n%s\n%s", c->text, takes ? "refuses" : "accepts", text);
    }
}

static void check_case(grammar_case *c, char *line)
{
    const char what = line[0];
    char *rest = line + (line[1] == ' ' ? 2 : 1);
    if (what == '!' && (c->g || !strstr(c->err.message, rest)))
        fail_msg("%s: \"%s\" was expected, not \"%s\"", c->text, rest,
                 c->g ? "to be accepted" : c->err.message);
    if (what == '!')
        return;
    if (!c->g)
        fail_msg("%s: %s", c->text, c->err.message);
    if (what == '?')
        assert_string_equal(c->g->not_held, rest);
    else
        check_texts(c, what == '+', rest);
}

static void take_line(void *user, char *line)
{
    if (strchr("+-!?", line[0]))
        check_case(user, line);
    else
        begin_case(user, line);
}

void test_grammar_file(const char *path, int least)
{
    grammar_case *c = calloc(1, sizeof *c);
    case_file_read(path, take_line, c, "", least);
    free(c->g);
    free(c);
}
