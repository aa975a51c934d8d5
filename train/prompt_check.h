/* Checks of prompts that a caller gives to a trainer. */
#pragma once

#include "common/error.h"
#include "drey/train.h"

/* DREY_ERR_USAGE: there are too few, or one is empty or too long or has ids that the model does not
 * have. */
drey_status train_check_prompts(const drey_train_prompt *prompts, int32_t n_prompts,
                                int32_t n_vocab, drey_error *err);
