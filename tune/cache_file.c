/* Files of a cache folder: see cache_file.h. */
#include "tune/cache_file.h"

#include "drey/drey_engine.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/new_file.h"
#include "drey/drey_engine.h"
#include "kernel/kernel.h"

enum { ID_BYTES = 128, MOST_BYTES = 1 << 20 };

const char *cache_tier(const char *cpu_tier)
{
    return cpu_tier ? cpu_tier : kernel_tiers()[0];
}

static bool path_of(char path[PATH_MAX], const char *folder, const char *name)
{
    return folder && snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

drey_status cache_missing(drey_error *err)
{
    FAIL(err, DREY_ERR_IO, "nothing was measured with these options");
}

drey_status cache_read(const char *folder, const char *name, const cache_kind *kind,
                       const char *cpu_tier, void *out, drey_error *err)
{
    char path[PATH_MAX], id[ID_BYTES];
    json_document file;
    if (!path_of(path, folder, name) || access(path, R_OK) != 0)
        return cache_missing(err);
    drey_cpu_id(id, sizeof id);
    const json_value *root = json_load_file(&file, path, MOST_BYTES);
    bool is_one =
        (!kind->format || json_member_is(root, "format", kind->format)) && kind->take(root, out);
    bool is_own =
        json_member_is(root, "cpu", id) && json_member_is(root, "version", drey_version());
    bool fits = json_member_is(root, "cpu_tier", cache_tier(cpu_tier));
    json_free(&file);
    if (!is_one)
        FAIL(err, DREY_ERR_FORMAT, "%s is not what drey tune writes, and is passed over",
             SHOWN_PATH(path));
    if (!is_own)
        FAIL(err, DREY_ERR_MISMATCH,
             "%s was measured on another processor or by another version, and is passed over",
             SHOWN_PATH(path));
    return fits ? DREY_OK : cache_missing(err);
}

bool cache_take_whole(const json_value *from, const char *key, double least, double most,
                      double *out)
{
    *out = json_member_number(from, key);
    return *out >= least && *out <= most && *out == floor(*out);
}

bool cache_take_numbers(const json_value *from, const char *key, double *out, int n)
{
    const double most = 1e9;
    bool good = json_member_numbers(from, key, out, n) == n;
    for (int i = 0; good && i < n; i++)
        good = out[i] >= 0 && out[i] <= most;
    return good;
}

void cache_put_origin(json_writer *w, const cache_kind *kind, const char *cpu_tier,
                      int32_t n_threads)
{
    char id[ID_BYTES];
    drey_cpu_id(id, sizeof id);
    if (kind->format)
        json_put_text(w, "format", kind->format);
    json_put_text(w, "cpu", id);
    json_put_text(w, "cpu_tier", cache_tier(cpu_tier));
    if (n_threads)
        json_put_number(w, "threads", n_threads);
    json_put_text(w, "version", drey_version());
}

static drey_status write_text(const char *path, const char *text, size_t n, drey_error *err)
{
    new_file fresh;
    TRY(new_file_open(&fresh, path, err));
    return new_file_end(&fresh, new_file_write(&fresh, 0, text, n, err), err);
}

drey_status cache_write(const char *folder, const char *name, json_buffer *b, drey_error *err)
{
    char path[PATH_MAX];
    char *text = json_buffer_end(b);
    drey_status status = DREY_OK;
    if (!text)
        status = error_set(err, DREY_ERR_MEMORY, "out of memory while writing %s", name);
    else if (!path_of(path, folder, name))
        status = error_set(err, DREY_ERR_USAGE, "there is no folder to write %s to", name);
    if (status == DREY_OK) {
        text[b->n] = '\n'; /* instead of the NUL */
        new_file_make_folders(path);
        status = write_text(path, text, b->n + 1, err);
    }
    free(text);
    if (status != DREY_OK && err)
        err->hint = DREY_HINT_NONE; /* no option names this file */
    return status;
}
