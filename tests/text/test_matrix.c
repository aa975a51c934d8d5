/* The product's promise, for every architecture: the text does not depend on drafter, policy,
 * ablation, exact exits, units, budget, sidecar, kind of reads and their failures, processor,
 * threads, chunks of the prompt, company, or pauses, also under a grammar. Values of settings are
 * combined in two ways: a fixed part in which every value of every axis occurs, with a mixture of
 * experts as well, and every pair of values of those axes that have to do with each other; and a
 * part drawn by a seed, which is printed. DREY_TEST_SEED=N draws it again; DREY_TEST_EVERY=N takes
 * one case of N of the fixed part, another one for another seed. */
#include <time.h>

#include "support/test.h"
#include "text/matrix.h"

#ifdef TESTS_SANITIZED
enum { EVERY = 8 };
#else
enum { EVERY = 1 };
#endif
enum { MOST_CASES = 1000 };

/* Every pair of values of these axes occurs; with itself: every value. */
static const matrix_axis pairs[][2] = {
    {AXIS_DRAFTER, AXIS_POLICY},    {AXIS_DRAFTER, AXIS_WITHOUT},   {AXIS_POLICY, AXIS_WITHOUT},
    {AXIS_EXIT, AXIS_POLICY},       {AXIS_EXIT, AXIS_DRAFTER},      {AXIS_EXIT, AXIS_SHARE},
    {AXIS_DRAFTER, AXIS_SHARE},     {AXIS_DRAFTER, AXIS_TIER},      {AXIS_DRAFTER, AXIS_SAMPLING},
    {AXIS_DRAFTER, AXIS_SESSIONS},  {AXIS_DRAFTER, AXIS_LOOKUP},    {AXIS_DRAFTER, AXIS_KV},
    {AXIS_UNITS, AXIS_DRAFTER},     {AXIS_UNITS, AXIS_BOUNDARY},    {AXIS_UNITS, AXIS_PROMPT},
    {AXIS_UNITS, AXIS_SHARE},       {AXIS_TIER, AXIS_KV},           {AXIS_TIER, AXIS_MODEL},
    {AXIS_SHARE, AXIS_IO},          {AXIS_SHARE, AXIS_SIDECAR},     {AXIS_SHARE, AXIS_READS},
    {AXIS_CHUNK, AXIS_THREADS},     {AXIS_CHUNK, AXIS_TIER},        {AXIS_SESSIONS, AXIS_EXIT},
    {AXIS_SESSIONS, AXIS_POLICY},   {AXIS_CLOCK, AXIS_POLICY},      {AXIS_MODEL, AXIS_DRAFTER},
    {AXIS_MODEL, AXIS_PROMPT},      {AXIS_MODEL, AXIS_SHARE},       {AXIS_EXIT, AXIS_READS},
    {AXIS_EXIT, AXIS_TIER},         {AXIS_PAUSE, AXIS_EXIT},        {AXIS_PAUSE, AXIS_DRAFTER},
    {AXIS_READS, AXIS_DRAFTER},     {AXIS_GRAMMAR, AXIS_DRAFTER},   {AXIS_GRAMMAR, AXIS_POLICY},
    {AXIS_GRAMMAR, AXIS_SAMPLING},  {AXIS_GRAMMAR, AXIS_LOOKUP},    {AXIS_GRAMMAR, AXIS_SESSIONS},
    {AXIS_GRAMMAR, AXIS_MODEL},     {AXIS_PENALTIES, AXIS_DRAFTER}, {AXIS_PENALTIES, AXIS_SAMPLING},
    {AXIS_PENALTIES, AXIS_GRAMMAR},
};
enum { N_PAIRS = sizeof pairs / sizeof *pairs, MOST_VALUES = 96 };

static bool covered[N_PAIRS][MOST_VALUES][MOST_VALUES];
/* Kinds of models with which every value of every axis occurs. */
enum { A_MIXTURE, WITH_STATES, N_KINDS };
static bool with_kind[N_KINDS][N_AXES][MOST_VALUES];
static matrix_case cases[MOST_CASES];

static bool is_of(int kind, const matrix_case *c)
{
    int32_t model = c->at[AXIS_MODEL];
    return kind == A_MIXTURE ? matrix_is_mixture(model) : matrix_has_states(model);
}

static void cover(const matrix_case *c)
{
    for (int p = 0; p < N_PAIRS; p++)
        covered[p][c->at[pairs[p][0]]][c->at[pairs[p][1]]] = true;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (int i = 0; i < N_AXES && is_of(kind, c); i++)
            with_kind[kind][i][c->at[i]] = true;
}

static int32_t n_new(const matrix_case *c)
{
    int32_t n = 0;
    for (int p = 0; p < N_PAIRS; p++)
        n += !covered[p][c->at[pairs[p][0]]][c->at[pairs[p][1]]];
    for (int kind = 0; kind < N_KINDS; kind++)
        for (int i = 0; i < N_AXES && is_of(kind, c); i++)
            n += !with_kind[kind][i][c->at[i]];
    return n;
}

/* A case with these values of two axes, the others drawn; of some, the one that has most that is
 * new. False: they do not go together. */
