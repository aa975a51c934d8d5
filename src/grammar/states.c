/* Finding and forgetting states: see states.h. */
#include "grammar/states.h"

#include <assert.h>
#include <string.h>

#include "common/hash.h"
#include "common/num.h"
#include "grammar/vocab_trie.h"

static void clear(states *s)
{
    memset(s->cell_buckets, -1, sizeof s->cell_buckets);
    memset(s->state_buckets, -1, sizeof s->state_buckets);
}

/* State 0 has no stacks, and only itself after it. */
void states_init(states *s, const automaton *a, int32_t *rows)
{
    s->a = a;
    s->rows = rows;
    s->most = min_i32(STATES_MOST, STATES_ROW_BYTES / 4 / a->n_classes);
    s->n_cells = s->n = 1;
    s->n_configs = 0;
    s->cells[0] = (state_cell){.node = -1, .below = -1, .note = -1};
    s->all[0] = (grammar_state){.mask = -1, .plain = GRAMMAR_NOWHERE, .coarse = GRAMMAR_NOWHERE};
    memset(rows, 0, (size_t)a->n_classes * sizeof *rows);
    clear(s);
}

/* ---- Cells ---- */

static int32_t *cell_bucket(states *s, const state_cell *c)
{
    uint64_t key = (uint64_t)(uint32_t)c->node << 32 | (uint32_t)c->below;
    key ^= c->noted * UINT64_C(0xD6E8FEB86659FD93);
    return &s->cell_buckets[key * UINT64_C(0x9E3779B97F4A7C15) >> 50];
}
_Static_assert(STATES_BUCKETS == 1 << 14, "the shift above");

static bool is_same(const state_cell *a, const state_cell *b)
{
    return a->node == b->node && a->below == b->below && a->note == b->note && a->noted == b->noted;
}

static void add_cell(states *s, state_cell c)
{
    int32_t *bucket = cell_bucket(s, &c);
    c.next = *bucket;
    *bucket = s->n_cells;
    s->cells[s->n_cells++] = c;
}

/* -1: the stack would be too deep, or there is no room. */
static int32_t cell_of(states *s, state_cell c)
{
    for (int32_t i = *cell_bucket(s, &c); i >= 0; i = s->cells[i].next)
        if (is_same(&s->cells[i], &c))
            return i;
    c.depth = s->cells[c.below].depth + 1;
    if (c.depth > GRAMMAR_MOST_DEPTH || s->n_cells == STATES_MOST_CELLS) {
        s->narrowed = true;
        return -1;
    }
    add_cell(s, c);
    return s->n_cells - 1;
}

/* ---- What can be reached without a byte ---- */

static void begin_set(states *s)
{
    s->n_todo = s->n_visits = s->n_found = 0;
    s->found_end = false;
    s->stamp++;
    if (s->stamp == 0) {
        memset(s->stamps, 0, sizeof s->stamps);
        s->stamp = 1;
    }
}

static void visit(states *s, int32_t node, int32_t cell)
{
    uint64_t key = (uint64_t)(uint32_t)node << 32 | (uint32_t)cell;
    uint64_t at = key * UINT64_C(0x9E3779B97F4A7C15) >> 40;
    for (;; at++) {
        at %= STATES_VISIT_BUCKETS;
        if (s->stamps[at] != s->stamp)
            break;
        if (s->visits[at].node == node && s->visits[at].cell == cell)
            return;
    }
    if (s->n_visits == STATES_MOST_VISITS) {
        s->narrowed = true;
        return;
    }
    s->n_visits++;
    s->stamps[at] = s->stamp;
    s->visits[at] = s->todo[s->n_todo++] = (state_config){node, cell};
}

static void call(states *s, const automaton_edge *edge, int32_t cell)
{
    const automaton *a = s->a;
    const int32_t note = a->rules[edge->rule].note;
    if (note >= 0 || !a->is_end[edge->to])
        cell = cell_of(s, (state_cell){.node = edge->to, .below = cell, .note = note});
    if (cell >= 0)
        visit(s, a->rules[edge->rule].start, cell);
}

/* The same cell with something else noted. */
static int32_t noted_cell(states *s, int32_t cell, uint64_t noted)
{
    state_cell c = s->cells[cell];
    c.noted = noted;
    return cell_of(s, c);
}

/* A member of a set that has not come. */
static void member(states *s, const automaton_edge *edge, int32_t cell)
{
    uint64_t noted = s->cells[cell].noted;
    uint64_t bit = edge->low < EACH_MOST ? UINT64_C(1) << edge->low : 0;
    if (noted & bit)
        return;
    int32_t with = noted_cell(s, cell, noted | bit);
    if (with >= 0)
        with = cell_of(s, (state_cell){.node = edge->to, .below = with, .note = -1});
    if (with >= 0)
        visit(s, s->a->rules[edge->rule].start, with);
}

