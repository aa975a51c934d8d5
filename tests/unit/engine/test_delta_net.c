/* Gated delta nets and state spaces in whole models: a row's logits have the same bits however the
 * text was read, in a tree or alone, and what is wrong with a row stays in its path. */
#include <math.h>
#include <string.h>

#include "session/session.h"
#include "state/cache.h"
#include "state/recurrent.h"
#include "support/logit_toys.h"
#include "support/rng.h"
#include "support/writing.h"

enum { N_PROMPT = 100, N_MORE = 40, MOST_LOGITS = 1024, N_STARTS = 3 };
static const char *const toys[] = {
    "toy-qwen35",     "toy-qwen35-forgetting",     "toy-qwen35moe",         "toy-qwen3next",
    "toy-nemotron-h", "toy-nemotron-h-forgetting", "toy-nemotron-h-latent", "toy-falcon-h1",
    "toy-qwen4exp"};
enum { N_TOYS = sizeof toys / sizeof *toys };
static int32_t prompt[N_PROMPT + N_MORE];

static int set_up(void **state)
{
    (void)state;
    temp_dir();
    for (int32_t i = 0; i < N_PROMPT + N_MORE; i++)
        prompt[i] = 40 + i * 7 % 90;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    temp_dir_remove();
    return 0;
}

static drey_session *open_toy(int which, drey_model **m)
{
    toy_options toy;
    int i = 0;
    while (strcmp(family_toy(i, &toy), toys[which]) != 0)
        assert_true(++i < N_FAMILY_TOYS);
    *m = toy_open("toy.gguf", &toy);
    drey_engine_options o = plain_options(*m, N_PROMPT + N_MORE + 4, 2);
    return open_alone(&o, NULL);
}

static void close_toy(drey_session *s, drey_model *m)
{
    close_alone(&s);
    drey_model_close(&m);
}

static size_t logit_bytes(const drey_session *s)
{
    const size_t n = (size_t)s->target.layout->shape.n_vocab;
    assert_true(n <= MOST_LOGITS);
    return n * sizeof(float);
}

/* Computes rows after what is committed; returns their logits. */
static const float *run(drey_session *s, const pass_row *rows, int32_t n)
{
    pass_group group = {.cache = &s->target_cache, .rows = rows, .n = n, .head = HEAD_ALL};
    MUST(pass_run, &s->target, &group, 1);
    return group.logits;
}

/* Reads a prompt and one token after it: the token's logits. */
static void after_prompt(drey_session *s, int32_t n, int32_t chunk, float *logits)
{
    cache_clear(&s->target_cache);
    MUST(pass_prompt, &s->target, prompt, n, chunk, HEAD_NONE, NULL, NULL);
    memcpy(logits, run(s, &(pass_row){.token = prompt[n], .parent = -1}, 1), logit_bytes(s));
    cache_drop(&s->target_cache);
}

TEST(a_prompt_in_chunks_of_any_size)
{
    static const int32_t chunks[] = {1, 15, 16, 17, 64};
    for (int i = 0; i < N_TOYS; i++) {
        static float want[MOST_LOGITS], got[MOST_LOGITS];
        drey_model *m;
        drey_session *s = open_toy(i, &m);
        for (int32_t n = N_PROMPT - 5; n < N_PROMPT; n += 4) {
            after_prompt(s, n, n, want);
            for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
                after_prompt(s, n, chunks[c], got);
                assert_memory_equal(want, got, logit_bytes(s));
            }
        }
        close_toy(s, m);
    }
}

/* The tokens that lead to a row of a tree, after the prompt. */
static int32_t path_of(const pass_row *rows, int32_t i, int32_t path[N_MORE])
{
    int32_t n = 0;
    for (int32_t at = i; at >= 0; at = rows[at].parent)
        n++;
    for (int32_t at = i, left = n; at >= 0; at = rows[at].parent)
        path[--left] = rows[at].token;
    return n;
}

