/* Parsing the description of units: see unit_words.h. */
#include "unit/unit_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"
#include "os/pool.h"
#include "unit/device.h"

enum { MOST_CHARS = 500 };
static const double most_share = 1e6, most_slow = 1000;

typedef struct reader {
    char text[MOST_CHARS + 1];
    const device_class *more;
    unit_words *out;
    drey_error *err;
} reader;

/* ---- One unit ---- */

static bool parse_number(const char *text, double least, double most, double *out)
{
    char *end;
    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    *out = strtod(text, &end);
    return *end == 0 && *out >= least && *out <= most;
}

/* The cores of the process that are in no other cluster. */
static drey_status take_cores(const reader *r, unit_word *u)
{
    core_set allowed;
    if (!cores_parse(u->which, &u->cores))
        FAIL(r->err, DREY_ERR_USAGE,
             "\"%s\" are no cores of a unit; write them as 0-3 or as 0,2, the least 0", u->which);
    bool known = cores_of_thread(&allowed);
    for (int32_t core = 0; core < DREY_MAX_THREADS; core++) {
        if (!cores_has(&u->cores, core))
            continue;
        if (known && !cores_has(&allowed, core))
            FAIL(r->err, DREY_ERR_USAGE,
                 "core %d is none of this process's; give its units cores that it may use", core);
        for (const unit_word *other = r->out->unit; other < u; other++)
            if (cores_has(&other->cores, core))
                FAIL(r->err, DREY_ERR_USAGE,
                     "core %d is in two units; a core belongs to one of them", core);
    }
    u->n_threads = cores_count(&u->cores);
    return DREY_OK;
}

