/* Chooses the experts of a mixture's row, and their weights, by its router's logits. A pure
 * function of one row: no company, tile or thread can show in it.
 *
 * Literature: Shazeer et al. 2017 (the k largest), Fedus et al. 2022, 2.1; groups and a bias for
 * the choice alone: DeepSeek-V3 (arXiv 2412.19437), 2.1.2. Keys: llama.cpp src/llama-arch.cpp,
 * "expert_..." */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ROUTER_MOST = 64 }; /* experts that a row may take */

typedef enum router_gate {
    ROUTER_SOFTMAX,        /* weights are the softmax of all logits */
    ROUTER_SIGMOID,        /* the sigmoid of each */
    ROUTER_SOFTMAX_CHOSEN, /* the softmax of the chosen logits; the choice is by logits */
    ROUTER_SQRT_SOFTPLUS,  /* the square root of ln(1 + exp(x)) of each */
    ROUTER_SPARSE_MIXER    /* one after the other, the softmax of the logits that are not chosen yet
                              and near the best of them (Liu et al. 2024, arXiv 2409.12136, A) */
} router_gate;

/* "softmax", "sigmoid", "softmax of the chosen", "square root of softplus". */
const char *router_gate_name(router_gate gate);

typedef struct router_shape {
    int32_t n_experts, n_used; /* n_used: 1 to ROUTER_MOST, at most n_experts */
    router_gate gate;
    bool normed; /* the chosen weights are divided by their sum, */
    float scale; /* and multiplied with this */
    /* Groups divide the experts equally; 1: there are none. First those n_choices groups are chosen
     * whose two best experts have the largest sum. */
    int32_t n_groups, n_choices;
    bool by_best; /* the best one alone says which groups are chosen */
} router_shape;

/* Chooses n_used experts. logits: [n_experts], replaced by the weights of all. bias: [n_experts],
 * added for the choice alone; NULL: none. expert: [n_used], ascending; weight: [n_used], of each.
 * Of equal experts the one with the lower number is chosen. False: a logit is not finite. */
bool router_choose(const router_shape *s, float *logits, const float *bias, int32_t *expert,
                   float *weight);
