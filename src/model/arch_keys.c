/* The keys of an architecture, each read, without influence, or at a value that says "not used".
 *
 * Files state hyper-parameters of many models under the architecture's prefix. One that is ignored
 * although it changes the arithmetic is a wrong text without a word, so the rule is the strict one:
 * what drey does not read has to be known to be harmless, or neutral. Names and meanings: llama.cpp
 * src/llama-arch.cpp (LLM_KV_NAMES), gguf-py's constants, ggml docs/gguf.md. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/error.h"
#include "gguf/gguf.h"
#include "model/arch.h"

typedef enum key_use {
    KEY_INT,     /* read: a whole number */
    KEY_NUMBER,  /* read: any number */
    KEY_TEXT,    /* read: a text */
    KEY_BOOL,    /* read: true or false */
    KEY_CHECKED, /* read, and checked by the code that reads it */
    KEY_WITHOUT, /* no influence on the numbers, whatever its value */
    KEY_FACTOR,  /* a factor: neutral at 1 too */
    KEY_SET,     /* must be true */
} key_use;

typedef struct known_key {
    const char *suffix; /* after "ARCH." */
    key_use use;
    uint32_t keys; /* bits of architectures that have these (arch.h); 0: of all */
} known_key;

/* The first entry that fits counts. Any other key is neutral where it is 0, false or empty, and an
 * array where every item is. */
