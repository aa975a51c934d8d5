/* Declarations that the files of the reader share: see reply_reader.c. */
#pragma once

#include "reply/reply_forms.h"

enum {
    AT_BEGIN,
    IN_CONTENT,
    IN_REASONING,
    IN_OPEN,
    IN_CALL,
    IN_ARGUMENTS,
    IN_REST,
    AT_NEXT,
    AT_PARAMETER, /* value_reader.c */
    IN_KEY,
    AT_VALUE,
    IN_VALUE,
    IN_HEADER, /* channel_reader.c */
    IN_OTHER,
    IN_LITERAL, /* literal_reader.c */
    IN_TAGS     /* tag_reader.c */
};
enum { MOST_OUT = 400 };

/* A drey_reply_reader inside of the library: what is being read, how far, and bytes that may be the
 * beginning of a mark. */
typedef struct reply_reader {
    int32_t n_calls;
    int32_t state, at, levels, n_name, n_held, value;
    uint32_t tool;
    bool trims, wrote, bare, raw, had_text, had_reasoning, in_thought, quoted, known;
    struct {
        bool in, escaped;
    } string; /* place in strings of the arguments */
    struct {
        bool code, start; /* within backticks; at its beginning */
        bool call;        /* the part that is held began after text */
    } line;
    uint8_t spelling, detour;
    char name[REPLY_NAME_BYTES], held[192];
    uint64_t came;
    reply_form form;
} reply_reader;
static_assert(sizeof(reply_reader) <= sizeof(drey_reply_reader) &&
                  offsetof(reply_reader, n_calls) == offsetof(drey_reply_reader, n_calls),
              "programs have a drey_reply_reader's memory");

/* Pieces are put together before they are given out. */
typedef struct reading {
    reply_reader *r;
    const reply_family *f;
    const reply_thinking *t;
    drey_reply_fn *on_part;
    void *user;
    drey_reply_kind kind;
    size_t n_out;
    char out[MOST_OUT];
} reading;

static inline bool reading_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static inline bool reading_frame(char c)
{
    return c == REPLY_TOKEN || c == REPLY_TOKEN_END;
}

/* ---- What is given out ---- */

void reading_give(reading *x, drey_reply_kind kind, const char *bytes, size_t n);
void reading_put(reading *x, drey_reply_kind kind, char c);
void reading_flush(reading *x);
/* The call that has this name begins. */
void reading_give_call(reading *x, const char *name, size_t n);

/* ---- States ---- */

void reading_enter(reading *x, int32_t state);
/* After a mark: blanks in front of what follows are left out. */
void reading_enter_fresh(reading *x, int32_t state);
/* A text byte of the present state. */
void reading_put_plain(reading *x, char c);
/* The arguments were read: what comes after them. */
void reading_end_call(reading *x);
/* Holds the byte, or lets the first that is held be text. */
void reading_drop_held(reading *x, int32_t n);
void reading_step(reading *x, char c);

typedef enum fit { NO_FIT, PART_FIT, WHOLE_FIT } fit;
/* Returns whether text[0..n) is the mark, or its beginning. Blanks in front of the mark and at its
 * line breaks are left aside. A mark ends where a name, a value or arguments begin. */
fit reading_fits(const char *mark, const char *text, size_t n);

/* Gives a byte of a text within JSON's quotes. */
void reading_put_escaped(reading *x, char c);
/* Returns whether the text is JSON, and no text in quotes. */
bool reading_is_json(const char *text, size_t n);

/* ---- value_reader.c: arguments that are values between marks ---- */

/* Returns whether the text begins with a parameter, or with what comes after the last. */
fit values_fit_first(const reading *x, const char *text, size_t n);
void values_begin(reading *x);
/* Reads in the states AT_PARAMETER to IN_VALUE. */
void values_read(reading *x, char c);
/* The text has ended in one of them. */
void values_end(reading *x);

/* ---- literal_reader.c: arguments in the model's notation ---- */

/* Begins to read them: their opening bracket was read. */
void literal_begin(reading *x);
/* Reads in the state IN_LITERAL. */
void literal_read(reading *x, char c);

/* ---- tag_reader.c: arguments within tags of their names ---- */

void tags_begin(reading *x);
/* Reads in the state IN_TAGS. */
void tags_read(reading *x, char c);

/* ---- channel_reader.c: messages with headers ---- */

/* Reads in all states but a call's arguments. */
void channels_read(reading *x, char c);
void channels_end(reading *x);
