/* Worth of confidence, by hand. */
#include "tree/calibration.h"
#include "support/test.h"
#include "support/tree_path.h"

#define near(got, want) assert_near(got, want, 1e-5)

TEST(what_is_assumed)
{
    const calibration greedy = {.sampled = false}, sampled = {.sampled = true};
    near(calibration_value(&greedy, 0, 0.5f), 0.6);       /* odds 1: 1.5 */
    near(calibration_value(&greedy, 0, 0.8f), 0.8945734); /* odds 4: 1.5 * 5.65685 */
    near(calibration_value(&greedy, 0, 0.2f), 0.2095873); /* odds 1/4: 1.5 * 0.176777 */
    near(calibration_value(&greedy, 1, 0.2f), 0.2);
    near(calibration_value(&greedy, 7, 0.03f), 0.03);
    near(calibration_value(&sampled, 0, 0.5f), 0.5);
    near(calibration_value(&greedy, 0, 1), 0.9995); /* nothing is certain */
    near(calibration_value(&greedy, 1, 0), 1e-6);
    assert_true(calibration_value(&greedy, 1, NAN) > 0);
    for (int i = 1; i < 1000; i++)
        assert_true(calibration_value(&greedy, 0, (float)i / 1000) >=
                    calibration_value(&greedy, 0, (float)(i - 1) / 1000));
}

/* Of heads: the average where they are as sure as usual, and little more where they are surer. */
TEST(what_is_assumed_of_heads)
{
    calibration c = {.sampled = false};
    const float right[] = {0.5f, 0.1f};
    calibration_expect(&c, right, 2);
    near(calibration_value(&c, 0, 0.72f), 0.5);
    near(calibration_value(&c, 0, 0.5f), 0.4066613); /* odds 1 / 2.571429^0.4 = 0.685378 */
    near(calibration_value(&c, 1, 0.106f), 0.1);
    near(calibration_value(&c, 1, 0.2f), 0.1302403);     /* odds 0.111111 * (0.25 / 0.118568)^0.4 */
    assert_true(calibration_value(&c, 2, 0.1f) < 1e-5f); /* never right */
}

TEST(bins_are_even_in_odds)
{
    assert_int_equal(calibration_bin(0), 0);
    assert_int_equal(calibration_bin(0.0024f), 0); /* log-odds -6.03 */
    assert_int_equal(calibration_bin(0.0061f), 1); /* -5.09; a bin is 0.875 wide */
    assert_int_equal(calibration_bin(0.5f), 6);    /* 0: 6 / 0.875 = 6.86 */
    assert_int_equal(calibration_bin(0.55f), 7);   /* 0.2 */
    assert_int_equal(calibration_bin(1), 15);
}

/* A root that guesses 7 at .5 and 8 at .2, of which 7 is a node that guesses 9 at .5. */
static int32_t make_tree(token_tree *t)
{
    const candidate two[] = {{7, 0.5f}, {8, 0.2f}}, one[] = {{9, 0.5f}};
    tree_reset(t, 1);
    tree_guess(t, 0, two, 2);
    int32_t node = tree_push(t, 0, 7, 0.5f);
    tree_guess(t, node, one, 1);
    return node;
}

TEST(outcomes_count)
{
    calibration c = {.sampled = false};
    token_tree t;
    const int32_t path[] = {make_tree(&t)};
    calibration_learn(&c, &t, path, 1, 9); /* both best guesses were right, the second one not */
    near(calibration_value(&c, 0, 0.5f), (2 + 8 * 0.6) / 10);
    near(calibration_value(&c, 1, 0.2f), (0 + 8 * 0.2) / 9);
    near(calibration_value(&c, 0, 0.9f), calibration_prior(&c, 0, 0.9f)); /* of another bin */
    near(calibration_value(&c, 2, 0.2f), 0.2);                            /* of another rank */
    calibration_learn(&c, &t, NULL, 0, 8); /* what is below the miss was not decided */
    near(calibration_value(&c, 0, 0.5f), (2 + 8 * 0.6) / 11);
    near(calibration_value(&c, 1, 0.2f), (1 + 8 * 0.2) / 10);
    t.nodes[0].n_guesses = 0; /* nothing was guessed */
    calibration_learn(&c, &t, NULL, 0, 8);
    near(calibration_value(&c, 0, 0.5f), (2 + 8 * 0.6) / 11);
}

TEST(the_past_fades)
{
    calibration c = {.sampled = false};
    token_tree t;
    make_tree(&t);
    for (int i = 1; i < CALIBRATION_HALVED; i++)
        calibration_learn(&c, &t, NULL, 0, 7);
    near(calibration_value(&c, 0, 0.5f), (511 + 8 * 0.6) / (511 + 8));
    calibration_learn(&c, &t, NULL, 0, 7);
    near(calibration_value(&c, 0, 0.5f), (256 + 8 * 0.6) / (256 + 8));
    near(calibration_value(&c, 1, 0.2f), 8 * 0.2 / (256 + 8));
}

/* Known beforehand: as counted, but for bins of more than 64. */
TEST(what_is_known)
{
    calibration c = {.sampled = false};
    drey_profile known;
    drey_profile_init(&known);
    known.guessed[0][calibration_bin(0.5f)] = 20;
    known.right[0][calibration_bin(0.5f)] = 15;
    known.guessed[1][calibration_bin(0.2f)] = 640;
    known.right[1][calibration_bin(0.2f)] = 160;
    calibration_seed(&c, &known);
    near(calibration_value(&c, 0, 0.5f), (15 + 8 * 0.6) / (20 + 8));
    near(calibration_value(&c, 1, 0.2f), (16 + 8 * 0.2) / (64 + 8));
    near(calibration_value(&c, 2, 0.2f), 0.2);
}
