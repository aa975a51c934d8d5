/* Kept responses: see response_store.h. */
#include "serve/adapters/response_store.h"

#include <stdio.h>
#include <string.h>

static size_t bytes_of(const stored_response *e)
{
    return e->n_messages + e->n_response;
}

void response_store_forget(response_store *p, const stored_response *e)
{
    int32_t i = (int32_t)(e - p->entries);
    size_t n = bytes_of(e), end = e->at + n;
    memmove(p->memory + e->at, p->memory + end, p->n - end);
    p->n -= n;
    p->n_entries--;
    for (; i < p->n_entries; i++) {
        p->entries[i] = p->entries[i + 1];
        p->entries[i].at -= n;
    }
}

static stored_response *find(response_store *p, const char *id)
{
    for (int32_t i = 0; i < p->n_entries; i++)
        if (strcmp(p->entries[i].id, id) == 0)
            return &p->entries[i];
    return NULL;
}

/* Forgets the oldest until there are n bytes and a place. */
static void make_room(response_store *p, size_t n)
{
    while (p->n_entries > 0 && (p->n_entries == RESPONSE_STORE_MOST || p->capacity - p->n < n))
        response_store_forget(p, &p->entries[0]);
}

void response_store_name(response_store *p, const char *id)
{
    snprintf(p->entries[p->n_entries - 1].id, RESPONSE_STORE_ID_BYTES, "%s", id);
}

static void add(response_store *p, const char *id, size_t n_messages)
{
    p->entries[p->n_entries++] = (stored_response){.at = p->n, .n_messages = n_messages};
    response_store_name(p, id);
    p->n += n_messages;
}

bool response_store_begin(response_store *p, const char *front, const char *text, size_t n)
{
    size_t n_front = strlen(front);
    if (n > p->capacity / 2 - n_front)
        return false;
    make_room(p, n_front + n);
    memcpy(p->memory + p->n, front, n_front);
    memcpy(p->memory + p->n + n_front, text, n);
    add(p, "", n_front + n);
    return true;
}

/* Its messages become the last in memory, with what is free after them. */
bool response_store_open(response_store *p, const char *id, text_out *room)
{
    stored_response *e = find(p, id);
    if (!e)
        return false;
    while (p->capacity - p->n < p->capacity / 2 && e > p->entries) {
        response_store_forget(p, &p->entries[0]);
        e--;
    }
    const stored_response last = *e;
    size_t n = last.n_messages;
    if (p->capacity - p->n < n) {
        response_store_forget(p, e);
        return false;
    }
    memcpy(p->memory + p->n, p->memory + last.at, n);
    response_store_forget(p, e); /* what comes after it moves down, the copy as well */
    memmove(p->memory + p->n, p->memory + p->n + n, n);
    add(p, id, n);
    *room = (text_out){.text = p->memory + p->n - n, .n = n, .capacity = p->capacity - p->n + n};
    return true;
}

void response_store_close(response_store *p, const text_out *room, size_t n_messages)
{
    stored_response *e = &p->entries[p->n_entries - 1];
    if (room->full) {
        response_store_forget(p, e);
        return;
    }
    e->n_messages = n_messages;
    e->n_response = room->n - n_messages;
    p->n = e->at + room->n;
}

const stored_response *response_store_find(const response_store *p, const char *id, size_t n_id)
{
    for (int32_t i = 0; i < p->n_entries; i++) {
        const stored_response *e = &p->entries[i];
        if (e->n_response > 0 && strlen(e->id) == n_id && memcmp(e->id, id, n_id) == 0)
            return e;
    }
    return NULL;
}
