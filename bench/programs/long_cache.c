/* Times passes after a long context that nothing computed, whose first positions may be in a file:
 * what they read, how busy the disk was, and the memory that all of it took.
 *
 *   long_cache MODEL.gguf FOLDER POSITIONS MEMORY_MIB [THREADS] */
#include "os/clock.h"
#include "os/memory.h"
#include "session/session.h"
#include "state/cache.h"
#include "state/kv.h"
#include "support/scene.h"

enum { MOST_ROWS = 8 };

static drey_session *open_session(drey_model **m, char **argv, int32_t n, int32_t n_threads)
{
    drey_settle_memory();
    MUST(drey_model_open, m, argv[1]);
    drey_engine_options o = plain_options(*m, n + MOST_ROWS + 1, n_threads);
    o.memory_bytes = strtoull(argv[4], NULL, 10) << 20;
    o.kv_folder = argv[2];
    return open_alone(&o, NULL);
}

/* A chain after what is committed, which is forgotten again. */
static void time_pass(drey_session *s, int32_t n_rows)
{
    pass_row rows[MOST_ROWS];
    stream_counters before, after;
    const kv_file *f = &s->engine->target.kv_file;
    for (int32_t i = 0; i < n_rows; i++)
        rows[i] = (pass_row){.token = 100 + i, .parent = i - 1};
    kv_file_count(f, &before);
    int64_t start = clock_ns();
    MUST(pass_rows, &s->target, rows, n_rows, HEAD_LAST);
    double pass_s = (double)(clock_ns() - start) * 1e-9;
    kv_file_count(f, &after);
    cache_drop(&s->target_cache);
    printf("%d rows: %.2f s, read %.0f MB in %.2f s\n", n_rows, pass_s,
           (double)(after.read_bytes - before.read_bytes) * 1e-6,
           (double)(after.busy_ns - before.busy_ns) * 1e-9);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: %s MODEL.gguf FOLDER POSITIONS MEMORY_MIB [THREADS]\n", argv[0]);
        return 2;
    }
    drey_model *m = NULL;
    int32_t n = (int32_t)strtol(argv[3], NULL, 10);
    drey_session *s = open_session(&m, argv, n, argc > 5 ? (int32_t)strtol(argv[5], NULL, 10) : 2);
    time_pass(s, 1); /* brings the weights */
    MUST(cache_make_up, &s->target_cache, n);
    printf("%d positions, a window of %d, %d in the file, %.0f MB written\n", n,
           s->engine->plan.window, kv_of(&s->target_cache)->n_disk,
           (double)s->engine->target.kv_file.written_bytes * 1e-6);
    for (int i = 0; i < 6; i++)
        time_pass(s, i == 3 || i == 5 ? MOST_ROWS : 1);
    printf("peak %.0f MiB\n", (double)memory_resident_peak() / (1 << 20));
    close_alone(&s);
    drey_model_close(&m);
    return 0;
}
