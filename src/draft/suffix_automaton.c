/* Building and searching: see suffix_automaton.h. */
#include "draft/suffix_automaton.h"

#include <assert.h>

/* Shorter words of a place that are updated: in a text that repeats one token these are all words,
 * and counts of short words say little. */
enum { MOST_COUNTED = 64 };

static uint32_t heads_for(int32_t capacity)
{
    uint32_t n = 16;
    while (n < 2 * (uint32_t)capacity)
        n *= 2;
    return n;
}

size_t suffix_automaton_bytes(int32_t capacity)
{
    size_t n = (size_t)capacity;
    return (2 * n + 2) * sizeof(suffix_state) + (3 * n + 2) * sizeof(suffix_edge) +
           heads_for(capacity) * sizeof(int32_t);
}

void suffix_automaton_init(suffix_automaton *a, void *memory, int32_t capacity)
{
    size_t n = (size_t)capacity;
    *a = (suffix_automaton){.capacity = capacity, .head_mask = heads_for(capacity) - 1};
    a->state = memory;
    a->edge = (suffix_edge *)(a->state + 2 * n + 2);
    a->head = (int32_t *)(a->edge + 3 * n + 2);
    suffix_automaton_clear(a);
}

void suffix_automaton_clear(suffix_automaton *a)
{
    for (uint32_t i = 0; i <= a->head_mask; i++)
        a->head[i] = -1;
    a->state[0] = (suffix_state){.link = -1, .first_edge = -1};
    a->n_states = 1;
    a->n_edges = a->n_tokens = a->whole = 0;
}

static uint32_t slot_of(const suffix_automaton *a, int32_t state, int32_t token)
{
    uint64_t key = (uint64_t)(uint32_t)state << 32 | (uint32_t)token;
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & a->head_mask;
}

int32_t suffix_automaton_edge(const suffix_automaton *a, int32_t state, int32_t token)
{
    int32_t i = a->head[slot_of(a, state, token)];
    while (i >= 0 && (a->edge[i].from != state || a->edge[i].token != token))
        i = a->edge[i].next_alike;
    return i;
}

static void add_edge(suffix_automaton *a, int32_t from, int32_t token, int32_t to)
{
    assert(a->n_edges < 3 * a->capacity + 2);
    int32_t i = a->n_edges++;
    int32_t *head = &a->head[slot_of(a, from, token)];
    a->edge[i] = (suffix_edge){.token = token,
                               .from = from,
                               .to = to,
                               .next = a->state[from].first_edge,
                               .next_alike = *head};
    a->state[from].first_edge = *head = i;
}

/* The words of q up to this length now end at a place where the longer ones do not: they become a
 * separate state. p: the state of the longest of them without its last token. */
static int32_t split(suffix_automaton *a, int32_t q, int32_t p, int32_t token)
{
    int32_t shorter = a->n_states++;
    a->state[shorter] = a->state[q];
    a->state[shorter].length = a->state[p].length + 1;
    a->state[shorter].first_edge = -1;
    for (int32_t i = a->state[q].first_edge; i >= 0; i = a->edge[i].next)
        add_edge(a, shorter, a->edge[i].token, a->edge[i].to);
    for (; p >= 0; p = a->state[p].link) {
        int32_t i = suffix_automaton_edge(a, p, token);
        if (i < 0 || a->edge[i].to != q)
            break;
        a->edge[i].to = shorter;
    }
    a->state[q].link = shorter;
    return shorter;
}

static void count_place(suffix_automaton *a)
{
    int32_t at = a->whole;
    for (int i = 0; i < MOST_COUNTED && at > 0; i++, at = a->state[at].link) {
        a->state[at].count++;
        a->state[at].latest = a->n_tokens;
    }
}

void suffix_automaton_add(suffix_automaton *a, int32_t token)
{
    assert(a->n_tokens < a->capacity);
    int32_t p = a->whole, whole = a->n_states++, i = -1;
    a->state[whole] = (suffix_state){.length = ++a->n_tokens, .first_edge = -1};
    for (; p >= 0 && (i = suffix_automaton_edge(a, p, token)) < 0; p = a->state[p].link)
        add_edge(a, p, token, whole);
    if (p < 0) {
        a->state[whole].link = 0;
    } else {
        int32_t q = a->edge[i].to;
        bool is_longest = a->state[p].length + 1 == a->state[q].length;
        a->state[whole].link = is_longest ? q : split(a, q, p, token);
    }
    a->whole = whole;
    count_place(a);
}

suffix_match suffix_automaton_end(const suffix_automaton *a)
{
    int32_t link = a->state[a->whole].link;
    return link > 0 ? (suffix_match){link, a->state[link].length} : (suffix_match){0, 0};
}

suffix_match suffix_automaton_step(const suffix_automaton *a, suffix_match m, int32_t token)
{
    for (int32_t i; m.state >= 0;) {
        i = suffix_automaton_edge(a, m.state, token);
        if (i >= 0)
            return (suffix_match){a->edge[i].to, m.length + 1};
        m.state = a->state[m.state].link;
        m.length = m.state >= 0 ? a->state[m.state].length : 0;
    }
    return (suffix_match){0, 0};
}
