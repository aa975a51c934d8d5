/* Latent attention of toys: tensors and keys as llama.cpp's files of DeepSeek have them. */
#include <math.h>
#include <stdio.h>

#include "support/toys/toy_plan.h"

/* Keys and values that the matrices of heads make of latents have a deviation of about 1. */
static void plan_latent_heads(model_plan *m, int32_t layer)
{
    const toy_latent *t = &m->options->latent;
    const int32_t n_heads = m->options->n_heads;
    char name[64];
    if (t->whole) {
        add_matrix(m, layer_name(name, layer, "attn_kv_b.weight"), t->kv_rank,
                   (int64_t)n_heads * (t->n_plain + t->v_dim), 1.1f);
        return;
    }
    add_matrices_of(m, layer_name(name, layer, "attn_k_b.weight"), t->n_plain, t->kv_rank, n_heads,
                    1.2f * sqrtf((float)t->n_plain / (float)t->kv_rank));
    add_matrices_of(m, layer_name(name, layer, "attn_v_b.weight"), t->kv_rank, t->v_dim, n_heads,
                    1.0f);
}

static void plan_indexer(model_plan *m, int32_t layer)
{
    enum { HEADS = 2, DIM = 32 };
    const toy_options *o = m->options;
    char name[64];
    add_matrix(m, layer_name(name, layer, "indexer.attn_q_b.weight"), o->latent.q_rank, HEADS * DIM,
               1.0f);
    add_matrix(m, layer_name(name, layer, "indexer.attn_k.weight"), o->n_embd, DIM, 1.0f);
    add_matrix(m, layer_name(name, layer, "indexer.proj.weight"), o->n_embd, HEADS, 1.0f);
    add_vector(m, layer_name(name, layer, "indexer.k_norm.weight"), DIM, 1.0f, 0.1f);
    add_vector(m, layer_name(name, layer, "indexer.k_norm.bias"), DIM, 0.0f, 0.1f);
}

void plan_latent(model_plan *m, int32_t layer)
{
    const toy_options *o = m->options;
    const toy_latent *t = &o->latent;
    const int64_t d = o->n_embd, q = (int64_t)o->n_heads * (t->n_plain + o->n_rot);
    char name[64];
    if (t->q_rank > 0) {
        add_matrix(m, layer_name(name, layer, "attn_q_a.weight"), d, t->q_rank, 1.0f);
        add_vector(m, layer_name(name, layer, "attn_q_a_norm.weight"), t->q_rank, 1.0f, 0.1f);
        add_matrix(m, layer_name(name, layer, "attn_q_b.weight"), t->q_rank, q, 1.5f);
    } else {
        add_matrix(m, layer_name(name, layer, "attn_q.weight"), d, q, 1.5f);
    }
    add_matrix(m, layer_name(name, layer, "attn_kv_a_mqa.weight"), d, t->kv_rank + o->n_rot, 1.2f);
    add_vector(m, layer_name(name, layer, "attn_kv_a_norm.weight"), t->kv_rank, 1.0f, 0.1f);
    plan_latent_heads(m, layer);
    if (t->indexer)
        plan_indexer(m, layer);
    add_matrix(m, layer_name(name, layer, "attn_output.weight"), (int64_t)o->n_heads * t->v_dim, d,
               layer_weight(o, layer));
}

/* Keys that are 0 here are not in the file. */
uint64_t put_latent_keys(gguf_writer *w, const toy_options *o)
{
    const toy_latent *t = &o->latent;
    const int32_t k_dim = t->n_plain + o->n_rot;
    const struct {
        const char *suffix;
        int32_t value;
    } keys[] = {{"attention.q_lora_rank", t->q_rank},
                {"attention.kv_lora_rank", t->kv_rank},
                {"attention.key_length", t->whole ? k_dim : t->kv_rank + o->n_rot},
                {"attention.value_length", t->whole ? t->v_dim : t->kv_rank},
                {"attention.key_length_mla", t->whole ? 0 : k_dim},
                {"attention.value_length_mla", t->whole ? 0 : t->v_dim},
                {"attention.indexer.head_count", t->indexer ? 2 : 0},
                {"attention.indexer.key_length", t->indexer ? 32 : 0},
                {"attention.indexer.top_k", t->indexer ? 2048 : 0}};
    uint64_t n_keys = 0;
    char name[128];
    for (size_t i = 0; t->kv_rank > 0 && i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].value == 0)
            continue;
        snprintf(name, sizeof name, "%s.%s", o->architecture, keys[i].suffix);
        writer_key_u32(w, name, (uint32_t)keys[i].value);
        n_keys++;
    }
    return n_keys;
}
