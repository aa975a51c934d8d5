/* The toys whose logits tests/data/logits holds. Together they have every tensor type, all
 * architectures, every bias, and every kind of RoPE and of routers that files ask for. */
#pragma once

#include "support/toy.h"
#include "support/toys/family_toys.h"

enum {
    FIRST_T5_TOY = 12, /* the first with an encoder, and all after it */
    FIRST_BART_TOY = 15,
    N_ARCH_TOYS = 17,
    N_EXPERT_TOYS = 14,
    N_NUMBER_TOYS = 21,
    N_LOGIT_TOYS = 14 + N_ARCH_TOYS + N_EXPERT_TOYS + N_FAMILY_TOYS + N_NUMBER_TOYS
};

/* number of ids that an encoder reads before the goldens' ids: id i is (i * 6007 + 29) modulo the
 * vocabulary. */
enum { N_INPUT_IDS = 150 };

/* Fills the options of toy i and returns its name. Changing anything here or in toy.c's output
 * means making the goldens again with scripts/make-logit-goldens.py or make-toy-goldens.py. */
const char *logit_toy(int i, toy_options *options);
/* Toys among them that have another architecture than llama and qwen2, a sliding window, or values
 * of another width than keys. */
const char *arch_toy(int i, toy_options *options);
/* Mixtures of experts. */
const char *expert_toy(int i, toy_options *options);
/* Families that differ from the others in numbers and names, dense ones and mixtures. */
const char *number_toy(int i, toy_options *options);
