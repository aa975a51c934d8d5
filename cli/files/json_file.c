/* JSON files: see json_file.h. */
#include "cli/files/json_file.h"
#include "drey/drey_engine.h"

#include "common/new_file.h"
#include "common/path.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- Writing ---- */

/* The folder of path, with its last slash; "./" for none. NULL if memory is short. */
static char *folder_of(const char *path)
{
    size_t n = path_folder_bytes(path);
    return n ? strndup(path, n) : strdup("./");
}

static bool is_special(const char *path)
{
    struct stat info;
    return strcmp(path, "-") == 0 || (stat(path, &info) == 0 && !S_ISREG(info.st_mode));
}

/* Returns whether a file begins as models, side files or sidecars do: nobody means to replace one
 * by some numbers. */
static bool is_model(const char *path)
{
    char front[8] = "";
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    bool is_one = fread(front, 1, sizeof front, file) == sizeof front &&
                  (memcmp(front, "GGUF", 4) == 0 || memcmp(front, "dreyside", 8) == 0);
    fclose(file);
    return is_one;
}

drey_status json_check_path(const char *path, drey_error *err)
{
    struct stat info;
    if (!path)
        return DREY_OK;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        FAIL(err, DREY_ERR_IO, "cannot write %s: it is a folder", path);
    if (is_special(path))
        return DREY_OK;
    if (is_model(path))
        FAIL(err, DREY_ERR_USAGE, "%s is a model, or belongs to one; name another file", path);
    char *folder = folder_of(path);
    if (!folder)
        FAIL(err, DREY_ERR_MEMORY, "out of memory");
    drey_status status = DREY_OK;
    if (access(folder, W_OK | X_OK) != 0)
        status =
            error_set(err, DREY_ERR_IO, "cannot write %s: %s: %s", path, folder, strerror(errno));
    free(folder);
    return status;
}

/* Writes and closes file. */
static bool fill(FILE *file, file_put_fn *put, void *user)
{
    bool good = put(file, user) && !ferror(file) && fflush(file) == 0;
    int error = errno;
    if (file != stdout && fclose(file) != 0 && good)
        return false;
    errno = good ? 0 : error;
    return good;
}

static bool write_in_place(const char *path, file_put_fn *put, void *user)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    return file && fill(file, put, user);
}

/* Fails, without a message where nobody reads the pipe any more. */
static drey_status cannot_write(const char *path, drey_error *err)
{
    bool is_output = strcmp(path, "-") == 0;
    if (is_output && errno == EPIPE) /* as after "| head" */
        return error_set(err, DREY_ERR_IO, "%s", "");
    FAIL(err, DREY_ERR_IO, "cannot write %s: %s", is_output ? "to standard output" : path,
         strerror(errno));
}

static drey_status replace_file(const char *path, file_put_fn *put, void *user, drey_error *err)
{
    new_file fresh;
    TRY(new_file_open(&fresh, path, err));
    FILE *file = fdopen(dup(fresh.fd), "w");
    if (file && fill(file, put, user))
        return new_file_commit(&fresh, err);
    drey_status status = cannot_write(path, err);
    new_file_discard(&fresh);
    return status;
}

drey_status file_write(const char *path, file_put_fn *put, void *user, drey_error *err)
{
    if (is_special(path))
        return write_in_place(path, put, user) ? DREY_OK : cannot_write(path, err);
    drey_status status = replace_file(path, put, user, err);
    if (err)
        err->hint = DREY_HINT_NONE; /* which file it is, the caller knows */
    return status;
}

static bool put_line(FILE *file, void *text)
{
    return fputs(text, file) != EOF && putc('\n', file) != EOF;
}

/* text and a newline. NULL: memory was short while it was built. */
static drey_status text_write(const char *path, const char *text, drey_error *err)
{
    if (!text)
        FAIL(err, DREY_ERR_MEMORY, "out of memory while writing %s", path);
    return file_write(path, put_line, (void *)(uintptr_t)text, err);
}

drey_status json_write(const char *path, json_buffer *b, drey_error *err)
{
    char *text = json_buffer_end(b);
    drey_status status = text_write(path, text, err);
    free(text);
    return status;
}

/* ---- Contents ---- */

