/* The table of architectures, and reading a model's shape: see arch.h. Key names: ggml
 * docs/gguf.md. */
#include "model/arch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/num.h"
#include "gguf/gguf.h"
#include "state/kv.h"

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

/* Returns whether it is an encoder-only architecture that llama.cpp runs and drey does not. */
static bool encodes_only(gguf_string name)
{
    static const char *const names[] = {"t5encoder",   "bert",     "nomic-bert",     "jina-bert-v2",
                                        "modern-bert", "neo-bert", "gemma-embedding"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (gguf_is_text(name, names[i]))
            return true;
    return false;
}

/* The names, for messages: "llama, qwen2" and so on, written to out, which is returned. */
static const char *arch_names(char *out, size_t capacity)
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

static drey_status read_int(const gguf *g, const arch *a, const char *suffix, int64_t high,
                            int32_t *out, drey_error *err)
{
    char key[96];
    int64_t value;
    TRY(gguf_require_int(g, arch_key(a, suffix, key), 1, high, &value, err));
    *out = (int32_t)value;
    return DREY_OK;
}

static drey_status read_number(const gguf *g, const arch *a, const char *suffix, float fallback,
                               float *out, drey_error *err)
{
    char key[96];
    double value = gguf_number(g, arch_key(a, suffix, key), (double)fallback);
    if (!(value >= 0 && value <= 1e9))
        FAIL(err, DREY_ERR_FORMAT, "%s is %g; the file is broken", key, value);
    *out = (float)value;
    return DREY_OK;
}

static bool has_block(const gguf *g, int32_t block, const char *ending)
{
    char begin[48];
    size_t n = (size_t)snprintf(begin, sizeof begin, "blk.%d.%s", block, ending);
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++)
        if (strncmp(gguf_tensor_at(g, i)->name, begin, n) == 0)
            return true;
    return false;
}

int32_t arch_mtp_blocks(const arch *a, const gguf *g)
{
    char key[96];
    int64_t n = gguf_int(g, arch_key(a, "nextn_predict_layers", key), 0);
    return n > 0 && n <= 1024 ? (int32_t)n : 0;
}

/* block_count includes the blocks for multi-token prediction, or the file was written without
 * them. */
static drey_status read_layers(model_shape *s, const gguf *g, drey_error *err)
{
    TRY(read_int(g, s->arch, "block_count", 1024, &s->n_layers, err));
    const int32_t n = arch_mtp_blocks(s->arch, g), first = s->n_layers - n;
    if (n > 0 && first > 0 && (has_block(g, first, "nextn.") || !has_block(g, s->n_layers - 1, "")))
        s->n_layers = first;
    return DREY_OK;
}

/* Numbers of a head. */
static drey_status read_width(const gguf *g, const arch *a, const char *suffix, int32_t usual,
                              int32_t *out, drey_error *err)
{
    char key[96];
    int64_t dim = gguf_int(g, arch_key(a, suffix, key), usual);
    if (dim < 2 || dim > 1024 || dim % 2)
        FAIL(err, DREY_ERR_FORMAT, "the heads have size %lld; the file is broken", (long long)dim);
    *out = (int32_t)dim;
    return DREY_OK;
}

