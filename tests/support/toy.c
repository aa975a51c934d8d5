/* Toy models: keys, tensors and parts; see toy.h. Names follow llama.cpp's GGUF files. */
#include "support/toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state/state_store.h"
#include "support/toys/toy_plan.h"
#include "support/toys/sum_block.h"

enum { alignment = 32, longest_path = 4096 };

toy_options toy_default(void)
{
    return (toy_options){
        .architecture = "llama",
        .n_layers = 3,
        .n_embd = 64,
        .n_heads = 4,
        .n_heads_kv = 2,
        .n_ff = 128,
        .n_context = 2048,
        .type = TYPE_Q8_0,
        .tied = false,
        .pre = "qwen2",
        .chat_template = toy_chatml,
        .seed = 1,
        .logit_gain = 5.0f,
        .n_parts = 1,
    };
}

toy_options toy_asked(void)
{
    toy_options o = toy_default();
    if (getenv("DREY_TEST_EXPERTS"))
        o.experts = (toy_experts){.n = 8, .n_used = 2, .n_ff = 64};
    const char *states = getenv("DREY_TEST_STATES");
    if (states && strcmp(states, "delta") == 0) {
        o.architecture = "qwen35";
        o.form = TOY_HEAD_NORMS | TOY_POST_IS_FFN_NORM | TOY_GATES_IN_Q;
        o.delta = (toy_delta){
            .n_key_heads = 2, .n_value_heads = 4, .dim = 16, .period = 2, .decay = 0.3f};
    } else if (states) {
        o.architecture = sum_arch.name;
        arch_of_test = &sum_arch;
    }
    return o;
}

int32_t toy_kept(int32_t n)
{
    return getenv("DREY_TEST_STATES") ? n / STORE_BLOCK * STORE_BLOCK : n;
}

bool toy_states_are_rare(void)
{
    const char *states = getenv("DREY_TEST_STATES");
    return states && strcmp(states, "delta") == 0;
}

/* ---- Plan ---- */

static tensor_plan *add_tensor(model_plan *m, const char *name)
{
    if (m->n_tensors == max_plans)
        abort();
    tensor_plan *t = &m->tensors[m->n_tensors++];
    t->dims[0] = t->dims[1] = t->dims[2] = 1;
    snprintf(t->name, sizeof t->name, "%s", name);
    return t;
}

/* Returns the types in turn, but those of long blocks only where a row divides into these. */
static uint32_t mixed_type(uint32_t type, int32_t number, int64_t n_columns)
{
    static const uint32_t types[] = {TYPE_Q4_K, TYPE_Q6_K, TYPE_Q4_0, TYPE_Q8_0,   TYPE_Q5_K,
                                     TYPE_F16,  TYPE_Q4_1, TYPE_Q2_K, TYPE_IQ4_NL, TYPE_Q3_K,
                                     TYPE_Q5_0, TYPE_BF16, TYPE_Q5_1, TYPE_IQ4_XS, TYPE_F32};
    static const uint32_t coded[] = {TYPE_IQ3_S,  TYPE_IQ2_S, TYPE_Q4_K,  TYPE_IQ3_XXS,
                                     TYPE_IQ2_XS, TYPE_IQ1_S, TYPE_TQ2_0, TYPE_IQ2_XXS,
                                     TYPE_NVFP4,  TYPE_IQ1_M, TYPE_TQ1_0};
    const uint32_t *of = type == TOY_TYPE_CODED ? coded : types;
    const size_t n =
        type == TOY_TYPE_CODED ? sizeof coded / sizeof *coded : sizeof types / sizeof *types;
    while (n_columns % type_find(of[(size_t)number % n])->block_elements != 0)
        number++;
    return of[(size_t)number % n];
}

/* [n_rows][n_columns] whose product with a row of deviation 1 has deviation gain; or one for each
 * expert, one below the other. */
void add_matrices_of(model_plan *m, const char *name, int64_t n_columns, int64_t n_rows,
                     int32_t n_experts, float gain)
{
    tensor_plan *t = add_tensor(m, name);
    uint32_t type = m->options->type;
    if (n_experts > 0 && m->options->experts.type != 0)
        type = m->options->experts.type;
    t->type = type >= TOY_TYPE_MIXED ? mixed_type(type, m->n_matrices, n_columns) : type;
    if (m->options->latent.kv_rank > 0 && n_columns % type_find(t->type)->block_elements != 0)
        t->type = TYPE_Q8_0; /* as quantised files have them */
    if (n_columns % type_find(t->type)->block_elements != 0)
        abort(); /* the test's widths do not fit its type */
    t->n_dims = n_experts > 0 ? 3 : 2;
    t->dims[0] = n_columns;
    t->dims[1] = n_rows;
    t->dims[2] = n_experts > 0 ? n_experts : 1;
    t->deviation = gain / sqrtf((float)n_columns);
    m->n_matrices++;
}

void add_matrix(model_plan *m, const char *name, int64_t n_columns, int64_t n_rows, float gain)
{
    add_matrices_of(m, name, n_columns, n_rows, 0, gain);
}

static void add_matrices(model_plan *m, const char *name, int64_t n_columns, int64_t n_rows,
                         float gain)
{
    add_matrices_of(m, name, n_columns, n_rows, m->options->experts.n, gain);
}

void add_vector(model_plan *m, const char *name, int64_t n, float centre, float deviation)
{
    tensor_plan *t = add_tensor(m, name);
    t->type = TYPE_F32;
    t->n_dims = 1;
    t->dims[0] = n;
    t->centre = centre;
    t->deviation = deviation;
}

