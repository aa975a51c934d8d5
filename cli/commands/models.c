/* Models and engine options of a command line: see models.h. */
#include "cli/commands/models.h"

#include "cli/models/model_path.h"
#include "cli/models/side_files.h"
#include "cli/files/cache_folder.h"
#include "cli/files/input.h"
#include "cli/files/trace_file.h"
#include "cli/models/verdict.h"
#include "cli/terminal/terminal_page.h"
#include "cli/terminal/report.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "common/error.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

drey_status models_check_tier(const char *cpu_tier, drey_error *err)
{
    const char *const *tiers = drey_cpu_tiers();
    char names[200] = "";
    size_t n = 0;
    if (!cpu_tier)
        return DREY_OK;
    for (size_t i = 0; tiers[i] && n < sizeof names; i++) {
        if (strcmp(tiers[i], cpu_tier) == 0)
            return DREY_OK;
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", tiers[i]);
    }
    FAIL(err, DREY_ERR_USAGE, "--cpu takes what this machine and build have, %s, not \"%.40s\"",
         names, cpu_tier);
}

bool models_loaded(drey_status status, const drey_error *err, const char *again)
{
    if (status == DREY_ERR_FORMAT)
        complain("%s", err->message);
    if (status == DREY_ERR_MISMATCH)
        complain("%s; %s measures again", err->message, again);
    return status == DREY_OK;
}

const char *models_tune_line(const models *m, const cli_settings *s, char out[TUNE_LINE_BYTES])
{
    const bool named = s->drafting.draft_path != NULL;
    size_t n = (size_t)snprintf(out, TUNE_LINE_BYTES, "drey tune -m %s", terminal_model());
    if (!s->drafting.draft_auto && n < TUNE_LINE_BYTES)
        n += (size_t)snprintf(out + n, TUNE_LINE_BYTES - n, " -d %s",
                              named ? terminal_draft() : drey_drafter_name(m->drafter));
    if (s->common.units && n < TUNE_LINE_BYTES)
        n += (size_t)snprintf(out + n, TUNE_LINE_BYTES - n, " --units %s", s->common.units);
    if (s->common.cpu_tier && n < TUNE_LINE_BYTES)
        n += (size_t)snprintf(out + n, TUNE_LINE_BYTES - n, " --cpu %s", s->common.cpu_tier);
    if (s->common.n_threads > 0 && n < TUNE_LINE_BYTES)
        snprintf(out + n, TUNE_LINE_BYTES - n, " -t %d", s->common.n_threads);
    return out;
}

static void find_shares(models *m, const cli_settings *s, const char *folder)
{
    char line[TUNE_LINE_BYTES];
    drey_error err;
    const drey_engine_options o = models_engine_options(m, s, 0);
    m->divided = s->common.units &&
                 models_loaded(drey_units_load(&o, folder, &m->units, &m->attention, &err), &err,
                               models_tune_line(m, s, line));
}

static void warn_of_threads(int32_t n_threads)
{
    cpu_set_t set;
    if (n_threads && sched_getaffinity(0, sizeof set, &set) == 0 && n_threads > CPU_COUNT(&set))
        complain("-t %d is more than the %d cores of this process; it will be slower "
                 "than -t %d",
                 n_threads, CPU_COUNT(&set), CPU_COUNT(&set));
}

/* Room for prefixes: in memory, and with a folder there as well. */
static drey_prefix_options prefixes_of(const cli_settings *settings)
{
    const uint64_t default_memory = 64 << 20, default_disk = UINT64_C(1) << 30;
    drey_prefix_options p = {.memory_bytes = settings->prefixes.memory,
                             .folder = settings->prefixes.folder};
    if (p.folder && !p.memory_bytes)
        p.memory_bytes = default_memory;
    if (p.folder)
        p.disk_bytes = settings->prefixes.disk ? settings->prefixes.disk : default_disk;
    return p;
}

/* Opens the grammar of the texts. It is read before weights are, so that nothing is computed for a
 * wrong one. */
static drey_status open_grammar(models *m, const cli_settings *s, drey_error *err)
{
    const char *path = s->text.grammar ? s->text.grammar : s->text.json_schema;
    const input_limit limit = {.n_bytes = 64 << 10, .reason = "grammars are read up to 64K"};
    char *text;
    size_t n;
    if (!path)
        return DREY_OK;
    TRY(input_read(path, s->text.grammar ? "the grammar" : "the schema", &limit, &text, &n, err));
    const int kind = s->text.grammar ? DREY_GRAMMAR_GBNF : DREY_GRAMMAR_JSON_SCHEMA;
    const int strict = s->text.strict ? DREY_GRAMMAR_STRICT : 0;
    drey_status status =
        drey_grammar_open(&m->grammar, m->target, (drey_grammar_kind)(kind | strict), text, n, err);
    free(text);
    if (status == DREY_OK && drey_grammar_not_held(m->grammar)[0])
        complain("no grammar can hold this of the schema, and texts may violate it: %s",
                 drey_grammar_not_held(m->grammar));
    m->grammar_bytes = drey_grammar_bytes(m->target, 1);
    return error_in_file(err, path, status);
}

