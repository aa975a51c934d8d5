/* Mixtures of tensor types: see file_types.h. Numbers of file types and the tensors that get more
 * bits are facts of llama.cpp, so that a file has what its name says. */
#include "quantise/file_types.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    FILE_Q4_0 = 2,
    FILE_Q5_0 = 8,
    FILE_Q2_K = 10,
    FILE_Q3_K_S,
    FILE_Q3_K_M,
    FILE_Q3_K_L,
    FILE_Q4_K_S,
    FILE_Q4_K_M,
    FILE_Q5_K_S,
    FILE_Q5_K_M,
    FILE_Q6_K,
    FILE_IQ2_XXS,
    FILE_IQ2_XS,
    FILE_IQ3_XS = 22,
    FILE_IQ3_XXS,
    FILE_IQ4_NL = 25,
    FILE_IQ3_S,
    FILE_IQ3_M,
    FILE_IQ2_S,
    FILE_IQ2_M,
    FILE_IQ4_XS
};

/* IQ2_S has its name from the number of its bits: its matrices are IQ2_XS. */
static const file_type file_types[] = {
    {"IQ2_XXS", FILE_IQ2_XXS, TYPE_IQ2_XXS},
    {"IQ2_XS", FILE_IQ2_XS, TYPE_IQ2_XS},
    {"IQ2_S", FILE_IQ2_S, TYPE_IQ2_XS},
    {"IQ2_M", FILE_IQ2_M, TYPE_IQ2_S},
    {"IQ3_XXS", FILE_IQ3_XXS, TYPE_IQ3_XXS},
    {"IQ3_XS", FILE_IQ3_XS, TYPE_IQ3_S},
    {"IQ3_S", FILE_IQ3_S, TYPE_IQ3_S},
    {"IQ3_M", FILE_IQ3_M, TYPE_IQ3_S},
    {"Q2_K", FILE_Q2_K, TYPE_Q2_K},
    {"Q3_K_S", FILE_Q3_K_S, TYPE_Q3_K},
    {"Q3_K_M", FILE_Q3_K_M, TYPE_Q3_K},
    {"Q3_K_L", FILE_Q3_K_L, TYPE_Q3_K},
    {"IQ4_XS", FILE_IQ4_XS, TYPE_IQ4_XS},
    {"IQ4_NL", FILE_IQ4_NL, TYPE_IQ4_NL},
    {"Q4_0", FILE_Q4_0, TYPE_Q4_0},
    {"Q4_1", 3, TYPE_Q4_1},
    {"Q4_K_S", FILE_Q4_K_S, TYPE_Q4_K},
    {"Q4_K_M", FILE_Q4_K_M, TYPE_Q4_K},
    {"Q5_0", FILE_Q5_0, TYPE_Q5_0},
    {"Q5_1", 9, TYPE_Q5_1},
    {"Q5_K_S", FILE_Q5_K_S, TYPE_Q5_K},
    {"Q5_K_M", FILE_Q5_K_M, TYPE_Q5_K},
    {"Q6_K", FILE_Q6_K, TYPE_Q6_K},
    {"Q8_0", 7, TYPE_Q8_0},
    {"F16", 1, TYPE_F16},
    {"BF16", 32, TYPE_BF16},
    {"F32", 0, TYPE_F32},
};
enum { N_FILE_TYPES = sizeof file_types / sizeof *file_types };

const file_type *file_type_at(int32_t i)
{
    return i >= 0 && i < N_FILE_TYPES ? &file_types[i] : NULL;
}

const file_type *file_type_find(const char *name)
{
    for (int32_t i = 0; i < N_FILE_TYPES; i++)
        if (strcasecmp(file_types[i].name, name) == 0)
            return &file_types[i];
    return NULL;
}

