/* The lookup drafter: guesses from the text itself and from the target's rows. It computes no
 * model: a step takes microseconds.
 *
 * Programs, edits, summaries and quotations repeat earlier text. For a path (the timeline plus the
 * branch drafted so far), a suffix automaton over the encoder's input, if there is one, and the
 * timeline knows the longest suffix that occurred earlier, and what followed it: the candidates,
 * the most frequent first, the most recent first among equals. Shorter suffixes add their
 * candidates. If those are not enough, the tokens that the target found likely after the same two
 * tokens, or after the same one, are recycled (recycling.h).
 *
 * The confidence of a candidate is how often its kind was right so far. The kind of an automaton's
 * candidate is given by the length of the match, by its share of what followed, and by whether
 * there was more than one place; the kind of a recycled one by its table and rank. Hits and trials
 * of a kind are counted along the path that the target takes. The first few trials are an
 * assumption. */
#include "draft/lookup_drafter.h"
#include "base/usual.h"

#include <assert.h>
#include <string.h>

#include "common/num.h"
#include "draft/drafter_kind.h"
#include "drey/train.h"

enum {
    MOST_EDGES = 64,   /* looked at, of a state: the newest */
    MOST_SUFFIXES = 4, /* the most suffixes of a path, from the longest on */
    MOST_TRIALS = 256  /* then both counts are halved, because texts change */
};

/* ---- Kinds ---- */

static int32_t length_class(int32_t length)
{
    static const int32_t least[LOOKUP_LENGTHS] = {1, 2, 3, 4, 5, 7, 10, 16};
    int32_t i = 0;
    while (i + 1 < LOOKUP_LENGTHS && length >= least[i + 1])
        i++;
    return i;
}

static int32_t share_class(int32_t count, int32_t total)
{
    return count >= total ? 0 : 5 * count >= 3 * total ? 1 : 4 * count >= total ? 2 : 3;
}

static int32_t kind_of_match(int32_t length, int32_t count, int32_t total)
{
    return (length_class(length) * LOOKUP_SHARES + share_class(count, total)) * 2 + (total > 1);
}

static int32_t kind_of_recycled(bool of_two, int32_t rank)
{
    return LOOKUP_MATCH_KINDS + (of_two ? 0 : RECYCLED) + rank;
}

/* Sets the worth of each kind before its first trial. */
static void init_kinds(lookup_drafter *d)
{
    static const float of_length[] = USUAL_LOOKUP_LENGTHS;
    static const float of_share[] = USUAL_LOOKUP_SHARES;
    static const float of_rank[][RECYCLED] = USUAL_LOOKUP_RECYCLED;
    _Static_assert(sizeof of_length / sizeof *of_length == LOOKUP_LENGTHS &&
                       sizeof of_share / sizeof *of_share == LOOKUP_SHARES &&
                       sizeof of_rank / sizeof *of_rank == 2,
                   "one for each kind");
    const float prior_trials = 4;
    for (int32_t i = 0; i < LOOKUP_MATCH_KINDS; i++)
        d->kind[i].hits =
            of_length[i / 2 / LOOKUP_SHARES] * of_share[i / 2 % LOOKUP_SHARES] * prior_trials;
    for (int32_t i = 0; i < 2 * RECYCLED; i++)
        d->kind[LOOKUP_MATCH_KINDS + i].hits = of_rank[i / RECYCLED][i % RECYCLED] * prior_trials;
    for (int32_t i = 0; i < LOOKUP_KINDS; i++)
        d->kind[i].trials = prior_trials;
}

void lookup_judge(lookup_drafter *d, int32_t kind, bool hit)
{
    lookup_kind *k = &d->kind[kind];
    k->trials += 1;
    k->hits += hit;
    if (k->trials >= MOST_TRIALS) {
        k->trials /= 2;
        k->hits /= 2;
    }
}

static float worth(const lookup_drafter *d, int32_t kind)
{
    return (d->kind[kind].hits + 0.01f) / (d->kind[kind].trials + 0.02f);
}

