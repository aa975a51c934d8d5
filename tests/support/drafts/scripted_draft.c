/* A draft that knows the text: see scripted_draft.h. */
#include "support/drafts/scripted_draft.h"

#include "base/usual.h"
#include "draft/drafter.h"
#include "os/clock.h"

typedef struct scripted {
    drafter base;
    const scripted_text *text;
    int32_t root; /* its position */
    int32_t nodes[DRAFT_MAX_BATCH], n_nodes;
    int64_t left_ns; /* time left of the unfinished step */
} scripted;

static const scripted_text *known;

bool scripted_has(const scripted_text *t, int32_t position, int32_t token)
{
    return position >= 0 && position < t->n && t->ids[position] == token;
}

static uint32_t mixed(uint32_t x)
{
    x = (x ^ x >> 16) * 0x45d9f3bu;
    x = (x ^ x >> 16) * 0x45d9f3bu;
    return x ^ x >> 16;
}

/* Returns a number in [0, 1), a function of the seed and these. */
static double drawn(const scripted_text *t, int32_t position, uint32_t what)
{
    return mixed(mixed(t->seed + what) ^ (uint32_t)position) / 4294967296.0;
}

static bool on_the_text(const scripted *d, const token_tree *tree, int32_t node)
{
    for (; node > 0; node = tree->nodes[node].parent)
        if (!scripted_has(d->text, d->root + tree->nodes[node].depth, tree->nodes[node].token))
            return false;
    return true;
}

/* Some token that is not the text's. */
static int32_t other(const scripted_text *t, int32_t position, int32_t rank)
{
    int32_t right = position < t->n ? t->ids[position] : 0;
    return (right + 1 + (int32_t)(drawn(t, position, 7) * (t->n_vocab - 10)) + rank) % t->n_vocab;
}

static void guess(const scripted *d, token_tree *tree, int32_t node)
{
    enum { GUESSES = 3 };
    const scripted_text *t = d->text;
    int32_t position = d->root + tree->nodes[node].depth + 1;
    double p = drawn(t, position, 1) < 2.0 / 3 ? t->easy : t->hard, luck = drawn(t, position, 2);
    int32_t rank = luck < p ? 0 : luck < p + (1 - p) / 2 ? 1 : luck < p + 0.75 * (1 - p) ? 2 : -1;
    if (position >= t->n || !on_the_text(d, tree, node))
        rank = -1;
    tree_node *n = &tree->nodes[node];
    n->expanded = true;
    n->n_guesses = GUESSES;
    for (int32_t i = 0; i < GUESSES; i++)
        n->guess[i] = (candidate){i == rank ? t->ids[position] : other(t, position, i),
                                  (float)(i == 0   ? p
                                          : i == 1 ? (1 - p) / 2
                                                   : (1 - p) / 4)};
}

static void place(scripted *d, int32_t n)
{
    d->root = n - 1;
    d->n_nodes = 0;
}

static drey_status scripted_begin(drafter *base, const int32_t *tokens, int32_t n, drey_error *err)
{
    (void)tokens;
    (void)err;
    place((scripted *)base, n);
    return DREY_OK;
}

static drey_status scripted_start(drafter *base, const token_tree *tree, const int32_t *nodes,
                                  int32_t n, drey_error *err)
{
    scripted *d = (scripted *)base;
    (void)tree;
    (void)err;
    for (int32_t i = 0; i < n; i++)
        d->nodes[i] = nodes[i];
    d->n_nodes = n;
    d->left_ns = (int64_t)(1e9 * d->text->step_s * (1 + USUAL_STEP_NODE * (n - 1)));
    return DREY_OK;
}

static drey_status scripted_advance(drafter *base, token_tree *tree, int64_t until_ns, bool *done,
                                    drey_error *err)
{
    scripted *d = (scripted *)base;
    int64_t start = clock_ns(), now = start;
    (void)err;
    while (now - start < d->left_ns && (!until_ns || now < until_ns))
        now = clock_ns();
    d->left_ns -= now - start;
    *done = d->left_ns <= 0;
    for (int32_t i = 0; *done && i < d->n_nodes; i++)
        guess(d, tree, d->nodes[i]);
    return DREY_OK;
}

static drey_status scripted_expand(drafter *base, token_tree *tree, const int32_t *nodes, int32_t n,
                                   drey_error *err)
{
    bool done;
    scripted_start(base, tree, nodes, n, err);
    return scripted_advance(base, tree, 0, &done, err);
}

static void scripted_give_up(drafter *base)
{
    ((scripted *)base)->n_nodes = 0;
}

static void scripted_reroot(drafter *base, const token_tree *tree, const int32_t *path,
                            int32_t n_path, int32_t next, const int32_t *moved)
{
    scripted *d = (scripted *)base;
    (void)tree;
    (void)path;
    (void)next;
    (void)moved;
    place(d, d->root + n_path + 2);
}

static const drafter_steps steps = {scripted_start, scripted_advance, scripted_give_up};
static const drafter_class class = {
    .begin = scripted_begin, .expand = scripted_expand, .steps = &steps, .reroot = scripted_reroot};

static drey_status source_open(draft_source *src, drey_error *err)
{
    (void)err;
    src->out.resident_bytes = known->bytes;
    return DREY_OK;
}

static size_t session_bytes(const draft_source *src)
{
    (void)src;
    return sizeof(scripted);
}

static drafter *make(draft_source *src, const drafter_context *seat, void *memory)
{
    scripted *d = memory;
    (void)src;
    (void)seat;
    d->base.class = &class;
    d->text = known;
    return &d->base;
}

static const drafter_kind kind = {.name = "scripted",
                                  .with = "a draft that knows the text",
                                  .open = source_open,
                                  .session_bytes = session_bytes,
                                  .make = make};

const drafter_kind *scripted_kind(const scripted_text *t)
{
    known = t;
    return &kind;
}
