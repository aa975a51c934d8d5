/* drey verify: shows on this machine that a model's texts do not depend on how they are computed.
 *
 * The reference writes a text after each prompt, greedy and with a seed, without a draft on one
 * thread. Then each way (verify_ways.h) writes all of them again, and every token is compared.
 * Several texts are written at the same time where a way has several sessions: a session that is
 * done begins the next text while the others continue. */
#include "cli/commands/commands.h"
#include "cli/commands/counted_work.h"
#include "cli/commands/verify_ways.h"
#include "cli/files/json_file.h"
#include "cli/files/prompts.h"
#include "cli/terminal/terminal_page.h"
#include "cli/terminal/report.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <stdlib.h>
#include <string.h>

enum { USUAL_TOKENS = 64, QUICK_TOKENS = 8 };

/* A text of the reference: the prompt's, greedy or sampled. */
typedef struct verified {
    const bench_prompt *prompt;
    bool sampled;
    int32_t *ids; /* [n], room for n_predict */
    int32_t n;
} verified;

/* The first token that differs. */
typedef struct difference {
    const verified *text; /* NULL: none */
    int32_t place;        /* counted from 0 */
    int32_t id, expected; /* -1: the text had ended there */
} difference;

typedef struct outcome {
    int32_t n_texts[2], n_equal[2]; /* greedy, sampled */
    int64_t n_tokens, n_accepted;   /* accepted: tokens that were drafted */
    difference first;
    char not_run[500]; /* reason; "": it was */
} outcome;

typedef struct verifier {
    const cli_settings *settings;
    models models;
    prompt_list prompts;
    int32_t n_prompts; /* prompts that are used: the first ones */
    verified *texts;   /* [n_texts] */
    int32_t *ids;      /* ids of all texts */
    int32_t n_texts;
    verify_way ways[VERIFY_MOST_WAYS]; /* [n_ways]: the first is the reference */
    outcome outcomes[VERIFY_MOST_WAYS];
    int32_t n_ways;
    counted_work work;
} verifier;

static int32_t both(const int32_t counts[2])
{
    return counts[0] + counts[1];
}

/* A session of a way, and the text that it writes. */
typedef struct writing {
    verifier *v;
    drey_session *session;
    verified *text;
    int32_t n;    /* its tokens so far, */
    int32_t most; /* and where it ends */
    outcome *out;
    drey_statistics statistics;
    bool reference;
} writing;

/* ---- One text ---- */

static void note_difference(writing *w, int32_t place, int32_t id)
{
    const verified *t = w->text;
    if (!w->out->first.text)
        w->out->first = (difference){t, place, id, place < t->n ? t->ids[place] : -1};
}

static bool take_token(void *user, int32_t id)
{
    writing *w = user;
    if (w->reference) {
        w->text->ids[w->n++] = id;
        w->text->n = w->n;
        return true;
    }
    if (w->n >= w->text->n || w->text->ids[w->n] != id) {
        note_difference(w, w->n, id);
        w->n = -1;
        return false;
    }
    w->n++;
    return true;
}

static drey_status begin_text(writing *w, verified *text, int32_t most, drey_error *err)
{
    const cli_settings *s = w->v->settings;
    drey_generate_options options;
    drey_generate_options_init(&options);
    options.n_predict = most;
    options.on_token = take_token;
    options.user = w;
    options.no_known = true; /* every way computes its prompts itself */
    if (text->sampled)
        options.sampling = s->sampling;
    w->text = text;
    w->most = most;
    w->n = 0;
    TRY(drey_session_sync(w->session, text->prompt->ids, text->prompt->n_ids, NULL, err));
    return drey_session_begin(w->session, &options, &w->statistics, err);
}

static void end_text(writing *w)
{
    outcome *out = w->out;
    const int32_t expected = w->text->n < w->most ? w->text->n : w->most;
    if (w->n >= 0 && w->n < expected)
        note_difference(w, w->n, -1);
    out->n_texts[w->text->sampled]++;
    out->n_equal[w->text->sampled] += w->n == expected;
    out->n_tokens += w->statistics.generated_tokens;
    out->n_accepted += w->statistics.accepted;
    w->text = NULL;
}

