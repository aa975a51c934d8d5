/* Reading a model's shape: see arch.h. Key names: ggml docs/gguf.md. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/num.h"
#include "gguf/gguf.h"
#include "state/recurrent.h"
#include "model/arch.h"

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

drey_status arch_require_count(const gguf *g, const arch *a, const char *suffix, int64_t low,
                               int64_t high, int32_t *out, drey_error *err)
{
    char key[96];
    int64_t value;
    TRY(gguf_require_int(g, arch_key(a, suffix, key), low, high, &value, err));
    *out = (int32_t)value;
    return DREY_OK;
}

drey_status arch_read_count(const gguf *g, const arch *a, const char *suffix, int64_t high,
                            int32_t *out, drey_error *err)
{
    char key[96];
    int64_t value = gguf_int(g, arch_key(a, suffix, key), 0);
    if (value < 0 || value > high)
        FAIL(err, DREY_ERR_FORMAT, "%s is %lld; the file is broken", key, (long long)value);
    *out = (int32_t)value;
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
    char key[96];
    TRY(read_int(g, s->arch, "block_count", 1024, &s->n_layers, err));
    const int32_t n = arch_mtp_blocks(s->arch, g), first = s->n_layers - n;
    if (first <= 0 && s->arch->keys & KEYS_NEXTN)
        FAIL(err, DREY_ERR_FORMAT, "%s is %d, where the model has %d blocks; the file is broken",
             arch_key(s->arch, "nextn_predict_layers", key), n, s->n_layers);
    const bool counted = s->arch->keys & KEYS_NEXTN || has_block(g, first, "nextn.") ||
                         !has_block(g, s->n_layers - 1, "");
    if (n > 0 && first > 0 && counted)
        s->n_layers = first;
    return DREY_OK;
}

/* Reads numbers of a head. usual 0: the key may be missing. */
static drey_status read_width(const gguf *g, const arch *a, const char *suffix, int32_t usual,
                              int32_t *out, drey_error *err)
{
    char key[96];
    int64_t dim = gguf_int(g, arch_key(a, suffix, key), usual);
    if ((dim != usual || usual > 0) && (dim < 2 || dim > 1024 || dim % 2))
        FAIL(err, DREY_ERR_FORMAT, "the heads have size %lld; the file is broken", (long long)dim);
    *out = (int32_t)dim;
    return DREY_OK;
}

/* Reads a number of each layer: one that all share, or an array with one of each. fallback < 0: the
 * key has to be there. */
static drey_status read_each(const model_shape *s, const gguf *g, const char *suffix, int64_t high,
                             int64_t fallback, int32_t out[MODEL_MAX_LAYERS], drey_error *err)
{
    char name[96];
    const int64_t n_blocks = gguf_int(g, arch_key(s->arch, "block_count", name), 0);
    const gguf_key *key = gguf_find_key(g, arch_key(s->arch, suffix, name));
    const bool each = key && gguf_is_int_array(key) && !gguf_key_is(key, GGUF_WANT_INT);
    int64_t value = fallback;
    if (each && key->n_items != (uint64_t)s->n_layers && key->n_items != (uint64_t)n_blocks)
        FAIL(err, DREY_ERR_FORMAT,
             "key %s has %llu numbers, where the model has %lld layers; the file is broken", name,
             (unsigned long long)key->n_items, (long long)n_blocks);
    if (!each && fallback < 0)
        TRY(gguf_require_int(g, name, 1, high, &value, err));
    if (!each && fallback >= 0)
        value = gguf_int(g, name, fallback);
    for (int32_t i = 0; i < MODEL_MAX_LAYERS; i++) {
        if (each)
            value = gguf_item_int(key, min_u64((uint64_t)i, key->n_items - 1));
        if (value < 0 || value > high)
            FAIL(err, DREY_ERR_FORMAT, "key %s has the number %lld; the file is broken", name,
                 (long long)value);
        out[i] = (int32_t)value;
    }
    return DREY_OK;
}

