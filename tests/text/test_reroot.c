/* One tree across turns: what stays of it, in the tree, in the caches and in the draft, has
 * the very bits of what is built and computed from scratch below the new root. Texts are in
 * test_matrix.c. */
#include "draft/model_drafter.h"
#include "session/session.h"
#include "os/clock.h"
#include "state/cache.h"
#include "state/kv.h"
#include "support/tree_path.h"
#include "support/writing.h"

enum { N_CONTEXT = 160, N_PROMPT = 40, N_ROWS = 24, N_TEXT = 48 };

typedef struct bench {
    drey_model *target, *draft;
    engine_place at;
    drey_engine *engine;
    drey_session *session;
    int64_t n_parts; /* parts that steps were done in */
    rng r;
} bench;

static drey_model *open_toy(const char *name, int32_t n_layers)
{
    toy_options toy = toy_default();
    toy.architecture = "qwen2";
    toy.n_layers = n_layers;
    toy.n_embd = 128;
    toy.n_ff = 128;
    return toy_open(name, &toy);
}

static void open_bench(bench *b, drey_kv kv)
{
    temp_dir();
    *b = (bench){.target = open_toy("target.gguf", 3), .draft = open_toy("draft.gguf", 2)};
    b->r = rng_from(9);
    drey_engine_options o = plain_options(b->target, N_CONTEXT, 2);
    o.draft = b->draft;
    o.drafter = DREY_DRAFTER_MODEL;
    o.kv = kv;
    o.tree_nodes = 64;
    b->at = place_open(&o, &(engine_hooks){.untimed = true});
    b->engine = b->at.engine;
    b->session = b->at.session[0];
    MUST(sampler_init, &b->session->sampler, &(drey_sampling){.top_p = 1},
         b->engine->target.layout.shape.n_vocab, b->engine->kernels, &b->session->memory.arena);
}

static void close_bench(bench *b)
{
    place_close(&b->at);
    drey_model_close(&b->target);
    drey_model_close(&b->draft);
    temp_dir_remove();
}

static int32_t prompt_token(int32_t i)
{
    return (i * 37 + 5) % 256;
}

/* ---- The cache ---- */

static void compute(bench *b, const pass_row *rows, int32_t n, pass_head head)
{
    MUST(pass_rows, &b->session->target, rows, n, head);
}

static size_t side_bytes(const kv_store *kv)
{
    return kv_layer_bytes(kv, KV_KEYS) * (size_t)kv->store.shape.n_layers;
}

/* The prompt in a cache that holds zeros otherwise. */
static void start_cache(bench *b)
{
    int32_t tokens[N_PROMPT];
    for (int32_t i = 0; i < N_PROMPT; i++)
        tokens[i] = prompt_token(i);
    text_cache *cache = &b->session->target_cache;
    cache_clear(cache);
    const kv_store *kv = kv_of(cache);
    memset(kv->side[KV_KEYS].numbers, 0, side_bytes(kv));
    memset(kv->side[KV_VALUES].numbers, 0, side_bytes(kv));
    MUST(pass_prompt, &b->session->target, tokens, N_PROMPT, N_PROMPT, HEAD_NONE, NULL, NULL);
}

/* Zeros, which the last slot still holds, for the slots that nothing uses any more. */
static void clear_unused(text_cache *cache)
{
    const kv_store *kv = kv_of(cache);
    const store_shape *s = &kv->store.shape;
    const int32_t used = cache_end(cache) + cache_pending(cache), last = kv->store.size.n_slots - 1;
    for (int32_t head = 0; head < s->n_layers * s->n_heads; head++) {
        uint8_t *k = kv_at(kv, KV_KEYS, 0, head), *v = kv_at(kv, KV_VALUES, 0, head);
        for (int32_t slot = used; slot < last; slot++) {
            kv_move_key(s->format, k, slot, last, s->k_dim);
            kv_move_value(s->format, v, slot, last, s->v_dim);
        }
    }
}

/* Rows with random parents, so that long branches occur too. */
static void random_rows(rng *r, pass_row *rows)
{
    for (int32_t i = 0; i < N_ROWS; i++) {
        rows[i].parent = i && rng_below(r, 2) ? i - 1 : rng_below(r, i + 1) - 1;
        rows[i].token = rng_below(r, 256);
    }
}

typedef struct choice { /* rows that are committed, and rows that are kept below their end */
    int32_t path[N_ROWS], n_path;
    int32_t keep[N_ROWS], n_keep;
    int32_t place[N_ROWS]; /* index of a kept row among those kept; -1: not kept */
} choice;

