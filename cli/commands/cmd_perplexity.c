/* drey perplexity: exp of the mean negative log-probability of a text's tokens, one window after
 * another, all tokens of a window but its first (or its first --unscored). The last window may be
 * shorter. */
#include "cli/commands/commands.h"
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
    double told_s; /* when the running perplexity was last shown */
    double nll;    /* sum over n_scored tokens, in nats */
    size_t n_scored;
} scoring;

static double perplexity(const scoring *p)
{
    return exp(p->nll / (double)p->n_scored);
}

static drey_status take_text(scoring *p, drey_error *err)
{
    char *text = NULL;
    size_t n_bytes = 0;
    input_limit limit = input_limit_memory(p->settings->common.memory_bytes, INPUT_AS_IDS);
    drey_status status =
        input_read(p->settings->text.file, "the text", &limit, &text, &n_bytes, err);
    if (status == DREY_OK)
        status = input_tokens(p->models.target, text, n_bytes, DREY_TOKENIZE_BOS, 0, &p->ids,
                              &p->n_ids, err);
    free(text);
    TRY(status);
    if (p->n_ids < 2)
        FAIL(err, DREY_ERR_FORMAT, "the text has %zu tokens; perplexity needs two at least",
             p->n_ids);
    p->window = (size_t)p->settings->scoring.window;
    if (p->window > p->n_ids)
        p->window = p->n_ids;
    p->unscored = p->settings->scoring.unscored ? (size_t)p->settings->scoring.unscored : 1;
    if (p->unscored >= p->window)
        FAIL(err, DREY_ERR_USAGE, "--unscored %zu leaves nothing to score of windows of %zu tokens",
             p->unscored, p->window);
    return DREY_OK;
}

/* On a terminal the line is written over itself, elsewhere it comes every few seconds. */
static void show_running(scoring *p, size_t done, size_t n_windows)
{
    static const double interval_s = 5;
    bool attended = terminal_attended();
    double now_s = progress_clock_s();
    progress_clear(&p->progress);
    p->progress.quiet = true; /* the running perplexity takes over */
    if (p->settings->quiet || (!attended && done < n_windows && now_s - p->told_s < interval_s))
        return;
    p->told_s = now_s;
    fprintf(stderr, "%swindow %zu of %zu: perplexity %.4f%s", attended ? "\r\033[K" : "", done,
            n_windows, perplexity(p), attended && done < n_windows ? "" : "\n");
}

static drey_status score(scoring *p, drey_error *err)
{
    /* A single token left over at the end has nothing before it. */
    size_t n_windows = p->n_ids / p->window + (p->n_ids % p->window >= 2);
    float *logprob = malloc(p->window * sizeof *logprob);
    if (!logprob)
        FAIL(err, DREY_ERR_MEMORY, "out of memory; give a smaller --window");
    drey_status status = DREY_OK;
    for (size_t w = 0; w < n_windows && status == DREY_OK; w++) {
        if (signals_exit_code()) { /* between two windows nothing can be cancelled */
            status = DREY_ERR_CANCELLED;
            break;
        }
        size_t first = w * p->window;
        size_t n = p->n_ids - first < p->window ? p->n_ids - first : p->window;
        status = drey_session_score(p->models.session, p->ids + first, n, logprob, err);
        if (status != DREY_OK)
            break;
        for (size_t i = p->unscored - 1; i + 1 < n; i++, p->n_scored++)
            p->nll -= (double)logprob[i];
        if (signals_exit_code()) /* it came after the window's last look */
            status = DREY_ERR_CANCELLED;
        else
            show_running(p, w + 1, n_windows);
    }
    free(logprob);
    return status;
}

static drey_status score_all(scoring *p, drey_error *err)
{
    TRY(models_open(&p->models, p->settings, err));
    TRY(take_text(p, err));
    TRY(models_start(&p->models, p->settings, (int32_t)p->window, MODELS_WATCHED, &p->progress,
                     err));
    models_show_plan(&p->models, true);
    return score(p, err);
}

int perplexity_main(const cli_settings *settings)
{
    scoring p = {.settings = settings, .progress.quiet = settings->quiet};
    drey_error err = {0};
    drey_status status = score_all(&p, &err);
    signals_unwatch();
    progress_clear(&p.progress);
    if (status == DREY_OK)
        printf("perplexity %.4f over %zu tokens\n", perplexity(&p), p.n_scored);
    models_close(&p.models);
    free(p.ids);
    int failed = exit_with(status, &err), interrupted = signals_exit_code();
    return interrupted ? interrupted : failed;
}
