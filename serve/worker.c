/* The engine's loop: jobs that wait begin, all that write take a step, what they wrote is
 * published. */
#include "serve/worker.h"

#include "common/error.h"

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

static bool on_text(void *user, const char *bytes, size_t n)
{
    listener *l = user;
    return job_record(l->shared, l->job, RECORD_TEXT, bytes, n);
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
    j->live.prompt_done = p.done;
    j->live.prompt_total = p.total;
    if (j->task->progress)
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

static bool on_token(void *user, int32_t id)
{
    listener *l = user;
    const drey_logprob written = {.id = id};
    bool wanted = l->job->task->tokens && !l->job->task->logprobs;
    if (l->job->task->n_predict == 0)
        return true;
    note_first(l);
    l->job->live.n_tokens++;
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

static void finish(loop *l, seat *place, drey_status status, const drey_error *err)
{
    shared *s = l->shared;
    job *j = place->job;
    const drey_statistics *t = &l->statistics[place - s->seats];
    drey_speculation speculation;
    drey_session_speculation(place->session, &speculation);
    pthread_mutex_lock(&s->lock);
    serve_totals *total = &s->totals;
    if (status == DREY_OK)
        j->live.n_cached = t->cached_tokens; /* with what was restored */
    total->prompt_tokens += (int64_t)j->task->n_ids - j->live.n_cached;
    total->cached_tokens += j->live.n_cached;
    total->prompt_s += t->prompt_s;
    total->predicted_tokens += t->generated_tokens;
    total->predicted_s += t->decode_s;
    total->drafts += t->drafted > 0 ? t->n_passes : 0;
    total->drafted += t->drafted;
    total->accepted += t->accepted;
    for (int i = 0; i < DREY_SPECULATION_DEPTHS; i++)
        total->depth_accepted[i] += speculation.depth_accepted[i];
    int64_t n_all = (int64_t)j->task->n_ids + t->generated_tokens;
    total->most_tokens = total->most_tokens > n_all ? total->most_tokens : n_all;
    if (t->ceiling_tokens_per_s > 0)
        total->ceiling = t->ceiling_tokens_per_s;
    double s_job = serve_clock_s() - j->began_s;
    total->job_s = total->job_s > 0 ? 0.7 * total->job_s + 0.3 * s_job : s_job;
    j->n_published = j->n_written;
    j->counts = j->live;
    j->n_shown = 0;
    j->shown_changed = false;
    j->statistics = *t;
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
    if (j->task->progress && j->live.prompt_done < p.total)
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
    size_t n_kept = 0;
    drey_generate_options_init(&o);
    l->listeners[i] = (listener){l, l->shared, place->job, place->session};
    l->statistics[i] = (drey_statistics){.finish = DREY_FINISH_ERROR};
    bool writes = t->n_predict > 0;
    o.n_predict = writes ? t->n_predict : 1;
    o.sampling = t->sampling;
    o.sampling.seed += (uint64_t)place->job->choice;
    o.stops = t->stops.of;
    o.n_stops = t->stops.n;
    o.ignore_eos = t->ignore_eos;
    o.no_draft = !t->speculative;
    o.biases = t->biases.of;
    o.n_biases = t->biases.n;
    o.on_text = writes ? on_text : NULL;
    o.on_token = on_token;
    o.on_logprobs = writes && t->logprobs ? on_logprobs : NULL;
    o.n_top = t->n_top;
    o.on_event = writes && t->provisional ? on_event : NULL;
    o.on_end = on_end;
    o.user = &l->listeners[i];
    if (t->grammar.n > 0)
        TRY(drey_grammar_open(&place->grammar, l->shared->options->model, t->grammar.kind,
                              t->grammar.text, t->grammar.n, err));
    o.grammar = place->grammar;
    if (!t->keep)
        drey_session_reset(place->session);
    drey_status status = drey_session_sync(place->session, t->ids, t->n_ids, &n_kept, err);
    if (status == DREY_OK)
        status = drey_session_begin(place->session, &o, &l->statistics[i], err);
    place->job->live.n_cached = (int64_t)n_kept;
    return status;
}

/* How many tokens the session would not compute again. */
static size_t common(const seat *place, const task *t)
{
    const int32_t *ids;
    size_t n_ids, n = 0;
    drey_session_timeline(place->session, &ids, &n_ids);
    while (n < n_ids && n < t->n_ids && ids[n] == t->ids[n])
        n++;
    return n;
}

/* The idle session that the job may have: the one it asks for, else the one that knows most of its
 * prompt, of equals the one that was left longest ago. NULL: it has to wait. */
static seat *choose_seat(shared *s, const task *t)
{
    seat *best = NULL;
    size_t most = 0;
    for (int32_t i = 0; i < s->options->n_sessions; i++) {
        seat *place = &s->seats[i];
        if (place->job || (t->seat >= 0 && t->seat != i))
            continue;
        size_t n = t->keep ? common(place, t) : 0;
        if (!best || n > most || (n == most && place->used < best->used)) {
            best = place;
            most = n;
        }
    }
    return best;
}

/* The first in the queue that a session is idle for takes it; NULL: nobody does. With the lock. */
static seat *take_job(loop *l)
{
    shared *s = l->shared;
    for (int32_t i = 0; i < s->n_queued; i++) {
        job *j = s->queue[i];
        seat *place = choose_seat(s, j->task);
        if (!place)
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
    if (moved && j->task->progress && j->live.n_tokens == 0)
        job_record(l->shared, j, RECORD_PROGRESS, &p, sizeof p);
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

/* What a step has brought. */
static void publish(loop *l)
{
    shared *s = l->shared;
    drey_counts counts;
    drey_prefixes prefixes;
    int32_t n_seats = s->options->n_sessions;
    drey_engine_count(l->worker->engine, &counts);
    drey_engine_prefixes(l->worker->engine, &prefixes);
    pthread_mutex_lock(&s->lock);
    s->totals.engine = counts;
    s->totals.prefixes = prefixes;
    s->totals.steps++;
    s->totals.busy_seats += s->n_running;
    pthread_mutex_unlock(&s->lock);
    for (int32_t i = 0; i < n_seats; i++) {
        seat *place = &s->seats[i];
        if (!place->job)
            continue;
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

static void step(loop *l)
{
    int32_t n_writing;
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
    publish(l);
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

static void serve(loop *l)
{
    shared *s = l->shared;
    for (;;) {
        begin_jobs(l);
        pthread_mutex_lock(&s->lock);
        while (s->n_running == 0 && s->n_queued == 0 && !s->stopping)
            pthread_cond_wait(&s->work, &s->lock);
        bool ends = s->n_running == 0 && s->n_queued == 0, idle = s->n_running == 0;
        pthread_mutex_unlock(&s->lock);
        if (ends)
            return;
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
        serve(&l);
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