static bool same_attention(const attention_shape *a, const attention_shape *b)
{
    return a->n_heads == b->n_heads && a->n_heads_kv == b->n_heads_kv &&
           a->head_dim == b->head_dim && a->v_dim == b->v_dim && a->window == b->window &&
           a->local == b->local && a->latent == b->latent && a->rope == b->rope &&
           a->scale == b->scale;
}

/* Names the layer's kind of attention, which becomes one of the model's if it is new. */
static drey_status set_attention(model_shape *s, int32_t layer, const attention_shape *a,
                                 drey_error *err)
{
    int32_t i = 0;
    while (i < s->n_attentions && !same_attention(&s->attention[i], a))
        i++;
    if (i == ATTENTION_KINDS)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the layers have more than %d kinds of attention, which drey does not compute",
             ATTENTION_KINDS);
    if (i == s->n_attentions)
        s->attention[s->n_attentions++] = *a;
    s->layer[layer].attention = (uint8_t)i;
    return DREY_OK;
}

/* Reads the heads of each layer. A layer with 0 of them has a state instead, if its architecture
 * knows layers with one or the other. */
static drey_status read_heads(model_shape *s, const gguf *g, drey_error *err)
{
    const arch *a = s->arch;
    int32_t heads[MODEL_MAX_LAYERS], kv[MODEL_MAX_LAYERS], first = 0;
    const bool may_rest = a->layers && a->layers->states && !(a->forms & FORM_BESIDE);
    attention_shape shape = {0};
    char key[96];
    TRY(read_each(s, g, "attention.head_count", 1024, -1, heads, err));
    memcpy(kv, heads, sizeof kv);
    if (gguf_find_key(g, arch_key(a, "attention.head_count_kv", key)))
        TRY(read_each(s, g, "attention.head_count_kv", INT32_MAX, 0, kv, err));
    while (first < s->n_layers - 1 && (heads[first] == 0 || kv[first] == 0))
        first++;
    const int32_t usual = s->n_embd / max_i32(heads[first], 1);
    TRY(read_width(g, a, "attention.key_length", usual, &shape.head_dim, err));
    TRY(read_width(g, a, "attention.value_length", shape.head_dim, &shape.v_dim, err));
    for (int32_t i = 0; i < MODEL_MAX_LAYERS; i++) {
        shape.n_heads = heads[i];
        shape.n_heads_kv = kv[i];
        s->layer[i].attention = LAYER_ATTENDS_NOT;
        if (may_rest && (heads[i] == 0 || kv[i] == 0))
            continue;
        if (heads[i] < 1)
            FAIL(err, DREY_ERR_FORMAT, "layer %d has no heads; the file is broken", i);
        if (kv[i] < 1 || kv[i] > heads[i] || heads[i] % kv[i])
            FAIL(err, DREY_ERR_FORMAT,
                 "%s is %d, which does not divide %d heads; the file is broken",
                 arch_key(a, "attention.head_count_kv", key), kv[i], heads[i]);
        TRY(set_attention(s, i, &shape, err));
    }
    return DREY_OK;
}

/* Reads the width of each layer's feed-forward part. A file of experts alone may have theirs
 * only. */
static drey_status read_widths_ff(model_shape *s, const gguf *g, drey_error *err)
{
    int32_t n_ff[MODEL_MAX_LAYERS];
    char key[96];
    const bool experts_alone = s->arch->keys & KEYS_EXPERTS &&
                               !gguf_find_key(g, arch_key(s->arch, "feed_forward_length", key));
    TRY(read_each(s, g, experts_alone ? "expert_feed_forward_length" : "feed_forward_length",
                  1 << 20, -1, n_ff, err));
    for (int32_t i = 0; i < MODEL_MAX_LAYERS; i++) {
        if (n_ff[i] == 0 && !s->arch->layers)
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "%s is 0 for layer %d, and drey computes no layer of architecture %s without a "
                 "feed-forward part",
                 arch_key(s->arch, "feed_forward_length", (char[96]){0}), i, s->arch->name);
        s->layer[i].n_ff = n_ff[i];
    }
    return DREY_OK;
}