/* ---- Candidates ---- */

typedef struct finding {
    int32_t token, kind, count, latest;
} finding;

typedef struct findings {
    finding found[TREE_MAX_GUESSES];
    int32_t n;
} findings;

/* Among the first n. */
static bool has(const findings *f, int32_t n, int32_t token)
{
    for (int32_t i = 0; i < n; i++)
        if (f->found[i].token == token)
            return true;
    return false;
}

/* After those that have more places, or as many and a later one; not before `first`. */
static void enter(findings *f, int32_t first, const finding *x)
{
    int32_t at = f->n;
    while (at > first &&
           (x->count > f->found[at - 1].count ||
            (x->count == f->found[at - 1].count && x->latest > f->found[at - 1].latest)))
        at--;
    if (at == TREE_MAX_GUESSES)
        return;
    f->n = min_i32(f->n + 1, TREE_MAX_GUESSES);
    memmove(&f->found[at + 1], &f->found[at], (size_t)(f->n - 1 - at) * sizeof *f->found);
    f->found[at] = *x;
}

/* Finds what followed the words of one state. */
static void find_after(const lookup_drafter *d, suffix_match m, findings *f)
{
    const suffix_automaton *a = &d->text;
    int32_t first = f->n, total = 0, n_edges = 0;
    for (int32_t i = a->state[m.state].first_edge; i >= 0 && n_edges++ < MOST_EDGES;
         i = a->edge[i].next) {
        const suffix_state *to = &a->state[a->edge[i].to];
        finding x = {.token = a->edge[i].token, .count = to->count, .latest = to->latest};
        total += x.count;
        if (!has(f, first, x.token))
            enter(f, first, &x);
    }
    for (int32_t i = first; i < f->n; i++)
        f->found[i].kind = kind_of_match(m.length, f->found[i].count, total);
}

static void find_recycled(const recycled *r, bool of_two, findings *f)
{
    for (int32_t rank = 0; r && rank < r->n && f->n < TREE_MAX_GUESSES; rank++)
        if (!has(f, f->n, r->token[rank]))
            f->found[f->n++] =
                (finding){.token = r->token[rank], .kind = kind_of_recycled(of_two, rank)};
}

/* The word at the end of the path to a node. */
static suffix_match match_of(const lookup_drafter *d, const token_tree *tree, int32_t node)
{
    if (node == 0)
        return suffix_automaton_end(&d->text);
    const tree_node *n = &tree->nodes[node];
    return suffix_automaton_step(&d->text, match_of(d, tree, n->parent), n->token);
}

/* The token before the node's own; -1: the timeline has none. */
static int32_t token_before(const lookup_drafter *d, const token_tree *tree, int32_t node)
{
    if (node > 0)
        return tree->nodes[tree->nodes[node].parent].token;
    return d->n_tokens > 1 ? d->tokens[d->n_tokens - 2] : -1;
}

static void find_all(const lookup_drafter *d, const token_tree *tree, int32_t node, findings *f)
{
    suffix_match m = match_of(d, tree, node);
    int32_t token = tree->nodes[node].token, before = token_before(d, tree, node);
    f->n = 0;
    for (int i = 0; i < MOST_SUFFIXES && m.length > 1 && f->n < TREE_MAX_GUESSES; i++) {
        find_after(d, m, f);
        m.state = d->text.state[m.state].link;
        m.length = d->text.state[m.state].length;
    }
    find_recycled(recycling_of_two(&d->rows, before, token), true, f);
    find_recycled(recycling_of_one(&d->rows, token), false, f);
    if (m.length == 1 && f->n < TREE_MAX_GUESSES)
        find_after(d, m, f);
}

static void drop_forbidden(grammar_cursor at, findings *f)
{
    int32_t n = 0;
    for (int32_t i = 0; i < f->n; i++)
        if (grammar_allows(at.grammar, at.state, f->found[i].token))
            f->found[n++] = f->found[i];
    f->n = n;
}