static choice choose(rng *r, const pass_row *rows, int32_t last)
{
    choice c = {.n_path = 0};
    for (int32_t i = last; i >= 0; i = rows[i].parent)
        c.n_path++;
    for (int32_t i = last, n = c.n_path; i >= 0; i = rows[i].parent)
        c.path[--n] = i;
    for (int32_t i = 0; i < N_ROWS; i++) {
        int32_t parent = rows[i].parent;
        bool below = i > last && (parent == last || (parent > last && c.place[parent] >= 0));
        c.place[i] = below && rng_below(r, 4) ? c.n_keep : -1;
        if (c.place[i] >= 0)
            c.keep[c.n_keep++] = i;
    }
    return c;
}

/* A pass over the path and one over what was kept. */
static void compute_choice(bench *b, const pass_row *rows, const choice *c)
{
    pass_row kept[N_ROWS];
    for (int32_t i = 0; i < c->n_path; i++) {
        compute(b, &(pass_row){rows[c->path[i]].token, -1}, 1, HEAD_NONE);
        cache_commit(&b->session->target_cache, NULL, 1);
    }
    for (int32_t i = 0; i < c->n_keep; i++) {
        kept[i] = rows[c->keep[i]];
        kept[i].parent = kept[i].parent >= 0 ? c->place[kept[i].parent] : -1;
    }
    if (c->n_keep)
        compute(b, kept, c->n_keep, HEAD_NONE);
}

/* The whole state, to compare: keys, values, pending rows, and the logits of one more row. */
typedef struct snapshot {
    uint8_t *keys, *values;
    int32_t n_committed, n_pending, parent[N_ROWS], depth[N_ROWS];
    float *logits;
} snapshot;

static void take_snapshot(bench *b, snapshot *s)
{
    text_cache *cache = &b->session->target_cache;
    const kv_store *kv = kv_of(cache);
    size_t bytes = side_bytes(kv);
    size_t row = (size_t)b->engine->target.layout.shape.n_vocab * sizeof(float);
    assert_true(cache_is_valid(cache));
    clear_unused(cache);
    *s = (snapshot){.keys = malloc(bytes), .values = malloc(bytes), .logits = malloc(row)};
    assert_true(s->keys && s->values && s->logits);
    memcpy(s->keys, kv->side[KV_KEYS].numbers, bytes);
    memcpy(s->values, kv->side[KV_VALUES].numbers, bytes);
    s->n_committed = cache_end(cache);
    s->n_pending = cache_pending(cache);
    memcpy(s->parent, cache->parent, (size_t)cache_pending(cache) * sizeof(int32_t));
    memcpy(s->depth, cache->depth, (size_t)cache_pending(cache) * sizeof(int32_t));
    compute(b, &(pass_row){77, cache_pending(cache) - 1}, 1, HEAD_LAST);
    memcpy(s->logits, b->session->target.ws->logits, row);
}

static void free_snapshot(snapshot *s)
{
    free(s->keys);
    free(s->values);
    free(s->logits);
}

static void compare_snapshots(const bench *b, const snapshot *x, const snapshot *y)
{
    size_t bytes = side_bytes(kv_of(&b->session->target_cache));
    assert_int_equal(x->n_committed, y->n_committed);
    assert_int_equal(x->n_pending, y->n_pending);
    for (int32_t i = 0; i < x->n_pending; i++) {
        assert_int_equal(x->parent[i], y->parent[i]);
        assert_int_equal(x->depth[i], y->depth[i]);
    }
    assert_memory_equal(x->keys, y->keys, bytes);
    assert_memory_equal(x->values, y->values, bytes);
    assert_memory_equal(x->logits, y->logits,
                        (size_t)b->engine->target.layout.shape.n_vocab * sizeof(float));
}

static void check_cache(drey_kv kv)
{
    bench b;
    open_bench(&b, kv);
    int32_t kept = 0;
    for (int round = 0; round < 16; round++) {
        pass_row rows[N_ROWS];
        random_rows(&b.r, rows);
        /* -1: nothing is accepted, and of what hangs on the committed end some rows stay. */
        choice c = choose(&b.r, rows, round % 8 == 0 ? -1 : rng_below(&b.r, N_ROWS / 2));
        snapshot rerooted, computed;
        start_cache(&b);
        compute(&b, rows, N_ROWS, HEAD_NONE);
        cache_reroot(&b.session->target_cache, c.path, c.n_path, c.keep, c.n_keep);
        take_snapshot(&b, &rerooted);
        start_cache(&b);
        compute_choice(&b, rows, &c);
        take_snapshot(&b, &computed);
        compare_snapshots(&b, &rerooted, &computed);
        free_snapshot(&rerooted);
        free_snapshot(&computed);
        kept += c.n_keep;
    }
    assert_true(kept > 40);
    close_bench(&b);
}

