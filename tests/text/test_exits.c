/* Early exits in the engine. What a predictor says is made up here: never, always, or at random, so
 * that passes stop anywhere and what left is right or wrong. Exact exits write the text of plain
 * decoding whatever happens; fast ones one text for any budget, tier, number of threads
 * and disk. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/session.h"
#include "exit/exit_file.h"
#include "support/predictors.h"
#include "support/rng.h"
#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/writing.h"
#include "weights/identity.h"

#ifdef TESTS_SANITIZED
enum { N_TEXT = 14, EVERY = 3 }; /* of the cases */
#else
enum { N_TEXT = 24, EVERY = 1 };
#endif
enum { N_PROMPT = 12, N_LAYERS = 6, SLOW_US = 1000 };

static const int32_t prompt[N_PROMPT] = {72, 101, 108, 108, 111, 32, 116, 104, 101, 32, 116, 104};
static drey_model *target, *draft;
static drey_model *shallow; /* the target's first layers: guesses what its head says behind them */

/* ---- Made up predictors ---- */

typedef struct oracle {
    uint64_t seed;
    double often; /* of the layers at which a token scores */
    int32_t from; /* the first one */
} oracle;

static bool exit_here(void *user, int32_t layer, int32_t position)
{
    const oracle *o = user;
    rng r = rng_from(o->seed + 1000 * (uint64_t)position + (uint64_t)layer);
    return layer >= o->from && rng_unit(&r) < o->often;
}

static oracle oracles[] = {{1, 0, 1}, {2, 1, 1}, {3, 0.3, 1}, {4, 0.6, 4}, {5, 1, N_LAYERS - 1}};
enum { N_ORACLES = sizeof oracles / sizeof *oracles };

/* ---- Models, and a disk that is slow at random ---- */

static int open_models(void **state)
{
    toy_options t = toy_usual();
    temp_dir();
    t.architecture = "qwen2";
    t.n_layers = N_LAYERS;
    target = toy_open("target.gguf", &t);
    t.n_layers = 4;
    shallow = toy_open("shallow.gguf", &t);
    t.n_layers = N_LAYERS;
    t.noise = 0.01f;
    t.noise_seed = 3;
    draft = toy_open("draft.gguf", &t);
    return 0;
}

static int close_models(void **state)
{
    drey_model_close(&target);
    drey_model_close(&draft);
    drey_model_close(&shallow);
    temp_dir_remove();
    return 0;
}

static int slow_read(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    rng r = rng_from(offset + atomic_fetch_add((_Atomic uint64_t *)user, 1));
    if (rng_below(&r, 32) == 0)
        usleep((useconds_t)rng_below(&r, SLOW_US));
    return 0;
}

static drey_engine_options plain(void)
{
    drey_engine_options o = plain_options(target, 96, 1);
    o.cpu_tier = "ref";
    return o;
}

typedef struct guesser {
    drey_drafter drafter;
    drey_policy policy;
} guesser;

static const guesser guessers[] = {
    {DREY_DRAFTER_NONE, DREY_POLICY_NONE},       {DREY_DRAFTER_LOOKUP, DREY_POLICY_SINGLE},
    {DREY_DRAFTER_MODEL, DREY_POLICY_SINGLE},    {DREY_DRAFTER_LOOKUP, DREY_POLICY_OPTIMAL},
    {DREY_DRAFTER_MODEL, DREY_POLICY_OPTIMAL},   {DREY_DRAFTER_MODEL, DREY_POLICY_SEQUENCE},
    {DREY_DRAFTER_MODEL, DREY_POLICY_SPECINFER}, {DREY_DRAFTER_MODEL, DREY_POLICY_LLMCAD},
    {DREY_DRAFTER_MODEL, DREY_POLICY_EDGELLM},   {DREY_DRAFTER_LOOKUP, DREY_POLICY_EDGELLM},
};
enum { N_GUESSERS = sizeof guessers / sizeof *guessers };

/* With the best kernels: against texts of the plain ones. */
static drey_engine_options with_exits(const guesser *g, drey_exit exit)
{
    drey_engine_options o = plain();
    o.cpu_tier = NULL;
    o.drafter = g->drafter;
    o.draft = g->drafter == DREY_DRAFTER_MODEL ? draft : NULL;
    o.policy = g->policy;
    o.exit = exit;
    return o;
}