const char *layer_name(char out[64], int32_t layer, const char *what)
{
    snprintf(out, 64, "blk.%d.%s", layer, what);
    return out;
}

static bool is_arch(const toy_options *o, const char *name)
{
    return strcmp(o->architecture, name) == 0;
}

static bool has_encoder(const toy_options *o)
{
    return is_arch(o, "t5") || is_arch(o, "bart");
}

static int64_t head_dim_of(const toy_options *o)
{
    return o->head_dim ? o->head_dim : o->n_embd / o->n_heads;
}

static int64_t v_dim_of(const toy_options *o)
{
    return o->v_dim && !(o->form & TOY_GATES_IN_Q) ? o->v_dim : head_dim_of(o);
}

static int64_t heads_of(const toy_options *o, int32_t layer)
{
    return o->uneven && layer % 2 ? 2 * o->n_heads : o->n_heads;
}

static int64_t head_dim_at(const toy_options *o, int32_t layer)
{
    return toy_sees_all(o, layer) ? head_dim_of(o) : o->kinds.local_dim;
}

static int64_t v_dim_at(const toy_options *o, int32_t layer)
{
    return toy_sees_all(o, layer) ? v_dim_of(o) : o->kinds.local_dim;
}

static int64_t ff_of(const toy_options *o, int32_t layer)
{
    if (o->kinds.wide && toy_shares(o, layer))
        return 2 * o->n_ff;
    if (o->form & TOY_ONE_BLOCK && o->mamba.kinds[layer] != 'F')
        return 0;
    return o->uneven && layer % 2 ? o->n_ff / 2 : o->n_ff;
}

void add_table(model_plan *m, const char *name, int64_t n_columns, int64_t n, float deviation)
{
    tensor_plan *t = add_tensor(m, name);
    t->type = TYPE_F32;
    t->n_dims = 2;
    t->dims[0] = n_columns;
    t->dims[1] = n;
    t->deviation = deviation;
}

float layer_weight(const toy_options *o, int32_t layer)
{
    /* The first layer outweighs the embedding, or else a tied model repeats its last token. */
    float weight = (o->tied ? 8.0f : 4.0f) * (o->layer_gain > 0 ? o->layer_gain : 1);
    for (int32_t i = 0; i < layer; i++)
        weight *= 0.6f;
    return weight;
}

static const char *part_name(char out[64], bool encoder, int32_t layer, const char *what)
{
    snprintf(out, 64, "%s.blk.%d.%s", encoder ? "enc" : "dec", layer, what);
    return out;
}

/* A bias, or that of a norm: BART's layers have all of them. */
static void add_bart_bias(model_plan *m, bool encoder, int32_t layer, const char *what, int64_t n)
{
    char name[64], bias[40];
    snprintf(bias, sizeof bias, "%s.bias", what);
    if (is_arch(m->options, "bart"))
        add_vector(m, part_name(name, encoder, layer, bias), n, 0.0f, 0.1f);
}

/* Part of a layer of T5 or BART. T5's scores are not scaled, so that its Q and K are small. BART's
 * sums are normed: what attention adds is small there, or else all rows would soon be alike. */
static void plan_encdec_attention(model_plan *m, bool encoder, int32_t layer, const char *which,
                                  int64_t inner)
{
    const toy_options *o = m->options;
    const char *ends[] = {"_norm", "_q", "_k", "_v", "_o"};
    bool t5 = is_arch(o, "t5");
    for (int i = 0; i < 5; i++) {
        char name[64], what[20], weight[32];
        snprintf(what, sizeof what, "%s%s", which, ends[i]);
        snprintf(weight, sizeof weight, "%s.weight", what);
        part_name(name, encoder, layer, weight);
        if (i == 0)
            add_vector(m, name, o->n_embd, 1.0f, 0.1f);
        else if (i < 4)
            add_matrix(m, name, o->n_embd, inner, i > 2 ? 1.0f : t5 ? 0.7f : 2.0f);
        else
            add_matrix(m, name, inner, o->n_embd, t5 ? layer_weight(o, layer) : 0.5f);
        add_bart_bias(m, encoder, layer, what, i == 0 || i == 4 ? o->n_embd : inner);
    }
}

static void plan_encdec_layer(model_plan *m, bool encoder, int32_t layer, int64_t head_dim)
{
    enum { BUCKETS = 32 };
    const toy_options *o = m->options;
    char name[64];
    int64_t inner = o->n_heads * head_dim;
    plan_encdec_attention(m, encoder, layer, "attn", inner);
    if (layer == 0 && is_arch(o, "t5"))
        add_table(m, part_name(name, encoder, 0, "attn_rel_b.weight"), o->n_heads, BUCKETS, 1.0f);
    if (!encoder)
        plan_encdec_attention(m, false, layer, "cross_attn", inner);
    add_vector(m, part_name(name, encoder, layer, "ffn_norm.weight"), o->n_embd, 1.0f, 0.1f);
    add_bart_bias(m, encoder, layer, "ffn_norm", o->n_embd);
    if (o->gated)
        add_matrix(m, part_name(name, encoder, layer, "ffn_gate.weight"), o->n_embd, o->n_ff, 1.0f);
    add_matrix(m, part_name(name, encoder, layer, "ffn_up.weight"), o->n_embd, o->n_ff, 1.0f);
    add_bart_bias(m, encoder, layer, "ffn_up", o->n_ff);
    add_matrix(m, part_name(name, encoder, layer, "ffn_down.weight"), o->n_ff, o->n_embd,
               layer_weight(o, layer));
    add_bart_bias(m, encoder, layer, "ffn_down", o->n_embd);
}

