/* JSON files: see json_file.h. */
#include "cli/files/json_file.h"

#include "cli/terminal/terminal.h"
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

/* Whether a file begins as models, side files or sidecars do: nobody means to replace one by some
 * numbers. */
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
        FAIL(err, DREY_ERR_USAGE, "%s is a model, or a file beside one; name another file", path);
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

static drey_status cannot_write(const char *path, drey_error *err)
{
    FAIL(err, DREY_ERR_IO, "cannot write %s: %s", path, strerror(errno));
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

drey_status text_write(const char *path, const char *text, drey_error *err)
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

typedef struct number_key {
    const char *name;
    double value;
} number_key;

static void add_numbers(json_writer *w, const number_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        json_put_number(w, keys[i].name, keys[i].value);
}

/* What the caches hold, and whether that is lossy. */
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
    const number_key keys[] = {
        {"smallest_budget_bytes", (double)p->smallest_budget_bytes},
        {"target_bytes", (double)p->target_bytes},
        {"pinned_bytes", (double)p->pinned_bytes},
        {"streamed_bytes_per_pass", (double)p->streamed_bytes_per_pass},
        {"lookup_bytes", (double)p->lookup_bytes},
        {"draft_bytes", (double)p->draft_bytes},
        {"draft_ids", (double)p->draft_ids},
        {"ring_bytes", (double)p->ring_bytes},
        {"target_kv_bytes", (double)(p->kv_bytes - p->draft_kv_bytes)},
        {"draft_kv_bytes", (double)p->draft_kv_bytes},
        {"kv_saved_bytes", (double)p->kv_saved_bytes},
        {"work_bytes", (double)p->work_bytes},
        {"session_bytes", (double)p->session_bytes},
        {"held_bytes", (double)p->held_bytes},
        {"prefix_bytes", (double)p->prefix_bytes},
        {"program_bytes", (double)p->program_bytes},
        {"tokenizer_bytes", (double)p->tokenizer_bytes},
        {"stack_bytes", (double)p->stack_bytes},
        {"queue_bytes", (double)p->queue_bytes},
        {"reserve_bytes", (double)p->reserve_bytes},
        {"spare_bytes", (double)p->spare_bytes},
        {"front_layers", (double)p->front_layers},
        {"tensors_pinned", p->n_tensors_pinned},
        {"tensors_streamed", p->n_tensors_streamed},
        {"prompt_chunk", p->prompt_chunk},
        {"tree_rows", p->tree_rows},
        {"threads", p->n_threads},
        {"context", p->n_context},
        {"sessions", p->n_sessions},
        {"disk_bytes_per_s", p->speeds.disk_bytes_per_s},
        {"memory_bytes_per_s", p->speeds.memory_bytes_per_s},
        {"one_ops_per_s", p->speeds.one_ops_per_s},
        {"tree_ops_per_s", p->speeds.tree_ops_per_s},
        {"read_s", p->read_s},
        {"compute_s", p->compute_s},
        {"verify_s", p->verify_s},
        {"draft_s", p->draft_s},
        {"pass_s", p->pass_s},
        {"alone_pass_s", p->alone_pass_s},
        {"passes_per_s", p->passes_per_s},
        {"ceiling_tokens_per_s", p->ceiling_tokens_per_s},
        {"expected_tokens_per_s", p->expected_tokens_per_s},
    };
    add_budget(w, p->budget_bytes);
    add_numbers(w, keys, sizeof keys / sizeof *keys);
    add_kv(w, p->kv);
    json_put_bool(w, "sidecar", p->sidecar);
}

