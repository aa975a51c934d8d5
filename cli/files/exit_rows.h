/* Results of drey bench exit: a row for each text that a side wrote, and what is told of them. */
#ifndef DREY_CLI_EXIT_ROWS_H
#define DREY_CLI_EXIT_ROWS_H

#include "cli/files/csv_rows.h"

#include <cjson/cJSON.h>

/* Layers of a text's tokens: "24:3;28:125", of at most so many layers. */
enum { EXIT_ROW_LAYERS = 256, EXIT_ROW_TEXT = 1600 };

/* What makes a row another one: the first members, up to n_predict. */
typedef struct exit_row {
    char target[64], draft[64]; /* file names, or a drafter's name */
    char side[48];              /* "off", "fast", "tree, exact", "oracle" */
    char prompt[40], group[20];
    double budget_mib; /* 0: unlimited */
    int32_t round, n_predict;

    int32_t tokens, n_layers;
    double tokens_per_s, tokens_per_pass, decode_s; /* 0: of the oracle, which only looks */
    double counted, left; /* tokens that passes found; of them those that left early */
    double layers;        /* of all counted tokens */
    double compared, agreed, taken_back;
    double looks, candidates, refused, look_s, head_s;
    double skipped_bytes, vain_bytes;
    bool lossy;
    char by_layer[EXIT_ROW_TEXT];
    char text[20]; /* hash of the ids; "": not known */
} exit_row;

extern const csv_format exit_format;

static inline const exit_row *exit_row_at(const csv_rows *r, size_t i)
{
    return csv_row_at(r, i);
}

/* count: [n_layers], of tokens behind 1, 2, ... layers. */
void exit_row_put_layers(exit_row *row, const int64_t *count, int32_t n_layers);
/* Adds them to sum: [EXIT_ROW_LAYERS]. */
void exit_row_add_layers(const exit_row *row, double *sum);

/* One side's figures over the prompts of a group, in a budget. */
typedef struct exit_figures {
    char side[48];
    bool lossy;
    int n;               /* prompts */
    double tokens_per_s; /* median */
    double over_off;     /* median of the prompts' ratios to "off"; 0: not known */
    double layers;       /* a token; 0: not known */
    double of_oracle;    /* share of the layers that the oracle saves; 0: not known */
    double left;         /* share of tokens that left */
    double agreement;    /* share of tokens that are the full depth's; 0: nobody compared */
    double refused;      /* whole heads computed in vain, a token */
    double look_share;   /* of the time: features and scores, */
    double head_share;   /* and whole heads */
    double unread;       /* of the streamed bytes behind exits, those that were not read; 0: none */
    double at_layer[EXIT_ROW_LAYERS]; /* share of tokens behind i + 1 layers */
} exit_figures;

enum { EXIT_MAX_SIDES = 16, EXIT_MAX_CASES = 64 };

/* Of one group of prompts: a target with a draft in a budget. */
typedef struct exit_case {
    char target[64], draft[64], group[20];
    double budget_mib;
    int32_t n_layers;
    int n_sides;
    exit_figures side[EXIT_MAX_SIDES]; /* in the order in which they were first measured */
} exit_case;

/* At most EXIT_MAX_CASES; the caller frees *cases. */
drey_status exit_cases(const csv_rows *r, exit_case **cases, int *n, drey_error *err);

/* Rows whose text is not that of the other lossless ones of their target and prompt; told
 * on out. n_texts: of how many lossless ones. */
int exit_texts_differ(const csv_rows *r, FILE *out, int *n_texts);

/* A Markdown table a case; the same as JSON; as a picture: speeds, and tokens by layer. */
void exit_print(const exit_case *cases, int n, FILE *out);
cJSON *exit_json(const exit_case *cases, int n);
drey_status exit_svg(const char *path, const exit_case *cases, int n, drey_error *err);

#endif
