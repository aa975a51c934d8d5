/* A grammar at work: what tokens it allows. See grammar.h. */
#include "grammar/grammar.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "grammar/readers.h"
#include "grammar/states.h"

enum { MASK_BYTES = 640 << 10, MOST_MASKS = 64, MOST_FORCED = 64 };
enum { MOST_TEXT = 64 << 10, MOST_READING = 3 << 20 }; /* of a schema: its values, and their text */

typedef struct mask_slot {
    int32_t state; /* whose it is; 0: free */
} mask_slot;

struct drey_grammar {
    const vocab_trie *trie;
    automaton automaton;
    arena memory;
    states *states;
    uint64_t *masks; /* [n_slots][n_words] */
    float *scratch;  /* [n_vocab] */
    mask_slot slots[MOST_MASKS];
    int32_t n_slots, n_words, next_slot;
    int64_t of_compacted; /* the slots belong to states of that count */
    bool in_use;
    /* Places of its own: the text so far, and the way through a token's bytes. */
    int32_t places[1 + VOCAB_TRIE_LONGEST + 1];
    int32_t first;
};

/* ---- Opening ---- */

static size_t masks_bytes(int32_t n_vocab)
{
    size_t one = ((size_t)n_vocab + 63) / 64 * 8;
    return max_size(MASK_BYTES / one, 2) * one;
}

static size_t work_bytes(int32_t n_vocab)
{
    return arena_size(sizeof(states)) + arena_size(STATES_ROW_BYTES) +
           arena_size(masks_bytes(n_vocab)) + arena_size((size_t)n_vocab * sizeof(float));
}

/* While it is read, rules and scratch are where states will be. */
static size_t memory_bytes(int32_t n_vocab)
{
    return max_size(work_bytes(n_vocab),
                    arena_size(sizeof(grammar_rules)) + arena_size(automaton_scratch_bytes()));
}

size_t grammar_bytes(int32_t n_vocab)
{
    return max_size(memory_bytes(n_vocab), arena_size(sizeof(grammar_rules)) + MOST_READING) +
           sizeof(drey_grammar) + 3 * 4096;
}

static drey_status read_rules(drey_grammar *g, drey_grammar_kind kind, const char *text, size_t n,
                              drey_error *err)
{
    grammar_rules *rules = arena_take(&g->memory, sizeof *rules);
    void *scratch = arena_take(&g->memory, automaton_scratch_bytes());
    int32_t root = 0;
    grammar_rules_init(rules);
    switch (kind) {
    case DREY_GRAMMAR_GBNF:
        TRY(gbnf_read(rules, text, n, &root, err));
        break;
    case DREY_GRAMMAR_JSON_SCHEMA:
        TRY(json_schema_read(rules, text, n, &root, err));
        break;
    case DREY_GRAMMAR_REGEX:
        TRY(regex_read(rules, text, n, &root, err));
        break;
    case DREY_GRAMMAR_CHOICES:
        TRY(choices_read(rules, text, n, &root, err));
        break;
    default:
        FAIL(err, DREY_ERR_USAGE, "there is no kind %d of grammars", (int)kind);
    }
    return automaton_build(&g->automaton, rules, root, scratch, err);
}

static void make_work(drey_grammar *g)
{
    arena_rewind(&g->memory, 0);
    g->states = arena_take(&g->memory, sizeof *g->states);
    int32_t *rows = arena_take(&g->memory, STATES_ROW_BYTES);
    g->n_words = (g->trie->n_vocab + 63) / 64;
    g->masks = arena_take(&g->memory, masks_bytes(g->trie->n_vocab));
    g->scratch = arena_take(&g->memory, (size_t)g->trie->n_vocab * sizeof(float));
    g->n_slots =
        (int32_t)min_size(masks_bytes(g->trie->n_vocab) / 8 / (size_t)g->n_words, MOST_MASKS);
    memset(g->states, 0, sizeof *g->states);
    states_init(g->states, &g->automaton, rows);
    g->states->held[0] = (held_places){g->places, 1 + VOCAB_TRIE_LONGEST + 1};
}

static drey_status init(drey_grammar *g, drey_grammar_kind kind, const char *text, size_t n,
                        drey_error *err)
{
    if (n > MOST_TEXT)
        FAIL(err, DREY_ERR_USAGE, "the grammar has %zu bytes; at most %d are read", n, MOST_TEXT);
    TRY(arena_init(&g->memory, memory_bytes(g->trie->n_vocab), false, err));
    TRY(read_rules(g, kind, text, n, err));
    make_work(g);
    grammar_restart(g);
    if (grammar_is_over(g, &g->places[0]))
        FAIL(err, DREY_ERR_USAGE, "the grammar allows nothing but an empty text");
    return arena_check(&g->memory, err);
}

drey_status grammar_open(drey_grammar **out, const vocab_trie *trie, drey_grammar_kind kind,
                         const char *text, size_t n, drey_error *err)
{
    *out = NULL;
    drey_grammar *g = calloc(1, sizeof *g);
    if (!g)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a grammar");
    g->trie = trie;
    drey_status status = init(g, kind, text, n, err);
    if (status != DREY_OK)
        grammar_close(&g);
    *out = g;
    return status;
}

void grammar_close(drey_grammar **g)
{
    if (!g || !*g)
        return;
    arena_free(&(*g)->memory);
    free(*g);
    *g = NULL;
}

const tokenizer *grammar_tokenizer(const drey_grammar *g)
{
    return g->trie->tokenizer;
}

float *grammar_scratch(drey_grammar *g)
{
    return g->scratch;
}

bool *grammar_in_use(drey_grammar *g)
{
    return &g->in_use;
}