static drey_status read_sizes(model_shape *s, const gguf *g, drey_error *err)
{
    const arch *a = s->arch;
    TRY(read_layers(s, g, err));
    TRY(read_int(g, a, "embedding_length", 1 << 17, &s->n_embd, err));
    TRY(read_int(g, a, "attention.head_count", 1024, &s->n_heads, err));
    TRY(read_int(g, a, "feed_forward_length", 1 << 20, &s->n_ff, err));
    TRY(read_int(g, a, "context_length", 1 << 30, &s->n_context_train, err));
    char key[96];
    int64_t n_kv = gguf_int(g, arch_key(a, "attention.head_count_kv", key), s->n_heads);
    if (n_kv < 1 || n_kv > s->n_heads || s->n_heads % n_kv)
        FAIL(err, DREY_ERR_FORMAT, "%s is %lld, which does not divide %d heads; the file is broken",
             key, (long long)n_kv, s->n_heads);
    s->n_heads_kv = (int32_t)n_kv;
    TRY(read_width(g, a, "attention.key_length", s->n_embd / s->n_heads, &s->head_dim, err));
    TRY(read_width(g, a, "attention.value_length", s->head_dim, &s->v_dim, err));
    const char *eps =
        a->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
    s->norm_eps = (float)gguf_number(g, arch_key(a, eps, key), 1e-5);
    if (!(s->norm_eps >= 0.0f && s->norm_eps < 1.0f))
        FAIL(err, DREY_ERR_FORMAT, "%s is %g; the file is broken", key, (double)s->norm_eps);
    return DREY_OK;
}

/* A window as wide as the context hides nothing: it counts only where local layers rotate in a way
 * of their own. */
static drey_status read_window(model_shape *s, const gguf *g, drey_error *err)
{
    const arch *a = s->arch;
    char key[96];
    if (!(a->keys & KEYS_WINDOW))
        return DREY_OK;
    int64_t window = gguf_int(g, arch_key(a, "attention.sliding_window", key), a->window);
    if (window < 0)
        FAIL(err, DREY_ERR_FORMAT, "%s is %lld; the file is broken", key, (long long)window);
    bool own = a->local_base > 0 || gguf_find_key(g, arch_key(a, "rope.freq_base_swa", key));
    bool hides = own || window < s->n_context_train;
    s->window = !hides ? 0 : window < INT32_MAX ? (int32_t)window : INT32_MAX;
    int64_t period =
        gguf_int(g, arch_key(a, "attention.sliding_window_pattern", key), a->window_period);
    if (period < 0 || period > INT32_MAX)
        FAIL(err, DREY_ERR_FORMAT, "%s is %lld; the file is broken", key, (long long)period);
    s->window_period = (int32_t)period;
    return DREY_OK;
}

/* T5 does not scale scores: its initial weights do that. Logits of a tied head are scaled. */
static drey_status read_buckets(model_shape *s, const gguf *g, drey_error *err)
{
    const arch *a = s->arch;
    encoder_shape *e = &s->encoder;
    char key[96];
    if (a->rope != ROPE_BUCKETS)
        return DREY_OK;
    if (!gguf_find_key(g, arch_key(a, "attention.relative_buckets_count", key)))
        FAIL(err, DREY_ERR_FORMAT,
             "the file has no relative position buckets (%s); convert the model again", key);
    TRY(read_int(g, a, "attention.relative_buckets_count", 1 << 10, &e->n_buckets, err));
    if (e->n_buckets < 4 || e->n_buckets % 4 || e->n_buckets > 128)
        FAIL(err, DREY_ERR_UNSUPPORTED, "%s is %d; drey computes multiples of 4 up to 128", key,
             e->n_buckets);
    s->scale.attention = 1.0f;
    if (!gguf_find_tensor(g, "output.weight"))
        s->scale.logit = 1.0f / sqrtf((float)s->n_embd);
    return DREY_OK;
}

static drey_status read_token(const model_shape *s, const gguf *g, const char *suffix,
                              int32_t fallback, int32_t *out, drey_error *err)
{
    char key[96];
    int64_t id = gguf_int(g, arch_key(s->arch, suffix, key), fallback);
    if (id != fallback && (id < 0 || id >= s->n_vocab))
        FAIL(err, DREY_ERR_FORMAT, "%s is %lld, which is no token; the file is broken", key,
             (long long)id);
    *out = (int32_t)id;
    return DREY_OK;
}