/* Forms of the architectures that this file knows by name. */
static uint32_t form_of(const toy_options *o)
{
    static const struct {
        const char *architecture;
        uint32_t form;
    } known[] = {
        {"gpt2", TOY_LAYER_NORMS | TOY_NORM_BIASES | TOY_FUSED_QKV | TOY_QKV_BIASES | TOY_O_BIAS |
                     TOY_FFN_BIASES | TOY_NO_GATE},
        {"phi3", TOY_FUSED_QKV | TOY_GATE_IN_UP},
        {"qwen2", TOY_QKV_BIASES},
        {"qwen2moe", TOY_QKV_BIASES},
        {"gpt-oss", TOY_QKV_BIASES | TOY_O_BIAS | TOY_SINKS | TOY_POST_IS_FFN_NORM},
        {"qwen3", TOY_HEAD_NORMS},
        {"qwen3moe", TOY_HEAD_NORMS},
        {"gemma2", TOY_POST_NORMS},
        {"gemma3", TOY_POST_NORMS | TOY_HEAD_NORMS},
        {"gemma4", TOY_POST_NORMS | TOY_HEAD_NORMS},
        {"olmoe", TOY_WIDE_NORMS},
    };
    uint32_t form = o->form | (o->biases ? TOY_QKV_BIASES | TOY_O_BIAS | TOY_FFN_BIASES : 0);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_arch(o, known[i].architecture))
            form |= known[i].form;
    return form;
}

/* Plans the router: of numbers of about 1 each, it makes logits of deviation 2: the k largest
 * differ from token to token. A bias for the choice alone differs less than the sigmoids do. */
static void plan_experts(model_plan *m, int32_t layer)
{
    const toy_options *o = m->options;
    const toy_experts *e = &o->experts;
    char name[64];
    const int64_t d = o->n_embd, ff = e->n_ff ? e->n_ff : o->n_ff, shared = e->n_shared,
                  width = e->n_latent ? e->n_latent : d;
    const bool gate = !(form_of(o) & TOY_NO_GATE);
    float weight = layer_weight(o, layer);
    add_table(m, layer_name(name, layer, "ffn_gate_inp.weight"), d, e->n, 2 / sqrtf((float)d));
    if (e->choice_bias || e->old_bias)
        add_vector(m, layer_name(name, layer, e->old_bias ? "exp_probs_b" : "exp_probs_b.bias"),
                   e->n, 0.0f, 0.05f);
    if (e->n_latent) {
        add_matrix(m, layer_name(name, layer, "ffn_latent_down.weight"), d, width, 1.0f);
        add_matrix(m, layer_name(name, layer, "ffn_latent_up.weight"), width, d, 1.0f);
    }
    if (e->fused)
        add_matrices(m, layer_name(name, layer, "ffn_gate_up_exps.weight"), d, 2 * ff, 1.0f);
    for (int i = gate ? 0 : 1; i < 2 && !e->fused; i++)
        add_matrices(m, layer_name(name, layer, i ? "ffn_up_exps.weight" : "ffn_gate_exps.weight"),
                     width, ff, 1.0f);
    add_matrices(m, layer_name(name, layer, "ffn_down_exps.weight"), ff, width, 1.5f * weight);
    if (is_arch(o, "gpt-oss")) {
        add_vector(m, layer_name(name, layer, "ffn_gate_inp.bias"), e->n, 0.0f, 0.7f);
        add_table(m, layer_name(name, layer, "ffn_gate_exps.bias"), ff, e->n, 0.5f);
        add_table(m, layer_name(name, layer, "ffn_up_exps.bias"), ff, e->n, 0.5f);
        add_table(m, layer_name(name, layer, "ffn_down_exps.bias"), d, e->n, 0.5f * weight);
    }
    if (shared == 0)
        return;
    if (is_arch(o, "qwen2moe") || o->delta.n_key_heads > 0)
        add_vector(m, layer_name(name, layer, "ffn_gate_inp_shexp.weight"), d, 0.0f,
                   1 / sqrtf((float)d));
    if (gate)
        add_matrix(m, layer_name(name, layer, "ffn_gate_shexp.weight"), d, shared, 1.0f);
    add_matrix(m, layer_name(name, layer, "ffn_up_shexp.weight"), d, shared, 1.0f);
    add_matrix(m, layer_name(name, layer, "ffn_down_shexp.weight"), shared, d, weight);
}

static bool has_convolution(const toy_options *o, int32_t layer)
{
    return o->form & TOY_SHORT_CONV && layer % 2 == 0;
}

static bool has_experts(const toy_options *o, int32_t layer)
{
    const toy_experts *e = &o->experts;
    if (o->form & TOY_ONE_BLOCK && o->mamba.kinds[layer] != 'F')
        return false;
    return e->n > 0 && layer >= e->n_dense && (e->step == 0 || (layer + 1) % e->step == 0);
}

static void plan_ffn(model_plan *m, int32_t layer, uint32_t form)
{
    const toy_options *o = m->options;
    char name[64];
    int64_t d = o->n_embd, ff = ff_of(o, layer);
    if (has_experts(o, layer))
        plan_experts(m, layer);
    if (has_experts(o, layer) && !o->kinds.period)
        return;
    if (!(form & (TOY_NO_GATE | TOY_GATE_IN_UP)))
        add_matrix(m, layer_name(name, layer, "ffn_gate.weight"), d, ff, 1.0f);
    add_matrix(m, layer_name(name, layer, "ffn_up.weight"), d, form & TOY_GATE_IN_UP ? 2 * ff : ff,
               1.0f);
    add_matrix(m, layer_name(name, layer, "ffn_down.weight"), ff, d, layer_weight(o, layer));
}

