/* The engine's loop: jobs that wait begin, all that write take a step, what they wrote is
 * published. */
#include "serve/worker.h"

#include "serve/chores.h"
#include "serve/echo.h"

#include "common/error.h"
#include "drey/drey_engine.h"

#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* After a failed step (a disk that does not answer) others are tried, so many in a row. */
enum { MOST_FAILURES = 3 };

/* ---- What the engine reports while it writes ---- */

typedef struct loop loop;
typedef struct listener {
    loop *loop;
    shared *shared;
    job *job;
    const drey_session *session;
} listener;

/* How many of the bytes come before a line with fewer blanks than are wanted; sets live.cut if that
 * is there. */
static size_t before_outdent(job *j, const char *bytes, size_t n)
{
    job_counts *live = &j->live;
    for (size_t i = 0; i < n; i++) {
        if (live->line_begins && (bytes[i] == ' ' || bytes[i] == '\t')) {
            live->n_blanks++;
            continue;
        }
        live->cut = live->line_begins && live->n_blanks < j->task->lines.indent;
        if (live->cut)
            return i;
        live->line_begins = bytes[i] == '\n';
        live->n_blanks = 0;
        live->has_new_line = live->has_new_line || bytes[i] == '\n';
    }
    return n;
}

static bool on_text(void *user, const char *bytes, size_t n)
{
    listener *l = user;
    job_counts *live = &l->job->live;
    int32_t most_ms = l->job->task->lines.most_ms;
    size_t n_taken = before_outdent(l->job, bytes, n);
    if (n_taken > 0 && !job_record(l->shared, l->job, RECORD_TEXT, bytes, n_taken))
        return false;
    if (most_ms > 0 && live->has_new_line && live->first_s > 0 &&
        serve_clock_s() - live->first_s > 0.001 * most_ms)
        live->cut = true;
    return !live->cut;
}

/* The prompt has been read: that is said before its first token. */
static void note_first(listener *l)
{
    job *j = l->job;
    record_progress p;
    if (j->live.first_s > 0)
        return;
    j->live.first_s = serve_clock_s();
    p.s = j->live.first_s - j->began_s;
    drey_session_prompt(l->session, &p.done, &p.total);
    p.done = p.total;
    bool moved = j->live.prompt_done < p.total;
    j->live.prompt_done = p.done;
    j->live.prompt_total = p.total;
    if (moved && j->task->events.progress)
        job_record(l->shared, j, RECORD_PROGRESS, &p, sizeof p);
}

static void on_logprobs(void *user, const drey_logprob *written, const drey_logprob *top,
                        int32_t n_top)
{
    listener *l = user;
    drey_logprob all[1 + DREY_MAX_TOP];
    note_first(l);
    all[0] = *written;
    memcpy(all + 1, top, (size_t)n_top * sizeof *top);
    job_record(l->shared, l->job, RECORD_TOKEN, all, (size_t)(1 + n_top) * sizeof *all);
}

/* Of the prediction's tokens those that came, in their order; some may be left out at a time. */
static void note_predicted(job *j, int32_t id)
{
    enum { LEFT_OUT = 32 };
    const int32_t *predicted = j->task->ids + j->task->n_ids;
    size_t at = j->live.at_predicted, end = at + LEFT_OUT;
    while (at < end && at < j->task->prompts.n_predicted && predicted[at] != id)
        at++;
    if (at < end && at < j->task->prompts.n_predicted) {
        j->live.n_as_predicted++;
        j->live.at_predicted = at + 1;
    }
}

static bool on_token(void *user, int32_t id)
{
    listener *l = user;
    const drey_logprob written = {.id = id};
    bool wanted = l->job->task->tokens && !l->job->task->logprobs;
    if (l->job->task->n_predict == 0)
        return true;
    note_first(l);
    l->job->live.n_tokens++;
    note_predicted(l->job, id);
    return !wanted || job_record(l->shared, l->job, RECORD_TOKEN, &written, sizeof written);
}

/* What is verified leaves the provisional text with the text that it joins, so that is published
 * after the step. */
static void on_event(void *user, const drey_event *event)
{
    listener *l = user;
    job *j = l->job;
    if (event->kind == DREY_EVENT_PROVISIONAL) {
        size_t n = event->n_bytes < sizeof j->ahead - j->n_ahead ? event->n_bytes
                                                                 : sizeof j->ahead - j->n_ahead;
        memcpy(j->ahead + j->n_ahead, event->bytes, n);
        j->n_ahead += n;
    } else {
        size_t n = event->n_bytes < j->n_ahead ? event->n_bytes : j->n_ahead;
        j->n_ahead -= n;
        if (event->kind == DREY_EVENT_VERIFIED)
            memmove(j->ahead, j->ahead + n, j->n_ahead);
    }
    if (event->kind == DREY_EVENT_PROVISIONAL)
        job_publish(l->shared, j);
}

