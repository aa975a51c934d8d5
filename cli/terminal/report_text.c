/* What came of a text, for people: see report.h. */
#include "cli/terminal/report.h"

#include "cli/terminal/format.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/terminal_page.h"

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* ---- In two lines ---- */

/* What a reader has to know of a text that need not be the target's own. */
static void report_losses(FILE *out, const drey_statistics *s, const drey_speculation *c,
                          const drey_exits *x)
{
    if (c->lossy && c->differed < 0)
        fprintf(out, "lossy: the draft alone wrote this, it is not the target's text\n");
    else if (c->lossy)
        fprintf(out, "lossy: %lld tokens are not what the target would have written there\n",
                (long long)c->differed);
    if (x->mode == DREY_EXIT_FAST && x->left)
        fprintf(out, "lossy: passes ended early, it may not be the target's own text\n");
    if (s->kv == DREY_KV_Q8_0)
        fprintf(out, "lossy: the cache is q8_0, with f16 the text may be another\n");
}

void report_briefly(FILE *out, const drey_statistics *s, const drey_speculation *c,
                    const drey_exits *x)
{
    const double worth_saying = 1.2; /* times as fast */
    char a[16];
    fprintf(out, "%lld token%s", (long long)s->generated_tokens,
            s->generated_tokens == 1 ? "" : "s");
    if (s->tokens_per_s > 0)
        fprintf(out, ", %s%s/s%s", page_style(out, STYLE_STRONG), format_rate(a, s->tokens_per_s),
                page_style(out, STYLE_PLAIN));
    /* What was accepted beyond the text's end is not in it. */
    const int64_t drafted = s->accepted < s->generated_tokens ? s->accepted : s->generated_tokens;
    if (drafted > 0)
        fprintf(out, " (drafting guessed %lld of them)", (long long)drafted);
    if (s->first_token_s > 0)
        fprintf(out, "; first word after %.2f s", s->first_token_s);
    fprintf(out, "\nmemory %s", format_bytes(a, (double)s->peak_memory_bytes));
    if (s->budget_bytes != DREY_MEMORY_UNLIMITED)
        fprintf(out, " of %s", format_bytes(a, (double)s->budget_bytes));
    if (s->read_bytes && s->n_passes)
        fprintf(out, ", read %s per pass",
                format_bytes(a, (double)s->read_bytes / (double)s->n_passes));
    fputc('\n', out);
    if (s->tokens_per_s > 0 && s->sidecar_tokens_per_s > worth_saying * s->tokens_per_s)
        fprintf(out, "drey prepare %s would make this %.1f times as fast\n", terminal_model(),
                s->sidecar_tokens_per_s / s->tokens_per_s);
    report_losses(out, s, c, x);
}

/* ---- In detail ---- */

static void report_speed(FILE *out, const drey_statistics *s)
{
    char size[16];
    fprintf(out, "  %-9s %lld tokens in %.2f s", "prompt", (long long)s->prompt_tokens,
            s->prompt_s);
    if (s->load_bytes)
        fprintf(out, " with %s of weights read", format_bytes(size, (double)s->load_bytes));
    if (s->first_token_s > 0)
        fprintf(out, "; first word after %.2f s", s->first_token_s);
    fprintf(out, "\n  %-9s %lld tokens", "text", (long long)s->generated_tokens);
    if (s->tokens_per_s > 0)
        fprintf(out, " in %.2f s: %s%s tokens/s%s", s->decode_s, page_style(out, STYLE_STRONG),
                format_rate(size, s->tokens_per_s), page_style(out, STYLE_PLAIN));
    if (s->ceiling_tokens_per_s > 0)
        fprintf(out, ", %.0f %% of the %s/s that reading and computing allow here",
                percent(s->tokens_per_s, s->ceiling_tokens_per_s),
                format_rate(size, s->ceiling_tokens_per_s));
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
    fprintf(out, "%sstatistics%s\n", page_style(out, STYLE_STRONG), page_style(out, STYLE_PLAIN));
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
                "  %-9s none; with one (drey prepare %s), which spares packing, this would be "
                "%.2f times as fast\n",
                "sidecar", terminal_model(), s->sidecar_tokens_per_s / s->tokens_per_s);
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
        fprintf(out, ", %.0f %% of that time while the target was at work", 100 * c->hidden_share);
    if (c->provisional_kept + c->provisional_lost)
        fprintf(out, "; of %lld guesses made ahead for the next pass it used %lld",
                (long long)(c->provisional_kept + c->provisional_lost),
                (long long)c->provisional_kept);
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
}

void report_failed_units(const drey_engine *engine)
{
    drey_unit unit;
    for (int32_t i = 0; i < DREY_MAX_UNITS && drey_engine_unit(engine, i, &unit); i++)
        if (unit.failed[0])
            complain("the unit %s is used no longer, and the others do its part: %s", unit.name,
                     unit.failed);
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