/* Counts one more. Without an upper limit, all numbers above the lower limit are the same. */
static void tick(states *s, const automaton_edge *edge, int32_t cell)
{
    assert(s->cells[cell].note >= 0);
    const automaton_note *note = &s->a->notes[s->cells[cell].note];
    int32_t n = (int32_t)s->cells[cell].noted;
    if (note->most != REPEAT_FOREVER && n >= note->most)
        return;
    if (note->most != REPEAT_FOREVER || n < note->least)
        cell = noted_cell(s, cell, (uint64_t)n + 1);
    if (cell >= 0)
        visit(s, edge->to, cell);
}

/* Returns whether the rule that returns to the cell is complete. */
static bool is_whole(const states *s, const state_cell *c)
{
    const automaton_note *note = &s->a->notes[c->note];
    return note->kind == NOTE_TICKS ? (int32_t)c->noted >= note->least
                                    : (c->noted & note->required) == note->required;
}

static bool has_more(const states *s, const state_cell *c)
{
    const automaton_note *note = &s->a->notes[c->note];
    return note->others || (note->all & ~c->noted) != 0;
}

/* Repeats what was written `times` times: once more, or what comes after it. */
static void repeat(states *s, int32_t note, int32_t times, int32_t below)
{
    const automaton_note *n = &s->a->notes[note];
    if (times >= n->least)
        visit(s, n->to, below);
    if (times >= n->most)
        return;
    int32_t cell = cell_of(
        s, (state_cell){.node = n->to, .below = below, .note = note, .noted = (uint64_t)times + 1});
    if (cell >= 0)
        visit(s, s->a->rules[n->rule].start, cell);
}

static void end_rule(states *s, int32_t cell)
{
    const state_cell *c = &s->cells[cell];
    if (cell == 0)
        s->found_end = true;
    else if (c->note >= 0 && s->a->notes[c->note].kind == NOTE_TIMES)
        repeat(s, c->note, (int32_t)c->noted, c->below);
    else if (c->note < 0 || is_whole(s, c))
        visit(s, c->node, c->below);
}

static void take_edge(states *s, const automaton_edge *edge, int32_t cell)
{
    switch ((edge_kind)edge->kind) {
    case EDGE_NOTHING:
    case EDGE_LEAVE:
        visit(s, edge->to, cell);
        break;
    case EDGE_RULE:
        call(s, edge, cell);
        break;
    case EDGE_COUNT:
        repeat(s, edge->rule, 0, cell);
        break;
    case EDGE_MEMBER:
        member(s, edge, cell);
        break;
    case EDGE_MORE:
        if (has_more(s, &s->cells[cell]))
            visit(s, edge->to, cell);
        break;
    case EDGE_TICK:
        tick(s, edge, cell);
        break;
    case EDGE_BYTES:
    case EDGE_SHADOW:
        break;
    }
}

static void look_at(states *s, state_config c)
{
    bool takes_bytes = false;
    if (s->a->is_end[c.node]) {
        end_rule(s, c.cell);
        return;
    }
    for (int32_t e = s->a->first[c.node]; e >= 0; e = s->a->edges[e].next) {
        takes_bytes = takes_bytes || s->a->edges[e].kind == EDGE_BYTES;
        take_edge(s, &s->a->edges[e], c.cell);
    }
    if (takes_bytes && s->n_found < GRAMMAR_MOST_STACKS)
        s->found[s->n_found++] = c;
    else if (takes_bytes)
        s->narrowed = true;
}

static void close_set(states *s)
{
    while (s->n_todo > 0)
        look_at(s, s->todo[--s->n_todo]);
}

/* ---- States ---- */

static int32_t *state_bucket(states *s, const state_config *configs, int32_t n, bool ends)
{
    uint64_t hash = hash64_of(configs, (size_t)n * sizeof *configs) + ends;
    return &s->state_buckets[hash % STATES_BUCKETS];
}

static int32_t add_state(states *s, int32_t first, int32_t n, bool ends)
{
    int32_t id = s->n++, *row = s->rows + (int64_t)id * s->a->n_classes;
    int32_t *bucket = state_bucket(s, s->configs + first, n, ends);
    s->all[id] = (grammar_state){.first = first,
                                 .n = n,
                                 .next = *bucket,
                                 .mask = -1,
                                 .plain = STATE_PLAIN_UNKNOWN,
                                 .coarse = -1,
                                 .ends = ends};
    *bucket = id;
    memset(row, -1, (size_t)s->a->n_classes * sizeof *row);
    return id;
}

