/* Slots of experts: see expert_slots.h. */
#include "weights/expert_slots.h"

#include <assert.h>

size_t expert_slots_bytes(int32_t n_experts, int32_t n_slots)
{
    size_t n = (size_t)n_slots;
    return arena_size((size_t)n_experts * sizeof(int32_t)) + arena_size(n * sizeof(int32_t)) +
           arena_size(n * sizeof(int64_t));
}

void expert_slots_init(expert_slots *s, int32_t n_experts, int32_t n_slots, arena *a)
{
    *s = (expert_slots){.n_experts = n_experts,
                        .n_slots = n_slots,
                        .clock = 1,
                        .slot_of = arena_take(a, (size_t)n_experts * sizeof *s->slot_of),
                        .expert_in = arena_take(a, (size_t)n_slots * sizeof *s->expert_in),
                        .used_at = arena_take(a, (size_t)n_slots * sizeof *s->used_at)};
    for (int32_t i = 0; i < n_experts && s->slot_of; i++)
        s->slot_of[i] = -1;
    for (int32_t i = 0; i < n_slots && s->expert_in && s->used_at; i++) {
        s->expert_in[i] = -1;
        s->used_at[i] = 0;
    }
}

/* An empty one, or that of the expert that was used longest ago. */
static int32_t victim(const expert_slots *s)
{
    int32_t oldest = 0;
    for (int32_t i = 0; i < s->n_slots; i++) {
        if (s->expert_in[i] < 0)
            return i;
        if (s->used_at[i] < s->used_at[oldest])
            oldest = i;
    }
    return oldest;
}

int32_t expert_slots_use(expert_slots *s, const expert_run *run, int32_t n, bool passing,
                         int32_t *slot, bool *there)
{
    int32_t n_missing = 0;
    assert(n <= s->n_slots); /* so that no victim is one of these */
    int64_t first = s->clock;
    s->clock += n;
    for (int32_t i = 0; i < n; i++) {
        slot[i] = s->slot_of[run[i].expert];
        there[i] = slot[i] >= 0;
        if (there[i])
            s->used_at[slot[i]] = first + i;
    }
    for (int32_t i = 0; i < n; i++) {
        if (there[i])
            continue;
        slot[i] = victim(s);
        if (s->expert_in[slot[i]] >= 0)
            s->slot_of[s->expert_in[slot[i]]] = -1;
        s->expert_in[slot[i]] = run[i].expert;
        s->slot_of[run[i].expert] = slot[i];
        s->used_at[slot[i]] = first + i;
        n_missing++;
    }
    for (int32_t i = 0; i < n && passing; i++)
        if (!there[i])
            s->used_at[slot[i]] = 0;
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
