/* Features, scores and memory of early exits, with values worked out by hand. */
#include "exit/exit.h"
#include "support/test.h"

#define near(got, want) assert_near(got, want, 1e-6 + 1e-6 * fabs((double)(want)))

/* ---- Features ---- */

/* exp of the logits' distances: 1, 1/2, 1/4, 1/4, together 2. */
static const float LN2 = 0.693147181f;

TEST(features_follow_the_candidates)
{
    exit_features f;
    float x[EXIT_FEATURES];
    exit_features_begin(&f, 4, (float[]){-0.5f, -1, -30, NAN});
    exit_features_next(&f, (float[]){3 * LN2, 2 * LN2, LN2, LN2});
    exit_features_put(&f, x);
    const double ln2 = 0.693147181;
    const double first[EXIT_FEATURES] = {3 * ln2, 2 * ln2, ln2,   ln2,   0.5,  0.25, 0.125, 0.125,
                                         0.5,     0.25,    0.125, 0.125, -0.5, -1,   -20,   -20};
    for (int i = 0; i < EXIT_FEATURES; i++)
        near(x[i], first[i]);
    exit_features_next(&f, (float[]){0, 0, -1000, 0});
    for (int i = 0; i < EXIT_CANDIDATES; i++)
        near(f.probability[i], i == 2 ? 0 : 1.0 / 3);
    near(f.change[0], 1.0 / 3 - 0.5);
    near(f.change[1], 1.0 / 3 - 0.25);
    near(f.change[2], -0.125);
    near(f.change[3], 1.0 / 3 - 0.125);
    near(f.logit[2], -1000);
}

TEST(fewer_candidates_leave_places_empty)
{
    exit_features f;
    exit_features_begin(&f, 2, (float[]){-1, -2});
    exit_features_next(&f, (float[]){5 + LN2, 5});
    near(f.probability[0], 2.0 / 3);
    near(f.probability[1], 1.0 / 3);
    for (int i = 2; i < EXIT_CANDIDATES; i++) {
        near(f.logit[i], 0);
        near(f.probability[i], 0);
        near(f.change[i], 0);
        near(f.draft_logp[i], -20);
    }
    exit_features_begin(&f, 1, NULL);
    exit_features_next(&f, (float[]){-7});
    near(f.probability[0], 1);
    near(f.draft_logp[0], 0);
}

/* ---- Scores ---- */

TEST(a_score_is_the_mlp)
{
    float w1[] = {2, 1, -1, 3, 1, 0.5f}; /* [K = 3][H = 2] */
    float b1[] = {1, -4}, w2[] = {0.5f, 7};
    exit_mlp m = {.w1 = w1, .b1 = b1, .w2 = w2, .b2 = -2.5f};
    /* unit 0: 1 + 2 + 1 + 2 = 6; unit 1: -4 + 1 - 3 + 1 = -5, so 0; z = -2.5 + 3 = 0.5 */
    near(exit_mlp_score(&m, 3, 2, (float[]){1, -1, 2}), 0.622459331);
    m.b2 = -3;
    near(exit_mlp_score(&m, 3, 2, (float[]){1, -1, 2}), 0.5);
    /* unit 1: -4 + 5 = 1; unit 0: 1 + 10 = 11; z = -3 + 5.5 + 7 = 9.5 */
    near(exit_mlp_score(&m, 3, 2, (float[]){5, 0, 0}), 0.999925154);
    assert_true(exit_mlp_score(&m, 3, 2, (float[]){500, 0, 0}) < 1); /* the sum rounds to 1 */
}

TEST(only_layers_between_have_a_score)
{
    float w1[12] = {1}, b1[1] = {0}, w2[1] = {1};
    exit_predictors p = {.n_layers = 6, .first = 3, .n_features = 12, .n_hidden = 1};
    for (int32_t layer = 3; layer < 6; layer++)
        p.mlp[layer] = (exit_mlp){w1, b1, w2, 0};
    exit_features f;
    exit_features_begin(&f, 4, NULL);
    exit_features_next(&f, (float[]){LN2, 0, 0, 0});
    near(exit_score(&p, 2, &f), 0);
    near(exit_score(&p, 3, &f), 2.0 / 3);
    near(exit_score(&p, 5, &f), 2.0 / 3);
    near(exit_score(&p, 6, &f), 0);
    assert_false(exit_has_draft_logp(&p));
    p.n_features = 16;
    assert_true(exit_has_draft_logp(&p));
}