json_writer *json_report_begin(json_buffer *b)
{
    json_writer *w = json_buffer_begin(b);
    struct utsname system = {0};
    char cpu[200];
    cpu_set_t cores;
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof cores, &cores);
    uname(&system);
    drey_cpu_name(cpu, sizeof cpu);
    json_put_text(w, "version", drey_version());
    json_put_object(w, "machine");
    json_put_text(w, "cpu", cpu);
    json_put_number(w, "cores", CPU_COUNT(&cores));
    json_put_text(w, "architecture", system.machine);
    json_put_text(w, "kernel", system.release);
    json_put_number(w, "memory_bytes",
                    (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE));
    json_close(w, '}');
    return w;
}

/* Adds the format of the caches, and whether that is lossy. */
static void add_kv(json_writer *w, drey_kv kv)
{
    json_put_text(w, "kv", drey_kv_name(kv));
    json_put_bool(w, "kv_lossy", kv == DREY_KV_Q8_0);
}

static void add_budget(json_writer *w, uint64_t bytes)
{
    if (bytes == DREY_MEMORY_UNLIMITED)
        json_put_text(w, "budget_bytes", NULL);
    else
        json_put_number(w, "budget_bytes", (double)bytes);
}

void json_plan(json_writer *w, const drey_plan *p)
{
    add_budget(w, p->budget_bytes);
    JSON_PUT_EACH(
        w, JSON_OF(p, smallest_budget_bytes), JSON_OF(p, target_bytes), JSON_OF(p, pinned_bytes),
        JSON_OF(p, streamed_bytes_per_pass), JSON_OF(p, lookup_bytes), JSON_OF(p, draft_bytes),
        JSON_OF(p, draft_ids), JSON_OF(p, ring_bytes),
        {"target_kv_bytes",
         (double)(p->kv_bytes - p->draft_kv_bytes - p->cross_kv_bytes - p->state_bytes)},
        JSON_OF(p, draft_kv_bytes), JSON_OF(p, cross_kv_bytes), JSON_OF(p, state_bytes),
        JSON_OF(p, encoder_bytes), JSON_OF(p, kv_saved_bytes), JSON_OF(p, kv_window),
        JSON_OF(p, kv_file_bytes), JSON_OF(p, kv_read_bytes), JSON_OF(p, work_bytes),
        JSON_OF(p, session_bytes), JSON_OF(p, held_bytes), JSON_OF(p, prefix_bytes),
        JSON_OF(p, program_bytes), JSON_OF(p, tokenizer_bytes), JSON_OF(p, stack_bytes),
        JSON_OF(p, queue_bytes), JSON_OF(p, reserve_bytes), JSON_OF(p, spare_bytes),
        JSON_OF(p, front_layers), JSON_OF(p, expert_bytes), {"experts", p->n_experts},
        JSON_OF(p, expert_slots), JSON_OF(p, expert_layers), JSON_OF(p, experts_used),
        JSON_OF(p, expert_hits), JSON_OF(p, route_tokens), {"tensors_pinned", p->n_tensors_pinned},
        {"tensors_streamed", p->n_tensors_streamed}, JSON_OF(p, prompt_chunk),
        JSON_OF(p, tree_rows), {"threads", p->n_threads}, {"context", p->n_context},
        {"sessions", p->n_sessions}, {"disk_bytes_per_s", p->speeds.disk_bytes_per_s},
        {"memory_bytes_per_s", p->speeds.memory_bytes_per_s},
        {"one_ops_per_s", p->speeds.one_ops_per_s}, {"tree_ops_per_s", p->speeds.tree_ops_per_s},
        JSON_OF(p, read_s), JSON_OF(p, compute_s), JSON_OF(p, verify_s), JSON_OF(p, draft_s),
        JSON_OF(p, pass_s), JSON_OF(p, alone_pass_s), JSON_OF(p, passes_per_s),
        JSON_OF(p, ceiling_tokens_per_s), JSON_OF(p, expected_tokens_per_s));
    add_kv(w, p->kv);
    json_put_bool(w, "sidecar", p->sidecar);
}