TEST(the_cache)
{
    check_cache(DREY_KV_F16);
    check_cache(DREY_KV_Q8_0);
}

/* ---- The draft ---- */

typedef struct text {
    int32_t token[N_CONTEXT];
    int32_t n;
} text;

static text prompt(void)
{
    text t = {.n = N_PROMPT};
    for (int32_t i = 0; i < N_PROMPT; i++)
        t.token[i] = prompt_token(i);
    return t;
}

static void begin(drafter *d, token_tree *tree, const text *t)
{
    drey_error err = {0};
    must(d->class->begin(d, t->token, t->n, &err), &err);
    tree_reset(tree, t->token[t->n - 1]);
}

/* Some nodes that are not expanded yet, at random. */
static int32_t pick(rng *r, const token_tree *tree, int32_t *nodes)
{
    int32_t n = 0, most = 1 + rng_below(r, DRAFT_MAX_BATCH);
    for (int32_t i = 0; i < tree->n_nodes && n < most; i++)
        if (!tree->nodes[i].expanded && rng_below(r, 3))
            nodes[n++] = i;
    return n;
}

/* A step at once, or in parts as small as the clock allows, which may follow one that was
 * given up. */
static void expand(bench *b, token_tree *tree, const int32_t *nodes, int32_t n)
{
    drafter *d = b->session->drafter;
    drey_error err = {0};
    int32_t n_pending = cache_pending(&b->session->draft_cache);
    if (rng_below(&b->r, 3) == 0) {
        must(d->class->expand(d, tree, nodes, n, &err), &err);
        return;
    }
    if (rng_below(&b->r, 3) == 0) {
        bool done = false;
        must(d->class->steps->start(d, tree, nodes, n, &err), &err);
        for (int parts = rng_below(&b->r, 4); parts > 0 && !done; parts--)
            must(d->class->steps->advance(d, tree, clock_ns() + 1, &done, &err), &err);
        assert_false(done);
        d->class->steps->give_up(d);
        assert_int_equal(cache_pending(&b->session->draft_cache), nodes[0] == 0 ? 0 : n_pending);
        for (int32_t i = 0; i < n; i++)
            assert_true(!tree->nodes[nodes[i]].expanded && tree->nodes[nodes[i]].n_guesses == 0);
    }
    int parts = 0;
    must(d->class->steps->start(d, tree, nodes, n, &err), &err);
    for (bool done = false; !done; parts++)
        must(d->class->steps->advance(d, tree, clock_ns() + 20000, &done, &err), &err);
    b->n_parts += parts;
}

static void grow_at_random(bench *b, token_tree *tree, int steps)
{
    for (; steps > 0 && tree->n_nodes < 50; steps--) {
        int32_t nodes[DRAFT_MAX_BATCH], n = pick(&b->r, tree, nodes);
        if (n == 0)
            continue;
        expand(b, tree, nodes, n);
        for (int32_t i = 0; i < n; i++) {
            const tree_node *node = &tree->nodes[nodes[i]];
            assert_true(node->expanded && node->n_guesses > 0);
            for (int32_t j = rng_below(&b->r, 3); j < node->n_guesses && j < 4; j++)
                tree_push(tree, nodes[i], node->guess[j].token, node->guess[j].confidence);
        }
    }
}

/* Accepts a random branch, and then says what a child of its end does (most often one that has been
 * expanded) or something else. */
static void accept_at_random(rng *r, const token_tree *tree, accepted *a)
{
    int32_t last = rng_below(r, 3) ? 0 : rng_below(r, tree->n_nodes);
    a->n_path = tree_nodes_to(tree, last, a->path);
    a->next = rng_below(r, 256);
    for (int32_t i = last + 1; i < tree->n_nodes; i++)
        if (tree->nodes[i].parent == last && rng_below(r, tree->nodes[i].expanded ? 6 : 2))
            a->next = tree->nodes[i].token;
}

static void reroot(drafter *d, token_tree *tree, const accepted *a)
{
    int32_t moved[TREE_MAX_NODES];
    tree_moves(tree, a->path, a->n_path, a->next, moved);
    d->class->reroot(d, tree, a->path, a->n_path, a->next, moved);
    tree_reroot(tree, a->next, moved);
}

