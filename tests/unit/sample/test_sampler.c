/* The sampler against oracles in double with the C library's exp and log: full sorts, the noise of
 * every id, and exact probabilities. Seeds are fixed, so a statistical test always gives the same
 * answer. */

#include "kernel/kernel.h"
#include "sample/penalties.h"
#include "sample/sampler.h"
#include "support/scene.h"

enum { MAX_VOCAB = 20000 };

static const drey_sampling plain = {.temperature = 1, .top_p = 1};

typedef struct bench {
    arena memory;
    sampler s;
} bench;

static bench bench_make(drey_sampling settings, int32_t n_vocab)
{
    bench b;
    MUST(arena_init, &b.memory, sampler_bytes(n_vocab), false);
    const kernel_table *kernels = kernel_select("ref");
    assert_non_null(kernels);
    MUST(sampler_init, &b.s, &settings, n_vocab, kernels, &b.memory);
    return b;
}

static void bench_free(bench *b)
{
    arena_free(&b->memory);
}

/* ---- The oracle ---- */

/* Rest after the filters: ids in order, with their probabilities (temperature applied). */
typedef struct left {
    int32_t n;
    int32_t id[MAX_VOCAB];
    double p[MAX_VOCAB];
    bool doubtful; /* a filter's edge is too near for a comparison with float sums */
} left;

static const float *sort_logits;

static int by_logit(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (sort_logits[x] != sort_logits[y])
        return sort_logits[x] > sort_logits[y] ? -1 : 1;
    return x < y ? -1 : 1;
}

static void oracle(left *o, const drey_sampling *set, const float *logits, int32_t n_vocab)
{
    o->n = 0;
    o->doubtful = false;
    for (int32_t i = 0; i < n_vocab; i++)
        if (logits[i] > -INFINITY)
            o->id[o->n++] = i;
    sort_logits = logits;
    qsort(o->id, (size_t)o->n, sizeof *o->id, by_logit);
    if (set->top_k > 0 && set->top_k < o->n)
        o->n = set->top_k;
    double best = (double)logits[o->id[0]], total = 0;
    for (int32_t i = 0; i < o->n; i++)
        total += o->p[i] = exp((double)logits[o->id[i]] - best);
    if (set->top_p < 1) {
        double sum = 0;
        for (int32_t i = 0; i < o->n; i++) {
            sum += o->p[i] / total;
            o->doubtful |= fabs(sum - (double)set->top_p) < 1e-5;
            if (sum >= (double)set->top_p)
                o->n = i + 1;
        }
    }
    while (o->n > 1 && o->p[o->n - 1] < (double)set->min_p)
        o->n--; /* p of the best is 1 */
    double weight = 0;
    for (int32_t i = 0; i < o->n; i++)
        weight += o->p[i] = exp(((double)logits[o->id[i]] - best) / (double)set->temperature);
    for (int32_t i = 0; i < o->n; i++)
        o->p[i] /= weight;
}

/* The noise as the sampler's header comment defines it, with the C library's log. */
static uint64_t remix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static double noise(uint64_t seed, int64_t position, int32_t id)
{
    const uint64_t golden = 0x9E3779B97F4A7C15u;
    uint64_t key = remix(remix(seed + golden) + (uint64_t)position);
    uint64_t j = remix(key + golden * ((uint64_t)id + 1)) / 4096;
    return -log(-log((2 * (double)j + 1) / 9007199254740992.0));
}

/* Noisy scores of all that is left, best first in id/p (p: the score). */
static void noisy_scores(left *o, const drey_sampling *set, int64_t position)
{
    for (int32_t i = 0; i < o->n; i++)
        o->p[i] = log(o->p[i]) + noise(set->seed, position, o->id[i]);
    for (int32_t i = 0; i < o->n && i < 8; i++) { /* the first eight are enough */
        int32_t best = i;
        for (int32_t k = i + 1; k < o->n; k++)
            if (o->p[k] > o->p[best])
                best = k;
        double p = o->p[i];
        int32_t id = o->id[i];
        o->p[i] = o->p[best], o->id[i] = o->id[best];
        o->p[best] = p, o->id[best] = id;
    }
}

static void random_logits(rng *r, float *logits, int32_t n, int shape)
{
    for (int32_t i = 0; i < n; i++) {
        double x = rng_normal(r) * (shape == 0 ? 3 : shape == 1 ? 0.3 : 8);
        if (shape == 3)
            x = floor(x / 4); /* many equal ones */
        logits[i] = (float)x;
    }
    if (shape == 2)
        logits[rng_below(r, n)] += 40; /* one is nearly certain */
}

