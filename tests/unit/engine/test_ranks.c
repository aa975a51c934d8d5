/* Several ranks write the text that one machine writes: of any architecture, with and without
 * drafts, greedy and sampled, in texts that are continued and cut, of several sessions; what does
 * not fit is refused, and a rank that fails or falls silent ends the run with its name. Ranks are
 * threads here (support/faults/thread_ranks.h); ranks/cli_ranks.sh has them as processes. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/usual.h"
#include "engine/engine.h"
#include "session/session_probe.h"
#include "support/faults/thread_ranks.h"
#include "support/logit_toys.h"
#include "support/rng.h"
#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/writing.h"

enum { N_CONTEXT = 160, N_TEXT = 24, N_PROMPT = 9, MOST_RANKS = 3 };
static const int32_t prompt[N_PROMPT] = {5, 77, 140, 9, 201, 33, 60, 7, 120};

/* The other ranks, each with its own model of this path. */
typedef struct team {
    drey_ranks *ranks; /* of rank 0 */
    int32_t n;
    const char *path[MOST_RANKS];
    pthread_t thread[MOST_RANKS];
    drey_status status[MOST_RANKS];
} team;

static team the;
static uint64_t budget_of_rank[MOST_RANKS]; /* 0: unlimited */
/* What rank 1 sends is changed by this. */
static thread_ranks_alter_fn *alter_rank_1;

static void *serve(void *which)
{
    int32_t rank = (int32_t)(intptr_t)which;
    drey_ranks *r;
    drey_model *m;
    thread_ranks_be(rank);
    MUST(ranks_open, &r, thread_transport(), 0);
    MUST(drey_model_open, &m, the.path[rank]);
    drey_engine_options o = plain_options(m, N_CONTEXT, 1 + rank % 2);
    if (budget_of_rank[rank])
        o.memory_bytes = budget_of_rank[rank];
    the.status[rank] = drey_ranks_serve(r, &o, NULL);
    drey_ranks_close(&r);
    drey_model_close(&m);
    return NULL;
}

/* What rank 1 sends is changed by this. */
static thread_ranks_alter_fn *alter_rank_1;
/* path: of all others but `other`, whose is that; NULL: none has another. */
static void team_begin(int32_t n, const char *path, int32_t other, const char *other_path,
                       int32_t wait_s)
{
    the = (team){.n = n};
    thread_ranks_begin(n);
    thread_ranks_be(0);
    MUST(ranks_open, &the.ranks, thread_transport(), wait_s);
    thread_ranks_alter(1, alter_rank_1);
    for (int32_t i = 1; i < n; i++) {
        the.path[i] = i == other ? other_path : path;
        assert_int_equal(pthread_create(&the.thread[i], NULL, serve, (void *)(intptr_t)i), 0);
    }
}

static void team_end(void)
{
    drey_ranks_close(&the.ranks);
    for (int32_t i = 1; i < the.n; i++)
        pthread_join(the.thread[i], NULL);
}

/* Of compare; NULL: layers go where there is room. */
static const drey_more_options *division;

/* The text of n ranks is that of one. */
static void compare(const drey_engine_options *o, int32_t n, const char *path,
                    const drey_sampling *sampling, const char *what)
{
    static writing want, got;
    const engine_tuning half = {.set_share = true, .share = 0.5};
    drey_engine_options shared = *o;
    writing_run_tuned(&want, o, NULL, prompt, N_PROMPT, N_TEXT, sampling);
    must(want.status, &want.error);
    team_begin(n, path, 0, NULL, 0);
    shared.ranks = the.ranks;
    shared.more = division;
    if (budget_of_rank[0])
        shared.memory_bytes = budget_of_rank[0];
    writing_run_tuned(&got, &shared, n % 2 ? &half : NULL, prompt, N_PROMPT, N_TEXT, sampling);
    must(got.status, &got.error);
    int32_t next = 0;
    drey_rank_info info;
    for (int32_t i = 0; drey_ranks_describe(the.ranks, i, &info); i++) {
        assert_int_equal(info.first_layer, next);
        assert_true(info.n_layers > 0 || (i == 0 && division));
        assert_true(info.streamed_bytes_per_pass > 0 || budget_of_rank[0] == 0);
        assert_true(info.pinned_bytes + info.streamed_bytes_per_pass > 0);
        next += info.n_layers;
    }
    assert_int_equal(next, o->target->shape.n_layers);
    assert_true(the.ranks->away.idle_ns > 0); /* messages take time, and computing does not count */
    team_end();
    for (int32_t i = 1; i < n; i++)
        assert_int_equal(the.status[i], DREY_OK);
    must_be_same(&want, &got, what);
}

static const char *target_path(void)
{
    static char path[2048];
    snprintf(path, sizeof path, "%s", temp_path("target.gguf"));
    return path;
}

static toy_options usual_toy(void)
{
    toy_options toy = toy_usual();
    toy.n_layers = 5;
    return toy;
}

static drey_model *usual_target(void)
{
    temp_dir();
    const toy_options toy = usual_toy();
    return toy_open("target.gguf", &toy);
}

