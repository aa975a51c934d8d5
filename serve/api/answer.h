/* What a task's jobs have written, as the client wants it: one JSON value at the end, or events as
 * they come. An answer is put together piece by piece, each into memory that has room for it. */
#pragma once

#include "serve/api/ask.h"
#include "serve/api/text_out.h"

enum { ANSWER_PIECE_BYTES = 40 << 10 }; /* room that the largest piece needs */

/* How far an answer has been put together. */
typedef struct answer {
    task *task; /* NULL: there is none */
    int stage;
    int32_t choice;
    int32_t list;                     /* of log-probabilities, where there are several */
    size_t at;                        /* in the records of this choice */
    size_t n_characters;              /* characters of this choice's text, so far */
    bool comma;                       /* the list has an item already */
    size_t offset[TASK_MOST_CHOICES]; /* the same, of a stream */
    bool began[TASK_MOST_CHOICES], ended[TASK_MOST_CHOICES]; /* of a stream */
} answer;

typedef enum answer_state {
    ANSWER_PIECE, /* something was put out, and more may follow at once */
    ANSWER_WAITS, /* for the worker */
    ANSWER_ENDS   /* that was all */
} answer_state;

/* Puts out the next piece. With the lock held. */
answer_state answer_next(answer *a, shared *s, text_out *out);
/* An answer that holds the status line back: is there something to say? With the lock held. */
bool answer_has_begun(const answer *a);
/* False: it fails before anything is put out. With the lock held. */
bool answer_check(const answer *a, refusal *r);

/* {"error": {...}} */
void answer_refusal(const refusal *r, text_out *out);
