/* drey runs a language model that is larger than its memory budget, with the help of a small model,
 * and writes exactly the text that the large model alone would have written.
 *
 * How to use it: open a model (header and tokenizer, no weights), turn text into token ids, open an
 * engine (the memory plan: what is pinned, what is streamed), open a session (one timeline with its
 * caches), generate. Every function that can fail returns a drey_status and fills a drey_error,
 * which may be NULL. The library never exits, aborts, prints, or reads the environment, and always
 * computes in the default floating-point environment. One thread at a time may use an object,
 * unless a comment says otherwise.
 *
 * Call the `_init` function of a structure before filling it. The size and the field offsets of
 * structures do not change while the library's soname is the same (libdrey.so.0.MINOR before 1.0,
 * libdrey.so.MAJOR from then on): a new field is taken from `reserved`, which `_init` sets to zero,
 * and zero keeps the earlier behaviour. So a program runs with any later library of its soname
 * without being compiled again. Functions that measure are in drey/tune.h. */
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

/* The option that the message is about, so that a program can name its own switch for it. */
typedef enum drey_hint {
    DREY_HINT_NONE = 0,
    DREY_HINT_N_CONTEXT = 1,    /* use a larger n_context */
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
 * compute; drey_engine_open names the tensor. Every key under the architecture's name must be one
 * that drey computes or that is known to have no effect. Numbers that are not finite give
 * DREY_ERR_FORMAT when they are read: norms and biases in drey_engine_open, matrices when they are
 * loaded or streamed, or in drey_prepare. */
DREY_API drey_status drey_model_open(drey_model **out, const char *path, drey_error *err);
/* Accepts NULL; sets the pointer to NULL. Close the engines that borrow the model first. */
DREY_API void drey_model_close(drey_model **model);

typedef struct drey_model_info {
    const char *architecture; /* borrowed from the model */
    const char *name;         /* general.name, or "" */
    int32_t n_layers, n_embd, n_heads, n_heads_kv, head_dim, n_ff, n_vocab;
    int32_t n_context_train; /* the longest context the model was made for */
    uint64_t file_bytes;     /* all parts */
    uint64_t weight_bytes;   /* tensors only */
    int64_t n_parameters;
    int32_t bos_id, eos_id; /* -1: the file names none */
    /* The longest text of any token but the unknown one, in bytes: a text of more than n *
     * token_bytes_most bytes has more than n tokens. */
    uint32_t token_bytes_most;
    const char *path;     /* of the file, or of its first part; borrowed from the model */
    uint64_t reserved[3]; /* zero */
} drey_model_info;
DREY_API void drey_model_describe(const drey_model *model, drey_model_info *info);

/* Identifies the model: copies of its file have the same number, other models have another. Reads a
 * few MiB of the file. */
DREY_API drey_status drey_model_identity(const drey_model *model, uint64_t *identity,
                                         drey_error *err);

/* ---- Text and tokens ---- */

enum {
    DREY_TOKENIZE_SPECIAL = 1, /* special tokens written in the text count as tokens, not as text */
    DREY_TOKENIZE_BOS = 2      /* put BOS first if the file says that the model wants it */
};

/* text: n_bytes arbitrary bytes; invalid UTF-8 is tokenized as well. *n_ids is set to the number of
 * ids. If that exceeds capacity, the first `capacity` ids are written and DREY_ERR_USAGE is
 * returned. */
DREY_API drey_status drey_tokenize(const drey_model *model, const char *text, size_t n_bytes,
                                   int flags, int32_t *ids, size_t capacity, size_t *n_ids,
                                   drey_error *err);

/* Writes the bytes of n ids, not NUL-terminated. Special tokens are written only with
 * DREY_TOKENIZE_SPECIAL. *n_bytes is the length needed; DREY_ERR_USAGE if it exceeds capacity. */
DREY_API drey_status drey_detokenize(const drey_model *model, const int32_t *ids, size_t n,
                                     int flags, char *text, size_t capacity, size_t *n_bytes,
                                     drey_error *err);

/* One turn in the model's own chat format, as text; for whole conversations see drey/chat.h. system
 * may be NULL. *out is a NUL-terminated string that the caller frees with drey_free.
 * DREY_ERR_UNSUPPORTED: the model has no template, or the template uses something that is not
 * supported. Tokenizing the text with DREY_TOKENIZE_SPECIAL also accepts special tokens written in
 * system and user, which can end their turn; drey_chat_tokenize does not. */
DREY_API drey_status drey_chat_format(const drey_model *model, const char *system, const char *user,
                                      char **out, drey_error *err);
/* The same turn as ids. The template's special tokens become tokens; in system and user they are
 * plain text, unless flags has DREY_TOKENIZE_SPECIAL. capacity and *n_ids as in drey_tokenize. */
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
    DREY_POLICY_OPTIMAL = 6,   /* the likeliest nodes first, as many as measured times suggest */
    /* Baselines of the papers, for comparison; the first two are lossy. */
    DREY_POLICY_BLD = 7, /* Big Little Decoder: a chain while the draft is sure; the target accepts
                            tokens that it finds likely enough */
    DREY_POLICY_DRAFT = 8,   /* the draft model alone writes: nothing else is loaded */
    DREY_POLICY_STD = 9,     /* plain decoding that reads and computes in turns, never at once */
    DREY_POLICY_SINGLE = 10, /* one token per pass: guesses serve early exits only (drey_exit) */
    DREY_POLICY_STATIC = 11  /* Ghidorah's and Medusa's: one tree shape for every turn, chosen by
                                how often guesses of each depth and rank are right
                                (drey_static_trees) */
} drey_policy;

