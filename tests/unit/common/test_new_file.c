/* Files that appear whole or not at all: what the name has, and which other files are left, after
 * each way a writer can end. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/new_file.h"
#include "support/bytes_file.h"
#include "support/faults/child.h"
#include "support/scene.h"

static void holds(const char *path, const char *text)
{
    size_t n;
    uint8_t *got = bytes_file_read(path, &n);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(got, text, n);
    free(got);
}

static bool exists(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

static void write_text(new_file *f, const char *path, const char *text)
{
    MUST(new_file_open, f, path);
    MUST(new_file_reserve, f, strlen(text));
    MUST(new_file_write, f, 1, text + 1, strlen(text) - 1);
    MUST(new_file_write, f, 0, text, 1);
}

TEST(whole_or_not_at_all)
{
    const char *path = temp_path("file"), *partial = temp_path("file.partial");
    new_file f;
    write_text(&f, path, "one");
    assert_false(exists(path));
    assert_true(exists(partial));
    new_file_discard(&f);
    assert_false(exists(path) || exists(partial));
    new_file_discard(&f); /* nothing to do any more */

    write_text(&f, path, "one");
    MUST(new_file_commit, &f);
    holds(path, "one");
    assert_false(exists(partial));

    write_text(&f, path, "two");
    holds(path, "one");
    new_file_discard(&f);
    holds(path, "one");
    write_text(&f, path, "two");
    MUST(new_file_commit, &f);
    holds(path, "two");
}

TEST(takes_over_what_a_crash_left)
{
    const char *path = temp_path("file"), *partial = temp_path("file.partial");
    bytes_file_write(partial, "a longer text of a writer that is gone", 38);
    new_file f;
    write_text(&f, path, "new");
    MUST(new_file_commit, &f);
    holds(path, "new");
}

static void refuses(const char *path, const char *says)
{
    new_file f;
    REFUSED(DREY_ERR_IO, says, new_file_open, &f, path);
    assert_true(f.fd == -1 && !f.path && !f.partial);
}

TEST(what_is_refused)
{
    new_file f;
    write_text(&f, temp_path("file"), "one");
    refuses(temp_path("file"), "is being written by another process");
    assert_true(exists(temp_path("file.partial"))); /* the first writer's */
    new_file_discard(&f);
    refuses(temp_path("no/such/folder"), "No such file or directory; check the folder");
    assert_int_equal(mkdir(temp_path("folder.partial"), 0700), 0);
    refuses(temp_path("folder"), "Is a directory");
    bytes_file_write(temp_path("elsewhere"), "kept", 4);
    assert_int_equal(symlink(temp_path("elsewhere"), temp_path("link.partial")), 0);
    refuses(temp_path("link"), "cannot write");
    holds(temp_path("elsewhere"), "kept");
    assert_int_equal(mkdir(temp_path("taken"), 0700), 0);
    refuses(temp_path("taken"), "is a folder");
    assert_int_equal(mkfifo(temp_path("pipe"), 0600), 0);
    refuses(temp_path("pipe"), "is a device, a pipe or a socket");
    assert_false(exists(temp_path("pipe.partial")));
}

/* A link to a file on another disk stays a link. */
TEST(follows_links)
{
    bytes_file_write(temp_path("real"), "old", 3);
    assert_int_equal(symlink(temp_path("real"), temp_path("link")), 0);
    struct stat about;
    new_file f;
    write_text(&f, temp_path("link"), "new");
    MUST(new_file_commit, &f);
    holds(temp_path("real"), "new");
    assert_int_equal(lstat(temp_path("link"), &about), 0);
    assert_true(S_ISLNK(about.st_mode));
}

/* 40 MiB, so that several windows are pushed out; every MiB is filled with its number. */
TEST(large_files_are_complete)
{
    enum { MIB = 1 << 20, N = 40 };
    char *block = malloc(MIB);
    new_file f;
    uint64_t free_bytes = 0;
    MUST(new_file_open, &f, temp_path("large"));
    MUST(new_file_space, &f, &free_bytes);
    assert_true(free_bytes > 0);
    MUST(new_file_reserve, &f, (uint64_t)N * MIB);
    for (int i = 0; i < N; i++) {
        memset(block, i + 1, MIB);
        MUST(new_file_write, &f, (uint64_t)i * MIB, block, MIB);
    }
    MUST(new_file_commit, &f);
    FILE *in = fopen(temp_path("large"), "rb");
    assert_non_null(in);
    for (int i = 0; i < N; i++) {
        assert_int_equal(fread(block, 1, MIB, in), MIB);
        for (int j = 0; j < MIB; j += 511)
            assert_int_equal(block[j], i + 1);
    }
    assert_int_equal(fgetc(in), EOF);
    fclose(in);
    free(block);
}

/* Runs in a process that may write no more than 64 KiB to a file. */
static int beyond_the_limit(void *arg)
{
    struct rlimit limit = {65536, 65536};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 10;
    new_file f;
    drey_error err = {0};
    static char block[100000];
    if (new_file_open(&f, arg, &err) != DREY_OK)
        return 11;
    if (new_file_reserve(&f, sizeof block, &err) == DREY_OK)
        return 12;
    if (new_file_write(&f, 0, block, sizeof block, &err) != DREY_ERR_IO)
        return 13;
    new_file_discard(&f);
    return strstr(err.message, "cannot write") && err.hint == DREY_HINT_OUTPUT ? 0 : 14;
}

TEST(a_file_that_may_not_grow)
{
    char path[512];
    snprintf(path, sizeof path, "%s", temp_path("file"));
    assert_int_equal(child_run(beyond_the_limit, path), 0);
    assert_false(exists(temp_path("file")) || exists(temp_path("file.partial")));
}