/* says: NULL: what predictors say that the options name. */
static void write_with(writing *w, const drey_engine_options *o, oracle *says, double share,
                       const drey_sampling *sampling)
{
    _Atomic uint64_t n_reads = 0;
    const engine_tuning tuning = {.set_share = share >= 0,
                                  .share = share,
                                  .fault = slow_read,
                                  .fault_user = &n_reads,
                                  .exit_here = says ? exit_here : NULL,
                                  .exit_user = says};
    writing_run_tuned(w, o, &tuning, prompt, N_PROMPT, N_TEXT, sampling);
    must(w->status, &w->error);
}

static void compare(const writing *want, const writing *got, const char *what)
{
    for (int32_t i = 0; i < want->n_ids && i < got->n_ids; i++)
        if (got->ids[i] != want->ids[i])
            fail_msg("%s: token %d is %d instead of %d", what, i, got->ids[i], want->ids[i]);
    if (got->n_ids != want->n_ids || got->n_bytes != want->n_bytes ||
        memcmp(got->text, want->text, want->n_bytes) != 0)
        fail_msg("%s: %d tokens, %zu bytes instead of %d, %zu", what, got->n_ids, got->n_bytes,
                 want->n_ids, want->n_bytes);
}

static const drey_sampling sampled = {.temperature = 0.8f, .top_p = 1.0f, .seed = 11};
static const double shares[] = {-1, 0.5, 0};

/* ---- Exact ---- */

typedef struct seen {
    int64_t left, taken_back, agreed, n_full;
} seen;

static void check_counts(const drey_exits *c, const oracle *o, seen *all)
{
    int64_t tokens = 0;
    double layers = 0;
    for (int32_t i = 0; i < DREY_EXITS_LAYERS; i++) {
        tokens += c->at_layer[i];
        layers += (double)(c->at_layer[i] * (i + 1));
        if (i + 1 < o->from)
            assert_int_equal(c->at_layer[i], 0);
    }
    assert_int_equal(c->n_layers, N_LAYERS);
    assert_int_equal(tokens, c->tokens);
    assert_int_equal(c->left, tokens - c->at_layer[N_LAYERS - 1]);
    assert_true(c->layers_per_token * (double)tokens - layers < 1e-6 &&
                layers - c->layers_per_token * (double)tokens < 1e-6);
    assert_true(c->compared <= c->left && c->agreed <= c->compared);
    assert_true((c->left > 0) == (o->often > 0));
    assert_true(c->candidates <= c->looks && c->refused == 0);
    all->left += c->left;
    all->taken_back += c->taken_back;
    all->agreed += c->agreed;
    all->n_full += c->n_full;
}

TEST(exact_exits_write_the_targets_text)
{
    static writing want, got;
    seen all = {0};
    int n = 0, n_cases = 0;
    const char *const *tiers = drey_cpu_tiers();
    int n_tiers = 0;
    while (strcmp(tiers[n_tiers], "float") != 0)
        n_tiers++;
    for (int temperature = 0; temperature < 2; temperature++) {
        const drey_sampling *sampling = temperature ? &sampled : NULL;
        drey_engine_options o = plain();
        writing_run(&want, &o, -1, prompt, N_PROMPT, N_TEXT, sampling);
        assert_int_equal(want.status, DREY_OK);
        assert_int_equal(want.exits.tokens, 0);
        for (int g = 0; g < N_GUESSERS; g++)
            for (int i = 0; i < N_ORACLES; i++) {
                if (n_cases++ % EVERY)
                    continue;
                double share = shares[(g + i + temperature) % 3];
                o = with_exits(&guessers[g], DREY_EXIT_EXACT);
                o.n_threads = 1 + n % 2;
                o.cpu_tier = tiers[n % n_tiers];
                o.prompt_chunk = n % 3 ? 5 : 0;
                write_with(&got, &o, &oracles[i], share, sampling);
                char what[120];
                snprintf(what, sizeof what, "%s, %s, oracle %d, share %g, sampled %d",
                         drey_drafter_name(o.drafter), drey_policy_name(o.policy), i, share,
                         temperature);
                compare(&want, &got, what);
                assert_int_equal(got.exits.mode, DREY_EXIT_EXACT);
                check_counts(&got.exits, &oracles[i], &all);
                n++;
            }
    }
    print_message("%d cases: %lld tokens left, %lld agreed, %lld were taken back, by %lld passes\n",
                  n, (long long)all.left, (long long)all.agreed, (long long)all.taken_back,
                  (long long)all.n_full);
    assert_true(all.taken_back > n && all.agreed > n);
}

