/* Toys of families: see family_toys.h. */
#include "support/toys/family_toys.h"

static const toy_key logit_scale[] = {{"logit_scale", GGUF_F32, 0.3, NULL}, {0}};

/* Files have what softplus makes the factors of. */
static const toy_key xielu[] = {{"/xielu.alpha_p", GGUF_ARRAY, 0, "f32 0.4 -0.3 1.1"},
                                {"/xielu.alpha_n", GGUF_ARRAY, 0, "f32 -0.6 0.9 0.2"},
                                {"/xielu.beta", GGUF_ARRAY, 0, "f32 0.5 0.4 0.6"},
                                {"/xielu.eps", GGUF_ARRAY, 0, "f32 -1e-6 -1e-6 -1e-6"},
                                {0}};

static const toy_key windows[] = {
    {"attention.sliding_window", GGUF_U32, 24, NULL},
    {"attention.sliding_window_pattern", GGUF_ARRAY, 0, "bool 1 1 1 0"},
    {0}};
static const toy_key olmo3[] = {{"attention.sliding_window", GGUF_U32, 24, NULL},
                                {"attention.sliding_window_pattern", GGUF_ARRAY, 0, "bool 1 1 1 0"},
                                {"rope.scaling.type", GGUF_STRING, 0, "yarn"},
                                {"rope.scaling.factor", GGUF_F32, 8, NULL},
                                {"rope.scaling.original_context_length", GGUF_U32, 64, NULL},
                                {0}};
static const toy_key cohere2[] = {
    {"attention.sliding_window", GGUF_U32, 24, NULL}, {"logit_scale", GGUF_F32, 0.3, NULL}, {0}};
static const toy_key cohere2moe[] = {
    {"attention.sliding_window", GGUF_U32, 24, NULL},
    {"attention.sliding_window_pattern", GGUF_ARRAY, 0, "bool 0 1 1 1 0"},
    {"logit_scale", GGUF_F32, 0.3, NULL},
    {"expert_weights_norm", GGUF_BOOL, 1, NULL},
    {0}};
/* Chunks, and lengths of the temperature, of which a text has several. */
static const toy_key llama4[] = {{"attention.sliding_window", GGUF_U32, 48, NULL},
                                 {"attention.temperature_length", GGUF_U32, 20, NULL},
                                 {0}};
static const toy_key afmoe[] = {{"attention.sliding_window", GGUF_U32, 24, NULL},
                                {"expert_weights_norm", GGUF_BOOL, 1, NULL},
                                {"expert_weights_scale", GGUF_F32, 1.8, NULL},
                                {0}};
static const toy_key step35[] = {
    {"attention.sliding_window", GGUF_U32, 24, NULL},
    {"attention.sliding_window_pattern", GGUF_ARRAY, 0, "bool 0 1 0 1"},
    {"rope.freq_base_swa", GGUF_F32, 10000, NULL},
    {"expert_weights_norm", GGUF_BOOL, 1, NULL},
    {"expert_weights_scale", GGUF_F32, 1.5, NULL},
    {"swiglu_clamp_exp", GGUF_ARRAY, 0, "f32 0 0.5 0 0.25"},
    {"swiglu_clamp_shexp", GGUF_ARRAY, 0, "f32 0.75 0 0.5 0.25"},
    {0}};
static const toy_key mimo2[] = {{"attention.sliding_window", GGUF_U32, 24, NULL},
                                {"attention.sliding_window_pattern", GGUF_ARRAY, 0, "u32 1 1 1 0"},
                                {"rope.freq_base_swa", GGUF_F32, 10000, NULL},
                                {"attention.value_scale", GGUF_F32, 0.7, NULL},
                                {"expert_weights_norm", GGUF_BOOL, 1, NULL},
                                {0}};
static const toy_key laguna[] = {{"attention.sliding_window", GGUF_U32, 24, NULL},
                                 {"rope.freq_base_swa", GGUF_F32, 10000, NULL},
                                 {"rope.dimension_count_swa", GGUF_U32, 16, NULL},
                                 {"rope.scaling.type", GGUF_STRING, 0, "yarn"},
                                 {"rope.scaling.factor", GGUF_F32, 4, NULL},
                                 {"rope.scaling.original_context_length", GGUF_U32, 64, NULL},
                                 {"expert_weights_norm", GGUF_BOOL, 1, NULL},
                                 {"expert_weights_scale", GGUF_F32, 1.5, NULL},
                                 {0}};
