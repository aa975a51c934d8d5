/* Property: any text in any form gives the same parts however it is cut, and copies of a reader
 * continue alike; calls are numbered, and what is whole has brackets that close; no more bytes
 * come out than went in, or six for each where texts become JSON. Arguments in the model's notation
 * are JSON, whatever was in their place. Any bytes as tools are refused with a sentence, or make a
 * grammar. */
#include "common/json_reader.h"
#include "fuzz/fuzz.h"
#include "reply/reply_forms.h"

enum { ROOM = 1 << 17 };

typedef struct taken {
    char text[ROOM]; /* [n]: kinds and bytes */
    size_t n, n_bytes;
    int32_t n_calls;
    int kind;
    bool open;      /* arguments may come */
    bool literal;   /* arguments are to be JSON, */
    size_t n_begin; /* from here on */
} taken;

static void check_json(const char *text, size_t n)
{
    json_reader json;
    json_event e;
    json_reader_init(&json, text, n, JSON_MOST_DEPTH);
    json.broken_utf8 = true;
    while ((e = json_next(&json)) != JSON_DONE)
        FUZZ_CHECK(e != JSON_BROKEN);
}

static void take(void *user, const drey_reply_part *part)
{
    taken *t = user;
    FUZZ_CHECK(part->kind <= DREY_REPLY_CALL_END && part->call < 1000);
    if (part->kind == DREY_REPLY_CALL) {
        FUZZ_CHECK(part->call == t->n_calls++ && part->n_bytes > 0 && part->n_bytes <= 128);
        t->open = true;
    }
    FUZZ_CHECK(part->kind < DREY_REPLY_ARGUMENTS || t->open);
    if (t->literal && part->kind == DREY_REPLY_CALL_END)
        check_json(t->text + t->n_begin, t->n - t->n_begin);
    t->open = t->open && part->kind != DREY_REPLY_CALL_END;
    if (t->kind != (int)part->kind || part->kind == DREY_REPLY_CALL)
        t->text[t->n++] = "CRKAE"[part->kind];
    if (t->kind != (int)part->kind && part->kind == DREY_REPLY_ARGUMENTS)
        t->n_begin = t->n;
    FUZZ_CHECK(t->n + part->n_bytes + 2 < ROOM);
    memcpy(t->text + t->n, part->bytes, part->n_bytes);
    t->n += part->n_bytes;
    t->n_bytes += part->n_bytes;
    t->kind = (int)part->kind;
}

/* Reads in pieces of `step` bytes, by two readers in turns. */
static void read_all(const reply_form *form, const char *text, size_t n, size_t step, taken *out)
{
    drey_reply_reader r, copy;
    memset(out, 0, sizeof *out);
    out->kind = -1;
    out->literal =
        reply_family_at(form->family)->literal.open || reply_family_at(form->family)->tag;
    drey_reply_begin(&r, reply_form_out(form));
    for (size_t at = 0; at < n; at += step) {
        copy = r;
        drey_reply_read(&copy, text + at, n - at < step ? n - at : step, take, out);
        memset(&r, 0xA5, sizeof r);
        r = copy;
    }
    drey_reply_end(&r, take, out);
    const bool becomes = reply_family_at(form->family)->parameter || out->literal;
    FUZZ_CHECK(out->n_bytes <= (becomes ? 6 * n : n));
    FUZZ_CHECK(r.n_calls == out->n_calls);
}

/* Takes the values of a tool "f" whose parameters have all kinds of values. */
static void take_values(reply_form *form)
{
    static const char f[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{"
        "\"s\":{\"type\":\"string\"},\"i\":{\"type\":\"integer\"},\"x\":{},"
        "\"n\":{\"type\":[\"string\",\"null\"]}}}}}]";
    reply_tools tools;
    FUZZ_CHECK(reply_tools_read(&tools, f, NULL) == DREY_OK);
    reply_values_take(form, &tools);
    FUZZ_CHECK(form->n_values == 5);
    reply_tools_free(&tools);
}

/* Writes the beginning of a call of "f", up to its arguments. */
static size_t call_of_f(reply_form *form, char *out)
{
    const reply_family *f = reply_family_at(form->family);
    const char *const parts[] = {f->begin, f->open, f->call};
    size_t n = 0;
    form->calls = true;
    for (int i = 0; i < 3; i++)
        for (const char *p = parts[i] ? parts[i] : ""; *p && *p != REPLY_ARGUMENTS; p++)
            if (*p != REPLY_TOKEN && *p != REPLY_TOKEN_END)
                out[n++] = *p == REPLY_NAME ? 'f' : *p == REPLY_ID ? '0' : *p;
    if (f->literal.open)
        out[n++] = f->literal.open;
    return n;
}

static bool hidden(const void *user, const char *text, size_t n)
{
    (void)user;
    FUZZ_CHECK(n > 0);
    return text[0] == '<';
}

static void check_tools(const char *bytes, size_t n)
{
    char *tools = malloc(n + 1), *gbnf = NULL;
    reply_form form;
    drey_reply_options options;
    drey_error err = {0};
    size_t n_gbnf;
    FUZZ_CHECK(tools);
    memcpy(tools, bytes, n);
    tools[n] = 0;
    drey_reply_options_init(&options);
    drey_status status =
        reply_form_of(&form, n % 2 ? "tools <tool_call>" : "tools <tool_call> <parameter=", tools,
                      &options, hidden, NULL, &err);
    if (status == DREY_OK)
        status = reply_grammar_of(&form, tools, &options, NULL, &gbnf, &n_gbnf, &err);
    if (status != DREY_OK)
        fuzz_check_refused(status, &err);
    free(gbnf);
    free(tools);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static taken whole, pieces;
    static char front[10000];
    if (n_bytes < 4 || n_bytes > 8000)
        return 0;
    int32_t n_families = 0, n_thinking = 0;
    while (reply_family_at(n_families))
        n_families++;
    while (reply_thinking_at(n_thinking))
        n_thinking++;
    const bool in_call = bytes[2] & 16; /* the text is in a call of "f" */
    reply_form form = {.family = bytes[0] % n_families,
                       .thinking = bytes[1] % n_thinking,
                       .calls = bytes[2] & 1,
                       .bare = (bytes[2] & 4) && reply_family_at(bytes[0] % n_families)->bare[0],
                       .thinks = (bytes[2] & 2) && bytes[1] % n_thinking};
    if (bytes[2] & 8) { /* the prompt has closed it */
        form.closed = (uint8_t)form.thinking;
        form.thinking = 0;
        form.thinks = false;
    }
    take_values(&form);
    const size_t n_front = in_call ? call_of_f(&form, front) : 0, n = n_front + n_bytes - 4;
    memcpy(front + n_front, bytes + 4, n_bytes - 4);
    char *text = fuzz_copy((const uint8_t *)front, n);
    read_all(&form, text, n, n_bytes, &whole);
    read_all(&form, text, n, 1 + bytes[3] % 16, &pieces);
    FUZZ_CHECK(whole.n == pieces.n && memcmp(whole.text, pieces.text, whole.n) == 0);
    check_tools(text + n_front, n_bytes - 4);
    free(text);
    return 0;
}
