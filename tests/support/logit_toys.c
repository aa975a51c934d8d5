/* Toys with golden logits, which tests/data/toys.txt lists: see logit_toys.h. */
#include "support/logit_toys.h"

#include "support/grammar/case_text.h"
#include "support/test.h"

enum { MOST_KEYS = 8 };

typedef struct listed_toy {
    char line[560]; /* its words, to which the others point */
    const char *name;
    toy_options options;
    toy_key keys[MOST_KEYS + 1];
} listed_toy;

static listed_toy toys[N_LOGIT_TOYS];
static int n_toys;

/* ---- Words of a line ---- */

typedef enum field_kind { NUMBER, FLAG, REAL, SEED, TYPE, FORM, TEXT } field_kind;

#define FIELD(kind, name)                                                                          \
    {                                                                                              \
#name, offsetof(toy_options, name), kind                                                   \
    }
static const struct {
    const char *name;
    size_t at;
    field_kind kind;
} fields[] = {
    FIELD(SEED, seed),
    FIELD(TYPE, type),
    FIELD(FORM, form),
    FIELD(TEXT, pre),
    FIELD(TEXT, rope_scaling),
    FIELD(NUMBER, n_layers),
    FIELD(NUMBER, n_embd),
    FIELD(NUMBER, n_heads_kv),
    FIELD(NUMBER, n_ff),
    FIELD(NUMBER, head_dim),
    FIELD(NUMBER, v_dim),
    FIELD(NUMBER, n_rot),
    FIELD(NUMBER, n_context),
    FIELD(NUMBER, n_decoder_layers),
    FIELD(NUMBER, n_nextn),
    FIELD(NUMBER, rope_original_context),
    FIELD(REAL, rope_factor),
    FIELD(FLAG, longrope),
    FIELD(FLAG, gated),
    FIELD(FLAG, tied),
    FIELD(FLAG, biases),
    FIELD(FLAG, uneven),
    FIELD(FLAG, scales),
    FIELD(FLAG, rope_freqs),
    FIELD(NUMBER, experts.n),
    FIELD(NUMBER, experts.n_used),
    FIELD(NUMBER, experts.n_ff),
    FIELD(NUMBER, experts.n_shared),
    FIELD(NUMBER, experts.n_dense),
    FIELD(NUMBER, experts.step),
    FIELD(FLAG, experts.choice_bias),
    FIELD(FLAG, experts.old_bias),
    FIELD(FLAG, experts.fused),
    FIELD(NUMBER, kinds.period),
    FIELD(NUMBER, kinds.local_dim),
    FIELD(NUMBER, kinds.n_heads_kv_global),
    FIELD(NUMBER, kinds.n_shared),
    FIELD(NUMBER, kinds.width),
    FIELD(FLAG, kinds.wide),
    FIELD(FLAG, kinds.no_values),
    FIELD(NUMBER, experts.n_latent),
    FIELD(NUMBER, delta.n_key_heads),
    FIELD(NUMBER, delta.n_value_heads),
    FIELD(NUMBER, delta.dim),
    FIELD(NUMBER, delta.period),
    FIELD(REAL, delta.decay),
    FIELD(FLAG, delta.by_heads),
    FIELD(FLAG, delta.all_inputs),
    FIELD(TEXT, mamba.kinds),
    FIELD(NUMBER, mamba.n_heads),
    FIELD(NUMBER, mamba.n_groups),
    FIELD(NUMBER, mamba.dim),
    FIELD(NUMBER, mamba.state_dim),
    FIELD(REAL, mamba.decay),
    FIELD(FLAG, mamba.without_norm),
    FIELD(NUMBER, latent.kv_rank),
    FIELD(NUMBER, latent.q_rank),
    FIELD(NUMBER, latent.n_plain),
    FIELD(NUMBER, latent.v_dim),
    FIELD(FLAG, latent.whole),
    FIELD(FLAG, latent.indexer),
    FIELD(NUMBER, streams.n),
    FIELD(NUMBER, streams.rank),
    FIELD(NUMBER, streams.n_chosen),
    FIELD(FLAG, streams.ngrams),
};

static uint32_t type_named(const char *name)
{
    if (strcmp(name, "MIXED") == 0)
        return TOY_TYPE_MIXED;
    for (uint32_t i = 0; i < TOY_TYPE_MIXED; i++)
        if (type_find(i) && strcmp(type_find(i)->name, name) == 0)
            return i;
    fail_msg("toys.txt: no type %s", name);
    return 0;
}

