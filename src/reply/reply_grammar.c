/* A form and tools as a grammar, in the notation of src/grammar/gbnf.c:
 *
 *     root      ::= thinking? answer
 *     answer    ::= content calls?      a text in which no call begins, and calls
 *     calls     ::= begin open call (next call)* close
 *     call      ::= one of the tools, with arguments of its schema
 *
 * Where a mark is a special token, that token may come as well as its text. Answers of messages
 * with headers are in channel_grammar.c, arguments between marks in value_grammar.c. */
#include "grammar/grammar.h"
#include "reply/reply_writing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts in quotes: what is between two special parts of a form's text, or the name. */
void writing_quoted(FILE *out, const char *word, const char *text, size_t n)
{
    if (n == 0)
        return;
    fprintf(out, " %s\"", word);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n')
            fputs("\\n", out);
        else if (text[i] == '"' || text[i] == '\\')
            fprintf(out, "\\%c", text[i]);
        else
            fputc(text[i], out);
    }
    fputs("\"", out);
}

/* A form's text; name and number: of the tool. */
void writing_pattern(const writing *w, const char *pattern, const char *name, int32_t tool)
{
    static const char stops[] = {REPLY_NAME, REPLY_ARGUMENTS, REPLY_ID, REPLY_TOKEN, 0};
    for (const char *p = pattern ? pattern : ""; *p;) {
        size_t n = strcspn(p, stops);
        writing_quoted(w->out, "", p, n);
        p += n;
        if (*p == REPLY_NAME) {
            writing_quoted(w->out, "", name, strlen(name));
        } else if (*p == REPLY_ARGUMENTS) {
            fprintf(w->out, " arguments-%d", (int)tool);
        } else if (*p == REPLY_ID) {
            fputs(" id", w->out);
        } else if (*p == REPLY_TOKEN) {
            const char *end = strchr(p, REPLY_TOKEN_END);
            writing_quoted(w->out, "%token ", p + 1, (size_t)(end - p - 1));
            p = end;
        }
        p += *p != 0;
    }
}

/* The same as words that a text must not contain: a mark as it is written. */
void writing_word(FILE *out, const char *mark)
{
    if (!mark)
        return;
    fputs(" \"", out);
    for (; *mark; mark++)
        if (*mark != REPLY_TOKEN && *mark != REPLY_TOKEN_END && *mark != '\n')
            fputc(*mark, out);
    fputs("\"", out);
}

bool writing_allows(const drey_reply_options *o, const json_value *function)
{
    return !o->tool || json_member_is(function, "name", o->tool);
}

bool writing_full(const writing *w)
{
    return ftell(w->out) > GRAMMAR_MOST_BYTES;
}

/* Calls without a mark, of forms that have marks. */
static bool has_objects(const writing *w)
{
    return w->form->bare && w->f->begin && !w->f->content_open && !w->form->required;
}

/* A call without a mark: blanks may be between its parts, as models that leave the mark out are
 * not exact about them. */
static void put_loosely(const writing *w, const char *pattern, const char *name, int32_t tool)
{
    bool quoted = false;
    for (const char *p = pattern; *p; p++) {
        quoted = quoted != (*p == '"');
        if (*p == REPLY_NAME)
            writing_quoted(w->out, "", name, strlen(name));
        else if (*p == REPLY_ARGUMENTS)
            fprintf(w->out, " arguments-%d blanks", (int)tool);
        else if (*p == '\n')
            fputs(" blanks", w->out);
        else if (*p != ' ')
            writing_quoted(w->out, "", p, 1);
        if (!quoted && (*p == '{' || *p == ':' || *p == ','))
            fputs(" blanks", w->out);
    }
}

static void put_objects(const writing *w, const reply_tools *tools, const drey_reply_options *o)
{
    const char *bar = "object ::= (";
    for (int32_t i = 0; i < tools->n && has_objects(w); i++)
        if (writing_allows(o, tools->functions[i])) {
            fputs(bar, w->out);
            put_loosely(w, w->f->object, tools->names[i]->text, i);
            fputs(" |", w->out);
            put_loosely(w, w->f->fenced, tools->names[i]->text, i);
            bar = " |";
        }
    fputs(has_objects(w) ? " )\nblanks ::= [ \\t\\r\\n]{0,6}\n" : "", w->out);
}

static drey_status put_arguments(const writing *w, const json_value *function, int32_t tool,
                                 bool loose, drey_error *err)
{
    if (w->f->parameter)
        return writing_values(w, function, tool, loose, err);
    char *schema = reply_tool_schema(function, loose);
    if (!schema)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for the schema of a tool");
    fprintf(w->out, "arguments-%d ::= %%json %s", (int)tool, schema);
    free(schema);
    return DREY_OK;
}

/* The calls that may follow the first. */
static void put_more(const writing *w)
{
    if (!w->f->next || w->form->one_call)
        return;
    fputs(" (", w->out);
    writing_pattern(w, w->f->next, "", 0);
    fputs(" call)*", w->out);
}

