/* A turn's tree as a picture: depth runs to the right, each leaf has its own row, a parent is
 * on the row of its first child.
 *
 *      [root]--[the 91 %]--[lazy 80 %]==[dog]      [dog]: the target's own token
 *            \-[a 4 %]
 */
#include "cli/files/trace_svg.h"

#include "cli/files/drawing.h"
#include "common/path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEFT = 24, TOP = 64, ROW = 30, BOX = 22, GAP = 22, BOTTOM = 48, LEAST_WIDTH = 560 };

typedef struct place {
    int row, column;
} place;

typedef struct layout {
    const trace_turn *turn;
    place *at;            /* [n_nodes + 1]: the last one is the target's own token */
    double *left, *width; /* edges and widths of the columns */
    int n_rows, n_columns;
} layout;

/* The node after which the target's own token comes: the deepest accepted one, or the root. */
static int end_of_path(const trace_turn *turn)
{
    int end = 0;
    for (int i = 1; i < turn->n_nodes; i++)
        if (turn->nodes[i].fate == FATE_ACCEPTED && turn->nodes[i].depth > turn->nodes[end].depth)
            end = i;
    return end;
}

/* Rows in the order of a walk: children as they were pushed, the accepted one or the target's own
 * token first, so that the path is a straight line. Each node looks at those after it: trees are
 * small. */
static void place_below(layout *l, int node, int end)
{
    const trace_turn *turn = l->turn;
    int first_row = l->n_rows;
    bool any = false;
    if (node == end) {
        l->at[turn->n_nodes] = (place){l->n_rows++, turn->nodes[node].depth + 1};
        any = true;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int i = node + 1; i < turn->n_nodes; i++)
            if (turn->nodes[i].parent == node && (turn->nodes[i].fate == FATE_ACCEPTED) == !pass) {
                place_below(l, i, end);
                any = true;
            }
    if (!any)
        l->n_rows++;
    l->at[node] = (place){first_row, turn->nodes[node].depth};
}

static const char *text_at(const layout *l, int i)
{
    return i < l->turn->n_nodes ? l->turn->nodes[i].text : l->turn->next;
}

static double box_width(const char *text)
{
    return fmin(fmax(drawing_width(text) + 52, 60), 194);
}

static void place_columns(layout *l)
{
    for (int i = 0; i <= l->turn->n_nodes; i++) {
        int c = l->at[i].column;
        l->n_columns = c + 1 > l->n_columns ? c + 1 : l->n_columns;
        l->width[c] = fmax(l->width[c], box_width(text_at(l, i)));
    }
    double x = LEFT;
    for (int c = 0; c < l->n_columns; c++) {
        l->left[c] = x;
        x += l->width[c] + GAP;
    }
}

static double y_of(const layout *l, int i)
{
    return TOP + ROW * l->at[i].row;
}

static const char *class_of(const layout *l, int i)
{
    static const char *const names[] = {"waits", "submitted", "accepted"};
    if (i == l->turn->n_nodes)
        return "rectified";
    return i == 0 ? "accepted" : names[l->turn->nodes[i].fate];
}

static void put_edge(FILE *out, const layout *l, int from, int to)
{
    double x0 = l->left[l->at[from].column] + box_width(text_at(l, from));
    double x1 = l->left[l->at[to].column], y0 = y_of(l, from) + BOX / 2, y1 = y_of(l, to) + BOX / 2;
    double bend = x1 - GAP / 2.0;
    fprintf(out,
            "<path class=\"edge %s\" d=\"M%.1f %.1f H%.1f C%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n",
            class_of(l, to), x0, y0, x1 - GAP, bend, y0, bend, y1, x1, y1);
}

static void put_node(FILE *out, const layout *l, int i)
{
    double x = l->left[l->at[i].column], y = y_of(l, i), width = box_width(text_at(l, i));
    fprintf(
        out,
        "<rect class=\"node %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"4\"/>\n"
        "<clipPath id=\"n%d\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>"
        "</clipPath>\n<text clip-path=\"url(#n%d)\" x=\"%.1f\" y=\"%.1f\">",
        class_of(l, i), x, y, width, BOX, i, x + 3, y, width - (i < l->turn->n_nodes ? 38 : 6), BOX,
        i, x + 6, y + 15);
    drawing_put_text(out, text_at(l, i), true);
    fputs("</text>\n", out);
    if (i == 0)
        drawing_text(out, x + width - 5, y + 15, "end", "small faint", "root");
    else if (i < l->turn->n_nodes)
        drawing_text(out, x + width - 5, y + 15, "end", "small faint", "%.0f %%",
                     100 * l->turn->nodes[i].confidence);
}

static void put_key(FILE *out, double y)
{
    static const struct {
        const char *class, *text;
    } keys[] = {{"accepted", "accepted by the target"},
                {"submitted", "submitted, not accepted"},
                {"waits", "drafted, not submitted"},
                {"rectified", "the target's own token"}};
    double x = LEFT;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        fprintf(
            out,
            "<rect class=\"node %s\" x=\"%.1f\" y=\"%.1f\" width=\"18\" height=\"14\" rx=\"3\"/>\n",
            keys[i].class, x, y);
        drawing_text(out, x + 24, y + 11, "start", "small", "%s", keys[i].text);
        x += 44 + drawing_width(keys[i].text) * 0.86;
    }
}

static void put_all(FILE *out, const trace_file *t, const layout *l)
{
    const trace_turn *turn = l->turn;
    double right = l->left[l->n_columns - 1] + l->width[l->n_columns - 1] + LEFT;
    double height = TOP + ROW * l->n_rows + BOTTOM;
    int n_submitted = 0, n_accepted = 0;
    for (int i = 1; i < turn->n_nodes; i++) {
        n_submitted += turn->nodes[i].fate != FATE_WAITS;
        n_accepted += turn->nodes[i].fate == FATE_ACCEPTED;
    }
    drawing_begin(out, fmax(right, LEAST_WIDTH), height, "drey: the token tree of one turn");
    drawing_text(out, LEFT, 26, "start", "title", "turn %d: %d drafted, %d submitted, %d accepted",
                 turn->number, turn->n_nodes - 1, n_submitted, n_accepted);
    drawing_text(out, LEFT, 46, "start", "faint", "%s%s%s; %% is the confidence of each guess",
                 t->target ? path_name(t->target) : "",
                 t->draft && strcmp(t->draft, "none") != 0 ? ", drafted by " : "",
                 t->draft && strcmp(t->draft, "none") != 0 ? path_name(t->draft) : "");
    for (int on_top = 0; on_top < 2; on_top++) /* the path's edges */
        for (int i = 1; i <= turn->n_nodes; i++) {
            bool own = i == turn->n_nodes;
            if ((own || turn->nodes[i].fate == FATE_ACCEPTED) == on_top)
                put_edge(out, l, own ? end_of_path(turn) : turn->nodes[i].parent, i);
        }
    for (int i = 0; i <= turn->n_nodes; i++)
        put_node(out, l, i);
    put_key(out, height - 26);
    drawing_end(out);
}

bool trace_svg_tree(FILE *out, const trace_file *t, const trace_turn *turn)
{
    size_t n = (size_t)turn->n_nodes + 2;
    layout l = {.turn = turn};
    l.at = calloc(n, sizeof *l.at);
    l.left = calloc(n, sizeof *l.left);
    l.width = calloc(n, sizeof *l.width);
    bool good = l.at && l.left && l.width;
    if (good) {
        place_below(&l, 0, end_of_path(turn));
        place_columns(&l);
        put_all(out, t, &l);
    }
    free(l.at);
    free(l.left);
    free(l.width);
    return good;
}
