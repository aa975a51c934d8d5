/* Self-adaptive fallback (LLMCad 3.3, EdgeLLM III-C): drafting ends once even the best branch has
 * become a poor guess, Tc < alpha, and alpha follows how good the guesses turn out to be. */
#ifndef DREY_POLICY_FALLBACK_H
#define DREY_POLICY_FALLBACK_H

#include "tree/tree.h"

/* Where alpha begins, and what it keeps to: a run of right or wrong guesses must not take it where
 * it never comes back from. */
static const float fallback_first = 0.01f, fallback_least = 1e-6f, fallback_most = 0.99f;

/* EdgeLLM Eq. 3: the alpha after a verification in which of the n_all tokens of the best-matching
 * branch n_correct were right; confidence: Tc, the best branch's cumulative confidence. Where
 * drafting ended for another reason than alpha, it is the one that was reached. */
float fallback_next(float alpha, float confidence, int32_t n_all, int32_t n_correct);

/* The same from a verified tree: the best-matching branch is the submitted leaf whose path agrees
 * longest with path[0..n_path), among equals the most confident. */
float fallback_learn(float alpha, const token_tree *tree, const int32_t *path, int32_t n_path);

#endif
