/* RoPE and its scaling, as files state it.
 *
 * The keys and their meaning are llama.cpp's (src/llama-model.cpp, load_hparams; ggml rope_yarn):
 * linear scaling divides every frequency by a factor; YaRN (Peng et al. 2023, 3.2) leaves pairs
 * that turn often within the original context as they are, divides those that turn rarely, and
 * blends between. How much of the blend applies is a number (yarn_ext_factor), so that linear
 * scaling is YaRN with 0 of it, and no scaling a factor of 1. */
#include <math.h>
#include <string.h>

#include "base/fmath.h"
#include "common/error.h"
#include "common/num.h"
#include "gguf/gguf.h"
#include "model/arch.h"

/* A number that has to be in [low, high). */
static drey_status read_number(const gguf *g, const arch *a, const char *suffix, double fallback,
                               double low, double high, double *out, drey_error *err)
{
    char key[96];
    *out = gguf_number(g, arch_key(a, suffix, key), fallback);
    if (!(*out >= low && *out < high))
        FAIL(err, DREY_ERR_FORMAT, "key %s is %g; the file is broken", key, *out);
    return DREY_OK;
}

/* A factor without a type means linear scaling; 0 stands for none, as longrope has factors of its
 * own. */
static drey_status read_factor(const model_shape *s, rope_shape *rope, const gguf *g,
                               drey_error *err)
{
    char key[96];
    gguf_string type = gguf_text(g, arch_key(s->arch, "rope.scaling.type", key));
    bool yarn = gguf_is_text(type, "yarn"),
         none = gguf_is_text(type, "none") || s->context.longrope;
    if (type.text && !yarn && !none && !gguf_is_text(type, "linear"))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "RoPE scaling \"%s\" is not supported (none, linear and yarn are)",
             gguf_printable((char[48]){0}, 48, type.text, type.n_bytes));
    bool old = !gguf_find_key(g, arch_key(s->arch, "rope.scaling.factor", key));
    TRY(read_number(g, s->arch, old ? "rope.scale_linear" : "rope.scaling.factor", 0, 0, 1e6,
                    &rope->factor, err));
    if (rope->factor == 0.0 || none)
        rope->factor = 1.0;
    TRY(read_number(g, s->arch, "rope.scaling.yarn_ext_factor", -1, -1e6, 1e3, &rope->blend, err));
    if (rope->blend < 0)
        rope->blend = yarn ? 1.0 : 0.0;
    return DREY_OK;
}

/* The part of YaRN's magnitude that a model's scores have, and not its cosines and sines; 0:
 * none. */
static double yarn_magnitude(const rope_shape *rope, double part)
{
    return rope->factor > 1.0 ? 1.0 + 0.1 * part * log_f64(rope->factor) : 1.0;
}

static drey_status read_magnitude(const model_shape *s, rope_shape *rope, const gguf *g,
                                  drey_error *err)
{
    const double least = 1e-3, most = 1e3;
    double own, factor, part;
    const char *log_multiplier = "rope.scaling.yarn_log_multiplier";
    TRY(read_number(g, s->arch, log_multiplier, 0, 0, most, &part, err));
    TRY(read_number(g, s->arch, "rope.scaling.yarn_attn_factor", 1, least, most, &own, err));
    TRY(read_number(g, s->arch, "rope.scaling.attn_factor", 1, least, most, &factor, err));
    if (rope->blend != 0.0 && s->latent.kv_rank > 0 && part > 0)
        own = 1.0;               /* all of it is in the scores */
    else if (rope->blend != 0.0) /* YaRN's own, in place of what the file says */
        own = yarn_magnitude(rope, 1.0) / yarn_magnitude(rope, part);
    rope->magnitude = own * factor;
    return DREY_OK;
}

static bool has_local(const model_shape *s)
{
    for (int32_t i = 0; i < s->n_attentions; i++)
        if (s->attention[i].local)
            return true;
    return false;
}

/* Checks that so many numbers of a head can be rotated, in local layers or in the others. */
static drey_status check_rotated(const model_shape *s, bool local, int64_t n_rot, drey_error *err)
{
    for (int32_t i = 0; i < s->n_attentions; i++) {
        const attention_shape *a = &s->attention[i];
        if (a->local == local && (n_rot < 2 || n_rot % 2 || n_rot > a->head_dim))
            FAIL(err, DREY_ERR_FORMAT,
                 "%s.%s is %lld, but must be even and at most the head size %d; the file is broken",
                 s->arch->name, local ? "rope.dimension_count_swa" : "rope.dimension_count",
                 (long long)n_rot, a->head_dim);
    }
    return DREY_OK;
}

