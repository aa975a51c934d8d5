/* How far a download is: see download_line.h. */
#include "cli/pull/download_line.h"

#include "cli/terminal/format.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/terminal_page.h"

#include <stdio.h>
#include <string.h>

static const double draw_s = 0.2, count_s = 0.5;

/* A second's rate weighs a quarter: it follows the network, and does not jump. */
void download_line_count(download_line *d, double now_s, uint64_t done)
{
    if (d->begun_s == 0 || done < d->counted) {
        *d = (download_line){.begun_s = now_s, .counted_s = now_s, .counted = done};
        return;
    }
    double passed_s = now_s - d->counted_s;
    if (passed_s < count_s)
        return;
    double rate = (double)(done - d->counted) / passed_s, weight = passed_s < 4 ? passed_s / 4 : 1;
    d->rate = d->rate > 0 ? d->rate + weight * (rate - d->rate) : rate;
    d->counted_s = now_s;
    d->counted = done;
}

/* "50 s", "12 min", "1 h 20 min". */
static void time_text(char out[32], double s)
{
    int64_t n = s < 1e7 ? (int64_t)(s + 0.5) : 10000000;
    if (n < 60)
        snprintf(out, 32, "%d s", (int)n);
    else if (n < 600)
        snprintf(out, 32, "%d min %d s", (int)(n / 60), (int)(n % 60));
    else if (n < 3600)
        snprintf(out, 32, "%d min", (int)(n / 60));
    else
        snprintf(out, 32, "%d h %d min", (int)(n / 3600), (int)(n % 3600 / 60));
}

const char *download_line_text(const download_line *d, uint64_t done, uint64_t total, char out[96])
{
    char a[16], b[16], rate[16], left[32];
    int n = snprintf(out, 96, "%s of %s", format_bytes(a, (double)done),
                     format_bytes(b, (double)total));
    if (d->rate >= 1) {
        time_text(left, (double)(total - done) / d->rate);
        snprintf(out + n, 96 - (size_t)n, "  %s/s  %s left", format_bytes(rate, d->rate), left);
    }
    return out;
}

void download_line_show(download_line *d, progress *bar, uint64_t done, uint64_t total)
{
    enum { WIDEST = 30, NARROWEST = 6 };
    char text[96], hashes[WIDEST + 1] = "", line[256];
    double now_s = progress_clock_s();
    download_line_count(d, now_s, done);
    if (!terminal_attended() || bar->quiet) {
        progress_report(bar, DREY_PROGRESS_LOAD_TARGET, done, total);
        return;
    }
    if (now_s - d->drawn_s < draw_s)
        return;
    d->drawn_s = now_s;
    download_line_text(d, done, total, text);
    int32_t columns = page_columns(stderr);
    int32_t width = (columns > 1 ? columns - 1 : 79) -
                    (int32_t)(strlen(bar->label) + strlen(text) + sizeof " [] 100 %  " - 1);
    double part = total ? (double)done / (double)total : 1;
    if (width >= NARROWEST)
        format_bar(hashes, width < WIDEST ? width : WIDEST, part, 0);
    snprintf(line, sizeof line, "%s %s%s%s%s%s%3.0f %%  %s", bar->label, *hashes ? "[" : "",
             *hashes ? terminal_style_text(STYLE_GOOD) : "", hashes,
             *hashes ? terminal_style_text(STYLE_PLAIN) : "", *hashes ? "] " : "", 100 * part,
             text);
    progress_line(bar, line);
}
