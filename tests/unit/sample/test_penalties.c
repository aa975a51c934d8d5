/* Penalties against their rules, restated by brute force: counts, the formula, repetitions looked
 * for place by place; and that a past in two parts, timeline and drafted path, is the same past. */
#include "sample/penalties.h"
#include "sample/sampler.h"
#include "support/scene.h"

enum { V = 30, N_CONTEXT = 60 };

typedef struct bench {
    arena memory;
    penalties p;
    penalty_count count[V];
    int32_t text[N_CONTEXT];
} bench;

static void bench_make(bench *b, const drey_penalties *set)
{
    MUST(penalties_check, set);
    MUST(arena_init, &b->memory, penalties_bytes(V, N_CONTEXT), false);
    penalties_init(&b->p, set, b->text, V, N_CONTEXT, &b->memory);
    assert_int_equal(b->memory.short_bytes, 0);
}

/* The longest repetition, without breakers, that `token` would continue; -1: none. */
static int32_t repetition(const int32_t *text, int32_t n, int32_t token, uint32_t breaks)
{
    int32_t longest = -1;
    for (int32_t end = 0; end < n; end++) { /* the place of an earlier occurrence */
        int32_t k = 0;
        if (text[end] != token)
            continue;
        while (end - 1 - k >= 0 && text[end - 1 - k] == text[n - 1 - k] &&
               !(breaks >> text[n - 1 - k] & 1))
            k++;
        longest = k > longest ? k : longest;
    }
    return longest;
}

static double wanted(const drey_penalties *set, double logit, const int32_t *text, int32_t n,
                     int32_t token, uint32_t breaks)
{
    int32_t last = set->last_n < 0 || set->last_n > n ? n : set->last_n, seen = 0;
    for (int32_t i = n - last; i < n; i++)
        seen += text[i] == token;
    if (seen > 0) {
        logit = logit > 0 ? logit / (double)set->repeat : logit * (double)set->repeat;
        logit -= seen * (double)set->frequency + (double)set->presence;
    }
    int32_t from = set->dry_last_n < 0 || set->dry_last_n > n ? 0 : n - set->dry_last_n;
    int32_t k = repetition(text + from, n - from, token, breaks);
    if (set->dry_multiplier > 0 && set->dry_last_n != 0 && k > 0 && k >= set->dry_allowed_length)
        logit -=
            (double)set->dry_multiplier * pow((double)set->dry_base, k - set->dry_allowed_length);
    return logit;
}

static drey_penalties random_settings(rng *r)
{
    static const int32_t windows[] = {0, 1, 5, 20, -1};
    return (drey_penalties){.repeat = 0.8f + (float)rng_below(r, 10) / 10,
                            .frequency = (float)rng_below(r, 5) / 4 - 0.25f,
                            .presence = (float)rng_below(r, 5) / 4 - 0.25f,
                            .last_n = windows[rng_below(r, 5)],
                            .dry_multiplier = (float)rng_below(r, 3),
                            .dry_base = 1 + (float)rng_below(r, 4) / 4,
                            .dry_allowed_length = rng_below(r, 4),
                            .dry_last_n = windows[rng_below(r, 5)]};
}