static int64_t key_of(const gguf *g, const char *suffix, int64_t fallback)
{
    char name[128];
    gguf_string architecture = gguf_text(g, "general.architecture");
    snprintf(name, sizeof name, "%.*s.%s",
             (int)(architecture.n_bytes < 64 ? architecture.n_bytes : 64),
             architecture.text ? architecture.text : "", suffix);
    const gguf_key *key = gguf_find_key(g, name);
    if (key && key->kind == GGUF_ARRAY) /* a number per layer */
        return gguf_is_int(key->item_kind) && key->n_items ? gguf_item_int(key, 0) : fallback;
    return gguf_int(g, name, fallback);
}

void file_mix_init(file_mix *mix, const file_type *as, const gguf *source, bool important)
{
    int64_t n_heads = key_of(source, "attention.head_count", 1);
    int64_t n_kv = key_of(source, "attention.head_count_kv", n_heads);
    *mix = (file_mix){.as = as,
                      .source = source,
                      .important = important,
                      .n_layers = key_of(source, "block_count", 0),
                      .n_sharing = n_kv > 0 ? n_heads / n_kv : 1,
                      .n_experts = key_of(source, "expert_count", 0),
                      .tied = !gguf_find_tensor(source, "output.weight")};
}

/* ---- What a tensor is ---- */

/* Matrices that stay as they are: small, or read by something else than a product. */
static bool is_kept(const char *name)
{
    static const char *const parts[] = {
        "_norm.weight",
        "ffn_gate_inp.weight",
        "altup",
        "laurel",
        "position_embd",
        "token_types.weight",
        "ssm_conv1d",
        "shortconv.conv.weight",
        "attn_rel_b",
        "per_layer_model_proj",
        "time_mix_",
        "indexer.k_proj.weight",
        ".pos_embd",
        ".rel_pos",
        ".patch_embd",
        ".patch_merger",
        "indexer.q_proj.weight",
        "ffn_gate_tid2eid",
        "code_embd",
        "codebook",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

static bool is_matrix(const gguf_tensor *t)
{
    size_t n = strlen(t->name);
    return (t->dims[1] > 1 || t->dims[2] > 1) && n >= 6 && strcmp(t->name + n - 6, "weight") == 0 &&
           !is_kept(t->name);
}

typedef enum part {
    PART_HEAD,
    PART_EMBEDDING,
    PART_V,
    PART_QKV,
    PART_K,
    PART_Q,
    PART_OUT,
    PART_DOWN,
    PART_GATE_UP,
    PART_REST
} part;

static part part_of(const file_mix *mix, const char *name)
{
    static const struct {
        const char *within;
        part is;
    } parts[] = {{"attn_qkv.weight", PART_QKV}, {"attn_kv_b.weight", PART_V},
                 {"attn_v.weight", PART_V},     {"attn_k.weight", PART_K},
                 {"attn_q.weight", PART_Q},     {"attn_output.weight", PART_OUT},
                 {"ffn_down", PART_DOWN},       {"ffn_gate", PART_GATE_UP},
                 {"ffn_up", PART_GATE_UP}};
    bool embedding =
        strcmp(name, "token_embd.weight") == 0 || strcmp(name, "per_layer_token_embd.weight") == 0;
    if (strcmp(name, "output.weight") == 0 || (embedding && mix->tied))
        return PART_HEAD;
    if (embedding)
        return PART_EMBEDDING;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i].within))
            return parts[i].is;
    return PART_REST;
}

/* ---- What it gets ---- */

static bool is_iq2(tensor_type type)
{
    return type == TYPE_IQ2_XXS || type == TYPE_IQ2_XS || type == TYPE_IQ2_S;
}

/* Types of so few bits that a text goes wrong where nothing says which of them matter. */
static bool needs_importance(tensor_type type)
{
    return is_iq2(type) || type == TYPE_IQ3_XXS;
}

bool file_type_needs_importance(const file_type *as)
{
    return needs_importance(as->type) || as->number == FILE_IQ3_XS;
}

/* The first and the last eighth of the layers, and every third of the others. */
static bool is_favoured(int64_t layer, int64_t n)
{
    return layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2;
}

