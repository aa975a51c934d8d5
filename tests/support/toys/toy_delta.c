/* Gated delta nets of toys: tensors and keys as llama.cpp's files of Qwen 3.5 have them. */
#include <stdio.h>

#include "support/toys/toy_plan.h"

bool toy_has_delta(const toy_options *o, int32_t layer)
{
    return o->delta.n_key_heads > 0 && layer < o->n_layers && (layer + 1) % o->delta.period != 0;
}

/* Sums of products with beta, alpha and dt have a deviation of 1.4. */
void plan_delta(model_plan *m, int32_t layer)
{
    const toy_options *o = m->options;
    const toy_delta *t = &o->delta;
    char name[64];
    const int64_t d = o->n_embd, values = (int64_t)t->n_value_heads * t->dim,
                  channels = 2 * (int64_t)t->n_key_heads * t->dim + values;
    if (t->all_inputs) {
        add_matrix(m, layer_name(name, layer, "ssm_in.weight"), d, channels + values, 1.0f);
    } else {
        add_matrix(m, layer_name(name, layer, "attn_qkv.weight"), d, channels, 1.0f);
        add_matrix(m, layer_name(name, layer, "attn_gate.weight"), d, values, 1.0f);
    }
    if (t->by_heads) {
        add_matrix(m, layer_name(name, layer, "ssm_ba.weight"), d, 2 * t->n_value_heads, 1.0f);
    } else {
        add_matrix(m, layer_name(name, layer, "ssm_beta.weight"), d, t->n_value_heads, 1.0f);
        add_matrix(m, layer_name(name, layer, "ssm_alpha.weight"), d, t->n_value_heads, 1.0f);
    }
    add_table(m, layer_name(name, layer, "ssm_conv1d.weight"), 4, channels, 0.5f);
    add_vector(m, layer_name(name, layer, "ssm_dt.bias"), t->n_value_heads, 0.0f, 1.0f);
    add_vector(m, layer_name(name, layer, "ssm_a"), t->n_value_heads, -t->decay, 0.1f * t->decay);
    add_vector(m, layer_name(name, layer, "ssm_norm.weight"), t->dim, 1.0f, 0.2f);
    add_matrix(m, layer_name(name, layer, "ssm_out.weight"), values, d, layer_weight(o, layer));
}

uint64_t put_delta_keys(gguf_writer *w, const toy_options *o)
{
    const toy_delta *t = &o->delta;
    const struct {
        const char *suffix;
        int32_t value;
    } keys[] = {{"ssm.conv_kernel", 4},
                {"ssm.state_size", t->dim},
                {"ssm.group_count", t->n_key_heads},
                {"ssm.time_step_rank", t->n_value_heads},
                {"ssm.inner_size", t->n_value_heads * t->dim},
                {"full_attention_interval", t->period}};
    uint64_t n_keys = 0;
    char name[128];
    for (; t->n_key_heads > 0 && n_keys < sizeof keys / sizeof *keys; n_keys++) {
        snprintf(name, sizeof name, "%s.%s", o->architecture, keys[n_keys].suffix);
        writer_key_u32(w, name, (uint32_t)keys[n_keys].value);
    }
    return n_keys;
}
