/* Makes the automaton from expressions: see automaton.h. */
#include "grammar/automaton.h"

#include <string.h>

#include "common/num.h"

/* ---- Laying out expressions ---- */

typedef struct builder {
    automaton *a;
    const grammar_rules *g;
    /* [RULES_MOST_EXPRS]: the rule of a class of characters, or of what is repeated; -1: none */
    int32_t *class_rule;
    bool full;
    expr counted[AUTOMATON_MOST_NOTES]; /* counted expressions */
    /* The second round, see lay_some: which nodes are at their rule's end without a byte, and the
     * rule that a rule is without the empty text; -1: none. */
    const bool *ends_empty;
    int32_t *some_rule;                     /* [RULES_MOST_RULES] */
    int32_t some[RULES_MOST_RULES], n_some; /* rules whose some_rule is to be laid out */
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

static int32_t new_note(builder *b, automaton_note note)
{
    automaton *a = b->a;
    if (a->n_notes == AUTOMATON_MOST_NOTES)
        b->full = true;
    if (b->full)
        return 0;
    a->notes[a->n_notes] = note;
    return a->n_notes++;
}

/* A rule with a note. */
static int32_t new_noted(builder *b, automaton_note note)
{
    int32_t rule = new_rule(b), id = new_note(b, note);
    if (b->full)
        return 0;
    b->a->rules[rule].note = id;
    return rule;
}

/* The way to the last characters that were laid out: the next ones share what has the same bytes,
 * so that a text has one place within a character. */
typedef struct last_way {
    uint8_t low[4], high[4];
    int32_t node[4]; /* before each of its bytes */
    size_t n;
} last_way;

/* Characters, all of which have n bytes that differ by whole ranges. */
static void lay_range(builder *b, last_way *way, int32_t to, const uint8_t *low,
                      const uint8_t *high, size_t n)
{
    size_t same = 0;
    while (same + 1 < n && same + 1 < way->n && low[same] == way->low[same] &&
           high[same] == way->high[same])
        same++;
    for (size_t i = same; i < n; i++) {
        int32_t next = i + 1 < n ? new_node(b) : to;
        add_bytes(b, way->node[i], next, low[i], high[i]);
        way->low[i] = low[i];
        way->high[i] = high[i];
        if (i + 1 < n)
            way->node[i + 1] = next;
    }
    way->n = n;
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
static void lay_characters(builder *b, last_way *way, int32_t to, uint32_t low, uint32_t high)
{
    static const uint32_t lengths[] = {0x7F, 0x7FF, 0xFFFF};
    for (int i = 0; i < 3; i++)
        if (low <= lengths[i] && high > lengths[i]) {
            lay_characters(b, way, to, low, lengths[i]);
            lay_characters(b, way, to, lengths[i] + 1, high);
            return;
        }
    for (int bits = 6; bits <= 18 && high > 0x7F; bits += 6) {
        uint32_t rest = (1u << bits) - 1;
        if ((low & ~rest) == (high & ~rest))
            continue;
        if (low & rest) {
            lay_characters(b, way, to, low, low | rest);
            lay_characters(b, way, to, (low | rest) + 1, high);
            return;
        }
        if ((high & rest) != rest) {
            lay_characters(b, way, to, low, (high & ~rest) - 1);
            lay_characters(b, way, to, high & ~rest, high);
            return;
        }
    }
    uint8_t first[4], last[4];
    size_t n = utf8_bytes(low, first);
    utf8_bytes(high, last);
    lay_range(b, way, to, first, last, n);
}

static void lay_ranges(builder *b, const expr_node *e, int32_t from, int32_t to)
{
    last_way way = {.node = {from}};
    for (int32_t i = 0; i < e->b; i++)
        lay_characters(b, &way, to, b->g->ranges[e->a + i].from, b->g->ranges[e->a + i].to);
}

static int32_t rule_of_class(builder *b, expr e)
{
    int32_t *rule = &b->class_rule[e];
    if (*rule < 0) {
        *rule = new_rule(b);
        if (!b->full)
            lay_ranges(b, &b->g->exprs[e], b->a->rules[*rule].start, b->a->rules[*rule].end);
    }
    return *rule;
}

/* Classes of more than ASCII have many nodes: they are a rule, which all their uses share. */
static void lay_class(builder *b, expr e, int32_t from, int32_t to)
{
    const expr_node *node = &b->g->exprs[e];
    if (b->g->ranges[node->a + node->b - 1].to < 0x80) {
        lay_ranges(b, node, from, to);
        return;
    }
    add_edge(b, from, (automaton_edge){.to = to, .kind = EDGE_RULE, .rule = rule_of_class(b, e)});
}

static void lay(builder *b, expr e, int32_t from, int32_t to);

/* Nodes of the expression, roughly; more than `most` are not counted. */
static int32_t size_of(const builder *b, expr e, int32_t most)
{
    int32_t n = 0;
    for (;;) {
        const expr_node *node = &b->g->exprs[e];
        n++;
        if (n > most)
            return n;
        switch (node->kind) {
        case EXPR_IS_BYTES:
            return n + node->b;
        case EXPR_IS_EACH:
            return n + 2 * b->g->sets[node->a].n;
        case EXPR_IS_REPEAT: {
            int32_t times = node->most == REPEAT_FOREVER ? node->least : node->most;
            return times > most ? n + most : n + max_i32(times, 1) * size_of(b, node->a, most);
        }
        case EXPR_IS_SEQ:
        case EXPR_IS_ALT:
            n += size_of(b, node->b, most - n);
            e = node->a;
            break;
        default:
            return n;
        }
    }
}

/* Returns whether so many copies would be long. */
static bool is_counted(const builder *b, expr e, int32_t times)
{
    enum { MOST_COPIED = 256 }; /* nodes */
    return times > 1 && b->a->n_notes < AUTOMATON_MOST_NOTES &&
           (times > MOST_COPIED || times * size_of(b, e, MOST_COPIED) > MOST_COPIED);
}

static int32_t rule_repeated(builder *b, expr e)
{
    if (b->g->exprs[e].kind == EXPR_IS_RULE)
        return b->g->exprs[e].a;
    if (b->g->exprs[e].kind == EXPR_IS_CLASS)
        return rule_of_class(b, e);
    int32_t *rule = &b->class_rule[e];
    if (*rule < 0) {
        *rule = new_rule(b);
        if (!b->full)
            lay(b, e, b->a->rules[*rule].start, b->a->rules[*rule].end);
    }
    return *rule;
}

static void lay_times(builder *b, const expr_node *e, int32_t from, int32_t to)
{
    automaton_note note = {.kind = NOTE_TIMES, .least = e->least, .most = e->most, .to = to};
    note.rule = rule_repeated(b, e->a);
    const int32_t id = new_note(b, note);
    b->counted[id] = e->a;
    add_edge(b, from, (automaton_edge){.to = to, .kind = EDGE_COUNT, .rule = id});
}

static void lay_repeat(builder *b, const expr_node *e, int32_t from, int32_t to)
{
    int32_t at = from;
    if (e->most != REPEAT_FOREVER && is_counted(b, e->a, e->most)) {
        lay_times(b, e, from, to);
        return;
    }
    if (e->most == REPEAT_FOREVER && is_counted(b, e->a, e->least)) {
        const expr_node first = {.a = e->a, .least = e->least, .most = e->least};
        const expr_node more = {.a = e->a, .least = 0, .most = REPEAT_FOREVER};
        at = new_node(b);
        lay_times(b, &first, from, at);
        lay_repeat(b, &more, at, to);
        return;
    }
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

/* Rules for the members of a set: the rules of its members, and that of others. */
typedef struct member_rules {
    int32_t rules[EACH_MOST + 1], n;
    uint64_t required;
    bool some; /* one has to come */
} member_rules;

/* Adds the edges for what must come at least, in a row: from the node that is returned. */
static int32_t lay_shadow(builder *b, const member_rules *m, int32_t end)
{
    const int32_t first = new_node(b);
    int32_t at = first;
    for (int32_t i = 0; i < m->n && !b->full; i++) {
        if (i == EACH_MOST || !(m->required >> i & 1))
            continue;
        int32_t next = new_node(b);
        add_edge(b, at, (automaton_edge){.to = next, .kind = EDGE_RULE, .rule = m->rules[i]});
        at = next;
    }
    add_nothing(b, at, end);
    return first;
}

/* One member at least, then the shadow. */
static int32_t lay_one(builder *b, const member_rules *m, int32_t shadow)
{
    const int32_t first = new_node(b);
    for (int32_t i = 0; i < m->n; i++)
        add_edge(b, first, (automaton_edge){.to = shadow, .kind = EDGE_RULE, .rule = m->rules[i]});
    return first;
}

/* hubs: at the beginning, after a member, after a separator.
 *
 *     hub 0 ==member==> hub 1 --more--> . ==separator==> hub 2 ==member==> hub 1
 *       +-----leave----> end <--leave--+ */
static void lay_members(builder *b, const each_set *set, const member_rules *m, int32_t from,
                        int32_t to)
{
    automaton_note note = {.kind = NOTE_MEMBERS, .required = m->required, .others = m->n > set->n};
    for (int32_t i = 0; i < set->n; i++)
        note.all |= UINT64_C(1) << i;
    int32_t hubs[3] = {0, new_node(b), new_node(b)}, between = new_node(b);
    note.hub = hubs[1];
    int32_t rule = new_noted(b, note);
    if (b->full)
        return;
    const automaton_rule ends = b->a->rules[rule];
    hubs[0] = ends.start;
    for (int32_t i = 0; i < m->n; i++)
        for (int k = 0; k < 3; k += 2)
            add_edge(b, hubs[k],
                     (automaton_edge){.to = hubs[1],
                                      .kind = EDGE_MEMBER,
                                      .rule = m->rules[i],
                                      .low = (uint8_t)(i < set->n ? i : EACH_MOST)});
    add_edge(b, hubs[1], (automaton_edge){.to = between, .kind = EDGE_MORE});
    lay(b, set->separator, between, hubs[2]);
    const int32_t shadow = lay_shadow(b, m, ends.end);
    for (int k = 0; k < 3; k++)
        add_edge(b, hubs[k],
                 (automaton_edge){.to = k == 0 && m->some ? lay_one(b, m, shadow) : shadow,
                                  .kind = EDGE_SHADOW});
    for (int k = m->some; k < 2; k++)
        add_edge(b, hubs[k], (automaton_edge){.to = ends.end, .kind = EDGE_LEAVE});
    add_edge(b, from, (automaton_edge){.to = to, .kind = EDGE_RULE, .rule = rule});
}

static void lay_each(builder *b, const each_set *set, int32_t from, int32_t to)
{
    member_rules m = {.n = set->n, .required = set->required};
    for (int32_t i = 0; i < set->n; i++)
        m.rules[i] = rule_repeated(b, b->g->items[set->first + i]);
    if (set->other != EXPR_NEVER)
        m.rules[m.n++] = rule_repeated(b, set->other);
    lay_members(b, set, &m, from, to);
}

static void lay_ticking(builder *b, const expr_node *e, int32_t from, int32_t to)
{
    const automaton_note note = {.kind = NOTE_TICKS, .least = e->least, .most = e->most};
    int32_t rule = new_noted(b, note);
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
            lay_ticking(b, node, from, to);
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
    int32_t rule_of[AUTOMATON_MOST_NODES]; /* rule that begins at the node; -1: none */
    int32_t queue[AUTOMATON_MOST_NODES];
    bool ends[AUTOMATON_MOST_NODES], ends_empty[AUTOMATON_MOST_NODES];
} backwards;

/* -1: none. Members of a set are left to its shadow. */
static int32_t rule_called(const automaton *a, const automaton_edge *edge)
{
    return edge->kind == EDGE_RULE    ? edge->rule
           : edge->kind == EDGE_COUNT ? a->notes[edge->rule].rule
                                      : -1;
}

/* A set is left where its shadow says that it can be. */
static bool may_skip(const automaton *a, const automaton_edge *edge)
{
    return edge->kind == EDGE_NOTHING || edge->kind == EDGE_MORE || edge->kind == EDGE_SHADOW ||
           edge->kind == EDGE_TICK || (edge->kind == EDGE_COUNT && a->notes[edge->rule].least == 0);
}

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
            int32_t called = rule_called(a, edge);
            if (called >= 0) {
                w->next_call[e] = w->first_call[called];
                w->first_call[called] = e;
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
            const int32_t called = rule_called(a, edge);
            bool can = may_skip(a, edge) || (edge->kind == EDGE_BYTES && by_bytes) ||
                       (called >= 0 && ends[a->rules[called].start]);
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

/* The same, of members as well. */
static int32_t rule_entered(const automaton *a, const automaton_edge *edge)
{
    return edge->kind == EDGE_MEMBER ? edge->rule : rule_called(a, edge);
}

/* A member that never ends is none. */
static void forget_member(automaton *a, const automaton_edge *edge)
{
    for (int32_t i = 0; i < a->n_notes; i++)
        if (a->notes[i].kind == NOTE_MEMBERS && a->notes[i].hub == edge->to) {
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
            automaton_edge *edge = &a->edges[*link];
            const int32_t called = rule_entered(a, edge);
            bool stays = called < 0 || ends[a->rules[called].start];
            if (!stays && edge->kind == EDGE_MEMBER)
                forget_member(a, edge);
            if (!stays && may_skip(a, edge)) {
                edge->kind = EDGE_NOTHING; /* none times */
                stays = true;
            }
            if (stays && ends[edge->to])
                link = &a->edges[*link].next;
            else
                *link = edge->next;
        }
}

/* ---- Rules that begin with themselves ---- */

typedef struct first_calls { /* rules with which each rule may begin */
    int32_t next[AUTOMATON_MOST_EDGES], first[AUTOMATON_MOST_RULES]; /* edges that call them */
    int32_t queue[AUTOMATON_MOST_NODES];
    bool seen[AUTOMATON_MOST_NODES];
    int32_t path[AUTOMATON_MOST_RULES]; /* path of a search */
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
            const int32_t called = rule_entered(a, edge);
            if (called >= 0) {
                f->next[e] = f->first[rule];
                f->first[rule] = e;
            }
            if (may_skip(a, edge) || (called >= 0 && ends_empty[a->rules[called].start]))
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
        int32_t called = rule_entered(a, &a->edges[e]);
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

/* ---- Repetitions of what may be empty ---- */

/* Returns whether an expression may be empty. An empty repetition cannot be counted: where what is
 * repeated may be empty, its other texts are repeated, and as seldom as one likes. These are
 * another rule, laid out from the expression once it is known which rules may be empty. */
static bool may_be_empty(const builder *b, expr e);

static bool set_may_be_empty(const builder *b, const each_set *set)
{
    bool empty = true;
    for (int32_t i = 0; i < set->n && empty; i++)
        empty = !(set->required >> i & 1) || may_be_empty(b, b->g->items[set->first + i]);
    return empty;
}

static bool may_be_empty(const builder *b, expr e)
{
    const expr_node *node = &b->g->exprs[e];
    switch (node->kind) {
    case EXPR_IS_EMPTY:
        return true;
    case EXPR_IS_COUNTED:
        return node->least == 0;
    case EXPR_IS_EACH:
        return set_may_be_empty(b, &b->g->sets[node->a]);
    case EXPR_IS_REPEAT:
        return node->least == 0 || may_be_empty(b, node->a);
    case EXPR_IS_RULE:
        return b->ends_empty[b->a->rules[node->a].start];
    case EXPR_IS_SEQ:
        return may_be_empty(b, node->b) && may_be_empty(b, node->a);
    case EXPR_IS_ALT:
        return may_be_empty(b, node->b) || may_be_empty(b, node->a);
    default:
        return false;
    }
}

static void lay_some(builder *b, expr e, int32_t from, int32_t to);

static int32_t some_of_rule(builder *b, int32_t rule)
{
    int32_t *some = &b->some_rule[rule];
    if (*some < 0) {
        *some = new_rule(b);
        b->some[b->n_some++] = rule;
    }
    return *some;
}

/* Makes optional whatever must come and may be empty. */
static int32_t rule_of_some(builder *b, expr item)
{
    if (!may_be_empty(b, item))
        return rule_repeated(b, item);
    if (b->g->exprs[item].kind == EXPR_IS_RULE)
        return some_of_rule(b, b->g->exprs[item].a);
    int32_t rule = new_rule(b);
    if (!b->full)
        lay_some(b, item, b->a->rules[rule].start, b->a->rules[rule].end);
    return rule;
}

static void lay_some_each(builder *b, const each_set *set, int32_t from, int32_t to)
{
    member_rules m = {.n = set->n, .required = set->required, .some = true};
    for (int32_t i = 0; i < set->n; i++) {
        const expr item = b->g->items[set->first + i];
        if (may_be_empty(b, item))
            m.required &= ~(UINT64_C(1) << i);
        m.rules[i] = rule_of_some(b, item);
    }
    if (set->other != EXPR_NEVER)
        m.rules[m.n++] = rule_of_some(b, set->other);
    lay_members(b, set, &m, from, to);
}

static void lay_some_repeated(builder *b, const expr_node *e, int32_t from, int32_t to)
{
    const bool empty = may_be_empty(b, e->a);
    const int32_t most = e->most == REPEAT_FOREVER ? REPEAT_FOREVER : e->most - 1;
    if (e->most == 0)
        return;
    int32_t next = most == 0 ? to : new_node(b);
    if (empty)
        lay_some(b, e->a, from, next);
    else
        lay(b, e->a, from, next);
    if (most == 0)
        return;
    const expr_node rest = {.a = e->a, .least = empty ? 0 : max_i32(e->least - 1, 0), .most = most};
    lay_repeat(b, &rest, next, to);
}

/* The same texts as lay(), but not the empty one. */
static void lay_some(builder *b, expr e, int32_t from, int32_t to)
{
    while (!b->full) {
        const expr_node *node = &b->g->exprs[e];
        if (!may_be_empty(b, e)) {
            lay(b, e, from, to);
            return;
        }
        int32_t between;
        switch (node->kind) {
        case EXPR_IS_REPEAT:
            lay_some_repeated(b, node, from, to);
            return;
        case EXPR_IS_EACH:
            lay_some_each(b, &b->g->sets[node->a], from, to);
            return;
        case EXPR_IS_COUNTED:
            if (node->most != 0)
                lay_ticking(b,
                            &(expr_node){
                                .a = node->a, .least = max_i32(node->least, 1), .most = node->most},
                            from, to);
            return;
        case EXPR_IS_RULE:
            add_edge(
                b, from,
                (automaton_edge){.to = to, .kind = EDGE_RULE, .rule = some_of_rule(b, node->a)});
            return;
        case EXPR_IS_SEQ: /* both may be empty */
            lay_some(b, node->b, from, to);
            between = new_node(b);
            lay(b, node->b, between, to);
            to = between;
            break;
        case EXPR_IS_ALT:
            lay_some(b, node->b, from, to);
            break;
        default: /* empty */
            return;
        }
        e = node->a;
    }
}

/* Counts that are added here are looked at as well. */
static void count_what_is_written(builder *b, const backwards *w)
{
    automaton *a = b->a;
    b->ends_empty = w->ends_empty;
    memset(b->some_rule, -1, RULES_MOST_RULES * sizeof *b->some_rule);
    for (int32_t i = 0; i < a->n_notes && !b->full; i++) {
        if (a->notes[i].kind != NOTE_TIMES || !may_be_empty(b, b->counted[i]))
            continue;
        int32_t rule = new_rule(b);
        a->notes[i].rule = rule;
        a->notes[i].least = 0;
        lay_some(b, b->counted[i], a->rules[rule].start, a->rules[rule].end);
        while (b->n_some > 0 && !b->full) {
            int32_t of = b->some[--b->n_some];
            rule = b->some_rule[of];
            lay_some(b, b->g->rules[of].body, a->rules[rule].start, a->rules[rule].end);
        }
    }
}

/* ---- All of it ---- */

typedef struct scratch {
    builder builder;
    int32_t class_rule[RULES_MOST_EXPRS], some_rule[RULES_MOST_RULES];
    backwards back;
    first_calls calls;
} scratch;

size_t automaton_scratch_bytes(void)
{
    return sizeof(scratch);
}

static drey_status lay_rules(builder *b, drey_error *err)
{
    const grammar_rules *g = b->g;
    char name[64];
    memset(b->class_rule, -1, RULES_MOST_EXPRS * sizeof *b->class_rule);
    for (int32_t r = 0; r < g->n_rules; r++)
        new_rule(b);
    for (int32_t r = 0; r < g->n_rules; r++) {
        if (g->rules[r].body < 0)
            FAIL(err, DREY_ERR_USAGE, "the grammar uses the rule \"%s\", which it does not define",
                 rule_shown(g, r, name));
        lay(b, g->rules[r].body, b->a->rules[r].start, b->a->rules[r].end);
    }
    return DREY_OK;
}

static drey_status lay_all(automaton *a, const grammar_rules *g, scratch *s, drey_error *err)
{
    builder *b = &s->builder;
    memset(b, 0, sizeof *b);
    b->a = a;
    b->g = g;
    b->class_rule = s->class_rule;
    b->some_rule = s->some_rule;
    TRY(lay_rules(b, err));
    if (a->n_notes > 0 && !b->full) {
        turn_round(a, &s->back);
        find_ends(a, &s->back, false, s->back.ends_empty);
        count_what_is_written(b, &s->back);
    }
    if (b->full)
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
    TRY(lay_all(a, g, s, err));
    backwards *w = &s->back;
    turn_round(a, w);
    find_ends(a, w, true, w->ends);
    if (!w->ends[a->rules[root].start])
        FAIL(err, DREY_ERR_USAGE,
             "no text can satisfy the grammar: from its rule \"%s\" on, none ever ends",
             rule_shown(g, root, name));
    trim(a, w->ends);
    turn_round(a, w);
    find_ends(a, w, false, w->ends_empty);
    int32_t r = find_left_recursion(a, &s->calls, w->ends_empty);
    if (r >= 0)
        FAIL(err, DREY_ERR_USAGE,
             "the grammar's rule \"%s\" begins with itself: write the repetition after what it "
             "repeats (left recursion)",
             rule_shown(g, min_i32(r, g->n_rules - 1), name));
    find_classes(a);
    return DREY_OK;
}
