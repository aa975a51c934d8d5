/* The product's promise for every architecture: a text does not depend on drafter, budget, sidecar,
 * threads, prompt chunks or CPU tier. test_matrix combines these settings for two architectures;
 * here each architecture meets each of them once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/logit_toys.h"
#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/writing.h"

/* With the prompt more positions than any toy's window or a block of attention has. */
enum { N_PROMPT = 60, N_TEXT = 24 };

typedef struct pair {
    const char *name;
    drey_model *target, *draft;
    int32_t prompt[N_PROMPT];
} pair;

static void open_toy(drey_model **m, const char *name, const toy_options *toy)
{
    drey_error err = {0};
    toy_write(temp_path(name), toy);
    if (drey_model_open(m, temp_path(name), &err) != DREY_OK)
        fail_msg("%s: %s", name, err.message);
}

/* Quantised in a type that has planes; the draft has a layer less. */
static void open_pair(pair *p, int i)
{
    toy_options toy;
    *p = (pair){.name = arch_toy(i, &toy)};
    toy.type = TYPE_Q4_K;
    toy.n_embd = toy.n_ff = 256;
    if (toy.head_dim > 0) { /* wider than width / heads */
        toy.n_heads = 8;
        toy.head_dim = 64;
    }
    temp_dir();
    open_toy(&p->target, "target.gguf", &toy);
    toy.n_layers--;
    open_toy(&p->draft, "draft.gguf", &toy);
    for (int32_t t = 0; t < N_PROMPT; t++)
        p->prompt[t] = (t * 7919 + 13) % 300;
}

static void close_pair(pair *p)
{
    drey_model_close(&p->target);
    drey_model_close(&p->draft);
    temp_dir_remove();
}

static void prepare(const pair *p, const char *path, bool planes)
{
    drey_prepare_options o;
    drey_prepare_options_init(&o);
    o.model = p->target;
    o.output = path;
    o.planes = planes;
    drey_prepare_report report;
    drey_error err;
    if (drey_prepare(&o, &report, &err) != DREY_OK)
        fail_msg("%s: %s", p->name, err.message);
}

/* One setting after another. Returns false behind the last one. */
static bool setting(const pair *p, int which, drey_engine_options *o, double *share,
                    const char **what)
{
    *share = -1;
    switch (which) {
    case 0:
        *what = "best tier, two threads, chunks of 7";
        o->cpu_tier = NULL;
        o->n_threads = 2;
        o->prompt_chunk = 7;
        return true;
    case 1:
        *what = "a tree of a draft model, half of it streamed";
        *share = 0.5;
        o->drafter = DREY_DRAFTER_MODEL;
        o->policy = DREY_POLICY_OPTIMAL;
        o->draft = p->draft;
        o->cpu_tier = NULL;
        return true;
    case 2:
        *what = "lookup, all of it streamed, two threads";
        *share = 0;
        o->drafter = DREY_DRAFTER_LOOKUP;
        o->policy = DREY_POLICY_OPTIMAL;
        o->n_threads = 2;
        o->cpu_tier = drey_cpu_tiers()[1];
        return true;
    case 3:
        *what = "streamed from a sidecar";
        *share = 0.3;
        o->sidecar = temp_path("target.drey");
        o->cpu_tier = NULL;
        return true;
    case 4:
        *what = "drafted by its own high bits";
        o->sidecar = temp_path("planes.drey");
        o->drafter = DREY_DRAFTER_SELF;
        o->policy = DREY_POLICY_OPTIMAL;
        o->cpu_tier = NULL;
        return true;
    default:
        return false;
    }
}

static void check(const pair *p)
{
    static writing want, got;
    drey_engine_options plain = plain_options(p->target, 128, 1);
    plain.cpu_tier = "ref";
    writing_run(&want, &plain, -1, p->prompt, N_PROMPT, N_TEXT, NULL);
    if (want.status != DREY_OK)
        fail_msg("%s: %s", p->name, want.error.message);
    assert_int_equal(want.n_ids, N_TEXT);
    drey_engine_options o = plain;
    double share;
    const char *what;
    for (int i = 0; setting(p, i, &o, &share, &what); i++, o = plain) {
        writing_run(&got, &o, share, p->prompt, N_PROMPT, N_TEXT, NULL);
        if (got.status != DREY_OK)
            fail_msg("%s, %s: %s", p->name, what, got.error.message);
        if (got.n_ids != N_TEXT || memcmp(got.ids, want.ids, sizeof *want.ids * N_TEXT) != 0)
            fail_msg("%s, %s: another text", p->name, what);
    }
}

TEST(every_architecture)
{
    for (int i = 0; i < N_ARCH_TOYS; i++) {
        pair p;
        open_pair(&p, i);
        prepare(&p, temp_path("target.drey"), false);
        prepare(&p, temp_path("planes.drey"), true);
        check(&p);
        close_pair(&p);
    }
}
