/* Keys of models with gated delta nets or state spaces: see arch.h. */
#include "common/error.h"
#include "gguf/gguf.h"
#include "kernel/delta.h"
#include "model/arch.h"

/* Marks the layers without attention: those of a list, or all but the last of every so many. */
static drey_status mark_layers(model_shape *s, const gguf *g, drey_error *err)
{
    char name[96];
    const gguf_key *list = gguf_find_key(g, arch_key(s->arch, "attention.recurrent_layers", name));
    if (list && (list->kind != GGUF_ARRAY || list->item_kind != GGUF_BOOL ||
                 list->n_items < (uint64_t)s->n_layers))
        FAIL(err, DREY_ERR_FORMAT,
             "%s has to be a list of true and false for %d layers; convert the model again", name,
             s->n_layers);
    const int64_t period = gguf_int(g, arch_key(s->arch, "full_attention_interval", name), 4);
    if (period < 1)
        FAIL(err, DREY_ERR_FORMAT, "%s is %lld; the file is broken", name, (long long)period);
    for (int32_t i = 0; i < s->n_layers; i++)
        if (list ? gguf_item_number(list, (uint64_t)i) != 0 : (i + 1) % period != 0)
            s->layer[i].attention = LAYER_ATTENDS_NOT;
    return DREY_OK;
}

/* Heads of a state space are groups of values, of which each group has its keys. */
static drey_status check_groups(recurrent_shape *r, int32_t inner, drey_error *err)
{
    r->state_dim = r->head_dim;
    r->head_dim = inner / r->n_v_heads;
    if (r->n_v_heads % r->n_k_heads || inner % r->n_v_heads || r->head_dim > DELTA_MOST_DIM)
        FAIL(err, DREY_ERR_FORMAT,
             "%d numbers are not divided by %d heads (of at most %d numbers), or these not by %d "
             "groups; the file is broken",
             inner, r->n_v_heads, DELTA_MOST_DIM, r->n_k_heads);
    return DREY_OK;
}

drey_status arch_read_delta(model_shape *s, const gguf *g, drey_error *err)
{
    recurrent_shape *r = &s->recurrent;
    int32_t kernel, inner;
    if (!(s->arch->keys & (KEYS_DELTA | KEYS_MAMBA)))
        return DREY_OK;
    TRY(arch_require_count(g, s->arch, "ssm.conv_kernel", 2, DELTA_MOST_TAPS, &kernel, err));
    TRY(arch_require_count(g, s->arch, "ssm.state_size", 1, DELTA_MOST_DIM, &r->head_dim, err));
    TRY(arch_require_count(g, s->arch, "ssm.group_count", 1, 1024, &r->n_k_heads, err));
    TRY(arch_require_count(g, s->arch, "ssm.time_step_rank", 1, 1024, &r->n_v_heads, err));
    TRY(arch_require_count(g, s->arch, "ssm.inner_size", 1, 1 << 20, &inner, err));
    r->n_taps = kernel - 1;
    if (s->arch->keys & KEYS_MAMBA)
        return check_groups(r, inner, err);
    r->in_turns = s->arch->heads_in_turns;
    if (r->n_v_heads % r->n_k_heads)
        FAIL(err, DREY_ERR_FORMAT,
             "the delta nets have %d heads of values, which %d heads of keys do not divide; the "
             "file is broken",
             r->n_v_heads, r->n_k_heads);
    if (inner != r->n_v_heads * r->head_dim)
        FAIL(err, DREY_ERR_FORMAT,
             "%d heads of values with %d numbers are not %d; the file is broken", r->n_v_heads,
             r->head_dim, inner);
    return mark_layers(s, g, err);
}