static drey_status read_encoder(model_shape *s, const gguf *g, drey_error *err)
{
    const arch *a = s->arch;
    encoder_shape *e = &s->encoder;
    char key[96];
    if (!a->encoder)
        return DREY_OK;
    e->n_layers = s->n_layers;
    if (gguf_find_key(g, arch_key(a, "decoder_block_count", key)))
        TRY(read_int(g, a, "decoder_block_count", 1024, &s->n_layers, err));
    TRY(read_token(s, g, "decoder_start_token_id", 0, &e->start_id, err));
    TRY(read_token(s, g, "forced_bos_token_id", -1, &e->forced_id, err));
    return read_buckets(s, g, err);
}

model_shape shape_of_encoder(const model_shape *decoder)
{
    model_shape s = *decoder;
    s.n_layers = decoder->encoder.n_layers;
    s.encoder.n_readers = decoder->n_layers;
    return s;
}

/* Factors at their neutral values, and what the file says instead. */
static drey_status read_scales(model_shape *s, const gguf *g, drey_error *err)
{
    const arch *a = s->arch;
    bool wide = a->wide_layers == s->n_layers;
    s->scale.attention = 1.0f / sqrtf((float)(wide ? s->n_embd / s->n_heads : s->head_dim));
    s->scale.embedding = a->sqrt_embedding ? sqrtf((float)s->n_embd) : 1.0f;
    s->scale.residual = s->scale.logit = 1.0f;
    if (a->keys & KEYS_CAPS) {
        TRY(read_number(g, a, "attn_logit_softcapping", a->cap.attention, &s->cap.attention, err));
        TRY(read_number(g, a, "final_logit_softcapping", a->cap.logit, &s->cap.logit, err));
    }
    if (!(a->keys & KEYS_SCALES))
        return DREY_OK;
    float scores, embedding, residual, logit;
    TRY(read_number(g, a, "attention.scale", 0, &scores, err));
    TRY(read_number(g, a, "embedding_scale", 0, &embedding, err));
    TRY(read_number(g, a, "residual_scale", 0, &residual, err));
    TRY(read_number(g, a, "logit_scale", 0, &logit, err));
    s->scale.attention = scores > 0 ? scores : s->scale.attention;
    s->scale.embedding = embedding > 0 ? embedding : 1.0f;
    s->scale.residual = residual > 0 ? residual : 1.0f;
    s->scale.logit = logit > 0 ? 1.0f / logit : 1.0f;
    return DREY_OK;
}

static drey_status read_taps(model_shape *s, const gguf *g, drey_error *err)
{
    tap_shape *t = &s->taps;
    char name[96];
    int64_t width;
    const gguf_key *key = gguf_find_key(g, arch_key(s->arch, "extract_layers", name));
    if (!key || key->kind != GGUF_ARRAY || !gguf_is_int(key->item_kind) || key->n_items < 1 ||
        key->n_items > MODEL_MAX_TAPS)
        FAIL(err, DREY_ERR_FORMAT, "%s has to be a list of 1 to %d numbers of layers", name,
             MODEL_MAX_TAPS);
    for (; t->n < (int32_t)key->n_items; t->n++) {
        int64_t layer = gguf_item_int(key, (uint64_t)t->n);
        if (layer < (t->n ? t->layer[t->n - 1] + 1 : 0) || layer > 1024)
            FAIL(err, DREY_ERR_FORMAT, "%s is no rising list of layers; the file is broken", name);
        t->layer[t->n] = (int32_t)layer;
    }
    arch_key(s->arch, "target_hidden_size", name);
    TRY(gguf_require_int(g, name, 1, 1 << 17, &width, err));
    t->width = (int32_t)width;
    t->normed = gguf_bool(g, arch_key(s->arch, "norm_before_residual", name), false);
    if (s->n_layers != 1)
        FAIL(err, DREY_ERR_UNSUPPORTED, "an EAGLE file with %d layers is not supported: 1 is",
             s->n_layers);
    return DREY_OK;
}