enum { DREY_MAX_DRAFTED = 128 }; /* most tokens that a policy may draft for one verification */

/* The name of a policy: "auto", "none", "sequence", "specinfer", "llmcad", "edgellm", "optimal",
 * "bld", "draft", "std", "single", "static". NULL: there is no such policy. Policies are numbered
 * from 0 without a gap. */
DREY_API const char *drey_policy_name(drey_policy policy);
/* Also accepts "sp" for "sequence", "si" for "specinfer" and "spl" for "none". Returns false, and
 * leaves *policy unchanged, if no policy has this name. */
DREY_API bool drey_policy_parse(const char *name, drey_policy *policy);
/* The text may be another than the target's own. */
DREY_API bool drey_policy_is_lossy(drey_policy policy);

/* Parts of drafting that can be left out to see what each is worth. The text stays the same. */
typedef enum drey_part {
    DREY_PART_TREE = 0,        /* branches; without: chains */
    DREY_PART_FALLBACK = 1,    /* llmcad, edgellm: their threshold follows the outcomes */
    DREY_PART_BATCHING = 2,    /* several nodes per step of the draft */
    DREY_PART_PROVISIONAL = 3, /* drafting while a verification waits for weights */
    DREY_PART_SLICE = 4,       /* the draft's head covers a part of its vocabulary only */
    /* Of early exits: the text of DREY_EXIT_FAST may depend on each of these. */
    DREY_PART_SCHEDULE = 5,   /* predictors of some layers are asked; without: all of them */
    DREY_PART_PREDICTORS = 6, /* without: scores at random */
    DREY_PART_HYPER = 7,      /* exits of passes with drafted tokens */
    /* Guesses of DREY_DRAFTER_LOOKUP in addition to those of another drafter. Heads use them under
     * `optimal` and AUTO; with DREY_WITH any drafter does, under any policy. */
    DREY_PART_LOOKUP = 8
} drey_part;
/* The bit for drey_engine_options.without, which leaves the part out, and for `with`, which adds a
 * part that the policy does not use by default. */
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
                                the target found likely after them */
    DREY_DRAFTER_SELF = 3,   /* the target, with the bits of its weights that are in memory; its
                               sidecar must have planes (drey_prepare_options) */
    DREY_DRAFTER_MEDUSA = 4  /* heads that were trained for the target (Medusa), in options.heads */
} drey_drafter;

/* "none", "model", "lookup", "self", "medusa"; NULL: there is no such drafter. */
DREY_API const char *drey_drafter_name(drey_drafter drafter);
/* A drafter, for programs that list drafters by name. */
typedef struct drey_drafter_info {
    const char *name;
    const char *with;        /* what it drafts with, for use in a list: "its heads" */
    const char *file_ending; /* of the file that it needs, after the target's name; NULL: it needs
                                none */
    bool takes_model;        /* needs a model in options.draft */
    bool looks_up;           /* guesses from the text, at no cost */
    bool exits;              /* can be combined with early exits */
    uint64_t reserved[4];    /* zero */
} drey_drafter_info;
/* Returns false if there is no such drafter. Drafters are numbered from 0 without a gap. */
DREY_API bool drey_drafter_describe(drey_drafter drafter, drey_drafter_info *info);
/* Whether the file says that it contains heads for options.heads; false if it cannot be read. */
DREY_API bool drey_is_heads_file(const char *path);

/* How streamed weights are read. AUTO uses the first that the system allows. The others are for
 * tests and for systems where AUTO chooses badly. */
typedef enum drey_io {
    DREY_IO_AUTO = 0,
    DREY_IO_URING = 1,   /* io_uring, registered buffers where allowed, O_DIRECT where allowed */
    DREY_IO_PREAD = 2,   /* a few reading threads, O_DIRECT where allowed */
    DREY_IO_BUFFERED = 3 /* reading threads through the page cache, dropping what was read */
} drey_io;

/* As drey_policy_name and drey_policy_parse: "auto", "uring", "pread", "buffered". */
DREY_API const char *drey_io_name(drey_io io);
DREY_API bool drey_io_parse(const char *name, drey_io *io);

