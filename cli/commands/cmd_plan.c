/* drey plan: what a memory budget would buy, without loading anything; of several machines that are
 * ranks as well. */
#include "cli/commands/commands.h"
#include "cli/files/json_file.h"
#include "cli/files/ranks_file.h"
#include "cli/commands/models.h"
#include "cli/models/verdict.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal_page.h"
#include "cli/terminal/report.h"
#include "cli/terminal/terminal.h"
#include "common/size_text.h"

#include <string.h>

static const int32_t default_context = 1024;
static const uint64_t more_bytes = 256 << 20;

static void show_tensor(void *user, const char *tensor, uint64_t bytes, drey_residency where)
{
    static const char *const names[] = {[DREY_PINNED] = "pinned",
                                        [DREY_STREAMED] = "streamed",
                                        [DREY_LOOKED_UP] = "looked up",
                                        [DREY_IN_SLOTS] = "in slots"};
    FILE *out = user;
    char size[16];
    fprintf(out, "  %-10s %8s  ", names[where], format_bytes(size, (double)bytes));
    print_clean(out, tensor);
    fputc('\n', out);
}

/* The plan of a budget, of a little more, and where the disk's speed comes from. */
typedef struct prospect {
    drey_planner *planner;
    const models *models; /* with their outlook */
    drey_plan plan, more;
    report_source disk;
    bool has_more; /* more would help */
    progress bar;
} prospect;

static drey_status look_ahead(const cli_settings *s, prospect *p, drey_error *err)
{
    const drey_speeds *speeds = &p->models->ahead.speeds;
    p->disk = s->plan.disk_bytes_per_s > 0   ? REPORT_STATED
              : speeds->disk_bytes_per_s > 0 ? REPORT_MEASURED
                                             : REPORT_UNKNOWN;
    p->plan = p->models->ahead.outlook.plan;
    p->has_more = p->plan.streamed_bytes_per_pass > 0;
    if (!p->has_more)
        return DREY_OK;
    return drey_planner_make(p->planner, p->plan.budget_bytes + more_bytes, speeds, &p->more, err);
}

static drey_status write_json(const char *path, const prospect *p, drey_error *err)
{
    json_buffer b;
    json_writer *w = json_buffer_begin(&b);
    const drey_outlook *look = &p->models->ahead.outlook;
    json_plan(w, &p->plan);
    json_put_text(w, "disk", report_source_name(p->disk));
    json_put_text(w, "verdict", look->verdict);
    JSON_PUT_EACH(w, JSON_OF(look, tokens_per_s), JSON_OF(look, alone_tokens_per_s),
                  JSON_OF(look, better_bytes), JSON_OF(look, better_tokens_per_s),
                  JSON_OF(look, available_bytes));
    if (p->has_more) {
        json_put_object(w, "more");
        json_plan(w, &p->more);
        json_close(w, '}');
    }
    return json_write(path, &b, err);
}

static drey_status show(const cli_settings *s, prospect *p, drey_error *err)
{
    bool json_only = s->json && strcmp(s->json, "-") == 0;
    FILE *to = json_only || s->command == CLI_PULL ? stderr : stdout, *out = page_of(to);
    models_warn_of_plan(&p->plan);
    verdict_show(to, p->models, s);
    if (s->command == CLI_PULL && !s->common.verbose)
        return DREY_OK;
    report_plan(out, &p->plan, p->models->drafter, p->models->ahead.outlook.alone_smallest_bytes);
    report_draft(out, p->models->why);
    report_prediction(out, &p->models->ahead.outlook, p->disk);
    if (p->has_more)
        report_more(out, &p->plan, &p->more);
    if (s->json)
        TRY(write_json(s->json, p, err));
    if (!s->plan.tensors)
        return DREY_OK;
    fprintf(out, "tensors of the target, in the order of a pass\n");
    return drey_planner_visit(p->planner, 0, show_tensor, out, err);
}

/* ---- Several machines ---- */

typedef struct machines {
    drey_rank_machine machine[RANKS_FILE_MOST];
    report_source disk[RANKS_FILE_MOST];
    drey_rank_plan plan[RANKS_FILE_MOST];
    int32_t n;
} machines;

static uint64_t least_memory(const machines *m)
{
    uint64_t least = m->machine[0].memory_bytes;
    for (int32_t i = 1; i < m->n; i++)
        least = m->machine[i].memory_bytes < least ? m->machine[i].memory_bytes : least;
    return least;
}

/* This machine's speeds, in the memory of the smallest one, or what the whole model needs. */
static drey_status measure_machine(const machines *m, const drey_engine_options *options,
                                   drey_speeds *speeds, drey_error *err)
{
    drey_planner *p;
    drey_plan plan;
    drey_error why;
    uint64_t memory = least_memory(m);
    TRY(drey_planner_open(&p, options, err));
    if (drey_planner_make(p, memory, NULL, &plan, &why) == DREY_ERR_MEMORY)
        memory = plan.smallest_budget_bytes;
    drey_status status = drey_planner_measure(p, memory, speeds, err);
    drey_planner_close(&p);
    return status;
}

