/* Trace files: Chrome trace events, which Perfetto and chrome://tracing open, with the trees of the
 * turns in their arguments; what drey report reads back.
 *
 *      lane (thread) | text | draft | verify | provisional | stall | read | prompt | draft's reads
 *      events        | a turn with its tree  | rows, nodes |       | MB   | rows   |
 *
 *      of a mixture  | experts                             | expert reads 1, 2, ...
 *      events        | a layer's: how many it uses, and of | a read of an expert, with its layer
 *                    | them those that are not in memory   | and number; as many lanes as needed
 *
 *      with other ranks  | ranks: waiting for them
 *
 * Reads that overlap are one event, cut every 32 MiB so that its length shows their speed. */
#pragma once

#include "common/json_value.h"
#include "drey/drey_session.h"

/* number of spans that drey run asks the engine to keep: 24 bytes for each span of three lanes, 16
 * for each node. */
enum { TRACE_FILE_SPANS = 1 << 16 };

typedef struct trace_about {    /* facts about the run in the file */
    const char *target, *draft; /* paths; draft: NULL, "lookup" */
    const char *policy;
    const drey_statistics *statistics;
} trace_about;

/* Writes what the session and its engine kept; whole or not at all, "-" is standard output. model:
 * the target, for its tokens' text. */
drey_status trace_write(const char *path, const drey_session *session, const drey_model *model,
                        const trace_about *about, drey_error *err);

/* ---- Read back ---- */

typedef enum trace_lane {
    LANE_DRAFT,
    LANE_VERIFY,
    LANE_PROVISIONAL,
    LANE_STALL,
    LANE_READ,
    LANE_PROMPT,
    LANE_EXPERTS,
    LANE_RANKS,
    TRACE_LANES
} trace_lane;

typedef struct trace_bar {
    double t0, t1; /* seconds */
    double amount; /* rows, nodes, bytes, experts */
    double part;   /* share of the experts that were read */
} trace_bar;

typedef enum trace_fate { FATE_WAITS, FATE_SUBMITTED, FATE_ACCEPTED } trace_fate;

typedef struct trace_node {
    const char *text;
    int parent, depth; /* parent: -1 for the root */
    double confidence, cumulative;
    int rank; /* 0: none */
    trace_fate fate;
} trace_node;

typedef struct trace_turn {
    int number;
    double t0, t1;
    int n_written;
    const char *next;
    trace_node *nodes; /* [n_nodes]; parents before their children */
    int n_nodes;
} trace_turn;

typedef struct trace_file {
    json_document json; /* texts lie here */
    const char *target, *draft, *policy;
    double tokens_per_s, budget_bytes;
    trace_bar *bars[TRACE_LANES];
    int n_bars[TRACE_LANES];
    trace_turn *turns; /* in the order of their times */
    int n_turns;
} trace_file;

/* DREY_ERR_FORMAT for what is no trace of drey's, or a part of one. */
drey_status trace_read(trace_file *t, const char *path, drey_error *err);
void trace_free(trace_file *t);
