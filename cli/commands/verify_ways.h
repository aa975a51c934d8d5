/* The ways in which drey verify writes its texts: threads, kernels, prompts in pieces, budgets,
 * drafters, policies, sessions. None of them may show in a text. */
#pragma once

#include "cli/commands/models.h"

#define VERIFY_TEMPERATURE 0.8f
enum { VERIFY_MOST_WAYS = 32, VERIFY_SESSIONS = 4 };

typedef struct verify_way {
    char name[96]; /* "lookup, optimal" */
    drey_drafter drafter;
    drey_policy policy;
    const char *cpu_tier;            /* NULL: the settings' */
    int32_t n_threads;               /* 0: the settings' */
    int32_t prompt_chunk;            /* 0: the settings' */
    int32_t n_sessions;              /* at most VERIFY_SESSIONS */
    bool least;                      /* the smallest budget that works, instead of the settings' */
    int32_t most_texts, most_tokens; /* INT32_MAX: all. Plain C is slow */
} verify_way;

/* ways[0] is the reference: no draft, one thread. The others go by what this machine has and what
 * is next to the model; with the models' draft where there is one. Returns how many. */
int32_t verify_ways(verify_way ways[VERIFY_MOST_WAYS], const models *m, const cli_settings *s);

/* Opens the engine of a way in m, which models_stop closes. */
drey_status verify_way_open(const verify_way *way, models *m, const cli_settings *s,
                            int32_t n_context, drey_error *err);

/* A token's text in quotation marks and its number; -1: "the end of the text". */
void verify_piece(const drey_model *model, int32_t id, char *out, size_t capacity);
