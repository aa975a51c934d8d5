/* Shares of units as JSON: see units_file.h. */
#include "cli/files/units_file.h"

#include "cli/files/cache_folder.h"
#include "cli/terminal/format.h"
#include "cli/terminal/terminal.h"
#include "common/hash.h"
#include "common/json_buffer.h"
#include "common/path.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static const char format[] = "drey units 2";
enum { ID_BYTES = 128, MOST_SHARES = DREY_UNIT_WIDTHS * DREY_MAX_UNITS, MOST_BYTES = 1 << 20 };

/* ---- Measuring ---- */

typedef struct teller {
    const units_steps *steps;
    const char *form; /* of a number, and of what makes a plural of it */
} teller;

static void tell_number(void *user, int32_t n)
{
    const teller *t = user;
    char what[80];
    snprintf(what, sizeof what, t->form, n, n == 1 ? "" : "s");
    t->steps->stage(t->steps->user, what);
}

static int32_t attending_of(const drey_units_report *r)
{
    int32_t n = 0;
    for (int32_t i = 0; i < r->n_units; i++)
        n += r->units[i].attends > 0;
    return n;
}

/* That the model was made for, beside the tree's rows. */
static int32_t positions_of(const drey_model *target, int32_t most)
{
    enum { USUAL = 4096, TREE = 65 };
    drey_model_info info;
    drey_model_describe(target, &info);
    most = most ? most : USUAL;
    return info.n_context_train > 0 && info.n_context_train - TREE < most
               ? info.n_context_train - TREE
               : most;
}

drey_status units_measure(const drey_model *target, const drey_engine_options *options,
                          const units_steps *steps, units_measured *out, drey_error *err)
{
    teller rows = {steps, "units, passes of %d row%s"};
    teller positions = {steps, "units, attention behind %d position%s"};
    const drey_units_options products = {.stage = tell_number, .user = &rows};
    const drey_boundaries_options attention = {.most_positions =
                                                   positions_of(target, steps->most_positions),
                                               .stage = tell_number,
                                               .user = &positions};
    drey_engine_options o = *options;
    drey_unit_shares *shares = &out->products.shares;
    out->attention = (drey_boundaries_report){.n_contexts = 0};
    drey_status status = drey_tune_units(&o, &products, &out->products, err);
    if (status != DREY_OK || attending_of(&out->products) < 2)
        return status;
    if (attention.most_positions < DREY_UNIT_CONTEXT) {
        complain("attention's boundary was not measured: attention is divided behind %d positions "
                 "and more, and the context is to hold %d",
                 DREY_UNIT_CONTEXT, attention.most_positions);
        return DREY_OK;
    }
    o.unit_shares = shares;
    status = drey_tune_boundaries(&o, &attention, &out->attention, err);
    if (status == DREY_ERR_MEMORY) {
        complain("attention's boundary was not measured behind %d positions: %s",
                 attention.most_positions, err->message);
        return DREY_OK;
    }
    shares->n_boundaries = out->attention.n_contexts;
    for (int32_t i = 0; i < shares->n_boundaries; i++)
        shares->boundary[i] = out->attention.contexts[i].boundary;
    return status;
}

static const char *tier_of(const cli_settings *s)
{
    return s->cpu_tier ? s->cpu_tier : drey_cpu_tiers()[0];
}

/* A hash of the text: it may hold characters that no name may. */
static bool name_of(char *out, size_t capacity, const drey_model *target, const cli_settings *s)
{
    uint64_t identity;
    if (drey_model_identity(target, &identity, NULL) != DREY_OK)
        return false;
    snprintf(out, capacity, "units/%016llx-%.16s-%016llx.json", (unsigned long long)identity,
             tier_of(s), (unsigned long long)hash64_of(s->units, strlen(s->units)));
    return true;
}

/* ---- Writing ---- */

