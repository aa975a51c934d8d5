/* Several ranks write the text that one machine writes: of any architecture, with and without
 * drafts, greedy and sampled, in texts that are continued and cut, of several sessions; what does
 * not fit is refused, and a rank that fails or falls silent ends the run with its name. Ranks are
 * threads here (support/faults/rank_team.h); ranks/cli_ranks.sh has them as processes. How layers
 * are divided: test_rank_layers.c. */
#include "session/session_probe.h"
#include "support/faults/rank_team.h"
#include "support/logit_toys.h"

TEST(every_architecture)
{
    for (int i = 0; i < FIRST_T5_TOY; i++) {
        toy_options toy;
        temp_dir();
        const char *name = arch_toy(i, &toy);
        drey_model *m = toy_open("target.gguf", &toy);
        const drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        team_compare(&o, toy.n_layers > 2 && i % 2 ? 3 : 2, team_target_path(), NULL, name);
        drey_model_close(&m);
    }
}

TEST(tied_embeddings_sidecars_and_small_caches)
{
    for (int i = 0; i < 4; i++) {
        toy_options toy = team_toy();
        toy.tied = i % 2;
        toy.head_dim = 32;
        temp_dir();
        drey_model *m = toy_open("target.gguf", &toy);
        drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        o.kv = i == 1 ? DREY_KV_Q8_0 : DREY_KV_F16;
        if (i >= 2)
            toy_prepare(m, NULL, false);
        team_compare(&o, 2 + i % 2, team_target_path(), NULL, "another text");
        drey_model_close(&m);
    }
}

TEST(drafts)
{
    static const drey_policy policies[] = {DREY_POLICY_AUTO, DREY_POLICY_SPECINFER,
                                           DREY_POLICY_SEQUENCE, DREY_POLICY_EDGELLM,
                                           DREY_POLICY_STATIC};
    drey_model *m = team_target(), *draft = team_draft();
    drey_sampling sampling = {.temperature = 0.8f, .seed = 11};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        o.policy = policies[i];
        o.draft = draft;
        o.drafter = DREY_DRAFTER_MODEL;
        o.prompt_chunk = i % 2 ? 4 : 0;
        team_compare(&o, 2 + (int32_t)i % 2, team_target_path(), i % 2 ? NULL : &sampling,
                     drey_policy_name(policies[i]));
    }
    drey_engine_options o = plain_options(m, N_CONTEXT, 2);
    o.policy = DREY_POLICY_AUTO;
    o.drafter = DREY_DRAFTER_LOOKUP;
    team_compare(&o, 3, team_target_path(), NULL, "lookup");
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
    drey_status status = drey_session_generate(s, team_prompt, N_PROMPT, &g, NULL, &err);
    assert_true(status == DREY_OK || status == DREY_ERR_CANCELLED);
    stop.at = 0;
    g.n_predict = N_TEXT - first->n_ids;
    must(drey_session_generate(s, NULL, 0, &g, NULL, &err), &err);
    size_t n_kept;
    MUST(drey_session_sync, s, team_prompt, N_PROMPT - 3, &n_kept);
    writing_continue(second, s, NULL, 0, N_TEXT, NULL);
    close_alone(&s);
}

TEST(texts_in_parts)
{
    static writing want[2], got[2];
    drey_model *m = team_target(), *draft = team_draft();
    drey_engine_options o = plain_options(m, N_CONTEXT, 2);
    o.policy = DREY_POLICY_AUTO;
    o.draft = draft;
    o.drafter = DREY_DRAFTER_MODEL;
    memset(want, 0, sizeof want);
    memset(got, 0, sizeof got);
    write_in_parts(&o, &want[0], &want[1]);
    team_begin(3, team_target_path(), 0, NULL, 0);
    o.ranks = team.ranks;
    write_in_parts(&o, &got[0], &got[1]);
    team_end();
    must_be_same_ids(&want[0], &got[0], "cancelled and continued");
    must_be_same_ids(&want[1], &got[1], "cut and written again");
    drey_model_close(&m);
    drey_model_close(&draft);
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
    assert_true(texts[5].stats.cached_tokens >= toy_kept(N_SAME));
}