/* ---- Fast ---- */

TEST(fast_exits_write_one_text)
{
    static writing want, got;
    int64_t left = 0, agreed = 0, compared = 0;
    const char *const *tiers = drey_cpu_tiers();
    int n_tiers = 0, n = 0, n_cases = 0;
    while (strcmp(tiers[n_tiers], "float") != 0)
        n_tiers++;
    for (int g = 0; g < N_GUESSERS; g++)
        for (int i = 1; i < N_ORACLES - 1; i++) {
            if ((n_cases++ + g) % EVERY) /* another oracle for each guesser */
                continue;
            const drey_sampling *sampling = n % 3 == 2 ? &sampled : NULL;
            drey_engine_options o = with_exits(&guessers[g], DREY_EXIT_FAST);
            write_with(&want, &o, &oracles[i], -1, sampling);
            for (int j = 1; j < 3; j++) {
                o.n_threads = 1 + j % 2;
                o.cpu_tier = tiers[(n + j) % n_tiers];
                write_with(&got, &o, &oracles[i], shares[j], sampling);
                char what[120];
                snprintf(what, sizeof what, "%s, %s, oracle %d, share %g, tier %s",
                         drey_drafter_name(o.drafter), drey_policy_name(o.policy), i, shares[j],
                         o.cpu_tier);
                compare(&want, &got, what);
                assert_int_equal(got.exits.left, want.exits.left);
                assert_int_equal(got.exits.agreed, want.exits.agreed);
                assert_int_equal(got.exits.taken_back, 0);
            }
            left += want.exits.left;
            agreed += want.exits.agreed;
            compared += want.exits.compared;
            n++;
        }
    assert_true(left > 0 && agreed > 0 && agreed < compared); /* or it would be exact */
}

/* ---- Predictors that were read from a file ---- */

typedef struct judged {
    exit_source source;
    int32_t first, n_features;
    bool leaves; /* seldom where a path has to leave, or the text knows little */
    guesser by;
} judged;

static const judged files[] = {
    {EXIT_FROM_DRAFT, 2, 16, true, {DREY_DRAFTER_MODEL, DREY_POLICY_SINGLE}},
    {EXIT_FROM_DRAFT, 2, 12, false, {DREY_DRAFTER_MODEL, DREY_POLICY_OPTIMAL}},
    {EXIT_FROM_TEXT, 2, 16, false, {DREY_DRAFTER_LOOKUP, DREY_POLICY_SINGLE}},
    {EXIT_FROM_TARGET, 4, 12, true, {DREY_DRAFTER_NONE, DREY_POLICY_NONE}},
};

static drey_engine_options with_file(const judged *j, const char *path, drey_exit exit)
{
    exit_predictors p;
    make_predictors(&p, N_LAYERS, j->first, j->n_features, 8, 12);
    p.source = j->source;
    p.source_layer = j->source == EXIT_FROM_TARGET ? j->first - 1 : 0;
    for (int32_t layer = j->first; layer < N_LAYERS; layer++)
        p.offline[layer] = true;
    p.drafter_identity = 0;
    if (j->source == EXIT_FROM_DRAFT)
        assert_int_equal(model_identity(shallow->file, &p.drafter_identity, NULL), DREY_OK);
    else
        p.drafter[0] = 0;
    assert_int_equal(exit_write(&p, path, target->file, NULL), DREY_OK);
    exit_close(&p);
    drey_engine_options o = with_exits(&j->by, exit);
    o.draft = o.draft ? shallow : NULL;
    o.exit_file = path;
    o.exit_threshold = 0.02f;
    return o;
}

