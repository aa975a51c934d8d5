/* Slots against a list of experts in the order of their last use. */
#include <string.h>

#include "support/rng.h"
#include "support/scene.h"
#include "support/test.h"
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

/* As runs of a row each. */
static int32_t use(expert_slots *s, const int32_t *expert, int32_t n, bool passing, int32_t *slot,
                   bool *there)
{
    expert_run run[EXPERTS];
    for (int32_t i = 0; i < n; i++)
        run[i] = (expert_run){.expert = expert[i], .first = i, .n = 1};
    return expert_slots_use(s, run, n, passing, slot, there);
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
            assert_int_equal(use(&s, list, n, false, slot, there), missing);
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

/* A prompt goes through all experts: those that were in use before stay, but for one. */
TEST(what_passes_goes_first)
{
    arena a;
    expert_slots s;
    MUST(arena_init, &a, expert_slots_bytes(EXPERTS, 4), false);
    expert_slots_init(&s, EXPERTS, 4, &a);
    int32_t slot[4];
    bool there[4];
    use(&s, (int32_t[]){0, 1, 2, 3}, 4, false, slot, there);
    for (int32_t e = 4; e < EXPERTS; e++)
        assert_int_equal(use(&s, &e, 1, true, slot, there), 1);
    int32_t n_left = 0;
    for (int32_t e = 0; e < 4; e++)
        n_left += s.slot_of[e] >= 0;
    assert_int_equal(n_left, 3);
    expert_slots_forget(&s, s.slot_of[EXPERTS - 1]);
    assert_int_equal(s.slot_of[EXPERTS - 1], -1);
    check(&s);
    assert_int_equal(use(&s, (int32_t[]){EXPERTS - 1}, 1, false, slot, there), 1);
    arena_free(&a);
}