static drey_status read_sizes(model_shape *s, const gguf *g, drey_error *err)
{
    const arch *a = s->arch;
    char key[96];
    TRY(read_layers(s, g, err));
    TRY(read_int(g, a, "embedding_length", 1 << 17, &s->n_embd, err));
    TRY(read_int(g, a, "context_length", 1 << 30, &s->n_context_train, err));
    TRY(read_heads(s, g, err));
    TRY(read_widths_ff(s, g, err));
    const double rms_eps =
        gguf_number(g, arch_key(a, "attention.layer_norm_rms_epsilon", key), 1e-5);
    if (a->forms & FORM_NORMS_UNBIASED && gguf_find_key(g, key))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s is there: drey computes architecture %s with norms that take the mean off", key,
             a->name);
    s->norm_eps = (float)rms_eps;
    if (a->layer_norm) /* Phi MoE's files have the other key */
        s->norm_eps =
            (float)gguf_number(g, arch_key(a, "attention.layer_norm_epsilon", key), rms_eps);
    if (!(s->norm_eps >= 0.0f && s->norm_eps < 1.0f))
        FAIL(err, DREY_ERR_FORMAT, "%s is %g; the file is broken", key, (double)s->norm_eps);
    return DREY_OK;
}

/* The layers that are local: those of a list, or all but one of every so many. */
typedef struct locality {
    const gguf_key *list; /* an item for each layer; NULL: there is none */
    int32_t period;       /* 0: all are local */
    int32_t global;       /* the one of each period that is not */
    int32_t window;       /* positions that they see; 0: it hides nothing */
    bool any;             /* the model has local layers */
} locality;

static bool is_local(const locality *l, int32_t layer)
{
    if (!l->any)
        return false;
    if (l->list)
        return gguf_item_int(l->list, min_u64((uint64_t)layer, l->list->n_items - 1)) != 0;
    return l->period == 0 || layer % l->period != l->global;
}

static bool is_list(const gguf_key *key)
{
    return key && key->kind == GGUF_ARRAY &&
           (key->item_kind == GGUF_BOOL || gguf_is_int(key->item_kind));
}

/* A window as wide as the context hides nothing: it counts only where local layers rotate in a way
 * of their own. A model of which only local layers are rotated has them in any case. */
static drey_status read_window(const model_shape *s, const gguf *g, locality *l, drey_error *err)
{
    const arch *a = s->arch;
    char key[96];
    *l = (locality){0};
    if (!(a->keys & KEYS_WINDOW))
        return DREY_OK;
    int64_t window = gguf_int(g, arch_key(a, "attention.sliding_window", key), a->local.window);
    if (window < 0)
        FAIL(err, DREY_ERR_FORMAT, "%s is %lld; the file is broken", key, (long long)window);
    bool own = a->local.base > 0 || gguf_find_key(g, arch_key(a, "rope.freq_base_swa", key)) ||
               gguf_find_key(g, arch_key(a, "rope.dimension_count_swa", key));
    bool hides = own || window < s->n_context_train;
    l->window = !hides ? 0 : window < INT32_MAX ? (int32_t)window : INT32_MAX;
    l->any = l->window > 0 || (a->local.rotated_alone && window > 0);
    const gguf_key *pattern =
        gguf_find_key(g, arch_key(a, "attention.sliding_window_pattern", key));
    l->list = is_list(pattern) ? pattern : NULL;
    if (l->list && l->list->n_items < (uint64_t)s->n_layers)
        FAIL(err, DREY_ERR_FORMAT,
             "key %s has %llu items, where the model has %d layers; the file is broken", key,
             (unsigned long long)l->list->n_items, s->n_layers);
    int64_t period = gguf_int(g, key, a->local.period);
    if (period < 0 || period > INT32_MAX)
        FAIL(err, DREY_ERR_FORMAT, "%s is %lld; the file is broken", key, (long long)period);
    l->period = (int32_t)period;
    l->global = a->local.first ? 0 : l->period - 1;
    return DREY_OK;
}

