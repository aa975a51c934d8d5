/* Atomic creation of large files: see new_file.h. */
#include "common/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/path.h"
#include "common/size_text.h"

enum { WINDOW_BYTES = 8 << 20, TAKE_OVERS = 8 };

static drey_status write_failed(const new_file *f, int reason, drey_error *err)
{
    if (reason == ENOSPC || reason == EDQUOT)
        FAIL_HINT(err, DREY_ERR_IO, DREY_HINT_OUTPUT,
                  "the disk of %s is full; free some space there, or name another place",
                  SHOWN_PATH(f->path));
    FAIL_HINT(err, DREY_ERR_IO, DREY_HINT_OUTPUT,
              "cannot write %s: %s; check the folder, its rights and its disk, or name another "
              "place",
              SHOWN_PATH(f->path), strerror(reason));
}

/* Refuses a name that belongs to something else than a file: renaming would replace a device. */
static drey_status check_place(const new_file *f, drey_error *err)
{
    struct stat there;
    if (stat(f->path, &there) != 0 || S_ISREG(there.st_mode))
        return DREY_OK;
    FAIL_HINT(err, DREY_ERR_IO, DREY_HINT_OUTPUT,
              "%s is %s, which a file cannot take the place of; name another", SHOWN_PATH(f->path),
              S_ISDIR(there.st_mode) ? "a folder" : "a device, a pipe or a socket");
}

/* Opens the .partial file and locks it. The previous writer may have renamed it in between: then
 * the locked file is no longer there, and it is tried again. Returns 0 or an errno. */