/* The tree once more, by a draft that has computed nothing yet: every guess has the same bits. */
static void compare_with_a_fresh_draft(bench *b, const token_tree *tree, const text *t)
{
    drafter *d = b->session->drafter;
    drey_error err = {0};
    static token_tree fresh;
    cache_clear(&b->session->draft_cache);
    begin(d, &fresh, t);
    for (int32_t i = 0; i < tree->n_nodes; i++) {
        const tree_node *want = &tree->nodes[i];
        if (i > 0)
            assert_int_equal(tree_push(&fresh, want->parent, want->token, want->confidence), i);
        if (!want->expanded)
            continue;
        must(d->class->expand(d, &fresh, &i, 1, &err), &err);
        const tree_node *got = &fresh.nodes[i];
        assert_int_equal(got->n_guesses, want->n_guesses);
        for (int32_t j = 0; j < want->n_guesses; j++) {
            assert_int_equal(got->guess[j].token, want->guess[j].token);
            assert_true(got->guess[j].confidence == want->guess[j].confidence);
        }
    }
}

static void check_draft(drey_kv kv)
{
    bench b;
    open_bench(&b, kv);
    int n_stayed = 0;
    for (int round = 0; round < 12; round++) {
        static token_tree tree;
        text t = prompt();
        begin(b.session->drafter, &tree, &t);
        for (int turn = 0; turn < 6; turn++) {
            grow_at_random(&b, &tree, 2 + rng_below(&b.r, 8));
            accepted a;
            accept_at_random(&b.r, &tree, &a);
            if (t.n + a.n_path + 1 >= N_CONTEXT - 40)
                break;
            t.n += tree_path(&tree, a.n_path ? a.path[a.n_path - 1] : 0, t.token + t.n);
            t.token[t.n++] = a.next;
            reroot(b.session->drafter, &tree, &a);
            int32_t n_expanded = 0;
            for (int32_t i = 0; i < tree.n_nodes; i++)
                n_expanded += tree.nodes[i].expanded;
            assert_int_equal(cache_pending(&b.session->draft_cache),
                             n_expanded); /* none is dropped */
            assert_true(cache_is_valid(&b.session->draft_cache));
            n_stayed += n_expanded;
        }
        grow_at_random(&b, &tree, 3);
        compare_with_a_fresh_draft(&b, &tree, &t);
    }
    assert_true(n_stayed > 60 && b.n_parts > 100);
    close_bench(&b);
}

/* After turns without drafting, the draft computes what it has missed, in chunks. */
TEST(a_draft_that_catches_up)
{
    bench b;
    open_bench(&b, DREY_KV_F16);
    ((model_drafter *)b.session->drafter)->chunk = CATCH_UP + 1; /* several of them */
    drafter *d = b.session->drafter;
    for (int32_t n_missed = CATCH_UP - 2; n_missed < 4 * CATCH_UP; n_missed += 3) {
        static token_tree tree;
        text t = prompt();
        begin(d, &tree, &t);
        for (int32_t i = 0; i < n_missed; i++) {
            accepted a = {.next = prompt_token(i + 99)};
            reroot(d, &tree, &a);
            t.token[t.n++] = a.next;
        }
        expand(&b, &tree, &(int32_t){0}, 1);
        assert_int_equal(
            cache_end(&b.session->draft_cache) + cache_pending(&b.session->draft_cache), t.n);
        grow_at_random(&b, &tree, 3);
        compare_with_a_fresh_draft(&b, &tree, &t);
    }
    close_bench(&b);
}

/* A node that the draft's cache had no room for is asked once more where it becomes the root. */
TEST(a_cache_without_room)
{
    bench b;
    open_bench(&b, DREY_KV_F16);
    text_cache *cache = &b.session->draft_cache;
    int32_t most = cache->max_pending;
    static token_tree tree;
    text t = prompt();
    begin(b.session->drafter, &tree, &t);
    expand(&b, &tree, &(int32_t){0}, 1);
    accepted a = {.next = tree.nodes[0].guess[0].token};
    int32_t child = tree_push(&tree, 0, a.next, 0.5f);
    cache->max_pending = cache_pending(cache);
    must(b.session->drafter->class->expand(b.session->drafter, &tree, &child, 1, NULL), NULL);
    assert_true(tree.nodes[child].expanded && tree.nodes[child].n_guesses == 0);
    cache->max_pending = most;
    reroot(b.session->drafter, &tree, &a);
    t.token[t.n++] = a.next;
    assert_int_equal(tree.n_nodes, 1);
    assert_false(tree.nodes[0].expanded);
    expand(&b, &tree, &(int32_t){0}, 1);
    compare_with_a_fresh_draft(&b, &tree, &t);
    close_bench(&b);
}