/* A norm of rows, ROLE.weight, and its bias. */
static void add_norm(model_plan *m, int32_t layer, const char *role, uint32_t form)
{
    char name[64], part[48];
    snprintf(part, sizeof part, "%s.weight", role);
    add_vector(m, layer_name(name, layer, part), m->options->n_embd, 1.0f, 0.1f);
    snprintf(part, sizeof part, "%s.bias", role);
    if (form & TOY_NORM_BIASES)
        add_vector(m, layer_name(name, layer, part), m->options->n_embd, 0.0f, 0.3f);
}

static bool attends(const toy_options *o, int32_t layer)
{
    return o->mamba.n_heads == 0 || o->form & TOY_BESIDE || o->mamba.kinds[layer] == 'A';
}

static int64_t kv_heads_of(const toy_options *o, int32_t layer)
{
    if (o->kinds.n_heads_kv_global && toy_sees_all(o, layer))
        return o->kinds.n_heads_kv_global;
    if (has_convolution(o, layer) || !attends(o, layer))
        return 0;
    if (o->latent.kv_rank > 0)
        return o->latent.whole ? o->n_heads : 1;
    return has_encoder(o) ? o->n_heads : o->n_heads_kv;
}

static void plan_head_norms(model_plan *m, int32_t layer, int64_t head_dim, uint32_t form)
{
    const toy_options *o = m->options;
    const char *roles[] = {"attn_q_norm.weight", "attn_k_norm.weight"};
    for (int i = 0; i < 2; i++) {
        char name[64];
        int64_t n_heads = i ? o->n_heads_kv : heads_of(o, layer);
        if (i && toy_shares(o, layer) && !o->kinds.wide)
            continue;
        layer_name(name, layer, roles[i]);
        if (form & TOY_OWN_NORMS) {
            add_table(m, name, head_dim, n_heads, 0.2f);
            m->tensors[m->n_tensors - 1].centre = 1.0f;
        } else if (form & (TOY_HEAD_NORMS | TOY_WIDE_NORMS)) {
            add_vector(m, name, form & TOY_WIDE_NORMS ? n_heads * head_dim : head_dim,
                       o->kinds.period ? 0.6f : 1.0f, 0.2f); /* scores may not be scaled */
        }
    }
}

/* Matrices that read a row and their biases. */
static void plan_qkv(model_plan *m, int32_t layer, int64_t head_dim, uint32_t form)
{
    const toy_options *o = m->options;
    char name[64];
    int64_t d = o->n_embd, n_heads = heads_of(o, layer),
            q = n_heads * head_dim * (form & TOY_GATES_IN_Q ? 2 : 1),
            k = kv_heads_of(o, layer) * head_dim, v = kv_heads_of(o, layer) * v_dim_at(o, layer);
    if (form & TOY_FUSED_QKV) {
        add_matrix(m, layer_name(name, layer, "attn_qkv.weight"), d, q + k + v, 1.3f);
        if (form & TOY_QKV_BIASES)
            add_vector(m, layer_name(name, layer, "attn_qkv.bias"), q + k + v, 0.0f, 0.3f);
    } else {
        add_matrix(m, layer_name(name, layer, "attn_q.weight"), d, q, 1.5f);
        if (!toy_shares(o, layer) || o->kinds.wide)
            add_matrix(m, layer_name(name, layer, "attn_k.weight"), d, k, 1.5f);
        if ((!toy_shares(o, layer) || o->kinds.wide) &&
            !(o->kinds.no_values && toy_sees_all(o, layer)))
            add_matrix(m, layer_name(name, layer, "attn_v.weight"), d, v, 1.0f);
        if (form & TOY_QKV_BIASES) {
            add_vector(m, layer_name(name, layer, "attn_q.bias"), q, 0.0f, 0.3f);
            add_vector(m, layer_name(name, layer, "attn_k.bias"), k, 0.0f, 0.3f);
            add_vector(m, layer_name(name, layer, "attn_v.bias"), v, 0.0f, 0.3f);
        }
    }
    if (form & (TOY_GATED | TOY_GATED_HEADS))
        add_matrix(m, layer_name(name, layer, "attn_gate.weight"), d,
                   form & TOY_GATED ? n_heads * v_dim_of(o) : n_heads, 1.5f);
}

/* Numbers that products are multiplied with. */
static void plan_scales(model_plan *m, int32_t layer)
{
    static const char *const experts[] = {"ffn_gate_exps.scale", "ffn_up_exps.scale",
                                          "ffn_down_exps.scale"};
    const toy_options *o = m->options;
    char name[64];
    add_vector(m, layer_name(name, layer, "attn_q.scale"), 1, 1.3f, 0.1f);
    add_vector(m, layer_name(name, layer, "attn_q.input_scale"), 1, 0.1f, 0.1f);
    if (!has_experts(o, layer))
        add_vector(m, layer_name(name, layer, "ffn_down.scale"), 1, 0.7f, 0.1f);
    for (int i = 0; i < 3 && has_experts(o, layer); i++)
        add_vector(m, layer_name(name, layer, experts[i]), o->experts.n, 1.0f, 0.2f);
}

