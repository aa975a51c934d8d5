/* The n-gram drafter: the text so far as its own model.
 *
 * Programs, edits and quotations repeat themselves. To guess what follows a path (the timeline plus
 * the branch drafted so far) it looks for earlier places in the timeline where the path's last 4
 * tokens stood; if there are none, the last 3, then 2, else it has no guess. The tokens that
 * followed there are the candidates: the most frequent first, the most recent first among equals.
 *
 * Confidence = count / (total + 2 / (m - 1)), where the candidate followed in `count` of the
 * `total` places looked at (at most MAX_PLACES, the most recent ones), and m is the number of
 * tokens that the best of those places shares with the path, up to MAX_SHARED. One place that
 * shares 2 tokens gives 1/3, one that shares 4 gives 0.6, one that shares 16 gives 0.88.
 *
 * For every n an index of hash chains over the timeline: head[n][hash] is the latest place whose n
 * tokens before it have this hash, previous[n][place] the one before. A place is the position of
 * the token that follows. All arrays are sized when it is opened; the longest timeline bounds them.
 *
 *        position    0   1   2   3   4   5   6          hash("a b") -> 5 -> 2 -> 0 (none)
 *        token       a   b   x   a   b   y   z
 *        place               2           5 */
#include "draft/drafter.h"

#include <assert.h>
#include <string.h>

enum {
    SHORTEST = 2,
    LONGEST = 4,
    N_LENGTHS = LONGEST - SHORTEST + 1,
    MAX_SHARED = 16, /* longer agreement says nothing more */
    MAX_PLACES = 64,
    MAX_STEPS = 1024 /* along a chain: other n-grams may share the hash */
};

typedef struct ngram_index {
    int32_t *head;     /* [n_heads]; 0: none (no n-gram ends before position 0) */
    int32_t *previous; /* [capacity] */
} ngram_index;

typedef struct ngram_drafter {
    drafter base;
    int32_t capacity, n_tokens;
    uint32_t head_mask; /* n_heads - 1, n_heads a power of two */
    int32_t *tokens;    /* [capacity]: the timeline, the root last */
    ngram_index index[N_LENGTHS];
} ngram_drafter;

typedef struct continuation {
    int32_t token, count;
} continuation;

/* What followed the places found, in order of the most recent occurrence. */
typedef struct findings {
    continuation next[MAX_PLACES];
    int32_t n_next;
    int32_t n_places;
    int32_t shared; /* tokens that the best place shares with the path */
} findings;

/* The end of a path, last token first: tail[0] is the node's own. */
typedef struct path_tail {
    int32_t token[MAX_SHARED];
    int32_t n;
} path_tail;

/* Of last[0], last[step], ... last[(n - 1) * step]: the n-gram's tokens from its end. The timeline
 * is read with step -1, a path_tail with step 1. */
static uint32_t hash_backwards(const int32_t *last, int step, int n)
{
    uint64_t h = (uint64_t)n;
    for (int i = 0; i < n; i++)
        h = (h ^ (uint32_t)last[i * step]) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(h >> 32);
}

static void append(ngram_drafter *d, int32_t token)
{
    assert(d->n_tokens < d->capacity);
    int32_t place = d->n_tokens++;
    d->tokens[place] = token;
    for (int n = SHORTEST; n <= LONGEST && n <= place; n++) {
        ngram_index *index = &d->index[n - SHORTEST];
        uint32_t slot = hash_backwards(&d->tokens[place - 1], -1, n) & d->head_mask;
        index->previous[place] = index->head[slot];
        index->head[slot] = place;
    }
}

static path_tail tail_of(const ngram_drafter *d, const token_tree *tree, int32_t node)
{
    path_tail tail = {.n = 0};
    for (; node > 0 && tail.n < MAX_SHARED; node = tree->nodes[node].parent)
        tail.token[tail.n++] = tree->nodes[node].token;
    for (int32_t i = d->n_tokens - 1; i >= 0 && tail.n < MAX_SHARED; i--)
        tail.token[tail.n++] = d->tokens[i];
    return tail;
}

/* How many tokens before `place` equal the tail's, going backwards. */
static int32_t shared_tokens(const ngram_drafter *d, int32_t place, const path_tail *tail)
{
    int32_t n = 0;
    while (n < tail->n && n < place && d->tokens[place - 1 - n] == tail->token[n])
        n++;
    return n;
}

static void count_continuation(findings *f, int32_t token)
{
    int32_t i = 0;
    while (i < f->n_next && f->next[i].token != token)
        i++;
    if (i == f->n_next)
        f->next[f->n_next++] = (continuation){.token = token};
    f->next[i].count++;
}

