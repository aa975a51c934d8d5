/* Worth of a drafter's confidence: the share of its guesses of a rank and a confidence that turn
 * out right. It is learnt while texts are written, because drafters err differently: the
 * probabilities of small models are more spread out than those of a larger model.
 *
 * Given the confidences, the outcomes at successive positions are nearly independent. So the
 * product of these values along a path is the probability that the path is accepted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drey/profile.h"
#include "tree/tree.h"

typedef struct drey_profile drey_profile;
typedef struct token_tree token_tree;

enum {
    CALIBRATION_RANKS = 3, /* 1st, 2nd, and the rest */
    CALIBRATION_BINS = 16,
    CALIBRATION_HALVED = 512, /* after so many positions the counts are halved */
    CALIBRATION_PRIOR = 8,    /* trials that the prior is worth in each bin */
    CALIBRATION_KNOWN = 64    /* most trials of a bin that a profile counts as */
};

typedef struct calibration {
    float hits[CALIBRATION_RANKS][CALIBRATION_BINS], trials[CALIBRATION_RANKS][CALIBRATION_BINS];
    int32_t n_positions; /* since the counts were halved */
    bool sampled;        /* the text is sampled: both confidence and choice contain noise */
    double average[CALIBRATION_RANKS]; /* odds of a right guess, calibration_expect; 0: unknown */
} calibration;

/* The bin of a confidence. Bins are equally wide in log-odds, from -6 to 8. */
int32_t calibration_bin(float confidence);

/* The value that is assumed before anything is known. In a greedy text the best guess is right more
 * often than its confidence says: odds' = 1.5 odds^1.25, fitted to 4,000 positions of code and chat
 * of two models. Other guesses, and those of a sampled text, are taken as they are. */
float calibration_prior(const calibration *c, int32_t rank, float confidence);

/* The confidence for which a calibration that knows nothing assumes this value. */
float calibration_said(bool sampled, int32_t rank, float value);

/* Assumes instead that guesses of each rank are right at a share right[n] of the positions on
 * average, and that the confidence says little more: odds' = the average's odds (odds / odds of a
 * usual confidence)^0.4, usual confidences being 0.72, 0.106 and 0.043. Fitted to 2,700 positions
 * of code and chat with the heads of a 1.5B: a third of the guesses that heads are sure of are
 * wrong. */
void calibration_expect(calibration *c, const float *right, int32_t n);

/* Begins with a profile's counts. More than 64 trials of a bin count as 64, so that a text that
 * differs is learnt soon. */
void calibration_seed(calibration *c, const drey_profile *known);

/* (hits + 8 prior) / (trials + 8), in (0, 1). */
float calibration_value(const calibration *c, int32_t rank, float confidence);

/* Notes whether a guess was right. calibration_end_place: all guesses of a position are noted. */
void calibration_note(calibration *c, int32_t rank, float confidence, bool hit);
void calibration_end_place(calibration *c);

/* The target accepted path[0..n_path) and then chose `next`: which guess was right is known at the
 * root and at each node of the path. */
void calibration_learn(calibration *c, const token_tree *tree, const int32_t *path, int32_t n_path,
                       int32_t next);
