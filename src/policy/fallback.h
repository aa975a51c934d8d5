/* Self-adaptive fallback (LLMCad 3.3, EdgeLLM III-C): drafting ends when even the best branch is a
 * poor guess, Tc < alpha. alpha follows how good the guesses turn out to be: where the whole of the
 * best-matching branch was right, it is halved; else the rule decides (drey_fallback).
 *
 * Eq. 3 as it is printed divides alpha by Tc^(share of wrong tokens). Drafting ends when Tc has
 * just fallen below alpha, so after a turn in which nothing was right alpha becomes about 1, and
 * trees keep two nodes until several were right in full. EdgeLLM's text divides by "the average
 * cumulative confidence of all tokens subsequent to the incorrectly generated one", which is
 * milder. Cumulative is taken from the last right token on. */
#pragma once

#include "drey/research.h"
#include "tree/tree.h"

typedef struct token_tree token_tree;

/* alpha's first value, its factor after right guesses, and its bounds: from a value beyond them it
 * might never return after a run of right or wrong guesses. The papers bound nothing, so the upper
 * one is 0.99 where they are followed to the letter. With that, the mean's trees stay small as
 * well: at 0.03 the four hardest of 20 prompts had 0.94 to 1.00 of the tokens per pass that they
 * have without a fallback, at 0.015 1.00 of all together, from 0.995 of the nodes
 * (docs/lab/2026-11-fallback.md). */
static const float fallback_first = 0.01f, fallback_step = 0.5f, fallback_least = 1e-6f,
                   fallback_most = 0.015f, fallback_most_printed = 0.99f;

typedef struct fallback_state {
    drey_fallback rule;
    float alpha; /* the current threshold; 0: there is none */
    float most;  /* its upper bound */
    float step;  /* its factor after guesses that were all right */
} fallback_state;

/* EdgeLLM Eq. 3: the alpha after a verification in which n_correct of the n_all tokens of the
 * best-matching branch were right. confidence: Tc, the best branch's cumulative confidence; if
 * drafting ended for another reason than alpha, the one that was reached. */
float fallback_printed(const fallback_state *f, float confidence, int32_t n_all, int32_t n_correct);

/* The same by the mean cumulative confidence, from the last right token on, of the tokens after the
 * first wrong one; of that one itself if there are none. */
float fallback_mean(const fallback_state *f, float mean, int32_t n_all, int32_t n_correct);

/* Moves alpha after a verified tree: the best-matching branch is the submitted leaf whose path has
 * the longest common part with path[0..n_path), the most confident one among equals. */
void fallback_learn(fallback_state *f, const token_tree *tree, const int32_t *path, int32_t n_path);
