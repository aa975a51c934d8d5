/* Usage, timings, tokens, and what answers share: see answer_parts.h. */
#include "serve/answer/answer_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/hash.h"
#include "common/utf8.h"
#include "serve/parse/message_ends.h"

static double per(double a, double b)
{
    return b > 0 ? a / b : 0;
}

void part_usage(const request *t, text_out *out)
{
    long long n_written = 0, n_prompt = (long long)t->prompts.n_ids;
    size_t n_came = 0;
    for (int32_t i = 0; i < t->n_choices; i++) {
        n_written += t->sequences[i]->statistics.generated_tokens;
        n_came += t->sequences[i]->counts.n_as_predicted;
    }
    out_json(out,
             "usage:{prompt_tokens:%lld,completion_tokens:%lld,total_tokens:%lld,"
             "prompt_tokens_details:{cached_tokens:%lld}",
             n_prompt, n_written, n_prompt + n_written,
             (long long)t->sequences[0]->counts.n_cached);
    if (t->prompts.n_predicted > 0)
        out_json(out,
                 "completion_tokens_details:{accepted_prediction_tokens:%zu,"
                 "rejected_prediction_tokens:%zu}",
                 n_came, t->prompts.n_predicted * (size_t)t->n_choices - n_came);
    out_json(out, "}");
}

/* Each text's first token belongs to its prompt: the other ones have a speed. The object stays
 * open. */
static void put_timings(text_out *out, double n_cached, double n_prompt, double prompt_s,
                        double n_written, double n_first, double written_s)
{
    double n_after = n_written > n_first ? n_written - n_first : 0;
    double after_s = n_after > 0 ? written_s : 0;
    out_json(out,
             "timings:{cache_n:%g,prompt_n:%g,prompt_ms:%g,prompt_per_token_ms:%g,"
             "prompt_per_second:%g,predicted_n:%g,predicted_ms:%g,predicted_per_token_ms:%g,"
             "predicted_per_second:%g",
             n_cached, n_prompt, 1e3 * prompt_s, per(1e3 * prompt_s, n_prompt),
             per(n_prompt, prompt_s), n_written, 1e3 * written_s, per(1e3 * after_s, n_after),
             per(n_after, after_s));
}

/* Puts out sums of the sequences [from, to), but the longest times, which pass for all at once. */
static void put_times(const request *t, int32_t from, int32_t to, text_out *out)
{
    drey_statistics sum = {0};
    double n_cached = 0, n_first = 0;
    for (int32_t i = from; i < to; i++) {
        const drey_statistics *s = &t->sequences[i]->statistics;
        n_cached += (double)t->sequences[i]->counts.n_cached;
        sum.prompt_tokens +=
            (int64_t)sequence_n_prompt(t->sequences[i]) - t->sequences[i]->counts.n_cached;
        sum.generated_tokens += s->generated_tokens;
        n_first += s->generated_tokens > 0;
        sum.prompt_s = fmax(sum.prompt_s, s->prompt_s);
        sum.decode_s = fmax(sum.decode_s, s->decode_s);
        sum.drafted += s->drafted;
        sum.accepted += s->accepted;
    }
    put_timings(out, n_cached, (double)sum.prompt_tokens, sum.prompt_s,
                (double)sum.generated_tokens, n_first, sum.decode_s);
    if (sum.drafted > 0)
        out_json(out, "draft_n:%lld,draft_n_accepted:%lld", (long long)sum.drafted,
                 (long long)sum.accepted);
    out_json(out, "}");
}

void part_timings(const request *t, text_out *out)
{
    put_times(t, 0, t->n_choices, out);
}

void part_timings_now(const sequence *j, text_out *out)
{
    double s = serve_clock_s() - j->began_s, n = (double)j->counts.n_tokens;
    double prompt_s = j->counts.first_s > 0 ? j->counts.first_s - j->began_s : s;
    put_timings(out, (double)j->counts.n_cached,
                (double)sequence_n_prompt(j) - (double)j->counts.n_cached, prompt_s, n, 1,
                s - prompt_s);
    out_json(out, "}");
}

/* Puts out how much of the prompt was known, from where, and where it began to differ. */
static void put_prefix(const sequence *j, text_out *out)
{
    const drey_statistics *s = &j->statistics;
    int64_t own = s->cached_tokens - s->copied_tokens - s->restored_tokens;
    bool differs = s->same_tokens < (int64_t)sequence_n_prompt(j);
    int32_t message = differs ? message_ends_at(j->request, s->same_tokens) : -1;
    out_json(out,
             "prefix:{tokens:%lld,session:%lld,other_session:%lld,memory:%lld,folder:%lld,"
             "restore_s:%g,differs_at:%g,differs_at_message:%g}",
             (long long)s->cached_tokens, (long long)own, (long long)s->copied_tokens,
             (long long)(s->restored_tokens - s->folder_tokens), (long long)s->folder_tokens,
             s->restore_s, differs ? (double)s->same_tokens : (double)NAN,
             message >= 0 ? (double)message : (double)NAN);
}

/* Nothing where exits are off. */
static void put_exits(const drey_exits *e, text_out *out)
{
    if (e->mode != DREY_EXIT_OFF)
        out_json(out,
                 "exits:{mode:%s,tokens:%g,left:%g,layers_per_token:%g,compared:%g,agreed:%g,"
                 "taken_back:%g}",
                 drey_exit_name(e->mode), (double)e->tokens, (double)e->left, e->layers_per_token,
                 (double)e->compared, (double)e->agreed, (double)e->taken_back);
}