/* ---- Jobs ---- */

struct loop {
    worker *worker;
    shared *shared;
    listener listeners[DREY_MAX_SESSIONS];
    drey_statistics statistics[DREY_MAX_SESSIONS];
    int64_t n_begun;
    int32_t n_failures;
    bool stepping;
};

/* A text has ended. With the lock. */
static void count_text(serve_totals *total, const job *j, const drey_statistics *t,
                       const drey_session *session)
{
    drey_speculation speculation;
    drey_session_speculation(session, &speculation);
    total->prompt_tokens += (int64_t)job_n_prompt(j) - j->live.n_cached;
    total->cached_tokens += j->live.n_cached;
    total->prompt_s += t->prompt_s;
    total->predicted_tokens += t->generated_tokens;
    total->predicted_s += t->decode_s;
    total->drafts += t->drafted > 0 ? t->n_passes : 0;
    total->drafted += t->drafted;
    total->accepted += t->accepted;
    for (int i = 0; i < DREY_SPECULATION_DEPTHS; i++)
        total->depth_accepted[i] += speculation.depth_accepted[i];
    int64_t n_all = (int64_t)job_n_prompt(j) + t->generated_tokens;
    total->most_tokens = total->most_tokens > n_all ? total->most_tokens : n_all;
    if (t->ceiling_tokens_per_s > 0)
        total->ceiling = t->ceiling_tokens_per_s;
    double s_job = serve_clock_s() - j->began_s;
    total->job_s = total->job_s > 0 ? 0.7 * total->job_s + 0.3 * s_job : s_job;
}

/* Vectors of texts, each of which counts as a pass. With the lock. */
static void count_vectors(serve_totals *total, const job *j)
{
    total->prompt_tokens += (int64_t)j->task->n_ids;
    total->prompt_s += serve_clock_s() - j->began_s;
    total->steps += j->task->parts.n;
    total->busy_seats += j->task->parts.n;
}

static void finish(loop *l, seat *place, drey_status status, const drey_error *err)
{
    shared *s = l->shared;
    job *j = place->job;
    const drey_statistics *t = &l->statistics[place - s->seats];
    pthread_mutex_lock(&s->lock);
    if (status == DREY_OK)
        j->live.n_cached = echo_computes(j->task) ? 0 : t->cached_tokens; /* or restored */
    if (!chore_is(j->task))
        count_text(&s->totals, j, t, place->session);
    else if (j->task->kind == TASK_EMBED && status == DREY_OK)
        count_vectors(&s->totals, j);
    j->n_published = j->n_written;
    j->counts = j->live;
    j->n_shown = 0;
    j->shown_changed = false;
    j->statistics = *t;
    if (place->session)
        drey_session_exits(place->session, &j->exits);
    if (j->live.cut)
        j->statistics.finish = DREY_FINISH_LENGTH;
    j->status = status;
    if (err)
        j->error = *err;
    j->state = JOB_DONE;
    drey_grammar_close(&place->grammar);
    place->job = NULL;
    s->n_running--;
    pthread_mutex_unlock(&s->lock);
    eventfd_write(s->wake, 1);
}

/* A text that ended without a token: its prompt has been read all the same. Where none was asked
 * for, the one that the prompt's last pass gives is nobody's. */
static void end_prompt(loop *l, seat *place)
{
    job *j = place->job;
    drey_statistics *t = &l->statistics[place - l->shared->seats];
    record_progress p = {j->live.prompt_total, j->live.prompt_total, serve_clock_s() - j->began_s};
    if (j->live.n_tokens > 0 || (t->finish != DREY_FINISH_STOP && t->finish != DREY_FINISH_LENGTH))
        return;
    if (j->task->n_predict == 0) {
        t->finish = DREY_FINISH_LENGTH;
        t->stop_text = 0;
        t->generated_tokens = 0;
        t->first_token_s = t->decode_s = 0;
        t->tokens_per_s = t->tokens_per_pass = t->ceiling_tokens_per_s = 0;
    }
    if (j->task->events.progress && j->live.prompt_done < p.total)
        job_record(l->shared, j, RECORD_PROGRESS, &p, sizeof p);
}

static void begin_jobs(loop *l);

/* A client that hangs up leaves in the middle of the others' pass, and the first that waits has the
 * place. Other texts end with the step. */
