/* Keys and tensors. A file that asks for what drey does not compute is refused by name; what says
 * "not used" is not. */
#include "support/logit_toys.h"
#include "support/scene.h"
#include "engine/engine.h"

/* Opens a toy with these further things as model and engine. */
static drey_status open_toy(const toy_options *toy, drey_error *err)
{
    const char *path = temp_path("model.gguf");
    toy_write(path, toy);
    drey_model *m = NULL;
    drey_engine *e = NULL;
    *err = (drey_error){0};
    drey_status status = drey_model_open(&m, path, err);
    if (status == DREY_OK) {
        drey_engine_options o = plain_options(m, 64, 1);
        status = drey_engine_open(&e, &o, err);
    }
    drey_engine_close(&e);
    drey_model_close(&m);
    /* One of two models may be meant: the message names the file, once. */
    const char *named = strstr(err->message, path);
    assert_true(status == DREY_OK || (named && !strstr(named + 1, path)));
    return status;
}

static drey_status open_with(const char *architecture, toy_key key, drey_error *err)
{
    toy_key keys[] = {key, {0}};
    toy_options toy = toy_default();
    toy.architecture = architecture;
    toy.n_layers = 1;
    toy.keys = keys;
    return open_toy(&toy, err);
}

/* llama and phi3 read their window, granite and bart scales, gemma windows and caps. */
static bool is_read(const char *architecture, const char *suffix)
{
    static const char *const scales[] = {"attention.scale", "logit_scale", "embedding_scale",
                                         "residual_scale"};
    bool is_scale = false, is_window = strcmp(suffix, "attention.sliding_window") == 0;
    bool is_cap = strstr(suffix, "logit_softcapping") != NULL;
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        is_scale = is_scale || strcmp(suffix, scales[i]) == 0;
    if (strcmp(architecture, "llama") == 0 || strcmp(architecture, "phi3") == 0)
        return is_window;
    if (strncmp(architecture, "gemma", 5) == 0)
        return is_window || is_cap;
    return (strcmp(architecture, "granite") == 0 || strcmp(architecture, "bart") == 0) && is_scale;
}

