/* The models that a command line names, opened, and the engine options that it asks for. */
#pragma once

#include "cli/args/options.h"
#include "cli/files/ranks_file.h"
#include "cli/terminal/progress.h"
#include "drey/tune.h"

/* Facts that are known before anything is loaded. */
typedef struct models_ahead {
    drey_draft_reason
        /* reason why no model next to the target drafts, where -d auto had to choose */
        reason;
    uint64_t room_bytes;  /* a budget that would have room for one; 0: not known */
    drey_speeds speeds;   /* speeds of this machine; 0: not known */
    drey_outlook outlook; /* by models_look; verdict "": not made */
} models_ahead;

typedef struct models {
    drey_model *target;
    drey_model *draft; /* NULL without a drafting model */
    drey_drafter drafter;
    const char *heads; /* borrowed from the settings; NULL: those next to the target */
    char why[512];     /* reason why -d auto took that; "" where it had not to choose */
    models_ahead ahead;
    bool tuned; /* by drey tune, for this machine: */
    drey_tuning tuning;
    bool divided; /* between its units, by drey tune: */
    drey_units_report units;
    drey_boundaries_report attention;
    bool routed; /* the target, a mixture of experts, by drey tune -m: */
    drey_routes routes;
    bool measured; /* measurements of these models, by drey tune -m: */
    drey_pair_report known;
    drey_grammar *grammar;  /* grammar of the texts; NULL: any */
    uint64_t grammar_bytes; /* its memory, and */
    /* bytes that the command itself keeps within the budget; 0 at first */
    uint64_t held_bytes;
    drey_prefix_options prefixes; /* beginnings of texts to keep; memory_bytes 0: none */
    drey_ranks *ranks;            /* NULL: one machine does all */
    struct {
        drey_progress_fn *fn; /* hears of it in the bar's place; NULL: the bar does */
        void *user;
    } loading;
    int32_t rank_layers[RANKS_FILE_MOST]; /* layers of each rank, if the settings say so: */
    uint64_t n_rank_layers;
    drey_engine *engine;   /* by models_start; NULL: not open, */
    drey_session *session; /* nor a session in it */
} models;

/* DREY_ERR_USAGE, with the tiers to choose from, for a tier that this machine or build lacks; NULL
 * is good. */
drey_status models_check_tier(const char *cpu_tier, drey_error *err);

/* DREY_ERR_USAGE: mpirun has started a command that does not work on several ranks. */
drey_status models_check_ranks(const cli_settings *settings, drey_error *err);

/* Checks the tier, opens what settings name and warns of more threads than cores. models_close
 * takes a half-opened pair as well; it closes session and engine first. */
drey_status models_open(models *m, const cli_settings *settings, drey_error *err);
void models_close(models *m);
/* Returns whether this process is a rank that computes layers for rank 0, and nothing else; then
 * that, until rank 0 ends it. */
bool models_serve_rank(const models *m);
drey_status models_serve(const models *m, const cli_settings *settings, drey_error *err);
/* After all is said: ends the run, of all ranks. */
void models_leave_ranks(models *m);

/* Looks ahead to what options that models_choose made can do; how its verdict is shown:
 * verdict.h. */
drey_status models_look(models *m, const cli_settings *settings, const drey_engine_options *options,
                        drey_error *err);

/* Takes the ranks' layers that settings name into m->rank_layers and into engine options. */
drey_status models_divide(models *m, const cli_settings *settings, drey_engine_options *options,
                          drey_error *err);

/* All that settings say about the engine. n_context is what the command chose. The options borrow
 * the models. */
drey_engine_options models_engine_options(const models *m, const cli_settings *settings,
                                          int32_t n_context);

/* Sets drafter, draft and why with -d auto (drey_choose_draft). Chooses again where something else
 * has room now. */
drey_status models_choose_draft(models *m, const cli_settings *settings, int32_t n_context,
                                drey_error *err);
/* The same, and engine options that begin with what was measured of the draft. */
drey_status models_choose(models *m, const cli_settings *settings, int32_t n_context,
                          drey_engine_options *options, drey_error *err);

/* -c; without it `usual`, or the context that the model was made for where that is shorter. */
int32_t models_context(const models *m, const cli_settings *settings, int32_t usual);
/* Warns of a context that is longer than what the model was made for. */
void models_warn_of_context(const models *m, int32_t n_context);

/* Objects that models_start opens: the engine, whose prompts are reported elsewhere; a session as
 * well; and signals cancel that from then on. */
typedef enum models_use { MODELS_ENGINE, MODELS_SESSION, MODELS_WATCHED } models_use;

/* models_choose, for texts the verdict, then opens what `use` says. Signals wait until that is
 * done. After a failure nothing is open. bar: where loading is shown. */
drey_status models_start(models *m, const cli_settings *settings, int32_t n_context, models_use use,
                         progress *bar, drey_error *err);
void models_stop(models *m);

/* Shows with -v the plan of the engine and the draft, briefly; the ranks; nothing of it with -q.
 * Shows warnings in any case. */
void models_show_plan(const models *m, const cli_settings *settings);

/* Writes a text after the prompt's ids. A signal cancels it, also one that came before it began;
 * the session stays watched. */
drey_status models_write(const models *m, const int32_t *ids, size_t n_ids,
                         const drey_generate_options *options, drey_statistics *statistics,
                         drey_error *err);

/* Writes the whole command line that measures this model, with this draft unless it is chosen:
 * "drey tune -m MODEL -d DRAFT". Returns out. */
enum { TUNE_LINE_BYTES = 1400 };
const char *models_tune_line(const models *m, const cli_settings *settings,
                             char out[TUNE_LINE_BYTES]);

/* Returns whether a file of the cache folder was loaded. One that is passed over is complained of;
 * where there is none nothing is said. again: the command that measures again. */
bool models_loaded(drey_status status, const drey_error *err, const char *again);

/* Says why the sidecar next to the target is not used, if there is one and it is not, and that what
 * "auto" means had to be guessed, if it had. */
void models_warn_of_plan(const drey_plan *plan);
