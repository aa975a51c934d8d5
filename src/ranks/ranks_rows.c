/* The message of a pass: see ranks.h. */
#include "ranks/ranks.h"

#include <string.h>

#include "common/error.h"

static size_t rows_at(const ranks_rows *h)
{
    return sizeof *h + ((size_t)h->n_path + (size_t)h->n_rows) * sizeof(int32_t);
}

static size_t row_bytes(const ranks_rows *h)
{
    return (size_t)h->n_embd * sizeof(float);
}

size_t ranks_room_bytes(int32_t max_rows, int32_t n_embd)
{
    ranks_rows most = {.n_rows = max_rows, .n_path = max_rows, .n_embd = n_embd};
    size_t body = rows_at(&most) + (size_t)max_rows * row_bytes(&most);
    size_t least = sizeof(ranks_hello) + sizeof(ranks_failure);
    return sizeof(ranks_head) + (body > least ? body : least);
}

drey_status ranks_send_rows(drey_ranks *r, int32_t to, const ranks_rows *head, const int32_t *path,
                            const pass_row *rows, const float *x, int64_t ld, drey_error *err)
{
    uint8_t *body;
    TRY(ranks_out(r, &body, err));
    int32_t *numbers = (int32_t *)(void *)(body + sizeof *head);
    memcpy(body, head, sizeof *head);
    for (int32_t i = 0; i < head->n_path; i++)
        *numbers++ = path[i];
    for (int32_t i = 0; i < head->n_rows; i++)
        *numbers++ = rows[i].parent;
    uint8_t *at = body + rows_at(head);
    for (int32_t i = 0; i < head->n_rows; i++, at += row_bytes(head))
        memcpy(at, x + i * ld, row_bytes(head));
    return ranks_send(r, to, RANKS_ROWS, NULL, (size_t)(at - body), err);
}

bool ranks_read_rows(const drey_ranks *r, int32_t n_embd, ranks_rows *head, const int32_t **path,
                     const int32_t **parent)
{
    const uint8_t *body = ranks_body(r);
    uint64_t n_bytes = ranks_got(r)->n_bytes;
    if (n_bytes < sizeof *head)
        return false;
    memcpy(head, body, sizeof *head);
    if (head->n_embd != n_embd || head->n_rows < 1 || head->n_path < 0 || head->n_committed < 0 ||
        n_bytes != rows_at(head) + (size_t)head->n_rows * row_bytes(head))
        return false;
    *path = (const int32_t *)(const void *)(body + sizeof *head);
    *parent = *path + head->n_path;
    return true;
}

void ranks_copy_rows(const drey_ranks *r, const ranks_rows *head, float *to, int64_t ld)
{
    const uint8_t *at = (const uint8_t *)ranks_body(r) + rows_at(head);
    for (int32_t i = 0; i < head->n_rows; i++, at += row_bytes(head))
        memcpy(to + i * ld, at, row_bytes(head));
}