/* Convolutions in place of attention. */
static void plan_convolution(model_plan *m, int32_t layer)
{
    const toy_options *o = m->options;
    char name[64];
    add_matrix(m, layer_name(name, layer, "shortconv.in_proj.weight"), o->n_embd, 3 * o->n_embd,
               1.2f);
    add_table(m, layer_name(name, layer, "shortconv.conv.weight"), 3, o->n_embd, 0.6f);
    add_matrix(m, layer_name(name, layer, "shortconv.out_proj.weight"), o->n_embd, o->n_embd,
               layer_weight(o, layer));
}

static void plan_layer(model_plan *m, int32_t layer, int64_t head_dim)
{
    const toy_options *o = m->options;
    const uint32_t form = form_of(o);
    const bool experts = has_experts(o, layer);
    char name[64];
    int64_t d = o->n_embd, ff = ff_of(o, layer);
    float weight = layer_weight(o, layer);
    if (!(form & TOY_NORMS_AFTER))
        add_norm(m, layer, "attn_norm", form);
    if (toy_has_mamba(o, layer))
        plan_mamba(m, layer);
    if (has_convolution(o, layer)) {
        plan_convolution(m, layer);
    } else if (toy_has_delta(o, layer)) {
        plan_delta(m, layer);
    } else if (o->latent.kv_rank > 0) {
        plan_latent(m, layer);
    } else if (attends(o, layer)) {
        plan_qkv(m, layer, head_dim, form);
        plan_head_norms(m, layer, head_dim, form);
        add_matrix(m, layer_name(name, layer, "attn_output.weight"),
                   heads_of(o, layer) * v_dim_at(o, layer), d, weight);
    }
    if (form & TOY_SINKS || (form & TOY_WINDOW_SINKS && layer % 4 != 3))
        add_vector(m, layer_name(name, layer, "attn_sinks.weight"), heads_of(o, layer), 1.0f, 1.0f);
    if (form & TOY_O_BIAS)
        add_vector(m, layer_name(name, layer, "attn_output.bias"), d, 0.0f, 0.3f);
    if (form & TOY_POST_NORMS) /* next to embeddings that are multiplied with sqrt(d) */
        add_vector(m, layer_name(name, layer, "post_attention_norm.weight"), d, weight, 0.2f);
    if (form & TOY_BESIDE) /* Falcon H1's files have this name */
        add_vector(m, layer_name(name, layer, "ffn_norm"), d, 1.0f, 0.1f);
    else if (!(form & (TOY_NORMS_AFTER | TOY_PARALLEL | TOY_ONE_BLOCK)))
        add_norm(m, layer, form & TOY_POST_IS_FFN_NORM ? "post_attention_norm" : "ffn_norm", form);
    if (ff > 0)
        plan_ffn(m, layer, form);
    if (o->kinds.period)
        plan_layer_end(m, layer, has_experts(o, layer));
    if (o->scales)
        plan_scales(m, layer);
    if (form & TOY_POST_NORMS)
        add_vector(m, layer_name(name, layer, "post_ffw_norm.weight"), d, weight, 0.2f);
    if (!(form & TOY_FFN_BIASES) || experts)
        return;
    if (!(form & TOY_NO_GATE))
        add_vector(m, layer_name(name, layer, "ffn_gate.bias"), ff, 0.0f, 0.3f);
    add_vector(m, layer_name(name, layer, "ffn_up.bias"), ff, 0.0f, 0.3f);
    add_vector(m, layer_name(name, layer, "ffn_down.bias"), d, 0.0f, 0.3f);
}

static int32_t decoder_layers(const toy_options *o)
{
    return o->n_decoder_layers ? o->n_decoder_layers : o->n_layers;
}

/* Plans what an encoder or a decoder has around its layers. */
static void plan_part(model_plan *m, bool encoder, int32_t n_layers)
{
    const toy_options *o = m->options;
    const char *part = encoder ? "enc" : "dec";
    bool bart = is_arch(o, "bart");
    char name[64];
    for (int32_t i = 0; i < n_layers; i++)
        plan_encdec_layer(m, encoder, i, head_dim_of(o));
    snprintf(name, sizeof name, "%s.%s.weight", part, bart ? "token_embd_norm" : "output_norm");
    add_vector(m, name, o->n_embd, 1.0f, 0.1f);
    if (!bart)
        return;
    snprintf(name, sizeof name, "%s.token_embd_norm.bias", part);
    add_vector(m, name, o->n_embd, 0.0f, 0.1f);
    snprintf(name, sizeof name, "%s.position_embd.weight", part);
    add_table(m, name, o->n_embd, o->n_context, 0.5f);
}

static void plan_encdec(model_plan *m)
{
    const toy_options *o = m->options;
    bool bart = is_arch(o, "bart");
    /* T5's tied logits are scaled with n_embd^-0.5. */
    float gain = !o->tied ? 1.0f : bart ? o->logit_gain : o->logit_gain * sqrtf((float)o->n_embd);
    add_matrix(m, "token_embd.weight", o->n_embd, m->n_vocab, gain);
    if (!o->tied)
        add_matrix(m, "output.weight", o->n_embd, m->n_vocab, o->logit_gain);
    if (bart)
        add_vector(m, "output.bias", m->n_vocab, 0.0f, 1.0f);
    plan_part(m, true, o->n_layers);
    plan_part(m, false, decoder_layers(o));
}

/* A block for multi-token prediction; those that have no delta nets in front have their own norm
 * before the head. */
