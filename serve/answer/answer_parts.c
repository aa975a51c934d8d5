/* Usage, timings, tokens, and what answers share: see answer_parts.h. */
#include "serve/answer/answer_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/hash.h"
#include "common/utf8.h"
#include "serve/ask/message_ends.h"

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
    size_t n_came = 0;
    for (int32_t i = 0; i < t->n_choices; i++) {
        n_written += t->jobs[i]->statistics.generated_tokens;
        n_came += t->jobs[i]->counts.n_as_predicted;
    }
    out_format(out,
               "\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,\"total_tokens\":%lld,"
               "\"prompt_tokens_details\":{\"cached_tokens\":%lld}",
               n_prompt, n_written, n_prompt + n_written, n_cached);
    if (t->prompts.n_predicted > 0)
        out_format(out,
                   ",\"completion_tokens_details\":{\"accepted_prediction_tokens\":%zu,"
                   "\"rejected_prediction_tokens\":%zu}",
                   n_came, t->prompts.n_predicted * (size_t)t->n_choices - n_came);
    out_text(out, "}");
}

/* Each text's first token belongs to its prompt: the other ones have a speed. */
static void put_timings(text_out *out, double n_cached, double n_prompt, double prompt_s,
                        double n_written, double n_first, double written_s)
{
    double n_after = n_written > n_first ? n_written - n_first : 0;
    double after_s = n_after > 0 ? written_s : 0;
    out_text(out, "\"timings\":{");
    member(out, "cache_n", n_cached, false);
    member(out, "prompt_n", n_prompt, false);
    member(out, "prompt_ms", 1e3 * prompt_s, false);
    member(out, "prompt_per_token_ms", per(1e3 * prompt_s, n_prompt), false);
    member(out, "prompt_per_second", per(n_prompt, prompt_s), false);
    member(out, "predicted_n", n_written, false);
    member(out, "predicted_ms", 1e3 * written_s, false);
    member(out, "predicted_per_token_ms", per(1e3 * after_s, n_after), false);
    member(out, "predicted_per_second", per(n_after, after_s), true);
}

/* Of the jobs [from, to): sums, but for times, which pass for all of them at once. */
static void put_times(const task *t, int32_t from, int32_t to, text_out *out)
{
    drey_statistics sum = {0};
    double n_cached = 0, n_first = 0;
    for (int32_t i = from; i < to; i++) {
        const drey_statistics *s = &t->jobs[i]->statistics;
        n_cached += (double)t->jobs[i]->counts.n_cached;
        sum.prompt_tokens += (int64_t)job_n_prompt(t->jobs[i]) - t->jobs[i]->counts.n_cached;
        sum.generated_tokens += s->generated_tokens;
        n_first += s->generated_tokens > 0;
        sum.prompt_s = fmax(sum.prompt_s, s->prompt_s);
        sum.decode_s = fmax(sum.decode_s, s->decode_s);
        sum.drafted += s->drafted;
        sum.accepted += s->accepted;
    }
    put_timings(out, n_cached, (double)sum.prompt_tokens, sum.prompt_s,
                (double)sum.generated_tokens, n_first, sum.decode_s);
    if (sum.drafted == 0)
        return;
    out->n--; /* the bracket */
    out_format(out, ",\"draft_n\":%lld,\"draft_n_accepted\":%lld}", (long long)sum.drafted,
               (long long)sum.accepted);
}

void part_timings(const task *t, text_out *out)
{
    put_times(t, 0, t->n_choices, out);
}

void part_timings_now(const job *j, text_out *out)
{
    double s = serve_clock_s() - j->began_s, n = (double)j->counts.n_tokens;
    double prompt_s = j->counts.first_s > 0 ? j->counts.first_s - j->began_s : s;
    put_timings(out, (double)j->counts.n_cached,
                (double)job_n_prompt(j) - (double)j->counts.n_cached, prompt_s, n, 1, s - prompt_s);
}

/* What was known of the prompt, from where, and where it began to differ. */
static void put_prefix(const job *j, text_out *out)
{
    const task *t = j->task;
    const drey_statistics *s = &j->statistics;
    int64_t own = s->cached_tokens - s->copied_tokens - s->restored_tokens;
    out_text(out, "\"prefix\":{");
    member(out, "tokens", (double)s->cached_tokens, false);
    member(out, "session", (double)own, false);
    member(out, "other_session", (double)s->copied_tokens, false);
    member(out, "memory", (double)(s->restored_tokens - s->folder_tokens), false);
    member(out, "folder", (double)s->folder_tokens, false);
    member(out, "restore_s", s->restore_s, false);
    bool differs = s->same_tokens < (int64_t)job_n_prompt(j);
    int32_t message = differs ? message_ends_at(t, s->same_tokens) : -1;
    if (differs)
        out_format(out, "\"differs_at\":%lld,", (long long)s->same_tokens);
    else
        out_text(out, "\"differs_at\":null,");
    if (message >= 0)
        out_format(out, "\"differs_at_message\":%d},", message);
    else
        out_text(out, "\"differs_at_message\":null},");
}

