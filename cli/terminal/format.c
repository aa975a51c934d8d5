/* Sizes and bars as text: see format.h. */
#include "cli/terminal/format.h"

#include <math.h>
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

void format_blocks(char *out, int width, double part, bool utf8)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const int n = part > 0 ? (int)lround(fmin(part, 1) * width * 8) : 0;
    char *p = out;
    for (int i = 0; i < width; i++) {
        int filled = n - 8 * i;
        const char *cell = utf8          ? filled >= 8  ? "█"
                                           : filled > 0 ? eighths[filled]
                                                        : "░"
                           : filled >= 4 ? "#"
                                         : ".";
        p = stpcpy(p, cell);
    }
}

const char *format_age(char out[static 24], double seconds)
{
    static const struct {
        double seconds;
        const char *name;
    } units[] = {{86400.0 * 365, "year"}, {86400.0 * 30, "month"}, {86400.0 * 7, "week"},
                 {86400, "day"},          {3600, "hour"},          {60, "minute"}};
    snprintf(out, 24, "now");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (seconds >= units[i].seconds) {
            int n = (int)fmin(seconds / units[i].seconds, 9999);
            snprintf(out, 24, "%d %s%s ago", n, units[i].name, n > 1 ? "s" : "");
            break;
        }
    return out;
}

const char *format_time(char out[static 24], double seconds)
{
    long long s = (long long)fmin(fmax(seconds, 0) + 0.5, 1e12), minutes = (s + 30) / 60;
    if (s < 100)
        snprintf(out, 24, "%lld s", s);
    else if (minutes < 100)
        snprintf(out, 24, "%lld min", minutes);
    else
        snprintf(out, 24, "%lld h %lld min", minutes / 60 % 100000, minutes % 60);
    return out;
}

const char *format_rate(char out[static 16], double per_s)
{
    snprintf(out, 16, "%.*f/s", per_s < 9.995 ? 2 : per_s < 99.95 ? 1 : 0, fmin(per_s, 1e12));
    return out;
}
