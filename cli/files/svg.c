/* The passes of drey bench model as a picture: time over rows, both logarithmic, so that a limit of
 * bandwidth is a level line and one of operations a slope of one. Measured times are solid lines
 * with dots, limits dashed ones of the same colour. The file stands alone, and its texts and lines
 * follow the reader's light or dark scheme. */
#include "cli/commands/cmd_bench.h"

#include "cli/files/json_file.h"
#include "cli/terminal/terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 760, HEIGHT = 480, LEFT = 78, RIGHT = 24, TOP = 58, BOTTOM = 56 };

static const char *const colours[] = {"#2f6fde", "#d2691e", "#1a9850", "#9654c8",
                                      "#c8324b", "#148c96", "#8c7814", "#787878"};

typedef struct plot {
    FILE *out;
    const drey_model_report *r;
    double low, high; /* of the y axis, ms, logarithms to base 10 */
    double widest;    /* log2 of the most rows */
} plot;

static double x_of(const plot *p, double rows)
{
    return LEFT + log2(rows) / p->widest * (WIDTH - LEFT - RIGHT);
}

static double y_of(const plot *p, double ms)
{
    return HEIGHT - BOTTOM - (log10(ms) - p->low) / (p->high - p->low) * (HEIGHT - TOP - BOTTOM);
}

static void set_range(plot *p)
{
    double low = INFINITY, high = 0, rows = 2;
    for (int32_t i = 0; i < p->r->n_passes; i++) {
        const drey_pass_report *pass = &p->r->passes[i];
        low = fmin(low, fmin(pass->seconds, pass->limit_seconds));
        high = fmax(high, fmax(pass->seconds, pass->limit_seconds));
        rows = fmax(rows, pass->rows);
    }
    p->low = log10(low * 1e3) - 0.08;
    p->high = log10(high * 1e3) + 0.08;
    p->widest = log2(rows);
}

/* The model's file name, as XML text. */
static void put_name(FILE *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    for (const char *c = slash ? slash + 1 : path; *c; c++)
        if (*c == '&')
            fputs("&amp;", out);
        else if (*c == '<')
            fputs("&lt;", out);
        else
            fputc((unsigned char)*c < ' ' || (unsigned char)*c > '~' ? '?' : *c, out);
}

static void put_head(const plot *p, const char *model)
{
    fprintf(p->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\">\n"
            "<style>\n"
            "  text { font: 13px system-ui, sans-serif; fill: #24292f }\n"
            "  .title { font-size: 15px; font-weight: 600 }\n"
            "  .paper { fill: #ffffff }\n"
            "  .grid { stroke: #d8dee4; stroke-width: 1 }\n"
            "  .curve { fill: none; stroke-width: 2 }\n"
            "  .limit { stroke-dasharray: 6 5 }\n"
            "  .key { stroke: #57606a }\n"
            "  @media (prefers-color-scheme: dark) {\n"
            "    text { fill: #e6edf3 } .paper { fill: #0d1117 } .grid { stroke: #30363d }\n"
            "    .key { stroke: #8b949e }\n"
            "  }\n"
            "</style>\n"
            "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n"
            "<text class=\"title\" x=\"%d\" y=\"24\">",
            WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    put_name(p->out, model);
    fprintf(
        p->out,
        "</text>\n<text x=\"%d\" y=\"44\">memory %.1f GB/s, 8-bit peak %.2f TOPS, drey %s</text>\n",
        LEFT, 1e-9 * p->r->limits.memory_bytes_per_s, 1e-12 * p->r->limits.int8_ops_per_s,
        drey_version());
}

static void put_axes(const plot *p)
{
    static const int steps[] = {1, 2, 5};
    double bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
    for (int rows = 1; log2(rows) <= p->widest; rows *= 2)
        fprintf(p->out,
                "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%d</text>\n",
                x_of(p, rows), TOP, x_of(p, rows), bottom, x_of(p, rows), bottom + 18, rows);
    for (int decade = (int)floor(p->low); decade <= (int)ceil(p->high); decade++)
        for (int i = 0; i < 3; i++) {
            double ms = steps[i] * pow(10, decade);
            if (log10(ms) < p->low || log10(ms) > p->high)
                continue;
            fprintf(p->out,
                    "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>"
                    "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                    LEFT, y_of(p, ms), right, y_of(p, ms), LEFT - 8, y_of(p, ms) + 4, ms);
        }
    fprintf(p->out,
            "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">rows of a pass</text>\n"
            "<text transform=\"translate(20 %.1f) rotate(-90)\" text-anchor=\"middle\">"
            "time of a pass, ms</text>\n",
            (LEFT + right) / 2, HEIGHT - 14, (TOP + bottom) / 2);
}

/* The passes from index `first` on that share its context; returns the index behind them. */
static int32_t put_curves(const plot *p, int32_t first, const char *colour)
{
    const drey_pass_report *passes = p->r->passes;
    int32_t end = first;
    while (end < p->r->n_passes && passes[end].context == passes[first].context)
        end++;
    for (int limit = 1; limit >= 0; limit--) {
        fprintf(p->out, "<polyline class=\"curve%s\" stroke=\"%s\" points=\"",
                limit ? " limit" : "", colour);
        for (int32_t i = first; i < end; i++)
            fprintf(p->out, "%s%.1f,%.1f", i > first ? " " : "", x_of(p, passes[i].rows),
                    y_of(p, 1e3 * (limit ? passes[i].limit_seconds : passes[i].seconds)));
        fprintf(p->out, "\"/>\n");
    }
    for (int32_t i = first; i < end; i++)
        fprintf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                x_of(p, passes[i].rows), y_of(p, 1e3 * passes[i].seconds), colour);
    return end;
}

static void put_key(const plot *p, int line, const char *colour, const char *class,
                    const char *text)
{
    int y = TOP + 18 + 20 * line;
    fprintf(p->out, "<line class=\"curve%s\"", class);
    if (colour)
        fprintf(p->out, " stroke=\"%s\"", colour);
    fprintf(p->out, " x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
            LEFT + 14, y - 4, LEFT + 44, y - 4, LEFT + 52, y, text);
}

static void put_all(const plot *p, const char *model)
{
    put_head(p, model);
    put_axes(p);
    int line = 0;
    for (int32_t i = 0; i < p->r->n_passes; line++) {
        const char *colour = colours[line % (int)(sizeof colours / sizeof *colours)];
        char text[40];
        snprintf(text, sizeof text, "behind %d tokens", p->r->passes[i].context);
        put_key(p, line, colour, "", text);
        i = put_curves(p, i, colour);
    }
    put_key(p, line, NULL, " key limit", "what the machine allows");
    fprintf(p->out, "</svg>");
}

drey_status svg_write(const char *path, const char *model, const drey_model_report *report,
                      drey_error *err)
{
    char *text = NULL;
    size_t n;
    plot p = {.r = report, .out = open_memstream(&text, &n)};
    if (!p.out)
        return fail(err, DREY_ERR_MEMORY, "out of memory while drawing %s", path);
    set_range(&p);
    put_all(&p, model);
    bool good = fclose(p.out) == 0;
    drey_status status = text_write(path, good ? text : NULL, err);
    free(text);
    return status;
}