static tensor_type type_of_v(const file_mix *mix, int64_t layer)
{
    const bool shared = mix->n_sharing >= 4;
    tensor_type type = mix->as->type;
    switch (mix->as->number) {
    case FILE_Q2_K:
        type = shared ? TYPE_Q4_K : TYPE_Q3_K;
        break;
    case FILE_Q3_K_M:
        type = layer < 2 ? TYPE_Q5_K : TYPE_Q4_K;
        break;
    case FILE_Q3_K_L:
        type = TYPE_Q5_K;
        break;
    case FILE_IQ3_M:
        type = TYPE_Q4_K;
        break;
    case FILE_IQ3_XXS:
    case FILE_IQ3_XS:
    case FILE_IQ3_S:
        type = shared ? TYPE_Q4_K : type;
        break;
    case FILE_Q4_K_S:
        type = layer < 4 ? TYPE_Q5_K : TYPE_Q4_K;
        break;
    case FILE_Q4_K_M:
        type = is_favoured(layer, mix->n_layers) ? TYPE_Q6_K : TYPE_Q4_K;
        break;
    case FILE_Q5_K_M:
        type = is_favoured(layer, mix->n_layers) ? TYPE_Q6_K : TYPE_Q5_K;
        break;
    case FILE_IQ4_NL:
    case FILE_IQ4_XS:
        type = shared ? TYPE_Q5_K : type;
        break;
    default:
        break;
    }
    /* Many query heads share what is small here. */
    if (mix->n_layers == 80 && mix->n_sharing >= 8 && (type == TYPE_Q3_K || type == TYPE_Q4_K))
        type = TYPE_Q5_K;
    return type;
}

static tensor_type type_of_down(const file_mix *mix, int64_t layer)
{
    const int64_t n = mix->n_layers;
    const bool first = layer < n / 8;
    switch (mix->as->number) {
    case FILE_Q2_K:
        return TYPE_Q3_K;
    case FILE_Q3_K_M:
        return layer < n / 16 ? TYPE_Q5_K : TYPE_Q4_K;
    case FILE_Q3_K_L:
        return TYPE_Q5_K;
    case FILE_Q4_K_S:
        return first ? TYPE_Q5_K : TYPE_Q4_K;
    case FILE_Q4_K_M:
        return is_favoured(layer, n) ? TYPE_Q6_K : TYPE_Q4_K;
    case FILE_Q5_K_M:
        return is_favoured(layer, n) ? TYPE_Q6_K : TYPE_Q5_K;
    case FILE_IQ4_NL:
    case FILE_IQ4_XS:
        return first && !mix->important ? TYPE_Q5_K : mix->as->type;
    case FILE_IQ3_M:
        return first || (mix->n_experts == 8 && is_favoured(layer, n)) ? TYPE_Q4_K : TYPE_IQ3_S;
    case FILE_Q4_0:
        return first && mix->important ? TYPE_Q4_1 : TYPE_Q4_0;
    case FILE_Q5_0:
        return first && mix->important ? TYPE_Q5_1 : TYPE_Q5_0;
    default:
        return mix->as->type;
    }
}

static tensor_type type_of_out(const file_mix *mix)
{
    if (mix->n_experts == 8)
        switch (mix->as->number) {
        case FILE_Q2_K:
        case FILE_Q3_K_S:
        case FILE_Q3_K_M:
        case FILE_Q4_K_S:
        case FILE_Q4_K_M:
        case FILE_IQ3_XXS:
        case FILE_IQ3_XS:
        case FILE_IQ3_S:
        case FILE_IQ3_M:
        case FILE_IQ4_NL:
        case FILE_IQ4_XS:
            return TYPE_Q5_K;
        default:
            return mix->as->type;
        }
    switch (mix->as->number) {
    case FILE_Q2_K:
        return TYPE_Q3_K;
    case FILE_IQ3_XXS:
        return TYPE_IQ3_S;
    case FILE_IQ3_M:
    case FILE_Q3_K_M:
        return TYPE_Q4_K;
    case FILE_Q3_K_L:
        return TYPE_Q5_K;
    default:
        return mix->as->type;
    }
}

