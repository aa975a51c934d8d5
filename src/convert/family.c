/* The table of families, and the sizes of a model: see family.h. RoPE is in rope_keys.c. */
#include "convert/family.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "convert/keys.h"

#define T5 .arch_name = "t5", .naming = NAMING_T5
#define BART                                                                                       \
    .arch_name = "bart", .naming = NAMING_BART, .pre = "gpt-2", .adds_ends = true,                 \
    .skipped_positions = 2
#define GEMMA                                                                                      \
    .naming = NAMING_GEMMA, .window = WINDOW_STATED, .norms_from_1 = true, .no_blank = true

static const family families[] = {
    {.name = "LlamaForCausalLM", .arch_name = "llama"},
    {.name = "MistralForCausalLM", .arch_name = "llama", .window = WINDOW_ALL},
    {.name = "MixtralForCausalLM", .arch_name = "llama", .window = WINDOW_ALL},
    {.name = "Qwen2ForCausalLM", .arch_name = "qwen2", .qkv_biases = true},
    {.name = "Qwen3ForCausalLM", .arch_name = "qwen3"},
    {.name = "Qwen2MoeForCausalLM", .arch_name = "qwen2moe", .qkv_biases = true},
    {.name = "Qwen3MoeForCausalLM", .arch_name = "qwen3moe"},
    {.name = "OlmoeForCausalLM", .arch_name = "olmoe"},
    {.name = "GraniteForCausalLM", .arch_name = "granite"},
    {.name = "GraniteMoeForCausalLM", .arch_name = "granitemoe"},
    {.name = "GraniteMoeSharedForCausalLM", .arch_name = "granitemoe"},
    {.name = "GptOssForCausalLM",
     .arch_name = "gpt-oss",
     .naming = NAMING_GPT_OSS,
     .window = WINDOW_STATED},
    {.name = "Gemma2ForCausalLM", .arch_name = "gemma2", GEMMA},
    {.name = "Gemma3ForCausalLM", .arch_name = "gemma3", GEMMA, .rope_base = 1e6},
    {.name = "Phi3ForCausalLM", .arch_name = "phi3", .window = WINDOW_STATED},
    {.name = "GPT2LMHeadModel", .arch_name = "gpt2", .naming = NAMING_GPT2, .pre = "gpt-2"},
    {.name = "T5ForConditionalGeneration", T5, .feed_forward = "relu"},
    {.name = "T5WithLMHeadModel", T5, .feed_forward = "relu"},
    {.name = "MT5ForConditionalGeneration", T5, .feed_forward = "gated-gelu", .plain_head = true},
    {.name = "UMT5ForConditionalGeneration", T5, .feed_forward = "gated-gelu"},
    {.name = "BartForConditionalGeneration", BART},
    {.name = "BartModel", BART},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

/* Returns what the families become, for a message. */
static const char *family_names(char *out, size_t capacity)
{
    size_t at = 0;
    for (int i = 0; i < N_FAMILIES && at < capacity; i++)
        if (i == 0 || strcmp(families[i].arch_name, families[i - 1].arch_name) != 0)
            at += (size_t)snprintf(out + at, capacity - at, "%s%s", i ? ", " : "",
                                   families[i].arch_name);
    return out;
}

static const family *find_named(const char *name)
{
    for (int i = 0; i < N_FAMILIES; i++)
        if (strcmp(families[i].name, name) == 0)
            return &families[i];
    return NULL;
}

const char *family_activation(const family *a)
{
    static const char *const names[] = {
        [FFN_SWIGLU] = "silu",   [FFN_SWIGLU_CUT] = "silu", [FFN_GEGLU] = "gelu_pytorch_tanh",
        [FFN_GELU] = "gelu_new", [FFN_ERF] = "gelu",        [FFN_RELU] = "relu"};
    return names[a->arch->ffn];
}

bool folder_is_mxfp4(const hub_folder *f)
{
    return json_member_is(config_find(f, "quantization_config"), "quant_method", "mxfp4");
}

static drey_status check_quantised(const family *a, const hub_folder *f, drey_error *err)
{
    const json_value *how = config_find(f, "quantization_config");
    const char *method = json_member_text(how, "quant_method");
    if (!how || (a->naming == NAMING_GPT_OSS && folder_is_mxfp4(f)))
        return DREY_OK;
    FAIL(err, DREY_ERR_UNSUPPORTED,
         "the model is quantised already (quantization_config of config.json: %.20s); fetch the "
         "one in BF16 or F16 that it was made of",
         method ? method : "no quant_method");
}

drey_status family_find(family *out, const hub_folder *f, drey_error *err)
{
    const json_value *list = json_member_array(f->config.root, "architectures");
    const json_value *first = list ? list->first : NULL;
    if (!first)
        FAIL(err, DREY_ERR_FORMAT, "config.json names no architecture (architectures)");
    const family *found = find_named(first->text);
    if (!found)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "architecture \"%s\" is not converted; folders of these are: %s",
             gguf_printable((char[48]){0}, 48, first->text, first->n),
             family_names((char[200]){0}, 200));
    *out = *found;
    out->arch = arch_find(out->arch_name, strlen(out->arch_name));
    assert(out->arch);
    return check_quantised(out, f, err);
}

