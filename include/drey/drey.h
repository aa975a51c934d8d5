/* drey: runs a language model that is larger than its memory budget, with a small model's help,
 * and writes exactly the text that the large model alone would have written.
 *
 * The way through this header: open a model (header and tokenizer, no weights), turn text into
 * token ids, open an engine (the memory plan: what is pinned, what is streamed), open a session
 * (one timeline with its caches), generate. Every function that the world can break returns a
 * drey_status and fills a drey_error, which may be NULL. The library never exits, aborts, prints,
 * or reads the environment, and computes in the default floating-point environment, whatever the
 * caller's is. One object is used by one thread at a time, except where a comment says otherwise.
 *
 * Structures that a caller fills start from their `_init` function. Their size and the places of
 * their fields stay for as long as the library's soname does (libdrey.so.0.MINOR before 1.0,
 * libdrey.so.MAJOR from then on): a new field is taken out of `reserved`, which `_init` sets to
 * zero, and at zero it means what was before it. So a program runs with any later library of its
 * soname without being compiled again. What measures is in drey/tune.h.
 */
#ifndef DREY_H
#define DREY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DREY_API __attribute__((visibility("default")))

/* ---- Errors ---- */

typedef enum drey_status {
    DREY_OK = 0,
    DREY_ERR_USAGE = -1,  /* an argument is out of range, or two of them contradict each other */
    DREY_ERR_MEMORY = -2, /* the budget is too small, or the system refused memory */
    DREY_ERR_IO = -3,     /* a file cannot be opened, read or written */
    DREY_ERR_FORMAT = -4, /* a file is broken or not what it claims to be */
    DREY_ERR_UNSUPPORTED = -5, /* a valid file that this version cannot run */
    DREY_ERR_MISMATCH = -6,    /* draft and target do not fit together */
    DREY_ERR_CONTEXT = -7,     /* the prompt does not fit into the context */
    DREY_ERR_CANCELLED = -8,   /* drey_session_cancel was called */
    DREY_ERR_INTERNAL = -9     /* a bug in drey */
} drey_status;

/* Which choice of the caller's the message is about, so that a program can name its own switch for
 * it. */
typedef enum drey_hint {
    DREY_HINT_NONE = 0,
    DREY_HINT_N_CONTEXT = 1,    /* a larger n_context would do */
    DREY_HINT_MEMORY_BYTES = 2, /* another memory_bytes */
    DREY_HINT_N_THREADS = 3,    /* fewer n_threads */
    DREY_HINT_IO = 4,           /* another io */
    DREY_HINT_SIDECAR = 5,      /* prepare the sidecar again, or set no_sidecar */
    DREY_HINT_OUTPUT = 6,       /* another output of drey_prepare */
    DREY_HINT_FORCE = 7,        /* another output of drey_prepare, or its force */
    DREY_HINT_PREPARE = 8,      /* drey_prepare with force */
    DREY_HINT_CHAT = 9,         /* a prompt in the model's own format, without drey_chat_format */
    DREY_HINT_PLANES = 10,      /* drey_prepare with planes */
    DREY_HINT_EXIT_FILE = 11    /* another exit_file, or predictors that are trained again */
} drey_hint;

/* A message ready for a terminal: what went wrong, and what to do about it. */
typedef struct drey_error {
    drey_status code;
    drey_hint hint;
    char message[500];
} drey_error;

DREY_API const char *drey_version(void);

/* ---- Models: a GGUF file's header, shapes and tokenizer ---- */

typedef struct drey_model drey_model;

/* Opens a GGUF v3 file (the first part of a split one) and validates all of its header. Weights are
 * not read. DREY_ERR_UNSUPPORTED names the architecture, tokenizer or key that drey does not
 * compute, drey_engine_open the tensor: whatever a file has under its architecture's name has to be
 * computed or known to be without influence. Numbers that are not finite are DREY_ERR_FORMAT where
 * they are met: norms and biases in drey_engine_open, matrices as they are loaded or streamed, or
 * in drey_prepare. */
DREY_API drey_status drey_model_open(drey_model **out, const char *path, drey_error *err);
/* Accepts NULL; nulls the pointer. Engines that borrow the model must be closed before it. */
DREY_API void drey_model_close(drey_model **model);

typedef struct drey_model_info {
    const char *architecture; /* borrowed from the model */
    const char *name;         /* general.name, or "" */
    int32_t n_layers, n_embd, n_heads, n_heads_kv, head_dim, n_ff, n_vocab;
    int32_t n_context_train; /* the longest context the model was made for */
    uint64_t file_bytes;     /* all parts */
    uint64_t weight_bytes;   /* tensors only */
    int64_t n_parameters;
    int32_t bos_id, eos_id; /* -1 where the file names none */
    /* No token of the vocabulary stands for more bytes of text (but the unknown one may): so no
     * text of more than n * token_bytes_most bytes has n tokens or fewer. */
    uint32_t token_bytes_most;
    uint64_t reserved[4]; /* zero */
} drey_model_info;
DREY_API void drey_model_describe(const drey_model *model, drey_model_info *info);

/* Which model it is: a number that copies of its file share, and other models do not. Reads a few
 * MiB of it. */
DREY_API drey_status drey_model_identity(const drey_model *model, uint64_t *identity,
                                         drey_error *err);

/* ---- Text and tokens ---- */

enum {
    DREY_TOKENIZE_SPECIAL = 1, /* special tokens written in the text count as tokens, not as text */
    DREY_TOKENIZE_BOS = 2      /* put BOS first if the file says that the model wants it */
};

/* text: n_bytes of any bytes; broken UTF-8 is tokenized too. *n_ids is set to the number of ids,
 * also when it exceeds capacity (then DREY_ERR_USAGE, and the first `capacity` ids are written). */
DREY_API drey_status drey_tokenize(const drey_model *model, const char *text, size_t n_bytes,
                                   int flags, int32_t *ids, size_t capacity, size_t *n_ids,
                                   drey_error *err);

/* The bytes of n ids one after another, not NUL-terminated; special tokens are written out only
 * with DREY_TOKENIZE_SPECIAL. *n_bytes is the length needed, also when it exceeds capacity
 * (DREY_ERR_USAGE). */
DREY_API drey_status drey_detokenize(const drey_model *model, const int32_t *ids, size_t n,
                                     int flags, char *text, size_t capacity, size_t *n_bytes,
                                     drey_error *err);

/* One turn in the model's own chat format, as text; for whole conversations see drey/chat.h. system
 * may be NULL. *out is a NUL-terminated string that the caller frees with drey_free. A model
 * without a template, and one whose template uses what is not supported, is DREY_ERR_UNSUPPORTED.
 * Whoever tokenizes it with DREY_TOKENIZE_SPECIAL lets system and user write special tokens too,
 * and so end their own turn: drey_chat_tokenize does not. */
DREY_API drey_status drey_chat_format(const drey_model *model, const char *system, const char *user,
                                      char **out, drey_error *err);
