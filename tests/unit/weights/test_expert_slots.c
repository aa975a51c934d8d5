/* Slots against a list of experts in the order of their last use. */
#include "support/scene.h"
#include "weights/expert_slots.h"

enum { EXPERTS = 16, MOST_SLOTS = 12 };

/* The experts that are in memory, the next to go first. */
typedef struct model {
    int32_t expert[MOST_SLOTS], n;
} model;

static bool take_out(model *m, int32_t expert)
{
    for (int32_t i = 0; i < m->n; i++)
        if (m->expert[i] == expert) {
            memmove(m->expert + i, m->expert + i + 1, (size_t)(--m->n - i) * sizeof *m->expert);
            return true;
        }
    return false;
}

static bool among(int32_t expert, const int32_t *list, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (list[i] == expert)
            return true;
    return false;
}

/* Different experts, as a router would choose them: some more often than others. */
static void choose(rng *r, int32_t *list, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        do
            list[i] = rng_below(r, 1 + rng_below(r, EXPERTS));
        while (among(list[i], list, i));
}

static void check(const expert_slots *s)
{
    for (int32_t e = 0; e < s->n_experts; e++)
        assert_true(s->slot_of[e] < 0 || s->expert_in[s->slot_of[e]] == e);
    for (int32_t i = 0; i < s->n_slots; i++)
        assert_true(s->expert_in[i] < 0 || s->slot_of[s->expert_in[i]] == i);
}

/* Uses experts as runs of a row each. */
static int32_t use(expert_slots *s, const int32_t *expert, int32_t n, int32_t *slot, bool *there)
{
    expert_run run[EXPERTS];
    for (int32_t i = 0; i < n; i++)
        run[i] = (expert_run){.expert = expert[i], .first = i, .n = 1};
    return expert_slots_use(s, run, n, slot, there);
}

TEST(the_longest_unused_goes)
{
    rng r = rng_from(3);
    for (int32_t n_slots = 1; n_slots <= MOST_SLOTS; n_slots++) {
        arena a;
        expert_slots s;
        MUST(arena_init, &a, expert_slots_bytes(EXPERTS, n_slots), false);
        expert_slots_init(&s, EXPERTS, n_slots, &a);
        MUST(arena_check, &a);
        model m = {.n = 0};
        for (int round = 0; round < 500; round++) {
            int32_t list[MOST_SLOTS], slot[MOST_SLOTS], n = 1 + rng_below(&r, n_slots), missing = 0;
            bool there[MOST_SLOTS], had[MOST_SLOTS];
            choose(&r, list, n);
            for (int32_t i = 0; i < n; i++) {
                had[i] = take_out(&m, list[i]);
                missing += !had[i];
            }
            while (m.n + n > n_slots)
                take_out(&m, m.expert[0]);
            for (int32_t i = 0; i < n; i++)
                m.expert[m.n++] = list[i];
            assert_int_equal(use(&s, list, n, slot, there), missing);
            for (int32_t i = 0; i < n; i++) {
                assert_int_equal(there[i], had[i]);
                assert_int_equal(s.expert_in[slot[i]], list[i]);
            }
            for (int32_t e = 0; e < EXPERTS; e++)
                assert_int_equal(s.slot_of[e] >= 0, among(e, m.expert, m.n));
            check(&s);
        }
        arena_free(&a);
    }
}

/* A prompt that uses all experts, in waves. Returns how many. */
static int32_t pass_through(expert_slots *s)
{
    expert_run run[EXPERTS];
    int32_t slot[EXPERTS], n_runs = 0, n_waves = 0;
    bool there[EXPERTS];
    for (int is_there = 1; is_there >= 0; is_there--)
        for (int32_t e = 0; e < EXPERTS; e++)
            if ((s->slot_of[e] >= 0) == is_there)
                run[n_runs++] = (expert_run){.expert = e, .first = e, .n = 1, .passing = true};
    for (int32_t done = 0, n; done < EXPERTS; done += n, n_waves++) {
        n = expert_slots_fit(s, run + done, EXPERTS - done);
        assert_in_range(n, 1, s->n_slots);
        expert_slots_use(s, run + done, n, slot, there);
        for (int32_t i = 0; i < n; i++)
            assert_int_equal(s->expert_in[slot[i]], run[done + i].expert);
        check(s);
    }
    return n_waves;
}

/* A prompt goes through all experts, again and again: those that a text has used stay but for a
 * quarter, those that it used last, and they are as old as they were. What a prompt has filled
 * belongs to the next one. */
TEST(what_passes_goes_first)
{
    arena a;
    expert_slots s;
    MUST(arena_init, &a, expert_slots_bytes(EXPERTS, MOST_SLOTS), false);
    expert_slots_init(&s, EXPERTS, MOST_SLOTS, &a);
    int32_t slot[MOST_SLOTS];
    bool there[MOST_SLOTS];
    assert_int_equal(pass_through(&s), 2);
    assert_int_equal(pass_through(&s), 2);
    for (int32_t e = MOST_SLOTS - 1; e >= 0; e--)
        use(&s, &e, 1, slot, there);
    assert_true(pass_through(&s) > 2);
    pass_through(&s);
    for (int32_t e = 0; e < MOST_SLOTS * 3 / 4; e++)
        assert_true(s.slot_of[e] >= 0);
    int32_t other[EXPERTS], n_other = 0;
    for (int32_t e = 0; e < EXPERTS; e++)
        if (s.slot_of[e] < 0)
            other[n_other++] = e;
    assert_int_equal(n_other, EXPERTS - MOST_SLOTS);
    for (int32_t i = 0; i < n_other; i++) { /* in place of what passed, then of the oldest */
        int32_t oldest = MOST_SLOTS * 3 / 4 - 1;
        use(&s, &other[i], 1, slot, there);
        for (int32_t e = 0; e <= oldest; e++)
            assert_int_equal(s.slot_of[e] >= 0, e < oldest || i < MOST_SLOTS / 4);
    }
    arena_free(&a);
}

TEST(what_did_not_come_is_not_there)
{
    arena a;
    expert_slots s;
    int32_t slot[4];
    bool there[4];
    MUST(arena_init, &a, expert_slots_bytes(EXPERTS, 4), false);
    expert_slots_init(&s, EXPERTS, 4, &a);
    use(&s, (int32_t[]){0, 1, 2, 3}, 4, slot, there);
    expert_slots_forget(&s, s.slot_of[2]);
    assert_int_equal(s.slot_of[2], -1);
    check(&s);
    assert_int_equal(use(&s, (int32_t[]){2}, 1, slot, there), 1);
    arena_free(&a);
}