static void put_width(json_writer *w, const drey_units_width *width, int32_t n_units)
{
    json_put_object(w, NULL);
    json_put_number(w, "rows", width->rows);
    json_put_number(w, "ratios_measured", width->n_measured);
    json_put_numbers(w, "alone_s", width->alone_s, n_units);
    json_put_numbers(w, "share", width->share, n_units);
    json_put_array(w, "sides");
    for (int i = 0; i < DREY_UNITS_SIDES; i++) {
        json_put_object(w, NULL);
        json_put_text(w, "side", drey_units_side_name((drey_units_side)i));
        json_put_number(w, "pass_s", width->side_s[i]);
        json_close(w, '}');
    }
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
    for (int i = 0; i < DREY_BOUNDARY_SIDES; i++) {
        json_put_object(w, NULL);
        json_put_text(w, "side", drey_boundary_side_name((drey_boundary_side)i));
        json_put_number(w, "attention_s", c->side_s[i]);
        json_close(w, '}');
    }
    json_close(w, ']');
    json_close(w, '}');
}

void units_put(json_writer *w, const cli_settings *s, const units_measured *m)
{
    const drey_units_report *r = &m->products;
    char id[ID_BYTES];
    double shares[MOST_SHARES];
    drey_cpu_id(id, sizeof id);
    json_put_text(w, "format", format);
    json_put_text(w, "cpu", id);
    json_put_text(w, "cpu_tier", tier_of(s));
    json_put_text(w, "version", drey_version());
    json_put_text(w, "target", path_name(s->model));
    json_put_text(w, "units", s->units);
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
    for (int32_t i = 0; i < m->attention.n_contexts; i++)
        put_attention(w, &m->attention.contexts[i]);
    json_close(w, ']');
}

drey_status units_save(const drey_model *target, const cli_settings *s, const units_measured *m,
                       drey_error *err)
{
    char name[120];
    if (!name_of(name, sizeof name, target, s))
        FAIL(err, DREY_ERR_IO, "cannot read the model again to know it by");
    json_buffer b;
    units_put(json_buffer_begin(&b), s, m);
    return cache_write(name, &b, err);
}

/* ---- Reading ---- */

/* n numbers, none below 0. */
static bool take(const json_value *from, const char *key, double *out, int n)
{
    const double most = 1e9;
    bool good = json_member_numbers(from, key, out, n) == n;
    for (int i = 0; good && i < n; i++)
        good = out[i] >= 0 && out[i] <= most;
    return good;
}

static bool take_width(const json_value *from, drey_units_width *w, int32_t n_units)
{
    const json_value *sides = json_member_array(from, "sides");
    double rows = json_member_number(from, "rows"),
           measured = json_member_number(from, "ratios_measured");
    int i = 0;
    bool good = rows >= 1 && rows <= 64 && measured >= 0 && measured <= 1e6 && sides &&
                sides->n == DREY_UNITS_SIDES && take(from, "alone_s", w->alone_s, n_units) &&
                take(from, "share", w->share, n_units);
    for (const json_value *side = good ? sides->first : NULL; side; side = side->next) {
        double pass_s = json_member_number(side, "pass_s");
        good = good && pass_s >= 0;
        if (good)
            w->side_s[i++] = pass_s;
    }
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
        !(r->seconds >= 0) || !take(root, "shares", shares, DREY_UNIT_WIDTHS * n))
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
    const json_value *sides = json_member_array(from, "sides");
    double boundary = json_member_number(from, "boundary"),
           measured = json_member_number(from, "boundaries_measured");
    int i = 0;
    bool good = json_member_number(from, "positions") == n_positions && fabs(boundary) <= 1 &&
                measured >= 0 && measured <= 1e6 && sides && sides->n == DREY_BOUNDARY_SIDES;
    for (const json_value *side = good ? sides->first : NULL; side; side = side->next) {
        double seconds = json_member_number(side, "attention_s");
        good = good && seconds >= 0;
        if (good)
            c->side_s[i++] = seconds;
    }
    c->n_positions = n_positions;
    c->boundary = good ? (float)boundary : 0;
    c->n_measured = good ? (int32_t)measured : 0;
    return good;
}

/* Where there are boundaries, of the lengths of context that the library knows. */
static bool take_attention(const json_value *root, units_measured *m)
{
    const json_value *list = json_member_array(root, "attention");
    drey_boundaries_report *a = &m->attention;
    *a = (drey_boundaries_report){.n_contexts = 0};
    bool good = !list || list->n <= DREY_UNIT_CONTEXTS;
    for (const json_value *one = list && good ? list->first : NULL; one; one = one->next) {
        int32_t i = a->n_contexts, n_positions = DREY_UNIT_CONTEXT << 2 * i;
        good = good && take_context(one, n_positions, &a->contexts[i]);
        if (!good)
            return false;
        m->products.shares.boundary[i] = a->contexts[i].boundary;
        m->products.shares.n_boundaries = ++a->n_contexts;
    }
    return good;
}

