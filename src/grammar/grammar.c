/* A grammar at work: what tokens it allows. See grammar.h. */
#include "grammar/grammar.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "grammar/readers.h"
#include "grammar/states.h"
#include "grammar/token_cuts.h"
#include "grammar/vocab_trie.h"
#include "text/tokenizer.h"

enum { MASK_BYTES = 640 << 10, MOST_MASKS = 64, MOST_FORCED = 64 };
enum { MOST_READING = 6 << 20 }; /* bytes for reading a schema: its values, text, languages */

typedef struct mask_entry {
    int32_t state; /* state to which it belongs; 0: free */
} mask_entry;

struct drey_grammar {
    const vocab_trie *trie;
    automaton automaton;
    arena memory;
    states *states;
    uint64_t *masks; /* [n_slots][n_words] */
    float *scratch;  /* [n_vocab] */
    /* [n_words]: tokens that were named as certain, where a longer one came. */
    uint64_t *misnamed;
    mask_entry slots[MOST_MASKS];
    int32_t n_slots, n_words, next_slot;
    int32_t n_ahead;      /* masks in a row that were made ahead */
    int64_t n_prepared;   /* masks prepared for all texts */
    int64_t of_compacted; /* the slots belong to states of that count */
    bool in_use;
    char not_held[RULES_LEFT_OUT_BYTES]; /* places in schemas */
    /* Its own states: the text so far, and those on the way through a token's bytes. */
    int32_t own[1 + VOCAB_TRIE_LONGEST + 1];
    int32_t first;
};

static void set_bit(uint64_t *mask, int32_t id)
{
    mask[id / 64] |= UINT64_C(1) << (id % 64);
}

static bool set_bits(const vocab_trie *t, int32_t from, int32_t to, uint64_t *mask)
{
    for (int32_t k = from; k < to; k++)
        set_bit(mask, t->ids[k]);
    return from < to;
}

/* ---- Opening ---- */

static size_t masks_bytes(int32_t n_vocab)
{
    size_t one = ((size_t)n_vocab + 63) / 64 * 8;
    return max_size(MASK_BYTES / one, 2) * one;
}

static size_t work_bytes(int32_t n_vocab)
{
    return arena_size(sizeof(states)) + arena_size(STATES_ROW_BYTES) +
           arena_size(masks_bytes(n_vocab)) + arena_size((size_t)n_vocab * sizeof(float)) +
           arena_size(((size_t)n_vocab + 63) / 64 * sizeof(uint64_t));
}

/* Bytes of a grammar: while it is read, rules and scratch are where states will be. */
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

static drey_status read_text(drey_grammar_kind kind, const char *text, size_t n,
                             grammar_rules *rules, int32_t *root, drey_error *err)
{
    switch (kind) {
    case DREY_GRAMMAR_GBNF:
        return gbnf_read(rules, text, n, root, err);
    case DREY_GRAMMAR_JSON_SCHEMA:
        return json_schema_read(rules, text, n, root, err);
    case DREY_GRAMMAR_REGEX:
        return regex_read(rules, text, n, root, err);
    case DREY_GRAMMAR_CHOICES:
        return choices_read(rules, text, n, root, err);
    default:
        FAIL(err, DREY_ERR_USAGE, "there is no kind %d of grammars", (int)kind);
    }
}

static drey_status read_once(drey_grammar *g, drey_grammar_kind kind, const char *text, size_t n,
                             bool plainly, grammar_rules *rules, void *scratch, drey_error *err)
{
    int32_t root = 0;
    grammar_rules_init(rules);
    rules->tokenizer = g->trie->tokenizer;
    rules->plainly = plainly;
    TRY(read_text(kind, text, n, rules, &root, err));
    token_cuts_mark(rules, g->trie->tokenizer);
    memcpy(g->not_held, rules->left_out, sizeof g->not_held);
    return automaton_build(&g->automaton, rules, root, scratch, err);
}

