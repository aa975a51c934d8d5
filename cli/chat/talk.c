/* Conversations: see talk.h. */
#include "cli/chat/talk.h"

#include "common/json_buffer.h"

#include <stdlib.h>
#include <string.h>

static const char *const roles[] = {"system", "user", "assistant", NULL};

void talk_free(talk *t)
{
    while (t->n > 0)
        talk_drop(t);
    free(t->messages);
    free(t->ids);
    *t = (talk){0};
}

static drey_status no_memory(drey_error *err)
{
    FAIL(err, DREY_ERR_MEMORY, "out of memory for the conversation");
}

/* A message at place i, which those after it make room for. */
static drey_status insert(talk *t, size_t i, const char *role, const char *text, size_t n,
                          drey_error *err)
{
    if (t->n == t->capacity) {
        size_t capacity = 2 * t->n + 8;
        drey_chat_message *larger = realloc(t->messages, capacity * sizeof *larger);
        if (!larger)
            return no_memory(err);
        t->messages = larger;
        t->capacity = capacity;
    }
    char *copy = malloc(n + 1);
    if (!copy)
        return no_memory(err);
    memcpy(copy, text, n);
    copy[n] = 0;
    memmove(t->messages + i + 1, t->messages + i, (t->n - i) * sizeof *t->messages);
    t->messages[i] = (drey_chat_message){.role = role, .content = copy, .n_content = n};
    t->n++;
    return DREY_OK;
}

drey_status talk_add(talk *t, const char *role, const char *text, size_t n, drey_error *err)
{
    return insert(t, t->n, role, text, n, err);
}

drey_status talk_extend(talk *t, const char *text, size_t n, drey_error *err)
{
    drey_chat_message *last = &t->messages[t->n - 1];
    char *longer = malloc(last->n_content + n + 1);
    if (!longer)
        return no_memory(err);
    memcpy(longer, last->content, last->n_content);
    memcpy(longer + last->n_content, text, n);
    longer[last->n_content + n] = 0;
    talk_message_free(last);
    last->content = longer;
    last->n_content += n;
    return DREY_OK;
}

void talk_message_free(drey_chat_message *m)
{
    free((char *)(uintptr_t)m->content);
}

void talk_drop(talk *t)
{
    if (t->n > 0)
        talk_message_free(&t->messages[--t->n]);
}

drey_chat_message talk_take(talk *t)
{
    return t->messages[--t->n];
}

void talk_put_back(talk *t, const drey_chat_message *m)
{
    t->messages[t->n++] = *m;
}

static bool has_system(const talk *t)
{
    return t->n > 0 && strcmp(t->messages[0].role, "system") == 0;
}

void talk_reset(talk *t)
{
    while (t->n > (size_t)has_system(t))
        talk_drop(t);
}

drey_status talk_set_system(talk *t, const char *text, drey_error *err)
{
    if (*text) {
        TRY(insert(t, 0, "system", text, strlen(text), err));
    }
    size_t old = *text ? 1 : 0;
    if (old < t->n && strcmp(t->messages[old].role, "system") == 0) {
        talk_message_free(&t->messages[old]);
        memmove(t->messages + old, t->messages + old + 1, (t->n - old - 1) * sizeof *t->messages);
        t->n--;
    }
    return DREY_OK;
}

const char *talk_system(const talk *t)
{
    return has_system(t) ? t->messages[0].content : NULL;
}

bool talk_ends_with(const talk *t, const char *role)
{
    return t->n > 0 && strcmp(t->messages[t->n - 1].role, role) == 0;
}

static drey_status make_room(talk *t, size_t n_ids, drey_error *err)
{
    int32_t *larger = realloc(t->ids, (n_ids + 1024) * sizeof *larger);
    if (!larger)
        return no_memory(err);
    t->ids = larger;
    t->ids_capacity = n_ids + 1024;
    return DREY_OK;
}

drey_status talk_encode(talk *t, const drey_model *model, drey_error *err)
{
    drey_chat_request request;
    drey_chat_request_init(&request);
    request.messages = t->messages;
    request.n_messages = t->n;
    for (;;) {
        drey_status status = drey_chat_encode(model, &request, DREY_TOKENIZE_BOS, t->ids,
                                              t->ids_capacity, &t->n_ids, err);
        if (t->n_ids <= t->ids_capacity)
            return status;
        TRY(make_room(t, t->n_ids, err));
    }
}

drey_status talk_take_ids(talk *t, const int32_t *ids, size_t n, drey_error *err)
{
    if (n > t->ids_capacity)
        TRY(make_room(t, n, err));
    memcpy(t->ids, ids, n * sizeof *ids);
    t->n_ids = n;
    return DREY_OK;
}

/* ---- Notes ---- */

char *talk_note(const talk *t)
{
    json_buffer b;
    json_writer *w = json_buffer_begin(&b);
    w->indent = w->key = (json_span){NULL, 0};
    w->broken_utf8 = true; /* what was said stays as it is */
    json_put_array(w, "messages");
    for (size_t i = 0; i < t->n; i++) {
        json_put_object(w, NULL);
        json_put_text(w, "role", t->messages[i].role);
        json_put_text(w, "content", t->messages[i].content);
        json_close(w, '}');
    }
    json_close(w, ']');
    return json_buffer_end(&b);
}

static drey_status take_messages(talk *t, const json_value *list, drey_error *err)
{
    for (const json_value *m = list->first; m; m = m->next) {
        const char *role = json_member_text(m, "role");
        const char *text = json_member_text(m, "content");
        const char *known = NULL;
        for (int i = 0; role && roles[i]; i++)
            known = strcmp(roles[i], role) == 0 ? roles[i] : known;
        if (!known || !text)
            FAIL(err, DREY_ERR_FORMAT, "the file holds a message of an unknown kind");
        TRY(talk_add(t, known, text, strlen(text), err));
    }
    return DREY_OK;
}

drey_status talk_read_note(talk *t, const char *note, size_t n, drey_error *err)
{
    talk read = {0};
    json_document json;
    const json_value *list = json_member_array(json_load(&json, note, note ? n : 0), "messages");
    drey_status status =
        list ? take_messages(&read, list, err)
             : error_set(err, DREY_ERR_FORMAT, "the file holds a session, but no conversation");
    json_free(&json);
    if (status != DREY_OK) {
        talk_free(&read);
        return status;
    }
    talk_free(t);
    *t = read;
    return DREY_OK;
}
