/* The draft's head over a slice of its vocabulary: the same bits as the whole head for all it
 * holds, tokens of the text can be guessed, and the plan counts it. Texts are in test_matrix.c. */
#include <unistd.h>

#include "draft/model_drafter.h"
#include "session/session.h"
#include "support/scene.h"
#include "text/tokenizer.h"
#include "weights/gather_rows.h"

enum { N_VOCAB = 1000, N_IDS = 256, ROOM = 96, N_PROMPT = 24 };

typedef struct bench {
    drey_model *target, *draft;
    engine_place whole, sliced;
} bench;

static drey_model *open_toy(const char *name, int32_t n_layers, bool tied)
{
    toy_options toy = toy_default();
    toy.n_layers = n_layers;
    toy.n_vocab = N_VOCAB;
    toy.tied = tied;
    return toy_open(name, &toy);
}

static engine_place open_side(const bench *b, uint64_t without, const engine_hooks *hooks)
{
    drey_engine_options o = plain_options(b->target, 400, 2);
    o.draft = b->draft;
    o.drafter = DREY_DRAFTER_MODEL;
    o.research = &(drey_research){.without = without};
    engine_place p = place_open(&o, hooks);
    MUST(sampler_init, &p.session[0]->sampler, &(drey_sampling){.top_p = 1},
         p.engine->target.layout.shape.n_vocab, p.engine->kernels, &p.session[0]->memory.arena);
    return p;
}

static const engine_hooks sliced_so = {.slice_ids = N_IDS, .slice_room = ROOM, .untimed = true};

static void open_bench(bench *b, bool tied)
{
    temp_dir();
    *b = (bench){.target = open_toy("target.gguf", 3, tied),
                 .draft = open_toy("draft.gguf", 2, tied)};
    b->whole = open_side(b, DREY_WITHOUT(DREY_PART_SLICE), &sliced_so);
    b->sliced = open_side(b, 0, &sliced_so);
    assert_null(b->whole.engine->draft.layout.table);
    assert_non_null(b->sliced.engine->draft.layout.table);
}

static void close_bench(bench *b)
{
    place_close(&b->whole);
    place_close(&b->sliced);
    drey_model_close(&b->target);
    drey_model_close(&b->draft);
    temp_dir_remove();
}

/* Rows by number, from the file: those that a table or the whole head has in memory. Neighbours,
 * gaps of some rows and of many, the first and the last one, and a group that is not full. */
TEST(gathered_rows)
{
    bench b;
    open_bench(&b, false);
    weights *w = &b.whole.engine->draft.weights;
    const weight *head = b.whole.engine->draft.layout.head;
    const gguf_tensor *t = head->form.tensor;
    int32_t id[N_VOCAB], n = 0, pass_prompt_ids[] = {1, 2};
    MUST(pass_prompt, &b.whole.session[0]->draft, pass_prompt_ids, 2, 8, HEAD_LAST, NULL, NULL);
    for (int32_t i = 0; i < N_VOCAB; i++)
        if (i < 70 || i % 7 == 3 || i == N_VOCAB - 1)
            if (i < 300 || i > 800)
                id[n++] = i;
    assert_true(n % GROUP_ROWS != 0 && id[0] == 0 && id[n - 1] == N_VOCAB - 1);
    size_t bytes = (size_t)gathered_groups(n) * head->residency.group_bytes;
    uint8_t *packed = malloc(bytes);
    float *want = malloc((size_t)head->form.k * sizeof *want),
          *got = malloc((size_t)head->form.k * sizeof *got);
    MUST(gather_rows, head, &w->parts[t->part], w->reading.paths[t->part], id, n, packed);
    for (int32_t i = 0; i < n; i++) {
        MUST(weights_row_of, w, head, id[i], want, 0);
        head->form.kernel->unpack_row(
            got, packed + (size_t)(i / GROUP_ROWS) * head->residency.group_bytes, i % GROUP_ROWS,
            head->form.k);
        assert_memory_equal(got, want, (size_t)head->form.k * sizeof *want);
    }
    free(packed);
    free(want);
    free(got);
    close_bench(&b);
}

/* Ids on both sides of the slice's end; every third one is the same. */
static int32_t prompt_token(int32_t i)
{
    return i % 3 == 0 ? 700 : (i * 131 + 7) % N_VOCAB;
}

/* The guesses at what follows the text, and the logits that they were made of. */
static const float *guess(engine_place *p, const int32_t *text, int32_t n, token_tree *tree)
{
    drey_error err = {0};
    drafter *d = p->session[0]->drafter;
    must(d->class->begin(d, text, n, &err), &err);
    tree_reset(tree, text[n - 1]);
    must(d->class->expand(d, tree, &(int32_t){0}, 1, &err), &err);
    return ((const model_drafter *)d)->group.logits;
}

