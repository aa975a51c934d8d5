/* Tables for people: see report.h. */
#include "cli/terminal/report.h"

#include "cli/terminal/format.h"
#include "cli/terminal/terminal_page.h"
#include "cli/terminal/terminal.h"

#include <string.h>

static const char *style(FILE *out, terminal_style which)
{
    return page_target(out) == stderr ? terminal_style_text(which) : "";
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
    snprintf(note, sizeof note, "of %d threads", plan->n_threads);
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
    uint64_t own = plan->kv_bytes - plan->draft_kv_bytes - plan->cross_kv_bytes;
    plan_row(out, "cache, target", own, note);
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

/* Of a mixture: what of a token's experts is missing. */
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
        fprintf(out, "  that share is assumed of any mixture; drey tune -m measures this one's\n");
    if (plan->front_layers)
        fprintf(
            out,
            "  the first %lld layers stay, or most of each: passes mostly end before the others\n",
            (long long)plan->front_layers);
}

/* Keys and values that are in a file. */
static void plan_away(FILE *out, const drey_plan *plan)
{
    char size[16];
    if (plan->kv_window == 0)
        return;
    plan_row(out, "keys and values, read", plan->kv_read_bytes,
             "in every pass after a full context, less before");
    fprintf(out, "  their file takes %s then\n", format_bytes(size, (double)plan->kv_file_bytes));
}

void report_plan(FILE *out, const drey_plan *plan)
{
    char size[16];
    bool unlimited = plan->budget_bytes == DREY_MEMORY_UNLIMITED;
    fprintf(out, "%smemory plan%s: budget %s", style(out, STYLE_STRONG), style(out, STYLE_PLAIN),
            unlimited ? "unlimited" : format_bytes(size, (double)plan->budget_bytes));
    fprintf(out, " (smallest %s for a context of %d)\n",
            format_bytes(size, (double)plan->smallest_budget_bytes), plan->n_context);
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
    plan_away(out, plan);
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
    char verify[16], draft[16], pass[16];
    format_seconds(verify, plan->verify_s);
    format_seconds(draft, plan->draft_s);
    fprintf(out,
            "  a pass over a full tree of %d computes for %s, its draft for %s: %.3g passes/s, "
            "%s each\n",
            plan->tree_rows - 1, verify, draft, plan->passes_per_s,
            format_seconds(pass, plan->pass_s));
    fprintf(out,
            "  %swith drafting about %.3g tokens/s%s on usual texts, by trees of the best size\n",
            style(out, STYLE_STRONG), plan->expected_tokens_per_s, style(out, STYLE_PLAIN));
}

/* Where the disk's speed is not known. */
static void reads_alone(FILE *out, const drey_plan *plan)
{
    const double usual = (double)(1u << 30);
    char read[16], seconds[16];
    fprintf(out, "  a pass reads %s, which takes %s on a disk of 1G/s\n",
            format_bytes(read, (double)plan->streamed_bytes_per_pass),
            format_seconds(seconds, (double)plan->streamed_bytes_per_pass / usual));
}

