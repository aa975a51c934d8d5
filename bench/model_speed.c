/* The speed of a model and the limits of this machine: prefill, decoding, and t(n), a pass over n
 * rows, after contexts of several lengths.
 *
 * The limit of a pass is the longer of two times: its bytes, matrices and keys and values once, at
 * the memory bandwidth, and its operations at the peak of the tier. Both are measured between the
 * passes, on the model's weights if there are enough of them, so that a busy machine slows both
 * equally. Widths take turns, and a figure is the median of its rounds. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "common/num.h"
#include "session/session_probe.h"
#include "os/clock.h"
#include "state/cache.h"
#include "state/cache_room.h"
#include "tune/machine_limits.h"

enum { WIDEST = 64, MOST_ROUNDS = 9, LEAST_ROUNDS = 3 };
static const double rounds_s = 8;                    /* then no further round is begun */
static const size_t least_block = (size_t)256 << 20; /* for reading: beyond any cache */

typedef struct bench {
    drey_engine *engine;
    drey_session *sessions[DREY_MAX_SESSIONS];
    runner *target; /* target of the first session, on which passes are timed */
    const drey_model_bench *what;
    drey_model_report *report;
    const drey_engine_options *options; /* options with the progress function: */
    struct {
        double done, weight, all; /* amounts of work: what came before, of the part, of all */
    } work;
    trace trace;
    int32_t *prompt; /* [n_prompt] */
    arena memory;
    arena block; /* if the model is too small to measure the bandwidth on */
    const void *read_from;
    size_t read_bytes;
    int32_t n_limits; /* measurements so far, whose mean is in the report */
    double int8_weights, float_weights, head_weights; /* numbers in matrices; the head's of both */
} bench;

void drey_model_bench_init(drey_model_bench *b)
{
    *b = (drey_model_bench){
        .n_prompt = 512, .n_decode = 64, .n_contexts = 3, .contexts = {0, 4096, 16384}};
}

/* ---- Progress ---- */

enum { SHORT_WORK = 1, SESSIONS_WORK = 2, CONTEXT_WORK = 4 };

static void begin_work(bench *b, double amount)
{
    b->work.done += b->work.weight;
    b->work.weight = amount;
}

/* After so many rounds, the last one perhaps a part of one, of which as many are run as most_s has
 * room for. */
static void report_rounds(const bench *b, double rounds, double spent_s, double most_s)
{
    const drey_engine_options *o = b->options;
    double all = spent_s > 0 ? rounds * most_s / spent_s : MOST_ROUNDS;
    all = min_f64(max_f64(all, LEAST_ROUNDS), MOST_ROUNDS);
    double part = (b->work.done + b->work.weight * min_f64(rounds / all, 1)) / b->work.all;
    if (o->progress)
        o->progress(o->progress_user, DREY_PROGRESS_MEASURE, (uint64_t)(1000 * part), 1000);
}

/* Any tokens do: the work does not depend on them. */
static int32_t some_token(const bench *b, int64_t i)
{
    return (int32_t)((i * 7919 + 13) % b->target->layout->shape.n_vocab);
}

/* ---- Limits ---- */

/* The bytes read for a token: the matrices, by their size in the file, of experts those that it
 * takes, and the keys and values of its context. */
static void count_bytes(bench *b)
{
    const model_layout *l = &b->engine->target.layout;
    const model_shape *s = &l->shape;
    for (int32_t i = l->n_looked_up; i < l->n_matrices; i++) {
        const weight *m = &l->matrix[i];
        int64_t n_rows = m->form.n_rows;
        if (!m->residency.in_pass)
            n_rows = n_rows / s->experts.router.n_experts * s->experts.router.n_used;
        double numbers = (double)n_rows * (double)m->form.k;
        b->report->token_bytes += (uint64_t)(n_rows * m->form.row_bytes);
        *(m->form.kernel->act == ACT_F32 ? &b->float_weights : &b->int8_weights) += numbers;
        if (m == l->head) {
            b->head_weights = numbers;
        }
    }
    const cache_spec spec = model_cache_spec(s, engine_kv_format(b->engine));
    b->report->position_bytes = cache_positions_bytes(&spec, KV_GROUP) / KV_GROUP;
}

static drey_status find_block(bench *b, drey_error *err)
{
    const arena *memory = &b->engine->target.weight_memory;
    b->read_from = memory->base;
    b->read_bytes = memory->used_bytes;
    if (b->read_bytes >= least_block)
        return DREY_OK;
    TRY(arena_init(&b->block, least_block, true, err));
    memset(b->block.base, 1, least_block);
    b->read_from = b->block.base;
    b->read_bytes = least_block;
    return DREY_OK;
}

static void average(double *mean, double value, int32_t n_before)
{
    *mean += (value - *mean) / (n_before + 1);
}