TEST(random_scores_are_spread)
{
    int n_high = 0;
    for (int32_t position = 0; position < 1000; position++) {
        float score = exit_random_score(5, position, 20);
        assert_true(score >= 0 && score < 1);
        assert_true(score == exit_random_score(5, position, 20));
        n_high += score > 0.9f;
    }
    assert_in_range(n_high, 70, 130);
    assert_true(exit_random_score(5, 1, 20) != exit_random_score(5, 1, 21));
    assert_true(exit_random_score(5, 1, 20) != exit_random_score(6, 1, 20));
}

/* ---- The schedule ---- */

/* Shows active layers as a text: a place for each layer from 1 on. */
static void active(const exit_schedule *s, const char *want)
{
    char got[32] = {0};
    for (int32_t layer = 1; layer <= s->n_layers; layer++)
        got[layer - 1] = exit_schedule_active(s, layer) ? 'x' : '.';
    assert_string_equal(got, want);
}

static exit_predictors twelve_layers(void)
{
    exit_predictors p = {.n_layers = 12, .first = 5};
    p.offline[10] = p.offline[11] = true;
    return p;
}

TEST(every_layer_but_the_last_is_active)
{
    exit_predictors p = twelve_layers();
    exit_schedule s;
    exit_schedule_init(&s, &p, EXIT_EVERY_LAYER, 0);
    active(&s, "....xxxxxxx.");
    exit_schedule_note(&s, 6);
    active(&s, "....xxxxxxx.");
}

TEST(the_latest_exits_activate_their_neighbours)
{
    exit_predictors p = twelve_layers();
    exit_schedule s;
    exit_schedule_init(&s, &p, EXIT_TWO_LEVELS, 0);
    active(&s, ".........xx.");
    exit_schedule_note(&s, 12); /* went through: two layers before the end are near */
    active(&s, ".........xx.");
    exit_schedule_note(&s, 8);
    active(&s, ".....xxxxxx.");
    exit_schedule_note(&s, 5); /* no predictors before layer 5 */
    active(&s, "....xxxxxxx.");
    exit_schedule_note(&s, 5);
    exit_schedule_note(&s, 12); /* the queue is full: 12 8 5 5 12 */
    active(&s, "....xxxxxxx.");
    exit_schedule_note(&s, 12); /* 12 goes, */
    exit_schedule_note(&s, 12); /* and 8 */
    active(&s, "....xxx..xx.");
    exit_schedule_note(&s, 12);
    active(&s, "....xxx..xx.");
    exit_schedule_note(&s, 12); /* both 5 have gone */
    active(&s, ".........xx.");
}

TEST(the_most_frequent_layers_are_chosen)
{
    int64_t counts[9] = {9, 9, 9, 1, 5, 0, 5, 2, 100};
    bool chosen[9];
    exit_choose_layers(counts, 3, 8, 1, chosen);
    assert_memory_equal(chosen, ((bool[9]){0, 0, 0, 0, 0, 0, 1, 0, 0}), sizeof chosen);
    exit_choose_layers(counts, 3, 8, 3, chosen);
    assert_memory_equal(chosen, ((bool[9]){0, 0, 0, 0, 1, 0, 1, 1, 0}), sizeof chosen);
    exit_choose_layers(counts, 3, 8, 99, chosen);
    assert_memory_equal(chosen, ((bool[9]){0, 0, 0, 1, 1, 1, 1, 1, 0}), sizeof chosen);
}

TEST(random_layers_are_as_many)
{
    exit_predictors p = twelve_layers();
    bool other = false;
    for (uint64_t seed = 0; seed < 20; seed++) {
        exit_schedule s;
        int n = 0;
        exit_schedule_init(&s, &p, EXIT_RANDOM_LAYERS, seed);
        for (int32_t layer = 1; layer <= 12; layer++)
            n += exit_schedule_active(&s, layer);
        assert_int_equal(n, 2);
        other |= !exit_schedule_active(&s, 10) || !exit_schedule_active(&s, 11);
        exit_schedule_note(&s, 6);
        assert_int_equal(s.n_latest, 0);
    }
    assert_true(other);
}