/* A disk that the file says nothing of is as --disk says, or as this machine's. */
static drey_status find_speeds(const cli_settings *s, const drey_engine_options *options,
                               machines *m, drey_speeds *speeds, drey_error *err)
{
    const double any = 1; /* that is not measured */
    bool all = true;
    for (int32_t i = 0; i < m->n; i++)
        all &= m->machine[i].disk_bytes_per_s > 0;
    *speeds = (drey_speeds){.disk_bytes_per_s = all ? any : s->plan.disk_bytes_per_s};
    if (!s->plan.no_measure)
        TRY(measure_machine(m, options, speeds, err));
    for (int32_t i = 0; i < m->n; i++) {
        bool stated = m->machine[i].disk_bytes_per_s > 0 || s->plan.disk_bytes_per_s > 0;
        if (m->machine[i].disk_bytes_per_s <= 0)
            m->machine[i].disk_bytes_per_s = speeds->disk_bytes_per_s;
        m->disk[i] = stated                               ? REPORT_STATED
                     : m->machine[i].disk_bytes_per_s > 0 ? REPORT_MEASURED
                                                          : REPORT_UNKNOWN;
    }
    return DREY_OK;
}

static drey_status write_machines(const char *path, const machines *m, drey_error *err)
{
    json_buffer b;
    json_writer *w = json_buffer_begin(&b);
    const drey_plan *lead = &m->plan[0].plan;
    JSON_PUT_EACH(w, JSON_OF(lead, alone_pass_s), JSON_OF(lead, ceiling_tokens_per_s),
                  JSON_OF(lead, pass_s), JSON_OF(lead, passes_per_s),
                  JSON_OF(lead, expected_tokens_per_s));
    json_put_array(w, "ranks");
    for (int32_t i = 0; i < m->n; i++) {
        const drey_rank_info *r = &m->plan[i].rank;
        json_put_object(w, NULL);
        json_put_text(w, "host", r->host);
        JSON_PUT_EACH(w, JSON_OF(r, first_layer), {"layers", r->n_layers});
        json_put_text(w, "disk", report_source_name(m->disk[i]));
        json_plan(w, &m->plan[i].plan);
        json_close(w, '}');
    }
    json_close(w, ']');
    return json_write(path, &b, err);
}

static drey_status plan_ranks(const cli_settings *s, models *of, prospect *p,
                              drey_engine_options *options, drey_error *err)
{
    machines m = {.n = 0};
    drey_speeds speeds;
    bool json_only = s->json && strcmp(s->json, "-") == 0;
    FILE *out = page_of(json_only ? stderr : stdout);
    TRY(ranks_file_read(s->plan.ranks, m.machine, &m.n, err));
    TRY(find_speeds(s, options, &m, &speeds, err));
    TRY(models_divide(of, s, options, err));
    TRY(drey_ranks_plan(options, &speeds, m.machine, m.n, m.plan, err));
    progress_clear(&p->bar);
    verdict_show_machines(page_target(out), of, m.plan, m.n);
    for (int32_t i = 0; i < m.n; i++)
        report_rank_plan(out, i, &m.plan[i], m.disk[i]);
    report_draft(out, of->why);
    report_rank_prediction(out, &m.plan[0].plan);
    return s->json ? write_machines(s->json, &m, err) : DREY_OK;
}

/* ---- Both ---- */

static drey_status plan_all(const cli_settings *s, models *m, prospect *p, drey_error *err)
{
    TRY(json_check_path(s->json, err));
    TRY(models_open(m, s, err));
    int32_t n_context = models_context(m, s, default_context);
    drey_engine_options options;
    progress_wait(&p->bar, "measuring this machine");
    TRY(models_choose(m, s, n_context, &options, err));
    if (s->plan.ranks)
        return plan_ranks(s, m, p, &options, err);
    TRY(models_look(m, s, &options, err));
    progress_clear(&p->bar);
    p->models = m;
    TRY(drey_planner_open(&p->planner, &options, err));
    TRY(look_ahead(s, p, err));
    return show(s, p, err);
}

drey_status plan_show(const cli_settings *settings, drey_error *err)
{
    models m = {0};
    prospect p = {.bar.quiet = settings->quiet};
    drey_status status = plan_all(settings, &m, &p, err);
    progress_clear(&p.bar);
    drey_planner_close(&p.planner);
    models_close(&m);
    return status;
}

int plan_main(const cli_settings *settings)
{
    drey_error err = {0};
    return exit_with(plan_show(settings, &err), &err);
}
