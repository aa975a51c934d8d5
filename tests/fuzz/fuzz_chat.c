/* Property: any bytes are a template that is refused with a sentence, within its bounds, or that
 * writes a text of which every byte of the conversation is marked.
 *
 * A zero byte ends the template; what follows is the messages as JSON, or else the text of a user's
 * one message. The bounds are a hundredth of those in use, so that an endless loop ends soon. */
#include "template/jinja_run.h"
#include "template/json.h"
#include "fuzz/fuzz.h"

#include <string.h>

enum { MOST_TEXT = 1 << 20, MOST_OBJECTS = 4 << 20, MOST_STEPS = 300 * 1000 };

/* A byte that is in a text without a mark only if the template itself writes it. */
static const char SAID = '\x01';

static value given_messages(heap *r, const char *text, size_t n)
{
    value messages = value_from_json(r, text, n, true, "the messages");
    if (heap_ok(r) && messages.kind == VALUE_LIST)
        return messages;
    r->status = DREY_OK;
    messages = list_new(r, 1, STYLE_LIST);
    value message = map_new(r, 2);
    size_t at = text_begin(r);
    text_put_marked(r, text, n, true);
    text_put_marked(r, &SAID, 1, true);
    value content = text_end(r, at);
    map_set(r, message, string_of("role"), string_copy(r, "user", 4, true));
    map_set(r, message, string_of("content"), content);
    list_add(r, messages, message);
    return messages;
}

static void check_output(const heap *r, const capture *c, bool may_write)
{
    size_t n = 0;
    for (const piece *p = c->first; p; p = p->next) {
        n += p->text.n;
        for (uint32_t i = 0; i < p->text.n && !may_write; i++)
            FUZZ_CHECK(p->text.text[i] != SAID || text_is_marked(r, p->text.text + i));
    }
    FUZZ_CHECK(n == c->n_bytes && n <= MOST_TEXT);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    const char *text = (const char *)bytes;
    const char *zero = n_bytes ? memchr(text, 0, n_bytes) : NULL;
    size_t n_template = zero ? (size_t)(zero - text) : n_bytes;
    size_t n_rest = zero ? n_bytes - n_template - 1 : 0;
    char *chat_template = fuzz_copy(bytes, n_template);
    char *rest = fuzz_copy(bytes + n_bytes - n_rest, n_rest);
    heap r;
    drey_error err = {0};
    FUZZ_CHECK(heap_init(&r, MOST_TEXT, MOST_OBJECTS, MOST_STEPS, &err) == DREY_OK);
    r.where = "the template";
    capture c = {.end = &c.first};
    jinja j = {.r = &r, .out = &c};
    value variables = map_new(&r, 4);
    map_set(&r, variables, string_of("messages"), given_messages(&r, rest, n_rest));
    map_set(&r, variables, string_of("add_generation_prompt"), value_bool(true));
    map_set(&r, variables, string_of("eos_token"), string_of("</s>"));
    const node *body = jinja_parse(&r, chat_template, n_template);
    if (heap_ok(&r))
        jinja_run(&j, body, variables);
    if (heap_ok(&r))
        check_output(&r, &c,
                     memchr(chat_template, SAID, n_template) ||
                         memchr(chat_template, '\\', n_template));
    else
        FUZZ_CHECK(strlen(err.message) > 10 && err.code == r.status);
    FUZZ_CHECK(r.n_text <= MOST_TEXT && r.n_objects <= MOST_OBJECTS);
    heap_free(&r);
    free(rest);
    free(chat_template);
    return 0;
}
