/* What drey tune -m found, for people: a table, and a picture of passes and trees by rows. */
#include "cli/commands/cmd_tune.h"

#include "cli/files/drawing.h"
#include "cli/terminal/format.h"
#include "cli/files/json_file.h"

#include <math.h>

/* ---- Table ---- */

static void show_steps(FILE *out, const drey_profile *p)
{
    char a[16], b[16];
    if (p->step_s[0] > 0)
        fprintf(out, "draft      a step takes %s for one node, %s for %d\n",
                format_seconds(a, p->step_s[0]),
                format_seconds(b, p->step_s[DREY_PROFILE_NODES - 1]), DREY_PROFILE_NODES);
}

/* Of a depth that guesses were never right at there is nothing to say, nor of those below it. */
static void show_shares(FILE *out, const drey_pair_report *r)
{
    fprintf(out, "guesses    right by depth and rank, where those above were, of %lld\n",
            (long long)r->n_places);
    for (int depth = 0; depth < DREY_STATIC_DEPTHS; depth++) {
        double any = 0;
        for (int rank = 0; rank < DREY_STATIC_RANKS; rank++)
            any += r->trees.share[depth][rank];
        if (any <= 0)
            break;
        fprintf(out, "  %4d    ", depth + 1);
        for (int rank = 0; rank < DREY_STATIC_RANKS; rank++)
            fprintf(out, " %5.1f%%", 100 * r->trees.share[depth][rank]);
        fprintf(out, "\n");
    }
}

void tune_table(FILE *out, const drey_pair_report *r)
{
    char a[16], b[16], c[16];
    fprintf(out, "passes     %s for one row, %s for 8, %s for 64\n",
            format_seconds(a, r->profile.pass_s[0]), format_seconds(b, r->profile.pass_s[7]),
            format_seconds(c, r->profile.pass_s[63]));
    if (r->streamed_bytes_per_pass)
        fprintf(out, "disk       every pass reads %s: times are of computing alone\n",
                format_bytes(a, (double)r->streamed_bytes_per_pass));
    show_steps(out, &r->profile);
    if (r->trees.n_trees == 0)
        return;
    show_shares(out, r);
    fprintf(out, "static trees\n  rows  expected  held out       pass   drafting  tokens/s\n");
    for (int32_t i = 0; i < r->trees.n_trees; i++) {
        const drey_static_tree *t = &r->trees.tree[i];
        fprintf(out, "  %4d %9.2f %9.2f %10s %10s %9.2f%s\n", t->width, t->expected_tokens,
                t->measured_tokens, format_seconds(a, t->pass_s), format_seconds(b, t->draft_s),
                t->tokens_per_s, i == r->trees.best ? "  best" : "");
    }
}

/* ---- Picture ---- */

enum { WIDTH = 640, LEFT = 64, RIGHT = 24, PANEL = 200, TOP = 84, GAP = 64 };

typedef struct picture {
    const char *target, *draft;
    const drey_pair_report *report;
} picture;

typedef struct panel {
    double top, most; /* of the paper; of the values */
} panel;

static double x_of(double rows)
{
    return LEFT + log2(rows) / 6 * (WIDTH - LEFT - RIGHT);
}

static double y_of(const panel *p, double value)
{
    return p->top + PANEL - value / p->most * PANEL;
}

static void put_axes(FILE *out, const panel *p, const char *what)
{
    double step = drawing_step(p->most, 5);
    drawing_text(out, LEFT, p->top - 10, "start", "faint", "%s", what);
    for (double v = 0; v <= p->most; v += step) {
        fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, y_of(p, v), WIDTH - RIGHT);
        drawing_text(out, LEFT - 8, y_of(p, v) + 4, "end", "small", "%g", v);
    }
    for (int rows = 1; rows <= 64; rows *= 2)
        drawing_text(out, x_of(rows), p->top + PANEL + 18, "middle", "small", "%d", rows);
}

static void put_passes(FILE *out, const picture *pic)
{
    const double *pass_s = pic->report->profile.pass_s;
    panel p = {.top = TOP, .most = 1e-9};
    for (int i = 0; i < DREY_PROFILE_ROWS; i++)
        p.most = fmax(p.most, 1.05e3 * pass_s[i]);
    put_axes(out, &p, "a pass of so many rows, ms");
    fprintf(out, "<path class=\"line verify\" d=\"");
    for (int i = 0; i < DREY_PROFILE_ROWS; i++)
        fprintf(out, "%s%.1f %.1f", i ? "L" : "M", x_of(i + 1), y_of(&p, 1e3 * pass_s[i]));
    fprintf(out, "\"/>\n");
}

static void put_trees(FILE *out, const picture *pic)
{
    const drey_pair_report *r = pic->report;
    panel p = {.top = TOP + PANEL + GAP, .most = 1e-9};
    for (int32_t i = 0; i < r->trees.n_trees; i++)
        p.most = fmax(p.most, 1.1 * r->trees.tree[i].tokens_per_s);
    put_axes(out, &p, "tokens/s of the best tree of so many rows, and tokens of a pass");
    fprintf(out, "<path class=\"line provisional\" d=\"");
    for (int32_t i = 0; i < r->trees.n_trees; i++)
        fprintf(out, "%s%.1f %.1f", i ? "L" : "M", x_of(r->trees.tree[i].width),
                y_of(&p, r->trees.tree[i].tokens_per_s));
    fprintf(out, "\"/>\n");
    for (int32_t i = 0; i < r->trees.n_trees; i++) {
        const drey_static_tree *t = &r->trees.tree[i];
        double x = x_of(t->width), y = y_of(&p, t->tokens_per_s);
        fprintf(out, "<circle class=\"provisional\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>\n", x, y,
                i == r->trees.best ? 6 : 3);
        drawing_text(out, x, y + 20,
                     i == 0                     ? "start"
                     : i + 1 < r->trees.n_trees ? "middle"
                                                : "end",
                     "small", "%.2f", t->measured_tokens);
    }
}

static bool put_all(FILE *out, void *user)
{
    const picture *p = user;
    bool trees = p->report->trees.n_trees > 0;
    drawing_begin(out, WIDTH, TOP + PANEL + 40 + (trees ? PANEL + GAP : 0),
                  "drey: passes and trees by rows");
    drawing_text(out, LEFT, 26, "start", "title", "%s", p->target);
    drawing_text(out, LEFT, 44, "start", "faint", "draft: %s", p->draft);
    put_passes(out, p);
    if (trees)
        put_trees(out, p);
    drawing_end(out);
    return true;
}

drey_status tune_svg(const char *path, const char *target, const char *draft,
                     const drey_pair_report *report, drey_error *err)
{
    picture p = {target, draft, report};
    return file_write(path, put_all, &p, err);
}