TEST(every_architecture)
{
    for (int i = 0; i < FIRST_T5_TOY; i++) {
        toy_options toy;
        temp_dir();
        const char *name = arch_toy(i, &toy);
        drey_model *m = toy_open("target.gguf", &toy);
        const drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        compare(&o, toy.n_layers > 2 && i % 2 ? 3 : 2, target_path(), NULL, name);
        drey_model_close(&m);
    }
}

TEST(tied_embeddings_sidecars_and_small_caches)
{
    for (int i = 0; i < 4; i++) {
        toy_options toy = usual_toy();
        toy.tied = i % 2;
        toy.head_dim = 32;
        temp_dir();
        drey_model *m = toy_open("target.gguf", &toy);
        drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        o.kv = i == 1 ? DREY_KV_Q8_0 : DREY_KV_F16;
        if (i >= 2)
            toy_prepare(m, NULL, false);
        compare(&o, 2 + i % 2, target_path(), NULL, "another text");
        drey_model_close(&m);
    }
}

/* A draft that is right often, so that trees are accepted in part. */
static drey_model *make_draft(void)
{
    toy_options toy = usual_toy();
    toy.noise = 0.005f;
    toy.noise_seed = 3;
    return toy_open("draft.gguf", &toy);
}

TEST(drafts)
{
    static const drey_policy policies[] = {DREY_POLICY_AUTO, DREY_POLICY_SPECINFER,
                                           DREY_POLICY_SEQUENCE, DREY_POLICY_EDGELLM,
                                           DREY_POLICY_STATIC};
    drey_model *m = usual_target(), *draft = make_draft();
    drey_sampling sampling = {.temperature = 0.8f, .seed = 11};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        o.policy = policies[i];
        o.draft = draft;
        o.drafter = DREY_DRAFTER_MODEL;
        o.prompt_chunk = i % 2 ? 4 : 0;
        compare(&o, 2 + (int32_t)i % 2, target_path(), i % 2 ? NULL : &sampling,
                drey_policy_name(policies[i]));
    }
    drey_engine_options o = plain_options(m, N_CONTEXT, 2);
    o.policy = DREY_POLICY_AUTO;
    o.drafter = DREY_DRAFTER_LOOKUP;
    compare(&o, 3, target_path(), NULL, "lookup");
    drey_model_close(&m);
    drey_model_close(&draft);
}

typedef struct stopper {
    writing *text;
    drey_session *session;
    int32_t at;
} stopper;

static bool stop_there(void *user, int32_t id)
{
    stopper *s = user;
    writing_keep_id(s->text, id);
    if (s->text->n_ids == s->at)
        drey_session_cancel(s->session);
    return true;
}

/* A text, cancelled, continued, cut and written again. */
static void write_in_parts(const drey_engine_options *o, writing *first, writing *second)
{
    drey_session *s = open_alone(o, NULL);
    drey_error err;
    stopper stop = {.text = first, .session = s, .at = 7};
    drey_generate_options g = greedy(N_TEXT);
    g.on_token = stop_there;
    g.user = &stop;
    drey_status status = drey_session_generate(s, prompt, N_PROMPT, &g, NULL, &err);
    assert_true(status == DREY_OK || status == DREY_ERR_CANCELLED);
    stop.at = 0;
    g.n_predict = N_TEXT - first->n_ids;
    must(drey_session_generate(s, NULL, 0, &g, NULL, &err), &err);
    size_t n_kept;
    MUST(drey_session_sync, s, prompt, N_PROMPT - 3, &n_kept);
    writing_go_on(second, s, NULL, 0, N_TEXT, NULL);
    close_alone(&s);
}

TEST(texts_in_parts)
{
    static writing want[2], got[2];
    drey_model *m = usual_target(), *draft = make_draft();
    drey_engine_options o = plain_options(m, N_CONTEXT, 2);
    o.policy = DREY_POLICY_AUTO;
    o.draft = draft;
    o.drafter = DREY_DRAFTER_MODEL;
    memset(want, 0, sizeof want);
    memset(got, 0, sizeof got);
    write_in_parts(&o, &want[0], &want[1]);
    team_begin(3, target_path(), 0, NULL, 0);
    o.ranks = the.ranks;
    write_in_parts(&o, &got[0], &got[1]);
    team_end();
    must_be_same_ids(&want[0], &got[0], "cancelled and continued");
    must_be_same_ids(&want[1], &got[1], "cut and written again");
    drey_model_close(&m);
    drey_model_close(&draft);
}

static drey_engine_options with_ranks(drey_engine_options o)
{
    o.ranks = the.ranks;
    return o;
}

/* ---- Several sessions ---- */

enum { N_SESSIONS = 3, N_TEXTS = 6, N_LONG = 40, N_SAME = 36 };
static const int32_t n_predict_of[N_TEXTS] = {40, 8, 24, 16, 10, 20};

/* Even ones begin alike, and so do odd ones: rows are copied from cache to cache. */
static void long_prompt(int32_t which, int32_t *ids)
{
    rng r = rng_from((uint64_t)(which % 2));
    for (int32_t i = 0; i < N_LONG; i++)
        ids[i] = i < N_SAME ? 1 + rng_below(&r, 250) : 10 + which + i;
}

