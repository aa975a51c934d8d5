/* From expressions to the automaton: see automaton.h. */
#include "grammar/automaton.h"

#include <assert.h>
#include <string.h>

#include "common/num.h"

/* ---- Laying out expressions ---- */

typedef struct builder {
    automaton *a;
    const grammar_rules *g;
    int32_t *class_rule; /* [RULES_MOST_EXPRS]: the rule of a class of characters; -1: none */
    bool full;
} builder;

static int32_t new_node(builder *b)
{
    automaton *a = b->a;
    if (a->n_nodes == AUTOMATON_MOST_NODES) {
        b->full = true;
        return 0;
    }
    a->first[a->n_nodes] = -1;
    a->is_end[a->n_nodes] = a->is_cut[a->n_nodes] = false;
    return a->n_nodes++;
}

static void add_edge(builder *b, int32_t from, automaton_edge edge)
{
    automaton *a = b->a;
    if (a->n_edges == AUTOMATON_MOST_EDGES)
        b->full = true;
    if (b->full)
        return;
    edge.next = a->first[from];
    a->edges[a->n_edges] = edge;
    a->first[from] = a->n_edges++;
}

static void add_nothing(builder *b, int32_t from, int32_t to)
{
    if (from != to)
        add_edge(b, from, (automaton_edge){.to = to, .kind = EDGE_NOTHING});
}

static void add_bytes(builder *b, int32_t from, int32_t to, uint8_t low, uint8_t high)
{
    add_edge(b, from, (automaton_edge){.to = to, .kind = EDGE_BYTES, .low = low, .high = high});
}

static int32_t new_rule(builder *b)
{
    automaton *a = b->a;
    if (a->n_rules == AUTOMATON_MOST_RULES)
        b->full = true;
    if (b->full)
        return 0;
    int32_t start = new_node(b), end = new_node(b);
    a->is_end[end] = true;
    a->rules[a->n_rules] = (automaton_rule){start, end, -1};
    return a->n_rules++;
}

/* A rule with a note. */
static int32_t new_noted(builder *b, automaton_note note)
{
    automaton *a = b->a;
    int32_t rule = new_rule(b);
    if (a->n_notes == AUTOMATON_MOST_NOTES)
        b->full = true;
    if (b->full)
        return 0;
    a->rules[rule].note = a->n_notes;
    a->notes[a->n_notes++] = note;
    return rule;
}

/* The characters from..to, all of which have n bytes that differ by whole ranges. */
static void lay_range(builder *b, int32_t from, int32_t to, const uint8_t *low, const uint8_t *high,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int32_t next = i + 1 < n ? new_node(b) : to;
        add_bytes(b, from, next, low[i], high[i]);
        from = next;
    }
}

static size_t utf8_bytes(uint32_t code, uint8_t out[4])
{
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (uint8_t)(0x80 | (code & 0x3F));
    out[0] = (uint8_t)(n == 1 ? code : (0xF00u >> n & 0xF0) | code);
    return n;
}

/* A range of characters is divided until each part's bytes are independent ranges: at lengths, and
 * where the last bytes are not whole. */
static void lay_characters(builder *b, int32_t from, int32_t to, uint32_t low, uint32_t high)
{
    static const uint32_t lengths[] = {0x7F, 0x7FF, 0xFFFF};
    for (int i = 0; i < 3; i++)
        if (low <= lengths[i] && high > lengths[i]) {
            lay_characters(b, from, to, low, lengths[i]);
            lay_characters(b, from, to, lengths[i] + 1, high);
            return;
        }
    for (int bits = 6; bits <= 18 && high > 0x7F; bits += 6) {
        uint32_t rest = (1u << bits) - 1;
        if ((low & ~rest) == (high & ~rest))
            continue;
        if (low & rest) {
            lay_characters(b, from, to, low, low | rest);
            lay_characters(b, from, to, (low | rest) + 1, high);
            return;
        }
        if ((high & rest) != rest) {
            lay_characters(b, from, to, low, (high & ~rest) - 1);
            lay_characters(b, from, to, high & ~rest, high);
            return;
        }
    }
    uint8_t first[4], last[4];
    size_t n = utf8_bytes(low, first);
    utf8_bytes(high, last);
    lay_range(b, from, to, first, last, n);
}

