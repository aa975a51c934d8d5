/* Passes that are stopped at a layer, and rows that later passes carry on: keys, values and logits
 * have the bits of passes that went to their end, for any layers, trees, sessions, budgets, tiers
 * and disks. Looks between layers change nothing, and a pass that is stopped reads nothing more. */
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "common/num.h"
#include "session/session.h"
#include "state/cache.h"
#include "state/kv.h"
#include "support/scene.h"

enum {
    N_LAYERS = 5,
    N_PROMPT = 70,
    N_TEXT = 14,
    MAX_DEFERRED = 8,
    MAX_TREE = 14,
    MAX_SESSIONS = 3,
    MAX_VOCAB = 2048,
    WIDTH = 256
};

typedef struct bench_options {
    const char *architecture;
    uint32_t type;
    const char *tier;
    double streamed; /* share of the weights that passes read */
    int32_t n_threads, n_sessions;
    bool slow_disk;
} bench_options;

typedef struct bench {
    drey_model *model;
    drey_engine *engine;
    drey_session *session[MAX_SESSIONS];
    bool slow;
    _Atomic bool broken; /* the disk */
    _Atomic uint32_t n_reads;
} bench;

static int disk(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    bench *b = user;
    uint64_t seed = offset + atomic_fetch_add(&b->n_reads, 1);
    if (b->slow)
        nanosleep(&(struct timespec){.tv_nsec = (long)(toy_random(&seed) % 300000)}, NULL);
    return atomic_load(&b->broken) ? EIO : 0;
}

static void open_bench(bench *b, const bench_options *options)
{
    toy_options toy = toy_default();
    toy.architecture = options->architecture;
    toy.type = options->type;
    toy.biases = true;
    toy.n_layers = N_LAYERS;
    toy.n_embd = WIDTH;
    toy.n_ff = 512;
    *b = (bench){.slow = options->slow_disk, .model = toy_open("model.gguf", &toy)};
    drey_engine_options o = plain_options(b->model, 200, options->n_threads);
    o.n_sessions = options->n_sessions;
    o.cpu_tier = options->tier;
    o.read_bytes = DREY_MIN_READ_BYTES;
    engine_hooks hooks = {.least_logit_rows = MAX_SESSIONS * MAX_TREE,
                          .deferred_rows = MAX_DEFERRED,
                          .set_share = options->streamed > 0,
                          .share = 1 - options->streamed,
                          .fault = disk,
                          .fault_user = b};
    MUST(engine_open, &b->engine, &o, &hooks);
    for (int32_t i = 0; i < options->n_sessions; i++)
        MUST(drey_session_open, &b->session[i], b->engine);
    assert_true(b->engine->target.layout.shape.n_vocab <= MAX_VOCAB);
}

static void close_bench(bench *b)
{
    for (int i = 0; i < MAX_SESSIONS; i++)
        drey_session_close(&b->session[i]);
    drey_engine_close(&b->engine);
    drey_model_close(&b->model);
}

static runner *runner_of(bench *b)
{
    return &b->session[0]->target;
}

static size_t logits_bytes(const bench *b)
{
    return (size_t)b->engine->target.layout.shape.n_vocab * sizeof(float);
}

static int32_t text_token(int32_t i)
{
    return (i * 53 + 17) % 256;
}

/* Back to the prompt that every text has; computes it where it is not there. */
static void start(drey_session *s)
{
    int32_t tokens[N_PROMPT];
    for (int32_t i = 0; i < N_PROMPT; i++)
        tokens[i] = (i * 37 + 5) % 256;
    text_cache *cache = &s->target_cache;
    if (cache_end(cache) < N_PROMPT)
        MUST(pass_prompt, &s->target, tokens, N_PROMPT, 16, HEAD_NONE, NULL, NULL);
    deferred_cut(&s->deferred, cache_end(cache) - N_PROMPT);
    assert_int_equal(cache_cut(cache, N_PROMPT), N_PROMPT);
    assert_int_equal(s->deferred.n, 0);
}