/* The same turn as ids. The template's special tokens are tokens; what looks like one in system or
 * user is text, unless flags has DREY_TOKENIZE_SPECIAL. capacity and *n_ids as
 * for drey_tokenize. */
DREY_API drey_status drey_chat_tokenize(const drey_model *model, const char *system,
                                        const char *user, int flags, int32_t *ids, size_t capacity,
                                        size_t *n_ids, drey_error *err);
DREY_API void drey_free(void *memory);

/* ---- Engine: weights under one memory budget ---- */

typedef enum drey_policy {
    DREY_POLICY_AUTO = 0,      /* optimal with a draft, none without */
    DREY_POLICY_NONE = 1,      /* plain decoding */
    DREY_POLICY_SEQUENCE = 2,  /* a chain of draft_tokens tokens */
    DREY_POLICY_SPECINFER = 3, /* SpecInfer's fixed widths by depth, <1,1,3,1,1,1,1,1> */
    DREY_POLICY_LLMCAD = 4,    /* LLMCad's pacer (3.2) and fallback (3.3) */
    DREY_POLICY_EDGELLM = 5,   /* EdgeLLM's pacer (III-B) and fallback (III-C) */
    DREY_POLICY_OPTIMAL = 6,   /* the likeliest first, as many as measured times ask for */
    /* What the papers compare with, to be measured against; the first two are lossy. */
    DREY_POLICY_BLD = 7, /* Big Little Decoder: a chain while the draft is sure, of which the target
                              lets pass what it finds likely enough */
    DREY_POLICY_DRAFT = 8,   /* the draft model alone writes: nothing else is loaded */
    DREY_POLICY_STD = 9,     /* plain decoding that reads and computes in turns, never at once */
    DREY_POLICY_SINGLE = 10, /* a token a pass: guesses serve early exits alone (drey_exit) */
    DREY_POLICY_STATIC = 11  /* Ghidorah's and Medusa's: a tree of one shape for every turn, by how
                                often guesses are right by depth and rank (drey_static_trees) */
} drey_policy;

enum { DREY_MAX_DRAFTED = 128 }; /* tokens that a policy may draft for one verification */

/* What programs call a policy: "auto", "none", "sequence", "specinfer", "llmcad", "edgellm",
 * "optimal", "bld", "draft", "std", "single", "static". NULL: there is no such policy, so that
 * counting from 0 to the first NULL meets all. */
DREY_API const char *drey_policy_name(drey_policy policy);
/* Takes "sp" for "sequence", "si" for "specinfer" and "spl" for "none", too. False, and *policy
 * stays as it is: no policy has this name. */
DREY_API bool drey_policy_parse(const char *name, drey_policy *policy);
/* The text may be another than the target's own. */
DREY_API bool drey_policy_is_lossy(drey_policy policy);
/* How many tokens the policy may draft for one verification (its option in drey_engine_options: a
 * chain's draft_tokens, a tree's tree_nodes), and how many where the option is 0. False, and all 0:
 * it drafts nothing. */
DREY_API bool drey_policy_bounds(drey_policy policy, int32_t *least, int32_t *most,
                                 int32_t *standard);

/* Parts of drafting that can be left out, to see what each is worth. The text stays the same. */
typedef enum drey_part {
    DREY_PART_TREE = 0,        /* branches; without: chains */
    DREY_PART_FALLBACK = 1,    /* llmcad, edgellm: their threshold follows the outcomes */
    DREY_PART_BATCHING = 2,    /* several nodes in a step of the draft */
    DREY_PART_PROVISIONAL = 3, /* drafting while a verification waits for weights */
    DREY_PART_SLICE = 4,       /* the draft's head over a part of its vocabulary */
    /* Of early exits: the text of DREY_EXIT_FAST may depend on each of these. */
    DREY_PART_SCHEDULE = 5,   /* some layers are looked at; without: each that has a predictor */
    DREY_PART_PREDICTORS = 6, /* without: scores at random */
    DREY_PART_HYPER = 7,      /* exits of passes with drafted tokens */
    /* Guesses of DREY_DRAFTER_LOOKUP beside those of another drafter. Heads have them under
     * `optimal` and AUTO by themselves; who is asked to, under any policy. */
    DREY_PART_LOOKUP = 8
} drey_part;
/* The bit of drey_engine_options.without that leaves the part out, and of its `with` that asks for
 * a part that the policy does not have by itself. */
#define DREY_WITHOUT(part) (UINT64_C(1) << (part))
#define DREY_WITH(part)    DREY_WITHOUT(part)

/* As drey_policy_name and drey_policy_parse: "tree", "fallback", "batching", "provisional",
 * "slice", "schedule", "predictors", "hyper", "lookup". */
DREY_API const char *drey_part_name(drey_part part);
DREY_API bool drey_part_parse(const char *name, drey_part *part);

typedef enum drey_drafter {
    DREY_DRAFTER_NONE = 0,
    DREY_DRAFTER_MODEL = 1,  /* the model in options.draft */
    DREY_DRAFTER_LOOKUP = 2, /* guesses what followed the last tokens earlier in the text, and what
                                the target found likely behind them */
    DREY_DRAFTER_SELF = 3,  /* the target, with the bits of its weights that are in memory: for that
                               its sidecar holds planes (drey_prepare_options) */
    DREY_DRAFTER_MEDUSA = 4 /* heads that were trained for the target (Medusa), in options.heads */
} drey_drafter;

/* "none", "model", "lookup", "self", "medusa"; NULL: there is no such drafter. */
DREY_API const char *drey_drafter_name(drey_drafter drafter);
/* What programs ask that offer drafters by their names. */
typedef struct drey_drafter_info {
    const char *name;
    const char *with;        /* what it drafts with, in a list of such: "its heads" */
    const char *file_ending; /* of the file that it needs, after the target's name; NULL: of none */
    bool takes_model;        /* needs a model in options.draft */
    bool looks_up;           /* guesses from the text, at no cost */
    bool exits;              /* goes with early exits */
    uint64_t reserved[4];    /* zero */
} drey_drafter_info;
/* False: there is no such drafter. They are numbered from 0 without a gap. */
DREY_API bool drey_drafter_describe(drey_drafter drafter, drey_drafter_info *info);
/* Whether a file says of itself that it holds heads for options.heads; false where it cannot
 * be read.
 */
DREY_API bool drey_is_heads_file(const char *path);

/* How streamed weights are read. AUTO takes the first that the system allows; the others force a
 * way, for systems where AUTO chooses badly and for tests. */
typedef enum drey_io {
    DREY_IO_AUTO = 0,
    DREY_IO_URING = 1,   /* io_uring, registered buffers where allowed, O_DIRECT where allowed */
    DREY_IO_PREAD = 2,   /* a few reading threads, O_DIRECT where allowed */
    DREY_IO_BUFFERED = 3 /* reading threads through the page cache, dropping what was read */
} drey_io;

/* As drey_policy_name and drey_policy_parse: "auto", "uring", "pread", "buffered". */
DREY_API const char *drey_io_name(drey_io io);
DREY_API bool drey_io_parse(const char *name, drey_io *io);