/* The number format of the KV cache. Q8_0 (blocks of 32 with a scale) takes 17/32 of F16's memory
 * and is lossy: the text may differ from that of F16. With either one the text is the same on every
 * CPU tier, for any draft, budget and number of threads. Heads whose width is not a multiple of 32
 * need F16. The tier "float" stores floats instead of F16. */
typedef enum drey_kv { DREY_KV_F16 = 0, DREY_KV_Q8_0 = 1 } drey_kv;

/* As drey_policy_name and drey_policy_parse: "f16", "q8_0". */
DREY_API const char *drey_kv_name(drey_kv kv);
DREY_API bool drey_kv_parse(const char *name, drey_kv *kv);

/* Early exits (SpecEE): a pass ends before its last layers when predictors (see drey_train_exit)
 * find that its tokens are decided. A later pass computes the keys and values of the skipped layers
 * for these tokens, so that the caches are exact in the end. */
typedef enum drey_exit {
    DREY_EXIT_OFF = 0,
    /* The text may differ from the target's own. When no other session shares its passes, it is the
     * same for any budget, number of threads and CPU tier. */
    DREY_EXIT_FAST = 1,
    /* Tokens that left early are checked at full depth before they are delivered: the text is the
     * target's own. */
    DREY_EXIT_EXACT = 2
} drey_exit;

/* As drey_policy_name and drey_policy_parse: "off", "fast", "exact". */
DREY_API const char *drey_exit_name(drey_exit exit);
DREY_API bool drey_exit_parse(const char *name, drey_exit *exit);

/* As drey_engine_options.memory_bytes. AUTO: the memory that the machine has available or that the
 * process' memory cgroups leave to it, whichever is less, divided by 1.05, at the time of
 * opening. */
#define DREY_MEMORY_AUTO      0u
#define DREY_MEMORY_UNLIMITED UINT64_MAX
/* What AUTO stands for at this moment, in bytes; 0 if the system does not say. */
DREY_API uint64_t drey_memory_auto(void);

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

/* What progress is reported of. */
typedef enum drey_progress {
    DREY_PROGRESS_LOAD_TARGET = 0, /* bytes */
    DREY_PROGRESS_LOAD_DRAFT = 1,  /* bytes */
    DREY_PROGRESS_PROMPT = 2,      /* tokens */
    DREY_PROGRESS_PREPARE = 3,     /* bytes */
    DREY_PROGRESS_CHECK = 4,       /* bytes */
    DREY_PROGRESS_TRAIN = 5        /* steps of equal time (drey/train.h) */
} drey_progress;
/* "load target", "load draft", "prompt", "prepare", "check", "train"; NULL: no such progress. */
DREY_API const char *drey_progress_name(drey_progress what);

/* `done` of `total`. Always called from the thread that runs the session. */
typedef void drey_progress_fn(void *user, drey_progress what, uint64_t done, uint64_t total);

/* Weights are prefetched sparsely, every line into the first cache, or into the second. Tiles have
 * 16 rows of weights, 32, or as many sums as registers hold. Names: "sparse", "lines", ... */
typedef enum drey_fetch { DREY_FETCH_SPARSE, DREY_FETCH_NEAR, DREY_FETCH_FAR } drey_fetch;
typedef enum drey_tile { DREY_TILE_HALVES, DREY_TILE_LINES, DREY_TILE_CHAINS } drey_tile;
DREY_API const char *drey_fetch_name(drey_fetch fetch);
DREY_API const char *drey_tile_name(drey_tile tile);
DREY_API bool drey_fetch_parse(const char *name, drey_fetch *fetch);
DREY_API bool drey_tile_parse(const char *name, drey_tile *tile);
/* Choices between ways of computing that differ only in speed; no text depends on them. */
typedef struct drey_tuning {
    bool early_amx;       /* AMX for products of 9 rows and more, not of 25 and more */
    drey_fetch fetch;     /* how products of few rows prefetch weights */
    drey_tile tile;       /* how products of many rows are divided */
    uint64_t reserved[3]; /* zero */
} drey_tuning;
/* The defaults of this processor's family; drey_tune (drey/tune.h) measures. */
DREY_API void drey_tuning_init(drey_tuning *tuning);
/* The processor that a measured tuning belongs to: its maker's numbers, such as
 * "AuthenticAMD-26-2-1" (family, model, stepping), or else its name. */
DREY_API void drey_cpu_id(char *out, size_t capacity);
/* What drafting with a pair of models costs and gains on this machine: see drey/tune.h. */
typedef struct drey_profile drey_profile;

