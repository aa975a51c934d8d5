/* Confidence against outcome: see calibration.h. */
#include "tree/calibration.h"
#include "base/usual.h"

#include "base/fmath.h"
#include "common/num.h"
#include "tree/tree.h"

/* Bounds of confidences and values: nothing is certain, and products must stay above 0. */
static const double least = 1e-6, most = 0.9995;

static double within_bounds(double p)
{
    return p >= least ? min_f64(p, most) : least; /* NaN: least */
}

int32_t calibration_bin(float confidence)
{
    double c = within_bounds(confidence);
    double bin = (log_f64(c / (1 - c)) + 6) * (CALIBRATION_BINS / 14.0);
    return bin < 0 ? 0 : min_i32((int32_t)bin, CALIBRATION_BINS - 1);
}

static double odds_of(double p)
{
    return p / (1 - p);
}

float calibration_prior(const calibration *c, int32_t rank, float confidence)
{
    static const double usual[CALIBRATION_RANKS] = USUAL_HEADS_CONFIDENCE;
    int32_t r = min_i32(rank, CALIBRATION_RANKS - 1);
    double p = within_bounds(confidence), odds;
    if (c->average[r] > 0)
        odds = c->average[r] * pow_f64(odds_of(p) / odds_of(usual[r]), USUAL_HEADS_POWER);
    else if (rank > 0 || c->sampled)
        return (float)p;
    else
        odds = USUAL_ODDS_FACTOR * pow_f64(odds_of(p), USUAL_ODDS_POWER);
    return (float)within_bounds(odds / (1 + odds));
}

float calibration_said(bool sampled, int32_t rank, float value)
{
    double p = within_bounds(value);
    if (rank > 0 || sampled)
        return (float)p;
    double odds = pow_f64(odds_of(p) / USUAL_ODDS_FACTOR, 1 / USUAL_ODDS_POWER);
    return (float)within_bounds(odds / (1 + odds));
}

void calibration_expect(calibration *c, const float *right, int32_t n)
{
    for (int r = 0; r < CALIBRATION_RANKS; r++)
        c->average[r] = odds_of(within_bounds(r < n ? right[r] : 0));
}

void calibration_seed(calibration *c, const drey_profile *known)
{
    _Static_assert((int)CALIBRATION_RANKS == (int)DREY_PROFILE_RANKS &&
                       (int)CALIBRATION_BINS == (int)DREY_PROFILE_BINS,
                   "a profile has other bins");
    for (int r = 0; r < CALIBRATION_RANKS; r++)
        for (int bin = 0; bin < CALIBRATION_BINS; bin++) {
            float trials = known->guessed[r][bin];
            float part = trials > CALIBRATION_KNOWN ? CALIBRATION_KNOWN / trials : 1;
            c->trials[r][bin] = part * trials;
            c->hits[r][bin] = part * known->right[r][bin];
        }
}

float calibration_value(const calibration *c, int32_t rank, float confidence)
{
    int32_t r = min_i32(rank, CALIBRATION_RANKS - 1), bin = calibration_bin(confidence);
    double prior = calibration_prior(c, rank, confidence);
    double value =
        (c->hits[r][bin] + CALIBRATION_PRIOR * prior) / (c->trials[r][bin] + CALIBRATION_PRIOR);
    return (float)within_bounds(value);
}

static void halve(calibration *c)
{
    for (int r = 0; r < CALIBRATION_RANKS; r++)
        for (int bin = 0; bin < CALIBRATION_BINS; bin++) {
            c->hits[r][bin] /= 2;
            c->trials[r][bin] /= 2;
        }
    c->n_positions = 0;
}

void calibration_note(calibration *c, int32_t rank, float confidence, bool hit)
{
    int32_t r = min_i32(rank, CALIBRATION_RANKS - 1), bin = calibration_bin(confidence);
    c->hits[r][bin] += hit;
    c->trials[r][bin]++;
}

void calibration_end_place(calibration *c)
{
    if (++c->n_positions >= CALIBRATION_HALVED)
        halve(c);
}

void calibration_learn(calibration *c, const token_tree *tree, const int32_t *path, int32_t n_path,
                       int32_t next)
{
    for (int32_t i = 0; i <= n_path; i++) {
        const tree_node *from = &tree->nodes[i ? path[i - 1] : 0];
        int32_t said = i < n_path ? tree->nodes[path[i]].token : next;
        for (int32_t rank = 0; rank < from->n_guesses; rank++)
            calibration_note(c, rank, from->guess[rank].confidence,
                             from->guess[rank].token == said);
        if (from->n_guesses > 0)
            calibration_end_place(c);
    }
}