drey_status models_check_ranks(const cli_settings *s, drey_error *err)
{
    bool works = (s->command & (CLI_RUN | CLI_CHAT | CLI_SERVE)) && !s->serve.models;
    if (terminal_ranks() >= 2 && !works)
        FAIL(err, DREY_ERR_USAGE,
             "drey run, chat and serve of one model work on several ranks: start this command "
             "without mpirun");
    return DREY_OK;
}

static drey_status open_ranks(drey_ranks **out, const cli_settings *s, drey_error *err)
{
    *out = NULL;
    TRY(models_check_ranks(s, err));
    return terminal_ranks() < 2 ? DREY_OK : drey_ranks_open(out, s->common.rank_wait_s, err);
}

drey_status models_open(models *m, const cli_settings *settings, drey_error *err)
{
    *m = (models){.drafter = settings->drafting.drafter, .prefixes = prefixes_of(settings)};
    char place[PATH_MAX], line[TUNE_LINE_BYTES];
    const char *folder = cache_folder(place);
    drey_error why;
    TRY(models_check_tier(settings->common.cpu_tier, err));
    m->tuned = models_loaded(drey_tuning_load(settings->common.cpu_tier, folder, &m->tuning, &why),
                             &why, "drey tune");
    TRY(open_ranks(&m->ranks, settings, err));
    TRY(model_path_explain(settings->common.model,
                           drey_model_open(&m->target, settings->common.model, err), err));
    if (models_serve_rank(m)) {
        m->drafter = DREY_DRAFTER_NONE;
        return DREY_OK;
    }
    m->routed = models_loaded(drey_routes_load(m->target, folder, &m->routes, &why), &why,
                              models_tune_line(m, settings, line));
    find_shares(m, settings, folder);
    if (m->drafter == DREY_DRAFTER_MODEL) {
        drey_engine_options found;
        const char *path = settings->drafting.draft_path;
        TRY(model_path_explain(path, drey_draft_open(&m->draft, &found, path, err), err));
        m->drafter = found.drafter;
        m->heads = found.heads;
    }
    TRY(open_grammar(m, settings, err));
    warn_of_threads(settings->common.n_threads);
    if (settings->command & (CLI_RUN | CLI_CHAT | CLI_SERVE))
        side_files_note_use(settings->common.model);
    drey_settle_memory(); /* by now what the start of the program read ahead has arrived */
    return DREY_OK;
}

bool models_serve_rank(const models *m)
{
    return m->ranks && drey_ranks_rank(m->ranks) > 0;
}

drey_status models_serve(const models *m, const cli_settings *settings, drey_error *err)
{
    const drey_engine_options options = models_engine_options(m, settings, 0);
    TRY(drey_ranks_disk(m->ranks, &options, settings->plan.disk_bytes_per_s, err));
    signals_note(); /* mpirun sends them to all ranks: rank 0 ends the others */
    drey_status status = drey_ranks_serve(m->ranks, &options, err);
    if (status == DREY_OK)
        signals_forget();
    return status;
}

void models_leave_ranks(models *m)
{
    drey_ranks_close(&m->ranks);
}

/* Writes the prefixes that the end of a session left. That the disk failed before has been said. */
static void write_prefixes(drey_engine *engine)
{
    drey_error err = {0};
    drey_prefixes before;
    drey_engine_prefixes(engine, &before);
    drey_status status = drey_engine_write_prefixes(engine, INT64_MAX, NULL, &err);
    if (status != DREY_OK && !before.disk_failed)
        complain("%s", err.message);
}

void models_stop(models *m)
{
    drey_session_close(&m->session);
    if (m->engine)
        write_prefixes(m->engine);
    drey_engine_close(&m->engine);
}

void models_close(models *m)
{
    models_stop(m);
    drey_grammar_close(&m->grammar);
    drey_model_close(&m->draft);
    drey_model_close(&m->target);
}

