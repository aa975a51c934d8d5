/* The table of families, and the sizes of a model: see family.h. RoPE is in rope_keys.c. */
#include "convert/family.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "convert/keys.h"
#include "convert/tensor_names.h"

#define T5 .arch_name = "t5", .naming = NAMING_T5
#define BART                                                                                       \
    .arch_name = "bart", .naming = NAMING_BART, .pre = "gpt-2", .adds_ends = true,                 \
    .skipped_positions = 2
#define GEMMA                                                                                      \
    .naming = NAMING_GEMMA, .window = WINDOW_STATED, .norms_from_1 = true, .no_blank = true

/* ---- Rules of families ---- */

static const family_rule rotated_norms[] = {
    {"use_qk_norm", NULL, RULE_IS, 1}, {"use_cla", NULL, RULE_IS, 0}, {0}};
static const family_rule parallel[] = {
    {"logit_scale", "logit_scale", RULE_NUMBER, 0},
    {"use_parallel_block", NULL, RULE_IS, 1},
    {"use_gated_activation", NULL, RULE_IS, 1},
    {"shared_expert_combination_strategy", "average", RULE_SAYS, 0},
    {0}};
static const family_rule delta_nets[] = {
    {"linear_conv_kernel_dim", "ssm.conv_kernel", RULE_COUNT, 0},
    {"linear_key_head_dim", "ssm.state_size", RULE_COUNT, 0},
    {"linear_num_key_heads", "ssm.group_count", RULE_COUNT, 0},
    {"linear_num_value_heads", "ssm.time_step_rank", RULE_COUNT, 0},
    {"attn_output_gate", NULL, RULE_IS, 1},
    {0}};
static const family_rule convolutions[] = {
    {"conv_L_cache", "shortconv.l_cache", RULE_COUNT, 0}, {"conv_bias", NULL, RULE_IS, 0}, {0}};
static const family_rule chunks[] = {
    {"attention_chunk_size", "attention.sliding_window", RULE_COUNT, 0},
    {"attn_scale", "attention.temperature_scale", RULE_NUMBER, 0},
    {"floor_scale", "attention.temperature_length", RULE_COUNT, 0},
    {"attn_temperature_tuning", NULL, RULE_IS, 1},
    {"use_qk_norm", NULL, RULE_IS, 1},
    {0}};
static const family_rule clamps[] = {
    {"swiglu_limits", "swiglu_clamp_exp", RULE_NUMBERS, 0},
    {"swiglu_limits_shared", "swiglu_clamp_shexp", RULE_NUMBERS, 0},
    {"use_head_wise_attn_gate", NULL, RULE_IS, 1},
    {0}};
static const family_rule values[] = {
    {"v_head_dim", "attention.value_length", RULE_COUNT, 0},
    {"attention_value_scale", "attention.value_scale", RULE_NUMBER, 0},
    {"add_full_attention_sink_bias", NULL, RULE_IS, 0},
    {0}};
static const family_rule gates[] = {{"moe_router_logit_softcapping", NULL, RULE_IS, 0},
                                    {"moe_apply_router_weight_on_input", NULL, RULE_IS, 0},
                                    {0}};
static const family_rule scaled_embedding[] = {{"mup_enabled", NULL, RULE_IS, 1}, {0}};
static const family_rule no_biases[] = {{"use_bias", NULL, RULE_IS, 0},
                                        {"bias", NULL, RULE_IS, 0},
                                        {"qk_layernorm", NULL, RULE_IS, 0},
                                        {0}};

#define WINDOWS     .window = WINDOW_LISTED
#define NORMS_AFTER .own = norms_after_roles
#define QWEN35                                                                                     \
    .norms_from_1 = true, .rotated = 0.25, .fused = fused_halves, .rules = delta_nets,             \
    .norms_chosen = true
#define LLAMA4                                                                                     \
    .arch_name = "llama4", .rows_stay = true, WINDOWS, .dense_width = "intermediate_size_mlp",     \
    .expert_width = "intermediate_size", .fused = fused_turned_halves, .rules = chunks
#define STEP35                                                                                     \
    .arch_name = "step35", WINDOWS, .rotated = 1, .norms_from_1 = true, .from_tensors = true,      \
    .fused = fused_halves, .rules = clamps, .norms_chosen = true
