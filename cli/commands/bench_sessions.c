/* drey bench sessions: the same texts written by one session, by two at a time, by four ... as many
 * as --sessions says. Whoever has finished a text takes the next one, so that new texts begin beside
 * others that go on, as in a server. */
#include "cli/commands/bench_texts.h"
#include "cli/commands/cmd_bench.h"
#include "cli/commands/models.h"
#include "cli/files/prompts.h"
#include "cli/terminal/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { USUAL_SESSIONS = 8, USUAL_PREDICT = 64 };

typedef struct text {
    text_hash hash; /* its user data, first */
    drey_statistics statistics;
    double begun_s, first_s, last_s; /* first_s, last_s: its first and its latest token */
    double longest_s;                /* between two of them */
} text;

typedef struct company { /* n sessions at a time */
    drey_engine *engine;
    drey_session *session[DREY_MAX_SESSIONS];
    text *writes[DREY_MAX_SESSIONS]; /* NULL: none */
    int32_t n;
} company;

typedef struct measured {
    int32_t n_sessions;
    double seconds, tokens, prompt_tokens;
    double first_token_s, longest_s; /* medians over texts */
    double tokens_per_pass, accepted;
    drey_counts counts;
    uint64_t session_bytes;
} measured;

typedef struct sessions {
    const cli_settings *s;
    models models;
    prompt_list prompts;
    int32_t n_predict, n_context;
    text *texts;     /* [prompts.n] */
    uint64_t *alone; /* [prompts.n]: hashes of one session's */
    double *scratch; /* [prompts.n] */
    int n_other;
} sessions;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Texts ---- */

static bool keep_id(void *user, int32_t id)
{
    text *t = user;
    double now = now_s();
    if (t->hash.n == 0)
        t->first_s = now;
    else if (now - t->last_s > t->longest_s)
        t->longest_s = now - t->last_s;
    t->last_s = now;
    return text_hash_id(&t->hash, id);
}

static drey_status begin_text(const sessions *b, company *c, int32_t i, int which, drey_error *err)
{
    const bench_prompt *p = &b->prompts.prompts[which];
    text *t = c->writes[i] = &b->texts[which];
    *t = (text){.hash = text_hash_begin(), .begun_s = now_s()};
    drey_generate_options g;
    drey_generate_options_init(&g);
    g.n_predict = b->n_predict;
    g.ignore_eos = true;
    g.on_token = keep_id;
    g.user = t;
    drey_status status = drey_session_sync(c->session[i], p->ids, p->n_ids, NULL, err);
    return status == DREY_OK ? drey_session_begin(c->session[i], &g, &t->statistics, err) : status;
}

/* All prompts, as many at a time as there are sessions. */
static drey_status write_all(const sessions *b, company *c, drey_error *err)
{
    drey_status status = DREY_OK;
    int32_t n_writing = 0;
    for (int next = 0; status == DREY_OK;) {
        for (int32_t i = 0; i < c->n && next < b->prompts.n && status == DREY_OK; i++)
            if (!drey_session_is_writing(c->session[i]))
                status = begin_text(b, c, i, next++, err);
        if (status == DREY_OK)
            status = drey_engine_step(c->engine, &n_writing, err);
        if (n_writing == 0 && next == b->prompts.n)
            break;
    }
    return status;
}

/* The first pass loads. */
static drey_status warm_up(const sessions *b, company *c, drey_error *err)
{
    drey_generate_options g;
    drey_generate_options_init(&g);
    g.n_predict = 2;
    const bench_prompt *p = &b->prompts.prompts[0];
    drey_status status = drey_session_generate(c->session[0], p->ids, p->n_ids, &g, NULL, err);
    drey_session_reset(c->session[0]);
    return status;
}

/* ---- A number of sessions ---- */

static drey_status open_company(const sessions *b, company *c, drey_error *err)
{
    drey_engine_options o = models_engine_options(&b->models, b->s, b->n_context);
    o.n_sessions = c->n;
    drey_status status = drey_engine_open(&c->engine, &o, err);
    for (int32_t i = 0; i < c->n && status == DREY_OK; i++)
        status = drey_session_open(&c->session[i], c->engine, err);
    return status;
}

