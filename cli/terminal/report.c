/* Tables for people: see report.h. */
#include "cli/terminal/report.h"

#include "cli/terminal/format.h"
#include "cli/terminal/terminal_page.h"
#include "cli/terminal/terminal.h"

#include <string.h>

static const char *style(FILE *out, terminal_style which)
{
    return page_style(out, which);
}

static void plan_row(FILE *out, const char *name, uint64_t bytes, const char *note)
{
    char size[16];
    if (bytes)
        fprintf(out, "  %-24s %8s  %s\n", name, format_bytes(size, (double)bytes), note);
}

/* The target's file: what stays, what each pass reads, what is read when a token asks for it. Of a
 * mixture: what is in memory, what a token reads, all else. */
static void plan_bar(FILE *out, const drey_plan *plan)
{
    enum { WIDTH = 60, AROUND = 4, NARROWEST = 10 };
    static const char *const words[2][2] = {{"pinned", "looked up"}, {"in memory", "on disk"}};
    const char *const *word = words[plan->n_experts > 0];
    static const char *const drawn[2][3] = {{"#", "-", "."}, {"\u2588", "\u2592", "\u00b7"}};
    const char *const *cell = drawn[terminal_utf8()];
    char bar[WIDTH + 1];
    double total = plan->target_bytes ? (double)plan->target_bytes : 1;
    const int32_t room = page_columns(out) - AROUND;
    const int32_t width = room < NARROWEST || room > WIDTH ? WIDTH : room;
    format_bar(bar, width, (double)(plan->pinned_bytes + plan->expert_bytes) / total,
               (double)plan->streamed_bytes_per_pass / total);
    const char *before = "";
    fputs("  [", out);
    for (const char *p = bar; *p; p++) {
        int which = *p == '#' ? 0 : *p == '-' ? 1 : 2;
        const char *wanted = style(out, which == 0   ? STYLE_GOOD
                                        : which == 1 ? STYLE_WARN
                                                     : STYLE_PLAIN);
        if (strcmp(wanted, before) != 0)
            fputs(wanted, out);
        before = wanted;
        fputs(cell[which], out);
    }
    fprintf(out, "%s]  %s %s  %s streamed  %s %s\n", style(out, STYLE_PLAIN), cell[0], word[0],
            cell[1], cell[2], word[1]);
}

static void plan_sizes(FILE *out, const drey_plan *plan)
{
    char note[120], size[16];
    plan_row(out, "program and libraries", plan->program_bytes, "");
    plan_row(out, "headers, tokenizers", plan->tokenizer_bytes, "of the models");
    snprintf(note, sizeof note, "of %d thread%s", plan->n_threads, plan->n_threads == 1 ? "" : "s");
    plan_row(out, "stacks", plan->stack_bytes, note);
    plan_row(out, "read queues", plan->queue_bytes, "with what the kernel takes for them");
    plan_row(out, "ring", plan->ring_bytes, "where reads arrive");
    int n = snprintf(note, sizeof note, "keys and values of %d positions", plan->n_context);
    if (plan->kv_window)
        n = snprintf(note, sizeof note, "keys and values of the last %lld of %d positions",
                     (long long)plan->kv_window, plan->n_context);
    if (plan->kv == DREY_KV_Q8_0)
        snprintf(note + n, sizeof note - (size_t)n,
                 ", q8_0: both %s less than f16, not its exact text",
                 format_bytes(size, (double)plan->kv_saved_bytes));
    uint64_t own = plan->kv_bytes - plan->draft_kv_bytes - plan->cross_kv_bytes - plan->state_bytes;
    plan_row(out, "cache, target", own, note);
    plan_row(out, "cache, states", plan->state_bytes, "newest and older ones, to go back to");
    plan_row(out, "cache, draft", plan->draft_kv_bytes, "the same");
    plan_row(out, "cache, input", plan->cross_kv_bytes, "keys and values of what encoders read");
    plan_row(out, "encoder", plan->encoder_bytes, "its reads, and rows of a whole input");
    snprintf(note, sizeof note, "activations, logits, scratch; %d rows in a prompt pass",
             plan->prompt_chunk);
    plan_row(out, "work", plan->work_bytes, note);
    plan_row(out, "texts, requests", plan->held_bytes, "what a chat or a server keeps of them");
    plan_row(out, "prefixes", plan->prefix_bytes, "kept for texts that begin alike");
    if (plan->n_sessions > 1)
        fprintf(out, "  %-24s %8s  of cache and work, for each of %d sessions\n", "  a session",
                format_bytes(size, (double)plan->session_bytes), plan->n_sessions);
    plan_row(out, "page tables, reserve", plan->reserve_bytes, "the kernel's part, and rounding");
    n = snprintf(note, sizeof note, "weights in memory");
    if (plan->draft_ids)
        snprintf(note + n, sizeof note - (size_t)n, "; its head: %lld tokens and those of the text",
                 (long long)plan->draft_ids);
    plan_row(out, "draft", plan->draft_bytes, note);
    snprintf(note, sizeof note, "%d tensors%s", plan->n_tensors_pinned,
             plan->n_tensors_streamed ? ", and a part of each other" : "");
    plan_row(out, "target, pinned", plan->pinned_bytes, note);
    snprintf(note, sizeof note, "slots for %d of %d experts", plan->expert_slots, plan->n_experts);
    plan_row(out, "target, experts", plan->expert_bytes, note);
    plan_row(out, "spare", plan->spare_bytes, "");
}

