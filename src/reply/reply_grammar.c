/* A form and tools as a grammar, in the notation of src/grammar/gbnf.c:
 *
 *     root      ::= thinking? answer
 *     answer    ::= content calls?      a text in which no call begins, and calls
 *     calls     ::= begin open call (next call)* close
 *     call      ::= one of the tools, with arguments of its schema
 *
 * Where a mark is a special token, that token may come as well as its text. Texts in which no call
 * begins are in text_grammar.c, answers of messages with headers in channel_grammar.c, arguments
 * between marks in value_grammar.c, those in the model's notation in literal_grammar.c. */
#include "grammar/grammar.h"
#include "reply/reply_writing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Texts of forms ---- */

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

/* The special token within text[0..n) that comes first; NULL: there is none. */
static const char *first_token(const writing *w, const char *text, size_t n, size_t *at)
{
    const char *found = NULL;
    *at = n;
    for (int i = 0; i < REPLY_MOST_TOKENS && w->f->tokens[i]; i++) {
        const char *token = w->f->tokens[i], *p = memmem(text, n, token, strlen(token));
        if (p && (size_t)(p - text) < *at) {
            *at = (size_t)(p - text);
            found = token;
        }
    }
    return found;
}

void writing_text(const writing *w, const char *text, size_t n)
{
    const char *token;
    do {
        size_t at;
        token = first_token(w, text, n, &at);
        writing_quoted(w->out, "", text, at);
        if (token) {
            writing_quoted(w->out, "%token ", token, strlen(token));
            at += strlen(token);
        }
        text += at;
        n -= at;
    } while (token);
}

/* The member with the arguments, with the comma in front of it at p; NULL: it is not there. Returns
 * what comes after it. */
static const char *after_arguments(const char *p)
{
    static const char *const keys[] = {"\"arguments\": \2", "\"parameters\": \2"};
    if (*p != ',')
        return NULL;
    for (p++; *p == ' ' || *p == '\n';)
        p++;
    for (int i = 0; i < 2; i++)
        if (strncmp(p, keys[i], strlen(keys[i])) == 0)
            return p + strlen(keys[i]);
    return NULL;
}

/* lines: it can begin a line; after: what comes next. */
static void put_argument_member(const writing *w, int32_t tool, bool lines, char after)
{
    fprintf(w->out, " (\",\" %s key \":\" \" \"? arguments-%d)%s", lines ? "blanks" : "\" \"?",
            (int)tool, w->optional[tool] && after == '}' ? "?" : "");
}

/* A part of a form's text that is not written as it stands. Returns what comes after it. */
static const char *put_special(const writing *w, const char *p, const char *name, int32_t tool)
{
    const char *end = p;
    switch (*p) {
    case REPLY_NAME:
        writing_quoted(w->out, "", name, strlen(name));
        break;
    case REPLY_ARGUMENTS:
        fprintf(w->out, " arguments-%d", (int)tool);
        break;
    case REPLY_ID:
        fputs(" id", w->out);
        break;
    case REPLY_TOKEN:
        end = strchr(p, REPLY_TOKEN_END);
        writing_quoted(w->out, "%token ", p + 1, (size_t)(end - p - 1));
        break;
    case '\n':
        fputs(p[-1] == REPLY_NAME ? " \"\\n\" blanks" : " blanks", w->out);
        break;
    case ' ':
        fputs(p[-1] == ':' || p[-1] == ',' ? " \" \"?" : " \" \"", w->out);
        break;
    default: /* ',' */
        end = after_arguments(p);
        if (end)
            put_argument_member(w, tool, p[1] == '\n', *end);
        else
            fputs(" \",\"", w->out);
        return end ? end : p + 1;
    }
    return end + 1;
}

