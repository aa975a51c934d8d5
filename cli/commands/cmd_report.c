/* drey report: pictures of a trace. */
#include "cli/commands/commands.h"
#include "cli/files/json_file.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/terminal_page.h"
#include "cli/files/trace_svg.h"
#include "common/path.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Turns of the picture where none are named: in the middle of the text, as few as can be read. */
enum { USUAL_TURNS = 4 };

typedef struct report {
    trace_file trace;
    int first, last; /* range of the file's list of turns */
    bool tree;       /* tree of the first one */
} report;

/* The place of turn `number` in the list, or -1. */
static int find_turn(const trace_file *t, long number)
{
    for (int i = 0; i < t->n_turns; i++)
        if (t->turns[i].number == number)
            return i;
    return -1;
}

static drey_status find_named(report *r, long first, long last, drey_error *err)
{
    const trace_file *t = &r->trace;
    r->first = find_turn(t, first);
    r->last = find_turn(t, last);
    if (r->first < 0 || r->last < r->first)
        FAIL(err, DREY_ERR_USAGE, "the trace has no turn %ld; it has %d to %d",
             r->first < 0 ? first : last, t->turns[0].number, t->turns[t->n_turns - 1].number);
    return DREY_OK;
}

/* "7" or "3-7". */
static drey_status read_turns(report *r, const char *text, drey_error *err)
{
    char *end = NULL;
    long first = strtol(text, &end, 10), last = first;
    bool good = end != text && *text >= '0' && *text <= '9';
    if (good && *end == '-') {
        const char *second = end + 1;
        good = *second >= '0' && *second <= '9';
        last = strtol(second, &end, 10);
    }
    if (!good || *end || last < first)
        FAIL(err, DREY_ERR_USAGE, "--turns takes a turn or two, such as 3-7, not \"%.40s\"", text);
    return find_named(r, first, last, err);
}

/* The first turn of which nothing was forgotten: reads are many, and go first. */
static int first_whole(const trace_file *t)
{
    int first = 0;
    while (t->n_bars[LANE_READ] > 0 && first + 1 < t->n_turns &&
           t->turns[first].t0 < t->bars[LANE_READ][0].t0)
        first++;
    return first;
}

static drey_status choose(report *r, const cli_settings *s, drey_error *err)
{
    int n = r->trace.n_turns;
    if (n == 0)
        FAIL(err, DREY_ERR_FORMAT, "%s holds no turn: the text ended before its second token",
             s->operand);
    r->tree = option_given(s, "turn");
    if (r->tree)
        return find_named(r, s->picture.turn, s->picture.turn, err);
    if (s->picture.turns)
        return read_turns(r, s->picture.turns, err);
    int from = first_whole(&r->trace), shown = n - from < USUAL_TURNS ? n - from : USUAL_TURNS;
    r->first = from + (n - from - shown) / 2;
    r->last = r->first + shown - 1;
    return DREY_OK;
}

static bool draw(FILE *out, void *user)
{
    const report *r = user;
    if (r->tree)
        return trace_svg_tree(out, &r->trace, &r->trace.turns[r->first]);
    trace_svg_lanes(out, &r->trace, r->first, r->last);
    return true;
}

/* A picture is no text for a terminal: it goes next to the trace, "t.svg" or "t-turn5.svg" of
 * t.json. */
static drey_status name_picture(const cli_settings *s, char path[PATH_MAX], drey_error *err)
{
    const char *name = path_name(s->operand), *dot = strrchr(name, '.');
    int stem = (int)(dot && dot > name ? dot - s->operand : (long)strlen(s->operand)), n;
    if (option_given(s, "turn"))
        n = snprintf(path, PATH_MAX, "%.*s-turn%d.svg", stem, s->operand, s->picture.turn);
    else
        n = snprintf(path, PATH_MAX, "%.*s.svg", stem, s->operand);
    if (n < 0 || n >= PATH_MAX)
        FAIL(err, DREY_ERR_USAGE, "the trace's name is too long; name the picture with -o");
    return DREY_OK;
}

static drey_status report_all(report *r, const cli_settings *s, drey_error *err)
{
    char beside[PATH_MAX];
    const char *path = s->output ? s->output : "-";
    bool at_terminal = !s->output && isatty(STDOUT_FILENO) == 1;
    if (at_terminal) {
        TRY(name_picture(s, beside, err));
        path = beside;
    }
    TRY(json_check_path(path, err));
    TRY(trace_read(&r->trace, s->operand, err));
    TRY(choose(r, s, err));
    TRY(file_write(path, draw, r, err));
    if (at_terminal)
        fprintf(page_of(stderr), "wrote %s, which a browser shows\n", path);
    return DREY_OK;
}

int report_main(const cli_settings *settings)
{
    report r = {.first = 0};
    drey_error err = {0};
    drey_status status = report_all(&r, settings, &err);
    trace_free(&r.trace);
    return exit_with(status, &err);
}
