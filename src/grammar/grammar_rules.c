/* Building a grammar: see grammar_rules.h. */
#include "grammar/grammar_rules.h"

#include <string.h>

#include "common/hash.h"
#include "common/num.h"

enum { LAST_CHARACTER = 0x10FFFF, FIRST_SURROGATE = 0xD800, LAST_SURROGATE = 0xDFFF };

void grammar_rules_init(grammar_rules *g)
{
    g->exprs[EXPR_EMPTY] = (expr_node){.kind = EXPR_IS_EMPTY};
    g->exprs[EXPR_NEVER] = (expr_node){.kind = EXPR_IS_NEVER};
    g->n_exprs = 2;
    g->n_ranges = g->n_bytes = g->n_rules = g->n_sets = g->n_items = 0;
    g->full = g->plainly = g->widened = false;
    g->n_left_out = 0;
    g->left_out[0] = 0;
    g->tokenizer = NULL;
    memset(g->cuts, 0, sizeof g->cuts);
    memset(g->buckets, -1, sizeof g->buckets);
}

drey_status grammar_rules_check(const grammar_rules *g, drey_error *err)
{
    if (g->full)
        FAIL(err, DREY_ERR_USAGE,
             "the grammar is too large: it may have %d rules, %d parts and %d bytes of texts; "
             "shorten its lists and repetitions",
             RULES_MOST_RULES, RULES_MOST_EXPRS, RULES_MOST_BYTES);
    return DREY_OK;
}

/* ---- What is left out ---- */

static size_t put_place(const char *place, size_t n, char *out)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)place[i];
        bool plain = c > 0x20 && c < 0x7F && c != ',' && c != '%' && c != '"' && c != '\\';
        if (plain) {
            out[at++] = (char)c;
            continue;
        }
        out[at++] = '%';
        out[at++] = hex[c >> 4];
        out[at++] = hex[c & 15];
    }
    out[at] = 0;
    return at;
}

static bool is_noted(const grammar_rules *g, const char *place, size_t n)
{
    for (const char *p = g->left_out; (p = strstr(p, place)); p += n)
        if ((p == g->left_out || p[-1] == ' ') && (p[n] == 0 || p[n] == ','))
            return true;
    return false;
}

void grammar_rules_leave_out(grammar_rules *g, const char *place, size_t n)
{
    enum { LONGEST = 250 };
    char text[3 * LONGEST + 1];
    const char *dots = g->n_left_out ? ", ..." : "...";
    size_t n_text = put_place(place, min_size(n, LONGEST), text);
    char *end = g->left_out + g->n_left_out;
    const size_t room = sizeof g->left_out - g->n_left_out;
    if (is_noted(g, text, n_text) || (g->n_left_out >= 3 && memcmp(end - 3, "...", 3) == 0))
        return;
    if (n_text + 2 + 6 > room) {
        memcpy(end, dots, strlen(dots) + 1);
        g->n_left_out += strlen(dots);
        return;
    }
    if (g->n_left_out) {
        memcpy(end, ", ", 2);
        end += 2;
    }
    memcpy(end, text, n_text + 1);
    g->n_left_out = (size_t)(end - g->left_out) + n_text;
}

/* ---- Expressions ---- */

static expr add(grammar_rules *g, expr_node node)
{
    if (g->n_exprs == RULES_MOST_EXPRS)
        g->full = true;
    if (g->full)
        return EXPR_NEVER;
    g->exprs[g->n_exprs] = node;
    return g->n_exprs++;
}

static int32_t keep_bytes(grammar_rules *g, const void *bytes, size_t n)
{
    if (n > (size_t)(RULES_MOST_BYTES - g->n_bytes)) {
        g->full = true;
        return 0;
    }
    int32_t at = g->n_bytes;
    if (n > 0)
        memcpy(g->bytes + at, bytes, n);
    g->n_bytes += (int32_t)n;
    return at;
}

void grammar_rules_keep(grammar_rules *g, const void *bytes, size_t n)
{
    keep_bytes(g, bytes, n);
}

expr expr_kept(grammar_rules *g, int32_t from)
{
    int32_t n = g->n_bytes - from;
    return n > 0 ? add(g, (expr_node){.kind = EXPR_IS_BYTES, .a = from, .b = n}) : EXPR_EMPTY;
}

expr expr_bytes(grammar_rules *g, const void *bytes, size_t n)
{
    int32_t from = g->n_bytes;
    keep_bytes(g, bytes, n);
    return expr_kept(g, from);
}

expr expr_text(grammar_rules *g, const char *text)
{
    return expr_bytes(g, text, strlen(text));
}