void json_statistics(json_writer *w, const drey_statistics *s)
{
    const number_key keys[] = {
        {"tokens_per_s", s->tokens_per_s},
        {"ceiling_tokens_per_s", s->ceiling_tokens_per_s},
        {"sidecar_tokens_per_s", s->sidecar_tokens_per_s},
        {"cached_tokens", (double)s->cached_tokens},
        {"disk_bytes_per_s", s->disk_bytes_per_s},
        {"pinned_bytes", (double)s->pinned_bytes},
        {"streamed_bytes_per_pass", (double)s->streamed_bytes_per_pass},
        {"session_bytes", (double)s->session_bytes},
        {"tokens_per_pass", s->tokens_per_pass},
        {"passes", (double)s->n_passes},
        {"drafted", (double)s->drafted},
        {"accepted", (double)s->accepted},
        {"read_bytes", (double)s->read_bytes},
        {"read_bytes_per_s", s->read_bytes_per_s},
        {"load_bytes", (double)s->load_bytes},
        {"stall_share", s->stall_share},
        {"verify_share", s->verify_share},
        {"draft_share", s->draft_share},
        {"provisional_share", s->provisional_share},
        {"peak_memory_bytes", (double)s->peak_memory_bytes},
        {"decode_major_faults", (double)s->decode_major_faults},
        {"prompt_tokens", (double)s->prompt_tokens},
        {"prompt_s", s->prompt_s},
        {"first_token_s", s->first_token_s},
        {"generated_tokens", (double)s->generated_tokens},
        {"decode_s", s->decode_s},
    };
    add_numbers(w, keys, sizeof keys / sizeof *keys);
    add_budget(w, s->budget_bytes);
    add_kv(w, s->kv);
    json_put_bool(w, "sidecar", s->sidecar);
    json_put_bool(w, "direct", s->direct);
    json_put_bool(w, "uring", s->uring);
    json_put_bool(w, "registered", s->registered);
    json_put_text(w, "finish_reason", drey_finish_name(s->finish));
}

/* Without the zeros at the end. */
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
    const number_key keys[] = {
        {"draft_steps", (double)c->draft_steps},
        {"draft_s", c->draft_s},
        {"hidden_share", c->hidden_share},
        {"alpha", c->alpha},
        {"provisional_kept", (double)c->provisional_kept},
        {"provisional_lost", (double)c->provisional_lost},
        {"differed", (double)c->differed},
        {"outside_slice", (double)c->outside_slice},
        {"accepted_of_draft", (double)c->accepted_of_draft},
        {"accepted_of_text", (double)c->accepted_of_text},
        {"accepted_of_both", (double)c->accepted_of_both},
    };
    enum { RANKS = DREY_SPECULATION_RANKS + 1 };
    add_numbers(w, keys, sizeof keys / sizeof *keys);
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
        json_put_number(w, "groups", (double)u.n_groups);
        json_put_number(w, "dense_blocks", (double)u.n_dense_blocks);
        json_put_number(w, "tails", (double)u.n_tails);
        if (u.failed[0])
            json_put_text(w, "failed", u.failed);
        if (!u.attends)
            json_put_text(w, "no_attention", drey_engine_unit_no_attention(engine, i));
        json_close(w, '}');
    }
}

void json_exits(json_writer *w, const drey_exits *c)
{
    const number_key keys[] = {
        {"n_layers", (double)c->n_layers},
        {"tokens", (double)c->tokens},
        {"left", (double)c->left},
        {"layers_per_token", c->layers_per_token},
        {"looks", (double)c->looks},
        {"candidates", (double)c->candidates},
        {"refused", (double)c->refused},
        {"compared", (double)c->compared},
        {"agreed", (double)c->agreed},
        {"taken_back", (double)c->taken_back},
        {"full_passes", (double)c->n_full},
        {"skipped_bytes", (double)c->skipped_bytes},
        {"vain_bytes", (double)c->vain_bytes},
        {"look_s", c->look_s},
        {"head_s", c->head_s},
    };
    json_put_text(w, "mode", drey_exit_name(c->mode));
    add_numbers(w, keys, sizeof keys / sizeof *keys);
    add_counts(w, "at_layer", c->at_layer, DREY_EXITS_LAYERS);
}