/* Its embedding may be the target's. The tokenizer is, in any case. */
static drey_status read_tapped_vocabulary(model_shape *s, const gguf *g, drey_error *err)
{
    const gguf_key *tokens = gguf_find_key(g, "tokenizer.ggml.tokens");
    const gguf_tensor *head = gguf_find_tensor(g, "output.weight");
    if (!tokens || tokens->kind != GGUF_ARRAY || tokens->n_items < 1 || tokens->n_items > 1 << 24)
        FAIL(err, DREY_ERR_FORMAT,
             "the file has no tokenizer: convert it together with its target");
    s->n_vocab = (int32_t)tokens->n_items;
    if (!head || head->dims[1] < 1 || head->dims[1] > s->n_vocab)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "tensor output.weight is not there, or has more rows than the vocabulary: an EAGLE "
             "file needs its own head");
    s->taps.n_ids = (int32_t)head->dims[1];
    return DREY_OK;
}

/* A count that may be missing: 0. */
static drey_status read_count(const gguf *g, const arch *a, const char *suffix, int64_t high,
                              int32_t *out, drey_error *err)
{
    char key[96];
    int64_t value = gguf_int(g, arch_key(a, suffix, key), 0);
    if (value < 0 || value > high)
        FAIL(err, DREY_ERR_FORMAT, "%s is %lld; the file is broken", key, (long long)value);
    *out = (int32_t)value;
    return DREY_OK;
}

static drey_status read_groups(router_shape *r, const gguf *g, const arch *a, drey_error *err)
{
    TRY(read_count(g, a, "expert_group_count", 64, &r->n_groups, err));
    TRY(read_count(g, a, "expert_group_used_count", 64, &r->n_choices, err));
    r->n_groups = max_i32(r->n_groups, 1);
    if (r->n_groups == 1)
        return DREY_OK;
    if (r->n_choices < 1 || r->n_choices > r->n_groups || r->n_experts % r->n_groups ||
        r->n_used > r->n_experts / r->n_groups * r->n_choices)
        FAIL(err, DREY_ERR_FORMAT,
             "%d of %d groups with %d experts cannot give %d experts; the file is broken",
             r->n_choices, r->n_groups, r->n_experts, r->n_used);
    return DREY_OK;
}

/* llama.cpp's numbers of gates (LLAMA_EXPERT_GATING_FUNC_TYPE). */
static drey_status read_gate(router_shape *r, const gguf *g, const arch *a, drey_error *err)
{
    char key[96];
    int64_t gate = gguf_int(g, arch_key(a, "expert_gating_func", key), 0);
    if (gate < 0 || gate > 3)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s is %lld; drey computes 1 to 3 (softmax, sigmoid, "
             "softmax of the chosen)",
             key, (long long)gate);
    r->gate = gate == 0 ? a->gate : (router_gate)(gate - 1);
    r->normed = gguf_bool(g, arch_key(a, "expert_weights_norm", key), a->weights_normed);
    TRY(read_number(g, a, "expert_weights_scale", 1, &r->scale, err));
    if (r->scale == 0)
        r->scale = 1;
    return DREY_OK;
}

