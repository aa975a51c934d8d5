/* What a drafter's confidence is worth: the share of its guesses, of a rank and a confidence, that
 * turn out right. Learnt on line, because drafts err differently: small models guess by their own
 * spread, which is wider than a larger model's best token deserves.
 *
 * Given confidence, the outcomes at successive positions are as good as independent, so products of
 * these values along a path are the probability that the path is accepted. */
#ifndef DREY_TREE_CALIBRATION_H
#define DREY_TREE_CALIBRATION_H

#include "tree/tree.h"
#include "drey/tune.h"

enum {
    CALIBRATION_RANKS = 3, /* 1st, 2nd, and the rest */
    CALIBRATION_BINS = 16,
    CALIBRATION_HALVED = 512, /* after so many positions the past counts half */
    CALIBRATION_PRIOR = 8,    /* trials that the prior is worth in each bin */
    CALIBRATION_KNOWN = 64 /* trials that those known beforehand are worth in each bin, at most */
};

typedef struct calibration {
    float hits[CALIBRATION_RANKS][CALIBRATION_BINS], trials[CALIBRATION_RANKS][CALIBRATION_BINS];
    int32_t n_positions; /* since the counts were halved */
    bool sampled;        /* the text is: noise takes part in confidence and choice alike */
    double average[CALIBRATION_RANKS]; /* odds of a right guess, calibration_expect; 0: not told */
} calibration;

/* Which bin a confidence falls into: they are equally wide in log-odds, from -6 to 8. */
int32_t calibration_bin(float confidence);

/* What is assumed before anything is known. A best guess is right more often than its confidence
 * says where the target takes its own most likely token: odds' = 1.5 odds^1.25, which is where two
 * models' 4,000 positions of code and chat lie; the others', and a sampled text's, are as
 * they are. */
float calibration_prior(const calibration *c, int32_t rank, float confidence);

/* The confidence for which a calibration that has been told nothing assumes this value. */
float calibration_said(bool sampled, int32_t rank, float value);

/* Assumes instead that guesses of each rank are right in right[n] of the places on average, and
 * that confidence tells less than it says: odds' = those of the average (odds / a usual
 * confidence's)^0.4, usual being 0.72, 0.106 and 0.043. So lie 2,700 positions of code and chat
 * behind the heads of a 1.5B: of guesses that heads are sure of, a third are wrong. */
void calibration_expect(calibration *c, const float *right, int32_t n);

/* Begins with what was counted beforehand, of which a bin's trials beyond 64 count as 64: a text
 * that differs is to be learnt soon. */
void calibration_seed(calibration *c, const drey_profile *known);

/* (hits + 8 prior) / (trials + 8), in (0, 1). */
float calibration_value(const calibration *c, int32_t rank, float confidence);

/* A guess was right, or was not; and all guesses of a place have been noted. */
void calibration_note(calibration *c, int32_t rank, float confidence, bool hit);
void calibration_end_place(calibration *c);

/* The target went along path[0..n_path) and then said `next`: at the root and each of the path's
 * nodes it is known which guess was right. */
void calibration_learn(calibration *c, const token_tree *tree, const int32_t *path, int32_t n_path,
                       int32_t next);

#endif
