/* Maps the names that a folder has to tensors of the file: see tensor_plan.h. */
#include "convert/tensor_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/tensor_names.h"
#include "gguf/types.h"

typedef struct planner {
    tensor_plan *plan;
    const family *family;
    const hub_folder *folder;
    uint32_t type;
    int32_t n_heads[3]; /* by role.heads */
    int64_t n_experts;
    drey_error *err;
} planner;

static bool ends_with(const char *text, const char *ending)
{
    const size_t n = strlen(text), n_ending = strlen(ending);
    return n >= n_ending && strcmp(text + n - n_ending, ending) == 0;
}

/* ---- One tensor ---- */

/* Small tensors, and those whose numbers decide much, stay as exact as they are. */
static bool stays_f32(const made_tensor *t)
{
    static const char *const endings[] = {"_norm.weight",          "ffn_gate_inp.weight",
                                          "ssm_conv1d.weight",     "ffn_gate_inp_shexp.weight",
                                          "shortconv.conv.weight", "position_embd.weight"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_with(t->name, endings[i]))
            return true;
    return t->n_dims == 1 || !ends_with(t->name, ".weight");
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

/* Tensors that a name with a %d stands for. */
static int64_t n_numbered(const planner *p, const role *r)
{
    return r->heads != HEADS_NONE ? p->n_heads[r->heads] : p->n_experts;
}

/* Convolutions have a dimension of 1 in the middle, a bias of one row in front. */
static void set_dims(made_tensor *t, const safetensor *first, bool turned)
{
    for (int32_t i = 0; i < first->n_dims; i++)
        t->dims[t->n_dims++] = first->dims[turned ? i : first->n_dims - 1 - i];
    if (t->n_dims == 3 && t->dims[1] == 1)
        t->dims[--t->n_dims - 1] = t->dims[2];
    if (t->n_dims == 2 && t->dims[1] == 1 && ends_with(t->name, ".bias"))
        t->n_dims = 1;
}

static drey_status set_order(const planner *p, made_tensor *t, const role *r, const char *name)
{
    t->decays = r->heads == DECAYS_V;
    t->orders_columns = r->heads == COLUMNS_V;
    const int64_t n = t->n_dims == 1 || t->orders_columns ? t->dims[0] : t->dims[1];
    TRY(row_order_make(&t->order, p->family, p->folder, r->heads, n, name, p->err));
    if (t->order.rows && !t->orders_columns)
        t->dims[t->n_dims == 1 ? 0 : 1] = t->order.n;
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
    snprintf(t.name, sizeof t.name, "%s", to);
    for (int64_t i = 0; i < (experts ? n_numbered(p, r) : 1) && there; i++) {
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
    const bool narrow = first->n_dims == 3 && first->dims[1] == 1 && !r->turned;
    if (first->n_dims < 1 || (first->n_dims > 2 && !narrow) || (r->turned && first->n_dims != 2))
        FAIL(p->err, DREY_ERR_UNSUPPORTED, "tensor %s has %d dimensions, which is not converted",
             name, first->n_dims);
    set_dims(&t, first, r->turned);
    if (r->turned)
        t.slice = (row_slice){1, first->dims[1], first->dims[0], 0, 1, first->dims[1]};
    if (experts)
        t.dims[t.n_dims++] = t.n_pieces;
    TRY(skip_rows(p, &t, name));
    if (r->heads <= HEADS_K && !experts)
        t.n_heads = family_permutes(p->family) ? p->n_heads[r->heads] : 0;
    if (p->family->norms_from_1 && ends_with(to, "norm.weight") &&
        !ends_with(to, "ssm_norm.weight"))
        t.added = 1;
    TRY(check_heads(p, &t, name));
    TRY(set_order(p, &t, r, name));
    drey_status status = add_tensor(p, &t);
    if (status != DREY_OK)
        free(t.order.rows);
    return status;
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
    snprintf(other, sizeof other, "%.*s_scales", (int)(strlen(name) - strlen(FUSED_BLOCKS)), name);
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
static bool is_replaced(const role *r, const role *own)
{
    for (; own && own->from; own++)
        if (strcmp(own->from, r->from) == 0)
            return true;
    return false;
}

/* from: the layer's prefix in the folder. */
static drey_status plan_layer(const planner *p, const char *layer_from, naming n, int64_t layer)
{
    const naming_scheme *names = &naming_schemes[n];
    const family *a = p->family;
    const role *lists[] = {names->layer_roles, a->own ? a->own : names->own};
    char layer_to[32], from[SAFETENSORS_MOST_NAME], to[64];
    snprintf(layer_to, sizeof layer_to, "%sblk.%lld.", names->to ? names->to : "",
             (long long)layer);
    for (int i = 0; i < 2; i++)
        for (const role *r = lists[i]; r && r->from; r++) {
            if (i == 0 && is_replaced(r, lists[1]))
                continue;
            const bool renamed = a->arch->post_is_ffn_norm && i == 0 &&
                                 strcmp(r->from, "post_attention_layernorm.weight") == 0;
            snprintf(from, sizeof from, "%s%s", layer_from, r->from);
            snprintf(to, sizeof to, "%s%s", layer_to,
                     renamed ? "post_attention_norm.weight" : r->to);
            TRY(plan_role(p, r, from, to));
        }
    for (const fused_role *r = a->fused ? a->fused : fused_roles; r->from; r++) {
        snprintf(from, sizeof from, "%s%s", layer_from, r->from);
        snprintf(to, sizeof to, "%s%s", layer_to, r->to);
        TRY(plan_fused(p, r, from, to));
    }
    return DREY_OK;
}

static drey_status plan_numbered(const planner *p, const char *prefix, naming n, int64_t layer)
{
    char from[SAFETENSORS_MOST_NAME];
    snprintf(from, sizeof from, "%s%s.%lld.", prefix, naming_schemes[n].layer, (long long)layer);
    return plan_layer(p, from, n, layer);
}

/* Returns whether the head is the embedding; a head in the folder is then of no use. It is where
 * config.json says so. Where it does not say, Gemma's, T5's and BART's is, and of others a head
 * that is there is used. A tied head of T5 is one whose logits are scaled: a file without a head
 * says so. */
static bool is_tied(const planner *p)
{
    bool usual = p->family->naming == NAMING_GEMMA || p->family->arch->encoder;
    bool tied = config_bool(p->folder, "tie_word_embeddings", usual);
    if (p->family->naming == NAMING_T5)
        return !p->family->plain_head && config_bool(p->folder, "scale_decoder_outputs", tied);
    return tied;
}

/* Returns whether the tensor is known to be of no use to a GGUF file. */
static bool is_useless(const planner *p, const char *name)
{
    static const char *const endings[] = {".rotary_emb.inv_freq", ".attn.bias",
                                          ".attn.masked_bias"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_with(name, endings[i]))
            return true;
    if (p->family->arch->encoder && strstr(name, "embed_tokens.weight"))
        return true; /* the shared one once more */
    return is_tied(p) && strcmp(name, "lm_head.weight") == 0;
}

/* Returns whether the tensor has no part in a text: those of images and sounds, and blocks for
 * multi-token prediction of which the family's files have none. */
static bool is_left_out(const char *name)
{
    static const char *const begins[] = {"visual.",
                                         "vision_tower.",
                                         "vision_model.",
                                         "multi_modal_projector.",
                                         "audio_tower.",
                                         "embed_vision.",
                                         "embed_audio.",
                                         "vit_large_projector.",
                                         "mtp.",
                                         "mtp_block.",
                                         "mtp_emb_norm.",
                                         "mtp_hidden_norm.",
                                         "mtp_linear_proj.",
                                         "patch_merger."};
    name += strncmp(name, "model.", 6) == 0 ? 6 : 0;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

static drey_status check_all_taken(const planner *p)
{
    for (int32_t i = 0; i < p->folder->n_parts; i++) {
        const safetensors *s = &p->folder->parts[i].header;
        for (uint64_t k = 0; k < s->n; k++)
            if (!s->tensors[k].taken && is_left_out(s->tensors[k].name))
                p->plan->n_left_out++;
            else if (!s->tensors[k].taken && !is_useless(p, s->tensors[k].name))
                FAIL(p->err, DREY_ERR_UNSUPPORTED, "tensor %s is not one that drey knows of a %s",
                     s->tensors[k].name, p->family->name);
    }
    return DREY_OK;
}

/* Checks that there is a head if config.json says that it is not the embedding. */
static drey_status check_head(const planner *p)
{
    int32_t part;
    if (!config_bool(p->folder, "tie_word_embeddings", true) &&
        !folder_find(p->folder, "lm_head.weight", &part) &&
        !folder_find(p->folder, "output.weight", &part))
        FAIL(p->err, DREY_ERR_FORMAT,
             "tensor lm_head.weight is missing, and tie_word_embeddings "
             "is false; fetch the model again");
    return DREY_OK;
}

const made_tensor *tensor_plan_find(const tensor_plan *p, const char *name)
{
    for (int64_t i = 0; i < p->n; i++)
        if (strcmp(p->tensors[i].name, name) == 0)
            return &p->tensors[i];
    return NULL;
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
        const role *r = &naming_schemes[n].ends[i];
        if (!r->from || tensor_plan_find(p->plan, r->to))
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
        TRY(plan_numbered(p, prefix, n, i));
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

/* The blocks for multi-token prediction, which follow the layers. Some folders count them as
 * layers, others have them by another name. */
static drey_status plan_mtp(const planner *p, int64_t n_layers, int64_t n_blocks)
{
    char from[SAFETENSORS_MOST_NAME], to[64];
    for (int64_t i = 0; i < n_blocks; i++) {
        TRY(plan_numbered(p, "", p->family->naming, n_layers + i));
        snprintf(from, sizeof from, "%s.%lld.", mtp_layer, (long long)i);
        TRY(plan_layer(p, from, p->family->naming, n_layers + i));
        for (const role *r = mtp_roles; r->from && i == 0; r++) {
            snprintf(to, sizeof to, "blk.%lld.%s", (long long)n_layers, r->to);
            TRY(plan_role(p, r, r->from, to));
        }
    }
    return DREY_OK;
}

static drey_status read_counts(planner *p, int64_t *n_layers)
{
    int64_t n_heads, n_heads_k;
    bool there;
    TRY(config_require(p->folder, "num_hidden_layers|n_layer", 1, 1024, n_layers, p->err));
    TRY(config_require(p->folder, "num_attention_heads|n_head", 1, 1024, &n_heads, p->err));
    n_heads_k = n_heads;
    TRY(config_int(p->folder, CONFIG_KEY_HEADS, 1, 1024, &n_heads_k, &there, p->err));
    TRY(config_int(p->folder, CONFIG_EXPERTS, 1, 4096, &p->n_experts, &there, p->err));
    p->n_heads[HEADS_Q] = (int32_t)n_heads;
    p->n_heads[HEADS_K] = (int32_t)n_heads_k;
    return DREY_OK;
}

static drey_status plan_all(planner *p, const rope_factors *factors)
{
    const naming n = p->family->naming;
    int64_t n_layers;
    int32_t part;
    if (p->family->arch->encoder)
        return plan_halves(p);
    TRY(read_counts(p, &n_layers));
    bool whole = n == NAMING_GPT2 && folder_find(p->folder, "transformer.wte.weight", &part);
    const char *prefix = whole ? "transformer." : "";
    const int n_front = n == NAMING_GPT2 ? 2 : n == NAMING_LLAMA ? 3 : 1;
    TRY(check_head(p));
    TRY(plan_ends(p, prefix, n, 0, n_front));
    TRY(plan_factors(p, factors));
    for (int64_t i = 0; i < n_layers; i++)
        TRY(plan_numbered(p, prefix, n, i));
    TRY(plan_mtp(p, n_layers, family_mtp_blocks(p->family, p->folder)));
    TRY(plan_ends(p, prefix, n, n_front, MOST_ENDS));
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
    for (int64_t i = 0; i < p->n; i++)
        free(p->tensors[i].order.rows);
    free(p->tensors);
    free(p->pieces);
    *p = (tensor_plan){0};
}
