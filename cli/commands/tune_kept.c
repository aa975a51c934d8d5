/* Measurements that drey tune has kept: where it is, how old it is, and removing it. And whether
 * the machine is too busy to be measured. */
#include "cli/commands/cmd_tune.h"

#include "cli/files/cache_folder.h"
#include "cli/terminal/format.h"
#include "cli/terminal/terminal.h"
#include "tune/measured.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void show_file(void *user, const char *path)
{
    FILE *out = user;
    struct stat info;
    char age[24];
    if (stat(path, &info) != 0)
        return;
    fputs("kept       ", out);
    print_clean(out, path);
    fprintf(out, ", measured %s\n", format_age(age, difftime(time(NULL), info.st_mtime)));
}

drey_status tune_show_files(FILE *out, const drey_model *target, drey_error *err)
{
    char folder[PATH_MAX];
    return cache_folder(folder) ? measured_files(target, folder, show_file, out, err) : DREY_OK;
}

typedef struct forgetting {
    int n_files;
    drey_error failed; /* code DREY_OK: nothing did */
} forgetting;

static void forget_file(void *user, const char *path)
{
    forgetting *f = user;
    if (unlink(path) != 0) {
        error_set(&f->failed, DREY_ERR_IO, "cannot remove %.400s: %s", path, strerror(errno));
        return;
    }
    f->n_files++;
    fputs("removed    ", stdout);
    print_clean(stdout, path);
    putchar('\n');
}

drey_status tune_forget(const drey_model *target, drey_error *err)
{
    char folder[PATH_MAX];
    forgetting f = {0};
    if (cache_folder(folder))
        TRY(measured_files(target, folder, forget_file, &f, err));
    if (f.failed.code != DREY_OK) {
        if (err)
            *err = f.failed;
        return f.failed.code;
    }
    if (f.n_files == 0)
        puts(target ? "nothing is kept of this model" : "nothing is kept of this machine");
    return DREY_OK;
}

void tune_warn_of_load(void)
{
    double load;
    const long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (machine_is_busy(&load))
        complain("other programs are at work (load %.1f on %ld core%s): what is measured "
                 "now may be wrong; measure again when the machine is quiet",
                 load, n_cores, n_cores == 1 ? "" : "s");
}
