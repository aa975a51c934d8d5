/* The table of architectures, and reading a model's shape: see arch.h. Key names: ggml
 * docs/gguf.md. */
#include "model/arch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fmath.h"

static const arch archs[] = {
    {.name = "llama", .rope_neox = false}, /* converters permute its Q and K rows for this */
    {.name = "qwen2", .rope_neox = true},
};

const arch *arch_find(gguf_string name)
{
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (strlen(archs[i].name) == name.n_bytes &&
            memcmp(archs[i].name, name.text, name.n_bytes) == 0)
            return &archs[i];
    return NULL;
}

const char *arch_names(char *out, size_t capacity)
{
    size_t at = 0;
    for (size_t i = 0; i < sizeof archs / sizeof *archs && at < capacity; i++)
        at += (size_t)snprintf(out + at, capacity - at, "%s%s", i ? ", " : "", archs[i].name);
    return out;
}

/* "ARCH.suffix" */
static const char *key_of(const arch *a, const char *suffix, char out[96])
{
    snprintf(out, 96, "%s.%s", a->name, suffix);
    return out;
}

static drey_status read_int(const gguf *g, const arch *a, const char *suffix, int64_t high,
                            int32_t *out, drey_error *err)
{
    char key[96];
    int64_t value;
    TRY(gguf_require_int(g, key_of(a, suffix, key), 1, high, &value, err));
    *out = (int32_t)value;
    return DREY_OK;
}

static drey_status read_rope(model_shape *s, const gguf *g, drey_error *err)
{
    char key[96];
    int64_t n_rot = gguf_int(g, key_of(s->arch, "rope.dimension_count", key), s->head_dim);
    if (n_rot < 2 || n_rot % 2 || n_rot > s->head_dim)
        FAIL(err, DREY_ERR_FORMAT,
             "%s is %lld, but must be even and at most the head size %d; the file is broken", key,
             (long long)n_rot, s->head_dim);
    s->n_rot = (int32_t)n_rot;
    s->rope_base = gguf_number(g, key_of(s->arch, "rope.freq_base", key), 10000.0);
    if (!(s->rope_base > 1.0 && s->rope_base < 1e12))
        FAIL(err, DREY_ERR_FORMAT, "%s is %g; the file is broken", key, s->rope_base);
    gguf_string kind = gguf_text(g, key_of(s->arch, "rope.scaling.type", key));
    s->rope_factor = gguf_number(g, key_of(s->arch, "rope.scaling.factor", key), 1.0);
    s->rope_attn_factor = gguf_number(g, key_of(s->arch, "rope.scaling.attn_factor", key), 1.0);
    int64_t original = gguf_int(g, key_of(s->arch, "rope.scaling.original_context_length", key),
                                s->n_context_train);
    if (kind.n_bytes == 4 && memcmp(kind.text, "yarn", 4) == 0)
        s->scaling = ROPE_YARN;
    else if (kind.n_bytes == 6 && memcmp(kind.text, "linear", 6) == 0)
        s->scaling = ROPE_LINEAR;
    else if (kind.n_bytes == 0 || (kind.n_bytes == 4 && memcmp(kind.text, "none", 4) == 0))
        s->scaling = ROPE_NONE;
    else
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "RoPE scaling \"%s\" is not supported (none, linear and yarn are)",
             gguf_printable((char[48]){0}, 48, kind.text, kind.n_bytes));
    if (!(s->rope_factor >= 1.0 && s->rope_factor < 1e6) ||
        !(s->rope_attn_factor > 0.0 && s->rope_attn_factor < 1e3) || original < 1 ||
        original > 1 << 30)
        FAIL(err, DREY_ERR_FORMAT,
             "the RoPE scaling keys hold factors of %g and %g and an original context of %lld; the "
             "file is broken",
             s->rope_factor, s->rope_attn_factor, (long long)original);
    s->rope_original_context = (int32_t)original;
    return DREY_OK;
}

