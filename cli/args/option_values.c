/* The values of options: sizes, numbers, names. See options.h. */
#include "cli/args/options.h"
#include "common/error.h"
#include "common/size_text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int unit_shift(char letter)
{
    switch (letter) {
    case 'k':
    case 'K':
        return 10;
    case 'm':
    case 'M':
        return 20;
    case 'g':
    case 'G':
        return 30;
    case 't':
    case 'T':
        return 40;
    default:
        return 0;
    }
}

/* Exact: whole units and the fraction are shifted as integers, not as floating point numbers. */
bool size_parse(const char *text, uint64_t *bytes)
{
    enum { MAX_DIGITS = 6 }; /* of the fraction: 10^6 << 40 still fits into 64 bits */
    uint64_t whole = 0, fraction = 0, scale = 1;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (whole > (UINT64_MAX - digit) / 10)
            return false;
        whole = whole * 10 + digit;
    }
    if (p == text)
        return false;
    bool has_fraction = *p == '.';
    if (has_fraction) {
        const char *first = ++p;
        for (; *p >= '0' && *p <= '9'; p++) {
            fraction = fraction * 10 + (uint64_t)(*p - '0');
            scale *= 10;
            if (p - first >= MAX_DIGITS)
                return false;
        }
        if (p == first)
            return false;
    }
    const char *unit = p + strspn(p, " ");
    int shift = unit_shift(*unit);
    if (shift) {
        p = unit + 1;
        if (strcasecmp(p, "ib") == 0)
            p += 2;
        else if (strcasecmp(p, "b") == 0)
            p++;
    } else if (has_fraction) {
        return false;
    }
    if (*p || whole > UINT64_MAX >> shift)
        return false;
    uint64_t part = (fraction << shift) / scale;
    if ((whole << shift) > UINT64_MAX - part)
        return false;
    *bytes = (whole << shift) + part;
    return true;
}

/* An option as the user may write it, for messages: "-m (--model)". */
static const char *spelled(const cli_option *option, char out[static 40])
{
    if (option->letter)
        snprintf(out, 40, "-%c (--%s)", option->letter, option->name);
    else
        snprintf(out, 40, "--%s", option->name);
    return out;
}

static drey_status bad_value(const cli_option *option, const char *text, const char *wanted,
                             drey_error *err)
{
    char name[40];
    FAIL(err, DREY_ERR_USAGE, "%s takes %s, not \"%.80s\"", spelled(option, name), wanted, text);
}

/* Numbers are written as C writes them; infinities, NaN and what is out of bounds are refused. */
static drey_status read_number(const cli_option *option, const char *text, double *number,
                               drey_error *err)
{
    bool whole = option->value == CLI_COUNT;
    char wanted[80], *end;
    if (option->most < INT32_MAX)
        snprintf(wanted, sizeof wanted, "a %snumber from %g to %.10g", whole ? "whole " : "",
                 option->least, option->most);
    else
        snprintf(wanted, sizeof wanted, "a whole number from %g on", option->least);
    *number = strtod(text, &end);
    bool odd = end == text || *end || !isfinite(*number) || text[strspn(text, "-+.0123456789eE")];
    if (odd || *number < option->least || *number > option->most ||
        (whole && *number != floor(*number)))
        return bad_value(option, text, wanted, err);
    return DREY_OK;
}

/* Says how a text is written to its end, for who is used to -1. */
static drey_status refuse_endless(const cli_settings *s, const cli_option *option, const char *text,
                                  drey_error *err)
{
    char name[40];
    FAIL(err, DREY_ERR_USAGE, "%s takes a whole number from 1 on, not \"%.80s\": %s",
         spelled(option, name), text,
         s->command == CLI_RUN
             ? "a text ends by itself, and -n 8192 leaves it room for that"
             : "leave it out, and answers may have all that the context has room for");
}