expr expr_seq(grammar_rules *g, expr a, expr b)
{
    if (a == EXPR_NEVER || b == EXPR_NEVER)
        return EXPR_NEVER;
    if (a == EXPR_EMPTY || b == EXPR_EMPTY)
        return a == EXPR_EMPTY ? b : a;
    return add(g, (expr_node){.kind = EXPR_IS_SEQ, .a = a, .b = b});
}

expr expr_alt(grammar_rules *g, expr a, expr b)
{
    if (a == EXPR_NEVER || b == EXPR_NEVER)
        return a == EXPR_NEVER ? b : a;
    return add(g, (expr_node){.kind = EXPR_IS_ALT, .a = a, .b = b});
}

expr expr_repeat(grammar_rules *g, expr a, int32_t least, int32_t most)
{
    if (a == EXPR_NEVER)
        return least > 0 ? EXPR_NEVER : EXPR_EMPTY;
    if (a == EXPR_EMPTY || most == 0)
        return EXPR_EMPTY;
    if (least == 1 && most == 1)
        return a;
    return add(g, (expr_node){.kind = EXPR_IS_REPEAT, .a = a, .least = least, .most = most});
}

expr expr_rule(grammar_rules *g, int32_t rule)
{
    return add(g, (expr_node){.kind = EXPR_IS_RULE, .a = rule});
}

expr expr_each(grammar_rules *g, const each_set *set, const expr *items)
{
    for (int32_t i = 0; i < set->n; i++)
        if (items[i] == EXPR_NEVER)
            return EXPR_NEVER;
    if (g->n_sets == RULES_MOST_SETS || set->n > RULES_MOST_ITEMS - g->n_items)
        g->full = true;
    if (g->full)
        return EXPR_NEVER;
    each_set *to = &g->sets[g->n_sets];
    *to = *set;
    to->first = g->n_items;
    if (set->n > 0)
        memcpy(g->items + g->n_items, items, (size_t)set->n * sizeof *items);
    g->n_items += set->n;
    return add(g, (expr_node){.kind = EXPR_IS_EACH, .a = g->n_sets++});
}

expr expr_counted(grammar_rules *g, expr a, int32_t least, int32_t most)
{
    if (a == EXPR_NEVER || (most != REPEAT_FOREVER && most < least))
        return EXPR_NEVER;
    return add(g, (expr_node){.kind = EXPR_IS_COUNTED, .a = a, .least = least, .most = most});
}

expr expr_tick(grammar_rules *g)
{
    return add(g, (expr_node){.kind = EXPR_IS_TICK});
}

/* ---- One of many texts ---- */

static const uint8_t *text_of(const grammar_rules *g, expr text, int32_t *n)
{
    const expr_node *e = &g->exprs[text];
    *n = text == EXPR_EMPTY ? 0 : e->b;
    return g->bytes + e->a;
}

static int compare(const grammar_rules *g, expr a, expr b)
{
    int32_t n_a, n_b;
    const uint8_t *x = text_of(g, a, &n_a), *y = text_of(g, b, &n_b);
    int order = memcmp(x, y, (size_t)min_i32(n_a, n_b));
    return order ? order : (n_a > n_b) - (n_a < n_b);
}