void json_statistics(json_writer *w, const drey_statistics *s)
{
    JSON_PUT_EACH(
        w, JSON_OF(s, tokens_per_s), JSON_OF(s, ceiling_tokens_per_s),
        JSON_OF(s, sidecar_tokens_per_s), JSON_OF(s, cached_tokens), JSON_OF(s, disk_bytes_per_s),
        JSON_OF(s, pinned_bytes), JSON_OF(s, streamed_bytes_per_pass), JSON_OF(s, session_bytes),
        JSON_OF(s, experts_used), JSON_OF(s, experts_read), JSON_OF(s, experts_guessed),
        JSON_OF(s, guesses_used), JSON_OF(s, tokens_per_pass), {"passes", (double)s->n_passes},
        JSON_OF(s, drafted), JSON_OF(s, accepted), JSON_OF(s, read_bytes),
        JSON_OF(s, read_bytes_per_s), JSON_OF(s, load_bytes), JSON_OF(s, stall_share),
        JSON_OF(s, verify_share), JSON_OF(s, draft_share), JSON_OF(s, provisional_share),
        JSON_OF(s, ranks_share), JSON_OF(s, peak_memory_bytes), JSON_OF(s, decode_major_faults),
        JSON_OF(s, prompt_tokens), JSON_OF(s, prompt_s), JSON_OF(s, first_token_s),
        JSON_OF(s, generated_tokens), JSON_OF(s, decode_s), JSON_OF(s, joules));
    add_budget(w, s->budget_bytes);
    add_kv(w, s->kv);
    json_put_bool(w, "sidecar", s->sidecar);
    json_put_bool(w, "direct", s->direct);
    json_put_bool(w, "uring", s->uring);
    json_put_bool(w, "registered", s->registered);
    json_put_text(w, "finish_reason", drey_finish_name(s->finish));
}

/* Writes counts without the zeros at the end. */
static void add_counts(json_writer *w, const char *name, const int64_t *count, int n)
{
    double numbers[256];
    while (n > 0 && count[n - 1] == 0)
        n--;
    for (int i = 0; i < n; i++)
        numbers[i] = (double)count[i];
    json_put_numbers(w, name, numbers, n);
}

void json_speculation(json_writer *w, const drey_speculation *c)
{
    enum { RANKS = DREY_SPECULATION_RANKS + 1 };
    JSON_PUT_EACH(w, JSON_OF(c, draft_steps), JSON_OF(c, draft_s), JSON_OF(c, hidden_share),
                  JSON_OF(c, alpha), JSON_OF(c, provisional_kept), JSON_OF(c, provisional_lost),
                  JSON_OF(c, differed), JSON_OF(c, outside_slice), JSON_OF(c, accepted_of_draft),
                  JSON_OF(c, accepted_of_text), JSON_OF(c, accepted_of_both));
    json_put_bool(w, "lossy", c->lossy);
    add_counts(w, "depth_submitted", c->depth_submitted, DREY_SPECULATION_DEPTHS);
    add_counts(w, "depth_accepted", c->depth_accepted, DREY_SPECULATION_DEPTHS);
    add_counts(w, "rank_submitted", c->rank_submitted, RANKS);
    add_counts(w, "rank_accepted", c->rank_accepted, RANKS);
    add_counts(w, "rank_chosen", c->rank_chosen, RANKS);
    add_counts(w, "passes_writing", c->passes_writing, DREY_SPECULATION_WRITTEN);
}

void json_units(json_writer *w, const drey_engine *engine)
{
    drey_unit u;
    for (int32_t i = 0; drey_engine_unit(engine, i, &u); i++) {
        json_put_object(w, NULL);
        json_put_text(w, "name", u.name);
        json_put_text(w, "cpu_tier", u.cpu_tier);
        json_put_number(w, "threads", u.n_threads);
        json_put_number(w, "slow", u.slow);
        json_put_numbers(w, "share", u.share, DREY_UNIT_WIDTHS);
        JSON_PUT_EACH(w, {"groups", (double)u.n_groups}, {"dense_blocks", (double)u.n_dense_blocks},
                      {"tails", (double)u.n_tails});
        if (u.failed[0])
            json_put_text(w, "failed", u.failed);
        if (!u.attends)
            json_put_text(w, "no_attention", drey_engine_unit_no_attention(engine, i));
        json_close(w, '}');
    }
}

void json_exits(json_writer *w, const drey_exits *c)
{
    json_put_text(w, "mode", drey_exit_name(c->mode));
    JSON_PUT_EACH(
        w, JSON_OF(c, n_layers), JSON_OF(c, tokens), JSON_OF(c, left), JSON_OF(c, layers_per_token),
        JSON_OF(c, looks), JSON_OF(c, candidates), JSON_OF(c, refused), JSON_OF(c, compared),
        JSON_OF(c, agreed), JSON_OF(c, taken_back), {"full_passes", (double)c->n_full},
        JSON_OF(c, skipped_bytes), JSON_OF(c, vain_bytes), JSON_OF(c, look_s), JSON_OF(c, head_s));
    add_counts(w, "at_layer", c->at_layer, DREY_EXITS_LAYERS);
}
