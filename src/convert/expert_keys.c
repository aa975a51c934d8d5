/* Mixtures of experts, and what the tensors themselves say: see keys.h and tensor_plan.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmath.h"
#include "convert/keys.h"
#include "convert/tensor_plan.h"

/* ---- What config.json says ---- */

/* llama.cpp's numbers of gates. */
static drey_status put_gate(const keys *k, drey_error *err)
{
    static const char *const names[] = {"softmax", "sigmoid"};
    static const router_gate usual[] = {ROUTER_SOFTMAX, ROUTER_SIGMOID};
    const char *name = config_text(
        k->folder, "scoring_func|score_function|expert_selection_fn|moe_router_activation");
    for (uint32_t i = 0; i < 2; i++)
        if (name ? strcmp(name, names[i]) == 0 : k->family->arch->experts.gate == usual[i]) {
            if (i > 0 || k->family->arch->experts.gate != usual[i])
                keys_u32(k, "expert_gating_func", i + 1);
            return DREY_OK;
        }
    if (name)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model's router has the function \"%.40s\", which is not converted", name);
    return DREY_OK;
}

static drey_status put_groups(const keys *k, drey_error *err)
{
    int64_t n = 0, used = 0;
    bool there;
    TRY(keys_int(k, "n_group", 1, &n, &there, err));
    TRY(keys_int(k, "topk_group", 1, &used, &there, err));
    if (n <= 1)
        return DREY_OK;
    keys_u32(k, "expert_group_count", (uint32_t)n);
    keys_u32(k, "expert_group_used_count", (uint32_t)used);
    return DREY_OK;
}

static drey_status put_weights(const keys *k, drey_error *err)
{
    const bool usual = k->family->arch->experts.weights_normed;
    const bool normed = config_bool(k->folder, "norm_topk_prob|route_norm|norm_expert_weight",
                                    usual || k->family->norms_chosen);
    const double scale =
        config_number(k->folder, "routed_scaling_factor|route_scale|router_scaling_factor|"
                                 "moe_router_scaling_factor|moe_routed_scaling_factor");
    if (normed != usual)
        keys_bool(k, "expert_weights_norm", normed);
    if (!isnan(scale) && !(scale > 0 && scale < 1e6))
        FAIL(err, DREY_ERR_FORMAT, "the factor of experts' weights in config.json is %g", scale);
    if (!isnan(scale) && scale != 1)
        keys_f32(k, "expert_weights_scale", scale);
    return DREY_OK;
}

drey_status expert_keys(const keys *k, drey_error *err)
{
    int64_t n, step;
    bool there;
    TRY(config_int(k->folder, CONFIG_EXPERTS, 1, 4096, &n, &there, err));
    if (!there)
        return DREY_OK;
    keys_u32(k, "expert_count", (uint32_t)n);
    TRY(keys_put_int(k, "num_experts_per_tok|num_experts_per_token|moe_k|moe_topk|moe_top_k",
                     "expert_used_count", 1, true, err));
    const char *width = k->family->naming == NAMING_GPT_OSS ? "intermediate_size"
                        : k->family->expert_width           ? k->family->expert_width
                                                            : "moe_intermediate_size";
    TRY(keys_put_int(k, width, "expert_feed_forward_length", 1, false, err));
    TRY(keys_int(k, "n_shared_experts|num_shared_experts|num_shared_expert|moe_num_shared_experts",
                 0, &n, &there, err));
    if (there && n > 0)
        keys_u32(k, "expert_shared_count", (uint32_t)n);
    TRY(config_int(k->folder, "decoder_sparse_step", 0, INT32_MAX, &step, &there, err));
    const json_value *dense = config_find(k->folder, "mlp_only_layers");
    if ((there && step != 1) || (dense && dense->n > 0))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "some of the model's layers have no experts "
             "(decoder_sparse_step, mlp_only_layers), which is not converted");
    TRY(put_gate(k, err));
    TRY(put_groups(k, err));
    return put_weights(k, err);
}

/* ---- What the tensors say ---- */

typedef struct planned {
    const keys *keys;
    const tensor_plan *plan;
    int64_t n_layers;
} planned;

static const made_tensor *of_layer(const planned *p, int64_t layer, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%lld.%s", (long long)layer, what);
    return tensor_plan_find(p->plan, name);
}

/* Layers that are mixtures: those after the first ones, one of every so many. */
static drey_status put_mixtures(const planned *p, drey_error *err)
{
    int64_t n_dense = -1, step = 0, n_shared = 0;
    for (int64_t i = 0; i < p->n_layers; i++) {
        const made_tensor *shared = of_layer(p, i, "ffn_up_shexp.weight");
        n_shared = shared && n_shared == 0 ? shared->dims[1] : n_shared;
        if (!of_layer(p, i, "ffn_gate_inp.weight"))
            continue;
        step = step == 0 && n_dense >= 0 ? i - n_dense : step;
        n_dense = n_dense < 0 ? i : n_dense;
    }
    if (n_dense < 0)
        return DREY_OK;
    step = step > 1                                                ? step
           : n_dense > 0 && step == 0 && n_dense + 1 < p->n_layers ? n_dense + 1
                                                                   : 1;
    if (step > 1 && (n_dense + 1) % step == 0)
        n_dense = n_dense + 1 - step;
    for (int64_t i = 0; i < p->n_layers; i++)
        if ((of_layer(p, i, "ffn_gate_inp.weight") != NULL) !=
            (i >= n_dense && (i + 1) % step == 0))
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "layer %lld has experts, or has none, in another order than that of the layers "
                 "before it, which is not converted",
                 (long long)i);
    if (n_dense > 0)
        keys_u32(p->keys, "leading_dense_block_count", (uint32_t)n_dense);
    if (step > 1)
        keys_u32(p->keys, "interleave_moe_layer_step", (uint32_t)step);
    if (n_shared > 0)
        keys_u32(p->keys, "expert_shared_feed_forward_length", (uint32_t)n_shared);
    return DREY_OK;
}

