/* The failing disk that command-line tests preload (shim/fault_shim.c) does what it says to this
 * program's own stream: the test starts itself again with the shim. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/bytes_file.h"
#include "support/faults/child.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "weights/stream.h"

enum { PIECE_BYTES = 200000, N_PIECES = 8, FILE_BYTES = PIECE_BYTES * N_PIECES };

/* What the second self found. */
enum { ALL_READ = 10, TOLD_ERROR, TOLD_SHORTER, WRONG };

typedef struct setting {
    const char *file, *kind, *after;
} setting;

/* Reads the whole file twice over by the stream, in pread mode. */
static int read_all(const char *path)
{
    stream_piece pieces[N_PIECES];
    for (uint32_t i = 0; i < N_PIECES; i++)
        pieces[i] = (stream_piece){.n_bytes = PIECE_BYTES, .offset = (uint64_t)i * PIECE_BYTES};
    stream_options options = {.paths = &path,
                              .n_paths = 1,
                              .cycle = pieces,
                              .n_cycle = N_PIECES,
                              .ring_bytes = 2 * STREAM_ROOM_BYTES(PIECE_BYTES),
                              .io = DREY_IO_PREAD};
    if (posix_memalign(&options.ring, 4096, options.ring_bytes) != 0)
        return WRONG;
    stream *s = NULL;
    drey_error err = {0};
    if (stream_open(&s, &options, &err) != DREY_OK)
        return WRONG;
    int64_t seq = 0;
    for (const uint8_t *at; seq < 2 * N_PIECES && (at = stream_wait(s, seq)); seq++) {
        for (uint32_t i = 0; i < PIECE_BYTES; i++) /* each byte tells its piece */
            if (at[i] != (uint8_t)(seq % N_PIECES + 1))
                return WRONG;
        stream_release(s, seq);
    }
    drey_status status = stream_status(s, &err);
    stream_close(&s);
    free(options.ring);
    if (status == DREY_OK)
        return seq == 2 * N_PIECES ? ALL_READ : WRONG;
    if (strstr(err.message, "Input/output error"))
        return TOLD_ERROR;
    return strstr(err.message, "has become shorter") ? TOLD_SHORTER : WRONG;
}

static int start_again(void *arg)
{
    const setting *s = arg;
    /* Apart, since LD_PRELOAD ends a name at a blank and the build folder's may have one. */
    setenv("LD_LIBRARY_PATH", FAULT_SHIM_FOLDER, 1);
    setenv("LD_PRELOAD", FAULT_SHIM_NAME, 1);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
    setenv("FAULT_FILE", s->file, 1);
    setenv("FAULT_KIND", s->kind, 1);
    setenv("FAULT_AFTER", s->after, 1);
    setenv("FAULT_READ", temp_path("weights.bin"), 1);
    execl("/proc/self/exe", "again", (char *)NULL);
    return 1;
}

static int verdict(const char *name, const char *kind, const char *after)
{
    return child_run(start_again, &(setting){name, kind, after});
}

TEST(each_fault_arrives)
{
    assert_int_equal(verdict("weights.bin", "eio", "500000"), TOLD_ERROR);
    assert_int_equal(verdict("weights.bin", "eio", ""), TOLD_ERROR);
    assert_int_equal(verdict("weights.bin", "end", "2000000"), TOLD_SHORTER);
    assert_int_equal(verdict("weights.bin", "short", "0"), ALL_READ);
    assert_int_equal(verdict("weights.bin", "interrupt", "0"), ALL_READ);
    assert_int_equal(verdict("weights.bin", "delay", "0"), ALL_READ);
}

TEST(other_files_are_left_alone)
{
    assert_int_equal(verdict("another.bin", "eio", "0"), ALL_READ);
    assert_int_equal(verdict("", "eio", "0"), ALL_READ);
    assert_int_equal(verdict("weights.bin", "eio", "99999999"), ALL_READ);
}

static int make_file(void **state)
{
    if (getenv("FAULT_READ")) /* the second self */
        _exit(read_all(getenv("FAULT_READ")));
    uint8_t *bytes = malloc(FILE_BYTES);
    for (int i = 0; i < N_PIECES; i++)
        memset(bytes + i * PIECE_BYTES, i + 1, PIECE_BYTES);
    bytes_file_write(temp_path("weights.bin"), bytes, FILE_BYTES);
    free(bytes);
    return 0;
}

TEST_GROUP(make_file, temp_dir_tear_down)
