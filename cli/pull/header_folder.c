/* Folders for headers: see header_folder.h. A folder is locked as long as its process lives, so one
 * that can be locked by another has been left over. */
#include "cli/pull/header_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char name_begins[] = ".headers-";
enum { NAME_BYTES = sizeof ".headers-XXXXXX" - 1, MOST_TRIES = 8 };

/* Removes its files; folders within it are nobody's, and stay. */
static void empty(int folder)
{
    int listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = listed >= 0 ? fdopendir(listed) : NULL;
    if (!dir && listed >= 0)
        close(listed);
    for (struct dirent *e; dir && (e = readdir(dir));)
        unlinkat(folder, e->d_name, 0);
    if (dir)
        closedir(dir);
}

/* Opens and locks a folder. -1: it is no folder, or another process has it. */
static int lock(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat mine, there;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &mine) == 0 &&
        lstat(path, &there) == 0 && mine.st_dev == there.st_dev && mine.st_ino == there.st_ino)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void sweep(const char *folder)
{
    char path[PATH_MAX];
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        header_folder h;
        if (strncmp(e->d_name, name_begins, sizeof name_begins - 1) != 0 ||
            strlen(e->d_name) != NAME_BYTES ||
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= PATH_MAX)
            continue;
        h.fd = lock(path);
        snprintf(h.path, sizeof h.path, "%s", path);
        header_folder_close(&h);
    }
    if (dir)
        closedir(dir);
}

drey_status header_folder_open(header_folder *h, const char *folder, drey_error *err)
{
    h->fd = -1;
    sweep(folder);
    int reason = 0;
    /* Between making and locking it, another process may take it for a left-over. */
    for (int i = 0; h->fd < 0 && i < MOST_TRIES; i++) {
        if (snprintf(h->path, sizeof h->path, "%s/%sXXXXXX", folder, name_begins) >= PATH_MAX)
            FAIL(err, DREY_ERR_USAGE, "the path of the folder is too long");
        bool made = mkdtemp(h->path) != NULL;
        h->fd = made ? lock(h->path) : -1;
        reason = errno;
        if (made && h->fd < 0)
            rmdir(h->path);
    }
    if (h->fd < 0)
        FAIL(err, DREY_ERR_IO, "nothing can be written to %s: %s", SHOWN_PATH(folder),
             strerror(reason));
    return DREY_OK;
}

void header_folder_close(header_folder *h)
{
    if (h->fd < 0)
        return;
    empty(h->fd);
    rmdir(h->path);
    close(h->fd);
    h->fd = -1;
}
