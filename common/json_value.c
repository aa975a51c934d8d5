/* JSON as values: see json_value.h. */
#include "common/json_value.h"
#include "common/json_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading ---- */

/* Decodes the last event's string in place: the result is never longer, and the NUL replaces the
 * last quote at most. */
static const char *decode(json_reader *r, char *text, uint32_t *n)
{
    char *begin = text + r->begin, *out = begin;
    json_part part;
    while (json_next_part(r, &part)) {
        memmove(out, part.bytes, part.n);
        out += part.n;
    }
    *out = '\0';
    *n = (uint32_t)(out - begin);
    return begin;
}

static bool take_number(json_value *v, json_reader *r)
{
    char copy[128];
    size_t n = r->end - r->begin;
    if (n >= sizeof copy) {
        json_refuse(r, "a number is too long");
        return false;
    }
    memcpy(copy, r->text + r->begin, n);
    copy[n] = '\0';
    v->number = strtod(copy, NULL);
    v->is_integer = n <= 18 && json_is_whole(r);
    v->integer = v->is_integer ? strtoll(copy, NULL, 10) : 0;
    if (!isfinite(v->number))
        json_refuse(r, "a number is too large");
    return isfinite(v->number);
}

static json_value *new_value(json_values *all, json_reader *r, json_event type)
{
    if (all->n == all->capacity) {
        json_refuse(r, "it has more values than a request may have");
        return NULL;
    }
    json_value *v = &all->values[all->n++];
    *v = (json_value){.type = type};
    return v;
}

typedef struct level {
    json_value *list, *last;
} level;

static void add(level *to, json_value *v)
{
    if (!to->list)
        return;
    if (to->last)
        to->last->next = v;
    else
        to->list->first = v;
    to->last = v;
    to->list->n++;
}

static void read_values(json_values *all, json_reader *r, char *text)
{
    level levels[JSON_MOST_DEPTH + 1] = {{0}}, *at = levels;
    const char *key = NULL;
    uint32_t n_key = 0;
    for (;;) {
        json_event event = json_next(r);
        if (event >= JSON_DONE)
            return;
        if (event == JSON_KEY) {
            key = decode(r, text, &n_key);
            continue;
        }
        if (event == JSON_CLOSE) {
            at--;
            continue;
        }
        json_value *v = new_value(all, r, event);
        if (!v || (event == JSON_NUMBER && !take_number(v, r)))
            return;
        v->key = key;
        v->n_key = n_key;
        key = NULL;
        n_key = 0;
        if (event == JSON_STRING)
            v->text = decode(r, text, &v->n);
        add(at, v);
        if (event == JSON_ARRAY || event == JSON_OBJECT)
            *++at = (level){.list = v};
    }
}

static void begin(json_reader *r, const char *text, size_t n, bool broken_utf8)
{
    json_reader_init(r, text, n, JSON_MOST_DEPTH);
    r->half_pairs = true;
    r->broken_utf8 = broken_utf8;
}

static json_value *parse(json_values *all, char *text, size_t n, bool broken_utf8)
{
    json_reader r;
    begin(&r, text, n, broken_utf8);
    all->n = 0;
    if (n > UINT32_MAX / 2)
        json_refuse(&r, "it is too long");
    else
        read_values(all, &r, text);
    all->why = r.why;
    all->at = r.why_at;
    return r.why ? NULL : all->values;
}

json_value *json_parse(json_values *all, char *text, size_t n)
{
    return parse(all, text, n, false);
}

static size_t count_values(json_document *d, const char *text, size_t n)
{
    json_reader r;
    size_t n_values = 0;
    begin(&r, text, n, true);
    for (json_event event; (event = json_next(&r)) < JSON_DONE;)
        n_values += event <= JSON_OBJECT;
    d->why = r.why;
    d->at = r.why_at;
    return r.why ? 0 : n_values;
}

json_value *json_load(json_document *d, const char *text, size_t n)
{
    *d = (json_document){.root = NULL};
    json_values all = {.capacity = count_values(d, text, n)};
    if (all.capacity == 0)
        return NULL;
    d->text = malloc(n);
    d->values = all.values = malloc(all.capacity * sizeof *all.values);
    if (d->text && d->values) {
        memcpy(d->text, text, n);
        d->root = parse(&all, d->text, n, true);
    }
    if (!d->root) {
        json_free(d);
        d->why = all.why;
        d->at = all.at;
    }
    return d->root;
}

