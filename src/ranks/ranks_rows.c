/* The message of a pass: see ranks.h. */
#include "model/layout.h"
#include "model/workspace.h"
#include "ranks/ranks.h"

#include <assert.h>
#include <string.h>

#include "common/error.h"
#include "state/cache_room.h"

/* The parts before the rows; n_path: of all caches. */
static uint64_t rows_at(const ranks_rows *h, int64_t n_path)
{
    return sizeof *h + (uint64_t)h->n_caches * sizeof(ranks_cache) +
           (uint64_t)h->n_copies * sizeof(ranks_copy) +
           (uint64_t)(n_path + h->n_rows) * sizeof(int32_t);
}

static size_t row_bytes(const ranks_rows *h)
{
    return (size_t)h->n_embd * sizeof(float);
}

size_t ranks_room_bytes(int32_t n_caches, int32_t max_rows, int32_t n_embd)
{
    const ranks_rows most = {
        .n_rows = max_rows, .n_embd = n_embd, .n_caches = n_caches, .n_copies = RANKS_COPIES};
    size_t body =
        rows_at(&most, (int64_t)n_caches * max_rows) + (size_t)max_rows * row_bytes(&most);
    size_t least = sizeof(ranks_hello) + sizeof(ranks_failure);
    return sizeof(ranks_head) + (body > least ? body : least);
}

/* ---- Rank 0 ---- */

static int32_t slot_of(const drey_ranks *r, const text_cache *cache)
{
    int32_t slot = 0;
    while (r->caches.slot[slot].cache != cache)
        slot++;
    return slot;
}

static ranks_cache cache_of(const drey_ranks *r, int32_t slot, int32_t n_rows)
{
    const ranks_slot *s = &r->caches.slot[slot];
    return (ranks_cache){slot,      n_rows, s->trail.n, s->cache ? cache_end(s->cache) : 0,
                         HEAD_NONE, 0};
}

/* Lists the caches with rows, and all others: what they did may be copied. Returns how many. */
static int32_t list_caches(const drey_ranks *r, const model_pass *p, ranks_cache *list)
{
    bool is_in[DREY_MAX_SESSIONS] = {false};
    int32_t n = 0;
    for (int32_t g = 0; g < p->n_groups; g++) {
        const pass_group *group = &p->groups[g];
        if (group->n == 0) /* it has left */
            continue;
        int32_t slot = slot_of(r, group->cache);
        is_in[slot] = true;
        list[n] = cache_of(r, slot, group->n);
        list[n].whole = group->whole;
        list[n++].head = (int32_t)group->head;
    }
    for (int32_t slot = 0; slot < r->caches.n_slots; slot++)
        if (!is_in[slot] && (r->caches.slot[slot].cache || r->caches.slot[slot].trail.n > 0))
            list[n++] = cache_of(r, slot, 0);
    return n;
}

static uint8_t *put(uint8_t *to, const void *from, size_t n_bytes)
{
    memcpy(to, from, n_bytes);
    return to + n_bytes;
}

static uint8_t *put_parents(uint8_t *at, const model_pass *p)
{
    for (int32_t g = 0; g < p->n_groups; g++)
        for (int32_t i = 0; i < p->groups[g].n; i++)
            at = put(at, &p->groups[g].rows[i].parent, sizeof(int32_t));
    return at;
}

static uint8_t *put_rows(uint8_t *at, const ranks_rows *head, const float *x, int64_t ld)
{
    for (int32_t i = 0; i < head->n_rows; i++)
        at = put(at, x + i * ld, row_bytes(head));
    return at;
}

drey_status ranks_send_rows(drey_ranks *r, int32_t to, const model_pass *p, drey_error *err)
{
    uint8_t *body;
    ranks_cache caches[DREY_MAX_SESSIONS];
    const ranks_rows head = {.n_rows = p->n_rows,
                             .n_embd = shape_width(&p->r->layout->shape),
                             .n_caches = list_caches(r, p, caches),
                             .n_copies = r->caches.n_copies,
                             .is_wanted = p->n_logits > 0};
    TRY(ranks_out(r, &body, err));
    uint8_t *at = put(body, &head, sizeof head);
    at = put(at, caches, (size_t)head.n_caches * sizeof *caches);
    at = put(at, r->caches.copies, (size_t)head.n_copies * sizeof *r->caches.copies);
    for (int32_t i = 0; i < head.n_caches; i++)
        at = put(at, r->caches.slot[caches[i].slot].trail.path,
                 (size_t)caches[i].n_path * sizeof(int32_t));
    at = put_rows(put_parents(at, p), &head, p->r->ws->x, pass_rows_stride(p->r));
    TRY(ranks_send(r, to, RANKS_ROWS, NULL, (size_t)(at - body), err));
    for (int32_t i = 0; i < r->caches.n_slots; i++)
        r->caches.slot[i].trail.n = 0;
    r->caches.n_copies = 0;
    return DREY_OK;
}