/* A special token of the draft's that the target lacks is in the table, and never guessed. */
TEST(ids_of_the_target_alone)
{
    bench b;
    open_bench(&b, false);
    static token_tree tree;
    model_drafter *d = (model_drafter *)b.sliced.session[0]->drafter;
    row_table *t = &b.sliced.engine->draft.table;
    int32_t text[] = {5, 6, 7}, best = 0;
    const float *all = guess(&b.whole, text, 3, &tree);
    for (int32_t id = N_IDS + ROOM; id < N_VOCAB; id++)
        best = best == 0 || all[id] > all[best] ? id : best;
    MUST(row_table_take, t, &best, 1);
    for (int32_t n_ids = best + 1; n_ids >= best; n_ids--) {
        bool guessed = false;
        d->n_ids = n_ids;
        guess(&b.sliced, text, 3, &tree);
        for (int32_t i = 0; i < tree.nodes[0].n_guesses; i++)
            guessed = guessed || tree.nodes[0].guess[i].token == best;
        assert_int_equal(guessed, n_ids > best);
    }
    close_bench(&b);
}

static void check_guesses(bool tied)
{
    bench b;
    open_bench(&b, tied);
    static token_tree whole, sliced;
    int32_t text[N_PROMPT];
    for (int32_t i = 0; i < N_PROMPT; i++)
        text[i] = prompt_token(i);
    for (int32_t n = 1; n <= N_PROMPT; n++) {
        const float *all = guess(&b.whole, text, n, &whole);
        const float *some = guess(&b.sliced, text, n, &sliced);
        const row_table *t = b.sliced.engine->draft.layout.table;
        float left[N_IDS + ROOM];
        assert_memory_equal(some, all, N_IDS * sizeof *all);
        memcpy(left, all, N_IDS * sizeof *all);
        for (int32_t at = 0; at < row_table_places(t); at++) {
            int32_t id = t->id[at];
            left[N_IDS + at] = id < 0 ? -INFINITY : all[id];
            assert_true(some[N_IDS + at] == left[N_IDS + at]);
        }
        logit_ids ids = {.n_first = N_IDS, .n_more = row_table_places(t), .more = t->id};
        candidate want[TREE_MAX_GUESSES];
        int32_t n_want =
            sampler_guess(&b.whole.session[0]->sampler, left, n, &ids, want, TREE_MAX_GUESSES);
        assert_int_equal(sliced.nodes[0].n_guesses, n_want);
        assert_memory_equal(sliced.nodes[0].guess, want, (size_t)n_want * sizeof *want);
        for (int32_t i = 0; i < n; i++)
            assert_true(text[i] < N_IDS || row_table_find(t, text[i]) >= 0);
    }
    close_bench(&b);
}

TEST(guesses_are_the_whole_heads)
{
    check_guesses(false);
}

TEST(guesses_are_the_whole_heads_tied)
{
    check_guesses(true);
}

/* With noise an id's is its own, wherever its logit stands. */
TEST(noise_is_the_ids)
{
    bench b;
    open_bench(&b, false);
    sampler *s = &b.whole.session[0]->sampler;
    s->settings = (drey_sampling){.temperature = 1, .top_p = 1, .seed = 5};
    enum { N = 6 };
    const float logits[N] = {1, 0.5f, 2, 0.25f, 0.125f, -0.5f};
    const int32_t more[] = {4, 2, 5, 3};
    const float moved[N] = {1, 0.5f, 0.125f, 2, -0.5f, 0.25f};
    logit_ids ids = {.n_first = 2, .n_more = 4, .more = more};
    for (int64_t position = 0; position < 50; position++) {
        candidate a[N], c[N];
        int32_t n = sampler_guess(s, logits, position, &(logit_ids){.n_first = N}, a, N);
        assert_int_equal(sampler_guess(s, moved, position, &ids, c, N), n);
        for (int32_t i = 0; i < n; i++) {
            assert_int_equal(a[i].token, c[i].token);
            assert_float_equal(a[i].confidence, c[i].confidence, 1e-5f);
        }
    }
    close_bench(&b);
}

/* The target says a token that is no node of the tree. */
static void say(drafter *d, token_tree *tree, int32_t token)
{
    int32_t moved[TREE_MAX_NODES];
    tree_moves(tree, NULL, 0, token, moved);
    d->class->reroot(d, tree, NULL, 0, token, moved);
    tree_reroot(tree, token, moved);
}

/* The sliced draft of an open bench guesses once, below a short text. */
static drafter *guess_once(bench *b, token_tree *tree)
{
    const int32_t text[] = {3, 4, 5};
    open_bench(b, false);
    guess(&b->sliced, text, 3, tree);
    return b->sliced.session[0]->drafter;
}