static void plan_mtp(model_plan *m, int32_t layer)
{
    const toy_options *o = m->options;
    char name[64];
    add_table(m, layer_name(name, layer, "nextn.eh_proj.weight"), 2 * o->n_embd, o->n_embd,
              0.7f / sqrtf((float)o->n_embd));
    add_vector(m, layer_name(name, layer, "nextn.enorm.weight"), o->n_embd, 1.0f, 0.1f);
    add_vector(m, layer_name(name, layer, "nextn.hnorm.weight"), o->n_embd, 1.0f, 0.1f);
    if (o->delta.n_key_heads == 0)
        add_vector(m, layer_name(name, layer, "nextn.shared_head_norm.weight"), o->n_embd, 1.0f,
                   0.1f);
    plan_layer(m, layer, head_dim_of(o));
}

static void plan_decoder_only(model_plan *m)
{
    const toy_options *o = m->options;
    add_matrix(m, "token_embd.weight", o->n_embd, m->n_vocab, o->logit_gain);
    if (!o->tied)
        add_matrix(m, "output.weight", o->n_embd, m->n_vocab, o->logit_gain);
    if (o->rope_freqs)
        add_vector(m, "rope_freqs.weight", head_dim_of(o) / 2, o->kinds.period ? 1.0f : 2.0f,
                   o->kinds.period ? 0.0f : 0.4f);
    if (o->rope_freqs && o->kinds.period)
        m->tensors[m->n_tensors - 1].n_usual = head_dim_of(o) / 8;
    plan_embeddings(m);
    if (o->rope_freqs && o->rope_freqs_rows > 1) {
        m->tensors[m->n_tensors - 1].n_dims = 2;
        m->tensors[m->n_tensors - 1].dims[1] = o->rope_freqs_rows;
    }
    if (is_arch(o, "gpt2"))
        add_table(m, "position_embd.weight", o->n_embd, o->n_context, 0.5f);
    if (o->longrope) {
        add_vector(m, "rope_factors_short.weight", o->n_rot / 2, 1.5f, 0.2f);
        add_vector(m, "rope_factors_long.weight", o->n_rot / 2, 9.0f, 2.0f);
    }
    for (int32_t i = 0; i < o->n_layers && !o->mtp_alone; i++)
        plan_layer(m, i, head_dim_at(o, i));
    if (o->mtp)
        plan_mtp(m, o->n_layers);
    for (int32_t i = o->mtp; i < o->n_nextn; i++) {
        char name[64];
        add_table(m, layer_name(name, o->n_layers + i, "nextn.eh_proj.weight"), 2 * o->n_embd,
                  o->n_embd, 1.0f);
        add_vector(m, layer_name(name, o->n_layers + i, "attn_norm.weight"), o->n_embd, 1, 0);
    }
    if (!plan_hyper(m))
        add_vector(m, form_of(o) & TOY_SHORT_CONV ? "token_embd_norm.weight" : "output_norm.weight",
                   o->n_embd, 1.0f, 0.1f);
    if (form_of(o) & TOY_NORM_BIASES)
        add_vector(m, "output_norm.bias", o->n_embd, 0.0f, 0.3f);
    if (form_of(o) & TOY_HEAD_BIAS)
        add_vector(m, "output.bias", m->n_vocab, 0.0f, 1.0f);
}

static void plan_tensors(model_plan *m)
{
    const toy_options *o = m->options;
    if (has_encoder(o))
        plan_encdec(m);
    else
        plan_decoder_only(m);
    if (o->more_tensor)
        add_vector(m, o->more_tensor, o->n_embd, 3.0f, 0.0f);
    for (int32_t i = 0; i < m->n_tensors; i++)
        m->tensors[i].part = (int32_t)((int64_t)i * o->n_parts / m->n_tensors);
}

/* ---- Keys ---- */

static const char *key_name(char out[128], const toy_options *o, const char *what)
{
    if (*what == '/')
        snprintf(out, 128, "%s", what + 1);
    else
        snprintf(out, 128, "%s.%s", o->architecture, what);
    return out;
}

/* Returns the number of keys written. */
static uint64_t put_rope_scaling(gguf_writer *w, const toy_options *o)
{
    char name[128];
    if (!o->rope_scaling)
        return 0;
    writer_key_text(w, key_name(name, o, "rope.scaling.type"), o->rope_scaling);
    writer_key_f32(w, key_name(name, o, "rope.scaling.factor"), o->rope_factor);
    writer_key_u32(w, key_name(name, o, "rope.scaling.original_context_length"),
                   (uint32_t)o->rope_original_context);
    return 3;
}

/* An array whose kind and items are words. */
static void put_items(gguf_writer *w, const char *name, const char *words)
{
    const char *at = strchr(words, ' ');
    const gguf_kind kind = *words == 'f' ? GGUF_F32 : *words == 'b' ? GGUF_BOOL : GGUF_U32;
    uint64_t n = 0;
    for (const char *c = at; c; c = strchr(c + 1, ' '))
        n++;
    writer_key_array(w, name, kind, n);
    for (; at; at = strchr(at + 1, ' ')) {
        const float number = strtof(at, NULL);
        const uint8_t yes = number != 0;
        const uint32_t whole = (uint32_t)number;
        if (kind == GGUF_BOOL)
            writer_put(w, &yes, sizeof yes);
        else if (kind == GGUF_F32)
            writer_put(w, &number, sizeof number);
        else
            writer_put(w, &whole, sizeof whole);
    }
}

static void put_key(gguf_writer *w, const char *name, const toy_key *key)
{
    if (key->kind == GGUF_ARRAY && key->text) {
        put_items(w, name, key->text);
        return;
    }
    switch (key->kind) {
    case GGUF_U32:
        writer_key_u32(w, name, (uint32_t)key->number);
        break;
    case GGUF_BOOL:
        writer_key_bool(w, name, key->number != 0);
        break;
    case GGUF_STRING:
        writer_key_text(w, name, key->text);
        break;
    case GGUF_ARRAY:
        writer_key_array(w, name, GGUF_U32, 2);
        writer_u32(w, (uint32_t)key->number);
        writer_u32(w, (uint32_t)key->number);
        break;
    default:
        writer_key_f32(w, name, (float)key->number);
    }
}