static void lay_ranges(builder *b, const expr_node *e, int32_t from, int32_t to)
{
    for (int32_t i = 0; i < e->b; i++)
        lay_characters(b, from, to, b->g->ranges[e->a + i].from, b->g->ranges[e->a + i].to);
}

/* Classes of more than ASCII have many nodes: they are a rule, which all their uses share. */
static void lay_class(builder *b, expr e, int32_t from, int32_t to)
{
    const expr_node *node = &b->g->exprs[e];
    if (b->g->ranges[node->a + node->b - 1].to < 0x80) {
        lay_ranges(b, node, from, to);
        return;
    }
    int32_t *rule = &b->class_rule[e];
    if (*rule < 0) {
        *rule = new_rule(b);
        if (!b->full)
            lay_ranges(b, node, b->a->rules[*rule].start, b->a->rules[*rule].end);
    }
    add_edge(b, from, (automaton_edge){.to = to, .kind = EDGE_RULE, .rule = *rule});
}

static void lay(builder *b, expr e, int32_t from, int32_t to);

static void lay_repeat(builder *b, const expr_node *e, int32_t from, int32_t to)
{
    int32_t at = from;
    for (int32_t i = 0; i < e->least && !b->full; i++) {
        int32_t next = i + 1 == e->most ? to : new_node(b);
        lay(b, e->a, at, next);
        at = next;
    }
    if (e->most == REPEAT_FOREVER) {
        int32_t loop = new_node(b);
        add_nothing(b, at, loop);
        lay(b, e->a, loop, loop);
        add_nothing(b, loop, to);
        return;
    }
    for (int32_t i = e->least; i < e->most && !b->full; i++) {
        int32_t next = i + 1 == e->most ? to : new_node(b);
        add_nothing(b, at, to);
        lay(b, e->a, at, next);
        at = next;
    }
}

static void lay_text(builder *b, const expr_node *e, int32_t from, int32_t to)
{
    const uint8_t *bytes = b->g->bytes + e->a;
    for (int32_t i = 0; i < e->b; i++) {
        int32_t next = i + 1 < e->b ? new_node(b) : to;
        add_bytes(b, from, next, bytes[i], bytes[i]);
        if (i + 1 < e->b && !b->full)
            b->a->is_cut[next] = b->g->cuts[e->a + i];
        from = next;
    }
}

static int32_t rule_of_item(builder *b, expr item)
{
    const expr_node *node = &b->g->exprs[item];
    if (node->kind == EXPR_IS_RULE)
        return node->a;
    int32_t rule = new_rule(b);
    if (!b->full)
        lay(b, item, b->a->rules[rule].start, b->a->rules[rule].end);
    return rule;
}

/* The shadow is the members that have to come, in a row. */
static void lay_shadow(builder *b, const each_set *set, const int32_t *rules, int32_t rule,
                       const int32_t *hubs)
{
    int32_t at = new_node(b), end = b->a->rules[rule].end;
    for (int i = 0; i < 3; i++)
        add_edge(b, hubs[i], (automaton_edge){.to = at, .kind = EDGE_SHADOW});
    for (int32_t i = 0; i < set->n && !b->full; i++) {
        if (!(set->required >> i & 1))
            continue;
        int32_t next = new_node(b);
        add_edge(b, at, (automaton_edge){.to = next, .kind = EDGE_RULE, .rule = rules[i]});
        at = next;
    }
    add_nothing(b, at, end);
}

/* hubs: at the beginning, after a member, after a separator.
 *
 *     hub 0 ==member==> hub 1 --more--> . ==separator==> hub 2 ==member==> hub 1
 *       +-----leave----> end <--leave--+ */
static void lay_each(builder *b, const each_set *set, int32_t from, int32_t to)
{
    int32_t rules[EACH_MOST + 1], n = set->n;
    automaton_note note = {.required = set->required, .others = set->other != EXPR_NEVER};
    for (int32_t i = 0; i < n; i++) {
        rules[i] = rule_of_item(b, b->g->items[set->first + i]);
        note.all |= UINT64_C(1) << i;
    }
    if (note.others)
        rules[n++] = rule_of_item(b, set->other);
    int32_t hubs[3] = {0, new_node(b), new_node(b)}, between = new_node(b);
    note.hub = hubs[1];
    int32_t rule = new_noted(b, note);
    if (b->full)
        return;
    hubs[0] = b->a->rules[rule].start;
    for (int32_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k += 2)
            add_edge(b, hubs[k],
                     (automaton_edge){.to = hubs[1],
                                      .kind = EDGE_MEMBER,
                                      .rule = rules[i],
                                      .low = (uint8_t)(i < set->n ? i : EACH_MOST)});
    add_edge(b, hubs[1], (automaton_edge){.to = between, .kind = EDGE_MORE});
    lay(b, set->separator, between, hubs[2]);
    for (int k = 0; k < 2; k++)
        add_edge(b, hubs[k], (automaton_edge){.to = b->a->rules[rule].end, .kind = EDGE_LEAVE});
    lay_shadow(b, set, rules, rule, hubs);
    add_edge(b, from, (automaton_edge){.to = to, .kind = EDGE_RULE, .rule = rule});
}

