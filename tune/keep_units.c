/* Keeps shares of units in a cache folder: a file for each model, tier and text about units. See
 * drey/tune.h. */
#include "drey/drey_engine.h"
#include "drey/tune.h"
#include "tune/measured.h"

#include <math.h>
#include <string.h>

#include "common/hash.h"
#include "common/path.h"
#include "tune/cache_file.h"

enum { MOST_SHARES = DREY_UNIT_WIDTHS * DREY_MAX_UNITS };

typedef struct division {
    const char *units; /* the text about them */
    drey_units_report *products;
    drey_boundaries_report *attention;
} division;

static bool take(const json_value *root, void *out);
static const cache_kind kind = {.format = "drey units 2", .take = take};

/* A hash of the text: it may hold characters that no name may. */
static bool name_of(char out[CACHE_NAME_BYTES], const drey_engine_options *o)
{
    uint64_t identity;
    if (!o->units || drey_model_identity(o->target, &identity, NULL) != DREY_OK)
        return false;
    snprintf(out, CACHE_NAME_BYTES, "units/%016llx-%.16s-%016llx.json",
             (unsigned long long)identity, cache_tier(o->cpu_tier),
             (unsigned long long)hash64_of(o->units, strlen(o->units)));
    return true;
}

/* ---- Writing ---- */

static void put_side(json_writer *w, const char *name, const char *key, double seconds)
{
    json_put_object(w, NULL);
    json_put_text(w, "side", name);
    json_put_number(w, key, seconds);
    json_close(w, '}');
}

static void put_width(json_writer *w, const drey_units_width *width, int32_t n_units)
{
    json_put_object(w, NULL);
    json_put_number(w, "rows", width->rows);
    json_put_number(w, "ratios_measured", width->n_measured);
    json_put_numbers(w, "alone_s", width->alone_s, n_units);
    json_put_numbers(w, "share", width->share, n_units);
    json_put_array(w, "sides");
    for (int i = 0; i < DREY_UNITS_SIDES; i++)
        put_side(w, drey_units_side_name((drey_units_side)i), "pass_s", width->side_s[i]);
    json_close(w, ']');
    json_close(w, '}');
}

static void put_attention(json_writer *w, const drey_boundary_context *c)
{
    json_put_object(w, NULL);
    json_put_number(w, "positions", c->n_positions);
    json_put_number(w, "boundary", (double)c->boundary);
    json_put_number(w, "boundaries_measured", c->n_measured);
    json_put_array(w, "sides");
    for (int i = 0; i < DREY_BOUNDARY_SIDES; i++)
        put_side(w, drey_boundary_side_name((drey_boundary_side)i), "attention_s", c->side_s[i]);
    json_close(w, ']');
    json_close(w, '}');
}

void units_put(json_writer *w, const drey_engine_options *o, const drey_units_report *r,
               const drey_boundaries_report *attention)
{
    double shares[MOST_SHARES];
    cache_put_origin(w, &kind, o->cpu_tier, 0);
    json_put_text(w, "target", path_name(model_path(o->target)));
    json_put_text(w, "units", o->units);
    json_put_number(w, "seconds", r->seconds);
    json_put_array(w, "names");
    for (int32_t i = 0; i < r->n_units; i++)
        json_put_text(w, NULL, r->units[i].name);
    json_close(w, ']');
    for (int32_t k = 0; k < DREY_UNIT_WIDTHS; k++)
        for (int32_t i = 0; i < r->n_units; i++)
            shares[k * r->n_units + i] = r->shares.share[k][i];
    json_put_numbers(w, "shares", shares, DREY_UNIT_WIDTHS * r->n_units);
    json_put_array(w, "widths");
    for (int32_t k = 0; k < r->n_widths; k++)
        put_width(w, &r->widths[k], r->n_units);
    json_close(w, ']');
    json_put_array(w, "attention");
    for (int32_t i = 0; i < attention->n_contexts; i++)
        put_attention(w, &attention->contexts[i]);
    json_close(w, ']');
}

drey_status drey_units_store(const drey_engine_options *o, const char *folder,
                             const drey_units_report *products,
                             const drey_boundaries_report *attention, drey_error *err)
{
    char name[CACHE_NAME_BYTES];
    if (!name_of(name, o))
        FAIL(err, DREY_ERR_IO, "cannot read the model again to know it by");
    json_buffer b;
    units_put(json_buffer_begin(&b), o, products, attention);
    return cache_write(folder, name, &b, err);
}