static void look_up(const ngram_drafter *d, const path_tail *tail, int n, findings *f)
{
    *f = (findings){0};
    if (tail->n < n)
        return;
    const ngram_index *index = &d->index[n - SHORTEST];
    int32_t place = index->head[hash_backwards(tail->token, 1, n) & d->head_mask];
    for (int steps = 0; place > 0 && f->n_places < MAX_PLACES && steps < MAX_STEPS; steps++) {
        int32_t shared = shared_tokens(d, place, tail);
        if (shared >= n) { /* else another n-gram of the same hash */
            f->n_places++;
            if (shared > f->shared)
                f->shared = shared;
            count_continuation(f, d->tokens[place]);
        }
        place = index->previous[place];
    }
}

/* The most frequent continuation that is left; the most recent among equals. */
static continuation *best_left(findings *f)
{
    continuation *best = NULL;
    for (int32_t i = 0; i < f->n_next; i++) {
        if (f->next[i].count > 0 && (!best || f->next[i].count > best->count))
            best = &f->next[i];
    }
    return best;
}

static void expand_node(const ngram_drafter *d, token_tree *tree, int32_t i)
{
    tree_node *node = &tree->nodes[i];
    path_tail tail = tail_of(d, tree, i);
    findings f = {0};
    for (int n = LONGEST; n >= SHORTEST && f.n_places == 0; n--)
        look_up(d, &tail, n, &f);
    node->expanded = true;
    while (node->n_guesses < TREE_MAX_GUESSES) {
        continuation *best = best_left(&f);
        if (!best)
            break;
        float doubt = 2.0f / (float)(f.shared - 1);
        float confidence = (float)best->count / ((float)f.n_places + doubt);
        node->guess[node->n_guesses++] =
            (candidate){.token = best->token, .confidence = confidence};
        best->count = 0;
    }
}

static drey_status ngram_expand(drafter *base, token_tree *tree, const int32_t *nodes, int32_t n,
                                drey_error *err)
{
    (void)err;
    for (int32_t i = 0; i < n; i++)
        expand_node((const ngram_drafter *)base, tree, nodes[i]);
    return DREY_OK;
}

static drey_status ngram_begin(drafter *base, const int32_t *tokens, int32_t n, drey_error *err)
{
    ngram_drafter *d = (ngram_drafter *)base;
    if (n > d->capacity)
        FAIL(err, DREY_ERR_CONTEXT,
             "the text has %d tokens but the context holds %d: ask for a longer context", n,
             d->capacity);
    for (int i = 0; i < N_LENGTHS; i++)
        memset(d->index[i].head, 0, ((size_t)d->head_mask + 1) * sizeof(int32_t));
    d->n_tokens = 0;
    for (int32_t i = 0; i < n; i++)
        append(d, tokens[i]);
    return DREY_OK;
}

static void ngram_reroot(drafter *base, const token_tree *tree, const int32_t *path, int32_t n_path,
                         int32_t next, const int32_t *moved)
{
    (void)moved; /* nothing is remembered of nodes */
    ngram_drafter *d = (ngram_drafter *)base;
    for (int32_t i = 0; i < n_path; i++)
        append(d, tree->nodes[path[i]].token);
    append(d, next);
}

static uint32_t heads_for(int32_t capacity)
{
    uint32_t n = 16;
    while (n < (uint32_t)capacity)
        n *= 2;
    return n;
}

static size_t ngram_bytes(int32_t capacity)
{
    size_t per_index = (size_t)heads_for(capacity) + (size_t)capacity;
    return sizeof(ngram_drafter) +
           sizeof(int32_t) * ((size_t)capacity + (size_t)N_LENGTHS * per_index);
}

const drafter_class drafter_ngram_class = {
    .begin = ngram_begin, .expand = ngram_expand, .reroot = ngram_reroot, .bytes = ngram_bytes};

drafter *drafter_ngram_init(void *memory, int32_t capacity)
{
    assert(capacity > 0);
    ngram_drafter *d = memory;
    *d = (ngram_drafter){.base.class = &drafter_ngram_class,
                         .capacity = capacity,
                         .head_mask = heads_for(capacity) - 1};
    int32_t *rest = (int32_t *)(d + 1);
    d->tokens = rest;
    rest += capacity;
    for (int i = 0; i < N_LENGTHS; i++) {
        d->index[i].head = rest;
        rest += (size_t)d->head_mask + 1;
        d->index[i].previous = rest;
        rest += capacity;
    }
    return &d->base;
}
