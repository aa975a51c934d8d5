/* Rotation of heads by their position, from config.json.
 *
 * It is in members of the whole (rope_theta), in rope_scaling, or since 2025 in rope_parameters,
 * which may have one object for layers that see all and one for those with a window. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmath.h"
#include "convert/json_types.h"
#include "convert/keys.h"

/* ---- Keys ---- */

const char *keys_name(const keys *k, const char *suffix, char out[96])
{
    snprintf(out, 96, "%s.%s", k->family->arch_name, suffix);
    return out;
}

void keys_u32(const keys *k, const char *suffix, uint32_t value)
{
    new_gguf_u32(k->file, keys_name(k, suffix, (char[96]){0}), value);
}

void keys_f32(const keys *k, const char *suffix, double value)
{
    new_gguf_f32(k->file, keys_name(k, suffix, (char[96]){0}), (float)value);
}

void keys_text(const keys *k, const char *suffix, const char *value)
{
    new_gguf_text(k->file, keys_name(k, suffix, (char[96]){0}), value);
}

void keys_bool(const keys *k, const char *suffix, bool value)
{
    new_gguf_bool(k->file, keys_name(k, suffix, (char[96]){0}), value);
}

/* ---- What there is ---- */

typedef struct rotation {
    const json_value *all;   /* the object of layers that see all; NULL: there is none */
    const char *type;        /* "" where nothing is scaled */
    double base, local_base; /* NAN: not said */
    int64_t n_context, original_context;
    int64_t n_rot;       /* rotated numbers of a head */
    int64_t n_local_rot; /* the same in local layers; 0: as in the others */
} rotation;

/* All that is known of them: another member might change the text. */
static const member_kind rope_kinds[] = {{"rope_type", KIND_TEXT},
                                         {"type", KIND_TEXT},
                                         {"rope_theta", KIND_POSITIVE},
                                         {"partial_rotary_factor", KIND_POSITIVE},
                                         {"factor", KIND_POSITIVE},
                                         {"original_max_position_embeddings", KIND_COUNT},
                                         {"low_freq_factor", KIND_POSITIVE},
                                         {"high_freq_factor", KIND_POSITIVE},
                                         {"short_factor", KIND_NUMBERS},
                                         {"long_factor", KIND_NUMBERS},
                                         {"short_mscale", KIND_NUMBER},
                                         {"long_mscale", KIND_NUMBER},
                                         {"mscale", KIND_NUMBER},
                                         {"mscale_all_dim", KIND_NUMBER},
                                         {"attention_factor", KIND_POSITIVE},
                                         {"attn_factor", KIND_POSITIVE},
                                         {"extrapolation_factor", KIND_NUMBER},
                                         {"beta_fast", KIND_POSITIVE},
                                         {"beta_slow", KIND_POSITIVE},
                                         {"truncate", KIND_BOOL},
                                         {"finetuned", KIND_BOOL},
                                         {"mrope_section", KIND_COUNTS},
                                         {"mrope_interleaved", KIND_BOOL},
                                         {"llama_4_scaling_beta", KIND_NUMBER},
                                         {"alpha", KIND_POSITIVE},
                                         {0}};
static const member_kind layer_kinds[] = {
    {"full_attention", KIND_OBJECT}, {"sliding_attention", KIND_OBJECT}, {0}};

/* "mrope" has a position for each of three parts of a head, which in a text are the same. */
static const char *type_of(const json_value *rope)
{
    const char *type = json_member_text(rope, "rope_type");
    type = type ? type : json_member_text(rope, "type");
    return !type || strcmp(type, "default") == 0 || strcmp(type, "mrope") == 0 ? "" : type;
}

/* One object, or one for each kind of layers: *all, *local. */
static drey_status find_objects(const keys *k, const json_value **all, const json_value **local,
                                drey_error *err)
{
    const json_value *rope = config_find(k->folder, "rope_parameters|rope_scaling");
    const json_value *other = config_find(k->folder, "rope_scaling");
    static const char in[] = "rope_scaling or rope_parameters of config.json";
    *all = rope;
    *local = json_member(rope, "sliding_attention");
    if (other && rope != other && !json_same(rope, other))
        FAIL(err, DREY_ERR_FORMAT,
             "config.json has rope_parameters and another rope_scaling; leave one");
    if (!*local && !json_member(rope, "full_attention"))
        return check_members(rope, rope_kinds, true, in, err);
    TRY(check_members(rope, layer_kinds, true, in, err));
    *all = json_member(rope, "full_attention");
    if (!*all ||
        (*local && k->family->arch->local.period == 0 && k->family->window != WINDOW_LISTED))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s is for kinds of layers that architecture %s does not have", in,
             k->family->arch_name);
    TRY(check_members(*all, rope_kinds, true, in, err));
    TRY(check_members(*local, rope_kinds, true, in, err));
    const bool same =
        strcmp(type_of(*local), type_of(*all)) == 0 && !k->family->arch->local.unscaled;
    if (*type_of(*local) && !same)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "layers with a window have the RoPE scaling \"%.40s\", which is not converted",
             type_of(*local));
    return DREY_OK;
}

