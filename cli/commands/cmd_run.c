/* drey run: a prompt in, the target's text out.
 *
 * Text alone goes to standard output, flushed as it comes; the plan, progress and statistics go to
 * standard error. A prompt and n_predict decide the context unless -c does, so the prompt is read
 * and tokenized before the engine takes its memory. */
#include "cli/commands/commands.h"
#include "cli/files/input.h"
#include "cli/files/json_file.h"
#include "cli/commands/models.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal_page.h"
#include "cli/terminal/report.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text_writer.h"
#include "cli/files/trace_file.h"
#include "common/num.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct run {
    const cli_settings *settings;
    models models;
    int32_t *ids; /* [n_ids]: the prompt */
    size_t n_ids;
    progress progress;
    text_writer out;
} run;

/* Ends the line, so that later output begins on its own line. */
static void end_line(const run *r)
{
    if (r->out.last_byte && r->out.last_byte != '\n' && terminal_shared())
        putc('\n', stderr);
}

/* ---- Prompt ---- */

static drey_status read_prompt(const run *r, char **text, size_t *n_bytes, drey_error *err)
{
    const cli_settings *s = r->settings;
    if (!s->text.prompt) {
        input_limit limit = input_limit_memory(s->common.memory_bytes, INPUT_AS_IDS);
        input_limit_context(&limit, r->models.target, s->common.n_context);
        return input_read(s->text.file, "the prompt", &limit, text, n_bytes, err);
    }
    *text = strdup(s->text.prompt);
    if (!*text)
        FAIL(err, DREY_ERR_MEMORY, "out of memory while reading the prompt");
    *n_bytes = strlen(*text);
    return DREY_OK;
}

static drey_status take_prompt(run *r, drey_error *err)
{
    const cli_settings *s = r->settings;
    char *text = NULL;
    size_t n_bytes = 0;
    int flags = DREY_TOKENIZE_BOS | (s->text.special ? DREY_TOKENIZE_SPECIAL : 0);
    drey_status status = read_prompt(r, &text, &n_bytes, err);
    if (status == DREY_OK && s->text.chat)
        status = input_chat_tokens(r->models.target, s->text.system, text, n_bytes, flags,
                                   s->common.n_context, &r->ids, &r->n_ids, err);
    else if (status == DREY_OK)
        status = input_tokens(r->models.target, text, n_bytes, flags, s->common.n_context, &r->ids,
                              &r->n_ids, err);
    if (status == DREY_OK && r->n_ids == 0)
        status = error_set(err, DREY_ERR_USAGE,
                           "the prompt is empty: give some text with -p, -f or standard input");
    free(text);
    return status;
}

/* -c, or what prompt and text need: together, or where the prompt is an encoder's input each. */
static drey_status choose_context(const run *r, int32_t *n_context, drey_error *err)
{
    enum { MOST_GIVEN = 2 }; /* tokens that a decoder's text begins with */
    const cli_settings *s = r->settings;
    drey_model_info info;
    drey_model_describe(r->models.target, &info);
    *n_context = s->common.n_context;
    if (!*n_context) {
        if (r->n_ids > (size_t)(INT32_MAX - MOST_GIVEN - s->text.n_predict))
            FAIL(err, DREY_ERR_CONTEXT,
                 "a prompt of %zu tokens and -n %d are more than any context holds", r->n_ids,
                 s->text.n_predict);
        int32_t n = (int32_t)r->n_ids, n_predict = s->text.n_predict;
        *n_context = info.n_encoder_layers ? max_i32(n, n_predict + MOST_GIVEN) : n + n_predict;
    }
    models_warn_of_context(&r->models, *n_context);
    return DREY_OK;
}

/* ---- The run ---- */

static drey_status open_session(run *r, drey_error *err)
{
    int32_t n_context;
    TRY(choose_context(r, &n_context, err));
    return models_start(&r->models, r->settings, n_context, MODELS_WATCHED, &r->progress, err);
}

static drey_status write_statistics(const run *r, const drey_statistics *statistics,
                                    drey_error *err)
{
    drey_speculation speculation;
    drey_exits exits;
    drey_session_speculation(r->models.session, &speculation);
    drey_session_exits(r->models.session, &exits);
    json_buffer b;
    json_writer *w = json_report_begin(&b);
    json_statistics(w, statistics);
    json_put_object(w, "speculation");
    json_speculation(w, &speculation);
    json_close(w, '}');
    if (exits.mode != DREY_EXIT_OFF) {
        json_put_object(w, "exits");
        json_exits(w, &exits);
        json_close(w, '}');
    }
    if (r->settings->common.units) {
        json_put_array(w, "units");
        json_units(w, r->models.engine);
        json_close(w, ']');
    }
    return json_write(r->settings->text.stats, &b, err);
}

/* Adds what this side knows about the text's end to the library's status. */
static drey_status final_status(const run *r, drey_status status, drey_statistics *statistics,
                                drey_error *err)
{
    if (r->out.error && r->out.error != EINTR) {
        statistics->finish = DREY_FINISH_ERROR;
        return text_writer_refuse(r->out.error, err);
    }
    if (signals_exit_code() && status == DREY_OK)
        statistics->finish = DREY_FINISH_INTERRUPTED;
    return status;
}

static drey_status write_trace(const run *r, const drey_statistics *statistics, drey_error *err)
{
    const cli_settings *s = r->settings;
    drey_model_info draft;
    if (r->models.draft)
        drey_model_describe(r->models.draft, &draft);
    const trace_about about = {.target = s->common.model,
                               .draft = r->models.draft ? draft.path
                                                        : drey_drafter_name(r->models.drafter),
                               .policy = drey_policy_name(s->drafting.policy),
                               .statistics = statistics};
    return trace_write(s->text.trace, r->models.session, r->models.target, &about, err);
}