static void begin_text(drey_session *s, int32_t which, writing *texts)
{
    int32_t ids[N_LONG];
    drey_generate_options g = writing_into(&texts[which], n_predict_of[which]);
    long_prompt(which, ids);
    texts[which] = (writing){.n_ids = 0};
    MUST(drey_session_sync, s, ids, N_LONG, NULL);
    MUST(drey_session_begin, s, &g, &texts[which].stats);
}

static void step_all(engine_place *p, int32_t most)
{
    int32_t n_writing = 1;
    for (int32_t i = 0; i < most && n_writing > 0; i++)
        MUST(drey_engine_step, p->engine, &n_writing);
}

/* Each alone, on one machine. */
static void write_alone(const drey_engine_options *o, writing *texts)
{
    for (int32_t i = 0; i < N_TEXTS; i++) {
        int32_t ids[N_LONG];
        long_prompt(i, ids);
        writing_run_tuned(&texts[i], o, NULL, ids, N_LONG, n_predict_of[i], NULL);
        must(texts[i].status, &texts[i].error);
    }
}

/* One that was ended early has the beginning. */
static void compare_texts(writing *want, const writing *got, uint32_t ended)
{
    char what[40];
    for (int32_t i = 0; i < N_TEXTS; i++) {
        writing *w = &want[i];
        const int32_t n_all = w->n_ids;
        snprintf(what, sizeof what, "text %d of several", i);
        if (ended >> i & 1 && got[i].n_ids < n_all)
            w->n_ids = got[i].n_ids;
        must_be_same_ids(w, &got[i], what);
        w->n_ids = n_all;
    }
}

/* Texts begin and end at different times; one is cancelled, another one's session is closed, and
 * the rows of caches that take no part in the next pass are copied. */
static void write_in_turns(const drey_engine_options *o, writing *texts)
{
    engine_place p = place_open(o, NULL);
    begin_text(p.session[0], 0, texts);
    step_all(&p, 3);
    begin_text(p.session[1], 1, texts);
    step_all(&p, 2);
    begin_text(p.session[2], 2, texts);
    step_all(&p, 3);
    drey_session_cancel(p.session[2]);
    step_all(&p, 1);
    begin_text(p.session[2], 3, texts);
    step_all(&p, 2);
    drey_session_close(&p.session[1]);
    MUST(drey_session_open, &p.session[1], p.engine);
    begin_text(p.session[1], 4, texts);
    step_all(&p, INT32_MAX);
    begin_text(p.session[2], 5, texts);
    step_all(&p, INT32_MAX);
    place_close(&p);
    assert_true(texts[2].stats.copied_tokens > 0 && texts[4].stats.copied_tokens > 0);
    assert_true(texts[5].stats.cached_tokens >= N_SAME);
}

TEST(several_sessions)
{
    static writing want[N_TEXTS], got[N_TEXTS];
    drey_model *m = usual_target(), *draft = make_draft();
    for (int32_t i = 0; i < 4; i++) {
        drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        if (i % 2) {
            o.policy = DREY_POLICY_AUTO;
            o.draft = draft;
            o.drafter = DREY_DRAFTER_MODEL;
        }
        write_alone(&o, want);
        team_begin(2 + i / 2, target_path(), 0, NULL, 0);
        o = with_ranks(o);
        o.n_sessions = N_SESSIONS;
        write_in_turns(&o, got);
        team_end();
        compare_texts(want, got, 1u << 1 | 1u << 2);
    }
    drey_model_close(&m);
    drey_model_close(&draft);
}

/* Cancels a session in the middle of a pass: when rank 0 reads its layers, or when rank 1 sends the
 * rows back. */
static struct {
    drey_session *_Atomic session;
    _Atomic int32_t n_left;
} to_cancel;

static void count_down(void)
{
    drey_session *s = to_cancel.session;
    if (s && to_cancel.n_left-- == 0)
        drey_session_cancel(s);
}

static int cancel_reading(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    (void)user;
    (void)part;
    (void)offset;
    (void)n_bytes;
    count_down();
    return 0;
}

static void cancel_sending(uint8_t *bytes, size_t n)
{
    (void)n;
    if (((const ranks_head *)(const void *)bytes)->kind == RANKS_ROWS)
        count_down();
}

static void write_and_cancel(const drey_engine_options *o, int32_t at, writing *texts)
{
    const engine_tuning half = {
        .set_share = true, .share = 0.5, .fault = alter_rank_1 ? NULL : cancel_reading};
    engine_place p = place_open(o, &half);
    begin_text(p.session[0], 0, texts);
    begin_text(p.session[1], 1, texts);
    step_all(&p, 3);
    to_cancel.n_left = at;
    to_cancel.session = p.session[1];
    begin_text(p.session[2], 2, texts);
    step_all(&p, 3 + at);
    to_cancel.session = NULL;
    begin_text(p.session[1], 3, texts);
    step_all(&p, INT32_MAX);
    begin_text(p.session[0], 4, texts);
    begin_text(p.session[1], 5, texts);
    step_all(&p, INT32_MAX);
    place_close(&p);
}

