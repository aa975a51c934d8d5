/* Names of tensors, here and there: see tensor_plan.h.
 *
 * Folder: the names of Hugging Face transformers. File: those of llama.cpp
 * (gguf-py's constants). */
#include "convert/tensor_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/types.h"

enum { HEADS_NONE, HEADS_Q, HEADS_K };
enum { MOST_ENDS = 8 };

typedef struct role {
    const char *from, *to; /* after the layer's prefix; of experts with a %d */
    int heads;             /* whose rows are permuted, where the family's are */
    bool turned;
} role;

static const role llama_layer[] = {
    {"input_layernorm.weight", "attn_norm.weight", 0, false},
    {"self_attn.q_proj.weight", "attn_q.weight", HEADS_Q, false},
    {"self_attn.q_proj.bias", "attn_q.bias", HEADS_Q, false},
    {"self_attn.k_proj.weight", "attn_k.weight", HEADS_K, false},
    {"self_attn.k_proj.bias", "attn_k.bias", HEADS_K, false},
    {"self_attn.v_proj.weight", "attn_v.weight", 0, false},
    {"self_attn.v_proj.bias", "attn_v.bias", 0, false},
    {"self_attn.qkv_proj.weight", "attn_qkv.weight", 0, false},
    {"self_attn.q_norm.weight", "attn_q_norm.weight", 0, false},
    {"self_attn.k_norm.weight", "attn_k_norm.weight", 0, false},
    {"self_attn.o_proj.weight", "attn_output.weight", 0, false},
    {"self_attn.o_proj.bias", "attn_output.bias", 0, false},
    {"post_attention_layernorm.weight", "ffn_norm.weight", 0, false},
    {"block_sparse_moe.gate.weight", "ffn_gate_inp.weight", 0, false},
    {"block_sparse_moe.experts.%d.w1.weight", "ffn_gate_exps.weight", 0, false},
    {"block_sparse_moe.experts.%d.w3.weight", "ffn_up_exps.weight", 0, false},
    {"block_sparse_moe.experts.%d.w2.weight", "ffn_down_exps.weight", 0, false},
    {"mlp.gate.weight", "ffn_gate_inp.weight", 0, false},
    {"mlp.experts.%d.gate_proj.weight", "ffn_gate_exps.weight", 0, false},
    {"mlp.experts.%d.up_proj.weight", "ffn_up_exps.weight", 0, false},
    {"mlp.experts.%d.down_proj.weight", "ffn_down_exps.weight", 0, false},
    {"mlp.shared_expert_gate.weight", "ffn_gate_inp_shexp.weight", 0, false},
    {"mlp.shared_expert.gate_proj.weight", "ffn_gate_shexp.weight", 0, false},
    {"mlp.shared_expert.up_proj.weight", "ffn_up_shexp.weight", 0, false},
    {"mlp.shared_expert.down_proj.weight", "ffn_down_shexp.weight", 0, false},
    {"mlp.gate_proj.weight", "ffn_gate.weight", 0, false},
    {"mlp.gate_proj.bias", "ffn_gate.bias", 0, false},
    {"mlp.gate_up_proj.weight", "ffn_up.weight", 0, false},
    {"mlp.up_proj.weight", "ffn_up.weight", 0, false},
    {"mlp.up_proj.bias", "ffn_up.bias", 0, false},
    {"mlp.down_proj.weight", "ffn_down.weight", 0, false},
    {"mlp.down_proj.bias", "ffn_down.bias", 0, false},
    {0}};

/* The same, and what Gemma's layers have instead. */
static const role gemma_layer[] = {
    {"post_attention_layernorm.weight", "post_attention_norm.weight", 0, false},
    {"pre_feedforward_layernorm.weight", "ffn_norm.weight", 0, false},
    {"post_feedforward_layernorm.weight", "post_ffw_norm.weight", 0, false},
    {0}};

