/* Inside of a session: one timeline with its caches, and the text that is being written.
 *
 *                                      step
 *                               (prompt_take: a chunk)
 *                                      +---+
 *          drey_session_begin          |   v     prompt_end          step
 *   IDLE ------------------------->   PROMPT ----------------> DECODE <--+ (turn_take:
 *    ^                                 |   ^                   |  |  |   |  a turn)
 *    |   session_end: a token ended    |   |    session_retry  |  |  +---+
 *    +---- the text, or a call did ----+   +-- (a pass failed)-+  |
 *    |                                                            |
 *    +------------------------------------------------------------+
 *
 * In PROMPT the target reads the timeline in chunks, the last of which writes the first token; the
 * draft reads it as well, while the target waits for weights and afterwards. In DECODE each step is
 * a turn. A step whose pass fails changes nothing that was verified; the next step tries again.
 *
 * Invariants between steps, which session_is_valid checks:
 *   (1) 0 <= n_timeline <= n_context, and every id of the timeline exists;
 *   (2) the target's cache is valid, has no pending rows, and has committed only tokens before the
 *       timeline's last one, the root: a text may continue with any token after it;
 *   (3) in DECODE it has committed all of them, the tree is valid and its root is the timeline's;
 *   (4) in DECODE a draft's timeline is the target's, and its cache, which is valid, has committed
 *       nothing beyond the root;
 *   (5) a text is being written (a detokenizer is held) if and only if the state is not IDLE, and
 *       it has not ended;
 *   (6) no step of the draft is under way;
 *   (7) committed rows are deferred only while a text is written, and only if an observer watches
 *       the passes (pass_observer.h). If it holds tokens back, as many at the end of
 *       the timeline are unverified: the caller has not got them. In (3), (4) and (5) those count
 *       like others. */
#pragma once

#include "draft/drafter.h"
#include "engine/encoder.h"
#include "engine/engine.h"
#include "model/deferred.h"
#include "model/pass.h"
#include "plan/plan.h"
#include "sample/penalties.h"
#include "session/pass_observer.h"
#include "session/prompt.h"
#include "session/provisional_text.h"
#include "session/statistics.h"
#include "state/text_cache.h"
#include "tree/accept.h"
#include "tree/turn_log.h"

typedef struct draft_policy draft_policy;
typedef struct forced_text forced_text;
typedef struct pass_observer pass_observer;

/* Input of an encoder: the prompt of a model that has one. The timeline is then the decoder's, and
 * begins with its start token. */
typedef struct session_input {
    int32_t *ids;             /* [n_context] */
    int32_t n;                /* 0: there is none, and the timeline is empty */
    bool unread;              /* the caches do not have it yet */
    text_cache target, draft; /* the encoders' outputs for their decoders */
    struct {
        const int32_t *ids; /* [n], borrowed until the next text begins */
        size_t n;
    } predicted;
} session_input;

typedef enum session_state { SESSION_IDLE, SESSION_PROMPT, SESSION_DECODE } session_state;

/* The text being written. */
typedef struct generation {
    drey_generate_options options;
    char **stops;        /* copies, to which options.stops point */
    drey_bias *biases;   /* the same of options.biases; room for the sampler after them */
    penalties penalties; /* if the sampler has them */
    detokenizer detokenizer;
    provisional_text provisional;
    const forced_text *forced;       /* NULL: the target decides */
    bool done;                       /* a token ended it */
    bool refused;                    /* on_text returned that it wants no more */
    bool draft_knows_prompt;         /* it may read the prompt */
    int32_t prompt_from, prompt_end; /* the target reads timeline[from .. end) as the prompt */
    int32_t n_kept;                  /* tokens that the timeline had before it */
    int32_t n_drafted;               /* nodes submitted in the turn that was offered */
    text_marks marks;
    drey_statistics stats;
    drey_speculation speculation;
    drey_statistics *report; /* the caller's, filled at the end; NULL: not wanted */
} generation;

/* The draft's unfinished work, left by an ended pass. */
typedef struct unfinished_draft {
    int32_t nodes[DRAFT_MAX_BATCH], n_nodes; /* nodes of a step; n_nodes 0: there is none */
    bool reading;                            /* a chunk of the prompt */
} unfinished_draft;

typedef struct session_memory {
    arena arena;
    size_t base_mark; /* below the sampler, of which each text has another */
} session_memory;

