/* Results of drey bench edge: one row for each text that a side wrote, kept in a CSV file as
 * soon as it is known, so that a run that is broken off goes on where it was; and what is told
 * of them. */
#ifndef DREY_CLI_EDGE_ROWS_H
#define DREY_CLI_EDGE_ROWS_H

#include "cli/files/csv_rows.h"

#include <cjson/cJSON.h>

/* What makes a row another one: the first members, up to n_predict. */
typedef struct edge_row {
    char target[64], draft[64]; /* file names; draft "none": the side has none */
    char side[48];              /* "optimal", "optimal without tree", "llama.cpp" */
    char prompt[40], group[20];
    double budget_mib; /* 0: unlimited */
    int32_t round, n_predict;

    int32_t tokens; /* that were written */
    double tokens_per_s, tokens_per_pass;
    double passes, drafted, accepted;
    double decode_s, first_token_s;
    double stall_share, verify_share, draft_share, hidden_share;
    double differed; /* tokens of a lossy side; -1: not known */
    bool lossy;
    char head[20], text[20]; /* hashes of the first TEXT_HASH_HEAD ids, and of all; "": not known */
} edge_row;

extern const csv_format edge_format;

static inline const edge_row *edge_row_at(const csv_rows *r, size_t i)
{
    return csv_row_at(r, i);
}

/* One side's figures within a case: a target in a budget, with one draft. Sides without a draft
 * belong to all cases of their target and budget. */
typedef struct edge_group {
    char name[20];
    int n;                  /* prompts */
    double tokens_per_s;    /* medians over the prompts, of each the median of its rounds */
    double tokens_per_pass; /* 0: not known */
    double of_optimal;      /* median of the prompts' ratios to "optimal"; 0: not known */
} edge_group;

enum { EDGE_MAX_GROUPS = 8, EDGE_MAX_SIDES = 64, EDGE_MAX_CASES = 64 };

typedef struct edge_side {
    char name[48];
    bool lossy;
    edge_group group[EDGE_MAX_GROUPS]; /* [n_groups of the case]; n = 0: the side has none of it */
} edge_side;

typedef struct edge_case {
    char target[64], draft[64];
    double budget_mib;
    int n_groups, n_sides;
    char group[EDGE_MAX_GROUPS][20];
    edge_side side[EDGE_MAX_SIDES]; /* in the order in which they were first measured */
} edge_case;

/* The cases of all rows, at most EDGE_MAX_CASES; the caller frees *cases. */
drey_status edge_cases(const csv_rows *r, edge_case **cases, int *n, drey_error *err);

/* Rows whose text is not that of the other lossless ones of their target and prompt; told
 * on out. */
int edge_texts_differ(const csv_rows *r, FILE *out, int *n_texts);

/* A Markdown table a case. */
void edge_print(const edge_case *cases, int n, FILE *out);
/* The same as JSON. */
cJSON *edge_json(const edge_case *cases, int n);
/* Bars: a picture of tokens/s, a block for each case and group. */
drey_status edge_svg(const char *path, const edge_case *cases, int n, drey_error *err);

#endif