/* Whoever names the candidates: what looks and scores say depends on no tier, budget, disk or
 * number of threads, so that fast exits write one text, and exact ones the target's. */
TEST(each_source_keeps_the_promise)
{
    static writing plainly, want, got;
    const char *path = temp_path("source");
    const char *const *tiers = drey_cpu_tiers();
    int n_tiers = 0;
    while (strcmp(tiers[n_tiers], "float") != 0)
        n_tiers++;
    drey_engine_options o = plain();
    writing_run(&plainly, &o, -1, prompt, N_PROMPT, N_TEXT, NULL);
    for (int i = 0; i < (int)(sizeof files / sizeof *files); i++) {
        char what[80];
        o = with_file(&files[i], path, DREY_EXIT_FAST);
        write_with(&want, &o, NULL, -1, NULL);
        /* The few tokens that are written under sanitizers leave nothing to look up. */
        assert_true(want.exits.looks > 0 || (files[i].source == EXIT_FROM_TEXT && EVERY > 1));
        assert_true(want.exits.left > 0 || !files[i].leaves);
        for (int n = i % EVERY; n < 2 * n_tiers; n += EVERY) {
            o.exit = n % 2 ? DREY_EXIT_FAST : DREY_EXIT_EXACT;
            o.cpu_tier = tiers[n / 2];
            o.n_threads = 1 + n / 2 % 2;
            write_with(&got, &o, NULL, shares[n % 3], NULL);
            snprintf(what, sizeof what, "file %d, exits %s, tier %s, share %g", i,
                     drey_exit_name(o.exit), o.cpu_tier, shares[n % 3]);
            compare(n % 2 ? &want : &plainly, &got, what);
            if (n % 2)
                assert_memory_equal(got.exits.at_layer, want.exits.at_layer,
                                    sizeof want.exits.at_layer);
        }
    }
}

/* ---- How texts end ---- */

typedef struct text {
    int32_t ids[96], n_ids;
    int32_t refuse_at; /* on_token refuses this one; 0: none */
    char bytes[4096], shown[8192];
    size_t n_bytes, n_verified, n_shown; /* n_verified: told by events */
} text;

static bool keep_id(void *user, int32_t id)
{
    text *t = user;
    t->ids[t->n_ids++] = id;
    return t->n_ids != t->refuse_at;
}

static bool keep_text(void *user, const char *bytes, size_t n)
{
    text *t = user;
    memcpy(t->bytes + t->n_bytes, bytes, n);
    t->n_bytes += n;
    return true;
}

/* Verified text, and the provisional one behind it. */
static void keep_event(void *user, const drey_event *e)
{
    text *t = user;
    if (e->kind == DREY_EVENT_TAKEN_BACK) {
        assert_true(t->n_shown >= t->n_verified + e->n_bytes);
        t->n_shown -= e->n_bytes;
        assert_memory_equal(t->shown + t->n_shown, e->bytes, e->n_bytes);
    } else if (e->kind == DREY_EVENT_PROVISIONAL) {
        memcpy(t->shown + t->n_shown, e->bytes, e->n_bytes);
        t->n_shown += e->n_bytes;
    } else {
        size_t known = t->n_shown - t->n_verified;
        known = known < e->n_bytes ? known : e->n_bytes;
        assert_memory_equal(t->shown + t->n_verified, e->bytes, known);
        memcpy(t->shown + t->n_verified, e->bytes, e->n_bytes);
        t->n_verified += e->n_bytes;
        t->n_shown = t->n_shown > t->n_verified ? t->n_shown : t->n_verified;
    }
}

typedef struct ending {
    int32_t n_predict, refuse_at, n_context;
    const char *stop;
    bool eos;
} ending;

typedef struct kept {
    int32_t tokens[256], n, n_turns, skip; /* of turns behind the first `skip` */
} kept;

static void keep_turn(void *user, const drey_trace_turn *turn)
{
    kept *k = user;
    if (k->n_turns++ < k->skip)
        return;
    int32_t end = k->n + turn->n_written;
    for (int32_t i = 1; i < turn->n_nodes && k->n < end; i++)
        if (turn->nodes[i].accepted)
            k->tokens[k->n++] = turn->nodes[i].token;
    if (k->n < end)
        k->tokens[k->n++] = turn->next;
    assert_int_equal(k->n, end);
}