/* A scaling whose kind is not said. */
static drey_status check_kind(const json_value *rope, drey_error *err)
{
    static const char *const scaling[] = {"factor", "short_factor", "long_factor",
                                          "low_freq_factor", "high_freq_factor"};
    if (json_member(rope, "rope_type") || json_member(rope, "type"))
        return DREY_OK;
    for (size_t i = 0; i < sizeof scaling / sizeof *scaling; i++)
        if (json_member(rope, scaling[i]))
            FAIL(err, DREY_ERR_FORMAT, "rope_scaling of config.json has %s, and no rope_type",
                 scaling[i]);
    return DREY_OK;
}

static double number_or(const json_value *rope, const char *name, double fallback)
{
    double value = json_member_number(rope, name);
    return isnan(value) ? fallback : value;
}

/* A number of config.json, which may be one of each layer: that of the first layer that is local,
 * or not. NAN: there is none. */
static double layer_number(const keys *k, const char *name, bool local)
{
    const json_value *list = config_find(k->folder, name);
    if (!list || list->type != JSON_ARRAY)
        return config_number(k->folder, name);
    int64_t i = 0;
    for (const json_value *v = list->first; v; v = v->next, i++) {
        const char *type = keys_layer_type(k, i);
        if (type && (strcmp(type, "full_attention") != 0) == local && v->type == JSON_NUMBER)
            return v->number;
    }
    return NAN;
}

/* Rotated numbers of a head, whose size is r->n_rot. */
static drey_status read_parts(const keys *k, rotation *r, const json_value *local, int64_t n_embd,
                              int64_t n_heads, drey_error *err)
{
    static const char other[] = "partial_rotary_factor|rope_pct|rotary_pct";
    const family *a = k->family;
    const double head = (double)r->n_rot, stated = config_number(k->folder, "rotary_dim");
    double part = layer_number(k, "partial_rotary_factors", false);
    part = number_or(r->all, "partial_rotary_factor",
                     isnan(part) ? config_number(k->folder, other) : part);
    double local_part =
        number_or(local, "partial_rotary_factor", layer_number(k, "partial_rotary_factors", true));
    if (isnan(part) && a->rotated > 0)
        part = stated > 0 ? stated / head : a->rotated;
    if (a->arch->longrope && !isnan(part) && part > 0 && part <= 1)
        r->n_rot = (int64_t)(part * (double)n_embd) / n_heads;
    else if (!isnan(part) && part != 1 && !(a->rotated > 0 && part > 0 && part < 1))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "partial_rotary_factor is %g, which drey does not compute "
             "for architecture %s",
             part, a->arch_name);
    else if (!isnan(part))
        r->n_rot = (int64_t)(part * head);
    if (!isnan(local_part))
        r->n_local_rot = (int64_t)(local_part * head);
    if (a->arch->local.halved && r->n_local_rot != 2 * r->n_rot)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "partial_rotary_factor is %g, where drey computes architecture %s with half of that "
             "of layers with a window",
             part, a->arch_name);
    if (a->arch->local.halved)
        r->n_rot = r->n_local_rot;
    return DREY_OK;
}

static drey_status read_rotation(const keys *k, rotation *r, drey_error *err)
{
    const hub_folder *f = k->folder;
    const json_value *local;
    int64_t n_embd, n_heads;
    bool there;
    *r = (rotation){0};
    TRY(find_objects(k, &r->all, &local, err));
    TRY(check_kind(r->all, err));
    if (!r->all && k->family->arch->yarn_exact) /* whose default is not "none" */
        FAIL(err, DREY_ERR_FORMAT, "config.json has no rope_scaling");
    r->type = type_of(r->all);
    const json_value *theta = config_find(f, "rope_theta");
    if (theta && theta->type == JSON_ARRAY && !k->family->from_tensors)
        FAIL(err, DREY_ERR_FORMAT,
             "rope_theta of config.json is an array, where one number has to be");
    r->base = number_or(r->all, "rope_theta", layer_number(k, "rope_theta", false));
    if (isnan(r->base) && k->family->rope_base > 0)
        r->base = k->family->rope_base;
    r->local_base =
        number_or(local, "rope_theta", config_number(f, "rope_local_base_freq|swa_rope_theta"));
    if (isnan(r->local_base) && r->base != layer_number(k, "rope_theta", true))
        r->local_base = layer_number(k, "rope_theta", true);
    TRY(config_require(f, "max_position_embeddings", 1, INT32_MAX, &r->n_context, err));
    double original = number_or(r->all, "original_max_position_embeddings",
                                config_number(f, "original_max_position_embeddings"));
    r->original_context = isnan(original) ? r->n_context : (int64_t)original;
    TRY(config_require(f, "hidden_size", 1, INT32_MAX, &n_embd, err));
    TRY(config_require(f, "num_attention_heads", 1, INT32_MAX, &n_heads, err));
    TRY(config_int(f, "head_dim", 1, 1 << 16, &r->n_rot, &there, err));
    if (there && (k->family->arch->keys & KEYS_SCALES) && r->n_rot != n_embd / n_heads)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "head_dim is %lld, where drey computes architecture %s with %lld", (long long)r->n_rot,
             k->family->arch_name, (long long)(n_embd / n_heads));
    if (!there)
        r->n_rot = n_embd / n_heads;
    return read_parts(k, r, local, n_embd, n_heads, err);
}