/* Writes a list, or one number where all are the same. */
static void put_each(const planned *p, const char *suffix, const uint32_t *values)
{
    bool same = true;
    for (int64_t i = 1; i < p->n_layers; i++)
        same &= values[i] == values[0];
    if (same)
        keys_u32(p->keys, suffix, values[0]);
    else
        new_gguf_u32s(p->keys->file, keys_name(p->keys, suffix, (char[96]){0}), values,
                      (uint64_t)p->n_layers);
}

/* Heads of each layer, no heads of keys where it does not attend. */
static drey_status put_heads(const planned *p, drey_error *err)
{
    const hub_folder *f = p->keys->folder;
    uint32_t heads[MODEL_MAX_LAYERS], key_heads[MODEL_MAX_LAYERS];
    int64_t n_embd, n_heads, dim;
    bool there;
    TRY(config_require(f, "hidden_size", 1, INT32_MAX, &n_embd, err));
    TRY(config_require(f, "num_attention_heads", 1, 1024, &n_heads, err));
    dim = n_embd / n_heads;
    TRY(config_int(f, "head_dim", 1, 1 << 16, &dim, &there, err));
    for (int64_t i = 0; i < p->n_layers; i++) {
        const made_tensor *q = of_layer(p, i, "attn_q.weight"),
                          *k = of_layer(p, i, "attn_k.weight");
        if ((q && q->dims[1] % dim != 0) || (k && k->dims[1] % dim != 0))
            FAIL(err, DREY_ERR_FORMAT,
                 "the rows of layer %lld's queries or keys are no heads of %lld", (long long)i,
                 (long long)dim);
        heads[i] = (uint32_t)(q ? q->dims[1] / dim : n_heads);
        key_heads[i] = (uint32_t)(k ? k->dims[1] / dim : 0);
    }
    put_each(p, "attention.head_count", heads);
    put_each(p, "attention.head_count_kv", key_heads);
    return DREY_OK;
}

/* The feed-forward part's rows, those of the first layer that has one. */
static drey_status put_width(const planned *p, drey_error *err)
{
    for (int64_t i = 0; i < p->n_layers; i++) {
        const made_tensor *up = of_layer(p, i, "ffn_up.weight");
        if (!up)
            continue;
        keys_u32(p->keys, "feed_forward_length", (uint32_t)up->dims[1]);
        return DREY_OK;
    }
    return keys_put_int(p->keys, "intermediate_size", "feed_forward_length", 1, true, err);
}

/* ---- xIELU ---- */

static drey_status read_number(const hub_folder *f, const char *name, float fallback, float *out,
                               drey_error *err)
{
    int32_t part;
    uint8_t bytes[4];
    uint16_t half;
    safetensor *t = folder_find(f, name, &part);
    *out = fallback;
    if (!t && fallback != 0)
        return DREY_OK;
    if (!t || t->type == NUMBER_OTHER || t->n_bytes != number_bytes(t->type))
        FAIL(err, DREY_ERR_FORMAT, "tensor %s is missing, or is not one number", name);
    TRY(folder_read(f, part, t->offset, t->n_bytes, bytes, err));
    memcpy(&half, bytes, sizeof half);
    if (t->type == NUMBER_F32)
        memcpy(out, bytes, sizeof *out);
    else
        *out = t->type == NUMBER_F16 ? f16_to_f32(half) : bf16_to_f32(half);
    t->taken = true;
    return DREY_OK;
}

drey_status activation_keys(const keys *k, drey_error *err)
{
    const hub_folder *f = k->folder;
    static const struct {
        const char *name;
        float usual; /* 0: the folder has to have it */
    } numbers[] = {{"alpha_p", 0}, {"alpha_n", 0}, {"beta", 0.5f}, {"eps", -1e-6f}};
    float values[MODEL_MAX_LAYERS];
    char name[96];
    int64_t n_layers;
    if (k->family->arch->ffn != FFN_XIELU)
        return DREY_OK;
    TRY(config_require(f, "num_hidden_layers", 1, MODEL_MAX_LAYERS, &n_layers, err));
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
        for (int64_t i = 0; i < n_layers; i++) {
            snprintf(name, sizeof name, "model.layers.%lld.mlp.act_fn.%s", (long long)i,
                     numbers[n].name);
            TRY(read_number(f, name, numbers[n].usual, &values[i], err));
        }
        snprintf(name, sizeof name, "xielu.%s", numbers[n].name);
        new_gguf_f32s(k->file, name, values, (uint64_t)n_layers);
    }
    return DREY_OK;
}

drey_status layer_keys(const family *a, const hub_folder *f, const tensor_plan *plan, new_gguf *g,
                       drey_error *err)
{
    const keys k = {.file = g, .folder = f, .family = a};
    planned p = {.keys = &k, .plan = plan};
    if (a->arch->encoder || a->naming == NAMING_GPT2)
        return DREY_OK;
    TRY(config_require(f, "num_hidden_layers", 1, MODEL_MAX_LAYERS, &p.n_layers, err));
    TRY(put_mixtures(&p, err));
    if (!a->from_tensors)
        return DREY_OK;
    TRY(put_heads(&p, err));
    return put_width(&p, err);
}
