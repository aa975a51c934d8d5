/* See grammar_text.h. */
#include "support/grammar/grammar_text.h"

#include "grammar/readers.h"
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
    g->states.held[0] = (held_places){&at, 1};
    at = states_first(&g->states);
    for (; i < n; i++) {
        int32_t next = states_step(&g->states, &at, (uint8_t)text[i]);
        if (next == GRAMMAR_NOWHERE)
            break;
        at = next;
    }
    *whole = i == n && g->states.all[at].ends;
    g->states.held[0] = (held_places){NULL, 0};
    return i;
}

bool test_grammar_matches(test_grammar *g, const char *text)
{
    bool whole;
    test_grammar_takes(g, text, strlen(text), &whole);
    return whole;
}

void test_grammar_cases(drey_grammar_kind kind, const char *grammar, const char *const *accepted,
                        const char *const *refused)
{
    test_grammar *g = test_grammar_of(kind, grammar);
    for (; *accepted; accepted++)
        if (!test_grammar_matches(g, *accepted))
            fail_msg("%s\nrefuses\n%s", grammar, *accepted);
    for (; *refused; refused++)
        if (test_grammar_matches(g, *refused))
            fail_msg("%s\naccepts\n%s", grammar, *refused);
    free(g);
}

void test_grammar_refused(drey_grammar_kind kind, const char *grammar, const char *words)
{
    drey_error err = {0};
    test_grammar *g = test_grammar_open(kind, grammar, &err);
    if (g || !strstr(err.message, words))
        fail_msg("%s: \"%s\" was expected, not \"%s\"", grammar, words,
                 g ? "to be accepted" : err.message);
}