static drey_status read_seed(const cli_option *option, const char *text, uint64_t *seed,
                             drey_error *err)
{
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return bad_value(option, text, "a whole number of at most 64 bits", err);
    return DREY_OK;
}

/* "80%": of the machine's memory, or of what its control groups leave; false: it is no share. */
static bool share_parse(const char *text, uint64_t *bytes)
{
    char *end;
    double percent = strtod(text, &end);
    if (*text < '0' || *text > '9' || end == text || strcmp(end, "%") != 0 || percent <= 0 ||
        percent > 100)
        return false;
    *bytes = (uint64_t)((double)drey_memory_machine() * percent / 100);
    return true;
}

static drey_status read_memory(const cli_option *option, const char *text, uint64_t *bytes,
                               drey_error *err)
{
    if (strcmp(text, "auto") == 0)
        *bytes = DREY_MEMORY_AUTO;
    else if (strcmp(text, "unlimited") == 0)
        *bytes = DREY_MEMORY_UNLIMITED;
    else if ((!size_parse(text, bytes) && !share_parse(text, bytes)) || *bytes == 0 ||
             *bytes == DREY_MEMORY_UNLIMITED)
        return bad_value(option, text, "a size such as 800M or 2.5G, a share such as 80%, or auto",
                         err);
    if (*bytes < 1 << 20 && text[strspn(text, "0123456789")] == '\0') {
        enum { MOST_G = 512, LEAST_M = 16 }; /* between them either may be meant */
        char name[40], megabytes[40] = "";
        if (*bytes >= LEAST_M)
            snprintf(megabytes, sizeof megabytes, "%sM%s", text, *bytes < MOST_G ? " or " : "");
        FAIL(err, DREY_ERR_USAGE, "%s %s is %s byte%s; write %s %s%s%s", spelled(option, name),
             text, text, *bytes == 1 ? "" : "s", spelled(option, name), megabytes,
             *bytes < MOST_G ? text : "", *bytes < MOST_G ? "G" : "");
    }
    return DREY_OK;
}

static drey_status read_size(const cli_option *option, const char *text, uint64_t *bytes,
                             drey_error *err)
{
    char wanted[80], least[16], most[16];
    if (size_parse(text, bytes) && (double)*bytes >= option->least &&
        (double)*bytes <= option->most)
        return DREY_OK;
    snprintf(wanted, sizeof wanted, "a size from %s to %s", format_bytes(least, option->least),
             format_bytes(most, option->most));
    return bad_value(option, text, wanted, err);
}

bool rate_parse(const char *text, double *bytes_per_s)
{
    char size[64];
    size_t n = strlen(text);
    uint64_t bytes = 0;
    if (n > 2 && strcmp(text + n - 2, "/s") == 0)
        n -= 2;
    if (n >= sizeof size)
        return false;
    memcpy(size, text, n);
    size[n] = '\0';
    if (!size_parse(size, &bytes) || bytes == 0)
        return false;
    *bytes_per_s = (double)bytes;
    return true;
}

static drey_status read_rate(const cli_option *option, const char *text, double *rate,
                             drey_error *err)
{
    if (!rate_parse(text, rate))
        return bad_value(option, text, "a speed such as 1.5G/s", err);
    return DREY_OK;
}

/* "auto, uring, pread or buffered" */
static void list_choices(const cli_option *option, char *out, size_t size)
{
    size_t n = 0;
    for (int i = 0; option->choice(i) && n < size; i++) {
        const char *between = i == 0 ? "" : option->choice(i + 1) ? ", " : " or ";
        n += (size_t)snprintf(out + n, size - n, "%s%s", between, option->choice(i));
    }
}

static drey_status read_choice(const cli_option *option, const char *text, void *at,
                               drey_error *err)
{
    char wanted[160];
    int i;
    if (option->parse(text, &i)) {
        memcpy(at, &i, sizeof i); /* an enum, whichever */
        return DREY_OK;
    }
    list_choices(option, wanted, sizeof wanted);
    return bad_value(option, text, wanted, err);
}