int32_t lookup_find(const lookup_drafter *d, const token_tree *tree, int32_t node,
                    lookup_guess guess[TREE_MAX_GUESSES])
{
    findings f;
    float sum = 0;
    int32_t n = 0;
    find_all(d, tree, node, &f);
    if (tree->grammar)
        drop_forbidden(tree_cursor(tree, node), &f);
    for (int32_t i = 0; i < f.n; i++)
        sum += worth(d, f.found[i].kind);
    for (int32_t i = 0; i < f.n; i++) {
        float confidence = worth(d, f.found[i].kind) / max_f32(sum, 1);
        int32_t at = n++;
        for (; at > 0 && confidence > guess[at - 1].confidence; at--)
            guess[at] = guess[at - 1];
        guess[at] = (lookup_guess){f.found[i].token, confidence, (uint8_t)f.found[i].kind};
    }
    return n;
}

/* ---- The drafter ---- */

static drey_status lookup_expand(drafter *base, token_tree *tree, const int32_t *nodes, int32_t n,
                                 drey_error *err)
{
    (void)err;
    lookup_drafter *d = (lookup_drafter *)base;
    for (int32_t i = 0; i < n; i++) {
        lookup_guess guess[TREE_MAX_GUESSES];
        tree_node *node = &tree->nodes[nodes[i]];
        int32_t n_guesses = lookup_find(d, tree, nodes[i], guess);
        for (int32_t k = 0; k < n_guesses; k++) {
            node->guess[k] = (candidate){guess[k].token, guess[k].confidence};
            d->kind_of[nodes[i]][k] = guess[k].kind;
        }
        node->n_guesses = (uint8_t)n_guesses;
        node->expanded = true;
    }
    return DREY_OK;
}

static int32_t lookup_peek(const drafter *base, const token_tree *tree, int32_t node,
                           candidate *out)
{
    lookup_guess guess[TREE_MAX_GUESSES];
    int32_t n = lookup_find((const lookup_drafter *)base, tree, node, guess);
    for (int32_t i = 0; i < n; i++)
        out[i] = (candidate){guess[i].token, guess[i].confidence};
    return n;
}

static void append(lookup_drafter *d, int32_t token);

/* Forgets a text that was expected to be repeated, which is in its way now. */
static void drop_input(lookup_drafter *d)
{
    int32_t n = d->n_tokens - d->n_input;
    memmove(d->tokens, d->tokens + d->n_input, (size_t)n * sizeof *d->tokens);
    suffix_automaton_clear(&d->text);
    d->n_tokens = d->n_input = 0;
    while (d->n_tokens < n)
        append(d, d->tokens[d->n_tokens]);
}

static void append(lookup_drafter *d, int32_t token)
{
    if (d->n_tokens == d->capacity && d->n_input > 0)
        drop_input(d);
    assert(d->n_tokens < d->capacity);
    d->tokens[d->n_tokens++] = token;
    suffix_automaton_add(&d->text, token);
}

/* Begins again: what was added cannot be taken out. The input may be what it was. */
static void begin_with(lookup_drafter *d, const int32_t *input, int32_t n)
{
    suffix_automaton_clear(&d->text);
    d->n_tokens = 0;
    d->n_input = n;
    while (d->n_tokens < n)
        append(d, input[d->n_tokens]);
}

static void lookup_take_input(drafter *base, const int32_t *ids, int32_t n)
{
    lookup_drafter *d = (lookup_drafter *)base;
    if (n > 0 || d->n_input > 0)
        begin_with(d, ids, n);
}

static drey_status lookup_begin(drafter *base, const int32_t *tokens, int32_t n, drey_error *err)
{
    lookup_drafter *d = (lookup_drafter *)base;
    if (n > d->capacity - d->n_input && n <= d->capacity)
        drop_input(d);
    if (n > d->capacity)
        FAIL(err, DREY_ERR_CONTEXT,
             "the text has %d tokens but the context holds %d: ask for a longer context", n,
             d->capacity);
    int32_t same = 0, known = d->n_tokens - d->n_input;
    while (same < min_i32(n, known) && d->tokens[d->n_input + same] == tokens[same])
        same++;
    if (same < known)
        begin_with(d, d->tokens, d->n_input);
    while (d->n_tokens < d->n_input + n)
        append(d, tokens[d->n_tokens - d->n_input]);
    return DREY_OK;
}

