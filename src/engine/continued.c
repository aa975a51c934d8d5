/* The beginning of an answer, after the prompt of the messages before it: see continued.h.
 *
 * How a template writes reasoning and text is seen from an answer of two known words, which it is
 * given in place of the beginning:
 *
 *     <|im_start|>assistant\n<think>\nWONDER\n</think>\n\nANSWER<|im_end|>
 *     |------- the prompt --------|lead|----- between -----|
 *
 * Many templates leave the reasoning of answers out. What comes between is then made of the marks
 * that the template's family has. */
#include "engine/continued.h"

#include <stdlib.h>
#include <string.h>

#include "reply/reply_forms.h"
#include "text/tokenizer.h"

static const char wonder[] = "Wonder7Wonder", answer[] = "Answer7Answer";
enum { MARK_BYTES = 64 };

typedef struct span {
    const char *text;
    size_t n;
} span;

static span span_of(const char *text)
{
    return (span){text, strlen(text)};
}

/* A mark of a form as it is in texts. */
static span bare_mark(const char *mark, char room[MARK_BYTES])
{
    size_t n = 0;
    for (const char *p = mark ? mark : ""; *p && n + 1 < MARK_BYTES; p++)
        if (*p != REPLY_TOKEN && *p != REPLY_TOKEN_END)
            room[n++] = *p;
    room[n] = 0;
    return (span){room, n};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Returns where the mark at the end of text[0..n) begins, blanks after it left aside; SIZE_MAX:
 * there is none. */
static size_t end_mark(const char *text, size_t n, span mark)
{
    while (n > 0 && is_blank(text[n - 1]))
        n--;
    bool is = mark.n > 0 && n >= mark.n && memcmp(text + n - mark.n, mark.text, mark.n) == 0;
    return is ? n - mark.n : SIZE_MAX;
}

/* The last place of a word in text[0..n); SIZE_MAX: it is not there. */
static size_t last_place(const char *text, size_t n, span word)
{
    size_t found = SIZE_MAX;
    for (const char *at = memmem(text, n, word.text, word.n); at;
         at = memmem(at + 1, n - (size_t)(at + 1 - text), word.text, word.n))
        found = (size_t)(at - text);
    return found;
}

/* ---- What there is ---- */

typedef struct continuing {
    chat_text prompt;
    span reasoning, content; /* parts of the message */
    struct {
        span open, close, content; /* n 0: there is none */
        char of_open[MARK_BYTES], of_close[MARK_BYTES], of_content[MARK_BYTES];
    } marks;
    const char *after; /* the closing mark, where it has its own line */
    bool on_lines;     /* marks are on their own lines, as far as the template says */
    bool opened;       /* the prompt ends within reasoning */
    size_t n_base;     /* bytes of the prompt: without reasoning that it opens and closes */
    chat_text shown;   /* the known answer; text NULL: the template does not write it */
    size_t at_wonder, at_answer;
} continuing;

static void find_marks(continuing *c, const char *chat_template)
{
    const reply_thinking *t = reply_thinking_of(chat_template);
    c->marks.open = bare_mark(t->open, c->marks.of_open);
    c->marks.close = bare_mark(t->close, c->marks.of_close);
    c->after = t->after ? t->after : "\n\n";
    const reply_family *f = reply_family_of(chat_template);
    c->marks.content = f->headers ? span_of("<|start|>assistant<|channel|>final<|message|>")
                                  : bare_mark(f->content_open, c->marks.of_content);
}

/* Returns whether the template writes the mark and then a newline. */
static bool ends_line(const char *chat_template, span mark)
{
    for (const char *at = chat_template; mark.n > 0 && (at = strstr(at, mark.text)); at++)
        if (at[mark.n] == '\n' || (at[mark.n] == '\\' && at[mark.n + 1] == 'n'))
            return true;
    return false;
}

static void look_at_prompt(continuing *c, const char *chat_template)
{
    const char *text = c->prompt.text;
    size_t n = c->prompt.n_bytes, at = end_mark(text, n, c->marks.close);
    c->opened = end_mark(text, n, c->marks.open) < n;
    c->on_lines = c->marks.content.n == 0 &&
                  (c->opened ? text[n - 1] == '\n' : ends_line(chat_template, c->marks.open));
    c->n_base = n;
    if (at >= n)
        return;
    size_t at_open = end_mark(text, at, c->marks.open);
    c->n_base = at_open < at ? at_open : at;
}

/* Reasoning that is in the content, between its marks, is the message's reasoning. */
static void split_content(continuing *c)
{
    span rest = c->content;
    while (rest.n > 0 && is_blank(*rest.text))
        rest = (span){rest.text + 1, rest.n - 1};
    if (c->reasoning.n > 0 || c->marks.open.n == 0 || rest.n < c->marks.open.n ||
        memcmp(rest.text, c->marks.open.text, c->marks.open.n) != 0)
        return;
    rest = (span){rest.text + c->marks.open.n, rest.n - c->marks.open.n};
    const char *close = memmem(rest.text, rest.n, c->marks.close.text, c->marks.close.n);
    if (!close)
        return;
    const char *after = close + c->marks.close.n, *end = rest.text + rest.n;
    c->reasoning = (span){rest.text, (size_t)(close - rest.text)};
    while (after < end && is_blank(*after))
        after++;
    c->content = (span){after, (size_t)(end - after)};
}

/* Newlines around it are the template's. */
static void trim_reasoning(continuing *c)
{
    span *r = &c->reasoning;
    while (r->n > 0 && *r->text == '\n')
        *r = (span){r->text + 1, r->n - 1};
    while (r->n > 0 && c->content.n > 0 && r->text[r->n - 1] == '\n')
        r->n--;
}

static void look_at_answer(continuing *c, const tokenizer *t, const drey_chat_request *request)
{
    bool thinks = c->reasoning.n > 0 || c->opened;
    c->at_wonder = c->at_answer = SIZE_MAX;
    if (chat_render_answer(t, request, thinks ? wonder : NULL, answer, &c->shown) != DREY_OK)
        return;
    c->at_answer = last_place(c->shown.text, c->shown.n_bytes, span_of(answer));
    if (thinks && c->at_answer < c->shown.n_bytes)
        c->at_wonder = last_place(c->shown.text, c->at_answer, span_of(wonder));
}

/* ---- What is written ---- */

typedef struct writing {
    chat_text text;
    size_t room; /* capacity in bytes */
} writing;

static drey_status begin_writing(writing *w, const continuing *c, drey_error *err)
{
    w->room = c->prompt.n_bytes + c->shown.n_bytes + c->reasoning.n + c->content.n + 4 * MARK_BYTES;
    w->text = (chat_text){.text = malloc(w->room + 1),
                          .plain = malloc((c->prompt.n_plain + 2) * sizeof(text_range))};
    if (w->text.text && w->text.plain)
        return DREY_OK;
    chat_text_free(&w->text);
    FAIL(err, DREY_ERR_MEMORY, "no memory for the beginning of an answer");
}

static void put(writing *w, span s, bool plain)
{
    chat_text *t = &w->text;
    memcpy(t->text + t->n_bytes, s.text, s.n);
    if (plain && s.n > 0)
        t->plain[t->n_plain++] = (text_range){t->n_bytes, t->n_bytes + s.n};
    t->n_bytes += s.n;
}

static void put_base(writing *w, const continuing *c, size_t n)
{
    put(w, (span){c->prompt.text, n}, false);
    for (size_t i = 0; i < c->prompt.n_plain && c->prompt.plain[i].begin < n; i++) {
        text_range *last = &w->text.plain[w->text.n_plain++];
        *last = c->prompt.plain[i];
        last->end = last->end < n ? last->end : n;
    }
}

/* Writes what is between reasoning and content, as the template's answer has it, or by the family's
 * marks. */
static void put_close(writing *w, const continuing *c)
{
    bool marks_content = c->marks.content.n > 0, shown = c->at_wonder != SIZE_MAX;
    size_t from = shown ? c->at_wonder + strlen(wonder) : 0;
    span between = shown ? (span){c->shown.text + from, c->at_answer - from} : span_of("");
    if (shown && memmem(between.text, between.n, c->marks.close.text, c->marks.close.n)) {
        put(w, between, false);
        return;
    }
    put(w, span_of(c->on_lines ? "\n" : ""), false);
    put(w, c->marks.close, false);
    put(w, marks_content ? c->marks.content : span_of(c->on_lines ? c->after : ""), false);
}

/* The template's answer begins as the prompt ends. */
static bool shows(const continuing *c, size_t n_base, size_t up_to)
{
    return up_to != SIZE_MAX && up_to >= n_base &&
           memcmp(c->shown.text, c->prompt.text, n_base) == 0;
}

static void put_reasoning(writing *w, const continuing *c)
{
    bool known = shows(c, c->n_base, c->at_wonder), content = c->content.n > 0;
    put_base(w, c, c->n_base);
    if (known) {
        put(w, (span){c->shown.text + c->n_base, c->at_wonder - c->n_base}, false);
    } else if (!c->opened) {
        put(w, c->marks.open, false);
        put(w, span_of(c->on_lines ? "\n" : ""), false);
    }
    put(w, c->reasoning, true);
    if (!content)
        return;
    size_t after = c->at_wonder + strlen(wonder);
    if (known)
        put(w, (span){c->shown.text + after, c->at_answer - after}, false);
    else
        put_close(w, c);
    put(w, c->content, true);
}

static void put_content(writing *w, const continuing *c)
{
    size_t n = c->prompt.n_bytes;
    put_base(w, c, n);
    if (c->opened)
        put_close(w, c);
    else if (shows(c, n, c->at_answer))
        put(w, (span){c->shown.text + n, c->at_answer - n}, false);
    put(w, c->content, true);
}

drey_status continued_render(const tokenizer *t, const drey_chat_request *request, chat_text *out,
                             drey_error *err)
{
    continuing c = {.opened = false};
    writing w = {.room = 0};
    chat_begun begun;
    TRY(chat_render_begun(t, request, &c.prompt, &begun, err));
    c.reasoning = (span){begun.text, begun.n_reasoning};
    c.content = (span){begun.text + begun.n_reasoning, begun.n_content};
    find_marks(&c, request->chat_template);
    look_at_prompt(&c, request->chat_template);
    split_content(&c);
    trim_reasoning(&c);
    if (c.reasoning.n + c.content.n > 0)
        look_at_answer(&c, t, request);
    drey_status status = begin_writing(&w, &c, err);
    bool thinks = c.reasoning.n > 0 && (c.marks.open.n > 0 || shows(&c, c.n_base, c.at_wonder));
    if (status == DREY_OK && thinks)
        put_reasoning(&w, &c);
    else if (status == DREY_OK && c.content.n > 0)
        put_content(&w, &c);
    else if (status == DREY_OK)
        put_base(&w, &c, c.prompt.n_bytes);
    if (status == DREY_OK)
        w.text.text[w.text.n_bytes] = 0;
    chat_text_free(&c.prompt);
    chat_text_free(&c.shown);
    chat_begun_free(&begun);
    *out = w.text;
    return status;
}
