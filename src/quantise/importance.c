/* Reading importance matrices: see importance.h. */
#include "quantise/importance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/types.h"
#include "os/file.h"

#define SUMS   ".in_sum2"
#define COUNTS ".counts"
enum { MOST_NAME = 64, MOST_ENTRIES = 1 << 16 };
static const int64_t most_numbers = (int64_t)1 << 28;

void importance_free(importance *m)
{
    for (int64_t i = 0; i < m->n_entries; i++) {
        free(m->entry[i].name);
        free(m->entry[i].squares);
    }
    free(m->entry);
    *m = (importance){0};
}

/* Room for one more of n numbers, which count from now on; NULL: out of memory. */
static importance_entry *add(importance *m, const char *name, int64_t n, drey_error *err)
{
    importance_entry e = {strdup(name), n, malloc((size_t)n * sizeof(float))};
    importance_entry *grown = realloc(m->entry, (size_t)(m->n_entries + 1) * sizeof *grown);
    m->entry = grown ? grown : m->entry;
    if (!grown || !e.name || !e.squares) {
        free(e.name);
        free(e.squares);
        error_set(err, DREY_ERR_MEMORY, "the system refused memory for an importance matrix");
        return NULL;
    }
    m->entry[m->n_entries] = e;
    m->n_bytes += (uint64_t)n * sizeof(float) + sizeof e + MOST_NAME;
    return &m->entry[m->n_entries++];
}

/* ---- Bytes of a file ---- */

typedef struct reading {
    file file;
    const char *path;
    uint64_t at; /* position in a file of the older kind: where it reads */
} reading;

static drey_status read_at(const reading *r, uint64_t offset, void *out, size_t n, drey_error *err)
{
    if (offset > r->file.n_bytes || n > r->file.n_bytes - offset)
        FAIL(err, DREY_ERR_FORMAT, "%s is no importance matrix, or is damaged; make it again",
             SHOWN_PATH(r->path));
    return file_read(&r->file, r->path, offset, n, out, NULL, 0, err);
}

static drey_status next(reading *r, void *out, size_t n, drey_error *err)
{
    TRY(read_at(r, r->at, out, n, err));
    r->at += n;
    return DREY_OK;
}

static drey_status next_int(reading *r, int32_t *out, drey_error *err)
{
    return next(r, out, sizeof *out, err);
}

/* ---- GGUF ---- */

static drey_status refuse(const reading *r, const char *name, drey_error *err)
{
    FAIL(err, DREY_ERR_FORMAT, "%s is damaged: its entry %s is not what one has; make it again",
         SHOWN_PATH(r->path), name);
}

/* A tensor is SUMS [row, n]; counts: [1, n]. */
static drey_status take_sums(importance *m, const reading *r, const gguf *g,
                             const gguf_tensor *sums, drey_error *err)
{
    char name[MOST_NAME], of_counts[MOST_NAME + sizeof COUNTS];
    snprintf(name, sizeof name, "%.*s", (int)(strlen(sums->name) - strlen(SUMS)), sums->name);
    snprintf(of_counts, sizeof of_counts, "%s" COUNTS, name);
    const gguf_tensor *counts = gguf_find_tensor(g, of_counts);
    const int64_t row = sums->dims[0], n = (int64_t)(sums->n_bytes / sizeof(float));
    if (!counts || counts->type != TYPE_F32 || sums->type != TYPE_F32 || n > most_numbers ||
        counts->n_bytes / sizeof(float) != (uint64_t)(n / row))
        return refuse(r, name, err);
    importance_entry *e = add(m, name, n, err);
    if (!e)
        return DREY_ERR_MEMORY;
    TRY(read_at(r, sums->offset, e->squares, (size_t)sums->n_bytes, err));
    for (int64_t i = 0; i < n / row; i++) {
        float count;
        TRY(read_at(r, counts->offset + (uint64_t)i * sizeof count, &count, sizeof count, err));
        /* An expert that the text has not used: all columns are alike. */
        for (int64_t k = 0; k < row; k++)
            e->squares[i * row + k] = count > 0 ? e->squares[i * row + k] / count : 1;
    }
    return DREY_OK;
}

static drey_status take_gguf(importance *m, const reading *r, const gguf *g, drey_error *err)
{
    gguf_string text;
    const gguf_key *datasets = gguf_find_key(g, "imatrix.datasets");
    m->n_chunks = gguf_int(g, "imatrix.chunk_count", 0);
    if (datasets) {
        gguf_cursor c = gguf_strings(datasets);
        if (gguf_next_string(&c, &text))
            gguf_printable(m->dataset, sizeof m->dataset, text.text, text.n_bytes);
    }
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++) {
        const gguf_tensor *t = gguf_tensor_at(g, i);
        size_t n = strlen(t->name);
        if (n > strlen(SUMS) && strcmp(t->name + n - strlen(SUMS), SUMS) == 0)
            TRY(take_sums(m, r, g, t, err));
    }
    return DREY_OK;
}

/* ---- The older kind ---- */

/* int n; n times: length, name, int calls, int n_values, floats (sums over calls) | int chunks,
 * length, text's name: the last three may be missing. */