void models_warn_of_plan(const drey_plan *plan)
{
    if (plan->sidecar_refused[0])
        complain("%s%s", plan->sidecar_refused, terminal_hint(DREY_HINT_SIDECAR));
    if (plan->budget_is_estimate)
        complain("/proc does not say how much memory is available; --memory auto counts "
                 "only what is free");
}

drey_engine_options models_engine_options(const models *m, const cli_settings *settings,
                                          int32_t n_context)
{
    drey_engine_options options;
    drey_engine_options_init(&options);
    options.target = m->target;
    options.draft = m->draft;
    options.drafter = m->drafter;
    options.heads = m->heads;
    options.policy = settings->drafting.policy;
    options.repeats =
        settings->command == CLI_SERVE || settings->text.grammar || settings->text.json_schema;
    options.research = &settings->drafting.research;
    options.exit = settings->drafting.exit;
    options.exit_file = settings->drafting.exit_file;
    options.exit_threshold = settings->drafting.exit_threshold;
    options.memory_bytes = settings->common.memory_bytes;
    options.read_bytes = settings->common.read_bytes;
    options.n_context = n_context;
    options.n_threads = settings->common.n_threads;
    options.n_sessions = settings->n_sessions;
    options.draft_tokens = settings->drafting.draft_tokens;
    options.tree_nodes = settings->drafting.tree_nodes;
    options.prompt_chunk = settings->common.prompt_chunk;
    options.trace_spans = settings->text.trace ? TRACE_FILE_SPANS : 0;
    options.cpu_tier = settings->common.cpu_tier;
    options.units = settings->common.units;
    options.unit_shares = m->divided ? &m->units.shares : NULL;
    options.tuning = m->tuned ? &m->tuning : NULL;
    options.profile = m->measured ? &m->known.profile : NULL;
    options.routes = m->routed ? &m->routes : NULL;
    options.held_bytes = m->held_bytes + m->grammar_bytes;
    options.prefixes = m->prefixes.memory_bytes ? &m->prefixes : NULL;
    options.kv_folder = settings->common.kv_folder;
    options.kv_memory_bytes = settings->common.kv_memory;
    options.io = settings->common.io;
    options.kv = settings->common.kv;
    options.no_sidecar = settings->common.sidecar && strcmp(settings->common.sidecar, "none") == 0;
    options.sidecar = options.no_sidecar ? NULL : settings->common.sidecar;
    return options;
}

drey_status models_divide(models *m, const cli_settings *settings, drey_engine_options *options,
                          drey_error *err)
{
    const char *text = settings->common.rank_layers;
    if (text)
        TRY(rank_layers_read(text, m->rank_layers, &m->n_rank_layers, err));
    options->rank_layers = text ? m->rank_layers : NULL;
    options->n_rank_layers = text ? m->n_rank_layers : 0;
    return DREY_OK;
}

/* drey plan measures each time: who asks it waits for the answer. Before a text what was measured
 * within a day will do. */
static drey_measure measure_of(const cli_settings *s)
{
    if (s->command == CLI_PLAN)
        return s->plan.no_measure ? DREY_MEASURE_NOTHING : DREY_MEASURE_NOW;
    bool writes = s->command & (CLI_RUN | CLI_CHAT | CLI_SERVE | CLI_PULL);
    return writes ? DREY_MEASURE_MISSING : DREY_MEASURE_NOTHING;
}

static void take_stated_disk(models *m, const cli_settings *s)
{
    if (s->plan.disk_bytes_per_s <= 0)
        return;
    m->ahead.speeds.disk_bytes_per_s = s->plan.disk_bytes_per_s;
    m->ahead.speeds.disk_measured = 0;
}

/* A choice is made at the speeds that its plan has. Ranks have their own. */
static drey_status choose_draft(models *m, const cli_settings *s, drey_engine_options *o,
                                const char *folder, drey_draft_choice *choice, drey_error *err)
{
    drey_measure measure = measure_of(s);
    take_stated_disk(m, s);
    if (m->ranks || s->plan.ranks ||
        (measure == DREY_MEASURE_NOTHING && m->ahead.speeds.disk_bytes_per_s <= 0))
        return drey_choose_draft(o, folder, choice, err);
    return drey_choose_draft_at(o, &m->ahead.speeds, measure, folder, choice, err);
}

drey_status models_look(models *m, const cli_settings *s, const drey_engine_options *options,
                        drey_error *err)
{
    char folder[PATH_MAX];
    take_stated_disk(m, s);
    return drey_look_ahead(options, measure_of(s), cache_folder(folder), &m->ahead.speeds,
                           &m->ahead.outlook, err);
}

