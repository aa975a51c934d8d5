/* A company: sessions of one engine that begin, join, leave, are cancelled and fail at random.
 *
 * Texts end in every way there is: at a number of tokens, at the end of text, at a stop text,
 * because a callback refuses, because the context is full, ended, or cancelled: by a callback,
 * between steps, or by another thread at any time. Reads fail now and then. The next text continues
 * from there, or from a part of it. A plain session over resident weights writes each text once
 * more as it ends: it is that text, and where something cut it a right beginning. */
#pragma once

#include <pthread.h>

#include "engine/config.h"
#include "support/faults/disk.h"
#include "support/writing.h"

enum { COMPANY_CONTEXT = 90 };

typedef struct company company;
/* A session of the company, and the text that it writes. */
typedef struct member {
    writing text; /* first: what callbacks get */
    company *company;
    drey_session *session;
    int32_t before[COMPANY_CONTEXT], n_before; /* the timeline when it began */
    int32_t n_predict, cancel_at;              /* token after which it is cancelled; 0: never */
    const char *stop;                          /* NULL: none */
    bool with_end;                             /* the end of text counts */
    bool begins_again;                         /* in the callback of its end, if interrupted */
    bool is_cut;                               /* was cancelled or ended; under the lock */
    drey_sampling sampling;
} member;

/* Counts of what happened, which tests assert. */
typedef struct company_counts {
    int32_t n_texts, n_shared, n_failed, n_cancelled, n_again;
    int32_t n_left; /* passes that ended because nobody wanted them */
    int32_t n_ends[4];
} company_counts;
void company_counts_add(company_counts *sum, const company_counts *c);

struct company {
    engine_place at;
    member member[PLACE_SESSIONS];
    int32_t n; /* members */
    rng r;
    drey_session *alone; /* writes each text once more */
    disk disk;           /* place where company_read reads */
    int32_t cancel_of;   /* one read of so many cancels a session; 0: none */
    bool in_step;
    pthread_mutex_t lock; /* lock of the session pointers and is_cut, for threads that cancel */
    company_counts counts;
};

/* Begins a company whose texts `alone` writes again: a session with nobody who drafts, and
 * COMPANY_CONTEXT positions. */
company company_of(drey_session *alone, uint64_t seed);
/* Opens its engine; o->n_sessions members may join. */
drey_status company_open(company *c, const drey_engine_options *o, const engine_hooks *hooks,
                         drey_error *err);
void company_close(company *c);
/* Lets members join, leave, begin and stop, and then all who write take a step. */
void company_play(company *c);
/* Begins a text of an open session. */
void company_begin(company *c, member *m);
/* Cancels one of them, or now and then all, from any thread. */
void company_cancel(company *c, rng *r);
/* The engine_hooks.fault of a company, which is its user. */
int company_read(void *user, int32_t part, uint64_t offset, uint32_t n_bytes);
