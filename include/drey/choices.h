/* Choices that the options of an engine have, by name, and their bounds. */
#ifndef DREY_CHOICES_H
#define DREY_CHOICES_H

#include "drey/drey_error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum drey_policy {
    DREY_POLICY_AUTO = 0,      /* optimal with a draft, none without */
    DREY_POLICY_NONE = 1,      /* plain decoding */
    DREY_POLICY_SEQUENCE = 2,  /* a chain of draft_tokens tokens */
    DREY_POLICY_SPECINFER = 3, /* SpecInfer's fixed widths by depth, <1,1,3,1,1,1,1,1> */
    DREY_POLICY_LLMCAD = 4,    /* LLMCad's pacer (3.2) and fallback (3.3) */
    DREY_POLICY_EDGELLM = 5,   /* EdgeLLM's pacer (III-B) and fallback (III-C) */
    DREY_POLICY_OPTIMAL = 6,   /* the likeliest nodes first, as many as measured times suggest */
    DREY_POLICY_STATIC = 11    /* Ghidorah's and Medusa's: one tree shape for every turn, chosen by
                                how often guesses of each depth and rank are right
                                (drey_static_trees). 7 to 10: drey/research.h */
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

/* For experiments: drey/research.h. */
typedef struct drey_research drey_research;

typedef enum drey_drafter {
    DREY_DRAFTER_NONE = 0,
    DREY_DRAFTER_MODEL = 1,  /* the model in options.draft */
    DREY_DRAFTER_LOOKUP = 2, /* guesses what followed the last tokens earlier in the text, and what
                                the target found likely after them */
    DREY_DRAFTER_SELF = 3,   /* the target, with the bits of its weights that are in memory; its
                               sidecar must have planes (drey_prepare_options) */
    DREY_DRAFTER_MEDUSA = 4, /* heads that were trained for the target (Medusa), in options.heads */
    DREY_DRAFTER_EAGLE = 5,  /* a layer that was trained to follow the target (EAGLE-3), in
                                options.draft */
    DREY_DRAFTER_MTP = 6     /* the target's own block for multi-token prediction, which is in its
                                file, or in that of options.draft */
} drey_drafter;

/* "none", "model", "lookup", "self", "medusa", "eagle", "mtp"; NULL: there is no such drafter. */
DREY_API const char *drey_drafter_name(drey_drafter drafter);
/* A drafter, for programs that list drafters by name. */
typedef struct drey_drafter_info {
    const char *name;
    const char *with;        /* means of drafting, for use in a list: "its heads" */
    const char *file_ending; /* ending of the file that it needs, after the target's name; NULL: it
                                needs none */
    bool takes_model;        /* needs a model in options.draft */
    bool looks_up;           /* guesses from the text, at no cost */
    bool exits;              /* can be combined with early exits */
    uint64_t reserved[4];    /* zero */
} drey_drafter_info;
/* Returns false if there is no such drafter. Drafters are numbered from 0 without a gap. */
DREY_API bool drey_drafter_describe(drey_drafter drafter, drey_drafter_info *info);
/* Returns true if the file says that it contains heads for options.heads; false if it cannot be
 * read. */
DREY_API bool drey_is_heads_file(const char *path);

/* Ways to read streamed weights. AUTO uses the first that the system allows. The others are for
 * tests and for systems where AUTO chooses badly. */
typedef enum drey_io {
    DREY_IO_AUTO = 0,
    DREY_IO_URING = 1,   /* io_uring, registered buffers where allowed, O_DIRECT where allowed */
    DREY_IO_PREAD = 2,   /* a few reading threads, O_DIRECT where allowed */
    DREY_IO_BUFFERED = 3 /* reading threads through the page cache, dropping what was read */
} drey_io;

/* The same as drey_policy_name and drey_policy_parse: "auto", "uring", "pread", "buffered". */
DREY_API const char *drey_io_name(drey_io io);
DREY_API bool drey_io_parse(const char *name, drey_io *io);

/* The number format of the KV cache. Q8_0 (blocks of 32 with a scale) takes 17/32 of F16's memory
 * and is lossy: the text may differ from that of F16. With either one the text is the same on every
 * CPU tier, for any draft, budget and number of threads. Heads whose width is not a multiple of 32
 * need F16. The tier "float" stores floats instead of F16. */
typedef enum drey_kv { DREY_KV_F16 = 0, DREY_KV_Q8_0 = 1 } drey_kv;

/* The same as drey_policy_name and drey_policy_parse: "f16", "q8_0". */
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

/* The same as drey_policy_name and drey_policy_parse: "off", "fast", "exact". */
DREY_API const char *drey_exit_name(drey_exit exit);
DREY_API bool drey_exit_parse(const char *name, drey_exit *exit);

/* Values of drey_engine_options.memory_bytes. AUTO: the memory that the machine has available or
 * that the process' memory cgroups leave to it, whichever is less, divided by 1.05, at the time of
 * opening. */
#define DREY_MEMORY_AUTO      0u
#define DREY_MEMORY_UNLIMITED UINT64_MAX
/* Returns what AUTO stands for at this moment, in bytes; 0 if the system does not say. */
DREY_API uint64_t drey_memory_auto(void);
/* The machine's memory, or what its memory cgroups let this process have if that is less, whether
 * it is free or not; in bytes, 0 if the system does not say. */
DREY_API uint64_t drey_memory_machine(void);

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

/* Steps whose progress is reported. */
typedef enum drey_progress {
    DREY_PROGRESS_LOAD_TARGET = 0, /* bytes */
    DREY_PROGRESS_LOAD_DRAFT = 1,  /* bytes */
    DREY_PROGRESS_PROMPT = 2,      /* tokens */
    DREY_PROGRESS_PREPARE = 3,     /* bytes */
    DREY_PROGRESS_CHECK = 4,       /* bytes */
    DREY_PROGRESS_TRAIN = 5,       /* steps of equal time (drey/train.h) */
    DREY_PROGRESS_MEASURE = 6      /* steps of about equal time (drey/tune.h) */
} drey_progress;
/* "load target", "load draft", "prompt", "prepare", "check", "train", "measure"; NULL: no such
 * progress. */
DREY_API const char *drey_progress_name(drey_progress what);

/* `done` of `total`. Always called from the thread that runs the session. */
typedef void drey_progress_fn(void *user, drey_progress what, uint64_t done, uint64_t total);

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

/* Results of measuring units. */
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

/* The source of the four candidates for the next token. A model's own candidates come from its
 * whole head, after four fifths of its layers. */
typedef enum drey_exit_source {
    DREY_EXIT_FROM_DRAFT = 0,
    DREY_EXIT_FROM_TEXT = 1,
    DREY_EXIT_FROM_TARGET = 2,
    DREY_EXIT_FROM_HEADS = 3
} drey_exit_source;

#ifdef __cplusplus
}
#endif
#endif