/* Units that share a pass: clusters of processor cores, and devices. drey_engine_options.units
 * lists them: "cpu:0-3=3+cpu:4-7=1".
 *
 *   units  = unit {"+" unit} ["+static"] | "auto"
 *   unit   = ("cpu" [":" cores] | device [":" which]) ["=" share] {"/" word}
 *   word   = a CPU tier | "slow=" factor | "threads=" n      (of clusters)
 *
 * Each matrix is split between them by rows, in proportion to their shares. A unit that finishes
 * first takes over work of the others, unless "static" is given. A cluster with cores ("0-3,6") has
 * a thread on each of them; one without has n_threads, or 1 if there are other clusters. Devices
 * compute with the pinned part of the target. "auto": a cluster for each speed of cores that the
 * system reports. Texts do not depend on any of this. */
enum { DREY_MAX_UNITS = 4, DREY_UNIT_WIDTHS = 7, DREY_UNIT_CONTEXTS = 5, DREY_UNIT_CONTEXT = 256 };

/* What was measured. */
typedef struct drey_unit_shares {
    int32_t n_units;
    /* [w][unit]: for passes of up to 2^w rows, the last also for more; only their proportion
     * counts. Units are numbered as in drey_engine_unit: clusters, then devices. */
    double share[DREY_UNIT_WIDTHS][DREY_MAX_UNITS];
    /* The boundary of attention between the last cluster and the other units, in [-1, 1], after
     * DREY_UNIT_CONTEXT positions, four times as many, and so on. At 0 the others compute the dense
     * part (what all rows see) and the last cluster computes the tree's part. Above 0 the last
     * cluster also computes this share of the dense part; below 0 the other clusters also compute
     * this share of the tree's part. n_boundaries 0: it follows from the shares. */
    int32_t n_boundaries;
    float boundary[DREY_UNIT_CONTEXTS];
    uint64_t reserved[1]; /* zero */
} drey_unit_shares;

/* Computed beginnings of texts are kept in blocks of 64 tokens and restored when another text
 * begins with the same tokens. They are restored bit by bit, so that the text is the same. They are
 * kept in memory, which is part of the plan, and in a folder, which survives a restart. */
typedef struct drey_prefix_options {
    uint64_t memory_bytes; /* 0: none are kept; else room for at least one block */
    const char *folder;    /* NULL: memory only. Created if it does not exist; used by one engine at
                              a time. Prefixes of other models in it are ignored */
    uint64_t disk_bytes;   /* most bytes of the folder, at least one block; the least recently used
                              are removed */
    uint64_t reserved[4];  /* zero */
} drey_prefix_options;

typedef struct drey_engine_options {
    const drey_model *target; /* borrowed until the engine is closed */
    const drey_model *draft;  /* borrowed for the same time; NULL unless drafter is
                                 DREY_DRAFTER_MODEL */
    drey_drafter drafter;
    drey_policy policy;
    uint64_t memory_bytes; /* limit for everything the process uses; or DREY_MEMORY_* */
    int32_t n_context;     /* positions of prompt and text together */
    int32_t n_threads;     /* 0: one per core that this process may use */
    int32_t n_sessions;    /* most sessions open at the same time; 0: 1 */
    int32_t draft_tokens;  /* length of a drafted chain; 0: the policy's standard */
    int32_t tree_nodes;    /* most nodes of a tree; 0: the policy's standard */
    int32_t prompt_chunk;  /* rows of a prompt pass; 0: the plan chooses */
    const char *cpu_tier;  /* NULL: the best this CPU has; see drey_cpu_tiers */
    drey_io io;
    drey_kv kv;          /* of the target and of the draft */
    uint64_t read_bytes; /* approximate size of a streamed read; 0: 1 MiB */
    drey_progress_fn *progress;
    void *progress_user;
    /* The target's sidecar (see drey_prepare), which must be valid. NULL: the one next to the
     * target, if there is one and it is valid. Copied. */
    const char *sidecar;
    bool no_sidecar;           /* use none */
    const drey_tuning *tuning; /* copied; NULL: the defaults of the processor's family */
    uint64_t without;          /* DREY_WITHOUT of each part of drafting that is left out */
    int32_t trace_spans;       /* latest spans and nodes to keep, see drey_session_trace; 0: none */
    /* The file of heads of DREY_DRAFTER_MEDUSA; NULL: MODEL.drey-medusa next to the target. Read
     * when the engine or planner opens. DREY_ERR_MISMATCH: heads of another model, or of another
     * width. */
    const char *heads;
    const drey_profile *profile; /* copied; NULL: nothing is known */
    drey_exit exit;
    float exit_threshold; /* within (0, 1]; the head is computed for scores above it; 0: the file's
                             threshold */
    /* The predictors, which must fit. NULL: MODEL.drey-exit next to the target. Read when the
     * engine or planner opens, unless exits are off. */
    const char *exit_file;
    uint64_t held_bytes; /* memory that the caller itself uses or will use, part of memory_bytes */
    const char *units;   /* copied; NULL: "cpu", one thread per core */
    const drey_unit_shares *unit_shares; /* copied; used if `units` names no shares. NULL: equal
                                            shares for each thread and device */
    const drey_prefix_options *prefixes; /* borrowed for the call; NULL: no prefixes are kept */
    uint64_t with;                       /* DREY_WITH(DREY_PART_LOOKUP), or 0 */
    uint64_t reserved[4];                /* zero */
} drey_engine_options;
DREY_API void drey_engine_options_init(drey_engine_options *options);

