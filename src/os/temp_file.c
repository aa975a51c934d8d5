/* Files without a name: see temp_file.h. */
#include "os/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/size_text.h"
#include "os/file.h"

enum { TMPFS = 0x01021994, RAMFS = 0x858458f6u };

/* O_TMPFILE has been refused: a name that is taken back at once. */
static int open_named(const char *folder)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/drey-kv-XXXXXX", folder);
    if (n < 0 || n >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* Returns whether a write past the page cache succeeds; leaves the file as it finds it. */
static bool write_direct(int fd)
{
    void *block = aligned_alloc(TEMP_FILE_ALIGN, TEMP_FILE_ALIGN);
    int flags = fcntl(fd, F_GETFL);
    bool works = block && flags >= 0 && fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
    if (works) {
        memset(block, 0, TEMP_FILE_ALIGN);
        ssize_t n = pwrite(fd, block, TEMP_FILE_ALIGN, 0);
        works = n == TEMP_FILE_ALIGN || (n < 0 && errno != EINVAL && errno != EOPNOTSUPP);
        if (!works)
            fcntl(fd, F_SETFL, flags);
    }
    free(block);
    return works;
}

static drey_status check_folder(const char *folder, bool may_be_memory, drey_error *err)
{
    struct statfs about;
    if (statfs(folder, &about) != 0)
        FAIL(err, DREY_ERR_IO, "cannot use the folder %s: %s; check its name and permissions",
             SHOWN_PATH(folder), strerror(errno));
    bool memory = (uint64_t)about.f_type == TMPFS || (uint64_t)about.f_type == RAMFS;
    if (memory && !may_be_memory)
        FAIL(err, DREY_ERR_IO,
             "%s is in memory (tmpfs), so that keeping something there would free none; name a "
             "folder on a disk",
             SHOWN_PATH(folder));
    return DREY_OK;
}

drey_status temp_file_open(temp_file *f, const char *folder, bool may_be_memory, uint64_t n_bytes,
                           drey_error *err)
{
    *f = (temp_file){.fd = -1};
    TRY(check_folder(folder, may_be_memory, err));
    f->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (f->fd < 0)
        f->fd = open_named(folder);
    if (f->fd < 0)
        FAIL(err, DREY_ERR_IO, "cannot make a file in %s: %s; name a folder that may be written to",
             SHOWN_PATH(folder), strerror(errno));
    if (ftruncate(f->fd, (off_t)n_bytes) != 0) {
        int why = errno;
        temp_file_close(f);
        FAIL(err, DREY_ERR_IO, "cannot make a file of %s in %s: %s; name another folder",
             SIZE_TEXT(n_bytes), SHOWN_PATH(folder), strerror(why));
    }
    f->direct = write_direct(f->fd);
    snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
    return DREY_OK;
}

void temp_file_close(temp_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

int temp_file_write(const temp_file *f, uint64_t offset, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;
    file_patience patience = {0};
    for (size_t done = 0; done < n;) {
        ssize_t got = pwrite(f->fd, from + done, n - done, (off_t)(offset + done));
        if (got > 0) {
            done += (size_t)got;
            patience = (file_patience){0};
        } else if (!file_try_again(&patience, got ? errno : ENOSPC)) {
            return got ? errno : ENOSPC;
        }
    }
    if (f->direct)
        return 0;
    if (fdatasync(f->fd) != 0)
        return errno;
    posix_fadvise(f->fd, (off_t)offset, (off_t)n, POSIX_FADV_DONTNEED);
    return 0;
}