/* ---- Filters, order and pruning: the same choice as full sorts and the noise of every id ---- */

static drey_sampling random_settings(rng *r, int32_t n)
{
    const float heat[] = {0.1f, 0.7f, 1, 1.3f, 20};
    drey_sampling set = {.temperature = heat[rng_below(r, 5)], .top_p = 1, .seed = rng_next(r)};
    int which = rng_below(r, 8);
    if (which & 1)
        set.top_k = rng_below(r, 3) ? 1 + rng_below(r, 50) : 1 + rng_below(r, 2 * n);
    if (which & 2)
        set.top_p = (float)rng_unit(r);
    if (which & 4)
        set.min_p = (float)(rng_unit(r) * (rng_below(r, 2) ? 0.2 : 1e-4));
    return set;
}

static void check_guess(sampler *s, const left *o, const float *logits, int64_t position,
                        int32_t n_vocab)
{
    candidate guess[8];
    int32_t n = sampler_guess(s, logits, position, &(logit_ids){.n_first = n_vocab}, guess, 8);
    assert_int_equal(n, o->n < 8 ? o->n : 8);
    double all = 0, near = 0;
    for (int32_t i = 0; i < o->n; i++) {
        double w = exp(o->p[i] - o->p[0]);
        all += w;
        near += o->p[i] > o->p[0] - 7 ? w : 0;
    }
    for (int32_t i = 0; i < n; i++) {
        assert_int_equal(guess[i].token, o->id[i]);
        double w = exp(o->p[i] - o->p[0]), c = (double)guess[i].confidence;
        assert_true(c > w / all * (1 - 1e-6) - 1e-30 && c < w / near * (1 + 1e-6) + 1e-30);
    }
}

TEST(choices_are_those_of_the_definition)
{
    static float logits[MAX_VOCAB];
    static left o;
    rng r = {11};
    int doubtful = 0;
    for (int round = 0; round < 600; round++) {
        int32_t n = round % 50 == 0 ? MAX_VOCAB : 1 + rng_below(&r, 600);
        random_logits(&r, logits, n, rng_below(&r, 4));
        if (round % 7 == 0)
            for (int32_t i = 1; i < n; i += 3)
                logits[i] = -INFINITY;
        drey_sampling set = random_settings(&r, n);
        bench b = bench_make(set, n);
        oracle(&o, &set, logits, n);
        doubtful += o.doubtful;
        for (int64_t position = 0; position < 4 && !o.doubtful; position++) {
            oracle(&o, &set, logits, n);
            noisy_scores(&o, &set, position);
            assert_int_equal(sampler_choose(&b.s, logits, position), o.id[0]);
            check_guess(&b.s, &o, logits, position, n);
        }
        bench_free(&b);
    }
    assert_true(doubtful < 60);
}

/* Every kernel tier of this machine makes the same choices. */
TEST(tiers_agree)
{
    static float logits[5000];
    rng r = {12};
    bench b = bench_make(plain, 5000);
    for (int round = 0; round < 40; round++) {
        random_logits(&r, logits, 5000, round % 4);
        if (round % 6 == 5)
            logits[rng_below(&r, 5000)] = NAN;
        b.s.settings = random_settings(&r, 5000);
        b.s.settings.temperature *= (float)(round % 5 > 0);
        b.s.kernels = kernel_select("ref");
        int32_t token = sampler_choose(&b.s, logits, round);
        candidate guess[8], other[8];
        int32_t n = sampler_guess(&b.s, logits, round, &(logit_ids){.n_first = 4990}, guess, 8);
        for (const char *const *tier = kernel_tiers(); *tier; tier++) {
            b.s.kernels = kernel_select(*tier);
            assert_int_equal(sampler_choose(&b.s, logits, round), token);
            assert_int_equal(
                sampler_guess(&b.s, logits, round, &(logit_ids){.n_first = 4990}, other, 8), n);
            assert_memory_equal(guess, other, (size_t)n * sizeof *guess);
        }
    }
    bench_free(&b);
}

/* ---- Distributions ---- */

/* Fails when chi-square exceeds what one in a few million correct samplers would show
 * (Wilson-Hilferty). Bins that expect fewer than 5 are pooled. */