static const role gpt2_layer[] = {{"ln_1.weight", "attn_norm.weight", 0, false},
                                  {"ln_1.bias", "attn_norm.bias", 0, false},
                                  {"attn.c_attn.weight", "attn_qkv.weight", 0, true},
                                  {"attn.c_attn.bias", "attn_qkv.bias", 0, false},
                                  {"attn.c_proj.weight", "attn_output.weight", 0, true},
                                  {"attn.c_proj.bias", "attn_output.bias", 0, false},
                                  {"ln_2.weight", "ffn_norm.weight", 0, false},
                                  {"ln_2.bias", "ffn_norm.bias", 0, false},
                                  {"mlp.c_fc.weight", "ffn_up.weight", 0, true},
                                  {"mlp.c_fc.bias", "ffn_up.bias", 0, false},
                                  {"mlp.c_proj.weight", "ffn_down.weight", 0, true},
                                  {"mlp.c_proj.bias", "ffn_down.bias", 0, false},
                                  {0}};

/* Of models with an encoder. */
#define ROLE(from, to)                                                                             \
    {                                                                                              \
        from, to, 0, false                                                                         \
    }
#define WITH_BIAS(from, to) ROLE(from ".weight", to ".weight"), ROLE(from ".bias", to ".bias")

/* Layers of T5: attention to itself, and then what the two halves have each. */
static const role t5_layer[] = {
    ROLE("layer.0.layer_norm.weight", "attn_norm.weight"),
    ROLE("layer.0.SelfAttention.q.weight", "attn_q.weight"),
    ROLE("layer.0.SelfAttention.k.weight", "attn_k.weight"),
    ROLE("layer.0.SelfAttention.v.weight", "attn_v.weight"),
    ROLE("layer.0.SelfAttention.o.weight", "attn_o.weight"),
    ROLE("layer.0.SelfAttention.relative_attention_bias.weight", "attn_rel_b.weight"),
    {0}};

static const role t5_encoder[] = {ROLE("layer.1.layer_norm.weight", "ffn_norm.weight"),
                                  ROLE("layer.1.DenseReluDense.wi.weight", "ffn_up.weight"),
                                  ROLE("layer.1.DenseReluDense.wi_0.weight", "ffn_gate.weight"),
                                  ROLE("layer.1.DenseReluDense.wi_1.weight", "ffn_up.weight"),
                                  ROLE("layer.1.DenseReluDense.wo.weight", "ffn_down.weight"),
                                  {0}};

static const role t5_decoder[] = {
    ROLE("layer.1.layer_norm.weight", "cross_attn_norm.weight"),
    ROLE("layer.1.EncDecAttention.q.weight", "cross_attn_q.weight"),
    ROLE("layer.1.EncDecAttention.k.weight", "cross_attn_k.weight"),
    ROLE("layer.1.EncDecAttention.v.weight", "cross_attn_v.weight"),
    ROLE("layer.1.EncDecAttention.o.weight", "cross_attn_o.weight"),
    ROLE("layer.1.EncDecAttention.relative_attention_bias.weight", "cross_attn_rel_b.weight"),
    ROLE("layer.2.layer_norm.weight", "ffn_norm.weight"),
    ROLE("layer.2.DenseReluDense.wi.weight", "ffn_up.weight"),
    ROLE("layer.2.DenseReluDense.wi_0.weight", "ffn_gate.weight"),
    ROLE("layer.2.DenseReluDense.wi_1.weight", "ffn_up.weight"),
    ROLE("layer.2.DenseReluDense.wo.weight", "ffn_down.weight"),
    {0}};

static const role bart_layer[] = {WITH_BIAS("self_attn.q_proj", "attn_q"),
                                  WITH_BIAS("self_attn.k_proj", "attn_k"),
                                  WITH_BIAS("self_attn.v_proj", "attn_v"),
                                  WITH_BIAS("self_attn.out_proj", "attn_o"),
                                  WITH_BIAS("self_attn_layer_norm", "attn_norm"),
                                  WITH_BIAS("fc1", "ffn_up"),
                                  WITH_BIAS("fc2", "ffn_down"),
                                  WITH_BIAS("final_layer_norm", "ffn_norm"),
                                  {0}};

