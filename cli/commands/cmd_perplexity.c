/* drey perplexity: exp of the mean negative log-probability of a text's tokens, one window after
 * another, all tokens of a window but its first (or its first --unscored). The last window may be
 * shorter. With --exit fast also by what early exits would have written. */
#include "cli/commands/commands.h"
#include "cli/commands/counted_work.h"
#include "cli/files/input.h"
#include "cli/commands/models.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <math.h>
#include <stdlib.h>

typedef struct scoring {
    const cli_settings *settings;
    models models;
    int32_t *ids; /* [n_ids] */
    size_t n_ids;
    size_t window, unscored; /* tokens of a window, and of them in front those only read */
    progress progress;
    counted_work work; /* windows */
    double nll;        /* sum over n_scored tokens, in nats */
    size_t n_scored;
    struct {
        double nll, n_layers; /* sums over them */
        size_t n_left, n_same;
    } early; /* with exits; n_same: tokens before which both find the same token likeliest */
} scoring;

static double perplexity(const scoring *p)
{
    return exp(p->nll / (double)p->n_scored);
}

static bool exits(const scoring *p)
{
    return p->settings->drafting.exit != DREY_EXIT_OFF;
}

static drey_status take_text(scoring *p, drey_error *err)
{
    TRY(input_text_tokens(p->models.target, p->settings->text.file,
                          p->settings->common.memory_bytes, DREY_TOKENIZE_BOS, &p->ids, &p->n_ids,
                          err));
    if (p->n_ids < 2)
        FAIL(err, DREY_ERR_FORMAT,
             "the text has %zu token%s, and perplexity needs two at least: give a longer one with "
             "-f FILE, or on standard input",
             p->n_ids, p->n_ids == 1 ? "" : "s");
    p->window = (size_t)p->settings->scoring.window;
    if (p->window > p->n_ids)
        p->window = p->n_ids;
    p->unscored = p->settings->scoring.unscored ? (size_t)p->settings->scoring.unscored : 1;
    if (p->unscored >= p->window)
        FAIL(err, DREY_ERR_USAGE, "--unscored %zu leaves nothing to score of windows of %zu tokens",
             p->unscored, p->window);
    return DREY_OK;
}

static void show_running(scoring *p, size_t done, size_t n_windows)
{
    char what[96];
    progress_clear(&p->progress);
    p->progress.quiet = true; /* the running perplexity takes over */
    snprintf(what, sizeof what, "window %zu of %zu: perplexity %.4f", done, n_windows,
             perplexity(p));
    if (done < n_windows) {
        counted_work_show(&p->work, what, (double)done / (double)n_windows);
        return;
    }
    counted_work_end(&p->work);
    if (!p->settings->quiet)
        fprintf(stderr, "%s\n", what);
}

static int32_t n_layers(const scoring *p)
{
    drey_model_info info;
    drey_model_describe(p->models.target, &info);
    return info.n_layers;
}

static drey_status score_window(scoring *p, const int32_t *ids, size_t n, float *logprob,
                                drey_error *err)
{
    TRY(drey_session_score(p->models.session, ids, n, logprob, err));
    for (size_t i = p->unscored - 1; i + 1 < n; i++, p->n_scored++)
        p->nll -= (double)logprob[i];
    return DREY_OK;
}

static drey_status score_window_early(scoring *p, const int32_t *ids, size_t n,
                                      drey_exit_score *score, drey_error *err)
{
    const int32_t all = n_layers(p);
    TRY(drey_session_score_exits(p->models.session, ids, n, score, err));
    for (size_t i = p->unscored - 1; i + 1 < n; i++, p->n_scored++) {
        p->nll -= (double)score[i].whole;
        p->early.nll -= (double)score[i].early;
        p->early.n_layers += score[i].n_layers;
        p->early.n_left += score[i].n_layers < all;
        p->early.n_same += score[i].early_top == score[i].whole_top;
    }
    return DREY_OK;
}

static drey_status score(scoring *p, drey_error *err)
{
    /* A single token left over at the end has nothing before it. */
    size_t n_windows = p->n_ids / p->window + (p->n_ids % p->window >= 2);
    void *scores = malloc(p->window * (exits(p) ? sizeof(drey_exit_score) : sizeof(float)));
    if (!scores)
        FAIL(err, DREY_ERR_MEMORY, "out of memory; give a smaller --window");
    drey_status status = DREY_OK;
    for (size_t w = 0; w < n_windows && status == DREY_OK; w++) {
        if (signals_exit_code()) { /* between two windows nothing can be cancelled */
            status = DREY_ERR_CANCELLED;
            break;
        }
        size_t first = w * p->window;
        size_t n = p->n_ids - first < p->window ? p->n_ids - first : p->window;
        status = exits(p) ? score_window_early(p, p->ids + first, n, scores, err)
                          : score_window(p, p->ids + first, n, scores, err);
        if (status != DREY_OK)
            break;
        if (signals_exit_code()) /* it came after the window's last look */
            status = DREY_ERR_CANCELLED;
        else
            show_running(p, w + 1, n_windows);
    }
    free(scores);
    return status;
}

static drey_status score_all(scoring *p, drey_error *err)
{
    drey_plan plan;
    TRY(models_open(&p->models, p->settings, err));
    TRY(take_text(p, err));
    TRY(models_start(&p->models, p->settings, (int32_t)p->window, MODELS_WATCHED, &p->progress,
                     err));
    drey_engine_plan(p->models.engine, &plan);
    models_warn_of_plan(&plan);
    return score(p, err);
}

static void report(const scoring *p)
{
    const double n = (double)p->n_scored;
    printf("perplexity %.4f over %zu tokens\n", perplexity(p), p->n_scored);
    if (exits(p))
        printf("early exits %.4f: %.2f %% of the tokens left, %.2f of %d layers per token, the "
               "likeliest token is the same for %.2f %%\n",
               exp(p->early.nll / n), 100 * (double)p->early.n_left / n, p->early.n_layers / n,
               n_layers(p), 100 * (double)p->early.n_same / n);
}

int perplexity_main(const cli_settings *given)
{
    cli_settings settings = *given;
    if (given->drafting.drafter != DREY_DRAFTER_NONE) /* which names candidates */
        settings.drafting.policy = DREY_POLICY_SINGLE;
    scoring p = {
        .settings = &settings, .progress.quiet = settings.quiet, .work.quiet = settings.quiet};
    drey_error err = {0};
    drey_status status = score_all(&p, &err);
    signals_unwatch();
    progress_clear(&p.progress);
    counted_work_end(&p.work);
    if (status == DREY_OK)
        report(&p);
    models_close(&p.models);
    free(p.ids);
    int failed = exit_with(status, &err), interrupted = signals_exit_code();
    return interrupted ? interrupted : failed;
}