static void close_company(company *c)
{
    for (int32_t i = 0; i < c->n; i++)
        drey_session_close(&c->session[i]);
    drey_engine_close(&c->engine);
}

static double median_first(sessions *b)
{
    for (int i = 0; i < b->prompts.n; i++)
        b->scratch[i] = b->texts[i].first_s - b->texts[i].begun_s;
    return median_of(b->scratch, (size_t)b->prompts.n);
}

static double median_longest(sessions *b)
{
    for (int i = 0; i < b->prompts.n; i++)
        b->scratch[i] = b->texts[i].longest_s;
    return median_of(b->scratch, (size_t)b->prompts.n);
}

static void sum_up(sessions *b, const company *c, measured *m)
{
    double drafted = 0, accepted = 0, passes = 0;
    for (int i = 0; i < b->prompts.n; i++) {
        const text *t = &b->texts[i];
        m->tokens += t->hash.n;
        m->prompt_tokens += (double)t->statistics.prompt_tokens;
        drafted += (double)t->statistics.drafted;
        accepted += (double)t->statistics.accepted;
        passes += (double)t->statistics.n_passes;
        if (c->n == 1)
            b->alone[i] = t->hash.value;
        else if (t->hash.value != b->alone[i])
            b->n_other++;
    }
    m->tokens_per_pass = passes > 0 ? (m->tokens - b->prompts.n) / passes : 0;
    m->accepted = drafted > 0 ? accepted / drafted : 0;
    m->first_token_s = median_first(b);
    m->longest_s = median_longest(b);
}

static void take_off(drey_counts *c, const drey_counts *before)
{
    c->passes -= before->passes;
    c->rows -= before->rows;
    c->prompt_passes -= before->prompt_passes;
    c->prompt_rows -= before->prompt_rows;
    c->pass_s -= before->pass_s;
    c->prompt_s -= before->prompt_s;
    c->draft_s -= before->draft_s;
    c->hidden_s -= before->hidden_s;
    c->stall_s -= before->stall_s;
}

static drey_status measure(sessions *b, int32_t n, measured *m, drey_error *err)
{
    company c = {.n = n};
    drey_plan plan;
    *m = (measured){.n_sessions = n};
    drey_status status = open_company(b, &c, err);
    if (status == DREY_OK)
        status = warm_up(b, &c, err);
    if (status == DREY_OK) {
        drey_counts before;
        double start_s = now_s();
        drey_engine_count(c.engine, &before);
        status = write_all(b, &c, err);
        m->seconds = now_s() - start_s;
        drey_engine_count(c.engine, &m->counts);
        take_off(&m->counts, &before);
    }
    if (status == DREY_OK) {
        drey_engine_plan(c.engine, &plan);
        m->session_bytes = plan.session_bytes;
        sum_up(b, &c, m);
    }
    close_company(&c);
    return status;
}

/* ---- All of them ---- */

/* Where the time went: shared passes count once. */
static void tell_time(const measured *m, cJSON *to)
{
    const drey_counts *c = &m->counts;
    cJSON_AddNumberToObject(to, "passes", (double)c->passes);
    cJSON_AddNumberToObject(to, "rows", (double)c->rows);
    cJSON_AddNumberToObject(to, "prompt_passes", (double)c->prompt_passes);
    cJSON_AddNumberToObject(to, "prompt_rows", (double)c->prompt_rows);
    cJSON_AddNumberToObject(to, "pass_s", c->pass_s);
    cJSON_AddNumberToObject(to, "prompt_s", c->prompt_s);
    cJSON_AddNumberToObject(to, "draft_s", c->draft_s);
    cJSON_AddNumberToObject(to, "hidden_s", c->hidden_s);
    cJSON_AddNumberToObject(to, "stall_s", c->stall_s);
}

