/* A bounded folder of files: see kept_files.h. */
#include "os/kept_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/num.h"

enum { NAME_BYTES = 48, PIECE_BYTES = 1 << 20 };
static const char ending[] = ".kept", growing[] = ".keep";

static void name_of(char out[NAME_BYTES], uint64_t group, uint64_t key, const char *end)
{
    if (group)
        snprintf(out, NAME_BYTES, "%016" PRIx64 "-%016" PRIx64 "%s", group, key, end);
    else
        snprintf(out, NAME_BYTES, "%016" PRIx64 "%s", key, end);
}

/* Returns whether name_of makes such names. */
static bool is_named(const char *name, const char *end, uint64_t *group, uint64_t *key)
{
    char again[NAME_BYTES];
    char *rest;
    *group = 0;
    *key = strtoull(name, &rest, 16);
    if (*rest == '-') {
        *group = *key;
        *key = strtoull(rest + 1, NULL, 16);
    }
    name_of(again, *group, *key, end);
    return strcmp(name, again) == 0;
}

/* ---- The list ---- */

static int32_t find(const kept_files *k, uint64_t key)
{
    for (int32_t i = 0; i < k->n; i++)
        if (k->file[i].key == key)
            return i;
    return -1;
}

static void forget(kept_files *k, int32_t at)
{
    char name[NAME_BYTES];
    name_of(name, k->file[at].group, k->file[at].key, ending);
    unlinkat(k->fd, name, 0);
    k->n_bytes -= k->file[at].n_bytes;
    k->file[at] = k->file[--k->n];
}

static bool fits(const kept_files *k, uint64_t n_bytes)
{
    return k->n < k->max && k->n_bytes + n_bytes <= k->max_bytes;
}

/* Removes files that were used before `used`, the oldest first, until one more of n_bytes fits. */
static void make_room(kept_files *k, uint64_t n_bytes, int64_t used)
{
    while (k->n > 0 && !fits(k, n_bytes)) {
        int32_t oldest = 0;
        for (int32_t i = 1; i < k->n; i++)
            if (k->file[i].used < k->file[oldest].used)
                oldest = i;
        if (k->file[oldest].used >= used)
            return;
        forget(k, oldest);
    }
}

static void add(kept_files *k, const kept_file *file)
{
    k->file[k->n++] = *file;
    k->n_bytes += file->n_bytes;
}

size_t kept_files_memory(int32_t max_files)
{
    return arena_size((size_t)max_files * sizeof(kept_file));
}

/* ---- Opening ---- */

/* Returns the time of a file in nanoseconds. Impossible dates become the nearest one that leaves
 * room for counting uses. */
static int64_t time_of(const struct stat *about)
{
    const int64_t most_s = INT64_MAX / 1000000000 - 1;
    int64_t s = min_i64(max_i64(about->st_mtim.tv_sec, 0), most_s);
    return s * 1000000000 + about->st_mtim.tv_nsec;
}

static void look_at(kept_files *k, const char *name)
{
    struct stat about;
    uint64_t group, key;
    if (is_named(name, growing, &group, &key)) /* whose writer has ended */
        unlinkat(k->fd, name, 0);
    if (!is_named(name, ending, &group, &key) ||
        fstatat(k->fd, name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode))
        return;
    int64_t used = time_of(&about);
    uint64_t n_bytes = (uint64_t)about.st_size;
    if (n_bytes <= k->max_bytes)
        make_room(k, n_bytes, used);
    if (fits(k, n_bytes))
        add(k, &(kept_file){key, group, n_bytes, used});
    else
        unlinkat(k->fd, name, 0);
    k->now = max_i64(k->now, used);
}

