/* The public functions of conversations: see drey/chat.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drey/chat.h"
#include "template/conversation.h"
#include "engine/continued.h"
#include "engine/engine.h"
#include "text/ids.h"
#include "text/tokenizer.h"

void drey_chat_request_init(drey_chat_request *request)
{
    *request = (drey_chat_request){0};
}

static gguf_string named_template(const drey_model *m, const char *name)
{
    char key[128];
    int n = snprintf(key, sizeof key, "tokenizer.chat_template.%s", name);
    return n > 0 && (size_t)n < sizeof key ? gguf_text(m->file, key) : (gguf_string){NULL, 0};
}

/* The template of conversations without tools, and what takes its place. */
static gguf_string default_template(const drey_model *m)
{
    gguf_string chat = gguf_text(m->file, "tokenizer.chat_template");
    return chat.text ? chat : named_template(m, "default");
}

drey_status model_chat_template(const drey_model *m, const char *tools_json, char **out,
                                drey_error *err)
{
    gguf_string chat = {NULL, 0};
    if (tools_json && strchr(tools_json, '{'))
        chat = named_template(m, "tool_use");
    if (!chat.text)
        chat = default_template(m);
    if (!chat.text)
        FAIL_HINT(err, DREY_ERR_UNSUPPORTED, DREY_HINT_CHAT,
                  "the model has no chat template; write the prompt in the form it was made for");
    if (memchr(chat.text, 0, chat.n_bytes))
        FAIL_HINT(err, DREY_ERR_FORMAT, DREY_HINT_CHAT,
                  "the model's chat template has a zero byte, which no template has");
    *out = strndup(chat.text, chat.n_bytes);
    if (!*out)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a chat template of %zu bytes", chat.n_bytes);
    return DREY_OK;
}

void drey_model_chat_template(const drey_model *model, const char **text, size_t *n)
{
    gguf_string chat = default_template(model);
    *text = chat.text ? chat.text : "";
    *n = chat.text ? chat.n_bytes : 0;
}

void drey_model_named_template(const drey_model *model, const char *name, const char **text,
                               size_t *n)
{
    gguf_string chat = named_template(model, name);
    *text = chat.text ? chat.text : "";
    *n = chat.text ? chat.n_bytes : 0;
}

static drey_status render(const drey_model *m, const drey_chat_request *request, chat_text *out,
                          drey_error *err)
{
    drey_chat_request filled = *request;
    char *own = NULL;
    *out = (chat_text){0};
    if (!filled.chat_template) {
        TRY(model_chat_template(m, filled.tools_json, &own, err));
        filled.chat_template = own;
    }
    drey_status status = filled.continues ? continued_render(m->tokenizer, &filled, out, err)
                                          : chat_render_for(m->tokenizer, &filled, out, err);
    if (status == DREY_ERR_UNSUPPORTED && err)
        err->hint = DREY_HINT_CHAT;
    free(own);
    return status;
}

drey_status drey_chat_render(const drey_model *m, const drey_chat_request *request, char **text,
                             size_t *n_bytes, drey_error *err)
{
    chat_text out;
    *text = NULL;
    *n_bytes = 0;
    TRY(render(m, request, &out, err));
    free(out.plain);
    *text = out.text;
    *n_bytes = out.n_bytes;
    return DREY_OK;
}

drey_status drey_chat_encode(const drey_model *m, const drey_chat_request *request, int flags,
                             int32_t *ids, size_t capacity, size_t *n_ids, drey_error *err)
{
    chat_text out;
    id_sink sink = {ids, capacity, 0};
    *n_ids = 0;
    TRY(render(m, request, &out, err));
    const parted_text x = {out.text, out.n_bytes, out.plain,
                           flags & DREY_TOKENIZE_SPECIAL ? 0 : out.n_plain};
    drey_status status =
        tokenizer_encode_around(m->tokenizer, &x, flags | DREY_TOKENIZE_SPECIAL, &sink, err);
    *n_ids = sink.n;
    chat_text_free(&out);
    return status;
}

/* The last token of text[0..n), if nothing but special tokens and blanks is there. -1: none. */
static int32_t last_special(const tokenizer *t, const char *text, size_t n)
{
    enum { MOST = 16 };
    int32_t ids[MOST], last = -1;
    size_t n_ids = 0;
    if (tokenizer_encode(t, text, n, DREY_TOKENIZE_SPECIAL | DREY_TOKENIZE_INNER, ids, MOST, &n_ids,
                         NULL) != DREY_OK)
        return -1;
    for (size_t i = 0; i < n_ids; i++) {
        char piece[9] = "";
        size_t n_piece = tokenizer_piece(t, ids[i], true, false, piece, sizeof piece - 1);
        if (tokenizer_is_special(t, ids[i]))
            last = ids[i];
        else if (strspn(piece, " \n\r\t") < n_piece)
            return -1;
    }
    return last;
}

void model_learn_end(drey_model *m)
{
    static const char answer[] = "Yes.";
    const drey_chat_message messages[] = {{"user", "Hello", 5}, {"assistant", answer, 4}};
    const drey_chat_request request = {
        .messages = messages, .n_messages = 2, .no_generation_prompt = true};
    chat_text x;
    if (!gguf_text(m->file, "tokenizer.chat_template").text ||
        render(m, &request, &x, NULL) != DREY_OK)
        return;
    for (size_t i = x.n_plain; i-- > 0;) {
        const text_range *r = &x.plain[i];
        if (r->end - r->begin != sizeof answer - 1 ||
            memcmp(x.text + r->begin, answer, sizeof answer - 1) != 0)
            continue;
        int32_t id = last_special(m->tokenizer, x.text + r->end, x.n_bytes - r->end);
        if (id >= 0)
            tokenizer_add_end(m->tokenizer, id);
        break;
    }
    chat_text_free(&x);
}

/* One turn as a request; messages[2] is its room. */
static drey_chat_request one_turn(const char *system, const char *user,
                                  drey_chat_message messages[static 2])
{
    size_t n = 0;
    if (system)
        messages[n++] = (drey_chat_message){"system", system, strlen(system)};
    messages[n++] = (drey_chat_message){"user", user, strlen(user)};
    return (drey_chat_request){.messages = messages, .n_messages = n};
}

drey_status drey_chat_format(const drey_model *m, const char *system, const char *user, char **out,
                             drey_error *err)
{
    drey_chat_message messages[2];
    const drey_chat_request request = one_turn(system, user, messages);
    size_t n_bytes;
    return drey_chat_render(m, &request, out, &n_bytes, err);
}

drey_status drey_chat_tokenize(const drey_model *m, const char *system, const char *user, int flags,
                               int32_t *ids, size_t capacity, size_t *n_ids, drey_error *err)
{
    drey_chat_message messages[2];
    const drey_chat_request request = one_turn(system, user, messages);
    return drey_chat_encode(m, &request, flags, ids, capacity, n_ids, err);
}