static void on_end(void *user)
{
    listener *n = user;
    loop *l = n->loop;
    seat *place = &l->shared->seats[n->job->seat];
    if (!l->stepping || l->statistics[n->job->seat].finish != DREY_FINISH_INTERRUPTED)
        return;
    finish(l, place, DREY_OK, NULL);
    begin_jobs(l);
}

static drey_status begin(loop *l, seat *place, drey_error *err)
{
    const task *t = place->job->task;
    int32_t i = (int32_t)(place - l->shared->seats);
    drey_generate_options o;
    size_t n_kept = 0, n_ids;
    const int32_t *ids = job_prompt(place->job, &n_ids);
    drey_generate_options_init(&o);
    l->listeners[i] = (listener){l, l->shared, place->job, place->session};
    l->statistics[i] = (drey_statistics){.finish = DREY_FINISH_ERROR};
    bool writes = t->n_predict > 0;
    o.n_predict = writes ? t->n_predict : 1;
    o.sampling = t->sampling.of;
    o.sampling.seed += (uint64_t)(place->job->choice % (t->n_choices / t->prompts.n));
    o.stops = t->stops.of;
    o.n_stops = t->stops.n;
    o.ignore_eos = t->ignore_eos;
    o.no_draft = !t->session.speculative;
    o.no_known = !t->session.keep;
    o.biases = t->sampling.biases;
    o.n_biases = t->sampling.n_biases;
    o.on_text = writes ? on_text : NULL;
    o.on_token = on_token;
    o.on_logprobs = writes && t->logprobs ? on_logprobs : NULL;
    o.after_filters = t->sampling.shares;
    o.n_top = t->n_top;
    o.on_event = writes && t->events.provisional ? on_event : NULL;
    o.on_end = on_end;
    o.user = &l->listeners[i];
    if (t->grammar.n > 0)
        TRY(drey_grammar_open(&place->grammar, l->shared->options->model, t->grammar.kind,
                              t->grammar.text, t->grammar.n, err));
    o.grammar = place->grammar;
    o.special = t->reply.special;
    if (!t->session.keep)
        drey_session_reset(place->session);
    if (t->prompts.echo)
        TRY(echo_prompt(l->shared, place->job, place->session, err));
    drey_status status = drey_session_sync(place->session, ids, n_ids, &n_kept, err);
    if (status == DREY_OK)
        status =
            drey_session_predict(place->session, t->ids + t->n_ids, t->prompts.n_predicted, err);
    if (status == DREY_OK)
        status = drey_session_begin(place->session, &o, &l->statistics[i], err);
    place->job->live.n_cached = (int64_t)n_kept;
    return status;
}

/* How many tokens of its n_ids the session would not compute again. */
static size_t common(const seat *place, const job *j, size_t *n_ids)
{
    const int32_t *ids;
    size_t n = 0, n_prompt;
    const int32_t *prompt = job_prompt(j, &n_prompt);
    drey_session_timeline(place->session, &ids, n_ids);
    while (n < *n_ids && n < n_prompt && ids[n] == prompt[n])
        n++;
    return n;
}

/* The idle session that the job may have: the one it asks for; else the one that knows most of its
 * prompt, if most of what that one knows is used; else the one that was left longest ago, which
 * copies what others know. NULL: it has to wait. */
static seat *choose_seat(shared *s, const job *j)
{
    const task *t = j->task;
    seat *best = NULL, *oldest = NULL;
    size_t most = 0;
    for (int32_t i = 0; i < s->options->n_sessions; i++) {
        seat *place = &s->seats[i];
        if (place->job || (t->session.wanted >= 0 && t->session.wanted != i))
            continue;
        size_t n_all = 0, n = t->session.keep ? common(place, j, &n_all) : 0;
        if (n > most && 2 * n >= n_all) {
            best = place;
            most = n;
        }
        if (!oldest || place->used < oldest->used)
            oldest = place;
    }
    return best ? best : oldest;
}

/* The first in the queue that a session is idle for takes it; NULL: nobody does. With the lock. */
static seat *take_job(loop *l)
{
    shared *s = l->shared;
    for (int32_t i = 0; i < s->n_queued; i++) {
        job *j = s->queue[i];
        bool alone = chore_is(j->task) || echo_computes(j->task);
        seat *place = l->stepping && alone ? NULL : choose_seat(s, j);
        if (!place) /* or it has to wait for the end of the others' pass */
            continue;
        for (s->n_queued--; i < s->n_queued; i++)
            s->queue[i] = s->queue[i + 1];
        place->job = j;
        place->used = ++l->n_begun;
        j->state = JOB_RUNNING;
        j->seat = (int32_t)(place - s->seats);
        j->began_s = serve_clock_s();
        s->n_running++;
        return place;
    }
    return NULL;
}

