/* Merging neighbours: see merge.h. */
#include "text/merge.h"

#include <assert.h>
#include <stdlib.h>

drey_status merge_begin(merger *m, size_t n, drey_error *err)
{
    m->n_symbols = m->n_heap = 0;
    if (n <= m->capacity)
        return DREY_OK;
    size_t capacity = m->capacity ? m->capacity : 64;
    while (capacity < n)
        capacity *= 2;
    merge_free(m);
    m->symbols = malloc(capacity * sizeof *m->symbols);
    /* Each merge takes one entry out and puts two in at most; there are fewer merges than symbols.
     */
    m->heap = malloc(2 * capacity * sizeof *m->heap);
    if (!m->symbols || !m->heap) {
        merge_free(m);
        FAIL(err, DREY_ERR_MEMORY, "no memory for a word of %zu bytes", n);
    }
    m->capacity = capacity;
    return DREY_OK;
}

void merge_free(merger *m)
{
    free(m->symbols);
    free(m->heap);
    m->symbols = NULL;
    m->heap = NULL;
    m->capacity = 0;
}

void merge_push(merger *m, int32_t id, uint32_t at, uint32_t n_bytes)
{
    assert(m->n_symbols < m->capacity);
    int32_t i = (int32_t)m->n_symbols++;
    m->symbols[i] = (symbol){id, i - 1, -1, -1, 0, at, n_bytes};
    if (i > 0)
        m->symbols[i - 1].next = i;
}

static void heap_push(merger *m, uint64_t key)
{
    assert(m->n_heap < 2 * m->capacity);
    size_t at = m->n_heap++;
    while (at > 0 && m->heap[(at - 1) / 2] > key) {
        m->heap[at] = m->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    m->heap[at] = key;
}

static uint64_t heap_pop(merger *m)
{
    uint64_t top = m->heap[0], last = m->heap[--m->n_heap];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= m->n_heap)
            break;
        if (child + 1 < m->n_heap && m->heap[child + 1] < m->heap[child])
            child++;
        if (m->heap[child] >= last)
            break;
        m->heap[at] = m->heap[child];
        at = child;
    }
    m->heap[at] = last;
    return top;
}

/* Looks up what symbol i and its right neighbour make. */
static void look(merger *m, int32_t i)
{
    symbol *left = &m->symbols[i];
    left->merged = -1;
    if (left->next < 0)
        return;
    m->pair(m->rules, left, &m->symbols[left->next]);
    if (left->merged >= 0)
        heap_push(m, (uint64_t)left->priority << 32 | (uint32_t)i);
}

void merge_run(merger *m)
{
    symbol *symbols = m->symbols;
    for (size_t i = 0; i + 1 < m->n_symbols; i++)
        look(m, (int32_t)i);
    while (m->n_heap > 0) {
        uint64_t key = heap_pop(m);
        int32_t i = (int32_t)(uint32_t)key;
        symbol *left = &symbols[i];
        if (left->merged < 0 || left->priority != key >> 32)
            continue;
        symbol *right = &symbols[left->next];
        left->id = left->merged;
        left->n_bytes += right->n_bytes;
        left->next = right->next;
        if (left->next >= 0)
            symbols[left->next].prev = i;
        right->merged = -1; /* its heap entries are void */
        look(m, i);
        if (left->prev >= 0)
            look(m, left->prev);
    }
}
