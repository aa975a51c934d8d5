/* The credit of drafting and its pauses, over turns whose times are given. */
#include "policy/controller.h"

#include "base/usual.h"
#include "support/test.h"

/* A turn that writes n tokens in the time of so many plain turns, of a second. */
static controlled_turn drafted(int32_t n, double plain_turns)
{
    return (controlled_turn){
        .n_tokens = n, .turn_s = plain_turns, .expected_s = 1, .drafted = true};
}

static controlled_turn plain(void)
{
    return (controlled_turn){.n_tokens = 1, .turn_s = 1, .expected_s = 1, .plain = true};
}

static void begin(controller *c)
{
    controller_init(c);
    const controlled_turn first = drafted(1, 1), seen = plain();
    assert_false(controller_observe(c, &first)); /* not used for comparison */
    assert_false(controller_observe(c, &seen));
    assert_near(c->plain_s, 1, 1e-12);
}

TEST(losses_are_bounded_by_the_credit)
{
    controller c;
    const controlled_turn lost = drafted(1, 2), seen = plain();
    begin(&c);
    for (int i = 0; i < USUAL_FIRST_CREDIT; i++) {
        assert_int_equal(c.pause, 0);
        controller_observe(&c, &lost);
    }
    assert_int_equal(c.pause, USUAL_FIRST_PAUSE);
    for (int i = 1; i < USUAL_FIRST_PAUSE; i++)
        assert_false(controller_observe(&c, &seen));
    assert_true(controller_observe(&c, &seen));
    assert_near(c.credit, USUAL_LATER_CREDIT, 1e-12);
    for (int i = 0; i < USUAL_LATER_CREDIT; i++)
        controller_observe(&c, &lost);
    assert_int_equal(c.pause, 2 * USUAL_FIRST_PAUSE);
}

TEST(pauses_grow_to_the_last_and_gains_make_them_short_again)
{
    controller c;
    const controlled_turn won = drafted(4, 2), long_one = drafted(1, 1000);
    begin(&c);
    for (int32_t want = USUAL_FIRST_PAUSE; want < 2 * USUAL_LAST_PAUSE; want *= 2) {
        controller_pause(&c);
        assert_int_equal(c.pause, want < USUAL_LAST_PAUSE ? want : USUAL_LAST_PAUSE);
    }
    c.pause = 0;
    for (int i = 0; i < USUAL_MOST_CREDIT; i++)
        controller_observe(&c, &won);
    assert_near(c.credit, USUAL_MOST_CREDIT, 1e-12);
    assert_int_equal(c.next_pause, USUAL_FIRST_PAUSE);
    controller_observe(&c, &long_one); /* something else held it up */
    assert_near(c.credit, USUAL_MOST_CREDIT - USUAL_MOST_LOST, 1e-12);
}

TEST(a_plain_turn_is_asked_for_before_drafting_is_given_up)
{
    controller c;
    const controlled_turn even = drafted(2, 2), seen = plain();
    controller_init(&c);
    for (int i = 0; i < 20 && !c.asks; i++)
        controller_observe(&c, &even);
    assert_true(c.asks);
    controller_observe(&c, &seen);
    assert_false(c.asks);
    assert_near(c.plain_s, 1, 1e-12);
    for (int i = 0; i < USUAL_PLAIN_AGE; i++)
        controller_observe(&c, &even);
    assert_true(c.asks); /* the time is out of date */
}

TEST(turns_that_say_nothing_change_nothing)
{
    controller c;
    begin(&c);
    const controller before = c;
    controlled_turn shared = drafted(1, 0), lookup = drafted(1, 5);
    lookup.free = true;
    controller_observe(&c, &shared);
    controller_observe(&c, &lookup);
    assert_near(c.credit, before.credit, 0);
    assert_int_equal(c.pause, 0);
}
