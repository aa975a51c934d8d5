/* Writes a conversation as a text with marks: see conversation.h. */
#include "template/conversation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/num.h"
#include "common/size_text.h"
#include "drey/chat.h"
#include "template/jinja_run.h"
#include "template/json.h"
#include "template/left_out.h"
#include "text/tokenizer.h"

/* The date for a template when the caller gives none: always the same, so that a text can be
 * reproduced. */
static const int64_t NO_CLOCK_S = 1767225600; /* 2026-01-01 */
static const char month_names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

/* ---- What a template is given ---- */

static value given_messages(heap *r, const drey_chat_request *q)
{
    value list = list_new(r, (uint32_t)q->n_messages, STYLE_LIST);
    if (q->messages_json)
        return value_from_json(r, q->messages_json, strlen(q->messages_json), true, "the messages");
    list.marked = true;
    for (size_t i = 0; i < q->n_messages && heap_ok(r); i++) {
        const drey_chat_message *m = &q->messages[i];
        value message = map_new(r, 2);
        message.marked = true;
        map_set(r, message, string_of("role"), string_copy(r, m->role, strlen(m->role), true));
        map_set(r, message, string_of("content"), string_copy(r, m->content, m->n_content, true));
        list_add(r, list, message);
    }
    return list;
}

static value given_json(heap *r, const char *text, const char *what, value_kind wanted)
{
    value v = text ? value_from_json(r, text, strlen(text), true, what) : value_none();
    if (text && v.kind != wanted)
        heap_fail(r, DREY_ERR_USAGE, "%s are no JSON %s", what,
                  wanted == VALUE_LIST ? "array" : "object");
    return v;
}

static void check_messages(heap *r, value messages)
{
    if (heap_ok(r) && messages.kind != VALUE_LIST)
        heap_fail(r, DREY_ERR_USAGE, "the messages are no JSON array");
    for (uint32_t i = 0; heap_ok(r) && i < messages.list->n; i++) {
        value message = messages.list->items[i];
        const value *role = message.kind == VALUE_MAP ? map_get_text(r, message, "role") : NULL;
        if (!role || role->kind != VALUE_STRING)
            heap_fail(r, DREY_ERR_USAGE, "message %u is no object with a \"role\"", i + 1);
    }
}

/* ---- The beginning of an answer ---- */

/* Says what happens to the last message of a conversation that an answer continues. */
typedef struct ending {
    chat_begun *begun; /* filled; NULL: nobody wants it */
    /* fields of the message that takes its place; NULL: none does */
    const char *reasoning, *content;
} ending;

/* A member that is a text; else of no bytes. */
static value text_in(heap *r, value message, const char *key)
{
    const value *v = map_get_text(r, message, key);
    return v && v->kind == VALUE_STRING ? *v : string_of("");
}

static void keep_begun(heap *r, value message, chat_begun *begun)
{
    static const char *const names[] = {"reasoning_content", "reasoning", "thinking"};
    value content = text_in(r, message, "content"), reasoning = string_of("");
    for (int i = 0; i < 3 && reasoning.n == 0; i++)
        reasoning = text_in(r, message, names[i]);
    begun->text = malloc((size_t)reasoning.n + content.n + 1);
    if (!begun->text) {
        heap_fail(r, DREY_ERR_MEMORY, "no memory for the beginning of an answer");
        return;
    }
    memcpy(begun->text, reasoning.text, reasoning.n);
    memcpy(begun->text + reasoning.n, content.text, content.n);
    begun->n_reasoning = reasoning.n;
    begun->n_content = content.n;
}

void chat_begun_free(chat_begun *b)
{
    free(b->text);
    *b = (chat_begun){0};
}

static value answer_of(heap *r, const ending *e)
{
    value message = map_new(r, 4);
    map_set(r, message, string_of("role"), string_of("assistant"));
    map_set(r, message, string_of("content"), string_of(e->content));
    if (e->reasoning) {
        map_set(r, message, string_of("reasoning_content"), string_of(e->reasoning));
        map_set(r, message, string_of("thinking"), string_of(e->reasoning));
    }
    return message;
}

/* Takes the last message out. */
static void take_last(heap *r, value messages, const ending *e)
{
    uint32_t n = messages.list->n;
    value last = n ? messages.list->items[n - 1] : value_none();
    const value *role = n ? map_get_text(r, last, "role") : NULL;
    const value *content = n ? map_get_text(r, last, "content") : NULL;
    if (!role || !string_is(*role, "assistant"))
        heap_fail(r, DREY_ERR_USAGE, "an answer continues a last message of the assistant");
    else if (content && content->kind != VALUE_STRING && content->kind != VALUE_NONE)
        heap_fail(r, DREY_ERR_USAGE, "the beginning of an answer has a text as its content");
    if (!heap_ok(r))
        return;
    messages.list->n--;
    if (e->begun)
        keep_begun(r, last, e->begun);
    if (e->content)
        list_add(r, messages, answer_of(r, e));
}

