/* Toys with a block for multi-token prediction (MTP). */
#pragma once

#include "gguf/gguf.h"
#include "support/toy.h"

/* The toys whose block's logits tests/data/logits holds (scripts/make-mtp-goldens.py): qwen35,
 * whose layers have states, and glm4moe, a mixture. Returns the name of toy i's file there. */
enum { N_MTP_TOYS = 2 };
const char *mtp_toy(int i, toy_options *options);
/* Lets the block of this file pass on its token's embedding: it knows what a target says whose
 * layers add little. Aborts where it cannot. */
void mtp_toy_teach(const char *path);
