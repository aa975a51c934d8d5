/* State spaces of toys: tensors and keys as llama.cpp's files of Nemotron H have them. */
#include <stdio.h>

#include "support/toys/toy_plan.h"

bool toy_has_mamba(const toy_options *o, int32_t layer)
{
    return o->mamba.n_heads > 0 && (o->form & TOY_BESIDE || o->mamba.kinds[layer] == 'M');
}

/* A number of each head; like norms of groups it is a table in files. */
static void add_numbers(model_plan *m, const char *name, int64_t n_columns, int64_t n, float centre,
                        float deviation)
{
    add_table(m, name, n_columns, n, deviation);
    m->tensors[m->n_tensors - 1].centre = centre;
}

void plan_mamba(model_plan *m, int32_t layer)
{
    const toy_options *o = m->options;
    const toy_mamba *t = &o->mamba;
    const int64_t d = o->n_embd, values = (int64_t)t->n_heads * t->dim,
                  channels = values + 2 * (int64_t)t->n_groups * t->state_dim;
    char name[64];
    add_matrix(m, layer_name(name, layer, "ssm_in.weight"), d, values + channels + t->n_heads,
               1.0f);
    add_table(m, layer_name(name, layer, "ssm_conv1d.weight"), 4, channels, 0.5f);
    add_vector(m, layer_name(name, layer, "ssm_conv1d.bias"), channels, 0.0f, 0.3f);
    add_vector(m, layer_name(name, layer, "ssm_dt.bias"), t->n_heads, 0.0f, 1.0f);
    add_numbers(m, layer_name(name, layer, "ssm_a"), 1, t->n_heads, -t->decay, 0.1f * t->decay);
    add_numbers(m, layer_name(name, layer, "ssm_d"), 1, t->n_heads, 1.0f, 0.3f);
    if (!t->without_norm)
        add_numbers(m, layer_name(name, layer, "ssm_norm.weight"), values / t->n_groups,
                    t->n_groups, 1.0f, 0.2f);
    add_matrix(m, layer_name(name, layer, "ssm_out.weight"), values, d, layer_weight(o, layer));
}

uint64_t put_mamba_keys(gguf_writer *w, const toy_options *o)
{
    const toy_mamba *t = &o->mamba;
    const struct {
        const char *suffix;
        int32_t value;
    } keys[] = {{"ssm.conv_kernel", 4},
                {"ssm.state_size", t->state_dim},
                {"ssm.group_count", t->n_groups},
                {"ssm.time_step_rank", t->n_heads},
                {"ssm.inner_size", t->n_heads * t->dim}};
    uint64_t n_keys = 0;
    for (; t->n_heads > 0 && n_keys < sizeof keys / sizeof *keys; n_keys++) {
        char name[128];
        snprintf(name, sizeof name, "%s.%s", o->architecture, keys[n_keys].suffix);
        writer_key_u32(w, name, (uint32_t)keys[n_keys].value);
    }
    return n_keys;
}
