/* What a turn costs, followed on line: how long the target's pass computes for n rows, what reading
 * makes it last at least, and how long the draft's steps take. With it the tree is sized for tokens
 * a second.
 *
 *      draft          pass
 *   |----------|------------------|     T(n, d) = d + max(pass(n), read - min(d, ring))
 *   |  reads go on into the ring, then into the pass
 *
 * pass(n) is flat as long as weights come slower than rows are multiplied, and rises with n beyond,
 * with a step behind each tile of 8. That shape is assumed, or was measured beforehand; how steep
 * it is on this machine today follows from passes over different numbers of rows, and so does what
 * those cost that were never tried. What is measured are ratios to it, for ranges of n. Times come
 * from the caller, so that a virtual clock tests everything. Nothing here decides about a text.
 *
 * Sessions that share passes share what they cost, too: one turn_cost serves all of an engine. */
#ifndef DREY_POLICY_COST_H
#define DREY_POLICY_COST_H

#include "draft/drafter.h"
#include "drey/tune.h"

enum { COST_RANGES = 12 };

typedef struct turn_cost {
    double shape[DREY_PROFILE_ROWS]; /* [n - 1]: of a pass over n rows, in passes over one */
    double bend;               /* rows beyond the first take 1 + bend times what the shape says */
    double pass[COST_RANGES];  /* seconds over what both say; 0: not measured */
    int32_t rows[COST_RANGES]; /* of the latest pass there */
    bool shared; /* passes are several texts' now: where rows are many, that tells little of few */
    double usual_pass; /* the same as long as none was measured */
    double step;       /* the same of the draft's steps */
    double usual_step; /* what a step is taken for, where a pass takes usual_pass, as long as none
                          was measured; never 0 */
    bool step_measured;
    double read_s;     /* of a pass that found nothing in the ring */
    double ring_share; /* of it at most so much is read ahead */
    bool reads_measured;
    double draft_s; /* of the turn under way; the next pass takes it up */
    double turn_s;  /* the last turn, drafting and pass; 0: others shared it, and nobody's own is
                       known */
} turn_cost;

/* Before anything is measured: what weights take through a memory bus and from a disk of today.
 * Bytes of a pass: all, of them streamed; of a step; of the ring. */
void cost_init(turn_cost *c, uint64_t pass_bytes, uint64_t streamed_bytes, uint64_t step_bytes,
               uint64_t ring_bytes);

/* Passes and steps that were measured beforehand; the disk's part stays as it is. Of passes it is
 * the shape that lasts: were each range to begin with a time of its own, those that the machine has
 * no leisure for today would be left for others that only seem faster. */
void cost_seed(turn_cost *c, const drey_profile *known);

/* A step over n nodes took so long. One scale serves all n: were each followed alone, one that was
 * measured in a bad moment would be avoided, and never be measured again. */
void cost_saw_step(turn_cost *c, int32_t n, double seconds);
/* A pass over n_rows: of wall_s it had nothing to compute for wait_s. It ends the turn: what its
 * steps took is draft_s. After turns without steps, what those took is forgotten: they come to be
 * taken for as much of a pass as is usual, and so are tried again. */
void cost_saw_pass(turn_cost *c, int32_t n_rows, double wall_s, double wait_s);

/* The disk would bring what a pass streams in so long, if it were kept busy. */
void cost_saw_disk(turn_cost *c, double read_s);

/* The prediction, in seconds. */
double cost_pass(const turn_cost *c, int32_t n_rows);
double cost_step(const turn_cost *c, int32_t n);
/* A pass over about so many rows was measured. */
bool cost_knows_pass(const turn_cost *c, int32_t n_rows);
/* Next to a turn, steps take no time: a drafter that looks up computes nothing. */
bool cost_steps_are_free(const turn_cost *c);
/* Of a turn with n submitted nodes and so much drafting. */
double cost_turn(const turn_cost *c, int32_t n, double draft_s);
/* The same of a turn that several share: of a pass over n_rows. */
double cost_shared(const turn_cost *c, int32_t n_rows, double draft_s);

/* How many of the nodes with these values (falling; of a node: the probability that it is accepted)
 * to submit: 0 .. n. A turn writes one token and the sum of their values; *tokens_per_s is the most
 * that any choice gives. */
int32_t cost_choose(const turn_cost *c, const float *value, int32_t n, double draft_s,
                    double *tokens_per_s);
/* The same of nodes that share a pass with n_roots rows, which write a token each for certain. */
int32_t cost_choose_among(const turn_cost *c, int32_t n_roots, const float *value, int32_t n,
                          double draft_s, double *tokens_per_s);

#endif