/* Numbers of the KV cache. Q8_0 (blocks of 32 with a scale) takes 17/32 of F16's memory and is
 * lossy against it: the text may differ. With either one the text is the same on every CPU tier,
 * for any draft, budget and number of threads. Heads whose width is no multiple of 32 take F16
 * only. The tier "float" keeps floats where F16 is asked for. */
typedef enum drey_kv { DREY_KV_F16 = 0, DREY_KV_Q8_0 = 1 } drey_kv;

/* As drey_policy_name and drey_policy_parse: "f16", "q8_0". */
DREY_API const char *drey_kv_name(drey_kv kv);
DREY_API bool drey_kv_parse(const char *name, drey_kv *kv);

/* Early exits (SpecEE): a pass ends before its last layers where predictors, which drey_train_exit
 * makes, find its tokens decided. What the skipped layers would have kept is computed by a later
 * pass, which carries those tokens along from the layer they left at: the caches are exact in
 * the end. */
typedef enum drey_exit {
    DREY_EXIT_OFF = 0,
    /* The text may be another than the target's own. Written alone, without other sessions, it is
     * the same for any budget, number of threads and CPU tier. */
    DREY_EXIT_FAST = 1,
    /* Tokens that left are compared at full depth before anybody gets them: the text is the
     * target's own. */
    DREY_EXIT_EXACT = 2
} drey_exit;

/* As drey_policy_name and drey_policy_parse: "off", "fast", "exact". */
DREY_API const char *drey_exit_name(drey_exit exit);
DREY_API bool drey_exit_parse(const char *name, drey_exit *exit);

/* As drey_engine_options.memory_bytes. AUTO: what the machine has available or what the process'
 * memory cgroups leave to it, whichever is less, over 1.05; a look at the moment of opening. */
#define DREY_MEMORY_AUTO      0u
#define DREY_MEMORY_UNLIMITED UINT64_MAX

/* Bounds of the options below. */
enum {
    DREY_MAX_CONTEXT = 1 << 30,
    DREY_MAX_THREADS = 1024,
    DREY_MAX_SESSIONS = 64,
    DREY_MAX_PROMPT_CHUNK = 4096,
    DREY_MAX_TRACE_SPANS = 1 << 24,
    DREY_MIN_READ_BYTES = 64 << 10,
    DREY_MAX_READ_BYTES = 64 << 20
};

/* What takes its time. */
typedef enum drey_progress {
    DREY_PROGRESS_LOAD_TARGET = 0, /* bytes */
    DREY_PROGRESS_LOAD_DRAFT = 1,  /* bytes */
    DREY_PROGRESS_PROMPT = 2,      /* tokens */
    DREY_PROGRESS_PREPARE = 3,     /* bytes */
    DREY_PROGRESS_CHECK = 4,       /* bytes */
    DREY_PROGRESS_TRAIN = 5        /* steps, alike in time (drey/train.h) */
} drey_progress;
/* "load target", "load draft", "prompt", "prepare", "check", "train"; NULL: there is no
 * such progress. */
DREY_API const char *drey_progress_name(drey_progress what);

/* done of total. Called from the thread that runs the session, never from another. */
typedef void drey_progress_fn(void *user, drey_progress what, uint64_t done, uint64_t total);

/* Choices between ways of computing that differ in speed alone; no text depends on them. They come
 * from drey_tuning_init, and from drey_tune (drey/tune.h), which measures them. */
typedef struct drey_tuning {
    bool whole_lines;     /* products of many rows go over whole lines of weights */
    bool near_fetch;      /* those of few rows fetch weights into the first cache, a little ahead */
    uint64_t reserved[4]; /* zero */
} drey_tuning;
/* What suits the family of this processor. */
DREY_API void drey_tuning_init(drey_tuning *tuning);
/* The processor as its maker numbers it, such as "AuthenticAMD-26-2-1" (family, model, stepping),
 * or its name where it has no such numbers: what a measured tuning belongs to. */
DREY_API void drey_cpu_id(char *out, size_t capacity);

/* What drafting with a pair of models costs and is worth on this machine, measured beforehand:
 * drey/tune.h. */
typedef struct drey_profile drey_profile;

/* Units that share a pass: clusters of processor cores, and devices. Which there are is a text,
 * drey_engine_options.units: "cpu:0-3=3+cpu:4-7=1".
 *
 *   units  = unit {"+" unit} ["+static"] | "auto"
 *   unit   = ("cpu" [":" cores] | device [":" which]) ["=" share] {"/" word}
 *   word   = a CPU tier | "slow=" factor | "threads=" n      (of clusters)
 *
 * Each matrix is split between them by rows, in proportion to their shares; who is done first goes
 * on with what is left of the others', unless "static" is among the words. A cluster with cores
 * ("0-3,6") has a thread on each, one without has n_threads, or 1 beside other clusters. Devices
 * compute with what is pinned of the target. "auto": a cluster for each speed of cores that the
 * system tells of. Texts do not depend on any of this. */
enum { DREY_MAX_UNITS = 4, DREY_UNIT_WIDTHS = 7, DREY_UNIT_CONTEXTS = 5, DREY_UNIT_CONTEXT = 256 };

/* What was measured. */
typedef struct drey_unit_shares {
    int32_t n_units;
    /* [w][unit]: of passes of up to 2^w rows, the last also of more; only their proportion counts.
     * Units as drey_engine_unit counts them: clusters, then devices. */
    double share[DREY_UNIT_WIDTHS][DREY_MAX_UNITS];
    /* Attention's boundary between the last cluster and the others, devices among them, in [-1, 1],
     * behind DREY_UNIT_CONTEXT positions, four times as many, and so on: at 0 what rows see alike,
     * the dense part, is computed by the others, and what they do not, a tree's part, by the
     * last one. Above 0 so much of the dense part is its, too; below 0 so much of the tree's part
     * the other clusters'. n_boundaries 0: it follows from the shares. */
    int32_t n_boundaries;
    float boundary[DREY_UNIT_CONTEXTS];
    uint64_t reserved[1]; /* zero */
} drey_unit_shares;

/* Beginnings of texts that were computed are kept in blocks of 64 tokens, and restored where
 * another text begins alike: with the same bytes, so that it is the same text. In memory, which is
 * in the plan, and in a folder, from where they come back after a restart. */
typedef struct drey_prefix_options {
    uint64_t memory_bytes; /* 0: none are kept; else for one block at least */
    const char *folder;    /* NULL: memory alone. Made if it is not there; one engine at a time has
                              it. Of other models nothing is restored from it */
    uint64_t disk_bytes;   /* of the folder at most, for one block at least: what was used longest
                              ago goes */
    uint64_t reserved[4];  /* zero */
} drey_prefix_options;