/* Returns the bits of "layer_norms+no_gate". */
static uint32_t form_of(const char *names)
{
    static const char *const bits[] = {
        "layer_norms", "norm_biases", "norms_after", "post_norms",   "head_norms",
        "wide_norms",  "own_norms",   "qkv_biases",  "o_bias",       "ffn_biases",
        "head_bias",   "fused_qkv",   "no_gate",     "gate_in_up",   "parallel",
        "gated",       "gated_heads", "sinks",       "window_sinks", "post_is_ffn_norm",
        "short_conv",  "gates_in_q",  "one_block",   "beside"};
    uint32_t form = 0;
    for (size_t n; *names; names += n + (names[n] == '+')) {
        size_t i = 0;
        n = strcspn(names, "+");
        while (strlen(bits[i]) != n || strncmp(bits[i], names, n) != 0)
            assert_true(++i < sizeof bits / sizeof *bits);
        form |= 1u << i;
    }
    return form;
}

static void set_field(toy_options *o, const char *name, const char *value)
{
    size_t i = 0;
    while (i < sizeof fields / sizeof *fields && strcmp(fields[i].name, name) != 0)
        i++;
    if (i == sizeof fields / sizeof *fields || !value != (fields[i].kind == FLAG))
        fail_msg("toys.txt: no such word: %s", name);
    void *to = (char *)o + fields[i].at;
    switch (fields[i].kind) {
    case NUMBER:
        *(int32_t *)to = atoi(value);
        break;
    case FLAG:
        *(bool *)to = true;
        break;
    case REAL:
        *(float *)to = strtof(value, NULL);
        break;
    case SEED:
        *(uint64_t *)to = strtoull(value, NULL, 10);
        break;
    case TYPE:
        *(uint32_t *)to = type_named(value);
        break;
    case FORM:
        *(uint32_t *)to = form_of(value);
        break;
    case TEXT:
        *(const char **)to = value;
        break;
    }
}

static toy_key key_of(const char *kind, const char *suffix, char *value)
{
    static const struct {
        const char *name;
        gguf_kind kind;
    } kinds[] = {{"u32", GGUF_U32},
                 {"f32", GGUF_F32},
                 {"bool", GGUF_BOOL},
                 {"text", GGUF_STRING},
                 {"array", GGUF_ARRAY}};
    size_t i = 0;
    while (strcmp(kinds[i].name, kind) != 0)
        assert_true(++i < sizeof kinds / sizeof *kinds);
    for (char *at = value; kinds[i].kind == GGUF_ARRAY && (at = strchr(at, ','));)
        *at = ' ';
    bool number = kinds[i].kind != GGUF_STRING && kinds[i].kind != GGUF_ARRAY;
    return (toy_key){suffix, kinds[i].kind, number ? strtod(value, NULL) : 0,
                     number ? NULL : value};
}

static void take_line(void *user, char *line)
{
    assert_true(n_toys < N_LOGIT_TOYS && strlen(line) < sizeof toys->line);
    listed_toy *t = &toys[n_toys++];
    int n_keys = 0;
    t->name = strtok(strcpy(t->line, line), " ");
    t->options = toy_default();
    t->options.architecture = strtok(NULL, " ");
    for (char *word; (word = strtok(NULL, " "));) {
        char *key = strchr(word, ':'), *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        if (strcmp(word, "no_template") == 0) {
            t->options.chat_template = NULL;
        } else if (!key) {
            set_field(&t->options, word, value);
        } else {
            assert_true(value && n_keys < MOST_KEYS);
            *key++ = '\0';
            t->keys[n_keys++] = key_of(word, key, value);
        }
    }
    t->options.keys = n_keys ? t->keys : NULL;
}

const char *logit_toy(int i, toy_options *o)
{
    if (n_toys == 0)
        case_file_read(TEST_DATA "/toys.txt", take_line, NULL, "toy-", N_LOGIT_TOYS);
    *o = toys[i].options;
    return toys[i].name;
}

const char *arch_toy(int i, toy_options *o)
{
    return logit_toy(N_PLAIN_TOYS + i, o);
}

const char *expert_toy(int i, toy_options *o)
{
    return arch_toy(N_ARCH_TOYS + i, o);
}

const char *family_toy(int i, toy_options *o)
{
    return expert_toy(N_EXPERT_TOYS + i, o);
}

const char *number_toy(int i, toy_options *o)
{
    return family_toy(N_FAMILY_TOYS + i, o);
}

const char *latent_toy(int i, toy_options *o)
{
    return number_toy(N_NUMBER_TOYS + i, o);
}
