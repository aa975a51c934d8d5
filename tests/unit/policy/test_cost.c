/* Costs of a turn and its number of nodes, with times that are made up. */
#include "policy/cost.h"
#include "support/test.h"

#define near(got, want) assert_near(got, want, 1e-9 + 1e-6 * fabs((double)(want)))

/* 3 GB through memory: 0.1 s. 1 GB from disk: 0.4 s. A draft of 300 MB: 10 ms. */
static turn_cost streamed(void)
{
    turn_cost c;
    cost_init(&c, 3000000000u, 1000000000u, 300000000u, 50000000u);
    return c;
}

static turn_cost resident(void)
{
    turn_cost c;
    cost_init(&c, 3000000000u, 0, 300000000u, 4000000u);
    return c;
}

TEST(what_is_assumed)
{
    turn_cost c = streamed();
    near(cost_pass(&c, 1), 0.1);
    near(cost_pass(&c, 8), 0.135);
    near(cost_pass(&c, 9), 0.155); /* one row in a second tile */
    near(cost_pass(&c, 29), 0.305);
    near(cost_step(&c, 1), 0.01);
    near(cost_step(&c, 8), 0.0128);
    near(cost_turn(&c, 0, 0), 0.4);
    near(cost_turn(&c, 28, 0.01), 0.4); /* reads continue in these 10 ms */
    near(cost_turn(&c, 28, 0.1), 0.48); /* but the ring takes a twentieth */
    near(cost_turn(&c, 49, 0.1), 0.1 + 0.4625);
    c = resident();
    near(cost_turn(&c, 0, 0), 0.1);
    near(cost_turn(&c, 8, 0.05), 0.05 + 0.155);
}

/* Measured beforehand: the shape, and the time of a row, until passes have been measured. */
TEST(what_is_known)
{
    drey_profile known;
    drey_profile_init(&known);
    turn_cost c = streamed();
    cost_seed(&c, &known);
    near(cost_pass(&c, 8), 0.135);
    assert_false(c.step_measured);
    known.pass_s[0] = 0.05;
    known.pass_s[1] = 0.105;
    known.pass_s[63] = 2.8375;
    known.step_s[0] = 0.02;
    known.step_s[7] = 0.0512; /* shape 1.28 */
    cost_seed(&c, &known);
    near(cost_pass(&c, 1), 0.05);
    near(cost_pass(&c, 2), 0.105);
    near(cost_pass(&c, 3), 0.055); /* not known: as usual, 1.1 */
    near(cost_pass(&c, 64), 2.8375);
    near(cost_pass(&c, 96), 2.8375 * 8.075 / 5.675); /* beyond, as usual */
    near(cost_step(&c, 1), 0.03);
    assert_true(c.step_measured);
    near(cost_turn(&c, 0, 0), 0.4); /* reading is not in it */
    cost_saw_pass(&c, 2, 0.21, 0);  /* twice as long today */
    near(cost_pass(&c, 1), 0.1);
    near(cost_pass(&c, 64), 5.675);
}

TEST(what_is_measured)
{
    turn_cost c = resident();
    cost_saw_step(&c, 8, 0.0256);
    near(cost_step(&c, 1), 0.02);
    cost_saw_step(&c, 1, 0.024);
    near(cost_step(&c, 1), 0.021); /* a fourth of the way */
    cost_saw_step(&c, 8, 0.9704);  /* counts as twice what was expected */
    near(cost_step(&c, 1), 0.02625);
    near(c.draft_s, 1.02);
    cost_saw_pass(&c, 9, 0.31, 0); /* twice the shape's */
    near(c.turn_s, 1.33);
    near(c.draft_s, 0);
    near(cost_pass(&c, 9), 0.31);
    assert_true(cost_knows_pass(&c, 12) && !cost_knows_pass(&c, 8) && !cost_knows_pass(&c, 13));
    near(cost_pass(&c, 1), 0.2); /* and so the rest */
    near(cost_pass(&c, 29), 0.61);
    cost_saw_pass(&c, 9, 0.31, 0);
    near(cost_pass(&c, 29), 0.61);
}

