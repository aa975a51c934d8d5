/* State that the two threads of the server share: requests, their sequences, and the records that
 * sequences write.
 *
 *   request: filled by the network thread, then left as it is until the last sequence is free
 *      |
 *      +--> sequence, one for each choice (n)
 *
 *   FREE -- network: request_take --> QUEUED -- worker: a slot is free --> RUNNING
 *     ^                                  |                                    |
 *     |                                  | cancelled                          | the text ended
 *     +--- network: request_release --- DONE <--------------------------------+
 *
 * A sequence's records are in its own memory, one after the other; the worker writes after
 * n_published without the lock, and publishes with it. The network thread reads published ones:
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
    REQUEST_MOST_CHOICES = 8,
    REQUEST_MOST_STOPS = 16,
    REQUEST_STOP_BYTES = 2048,
    REQUEST_MOST_BIASES = 1024,
    REQUEST_GRAMMAR_BYTES = 64 << 10,
    REQUEST_NOT_HELD_BYTES = 768,
    REQUEST_MOST_MESSAGES = 1024,
    REQUEST_MOST_BREAKERS = 32,
    REQUEST_BREAKER_BYTES = 1024,
    REQUEST_FILE_BYTES = 256,
    REQUEST_MOST_FIELDS = 32,
    REQUEST_FIELD_BYTES = 1024
};

/* The last ones write no text (admin.h). */
typedef enum request_kind {
    REQUEST_CHAT,
    REQUEST_COMPLETION,
    REQUEST_NATIVE,
    REQUEST_SAVE,
    REQUEST_RESTORE,
    REQUEST_ERASE,
    REQUEST_EMBED
} request_kind;

typedef struct sequence sequence;

/* Parts of a stream's events besides text; verbose: of any answer. */
typedef struct event_request {
    bool usage, progress, timings, provisional, verbose;
} event_request;

/* Limits of a text's length. */
typedef struct length_request {
    int32_t n_predict; /* tokens to write; 0: the prompt is computed, and kept */
    int32_t most_ms;   /* a text of several lines ends when it took longer; <= 0: never */
    int32_t indent;    /* and before a line that begins with fewer blanks */
    bool ignore_eos;
} length_request;

/* The session that writes it. */
typedef struct session_request {
    int32_t wanted;   /* -1: any */
    bool keep;        /* known tokens of the prompt are not computed */
    bool speculative; /* it may draft */
} session_request;

typedef struct sampling_request {
    drey_sampling filters;                       /* with these: */
    drey_penalties penalties;                    /* their breakers may be those below */
    const char *breakers[REQUEST_MOST_BREAKERS]; /* in text */
    char text[REQUEST_BREAKER_BYTES];
    drey_bias biases[REQUEST_MOST_BIASES]; /* [n_biases] */
    int32_t n_biases;
} sampling_request;

/* Probabilities of tokens, and their ids. */
typedef struct token_request {
    bool ids, logprobs;
    bool filtered; /* log-probabilities are of what the filters leave */
    int32_t n_top;
} token_request;

/* Members of /completion's answer. */
typedef struct field_request {
    char text[REQUEST_FIELD_BYTES];
    const char *of[REQUEST_MOST_FIELDS]; /* [n], in text */
    size_t n;                            /* 0: all */
} field_request;

typedef struct stop_request {
    char text[REQUEST_STOP_BYTES];
    const char *of[REQUEST_MOST_STOPS]; /* [n], in text */
    size_t n;
} stop_request;

typedef struct grammar_request {
    char *text; /* [n] of REQUEST_GRAMMAR_BYTES; n = 0: any text */
    size_t n;
    drey_grammar_kind kind;
    char not_held[REQUEST_NOT_HELD_BYTES]; /* places; "": all is held */
} grammar_request;

typedef struct prompt_request {
    int32_t *ids; /* [n_context]: all prompts, one after the other */
    size_t n_ids;
    size_t end[REQUEST_MOST_CHOICES]; /* [n], in ids */
    int32_t n;                        /* each has n_choices / n of the choices */
    size_t n_predicted;               /* ids after them: what the text is expected to repeat */
    bool echo;                        /* a choice begins with its prompt (prompt_echo.h) */
} prompt_request;

/* The first messages of a chat, or the texts that become vectors. */
typedef struct part_ends {
    int32_t end[REQUEST_MOST_MESSAGES]; /* [n], in ids; -1: not known */
    int32_t n;
} part_ends;

/* A request that writes no text (admin.h). */
typedef struct admin_request {
    char file[REQUEST_FILE_BYTES]; /* file of a session that is saved or restored */
    int32_t norm;                  /* norm of vectors, as drey_embed_normalize */
    bool base64, native;           /* their form */
} admin_request;

typedef struct request_id {
    char text[40];
    int64_t created; /* seconds since 1970 */
} request_id;

typedef struct request {
    const struct shared *shared; /* state that it is part of */
    bool used;
    bool abandoned; /* it is released once its sequences are done */
    request_kind kind;
    bool stream;
    event_request events;
    length_request length;
    session_request session;
    sampling_request sampling;
    token_request tokens;
    field_request fields;
    stop_request stops;
    grammar_request grammar;
    prompt_request prompts;
    part_ends parts;
    drey_reply_form reply; /* form by which a chat's answer is taken apart */
    admin_request admin;
    request_id id;
    size_t n_own; /* bytes of the serializer at the front of the first sequence's records */
    int32_t n_choices;
    sequence *sequences[REQUEST_MOST_CHOICES]; /* [n_choices] */
} request;

typedef enum sequence_state {
    SEQUENCE_FREE,
    SEQUENCE_QUEUED,
    SEQUENCE_RUNNING,
    SEQUENCE_DONE
} sequence_state;