TEST(a_session_leaves_in_the_middle_of_a_pass)
{
    static writing want[N_TEXTS], got[N_TEXTS];
    drey_model *m = usual_target();
    drey_engine_options o = plain_options(m, N_CONTEXT, 2), several;
    write_alone(&o, want);
    for (int32_t at = 0; at < 8; at++) {
        alter_rank_1 = at % 2 ? cancel_sending : NULL;
        team_begin(2, target_path(), 0, NULL, 0);
        several = with_ranks(o);
        several.n_sessions = N_SESSIONS;
        write_and_cancel(&several, at, got);
        team_end();
        alter_rank_1 = NULL;
        compare_texts(want, got, 1u << 1);
    }
    drey_model_close(&m);
}

/* Rank 0's messages are changed, so that rank 1 cannot follow. */
static int32_t wrong_member;

static void change_rows(uint8_t *bytes, size_t n)
{
    const ranks_head *h = (const ranks_head *)(const void *)bytes;
    ranks_rows *rows = (ranks_rows *)(void *)(bytes + sizeof *h);
    ranks_cache *cache = (ranks_cache *)(void *)(rows + 1);
    static const int32_t wrong[] = {-1, 0x7fffffff, (int32_t)0x80000000};
    int32_t *const members[] = {&rows->n_rows,   &rows->n_embd,      &rows->n_caches,
                                &rows->n_copies, &cache->slot,       &cache->n_rows,
                                &cache->n_path,  &cache->n_committed};
    if (h->kind == RANKS_ROWS && n > sizeof *h + sizeof *rows + sizeof *cache)
        *members[wrong_member / 3] = wrong[wrong_member % 3];
}

TEST(wrong_rows_are_refused)
{
    drey_model *m = usual_target();
    for (wrong_member = 0; wrong_member < 24; wrong_member++) {
        team_begin(2, target_path(), 0, NULL, 0);
        drey_engine_options o = with_ranks(plain_options(m, N_CONTEXT, 1));
        drey_session *s = open_alone(&o, NULL);
        const drey_generate_options g = greedy(4);
        thread_ranks_alter(0, change_rows);
        REFUSED(DREY_ERR_IO, "rank 1 (host1): it", drey_session_generate, s, prompt, N_PROMPT, &g,
                NULL);
        close_alone(&s);
        team_end();
    }
    drey_model_close(&m);
}

/* Rows that rank 1 has sent back. */
static int32_t n_back;

static void count_rows_back(uint8_t *bytes, size_t n)
{
    (void)n;
    n_back += ((const ranks_head *)(const void *)bytes)->kind == RANKS_ROWS;
}

/* The first pass of a prompt of several. */
static void change_first_rows(uint8_t *bytes, size_t n)
{
    ranks_head *h = (ranks_head *)(void *)bytes;
    if (h->kind == RANKS_ROWS && h->pass == 1)
        change_rows(bytes, n);
}

/* Only the last pass of a prompt has to come back; a failure of the others is reported then. */
TEST(passes_of_a_prompt_do_not_wait)
{
    enum { CHUNK = 2 };
    drey_model *m = usual_target();
    drey_engine_options o = plain_options(m, N_CONTEXT, 1);
    static writing whole, parts;
    int32_t back[2];
    for (int32_t i = 0; i < 2; i++) {
        o.prompt_chunk = i ? CHUNK : N_PROMPT;
        n_back = 0;
        alter_rank_1 = count_rows_back;
        team_begin(2, target_path(), 0, NULL, 0);
        const drey_engine_options shared = with_ranks(o);
        writing_run_tuned(i ? &parts : &whole, &shared, NULL, prompt, N_PROMPT, N_TEXT, NULL);
        team_end();
        alter_rank_1 = NULL;
        back[i] = n_back;
    }
    must(parts.status, &parts.error);
    must_be_same(&whole, &parts, "a prompt in several passes");
    assert_int_equal(back[0], back[1]);
    assert_true(back[0] > 0);
    team_begin(2, target_path(), 0, NULL, 0);
    const drey_engine_options shared = with_ranks(o);
    wrong_member = 0;
    thread_ranks_alter(0, change_first_rows);
    writing_run_tuned(&parts, &shared, NULL, prompt, N_PROMPT, N_TEXT, NULL);
    team_end();
    assert_int_equal(parts.status, DREY_ERR_IO);
    assert_non_null(strstr(parts.error.message, "rank 1 (host1): it does not understand"));
    drey_model_close(&m);
}

TEST(what_does_not_fit_is_refused)
{
    drey_model *m = usual_target();
    drey_engine_options o;
    const drey_prefix_options prefixes = {.memory_bytes = 1 << 24};
    team_begin(1, NULL, 0, NULL, 0);
    o = with_ranks(plain_options(m, N_CONTEXT, 1));
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "one rank computes all");
    o.exit = DREY_EXIT_FAST;
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "early exits");
    o = with_ranks(plain_options(m, N_CONTEXT, 1));
    o.prefixes = &prefixes;
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "prefixes");
    o = with_ranks(plain_options(m, N_CONTEXT, 1));
    o.units = "cpu";
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "units");
    o = with_ranks(plain_options(m, N_CONTEXT, 1));
    o.drafter = DREY_DRAFTER_SELF;
    o.policy = DREY_POLICY_AUTO;
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "needs all layers");
    team_end();
    drey_model_close(&m);
}