/* A form's text; name and number: of the tool. Line breaks may be missing or more. */
void writing_pattern(const writing *w, const char *pattern, const char *name, int32_t tool)
{
    static const char stops[] = {REPLY_NAME, REPLY_ARGUMENTS, REPLY_ID, REPLY_TOKEN, '\n', ' ', ',',
                                 0};
    const char *p = pattern ? pattern : "";
    if (*p == '\n') {
        fputs(" blanks", w->out);
        p++;
    }
    while (*p) {
        size_t n = strcspn(p, stops);
        writing_text(w, p, n);
        p += n;
        if (*p)
            p = put_special(w, p, name, tool);
    }
}

bool writing_allows(const drey_reply_options *o, const json_value *function)
{
    return !o->tool || json_member_is(function, "name", o->tool);
}

bool writing_bare(const writing *w)
{
    return w->form->bare && *w->f->bare[0] != REPLY_NAME && !(w->f->begin && w->form->required);
}

bool writing_full(const writing *w)
{
    return ftell(w->out) > GRAMMAR_MOST_BYTES;
}

/* ---- Calls without a mark ---- */

/* Blanks may be between its parts, as models that leave the mark out are not exact about them. */
static void put_loosely(const writing *w, const char *pattern, const char *name, int32_t tool)
{
    bool quoted = false;
    for (const char *p = pattern, *end; *p; p++) {
        quoted = quoted != (*p == '"');
        if ((end = after_arguments(p))) {
            put_argument_member(w, tool, true, *end);
            fputs(" blanks", w->out);
            p = end - 1;
        } else if (*p == REPLY_NAME) {
            writing_quoted(w->out, "", name, strlen(name));
        } else if (*p != ' ' && *p != '\n') {
            writing_quoted(w->out, "", p, 1);
        }
        if (!quoted && (*p == '{' || *p == ':' || *p == ','))
            fputs(" blanks", w->out);
        if (*p == '{')
            fputs(" typed", w->out);
    }
}

/* The calls with which the answer itself may begin. */
static void put_objects(const writing *w, const reply_tools *tools, const drey_reply_options *o)
{
    const char *const *bare = w->f->bare;
    const char *bar = "bare ::=";
    if (!writing_bare(w))
        return;
    for (int32_t i = 0; i < tools->n && !writing_full(w); i++)
        if (writing_allows(o, tools->functions[i])) {
            fputs(bar, w->out);
            put_loosely(w, bare[0], tools->names[i]->text, i);
            bar = " |";
        }
    fputs("\ntyped ::= (\"\\\"type\\\"\" blanks \":\" blanks \"\\\"function\\\"\" blanks \",\" "
          "blanks)?\n"
          "object ::= [ \\t\\r\\n]{0,3} (bare | \"```\" \"json\"? blanks bare blanks \"```\"",
          w->out);
    if (bare[2]) {
        const char *end = strchr(bare[2], REPLY_TOKEN_END);
        fputs(" |", w->out);
        writing_quoted(w->out, "%token ", bare[2] + 1, (size_t)(end - bare[2] - 1));
        fputs(" blanks bare", w->out);
    }
    fputs(") \"\\n\"?\n", w->out);
}

/* ---- Calls ---- */

static drey_status put_arguments(const writing *w, const json_value *function, int32_t tool,
                                 bool loose, drey_error *err)
{
    if (w->f->parameter)
        return writing_values(w, function, tool, loose, err);
    if (w->f->literal.open || w->f->tag)
        return writing_literal(w, function, tool, loose, err);
    char *schema = reply_tool_schema(function, loose);
    if (!schema)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for the schema of a tool");
    fprintf(w->out, "arguments-%d ::= %%unordered %s", (int)tool, schema);
    free(schema);
    return DREY_OK;
}

static void put_call(const writing *w, const char *name, int32_t tool)
{
    fprintf(w->out, "\ncall-%d ::=", (int)tool);
    if (w->f->headers)
        writing_channel_call(w, name, tool);
    else if (w->f->parameter)
        writing_value_call(w, name, tool);
    else
        writing_pattern(w, w->f->call, name, tool);
    fputs("\n", w->out);
}

