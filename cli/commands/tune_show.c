/* Shows the findings of drey tune -m to people: tables. */
#include "cli/commands/cmd_tune.h"

#include "cli/terminal/format.h"

static void show_steps(FILE *out, const drey_profile *p)
{
    char a[16], b[16];
    if (p->step_s[0] > 0)
        fprintf(out, "draft      a step takes %s for one node, %s for %d\n",
                format_seconds(a, p->step_s[0]),
                format_seconds(b, p->step_s[DREY_PROFILE_NODES - 1]), DREY_PROFILE_NODES);
}

/* Prints shares by depth, down to the first depth at which guesses were never right. */
static void show_shares(FILE *out, const drey_pair_report *r)
{
    fprintf(out, "guesses    right by depth and rank, where those above were, of %lld\n",
            (long long)r->n_places);
    for (int depth = 0; depth < DREY_STATIC_DEPTHS; depth++) {
        double any = 0;
        for (int rank = 0; rank < DREY_STATIC_RANKS; rank++)
            any += r->trees.share[depth][rank];
        if (any <= 0)
            break;
        fprintf(out, "  %4d    ", depth + 1);
        for (int rank = 0; rank < DREY_STATIC_RANKS; rank++)
            fprintf(out, " %5.1f%%", 100 * r->trees.share[depth][rank]);
        fprintf(out, "\n");
    }
}

void tune_table(FILE *out, const drey_pair_report *r)
{
    char a[16], b[16], c[16];
    fprintf(out, "passes     %s for one row, %s for 8, %s for 64\n",
            format_seconds(a, r->profile.pass_s[0]), format_seconds(b, r->profile.pass_s[7]),
            format_seconds(c, r->profile.pass_s[63]));
    if (r->streamed_bytes_per_pass)
        fprintf(out, "disk       every pass reads %s\n",
                format_bytes(a, (double)r->streamed_bytes_per_pass));
    show_steps(out, &r->profile);
    if (r->trees.n_trees == 0)
        return;
    show_shares(out, r);
    fprintf(out, "static trees\n  rows  expected  held out       pass   drafting  tokens/s\n");
    for (int32_t i = 0; i < r->trees.n_trees; i++) {
        const drey_static_tree *t = &r->trees.tree[i];
        fprintf(out, "  %4d %9.2f %9.2f %10s %10s %9s%s\n", t->width, t->expected_tokens,
                t->measured_tokens, format_seconds(a, t->pass_s), format_seconds(b, t->draft_s),
                format_rate(c, t->tokens_per_s), i == r->trees.best ? "  best" : "");
    }
}

/* A tree of one row is no draft. */
void tune_verdict(FILE *out, const drey_pair_report *r)
{
    const drey_static_trees *all = &r->trees;
    const double *pass_s = r->profile.pass_s;
    if (all->n_trees > 0 && all->best > 0) {
        const drey_static_tree *best = &all->tree[all->best];
        fprintf(out, "drafting pays up to %d rows: %.2g times as fast as without\n", best->width,
                best->tokens_per_s / all->tree[0].tokens_per_s);
    } else if (all->n_trees > 0) {
        fputs("drafting does not pay while the weights are in memory: it costs more than it "
              "brings\n",
              out);
    } else {
        fprintf(out, "a pass of 8 rows takes %.2g times as long as one of a single row\n",
                pass_s[7] / pass_s[0]);
    }
    if (r->streamed_bytes_per_pass)
        fputs("that is the computing alone; the more of a pass is read from the disk, the more "
              "drafting pays\n",
              out);
    if (r->profile.spread > DREY_PROFILE_BUSY)
        fprintf(out,
                "other programs were at work, and slow rounds took %.2g times as long as fast "
                "ones: measure again when the machine is quiet, or remove this by --forget\n",
                r->profile.spread);
}

void routes_table(FILE *out, const drey_routes *r)
{
    fprintf(out, "experts    of %lld tokens, slots for 10, 20, 30, 50 %% of a layer's experts hold",
            (long long)r->n_tokens);
    for (int i = 0; i < 4; i++) {
        const double shares[] = {0.1, 0.2, 0.3, 0.5};
        fprintf(out, "%s %.0f %%", i ? "," : "",
                100 * drey_routes_hits(r, shares[i] * r->n_experts));
    }
    fputc('\n', out);
}

/* ---- Units ---- */

static void put_shares(FILE *out, const double *share, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        fprintf(out, "%s%.0f", i ? ":" : "", 100 * share[i]);
}

static double alone_sum_s(const drey_units_report *r, const drey_units_width *w)
{
    double speed = 0;
    for (int32_t i = 0; i < r->n_units; i++)
        speed += w->alone_s[i] > 0 ? 1 / w->alone_s[i] : 0;
    return speed > 0 ? 1 / speed : 0;
}

/* After the names of a table's columns. */
static void put_rule(FILE *out, int n_columns)
{
    for (int i = 0; i < n_columns; i++)
        fputs("|---", out);
    fputs("|\n", out);
}

static void products_table(FILE *out, const drey_units_report *r)
{
    char a[16];
    fprintf(out, "| rows | unit alone | shares |");
    for (int i = 0; i < DREY_UNITS_SIDES; i++)
        fprintf(out, " %s |", drey_units_side_name((drey_units_side)i));
    fprintf(out, " of both alone |\n");
    put_rule(out, DREY_UNITS_SIDES + 4);
    for (int32_t k = 0; k < r->n_widths; k++) {
        const drey_units_width *w = &r->widths[k];
        const double *s = w->side_s;
        fprintf(out, "| %d | ", w->rows);
        for (int32_t i = 0; i < r->n_units; i++)
            fprintf(out, "%s%s", i ? ", " : "", format_seconds(a, w->alone_s[i]));
        fputs(" | ", out);
        put_shares(out, w->share, r->n_units);
        for (int i = 0; i < DREY_UNITS_SIDES; i++)
            fprintf(out, " | %s", format_seconds(a, s[i]));
        fprintf(out, " | %.2f |\n", alone_sum_s(r, w) / s[DREY_UNITS_STATIC]);
    }
}

static void attention_table(FILE *out, const drey_boundaries_report *r)
{
    char a[16];
    fprintf(out, "\n| attention after |");
    for (int i = 0; i < DREY_BOUNDARY_SIDES; i++)
        fprintf(out, " %s |", drey_boundary_side_name((drey_boundary_side)i));
    fprintf(out, " boundary |\n");
    put_rule(out, DREY_BOUNDARY_SIDES + 2);
    for (int32_t k = 0; k < r->n_contexts; k++) {
        const drey_boundary_context *c = &r->contexts[k];
        fprintf(out, "| %d |", c->n_positions);
        for (int i = 0; i < DREY_BOUNDARY_SIDES; i++)
            fprintf(out, " %s |", format_seconds(a, c->side_s[i]));
        fprintf(out, " %+.2f |\n", (double)c->boundary);
    }
}

void units_table(FILE *out, const drey_units_report *products,
                 const drey_boundaries_report *attention)
{
    products_table(out, products);
    if (attention->n_contexts)
        attention_table(out, attention);
}