/* Reads a text; one that has no room is read again, with fewer rules. */
static drey_status read_rules(drey_grammar *g, drey_grammar_kind kind, const char *text, size_t n,
                              drey_error *err)
{
    grammar_rules *rules = arena_take(&g->memory, sizeof *rules);
    void *scratch = arena_take(&g->memory, automaton_scratch_bytes());
    drey_status status = read_once(g, kind, text, n, false, rules, scratch, err);
    if (status == DREY_ERR_USAGE && rules->widened && automaton_is_full(&g->automaton))
        status = read_once(g, kind, text, n, true, rules, scratch, err);
    return status;
}

/* A single byte says little about the token: at first nothing is expected of those. */
static void expect_longer(drey_grammar *g)
{
    memset(g->misnamed, 0, (size_t)g->n_words * sizeof *g->misnamed);
    for (int k = 0; k < VOCAB_PARTS; k++) {
        const vocab_part *part = &g->trie->parts[k];
        for (int32_t i = 1; i < part->n_nodes; i = part->nodes[i].end)
            set_bits(g->trie, part->nodes[i].first, part->nodes[i + 1].first, g->misnamed);
    }
}

static void make_work(drey_grammar *g)
{
    arena_rewind(&g->memory, 0);
    g->states = arena_take(&g->memory, sizeof *g->states);
    int32_t *rows = arena_take(&g->memory, STATES_ROW_BYTES);
    g->n_words = g->trie->n_words;
    g->masks = arena_take(&g->memory, masks_bytes(g->trie->n_vocab));
    g->scratch = arena_take(&g->memory, (size_t)g->trie->n_vocab * sizeof(float));
    g->misnamed = arena_take(&g->memory, (size_t)g->n_words * sizeof *g->misnamed);
    expect_longer(g);
    g->n_slots =
        (int32_t)min_size(masks_bytes(g->trie->n_vocab) / 8 / (size_t)g->n_words, MOST_MASKS);
    memset(g->states, 0, sizeof *g->states);
    states_init(g->states, &g->automaton, rows);
    g->states->held[0] = (held_states){g->own, 1 + VOCAB_TRIE_LONGEST + 1};
}

static drey_status init(drey_grammar *g, drey_grammar_kind given, const char *text, size_t n,
                        drey_error *err)
{
    const bool strict = ((unsigned)given & DREY_GRAMMAR_STRICT) != 0;
    const drey_grammar_kind kind =
        (drey_grammar_kind)((unsigned)given & ~(unsigned)DREY_GRAMMAR_STRICT);
    if (n > GRAMMAR_MOST_BYTES)
        FAIL(err, DREY_ERR_USAGE, "the grammar has %zu bytes; at most %d are read", n,
             GRAMMAR_MOST_BYTES);
    TRY(arena_init(&g->memory, memory_bytes(g->trie->n_vocab), false, err));
    TRY(read_rules(g, kind, text, n, err));
    if (strict && g->not_held[0])
        FAIL(err, DREY_ERR_USAGE,
             "no grammar can hold this of the schema: %.300s; leave it out, or do not ask for all "
             "of it (strict)",
             g->not_held);
    make_work(g);
    grammar_restart(g);
    if (grammar_is_over(g, &g->own[0]))
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
    assert(!(*g)->in_use);
    arena_free(&(*g)->memory);
    free(*g);
    *g = NULL;
}

const char *grammar_not_held(const drey_grammar *g)
{
    return g->not_held;
}

