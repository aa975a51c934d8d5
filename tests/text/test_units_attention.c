/* Attention divided between units: the boundary says who computes what, devices have their part
 * until they fail, and texts are those of plain decoding. test_matrix.c combines units with all
 * else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "support/faults/fake_device.h"
#include "support/heads_file.h"
#include "support/rng.h"
#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/toy_models.h"
#include "support/writing.h"

#ifdef TESTS_SANITIZED
enum { N_TEXT = 6, EVERY = 5 };
#else
enum { N_TEXT = 12, EVERY = 1 };
#endif
enum { N_PROMPT = 300, N_BOUNDARIES = 6 };

typedef struct scene {
    char heads[512], planes[512];
    int32_t prompt[N_PROMPT];
    writing want[2]; /* greedy, and sampled */
    int64_t n_cases, accepted, refused, dense_blocks, tails;
} scene;

static const drey_sampling sampled = {.temperature = 0.8f, .top_p = 1.0f, .seed = 11};

static void open_models(scene *s)
{
    toy_options toy = toy_usual();
    toy.architecture = "qwen2";
    toy.type = TOY_TYPE_MIXED;
    toy.n_embd = toy.n_ff = 256;
    toy.n_vocab = 900;
    toy.n_context = 512;
    target = toy_open("target.gguf", &toy);
    toy.noise = 0.01f; /* right often enough, and wrong often enough */
    toy.noise_seed = 3;
    draft = toy_open("draft.gguf", &toy);
    snprintf(s->planes, sizeof s->planes, "%s", temp_path("planes"));
    const drey_prepare_options prepare = {.model = target, .output = s->planes, .planes = true};
    MUST(drey_prepare, &prepare, NULL);
    heads_file h;
    heads_file_init(&h, target->file, &target->shape);
    h.shape.n_heads = 4;
    h.spread = 0.002f; /* they repeat what the target thought a step ago, about */
    snprintf(s->heads, sizeof s->heads, "%s", temp_path("heads"));
    heads_file_write(s->heads, &h);
}

static drey_engine_options plain(void)
{
    drey_engine_options o;
    drey_engine_options_init(&o);
    o.target = target;
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    o.n_context = N_PROMPT + N_TEXT + 4;
    return o;
}

static int set_up(void **state)
{
    static scene s;
    rng r = rng_from(4);
    temp_dir();
    setenv("POCL_CACHE_DIR", temp_path("pocl"), 1); /* PoCL keeps what it compiles */
    open_models(&s);
    for (int32_t i = 0; i < N_PROMPT; i++)
        s.prompt[i] = i < 8 ? 60 + i : s.prompt[i - 8 + rng_below(&r, 8)];
    for (int i = 0; i < 2; i++) {
        drey_engine_options o = plain();
        o.n_threads = 1;
        o.cpu_tier = "ref";
        writing_run(&s.want[i], &o, -1, s.prompt, N_PROMPT, N_TEXT, i ? &sampled : NULL);
        if (s.want[i].status != DREY_OK)
            fail_msg("%s", s.want[i].error.message);
    }
    *state = &s;
    return 0;
}

static void set_drafter(const scene *s, drey_engine_options *o, drey_drafter who)
{
    o->drafter = who;
    o->draft = who == DREY_DRAFTER_MODEL ? draft : NULL;
    o->heads = who == DREY_DRAFTER_MEDUSA ? s->heads : NULL;
    o->sidecar = who == DREY_DRAFTER_SELF ? s->planes : NULL;
    o->policy = who == DREY_DRAFTER_NONE ? DREY_POLICY_NONE : DREY_POLICY_OPTIMAL;
    o->tree_nodes = who == DREY_DRAFTER_NONE ? 0 : 24;
}

/* boundary: of attention, the first one being what the shares say. */
static const writing *write_case(scene *s, const char *units, drey_drafter who, int boundary)
{
    static const float boundaries[N_BOUNDARIES] = {0, -0.6f, 0, 0.3f, 0.75f, 1};
    static const double pinned[] = {-1, 0.5, 0};
    static writing got;
    int64_t n = s->n_cases++;
    drey_engine_options o = plain();
    drey_unit_shares shares = {.n_boundaries = boundary > 0, .boundary = {boundaries[boundary]}};
    shares.n_units = 1;
    for (const char *c = units; *c; c++)
        shares.n_units += *c == '+' && strncmp(c, "+static", 7) != 0;
    for (int32_t i = 0; i < DREY_UNIT_WIDTHS * DREY_MAX_UNITS; i++)
        shares.share[i / DREY_MAX_UNITS][i % DREY_MAX_UNITS] = 1 + i % DREY_MAX_UNITS;
    set_drafter(s, &o, who);
    o.units = units;
    o.unit_shares = &shares;
    const engine_tuning tuning = {
        .set_share = n % 3 > 0, .share = pinned[n % 3], .untimed = true, .device = &fake_device};
    const writing *want = &s->want[n % 2];
    writing_run_tuned(&got, &o, &tuning, s->prompt, N_PROMPT, N_TEXT, n % 2 ? &sampled : NULL);
    if (got.status != DREY_OK)
        return &got;
    if (got.n_ids != want->n_ids || got.n_bytes != want->n_bytes ||
        memcmp(got.ids, want->ids, (size_t)got.n_ids * sizeof *got.ids) != 0 ||
        memcmp(got.text, want->text, got.n_bytes) != 0)
        fail_msg("%s, drafter %s, boundary %d, %s: another text", units, drey_drafter_name(who),
                 boundary, n % 2 ? "sampled" : "greedy");
    s->accepted += got.stats.accepted;
    s->refused += got.stats.drafted - got.stats.accepted;
    for (int32_t i = 0; i < got.n_units; i++) {
        s->dense_blocks += (int64_t)got.units[i].n_dense_blocks;
        s->tails += (int64_t)got.units[i].n_tails;
    }
    return &got;
}