static int open_locked(new_file *f)
{
    for (int i = 0; i < TAKE_OVERS; i++) {
        f->fd = open(f->partial, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (f->fd < 0)
            return errno;
        struct stat mine, there;
        if (flock(f->fd, LOCK_EX | LOCK_NB) != 0 || fstat(f->fd, &mine) != 0) {
            int reason = errno;
            close(f->fd);
            f->fd = -1;
            return reason;
        }
        if (S_ISREG(mine.st_mode) && lstat(f->partial, &there) == 0 &&
            mine.st_dev == there.st_dev && mine.st_ino == there.st_ino)
            return 0;
        close(f->fd);
        f->fd = -1;
        if (!S_ISREG(mine.st_mode))
            return EINVAL;
    }
    return EWOULDBLOCK;
}

/* The target of a link, or the path itself if nothing exists yet. */
static char *real_path(const char *path)
{
    char *real = realpath(path, NULL);
    return real ? real : strdup(path);
}

static char *path_of_unfinished(const char *path, const char *ending)
{
    char *real = real_path(path);
    char *unfinished = real ? path_with(real, ending) : NULL;
    free(real);
    return unfinished;
}

char *new_file_partial(const char *path)
{
    return path_of_unfinished(path, ".partial");
}

static drey_status open_unfinished(new_file *f, const char *path, const char *ending, bool keeps,
                                   drey_error *err)
{
    *f = (new_file){.fd = -1,
                    .keeps = keeps,
                    .path = real_path(path),
                    .partial = path_of_unfinished(path, ending)};
    if (!f->path || !f->partial) {
        new_file_discard(f);
        FAIL(err, DREY_ERR_MEMORY, "no memory to write %s", SHOWN_PATH(path));
    }
    drey_status status = check_place(f, err);
    if (status != DREY_OK) {
        new_file_discard(f);
        return status;
    }
    int reason = open_locked(f);
    if (reason == 0 && !keeps && ftruncate(f->fd, 0) != 0)
        reason = errno;
    if (reason == 0)
        return DREY_OK;
    status =
        reason == EWOULDBLOCK
            ? error_set(err, DREY_ERR_IO, "%s is being written by another process; wait for it",
                        SHOWN_PATH(f->path))
            : write_failed(f, reason, err);
    new_file_discard(f);
    return status;
}

drey_status new_file_open(new_file *f, const char *path, drey_error *err)
{
    return open_unfinished(f, path, ".partial", false, err);
}

drey_status new_file_resume(new_file *f, const char *path, const char *ending, drey_error *err)
{
    return open_unfinished(f, path, ending, true, err);
}

drey_status new_file_space(const new_file *f, uint64_t *free_bytes, drey_error *err)
{
    struct statvfs about;
    if (fstatvfs(f->fd, &about) != 0)
        return write_failed(f, errno, err);
    *free_bytes = (uint64_t)about.f_bavail * about.f_frsize;
    return DREY_OK;
}

drey_status new_file_check_room(const new_file *f, uint64_t n_bytes, uint64_t free_bytes,
                                drey_error *err)
{
    if (n_bytes > free_bytes)
        FAIL_HINT(err, DREY_ERR_IO, DREY_HINT_OUTPUT,
                  "%s needs %s and its disk has %s free; free some space there, or name "
                  "another place",
                  SHOWN_PATH(f->path), SIZE_TEXT(n_bytes), SIZE_TEXT(free_bytes));
    return DREY_OK;
}

drey_status new_file_reserve(new_file *f, uint64_t n_bytes, drey_error *err)
{
    int result;
    do
        result = fallocate(f->fd, 0, 0, (off_t)n_bytes);
    while (result != 0 && errno == EINTR);
    if (result != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        return write_failed(f, errno, err);
    if (ftruncate(f->fd, (off_t)n_bytes) != 0) /* a file system that cannot reserve */
        return write_failed(f, errno, err);
    return DREY_OK;
}

/* Two windows: when one has been started, the one before it is waited for and dropped from the page
 * cache. Failures are ignored here because fsync reports them as well. */
static void push_out(new_file *f, uint64_t end)
{
    if (end < f->begun + WINDOW_BYTES)
        return;
    sync_file_range(f->fd, (off_t)f->begun, (off_t)(end - f->begun), SYNC_FILE_RANGE_WRITE);
    if (f->begun > f->dropped) {
        off_t from = (off_t)f->dropped, n = (off_t)(f->begun - f->dropped);
        sync_file_range(f->fd, from, n,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER);
        posix_fadvise(f->fd, from, n, POSIX_FADV_DONTNEED);
    }
    f->dropped = f->begun;
    f->begun = end;
}

drey_status new_file_write(new_file *f, uint64_t offset, const void *bytes, size_t n,
                           drey_error *err)
{
    const uint8_t *from = bytes;
    while (n > 0) {
        ssize_t put = pwrite(f->fd, from, n, (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return write_failed(f, put < 0 ? errno : EIO, err);
        from += put;
        offset += (uint64_t)put;
        n -= (size_t)put;
    }
    push_out(f, offset);
    return DREY_OK;
}

/* Writes the new name to the disk as well. A folder that cannot be synchronised is not an error:
 * the file is complete in any case. */
static void sync_folder(const char *path)
{
    size_t n = path_folder_bytes(path);
    char *folder = n ? strndup(path, n) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(folder);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

static void forget(new_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f->partial);
    *f = (new_file){.fd = -1};
}

drey_status new_file_commit(new_file *f, drey_error *err)
{
    int result;
    do
        result = fsync(f->fd);
    while (result != 0 && errno == EINTR);
    if (result != 0 || rename(f->partial, f->path) != 0) {
        drey_status status = write_failed(f, errno, err);
        new_file_discard(f);
        return status;
    }
    sync_folder(f->path);
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
    forget(f);
    return DREY_OK;
}

void new_file_discard(new_file *f)
{
    if (f->fd >= 0 && !f->keeps)
        unlink(f->partial);
    forget(f);
}

drey_status new_file_end(new_file *f, drey_status status, drey_error *err)
{
    if (status == DREY_OK)
        return new_file_commit(f, err);
    new_file_discard(f);
    return status;
}

drey_status new_file_check(const char *path, drey_error *err)
{
    new_file f;
    TRY(new_file_open(&f, path, err));
    new_file_discard(&f);
    return DREY_OK;
}

void new_file_make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
}