/* Results of full passes, token by token. */
typedef struct answer {
    float logits[N_TEXT][MAX_VOCAB];
    float hidden[N_TEXT][WIDTH];
    kv_store kv; /* its numbers are copies */
} answer;

static size_t side_bytes(const kv_store *kv, int32_t side)
{
    return kv_layer_bytes(kv, side) * (size_t)kv->store.shape.n_layers;
}

static void make_answer(bench *b, answer *a)
{
    drey_session *s = b->session[0];
    start(s);
    for (int32_t i = 0; i < N_TEXT; i++) {
        MUST(pass_rows, &s->target, &(pass_row){text_token(i), -1}, 1, HEAD_ALL);
        memcpy(a->logits[i], s->target.ws->logits, logits_bytes(b));
        memcpy(a->hidden[i], s->target.ws->y, sizeof a->hidden[i]);
        cache_commit(&s->target_cache, NULL, 1);
    }
    const kv_store *kv = kv_of(&s->target_cache);
    a->kv = *kv;
    for (int32_t side = 0; side < KV_SIDES; side++) {
        a->kv.side[side].numbers = malloc(side_bytes(kv, side));
        memcpy(a->kv.side[side].numbers, kv->side[side].numbers, side_bytes(kv, side));
    }
}

static void free_answer(answer *a)
{
    for (int32_t side = 0; side < KV_SIDES; side++)
        free(a->kv.side[side].numbers);
}

typedef void move_slot(kv_format format, uint8_t *side, int32_t to, int32_t from, int32_t dim);

/* A slot's numbers, alone in a group of zeros: slots of a group are interleaved. */
static const uint8_t *slot_alone(const store_shape *shape, int32_t side, const uint8_t *head,
                                 int32_t slot, uint8_t *groups)
{
    move_slot *move = side == KV_KEYS ? kv_move_key : kv_move_value;
    size_t bytes = kv_bytes(shape, side, KV_GROUP);
    memcpy(groups, head + (size_t)(slot / KV_GROUP) * bytes, bytes);
    memset(groups + bytes, 0, bytes);
    move(shape->format, groups, KV_GROUP, slot % KV_GROUP,
         side == KV_KEYS ? shape->k_dim : shape->v_dim);
    return groups + bytes;
}

/* Positions [0, n) of all heads. */
static void assert_same_cache(const text_cache *cache, const answer *a, int32_t n)
{
    const kv_store *kv = kv_of(cache);
    const store_shape *shape = &kv->store.shape;
    size_t most =
        max_size(kv_bytes(shape, KV_KEYS, KV_GROUP), kv_bytes(shape, KV_VALUES, KV_GROUP));
    uint8_t *one = malloc(2 * most), *other = malloc(2 * most);
    assert_true(cache_is_valid(cache) && cache_end(cache) == n);
    for (int32_t side = 0; side < KV_SIDES; side++)
        for (int32_t head = 0; head < shape->n_layers * shape->n_heads; head++)
            for (int32_t i = 0; i < n; i++)
                assert_memory_equal(slot_alone(shape, side, kv_at(kv, side, 0, head), i, one),
                                    slot_alone(shape, side, kv_at(&a->kv, side, 0, head), i, other),
                                    kv_bytes(shape, side, KV_GROUP));
    free(one);
    free(other);
}

/* ---- Writing a text ---- */

/* A session that writes the text: each pass takes a tree, of which the text's next tokens count. */
typedef struct writer {
    drey_session *s;
    pass_row rows[MAX_TREE];
    int32_t n, path[MAX_TREE], n_path;
    int32_t done; /* tokens of the text that are committed */
    int32_t from; /* the first of them that is deferred */
} writer;

static void begin_writing(writer *w, drey_session *s)
{
    start(s);
    *w = (writer){.s = s};
}