/* The kept turns are those of the verified text, with an end's token beyond it. The first token may
 * be the prompt's. */
static int32_t check_turns(const drey_session *s, const text *t, int32_t skip)
{
    static kept k;
    k = (kept){.skip = skip};
    drey_session_trace(s, &(drey_trace_visitor){.turn = keep_turn, .user = &k});
    int32_t first = k.n < t->n_ids || k.tokens[0] != t->ids[0];
    int32_t n = t->n_ids > first ? t->n_ids - first : 0;
    assert_true(k.n >= n && k.n <= n + 1);
    assert_memory_equal(k.tokens, t->ids + first, (size_t)n * sizeof *t->ids);
    return k.n_turns;
}

/* Two texts of a session, the second one going on from where the first one ended. */
static void write_twice(text out[2], drey_finish why[2], const drey_engine_options *options,
                        oracle *says, const ending *end)
{
    drey_error err = {0};
    drey_engine *e = NULL;
    drey_session *s = NULL;
    drey_engine_options o = *options;
    drey_statistics statistics;
    const engine_tuning tuning = {.exit_here = says ? exit_here : NULL, .exit_user = says};
    int32_t n_turns = 0;
    o.n_context = end->n_context;
    o.trace_spans = 20000;
    must(engine_open(&e, &o, &tuning, &err), &err);
    must(drey_session_open(&s, e, &err), &err);
    memset(out, 0, 2 * sizeof *out);
    for (int i = 0; i < 2; i++) {
        drey_generate_options g;
        drey_generate_options_init(&g);
        g.n_predict = end->n_predict;
        g.ignore_eos = !end->eos;
        g.stops = &end->stop;
        g.n_stops = end->stop != NULL;
        g.on_token = keep_id;
        g.on_text = keep_text;
        g.on_event = keep_event;
        g.user = &out[i];
        out[i].refuse_at = end->refuse_at;
        drey_status status =
            drey_session_generate(s, prompt, i ? 0 : N_PROMPT, &g, &statistics, &err);
        if (status != DREY_OK && status != DREY_ERR_CONTEXT)
            fail_msg("%s", err.message);
        why[i] = statistics.finish;
        if (status == DREY_OK)
            n_turns = check_turns(s, &out[i], n_turns);
        assert_int_equal(statistics.generated_tokens, out[i].n_ids);
        assert_int_equal(out[i].n_shown, out[i].n_verified);
        assert_int_equal(out[i].n_verified, out[i].n_bytes);
        assert_memory_equal(out[i].shown, out[i].bytes, out[i].n_bytes);
        assert_true(session_is_valid(s) && s->deferred.n == 0);
        assert_int_equal(e->target.weights.pass.hold, -1); /* no read waits for a pass of others */
    }
    drey_session_close(&s);
    drey_engine_close(&e);
}

TEST(texts_end_as_they_would)
{
    static text want[2], got[2];
    static const ending endings[] = {
        {1, 0, 96, NULL, false},  {2, 0, 96, NULL, false},  {7, 0, 96, NULL, false},
        {8, 0, 96, NULL, true},   {9, 0, 96, NULL, false},  {20, 5, 96, NULL, false},
        {20, 0, 17, NULL, false}, {20, 0, 24, NULL, false}, {20, 0, 96, "e", false},
        {30, 0, 96, "a", true},
    };
    int n_cases = 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        drey_finish why[2], why_got[2];
        drey_engine_options o = plain();
        write_twice(want, why, &o, NULL, &endings[i]);
        for (int g = (int)i % EVERY; g < N_GUESSERS; g += EVERY) {
            oracle *says = &oracles[1 + (g + (int)i) % (N_ORACLES - 1)];
            o = with_exits(&guessers[g], DREY_EXIT_EXACT);
            write_twice(got, why_got, &o, says, &endings[i]);
            for (int k = 0; k < 2; k++) {
                assert_int_equal(got[k].n_ids, want[k].n_ids);
                assert_memory_equal(got[k].ids, want[k].ids,
                                    (size_t)want[k].n_ids * sizeof *want[k].ids);
                assert_int_equal(got[k].n_bytes, want[k].n_bytes);
                assert_memory_equal(got[k].bytes, want[k].bytes, want[k].n_bytes);
                assert_int_equal(why_got[k], why[k]);
            }
            if (n_cases++ % EVERY)
                continue;
            o.exit = DREY_EXIT_FAST;
            write_twice(got, why_got, &o, says, &endings[i]);
        }
    }
}

