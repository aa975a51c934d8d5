/* The first lines of a command: see verdict.h. */
#include "cli/models/verdict.h"

#include "cli/models/draft_family.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/terminal_page.h"
#include "common/path.h"
#include "common/size_text.h"

/* Writes what would make room for the draft: more memory, or fewer and shorter texts at once. */
static void room_hint(const models *m, const cli_settings *s, char *out, size_t room)
{
    char size[16];
    if (m->ahead.reason == DREY_DRAFT_NO_ROOM && m->ahead.room_bytes > 0)
        snprintf(out, room, "%s%s makes room%s, and so may %sa smaller -c",
                 s->serve.models ? "" : "--memory ",
                 format_bytes_up(size, (double)m->ahead.room_bytes),
                 s->serve.models ? " if this model has it of --memory" : "",
                 s->n_sessions > 1 ? "--sessions 1 or " : "");
}

void verdict_draft_hint(const models *m, const cli_settings *s, char *out, size_t room)
{
    static const char *const reasons[] = {
        [DREY_DRAFT_CHOSEN] = "",
        [DREY_DRAFT_NONE_THERE] = "no draft: there is no smaller model next to it",
        [DREY_DRAFT_OTHER_TOKENS] =
            "no draft: the smaller models next to it have other tokens and cannot guess for it",
        [DREY_DRAFT_NO_ROOM] = "no draft: the budget has no room for the smaller model next to it",
        [DREY_DRAFT_NOT_FASTER] = ""};
    const drey_draft_reason why = m->ahead.reason;
    const uint64_t streamed = m->ahead.outlook.plan.streamed_bytes_per_pass;
    char more[300] = "";
    drey_model_info info;
    drey_model_describe(m->target, &info);
    if (why == DREY_DRAFT_NONE_THERE || why == DREY_DRAFT_OTHER_TOKENS)
        draft_family_hint(info.path, streamed, more, sizeof more);
    if (streamed > 0)
        room_hint(m, s, more, sizeof more);
    *out = '\0';
    if (streamed > 0 || more[0])
        snprintf(out, room, "%s%s%s", reasons[why], more[0] ? "; " : "", more);
}

static void show_line(FILE *page, const char *text)
{
    print_clean(page, text);
    fputc('\n', page);
}

/* pull offers the draft by itself. */
void verdict_show(FILE *out, const models *m, const cli_settings *s)
{
    char hint[VERDICT_HINT_BYTES] = "";
    if (s->command != CLI_PULL)
        verdict_draft_hint(m, s, hint, sizeof hint);
    if (!s->quiet)
        show_line(page_of(out), m->ahead.outlook.verdict);
    if (!s->quiet && hint[0])
        show_line(page_of(out), hint);
    if (m->ahead.outlook.warning[0])
        complain("%s", m->ahead.outlook.warning);
}

/* ---- Ranks ---- */

typedef struct rank_sums {
    double pinned, streamed;
    int32_t n;
} rank_sums;

static void add_rank(rank_sums *sums, const drey_rank_info *r)
{
    sums->pinned += (double)r->pinned_bytes;
    sums->streamed += (double)r->streamed_bytes_per_pass;
    sums->n++;
}

static void show_sums(FILE *page, const models *m, const rank_sums *sums)
{
    drey_model_info info;
    char size[16], read[16];
    drey_model_describe(m->target, &info);
    print_clean(page, path_name(info.path));
    fprintf(page, ": %s on %d machines, ", format_bytes(size, (double)info.file_bytes), sums->n);
    if (sums->streamed > 0)
        fprintf(page, "%.0f %% of it stays in memory, and %s are read for each pass.",
                100 * sums->pinned / (sums->pinned + sums->streamed),
                format_bytes(read, sums->streamed));
    else
        fprintf(page, "and all of it stays in memory.");
}

void verdict_show_ranks(FILE *out, const models *m)
{
    FILE *page = page_of(out);
    rank_sums sums = {.n = 0};
    drey_rank_info r;
    for (int32_t i = 0; drey_ranks_describe(m->ranks, i, &r); i++)
        add_rank(&sums, &r);
    show_sums(page, m, &sums);
    fputc('\n', page);
}

void verdict_show_machines(FILE *out, const models *m, const drey_rank_plan *plan, int32_t n)
{
    FILE *page = page_of(out);
    rank_sums sums = {.n = 0};
    const drey_plan *all = &plan[0].plan;
    char rate[16];
    for (int32_t i = 0; i < n; i++)
        add_rank(&sums, &plan[i].rank);
    show_sums(page, m, &sums);
    if (all->alone_pass_s > 0 && m->drafter != DREY_DRAFTER_NONE)
        fprintf(page, " Without the network's time about %s tokens/s with a draft.",
                format_rate_about(rate, all->expected_tokens_per_s));
    else if (all->alone_pass_s > 0)
        fprintf(page, " Without the network's time about %s tokens/s.",
                format_rate_about(rate, all->expected_tokens_per_s));
    fputc('\n', page);
}
