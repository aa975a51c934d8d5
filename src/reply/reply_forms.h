/* Forms of answers, for other folders: how families of models mark reasoning and calls. See
 * drey/reply.h.
 *
 *   families.c         the forms, as data
 *   reply_form.c       which of them a template has
 *   reply_grammar.c    a form and tools as a grammar; with
 *   text_grammar.c       texts in which no call begins,
 *   channel_grammar.c    messages with headers, and
 *   value_grammar.c      arguments that are values between marks, or
 *   literal_grammar.c      in the model's notation
 *   reply_reader.c     a text of a form, taken apart; with
 *   channel_reader.c     messages with headers, and
 *   value_reader.c       arguments that are no JSON, but values between marks, or
 *   literal_reader.c       in the model's notation, or
 *   tag_reader.c           within tags of their names
 *   reply_values.c     what such values are, by the tools' schemas
 *   reply_describe.c   tools as a system message, for templates that know none
 */
#pragma once

#include <assert.h>

#include "common/error.h"
#include "common/json_value.h"
#include "drey/reply.h"

enum { REPLY_MOST_VALUES = 512 };

/* A drey_reply_form inside of the library: what programs read, in the same places, and the rest. */
typedef struct reply_form {
    bool calls, required, special, reasons, described, in_words, text_arguments;
    bool one_call;
    bool thinks;              /* the answer begins within reasoning */
    bool bare;                /* it may begin with a call that no mark announces */
    bool unreasoned;          /* the request wants no reasoning */
    uint8_t closed;           /* the reasoning that the prompt has opened and closed */
    uint8_t begun;            /* a drey_reply_begun */
    uint8_t kept;             /* the reasoning that stays in the content */
    char opened[22];          /* 1 and the blanks after its mark, if the prompt ends there */
    int32_t family, thinking; /* the forms of calls and of reasoning */
    /* The tools, and what the values of their parameters are (reply_values.c). */
    int32_t n_values;
    uint32_t values[REPLY_MOST_VALUES];
} reply_form;
static_assert(sizeof(reply_form) <= sizeof(drey_reply_form) &&
                  offsetof(reply_form, text_arguments) == offsetof(drey_reply_form, text_arguments),
              "programs have a drey_reply_form's memory");
static inline reply_form *reply_form_in(const drey_reply_form *form)
{
    return (reply_form *)(uintptr_t)form;
}
static inline drey_reply_form *reply_form_out(const reply_form *form)
{
    return (drey_reply_form *)(uintptr_t)form;
}

/* Marks in the texts of a form: SPECIAL(x) is one special token of most vocabularies that have it;
 * \1 stands for a tool's name, \2 for the arguments, \3 for an id; \4, \10 and \7 for a parameter's
 * name, its type and its value. Blanks may be missing or more. */
#define SPECIAL(text) "\5" text "\6"
enum {
    REPLY_NAME = 1,
    REPLY_ARGUMENTS = 2,
    REPLY_ID = 3,
    REPLY_KEY = 4,
    REPLY_TOKEN = 5,
    REPLY_TOKEN_END = 6,
    REPLY_VALUE = 7,
    REPLY_TYPE = 8
};

/* Format of calls:  begin open call next call ... close and what is around the text: content_open
 * ... content_close, which may be missing.
 *
 * One rule says whether a mark begins a call, for readers and grammars. It does if what follows it
 * is written as a call is: a grammar lets a text continue otherwise up to the second character of
 * that, or up to the end of a tool's name (reply_decides_by_name). In a text a mark that is no
 * special token begins none within code in a line (after an odd number of backticks); in reasoning
 * it does at a line's beginning alone, and ends the reasoning. Special tokens do anywhere. */
/* A notation of arguments as a list of keys with values. Values are lists, objects, texts, numbers
 * and words. */
typedef struct reply_literal {
    char open, close, assign; /* around the arguments; between a key and its value */
    const char *quote; /* around texts, in which nothing is escaped, and keys have none; NULL:
                                 values are Python's or JSON's */
} reply_literal;

enum { REPLY_MOST_TOKENS = 8 };
typedef struct reply_family {
    const char *name;
    const char *signs[2];  /* words that its templates contain */
    const char *begin;     /* NULL: calls come at the answer's beginning alone */
    const char *others[3]; /* other spellings of `begin` that models use */
    const char *open, *call;
    const char *next; /* NULL: there is one call */
    const char *close;
    const char *unmarked;  /* a call's beginning, where `begin` was forgotten; NULL: it never is */
    const char *parameter; /* arguments are such, each with a value; NULL: they are a JSON object */
    const char *types[2];  /* a parameter's type, where it has one: of a text; of others, with '|'
                              between them */
    const char *wrapped;   /* a value that is marked as text, and its end; NULL: none is */
    reply_literal literal; /* arguments are so; open 0: they are not */
    const char *tag; /* in front of each tag, where arguments are in such; NULL: they are not */
    /* texts in `call`, `close` and `parameter` that are special tokens of most vocabularies */
    const char *tokens[REPLY_MOST_TOKENS];
    const char *content_open, *content_close;
    const char *header;   /* may be in front of each of these parts, and at the end; NULL: none */
    const char *variable; /* the template's name for the tools; NULL: "tools" */
    /* A call with which the answer itself may begin; NULL: only marked ones. Then the same with
     * something around it: in a block of code, ... */
    const char *bare[3];
    const char *id; /* characters of an id; NULL: calls have none */
    bool as_text;   /* the template puts arguments together as text */
    bool headers;   /* all is in messages with headers: see channel_reader.c */
} reply_family;

