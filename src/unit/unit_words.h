/* Parses the description of units: "cpu:0-3=3+cpu:4-7=1/avx2".
 *
 *   units  = unit {"+" unit} ["+static"] | "auto"
 *   unit   = head ["=" share] {"/" word}
 *   head   = "cpu" [":" cores]  |  a device's name [":" which]
 *   word   = a CPU tier  |  "slow=" factor  |  "threads=" n
 *
 * Cores are "0-3,6". A cluster with cores has a thread for each; one without has as many as the
 * caller asked for, or one if there are other clusters. "slow" makes a cluster wait after each
 * piece of work until it has taken this many times as long: for tests, and to try ratios. "static":
 * no unit takes over another's work. */
#pragma once

#include "os/cores.h"

typedef struct device_class device_class;

enum { UNIT_WHICH_BYTES = 64, UNIT_TIER_BYTES = 16 };

typedef struct unit_word {
    const device_class *device;   /* NULL: a cluster of cores */
    char which[UNIT_WHICH_BYTES]; /* cores or device as written; "": not given */
    core_set cores;               /* none: the system chooses */
    char tier[UNIT_TIER_BYTES];   /* "": the engine's */
    double share;                 /* as given, or expected of "auto"; 0: none */
    double slow;                  /* 1: not slowed */
    int32_t n_threads;            /* threads of a cluster */
} unit_word;

typedef struct unit_words {
    unit_word unit[DREY_MAX_UNITS]; /* clusters, then devices, in the order written */
    int32_t n, n_clusters;
    bool is_static;
    bool has_shares; /* each was given a share, and not all are 0 */
} unit_words;

/* text: NULL is "cpu". more: a class in addition to those of the build, or NULL. n_threads: 0, or
 * what the caller asked for. DREY_ERR_USAGE: the message names the first invalid word. */
drey_status unit_words_parse(unit_words *out, const char *text, const device_class *more,
                             int32_t n_threads, drey_error *err);
/* One cluster without properties: as if there were no clusters. */
bool unit_words_are_plain(const unit_words *w);
int32_t unit_words_threads(const unit_words *w);

/* "auto": a cluster for each speed of cores in `devices` (/sys/devices), with expected shares in
 * proportion to speed; "cpu" if there is only one speed. */
void unit_words_auto(unit_words *out, const char *devices, int32_t n_threads);