static const role bart_decoder[] = {WITH_BIAS("encoder_attn.q_proj", "cross_attn_q"),
                                    WITH_BIAS("encoder_attn.k_proj", "cross_attn_k"),
                                    WITH_BIAS("encoder_attn.v_proj", "cross_attn_v"),
                                    WITH_BIAS("encoder_attn.out_proj", "cross_attn_o"),
                                    WITH_BIAS("encoder_attn_layer_norm", "cross_attn_norm"),
                                    {0}};

/* Encoder and decoder have one embedding, which a folder may have by any of these names, or more
 * than once. T5's is the head as well, where the folder has no other. */
#define SHARED(to)                                                                                 \
    ROLE("shared.weight", to), ROLE("encoder.embed_tokens.weight", to),                            \
        ROLE("decoder.embed_tokens.weight", to)

static const struct {
    role ends[MOST_ENDS]; /* before and after the layers */
    const char *layer;    /* the prefix of one */
    const role *layer_roles, *instead;
    const char *to; /* in front of a layer's names in the file; NULL: nothing */
} schemes[] = {
    [NAMING_LLAMA] = {{{"model.embed_tokens.weight", "token_embd.weight", 0, false},
                       {"model.norm.weight", "output_norm.weight", 0, false},
                       {"lm_head.weight", "output.weight", 0, false},
                       {"lm_head.bias", "output.bias", 0, false}},
                      "model.layers",
                      llama_layer,
                      NULL,
                      NULL},
    [NAMING_GEMMA] = {{{"model.embed_tokens.weight", "token_embd.weight", 0, false},
                       {"model.norm.weight", "output_norm.weight", 0, false},
                       {"lm_head.weight", "output.weight", 0, false}},
                      "model.layers",
                      llama_layer,
                      gemma_layer,
                      NULL},
    [NAMING_GPT2] = {{{"wte.weight", "token_embd.weight", 0, false},
                      {"wpe.weight", "position_embd.weight", 0, false},
                      {"ln_f.weight", "output_norm.weight", 0, false},
                      {"ln_f.bias", "output_norm.bias", 0, false},
                      {"lm_head.weight", "output.weight", 0, false}},
                     "h",
                     gpt2_layer,
                     NULL,
                     NULL},
    [NAMING_T5] = {{SHARED("token_embd.weight"),
                    ROLE("encoder.final_layer_norm.weight", "enc.output_norm.weight"),
                    ROLE("lm_head.weight", "output.weight"), SHARED("output.weight")},
                   "encoder.block",
                   t5_layer,
                   t5_encoder,
                   "enc."},
    [NAMING_T5_DECODER] = {{ROLE("decoder.final_layer_norm.weight", "dec.output_norm.weight")},
                           "decoder.block",
                           t5_layer,
                           t5_decoder,
                           "dec."},
    [NAMING_BART] = {{SHARED("token_embd.weight"), ROLE("lm_head.weight", "output.weight"),
                      ROLE("final_logits_bias", "output.bias"),
                      ROLE("encoder.embed_positions.weight", "enc.position_embd.weight"),
                      WITH_BIAS("encoder.layernorm_embedding", "enc.token_embd_norm")},
                     "encoder.layers",
                     bart_layer,
                     NULL,
                     "enc."},
    [NAMING_BART_DECODER] = {{ROLE("decoder.embed_positions.weight", "dec.position_embd.weight"),
                              WITH_BIAS("decoder.layernorm_embedding", "dec.token_embd_norm")},
                             "decoder.layers",
                             bart_layer,
                             bart_decoder,
                             "dec."},
};