static void put_begins(const writing *w)
{
    fputs("begins ::=", w->out);
    writing_pattern(w, w->f->begin, "", 0);
    for (int i = 0; i < 3 && w->f->others[i]; i++) {
        fputs(" |", w->out);
        writing_pattern(w, w->f->others[i], "", 0);
    }
    fputs("\n", w->out);
}

/* Blanks may be after the mark, where the form has none. */
static bool begins_loosely(const reply_family *f)
{
    const char *next = f->open ? f->open : f->call;
    return *next == '[' || *next == '{' || (*next == REPLY_NAME && f->parameter);
}

/* ` (next call)*` */
static void put_next(const writing *w)
{
    if (!w->f->next || w->form->one_call)
        return;
    fputs(" (", w->out);
    writing_pattern(w, w->f->next, "", 0);
    fputs(*w->f->next == ',' ? " blanks call)*" : " call)*", w->out);
}

/* Writes the list of values. Where values have marks, one of the last two may be missing. */
static void put_values_list(const writing *w)
{
    fputs(" call", w->out);
    put_next(w);
    fputs(" (", w->out);
    writing_pattern(w, w->f->close, "", 0);
    fputs(" )? |", w->out);
    writing_pattern(w, w->f->open, "", 0);
    if (!w->form->one_call) {
        fputs(" (call", w->out);
        writing_pattern(w, w->f->next, "", 0);
        fputs(" )*", w->out);
    }
    fputs(" half", w->out);
    writing_pattern(w, w->f->close, "", 0);
}

/* Writes the end of a call. Where the first mark may be a text, the last one may be missing. */
static void put_close(const writing *w)
{
    const char *close = w->f->close ? w->f->close : "";
    const char *token = w->f->others[0] ? strchr(close, REPLY_TOKEN) : NULL;
    char front[40];
    snprintf(front, sizeof front, "%.*s", (int)(token ? (size_t)(token - close) : strlen(close)),
             close);
    writing_pattern(w, token ? front : close, "", 0);
    fputs(token ? " (" : "", w->out);
    writing_pattern(w, token, "", 0);
    fputs(token ? " )?" : "", w->out);
}

static void put_list(const writing *w)
{
    const reply_family *f = w->f;
    const char *front = f->unmarked ? "begins?" : begins_loosely(f) ? "begins blanks" : "begins";
    fputs("list ::=", w->out);
    writing_pattern(w, f->open, "", 0);
    if (f->parameter && f->close) {
        put_values_list(w);
    } else {
        fputs(" call", w->out);
        put_next(w);
        put_close(w);
    }
    if (f->open && *f->open == '[') /* the brackets are missing */
        fputs(" | call", w->out);
    fputs("\n", w->out);
    if (!f->begin || f->headers) {
        fputs("calls ::= list\n", w->out);
        return;
    }
    put_begins(w);
    fprintf(w->out, "calls ::= %s list", front);
    if (f->close && !w->form->one_call)
        fprintf(w->out, " (blanks %s list)*", front);
    fputs(" \"\\n\"?\n", w->out);
}

/* The rule that is one of the tools' rules. */
static void put_one_of(const writing *w, const reply_tools *tools, const drey_reply_options *o,
                       const char *name)
{
    const char *bar = " ::=";
    fputs(name, w->out);
    for (int32_t i = 0; i < tools->n; i++)
        if (writing_allows(o, tools->functions[i])) {
            fprintf(w->out, "%s %s-%d", bar, name, (int)i);
            bar = " |";
        }
    fputs("\n", w->out);
}

