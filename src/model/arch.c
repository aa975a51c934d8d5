/* The table of architectures: see arch.h. */
#include "model/arch.h"

#include <stdio.h>
#include <string.h>

/* llama's and granite's converters permute the rows of Q and K so that neighbours are rotated.
 * "mistral" files say llama. */
static const arch archs[] = {
    {.name = "llama", .keys = KEYS_WINDOW | KEYS_EXPERTS, .experts.weights_normed = true},
    {.name = "qwen2", .rope = ROPE_HALVES},
    {.name = "qwen3", .rope = ROPE_HALVES, .head_norms = true},
    {.name = "granite", .keys = KEYS_SCALES},
    {.name = "granitemoe", .keys = KEYS_SCALES | KEYS_EXPERTS, .experts.weights_normed = true},
    {.name = "qwen2moe", .rope = ROPE_HALVES, .keys = KEYS_EXPERTS},
    {.name = "qwen3moe",
     .rope = ROPE_HALVES,
     .keys = KEYS_EXPERTS,
     .head_norms = true,
     .experts.weights_normed = true},
    {.name = "gpt-oss",
     .rope = ROPE_HALVES,
     .ffn = FFN_SWIGLU_CUT,
     .keys = KEYS_WINDOW | KEYS_EXPERTS,
     .sinks = true,
     .post_is_ffn_norm = true,
     .local.period = 2,
     .experts = {.gate = ROUTER_SOFTMAX_CHOSEN, .biases = true},
     .yarn_exact = true},
    {.name = "olmoe", .rope = ROPE_HALVES, .keys = KEYS_EXPERTS, .wide_norms = true},
    {.name = "gemma2",
     .rope = ROPE_HALVES,
     .ffn = FFN_GEGLU,
     .keys = KEYS_WINDOW | KEYS_CAPS,
     .post_norms = true,
     .sqrt_embedding = true,
     .local = {.window = 4096, .period = 2},
     .cap = {.attention = 50, .logit = 30},
     .wide_layers = 46},
    {.name = "gemma3",
     .rope = ROPE_HALVES,
     .ffn = FFN_GEGLU,
     .keys = KEYS_WINDOW | KEYS_CAPS,
     .head_norms = true,
     .post_norms = true,
     .sqrt_embedding = true,
     .local = {.period = 6, .unscaled = true, .base = 10000},
     .wide_layers = 62},
    {.name = "phi3",
     .rope = ROPE_HALVES,
     .keys = KEYS_WINDOW,
     .gate_in_up = true,
     .longrope = true},
    {.name = "gpt2", .rope = ROPE_NONE, .ffn = FFN_GELU, .layer_norm = true},
    {.name = "qwen2vl", .rope = ROPE_HALVES, .keys = KEYS_IMAGES},
    {.name = "qwen3vl", .rope = ROPE_HALVES, .keys = KEYS_IMAGES, .head_norms = true},
    {.name = "qwen3vlmoe",
     .rope = ROPE_HALVES,
     .keys = KEYS_IMAGES | KEYS_EXPERTS,
     .head_norms = true,
     .experts.weights_normed = true},
    {.name = "mistral3",
     .keys = KEYS_EXPERTS | KEYS_YARN_LOG | KEYS_TEMPERATURE,
     .experts.weights_normed = true},
    {.name = "internlm2"},
    {.name = "smollm3", .no_rope_period = 4},
    {.name = "seed_oss", .rope = ROPE_HALVES, .post_is_ffn_norm = true},
    {.name = "ernie4_5", .keys = KEYS_IMAGES},
    {.name = "ernie4_5-moe", .keys = KEYS_EXPERTS, .experts.weights_normed = true},
    {.name = "glm4moe",
     .rope = ROPE_HALVES,
     .keys = KEYS_EXPERTS | KEYS_NEXTN | KEYS_IMAGES,
     .forms = FORM_OPTIONAL_NORMS,
     .head_norms = true,
     .post_is_ffn_norm = true,
     .experts.gate = ROUTER_SIGMOID},
    {.name = "hy_v3",
     .rope = ROPE_HALVES,
     .keys = KEYS_EXPERTS | KEYS_NEXTN,
     .head_norms = true,
     .experts = {.gate = ROUTER_SIGMOID, .by_router = true}},
    {.name = "minimax-m2",
     .rope = ROPE_HALVES,
     .keys = KEYS_EXPERTS,
     .wide_norms = true,
     .experts = {.gate = ROUTER_SIGMOID, .weights_normed = true}},
    {.name = "dots1",
     .rope = ROPE_HALVES,
     .keys = KEYS_EXPERTS,
     .head_norms = true,
     .experts.gate = ROUTER_SIGMOID},
    {.name = "exaone-moe",
     .rope = ROPE_HALVES,
     .keys = KEYS_WINDOW | KEYS_EXPERTS | KEYS_NEXTN,
     .head_norms = true,
     .local = {.window = 128, .period = 4, .rotated_alone = true},
     .experts.gate = ROUTER_SIGMOID},
    {.name = "hunyuan-dense", .rope = ROPE_HALVES, .forms = FORM_ROTATED_NORMS, .head_norms = true},
    {.name = "hunyuan-moe",
     .rope = ROPE_HALVES,
     .keys = KEYS_EXPERTS,
     .forms = FORM_ROTATED_NORMS,
     .head_norms = true,
     .experts.weights_normed = true},
    {.name = "bailingmoe2",
     .rope = ROPE_HALVES,
     .keys = KEYS_EXPERTS | KEYS_NEXTN,
     .head_norms = true,
     .experts.gate = ROUTER_SIGMOID},
    {.name = "glm4", .post_norms = true, .gate_in_up = true},
    {.name = "olmo2",
     .rope = ROPE_HALVES,
     .forms = FORM_NORMS_AFTER,
     .wide_norms = true,
     .post_norms = true},
    {.name = "exaone4",
     .rope = ROPE_HALVES,
     .forms = FORM_NORMS_AFTER,
     .head_norms = true,
     .post_norms = true},
    {.name = "arcee", .ffn = FFN_RELU_SQUARED},
    {.name = "apertus", .rope = ROPE_HALVES, .ffn = FFN_XIELU, .head_norms = true},
    {.name = "starcoder2", .rope = ROPE_HALVES, .ffn = FFN_GELU, .layer_norm = true},
    {.name = "nemotron", .rope = ROPE_HALVES, .ffn = FFN_RELU_SQUARED, .layer_norm = true},
    {.name = "stablelm",
     .rope = ROPE_HALVES,
     .forms = FORM_PARALLEL | FORM_OWN_NORMS,
     .layer_norm = true},
    {.name = "phi2",
     .rope = ROPE_HALVES,
     .ffn = FFN_GELU,
     .forms = FORM_PARALLEL | FORM_HEAD_BIAS,
     .layer_norm = true},
    {.name = "command-r",
     .keys = KEYS_LOGIT_SCALE,
     .forms = FORM_PARALLEL | FORM_NORMS_UNBIASED | FORM_OWN_NORMS,
     .layer_norm = true},
    {.name = "eagle3", .keys = KEYS_TAPS},
    {.name = "t5",
     .rope = ROPE_BUCKETS,
     .ffn = FFN_RELU,
     .keys = KEYS_ENCODER | KEYS_BUCKETS,
     .encoder = true},
    {.name = "bart",
     .rope = ROPE_NONE,
     .ffn = FFN_ERF,
     .keys = KEYS_ENCODER | KEYS_SCALES,
     .encoder = true,
     .layer_norm = true,
     .norms_sums = true},
};

const arch *arch_of_test;

static bool has_name(const arch *a, const char *name, size_t n_bytes)
{
    return strlen(a->name) == n_bytes && memcmp(a->name, name, n_bytes) == 0;
}

const arch *arch_find(const char *name, size_t n_bytes)
{
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (has_name(&archs[i], name, n_bytes))
            return &archs[i];
    return arch_of_test && has_name(arch_of_test, name, n_bytes) ? arch_of_test : NULL;
}

const char *arch_name(size_t i)
{
    return i < sizeof archs / sizeof *archs ? archs[i].name : NULL;
}

const char *arch_key(const arch *a, const char *suffix, char out[96])
{
    snprintf(out, 96, "%s.%s", a->name, suffix);
    return out;
}