drey_status models_choose_draft(models *m, const cli_settings *s, int32_t n_context,
                                drey_error *err)
{
    char folder[PATH_MAX];
    drey_draft_choice choice;
    if (!s->drafting.draft_auto)
        return DREY_OK;
    drey_model_close(&m->draft);
    drey_engine_options o = models_engine_options(m, s, n_context);
    TRY(choose_draft(m, s, &o, cache_folder(folder), &choice, err));
    if (choice.warning[0])
        complain("%s", choice.warning);
    m->drafter = o.drafter;
    m->draft = choice.draft;
    m->ahead.reason = (drey_draft_reason)choice.reason;
    m->ahead.room_bytes = choice.room_bytes;
    snprintf(m->why, sizeof m->why, "%s", choice.why);
    return DREY_OK;
}

drey_status models_choose(models *m, const cli_settings *s, int32_t n_context,
                          drey_engine_options *options, drey_error *err)
{
    char folder[PATH_MAX], line[TUNE_LINE_BYTES];
    drey_error why;
    m->measured = false;
    TRY(models_choose_draft(m, s, n_context, err));
    *options = models_engine_options(m, s, n_context);
    m->measured = m->drafter != DREY_DRAFTER_NONE &&
                  models_loaded(drey_profile_load(options, cache_folder(folder), &m->known, &why),
                                &why, models_tune_line(m, s, line));
    options->profile = m->measured ? &m->known.profile : NULL;
    return DREY_OK;
}

int32_t models_context(const models *m, const cli_settings *s, int32_t usual)
{
    drey_model_info info;
    drey_model_describe(m->target, &info);
    if (s->common.n_context)
        return s->common.n_context;
    bool shorter = info.n_context_train > 1 && info.n_context_train < usual;
    return shorter ? info.n_context_train : usual;
}

void models_warn_of_context(const models *m, int32_t n_context)
{
    drey_model_info info;
    drey_model_describe(m->target, &info);
    if (info.n_context_train > 0 && n_context > info.n_context_train)
        complain("a context of %d tokens is longer than the %d the model was made for; "
                 "the text may become poor",
                 n_context, info.n_context_train);
}

drey_status models_start(models *m, const cli_settings *s, int32_t n_context, models_use use,
                         progress *bar, drey_error *err)
{
    drey_engine_options options;
    TRY(models_choose(m, s, n_context, &options, err));
    TRY(models_divide(m, s, &options, err));
    if ((s->command & (CLI_RUN | CLI_CHAT | CLI_SERVE)) && !m->ranks) {
        TRY(models_look(m, s, &options, err));
        progress_clear(bar);
        verdict_show(stderr, m, s);
    }
    if (m->ranks)
        TRY(drey_ranks_disk(m->ranks, &options, s->plan.disk_bytes_per_s, err));
    options.ranks = m->ranks;
    options.progress = m->loading.fn ? m->loading.fn : progress_report;
    options.progress_user = m->loading.fn ? m->loading.user : bar;
    signals_hold();
    drey_status status = drey_engine_open(&m->engine, &options, err);
    if (status == DREY_OK && use != MODELS_ENGINE)
        status = drey_session_open(&m->session, m->engine, err);
    if (status == DREY_OK && use == MODELS_WATCHED)
        signals_watch(m->session);
    signals_release();
    if (status != DREY_OK)
        models_stop(m);
    return status;
}

void models_show_plan(const models *m, const cli_settings *s)
{
    drey_plan plan;
    drey_engine_plan(m->engine, &plan);
    plan.speeds = m->ahead.outlook.plan.speeds; /* those that the verdict is of */
    models_warn_of_plan(&plan);
    if (s->quiet)
        return;
    if (s->common.verbose)
        report_plan_briefly(page_of(stderr), &plan);
    if (m->ranks)
        verdict_show_ranks(stderr, m);
    report_ranks(page_of(stderr), m->ranks, plan.tree_rows > 1);
    if (s->common.verbose)
        report_draft(page_of(stderr), m->why);
}

drey_status models_write(const models *m, const int32_t *ids, size_t n_ids,
                         const drey_generate_options *options, drey_statistics *statistics,
                         drey_error *err)
{
    drey_status status = drey_session_sync(m->session, ids, n_ids, NULL, err);
    if (status == DREY_OK)
        status = drey_session_begin(m->session, options, statistics, err);
    signals_watch(m->session);
    if (signals_exit_code()) /* it came before the text began */
        drey_session_cancel(m->session);
    for (bool done = status != DREY_OK; status == DREY_OK && !done;)
        status = drey_session_step(m->session, &done, err);
    drey_session_end(m->session);
    return status;
}
