/* Reading a trace back: see trace_file.h. The file may be anybody's: every number is checked where
 * it is taken, and what is odd is told in one sentence. */
#include "cli/files/trace_file.h"

#include "cli/files/input.h"
#include "cli/files/json_read.h"
#include "cli/terminal/terminal.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const lane_names[TRACE_LANES] = {
    [LANE_DRAFT] = "draft", [LANE_VERIFY] = "verify", [LANE_PROVISIONAL] = "provisional",
    [LANE_STALL] = "stall", [LANE_READ] = "read",     [LANE_PROMPT] = "prompt"};

/* A whole number from least to most, or INT32_MIN. */
static int whole(const cJSON *item, double least, double most)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= least && item->valuedouble <= most))
        return INT32_MIN;
    return (int)item->valuedouble;
}

/* ---- Turns ---- */

static bool read_node(trace_node *nodes, int i, const cJSON *from)
{
    const cJSON *text = cJSON_GetArrayItem(from, 0);
    trace_node *n = &nodes[i];
    int fate = whole(cJSON_GetArrayItem(from, 4), FATE_WAITS, FATE_ACCEPTED);
    double confidence = cJSON_GetNumberValue(cJSON_GetArrayItem(from, 2));
    n->parent = whole(cJSON_GetArrayItem(from, 1), i ? 0 : -1, i - 1);
    n->rank = whole(cJSON_GetArrayItem(from, 3), 0, 255);
    if (!cJSON_IsString(text) || n->parent == INT32_MIN || n->rank == INT32_MIN ||
        fate == INT32_MIN || !(confidence >= 0 && confidence <= 1))
        return false;
    n->text = text->valuestring;
    n->fate = (trace_fate)fate;
    n->confidence = confidence;
    n->depth = i ? nodes[n->parent].depth + 1 : 0;
    n->cumulative = i ? nodes[n->parent].cumulative * confidence : 1;
    return true;
}

static bool read_turn(trace_turn *t, const cJSON *event, double t0, double t1)
{
    enum { MOST_NODES = 4096 };
    const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");
    const cJSON *tree = cJSON_GetObjectItemCaseSensitive(args, "tree"), *node;
    int n = cJSON_IsArray(tree) ? cJSON_GetArraySize(tree) : 0;
    *t = (trace_turn){.t0 = t0, .t1 = t1, .next = json_text(args, "next")};
    t->number = whole(cJSON_GetObjectItemCaseSensitive(args, "turn"), 0, INT32_MAX);
    t->n_written = whole(cJSON_GetObjectItemCaseSensitive(args, "written"), 0, MOST_NODES);
    if (!t->next || t->number < 0 || t->n_written < 0 || n < 1 || n > MOST_NODES)
        return false;
    t->nodes = calloc((size_t)n, sizeof *t->nodes);
    if (!t->nodes)
        return false;
    cJSON_ArrayForEach(node, tree)
    {
        if (!read_node(t->nodes, t->n_nodes, node))
            return false;
        t->n_nodes++;
    }
    return true;
}

/* ---- Events ---- */

static bool read_event(trace_file *t, const cJSON *event)
{
    const char *phase = json_text(event, "ph"), *name = json_text(event, "name");
    if (!phase || !name || strcmp(phase, "X") != 0)
        return phase && name;
    double t0 = json_number(event, "ts") * 1e-6, t1 = t0 + json_number(event, "dur") * 1e-6;
    if (!(t0 >= 0 && t1 >= t0))
        return false;
    if (strcmp(name, "turn") == 0)
        return read_turn(&t->turns[t->n_turns++], event, t0, t1);
    const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");
    double amount = args && args->child ? json_number(args, args->child->string) : 0;
    for (int lane = 0; lane < TRACE_LANES; lane++)
        if (strcmp(name, lane_names[lane]) == 0 ||
            (lane == LANE_PROMPT && strcmp(name, "load") == 0))
            t->bars[lane][t->n_bars[lane]++] = (trace_bar){t0, t1, isfinite(amount) ? amount : 0};
    return true;
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
static drey_status read_events(trace_file *t, const cJSON *events, const char *path,
                               drey_error *err)
{
    size_t n = (size_t)cJSON_GetArraySize(events) + 1;
    t->turns = calloc(n, sizeof *t->turns);
    bool good = t->turns != NULL;
    for (int lane = 0; lane < TRACE_LANES; lane++) {
        t->bars[lane] = calloc(n, sizeof(trace_bar));
        good = good && t->bars[lane];
    }
    if (!good)
        return fail(err, DREY_ERR_MEMORY, "out of memory while reading %s", path);
    const cJSON *event;
    int i = 0;
    cJSON_ArrayForEach(event, events)
    {
        if (!read_event(t, event))
            return fail(err, DREY_ERR_FORMAT,
                        "%s is damaged: its event %d is none that drey run --trace writes", path,
                        i);
        i++;
    }
    for (int lane = 0; lane < TRACE_LANES; lane++)
        qsort(t->bars[lane], (size_t)t->n_bars[lane], sizeof(trace_bar), by_time);
    qsort(t->turns, (size_t)t->n_turns, sizeof *t->turns, turns_by_time);
    return DREY_OK;
}

static drey_status read_whole(trace_file *t, const char *text, size_t n, const char *path,
                              drey_error *err)
{
    t->root = cJSON_ParseWithLength(text, n);
    if (!t->root)
        return fail(err, DREY_ERR_FORMAT,
                    "%s is no trace, or not all of one: it is not JSON to its end; write it again "
                    "with drey run --trace",
                    path);
    const cJSON *about = cJSON_GetObjectItemCaseSensitive(t->root, "otherData");
    const cJSON *events = cJSON_GetObjectItemCaseSensitive(t->root, "traceEvents");
    const char *format = json_text(about, "format");
    if (!format || strncmp(format, "drey trace", 10) != 0 || !cJSON_IsArray(events))
        return fail(err, DREY_ERR_FORMAT, "%s is not a trace of drey run --trace", path);
    if (strcmp(format, "drey trace 1") != 0)
        return fail(err, DREY_ERR_UNSUPPORTED, "%s was written by another version of drey", path);
    t->target = json_text(about, "target");
    t->draft = json_text(about, "draft");
    t->policy = json_text(about, "policy");
    t->tokens_per_s = json_number(about, "tokens_per_s");
    t->budget_bytes = json_number(about, "budget_bytes");
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
    cJSON_Delete(t->root);
    *t = (trace_file){0};
}