drey_status grammar_schema_not_held(const char *schema, size_t n, char *places, size_t size,
                                    drey_error *err)
{
    int32_t root;
    grammar_rules *rules = malloc(sizeof *rules);
    *places = 0;
    if (!rules)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a schema");
    grammar_rules_init(rules);
    drey_status status = json_schema_read(rules, schema, n, &root, err);
    if (status == DREY_OK)
        snprintf(places, size, "%s", rules->left_out);
    free(rules);
    return status;
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

void grammar_hold(drey_grammar *g, int32_t *held, int32_t n)
{
    g->states->held[1] = (held_states){held, held ? n : 0};
}

void grammar_restart(drey_grammar *g)
{
    memset(g->own, 0, sizeof g->own);
    g->own[0] = states_first(g->states);
}

int32_t grammar_now(const drey_grammar *g)
{
    return g->own[0];
}

bool grammar_now_may_end(const drey_grammar *g)
{
    return grammar_may_end(g, &g->own[0]);
}

bool grammar_now_over(const drey_grammar *g)
{
    return grammar_is_over(g, &g->own[0]);
}

/* way[0] is a state; the following ones are those after each byte of a token. */
static int32_t *way(drey_grammar *g)
{
    return &g->own[1];
}

int32_t grammar_follow(drey_grammar *g, const int32_t *state, int32_t token)
{
    uint8_t bytes[VOCAB_TRIE_LONGEST];
    int32_t n = vocab_trie_piece(g->trie->tokenizer, token, bytes), *at = way(g);
    if (n == 0)
        return GRAMMAR_NOWHERE;
    *at = *state;
    for (int32_t i = 0; i < n && *at != GRAMMAR_NOWHERE; i++)
        *at = states_step(g->states, at, bytes[i]);
    return *at;
}

bool grammar_may_end(const drey_grammar *g, const int32_t *state)
{
    return g->states->all[*state].ends;
}

bool grammar_is_over(const drey_grammar *g, const int32_t *state)
{
    return g->states->all[*state].n == 0;
}

/* ---- Masks ---- */

/* The tokens of a part, from the state in way()[0]. Returns whether any may come. */
static bool walk(drey_grammar *g, const vocab_part *part, uint64_t *mask)
{
    enum { LEAST_RUN = 8 }; /* nodes */
    int32_t *at = way(g);
    bool any = false;
    for (int32_t i = 1; i < part->n_nodes;) {
        const vocab_trie_node *node = &part->nodes[i];
        int32_t *to = &at[node->depth];
        const int32_t known = states_known(g->states, to[-1], node->byte);
        *to = known >= 0 ? known : states_step(g->states, &to[-1], node->byte);
        if (*to == GRAMMAR_NOWHERE) {
            i = node->end;
        } else if (node->n_plain != VOCAB_NOT_PLAIN && node->end - i >= LEAST_RUN &&
                   states_plain_run(g->states, to).n >= node->n_plain) {
            any = set_bits(g->trie, node->first, part->nodes[node->end].first, mask) || any;
            i = node->end;
        } else {
            any = set_bits(g->trie, node->first, node[1].first, mask) || any;
            i++;
        }
    }
    return any;
}

/* Plain tokens need no walk where any plain character may come. */
static bool take_plain(drey_grammar *g, uint64_t *mask)
{
    const vocab_trie *t = g->trie;
    plain_run run = states_plain_run(g->states, way(g));
    if (run.n == 0 || (!run.ends && run.n < VOCAB_PLAIN_MOST))
        return walk(g, &t->parts[VOCAB_PLAIN], mask);
    const uint64_t *plain = t->plain + (int64_t)(run.n - 1) * t->n_words;
    memcpy(mask, plain, (size_t)t->n_words * sizeof *mask);
    return true;
}

/* Makes the mask of a state. Returns whether any token may come. */
static bool fill(drey_grammar *g, int32_t state, uint64_t *mask)
{
    int32_t *at = way(g);
    at[0] = state;
    bool any = take_plain(g, mask);
    any = walk(g, &g->trie->parts[VOCAB_OTHERS], mask) || any;
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

const uint64_t *grammar_mask(drey_grammar *g, const int32_t *cursor)
{
    states *s = g->states;
    const int32_t state = states_coarse(s, cursor); /* many in a long repetition have one */
    const bool ends = s->all[state].ends;
    int32_t slot = s->all[state].mask;
    if (slot >= 0)
        return g->masks + (int64_t)slot * g->n_words;
    slot = free_slot(g);
    uint64_t *mask = g->masks + (int64_t)slot * g->n_words;
    memset(mask, 0, (size_t)g->n_words * sizeof *mask);
    bool any = fill(g, state, mask);
    if (!any || ends)
        for (int32_t i = 0; i < g->trie->n_ends; i++)
            set_bit(mask, g->trie->ends[i]);
    if (g->of_compacted == s->n_compacted && state != GRAMMAR_NOWHERE) {
        s->all[state].mask = slot;
        g->slots[slot].state = state;
    }
    return mask;
}

bool grammar_prepare(drey_grammar *g, const int32_t *state)
{
    if (*state == GRAMMAR_NOWHERE || g->n_ahead >= g->n_slots / 2 ||
        g->states->all[states_coarse(g->states, state)].mask >= 0)
        return false;
    grammar_mask(g, state);
    g->n_ahead++;
    g->n_prepared++;
    return true;
}

int64_t grammar_n_prepared(const drey_grammar *g)
{
    return g->n_prepared;
}

bool grammar_allows(drey_grammar *g, const int32_t *state, int32_t token)
{
    if (!tokenizer_is_end(g->trie->tokenizer, token))
        return grammar_follow(g, state, token) != GRAMMAR_NOWHERE;
    return grammar_may_end(g, state) || (grammar_mask(g, state)[token / 64] >> (token % 64) & 1);
}

/* ---- What is certain ---- */

/* The node below `node` for that byte; -1: there is none. */
static int32_t below(const vocab_part *part, int32_t node, uint8_t byte)
{
    for (int32_t i = node + 1; i < part->nodes[node].end; i = part->nodes[i].end)
        if (part->nodes[i].byte == byte)
            return i;
    return -1;
}

/* The longest token of a part of which bytes[0..n) begin with. Returns its length; 0: there is
 * none. */
static int longest(const vocab_trie *t, const vocab_part *part, const uint8_t *bytes, int n,
                   int32_t *token)
{
    int length = 0;
    for (int32_t i = 0, node = 0; i < n; i++) {
        node = below(part, node, bytes[i]);
        if (node < 0)
            break;
        if (part->nodes[node].first < part->nodes[node + 1].first) {
            *token = t->ids[part->nodes[node].first];
            length = i + 1;
        }
    }
    return length;
}

/* Returns the longest token within the bytes that must come next, as far as a token usually goes.
 * *open: it may be the beginning of a longer one, of which not all bytes are certain. */
static int32_t name_next(drey_grammar *g, const int32_t *state, bool *open)
{
    uint8_t bytes[MOST_FORCED];
    int32_t *at = way(g), plain = -1, other = -1;
    int n = 0;
    *at = *state;
    *open = true;
    while (n < MOST_FORCED && *open) {
        int byte = states_only_byte(g->states, *at);
        if (byte < 0)
            break;
        bytes[n++] = (uint8_t)byte;
        *at = states_step(g->states, at, (uint8_t)byte);
        *open = !states_is_cut(g->states, *at);
    }
    const vocab_part *parts = g->trie->parts;
    int n_plain = longest(g->trie, &parts[VOCAB_PLAIN], bytes, n, &plain);
    return longest(g->trie, &parts[VOCAB_OTHERS], bytes, n, &other) > n_plain ? other : plain;
}

static bool is_misnamed(const drey_grammar *g, int32_t token)
{
    return g->misnamed[token / 64] >> (token % 64) & 1;
}

int32_t grammar_forced(drey_grammar *g, const int32_t *state)
{
    bool open;
    int32_t token = name_next(g, state, &open);
    return token >= 0 && open && is_misnamed(g, token) ? -1 : token;
}

/* After "{" may come a line break or a name, each in one token with it: what came last time is
 * expected again. */
void grammar_advance(drey_grammar *g, int32_t token)
{
    bool open;
    int32_t named = name_next(g, &g->own[0], &open);
    if (named >= 0 && open && is_misnamed(g, named) != (named != token))
        g->misnamed[named / 64] ^= UINT64_C(1) << (named % 64);
    int32_t next = grammar_follow(g, &g->own[0], token);
    g->own[0] = next;
    g->n_ahead = 0;
}
