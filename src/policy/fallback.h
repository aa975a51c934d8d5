/* Self-adaptive fallback (LLMCad 3.3, EdgeLLM III-C): drafting ends when even the best branch is a
 * poor guess, Tc < alpha. alpha follows how good the guesses turn out to be. */
#pragma once

#include "tree/tree.h"

/* alpha's first value and its bounds: from a value beyond them it might never return after a run of
 * right or wrong guesses. */
static const float fallback_first = 0.01f, fallback_least = 1e-6f, fallback_most = 0.99f;

/* EdgeLLM Eq. 3: the alpha after a verification in which n_correct of the n_all tokens of the
 * best-matching branch were right. confidence: Tc, the best branch's cumulative confidence; if
 * drafting ended for another reason than alpha, the one that was reached. */
float fallback_next(float alpha, float confidence, int32_t n_all, int32_t n_correct);

/* The same from a verified tree: the best-matching branch is the submitted leaf whose path has the
 * longest common part with path[0..n_path), the most confident one among equals. */
float fallback_learn(float alpha, const token_tree *tree, const int32_t *path, int32_t n_path);
