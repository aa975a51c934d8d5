/* Kinds of members in the files of a folder: see hub_folder.h. Only members that something is made
 * of are listed; sizes are checked where they are read (config_int). */
#include "convert/json_types.h"

#include "convert/hub_folder.h"

#define TOKENS                                                                                     \
    {"bos_token", KIND_TOKEN}, {"eos_token", KIND_TOKEN}, {"unk_token", KIND_TOKEN},               \
        {"sep_token", KIND_TOKEN}, {"pad_token", KIND_TOKEN},                                      \
    {                                                                                              \
        "cls_token", KIND_TOKEN                                                                    \
    }
#define TOKEN_IDS                                                                                  \
    {"bos_token_id", KIND_ID}, {"eos_token_id", KIND_IDS}, {"unk_token_id", KIND_ID},              \
        {"sep_token_id", KIND_ID}, {"eot_token_id", KIND_ID}, {"pad_token_id", KIND_ID_PAD},       \
        {"decoder_start_token_id", KIND_ID},                                                       \
    {                                                                                              \
        "forced_bos_token_id", KIND_ID                                                             \
    }

static const member_kind config_kinds[] = {TOKEN_IDS,
                                           {"architectures", KIND_TEXTS},
                                           {"text_config", KIND_OBJECT},
                                           {"quantization_config", KIND_OBJECT},
                                           {"rope_scaling", KIND_OBJECT},
                                           {"rope_parameters", KIND_OBJECT},
                                           {"rope_theta", KIND_EACH},
                                           {"partial_rotary_factors", KIND_NUMBERS},
                                           {"rope_local_base_freq", KIND_POSITIVE},
                                           {"partial_rotary_factor", KIND_POSITIVE},
                                           {"original_max_position_embeddings", KIND_COUNT},
                                           {"head_dim", KIND_COUNT},
                                           {"rms_norm_eps", KIND_POSITIVE},
                                           {"layer_norm_epsilon", KIND_POSITIVE},
                                           {"relative_attention_max_distance", KIND_COUNT},
                                           {"hidden_act", KIND_TEXT},
                                           {"hidden_activation", KIND_TEXT},
                                           {"activation_function", KIND_TEXT},
                                           {"feed_forward_proj", KIND_TEXT},
                                           {"dense_act_fn", KIND_TEXT},
                                           {"attention_multiplier", KIND_POSITIVE},
                                           {"embedding_multiplier", KIND_POSITIVE},
                                           {"residual_multiplier", KIND_POSITIVE},
                                           {"logits_scaling", KIND_POSITIVE},
                                           {"attn_logit_softcapping", KIND_POSITIVE},
                                           {"final_logit_softcapping", KIND_POSITIVE},
                                           {"query_pre_attn_scalar", KIND_POSITIVE},
                                           {"swiglu_limit", KIND_NUMBER},
                                           {"clip_qkv", KIND_NUMBER},
                                           {"layer_types", KIND_TEXTS},
                                           {"mlp_only_layers", KIND_COUNTS},
                                           {"norm_topk_prob", KIND_BOOL},
                                           {"use_sliding_window", KIND_BOOL},
                                           {"tie_word_embeddings", KIND_BOOL},
                                           {"scale_decoder_outputs", KIND_BOOL},
                                           {"scale_embedding", KIND_BOOL},
                                           {"normalize_before", KIND_BOOL},
                                           {"add_final_layer_norm", KIND_BOOL},
                                           {"static_position_embeddings", KIND_BOOL},
                                           {"attention_bias", KIND_BOOL},
                                           {"mlp_bias", KIND_BOOL},
                                           {"scale_attn_weights", KIND_BOOL},
                                           {"scale_attn_by_inverse_layer_idx", KIND_BOOL},
                                           {"use_bidirectional_attention", KIND_BOOL},
                                           {"layer_norm_eps", KIND_POSITIVE},
                                           {"norm_eps", KIND_POSITIVE},
                                           {"norm_epsilon", KIND_POSITIVE},
                                           {"layernorm_epsilon", KIND_POSITIVE},
                                           {"layer_norm_rms_epsilon", KIND_POSITIVE},
                                           {"logit_scale", KIND_POSITIVE},
                                           {"rope_pct", KIND_POSITIVE},
                                           {"rotary_pct", KIND_POSITIVE},
                                           {"swa_rope_theta", KIND_POSITIVE},
                                           {"routed_scaling_factor", KIND_POSITIVE},
                                           {"route_scale", KIND_POSITIVE},
                                           {"router_scaling_factor", KIND_POSITIVE},
                                           {"moe_router_scaling_factor", KIND_POSITIVE},
                                           {"moe_routed_scaling_factor", KIND_POSITIVE},
                                           {"attn_scale", KIND_POSITIVE},
                                           {"attention_value_scale", KIND_POSITIVE},
                                           {"rotary_dim", KIND_COUNT},
                                           {"linear_conv_kernel_dim", KIND_COUNT},
                                           {"linear_key_head_dim", KIND_COUNT},
                                           {"linear_num_key_heads", KIND_COUNT},
                                           {"linear_num_value_heads", KIND_COUNT},
                                           {"linear_value_head_dim", KIND_COUNT},
                                           {"conv_L_cache", KIND_COUNT},
                                           {"v_head_dim", KIND_COUNT},
                                           {"scoring_func", KIND_TEXT},
                                           {"score_function", KIND_TEXT},
                                           {"expert_selection_fn", KIND_TEXT},
                                           {"moe_router_activation", KIND_TEXT},
                                           {"num_nextn_predict_layers", KIND_ID},
                                           {"mtp_num_hidden_layers", KIND_ID},
                                           {"hybrid_layer_pattern", KIND_COUNTS},
                                           {"route_norm", KIND_BOOL},
                                           {"norm_expert_weight", KIND_BOOL},

                                           {0}};
