/* Tables for people: see report.h. */
#include "cli/report.h"

#include "cli/format.h"
#include "cli/terminal.h"

#include <string.h>

static const char *style(FILE *out, terminal_style which)
{
    return out == stderr ? terminal_style_text(which) : "";
}

static void plan_row(FILE *out, const char *name, uint64_t bytes, const char *note)
{
    char size[16];
    if (bytes)
        fprintf(out, "  %-24s %8s  %s\n", name, format_bytes(size, (double)bytes), note);
}

static void plan_bar(FILE *out, const drey_plan *plan)
{
    enum { WIDTH = 50 };
    char bar[WIDTH + 1];
    double total = plan->target_bytes ? (double)plan->target_bytes : 1;
    format_bar(bar, WIDTH, (double)plan->pinned_bytes / total,
               (double)plan->streamed_bytes_per_pass / total);
    int n_pinned = (int)strspn(bar, "#"), n_streamed = (int)strspn(bar + n_pinned, "-");
    fprintf(out, "  [%s%.*s%s%.*s%s%s]  # pinned  - streamed  . looked up\n",
            style(out, STYLE_GOOD), n_pinned, bar, style(out, STYLE_WARN), n_streamed,
            bar + n_pinned, style(out, STYLE_PLAIN), bar + n_pinned + n_streamed);
}

void report_plan(FILE *out, const drey_plan *plan)
{
    char size[16], pinned[64], streamed[64], cache[128] = "keys and values, f16";
    bool unlimited = plan->budget_bytes == DREY_MEMORY_UNLIMITED;
    snprintf(pinned, sizeof pinned, "%d tensors", plan->n_tensors_pinned);
    snprintf(streamed, sizeof streamed, "%d tensors, read in every pass", plan->n_tensors_streamed);
    if (plan->kv == DREY_KV_Q8_0)
        snprintf(cache, sizeof cache, "keys and values, q8_0: %s less than f16, not its exact text",
                 format_bytes(size, (double)plan->kv_saved_bytes));
    fprintf(out, "%smemory plan%s: budget %s", style(out, STYLE_STRONG), style(out, STYLE_PLAIN),
            unlimited ? "unlimited" : format_bytes(size, (double)plan->budget_bytes));
    fprintf(out, " (smallest %s)", format_bytes(size, (double)plan->smallest_budget_bytes));
    fprintf(out, ", target %s\n", format_bytes(size, (double)plan->target_bytes));
    plan_row(out, "target, pinned", plan->pinned_bytes, pinned);
    plan_row(out, "target, streamed", plan->streamed_bytes_per_pass, streamed);
    plan_row(out, "target, looked up", plan->lookup_bytes, "rows read when a token asks for them");
    plan_bar(out, plan);
    plan_row(out, "draft", plan->draft_bytes, "weights in memory");
    plan_row(out, "staging", plan->ring_bytes, "for reads under way");
    plan_row(out, "caches", plan->kv_bytes, cache);
    plan_row(out, "work", plan->work_bytes, "activations, logits, tree");
    plan_row(out, "program", plan->process_bytes, "with tokenizers and stacks");
    if (!unlimited)
        plan_row(out, "spare", plan->spare_bytes, "of the budget");
    fprintf(out, "  %d threads, %d rows in a prompt pass%s\n", plan->n_threads, plan->prompt_chunk,
            plan->sidecar ? "; the target's weights come packed from its sidecar" : "");
}

void report_ceiling(FILE *out, const drey_plan *plan)
{
    char speed[16], read[16];
    const char *strong = style(out, STYLE_STRONG), *plain = style(out, STYLE_PLAIN);
    if (plan->streamed_bytes_per_pass == 0) {
        fprintf(out, "  the target stays in memory: the disk sets no ceiling\n");
        return;
    }
    format_bytes(read, (double)plan->streamed_bytes_per_pass);
    if (plan->ceiling_tokens_per_s > 0 && plan->disk_bytes_per_s > 0)
        fprintf(out, "  %sceiling %.3g passes/s%s: the disk reads %s/s, a pass needs %s;", strong,
                plan->ceiling_tokens_per_s, plain, format_bytes(speed, plan->disk_bytes_per_s),
                read);
    else
        fprintf(out, "  %sceiling %.3g passes/s for each 1G/s of the disk%s: a pass reads %s;",
                strong, (double)(1u << 30) / (double)plan->streamed_bytes_per_pass, plain, read);
    fprintf(out, "\n  a pass writes one token, and one more for each right guess of a draft\n");
}

/* ---- Statistics ---- */

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void report_speed(FILE *out, const drey_statistics *s)
{
    char size[16];
    fprintf(out, "  %-9s %lld tokens in %.2f s", "prompt", (long long)s->prompt_tokens,
            s->prompt_s);
    if (s->load_bytes)
        fprintf(out, ", reading %s", format_bytes(size, (double)s->load_bytes));
    fprintf(out, "\n  %-9s %lld tokens in %.2f s: %s%.3g tokens/s%s", "text",
            (long long)s->generated_tokens, s->decode_s, style(out, STYLE_STRONG), s->tokens_per_s,
            style(out, STYLE_PLAIN));
    if (s->ceiling_tokens_per_s > 0)
        fprintf(out, ", %.0f %% of the ceiling of %.3g",
                percent(s->tokens_per_s, s->ceiling_tokens_per_s), s->ceiling_tokens_per_s);
    fprintf(out, " (%s)\n", drey_finish_name(s->finish));
    fprintf(out, "  %-9s %lld, %.2f tokens each", "passes", (long long)s->n_passes,
            s->tokens_per_pass);
    if (s->drafted)
        fprintf(out, "; drafted %lld, accepted %lld (%.0f %%)", (long long)s->drafted,
                (long long)s->accepted, percent((double)s->accepted, (double)s->drafted));
    fputc('\n', out);
}

void report_statistics(FILE *out, const drey_statistics *s)
{
    char a[16], b[16];
    fprintf(out, "%sstatistics%s\n", style(out, STYLE_STRONG), style(out, STYLE_PLAIN));
    report_speed(out, s);
    if (s->read_bytes) {
        fprintf(out, "  %-9s %s at %s/s", "reading", format_bytes(a, (double)s->read_bytes),
                format_bytes(b, s->read_bytes_per_s));
        if (s->disk_bytes_per_s > 0)
            fprintf(out, ", the disk at its best %s/s", format_bytes(a, s->disk_bytes_per_s));
        fputc('\n', out);
    }
    fprintf(out, "  %-9s %.0f %% waiting for reads, %.0f %% verify, %.0f %% draft\n", "time",
            100 * s->stall_share, 100 * s->verify_share, 100 * s->draft_share);
    fprintf(out, "  %-9s peak %s", "memory", format_bytes(a, (double)s->peak_memory_bytes));
    if (s->budget_bytes != DREY_MEMORY_UNLIMITED)
        fprintf(out, " of %s", format_bytes(a, (double)s->budget_bytes));
    fprintf(out, ", %lld major faults while decoding\n", (long long)s->decode_major_faults);
}
