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
 * In PROMPT what the timeline holds is read by the target in chunks, the last of which writes the
 * first token, and by the draft, while the target waits for weights and afterwards. In DECODE each
 * step is a turn. A step whose pass fails changes nothing that was verified, and the next one tries
 * again.
 *
 * Invariants between steps, which session_is_valid checks:
 *   (1) 0 <= n_timeline <= n_context, and every id of the timeline exists;
 *   (2) the target's cache is valid, has no pending rows, and has committed only tokens before the
 *       timeline's last one, the root: a text may go on with any token behind it;
 *   (3) in DECODE it has committed all of them, the tree is valid and its root is the timeline's;
 *   (4) in DECODE a draft's timeline is the target's, and its cache, which is valid, has committed
 *       nothing beyond the root;
 *   (5) a text is being written (a detokenizer is held) if and only if the state is not IDLE, and
 *       it has not ended;
 *   (6) no step of the draft is under way;
 *   (7) committed rows are deferred only while a text is written, and only where somebody observes
 *       its passes (pass_observer.h). Where that holds tokens back, as many at the end of the
 *       timeline are unverified: nobody got them yet. In (3), (4) and (5) those count
 *       like others. */
#ifndef DREY_SESSION_SESSION_H
#define DREY_SESSION_SESSION_H

#include "engine/engine.h"
#include "session/pass_observer.h"
#include "session/session_probe.h"
#include "session/turn_log.h"
#include "text/detokenizer.h"

typedef enum session_state { SESSION_IDLE, SESSION_PROMPT, SESSION_DECODE } session_state;

/* What had been counted at some moment; statistics are differences. */
typedef struct statistics_mark {
    int64_t t_ns;
    trace_sums sums;
    uint64_t read_bytes; /* of both models */
    uint64_t vain_bytes; /* of those, given up */
    int64_t busy_ns;     /* of their disks */
    int64_t major_faults;
} statistics_mark;

/* The text being written. */
typedef struct generation {
    drey_generate_options options;
    char **stops;      /* copies, which options.stops are */
    drey_bias *biases; /* and options.biases; room for the sampler behind them */
    detokenizer detokenizer;
    detokenizer ahead;                /* goes on from there, for what is provisional */
    char shown[DREY_MAX_PROVISIONAL]; /* [n_shown]: the provisional text as the caller knows it */
    size_t n_shown;
    int64_t show_at_ns;              /* not again before */
    bool done;                       /* a token ended it */
    bool refused;                    /* on_text wants no more */
    bool draft_told;                 /* of the prompt */
    bool draft_behind;               /* decoding has begun, and the draft has not read it all */
    int32_t prompt_from, prompt_end; /* the target reads timeline[from .. end) as the prompt */
    int32_t n_drafted;               /* nodes submitted in the turn that was offered */
    int64_t n_first;                 /* tokens written before decoding */
    int64_t n_blind;                 /* the drafter's, when decoding began */
    statistics_mark begin, decode;
    drey_statistics stats;
    drey_speculation speculation;
    int64_t steps_before;    /* of the drafter, when the text began */
    drey_statistics *report; /* the caller's, filled at the end; NULL: not asked for */
} generation;

typedef struct progress_line { /* what a progress callback is told about */
    const drey_engine *engine;
    drey_progress what;
    uint64_t total;
} progress_line;

struct drey_session {
    drey_engine *engine;
    arena memory;
    kv_cache target_kv, draft_kv;
    deferred_rows deferred; /* of target_kv */
    runner target, draft;   /* on the engine's workspaces */
    progress_line load_target, load_draft;
    sampler sampler;
    model_drafter model_drafter;
    drafter *drafter; /* NULL: none, and no policy */
    draft_policy *policy;
    token_tree tree;
    int32_t drafting[DRAFT_MAX_BATCH], n_drafting; /* the draft's step that a pass has overtaken */
    bool reading;                                  /* so is a chunk of the draft's prompt */
    int32_t row_of[TREE_MAX_NODES];                /* node -> row of the verification */
    accepted accepted;
    int32_t *timeline; /* [n_context]: committed tokens and the root, which is the last */
    int32_t n_timeline;
    int32_t n_unverified; /* tokens at its end that nobody got yet */
    turn_log turns;
    turn_watch *watch;       /* NULL: nobody */
    pass_observer *observer; /* NULL: nobody looks into its passes */
    session_state state;
    generation text;
    _Atomic bool cancel;
    size_t base_mark; /* of the arena, below the sampler */
};

