/* The product's promise: the text does not depend on drafter, policy, budget, threads, prompt
 * chunks or CPU tier, at temperature 0 and with seeds. Each case writes a text with one thing
 * changed and compares it with plain decoding in memory on one thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/writing.h"

typedef struct pair {
    drey_model *target, *draft;
    int32_t prompt[96];
    size_t n_prompt;
} pair;

static void open_model(drey_model **m, const char *path)
{
    drey_error err = {0};
    must(drey_model_open(m, path, &err), &err);
}

static void open_pair(pair *p, const toy_options *target, const toy_options *draft)
{
    memset(p, 0, sizeof *p);
    temp_dir();
    const char *path =
        temp_path(target->n_parts > 1 ? "target-00001-of-00002.gguf" : "target.gguf");
    toy_write(path, target);
    open_model(&p->target, path);
    path = temp_path("draft.gguf");
    toy_write(path, draft);
    open_model(&p->draft, path);
    const char *text =
        "the quick brown fox jumps over the lazy dog, and then 12345 more of them: the quick";
    drey_error err;
    assert_int_equal(
        drey_tokenize(p->target, text, strlen(text), 0, p->prompt, 96, &p->n_prompt, &err),
        DREY_OK);
}

static void close_pair(pair *p)
{
    drey_model_close(&p->target);
    drey_model_close(&p->draft);
    temp_dir_remove();
}

static drey_engine_options plain(const pair *p)
{
    drey_engine_options o = plain_options(p->target, 192, 1);
    o.cpu_tier = "ref";
    return o;
}

#ifdef TESTS_SANITIZED
enum { N_TEXT = 8 };
#else
enum { N_TEXT = 28 };
#endif

static void same(const pair *p, const drey_engine_options *o, double share,
                 const drey_sampling *sampling, const writing *want, const char *what)
{
    static writing got;
    writing_run(&got, o, share, p->prompt, p->n_prompt, N_TEXT, sampling);
    if (got.status != DREY_OK)
        fail_msg("%s: %s", what, got.error.message);
    assert_true((got.stats.streamed_bytes_per_pass > 0) == (share >= 0 && share < 1));
    for (int32_t i = 0; i < want->n_ids; i++)
        if (got.ids[i] != want->ids[i])
            fail_msg("%s: token %d is %d instead of %d", what, i, got.ids[i], want->ids[i]);
    assert_int_equal(got.n_ids, want->n_ids);
    assert_int_equal(got.n_bytes, want->n_bytes);
    assert_memory_equal(got.text, want->text, want->n_bytes);
}

static void set_drafter(drey_engine_options *o, const pair *p, int which)
{
    static const drey_policy policies[] = {DREY_POLICY_NONE, DREY_POLICY_OPTIMAL,
                                           DREY_POLICY_SEQUENCE, DREY_POLICY_OPTIMAL};
    o->policy = policies[which];
    o->drafter = which == 0   ? DREY_DRAFTER_NONE
                 : which == 1 ? DREY_DRAFTER_LOOKUP
                              : DREY_DRAFTER_MODEL;
    o->draft = which >= 2 ? p->draft : NULL;
}

/* Every drafter with every budget; the other settings take turns. */
static void check_pair(const pair *p, const drey_sampling *sampling, drey_kv kv)
{
    static writing want;
    drey_engine_options o = plain(p);
    o.kv = kv;
    writing_run(&want, &o, -1, p->prompt, p->n_prompt, N_TEXT, sampling);
    must(want.status, &want.error);
    assert_int_equal(want.n_ids, N_TEXT);
    const char *const *tiers = drey_cpu_tiers();
    int32_t n_tiers = 0, turn = 0;
    while (strcmp(tiers[n_tiers], "float") != 0)
        n_tiers++;
    static const int32_t chunks[] = {0, 1, 7, 32};
    static const double shares[] = {-1, 0.6, 0.25, 0.0}; /* as the budget says, and three */
    static const drey_io ways[] = {DREY_IO_AUTO, DREY_IO_PREAD, DREY_IO_BUFFERED};
    for (int drafter = 0; drafter < 4; drafter++) {
        for (size_t share = 0; share < 4; share++, turn++) {
            drey_engine_options v = plain(p);
            set_drafter(&v, p, drafter);
            v.kv = kv;
            v.n_threads = 1 + (drafter + (int)share) % 2;
            v.prompt_chunk = chunks[(turn + drafter) % 4];
            v.cpu_tier = tiers[turn % n_tiers];
            v.io = ways[(2 * drafter + (int)share) % 3];
            char what[128];
            snprintf(what, sizeof what,
                     "drafter %d, share %g, %d threads, chunk %d, tier %s, io %d", drafter,
                     shares[share], v.n_threads, v.prompt_chunk, v.cpu_tier, (int)v.io);
            same(p, &v, shares[share], sampling, &want, what);
        }
    }
}

static void toys(toy_options *target, toy_options *draft, const char *architecture, uint32_t type)
{
    toy_options_init(target);
    target->architecture = architecture;
    target->type = type;
    target->n_embd = 256;
    target->n_ff = 256;
    target->n_layers = 3;
    *draft = *target;
    draft->n_layers = 2;
}

static void test_qwen2_mixed(void **state)
{
    (void)state;
    toy_options target, draft;
    toys(&target, &draft, "qwen2", TOY_TYPE_MIXED);
    pair p;
    open_pair(&p, &target, &draft);
    check_pair(&p, NULL, DREY_KV_F16);
    check_pair(&p,
               &(drey_sampling){
                   .temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.02f, .seed = 7},
               DREY_KV_F16);
    check_pair(&p, NULL, DREY_KV_Q8_0);
    close_pair(&p);
}

static void test_llama_tied_split(void **state)
{
    (void)state;
    toy_options target, draft;
    toys(&target, &draft, "llama", 12); /* Q4_K */
    target.tied = draft.tied = true;
    target.rope_freqs = true;
    target.n_parts = 2;
    target.pre = draft.pre = NULL;
    draft.n_padded = 37;
    pair p;
    open_pair(&p, &target, &draft);
    check_pair(&p, NULL, DREY_KV_F16);
    check_pair(&p, &(drey_sampling){.temperature = 1.3f, .top_p = 1.0f, .seed = 99}, DREY_KV_F16);
    check_pair(&p, NULL, DREY_KV_Q8_0);
    close_pair(&p);
}

/* Drafting must do something, or the test above would compare nothing. */
static void test_drafts_are_accepted(void **state)
{
    (void)state;
    toy_options target, draft;
    toys(&target, &draft, "qwen2", 8); /* Q8_0 */
    draft.n_layers = target.n_layers;
    draft.noise = 0.005f;
    draft.noise_seed = 3;
    pair p;
    open_pair(&p, &target, &draft);
    static writing w;
    for (int drafter = 2; drafter < 4; drafter++) {
        drey_engine_options o = plain(&p);
        set_drafter(&o, &p, drafter);
        writing_run(&w, &o, -1, p.prompt, p.n_prompt, N_TEXT, NULL);
        assert_int_equal(w.status, DREY_OK);
        assert_true(w.stats.accepted > 0);
        assert_true(w.stats.drafted >= w.stats.accepted);
        assert_true(w.stats.n_passes < N_TEXT);
        assert_int_equal(w.stats.generated_tokens, N_TEXT);
    }
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_qwen2_mixed),
        cmocka_unit_test(test_llama_tied_split),
        cmocka_unit_test(test_drafts_are_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