/* ---- Sizes ---- */

static drey_status put_int(const keys *k, const char *names, const char *suffix, int64_t least,
                           bool needed, drey_error *err)
{
    int64_t value;
    bool there = true;
    if (needed)
        TRY(config_require(k->folder, names, least, INT32_MAX, &value, err));
    else
        TRY(config_int(k->folder, names, least, INT32_MAX, &value, &there, err));
    if (there)
        keys_u32(k, suffix, (uint32_t)value);
    return DREY_OK;
}

static drey_status put_sizes(const keys *k, drey_error *err)
{
    bool gpt2 = k->family->naming == NAMING_GPT2, gemma = k->family->naming == NAMING_GEMMA;
    int64_t value;
    bool there;
    TRY(put_int(k, "num_hidden_layers|n_layer", "block_count", 1, true, err));
    TRY(put_int(k, gpt2 ? "n_ctx|n_positions" : "max_position_embeddings", "context_length", 1,
                true, err));
    if (family_permutes(k->family))
        TRY(put_int(k, "vocab_size", "vocab_size", 1, false, err));
    TRY(put_int(k, "hidden_size|n_embd", "embedding_length", 1, true, err));
    TRY(put_int(k, "num_attention_heads|n_head", "attention.head_count", 1, true, err));
    TRY(put_int(k, "num_key_value_heads", "attention.head_count_kv", 1, false, err));
    if (gpt2) {
        TRY(config_require(k->folder, "n_embd", 1, 1 << 20, &value, err));
        value *= 4;
        TRY(config_int(k->folder, "n_inner", 1, 1 << 22, &value, &there, err));
        keys_u32(k, "feed_forward_length", (uint32_t)value);
    } else {
        TRY(put_int(k, "intermediate_size", "feed_forward_length", 1, true, err));
    }
    if (!(k->family->arch->keys & KEYS_SCALES)) { /* granite has no heads of another width */
        bool needed = gemma || k->family->naming == NAMING_GPT_OSS;
        TRY(put_int(k, "head_dim", "attention.key_length", 1, needed, err));
        TRY(put_int(k, "head_dim", "attention.value_length", 1, needed, err));
    }
    const char *norm = gpt2 ? "layer_norm_epsilon" : "rms_norm_eps";
    double eps = config_number(k->folder, norm);
    if (isnan(eps))
        FAIL(err, DREY_ERR_FORMAT, "config.json has no %s", norm);
    if (eps >= 1)
        FAIL(err, DREY_ERR_FORMAT, "%s of config.json is %g, where less than 1 has to be", norm,
             eps);
    keys_f32(k, gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", eps);
    return DREY_OK;
}

/* ---- What belongs to some ---- */

static drey_status put_scales(const keys *k, drey_error *err)
{
    static const char *const scales[][2] = {{"attention_multiplier", "attention.scale"},
                                            {"embedding_multiplier", "embedding_scale"},
                                            {"residual_multiplier", "residual_scale"},
                                            {"logits_scaling", "logit_scale"}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        double value = config_number(k->folder, scales[i][0]);
        if (!isnan(value) && !(value > 0 && value < 1e6))
            FAIL(err, DREY_ERR_FORMAT, "%s of config.json is %g", scales[i][0], value);
        if (!isnan(value))
            keys_f32(k, scales[i][1], value);
    }
    return DREY_OK;
}

static drey_status put_experts(const keys *k, drey_error *err)
{
    int64_t n, step;
    bool there, normed;
    TRY(config_int(k->folder, "num_local_experts|num_experts", 1, 4096, &n, &there, err));
    if (!there)
        return DREY_OK;
    keys_u32(k, "expert_count", (uint32_t)n);
    TRY(put_int(k, "num_experts_per_tok", "expert_used_count", 1, true, err));
    const char *width =
        k->family->naming == NAMING_GPT_OSS ? "intermediate_size" : "moe_intermediate_size";
    TRY(put_int(k, width, "expert_feed_forward_length", 1, false, err));
    TRY(put_int(k, "shared_expert_intermediate_size|shared_intermediate_size",
                "expert_shared_feed_forward_length", 1, false, err));
    TRY(config_int(k->folder, "decoder_sparse_step", 0, INT32_MAX, &step, &there, err));
    const json_value *dense = config_find(k->folder, "mlp_only_layers");
    if ((there && step != 1) || (dense && dense->n > 0))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "some of the model's layers have no experts "
             "(decoder_sparse_step, mlp_only_layers), which is not converted");
    normed = config_bool(k->folder, "norm_topk_prob", k->family->arch->experts.weights_normed);
    if (normed != k->family->arch->experts.weights_normed)
        keys_bool(k, "expert_weights_norm", normed);
    return DREY_OK;
}