static drey_status take_old_entry(importance *m, reading *r, drey_error *err)
{
    char name[MOST_NAME] = "";
    int32_t n_name, n_calls, n;
    TRY(next_int(r, &n_name, err));
    if (n_name < 1 || n_name >= MOST_NAME)
        return refuse(r, "name", err);
    TRY(next(r, name, (size_t)n_name, err));
    TRY(next_int(r, &n_calls, err));
    TRY(next_int(r, &n, err));
    char shown[MOST_NAME];
    gguf_printable(shown, sizeof shown, name, strlen(name));
    if (n < 1 || n > most_numbers || (uint64_t)n * sizeof(float) > r->file.n_bytes - r->at)
        return refuse(r, shown, err);
    importance_entry *e = add(m, name, n, err);
    if (!e)
        return DREY_ERR_MEMORY;
    TRY(next(r, e->squares, (size_t)n * sizeof(float), err));
    for (int32_t i = 0; i < n && n_calls > 0; i++)
        e->squares[i] /= (float)n_calls;
    return DREY_OK;
}

static drey_status take_old(importance *m, reading *r, drey_error *err)
{
    int32_t n, n_chunks, n_name;
    TRY(next_int(r, &n, err));
    if (n < 1 || n > MOST_ENTRIES)
        FAIL(err, DREY_ERR_FORMAT, "%s is no importance matrix; name a file of drey imatrix",
             SHOWN_PATH(r->path));
    for (int32_t i = 0; i < n; i++)
        TRY(take_old_entry(m, r, err));
    if (r->file.n_bytes - r->at < 8)
        return DREY_OK;
    TRY(next_int(r, &n_chunks, err));
    TRY(next_int(r, &n_name, err));
    m->n_chunks = n_chunks;
    char text[256];
    if (n_name > 0 && n_name <= (int32_t)sizeof text &&
        next(r, text, (size_t)n_name, NULL) == DREY_OK)
        gguf_printable(m->dataset, sizeof m->dataset, text, (size_t)n_name);
    return DREY_OK;
}

/* ---- Either ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const importance_entry *)a)->name, ((const importance_entry *)b)->name);
}

static drey_status check_numbers(const importance *m, const char *path, drey_error *err)
{
    if (m->n_entries == 0)
        FAIL(err, DREY_ERR_FORMAT, "%s has no entries of an importance matrix; make it again",
             SHOWN_PATH(path));
    for (int64_t i = 0; i < m->n_entries; i++) {
        if (i > 0 && by_name(&m->entry[i - 1], &m->entry[i]) == 0)
            FAIL(err, DREY_ERR_FORMAT, "%s has an entry twice; make it again", SHOWN_PATH(path));
        for (int64_t k = 0; k < m->entry[i].n; k++)
            if (!(m->entry[i].squares[k] >= 0 && m->entry[i].squares[k] <= 3e38f))
                FAIL(err, DREY_ERR_FORMAT, "%s has numbers that are no mean squares; make it again",
                     SHOWN_PATH(path));
    }
    return DREY_OK;
}

static drey_status read_open(importance *m, reading *r, drey_error *err)
{
    char magic[4] = "";
    gguf *g;
    if (r->file.n_bytes >= sizeof magic)
        TRY(read_at(r, 0, magic, sizeof magic, err));
    if (memcmp(magic, "GGUF", 4) != 0)
        return take_old(m, r, err);
    TRY(gguf_open(&g, r->path, err));
    drey_status status = DREY_OK;
    if (gguf_n_shards(g) != 1)
        status =
            error_set(err, DREY_ERR_FORMAT, "%s is split; join its parts", SHOWN_PATH(r->path));
    if (status == DREY_OK)
        status = take_gguf(m, r, g, err);
    gguf_close(&g);
    return status;
}

drey_status importance_read(importance *m, const char *path, drey_error *err)
{
    reading r = {.path = path};
    *m = (importance){0};
    TRY(file_open(&r.file, path, false, err));
    drey_status status = read_open(m, &r, err);
    file_close(&r.file);
    TRY(status);
    if (m->n_entries > 0)
        qsort(m->entry, (size_t)m->n_entries, sizeof *m->entry, by_name);
    return check_numbers(m, path, err);
}

const importance_entry *importance_find(const importance *m, const char *name)
{
    importance_entry key = {.name = (char *)(uintptr_t)name};
    return m->n_entries == 0 ? NULL
                             : bsearch(&key, m->entry, (size_t)m->n_entries, sizeof key, by_name);
}

drey_status importance_check(const importance *m, const char *path, const gguf *model,
                             drey_error *err)
{
    for (int64_t i = 0; i < m->n_entries; i++) {
        const importance_entry *e = &m->entry[i];
        const gguf_tensor *t = gguf_find_tensor(model, e->name);
        char shown[MOST_NAME];
        gguf_printable(shown, sizeof shown, e->name, strlen(e->name));
        if (!t)
            FAIL(err, DREY_ERR_MISMATCH,
                 "%s is of another model: this one has no tensor %s; make one with this model",
                 SHOWN_PATH(path), shown);
        if (e->n != t->dims[0] && e->n != t->dims[0] * t->dims[2])
            FAIL(err, DREY_ERR_MISMATCH,
                 "%s is of another model: %s has rows of %lld there and of %lld here; make one "
                 "with this model",
                 SHOWN_PATH(path), shown, (long long)e->n, (long long)t->dims[0]);
    }
    return DREY_OK;
}
