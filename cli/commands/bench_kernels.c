/* drey bench kernels: every kernel against the machine's limits, and which type has which. */
#include "cli/commands/cmd_bench.h"

#include "cli/commands/models.h"
#include "cli/terminal/report.h"
#include "common/error.h"

#include <string.h>

typedef struct listing {
    FILE *out;
    json_writer *root;
    const drey_limits *limits;
    char type[16]; /* type of the block of lines that was begun */
    /* seconds of one row; of drey's own way with a tree; of blocks that are not split */
    double first_s;
    bool in_rows, begun;
} listing;

static void begin(listing *l)
{
    if (l->begun)
        return;
    l->begun = true;
    report_limits(l->limits, l->out, l->root);
    json_put_array(l->root, "kernels");
}

static void show_dot(listing *l, const drey_kernel_report *r)
{
    if (r->rows == 1) {
        l->first_s = r->seconds;
        fprintf(l->out, "  rows   GB/s  of memory     TOPS  of peak   t(n)/t(1)\n");
    }
    fprintf(l->out, "%6d %6.1f %8.0f %% %8.3f %6.0f %% %11.2f\n", r->rows, 1e-9 * r->bytes_per_s,
            100 * r->bandwidth_share, 1e-12 * r->ops_per_s, 100 * r->peak_share,
            r->seconds / l->first_s);
}

static void show_planes(listing *l, const drey_kernel_report *r)
{
    if (strcmp(r->shape, "unsplit") == 0) {
        l->first_s = r->seconds;
        if (r->rows == 1)
            fprintf(l->out, "  rows   GB/s joined from planes, over unsplit\n");
        return;
    }
    fprintf(l->out, "%6d %6.1f %39.2f\n", r->rows, 1e-9 * r->bytes_per_s, r->seconds / l->first_s);
}

static void show_table(listing *l, const drey_kernel_report *r)
{
    if (r->what == DREY_KERNEL_ROW) {
        if (!l->in_rows)
            fprintf(l->out, "row operation     on                       ns     GB/s\n");
        l->in_rows = true;
        fprintf(l->out, "%-17s %-16s %10.0f %8.1f", r->kernel, r->shape, 1e9 * r->seconds,
                1e-9 * r->bytes_per_s);
        if (r->bandwidth_share > 0)
            fprintf(l->out, ", %.0f %% of memory, %.0f %% of the float peak",
                    100 * r->bandwidth_share, 100 * r->peak_share);
        if (strcmp(r->kernel, "tree") == 0)
            l->first_s = r->seconds;
        else if (strncmp(r->kernel, "tree-", 5) == 0)
            fprintf(l->out, ", %.2f times as long as tree", r->seconds / l->first_s);
        fputc('\n', l->out);
    } else if (r->what == DREY_KERNEL_DOT) {
        show_dot(l, r);
    } else if (r->what == DREY_KERNEL_PLANES) {
        show_planes(l, r);
    } else if (r->what == DREY_KERNEL_PART) {
        fprintf(l->out, "  %-17s %6.0f ns, alone %3.0f %% of peak\n", r->shape, 1e9 * r->seconds,
                100 * r->peak_share);
    } else if (r->what == DREY_KERNEL_PACK) {
        fprintf(l->out, "%-6s packed at %.1f GB/s", r->kernel, 1e-9 * r->bytes_per_s);
    } else {
        fprintf(l->out, ", activations quantised at %.1f GB/s\n", 1e-9 * r->bytes_per_s);
    }
    fflush(l->out);
}

static void visit(void *user, const drey_kernel_report *r)
{
    listing *l = user;
    begin(l);
    show_table(l, r);
    json_writer *entry = l->root;
    json_put_object(entry, NULL);
    json_put_text(entry, "kernel", r->kernel);
    json_put_text(entry, "what", drey_kernel_figure_name(r->what));
    json_put_text(entry, "shape", r->shape);
    JSON_PUT_EACH(entry, JSON_OF(r, rows), JSON_OF(r, seconds), JSON_OF(r, bytes_per_s),
                  JSON_OF(r, ops_per_s), JSON_OF(r, bandwidth_share), JSON_OF(r, peak_share));
    json_close(entry, '}');
}

/* ---- The list, as a table in Markdown ---- */

static void list_head(void *user, const char *type, const char *tier, const char *own)
{
    listing *l = user;
    (void)own;
    if (!l->type[0])
        snprintf(l->type, sizeof l->type, "%s", type);
    if (strcmp(l->type, type) == 0)
        fprintf(l->out, " %s |", tier);
}

static void list_line(void *user, const char *type, const char *tier, const char *own)
{
    listing *l = user;
    (void)tier;
    if (strcmp(l->type, type) != 0)
        fprintf(l->out, "%s| %s |", l->type[0] ? "\n" : "", type);
    snprintf(l->type, sizeof l->type, "%s", type);
    fprintf(l->out, " %s |", own ? own : "?");
}

static void list_rule(void *user, const char *type, const char *tier, const char *own)
{
    listing *l = user;
    (void)tier, (void)own;
    if (!l->type[0])
        snprintf(l->type, sizeof l->type, "%s", type);
    if (strcmp(l->type, type) == 0)
        fprintf(l->out, "---|");
}

static void list(FILE *out)
{
    listing l = {.out = out};
    fprintf(out, "| type |");
    drey_kernel_list(list_head, &l);
    fprintf(out, "\n|---|");
    l.type[0] = '\0';
    drey_kernel_list(list_rule, &l);
    fprintf(out, "\n");
    l.type[0] = '\0';
    drey_kernel_list(list_line, &l);
    fprintf(out, "\n");
}

drey_status bench_kernels(const cli_settings *s, FILE *out, json_writer *root, drey_error *err)
{
    if (s->bench.list) {
        list(out);
        return DREY_OK;
    }
    drey_limits limits;
    listing l = {.out = out, .root = root, .limits = &limits};
    TRY(models_check_tier(s->common.cpu_tier, err));
    const char *tier = s->common.cpu_tier ? s->common.cpu_tier : drey_cpu_tiers()[0];
    fprintf(out, "kernels    %s\n", tier);
    json_put_text(root, "cpu_tier", tier);
    drey_status status = drey_bench_kernels(s->common.n_threads, s->common.cpu_tier, s->bench.type,
                                            &limits, visit, &l, err);
    if (l.begun)
        json_close(root, ']');
    return status;
}