static void assert_distribution(const int *seen, const double *p, int n, int draws)
{
    double chi = 0, rare_expected = 0, rare_seen = 0;
    int bins = 0;
    for (int i = 0; i < n; i++) {
        double expected = p[i] * draws;
        if (p[i] == 0)
            assert_int_equal(seen[i], 0);
        if (expected < 5) {
            rare_expected += expected;
            rare_seen += seen[i];
            continue;
        }
        chi += (seen[i] - expected) * (seen[i] - expected) / expected;
        bins++;
    }
    if (rare_expected >= 5) {
        chi += (rare_seen - rare_expected) * (rare_seen - rare_expected) / rare_expected;
        bins++;
    } else {
        assert_true(rare_seen < 30);
    }
    double d = bins - 1, w = 1 - 2 / (9 * d) + 5 * sqrt(2 / (9 * d));
    assert_true(bins == 1 || chi < d * w * w * w);
}

enum { SMALL_VOCAB = 24, DRAWS = 20000 };

TEST(samples_follow_the_probabilities)
{
    const drey_sampling all[] = {
        {.temperature = 1, .top_p = 1},
        {.temperature = 0.5f, .top_p = 1},
        {.temperature = 2, .top_p = 1},
        {.temperature = 1, .top_k = 5, .top_p = 1},
        {.temperature = 1, .top_p = 0.8f},
        {.temperature = 1, .top_p = 1, .min_p = 0.1f},
        {.temperature = 1.5f, .top_k = 12, .top_p = 0.9f, .min_p = 0.02f},
    };
    static left o;
    rng r = {13};
    float logits[SMALL_VOCAB];
    for (int i = 0; i < SMALL_VOCAB; i++)
        logits[i] = (float)(1.5 * rng_normal(&r));
    logits[3] = logits[17] = logits[9]; /* ties take their shares */
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        for (int over_seeds = 0; over_seeds < 2; over_seeds++) {
            bench b = bench_make(all[k], SMALL_VOCAB);
            int seen[SMALL_VOCAB] = {0};
            double p[SMALL_VOCAB] = {0};
            for (int i = 0; i < DRAWS; i++) {
                b.s.settings.seed = over_seeds ? (uint64_t)i : 77;
                seen[sampler_choose(&b.s, logits, over_seeds ? 5 : i)]++;
            }
            oracle(&o, &all[k], logits, SMALL_VOCAB);
            for (int i = 0; i < o.n; i++)
                p[o.id[i]] = o.p[i];
            assert_distribution(seen, p, SMALL_VOCAB, DRAWS);
            bench_free(&b);
        }
    }
}

/* Two tokens in a row, where the second's logits depend on the first: P(a) P(b | a); and the same
 * position under neighbouring seeds with the same logits: P(a) P(b). */
TEST(pairs_follow_the_probabilities)
{
    enum { V = 8 };
    static left o;
    rng r = {14};
    float logits[V + 1][V];
    double p[V + 1][V], pair[V * V], twice[V * V];
    for (int i = 0; i <= V; i++) {
        for (int k = 0; k < V; k++)
            logits[i][k] = (float)rng_normal(&r);
        oracle(&o, &plain, logits[i], V);
        for (int k = 0; k < V; k++)
            p[i][o.id[k]] = o.p[k];
    }
    for (int i = 0; i < V * V; i++) {
        pair[i] = p[V][i / V] * p[i / V][i % V];
        twice[i] = p[V][i / V] * p[V][i % V];
    }
    bench b = bench_make(plain, V);
    int seen[V * V] = {0}, seen_twice[V * V] = {0};
    for (int seed = 0; seed < 2 * DRAWS; seed++) {
        b.s.settings.seed = (uint64_t)seed;
        int32_t first = sampler_choose(&b.s, logits[V], 100);
        int32_t second = sampler_choose(&b.s, logits[first], 101);
        seen[first * V + second]++;
        b.s.settings.seed = (uint64_t)seed + 1;
        seen_twice[first * V + sampler_choose(&b.s, logits[V], 100)]++;
    }
    assert_distribution(seen, pair, V * V, 2 * DRAWS);
    assert_distribution(seen_twice, twice, V * V, 2 * DRAWS);
    bench_free(&b);
}

/* ---- Edges ---- */

