/* The toys whose logits tests/data/logits holds. Together they have every tensor type, all
 * architectures, every bias, and every kind of RoPE and of routers that files ask for. */
#pragma once

#include "support/toy.h"

enum {
    FIRST_T5_TOY = 12, /* the first with an encoder, and all after it */
    FIRST_BART_TOY = 15,
    N_PLAIN_TOYS = 14,
    N_ARCH_TOYS = 17,
    N_EXPERT_TOYS = 14,
    N_FAMILY_TOYS = 41,
    FAMILY_WITH_STATES = 26, /* the first of them that has some */
    N_NUMBER_TOYS = 23,
    N_LATENT_TOYS = 8,
    N_LOGIT_TOYS =
        N_PLAIN_TOYS + N_ARCH_TOYS + N_EXPERT_TOYS + N_FAMILY_TOYS + N_NUMBER_TOYS + N_LATENT_TOYS
};

/* number of ids that an encoder reads before the goldens' ids: id i is (i * 6007 + 29) modulo the
 * vocabulary. */
enum { N_INPUT_IDS = 150 };

/* Fills the options of toy i and returns its name, as line i of tests/data/toys.txt says. Changing
 * that or toy.c's output means making the goldens again with scripts/make-logit-goldens.py or
 * make-toy-goldens.py. */
const char *logit_toy(int i, toy_options *options);
/* Toys among them that have another architecture than llama and qwen2, a sliding window, or values
 * of another width than keys. */
const char *arch_toy(int i, toy_options *options);
/* Mixtures of experts. */
const char *expert_toy(int i, toy_options *options);
/* Families that differ from llama's layers in forms (arch.h) and sizes alone. Their goldens are
 * made by scripts/make-family-goldens.py. */
const char *family_toy(int i, toy_options *options);
/* Families that differ from the others in numbers and names, dense ones and mixtures. */
const char *number_toy(int i, toy_options *options);
/* Models with latent attention. Their goldens are family_toy's. */
const char *latent_toy(int i, toy_options *options);
