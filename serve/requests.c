/* Tasks, sequences and records: see requests.h. */
#include "serve/requests.h"

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

const int32_t *sequence_prompt(const sequence *j, size_t *n)
{
    const request *t = j->request;
    int32_t i = t->prompts.n ? j->choice / (t->n_choices / t->prompts.n) : 0;
    size_t from = i > 0 ? t->prompts.end[i - 1] : 0;
    *n = t->prompts.end[i] - from;
    return t->prompts.ids + from;
}

size_t sequence_n_prompt(const sequence *j)
{
    size_t n;
    sequence_prompt(j, &n);
    return n;
}

static request *free_request(shared *s)
{
    for (int32_t i = 0; i < s->n_requests; i++)
        if (!s->requests[i].used)
            return &s->requests[i];
    return NULL;
}

static void clear_request(request *t)
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

request *request_take(shared *s, int32_t n_choices)
{
    request *t = free_request(s);
    int32_t n = 0;
    if (!t)
        return NULL;
    for (int32_t i = 0; i < s->n_sequences; i++)
        n += s->sequences[i].state == SEQUENCE_FREE && !s->sequences[i].request;
    if (n < n_choices)
        return NULL;
    clear_request(t);
    t->n_choices = n_choices;
    n = 0;
    for (int32_t i = 0; i < s->n_sequences && n < n_choices; i++) {
        sequence *j = &s->sequences[i];
        if (j->state != SEQUENCE_FREE || j->request)
            continue;
        char *records = j->records;
        size_t capacity = j->capacity;
        *j = (sequence){
            .request = t, .choice = n, .slot = -1, .records = records, .capacity = capacity};
        t->sequences[n++] = j;
    }
    return t;
}

void request_keep_own(request *t, size_t n)
{
    sequence *j = t->sequences[0];
    t->n_own = j->n_read = j->n_published = j->n_written = n;
}

void request_queue(shared *s, request *t, bool keep)
{
    for (int32_t i = 0; i < t->n_choices; i++) {
        sequence *j = t->sequences[i];
        j->state = SEQUENCE_QUEUED;
        j->keep = keep;
        j->queued_s = serve_clock_s();
        s->queue[s->n_queued++] = j;
    }
    pthread_cond_signal(&s->work);
}

void sequence_unqueue(shared *s, sequence *j, drey_status why, const char *message)
{
    int32_t at = 0;
    while (at < s->n_queued && s->queue[at] != j)
        at++;
    for (s->n_queued -= at < s->n_queued; at < s->n_queued; at++)
        s->queue[at] = s->queue[at + 1];
    j->state = SEQUENCE_DONE;
    j->status = j->error.code = why;
    snprintf(j->error.message, sizeof j->error.message, "%s", message);
}

static void count_cancelled(shared *s, const sequence *j)
{
    serve_totals *t = &s->totals;
    *(j->state == SEQUENCE_QUEUED ? &t->cancelled_queued
      : j->counts.n_tokens == 0   ? &t->cancelled_prompt
                                  : &t->cancelled_writing) += 1;
}

void request_abandon(shared *s, request *t)
{
    for (int32_t i = 0; i < t->n_choices; i++) {
        sequence *j = t->sequences[i];
        if ((j->state == SEQUENCE_QUEUED || j->state == SEQUENCE_RUNNING) && !j->cancelled)
            count_cancelled(s, j);
        j->cancelled = true;
        if (j->state == SEQUENCE_QUEUED)
            sequence_unqueue(s, j, DREY_ERR_CANCELLED, "cancelled");
        else if (j->state == SEQUENCE_RUNNING)
            drey_session_cancel(s->slots[j->slot].session);
    }
}

bool request_release(shared *s, request *t)
{
    (void)s;
    for (int32_t i = 0; i < t->n_choices; i++)
        if (t->sequences[i]->state == SEQUENCE_QUEUED || t->sequences[i]->state == SEQUENCE_RUNNING)
            return false;
    for (int32_t i = 0; i < t->n_choices; i++) {
        t->sequences[i]->state = SEQUENCE_FREE;
        t->sequences[i]->request = NULL;
    }
    t->used = false;
    return true;
}

/* Forgets what was read. */
static void make_room(shared *s, sequence *j)
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

static bool append(shared *s, sequence *j, record_kind kind, const char *bytes, size_t n)
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

bool sequence_record(shared *s, sequence *j, record_kind kind, const void *bytes, size_t n)
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

void sequence_publish(shared *s, sequence *j)
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
