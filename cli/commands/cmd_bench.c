/* drey bench: what this machine, its disk, the kernels and a model do, as a table and as JSON. */
#include "cli/commands/cmd_bench.h"

#include "cli/commands/commands.h"
#include "cli/files/json_file.h"
#include "cli/commands/models.h"
#include "cli/terminal/report.h"
#include "cli/terminal/terminal.h"
#include "common/size_text.h"

#include <stdlib.h>
#include <string.h>

static double cpu_s_per_gb(const drey_disk_report *r)
{
    return r->read_bytes ? 1e9 * r->cpu_s / (double)r->read_bytes : 0;
}

/* Reads of several sizes; names the smallest that comes within 3 % of the fastest, as small ones
 * leave more of the ring to what is not yet used. */
static drey_status disk_sizes(const cli_settings *s, FILE *out, json_writer *root, drey_error *err)
{
    static const int first = 17, last = 23; /* 128K to 8M */
    double speed[24] = {0}, most = 0;
    char a[16], b[16];
    json_put_array(root, "sizes");
    for (int i = first; i <= last; i++) {
        drey_disk_report r;
        TRY(drey_bench_disk(s->common.model, s->common.io, (uint64_t)1 << i, s->bench.seconds, &r,
                            err));
        speed[i] = r.bytes_per_s;
        most = r.bytes_per_s > most ? r.bytes_per_s : most;
        fprintf(out, "reads of   %-8s %s/s, %.3f s of processor a GB\n",
                format_bytes(a, (double)((uint64_t)1 << i)), format_bytes(b, r.bytes_per_s),
                cpu_s_per_gb(&r));
        json_put_object(root, NULL);
        JSON_PUT_EACH(root, {"read_size", (double)((uint64_t)1 << i)},
                      {"bytes_per_s", r.bytes_per_s}, {"cpu_s_per_gb", cpu_s_per_gb(&r)});
        json_close(root, '}');
    }
    json_close(root, ']');
    int best = first;
    while (speed[best] < 0.97 * most)
        best++;
    fprintf(out, "choose     --read-size %dK\n", 1 << (best - 10));
    json_put_number(root, "best_read_size", (double)((uint64_t)1 << best));
    return DREY_OK;
}

static drey_status disk(const cli_settings *s, FILE *out, json_writer *root, drey_error *err)
{
    drey_disk_report r;
    char a[16], b[16];
    if (s->bench.sizes)
        return disk_sizes(s, out, root, err);
    TRY(drey_bench_disk(s->common.model, s->common.io, s->common.read_bytes, s->bench.seconds, &r,
                        err));
    fprintf(out, "disk       %s read at %s/s, %.3f s of processor a GB\n",
            format_bytes(a, (double)r.read_bytes), format_bytes(b, r.bytes_per_s),
            cpu_s_per_gb(&r));
    fprintf(out, "way        %s, %s, %s buffers\n", r.uring ? "io_uring" : "reading threads",
            r.direct ? "direct" : "through the page cache", r.registered ? "registered" : "plain");
    JSON_PUT_EACH(root, {"bytes_per_s", r.bytes_per_s}, {"read_bytes", (double)r.read_bytes},
                  {"cpu_s_per_gb", cpu_s_per_gb(&r)});
    json_put_bool(root, "direct", r.direct);
    json_put_bool(root, "uring", r.uring);
    json_put_bool(root, "registered", r.registered);
    return DREY_OK;
}

static void show_machine(const drey_machine_report *r, FILE *out, json_writer *root)
{
    char a[16], b[16];
    fprintf(out, "machine    ");
    print_clean(out, r->cpu);
    fprintf(out, ", %d cores, kernels %s, %d threads\n", r->n_cores, r->cpu_tier, r->n_threads);
    fprintf(out, "memory     %s, %s available\n", format_bytes(a, (double)r->memory_total_bytes),
            format_bytes(b, (double)r->memory_available_bytes));
    json_put_text(root, "cpu_tier", r->cpu_tier);
    JSON_PUT_EACH(root, {"threads", r->n_threads}, JSON_OF(r, memory_total_bytes),
                  JSON_OF(r, memory_available_bytes));
    report_limits(&r->limits, out, root);
    fprintf(out, "matrices   %.3f TOPS, %.0f %% of the peak, by the kernel of Q4_K in the caches\n",
            1e-12 * r->kernel_ops_per_s, 100 * r->kernel_ops_per_s / r->limits.int8_ops_per_s);
    json_put_number(root, "kernel_ops_per_s", r->kernel_ops_per_s);
    json_put_array(root, "tiers");
    for (int32_t i = 0; i < r->n_tiers; i++) {
        const drey_tier_report *t = &r->tiers[i];
        fprintf(out, "%-10s 8-bit %.3f TOPS, float %.3f TFLOPS at most\n", t->name,
                1e-12 * t->int8_ops_per_s, 1e-12 * t->float_ops_per_s);
        json_put_object(root, NULL);
        json_put_text(root, "tier", t->name);
        json_put_number(root, "int8_ops_per_s", t->int8_ops_per_s);
        json_put_number(root, "float_ops_per_s", t->float_ops_per_s);
        json_close(root, '}');
    }
    json_close(root, ']');
}

static drey_status machine(const cli_settings *s, FILE *out, json_writer *root, drey_error *err)
{
    drey_machine_report r;
    TRY(models_check_tier(s->common.cpu_tier, err));
    TRY(drey_bench_machine(s->common.n_threads, s->common.cpu_tier, &r, err));
    show_machine(&r, out, root);
    if (!s->common.model)
        return DREY_OK;
    json_put_object(root, "disk");
    drey_status status = disk(s, out, root, err);
    json_close(root, '}');
    return status;
}

static drey_status measure(const cli_settings *s, FILE *out, json_writer *root, drey_error *err)
{
    switch (s->command) {
    case CLI_BENCH_MACHINE:
        return machine(s, out, root, err);
    case CLI_BENCH_DISK:
        return disk(s, out, root, err);
    case CLI_BENCH_KERNELS:
        return bench_kernels(s, out, root, err);
    default:
        return bench_model(s, out, root, err);
    }
}

int bench_main(const cli_settings *settings)
{
    drey_error err = {0};
    bool json_only = settings->json && strcmp(settings->json, "-") == 0;
    FILE *out = json_only ? stderr : stdout;
    drey_status status = json_check_path(settings->json, &err);
    json_buffer b;
    json_writer *root = json_report_begin(&b);
    if (status == DREY_OK)
        status = measure(settings, out, root, &err);
    if (status == DREY_OK && settings->json)
        status = json_write(settings->json, &b, &err);
    else
        free(json_buffer_end(&b));
    return exit_with(status, &err);
}