TEST(several_sessions)
{
    static writing want[N_TEXTS], got[N_TEXTS];
    drey_model *m = team_target(), *draft = team_draft();
    for (int32_t i = 0; i < 4; i++) {
        drey_engine_options o = plain_options(m, N_CONTEXT, 2);
        if (i % 2) {
            o.policy = DREY_POLICY_AUTO;
            o.draft = draft;
            o.drafter = DREY_DRAFTER_MODEL;
        }
        write_alone(&o, want);
        team_begin(2 + i / 2, team_target_path(), 0, NULL, 0);
        o = team_options(o);
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
    count_down();
    return 0;
}

static void cancel_sending(uint8_t *bytes, size_t n)
{
    if (((const ranks_head *)(const void *)bytes)->kind == RANKS_ROWS)
        count_down();
}

static void write_and_cancel(const drey_engine_options *o, int32_t at, writing *texts)
{
    const engine_hooks half = {
        .set_share = true, .share = 0.5, .fault = next_team.alter_rank_1 ? NULL : cancel_reading};
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
    drey_model *m = team_target();
    drey_engine_options o = plain_options(m, N_CONTEXT, 2), several;
    write_alone(&o, want);
    for (int32_t at = 0; at < 8; at++) {
        next_team.alter_rank_1 = at % 2 ? cancel_sending : NULL;
        team_begin(2, team_target_path(), 0, NULL, 0);
        several = team_options(o);
        several.n_sessions = N_SESSIONS;
        write_and_cancel(&several, at, got);
        team_end();
        next_team.alter_rank_1 = NULL;
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
    drey_model *m = team_target();
    for (wrong_member = 0; wrong_member < 24; wrong_member++) {
        team_begin(2, team_target_path(), 0, NULL, 0);
        drey_engine_options o = team_options(plain_options(m, N_CONTEXT, 1));
        drey_session *s = open_alone(&o, NULL);
        const drey_generate_options g = greedy(4);
        thread_ranks_alter(0, change_rows);
        REFUSED(DREY_ERR_IO, "rank 1 (host1): it", drey_session_generate, s, team_prompt, N_PROMPT,
                &g, NULL);
        close_alone(&s);
        team_end();
    }
    drey_model_close(&m);
}

/* Rows that rank 1 has sent back. */
static int32_t n_back;

static void count_rows_back(uint8_t *bytes, size_t n)
{
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
    drey_model *m = team_target();
    drey_engine_options o = plain_options(m, N_CONTEXT, 1);
    static writing whole, parts;
    int32_t back[2];
    for (int32_t i = 0; i < 2; i++) {
        o.prompt_chunk = i ? CHUNK : N_PROMPT;
        n_back = 0;
        next_team.alter_rank_1 = count_rows_back;
        team_begin(2, team_target_path(), 0, NULL, 0);
        const drey_engine_options shared = team_options(o);
        writing_run_tuned(i ? &parts : &whole, &shared, NULL, team_prompt, N_PROMPT, N_TEXT, NULL);
        team_end();
        next_team.alter_rank_1 = NULL;
        back[i] = n_back;
    }
    must(parts.status, &parts.error);
    must_be_same(&whole, &parts, "a prompt in several passes");
    assert_int_equal(back[0], back[1]);
    assert_true(back[0] > 0);
    team_begin(2, team_target_path(), 0, NULL, 0);
    const drey_engine_options shared = team_options(o);
    wrong_member = 0;
    thread_ranks_alter(0, change_first_rows);
    writing_run_tuned(&parts, &shared, NULL, team_prompt, N_PROMPT, N_TEXT, NULL);
    team_end();
    assert_int_equal(parts.status, DREY_ERR_IO);
    assert_non_null(strstr(parts.error.message, "rank 1 (host1): it does not understand"));
    drey_model_close(&m);
}

TEST(what_does_not_fit_is_refused)
{
    drey_model *m = team_target();
    drey_engine_options o;
    const drey_prefix_options prefixes = {.memory_bytes = 1 << 24};
    team_begin(1, NULL, 0, NULL, 0);
    o = team_options(plain_options(m, N_CONTEXT, 1));
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "one rank computes all");
    o.exit = DREY_EXIT_FAST;
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "early exits");
    o = team_options(plain_options(m, N_CONTEXT, 1));
    o.prefixes = &prefixes;
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "prefixes");
    o = team_options(plain_options(m, N_CONTEXT, 1));
    o.units = "cpu";
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "units");
    o = team_options(plain_options(m, N_CONTEXT, 1));
    o.drafter = DREY_DRAFTER_SELF;
    o.policy = DREY_POLICY_AUTO;
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "needs all layers");
    team_end();
    drey_model_close(&m);
}