/* Trees that cross the end of a block, in two passes. */
TEST(a_tree_has_the_bits_of_its_paths)
{
    static const int32_t starts[N_STARTS] = {37, 47, 63};
    for (int i = 0; i < N_TOYS; i++) {
        static float logits[N_MORE][MOST_LOGITS];
        rng r = rng_from(11 + (uint64_t)i);
        drey_model *m;
        drey_session *s = open_toy(i, &m);
        pass_row rows[N_MORE];
        for (int32_t row = 0; row < N_MORE; row++) {
            const int32_t random = (int32_t)(rng_next(&r) >> 40);
            rows[row].token = 40 + random % 90;
            rows[row].parent = row == 0 ? -1 : random % 3 ? row - 1 : random / 3 % row;
        }
        const int32_t start = starts[i % N_STARTS], half = N_MORE / 2;
        cache_clear(&s->target_cache);
        MUST(pass_prompt, &s->target, prompt, start, start, HEAD_NONE, NULL, NULL);
        const float *from = run(s, rows, half);
        for (int32_t row = 0; row < N_MORE; row++) {
            if (row == half)
                from = run(s, rows + half, N_MORE - half) - half * pass_logits_stride(&s->target);
            memcpy(logits[row], from + row * pass_logits_stride(&s->target), logit_bytes(s));
        }
        for (int32_t row = 1; row < N_MORE; row += 3) {
            int32_t path[N_MORE], n = path_of(rows, row, path);
            cache_clear(&s->target_cache);
            MUST(pass_prompt, &s->target, prompt, start, 9, HEAD_NONE, NULL, NULL);
            for (int32_t t = 0; t < n; t++) {
                from = run(s, &(pass_row){.token = path[t], .parent = -1}, 1);
                if (t == n - 1)
                    assert_memory_equal(logits[row], from, logit_bytes(s));
                cache_commit(&s->target_cache, (int32_t[]){0}, 1);
            }
        }
        close_toy(s, m);
    }
}

/* Fills what the recurrent layers keep of a pending row with NaN. */
static void spoil(const text_cache *c, int32_t row)
{
    for (int32_t i = 0; i < cache_n_stores(c); i++) {
        if (!cache_store(c, i)->class->in_blocks)
            continue;
        const recurrent_store *r = (const recurrent_store *)(const void *)cache_store(c, i);
        const int32_t n = r->store.size.n_recent, at = r->at[(cache_end(c) + row) % n];
        for (int32_t layer = 0; layer < r->store.shape.n_layers; layer++) {
            const size_t record = (size_t)layer * (size_t)(n + RECURRENT_BLOCK) + (size_t)at;
            memset(r->records + record * r->record_bytes, 0xff, r->record_bytes);
        }
    }
}

static void harm_no_other_branch(int toy)
{
    static const pass_row two[] = {{.token = 50, .parent = -1}, {.token = 60, .parent = -1}};
    static const pass_row next[] = {{.token = 70, .parent = 1}, {.token = 71, .parent = 0}};
    drey_model *m;
    drey_session *s = open_toy(toy, &m);
    static float want[MOST_LOGITS];
    for (int wrong = 0; wrong < 2; wrong++) {
        cache_clear(&s->target_cache);
        MUST(pass_prompt, &s->target, prompt, 29, 29, HEAD_NONE, NULL, NULL);
        run(s, two, 2);
        if (wrong)
            spoil(&s->target_cache, 0);
        const float *logits = run(s, next, wrong ? 1 : 2);
        if (!wrong)
            memcpy(want, logits, logit_bytes(s));
        assert_memory_equal(want, logits, logit_bytes(s));
        if (wrong) { /* and those below it say so */
            pass_group group = {
                .cache = &s->target_cache, .rows = next + 1, .n = 1, .head = HEAD_ALL};
            REFUSED(DREY_ERR_FORMAT, "not finite", pass_run, &s->target, &group, 1);
        }
    }
    close_toy(s, m);
}

TEST(a_row_that_is_no_number_harms_no_other_branch)
{
    for (int i = 0; i < N_TOYS; i += 4)
        harm_no_other_branch(i);
}

TEST_GROUP(set_up, tear_down)
