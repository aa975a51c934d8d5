/* An observer watches the passes of a session, and may stop them when their tokens are known.
 *
 *   text_begins
 *   pass_begins   look  look  look ...  finish   count          a pass that goes to its end
 *   pass_begins   look  look: true               count          a pass that is stopped there
 *
 * Accepted rows of a stopped pass are deferred (model/deferred.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drey/drey_session.h"

typedef struct drey_session drey_session;
typedef struct model_pass model_pass;
typedef struct pass_group pass_group;

typedef struct pass_observer_class {
    void (*text_begins)(drey_session *s);
    /* A pass with this group begins; alone: no other session has rows in it. */
    void (*pass_begins)(drey_session *s, const pass_group *group, bool alone);
    /* Called after each layer of a pass that only this session uses. True: stop the pass;
     * s->accepted is the result. */
    bool (*look)(drey_session *s, model_pass *pass);
    /* The pass went to its end: compares the deferred tokens. False: there is no turn to take,
     * because a token was replaced, or one of them ended the text. */
    bool (*finish)(drey_session *s, const pass_group *group);
    /* Counts the turn's n tokens. */
    void (*count)(drey_session *s, int32_t n);
    /* Returns the logits of a row of the stopped pass: its whole logits, and its state after the
     * final norm, from which they were computed. NULL: they were not. */
    const float *(*logits)(const drey_session *s, int32_t row);
    const float *(*hidden)(const drey_session *s, int32_t row);
} pass_observer_class;

typedef struct pass_observer { /* first member of every observer */
    const pass_observer_class *class;
    bool holds_back; /* tokens of stopped passes stay unverified until they are compared */
    int32_t stopped; /* layers that were complete where this pass was stopped; 0: it was not */
} pass_observer;
