/* The table of architectures: see arch.h. */
#include "model/arch.h"

#include <stdio.h>
#include <string.h>

/* llama's and granite's converters permute the rows of Q and K so that neighbours are rotated.
 * "mistral" files say llama. */
static const arch archs[] = {
    {.name = "llama", .keys = KEYS_WINDOW | KEYS_EXPERTS, .weights_normed = true},
    {.name = "qwen2", .rope = ROPE_HALVES},
    {.name = "qwen3", .rope = ROPE_HALVES, .head_norms = true},
    {.name = "granite", .keys = KEYS_SCALES},
    {.name = "granitemoe", .keys = KEYS_SCALES | KEYS_EXPERTS, .weights_normed = true},
    {.name = "qwen2moe", .rope = ROPE_HALVES, .keys = KEYS_EXPERTS},
    {.name = "qwen3moe",
     .rope = ROPE_HALVES,
     .keys = KEYS_EXPERTS,
     .head_norms = true,
     .weights_normed = true},
    {.name = "gpt-oss",
     .rope = ROPE_HALVES,
     .ffn = FFN_SWIGLU_CUT,
     .keys = KEYS_WINDOW | KEYS_EXPERTS,
     .sinks = true,
     .expert_biases = true,
     .post_is_ffn_norm = true,
     .window_period = 2,
     .gate = ROUTER_SOFTMAX_CHOSEN,
     .yarn_exact = true},
    {.name = "olmoe", .rope = ROPE_HALVES, .keys = KEYS_EXPERTS, .wide_norms = true},
    {.name = "gemma2",
     .rope = ROPE_HALVES,
     .ffn = FFN_GEGLU,
     .keys = KEYS_WINDOW | KEYS_CAPS,
     .post_norms = true,
     .sqrt_embedding = true,
     .window = 4096,
     .window_period = 2,
     .cap = {.attention = 50, .logit = 30},
     .wide_layers = 46},
    {.name = "gemma3",
     .rope = ROPE_HALVES,
     .ffn = FFN_GEGLU,
     .keys = KEYS_WINDOW | KEYS_CAPS,
     .head_norms = true,
     .post_norms = true,
     .sqrt_embedding = true,
     .window_period = 6,
     .local_base = 10000,
     .wide_layers = 62},
    {.name = "phi3",
     .rope = ROPE_HALVES,
     .keys = KEYS_WINDOW,
     .gate_in_up = true,
     .longrope = true},
    {.name = "lfm2",
     .rope = ROPE_HALVES,
     .keys = KEYS_WINDOW | KEYS_SHORT_CONV,
     .head_norms = true,
     .embd_norm_is_last = true,
     .layers = &short_conv_layers},
    {.name = "lfm2moe",
     .rope = ROPE_HALVES,
     .keys = KEYS_EXPERTS | KEYS_SHORT_CONV,
     .head_norms = true,
     .embd_norm_is_last = true,
     .gate = ROUTER_SIGMOID,
     .weights_normed = true,
     .layers = &short_conv_layers},
    {.name = "gpt2", .rope = ROPE_NONE, .ffn = FFN_GELU, .layer_norm = true},
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

const char *arch_names(char *out, size_t capacity)
{
    size_t at = 0;
    for (size_t i = 0; i < sizeof archs / sizeof *archs && at < capacity; i++)
        at += (size_t)snprintf(out + at, capacity - at, "%s%s", i ? ", " : "", archs[i].name);
    return out;
}

const char *arch_key(const arch *a, const char *suffix, char out[96])
{
    snprintf(out, 96, "%s.%s", a->name, suffix);
    return out;
}