static bool is_found(const states *s, const grammar_state *x)
{
    return x->n == s->n_found && x->ends == s->found_end &&
           memcmp(s->configs + x->first, s->found, (size_t)x->n * sizeof *s->found) == 0;
}

/* The state of what was found. Room has been made. */
static int32_t state_found(states *s)
{
    if (s->n_found == 0 && !s->found_end)
        return GRAMMAR_NOWHERE;
    for (int32_t i = *state_bucket(s, s->found, s->n_found, s->found_end); i >= 0;
         i = s->all[i].next)
        if (is_found(s, &s->all[i]))
            return i;
    if (s->n == s->most || s->n_configs + s->n_found > STATES_MOST_CONFIGS) {
        s->narrowed = true;
        return GRAMMAR_NOWHERE;
    }
    int32_t first = s->n_configs;
    if (s->n_found > 0)
        memcpy(s->configs + first, s->found, (size_t)s->n_found * sizeof *s->found);
    s->n_configs += s->n_found;
    return add_state(s, first, s->n_found, s->found_end);
}

/* ---- Forgetting ---- */

static bool is_full(const states *s)
{
    return s->n == s->most || s->n_configs + GRAMMAR_MOST_STACKS > STATES_MOST_CONFIGS ||
           s->n_cells + STATES_MOST_VISITS > STATES_MOST_CELLS;
}

/* moved[cell]: 0 for those that no held state needs, else its new number. A cell comes after the
 * one below it. */
static void keep_cells(states *s, const bool *keeps)
{
    memset(s->moved, 0, sizeof s->moved);
    for (int32_t id = 1; id < s->n; id++)
        for (int32_t i = 0; keeps[id] && i < s->all[id].n; i++)
            s->moved[s->configs[s->all[id].first + i].cell] = 1;
    for (int32_t i = s->n_cells - 1; i > 0; i--)
        if (s->moved[i])
            s->moved[s->cells[i].below] = 1;
    s->moved[0] = 0;
    const int32_t n_before = s->n_cells;
    s->n_cells = 1;
    for (int32_t i = 1; i < n_before; i++) {
        if (!s->moved[i])
            continue;
        state_cell c = s->cells[i];
        c.below = s->moved[c.below];
        s->moved[i] = s->n_cells;
        add_cell(s, c);
    }
}

/* Moves the states that are kept, in their order, so that nothing is overwritten before it is
 * moved. */
static void keep_states(states *s, const bool *keeps, int32_t *new_id)
{
    const int32_t n_before = s->n;
    int32_t n_configs = 0;
    s->n = 1;
    for (int32_t id = 1; id < n_before; id++) {
        if (!keeps[id])
            continue;
        const grammar_state x = s->all[id];
        for (int32_t i = 0; i < x.n; i++) {
            state_config c = s->configs[x.first + i];
            s->configs[n_configs + i] = (state_config){c.node, s->moved[c.cell]};
        }
        new_id[id] = add_state(s, n_configs, x.n, x.ends);
        n_configs += x.n;
    }
    s->n_configs = n_configs;
}

static void forget(states *s)
{
    bool keeps[STATES_MOST] = {false};
    int32_t new_id[STATES_MOST] = {0};
    for (int h = 0; h < STATES_HELD; h++)
        for (int32_t i = 0; i < s->held[h].n; i++)
            keeps[s->held[h].ids[i]] = true;
    clear(s);
    keep_cells(s, keeps);
    keep_states(s, keeps, new_id);
    for (int h = 0; h < STATES_HELD; h++)
        for (int32_t i = 0; i < s->held[h].n; i++)
            s->held[h].ids[i] = new_id[s->held[h].ids[i]];
    s->n_compacted++;
}

/* ---- The beginning, and a byte ---- */

int32_t states_first(states *s)
{
    if (is_full(s))
        forget(s);
    begin_set(s);
    visit(s, s->a->rules[s->a->root].start, 0);
    close_set(s);
    return state_found(s);
}

int32_t states_step(states *s, const int32_t *state, uint8_t byte)
{
    const automaton *a = s->a;
    const uint8_t class = a->class_of[byte];
    int32_t known = states_known(s, *state, byte);
    if (known >= 0)
        return known;
    if (is_full(s))
        forget(s);
    const grammar_state from = s->all[*state];
    begin_set(s);
    for (int32_t i = 0; i < from.n; i++) {
        state_config c = s->configs[from.first + i];
        for (int32_t e = a->first[c.node]; e >= 0; e = a->edges[e].next)
            if (a->edges[e].kind == EDGE_BYTES && a->edges[e].low <= byte &&
                byte <= a->edges[e].high) {
                visit(s, a->edges[e].to, c.cell);
                close_set(s);
            }
    }
    int32_t to = state_found(s);
    s->rows[(int64_t)*state * a->n_classes + class] = to;
    return to;
}

