/* Sessions: one timeline of tokens each, with its caches. */
#ifndef DREY_DREY_SESSION_H
#define DREY_DREY_SESSION_H

#include "drey/choices.h"
#include "drey/drey_grammar.h"
#include "drey/sampling.h"
#include "drey/traces.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Session: one timeline of tokens ---- */

typedef struct drey_engine drey_engine; /* drey/drey_engine.h */
typedef struct drey_session drey_session;

/* An engine has at most as many open sessions as its options say. A session borrows the engine. An
 * engine and its sessions are used by one thread at a time, like one object. */
DREY_API drey_status drey_session_open(drey_session **out, drey_engine *engine, drey_error *err);
/* Accepts NULL; nulls the pointer. A text that is being written ends without on_end. */
DREY_API void drey_session_close(drey_session **session);

/* Stops the text that is being written, or the scoring. Any thread and any signal handler may call
 * it. A session that computes alone stops at the next operation. A pass of several sessions
 * continues without this one at the next layer (or, if passes may end early, drey_exit, after the
 * pass). If no text is being written, it has no effect, not even on the next text. If it stops the
 * first pass, which reads the weights, the next pass reads them from the beginning. */
DREY_API void drey_session_cancel(drey_session *session);

/* The functions below, which are called while a text is written, may call drey_session_cancel, and
 * otherwise nothing of the session's engine; drey_end_fn says what it may in addition. */

/* bytes[n]: whole UTF-8 characters, or bytes that can never become one; borrowed for the call. Only
 * verified text is delivered. Return false to stop (finish reason "stop"). */
typedef bool drey_text_fn(void *user, const char *bytes, size_t n_bytes);
/* Called with each verified token, before its text. Return false to stop. */
typedef bool drey_token_fn(void *user, int32_t id);

/* A text that can be shown before it is verified: the verified text is followed by a provisional
 * one, the draft's best guess. The provisional text is empty when a text begins and when it
 * ends. */
enum { DREY_MAX_PROVISIONAL = 2048 }; /* bytes */
typedef enum drey_event_kind {
    DREY_EVENT_PROVISIONAL = 0, /* bytes are appended to the provisional text */
    DREY_EVENT_TAKEN_BACK = 1,  /* bytes, its end, are removed from it */
    /* bytes are appended to the verified text, and the same number is removed from the beginning of
     * the provisional text, which begins with them; or, if it is shorter, they begin with it and it
     * becomes empty */
    DREY_EVENT_VERIFIED = 2
} drey_event_kind;
typedef struct drey_event {
    drey_event_kind kind;
    const char *bytes; /* [n_bytes], whole characters as for drey_text_fn, borrowed for the call */
    size_t n_bytes;
    uint64_t reserved[2]; /* zero */
} drey_event;
/* Called in each turn, and about every 50 ms while a pass waits for weights. */
typedef void drey_event_fn(void *user, const drey_event *event);

enum { DREY_MAX_TOP = 20 };
/* Called with each verified token, before drey_token_fn, and with the n_top most likely tokens at
 * its place, best first (the lower id first among equals), borrowed for the call. */
typedef void drey_logprobs_fn(void *user, const drey_logprob *written, const drey_logprob *top,
                              int32_t n_top);

/* The text has ended, for any reason, and its statistics are complete. When it is called within
 * drey_engine_step, it may call drey_session_sync and drey_session_begin for sessions that write
 * nothing, including the one that has ended; what they begin joins the next step. It may call
 * nothing else of the engine, and nothing at all within other functions. A cancelled text ends in
 * the middle of a pass, which continues for the others. */
typedef void drey_end_fn(void *user);