static bool draw(matrix_case *best, matrix_axis first, int32_t a, matrix_axis second, int32_t b,
                 rng *r)
{
    int32_t most = 0;
    for (int i = 0; i < 20; i++) {
        matrix_case c;
        matrix_case_random(&c, r);
        c.at[first] = a;
        c.at[second] = b;
        matrix_case_resolve(&c);
        if (c.at[first] != a || c.at[second] != b)
            continue;
        int32_t n = n_new(&c);
        if (n > most) {
            most = n;
            *best = c;
        }
    }
    return most > 0;
}

static int32_t keep(int32_t n)
{
    cover(&cases[n]);
    assert_true(n + 1 < MOST_CASES);
    return n + 1;
}

/* Mixtures are the last models, and at least four. */
static int32_t model_of(int kind, int32_t value)
{
    return kind == WITH_STATES ? matrix_state_model(value)
                               : matrix_values(AXIS_MODEL) - 1 - value % 4;
}

/* The same list on every run with these axes. */
static int32_t fixed_cases(void)
{
    rng r = rng_from(1);
    int32_t n = 0;
    for (int p = 0; p < N_PAIRS; p++)
        for (int32_t a = 0; a < matrix_values(pairs[p][0]); a++)
            for (int32_t b = 0; b < matrix_values(pairs[p][1]); b++)
                if (!covered[p][a][b] && draw(&cases[n], pairs[p][0], a, pairs[p][1], b, &r))
                    n = keep(n);
    for (int kind = 0; kind < N_KINDS; kind++)
        for (int i = 0; i < N_AXES; i++)
            for (int32_t value = 0; value < matrix_values((matrix_axis)i); value++)
                if (!with_kind[kind][i][value] &&
                    draw(&cases[n], AXIS_MODEL, model_of(kind, value), (matrix_axis)i, value, &r))
                    n = keep(n);
    return n;
}

static uint64_t number(const char *name, uint64_t usual)
{
    const char *given = getenv(name);
    return given && *given ? strtoull(given, NULL, 10) : usual;
}

/* Checks the counts; of a few cases only what nearly each case has. What is drafted ahead depends
 * on the time that reads take: test_overlap.c requires it. */
static void what_it_is_about_happened(const matrix_totals *t, uint64_t every)
{
    const int64_t *n = t->n;
    for (int i = 0; i < N_COUNTS; i++) {
        print_message("%s %d%s", matrix_count_name((matrix_count)i), (int)n[i],
                      i + 1 < N_COUNTS ? ", " : "\n");
        if (every == 1 && n[i] == 0 && i != N_KEPT && i != N_LOST)
            fail_msg("no %s", matrix_count_name((matrix_count)i));
    }
    assert_true(n[N_ACCEPTED] > 0 && n[N_REFUSED] > 0 && n[N_STREAMED] > 0);
    assert_true(n[N_BEST_TIER] > 0 || (every > 8 && !getenv("DREY_TEST_CPU")));
    if (every > 8)
        return;
    assert_true(n[N_FAILED_STEPS] > 0 && n[N_PAUSES] > 0 && n[N_SHARED_PASSES] > 0);
    assert_true(n[N_LEFT] > 0 && n[N_TAKEN_BACK] > 0);
    if (every > 1)
        return;
    assert_true(n[N_ACCEPTED] > n[N_CASES] && n[N_REFUSED] > n[N_CASES]);
    assert_true(n[N_LEFT] > n[N_AGREED] && n[N_LEFT] > n[N_TAKEN_BACK]);
    assert_true(n[N_AGREED] > n[N_EXIT_CASES] && n[N_TAKEN_BACK] > n[N_EXIT_CASES]);
    assert_true(n[N_DENSE_BLOCKS] > n[N_CASES] && n[N_TAILS] > n[N_CASES]);
    assert_true(n[N_SHARED_PASSES] > n[N_CASES]);
    assert_true(n[N_STATES_LEFT] > n[N_STATES] && n[N_STATES_ACCEPTED] > n[N_STATES]);
    assert_true(n[N_STATES_SHARED] > n[N_STATES]);
    assert_true(n[N_EXPERTS_HIT] > n[N_MIXTURES] && n[N_EXPERTS_READ] > n[N_MIXTURES]);
    assert_true(n[N_WAVES] > n[N_MIXTURES] && n[N_MIXTURE_SHARED] > n[N_MIXTURES] / 4);
}

TEST(one_text)
{
    matrix_totals total = {0};
    uint64_t seed = number("DREY_TEST_SEED", (uint64_t)time(NULL) % 1000000);
    uint64_t every = number("DREY_TEST_EVERY", EVERY);
    rng r = rng_from(seed);
    print_message("DREY_TEST_SEED=%llu DREY_TEST_EVERY=%llu\n", (unsigned long long)seed,
                  (unsigned long long)every);
    int32_t n_fixed = fixed_cases();
    for (int32_t i = (int32_t)(seed % every); i < n_fixed; i += (int32_t)every)
        matrix_case_run(&cases[i], &total);
    for (int i = 0; i < (every == 1 ? 40 : 10); i++) {
        matrix_case c;
        matrix_case_random(&c, &r);
        matrix_case_resolve(&c);
        matrix_case_run(&c, &total);
    }
    what_it_is_about_happened(&total, every);
}

static int set_up(void **state)
{
    matrix_open();
    return 0;
}

static int tear_down(void **state)
{
    matrix_close();
    return 0;
}

TEST_GROUP(set_up, tear_down)