struct drey_session {
    drey_engine *engine;
    session_memory memory;
    text_cache target_cache, draft_cache;
    deferred_rows deferred; /* deferred rows of target_cache */
    runner target, draft;   /* with the engine's workspaces */
    progress_line loading[PLAN_MODELS];
    sampler sampler;
    drafter *drafter; /* NULL: none, and no policy */
    draft_policy *policy;
    token_tree tree;
    unfinished_draft unfinished;
    int32_t row_of[TREE_MAX_NODES]; /* node -> row of the verification */
    pass_tap taps[MODEL_MAX_TAPS];  /* taps of its rows of a pass, for the drafter */
    accepted accepted;
    session_input input;
    int32_t *timeline; /* [n_context]: committed tokens, then the root */
    int32_t n_timeline;
    int32_t n_unverified; /* tokens at its end that the caller has not got yet */
    turn_log turns;
    pass_observer *observer; /* NULL: its passes are not watched */
    session_state state;
    generation text;
    _Atomic bool cancel;
};

/* Returns whether its text is drafted for. */
static inline bool session_guesses(const drey_session *s)
{
    return s->drafter && !s->text.options.no_draft;
}
/* Returns whether its pass was stopped: accepted rows are deferred, and the pass has no logits. */
static inline bool session_pass_stopped(const drey_session *s)
{
    return s->observer && s->observer->stopped > 0;
}
/* Number of tokens of the timeline that the whole target has decided. */
static inline int32_t session_n_verified(const drey_session *s)
{
    return s->n_timeline - s->n_unverified;
}
/* Returns whether its prompts are inputs of an encoder. */
static inline bool session_reads_input(const drey_session *s)
{
    return encoder_is_there(&s->engine->target.encoder);
}

/* ---- The timeline (timeline.c) ---- */

/* Checks that the ids exist. DREY_ERR_USAGE. */
drey_status timeline_check(const drey_session *s, const int32_t *ids, size_t n, drey_error *err);
/* Checks that n more tokens, and one to write, fit after the first `from`. DREY_ERR_CONTEXT. */
drey_status timeline_check_room(const drey_session *s, int32_t from, size_t n, drey_error *err);
/* Keeps the first `n` tokens, and at most `known` positions of the cache. Returns how many of
 * those: the next text reads what is missing. The draft finds what it can keep when it gets the
 * timeline. */
int32_t timeline_cut(drey_session *s, int32_t n, int32_t known);
/* Forgets what the target knows of positions from n on, which some layer may still have to compute:
 * nothing before them is lost. */
void session_forget(drey_session *s, int32_t n);
void timeline_append(drey_session *s, const int32_t *ids, size_t n);
/* ids[n], of which the target's cache has committed the first ones, become the timeline, which is
 * empty. */
void session_take_timeline(drey_session *s, const int32_t *ids, int32_t n);
/* Number of tokens that a decoder's timeline begins with, before those that the model writes. */
int32_t input_given(const drey_session *s);
/* Checks that an encoder can read n tokens. DREY_ERR_CONTEXT. */
drey_status input_check(const drey_session *s, size_t n, drey_error *err);
/* Makes ids[0..n) the input and begins the timeline. True: it was the input before. */
bool input_set(drey_session *s, const int32_t *ids, size_t n);

/* ---- A text's options (text_options.c) ---- */

/* Checks that a text with these options can be written now. DREY_ERR_USAGE,
 * DREY_ERR_UNSUPPORTED. */
drey_status text_check(const drey_session *s, const drey_generate_options *o, drey_error *err);
/* Prepares a text; the timeline does not change. After a failure text_release frees what it has. */
drey_status text_make(drey_session *s, const drey_generate_options *o, drey_error *err);
void text_release(generation *g);
/* Lets another text have the grammar. */
void text_release_grammar(drey_session *s);
/* Makes a sampler for the next text, without biases. DREY_ERR_USAGE: as sampler_init. */
drey_status session_set_sampling(drey_session *s, const drey_sampling *settings, drey_error *err);

/* ---- Its states (session.c) ---- */

/* Ends the text, because of `why` unless a token ended it: delivers what was held back and
 * completes the statistics. Does nothing in IDLE. */
void session_end(drey_session *s, drey_finish why);
/* A pass for it failed: forgets what was offered; the next step offers it again. */
void session_retry(drey_session *s);
bool session_is_valid(const drey_session *s);
