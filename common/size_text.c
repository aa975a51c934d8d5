/* Sizes and rates as text: see size_text.h. */
#include "common/size_text.h"

#include <math.h>
#include <stdio.h>

static const char units[] = " KMGTPE";

/* Takes the unit out of *bytes. Returns the digits after the point, of three in all. */
static int split(double *bytes, int *unit)
{
    for (*unit = 0; *bytes >= 999.5 && units[*unit + 1]; ++*unit)
        *bytes /= 1024;
    return *unit == 0 || *bytes >= 99.95 ? 0 : *bytes < 9.995 ? 2 : 1;
}

const char *format_bytes(char out[static 16], double bytes)
{
    int unit, decimals = split(&bytes, &unit);
    snprintf(out, 16, "%.*f%.*s", decimals, bytes, unit > 0, units + unit);
    return out;
}

const char *format_bytes_up(char out[static 16], double bytes)
{
    int unit, decimals = split(&bytes, &unit);
    double step = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    snprintf(out, 16, "%.*f%.*s", decimals, ceil(bytes * step) / step, unit > 0, units + unit);
    return out;
}

/* The digits of a number, and no exponent. limit: from it on ten has to be written. */
static const char *write_digits(char out[static 16], double n, int digits, double limit)
{
    enum { MOST = 9 };
    int decimals = digits - 1;
    for (double x = n; decimals > 0 && x >= limit; x /= 10)
        decimals--;
    for (double x = n; x > 0 && x < limit / 10 && decimals < MOST; x *= 10)
        decimals++;
    snprintf(out, 16, "%.*f", decimals, n < 1e12 ? n : 1e12);
    return out;
}

const char *format_rate(char out[static 16], double per_s)
{
    return write_digits(out, per_s, 3, 9.995);
}

const char *format_rate_about(char out[static 16], double per_s)
{
    return write_digits(out, per_s, 2, 9.95);
}