/* ---- Variables ---- */

/* Adds values that a few templates read besides: tools as text, and the day. */
static void add_defaults(heap *r, value map, const drey_chat_request *q)
{
    char day[32];
    time_t now = (time_t)q->now_s;
    struct tm parts;
    const char *tools = q->tools_json ? q->tools_json : "";
    map_set(r, map, string_of("functions"), string_copy(r, tools, strlen(tools), true));
    if (q->now_s == 0 || !gmtime_r(&now, &parts))
        return;
    snprintf(day, sizeof day, "%02d %.3s %d", parts.tm_mday, month_names + 3 * parts.tm_mon,
             parts.tm_year + 1900);
    map_set(r, map, string_of("date_string"), string_copy(r, day, strlen(day), false));
    snprintf(day, sizeof day, "%.3s %02d %d", month_names + 3 * parts.tm_mon, parts.tm_mday,
             parts.tm_year + 1900);
    map_set(r, map, string_of("datetime"), string_copy(r, day, strlen(day), false));
}

/* Makes the variables under apply_chat_template's names; what is not given is None there. */
static value variables(heap *r, const drey_chat_request *q, value messages, const char *bos,
                       const char *eos)
{
    value map = map_new(r, 8);
    map_set(r, map, string_of("messages"), messages);
    value tools = given_json(r, q->tools_json, "the tools", VALUE_LIST);
    map_set(r, map, string_of("tools"), tools);
    if (q->tools_json)
        map_set(r, map, string_of("xml_tools"), tools); /* SmolLM3's name */
    map_set(r, map, string_of("documents"), value_none());
    add_defaults(r, map, q);
    map_set(r, map, string_of("add_generation_prompt"), value_bool(!q->no_generation_prompt));
    map_set(r, map, string_of("bos_token"), string_of(bos));
    map_set(r, map, string_of("eos_token"), string_of(eos));
    if (!q->variables_json)
        return map;
    value own = given_json(r, q->variables_json, "the template's variables", VALUE_MAP);
    for (uint32_t i = 0; heap_ok(r) && i < own.map->n; i++)
        map_set(r, map, own.map->pairs[i].key, own.map->pairs[i].item);
    return map;
}

/* The messages with the system text before the first user's text; false: not possible. */
static bool fold_system(heap *r, value *messages)
{
    const value_list *l = messages->list;
    if (l->n < 2)
        return false;
    /* They exist, but the steps may be used up during the search. */
    const value *from = map_get_text(r, l->items[0], "role");
    const value *to = map_get_text(r, l->items[1], "role");
    if (!from || !to || !string_is(*from, "system") || !string_is(*to, "user"))
        return false;
    const value *system = map_get_text(r, l->items[0], "content");
    const value *user = map_get_text(r, l->items[1], "content");
    if (!system || !user || system->kind != VALUE_STRING || user->kind != VALUE_STRING)
        return false;
    size_t at = text_begin(r);
    text_put_value(r, *system);
    text_put_marked(r, "\n\n", 2, true);
    text_put_value(r, *user);
    value both = text_end(r, at), folded = list_new(r, l->n, STYLE_LIST), first = map_new(r, 2);
    folded.marked = first.marked = true;
    map_set(r, first, string_of("role"), *to);
    map_set(r, first, string_of("content"), both);
    list_add(r, folded, first);
    for (uint32_t i = 2; i < l->n; i++)
        list_add(r, folded, l->items[i]);
    *messages = folded;
    return heap_ok(r);
}

/* ---- What it writes ---- */

/* The member of an object that is one. */
static value object_in(heap *r, value v, const char *key)
{
    const value *found = v.kind == VALUE_MAP ? map_get_text(r, v, key) : NULL;
    return found && found->kind == VALUE_MAP ? *found : value_none();
}

static void describe(heap *r, value v)
{
    if (v.kind == VALUE_MAP && !map_get_text(r, v, "description"))
        map_set(r, v, string_of("description"), string_of(""));
}

