/* drey tune: measures the ways of computing that this machine could choose, and keeps the better
 * ones for the commands that run a model. */
#include "cli/commands/cmd_tune.h"

#include "cli/commands/commands.h"
#include "cli/commands/counted_work.h"
#include "cli/commands/models.h"
#include "cli/files/cache_folder.h"
#include "cli/terminal/terminal.h"
#include "drey/tune.h"

#include <math.h>
#include <string.h>

enum { MOST_QUESTIONS = 6 }; /* three choices, two types of weights each */

typedef struct machine {
    bool verbose;
    counted_work work;
    drey_tune_report report[MOST_QUESTIONS]; /* [n] */
    int32_t n;
} machine;

static void show_question(const drey_tune_report *r)
{
    printf("%-11s %s, %2d %s", r->choice, r->kernel, r->rows, r->rows == 1 ? "row: " : "rows:");
    for (int32_t i = 0; i < r->n_ways; i++)
        printf("%s %s %5.1f GB/s", i ? "," : "", r->way[i], r->bytes_per_s[i] * 1e-9);
    putchar('\n');
}

static void note_question(void *user, const drey_tune_report *r)
{
    machine *m = user;
    if (m->n < MOST_QUESTIONS)
        m->report[m->n++] = *r;
    if (m->verbose)
        show_question(r);
    else
        counted_work_show(&m->work, "measuring kernels", (double)m->n / MOST_QUESTIONS);
}

/* Returns how many times as fast way `best` of a choice was as way `usual`, over the kernels that
 * were measured; 1: neither was. */
static double gain_of(const machine *m, const char *choice, const char *usual, const char *best)
{
    double product = 1;
    int n = 0;
    for (int32_t i = 0; i < m->n; i++) {
        const drey_tune_report *r = &m->report[i];
        double default_speed = 0, best_speed = 0;
        for (int32_t k = 0; k < r->n_ways; k++) {
            default_speed = strcmp(r->way[k], usual) == 0 ? r->bytes_per_s[k] : default_speed;
            best_speed = strcmp(r->way[k], best) == 0 ? r->bytes_per_s[k] : best_speed;
        }
        if (strcmp(r->choice, choice) == 0 && default_speed > 0 && best_speed > 0) {
            product *= best_speed / default_speed;
            n++;
        }
    }
    return n ? pow(product, 1.0 / n) : 1;
}

static const char *amx_name(const drey_tuning *t)
{
    return t->early_amx ? "from 9 rows" : "from 25 rows";
}

/* Passes of one row write texts; those of more read prompts and verify drafts. */
static void show_gain(const machine *m, const drey_tuning *tuning)
{
    drey_tuning usual;
    drey_tuning_init(&usual);
    double one = gain_of(m, "fetch", drey_fetch_name(usual.fetch), drey_fetch_name(tuning->fetch));
    double many = gain_of(m, "tile", drey_tile_name(usual.tile), drey_tile_name(tuning->tile)) *
                  gain_of(m, "AMX", amx_name(&usual), amx_name(tuning));
    if (one <= 1 && many <= 1)
        puts("the usual kernels are the fastest here: nothing changes");
    else if (many <= 1)
        printf("texts are computed %.2f times as fast from now on, in memory\n", one);
    else if (one <= 1)
        printf("prompts and drafts are computed %.2f times as fast from now on, in memory\n", many);
    else
        printf("in memory, texts are computed %.2f times as fast from now on, prompts and drafts "
               "%.2f times\n",
               one, many);
}

static void show_choice(const drey_tuning *tuning)
{
    printf("fetch %s, tile %s, AMX %s\n", drey_fetch_name(tuning->fetch),
           drey_tile_name(tuning->tile), amx_name(tuning));
}

static drey_status show(const cli_settings *s, drey_error *err)
{
    char folder[PATH_MAX];
    drey_tuning tuning;
    if (models_loaded(drey_tuning_load(s->common.cpu_tier, cache_folder(folder), &tuning, err), err,
                      "drey tune")) {
        show_choice(&tuning);
        return tune_show_files(stdout, NULL, err);
    }
    drey_tuning_init(&tuning);
    show_choice(&tuning);
    puts("the processor's family has these: nothing was measured, drey tune does that");
    return DREY_OK;
}

static drey_status tune(const cli_settings *s, drey_error *err)
{
    char folder[PATH_MAX];
    drey_tuning tuning;
    machine m = {.verbose = s->common.verbose};
    TRY(models_check_tier(s->common.cpu_tier, err));
    if (s->tune.forget)
        return tune_forget(NULL, err);
    if (s->tune.show)
        return show(s, err);
    tune_warn_of_load();
    counted_work_show(&m.work, "measuring kernels", 0);
    drey_status status =
        drey_tune(s->common.n_threads, s->common.cpu_tier, &tuning, note_question, &m, err);
    counted_work_end(&m.work);
    TRY(status);
    TRY(cache_folder_find(folder, err));
    TRY(drey_tuning_store(s->common.cpu_tier, folder, &tuning, err));
    if (s->common.verbose) {
        show_choice(&tuning);
        TRY(tune_show_files(stdout, NULL, err));
    }
    show_gain(&m, &tuning);
    return DREY_OK;
}

int tune_main(const cli_settings *settings)
{
    drey_error err = {0};
    drey_status status =
        settings->common.model ? tune_models(settings, &err) : tune(settings, &err);
    return exit_with(status, &err);
}
