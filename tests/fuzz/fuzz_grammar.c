/* Property: any bytes as GBNF, JSON Schema, regular expression or list of choices are refused with
 * a sentence, or become an automaton in which every place that a text reaches continues or may end
 * (within its limits), and which takes a text again after states were forgotten. The first byte
 * says which. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "grammar/readers.h"
#include "grammar/states.h"

typedef drey_status read_fn(grammar_rules *, const char *, size_t, int32_t *, drey_error *);

enum { MOST_STEPS = 300 };

typedef struct work {
    grammar_rules rules;
    automaton automaton;
    states states;
    int32_t rows[STATES_ROW_BYTES / 4];
} work;

/* Takes bytes that are possible, chosen by `seed`; returns how many. */
static int walk(states *s, uint32_t seed, uint8_t *out)
{
    int32_t at[2] = {0};
    s->held[0] = (held_states){at, 2};
    at[0] = states_first(s);
    for (int i = 0; i < MOST_STEPS; i++) {
        int byte = -1;
        for (int k = 0; k < 256 && byte < 0; k++) {
            at[1] = states_step(s, &at[0], (uint8_t)(seed + (uint32_t)k * 37));
            if (at[1] != GRAMMAR_NOWHERE)
                byte = (uint8_t)(seed + (uint32_t)k * 37);
        }
        if (byte < 0) {
            FUZZ_CHECK(s->all[at[0]].ends || s->narrowed);
            return i;
        }
        seed = seed * 1664525 + 1013904223;
        out[i] = (uint8_t)byte;
        at[0] = at[1];
    }
    return MOST_STEPS;
}

static void take_again(states *s, const uint8_t *text, int n)
{
    int32_t at = 0;
    s->held[0] = (held_states){&at, 1};
    at = states_first(s);
    s->most = s->n + 2 > s->most ? s->most : s->n + 2; /* states are forgotten soon */
    for (int i = 0; i < n; i++) {
        at = states_step(s, &at, text[i]);
        FUZZ_CHECK(at != GRAMMAR_NOWHERE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static read_fn *const readers[] = {gbnf_read, json_schema_read, regex_read, choices_read};
    uint8_t text[MOST_STEPS];
    drey_error err = {0};
    int32_t root = 0;
    if (n == 0 || n > 4096)
        return 0;
    work *w = calloc(1, sizeof *w);
    void *scratch = malloc(automaton_scratch_bytes());
    FUZZ_CHECK(w && scratch);
    grammar_rules_init(&w->rules);
    drey_status status =
        readers[data[0] % 4](&w->rules, (const char *)data + 1, n - 1, &root, &err);
    if (status == DREY_OK)
        status = automaton_build(&w->automaton, &w->rules, root, scratch, &err);
    FUZZ_CHECK(status == DREY_OK || err.message[0]);
    if (status == DREY_OK) {
        states_init(&w->states, &w->automaton, w->rows);
        for (uint32_t i = 0; i < 3; i++) {
            int n_text = walk(&w->states, i * 77 + data[n - 1], text);
            take_again(&w->states, text, n_text);
        }
    }
    free(scratch);
    free(w);
    return 0;
}
