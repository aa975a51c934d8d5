/* Usage, timings, tokens: see answer_parts.h. */
#include "serve/api/answer_parts.h"

#include <math.h>
#include <string.h>

static double per(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void member(text_out *out, const char *key, double value, bool last)
{
    out_format(out, "\"%s\":", key);
    out_number(out, value);
    out_text(out, last ? "}" : ",");
}

void part_usage(const task *t, text_out *out)
{
    long long n_written = 0, n_cached = t->jobs[0]->counts.n_cached, n_prompt = (long long)t->n_ids;
    for (int32_t i = 0; i < t->n_choices; i++)
        n_written += t->jobs[i]->statistics.generated_tokens;
    out_format(out,
               "\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,\"total_tokens\":%lld,"
               "\"prompt_tokens_details\":{\"cached_tokens\":%lld}}",
               n_prompt, n_written, n_prompt + n_written, n_cached);
}

static void put_timings(text_out *out, double n_cached, double n_prompt, double prompt_s,
                        double n_written, double written_s)
{
    out_text(out, "\"timings\":{");
    member(out, "cache_n", n_cached, false);
    member(out, "prompt_n", n_prompt, false);
    member(out, "prompt_ms", 1e3 * prompt_s, false);
    member(out, "prompt_per_token_ms", per(1e3 * prompt_s, n_prompt), false);
    member(out, "prompt_per_second", per(n_prompt, prompt_s), false);
    member(out, "predicted_n", n_written, false);
    member(out, "predicted_ms", 1e3 * written_s, false);
    if (n_written < 2) /* the first token belongs to the prompt: alone it has no speed */
        written_s = 0;
    member(out, "predicted_per_token_ms", per(1e3 * written_s, n_written), false);
    member(out, "predicted_per_second", per(n_written, written_s), true);
}

/* Sums over the choices, but for times, which pass for all of them at once. */
void part_timings(const task *t, text_out *out)
{
    drey_statistics sum = {0};
    double n_cached = 0;
    for (int32_t i = 0; i < t->n_choices; i++) {
        const drey_statistics *s = &t->jobs[i]->statistics;
        n_cached += (double)t->jobs[i]->counts.n_cached;
        sum.prompt_tokens += (int64_t)t->n_ids - t->jobs[i]->counts.n_cached;
        sum.generated_tokens += s->generated_tokens;
        sum.prompt_s = fmax(sum.prompt_s, s->prompt_s);
        sum.decode_s = fmax(sum.decode_s, s->decode_s);
        sum.drafted += s->drafted;
        sum.accepted += s->accepted;
    }
    put_timings(out, n_cached, (double)sum.prompt_tokens, sum.prompt_s,
                (double)sum.generated_tokens, sum.decode_s);
    if (sum.drafted == 0)
        return;
    out->n--; /* the bracket */
    out_format(out, ",\"draft_n\":%lld,\"draft_n_accepted\":%lld}", (long long)sum.drafted,
               (long long)sum.accepted);
}

void part_timings_now(const job *j, text_out *out)
{
    double s = serve_clock_s() - j->began_s, n = (double)j->counts.n_tokens;
    double prompt_s = j->counts.first_s > 0 ? j->counts.first_s - j->began_s : s;
    put_timings(out, (double)j->counts.n_cached,
                (double)j->task->n_ids - (double)j->counts.n_cached, prompt_s, n, s - prompt_s);
}

void part_drey(const task *t, text_out *out)
{
    const job *j = t->jobs[0];
    const drey_statistics *s = &j->statistics;
    out_format(out, "\"drey\":{\"seed\":%llu,\"finish\":\"%s\",",
               (unsigned long long)t->sampling.seed, drey_finish_name(s->finish));
    member(out, "waited_s", j->began_s - j->queued_s, false);
    member(out, "first_token_s", s->first_token_s, false);
    member(out, "tokens_per_s", s->tokens_per_s, false);
    member(out, "ceiling_tokens_per_s", s->ceiling_tokens_per_s, false);
    member(out, "tokens_per_pass", s->tokens_per_pass, false);
    member(out, "passes", (double)s->n_passes, false);
    member(out, "drafted", (double)s->drafted, false);
    member(out, "accepted", (double)s->accepted, false);
    member(out, "stall_share", s->stall_share, false);
    member(out, "verify_share", s->verify_share, false);
    member(out, "draft_share", s->draft_share, false);
    member(out, "read_bytes", (double)s->read_bytes, false);
    member(out, "disk_bytes_per_s", s->disk_bytes_per_s, false);
    member(out, "experts_used", (double)s->experts_used, false);
    member(out, "experts_read", (double)s->experts_read, false);
    member(out, "peak_memory_bytes", (double)s->peak_memory_bytes, true);
}

/* A text that was interrupted is shorter than asked for: to clients that know two reasons, its
 * length. */
const char *part_finish(const job *j)
{
    return j->statistics.finish == DREY_FINISH_STOP ? "stop" : "length";
}

/* ---- Tokens ---- */

/* Its bytes; n of them. */
static const char *token_bytes(const drey_model *m, int32_t id, char bytes[1024], size_t *n)
{
    if (drey_detokenize(m, &id, 1, DREY_TOKENIZE_SPECIAL, bytes, 1024, n, NULL) != DREY_OK)
        *n = 0;
    return bytes;
}

void part_token_text(const drey_model *m, int32_t id, text_out *out)
{
    char bytes[1024];
    size_t n;
    token_bytes(m, id, bytes, &n);
    out_string(out, bytes, n);
}

/* Its bytes as array. */
static void put_token_bytes(const drey_model *m, int32_t id, text_out *out)
{
    char bytes[1024];
    size_t n;
    token_bytes(m, id, bytes, &n);
    out_text(out, "[");
    for (size_t i = 0; i < n; i++)
        out_format(out, "%s%u", i ? "," : "", (unsigned char)bytes[i]);
    out_text(out, "]");
}

static void put_token(const drey_model *m, const drey_logprob *token, text_out *out)
{
    out_format(out, "{\"id\":%d,\"token\":", token->id);
    part_token_text(m, token->id, out);
    out_text(out, ",\"bytes\":");
    put_token_bytes(m, token->id, out);
    /* JSON has no -Infinity: what can never come is far away, as other servers have it. */
    out_format(out, ",\"logprob\":%.9g",
               (double)(token->logprob >= -9999.0f ? token->logprob : -9999.0f));
}

void part_token(const drey_model *m, const drey_logprob *all, int32_t n, text_out *out)
{
    put_token(m, &all[0], out);
    out_text(out, ",\"top_logprobs\":[");
    for (int32_t i = 1; i < n; i++) {
        out_text(out, i > 1 ? "," : "");
        put_token(m, &all[i], out);
        out_text(out, "}");
    }
    out_text(out, "]}");
}