/* ---- States that stand for others ---- */

static bool counts(const states *s, const state_cell *c)
{
    return c->note >= 0 && s->a->notes[c->note].kind != NOTE_MEMBERS;
}

/* Finds the count of each note, in all stacks of a state. Returns whether any does. */
static bool find_counts(states *s, const grammar_state *x)
{
    bool any = false;
    for (int32_t k = 0; k < s->a->n_notes; k++)
        s->counted[k] = (count_range){.low = INT32_MAX};
    for (int32_t i = 0; i < x->n; i++)
        for (int32_t id = s->configs[x->first + i].cell; id > 0; id = s->cells[id].below) {
            const state_cell *cell = &s->cells[id];
            if (!counts(s, cell))
                continue;
            count_range *range = &s->counted[cell->note];
            range->low = min_i32(range->low, (int32_t)cell->noted);
            range->high = max_i32(range->high, (int32_t)cell->noted);
            any = true;
        }
    return any;
}

/* Returns how much can be left out of all numbers of a note: no bound of it is nearer than a token
 * is long, before or after that, and new ones of the same note, which begin at 0 or 1, stay less
 * than these. */
static int32_t left_out(const states *s, int32_t which)
{
    enum { FAR = VOCAB_TRIE_LONGEST + 1 };
    const automaton_note *note = &s->a->notes[which];
    const int32_t low = s->counted[which].low, high = s->counted[which].high;
    if (high == 0)
        return 0;
    if (low >= note->least + FAR && high <= note->most - FAR)
        return low - note->least - FAR;
    return low >= FAR && high <= note->least - FAR ? low - FAR : 0;
}

/* The same stack with less of what is counted. */
static int32_t coarse_cell(states *s, int32_t id)
{
    int32_t path[GRAMMAR_MOST_DEPTH + 1], n = 0, out = 0;
    for (; id > 0; id = s->cells[id].below)
        path[n++] = id;
    while (n > 0 && out >= 0) {
        state_cell cell = s->cells[path[--n]];
        cell.below = out;
        if (counts(s, &cell))
            cell.noted -= (uint64_t)s->counted[cell.note].less;
        out = cell_of(s, cell);
    }
    return out;
}

static int32_t find_coarse(states *s, int32_t id)
{
    const grammar_state x = s->all[id];
    bool any = false;
    for (int32_t k = 0; k < s->a->n_notes; k++) {
        s->counted[k].less = left_out(s, k);
        any = any || s->counted[k].less > 0;
    }
    s->n_found = 0;
    s->found_end = x.ends;
    for (int32_t i = 0; i < x.n && any; i++) {
        const state_config c = s->configs[x.first + i];
        int32_t cell = coarse_cell(s, c.cell);
        any = cell >= 0 && s->n_cells < STATES_MOST_CELLS;
        s->found[s->n_found++] = (state_config){c.node, cell};
    }
    int32_t coarse = any ? state_found(s) : id;
    return coarse == GRAMMAR_NOWHERE ? id : coarse; /* no room: it stands for itself */
}

int32_t states_coarse(states *s, const int32_t *state)
{
    if (s->a->n_notes == 0 || s->all[*state].coarse >= 0)
        return s->a->n_notes == 0 ? *state : s->all[*state].coarse;
    if (is_full(s))
        forget(s);
    const bool narrowed = s->narrowed;
    int32_t coarse = find_counts(s, &s->all[*state]) ? find_coarse(s, *state) : *state;
    s->narrowed = narrowed; /* nothing is left out where there is no room */
    s->all[*state].coarse = coarse;
    return coarse;
}

int states_only_byte(const states *s, int32_t id)
{
    const automaton *a = s->a;
    const grammar_state *x = &s->all[id];
    int only = -1;
    for (int32_t i = 0; i < x->n && !x->ends; i++)
        for (int32_t e = a->first[s->configs[x->first + i].node]; e >= 0; e = a->edges[e].next) {
            const automaton_edge *edge = &a->edges[e];
            if (edge->kind != EDGE_BYTES)
                continue;
            if (edge->low != edge->high || (only >= 0 && only != edge->low))
                return -1;
            only = edge->low;
        }
    return only;
}

bool states_is_cut(const states *s, int32_t id)
{
    const grammar_state *x = &s->all[id];
    bool cut = x->n > 0;
    for (int32_t i = 0; i < x->n; i++)
        cut = cut && s->a->is_cut[s->configs[x->first + i].node];
    return cut;
}
