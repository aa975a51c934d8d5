/* Toys with golden logits: see logit_toys.h. */
#include "support/logit_toys.h"

#include <string.h>

static void mixed(toy_options *o) /* every type; grouped heads; an output matrix */
{
    o->n_embd = 256;
    o->n_ff = 512;
    o->type = TOY_TYPE_MIXED;
}

/* Keys of RoPE scaling in the ways that files have them. */
static const char *rope_toy(int i, toy_options *o)
{
    static const toy_key factor[] = {{"rope.scaling.factor", GGUF_F32, 2.5, NULL}, {0}};
    static const toy_key old_factor[] = {{"rope.scale_linear", GGUF_F32, 3, NULL}, {0}};
    static const toy_key none[] = {{"rope.scaling.type", GGUF_STRING, 0, "none"},
                                   {"rope.scaling.factor", GGUF_F32, 4, NULL},
                                   {"rope.scaling.attn_factor", GGUF_F32, 1.1, NULL},
                                   {0}};
    static const toy_key betas[] = {{"rope.scaling.yarn_beta_fast", GGUF_F32, 1.5, NULL},
                                    {"rope.scaling.yarn_beta_slow", GGUF_F32, 0.25, NULL},
                                    {"rope.scaling.attn_factor", GGUF_F32, 0.9, NULL},
                                    {0}};
    static const toy_key half[] = {{"rope.scaling.yarn_ext_factor", GGUF_F32, 0.5, NULL},
                                   {"rope.scaling.yarn_attn_factor", GGUF_F32, 1.5, NULL},
                                   {0}};
    static const toy_key without[] = {{"rope.scaling.yarn_ext_factor", GGUF_F32, 0, NULL},
                                      {"rope.scaling.yarn_attn_factor", GGUF_F32, 1.25, NULL},
                                      {0}};
    static const struct {
        const char *name, *scaling;
        const toy_key *keys;
    } toys[] = {
        {"toy-rope-factor", NULL, factor},     /* a factor without a type */
        {"toy-rope-old", NULL, old_factor},    /* its old key */
        {"toy-rope-none", NULL, none},         /* a factor that does not count */
        {"toy-rope-betas", "yarn", betas},     /* another range of the blend */
        {"toy-rope-half", "linear", half},     /* half of YaRN's blend, by its number alone */
        {"toy-rope-without", "yarn", without}, /* none of it, with its own magnitude */
        {"toy-rope-context", "yarn", NULL},    /* the original context is the file's */
    };
    o->type = TYPE_F32;
    o->rope_scaling = toys[i].scaling;
    o->keys = toys[i].keys;
    o->rope_factor = 4;
    o->rope_original_context = 48;
    if (i == 6) {
        o->rope_original_context = 0;
        o->n_context = 40;
        o->architecture = "qwen2";
    }
    return toys[i].name;
}

static void with_encoder(int i, toy_options *o)
{
    bool bart = i >= FIRST_BART_TOY;
    o->pre = bart ? "gpt-2" : "t5";
    o->chat_template = NULL;
    o->gated = !bart && i != FIRST_T5_TOY + 1;
    o->tied = i == FIRST_T5_TOY + 1 || i == FIRST_BART_TOY;
    o->n_decoder_layers = i == FIRST_T5_TOY + 2 || i == FIRST_BART_TOY + 1 ? 4 : 0;
}