static void lay_counted(builder *b, const expr_node *e, int32_t from, int32_t to)
{
    int32_t rule =
        new_noted(b, (automaton_note){.counts = true, .least = e->least, .most = e->most});
    if (b->full)
        return;
    lay(b, e->a, b->a->rules[rule].start, b->a->rules[rule].end);
    add_edge(b, from, (automaton_edge){.to = to, .kind = EDGE_RULE, .rule = rule});
}

/* Sequences and alternatives are built from the left, so that their first part is the long one:
 * recursion is as deep as the readers' brackets. */
static void lay(builder *b, expr e, int32_t from, int32_t to)
{
    while (!b->full) {
        const expr_node *node = &b->g->exprs[e];
        int32_t between;
        switch (node->kind) {
        case EXPR_IS_EMPTY:
            add_nothing(b, from, to);
            return;
        case EXPR_IS_NEVER:
            return;
        case EXPR_IS_BYTES:
            lay_text(b, node, from, to);
            return;
        case EXPR_IS_CLASS:
            lay_class(b, e, from, to);
            return;
        case EXPR_IS_REPEAT:
            lay_repeat(b, node, from, to);
            return;
        case EXPR_IS_RULE:
            add_edge(b, from, (automaton_edge){.to = to, .kind = EDGE_RULE, .rule = node->a});
            return;
        case EXPR_IS_EACH:
            lay_each(b, &b->g->sets[node->a], from, to);
            return;
        case EXPR_IS_COUNTED:
            lay_counted(b, node, from, to);
            return;
        case EXPR_IS_TICK:
            add_edge(b, from, (automaton_edge){.to = to, .kind = EDGE_TICK});
            return;
        case EXPR_IS_SEQ:
            between = new_node(b);
            lay(b, node->b, between, to);
            to = between;
            break;
        case EXPR_IS_ALT:
            lay(b, node->b, from, to);
            break;
        }
        e = node->a;
    }
}

/* ---- What can be reached ---- */

/* Edges by where they lead and by the rule that they call, and a list of nodes to look at. */
typedef struct backwards {
    int32_t from[AUTOMATON_MOST_EDGES];
    int32_t next_in[AUTOMATON_MOST_EDGES], first_in[AUTOMATON_MOST_NODES];
    int32_t next_call[AUTOMATON_MOST_EDGES], first_call[AUTOMATON_MOST_RULES];
    int32_t rule_of[AUTOMATON_MOST_NODES]; /* whose start it is; -1: none */
    int32_t queue[AUTOMATON_MOST_NODES];
    bool ends[AUTOMATON_MOST_NODES], ends_empty[AUTOMATON_MOST_NODES];
} backwards;

static void turn_round(const automaton *a, backwards *w)
{
    memset(w->first_in, -1, sizeof w->first_in);
    memset(w->first_call, -1, sizeof w->first_call);
    memset(w->rule_of, -1, sizeof w->rule_of);
    for (int32_t n = 0; n < a->n_nodes; n++)
        for (int32_t e = a->first[n]; e >= 0; e = a->edges[e].next) {
            const automaton_edge *edge = &a->edges[e];
            w->from[e] = n;
            w->next_in[e] = w->first_in[edge->to];
            w->first_in[edge->to] = e;
            if (edge->kind == EDGE_RULE) {
                w->next_call[e] = w->first_call[edge->rule];
                w->first_call[edge->rule] = e;
            }
        }
    for (int32_t r = 0; r < a->n_rules; r++)
        w->rule_of[a->rules[r].start] = r;
}

