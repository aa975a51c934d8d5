/* JSON files: see json_file.h. */
#include "cli/files/json_file.h"

#include "cli/terminal/terminal.h"
#include "common/utf8.h"

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
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
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
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return fail(err, DREY_ERR_IO, "cannot write %s: it is a folder", path);
    if (is_special(path))
        return DREY_OK;
    if (is_model(path))
        return fail(err, DREY_ERR_USAGE, "%s is a model, or a file beside one; name another file",
                    path);
    char *folder = folder_of(path);
    if (!folder)
        return fail(err, DREY_ERR_MEMORY, "out of memory");
    drey_status status = DREY_OK;
    if (access(folder, W_OK | X_OK) != 0)
        status = fail(err, DREY_ERR_IO, "cannot write %s: %s: %s", path, folder, strerror(errno));
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

/* The mode that open would have given the file: mkstemp's is for secrets. */
static void give_usual_mode(int fd)
{
    mode_t taken = umask(0);
    umask(taken);
    if (fchmod(fd, 0666 & ~taken) != 0)
        errno = 0; /* a file system without modes: nothing to give */
}

static bool replace_file(const char *path, file_put_fn *put, void *user)
{
    char *real = realpath(path, NULL); /* through a link: the link stays */
    const char *target = real ? real : path;
    size_t n = strlen(target) + sizeof ".XXXXXX";
    char *fresh = malloc(n);
    bool good = false;
    int fd = -1;
    if (fresh) {
        snprintf(fresh, n, "%s.XXXXXX", target);
        fd = mkstemp(fresh);
    }
    if (fd >= 0) {
        give_usual_mode(fd);
        FILE *file = fdopen(fd, "w");
        if (!file)
            close(fd);
        good = file && fill(file, put, user) && rename(fresh, target) == 0;
        int error = errno;
        if (!good)
            unlink(fresh);
        errno = error;
    }
    free(fresh);
    free(real);
    return good;
}

drey_status file_write(const char *path, file_put_fn *put, void *user, drey_error *err)
{
    if (!(is_special(path) ? write_in_place(path, put, user) : replace_file(path, put, user)))
        return fail(err, DREY_ERR_IO, "cannot write %s: %s", path, strerror(errno));
    return DREY_OK;
}

static bool put_line(FILE *file, void *text)
{
    return fputs(text, file) != EOF && putc('\n', file) != EOF;
}

drey_status text_write(const char *path, const char *text, drey_error *err)
{
    if (!text)
        return fail(err, DREY_ERR_MEMORY, "out of memory while writing %s", path);
    return file_write(path, put_line, (void *)(uintptr_t)text, err);
}

drey_status json_write(const char *path, const cJSON *root, drey_error *err)
{
    char *text = root ? cJSON_Print(root) : NULL;
    drey_status status = text_write(path, text, err);
    cJSON_free(text);
    return status;
}

void json_put_string(FILE *out, const char *bytes, size_t n)
{
    putc('"', out);
    for (size_t i = 0; i < n;) {
        int length = utf8_length((const uint8_t *)bytes + i, n - i);
        unsigned char c = (unsigned char)bytes[i];
        if (length <= 0)
            fputs("\\ufffd", out);
        else if (c < ' ' || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else
            fwrite(bytes + i, 1, (size_t)length, out);
        i += length > 0 ? (size_t)length : 1;
    }
    putc('"', out);
}

/* ---- Contents ---- */

cJSON *json_machine(void)
{
    cJSON *machine = cJSON_CreateObject();
    struct utsname system = {0};
    char cpu[200];
    cpu_set_t cores;
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof cores, &cores);
    uname(&system);
    drey_cpu_name(cpu, sizeof cpu);
    cJSON_AddStringToObject(machine, "cpu", cpu);
    cJSON_AddNumberToObject(machine, "cores", CPU_COUNT(&cores));
    cJSON_AddStringToObject(machine, "architecture", system.machine);
    cJSON_AddStringToObject(machine, "kernel", system.release);
    cJSON_AddNumberToObject(machine, "memory_bytes",
                            (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE));
    return machine;
}

typedef struct number_key {
    const char *name;
    double value;
} number_key;

static void add_numbers(cJSON *to, const number_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cJSON_AddNumberToObject(to, keys[i].name, keys[i].value);
}