/* The target says what the draft could not: that counts, and the next time it can. */
TEST(what_was_said_can_be_guessed)
{
    bench b;
    static token_tree tree;
    drafter *d = guess_once(&b, &tree);
    const row_table *t = b.sliced.engine->draft.layout.table;
    int32_t kept = t->n_kept, first = 600;
    const int32_t said[] = {first, 17, first, first + 1};
    const int64_t blind[] = {1, 1, 1, 2};
    assert_true(kept > 0 && d->n_unguessable == 0);
    for (int i = 0; i < 4; i++) {
        say(d, &tree, said[i]);
        assert_int_equal(d->n_unguessable, blind[i]);
        assert_true(said[i] < N_IDS || row_table_find(t, said[i]) >= 0);
    }
    /* One more than there is room for: the oldest group goes, and no other. */
    for (int32_t i = 2; i <= ROOM - kept; i++) {
        say(d, &tree, first + i);
    }
    for (int32_t i = 0; i <= ROOM - kept; i++)
        assert_int_equal(row_table_find(t, first + i) >= 0, i >= GROUP_ROWS);
    const tokenizer *tokens = b.draft->tokenizer;
    for (int32_t id = N_IDS; id < N_VOCAB; id++)
        assert_true(!tokenizer_is_special(tokens, id) || row_table_find(t, id) >= 0);
    close_bench(&b);
}

/* A text can be written although some of its rows cannot be read: only those tokens are never
 * guessed, and they are counted. */
TEST(rows_that_cannot_be_read)
{
    bench b;
    open_bench(&b, false);
    static token_tree tree;
    drey_error err = {0};
    drafter *d = b.sliced.session[0]->drafter;
    model_drafter *m = (model_drafter *)b.sliced.session[0]->drafter;
    const row_table *t = b.sliced.engine->draft.layout.table;
    int32_t text[] = {3, 4, 5}, more[] = {3, 700, 900, 701, 5};
    guess(&b.sliced, text, 3, &tree); /* the weights are in memory */
    const weight *head = t->source;
    uint64_t end = head->form.tensor->offset + 900 * (uint64_t)head->form.row_bytes;
    assert_int_equal(truncate(temp_path("draft.gguf"), (off_t)end), 0);
    must(d->class->begin(d, more, 5, &err), &err);
    tree_reset(&tree, 5);
    assert_true(row_table_find(t, 700) >= 0 && row_table_find(t, 701) >= 0);
    assert_int_equal(row_table_find(t, 900), -1);
    d->class->listener->take_target_top(d, &tree, 0, (int32_t[]){950, 702}, 2);
    for (int i = 1; i <= 2; i++) {
        say(d, &tree, 900);
        assert_int_equal(d->n_unguessable, i);
    }
    assert_true(row_table_find(t, 702) >= 0 && m->n_likely == 0);
    assert_int_equal(row_table_find(t, 950), -1);
    close_bench(&b);
}

/* What the target finds likely comes into the table before it is said. */
TEST(what_was_thought_can_be_guessed)
{
    bench b;
    static token_tree tree;
    const int32_t thought[] = {9, 700, 800, 801, 802};
    drafter *d = guess_once(&b, &tree);
    const row_table *t = b.sliced.engine->draft.layout.table;
    assert_true(d->wants_target_top && !b.whole.session[0]->drafter->wants_target_top);
    d->class->listener->take_target_top(d, &tree, 0, thought, 5);
    d->class->listener->take_target_top(d, &tree, 0, thought, 5);
    assert_int_equal(row_table_find(t, 700), -1); /* a step may be under way */
    say(d, &tree, 700);
    for (int32_t i = 1; i < 5; i++)
        assert_int_equal(row_table_find(t, thought[i]) >= 0, i < 4); /* the best four of a row */
    assert_int_equal(d->n_unguessable, 1);
    close_bench(&b);
}

/* ---- The plan ---- */

static drey_plan plan_of(const drey_engine *e)
{
    drey_plan plan;
    drey_engine_plan(e, &plan);
    return plan;
}

TEST(the_plan_counts_it)
{
    bench b;
    open_bench(&b, false);
    drey_plan whole = plan_of(b.whole.engine), sliced = plan_of(b.sliced.engine);
    const weight *head = b.sliced.engine->draft.layout.head;
    assert_int_equal(whole.draft_ids, 0);
    assert_int_equal(sliced.draft_ids, N_IDS);
    int32_t n_groups = (N_VOCAB + GROUP_ROWS - 1) / GROUP_ROWS - N_IDS / GROUP_ROWS;
    assert_int_equal(whole.draft_bytes - sliced.draft_bytes,
                     (uint64_t)n_groups * head->residency.group_bytes);
    const arena *a = &b.sliced.engine->draft.weight_memory;
    assert_int_equal(a->short_bytes, 0); /* the table's memory included */
    assert_int_equal(b.sliced.engine->draft.ws.limits.n_logits, N_IDS + ROOM);
    close_bench(&b);
}

/* Where little would be left out, nothing is. */
TEST(small_vocabularies_stay_whole)
{
    bench b;
    open_bench(&b, false);
    engine_place s =
        open_side(&b, 0, &(engine_hooks){.slice_ids = 736, .slice_room = 32, .untimed = true});
    assert_null(s.engine->draft.layout.table);
    assert_int_equal(plan_of(s.engine).draft_ids, 0);
    place_close(&s);
    close_bench(&b);
}