/* Calls whose mark was forgotten: without the blanks that come after it. */
static void put_unmarked(const writing *w, const reply_tools *tools, const drey_reply_options *o)
{
    const char *call = w->f->call, *bar = " | (";
    while (*call == '\n')
        call++;
    for (int32_t i = 0; i < tools->n; i++)
        if (writing_allows(o, tools->functions[i])) {
            fputs(bar, w->out);
            writing_pattern(w, call, tools->names[i]->text, i);
            bar = " |";
        }
    fputs(" )", w->out);
    put_more(w);
}

static void put_list(const writing *w, const reply_tools *tools, const drey_reply_options *o)
{
    fputs("list ::=", w->out);
    writing_pattern(w, w->f->open, "", 0);
    fputs(" call", w->out);
    put_more(w);
    writing_pattern(w, w->f->close, "", 0);
    fputs("\ncalls ::=", w->out);
    if (!w->f->headers)
        writing_pattern(w, w->f->begin, "", 0);
    fputs(" list", w->out);
    if (w->f->unmarked)
        put_unmarked(w, tools, o);
    fputs("\n", w->out);
}

static drey_status put_calls(const writing *w, const reply_tools *tools,
                             const drey_reply_options *o, const bool *loose, drey_error *err)
{
    const char *bar = "";
    fputs("call ::=", w->out);
    for (int32_t i = 0; i < tools->n; i++)
        if (writing_allows(o, tools->functions[i])) {
            fprintf(w->out, "%s call-%d", bar, (int)i);
            bar = " |";
        }
    fprintf(w->out, "\nid ::= %s\n", w->f->id ? w->f->id : "\"\"");
    for (int32_t i = 0; i < tools->n && !writing_full(w); i++) {
        const json_value *function = tools->functions[i];
        if (!writing_allows(o, function))
            continue;
        TRY(put_arguments(w, function, i, loose && loose[i], err));
        fprintf(w->out, "\ncall-%d ::=", (int)i);
        if (w->f->headers)
            writing_channel_call(w, tools->names[i]->text, i);
        else
            writing_pattern(w, w->f->call, tools->names[i]->text, i);
        fputs("\n", w->out);
    }
    put_objects(w, tools, o);
    put_list(w, tools, o);
    return DREY_OK;
}

/* ---- Texts that do not begin like a call without a mark ---- */

/* Whether both names begin with the first n characters of the first one. */
static bool same_begin(const json_value *a, const json_value *b, size_t n)
{
    return b->n >= n && memcmp(a->text, b->text, n) == 0;
}

/* No tool before it has a name that begins with the same n characters. */
static bool is_first(const reply_tools *t, int32_t tool, size_t n)
{
    int32_t i = 0;
    while (i < tool && !same_begin(t->names[tool], t->names[i], n))
        i++;
    return i == tool;
}

/* What may follow the first n characters of a tool's name: another text, or more of it. A quote
 * ends a name. */
static void put_after_name(const writing *w, const reply_tools *t, int32_t tool, size_t n)
{
    int32_t first[128]; /* the first tool that has this character there; -1: none */
    char other[2 * 128] = "";
    memset(first, -1, sizeof first);
    for (int32_t i = t->n; i-- > 0;)
        if (same_begin(t->names[tool], t->names[i], n))
            first[n < t->names[i]->n ? t->names[i]->text[n] : '"'] = i;
    fprintf(w->out, "name-%d-%zu ::= \"\"", (int)tool, n);
    for (int c = '"'; c < 127; c++) {
        int32_t next = first[c];
        if (next < 0)
            continue;
        size_t at = strlen(other);
        snprintf(other + at, sizeof other - at, strchr("-]^\\[", c) ? "\\%c" : "%c", c);
        if (c != '"')
            fprintf(w->out, " | \"%c\" name-%d-%zu", c, (int)next, n + 1);
    }
    fprintf(w->out, " | [^%s<] text\n", other);
}

/* The text itself, or a block of code that has it: begin-0 is after what opens the block. */
static void put_other_fence(const writing *w)
{
    static const char fence[] = "```json";
    fputs("content ::= \"\" | [ \\t\\r\\n] content | [^{`< \\t\\r\\n] text | "
          "\"<\"+ ([^<t] text)? | \"{\" begin-1 | \"`\" fence-1\n",
          w->out);
    for (size_t i = 1; fence[i]; i++)
        fprintf(w->out,
                "fence-%zu ::= \"\" | [^%c<] text | \"<\"+ ([^<t] text)? | \"%c\" fence-%zu\n", i,
                fence[i], fence[i], i + 1);
    fprintf(w->out, "fence-%zu ::= begin-0\n", sizeof fence - 1);
}