TEST(temperature_zero_takes_the_first_of_the_best)
{
    bench b = bench_make((drey_sampling){.top_p = 1}, 6);
    const float logits[6] = {1, 3, -2, 3, 0, -INFINITY};
    assert_int_equal(sampler_choose(&b.s, logits, 0), 1);
    candidate guess[8];
    assert_int_equal(sampler_guess(&b.s, logits, 0, &(logit_ids){.n_first = 6}, guess, 8), 5);
    const int32_t order[] = {1, 3, 0, 4, 2};
    double total = 2 + exp(-2) + exp(-3) + exp(-5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(guess[i].token, order[i]);
        double p = exp((double)logits[order[i]] - 3) / total;
        assert_true(fabs((double)guess[i].confidence - p) < 1e-6);
    }
    /* A padded vocabulary: ids from 3 on do not exist. */
    assert_int_equal(sampler_guess(&b.s, logits, 0, &(logit_ids){.n_first = 3}, guess, 2), 2);
    assert_int_equal(guess[0].token, 1);
    assert_int_equal(guess[1].token, 0);
    assert_true(fabs((double)guess[0].confidence - 1 / (1 + exp(-2) + exp(-5))) < 1e-6);
    bench_free(&b);
}

TEST(nothing_else_than_the_best)
{
    static float logits[1000];
    rng r = {15};
    const drey_sampling all[] = {{.temperature = 2, .top_k = 1, .top_p = 1},
                                 {.temperature = 2, .top_p = 0},
                                 {.temperature = 2, .top_p = 1, .min_p = 1},
                                 {.temperature = 1e-30f, .top_p = 1}};
    for (int k = 0; k < 4; k++) {
        random_logits(&r, logits, 1000, 0);
        bench b = bench_make(all[k], 1000);
        int32_t best = (int32_t)b.s.kernels->arg_max(logits, 1000);
        for (int i = 0; i < 100; i++)
            assert_int_equal(sampler_choose(&b.s, logits, i), best);
        bench_free(&b);
    }
}

TEST(broken_logits)
{
    const drey_sampling all[] = {
        {.top_p = 1},
        {.temperature = 1, .top_p = 1},
        {.temperature = 1, .top_k = 3, .top_p = 1},
        {.temperature = 1, .top_p = 0.9f},
        {.temperature = 1, .top_k = 4, .top_p = 0.9f, .min_p = 0.01f},
    };
    const float none[5] = {-INFINITY, NAN, -INFINITY, NAN, NAN};
    const float some[5] = {NAN, -INFINITY, 1, NAN, 1};
    const float one[5] = {NAN, 1, INFINITY, NAN, -INFINITY};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        bench b = bench_make(all[k], 5);
        candidate guess[8];
        int twos = 0, fours = 0;
        for (int i = 0; i < 200; i++) {
            assert_int_equal(sampler_choose(&b.s, none, i), 0);
            assert_int_equal(sampler_choose(&b.s, one, i), 2);
            int32_t token = sampler_choose(&b.s, some, i);
            twos += token == 2;
            fours += token == 4;
            assert_int_equal(sampler_guess(&b.s, some, i, &(logit_ids){.n_first = 5}, guess, 8), 2);
            assert_int_equal(guess[0].token, token);
            assert_true((double)guess[0].confidence >= 0.5 - 1e-6);
        }
        assert_int_equal(twos + fours, 200);
        assert_true(all[k].temperature == 0 ? twos == 200 : twos > 60 && fours > 60);
        assert_int_equal(sampler_guess(&b.s, none, 0, &(logit_ids){.n_first = 5}, guess, 8), 1);
        assert_int_equal(guess[0].token, 0);
        assert_int_equal(sampler_guess(&b.s, one, 0, &(logit_ids){.n_first = 5}, guess, 8), 1);
        assert_int_equal(guess[0].token, 2);
        bench_free(&b);
    }
}

TEST(settings_out_of_range)
{
    static const struct {
        drey_sampling bad;
        const char *name;
    } cases[] = {
        {{.temperature = -1, .top_p = 1}, "temperature"},
        {{.temperature = NAN, .top_p = 1}, "temperature"},
        {{.temperature = INFINITY}, "temperature"},
        {{.top_k = -1, .top_p = 1}, "top-k"},
        {{.top_p = 1.5f}, "top-p"},
        {{.top_p = NAN}, "top-p"},
        {{.top_p = -0.1f}, "top-p"},
        {{.top_p = 1, .min_p = 1.1f}, "min-p"},
        {{.top_p = 1, .min_p = -0.5f}, "min-p"},
        {{.top_p = 1, .min_p = NAN}, "min-p"},
    };
    arena a;
    MUST(arena_init, &a, sampler_bytes(10), false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sampler s;
        REFUSED(DREY_ERR_USAGE, cases[i].name, sampler_init, &s, &cases[i].bad, 10,
                kernel_select("ref"), &a);
    }
    arena_free(&a);
}