TEST(refuses_keys_that_change_the_arithmetic)
{
    static const toy_key keys[] = {
        {"attention.clamp_kqv", GGUF_F32, 30, NULL},
        {"attention.sliding_window", GGUF_U32, 2047, NULL}, /* of a context of 2048 */
        {"attention.causal", GGUF_BOOL, 0, NULL},
        {"attention.max_alibi_bias", GGUF_F32, 8, NULL},
        {"attention.scale", GGUF_F32, 0.2, NULL}, /* the heads have size 16 */
        {"attention.value_scale", GGUF_F32, 2, NULL},
        {"attention.q_lora_rank", GGUF_U32, 64, NULL},
        {"attn_logit_softcapping", GGUF_F32, 50, NULL},
        {"final_logit_softcapping", GGUF_F32, 30, NULL},
        {"logit_scale", GGUF_F32, 0.0625, NULL},
        {"embedding_scale", GGUF_F32, 12, NULL},
        {"residual_scale", GGUF_F32, 0.22, NULL},
        {"num_loops", GGUF_U32, 2, NULL},
        {"hidden_activation", GGUF_STRING, 0, "gelu"},
        {"rope.dimension_sections", GGUF_ARRAY, 8, NULL},
        {"rope.scaling.alpha", GGUF_F32, 1000, NULL},
        {"rope.scaling.yarn_log_multiplier", GGUF_F32, 0.1, NULL},
        {"expert_used_count", GGUF_U32, 2, NULL},
        {"not.known.to.anybody", GGUF_F32, 1, NULL},
        {"not.known.to.anybody", GGUF_BOOL, 1, NULL},
        {"not.known.to.anybody", GGUF_STRING, 0, "x"},
        {"not.known.to.anybody", GGUF_ARRAY, 1, NULL},
    };
    static const char *const architectures[] = {"llama",  "qwen2", "qwen3", "granite", "gemma2",
                                                "gemma3", "phi3",  "gpt2",  "t5",      "bart"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        for (size_t a = 0; a < sizeof architectures / sizeof *architectures; a++) {
            drey_error err;
            drey_status status = open_with(architectures[a], keys[i], &err);
            bool named = status == DREY_ERR_UNSUPPORTED && strstr(err.message, keys[i].suffix);
            if (is_read(architectures[a], keys[i].suffix) ? status != DREY_OK : !named)
                fail_msg("%s of %s: %d, \"%s\"", keys[i].suffix, architectures[a], status,
                         err.message);
        }
    drey_error err;
    toy_key key = {"rope.scaling.finetuned", GGUF_BOOL, 0, NULL}; /* granite without RoPE */
    assert_int_equal(open_with("granite", key, &err), DREY_ERR_UNSUPPORTED);
}

TEST(takes_neutral_keys)
{
    static const toy_key keys[] = {
        {"attention.clamp_kqv", GGUF_F32, 0, NULL},
        {"attention.sliding_window", GGUF_U32, 0, NULL},
        {"attention.sliding_window", GGUF_U32, 2048, NULL},
        {"attention.causal", GGUF_BOOL, 1, NULL},
        {"attention.scale", GGUF_F32, 0.25, NULL},
        {"attention.scale", GGUF_F32, 0, NULL},
        {"attention.layer_norm_epsilon", GGUF_F32, 1e-5, NULL},
        {"logit_scale", GGUF_F32, 1, NULL},
        {"residual_scale", GGUF_F32, 1, NULL},
        {"final_logit_softcapping", GGUF_F32, 0, NULL},
        {"hidden_activation", GGUF_STRING, 0, "silu"},
        {"expert_count", GGUF_U32, 0, NULL},
        {"expert_used_count", GGUF_U32, 0, NULL},
        {"rope.dimension_sections", GGUF_ARRAY, 0, NULL},
        {"rope.scaling.finetuned", GGUF_BOOL, 1, NULL},
        {"rope.scaling.alpha", GGUF_F32, 1, NULL},
        {"vocab_size", GGUF_U32, 5, NULL},
        {"tensor_data_layout", GGUF_STRING, 0, "Meta AI original pth"},
        {"not.known.to.anybody", GGUF_F32, 0, NULL},
        {"not.known.to.anybody", GGUF_STRING, 0, ""},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        MUST(open_with, "qwen3", keys[i]);
        MUST(open_with, "llama", keys[i]);
    }
}

/* An array that has the same number for each layer is that number. */
TEST(takes_arrays_of_one_number)
{
    static const toy_key keys[] = {
        {"attention.key_length", GGUF_ARRAY, 16, NULL},
        {"attention.value_length", GGUF_ARRAY, 16, NULL},
        {"rope.scaling.factor", GGUF_ARRAY, 2, NULL},
        {"rope.scaling.original_context_length", GGUF_ARRAY, 512, NULL},
        {"attention.sliding_window", GGUF_ARRAY, 2048, NULL},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        MUST(open_with, "llama", keys[i]);
    REFUSED(DREY_ERR_FORMAT, "blk.0.attn_v.weight has shape [64, 32] instead of [64, 16]",
            open_with, "llama", ((toy_key){"attention.value_length", GGUF_ARRAY, 8, NULL}));
    MUST(open_with, "gemma3",
         ((toy_key){"attention.sliding_window_pattern", GGUF_ARRAY, 1, NULL})); /* one layer */
    REFUSED(DREY_ERR_UNSUPPORTED, "expert_weights_norm is 1", open_with, "qwen3moe",
            ((toy_key){"expert_weights_norm", GGUF_U32, 1, NULL}));
}

/* An array of unlike numbers has one for each layer. */
TEST(layers_have_their_own_numbers)
{
    toy_options toy = toy_default();
    toy.architecture = "qwen3";
    toy.uneven = true;
    drey_model *m = toy_open("model.gguf", &toy);
    const model_shape *s = &m->shape;
    assert_int_equal(s->n_attentions, 2);
    for (int32_t i = 0; i < s->n_layers; i++) {
        assert_int_equal(layer_attention(s, i)->n_heads, i % 2 ? 8 : 4);
        assert_int_equal(s->layer[i].n_ff, i % 2 ? 64 : 128);
    }
    drey_model_close(&m);
    static const char count[] = "qwen3.block_count";
    gguf_writer w = {0};
    size_t at = 0;
    toy_build(&w, &toy, 0);
    while (memcmp(w.bytes + at, count, sizeof count - 1) != 0)
        at++;
    writer_patch_u32(&w, at + sizeof count - 1 + 4, 5); /* after its kind */
    assert_true(writer_save(&w, temp_path("model.gguf")));
    writer_free(&w);
    REFUSED(DREY_ERR_FORMAT, "head_count has 3 numbers, where the model has 5 layers",
            drey_model_open, &m, temp_path("model.gguf"));
    REFUSED(DREY_ERR_FORMAT, "key exaone-moe.attention.sliding_window_pattern has 0 items",
            open_with, "exaone-moe",
            ((toy_key){"attention.sliding_window_pattern", GGUF_ARRAY, 0, "bool"}));
}

/* Blocks for multi-token prediction are none of the layers, also where only a part of one is there.
 */
TEST(blocks_that_have_no_part_in_a_text)
{
    toy_options toy = toy_default();
    number_toy(9, &toy);
    assert_int_equal(toy.n_nextn, 1);
    drey_model *m = toy_open("model.gguf", &toy);
    assert_int_equal(m->shape.n_layers, toy.n_layers);
    assert_true(!m->shape.layer[0].experts && m->shape.layer[1].experts);
    drey_model_close(&m);
}

/* A file that is cut off there has no layer left. */
TEST(refuses_more_mtp_blocks_than_there_are)
{
    REFUSED(DREY_ERR_FORMAT, "glm4moe.nextn_predict_layers is 1, where the model has 1 blocks",
            open_with, "glm4moe", ((toy_key){"nextn_predict_layers", GGUF_U32, 1, NULL}));
}

/* Files of what drey does not run name what does. */
TEST(what_runs_instead_is_named)
{
    static const char *const cases[][2] = {{"clip", "the text part runs"},
                                           {"nomic-bert-moe", "use a file that has a decoder"},
                                           {"rwkv7", "use llama, qwen3,"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        toy_options toy = toy_default();
        toy.n_layers = 1;
        toy.architecture = cases[i][0];
        REFUSED(DREY_ERR_UNSUPPORTED, cases[i][1], open_toy, &toy);
    }
}

/* A list of layers with states that is shorter than the layers. */
TEST(refuses_a_list_of_too_few_layers)
{
    static const toy_key keys[] = {{"attention.recurrent_layers", GGUF_ARRAY, 0, "bool 1 0"}, {0}};
    toy_options toy = toy_default();
    toy.architecture = "qwen35";
    toy.form = TOY_HEAD_NORMS | TOY_POST_IS_FFN_NORM | TOY_GATES_IN_Q;
    toy.delta =
        (toy_delta){.n_key_heads = 2, .n_value_heads = 4, .dim = 16, .period = 2, .decay = 0.3f};
    toy.keys = keys;
    REFUSED(DREY_ERR_FORMAT, "qwen35.attention.recurrent_layers has to be a list", open_toy, &toy);
}

/* Frequencies of the rotation, and blocks that guess tokens after the next one. */
TEST(takes_tensors_without_an_effect)
{
    static const char *const names[] = {"blk.0.attn_rot_embd.weight", "blk.0.attn_rot_embd",
                                        "blk.0.attn_rotary_emb.inv_freq"};
    static const toy_key guessing[] = {{"nextn_predict_layers", GGUF_U32, 1, NULL}, {0}};
    drey_error err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        toy_options toy = toy_default();
        toy.n_layers = 1;
        toy.more_tensor = names[i];
        MUST(open_toy, &toy);
    }
    for (int32_t block = 1; block < 4; block++) {
        char name[64];
        toy_options toy = toy_default();
        toy.n_layers = 2;
        toy.keys = guessing;
        snprintf(name, sizeof name, "blk.%d.nextn.enorm.weight", block);
        toy.more_tensor = name;
        assert_int_equal(open_toy(&toy, &err), block < 3 ? DREY_OK : DREY_ERR_UNSUPPORTED);
        toy.keys = NULL;
        REFUSED(DREY_ERR_UNSUPPORTED, name, open_toy, &toy);
    }
}

TEST(layers_before_mtp_blocks)
{
    static const toy_key guessing[] = {{"nextn_predict_layers", GGUF_U32, 1, NULL}, {0}};
    for (int32_t block = 1; block < 3; block++) {
        char name[64];
        toy_options toy = toy_default();
        toy.n_layers = 2;
        toy.keys = guessing;
        snprintf(name, sizeof name, "blk.%d.nextn.enorm.weight", block);
        toy.more_tensor = name;
        drey_model *m = toy_open("model.gguf", &toy);
        assert_int_equal(m->shape.n_layers, block);
        drey_model_close(&m);
    }
}

TEST(refuses_rope_keys)
{
    static const struct {
        toy_key key;
        drey_status code;
        const char *part;
    } cases[] = {
        {{"rope.scaling.type", GGUF_STRING, 0, "longrope"}, DREY_ERR_UNSUPPORTED, "\"longrope\""},
        {{"rope.scaling.type", GGUF_STRING, 0, ""}, DREY_ERR_UNSUPPORTED, "RoPE scaling \"\""},
        {{"rope.scaling.type", GGUF_U32, 1, NULL}, DREY_ERR_UNSUPPORTED, "rope.scaling.type is 1"},
        {{"rope.scaling.factor", GGUF_F32, -2, NULL}, DREY_ERR_FORMAT, "scaling.factor is -2"},
        {{"rope.scaling.factor", GGUF_STRING, 0, "4"}, DREY_ERR_UNSUPPORTED, "factor is 4"},
        {{"rope.scaling.attn_factor", GGUF_F32, 0, NULL}, DREY_ERR_FORMAT, "attn_factor is 0"},
        {{"rope.scaling.yarn_beta_fast", GGUF_F32, 0, NULL}, DREY_ERR_FORMAT, "beta_fast is 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        REFUSED(cases[i].code, cases[i].part, open_with, "llama", cases[i].key);
    }
}

/* Of gpt2: next to a matrix of three. */
TEST(refuses_tensors_without_a_role)
{
    static const char *const names[] = {"blk.0.attn_q_norm.weight", "output.bias",
                                        "blk.1.attn_output.bias", /* of a layer too many */
                                        "rope_factors_long.weight"};
    static const char *const fused[] = {"blk.0.attn_q.bias", "blk.0.ffn_gate.bias",
                                        "blk.0.attn_q.weight", "rope_freqs.weight"};
    for (int i = 0; i < 8; i++) {
        toy_options toy = toy_default();
        toy.architecture = i < 4 ? "llama" : "gpt2";
        toy.n_heads_kv = i < 4 ? toy.n_heads_kv : toy.n_heads;
        toy.n_layers = 1;
        toy.more_tensor = i < 4 ? names[i] : fused[i - 4];
        REFUSED(DREY_ERR_UNSUPPORTED, toy.more_tensor, open_toy, &toy);
    }
}

/* What has no numbers for further positions is not asked for them; what a text's length decides is
 * refused. */
TEST(contexts_end)
{
    toy_options toy = toy_default();
    for (int i = 0; i < 2; i++) {
        toy.architecture = i ? "phi3" : "gpt2";
        toy.n_layers = 1;
        toy.n_heads_kv = toy.n_heads;
        toy.n_context = i ? 4096 : 63;
        toy.longrope = i;
        toy.n_rot = i ? 16 : 0;
        static const toy_key original[] = {
            {"rope.scaling.original_context_length", GGUF_U32, 63, NULL}, {0}};
        toy.keys = i ? original : NULL;
        /* It asks for 64. */
        REFUSED(DREY_ERR_UNSUPPORTED, "positions for 63 tokens", open_toy, &toy);
    }
}

static model_shape shape_of(const char *architecture, const toy_key *keys)
{
    toy_options toy = toy_default();
    toy.architecture = architecture;
    toy.n_layers = 7;
    toy.keys = keys;
    drey_model *m = toy_open("model.gguf", &toy);
    model_shape s = m->shape;
    drey_model_close(&m);
    return s;
}

/* What an architecture is where its file does not say, as llama.cpp's loaders have it. */
TEST(missing_keys_have_their_defaults)
{
    model_shape s = shape_of("gemma2", NULL);
    assert_true(s.cap.attention == 50 && s.cap.logit == 30 && s.n_ropes == 1);
    assert_true(!s.attention[0].window); /* 4096 is as wide as this context */
    s = shape_of("gemma3", NULL);
    assert_true(s.cap.attention == 0 && s.cap.logit == 0 && !s.attention[0].window &&
                s.n_ropes == 1);
    /* Layers of a window rotate in their own way, however wide it is. */
    static const toy_key wide[] = {{"attention.sliding_window", GGUF_U32, 1 << 20, NULL}, {0}};
    s = shape_of("gemma3", wide);
    assert_true(s.n_ropes == ROPES && s.rope[ROPE_OF_LOCAL].base == 10000);
    assert_true(layer_attention(&s, 4)->window && !layer_attention(&s, 5)->window &&
                layer_attention(&s, 6)->window);
    assert_int_equal(shape_of("llama", wide).attention[0].window, 0);
    s = shape_of("granite", NULL);
    assert_true(s.scale.embedding == 1 && s.scale.residual == 1 && s.scale.logit == 1);
    assert_true(s.attention[0].scale * s.attention[0].scale * (float)s.attention[0].head_dim == 1);
}

/* ---- What keeps a file from running ---- */

typedef struct complaints {
    int n;
    char text[4096];
} complaints;

static void note(void *user, const char *what)
{
    complaints *c = user;
    c->n++;
    strncat(c->text, what, sizeof c->text - strlen(c->text) - 1);
}

static complaints complaints_of(const toy_options *toy)
{
    complaints c = {0};
    toy_write(temp_path("model.gguf"), toy);
    MUST(drey_missing, temp_path("model.gguf"), note, &c);
    return c;
}

TEST(says_what_is_missing)
{
    static const toy_key keys[] = {
        {"attention.clamp_kqv", GGUF_F32, 30, NULL}, {"residual_scale", GGUF_F32, 0.5, NULL}, {0}};
    toy_options toy = toy_default();
    assert_int_equal(complaints_of(&toy).n, 0);
    toy.keys = keys;
    complaints c = complaints_of(&toy);
    assert_int_equal(c.n, 2);
    assert_true(strstr(c.text, "clamp_kqv") && strstr(c.text, "residual_scale"));
    toy = toy_default();
    toy.architecture = "mamba"; /* whose other needs are not known */
    c = complaints_of(&toy);
    assert_int_equal(c.n, 1);
    assert_non_null(strstr(c.text, "architecture \"mamba\" is not supported; "));
    toy.architecture = "t5encoder";
    c = complaints_of(&toy);
    assert_int_equal(c.n, 1);
    assert_non_null(strstr(c.text, "\"t5encoder\" is an encoder alone"));
    toy = toy_default();
    toy.more_tensor = "blk.0.attn_sinks.weight";
    toy.pre = "no-such-rule";
    c = complaints_of(&toy);
    assert_int_equal(c.n, 2);
    assert_true(strstr(c.text, "attn_sinks") && strstr(c.text, "\"no-such-rule\""));
    drey_error err;
    assert_int_not_equal(drey_missing("/nowhere/at/all.gguf", note, &c, &err), DREY_OK);
}

/* ---- Layers ---- */

static toy_options toy_named(const char *name)
{
    toy_options toy;
    for (int i = 0; strcmp(logit_toy(i, &toy), name) != 0; i++)
        assert_true(i < N_LOGIT_TOYS - 1);
    return toy;
}

/* Sets the number of a key that the toy has. */
static void refused_number(const char *name, const char *key, uint32_t number, const char *says)
{
    toy_options toy = toy_named(name);
    gguf_writer w = {0};
    drey_model *m = NULL;
    size_t at = 0;
    toy_build(&w, &toy, 0);
    while (memcmp(w.bytes + at, key, strlen(key)) != 0)
        assert_true(++at + strlen(key) < w.n);
    writer_patch_u32(&w, at + strlen(key) + 4, number); /* after its kind */
    assert_true(writer_save(&w, temp_path("model.gguf")));
    writer_free(&w);
    REFUSED(DREY_ERR_FORMAT, says, drey_model_open, &m, temp_path("model.gguf"));
}

/* A layer without heads has a state instead, where the architecture knows such layers. */
TEST(layers_without_heads)
{
    static const char kv[] = "attention.head_count_kv";
    refused_number("toy-gemma4-embeddings", kv, 0, "head_count_kv is 0, which does not divide 4");
    refused_number("toy-falcon-h1", kv, 0, "head_count_kv is 0, which does not divide 4");
    refused_number("toy-deepseek2", kv, 0, "head_count_kv is 0, which does not divide 4");
}

TEST(positions_of_blocks_are_whole_numbers)
{
    toy_options toy = toy_named("toy-glm-dsa");
    toy_key keys[16] = {{"attention.compress_ratios", GGUF_ARRAY, 0, "f32 4 4 4"}};
    drey_error err;
    for (int32_t i = 0; toy.keys[i].suffix; i++) {
        assert_true(i < 14);
        keys[i + 1] = toy.keys[i];
    }
    toy.keys = keys;
    assert_int_equal(open_toy(&toy, &err), DREY_ERR_FORMAT);
    assert_non_null(strstr(err.message, "attention.compress_ratios has to be whole numbers"));
}