/* The same figures as in the verdict, to three digits. */
static void speed_without(FILE *out, const drey_outlook *look, bool has_draft)
{
    const drey_plan *plan = &look->plan;
    const char *strong = has_draft ? "" : style(out, STYLE_STRONG);
    double alone = look->alone_tokens_per_s;
    char pass[16];
    if (alone <= 0)
        alone = plan->ceiling_tokens_per_s;
    if (alone > 0)
        fprintf(out, "  %swithout a draft%s about %.3g tokens/s%s, %s each\n", strong,
                has_draft ? ", in its memory as well," : "", alone,
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
    char size[16], a[16], b[16];
    if (plan->streamed_bytes_per_pass == 0)
        return;
    fprintf(out, "  %s more: a pass reads %s instead of %s",
            format_bytes(size, (double)(more->budget_bytes - plan->budget_bytes)),
            format_bytes(a, (double)more->streamed_bytes_per_pass),
            format_bytes(b, (double)plan->streamed_bytes_per_pass));
    if (plan->n_experts)
        fprintf(out, ", as slots hold %.0f %% of its experts instead of %.0f %%",
                100 * more->expert_hits, 100 * plan->expert_hits);
    if (plan->n_experts && plan->ceiling_tokens_per_s > 0)
        fprintf(out, ": a ceiling of %.3g tokens/s instead of %.3g", more->ceiling_tokens_per_s,
                plan->ceiling_tokens_per_s);
    else if (plan->pass_s > 0)
        fprintf(out, ", %s instead of %s: %+.0f %% speed", format_seconds(a, more->pass_s),
                format_seconds(b, plan->pass_s), 100 * (plan->pass_s / more->pass_s - 1));
    fputc('\n', out);
}

/* In memory, packed for the kernels, a small model takes a little more than in its file. */
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
    char pass[16];
    fprintf(out, "%sspeed%s\n", style(out, STYLE_STRONG), style(out, STYLE_PLAIN));
    if (plan->alone_pass_s <= 0) {
        fprintf(out, "  not known: nothing was measured\n");
        return;
    }
    bool has_draft = plan->tree_rows > 1 && plan->passes_per_s > 0;
    fprintf(out, "  around all ranks, without the network: ceiling without a draft %.3g tokens/s, ",
            plan->ceiling_tokens_per_s);
    fprintf(out, "%s each\n", format_seconds(pass, plan->alone_pass_s));
    if (has_draft)
        speed_of_drafting(out, plan);
}

