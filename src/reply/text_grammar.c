/* The grammar of texts in which no call begins: content and reasoning. What begins one is said in
 * reply_forms.h; here it is written as what a text is unlike (src/grammar/gbnf.c). */
#include "reply/reply_writing.h"

#include <string.h>

#define BLANKS " [ \\t\\r\\n]*"

enum { MOST_NAME_BYTES = 300, MOST_DECIDING = 2 };

/* ---- Beginnings of calls ---- */

void writing_names(const writing *w, const name_list *names, const char *rest)
{
    size_t n = 0, most = REPLY_NAME_BYTES;
    for (int32_t i = 0; i < names->n; i++)
        n += names->n_of[i];
    if (n > MOST_NAME_BYTES) { /* their number is limited: the automaton has a state for each */
        most = MOST_NAME_BYTES / (size_t)names->n;
        most = most > 0 ? most : 1;
    }
    const char *bar = " (";
    for (int32_t i = 0; i < names->n; i++) {
        fputs(bar, w->out);
        writing_quoted(w->out, "", names->of[i], names->n_of[i] < most ? names->n_of[i] : most);
        bar = " |";
    }
    fprintf(w->out, " )%s", n > MOST_NAME_BYTES ? "" : rest);
}

static void put_names(const writing *w, const reply_tools *tools, const drey_reply_options *o,
                      const char *rest)
{
    name_list names = {.n = 0};
    for (int32_t i = 0; i < tools->n; i++)
        if (writing_allows(o, tools->functions[i])) {
            names.of[names.n] = tools->names[i]->text;
            names.n_of[names.n++] = tools->names[i]->n;
        }
    writing_names(w, &names, rest);
}

static bool is_frame(char c)
{
    return c == REPLY_TOKEN || c == REPLY_TOKEN_END;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n';
}

/* A mark as it is written. */
static void put_mark(const writing *w, const char *mark)
{
    char text[100];
    size_t n = 0;
    for (; *mark && n < sizeof text; mark++)
        if (!is_frame(*mark) && *mark != '\n')
            text[n++] = *mark;
    writing_quoted(w->out, "", text, n);
}

/* Up to where what follows a mark is a call for certain. parts: the form's texts, one after the
 * other. */
static void put_deciding(const writing *w, const char *const parts[2], size_t skip,
                         const reply_tools *tools, const drey_reply_options *o)
{
    const int32_t most = reply_decides_by_name(w->f) ? INT32_MAX : MOST_DECIDING;
    int32_t n = 0;
    for (int i = 0; i < 2; i++)
        for (const char *p = parts[i] ? parts[i] : ""; *p && n < most; p++) {
            if (is_frame(*p) || is_blank(*p))
                continue;
            if (skip > 0) {
                skip--;
                continue;
            }
            fputs(BLANKS, w->out);
            if (*p == REPLY_NAME) {
                char rest[60] = BLANKS " (\"<a\" | \"</\")";
                for (p++; is_frame(*p);)
                    p++;
                if (*p == REPLY_ARGUMENTS && w->f->literal.open)
                    snprintf(rest, sizeof rest, BLANKS " \"%c\"", w->f->literal.open);
                else if (*p != REPLY_ARGUMENTS)
                    snprintf(rest, sizeof rest,
                             *p == '\n'  ? " \"\\n\""
                             : *p == '"' ? " \"\\\"\""
                                         : " \"%c\"",
                             *p);
                put_names(w, tools, o, rest);
                return;
            }
            if (*p == REPLY_ID) {
                fputs(" .*", w->out);
                continue;
            }
            size_t length = 1;
            while (((unsigned char)p[length] & 0xC0) == 0x80)
                length++;
            writing_quoted(w->out, "", p, length);
            p += length - 1;
            n++;
        }
}

static size_t n_written(const char *mark)
{
    size_t n = 0;
    for (; *mark; mark++)
        n += !is_frame(*mark) && !is_blank(*mark);
    return n;
}

/* ` A | B ...`: what begins a call by its mark. */
static void put_beginnings(const writing *w, const reply_tools *tools, const drey_reply_options *o)
{
    const reply_family *f = w->f;
    const char *const parts[2] = {f->open ? f->open : f->call, f->open ? f->call : NULL};
    const char *const plain[2] = {f->call, NULL};
    const bool list = f->open && *f->open == '[';
    for (int i = -1; i < 3; i++) {
        const char *mark = i < 0 ? f->begin : f->others[i];
        if (!mark)
            break;
        fputs(i < 0 ? "" : " |", w->out);
        put_mark(w, mark);
        put_deciding(w, parts, 0, tools, o);
        if (!list)
            continue;
        fputs(" |", w->out);
        put_mark(w, mark);
        put_deciding(w, plain, 0, tools, o);
    }
    if (!f->unmarked)
        return;
    fputs(" |", w->out);
    put_mark(w, f->unmarked);
    put_deciding(w, parts, n_written(f->unmarked), tools, o);
}

