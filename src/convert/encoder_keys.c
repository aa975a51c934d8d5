/* Keys of models with an encoder. T5's are those that llama.cpp's converter writes, BART's are
 * drey's own (docs/reference/bart.md). */
#include <math.h>
#include <string.h>

#include "convert/keys.h"

/* ---- Sizes ---- */

typedef struct size_key {
    const char *names, *suffix;
    int32_t missing; /* value where config.json has none; 0: it has to */
} size_key;

static const size_key t5_sizes[] = {
    {"n_positions", "context_length", 512},
    {"d_model", "embedding_length", 0},
    {"d_ff", "feed_forward_length", 0},
    {"num_layers", "block_count", 0},
    {"num_decoder_layers|num_layers", "decoder_block_count", 0},
    {"num_heads", "attention.head_count", 0},
    {"d_kv", "attention.key_length", 0},
    {"d_kv", "attention.value_length", 0},
    {"relative_attention_num_buckets", "attention.relative_buckets_count", 32},
    {0}};

static const size_key bart_sizes[] = {{"encoder_layers", "block_count", 0},
                                      {"decoder_layers", "decoder_block_count", 0},
                                      {"max_position_embeddings", "context_length", 0},
                                      {"d_model", "embedding_length", 0},
                                      {"encoder_ffn_dim", "feed_forward_length", 0},
                                      {"encoder_attention_heads", "attention.head_count", 0},
                                      {0}};

static drey_status put_sizes(const keys *k, const size_key *sizes, drey_error *err)
{
    for (const size_key *s = sizes; s->names; s++) {
        int64_t value = s->missing;
        bool there;
        TRY(config_int(k->folder, s->names, 1, INT32_MAX, &value, &there, err));
        if (value == 0)
            TRY(config_require(k->folder, s->names, 1, INT32_MAX, &value, err));
        keys_u32(k, s->suffix, (uint32_t)value);
    }
    return DREY_OK;
}

/* ---- The decoder's first tokens ---- */

/* Writes the id of generation_config.json, or of config.json; fallback -1: it is left out. */
static drey_status put_id(const keys *k, const char *name, int64_t fallback, drey_error *err)
{
    const json_value *v = json_member(k->folder->generation.root, name);
    v = v ? v : config_find(k->folder, name);
    if (v && (v->type != JSON_NUMBER || !v->is_integer || v->integer < 0 || v->integer > INT32_MAX))
        FAIL(err, DREY_ERR_FORMAT, "%s of the model's configuration is no token", name);
    int64_t id = v ? v->integer : fallback;
    if (id >= 0)
        keys_u32(k, name, (uint32_t)id);
    return DREY_OK;
}

/* ---- T5 ---- */

/* ReLU, or GELU with a gate, of which the folder has a tensor more. */
static drey_status check_feed_forward(const keys *k, drey_error *err)
{
    const char *kind = config_text(k->folder, "feed_forward_proj");
    const char *function = config_text(k->folder, "dense_act_fn");
    int32_t part;
    kind = kind ? kind : k->family->feed_forward;
    bool gated = strcmp(kind, "gated-gelu") == 0;
    const char *usual = gated ? "gelu_new" : "relu";
    if (!gated && strcmp(kind, "relu") != 0)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model's feed_forward_proj is \"%.40s\", where drey computes \"relu\" and "
             "\"gated-gelu\"",
             kind);
    if (function && strcmp(function, usual) != 0)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model's dense_act_fn is \"%.40s\", where drey computes \"%s\" with \"%s\"",
             function, kind, usual);
    if (gated != (folder_find(k->folder, "encoder.block.0.layer.1.DenseReluDense.wi_0.weight",
                              &part) != NULL))
        FAIL(err, DREY_ERR_FORMAT,
             "feed_forward_proj is \"%s\", and the tensors are those of another; fetch the model "
             "again",
             kind);
    return DREY_OK;
}

static drey_status t5_keys(const keys *k, drey_error *err)
{
    double distance = config_number(k->folder, "relative_attention_max_distance");
    double eps = config_number(k->folder, "layer_norm_epsilon");
    TRY(check_feed_forward(k, err));
    if (!isnan(distance) && distance != 128)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "relative_attention_max_distance is %g, where drey computes T5 with 128", distance);
    if (isnan(eps))
        eps = 1e-6;
    if (!(eps > 0 && eps < 1))
        FAIL(err, DREY_ERR_FORMAT, "layer_norm_epsilon of config.json is %g", eps);
    TRY(put_sizes(k, t5_sizes, err));
    keys_f32(k, "attention.layer_norm_epsilon", eps);
    keys_f32(k, "attention.layer_norm_rms_epsilon", eps);
    return put_id(k, "decoder_start_token_id", 0, err);
}

/* ---- BART ---- */

static drey_status check_bart(const keys *k, drey_error *err)
{
    static const char *const others[] = {"normalize_before", "add_final_layer_norm",
                                         "static_position_embeddings"};
    static const char *const same[][2] = {{"encoder_attention_heads", "decoder_attention_heads"},
                                          {"encoder_ffn_dim", "decoder_ffn_dim"}};
    const char *function = config_text(k->folder, "activation_function");
    if (function && strcmp(function, family_activation(k->family)) != 0)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model's activation is \"%.40s\", where drey computes such a model with \"%s\"",
             function, family_activation(k->family));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (config_bool(k->folder, others[i], false))
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "config.json has %s, which drey does not compute for architecture bart",
                 others[i]);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        int64_t encoder, decoder;
        TRY(config_require(k->folder, same[i][0], 1, INT32_MAX, &encoder, err));
        TRY(config_require(k->folder, same[i][1], 1, INT32_MAX, &decoder, err));
        if (encoder != decoder)
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "%s is %lld, and %s %lld: drey computes a model that has the same in both",
                 same[i][0], (long long)encoder, same[i][1], (long long)decoder);
    }
    return DREY_OK;
}

static drey_status bart_keys(const keys *k, drey_error *err)
{
    TRY(check_bart(k, err));
    TRY(put_sizes(k, bart_sizes, err));
    keys_f32(k, "attention.layer_norm_epsilon", 1e-5); /* BART's is nowhere stated */
    if (config_bool(k->folder, "scale_embedding", false))
        keys_f32(k, "embedding_scale", sqrt(config_number(k->folder, "d_model")));
    TRY(put_id(k, "decoder_start_token_id", 2, err));
    return put_id(k, "forced_bos_token_id", -1, err);
}

drey_status encoder_keys(const keys *k, drey_error *err)
{
    return k->family->naming == NAMING_T5 ? t5_keys(k, err) : bart_keys(k, err);
}