/* ---- Factors ---- */

static drey_status take_factors(rope_factors *out, const char *name, int64_t n, drey_error *err)
{
    out->values = malloc((size_t)(n > 0 ? n : 1) * sizeof *out->values);
    if (!out->values)
        FAIL(err, DREY_ERR_MEMORY, "no memory for RoPE factors");
    out->name = name;
    out->n = (int32_t)n;
    return DREY_OK;
}

/* Llama 3.1: slow turns are slowed down by a factor, fast ones stay, those between are blended.
 * Where layers that see all rotate half of what the file states, the list is as long as for the
 * whole, and ends with ones. */
static drey_status llama3_factors(const rotation *r, bool halved, rope_factors *out,
                                  drey_error *err)
{
    const double n_rot = (double)(halved ? r->n_rot / 2 : r->n_rot);
    double factor = number_or(r->all, "factor", 8), low = number_or(r->all, "low_freq_factor", 1);
    double high = number_or(r->all, "high_freq_factor", 4);
    double context = number_or(r->all, "original_max_position_embeddings", 8192);
    double base = isnan(r->base) ? 10000 : r->base;
    if (!(factor > 0 && low > 0 && high > low && context > 0 && base > 0))
        FAIL(err, DREY_ERR_FORMAT, "rope_scaling of config.json has numbers that cannot be");
    TRY(take_factors(out, "rope_freqs.weight", r->n_rot / 2, err));
    for (int32_t i = 0; i < out->n; i++) {
        double length = 2 * M_PI * pow_f64(base, 2.0 * i / n_rot);
        double smooth = (context / length - low) / (high - low);
        double blended = 1 / ((1 - smooth) / factor + smooth);
        out->values[i] = (float)(length < context / high  ? 1
                                 : length > context / low ? factor
                                                          : blended);
        if (2 * i >= n_rot)
            out->values[i] = 1;
    }
    return DREY_OK;
}

static drey_status list_factors(const rotation *r, const char *member, const char *name,
                                rope_factors *out, drey_error *err)
{
    const json_value *list = json_member_array(r->all, member);
    if (!list || (int64_t)list->n != r->n_rot / 2)
        FAIL(err, DREY_ERR_FORMAT, "%s of config.json does not have %lld numbers", member,
             (long long)(r->n_rot / 2));
    TRY(take_factors(out, name, r->n_rot / 2, err));
    int32_t i = 0;
    for (const json_value *v = list->first; v; v = v->next, i++) {
        if (!(v->number > 0))
            FAIL(err, DREY_ERR_FORMAT, "%s of config.json has %g, where numbers above 0 have to be",
                 member, v->number);
        out->values[i] = (float)v->number;
    }
    return DREY_OK;
}

static drey_status put_longrope(const keys *k, const rotation *r,
                                rope_factors out[MOST_ROPE_FACTORS], drey_error *err)
{
    double scale = (double)r->n_context / (double)r->original_context;
    if (json_member(r->all, "short_mscale") || json_member(r->all, "long_mscale"))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "rope_scaling has short_mscale or long_mscale, which drey does not compute");
    double magnitude =
        scale > 1 ? sqrt(1 + log_f64(scale) / log_f64((double)r->original_context)) : 1;
    keys_f32(k, "rope.scaling.attn_factor", number_or(r->all, "attention_factor", magnitude));
    TRY(list_factors(r, "long_factor", "rope_factors_long.weight", &out[0], err));
    return list_factors(r, "short_factor", "rope_factors_short.weight", &out[1], err);
}

/* ---- All ---- */

static void put_if(const keys *k, const rotation *r, const char *member, const char *suffix)
{
    double value = json_member_number(r->all, member);
    if (!isnan(value))
        keys_f32(k, suffix, value);
}