typedef struct drey_generate_options {
    int32_t n_predict; /* most tokens to write */
    drey_sampling sampling;
    const char *const *stops; /* texts that end the generation; not written themselves */
    size_t n_stops;
    bool ignore_eos;
    bool special; /* write special tokens out as text */
    drey_text_fn *on_text;
    drey_token_fn *on_token;
    void *user;
    drey_event_fn *on_event; /* called before on_text when both have the same bytes */
    /* NULL: nothing is computed for it. Not allowed if passes end early (drey_exit). */
    drey_logprobs_fn *on_logprobs;
    const drey_bias *biases; /* [n_biases], copied */
    int32_t n_biases;
    int32_t n_top; /* for on_logprobs: 0 to DREY_MAX_TOP */
    drey_end_fn *on_end;
    /* No drafting for this text, whatever the engine's drafter and policy: one token per pass. The
     * text is the same. Not allowed if passes end early (drey_exit). */
    bool no_draft;
    /* Nothing is taken from other sessions or kept prefixes: what the session itself does not have
     * is computed. The text is the same. */
    bool no_known;
    /* NULL: any text. Else the text is one of the grammar, or where n_predict cuts it the beginning
     * of one. Tokens that the grammar does not allow are not chosen, before all filters. Borrowed
     * until the text ends, and not given to another one before that. Not allowed with ignore_eos,
     * if passes may end early (drey_exit), and for a model with an encoder. */
    drey_grammar *grammar;
    /* For on_logprobs: log-probabilities of what biases, penalties, the grammar and the filters
     * leave, at the text's temperature; -INFINITY: they leave it out. At temperature 0 one token
     * has all. */
    bool after_filters;
    uint8_t reserved[7]; /* zero */
} drey_generate_options;
DREY_API void drey_generate_options_init(drey_generate_options *options);

typedef enum drey_finish {
    DREY_FINISH_STOP,        /* end of text, a stop text, or a callback said so */
    DREY_FINISH_LENGTH,      /* n_predict or the context is used up */
    DREY_FINISH_INTERRUPTED, /* cancelled */
    DREY_FINISH_ERROR
} drey_finish;
DREY_API const char *drey_finish_name(drey_finish finish);

/* The prompt's last pass writes the first token. Decoding starts when the draft has read the prompt
 * as well. Shares are of decode_s. */
typedef struct drey_statistics {
    int64_t prompt_tokens, generated_tokens;
    double prompt_s, decode_s; /* prompt_s includes loading: the first pass reads the weights */
    double first_token_s;      /* from the call to the first token; 0: no token */
    double tokens_per_s;       /* speed of the tokens after the prompt, / decode_s */
    /* tokens_per_pass / (max(streamed / disk, compute) + drafting that reads do not cover); 0: not
     * known */
    double ceiling_tokens_per_s;
    double disk_bytes_per_s;   /* the highest of the disk in this run while it was kept busy */
    double tokens_per_pass;    /* mean over the tokens after the prompt */
    int64_t n_passes;          /* passes of the target, after the prompt */
    int64_t drafted, accepted; /* tokens proposed to the target, and those it agreed with */
    uint64_t read_bytes;       /* in decoding, both models */
    double read_bytes_per_s;
    double stall_share, verify_share, draft_share; /* waiting for reads; target pass; draft */
    uint64_t load_bytes;                           /* read before decoding */
    uint64_t budget_bytes, pinned_bytes, streamed_bytes_per_pass;
    uint64_t session_bytes;     /* bytes that each session of the engine takes */
    uint64_t peak_memory_bytes; /* the process' high-water mark */
    int64_t decode_major_faults;
    bool sidecar;                   /* the target's weights came packed from a sidecar */
    bool direct, uring, registered; /* ways of reading: O_DIRECT, io_uring, registered buffers */
    drey_kv kv;                     /* DREY_KV_Q8_0: lossy, the text may differ from f16's */
    drey_finish finish;
    double provisional_share; /* drafting while the target's pass waits for reads */
    /* Value that tokens_per_s would have had with a sidecar, without packing streamed weights, as
     * far as reads are fast enough. 0: there is a sidecar, or nothing was streamed. */
    double sidecar_tokens_per_s;
    /* Tokens of the timeline when the text began that were not computed for it, but kept or
     * restored (drey_prefix_options). */
    int64_t cached_tokens;
    /* Reason of DREY_FINISH_STOP: the stop text that was found, counted from 1; 0: the text's own
     * end; -1: a callback returned false. */
    int32_t stop_text, zero;
    /* Experts of a mixture: experts that layers multiplied with while decoding, and of them those
     * that had to be read. */
    uint64_t experts_used, experts_read;
    /* Experts that were asked for before their layer had chosen, while the disk had nothing else to
     * do, and of them those that it chose; these are among experts_read. */
    uint64_t experts_guessed, guesses_used;
    /* Parts of cached_tokens that another session had computed; those that were restored from kept
     * prefixes, and of these the ones that were read from the folder; the time all that took. The
     * rest was the session's own. */
    int64_t copied_tokens, restored_tokens, folder_tokens;
    double restore_s;
    /* Tokens with which the text's prompt begins as the session's timeline, another one's or a kept
     * prefix did; cached_tokens or more, because a timeline's last token is computed later. */
    int64_t same_tokens;
    /* Energy of the whole machine while decoding, whatever else ran, as the processor reports it;
     * 0: it reports none, or not to this user. */
    double joules;
    double ranks_share;   /* waiting for other ranks, with nothing to draft meanwhile */
    uint64_t reserved[1]; /* zero */
} drey_statistics;