#define PHIMOE .arch_name = "phimoe", .expert_width = "intermediate_size", .qkv_biases = true

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
    {.name = "Lfm2ForCausalLM", .arch_name = "lfm2", .from_tensors = true, .rules = convolutions},
    {.name = "Lfm2MoeForCausalLM",
     .arch_name = "lfm2moe",
     .from_tensors = true,
     .rules = convolutions},
    {.name = "Qwen2VLForConditionalGeneration", .arch_name = "qwen2vl", .qkv_biases = true},
    {.name = "Qwen2_5_VLForConditionalGeneration", .arch_name = "qwen2vl", .qkv_biases = true},
    {.name = "Qwen3VLForConditionalGeneration", .arch_name = "qwen3vl"},
    {.name = "Qwen3VLMoeForConditionalGeneration",
     .arch_name = "qwen3vlmoe",
     .fused = fused_turned_halves},
    {.name = "Ministral3ForCausalLM", .arch_name = "mistral3"},
    {.name = "Mistral3ForConditionalGeneration", .arch_name = "mistral3"},
    {.name = "InternLM2ForCausalLM", .arch_name = "internlm2", .rules = no_biases},
    {.name = "SmolLM3ForCausalLM", .arch_name = "smollm3"},
    {.name = "SeedOssForCausalLM", .arch_name = "seed_oss"},
    {.name = "Ernie4_5ForCausalLM", .arch_name = "ernie4_5", .rows_stay = true, .rules = no_biases},
    {.name = "Ernie4_5_MoeForCausalLM",
     .arch_name = "ernie4_5-moe",
     .rows_stay = true,
     .rules = no_biases},
    {.name = "Glm4MoeForCausalLM", .arch_name = "glm4moe", .rotated = 0.5},
    {.name = "HYV3ForCausalLM", .arch_name = "hy_v3", .norms_chosen = true},
    {.name = "MiniMaxM2ForCausalLM",
     .arch_name = "minimax-m2",
     .rotated = 1,
     .expert_width = "intermediate_size"},
    {.name = "Dots1ForCausalLM", .arch_name = "dots1"},
    {.name = "ExaoneMoeForCausalLM", .arch_name = "exaone-moe", WINDOWS, .norms_chosen = true},
    {.name = "ExaoneMoEForCausalLM", .arch_name = "exaone-moe", WINDOWS, .norms_chosen = true},
    {.name = "HunYuanDenseV1ForCausalLM", .arch_name = "hunyuan-dense", .rules = rotated_norms},
    {.name = "HunYuanMoEV1ForCausalLM", .arch_name = "hunyuan-moe", .rules = rotated_norms},
    {.name = "BailingMoeV2ForCausalLM", .arch_name = "bailingmoe2", .rotated = 0.5},
    {.name = "Glm4ForCausalLM", .arch_name = "glm4", .rows_stay = true, .rotated = 0.5},
    {.name = "Olmo2ForCausalLM", .arch_name = "olmo2", NORMS_AFTER, WINDOWS},
    {.name = "Olmo3ForCausalLM", .arch_name = "olmo2", NORMS_AFTER, WINDOWS},
    {.name = "Exaone4ForCausalLM", .arch_name = "exaone4", NORMS_AFTER, WINDOWS},
    {.name = "ArceeForCausalLM", .arch_name = "arcee"},
    {.name = "ApertusForCausalLM", .arch_name = "apertus"},
    {.name = "Starcoder2ForCausalLM", .arch_name = "starcoder2", .window = WINDOW_ALL},
    {.name = "NemotronForCausalLM", .arch_name = "nemotron", .rotated = 0.5, .norms_from_1 = true},
    {.name = "StableLmForCausalLM", .arch_name = "stablelm", .rotated = 0.25},
    {.name = "PhiForCausalLM", .arch_name = "phi2", .rotated = 0.5, .rules = no_biases},
    {.name = "CohereForCausalLM", .arch_name = "command-r", .rows_stay = true, .rules = parallel},
    {.name = "Cohere2ForCausalLM",
     .arch_name = "cohere2",
     .rows_stay = true,
     WINDOWS,
     .rules = parallel},
    {.name = "Cohere2MoeForCausalLM",
     .arch_name = "cohere2moe",
     .rows_stay = true,
     WINDOWS,
     .dense_width = "prefix_dense_intermediate_size|intermediate_size",
     .expert_width = "intermediate_size",
     .norms_chosen = true,
     .rules = parallel},
    {.name = "PhimoeForCausalLM", PHIMOE},
    {.name = "PhiMoEForCausalLM", PHIMOE},
    {.name = "Llama4ForConditionalGeneration", LLAMA4},
    {.name = "Llama4ForCausalLM", LLAMA4},
    {.name = "AfmoeForCausalLM",
     .arch_name = "afmoe",
     WINDOWS,
     .own = pre_mlp_roles,
     .norms_chosen = true,
     .rules = scaled_embedding},
    {.name = "Step3p5ForCausalLM", STEP35},
    {.name = "Step3p7ForConditionalGeneration", STEP35},
    {.name = "MiMoV2FlashForCausalLM",
     .arch_name = "mimo2",
     WINDOWS,
     .rotated = 1,
     .from_tensors = true,
     .rules = values},
    {.name = "LagunaForCausalLM",
     .arch_name = "laguna",
     WINDOWS,
     .rotated = 1,
     .norms_chosen = true,
     .from_tensors = true,
     .rules = gates},
    {.name = "Qwen3_5ForCausalLM", .arch_name = "qwen35", QWEN35},
    {.name = "Qwen3_5ForConditionalGeneration", .arch_name = "qwen35", QWEN35},
    {.name = "Qwen3_5MoeForCausalLM", .arch_name = "qwen35moe", QWEN35},
    {.name = "Qwen3_5MoeForConditionalGeneration", .arch_name = "qwen35moe", QWEN35},
    {.name = "Qwen3NextForCausalLM", .arch_name = "qwen3next", QWEN35},
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
        [FFN_SWIGLU] = "silu",        [FFN_SWIGLU_CUT] = "silu", [FFN_GEGLU] = "gelu_pytorch_tanh",
        [FFN_GELU] = "gelu_new",      [FFN_ERF] = "gelu",        [FFN_RELU] = "relu",
        [FFN_RELU_SQUARED] = "relu2", [FFN_XIELU] = "xielu"};
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
             family_names((char[700]){0}, 700));
    *out = *found;
    out->arch = arch_find(out->arch_name, strlen(out->arch_name));
    assert(out->arch);
    return check_quantised(out, f, err);
}