/* ---- Reading ---- */

/* The seconds of n sides. */
static bool take_sides(const json_value *from, const char *key, double *seconds, uint32_t n)
{
    const json_value *sides = json_member_array(from, "sides");
    bool good = sides && sides->n == n;
    for (const json_value *side = good ? sides->first : NULL; side && good; side = side->next) {
        *seconds = json_member_number(side, key);
        good = *seconds++ >= 0;
    }
    return good;
}

static bool take_width(const json_value *from, drey_units_width *w, int32_t n_units)
{
    double rows = json_member_number(from, "rows"),
           measured = json_member_number(from, "ratios_measured");
    bool good = rows >= 1 && rows <= 64 && measured >= 0 && measured <= 1e6 &&
                cache_take_numbers(from, "alone_s", w->alone_s, n_units) &&
                cache_take_numbers(from, "share", w->share, n_units) &&
                take_sides(from, "pass_s", w->side_s, DREY_UNITS_SIDES);
    w->rows = good ? (int32_t)rows : 1;
    w->n_measured = good ? (int32_t)measured : 0;
    return good;
}

static bool take_report(const json_value *root, drey_units_report *r)
{
    const json_value *names = json_member_array(root, "names"),
                     *widths = json_member_array(root, "widths");
    double shares[MOST_SHARES];
    int n = names ? (int)names->n : 0;
    *r = (drey_units_report){.seconds = json_member_number(root, "seconds")};
    if (n < 1 || n > DREY_MAX_UNITS || !widths || widths->n < 1 || widths->n > DREY_UNIT_WIDTHS ||
        !(r->seconds >= 0) || !cache_take_numbers(root, "shares", shares, DREY_UNIT_WIDTHS * n))
        return false;
    bool good = true;
    for (const json_value *name = names->first; name; name = name->next) {
        good = good && name->type == JSON_STRING;
        snprintf(r->units[r->n_units++].name, sizeof r->units[0].name, "%s",
                 good ? name->text : "");
    }
    r->shares.n_units = n;
    for (int w = 0; w < DREY_UNIT_WIDTHS; w++) {
        double sum = 0;
        for (int i = 0; i < n; i++)
            sum += r->shares.share[w][i] = shares[w * n + i];
        good = good && sum > 0;
    }
    for (const json_value *width = widths->first; width && good; width = width->next)
        good = take_width(width, &r->widths[r->n_widths++], n);
    return good;
}

static bool take_context(const json_value *from, int32_t n_positions, drey_boundary_context *c)
{
    double boundary = json_member_number(from, "boundary"),
           measured = json_member_number(from, "boundaries_measured");
    bool good = json_member_number(from, "positions") == n_positions && fabs(boundary) <= 1 &&
                measured >= 0 && measured <= 1e6 &&
                take_sides(from, "attention_s", c->side_s, DREY_BOUNDARY_SIDES);
    c->n_positions = n_positions;
    c->boundary = good ? (float)boundary : 0;
    c->n_measured = good ? (int32_t)measured : 0;
    return good;
}

/* Reads boundaries, if there are any, for the lengths of context that the library knows. */
static bool take_attention(const json_value *root, const division *m)
{
    const json_value *list = json_member_array(root, "attention");
    drey_boundaries_report *a = m->attention;
    drey_unit_shares *shares = &m->products->shares;
    *a = (drey_boundaries_report){.n_contexts = 0};
    bool good = !list || list->n <= DREY_UNIT_CONTEXTS;
    for (const json_value *one = list && good ? list->first : NULL; one; one = one->next) {
        int32_t i = a->n_contexts, n_positions = DREY_UNIT_CONTEXT << 2 * i;
        good = good && take_context(one, n_positions, &a->contexts[i]);
        if (!good)
            return false;
        shares->boundary[i] = a->contexts[i].boundary;
        shares->n_boundaries = ++a->n_contexts;
    }
    return good;
}

static bool take(const json_value *root, void *out)
{
    const division *m = out;
    return json_member_is(root, "units", m->units) && take_report(root, m->products) &&
           take_attention(root, m);
}

drey_status drey_units_load(const drey_engine_options *o, const char *folder,
                            drey_units_report *products, drey_boundaries_report *attention,
                            drey_error *err)
{
    char name[CACHE_NAME_BYTES];
    division out = {o->units, products, attention};
    if (!folder || !name_of(name, o))
        return cache_missing(err);
    return cache_read(folder, name, &kind, o->cpu_tier, &out, err);
}