typedef struct drey_engine_options {
    const drey_model *target; /* borrowed until the engine is closed */
    const drey_model *draft;  /* borrowed as long; NULL unless drafter is DREY_DRAFTER_MODEL */
    drey_drafter drafter;
    drey_policy policy;
    uint64_t memory_bytes; /* bound on everything the process uses; or DREY_MEMORY_* */
    int32_t n_context;     /* positions of prompt and text together */
    int32_t n_threads;     /* 0: one for each core this process may use */
    int32_t n_sessions;    /* that are open at the same time; 0: 1 */
    int32_t draft_tokens;  /* length of a drafted chain; 0: the policy's standard */
    int32_t tree_nodes;    /* most nodes of a tree; 0: the policy's standard */
    int32_t prompt_chunk;  /* rows of a prompt pass; 0: what the plan chooses */
    const char *cpu_tier;  /* NULL: the best this CPU has; see drey_cpu_tiers */
    drey_io io;
    drey_kv kv;          /* of the target and of the draft */
    uint64_t read_bytes; /* of one streamed read, about; 0: 1 MiB */
    drey_progress_fn *progress;
    void *progress_user;
    /* The target's sidecar (see drey_prepare), which has to be good; NULL: the one beside the
     * target, if there is one and it is good. Copied. */
    const char *sidecar;
    bool no_sidecar;           /* use none */
    const drey_tuning *tuning; /* copied; NULL: what suits the processor's family */
    uint64_t without;          /* DREY_WITHOUT of each part of drafting that is left out */
    int32_t trace_spans;       /* latest spans and nodes to keep, see drey_session_trace; 0: none */
    /* The file of heads of DREY_DRAFTER_MEDUSA; NULL: MODEL.drey-medusa beside the target.
     * Read while the engine or planner opens. DREY_ERR_MISMATCH: heads of another model, or of
     * another width. */
    const char *heads;
    const drey_profile *profile; /* copied; NULL: nothing is known */
    drey_exit exit;
    float exit_threshold; /* scores above it, within (0, 1], are looked into; 0: the file's */
    /* The predictors, which have to fit; NULL: those beside the target, MODEL.drey-exit. Read while
     * the engine or planner opens, unless exits are off. */
    const char *exit_file;
    uint64_t held_bytes; /* that the caller holds beside the engine, or will: within memory_bytes */
    const char *units;   /* copied; NULL: "cpu", a thread for each core, alike */
    const drey_unit_shares *unit_shares; /* copied; used where `units` names no shares. NULL: a
                                            thread's worth for each thread and device */
    const drey_prefix_options *prefixes; /* borrowed for the call; NULL: none are kept */
    uint64_t with;                       /* DREY_WITH(DREY_PART_LOOKUP), or 0 */
    uint64_t reserved[4];                /* zero */
} drey_engine_options;
DREY_API void drey_engine_options_init(drey_engine_options *options);

/* What speed is predicted from; 0: not known. */
typedef struct drey_speeds {
    double disk_bytes_per_s;   /* reading the target as a pass does */
    double memory_bytes_per_s; /* all threads reading */
    double one_ops_per_s;      /* all threads, matrix kernel in the caches: one row of a pass, */
    double tree_ops_per_s;     /* a whole tree of rows; a multiply-add is 2 */
    uint64_t reserved[4];      /* zero */
} drey_speeds;

/* What a budget buys. All in bytes unless the name says otherwise. Of a budget these are the parts:
 * pinned, draft, ring, kv, work, held, prefix, program, tokenizer, stack, queue, reserve and spare
 * bytes. */
typedef struct drey_plan {
    uint64_t budget_bytes;
    uint64_t smallest_budget_bytes; /* the least that works for certain, in whole MiB */
    uint64_t target_bytes;          /* all tensors of the target */
    uint64_t pinned_bytes;          /* of the target, kept in memory */
    uint64_t streamed_bytes_per_pass;
    uint64_t lookup_bytes;    /* embedding rows looked up on disk, never kept */
    uint64_t draft_bytes;     /* the draft's weights in memory */
    uint64_t ring_bytes;      /* staging for reads, target and draft */
    uint64_t kv_bytes;        /* the caches of all sessions */
    uint64_t kv_saved_bytes;  /* what they would take more as F16 */
    uint64_t draft_kv_bytes;  /* of kv_bytes the draft's */
    uint64_t work_bytes;      /* activations, logits, tree, scratch */
    uint64_t session_bytes;   /* of kv_bytes and work_bytes what each session takes */
    uint64_t process_bytes;   /* the next five together */
    uint64_t program_bytes;   /* code of program and libraries, what it held before the plan */
    uint64_t tokenizer_bytes; /* headers and tokenizers of both models */
    uint64_t stack_bytes;     /* of the threads */
    uint64_t queue_bytes;     /* of the readers, and what the kernel takes for them */
    uint64_t reserve_bytes;   /* page tables, the kernel's other structures, rounding */
    uint64_t spare_bytes;     /* budget left over */
    drey_kv kv;
    bool budget_is_estimate; /* of DREY_MEMORY_AUTO: without /proc; free memory and buffers only */
    int32_t n_tensors_pinned, n_tensors_streamed;
    int32_t n_context; /* positions of prompt and text, as asked for */
    int32_t n_sessions;
    int32_t prompt_chunk; /* rows of a prompt pass */
    int32_t tree_rows;    /* most rows of a pass that verifies: the root and what was drafted */
    int32_t n_threads;
    bool sidecar;              /* the target's weights come packed from a sidecar */
    char sidecar_refused[500]; /* why the one beside the target is not used; "" if there is none */

    /* Predicted from speeds, in seconds; 0: not known. */
    drey_speeds speeds;  /* as they were given */
    double read_s;       /* of a pass: streamed bytes at the disk's speed */
    double compute_s;    /* of a pass over one row, in memory */
    double verify_s;     /* of a pass over tree_rows, in memory */
    double draft_s;      /* the draft model's passes for a full tree */
    double pass_s;       /* with its drafting: the longer of read_s and verify_s, and what of
                            draft_s the ring does not cover */
    double alone_pass_s; /* without a draft: the longer of read_s and compute_s */
    double passes_per_s; /* 1 / pass_s: a pass writes from 1 to tree_rows tokens */
    double ceiling_tokens_per_s; /* without a draft: 1 / alone_pass_s */
    int64_t draft_ids; /* tokens that the draft can guess before the text has used others; 0: all,
                          or there is no draft */
    /* With its drafter, on texts of usual sorts, at these speeds, or on a machine and a disk of
     * usual sorts where none were given: to rank drafters before anything is measured. */
    double expected_tokens_per_s;
    int64_t front_layers;  /* above 0: passes end early, and so many of the first layers stay in
                             memory, or most of each; 0: an equal share of each layer stays */
    uint64_t held_bytes;   /* the caller's, as the options say */
    uint64_t prefix_bytes; /* for prefixes that are kept */
    uint64_t reserved[11]; /* zero */
} drey_plan;

/* A planner reads headers, tensors' shapes and the sidecar's table once, when it opens; from
 * then on it tells what any budget would buy, and opens no file for it but to measure. It holds
 * some KiB. */
typedef struct drey_planner drey_planner;

/* options: as for drey_engine_open; the models are borrowed until the planner is closed. */
DREY_API drey_status drey_planner_open(drey_planner **out, const drey_engine_options *options,
                                       drey_error *err);
