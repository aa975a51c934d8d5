/* Slots of experts: see expert_slots.h. */
#include "weights/expert_slots.h"

#include <assert.h>
#include <string.h>

#include "common/num.h"

size_t expert_slots_bytes(int32_t n_experts, int32_t n_slots)
{
    size_t n = (size_t)n_slots;
    return arena_size((size_t)n_experts * sizeof(int32_t)) + arena_size(n * sizeof(int32_t)) +
           arena_size(n * sizeof(int64_t)) + arena_size(n * sizeof(bool));
}

void expert_slots_init(expert_slots *s, int32_t n_experts, int32_t n_slots, arena *a)
{
    *s = (expert_slots){.n_experts = n_experts,
                        .n_slots = n_slots,
                        .clock = 1,
                        .slot_of = arena_take(a, (size_t)n_experts * sizeof *s->slot_of),
                        .expert_in = arena_take(a, (size_t)n_slots * sizeof *s->expert_in),
                        .used_at = arena_take(a, (size_t)n_slots * sizeof *s->used_at),
                        .held = arena_take(a, (size_t)n_slots * sizeof *s->held)};
    for (int32_t i = 0; i < n_experts && s->slot_of; i++)
        s->slot_of[i] = -1;
    for (int32_t i = 0; i < n_slots && s->expert_in && s->used_at; i++) {
        s->expert_in[i] = -1;
        s->used_at[i] = 0;
    }
}

/* An empty one, or that of the expert that was used longest ago; none of the present wave's. */
static int32_t victim(const expert_slots *s)
{
    int32_t oldest = -1;
    for (int32_t i = 0; i < s->n_slots; i++) {
        if (s->expert_in[i] < 0)
            return i;
        if (!s->held[i] && (oldest < 0 || s->used_at[i] < s->used_at[oldest]))
            oldest = i;
    }
    return oldest;
}

/* Slots that no text has used since they were filled. */
static int32_t n_spare(const expert_slots *s)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_slots; i++)
        n += s->used_at[i] == 0;
    return n;
}

int32_t expert_slots_fit(const expert_slots *s, const expert_run *run, int32_t n)
{
    int32_t spare = n_spare(s), n_passing = 0, i = 0;
    for (; i < n && i < s->n_slots; i++) {
        int32_t slot = s->slot_of[run[i].expert];
        if (slot >= 0)
            spare -= s->used_at[slot] == 0;
        else if (run[i].passing && n_passing++ >= max_i32(spare, s->n_slots / 4))
            break;
    }
    return max_i32(i, 1);
}

static void fill(expert_slots *s, int32_t slot, int32_t expert)
{
    if (s->expert_in[slot] >= 0)
        s->slot_of[s->expert_in[slot]] = -1;
    s->expert_in[slot] = expert;
    s->slot_of[expert] = slot;
}

int32_t expert_slots_use(expert_slots *s, const expert_run *run, int32_t n, int32_t *slot,
                         bool *there)
{
    int32_t n_missing = 0;
    assert(n <= s->n_slots); /* so that there are victims */
    memset(s->held, 0, (size_t)s->n_slots * sizeof *s->held);
    for (int32_t i = 0; i < n; i++) {
        slot[i] = s->slot_of[run[i].expert];
        there[i] = slot[i] >= 0;
        if (there[i])
            s->held[slot[i]] = true;
        n_missing += !there[i];
    }
    for (int32_t i = 0; i < n; i++, s->clock++) {
        if (!there[i]) {
            slot[i] = victim(s);
            fill(s, slot[i], run[i].expert);
            s->held[slot[i]] = true;
            s->used_at[slot[i]] = 0;
        }
        if (!run[i].passing)
            s->used_at[slot[i]] = s->clock;
    }
    return n_missing;
}

void expert_slots_forget(expert_slots *s, int32_t slot)
{
    if (s->expert_in[slot] < 0)
        return;
    s->slot_of[s->expert_in[slot]] = -1;
    s->expert_in[slot] = -1;
    s->used_at[slot] = 0;
}
