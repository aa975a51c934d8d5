/* The picture of drey bench exit: for each case the sides' speeds as bars, and where the tokens of
 * the oracle, of `fast` and of `exact` left, layer by layer. */
#include "cli/files/drawing.h"
#include "cli/files/exit_rows.h"
#include "cli/files/json_file.h"

#include <math.h>
#include <string.h>

enum { LEFT = 210, SPEEDS = 280, GAP = 70, LAYERS = 460, BAR = 20, HEAD = 58, FOOT = 44 };
static const double least_height = 150;

static const char *const series[] = {"oracle", "fast", "exact"};
static const char *const classes[] = {"stall", "provisional", "verify"};
enum { N_SERIES = sizeof series / sizeof *series };

typedef struct picture {
    const exit_case *cases;
    int n;
} picture;

static double plot_height(const exit_case *c)
{
    return fmax(BAR * c->n_sides, least_height);
}

static const exit_figures *find(const exit_case *c, const char *side)
{
    for (int i = 0; i < c->n_sides; i++)
        if (strcmp(c->side[i].side, side) == 0)
            return &c->side[i];
    return NULL;
}

static const char *class_of(const exit_figures *f)
{
    for (int i = 0; i < N_SERIES; i++)
        if (strcmp(f->side, series[i]) == 0)
            return classes[i];
    return f->lossy ? "read" : "draft";
}

static void put_speeds(FILE *out, const exit_case *c, double y)
{
    double most = 0;
    for (int i = 0; i < c->n_sides; i++)
        most = fmax(most, c->side[i].tokens_per_s);
    drawing_text(out, LEFT, y + 46, "start", "faint", "tokens/s (median)");
    for (int i = 0; i < c->n_sides; i++) {
        const exit_figures *f = &c->side[i];
        double top = y + HEAD + i * BAR;
        double width = most > 0 ? f->tokens_per_s / most * (SPEEDS - 50) : 0;
        drawing_text(out, LEFT - 10, top + 14, "end", "small", "%s%s", f->side,
                     f->lossy ? " (lossy)" : "");
        fprintf(out,
                "<rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\"/>\n",
                class_of(f), LEFT, top + 3, fmax(width, 0.5), BAR - 6);
        if (f->tokens_per_s > 0)
            drawing_text(out, LEFT + width + 6, top + 14, "start", "small", "%.3g",
                         f->tokens_per_s);
    }
}

/* Where nobody leaves before, there is nothing to see. */
static int32_t first_layer(const exit_case *c)
{
    for (int32_t layer = 1; layer < c->n_layers && layer <= EXIT_ROW_LAYERS; layer++)
        for (int i = 0; i < N_SERIES; i++) {
            const exit_figures *f = find(c, series[i]);
            if (f && f->at_layer[layer - 1] > 0.001)
                return layer;
        }
    return c->n_layers;
}

static void put_layers(FILE *out, const exit_case *c, double x, double y)
{
    int32_t first = first_layer(c), n = c->n_layers - first + 1;
    double height = plot_height(c), bottom = y + HEAD + height, width = (double)LAYERS / n, at = x;
    drawing_text(out, x, y + 46, "start", "faint", "tokens that left behind a layer:");
    at += drawing_width("tokens that left behind a layer:") + 12;
    for (int i = 0; i < N_SERIES; i++) {
        const exit_figures *f = find(c, series[i]);
        if (!f)
            continue;
        fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\"/>\n",
                classes[i], at, y + 37);
        drawing_text(out, at + 14, y + 46, "start", "small", "%s", series[i]);
        at += drawing_width(series[i]) + 30;
        for (int32_t k = 0; k < n && first + k <= EXIT_ROW_LAYERS; k++) {
            double tall = f->at_layer[first + k - 1] * height;
            if (tall > 0)
                fprintf(
                    out,
                    "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                    classes[i], x + k * width + i * width / (N_SERIES + 1), bottom - tall,
                    width / (N_SERIES + 1), tall);
        }
    }
    fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", x, bottom, x + LAYERS);
    int32_t step = (int32_t)fmax(1, drawing_step(n, 10));
    for (int32_t k = 0; k < n; k++)
        if ((first + k) % step == 0 || k == n - 1)
            drawing_text(out, x + (k + 0.4) * width, bottom + 16, "middle", "small", "%d",
                         first + k);
}

static bool put_all(FILE *out, void *user)
{
    const picture *p = user;
    double height = 0, y = 0;
    for (int i = 0; i < p->n; i++)
        height += HEAD + plot_height(&p->cases[i]) + FOOT;
    drawing_begin(out, LEFT + SPEEDS + GAP + LAYERS + 20, height, "drey: early exits");
    for (int i = 0; i < p->n; i++) {
        const exit_case *c = &p->cases[i];
        char budget[40] = "in memory";
        if (c->budget_mib > 0)
            snprintf(budget, sizeof budget, "in %.0f MiB", c->budget_mib);
        drawing_text(out, 20, y + 26, "start", "title", "%s %s, draft %s: %s", c->target, budget,
                     c->draft, c->group);
        put_speeds(out, c, y);
        put_layers(out, c, LEFT + SPEEDS + GAP, y);
        y += HEAD + plot_height(c) + FOOT;
    }
    drawing_end(out);
    return true;
}

drey_status exit_svg(const char *path, const exit_case *cases, int n, drey_error *err)
{
    picture p = {cases, n};
    return file_write(path, put_all, &p, err);
}