typedef struct reply_thinking {
    const char *sign, *open, *close;
    const char *after; /* between a closing mark that is a line and the text; NULL: "\n\n" */
} reply_thinking;

/* 0 is what models without another form are described to write. */
const reply_family *reply_family_at(int32_t i);
/* 0: there is none. */
const reply_thinking *reply_thinking_at(int32_t i);

/* The reasoning and the family of a template; those at 0: it has none. */
const reply_thinking *reply_thinking_of(const char *chat_template);
const reply_family *reply_family_of(const char *chat_template);

/* Says whether the text is a special token, which texts leave out. */
typedef bool reply_hidden_fn(const void *user, const char *text, size_t n);

/* Fills the form for a template. */
drey_status reply_form_of(reply_form *form, const char *chat_template, const char *tools_json,
                          const drey_reply_options *options, reply_hidden_fn *hidden,
                          const void *user, drey_error *err);
/* The grammar, or NULL. loose[i]: the arguments of tool i are any object; NULL: of none. */
drey_status reply_grammar_of(const reply_form *form, const char *tools_json,
                             const drey_reply_options *options, const bool *loose, char **gbnf,
                             size_t *n_bytes, drey_error *err);

/* Returns whether only a tool's name shows that a mark begins a call. */
bool reply_decides_by_name(const reply_family *f);
/* A character that names of tools have. */
bool reply_in_name(char c);

/* Tools as requests have them. Names are checked: NULL and an error if one is not right. */
enum { REPLY_MOST_TOOLS = 512, REPLY_NAME_BYTES = 128 };
typedef struct reply_tools {
    json_document document;
    const json_value *functions[REPLY_MOST_TOOLS], *names[REPLY_MOST_TOOLS]; /* [n] */
    int32_t n;
} reply_tools;
/* Reads them; reply_tools_free always. */
drey_status reply_tools_read(reply_tools *t, const char *tools_json, drey_error *err);
void reply_tools_free(reply_tools *t);
/* The tool's schema as JSON, without what is said about it; the caller frees. NULL: no memory. */
char *reply_tool_schema(const json_value *function, bool loose);

/* The marks that come after the last parameter of a call, in their order: the first ends the call.
 * Models leave each of them out. */
typedef struct reply_mark {
    const char *text;
    size_t n;
} reply_mark;
enum { REPLY_MOST_ENDS = 4 };
/* Returns whether a parameter's name and its value have different marks. */
bool reply_values_apart(const reply_family *f);
int32_t reply_value_ends(const reply_family *f, reply_mark out[static REPLY_MOST_ENDS]);

/* Kinds of a parameter's value, where it is not written as JSON. */
typedef enum reply_value_kind {
    VALUE_OF_EITHER = 0, /* JSON if it looks like it, else a text */
    VALUE_OF_TEXT = 1,
    VALUE_OF_TEXT_OR_NULL = 2,
    VALUE_OF_JSON = 3
} reply_value_kind;
/* parameters: the schema that this one is in. */
reply_value_kind reply_value_kind_of(const json_value *parameters, const json_value *schema);
/* Returns the schema of "#/$defs/NAME"; NULL: nothing. */
const json_value *reply_schema_target(const json_value *parameters, const char *text);
/* The same of all tools, in the form. */
void reply_values_take(reply_form *form, const reply_tools *tools);
uint32_t reply_values_tool(const char *name, size_t n);
reply_value_kind reply_values_find(const reply_form *form, uint32_t tool, const char *key,
                                   size_t n);
/* Returns the index of a tool's parameter; -1: none. */
int32_t reply_values_index(const reply_form *form, uint32_t tool, const char *key, size_t n);
/* Returns whether the tool may have other parameters than those that are known. */
bool reply_values_open(const reply_form *form, uint32_t tool);
bool reply_tool_is_open(const json_value *function);
/* Returns whether it is one of the tools; true if there are more than the form has room for. */
bool reply_values_are_of(const reply_form *form, const char *name, size_t n);
/* The schema of a parameter as JSON; NULL: no memory. */
char *reply_parameter_schema(const json_value *parameters, const json_value *schema);
/* The members of a schema, and schemas by their names, without what is said about them. */
void reply_put_members(json_writer *w, const json_value *schema);
void reply_put_schemas(json_writer *w, const json_value *named);
/* Writes JSON to a FILE: a json_put_fn. */
void reply_to_file(void *user, const char *bytes, size_t n, const char *from);