/* ---- Failures, interruptions, company ---- */

typedef struct rig {
    oracle *says;
    drey_engine *engine;
    drey_session *session[3];
    text text[3];
    int32_t n;
    _Atomic int64_t n_reads;
    _Atomic int32_t fails; /* one of so many reads does; 0: none */
} rig;

static int failing_read(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    rig *r = user;
    rng number = rng_from((uint64_t)atomic_fetch_add(&r->n_reads, 1));
    int32_t one_of = atomic_load(&r->fails);
    return one_of && rng_below(&number, one_of) == 0 ? ENODEV : 0;
}

static void open_rig(rig *r, const drey_engine_options *options, oracle *says, int32_t n)
{
    memset(r, 0, sizeof *r);
    r->says = says;
    r->n = n;
    drey_engine_options o = *options;
    o.n_sessions = n;
    const engine_tuning tuning = {.set_share = true,
                                  .fault = failing_read,
                                  .fault_user = r,
                                  .exit_here = says ? exit_here : NULL,
                                  .exit_user = says};
    MUST(engine_open, &r->engine, &o, &tuning);
    for (int32_t i = 0; i < n; i++) {
        drey_generate_options g = greedy(N_TEXT);
        g.on_token = keep_id;
        g.user = &r->text[i];
        if (i % 2)
            g.sampling = sampled;
        MUST(drey_session_open, &r->session[i], r->engine);
        MUST(drey_session_sync, r->session[i], prompt + i, (size_t)(N_PROMPT - i), NULL);
        MUST(drey_session_begin, r->session[i], &g, NULL);
    }
}

static void close_rig(rig *r)
{
    for (int32_t i = 0; i < r->n; i++)
        drey_session_close(&r->session[i]);
    drey_engine_close(&r->engine);
}

static void same_texts(const rig *want, const rig *got)
{
    for (int32_t i = 0; i < want->n; i++) {
        assert_int_equal(got->text[i].n_ids, want->text[i].n_ids);
        assert_memory_equal(got->text[i].ids, want->text[i].ids,
                            (size_t)want->text[i].n_ids * sizeof(int32_t));
    }
}

/* Steps that fail are tried again. */
TEST(failed_reads_change_nothing)
{
    static rig want, got;
    drey_engine_options o = plain();
    open_rig(&want, &o, NULL, 1);
    for (bool done = false; !done;)
        assert_int_equal(drey_session_step(want.session[0], &done, NULL), DREY_OK);
    int n_failed = 0;
    for (int g = 0; g < N_GUESSERS; g += EVERY) {
        o = with_exits(&guessers[g], DREY_EXIT_EXACT);
        open_rig(&got, &o, &oracles[2 + g % 2], 1);
        drey_status status;
        for (bool done = false; !done;) {
            status = drey_session_step(got.session[0], &done, NULL);
            assert_true(status == DREY_OK || status == DREY_ERR_IO);
            assert_true(session_is_valid(got.session[0]));
            n_failed += status != DREY_OK;
            if (got.text[0].n_ids > 0)
                atomic_store(&got.fails, 80);
        }
        same_texts(&want, &got);
        close_rig(&got);
    }
    assert_true(n_failed > 0);
    close_rig(&want);
}

