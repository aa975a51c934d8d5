/* The toys whose logits tests/data/logits holds. Together they have every tensor type, all
 * architectures, every bias, and every kind of RoPE that files ask for. */
#pragma once

#include "support/toy.h"

enum { N_ARCH_TOYS = 10, N_LOGIT_TOYS = 14 + N_ARCH_TOYS };

/* Fills the options of toy i and returns its name. Changing anything here or in toy.c's output
 * means making the goldens again with scripts/make-logit-goldens.py or make-toy-goldens.py. */
const char *logit_toy(int i, toy_options *options);
/* Those of them that have another architecture than llama and qwen2, or a sliding window. */
const char *arch_toy(int i, toy_options *options);