/* Divides the kinds of attention into those of local layers and of others. */
static drey_status read_attention(model_shape *s, const gguf *g, drey_error *err)
{
    const arch *a = s->arch;
    const bool rotates = a->rope != ROPE_NONE && a->rope != ROPE_BUCKETS,
               wide = a->wide_layers == s->n_layers;
    char key[96];
    attention_shape read[ATTENTION_KINDS];
    int32_t local_k = 0, local_v = 0; /* widths of local layers; 0: as in the others */
    int32_t n_rotated = 0;
    locality l;
    TRY(read_window(s, g, &l, err));
    const bool still_all =
        a->keys & KEYS_MAMBA && !gguf_bool(g, arch_key(a, "rope.scaling.finetuned", key), true);
    if (a->forms & FORM_DENSE_ROTATED)
        TRY(arch_read_count(g, a, "leading_dense_block_count", s->n_layers, &n_rotated, err));
    if (l.any) {
        TRY(read_width(g, a, "attention.key_length_swa", 0, &local_k, err));
        TRY(read_width(g, a, "attention.value_length_swa", 0, &local_v, err));
    }
    memcpy(read, s->attention, sizeof read);
    s->n_attentions = 0;
    for (int32_t i = 0; i < MODEL_MAX_LAYERS; i++) {
        if (s->layer[i].attention == LAYER_ATTENDS_NOT)
            continue;
        attention_shape shape = read[s->layer[i].attention];
        shape.local = is_local(&l, i);
        shape.window = !shape.local ? 0 : a->forms & FORM_CHUNKED ? -l.window : l.window;
        if (shape.local && local_k > 0)
            shape.head_dim = local_k;
        if (shape.local && local_v > 0)
            shape.v_dim = local_v;
        const bool still = still_all ||
                           (a->no_rope_period > 0 && (i + 1) % a->no_rope_period == 0) ||
                           (a->local.rotated_alone && l.any && !shape.local && i >= n_rotated);
        shape.rope = !rotates || still ? ROPE_OF_NONE : shape.local ? ROPE_OF_LOCAL : ROPE_OF_ALL;
        shape.scale =
            a->forms & FORM_UNSCALED
                ? 1.0f
                : 1.0f / sqrtf((float)(wide ? s->n_embd / shape.n_heads : shape.head_dim));
        TRY(set_attention(s, i, &shape, err));
    }
    return DREY_OK;
}

/* Scores of all layers are multiplied with this. */
static void set_scale(model_shape *s, float scale)
{
    for (int32_t i = 0; i < s->n_attentions; i++)
        s->attention[i].scale = scale;
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
    set_scale(s, 1.0f);
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

int32_t shape_widest_ff(const model_shape *s)
{
    int32_t most = max_i32(s->experts.n_ff, s->experts.n_ff_shared);
    for (int32_t i = 0; i < s->n_layers; i++)
        most = s->layer[i].experts ? most : max_i32(most, s->layer[i].n_ff);
    return most;
}

int64_t shape_widest_out(const model_shape *s)
{
    int64_t most = 0;
    for (int32_t i = 0; i < s->n_attentions; i++)
        most = max_i64(most, attention_out(&s->attention[i]));
    return most;
}

int32_t shape_first_mixture(const model_shape *s)
{
    int32_t i = 0;
    while (i < s->n_layers && !s->layer[i].experts)
        i++;
    return i;
}

int32_t shape_expert_layers(const model_shape *s)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_layers; i++)
        n += s->layer[i].experts;
    return n;
}