/* Results of drafting in one text. The last element of an array also counts all beyond it. */
enum { DREY_SPECULATION_DEPTHS = 32, DREY_SPECULATION_RANKS = 8, DREY_SPECULATION_WRITTEN = 64 };
typedef struct drey_speculation {
    /* [d]: nodes d + 1 below the root that the target was asked about, and those it agreed with */
    int64_t depth_submitted[DREY_SPECULATION_DEPTHS], depth_accepted[DREY_SPECULATION_DEPTHS];
    /* [r]: the same for guess r + 1 of the draft, the best first; the last element: tokens that
     * were not among its guesses */
    int64_t rank_submitted[DREY_SPECULATION_RANKS + 1], rank_accepted[DREY_SPECULATION_RANKS + 1];
    /* [r]: tokens of the target that were guess r + 1 of the draft, drafted or not; the last
     * element: no guess. Counts places at which the draft guessed */
    int64_t rank_chosen[DREY_SPECULATION_RANKS + 1];
    int64_t passes_writing[DREY_SPECULATION_WRITTEN]; /* [n]: passes of the target that wrote n + 1
                                                         tokens */
    int64_t draft_steps;                              /* the draft's, of one or more nodes each */
    double draft_s;           /* all drafting, between the target's passes or during them */
    double hidden_share;      /* share of draft_s during them */
    double alpha;             /* the fallback's current threshold; 0: the policy has none */
    int64_t provisional_kept; /* nodes drafted during a pass in addition to those it verified: */
    int64_t provisional_lost; /* below the next root, or not (lost) */
    bool lossy;               /* the text may differ from the target's own */
    int64_t differed;         /* tokens that the policy accepted although the target would choose
                                 others; -1: the target was not asked */
    int64_t outside_slice;    /* tokens of the target that the draft could not guess because its
                                 head lacks their rows */
    /* Accepted tokens that were guessed by the draft only, by lookup in the text only
     * (DREY_PART_LOOKUP), and by both; all 0 if they are not blended. */
    int64_t accepted_of_draft, accepted_of_text, accepted_of_both;
    uint64_t reserved[11]; /* zero */
} drey_speculation;

/* Gives the counts of the text that is being written, or of the last one; all 0 before the first.
 * Times are filled when the text ends. */
DREY_API void drey_session_speculation(const drey_session *session, drey_speculation *out);

/* Results of early exits in one text. Complete layers are counted: a token that left after l layers
 * is in at_layer[l - 1], one that went through all in at_layer[n_layers - 1]; the last element also
 * counts all beyond it. */