/* Speeds of the machine, from which plans predict; 0: not known. */
typedef struct drey_speeds {
    double disk_bytes_per_s;   /* reading the target as a pass does */
    double memory_bytes_per_s; /* all threads reading */
    double one_ops_per_s;      /* all threads, matrix kernel in the caches: one row of a pass, */
    double tree_ops_per_s;     /* a whole tree of rows; a multiply-add is 2 */
    uint64_t reserved[4];      /* zero */
} drey_speeds;

/* What a budget buys. All in bytes unless the name says otherwise. The parts of a budget are:
 * pinned, draft, ring, kv, work, held, prefix, program, tokenizer, stack, queue, reserve and spare
 * bytes. */
typedef struct drey_plan {
    uint64_t budget_bytes;
    uint64_t smallest_budget_bytes; /* the smallest that certainly works, in whole MiB */
    uint64_t target_bytes;          /* all tensors of the target */
    uint64_t pinned_bytes;          /* of the target, kept in memory */
    uint64_t streamed_bytes_per_pass;
    uint64_t lookup_bytes;    /* embedding rows looked up on disk, never kept */
    uint64_t draft_bytes;     /* the draft's weights in memory */
    uint64_t ring_bytes;      /* staging for reads, target and draft */
    uint64_t kv_bytes;        /* the caches of all sessions */
    uint64_t kv_saved_bytes;  /* what F16 would take in addition */
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
    char sidecar_refused[500]; /* why the one next to the target is not used; "" if there is none */

    /* Predicted from speeds, in seconds; 0: not known. */
    drey_speeds speeds;  /* as they were given */
    double read_s;       /* of a pass: streamed bytes at the disk's speed */
    double compute_s;    /* of a pass over one row, in memory */
    double verify_s;     /* of a pass over tree_rows, in memory */
    double draft_s;      /* the draft model's passes for a full tree */
    double pass_s;       /* with its drafting: the longer of read_s and verify_s, plus the part of
                            draft_s that the ring does not cover */
    double alone_pass_s; /* without a draft: the longer of read_s and compute_s */
    double passes_per_s; /* 1 / pass_s: a pass writes from 1 to tree_rows tokens */
    double ceiling_tokens_per_s; /* without a draft: 1 / alone_pass_s */
    int64_t draft_ids; /* tokens that the draft can guess before the text has used others; 0: all,
                          or no draft */
    /* Expected tokens/s with its drafter on usual texts, at these speeds, or on a usual machine and
     * disk if none were given: to rank drafters before anything is measured. */
    double expected_tokens_per_s;
    int64_t front_layers;  /* above 0: passes end early, and this many of the first layers (or most
                              of each) stay in memory; 0: an equal share of each layer stays */
    uint64_t held_bytes;   /* the caller's, as the options say */
    uint64_t prefix_bytes; /* for prefixes that are kept */
    uint64_t reserved[11]; /* zero */
} drey_plan;

/* A planner reads headers, tensors' shapes and the sidecar's table once, when it opens. After that
 * it computes the plan of any budget without opening a file, except to measure. It takes a few
 * KiB. */
typedef struct drey_planner drey_planner;

/* options: as for drey_engine_open; the models are borrowed until the planner is closed. */
DREY_API drey_status drey_planner_open(drey_planner **out, const drey_engine_options *options,
                                       drey_error *err);
/* Accepts NULL; nulls the pointer. */
DREY_API void drey_planner_close(drey_planner **planner);

/* The plan of a budget. memory_bytes: a budget, DREY_MEMORY_UNLIMITED, or 0 for that of the options
 * (DREY_MEMORY_AUTO is resolved when the planner opens). speeds: from drey_planner_measure or the
 * caller; NULL: nothing is predicted. DREY_ERR_MEMORY: the budget is too small; the message and
 * plan->smallest_budget_bytes give the smallest. */
DREY_API drey_status drey_planner_make(drey_planner *planner, uint64_t memory_bytes,
                                       const drey_speeds *speeds, drey_plan *plan, drey_error *err);

/* Measures the speeds that are 0, in less than a second and within the budget. The disk is measured
 * by reading the target for 0.4 s, unless nothing is streamed. */
DREY_API drey_status drey_planner_measure(drey_planner *planner, uint64_t memory_bytes,
                                          drey_speeds *speeds, drey_error *err);

