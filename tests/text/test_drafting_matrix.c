/* The same text for every drafter, policy and ablation, with early exits of the exact kind and
 * without, while reads take random times: each case is compared with plain decoding in memory on
 * one thread, token by token and byte by byte. Policies that say themselves that they are lossy are
 * left out. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"
#include "support/heads_file.h"
#include "support/rng.h"
#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/writing.h"

#ifdef TESTS_SANITIZED
enum { N_TEXT = 10, EVERY = 4, SLOW_US = 10000 };
#else
enum { N_TEXT = 20, EVERY = 1, SLOW_US = 2000 };
#endif
enum { N_PROMPT = 12, N_PARTS = 5, SLICE_IDS = 256, SLICE_ROOM = 64 };

static const int32_t prompt[N_PROMPT] = {72, 101, 108, 108, 111, 32, 116, 104, 101, 32, 116, 104};
static char planes[512]; /* the target's sidecar for the drafter self */
static char heads[512];  /* its heads for the drafter medusa */
static drey_model *target, *draft;

/* One read of eight takes as long as several layers do. */
static int slow_read(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    (void)part;
    (void)n_bytes;
    rng r = rng_from(offset + atomic_fetch_add((_Atomic uint64_t *)user, 1));
    if (rng_below(&r, 8) == 0)
        usleep((useconds_t)rng_below(&r, SLOW_US));
    return 0;
}

/* One layer of three is said to be enough, whatever it would say. */
static bool leaves_here(void *user, int32_t layer, int32_t position)
{
    (void)user;
    rng r = rng_from(100 * (uint64_t)position + (uint64_t)layer);
    return rng_below(&r, 3) == 0;
}

typedef struct seen { /* over all cases: what the matrix is about has to happen in it */
    int64_t n_cases, accepted, refused, provisional_kept, provisional_lost, outside_slice;
    int64_t left, taken_back, of_draft, of_text;
} seen;

static void compare(const writing *want, const writing *got, const char *what)
{
    if (got->status != DREY_OK)
        fail_msg("%s: %s", what, got->error.message);
    for (int32_t i = 0; i < want->n_ids && i < got->n_ids; i++)
        if (got->ids[i] != want->ids[i])
            fail_msg("%s: token %d is %d instead of %d", what, i, got->ids[i], want->ids[i]);
    if (got->n_ids != want->n_ids || got->n_bytes != want->n_bytes ||
        memcmp(got->text, want->text, want->n_bytes) != 0)
        fail_msg("%s: %d tokens, %zu bytes instead of %d, %zu", what, got->n_ids, got->n_bytes,
                 want->n_ids, want->n_bytes);
}

static void write_case(const drey_engine_options *o, const drey_sampling *sampling, double share,
                       const writing *want, seen *all)
{
    static writing got;
    _Atomic uint64_t n_reads = 0;
    engine_tuning tuning = {.set_share = true,
                            .share = share,
                            .fault = slow_read,
                            .fault_user = &n_reads,
                            .untimed = all->n_cases % 2,
                            .exit_here = leaves_here,
                            .slice_ids = SLICE_IDS,
                            .slice_room = SLICE_ROOM};
    char what[200];
    snprintf(what, sizeof what,
             "drafter %s, policy %s, without %x, with %x, exits %s, share %g, temperature %g",
             drey_drafter_name(o->drafter), drey_policy_name(o->policy), (unsigned)o->without,
             (unsigned)o->with, drey_exit_name(o->exit), share,
             sampling ? (double)sampling->temperature : 0);
    writing_run_tuned(&got, o, &tuning, prompt, N_PROMPT, N_TEXT, sampling);
    compare(want, &got, what);
    assert_true(got.stats.streamed_bytes_per_pass > 0);
    assert_false(got.speculation.lossy);
    if (o->without & DREY_WITHOUT(DREY_PART_PROVISIONAL))
        assert_int_equal(got.speculation.provisional_kept + got.speculation.provisional_lost, 0);
    all->n_cases++;
    all->accepted += got.stats.accepted;
    all->refused += got.stats.drafted - got.stats.accepted;
    all->provisional_kept += got.speculation.provisional_kept;
    all->provisional_lost += got.speculation.provisional_lost;
    all->outside_slice += got.speculation.outside_slice;
    all->of_draft += got.speculation.accepted_of_draft;
    all->of_text += got.speculation.accepted_of_text;
    all->left += got.exits.left;
    all->taken_back += got.exits.taken_back;
}

/* Nothing left out, each part by itself, all parts. */
static uint64_t ablation(int i)
{
    uint64_t all = ((UINT64_C(1) << N_PARTS) - 1) | DREY_WITHOUT(DREY_PART_LOOKUP);
    return i == 0 ? 0 : i <= N_PARTS ? DREY_WITHOUT(i - 1) : all;
}

static bool is_lossless(drey_policy policy)
{
    return policy != DREY_POLICY_BLD && policy != DREY_POLICY_DRAFT && policy != DREY_POLICY_STD;
}