static bool is_anywhere(const writing *w)
{
    return w->f->begin && *w->f->begin == REPLY_TOKEN;
}

/* Writes the beginning of an answer that is a call itself. */
static void put_bare(const writing *w, const reply_tools *tools, const drey_reply_options *o)
{
    fputs(BLANKS " ((\"```\" \"json\"?", w->out);
    if (w->f->bare[2]) {
        const char *end = strchr(w->f->bare[2], REPLY_TOKEN_END);
        fputs(" |", w->out);
        writing_quoted(w->out, "", w->f->bare[2] + 1, (size_t)(end - w->f->bare[2] - 1));
    }
    fputs(")" BLANKS " )? \"{\"" BLANKS " (\"\\\"type\\\"\"" BLANKS " \":\"" BLANKS
          " \"\\\"function\\\"\"" BLANKS " \",\"" BLANKS " )? \"\\\"name\\\"\"" BLANKS
          " \":\"" BLANKS " \"\\\"\"",
          w->out);
    put_names(w, tools, o, " \"\\\"\"");
}

/* ---- Content ---- */

/* Marks of the content that would be taken for its edges. */
static void put_edges(const writing *w, const char *bar)
{
    const char *const edges[] = {w->f->content_open, w->f->content_close, w->f->header};
    for (int i = 0; i < 3; i++)
        if (edges[i] && *edges[i] == REPLY_TOKEN) {
            fprintf(w->out, "%s .*", bar);
            put_mark(w, edges[i]);
            bar = " |";
        }
}

static void put_content(const writing *w, const reply_tools *tools, const drey_reply_options *o)
{
    const char *bar = "";
    fputs("text ::= %unlike (", w->out);
    if (w->f->begin) {
        fputs(is_anywhere(w) ? " .* ("
                             : " (.* \"\\n\")? [^\\n`]* (\"`\" [^\\n`]* \"`\" [^\\n`]*)* (",
              w->out);
        put_beginnings(w, tools, o);
        fputs(" )", w->out);
        bar = " |";
    }
    if (writing_bare(w)) {
        fputs(bar, w->out);
        put_bare(w, tools, o);
    }
    put_edges(w, " |");
    fputs(" )\ncontent ::=", w->out);
    if (w->f->bare[0] && *w->f->bare[0] == REPLY_NAME) {
        fputs(" \"all\\n\" text\n", w->out);
        return;
    }
    fputs(" (", w->out);
    writing_pattern(w, w->f->content_open, "", 0);
    fputs(" )? text (", w->out);
    writing_pattern(w, w->f->content_close, "", 0);
    fputs(" )?\n", w->out);
}

/* ---- Reasoning ---- */

/* Writes what ends it by itself. */
static void put_enders(const writing *w, const reply_tools *tools, const drey_reply_options *o)
{
    const char *open = w->f->content_open;
    const char *line = " | (.* \"\\n\")? [ \\t\\r]* (";
    fputs(" .*", w->out);
    put_mark(w, w->t->close);
    if (w->form->calls && w->f->begin) {
        fputs(is_anywhere(w) ? " | .* (" : line, w->out);
        put_beginnings(w, tools, o);
        fputs(" )", w->out);
    }
    if (!open)
        return;
    fputs(*open == REPLY_TOKEN ? " | .* (" : line, w->out);
    put_mark(w, open);
    fputs(" )", w->out);
}

/* A call, or the content's beginning, ends it as well, at a line's beginning or anywhere. */
static void put_thought(const writing *w, const reply_tools *tools, const drey_reply_options *o)
{
    bool calls = w->form->calls && w->f->begin;
    fputs("thoughts ::= %unlike (", w->out);
    put_enders(w, tools, o);
    fputs(" )\n", w->out);
    if (calls && !is_anywhere(w)) {
        fputs("lines ::= %unlike (", w->out);
        put_enders(w, tools, o);
        fputs(" ) (.* [^ \\t\\r\\n] [ \\t\\r]*)\n", w->out);
    }
    fputs("thought ::= thoughts", w->out);
    writing_pattern(w, w->t->close, "", 0);
    fputs(" blank answer", w->out);
    if (calls)
        fputs(is_anywhere(w) ? " | thoughts calls" : " | lines calls", w->out);
    if (w->f->content_open && *w->f->content_open == REPLY_TOKEN && !w->form->required &&
        !o->schema_json) {
        fputs(" | thoughts", w->out);
        writing_pattern(w, w->f->content_open, "", 0);
        fputs(" text (", w->out);
        writing_pattern(w, w->f->content_close, "", 0);
        fputs(" )?", w->out);
    }
    fputs("\n", w->out);
}

void writing_texts(const writing *w, const reply_tools *tools, const drey_reply_options *options)
{
    if (options->schema_json)
        fprintf(w->out, "content ::= %%json %s\n", options->schema_json);
    else if (!w->form->required)
        put_content(w, tools, options);
    if (w->form->thinking && !w->f->headers)
        put_thought(w, tools, options);
}