#define close_to(got, want) assert_near(got, want, 0.02 * (want))

/* Passes over different numbers of rows say how steep the shape is here: what was measured stays as
 * it is, and what was not follows. Some other program's part of a pass counts a quarter at most. */
/* A first step of half the usual time: so is a pass that was not measured. */
TEST(a_step_shows_how_fast_memory_is)
{
    turn_cost c = resident();
    cost_saw_step(&c, 1, 0.005);
    near(cost_step(&c, 1), 0.005);
    near(cost_pass(&c, 1), 0.05);
    near(cost_pass(&c, 8), 0.0675);
    cost_saw_step(&c, 1, 0.01); /* only the first */
    near(cost_pass(&c, 1), 0.05);
    cost_saw_pass(&c, 1, 0.08, 0);
    near(cost_pass(&c, 1), 0.08);

    cost_init(&c, 3000000000u, 0, 1000, 4000000u); /* a drafter that looks up */
    cost_saw_step(&c, 1, 1e-6);
    near(cost_pass(&c, 1), 0.1);

    drey_profile known;
    drey_profile_init(&known);
    known.pass_s[0] = 0.06;
    known.step_s[0] = 0.01;
    c = resident();
    cost_seed(&c, &known);
    cost_saw_step(&c, 1, 0.005);
    near(cost_pass(&c, 1), 0.06);
}

TEST(how_steep_it_is)
{
    turn_cost c = resident();
    cost_saw_pass(&c, 9, 0.21, 0); /* the shape's 0.155: rows, or a slower machine? */
    near(cost_pass(&c, 1), 0.21 / 1.55);
    /* Rows, twice as much. */
    for (int i = 0; i < 40; i++) {
        cost_saw_pass(&c, 1, 0.1, 0);
        cost_saw_pass(&c, 9, 0.21, 0);
    }
    close_to(cost_pass(&c, 9), 0.21);
    close_to(cost_pass(&c, 1), 0.1);
    close_to(cost_pass(&c, 5), 0.14);   /* 0.1 + 2 * 0.02 */
    close_to(cost_pass(&c, 29), 0.51);  /* 0.1 + 2 * 0.205 */
    close_to(cost_pass(&c, 96), 1.515); /* 0.1 + 2 * 0.7075 */
    double before = cost_pass(&c, 9);
    cost_saw_pass(&c, 9, 5, 0);
    near(cost_pass(&c, 9), before * 1.0625);
    /* As flat as a fourth of what is assumed, and no flatter. */
    c = resident();
    for (int i = 0; i < 40; i++) {
        cost_saw_pass(&c, 1, 0.1, 0);
        cost_saw_pass(&c, 9, 0.1, 0);
    }
    close_to(cost_pass(&c, 9), 0.1);
    near(c.bend, -0.75);
}

TEST(steps_are_forgotten)
{
    turn_cost c = resident();
    cost_saw_pass(&c, 1, 0.05, 0); /* half of what was assumed: so will steps be */
    near(cost_step(&c, 1), 0.005);
    cost_saw_step(&c, 1, 0.133);
    cost_saw_pass(&c, 1, 0.05, 0); /* it had one */
    near(cost_step(&c, 1), 0.133);
    cost_saw_pass(&c, 1, 0.05, 0);
    near(cost_step(&c, 1), 0.132); /* a 128th of the way to 0.005 */
    for (int i = 0; i < 4000; i++)
        cost_saw_pass(&c, 1, 0.05, 0);
    near(cost_step(&c, 1), 0.005);
    /* Where it was measured beforehand, that is usual. */
    drey_profile known;
    drey_profile_init(&known);
    known.step_s[0] = 0.02;
    c = resident();
    cost_seed(&c, &known);
    cost_saw_pass(&c, 1, 0.2, 0);
    near(cost_step(&c, 1), 0.02 + 0.02 / 128); /* passes take twice as long today */
}

