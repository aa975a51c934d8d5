/* Use of a memory budget: see drey_planner_make. */
#ifndef DREY_DREY_PLAN_H
#define DREY_DREY_PLAN_H

#include "drey/choices.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Speeds of the machine, from which plans predict; 0: not known. */
typedef struct drey_speeds {
    double disk_bytes_per_s;   /* reading the target as a pass does */
    double memory_bytes_per_s; /* all threads, matrix kernel, weights from memory, one row */
    double one_ops_per_s;      /* all threads, matrix kernel in the caches: one row of a pass, */
    double tree_ops_per_s;     /* a whole tree of rows; a multiply-add is 2 */
    uint64_t disk_measured;    /* 1: drey measured the disk; 0: its speed was given */
    uint64_t measured_busy;    /* 1: other programs computed while a speed here was measured */
    uint64_t reserved[2];      /* zero */
} drey_speeds;

/* Use of a budget. All in bytes unless the name says otherwise. The parts of a budget are:
 * pinned, expert, draft, ring, kv, work, held, prefix, encoder, program, tokenizer, stack, queue,
 * reserve and spare bytes. */
typedef struct drey_plan {
    uint64_t budget_bytes;
    uint64_t smallest_budget_bytes; /* the smallest that certainly works, in whole MiB */
    uint64_t target_bytes;          /* all tensors of the target */
    uint64_t pinned_bytes;          /* bytes of the target that are kept in memory */
    uint64_t streamed_bytes_per_pass;
    uint64_t lookup_bytes;    /* embedding rows looked up on disk, never kept */
    uint64_t draft_bytes;     /* the draft's weights in memory */
    uint64_t ring_bytes;      /* staging for reads, target and draft */
    uint64_t kv_bytes;        /* the caches of all sessions */
    uint64_t kv_saved_bytes;  /* bytes that F16 would take in addition */
    uint64_t draft_kv_bytes;  /* the draft's part of kv_bytes */
    uint64_t work_bytes;      /* activations, logits, tree, scratch */
    uint64_t session_bytes;   /* each session's part of kv_bytes and work_bytes */
    uint64_t process_bytes;   /* the next five together */
    uint64_t program_bytes;   /* code of program and libraries, what it held before the plan */
    uint64_t tokenizer_bytes; /* headers and tokenizers of both models */
    uint64_t stack_bytes;     /* stacks of the threads */
    uint64_t queue_bytes;     /* queues of the readers, and what the kernel takes for them */
    uint64_t reserve_bytes;   /* page tables, the kernel's other structures, rounding */
    uint64_t spare_bytes;     /* budget left over */
    drey_kv kv;
    bool budget_is_estimate; /* DREY_MEMORY_AUTO had no /proc: free memory and buffers only */
    int32_t n_tensors_pinned, n_tensors_streamed;
    int32_t n_context; /* positions of prompt and text, as asked for */
    int32_t n_sessions;
    int32_t prompt_chunk; /* rows of a prompt pass */
    int32_t tree_rows;    /* most rows of a pass that verifies: the root and what was drafted */
    int32_t n_threads;
    bool sidecar;              /* the target's weights come packed from a sidecar */
    char sidecar_refused[500]; /* reason not to use one next to the target; "": there is none */

    /* Predicted from speeds, in seconds; 0: not known. */
    drey_speeds speeds;  /* as they were given */
    double read_s;       /* reads of a pass: streamed bytes at the disk's speed */
    double compute_s;    /* a pass over one row, in memory */
    double verify_s;     /* a pass over tree_rows, in memory */
    double draft_s;      /* the draft model's passes for a full tree */
    double pass_s;       /* a pass with its drafting: the longer of read_s and verify_s, plus the
                            part of draft_s that the ring does not cover */
    double alone_pass_s; /* a pass without a draft: the longer of read_s and compute_s */
    double passes_per_s; /* 1 / pass_s: a pass writes from 1 to tree_rows tokens */
    double ceiling_tokens_per_s; /* speed without a draft: 1 / alone_pass_s */
    int64_t draft_ids; /* tokens that the draft can guess before the text has used others; 0: all,
                          or no draft */
    /* Expected tokens/s with its drafter on usual texts, at these speeds, or on a usual machine and
     * disk if none were given: to rank drafters before anything is measured. */
    double expected_tokens_per_s;
    int64_t front_layers;   /* above 0: passes end early, and this many of the first layers (or most
                              of each) stay in memory; 0: an equal share of each layer stays */
    uint64_t held_bytes;    /* the caller's, as the options say */
    uint64_t prefix_bytes;  /* memory for prefixes that are kept */
    uint64_t encoder_bytes; /* memory of encoders: room for a whole input, and for their reads */
    uint64_t cross_kv_bytes; /* part of kv_bytes that keeps encoders' outputs */
    /* Experts of a mixture: slots, each for one expert of a layer. streamed_bytes_per_pass is then
     * what a usual pass over one row has to read. */
    uint64_t expert_bytes;
    int32_t n_experts, expert_slots; /* numbers for all layers; 0: the target is no mixture */
    int32_t expert_layers;           /* layers that have experts: equally many slots each */
    int32_t experts_used;            /* experts that a token uses in each of them */
    double expert_hits;   /* share of those that are expected in slots, which sets streamed_bytes */
    int64_t route_tokens; /* by the routes of so many tokens (drey_engine_options.routes); 0: as
                             usual for any mixture */
    /* Effects of drey_engine_options.kv_folder. What a pass reads after a full context is in
     * addition to streamed_bytes_per_pass. */
    int64_t kv_window;      /* positions of the target that are in memory; 0: all */
    uint64_t kv_file_bytes; /* file bytes of all sessions, after full contexts */
    uint64_t kv_read_bytes; /* bytes that a pass of one session reads after a full context */
    uint64_t state_bytes;   /* part of kv_bytes: states of the target's layers that run through a
                               text, older ones to go back to, and what rows add to them */
} drey_plan;

#ifdef __cplusplus
}
#endif
#endif