static void mark(backwards *w, bool *ends, int32_t node, int32_t *n)
{
    if (!ends[node]) {
        ends[node] = true;
        w->queue[(*n)++] = node;
    }
}

/* A set is left where its shadow says that it can be. */
static bool is_nothing(const automaton_edge *edge)
{
    return edge->kind == EDGE_NOTHING || edge->kind == EDGE_MORE || edge->kind == EDGE_SHADOW ||
           edge->kind == EDGE_TICK;
}

static bool is_call(const automaton_edge *edge)
{
    return edge->kind == EDGE_RULE || edge->kind == EDGE_MEMBER;
}

/* ends[node]: the end of its rule can be reached; by_bytes: also by edges that take bytes. */
static void find_ends(const automaton *a, backwards *w, bool by_bytes, bool *ends)
{
    int32_t n = 0;
    memset(ends, 0, AUTOMATON_MOST_NODES * sizeof *ends);
    for (int32_t r = 0; r < a->n_rules; r++)
        mark(w, ends, a->rules[r].end, &n);
    while (n > 0) {
        int32_t node = w->queue[--n];
        for (int32_t e = w->first_in[node]; e >= 0; e = w->next_in[e]) {
            const automaton_edge *edge = &a->edges[e];
            bool can = is_nothing(edge) || (edge->kind == EDGE_BYTES && by_bytes) ||
                       (edge->kind == EDGE_RULE && ends[a->rules[edge->rule].start]);
            if (can)
                mark(w, ends, w->from[e], &n);
        }
        if (w->rule_of[node] < 0)
            continue;
        for (int32_t e = w->first_call[w->rule_of[node]]; e >= 0; e = w->next_call[e])
            if (ends[a->edges[e].to])
                mark(w, ends, w->from[e], &n);
    }
}

/* A member that never ends is none. */
static void forget_member(automaton *a, const automaton_edge *edge)
{
    for (int32_t i = 0; i < a->n_notes; i++)
        if (!a->notes[i].counts && a->notes[i].hub == edge->to) {
            a->notes[i].others = a->notes[i].others && edge->low < EACH_MOST;
            if (edge->low < EACH_MOST)
                a->notes[i].all &= ~(UINT64_C(1) << edge->low);
        }
}

/* Removes edges that lead to no end. */
static void trim(automaton *a, const bool *ends)
{
    for (int32_t n = 0; n < a->n_nodes; n++)
        for (int32_t *link = &a->first[n]; *link >= 0;) {
            const automaton_edge *edge = &a->edges[*link];
            bool stays = ends[edge->to] && (!is_call(edge) || ends[a->rules[edge->rule].start]);
            if (!stays && edge->kind == EDGE_MEMBER)
                forget_member(a, edge);
            if (stays)
                link = &a->edges[*link].next;
            else
                *link = edge->next;
        }
}

/* ---- Rules that begin with themselves ---- */

typedef struct first_calls { /* which rules each rule may begin with */
    int32_t next[AUTOMATON_MOST_EDGES], first[AUTOMATON_MOST_RULES]; /* edges that call them */
    int32_t queue[AUTOMATON_MOST_NODES];
    bool seen[AUTOMATON_MOST_NODES];
    int32_t path[AUTOMATON_MOST_RULES]; /* of a search */
    uint8_t state[AUTOMATON_MOST_RULES];
} first_calls;

enum { NOT_SEEN, ON_PATH, SEARCHED };

static void see(first_calls *f, int32_t node, int32_t *n)
{
    if (!f->seen[node]) {
        f->seen[node] = true;
        f->queue[(*n)++] = node;
    }
}

static void find_first_calls(const automaton *a, first_calls *f, const bool *ends_empty,
                             int32_t rule)
{
    int32_t n = 0;
    see(f, a->rules[rule].start, &n);
    while (n > 0)
        for (int32_t e = a->first[f->queue[--n]]; e >= 0; e = a->edges[e].next) {
            const automaton_edge *edge = &a->edges[e];
            if (is_call(edge)) {
                f->next[e] = f->first[rule];
                f->first[rule] = e;
            }
            if (is_nothing(edge) || (is_call(edge) && ends_empty[a->rules[edge->rule].start]))
                see(f, edge->to, &n);
        }
}