/* Something guesses for its text. */
static inline bool session_guesses(const drey_session *s)
{
    return s->drafter && !s->text.options.no_draft;
}
/* Its pass was stopped: accepted rows are deferred, and the pass has no logits. */
static inline bool session_pass_stopped(const drey_session *s)
{
    return s->observer && s->observer->stopped > 0;
}
/* Tokens of the timeline that the whole target has decided. */
static inline int32_t session_n_verified(const drey_session *s)
{
    return s->n_timeline - s->n_unverified;
}
/* The text ends here, for `why` unless a token ended it: what was held back is delivered, the
 * statistics are completed. Does nothing in IDLE. */
void session_end(drey_session *s, drey_finish why);
/* A pass for it failed: what was offered is forgotten, and made anew by the next step. */
void session_retry(drey_session *s);
bool session_is_valid(const drey_session *s);

/* One target pass for n sessions that are writing: each offers rows, one pass computes all of them,
 * each takes its logits. On an error none has gone on, and the step may be tried again.
 * DREY_ERR_IO; DREY_ERR_CANCELLED only for n = 1. */
drey_status sessions_step(drey_session *const *sessions, int32_t n, drey_error *err);

/* ---- The prompt (prompt.c) ---- */

/* Does the target have to read before a turn? Where the root alone has to be computed, a turn does
 * that, with a tree below it. */
bool prompt_left(const drey_session *s);
/* The draft hears of the prompt, so that it can read it while the target's pass waits
 * (overlap.h). */
drey_status prompt_begin(drey_session *s, drey_error *err);
/* The next chunk, at most max_rows of it. */
void prompt_offer(drey_session *s, pass_row *rows, int32_t max_rows, pass_group *group);
/* After the pass; logits as group->logits. The last chunk's are the first token's. */
void prompt_take(drey_session *s, const pass_group *group);
int32_t prompt_rows_left(const drey_session *s);
/* Whether the draft has still to read, before it can guess. */
bool prompt_unread(const drey_session *s);
/* The target has read all: the draft reads it, too, and decoding begins. Where others wait for that
 * (company), the draft reads later, and joins in when it has. */
drey_status prompt_end(drey_session *s, bool company, drey_error *err);
/* The runners' `loading`; user is a progress_line. */
void prompt_report(void *user, uint64_t done);

/* ---- Verified text (verified_text.c) ---- */

/* The accepted tokens join the timeline and go to the caller, until one of them ends the text.
 * Returns how many joined, 1 at least; the last of them is the next root. logits: of the pass, rows
 * by row_of; NULL: it was stopped. */
int32_t text_emit(drey_session *s, const float *logits);
/* All of them join it, unverified, and nobody gets them yet. */
int32_t text_append(drey_session *s);
/* The token at a place of the timeline goes to the caller. */
void text_emit_at(drey_session *s, int32_t position);
/* What was held back, at the end. */
void text_flush(drey_session *s);
/* The text ends: deferred rows are forgotten, and tokens that nobody got. */
void text_drop_unverified(drey_session *s);

/* ---- Log-probabilities (logprobs.c) ---- */

/* logits[n_vocab] say the natural logarithm of a token's probability. */
float logprob_of(const drey_session *s, const float *logits, int32_t id);
/* The caller hears what these logits say of the timeline's last token, and of the best ones. */
void logprobs_tell(const drey_session *s, const float *logits);

/* ---- Provisional text (provisional_text.c) ---- */

/* This text joins the verified one. */
void events_verified(generation *g, const char *text, size_t n_bytes);
/* Tells how what the tree says has changed; unless `soon` only where that has not been a moment
 * ago. */
void events_show(drey_session *s, bool soon);
/* Takes everything back. */
void events_clear(drey_session *s);

/* ---- Statistics (statistics.c) ---- */

/* Of a text that could not begin. */
drey_statistics statistics_of_nothing(const drey_engine *e);
void statistics_begin(drey_session *s);
/* Decoding begins. */
void statistics_decode(drey_session *s);
void statistics_end(drey_session *s);

/* What a pass reads in the mean: all that is streamed, or, where passes may be stopped, what n of
 * them used. */
uint64_t statistics_pass_bytes(uint64_t streamed, bool may_stop, uint64_t used, int64_t n);

/* Of a turn whose tokens have been chosen, before the tree moves; n_written of them
 * were written. */
void speculation_count(drey_session *s, int32_t n_written);
/* Times and what the policy knows, between decoding's beginning and `end`. */
void speculation_end(drey_session *s, const statistics_mark *end);

#endif
