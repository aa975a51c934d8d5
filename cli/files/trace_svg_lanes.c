/* Draws what ran when: above, how the text grows (the draft runs ahead, the target keeps what it
 * agrees with); below, the lanes.
 *
 *      tokens |        __/ drafted
 *             |   ____/|__ verified            time runs to the right
 *      turn   | "the lazy dog" |  ...
 *      lanes  | ## draft   ## verify   ## provisional ... */
#include "cli/files/trace_svg.h"

#include "cli/files/drawing.h"
#include "common/path.h"
#include "common/size_text.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 1000, LEFT = 96, RIGHT = 20, TOP = 62, STAIRS = 150, LANE = 30, TEXT_LANE = 44 };

typedef struct shown {
    trace_lane lane;
    const char *name, *class;
} shown;

static const shown lanes[] = {{LANE_DRAFT, "G  draft", "draft"},
                              {LANE_VERIFY, "V  verify", "verify"},
                              {LANE_PROVISIONAL, "P  provisional", "provisional"},
                              {LANE_READ, "read", "read"},
                              {LANE_STALL, "stall", "stall"},
                              {LANE_EXPERTS, "experts", "provisional"},
                              {LANE_RANKS, "ranks", "stall"}};
enum { N_LANES = sizeof lanes / sizeof *lanes };

/* Returns whether a lane is drawn: these two only if something is in them. */
static bool is_shown(const trace_file *t, trace_lane lane)
{
    return (lane != LANE_EXPERTS && lane != LANE_RANKS) || t->n_bars[lane] > 0;
}

typedef struct picture {
    FILE *out;
    const trace_file *t;
    int first, last;
    double t0, t1, origin; /* seconds; the axis counts from origin */
} picture;

static double x_of(const picture *p, double t)
{
    double at = (fmin(fmax(t, p->t0), p->t1) - p->t0) / (p->t1 - p->t0);
    return LEFT + at * (WIDTH - LEFT - RIGHT);
}

static double lanes_top(void)
{
    return TOP + STAIRS + 16 + TEXT_LANE;
}

static int n_lanes(const trace_file *t)
{
    int n = 0;
    for (int i = 0; i < N_LANES; i++)
        n += is_shown(t, lanes[i].lane);
    return n;
}

static double height_of(const trace_file *t)
{
    return lanes_top() + n_lanes(t) * LANE + 44;
}

static void put_head(const picture *p)
{
    char size[16], rate[16];
    const trace_file *t = p->t;
    drawing_begin(p->out, WIDTH, height_of(t), "drey: drafting and verifying over time");
    drawing_text(p->out, LEFT, 26, "start", "title", "%s%s%s",
                 t->target ? path_name(t->target) : "",
                 t->draft && strcmp(t->draft, "none") != 0 ? ", drafted by " : "",
                 t->draft && strcmp(t->draft, "none") != 0 ? path_name(t->draft) : "");
    char budget[40] = "";
    if (t->budget_bytes > 0)
        snprintf(budget, sizeof budget, "in %s of memory, ", format_bytes(size, t->budget_bytes));
    drawing_text(p->out, LEFT, 46, "start", "faint", "%s%s tokens/s; turns %d to %d of %d", budget,
                 format_rate(rate, isfinite(t->tokens_per_s) ? t->tokens_per_s : 0),
                 t->turns[p->first].number, t->turns[p->last].number, t->n_turns);
}

static void put_axis(const picture *p)
{
    double step = drawing_step(p->t1 - p->t0, 10), bottom = lanes_top() + n_lanes(p->t) * LANE;
    int digits = step < 1 ? (int)ceil(-log10(step)) : 0;
    for (double s = ceil((p->t0 - p->origin) / step) * step; p->origin + s <= p->t1; s += step) {
        double x = x_of(p, p->origin + s);
        fprintf(p->out, "<path class=\"grid\" d=\"M%.1f %d V%.1f\"/>\n", x, TOP, bottom);
        drawing_text(p->out, x, bottom + 18, "middle", "small faint", "%.*f", digits, s);
    }
    drawing_text(p->out, WIDTH - RIGHT, bottom + 36, "end", "small faint",
                 "seconds since the first turn kept");
}

/* ---- The text grows ---- */

static int deepest(const trace_turn *turn, bool submitted)
{
    int depth = 0;
    for (int i = 0; i < turn->n_nodes; i++)
        if (turn->nodes[i].depth > depth && (!submitted || turn->nodes[i].fate != FATE_WAITS))
            depth = turn->nodes[i].depth;
    return depth;
}

/* The first bar of a lane that ends within (t0, t1]; NULL: none does. */
static const trace_bar *bar_in(const trace_file *t, trace_lane lane, double t0, double t1)
{
    for (int i = 0; i < t->n_bars[lane]; i++)
        if (t->bars[lane][i].t1 > t0 && t->bars[lane][i].t1 <= t1 + 1e-6)
            return &t->bars[lane][i];
    return NULL;
}

