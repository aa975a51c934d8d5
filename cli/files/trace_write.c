/* Writing a trace: see trace_file.h. Events go straight to the file: a tree of all of them in
 * memory would not be in the budget. */
#include "cli/files/trace_file.h"

#include "cli/files/json_file.h"

#include <math.h>
#include <string.h>

/* lanes of a mixture: its lanes have names once something is in them. */
enum { EXPERTS_TID = 9, FIRST_EXPERT_TID, EXPERT_LANES = 16 };
/* lane with other ranks. */
enum { RANKS_TID = FIRST_EXPERT_TID + EXPERT_LANES };

typedef struct writer {
    FILE *out;
    json_writer json; /* writer of strings */
    const drey_session *session;
    const drey_model *model;
    const trace_about *about;
    int64_t origin_ns;    /* the first span's beginning */
    drey_trace_span read; /* read that was joined so far */
    int64_t n_reads;
    int64_t expert_read_ns[EXPERT_LANES]; /* the end of each lane's last one; 0: it has none */
    bool has_experts, has_ranks;
} writer;

enum { READ_EVENT_BYTES = 32 << 20 };

typedef struct lane {
    const char *what, *amount; /* name of a span; what its amount is called */
    int tid;
} lane;

static const lane lanes[] = {
    {"draft", "nodes", 2}, {"verify", "rows", 3},      {"provisional", "nodes", 4},
    {"stall", NULL, 5},    {"read", "bytes", 6},       {"prompt", "rows", 7},
    {"load", "rows", 7},   {"read draft", "bytes", 8}, {"ranks", NULL, RANKS_TID},
};
static const char *const lane_names[] = {"text",  "draft", "verify", "provisional",
                                         "stall", "read",  "prompt", "draft's reads"};

static const lane *lane_of(const char *what)
{
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++)
        if (strcmp(lanes[i].what, what) == 0)
            return &lanes[i];
    return NULL;
}

static double us(const writer *w, int64_t ns)
{
    return (double)(ns - w->origin_ns) * 1e-3;
}

static void put_event(writer *w, const drey_trace_span *s, const lane *l)
{
    fprintf(w->out,
            ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f",
            l->tid, s->what, us(w, s->t0_ns), (double)(s->t1_ns - s->t0_ns) * 1e-3);
    if (l->amount)
        fprintf(w->out, ",\"args\":{\"%s\":%lld}", l->amount, (long long)s->amount);
    fputc('}', w->out);
}

static void put_reads(writer *w)
{
    if (w->n_reads)
        put_event(w, &w->read, lane_of(w->read.what));
    w->n_reads = 0;
}

/* Reads come in the order in which they ended: one joins those before it if it began before their
 * end. Where it began before what was put already, that part of it is left out. */
static void join_read(writer *w, const drey_trace_span *s)
{
    drey_trace_span *r = &w->read;
    bool same = w->n_reads > 0 && strcmp(r->what, s->what) == 0;
    if (same && s->t0_ns <= r->t1_ns && r->amount < READ_EVENT_BYTES) {
        r->t1_ns = s->t1_ns;
        r->amount += s->amount;
        w->n_reads++;
        return;
    }
    int64_t end = same ? r->t1_ns : INT64_MIN;
    put_reads(w);
    *r = *s;
    r->t0_ns = s->t0_ns < end ? end : s->t0_ns;
    w->n_reads = 1;
}

static void name_lane(writer *w, int tid, const char *name, int number)
{
    char shown[40];
    snprintf(shown, sizeof shown, number ? "%s %d" : "%s", name, number);
    fprintf(w->out,
            ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":"
            "\"%s\"}},\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_sort_index\","
            "\"args\":{\"sort_index\":%d}}",
            tid, shown, tid, tid);
}

static void put_experts(writer *w, const drey_trace_span *s)
{
    if (!w->has_experts)
        name_lane(w, EXPERTS_TID, "experts", 0);
    w->has_experts = true;
    fprintf(w->out,
            ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"name\":\"experts\",\"ts\":%.3f,\"dur\":%.3f,"
            "\"args\":{\"used\":%lld,\"read\":%d,\"layer\":%d}}",
            EXPERTS_TID, us(w, s->t0_ns), (double)(s->t1_ns - s->t0_ns) * 1e-3,
            (long long)s->amount, s->n_read, s->layer);
}

/* Puts a read in the first lane where the last one is over; if there is none, in the last lane,
 * from its end on. */
static void put_expert_read(writer *w, const drey_trace_span *s)
{
    int i = 0;
    while (i < EXPERT_LANES - 1 && w->expert_read_ns[i] > s->t0_ns)
        i++;
    int64_t t0 = s->t0_ns > w->expert_read_ns[i] ? s->t0_ns : w->expert_read_ns[i];
    if (w->expert_read_ns[i] == 0)
        name_lane(w, FIRST_EXPERT_TID + i, "expert reads", i + 1);
    w->expert_read_ns[i] = s->t1_ns;
    fprintf(w->out,
            ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"name\":\"expert\",\"ts\":%.3f,\"dur\":%.3f,"
            "\"args\":{\"bytes\":%lld,\"layer\":%d,\"expert\":%d}}",
            FIRST_EXPERT_TID + i, us(w, t0), (double)(s->t1_ns - t0) * 1e-3, (long long)s->amount,
            s->layer, s->expert);
}