static void plan_experts(FILE *out, const drey_plan *plan)
{
    char note[120];
    if (plan->n_experts == 0)
        return;
    double layers = plan->expert_layers;
    snprintf(note, sizeof note, "slots for %d of %d: %.3g of %.0f in each of %.0f layers",
             plan->expert_slots, plan->n_experts, plan->expert_slots / layers,
             plan->n_experts / layers, layers);
    plan_row(out, "experts", plan->expert_bytes, note);
}

/* Prints the missing share of a token's experts in a mixture: what of a token's experts is
 * missing. */
static void plan_streamed(FILE *out, const drey_plan *plan)
{
    char note[120];
    if (plan->n_experts)
        snprintf(note, sizeof note,
                 "for a token, %.0f %% of whose %d experts in a layer are expected in slots",
                 100 * plan->expert_hits, plan->experts_used);
    else
        snprintf(note, sizeof note, "of %d tensors, read in every pass%s", plan->n_tensors_streamed,
                 plan->front_layers ? " that reaches them" : "");
    plan_row(out, "streamed", plan->streamed_bytes_per_pass, note);
    if (plan->n_experts && plan->route_tokens)
        fprintf(out, "  as its routes for %lld tokens say, which drey tune -m recorded\n",
                (long long)plan->route_tokens);
    else if (plan->n_experts)
        fprintf(out,
                "  that share is assumed of any mixture; drey tune -m %s measures this one's\n",
                terminal_model());
    if (plan->front_layers)
        fprintf(
            out,
            "  the first %lld layers stay, or most of each: passes mostly end before the others\n",
            (long long)plan->front_layers);
}

/* Keys and values that are in a file. */
static void plan_window(FILE *out, const drey_plan *plan)
{
    char size[16];
    if (plan->kv_window == 0)
        return;
    plan_row(out, "keys and values, read", plan->kv_read_bytes,
             "in every pass after a full context, less before");
    fprintf(out, "  their file takes %s then\n", format_bytes(size, (double)plan->kv_file_bytes));
}

/* "(smallest 450M with this draft, 69.0M without, for a context of 1024)"; where nothing computes a
 * draft "(smallest 69.0M, for a context of 1024)". */
static void plan_smallest(FILE *out, const drey_plan *plan, drey_drafter drafter,
                          uint64_t alone_bytes)
{
    char size[16];
    drey_drafter_info info;
    const bool drafts = plan->tree_rows > 1 && drafter != DREY_DRAFTER_NONE &&
                        drey_drafter_describe(drafter, &info) && !info.looks_up;
    fprintf(out, " (smallest %s%s", format_bytes_up(size, (double)plan->smallest_budget_bytes),
            drafts ? " with this draft" : "");
    if (drafts && alone_bytes > 0)
        fprintf(out, ", %s without", format_bytes_up(size, (double)alone_bytes));
    fprintf(out, ", for a context of %d)\n", plan->n_context);
}