/* ---- All texts of a way ---- */

typedef struct round {
    writing writing[VERIFY_SESSIONS]; /* [n] */
    int32_t n;
    int32_t next, end; /* texts that wait */
} round;

/* Ways take about as long as each other; within one, tokens of its texts count. */
static void show_progress(verifier *v, const verify_way *way, const round *r, int32_t most)
{
    const int32_t i = (int32_t)(way - v->ways);
    char what[160];
    double done = r->n > 0 ? both(v->outcomes[i].n_texts) : 0;
    for (int32_t k = 0; k < r->n; k++)
        if (r->writing[k].text && r->writing[k].n > 0)
            done += (double)r->writing[k].n / most;
    if (i == 0)
        snprintf(what, sizeof what, "the reference's texts, before %d ways", v->n_ways - 1);
    else
        snprintf(what, sizeof what, "way %d of %d, %s", i, v->n_ways - 1, way->name);
    counted_work_show(&v->work, what, (i + (r->n > 0 ? done / r->end : 0)) / v->n_ways);
}

static drey_status write_texts(verifier *v, const verify_way *way, round *r, int32_t most,
                               drey_error *err)
{
    int32_t n_writing = 0;
    do {
        if (signals_exit_code())
            return DREY_ERR_CANCELLED;
        for (int32_t i = 0; i < r->n; i++) {
            writing *w = &r->writing[i];
            if (w->text && !drey_session_is_writing(w->session))
                end_text(w);
            if (!w->text && r->next < r->end)
                TRY(begin_text(w, &v->texts[r->next++], most, err));
        }
        show_progress(v, way, r, most);
        TRY(drey_engine_step(v->models.engine, &n_writing, err));
    } while (n_writing > 0 || r->next < r->end);
    for (int32_t i = 0; i < r->n; i++)
        if (r->writing[i].text)
            end_text(&r->writing[i]);
    return DREY_OK;
}

static drey_status open_sessions(verifier *v, const verify_way *way, outcome *out, round *r,
                                 drey_error *err)
{
    *r = (round){.end = way->most_texts < v->n_texts ? way->most_texts : v->n_texts};
    while (r->n < way->n_sessions) {
        writing *w = &r->writing[r->n];
        *w = (writing){.v = v, .out = out, .reference = way == v->ways};
        TRY(drey_session_open(&w->session, v->models.engine, err));
        r->n++;
    }
    return DREY_OK;
}

static int32_t longest_prompt(const verifier *v)
{
    size_t n = 0;
    for (int i = 0; i < v->n_prompts; i++)
        if (v->prompts.prompts[i].n_ids > n)
            n = v->prompts.prompts[i].n_ids;
    return (int32_t)n;
}

static int32_t context_of(const verifier *v)
{
    return longest_prompt(v) + v->settings->text.n_predict + 1;
}

static drey_status run_way(verifier *v, const verify_way *way, outcome *out, drey_error *err)
{
    const int32_t n_predict = v->settings->text.n_predict;
    round r = {.n = 0};
    show_progress(v, way, &r, n_predict);
    TRY(verify_way_open(way, &v->models, v->settings, context_of(v), err));
    drey_status status = open_sessions(v, way, out, &r, err);
    if (status == DREY_OK)
        status = write_texts(v, way, &r,
                             way->most_tokens < n_predict ? way->most_tokens : n_predict, err);
    for (int32_t i = 0; i < r.n; i++)
        drey_session_close(&r.writing[i].session);
    models_stop(&v->models);
    return status;
}

/* ---- What is shown ---- */

static void show_difference(FILE *page, const verifier *v, const difference *d)
{
    char piece[2][64];
    const int32_t id[2] = {d->expected, d->id};
    for (int i = 0; i < 2; i++)
        verify_piece(v->models.target, id[i], piece[i], sizeof piece[i]);
    fprintf(page, "  %s, %s: token %d is %s, and %s in the reference\n", d->text->prompt->id,
            d->text->sampled ? "sampled" : "greedy", d->place + 1, piece[1], piece[0]);
}