void shape_keep(model_shape *s, int32_t first, int32_t n)
{
    memmove(s->layer, s->layer + first, (size_t)n * sizeof *s->layer);
    s->n_layers = n;
    s->first_layer += first;
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
    s->scale.embedding = a->sqrt_embedding ? sqrtf((float)s->n_embd) : 1.0f;
    s->scale.residual = s->scale.logit = 1.0f;
    if (a->keys & KEYS_CAPS) {
        TRY(read_number(g, a, "attn_logit_softcapping", a->cap.attention, &s->cap.attention, err));
        TRY(read_number(g, a, "final_logit_softcapping", a->cap.logit, &s->cap.logit, err));
    }
    if (a->keys & KEYS_LOGIT_SCALE) {
        TRY(read_number(g, a, "logit_scale", 1, &s->scale.logit, err));
        if (s->scale.logit == 0)
            s->scale.logit = 1.0f;
    }
    if (!(a->keys & KEYS_SCALES))
        return DREY_OK;
    float scores = 0, embedding = 0, residual = 0, logit = 0;
    TRY(read_number(g, a, "attention.scale", 0, &scores, err));
    TRY(read_number(g, a, "embedding_scale", 0, &embedding, err));
    TRY(read_number(g, a, "residual_scale", 0, &residual, err));
    TRY(read_number(g, a, "logit_scale", 0, &logit, err));
    if (scores > 0)
        set_scale(s, scores);
    s->scale.embedding = embedding > 0 ? embedding : 1.0f;
    s->scale.residual = residual > 0 ? residual : 1.0f;
    s->scale.logit = logit > 0 ? 1.0f / logit : 1.0f;
    return DREY_OK;
}

/* A temperature of scores that grows with the position; its length is that of the original context
 * where the file does not say. */
