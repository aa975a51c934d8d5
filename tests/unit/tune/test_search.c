/* Dividing work by measuring: formulas in the place of clocks, and every ratio tried as the other
 * side. */
#include "tune/search.h"
#include "support/rng.h"
#include "support/test.h"

typedef struct valley {
    double bottom;
    int n;
} valley;

static double valley_at(void *user, double at)
{
    valley *v = user;
    v->n++;
    return fabs(at - v->bottom) + 1;
}

TEST(valleys)
{
    for (int i = 0; i <= 20; i++)
        for (int from = 0; from <= 10; from++) {
            valley v = {.bottom = i * 0.05};
            search_result found = search_least(valley_at, &v, 0, 1, from * 0.1, 0.01);
            assert_near(found.at, v.bottom, 0.01);
            assert_near(found.seconds, valley_at(&v, found.at), 0);
            assert_int_equal(found.n_measured, v.n - 1);
            assert_true(v.n <= 20);
        }
    valley outside = {.bottom = 3};
    assert_near(search_least(valley_at, &outside, -1, 1, 0, 0.01).at, 1, 0);
    outside.bottom = -3;
    assert_near(search_least(valley_at, &outside, -1, 1, 0.5, 0.01).at, -1, 0);
}

TEST(shares_alone)
{
    double share[4];
    shares_from_alone((const double[]){3, 6}, 2, share);
    assert_near(share[0], 2 / 3., 1e-12);
    assert_near(share[1], 1 / 3., 1e-12);
    shares_from_alone((const double[]){2, 0, 4, 4}, 4, share); /* the second has no work to do */
    assert_near(share[0], 0.5, 1e-12);
    assert_near(share[1], 0, 0);
    assert_near(share[3], 0.25, 1e-12);
}

/* Units that work at the same time: each share takes what it takes alone, times its factor. */
typedef struct units {
    int32_t n;
    double alone_s[SEARCH_MAX_UNITS], factor[SEARCH_MAX_UNITS], step; /* shares in steps; 0: any */
    rng *noise;
} units;

static double units_at(void *user, const double *share)
{
    const units *u = user;
    double longest = 0;
    for (int32_t i = 0; i < u->n; i++) {
        double part = u->step > 0 ? u->step * round(share[i] / u->step) : share[i];
        double hiccup = u->noise ? 1 + 0.01 * rng_unit(u->noise) : 1;
        longest = fmax(longest, hiccup * part * u->alone_s[i] * u->factor[i]);
    }
    return longest;
}

/* Units of 3 and 6 s: 2 s together. With the second one slowed by half, 2/3 : 1/3 would take 3 s,
 * but 3 (1 - r) = 9 r at r = 1/4: 2.25 s. */
TEST(contention)
{
    units u = {.n = 2, .alone_s = {3, 6}, .factor = {1, 1}};
    double share[4];
    assert_near(shares_search(units_at, &u, u.alone_s, 2, share), 2, 1e-9);
    u.factor[1] = 1.5;
    assert_near(units_at(&u, (const double[]){2 / 3., 1 / 3.}), 3, 1e-9);
    assert_near(shares_search(units_at, &u, u.alone_s, 2, share), 2.25, 0.0225);
    assert_near(share[1], 0.25, 0.01);
    assert_near(share[0] + share[1], 1, 1e-12);
}

TEST(one_is_best_alone)
{
    units u = {.n = 2, .alone_s = {1, 10}, .factor = {1.2, 1.2}};
    double share[4];
    assert_near(shares_search(units_at, &u, u.alone_s, 2, share), 1, 0); /* both: 12 / 11 */
    assert_near(share[0], 1, 0);
    assert_near(share[1], 0, 0);
    u.n = 1;
    assert_near(shares_search(units_at, &u, u.alone_s, 1, share), 1, 0);
}

TEST(three_units)
{
    units u = {.n = 3, .alone_s = {2, 4, 8}, .factor = {1, 1.4, 2}};
    double speed = 1 / 2. + 1 / 5.6 + 1 / 16., share[4];
    assert_near(shares_search(units_at, &u, u.alone_s, 3, share), 1 / speed, 0.02 / speed);
    assert_near(share[0] + share[1] + share[2], 1, 1e-12);
}

/* At least 0.98 of the best of all ratios, with whole groups and a clock that shakes. */
TEST(against_all_ratios)
{
    rng r = rng_from(3);
    for (int i = 0; i < 200; i++) {
        units u = {.n = 2, .step = 1 / 128.};
        for (int k = 0; k < 2; k++) {
            u.alone_s[k] = 1 + 15 * rng_unit(&r);
            u.factor[k] = 1 + rng_unit(&r);
        }
        double best = fmin(u.alone_s[0], u.alone_s[1]), share[4];
        for (int at = 1; at < 128; at++)
            best = fmin(best, units_at(&u, (const double[]){at / 128., 1 - at / 128.}));
        u.noise = i % 2 ? &r : NULL;
        shares_search(units_at, &u, u.alone_s, 2, share);
        u.noise = NULL;
        double found = share[0] == 1   ? u.alone_s[0]
                       : share[1] == 1 ? u.alone_s[1]
                                       : units_at(&u, share);
        if (best / found < 0.98)
            fail_msg("round %d: %.4f s found, %.4f s is the best", i, found, best);
    }
}

/* Dense attention takes 1 and 2 a position, sparse 400 on the narrow unit, 800 as dense on the wide
 * one: c (1 - x) = 400 + 2 c x above 400 positions, c - 800 x = 400 (1 + x) below. */
static double attention_s(void *user, int32_t n_positions, double x)
{
    double c = n_positions, dense = x > 0 ? x : 0, sparse = x < 0 ? -x : 0;
    return fmax(c * (1 - dense) + 800 * sparse, 400 * (1 - sparse) + 2 * c * dense);
}

TEST(boundaries)
{
    static const int32_t contexts[] = {0, 100, 400, 1000, 8000};
    static const double want[] = {-1 / 3., -0.25, 0, 0.2, 0.95 / 3};
    float boundary[5] = {0, 0, 0.5f, -1, 1};
    boundaries_search(attention_s, NULL, contexts, 5, -1, boundary);
    for (int i = 0; i < 5; i++)
        assert_near((double)boundary[i], want[i], 0.01);
    boundaries_search(attention_s, NULL, contexts, 5, 0, boundary); /* also from below 0 */
    for (int i = 0; i < 5; i++)
        assert_near((double)boundary[i], fmax(want[i], 0), 0.01);
}
