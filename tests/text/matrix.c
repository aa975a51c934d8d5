/* See matrix.h. */
#include "text/matrix.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"
#include "support/faults/fake_device.h"
#include "support/heads_file.h"
#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/toy_models.h"
#include "support/writing.h"

enum { N_MODELS = 2, N_LONG = 300, N_SHORT = 12, SLICE_IDS = 256, SLICE_ROOM = 64 };
enum { MOST_SESSIONS = 3, SLOW_US = 6000, N_PARTS = 5 };
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
static const drey_drafter drafters[] = {DREY_DRAFTER_NONE, DREY_DRAFTER_MODEL, DREY_DRAFTER_LOOKUP,
                                        DREY_DRAFTER_MEDUSA, DREY_DRAFTER_SELF};
static const drey_policy policies[] = {
    DREY_POLICY_NONE,    DREY_POLICY_SEQUENCE, DREY_POLICY_SPECINFER, DREY_POLICY_LLMCAD,
    DREY_POLICY_EDGELLM, DREY_POLICY_OPTIMAL,  DREY_POLICY_SINGLE,    DREY_POLICY_STATIC};
static const float boundaries[] = {0, -0.6f, 0, 0.3f, 0.75f, 1}; /* the first: as shares say */
static const double shares[] = {-1, 0.6, 0.25, 0};
static const drey_io ways[] = {DREY_IO_AUTO, DREY_IO_PREAD, DREY_IO_BUFFERED};
static const int32_t chunks[] = {0, 1, 7, 32};
static const drey_kv formats[] = {DREY_KV_F16, DREY_KV_Q8_0};
static const drey_sampling samplings[] = {
    {.top_p = 1},
    {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.02f, .seed = 7},
    {.temperature = 3, .top_p = 1, .seed = 5}};

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
    [AXIS_EXIT] = {"exit", 2},
    [AXIS_UNITS] = {"units", COUNT(units)},
    [AXIS_BOUNDARY] = {"boundary", COUNT(boundaries)},
    [AXIS_SHARE] = {"share", COUNT(shares)},
    [AXIS_SIDECAR] = {"sidecar", 2},
    [AXIS_IO] = {"io", COUNT(ways)},
    [AXIS_READS] = {"reads", 2},
    [AXIS_TIER] = {"tier", 0},
    [AXIS_THREADS] = {"threads", 3},
    [AXIS_CHUNK] = {"chunk", COUNT(chunks)},
    [AXIS_CLOCK] = {"clock", 2},
    [AXIS_SESSIONS] = {"sessions", 2},
};

int32_t matrix_values(matrix_axis axis)
{
    int32_t n = axes[axis].n_values;
    while (axis == AXIS_TIER && strcmp(drey_cpu_tiers()[n], "float") != 0)
        n++;
    return n;
}

void matrix_case_random(matrix_case *c, rng *r)
{
    for (int32_t i = 0; i < N_AXES; i++)
        c->at[i] = rng_below(r, matrix_values((matrix_axis)i));
}

void matrix_case_settle(matrix_case *c)
{
    int32_t *at = c->at;
    drey_drafter who = drafters[at[AXIS_DRAFTER]];
    if (who == DREY_DRAFTER_NONE)
        at[AXIS_POLICY] = at[AXIS_WITHOUT] = at[AXIS_LOOKUP] = 0;
    else if (at[AXIS_POLICY] == 0)
        at[AXIS_POLICY] = 5; /* optimal */
    if (at[AXIS_WITHOUT] > N_PARTS)
        at[AXIS_LOOKUP] = 0;
    if (who == DREY_DRAFTER_MEDUSA || who == DREY_DRAFTER_SELF)
        at[AXIS_EXIT] = 0;
    if (who == DREY_DRAFTER_SELF)
        at[AXIS_SIDECAR] = 0; /* it has one with planes */
    if (at[AXIS_UNITS] == 0 || strchr(units[at[AXIS_UNITS]], '='))
        at[AXIS_BOUNDARY] = 0;
    if (at[AXIS_UNITS] > 0)
        at[AXIS_THREADS] = 0; /* units say it */
    if (at[AXIS_SESSIONS])
        at[AXIS_PROMPT] = 0; /* three long ones take long */
}

