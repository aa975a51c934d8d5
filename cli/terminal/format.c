/* Sizes and bars as text: see format.h. */
#include "cli/terminal/format.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *format_seconds(char out[static 16], double seconds)
{
    bool short_one = seconds < 0.9995;
    double n = short_one ? 1000 * seconds : seconds;
    int decimals = n < 9.995 ? 2 : n < 99.95 ? 1 : 0;
    snprintf(out, 16, "%.*f %s", decimals, n < 1e9 ? n : 1e9, short_one ? "ms" : "s");
    return out;
}

/* Characters for a part of the bar: none for nothing, one at least for something. */
static int part_width(int width, double part)
{
    if (!(part > 0))
        return 0;
    int n = (int)lround(part * width);
    return n < 1 ? 1 : n > width ? width : n;
}

void format_bar(char *out, int width, double full, double half)
{
    int n_full = part_width(width, full), n_half = part_width(width, half);
    if (n_full == width && half > 0)
        n_full--;
    if (n_full + n_half > width)
        n_half = width - n_full;
    memset(out, '.', (size_t)width);
    memset(out, '#', (size_t)n_full);
    memset(out + n_full, '-', (size_t)n_half);
    out[width] = '\0';
}