static void written(const writing *w, const char *units)
{
    if (w->status != DREY_OK)
        fail_msg("%s: %s", units, w->error.message);
}

/* Where nobody takes over, the boundary says who has what; where one cluster is, nothing is
 * divided. */
static void the_boundary_decides(void **state)
{
    scene *s = *state;
    static const char units[] = "cpu+cpu+static";
    const writing *w = write_case(s, units, DREY_DRAFTER_MEDUSA, 2); /* 0 */
    written(w, units);
    assert_true(w->units[0].n_dense_blocks > 0 && w->units[0].n_tails == 0);
    assert_true(w->units[1].n_dense_blocks == 0 && w->units[1].n_tails > 0);
    w = write_case(s, units, DREY_DRAFTER_MEDUSA, 5); /* 1 */
    written(w, units);
    assert_true(w->units[0].n_dense_blocks == 0 && w->units[0].n_tails == 0);
    assert_true(w->units[1].n_dense_blocks > 0 && w->units[1].n_tails > 0);
    w = write_case(s, "cpu", DREY_DRAFTER_MEDUSA, 5);
    written(w, "cpu");
    assert_true(w->units[0].n_dense_blocks == 0 && w->units[0].n_tails == 0);
}

/* A device is a wide unit; what it fails with is the clusters'. */
static void devices_attend(void **state)
{
    scene *s = *state;
    static const char units[] = "cpu+fake+static", failing[] = "cpu+fake:attend1+static",
                      plain_one[] = "cpu+fake:plain+static";
    const writing *w = write_case(s, units, DREY_DRAFTER_MEDUSA, 2); /* 0 */
    written(w, units);
    assert_true(w->units[0].n_dense_blocks == 0 && w->units[0].n_tails > 0);
    assert_true(w->units[1].n_dense_blocks > 0 && w->units[1].n_tails == 0);
    assert_true(w->units[0].attends && w->units[1].attends);
    w = write_case(s, units, DREY_DRAFTER_MEDUSA, 5); /* 1 */
    written(w, units);
    assert_true(w->units[0].n_dense_blocks > 0 && w->units[1].n_dense_blocks == 0);
    w = write_case(s, failing, DREY_DRAFTER_MEDUSA, 2);
    written(w, failing);
    assert_non_null(strstr(w->units[1].failed, "the fake device looked away"));
    assert_true(w->units[0].n_dense_blocks > 0 && w->units[1].n_dense_blocks == 0);
    assert_true(w->units[0].attends && !w->units[1].attends);
    w = write_case(s, plain_one, DREY_DRAFTER_MEDUSA, 2);
    written(w, plain_one);
    assert_true(w->units[0].n_dense_blocks == 0 && w->units[1].n_dense_blocks == 0);
    assert_true(!w->units[1].attends && w->units[1].failed[0] == 0);
}

#ifndef TESTS_SANITIZED /* drivers leak and race as they like */
/* A device beside clusters, if there is one. */
static void with_a_device(void **state)
{
    scene *s = *state;
    static const char *const units[] = {"cpu+cpu+opencl", "cpu+opencl+static"};
    for (int i = 0; i < 2; i++)
        for (int boundary = 0; boundary < N_BOUNDARIES; boundary++) {
            const writing *w = write_case(s, units[i], DREY_DRAFTER_MEDUSA, boundary);
            if (w->status == DREY_ERR_UNSUPPORTED) {
                print_message("no device is tested: %s\n", w->error.message);
                skip();
            }
            written(w, units[i]);
            const drey_unit *d = &w->units[w->n_units - 1];
            assert_string_equal(d->failed, "");
            if (i == 1 && boundary < N_BOUNDARIES - 1)
                assert_true(!d->attends || d->n_dense_blocks > 0);
        }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_boundary_decides),
        cmocka_unit_test(devices_attend),
#ifndef TESTS_SANITIZED
        cmocka_unit_test(with_a_device),
#endif
    };
    return cmocka_run_group_tests(tests, set_up, toys_close);
}
