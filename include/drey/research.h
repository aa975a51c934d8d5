/* For experiments: the baselines of the papers, parts of drafting that can be left out to see what
 * each is worth, and the numbers of policies. The same library has them; a program that writes
 * texts needs none of them. */
#ifndef DREY_RESEARCH_H
#define DREY_RESEARCH_H

#include "drey/choices.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Baselines for comparison, further values of drey_policy; the first two are lossy.
 *
 * BLD     Big Little Decoder: a chain while the draft is sure; the target accepts tokens that it
 *         finds likely enough
 * DRAFT   the draft model alone writes: nothing else is loaded
 * STD     plain decoding that reads and computes in turns, never at once
 * SINGLE  one token per pass: guesses serve early exits only (drey_exit) */
#define DREY_POLICY_BLD    ((drey_policy)7)
#define DREY_POLICY_DRAFT  ((drey_policy)8)
#define DREY_POLICY_STD    ((drey_policy)9)
#define DREY_POLICY_SINGLE ((drey_policy)10)

/* Parts of drafting that can be left out. The text stays the same. */
typedef enum drey_part {
    DREY_PART_TREE = 0,        /* branches; without: chains */
    DREY_PART_FALLBACK = 1,    /* llmcad, edgellm: their threshold follows the outcomes */
    DREY_PART_BATCHING = 2,    /* several nodes per step of the draft */
    DREY_PART_PROVISIONAL = 3, /* drafting while a verification waits for weights */
    DREY_PART_SLICE = 4,       /* the draft's head covers a part of its vocabulary only */
    /* Parts of early exits: the text of DREY_EXIT_FAST may depend on each of these. */
    DREY_PART_SCHEDULE = 5,   /* predictors of some layers are asked; without: all of them */
    DREY_PART_PREDICTORS = 6, /* without: scores at random */
    DREY_PART_HYPER = 7,      /* exits of passes with drafted tokens */
    /* Guesses of DREY_DRAFTER_LOOKUP in addition to those of another drafter. Heads use them under
     * `optimal` and AUTO; with DREY_WITH any drafter does, under any policy. */
    DREY_PART_LOOKUP = 8
} drey_part;
/* The bit for drey_research.without, which leaves the part out, and for `with`, which adds a part
 * that the policy does not use by default. */
#define DREY_WITHOUT(part) (UINT64_C(1) << (part))
#define DREY_WITH(part)    DREY_WITHOUT(part)

/* The same as drey_policy_name and drey_policy_parse: "tree", "fallback", "batching",
 * "provisional", "slice", "schedule", "predictors", "hyper", "lookup". */
DREY_API const char *drey_part_name(drey_part part);
DREY_API bool drey_part_parse(const char *name, drey_part *part);

/* Ways in which the policies "llmcad" and "edgellm" move the threshold alpha of their fallback
 * after wrong guesses (EdgeLLM III-C). */
typedef enum drey_fallback {
    DREY_FALLBACK_MEAN = 0,    /* as its text says: by the mean confidence of the guesses after the
                                  wrong one */
    DREY_FALLBACK_PRINTED = 1, /* Eq. 3 as it is printed; ends drafting too early */
} drey_fallback;
/* NULL: no such value. */
DREY_API const char *drey_fallback_name(drey_fallback fallback);
DREY_API bool drey_fallback_parse(const char *name, drey_fallback *fallback);

/* For drey_engine_options.research; numbers are those of the papers' policies, 0: as is usual.
 *
 * without         DREY_WITHOUT of each part of drafting that is left out
 * with            DREY_WITH(DREY_PART_LOOKUP), or 0
 * alpha           the fallback's first threshold, within (0, 1); usually 0.01. It grows to 0.015 at
 *                 most, or to this value if that is higher; to 0.99 where a policy follows its
 *                 paper to the letter: "llmcad", and "edgellm" with DREY_FALLBACK_PRINTED
 * fallback_step   alpha's factor after guesses that were all right, within (0, 1]; usually 0.5
 * ahead           nodes that the text reaches less often are not drafted during a pass, within
 *                 (0, 1]; usually 0.1, and 0.001 to the letter
 * bld_fallback    "bld" drafts while its guesses have this confidence, within (0, 1]; usually 0.6
 * bld_rollback    the target accepts bld's tokens of a probability above exp(-this); usually 2 */
struct drey_research {
    uint64_t without, with;
    drey_fallback fallback;
    float alpha, fallback_step, ahead, bld_fallback, bld_rollback;
    uint64_t reserved[8]; /* zero */
};

#ifdef __cplusplus
}
#endif
#endif
