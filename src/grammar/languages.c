/* Automata over characters: see languages.h. */
#include "grammar/languages.h"

#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "grammar/readers.h"

enum { LAST_CHARACTER = 0x10FFFF, LAST_MARK = MARK_END };

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
    add_state(l, false);
}

static int32_t range_of(const language *l, uint32_t c)
{
    int32_t low = 0, high = l->n_ranges - 1;
    while (low < high) {
        int32_t middle = (low + high + 1) / 2;
        if (l->first[middle] <= c)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static int32_t class_of(const language *l, uint32_t c)
{
    return l->of[range_of(l, c)];
}

static int compare_codes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The ranges that begin at these characters; 0 is there without being said. They are sorted
 * here. */
static bool set_ranges(language *l, uint32_t *begins, int32_t n)
{
    l->n_ranges = 1;
    l->first[0] = 0;
    if (n > 0)
        qsort(begins, (size_t)n, sizeof *begins, compare_codes);
    for (int32_t i = 0; i < n; i++) {
        if (begins[i] == l->first[l->n_ranges - 1] || begins[i] > LAST_MARK)
            continue;
        if (l->n_ranges == LANGUAGE_MOST_RANGES)
            return false;
        l->first[l->n_ranges++] = begins[i];
    }
    l->first[l->n_ranges] = LAST_MARK + 1;
    return true;
}

/* The same, each of them a class. */
static bool set_classes(language *l, uint32_t *begins, int32_t n)
{
    if (!set_ranges(l, begins, n) || l->n_ranges > LANGUAGE_MOST_CLASSES)
        return false;
    for (int32_t i = 0; i < l->n_ranges; i++)
        l->of[i] = (uint8_t)i;
    begin(l, l->n_ranges);
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

static bool language_is_empty(const language *l)
{
    if (l->ends[1])
        return false;
    for (int32_t k = 0; k < l->n_classes; k++)
        if (row_of(l, 1)[k])
            return false; /* it was trimmed: an end can be reached */
    return true;
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

enum { MOST_NODES = 8 << 10, MOST_EDGES = 16 << 10, MOST_SETS = 96 << 10, BUCKETS = 4 << 10 };
enum { MOST_CHARSETS = 512, MOST_BEGINS = 4 * LANGUAGE_MOST_RANGES, NO_CHARACTER = -1 };

typedef struct node_edge {
    int32_t next, to;
    int32_t charset; /* NO_CHARACTER: it takes nothing */
} node_edge;

/* Characters that an edge takes. */
typedef struct charset {
    const char_range *r; /* [n]; NULL: `one` alone */
    int32_t n;
    uint32_t one;
} charset;

typedef struct maker {
    const grammar_rules *g;
    node_edge edges[MOST_EDGES];
    int32_t first[MOST_NODES], n_nodes, n_edges;
    bool full;
    charset charsets[MOST_CHARSETS];
    int32_t n_charsets;
    uint32_t begins[MOST_BEGINS];
    uint64_t in[LANGUAGE_MOST_RANGES][MOST_CHARSETS / 64]; /* bits: the sets that a range is in */
    int32_t like[LANGUAGE_MOST_CLASSES];                   /* a range of each class */
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

static void add_edge(maker *m, int32_t from, int32_t to, int32_t set)
{
    m->full = m->full || m->n_edges == MOST_EDGES;
    if (m->full)
        return;
    m->edges[m->n_edges] = (node_edge){m->first[from], to, set};
    m->first[from] = m->n_edges++;
}

static const char_range *ranges_of(const charset *set, char_range *one)
{
    *one = (char_range){set->one, set->one};
    return set->r ? set->r : one;
}

/* Equal ones are there once. */
static int32_t charset_of(maker *m, charset set)
{
    char_range a, b;
    for (int32_t i = 0; i < m->n_charsets; i++)
        if (m->charsets[i].n == set.n && memcmp(ranges_of(&m->charsets[i], &a), ranges_of(&set, &b),
                                                (size_t)set.n * sizeof a) == 0)
            return i;
    m->full = m->full || m->n_charsets == MOST_CHARSETS;
    if (m->full)
        return 0;
    m->charsets[m->n_charsets] = set;
    return m->n_charsets++;
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
        add_edge(m, from, next, charset_of(m, (charset){.one = c, .n = 1}));
        from = next;
    }
}

static void lay_repeat(maker *m, const expr_node *e, int32_t from, int32_t to)
{
    int32_t n = e->most == REPEAT_FOREVER ? e->least : e->most;
    for (int32_t i = 0; i < n && !m->full; i++) {
        int32_t next = new_node(m);
        if (i >= e->least)
            add_edge(m, from, to, NO_CHARACTER);
        lay(m, e->a, from, next);
        from = next;
    }
    if (e->most == REPEAT_FOREVER) {
        int32_t loop = new_node(m);
        add_edge(m, from, loop, NO_CHARACTER);
        lay(m, e->a, loop, loop);
        from = loop;
    }
    add_edge(m, from, to, NO_CHARACTER);
}

static void lay(maker *m, expr e, int32_t from, int32_t to)
{
    while (!m->full) {
        const expr_node *node = &m->g->exprs[e];
        int32_t between;
        switch (node->kind) {
        case EXPR_IS_EMPTY:
            add_edge(m, from, to, NO_CHARACTER);
            return;
        case EXPR_IS_NEVER:
            return;
        case EXPR_IS_BYTES:
            lay_text(m, m->g->bytes + node->a, node->b, from, to);
            return;
        case EXPR_IS_CLASS:
            add_edge(m, from, to,
                     charset_of(m, (charset){.r = m->g->ranges + node->a, .n = node->b}));
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
            if (edge->charset != NO_CHARACTER || m->marks[edge->to] == m->mark)
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
            const uint64_t *in = m->in[m->like[k]];
            n = 0;
            m->mark++;
            for (int32_t i = m->at[s]; i < m->at[s + 1]; i++)
                for (int32_t e = m->first[m->sets[i]]; e >= 0; e = m->edges[e].next)
                    if (m->edges[e].charset >= 0 &&
                        in[m->edges[e].charset / 64] >> (m->edges[e].charset % 64) & 1)
                        put_node(m, m->edges[e].to, m->at[l->n_states], &n);
            int32_t to = m->full ? 0 : state_of(m, l, n, end);
            row(l, s)[k] = (int16_t)to;
        }
}

/* Finds the ranges that contain the characters of a set; those that are in the same ones have one
 * class. */
static bool classify(maker *m, language *l)
{
    char_range one;
    int32_t n = 0;
    for (int32_t i = 0; i < m->n_charsets; i++)
        for (int32_t k = 0; k < m->charsets[i].n; k++) {
            const char_range r = ranges_of(&m->charsets[i], &one)[k];
            if (n + 2 > MOST_BEGINS)
                return false;
            m->begins[n++] = r.from;
            m->begins[n++] = r.to + 1;
        }
    if (!set_ranges(l, m->begins, n))
        return false;
    for (int32_t i = 0; i < m->n_charsets; i++)
        for (int32_t k = 0; k < m->charsets[i].n; k++) {
            const char_range r = ranges_of(&m->charsets[i], &one)[k];
            for (int32_t x = range_of(l, r.from); x < l->n_ranges && l->first[x] <= r.to; x++)
                m->in[x][i / 64] |= UINT64_C(1) << (i % 64);
        }
    int32_t n_classes = 0;
    for (int32_t x = 0; x < l->n_ranges; x++) {
        int32_t k = 0;
        while (k < n_classes && memcmp(m->in[m->like[k]], m->in[x], sizeof m->in[x]) != 0)
            k++;
        if (k == LANGUAGE_MOST_CLASSES)
            return false;
        if (k == n_classes)
            m->like[n_classes++] = x;
        l->of[x] = (uint8_t)k;
    }
    begin(l, n_classes);
    return true;
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
    bool fits = !m->full && classify(m, out);
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

/* Makes states that match into dead ones, and adds one state for texts that can match no more. */
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
    /* class of each character */
    uint8_t class_a[LANGUAGE_MOST_CLASSES], class_b[LANGUAGE_MOST_CLASSES];
    uint32_t begins[2 * LANGUAGE_MOST_RANGES];
} pairs;

/* Characters that neither distinguishes have one class. */
static bool pair_classes(pairs *p, language *l, const language *a, const language *b)
{
    int32_t n_classes = 0;
    memcpy(p->begins, a->first, (size_t)a->n_ranges * sizeof *p->begins);
    memcpy(p->begins + a->n_ranges, b->first, (size_t)b->n_ranges * sizeof *p->begins);
    if (!set_ranges(l, p->begins, a->n_ranges + b->n_ranges))
        return false;
    for (int32_t x = 0; x < l->n_ranges; x++) {
        const int32_t of_a = class_of(a, l->first[x]), of_b = class_of(b, l->first[x]);
        int32_t k = 0;
        while (k < n_classes && (p->class_a[k] != of_a || p->class_b[k] != of_b))
            k++;
        if (k == LANGUAGE_MOST_CLASSES)
            return false;
        if (k == n_classes) {
            p->class_a[k] = (uint8_t)of_a;
            p->class_b[k] = (uint8_t)of_b;
            n_classes++;
        }
        l->of[x] = (uint8_t)k;
    }
    begin(l, n_classes);
    return true;
}

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
            int32_t x = row_of(a, p->a[s])[p->class_a[k]];
            int32_t y = row_of(b, p->b[s])[p->class_b[k]];
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
    pairs *p = malloc(sizeof *p);
    bool fits = p && pair_classes(p, out, a, b) && find_pairs(p, out, a, b, but_not);
    free(p);
    if (fits)
        trim(out);
    return fits;
}

/* ---- Marks ---- */

/* Position in a text: what the character before is, which mark of words came after that, and
 * whether one of the end. */
enum { BEFORE_ALL, NO_WORD, OF_WORD, N_BEFORE, NONE = 0, BOUNDARY, NO_BOUNDARY, N_MARKS };
typedef struct mark_place {
    int32_t before, mark, ended;
} mark_place;

static bool mark_is_true(mark_place p, bool of_word)
{
    return p.mark == NONE || (p.mark == BOUNDARY) == (of_word != (p.before == OF_WORD));
}

/* False: the character or mark cannot come. */
static bool mark_step(mark_place *p, uint32_t c)
{
    const int32_t mark = c == MARK_OF_WORD ? BOUNDARY : NO_BOUNDARY;
    const bool of_word = c == '0' || c == 'A' || c == '_' || c == 'a'; /* the first of a class */
    switch (c) {
    case MARK_BEGIN:
        return p->before == BEFORE_ALL;
    case MARK_END:
        p->ended = true;
        return true;
    case MARK_OF_WORD:
    case MARK_NOT_OF_WORD:
        if (p->mark != NONE && p->mark != mark)
            return false;
        p->mark = mark;
        return true;
    default:
        if (p->ended || !mark_is_true(*p, of_word))
            return false;
        *p = (mark_place){.before = of_word ? OF_WORD : NO_WORD};
        return true;
    }
}

/* Texts with any marks that are true. */
static bool language_of_marks(language *out)
{
    uint32_t begins[] = {'0', '9' + 1, 'A',          'Z' + 1,          '_',        '_' + 1,
                         'a', 'z' + 1, MARK_OF_WORD, MARK_NOT_OF_WORD, MARK_BEGIN, MARK_END};
    if (!set_classes(out, begins, sizeof begins / sizeof *begins))
        return false;
    for (int32_t s = 0; s < N_BEFORE * N_MARKS * 2; s++) {
        const mark_place from = {s / 2 / N_MARKS, s / 2 % N_MARKS, s % 2};
        if (add_state(out, mark_is_true(from, false)) < 0)
            return false;
        for (int32_t k = 0; k < out->n_classes; k++) {
            mark_place to = from;
            if (mark_step(&to, out->first[k]))
                row(out, s + 1)[k] = (int16_t)(1 + (to.before * N_MARKS + to.mark) * 2 + to.ended);
        }
    }
    return true;
}

/* The classes of l as sets of characters, in ranges[n_ranges]; *mark: those of marks. */
static void take_classes(maker *m, const language *l, char_range *ranges, bool *mark)
{
    for (int32_t k = 0, n = 0; k < l->n_classes; k++) {
        const int32_t from = n;
        mark[k] = false;
        for (int32_t x = 0; x < l->n_ranges; x++)
            if (l->of[x] == k) {
                mark[k] = l->first[x] > LAST_CHARACTER;
                ranges[n++] = (char_range){l->first[x], l->first[x + 1] - 1};
            }
        m->charsets[k] = (charset){.r = ranges + from, .n = n - from};
    }
    m->n_charsets = l->n_classes;
}

/* The same texts without their marks. */
static bool without_marks(language *out, const language *l)
{
    bool mark[LANGUAGE_MOST_CLASSES];
    maker *m = calloc(1, sizeof *m);
    char_range *ranges = malloc(LANGUAGE_MOST_RANGES * sizeof *ranges);
    bool fits = m && ranges && l->n_states < MOST_NODES;
    if (fits)
        take_classes(m, l, ranges, mark);
    for (int32_t s = 0; fits && s < l->n_states; s++)
        new_node(m);
    const int32_t end = fits ? new_node(m) : 0;
    for (int32_t s = 1; fits && s < l->n_states; s++) {
        if (l->ends[s])
            add_edge(m, s, end, NO_CHARACTER);
        for (int32_t k = 0; k < l->n_classes; k++)
            if (row_of(l, s)[k])
                add_edge(m, s, row_of(l, s)[k], mark[k] ? NO_CHARACTER : k);
    }
    fits = fits && !m->full && classify(m, out);
    if (fits)
        find_states(m, out, 1, end);
    fits = fits && !m->full;
    free(ranges);
    free(m);
    if (fits)
        trim(out);
    return fits;
}

bool language_keep_marks(language *out, const language *l, language *other)
{
    return language_of_marks(out) && language_both(other, l, out, false) &&
           without_marks(out, other);
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
    bool in_json, ticks;
    char_range ranges[LANGUAGE_MOST_RANGES];
    class_set written[MOST_WRITTEN];
    int32_t n_written;
    int32_t rule[LANGUAGE_MOST_STATES], todo[LANGUAGE_MOST_STATES], n_todo;
} writer;

static expr write_classes(writer *w, const uint64_t *classes)
{
    char_range *ranges = w->ranges;
    int32_t n = 0;
    for (int32_t i = 0; i < w->n_written; i++)
        if (memcmp(w->written[i].classes, classes, sizeof w->written[i].classes) == 0)
            return w->written[i].written;
    for (int32_t x = 0; x < w->l->n_ranges; x++) {
        const uint32_t last = (uint32_t)LAST_CHARACTER, from = w->l->first[x];
        uint32_t to = w->l->first[x + 1] - 1;
        if (classes[w->l->of[x] / 64] >> (w->l->of[x] % 64) & 1 && from <= last)
            ranges[n++] = (char_range){from, to < last ? to : last};
    }
    expr out = n == 0       ? EXPR_NEVER
               : w->in_json ? json_class(w->g, ranges, n, false)
                            : expr_class(w->g, ranges, n, false);
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
        expr one = write_classes(w, classes), rest = expr_rule(w->g, rule_of(w, to[k]));
        if (w->ticks)
            one = expr_seq(w->g, expr_tick(w->g), one);
        all = expr_alt(w->g, all, expr_seq(w->g, one, rest));
    }
    return w->l->ends[state] ? expr_alt(w->g, all, EXPR_EMPTY) : all;
}

expr language_repeated(grammar_rules *g, const language *l, bool in_json, int32_t *least)
{
    uint64_t classes[SET_WORDS] = {0};
    const int32_t again = l->n_states == 3 && !l->ends[1] && l->ends[2] ? 2 : 1;
    *least = again - 1;
    if (l->n_states != 1 + again || !l->ends[again])
        return EXPR_NEVER;
    for (int32_t k = 0; k < l->n_classes; k++) {
        const int16_t to = row_of(l, 1)[k];
        if (row_of(l, again)[k] != to || (to != 0 && to != again))
            return EXPR_NEVER;
        if (to)
            classes[k / 64] |= UINT64_C(1) << (k % 64);
    }
    writer *w = calloc(1, sizeof *w);
    if (!w) {
        g->full = true;
        return EXPR_NEVER;
    }
    w->g = g;
    w->l = l;
    w->in_json = in_json;
    expr out = write_classes(w, classes);
    free(w);
    return out;
}

static expr write(grammar_rules *g, const language *l, bool in_json, bool ticks)
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
    w->in_json = in_json;
    w->ticks = ticks;
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

expr language_written(grammar_rules *g, const language *l, bool in_json)
{
    return write(g, l, in_json, false);
}

expr language_ticking(grammar_rules *g, const language *l)
{
    return write(g, l, false, true);
}