TEST(another_model_is_refused)
{
    drey_model *m = team_target();
    toy_options toy = team_toy();
    toy.seed++;
    toy_write(temp_path("other.gguf"), &toy);
    char other[2048];
    snprintf(other, sizeof other, "%s", temp_path("other.gguf"));
    team_begin(3, team_target_path(), 2, other, 0);
    drey_engine_options o = plain_options(m, N_CONTEXT, 1);
    o.ranks = team.ranks;
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
    ((ranks_head *)(void *)bytes)->n_bytes++;
}

static void joins_at_once(uint8_t *bytes, size_t n)
{
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
    drey_model *m = team_target();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        next_team.alter_rank_1 = table[i].alter;
        team_begin(2, team_target_path(), 0, NULL, 0);
        drey_engine_options o = plain_options(m, N_CONTEXT, 1);
        o.ranks = team.ranks;
        must_refuse_engine(&o, NULL, DREY_ERR_MISMATCH, table[i].message);
        team_end();
        next_team.alter_rank_1 = NULL;
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
    drey_model *m = team_target();
    const toy_options toy = team_toy();
    char own[2048];
    snprintf(own, sizeof own, "%s", temp_path("own.gguf"));
    toy_write(own, &toy);
    team_begin(3, team_target_path(), 1, own, 0);
    drey_engine_options o = plain_options(m, N_CONTEXT, 1);
    o.ranks = team.ranks;
    drey_session *s = open_alone(&o, NULL);
    const drey_generate_options g = greedy(4);
    MUST(drey_engine_check, probe_engine(s));
    touch(own);
    REFUSED(DREY_ERR_IO, "rank 1 (host1): ", drey_session_generate, s, team_prompt, N_PROMPT, &g,
            NULL);
    REFUSED(DREY_ERR_IO, "rank 1 (host1): ", drey_engine_check, probe_engine(s));
    REFUSED(DREY_ERR_UNSUPPORTED, "cannot be saved", drey_session_save, s, temp_path("s"), NULL, 0);
    close_alone(&s);
    team_end();
    drey_model_close(&m);
}

TEST(a_silent_rank_ends_the_run)
{
    drey_model *m = team_target();
    team_begin(3, team_target_path(), 0, NULL, 0);
    drey_engine_options o = plain_options(m, N_CONTEXT, 1);
    o.ranks = team.ranks;
    drey_session *s = open_alone(&o, NULL);
    const drey_generate_options g = greedy(4);
    thread_ranks_silence(2);
    team.ranks->wait_ns = 50 * 1000 * 1000; /* rank 1 has a layer or two to compute */
    REFUSED(DREY_ERR_IO, "has said nothing for 0 seconds", drey_session_generate, s, team_prompt,
            N_PROMPT, &g, NULL);
    close_alone(&s);
    team_end();
    assert_true(thread_ranks_ended() > 0);
    drey_model_close(&m);
}