static void note_progress(loop *l, seat *place)
{
    job *j = place->job;
    record_progress p = {.s = serve_clock_s() - j->began_s};
    drey_session_prompt(place->session, &p.done, &p.total);
    bool moved = p.done != j->live.prompt_done || p.total != j->live.prompt_total;
    j->live.prompt_done = p.done;
    j->live.prompt_total = p.total;
    if (moved && j->task->events.progress && j->live.n_tokens == 0)
        job_record(l->shared, j, RECORD_PROGRESS, &p, sizeof p);
}

/* A part of a chore. */
static void do_chore(loop *l, seat *place)
{
    drey_error err = {0};
    bool over;
    drey_status status = chore_do(l->shared, place->job, place->session, &over, &err);
    if (status != DREY_OK || over)
        finish(l, place, status, &err);
}

/* All that can begin does. */
static void begin_jobs(loop *l)
{
    shared *s = l->shared;
    for (;;) {
        drey_error err = {0};
        pthread_mutex_lock(&s->lock);
        seat *place = take_job(l);
        pthread_mutex_unlock(&s->lock);
        if (!place)
            return;
        if (chore_is(place->job->task)) {
            l->statistics[place - s->seats] = (drey_statistics){0};
            do_chore(l, place);
            continue;
        }
        drey_status status = begin(l, place, &err);
        if (status != DREY_OK) {
            finish(l, place, status, &err);
            continue;
        }
        note_progress(l, place); /* how long the prompt is, before any of it is read */
        job_publish(s, place->job);
        /* A text begins without what came before it: a client that cancelled since is heard now. */
        pthread_mutex_lock(&s->lock);
        if (place->job->cancelled)
            drey_session_cancel(place->session);
        pthread_mutex_unlock(&s->lock);
    }
}

/* ---- Steps ---- */

static void note_totals(loop *l, int n_steps)
{
    shared *s = l->shared;
    drey_counts counts;
    drey_prefixes prefixes;
    drey_engine_count(l->worker->engine, &counts);
    drey_engine_prefixes(l->worker->engine, &prefixes);
    pthread_mutex_lock(&s->lock);
    s->totals.engine = counts;
    s->totals.prefixes = prefixes;
    s->totals.steps += n_steps;
    s->totals.busy_seats += n_steps * s->n_running;
    pthread_mutex_unlock(&s->lock);
}

/* What a step has brought. */
static void publish(loop *l, int n_steps)
{
    shared *s = l->shared;
    int32_t n_seats = s->options->n_sessions;
    note_totals(l, n_steps);
    for (int32_t i = 0; i < n_seats; i++) {
        seat *place = &s->seats[i];
        if (!place->job)
            continue;
        if (chore_is(place->job->task)) {
            do_chore(l, place);
            continue;
        }
        if (!drey_session_is_writing(place->session)) {
            end_prompt(l, place);
            finish(l, place, DREY_OK, NULL);
            continue;
        }
        note_progress(l, place);
        job_publish(s, place->job);
    }
}

/* What cannot be read may be what one text alone asks for, an expert of a mixture: each takes its
 * own step, and only those end that cannot. */
static void step_apart(loop *l)
{
    shared *s = l->shared;
    for (int32_t i = 0; i < s->options->n_sessions; i++) {
        seat *place = &s->seats[i];
        const job *j = place->job;
        drey_error err = {0};
        bool done;
        if (!j || !drey_session_is_writing(place->session))
            continue;
        l->stepping = true;
        drey_status status = drey_session_step(place->session, &done, &err);
        l->stepping = false;
        if (status == DREY_OK || place->job != j) /* its client may have left */
            continue;
        drey_session_end(place->session);
        finish(l, place, status, &err);
    }
}

/* Whether a text is being written, or all that runs are chores. */
static bool anybody_writes(const loop *l)
{
    const shared *s = l->shared;
    for (int32_t i = 0; i < s->options->n_sessions; i++)
        if (s->seats[i].job && !chore_is(s->seats[i].job->task))
            return true;
    return false;
}

static void step(loop *l)
{
    int32_t n_writing;
    if (!anybody_writes(l)) {
        publish(l, 0);
        return;
    }
    l->stepping = true;
    drey_status status = drey_engine_step(l->worker->engine, &n_writing, NULL);
    l->stepping = false;
    if (status == DREY_OK) {
        l->n_failures = 0;
    } else if (++l->n_failures < MOST_FAILURES) {
        usleep(200000); /* the disk may be back */
        return;
    } else {
        step_apart(l);
    }
    publish(l, 1);
}