/* A prompt that is read in parts, and by an expansion where that is not done: the same guesses. */
TEST(a_prompt_in_parts)
{
    bench b;
    drey_error err = {0};
    open_bench(&b, DREY_KV_F16);
    ((model_drafter *)b.session->drafter)->chunk = CATCH_UP + 1;
    drafter *d = b.session->drafter;
    for (int32_t n_parts = 0; n_parts < 12; n_parts++) {
        static token_tree tree;
        text t = prompt();
        cache_clear(&b.session->draft_cache);
        must(d->class->begin(d, t.token, t.n - 5, &err), &err);
        draft_reading how;
        for (int32_t i = 0; i < n_parts && d->class->reader->unread(d); i++)
            must(d->class->reader->read(d, clock_ns() + (i % 3 ? 1 : 200000), &how, &err), &err);
        if (n_parts % 2)
            d->class->steps->give_up(d);
        while (n_parts % 2 == 0 && d->class->reader->unread(d))
            must(d->class->reader->read(d, 0, &how, &err), &err);
        int32_t n_read = cache_end(&b.session->draft_cache);
        assert_true(n_read < t.n - 5 && (n_parts % 2 || n_read + CATCH_UP >= t.n - 5));
        must(d->class->begin(d, t.token, t.n, &err), &err);
        assert_int_equal(cache_end(&b.session->draft_cache), n_read); /* what was read stays */
        tree_reset(&tree, t.token[t.n - 1]);
        expand(&b, &tree, &(int32_t){0}, 1);
        compare_with_a_fresh_draft(&b, &tree, &t);
    }
    close_bench(&b);
}

TEST(the_draft)
{
    check_draft(DREY_KV_F16);
    check_draft(DREY_KV_Q8_0);
}

/* ---- What a policy hears ---- */

/* The tree policy, listening. */
typedef struct listener {
    draft_policy base;
    draft_policy *inner;
    int n_turns;
    text heard; /* the first token came from the prompt's last row */
} listener;

static int32_t listener_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                             int32_t *nodes)
{
    draft_policy *inner = ((listener *)p)->inner;
    return inner->class->next(inner, tree, max_depth, nodes);
}

static void listener_push(draft_policy *p, token_tree *tree, int32_t node)
{
    draft_policy *inner = ((listener *)p)->inner;
    inner->class->push(inner, tree, node);
}

static void listener_observe(draft_policy *p, const token_tree *tree, const int32_t *path,
                             int32_t n_path, int32_t next)
{
    listener *l = (listener *)p;
    int32_t parent = 0;
    assert_int_equal(tree->nodes[0].token, l->heard.token[l->heard.n - 1]);
    for (int32_t i = 0; i < n_path; parent = path[i++]) {
        assert_int_equal(tree->nodes[path[i]].parent, parent);
        assert_true(tree->nodes[path[i]].submitted);
        l->heard.token[l->heard.n++] = tree->nodes[path[i]].token;
    }
    l->heard.token[l->heard.n++] = next;
    l->n_turns++;
}

TEST(a_policy_hears_of_each_turn)
{
    static const policy_class class = {.bytes = sizeof(listener),
                                       .next = listener_next,
                                       .push = listener_push,
                                       .observe = listener_observe};
    bench b;
    open_bench(&b, DREY_KV_F16);
    listener l;
    policy_init(&l, &class, b.session->policy->size, 0);
    l.inner = b.session->policy;
    l.n_turns = 0;
    const text t = prompt();
    static writing written;
    b.session->policy = &l.base;
    /* What the prompt's last row says is no turn. */
    writing_continue(&written, b.session, t.token, (size_t)t.n, 1, NULL);
    assert_int_equal(l.n_turns, 0);
    l.heard = (text){.token = {written.ids[0]}, .n = 1};
    writing_continue(&written, b.session, NULL, 0, N_TEXT, NULL);
    assert_int_equal(l.n_turns, written.stats.n_passes);
    assert_true(l.n_turns > 3 && written.stats.accepted > 3);
    assert_int_equal(l.heard.n, written.n_ids);
    assert_memory_equal(l.heard.token, written.ids, sizeof(int32_t) * (size_t)written.n_ids);
    close_bench(&b);
}
