/* Texts of a request's sequences as the client wants them: one JSON value at the end, or events as
 * they come. An answer is put together piece by piece, each into memory that has room for it. */
#pragma once

#include "serve/parse/parse_request.h"
#include "serve/net/events.h"
#include "serve/text_out.h"

enum {
    ANSWER_PIECE_BYTES = 40 << 10, /* room that the largest piece needs */
    ANSWER_OWN_NUMBERS = 8
};

typedef struct serializer serializer;

/* Serializers of answers. */
extern const serializer answer_chat, answer_completion; /* OpenAI's */
extern const serializer answer_native;                  /* llama.cpp's /completion */

/* Progress of an answer. */
typedef struct answer {
    request *request; /* NULL: there is none */
    const serializer *serializer;
    int stage;
    int32_t choice;
    int32_t pass;        /* over the records of this choice; see serializer.h */
    size_t at;           /* in the records of this choice */
    size_t n_characters; /* characters of this choice's text, so far */
    bool begun;          /* text_out.begun, between two pieces */
    bool open;           /* this pass has begun a text or a list; set by the serializer */
    int32_t own[ANSWER_OWN_NUMBERS];     /* the serializer's */
    serve_usage usage;                   /* usage of the request that was given back */
    size_t offset[REQUEST_MOST_CHOICES]; /* characters of each text that came, of a stream */
    /* readers of each text; begun again for each pass */
    drey_reply_reader readers[REQUEST_MOST_CHOICES];
    bool began[REQUEST_MOST_CHOICES], ended[REQUEST_MOST_CHOICES]; /* state of a stream */
} answer;

typedef enum answer_state {
    ANSWER_PIECE, /* something was put out, and more may follow at once */
    ANSWER_WAITS, /* for the worker */
    ANSWER_ENDS   /* end of the answer */
} answer_state;

/* Puts out the next piece. With the lock held. */
answer_state answer_next(answer *a, text_out *out);
/* An answer that holds the status line back: is there something to say? With the lock held. */
bool answer_has_begun(const answer *a);
/* False: it fails before anything is put out. With the lock held. */
bool answer_check(const answer *a, refusal *r);

/* {"error": {...}}, or as the serializer has it; NULL: as OpenAI's. */
void answer_refusal(const serializer *serializer, const refusal *r, text_out *out);
/* Something that says nothing, so that a stream that waits is not given up. With the lock held. */
void answer_ping(answer *a, text_out *out);
/* "text/event-stream", or another type of a stream. */
const char *answer_stream_type(const answer *a);
/* Returns what its request has read and written so far. With a request, and the lock held. */
serve_usage answer_usage(const answer *a);
/* Gives the request its name, as its serializer has them. */
void answer_name(const answer *a);
/* Returns whether records are read more than once. */
bool answer_keeps(const answer *a);