TEST(another_model_is_refused)
{
    drey_model *m = usual_target();
    toy_options toy = usual_toy();
    toy.seed++;
    toy_write(temp_path("other.gguf"), &toy);
    char other[2048];
    snprintf(other, sizeof other, "%s", temp_path("other.gguf"));
    team_begin(3, target_path(), 2, other, 0);
    drey_engine_options o = plain_options(m, N_CONTEXT, 1);
    o.ranks = the.ranks;
    must_refuse_engine(&o, NULL, DREY_ERR_MISMATCH, "rank 2 (host2) has another model");
    team_end();
    drey_model_close(&m);
}

static void other_byte_order(uint8_t *bytes, size_t n)
{
    ranks_head *h = (ranks_head *)(void *)bytes;
    assert_true(n >= sizeof *h);
    h->byte_order = __builtin_bswap32(h->byte_order);
    h->protocol = __builtin_bswap32(h->protocol);
    h->n_bytes = __builtin_bswap64(h->n_bytes);
}

static void other_protocol(uint8_t *bytes, size_t n)
{
    (void)n;
    ((ranks_head *)(void *)bytes)->protocol++;
}

static void other_version(uint8_t *bytes, size_t n)
{
    const ranks_head *h = (const ranks_head *)(const void *)bytes;
    ranks_hello *hello = (ranks_hello *)(void *)(bytes + sizeof *h);
    if (h->kind == RANKS_HELLO && n == sizeof *h + sizeof *hello)
        snprintf(hello->version, sizeof hello->version, "0.0.7");
}

static void other_program(uint8_t *bytes, size_t n)
{
    memset(bytes, 'x', n < 8 ? n : 8);
}

static void longer_than_it_is(uint8_t *bytes, size_t n)
{
    (void)n;
    ((ranks_head *)(void *)bytes)->n_bytes++;
}

static void joins_at_once(uint8_t *bytes, size_t n)
{
    (void)n;
    ((ranks_head *)(void *)bytes)->kind = RANKS_READY;
}

/* Before anything is computed; a rank that does not understand what rank 0 sends ends by itself. */
TEST(other_programs_and_machines_are_refused)
{
    static const struct {
        thread_ranks_alter_fn *alter;
        const char *message;
    } table[] = {
        {other_byte_order, "rank 1 has the other byte order"},
        {other_protocol, "rank 1 has another version of drey: install the same"},
        {longer_than_it_is, "rank 1 has another version of drey: install the same"},
        {other_version, "rank 1 (host1) has drey 0.0.7, this is "},
        {other_program, "rank 1 is no drey"},
        {joins_at_once, "rank 1 does not begin as ranks do"},
    };
    drey_model *m = usual_target();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        alter_rank_1 = table[i].alter;
        team_begin(2, target_path(), 0, NULL, 0);
        drey_engine_options o = plain_options(m, N_CONTEXT, 1);
        o.ranks = the.ranks;
        must_refuse_engine(&o, NULL, DREY_ERR_MISMATCH, table[i].message);
        team_end();
        alter_rank_1 = NULL;
    }
    drey_model_close(&m);
}

/* A file that changes is noticed at the end of a pass. */
static void touch(const char *path)
{
    FILE *f = fopen(path, "ab");
    assert_non_null(f);
    fputc(0, f);
    fclose(f);
}

TEST(a_rank_that_cannot_read_is_named)
{
    drey_model *m = usual_target();
    const toy_options toy = usual_toy();
    char own[2048];
    snprintf(own, sizeof own, "%s", temp_path("own.gguf"));
    toy_write(own, &toy);
    team_begin(3, target_path(), 1, own, 0);
    drey_engine_options o = plain_options(m, N_CONTEXT, 1);
    o.ranks = the.ranks;
    drey_session *s = open_alone(&o, NULL);
    const drey_generate_options g = greedy(4);
    MUST(drey_engine_check, probe_engine(s));
    touch(own);
    REFUSED(DREY_ERR_IO, "rank 1 (host1): ", drey_session_generate, s, prompt, N_PROMPT, &g, NULL);
    REFUSED(DREY_ERR_IO, "rank 1 (host1): ", drey_engine_check, probe_engine(s));
    REFUSED(DREY_ERR_UNSUPPORTED, "cannot be saved", drey_session_save, s, temp_path("s"), NULL, 0);
    close_alone(&s);
    team_end();
    drey_model_close(&m);
}

TEST(a_silent_rank_ends_the_run)
{
    drey_model *m = usual_target();
    team_begin(3, target_path(), 0, NULL, 0);
    drey_engine_options o = plain_options(m, N_CONTEXT, 1);
    o.ranks = the.ranks;
    drey_session *s = open_alone(&o, NULL);
    const drey_generate_options g = greedy(4);
    thread_ranks_silence(2);
    the.ranks->wait_ns = 50 * 1000 * 1000; /* rank 1 has a layer or two to compute */
    REFUSED(DREY_ERR_IO, "has said nothing for 0 seconds", drey_session_generate, s, prompt,
            N_PROMPT, &g, NULL);
    close_alone(&s);
    team_end();
    assert_true(thread_ranks_ended() > 0);
    drey_model_close(&m);
}

static drey_more_options divided(const int32_t *layers, int32_t n)
{
    return (drey_more_options){.rank_layers = layers, .n_rank_layers = (uint64_t)n};
}