/* The engine can no longer be used: what runs ends, and what waits. */
static void end_all(loop *l, const drey_error *why)
{
    shared *s = l->shared;
    for (int32_t i = 0; i < s->options->n_sessions; i++) {
        seat *place = &s->seats[i];
        if (!place->job)
            continue;
        drey_session_end(place->session);
        finish(l, place, why->code, why);
    }
    pthread_mutex_lock(&s->lock);
    while (s->n_queued > 0)
        job_unqueue(s, s->queue[0], why->code, why->message);
    pthread_mutex_unlock(&s->lock);
}

/* ---- The thread ---- */

static drey_status open_sessions(loop *l, drey_error *err)
{
    shared *s = l->shared;
    for (int32_t i = 0; i < s->options->n_sessions; i++) {
        drey_session *session = NULL;
        drey_status status = drey_session_open(&session, l->worker->engine, err);
        pthread_mutex_lock(&s->lock);
        s->seats[i].session = session;
        pthread_mutex_unlock(&s->lock);
        if (status != DREY_OK)
            return status;
    }
    return DREY_OK;
}

/* The first pass reads the weights: it runs before anybody asks. */
static void warm_up(loop *l)
{
    shared *s = l->shared;
    const int32_t ids[] = {0, 0};
    drey_generate_options o;
    bool done = false;
    drey_generate_options_init(&o);
    o.n_predict = 1;
    drey_session *session = s->seats[0].session;
    bool good = drey_session_sync(session, ids, 1, NULL, NULL) == DREY_OK &&
                drey_session_begin(session, &o, NULL, NULL) == DREY_OK;
    while (good && !done && drey_session_step(session, &done, NULL) == DREY_OK)
        ;
    drey_session_reset(session);
    pthread_mutex_lock(&s->lock);
    s->ready = true;
    pthread_mutex_unlock(&s->lock);
    eventfd_write(s->wake, 1);
}

/* While nobody asks, a kept beginning goes to its folder. Returns how many are left to write. */
static int64_t write_prefix(loop *l)
{
    int64_t n_left;
    drey_engine_write_prefixes(l->worker->engine, 1, &n_left, NULL);
    return n_left;
}

/* Until it is asked to stop, or the engine can no longer be used. */
static drey_status serve(loop *l, drey_error *err)
{
    shared *s = l->shared;
    for (int64_t n_left = 1;;) {
        drey_status status = drey_engine_check(l->worker->engine, err);
        if (status != DREY_OK) {
            end_all(l, err);
            return status;
        }
        begin_jobs(l);
        pthread_mutex_lock(&s->lock);
        bool rests = s->n_running == 0 && s->n_queued == 0 && !s->stopping;
        pthread_mutex_unlock(&s->lock);
        if (rests && n_left > 0) {
            n_left = write_prefix(l);
            note_totals(l, 0);
            continue;
        }
        n_left = 1;
        pthread_mutex_lock(&s->lock);
        while (s->n_running == 0 && s->n_queued == 0 && !s->stopping)
            pthread_cond_wait(&s->work, &s->lock);
        bool ends = s->n_running == 0 && s->n_queued == 0, idle = s->n_running == 0;
        pthread_mutex_unlock(&s->lock);
        if (ends)
            return DREY_OK;
        if (!idle)
            step(l);
    }
}

static void *run(void *user)
{
    loop l = {.worker = user, .shared = ((worker *)user)->shared};
    shared *s = l.shared;
    drey_error err = {0};
    drey_status status = open_sessions(&l, &err);
    if (status == DREY_OK) {
        warm_up(&l);
        status = serve(&l, &err);
    }
    pthread_mutex_lock(&s->lock);
    s->failed = err;
    s->failed.code = status;
    pthread_mutex_unlock(&s->lock);
    for (int32_t i = s->options->n_sessions; i-- > 0;) {
        pthread_mutex_lock(&s->lock); /* another thread may be about to cancel it */
        drey_session *session = s->seats[i].session;
        s->seats[i].session = NULL;
        pthread_mutex_unlock(&s->lock);
        drey_session_close(&session);
    }
    pthread_mutex_lock(&s->lock);
    s->over = true;
    pthread_mutex_unlock(&s->lock);
    eventfd_write(s->wake, 1);
    return NULL;
}

bool worker_start(worker *w)
{
    sigset_t all, before; /* signals are the caller's thread's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool good = pthread_create(&w->thread, NULL, run, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good;
}

void worker_join(worker *w)
{
    pthread_join(w->thread, NULL);
}