static uint64_t put_more_keys(gguf_writer *w, const toy_options *o)
{
    uint64_t n = 0;
    char name[128];
    for (; o->keys && o->keys[n].suffix; n++)
        put_key(w, key_name(name, o, o->keys[n].suffix), &o->keys[n]);
    return n;
}

static uint64_t put_encoder_keys(gguf_writer *w, const toy_options *o)
{
    char name[128];
    bool t5 = is_arch(o, "t5");
    uint64_t n_keys = 1;
    writer_key_u32(w, key_name(name, o, "decoder_start_token_id"), t5 ? 0 : 2);
    if (t5) {
        writer_key_u32(w, key_name(name, o, "attention.relative_buckets_count"), 32);
        n_keys++;
    }
    if (decoder_layers(o) != o->n_layers) {
        writer_key_u32(w, key_name(name, o, "decoder_block_count"), (uint32_t)decoder_layers(o));
        n_keys++;
    }
    return n_keys;
}

static uint64_t put_expert_keys(gguf_writer *w, const toy_options *o)
{
    const toy_experts *e = &o->experts;
    const struct {
        const char *suffix;
        int32_t value;
    } keys[] = {{"expert_count", e->n},
                {"expert_used_count", e->n_used},
                {"expert_feed_forward_length", e->n_ff},
                {"expert_shared_feed_forward_length", e->n_shared},
                {"moe_latent_size", e->n_latent},
                {"leading_dense_block_count", e->old_bias ? 0 : e->n_dense},
                {"interleave_moe_layer_step", e->step}};
    uint64_t n_keys = 0;
    char name[128];
    for (size_t i = 0; e->n && i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].value == 0)
            continue;
        writer_key_u32(w, key_name(name, o, keys[i].suffix), (uint32_t)keys[i].value);
        n_keys++;
    }
    return n_keys;
}

/* A number of each layer, or one of all. */
static void put_each(gguf_writer *w, const toy_options *o, const char *suffix,
                     int64_t (*of)(const toy_options *o, int32_t layer))
{
    char name[128];
    key_name(name, o, suffix);
    bool differ = o->uneven;
    for (int32_t i = 1; i < o->n_layers; i++)
        differ = differ || of(o, i) != of(o, 0);
    if (!differ) {
        writer_key_u32(w, name, (uint32_t)of(o, 0));
        return;
    }
    writer_key_array(w, name, GGUF_U32, (uint64_t)o->n_layers);
    for (int32_t i = 0; i < o->n_layers; i++)
        writer_u32(w, (uint32_t)of(o, i));
}

static uint64_t put_shape_keys(gguf_writer *w, const toy_options *o)
{
    char name[128];
    bool llama = is_arch(o, "llama");
    writer_key_text(w, "general.architecture", o->architecture);
    writer_key_text(w, "general.name", "toy");
    writer_key_u32(w, "general.quantization_version", 2);
    writer_key_u32(w, key_name(name, o, "block_count"), (uint32_t)(o->n_layers + o->n_nextn));
    writer_key_u32(w, key_name(name, o, "context_length"), (uint32_t)o->n_context);
    writer_key_u32(w, key_name(name, o, "embedding_length"), (uint32_t)o->n_embd);
    put_each(w, o, "feed_forward_length", ff_of);
    put_each(w, o, "attention.head_count", heads_of);
    put_each(w, o, "attention.head_count_kv", kv_heads_of);
    bool gpt2 = is_arch(o, "gpt2"), bart = is_arch(o, "bart");
    const char *eps = form_of(o) & TOY_LAYER_NORMS || bart ? "attention.layer_norm_epsilon"
                                                           : "attention.layer_norm_rms_epsilon";
    writer_key_f32(w, key_name(name, o, eps), 1e-5f);
    uint64_t n_keys = 10;
    if (o->n_nextn > 0) {
        writer_key_u32(w, key_name(name, o, "nextn_predict_layers"), (uint32_t)o->n_nextn);
        n_keys++;
    }
    if (has_encoder(o))
        n_keys += put_encoder_keys(w, o);
    if (!gpt2 && !has_encoder(o)) {
        writer_key_f32(w, key_name(name, o, "rope.freq_base"), llama ? 10000.0f : 1000000.0f);
        n_keys++;
    }
    if (llama || o->n_rot) {
        int64_t n_rot = o->n_rot ? o->n_rot : head_dim_of(o);
        writer_key_u32(w, key_name(name, o, "rope.dimension_count"), (uint32_t)n_rot);
        n_keys++;
    }
    if (o->head_dim) {
        writer_key_u32(w, key_name(name, o, "attention.key_length"), (uint32_t)o->head_dim);
        writer_key_u32(w, key_name(name, o, "attention.value_length"), (uint32_t)v_dim_of(o));
        n_keys += 2;
    }
    return n_keys + put_rope_scaling(w, o) + put_expert_keys(w, o) + put_delta_keys(w, o) +
           put_hyper_keys(w, o) + put_mamba_keys(w, o) +
           put_kind_keys(w, o, (int32_t)head_dim_of(o)) + put_latent_keys(w, o) +
           put_more_keys(w, o);
}

