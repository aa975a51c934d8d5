/* A bounded folder: what is written comes back, the oldest goes, and what is not whole is
 * nothing. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/kept_files.h"
#include "support/bytes_file.h"
#include "support/scene.h"

enum { N_BYTES = 3000 };

typedef struct folder {
    kept_files files;
    arena memory;
} folder;

static void open_folder(folder *f, const char *name, uint64_t most_bytes, int32_t most_files)
{
    MUST(arena_init, &f->memory, kept_files_memory(most_files), false);
    MUST(kept_files_open, &f->files, temp_path(name), most_bytes, most_files, &f->memory);
}

static void close_folder(folder *f)
{
    kept_files_close(&f->files);
    arena_free(&f->memory);
}

static uint8_t content[N_BYTES], got[N_BYTES];

static bool put(folder *f, uint64_t key)
{
    memset(content, (int)key, sizeof content);
    const kept_part parts[] = {{content, 10}, {content + 10, N_BYTES - 10}};
    return kept_files_write(&f->files, 0, key, parts, 2);
}

static bool get(folder *f, uint64_t key)
{
    const kept_part parts[] = {{got, N_BYTES - 1}, {got + N_BYTES - 1, 1}};
    memset(got, 0, sizeof got);
    if (!kept_files_read(&f->files, key, parts, 2))
        return false;
    memset(content, (int)key, sizeof content);
    assert_memory_equal(got, content, sizeof got);
    return true;
}

static bool is_there(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

TEST(test_oldest_goes)
{
    folder f;
    open_folder(&f, "a", 3 * N_BYTES + 100, 10);
    for (uint64_t key = 1; key <= 3; key++)
        assert_true(put(&f, key));
    assert_true(get(&f, 1)); /* 2 is the oldest now */
    assert_true(put(&f, 4));
    assert_false(kept_files_has(&f.files, 2) || get(&f, 2));
    assert_true(get(&f, 1) && get(&f, 3) && get(&f, 4));
    assert_int_equal(f.files.n_bytes, 3 * N_BYTES);
    assert_true(put(&f, 4)); /* again: in its place */
    assert_int_equal(f.files.n, 3);
    kept_files_drop(&f.files, 3);
    kept_files_drop(&f.files, 77);
    assert_false(is_there(temp_path("a/0000000000000003.kept")));
    assert_int_equal(f.files.n_bytes, 2 * N_BYTES);
    close_folder(&f);
    open_folder(&f, "b", 10 * N_BYTES, 2); /* few files */
    for (uint64_t key = 1; key <= 3; key++)
        assert_true(put(&f, key));
    assert_true(f.files.n == 2 && !kept_files_has(&f.files, 1));
    close_folder(&f);
    open_folder(&f, "c", N_BYTES - 1, 2); /* too small for any */
    assert_false(put(&f, 1));
    assert_int_equal(f.files.n, 0);
    close_folder(&f);
}

TEST(test_opened_again)
{
    folder f;
    open_folder(&f, "d", 10 * N_BYTES, 10);
    for (uint64_t key = 1; key <= 3; key++)
        assert_true(put(&f, key));
    close_folder(&f);
    /* As old as the clock says: 3, 1, 2. */
    for (int key = 1; key <= 3; key++) {
        char name[40];
        snprintf(name, sizeof name, "d/%016x.kept", key);
        struct timespec times[2] = {{.tv_sec = 1000 + key % 3}, {.tv_sec = 1000 + key % 3}};
        assert_int_equal(utimensat(AT_FDCWD, temp_path(name), times, 0), 0);
    }
    bytes_file_write(temp_path("d/0000000000000009.keep"), "half", 4);
    bytes_file_write(temp_path("d/notes.txt"), "mine", 4);
    bytes_file_write(temp_path("d/12.kept"), "mine", 4);
    open_folder(&f, "d", 2 * N_BYTES, 10); /* less room than before */
    assert_int_equal(f.files.n, 2);
    assert_false(get(&f, 3));
    assert_true(get(&f, 2) && get(&f, 1));
    assert_false(is_there(temp_path("d/0000000000000009.keep")));
    assert_true(is_there(temp_path("d/notes.txt")) && is_there(temp_path("d/12.kept")));
    bytes_file_write(temp_path("d/0000000000000001.kept"), "short", 5);
    assert_false(get(&f, 1) || kept_files_has(&f.files, 1));
    assert_false(is_there(temp_path("d/0000000000000001.kept")));
    close_folder(&f);
}

/* The youngest stays, in whatever order the folder names its files; also one that is dated as no
 * clock should say. */
TEST(test_youngest_stays)
{
    for (int young = 1; young <= 3; young++) {
        folder f;
        open_folder(&f, "y", 10 * N_BYTES, 10);
        for (int key = 1; key <= 3; key++) {
            char name[40];
            snprintf(name, sizeof name, "y/%016x.kept", key);
            int64_t s = key == young ? 15000000000 : 1000; /* the year 2445 */
            struct timespec times[2] = {{.tv_sec = s}, {.tv_sec = s}};
            assert_true(put(&f, (uint64_t)key));
            assert_int_equal(utimensat(AT_FDCWD, temp_path(name), times, 0), 0);
        }
        close_folder(&f);
        open_folder(&f, "y", N_BYTES, 10);
        assert_true(f.files.n == 1 && get(&f, (uint64_t)young));
        assert_true(put(&f, 4) && get(&f, 4)); /* what comes is younger still */
        assert_false(kept_files_has(&f.files, (uint64_t)young));
        close_folder(&f);
    }
}

TEST(test_one_at_a_time)
{
    folder f;
    kept_files second;
    arena memory;
    open_folder(&f, "e", 10 * N_BYTES, 10);
    MUST(arena_init, &memory, kept_files_memory(10), false);
    REFUSED(DREY_ERR_IO, "another process", kept_files_open, &second, temp_path("e"), 1000, 10,
            &memory);
    bytes_file_write(temp_path("file"), "x", 1);
    REFUSED(DREY_ERR_IO, "", kept_files_open, &second, temp_path("file"), 1000, 10, &memory);
    REFUSED(DREY_ERR_IO, "", kept_files_open, &second, temp_path("no/such"), 1000, 10, &memory);
    kept_files_close(&second);
    arena_free(&memory);
    close_folder(&f);
}
