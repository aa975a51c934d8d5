/* See matrix.h. */
#include "text/matrix.h"

#include "session/session.h"
#include "support/faults/disk.h"
#include "support/drafts/eagle_file.h"
#include "support/faults/fake_device.h"
#include "support/heads_file.h"
#include "support/logit_toys.h"
#include "support/toys/sum_block.h"
#include "support/writing.h"
#include "weights/experts.h"

enum {
    SUM_MODEL = 2,
    FIRST_ARCH,
    FIRST_ENCODER = FIRST_ARCH + FIRST_T5_TOY,
    FIRST_FAMILY = FIRST_ARCH + N_ARCH_TOYS,
    FIRST_NUMBER = FIRST_FAMILY + N_FAMILY_TOYS,
    FIRST_MIXTURE = FIRST_NUMBER + 5, /* and families of mixtures */
    FIRST_MIXED_NUMBER = FIRST_MIXTURE + N_EXPERT_TOYS,
    FIRST_LATENT = FIRST_MIXED_NUMBER + 4,
    N_MODELS = FIRST_LATENT + 4,
    SLICE_IDS = 256,
    SLICE_ROOM = 64,
    N_PARTS = 5
};
enum { N_SHORT = 12, N_MIDDLE = 60, N_LONG = 280, MOST_SESSIONS = 3 };
#ifdef TESTS_SANITIZED
enum { N_TEXT = 6 };
#else
enum { N_TEXT = 12 };
#endif

/* ---- Values ---- */

static const char *const units[] = {NULL,
                                    "cpu",
                                    "auto",
                                    "cpu+cpu",
                                    "cpu+cpu+static",
                                    "cpu/threads=2+cpu/threads=2",
                                    "cpu/threads=2+cpu+static",
                                    "cpu/slow=2+cpu/ref+static",
                                    "cpu+cpu/slow=3",
                                    "cpu+cpu/threads=2+cpu",
                                    "cpu+fake",
                                    "cpu+cpu+fake+static",
                                    "cpu/threads=2+fake:attend9",
                                    "cpu=1+cpu=0",
                                    "cpu=0+cpu=1",
                                    "cpu=1+cpu=100+static",
                                    "cpu=3+cpu=1+cpu=2+cpu=5+static",
                                    "cpu=1/slow=4+cpu=1",
                                    "cpu=1+fake=100",
                                    "cpu=0+fake=1+static",
                                    "cpu=1+fake:copies=2",
                                    "cpu=2+fake:copies=1+static",
                                    "cpu=1+fake:slow=1",
                                    "cpu=1+fake=1+fake:copies=1",
                                    "cpu=1+fake:fail3=3+static",
                                    "cpu=1+fake:copies.wait5=3"};
static const drey_drafter drafters[] = {DREY_DRAFTER_NONE,   DREY_DRAFTER_MODEL,
                                        DREY_DRAFTER_LOOKUP, DREY_DRAFTER_MEDUSA,
                                        DREY_DRAFTER_SELF,   DREY_DRAFTER_EAGLE};
static const drey_policy policies[] = {
    DREY_POLICY_NONE,   DREY_POLICY_SEQUENCE, DREY_POLICY_SPECINFER,
    DREY_POLICY_LLMCAD, DREY_POLICY_EDGELLM,  DREY_POLICY_OPTIMAL,
    DREY_POLICY_SINGLE, DREY_POLICY_STATIC,   DREY_POLICY_STD};
enum { POLICY_OPTIMAL = 5, POLICY_STD = 8 };
static const float boundaries[] = {0, -0.6f, 0, 0.3f, 0.75f, 1}; /* the first: as shares say */
static const double shares[] = {-1, 0.6, 0.25, 0, -2}; /* -1: all; -2: as the least budget says */
static const drey_io ways[] = {DREY_IO_AUTO, DREY_IO_PREAD, DREY_IO_BUFFERED};
static const int32_t chunks[] = {0, 1, 7, 32};
static const drey_kv formats[] = {DREY_KV_F16, DREY_KV_Q8_0};
static const drey_sampling samplings[] = {
    {.top_p = 1},
    {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.02f, .seed = 7},
    {.temperature = 3, .top_p = 1, .seed = 5}};
/* Texts of them are longer than those of the matrix. */
static const char *const grammars[] = {
    NULL, "root ::= ([a-z ] | \".\" | \"é\"){1000}",
    "root ::= item{500}\nitem ::= \"def return: \" [a-m]{1,4} [;0-3] | \"The tree\\n\""};
static const drey_penalties punished[] = {{.repeat = 1},
                                          {.repeat = 1.3f, .presence = 0.5f, .last_n = 9},
                                          {.repeat = 1,
                                           .frequency = 0.4f,
                                           .last_n = -1,
                                           .dry_multiplier = 2,
                                           .dry_base = 1.75f,
                                           .dry_allowed_length = 1,
                                           .dry_last_n = -1}};