/* Nothing where exits are off. */
static void put_exits(const drey_exits *e, text_out *out)
{
    if (e->mode == DREY_EXIT_OFF)
        return;
    out_format(out, "\"exits\":{\"mode\":\"%s\",", drey_exit_name(e->mode));
    member(out, "tokens", (double)e->tokens, false);
    member(out, "left", (double)e->left, false);
    member(out, "layers_per_token", e->layers_per_token, false);
    member(out, "compared", (double)e->compared, false);
    member(out, "agreed", (double)e->agreed, false);
    member(out, "taken_back", (double)e->taken_back, true);
    out_text(out, ",");
}

static void put_drey(const job *j, text_out *out)
{
    const drey_statistics *s = &j->statistics;
    out_format(out, "\"drey\":{\"seed\":%llu,\"finish\":\"%s\",",
               (unsigned long long)j->task->sampling.of.seed, drey_finish_name(s->finish));
    put_prefix(j, out);
    put_exits(&j->exits, out);
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
    member(out, "joules", s->joules, false);
    member(out, "peak_memory_bytes", (double)s->peak_memory_bytes, true);
}

void part_drey(const task *t, text_out *out)
{
    put_drey(t->jobs[0], out);
}

void part_call_id(const task *t, int32_t choice, int32_t call, char out[static CALL_ID_BYTES])
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char of[80];
    int n = snprintf(of, sizeof of, "%s %d %d", t->id.text, choice, call);
    uint64_t hash = hash64_of(of, (size_t)n);
    for (int i = 0; i < CALL_ID_BYTES - 1; i++, hash /= 62)
        out[i] = letters[hash % 62];
    out[CALL_ID_BYTES - 1] = 0;
}

/* A text that was interrupted is shorter than asked for: to clients that know two reasons, its
 * length. */
const char *part_finish(const job *j)
{
    return j->statistics.finish == DREY_FINISH_STOP ? "stop" : "length";
}

const char *part_stop_text(const job *j)
{
    const drey_statistics *s = &j->statistics;
    bool stopped = s->finish == DREY_FINISH_STOP && s->stop_text > 0;
    return stopped ? j->task->stops.of[s->stop_text - 1] : NULL;
}

/* ---- Tokens ---- */

/* Its bytes; n of them. */
static const char *token_bytes(const drey_model *m, int32_t id, char bytes[1024], size_t *n)
{
    const int flags = DREY_TOKENIZE_SPECIAL | DREY_TOKENIZE_INNER;
    if (drey_detokenize(m, &id, 1, flags, bytes, 1024, n, NULL) != DREY_OK)
        *n = 0;
    return bytes;
}

void part_token_text(const drey_model *m, int32_t id, text_out *out)
{
    char bytes[1024];
    size_t n;
    token_bytes(m, id, bytes, &n);
    if (utf8_is_whole(bytes, n)) {
        out_string(out, bytes, n);
        return;
    }
    out_text(out, "\"bytes:");
    for (size_t i = 0; i < n; i++)
        out_format(out, "\\\\x%02x", (unsigned char)bytes[i]);
    out_text(out, "\"");
}

/* Its text without the parts of characters that other tokens have the rest of: "bytes" has them. */
static void put_whole_characters(const drey_model *m, int32_t id, text_out *out)
{
    char bytes[1024];
    size_t n, from = 0, cut = 0;
    token_bytes(m, id, bytes, &n);
    while (from < n && from < 3 && ((unsigned char)bytes[from] & 0xC0) == 0x80)
        from++;
    for (size_t k = 1; k <= 3 && k <= n - from; k++)
        if (utf8_length((const uint8_t *)bytes + n - k, k) == UTF8_UNFINISHED)
            cut = k;
    out_string(out, bytes + from, n - from - cut);
}

void part_token_bytes(const drey_model *m, int32_t id, text_out *out)
{
    char bytes[1024];
    size_t n;
    token_bytes(m, id, bytes, &n);
    out_text(out, "[");
    for (size_t i = 0; i < n; i++)
        out_format(out, "%s%u", i ? "," : "", (unsigned char)bytes[i]);
    out_text(out, "]");
}

