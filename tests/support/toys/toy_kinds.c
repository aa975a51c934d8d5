/* Layers of two kinds, local ones and others: tensors and keys; see toy.h. */
#include "support/toys/toy_plan.h"

#include <math.h>
#include <stdio.h>

bool toy_sees_all(const toy_options *o, int32_t layer)
{
    return o->kinds.period == 0 || (layer + 1) % o->kinds.period == 0;
}

bool toy_shares(const toy_options *o, int32_t layer)
{
    return layer < o->n_layers && layer >= o->n_layers - o->kinds.n_shared;
}

void plan_layer_end(model_plan *m, int32_t layer, bool experts)
{
    static const char *const norms[] = {"pre_ffw_norm_2.weight", "post_ffw_norm_1.weight",
                                        "post_ffw_norm_2.weight"};
    const toy_options *o = m->options;
    const int64_t d = o->n_embd, n = o->kinds.width;
    char name[64];
    add_vector(m, layer_name(name, layer, "layer_output_scale.weight"), 1, 0.8f, 0.1f);
    for (int i = 0; i < 3 && experts; i++)
        add_vector(m, layer_name(name, layer, norms[i]), d, 1.0f, 0.2f);
    if (experts) {
        add_vector(m, layer_name(name, layer, "ffn_gate_inp.scale"), d, sqrtf((float)d), 1.0f);
        add_vector(m, layer_name(name, layer, "ffn_down_exps.scale"), o->experts.n, 1.0f, 0.3f);
    }
    if (n == 0)
        return;
    add_matrix(m, layer_name(name, layer, "inp_gate.weight"), d, n, 1.0f);
    add_matrix(m, layer_name(name, layer, "proj.weight"), n, d, 1.0f);
    add_vector(m, layer_name(name, layer, "post_norm.weight"), d, layer_weight(o, layer), 0.2f);
}

void plan_embeddings(model_plan *m)
{
    const toy_options *o = m->options;
    const int64_t n = (int64_t)o->kinds.width * o->n_layers;
    if (n == 0)
        return;
    add_matrix(m, "per_layer_token_embd.weight", n, m->n_vocab, sqrtf((float)o->n_layers));
    add_matrix(m, "per_layer_model_proj.weight", o->n_embd, n, 1.0f);
    add_vector(m, "per_layer_proj_norm.weight", o->kinds.width, 1.0f, 0.1f);
}

uint64_t put_kind_keys(gguf_writer *w, const toy_options *o, int32_t head_dim)
{
    const toy_kinds *k = &o->kinds;
    const struct {
        const char *suffix;
        int32_t value;
    } keys[] = {{"attention.key_length_swa", k->local_dim},
                {"attention.value_length_swa", k->local_dim},
                {"rope.dimension_count", head_dim},
                {"rope.dimension_count_swa", k->local_dim},
                {"attention.shared_kv_layers", k->n_shared},
                {"embedding_length_per_layer_input", k->width}};
    uint64_t n_keys = 0;
    char name[128];
    if (k->period == 0)
        return 0;
    for (; n_keys < sizeof keys / sizeof *keys; n_keys++) {
        snprintf(name, sizeof name, "%s.%s", o->architecture, keys[n_keys].suffix);
        writer_key_u32(w, name, (uint32_t)keys[n_keys].value);
    }
    snprintf(name, sizeof name, "%s.attention.sliding_window_pattern", o->architecture);
    writer_key_array(w, name, GGUF_BOOL, (uint64_t)o->n_layers);
    for (int32_t i = 0; i < o->n_layers; i++)
        writer_put(w, &(uint8_t){!toy_sees_all(o, i)}, 1);
    return n_keys + 1;
}