static uint64_t put_split_keys(gguf_writer *w, const model_plan *m, int32_t part)
{
    if (m->options->n_parts == 1)
        return 0;
    writer_key_u16(w, "split.no", (uint16_t)part);
    writer_key_u16(w, "split.count", (uint16_t)m->options->n_parts);
    writer_key_i32(w, "split.tensors.count", m->n_tensors);
    return 3;
}

/* ---- Tensors ---- */

/* A stream for each tensor: the seed and the name's FNV-1a hash. */
static uint64_t stream_of(uint64_t seed, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
    uint64_t state = seed ^ hash;
    return toy_random(&state);
}

static int64_t plan_bytes(const tensor_plan *t)
{
    return type_row_bytes(type_find(t->type), t->dims[0]) * t->dims[1] * t->dims[2];
}

static void put_vector(gguf_writer *w, const tensor_plan *t, uint64_t seed)
{
    for (int64_t i = 0; i < t->dims[0]; i++) {
        uint64_t state = stream_of(seed, t->name) + (uint64_t)i;
        float value;
        toy_blocks((uint8_t *)&value, TYPE_F32, 1, t->deviation, toy_random(&state));
        value += t->centre;
        if (t->n_usual > 0 && i >= t->n_usual)
            value = 1e30f;
        writer_put(w, &value, sizeof value);
    }
}

/* Adds to numbers of F32. */
static void add_centre(uint8_t *numbers, int64_t n, float centre)
{
    for (int64_t i = 0; i < n; i++) {
        float number;
        memcpy(&number, numbers + i * (int64_t)sizeof number, sizeof number);
        number += centre;
        memcpy(numbers + i * (int64_t)sizeof number, &number, sizeof number);
    }
}

/* Runs of 32 weights or one block, each from its own seed, so that noise replaces some runs and
 * does not change the others. */
static void put_matrix(gguf_writer *w, const tensor_plan *t, const toy_options *o)
{
    const type_traits *traits = type_find(t->type);
    int64_t n_blocks = t->dims[0] * t->dims[1] * t->dims[2] / traits->block_elements;
    int64_t run = traits->block_elements == 1 && n_blocks % 32 == 0 ? 32 : 1;
    uint64_t own = stream_of(o->seed, t->name), other = stream_of(o->noise_seed, t->name);
    uint8_t blocks[32 * 8 + 256];
    for (int64_t i = 0; i < n_blocks; i += run) {
        uint64_t state = own + (uint64_t)i, noise = ~other + (uint64_t)i;
        uint64_t seed = toy_random(&state), noise_seed = toy_random(&noise);
        bool noisy = (float)(noise_seed >> 40) * 0x1p-24f < o->noise;
        toy_blocks(blocks, t->type, run, t->deviation, noisy ? noise_seed : seed);
        if (t->centre != 0)
            add_centre(blocks, run, t->centre);
        writer_put(w, blocks, (size_t)(run * traits->block_bytes));
    }
}

static int64_t aligned(int64_t n)
{
    return (n + alignment - 1) / alignment * alignment;
}

static void put_tensors(gguf_writer *w, const model_plan *m, int32_t part)
{
    uint64_t n = 0;
    int64_t offset = 0;
    for (int32_t i = 0; i < m->n_tensors; i++) {
        const tensor_plan *t = &m->tensors[i];
        if (t->part != part)
            continue;
        writer_tensor(w, t->name, t->type, t->dims, t->n_dims, (uint64_t)offset);
        offset += aligned(plan_bytes(t));
        n++;
    }
    writer_patch_u64(w, WRITER_AT_N_TENSORS, n);
    writer_align(w, alignment);
    for (int32_t i = 0; i < m->n_tensors; i++) {
        const tensor_plan *t = &m->tensors[i];
        if (t->part != part)
            continue;
        if (t->n_dims == 1)
            put_vector(w, t, m->options->seed);
        else
            put_matrix(w, t, m->options);
        writer_align(w, alignment);
    }
}

/* ---- Files ---- */

void toy_build(gguf_writer *w, const toy_options *options, int32_t part)
{
    model_plan *m = calloc(1, sizeof *m);
    gguf_writer vocabulary = {0};
    if (!m)
        abort();
    m->options = options;
    uint64_t n_vocabulary_keys = toy_vocabulary(&vocabulary, options, &m->n_vocab);
    plan_tensors(m);
    writer_begin(w, 0, 0);
    uint64_t n_keys = put_split_keys(w, m, part);
    if (part == 0) {
        n_keys += put_shape_keys(w, options) + n_vocabulary_keys;
        writer_put(w, vocabulary.bytes, vocabulary.n);
    }
    writer_patch_u64(w, WRITER_AT_N_KEYS, n_keys);
    put_tensors(w, m, part);
    writer_free(&vocabulary);
    free(m);
}

void toy_write(const char *path, const toy_options *options)
{
    static const char first_suffix[] = "-00001-of-00001.gguf"; /* its length is every suffix's */
    size_t n_stem = strlen(path);
    if (options->n_parts > 1)
        n_stem -= sizeof first_suffix - 1;
    for (int32_t part = 0; part < options->n_parts; part++) {
        gguf_writer w = {0};
        char part_path[longest_path];
        toy_build(&w, options, part);
        snprintf(part_path, sizeof part_path, "%.*s", (int)n_stem, path);
        if (options->n_parts > 1)
            snprintf(part_path + n_stem, sizeof part_path - n_stem, "-%05d-of-%05d.gguf", part + 1,
                     options->n_parts);
        if (!writer_save(&w, part_path)) {
            perror(part_path);
            abort();
        }
        writer_free(&w);
    }
}