/* Names with commas between them. */
static drey_status read_set(const cli_option *option, const char *text, uint64_t *set,
                            drey_error *err)
{
    char wanted[160], name[32];
    const char *rest = text;
    *set = 0;
    for (bool more = true; more; rest++) {
        size_t n = strcspn(rest, ",");
        int i;
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name), rest);
        if (n >= sizeof name || !option->parse(name, &i)) {
            list_choices(option, wanted, sizeof wanted);
            return bad_value(option, text, wanted, err);
        }
        *set |= UINT64_C(1) << i;
        rest += n;
        more = *rest == ',';
    }
    return DREY_OK;
}

static drey_status read_stop(cli_settings *s, const char *text, drey_error *err)
{
    if (!*text)
        FAIL(err, DREY_ERR_USAGE, "--stop takes a text that is not empty");
    if (s->text.n_stops == CLI_MAX_STOPS)
        FAIL(err, DREY_ERR_USAGE, "--stop can be given %d times at most", CLI_MAX_STOPS);
    s->text.stops[s->text.n_stops++] = text;
    return DREY_OK;
}

static void read_draft(cli_settings *s, const char *text)
{
    s->drafting.draft_path = NULL;
    s->drafting.draft_auto = strcmp(text, "auto") == 0;
    s->drafting.drafter = DREY_DRAFTER_NONE;
    if (s->drafting.draft_auto)
        return;
    drey_drafter_info info;
    for (int i = 0; drey_drafter_describe((drey_drafter)i, &info); i++)
        if (!info.takes_model && strcmp(text, info.name) == 0) {
            s->drafting.drafter = (drey_drafter)i;
            return;
        }
    s->drafting.drafter = DREY_DRAFTER_MODEL;
    s->drafting.draft_path = text;
}

drey_status option_store(cli_settings *s, const cli_option *option, const char *text,
                         drey_error *err)
{
    void *at = (char *)s + option->offset;
    double number = 0;
    drey_status status = DREY_OK;
    switch (option->value) {
    case CLI_FLAG:
        *(bool *)at = true;
        break;
    case CLI_TEXT:
        *(const char **)at = text;
        break;
    case CLI_HELP: /* options.c looks at the next word as well */
        break;
    case CLI_STOP:
        return read_stop(s, text, err);
    case CLI_DRAFT:
        read_draft(s, text);
        break;
    case CLI_CHOICE:
        return read_choice(option, text, at, err);
    case CLI_SET:
        return read_set(option, text, at, err);
    case CLI_MEMORY:
        return read_memory(option, text, at, err);
    case CLI_SIZE:
        return read_size(option, text, at, err);
    case CLI_RATE:
        return read_rate(option, text, at, err);
    case CLI_SEED:
        return read_seed(option, text, at, err);
    case CLI_COUNT:
        if (*text == '-' && strcmp(option->name, "predict") == 0 &&
            s->command & (CLI_RUN | CLI_CHAT | CLI_SERVE))
            return refuse_endless(s, option, text, err);
        status = read_number(option, text, &number, err);
        if (status == DREY_OK) /* else it may be no int32_t at all */
            *(int32_t *)at = (int32_t)number;
        break;
    case CLI_REAL:
        status = read_number(option, text, &number, err);
        if (status == DREY_OK)
            *(float *)at = (float)number;
        break;
    }
    return status;
}

bool numbers_parse(const char *text, int32_t most, int32_t *numbers, int32_t room, int32_t *n)
{
    const char *p = text;
    for (*n = 0; *n < room && *p >= '0' && *p <= '9'; p++) {
        char *end;
        long number = strtol(p, &end, 10); /* LONG_MAX where it is larger */
        if (number > most)
            return false;
        numbers[(*n)++] = (int32_t)number;
        p = end;
        if (!*p)
            return true;
        if (*p != ',')
            return false;
    }
    return false;
}