typedef struct oracle { /* says at which layers tokens score */
    double often;
    int32_t from; /* layers that are complete; negative: of the last one */
} oracle;
static const oracle exits[] = {{0, 0}, {0, 1}, {1, 1}, {0.3, 1}, {0.6, 2}, {1, -1}}; /* 0: off */
static const char *const reads[] = {"quick", "slow", "failing"};

#define COUNT(list) ((int32_t)(sizeof(list) / sizeof *(list)))
/* n_values 0: as many as the processor has tiers */
static const struct {
    const char *name;
    int32_t n_values;
} axes[N_AXES] = {
    [AXIS_MODEL] = {"model", N_MODELS},
    [AXIS_PROMPT] = {"prompt", 2},
    [AXIS_SAMPLING] = {"sampling", COUNT(samplings)},
    [AXIS_KV] = {"kv", COUNT(formats)},
    [AXIS_DRAFTER] = {"drafter", COUNT(drafters)},
    [AXIS_POLICY] = {"policy", COUNT(policies)},
    [AXIS_WITHOUT] = {"without", N_PARTS + 2},
    [AXIS_LOOKUP] = {"lookup", 2},
    [AXIS_EXIT] = {"exit", COUNT(exits)},
    [AXIS_UNITS] = {"units", COUNT(units)},
    [AXIS_BOUNDARY] = {"boundary", COUNT(boundaries)},
    [AXIS_SHARE] = {"share", COUNT(shares)},
    [AXIS_SIDECAR] = {"sidecar", 2},
    [AXIS_IO] = {"io", COUNT(ways)},
    [AXIS_READS] = {"reads", COUNT(reads)},
    [AXIS_TIER] = {"tier", 0},
    [AXIS_THREADS] = {"threads", 3},
    [AXIS_CHUNK] = {"chunk", COUNT(chunks)},
    [AXIS_CLOCK] = {"clock", 2},
    [AXIS_SESSIONS] = {"sessions", 3},
    [AXIS_GRAMMAR] = {"grammar", COUNT(grammars)},
    [AXIS_PENALTIES] = {"penalties", COUNT(punished)},
    [AXIS_PAUSE] = {"pause", 3},
};

int32_t matrix_values(matrix_axis axis)
{
    int32_t n = axes[axis].n_values;
    while (axis == AXIS_TIER && strcmp(drey_cpu_tiers()[n], "float") != 0)
        n++;
    return n + (axis == AXIS_TIER); /* the last: none is named */
}

static const char *tier_of(const int32_t *at)
{
    return at[AXIS_TIER] + 1 < matrix_values(AXIS_TIER) ? drey_cpu_tiers()[at[AXIS_TIER]] : NULL;
}

const char *matrix_count_name(matrix_count which)
{
#define NAME(id, name) name,
    static const char *const names[N_COUNTS] = {MATRIX_COUNTS(NAME)};
    return names[which];
}

void matrix_case_random(matrix_case *c, rng *r)
{
    for (int32_t i = 0; i < N_AXES; i++)
        c->at[i] = rng_below(r, matrix_values((matrix_axis)i));
    if (rng_below(r, 4)) /* they leave out exits and pauses */
        c->at[AXIS_GRAMMAR] = 0;
    if (rng_below(r, 4)) /* they leave out exits */
        c->at[AXIS_PENALTIES] = 0;
    if (rng_below(r, 2)) /* one of those that have most types, or the running sum */
        c->at[AXIS_MODEL] %= FIRST_ARCH;
}

static struct {
    drey_model *target, *draft, *layer;
    char planes[512], packed[512], heads[512];
} models[N_MODELS];

static bool has_encoder(int model)
{
    return model >= FIRST_ENCODER && model < FIRST_FAMILY;
}

/* There are EAGLE layers for it. */
static bool has_layer(int model)
{
    return !has_encoder(model) && models[model].target->shape.streams.n == 0;
}