typedef struct planner {
    tensor_plan *plan;
    const family *family;
    const hub_folder *folder;
    uint32_t type;
    int32_t n_heads[3]; /* by role.heads */
    int64_t n_experts;
    drey_error *err;
} planner;

/* ---- One tensor ---- */

/* Small tensors, and those whose numbers decide much, stay as exact as they are. */
static bool stays_f32(const made_tensor *t)
{
    static const char *const endings[] = {"_norm.weight", "ffn_gate_inp.weight",
                                          "ffn_gate_inp_shexp.weight", "position_embd.weight"};
    size_t n = strlen(t->name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n_ending = strlen(endings[i]);
        if (n >= n_ending && strcmp(t->name + n - n_ending, endings[i]) == 0)
            return true;
    }
    return t->n_dims == 1 || n < 7 || strcmp(t->name + n - 7, ".weight") != 0;
}

static void set_type(const planner *p, made_tensor *t)
{
    t->type = stays_f32(t) ? TYPE_F32 : p->type;
    if (t->dims[0] % type_find(t->type)->block_elements != 0)
        t->type = TYPE_F16;
    t->n_bytes = (uint64_t)type_row_bytes(type_find(t->type), t->dims[0]);
    for (int32_t i = 1; i < t->n_dims; i++)
        t->n_bytes *= (uint64_t)t->dims[i];
}

static drey_status add_tensor(const planner *p, const made_tensor *t)
{
    tensor_plan *plan = p->plan;
    if (plan->n == plan->capacity) {
        int64_t capacity = 2 * plan->capacity + 64;
        made_tensor *grown = realloc(plan->tensors, (size_t)capacity * sizeof *grown);
        if (!grown)
            FAIL(p->err, DREY_ERR_MEMORY, "no memory for a list of tensors");
        plan->tensors = grown;
        plan->capacity = capacity;
    }
    plan->tensors[plan->n] = *t;
    set_type(p, &plan->tensors[plan->n++]);
    return DREY_OK;
}

static drey_status add_piece(const planner *p, made_tensor *t, const char *name, bool *there)
{
    tensor_plan *plan = p->plan;
    int32_t part = 0;
    safetensor *from = folder_find(p->folder, name, &part);
    *there = from != NULL;
    if (!from)
        return DREY_OK;
    if (from->type == NUMBER_OTHER)
        FAIL(p->err, DREY_ERR_UNSUPPORTED, "tensor %s is %s, where F32, F16 and BF16 are converted",
             name, from->type_name);
    if (plan->n_pieces == plan->piece_capacity) {
        int64_t capacity = 2 * plan->piece_capacity + 64;
        tensor_piece *grown = realloc(plan->pieces, (size_t)capacity * sizeof *grown);
        if (!grown)
            FAIL(p->err, DREY_ERR_MEMORY, "no memory for a list of tensors");
        plan->pieces = grown;
        plan->piece_capacity = capacity;
    }
    const tensor_piece *first = &plan->pieces[t->first_piece];
    if (t->n_pieces > 0 && (from->n_dims != first->from->n_dims ||
                            memcmp(from->dims, first->from->dims, sizeof from->dims) != 0))
        FAIL(p->err, DREY_ERR_FORMAT, "tensor %s has another shape than that of the first expert",
             name);
    from->taken = true;
    plan->pieces[plan->n_pieces++] = (tensor_piece){from, part};
    t->n_pieces++;
    return DREY_OK;
}

/* Rows of heads change places in pairs. */
static drey_status check_heads(const planner *p, const made_tensor *t, const char *name)
{
    int64_t rows = t->n_dims == 1 ? t->dims[0] : t->dims[1];
    if (t->n_heads > 0 && rows % (2 * (int64_t)t->n_heads) != 0)
        FAIL(p->err, DREY_ERR_FORMAT, "the %lld rows of tensor %s are not those of %d heads",
             (long long)rows, name, t->n_heads);
    return DREY_OK;
}