/* A tree of up to n nodes, of which a path of up to `most` is the text; wrong nodes anywhere. */
static void offer_tree(writer *w, rng *r, int32_t n, int32_t most)
{
    most = min_i32(most, N_TEXT - w->done);
    w->n = w->n_path = 0;
    while (w->n < n && most > 0) {
        int32_t last = w->n_path ? w->path[w->n_path - 1] : -1;
        bool right = w->n_path < most && (w->n == 0 || rng_below(r, 2) == 0);
        pass_row row = right ? (pass_row){text_token(w->done + w->n_path), last}
                             : (pass_row){rng_below(r, 256), rng_below(r, w->n)};
        if (right)
            w->path[w->n_path++] = w->n;
        w->rows[w->n++] = row;
    }
}

/* The next n tokens as a chain. */
static void offer_chain(writer *w, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        w->rows[i] = (pass_row){text_token(w->done + i), i - 1};
        w->path[i] = i;
    }
    w->n = w->n_path = n;
}

static pass_group group_of(writer *w)
{
    return (pass_group){.cache = &w->s->target_cache,
                        .rows = w->rows,
                        .n = w->n,
                        .head = HEAD_ALL,
                        .deferred = &w->s->deferred};
}

/* A pass up to `layer`, and stopped or (leave) given up there; past the last layer: to its end.
 * With r, layers are let in as chance will have it. */
static drey_status run_to(bench *b, model_pass *p, pass_group *groups, int32_t n, int32_t layer,
                          bool leave, rng *r, drey_error *err)
{
    TRY(pass_begin(p, runner_of(b), groups, n, err));
    for (pass_state state = PASS_CONTINUES; state != PASS_DONE;) {
        TRY(pass_step(p, 0, &state, err));
        if (state == PASS_STARVED)
            pass_wait(p);
        if (!pass_at_layer(p))
            continue;
        if (pass_layers_done(p) == layer) {
            assert_true(pass_can_stop(p));
            if (!leave)
                return pass_stop(p, err);
            pass_leave(p);
            return DREY_OK;
        }
        if (r)
            pass_read_on(p, pass_layers_done(p) + rng_below(r, 3));
    }
    return pass_end(p, err);
}

static void must_run(bench *b, model_pass *p, pass_group *groups, int32_t n, int32_t layer, rng *r)
{
    MUST(run_to, b, p, groups, n, layer, false, r);
    assert_true(weights_is_valid(runner_of(b)->weights));
}

/* The states after the final norm, of the writer's path and of its deferred rows. */
static void check_hidden(const writer *w, const pass_group *g, const answer *a)
{
    int64_t stride = pass_hidden_stride(&w->s->target);
    for (int32_t i = 0; i < w->n_path; i++)
        assert_memory_equal(g->hidden + w->path[i] * stride, a->hidden[w->done + i],
                            sizeof a->hidden[0]);
    for (int32_t i = w->from; i < w->done; i++)
        assert_memory_equal(g->deferred_hidden + (i - w->from) * stride, a->hidden[i],
                            sizeof a->hidden[0]);
}

/* After a pass: what counts is committed, deferred if the pass was stopped; logits are
 * looked at. */
static void take(bench *b, writer *w, pass_group *g, const model_pass *p, const answer *a,
                 bool stopped)
{
    int64_t stride = pass_logits_stride(&w->s->target);
    bool chain = w->n_path == w->n;
    const int32_t *path = chain ? NULL : w->path;
    if (stopped) {
        assert_true(!g->logits && !g->deferred_logits);
        pass_defer(p, g, path, w->n_path);
    } else {
        assert_int_equal(g->n_deferred, w->done - w->from);
        for (int32_t i = 0; i < w->n_path; i++)
            assert_memory_equal(g->logits + w->path[i] * stride, a->logits[w->done + i],
                                logits_bytes(b));
        for (int32_t i = w->from; i < w->done; i++)
            assert_memory_equal(g->deferred_logits + (i - w->from) * stride, a->logits[i],
                                logits_bytes(b));
        check_hidden(w, g, a);
        assert_int_equal(g->deferred->n, 0);
        w->from = w->done + w->n_path;
    }
    cache_commit(g->cache, path, w->n_path);
    w->done += w->n_path;
    assert_int_equal(g->deferred->n, w->done - w->from);
    assert_true(deferred_is_valid(g->deferred, cache_end(g->cache)));
}