static drey_status put_calls(const writing *w, const reply_tools *tools,
                             const drey_reply_options *o, const bool *loose, drey_error *err)
{
    fputs("blanks ::= (\" \" | \"\\n\"{1,2} \" \"{0,8})?\n"
          "key ::= \"\\\"arguments\\\"\" | \"\\\"parameters\\\"\"\n",
          w->out);
    put_one_of(w, tools, o, "call");
    fprintf(w->out, "id ::= %s\n", w->f->id ? w->f->id : "\"\"");
    if (w->f->parameter)
        writing_value_text(w, tools);
    if (w->f->literal.open || w->f->tag)
        writing_literal_rules(w);
    for (int32_t i = 0; i < tools->n && !writing_full(w); i++) {
        const json_value *function = tools->functions[i];
        if (!writing_allows(o, function))
            continue;
        TRY(put_arguments(w, function, i, loose && loose[i], err));
        put_call(w, tools->names[i]->text, i);
    }
    if (w->f->parameter && w->f->close)
        put_one_of(w, tools, o, "half");
    put_objects(w, tools, o);
    put_list(w);
    return DREY_OK;
}

/* ---- The whole ---- */

/* The answer's parts, without what ends the rule. */
static void put_parts(const writing *w, const char *schema)
{
    const bool names = w->form->bare && *w->f->bare[0] == REPLY_NAME;
    if (w->f->headers) {
        writing_channel_answer(w, schema != NULL);
        return;
    }
    if (!w->form->calls) {
        fputs(" content", w->out);
        return;
    }
    if (!w->form->required)
        fputs(!w->f->begin || schema ? " content |"
              : w->f->header         ? " content (header? calls)? |"
                                     : " content calls? |",
              w->out);
    if (names)
        fputs(" list", w->out);
    else if (!w->f->begin)
        fputs(" object", w->out);
    else
        fputs(writing_bare(w) ? " calls | object" : " calls", w->out);
}

static void put_answer(const writing *w, const char *schema)
{
    fputs("answer ::=", w->out);
    if (w->f->header)
        fputs(" header? (", w->out);
    put_parts(w, schema);
    if (w->f->header) {
        fputs(") header?\nheader ::=", w->out);
        writing_pattern(w, w->f->header, "", 0);
    }
    fputs("\n", w->out);
}

static void put_root(const writing *w)
{
    fputs("root ::=", w->out);
    if (w->f->headers) {
        writing_channels(w);
    } else if (w->form->thinking) {
        const bool none = w->form->unreasoned;
        if (none && w->form->thinks) {
            fputs(" blank", w->out);
            writing_pattern(w, w->t->close, "", 0);
            fputs(" blank", w->out);
        }
        fputs(none              ? " answer"
              : w->form->thinks ? " thought"
                                : " thinking thought | answer",
              w->out);
        fputs("\nblank ::= [ \\n]{0,3}\nthinking ::=", w->out);
        writing_pattern(w, w->t->open, "", 0);
        fputs("\n", w->out);
    } else {
        fputs(" answer\n", w->out);
    }
}

/* Finds the tools that can be called without arguments. */
static void find_optional(bool *optional, const reply_tools *tools)
{
    for (int32_t i = 0; i < tools->n; i++) {
        const json_value *parameters = json_member(tools->functions[i], "parameters");
        const json_value *list = json_member_array(parameters, "required");
        optional[i] = !list || !list->first;
    }
}

static drey_status put_all(writing *w, const char *tools_json, const drey_reply_options *options,
                           const bool *loose, drey_error *err)
{
    reply_tools tools = {.n = 0};
    bool optional[REPLY_MOST_TOOLS];
    drey_status status = DREY_OK;
    if (w->form->calls)
        status = reply_tools_read(&tools, tools_json, err);
    find_optional(optional, &tools);
    w->optional = optional;
    put_root(w);
    put_answer(w, options->schema_json);
    if (!w->f->headers || options->schema_json)
        writing_texts(w, &tools, options);
    if (status == DREY_OK && w->form->calls)
        status = put_calls(w, &tools, options, loose, err);
    reply_tools_free(&tools);
    return status;
}

drey_status reply_grammar_of(const reply_form *form, const char *tools_json,
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