static drey_status put_caps(const keys *k, drey_error *err)
{
    static const char *const caps[] = {"attn_logit_softcapping", "final_logit_softcapping"};
    const arch *a = k->family->arch;
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        double cap = config_number(k->folder, caps[i]);
        if (!isnan(cap) && !(a->keys & KEYS_CAPS))
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "config.json has %s, which drey does not compute for "
                 "architecture %s",
                 caps[i], a->name);
        if (!isnan(cap))
            keys_f32(k, caps[i], cap);
        else if (a->cap.attention > 0)
            FAIL(err, DREY_ERR_FORMAT, "config.json has no %s", caps[i]);
    }
    return DREY_OK;
}

/* Gemma divides scores by the root of a number that GGUF does not state. */
static drey_status check_score_scale(const keys *k, drey_error *err)
{
    double scalar = config_number(k->folder, "query_pre_attn_scalar");
    double head = config_number(k->folder, "head_dim");
    double layers = config_number(k->folder, "num_hidden_layers");
    double width =
        config_number(k->folder, "hidden_size") / config_number(k->folder, "num_attention_heads");
    const int32_t wide_layers = k->family->arch->wide_layers;
    bool wide = layers == wide_layers;
    if (wide_layers > 0 && !isnan(scalar) && scalar != (wide ? width : head))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "query_pre_attn_scalar is %g, where drey computes such a "
             "model with %g",
             scalar, wide ? width : head);
    return DREY_OK;
}

/* ---- Windows ---- */

/* layer_types, where config.json has it, has to be what the architecture computes. */
static drey_status check_layer_types(const keys *k, bool window, drey_error *err)
{
    const json_value *types = config_find(k->folder, "layer_types");
    int32_t period = k->family->arch->local.period, i = 0;
    int64_t n_layers;
    for (const json_value *v = types ? types->first : NULL; v; v = v->next, i++) {
        bool local = period ? i % period < period - 1 : window;
        if (strcmp(v->text, local ? "sliding_attention" : "full_attention") != 0)
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "layer %d of the model is \"%.40s\", which drey does "
                 "not compute for architecture %s",
                 i, v->text, k->family->arch_name);
    }
    TRY(config_require(k->folder, "num_hidden_layers|n_layer", 1, INT32_MAX, &n_layers, err));
    if (types && i != n_layers)
        FAIL(err, DREY_ERR_FORMAT, "layer_types of config.json has %d layers, and the model %lld",
             i, (long long)n_layers);
    return DREY_OK;
}

