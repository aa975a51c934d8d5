/* drey bench model: prompt, text and passes of a model against the machine's limits. */
#include "cli/commands/cmd_bench.h"

#include "cli/commands/counted_work.h"
#include "cli/commands/models.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/report.h"
#include "common/error.h"
#include "common/size_text.h"

drey_status bench_read_contexts(const char *text, drey_model_bench *bench, drey_error *err)
{
    enum { MOST = 1 << 24 };
    bool good =
        numbers_parse(text, MOST, bench->contexts, DREY_BENCH_MAX_CONTEXTS, &bench->n_contexts);
    for (int32_t i = 1; good && i < bench->n_contexts; i++)
        good = bench->contexts[i] > bench->contexts[i - 1];
    if (good)
        return DREY_OK;
    FAIL(err, DREY_ERR_USAGE,
         "--contexts takes up to %d ascending lengths such as 0,4096,16384, not \"%.80s\"",
         DREY_BENCH_MAX_CONTEXTS, text);
}

static void show_passes(FILE *out, const drey_model_report *r)
{
    int32_t context = -1;
    for (int32_t i = 0; i < r->n_passes; i++) {
        const drey_pass_report *p = &r->passes[i];
        if (p->context != context)
            fprintf(out,
                    "%s%d of context\n  rows       time   t(n)/t(1)      limit  of limit"
                    "  of memory  of peak  attention\n",
                    i ? "" : "passes after ", p->context);
        context = p->context;
        fprintf(out, "%6d %8.2f ms %9.2f %8.2f ms %7.0f %% %8.0f %% %6.0f %% %8.0f %%\n", p->rows,
                1e3 * p->seconds, p->ratio, 1e3 * p->limit_seconds,
                100 * p->limit_seconds / p->seconds, 100 * p->bandwidth_share, 100 * p->peak_share,
                100 * p->attend_seconds / p->seconds);
    }
}

/* Adds ratios of passes of the first context whose rows are a power of two. */
static void add_ratios(json_writer *root, const drey_model_report *r)
{
    json_put_array(root, "t_n");
    for (int32_t i = 0; i < r->n_passes; i++) {
        const drey_pass_report *p = &r->passes[i];
        if (p->context == r->passes[0].context && (p->rows & (p->rows - 1)) == 0)
            json_put_number(root, NULL, p->ratio);
    }
    json_close(root, ']');
}

static void add_passes(json_writer *pass, const drey_model_report *r)
{
    json_put_array(pass, "passes");
    for (int32_t i = 0; i < r->n_passes; i++) {
        const drey_pass_report *p = &r->passes[i];
        json_put_object(pass, NULL);
        JSON_PUT_EACH(pass, JSON_OF(p, context), JSON_OF(p, rows), {"pass_s", p->seconds},
                      JSON_OF(p, ratio), {"limit_s", p->limit_seconds}, JSON_OF(p, bandwidth_share),
                      JSON_OF(p, peak_share), {"matmul_s", p->matmul_seconds},
                      {"attend_s", p->attend_seconds});
        json_close(pass, '}');
    }
    json_close(pass, ']');
}

static void show(FILE *out, json_writer *root, const drey_model_report *r)
{
    char a[16], b[16];
    report_limits(&r->limits, out, root);
    fprintf(out, "prompt     %s tokens/s, %.0f %% of the peak\n",
            format_rate(a, r->prefill_tokens_per_s), 100 * r->prefill_peak_share);
    fprintf(out, "text       %s tokens/s, %.0f %% of the memory's speed (%s a token)\n",
            format_rate(b, r->session_tokens_per_s), 100 * r->bandwidth_share,
            format_bytes(a, (double)r->token_bytes));
    if (r->n_sessions > 1)
        fprintf(out, "sessions   %s tokens/s of %d together, %.2f times one's\n",
                format_rate(a, r->decode_tokens_per_s), r->n_sessions,
                r->decode_tokens_per_s / r->session_tokens_per_s);
    fprintf(out, "overhead   %.1f %% of a pass of one row is neither matrices nor attention\n",
            100 * r->overhead_share);
    if (r->streamed_bytes_per_pass)
        fprintf(out, "disk       every pass reads %s: the disk decides, not the limits\n",
                format_bytes(b, (double)r->streamed_bytes_per_pass));
    JSON_PUT_EACH(root, JSON_OF(r, prefill_tokens_per_s), JSON_OF(r, decode_tokens_per_s),
                  {"sessions", r->n_sessions}, JSON_OF(r, session_tokens_per_s),
                  JSON_OF(r, bandwidth_share), JSON_OF(r, prefill_peak_share),
                  JSON_OF(r, overhead_share), JSON_OF(r, token_bytes), JSON_OF(r, position_bytes),
                  JSON_OF(r, streamed_bytes_per_pass));
    show_passes(out, r);
    add_ratios(root, r);
    add_passes(root, r);
}

/* Prints the context for which the model was made, and the contexts that were left out. */
static void show_left_out(FILE *out, const drey_model_bench *bench, const drey_model_report *r)
{
    for (int32_t i = bench->n_contexts - r->n_left_out; i < bench->n_contexts; i++)
        fprintf(out,
                "%d of context is left out: the model was not made for it, or it leaves too "
                "little memory for the weights\n",
                bench->contexts[i]);
    if (bench->n_contexts - r->n_left_out > 1 || bench->contexts[0] > 0)
        fprintf(out, "contexts are made up; a pass takes as long over them as over real ones\n");
}

/* Loading, and then measuring. */
typedef struct watching {
    progress bar;
    counted_work work;
} watching;

static void show_progress(void *user, drey_progress what, uint64_t done, uint64_t total)
{
    watching *w = user;
    if (what == DREY_PROGRESS_MEASURE)
        counted_work_show(&w->work, "measuring passes", (double)done / (double)total);
    else
        progress_report(&w->bar, what, done, total);
}

static drey_status measure(models *m, const cli_settings *s, FILE *out, json_writer *root,
                           drey_error *err)
{
    drey_model_report report;
    drey_model_bench bench;
    drey_plan plan;
    watching watch = {0};
    drey_model_bench_init(&bench);
    bench.n_prompt = s->bench.n_prompt;
    bench.n_decode = s->bench.n_decode;
    bench.every = s->bench.every;
    if (s->bench.contexts)
        TRY(bench_read_contexts(s->bench.contexts, &bench, err));
    TRY(models_open(m, s, err));
    drey_engine_options options = models_engine_options(m, s, s->bench.n_prompt);
    options.progress = show_progress;
    options.progress_user = &watch;
    if (drey_plan_make(&options, 0, &plan, NULL) == DREY_OK)
        models_warn_of_plan(&plan);
    drey_status status = drey_bench_model(&options, &bench, &report, err);
    progress_clear(&watch.bar);
    counted_work_end(&watch.work);
    TRY(status);
    show(out, root, &report);
    show_left_out(out, &bench, &report);
    return DREY_OK;
}

drey_status bench_model(const cli_settings *s, FILE *out, json_writer *root, drey_error *err)
{
    models m = {0};
    drey_status status = measure(&m, s, out, root, err);
    models_close(&m);
    return status;
}
