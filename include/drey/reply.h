/* Replies: what an answer in a chat consists of. A model writes one text. Its template says how
 * reasoning and calls of tools are marked in it. A reader takes the text apart while it is written:
 *
 *     <think>Paris is in France.</think>I look that up.
 *     <tool_call>{"name": "weather", "arguments": {"city": "Paris"}}</tool_call>
 *
 *     REASONING "Paris is in France."    CONTENT "I look that up."
 *     CALL "weather"    ARGUMENTS "{\"city\": \"Paris\"}"    CALL_END
 *
 * How to use it: drey_reply_form_find, then drey_chat_encode, drey_reply_form_prompt with the
 * prompt's end, drey_reply_grammar for the generation, and a reader for the text. */
#ifndef DREY_REPLY_H
#define DREY_REPLY_H

#include "drey/chat.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum drey_tool_choice {
    DREY_TOOLS_AUTO = 0,    /* a text, calls, or a text and then calls */
    DREY_TOOLS_NONE = 1,    /* no calls: what looks like one is text */
    DREY_TOOLS_REQUIRED = 2 /* one call or more, and no text */
} drey_tool_choice;

/* The part of the answer that the prompt holds already: see `continues` of drey_chat_request. */
typedef enum drey_reply_begun {
    DREY_BEGUN_NOTHING = 0,
    DREY_BEGUN_REASONING = 1, /* its reasoning, which is continued */
    DREY_BEGUN_CONTENT = 2    /* its content */
} drey_reply_begun;

/* Settings that the answer follows. Strings are borrowed for the call. The tools are the
 * request's. */
typedef struct drey_reply_options {
    drey_tool_choice choice;
    const char *tool;        /* the one that may be called; NULL: each of them */
    bool one_call;           /* at most one */
    bool keep_reasoning;     /* it stays in the content, with its marks, also with the opening one
                                if the template writes that */
    const char *schema_json; /* the JSON Schema of the content; NULL: any text */
    int64_t begun;           /* a drey_reply_begun */
    uint64_t reserved[3];    /* zero */
} drey_reply_options;
DREY_API void drey_reply_options_init(drey_reply_options *options);

/* Form in which a model writes what was asked for. It owns nothing, and can be copied. */
typedef struct drey_reply_form {
    bool calls;     /* there may be calls; a program sets false where it wants them as text */
    bool required;  /* there is at least one */
    bool special;   /* some marks are special tokens: set `special` of drey_generate_options, so
                       that they are in the text */
    bool reasons;   /* reasoning has marks */
    bool described; /* the template lists no tools: a system message has to describe them, see
                       drey_reply_tools_text */
    bool in_words;  /* it does not write calls: earlier ones are text as well */
    bool text_arguments; /* the template wants the arguments of earlier calls as JSON text, others
                            want objects */
    uint64_t state[262]; /* the library's own */
} drey_reply_form;

/* Finds out from the template how reasoning and calls are written. Where the request's variables
 * have "enable_thinking": false, the grammar allows no reasoning, also of a model whose template
 * does not know that variable: what the prompt opens is closed at once. DREY_ERR_USAGE: the tools
 * are broken or contradict the options; other errors as of drey_chat_render. */
DREY_API drey_status drey_reply_form_find(drey_reply_form *form, const drey_model *model,
                                          const drey_chat_request *request,
                                          const drey_reply_options *options, drey_error *err);
/* Reads the end of the prompt: text[n_bytes] is its end, of at least 64 bytes where it has them.
 * Some templates open the reasoning themselves. */
DREY_API void drey_reply_form_prompt(drey_reply_form *form, const char *text, size_t n_bytes);
/* The grammar of such answers, for drey_grammar_open (DREY_GRAMMAR_GBNF), with the arguments of
 * each tool held to its schema; those of a tool whose schema grammars do not support are any JSON
 * object. *gbnf is NULL if any text is one; else the caller frees it with drey_free.
 * DREY_ERR_USAGE: the schema of the content is not supported. */
DREY_API drey_status drey_reply_grammar(const drey_reply_form *form, drey_model *model,
                                        const drey_chat_request *request,
                                        const drey_reply_options *options, char **gbnf,
                                        size_t *n_bytes, drey_error *err);

/* The same, and what it does not hold (drey_grammar_not_held): the places of the content's schema,
 * and those of tools as /tools/NAME/parameters/properties/ids/uniqueItems. *not_held is NULL where
 * it holds all; else the caller frees it with drey_free. Of a tool with "strict": true that is
 * DREY_ERR_USAGE, in drey_reply_grammar as well. */
DREY_API drey_status drey_reply_grammar_held(const drey_reply_form *form, drey_model *model,
                                             const drey_chat_request *request,
                                             const drey_reply_options *options, char **gbnf,
                                             size_t *n_bytes, char **not_held, drey_error *err);

/* For forms that are `described`: what a system message says about tools and how they are called.
 * The request then has no tools. If the form is `in_words`, earlier calls are the assistant's text,
 * and what a tool returned is the user's, between <tool_response> and </tool_response>. The caller
 * frees with drey_free. */
DREY_API drey_status drey_reply_tools_text(const drey_reply_form *form, const char *tools_json,
                                           char **text, size_t *n_bytes, drey_error *err);

typedef enum drey_reply_kind {
    DREY_REPLY_CONTENT = 0,   /* a piece of the text */
    DREY_REPLY_REASONING = 1, /* a piece of the reasoning */
    DREY_REPLY_CALL = 2,      /* a call begins: bytes are the tool's name */
    DREY_REPLY_ARGUMENTS = 3, /* a piece of its arguments, JSON */
    DREY_REPLY_CALL_END = 4   /* the arguments are whole. A call without it was broken off */
} drey_reply_kind;

typedef struct drey_reply_part {
    drey_reply_kind kind;
    int32_t call;      /* from 0; of the last three kinds */
    const char *bytes; /* [n_bytes], borrowed for the call */
    size_t n_bytes;
} drey_reply_part;
typedef void drey_reply_fn(void *user, const drey_reply_part *part);

/* Takes answers apart. It owns nothing, and can be copied at any place of a text. The parts do not
 * depend on how the text is cut into pieces, but for the number of pieces they come in. */
typedef struct drey_reply_reader {
    int32_t n_calls;     /* calls that have begun */
    uint64_t state[312]; /* the library's own */
} drey_reply_reader;
DREY_API void drey_reply_begin(drey_reply_reader *reader, const drey_reply_form *form);
/* on_part may be NULL. */
DREY_API void drey_reply_read(drey_reply_reader *reader, const char *bytes, size_t n_bytes,
                              drey_reply_fn *on_part, void *user);
/* The text has ended: what was held back comes. */
DREY_API void drey_reply_end(drey_reply_reader *reader, drey_reply_fn *on_part, void *user);

#ifdef __cplusplus
}
#endif
#endif