/* ---- Sizes ---- */

drey_status keys_int(const keys *k, const char *names, int64_t least, int64_t *out, bool *there,
                     drey_error *err)
{
    const json_value *list = config_find(k->folder, names);
    *there = list && list->type != JSON_NULL;
    if (!*there)
        return DREY_OK;
    if (list->type != JSON_ARRAY)
        return config_int(k->folder, names, least, INT32_MAX, out, there, err);
    const json_value *first = list->first;
    for (const json_value *v = first; v; v = v->next)
        if (v->type != JSON_NUMBER || !v->is_integer || v->integer < least ||
            v->integer > INT32_MAX || v->integer != first->integer)
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "%.*s of config.json is a list with other numbers than the first, which is not "
                 "converted",
                 (int)strcspn(names, "|"), names);
    *there = first != NULL;
    *out = first ? first->integer : 0;
    return DREY_OK;
}

drey_status keys_put_int(const keys *k, const char *names, const char *suffix, int64_t least,
                         bool needed, drey_error *err)
{
    int64_t value;
    bool there;
    TRY(keys_int(k, names, least, &value, &there, err));
    if (!there && needed)
        TRY(config_require(k->folder, names, least, INT32_MAX, &value, err));
    if (there)
        keys_u32(k, suffix, (uint32_t)value);
    return DREY_OK;
}

int64_t family_mtp_blocks(const family *a, const hub_folder *f)
{
    const double n = config_number(f, "num_nextn_predict_layers|mtp_num_hidden_layers");
    const double n_layers = config_number(f, "num_hidden_layers");
    char name[64];
    int32_t part;
    snprintf(name, sizeof name, "model.layers.%.0f.eh_proj.weight", n_layers);
    if (!(a->arch->keys & KEYS_NEXTN) || !(n >= 1 && n <= 64) ||
        (!folder_find(f, name, &part) && !folder_find(f, "mtp.fc.weight", &part)))
        return 0;
    return (int64_t)n;
}