static const known_key known[] = {
    {"attention.sliding_window", KEY_INT, KEYS_WINDOW},
    {"attention.sliding_window_pattern", KEY_CHECKED, KEYS_WINDOW},
    {"attention.key_length_swa", KEY_INT, KEYS_WINDOW},
    {"attention.value_length_swa", KEY_INT, KEYS_WINDOW},
    {"rope.freq_base_swa", KEY_NUMBER, KEYS_WINDOW},
    {"rope.dimension_count_swa", KEY_INT, KEYS_WINDOW},
    {"attn_logit_softcapping", KEY_NUMBER, KEYS_CAPS},
    {"final_logit_softcapping", KEY_NUMBER, KEYS_CAPS},
    {"attention.scale", KEY_NUMBER, KEYS_SCALES},
    {"logit_scale", KEY_NUMBER, KEYS_SCALES},
    {"embedding_scale", KEY_NUMBER, KEYS_SCALES},
    {"residual_scale", KEY_NUMBER, KEYS_SCALES},
    {"logit_scale", KEY_NUMBER, KEYS_LOGIT_SCALE},
    {"attention.value_scale", KEY_NUMBER, KEYS_VALUE_SCALE},
    {"swiglu_clamp_exp", KEY_CHECKED, KEYS_CLAMPS},
    {"swiglu_clamp_shexp", KEY_CHECKED, KEYS_CLAMPS},
    {"rope.scaling.finetuned", KEY_BOOL, KEYS_MAMBA},
    {"rope.scaling.finetuned", KEY_SET, KEYS_SCALES}, /* granite: whether there is RoPE at all */
    {"extract_layers", KEY_CHECKED, KEYS_TAPS},
    {"target_hidden_size", KEY_CHECKED, KEYS_TAPS},
    {"norm_before_residual", KEY_BOOL, KEYS_TAPS},
    {"attention.relative_buckets_count", KEY_INT, KEYS_BUCKETS},
    {"shortconv.l_cache", KEY_INT, KEYS_SHORT_CONV},
    {"decoder_block_count", KEY_INT, KEYS_ENCODER},
    {"decoder_start_token_id", KEY_INT, KEYS_ENCODER},
    {"forced_bos_token_id", KEY_INT, KEYS_ENCODER},
    {"expert_count", KEY_INT, KEYS_EXPERTS},
    {"expert_used_count", KEY_INT, KEYS_EXPERTS},
    {"expert_feed_forward_length", KEY_INT, KEYS_EXPERTS},
    {"expert_shared_feed_forward_length", KEY_INT, KEYS_EXPERTS},
    {"expert_gating_func", KEY_INT, KEYS_EXPERTS},
    {"expert_weights_norm", KEY_BOOL, KEYS_EXPERTS},
    {"expert_weights_scale", KEY_NUMBER, KEYS_EXPERTS},
    {"expert_group_count", KEY_INT, KEYS_EXPERTS},
    {"expert_group_used_count", KEY_INT, KEYS_EXPERTS},
    {"expert_shared_count", KEY_INT, KEYS_EXPERTS},
    {"leading_dense_block_count", KEY_INT, KEYS_EXPERTS},
    {"interleave_moe_layer_step", KEY_INT, KEYS_EXPERTS},
    {"rope.dimension_sections", KEY_WITHOUT, KEYS_IMAGES}, /* in a text all are its positions */
    {"n_deepstack_layers", KEY_WITHOUT, KEYS_IMAGES},
    {"rope.scaling.yarn_log_multiplier", KEY_NUMBER, KEYS_YARN_LOG},
    {"attention.temperature_scale", KEY_NUMBER, KEYS_TEMPERATURE},
    {"attention.temperature_length", KEY_INT, KEYS_TEMPERATURE},
    {"attention.shared_kv_layers", KEY_INT, KEYS_PER_LAYER},
    {"embedding_length_per_layer_input", KEY_INT, KEYS_PER_LAYER},
    {"moe_latent_size", KEY_INT, KEYS_MAMBA},
    {"ssm.conv_kernel", KEY_INT, KEYS_DELTA | KEYS_MAMBA},
    {"ssm.state_size", KEY_INT, KEYS_DELTA | KEYS_MAMBA},
    {"ssm.group_count", KEY_INT, KEYS_DELTA | KEYS_MAMBA},
    {"ssm.time_step_rank", KEY_INT, KEYS_DELTA | KEYS_MAMBA},
    {"ssm.inner_size", KEY_INT, KEYS_DELTA | KEYS_MAMBA},
    {"full_attention_interval", KEY_INT, KEYS_DELTA},
    {"attention.recurrent_layers", KEY_CHECKED, KEYS_DELTA},
    {"attention.q_lora_rank", KEY_INT, KEYS_LATENT},
    {"attention.kv_lora_rank", KEY_INT, KEYS_LATENT},
    {"attention.key_length_mla", KEY_INT, KEYS_LATENT},
    {"attention.value_length_mla", KEY_INT, KEYS_LATENT},
    {"attention.indexer.head_count", KEY_WITHOUT, KEYS_INDEXER}, /* all positions are attended to */
    {"attention.indexer.key_length", KEY_WITHOUT, KEYS_INDEXER},
    {"attention.indexer.types", KEY_WITHOUT, KEYS_INDEXER},
    {"attention.indexer.top_k", KEY_INT, KEYS_INDEXER}, /* as far as no more are seen */
    {"attention.compress_ratios", KEY_CHECKED, KEYS_INDEXER},
    {"hyper_connection.count", KEY_INT, KEYS_STREAMS},
    {"hyper_connection.low_rank", KEY_INT, KEYS_STREAMS},
    {"embedding_length_per_layer_input", KEY_INT, KEYS_STREAMS},
    {"ple.layers", KEY_CHECKED, KEYS_STREAMS},
    {"ple.ngram_size", KEY_INT, KEYS_STREAMS},
    {"ple.heads_per_ngram", KEY_INT, KEYS_STREAMS},
    {"ple.conv_kernel", KEY_INT, KEYS_STREAMS},
    {"ple.eos_token_id", KEY_INT, KEYS_STREAMS},
    {"ple.image_token_id", KEY_WITHOUT, KEYS_STREAMS}, /* stands for what is no token */
    {"ple.layer_multipliers", KEY_CHECKED, KEYS_STREAMS},
    {"ple.head_offsets", KEY_CHECKED, KEYS_STREAMS},
    {"ple.head_vocab_sizes", KEY_CHECKED, KEYS_STREAMS},
    {"block_count", KEY_INT, 0},
    {"nextn_predict_layers", KEY_INT, 0},
    {"context_length", KEY_INT, 0},
    {"embedding_length", KEY_INT, 0},
    {"feed_forward_length", KEY_CHECKED, 0},
    {"attention.head_count", KEY_CHECKED, 0},
    {"attention.head_count_kv", KEY_CHECKED, 0},
    {"attention.key_length", KEY_INT, 0},
    {"attention.value_length", KEY_INT, 0},
    {"attention.layer_norm_rms_epsilon", KEY_NUMBER, 0}, /* the one of its norms */
    {"attention.layer_norm_epsilon", KEY_NUMBER, 0},
    {"rope.dimension_count", KEY_INT, 0},
    {"rope.freq_base", KEY_NUMBER, 0},
    {"rope.scale_linear", KEY_NUMBER, 0},
    {"rope.scaling.type", KEY_TEXT, 0},
    {"rope.scaling.factor", KEY_NUMBER, 0},
    {"rope.scaling.attn_factor", KEY_NUMBER, 0},
    {"rope.scaling.original_context_length", KEY_INT, 0},
    {"rope.scaling.yarn_ext_factor", KEY_NUMBER, 0},
    {"rope.scaling.yarn_attn_factor", KEY_NUMBER, 0},
    {"rope.scaling.yarn_beta_fast", KEY_NUMBER, 0},
    {"rope.scaling.yarn_beta_slow", KEY_NUMBER, 0},
    {"pooling_type", KEY_INT, 0},                         /* pooling of its texts into vectors */
    {"vocab_size", KEY_WITHOUT, 0},                       /* the embedding's rows say it */
    {"use_parallel_residual", KEY_WITHOUT, 0},            /* its tensors say it */
    {"tensor_data_layout", KEY_WITHOUT, 0},               /* origin of the file */
    {"rope.scaling.finetuned", KEY_WITHOUT, 0},           /* training of the model */
    {"attention.sliding_window_pattern", KEY_WITHOUT, 0}, /* pattern of a window that is refused */
    {"logit_scale", KEY_FACTOR, 0},
    {"embedding_scale", KEY_FACTOR, 0},
    {"residual_scale", KEY_FACTOR, 0},
    {"attention.value_scale", KEY_FACTOR, 0},
    {"attention.output_scale", KEY_FACTOR, 0},
    {"rope.scaling.alpha", KEY_FACTOR, 0},
    {"num_loops", KEY_FACTOR, 0},
    {"interleave_moe_layer_step", KEY_FACTOR, 0},
    {"moe_every_n_layers", KEY_FACTOR, 0},
    {"expert_count", KEY_FACTOR, 0}, /* one expert is none */
};

