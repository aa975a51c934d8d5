/* Opening the predictors of an engine: see exit_open.h. */
#include "exit/exit_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/path.h"
#include "exit/exit.h"
#include "exit/exit_file.h"
#include "gguf/gguf.h"
#include "weights/identity.h"

/* The file states whose predictors it holds. */
static drey_status check_layers(const exit_predictors *p, const exit_user *user, const char *path,
                                drey_error *err)
{
    if (p->n_layers == user->n_layers)
        return DREY_OK;
    FAIL(err, DREY_ERR_MISMATCH,
         "%s holds predictors for a model of %d layers, and this one has %d; have predictors "
         "trained for this one",
         SHOWN_PATH(path), p->n_layers, user->n_layers);
}

typedef struct words {
    char text[160];
} words;

/* Sibling models may share a general.name, and files in two folders may share a name: both are
 * given. */
static words draft_words(const char *path, const char *name)
{
    words w;
    char shown[64];
    const char *base = path_name(path);
    gguf_printable(shown, sizeof shown, base, strlen(base));
    const char *who = shown[0] ? shown : "a draft";
    if (name[0])
        snprintf(w.text, sizeof w.text, "%s (\"%.80s\")", who, name);
    else
        snprintf(w.text, sizeof w.text, "%s (a model without a name)", who);
    return w;
}

static words trained_with(const exit_predictors *p)
{
    switch (p->source) {
    case DREY_EXIT_FROM_TEXT:
        return (words){"the drafter \"lookup\""};
    case DREY_EXIT_FROM_HEADS:
        return (words){"the drafter \"medusa\""};
    default:
        return draft_words(p->drafter_file, p->drafter);
    }
}

static words guesses_here(const exit_user *user)
{
    words w;
    if (user->draft)
        return draft_words(gguf_shard_path(user->draft, 0), user->draft_name);
    if (!user->drafter)
        return (words){"nothing"};
    snprintf(w.text, sizeof w.text, "the drafter \"%s\"", user->drafter);
    return w;
}

/* Checks the source of the guesses: with another drafter's candidates the scores of predictors
 * would be random. Heads and predictors each know their target; predictors serve all heads of
 * it. */
static drey_status check_source(const exit_predictors *p, const exit_user *user, const char *path,
                                drey_error *err)
{
    bool same = user->drafter && p->source == user->guesses;
    if (p->source == DREY_EXIT_FROM_TARGET || (same && p->source != DREY_EXIT_FROM_DRAFT))
        return DREY_OK;
    uint64_t identity = 0;
    if (p->source == DREY_EXIT_FROM_DRAFT && user->draft)
        TRY(model_identity(user->draft, &identity, err));
    if (user->draft && exit_fits_draft(p, identity))
        return DREY_OK;
    words trained = trained_with(p), here = guesses_here(user);
    FAIL_HINT(
        err, DREY_ERR_MISMATCH, DREY_HINT_EXIT_FILE,
        "%s holds predictors for guesses of %s, and %s guesses here%s; take the former, or have "
        "predictors trained for what guesses here",
        SHOWN_PATH(path), trained.text, here.text,
        strcmp(trained.text, here.text) == 0 ? ", which is another model of that name" : "");
}

static drey_status open_at(exit_predictors *p, const exit_user *user, const char *path,
                           drey_error *err)
{
    if (!user->path && access(path, F_OK) != 0)
        FAIL_HINT(err, DREY_ERR_IO, DREY_HINT_EXIT_FILE,
                  "early exits need predictors, and there are none in %s; have them trained",
                  SHOWN_PATH(path));
    drey_status status = exit_open(p, path, user->target, err);
    if (status == DREY_OK)
        status = check_layers(p, user, path, err);
    if (status == DREY_OK)
        return check_source(p, user, path, err);
    if (err)
        err->hint = DREY_HINT_EXIT_FILE;
    return status;
}

drey_status exit_open_for(exit_predictors *p, const exit_user *user, drey_error *err)
{
    if (user->path)
        return open_at(p, user, user->path, err);
    char *path = path_with(gguf_shard_path(user->target, 0), EXIT_FILE_ENDING);
    if (!path)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a path");
    drey_status status = open_at(p, user, path, err);
    free(path);
    return status;
}

int32_t exit_most_deferred(drey_exit mode, bool single)
{
    return mode == DREY_EXIT_OFF ? 0 : single ? EXIT_MOST_SINGLE : EXIT_MOST_PATH;
}

/* A tree's pass ends only when its last node is decided: hardly ever early. */
double exit_mean_layers(exit_predictors *p, bool single)
{
    const float n_passes = EXIT_MOST_SINGLE + 1;
    double layers = 0;
    if (!single || p->n_layers == 0)
        return 0;
    for (int32_t layer = p->first; layer <= p->n_layers; layer++) {
        p->passes[layer] = EXIT_MOST_SINGLE * p->expected[layer] / n_passes;
        if (layer == p->n_layers)
            p->passes[layer] += 1 / n_passes;
        layers += (double)p->passes[layer] * layer;
    }
    return layers;
}
