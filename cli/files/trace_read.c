/* Reading a trace back: see trace_file.h. The file may be anybody's: every number is checked where
 * it is taken, and what is odd is reported in one sentence. */
#include "cli/files/trace_file.h"

#include "cli/files/input.h"
#include "common/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const lane_names[TRACE_LANES] = {
    [LANE_DRAFT] = "draft",     [LANE_VERIFY] = "verify", [LANE_PROVISIONAL] = "provisional",
    [LANE_STALL] = "stall",     [LANE_READ] = "read",     [LANE_PROMPT] = "prompt",
    [LANE_EXPERTS] = "experts", [LANE_RANKS] = "ranks"};

/* A whole number from least to most, or INT32_MIN. */
static int whole(const json_value *item, double least, double most)
{
    if (!item || item->type != JSON_NUMBER || !(item->number >= least && item->number <= most))
        return INT32_MIN;
    return (int)item->number;
}

/* ---- Turns ---- */

/* [text, parent, confidence, rank, fate] */
static bool read_node(trace_node *nodes, int i, const json_value *from)
{
    const json_value *item[5] = {NULL};
    trace_node *n = &nodes[i];
    int n_items = 0;
    if (from->type != JSON_ARRAY || from->n < 5)
        return false;
    for (const json_value *v = from->first; n_items < 5; v = v->next)
        item[n_items++] = v;
    int fate = whole(item[4], FATE_WAITS, FATE_ACCEPTED);
    double confidence = item[2]->type == JSON_NUMBER ? item[2]->number : -1;
    n->parent = whole(item[1], i ? 0 : -1, i - 1);
    n->rank = whole(item[3], 0, 255);
    if (item[0]->type != JSON_STRING || n->parent == INT32_MIN || n->rank == INT32_MIN ||
        fate == INT32_MIN || !(confidence >= 0 && confidence <= 1))
        return false;
    n->text = item[0]->text;
    n->fate = (trace_fate)fate;
    n->confidence = confidence;
    n->depth = i ? nodes[n->parent].depth + 1 : 0;
    n->cumulative = i ? nodes[n->parent].cumulative * confidence : 1;
    return true;
}

static bool read_turn(trace_turn *t, const json_value *event, double t0, double t1)
{
    enum { MOST_NODES = 4096 };
    const json_value *args = json_member(event, "args"), *tree = json_member_array(args, "tree");
    uint32_t n = tree ? tree->n : 0;
    *t = (trace_turn){.t0 = t0, .t1 = t1, .next = json_member_text(args, "next")};
    t->number = whole(json_member(args, "turn"), 0, INT32_MAX);
    t->n_written = whole(json_member(args, "written"), 0, MOST_NODES);
    if (!t->next || t->number < 0 || t->n_written < 0 || n < 1 || n > MOST_NODES)
        return false;
    t->nodes = calloc(n, sizeof *t->nodes);
    if (!t->nodes)
        return false;
    for (const json_value *node = tree->first; node; node = node->next) {
        if (!read_node(t->nodes, t->n_nodes, node))
            return false;
        t->n_nodes++;
    }
    return true;
}

/* ---- Events ---- */

/* {"used":4,"read":1,"layer":0} */
static bool read_part(trace_bar *bar, const json_value *args)
{
    bar->part = whole(json_member(args, "read"), 0, INT32_MAX);
    return bar->amount >= 1 && bar->part >= 0 && bar->part <= bar->amount;
}