enum { DREY_EXITS_LAYERS = 128 };
typedef struct drey_exits {
    drey_exit mode;
    int32_t n_layers; /* layers of the target; 0: nothing is known */
    int64_t tokens;   /* tokens found by passes after the prompt; exact: including those taken
                         back */
    int64_t left;     /* tokens among them whose pass ended early */
    int64_t at_layer[DREY_EXITS_LAYERS];
    double layers_per_token;
    int64_t looks;      /* scores asked for */
    int64_t candidates; /* scores above the threshold, for which the whole head was computed */
    /* tokens among them for which it found another token, or one that may not leave */
    int64_t refused;
    int64_t compared;   /* tokens that left and were then completed by a pass to the last layer */
    int64_t agreed;     /* tokens among them that the full depth chose as well */
    int64_t taken_back; /* exact: tokens that were replaced by another, and those after them */
    int64_t n_full;     /* passes that completed tokens which had left */
    uint64_t skipped_bytes; /* streamed bytes after the exits, */
    uint64_t vain_bytes;    /* and those of them that had already been read */
    double look_s, head_s;  /* features and scores; whole heads for candidates */
    uint64_t reserved[16];  /* zero */
} drey_exits;

/* Gives the counts of the text that is being written, or of the last one; all 0 before the
 * first. */
DREY_API void drey_session_exits(const drey_session *session, drey_exits *out);

/* A model with an encoder (drey_model_info.n_encoder_layers) reads an input and writes another
 * text. Where the functions below take ids, these are the input, which the encoder reads in the
 * next step. The timeline is then the decoder's, and begins with its start token. An input has room
 * for n_context tokens, and so has the timeline. The same input again is not read again. n = 0
 * continues the text that was written.
 *
 * Appends ids[0..n) to the session's timeline and writes a text from there. statistics may be NULL;
 * they are filled also after an error. What was verified before an error or cancel has been
 * delivered and stays in the timeline: a call with n = 0 continues from there, also when a disk
 * that failed works again. DREY_ERR_CONTEXT: the prompt is too long; DREY_ERR_CANCELLED: cancelled;
 * DREY_ERR_IO: a file cannot be read, or has changed since the model was opened (then every later
 * call fails as well). */
DREY_API drey_status drey_session_generate(drey_session *session, const int32_t *ids, size_t n,
                                           const drey_generate_options *options,
                                           drey_statistics *statistics, drey_error *err);

/* ---- The same step by step, and several sessions at once ----
 *
 *     drey_session_sync(session, ids, n, NULL, &err);        the timeline: all of the conversation
 *     drey_session_begin(session, &options, &statistics, &err);
 *     for (bool done = false; !done;)
 *         drey_session_step(session, &done, &err);           or drey_engine_step, for all sessions
 */

/* Makes the timeline equal to ids[0..n). Their common beginning is kept and not computed again,
 * except the last of the n tokens; *n_kept (may be NULL) is its number of tokens. Ends the text
 * that is being written (finish reason "interrupted"). After an error nothing has changed.
 * DREY_ERR_USAGE: no such id; DREY_ERR_CONTEXT: no room for them and one more token. */
DREY_API drey_status drey_session_sync(drey_session *session, const int32_t *ids, size_t n,
                                       size_t *n_kept, drey_error *err);
/* Keeps the first n tokens of the timeline; otherwise like drey_session_sync. DREY_ERR_USAGE: it
 * has fewer tokens. */
DREY_API drey_status drey_session_truncate(drey_session *session, size_t n, drey_error *err);
/* Truncates the timeline to 0 tokens. The weights stay loaded. */
DREY_API void drey_session_reset(drey_session *session);

/* Begins a text at the end of the timeline; steps write it. options are copied, with the stop
 * texts; `user` must stay valid. statistics (may be NULL) is borrowed until the text ends and
 * filled then; its prompt_tokens are those that must be computed. After an error nothing has begun:
 * DREY_ERR_USAGE (also if a text is being written), DREY_ERR_CONTEXT, DREY_ERR_MEMORY. */
