/* An agent's next turn on models with running states. Its prompt parts from the text at the last
 * answer's beginning, or some tokens before that, since the template drops the reasoning: at most
 * so many rows of what is known are computed again, from memory and from a folder. */
#include "session/session.h"
#include "support/logit_toys.h"
#include "support/writing.h"

enum { N_PROMPT = 2000, N_TEXT = 40, N_MORE = 60, N_CONTEXT = 2304, MOST_AGAIN = 64 };

static int set_up(void **state)
{
    (void)state;
    temp_dir();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    temp_dir_remove();
    return 0;
}

static drey_model *open_toy(const char *name)
{
    toy_options toy;
    int i = 0;
    while (strcmp(family_toy(i, &toy), name) != 0)
        assert_true(++i < N_FAMILY_TOYS);
    toy.n_context = N_CONTEXT;
    return toy_open("toy.gguf", &toy);
}

static engine_place open_place(drey_model *m, const drey_prefix_options *prefixes)
{
    drey_engine_options o = plain_options(m, N_CONTEXT, 1);
    o.prefixes = prefixes;
    return place_open(&o, NULL);
}

/* Reads ids[0..n) in a session and writes a text after them. */
static void take_turn(drey_session *s, const int32_t *ids, int32_t n, writing *t)
{
    t->n_ids = 0;
    t->n_bytes = 0;
    MUST(drey_session_sync, s, ids, (size_t)n, NULL);
    writing_continue(t, s, NULL, 0, N_TEXT, NULL);
}

static void check_rows(const char *name, const char *from, int64_t known, int32_t parts_at)
{
    if (known > parts_at || known < parts_at - MOST_AGAIN)
        fail_msg("%s, from %s: %lld of %d positions are known", name, from, (long long)known,
                 parts_at);
}

static void check_toy(const char *name, const char *folder, int32_t n_prompt, int32_t short_of)
{
    static writing first, next, plain;
    static int32_t ids[N_CONTEXT], again[N_CONTEXT];
    const drey_prefix_options kept = {
        .memory_bytes = 64 << 20, .folder = folder, .disk_bytes = 256 << 20};
    const int32_t parts_at = n_prompt - short_of, n = n_prompt + N_MORE;
    drey_model *m = open_toy(name);
    for (int32_t i = 0; i < N_CONTEXT; i++)
        ids[i] = again[i] = 1 + i * 37 % 200;
    for (int32_t i = parts_at; i < N_CONTEXT; i++)
        again[i] = 1 + (ids[i] + 1 + i % 5) % 200;
    engine_place p = open_place(m, NULL);
    take_turn(p.session[0], ids, n_prompt, &first);
    take_turn(p.session[0], again, n, &next);
    check_rows(name, "memory", next.stats.cached_tokens, parts_at);
    drey_session_reset(p.session[0]);
    take_turn(p.session[0], again, n, &plain);
    assert_int_equal(plain.stats.cached_tokens, 0);
    must_be_same(&plain, &next, "from memory");
    place_close(&p);
    p = open_place(m, &kept);
    take_turn(p.session[0], ids, n_prompt, &first);
    MUST(drey_engine_write_prefixes, p.engine, INT64_MAX, NULL);
    place_close(&p);
    p = open_place(m, &kept);
    take_turn(p.session[0], again, n, &next);
    check_rows(name, "the folder", next.stats.cached_tokens, parts_at);
    must_be_same(&plain, &next, "from the folder");
    place_close(&p);
    drey_model_close(&m);
}

TEST(few_rows_are_computed_again)
{
    static const char *const toys[] = {"toy-qwen35", "toy-lfm2"};
    for (size_t i = 0; i < sizeof toys / sizeof *toys; i++)
        for (int32_t at = 0; at < 3; at++) {
            char folder[32];
            snprintf(folder, sizeof folder, "kept-%zu-%d", i, at);
            check_toy(toys[i], temp_path(folder), N_PROMPT + 7 * at, 2 * at);
        }
}

TEST_GROUP(set_up, tear_down)
