/* See company.h. */
#include "support/faults/company.h"

#include "session/session.h"
#include "state/cache.h"

enum { MOST_NEW = 20, MOST_TEXT = 24 };

company company_of(drey_session *alone, uint64_t seed)
{
    return (company){.alone = alone, .r = rng_from(seed), .lock = PTHREAD_MUTEX_INITIALIZER};
}

drey_status company_open(company *c, const drey_engine_options *o, const engine_hooks *hooks,
                         drey_error *err)
{
    c->n = o->n_sessions > 1 ? o->n_sessions : 1;
    return engine_open(&c->at.engine, o, hooks, err);
}

static void set_session(company *c, member *m, drey_session *s)
{
    pthread_mutex_lock(&c->lock);
    m->session = s;
    pthread_mutex_unlock(&c->lock);
}

static void close_member(company *c, member *m)
{
    drey_session *s = m->session;
    set_session(c, m, NULL);
    drey_session_close(&s);
}

void company_close(company *c)
{
    for (int32_t i = 0; i < c->n; i++)
        close_member(c, &c->member[i]);
    place_close(&c->at);
}

void company_counts_add(company_counts *sum, const company_counts *c)
{
    sum->n_texts += c->n_texts;
    sum->n_shared += c->n_shared;
    sum->n_failed += c->n_failed;
    sum->n_cancelled += c->n_cancelled;
    sum->n_again += c->n_again;
    sum->n_left += c->n_left;
    for (int e = 0; e < 4; e++)
        sum->n_ends[e] += c->n_ends[e];
}

/* ---- Cancelling and reading, in any thread ---- */

static void set_cut(company *c, member *m, bool is_cut)
{
    pthread_mutex_lock(&c->lock);
    m->is_cut = is_cut;
    pthread_mutex_unlock(&c->lock);
}

static bool is_cut(company *c, member *m)
{
    pthread_mutex_lock(&c->lock);
    bool was = m->is_cut;
    pthread_mutex_unlock(&c->lock);
    return was;
}

static void cut(company *c, member *m)
{
    pthread_mutex_lock(&c->lock);
    m->is_cut = true;
    if (m->session)
        drey_session_cancel(m->session);
    pthread_mutex_unlock(&c->lock);
}

void company_cancel(company *c, rng *r)
{
    const int32_t one = rng_below(r, c->n);
    const bool all = rng_below(r, 4) == 0;
    for (int32_t i = 0; i < c->n; i++)
        if (all || i == one)
            cut(c, &c->member[i]);
}

int company_read(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    company *c = user;
    rng r = rng_from(offset * 3 + atomic_load(&c->disk.n_reads));
    if (c->cancel_of && rng_below(&r, c->cancel_of) == 0)
        company_cancel(c, &r);
    return disk_read(&c->disk, part, offset, n_bytes);
}

/* ---- Texts ---- */

static bool keep_id(void *user, int32_t id)
{
    member *m = user;
    drey_session *s = m->session;
    bool continues = writing_keep_id(&m->text, id);
    if (m->text.n_ids == m->cancel_at)
        cut(m->company, m);
    assert_true(tree_is_valid(&s->tree) && cache_is_valid(&s->target_cache));
    assert_true(cache_is_valid(&s->draft_cache) && weights_is_valid(s->target.weights));
    return continues;
}

static drey_generate_options text_of(member *m)
{
    drey_generate_options g = writing_into(&m->text, m->n_predict);
    g.ignore_eos = !m->with_end;
    g.stops = &m->stop;
    g.n_stops = m->stop != NULL;
    g.sampling = m->sampling;
    return g;
}

/* Compares a text that has ended with the plain session's. */
static void check_text(company *c, member *m)
{
    static member plain;
    const drey_finish finish = m->text.stats.finish;
    c->counts.n_texts++;
    c->counts.n_ends[finish]++;
    assert_memory_equal(m->session->timeline, m->before, (size_t)m->n_before * sizeof *m->before);
    const int32_t n_known = m->n_before + m->text.n_ids; /* and the token that ended it */
    assert_in_range(m->session->n_timeline, n_known, n_known + (finish == DREY_FINISH_STOP));
    if (finish == DREY_FINISH_LENGTH)
        assert_true(m->text.n_ids == m->n_predict || m->session->n_timeline == COMPANY_CONTEXT);
    if (finish == DREY_FINISH_INTERRUPTED)
        assert_true(is_cut(c, m) || m->text.n_ids == m->text.refuse_at);
    const bool is_part = finish == DREY_FINISH_INTERRUPTED || finish == DREY_FINISH_ERROR;
    if (is_part && m->text.n_ids == 0)
        return;
    plain = (member){.stop = m->stop,
                     .with_end = m->with_end,
                     .sampling = m->sampling,
                     .n_predict = m->n_predict};
    plain.text.refuse_at = is_part ? m->text.n_ids : m->text.refuse_at;
    drey_generate_options g = text_of(&plain);
    MUST(drey_session_sync, c->alone, m->before, (size_t)m->n_before, NULL);
    MUST(drey_session_generate, c->alone, NULL, 0, &g, NULL);
    must_be_same_ids(&plain.text, &m->text, "in company");
    assert_int_equal(m->session->n_timeline, c->alone->n_timeline);
}

static void text_ended(void *user)
{
    member *m = user;
    company *c = m->company;
    check_text(c, m);
    if (!c->in_step || !m->begins_again || m->text.stats.finish != DREY_FINISH_INTERRUPTED)
        return;
    c->counts.n_again++;
    company_begin(c, m);
}

