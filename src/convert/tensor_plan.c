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
    {"block_sparse_moe.router.layer.weight", "ffn_gate_inp.weight", 0, false},
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
    {"shared_mlp.output_linear.weight", "ffn_down_shexp.weight", 0, false},
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

static const role gpt_oss_layer[] = {
    {"post_attention_layernorm.weight", "post_attention_norm.weight", 0, false},
    {"self_attn.sinks", "attn_sinks.weight", 0, false},
    {"mlp.router.weight", "ffn_gate_inp.weight", 0, false},
    {"mlp.router.bias", "ffn_gate_inp.bias", 0, false},
    {0}};

/* Tensors that hold a matrix or a vector of each expert, or gate and up in one. */
typedef enum fused_form {
    FUSED_ROWS,    /* [experts][rows][columns], without experts [rows][columns] */
    FUSED_TURNED,  /* [experts][columns][rows] */
    FUSED_NUMBERS, /* [experts][rows] */
    FUSED_MXFP4    /* [experts][rows][blocks][16], and scales [experts][rows][blocks] */
} fused_form;
typedef enum fused_rows { ROWS_ALL, ROWS_FIRST, ROWS_SECOND, ROWS_EVEN, ROWS_ODD } fused_rows;

typedef struct fused_role {
    const char *from, *to;
    fused_form form;
    fused_rows rows; /* which of a group; halves are the first and the second */
} fused_role;

#define GATE_UP "mlp.experts.gate_up_proj"
#define DOWN    "mlp.experts.down_proj"
#define BLOCKS  "_blocks"
static const fused_role fused[] = {
    {"block_sparse_moe.input_linear.weight", "ffn_gate_exps.weight", FUSED_ROWS, ROWS_FIRST},
    {"block_sparse_moe.input_linear.weight", "ffn_up_exps.weight", FUSED_ROWS, ROWS_SECOND},
    {"block_sparse_moe.output_linear.weight", "ffn_down_exps.weight", FUSED_ROWS, ROWS_ALL},
    {"shared_mlp.input_linear.weight", "ffn_gate_shexp.weight", FUSED_ROWS, ROWS_FIRST},
    {"shared_mlp.input_linear.weight", "ffn_up_shexp.weight", FUSED_ROWS, ROWS_SECOND},
    {GATE_UP BLOCKS, "ffn_gate_exps.weight", FUSED_MXFP4, ROWS_EVEN},
    {GATE_UP BLOCKS, "ffn_up_exps.weight", FUSED_MXFP4, ROWS_ODD},
    {DOWN BLOCKS, "ffn_down_exps.weight", FUSED_MXFP4, ROWS_ALL},
    {GATE_UP, "ffn_gate_exps.weight", FUSED_TURNED, ROWS_EVEN},
    {GATE_UP, "ffn_up_exps.weight", FUSED_TURNED, ROWS_ODD},
    {DOWN, "ffn_down_exps.weight", FUSED_TURNED, ROWS_ALL},
    {GATE_UP "_bias", "ffn_gate_exps.bias", FUSED_NUMBERS, ROWS_EVEN},
    {GATE_UP "_bias", "ffn_up_exps.bias", FUSED_NUMBERS, ROWS_ODD},
    {DOWN "_bias", "ffn_down_exps.bias", FUSED_NUMBERS, ROWS_ALL},
    {0}};