static drey_status read_experts(model_shape *s, const gguf *g, drey_error *err)
{
    const arch *a = s->arch;
    expert_shape *e = &s->experts;
    router_shape *r = &e->router;
    char key[96];
    if (!(a->keys & KEYS_EXPERTS))
        return DREY_OK;
    TRY(read_count(g, a, "expert_count", 1 << 12, &r->n_experts, err));
    TRY(read_count(g, a, "expert_used_count", ROUTER_MOST, &r->n_used, err));
    if (r->n_experts == 0 && r->n_used == 0)
        return DREY_OK;
    if (r->n_experts == 0)
        FAIL(err, DREY_ERR_UNSUPPORTED, "%s is %d, but there are no experts; the file is broken",
             arch_key(a, "expert_used_count", key), r->n_used);
    if (r->n_used == 0)
        FAIL(err, DREY_ERR_FORMAT, "%s is 0 or missing, with %d experts; the file is broken",
             arch_key(a, "expert_used_count", key), r->n_experts);
    if (r->n_used > r->n_experts)
        FAIL(err, DREY_ERR_FORMAT, "%s says that a token uses %d of %d experts; the file is broken",
             arch_key(a, "expert_used_count", key), r->n_used, r->n_experts);
    TRY(read_count(g, a, "leading_dense_block_count", s->n_layers, &e->n_dense, err));
    TRY(read_count(g, a, "expert_feed_forward_length", 1 << 20, &e->n_ff, err));
    TRY(read_count(g, a, "expert_shared_feed_forward_length", 1 << 20, &e->n_ff_shared, err));
    e->n_ff = e->n_ff > 0 ? e->n_ff : s->n_ff;
    snprintf(key, sizeof key, "blk.%d.ffn_up_shexp.weight", e->n_dense);
    if (e->n_ff_shared == 0 && gguf_find_tensor(g, key))
        e->n_ff_shared = s->n_ff;
    TRY(read_groups(r, g, a, err));
    return read_gate(r, g, a, err);
}

static drey_status read_vocabulary(model_shape *s, const gguf *g, drey_error *err)
{
    const gguf_tensor *embedding = gguf_find_tensor(g, "token_embd.weight");
    if (s->taps.n)
        TRY(read_tapped_vocabulary(s, g, err));
    if (!embedding && s->taps.n)
        return DREY_OK;
    if (!embedding)
        FAIL(err, DREY_ERR_FORMAT, "tensor token_embd.weight is missing; the file is incomplete");
    if (embedding->dims[1] < 1 || embedding->dims[1] > 1 << 24)
        FAIL(err, DREY_ERR_FORMAT, "the vocabulary has %lld entries; the file is broken",
             (long long)embedding->dims[1]);
    s->n_vocab = (int32_t)embedding->dims[1];
    return DREY_OK;
}

static drey_status read_shape(model_shape *s, const gguf *g, drey_error *err)
{
    *s = (model_shape){0};
    gguf_string name = gguf_text(g, "general.architecture");
    if (gguf_n_tensors(g) == 0 && gguf_find_key(g, "tokenizer.ggml.tokens"))
        FAIL(err, DREY_ERR_FORMAT,
             "the file has a vocabulary and no tensors: texts become tokens with it, and no more; "
             "fetch the model's own file");
    if (!name.text)
        FAIL(err, DREY_ERR_FORMAT,
             "the file names no architecture (general.architecture); it is not a model");
    s->arch = arch_find(name.text, name.n_bytes);
    if (!s->arch && encodes_only(name))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "architecture \"%s\" is an encoder alone, which makes embeddings; drey writes texts: "
             "use a file that has a decoder",
             gguf_printable((char[48]){0}, 48, name.text, name.n_bytes));
    if (!s->arch)
        FAIL(err, DREY_ERR_UNSUPPORTED, "architecture \"%s\" is not supported (%s are)",
             gguf_printable((char[48]){0}, 48, name.text, name.n_bytes),
             arch_names((char[256]){0}, 256));
    TRY(read_sizes(s, g, err));
    TRY(arch_keys_check(s, g, err));
    TRY(read_window(s, g, err));
    TRY(read_scales(s, g, err));
    if (s->arch->keys & KEYS_TAPS)
        TRY(read_taps(s, g, err));
    TRY(read_vocabulary(s, g, err));
    TRY(read_encoder(s, g, err));
    TRY(read_experts(s, g, err));
    s->recurrent.stride = model_state_stride(s);
    return rope_read(s, g, err);
}

drey_status model_shape_read(model_shape *s, const gguf *g, drey_error *err)
{
    return error_in_file(err, gguf_shard_path(g, 0), read_shape(s, g, err));
}