/* Accepts NULL; nulls the pointer. */
DREY_API void drey_planner_close(drey_planner **planner);

/* The plan of a budget. memory_bytes: a budget, DREY_MEMORY_UNLIMITED, or 0 for that of the
 * options, where DREY_MEMORY_AUTO means what it meant when the planner opened. speeds: what
 * drey_planner_measure found or the caller knows; NULL: nothing is predicted. A budget too small is
 * DREY_ERR_MEMORY and names the smallest, as plan->smallest_budget_bytes does. */
DREY_API drey_status drey_planner_make(drey_planner *planner, uint64_t memory_bytes,
                                       const drey_speeds *speeds, drey_plan *plan, drey_error *err);

/* Measures those of the speeds that are 0, in less than a second and within the budget: the disk by
 * reading the target for 0.4 s, unless nothing of it is streamed. */
DREY_API drey_status drey_planner_measure(drey_planner *planner, uint64_t memory_bytes,
                                          drey_speeds *speeds, drey_error *err);

/* Calls visit for each tensor of the target in the order of a pass. */
typedef enum drey_residency {
    DREY_PINNED,
    DREY_STREAMED,
    DREY_LOOKED_UP /* rows are read one by one as tokens ask for them */
} drey_residency;
typedef void drey_plan_visit_fn(void *user, const char *tensor, uint64_t bytes,
                                drey_residency where);
DREY_API drey_status drey_planner_visit(drey_planner *planner, uint64_t memory_bytes,
                                        drey_plan_visit_fn *visit, void *user, drey_error *err);

/* The plan of the options' budget, by a planner that is opened for it and closed again. */
DREY_API drey_status drey_plan_make(const drey_engine_options *options, const drey_speeds *speeds,
                                    drey_plan *plan, drey_error *err);

/* Brings the library's code into memory, as every plan counts it, and lets the page cache forget
 * the rest of the file it lies in, such as symbols for a debugger. A program that is held to
 * its budget by a memory cgroup calls it before it opens a planner or an engine; the file is the
 * program's own where drey is linked statically. Not called by the library itself. */
DREY_API void drey_settle_memory(void);

typedef struct drey_engine drey_engine;

/* Plans, takes all memory, and starts the threads. Weights are read by the first pass of a session.
 * DREY_ERR_MISMATCH if the draft's tokens differ from the target's (it says which). */
DREY_API drey_status drey_engine_open(drey_engine **out, const drey_engine_options *options,
                                      drey_error *err);
DREY_API void drey_engine_close(drey_engine **engine);
DREY_API void drey_engine_plan(const drey_engine *engine, drey_plan *plan);

typedef struct drey_unit {
    char name[80];     /* "cpu:0-3", "opencl" */
    char cpu_tier[16]; /* of a cluster; "" of a device */
    int32_t n_threads; /* of a cluster; 0: a device */
    double slow; /* of a cluster: the factor by which it is made to take longer; 1: it is not */
    double share[DREY_UNIT_WIDTHS]; /* of passes of up to 2^w rows; the units' sum is 1 */
    uint64_t n_groups; /* groups of 32 rows that it has computed; 0 where there is one cluster */
    char failed[500];  /* why it is used no longer, others doing its part; "" */
    /* Of attention that was divided between units, by tasks of a key head and some rows: blocks
     * of 64 positions that all rows of a task see, and tasks of which it computed what is left. */
    uint64_t n_dense_blocks, n_tails;
    uint64_t attends;     /* 1: it has a part in attention, 0: drey_engine_unit_no_attention */
    uint64_t reserved[1]; /* zero */
} drey_unit;
/* The engine's units, counted from 0; false: there is no such unit. Between steps of its sessions.
 */
DREY_API bool drey_engine_unit(const drey_engine *engine, int32_t i, drey_unit *out);
/* Why a unit has no part in attention: it has memory of its own, its arithmetic differs, or it has
 * failed. NULL: it has, or there is no such unit. Until the engine's next step. */
DREY_API const char *drey_engine_unit_no_attention(const drey_engine *engine, int32_t i);

/* ---- Session: one timeline of tokens ---- */

typedef struct drey_session drey_session;

/* An engine carries as many sessions at a time as its options say. The session borrows the engine;
 * an engine and its sessions are used by one thread at a time, as if they were one object. */
DREY_API drey_status drey_session_open(drey_session **out, drey_engine *engine, drey_error *err);
DREY_API void drey_session_close(drey_session **session);

/* Stops the text that is being written, or the scoring. Any thread may call it, and signal
 * handlers. A session that computes alone stops at the next operation; where several share a pass,
 * it goes on without this one from the next layer on (where passes may end early, drey_exit, from
 * the next pass on). Where nothing is written it does nothing, and nothing of it stays for the next
 * text. Stopped while the first pass reads the weights, the next pass reads them from the
 * beginning. */
DREY_API void drey_session_cancel(drey_session *session);

typedef struct drey_sampling {
    float temperature;    /* 0: the most likely token, always */
    int32_t top_k;        /* 0: off */
    float top_p;          /* 1: off */
    float min_p;          /* 0: off */
    uint64_t seed;        /* one seed gives one text, with or without a draft */
    uint64_t reserved[4]; /* zero */
} drey_sampling;

/* bytes: whole UTF-8 characters only (or bytes that can never become one), n of them, borrowed for
 * the call. Only verified text comes here. Return false to stop (finish reason "stop"). */
typedef bool drey_text_fn(void *user, const char *bytes, size_t n_bytes);
/* Each verified token, before its text. Return false to stop. */
typedef bool drey_token_fn(void *user, int32_t id);

/* A text as it can be shown before it is verified: behind the verified text stands a provisional
 * one, what the draft believes in most. It is empty where a text begins and where it ends. */
enum { DREY_MAX_PROVISIONAL = 2048 }; /* bytes */
typedef enum drey_event_kind {
    DREY_EVENT_PROVISIONAL = 0, /* bytes join the end of the provisional text */
    DREY_EVENT_TAKEN_BACK = 1,  /* bytes, which are its end, go */
    /* bytes join the end of the verified text. The provisional text begins with them, and as many
     * bytes leave its beginning; or, where it is shorter, they begin with it, and all of it goes */
    DREY_EVENT_VERIFIED = 2
} drey_event_kind;
typedef struct drey_event {
    drey_event_kind kind;
    const char *bytes; /* [n_bytes], whole characters as for drey_text_fn, borrowed for the call */
    size_t n_bytes;
    uint64_t reserved[2]; /* zero */
} drey_event;
/* Comes with each turn, and every 50 ms or so while a pass waits for weights. */
typedef void drey_event_fn(void *user, const drey_event *event);

/* What the target thought of a token where it wrote one: the natural logarithm of its probability,
 * of all tokens, at temperature 1 and before any filter or bias. */
typedef struct drey_logprob {
    int32_t id;
    float logprob;
} drey_logprob;
enum { DREY_MAX_TOP = 20 };
/* Each verified token, before drey_token_fn, with the n_top most likely ones there, the best first
 * (of equal ones the lower id), borrowed for the call. */
