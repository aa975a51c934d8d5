/* Kept responses: see past.h. */
#include "serve/dialects/past.h"

#include <stdio.h>
#include <string.h>

static size_t bytes_of(const past_entry *e)
{
    return e->n_messages + e->n_response;
}

void past_forget(past *p, const past_entry *e)
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

static past_entry *find(past *p, const char *id)
{
    for (int32_t i = 0; i < p->n_entries; i++)
        if (strcmp(p->entries[i].id, id) == 0)
            return &p->entries[i];
    return NULL;
}

/* Forgets the oldest until there are n bytes and a place. */
static void make_room(past *p, size_t n)
{
    while (p->n_entries > 0 && (p->n_entries == PAST_MOST || p->capacity - p->n < n))
        past_forget(p, &p->entries[0]);
}

void past_name(past *p, const char *id)
{
    snprintf(p->entries[p->n_entries - 1].id, PAST_ID_BYTES, "%s", id);
}

static void add(past *p, const char *id, size_t n_messages)
{
    p->entries[p->n_entries++] = (past_entry){.at = p->n, .n_messages = n_messages};
    past_name(p, id);
    p->n += n_messages;
}

bool past_begin(past *p, const char *front, const char *text, size_t n)
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
bool past_open(past *p, const char *id, text_out *room)
{
    past_entry *e = find(p, id);
    if (!e)
        return false;
    while (p->capacity - p->n < p->capacity / 2 && e > p->entries) {
        past_forget(p, &p->entries[0]);
        e--;
    }
    const past_entry last = *e;
    size_t n = last.n_messages;
    if (p->capacity - p->n < n) {
        past_forget(p, e);
        return false;
    }
    memcpy(p->memory + p->n, p->memory + last.at, n);
    past_forget(p, e); /* what comes after it moves down, the copy as well */
    memmove(p->memory + p->n, p->memory + p->n + n, n);
    add(p, id, n);
    *room = (text_out){.text = p->memory + p->n - n, .n = n, .capacity = p->capacity - p->n + n};
    return true;
}

void past_close(past *p, const text_out *room, size_t n_messages)
{
    past_entry *e = &p->entries[p->n_entries - 1];
    if (room->full) {
        past_forget(p, e);
        return;
    }
    e->n_messages = n_messages;
    e->n_response = room->n - n_messages;
    p->n = e->at + room->n;
}

const past_entry *past_find(const past *p, const char *id, size_t n_id)
{
    for (int32_t i = 0; i < p->n_entries; i++) {
        const past_entry *e = &p->entries[i];
        if (e->n_response > 0 && strlen(e->id) == n_id && memcmp(e->id, id, n_id) == 0)
            return e;
    }
    return NULL;
}