static void show_way(const verifier *v, const verify_way *way, const outcome *out)
{
    const int32_t n_texts = both(out->n_texts), n_equal = both(out->n_equal);
    FILE *page = page_of(stdout);
    if (out->not_run[0]) {
        fprintf(page, "%-39s  not run: %s\n", way->name, out->not_run);
        return;
    }
    fprintf(page, "%-39s %3d of %-3d %6lld token%s", way->name, n_equal, n_texts,
            (long long)out->n_tokens, out->n_tokens == 1 ? " " : "s");
    if (way->drafter != DREY_DRAFTER_NONE)
        fprintf(page, " %5lld accepted", (long long)out->n_accepted);
    fputc('\n', page);
    if (n_equal < n_texts)
        show_difference(page, v, &out->first);
}

static drey_status write_json(const verifier *v, drey_error *err)
{
    json_buffer b;
    json_writer *w = json_report_begin(&b);
    json_put_text(w, "model", v->settings->common.model);
    json_put_number(w, "tokens", v->settings->text.n_predict);
    json_put_bool(w, "quick", v->settings->bench.quick);
    json_put_array(w, "ways");
    for (int32_t i = 0; i < v->n_ways; i++) {
        const outcome *out = &v->outcomes[i];
        json_put_object(w, NULL);
        json_put_text(w, "way", v->ways[i].name);
        if (out->not_run[0])
            json_put_text(w, "not_run", out->not_run);
        JSON_PUT_EACH(w, {"texts", both(out->n_texts)}, {"equal", both(out->n_equal)},
                      {"greedy_texts", out->n_texts[0]}, {"greedy_equal", out->n_equal[0]},
                      {"tokens", (double)out->n_tokens}, {"accepted", (double)out->n_accepted});
        if (out->first.text) {
            json_put_object(w, "first_difference");
            json_put_text(w, "prompt", out->first.text->prompt->id);
            json_put_text(w, "sampling", out->first.text->sampled ? "sampled" : "greedy");
            JSON_PUT_EACH(w, {"token", out->first.place}, {"id", out->first.id},
                          {"reference", out->first.expected});
            json_close(w, '}');
        }
        json_close(w, '}');
    }
    json_close(w, ']');
    return json_write(v->settings->json, &b, err);
}

/* DREY_ERR_MISMATCH: a text differs. */
static drey_status judge(const verifier *v, drey_error *err)
{
    int32_t n_texts = 0, n_equal = 0, n_run = 0;
    for (int32_t i = 1; i < v->n_ways; i++) {
        n_run += !v->outcomes[i].not_run[0];
        n_texts += both(v->outcomes[i].n_texts);
        n_equal += both(v->outcomes[i].n_equal);
    }
    if (n_equal < n_texts && drey_policy_is_lossy(v->settings->drafting.policy))
        FAIL(err, DREY_ERR_MISMATCH,
             "%d of %d texts differ from the reference's: policy %s may change texts",
             n_texts - n_equal, n_texts, drey_policy_name(v->settings->drafting.policy));
    if (n_equal < n_texts)
        FAIL(err, DREY_ERR_MISMATCH,
             "%d of %d texts differ from the reference's: this is a fault of drey; please report "
             "it with the lines above",
             n_texts - n_equal, n_texts);
    if (n_run == 0)
        FAIL(err, DREY_ERR_UNSUPPORTED, "none of the other ways could be tried here, see above");
    const int32_t n = v->settings->text.n_predict;
    FILE *page = page_of(stdout);
    fprintf(page, "all %d texts of %d ways are the reference's, token for token", n_texts, n_run);
    if (v->settings->bench.quick)
        fprintf(page, " (quick: one prompt, texts of %d token%s)", n, n == 1 ? "" : "s");
    fputc('\n', page);
    return DREY_OK;
}

/* ---- All of it ---- */