static const device_class *find_device(const reader *r, const char *name)
{
    if (r->more && strcmp(r->more->name, name) == 0)
        return r->more;
    for (const device_class *const *c = device_all(); *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

static drey_status take_head(const reader *r, unit_word *u, char *head)
{
    char *which = strchr(head, ':');
    if (which) {
        *which++ = 0;
        if (*which == 0 || strlen(which) >= sizeof u->which)
            FAIL(r->err, DREY_ERR_USAGE,
                 "what follows \"%s:\" is no name of a unit: cores (0-3), or a device's", head);
        snprintf(u->which, sizeof u->which, "%s", which);
    }
    if (strcmp(head, "cpu") == 0)
        return which ? take_cores(r, u) : DREY_OK;
    u->device = find_device(r, head);
    if (!u->device) {
        char names[200] = "cpu";
        size_t n = strlen(names);
        for (const device_class *const *c = device_all(); *c && n < sizeof names; c++)
            n += (size_t)snprintf(names + n, sizeof names - n, ", %s", (*c)->name);
        FAIL(r->err, DREY_ERR_USAGE, "\"%.40s\" is no unit; there are %s, and auto", head, names);
    }
    return DREY_OK;
}

static drey_status take_word(const reader *r, unit_word *u, const char *word)
{
    double number;
    if (strncmp(word, "slow=", 5) == 0) {
        if (!parse_number(word + 5, 1, most_slow, &u->slow))
            FAIL(r->err, DREY_ERR_USAGE, "\"%.40s\": a unit is slowed by a factor from 1 to %g",
                 word, most_slow);
    } else if (strncmp(word, "threads=", 8) == 0) {
        if (!parse_number(word + 8, 1, DREY_MAX_THREADS, &number) || number != (int32_t)number)
            FAIL(r->err, DREY_ERR_USAGE, "\"%.40s\": a unit has 1 to %d threads", word,
                 DREY_MAX_THREADS);
        u->n_threads = (int32_t)number;
    } else if (strlen(word) < sizeof u->tier && kernel_select(word) && *word) {
        snprintf(u->tier, sizeof u->tier, "%s", word);
    } else {
        FAIL(r->err, DREY_ERR_USAGE,
             "\"%.40s\" is no word about a unit: a CPU tier that runs here, slow=FACTOR or "
             "threads=NUMBER",
             word);
    }
    if (u->device)
        FAIL(r->err, DREY_ERR_USAGE, "\"%.40s\" is said of CPU clusters alone, not of %s", word,
             u->device->name);
    return DREY_OK;
}

/* Modifies text. */
static drey_status take_unit(reader *r, char *text)
{
    unit_words *out = r->out;
    if (out->n == DREY_MAX_UNITS)
        FAIL(r->err, DREY_ERR_USAGE, "there can be %d units at most", DREY_MAX_UNITS);
    unit_word *u = &out->unit[out->n++];
    *u = (unit_word){.slow = 1};
    char *words = strchr(text, '/');
    if (words)
        *words++ = 0;
    char *share = strchr(text, '=');
    if (share) {
        *share++ = 0;
        if (!parse_number(share, 0, most_share, &u->share))
            FAIL(r->err, DREY_ERR_USAGE,
                 "\"%.40s\" is no share of a unit: a number from 0 to %g, of which the sum "
                 "is the whole",
                 share, most_share);
    }
    if (out->n > 1 && out->has_shares != (share != NULL))
        FAIL(r->err, DREY_ERR_USAGE,
             "some units have a share and some have not; give each one, or none");
    out->has_shares = share != NULL;
    TRY(take_head(r, u, text));
    while (words) {
        char *next = strchr(words, '/');
        if (next)
            *next++ = 0;
        TRY(take_word(r, u, words));
        words = next;
    }
    return DREY_OK;
}

/* ---- All of them ---- */

/* The threads of clusters are consecutive, and so are their shares: clusters come first. */
static void put_devices_last(unit_words *w)
{
    unit_words sorted = *w;
    sorted.n = 0;
    for (int devices = 0; devices < 2; devices++) {
        for (int32_t i = 0; i < w->n; i++)
            if ((w->unit[i].device != NULL) == (devices == 1))
                sorted.unit[sorted.n++] = w->unit[i];
        if (!devices)
            sorted.n_clusters = sorted.n;
    }
    *w = sorted;
}

static drey_status resolve_threads(unit_words *w, int32_t n_threads, drey_error *err)
{
    bool alone = w->n_clusters == 1;
    for (int32_t i = 0; i < w->n_clusters; i++) {
        unit_word *u = &w->unit[i];
        if (cores_count(&u->cores) > 0 && u->n_threads != cores_count(&u->cores))
            FAIL(err, DREY_ERR_USAGE,
                 "a unit of %d cores cannot have %d threads: it has one for each core",
                 cores_count(&u->cores), u->n_threads);
        if (u->n_threads == 0)
            u->n_threads = !alone ? 1 : n_threads ? n_threads : pool_default_threads();
    }
    int32_t sum = unit_words_threads(w);
    if (sum > DREY_MAX_THREADS || (n_threads && sum != n_threads))
        FAIL_HINT(err, DREY_ERR_USAGE, DREY_HINT_N_THREADS,
                  "the units have %d threads together, not %d; let the units alone say how many",
                  sum, n_threads ? n_threads : DREY_MAX_THREADS);
    return DREY_OK;
}

static drey_status check_all(unit_words *w, drey_error *err)
{
    double sum = 0;
    for (int32_t i = 0; i < w->n; i++)
        sum += w->unit[i].share;
    if (w->has_shares && sum <= 0)
        FAIL(err, DREY_ERR_USAGE, "all units have a share of 0; one of them has to do the work");
    if (w->n_clusters == 0)
        FAIL(err, DREY_ERR_USAGE,
             "a CPU cluster has to be among the units, as it does what devices cannot; add cpu");
    return DREY_OK;
}

drey_status unit_words_parse(unit_words *out, const char *text, const device_class *more,
                             int32_t n_threads, drey_error *err)
{
    reader r = {.more = more, .out = out, .err = err};
    *out = (unit_words){.n = 0};
    text = text ? text : "cpu";
    if (strcmp(text, "auto") == 0) {
        unit_words_auto(out, "/sys/devices", n_threads);
        return DREY_OK;
    }
    size_t n = strlen(text);
    if (n > MOST_CHARS)
        FAIL(err, DREY_ERR_USAGE, "%zu characters about units are too many", n);
    memcpy(r.text, text, n + 1);
    for (char *unit = r.text; unit;) {
        char *next = strchr(unit, '+');
        if (next)
            *next++ = 0;
        if (strcmp(unit, "static") == 0)
            out->is_static = true;
        else
            TRY(take_unit(&r, unit));
        unit = next;
    }
    put_devices_last(out);
    TRY(check_all(out, err));
    return resolve_threads(out, n_threads, err);
}

void unit_words_auto(unit_words *out, const char *devices, int32_t n_threads)
{
    core_set allowed, sets[DREY_MAX_UNITS];
    int32_t speed[DREY_MAX_UNITS], n = 0;
    *out = (unit_words){.n = 0};
    if (n_threads == 0 && cores_of_thread(&allowed))
        n = cores_by_speed(devices, &allowed, sets, speed, DREY_MAX_UNITS);
    out->n = out->n_clusters = n > 1 ? n : 1;
    for (int32_t i = 0; i < out->n; i++)
        out->unit[i] = (unit_word){.slow = 1};
    for (int32_t i = 0; i < n && n > 1; i++) {
        unit_word *u = &out->unit[i];
        u->cores = sets[i];
        u->n_threads = cores_count(&sets[i]);
        u->share = (double)speed[i] * u->n_threads;
    }
    if (n <= 1)
        out->unit[0].n_threads = n_threads ? n_threads : pool_default_threads();
}

bool unit_words_are_plain(const unit_words *w)
{
    const unit_word *u = &w->unit[0];
    return w->n == 1 && u->slow <= 1 && !u->tier[0] && cores_count(&u->cores) == 0;
}

int32_t unit_words_threads(const unit_words *w)
{
    int32_t n = 0;
    for (int32_t i = 0; i < w->n_clusters; i++)
        n += w->unit[i].n_threads;
    return n;
}
