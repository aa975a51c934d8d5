/* drey tune: measures the ways of computing that this machine could choose, and keeps the better
 * ones for the commands that run a model. */
#include "cli/commands/cmd_tune.h"

#include "cli/commands/commands.h"
#include "cli/commands/models.h"
#include "cli/terminal/terminal.h"
#include "cli/files/tuning_file.h"
#include "drey/tune.h"

#include <limits.h>

static void show_question(void *user, const drey_tune_report *r)
{
    (void)user;
    printf("%-11s %s, %2d %s  %5.1f GB/s without, %5.1f with\n", r->choice, r->kernel, r->rows,
           r->rows == 1 ? "row: " : "rows:", r->without_bytes_per_s * 1e-9,
           r->with_bytes_per_s * 1e-9);
}

static void show_choice(const drey_tuning *tuning, const char *from)
{
    printf("near fetch %s, whole lines %s (%s)\n", tuning->near_fetch ? "yes" : "no",
           tuning->whole_lines ? "yes" : "no", from);
}

static drey_status tune(const cli_settings *s, drey_error *err)
{
    char path[PATH_MAX];
    drey_tuning tuning;
    TRY(models_check_tier(s->cpu_tier, err));
    if (s->show) {
        bool kept = tuning_load(s->cpu_tier, &tuning);
        if (!kept)
            drey_tuning_init(&tuning);
        show_choice(&tuning,
                    kept && tuning_path(path, sizeof path) ? path : "the processor's family");
        return DREY_OK;
    }
    TRY(drey_tune(s->n_threads, s->cpu_tier, &tuning, show_question, NULL, err));
    TRY(tuning_save(s->cpu_tier, &tuning, err));
    show_choice(&tuning, tuning_path(path, sizeof path) ? path : "");
    return DREY_OK;
}

int tune_main(const cli_settings *settings)
{
    drey_error err = {0};
    drey_status status = settings->model ? tune_models(settings, &err) : tune(settings, &err);
    return exit_with(status, &err);
}