static const known_key *find_known(gguf_string suffix, const arch *a)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (gguf_is_text(suffix, known[i].suffix) &&
            (known[i].keys == 0 || known[i].keys & a->keys))
            return &known[i];
    return NULL;
}

static bool is_zero(const gguf_key *key)
{
    if (key->kind == GGUF_STRING)
        return gguf_text_of(key).n_bytes == 0;
    if (key->kind == GGUF_ARRAY && key->item_kind == GGUF_STRING)
        return key->n_items == 0;
    for (uint64_t i = 0; i < key->n_items; i++)
        if (gguf_item_number(key, i) != 0.0)
            return false;
    return true;
}

/* At this value the key leaves the arithmetic as it is. */
static bool is_neutral(const gguf_key *key, gguf_string suffix, const known_key *k,
                       const model_shape *s)
{
    double number =
        key->n_items > 0 && gguf_key_is(key, GGUF_WANT_NUMBER) ? gguf_item_number(key, 0) : NAN;
    if (gguf_is_text(suffix, "attention.causal") || (k && k->use == KEY_SET))
        return key->kind == GGUF_BOOL && !is_zero(key);
    if (gguf_is_text(suffix, "attention.sliding_window") && number >= s->n_context_train)
        return true;
    if (gguf_is_text(suffix, "attention.scale") &&
        fabs(number * sqrt(s->attention[0].head_dim) - 1.0) < 1e-5)
        return true;
    if (gguf_is_text(suffix, "hidden_activation") && gguf_is_text(gguf_text_of(key), "silu"))
        return true;
    return is_zero(key) || (k && k->use == KEY_FACTOR && number == 1.0);
}