bool units_load(const drey_model *target, const cli_settings *s, units_measured *out)
{
    char name[120], path[PATH_MAX], id[ID_BYTES];
    json_document file;
    if (!name_of(name, sizeof name, target, s) || !cache_path(path, sizeof path, name))
        return false;
    if (access(path, R_OK) != 0)
        return false;
    drey_cpu_id(id, sizeof id);
    bool good = true;
    const json_value *root = json_load_file(&file, path, MOST_BYTES);
    if (!json_member_is(root, "format", format) || !json_member_is(root, "units", s->units) ||
        !take_report(root, &out->products) || !take_attention(root, out)) {
        complain("%s is not what drey tune writes, and is passed over", path);
        good = false;
    } else if (!json_member_is(root, "cpu", id) ||
               !json_member_is(root, "version", drey_version())) {
        complain("%s was measured on another processor or by another version, and is passed over; "
                 "drey tune -m --units measures again",
                 path);
        good = false;
    }
    json_free(&file);
    return good;
}

/* ---- Showing ---- */

static void put_shares(FILE *out, const double *share, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        fprintf(out, "%s%.0f", i ? ":" : "", 100 * share[i]);
}

static double alone_sum_s(const drey_units_report *r, const drey_units_width *w)
{
    double speed = 0;
    for (int32_t i = 0; i < r->n_units; i++)
        speed += w->alone_s[i] > 0 ? 1 / w->alone_s[i] : 0;
    return speed > 0 ? 1 / speed : 0;
}

/* Behind the names of a table's columns. */
static void put_rule(FILE *out, int n_columns)
{
    for (int i = 0; i < n_columns; i++)
        fputs("|---", out);
    fputs("|\n", out);
}

static void products_table(FILE *out, const drey_units_report *r)
{
    char a[16];
    fprintf(out, "| rows | unit alone | shares |");
    for (int i = 0; i < DREY_UNITS_SIDES; i++)
        fprintf(out, " %s |", drey_units_side_name((drey_units_side)i));
    fprintf(out, " of both alone |\n");
    put_rule(out, DREY_UNITS_SIDES + 4);
    for (int32_t k = 0; k < r->n_widths; k++) {
        const drey_units_width *w = &r->widths[k];
        const double *s = w->side_s;
        fprintf(out, "| %d | ", w->rows);
        for (int32_t i = 0; i < r->n_units; i++)
            fprintf(out, "%s%s", i ? ", " : "", format_seconds(a, w->alone_s[i]));
        fputs(" | ", out);
        put_shares(out, w->share, r->n_units);
        for (int i = 0; i < DREY_UNITS_SIDES; i++)
            fprintf(out, " | %s", format_seconds(a, s[i]));
        fprintf(out, " | %.2f |\n", alone_sum_s(r, w) / s[DREY_UNITS_STATIC]);
    }
}

static void attention_table(FILE *out, const drey_boundaries_report *r)
{
    char a[16];
    fprintf(out, "\n| attention behind |");
    for (int i = 0; i < DREY_BOUNDARY_SIDES; i++)
        fprintf(out, " %s |", drey_boundary_side_name((drey_boundary_side)i));
    fprintf(out, " boundary |\n");
    put_rule(out, DREY_BOUNDARY_SIDES + 2);
    for (int32_t k = 0; k < r->n_contexts; k++) {
        const drey_boundary_context *c = &r->contexts[k];
        fprintf(out, "| %d |", c->n_positions);
        for (int i = 0; i < DREY_BOUNDARY_SIDES; i++)
            fprintf(out, " %s |", format_seconds(a, c->side_s[i]));
        fprintf(out, " %+.2f |\n", (double)c->boundary);
    }
}

void units_table(FILE *out, const units_measured *m)
{
    products_table(out, &m->products);
    if (m->attention.n_contexts)
        attention_table(out, &m->attention);
}