/* Says that the text was cut, and how to have more of it. */
static void say_cut(const run *r, const drey_statistics *s)
{
    int64_t n = s->generated_tokens, more = n < 250 ? 500 : 2 * n;
    if (s->finish != DREY_FINISH_LENGTH)
        return;
    if (n >= r->settings->text.n_predict)
        suggest("the text was cut after %lld token%s (-n): -n %lld writes more", (long long)n,
                n == 1 ? "" : "s", (long long)more);
    else
        suggest("the text was cut after %lld token%s, as the context of %d is full: -c %lld has "
                "room for more",
                (long long)n, n == 1 ? "" : "s", r->settings->common.n_context,
                2 * (long long)r->settings->common.n_context);
}

/* A question to a model that can chat is continued as a text, which surprises who expects an
 * answer. Who writes a format himself, or completes a file, knows it. */
static void say_chat(const run *r, const drey_statistics *s)
{
    const cli_text *text = &r->settings->text;
    char *turn = NULL;
    if (!terminal_attended() || text->chat || text->special || text->raw_ids || text->file ||
        s->generated_tokens == 0)
        return;
    if (drey_chat_format(r->models.target, NULL, "hello", &turn, NULL) == DREY_OK)
        suggest("this continues the prompt as a text; with --chat, or in drey chat, the model "
                "answers it");
    drey_free(turn);
}

static void report_all(const run *r, const drey_statistics *statistics)
{
    drey_speculation speculation;
    drey_exits exits;
    FILE *out = page_of(stderr);
    drey_session_speculation(r->models.session, &speculation);
    drey_session_exits(r->models.session, &exits);
    report_failed_units(r->models.engine);
    if (r->settings->common.verbose) {
        report_statistics(out, statistics);
        report_speculation(out, &speculation);
        report_exits(out, &exits);
        report_units(out, r->models.engine);
        report_rank_reads(out, r->models.ranks);
    } else {
        report_briefly(out, statistics, &speculation, &exits);
    }
    say_chat(r, statistics);
    say_cut(r, statistics);
}

static drey_status generate(run *r, drey_error *err)
{
    const cli_settings *s = r->settings;
    drey_statistics statistics = {0};
    drey_generate_options options;
    drey_generate_options_init(&options);
    options.n_predict = s->text.n_predict;
    options.sampling = s->sampling;
    options.sampling.penalties = &s->penalties;
    options.stops = s->text.stops;
    options.n_stops = s->text.n_stops;
    options.ignore_eos = s->text.ignore_eos;
    options.grammar = r->models.grammar;
    if (s->text.raw_ids)
        text_writer_begin_ids(&r->out, &r->progress, &options);
    else
        text_writer_begin(&r->out, &r->progress, &options,
                          (text_look){.drafts = !s->text.no_provisional_text, .wraps = true});
    drey_plan plan;
    drey_engine_plan(r->models.engine, &plan);
    r->progress.draft_bytes = plan.draft_bytes;
    progress_wait(&r->progress, "reading the prompt");
    drey_status status = models_write(&r->models, r->ids, r->n_ids, &options, &statistics, err);
    text_writer_end(&r->out);
    signals_unwatch();
    if (status != DREY_OK && status != DREY_ERR_CANCELLED)
        statistics.finish = DREY_FINISH_ERROR;
    progress_clear(&r->progress);
    status = final_status(r, status, &statistics, err);
    if (signals_wait_writable(STDERR_FILENO)) { /* one pipe may be blocked for both */
        end_line(r);
        if (!s->quiet)
            report_all(r, &statistics);
    }
    drey_error *first = status == DREY_OK ? err : NULL; /* the text's error counts */
    drey_status written = s->text.stats ? write_statistics(r, &statistics, first) : DREY_OK;
    if (s->text.trace) {
        drey_status traced = write_trace(r, &statistics, written == DREY_OK ? first : NULL);
        written = written == DREY_OK ? traced : written;
    }
    return status == DREY_OK ? written : status;
}

static drey_status run_all(run *r, drey_error *err)
{
    const cli_settings *s = r->settings;
    if ((s->text.stats && strcmp(s->text.stats, "-") == 0) ||
        (s->text.trace && strcmp(s->text.trace, "-") == 0))
        FAIL(err, DREY_ERR_USAGE, "--%s takes a file: standard output is for the text alone%s",
             s->text.stats && strcmp(s->text.stats, "-") == 0 ? "stats" : "trace",
             s->text.stats && strcmp(s->text.stats, "-") == 0 ? "; -v shows them" : "");
    TRY(json_check_path(s->text.stats, err));
    TRY(json_check_path(s->text.trace, err));
    progress_wait(&r->progress, "opening the model");
    TRY(models_open(&r->models, s, err));
    progress_clear(&r->progress); /* somebody may type the prompt */
    if (models_serve_rank(&r->models))
        return models_serve(&r->models, s, err);
    TRY(take_prompt(r, err));
    progress_wait(&r->progress, "planning");
    TRY(open_session(r, err));
    progress_clear(&r->progress);
    models_show_plan(&r->models, s);
    return generate(r, err);
}

int run_main(const cli_settings *settings)
{
    run r = {.settings = settings, .progress.quiet = settings->quiet};
    drey_error err = {0};
    drey_status status = run_all(&r, &err);
    progress_clear(&r.progress);
    signals_unwatch();
    models_close(&r.models);
    text_writer_free(&r.out);
    free(r.ids);
    int failed = exit_with(status, &err);
    models_leave_ranks(&r.models);
    int interrupted = signals_exit_code();
    return interrupted ? interrupted : failed;
}