/* Blanks may be between all parts of what a call begins with: {"name":" */
static void put_other_text(const writing *w, const reply_tools *tools)
{
    static const char front[] = "{\"name\":\"";
    const size_t n = sizeof front - 1;
    put_other_fence(w);
    for (size_t i = 0; i < n; i++) {
        const char *escape = front[i] == '"' ? "\\" : "";
        fprintf(w->out,
                "begin-%zu ::= \"\" | [ \\t\\r\\n] begin-%zu | [^%c< \\t\\r\\n] text | "
                "\"<\"+ ([^<t] text)? | \"%s%c\" ",
                i, i, front[i], escape, front[i]);
        if (i + 1 < n)
            fprintf(w->out, "begin-%zu\n", i + 1);
        else
            fputs("name-0-0\n", w->out);
    }
    for (int32_t i = 0; i < tools->n && !writing_full(w); i++)
        for (size_t k = 0; k <= tools->names[i]->n; k++)
            if (is_first(tools, i, k))
                put_after_name(w, tools, i, k);
}

/* Texts that no call is in: none that begins like one, where nothing else shows it. */
static void put_text(const writing *w, const reply_tools *tools)
{
    fputs("text ::= %without", w->out);
    writing_word(w->out, w->f->begin);
    writing_word(w->out, w->f->unmarked);
    writing_word(w->out, w->f->content_open);
    writing_word(w->out, w->f->content_close);
    fputs("\n", w->out);
    if (w->f->object && !w->f->begin) {
        fputs("content ::= ([^{ \\t\\r\\n] text)?\n", w->out);
    } else if (w->f->object && w->f->content_open) {
        fputs("content ::= \"all\\n\" text\n", w->out);
    } else if (has_objects(w)) {
        put_other_text(w, tools);
    } else {
        fputs("content ::= (", w->out);
        writing_pattern(w, w->f->content_open, "", 0);
        fputs(" )? text (", w->out);
        writing_pattern(w, w->f->content_close, "", 0);
        fputs(" )?\n", w->out);
    }
}

static void put_answer(const writing *w, const reply_tools *tools, const char *schema)
{
    bool bare = w->form->bare && (!w->f->begin || w->f->content_open);
    if (schema)
        fprintf(w->out, "content ::= %%json %s\n", schema);
    else if (!w->form->required && !w->f->headers)
        put_text(w, tools);
    fputs("answer ::=", w->out);
    if (w->f->headers) {
        writing_channel_answer(w, schema != NULL);
        return;
    }
    if (!w->form->calls) {
        fputs(" content\n", w->out);
    } else {
        if (!w->form->required)
            fputs(schema || (bare && !w->f->begin) ? " content |" : " content calls? |", w->out);
        fputs(bare ? " list\n" : has_objects(w) ? " calls | object\n" : " calls\n", w->out);
    }
}

static void put_root(const writing *w)
{
    fputs("root ::=", w->out);
    if (w->f->headers) {
        writing_channels(w);
    } else if (w->form->thinking) {
        fputs(w->form->thinks ? " thought" : " (thinking thought)?", w->out);
        fputs(" answer\nblank ::= [ \\n]{0,3}\nthinking ::=", w->out);
        writing_pattern(w, w->t->open, "", 0);
        fputs("\nthoughts ::= %without", w->out);
        writing_word(w->out, w->t->close);
        fputs("\nthought ::= thoughts", w->out);
        writing_pattern(w, w->t->close, "", 0);
        fputs(" blank\n", w->out);
    } else {
        fputs(" answer\n", w->out);
    }
}

static drey_status put_all(const writing *w, const char *tools_json,
                           const drey_reply_options *options, const bool *loose, drey_error *err)
{
    reply_tools tools = {.n = 0};
    drey_status status = DREY_OK;
    if (w->form->calls)
        status = reply_tools_read(&tools, tools_json, err);
    put_root(w);
    put_answer(w, &tools, options->schema_json);
    if (status == DREY_OK && w->form->calls)
        status = put_calls(w, &tools, options, loose, err);
    reply_tools_free(&tools);
    return status;
}

drey_status reply_grammar_of(const drey_reply_form *form, const char *tools_json,
                             const drey_reply_options *options, const bool *loose, char **gbnf,
                             size_t *n_bytes, drey_error *err)
{
    *gbnf = NULL;
    *n_bytes = 0;
    if (!form->calls && !options->schema_json)
        return DREY_OK;
    char *text = NULL;
    writing w = {.out = open_memstream(&text, n_bytes),
                 .form = form,
                 .f = reply_family_at(form->family),
                 .t = reply_thinking_at(form->thinking)};
    if (!w.out)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a grammar");
    drey_status status = put_all(&w, tools_json, options, loose, err);
    if (fclose(w.out) != 0 && status == DREY_OK)
        status = error_set(err, DREY_ERR_MEMORY, "not enough memory for a grammar");
    if (status != DREY_OK) {
        free(text);
        return status;
    }
    *gbnf = text;
    return DREY_OK;
}