/* Calls `visit` for each tensor of the target, in the order in which a pass uses them. */
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

/* Loads the library's code into memory (every plan counts it) and drops the rest of its file, such
 * as debug symbols, from the page cache. A program that runs in a memory cgroup of the budget's
 * size calls it before it opens a planner or an engine. If drey is linked statically, the file is
 * the program's own. The library itself does not call it. */
DREY_API void drey_settle_memory(void);

typedef struct drey_engine drey_engine;

/* Plans, allocates all memory, and starts the threads. The first pass of a session reads the
 * weights. DREY_ERR_MISMATCH if the draft's tokens differ from the target's (it says which). */
DREY_API drey_status drey_engine_open(drey_engine **out, const drey_engine_options *options,
                                      drey_error *err);
DREY_API void drey_engine_close(drey_engine **engine);
DREY_API void drey_engine_plan(const drey_engine *engine, drey_plan *plan);

typedef struct drey_unit {
    char name[80];     /* "cpu:0-3", "opencl" */
    char cpu_tier[16]; /* of a cluster; "" of a device */
    int32_t n_threads; /* of a cluster; 0: a device */
    double slow;       /* of a cluster: the factor by which it is slowed down on purpose; 1: not */
    double share[DREY_UNIT_WIDTHS]; /* of passes of up to 2^w rows; the units' sum is 1 */
    uint64_t n_groups; /* groups of 32 rows that it has computed; 0 if there is only one cluster */
    char failed[500];  /* why it is no longer used (others do its part); "": it is used */
    /* Its part of divided attention, whose tasks are a key head and some rows: blocks of 64
     * positions that all rows of a task see, and tasks of which it computed the rest. */
    uint64_t n_dense_blocks, n_tails;
    uint64_t attends;     /* 1: it takes part in attention; 0: see drey_engine_unit_no_attention */
    uint64_t reserved[1]; /* zero */
} drey_unit;
/* The engine's units, counted from 0; false: there is no such unit. Call it between steps of its
 * sessions. */
DREY_API bool drey_engine_unit(const drey_engine *engine, int32_t i, drey_unit *out);
/* Why a unit takes no part in attention: it has its own memory, its arithmetic differs, or it has
 * failed. NULL: it takes part, or there is no such unit. Valid until the engine's next step. */
DREY_API const char *drey_engine_unit_no_attention(const drey_engine *engine, int32_t i);

/* ---- Session: one timeline of tokens ---- */

typedef struct drey_session drey_session;

/* An engine has at most as many open sessions as its options say. A session borrows the engine. An
 * engine and its sessions are used by one thread at a time, like one object. */
DREY_API drey_status drey_session_open(drey_session **out, drey_engine *engine, drey_error *err);
DREY_API void drey_session_close(drey_session **session);

/* Stops the text that is being written, or the scoring. Any thread and any signal handler may call
 * it. A session that computes alone stops at the next operation. A pass of several sessions
 * continues without this one at the next layer (or, if passes may end early, drey_exit, after the
 * pass). If no text is being written, it has no effect, not even on the next text. If it stops the
 * first pass, which reads the weights, the next pass reads them from the beginning. */
DREY_API void drey_session_cancel(drey_session *session);

typedef struct drey_sampling {
    float temperature;    /* 0: the most likely token, always */
    int32_t top_k;        /* 0: off */
    float top_p;          /* 1: off */
    float min_p;          /* 0: off */
    uint64_t seed;        /* the same seed gives the same text, with or without a draft */
    uint64_t reserved[4]; /* zero */
} drey_sampling;

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

/* A token and the target's natural log probability of it, over all tokens, at temperature 1 and
 * before any filter or bias. */
typedef struct drey_logprob {
    int32_t id;
    float logprob;
} drey_logprob;
enum { DREY_MAX_TOP = 20 };
/* Called with each verified token, before drey_token_fn, and with the n_top most likely tokens at
 * its place, best first (the lower id first among equals), borrowed for the call. */
typedef void drey_logprobs_fn(void *user, const drey_logprob *written, const drey_logprob *top,
                              int32_t n_top);

/* Added to a token's logit before one is chosen. -INFINITY: never this one. */
typedef struct drey_bias {
    int32_t id;
    float bias;
} drey_bias;

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

/* The prompt's last pass writes the first token. Decoding starts when the draft has read the prompt
 * as well. Shares are of decode_s. */
