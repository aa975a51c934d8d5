/* Shares of units as JSON: see units_file.h. */
#include "cli/units_file.h"

#include "cli/cache_folder.h"
#include "cli/drawing.h"
#include "cli/format.h"
#include "cli/json_read.h"
#include "cli/terminal.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static const char format[] = "drey units 1";
enum { ID_BYTES = 128, MOST_SHARES = DREY_UNIT_WIDTHS * DREY_MAX_UNITS };

static const char *tier_of(const cli_settings *s)
{
    return s->cpu_tier ? s->cpu_tier : drey_cpu_tiers()[0];
}

/* FNV-1a of the text: it may hold characters that no name may. */
static bool name_of(char *out, size_t capacity, const drey_model *target, const cli_settings *s)
{
    uint64_t identity, hash = UINT64_C(0xcbf29ce484222325);
    if (drey_model_identity(target, &identity, NULL) != DREY_OK)
        return false;
    for (const char *c = s->units; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    snprintf(out, capacity, "units/%016llx-%.16s-%016llx.json", (unsigned long long)identity,
             tier_of(s), (unsigned long long)hash);
    return true;
}

/* ---- Writing ---- */

static cJSON *width_json(const drey_units_width *w, int32_t n_units)
{
    cJSON *one = cJSON_CreateObject(), *sides = cJSON_CreateArray();
    cJSON_AddNumberToObject(one, "rows", w->rows);
    cJSON_AddNumberToObject(one, "ratios_measured", w->n_measured);
    cJSON_AddItemToObject(one, "alone_s", cJSON_CreateDoubleArray(w->alone_s, n_units));
    cJSON_AddItemToObject(one, "sides", sides);
    for (int i = 0; i < DREY_UNITS_SIDES; i++) {
        cJSON *side = cJSON_CreateObject();
        cJSON_AddStringToObject(side, "side", drey_units_side_name((drey_units_side)i));
        cJSON_AddNumberToObject(side, "pass_s", w->side_s[i]);
        cJSON_AddItemToObject(side, "share", cJSON_CreateDoubleArray(w->share[i], n_units));
        cJSON_AddItemToArray(sides, side);
    }
    return one;
}

cJSON *units_json(const cli_settings *s, const drey_units_report *r)
{
    char id[ID_BYTES];
    double shares[MOST_SHARES];
    cJSON *root = cJSON_CreateObject(), *names = cJSON_CreateArray(), *widths = cJSON_CreateArray();
    drey_cpu_id(id, sizeof id);
    cJSON_AddStringToObject(root, "format", format);
    cJSON_AddStringToObject(root, "cpu", id);
    cJSON_AddStringToObject(root, "cpu_tier", tier_of(s));
    cJSON_AddStringToObject(root, "version", drey_version());
    cJSON_AddStringToObject(root, "target", drawing_file_name(s->model));
    cJSON_AddStringToObject(root, "units", s->units);
    cJSON_AddNumberToObject(root, "seconds", r->seconds);
    cJSON_AddItemToObject(root, "names", names);
    for (int32_t i = 0; i < r->n_units; i++)
        cJSON_AddItemToArray(names, cJSON_CreateString(r->units[i].name));
    for (int32_t w = 0; w < DREY_UNIT_WIDTHS; w++)
        for (int32_t i = 0; i < r->n_units; i++)
            shares[w * r->n_units + i] = r->shares.share[w][i];
    cJSON_AddItemToObject(root, "shares",
                          cJSON_CreateDoubleArray(shares, DREY_UNIT_WIDTHS * r->n_units));
    cJSON_AddItemToObject(root, "widths", widths);
    for (int32_t w = 0; w < r->n_widths; w++)
        cJSON_AddItemToArray(widths, width_json(&r->widths[w], r->n_units));
    return root;
}

drey_status units_save(const drey_model *target, const cli_settings *s, const drey_units_report *r,
                       drey_error *err)
{
    char name[120];
    if (!name_of(name, sizeof name, target, s))
        return fail(err, DREY_ERR_IO, "cannot read the model again to know it by");
    cJSON *root = units_json(s, r);
    drey_status status = cache_write(name, root, err);
    cJSON_Delete(root);
    return status;
}

/* ---- Reading ---- */

/* n numbers, none below 0. */
static bool take(const cJSON *from, const char *key, double *out, int n)
{
    const double most = 1e9;
    bool good = json_numbers(from, key, out, n) == n;
    for (int i = 0; good && i < n; i++)
        good = out[i] >= 0 && out[i] <= most;
    return good;
}

static bool take_width(const cJSON *from, drey_units_width *w, int32_t n_units)
{
    const cJSON *sides = cJSON_GetObjectItemCaseSensitive(from, "sides"), *side;
    double rows = json_number(from, "rows"), measured = json_number(from, "ratios_measured");
    int i = 0;
    bool good = rows >= 1 && rows <= 64 && measured >= 0 && measured <= 1e6 &&
                cJSON_GetArraySize(sides) == DREY_UNITS_SIDES &&
                take(from, "alone_s", w->alone_s, n_units);
    cJSON_ArrayForEach(side, sides)
    {
        double pass_s = json_number(side, "pass_s");
        good = good && pass_s >= 0 && take(side, "share", w->share[i], n_units);
        if (good)
            w->side_s[i++] = pass_s;
    }
    w->rows = good ? (int32_t)rows : 1;
    w->n_measured = good ? (int32_t)measured : 0;
    return good;
}

static bool take_report(const cJSON *root, drey_units_report *r)
{
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(root, "names"), *name;
    const cJSON *widths = cJSON_GetObjectItemCaseSensitive(root, "widths"), *width;
    double shares[MOST_SHARES];
    int n = cJSON_GetArraySize(names), n_widths = cJSON_GetArraySize(widths);
    *r = (drey_units_report){.seconds = json_number(root, "seconds")};
    if (n < 1 || n > DREY_MAX_UNITS || n_widths < 1 || n_widths > DREY_UNIT_WIDTHS ||
        !(r->seconds >= 0) || !take(root, "shares", shares, DREY_UNIT_WIDTHS * n))
        return false;
    bool good = true;
    cJSON_ArrayForEach(name, names)
    {
        good = good && cJSON_IsString(name);
        snprintf(r->units[r->n_units++].name, sizeof r->units[0].name, "%s",
                 good ? name->valuestring : "");
    }
    r->shares.n_units = n;
    for (int w = 0; w < DREY_UNIT_WIDTHS; w++) {
        double sum = 0;
        for (int i = 0; i < n; i++)
            sum += r->shares.share[w][i] = shares[w * n + i];
        good = good && sum > 0;
    }
    cJSON_ArrayForEach(width, widths) good =
        good && take_width(width, &r->widths[r->n_widths++], n);
    return good;
}

static bool says(const cJSON *root, const char *key, const char *wanted)
{
    const char *text = json_text(root, key);
    return text && strcmp(text, wanted) == 0;
}

bool units_load(const drey_model *target, const cli_settings *s, drey_units_report *out)
{
    char name[120], path[PATH_MAX], id[ID_BYTES];
    drey_error err;
    cJSON *root;
    if (!name_of(name, sizeof name, target, s) || !cache_path(path, sizeof path, name))
        return false;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    fclose(file);
    drey_cpu_id(id, sizeof id);
    bool good = json_read(&root, path, "the shares of units", &err) == DREY_OK;
    if (!good || !says(root, "format", format) || !says(root, "units", s->units) ||
        !take_report(root, out)) {
        complain("%s is not what drey tune writes, and is passed over", path);
        good = false;
    } else if (!says(root, "cpu", id) || !says(root, "version", drey_version())) {
        complain("%s was measured on another processor or by another version, and is passed over; "
                 "drey tune -m --units measures again",
                 path);
        good = false;
    }
    cJSON_Delete(root);
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

void units_table(FILE *out, const drey_units_report *r)
{
    char a[16];
    fprintf(out, "| rows | unit alone |");
    for (int i = 0; i < DREY_UNITS_SIDES; i++)
        fprintf(out, " %s |", drey_units_side_name((drey_units_side)i));
    fprintf(out, " static over even | of both alone | of the best |\n|---|---|");
    for (int i = 0; i < DREY_UNITS_SIDES + 3; i++)
        fprintf(out, "---|");
    fputc('\n', out);
    for (int32_t k = 0; k < r->n_widths; k++) {
        const drey_units_width *w = &r->widths[k];
        const double *s = w->side_s;
        fprintf(out, "| %d | ", w->rows);
        for (int32_t i = 0; i < r->n_units; i++)
            fprintf(out, "%s%s", i ? ", " : "", format_seconds(a, w->alone_s[i]));
        for (int i = 0; i < DREY_UNITS_SIDES; i++) {
            fprintf(out, " | ");
            if (s[i] <= 0)
                continue;
            fprintf(out, "%s (", format_seconds(a, s[i]));
            put_shares(out, w->share[i], r->n_units);
            fprintf(out, ")");
        }
        fprintf(out, " | %.2f | %.2f | ", s[DREY_UNITS_EVEN] / s[DREY_UNITS_STATIC],
                alone_sum_s(r, w) / s[DREY_UNITS_STATIC]);
        if (s[DREY_UNITS_SWEPT] > 0)
            fprintf(out, "%.2f ", s[DREY_UNITS_SWEPT] / s[DREY_UNITS_STATIC]);
        fprintf(out, "|\n");
    }
}
