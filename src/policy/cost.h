/* The cost of a turn, measured while texts are written: how long the target's pass computes for n
 * rows, how long it lasts at least because of its reads, and how long the draft's steps take. The
 * tree's size is chosen by it for the most tokens per second.
 *
 *      draft          pass
 *   |----------|------------------|     T(n, d) = d + max(pass(n), read - min(d, ring))
 *   |  reads continue into the ring, then into the pass
 *
 * pass(n) is flat as long as weights arrive slower than rows are multiplied; beyond, it rises with
 * n, with a step after each tile of 8. That shape is assumed, or measured beforehand. How steep it
 * is on this machine now follows from passes over different numbers of rows, which also gives the
 * cost of numbers that were never tried. What is measured are ratios to the shape, for ranges of n.
 * Times come from the caller, so that everything can be tested with a virtual clock. Nothing here
 * decides about a text.
 *
 * Sessions that share passes also share their cost: one turn_cost serves the whole engine. */
#pragma once

#include "drey/profile.h"

enum { COST_RANGES = 12 };

typedef struct turn_cost {
    double shape[DREY_PROFILE_ROWS]; /* [n - 1]: of a pass over n rows, in passes over one */
    double bend;               /* rows beyond the first take 1 + bend times the shape's time */
    double pass[COST_RANGES];  /* measured seconds over those of shape and bend; 0: not measured */
    int32_t rows[COST_RANGES]; /* rows of the latest pass there */
    bool shared;               /* several texts share passes now: many rows say little about few */
    double usual_pass;         /* the same before any was measured */
    double step;               /* the same of the draft's steps */
    double usual_step;         /* the step's before any was measured; above 0 */
    bool step_measured;
    double read_s;     /* time of a pass that found nothing in the ring */
    double ring_share; /* at most so much of it is read ahead */
    bool reads_measured;
    bool of_experts;
    double draft_s; /* time of drafting in the current turn; the next pass adds it */
    double turn_s;  /* the last turn, drafting and pass; 0: others shared it */
} turn_cost;

/* Sets times before anything is measured: those of weights through a usual memory bus and from a
 * usual disk. Bytes of a pass: all, and those of them that are streamed; of a step; of the ring. */
void cost_init(turn_cost *c, uint64_t pass_bytes, uint64_t streamed_bytes, uint64_t step_bytes,
               uint64_t ring_bytes);

/* The experts that n rows of a text use together, in those of one row; `most`: of all experts. */
double cost_union(int32_t n, double most);
/* The passes are over a mixture of experts: what they read follows from their rows, so a pass's
 * whole time, reads included, is what its rows take. share: of a pass over one row, of experts;
 * most: as above. */
void cost_of_experts(turn_cost *c, double share, double most);

/* Takes passes and steps that were measured beforehand; the disk's part is unchanged. Of passes
 * only the shape is kept: if each range began with its own time, ranges that are slower now would
 * be left for others that only seem faster. */
void cost_seed(turn_cost *c, const drey_profile *known);

/* A step over n nodes took that long. One scale serves all n: if each n had its own, one that was
 * measured at a bad moment would be avoided and never measured again. The first step also shows how
 * fast memory is, by which the assumed time of a pass changes. */
void cost_saw_step(turn_cost *c, int32_t n, double seconds);
/* Drafting took so much of the turn, and was no usual step. */
void cost_saw_catching_up(turn_cost *c, double seconds);
/* A pass over n_rows took wall_s, of which it had nothing to compute for wait_s. It ends the turn:
 * draft_s is the time of its steps. During turns without steps, the measured time of steps is
 * slowly forgotten in favour of the usual part of a pass, so that steps are tried again. */
void cost_saw_pass(turn_cost *c, int32_t n_rows, double wall_s, double wait_s);

/* The disk would read what a pass streams in that time if it were kept busy. */
void cost_saw_disk(turn_cost *c, double read_s);

/* The prediction, in seconds. */
double cost_pass(const turn_cost *c, int32_t n_rows);
double cost_step(const turn_cost *c, int32_t n);
/* A pass over about so many rows was measured. */
bool cost_knows_pass(const turn_cost *c, int32_t n_rows);
/* Returns whether steps take no time compared with a turn: a drafter that looks up computes
 * nothing. */
bool cost_steps_are_free(const turn_cost *c);
/* Time of a turn with n submitted nodes and draft_s of drafting. */
double cost_turn(const turn_cost *c, int32_t n, double draft_s);
/* The same of a turn that several share: of a pass over n_rows. */
double cost_shared(const turn_cost *c, int32_t n_rows, double draft_s);

/* Returns how many of the nodes with these values (falling; a value is the probability that the
 * node is accepted) to submit: 0 .. n. A turn writes one token plus the sum of their values.
 * *tokens_per_s is the highest rate of any choice. */
int32_t cost_choose(const turn_cost *c, const float *value, int32_t n, double draft_s,
                    double *tokens_per_s);
/* The same for nodes that share a pass with n_roots rows, each of which certainly writes a
 * token. */
int32_t cost_choose_among(const turn_cost *c, int32_t n_roots, const float *value, int32_t n,
                          double draft_s, double *tokens_per_s);