static const member_kind generation_kinds[] = {TOKEN_IDS, {0}};
static const member_kind tokenizer_config_kinds[] = {TOKENS,
                                                     {"add_bos_token", KIND_BOOL},
                                                     {"add_eos_token", KIND_BOOL},
                                                     {"add_prefix_space", KIND_BOOL},
                                                     {"added_tokens_decoder", KIND_OBJECT},
                                                     {0}};
static const member_kind token_map_kinds[] = {TOKENS, {0}};
static const member_kind tokenizer_kinds[] = {
    {"model", KIND_OBJECT},         {"added_tokens", KIND_ARRAY},    {"normalizer", KIND_OBJECT},
    {"pre_tokenizer", KIND_OBJECT}, {"post_processor", KIND_OBJECT}, {0}};
static const member_kind vocabulary_kinds[] = {{"type", KIND_TEXT},
                                               {"merges", KIND_ARRAY},
                                               {"byte_fallback", KIND_BOOL},
                                               {"ignore_merges", KIND_BOOL},
                                               {"dropout", KIND_NUMBER},
                                               {"continuing_subword_prefix", KIND_TEXT},
                                               {"end_of_word_suffix", KIND_TEXT},
                                               {0}};
/* Members of steps of a tokenizer, and of added tokens. */
static const member_kind step_kinds[] = {{"type", KIND_TEXT},
                                         {"normalizers", KIND_ARRAY},
                                         {"pretokenizers", KIND_ARRAY},
                                         {"processors", KIND_ARRAY},
                                         {"pattern", KIND_OBJECT},
                                         {"behavior", KIND_TEXT},
                                         {"invert", KIND_BOOL},
                                         {"individual_digits", KIND_BOOL},
                                         {"use_regex", KIND_BOOL},
                                         {"add_prefix_space", KIND_BOOL},
                                         {"prepend_scheme", KIND_TEXT},
                                         {"replacement", KIND_TEXT},
                                         {"split", KIND_BOOL},
                                         {"single", KIND_ARRAY},
                                         {0}};
static const member_kind added_kinds[] = {
    {"id", KIND_ID}, {"content", KIND_TEXT}, {"special", KIND_BOOL}, {0}};

/* An object and those within. */
static drey_status check_steps(const json_value *v, drey_error *err)
{
    if (!v || (v->type != JSON_OBJECT && v->type != JSON_ARRAY))
        return DREY_OK;
    if (v->type == JSON_OBJECT)
        TRY(check_members(v, step_kinds, false, "a step of tokenizer.json", err));
    for (const json_value *inner = v->first; inner; inner = inner->next)
        TRY(check_steps(inner, err));
    return DREY_OK;
}

static drey_status check_added(const json_value *list, const char *in, drey_error *err)
{
    for (const json_value *v = list ? list->first : NULL; v; v = v->next) {
        if (v->type != JSON_OBJECT)
            FAIL(err, DREY_ERR_FORMAT, "%s has an item that is no object", in);
        TRY(check_members(v, added_kinds, false, in, err));
    }
    return DREY_OK;
}

/* Models that join pieces by chance, or mark those within a word: drey's do not. */
static drey_status check_vocabulary(const json_value *model, drey_error *err)
{
    static const char *const marks[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    TRY(check_members(model, vocabulary_kinds, false, "tokenizer.json's model", err));
    double dropout = json_member_number(model, "dropout");
    if (dropout > 0)
        FAIL(err, DREY_ERR_UNSUPPORTED, "tokenizer.json has dropout, which drey does not do");
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *mark = json_member_text(model, marks[i]);
        if (mark && *mark)
            FAIL(err, DREY_ERR_UNSUPPORTED, "tokenizer.json has %s, which drey does not know",
                 marks[i]);
    }
    return DREY_OK;
}

static drey_status check_tokenizer(const json_value *root, drey_error *err)
{
    TRY(check_members(root, tokenizer_kinds, false, "tokenizer.json", err));
    TRY(check_vocabulary(json_member(root, "model"), err));
    TRY(check_added(json_member(root, "added_tokens"), "added_tokens of tokenizer.json", err));
    TRY(check_steps(json_member(root, "normalizer"), err));
    TRY(check_steps(json_member(root, "pre_tokenizer"), err));
    return check_steps(json_member(root, "post_processor"), err);
}

drey_status folder_check(const hub_folder *f, drey_error *err)
{
    const json_value *config = f->config.root, *text = json_member(config, "text_config");
    const json_value *words = f->tokenizer_config.root;
    TRY(check_members(config, config_kinds, false, "config.json", err));
    TRY(check_members(text, config_kinds, false, "text_config of config.json", err));
    TRY(check_members(f->generation.root, generation_kinds, false, "generation_config.json", err));
    TRY(check_members(words, tokenizer_config_kinds, false, "tokenizer_config.json", err));
    TRY(check_added(json_member(words, "added_tokens_decoder"),
                    "added_tokens_decoder of tokenizer_config.json", err));
    TRY(check_members(f->token_map.root, token_map_kinds, false, "special_tokens_map.json", err));
    return check_tokenizer(f->tokenizer.root, err);
}
