/* The prompt's text is made of its tokens again, and the messages are looked for in it, one after
 * the other: the template is any program, so nothing else says where they are. */
#include "serve/parse/message_ends.h"

#include <string.h>

enum { CHUNK = 32 }; /* tokens whose bytes are made at a time */

typedef struct prompt_text {
    const request *request;
    const drey_model *model;
    char *text; /* [n]: of all tokens */
    size_t n;
    size_t from; /* bytes before the chunk, */
    size_t at;   /* index of its first token */
} prompt_text;

static size_t bytes_of(const prompt_text *p, size_t first, size_t n_ids)
{
    char bytes[CHUNK * 256];
    size_t n = 0;
    drey_detokenize(p->model, p->request->prompts.ids + first, n_ids, DREY_TOKENIZE_SPECIAL, bytes,
                    sizeof bytes, &n, NULL);
    return n;
}

/* Number of tokens that it takes to have n_bytes; the calls ascend. */
static int32_t tokens_of(prompt_text *p, size_t n_bytes)
{
    const size_t n_ids = p->request->prompts.n_ids;
    for (size_t n; p->at + CHUNK <= n_ids; p->at += CHUNK, p->from += n) {
        n = bytes_of(p, p->at, CHUNK);
        if (p->from + n >= n_bytes)
            break;
    }
    size_t at = p->at;
    for (size_t done = p->from; at < n_ids && done < n_bytes; at++)
        done += bytes_of(p, at, 1);
    return (int32_t)at;
}

/* The text that the prompt was made of: parts were put together in the first (parse_chat.c). */
static const char *text_of(json_value *message)
{
    const json_value *content = json_member(message, "content");
    if (content && content->type == JSON_ARRAY)
        content = content->first ? json_member(content->first, "text") : NULL;
    return content && content->type == JSON_STRING ? content->text : "";
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* The end of the message's text in the prompt's at or after `from`, without blanks, which templates
 * cut off; 0: it is not there. */
static size_t end_of(const prompt_text *p, size_t from, const char *text)
{
    size_t n = strlen(text);
    while (n > 0 && is_blank(text[n - 1]))
        n--;
    while (n > 0 && is_blank(*text))
        text++, n--;
    const char *found = n ? memmem(p->text + from, p->n - from, text, n) : NULL;
    return found ? (size_t)(found - p->text) + n : 0;
}

void message_ends_find(request *t, json_value *messages, const drey_model *model, text_out *scratch)
{
    prompt_text p = {.request = t, .model = model, .text = scratch->text};
    size_t from = 0;
    t->parts.n = 0;
    if (!messages || drey_detokenize(model, t->prompts.ids, t->prompts.n_ids, DREY_TOKENIZE_SPECIAL,
                                     p.text, scratch->capacity, &p.n, NULL) != DREY_OK)
        return;
    for (json_value *m = messages->first; m && t->parts.n < REQUEST_MOST_MESSAGES; m = m->next) {
        size_t end = end_of(&p, from, text_of(m));
        t->parts.end[t->parts.n++] = end ? tokens_of(&p, end) : -1;
        from = end ? end : from;
    }
}

int32_t message_ends_at(const request *t, int64_t at)
{
    int32_t i = 0;
    while (i < t->parts.n && t->parts.end[i] <= at)
        i++;
    return i < t->parts.n ? i : -1;
}