void matrix_case_resolve(matrix_case *c)
{
    int32_t *at = c->at;
    drey_drafter who = drafters[at[AXIS_DRAFTER]];
    if (who == DREY_DRAFTER_EAGLE && !has_layer(at[AXIS_MODEL]))
        at[AXIS_MODEL] = FIRST_ARCH;
    if (who == DREY_DRAFTER_SELF &&
        (matrix_is_mixture(at[AXIS_MODEL]) || matrix_has_states(at[AXIS_MODEL])))
        at[AXIS_MODEL] = FIRST_ARCH; /* a mixture has no planes of its experts, states no views */
    if (matrix_is_mixture(at[AXIS_MODEL]))
        at[AXIS_EXIT] = 0;
    if (has_encoder(at[AXIS_MODEL]))
        at[AXIS_GRAMMAR] = 0;
    if (at[AXIS_GRAMMAR]) /* it begins again with the text that continues */
        at[AXIS_EXIT] = at[AXIS_PAUSE] = 0;
    if (at[AXIS_PENALTIES])
        at[AXIS_EXIT] = 0;
    if (who == DREY_DRAFTER_NONE)
        at[AXIS_WITHOUT] = at[AXIS_LOOKUP] = 0;
    if (who == DREY_DRAFTER_NONE && at[AXIS_POLICY] != POLICY_STD)
        at[AXIS_POLICY] = 0;
    else if (who != DREY_DRAFTER_NONE && (at[AXIS_POLICY] == 0 || at[AXIS_POLICY] == POLICY_STD))
        at[AXIS_POLICY] = POLICY_OPTIMAL;
    if (at[AXIS_WITHOUT] > N_PARTS)
        at[AXIS_LOOKUP] = 0;
    if (who == DREY_DRAFTER_SELF || at[AXIS_POLICY] == POLICY_STD)
        at[AXIS_EXIT] = 0;
    if (who == DREY_DRAFTER_SELF)
        at[AXIS_SIDECAR] = 0; /* it has one with planes */
    if (at[AXIS_UNITS] == 0 || strchr(units[at[AXIS_UNITS]], '='))
        at[AXIS_BOUNDARY] = 0;
    if (at[AXIS_UNITS] > 0)
        at[AXIS_THREADS] = 0; /* units say it */
    /* Long texts, and many of them to compare with, take long. */
    if (at[AXIS_MODEL] >= FIRST_ARCH && (!matrix_is_mixture(at[AXIS_MODEL]) || at[AXIS_PROMPT]))
        at[AXIS_SAMPLING] = at[AXIS_KV] = at[AXIS_SESSIONS] = 0;
    if (at[AXIS_SESSIONS] && (at[AXIS_UNITS] < 2 || at[AXIS_MODEL] != 1))
        at[AXIS_PROMPT] = 0;
    if (at[AXIS_PROMPT] == 1 && (at[AXIS_SESSIONS] || at[AXIS_SAMPLING] > 1))
        at[AXIS_SAMPLING] = at[AXIS_KV] = 0;
    if (at[AXIS_PROMPT] == 1 && tier_of(at) && strcmp(tier_of(at), "ref") == 0)
        at[AXIS_TIER]++; /* the best */
}

