/* Prompts for benchmarks, from a file with one JSON object a line. Known are
 *
 *     {"id": "code-1", "group": "code", "turns": ["..."]}         one turn of a chat
 *     {"id": "code-2", "group": "code", "prompt": "..."}          text to be continued
 *     {"question_id": 81, "category": "coding", "turns": [...]}   MT-Bench: code, or else chat
 *     {"question": "...", "answer": "..."}                        GSM8K: group "math"
 *
 * Of several turns the first one counts. What names no id has its line's number. */
#pragma once

#include "drey/drey_model.h"

typedef struct bench_prompt {
    char id[40], group[20];
    bool chat;        /* a turn; else text as it is */
    const char *text; /* borrowed from the list */
    int32_t *ids;     /* [n_ids], once tokenized */
    size_t n_ids;
} bench_prompt;

typedef struct prompt_list {
    bench_prompt *prompts; /* [n] */
    int n;
    char **texts; /* [n]: copies out of the file */
} prompt_list;

/* Prompts to use where no file is named: cli/prompts, which the build puts into the program. */
extern const char training_prompts[], tuning_prompts[];

/* Reads the file, or `usual` where path is NULL. memory_bytes: the budget, which bounds the file,
 * and the prompts with their tokens as well; or DREY_MEMORY_*. What is in memory by the time that
 * an engine opens is in its plan. DREY_ERR_FORMAT names the line that is none of these,
 * DREY_ERR_CONTEXT what is too long. */
drey_status prompts_read(prompt_list *list, const char *path, const char *usual,
                         uint64_t memory_bytes, drey_error *err);
/* A model without a known chat format takes turns as they are as well. */
drey_status prompts_tokenize(prompt_list *list, const drey_model *model, drey_error *err);
void prompts_free(prompt_list *list);
