/* Tasks, jobs and records: see jobs.h. */
#include "serve/jobs.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "serve/net/event_loop.h"

double serve_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const int32_t *job_prompt(const job *j, size_t *n)
{
    const task *t = j->task;
    int32_t i = t->prompts.n ? j->choice / (t->n_choices / t->prompts.n) : 0;
    size_t from = i > 0 ? t->prompts.end[i - 1] : 0;
    *n = t->prompts.end[i] - from;
    return t->prompts.ids + from;
}

size_t job_n_prompt(const job *j)
{
    size_t n;
    job_prompt(j, &n);
    return n;
}

static task *free_task(shared *s)
{
    for (int32_t i = 0; i < s->n_tasks; i++)
        if (!s->tasks[i].used)
            return &s->tasks[i];
    return NULL;
}

static void clear_task(task *t)
{
    const shared *s = t->shared;
    int32_t *ids = t->prompts.ids;
    char *grammar = t->grammar.text;
    memset(t, 0, sizeof *t);
    t->shared = s;
    t->prompts.ids = ids;
    t->grammar.text = grammar;
    t->used = true;
}

task *task_take(shared *s, int32_t n_choices)
{
    task *t = free_task(s);
    int32_t n = 0;
    if (!t)
        return NULL;
    for (int32_t i = 0; i < s->n_jobs; i++)
        n += s->jobs[i].state == JOB_FREE && !s->jobs[i].task;
    if (n < n_choices)
        return NULL;
    clear_task(t);
    t->n_choices = n_choices;
    n = 0;
    for (int32_t i = 0; i < s->n_jobs && n < n_choices; i++) {
        job *j = &s->jobs[i];
        if (j->state != JOB_FREE || j->task)
            continue;
        char *records = j->records;
        size_t capacity = j->capacity;
        *j = (job){.task = t, .choice = n, .seat = -1, .records = records, .capacity = capacity};
        t->jobs[n++] = j;
    }
    return t;
}

void task_keep_own(task *t, size_t n)
{
    job *j = t->jobs[0];
    t->n_own = j->n_read = j->n_published = j->n_written = n;
}

void task_queue(shared *s, task *t, bool keep)
{
    for (int32_t i = 0; i < t->n_choices; i++) {
        job *j = t->jobs[i];
        j->state = JOB_QUEUED;
        j->keep = keep;
        j->queued_s = serve_clock_s();
        s->queue[s->n_queued++] = j;
    }
    pthread_cond_signal(&s->work);
}

void job_unqueue(shared *s, job *j, drey_status why, const char *message)
{
    int32_t at = 0;
    while (at < s->n_queued && s->queue[at] != j)
        at++;
    for (s->n_queued -= at < s->n_queued; at < s->n_queued; at++)
        s->queue[at] = s->queue[at + 1];
    j->state = JOB_DONE;
    j->status = j->error.code = why;
    snprintf(j->error.message, sizeof j->error.message, "%s", message);
}

static void count_cancelled(shared *s, const job *j)
{
    serve_totals *t = &s->totals;
    *(j->state == JOB_QUEUED    ? &t->cancelled_queued
      : j->counts.n_tokens == 0 ? &t->cancelled_prompt
                                : &t->cancelled_writing) += 1;
}

void task_abandon(shared *s, task *t)
{
    for (int32_t i = 0; i < t->n_choices; i++) {
        job *j = t->jobs[i];
        if ((j->state == JOB_QUEUED || j->state == JOB_RUNNING) && !j->cancelled)
            count_cancelled(s, j);
        j->cancelled = true;
        if (j->state == JOB_QUEUED)
            job_unqueue(s, j, DREY_ERR_CANCELLED, "cancelled");
        else if (j->state == JOB_RUNNING)
            drey_session_cancel(s->seats[j->seat].session);
    }
}

bool task_release(shared *s, task *t)
{
    (void)s;
    for (int32_t i = 0; i < t->n_choices; i++)
        if (t->jobs[i]->state == JOB_QUEUED || t->jobs[i]->state == JOB_RUNNING)
            return false;
    for (int32_t i = 0; i < t->n_choices; i++) {
        t->jobs[i]->state = JOB_FREE;
        t->jobs[i]->task = NULL;
    }
    t->used = false;
    return true;
}

/* Forgets what was read. */
static void make_room(shared *s, job *j)
{
    pthread_mutex_lock(&s->lock);
    if (!j->keep && j->n_read > 0) {
        memmove(j->records, j->records + j->n_read, j->n_written - j->n_read);
        j->n_written -= j->n_read;
        j->n_published -= j->n_read;
        j->n_read = 0;
    }
    pthread_mutex_unlock(&s->lock);
}

static bool append(shared *s, job *j, record_kind kind, const char *bytes, size_t n)
{
    const record_head head = {.kind = (uint16_t)kind, .n = (uint16_t)n};
    if (j->capacity - j->n_written < sizeof head + n)
        make_room(s, j);
    if (j->overflow || j->capacity - j->n_written < sizeof head + n) {
        j->overflow = true;
        return false;
    }
    memcpy(j->records + j->n_written, &head, sizeof head);
    memcpy(j->records + j->n_written + sizeof head, bytes, n);
    j->n_written += sizeof head + n;
    return true;
}

bool job_record(shared *s, job *j, record_kind kind, const void *bytes, size_t n)
{
    const char *from = bytes;
    bool good = true;
    /* Texts may be cut, between two characters. */
    while (kind == RECORD_TEXT && n > RECORD_MOST_BYTES && good) {
        size_t cut = RECORD_MOST_BYTES;
        while (cut > RECORD_MOST_BYTES - 4 && (from[cut] & 0xC0) == 0x80)
            cut--;
        good = append(s, j, kind, from, cut);
        from += cut;
        n -= cut;
    }
    return good && append(s, j, kind, from, n);
}

void job_publish(shared *s, job *j)
{
    pthread_mutex_lock(&s->lock);
    j->n_published = j->n_written;
    j->counts = j->live;
    if (j->n_shown != j->n_ahead || memcmp(j->shown, j->ahead, j->n_ahead) != 0) {
        memcpy(j->shown, j->ahead, j->n_ahead);
        j->n_shown = j->n_ahead;
        j->shown_changed = true;
    }
    pthread_mutex_unlock(&s->lock);
    event_loop_wake(s->wake);
}