void report_plan(FILE *out, const drey_plan *plan, drey_drafter drafter, uint64_t alone_bytes)
{
    char size[16];
    bool unlimited = plan->budget_bytes == DREY_MEMORY_UNLIMITED;
    fprintf(out, "%smemory plan%s: budget %s", style(out, STYLE_STRONG), style(out, STYLE_PLAIN),
            unlimited ? "unlimited" : format_bytes(size, (double)plan->budget_bytes));
    plan_smallest(out, plan, drafter, alone_bytes);
    plan_sizes(out, plan);
    fprintf(out, "%starget%s: %s%s\n", style(out, STYLE_STRONG), style(out, STYLE_PLAIN),
            format_bytes(size, (double)plan->target_bytes),
            plan->sidecar ? ", its weights packed in its sidecar" : "");
    plan_bar(out, plan);
    plan_row(out, "pinned", plan->pinned_bytes,
             plan->n_experts ? "the trunk, which every token uses, stays in memory"
                             : "stay in memory");
    plan_experts(out, plan);
    plan_streamed(out, plan);
    plan_row(out, "looked up", plan->lookup_bytes, "rows read when a token asks for them");
    plan_window(out, plan);
}

/* ---- Speed ---- */

const char *report_source_name(report_source source)
{
    static const char *const names[] = {"unknown", "stated", "measured"};
    return names[source];
}

/* "disk 1.50G/s (measured), memory 31.2G/s (measured), ..." */
static void speed_sources(FILE *out, const drey_plan *plan, report_source disk)
{
    const drey_speeds *s = &plan->speeds;
    char a[16];
    const char *between = "";
    fputs("  ", out);
    if (plan->streamed_bytes_per_pass + plan->kv_read_bytes && s->disk_bytes_per_s > 0) {
        fprintf(out, "disk %s/s (%s)", format_bytes(a, s->disk_bytes_per_s),
                report_source_name(disk));
        between = ", ";
    }
    if (s->memory_bytes_per_s > 0) {
        fprintf(out, "%smemory %s/s, matrices %.3f TOPS", between,
                format_bytes(a, s->memory_bytes_per_s), 1e-12 * s->one_ops_per_s);
        if (s->tree_ops_per_s > 0)
            fprintf(out, " for a row and %.3f for %d", 1e-12 * s->tree_ops_per_s, plan->tree_rows);
        fprintf(out, " (measured)");
    } else {
        fprintf(out, "%scomputing and memory not measured: taken as no bound", between);
    }
    fputc('\n', out);
}

static void speed_of_drafting(FILE *out, const drey_plan *plan)
{
    char verify[16], draft[16], pass[16], rate[16];
    fprintf(out, "  a pass over a full tree of %d computes for %s", plan->tree_rows - 1,
            format_seconds(verify, plan->verify_s));
    if (plan->draft_s > 0) /* lookup's is not counted */
        fprintf(out, ", its draft for %s", format_seconds(draft, plan->draft_s));
    fprintf(out, ": %s passes/s, %s each\n", format_rate(rate, plan->passes_per_s),
            format_seconds(pass, plan->pass_s));
    fprintf(out,
            "  %swith drafting about %s tokens/s%s on usual texts, by trees of the best size\n",
            style(out, STYLE_STRONG), format_rate(rate, plan->expected_tokens_per_s),
            style(out, STYLE_PLAIN));
}

/* Prints times at a usual disk's speed, if this one's is not known. */
static void reads_alone(FILE *out, const drey_plan *plan)
{
    const double usual = (double)(1u << 30), known = plan->speeds.disk_bytes_per_s;
    const double rate = known > 0 ? known : usual, reads = (double)plan->streamed_bytes_per_pass;
    char read[16], seconds[16], speed[16] = "1G";
    if (known > 0)
        format_bytes(speed, known);
    fprintf(out, "  a pass reads %s, which takes %s on a disk of %s/s\n", format_bytes(read, reads),
            format_seconds(seconds, reads / rate), speed);
}

/* The same figures as in the verdict, to three digits. */
static void speed_without(FILE *out, const drey_outlook *look, bool has_draft)
{
    const drey_plan *plan = &look->plan;
    const char *strong = has_draft ? "" : style(out, STYLE_STRONG);
    double alone = look->alone_tokens_per_s;
    char pass[16], rate[16];
    if (alone <= 0)
        alone = plan->ceiling_tokens_per_s;
    if (alone > 0)
        fprintf(out, "  %swithout a draft%s about %s tokens/s%s, %s each\n", strong,
                has_draft ? ", in its memory as well," : "", format_rate(rate, alone),
                has_draft ? "" : style(out, STYLE_PLAIN), format_seconds(pass, 1 / alone));
}

