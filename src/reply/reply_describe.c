/* Describes tools to models whose templates do not: see drey/reply.h. */
#include "reply/reply_forms.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/json_writer.h"

static const char before[] = "You may call tools. These are available:\n";
static const char how[] = "\nTo call one, write its name and arguments as JSON, in this form:\n";
static const char when[] =
    "\nCall a tool only if it helps with what the user wants; else answer in words.";
static const char returned[] =
    " What a tool returns is given to you between <tool_response> and </tool_response>.";

/* A text of the form, of a call that is only an example. */
static void put_example(FILE *out, const reply_family *f, const char *pattern)
{
    const char brackets[3] = {f->literal.open, f->literal.close, 0};
    for (const char *p = pattern ? pattern : ""; *p; p++) {
        if (*p == REPLY_NAME)
            fputs("name", out);
        else if (*p == REPLY_ARGUMENTS)
            fputs(f->literal.open ? brackets : "{}", out);
        else if (*p == REPLY_ID)
            fputs("1", out);
        else if (*p != REPLY_TOKEN && *p != REPLY_TOKEN_END)
            fputc(*p, out);
    }
}

static void put_form(FILE *out, const reply_form *form)
{
    const reply_family *f = reply_family_at(form->family);
    fputs(how, out);
    put_example(out, f, f->begin);
    put_example(out, f, f->open);
    put_example(out, f, f->call);
    put_example(out, f, f->close);
    fputs(when, out);
    fputs(form->in_words ? returned : "", out);
}

drey_status drey_reply_tools_text(const drey_reply_form *form, const char *tools_json, char **text,
                                  size_t *n_bytes, drey_error *err)
{
    reply_tools tools;
    *text = NULL;
    *n_bytes = 0;
    FILE *out = open_memstream(text, n_bytes);
    if (!out)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a list of tools");
    drey_status status = reply_tools_read(&tools, tools_json, err);
    fputs(before, out);
    for (int32_t i = 0; i < tools.n; i++) {
        json_raw_value(&(json_writer){.put = reply_to_file, .user = out}, tools.functions[i]);
        fputs("\n", out);
    }
    reply_tools_free(&tools);
    put_form(out, reply_form_in(form));
    if (fclose(out) != 0 && status == DREY_OK)
        status = error_set(err, DREY_ERR_MEMORY, "not enough memory for a list of tools");
    if (status != DREY_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}