typedef void drey_logprobs_fn(void *user, const drey_logprob *written, const drey_logprob *top,
                              int32_t n_top);

/* Added to a token's logit before one is chosen. -INFINITY: never this one. */
typedef struct drey_bias {
    int32_t id;
    float bias;
} drey_bias;

/* The text is over, for whatever reason, and its statistics are complete. From within
 * drey_engine_step it may call drey_session_sync and drey_session_begin for sessions that write
 * nothing, the one that has ended too: what they begin joins with the next step. Nothing else of
 * the engine may be called from here, and nothing at all from within other functions. A text that
 * is cancelled ends in the middle of a pass that goes on for others. */
typedef void drey_end_fn(void *user);

typedef struct drey_generate_options {
    int32_t n_predict; /* most tokens to write */
    drey_sampling sampling;
    const char *const *stops; /* texts that end the generation; they are not written */
    size_t n_stops;
    bool ignore_eos;
    bool special; /* write special tokens out as text */
    drey_text_fn *on_text;
    drey_token_fn *on_token;
    void *user;
    drey_event_fn *on_event; /* before on_text, where both have the same bytes */
    /* NULL: nothing is computed for it. Not where passes end early (drey_exit). */
    drey_logprobs_fn *on_logprobs;
    const drey_bias *biases; /* [n_biases], copied */
    int32_t n_biases;
    int32_t n_top; /* for on_logprobs: 0 to DREY_MAX_TOP */
    drey_end_fn *on_end;
    /* Nothing is guessed for this text, whatever the engine's drafter and policy: a pass writes a
     * token. The text is the same. Not where passes end early (drey_exit). */
    bool no_draft;
    uint64_t reserved[2]; /* zero */
} drey_generate_options;
DREY_API void drey_generate_options_init(drey_generate_options *options);

typedef enum drey_finish {
    DREY_FINISH_STOP,        /* end of text, a stop text, or a callback said so */
    DREY_FINISH_LENGTH,      /* n_predict or the context is used up */
    DREY_FINISH_INTERRUPTED, /* cancelled */
    DREY_FINISH_ERROR
} drey_finish;
DREY_API const char *drey_finish_name(drey_finish finish);

/* The prompt's last pass writes the first token; decoding starts when the draft has read the
 * prompt, too. Shares are of decode_s. */
typedef struct drey_statistics {
    int64_t prompt_tokens, generated_tokens;
    double prompt_s, decode_s; /* prompt_s holds the loading: the first pass reads the weights */
    double first_token_s;      /* from the call to the first token; 0: none */
    double tokens_per_s;       /* of those after the prompt, / decode_s */
    /* tokens_per_pass / (max(streamed / disk, compute) + drafting that reads do not cover); 0: not
     * known */
    double ceiling_tokens_per_s;
    double disk_bytes_per_s;   /* the best the disk gave in this run while it was kept busy */
    double tokens_per_pass;    /* of those after the prompt */
    int64_t n_passes;          /* of the target, after the prompt */
    int64_t drafted, accepted; /* tokens proposed to the target, and those it agreed with */
    uint64_t read_bytes;       /* in decoding, both models */
    double read_bytes_per_s;
    double stall_share, verify_share, draft_share; /* waiting for reads; target pass; draft */
    uint64_t load_bytes;                           /* read before decoding */
    uint64_t budget_bytes, pinned_bytes, streamed_bytes_per_pass;
    uint64_t session_bytes;     /* what each session of the engine takes */
    uint64_t peak_memory_bytes; /* the process' own high-water mark */
    int64_t decode_major_faults;
    bool sidecar;                   /* the target's weights came packed from a sidecar */
    bool direct, uring, registered; /* how they were read: O_DIRECT, io_uring, registered buffers */
    drey_kv kv;                     /* DREY_KV_Q8_0: lossy, f16's text may be another */
    drey_finish finish;
    double provisional_share; /* drafting while the target's pass waits for reads */
    /* What tokens_per_s would have been with a sidecar: without the packing of streamed weights, as
     * far as reads leave the time. 0: there is one, or nothing was streamed. */
    double sidecar_tokens_per_s;
    /* Of the timeline when the text began: those that were not computed for it, but kept or
     * restored (drey_prefix_options). */
    int64_t cached_tokens;
    /* Of DREY_FINISH_STOP: the stop text that was written, counted from 1; 0: the text's own end;
     * -1: a callback said so. */
    int32_t stop_text, zero;
    uint64_t reserved[12]; /* zero */
} drey_statistics;

/* What came of drafting in one text. Arrays' last elements hold all that is beyond them, too. */
enum { DREY_SPECULATION_DEPTHS = 32, DREY_SPECULATION_RANKS = 8, DREY_SPECULATION_WRITTEN = 64 };
typedef struct drey_speculation {
    /* [d]: nodes d + 1 below the root that the target was asked about, and those it agreed with */
    int64_t depth_submitted[DREY_SPECULATION_DEPTHS], depth_accepted[DREY_SPECULATION_DEPTHS];
    /* [r]: the same for guess r + 1 of the draft, the best being the first; the last element: those
     * that were not among its guesses */
    int64_t rank_submitted[DREY_SPECULATION_RANKS + 1], rank_accepted[DREY_SPECULATION_RANKS + 1];
    /* [r]: tokens of the target that were guess r + 1 of the draft there, drafted or not; the last
     * element: those that were none. Of places at which the draft guessed */
    int64_t rank_chosen[DREY_SPECULATION_RANKS + 1];
    int64_t passes_writing[DREY_SPECULATION_WRITTEN]; /* [n]: of the target, that wrote n + 1 */
    int64_t draft_steps;                              /* the draft's, of one or more nodes each */
    double draft_s;           /* all drafting, beside the target's passes or during them */
    double hidden_share;      /* of draft_s during them */
    double alpha;             /* the fallback's threshold as it stands; 0: the policy has none */
    int64_t provisional_kept; /* nodes drafted during a pass beyond those it verified: below the */
    int64_t provisional_lost; /* next root, or not */
    bool lossy;               /* the text may be another than the target's own */
    int64_t differed;         /* tokens that are not the target's choice where they stand, which the
                                 policy let pass; -1: nobody asked the target */
    int64_t outside_slice;    /* tokens of the target that the draft could not guess: rows that its
                                 head lacks */
    /* Accepted tokens that the draft alone had guessed, the text alone (DREY_PART_LOOKUP), and
     * both; all 0 where they are not blended. */
    int64_t accepted_of_draft, accepted_of_text, accepted_of_both;
    uint64_t reserved[11]; /* zero */
} drey_speculation;

/* Of the text that is being written, or of the last one; all 0 before the first. Times are filled
 * when the text ends. */
DREY_API void drey_session_speculation(const drey_session *session, drey_speculation *out);

/* What came of early exits in one text. Layers are counted as complete: a token that left behind l
 * layers has at_layer[l - 1], one that went through at_layer[n_layers - 1]; the last element holds
 * all that is beyond it, too. */
