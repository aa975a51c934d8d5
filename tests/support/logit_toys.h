/* The toys whose logits tests/data/logits holds. Together they have every tensor type, both
 * architectures, every bias, and every kind of RoPE that files ask for. */
#ifndef DREY_TESTS_LOGIT_TOYS_H
#define DREY_TESTS_LOGIT_TOYS_H

#include "support/toy.h"

enum { N_LOGIT_TOYS = 14 };

/* Fills the options of toy i and returns its name. Changing anything here or in toy.c's output
 * means making the goldens again with scripts/make-logit-goldens.py or make-toy-goldens.py. */
const char *logit_toy(int i, toy_options *options);

#endif