/* Progress of a text. */
typedef struct sequence_counts {
    int64_t n_cached; /* tokens of the prompt that were not computed */
    int64_t prompt_done, prompt_total, n_tokens;
    size_t n_as_predicted;          /* tokens of the prediction that came */
    size_t at_predicted;            /* after the last of them */
    double first_s;                 /* when the first token came; 0: not yet */
    bool has_new_line, line_begins; /* line_begins: so far it has n_blanks */
    bool cut;                       /* the text ended because of its lines (length_request) */
    int32_t n_blanks;
} sequence_counts;

struct sequence {
    sequence_state state;
    request *request;
    int32_t choice;
    int32_t slot;   /* while it runs, and the last one afterwards */
    bool cancelled; /* nobody wants it any more, or the server stops */
    char *records;  /* [capacity] */
    size_t capacity, n_written, n_published, n_read;
    bool keep;     /* records that were read are read again: nothing is forgotten */
    bool overflow; /* there was no room */
    char shown[DREY_MAX_PROVISIONAL]; /* [n_shown]: what follows the published text */
    size_t n_shown;
    bool shown_changed;
    char ahead[DREY_MAX_PROVISIONAL]; /* [n_ahead]: the worker's, after the written one */
    size_t n_ahead;
    double queued_s, began_s;
    sequence_counts live, counts; /* the worker's, and as published */
    drey_statistics statistics;   /* when it is done */
    drey_exits exits;             /* the same */
    drey_status status;
    drey_error error;
};

typedef enum record_kind {
    RECORD_TEXT,
    RECORD_TOKEN,
    RECORD_PROGRESS,
    RECORD_ADMIN,
    RECORD_VECTOR
} record_kind;

/* Head in front of each record's bytes. A token's bytes are drey_logprob, the one written first;
 * progress is a record_progress. */
typedef struct record_head {
    uint16_t kind, n;
} record_head;
enum { RECORD_MOST_BYTES = 4096 };
typedef struct record_progress {
    int64_t done, total;
    double s;
} record_progress;

/* Result of an action on a session: RECORD_ADMIN. */
typedef struct record_admin {
    int64_t n_tokens, n_bytes;
    double s;
} record_admin;

/* Numbers of a vector, from its number `from` on: RECORD_VECTOR. */
enum { RECORD_MOST_NUMBERS = 1020 }; /* whole groups of three bytes, for base64 */
typedef struct record_vector {
    int32_t input, row; /* row: of an input with a vector for each token */
    int32_t from, n, n_all;
    float numbers[RECORD_MOST_NUMBERS];
} record_vector;

/* Counts of the server since it began. */
typedef struct serve_totals {
    int64_t prompt_tokens, cached_tokens, predicted_tokens, most_tokens;
    double prompt_s, predicted_s;
    int64_t drafts, drafted, accepted;
    int64_t depth_accepted[DREY_SPECULATION_DEPTHS];
    int64_t steps, busy_slots; /* steps of the engine, and sessions that took part in them */
    int64_t requests, refused, bad, cancelled_queued, cancelled_prompt, cancelled_writing;
    int64_t too_slow;  /* clients */
    double ceiling;    /* ceiling of the last text, tokens per second */
    double sequence_s; /* a sequence's usual time, of late */
    drey_counts engine;
    drey_prefixes prefixes;
} serve_totals;

/* A session of the engine, which sequences take in turns. */
typedef struct server_slot {
    drey_session *session;
    drey_grammar *grammar; /* grammar of the sequence's text; NULL: there is none */
    sequence *sequence;    /* NULL: it is idle */
    int64_t used;          /* when, counted in sequences */
    int64_t n_timeline;
} server_slot;

typedef struct shared {
    const serve_options *options;
    pthread_mutex_t lock;
    pthread_cond_t work;
    int wake; /* something has been published: event_loop_wake */
    request *requests;
    sequence *sequences;
    int32_t n_requests, n_sequences;
    sequence **queue; /* [n_sequences]: the first n_queued wait, the oldest first */
    int32_t n_queued;
    server_slot slots[DREY_MAX_SESSIONS];
    int32_t n_running;
    bool ready;    /* the weights have been read */
    bool stopping; /* the worker ends once nothing waits or runs */
    bool over;     /* it has ended */
    drey_plan plan;
    int64_t began; /* seconds since 1970 */
    serve_totals totals;
    drey_error failed;            /* code DREY_OK: nothing did */
    struct response_store *store; /* the network thread's: responses that can be continued */
} shared;

double serve_clock_s(void);
/* The prompt of a sequence: [*n] ids. */
const int32_t *sequence_prompt(const sequence *j, size_t *n);
size_t sequence_n_prompt(const sequence *j);

/* ---- With the lock held ---- */

/* A request with n free sequences; NULL: there are none. */
request *request_take(shared *s, int32_t n_choices);
/* The first n bytes of its first sequence's records are the serializer's, and stay. */
void request_keep_own(request *t, size_t n);
/* Queues its sequences. keep: their records stay when they have been read. */
void request_queue(shared *s, request *t, bool keep);
/* Nobody wants it any more: its sequences are cancelled, wherever they are. */
void request_abandon(shared *s, request *t);
/* Gives back a request whose sequences are all done; false: some are not. */
bool request_release(shared *s, request *t);
/* Takes it out of the queue, and ends it. */
void sequence_unqueue(shared *s, sequence *j, drey_status why, const char *message);

/* ---- The worker's, without it ---- */

/* False: there is no room, or not enough. */
bool sequence_record(shared *s, sequence *j, record_kind kind, const void *bytes, size_t n);
/* The network thread may read what was written. */
void sequence_publish(shared *s, sequence *j);
