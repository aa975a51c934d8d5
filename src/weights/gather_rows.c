/* Reading runs of rows, and packing them: see gather_rows.h. */
#include "weights/gather_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/num.h"
#include "os/file.h"
#include "weights/matrix_form.h"
#include "weights/weights.h"

enum {
    BOUNCE_BYTES = 256 << 10,
    GAP_BYTES =
        8192 /* bytes of rows that are not needed: reading them is cheaper than another read */
};

typedef struct reader {
    const weight *source;
    const file *file;
    const char *path;
    uint8_t *bounce, *span, *group; /* [BOUNCE_BYTES], [span_rows] and [GROUP_ROWS][row_bytes] */
    int64_t span_rows;
    int64_t first, n; /* rows of the source that the span holds */
} reader;

/* Rows from id[0] on: as far as the next wanted one is near, and the span goes. */
static drey_status read_span(reader *r, const int32_t *id, int32_t n, drey_error *err)
{
    const weight *w = r->source;
    int32_t last = 0;
    while (last + 1 < n && id[last + 1] - id[0] < r->span_rows &&
           (id[last + 1] - id[last] - 1) * w->form.row_bytes <= GAP_BYTES)
        last++;
    r->first = id[0];
    r->n = id[last] - id[0] + 1;
    uint64_t at = w->form.tensor->offset + (uint64_t)(r->first * w->form.row_bytes);
    return file_read(r->file, r->path, at, (size_t)(r->n * w->form.row_bytes), r->span, r->bounce,
                     BOUNCE_BYTES, err);
}

static drey_status pack_all(reader *r, const int32_t *id, int32_t n, uint8_t *packed,
                            drey_error *err)
{
    const weight *w = r->source;
    for (int32_t i = 0; i < n; i++) {
        int32_t in_group = i % GROUP_ROWS;
        assert(id[i] >= 0 && id[i] < w->form.tensor->dims[1] && (i == 0 || id[i] > id[i - 1]));
        if (id[i] >= r->first + r->n)
            TRY(read_span(r, id + i, n - i, err));
        memcpy(r->group + in_group * w->form.row_bytes,
               r->span + (id[i] - r->first) * w->form.row_bytes, (size_t)w->form.row_bytes);
        if (in_group + 1 < GROUP_ROWS && i + 1 < n)
            continue;
        if (!w->form.kernel->pack(packed + (size_t)(i / GROUP_ROWS) * w->residency.group_bytes,
                                  r->group, w->form.row_bytes, in_group + 1, w->form.k))
            return matrix_refuse(&w->form, r->path, err);
    }
    return DREY_OK;
}

drey_status gather_rows(const weight *source, const file *f, const char *path, const int32_t *id,
                        int32_t n, uint8_t *packed, drey_error *err)
{
    reader r = {.source = source,
                .file = f,
                .path = path,
                .span_rows = max_i64(BOUNCE_BYTES / source->form.row_bytes, 1)};
    r.bounce = aligned_alloc(4096, BOUNCE_BYTES);
    r.span = malloc((size_t)(r.span_rows * source->form.row_bytes));
    r.group = malloc((size_t)(GROUP_ROWS * source->form.row_bytes));
    drey_status status =
        r.bounce && r.span && r.group
            ? pack_all(&r, id, n, packed, err)
            : error_set(err, DREY_ERR_MEMORY, "no memory to read rows of %s", SHOWN_PATH(path));
    free(r.bounce);
    free(r.span);
    free(r.group);
    return status;
}