enum { DREY_EXITS_LAYERS = 128 };
typedef struct drey_exits {
    drey_exit mode;
    int32_t n_layers; /* of the target; 0: nothing is known */
    int64_t tokens;   /* that passes behind the prompt found; exact: those taken back, too */
    int64_t left;     /* of them those whose pass ended early */
    int64_t at_layer[DREY_EXITS_LAYERS];
    double layers_per_token;
    int64_t looks;      /* scores asked for */
    int64_t candidates; /* scores above the threshold, for which the whole head was computed */
    int64_t refused;    /* of them those where it found another token, or one that may not leave */
    int64_t compared;   /* tokens that left and were then completed by a pass to the last layer */
    int64_t agreed;     /* of them those that the whole depth chose, too */
    int64_t taken_back; /* exact: tokens that another one replaced, and those behind it */
    int64_t n_full;     /* passes that completed tokens which had left */
    uint64_t skipped_bytes; /* streamed bytes behind the exits, */
    uint64_t vain_bytes;    /* and those of them that had been read by then */
    double look_s, head_s;  /* features and scores; whole heads for candidates */
    uint64_t reserved[16];  /* zero */
} drey_exits;

/* Of the text that is being written, or of the last one; all 0 before the first. */
DREY_API void drey_session_exits(const drey_session *session, drey_exits *out);

/* Puts ids[0..n) at the end of the session's timeline and writes on from there. Statistics are
 * filled also when it fails (may be NULL). What was verified before an error or cancel has been
 * delivered and stays in the timeline: a call with n = 0 goes on from there, also once a disk that
 * failed is back. DREY_ERR_CONTEXT: prompt too long; DREY_ERR_CANCELLED: cancelled; DREY_ERR_IO: a
 * file cannot be read, or has changed since the model was opened, which ends every later call, too.
 */
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

/* Makes the timeline equal to ids[0..n), whatever it was. What both begin with is kept and not
 * computed again, but for the last of the n tokens; *n_kept (may be NULL) says how many tokens that
 * are. Ends the text that is being written (finish reason "interrupted"). On an error nothing has
 * changed: DREY_ERR_USAGE: no such id; DREY_ERR_CONTEXT: no room for them and one to write. */
DREY_API drey_status drey_session_sync(drey_session *session, const int32_t *ids, size_t n,
                                       size_t *n_kept, drey_error *err);
/* Keeps the first n tokens of the timeline; otherwise as drey_session_sync. DREY_ERR_USAGE: it has
 * fewer. */
DREY_API drey_status drey_session_truncate(drey_session *session, size_t n, drey_error *err);
/* Forgets the timeline; keeps the weights: truncates to 0. */
DREY_API void drey_session_reset(drey_session *session);

/* Begins a text behind what the timeline holds; steps write it. options are copied, stops too;
 * `user` has to stay. statistics (may be NULL) is borrowed until the text ends, and filled then;
 * its prompt_tokens are those that have to be computed. On an error nothing has begun:
 * DREY_ERR_USAGE (also where a text is being written), DREY_ERR_CONTEXT, DREY_ERR_MEMORY. */
DREY_API drey_status drey_session_begin(drey_session *session, const drey_generate_options *options,
                                        drey_statistics *statistics, drey_error *err);
/* One pass: a chunk of the prompt, or a turn. *done: the text has ended (and where none is
 * written). DREY_ERR_IO leaves the text as it is: a step may be tried again, or drey_session_end
 * called. DREY_ERR_CANCELLED ends the text. */
DREY_API drey_status drey_session_step(drey_session *session, bool *done, drey_error *err);
/* Ends the text that is being written, if there is one: what was held back of its last characters
 * is delivered, and the finish reason is "interrupted". */
DREY_API void drey_session_end(drey_session *session);
DREY_API bool drey_session_is_writing(const drey_session *session);
/* How far the text's prompt has been read: done of total tokens that have to be computed. */
DREY_API void drey_session_prompt(const drey_session *session, int64_t *done, int64_t *total);

/* A step of every session of the engine that is writing, all in one pass: each weight is read once
 * for all of them. Sessions may begin and end between any two steps; the text of each is what it
 * would be alone. *n_writing: how many go on. A cancelled session's text ends, without an error, at
 * the next layer, which on_end tells. DREY_ERR_IO is everybody's, and all may go on with the next
 * step. */
DREY_API drey_status drey_engine_step(drey_engine *engine, int32_t *n_writing, drey_error *err);

/* ---- Sessions in files ----
 *
 * A file holds a timeline with the keys and values of its computed positions, so that a session
 * that loads it goes on without reading the prompt again, and writes what the one that was saved
 * would have written. It belongs to the target it was made with, and to the kind of its cache; a
 * draft, budget and threads may be others. What it holds is as readable as the text. */

/* The tokens of the timeline: borrowed until the next call with this session. */
DREY_API void drey_session_timeline(const drey_session *session, const int32_t **ids, size_t *n);

typedef struct drey_saved_session {
    drey_sampling sampling; /* of the last text; as drey_generate_options_init has it: none */
    int64_t n_tokens;       /* of the timeline */
    int64_t n_kept;         /* of them those that are not computed again */
    char *note; /* [n_note_bytes], and a NUL behind it: what drey_session_save was given; NULL:
                   nothing. The caller frees it with drey_free */
    size_t n_note_bytes;
    uint64_t reserved[8]; /* zero */
} drey_saved_session;

/* Writes the session to `path`, which appears whole or not at all. note[n_note_bytes]: what else
 * the caller wants to have back, DREY_MAX_NOTE_BYTES at most. DREY_ERR_USAGE: a text is being
 * written; DREY_ERR_IO: the folder, its rights, the disk is full. */
enum { DREY_MAX_NOTE_BYTES = 64 << 20 };
DREY_API drey_status drey_session_save(const drey_session *session, const char *path,
                                       const void *note, size_t n_note_bytes, drey_error *err);
/* Makes the session what was saved, whatever it was; ends the text that is being written. All of
 * the file is checked before anything changes: after an error the session is as it was (should the
 * disk fail behind that check, its tokens are, and have to be computed again). `saved` may be NULL.
 * DREY_ERR_MISMATCH: of another model, or kind of cache; DREY_ERR_FORMAT: damaged, or no such file;
 * DREY_ERR_CONTEXT: longer than the engine's n_context; DREY_ERR_IO. */
DREY_API drey_status drey_session_load(drey_session *session, const char *path,
                                       drey_saved_session *saved, drey_error *err);
/* Reads what such a file says of itself, and its note, but not the tokens. A note of more than
 * most_note_bytes stays unread: `note` is NULL then, and n_note_bytes is its length. Which model it
 * belongs to is not looked at. DREY_ERR_FORMAT, DREY_ERR_MISMATCH (another version's),
 * DREY_ERR_IO. */
DREY_API drey_status drey_saved_session_read(const char *path, size_t most_note_bytes,
                                             drey_saved_session *saved, drey_error *err);