DREY_API drey_status drey_session_begin(drey_session *session, const drey_generate_options *options,
                                        drey_statistics *statistics, drey_error *err);
/* The next text of the session is expected to repeat large parts of these tokens, as of a file that
 * is edited: lookup copies from them as from the text so far. Without lookup they have no effect.
 * As many are used as the context has room for. The text is the same. ids are borrowed until it
 * begins. DREY_ERR_USAGE: a text is being written, or an id is none of the model. */
DREY_API drey_status drey_session_predict(drey_session *session, const int32_t *ids, size_t n,
                                          drey_error *err);
/* One pass: a chunk of the prompt, or a turn. *done: the text has ended, or none was being written.
 * After DREY_ERR_IO the text is unchanged: try the step again, or call drey_session_end.
 * DREY_ERR_CANCELLED ends the text. */
DREY_API drey_status drey_session_step(drey_session *session, bool *done, drey_error *err);
/* Ends the text that is being written, if any: characters that were held back are delivered, and
 * the finish reason is "interrupted". */
DREY_API void drey_session_end(drey_session *session);
DREY_API bool drey_session_is_writing(const drey_session *session);
/* Gives how much of the text's prompt has been read: *done of *total tokens that must be
 * computed. */
DREY_API void drey_session_prompt(const drey_session *session, int64_t *done, int64_t *total);

/* One step of every session of the engine that is writing, all in one pass: each weight is read
 * once for all of them. Sessions may begin and end between any two steps. The text of each is the
 * same as if it ran alone. *n_writing: how many sessions continue. A cancelled session's text ends,
 * without an error, at the next layer, and on_end is called. DREY_ERR_IO concerns all sessions, and
 * all may continue with the next step. */
DREY_API drey_status drey_engine_step(drey_engine *engine, int32_t *n_writing, drey_error *err);

/* ---- Sessions in files ----
 *
 * A file holds a timeline with the keys and values of its computed positions, so that a session
 * that loads it continues without reading the prompt again, and writes what the saved one would
 * have written. It can be loaded with the same target and the same kind of cache; draft, budget and
 * threads may differ. The file is not encrypted. */

/* The tokens of the timeline: borrowed until the next call with this session. */
DREY_API void drey_session_timeline(const drey_session *session, const int32_t **ids, size_t *n);

typedef struct drey_saved_session {
    drey_sampling
        /* sampling of the last text, without penalties; the defaults if there was none */
        sampling;
    int64_t n_tokens; /* tokens of the timeline */
    int64_t n_kept;   /* tokens among them that are not computed again */
    char *note;       /* [n_note_bytes], and a NUL after it: what drey_session_save was given; NULL:
                   nothing. The caller frees it with drey_free */
    size_t n_note_bytes;
    uint64_t reserved[8]; /* zero */
} drey_saved_session;

/* Returns the bytes of the file that the next function would write without a note. */
DREY_API uint64_t drey_session_save_bytes(const drey_session *session);
/* Writes the session to `path`; the file appears complete or not at all. note[n_note_bytes]: the
 * caller's own data, at most DREY_MAX_NOTE_BYTES. DREY_ERR_USAGE: a text is being written;
 * DREY_ERR_IO: no such folder, no permission, or the disk is full. */
enum { DREY_MAX_NOTE_BYTES = 64 << 20 };
DREY_API drey_status drey_session_save(const drey_session *session, const char *path,
                                       const void *note, size_t n_note_bytes, drey_error *err);
/* Replaces the session by the saved one; ends the text that is being written. The whole file is
 * checked before anything changes: after an error the session is unchanged (if the disk fails after
 * that check, its tokens are kept but must be computed again). `saved` may be NULL.
 * DREY_ERR_MISMATCH: of another model or kind of cache; DREY_ERR_FORMAT: damaged, or not such a
 * file; DREY_ERR_CONTEXT: longer than the engine's n_context; DREY_ERR_IO. */