static bool scan(kept_files *k)
{
    int fd = openat(k->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    for (struct dirent *at; (at = readdir(dir));)
        look_at(k, at->d_name);
    closedir(dir);
    return true;
}

drey_status kept_files_open(kept_files *k, const char *folder, uint64_t max_bytes,
                            int32_t max_files, arena *a, drey_error *err)
{
    *k = (kept_files){.fd = -1, .max = max_files, .max_bytes = max_bytes};
    k->file = arena_take(a, (size_t)max_files * sizeof *k->file);
    TRY(arena_check(a, err));
    if (mkdir(folder, 0700) == 0 || errno == EEXIST)
        k->fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (k->fd < 0)
        FAIL(err, DREY_ERR_IO, "cannot keep files in %s: %s; name another folder",
             SHOWN_PATH(folder), strerror(errno));
    bool busy = flock(k->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!busy && faccessat(k->fd, ".", W_OK | X_OK, 0) == 0 && scan(k))
        return DREY_OK;
    int reason = errno;
    kept_files_close(k);
    if (busy)
        FAIL(err, DREY_ERR_IO, "%s is in use by another process; name another folder",
             SHOWN_PATH(folder));
    FAIL(err, DREY_ERR_IO, "cannot keep files in %s: %s; name another folder", SHOWN_PATH(folder),
         strerror(reason));
}

void kept_files_close(kept_files *k)
{
    if (k->fd >= 0)
        close(k->fd);
    *k = (kept_files){.fd = -1};
}

/* ---- Files ---- */

bool kept_files_has(const kept_files *k, uint64_t key)
{
    return find(k, key) >= 0;
}

bool kept_files_next(const kept_files *k, uint64_t group, int32_t *at, uint64_t *key)
{
    while (*at < k->n && k->file[*at].group != group)
        ++*at;
    if (*at >= k->n)
        return false;
    *key = k->file[(*at)++].key;
    return true;
}

void kept_files_drop(kept_files *k, uint64_t key)
{
    int32_t at = find(k, key);
    if (at >= 0)
        forget(k, at);
}

/* Nothing must stay in the page cache, which counts as this process's memory. */
static void let_go(int fd)
{
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static bool put(int fd, const kept_part *part)
{
    const uint8_t *from = part->bytes;
    for (size_t left = part->n; left > 0;) {
        ssize_t n = write(fd, from, min_size(left, PIECE_BYTES));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        from += n;
        left -= (size_t)n;
        sync_file_range(fd, 0, 0,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER);
        let_go(fd);
    }
    return true;
}

static bool take(int fd, const kept_part *part)
{
    uint8_t *to = part->bytes;
    for (size_t left = part->n; left > 0;) {
        ssize_t n = read(fd, to, min_size(left, PIECE_BYTES));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        to += n;
        left -= (size_t)n;
        let_go(fd);
    }
    return true;
}

static uint64_t bytes_of(const kept_part *parts, int n_parts)
{
    uint64_t n = 0;
    for (int i = 0; i < n_parts; i++)
        n += parts[i].n;
    return n;
}

static int open_file(const kept_files *k, const char *name, int flags)
{
    int fd;
    do
        fd = openat(k->fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* -1: it is no file, or has not that many bytes. */
static int open_kept(const kept_files *k, int32_t at, uint64_t least, uint64_t most)
{
    char name[NAME_BYTES];
    struct stat about;
    name_of(name, k->file[at].group, k->file[at].key, ending);
    int fd = open_file(k, name, O_RDONLY);
    if (fd < 0)
        return -1;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && (uint64_t)about.st_size >= least &&
        (uint64_t)about.st_size <= most) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* no read-ahead: it would not be dropped */
        return fd;
    }
    close(fd);
    return -1;
}

static bool take_parts(int fd, const kept_part *parts, int n_parts)
{
    bool good = fd >= 0;
    for (int i = 0; i < n_parts && good; i++)
        good = take(fd, &parts[i]);
    return good;
}

bool kept_files_peek(const kept_files *k, uint64_t key, const kept_part *parts, int n_parts)
{
    int32_t at = find(k, key);
    int fd = at < 0 ? -1 : open_kept(k, at, bytes_of(parts, n_parts), UINT64_MAX);
    bool good = take_parts(fd, parts, n_parts);
    if (fd >= 0)
        close(fd);
    return good;
}

void kept_files_expect(const kept_files *k, uint64_t key)
{
    int32_t at = find(k, key);
    int fd = at < 0 ? -1 : open_kept(k, at, 1, UINT64_MAX);
    if (fd < 0)
        return;
    posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
    close(fd);
}

bool kept_files_read(kept_files *k, uint64_t key, const kept_part *parts, int n_parts)
{
    uint64_t n_bytes = bytes_of(parts, n_parts);
    int32_t at = find(k, key);
    if (at < 0)
        return false;
    int fd = open_kept(k, at, n_bytes, n_bytes);
    bool good = take_parts(fd, parts, n_parts);
    if (fd >= 0) {
        futimens(fd, NULL);
        close(fd);
    }
    if (good)
        k->file[at].used = ++k->now;
    else
        forget(k, at);
    return good;
}

bool kept_files_write(kept_files *k, uint64_t group, uint64_t key, const kept_part *parts,
                      int n_parts)
{
    char name[NAME_BYTES], grows[NAME_BYTES];
    uint64_t n_bytes = bytes_of(parts, n_parts);
    if (n_bytes > k->max_bytes || k->max == 0)
        return false;
    kept_files_drop(k, key);
    make_room(k, n_bytes, INT64_MAX);
    name_of(name, group, key, ending);
    name_of(grows, group, key, growing);
    int fd = open_file(k, grows, O_WRONLY | O_CREAT | O_TRUNC);
    bool good = fd >= 0;
    for (int i = 0; i < n_parts && good; i++)
        good = put(fd, &parts[i]);
    if (fd >= 0 && close(fd) != 0)
        good = false;
    good = good && renameat(k->fd, grows, k->fd, name) == 0;
    if (good)
        add(k, &(kept_file){key, group, n_bytes, ++k->now});
    else
        unlinkat(k->fd, grows, 0);
    return good;
}
