/* Runs a fuzz target over the files of folders, without a fuzzer: the corpora are tests.
 *   fuzz_replay fuzz_TARGET FOLDER... */
#include "fuzz/replay.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_TARGETS = 40 };

static struct {
    const char *path;
    fuzz_target *run;
} targets[MAX_TARGETS];
static size_t n_targets;

void register_target(const char *path, fuzz_target *target)
{
    if (n_targets == MAX_TARGETS)
        abort();
    targets[n_targets].path = path;
    targets[n_targets++].run = target;
}

/* Returns the target whose file has the name, or NULL. */
static fuzz_target *find_target(const char *name)
{
    for (size_t i = 0; i < n_targets; i++) {
        const char *slash = strrchr(targets[i].path, '/');
        const char *file = slash ? slash + 1 : targets[i].path;
        size_t n = strcspn(file, ".");
        if (strncmp(name, file, n) == 0 && !name[n])
            return targets[i].run;
    }
    return NULL;
}

static void replay_file(fuzz_target *target, const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0) {
        perror(path);
        exit(1);
    }
    size_t n = (size_t)st.st_size;
    uint8_t *bytes = malloc(n ? n : 1); /* exactly as long, so that ASan sees reads past it */
    if (!bytes || fread(bytes, 1, n, f) != n) {
        perror(path);
        exit(1);
    }
    fclose(f);
    printf("%s\n", path);
    fflush(stdout); /* the last line names the input that breaks it */
    target(bytes, n);
    free(bytes);
}

static size_t replay_folder(fuzz_target *target, const char *folder)
{
    size_t n = 0;
    DIR *directory = opendir(folder);
    if (!directory) {
        perror(folder);
        exit(1);
    }
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        replay_file(target, path);
        n++;
    }
    closedir(directory);
    return n;
}

int main(int n_arguments, char **arguments)
{
    fuzz_target *target = n_arguments > 1 ? find_target(arguments[1]) : NULL;
    size_t n = 0;
    if (!target) {
        fprintf(stderr, "usage: fuzz_replay fuzz_TARGET FOLDER...\n");
        return 2;
    }
    for (int i = 2; i < n_arguments; i++)
        n += replay_folder(target, arguments[i]);
    printf("%zu inputs\n", n);
    return n == 0; /* an empty corpus tests nothing */
}