/* The number that keeps a norm from dividing by 0, by the names that it has; whether it is that of
 * norms that take the mean off, the architecture says, or for Phi MoE the name. */
static drey_status put_epsilon(const keys *k, drey_error *err)
{
    static const char *const names[] = {
        "rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps",        "norm_epsilon",
        "norm_eps",     "layernorm_epsilon",  "layer_norm_rms_epsilon"};
    double eps = NAN;
    size_t i = 0;
    for (; i < sizeof names / sizeof *names && isnan(eps); i++)
        eps = config_number(k->folder, names[i]);
    if (isnan(eps))
        FAIL(err, DREY_ERR_FORMAT, "config.json has no %s",
             k->family->arch->layer_norm ? "layer_norm_epsilon" : "rms_norm_eps");
    if (!(eps > 0 && eps < 1))
        FAIL(err, DREY_ERR_FORMAT, "%s of config.json is %g, where less than 1 has to be",
             names[i - 1], eps);
    keys_f32(k,
             k->family->arch->layer_norm && i > 1 ? "attention.layer_norm_epsilon"
                                                  : "attention.layer_norm_rms_epsilon",
             eps);
    return DREY_OK;
}

static drey_status put_sizes(const keys *k, drey_error *err)
{
    bool gpt2 = k->family->naming == NAMING_GPT2, gemma = k->family->naming == NAMING_GEMMA;
    int64_t value;
    bool there;
    const int64_t n_mtp = family_mtp_blocks(k->family, k->folder);
    const char *width = k->family->dense_width ? k->family->dense_width : "intermediate_size";
    TRY(config_require(k->folder, "num_hidden_layers|n_layer", 1, 1024, &value, err));
    keys_u32(k, "block_count", (uint32_t)(value + n_mtp));
    if (n_mtp > 0)
        keys_u32(k, "nextn_predict_layers", (uint32_t)n_mtp);
    TRY(keys_put_int(k, gpt2 ? "n_ctx|n_positions" : "max_position_embeddings", "context_length", 1,
                     true, err));
    if (k->family->arch->rope == ROPE_NEIGHBOURS)
        TRY(keys_put_int(k, "vocab_size", "vocab_size", 1, false, err));
    TRY(keys_put_int(k, "hidden_size|n_embd", "embedding_length", 1, true, err));
    if (!k->family->from_tensors) {
        TRY(keys_put_int(k, "num_attention_heads|n_head", "attention.head_count", 1, true, err));
        TRY(keys_put_int(k, CONFIG_KEY_HEADS, "attention.head_count_kv", 1, false, err));
    }
    if (gpt2) {
        TRY(config_require(k->folder, "n_embd", 1, 1 << 20, &value, err));
        value *= 4;
        TRY(config_int(k->folder, "n_inner", 1, 1 << 22, &value, &there, err));
        keys_u32(k, "feed_forward_length", (uint32_t)value);
    } else if (!k->family->from_tensors) {
        TRY(keys_put_int(k, width, "feed_forward_length", 1,
                         !(k->family->arch->keys & KEYS_EXPERTS), err));
    }
    if (!(k->family->arch->keys & KEYS_SCALES)) { /* granite has no heads of another width */
        bool needed = gemma || k->family->naming == NAMING_GPT_OSS;
        TRY(keys_put_int(k, "head_dim", "attention.key_length", 1, needed, err));
        if (k->family->rules != values)
            TRY(keys_put_int(k, "head_dim", "attention.value_length", 1, needed, err));
    }
    return put_epsilon(k, err);
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

/* Older files have a period, or letters: L for a window. */
const char *keys_layer_type(const keys *k, int64_t i)
{
    static const char *const both[] = {"full_attention", "sliding_attention"};
    const json_value *types = config_find(k->folder, "layer_types|hybrid_layer_pattern");
    const json_value *pattern = config_find(k->folder, "sliding_window_pattern");
    const json_value *v = types && types->type == JSON_ARRAY ? types->first : NULL;
    for (int64_t at = 0; v && at < i; at++)
        v = v->next;
    if (v)
        return v->type == JSON_STRING ? v->text : both[v->type == JSON_NUMBER && v->integer != 0];
    if (pattern && pattern->type == JSON_STRING && pattern->n > 0)
        return both[pattern->text[(uint64_t)i % pattern->n] == 'L'];
    if (pattern && pattern->type == JSON_NUMBER && pattern->integer > 0)
        return both[(i + 1) % pattern->integer != 0];
    return NULL;
}

/* layer_types, where config.json has it, has to be what the architecture computes. */
static drey_status check_layer_types(const keys *k, bool window, drey_error *err)
{
    const json_value *types = config_find(k->folder, "layer_types");
    int32_t period = k->family->arch->local.period, i = 0;
    int64_t n_layers;
    for (const json_value *v = types ? types->first : NULL; v; v = v->next, i++) {
        bool local = period ? i % period < period - 1 : window;
        if (strcmp(v->text, local ? "sliding_attention" : "full_attention") != 0 &&
            !k->family->arch->layers)
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

/* The window, and the list of the layers that have it, where it is not that of the
 * architecture. */
static drey_status put_listed(const keys *k, drey_error *err)
{
    const arch *a = k->family->arch;
    int64_t window = 0, n_layers;
    bool local[MODEL_MAX_LAYERS], there, usual = a->local.period > 0, any = false, listed = true;
    TRY(config_require(k->folder, "num_hidden_layers", 1, MODEL_MAX_LAYERS, &n_layers, err));
    TRY(keys_int(k, "sliding_window|sliding_window_size", 0, &window, &there, err));
    for (int64_t i = 0; i < n_layers; i++) {
        const char *type = keys_layer_type(k, i);
        const int64_t period = a->local.period > 0 ? a->local.period : 1;
        listed &= type != NULL;
        local[i] = type && strcmp(type, "full_attention") != 0;
        if (local[i] &&
            strcmp(type, a->forms & FORM_CHUNKED ? "chunked_attention" : "sliding_attention") != 0)
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "layer %lld of the model is \"%.40s\", which drey does not compute for "
                 "architecture %s",
                 (long long)i, type, k->family->arch_name);
        any |= local[i];
        usual &= local[i] == (i % period != (a->local.first ? 0 : period - 1));
    }
    if (!listed && there && window > 0 && a->local.period > 0)
        any = usual = true;
    if (window > 0 && any)
        keys_u32(k, "attention.sliding_window", (uint32_t)window);
    else if (a->local.window > 0 && !(a->forms & FORM_CHUNKED))
        keys_u32(k, "attention.sliding_window", 0);
    if (any && !usual && (window > 0 || a->forms & FORM_CHUNKED))
        new_gguf_bools(k->file, keys_name(k, "attention.sliding_window_pattern", (char[96]){0}),
                       local, (uint64_t)n_layers);
    return DREY_OK;
}

/* Layers that do not rotate have to be those of the architecture. */
static drey_status check_rotated_layers(const keys *k, drey_error *err)
{
    const json_value *list = config_find(k->folder, "no_rope_layers");
    const arch *a = k->family->arch;
    const int32_t period = a->no_rope_period        ? a->no_rope_period
                           : a->local.rotated_alone ? a->local.period
                                                    : 0;
    int32_t i = 0;
    for (const json_value *v = list && list->type == JSON_ARRAY ? list->first : NULL; v;
         v = v->next, i++)
        if (v->type != JSON_NUMBER || (v->integer != 0) != !(period && (i + 1) % period == 0))
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "no_rope_layers of config.json has other layers than those that drey does not "
                 "rotate in architecture %s (layer %d)",
                 a->name, i);
    return DREY_OK;
}

static drey_status put_window(const keys *k, drey_error *err)
{
    int64_t window = 0, n_context, pattern = 0;
    bool there;
    TRY(check_rotated_layers(k, err));
    if (k->family->window == WINDOW_LISTED)
        return put_listed(k, err);
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

/* ---- Rules ---- */

/* A number of each layer; blocks after the layers may have some as well. */
static drey_status put_numbers(const keys *k, const family_rule *r, const json_value *list,
                               drey_error *err)
{
    float numbers[MODEL_MAX_LAYERS];
    uint64_t n = 0;
    int64_t n_layers;
    TRY(config_require(k->folder, "num_hidden_layers", 1, MODEL_MAX_LAYERS, &n_layers, err));
    if (list->type == JSON_NULL)
        return DREY_OK;
    const json_value *v = list->type == JSON_ARRAY ? list->first : NULL;
    for (; v && n < (uint64_t)n_layers; v = v->next)
        if (v->type == JSON_NUMBER || v->type == JSON_NULL)
            numbers[n++] = v->type == JSON_NULL ? 0 : (float)v->number;
        else
            break;
    if (n != (uint64_t)n_layers)
        FAIL(err, DREY_ERR_FORMAT, "%.*s of config.json is no list of %lld numbers",
             (int)strcspn(r->from, "|"), r->from, (long long)n_layers);
    new_gguf_f32s(k->file, keys_name(k, r->to, (char[96]){0}), numbers, n);
    return DREY_OK;
}

static drey_status check_rule(const family_rule *r, const json_value *v, const char *arch_name,
                              drey_error *err)
{
    const double number = v->type == JSON_TRUE ? 1 : v->type == JSON_FALSE ? 0 : v->number;
    const bool same = r->kind == RULE_SAYS ? v->type == JSON_STRING && strcmp(v->text, r->to) == 0
                                           : v->type != JSON_STRING && number == r->number;
    if (!same && v->type != JSON_NULL)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "config.json has %s, which drey does not compute in this form for architecture %s",
             r->from, arch_name);
    return DREY_OK;
}

static drey_status put_rules(const keys *k, drey_error *err)
{
    for (const family_rule *r = k->family->rules; r && r->from; r++) {
        const json_value *v = config_find(k->folder, r->from);
        if (!v || v->type == JSON_NULL)
            continue;
        if (r->kind == RULE_IS || r->kind == RULE_SAYS)
            TRY(check_rule(r, v, k->family->arch_name, err));
        else if (r->kind == RULE_NUMBERS)
            TRY(put_numbers(k, r, v, err));
        else if (v->type != JSON_NUMBER)
            FAIL(err, DREY_ERR_FORMAT, "%.*s of config.json is no number",
                 (int)strcspn(r->from, "|"), r->from);
        else if (r->kind == RULE_COUNT)
            TRY(keys_put_int(k, r->from, r->to, 0, true, err));
        else
            keys_f32(k, r->to, v->number);
    }
    return DREY_OK;
}

/* Delta nets: their width, and the layers that attend. */
static drey_status put_delta(const keys *k, drey_error *err)
{
    int64_t n_heads, dim, n_layers, period = 0;
    bool recurrent[MODEL_MAX_LAYERS], usual = true;
    if (!(k->family->arch->keys & KEYS_DELTA))
        return DREY_OK;
    TRY(config_require(k->folder, "linear_num_value_heads", 1, 1024, &n_heads, err));
    TRY(config_require(k->folder, "linear_value_head_dim", 1, 1 << 16, &dim, err));
    TRY(config_require(k->folder, "num_hidden_layers", 1, MODEL_MAX_LAYERS, &n_layers, err));
    keys_u32(k, "ssm.inner_size", (uint32_t)(n_heads * dim));
    if (!config_find(k->folder, "layer_types"))
        return keys_put_int(k, "full_attention_interval", "full_attention_interval", 1, false, err);
    for (int64_t i = n_layers - 1; i >= 0; i--) {
        recurrent[i] =
            strcmp(keys_layer_type(k, i) ? keys_layer_type(k, i) : "", "linear_attention") == 0;
        period = recurrent[i] ? period : i + 1;
    }
    for (int64_t i = 0; i < n_layers; i++)
        usual &= period > 0 && recurrent[i] == ((i + 1) % period != 0);
    if (usual)
        keys_u32(k, "full_attention_interval", (uint32_t)period);
    else
        new_gguf_bools(k->file, keys_name(k, "attention.recurrent_layers", (char[96]){0}),
                       recurrent, (uint64_t)n_layers);
    return DREY_OK;
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
    TRY(expert_keys(&k, err));
    TRY(activation_keys(&k, err));
    TRY(put_rules(&k, err));
    TRY(put_delta(&k, err));
    if (a->arch->keys & KEYS_SCALES)
        TRY(put_scales(&k, err));
    return a->naming == NAMING_GPT2 ? DREY_OK : rope_keys(&k, factors, err);
}