static void put_span(void *user, const drey_trace_span *s)
{
    writer *w = user;
    const lane *l = lane_of(s->what);
    if (strcmp(s->what, "experts") == 0)
        put_experts(w, s);
    if (!l)
        return;
    if (l->tid == RANKS_TID && !w->has_ranks) {
        name_lane(w, RANKS_TID, "ranks", 0);
        w->has_ranks = true;
    }
    if (strcmp(s->what, "read") == 0 && s->expert >= 0)
        put_expert_read(w, s);
    if (strncmp(s->what, "read", 4) == 0)
        join_read(w, s);
    else
        put_event(w, s, l);
}

static void find_origin(void *user, const drey_trace_span *s)
{
    writer *w = user;
    if (s->t0_ns < w->origin_ns)
        w->origin_ns = s->t0_ns;
}

/* ---- Turns ---- */

static void put_token(writer *w, int32_t id)
{
    char text[256];
    size_t n = 0;
    const int flags = DREY_TOKENIZE_SPECIAL | DREY_TOKENIZE_INNER;
    if (drey_detokenize(w->model, &id, 1, flags, text, sizeof text, &n, NULL) != DREY_OK &&
        n > sizeof text)
        n = sizeof text;
    json_raw_string(&w->json, text, n);
}

static void put_turn(void *user, const drey_trace_turn *t)
{
    writer *w = user;
    int64_t t0 = t->t0_ns > w->origin_ns ? t->t0_ns : w->origin_ns;
    fprintf(w->out,
            ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":\"turn\",\"ts\":%.3f,\"dur\":%.3f,"
            "\"args\":{\"turn\":%lld,\"written\":%d,\"position\":%d,\"next\":",
            us(w, t0), (double)(t->t1_ns - t0) * 1e-3, (long long)t->number, t->n_written,
            t->position);
    put_token(w, t->next);
    fputs(",\"tree\":[", w->out);
    for (int32_t i = 0; i < t->n_nodes; i++) {
        const drey_trace_node *n = &t->nodes[i];
        fputs(i ? ",[" : "[", w->out);
        put_token(w, n->token);
        trace_fate fate = n->accepted ? FATE_ACCEPTED : n->submitted ? FATE_SUBMITTED : FATE_WAITS;
        fprintf(w->out, ",%d,%.6g,%d,%d]", n->parent, (double)n->confidence, n->rank, (int)fate);
    }
    fputs("]}}", w->out);
}

/* ---- The file ---- */

static void put_about(writer *w)
{
    const trace_about *a = w->about;
    const drey_statistics *s = a->statistics;
    fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"format\":\"drey trace 1\",\"version\":",
          w->out);
    json_raw_string(&w->json, drey_version(), strlen(drey_version()));
    fputs(",\"target\":", w->out);
    json_raw_string(&w->json, a->target, strlen(a->target));
    if (a->draft) {
        fputs(",\"draft\":", w->out);
        json_raw_string(&w->json, a->draft, strlen(a->draft));
    }
    fprintf(w->out, ",\"policy\":\"%s\",\"tokens_per_s\":%.6g", a->policy,
            isfinite(s->tokens_per_s) ? s->tokens_per_s : 0);
    if (s->budget_bytes != DREY_MEMORY_UNLIMITED)
        fprintf(w->out, ",\"budget_bytes\":%llu", (unsigned long long)s->budget_bytes);
    fputs("},\n\"traceEvents\":[\n"
          "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"drey\"}}",
          w->out);
    for (int i = 0; i < (int)(sizeof lane_names / sizeof *lane_names); i++)
        name_lane(w, i + 1, lane_names[i], 0);
}

static void put_bytes(void *user, const char *bytes, size_t n, const char *from)
{
    (void)from;
    fwrite(bytes, 1, n, user);
}

static bool put_all(FILE *out, void *user)
{
    writer *w = user;
    w->out = out;
    w->json = (json_writer){.put = put_bytes, .user = out};
    w->origin_ns = INT64_MAX;
    drey_session_trace(w->session, &(drey_trace_visitor){.span = find_origin, .user = w});
    put_about(w);
    drey_session_trace(w->session,
                       &(drey_trace_visitor){.span = put_span, .turn = put_turn, .user = w});
    put_reads(w);
    return fputs("\n]}\n", out) != EOF;
}

drey_status trace_write(const char *path, const drey_session *session, const drey_model *model,
                        const trace_about *about, drey_error *err)
{
    writer w = {.session = session, .model = model, .about = about};
    return file_write(path, put_all, &w, err);
}