/* Depth first; first[] becomes the rest of each rule's list. */
static bool begins_with_itself(const automaton *a, first_calls *f, int32_t rule)
{
    int32_t n = 0;
    if (f->state[rule] == SEARCHED)
        return false;
    f->path[n++] = rule;
    f->state[rule] = ON_PATH;
    while (n > 0) {
        int32_t at = f->path[n - 1], e = f->first[at];
        if (e < 0) {
            f->state[at] = SEARCHED;
            n--;
            continue;
        }
        f->first[at] = f->next[e];
        int32_t called = a->edges[e].rule;
        if (f->state[called] == ON_PATH)
            return true;
        if (f->state[called] == NOT_SEEN) {
            f->state[called] = ON_PATH;
            f->path[n++] = called;
        }
    }
    return false;
}

/* -1: there is none. */
static int32_t find_left_recursion(const automaton *a, first_calls *f, const bool *ends_empty)
{
    memset(f->first, -1, sizeof f->first);
    memset(f->seen, 0, sizeof f->seen);
    memset(f->state, NOT_SEEN, sizeof f->state);
    for (int32_t r = 0; r < a->n_rules; r++)
        find_first_calls(a, f, ends_empty, r);
    for (int32_t r = 0; r < a->n_rules; r++)
        if (begins_with_itself(a, f, r))
            return r;
    return -1;
}

/* ---- Classes of bytes ---- */

static void find_classes(automaton *a)
{
    bool begins[257] = {true};
    for (int32_t n = 0; n < a->n_nodes; n++)
        for (int32_t e = a->first[n]; e >= 0; e = a->edges[e].next)
            if (a->edges[e].kind == EDGE_BYTES)
                begins[a->edges[e].low] = begins[a->edges[e].high + 1] = true;
    a->n_classes = 0;
    for (int i = 0; i < 256; i++) {
        a->n_classes += begins[i];
        a->class_of[i] = (uint8_t)(a->n_classes - 1);
    }
}

/* ---- All of it ---- */

typedef union scratch {
    int32_t class_rule[RULES_MOST_EXPRS];
    struct {
        backwards back;
        first_calls calls;
    } after;
} scratch;

size_t automaton_scratch_bytes(void)
{
    return sizeof(scratch);
}

static drey_status lay_rules(automaton *a, const grammar_rules *g, int32_t *class_rule,
                             drey_error *err)
{
    char name[64];
    builder b = {.a = a, .g = g, .class_rule = class_rule};
    memset(class_rule, -1, RULES_MOST_EXPRS * sizeof *class_rule);
    for (int32_t r = 0; r < g->n_rules; r++)
        new_rule(&b);
    for (int32_t r = 0; r < g->n_rules; r++) {
        if (g->rules[r].body < 0)
            FAIL(err, DREY_ERR_USAGE, "the grammar uses the rule \"%s\", which it does not define",
                 rule_shown(g, r, name));
        lay(&b, g->rules[r].body, a->rules[r].start, a->rules[r].end);
    }
    if (b.full)
        FAIL(err, DREY_ERR_USAGE,
             "the grammar is too large: its automaton may have %d nodes and %d edges; shorten its "
             "lists and repetitions",
             AUTOMATON_MOST_NODES, AUTOMATON_MOST_EDGES);
    return DREY_OK;
}

drey_status automaton_build(automaton *a, const grammar_rules *g, int32_t root, void *memory,
                            drey_error *err)
{
    scratch *s = memory;
    char name[64];
    a->n_nodes = a->n_edges = a->n_rules = a->n_notes = 0;
    a->root = root;
    TRY(grammar_rules_check(g, err));
    TRY(lay_rules(a, g, s->class_rule, err));
    backwards *w = &s->after.back;
    turn_round(a, w);
    find_ends(a, w, true, w->ends);
    if (!w->ends[a->rules[root].start])
        FAIL(err, DREY_ERR_USAGE,
             "no text can satisfy the grammar: from its rule \"%s\" on, none ever ends",
             rule_shown(g, root, name));
    trim(a, w->ends);
    turn_round(a, w);
    find_ends(a, w, false, w->ends_empty);
    int32_t r = find_left_recursion(a, &s->after.calls, w->ends_empty);
    if (r >= 0)
        FAIL(err, DREY_ERR_USAGE,
             "the grammar's rule \"%s\" begins with itself: write the repetition after what it "
             "repeats (left recursion)",
             rule_shown(g, min_i32(r, g->n_rules - 1), name));
    find_classes(a);
    return DREY_OK;
}