/* ---- Places ---- */

void grammar_hold(drey_grammar *g, int32_t *places, int32_t n)
{
    g->states->held[1] = (held_places){places, places ? n : 0};
}

void grammar_restart(drey_grammar *g)
{
    memset(g->places, 0, sizeof g->places);
    g->places[0] = states_first(g->states);
}

int32_t grammar_now(const drey_grammar *g)
{
    return g->places[0];
}

void grammar_advance(drey_grammar *g, int32_t token)
{
    int32_t next = grammar_follow(g, &g->places[0], token);
    g->places[0] = next;
}

bool grammar_now_may_end(const drey_grammar *g)
{
    return grammar_may_end(g, &g->places[0]);
}

bool grammar_now_over(const drey_grammar *g)
{
    return grammar_is_over(g, &g->places[0]);
}

/* way[0] is a place; the following ones are those after each byte of a token. */
static int32_t *way(drey_grammar *g)
{
    return &g->places[1];
}

int32_t grammar_follow(drey_grammar *g, const int32_t *place, int32_t token)
{
    uint8_t bytes[VOCAB_TRIE_LONGEST];
    const tokenizer *t = g->trie->tokenizer;
    size_t n = tokenizer_piece(t, token, false, false, (char *)bytes, sizeof bytes);
    int32_t *at = way(g);
    if (n == 0 || n > sizeof bytes || tokenizer_is_end(t, token))
        return GRAMMAR_NOWHERE;
    *at = *place;
    for (size_t i = 0; i < n && *at != GRAMMAR_NOWHERE; i++)
        *at = states_step(g->states, at, bytes[i]);
    return *at;
}

bool grammar_may_end(const drey_grammar *g, const int32_t *place)
{
    return g->states->all[*place].ends;
}

bool grammar_is_over(const drey_grammar *g, const int32_t *place)
{
    return g->states->all[*place].n == 0;
}

/* ---- Masks ---- */

static void set_bit(uint64_t *mask, int32_t id)
{
    mask[id / 64] |= UINT64_C(1) << (id % 64);
}

/* Returns whether any token may come. */
static bool walk(drey_grammar *g, const int32_t *place, uint64_t *mask)
{
    const vocab_trie *t = g->trie;
    int32_t *at = way(g);
    bool any = false;
    at[0] = *place;
    for (int32_t i = 1; i < t->n_nodes;) {
        const vocab_trie_node *node = &t->nodes[i];
        at[node->depth] = states_step(g->states, &at[node->depth - 1], node->byte);
        if (at[node->depth] == GRAMMAR_NOWHERE) {
            i = node->end;
            continue;
        }
        for (int32_t k = node->first; k < node[1].first; k++)
            set_bit(mask, t->ids[k]);
        any = any || node->first < node[1].first;
        i++;
    }
    /* What is left there would keep states from being forgotten. */
    memset(at, 0, (VOCAB_TRIE_LONGEST + 1) * sizeof *at);
    return any;
}

static int32_t free_slot(drey_grammar *g)
{
    states *s = g->states;
    if (g->of_compacted != s->n_compacted)
        memset(g->slots, 0, sizeof g->slots); /* their states are forgotten, or have other ids */
    g->of_compacted = s->n_compacted;
    int32_t slot = g->next_slot;
    g->next_slot = (slot + 1) % g->n_slots;
    if (g->slots[slot].state)
        s->all[g->slots[slot].state].mask = -1;
    g->slots[slot].state = 0;
    return slot;
}

const uint64_t *grammar_mask(drey_grammar *g, const int32_t *place)
{
    states *s = g->states;
    int32_t slot = s->all[*place].mask;
    if (slot >= 0)
        return g->masks + (int64_t)slot * g->n_words;
    slot = free_slot(g);
    uint64_t *mask = g->masks + (int64_t)slot * g->n_words;
    memset(mask, 0, (size_t)g->n_words * sizeof *mask);
    bool any = walk(g, place, mask);
    if (!any || s->all[*place].ends)
        for (int32_t i = 0; i < g->trie->n_ends; i++)
            set_bit(mask, g->trie->ends[i]);
    if (g->of_compacted == s->n_compacted && *place != GRAMMAR_NOWHERE) {
        s->all[*place].mask = slot;
        g->slots[slot].state = *place;
    }
    return mask;
}

bool grammar_allows(drey_grammar *g, const int32_t *place, int32_t token)
{
    if (!tokenizer_is_end(g->trie->tokenizer, token))
        return grammar_follow(g, place, token) != GRAMMAR_NOWHERE;
    return grammar_may_end(g, place) || (grammar_mask(g, place)[token / 64] >> (token % 64) & 1);
}

/* ---- What is certain ---- */

/* The node below `node` for that byte; -1: there is none. */
static int32_t below(const vocab_trie *t, int32_t node, uint8_t byte)
{
    for (int32_t i = node + 1; i < t->nodes[node].end; i = t->nodes[i].end)
        if (t->nodes[i].byte == byte)
            return i;
    return -1;
}

int32_t grammar_forced(drey_grammar *g, const int32_t *place)
{
    const vocab_trie *t = g->trie;
    int32_t *at = way(g), node = 0, token = -1;
    *at = *place;
    for (int i = 0; i < MOST_FORCED; i++) {
        int byte = states_only_byte(g->states, *at);
        node = byte >= 0 ? below(t, node, (uint8_t)byte) : -1;
        if (node < 0)
            break;
        if (t->nodes[node].first < t->nodes[node + 1].first)
            token = t->ids[t->nodes[node].first];
        *at = states_step(g->states, at, (uint8_t)byte);
    }
    return token;
}