static const toy_key scaled[] = {{"expert_weights_norm", GGUF_BOOL, 1, NULL},
                                 {"expert_weights_scale", GGUF_F32, 1.5, NULL},
                                 {0}};

#define LAYER_NORMS (TOY_LAYER_NORMS | TOY_NORM_BIASES)

static const family_row rows[] = {
    {.name = "toy-glm4",
     .architecture = "glm4",
     .form = TOY_POST_NORMS | TOY_GATE_IN_UP | TOY_QKV_BIASES,
     .seed = 400,
     .type = TYPE_F16,
     .head_dim = 32,
     .n_rot = 16},
    {.name = "toy-olmo2",
     .architecture = "olmo2",
     .form = TOY_NORMS_AFTER | TOY_POST_NORMS | TOY_WIDE_NORMS,
     .seed = 401,
     .type = TYPE_F32},
    {.name = "toy-exaone4",
     .architecture = "exaone4",
     .form = TOY_NORMS_AFTER | TOY_POST_NORMS | TOY_HEAD_NORMS,
     .seed = 402,
     .type = TYPE_F16},
    {.name = "toy-arcee",
     .architecture = "arcee",
     .form = TOY_NO_GATE,
     .seed = 403,
     .type = TYPE_F32},
    {.name = "toy-apertus",
     .architecture = "apertus",
     .form = TOY_NO_GATE | TOY_HEAD_NORMS,
     .keys = xielu,
     .seed = 404,
     .type = TYPE_F16},
    {.name = "toy-starcoder2",
     .architecture = "starcoder2",
     .form = LAYER_NORMS | TOY_NO_GATE | TOY_QKV_BIASES | TOY_O_BIAS | TOY_FFN_BIASES,
     .seed = 405,
     .type = TYPE_F32},
    {.name = "toy-nemotron",
     .architecture = "nemotron",
     .form = LAYER_NORMS | TOY_NO_GATE,
     .seed = 406,
     .type = TYPE_F16,
     .n_rot = 8},
    {.name = "toy-stablelm",
     .architecture = "stablelm",
     .form = LAYER_NORMS | TOY_QKV_BIASES,
     .seed = 407,
     .type = TYPE_F32,
     .n_rot = 4},
    {.name = "toy-stablelm-parallel",
     .architecture = "stablelm",
     .form = LAYER_NORMS | TOY_PARALLEL | TOY_OWN_NORMS,
     .seed = 408,
     .type = TYPE_F16,
     .n_rot = 4},
    {.name = "toy-phi2",
     .architecture = "phi2",
     .form = LAYER_NORMS | TOY_PARALLEL | TOY_NO_GATE | TOY_QKV_BIASES | TOY_O_BIAS |
             TOY_FFN_BIASES | TOY_HEAD_BIAS,
     .seed = 409,
     .type = TYPE_F32,
     .n_heads_kv = 4,
     .n_rot = 8},
    {.name = "toy-command-r",
     .architecture = "command-r",
     .form = TOY_LAYER_NORMS | TOY_PARALLEL,
     .keys = logit_scale,
     .seed = 410,
     .type = TYPE_F16,
     .tied = true},
    {.name = "toy-command-r-plus",
     .architecture = "command-r",
     .form = TOY_LAYER_NORMS | TOY_PARALLEL | TOY_OWN_NORMS,
     .keys = logit_scale,
     .seed = 411,
     .type = TYPE_F32,
     .tied = true},
    {.name = "toy-olmo3",
     .architecture = "olmo2",
     .form = TOY_NORMS_AFTER | TOY_POST_NORMS | TOY_WIDE_NORMS,
     .keys = olmo3,
     .seed = 412,
     .type = TYPE_F16,
     .n_layers = 4},
    {.name = "toy-exaone4-windows",
     .architecture = "exaone4",
     .form = TOY_NORMS_AFTER | TOY_POST_NORMS | TOY_HEAD_NORMS,
     .keys = windows,
     .seed = 413,
     .type = TYPE_F32,
     .n_layers = 4},
    {.name = "toy-cohere2",
     .architecture = "cohere2",
     .form = TOY_LAYER_NORMS | TOY_PARALLEL,
     .keys = cohere2,
     .seed = 414,
     .type = TYPE_F16,
     .n_layers = 4,
     .tied = true},
    {.name = "toy-cohere2moe",
     .architecture = "cohere2moe",
     .form = TOY_LAYER_NORMS | TOY_PARALLEL,
     .keys = cohere2moe,
     .seed = 416,
     .type = TYPE_F32,
     .n_layers = 5,
     .tied = true,
     .experts = {.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 128, .n_dense = 1}},
    {.name = "toy-phimoe",
     .architecture = "phimoe",
     .form = LAYER_NORMS | TOY_QKV_BIASES | TOY_O_BIAS | TOY_HEAD_BIAS,
     .seed = 417,
     .type = TYPE_F32,
     .experts = {.n = 8, .n_used = 2}},
    {.name = "toy-llama4",
     .architecture = "llama4",
     .keys = llama4,
     .seed = 419,
     .type = TYPE_F32,
     .n_layers = 4,
     .experts = {.n = 4, .n_used = 1, .n_ff = 64, .n_shared = 64, .step = 2}},
    {.name = "toy-afmoe",
     .architecture = "afmoe",
     .form = TOY_POST_NORMS | TOY_HEAD_NORMS | TOY_GATED,
     .keys = afmoe,
     .seed = 420,
     .type = TYPE_F16,
     .n_layers = 4,
     .experts =
         {.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 64, .n_dense = 2, .choice_bias = true}},
    {.name = "toy-step35",
     .architecture = "step35",
     .form = TOY_HEAD_NORMS | TOY_GATED_HEADS,
     .keys = step35,
     .seed = 421,
     .type = TYPE_F32,
     .n_layers = 4,
     .uneven = true,
     .experts =
         {.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 64, .n_dense = 1, .choice_bias = true}},
    {.name = "toy-mimo2",
     .architecture = "mimo2",
     .form = TOY_WINDOW_SINKS,
     .keys = mimo2,
     .seed = 422,
     .type = TYPE_F16,
     .n_layers = 4,
     .head_dim = 32,
     .v_dim = 16,
     .n_rot = 8,
     .experts = {.n = 8, .n_used = 2, .n_ff = 64, .n_dense = 1, .choice_bias = true}},
    {.name = "toy-laguna",
     .architecture = "laguna",
     .form = TOY_HEAD_NORMS | TOY_GATED_HEADS,
     .keys = laguna,
     .seed = 423,
     .type = TYPE_F32,
     .n_layers = 4,
     .n_rot = 8,
     .uneven = true,
     .experts =
         {.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 96, .n_dense = 1, .choice_bias = true}},
    {.name = "toy-laguna-elements",
     .architecture = "laguna",
     .form = TOY_HEAD_NORMS | TOY_GATED,
     .keys = scaled,
     .seed = 424,
     .type = TYPE_F16,
     .experts =
         {.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 64, .n_dense = 1, .choice_bias = true}},
};

_Static_assert(sizeof rows / sizeof *rows == N_FAMILY_TOYS, "the count of family_toys.h");

const char *family_toy(int i, toy_options *o)
{
    const family_row *r = &rows[i];
    *o = toy_default();
    o->architecture = r->architecture;
    o->form = r->form;
    o->keys = r->keys;
    o->seed = r->seed;
    o->type = r->type;
    o->n_layers = r->n_layers ? r->n_layers : o->n_layers;
    o->n_heads_kv = r->n_heads_kv ? r->n_heads_kv : o->n_heads_kv;
    o->head_dim = r->head_dim;
    o->v_dim = r->v_dim;
    o->uneven = r->uneven;
    o->n_rot = r->n_rot;
    o->tied = r->tied;
    o->experts = r->experts;
    return r->name;
}
