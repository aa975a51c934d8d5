/* drey plan: what a memory budget would buy, without loading anything. */
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/models.h"
#include "cli/report.h"
#include "cli/terminal.h"

static const int32_t usual_context = 1024;

static void show_tensor(void *user, const char *tensor, uint64_t bytes, drey_residency where)
{
    static const char *const names[] = {
        [DREY_PINNED] = "pinned", [DREY_STREAMED] = "streamed", [DREY_LOOKED_UP] = "looked up"};
    char size[16];
    (void)user;
    printf("  %-10s %8s  ", names[where], format_bytes(size, (double)bytes));
    print_clean(stdout, tensor);
    putchar('\n');
}

/* The speed that is given, or measured if anything is streamed at all, where it is streamed from.
 */
static drey_status disk_speed(const cli_settings *s, const drey_plan *plan, double *bytes_per_s,
                              drey_error *err)
{
    drey_disk_report disk;
    *bytes_per_s = s->disk_bytes_per_s;
    if (*bytes_per_s > 0 || plan->streamed_bytes_per_pass == 0)
        return DREY_OK;
    const char *path = plan->sidecar && s->sidecar ? s->sidecar : s->model;
    drey_status status = drey_bench_disk(path, s->io, &disk, err);
    if (status == DREY_OK)
        *bytes_per_s = disk.bytes_per_s;
    return status;
}

static drey_status plan_all(const cli_settings *s, const models *m, drey_error *err)
{
    drey_model_info info;
    drey_model_describe(m->target, &info);
    int32_t n_context = s->n_context ? s->n_context : usual_context;
    if (!s->n_context && info.n_context_train > 1 && info.n_context_train < n_context)
        n_context = info.n_context_train;
    drey_engine_options options = models_engine_options(m, s, n_context);
    drey_plan plan;
    double disk_bytes_per_s = 0;
    drey_status status = drey_plan_make(&options, 0, &plan, err);
    if (status == DREY_OK)
        status = disk_speed(s, &plan, &disk_bytes_per_s, err);
    if (status == DREY_OK && disk_bytes_per_s > 0)
        status = drey_plan_make(&options, disk_bytes_per_s, &plan, err);
    if (status != DREY_OK)
        return status;
    models_warn_of_sidecar(&plan);
    report_plan(stdout, &plan);
    printf("  a context of %d tokens\n", n_context);
    report_ceiling(stdout, &plan);
    if (!s->tensors)
        return DREY_OK;
    printf("tensors of the target, in the order of a pass\n");
    return drey_plan_visit(&options, show_tensor, NULL, err);
}

int plan_main(const cli_settings *settings)
{
    models m;
    drey_error err = {0};
    drey_status status = models_open(&m, settings, &err);
    if (status == DREY_OK)
        status = plan_all(settings, &m, &err);
    if (status != DREY_OK)
        complain("%s", err.message);
    models_close(&m);
    return exit_code(status);
}