void json_free(json_document *d)
{
    free(d->text);
    free(d->values);
    *d = (json_document){.root = NULL};
}

/* ---- Members ---- */

json_value *json_member(const json_value *object, const char *key)
{
    json_value *found = NULL;
    size_t n = strlen(key);
    if (!object || object->type != JSON_OBJECT)
        return NULL;
    for (json_value *v = object->first; v; v = v->next)
        if (v->n_key == n && memcmp(v->key, key, n) == 0)
            found = v;
    return found && found->type != JSON_NULL ? found : NULL;
}

static json_value *member_of(const json_value *object, const char *key, json_event type)
{
    json_value *v = json_member(object, key);
    return v && v->type == type ? v : NULL;
}

json_value *json_member_array(const json_value *object, const char *key)
{
    return member_of(object, key, JSON_ARRAY);
}

const char *json_member_text(const json_value *object, const char *key)
{
    const json_value *v = member_of(object, key, JSON_STRING);
    return v ? v->text : NULL;
}

double json_member_number(const json_value *object, const char *key)
{
    const json_value *v = member_of(object, key, JSON_NUMBER);
    return v ? v->number : (double)NAN;
}

bool json_member_bool(const json_value *object, const char *key, bool *out)
{
    const json_value *v = json_member(object, key);
    *out = v && v->type == JSON_TRUE;
    return v && (v->type == JSON_TRUE || v->type == JSON_FALSE);
}

int json_member_numbers(const json_value *object, const char *key, double *out, int most)
{
    const json_value *list = json_member_array(object, key);
    int n = 0;
    if (!list)
        return -1;
    for (const json_value *v = list->first; v; v = v->next) {
        if (n == most || v->type != JSON_NUMBER)
            return -1;
        out[n++] = v->number;
    }
    return n;
}

bool json_member_is(const json_value *object, const char *key, const char *text)
{
    const char *found = json_member_text(object, key);
    return found && strcmp(found, text) == 0;
}

static bool same_lists(const json_value *a, const json_value *b)
{
    const json_value *y = b->first;
    for (const json_value *x = a->first; x; x = x->next, y = y->next)
        if (!json_same(x, y))
            return false;
    return true;
}

static const json_value *member_like(const json_value *object, const json_value *like)
{
    for (const json_value *v = object->first; v; v = v->next)
        if (v->n_key == like->n_key && memcmp(v->key, like->key, v->n_key) == 0)
            return v;
    return NULL;
}

bool json_same(const json_value *a, const json_value *b)
{
    if (a->type != b->type || a->n != b->n)
        return false;
    if (a->type == JSON_NUMBER)
        return a->number == b->number &&
               (!a->is_integer || !b->is_integer || a->integer == b->integer);
    if (a->type == JSON_STRING)
        return memcmp(a->text, b->text, a->n) == 0;
    if (a->type == JSON_ARRAY)
        return same_lists(a, b);
    for (const json_value *x = a->type == JSON_OBJECT ? a->first : NULL; x; x = x->next) {
        const json_value *y = member_like(b, x);
        if (!y || !json_same(x, y))
            return false;
    }
    return true;
}

/* ---- Writing ---- */

void json_raw_value(json_writer *w, const json_value *v)
{
    static const char *const words[] = {"null", "false", "true"};
    char whole[32];
    bool object = v->type == JSON_OBJECT;
    if (v->type <= JSON_TRUE) {
        json_raw(w, words[v->type]);
    } else if (v->type == JSON_STRING) {
        json_raw_string(w, v->text, v->n);
    } else if (v->type == JSON_NUMBER && v->is_integer) {
        snprintf(whole, sizeof whole, "%lld", (long long)v->integer);
        json_raw(w, whole);
    } else if (v->type == JSON_NUMBER) {
        json_raw_number(w, v->number);
    } else {
        json_open(w, object ? '{' : '[');
        for (const json_value *one = v->first; one; one = one->next) {
            json_item(w);
            if (object) {
                json_raw_string(w, one->key, one->n_key);
                json_after_key(w);
            }
            json_raw_value(w, one);
        }
        json_close(w, object ? '}' : ']');
    }
}