static const struct {
    role ends[8];      /* before and after the layers */
    const char *layer; /* the prefix of one */
    const role *layer_roles, *instead;
} schemes[] = {
    [NAMING_LLAMA] = {{{"model.embed_tokens.weight", "token_embd.weight", 0, false},
                       {"model.norm.weight", "output_norm.weight", 0, false},
                       {"lm_head.weight", "output.weight", 0, false},
                       {"lm_head.bias", "output.bias", 0, false}},
                      "model.layers",
                      llama_layer,
                      NULL},
    [NAMING_GEMMA] = {{{"model.embed_tokens.weight", "token_embd.weight", 0, false},
                       {"model.norm.weight", "output_norm.weight", 0, false},
                       {"lm_head.weight", "output.weight", 0, false}},
                      "model.layers",
                      llama_layer,
                      gemma_layer},
    [NAMING_GPT_OSS] = {{{"model.embed_tokens.weight", "token_embd.weight", 0, false},
                         {"model.norm.weight", "output_norm.weight", 0, false},
                         {"lm_head.weight", "output.weight", 0, false}},
                        "model.layers",
                        llama_layer,
                        gpt_oss_layer},
    [NAMING_GPT2] = {{{"wte.weight", "token_embd.weight", 0, false},
                      {"wpe.weight", "position_embd.weight", 0, false},
                      {"ln_f.weight", "output_norm.weight", 0, false},
                      {"ln_f.bias", "output_norm.bias", 0, false},
                      {"lm_head.weight", "output.weight", 0, false}},
                     "h",
                     gpt2_layer,
                     NULL},
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
    t->type = t->packed ? TYPE_MXFP4 : stays_f32(t) ? TYPE_F32 : p->type;
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

static drey_status keep_piece(const planner *p, made_tensor *t, safetensor *from, int32_t part)
{
    tensor_plan *plan = p->plan;
    if (plan->n_pieces == plan->piece_capacity) {
        int64_t capacity = 2 * plan->piece_capacity + 64;
        tensor_piece *grown = realloc(plan->pieces, (size_t)capacity * sizeof *grown);
        if (!grown)
            FAIL(p->err, DREY_ERR_MEMORY, "no memory for a list of tensors");
        plan->pieces = grown;
        plan->piece_capacity = capacity;
    }
    from->taken = true;
    plan->pieces[plan->n_pieces++] = (tensor_piece){from, part};
    t->n_pieces++;
    return DREY_OK;
}

static drey_status add_piece(const planner *p, made_tensor *t, const char *name, bool *there)
{
    int32_t part = 0;
    safetensor *from = folder_find(p->folder, name, &part);
    *there = from != NULL;
    if (!from)
        return DREY_OK;
    if (from->type == NUMBER_OTHER)
        FAIL(p->err, DREY_ERR_UNSUPPORTED, "tensor %s is %s, where F32, F16 and BF16 are converted",
             name, from->type_name);
    const tensor_piece *first = t->n_pieces > 0 ? &p->plan->pieces[t->first_piece] : NULL;
    if (first && (from->n_dims != first->from->n_dims ||
                  memcmp(from->dims, first->from->dims, sizeof from->dims) != 0))
        FAIL(p->err, DREY_ERR_FORMAT, "tensor %s has another shape than that of the first expert",
             name);
    return keep_piece(p, t, from, part);
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
    if (r->turned)
        t.slice = (row_slice){1, first->dims[1], first->dims[0], 0, 1, first->dims[1]};
    if (experts)
        t.dims[t.n_dims++] = t.n_pieces;
    snprintf(t.name, sizeof t.name, "%s", to);
    t.n_heads = p->family->permuted ? p->n_heads[r->heads] : 0;
    size_t n = strlen(from);
    if (p->family->norms_from_1 && n > 11 && strcmp(from + n - 11, "norm.weight") == 0)
        t.added = 1;
    TRY(check_heads(p, &t, name));
    return add_tensor(p, &t);
}

/* ---- A part of a fused one ---- */

/* Bytes, which mean numbers only together with others. */
static drey_status add_bytes(const planner *p, made_tensor *t, const char *name,
                             const safetensor **out)
{
    int32_t part = 0;
    safetensor *from = folder_find(p->folder, name, &part);
    if (!from)
        FAIL(p->err, DREY_ERR_FORMAT, "tensor %s is missing; fetch the model again", name);
    if (strcmp(from->type_name, "U8") != 0)
        FAIL(p->err, DREY_ERR_UNSUPPORTED, "tensor %s is %s, where MXFP4 has U8", name,
             from->type_name);
    *out = from;
    return keep_piece(p, t, from, part);
}

/* Blocks of 32 numbers in 16 bytes, each with a scale. */
static drey_status add_blocks(const planner *p, made_tensor *t, const char *name)
{
    const safetensor *blocks, *scales;
    char other[SAFETENSORS_MOST_NAME];
    snprintf(other, sizeof other, "%.*s_scales", (int)(strlen(name) - strlen(BLOCKS)), name);
    TRY(add_bytes(p, t, name, &blocks));
    TRY(add_bytes(p, t, other, &scales));
    if (scales->n_dims != 3 || blocks->n_dims != 4 || blocks->dims[3] != 16 ||
        memcmp(scales->dims, blocks->dims, 3 * sizeof *blocks->dims) != 0)
        FAIL(p->err, DREY_ERR_FORMAT, "tensors %s and %s do not have the shapes of MXFP4",
             blocks->name, scales->name);
    return DREY_OK;
}

static drey_status find_slice(const planner *p, const fused_role *r, const safetensor *from,
                              row_slice *out)
{
    static const int32_t n_dims[] = {
        [FUSED_ROWS] = 3, [FUSED_TURNED] = 3, [FUSED_NUMBERS] = 2, [FUSED_MXFP4] = 4};
    const int64_t *d = from->dims;
    const int32_t n = from->n_dims;
    const bool alone = r->form == FUSED_ROWS && n == 2;
    if (n != n_dims[r->form] && !alone)
        FAIL(p->err, DREY_ERR_UNSUPPORTED, "tensor %s has %d dimensions, which is not converted",
             from->name, n);
    if (alone)
        *out = (row_slice){1, d[0], d[1], 0, 1, d[0]};
    else if (r->form == FUSED_TURNED)
        *out = (row_slice){d[0], d[2], d[1], 0, 1, d[2]};
    else
        *out = (row_slice){d[0], d[1], n == 2 ? 1 : n == 3 ? d[2] : 32 * d[2], 0, 1, d[1]};
    if (!alone && out->n_groups != p->n_experts)
        FAIL(p->err, DREY_ERR_FORMAT, "tensor %s has %lld experts, and config.json %lld",
             from->name, (long long)out->n_groups, (long long)p->n_experts);
    if (r->rows == ROWS_ALL)
        return DREY_OK;
    if (out->group_rows % 2 != 0)
        FAIL(p->err, DREY_ERR_FORMAT, "tensor %s has %lld rows, which are not gate and up",
             from->name, (long long)out->group_rows);
    out->n = out->group_rows / 2;
    out->step = r->rows == ROWS_EVEN || r->rows == ROWS_ODD ? 2 : 1;
    out->first = r->rows == ROWS_ODD ? 1 : r->rows == ROWS_SECOND ? out->n : 0;
    return DREY_OK;
}

/* Nothing, where the folder has none. */
static drey_status plan_fused(const planner *p, const fused_role *r, const char *from,
                              const char *to)
{
    made_tensor t = {.first_piece = p->plan->n_pieces,
                     .turned = r->form == FUSED_TURNED,
                     .packed = r->form == FUSED_MXFP4};
    int32_t part;
    bool there;
    if (!folder_find(p->folder, from, &part))
        return DREY_OK;
    TRY(t.packed ? add_blocks(p, &t, from) : add_piece(p, &t, from, &there));
    TRY(find_slice(p, r, p->plan->pieces[t.first_piece].from, &t.slice));
    if (r->form != FUSED_NUMBERS)
        t.dims[t.n_dims++] = t.slice.n_columns;
    t.dims[t.n_dims++] = t.slice.n;
    if (p->plan->pieces[t.first_piece].from->n_dims > t.n_dims || r->form == FUSED_NUMBERS)
        t.dims[t.n_dims++] = t.slice.n_groups;
    snprintf(t.name, sizeof t.name, "%s", to);
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

static drey_status plan_layer(const planner *p, const char *prefix, int64_t layer)
{
    const role *lists[] = {schemes[p->family->naming].layer_roles,
                           schemes[p->family->naming].instead};
    char from[SAFETENSORS_MOST_NAME], to[64];
    for (int i = 0; i < 2; i++)
        for (const role *r = lists[i]; r && r->from; r++) {
            if (i == 0 && is_replaced(r, lists[1]))
                continue;
            snprintf(from, sizeof from, "%s%s.%lld.%s", prefix, schemes[p->family->naming].layer,
                     (long long)layer, r->from);
            snprintf(to, sizeof to, "blk.%lld.%s", (long long)layer, r->to);
            TRY(plan_role(p, r, from, to));
        }
    for (const fused_role *r = fused; r->from; r++) {
        snprintf(from, sizeof from, "%s%s.%lld.%s", prefix, schemes[p->family->naming].layer,
                 (long long)layer, r->from);
        snprintf(to, sizeof to, "blk.%lld.%s", (long long)layer, r->to);
        TRY(plan_fused(p, r, from, to));
    }
    return DREY_OK;
}

/* Whether the head is the embedding; what the folder has as one is then of no use. Gemma's is,
 * unless config.json says otherwise; of others a head that is there is used. */
static bool is_tied(const planner *p)
{
    return p->family->naming == NAMING_GEMMA && config_bool(p->folder, "tie_word_embeddings", true);
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

static drey_status plan_ends(const planner *p, const char *prefix, int first, int last)
{
    char from[SAFETENSORS_MOST_NAME];
    for (int i = first; i < last; i++) {
        const role *r = &schemes[p->family->naming].ends[i];
        if (!r->from)
            continue;
        bool head = strncmp(r->from, "lm_head", 7) == 0;
        if (head && is_tied(p))
            continue;
        snprintf(from, sizeof from, "%s%s", head ? "" : prefix, r->from);
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

static drey_status plan_all(planner *p, const rope_factors *factors)
{
    int64_t n_layers, n_heads, n_heads_k;
    int32_t part;
    bool there;
    TRY(config_require(p->folder, "num_hidden_layers|n_layer", 1, 1024, &n_layers, p->err));
    TRY(config_require(p->folder, "num_attention_heads|n_head", 1, 1024, &n_heads, p->err));
    n_heads_k = n_heads;
    TRY(config_int(p->folder, "num_key_value_heads", 1, 1024, &n_heads_k, &there, p->err));
    TRY(config_int(p->folder, "num_local_experts|num_experts", 1, 4096, &p->n_experts, &there,
                   p->err));
    p->n_heads[HEADS_Q] = (int32_t)n_heads;
    p->n_heads[HEADS_K] = (int32_t)n_heads_k;
    bool whole =
        p->family->naming == NAMING_GPT2 && folder_find(p->folder, "transformer.wte.weight", &part);
    const char *prefix = whole ? "transformer." : "";
    TRY(check_head(p));
    TRY(plan_ends(p, prefix, 0, p->family->naming == NAMING_GPT2 ? 2 : 1));
    TRY(plan_factors(p, factors));
    for (int64_t i = 0; i < n_layers; i++)
        TRY(plan_layer(p, prefix, i));
    TRY(plan_ends(p, prefix, p->family->naming == NAMING_GPT2 ? 2 : 1, 8));
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