DREY_API drey_status drey_session_load(drey_session *session, const char *path,
                                       drey_saved_session *saved, drey_error *err);
/* Reads the header of such a file, and its note, but not the tokens. A note of more than
 * most_note_bytes is not read: `note` is NULL then, and n_note_bytes is its length. The model is
 * not checked. DREY_ERR_FORMAT, DREY_ERR_MISMATCH (another version's), DREY_ERR_IO. */
DREY_API drey_status drey_saved_session_read(const char *path, size_t most_note_bytes,
                                             drey_saved_session *saved, drey_error *err);

/* Kept prefixes since the engine opened. */
typedef struct drey_prefixes {
    uint64_t memory_bytes, disk_bytes; /* reserved in memory; used in the folder */
    int64_t blocks, files;             /* there now */
    int64_t restored_tokens;
    int64_t kept_blocks, read_blocks, written_blocks; /* kept in memory, from and to the folder */
    bool disk_failed;      /* the folder's disk is full or fails: nothing more is written to it */
    int64_t damaged_files; /* damaged files of the folder: not used, and deleted */
    int64_t copied_tokens; /* from one session to another */
    int64_t lost_blocks;   /* blocks that could not be written to the folder */
    uint64_t reserved[1];  /* zero */
} drey_prefixes;
DREY_API void drey_engine_prefixes(const drey_engine *engine, drey_prefixes *out);
/* Writes kept blocks to the folder that are not there yet, at most `most`; *n_left (may be NULL) of
 * them remain. Steps write one each, and closing the engine writes none: call this before it, and
 * between texts if a crash should lose less. DREY_ERR_IO: some could not be written, now or
 * earlier. */
DREY_API drey_status drey_engine_write_prefixes(drey_engine *engine, int64_t most, int64_t *n_left,
                                                drey_error *err);

/* Sums over everything that an engine has done since it opened. Call it between two steps. */
typedef struct drey_counts {
    int64_t passes, rows;                /* passes of the target, in the middle of texts */
    int64_t prompt_passes, prompt_rows;  /* passes that read prompts, or the weights */
    double pass_s, prompt_s, draft_s;    /* draft_s: between passes; hidden_s: during them */
    double hidden_s, stall_s;            /* stall_s: passes that waited for weights */
    uint64_t read_bytes;                 /* bytes of both models */
    double read_s;                       /* time during which these reads were under way */
    uint64_t peak_memory_bytes;          /* the process' high-water mark */
    uint64_t experts_used, experts_read; /* experts of a mixture, as in drey_statistics */
    double joules;                       /* while texts are written; as there */
    uint64_t reserved[5];                /* zero */
} drey_counts;
DREY_API void drey_engine_count(const drey_engine *engine, drey_counts *out);

/* Natural log probabilities of ids[1..n), each given the ids before it: logprob[n - 1]. Starts from
 * an empty timeline and leaves an empty one. Of a model with an encoder these are the decoder's
 * ids, given the input of the last drey_session_sync; DREY_ERR_USAGE: there was none.
 * DREY_ERR_CANCELLED even if the cancel came too late to stop anything; DREY_ERR_FORMAT if one is
 * not finite. */
DREY_API drey_status drey_session_score(drey_session *session, const int32_t *ids, size_t n,
                                        float *logprob, drey_error *err);

/* The same with the n_top likeliest tokens at each place: `call` gets them for ids[1..n), one after
 * the other, as it does of a text that is written. The session then has the ids as its timeline,
 * computed up to the last, so a text that continues them begins at once. DREY_ERR_USAGE as well:
 * n_top is not 0 to DREY_MAX_TOP, or the model has an encoder. */
DREY_API drey_status drey_session_score_top(drey_session *session, const int32_t *ids, size_t n,
                                            int32_t n_top, drey_logprobs_fn *call, void *user,
                                            drey_error *err);