static bool read_event(trace_file *t, const json_value *event)
{
    const char *phase = json_member_text(event, "ph"), *name = json_member_text(event, "name");
    if (!phase || !name || strcmp(phase, "X") != 0)
        return phase && name;
    double t0 = json_member_number(event, "ts") * 1e-6,
           t1 = t0 + json_member_number(event, "dur") * 1e-6;
    if (!(t0 >= 0 && t1 >= t0))
        return false;
    if (strcmp(name, "turn") == 0)
        return read_turn(&t->turns[t->n_turns++], event, t0, t1);
    const json_value *args = json_member(event, "args");
    double amount =
        args && args->type == JSON_OBJECT && args->first && args->first->type == JSON_NUMBER
            ? args->first->number
            : 0;
    for (int lane = 0; lane < TRACE_LANES; lane++)
        if (strcmp(name, lane_names[lane]) == 0 ||
            (lane == LANE_PROMPT && strcmp(name, "load") == 0))
            t->bars[lane][t->n_bars[lane]++] = (trace_bar){t0, t1, amount, 0};
    return strcmp(name, lane_names[LANE_EXPERTS]) != 0 ||
           read_part(&t->bars[LANE_EXPERTS][t->n_bars[LANE_EXPERTS] - 1], args);
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int turns_by_time(const void *a, const void *b)
{
    return by_time(&((const trace_turn *)a)->t0, &((const trace_turn *)b)->t0);
}

/* Takes room for as many of each as there are events. */
static drey_status read_events(trace_file *t, const json_value *events, const char *path,
                               drey_error *err)
{
    size_t n = (size_t)events->n + 1;
    t->turns = calloc(n, sizeof *t->turns);
    bool good = t->turns != NULL;
    for (int lane = 0; lane < TRACE_LANES; lane++) {
        t->bars[lane] = calloc(n, sizeof(trace_bar));
        good = good && t->bars[lane];
    }
    if (!good)
        FAIL(err, DREY_ERR_MEMORY, "out of memory while reading %s", path);
    int i = 0;
    for (const json_value *event = events->first; event; event = event->next, i++)
        if (!read_event(t, event))
            FAIL(err, DREY_ERR_FORMAT,
                 "%s is damaged: its event %d is none that drey run --trace writes", path, i);
    for (int lane = 0; lane < TRACE_LANES; lane++)
        qsort(t->bars[lane], (size_t)t->n_bars[lane], sizeof(trace_bar), by_time);
    qsort(t->turns, (size_t)t->n_turns, sizeof *t->turns, turns_by_time);
    return DREY_OK;
}

static drey_status read_whole(trace_file *t, const char *text, size_t n, const char *path,
                              drey_error *err)
{
    const json_value *root = json_load(&t->json, text, n);
    if (!root)
        FAIL(err, DREY_ERR_FORMAT,
             "%s is no trace, or not all of one: it is not JSON to its end; write it again "
             "with drey run --trace",
             path);
    const json_value *about = json_member(root, "otherData");
    const json_value *events = json_member_array(root, "traceEvents");
    const char *format = json_member_text(about, "format");
    if (!format || strncmp(format, "drey trace", 10) != 0 || !events)
        FAIL(err, DREY_ERR_FORMAT, "%s is not a trace of drey run --trace", path);
    if (strcmp(format, "drey trace 1") != 0)
        FAIL(err, DREY_ERR_UNSUPPORTED, "%s was written by another version of drey", path);
    t->target = json_member_text(about, "target");
    t->draft = json_member_text(about, "draft");
    t->policy = json_member_text(about, "policy");
    t->tokens_per_s = json_member_number(about, "tokens_per_s");
    t->budget_bytes = json_member_number(about, "budget_bytes");
    return read_events(t, events, path, err);
}

drey_status trace_read(trace_file *t, const char *path, drey_error *err)
{
    char *text = NULL;
    size_t n = 0;
    *t = (trace_file){0};
    input_limit limit = input_limit_memory(DREY_MEMORY_AUTO, INPUT_AS_JSON);
    drey_status status = input_read(path, "the trace", &limit, &text, &n, err);
    if (status == DREY_OK)
        status = read_whole(t, text, n, path, err);
    free(text);
    if (status != DREY_OK)
        trace_free(t);
    return status;
}

void trace_free(trace_file *t)
{
    for (int i = 0; i < t->n_turns; i++)
        free(t->turns[i].nodes);
    for (int lane = 0; lane < TRACE_LANES; lane++)
        free(t->bars[lane]);
    free(t->turns);
    json_free(&t->json);
    *t = (trace_file){0};
}