static drey_status put_window(const keys *k, drey_error *err)
{
    int64_t window = 0, n_context, pattern = 0;
    bool there;
    TRY(config_int(k->folder, "sliding_window", 0, INT32_MAX, &window, &there, err));
    TRY(config_require(k->folder, "max_position_embeddings|n_ctx|n_positions", 1, INT32_MAX,
                       &n_context, err));
    bool used = config_bool(k->folder, "use_sliding_window", k->family->window != WINDOW_NEVER) &&
                window > 0 && window < n_context;
    if (used && k->family->window == WINDOW_NEVER)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "config.json asks for a sliding window, which drey does "
             "not compute for architecture %s",
             k->family->arch_name);
    TRY(config_int(k->folder, "sliding_window_pattern", 1, INT32_MAX, &pattern, &there, err));
    if (there && pattern != k->family->arch->local.period)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "sliding_window_pattern is %lld, where drey computes such "
             "a model with %d",
             (long long)pattern, k->family->arch->local.period);
    if (used || k->family->window == WINDOW_STATED)
        keys_u32(k, "attention.sliding_window", (uint32_t)window);
    return check_layer_types(k, used, err);
}

/* ---- All ---- */

/* Returns the one name of activations that have two. */
static const char *default_name(const char *activation)
{
    return strcmp(activation, "swish") == 0      ? "silu"
           : strcmp(activation, "gelu_new") == 0 ? "gelu_pytorch_tanh"
                                                 : activation;
}

static drey_status check_activation(const keys *k, drey_error *err)
{
    const char *name = config_text(k->folder, "hidden_activation|hidden_act|activation_function");
    if (name && strcmp(default_name(name), default_name(family_activation(k->family))) != 0)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model's activation is \"%.40s\", where drey computes "
             "such a model with \"%s\"",
             name, family_activation(k->family));
    double limit = config_number(k->folder, "swiglu_limit");
    if (!isnan(limit) && (limit != 7 || k->family->arch->ffn != FFN_SWIGLU_CUT))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "swiglu_limit is %g, which drey does not compute for architecture %s", limit,
             k->family->arch_name);
    if (!isnan(config_number(k->folder, "clip_qkv")))
        FAIL(err, DREY_ERR_UNSUPPORTED, "config.json has clip_qkv, which drey does not compute");
    return DREY_OK;
}

/* Refuses ways to make scores that no key can say. */
static drey_status check_attention(const keys *k, drey_error *err)
{
    const bool gpt2 = k->family->naming == NAMING_GPT2;
    if (config_bool(k->folder, "use_bidirectional_attention", false))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "config.json has use_bidirectional_attention, which drey does not compute");
    if (gpt2 && (!config_bool(k->folder, "scale_attn_weights", true) ||
                 config_bool(k->folder, "scale_attn_by_inverse_layer_idx", false)))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "config.json scales attention in another way than GPT-2 (scale_attn_weights, "
             "scale_attn_by_inverse_layer_idx), which drey does not compute");
    return DREY_OK;
}

/* Biases are used where the folder has them: config.json must not say otherwise. */
static drey_status check_biases(const keys *k, drey_error *err)
{
    static const char *const biases[][2] = {
        {"attention_bias", "model.layers.0.self_attn.q_proj.bias"},
        {"mlp_bias", "model.layers.0.mlp.up_proj.bias"}};
    int32_t part;
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++) {
        const bool there = folder_find(k->folder, biases[i][1], &part) != NULL;
        if (config_bool(k->folder, biases[i][0], there) != there &&
            !(i == 0 && k->family->qkv_biases))
            FAIL(err, DREY_ERR_FORMAT, "%s of config.json is %s, and the folder has %s tensor %s",
                 biases[i][0], there ? "false" : "true", there ? "a" : "no", biases[i][1]);
    }
    return DREY_OK;
}

drey_status family_keys(const family *a, const hub_folder *f, new_gguf *g,
                        rope_factors factors[MOST_ROPE_FACTORS], drey_error *err)
{
    const keys k = {.file = g, .folder = f, .family = a};
    if (a->arch->encoder)
        return encoder_keys(&k, err);
    TRY(check_activation(&k, err));
    TRY(check_attention(&k, err));
    TRY(check_biases(&k, err));
    TRY(put_sizes(&k, err));
    TRY(put_window(&k, err));
    TRY(put_caps(&k, err));
    TRY(check_score_scale(&k, err));
    TRY(put_experts(&k, err));
    if (a->arch->keys & KEYS_SCALES)
        TRY(put_scales(&k, err));
    return a->naming == NAMING_GPT2 ? DREY_OK : rope_keys(&k, factors, err);
}