static void put_token(const drey_model *m, const drey_logprob *token, bool shares, text_out *out)
{
    out_format(out, "{\"id\":%d,\"token\":", token->id);
    put_whole_characters(m, token->id, out);
    out_text(out, ",\"bytes\":");
    part_token_bytes(m, token->id, out);
    if (shares) {
        out_format(out, ",\"prob\":%.9g", exp((double)token->logprob));
        return;
    }
    /* JSON has no -Infinity: what can never come is far away, as other servers have it. */
    out_format(out, ",\"logprob\":%.9g",
               (double)(token->logprob >= -9999.0f ? token->logprob : -9999.0f));
}

void part_token(const drey_model *m, const drey_logprob *all, int32_t n, bool shares, text_out *out)
{
    put_token(m, &all[0], shares, out);
    out_format(out, ",\"%s\":[", shares ? "top_probs" : "top_logprobs");
    for (int32_t i = 1; i < n; i++) {
        out_text(out, i > 1 ? "," : "");
        put_token(m, &all[i], shares, out);
        out_text(out, "}");
    }
    out_text(out, "]}");
}

/* ---- What OpenAI's two forms share ---- */

void part_front(const task *t, const shared *s, const char *object, text_out *out)
{
    out_format(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", t->id.text,
               object, (long long)t->id.created);
    out_string(out, s->options->name, strlen(s->options->name));
    out_format(out, ",\"system_fingerprint\":\"drey-%s\",", drey_version());
}

void part_end(const task *t, const shared *s, text_out *out)
{
    part_timings(t, out);
    out_text(out, ",");
    part_drey(t, out);
    if (t->events.verbose)
        part_verbose(t->jobs[0], s, out);
}

void part_job_end(const job *j, text_out *out)
{
    put_times(j->task, j->choice, j->choice + 1, out);
    out_text(out, ",");
    put_drey(j, out);
}

void part_tail(const answer *a, const shared *s, text_out *out)
{
    out_text(out, "],");
    part_usage(a->task, out);
    out_text(out, ",");
    part_end(a->task, s, out);
    out_text(out, "}");
}

void part_text(const record *text, text_out *out)
{
    out_string(out, text ? text->bytes : "", text ? text->n : 0);
}

void part_open_chunk(const task *t, const shared *s, const char *object, text_out *out)
{
    out_text(out, "data: ");
    part_front(t, s, object, out);
}

void part_close_chunk(text_out *out)
{
    out_text(out, "}\n\n");
}

static void put_progress(const job *j, const record *r, text_out *out)
{
    record_progress p;
    memcpy(&p, r->bytes, sizeof p);
    if (j->task->events.timings) {
        out_text(out, ",");
        put_timings(out, (double)j->counts.n_cached, (double)p.done, p.done ? p.s : 0, 0, 0, 0);
    }
    long long cached = (long long)j->counts.n_cached;
    out_format(out,
               ",\"prompt_progress\":{\"total\":%lld,\"cache\":%lld,\"processed\":%lld,"
               "\"time_ms\":%.0f}",
               (long long)p.total + cached, cached, (long long)p.done + cached, 1e3 * p.s);
}

void part_piece(const job *j, const piece *p, text_out *out)
{
    if (j->task->events.timings && p->text) {
        out_text(out, ",");
        part_timings_now(j, out);
    }
    if (p->progress)
        put_progress(j, p->progress, out);
    if (p->shown) {
        out_text(out, ",\"drey\":{\"provisional\":");
        out_string(out, j->shown, j->n_shown);
        out_text(out, "}");
    }
}

void part_close_last(const answer *a, const shared *s, text_out *out)
{
    if (answer_all_ended(a) && !a->task->events.usage) {
        out_text(out, ",");
        part_end(a->task, s, out);
    }
    part_close_chunk(out);
}

bool part_last(const answer *a, const shared *s, const char *object, text_out *out)
{
    int32_t n_before = a->task->events.usage ? 1 : 0;
    if (a->pass < n_before) {
        part_open_chunk(a->task, s, object, out);
        out_text(out, "\"choices\":[],");
        part_usage(a->task, out);
        out_text(out, ",");
        part_end(a->task, s, out);
        part_close_chunk(out);
    } else if (a->pass == n_before) {
        out_text(out, "data: [DONE]\n\n");
    }
    return a->pass <= n_before;
}