typedef struct drey_statistics {
    int64_t prompt_tokens, generated_tokens;
    double prompt_s, decode_s; /* prompt_s includes loading: the first pass reads the weights */
    double first_token_s;      /* from the call to the first token; 0: no token */
    double tokens_per_s;       /* of those after the prompt, / decode_s */
    /* tokens_per_pass / (max(streamed / disk, compute) + drafting that reads do not cover); 0: not
     * known */
    double ceiling_tokens_per_s;
    double disk_bytes_per_s;   /* the highest of the disk in this run while it was kept busy */
    double tokens_per_pass;    /* of those after the prompt */
    int64_t n_passes;          /* of the target, after the prompt */
    int64_t drafted, accepted; /* tokens proposed to the target, and those it agreed with */
    uint64_t read_bytes;       /* in decoding, both models */
    double read_bytes_per_s;
    double stall_share, verify_share, draft_share; /* waiting for reads; target pass; draft */
    uint64_t load_bytes;                           /* read before decoding */
    uint64_t budget_bytes, pinned_bytes, streamed_bytes_per_pass;
    uint64_t session_bytes;     /* what each session of the engine takes */
    uint64_t peak_memory_bytes; /* the process' high-water mark */
    int64_t decode_major_faults;
    bool sidecar;                   /* the target's weights came packed from a sidecar */
    bool direct, uring, registered; /* how they were read: O_DIRECT, io_uring, registered buffers */
    drey_kv kv;                     /* DREY_KV_Q8_0: lossy, the text may differ from f16's */
    drey_finish finish;
    double provisional_share; /* drafting while the target's pass waits for reads */
    /* What tokens_per_s would have been with a sidecar, without packing streamed weights, as far as
     * reads are fast enough. 0: there is a sidecar, or nothing was streamed. */
    double sidecar_tokens_per_s;
    /* Tokens of the timeline when the text began that were not computed for it, but kept or
     * restored (drey_prefix_options). */
    int64_t cached_tokens;
    /* With DREY_FINISH_STOP: the stop text that was found, counted from 1; 0: the text's own end;
     * -1: a callback returned false. */
    int32_t stop_text, zero;
    uint64_t reserved[12]; /* zero */
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
    double hidden_share;      /* of draft_s during them */
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

/* Of the text that is being written, or of the last one; all 0 before the first. Times are filled
 * when the text ends. */
DREY_API void drey_session_speculation(const drey_session *session, drey_speculation *out);

/* Results of early exits in one text. Complete layers are counted: a token that left after l layers
 * is in at_layer[l - 1], one that went through all in at_layer[n_layers - 1]; the last element also
 * counts all beyond it. */
enum { DREY_EXITS_LAYERS = 128 };
typedef struct drey_exits {
    drey_exit mode;
    int32_t n_layers; /* of the target; 0: nothing is known */
    int64_t tokens;   /* tokens found by passes after the prompt; exact: including those taken
                         back */
    int64_t left;     /* those of them whose pass ended early */
    int64_t at_layer[DREY_EXITS_LAYERS];
    double layers_per_token;
    int64_t looks;      /* scores asked for */
    int64_t candidates; /* scores above the threshold, for which the whole head was computed */
    int64_t refused;    /* those of them where it found another token, or one that may not leave */
    int64_t compared;   /* tokens that left and were then completed by a pass to the last layer */
    int64_t agreed;     /* those of them that the full depth chose as well */
    int64_t taken_back; /* exact: tokens that were replaced by another, and those after them */
    int64_t n_full;     /* passes that completed tokens which had left */
    uint64_t skipped_bytes; /* streamed bytes after the exits, */
    uint64_t vain_bytes;    /* and those of them that had already been read */
    double look_s, head_s;  /* features and scores; whole heads for candidates */
    uint64_t reserved[16];  /* zero */
} drey_exits;

/* Of the text that is being written, or of the last one; all 0 before the first. */
DREY_API void drey_session_exits(const drey_session *session, drey_exits *out);

/* Appends ids[0..n) to the session's timeline and writes a text from there. statistics may be NULL;
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
/* One pass: a chunk of the prompt, or a turn. *done: the text has ended, or none was being written.
 * After DREY_ERR_IO the text is unchanged: try the step again, or call drey_session_end.
 * DREY_ERR_CANCELLED ends the text. */
DREY_API drey_status drey_session_step(drey_session *session, bool *done, drey_error *err);
/* Ends the text that is being written, if any: characters that were held back are delivered, and
 * the finish reason is "interrupted". */
DREY_API void drey_session_end(drey_session *session);
DREY_API bool drey_session_is_writing(const drey_session *session);
/* How much of the text's prompt has been read: *done of *total tokens that must be computed. */
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
    drey_sampling sampling; /* of the last text; the defaults if there was none */
    int64_t n_tokens;       /* of the timeline */
    int64_t n_kept;         /* those of them that are not computed again */
    char *note; /* [n_note_bytes], and a NUL after it: what drey_session_save was given; NULL:
                   nothing. The caller frees it with drey_free */
    size_t n_note_bytes;
    uint64_t reserved[8]; /* zero */
} drey_saved_session;

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
    bool disk_failed;     /* the folder's disk is full or fails: nothing more is written to it */
    uint64_t reserved[4]; /* zero */
} drey_prefixes;
DREY_API void drey_engine_prefixes(const drey_engine *engine, drey_prefixes *out);

