/* Report about a text, for people: see report.h. */
#include "cli/terminal/report.h"

#include "cli/terminal/terminal.h"
#include "cli/terminal/terminal_page.h"
#include "common/size_text.h"

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* "1 token", "2 tokens" */
static void print_tokens(FILE *out, int64_t n)
{
    fprintf(out, "%lld token%s", (long long)n, n == 1 ? "" : "s");
}

/* ---- In two lines ---- */

/* Prints what a reader has to know of a text that need not be the target's own. */
static void report_losses(FILE *out, const drey_statistics *s, const drey_speculation *c,
                          const drey_exits *x)
{
    if (c->lossy && c->differed < 0)
        fprintf(out, "lossy: the draft alone wrote this, it is not the target's text\n");
    else if (c->lossy) {
        fputs("lossy: ", out);
        print_tokens(out, c->differed);
        fprintf(out, " %s not what the target would have written there\n",
                c->differed == 1 ? "is" : "are");
    }
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
    print_tokens(out, s->generated_tokens);
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
        suggest("drey prepare %s would make this %.1f times as fast", terminal_model(),
                s->sidecar_tokens_per_s / s->tokens_per_s);
    report_losses(out, s, c, x);
}

/* ---- In detail: a row each, by its name ---- */

enum { NAME_COLUMNS = 15 };

static void row(FILE *out, const char *name)
{
    fprintf(out, "  %-*s ", NAME_COLUMNS, name);
}

static void report_speed(FILE *out, const drey_statistics *s)
{
    static const char *const ends[] = {[DREY_FINISH_STOP] = "it came to its end",
                                       [DREY_FINISH_LENGTH] = "it reached its limit of tokens",
                                       [DREY_FINISH_INTERRUPTED] = "it was stopped",
                                       [DREY_FINISH_ERROR] = "an error ended it"};
    char size[16];
    const int64_t n_prompt = s->prompt_tokens + s->cached_tokens;
    row(out, "prompt");
    print_tokens(out, n_prompt);
    if (s->cached_tokens)
        fprintf(out, " (%lld reused)", (long long)s->cached_tokens);
    fprintf(out, " in %.2f s", s->prompt_s);
    if (s->load_bytes)
        fprintf(out, ", with %s of weights read", format_bytes(size, (double)s->load_bytes));
    if (s->first_token_s > 0) {
        fputc('\n', out);
        row(out, "first token");
        fprintf(out, "after %.2f s", s->first_token_s);
    }
    fputc('\n', out);
    row(out, "text");
    print_tokens(out, s->generated_tokens);
    if (s->tokens_per_s > 0)
        fprintf(out, " in %.2f s: %s%s tokens/s%s", s->decode_s, page_style(out, STYLE_STRONG),
                format_rate(size, s->tokens_per_s), page_style(out, STYLE_PLAIN));
    if (s->ceiling_tokens_per_s > 0)
        fprintf(out, ", %.0f %% of the %s/s that reading and computing allow here",
                percent(s->tokens_per_s, s->ceiling_tokens_per_s),
                format_rate(size, s->ceiling_tokens_per_s));
    fprintf(out, " (%s)\n", ends[s->finish]);
    row(out, "passes");
    fprintf(out, "%lld of the target, %.2f tokens per pass\n", (long long)s->n_passes,
            s->tokens_per_pass);
}

static void report_reads(FILE *out, const drey_statistics *s)
{
    char a[16], b[16];
    if (s->read_bytes) {
        row(out, "disk");
        fprintf(out, "%s read at %s/s", format_bytes(a, (double)s->read_bytes),
                format_bytes(b, s->read_bytes_per_s));
        if (s->disk_bytes_per_s > 0)
            fprintf(out, "; at its best %s/s", format_bytes(a, s->disk_bytes_per_s));
        fputc('\n', out);
    }
    if (s->experts_used) {
        row(out, "experts");
        fprintf(out, "%.0f %% of those used were in memory; %lld were read",
                100 - percent((double)s->experts_read, (double)s->experts_used),
                (long long)s->experts_read);
        if (s->experts_guessed)
            fprintf(out, ", of which %lld ahead (prefetched %lld)", (long long)s->guesses_used,
                    (long long)s->experts_guessed);
        fputc('\n', out);
    }
}

static void report_time(FILE *out, const drey_statistics *s)
{
    row(out, "time");
    fprintf(out, "%.0f %% waiting for reads, %.0f %% verifying, %.0f %% drafting",
            100 * s->stall_share, 100 * s->verify_share, 100 * s->draft_share);
    if (s->provisional_share > 0)
        fprintf(out, ", %.0f %% drafting while %s", 100 * s->provisional_share,
                s->ranks_share > 0 ? "reading or waiting" : "reading");
    if (s->ranks_share > 0)
        fprintf(out, ", %.0f %% waiting for ranks", 100 * s->ranks_share);
    fputc('\n', out);
}