drey_status model_shape_read(model_shape *s, const gguf *g, drey_error *err)
{
    *s = (model_shape){0};
    gguf_string name = gguf_text(g, "general.architecture");
    if (!name.text)
        FAIL(err, DREY_ERR_FORMAT,
             "the file names no architecture (general.architecture); it is not a model");
    s->arch = arch_find(name);
    if (!s->arch)
        FAIL(err, DREY_ERR_UNSUPPORTED, "architecture \"%s\" is not supported (%s are)",
             gguf_printable((char[48]){0}, 48, name.text, name.n_bytes),
             arch_names((char[256]){0}, 256));
    const arch *a = s->arch;
    TRY(read_int(g, a, "block_count", 1024, &s->n_layers, err));
    TRY(read_int(g, a, "embedding_length", 1 << 17, &s->n_embd, err));
    TRY(read_int(g, a, "attention.head_count", 1024, &s->n_heads, err));
    TRY(read_int(g, a, "feed_forward_length", 1 << 20, &s->n_ff, err));
    TRY(read_int(g, a, "context_length", 1 << 30, &s->n_context_train, err));
    char key[96];
    int64_t n_kv = gguf_int(g, key_of(a, "attention.head_count_kv", key), s->n_heads);
    if (n_kv < 1 || n_kv > s->n_heads || s->n_heads % n_kv)
        FAIL(err, DREY_ERR_FORMAT, "%s is %lld, which does not divide %d heads; the file is broken",
             key, (long long)n_kv, s->n_heads);
    s->n_heads_kv = (int32_t)n_kv;
    int64_t dim = gguf_int(g, key_of(a, "attention.key_length", key), s->n_embd / s->n_heads);
    if (dim < 2 || dim > 1024 || dim % 2)
        FAIL(err, DREY_ERR_FORMAT, "the heads have size %lld; the file is broken", (long long)dim);
    s->head_dim = (int32_t)dim;
    if (gguf_int(g, key_of(a, "attention.value_length", key), s->head_dim) != s->head_dim)
        FAIL(err, DREY_ERR_UNSUPPORTED, "keys and values of different sizes are not supported");
    if (gguf_int(g, key_of(a, "expert_count", key), 0) > 0)
        FAIL(err, DREY_ERR_UNSUPPORTED, "mixture-of-experts models are not supported");
    s->norm_eps = (float)gguf_number(g, key_of(a, "attention.layer_norm_rms_epsilon", key), 1e-5);
    if (!(s->norm_eps >= 0.0f && s->norm_eps < 1.0f))
        FAIL(err, DREY_ERR_FORMAT, "%s is %g; the file is broken", key, (double)s->norm_eps);
    const gguf_tensor *embedding = gguf_find_tensor(g, "token_embd.weight");
    if (!embedding)
        FAIL(err, DREY_ERR_FORMAT, "tensor token_embd.weight is missing; the file is incomplete");
    if (embedding->dims[1] < 1 || embedding->dims[1] > 1 << 24)
        FAIL(err, DREY_ERR_FORMAT, "the vocabulary has %lld entries; the file is broken",
             (long long)embedding->dims[1]);
    s->n_vocab = (int32_t)embedding->dims[1];
    return read_rope(s, g, err);
}

/* YaRN (Peng et al. 2023, 3.2): pairs that turn often within the original context keep their
 * frequency, pairs that turn rarely are stretched by the factor, those between are blended. The
 * pair that turns `turns` times: */
static double yarn_pair(const model_shape *s, double turns)
{
    double two_pi = 6.283185307179586;
    return s->n_rot * log_f64(s->rope_original_context / (turns * two_pi)) /
           (2 * log_f64(s->rope_base));
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

double rope_frequencies(const model_shape *s, const float *factors, double *out)
{
    int32_t n = s->n_rot / 2;
    double low = 0, high = 0;
    if (s->scaling == ROPE_YARN) {
        low = clamp(floor(yarn_pair(s, 32)), 0, s->n_rot - 1);
        high = clamp(ceil(yarn_pair(s, 1)), 0, s->n_rot - 1);
    }
    for (int32_t i = 0; i < n; i++) {
        double frequency = pow_f64(s->rope_base, -2.0 * i / s->n_rot);
        if (factors)
            frequency /= (double)factors[i];
        if (s->scaling == ROPE_LINEAR) {
            frequency /= s->rope_factor;
        } else if (s->scaling == ROPE_YARN) {
            double stretched = clamp((i - low) / (high - low > 0.001 ? high - low : 0.001), 0, 1);
            frequency = frequency * (1 - stretched) + frequency / s->rope_factor * stretched;
        }
        out[i] = frequency;
    }
    if (s->scaling != ROPE_YARN)
        return 1.0;
    return s->rope_attn_factor * (1.0 + 0.1 * log_f64(s->rope_factor));
}
