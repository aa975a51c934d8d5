/* See prompt_check.h. */
#include "train/prompt_check.h"

drey_status train_check_prompts(const drey_train_prompt *prompts, int32_t n_prompts,
                                int32_t n_vocab, drey_error *err)
{
    if (n_prompts < 2)
        FAIL(err, DREY_ERR_USAGE,
             "training needs two prompts at least, one to learn from and one to be judged by");
    for (int32_t i = 0; i < n_prompts; i++) {
        if (prompts[i].n_ids < 1 || prompts[i].n_ids > DREY_MAX_CONTEXT / 2)
            FAIL(err, DREY_ERR_USAGE, "prompt %d has no tokens, or far too many", i + 1);
        for (size_t k = 0; k < prompts[i].n_ids; k++)
            if (prompts[i].ids[k] < 0 || prompts[i].ids[k] >= n_vocab)
                FAIL(err, DREY_ERR_USAGE, "token id %d does not exist; the model has ids 0 to %d",
                     prompts[i].ids[k], n_vocab - 1);
    }
    return DREY_OK;
}