/* A pass of all writers that offer something or have deferred rows. */
static void turn(bench *b, writer *writers, int32_t n, int32_t layer, rng *r, const answer *a)
{
    pass_group groups[MAX_SESSIONS];
    writer *who[MAX_SESSIONS];
    int32_t n_groups = 0;
    for (int32_t i = 0; i < n; i++)
        if (writers[i].n + writers[i].s->deferred.n > 0) {
            who[n_groups] = &writers[i];
            groups[n_groups++] = group_of(&writers[i]);
        }
    if (n_groups == 0)
        return;
    model_pass p;
    int32_t least = N_LAYERS + 1; /* where the pass begins: it cannot be stopped before */
    for (int32_t i = 0; i < n_groups; i++)
        least = min_i32(
            least, who[i]->n ? 1 : groups[i].deferred->next_layer[groups[i].deferred->n - 1] + 1);
    layer = max_i32(layer, least);
    must_run(b, &p, groups, n_groups, layer, r);
    for (int32_t i = 0; i < n_groups; i++)
        take(b, who[i], &groups[i], &p, a, layer <= N_LAYERS);
}

/* Trees that stop wherever chance has it, rows at several layers at once, passes of several
 * sessions, of nothing but deferred rows, held back and let in. */
static void write_at_random(bench *b, int32_t n, const answer *a, rng *r)
{
    writer writers[MAX_SESSIONS];
    bool writing = true;
    for (int32_t i = 0; i < n; i++)
        begin_writing(&writers[i], b->session[i]);
    while (writing) {
        int32_t layer = 1 + rng_below(r, N_LAYERS + 1);
        pass_hold_from(runner_of(b), rng_below(r, N_LAYERS + 1));
        writing = false;
        for (int32_t i = 0; i < n; i++) {
            writer *w = &writers[i];
            int32_t room = MAX_DEFERRED / n - w->s->deferred.n;
            layer = room > 0 ? layer : N_LAYERS + 1;
            offer_tree(w, r, 1 + rng_below(r, MAX_TREE), max_i32(room, 1));
            if (w->s->deferred.n > 0 && rng_below(r, 4) == 0)
                w->n = w->n_path = 0;
            writing = writing || w->done < N_TEXT || w->s->deferred.n > 0;
        }
        turn(b, writers, n, layer, r, a);
    }
    for (int32_t i = 0; i < n; i++)
        assert_same_cache(&b->session[i]->target_cache, a, N_PROMPT + N_TEXT);
    pass_hold_from(runner_of(b), N_LAYERS);
}

/* ---- Tests ---- */

static void with_bench(const bench_options *options, void (*test)(bench *b, const answer *a))
{
    static answer a;
    bench b;
    open_bench(&b, options);
    make_answer(&b, &a);
    test(&b, &a);
    free_answer(&a);
    close_bench(&b);
}

/* Three tokens: the first and the second stop at every pair of layers, the third at none. */
static void stop_at_every_layer(bench *b, const answer *a)
{
    for (int32_t first = 1; first <= N_LAYERS; first++)
        for (int32_t second = 1; second <= N_LAYERS + 1; second++) {
            writer w;
            begin_writing(&w, b->session[0]);
            for (int32_t i = 0; i < 3; i++) {
                offer_chain(&w, 1);
                turn(b, &w, 1, i == 0 ? first : i == 1 ? second : N_LAYERS + 1, NULL, a);
            }
            assert_same_cache(&w.s->target_cache, a, N_PROMPT + 3);
        }
}

TEST(test_every_layer)
{
    with_bench(&(bench_options){"qwen2", TOY_TYPE_MIXED, NULL, 0.5, 2, 1, false},
               stop_at_every_layer);
}