void report_prediction(FILE *out, const drey_outlook *look, report_source disk)
{
    char size[16], read[16], compute[16];
    const drey_plan *plan = &look->plan;
    const bool has_draft = plan->tree_rows > 1;
    fprintf(out, "%sspeed%s\n", style(out, STYLE_STRONG), style(out, STYLE_PLAIN));
    /* Half of a context is away on average. */
    const double reads = (double)plan->streamed_bytes_per_pass + (double)plan->kv_read_bytes / 2;
    if (plan->streamed_bytes_per_pass && plan->speeds.disk_bytes_per_s <= 0) {
        reads_alone(out, plan);
        return;
    }
    speed_sources(out, plan, disk);
    if (reads > 0)
        fprintf(out, "  a pass%s reads %s in %s",
                plan->kv_read_bytes ? " after half of the context" : "", format_bytes(size, reads),
                format_seconds(read, plan->read_s));
    else
        fprintf(out, "  the target stays in memory: a pass reads nothing");
    if (plan->compute_s > 0)
        fprintf(out, ", computes a row for %s", format_seconds(compute, plan->compute_s));
    fputc('\n', out);
    speed_without(out, look, has_draft);
    if (has_draft && plan->passes_per_s > 0)
        speed_of_drafting(out, plan);
}

void report_more(FILE *out, const drey_plan *plan, const drey_plan *more)
{
    const double least_gain = 1.005;
    char size[16], a[16], b[16];
    if (plan->streamed_bytes_per_pass == 0)
        return;
    fprintf(out, "  with %s more memory a pass would read %s instead of %s",
            format_bytes(size, (double)(more->budget_bytes - plan->budget_bytes)),
            format_bytes(a, (double)more->streamed_bytes_per_pass),
            format_bytes(b, (double)plan->streamed_bytes_per_pass));
    if (plan->n_experts)
        fprintf(out, ", as slots hold %.0f %% of its experts instead of %.0f %%",
                100 * more->expert_hits, 100 * plan->expert_hits);
    if (plan->n_experts && plan->ceiling_tokens_per_s > 0)
        fprintf(out, ": a ceiling of %s tokens/s instead of %s",
                format_rate(a, more->ceiling_tokens_per_s),
                format_rate(b, plan->ceiling_tokens_per_s));
    else if (plan->pass_s > least_gain * more->pass_s)
        fprintf(out, ", and take %s instead of %s: %+.0f %% speed", format_seconds(a, more->pass_s),
                format_seconds(b, plan->pass_s), 100 * (plan->pass_s / more->pass_s - 1));
    else if (plan->pass_s > 0)
        fprintf(out, ", but be no faster: computing takes longer than reading");
    fputc('\n', out);
}

/* Bytes of the whole target: packed for the kernels, a small model takes a little more memory than
 * its file does. */
static double whole_target(const drey_plan *plan)
{
    bool more = plan->pinned_bytes > plan->target_bytes;
    return (double)(more ? plan->pinned_bytes : plan->target_bytes);
}

void report_plan_briefly(FILE *out, const drey_plan *plan)
{
    char budget[16], target[16], pinned[16], draft[16], kv[16], rest[16];
    const char *strong = style(out, STYLE_STRONG), *plain = style(out, STYLE_PLAIN);
    uint64_t other = plan->ring_bytes + plan->work_bytes + plan->held_bytes + plan->prefix_bytes +
                     plan->process_bytes;
    bool unlimited = plan->budget_bytes == DREY_MEMORY_UNLIMITED;
    fprintf(out, "%smemory plan%s %s: pinned %s of %s", strong, plain,
            unlimited ? "unlimited" : format_bytes(budget, (double)plan->budget_bytes),
            format_bytes(pinned, (double)plan->pinned_bytes),
            format_bytes(target, whole_target(plan)));
    if (plan->n_experts)
        fprintf(out, ", %d of %d experts in %s", plan->expert_slots, plan->n_experts,
                format_bytes(draft, (double)plan->expert_bytes));
    if (plan->draft_bytes)
        fprintf(out, ", draft %s", format_bytes(draft, (double)plan->draft_bytes));
    fprintf(out, ", caches %s, all else %s%s\n", format_bytes(kv, (double)plan->kv_bytes),
            format_bytes(rest, (double)other), plan->sidecar ? "; packed in a sidecar" : "");
    if (plan->kv_window)
        fprintf(out, "  of the last %lld of %d positions; the first ones go to a file\n",
                (long long)plan->kv_window, plan->n_context);
    if (plan->streamed_bytes_per_pass)
        reads_alone(out, plan);
    else if (!plan->kv_window)
        fprintf(out, "  all of the target stays in memory: a pass reads nothing\n");
}