static void sink(const grammar_rules *g, expr *heap, int32_t n, int32_t i)
{
    expr x = heap[i];
    for (int32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && compare(g, heap[child], heap[child + 1]) < 0)
            child++;
        if (compare(g, x, heap[child]) >= 0)
            break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

static void sort_texts(const grammar_rules *g, expr *texts, int32_t n)
{
    for (int32_t i = n / 2; i-- > 0;)
        sink(g, texts, n, i);
    while (n > 1) {
        expr last = texts[--n];
        texts[n] = texts[0];
        texts[0] = last;
        sink(g, texts, n, 0);
    }
}

/* Builds the rest of sorted texts that have their first `from` bytes in common: what follows
 * those. */
static expr rest_of(grammar_rules *g, const expr *texts, int32_t n, int32_t from)
{
    int32_t n_first, n_last, same = from;
    const uint8_t *first = text_of(g, texts[0], &n_first);
    const uint8_t *last = text_of(g, texts[n - 1], &n_last);
    while (same < n_first && same < n_last && first[same] == last[same])
        same++;
    expr begin = EXPR_EMPTY, rest = EXPR_NEVER;
    if (same > from)
        begin = add(
            g,
            (expr_node){.kind = EXPR_IS_BYTES, .a = g->exprs[texts[0]].a + from, .b = same - from});
    for (int32_t i = 0, end; i < n && !g->full; i = end) {
        int32_t n_this, n_next;
        const uint8_t *text = text_of(g, texts[i], &n_this);
        for (end = i + 1; end < n; end++) {
            const uint8_t *next = text_of(g, texts[end], &n_next);
            if (n_this > same ? n_next == same || next[same] != text[same] : n_next > same)
                break;
        }
        rest =
            expr_alt(g, n_this == same ? EXPR_EMPTY : rest_of(g, texts + i, end - i, same), rest);
    }
    return expr_seq(g, begin, rest);
}

expr expr_one_of(grammar_rules *g, expr *texts, int32_t n)
{
    if (n == 0 || g->full)
        return EXPR_NEVER;
    sort_texts(g, texts, n);
    return rest_of(g, texts, n, 0);
}

/* ---- Classes ---- */

int32_t ranges_sort(char_range *r, int32_t n)
{
    int32_t kept = 0;
    for (int32_t i = 1; i < n; i++) {
        char_range x = r[i];
        int32_t at = i;
        for (; at > 0 && x.from < r[at - 1].from; at--)
            r[at] = r[at - 1];
        r[at] = x;
    }
    for (int32_t i = 0; i < n; i++) {
        if (kept > 0 && r[i].from <= r[kept - 1].to + 1)
            r[kept - 1].to = r[i].to > r[kept - 1].to ? r[i].to : r[kept - 1].to;
        else
            r[kept++] = r[i];
    }
    return kept;
}

int32_t ranges_invert(const char_range *r, int32_t n, char_range *out)
{
    uint32_t from = 0;
    int32_t kept = 0;
    for (int32_t i = 0; i <= n; i++) {
        uint32_t before = i < n ? r[i].from : LAST_CHARACTER + 1;
        if (before > from)
            out[kept++] = (char_range){from, before - 1};
        from = i < n ? r[i].to + 1 : 0;
    }
    return kept;
}

/* Cuts surrogates out of the last range that was added, which no UTF-8 has. */
static void drop_surrogates(grammar_rules *g, char_range r)
{
    if (r.from < FIRST_SURROGATE && r.to > LAST_SURROGATE) {
        g->ranges[g->n_ranges++] = (char_range){r.from, FIRST_SURROGATE - 1};
        r.from = LAST_SURROGATE + 1;
    } else if (r.from >= FIRST_SURROGATE && r.from <= LAST_SURROGATE) {
        r.from = LAST_SURROGATE + 1;
    } else if (r.to >= FIRST_SURROGATE && r.to <= LAST_SURROGATE) {
        r.to = FIRST_SURROGATE - 1;
    }
    if (r.from <= r.to)
        g->ranges[g->n_ranges++] = r;
}

expr expr_class(grammar_rules *g, char_range *ranges, int32_t n, bool but_not)
{
    n = ranges_sort(ranges, n);
    if (2 * n + 4 > RULES_MOST_RANGES - g->n_ranges) {
        g->full = true;
        return EXPR_NEVER;
    }
    int32_t first = g->n_ranges;
    if (but_not) {
        /* Inverted at the end of what follows, then moved to the front one by one. */
        char_range *inverted = g->ranges + RULES_MOST_RANGES - (n + 2);
        n = ranges_invert(ranges, n, inverted);
        ranges = inverted;
    }
    for (int32_t i = 0; i < n; i++)
        drop_surrogates(g, ranges[i]);
    if (g->n_ranges == first)
        return EXPR_NEVER;
    return add(g, (expr_node){.kind = EXPR_IS_CLASS, .a = first, .b = g->n_ranges - first});
}

/* ---- Rules ---- */

static int32_t add_rule(grammar_rules *g, const char *name, size_t n)
{
    if (g->n_rules == RULES_MOST_RULES)
        g->full = true;
    if (g->full)
        return 0;
    g->rules[g->n_rules] =
        (grammar_rule){.name = keep_bytes(g, name, n), .n_name = (int32_t)n, .body = -1};
    return g->n_rules++;
}

int32_t rule_new(grammar_rules *g, const char *name)
{
    return add_rule(g, name, strlen(name));
}

int32_t rule_named(grammar_rules *g, const char *name, size_t n)
{
    int32_t *bucket = &g->buckets[hash64_of(name, n) % RULES_BUCKETS];
    for (int32_t i = *bucket; i >= 0; i = g->rules[i].next)
        if ((size_t)g->rules[i].n_name == n && memcmp(g->bytes + g->rules[i].name, name, n) == 0)
            return i;
    int32_t rule = add_rule(g, name, n);
    if (!g->full) {
        g->rules[rule].next = *bucket;
        *bucket = rule;
    }
    return rule;
}

const char *rule_shown(const grammar_rules *g, int32_t rule, char out[static 64])
{
    const grammar_rule *r = &g->rules[rule];
    size_t n = min_size((size_t)r->n_name, 60);
    for (size_t i = 0; i < n; i++) {
        uint8_t c = g->bytes[r->name + (int32_t)i];
        out[i] = c < 0x20 || c == 0x7F ? '?' : (char)c;
    }
    out[n] = 0;
    return out;
}