static void measure_limits(bench *b)
{
    const drey_engine *e = b->engine;
    drey_limits now = limits_measure(e->pool, e->kernels, b->read_from, b->read_bytes);
    drey_limits *mean = &b->report->limits;
    average(&mean->memory_bytes_per_s, now.memory_bytes_per_s, b->n_limits);
    average(&mean->int8_ops_per_s, now.int8_ops_per_s, b->n_limits);
    average(&mean->float_ops_per_s, now.float_ops_per_s, b->n_limits);
    average(&mean->barrier_s, now.barrier_s, b->n_limits);
    b->n_limits++;
}

static double bytes_seconds(const bench *b, double context)
{
    const drey_model_report *r = b->report;
    return ((double)r->token_bytes + (double)r->position_bytes * context) /
           r->limits.memory_bytes_per_s;
}

/* Returns the time of computing n rows after a context, the first of them at its end. */
static double compute_seconds(const bench *b, double n, double context, bool with_head)
{
    const drey_limits *limits = &b->report->limits;
    const model_shape *s = &b->engine->target.layout.shape;
    double int8 = b->int8_weights, floats = b->float_weights;
    if (!with_head)
        *(b->engine->target.layout.head->form.kernel->act == ACT_F32 ? &floats : &int8) -=
            b->head_weights;
    double positions = context + (n + 1) / 2;
    for (int32_t i = 0; i < s->n_layers; i++) {
        const attention_shape *a = layer_attention(s, i);
        floats += a ? positions * (double)(attention_queries(a) + attention_out(a)) : 0;
    }
    return 2 * n * (int8 / limits->int8_ops_per_s + floats / limits->float_ops_per_s);
}

/* ---- Prompt and text ---- */

static drey_status time_prompt(bench *b, int32_t n, double *seconds, drey_error *err)
{
    runner *target = b->target;
    for (int32_t i = 0; i < n; i++)
        b->prompt[i] = some_token(b, i);
    cache_clear(target->cache);
    double start = clock_s();
    TRY(pass_prompt(target, b->prompt, n, b->engine->plan.chunk, HEAD_NONE, NULL, NULL, err));
    *seconds = clock_s() - start;
    cache_clear(target->cache);
    return DREY_OK;
}

static drey_status time_decode(bench *b, int32_t n, double *seconds, drey_error *err)
{
    runner *target = b->target;
    double start = clock_s();
    for (int32_t i = 0; i < n; i++) {
        pass_row row = {.token = some_token(b, i), .parent = -1};
        TRY(pass_rows(target, &row, 1, HEAD_LAST, err));
        cache_commit(target->cache, NULL, 1);
    }
    *seconds = clock_s() - start;
    cache_clear(target->cache);
    return DREY_OK;
}

typedef drey_status timed_fn(bench *b, int32_t n, double *seconds, drey_error *err);

static drey_status median_seconds(bench *b, timed_fn *run, int32_t n, double *seconds,
                                  drey_error *err)
{
    double each[MOST_ROUNDS], spent = 0;
    int rounds = 0;
    while (rounds < LEAST_ROUNDS || (rounds < MOST_ROUNDS && spent < rounds_s / 4)) {
        TRY(run(b, n, &each[rounds], err));
        spent += each[rounds++];
        report_rounds(b, rounds, spent, rounds_s / 4);
    }
    *seconds = median(each, rounds);
    return DREY_OK;
}

/* ---- Sessions ---- */

/* The first n_sessions write n tokens each, in shared steps. */
static drey_status time_texts(bench *b, int32_t n_sessions, int32_t n, double *seconds,
                              drey_error *err)
{
    drey_generate_options o;
    drey_generate_options_init(&o);
    o.n_predict = n;
    o.ignore_eos = true;
    for (int32_t i = 0; i < n_sessions; i++) {
        int32_t first = some_token(b, i);
        TRY(drey_session_sync(b->sessions[i], &first, 1, NULL, err));
        TRY(drey_session_begin(b->sessions[i], &o, NULL, err));
    }
    double start = clock_s();
    for (int32_t n_writing = n_sessions; n_writing > 0;)
        TRY(drey_engine_step(b->engine, &n_writing, err));
    *seconds = clock_s() - start;
    for (int32_t i = 0; i < n_sessions; i++)
        drey_session_reset(b->sessions[i]);
    return DREY_OK;
}