/* Local layers have their own base, without scaling: the file's, or the architecture's. */
static drey_status read_local(model_shape *s, const gguf *g, drey_error *err)
{
    rope_shape *rope = &s->rope[ROPE_OF_LOCAL];
    char key[96];
    *rope = s->rope[ROPE_OF_ALL];
    s->n_ropes = 1;
    s->n_angles = rope->n_rot;
    const arch *a = s->arch;
    const double base = a->local.base > 0 ? a->local.base : rope->base;
    const int32_t usual = a->local.halved ? 2 * rope->n_rot : rope->n_rot;
    int64_t n_rot = gguf_int(g, arch_key(a, "rope.dimension_count_swa", key), usual);
    bool own = a->local.base > 0 || a->local.unscaled || n_rot != rope->n_rot ||
               gguf_find_key(g, arch_key(a, "rope.freq_base_swa", key));
    if (!has_local(s) || !own)
        return DREY_OK;
    s->n_ropes = ROPES;
    rope->first = s->n_angles;
    TRY(check_rotated(s, true, n_rot, err));
    rope->n_rot = (int32_t)n_rot;
    s->n_angles += rope->n_rot;
    TRY(read_number(g, a, "rope.freq_base_swa", base, 1.001, 1e12, &rope->base, err));
    if (a->local.unscaled) {
        rope->factor = rope->magnitude = 1.0;
        rope->blend = 0.0;
    }
    return DREY_OK;
}

/* Reads two lists of factors. The list that counts depends on how long a text will be, and a text
 * may not depend on that: only contexts of the short one are computed. */
static void read_longrope(model_shape *s, const gguf *g)
{
    char key[96];
    s->context.longrope = s->arch->longrope && (gguf_find_tensor(g, "rope_factors_short.weight") ||
                                                gguf_find_tensor(g, "rope_factors_long.weight"));
    if (!s->context.longrope)
        return;
    int64_t original = gguf_int(g, arch_key(s->arch, "rope.scaling.original_context_length", key),
                                s->n_context_train);
    if (original >= 1 && original < s->n_context_train)
        s->n_context_train = (int32_t)original;
    s->context.ends = true;
}

drey_status rope_read(model_shape *s, const gguf *g, drey_error *err)
{
    rope_shape *rope = &s->rope[ROPE_OF_ALL];
    char key[96];
    if (s->arch->rope == ROPE_NONE || s->arch->rope == ROPE_BUCKETS) {
        s->context.ends = s->arch->rope == ROPE_NONE;
        return DREY_OK;
    }
    read_longrope(s, g);
    int64_t n_rot =
        gguf_int(g, arch_key(s->arch, "rope.dimension_count", key), s->attention[0].head_dim);
    TRY(check_rotated(s, false, n_rot, err));
    rope->n_rot = (int32_t)n_rot;
    if (s->arch->local.halved)
        rope->n_rot = (int32_t)n_rot / 4 * 2;
    TRY(read_number(g, s->arch, "rope.freq_base", 10000, 1.001, 1e12, &rope->base, err));
    TRY(read_factor(s, rope, g, err));
    TRY(read_magnitude(s, rope, g, err));
    TRY(read_number(g, s->arch, "rope.scaling.yarn_beta_fast", 32, 1e-3, 1e6, &rope->fast, err));
    TRY(read_number(g, s->arch, "rope.scaling.yarn_beta_slow", 1, 1e-3, 1e6, &rope->slow, err));
    const char *original = "rope.scaling.original_context_length";
    TRY(read_number(g, s->arch, original, 0, 0, 1 << 30, &rope->original_context, err));
    if (rope->original_context == 0.0)
        rope->original_context = s->n_context_train;
    return read_local(s, g, err);
}

/* The pair that turns `turns` times within the original context. */
static double pair_of(const rope_shape *rope, double turns)
{
    double two_pi = 6.283185307179586;
    return rope->n_rot * log_f64(rope->original_context / (turns * two_pi)) /
           (2 * log_f64(rope->base));
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

double rope_frequencies(const model_shape *s, const rope_shape *rope, const float *factors,
                        double *out)
{
    double low = pair_of(rope, rope->fast), high = pair_of(rope, rope->slow);
    low = clamp(s->arch->yarn_exact ? low : floor(low), 0, rope->n_rot - 1);
    high = clamp(s->arch->yarn_exact ? high : ceil(high), 0, rope->n_rot - 1);
    double width = max_f64(high - low, 0.001);
    for (int32_t i = 0; i < rope->n_rot / 2; i++) {
        double frequency = pow_f64(rope->base, -2.0 * i / rope->n_rot);
        if (factors) /* pairs with an enormous one are not rotated */
            frequency = factors[i] > 1e6f ? 0 : frequency / (double)factors[i];
        double kept = rope->blend * (1 - clamp((i - low) / width, 0, 1));
        out[i] = frequency / rope->factor * (1 - kept) + frequency * kept;
    }
    return rope->magnitude;
}