/* BART's positions have rows for padding in front, which no text has. */
static drey_status skip_rows(const planner *p, made_tensor *t, const char *name)
{
    if (p->family->skipped_positions == 0 || !strstr(t->name, ".position_embd."))
        return DREY_OK;
    t->n_skipped = p->family->skipped_positions;
    if (t->n_dims != 2 || t->dims[1] <= t->n_skipped)
        FAIL(p->err, DREY_ERR_FORMAT, "tensor %s has no more than %d rows; fetch the model again",
             name, t->n_skipped);
    t->dims[1] -= t->n_skipped;
    return DREY_OK;
}

/* A tensor of one of the folder's, or of one for each expert; nothing, where the folder has none.
 * to: its name in the file. */
static drey_status plan_role(const planner *p, const role *r, const char *from, const char *to)
{
    made_tensor t = {.first_piece = p->plan->n_pieces, .turned = r->turned};
    char name[SAFETENSORS_MOST_NAME];
    const char *mark = strstr(from, "%d");
    bool there = true, experts = mark != NULL;
    for (int64_t i = 0; i < (experts ? p->n_experts : 1) && there; i++) {
        if (experts)
            snprintf(name, sizeof name, "%.*s%lld%s", (int)(mark - from), from, (long long)i,
                     mark + 2);
        else
            snprintf(name, sizeof name, "%s", from);
        TRY(add_piece(p, &t, name, &there));
    }
    if (experts && !there && t.n_pieces > 0)
        FAIL(p->err, DREY_ERR_FORMAT, "tensor %s is missing; fetch the model again", name);
    if (t.n_pieces == 0)
        return DREY_OK;
    const safetensor *first = p->plan->pieces[t.first_piece].from;
    if (first->n_dims < 1 || first->n_dims > 2 || (r->turned && first->n_dims != 2))
        FAIL(p->err, DREY_ERR_UNSUPPORTED, "tensor %s has %d dimensions, which is not converted",
             name, first->n_dims);
    for (int32_t i = 0; i < first->n_dims; i++)
        t.dims[t.n_dims++] = first->dims[r->turned ? i : first->n_dims - 1 - i];
    if (experts)
        t.dims[t.n_dims++] = t.n_pieces;
    snprintf(t.name, sizeof t.name, "%s", to);
    TRY(skip_rows(p, &t, name));
    if (t.n_dims == 2 && t.dims[1] == 1 && strcmp(to, "output.bias") == 0)
        t.n_dims = 1; /* BART's is a matrix of one row */
    t.n_heads = p->family->permuted ? p->n_heads[r->heads] : 0;
    size_t n = strlen(from);
    if (p->family->norms_from_1 && n > 11 && strcmp(from + n - 11, "norm.weight") == 0)
        t.added = 1;
    TRY(check_heads(p, &t, name));
    return add_tensor(p, &t);
}

/* ---- All of them ---- */

/* Instead of this one there is another. */
static bool is_replaced(const role *r, const role *instead)
{
    for (; instead && instead->from; instead++)
        if (strcmp(instead->from, r->from) == 0)
            return true;
    return false;
}

static drey_status plan_layer(const planner *p, const char *prefix, naming n, int64_t layer)
{
    const role *lists[] = {schemes[n].layer_roles, schemes[n].instead};
    const char *front = schemes[n].to ? schemes[n].to : "";
    char from[SAFETENSORS_MOST_NAME], to[64];
    for (int i = 0; i < 2; i++)
        for (const role *r = lists[i]; r && r->from; r++) {
            if (i == 0 && is_replaced(r, lists[1]))
                continue;
            snprintf(from, sizeof from, "%s%s.%lld.%s", prefix, schemes[n].layer, (long long)layer,
                     r->from);
            snprintf(to, sizeof to, "%sblk.%lld.%s", front, (long long)layer, r->to);
            TRY(plan_role(p, r, from, to));
        }
    return DREY_OK;
}