/* Ways in which the states of a text's tokens, after the model's last norm, become one vector. */
typedef enum drey_pooling {
    DREY_POOLING_MODEL = 0, /* as the model's file says; the last token's, if it says nothing */
    DREY_POOLING_NONE,      /* none: a vector for each token */
    DREY_POOLING_MEAN,
    DREY_POOLING_CLS, /* the first token's */
    DREY_POOLING_LAST,
    DREY_POOLING_RANK /* pooling of models that compare two texts, which drey does not compute */
} drey_pooling;
/* NULL: no such value. */
DREY_API const char *drey_pooling_name(drey_pooling pooling);
DREY_API bool drey_pooling_parse(const char *name, drey_pooling *pooling);
/* Returns the meaning of DREY_POOLING_MODEL for a model. */
DREY_API drey_pooling drey_model_pooling(const drey_model *model);

/* The vector of a text, as it is: out[drey_model_info.n_embd], with DREY_POOLING_NONE
 * [n][n_embd]. Has the same bits whatever the chunks and threads. Starts from an empty timeline and
 * leaves an empty one. DREY_ERR_USAGE: no text, no such id, or a pooling that is none of these;
 * DREY_ERR_CONTEXT; DREY_ERR_UNSUPPORTED: a model with an encoder, DREY_POOLING_RANK;
 * DREY_ERR_CANCELLED, DREY_ERR_IO, and DREY_ERR_FORMAT if a number is not finite. */
DREY_API drey_status drey_session_embed(drey_session *session, const int32_t *ids, size_t n,
                                        drey_pooling pooling, float *out, drey_error *err);
/* The same of several texts, as many of the first of them as have room in one pass, and one at
 * least: *n_done; their vectors come one after the other. Short texts together cost little more
 * than one, as the weights are read once. */
typedef struct drey_text_ids {
    const int32_t *ids; /* [n] */
    size_t n;
} drey_text_ids;
DREY_API drey_status drey_session_embed_texts(drey_session *session, const drey_text_ids *texts,
                                              size_t n_texts, drey_pooling pooling, float *out,
                                              size_t *n_done, drey_error *err);
/* Divides v[n] by its length: norm 2 the Euclidean one, 1 the sum of magnitudes; 0: so that the
 * greatest magnitude is 32760; negative: not at all. A vector of zeros stays. */
DREY_API void drey_embed_normalize(float *v, size_t n, int32_t norm);

/* A token of a scored text: by the whole model, and by the head after the layer where the pass
 * before it ended, whose choice DREY_EXIT_FAST would have written. */
typedef struct drey_exit_score {
    float whole, early;           /* natural log probabilities */
    int32_t whole_top, early_top; /* the likeliest tokens */
    /* layers that the pass took: all of the model's, or the token would have left */
    int32_t n_layers;
} drey_exit_score;
/* drey_session_score, and with the engine's early exits: the same text once more, one token per
 * pass, where each pass ends as a pass of drey_session_step does, whatever token follows.
 * score[n - 1]. DREY_ERR_USAGE unless the engine has DREY_EXIT_FAST, and no policy or
 * DREY_POLICY_SINGLE; DREY_ERR_UNSUPPORTED: a model with an encoder. Others as
 * drey_session_score. */
DREY_API drey_status drey_session_score_exits(drey_session *session, const int32_t *ids, size_t n,
                                              drey_exit_score *score, drey_error *err);

/* ---- Traces: what ran when, and the trees that were guessed ----
 *
 * With trace_spans in its options, an engine keeps that many spans of what it computed and that
 * many of each model's reads; each session keeps the trees of its latest turns, about that many
 * nodes. The memory is part of the plan and allocated in advance; the oldest entries are
 * overwritten. */

/* Visits the spans of the session's engine, the oldest of each kind of work first, then the
 * session's turns, the oldest first. */
DREY_API void drey_session_trace(const drey_session *session, const drey_trace_visitor *visitor);

#ifdef __cplusplus
}
#endif
#endif