/* Measures one session and all of them in turns. */
static drey_status measure_sessions(bench *b, drey_error *err)
{
    drey_model_report *r = b->report;
    double one[MOST_ROUNDS], all[MOST_ROUNDS], spent = 0;
    int32_t n = b->what->n_decode, n_sessions = r->n_sessions;
    int rounds = 0;
    for (; rounds < LEAST_ROUNDS || (rounds < MOST_ROUNDS && spent < rounds_s / 2); rounds++) {
        TRY(time_texts(b, 1, n, &one[rounds], err));
        TRY(time_texts(b, n_sessions, n, &all[rounds], err));
        spent += one[rounds] + all[rounds];
        report_rounds(b, rounds + 1, spent, rounds_s / 2);
    }
    r->session_tokens_per_s = n / median(one, rounds);
    r->decode_tokens_per_s = (double)n_sessions * n / median(all, rounds);
    return DREY_OK;
}

/* ---- Passes ---- */

/* A pass over a chain of n rows with logits for all, dropped afterwards. */
static drey_status time_pass(bench *b, int32_t n, double *seconds, drey_error *err)
{
    pass_row rows[WIDEST];
    for (int32_t i = 0; i < n; i++)
        rows[i] = (pass_row){.token = some_token(b, i), .parent = i - 1};
    double start = clock_s();
    TRY(pass_rows(b->target, rows, n, HEAD_ALL, err));
    *seconds = clock_s() - start;
    cache_drop(b->target->cache);
    return DREY_OK;
}

static double seconds_of(const trace_sums *before, const trace_sums *after, trace_kind what)
{
    return 1e-9 * (double)(after->ns[what] - before->ns[what]);
}

/* Measures the widths of a context's passes, into the report from index `first` on. */
static drey_status time_passes(bench *b, drey_pass_report *passes, int32_t n, drey_error *err)
{
    double seconds[WIDEST][MOST_ROUNDS], spent = 0;
    int rounds = 0;
    for (; rounds < LEAST_ROUNDS || (rounds < MOST_ROUNDS && spent < rounds_s); rounds++)
        for (int32_t i = 0; i < n; i++) {
            drey_pass_report *p = &passes[i];
            double *taken = &seconds[i][rounds];
            trace_sums before, after;
            trace_sum(&b->trace, &before);
            TRY(time_pass(b, p->rows, taken, err));
            trace_sum(&b->trace, &after);
            spent += *taken;
            report_rounds(b, rounds + (i + 1.0) / n, spent, rounds_s);
            average(&p->matmul_seconds, seconds_of(&before, &after, TRACE_MATMUL) / *taken, rounds);
            average(&p->attend_seconds, seconds_of(&before, &after, TRACE_ATTEND) / *taken, rounds);
        }
    for (int32_t i = 0; i < n; i++) {
        passes[i].seconds = median(seconds[i], rounds);
        passes[i].matmul_seconds *= passes[i].seconds; /* was a share */
        passes[i].attend_seconds *= passes[i].seconds;
    }
    return DREY_OK;
}

static void judge_passes(const bench *b)
{
    drey_model_report *r = b->report;
    const drey_pass_report *one = NULL;
    for (int32_t i = 0; i < r->n_passes; i++) {
        drey_pass_report *p = &r->passes[i];
        one = p->rows == 1 ? p : one;
        double bytes = bytes_seconds(b, p->context),
               compute = compute_seconds(b, p->rows, p->context, true);
        p->ratio = p->seconds / one->seconds;
        p->limit_seconds = max_f64(bytes, compute);
        p->bandwidth_share = bytes / p->seconds;
        p->peak_share = compute / p->seconds;
    }
    const drey_pass_report *first = &r->passes[0];
    r->overhead_share = 1 - (first->matmul_seconds + first->attend_seconds) / first->seconds;
}

static drey_status measure_contexts(bench *b, int32_t n_contexts, drey_error *err)
{
    drey_model_report *r = b->report;
    b->target->trace = &b->trace;
    for (int32_t c = 0; c < n_contexts; c++) {
        drey_pass_report *passes = r->passes + r->n_passes;
        int32_t context = b->what->contexts[c], n = 0;
        TRY(cache_make_up(b->target->cache, context, err));
        for (int32_t rows = 1; rows <= WIDEST; rows = b->what->every ? rows + 1 : rows * 2)
            passes[n++] = (drey_pass_report){.context = context, .rows = rows};
        begin_work(b, CONTEXT_WORK);
        TRY(time_passes(b, passes, n, err));
        r->n_passes += n;
        measure_limits(b);
    }
    judge_passes(b);
    return DREY_OK;
}

static drey_status take_memory(bench *b, drey_error *err)
{
    size_t prompt_bytes = (size_t)b->what->n_prompt * sizeof *b->prompt;
    TRY(arena_init(&b->memory, arena_size(prompt_bytes) + trace_bytes(1, 0), false, err));
    b->prompt = arena_take(&b->memory, prompt_bytes);
    trace_init(&b->trace, 1, 0, &b->memory);
    return arena_check(&b->memory, err);
}

