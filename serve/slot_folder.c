/* Sessions in files: see slot_folder.h. */
#include "serve/slot_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char unfinished[] = ".partial";

bool slot_folder_is_unfinished(const char *name, size_t n)
{
    size_t n_end = sizeof unfinished - 1;
    return n >= n_end && memcmp(name + n - n_end, unfinished, n_end) == 0;
}

/* Removes unfinished files that nobody writes. */
static void sweep(DIR *d)
{
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (!slot_folder_is_unfinished(e->d_name, strlen(e->d_name)))
            continue;
        int fd = openat(dirfd(d), e->d_name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            unlinkat(dirfd(d), e->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
}

drey_status slot_folder_open(const char *folder, drey_error *err)
{
    DIR *d = opendir(folder);
    if (!d)
        FAIL(err, DREY_ERR_USAGE,
             "the folder %s, in which clients save sessions, cannot be opened: %s; make it first",
             folder, strerror(errno));
    if (access(folder, W_OK | X_OK) != 0) {
        closedir(d);
        FAIL(err, DREY_ERR_USAGE, "clients cannot save sessions in the folder %s: %s", folder,
             strerror(errno));
    }
    sweep(d);
    closedir(d);
    return DREY_OK;
}

drey_status slot_folder_room(const char *folder, const char *name, uint64_t n_bytes,
                             uint64_t most_bytes, drey_error *err)
{
    DIR *d = opendir(folder);
    uint64_t taken = 0;
    int n_files = 0;
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        struct stat about;
        if (strcmp(e->d_name, name) == 0 ||
            fstatat(dirfd(d), e->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(about.st_mode))
            continue;
        taken += (uint64_t)about.st_size;
        n_files++;
    }
    if (d)
        closedir(d);
    if (n_files >= SLOT_FOLDER_FILES)
        FAIL(err, DREY_ERR_USAGE,
             "the folder of saved sessions has %d files, as many as the server lets it have: "
             "remove some of them",
             n_files);
    if (taken > most_bytes || n_bytes > most_bytes - taken)
        FAIL(err, DREY_ERR_USAGE,
             "the session takes %.1f MiB, and of the %.1f MiB that saved sessions may take %.1f "
             "are taken: remove some files, or start the server with more (--slot-save-disk)",
             (double)n_bytes / 1048576, (double)most_bytes / 1048576, (double)taken / 1048576);
    return DREY_OK;
}
