/* Work that new kinds of models take. An architecture of known parts is a row of a table; a kind of
 * layer with a state is a file (support/toys/sum_block.c), whose texts test_matrix.c compares, and
 * test_sessions.c, test_prefix_store.c, test_session_file.c, test_ranks.c where the environment has
 * DREY_TEST_STATES. Here is how far such a state goes, and how far back. */
#include "session/session.h"
#include "state/cache.h"
#include "state/kept_positions.h"
#include "state/recurrent.h"
#include "support/toys/sum_block.h"
#include "support/writing.h"

enum { N_PROMPT = 70, N_TEXT = 20 };

static int32_t prompt[N_PROMPT];

static int set_up(void **state)
{
    temp_dir();
    for (int32_t i = 0; i < N_PROMPT; i++)
        prompt[i] = 40 + i * 7 % 90;
    return 0;
}

static int tear_down(void **state)
{
    temp_dir_remove();
    return 0;
}

static void write_with(writing *out, const char *architecture, const char *name)
{
    toy_options toy = toy_default();
    toy.architecture = architecture;
    drey_model *m = toy_open(name, &toy);
    drey_engine_options o = plain_options(m, N_PROMPT + N_TEXT + 4, 1);
    writing_run(out, &o, -1, prompt, N_PROMPT, N_TEXT, NULL);
    must(out->status, &out->error);
    drey_model_close(&m);
}

/* Toys of different names have the same tensors. */
TEST(an_architecture_is_a_row)
{
    static const arch rowan = {.name = "rowan"};
    static const arch turned = {.name = "rowan", .rope = ROPE_HALVES};
    static writing known, added, other;
    write_with(&known, "granite", "known.gguf");
    arch_of_test = &turned;
    write_with(&other, "rowan", "other.gguf");
    arch_of_test = &rowan;
    write_with(&added, "rowan", "added.gguf");
    arch_of_test = NULL;
    must_be_same_ids(&known, &added, "the row");
    assert_memory_not_equal(known.ids, other.ids, N_TEXT * sizeof *known.ids);
    drey_model *m = NULL;
    REFUSED(DREY_ERR_UNSUPPORTED, "\"rowan\" is not supported", drey_model_open, &m,
            temp_path("added.gguf"));
}

static drey_session *open_sum(drey_model **m, int32_t n_context)
{
    toy_options toy = toy_default();
    toy.n_context = n_context;
    arch_of_test = &sum_arch;
    toy.architecture = sum_arch.name;
    *m = toy_open("sum.gguf", &toy);
    drey_engine_options o = plain_options(*m, n_context, 1);
    return open_alone(&o, NULL);
}

static void close_sum(drey_session *s, drey_model *m)
{
    close_alone(&s);
    drey_model_close(&m);
    arch_of_test = NULL;
}

static recurrent_store *state_of(text_cache *cache)
{
    return recurrent_of(cache, 1);
}

static void decode(drey_session *s, int32_t n)
{
    const pass_row row = {.token = 50, .parent = -1};
    for (int32_t i = 0; i < n; i++) {
        pass_group group = {.cache = &s->target_cache, .rows = &row, .n = 1, .head = HEAD_ALL};
        MUST(pass_run, &s->target, &group, 1);
        cache_commit(&s->target_cache, (int32_t[]){0}, 1);
    }
}

/* A prompt takes its states along; other passes advance what was certain when they began; the rest
 * is for those after them, or for who settles. A cut goes anywhere after that, and before it to a
 * state: the one before the newest, where a prompt ended, or a regular one. */
TEST(a_state_goes_back_to_those_before)
{
    drey_model *m;
    drey_session *s = open_sum(&m, N_PROMPT + N_TEXT + 4);
    text_cache *cache = &s->target_cache;
    recurrent_store *r = state_of(cache);
    assert_int_equal(r->store.shape.n_layers, 1); /* of three, every other one */
    MUST(pass_prompt, &s->target, prompt, 37, 37, HEAD_NONE, NULL, NULL);
    assert_true(r->base[0] == 32 && cache_certain(cache) == 32 && cache_has_previous(cache));
    assert_int_equal(cache_cut(cache, 35), 35);
    decode(s, 15);
    assert_true(r->base[0] == 48 && cache_end(cache) == 50);
    assert_int_equal(cache_cut(cache, 49), 49);
    assert_int_equal(cache_cut(cache, 40), 32);
    assert_true(r->base[0] == 32 && cache_end(cache) == 32 && !cache_has_previous(cache));
    assert_int_equal(cache_cut(cache, 30), 0);
    MUST(pass_prompt, &s->target, prompt, 70, 9, HEAD_NONE, NULL, NULL);
    decode(s, 20);
    assert_true(cache_end(cache) == 90 && cache_kept_at(cache, 48) >= 0); /* the prompt's mark */
    assert_int_equal(cache_whole(cache, 70, 0), 64);                      /* a regular one */
    assert_int_equal(cache_cut(cache, 63), 48);
    assert_true(r->base[0] == 48);
    close_sum(s, m);
}

/* The next turn of a conversation parts from the text some tokens before the last prompt's end. */
TEST(a_turn_reads_what_is_new)
{
    enum { LONG = 20000, ANSWER = 70, SHORT_OF = 5 };
    drey_model *m;
    drey_session *s = open_sum(&m, LONG + 2 * ANSWER);
    text_cache *cache = &s->target_cache;
    for (int32_t end = LONG - 15; end < LONG; end++) {
        MUST(cache_make_up, cache, end - N_PROMPT);
        MUST(pass_prompt, &s->target, prompt, N_PROMPT, 32, HEAD_NONE, NULL, NULL);
        decode(s, ANSWER);
        const int32_t known = cache_cut(cache, end - SHORT_OF);
        assert_true(known > end - SHORT_OF - 2 * RECURRENT_BLOCK);
        if (end > LONG - 14)
            end += 6; /* some of the places in a block */
    }
    close_sum(s, m);
}

/* The states of a text do not depend on how it was read, nor on what was read before. */
TEST(a_state_has_one_history)
{
    drey_model *m;
    drey_session *s = open_sum(&m, N_PROMPT + N_TEXT + 4);
    text_cache *cache = &s->target_cache;
    static uint8_t want[1 << 12];
    const size_t n = cache_state_size(cache, 0);
    assert_true(n > 0 && n <= sizeof want && cache_n_states(cache) == 1);
    for (int32_t chunk = 1; chunk <= N_PROMPT; chunk += 23) {
        cache_clear(cache);
        MUST(pass_prompt, &s->target, prompt + 3, 60, 9, HEAD_NONE, NULL, NULL);
        const int32_t known = cache_cut(cache, 0);
        MUST(pass_prompt, &s->target, prompt + known, N_PROMPT, chunk, HEAD_NONE, NULL, NULL);
        cache_settle(cache, 0);
        const uint8_t *now = cache_state(cache, 0, cache_whole(cache, N_PROMPT, 0));
        if (chunk == 1)
            memcpy(want, now, n);
        assert_memory_equal(want, now, n);
    }
    close_sum(s, m);
}

TEST_GROUP(set_up, tear_down)