static void write_texts(bench *b, const answer *a)
{
    rng r = rng_from(7);
    for (int round = 0; round < 8; round++)
        write_at_random(b, 1, a, &r);
}

TEST(test_tiers_and_budgets)
{
    static const double streamed[] = {0, 0.4, 1};
    const char *const *tiers = kernel_tiers();
    for (int i = 0; tiers[i]; i++)
        with_bench(&(bench_options){i % 2 ? "llama" : "qwen2", TOY_TYPE_MIXED, tiers[i],
                                    streamed[i % 3], 1 + i % 3, 1, i % 3 == 2},
                   write_texts);
}

static void write_together(bench *b, const answer *a)
{
    rng r = rng_from(8);
    for (int round = 0; round < 6; round++)
        write_at_random(b, 2 + round % 2, a, &r);
}

TEST(test_sessions_together)
{
    with_bench(&(bench_options){"llama", TYPE_Q8_0, NULL, 0.6, 2, MAX_SESSIONS, true},
               write_together);
}

/* Passes that are given up, and a disk that breaks, leave what was deferred as it was. */
static void give_up(bench *b, const answer *a)
{
    rng r = rng_from(9);
    writer w;
    begin_writing(&w, b->session[0]);
    pass_hold_from(runner_of(b), 0); /* a pass has to read for itself */
    for (int32_t i = 0; w.done < N_TEXT; i++) {
        model_pass p;
        drey_error err;
        offer_chain(&w, 1);
        pass_group g = group_of(&w);
        MUST(run_to, b, &p, &g, 1, 1 + rng_below(&r, N_LAYERS), true, NULL);
        if (i % 4 == 3) {
            atomic_store(&b->broken, true);
            assert_int_equal(run_to(b, &p, &g, 1, N_LAYERS + 1, false, NULL, &err), DREY_ERR_IO);
            atomic_store(&b->broken, false);
        }
        bool whole = w.s->deferred.n == MAX_DEFERRED || w.done == N_TEXT - 1;
        turn(b, &w, 1, whole ? N_LAYERS + 1 : 1 + rng_below(&r, N_LAYERS), NULL, a);
    }
    assert_same_cache(&w.s->target_cache, a, N_PROMPT + N_TEXT);
}

TEST(test_given_up)
{
    with_bench(&(bench_options){"llama", TYPE_Q8_0, NULL, 1, 2, 1, false}, give_up);
}

/* Looks at every layer; after the last one they see what the pass's own head says. */
static void look_at_layer(bench *b, model_pass *p, int32_t n, rng *r, float *whole, float *hidden)
{
    enum { N_IDS = 5 };
    static float logits[N_TEXT][N_IDS];
    int64_t ids[N_TEXT][N_IDS], stride = pass_logits_stride(runner_of(b));
    int32_t rows[N_TEXT], n_vocab = b->engine->target.layout.shape.n_vocab;
    pass_look looks[N_TEXT];
    for (int32_t i = 0; i < n; i++) {
        rows[i] = n - 1 - i;
        for (int32_t j = 0; j < N_IDS; j++)
            ids[i][j] = rng_below(r, n_vocab);
        looks[i] = (pass_look){.row = rows[i], .n_ids = N_IDS, .ids = ids[i], .logits = logits[i]};
    }
    assert_true(pass_can_look(p));
    pass_look_ids(p, looks, n);
    const float *head = pass_look_head(p, rows, n), *normed = pass_look_hidden(p);
    for (int32_t i = 0; i < n; i++) {
        for (int32_t j = 0; j < N_IDS; j++)
            assert_memory_equal(&logits[i][j], &head[i * stride + ids[i][j]], sizeof(float));
        memcpy(whole + rows[i] * MAX_VOCAB, head + i * stride, logits_bytes(b));
        memcpy(hidden + rows[i] * WIDTH, normed + i * pass_hidden_stride(runner_of(b)),
               WIDTH * sizeof(float));
    }
    pass_look_ids(p, &looks[n / 2], 1);
    assert_memory_equal(&logits[n / 2][0], &head[n / 2 * stride + ids[n / 2][0]], sizeof(float));
}

