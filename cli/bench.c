/* drey bench: what this machine, its disk and a model do, as a table and as JSON. */
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/json_file.h"
#include "cli/models.h"
#include "cli/progress.h"
#include "cli/terminal.h"

#include <string.h>

static drey_status machine(const cli_settings *s, FILE *out, cJSON *root, drey_error *err)
{
    drey_machine_report r;
    char a[16], b[16], c[16];
    drey_status status = models_check_tier(s->cpu_tier, err);
    if (status == DREY_OK)
        status = drey_bench_machine(s->n_threads, s->cpu_tier, &r, err);
    if (status != DREY_OK)
        return status;
    fprintf(out, "machine    ");
    print_clean(out, r.cpu);
    fprintf(out, ", %d cores, kernels %s\n", r.n_cores, r.cpu_tier);
    fprintf(out, "memory     %s, %s available, read at %s/s\n",
            format_bytes(a, (double)r.memory_total_bytes),
            format_bytes(b, (double)r.memory_available_bytes),
            format_bytes(c, r.memory_bytes_per_s));
    fprintf(out, "matrices   %.2f trillion 8-bit operations/s\n", 1e-12 * r.int8_ops_per_s);
    cJSON_AddStringToObject(root, "cpu_tier", r.cpu_tier);
    cJSON_AddNumberToObject(root, "memory_total_bytes", (double)r.memory_total_bytes);
    cJSON_AddNumberToObject(root, "memory_available_bytes", (double)r.memory_available_bytes);
    cJSON_AddNumberToObject(root, "memory_bytes_per_s", r.memory_bytes_per_s);
    cJSON_AddNumberToObject(root, "int8_ops_per_s", r.int8_ops_per_s);
    return DREY_OK;
}

static drey_status disk(const cli_settings *s, FILE *out, cJSON *root, drey_error *err)
{
    drey_disk_report r;
    char a[16], b[16];
    drey_status status = drey_bench_disk(s->model, s->io, &r, err);
    if (status != DREY_OK)
        return status;
    fprintf(out, "disk       %s read at %s/s\n", format_bytes(a, (double)r.read_bytes),
            format_bytes(b, r.bytes_per_s));
    fprintf(out, "way        %s, %s, %s buffers\n", r.uring ? "io_uring" : "reading threads",
            r.direct ? "direct" : "through the page cache", r.registered ? "registered" : "plain");
    cJSON_AddNumberToObject(root, "bytes_per_s", r.bytes_per_s);
    cJSON_AddNumberToObject(root, "read_bytes", (double)r.read_bytes);
    cJSON_AddBoolToObject(root, "direct", r.direct);
    cJSON_AddBoolToObject(root, "uring", r.uring);
    cJSON_AddBoolToObject(root, "registered", r.registered);
    return DREY_OK;
}

static void show_model(FILE *out, cJSON *root, const drey_model_report *r)
{
    cJSON *passes = cJSON_AddArrayToObject(root, "passes");
    fprintf(out, "prompt     %.3g tokens/s\ntext       %.3g tokens/s\n", r->prefill_tokens_per_s,
            r->decode_tokens_per_s);
    fprintf(out, "rows of a pass       time   against one row\n");
    cJSON_AddNumberToObject(root, "prefill_tokens_per_s", r->prefill_tokens_per_s);
    cJSON_AddNumberToObject(root, "decode_tokens_per_s", r->decode_tokens_per_s);
    for (int i = 0; i < r->n_points; i++) {
        fprintf(out, "%14d %7.2f ms   %.2f\n", r->rows[i], 1e3 * r->pass_s[i],
                r->pass_s[0] > 0 ? r->pass_s[i] / r->pass_s[0] : 0);
        cJSON *point = cJSON_CreateObject();
        cJSON_AddNumberToObject(point, "rows", r->rows[i]);
        cJSON_AddNumberToObject(point, "pass_s", r->pass_s[i]);
        cJSON_AddItemToArray(passes, point);
    }
}

static drey_status model(const cli_settings *s, FILE *out, cJSON *root, drey_error *err)
{
    enum { WIDEST_PASS = 64 };
    models m;
    drey_model_report report;
    progress bar = {0};
    drey_status status = models_open(&m, s, err);
    if (status == DREY_OK) {
        drey_engine_options options =
            models_engine_options(&m, s, s->n_prompt + s->n_decode + WIDEST_PASS);
        options.progress = progress_report;
        options.progress_user = &bar;
        drey_plan plan;
        if (drey_plan_make(&options, 0, &plan, NULL) == DREY_OK)
            models_warn_of_sidecar(&plan);
        status = drey_bench_model(&options, s->n_prompt, s->n_decode, &report, err);
        progress_clear(&bar);
    }
    if (status == DREY_OK)
        show_model(out, root, &report);
    models_close(&m);
    return status;
}

int bench_main(const cli_settings *settings)
{
    drey_error err = {0};
    bool json_only = settings->json && strcmp(settings->json, "-") == 0;
    FILE *out = json_only ? stderr : stdout;
    drey_status status = settings->json ? json_check_path(settings->json, &err) : DREY_OK;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "version", drey_version());
    cJSON_AddItemToObject(root, "machine", json_machine());
    if (status == DREY_OK)
        status = settings->command == CLI_BENCH_MACHINE ? machine(settings, out, root, &err)
                 : settings->command == CLI_BENCH_DISK  ? disk(settings, out, root, &err)
                                                        : model(settings, out, root, &err);
    if (status == DREY_OK && settings->json)
        status = json_write(settings->json, root, &err);
    cJSON_Delete(root);
    if (status != DREY_OK)
        complain("%s", err.message);
    return exit_code(status);
}
