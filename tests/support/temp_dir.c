/* mkdtemp and its undoing: see temp_dir.h. */
#include "support/temp_dir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static char directory[1024];

const char *temp_dir(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/drey-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(directory)) {
        perror(directory);
        abort();
    }
    return directory;
}

const char *temp_path(const char *name)
{
    static char paths[16][2048];
    static int next;
    if (!directory[0])
        temp_dir();
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *walk)
{
    (void)st;
    (void)flag;
    (void)walk;
    return remove(path);
}

void temp_dir_remove(void)
{
    if (directory[0])
        nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    directory[0] = '\0';
}

int temp_dir_set_up(void **state)
{
    (void)state;
    temp_dir();
    return 0;
}

int temp_dir_tear_down(void **state)
{
    (void)state;
    temp_dir_remove();
    return 0;
}