const char *matrix_case_text(const matrix_case *c)
{
    static char text[1000];
    const int32_t *at = c->at;
    size_t n = (size_t)snprintf(
        text, sizeof text, "drafter %s, policy %s, units %s, tier %s, share %g;",
        drey_drafter_name(drafters[at[AXIS_DRAFTER]]), drey_policy_name(policies[at[AXIS_POLICY]]),
        at[AXIS_UNITS] ? units[at[AXIS_UNITS]] : "none", drey_cpu_tiers()[at[AXIS_TIER]],
        shares[at[AXIS_SHARE]]);
    for (int i = 0; i < N_AXES; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %s %d", axes[i].name, at[i]);
    return text;
}

/* ---- Models ---- */

static struct {
    drey_model *target, *draft;
    char planes[512], packed[512], heads[512];
} models[N_MODELS];
static int32_t prompts[2][N_LONG];
static const int32_t n_prompt[] = {N_SHORT, N_LONG};

static void prepare(const drey_model *m, char *path, const char *name, bool planes)
{
    drey_error err = {0};
    snprintf(path, sizeof models[0].planes, "%s", temp_path(name));
    const drey_prepare_options o = {.model = m, .output = path, .planes = planes};
    must(drey_prepare(&o, NULL, &err), &err);
}

static void open_model(int i, const toy_options *toy)
{
    char name[64];
    toy_options of_draft = *toy;
    snprintf(name, sizeof name, i ? "target-00001-of-00002.gguf" : "target.gguf");
    models[i].target = toy_open(name, toy);
    of_draft.n_parts = 1;
    of_draft.noise = 0.01f; /* right often enough, and wrong often enough */
    of_draft.noise_seed = 3;
    snprintf(name, sizeof name, "draft%d.gguf", i);
    models[i].draft = toy_open(name, &of_draft);
    prepare(models[i].target, models[i].planes, i ? "planes1" : "planes0", true);
    prepare(models[i].target, models[i].packed, i ? "packed1" : "packed0", false);
    heads_file h;
    heads_file_init(&h, models[i].target->file, &models[i].target->shape);
    h.shape.n_heads = 4;
    h.spread = 0.002f; /* they repeat what the target thought a step ago, about */
    snprintf(models[i].heads, sizeof models[i].heads, "%s", temp_path(i ? "heads1" : "heads0"));
    heads_file_write(models[i].heads, &h);
}

void matrix_open(void)
{
    toy_options toy = toy_usual();
    rng r = rng_from(4);
    temp_dir();
    toy.n_embd = toy.n_ff = 256;
    toy.n_vocab = 900;
    toy.n_context = 512;
    toy.architecture = "qwen2";
    toy.type = TOY_TYPE_MIXED;
    open_model(0, &toy);
    toy.architecture = "llama";
    toy.type = TYPE_Q4_K;
    toy.tied = toy.rope_freqs = true;
    toy.n_parts = 2;
    open_model(1, &toy);
    for (int32_t i = 0; i < N_LONG; i++) {
        prompts[1][i] = i < 8 ? 60 + i : prompts[1][i - 8 + rng_below(&r, 8)];
        prompts[0][i] = prompts[1][i];
    }
}

void matrix_close(void)
{
    for (int i = 0; i < N_MODELS; i++) {
        drey_model_close(&models[i].target);
        drey_model_close(&models[i].draft);
    }
    temp_dir_remove();
}

/* Plain decoding for those axes that may change a text, written once each. */
static const writing *wanted(const int32_t *at)
{
    static writing want[N_MODELS][2][COUNT(samplings)][COUNT(formats)];
    writing *w = &want[at[AXIS_MODEL]][at[AXIS_PROMPT]][at[AXIS_SAMPLING]][at[AXIS_KV]];
    int32_t n = n_prompt[at[AXIS_PROMPT]];
    if (w->n_ids > 0)
        return w;
    drey_engine_options o = plain_options(models[at[AXIS_MODEL]].target, n + N_TEXT + 4, 1);
    o.cpu_tier = "ref";
    o.kv = formats[at[AXIS_KV]];
    writing_run(w, &o, -1, prompts[at[AXIS_PROMPT]], (size_t)n, N_TEXT,
                &samplings[at[AXIS_SAMPLING]]);
    must(w->status, &w->error);
    assert_int_equal(w->n_ids, N_TEXT);
    return w;
}

/* ---- A case ---- */

/* One read of eight takes as long as several layers do. */
static int slow_read(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    rng r = rng_from(offset + atomic_fetch_add((_Atomic uint64_t *)user, 1));
    if (rng_below(&r, 8) == 0)
        usleep((useconds_t)rng_below(&r, SLOW_US));
    return 0;
}

/* One layer of three is said to be enough, whatever it would say. */
static bool leaves_here(void *user, int32_t layer, int32_t position)
{
    rng r = rng_from(100 * (uint64_t)position + (uint64_t)layer);
    return rng_below(&r, 3) == 0;
}

static uint64_t parts_left_out(int32_t i)
{
    uint64_t all = ((UINT64_C(1) << N_PARTS) - 1) | DREY_WITHOUT(DREY_PART_LOOKUP);
    return i == 0 ? 0 : i <= N_PARTS ? DREY_WITHOUT(i - 1) : all;
}

static drey_engine_options options_of(const int32_t *at, drey_unit_shares *unit_shares)
{
    drey_drafter who = drafters[at[AXIS_DRAFTER]];
    const int m = at[AXIS_MODEL];
    drey_engine_options o = plain_options(models[m].target, n_prompt[at[AXIS_PROMPT]] + N_TEXT + 4,
                                          1 + at[AXIS_THREADS]);
    o.drafter = who;
    o.draft = who == DREY_DRAFTER_MODEL ? models[m].draft : NULL;
    o.heads = who == DREY_DRAFTER_MEDUSA ? models[m].heads : NULL;
    o.sidecar = who == DREY_DRAFTER_SELF ? models[m].planes
                : at[AXIS_SIDECAR]       ? models[m].packed
                                         : NULL;
    o.policy = policies[at[AXIS_POLICY]];
    o.tree_nodes = who == DREY_DRAFTER_NONE || at[AXIS_CHUNK] == 0 ? 0 : 24;
    o.without = parts_left_out(at[AXIS_WITHOUT]);
    o.with = at[AXIS_LOOKUP] ? DREY_WITH(DREY_PART_LOOKUP) & ~o.without : 0;
    o.exit = at[AXIS_EXIT] ? DREY_EXIT_EXACT : DREY_EXIT_OFF;
    o.io = ways[at[AXIS_IO]];
    o.kv = formats[at[AXIS_KV]];
    o.cpu_tier = drey_cpu_tiers()[at[AXIS_TIER]];
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

/* One session's text, and what its statistics say. */
typedef struct column {
    drey_session *session;
    int32_t ids[N_TEXT], n_ids;
    char text[8 * N_TEXT + 64];
    size_t n_bytes;
    drey_statistics stats;
} column;

static bool keep_id(void *user, int32_t id)
{
    column *c = user;
    assert_true(c->n_ids < N_TEXT);
    c->ids[c->n_ids++] = id;
    return true;
}

static bool keep_text(void *user, const char *bytes, size_t n)
{
    column *c = user;
    assert_true(c->n_bytes + n <= sizeof c->text);
    memcpy(c->text + c->n_bytes, bytes, n);
    c->n_bytes += n;
    return true;
}

static void begin(column *col, drey_engine *e, const int32_t *at)
{
    drey_error err = {0};
    drey_generate_options g;
    *col = (column){.session = NULL};
    drey_generate_options_init(&g);
    g.n_predict = N_TEXT;
    g.ignore_eos = true;
    g.on_token = keep_id;
    g.on_text = keep_text;
    g.user = col;
    g.sampling = samplings[at[AXIS_SAMPLING]];
    must(drey_session_open(&col->session, e, &err), &err);
    must(drey_session_sync(col->session, prompts[at[AXIS_PROMPT]],
                           (size_t)n_prompt[at[AXIS_PROMPT]], NULL, &err),
         &err);
    must(drey_session_begin(col->session, &g, &col->stats, &err), &err);
}

static void compare(const column *got, const writing *want, const matrix_case *c)
{
    for (int32_t i = 0; i < got->n_ids; i++)
        if (got->ids[i] != want->ids[i])
            fail_msg("token %d is %d instead of %d: %s", i, got->ids[i], want->ids[i],
                     matrix_case_text(c));
    if (got->n_ids != want->n_ids || got->n_bytes != want->n_bytes ||
        memcmp(got->text, want->text, want->n_bytes) != 0)
        fail_msg("%d tokens, %zu bytes instead of %d, %zu: %s", got->n_ids, got->n_bytes,
                 want->n_ids, want->n_bytes, matrix_case_text(c));
}

static void add_session(const column *col, const drey_engine_options *o, matrix_totals *total)
{
    drey_speculation s;
    drey_exits x;
    drey_session_speculation(col->session, &s);
    drey_session_exits(col->session, &x);
    assert_false(s.lossy);
    if (o->without & DREY_WITHOUT(DREY_PART_PROVISIONAL))
        assert_int_equal(s.provisional_kept + s.provisional_lost, 0);
    total->accepted += col->stats.accepted;
    total->refused += col->stats.drafted - col->stats.accepted;
    total->provisional += s.provisional_kept + s.provisional_lost;
    total->outside_slice += s.outside_slice;
    total->blended += s.accepted_of_draft + s.accepted_of_text;
    total->left += x.left;
    total->taken_back += x.taken_back;
}

static void add_engine(const drey_engine *e, const matrix_case *c, matrix_totals *total)
{
    drey_unit u;
    for (int32_t i = 0; drey_engine_unit(e, i, &u); i++) {
        total->dense_blocks += (int64_t)u.n_dense_blocks;
        total->tails += (int64_t)u.n_tails;
        total->parts += u.n_groups > 0 && i > 0;
        total->failed_devices += u.failed[0] != 0;
    }
    total->packed += c->at[AXIS_SIDECAR] && e->sidecar.path != NULL;
    total->n_cases++;
}

void matrix_case_run(const matrix_case *c, matrix_totals *total)
{
    static column columns[MOST_SESSIONS];
    static drey_unit_shares unit_shares;
    const writing *want = wanted(c->at);
    double share = shares[c->at[AXIS_SHARE]];
    _Atomic uint64_t n_reads = 0;
    const engine_tuning tuning = {.set_share = share >= 0,
                                  .share = share,
                                  .fault = c->at[AXIS_READS] ? slow_read : NULL,
                                  .fault_user = &n_reads,
                                  .untimed = c->at[AXIS_CLOCK] == 1,
                                  .exit_here = leaves_here,
                                  .slice_ids = SLICE_IDS,
                                  .slice_room = SLICE_ROOM,
                                  .device = &fake_device};
    const drey_engine_options o = options_of(c->at, &unit_shares);
    drey_engine *e = NULL;
    drey_error err = {0};
    if (engine_open(&e, &o, &tuning, &err) != DREY_OK)
        fail_msg("%s: %s", err.message, matrix_case_text(c));
    for (int32_t i = 0; i < o.n_sessions; i++)
        begin(&columns[i], e, c->at);
    for (int32_t n_writing = 1; n_writing > 0;) {
        if (drey_engine_step(e, &n_writing, &err) != DREY_OK)
            fail_msg("%s: %s", err.message, matrix_case_text(c));
        total->shared_passes += n_writing > 1;
    }
    for (int32_t i = 0; i < o.n_sessions; i++) {
        compare(&columns[i], want, c);
        add_session(&columns[i], &o, total);
    }
    bool streams = columns[0].stats.streamed_bytes_per_pass > 0;
    if (streams != (share >= 0))
        fail_msg("streamed %d: %s", streams, matrix_case_text(c));
    total->streamed += streams;
    add_engine(e, c, total);
    for (int32_t i = 0; i < o.n_sessions; i++)
        drey_session_close(&columns[i].session);
    drey_engine_close(&e);
}
