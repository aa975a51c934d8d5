/* What the two threads of the server share: tasks, their jobs, and the records of what jobs write.
 *
 *   a request ---> task: what is asked for, its prompt as ids; filled by the network thread, then
 *                  left as it is until the last of its jobs is free
 *                    |
 *                    +--> job, one for each choice (n)
 *
 *   FREE -- network: job_take --> QUEUED -- worker: a session is free --> RUNNING
 *     ^                              |                                       |
 *     |                              | cancelled                             | the text ended
 *     +--- network: job_release --- DONE <-----------------------------------+
 *
 * A job's records are in its own memory, one after the other; the worker writes after n_published
 * without the lock, and publishes with it. The network thread reads published ones:
 *
 *   | read, may be forgotten | published | being written |   room   |
 *   0                        n_read      n_published     n_written  capacity
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "serve/server.h"

enum {
    TASK_MOST_CHOICES = 8,
    TASK_MOST_STOPS = 16,
    TASK_STOP_BYTES = 2048,
    TASK_MOST_BIASES = 1024,
    TASK_GRAMMAR_BYTES = 64 << 10
};

typedef enum task_kind { TASK_CHAT, TASK_COMPLETION, TASK_NATIVE } task_kind;

typedef struct job job;

typedef struct task {
    bool used;
    bool abandoned; /* it is released once its jobs are done */
    task_kind kind;
    bool stream, usage, progress, logprobs, provisional, tokens, timings, ignore_eos, keep,
        speculative;
    int32_t n_choices, n_top;
    int32_t n_predict; /* tokens to write; 0: the prompt is computed, and kept */
    int32_t seat;      /* the session that is wanted; -1: any */
    drey_sampling sampling;
    struct {
        drey_bias of[TASK_MOST_BIASES]; /* [n] */
        int32_t n;
    } biases;
    struct {
        char text[TASK_STOP_BYTES];
        const char *of[TASK_MOST_STOPS]; /* [n], in text */
        size_t n;
    } stops;
    struct {
        char *text; /* [n] of TASK_GRAMMAR_BYTES; n = 0: any text */
        size_t n;
        drey_grammar_kind kind;
    } grammar;
    int32_t *ids; /* [n_context] */
    size_t n_ids;
    struct {
        char text[40];
        int64_t created; /* seconds since 1970 */
    } id;
    job *jobs[TASK_MOST_CHOICES]; /* [n_choices] */
} task;

typedef enum job_state { JOB_FREE, JOB_QUEUED, JOB_RUNNING, JOB_DONE } job_state;

/* How far a text has come. */
typedef struct job_counts {
    int64_t n_cached; /* tokens of the prompt that were not computed */
    int64_t prompt_done, prompt_total, n_tokens;
    double first_s; /* when the first token came; 0: not yet */
} job_counts;

struct job {
    job_state state;
    task *task;
    int32_t choice;
    int32_t seat;   /* while it runs, and the last one afterwards */
    bool cancelled; /* nobody wants it any more, or the server stops */
    char *records;  /* [capacity] */
    size_t capacity, n_written, n_published, n_read;
    bool keep;                        /* what was read is read again: nothing is forgotten */
    bool overflow;                    /* there was no room */
    char shown[DREY_MAX_PROVISIONAL]; /* [n_shown]: what follows the published text */
    size_t n_shown;
    bool shown_changed;
    char ahead[DREY_MAX_PROVISIONAL]; /* [n_ahead]: the worker's, after the written one */
    size_t n_ahead;
    double queued_s, began_s;
    job_counts live, counts;    /* the worker's, and as published */
    drey_statistics statistics; /* when it is done */
    drey_status status;
    drey_error error;
};

typedef enum record_kind { RECORD_TEXT, RECORD_TOKEN, RECORD_PROGRESS } record_kind;

/* In front of each record's bytes. A token's are drey_logprob, the one written first; progress is a
 * record_progress. */
typedef struct record_head {
    uint16_t kind, n;
} record_head;
enum { RECORD_MOST_BYTES = 4096 };
typedef struct record_progress {
    int64_t done, total;
    double s;
} record_progress;

/* What the server has done since it began. */
typedef struct serve_totals {
    int64_t prompt_tokens, cached_tokens, predicted_tokens, most_tokens;
    double prompt_s, predicted_s;
    int64_t drafts, drafted, accepted;
    int64_t depth_accepted[DREY_SPECULATION_DEPTHS];
    int64_t steps, busy_seats; /* of the engine, and sessions that took part in them */
    int64_t requests, refused, bad, cancelled_queued, cancelled_prompt, cancelled_writing;
    int64_t too_slow; /* clients */
    double ceiling;   /* of the last text, tokens per second */
    double job_s;     /* a job's usual time, of late */
    drey_counts engine;
    drey_prefixes prefixes;
} serve_totals;

/* A session of the engine, which jobs take in turns. */
typedef struct seat {
    drey_session *session;
    drey_grammar *grammar; /* of the job's text; NULL: there is none */
    job *job;              /* NULL: it is idle */
    int64_t used;          /* when, counted in jobs */
    int64_t n_timeline;
} seat;

typedef struct shared {
    const serve_options *options;
    pthread_mutex_t lock;
    pthread_cond_t work;
    int wake; /* eventfd: something has been published */
    task *tasks;
    job *jobs;
    int32_t n_tasks, n_jobs;
    job **queue; /* [n_jobs]: the first n_queued wait, the oldest first */
    int32_t n_queued;
    seat seats[DREY_MAX_SESSIONS];
    int32_t n_running;
    bool ready;    /* the weights have been read */
    bool stopping; /* the worker ends once nothing waits or runs */
    bool over;     /* it has ended */
    drey_plan plan;
    int64_t began; /* seconds since 1970 */
    serve_totals totals;
    drey_error failed; /* code DREY_OK: nothing did */
} shared;

double serve_clock_s(void);

/* ---- With the lock held ---- */

/* A task with n free jobs; NULL: there are none. */
task *task_take(shared *s, int32_t n_choices);
/* Queues its jobs. */
void task_queue(shared *s, task *t);
/* Nobody wants it any more: its jobs are cancelled, wherever they are. */
void task_abandon(shared *s, task *t);
/* Gives back a task whose jobs are all done; false: some are not. */
bool task_release(shared *s, task *t);
/* Takes it out of the queue, and ends it. */
void job_unqueue(shared *s, job *j, drey_status why, const char *message);

/* ---- The worker's, without it ---- */

/* False: there is no room, or not enough. */
bool job_record(shared *s, job *j, record_kind kind, const void *bytes, size_t n);
/* The network thread may read what was written. */
void job_publish(shared *s, job *j);