/* Rank 0 without layers has the head, the embedding, which may be the same, and the draft. */
TEST(layers_as_the_options_say)
{
    static const struct {
        int32_t layers[MOST_RANKS], n;
        drey_drafter drafter;
        bool tied, prepared;
    } table[] = {
        {{0, 5}, 2, DREY_DRAFTER_MODEL, false, false},
        {{0, 5}, 2, DREY_DRAFTER_NONE, true, false},
        {{0, 2, 3}, 3, DREY_DRAFTER_MODEL, true, true},
        {{0, 4, 1}, 3, DREY_DRAFTER_NONE, false, true},
        {{4, 1}, 2, DREY_DRAFTER_LOOKUP, false, false},
        {{0, 1, 4}, 3, DREY_DRAFTER_LOOKUP, true, true},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        toy_options toy = usual_toy();
        toy.tied = table[i].tied;
        temp_dir();
        drey_model *m = toy_open("target.gguf", &toy), *draft = make_draft();
        drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        o.drafter = table[i].drafter;
        o.draft = o.drafter == DREY_DRAFTER_MODEL ? draft : NULL;
        o.policy = o.drafter == DREY_DRAFTER_NONE ? DREY_POLICY_NONE : DREY_POLICY_AUTO;
        if (table[i].prepared)
            toy_prepare(m, NULL, false);
        const drey_more_options more = divided(table[i].layers, table[i].n);
        division = &more;
        compare(&o, table[i].n, target_path(), NULL, "layers as the options say");
        division = NULL;
        drey_model_close(&m);
        drey_model_close(&draft);
    }
}

/* Also with a rank whose layers have no experts, and sidecars. */
TEST(every_mixture)
{
    static const int32_t layers[][MOST_RANKS] = {{1, 3}, {1, 1, 2}, {0, 4}, {0, 1, 3}};
    for (int i = 0; i < N_EXPERT_TOYS; i++) {
        toy_options toy;
        temp_dir();
        const char *name = expert_toy(i, &toy);
        toy.n_layers = 4;
        toy.tied = i % 5 == 4;
        drey_model *m = toy_open("target.gguf", &toy);
        drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        o.drafter = i % 3 ? DREY_DRAFTER_LOOKUP : DREY_DRAFTER_NONE;
        o.policy = i % 3 ? DREY_POLICY_AUTO : DREY_POLICY_NONE;
        if (i % 3 == 2)
            toy_prepare(m, NULL, false);
        const drey_more_options more = divided(layers[i % 4], 2 + i % 2);
        division = toy.experts.n_dense || i > 3 ? &more : NULL;
        compare(&o, 2 + i % 2, target_path(), NULL, name);
        division = NULL;
        drey_model_close(&m);
    }
}

/* What each rank needs for these layers, and two experts more in what MPI would take. */
static void little_memory(const drey_engine_options *o, const int32_t *layers)
{
    drey_engine_options divided_so = *o;
    const drey_more_options more = divided(layers, MOST_RANKS);
    drey_rank_machine machines[MOST_RANKS];
    drey_rank_plan plans[MOST_RANKS];
    for (int32_t i = 0; i < MOST_RANKS; i++)
        machines[i] = (drey_rank_machine){.host = "any", .memory_bytes = UINT64_C(1) << 40};
    divided_so.more = &more;
    MUST(drey_ranks_plan, &divided_so, NULL, machines, MOST_RANKS, plans);
    for (int32_t i = 0; i < MOST_RANKS; i++) {
        budget_of_rank[i] = plans[i].plan.smallest_budget_bytes;
        machines[i].memory_bytes = budget_of_rank[i] + RANKS_MPI_BYTES;
    }
    MUST(drey_ranks_plan, o, NULL, machines, MOST_RANKS, plans);
    for (int32_t i = 0; i < MOST_RANKS; i++) {
        const drey_plan *plan = &plans[i].plan;
        assert_true(plan->expert_slots >= plan->expert_layers * plan->experts_used);
        assert_true(plan->expert_slots < plan->n_experts && plan->streamed_bytes_per_pass > 0);
    }
}

/* Experts of 3 MB. */
TEST(mixtures_larger_than_memory)
{
    static const int32_t layers[MOST_RANKS] = {1, 2, 1};
    static const drey_drafter drafters[] = {DREY_DRAFTER_NONE, DREY_DRAFTER_LOOKUP,
                                            DREY_DRAFTER_MODEL};
    toy_options toy;
    temp_dir();
    expert_toy(0, &toy);
    toy.n_layers = 4;
    toy.type = TYPE_F16;
    toy.experts.n_ff = 2048;
    drey_model *m = toy_open("target.gguf", &toy), *draft = make_draft();
    for (size_t i = 0; i < sizeof drafters / sizeof *drafters; i++) {
        drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        o.drafter = drafters[i];
        o.draft = o.drafter == DREY_DRAFTER_MODEL ? draft : NULL;
        o.policy = i ? DREY_POLICY_AUTO : DREY_POLICY_NONE;
        little_memory(&o, layers);
        compare(&o, MOST_RANKS, target_path(), NULL, drey_drafter_name(drafters[i]));
    }
    memset(budget_of_rank, 0, sizeof budget_of_rank);
    drey_model_close(&m);
    drey_model_close(&draft);
}