static void put_drey(const sequence *j, text_out *out)
{
    const drey_statistics *s = &j->statistics;
    out_json(out, "drey:{seed:%llu,finish:%s",
             (unsigned long long)j->request->sampling.filters.seed, drey_finish_name(s->finish));
    put_prefix(j, out);
    put_exits(&j->exits, out);
    out_json(out,
             "waited_s:%g,first_token_s:%g,tokens_per_s:%g,ceiling_tokens_per_s:%g,"
             "tokens_per_pass:%g,passes:%g,drafted:%g,accepted:%g,stall_share:%g,verify_share:%g,"
             "draft_share:%g,read_bytes:%g,disk_bytes_per_s:%g,experts_used:%g,experts_read:%g,"
             "joules:%g,peak_memory_bytes:%g}",
             j->began_s - j->queued_s, s->first_token_s, s->tokens_per_s, s->ceiling_tokens_per_s,
             s->tokens_per_pass, (double)s->n_passes, (double)s->drafted, (double)s->accepted,
             s->stall_share, s->verify_share, s->draft_share, (double)s->read_bytes,
             s->disk_bytes_per_s, (double)s->experts_used, (double)s->experts_read, s->joules,
             (double)s->peak_memory_bytes);
}

void part_drey(const request *t, text_out *out)
{
    put_drey(t->sequences[0], out);
}

void part_call_id(const request *t, int32_t choice, int32_t call, char out[static CALL_ID_BYTES])
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
const char *part_finish(const sequence *j)
{
    return j->statistics.finish == DREY_FINISH_STOP ? "stop" : "length";
}

const char *part_stop_text(const sequence *j)
{
    const drey_statistics *s = &j->statistics;
    bool stopped = s->finish == DREY_FINISH_STOP && s->stop_text > 0;
    return stopped ? j->request->stops.of[s->stop_text - 1] : NULL;
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
    out_json(out, "'bytes:");
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
    out_json(out, "[");
    for (size_t i = 0; i < n; i++)
        out_json(out, "%d", (unsigned char)bytes[i]);
    out_json(out, "]");
}

static void put_token(const drey_model *m, const drey_logprob *token, bool shares, text_out *out)
{
    out_json(out, "{id:%d,token:", token->id);
    put_whole_characters(m, token->id, out);
    out_json(out, "bytes:");
    part_token_bytes(m, token->id, out);
    if (shares)
        out_json(out, "prob:%g", exp((double)token->logprob));
    else /* JSON has no -Infinity: what can never come is far away, as other servers have it */
        out_json(out, "logprob:%g",
                 (double)(token->logprob >= -9999.0f ? token->logprob : -9999.0f));
}

void part_token(const drey_model *m, const drey_logprob *all, int32_t n, bool shares, text_out *out)
{
    put_token(m, &all[0], shares, out);
    out_json(out, "%s:[", shares ? "top_probs" : "top_logprobs");
    for (int32_t i = 1; i < n; i++) {
        put_token(m, &all[i], shares, out);
        out_json(out, "}");
    }
    out_json(out, "]}");
}

/* ---- What OpenAI's two forms share ---- */

void part_front(const request *t, const char *object, text_out *out)
{
    out_json(out, "{id:%s,object:%s,created:%lld,model:%s,system_fingerprint:'drey-%s'", t->id.text,
             object, (long long)t->id.created, t->shared->options->name, drey_version());
}

void part_end(const request *t, text_out *out)
{
    part_timings(t, out);
    part_drey(t, out);
    if (t->events.verbose)
        part_verbose(t->sequences[0], out);
}

void part_job_end(const sequence *j, text_out *out)
{
    put_times(j->request, j->choice, j->choice + 1, out);
    put_drey(j, out);
}

void part_tail(const answer *a, text_out *out)
{
    out_json(out, "]");
    part_usage(a->request, out);
    part_end(a->request, out);
    out_json(out, "}");
}

void part_text(const record *text, text_out *out)
{
    out_string(out, text ? text->bytes : "", text ? text->n : 0);
}

void part_open_event(const char *type, text_out *out)
{
    if (type)
        out_format(out, "event: %s\n", type);
    out_text(out, "data: ");
    out->begun = false;
    if (type)
        out_json(out, "{type:%s", type);
}

void part_close_event(text_out *out)
{
    out_text(out, "}\n\n");
}

static void put_progress(const sequence *j, const record *r, text_out *out)
{
    record_progress p;
    memcpy(&p, r->bytes, sizeof p);
    if (j->request->events.timings) {
        put_timings(out, (double)j->counts.n_cached, (double)p.done, p.done ? p.s : 0, 0, 0, 0);
        out_json(out, "}");
    }
    long long cached = (long long)j->counts.n_cached;
    out_json(out, "prompt_progress:{total:%lld,cache:%lld,processed:%lld,time_ms:%g}",
             (long long)p.total + cached, cached, (long long)p.done + cached, round(1e3 * p.s));
}

void part_piece(const sequence *j, const piece *p, text_out *out)
{
    if (j->request->events.timings && p->text)
        part_timings_now(j, out);
    if (p->progress)
        put_progress(j, p->progress, out);
    if (p->shown)
        out_json(out, "drey:{provisional:%.*s}", (int)j->n_shown, j->shown);
}

void part_close_last(const answer *a, text_out *out)
{
    if (answer_all_ended(a) && !a->request->events.usage)
        part_end(a->request, out);
    part_close_event(out);
}

bool part_last(const answer *a, const char *object, text_out *out)
{
    int32_t n_before = a->request->events.usage ? 1 : 0;
    if (a->pass < n_before) {
        part_open_event(NULL, out);
        part_front(a->request, object, out);
        out_json(out, "choices:[]");
        part_usage(a->request, out);
        part_end(a->request, out);
        part_close_event(out);
    } else if (a->pass == n_before) {
        out_text(out, "data: [DONE]\n\n");
    }
    return a->pass <= n_before;
}