static void rank_row(FILE *out, int32_t i, const drey_rank_info *r, bool drafts)
{
    char bytes[16];
    fprintf(out, "%srank %d%s on ", style(out, STYLE_STRONG), i, style(out, STYLE_PLAIN));
    print_clean(out, r->host);
    if (r->n_layers)
        fprintf(out, ": layers %d to %d", r->first_layer, r->first_layer + r->n_layers - 1);
    else
        fprintf(out, ": no layers, %sthe head", drafts ? "the draft and " : "");
    fprintf(out, ", %s in memory", format_bytes(bytes, (double)r->pinned_bytes));
    if (!r->streamed_bytes_per_pass)
        return;
    fprintf(out, ", %s read per pass", format_bytes(bytes, (double)r->streamed_bytes_per_pass));
    if (r->disk_bytes_per_s > 0)
        fprintf(out, " at %s/s", format_bytes(bytes, r->disk_bytes_per_s));
}

void report_ranks(FILE *out, const drey_ranks *ranks, bool drafts)
{
    drey_rank_info r;
    for (int32_t i = 0; ranks && drey_ranks_describe(ranks, i, &r); i++) {
        rank_row(out, i, &r, drafts);
        fprintf(out, "\n");
    }
}

void report_rank_plan(FILE *out, int32_t i, const drey_rank_plan *r, report_source disk)
{
    char read[16];
    rank_row(out, i, &r->rank, r->plan.tree_rows > 1);
    if (r->rank.streamed_bytes_per_pass && r->rank.disk_bytes_per_s > 0)
        fprintf(out, " (%s)", report_source_name(disk));
    if (r->plan.read_s > 0)
        fprintf(out, ": %s", format_seconds(read, r->plan.read_s));
    fprintf(out, "\n");
}

void report_rank_prediction(FILE *out, const drey_plan *plan)
{
    char pass[16], rate[16];
    fprintf(out, "%sspeed%s\n", style(out, STYLE_STRONG), style(out, STYLE_PLAIN));
    if (plan->alone_pass_s <= 0) {
        fprintf(out, "  not known: nothing was measured\n");
        return;
    }
    bool has_draft = plan->tree_rows > 1 && plan->passes_per_s > 0;
    fprintf(out, "  around all ranks, without the network: ceiling without a draft %s tokens/s, ",
            format_rate(rate, plan->ceiling_tokens_per_s));
    fprintf(out, "%s each\n", format_seconds(pass, plan->alone_pass_s));
    if (has_draft)
        speed_of_drafting(out, plan);
}

void report_rank_reads(FILE *out, const drey_ranks *ranks)
{
    drey_rank_info r;
    char read[16];
    for (int32_t i = 0; ranks && drey_ranks_describe(ranks, i, &r); i++)
        fprintf(out, "%s%srank %d read %s", i ? ", " : "", i ? "" : "  ranks           ", i,
                format_bytes(read, (double)r.read_bytes));
    if (ranks)
        fprintf(out, "\n");
}

void report_draft(FILE *out, const char *why)
{
    if (!why[0])
        return;
    fprintf(out, "%sdraft%s ", style(out, STYLE_STRONG), style(out, STYLE_PLAIN));
    print_clean(out, why);
    fputc('\n', out);
}

/* ---- Limits ---- */

void report_limits(const drey_limits *limits, FILE *out, json_writer *root)
{
    fprintf(out, "limits     memory %.1f GB/s, 8-bit %.3f TOPS, float %.3f TFLOPS, a job %.2f us\n",
            1e-9 * limits->memory_bytes_per_s, 1e-12 * limits->int8_ops_per_s,
            1e-12 * limits->float_ops_per_s, 1e6 * limits->barrier_s);
    JSON_PUT_EACH(root, JSON_OF(limits, memory_bytes_per_s), JSON_OF(limits, int8_ops_per_s),
                  JSON_OF(limits, float_ops_per_s), JSON_OF(limits, barrier_s));
}
