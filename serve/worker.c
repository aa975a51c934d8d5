/* The engine's loop: sequences that wait begin, all that write take a step, what they wrote is
 * published. */
#include "serve/worker.h"

#include "serve/admin.h"
#include "serve/prompt_echo.h"
#include "serve/net/event_loop.h"

#include "common/error.h"
#include "drey/drey_engine.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* After a failed step (a disk that does not answer) others are tried, so many in a row. */
enum { MOST_FAILURES = 3 };

/* ---- What the engine reports while it writes ---- */

typedef struct loop loop;
typedef struct listener {
    loop *loop;
    shared *shared;
    sequence *sequence;
    const drey_session *session;
} listener;

/* Returns how many of the bytes come before a line with fewer blanks than are wanted; sets live.cut
 * if that is there. */
static size_t before_outdent(sequence *j, const char *bytes, size_t n)
{
    sequence_counts *live = &j->live;
    for (size_t i = 0; i < n; i++) {
        if (live->line_begins && (bytes[i] == ' ' || bytes[i] == '\t')) {
            live->n_blanks++;
            continue;
        }
        live->cut = live->line_begins && live->n_blanks < j->request->length.indent;
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
    sequence_counts *live = &l->sequence->live;
    int32_t most_ms = l->sequence->request->length.most_ms;
    size_t n_taken = before_outdent(l->sequence, bytes, n);
    if (n_taken > 0 && !sequence_record(l->shared, l->sequence, RECORD_TEXT, bytes, n_taken))
        return false;
    if (most_ms > 0 && live->has_new_line && live->first_s > 0 &&
        serve_clock_s() - live->first_s > 0.001 * most_ms)
        live->cut = true;
    return !live->cut;
}

/* The prompt has been read: that is said before its first token. */
static void note_first(listener *l)
{
    sequence *j = l->sequence;
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
    if (moved && j->request->events.progress)
        sequence_record(l->shared, j, RECORD_PROGRESS, &p, sizeof p);
}

static void on_logprobs(void *user, const drey_logprob *written, const drey_logprob *top,
                        int32_t n_top)
{
    listener *l = user;
    drey_logprob all[1 + DREY_MAX_TOP];
    note_first(l);
    all[0] = *written;
    memcpy(all + 1, top, (size_t)n_top * sizeof *top);
    sequence_record(l->shared, l->sequence, RECORD_TOKEN, all, (size_t)(1 + n_top) * sizeof *all);
}

/* Counts the tokens of the prediction that came, in their order; some may be left out at a time. */
static void note_predicted(sequence *j, int32_t id)
{
    enum { LEFT_OUT = 32 };
    const int32_t *predicted = j->request->prompts.ids + j->request->prompts.n_ids;
    size_t at = j->live.at_predicted, end = at + LEFT_OUT;
    while (at < end && at < j->request->prompts.n_predicted && predicted[at] != id)
        at++;
    if (at < end && at < j->request->prompts.n_predicted) {
        j->live.n_as_predicted++;
        j->live.at_predicted = at + 1;
    }
}

static bool on_token(void *user, int32_t id)
{
    listener *l = user;
    const drey_logprob written = {.id = id};
    bool wanted = l->sequence->request->tokens.ids && !l->sequence->request->tokens.logprobs;
    if (l->sequence->request->length.n_predict == 0)
        return true;
    note_first(l);
    l->sequence->live.n_tokens++;
    note_predicted(l->sequence, id);
    return !wanted ||
           sequence_record(l->shared, l->sequence, RECORD_TOKEN, &written, sizeof written);
}

/* Verified text leaves the provisional one with the text that it joins, so that is published
 * after the step. */
static void on_event(void *user, const drey_event *event)
{
    listener *l = user;
    sequence *j = l->sequence;
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
        sequence_publish(l->shared, j);
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
static void count_text(serve_totals *total, const sequence *j, const drey_statistics *t,
                       const drey_session *session)
{
    drey_speculation speculation;
    drey_session_speculation(session, &speculation);
    total->prompt_tokens += (int64_t)sequence_n_prompt(j) - j->live.n_cached;
    total->cached_tokens += j->live.n_cached;
    total->prompt_s += t->prompt_s;
    total->predicted_tokens += t->generated_tokens;
    total->predicted_s += t->decode_s;
    total->drafts += t->drafted > 0 ? t->n_passes : 0;
    total->drafted += t->drafted;
    total->accepted += t->accepted;
    for (int i = 0; i < DREY_SPECULATION_DEPTHS; i++)
        total->depth_accepted[i] += speculation.depth_accepted[i];
    int64_t n_all = (int64_t)sequence_n_prompt(j) + t->generated_tokens;
    total->most_tokens = total->most_tokens > n_all ? total->most_tokens : n_all;
    if (t->ceiling_tokens_per_s > 0)
        total->ceiling = t->ceiling_tokens_per_s;
    double s_job = serve_clock_s() - j->began_s;
    total->sequence_s = total->sequence_s > 0 ? 0.7 * total->sequence_s + 0.3 * s_job : s_job;
}

/* Vectors of texts, each of which counts as a pass. With the lock. */
static void count_vectors(serve_totals *total, const sequence *j)
{
    total->prompt_tokens += (int64_t)j->request->prompts.n_ids;
    total->prompt_s += serve_clock_s() - j->began_s;
    total->steps += j->request->parts.n;
    total->busy_slots += j->request->parts.n;
}

static void finish(loop *l, server_slot *slot, drey_status status, const drey_error *err)
{
    shared *s = l->shared;
    sequence *j = slot->sequence;
    const drey_statistics *t = &l->statistics[slot - s->slots];
    pthread_mutex_lock(&s->lock);
    if (status == DREY_OK)
        j->live.n_cached = echo_computes(j->request) ? 0 : t->cached_tokens; /* or restored */
    if (!admin_is(j->request))
        count_text(&s->totals, j, t, slot->session);
    else if (j->request->kind == REQUEST_EMBED && status == DREY_OK)
        count_vectors(&s->totals, j);
    j->n_published = j->n_written;
    j->counts = j->live;
    j->n_shown = 0;
    j->shown_changed = false;
    j->statistics = *t;
    if (slot->session)
        drey_session_exits(slot->session, &j->exits);
    if (j->live.cut)
        j->statistics.finish = DREY_FINISH_LENGTH;
    j->status = status;
    if (err)
        j->error = *err;
    j->state = SEQUENCE_DONE;
    drey_grammar_close(&slot->grammar);
    slot->sequence = NULL;
    s->n_running--;
    pthread_mutex_unlock(&s->lock);
    event_loop_wake(s->wake);
}

/* A text that ended without a token: its prompt has been read all the same. Where none was asked
 * for, the one that the prompt's last pass gives is nobody's. */
static void end_prompt(loop *l, server_slot *slot)
{
    sequence *j = slot->sequence;
    drey_statistics *t = &l->statistics[slot - l->shared->slots];
    record_progress p = {j->live.prompt_total, j->live.prompt_total, serve_clock_s() - j->began_s};
    if (j->live.n_tokens > 0 || (t->finish != DREY_FINISH_STOP && t->finish != DREY_FINISH_LENGTH))
        return;
    if (j->request->length.n_predict == 0) {
        t->finish = DREY_FINISH_LENGTH;
        t->stop_text = 0;
        t->generated_tokens = 0;
        t->first_token_s = t->decode_s = 0;
        t->tokens_per_s = t->tokens_per_pass = t->ceiling_tokens_per_s = 0;
    }
    if (j->request->events.progress && j->live.prompt_done < p.total)
        sequence_record(l->shared, j, RECORD_PROGRESS, &p, sizeof p);
}

static void begin_sequences(loop *l);

/* A client that hangs up leaves in the middle of the others' pass, and the first that waits has the
 * place. Other texts end with the step. */
static void on_end(void *user)
{
    listener *n = user;
    loop *l = n->loop;
    server_slot *slot = &l->shared->slots[n->sequence->slot];
    if (!l->stepping || l->statistics[n->sequence->slot].finish != DREY_FINISH_INTERRUPTED)
        return;
    finish(l, slot, DREY_OK, NULL);
    begin_sequences(l);
}

static drey_status begin(loop *l, server_slot *slot, drey_error *err)
{
    const request *t = slot->sequence->request;
    int32_t i = (int32_t)(slot - l->shared->slots);
    drey_generate_options o;
    size_t n_kept = 0, n_ids;
    const int32_t *ids = sequence_prompt(slot->sequence, &n_ids);
    drey_generate_options_init(&o);
    l->listeners[i] = (listener){l, l->shared, slot->sequence, slot->session};
    l->statistics[i] = (drey_statistics){.finish = DREY_FINISH_ERROR};
    bool writes = t->length.n_predict > 0;
    o.n_predict = writes ? t->length.n_predict : 1;
    o.sampling = t->sampling.filters;
    o.sampling.seed += (uint64_t)(slot->sequence->choice % (t->n_choices / t->prompts.n));
    o.stops = t->stops.of;
    o.n_stops = t->stops.n;
    o.ignore_eos = t->length.ignore_eos;
    o.no_draft = !t->session.speculative;
    o.no_known = !t->session.keep;
    o.biases = t->sampling.biases;
    o.n_biases = t->sampling.n_biases;
    o.on_text = writes ? on_text : NULL;
    o.on_token = on_token;
    o.on_logprobs = writes && t->tokens.logprobs ? on_logprobs : NULL;
    o.after_filters = t->tokens.filtered;
    o.n_top = t->tokens.n_top;
    o.on_event = writes && t->events.provisional ? on_event : NULL;
    o.on_end = on_end;
    o.user = &l->listeners[i];
    if (t->grammar.n > 0)
        TRY(drey_grammar_open(&slot->grammar, l->shared->options->model, t->grammar.kind,
                              t->grammar.text, t->grammar.n, err));
    o.grammar = slot->grammar;
    o.special = t->reply.special;
    if (!t->session.keep)
        drey_session_reset(slot->session);
    if (t->prompts.echo)
        TRY(echo_prompt(l->shared, slot->sequence, slot->session, err));
    drey_status status = drey_session_sync(slot->session, ids, n_ids, &n_kept, err);
    if (status == DREY_OK)
        status = drey_session_predict(slot->session, t->prompts.ids + t->prompts.n_ids,
                                      t->prompts.n_predicted, err);
    if (status == DREY_OK)
        status = drey_session_begin(slot->session, &o, &l->statistics[i], err);
    slot->sequence->live.n_cached = (int64_t)n_kept;
    return status;
}

/* Returns how many tokens of its n_ids the session would not compute again. */
static size_t common(const server_slot *slot, const sequence *j, size_t *n_ids)
{
    const int32_t *ids;
    size_t n = 0, n_prompt;
    const int32_t *prompt = sequence_prompt(j, &n_prompt);
    drey_session_timeline(slot->session, &ids, n_ids);
    while (n < *n_ids && n < n_prompt && ids[n] == prompt[n])
        n++;
    return n;
}

/* The idle session that the sequence may have: the one it asks for; else the one that knows most
 * of its prompt, if most of what that one knows is used; else the one that was left longest ago,
 * which copies what others know. NULL: it has to wait. */
static server_slot *choose_slot(shared *s, const sequence *j)
{
    const request *t = j->request;
    server_slot *best = NULL, *oldest = NULL;
    size_t most = 0;
    for (int32_t i = 0; i < s->options->n_sessions; i++) {
        server_slot *slot = &s->slots[i];
        if (slot->sequence || (t->session.wanted >= 0 && t->session.wanted != i))
            continue;
        size_t n_all = 0, n = t->session.keep ? common(slot, j, &n_all) : 0;
        if (n > most && 2 * n >= n_all) {
            best = slot;
            most = n;
        }
        if (!oldest || slot->used < oldest->used)
            oldest = slot;
    }
    return best ? best : oldest;
}

/* The first in the queue that a session is idle for takes it; NULL: nobody does. With the lock. */
static server_slot *take_sequence(loop *l)
{
    shared *s = l->shared;
    for (int32_t i = 0; i < s->n_queued; i++) {
        sequence *j = s->queue[i];
        bool alone = admin_is(j->request) || echo_computes(j->request);
        server_slot *slot = l->stepping && alone ? NULL : choose_slot(s, j);
        if (!slot) /* or it has to wait for the end of the others' pass */
            continue;
        for (s->n_queued--; i < s->n_queued; i++)
            s->queue[i] = s->queue[i + 1];
        slot->sequence = j;
        slot->used = ++l->n_begun;
        j->state = SEQUENCE_RUNNING;
        j->slot = (int32_t)(slot - s->slots);
        j->began_s = serve_clock_s();
        s->n_running++;
        return slot;
    }
    return NULL;
}

static void note_progress(loop *l, server_slot *slot)
{
    sequence *j = slot->sequence;
    record_progress p = {.s = serve_clock_s() - j->began_s};
    drey_session_prompt(slot->session, &p.done, &p.total);
    bool moved = p.done != j->live.prompt_done || p.total != j->live.prompt_total;
    j->live.prompt_done = p.done;
    j->live.prompt_total = p.total;
    if (moved && j->request->events.progress && j->live.n_tokens == 0)
        sequence_record(l->shared, j, RECORD_PROGRESS, &p, sizeof p);
}

/* A part of an admin request. */
static void do_admin(loop *l, server_slot *slot)
{
    drey_error err = {0};
    bool over;
    drey_status status = admin_do(l->shared, slot->sequence, slot->session, &over, &err);
    if (status != DREY_OK || over)
        finish(l, slot, status, &err);
}

/* All that can begin does. */
static void begin_sequences(loop *l)
{
    shared *s = l->shared;
    for (;;) {
        drey_error err = {0};
        pthread_mutex_lock(&s->lock);
        server_slot *slot = take_sequence(l);
        pthread_mutex_unlock(&s->lock);
        if (!slot)
            return;
        if (admin_is(slot->sequence->request)) {
            l->statistics[slot - s->slots] = (drey_statistics){0};
            do_admin(l, slot);
            continue;
        }
        drey_status status = begin(l, slot, &err);
        if (status != DREY_OK) {
            finish(l, slot, status, &err);
            continue;
        }
        note_progress(l, slot); /* how long the prompt is, before any of it is read */
        sequence_publish(s, slot->sequence);
        /* A text begins without what came before it: a client that cancelled since is heard now. */
        pthread_mutex_lock(&s->lock);
        if (slot->sequence->cancelled)
            drey_session_cancel(slot->session);
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
    s->totals.busy_slots += n_steps * s->n_running;
    pthread_mutex_unlock(&s->lock);
}

/* Publishes what a step has brought. */
static void publish(loop *l, int n_steps)
{
    shared *s = l->shared;
    int32_t n_slots = s->options->n_sessions;
    note_totals(l, n_steps);
    for (int32_t i = 0; i < n_slots; i++) {
        server_slot *slot = &s->slots[i];
        if (!slot->sequence)
            continue;
        if (admin_is(slot->sequence->request)) {
            do_admin(l, slot);
            continue;
        }
        if (!drey_session_is_writing(slot->session)) {
            end_prompt(l, slot);
            finish(l, slot, DREY_OK, NULL);
            continue;
        }
        note_progress(l, slot);
        sequence_publish(s, slot->sequence);
    }
}

/* A part that cannot be read may be asked for by one text alone, an expert of a mixture: each
 * takes its own step, and only those end that cannot. */
static void step_apart(loop *l)
{
    shared *s = l->shared;
    for (int32_t i = 0; i < s->options->n_sessions; i++) {
        server_slot *slot = &s->slots[i];
        const sequence *j = slot->sequence;
        drey_error err = {0};
        bool done;
        if (!j || !drey_session_is_writing(slot->session))
            continue;
        l->stepping = true;
        drey_status status = drey_session_step(slot->session, &done, &err);
        l->stepping = false;
        if (status == DREY_OK || slot->sequence != j) /* its client may have left */
            continue;
        drey_session_end(slot->session);
        finish(l, slot, status, &err);
    }
}

/* Returns whether a text is being written; else all that runs are admin requests. */
static bool anybody_writes(const loop *l)
{
    const shared *s = l->shared;
    for (int32_t i = 0; i < s->options->n_sessions; i++)
        if (s->slots[i].sequence && !admin_is(s->slots[i].sequence->request))
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
        server_slot *slot = &s->slots[i];
        if (!slot->sequence)
            continue;
        drey_session_end(slot->session);
        finish(l, slot, why->code, why);
    }
    pthread_mutex_lock(&s->lock);
    while (s->n_queued > 0)
        sequence_unqueue(s, s->queue[0], why->code, why->message);
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
        s->slots[i].session = session;
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
    drey_session *session = s->slots[0].session;
    bool good = drey_session_sync(session, ids, 1, NULL, NULL) == DREY_OK &&
                drey_session_begin(session, &o, NULL, NULL) == DREY_OK;
    while (good && !done && drey_session_step(session, &done, NULL) == DREY_OK)
        ;
    drey_session_reset(session);
    pthread_mutex_lock(&s->lock);
    s->ready = true;
    pthread_mutex_unlock(&s->lock);
    event_loop_wake(s->wake);
}

/* Writes a kept beginning to its folder while there are no requests. Returns how many are left to
 * write. */
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
        begin_sequences(l);
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
        drey_session *session = s->slots[i].session;
        s->slots[i].session = NULL;
        pthread_mutex_unlock(&s->lock);
        drey_session_close(&session);
    }
    pthread_mutex_lock(&s->lock);
    s->over = true;
    pthread_mutex_unlock(&s->lock);
    event_loop_wake(s->wake);
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