TEST(as_the_rules_say)
{
    rng r = {31};
    int64_t counted = 0, repeated = 0;
    for (int round = 0; round < 600; round++) {
        bench b;
        drey_penalties set = random_settings(&r);
        bench_make(&b, &set);
        int32_t n = rng_below(&r, N_CONTEXT + 1), kinds = 2 + rng_below(&r, V - 2);
        uint32_t breaks = round % 3 ? 0 : UINT32_C(1) << rng_below(&r, V);
        for (int32_t i = 0; i < n; i++)
            b.text[i] = rng_below(&r, kinds);
        for (int32_t id = 0; id < V; id++)
            if (breaks >> id & 1)
                penalties_set_break(&b.p, id);
        float logits[V], before[V];
        for (int i = 0; i < V; i++)
            logits[i] = before[i] = (float)rng_normal(&r) * 3;
        int32_t n_drafted = n ? rng_below(&r, n) : 0, drafted[N_CONTEXT];
        memcpy(drafted, b.text + n - n_drafted, (size_t)n_drafted * sizeof *drafted);
        int32_t text[N_CONTEXT];
        memcpy(text, b.text, sizeof text);
        for (int32_t i = n - n_drafted; i < N_CONTEXT; i++)
            b.text[i] = V - 1; /* of the timeline, and not of this past */
        const text_past past = {b.text, drafted, n, n_drafted};
        penalties_apply(&b.p, logits, &(logit_ids){.n_first = V}, &past, b.count, V);
        for (int32_t id = 0; id < V; id++) {
            double want = wanted(&set, (double)before[id], text, n, id, breaks);
            assert_true(fabs((double)logits[id] - want) <= 1e-5 * (1 + fabs(want)));
            counted += fabs(want - (double)before[id]) > 1e-6;
            repeated += set.dry_multiplier > 0 && repetition(text, n, id, breaks) > 1;
        }
        penalties_take_back(&b.p, logits);
        assert_memory_equal(logits, before, sizeof logits);
        arena_free(&b.memory);
    }
    assert_true(counted > 1000 && repeated > 100);
}

/* A draft's head with other ids in other places: each token's logit changes as it would there. */
TEST(logits_in_another_order)
{
    rng r = {32};
    for (int round = 0; round < 100; round++) {
        bench b;
        drey_penalties set = random_settings(&r);
        bench_make(&b, &set);
        float whole[V], part[12];
        const int32_t more[4] = {20, -1, 11, V + 5};
        for (int32_t i = 0; i < N_CONTEXT; i++)
            b.text[i] = rng_below(&r, V);
        for (int i = 0; i < V; i++)
            whole[i] = (float)rng_normal(&r);
        memcpy(part, whole, 8 * sizeof *part);
        part[8] = whole[20], part[9] = 5, part[10] = whole[11], part[11] = 6;
        const text_past past = {b.text, NULL, N_CONTEXT, 0};
        const logit_ids ids = {.n_first = 8, .n_more = 4, .more = more};
        penalties_apply(&b.p, whole, &(logit_ids){.n_first = V}, &past, b.count, V);
        float want[12];
        memcpy(want, whole, 8 * sizeof *want);
        want[8] = whole[20], want[9] = 5, want[10] = whole[11], want[11] = 6;
        penalties_take_back(&b.p, whole);
        penalties_apply(&b.p, part, &ids, &past, b.count, V);
        assert_memory_equal(part, want, sizeof part);
        arena_free(&b.memory);
    }
}

TEST(what_is_off_and_what_is_refused)
{
    drey_penalties p, bad;
    drey_penalties_init(&p);
    assert_false(penalties_are_there(&p));
    assert_false(penalties_are_there(NULL));
    MUST(penalties_check, &p);
    static const struct {
        int field;
        float value;
        const char *named;
    } cases[] = {{0, NAN, "repeat"},   {0, -1, "repeat"},       {1, 101, "frequency"},
                 {2, NAN, "presence"}, {3, -2, "last -2"},      {4, -1, "multiplier"},
                 {5, NAN, "base"},     {6, -1, "length of -1"}, {7, -3, "DRY at -3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bad = p;
        float *reals[] = {&bad.repeat, &bad.frequency,      &bad.presence,
                          NULL,        &bad.dry_multiplier, &bad.dry_base};
        int32_t *counts[] = {
            [3] = &bad.last_n, [6] = &bad.dry_allowed_length, [7] = &bad.dry_last_n};
        if (cases[i].field < 6 && reals[cases[i].field])
            *reals[cases[i].field] = cases[i].value;
        else
            *counts[cases[i].field] = (int32_t)cases[i].value;
        REFUSED(DREY_ERR_USAGE, cases[i].named, penalties_check, &bad);
    }
    p.repeat = 1.1f;
    assert_true(penalties_are_there(&p));
    p.last_n = 0;
    assert_false(penalties_are_there(&p));
}