/* Adds the fields that tools may lack and some templates want: descriptions, and parameters. */
static void complete_tools(heap *r, value tools)
{
    for (uint32_t i = 0; heap_ok(r) && i < tools.list->n; i++) {
        value function = object_in(r, tools.list->items[i], "function");
        if (function.kind != VALUE_MAP)
            continue;
        describe(r, function);
        value parameters = object_in(r, function, "parameters");
        if (parameters.kind != VALUE_MAP) {
            parameters = map_new(r, 2);
            map_set(r, parameters, string_of("type"), string_of("object"));
            map_set(r, parameters, string_of("properties"), map_new(r, 1));
            map_set(r, function, string_of("parameters"), parameters);
        }
        value properties = object_in(r, parameters, "properties");
        for (uint32_t k = 0; properties.kind == VALUE_MAP && k < properties.map->n; k++)
            describe(r, properties.map->pairs[k].item);
    }
}

/* Ranges of the bytes that are marked; counts them where `out` is NULL. */
static size_t find_ranges(const heap *r, const capture *c, text_range *out)
{
    size_t n = 0, at = 0;
    bool inside = false;
    for (const piece *p = c->first; p; p = p->next) {
        for (uint32_t i = 0; i < p->text.n; i++, at++) {
            bool marked = text_is_marked(r, p->text.text + i);
            if (marked && !inside && out)
                out[n].begin = at;
            if (marked && out)
                out[n - inside].end = at + 1;
            n += marked && !inside;
            inside = marked;
        }
    }
    return n;
}

/* prompted_by: the template, if an answer is to follow; else NULL. */
static drey_status take_text(const heap *r, const capture *c, const char *prompted_by,
                             chat_text *out, drey_error *err)
{
    enum { MOST_TURN = 32 };
    size_t n_plain = find_ranges(r, c, NULL), at = 0;
    char *text = malloc(c->n_bytes + MOST_TURN + 1);
    text_range *plain = malloc(max_size(n_plain, 1) * sizeof *plain);
    if (!text || !plain) {
        free(text);
        free(plain);
        FAIL(err, DREY_ERR_MEMORY, "no memory for a conversation of %zu bytes", c->n_bytes);
    }
    for (const piece *p = c->first; p; at += p->text.n, p = p->next)
        memcpy(text + at, p->text.text, p->text.n);
    text[at] = 0;
    if (prompted_by)
        at = (size_t)(stpcpy(text + at, left_out_turn(prompted_by, text, at)) - text);
    find_ranges(r, c, plain);
    *out = (chat_text){text, at, plain, n_plain};
    return DREY_OK;
}

/* ---- Rendering ---- */

typedef enum outcome { RENDERED, REFUSED, FAILED } outcome;

static outcome render_once(heap *r, const drey_chat_request *q, const node *body, value vars,
                           capture *c)
{
    jinja j = {
        .r = r, .out = c, .has_clock = q->now_s != 0, .now_s = q->now_s ? q->now_s : NO_CLOCK_S};
    *c = (capture){.end = &c->first};
    jinja_run(&j, body, vars);
    return heap_ok(r) ? RENDERED : j.refused ? REFUSED : FAILED;
}

/* Renders in a room that exists; the error is the room's. *prompted: an answer is to follow. */
static void render_in(heap *r, const drey_chat_request *q, const char *bos, const char *eos,
                      const ending *e, capture *c, bool *prompted)
{
    value messages = given_messages(r, q);
    check_messages(r, messages);
    if (heap_ok(r) && q->continues)
        take_last(r, messages, e);
    left_out_calls(r, q->chat_template, messages);
    value vars = variables(r, q, messages, bos, eos);
    const value *wanted = heap_ok(r) ? map_get_text(r, vars, "add_generation_prompt") : NULL;
    *prompted = wanted && value_true(*wanted);
    const node *body =
        heap_ok(r) ? jinja_parse(r, q->chat_template, strlen(q->chat_template)) : NULL;
    outcome got = heap_ok(r) ? render_once(r, q, body, vars, c) : RENDERED;
    if (got == RENDERED || (got == FAILED && r->status != DREY_ERR_USAGE))
        return;
    /* A template that accepts no system message raises an exception; one that is made for tools
     * alone wants a list of them, and some want each described. */
    r->status = DREY_OK;
    drey_error first = *r->err;
    bool other = got == FAILED;
    const value *tools = map_get_text(r, vars, "tools"); /* NULL: the steps are used up */
    if (other && q->tools_json && tools)
        complete_tools(r, *tools);
    else if (other)
        map_set(r, vars, string_of("tools"), list_new(r, 0, STYLE_LIST));
    else if ((other = fold_system(r, &messages)))
        map_set(r, vars, string_of("messages"), messages);
    if (other && render_once(r, q, body, vars, c) == RENDERED)
        return;
    r->status = first.code;
    *r->err = first;
}

