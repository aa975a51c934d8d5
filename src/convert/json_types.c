/* Kinds of members: see json_types.h. */
#include "convert/json_types.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gguf/gguf.h"

static const char *const kind_words[] = {[KIND_COUNT] = "a whole number above 0",
                                         [KIND_NUMBER] = "a number",
                                         [KIND_POSITIVE] = "a number above 0",
                                         [KIND_EACH] = "a number above 0",
                                         [KIND_BOOL] = "true or false",
                                         [KIND_TEXT] = "a text",
                                         [KIND_OBJECT] = "an object",
                                         [KIND_ARRAY] = "an array",
                                         [KIND_COUNTS] = "an array of whole numbers",
                                         [KIND_NUMBERS] = "an array of numbers",
                                         [KIND_TEXTS] = "an array of texts",
                                         [KIND_ID] = "the number of a token",
                                         [KIND_ID_PAD] = "the number of a token",
                                         [KIND_IDS] = "numbers of tokens",
                                         [KIND_TOKEN] = "the text of a token"};

static bool is_whole(const json_value *v, int64_t least)
{
    return v->type == JSON_NUMBER && v->is_integer && v->integer >= least &&
           v->integer <= INT32_MAX;
}

/* Keys of a file are floats: what becomes infinite or 0 there is another number. */
static bool is_float(const json_value *v)
{
    return v->type == JSON_NUMBER && fabs(v->number) <= (double)FLT_MAX &&
           (v->number == 0 || fabs(v->number) >= (double)FLT_MIN);
}

/* A text with a NUL inside would be cut there. */
static bool is_plain_text(const json_value *v)
{
    return v && v->type == JSON_STRING && strlen(v->text) == v->n;
}

static bool is_kind(const json_value *v, json_kind kind);

static bool is_array_of(const json_value *v, json_kind kind)
{
    if (v->type != JSON_ARRAY)
        return false;
    for (const json_value *item = v->first; item; item = item->next)
        if (!is_kind(item, kind))
            return false;
    return true;
}

static bool is_kind(const json_value *v, json_kind kind)
{
    switch (kind) {
    case KIND_COUNT:
        return is_whole(v, 1);
    case KIND_NUMBER:
        return is_float(v);
    case KIND_POSITIVE:
        return is_float(v) && v->number > 0;
    case KIND_EACH:
        return is_array_of(v, KIND_POSITIVE) || is_kind(v, KIND_POSITIVE);
    case KIND_BOOL:
        return v->type == JSON_TRUE || v->type == JSON_FALSE;
    case KIND_TEXT:
        return is_plain_text(v);
    case KIND_OBJECT:
        return v->type == JSON_OBJECT;
    case KIND_ARRAY:
        return v->type == JSON_ARRAY;
    case KIND_COUNTS:
        return is_array_of(v, KIND_ID);
    case KIND_NUMBERS:
        return is_array_of(v, KIND_NUMBER);
    case KIND_TEXTS:
        return is_array_of(v, KIND_TEXT);
    case KIND_ID:
        return is_whole(v, 0);
    case KIND_ID_PAD:
        return is_whole(v, -1);
    case KIND_IDS:
        return is_whole(v, 0) || (is_array_of(v, KIND_ID) && v->n > 0);
    case KIND_TOKEN:
        return v->type == JSON_FALSE || is_plain_text(v) ||
               is_plain_text(json_member(v, "content"));
    }
    return false;
}

/* A value for a message. */
static const char *shown(const json_value *v, char out[48])
{
    char text[40];
    if (v->type == JSON_STRING)
        snprintf(out, 48, "\"%s\"", gguf_printable(text, sizeof text, v->text, v->n));
    else if (v->type == JSON_NUMBER)
        snprintf(out, 48, "%.10g", v->number);
    else
        snprintf(out, 48, "%s",
                 v->type == JSON_TRUE    ? "true"
                 : v->type == JSON_FALSE ? "false"
                 : v->type == JSON_ARRAY ? "an array"
                                         : "an object");
    return out;
}

static const member_kind *find_kind(const member_kind *list, const json_value *v)
{
    for (; list->name; list++)
        if (strlen(list->name) == v->n_key && memcmp(list->name, v->key, v->n_key) == 0)
            return list;
    return NULL;
}

/* The last member of that name counts: see json_member. */
static bool is_once(const json_value *v)
{
    for (const json_value *w = v->next; w; w = w->next)
        if (w->n_key == v->n_key && memcmp(w->key, v->key, v->n_key) == 0 && !json_same(v, w))
            return false;
    return true;
}

drey_status check_members(const json_value *object, const member_kind *list, bool all,
                          const char *in, drey_error *err)
{
    char value[48], name[48];
    for (const json_value *v = object ? object->first : NULL; v; v = v->next) {
        const member_kind *known = find_kind(list, v);
        if (!known && all && v->type != JSON_NULL)
            FAIL(err, DREY_ERR_UNSUPPORTED, "%s has \"%s\", which drey does not know", in,
                 gguf_printable(name, sizeof name, v->key, v->n_key));
        if (!known)
            continue;
        if (!is_once(v))
            FAIL(err, DREY_ERR_FORMAT, "%s is in %s twice, with two values; leave one", known->name,
                 in);
        if (v->type == JSON_NULL || is_kind(v, known->kind))
            continue;
        FAIL(err, DREY_ERR_FORMAT, "%s of %s is %s, where %s has to be", known->name, in,
             shown(v, value), kind_words[known->kind]);
    }
    return DREY_OK;
}