/* Checks that the frequencies between which YaRN blends are rounded as the architecture has it. */
static drey_status check_ends(const keys *k, const rotation *r, drey_error *err)
{
    bool rounded;
    if (!json_member_bool(r->all, "truncate", &rounded))
        rounded = true;
    if (rounded == k->family->arch->yarn_exact)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "truncate of rope_scaling is %s, which drey does not compute for architecture %s",
             rounded ? "true" : "false", k->family->arch_name);
    return DREY_OK;
}

static drey_status put_scaling(const keys *k, const rotation *r,
                               rope_factors out[MOST_ROPE_FACTORS], drey_error *err)
{
    bool longrope = strcmp(r->type, "longrope") == 0 || strcmp(r->type, "su") == 0;
    double factor = json_member_number(r->all, "factor");
    const bool logs = k->family->arch->keys & KEYS_YARN_LOG;
    const double mscale = json_member_number(r->all, "mscale");
    bool known = factor >= 1 && (isnan(mscale) || (logs && mscale == 1));
    if (!*r->type)
        return DREY_OK;
    if (strcmp(r->type, "dynamic") == 0 && k->family->arch->forms & FORM_ROTATED_NORMS)
        return DREY_OK; /* its factor is the base's */
    if (longrope && k->family->arch->longrope)
        return put_longrope(k, r, out, err);
    if (strcmp(r->type, "llama3") == 0 && !k->family->arch->longrope)
        return llama3_factors(r, k->family->arch->local.halved, &out[0], err);
    if (strcmp(r->type, "linear") == 0 && known) {
        keys_text(k, "rope.scaling.type", "linear");
        keys_f32(k, "rope.scaling.factor", factor);
    } else if (strcmp(r->type, "yarn") == 0 && known) {
        TRY(check_ends(k, r, err));
        keys_text(k, "rope.scaling.type", "yarn");
        keys_f32(k, "rope.scaling.factor", factor);
        keys_u32(k, "rope.scaling.original_context_length", (uint32_t)r->original_context);
        put_if(k, r, "extrapolation_factor", "rope.scaling.yarn_ext_factor");
        put_if(k, r, json_member(r->all, "attention_factor") ? "attention_factor" : "attn_factor",
               "rope.scaling.yarn_attn_factor");
        if (logs)
            put_if(k, r, "mscale_all_dim", "rope.scaling.yarn_log_multiplier");
        if (k->family->arch->keys & KEYS_TEMPERATURE)
            put_if(k, r, "llama_4_scaling_beta", "attention.temperature_scale");
        put_if(k, r, "beta_fast", "rope.scaling.yarn_beta_fast");
        put_if(k, r, "beta_slow", "rope.scaling.yarn_beta_slow");
    } else {
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model's RoPE scaling \"%.40s\" is not converted for "
             "architecture %s",
             r->type, k->family->arch_name);
    }
    return DREY_OK;
}

/* Parts of a head with positions of their own, four of which files state. */
static void put_sections(const keys *k, const rotation *r)
{
    double sections[4] = {0};
    uint32_t out[4];
    int n = json_member_numbers(r->all, "mrope_section", sections, 4);
    if (n < 1 || !(k->family->arch->keys & KEYS_IMAGES))
        return;
    for (int i = 0; i < 4; i++)
        out[i] = (uint32_t)sections[i];
    new_gguf_u32s(k->file, keys_name(k, "rope.dimension_sections", (char[96]){0}), out, 4);
}

/* Hunyuan's base for long texts: a factor of each turn, 1 for the fastest. */
static void stretch_base(const keys *k, rotation *r)
{
    const double alpha = json_member_number(r->all, "alpha"), n = (double)r->n_rot;
    if (strcmp(r->type, "dynamic") == 0 && k->family->arch->forms & FORM_ROTATED_NORMS &&
        alpha > 0 && n > 2)
        r->base *= pow_f64(alpha, n / (n - 2));
}

drey_status rope_keys(const keys *k, rope_factors factors[MOST_ROPE_FACTORS], drey_error *err)
{
    rotation r;
    TRY(read_rotation(k, &r, err));
    const bool longrope = k->family->arch->longrope;
    stretch_base(k, &r);
    if (k->family->arch->rope == ROPE_NEIGHBOURS || longrope || k->family->rotated > 0)
        keys_u32(k, "rope.dimension_count", (uint32_t)r.n_rot);
    if (longrope)
        keys_u32(k, "rope.scaling.original_context_length", (uint32_t)r.original_context);
    if (!isnan(r.base))
        keys_f32(k, "rope.freq_base", r.base);
    if (!isnan(r.local_base) && (r.local_base != r.base || k->family->arch->local.base > 0))
        keys_f32(k, "rope.freq_base_swa", r.local_base);
    if (r.n_local_rot > 0 && r.n_local_rot != r.n_rot)
        keys_u32(k, "rope.dimension_count_swa", (uint32_t)r.n_local_rot);
    put_sections(k, &r);
    return put_scaling(k, &r, factors, err);
}
