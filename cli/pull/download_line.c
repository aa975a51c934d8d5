/* Progress of a download: see download_line.h. */
#include "cli/pull/download_line.h"

#include "cli/terminal/format.h"
#include "cli/terminal/terminal.h"

#include <stdio.h>

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

const char *download_line_text(const download_line *d, uint64_t done, uint64_t total, char out[96])
{
    char a[16], b[16], rate[16], left[24];
    int n = snprintf(out, 96, "%s of %s", format_bytes(a, (double)done),
                     format_bytes(b, (double)total));
    if (d->rate >= 1) {
        format_time(left, (double)(total - done) / d->rate);
        snprintf(out + n, 96 - (size_t)n, ", %s/s, about %s left", format_bytes(rate, d->rate),
                 left);
    }
    return out;
}

void download_line_show(download_line *d, progress *bar, uint64_t done, uint64_t total)
{
    char text[96];
    double now_s = progress_clock_s();
    download_line_count(d, now_s, done);
    if (!terminal_attended() || bar->quiet) {
        progress_report(bar, DREY_PROGRESS_LOAD_TARGET, done, total);
        return;
    }
    if (now_s - d->drawn_s < draw_s)
        return;
    d->drawn_s = now_s;
    progress_bar(bar, bar->label, total ? (double)done / (double)total : 1,
                 download_line_text(d, done, total, text));
}
