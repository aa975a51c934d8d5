/* Runs a fuzz target over the files of folders, without a fuzzer: the corpora are tests. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static void replay_file(const char *path)
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
    LLVMFuzzerTestOneInput(bytes, n);
    free(bytes);
}

static size_t replay_folder(const char *folder)
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
        replay_file(path);
        n++;
    }
    closedir(directory);
    return n;
}

int main(int n_arguments, char **arguments)
{
    size_t n = 0;
    for (int i = 1; i < n_arguments; i++)
        n += replay_folder(arguments[i]);
    printf("%zu inputs\n", n);
    return n == 0; /* an empty corpus tests nothing */
}