/* Whether the head is the embedding; what the folder has as one is then of no use. Gemma's, T5's
 * and BART's is, unless config.json says otherwise; of others a head that is there is used. A tied
 * head of T5 is one whose logits are scaled: a file without a head says so. */
static bool is_tied(const planner *p)
{
    bool tied = config_bool(p->folder, "tie_word_embeddings", true);
    if (p->family->naming == NAMING_T5)
        return !p->family->plain_head && config_bool(p->folder, "scale_decoder_outputs", tied);
    bool usual = p->family->naming == NAMING_GEMMA || p->family->encoder;
    return usual && tied;
}

/* Whether it is known to be of no use to a GGUF file. */
static bool is_useless(const planner *p, const char *name)
{
    static const char *const endings[] = {".rotary_emb.inv_freq", ".attn.bias",
                                          ".attn.masked_bias"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (n > strlen(endings[i]) && strcmp(name + n - strlen(endings[i]), endings[i]) == 0)
            return true;
    if (p->family->encoder && strstr(name, "embed_tokens.weight"))
        return true; /* the shared one once more */
    return is_tied(p) && strcmp(name, "lm_head.weight") == 0;
}

static drey_status check_all_taken(const planner *p)
{
    for (int32_t i = 0; i < p->folder->n_parts; i++) {
        const safetensors *s = &p->folder->parts[i].header;
        for (uint64_t k = 0; k < s->n; k++)
            if (!s->tensors[k].taken && !is_useless(p, s->tensors[k].name))
                FAIL(p->err, DREY_ERR_UNSUPPORTED, "tensor %s is not one that drey knows of a %s",
                     s->tensors[k].name, p->family->name);
    }
    return DREY_OK;
}

/* Where config.json says that the head is not the embedding, it has to be there. */
static drey_status check_head(const planner *p)
{
    int32_t part;
    if (!config_bool(p->folder, "tie_word_embeddings", true) &&
        !folder_find(p->folder, "lm_head.weight", &part))
        FAIL(p->err, DREY_ERR_FORMAT,
             "tensor lm_head.weight is missing, and tie_word_embeddings "
             "is false; fetch the model again");
    return DREY_OK;
}

static bool is_planned(const planner *p, const char *name)
{
    for (int64_t i = 0; i < p->plan->n; i++)
        if (strcmp(p->plan->tensors[i].name, name) == 0)
            return true;
    return false;
}

/* BART's head has a bias that training leaves at zero: the file is then without it. */
static drey_status drop_zeros(const planner *p, const char *name, bool *dropped)
{
    int32_t part;
    safetensor *t = folder_find(p->folder, name, &part);
    *dropped = false;
    if (!t)
        return DREY_OK;
    uint8_t *bytes = malloc(t->n_bytes);
    if (!bytes)
        FAIL(p->err, DREY_ERR_MEMORY, "no memory for tensor %s", name);
    drey_status status = folder_read(p->folder, part, t->offset, t->n_bytes, bytes, p->err);
    uint8_t any = 0;
    for (uint64_t i = 0; status == DREY_OK && i < t->n_bytes; i++)
        any |= bytes[i];
    free(bytes);
    t->taken = *dropped = status == DREY_OK && any == 0;
    return status;
}

static drey_status plan_ends(const planner *p, const char *prefix, naming n, int first, int last)
{
    char from[SAFETENSORS_MOST_NAME];
    for (int i = first; i < last; i++) {
        const role *r = &schemes[n].ends[i];
        if (!r->from || is_planned(p, r->to))
            continue;
        bool bias = strcmp(r->from, "final_logits_bias") == 0, dropped = false;
        if (bias)
            TRY(drop_zeros(p, r->from, &dropped));
        if (dropped)
            continue;
        bool head = strncmp(r->from, "lm_head", 7) == 0;
        if (is_tied(p) && (head || strcmp(r->to, "output.weight") == 0))
            continue;
        snprintf(from, sizeof from, "%s%s", head || bias ? "" : prefix, r->from);
        TRY(plan_role(p, r, from, r->to));
    }
    return DREY_OK;
}

static drey_status plan_factors(const planner *p, const rope_factors *factors)
{
    for (int i = 0; i < MOST_ROPE_FACTORS; i++) {
        if (!factors[i].name)
            continue;
        made_tensor t = {.n_dims = 1, .dims = {factors[i].n}, .values = factors[i].values};
        snprintf(t.name, sizeof t.name, "%s", factors[i].name);
        TRY(add_tensor(p, &t));
    }
    return DREY_OK;
}

/* Half of a model with an encoder. */
static drey_status plan_half(planner *p, const char *prefix, naming n, int64_t n_layers)
{
    TRY(plan_ends(p, prefix, n, 0, MOST_ENDS));
    for (int64_t i = 0; i < n_layers; i++)
        TRY(plan_layer(p, prefix, n, i));
    return DREY_OK;
}

static drey_status plan_halves(planner *p)
{
    const naming n = p->family->naming;
    int64_t n_layers, n_decoder;
    int32_t part;
    bool there;
    TRY(config_require(p->folder, "num_layers|encoder_layers", 1, 1024, &n_layers, p->err));
    n_decoder = n_layers;
    TRY(config_int(p->folder, "num_decoder_layers|decoder_layers", 1, 1024, &n_decoder, &there,
                   p->err));
    bool whole = folder_find(p->folder, "model.encoder.embed_positions.weight", &part);
    const char *prefix = whole ? "model." : "";
    TRY(check_head(p));
    TRY(plan_half(p, prefix, n, n_layers));
    TRY(plan_half(p, prefix, n + 1, n_decoder));
    return check_all_taken(p);
}

static drey_status plan_all(planner *p, const rope_factors *factors)
{
    const naming n = p->family->naming;
    int64_t n_layers, n_heads, n_heads_k;
    int32_t part;
    bool there;
    if (p->family->encoder)
        return plan_halves(p);
    TRY(config_require(p->folder, "num_hidden_layers|n_layer", 1, 1024, &n_layers, p->err));
    TRY(config_require(p->folder, "num_attention_heads|n_head", 1, 1024, &n_heads, p->err));
    n_heads_k = n_heads;
    TRY(config_int(p->folder, "num_key_value_heads", 1, 1024, &n_heads_k, &there, p->err));
    TRY(config_int(p->folder, "num_local_experts|num_experts", 1, 4096, &p->n_experts, &there,
                   p->err));
    p->n_heads[HEADS_Q] = (int32_t)n_heads;
    p->n_heads[HEADS_K] = (int32_t)n_heads_k;
    bool whole = n == NAMING_GPT2 && folder_find(p->folder, "transformer.wte.weight", &part);
    const char *prefix = whole ? "transformer." : "";
    TRY(check_head(p));
    TRY(plan_ends(p, prefix, n, 0, n == NAMING_GPT2 ? 2 : 1));
    TRY(plan_factors(p, factors));
    for (int64_t i = 0; i < n_layers; i++)
        TRY(plan_layer(p, prefix, n, i));
    TRY(plan_ends(p, prefix, n, n == NAMING_GPT2 ? 2 : 1, MOST_ENDS));
    return check_all_taken(p);
}

drey_status tensor_plan_make(tensor_plan *p, const family *a, const hub_folder *f, uint32_t type,
                             const rope_factors factors[MOST_ROPE_FACTORS], drey_error *err)
{
    *p = (tensor_plan){0};
    planner all = {.plan = p, .family = a, .folder = f, .type = type, .err = err};
    drey_status status = plan_all(&all, factors);
    if (status != DREY_OK)
        tensor_plan_free(p);
    return status;
}

void tensor_plan_free(tensor_plan *p)
{
    free(p->tensors);
    free(p->pieces);
    *p = (tensor_plan){0};
}
