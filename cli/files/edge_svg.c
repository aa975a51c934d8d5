/* Bars of drey bench edge: a block for each case, a panel for each group of prompts, a bar for each
 * side, with tokens/s at its end. */
#include "cli/files/drawing.h"
#include "cli/files/edge_rows.h"
#include "cli/files/json_file.h"

#include <math.h>
#include <string.h>

enum { LEFT = 200, PANEL = 320, GAP = 60, BAR = 20, HEAD = 58, FOOT = 20 };

typedef struct picture {
    const edge_case *cases;
    int n;
} picture;

static double height_of(const edge_case *c)
{
    return HEAD + BAR * c->n_sides + FOOT;
}

static const char *class_of(const edge_side *s)
{
    if (strncmp(s->name, "optimal", 7) == 0)
        return s->name[7] ? "read" : "provisional";
    if (strncmp(s->name, "llama", 5) == 0)
        return "verify";
    return s->lossy ? "stall" : "draft";
}

static void put_panel(FILE *out, const edge_case *c, int g, double x, double y)
{
    double most = 0;
    for (int i = 0; i < c->n_sides; i++)
        most = fmax(most, c->side[i].group[g].tokens_per_s);
    drawing_text(out, x, y + 46, "start", "faint", "%s, tokens/s (median)", c->group[g]);
    for (int i = 0; i < c->n_sides; i++) {
        double speed = c->side[i].group[g].tokens_per_s, top = y + HEAD + i * BAR;
        double width = most > 0 ? speed / most * (PANEL - 50) : 0;
        fprintf(
            out,
            "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\"/>\n",
            class_of(&c->side[i]), x, top + 3, fmax(width, 0.5), BAR - 6);
        if (speed > 0)
            drawing_text(out, x + width + 6, top + 14, "start", "small", "%.3g", speed);
    }
}

static void put_case(FILE *out, const edge_case *c, double y)
{
    char budget[40] = "in memory";
    if (c->budget_mib > 0)
        snprintf(budget, sizeof budget, "in %.0f MiB", c->budget_mib);
    drawing_text(out, 20, y + 26, "start", "title", "%s %s, draft %s", c->target, budget, c->draft);
    for (int i = 0; i < c->n_sides; i++)
        drawing_text(out, LEFT - 10, y + HEAD + i * BAR + 14, "end", "small", "%s%s",
                     c->side[i].name, c->side[i].lossy ? " (lossy)" : "");
    for (int g = 0; g < c->n_groups; g++)
        put_panel(out, c, g, LEFT + g * (PANEL + GAP), y);
}

static bool put_all(FILE *out, void *user)
{
    const picture *p = user;
    double height = 0;
    int n_groups = 1;
    for (int i = 0; i < p->n; i++) {
        height += height_of(&p->cases[i]);
        n_groups = p->cases[i].n_groups > n_groups ? p->cases[i].n_groups : n_groups;
    }
    drawing_begin(out, LEFT + n_groups * (PANEL + GAP), height, "drey: speed of each policy");
    double y = 0;
    for (int i = 0; i < p->n; i++) {
        put_case(out, &p->cases[i], y);
        y += height_of(&p->cases[i]);
    }
    drawing_end(out);
    return true;
}

drey_status edge_svg(const char *path, const edge_case *cases, int n, drey_error *err)
{
    picture p = {cases, n};
    return file_write(path, put_all, &p, err);
}
