/* A machine that is not here, from a JSON file: what drey tune --simulate reads;
 * docs/reference/files.md has the keys. */
#ifndef DREY_CLI_SIMULATION_FILE_H
#define DREY_CLI_SIMULATION_FILE_H

#include "drey/bench.h"

#include <cjson/cJSON.h>

enum {
    SIMULATION_SETS = 8,
    SIMULATION_CONTEXTS = 12,
    SIMULATION_NOTES = 16,
    SIMULATION_CLAIMS = 32
};

/* Texts are borrowed from root. */
typedef struct simulation_set {
    const char *name;
    double tokens[DREY_SIM_MAX_WIDTHS]; /* [w]: that a pass of widths[w] rows writes */
} simulation_set;

/* A number of the machine that was not published but chosen so that something comes out. */
typedef struct simulation_fit {
    const char *name, *from;
    double value;
} simulation_fit;

/* What was published, to be held against the simulation. */
typedef struct simulation_claim {
    const char *what;
    const simulation_set *set;
    drey_sim_strategy strategy;
    bool compares; /* strategy's speed over that of `against`, the mean over widths from */
    drey_sim_strategy against; /* `from` to `to`; else: strategy's best width */
    int32_t from, to;          /* indices of widths */
    double value;
} simulation_claim;

typedef struct simulation_file {
    cJSON *root;
    const char *name;
    const char *unit_names[DREY_SIM_MAX_UNITS];
    drey_sim_machine machine;
    int32_t context;
    int32_t n_contexts,
        contexts[SIMULATION_CONTEXTS]; /* to compare attention's splits at, of passes */
    int32_t attention_width;           /* of widths[attention_width] rows */
    int n_sets, n_fits, n_notes, n_claims;
    simulation_set sets[SIMULATION_SETS];
    simulation_fit fits[SIMULATION_NOTES];
    const char *notes[SIMULATION_NOTES]; /* what else was assumed */
    simulation_claim claims[SIMULATION_CLAIMS];
} simulation_file;

/* DREY_ERR_FORMAT names the key that is missing or odd. */
drey_status simulation_read(simulation_file *s, const char *path, drey_error *err);
void simulation_free(simulation_file *s);

#endif