void report_statistics(FILE *out, const drey_statistics *s)
{
    char size[16];
    fprintf(out, "%sstatistics%s\n", page_style(out, STYLE_STRONG), page_style(out, STYLE_PLAIN));
    report_speed(out, s);
    report_reads(out, s);
    report_time(out, s);
    if (s->sidecar_tokens_per_s > 0 && s->tokens_per_s > 0) {
        row(out, "sidecar");
        fprintf(out,
                "none; with one (drey prepare %s), which spares packing, this would be %.2f times "
                "as fast\n",
                terminal_model(), s->sidecar_tokens_per_s / s->tokens_per_s);
    }
    row(out, "memory");
    fprintf(out, "%s", format_bytes(size, (double)s->peak_memory_bytes));
    if (s->budget_bytes != DREY_MEMORY_UNLIMITED)
        fprintf(out, " of %s", format_bytes(size, (double)s->budget_bytes));
    fprintf(out, " at its peak, %lld major page faults while writing\n",
            (long long)s->decode_major_faults);
    if (s->joules > 0 && s->generated_tokens > 1) {
        row(out, "energy");
        fprintf(out, "%.3g J per token, of the whole machine\n",
                s->joules / (double)(s->generated_tokens - 1));
    }
    if (s->kv == DREY_KV_Q8_0) {
        row(out, "KV cache");
        fputs("q8_0, which is lossy: with f16 the text may be another\n", out);
    }
}

static int64_t sum(const int64_t *count, int from, int to)
{
    int64_t total = 0;
    for (int i = from; i < to; i++)
        total += count[i];
    return total;
}

/* "1: 91 %, 2: 83 %, 3: 70 %": the passes that accepted a token so far ahead. The first position
 * that no pass drafted ends the row, as does the eighth. */
static void speculation_positions(FILE *out, const drey_speculation *c)
{
    enum { MOST = DREY_SPECULATION_DEPTHS < 8 ? DREY_SPECULATION_DEPTHS : 8 };
    const char *between = "";
    int64_t passes = sum(c->passes_writing, 0, DREY_SPECULATION_WRITTEN);
    row(out, "per position");
    for (int depth = 1; depth <= MOST; depth++, between = ", ") {
        if (!c->depth_submitted[depth - 1])
            break;
        fprintf(out, "%s%d: %.0f %%", between, depth,
                percent((double)c->depth_accepted[depth - 1], (double)passes));
    }
    fputs(" of the passes accepted a token so far ahead\n", out);
}

static void speculation_ranks(FILE *out, const drey_speculation *c)
{
    enum { RANKS = DREY_SPECULATION_RANKS };
    double all = (double)sum(c->rank_chosen, 0, RANKS + 1);
    if (all <= 0)
        return;
    row(out, "top-k accuracy");
    for (int k = 1; k <= RANKS; k = k == 1 ? 3 : k == 3 ? RANKS : RANKS + 1)
        fprintf(out, "%stop %d: %.0f %%", k == 1 ? "" : ", ", k,
                percent((double)sum(c->rank_chosen, 0, k), all));
    fputs(" of the tokens were among the draft's first k guesses\n", out);
}

/* "1: 20 %, 2: 15 %, 3-4: 30 %, 5-8: 35 %" */
static void speculation_lengths(FILE *out, const drey_speculation *c)
{
    enum { MOST = DREY_SPECULATION_WRITTEN };
    double all = (double)sum(c->passes_writing, 0, MOST);
    const char *between = "";
    row(out, "tokens per pass");
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
    fputs(" of the passes wrote so many\n", out);
}

/* Prints the sources of guesses, if lookup guesses together with a draft. */
static void speculation_sources(FILE *out, const drey_speculation *c)
{
    int64_t all = c->accepted_of_draft + c->accepted_of_text + c->accepted_of_both;
    if (all <= 0)
        return;
    row(out, "guessed by");
    fprintf(out, "draft %.0f %%, lookup %.0f %%, both %.0f %% of the accepted tokens\n",
            percent((double)c->accepted_of_draft, (double)all),
            percent((double)c->accepted_of_text, (double)all),
            percent((double)c->accepted_of_both, (double)all));
}