static drey_status measure(bench *b, int32_t n_contexts, drey_error *err)
{
    drey_model_report *r = b->report;
    double prompt_s, decode_s;
    int32_t n_prompt = b->what->n_prompt, n_decode = b->what->n_decode;
    TRY(take_memory(b, err));
    TRY(time_prompt(b, 1, &prompt_s, err)); /* loads the weights */
    count_bytes(b);
    TRY(find_block(b, err));
    measure_limits(b);
    b->work.all = 2 * SHORT_WORK + CONTEXT_WORK * n_contexts + (r->n_sessions > 1) * SESSIONS_WORK;
    begin_work(b, SHORT_WORK);
    TRY(median_seconds(b, time_decode, n_decode, &decode_s, err));
    begin_work(b, SHORT_WORK);
    TRY(median_seconds(b, time_prompt, n_prompt, &prompt_s, err));
    TRY(measure_contexts(b, n_contexts, err));
    r->prefill_tokens_per_s = n_prompt / prompt_s;
    r->decode_tokens_per_s = r->session_tokens_per_s = n_decode / decode_s;
    r->prefill_peak_share = compute_seconds(b, n_prompt, 0, false) / prompt_s;
    r->bandwidth_share = bytes_seconds(b, 0.5 * n_decode) * n_decode / decode_s;
    r->streamed_bytes_per_pass = b->engine->plan.report.streamed_bytes_per_pass;
    begin_work(b, SESSIONS_WORK);
    return r->n_sessions > 1 ? measure_sessions(b, err) : DREY_OK;
}

/* ---- The engine ---- */

static drey_status check(const drey_model_bench *what, drey_error *err)
{
    if (what->n_prompt < 1 || what->n_decode < 1)
        FAIL(err, DREY_ERR_USAGE, "a measurement needs at least one token of prompt and of text");
    bool good = what->n_contexts >= 1 && what->n_contexts <= DREY_BENCH_MAX_CONTEXTS;
    for (int32_t i = 0; good && i < what->n_contexts; i++)
        good = what->contexts[i] >= (i ? what->contexts[i - 1] + 1 : 0) &&
               what->contexts[i] <= INT32_MAX / 2;
    if (!good)
        FAIL(err, DREY_ERR_USAGE, "name 1 to %d lengths of context, ascending",
             DREY_BENCH_MAX_CONTEXTS);
    return DREY_OK;
}

static drey_engine_options options_for(const drey_engine_options *options,
                                       const drey_model_bench *what, int32_t context)
{
    drey_engine_options o = engine_options_alone(options);
    int32_t longest = max_i32(what->n_prompt, what->n_decode);
    o.n_context = max_i32(context, longest) + WIDEST + 1;
    if (o.prompt_chunk && o.prompt_chunk < WIDEST)
        o.prompt_chunk = WIDEST;
    return o;
}

/* Counts the contexts that are within the trained length and leave as much of the model in memory
 * as the first one does, which is not checked. */
static drey_status count_contexts(const drey_engine_options *options, const drey_model_bench *what,
                                  int32_t *n, drey_error *err)
{
    drey_plan least, plan;
    drey_engine_options o = options_for(options, what, what->contexts[0]);
    TRY(drey_plan_make(&o, 0, &least, err));
    for (*n = 1; *n < what->n_contexts; (*n)++) {
        int32_t context = what->contexts[*n];
        o = options_for(options, what, context);
        if (context + WIDEST > options->target->shape.n_context_train ||
            drey_plan_make(&o, 0, &plan, NULL) != DREY_OK ||
            plan.streamed_bytes_per_pass > least.streamed_bytes_per_pass)
            break;
    }
    return DREY_OK;
}

drey_status drey_bench_model(const drey_engine_options *options, const drey_model_bench *what,
                             drey_model_report *report, drey_error *err)
{
    *report = (drey_model_report){0};
    int32_t n_contexts;
    TRY(check(what, err));
    TRY(count_contexts(options, what, &n_contexts, err));
    report->n_left_out = what->n_contexts - n_contexts;
    drey_engine_options o = options_for(options, what, what->contexts[n_contexts - 1]);
    drey_engine *e = NULL;
    bench b = {.what = what, .report = report, .options = options};
    drey_status status = engine_open(&e, &o, &(engine_hooks){.least_logit_rows = WIDEST}, err);
    report->n_sessions = status == DREY_OK ? e->config.n_sessions : 0;
    for (int32_t i = 0; i < report->n_sessions && status == DREY_OK; i++)
        status = drey_session_open(&b.sessions[i], e, err);
    b.engine = e;
    if (status == DREY_OK) {
        b.target = probe_target(b.sessions[0]);
        status = measure(&b, n_contexts, err);
    }
    for (int32_t i = 0; i < report->n_sessions; i++)
        drey_session_close(&b.sessions[i]);
    drey_engine_close(&e);
    arena_free(&b.memory);
    arena_free(&b.block);
    return status;
}
