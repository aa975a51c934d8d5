/* Kinds of members in a model's JSON files. A member that is there and of another kind is an
 * error: as if it were missing, another model would be made of the folder. Internal to this
 * folder. */
#pragma once

#include "common/error.h"
#include "common/json_value.h"

typedef enum json_kind {
    KIND_COUNT,    /* a whole number from 1 on */
    KIND_NUMBER,   /* a number that a float can hold */
    KIND_POSITIVE, /* the same, above 0 */
    KIND_EACH,     /* a number above 0, or an array with one of each layer */
    KIND_BOOL,
    KIND_TEXT,
    KIND_OBJECT,
    KIND_ARRAY,
    KIND_COUNTS, /* an array of whole numbers from 0 on */
    KIND_NUMBERS,
    KIND_TEXTS,
    KIND_ID,     /* id of a token: a whole number from 0 on */
    KIND_ID_PAD, /* the same, or -1 for none */
    KIND_IDS,    /* one, or an array of them */
    KIND_TOKEN   /* a token's text, or an object that has it as "content"; false for none */
} json_kind;

typedef struct member_kind {
    const char *name; /* NULL: the end of a list */
    json_kind kind;
} member_kind;

/* Members of `object` that are in the list, null ones apart; each at most once, or the same twice.
 * `in` names the object in a message: "config.json". object NULL: there is nothing to check.
 * all: members that are not in the list are errors as well. */
drey_status check_members(const json_value *object, const member_kind *list, bool all,
                          const char *in, drey_error *err);