/* Kept prefixes since the engine opened. */
typedef struct drey_prefixes {
    uint64_t memory_bytes, disk_bytes; /* set aside in memory; what the folder holds */
    int64_t blocks, files;             /* there now */
    int64_t restored_tokens;
    int64_t kept_blocks, read_blocks, written_blocks; /* kept in memory, from and to the folder */
    bool disk_failed;     /* the folder's disk is full or fails: nothing more is written to it */
    uint64_t reserved[4]; /* zero */
} drey_prefixes;
DREY_API void drey_engine_prefixes(const drey_engine *engine, drey_prefixes *out);

/* Sums over all that an engine has done since it opened. Between two steps. */
typedef struct drey_counts {
    int64_t passes, rows;               /* of the target, in the middle of texts */
    int64_t prompt_passes, prompt_rows; /* that read prompts, or the weights */
    double pass_s, prompt_s, draft_s;   /* draft_s: beside passes; hidden_s: during them */
    double hidden_s, stall_s;           /* stall_s: passes that waited for weights */
    uint64_t read_bytes;                /* of both models */
    double read_s;                      /* in which these reads were under way */
    uint64_t peak_memory_bytes;         /* the process' own high-water mark */
    uint64_t reserved[8];               /* zero */
} drey_counts;
DREY_API void drey_engine_count(const drey_engine *engine, drey_counts *out);

/* Natural-log probabilities of ids[1..n) given what stands before each: logprob[n - 1]. Starts from
 * an empty timeline and leaves an empty one. DREY_ERR_CANCELLED also where the cancel came too late
 * to stop anything; DREY_ERR_FORMAT where one is not finite. */
DREY_API drey_status drey_session_score(drey_session *session, const int32_t *ids, size_t n,
                                        float *logprob, drey_error *err);

/* ---- Traces: what ran when, and the trees that were guessed ----
 *
 * With trace_spans in its options an engine keeps as many spans of what it computed, and as many of
 * each model's reads; each session keeps the trees of its latest turns, about as many nodes. All of
 * that is in the plan, the oldest goes first, and keeping it allocates nothing. */

/* Times are of a clock that only goes forward. */
typedef struct drey_trace_span {
    int64_t t0_ns, t1_ns;
    /* "load" (the pass that reads the weights), "prompt", "draft", "verify", "provisional", and,
     * within those, "stall" (waiting for reads); "read" and "read draft", of which several run at a
     * time. A constant. */
    const char *what;
    int64_t amount; /* rows of a pass, nodes drafted, bytes read */
} drey_trace_span;

typedef struct drey_trace_node {
    int32_t token;
    int32_t parent; /* index of a node before this one; -1 for the root, a token written before */
    float confidence;
    uint8_t rank; /* among the draft's guesses, the first being 1; 0: none of them, or the root */
    bool submitted, accepted;
    bool reserved; /* false */
} drey_trace_node;

typedef struct drey_trace_turn {
    int64_t number;       /* of the text's turns, the first being 0 */
    int64_t t0_ns, t1_ns; /* from the end of the one before to its own */
    int32_t position;     /* of the root in the timeline */
    int32_t next;         /* the target's token behind the accepted ones, which no draft gave */
    int32_t n_written;    /* accepted tokens and `next`, as far as the text took them */
    int32_t n_nodes;
    const drey_trace_node *nodes; /* [n_nodes], borrowed for the call; the root is the first */
} drey_trace_turn;

typedef struct drey_trace_visitor { /* a NULL function is not called */
    void (*span)(void *user, const drey_trace_span *span);
    void (*turn)(void *user, const drey_trace_turn *turn);
    void *user;
    uint64_t reserved[4]; /* zero */
} drey_trace_visitor;

/* Shows spans of the session's engine, the oldest of each kind of work first, then the session's
 * turns, the oldest first. */
DREY_API void drey_session_trace(const drey_session *session, const drey_trace_visitor *visitor);

/* ---- Sidecars: weights packed beforehand ---- */

typedef struct drey_prepare_options {
    const drey_model *model; /* borrowed for the call */
    const char *output;      /* NULL: MODEL.drey, beside the model's first file */
    bool check; /* writes nothing: reads model and sidecar to the last byte and compares them */
    bool force; /* writes also where a good sidecar, or a file of another kind, stands already */
    /* Each may be NULL. Called from the calling thread: announce once, before anything is written,
     * with the disk space that is needed and that is free; progress with DREY_PROGRESS_PREPARE or
     * DREY_PROGRESS_CHECK; go_on now and then: false ends the call with DREY_ERR_CANCELLED. */
    void (*announce)(void *user, const char *path, uint64_t needed_bytes, uint64_t free_bytes);
    drey_progress_fn *progress;
    bool (*go_on)(void *user);
    void *user;
    /* High and low bits of the weights apart, so that the high ones can stay in memory and draft
     * (DREY_DRAFTER_SELF); the text is the same. */
    bool planes;
    uint64_t reserved[7]; /* zero */
} drey_prepare_options;
DREY_API void drey_prepare_options_init(drey_prepare_options *options);

typedef struct drey_prepare_report {
    uint64_t sidecar_bytes; /* the sidecar's size; 0: not known */
    bool written;           /* false: it was there and good already, or was only checked */
    uint64_t reserved[4];   /* zero */
} drey_prepare_report;

/* Writes the model's sidecar: its matrices as the kernels want them, so that streamed weights need
 * no packing. An engine uses it when it lies beside the model. Texts are the same with and without.
 * It appears under its name whole or not at all, whatever happens meanwhile, and is refused by
 * engines once the model changes. The report may be NULL. */
DREY_API drey_status drey_prepare(const drey_prepare_options *options, drey_prepare_report *report,
                                  drey_error *err);

/* ---- Looking at files and machines ---- */

typedef struct drey_inspector {
    void (*header)(void *user, uint32_t version, uint64_t n_keys, uint64_t n_tensors,
                   uint64_t file_bytes);
    /* value: as text; long arrays and strings are cut with "..." */
    void (*key)(void *user, const char *name, const char *type, const char *value);
    void (*tensor)(void *user, const char *name, const char *type, const int64_t *dims, int n_dims,
                   uint64_t bytes, uint64_t offset, bool runnable);
    void *user;
    uint64_t reserved[4]; /* zero */
} drey_inspector;
/* Validates a GGUF file of any architecture and shows what is in it. */
DREY_API drey_status drey_inspect(const char *path, const drey_inspector *inspector,
                                  drey_error *err);

/* What keeps a file from running, a sentence each; none where nothing does: an unknown
 * architecture, each key that drey does not compute, the first tensor that is missing or has no
 * role, the tokenizer. Sentences are valid during the call. Errors are those of opening the file
 * alone. */
DREY_API drey_status drey_missing(const char *path, void (*missing)(void *user, const char *what),
                                  void *user, drey_error *err);

/* Names of the CPU tiers that this build and machine have, the best first, NULL at the end. "ref"
 * is always the last but one; "float" (activations stay float: slow, for judging accuracy) the
 * last. */
DREY_API const char *const *drey_cpu_tiers(void);
/* The processor's name (on Arm the board's), NUL-terminated; what has no room is cut off. */
DREY_API void drey_cpu_name(char *out, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