/* "drafter model, policy optimal, ..." in a buffer that the next call uses again. */
static const char *matrix_case_text(const matrix_case *c)
{
    static char text[1000];
    const int32_t *at = c->at;
    size_t n = (size_t)snprintf(
        text, sizeof text, "drafter %s, policy %s, units %s, tier %s, share %g, reads %s;",
        drey_drafter_name(drafters[at[AXIS_DRAFTER]]), drey_policy_name(policies[at[AXIS_POLICY]]),
        at[AXIS_UNITS] ? units[at[AXIS_UNITS]] : "none", tier_of(at) ? tier_of(at) : "auto",
        shares[at[AXIS_SHARE]], reads[at[AXIS_READS]]);
    for (int i = 0; i < N_AXES; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %s %d", axes[i].name, at[i]);
    return text;
}

/* ---- Models ---- */

static int32_t prompt[N_LONG + MOST_SESSIONS];

bool matrix_is_mixture(int32_t model)
{
    return models[model].target->shape.experts.router.n_experts > 0;
}

bool matrix_has_states(int32_t model)
{
    return shape_has_states(&models[model].target->shape);
}

int32_t matrix_state_model(int32_t value)
{
    int32_t model = SUM_MODEL;
    for (int32_t left = value % 4; left > 0; left--)
        do
            model++;
        while (!matrix_has_states(model) || matrix_is_mixture(model));
    return model;
}

/* A token that no head can guess, now and then. */
static const int32_t *some_ids(int32_t n)
{
    static int32_t ids[1000];
    assert_true(n <= 1000);
    for (int32_t i = 0; i < n; i++)
        ids[i] = i + i / 5;
    return ids;
}

static void put_heads(int i)
{
    heads_file h;
    heads_file_init(&h, models[i].target->file, &models[i].target->shape);
    h.shape.n_heads = 4;
    h.spread = 0.002f; /* they repeat what the target thought a step ago, about */
    if (i % 2) {
        h.shape.n_ids = h.shape.n_ids * 5 / 6;
        h.ids = some_ids(h.shape.n_ids);
    }
    heads_file_write(models[i].heads, &h);
}

/* Writes an EAGLE layer, every second one with the whole vocabulary and an embedding. */
static void put_layer(int i, const toy_options *toy)
{
    eagle_file e;
    char name[64];
    eagle_file_init_knowing(&e, toy, models[i].target->file, &models[i].target->shape);
    e.own_embedding = i % 2;
    if (!e.own_embedding)
        e.taps.n_ids = e.taps.n_ids * 5 / 6;
    snprintf(name, sizeof name, "layer%d.gguf", i);
    eagle_file_write(temp_path(name), &e);
    MUST(drey_model_open, &models[i].layer, temp_path(name));
}

static void name_file(char path[512], const char *what, int i)
{
    char name[64];
    snprintf(name, sizeof name, "%s%d", what, i);
    snprintf(path, 512, "%s", temp_path(name));
}

static void open_model(int i, const toy_options *toy)
{
    char name[64];
    toy_options of_draft = *toy;
    snprintf(name, sizeof name, "target%d-00001-of-0000%d.gguf", i, toy->n_parts);
    models[i].target = toy_open(name, toy);
    of_draft.n_parts = 1;
    of_draft.noise = 0.01f; /* right often enough, and wrong often enough */
    of_draft.noise_seed = 3;
    snprintf(name, sizeof name, "draft%d.gguf", i);
    models[i].draft = toy_open(name, &of_draft);
    name_file(models[i].planes, "planes", i);
    name_file(models[i].packed, "packed", i);
    name_file(models[i].heads, "heads", i);
    toy_prepare(models[i].target, models[i].planes, true);
    toy_prepare(models[i].target, models[i].packed, false);
    put_heads(i);
    if (has_layer(i))
        put_layer(i, toy);
}

/* The options of the i-th toy of an architecture. Of those that differ in numbers alone, these have
 * what no other one has; the rest have the arithmetic of others. */
static void toy_of(int32_t model, toy_options *toy)
{
    static const char *const dense[] = {"toy-smollm3", "toy-mistral3", "toy-hunyuan", "toy-uneven",
                                        "toy-scales"};
    static const char *const mixed[] = {"toy-exaone-moe", "toy-glm4moe", "toy-ernie-moe",
                                        "toy-scales-moe"};
    static const int latents[] = {0, 1, 3, 6}; /* the others differ in routers alone */
    const char *name = model >= FIRST_LATENT         ? NULL
                       : model >= FIRST_MIXED_NUMBER ? mixed[model - FIRST_MIXED_NUMBER]
                       : model >= FIRST_NUMBER && model < FIRST_MIXTURE
                           ? dense[model - FIRST_NUMBER]
                           : NULL;
    if (model >= FIRST_LATENT) {
        latent_toy(latents[model - FIRST_LATENT], toy);
        toy->rope_original_context = toy->rope_original_context ? 32 : 0;
    } else if (name) {
        for (int i = 0; strcmp(number_toy(i, toy), name) != 0; i++)
            assert_true(i < N_NUMBER_TOYS);
        toy->rope_original_context = toy->rope_original_context ? 32 : 0;
    } else if (model >= FIRST_MIXTURE) {
        expert_toy(model - FIRST_MIXTURE, toy);
    } else if (model >= FIRST_FAMILY) {
        family_toy(model - FIRST_FAMILY, toy);
    } else {
        arch_toy(model - FIRST_ARCH, toy);
    }
}

void matrix_open(void)
{
    toy_options toy = toy_default();
    rng r = rng_from(4);
    temp_dir();
    toy.n_embd = toy.n_ff = 256;
    toy.n_vocab = 900;
    toy.n_context = 512;
    toy.architecture = "qwen2";
    toy.type = TOY_TYPE_MIXED;
    toy.n_layers = 4; /* to leave early at */
    open_model(0, &toy);
    toy.architecture = "llama";
    toy.type = TYPE_Q4_K;
    toy.n_layers = 3;
    toy.tied = toy.rope_freqs = true;
    toy.n_parts = 2;
    open_model(1, &toy);
    arch_of_test = &sum_arch;
    toy.architecture = sum_arch.name;
    toy.type = TOY_TYPE_CODED;
    toy.n_layers = 4;
    toy.tied = toy.rope_freqs = false;
    toy.n_parts = 1;
    open_model(SUM_MODEL, &toy);
    for (int i = FIRST_ARCH; i < N_MODELS; i++) {
        toy_of(i, &toy);
        toy.type = TYPE_Q4_K; /* which has planes */
        toy.n_embd = 256;
        toy.n_ff = toy.uneven ? 512 : 256;
        toy.experts.n_ff = toy.experts.n_ff ? 256 : 0;
        toy.experts.n_shared = toy.experts.n_shared ? 512 : 0;
        if (toy.delta.n_key_heads > 0)
            toy.delta.dim = toy.delta.n_value_heads % 4 == 0 ? 64 : 128;
        if (toy.mamba.n_heads > 0)
            toy.mamba.dim = toy.mamba.n_heads == 16 ? 16 : toy.mamba.n_heads == 4 ? 64 : 128;
        toy.experts.n_latent = toy.experts.n_latent ? 512 : 0;
        if (toy.head_dim > 0) { /* wider than width / heads */
            toy.n_heads = 8;
            toy.v_dim = toy.v_dim > toy.head_dim ? 96 : toy.v_dim ? 32 : 0;
            toy.head_dim = 64;
        }
        if (toy.kinds.period > 0) {
            toy.kinds.local_dim = 32;
            toy.kinds.width = toy.kinds.width ? 256 : 0;
        }
        open_model(i, &toy);
    }
    for (int32_t i = 0; i < N_LONG + MOST_SESSIONS; i++)
        prompt[i] = i < 8 ? 60 + i : prompt[i - 8 + rng_below(&r, 8)];
}

void matrix_close(void)
{
    for (int i = 0; i < N_MODELS; i++) {
        drey_model_close(&models[i].target);
        drey_model_close(&models[i].draft);
        drey_model_close(&models[i].layer);
    }
    temp_dir_remove();
}

/* Each session's text begins a token later. Of the architectures' toys, the short prompt as well is
 * longer than most of their windows, and nearly a block of attention. */
static int32_t prompt_of(const int32_t *at)
{
    return at[AXIS_PROMPT] ? N_LONG : at[AXIS_MODEL] > 1 ? N_MIDDLE : N_SHORT;
}

/* Tokens of the timeline before the text: an encoder's input is not in it, a start token is. */
static int32_t timeline_of(const int32_t *at)
{
    const model_shape *s = &models[at[AXIS_MODEL]].target->shape;
    return !shape_reads(s) ? prompt_of(at) : s->encoder.forced_id >= 0 ? 2 : 1;
}

static drey_generate_options options_of_text(writing *into, const int32_t *at, int32_t n)
{
    drey_generate_options g = writing_into(into, n);
    const char *grammar = grammars[at[AXIS_GRAMMAR]];
    g.sampling = samplings[at[AXIS_SAMPLING]];
    g.sampling.penalties = &punished[at[AXIS_PENALTIES]];
    if (grammar) {
        g.ignore_eos = false;
        MUST(drey_grammar_open, &g.grammar, models[at[AXIS_MODEL]].target, DREY_GRAMMAR_GBNF,
             grammar, strlen(grammar));
    }
    return g;
}

/* Plain decoding for those axes that may change a text, written once each. */
static const writing *wanted(const int32_t *at, int32_t session)
{
    static writing want[N_MODELS][2][COUNT(samplings)][COUNT(formats)][COUNT(grammars)]
                       [COUNT(punished)][MOST_SESSIONS];
    int32_t n = prompt_of(at);
    writing *w = &want[at[AXIS_MODEL]][at[AXIS_PROMPT]][at[AXIS_SAMPLING]][at[AXIS_KV]]
                      [at[AXIS_GRAMMAR]][at[AXIS_PENALTIES]][session];
    if (w->n_ids > 0)
        return w;
    drey_engine_options o = plain_options(models[at[AXIS_MODEL]].target, n + N_TEXT + 4, 1);
#ifndef TESTS_SANITIZED /* they take the best tier, many times as quick: others compare with ref */
    o.cpu_tier = "ref";
#endif
    o.kv = formats[at[AXIS_KV]];
    engine_place p = place_open(&o, NULL);
    drey_generate_options g = options_of_text(w, at, N_TEXT);
    MUST(drey_session_generate, p.session[0], prompt + session, (size_t)n, &g, &w->stats);
    place_close(&p);
    drey_grammar_close(&g.grammar);
    assert_int_equal(w->n_ids, N_TEXT);
    return w;
}

/* ---- A case ---- */

static int32_t first_exit(const int32_t *at)
{
    int32_t from = exits[at[AXIS_EXIT]].from;
    return from < 0 ? from + models[at[AXIS_MODEL]].target->shape.n_layers : from;
}

static bool exit_here(void *user, int32_t layer, int32_t position)
{
    const matrix_case *c = user;
    rng r = rng_from(1000 * (uint64_t)position + (uint64_t)layer);
    return layer >= first_exit(c->at) && rng_unit(&r) < exits[c->at[AXIS_EXIT]].often;
}

static uint64_t parts_left_out(int32_t i)
{
    uint64_t all = ((UINT64_C(1) << N_PARTS) - 1) | DREY_WITHOUT(DREY_PART_LOOKUP);
    return i == 0 ? 0 : i <= N_PARTS ? DREY_WITHOUT(i - 1) : all;
}

static drey_engine_options options_of(const int32_t *at, drey_unit_shares *unit_shares,
                                      drey_research *research)
{
    drey_drafter who = drafters[at[AXIS_DRAFTER]];
    const int m = at[AXIS_MODEL];
    drey_engine_options o =
        plain_options(models[m].target, prompt_of(at) + N_TEXT + 4, 1 + at[AXIS_THREADS]);
    o.drafter = who;
    o.draft = who == DREY_DRAFTER_MODEL   ? models[m].draft
              : who == DREY_DRAFTER_EAGLE ? models[m].layer
                                          : NULL;
    o.heads = who == DREY_DRAFTER_MEDUSA ? models[m].heads : NULL;
    o.sidecar = who == DREY_DRAFTER_SELF ? models[m].planes
                : at[AXIS_SIDECAR]       ? models[m].packed
                                         : NULL;
    o.policy = policies[at[AXIS_POLICY]];
    o.tree_nodes = who == DREY_DRAFTER_NONE || at[AXIS_CHUNK] == 0 ? 0 : 24;
    *research = (drey_research){.without = parts_left_out(at[AXIS_WITHOUT])};
    research->with = at[AXIS_LOOKUP] ? DREY_WITH(DREY_PART_LOOKUP) & ~research->without : 0;
    o.research = research;
    o.exit = at[AXIS_EXIT] ? DREY_EXIT_EXACT : DREY_EXIT_OFF;
    o.io = ways[at[AXIS_IO]];
    o.kv = formats[at[AXIS_KV]];
    o.cpu_tier = tier_of(at);
    o.prompt_chunk = chunks[at[AXIS_CHUNK]];
    o.n_sessions = at[AXIS_SESSIONS] ? MOST_SESSIONS : 1;
    const char *words = units[at[AXIS_UNITS]];
    if (words) {
        o.units = words;
        o.n_threads = 0;
    }
    if (words && !strchr(words, '=')) {
        *unit_shares = (drey_unit_shares){.n_boundaries = at[AXIS_BOUNDARY] > 0,
                                          .boundary = {boundaries[at[AXIS_BOUNDARY]]},
                                          .n_units = 1};
        for (const char *c = words; *c; c++)
            unit_shares->n_units += *c == '+' && strncmp(c, "+static", 7) != 0;
        for (int32_t i = 0; i < DREY_UNIT_WIDTHS * DREY_MAX_UNITS; i++)
            unit_shares->share[i / DREY_MAX_UNITS][i % DREY_MAX_UNITS] = 1 + i % DREY_MAX_UNITS;
        if (strcmp(words, "auto") != 0)
            o.unit_shares = unit_shares;
    }
    return o;
}

typedef struct column { /* a session's text */
    drey_session *session;
    writing got;
    drey_grammar *grammar;
    int32_t pause_at; /* the step after which it pauses; -1: none */
} column;

static void begin(column *c, const int32_t *at)
{
    drey_generate_options g = options_of_text(&c->got, at, N_TEXT - c->got.n_ids);
    c->grammar = g.grammar;
    MUST(drey_session_begin, c->session, &g, &c->got.stats);
}

/* Tokens that were not handed out yet are dropped; the text continues after the verified ones. */
static void pause_and_continue(column *c, const int32_t *at, matrix_totals *total)
{
    size_t n_verified = (size_t)(timeline_of(at) + c->got.n_ids);
    if (!drey_session_is_writing(c->session))
        return;
    total->n[N_PAUSES]++;
    total->n[N_UNVERIFIED] += c->session->n_timeline - (int64_t)n_verified;
    assert_int_equal(drey_session_truncate(c->session, n_verified + 1, NULL), DREY_ERR_USAGE);
    if (at[AXIS_PAUSE] == 1)
        drey_session_end(c->session);
    else
        MUST(drey_session_truncate, c->session, n_verified);
    assert_int_equal(c->session->n_timeline, n_verified);
    begin(c, at);
}

/* The counts of a text that was written without a pause. */
static void check_exits(const drey_exits *x, const int32_t *at)
{
    int64_t tokens = 0;
    double layers = 0;
    const int32_t n_layers = models[at[AXIS_MODEL]].target->shape.n_layers;
    for (int32_t i = 0; i < DREY_EXITS_LAYERS; i++) {
        tokens += x->at_layer[i];
        layers += (double)(x->at_layer[i] * (i + 1));
        if (i + 1 < first_exit(at))
            assert_int_equal(x->at_layer[i], 0);
    }
    assert_true(x->mode == DREY_EXIT_EXACT && x->n_layers == n_layers && tokens == x->tokens);
    assert_int_equal(x->left, tokens - x->at_layer[n_layers - 1]);
    assert_true(fabs(x->layers_per_token * (double)tokens - layers) < 1e-6);
    assert_true(x->compared <= x->left && x->agreed <= x->compared);
    assert_true(x->left == 0 || exits[at[AXIS_EXIT]].often > 0);
    /* Shared passes may have no exits, and a path may be too long for what is left of the text. */
    if (at[AXIS_SESSIONS] == 0)
        assert_true(x->candidates > 0 || exits[at[AXIS_EXIT]].often < 1);
    assert_true(x->candidates <= x->looks && x->refused == 0);
}

static void add_session(const column *col, const int32_t *at, const drey_engine_options *o,
                        matrix_totals *total)
{
    drey_speculation s;
    drey_exits x;
    drey_session_speculation(col->session, &s);
    drey_session_exits(col->session, &x);
    assert_false(s.lossy);
    assert_true(s.hidden_share >= 0 && s.hidden_share <= 1);
    if (o->research->without & DREY_WITHOUT(DREY_PART_PROVISIONAL))
        assert_true(s.provisional_kept + s.provisional_lost == 0 && s.hidden_share == 0);
    assert_true(s.outside_slice == 0 || !(o->research->without & DREY_WITHOUT(DREY_PART_SLICE)));
    assert_true(x.tokens == 0 || o->exit != DREY_EXIT_OFF);
    if (o->exit != DREY_EXIT_OFF && at[AXIS_PAUSE] == 0)
        check_exits(&x, at);
    total->n[N_ACCEPTED] += col->got.stats.accepted;
    if (drafters[at[AXIS_DRAFTER]] != DREY_DRAFTER_NONE)
        total->n[N_OF_MODEL + at[AXIS_DRAFTER] - 1] += col->got.stats.accepted;
    total->n[N_GREEDY + at[AXIS_SAMPLING]] += col->got.stats.accepted;
    total->n[N_REFUSED] += col->got.stats.drafted - col->got.stats.accepted;
    total->n[N_KEPT] += s.provisional_kept;
    total->n[N_LOST] += s.provisional_lost;
    total->n[N_OUTSIDE_SLICE] += s.outside_slice;
    total->n[N_BLENDED] += s.accepted_of_draft + s.accepted_of_text;
    total->n[N_UNDER_GRAMMAR] += at[AXIS_GRAMMAR] ? col->got.stats.accepted : 0;
    total->n[N_PENALISED] += at[AXIS_PENALTIES] ? col->got.stats.accepted : 0;
    total->n[N_EXIT_CASES] += o->exit != DREY_EXIT_OFF;
    total->n[N_LEFT] += x.left;
    total->n[N_STATES_LEFT] += matrix_has_states(at[AXIS_MODEL]) ? x.left : 0;
    total->n[N_STATES_ACCEPTED] += matrix_has_states(at[AXIS_MODEL]) ? col->got.stats.accepted : 0;
    total->n[N_AGREED] += x.agreed;
    total->n[N_TAKEN_BACK] += x.taken_back;
}

/* Adds the counts of a mixture of experts; the engine's sessions have been added. */
static void add_mixture(const drey_engine *e, const column *columns, const int32_t *at,
                        matrix_totals *total)
{
    const expert_set *x = e->target.weights.experts;
    int64_t refused = 0, kept = 0;
    for (int32_t i = 0; i < e->config.n_sessions; i++) {
        kept += columns[i].got.stats.accepted;
        refused += columns[i].got.stats.drafted - columns[i].got.stats.accepted;
    }
    total->n[N_MIXTURES]++;
    total->n[N_EXPERTS_HIT] += (int64_t)(x->counts.used - x->counts.read);
    total->n[N_EXPERTS_READ] += (int64_t)x->counts.read;
    total->n[N_WAVES] += (int64_t)x->n_continued;
    total->n[N_MIXTURE_REFUSED] += refused;
    total->n[N_MIXTURE_SAMPLED] += at[AXIS_SAMPLING] ? kept : 0;
    total->n[N_MIXTURE_PACKED] += at[AXIS_SIDECAR] && e->sidecar.path != NULL;
    drey_unit u;
    for (int32_t i = 1; drey_engine_unit(e, i, &u); i++)
        total->n[N_MIXTURE_PARTS] += u.n_groups > 0;
}

static void add_engine(const drey_engine *e, const int32_t *at, matrix_totals *total)
{
    drey_unit u;
    for (int32_t i = 0; drey_engine_unit(e, i, &u); i++) {
        total->n[N_DENSE_BLOCKS] += (int64_t)u.n_dense_blocks;
        total->n[N_TAILS] += (int64_t)u.n_tails;
        total->n[N_UNIT_PARTS] += u.n_groups > 0 && i > 0;
        total->n[N_FAILED_DEVICES] += u.failed[0] != 0;
    }
    total->n[N_PACKED] += at[AXIS_SIDECAR] && e->sidecar.path != NULL;
    total->n[N_BEST_TIER] += strcmp(e->kernels->tier, kernel_select(NULL)->tier) == 0;
    total->n[N_STATES] += matrix_has_states(at[AXIS_MODEL]);
    total->n[N_CASES]++;
}

/* A step, of one session or of all, which is tried again where it fails. Returns how many sessions
 * still write. */
static int32_t step(drey_engine *e, column *columns, int32_t n, rng *r, const matrix_case *c,
                    matrix_totals *total)
{
    drey_error err = {0};
    int32_t n_writing = 0;
    bool done, alone = c->at[AXIS_SESSIONS] == 2 && rng_below(r, 2);
    drey_status status = alone ? drey_session_step(columns[rng_below(r, n)].session, &done, &err)
                               : drey_engine_step(e, &n_writing, &err);
    total->n[N_SHARED_PASSES] += n_writing > 1;
    total->n[N_STATES_SHARED] += n_writing > 1 && matrix_has_states(c->at[AXIS_MODEL]);
    total->n[N_MIXTURE_SHARED] += n_writing > 1 && matrix_is_mixture(c->at[AXIS_MODEL]);
    total->n[N_FAILED_STEPS] += status != DREY_OK;
    if (status != DREY_OK && (status != DREY_ERR_IO || c->at[AXIS_READS] != 2))
        fail_msg("%s: %s", err.message, matrix_case_text(c));
    for (int32_t i = n_writing = 0; i < n; i++) {
        assert_true(session_is_valid(columns[i].session));
        if (columns[i].pause_at-- == 0)
            pause_and_continue(&columns[i], c->at, total);
        n_writing += drey_session_is_writing(columns[i].session);
    }
    return n_writing;
}

/* Opens a case with the smallest budget where the share asks for it. A plan counts what the process
 * has written to, which may have become more by the time the engine is opened (TSan's own memory
 * does). */
static void open_case(engine_place *p, drey_engine_options *o, const engine_hooks *hooks,
                      bool smallest, const matrix_case *c)
{
    const uint64_t all = o->memory_bytes;
    drey_error err = {0};
    drey_status status = DREY_ERR_MEMORY;
    for (int tries = 0; tries < (smallest ? 3 : 1) && status == DREY_ERR_MEMORY; tries++) {
        o->memory_bytes = all;
        if (smallest)
            o->memory_bytes = smallest_budget(o, hooks);
        p->engine = NULL;
        status = engine_open(&p->engine, o, hooks, &err);
    }
    if (status != DREY_OK)
        fail_msg("%s: %s", err.message, matrix_case_text(c));
}

/* Writes all texts. Reads fail after the first token only: loading would begin again. */
static void write_texts(engine_place *p, column *columns, int32_t n, disk *reading,
                        const matrix_case *c, matrix_totals *total)
{
    rng r = rng_from((uint64_t)total->n[N_CASES]);
    for (int32_t i = 0; i < n; i++) {
        columns[i] = (column){.session = p->session[i], .pause_at = -1};
        if (c->at[AXIS_PAUSE])
            columns[i].pause_at = 1 + rng_below(&r, 6);
        MUST(drey_session_sync, p->session[i], prompt + i, (size_t)prompt_of(c->at), NULL);
        begin(&columns[i], c->at);
    }
    while (step(p->engine, columns, n, &r, c, total) > 0)
        if (c->at[AXIS_READS] == 2 && columns[0].got.n_ids > 0)
            atomic_store(&reading->fail_of, 100);
}

void matrix_case_run(const matrix_case *c, matrix_totals *total)
{
    static column columns[MOST_SESSIONS];
    static drey_unit_shares unit_shares;
    drey_research research;
    const int32_t *at = c->at;
    double share = shares[at[AXIS_SHARE]];
    disk reading = {.slow_of = at[AXIS_READS] == 1 ? 8 : 0, .slow_us = 6000};
    const engine_hooks hooks = {.set_share = share >= 0,
                                .share = share,
                                .fault = disk_read,
                                .fault_user = &reading,
                                .untimed = at[AXIS_CLOCK] == 1,
                                .exit_here = exit_here,
                                .exit_user = (void *)(uintptr_t)c,
                                .slice_ids = SLICE_IDS,
                                .slice_room = SLICE_ROOM,
                                .device = &fake_device};
    drey_engine_options o = options_of(at, &unit_shares, &research);
    engine_place p = {.engine = NULL};
    open_case(&p, &o, &hooks, share <= -2, c);
    for (int32_t i = 0; i < o.n_sessions; i++)
        MUST(drey_session_open, &p.session[i], p.engine);
    write_texts(&p, columns, o.n_sessions, &reading, c, total);
    for (int32_t i = 0; i < o.n_sessions; i++) {
        const writing *want = wanted(at, i);
        if (at[AXIS_PAUSE]) /* which may be in the middle of a character */
            must_be_same_ids(want, &columns[i].got, matrix_case_text(c));
        else
            must_be_same(want, &columns[i].got, matrix_case_text(c));
        add_session(&columns[i], at, &o, total);
        drey_grammar_close(&columns[i].grammar);
    }
    bool streams = columns[0].got.stats.streamed_bytes_per_pass > 0;
    if (share > -2 && streams != (share >= 0))
        fail_msg("streamed %d: %s", streams, matrix_case_text(c));
    total->n[N_STREAMED] += streams;
    add_engine(p.engine, at, total);
    if (matrix_is_mixture(at[AXIS_MODEL]))
        add_mixture(p.engine, columns, at, total);
    place_close(&p);
}