TEST(layers_that_cannot_be_divided_so)
{
    static const struct {
        int32_t layers[4], n;
        const char *message;
    } table[] = {
        {{2, 2, 1, 0}, 4, "the layers of 4 ranks are given, and there are 3"},
        {{5, 0}, 2, "the layers of 2 ranks are given, and there are 3"},
        {{0, 2, 2}, 3, "the ranks' layers are 4 together, and the model has 5"},
        {{INT32_MAX, INT32_MAX, 7}, 3, "the ranks' layers are 4294967301 together"},
        {{-1, 3, 3}, 3, "rank 0 cannot have -1 layers"},
        {{0, 5, 0}, 3, "rank 2 cannot have 0 layers: rank 0 has 0 or more, each other one 1 or"},
    };
    drey_model *m = usual_target();
    drey_engine_options o = plain_options(m, N_CONTEXT, 1);
    drey_rank_machine machines[3] = {{.host = "one", .memory_bytes = 1 << 30},
                                     {.host = "two", .memory_bytes = 1 << 30},
                                     {.host = "three", .memory_bytes = 1 << 30}};
    drey_rank_plan plans[3];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const drey_more_options more = divided(table[i].layers, table[i].n);
        o.more = &more;
        REFUSED(DREY_ERR_USAGE, table[i].message, drey_ranks_plan, &o, NULL, machines, 3, plans);
    }
    const drey_more_options one = divided(table[0].layers, 1), none = divided(table[0].layers, 0);
    o.more = &one;
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "this is one process: start several with mpirun");
    o.more = &none;
    REFUSED(DREY_ERR_USAGE, "0 numbers of layers are not possible", drey_ranks_plan, &o, NULL,
            machines, 3, plans);
    drey_model_close(&m);
}

enum { LONG = 160000 };

/* Layers consist of their caches here, so that a budget decides how many there may be. */
static uint64_t long_layer(const drey_engine_options *alone)
{
    drey_plan plan;
    MUST(drey_plan_make, alone, NULL, &plan);
    return plan.kv_bytes / (uint64_t)alone->target->shape.n_layers;
}

/* With almost no memory, rank 0 has room for no layer, but without one it works. */
TEST(no_layer_needs_the_least_memory)
{
    static const int32_t none[] = {0, 5}, one[] = {1, 4};
    const drey_more_options without = divided(none, 2), with = divided(one, 2);
    drey_model *m = usual_target();
    drey_engine_options o = plain_options(m, LONG, 1);
    ranks_hello hello;
    MUST(engine_rank_hello, &o, &hello);
    drey_rank_machine machines[2] = {{.host = "here", .disk_bytes_per_s = 1e6},
                                     {.host = "there", .memory_bytes = 1 << 30}};
    drey_rank_plan plans[2];
    const drey_speeds speeds = {.memory_bytes_per_s = 1e9, .one_ops_per_s = 1e9};
    machines[0].memory_bytes = hello.fixed_bytes + long_layer(&o) / 2 + RANKS_MPI_BYTES;
    o.more = &with;
    REFUSED(DREY_ERR_MEMORY, "rank 0 (here): ", drey_ranks_plan, &o, NULL, machines, 2, plans);
    o.more = &without;
    MUST(drey_ranks_plan, &o, &speeds, machines, 2, plans);
    assert_int_equal(plans[0].rank.n_layers, 0);
    assert_int_equal(plans[1].rank.n_layers, 5);
    assert_true(plans[0].plan.pinned_bytes > 0 && plans[0].plan.alone_pass_s > 0);
    team_begin(2, target_path(), 0, NULL, 0);
    o.memory_bytes = machines[0].memory_bytes;
    o.ranks = the.ranks;
    drey_engine *e;
    MUST(drey_engine_open, &e, &o);
    drey_engine_close(&e);
    team_end();
    drey_model_close(&m);
}

