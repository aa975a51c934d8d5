/* The configuration of an engine: made once from the public options, and never changed.
 *
 *   drey_engine_options --config_resolve--> engine_config
 *
 * Defaults are filled in, contradictions refused, drafter and policy are classes. What the caller's
 * pointers refer to is copied, except for the models. */
#pragma once

#include "drey/drey_engine.h"
#include "gguf/gguf.h"
#include "grammar/grammar.h"
#include "model/arch.h"
#include "policy/policy.h"
#include "ranks/ranks.h"
#include "unit/unit_words.h"

typedef struct device_class device_class;
typedef struct drafter_kind drafter_kind;
typedef struct gguf gguf;
typedef struct tokenizer tokenizer;
typedef struct vocab_trie vocab_trie;

struct drey_model {
    gguf *file;
    tokenizer *tokenizer;
    model_shape shape;
    char name[128];
    vocab_trie *trie; /* trie of its vocabulary, for grammars; NULL: there was none yet */
};

/* The layers of the target that an engine computes. */
typedef struct engine_part {
    bool is_part;            /* false: all of them */
    int32_t first, n_layers; /* layers of a part; rank 0's may have none */
    int32_t tree_nodes;      /* drafted nodes of its passes, at least */
    int32_t logit_rows;      /* rows of logits that its passes have, at least */
} engine_part;

/* Settings that only measurements and tests have. */
typedef struct engine_hooks {
    int32_t least_logit_rows; /* least rows of logits, whatever the policy needs */
    size_t more_bytes;        /* the caller's own, within the engine's budget */
    bool set_share;           /* pin this share of every matrix, whatever the budget allows: */
    double share;             /* 0 .. 1 */
    bool untimed;             /* no policy gets times: trees are the same in every run */
    const char *energy_root;  /* root for energy_read */
    stream_fault_fn *fault;   /* faults of the streams' reads; NULL: none */
    void *fault_user;
    bool kv_in_memory;             /* a file of keys and values may be in tmpfs */
    int32_t tap_rows;              /* as in plan_inputs */
    int32_t deferred_rows;         /* as in plan_inputs, at least; */
    double exit_layers;            /* and this, where it is not 0 */
    int32_t slice_ids, slice_room; /* multiples of GROUP_ROWS; 0: the usual ones */
    /* Returns whether the token at `position` scores after `layer` complete layers, whatever it is.
     * Replaces predictors and candidates. NULL: those decide. */
    bool (*exit_here)(void *user, int32_t layer, int32_t position);
    void *exit_user;
    bool whole_devices;          /* devices may compute all groups, whatever their share is */
    const device_class *device;  /* device that units may name, besides those of the build */
    const drafter_kind *drafter; /* replaces the one that options.drafter names */
    /* routes of the target's mixtures; see NULL: their routers choose */
    pass_route route;
} engine_hooks;

typedef struct config_files { /* owned; NULL: the usual ones, named after the target */
    char *sidecar, *exit;
    char *draft; /* the drafter's own */
    /* the MTP block in the target's file as a model: file and tokenizer are the target's */
    struct drey_model *block;
    bool no_sidecar;
} config_files;

typedef struct config_profile { /* knowledge of the drafter */
    bool is_known;
    drey_profile known; /* its trees, if it has any, are these: */
    drey_static_trees trees;
    bool has_routes; /* and of the target, a mixture of experts: */
    drey_routes routes;
} config_profile;

typedef struct config_units {
    unit_words words;
    bool has_shares;
    drey_unit_shares shares;
    char *tier; /* tier of the CPU; owned; NULL: the best */
    bool has_tuning;
    drey_tuning tuning;
} config_units;

typedef struct config_memory {
    uint64_t bytes;      /* the budget; DREY_MEMORY_AUTO is not resolved */
    uint64_t held_bytes; /* part of it that the caller holds */
    char *kv_folder;     /* for keys and values of the target; owned; NULL: they are in memory */
    uint64_t kv_bytes;   /* part of it for those; 0: the plan decides */
    drey_kv kv;          /* their format */
} config_memory;

typedef struct config_division { /* division of the target's layers between ranks */
    int32_t n;                   /* ranks it is for; 0: nothing is said */
    int32_t layers[RANKS_MOST];
} config_division;

typedef struct config_reads {
    drey_io io;
    uint64_t bytes; /* bytes of one; 0: the usual */
} config_reads;

typedef struct config_progress {
    drey_progress_fn *report; /* NULL: nothing is reported */
    void *user;
} config_progress;

typedef enum config_lookup { /* lookup next to another drafter: */
                             LOOKUP_OFF,
                             LOOKUP_BLENDS, /* it guesses as well */
                             LOOKUP_PEEKS /* only for leaves of trees that may leave a pass early */
} config_lookup;

typedef struct engine_config {
    const drey_model *target,
        *draft;                  /* borrowed; draft: the model of the drafter's side, or NULL */
    const drafter_kind *drafter; /* NULL: no drafting */
    const policy_class *policy;  /* NULL: no drafting */
    drey_policy policy_id;
    config_lookup lookup;
    drey_research research;
    int32_t n_context, n_threads, n_sessions;
    struct {
        int32_t nodes; /* most drafted nodes of a turn, */
        int32_t steps; /* and the steps that they take, about */
    } drafted;
    int32_t prompt_chunk; /* 0: for the plan to choose */
    int32_t trace_spans;
    config_memory memory;
    config_division division;
    engine_part part; /* share of the target's layers; rank 0's is set when they are divided */
    config_reads reads;
    drey_exit exit;
    float exit_threshold;
    config_files files;
    config_units units;
    config_profile profile;
    drey_prefix_options prefixes; /* memory_bytes 0: none; folder is owned */
    config_progress progress;
} engine_config;

/* Pure, except that unit "auto" reads the system's cores, and that messages may look at files.
 * hooks: NULL: none. To be freed in any case. DREY_ERR_USAGE, DREY_ERR_UNSUPPORTED,
 * DREY_ERR_MISMATCH: the models have other tokens; DREY_ERR_MEMORY. */
drey_status config_resolve(const drey_engine_options *options, const engine_hooks *hooks,
                           engine_config *config, drey_error *err);
void config_free(engine_config *config);
/* Returns what is known of the drafter, or NULL. */
const drey_profile *config_known(const engine_config *config);
/* For an engine that measures or writes with only the target: no drafting, no early exits, no
 * profile. Everything else is as in `options`. */
drey_engine_options engine_options_alone(const drey_engine_options *options);