const char *arch_toy(int i, toy_options *o)
{
    static const toy_key scales[] = {{"attention.scale", GGUF_F32, 0.2, NULL},
                                     {"embedding_scale", GGUF_F32, 3, NULL},
                                     {"residual_scale", GGUF_F32, 0.5, NULL},
                                     {"logit_scale", GGUF_F32, 1.5, NULL},
                                     {0}};
    static const toy_key window[] = {{"attention.sliding_window", GGUF_U32, 37, NULL}, {0}};
    static const toy_key pattern[] = {{"attention.sliding_window", GGUF_U32, 70, NULL},
                                      {"attention.sliding_window_pattern", GGUF_U32, 2, NULL},
                                      {0}};
    static const toy_key gemma2[] = {{"attention.sliding_window", GGUF_U32, 45, NULL},
                                     {"attn_logit_softcapping", GGUF_F32, 4, NULL},
                                     {"final_logit_softcapping", GGUF_F32, 9, NULL},
                                     {0}};
    static const toy_key gemma3[] = {{"attention.sliding_window", GGUF_U32, 20, NULL},
                                     {"rope.scaling.type", GGUF_STRING, 0, "linear"},
                                     {"rope.scaling.factor", GGUF_F32, 8, NULL},
                                     {0}};
    static const toy_key local[] = {{"attention.sliding_window", GGUF_U32, 70, NULL},
                                    {"attention.sliding_window_pattern", GGUF_U32, 2, NULL},
                                    {"rope.freq_base_swa", GGUF_F32, 500, NULL},
                                    {"final_logit_softcapping", GGUF_F32, 20, NULL},
                                    {0}};
    static const toy_key phi3[] = {{"attention.sliding_window", GGUF_U32, 100, NULL}, {0}};
    static const toy_key longrope[] = {
        {"rope.scaling.original_context_length", GGUF_U32, 1024, NULL},
        {"rope.scaling.attn_factor", GGUF_F32, 1.19, NULL},
        {0}};
    static const toy_key forced[] = {{"forced_bos_token_id", GGUF_U32, 7, NULL}, {0}};
    static const toy_key scaled[] = {{"embedding_scale", GGUF_F32, 8, NULL}, {0}};
    static const struct {
        const char *name, *architecture;
        const toy_key *keys;
        int32_t head_dim, v_dim, n_layers, seed;
    } toys[] = {
        {"toy-qwen3", "qwen3", NULL, 32, 0, 3, 114}, /* heads wider than width / heads */
        {"toy-granite", "granite", scales, 0, 0, 3, 115},
        {"toy-mistral", "llama", window, 0, 0, 3, 116},
        {"toy-pattern", "llama", pattern, 0, 0, 3, 117},
        {"toy-gemma2", "gemma2", gemma2, 0, 0, 3, 118},
        {"toy-gemma3", "gemma3", gemma3, 32, 0, 7, 119}, /* the sixth layer sees all */
        {"toy-gemma3-local", "gemma3", local, 0, 0, 3, 120},
        {"toy-phi3", "phi3", phi3, 0, 0, 3, 121},
        {"toy-phi3-long", "phi3", longrope, 0, 0, 3, 122}, /* a part of each head is rotated */
        {"toy-gpt2", "gpt2", NULL, 0, 0, 3, 123},
        {"toy-narrow", "qwen3", NULL, 32, 16, 3, 129}, /* values narrower than keys */
        {"toy-wide", "phi3", NULL, 16, 48, 3, 130},    /* and wider */
        {"toy-t5", "t5", NULL, 0, 0, 3, 124},          /* gates; as many layers in the decoder */
        {"toy-t5-tied", "t5", NULL, 24, 0, 3, 125},    /* the first kind; heads narrower in all */
        {"toy-t5-deeper", "t5", NULL, 0, 0, 2, 126},   /* a decoder of more layers */
        {"toy-bart", "bart", forced, 0, 0, 3, 127},    /* tied, with a second token that is given */
        {"toy-bart-deeper", "bart", scaled, 0, 0, 2, 128}, /* embeddings are scaled */
    };
    *o = toy_default();
    o->seed = (uint64_t)toys[i].seed;
    o->type = toys[i].seed % 2 ? TYPE_F32 : TYPE_F16;
    o->architecture = toys[i].architecture;
    o->keys = toys[i].keys;
    o->head_dim = toys[i].head_dim;
    o->v_dim = toys[i].v_dim;
    o->n_layers = toys[i].n_layers;
    o->tied = strcmp(toys[i].architecture, "gemma2") == 0;
    o->longrope = toys[i].keys == longrope;
    o->n_rot = o->longrope ? 12 : 0;
    if (strcmp(toys[i].architecture, "gpt2") == 0)
        o->n_heads_kv = o->n_heads;
    if (i >= FIRST_T5_TOY)
        with_encoder(i, o);
    return toys[i].name;
}

const char *logit_toy(int i, toy_options *o)
{
    const int first_number = N_LOGIT_TOYS - N_NUMBER_TOYS,
              first_family = first_number - N_FAMILY_TOYS;
    const int first_expert = first_family - N_EXPERT_TOYS, first_arch = first_expert - N_ARCH_TOYS;
    if (i >= first_number)
        return number_toy(i - first_number, o);
    if (i >= first_family)
        return family_toy(i - first_family, o);
    if (i >= first_expert)
        return expert_toy(i - first_expert, o);
    if (i >= first_arch)
        return arch_toy(i - first_arch, o);
    *o = toy_default();
    o->seed = 100 + (uint64_t)i;
    switch (i) {
    case 0:
        mixed(o);
        return "toy-llama";
    case 1:
        mixed(o);
        o->architecture = "qwen2";
        o->tied = true;
        return "toy-qwen2";
    case 2: /* heads wider than width / heads, as Llama 3.2's rope_freqs */
        o->head_dim = 32;
        o->rope_freqs = true;
        o->type = TYPE_F16;
        return "toy-freqs";
    case 3:
        o->rope_scaling = "yarn";
        o->rope_factor = 4;
        o->rope_original_context = 32;
        o->type = TYPE_BF16;
        return "toy-yarn";
    case 4:
        o->architecture = "qwen2";
        o->rope_scaling = "linear";
        o->rope_factor = 3;
        o->rope_original_context = 64;
        o->type = TYPE_F32;
        return "toy-linear";
    case 5:
        o->biases = true;
        o->type = TYPE_F16;
        return "toy-biases";
    case 6:
        o->architecture = "qwen2";
        o->biases = true;
        o->tied = true;
        o->type = TYPE_F32;
        return "toy-qwen2-biases";
    default:
        return rope_toy(i - 7, o);
    }
}