/* Sums over everything that an engine has done since it opened. Call it between two steps. */
typedef struct drey_counts {
    int64_t passes, rows;               /* of the target, in the middle of texts */
    int64_t prompt_passes, prompt_rows; /* that read prompts, or the weights */
    double pass_s, prompt_s, draft_s;   /* draft_s: between passes; hidden_s: during them */
    double hidden_s, stall_s;           /* stall_s: passes that waited for weights */
    uint64_t read_bytes;                /* of both models */
    double read_s;                      /* time during which these reads were under way */
    uint64_t peak_memory_bytes;         /* the process' high-water mark */
    uint64_t reserved[8];               /* zero */
} drey_counts;
DREY_API void drey_engine_count(const drey_engine *engine, drey_counts *out);

/* Natural log probabilities of ids[1..n), each given the ids before it: logprob[n - 1]. Starts from
 * an empty timeline and leaves an empty one. DREY_ERR_CANCELLED even if the cancel came too late to
 * stop anything; DREY_ERR_FORMAT if one is not finite. */
DREY_API drey_status drey_session_score(drey_session *session, const int32_t *ids, size_t n,
                                        float *logprob, drey_error *err);

/* ---- Traces: what ran when, and the trees that were guessed ----
 *
 * With trace_spans in its options, an engine keeps that many spans of what it computed and that
 * many of each model's reads; each session keeps the trees of its latest turns, about that many
 * nodes. The memory is part of the plan and allocated in advance; the oldest entries are
 * overwritten. */

/* Times are from a monotonic clock. */
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
    int64_t t0_ns, t1_ns; /* from the end of the previous turn to its own */
    int32_t position;     /* of the root in the timeline */
    int32_t next;         /* the target's own token after the accepted ones */
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

/* Visits the spans of the session's engine, the oldest of each kind of work first, then the
 * session's turns, the oldest first. */
DREY_API void drey_session_trace(const drey_session *session, const drey_trace_visitor *visitor);

/* ---- Sidecars: weights packed beforehand ---- */

typedef struct drey_prepare_options {
    const drey_model *model; /* borrowed for the call */
    const char *output;      /* NULL: MODEL.drey, next to the model's first file */
    bool check;              /* writes nothing: reads all of model and sidecar and compares them */
    bool force; /* writes even if there is a valid sidecar, or another kind of file, already */
    /* Each may be NULL. Called from the calling thread: announce once, before anything is written,
     * with the disk space that is needed and that is free; progress with DREY_PROGRESS_PREPARE or
     * DREY_PROGRESS_CHECK; go_on from time to time: false ends the call with DREY_ERR_CANCELLED. */
    void (*announce)(void *user, const char *path, uint64_t needed_bytes, uint64_t free_bytes);
    drey_progress_fn *progress;
    bool (*go_on)(void *user);
    void *user;
    /* Store high and low bits of the weights separately, so that the high ones can stay in memory
     * and draft (DREY_DRAFTER_SELF). The text is the same. */
    bool planes;
    uint64_t reserved[7]; /* zero */
} drey_prepare_options;
DREY_API void drey_prepare_options_init(drey_prepare_options *options);

typedef struct drey_prepare_report {
    uint64_t sidecar_bytes; /* the sidecar's size; 0: not known */
    bool written;           /* false: there was a valid one already, or it was only checked */
    uint64_t reserved[4];   /* zero */
} drey_prepare_report;

/* Writes the model's sidecar: its matrices in the kernels' own layout, so that streamed weights
 * need no packing. An engine uses it if it is in the model's folder. Texts are the same with and
 * without it. The file appears complete or not at all, and engines refuse it when the model has
 * changed. The report may be NULL. */
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
/* Validates a GGUF file of any architecture and visits its header, keys and tensors. */
DREY_API drey_status drey_inspect(const char *path, const drey_inspector *inspector,
                                  drey_error *err);

/* Calls `missing` with a sentence for each reason why drey cannot run a file: an unknown
 * architecture, each key that drey does not compute, the first tensor that is missing or has no
 * role, the tokenizer. Not called if there is none. Sentences are valid during the call. Errors are
 * only those of opening the file. */
DREY_API drey_status drey_missing(const char *path, void (*missing)(void *user, const char *what),
                                  void *user, drey_error *err);

/* Names of the CPU tiers that this build and machine have, the best first, NULL at the end. "ref"
 * is always the last but one, and "float" (activations stay float: slow, for judging accuracy) the
 * last. */
DREY_API const char *const *drey_cpu_tiers(void);
/* The processor's name (on Arm the board's), NUL-terminated; truncated to fit. */
DREY_API void drey_cpu_name(char *out, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