TEST(reading_is_measured_by_waiting)
{
    turn_cost c = streamed();
    cost_saw_step(&c, 1, 0.01);
    cost_saw_pass(&c, 9, 0.49, 0.3); /* 10 ms of it were read before */
    near(c.read_s, 0.5);
    near(cost_pass(&c, 9), 0.19);
    cost_saw_pass(&c, 9, 0.6, 0.41);
    near(c.read_s, 0.525);
    cost_saw_pass(&c, 9, 0.4, 0.001); /* it took as long as it computed: no less can be said */
    near(c.read_s, 0.4);
    cost_saw_pass(&c, 9, 0.45, 0.001);
    near(c.read_s, 0.4);
    cost_saw_disk(&c, 0.35); /* the disk's speed says more */
    near(c.read_s, 0.35);
    cost_saw_disk(&c, 0.6); /* it was not kept busy */
    near(c.read_s, 0.35);
    c = streamed();
    cost_saw_disk(&c, 0.6); /* nothing better is known */
    near(c.read_s, 0.6);
    c = resident();
    cost_saw_pass(&c, 9, 0.4, 0.3);
    cost_saw_disk(&c, 0.6);
    near(c.read_s, 0);
}

TEST(the_number_of_nodes)
{
    double rate;
    /* In memory a node costs 5 ms of 100 up to the tile's end: 1.9 / .105, 2.3 / .11,
     * 2.32 / .115. */
    const float few[] = {0.9f, 0.4f, 0.02f};
    turn_cost c = resident();
    assert_int_equal(cost_choose(&c, few, 3, 0, &rate), 2);
    near(rate, 2.3 / 0.11);
    assert_int_equal(cost_choose(&c, few, 0, 0.01, &rate), 0);
    near(rate, 1 / 0.11);
    /* A node that is worth less than its row: 1.04 / .105 < 1 / .1. */
    const float poor[] = {0.04f, 0.03f};
    assert_int_equal(cost_choose(&c, poor, 2, 0, &rate), 0);
    /* Where reads take 0.4 s, rows cost nothing until they compute as long: 41 rows 0.395 s, 42
     * rows 0.4025 s. The last one brings 0.05 for 2.5 ms, all later ones for 7.5 ms. */
    float many[60];
    for (int i = 0; i < 60; i++)
        many[i] = 0.05f;
    c = streamed();
    assert_int_equal(cost_choose(&c, many, 60, 0, &rate), 41);
    near(rate, 3.05 / 0.4025);
    /* A plateau may follow another one: seven good nodes are in the second tile. */
    for (int i = 0; i < 20; i++)
        many[i] = i < 14 ? 0.5f : 0.001f;
    c = resident();
    assert_int_equal(cost_choose(&c, many, 20, 0, &rate), 14);
}

/* Rows of a mixture ask for their own experts: never for more than there are, and never for less
 * time than what they compute. Its passes count with their waits. */
TEST(mixtures_of_experts)
{
    for (double most = 1; most <= 64; most *= 4) {
        near(cost_union(1, most), 1);
        for (int32_t n = 2; n <= 64; n++) {
            assert_true(most == 1 || cost_union(n, most) > cost_union(n - 1, most));
            assert_true(cost_union(n, most) <= most);
        }
    }
    turn_cost c = resident(), mixture = resident();
    cost_of_experts(&mixture, 0.75, 21);
    near(cost_pass(&mixture, 1), cost_pass(&c, 1));
    assert_true(cost_pass(&mixture, 8) > 2.5 * cost_pass(&c, 1));
    for (int32_t n = 1; n <= 64; n++)
        assert_true(cost_pass(&mixture, n) >= cost_pass(&c, n) - 1e-12);
    cost_saw_pass(&c, 1, 0.5, 0.4);
    cost_saw_pass(&mixture, 1, 0.5, 0.4);
    near(cost_pass(&c, 1), 0.1);
    near(cost_pass(&mixture, 1), 0.5);
}