/* Cuts a part of the timeline off, or all of it, or nothing, and adds some ids. */
static void choose_timeline(rng *r, member *m)
{
    int32_t n = m->session->n_timeline;
    if (rng_below(r, 4) == 0)
        n = rng_below(r, n + 1);
    if (n > COMPANY_CONTEXT - MOST_NEW - 2) /* a text may fill the context */
        n = rng_below(r, 10);
    memcpy(m->before, m->session->timeline, (size_t)n * sizeof *m->before);
    for (int32_t more = rng_below(r, 2) ? rng_below(r, 3) : rng_below(r, MOST_NEW); more > 0;
         more--)
        m->before[n++] = 1 + rng_below(r, 250);
    if (n == 0)
        m->before[n++] = 1 + rng_below(r, 250);
    m->n_before = n;
}

static void maybe_break(company *c, int32_t of)
{
    if (rng_below(&c->r, of) == 0)
        atomic_store(&c->disk.n_broken, DISK_BROKEN);
}

static void check_failure(company *c, drey_status status, const drey_error *err)
{
    if (status == DREY_ERR_IO && !strstr(err->message, "cannot read"))
        fail_msg("%s", err->message);
    if (status == DREY_ERR_IO)
        c->counts.n_failed++;
    else if (status != DREY_ERR_CANCELLED)
        must(status, err);
}

void company_begin(company *c, member *m)
{
    static const char *const stops[] = {"e", "a", "th", "\n", "o"};
    rng *r = &c->r;
    drey_error err = {0};
    set_cut(c, m, true);
    drey_session_end(m->session);
    choose_timeline(r, m);
    MUST(drey_session_sync, m->session, m->before, (size_t)m->n_before, NULL);
    set_cut(c, m, false);
    m->n_predict = 1 + rng_below(r, MOST_TEXT);
    m->text.n_ids = 0;
    m->text.n_bytes = 0;
    m->text.refuse_at = rng_below(r, 4) ? 0 : 1 + rng_below(r, MOST_TEXT);
    m->cancel_at = rng_below(r, 8) ? 0 : 1 + rng_below(r, MOST_TEXT);
    m->stop = rng_below(r, 4) ? NULL : stops[rng_below(r, 5)];
    m->with_end = rng_below(r, 3) == 0;
    m->begins_again = rng_below(r, 2);
    m->sampling = (drey_sampling){.top_p = 1};
    if (rng_below(r, 2))
        m->sampling = (drey_sampling){.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .seed = 5};
    drey_generate_options g = text_of(m);
    g.on_token = keep_id;
    g.on_end = text_ended;
    if (!c->in_step && rng_below(r, 8) == 0) { /* all of it, alone */
        maybe_break(c, 3);
        drey_status status = drey_session_generate(m->session, NULL, 0, &g, &m->text.stats, &err);
        atomic_store(&c->disk.n_broken, 0);
        check_failure(c, status, &err);
    } else {
        MUST(drey_session_begin, m->session, &g, &m->text.stats);
    }
    g = (drey_generate_options){0}; /* the session has its own */
}

/* ---- Steps ---- */

static void join(company *c, member *m)
{
    drey_session *s = NULL;
    MUST(drey_session_open, &s, c->at.engine);
    m->company = c;
    set_session(c, m, s);
}

static void step_alone(company *c, member *m)
{
    drey_error err = {0};
    bool done;
    check_failure(c, drey_session_step(m->session, &done, &err), &err);
    assert_true(done != drey_session_is_writing(m->session));
}

/* Makes a change between two steps. */
static void change(company *c, member *m)
{
    int32_t what = rng_below(&c->r, 24);
    if (!m->session) {
        if (what < 8)
            join(c, m);
    } else if (!drey_session_is_writing(m->session)) {
        if (what < 6)
            company_begin(c, m);
        else if (what == 6)
            close_member(c, m);
        else if (what == 7)
            drey_session_reset(m->session);
    } else if (what == 0) {
        cut(c, m);
        c->counts.n_cancelled++;
    } else if (what == 1) {
        step_alone(c, m);
    } else if (what == 2) {
        set_cut(c, m, true);
        drey_session_end(m->session);
    }
}

static void step(company *c)
{
    drey_error err = {0};
    trace_sums before, after;
    int32_t n_before = 0, n_cut = 0, n_writing;
    for (int32_t i = 0; i < c->n; i++)
        if (c->member[i].session && drey_session_is_writing(c->member[i].session)) {
            n_before++;
            n_cut += is_cut(c, &c->member[i]);
        }
    maybe_break(c, 12);
    trace_sum(&c->at.engine->trace, &before);
    c->in_step = true;
    drey_status status = drey_engine_step(c->at.engine, &n_writing, &err);
    c->in_step = false;
    trace_sum(&c->at.engine->trace, &after);
    atomic_store(&c->disk.n_broken, 0);
    int64_t n_passes = 0;
    for (int what = 0; what < TRACE_KINDS; what++)
        if (what == TRACE_LOAD || what == TRACE_PROMPT || what == TRACE_VERIFY)
            n_passes += after.n[what] - before.n[what];
    assert_true(n_passes <= 1 && n_writing <= n_before);
    assert_int_not_equal(status, DREY_ERR_CANCELLED);
    check_failure(c, status, &err);
    c->counts.n_shared += status == DREY_OK && n_passes && n_before > 1;
    c->counts.n_left += status == DREY_OK && !n_passes && n_before && !n_cut && !n_writing;
    for (int32_t i = 0; i < c->n; i++)
        if (c->member[i].session)
            assert_true(session_is_valid(c->member[i].session));
}

void company_play(company *c)
{
    for (int32_t i = 0; i < c->n; i++)
        change(c, &c->member[i]);
    step(c);
}