static void look_everywhere(bench *b, const answer *a)
{
    static float whole[N_TEXT][MAX_VOCAB], hidden[N_TEXT][WIDTH];
    rng r = rng_from(1);
    writer w;
    model_pass p;
    begin_writing(&w, b->session[0]);
    offer_chain(&w, N_TEXT);
    pass_group g = group_of(&w);
    MUST(pass_begin, &p, runner_of(b), &g, 1);
    assert_false(pass_can_look(&p) || pass_can_stop(&p));
    for (pass_state now = PASS_CONTINUES; now != PASS_DONE;) {
        MUST(pass_step, &p, 0, &now);
        if (now == PASS_STARVED)
            pass_wait(&p);
        if (pass_at_layer(&p))
            look_at_layer(b, &p, N_TEXT, &r, whole[0], hidden[0]);
    }
    MUST(pass_end, &p);
    for (int32_t i = 0; i < N_TEXT; i++) {
        assert_memory_equal(whole[i], a->logits[i], logits_bytes(b));
        assert_memory_equal(hidden[i], a->hidden[i], sizeof hidden[i]);
    }
    take(b, &w, &g, &p, a, false);
    assert_same_cache(g.cache, a, N_PROMPT + N_TEXT);
}

TEST(test_looks)
{
    with_bench(&(bench_options){"qwen2", TOY_TYPE_MIXED, NULL, 0.5, 2, 1, false}, look_everywhere);
}

static uint64_t layer_bytes(const bench *b, int32_t from, int32_t to)
{
    const model_layout *l = &b->engine->target.layout;
    uint64_t bytes = 0;
    for (const weight *m = l->layer[from].first;
         m != (to < N_LAYERS ? l->layer[to].first : l->head); m++)
        bytes += residency_streamed_bytes(&m->residency);
    return bytes;
}

/* Checks reads with all layers held back: exactly what passes use is read; otherwise the ring is
 * filled as well. Layers before the hold are read ahead, without a request. */
static void hold_reads(bench *b, const answer *a)
{
    runner *r = runner_of(b);
    stream_counters before, after;
    writer w;
    begin_writing(&w, b->session[0]);
    pass_hold_from(r, 0);
    for (int i = 0; i < 3; i++) { /* what has been read ahead is used up */
        offer_chain(&w, 1);
        turn(b, &w, 1, N_LAYERS + 1, NULL, a);
    }
    weights_count(r->weights, &before);
    for (int32_t layer = N_LAYERS; layer >= 1; layer--) {
        offer_chain(&w, 1);
        turn(b, &w, 1, layer, NULL, a);
        weights_count(r->weights, &after);
        assert_int_equal(after.read_bytes - before.read_bytes, layer_bytes(b, 0, layer));
        before = after;
    }
    assert_int_equal(after.vain_bytes, 0);
    pass_hold_from(r, 2);
    for (int tries = 0;
         tries < 120000 && after.read_bytes != before.read_bytes + layer_bytes(b, 0, 2); tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        weights_count(r->weights, &after);
    }
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    weights_count(r->weights, &after);
    assert_int_equal(after.read_bytes - before.read_bytes, layer_bytes(b, 0, 2));
    offer_chain(&w, 1);
    turn(b, &w, 1, 1, NULL, a);
    weights_count(r->weights, &after);
    assert_int_equal(after.vain_bytes, layer_bytes(b, 1, 2));
    pass_hold_from(r, N_LAYERS);
    offer_chain(&w, 1);
    turn(b, &w, 1, N_LAYERS + 1, NULL, a);
    assert_same_cache(&w.s->target_cache, a, N_PROMPT + w.done);
}

TEST(test_held_reads)
{
    with_bench(&(bench_options){"llama", TYPE_Q8_0, NULL, 1, 2, 1, false}, hold_reads);
}