static double most_tokens(const picture *p)
{
    int most = 1, n = 0;
    for (int i = p->first; i <= p->last; i++) {
        const trace_turn *turn = &p->t->turns[i];
        int high = n + deepest(turn, false);
        n += turn->n_written;
        most = high > most ? high : most;
        most = n > most ? n : most;
    }
    return most;
}

typedef struct stairs {
    const picture *p;
    double most; /* tokens at the top */
} stairs;

static double y_of(const stairs *s, double tokens)
{
    return TOP + STAIRS - tokens / s->most * (STAIRS - 12);
}

static void put_line(const stairs *s, const char *class, double t0, double n0, double t1, double n1)
{
    fprintf(s->p->out, "<path class=\"line %s\" d=\"M%.1f %.1f L%.1f %.1f\"/>\n", class,
            x_of(s->p, t0), y_of(s, n0), x_of(s->p, t1), y_of(s, n1));
}

/* The draft's line, from n tokens at its first bar to `drafted` more when the pass begins: it
 * climbs while the draft is at work, and is level in between. */
static void put_draft_line(const stairs *s, const trace_turn *turn, double v0, double n,
                           double drafted)
{
    const trace_file *t = s->p->t;
    const trace_bar *bars = t->bars[LANE_DRAFT];
    double worked = 0, spent = 0;
    int first = 0, last;
    while (first < t->n_bars[LANE_DRAFT] && bars[first].t1 <= turn->t0)
        first++;
    for (last = first; last < t->n_bars[LANE_DRAFT] && bars[last].t0 < v0; last++)
        worked += fmin(bars[last].t1, v0) - fmax(bars[last].t0, turn->t0);
    if (drafted <= 0)
        return;
    double begin = first < last ? fmax(bars[first].t0, turn->t0) : v0;
    fprintf(s->p->out, "<path class=\"line draft\" d=\"M%.1f %.1f", x_of(s->p, begin), y_of(s, n));
    for (int i = first; i < last && worked > 0; i++) {
        double t0 = fmax(bars[i].t0, turn->t0), t1 = fmin(bars[i].t1, v0);
        fprintf(s->p->out, " L%.1f %.1f", x_of(s->p, t0), y_of(s, n + drafted * spent / worked));
        spent += t1 - t0;
        fprintf(s->p->out, " L%.1f %.1f", x_of(s->p, t1), y_of(s, n + drafted * spent / worked));
    }
    fprintf(s->p->out, " V%.1f H%.1f\"/>\n", y_of(s, n + drafted), x_of(s->p, v0));
}

/* A turn that begins with n tokens written: the draft climbs to its deepest guess, the target
 * carries what was submitted to the end of its pass, where the text keeps what was right. */
static void put_turn_stairs(const stairs *s, const trace_turn *turn, int n)
{
    const trace_bar *verify = bar_in(s->p->t, LANE_VERIFY, turn->t0, turn->t1);
    double v0 = verify ? verify->t0 : turn->t0, v1 = verify ? verify->t1 : turn->t1;
    int submitted = deepest(turn, true), drafted = deepest(turn, false);
    put_draft_line(s, turn, v0, n, submitted);
    if (drafted > submitted)
        put_line(s, "provisional", v0, n + submitted, v1, n + drafted);
    put_line(s, "verify", v0, n + submitted, v1, n + submitted);
    put_line(s, "text", turn->t0, n, v1, n);
    put_line(s, "text", v1, n, v1, n + turn->n_written);
    put_line(s, "text", v1, n + turn->n_written, turn->t1, n + turn->n_written);
}

static void put_stairs(const picture *p)
{
    stairs s = {p, most_tokens(p)};
    double step = fmax(drawing_step(s.most, 4), 1);
    for (double n = 0; n <= s.most; n += step) {
        fprintf(p->out, "<path class=\"grid\" d=\"M%d %.1f H%d\"/>\n", LEFT, y_of(&s, n),
                WIDTH - RIGHT);
        drawing_text(p->out, LEFT - 8, y_of(&s, n) + 4, "end", "small faint", "%+.0f", n);
    }
    drawing_text(p->out, LEFT - 8, TOP + 2, "end", "small", "tokens");
    int n = 0;
    for (int i = p->first; i <= p->last; i++) {
        put_turn_stairs(&s, &p->t->turns[i], n);
        n += p->t->turns[i].n_written;
    }
}

/* Draws the key of the lines, below the axis. */
static void put_key(const picture *p, double y)
{
    static const struct {
        const char *class, *text;
    } keys[] = {{"text", "text"},
                {"draft", "drafted"},
                {"verify", "being verified"},
                {"provisional", "drafted meanwhile"}};
    double x = LEFT;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        fprintf(p->out, "<path class=\"line %s\" d=\"M%.1f %.1f h18\"/>\n", keys[i].class, x,
                y - 4);
        drawing_text(p->out, x + 24, y, "start", "small", "%s", keys[i].text);
        x += 46 + drawing_width(keys[i].text) * 0.92;
    }
}