/* Time, and what was drafted while the target was at work. */
static void speculation_work(FILE *out, const drey_speculation *c)
{
    const int64_t ahead = c->provisional_kept + c->provisional_lost;
    row(out, "draft time");
    fprintf(out, "%.2f s in %lld steps", c->draft_s, (long long)c->draft_steps);
    if (c->hidden_share > 0)
        fprintf(out, ", %.0f %% of it while the target was at work", 100 * c->hidden_share);
    fputc('\n', out);
    if (ahead) {
        row(out, "drafted ahead");
        print_tokens(out, ahead);
        fprintf(out, " for the next pass, of which it used %lld\n", (long long)c->provisional_kept);
    }
    if (c->alpha > 0) {
        row(out, "alpha");
        fprintf(out, "%.2g, the confidence below which drafting stops\n", c->alpha);
    }
}

void report_speculation(FILE *out, const drey_speculation *c)
{
    const int64_t drafted = sum(c->depth_submitted, 0, DREY_SPECULATION_DEPTHS);
    const int64_t accepted = sum(c->depth_accepted, 0, DREY_SPECULATION_DEPTHS);
    if (c->lossy) {
        row(out, "lossy");
        if (c->differed < 0)
            fputs("the draft alone wrote this: it is not the target's text\n", out);
        else {
            print_tokens(out, c->differed);
            fprintf(out, " %s not what the target would have written there\n",
                    c->differed == 1 ? "is" : "are");
        }
    }
    if (!drafted)
        return;
    row(out, "acceptance rate");
    fprintf(out, "%.0f %%: %lld of %lld drafted tokens were accepted\n",
            percent((double)accepted, (double)drafted), (long long)accepted, (long long)drafted);
    speculation_positions(out, c);
    speculation_lengths(out, c);
    speculation_ranks(out, c);
    speculation_sources(out, c);
    speculation_work(out, c);
    if (c->outside_slice) {
        row(out, "draft vocabulary");
        print_tokens(out, c->outside_slice);
        fprintf(out, " of the target %s not in the draft's shortened one\n",
                c->outside_slice == 1 ? "is" : "are");
    }
}

/* ---- Early exits ---- */

/* "after layer 20: 12 %, 21: 30 %": of the tokens. */
static void exit_layers(FILE *out, const drey_exits *c)
{
    const char *between = "after layer ";
    row(out, "exit layers");
    for (int i = 0; i < DREY_EXITS_LAYERS; i++) {
        if (!c->at_layer[i])
            continue;
        fprintf(out, "%s%d: %.0f %%", between, i + 1,
                percent((double)c->at_layer[i], (double)c->tokens));
        between = ", ";
    }
    fputs(" of the tokens\n", out);
}

void report_exits(FILE *out, const drey_exits *c)
{
    char a[16], b[16];
    if (c->mode == DREY_EXIT_OFF || c->tokens == 0)
        return;
    row(out, "early exits");
    fprintf(out, "%s: %lld of %lld tokens left early, %.2f of %d layers per token\n",
            drey_exit_name(c->mode), (long long)c->left, (long long)c->tokens, c->layers_per_token,
            c->n_layers);
    if (c->left)
        exit_layers(out, c);
    row(out, "exit checks");
    fprintf(out, "%lld times the whole output layer, %lld of them in vain\n",
            (long long)c->candidates, (long long)c->refused);
    if (c->compared) {
        row(out, "exit agreement");
        fprintf(out, "%.1f %% of %lld compared tokens were the target's own",
                percent((double)c->agreed, (double)c->compared), (long long)c->compared);
        if (c->taken_back)
            fprintf(out, "; %lld were taken back", (long long)c->taken_back);
        fputc('\n', out);
    }
    if (c->skipped_bytes) {
        row(out, "reads saved");
        fprintf(out, "%s were not read, %s were read in vain\n",
                format_bytes(a, (double)(c->skipped_bytes - (c->vain_bytes < c->skipped_bytes
                                                                 ? c->vain_bytes
                                                                 : c->skipped_bytes))),
                format_bytes(b, (double)c->vain_bytes));
    }
    if (c->mode == DREY_EXIT_FAST && c->left) {
        row(out, "lossy");
        fputs("exits decided about the text: it may not be the target's own\n", out);
    }
}

/* ---- Units ---- */

void report_units(FILE *out, const drey_engine *engine)
{
    drey_unit units[DREY_MAX_UNITS];
    int32_t n = 0;
    double sum = 0;
    for (; n < DREY_MAX_UNITS && drey_engine_unit(engine, n, &units[n]); n++)
        sum += (double)units[n].n_groups;
    for (int32_t i = 0; i < n && n > 1 && sum > 0; i++) {
        const drey_unit *u = &units[i];
        row(out, i ? "" : "units");
        fprintf(out, "%s", u->name);
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