static void lookup_take_target_top(drafter *base, const token_tree *tree, int32_t node,
                                   const int32_t *tokens, int32_t n)
{
    lookup_drafter *d = (lookup_drafter *)base;
    recycling_keep(&d->rows, token_before(d, tree, node), tree->nodes[node].token, tokens,
                   min_i32(n, RECYCLED));
}

void lookup_follow(lookup_drafter *d, const token_tree *tree, const int32_t *path, int32_t n_path,
                   int32_t next)
{
    for (int32_t i = 0; i < n_path; i++)
        append(d, tree->nodes[path[i]].token);
    append(d, next);
}

/* Notes for the kinds of a node's guesses which token came. */
static void judge(lookup_drafter *d, const token_tree *tree, int32_t node, int32_t token)
{
    const tree_node *n = &tree->nodes[node];
    for (int32_t i = 0; i < n->n_guesses && !n->forced; i++)
        lookup_judge(d, d->kind_of[node][i], n->guess[i].token == token);
}

static void lookup_reroot(drafter *base, const token_tree *tree, const int32_t *path,
                          int32_t n_path, int32_t next, const int32_t *moved)
{
    lookup_drafter *d = (lookup_drafter *)base;
    for (int32_t i = 0; i <= n_path; i++)
        judge(d, tree, i ? path[i - 1] : 0, i < n_path ? tree->nodes[path[i]].token : next);
    for (int32_t i = 0; i < tree->n_nodes; i++)
        if (moved[i] >= 0) /* never after i */
            memcpy(d->kind_of[moved[i]], d->kind_of[i], sizeof d->kind_of[i]);
    lookup_follow(d, tree, path, n_path, next);
}

/* After the drafter itself: the automaton, the tables, the timeline. */
size_t drafter_lookup_bytes(int32_t capacity)
{
    size_t tokens = (size_t)capacity * sizeof(int32_t);
    return sizeof(lookup_drafter) + suffix_automaton_bytes(capacity) + recycling_bytes() + tokens;
}

static const drafter_listener listener = {.take_input = lookup_take_input,
                                          .take_target_top = lookup_take_target_top};

const drafter_class drafter_lookup_class = {.begin = lookup_begin,
                                            .expand = lookup_expand,
                                            .peek = lookup_peek,
                                            .listener = &listener,
                                            .reroot = lookup_reroot};

drafter *drafter_lookup_init(void *memory, int32_t capacity)
{
    assert(capacity > 0);
    lookup_drafter *d = memory;
    *d = (lookup_drafter){.base = {.class = &drafter_lookup_class, .wants_target_top = true},
                          .capacity = capacity};
    uint8_t *rest = (uint8_t *)(d + 1);
    suffix_automaton_init(&d->text, rest, capacity);
    rest += suffix_automaton_bytes(capacity);
    recycling_init(&d->rows, rest);
    d->tokens = (int32_t *)(void *)(rest + recycling_bytes());
    init_kinds(d);
    return &d->base;
}

/* ---- What others ask ---- */

static size_t session_bytes(const draft_source *src)
{
    return drafter_lookup_bytes(src->in.looked_up);
}

static drafter *make(draft_source *src, const drafter_context *context, void *memory)
{
    (void)context;
    return drafter_lookup_init(memory, src->in.looked_up);
}

static const tree_yield usual[DRAFT_YIELDS] = USUAL_LOOKUP_YIELDS;

const drafter_kind drafter_lookup = {.name = "lookup",
                                     .with = "lookup",
                                     .looks_up = true,
                                     .exit_source = DREY_EXIT_FROM_TEXT,
                                     .usual = usual,
                                     .session_bytes = session_bytes,
                                     .make = make};