/* All prompts, or for --quick the shortest, which becomes the first. */
static void choose_prompts(verifier *v)
{
    bench_prompt *all = v->prompts.prompts;
    v->n_prompts = v->settings->bench.quick ? 1 : v->prompts.n;
    for (int i = 1; v->settings->bench.quick && i < v->prompts.n; i++)
        if (all[i].n_ids < all[0].n_ids) {
            bench_prompt shorter = all[i];
            all[i] = all[0];
            all[0] = shorter;
        }
}

static drey_status make_texts(verifier *v, drey_error *err)
{
    const size_t n_predict = (size_t)v->settings->text.n_predict;
    v->n_texts = 2 * v->n_prompts;
    v->texts = calloc((size_t)v->n_texts, sizeof *v->texts);
    v->ids = calloc((size_t)v->n_texts * n_predict, sizeof *v->ids);
    if (!v->texts || !v->ids)
        FAIL(err, DREY_ERR_MEMORY, "out of memory for %d texts of %zu tokens", v->n_texts,
             n_predict);
    v->models.held_bytes = (uint64_t)v->n_texts * (sizeof *v->texts + n_predict * sizeof *v->ids);
    for (int32_t i = 0; i < v->n_texts; i++)
        v->texts[i] = (verified){.prompt = &v->prompts.prompts[i / 2],
                                 .sampled = i % 2,
                                 .ids = v->ids + (size_t)i * n_predict};
    return DREY_OK;
}

static drey_status prepare(verifier *v, drey_error *err)
{
    const cli_settings *s = v->settings;
    TRY(json_check_path(s->json, err));
    TRY(models_open(&v->models, s, err));
    TRY(prompts_read(&v->prompts, s->prompts, tuning_prompts, s->common.memory_bytes, err));
    TRY(prompts_tokenize(&v->prompts, v->models.target, err));
    choose_prompts(v);
    TRY(make_texts(v, err));
    TRY(models_choose_draft(&v->models, s, context_of(v), err));
    if (!s->quiet)
        report_draft(page_of(stderr), v->models.why);
    v->n_ways = verify_ways(v->ways, &v->models, s);
    return DREY_OK;
}

/* A way that cannot be opened here is listed as not run; what breaks later ends all. */
static drey_status run_ways(verifier *v, drey_error *err)
{
    for (int32_t i = 0; i < v->n_ways; i++) {
        outcome *out = &v->outcomes[i];
        drey_error why = {0};
        drey_status status = run_way(v, &v->ways[i], out, &why);
        counted_work_clear(&v->work);
        if (status != DREY_OK && (i == 0 || both(out->n_texts) || status == DREY_ERR_CANCELLED ||
                                  status == DREY_ERR_IO)) {
            if (err)
                *err = why;
            return status;
        }
        if (status != DREY_OK)
            snprintf(out->not_run, sizeof out->not_run, "%s", why.message);
        show_way(v, &v->ways[i], out);
        fflush(stdout);
    }
    return DREY_OK;
}

static drey_status verify_all(verifier *v, drey_error *err)
{
    TRY(prepare(v, err));
    TRY(run_ways(v, err));
    if (v->settings->json)
        TRY(write_json(v, err));
    return judge(v, err);
}

int verify_main(const cli_settings *given)
{
    cli_settings settings = *given;
    if (!option_given(given, "predict"))
        settings.text.n_predict = given->bench.quick ? QUICK_TOKENS : USUAL_TOKENS;
    if (!option_given(given, "temp"))
        settings.sampling.temperature = VERIFY_TEMPERATURE;
    verifier *v = calloc(1, sizeof *v);
    drey_error err = {0};
    if (!v)
        return exit_with(error_set(&err, DREY_ERR_MEMORY, "out of memory"), &err);
    v->settings = &settings;
    v->work.quiet = settings.quiet;
    v->work.moves = true;
    signals_note();
    drey_status status = verify_all(v, &err);
    models_close(&v->models);
    prompts_free(&v->prompts);
    free(v->texts);
    free(v->ids);
    free(v);
    int failed = exit_with(status, &err), interrupted = signals_exit_code();
    return interrupted ? interrupted : failed;
}
