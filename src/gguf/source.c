/* Growing reads of a header: see source.h. */
#include "gguf/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/num.h"
#include "common/size_text.h"

enum {
    step_bytes = 256 << 10, /* the first read; each further one doubles what is there */
    bounce_bytes = 64 << 10,
    page_bytes = 4096,
};

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static drey_status refuse_memory(const source *s, drey_error *err)
{
    FAIL(err, DREY_ERR_MEMORY, "the system refused memory for the header of %s; free some memory",
         s->shown);
}

static drey_status open_file(source *s, const char *path, drey_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        FAIL(err, DREY_ERR_IO, "%s is a directory; name the GGUF file in it", s->shown);
    TRY(file_open(&s->file, path, true, err));
    s->file_bytes = s->file.n_bytes;
    if (s->file_bytes == 0)
        FAIL(err, DREY_ERR_FORMAT, "%s is empty; fetch the file again", s->shown);
    return DREY_OK;
}

static drey_status take_memory(source *s, drey_error *err)
{
    size_t limit = SOURCE_HEADER_LIMIT;
    if (s->file_bytes < limit)
        limit = round_up((size_t)s->file_bytes, page_bytes);
    s->bounce = aligned_alloc(bounce_bytes, bounce_bytes);
    void *map = mmap(NULL, limit, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map != MAP_FAILED) {
        s->base = map;
        s->capacity = limit;
        s->mapped = true;
    }
    return s->bounce && s->base ? DREY_OK : refuse_memory(s, err);
}

drey_status source_open(source *s, const char *path, drey_error *err)
{
    *s = (source){.file.fd = -1};
    snprintf(s->shown, sizeof s->shown, "%s", SHOWN_PATH(path));
    drey_status status = open_file(s, path, err);
    if (status == DREY_OK)
        status = take_memory(s, err);
    if (status != DREY_OK)
        source_close(s);
    return status;
}

drey_status source_from_memory(source *s, const uint8_t *bytes, size_t n_bytes, uint64_t file_bytes,
                               drey_error *err)
{
    *s = (source){.shown = "the GGUF data", .file.fd = -1, .file_bytes = file_bytes};
    if (n_bytes == 0)
        FAIL(err, DREY_ERR_FORMAT, "%s is empty; fetch the file again", s->shown);
    s->base = malloc(n_bytes);
    if (!s->base)
        return refuse_memory(s, err);
    memcpy(s->base, bytes, n_bytes);
    s->n_read = s->capacity = n_bytes;
    return DREY_OK;
}

static void stop_reading(source *s)
{
    file_close(&s->file);
    free(s->bounce);
    s->bounce = NULL;
}

void source_close(source *s)
{
    stop_reading(s);
    if (s->mapped)
        munmap(s->base, s->capacity);
    else
        free(s->base);
    s->base = NULL;
    s->mapped = false;
    s->n_read = s->capacity = s->at = 0;
}

void source_finish(source *s, size_t n_kept)
{
    stop_reading(s);
    if (s->mapped) {
        size_t kept = round_up(n_kept ? n_kept : 1, page_bytes);
        if (kept < s->capacity) {
            munmap(s->base + kept, s->capacity - kept);
            s->capacity = kept;
        }
    }
    s->n_read = n_kept;
}

/* Continues to read until the first n_needed bytes are there, and some more. */
static drey_status read_up_to(source *s, size_t n_needed, drey_error *err)
{
    size_t target = s->n_read * 2 > n_needed ? s->n_read * 2 : n_needed;
    target = round_up(target, step_bytes);
    if (target > s->capacity)
        target = s->capacity;
    if (target > s->file_bytes)
        target = (size_t)s->file_bytes;
    TRY(file_read(&s->file, s->shown, s->n_read, target - s->n_read, s->base + s->n_read, s->bounce,
                  bounce_bytes, err));
    s->n_read = target;
    return DREY_OK;
}

drey_status source_take(source *s, uint64_t n, const uint8_t **bytes, drey_error *err)
{
    bool complete = s->file_bytes <= s->capacity || !s->mapped;
    if (n > (complete ? source_left(s) : s->file_bytes - s->at))
        FAIL(err, DREY_ERR_FORMAT,
             "%s ends inside its header (%llu bytes); it is damaged or not all there, fetch it "
             "again",
             s->shown, (unsigned long long)s->file_bytes);
    if (n > s->capacity - s->at)
        FAIL(err, DREY_ERR_FORMAT,
             "%s has a header of more than %s, which no model needs; it is damaged, fetch it "
             "again",
             s->shown, SIZE_TEXT(s->capacity));
    if (n > s->n_read - s->at)
        TRY(read_up_to(s, s->at + (size_t)n, err));
    *bytes = s->base + s->at;
    s->at += (size_t)n;
    return DREY_OK;
}

uint64_t source_left(const source *s)
{
    uint64_t end = min_u64(s->file_bytes, s->capacity);
    return end - s->at;
}