static bool has_kind(const gguf_key *key, key_use use)
{
    return gguf_key_is(key, use == KEY_INT      ? GGUF_WANT_INT
                            : use == KEY_NUMBER ? GGUF_WANT_NUMBER
                            : use == KEY_BOOL   ? GGUF_WANT_BOOL
                                                : GGUF_WANT_TEXT);
}

/* A key's value for a message. */
static const char *show_value(const gguf_key *key, char out[64])
{
    gguf_string text = gguf_text_of(key);
    if (text.text)
        return gguf_printable(out, 64, text.text, text.n_bytes);
    if (key->kind == GGUF_BOOL)
        return gguf_item_int(key, 0) ? "true" : "false";
    if (key->kind == GGUF_ARRAY)
        return "an array";
    snprintf(out, 64, "%.9g", gguf_item_number(key, 0));
    return out;
}

static drey_status check_key(const gguf_key *key, gguf_string suffix, const model_shape *s,
                             drey_error *err)
{
    char name[96], value[64];
    gguf_printable(name, sizeof name, key->name.text, key->name.n_bytes);
    const known_key *k = find_known(suffix, s->arch);
    bool rotates = s->arch->rope != ROPE_NONE && s->arch->rope != ROPE_BUCKETS;
    if (!rotates && suffix.n_bytes > 5 && memcmp(suffix.text, "rope.", 5) == 0)
        k = NULL;
    if (k && (k->use == KEY_WITHOUT || k->use == KEY_CHECKED))
        return DREY_OK;
    if (k && k->use != KEY_FACTOR && k->use != KEY_SET) {
        if (!has_kind(key, k->use))
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "key %s is %s, where drey computes models with one %s only", name,
                 show_value(key, value),
                 k->use == KEY_TEXT   ? "text"
                 : k->use == KEY_BOOL ? "true or false"
                                      : "number");
        return DREY_OK;
    }
    if (is_neutral(key, suffix, k, s))
        return DREY_OK;
    if (gguf_is_text(suffix, "expert_count"))
        FAIL(err, DREY_ERR_UNSUPPORTED, "key %s is %s: mixture-of-experts models are not supported",
             name, show_value(key, value));
    FAIL(err, DREY_ERR_UNSUPPORTED,
         "key %s is %s, which drey does not compute for architecture %s: a text computed without "
         "it would be wrong",
         name, show_value(key, value), s->arch->name);
}

/* The key's name after "ARCH."; text NULL: it is another's. */
static gguf_string suffix_of(const model_shape *s, const gguf_key *key)
{
    size_t n = strlen(s->arch->name);
    if (key->name.n_bytes <= n || key->name.text[n] != '.' ||
        memcmp(key->name.text, s->arch->name, n) != 0)
        return (gguf_string){0};
    return (gguf_string){key->name.text + n + 1, key->name.n_bytes - n - 1};
}

drey_status arch_keys_check(const model_shape *s, const gguf *g, drey_error *err)
{
    for (uint64_t i = 0; i < gguf_n_keys(g); i++) {
        const gguf_key *key = gguf_key_at(g, i);
        gguf_string suffix = suffix_of(s, key);
        if (suffix.text)
            TRY(check_key(key, suffix, s, err));
    }
    return DREY_OK;
}

int32_t arch_keys_refused(const model_shape *s, const gguf *g,
                          void (*refused)(void *user, const drey_error *error), void *user)
{
    int32_t n = 0;
    for (uint64_t i = 0; i < gguf_n_keys(g); i++) {
        const gguf_key *key = gguf_key_at(g, i);
        gguf_string suffix = suffix_of(s, key);
        drey_error error;
        if (!suffix.text || check_key(key, suffix, s, &error) == DREY_OK)
            continue;
        refused(user, &error);
        n++;
    }
    return n;
}