/* Queries, keys, and the feed-forward part's first matrices. */
static tensor_type type_of_first(const file_mix *mix, part is, int64_t layer)
{
    const int64_t n = mix->n_layers;
    const bool attention = is == PART_Q || is == PART_K;
    if (is == PART_K && mix->n_experts == 8)
        return TYPE_Q8_0;
    if (mix->as->number == FILE_IQ3_XXS && attention)
        return TYPE_IQ2_S;
    if (mix->as->number == FILE_IQ3_XS && (attention || (layer >= n / 8 && layer < 7 * n / 8)))
        return TYPE_IQ3_XXS;
    return mix->as->type;
}

static tensor_type type_in_iq2(const file_mix *mix, part is, int64_t layer)
{
    const bool rich = mix->as->number == FILE_IQ2_S || mix->as->number == FILE_IQ2_M;
    const tensor_type type = mix->as->type, more = rich ? TYPE_IQ3_S : TYPE_Q2_K;
    switch (is) {
    case PART_EMBEDDING:
        return more;
    case PART_QKV:
    case PART_V:
        return mix->n_sharing >= 4 || mix->n_experts >= 4 ? TYPE_Q4_K : more;
    case PART_K:
        return mix->n_experts == 8 ? TYPE_Q4_K : type;
    case PART_OUT:
        return mix->n_experts == 8 ? TYPE_Q5_K : rich ? more : type;
    case PART_DOWN:
        return layer < mix->n_layers / 8 ? more : type;
    default:
        return type;
    }
}

static tensor_type type_of_head(const file_mix *mix, const gguf_tensor *t)
{
    if (t->dims[0] % type_find(mix->as->type)->block_elements != 0 || mix->as->type == TYPE_Q8_0)
        return TYPE_Q8_0;
    return needs_importance(mix->as->type) ? TYPE_Q5_K : TYPE_Q6_K;
}

static tensor_type type_in(const file_mix *mix, const gguf_tensor *t)
{
    long long layer = 0;
    const tensor_type type = mix->as->type;
    const part is = part_of(mix, t->name);
    if (type_is_float(type))
        return type;
    sscanf(t->name, "blk.%lld.", &layer);
    if (is == PART_HEAD)
        return type_of_head(mix, t);
    if (is_iq2(type))
        return type_in_iq2(mix, is, layer);
    switch (is) {
    case PART_EMBEDDING:
        return mix->as->number == FILE_IQ3_XXS ? TYPE_IQ3_S : type;
    case PART_QKV:
    case PART_V:
        return mix->n_experts == 8 ? TYPE_Q8_0 : type_of_v(mix, layer);
    case PART_Q:
    case PART_K:
    case PART_GATE_UP:
        return type_of_first(mix, is, layer);
    case PART_OUT:
        return type_of_out(mix);
    case PART_DOWN:
        return type_of_down(mix, layer);
    default:
        return type;
    }
}

/* Returns a type with shorter blocks and no fewer bits. */
static tensor_type shorter(tensor_type type)
{
    switch (type) {
    case TYPE_IQ2_XXS:
    case TYPE_IQ2_XS:
    case TYPE_IQ2_S:
    case TYPE_IQ3_XXS:
    case TYPE_IQ3_S:
    case TYPE_IQ4_XS:
        return TYPE_IQ4_NL;
    case TYPE_Q2_K:
    case TYPE_Q3_K:
        return TYPE_Q4_0;
    case TYPE_Q4_K:
        return TYPE_Q5_0;
    case TYPE_Q5_K:
        return TYPE_Q5_1;
    case TYPE_Q6_K:
        return TYPE_Q8_0;
    default:
        return TYPE_F16;
    }
}

uint32_t file_mix_choose(const file_mix *mix, const gguf_tensor *t, bool important, bool *fell_back)
{
    *fell_back = false;
    if (!is_matrix(t))
        return t->type;
    tensor_type type = type_in(mix, t);
    if (!important && needs_importance(type))
        type = type == TYPE_IQ3_XXS ? TYPE_IQ3_S : TYPE_Q2_K;
    while (t->dims[0] % type_find(type)->block_elements != 0) {
        type = shorter(type);
        *fell_back = true;
    }
    return type;
}
