/* Verdicts: see verdict_text.h.
 *
 *   qwen2.5-32b-q4_k_m, 18.5G. In 12.0G 60 % of it stays in memory, and 6.93G are read for each
 *   pass. On this disk (3.00G/s) about 3.8 tokens/s with qwen2.5-0.5b-q4_k_m as draft, 0.39
 *   without. It was measured while the machine was busy. 19.0G would hold all of it: about 7.2
 *   tokens/s.
 *
 * A number that is not known is left out. */
#include "tune/outlook/verdict_text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/path.h"
#include "common/size_text.h"
#include "common/utf8.h"
#include "drey/research.h"
#include "tune/measured.h"

typedef struct sentence { /* grows in out[0..capacity) */
    char *out;
    size_t n, capacity;
} sentence;

static void add(sentence *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(sentence *s, const char *format, ...)
{
    va_list arguments;
    if (s->n >= s->capacity)
        return;
    va_start(arguments, format);
    int n = vsnprintf(s->out + s->n, s->capacity - s->n, format, arguments);
    va_end(arguments);
    s->n += n > 0 ? (size_t)n : 0;
}

static void add_speed(sentence *s, double tokens_per_s)
{
    char rate[16];
    add(s, "%s", format_rate_about(rate, tokens_per_s));
}

/* ---- The model ---- */

/* The first characters of a file's name, which may be any bytes: the text is one line of UTF-8. */
static void add_clean(sentence *s, const char *name, size_t n)
{
    const size_t most = 100;
    bool plain;
    for (size_t i = 0, taken; i < n; i += taken) {
        taken = utf8_look(name + i, n - i, &plain);
        if (i + taken > most)
            return;
        add(s, "%.*s", plain ? (int)taken : 1, plain ? name + i : "?");
    }
}

/* A file's name as people call the model: without its ending, or a part's number. */
static void add_name(sentence *s, const drey_model *model)
{
    static const char part[] = "-00001-of-";
    const char *name = path_name(model_path(model));
    const char *end = strstr(name, part);
    size_t n = strlen(name);
    if (path_ends(name, ".gguf"))
        n -= strlen(".gguf");
    if (end && (size_t)(end - name) < n)
        n = (size_t)(end - name);
    add_clean(s, name, n);
}

/* "7b", "1.5B", "135M" in a name, which says better what the parameters are than their count: that
 * has a head twice where a file has it twice. */
static bool names_parameters(const char *name)
{
    for (const char *p = name; *p; p++) {
        bool inside = p > name && isalnum((unsigned char)p[-1]);
        size_t n = strspn(p, "0123456789.");
        if (n > 0 && !inside && strchr("bBmM", p[n]) && p[n] && !isalnum((unsigned char)p[n + 1]))
            return true;
    }
    return false;
}

static void add_model(sentence *s, const drey_model *model)
{
    const double billion = 1e9, million = 1e6;
    drey_model_info info;
    drey_experts experts;
    char size[16];
    drey_model_describe(model, &info);
    add_name(s, model);
    const double n = (double)info.n_parameters;
    if (!names_parameters(path_name(info.path)))
        add(s, n >= billion ? ", %.1fB parameters" : ", %.3gM parameters",
            n >= billion ? n / billion : n / million);
    if (drey_model_experts(model, &experts))
        add(s, ", a mixture of %d experts", experts.n_experts);
    add(s, ", %s. ", format_bytes(size, (double)info.file_bytes));
}

/* ---- What stays ---- */

static int percent_below_all(double part, double whole)
{
    int percent = whole > 0 ? (int)(100 * part / whole + 0.5) : 0;
    return percent > 99 ? 99 : percent;
}

/* A mixture reads what a token's experts lack. */
static void add_mixture(sentence *s, const drey_plan *t)
{
    char read[16];
    add(s, "%d %% of it stays in memory, with ",
        percent_below_all((double)(t->pinned_bytes + t->expert_bytes), (double)t->target_bytes));
    add(s, "%d %% of the experts that a token needs; ", (int)(100 * t->expert_hits + 0.5));
    add(s, "%s are read for each", format_bytes(read, (double)t->streamed_bytes_per_pass));
}

static void add_reads(sentence *s, const drey_engine_options *o, const drey_plan *t)
{
    char read[16];
    double kept = (double)t->pinned_bytes, streamed = (double)t->streamed_bytes_per_pass;
    add(s, "%d %% of it stays in memory, and %s are read for each pass",
        percent_below_all(kept, kept + streamed), format_bytes(read, streamed));
    if (o->exit != DREY_EXIT_OFF)
        add(s, " that goes through all layers");
}

static void add_memory(sentence *s, const drey_engine_options *o, const drey_plan *t)
{
    char size[16];
    drey_model_info info;
    drey_model_describe(o->target, &info);
    if (t->budget_bytes == DREY_MEMORY_UNLIMITED)
        add(s, "Without a limit ");
    else
        add(s, "In %s ", format_bytes(size, (double)t->budget_bytes));
    if (t->streamed_bytes_per_pass == 0)
        add(s, "all of it%s stays in memory",
            info.n_encoder_layers > 0 ? " but its encoder, which is read for each input," : "");
    else if (t->n_experts)
        add_mixture(s, t);
    else
        add_reads(s, o, t);
    if (info.n_encoder_layers > 0 && t->streamed_bytes_per_pass > 0)
        add(s, "; its encoder is read for each input");
    if (t->kv_window)
        add(s, "; the text's keys and values go to a file after %lld of %d tokens",
            (long long)t->kv_window, t->n_context);
    add(s, ". ");
}

/* ---- How fast ---- */

static void add_drafter(sentence *s, const drey_engine_options *o)
{
    drey_drafter_info info;
    if (!drey_drafter_describe(o->drafter, &info))
        return;
    add(s, " with ");
    if (o->draft)
        add_name(s, o->draft);
    else
        add(s, "%s", info.with);
}

static void add_disk(sentence *s, const drey_plan *t)
{
    char rate[16];
    format_bytes(rate, t->speeds.disk_bytes_per_s);
    if (t->streamed_bytes_per_pass + t->kv_read_bytes == 0)
        add(s, "About ");
    else if (t->speeds.disk_measured)
        add(s, "On this disk (%s/s) about ", rate);
    else
        add(s, "On a disk of %s/s about ", rate);
}

static void add_speeds(sentence *s, const drey_engine_options *o, const drey_outlook *x)
{
    bool drafts = o->drafter != DREY_DRAFTER_NONE && x->plan.tree_rows > 1;
    if (x->tokens_per_s <= 0) {
        if (drafts) {
            add(s, "It drafts");
            add_drafter(s, o);
            add(s, ". ");
        }
        return;
    }
    add_disk(s, &x->plan);
    add_speed(s, x->tokens_per_s);
    add(s, " tokens/s");
    if (drafts)
        add_drafter(s, o);
    if (drafts && o->draft)
        add(s, " as draft");
    if (!drafts && o->policy != DREY_POLICY_DRAFT)
        add(s, " without a draft");
    if (drafts && x->alone_tokens_per_s > 0) {
        add(s, ", ");
        add_speed(s, x->alone_tokens_per_s);
        add(s, " without");
    }
    add(s, ". ");
}

/* A profile of the models themselves is another measurement. */
static void add_busy(sentence *s, const drey_engine_options *o, const drey_outlook *x)
{
    bool reads = x->plan.streamed_bytes_per_pass + x->plan.kv_read_bytes > 0;
    bool by_profile = o->profile && o->profile->pass_s[0] > 0;
    if (x->tokens_per_s > 0 && x->plan.speeds.measured_busy && (reads || !by_profile))
        add(s, "It was measured while the machine was busy. ");
}

static void add_better(sentence *s, const drey_outlook *x)
{
    char size[16];
    if (!x->better_bytes)
        return;
    format_bytes(size, (double)x->better_bytes);
    add(s, "%s would hold %s", size,
        x->better_is_whole      ? "all of it"
        : x->plan.n_experts > 0 ? "half of the experts that a token needs"
                                : "half of it");
    if (x->better_tokens_per_s > 0) {
        add(s, ": about ");
        add_speed(s, x->better_tokens_per_s);
        add(s, " tokens/s");
    }
    add(s, ". ");
}

void verdict_write(drey_outlook *x, const drey_engine_options *o)
{
    sentence s = {.out = x->verdict, .capacity = sizeof x->verdict};
    bool draft_writes = o->policy == DREY_POLICY_DRAFT && o->draft;
    add_model(&s, draft_writes ? o->draft : o->target);
    add_memory(&s, o, &x->plan);
    add_speeds(&s, o, x);
    add_busy(&s, o, x);
    add_better(&s, x);
    for (size_t n = strlen(x->verdict); n > 0 && x->verdict[n - 1] == ' '; n--)
        x->verdict[n - 1] = '\0';
}

/* ---- A budget that is more than there is ---- */

/* Memory that the plan uses, without what is spare. */
static uint64_t used_bytes(const drey_plan *p)
{
    return p->process_bytes + p->pinned_bytes + p->expert_bytes + p->draft_bytes + p->ring_bytes +
           p->kv_bytes + p->work_bytes + p->held_bytes + p->prefix_bytes + p->encoder_bytes;
}

void verdict_warn(drey_outlook *x, const drey_engine_options *o)
{
    char has[16], free[16], budget[16], used[16];
    uint64_t uses = used_bytes(&x->plan), there = x->available_bytes;
    bool is_limit = o->memory_bytes != DREY_MEMORY_UNLIMITED;
    if (there == 0 || o->memory_bytes == DREY_MEMORY_AUTO ||
        (is_limit ? o->memory_bytes : uses) <= there)
        return;
    sentence s = {.out = x->warning, .capacity = sizeof x->warning};
    format_bytes(free, (double)there);
    if (x->machine_is_cgroup)
        add(&s, "this process may use %s (its control group)", free);
    else
        add(&s, "this machine has %s of memory, %s of it free",
            format_bytes(has, (double)x->machine_bytes), free);
    if (is_limit)
        add(&s, "; the budget of %s is more than that",
            format_bytes(budget, (double)o->memory_bytes));
    add(&s,
        uses > there ? "%s %s will be used, and the process may be killed" : "%s %s will be used",
        is_limit ? ":" : "; about", format_bytes(used, (double)uses));
}