void ranks_open_cache(drey_ranks *r, text_cache *cache)
{
    int32_t slot = slot_of(r, NULL);
    assert(slot < r->caches.n_slots);
    r->caches.slot[slot].cache = cache;
    cache_set_trail(cache, &r->caches.slot[slot].trail);
}

/* Forgets a cache. Its commit may have been copied, so its trail stays until it is sent. */
void ranks_close_cache(drey_ranks *r, const text_cache *cache)
{
    if (cache->trail)
        r->caches.slot[slot_of(r, cache)].cache = NULL;
}

bool ranks_copy_cache(drey_ranks *r, const text_cache *to, const text_cache *from, int32_t n)
{
    if (r->caches.n_copies == RANKS_COPIES)
        return false;
    r->caches.copies[r->caches.n_copies++] =
        (ranks_copy){slot_of(r, to), slot_of(r, from), cache_end(to), n};
    return true;
}

/* ---- Others ---- */

drey_status ranks_pass_on(drey_ranks *r, int32_t to, const ranks_pass *m, const float *x,
                          int64_t ld, drey_error *err)
{
    uint8_t *body;
    const uint8_t *from = ranks_body(r);
    TRY(ranks_out(r, &body, err));
    uint8_t *at = put(body, from, (size_t)((const uint8_t *)(m->parents + m->head.n_rows) - from));
    at = put_rows(at, &m->head, x, ld);
    return ranks_send(r, to, RANKS_ROWS, NULL, (size_t)(at - body), err);
}

/* Adds up the rows of all caches. Returns how long their paths are together; -1: they are not. */
static int64_t add_up(const ranks_pass *m)
{
    int64_t n_rows = 0, n_path = 0;
    bool rows_first = true;
    for (int32_t i = 0; i < m->head.n_caches; i++) {
        const ranks_cache *c = &m->caches[i];
        if (c->n_rows < 0 || c->n_path < 0 || c->n_committed < 0 || c->head < HEAD_NONE ||
            c->head > HEAD_ALL || c->whole < 0 || c->whole > 1 || (c->n_rows > 0 && !rows_first))
            return -1;
        rows_first = c->n_rows > 0;
        n_rows += c->n_rows;
        n_path += c->n_path;
    }
    return n_rows == m->head.n_rows ? n_path : -1;
}

bool ranks_read_rows(const drey_ranks *r, int32_t n_embd, ranks_pass *m)
{
    const uint8_t *body = ranks_body(r);
    const uint64_t n_bytes = ranks_got(r)->n_bytes;
    ranks_rows *h = &m->head;
    if (n_bytes < sizeof *h)
        return false;
    memcpy(h, body, sizeof *h);
    if (h->n_embd != n_embd || h->n_rows < 1 || h->n_caches < 1 ||
        h->n_caches > DREY_MAX_SESSIONS || h->n_copies < 0 || h->n_copies > RANKS_COPIES ||
        n_bytes < rows_at(h, 0))
        return false;
    m->caches = (const ranks_cache *)(const void *)(body + sizeof *h);
    m->copies = (const ranks_copy *)(const void *)(m->caches + h->n_caches);
    m->paths = (const int32_t *)(const void *)(m->copies + h->n_copies);
    int64_t n_path = add_up(m);
    m->parents = m->paths + (n_path > 0 ? n_path : 0);
    return n_path >= 0 && n_bytes == rows_at(h, n_path) + (uint64_t)h->n_rows * row_bytes(h);
}

void ranks_copy_rows(const ranks_pass *m, float *to, int64_t ld)
{
    const uint8_t *at = (const uint8_t *)(m->parents + m->head.n_rows);
    for (int32_t i = 0; i < m->head.n_rows; i++, at += row_bytes(&m->head))
        memcpy(to + i * ld, at, row_bytes(&m->head));
}