static drey_engine_options options_of(drey_drafter which, drey_policy policy, int n)
{
    drey_engine_options o = plain_options(target, 96, 1 + n % 2);
    o.draft = which == DREY_DRAFTER_MODEL ? draft : NULL;
    o.drafter = which;
    o.heads = which == DREY_DRAFTER_MEDUSA ? heads : NULL;
    o.sidecar = which == DREY_DRAFTER_SELF ? planes : NULL;
    o.policy = policy;
    o.tree_nodes = n % 3 ? 24 : 0;
    return o;
}

/* Each part that is left out comes by turns; so do budgets: all is streamed, half, a ninth. */
static void write_exits(const drey_sampling *sampling, const writing *want, seen *all)
{
    static const drey_drafter drafters[] = {DREY_DRAFTER_NONE, DREY_DRAFTER_MODEL,
                                            DREY_DRAFTER_LOOKUP};
    static const double shares[] = {0, 0.5, 0.9};
    int n = sampling != NULL;
    for (int d = 0; d < 3; d++)
        for (int p = DREY_POLICY_NONE; drey_policy_name((drey_policy)p); p++) {
            bool drafts = drafters[d] != DREY_DRAFTER_NONE;
            if (drafts == (p == DREY_POLICY_NONE) || !is_lossless((drey_policy)p))
                continue;
            for (int i = 0; i < 3; i++, n++) {
                drey_engine_options o = options_of(drafters[d], (drey_policy)p, n);
                o.exit = DREY_EXIT_EXACT;
                o.without = ablation(n % (N_PARTS + 2));
                write_case(&o, sampling, shares[i], want, all);
            }
        }
}

static void write_all(const drey_sampling *sampling, const writing *want, seen *all)
{
    int n = 0;
    for (int d = 1; drey_drafter_name((drey_drafter)d); d++) {
        for (int p = DREY_POLICY_SEQUENCE; drey_policy_name((drey_policy)p); p++) {
            for (int a = 0; a <= N_PARTS + 1 && is_lossless((drey_policy)p); a++, n++) {
                if (n % EVERY)
                    continue;
                drey_engine_options o = options_of((drey_drafter)d, (drey_policy)p, n);
                o.without = ablation(a);
                int k = n / EVERY; /* write_case tells odd cases from even ones, too */
                o.with = k % 4 < 2 ? DREY_WITH(DREY_PART_LOOKUP) & ~o.without : 0;
                write_case(&o, sampling, k % 3 ? 0.5 : 0.0, want, all);
            }
        }
    }
}

static void open_models(void)
{
    toy_options t, d;
    drey_error err = {0};
    toy_options_init(&t);
    t.architecture = "qwen2";
    t.type = TOY_TYPE_MIXED;
    t.n_embd = t.n_ff = 256;
    t.n_vocab = 900;
    d = t;
    d.noise = 0.01f; /* right often enough, and wrong often enough */
    d.noise_seed = 3;
    target = toy_open("target.gguf", &t);
    snprintf(planes, sizeof planes, "%s", temp_path("planes"));
    drey_prepare_options prepare = {.model = target, .output = planes, .planes = true};
    must(drey_prepare(&prepare, NULL, &err), &err);
    heads_file h;
    heads_file_init(&h, target->file, &target->shape);
    h.shape.n_heads = 4;
    h.spread = 0.002f; /* they repeat what the target thought a step ago, about */
    snprintf(heads, sizeof heads, "%s", temp_path("heads"));
    heads_file_write(heads, &h);
    draft = toy_open("draft.gguf", &d);
}

static void the_text_is_the_same(void **state)
{
    (void)state;
    static writing want;
    static const drey_sampling sampled = {.temperature = 0.8f, .top_p = 1.0f, .seed = 11};
    temp_dir();
    open_models();
    seen all = {0};
    for (int i = 0; i < 2; i++) {
        const drey_sampling *sampling = i ? &sampled : NULL;
        drey_engine_options plain = plain_options(target, 96, 1);
        plain.cpu_tier = "ref";
        writing_run(&want, &plain, -1, prompt, N_PROMPT, N_TEXT, sampling);
        must(want.status, &want.error);
        assert_int_equal(want.n_ids, N_TEXT);
        write_all(sampling, &want, &all);
        write_exits(sampling, &want, &all);
    }
    print_message("%lld cases; accepted %lld, refused %lld, provisional kept %lld, lost %lld, "
                  "outside the slice %lld; of the draft %lld, of the text %lld; left early %lld, "
                  "taken back %lld\n",
                  (long long)all.n_cases, (long long)all.accepted, (long long)all.refused,
                  (long long)all.provisional_kept, (long long)all.provisional_lost,
                  (long long)all.outside_slice, (long long)all.of_draft, (long long)all.of_text,
                  (long long)all.left, (long long)all.taken_back);
    assert_true(all.accepted > all.n_cases && all.refused > all.n_cases);
    assert_true(all.provisional_kept + all.provisional_lost > 0 && all.outside_slice > 0);
    assert_true(all.of_draft + all.of_text > 0);
    assert_true(all.left > all.taken_back && all.taken_back > 0);
    drey_model_close(&target);
    drey_model_close(&draft);
    temp_dir_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_text_is_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