/* ---- Lanes ---- */

static void put_written(FILE *out, const trace_turn *turn)
{
    int n = 0;
    for (int i = 1; i < turn->n_nodes; i++)
        if (turn->nodes[i].fate == FATE_ACCEPTED && n < turn->n_written) {
            drawing_put_text(out, turn->nodes[i].text, true);
            n++;
        }
    if (n < turn->n_written)
        drawing_put_text(out, turn->next, true);
}

static void put_turns(const picture *p)
{
    double y = TOP + STAIRS + 10;
    drawing_text(p->out, LEFT - 8, y + 22, "end", "small", "written");
    for (int i = p->first; i <= p->last; i++) {
        const trace_turn *turn = &p->t->turns[i];
        double x0 = x_of(p, turn->t0), x1 = x_of(p, turn->t1);
        fprintf(
            p->out,
            "<rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"3\"/>\n"
            "<clipPath id=\"turn%d\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>"
            "</clipPath>\n<g clip-path=\"url(#turn%d)\">\n",
            x0 + 1, y, fmax(x1 - x0 - 2, 0.5), TEXT_LANE - 8, i, x0 + 4, y, fmax(x1 - x0 - 8, 0.5),
            TEXT_LANE - 8, i);
        drawing_text(p->out, x0 + 5, y + 14, "start", "small faint", "turn %d: +%d", turn->number,
                     turn->n_written);
        fprintf(p->out, "<text class=\"small\" x=\"%.1f\" y=\"%.1f\">", x0 + 5, y + 29);
        put_written(p->out, turn);
        fputs("</text>\n</g>\n", p->out);
    }
}

static void put_amount(const picture *p, const shown *lane, const trace_bar *bar, double y)
{
    double x0 = x_of(p, bar->t0), x1 = x_of(p, bar->t1);
    bool counts = lane->lane == LANE_DRAFT || lane->lane == LANE_VERIFY;
    if (counts && x1 - x0 > 22)
        fprintf(p->out,
                "<text class=\"small\" style=\"fill:#ffffff\" x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"middle\">%.0f</text>\n",
                (x0 + x1) / 2, y + 15, bar->amount);
}

/* Draws the share of a layer's experts that were read, as a share of the height: the rest was in
 * memory. */
static void put_missing(const picture *p, const shown *lane, const trace_bar *bar, double y)
{
    double x0 = x_of(p, bar->t0), x1 = x_of(p, bar->t1), part = bar->part / bar->amount;
    if (lane->lane == LANE_EXPERTS)
        fprintf(p->out,
                "<rect class=\"read\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"/>\n", x0,
                y + (1 - part) * (LANE - 10), fmax(x1 - x0, 0.4), part * (LANE - 10));
}

static void put_lane(const picture *p, const shown *lane, double y)
{
    drawing_text(p->out, LEFT - 8, y + 18, "end", "small", "%s", lane->name);
    fprintf(p->out, "<path class=\"grid\" d=\"M%d %.1f H%d\"/>\n", LEFT, y + LANE, WIDTH - RIGHT);
    for (int k = 0; k < p->t->n_bars[lane->lane]; k++) {
        const trace_bar *bar = &p->t->bars[lane->lane][k];
        if (bar->t1 < p->t0 || bar->t0 > p->t1)
            continue;
        double x0 = x_of(p, bar->t0), x1 = x_of(p, bar->t1);
        fprintf(p->out, "<rect class=\"%s\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"/>\n",
                lane->class, x0, y + 5, fmax(x1 - x0, 0.4), LANE - 10);
        put_amount(p, lane, bar, y + 3);
        put_missing(p, lane, bar, y + 5);
    }
}

static void put_lanes(const picture *p)
{
    double y = lanes_top();
    for (int i = 0; i < N_LANES; i++) {
        if (!is_shown(p->t, lanes[i].lane))
            continue;
        put_lane(p, &lanes[i], y);
        y += LANE;
    }
}

void trace_svg_lanes(FILE *out, const trace_file *t, int first, int last)
{
    picture p = {.out = out,
                 .t = t,
                 .first = first,
                 .last = last,
                 .t0 = t->turns[first].t0,
                 .t1 = t->turns[last].t1,
                 .origin = t->turns[0].t0};
    if (!(p.t1 > p.t0))
        p.t1 = p.t0 + 1e-6;
    put_head(&p);
    put_axis(&p);
    put_stairs(&p);
    put_turns(&p);
    put_lanes(&p);
    put_key(&p, height_of(t) - 8);
    drawing_end(out);
}