static void tell(const measured *m, const measured *one, FILE *out, cJSON *list)
{
    double speed = m->tokens / m->seconds, times = speed * one->seconds / one->tokens;
    fprintf(out, "| %d | %.3g | %.2f | %.2f | %.2f | %.3g | %.3g | %.1f |\n", m->n_sessions, speed,
            times, m->tokens_per_pass, m->accepted, m->first_token_s, m->longest_s,
            (double)m->session_bytes / 1048576);
    fflush(out);
    cJSON *one_case = cJSON_CreateObject();
    cJSON_AddNumberToObject(one_case, "sessions", m->n_sessions);
    cJSON_AddNumberToObject(one_case, "seconds", m->seconds);
    cJSON_AddNumberToObject(one_case, "tokens", m->tokens);
    cJSON_AddNumberToObject(one_case, "prompt_tokens", m->prompt_tokens);
    cJSON_AddNumberToObject(one_case, "tokens_per_s", speed);
    cJSON_AddNumberToObject(one_case, "times_one", times);
    cJSON_AddNumberToObject(one_case, "tokens_per_pass", m->tokens_per_pass);
    cJSON_AddNumberToObject(one_case, "accepted_share", m->accepted);
    cJSON_AddNumberToObject(one_case, "first_token_s", m->first_token_s);
    cJSON_AddNumberToObject(one_case, "longest_gap_s", m->longest_s);
    cJSON_AddNumberToObject(one_case, "session_bytes", (double)m->session_bytes);
    tell_time(m, one_case);
    cJSON_AddItemToArray(list, one_case);
}

static drey_status measure_all(sessions *b, FILE *out, cJSON *root, drey_error *err)
{
    measured one, m;
    int32_t most = b->s->n_sessions ? b->s->n_sessions : USUAL_SESSIONS;
    cJSON *list = cJSON_AddArrayToObject(root, "cases");
    fprintf(out, "%d texts of %d tokens\n\n", b->prompts.n, b->n_predict);
    fputs("| sessions | tokens/s together | of one | tokens/pass each | accepted | first token, s "
          "| longest gap, s | MiB each |\n|---|---|---|---|---|---|---|---|\n",
          out);
    drey_status status = measure(b, 1, &one, err);
    if (status == DREY_OK)
        tell(&one, &one, out, list);
    for (int32_t n = 2; n / 2 < most && status == DREY_OK; n *= 2) {
        status = measure(b, n < most ? n : most, &m, err);
        if (status == DREY_OK)
            tell(&m, &one, out, list);
    }
    if (status != DREY_OK)
        return status;
    fputc('\n', out);
    return tell_texts(most > 1 ? 2 * b->prompts.n : 1, b->n_other, 0, out, root, err);
}

static drey_status prepare(sessions *b, drey_error *err)
{
    int n = b->prompts.n;
    size_t longest = 0;
    for (int i = 0; i < n; i++)
        if (b->prompts.prompts[i].n_ids > longest)
            longest = b->prompts.prompts[i].n_ids;
    b->n_predict = option_given(b->s, "predict") ? b->s->n_predict : USUAL_PREDICT;
    if (longest + (size_t)b->n_predict > DREY_MAX_CONTEXT)
        return fail(err, DREY_ERR_USAGE, "prompt and text are too long together");
    b->n_context = (int32_t)longest + b->n_predict;
    b->texts = calloc((size_t)n, sizeof *b->texts);
    b->alone = calloc((size_t)n, sizeof *b->alone);
    b->scratch = calloc((size_t)n, sizeof *b->scratch);
    if (!b->texts || !b->alone || !b->scratch)
        return fail(err, DREY_ERR_MEMORY, "out of memory for the results of %d texts", n);
    return DREY_OK;
}

drey_status bench_sessions(const cli_settings *s, FILE *out, cJSON *root, drey_error *err)
{
    sessions b = {.s = s};
    drey_status status = prompts_read(&b.prompts, s->prompts, s->memory_bytes, err);
    if (status == DREY_OK)
        status = models_open(&b.models, s, err);
    if (status == DREY_OK)
        status = prompts_tokenize(&b.prompts, b.models.target, err);
    if (status == DREY_OK)
        status = prepare(&b, err);
    if (status == DREY_OK)
        status = measure_all(&b, out, root, err);
    free(b.texts);
    free(b.alone);
    free(b.scratch);
    prompts_free(&b.prompts);
    models_close(&b.models);
    return status;
}
