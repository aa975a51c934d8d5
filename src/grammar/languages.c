/* Automata over characters: see languages.h. */
#include "grammar/languages.h"

#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "common/utf8.h"
#include "grammar/readers.h"

enum { LAST_CHARACTER = 0x10FFFF };

static int16_t *row(language *l, int32_t state)
{
    return l->to + (size_t)state * (size_t)l->n_classes;
}

static const int16_t *row_of(const language *l, int32_t state)
{
    return l->to + (size_t)state * (size_t)l->n_classes;
}

/* -1: there is no room. */
static int32_t add_state(language *l, bool ends)
{
    int32_t id = l->n_states;
    if (id == LANGUAGE_MOST_STATES || (id + 1) * l->n_classes > LANGUAGE_MOST_CELLS)
        return -1;
    l->n_states++;
    l->ends[id] = ends;
    memset(row(l, id), 0, (size_t)l->n_classes * sizeof *l->to);
    return id;
}

static void begin(language *l, int32_t n_classes)
{
    l->n_states = 0;
    l->n_classes = n_classes;
    l->first[n_classes] = LAST_CHARACTER + 1;
    add_state(l, false);
}

static int32_t class_of(const language *l, uint32_t c)
{
    int32_t low = 0, high = l->n_classes - 1;
    while (low < high) {
        int32_t middle = (low + high + 1) / 2;
        if (l->first[middle] <= c)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The classes that begin at these characters; 0 is there without being said. They are sorted
 * here. */
static bool set_classes(language *l, uint32_t *begins, int32_t n)
{
    int32_t n_classes = 1;
    l->first[0] = 0;
    for (int32_t i = 1; i < n; i++) { /* few, and nearly sorted */
        uint32_t x = begins[i];
        int32_t at = i;
        for (; at > 0 && begins[at - 1] > x; at--)
            begins[at] = begins[at - 1];
        begins[at] = x;
    }
    for (int32_t i = 0; i < n; i++) {
        if (begins[i] == l->first[n_classes - 1] || begins[i] > LAST_CHARACTER)
            continue;
        if (n_classes == LANGUAGE_MOST_CLASSES)
            return false;
        l->first[n_classes++] = begins[i];
    }
    begin(l, n_classes);
    return true;
}

/* Blocks of states that nothing distinguishes so far. */
enum { MOST_MERGED = 2000, MERGE_BUCKETS = 1 << 10 };
typedef struct merger {
    int16_t block[MOST_MERGED], next[MOST_MERGED], like[MOST_MERGED];
    int16_t buckets[MERGE_BUCKETS];
} merger;

static bool are_alike(const merger *m, const language *l, int32_t a, int32_t b)
{
    bool alike = m->block[a] == m->block[b];
    for (int32_t k = 0; k < l->n_classes && alike; k++)
        alike = m->block[row_of(l, a)[k]] == m->block[row_of(l, b)[k]];
    return alike;
}

/* Divides blocks by where their states lead: next[s] becomes the new block of s, which has the
 * number of its first state. Returns how many there are. */
static int32_t divide(merger *m, const language *l)
{
    int32_t n = 0;
    memset(m->buckets, -1, sizeof m->buckets);
    for (int32_t s = 0; s < l->n_states; s++) {
        uint32_t hash = (uint32_t)m->block[s];
        for (int32_t k = 0; k < l->n_classes; k++) {
            const int32_t to = m->block[row_of(l, s)[k]];
            hash = (hash ^ (uint32_t)to) * 16777619u;
        }
        int16_t *bucket = &m->buckets[(hash ^ hash >> 16) % (uint32_t)MERGE_BUCKETS];
        int16_t first = *bucket;
        while (first >= 0 && !are_alike(m, l, s, first))
            first = m->like[first];
        if (first < 0) {
            first = (int16_t)s;
            m->like[s] = *bucket;
            *bucket = first;
            n++;
        }
        m->next[s] = first;
    }
    memcpy(m->block, m->next, (size_t)l->n_states * sizeof *m->block);
    return n;
}

/* States after which the same texts follow become one. Large languages stay as they are. */
static void merge(language *l)
{
    merger m;
    int16_t id[MOST_MERGED];
    int32_t n = 0, n_before = 0;
    if (l->n_states > MOST_MERGED || language_is_empty(l))
        return;
    for (int32_t s = 0; s < l->n_states; s++)
        m.block[s] = l->ends[s];
    for (int32_t now; (now = divide(&m, l)) != n_before;)
        n_before = now;
    for (int32_t s = 0; s < l->n_states; s++) /* the first of a block stands for it */
        id[s] = m.block[s] == s ? (int16_t)n++ : id[m.block[s]];
    for (int32_t s = 0; s < l->n_states; s++) {
        if (m.block[s] != s)
            continue;
        for (int32_t k = 0; k < l->n_classes; k++)
            row(l, id[s])[k] = id[row(l, s)[k]];
        l->ends[id[s]] = l->ends[s];
    }
    l->n_states = n;
}

/* States from which no text ends lead nowhere, so that they are left out. */
static void trim(language *l)
{
    bool lives[LANGUAGE_MOST_STATES];
    memcpy(lives, l->ends, sizeof lives);
    for (bool more = true; more;) {
        more = false;
        for (int32_t s = l->n_states - 1; s > 0; s--)
            for (int32_t k = 0; k < l->n_classes && !lives[s]; k++)
                lives[s] = more = lives[row(l, s)[k]];
    }
    for (int32_t i = 0; i < l->n_states * l->n_classes; i++)
        if (!lives[l->to[i]])
            l->to[i] = 0;
    merge(l);
}

/* ---- Of an expression: its nodes, then sets of these ---- */

enum { MOST_NODES = 8 << 10, MOST_EDGES = 16 << 10, MOST_SETS = 96 << 10, MOST_BEGINS = 1 << 10 };
enum { BUCKETS = 4 << 10 };

typedef struct node_edge {
    int32_t next, to;
    uint32_t low, high; /* low more than high: it takes nothing */
} node_edge;

typedef struct maker {
    const grammar_rules *g;
    node_edge edges[MOST_EDGES];
    int32_t first[MOST_NODES], n_nodes, n_edges;
    bool full;
    uint32_t begins[MOST_BEGINS];
    int32_t n_begins;
    /* States are sets of nodes: sets[at[s] .. at[s + 1]). */
    int32_t sets[MOST_SETS], at[LANGUAGE_MOST_STATES + 1];
    int32_t next[LANGUAGE_MOST_STATES], buckets[BUCKETS];
    int32_t marks[MOST_NODES], mark;
    bool shortest; /* nothing follows what matches */
} maker;

static int32_t new_node(maker *m)
{
    if (m->n_nodes == MOST_NODES) {
        m->full = true;
        return 0;
    }
    m->first[m->n_nodes] = -1;
    return m->n_nodes++;
}

static void add_edge(maker *m, int32_t from, int32_t to, uint32_t low, uint32_t high)
{
    m->full = m->full || m->n_edges == MOST_EDGES;
    if (m->full)
        return;
    m->edges[m->n_edges] = (node_edge){m->first[from], to, low, high};
    m->first[from] = m->n_edges++;
}

static void add_begin(maker *m, uint32_t c)
{
    for (int32_t i = 0; i < m->n_begins; i++)
        if (m->begins[i] == c)
            return;
    m->full = m->full || m->n_begins == MOST_BEGINS;
    if (!m->full)
        m->begins[m->n_begins++] = c;
}

static void add_range(maker *m, int32_t from, int32_t to, uint32_t low, uint32_t high)
{
    add_edge(m, from, to, low, high);
    add_begin(m, low);
    add_begin(m, high + 1);
}

static void lay(maker *m, expr e, int32_t from, int32_t to);

static void lay_text(maker *m, const uint8_t *p, int32_t n, int32_t from, int32_t to)
{
    for (int length; n > 0 && !m->full; p += length, n -= length) {
        length = utf8_length(p, (size_t)n);
        if (length <= 0) {
            m->full = true; /* texts are UTF-8 */
            return;
        }
        uint32_t c = utf8_code_point(p, length);
        int32_t next = length == n ? to : new_node(m);
        add_range(m, from, next, c, c);
        from = next;
    }
}

static void lay_repeat(maker *m, const expr_node *e, int32_t from, int32_t to)
{
    int32_t n = e->most == REPEAT_FOREVER ? e->least : e->most;
    for (int32_t i = 0; i < n && !m->full; i++) {
        int32_t next = new_node(m);
        if (i >= e->least)
            add_edge(m, from, to, 1, 0);
        lay(m, e->a, from, next);
        from = next;
    }
    if (e->most == REPEAT_FOREVER) {
        int32_t loop = new_node(m);
        add_edge(m, from, loop, 1, 0);
        lay(m, e->a, loop, loop);
        from = loop;
    }
    add_edge(m, from, to, 1, 0);
}

static void lay(maker *m, expr e, int32_t from, int32_t to)
{
    while (!m->full) {
        const expr_node *node = &m->g->exprs[e];
        int32_t between;
        switch (node->kind) {
        case EXPR_IS_EMPTY:
            add_edge(m, from, to, 1, 0);
            return;
        case EXPR_IS_NEVER:
            return;
        case EXPR_IS_BYTES:
            lay_text(m, m->g->bytes + node->a, node->b, from, to);
            return;
        case EXPR_IS_CLASS:
            for (int32_t i = 0; i < node->b; i++)
                add_range(m, from, to, m->g->ranges[node->a + i].from,
                          m->g->ranges[node->a + i].to);
            return;
        case EXPR_IS_REPEAT:
            lay_repeat(m, node, from, to);
            return;
        case EXPR_IS_RULE: /* it may be recursive */
        case EXPR_IS_EACH:
        case EXPR_IS_COUNTED:
        case EXPR_IS_TICK:
            m->full = true;
            return;
        case EXPR_IS_SEQ:
            between = new_node(m);
            lay(m, node->b, between, to);
            to = between;
            break;
        case EXPR_IS_ALT:
            lay(m, node->b, from, to);
            break;
        }
        e = node->a;
    }
}

/* Adds a node and what can be reached from it without a character to the set that begins at
 * sets[from]. */
static void put_node(maker *m, int32_t node, int32_t from, int32_t *n)
{
    int32_t at = *n;
    if (m->marks[node] == m->mark)
        return;
    m->marks[node] = m->mark;
    if (from + *n >= MOST_SETS) {
        m->full = true;
        return;
    }
    m->sets[from + (*n)++] = node;
    for (; at < *n && !m->full; at++)
        for (int32_t e = m->first[m->sets[from + at]]; e >= 0; e = m->edges[e].next) {
            const node_edge *edge = &m->edges[e];
            if (edge->low <= edge->high || m->marks[edge->to] == m->mark)
                continue;
            m->marks[edge->to] = m->mark;
            m->full = m->full || from + *n >= MOST_SETS;
            if (!m->full)
                m->sets[from + (*n)++] = edge->to;
        }
}

static int compare_nodes(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* The state of the n nodes that are where the next set will be; a new one if there is none. */
static int32_t state_of(maker *m, language *l, int32_t n, int32_t end)
{
    int32_t *set = m->sets + m->at[l->n_states];
    if (n == 0)
        return 0;
    qsort(set, (size_t)n, sizeof *set, compare_nodes);
    uint32_t hash = 2166136261u;
    bool ends = false;
    for (int32_t i = 0; i < n; i++) {
        hash = (hash ^ (uint32_t)set[i]) * 16777619u;
        ends = ends || set[i] == end;
    }
    int32_t *bucket = &m->buckets[hash % BUCKETS];
    for (int32_t s = *bucket; s >= 0; s = m->next[s])
        if (m->at[s + 1] - m->at[s] == n &&
            memcmp(m->sets + m->at[s], set, (size_t)n * sizeof *set) == 0)
            return s;
    int32_t id = add_state(l, ends);
    m->full = m->full || id < 0;
    if (m->full)
        return 0;
    m->at[id + 1] = m->at[id] + n;
    m->next[id] = *bucket;
    *bucket = id;
    return id;
}

static void find_states(maker *m, language *l, int32_t start, int32_t end)
{
    int32_t n = 0;
    memset(m->buckets, -1, sizeof m->buckets);
    m->at[0] = m->at[1] = 0;
    m->mark = 1;
    put_node(m, start, 0, &n);
    state_of(m, l, n, end);
    for (int32_t s = 1; s < l->n_states; s++)
        for (int32_t k = 0; k < l->n_classes && !m->full && !(m->shortest && l->ends[s]); k++) {
            uint32_t c = l->first[k];
            n = 0;
            m->mark++;
            for (int32_t i = m->at[s]; i < m->at[s + 1]; i++)
                for (int32_t e = m->first[m->sets[i]]; e >= 0; e = m->edges[e].next)
                    if (m->edges[e].low <= c && c <= m->edges[e].high)
                        put_node(m, m->edges[e].to, m->at[l->n_states], &n);
            int32_t to = m->full ? 0 : state_of(m, l, n, end);
            row(l, s)[k] = (int16_t)to;
        }
}

static bool make(language *out, const grammar_rules *g, expr e, bool shortest)
{
    maker *m = calloc(1, sizeof *m);
    if (!m || g->full) {
        free(m);
        return false;
    }
    m->g = g;
    m->shortest = shortest;
    int32_t start = new_node(m), end = new_node(m);
    lay(m, e, start, end);
    bool fits = !m->full && set_classes(out, m->begins, m->n_begins);
    if (fits)
        find_states(m, out, start, end);
    fits = fits && !m->full;
    free(m);
    if (fits)
        trim(out);
    return fits;
}

bool language_of(language *out, const grammar_rules *g, expr e)
{
    return make(out, g, e, false);
}

/* What matches becomes nowhere, and what can match no more one further state. */
bool language_unlike(language *out, const grammar_rules *g, expr e)
{
    if (!make(out, g, e, true))
        return false;
    int32_t any = add_state(out, true);
    for (int32_t s = 1; s < out->n_states; s++)
        for (int32_t k = 0; k < out->n_classes && any >= 0; k++) {
            int16_t *to = &row(out, s)[k];
            *to = (int16_t)(*to == 0 ? any : out->ends[*to] && *to != any ? 0 : *to);
        }
    for (int32_t s = 1; s < out->n_states; s++)
        out->ends[s] = true;
    return any >= 0;
}

/* ---- Of two languages ---- */

typedef struct pairs {
    int32_t a[LANGUAGE_MOST_STATES], b[LANGUAGE_MOST_STATES], next[LANGUAGE_MOST_STATES];
    int32_t buckets[BUCKETS];
} pairs;

/* -1: there is no room. */
static int32_t state_of_pair(pairs *p, language *l, int32_t a, int32_t b, bool ends)
{
    int32_t *bucket = &p->buckets[((uint32_t)a * 2654435761u + (uint32_t)b) % BUCKETS];
    for (int32_t s = *bucket; s >= 0; s = p->next[s])
        if (p->a[s] == a && p->b[s] == b)
            return s;
    int32_t id = add_state(l, ends);
    if (id < 0)
        return -1;
    p->a[id] = a;
    p->b[id] = b;
    p->next[id] = *bucket;
    *bucket = id;
    return id;
}

static bool find_pairs(pairs *p, language *l, const language *a, const language *b, bool but_not)
{
    memset(p->buckets, -1, sizeof p->buckets);
    if (state_of_pair(p, l, 1, 1, a->ends[1] && b->ends[1] != but_not) < 0)
        return false;
    for (int32_t s = 1; s < l->n_states; s++)
        for (int32_t k = 0; k < l->n_classes; k++) {
            int32_t x = row_of(a, p->a[s])[class_of(a, l->first[k])];
            int32_t y = row_of(b, p->b[s])[class_of(b, l->first[k])];
            int32_t to = x == 0 || (y == 0 && !but_not)
                             ? 0
                             : state_of_pair(p, l, x, y, a->ends[x] && b->ends[y] != but_not);
            if (to < 0)
                return false;
            row(l, s)[k] = (int16_t)to;
        }
    return true;
}

bool language_both(language *out, const language *a, const language *b, bool but_not)
{
    uint32_t begins[2 * LANGUAGE_MOST_CLASSES];
    memcpy(begins, a->first, (size_t)a->n_classes * sizeof *begins);
    memcpy(begins + a->n_classes, b->first, (size_t)b->n_classes * sizeof *begins);
    pairs *p = malloc(sizeof *p);
    bool fits = p && set_classes(out, begins, a->n_classes + b->n_classes) &&
                find_pairs(p, out, a, b, but_not);
    free(p);
    if (fits)
        trim(out);
    return fits;
}

/* ---- Of lengths and multiples ---- */

bool language_of_length(language *out, int32_t least, int32_t most)
{
    int32_t n = most == REPEAT_FOREVER ? least : most;
    if (!set_classes(out, NULL, 0) || n > LANGUAGE_MOST_STATES)
        return false;
    for (int32_t i = 0; i <= n; i++) {
        int32_t s = add_state(out, i >= least);
        if (s < 0)
            return false;
        out->to[s] = (int16_t)(i < n ? s + 1 : most == REPEAT_FOREVER ? s : 0);
    }
    return true;
}

/* The states before and after a sign, and of what is left when the digits so far, as a whole
 * number, are divided by step: `left` of numbers without a point, [1 + i] after i digits of the
 * fraction. */
typedef struct multiple {
    int32_t step, digits;
} multiple;

static int32_t left_state(multiple m, int32_t point, int32_t left)
{
    enum { FIRST = 4 }; /* nowhere, the beginning, after "-", after a "0" alone */
    return FIRST + point * m.step + left;
}

static bool is_multiple(multiple m, int32_t point, int32_t left)
{
    int64_t x = left;
    for (int32_t i = point > 0 ? point - 1 : 0; i < m.digits; i++)
        x = x * 10 % m.step;
    return x == 0 && point != 1; /* a point needs digits */
}

bool language_of_multiples(language *out, int32_t step, int32_t digits)
{
    enum { NOWHERE, BEGIN, SIGN, ZERO };
    multiple m = {step, digits};
    uint32_t begins[16] = {'-', '-' + 1, '.', '.' + 1};
    for (int i = 0; i <= 10; i++)
        begins[4 + i] = '0' + (uint32_t)i;
    int32_t n_points = digits > 0 ? digits + 2 : 1;
    if (!set_classes(out, begins, 15) || step > LANGUAGE_MOST_STATES / n_points)
        return false;
    const int32_t minus = class_of(out, '-'), point = class_of(out, '.'), zero = class_of(out, '0');
    for (int32_t s = BEGIN; s < left_state(m, n_points, 0); s++) {
        int32_t at = s - left_state(m, 0, 0);
        if (add_state(out, s == ZERO || (at >= 0 && is_multiple(m, at / step, at % step))) < 0)
            return false;
    }
    row(out, BEGIN)[minus] = SIGN;
    for (int32_t d = 0; d < 10; d++)
        for (int32_t s = BEGIN; s <= SIGN; s++)
            row(out, s)[zero + d] = (int16_t)(d ? left_state(m, 0, d % step) : ZERO);
    if (digits > 0)
        row(out, ZERO)[point] = (int16_t)left_state(m, 1, 0);
    for (int32_t p = 0; p < n_points; p++)
        for (int32_t left = 0; left < step; left++) {
            int16_t *to = row(out, left_state(m, p, left));
            if (p == 0 && digits > 0)
                to[point] = (int16_t)left_state(m, 1, left);
            for (int32_t d = 0; d < 10 && p <= digits; d++)
                to[zero + d] = (int16_t)left_state(m, p ? p + 1 : 0, (left * 10 + d) % step);
        }
    trim(out);
    return true;
}

/* ---- Questions ---- */

bool language_has(const language *l, const char *text, size_t n)
{
    const uint8_t *p = (const uint8_t *)text;
    int32_t s = 1;
    for (int length; n > 0 && s > 0; p += length, n -= (size_t)length) {
        length = utf8_length(p, n);
        if (length <= 0)
            return false;
        s = row_of(l, s)[class_of(l, utf8_code_point(p, length))];
    }
    return l->ends[s];
}

bool language_is_empty(const language *l)
{
    if (l->ends[1])
        return false;
    for (int32_t k = 0; k < l->n_classes; k++)
        if (row_of(l, 1)[k])
            return false; /* it was trimmed: an end can be reached */
    return true;
}

/* ---- As an expression ---- */

/* Sets of classes and what is written for them: many states have the same ones. */
enum { MOST_WRITTEN = 64, SET_WORDS = LANGUAGE_MOST_CLASSES / 64 };
typedef struct class_set {
    uint64_t classes[SET_WORDS];
    expr written;
} class_set;

typedef struct writer {
    grammar_rules *g;
    const language *l;
    class_set written[MOST_WRITTEN];
    int32_t n_written;
    int32_t rule[LANGUAGE_MOST_STATES], todo[LANGUAGE_MOST_STATES], n_todo;
} writer;

static expr write_classes(writer *w, const uint64_t *classes)
{
    char_range ranges[LANGUAGE_MOST_CLASSES];
    int32_t n = 0;
    for (int32_t i = 0; i < w->n_written; i++)
        if (memcmp(w->written[i].classes, classes, sizeof w->written[i].classes) == 0)
            return w->written[i].written;
    for (int32_t k = 0; k < w->l->n_classes; k++)
        if (classes[k / 64] >> (k % 64) & 1)
            ranges[n++] = (char_range){w->l->first[k], w->l->first[k + 1] - 1};
    expr out = json_class(w->g, ranges, n, false);
    if (w->n_written < MOST_WRITTEN) {
        class_set *kept = &w->written[w->n_written++];
        memcpy(kept->classes, classes, sizeof kept->classes);
        kept->written = out;
    }
    return out;
}

static int32_t rule_of(writer *w, int32_t state)
{
    if (w->rule[state] < 0) {
        w->rule[state] = rule_new(w->g, "texts");
        w->todo[w->n_todo++] = state;
    }
    return w->rule[state];
}

static expr write_state(writer *w, int32_t state)
{
    const int16_t *to = row_of(w->l, state);
    expr all = EXPR_NEVER;
    for (int32_t k = 0; k < w->l->n_classes && !w->g->full; k++) {
        uint64_t classes[SET_WORDS] = {0};
        bool seen = to[k] == 0;
        for (int32_t i = 0; i < k && !seen; i++)
            seen = to[i] == to[k];
        if (seen)
            continue;
        for (int32_t i = k; i < w->l->n_classes; i++)
            if (to[i] == to[k])
                classes[i / 64] |= UINT64_C(1) << (i % 64);
        expr rest = expr_rule(w->g, rule_of(w, to[k]));
        all = expr_alt(w->g, all, expr_seq(w->g, write_classes(w, classes), rest));
    }
    return w->l->ends[state] ? expr_alt(w->g, all, EXPR_EMPTY) : all;
}

expr language_written(grammar_rules *g, const language *l)
{
    if (language_is_empty(l))
        return EXPR_NEVER;
    writer *w = calloc(1, sizeof *w);
    if (!w) {
        g->full = true;
        return EXPR_NEVER;
    }
    w->g = g;
    w->l = l;
    memset(w->rule, -1, sizeof w->rule);
    expr out = expr_rule(g, rule_of(w, 1));
    while (w->n_todo > 0 && !g->full) {
        int32_t state = w->todo[--w->n_todo];
        expr body = write_state(w, state);
        if (!g->full)
            g->rules[w->rule[state]].body = body;
    }
    free(w);
    return out;
}
