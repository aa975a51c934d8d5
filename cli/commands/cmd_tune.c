/* drey tune: measures the ways of computing that this machine could choose, and keeps the better
 * ones for the commands that run a model. */
#include "cli/commands/cmd_tune.h"

#include "cli/commands/commands.h"
#include "cli/commands/models.h"
#include "cli/files/cache_folder.h"
#include "cli/terminal/terminal.h"
#include "drey/tune.h"

static void show_question(void *user, const drey_tune_report *r)
{
    (void)user;
    printf("%-11s %s, %2d %s", r->choice, r->kernel, r->rows, r->rows == 1 ? "row: " : "rows:");
    for (int32_t i = 0; i < r->n_ways; i++)
        printf("%s %s %5.1f GB/s", i ? "," : "", r->way[i], r->bytes_per_s[i] * 1e-9);
    putchar('\n');
}

/* folder: where it is kept; NULL: nowhere. */
static void show_choice(const drey_tuning *tuning, const char *folder)
{
    printf("fetch %s, tile %s, AMX from %s rows (%s%s)\n", drey_fetch_name(tuning->fetch),
           drey_tile_name(tuning->tile), tuning->early_amx ? "9" : "25",
           folder ? folder : "the processor's family", folder ? "/tuning.json" : "");
}

static drey_status tune(const cli_settings *s, drey_error *err)
{
    char folder[PATH_MAX];
    drey_tuning tuning;
    TRY(models_check_tier(s->common.cpu_tier, err));
    if (s->show) {
        const char *from = cache_folder(folder);
        if (!models_loaded(drey_tuning_load(s->common.cpu_tier, from, &tuning, err), err,
                           "drey tune")) {
            drey_tuning_init(&tuning);
            from = NULL;
        }
        show_choice(&tuning, from);
        return DREY_OK;
    }
    TRY(drey_tune(s->common.n_threads, s->common.cpu_tier, &tuning, show_question, NULL, err));
    TRY(cache_folder_find(folder, err));
    TRY(drey_tuning_store(s->common.cpu_tier, folder, &tuning, err));
    show_choice(&tuning, folder);
    return DREY_OK;
}

int tune_main(const cli_settings *settings)
{
    drey_error err = {0};
    drey_status status =
        settings->common.model ? tune_models(settings, &err) : tune(settings, &err);
    return exit_with(status, &err);
}