/* What the caches hold, and whether that is lossy. */
static void add_kv(cJSON *to, drey_kv kv)
{
    cJSON_AddStringToObject(to, "kv", drey_kv_name(kv));
    cJSON_AddBoolToObject(to, "kv_lossy", kv == DREY_KV_Q8_0);
}

static void add_budget(cJSON *to, uint64_t bytes)
{
    if (bytes == DREY_MEMORY_UNLIMITED)
        cJSON_AddNullToObject(to, "budget_bytes");
    else
        cJSON_AddNumberToObject(to, "budget_bytes", (double)bytes);
}

cJSON *json_plan(const drey_plan *p)
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
    cJSON *root = cJSON_CreateObject();
    if (!root)
        return NULL;
    add_budget(root, p->budget_bytes);
    add_numbers(root, keys, sizeof keys / sizeof *keys);
    add_kv(root, p->kv);
    cJSON_AddBoolToObject(root, "sidecar", p->sidecar);
    return root;
}

cJSON *json_statistics(const drey_statistics *s)
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
    cJSON *root = cJSON_CreateObject();
    if (!root)
        return NULL;
    cJSON_AddStringToObject(root, "version", drey_version());
    cJSON_AddItemToObject(root, "machine", json_machine());
    add_numbers(root, keys, sizeof keys / sizeof *keys);
    add_budget(root, s->budget_bytes);
    add_kv(root, s->kv);
    cJSON_AddBoolToObject(root, "sidecar", s->sidecar);
    cJSON_AddBoolToObject(root, "direct", s->direct);
    cJSON_AddBoolToObject(root, "uring", s->uring);
    cJSON_AddBoolToObject(root, "registered", s->registered);
    cJSON_AddStringToObject(root, "finish_reason", drey_finish_name(s->finish));
    return root;
}

/* Without the zeros at the end. */
static void add_counts(cJSON *to, const char *name, const int64_t *count, int n)
{
    cJSON *list = cJSON_AddArrayToObject(to, name);
    while (n > 0 && count[n - 1] == 0)
        n--;
    for (int i = 0; i < n; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)count[i]));
}

cJSON *json_speculation(const drey_speculation *c)
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
    cJSON *root = cJSON_CreateObject();
    if (!root)
        return NULL;
    add_numbers(root, keys, sizeof keys / sizeof *keys);
    cJSON_AddBoolToObject(root, "lossy", c->lossy);
    add_counts(root, "depth_submitted", c->depth_submitted, DREY_SPECULATION_DEPTHS);
    add_counts(root, "depth_accepted", c->depth_accepted, DREY_SPECULATION_DEPTHS);
    add_counts(root, "rank_submitted", c->rank_submitted, RANKS);
    add_counts(root, "rank_accepted", c->rank_accepted, RANKS);
    add_counts(root, "rank_chosen", c->rank_chosen, RANKS);
    add_counts(root, "passes_writing", c->passes_writing, DREY_SPECULATION_WRITTEN);
    return root;
}

cJSON *json_units(const drey_engine *engine)
{
    cJSON *all = cJSON_CreateArray();
    drey_unit u;
    for (int32_t i = 0; all && drey_engine_unit(engine, i, &u); i++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", u.name);
        cJSON_AddStringToObject(one, "cpu_tier", u.cpu_tier);
        cJSON_AddNumberToObject(one, "threads", u.n_threads);
        cJSON_AddNumberToObject(one, "slow", u.slow);
        cJSON_AddItemToObject(one, "share", cJSON_CreateDoubleArray(u.share, DREY_UNIT_WIDTHS));
        cJSON_AddNumberToObject(one, "groups", (double)u.n_groups);
        cJSON_AddNumberToObject(one, "dense_blocks", (double)u.n_dense_blocks);
        cJSON_AddNumberToObject(one, "tails", (double)u.n_tails);
        if (u.failed[0])
            cJSON_AddStringToObject(one, "failed", u.failed);
        if (!u.attends)
            cJSON_AddStringToObject(one, "no_attention", drey_engine_unit_no_attention(engine, i));
        cJSON_AddItemToArray(all, one);
    }
    return all;
}

cJSON *json_exits(const drey_exits *c)
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
    cJSON *root = cJSON_CreateObject();
    if (!root)
        return NULL;
    cJSON_AddStringToObject(root, "mode", drey_exit_name(c->mode));
    add_numbers(root, keys, sizeof keys / sizeof *keys);
    add_counts(root, "at_layer", c->at_layer, DREY_EXITS_LAYERS);
    return root;
}
