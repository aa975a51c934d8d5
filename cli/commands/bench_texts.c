/* What benchmarks of texts share: see bench_texts.h. */
#include "cli/commands/bench_texts.h"

#include "cli/files/csv_rows.h"
#include "cli/terminal/terminal.h"

#include <stdlib.h>

bool text_hash_id(void *user, int32_t id)
{
    text_hash *h = user;
    for (int i = 0; i < 4; i++)
        h->value = (h->value ^ ((uint32_t)id >> (8 * i) & 255)) * UINT64_C(0x100000001b3);
    if (++h->n == TEXT_HASH_HEAD)
        text_hash_put(h, h->head, sizeof h->head);
    return true;
}

void text_hash_put(const text_hash *h, char *out, size_t size)
{
    snprintf(out, size, "%016llx", (unsigned long long)h->value);
}

drey_status bench_text_write(bench_text *out, const drey_engine_options *options,
                             const bench_prompt *prompt, int32_t n_predict,
                             const drey_sampling *sampling, drey_error *err)
{
    drey_engine *engine = NULL;
    drey_session *session = NULL;
    drey_generate_options g;
    *out = (bench_text){.hash = text_hash_begin()};
    drey_generate_options_init(&g);
    g.n_predict = n_predict;
    if (sampling)
        g.sampling = *sampling;
    g.ignore_eos = true;
    g.on_token = text_hash_id;
    g.user = &out->hash;
    drey_status status = drey_engine_open(&engine, options, err);
    if (status == DREY_OK)
        status = drey_session_open(&session, engine, err);
    if (status == DREY_OK)
        status =
            drey_session_generate(session, prompt->ids, prompt->n_ids, &g, &out->statistics, err);
    if (status == DREY_OK) {
        drey_session_speculation(session, &out->speculation);
        drey_session_exits(session, &out->exits);
    }
    drey_session_close(&session);
    drey_engine_close(&engine);
    return status;
}

static int budgets_of(const cli_settings *s)
{
    return s->n_budgets ? s->n_budgets : 1; /* auto */
}

int text_count(const cli_settings *s, int n_prompts, int n_sides)
{
    return (s->n_rounds ? s->n_rounds : 1) * n_prompts * budgets_of(s) * n_sides;
}

text_place text_place_of(const cli_settings *s, int n_prompts, int n_sides, int i)
{
    int n_budgets = budgets_of(s);
    return (text_place){.side = i % n_sides,
                        .budget = i / n_sides % n_budgets,
                        .prompt = i / n_sides / n_budgets % n_prompts,
                        .round = i / n_sides / n_budgets / n_prompts};
}

double kept_mib(uint64_t bytes)
{
    return bytes == DREY_MEMORY_UNLIMITED ? 0 : csv_kept((double)bytes / 1048576);
}

uint64_t bytes_of_mib(double mib)
{
    return mib > 0 ? (uint64_t)(mib * 1048576) : DREY_MEMORY_UNLIMITED;
}

const char *budget_words(char *out, double mib)
{
    snprintf(out, 32, mib > 0 ? "%.0f MiB" : "in memory", mib);
    return out;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_of(double *values, size_t n)
{
    if (n == 0)
        return 0;
    qsort(values, n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

drey_status tell_texts(int n_texts, int n_other, int n_failed, FILE *out, cJSON *root,
                       drey_error *err)
{
    cJSON_AddNumberToObject(root, "other_texts", n_other);
    cJSON_AddNumberToObject(root, "failed", n_failed);
    if (!n_other && n_texts > 1)
        fprintf(out, "all sides that are not lossy wrote the same texts\n");
    if (n_other)
        return fail(err, DREY_ERR_INTERNAL, "%d texts differ that have to be the same", n_other);
    if (n_failed)
        return fail(err, DREY_ERR_MEMORY, "%d texts could not be written", n_failed);
    return DREY_OK;
}