/* What nobody got is gone; the text goes on from what was verified. */
TEST(an_interrupted_text_goes_on)
{
    static rig want, got;
    int32_t n_unverified = 0;
    drey_engine_options o = plain();
    open_rig(&want, &o, NULL, 1);
    for (bool done = false; !done;)
        assert_int_equal(drey_session_step(want.session[0], &done, NULL), DREY_OK);
    for (int g = 0; g < N_GUESSERS; g++)
        for (int n_steps = 4 + g % (3 * EVERY); n_steps < 13; n_steps += 3 * EVERY) {
            drey_generate_options options;
            o = with_exits(&guessers[g], DREY_EXIT_EXACT);
            open_rig(&got, &o, &oracles[1 + n_steps % 3], 1);
            drey_session *s = got.session[0];
            bool done = false;
            for (int i = 0; i < n_steps && !done; i++)
                assert_int_equal(drey_session_step(s, &done, NULL), DREY_OK);
            /* What nobody got cannot be kept. */
            size_t n_verified = N_PROMPT + (size_t)got.text[0].n_ids;
            n_unverified += s->n_timeline - (int32_t)n_verified;
            if (!done)
                assert_int_equal(drey_session_truncate(s, n_verified + 1, NULL), DREY_ERR_USAGE);
            if (g % 2)
                drey_session_end(s);
            else
                assert_int_equal(drey_session_truncate(s, n_verified, NULL), DREY_OK);
            int32_t n_before = got.text[0].n_ids;
            assert_int_equal(s->n_timeline, N_PROMPT + n_before);
            drey_generate_options_init(&options);
            options.n_predict = N_TEXT - n_before;
            options.ignore_eos = true;
            options.on_token = keep_id;
            options.user = &got.text[0];
            if (options.n_predict > 0)
                assert_int_equal(drey_session_generate(s, NULL, 0, &options, NULL, NULL), DREY_OK);
            same_texts(&want, &got);
            close_rig(&got);
        }
    assert_true(n_unverified > 0);
    close_rig(&want);
}

/* Sessions step alone and together by turns. */
TEST(company_completes_what_left)
{
    static rig want, got;
    drey_engine_options o = plain();
    int32_t n_writing = 1, n_cases = 0;
    open_rig(&want, &o, NULL, 3);
    while (n_writing > 0)
        assert_int_equal(drey_engine_step(want.engine, &n_writing, NULL), DREY_OK);
    for (int g = 0; g < N_GUESSERS; g++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            if (n_cases++ % EVERY)
                continue;
            rng r = rng_from(seed);
            o = with_exits(&guessers[g], DREY_EXIT_EXACT);
            open_rig(&got, &o, &oracles[1 + (seed + (uint64_t)g) % 3], 3);
            for (n_writing = 1; n_writing > 0;) {
                bool done;
                int32_t which = rng_below(&r, 5);
                if (which < 3)
                    assert_int_equal(drey_session_step(got.session[which], &done, NULL), DREY_OK);
                else
                    assert_int_equal(drey_engine_step(got.engine, &n_writing, NULL), DREY_OK);
            }
            same_texts(&want, &got);
            close_rig(&got);
        }
    close_rig(&want);
}

/* ---- What does not go together ---- */

static void refuses(drey_engine_options o, const char *why)
{
    drey_engine *e = NULL;
    drey_error err = {0};
    const engine_tuning tuning = {.exit_here = exit_here, .exit_user = &oracles[0]};
    assert_int_not_equal(engine_open(&e, &o, &tuning, &err), DREY_OK);
    if (!strstr(err.message, why))
        fail_msg("\"%s\" instead of \"%s\"", err.message, why);
}

TEST(some_things_do_not_go_together)
{
    drey_engine_options o = with_exits(&guessers[2], DREY_EXIT_FAST);
    o.exit_threshold = 1.5f;
    refuses(o, "a threshold of 1.5 is not possible");
    o = with_exits(&guessers[2], DREY_EXIT_FAST);
    o.policy = DREY_POLICY_BLD;
    refuses(o, "the policy \"bld\" do not go together");
    o = with_exits(&guessers[0], DREY_EXIT_EXACT);
    o.policy = DREY_POLICY_STD;
    refuses(o, "the policy \"std\" do not go together");
    o = with_exits(&(guesser){DREY_DRAFTER_SELF, DREY_POLICY_OPTIMAL}, DREY_EXIT_EXACT);
    refuses(o, "the drafter \"self\" do not go together");
    o = with_exits(&(guesser){DREY_DRAFTER_MEDUSA, DREY_POLICY_OPTIMAL}, DREY_EXIT_EXACT);
    refuses(o, "the drafter \"medusa\" do not go together");
    o = plain();
    o.exit = (drey_exit)3;
    refuses(o, "exit is not one of those");
    for (int i = 0; i <= DREY_EXIT_EXACT; i++) {
        drey_exit found = DREY_EXIT_OFF;
        assert_true(drey_exit_parse(drey_exit_name((drey_exit)i), &found) && (int)found == i);
    }
    assert_null(drey_exit_name(DREY_EXIT_EXACT + 1));
}