static size_t length_of(const char *s)
{
    return s ? strlen(s) : 0;
}

static drey_status check_sizes(const drey_chat_request *q, size_t *n_input, drey_error *err)
{
    size_t n_template = strlen(q->chat_template), n = 0;
    if (n_template > CHAT_TEMPLATE_BYTES)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model's chat template has %zu bytes, and templates of more than %d are not read; "
             "write the prompt in the model's own format instead",
             n_template, CHAT_TEMPLATE_BYTES);
    for (size_t i = 0; i < q->n_messages && n <= CHAT_INPUT_BYTES; i++)
        n += q->messages[i].n_content + 100; /* and what an object takes */
    n += length_of(q->messages_json) + length_of(q->tools_json) + length_of(q->variables_json);
    if (n > CHAT_INPUT_BYTES)
        FAIL(err, DREY_ERR_USAGE, "a conversation of more than %s fits into no context",
             SIZE_TEXT(CHAT_INPUT_BYTES));
    *n_input = n + n_template;
    return DREY_OK;
}

static drey_status render(const drey_chat_request *request, const char *bos, const char *eos,
                          const ending *e, chat_text *out, drey_error *err)
{
    heap r;
    capture c;
    drey_error own = {0};
    size_t n_input = 0;
    *out = (chat_text){0};
    TRY(check_sizes(request, &n_input, err));
    TRY(heap_init(&r, chat_room_text(n_input), chat_room_objects(n_input), CHAT_STEPS, err));
    r.err = &own;
    r.where = "the chat template";
    bool prompted = false;
    render_in(&r, request, bos, eos, e, &c, &prompted);
    drey_status status = r.status;
    if (status == DREY_OK)
        status = take_text(&r, &c, prompted ? request->chat_template : NULL, out, &own);
    if (status != DREY_OK && err)
        *err = own;
    heap_free(&r);
    return status;
}

drey_status chat_render(const drey_chat_request *request, const char *bos, const char *eos,
                        chat_text *out, drey_error *err)
{
    return render(request, bos, eos, &(ending){.begun = NULL}, out, err);
}

void chat_text_free(chat_text *t)
{
    free(t->text);
    free(t->plain);
    *t = (chat_text){0};
}

/* ---- With a tokenizer ---- */

/* Writes the text that a token has in templates; "" for none, and for those that are too long. */
static void token_text(const tokenizer *t, int32_t id, char out[static 256])
{
    size_t n = tokenizer_piece(t, id, true, false, out, 256);
    out[n < 256 ? n : 0] = 0;
}

/* Removes the first n bytes, which the conversation did not write. */
static void drop_front(chat_text *t, size_t n)
{
    memmove(t->text, t->text + n, t->n_bytes - n + 1);
    t->n_bytes -= n;
    for (size_t i = 0; i < t->n_plain; i++) {
        t->plain[i].begin -= n;
        t->plain[i].end -= n;
    }
}

static drey_status render_for(const tokenizer *t, const drey_chat_request *request, const ending *e,
                              chat_text *out, drey_error *err)
{
    char bos[256], eos[256];
    token_text(t, tokenizer_bos(t), bos);
    token_text(t, tokenizer_eos(t), eos);
    TRY(render(request, bos, eos, e, out, err));
    size_t n = strlen(bos);
    if (tokenizer_wants_bos(t) && n > 0 && n <= out->n_bytes && memcmp(out->text, bos, n) == 0 &&
        (out->n_plain == 0 || out->plain[0].begin >= n))
        drop_front(out, n);
    return DREY_OK;
}

drey_status chat_render_for(const tokenizer *t, const drey_chat_request *request, chat_text *out,
                            drey_error *err)
{
    return render_for(t, request, &(ending){.begun = NULL}, out, err);
}

drey_status chat_render_begun(const tokenizer *t, const drey_chat_request *request, chat_text *out,
                              chat_begun *begun, drey_error *err)
{
    drey_chat_request asked = *request;
    *begun = (chat_begun){0};
    asked.no_generation_prompt = false; /* what is begun follows it */
    drey_status status = render_for(t, &asked, &(ending){.begun = begun}, out, err);
    if (status != DREY_OK)
        chat_begun_free(begun);
    return status;
}

drey_status chat_render_answer(const tokenizer *t, const drey_chat_request *request,
                               const char *reasoning, const char *content, chat_text *out)
{
    drey_chat_request asked = *request;
    asked.no_generation_prompt = true;
    return render_for(t, &asked, &(ending){.reasoning = reasoning, .content = content}, out, NULL);
}