void report_rank_reads(FILE *out, const drey_ranks *ranks)
{
    drey_rank_info r;
    char read[16];
    for (int32_t i = 0; ranks && drey_ranks_describe(ranks, i, &r); i++)
        fprintf(out, "%s%srank %d read %s", i ? ", " : "", i ? "" : "ranks    ", i,
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
    if (s->first_token_s > 0)
        fprintf(out, ", the first word after %.2f s", s->first_token_s);
    fprintf(out, "\n  %-9s %lld tokens", "text", (long long)s->generated_tokens);
    if (s->tokens_per_s > 0)
        fprintf(out, " in %.2f s: %s%.3g tokens/s%s", s->decode_s, style(out, STYLE_STRONG),
                s->tokens_per_s, style(out, STYLE_PLAIN));
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
    if (s->experts_used) {
        fprintf(out, "  %-9s %.0f %% were in memory; %lld were read", "experts",
                100 - percent((double)s->experts_read, (double)s->experts_used),
                (long long)s->experts_read);
        if (s->experts_guessed)
            fprintf(out, ", %lld of them early by %lld guesses", (long long)s->guesses_used,
                    (long long)s->experts_guessed);
        fputc('\n', out);
    }
    fprintf(out, "  %-9s %.0f %% waiting for reads, %.0f %% verify, %.0f %% draft", "time",
            100 * s->stall_share, 100 * s->verify_share, 100 * s->draft_share);
    if (s->provisional_share > 0)
        fprintf(out, ", %.0f %% draft while %s", 100 * s->provisional_share,
                s->ranks_share > 0 ? "reading or waiting" : "reading");
    if (s->ranks_share > 0)
        fprintf(out, ", %.0f %% waiting for ranks", 100 * s->ranks_share);
    fputc('\n', out);
    if (s->sidecar_tokens_per_s > 0 && s->tokens_per_s > 0)
        fprintf(out,
                "  %-9s none; with one (drey prepare), which spares packing, this would be %.2f "
                "times as fast\n",
                "sidecar", s->sidecar_tokens_per_s / s->tokens_per_s);
    fprintf(out, "  %-9s peak %s", "memory", format_bytes(a, (double)s->peak_memory_bytes));
    if (s->budget_bytes != DREY_MEMORY_UNLIMITED)
        fprintf(out, " of %s", format_bytes(a, (double)s->budget_bytes));
    fprintf(out, ", %lld major faults while decoding\n", (long long)s->decode_major_faults);
    if (s->joules > 0 && s->generated_tokens > 1)
        fprintf(out, "  %-9s %.3g J for each token, of the whole machine\n", "energy",
                s->joules / (double)(s->generated_tokens - 1));
    if (s->kv == DREY_KV_Q8_0)
        fprintf(out, "  %-9s q8_0, which is lossy: with f16 the text may be another\n", "cache");
}

static int64_t sum(const int64_t *count, int from, int to)
{
    int64_t total = 0;
    for (int i = from; i < to; i++)
        total += count[i];
    return total;
}

/* "by depth 1: 91 %, 2: 83 %, 4: 70 %": of the passes that had a node there, those that accepted
 * one. The first depth at which few passes had one ends the line. */
static void speculation_depths(FILE *out, const drey_speculation *c)
{
    const char *between = "";
    int64_t passes = sum(c->passes_writing, 0, DREY_SPECULATION_WRITTEN);
    fprintf(out, "  %-9s reached by the text in ", "depth");
    for (int depth = 1; depth < DREY_SPECULATION_DEPTHS; depth *= 2, between = ", ") {
        if (!c->depth_submitted[depth - 1])
            break;
        fprintf(out, "%s%d: %.0f %%", between, depth,
                percent((double)c->depth_accepted[depth - 1], (double)passes));
    }
    fputs(" of the passes\n", out);
}

static void speculation_ranks(FILE *out, const drey_speculation *c)
{
    enum { RANKS = DREY_SPECULATION_RANKS };
    double all = (double)sum(c->rank_chosen, 0, RANKS + 1);
    if (all > 0)
        fprintf(out,
                "  %-9s the target's token was the 1st in %.0f %%, 2nd %.0f %%, 3rd %.0f %%, "
                "among %d in %.0f %%\n",
                "guesses", percent((double)c->rank_chosen[0], all),
                percent((double)c->rank_chosen[1], all), percent((double)c->rank_chosen[2], all),
                RANKS, percent((double)sum(c->rank_chosen, 0, RANKS), all));
}

/* "1: 20 %, 2: 15 %, 3-4: 30 %, 5-8: 35 %" */
static void speculation_passes(FILE *out, const drey_speculation *c)
{
    enum { MOST = DREY_SPECULATION_WRITTEN };
    double all = (double)sum(c->passes_writing, 0, MOST);
    const char *between = "";
    fprintf(out, "  %-9s wrote ", "passes");
    for (int from = 0, to = 1; from < MOST; from = to, to *= 2) {
        int64_t n = sum(c->passes_writing, from, to);
        if (!n)
            continue;
        fprintf(out, "%s%d", between, from + 1);
        if (to - from > 1)
            fprintf(out, "-%d", to);
        fprintf(out, ": %.0f %%", percent((double)n, all));
        between = ", ";
    }
    fputs(" (tokens: share of the passes)\n", out);
}

/* "of the accepted the draft alone had 60 %, the text alone 10 %, both 30 %" */
static void speculation_sources(FILE *out, const drey_speculation *c)
{
    int64_t all = c->accepted_of_draft + c->accepted_of_text + c->accepted_of_both;
    if (all > 0)
        fprintf(out,
                "  %-9s of the accepted tokens the draft alone guessed %.0f %%, the text alone "
                "%.0f %%, both %.0f %%\n",
                "sources", percent((double)c->accepted_of_draft, (double)all),
                percent((double)c->accepted_of_text, (double)all),
                percent((double)c->accepted_of_both, (double)all));
}

void report_speculation(FILE *out, const drey_speculation *c)
{
    if (c->lossy && c->differed < 0)
        fprintf(out, "  %-9s the draft alone wrote this: it is not the target's text\n", "lossy");
    else if (c->lossy)
        fprintf(out, "  %-9s %lld tokens are not what the target would have written there\n",
                "lossy", (long long)c->differed);
    if (!sum(c->depth_submitted, 0, DREY_SPECULATION_DEPTHS))
        return;
    fprintf(out, "  %-9s %lld steps in %.2f s", "drafting", (long long)c->draft_steps, c->draft_s);
    if (c->hidden_share > 0)
        fprintf(out, ", %.0f %% of it during the target's passes", 100 * c->hidden_share);
    if (c->provisional_kept + c->provisional_lost)
        fprintf(out, "; of %lld tokens beyond them %.0f %% were kept",
                (long long)(c->provisional_kept + c->provisional_lost),
                percent((double)c->provisional_kept,
                        (double)(c->provisional_kept + c->provisional_lost)));
    if (c->alpha > 0)
        fprintf(out, "; alpha %.2g", c->alpha);
    fputc('\n', out);
    speculation_depths(out, c);
    speculation_ranks(out, c);
    speculation_sources(out, c);
    speculation_passes(out, c);
    if (c->outside_slice)
        fprintf(out, "  %-9s %lld tokens of the target lay outside the draft's\n", "slice",
                (long long)c->outside_slice);
}

/* ---- Early exits ---- */

/* "after 20: 12 %, 21: 30 %": of the tokens. */
static void exit_layers(FILE *out, const drey_exits *c)
{
    const char *between = "";
    fprintf(out, "  %-9s", "");
    for (int i = 0; i < DREY_EXITS_LAYERS; i++) {
        if (!c->at_layer[i])
            continue;
        fprintf(out, "%s%d: %.0f %%", between[0] ? between : " after ", i + 1,
                percent((double)c->at_layer[i], (double)c->tokens));
        between = ", ";
    }
    fputs(" (layers: share of the tokens)\n", out);
}

void report_units(FILE *out, const drey_engine *engine)
{
    drey_unit units[DREY_MAX_UNITS];
    int32_t n = 0;
    double sum = 0;
    for (; n < DREY_MAX_UNITS && drey_engine_unit(engine, n, &units[n]); n++)
        sum += (double)units[n].n_groups;
    for (int32_t i = 0; i < n && n > 1 && sum > 0; i++) {
        const drey_unit *u = &units[i];
        fprintf(out, "  %-9s %s", i ? "" : "units", u->name);
        if (u->n_threads)
            fprintf(out, " (%s, %d thread%s)", u->cpu_tier, u->n_threads,
                    u->n_threads > 1 ? "s" : "");
        fprintf(out, ": %.1f %% of the products; its share of a row is %.1f %%\n",
                percent((double)u->n_groups, sum), 100 * u->share[0]);
    }
    for (int32_t i = 0; i < n; i++)
        if (units[i].failed[0])
            complain("warning: the unit %s is used no longer, and the others do its part: %s",
                     units[i].name, units[i].failed);
}

void report_exits(FILE *out, const drey_exits *c)
{
    char a[16], b[16];
    if (c->mode == DREY_EXIT_OFF || c->tokens == 0)
        return;
    fprintf(out, "  %-9s %s: %lld of %lld tokens, %.2f of %d layers each", "exits",
            drey_exit_name(c->mode), (long long)c->left, (long long)c->tokens, c->layers_per_token,
            c->n_layers);
    fprintf(out, "; %lld whole heads, %lld in vain\n", (long long)c->candidates,
            (long long)c->refused);
    exit_layers(out, c);
    if (c->compared)
        fprintf(out, "  %-9s %.1f %% of %lld compared were the target's own", "",
                percent((double)c->agreed, (double)c->compared), (long long)c->compared);
    if (c->compared && c->taken_back)
        fprintf(out, "; %lld were taken back", (long long)c->taken_back);
    if (c->compared)
        fputc('\n', out);
    if (c->skipped_bytes)
        fprintf(out, "  %-9s %s were not read, %s read in vain\n", "",
                format_bytes(a, (double)(c->skipped_bytes - (c->vain_bytes < c->skipped_bytes
                                                                 ? c->vain_bytes
                                                                 : c->skipped_bytes))),
                format_bytes(b, (double)c->vain_bytes));
    if (c->mode == DREY_EXIT_FAST && c->left)
        fprintf(out, "  %-9s exits decided about the text: it may not be the target's own\n",
                "lossy");
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