/* A file may say that it is this model's, and hold those of another. */
TEST(predictors_of_other_layers_are_refused)
{
    static const int32_t n_layers[] = {N_LAYERS - 1, N_LAYERS, N_LAYERS + 1, EXIT_LAYERS};
    const char *path = temp_path("other.drey-exit");
    for (int i = 0; i < 4; i++) {
        drey_engine *e = NULL;
        drey_error err = {0};
        exit_predictors p;
        make_predictors(&p, n_layers[i], 2, 12, 4, 7);
        p.source = EXIT_FROM_TARGET;
        p.source_layer = 1;
        assert_int_equal(exit_write(&p, path, target->file, &err), DREY_OK);
        exit_close(&p);
        drey_engine_options o = with_exits(&guessers[0], DREY_EXIT_EXACT);
        o.exit_file = path;
        drey_status status = drey_engine_open(&e, &o, &err);
        assert_int_equal(status, n_layers[i] == N_LAYERS ? DREY_OK : DREY_ERR_MISMATCH);
        if (status != DREY_OK && !strstr(err.message, "and this one has 6"))
            fail_msg("%s", err.message);
        assert_true(status == DREY_OK || err.hint == DREY_HINT_EXIT_FILE);
        drey_engine_close(&e);
    }
}

/* Three passes of 100 bytes at most that used 210. */
TEST(the_ceiling_counts_what_passes_read)
{
    assert_int_equal(statistics_pass_bytes(100, true, 210, 3), 70);
    assert_int_equal(statistics_pass_bytes(100, false, 210, 3), 100);
    assert_int_equal(statistics_pass_bytes(100, true, 210, 0), 100);
    assert_int_equal(statistics_pass_bytes(100, true, 400, 3), 100); /* read ahead */
}

static void refuses_guesses(const char *path, const char *says)
{
    drey_engine *e = NULL;
    drey_error err = {0};
    drey_engine_options o = with_exits(&guessers[2], DREY_EXIT_EXACT);
    o.exit_file = path;
    assert_int_equal(drey_engine_open(&e, &o, &err), DREY_ERR_MISMATCH);
    if (!strstr(err.message, says))
        fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    drey_engine_close(&e);
}

/* Drafts that share a name are told apart, and both are named. */
TEST(predictors_know_their_draft)
{
    const char *path = temp_path("draft.drey-exit");
    exit_predictors p;
    uint64_t identity;
    assert_int_equal(model_identity(draft->file, &identity, NULL), DREY_OK);
    const struct {
        uint64_t identity;
        const char *file, *name, *says;
    } cases[] = {
        {identity, "draft.gguf", "toy", NULL},
        {identity + 1, "other.gguf", "toy",
         "guesses of other.gguf (\"toy\"), and draft.gguf (\"toy\") "
         "guesses here; take the former"},
        {identity + 1, "", "",
         "of a draft (a model without a name), and draft.gguf (\"toy\") guesses"},
        {identity + 1, "draft.gguf", "toy", "guesses here, which is another model of that name;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        drey_engine *e = NULL;
        make_predictors(&p, N_LAYERS, 2, 16, 4, 7);
        p.drafter_identity = cases[i].identity;
        snprintf(p.drafter_file, sizeof p.drafter_file, "%s", cases[i].file);
        snprintf(p.drafter, sizeof p.drafter, "%s", cases[i].name);
        MUST(exit_write, &p, path, target->file);
        exit_close(&p);
        if (cases[i].says) {
            refuses_guesses(path, cases[i].says);
            continue;
        }
        drey_engine_options o = with_exits(&guessers[2], DREY_EXIT_EXACT);
        o.exit_file = path;
        MUST(drey_engine_open, &e, &o);
        drey_engine_close(&e);
    }
}

TEST_GROUP(open_models, close_models)