TEST(layers_go_where_there_is_room)
{
    static const struct {
        ranks_means means[3];
        int32_t n_layers, n, want[3];
    } table[] = {
        {{{1000, 0}, {1000, 0}}, 12, 2, {6, 6}}, /* all fits: as room is, whatever the disks are */
        {{{UINT64_MAX, 9}, {UINT64_MAX, 1}}, 12, 2, {6, 6}},
        {{{80, 0}, {160, 0}}, 12, 2, {5, 7}},
        {{{80, 5}, {160, 1}}, 12, 2, {5, 7}},
        {{{40, 0}, {20, 0}}, 12, 2, {7, 5}}, /* 60 do not fit: 30 for each disk */
        {{{40, 7}, {20, 7}}, 12, 2, {7, 5}},
        {{{40, 1}, {20, 2}}, 12, 2, {6, 6}}, /* 20 and 40 */
        {{{40, 2}, {20, 1}}, 12, 2, {8, 4}},
        {{{0, 3}, {0, 1}}, 12, 2, {9, 3}},
        {{{0, 0}, {0, 3}, {0, 1}}, 12, 3, {4, 6, 2}}, /* not known: 2 */
        {{{0, 0}, {0, 0}, {0, 0}}, 12, 3, {4, 4, 4}},
        {{{1000, 1}, {0, 100}}, 12, 2, {11, 1}}, /* each has a layer */
        {{{0, 0}, {1000, 0}}, 12, 2, {1, 11}},
        {{{0, 0}, {0, 0}, {UINT64_MAX, 0}}, 3, 3, {1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        uint64_t layers[16];
        int32_t n_of[3] = {0};
        for (int32_t j = 0; j < table[i].n_layers; j++)
            layers[j] = 10;
        ranks_divide(layers, table[i].n_layers, table[i].means, table[i].n, n_of);
        for (int32_t j = 0; j < table[i].n; j++)
            assert_int_equal(n_of[j], table[i].want[j]);
    }
}

/* Machines are planned as ranks with the same memory are, which have none of MPI here. */
static void compare_plan(const drey_engine_options *o, const uint64_t *budget)
{
    drey_rank_machine machines[MOST_RANKS];
    drey_rank_plan plans[MOST_RANKS];
    const drey_speeds speeds = {.memory_bytes_per_s = 1e9, .one_ops_per_s = 1e9};
    double around = 0;
    for (int32_t i = 0; i < MOST_RANKS; i++) {
        machines[i] = (drey_rank_machine){.memory_bytes = budget[i] + RANKS_MPI_BYTES,
                                          .disk_bytes_per_s = 1e6};
        snprintf(machines[i].host, sizeof machines[i].host, "m%d", i);
    }
    MUST(drey_ranks_plan, o, &speeds, machines, MOST_RANKS, plans);
    for (int32_t i = 0; i < MOST_RANKS; i++) {
        drey_rank_info info;
        assert_true(drey_ranks_describe(the.ranks, i, &info));
        assert_int_equal(plans[i].rank.first_layer, info.first_layer);
        assert_int_equal(plans[i].rank.n_layers, info.n_layers);
        assert_string_equal(plans[i].rank.host, machines[i].host);
        assert_true(plans[i].plan.alone_pass_s > 0);
        around += i ? plans[i].plan.alone_pass_s : 0;
    }
    const drey_plan *lead = &plans[0].plan;
    double own = lead->read_s > lead->compute_s ? lead->read_s : lead->compute_s;
    assert_true(lead->alone_pass_s > around);
    assert_true(lead->alone_pass_s <= 1.0001 * (around + own));
    assert_true(lead->expected_tokens_per_s > 0);
}

TEST(plans_divide_as_runs_do)
{
    drey_model *m = usual_target();
    drey_engine_options o = plain_options(m, LONG / 2, 1), alone;
    ranks_hello hello;
    o.n_sessions = 2; /* their caches together are those of one session in the other tests */
    alone = o;
    MUST(engine_rank_hello, &alone, &hello);
    const uint64_t layer = long_layer(&alone);
    /* Almost half a layer to spare, 7 MiB: the process grows, with a sanitizer by more. */
    assert_true(layer >= 16 << 20);
    const uint64_t narrow = hello.fixed_bytes + layer * 29 / 20,
                   wide = hello.fixed_bytes + layer * 7 / 2,
                   budget[MOST_RANKS] = {narrow, wide, narrow};
    memcpy(budget_of_rank, budget, sizeof budget);
    team_begin(MOST_RANKS, target_path(), 0, NULL, 0);
    o.memory_bytes = budget[0];
    o.ranks = the.ranks;
    drey_engine *e;
    MUST(drey_engine_open, &e, &o);
    assert_int_equal(the.ranks->member[1].n_layers, 3);
    /* What the others read is part of a turn's expected cost. */
    double own_s = (double)e->plan.report.streamed_bytes_per_pass / USUAL_DISK_BYTES_PER_S;
    the.ranks->member[1].ready.streamed_bytes += (uint64_t)USUAL_DISK_BYTES_PER_S;
    engine_add_ranks_cost(e);
    assert_true(e->cost.read_s >= own_s + 1);
    compare_plan(&alone, budget);
    drey_engine_close(&e);
    team_end();
    memset(budget_of_rank, 0, sizeof budget_of_rank);
    drey_model_close(&m);
}

TEST(machines_that_cannot_be_planned)
{
    drey_model *m = usual_target();
    const drey_engine_options o = plain_options(m, N_CONTEXT, 1);
    drey_rank_machine machines[THREAD_RANKS] = {{.host = "large", .memory_bytes = 1 << 30},
                                                {.host = "small", .memory_bytes = 1 << 20},
                                                {.host = "third", .memory_bytes = 1 << 30}};
    drey_rank_plan plans[THREAD_RANKS];
    REFUSED(DREY_ERR_USAGE, "cannot share", drey_ranks_plan, &o, NULL, machines, 1, plans);
    REFUSED(DREY_ERR_USAGE, "cannot share", drey_ranks_plan, &o, NULL, machines, 65, plans);
    REFUSED(DREY_ERR_USAGE, "more than the model has layers (5)", drey_ranks_plan, &o, NULL,
            machines, 6, plans);
    REFUSED(DREY_ERR_MEMORY, "rank 1 (small): ", drey_ranks_plan, &o, NULL, machines, 3, plans);
    drey_engine_options exits = o;
    exits.exit = DREY_EXIT_FAST;
    REFUSED(DREY_ERR_USAGE, "early exits", drey_ranks_plan, &exits, NULL, machines, 3, plans);
    drey_model_close(&m);
}