static drey_status read_temperature(model_shape *s, const gguf *g, drey_error *err)
{
    const arch *a = s->arch;
    const char *const lengths[] = {"attention.temperature_length",
                                   "rope.scaling.original_context_length"};
    char key[96];
    if (!(a->keys & KEYS_TEMPERATURE))
        return DREY_OK;
    const bool chunked = a->forms & FORM_CHUNKED; /* Llama 4's files do not state its numbers */
    s->temperature.after = s->temperature.still_alone = chunked;
    TRY(read_number(g, a, "attention.temperature_scale", chunked ? 0.1f : 0, &s->temperature.scale,
                    err));
    for (int32_t i = 0; i < 2 && s->temperature.length == 0; i++)
        TRY(arch_read_count(g, a, lengths[i], 1 << 30, &s->temperature.length, err));
    if (chunked && s->temperature.length == 0)
        s->temperature.length = a->local.window;
    if (s->temperature.scale > 0 && s->temperature.length == 0)
        FAIL(err, DREY_ERR_FORMAT, "%s is missing, with %s; the file is broken",
             arch_key(a, lengths[1], key),
             arch_key(a, "attention.temperature_scale", (char[96]){0}));
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

static drey_status read_groups(router_shape *r, const gguf *g, const arch *a, drey_error *err)
{
    TRY(arch_read_count(g, a, "expert_group_count", 64, &r->n_groups, err));
    TRY(arch_read_count(g, a, "expert_group_used_count", 64, &r->n_choices, err));
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
    if (gate < 0 || gate > 4)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s is %lld; drey computes 1 to 4 (softmax, sigmoid, "
             "softmax of the chosen, square root of softplus)",
             key, (long long)gate);
    r->gate = gate == 0 ? a->experts.gate : (router_gate)(gate - 1);
    r->normed = gguf_bool(g, arch_key(a, "expert_weights_norm", key), a->experts.weights_normed);
    TRY(read_number(g, a, "expert_weights_scale", 1, &r->scale, err));
    if (r->scale == 0)
        r->scale = 1;
    return DREY_OK;
}

/* Reads which layers are mixtures: those after the first ones, one of every so many, or those that
 * have a router. */
static drey_status read_mixtures(model_shape *s, const gguf *g, drey_error *err)
{
    const arch *a = s->arch;
    int32_t n_dense, step;
    char key[96];
    TRY(arch_read_count(g, a, "leading_dense_block_count", s->n_layers, &n_dense, err));
    TRY(arch_read_count(g, a, "interleave_moe_layer_step", MODEL_MAX_LAYERS, &step, err));
    const bool stated = gguf_find_key(g, arch_key(a, "leading_dense_block_count", key));
    for (int32_t i = n_dense; i < s->n_layers; i++)
        s->layer[i].experts = a->experts.by_router && !stated
                                  ? has_block(g, i, "ffn_gate_inp.weight")
                                  : step < 2 || (i + 1) % step == 0;
    return DREY_OK;
}

static drey_status read_experts(model_shape *s, const gguf *g, drey_error *err)
{
    const arch *a = s->arch;
    expert_shape *e = &s->experts;
    router_shape *r = &e->router;
    int32_t n_shared;
    char key[96];
    if (!(a->keys & KEYS_EXPERTS))
        return DREY_OK;
    TRY(arch_read_count(g, a, "expert_count", 1 << 12, &r->n_experts, err));
    TRY(arch_read_count(g, a, "expert_used_count", ROUTER_MOST, &r->n_used, err));
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
    TRY(read_mixtures(s, g, err));
    if (shape_expert_layers(s) == 0)
        return DREY_OK;
    TRY(arch_read_count(g, a, "expert_feed_forward_length", 1 << 20, &e->n_ff, err));
    TRY(arch_read_count(g, a, "expert_shared_feed_forward_length", 1 << 20, &e->n_ff_shared, err));
    if (a->keys & KEYS_MAMBA)
        TRY(arch_read_count(g, a, "moe_latent_size", 1 << 17, &e->n_latent, err));
    e->n_ff = e->n_ff > 0 ? e->n_ff : s->layer[0].n_ff;
    TRY(arch_read_count(g, a, "expert_shared_count", 64, &n_shared, err));
    if (e->n_ff_shared == 0)
        e->n_ff_shared = n_shared * e->n_ff;
    if (a->forms & FORM_DENSE_BESIDE)
        e->n_ff_shared = s->layer[min_i32(shape_first_mixture(s), s->n_layers - 1)].n_ff;
    if (e->n_ff_shared == 0 && has_block(g, shape_first_mixture(s), "ffn_up_shexp.weight"))
        e->n_ff_shared = a->forms & FORM_WEIGHED_INPUTS ? e->n_ff : s->layer[0].n_ff;
    TRY(read_groups(r, g, a, err));
    return read_gate(r, g, a, err);
}

/* The head of an MTP block, whose rows are the vocabulary; NULL: the file has none. */
static const gguf_tensor *mtp_head(const gguf *g, int32_t block)
{
    char own[64];
    snprintf(own, sizeof own, "blk.%d.nextn.shared_head_head.weight", block);
    const char *const names[] = {own, "output.weight", "token_embd.weight"};
    const gguf_tensor *head = NULL;
    for (int32_t i = 0; i < 3 && !head; i++)
        head = gguf_find_tensor(g, names[i]);
    return head;
}

/* Returns whether the file has MTP blocks and none of the layers before them. */
static bool is_mtp_alone(const model_shape *s, const gguf *g)
{
    return arch_mtp_blocks(s->arch, g) > 0 && !has_block(g, 0, "") &&
           has_block(g, s->n_layers, "nextn.");
}

/* Returns whether it is an encoder-only architecture that llama.cpp runs and drey does not. */
static bool encodes_only(gguf_string name)
{
    static const char *const names[] = {"t5encoder",      "bert",         "nomic-bert",
                                        "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3",
                                        "modern-bert",    "neo-bert",     "gemma-embedding"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (gguf_is_text(name, names[i]))
            return true;
    return false;
}

static drey_status read_vocabulary(model_shape *s, const gguf *g, drey_error *err)
{
    const gguf_tensor *embedding =
        is_mtp_alone(s, g) ? mtp_head(g, s->n_layers) : gguf_find_tensor(g, "token_embd.weight");
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

/* A convolution of l_cache rows sees the rows before a row as well. */
static drey_status read_recurrent(model_shape *s, const gguf *g, drey_error *err)
{
    int32_t n;
    if (s->arch->keys & KEYS_SHORT_CONV) {
        TRY(read_int(g, s->arch, "shortconv.l_cache", RECURRENT_BLOCK, &n, err));
        s->recurrent.n_taps = n - 1;
    }
    s->recurrent.stride = model_state_stride(s);
    return DREY_OK;
}

static drey_status read_mtp(model_shape *s, const model_shape *of, const gguf *g, drey_error *err)
{
    const int32_t block = of->n_layers, n = arch_mtp_blocks(of->arch, g);
    char key[96];
    if (n == 0 || shape_is_mtp(of))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the file has no block for multi-token prediction (%s): take one that was converted "
             "with it, or draft with something else",
             arch_key(of->arch, "nextn_predict_layers", key));
    if (!(of->arch->keys & KEYS_NEXTN) || of->arch->layer_norm || of->streams.n > 0)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "drey does not compute the MTP blocks of architecture %s: draft with something else",
             of->arch->name);
    if (!has_block(g, block, "nextn.eh_proj.weight") || !mtp_head(g, block))
        FAIL(err, DREY_ERR_FORMAT,
             "%s is %d, and the file lacks %s, so its MTP block is cut off: take a file that was "
             "converted with it, or draft with something else",
             arch_key(of->arch, "nextn_predict_layers", key), n,
             mtp_head(g, block) ? "the tensor nextn.eh_proj.weight of it" : "a head for it");
    if (!layer_attention(of, block))
        FAIL(err, DREY_ERR_FORMAT, "the MTP block, layer %d, has no heads; the file is broken",
             block);
    *s = *of;
    s->layer[0] = of->layer[block];
    s->layer[0].experts = has_block(g, block, "ffn_gate_inp.weight");
    s->n_layers = 1;
    s->taps = (tap_shape){
        .n = 1, .layer = {block}, .width = of->n_embd, .n_ids = of->n_vocab, .mtp_block = block};
    return DREY_OK;
}

drey_status mtp_shape_read(model_shape *s, const model_shape *of, const gguf *g, drey_error *err)
{
    return error_in_file(err, gguf_shard_path(g, 0), read_mtp(s, of, g, err));
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
    if (!s->arch && gguf_is_text(name, "clip"))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the file is the part of a model that sees or hears (architecture \"clip\"), which "
             "drey does not compute; the text part runs: give the model's own file");
    if (!s->arch)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "architecture \"%s\" is not supported; use llama, qwen3, qwen35moe, glm4moe, gpt-oss "
             "or another one of docs/reference/models.md",
             gguf_printable((char[48]){0}, 48, name.text, name.n_bytes));
    TRY(read_sizes(s, g, err));
    TRY(arch_keys_check(s, g, err));
    TRY(arch_read_delta(s, g, err));
    TRY(arch_read_latent(s, g, err));
    TRY(read_attention(s, g, err));
    TRY(arch_read_per_layer(s, g, err));
    TRY(read_scales(s, g, err));
    TRY(read_temperature(s, g, err));
    if (s->arch->keys & KEYS_TAPS)
        TRY(read_taps(s, g, err));
    TRY(read_vocabulary(s, g, err));
    TRY(read_encoder(s, g, err));
    TRY(read_experts(s, g, err));
    TRY(arch_read_streams(s, g, err));
    TRY(read_recurrent(s, g, err));
    TRY(rope_read(s, g, err));
    arch_end_latent(s, g);
    if (!is_mtp_alone(s, g))
        return DREY_OK;
    const model_shape of = *s;
    return read_mtp(s, &of, g, err);
}

drey_status model_shape_read(model_shape *s, const gguf *g, drey_error *err)
{
    return error_in_file(err, gguf_shard_path(g, 0), read_shape(s, g, err));
}
