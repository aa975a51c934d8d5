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

#include "drey/drey_plan.h"
#include "drey/drey_session.h"
#include "drey/reply.h"
#include "serve/server.h"

enum {
    TASK_MOST_CHOICES = 8,
    TASK_MOST_STOPS = 16,
    TASK_STOP_BYTES = 2048,
    TASK_MOST_BIASES = 1024,
    TASK_GRAMMAR_BYTES = 64 << 10,
    TASK_NOT_HELD_BYTES = 768,
    TASK_MOST_MESSAGES = 1024,
    TASK_MOST_BREAKERS = 32,
    TASK_BREAKER_BYTES = 1024,
    TASK_FILE_BYTES = 256,
    TASK_MOST_FIELDS = 32,
    TASK_FIELD_BYTES = 1024
};

/* The last ones write no text (chores.h). */
typedef enum task_kind {
    TASK_CHAT,
    TASK_COMPLETION,
    TASK_NATIVE,
    TASK_SAVE,
    TASK_RESTORE,
    TASK_ERASE,
    TASK_EMBED
} task_kind;

typedef struct job job;

typedef struct task {
    bool used;
    bool abandoned; /* it is released once its jobs are done */
    task_kind kind;
    bool stream, logprobs, tokens, ignore_eos;
    struct {
        bool usage, progress, timings, provisional, verbose;
    } events; /* of a stream, what else they have; verbose: of any answer */
    int32_t n_choices, n_top;
    int32_t n_predict; /* tokens to write; 0: the prompt is computed, and kept */
    struct {
        int32_t most_ms; /* a text of several lines ends when it took longer; <= 0: never */
        int32_t indent;  /* and before a line that begins with fewer blanks */
    } lines;
    struct {
        int32_t wanted;   /* -1: any */
        bool keep;        /* what is known of the prompt is not computed */
        bool speculative; /* it may draft */
    } session;
    struct {
        drey_sampling of;                         /* with these: */
        drey_penalties penalties;                 /* their breakers may be those below */
        const char *breakers[TASK_MOST_BREAKERS]; /* in text */
        char text[TASK_BREAKER_BYTES];
        bool shares;                        /* log-probabilities are of what the filters leave */
        drey_bias biases[TASK_MOST_BIASES]; /* [n_biases] */
        int32_t n_biases;
    } sampling;
    struct {
        char text[TASK_FIELD_BYTES];
        const char *of[TASK_MOST_FIELDS]; /* [n], in text: members of /completion's answer */
        size_t n;                         /* 0: all */
    } fields;
    struct {
        char text[TASK_STOP_BYTES];
        const char *of[TASK_MOST_STOPS]; /* [n], in text */
        size_t n;
    } stops;
    struct {
        char *text; /* [n] of TASK_GRAMMAR_BYTES; n = 0: any text */
        size_t n;
        drey_grammar_kind kind;
        char not_held[TASK_NOT_HELD_BYTES]; /* places; "": all is held */
    } grammar;
    int32_t *ids; /* [n_context]: all prompts, one after the other */
    size_t n_ids;
    struct {
        size_t end[TASK_MOST_CHOICES]; /* [n], in ids */
        int32_t n;                     /* each has n_choices / n of the choices */
        size_t n_predicted;            /* ids after them: what the text is expected to repeat */
        bool echo;                     /* a choice begins with its prompt (echo.h) */
    } prompts;
    struct {
        int32_t end[TASK_MOST_MESSAGES]; /* [n], in ids; -1: not known */
        int32_t n;
    } parts;               /* the first messages of a chat, or the texts that become vectors */
    drey_reply_form reply; /* how a chat's answer is taken apart */
    struct {
        char file[TASK_FILE_BYTES]; /* of a session that is saved or restored */
        int32_t norm;               /* of vectors, as drey_embed_normalize */
        bool base64, native;        /* their form */
    } chore;
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
    size_t n_as_predicted;          /* tokens of the prediction that came */
    size_t at_predicted;            /* after the last of them */
    double first_s;                 /* when the first token came; 0: not yet */
    bool has_new_line, line_begins; /* line_begins: so far it has n_blanks */
    bool cut;                       /* the text ended because of its lines (task.lines) */
    int32_t n_blanks;
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
    drey_exits exits;           /* the same */
    drey_status status;
    drey_error error;
};

typedef enum record_kind {
    RECORD_TEXT,
    RECORD_TOKEN,
    RECORD_PROGRESS,
    RECORD_CHORE,
    RECORD_VECTOR
} record_kind;

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

/* What became of a session: RECORD_CHORE. */
typedef struct record_chore {
    int64_t n_tokens, n_bytes;
    double s;
} record_chore;

/* Numbers of a vector, from its number `from` on: RECORD_VECTOR. */
enum { RECORD_MOST_NUMBERS = 1020 }; /* whole groups of three bytes, for base64 */
typedef struct record_vector {
    int32_t input, row; /* row: of an input with a vector for each token */
    int32_t from, n, n_all;
    float numbers[RECORD_MOST_NUMBERS];
} record_vector;

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
    struct past *past; /* the network thread's: responses that can be continued */
} shared;

double serve_clock_s(void);
/* The prompt of a job: [*n] ids. */
const int32_t *job_prompt(const job *j, size_t *n);
size_t job_n_prompt(const job *j);

/* ---- With the lock held ---- */

/* A task with n free jobs; NULL: there are none. */
task *task_take(shared *s, int32_t n_choices);
/* Queues its jobs. keep: their records stay when they have been read. */
void task_queue(shared *s, task *t, bool keep);
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
