/* Form of a matrix, found from its tensor: see matrix_form.h. */
#include "weights/matrix_form.h"
#include "weights/residency.h"

#include <assert.h>

drey_status matrix_describe(matrix_form *m, residency *r, const gguf_tensor *t,
                            const kernel_table *kernels, drey_error *err)
{
    const type_traits *traits = type_find(t->type);
    if (!traits || t->type >= TYPE_LIMIT || !kernels->matmul[t->type].dot)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "tensor %s has type %s, for which drey has no kernel; inspect the file", t->name,
             traits ? traits->name : "unknown");
    *m = (matrix_form){.tensor = t,
                       .kernel = &kernels->matmul[t->type],
                       .kernels = kernels,
                       .k = t->dims[0],
                       .n_rows = t->dims[1] * t->dims[2] * t->dims[3]};
    m->row_bytes = type_row_bytes(traits, m->k);
    *r = (residency){.in_pass = true,
                     .n_groups = (int32_t)((m->n_rows + GROUP_ROWS - 1) / GROUP_ROWS),
                     .group_bytes = m->kernel->group_bytes(m->k)};
    matrix_read_packed(m, r, false);
    return DREY_OK;
}

void matrix_cut(matrix_form *m, residency *r, int64_t n_rows)
{
    assert(n_rows > 0 && n_rows % GROUP_ROWS == 0 && n_rows <= m->n_rows);
    m->n_rows = n_rows;
    r->n_groups = (int32_t)(n_rows / GROUP_ROWS);
    matrix_read_packed(m, r, false);
}

bool matrix_split(matrix_form *m, residency *r)
{
    if (m->planes || !plane_layout_find(m->tensor->type))
        return false;
    m->planes = plane_layout_find(m->tensor->type);
    r->split = true;
    for (int i = 0; i < N_PLANES; i++)
        r->plane_bytes[i] = (size_t)matrix_blocks(m, 1) * plane_block_bytes(m->planes, i);
    return true;
}

void matrix_join(matrix_form *m, residency *r)
{
    m->planes = NULL;
    r->split = false;
}

void matrix_read_packed(const matrix_form *m, residency *r, bool packed)
{
    int64_t last_rows = m->n_rows - (int64_t)(r->n_groups - 1) * GROUP_ROWS;
    r->group_read_bytes = packed ? r->group_bytes : (uint64_t)(GROUP_ROWS * m->row_bytes);
    r->last_read_bytes = packed ? r->group_bytes : (uint64_t)(last_rows * m->row_bytes);
}

drey_status matrix_refuse(const matrix_form *m, const char *path, drey_error *err)
{
    FAIL(err, DREY_ERR_FORMAT,
         "%s: tensor %s holds numbers that are not finite: the file is damaged, fetch it again",
         SHOWN_PATH(path), m->tensor->name);
}
