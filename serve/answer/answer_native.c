/* llama.cpp's /completion: see answer_form.h. */
#include "serve/answer/answer_form.h"
#include "serve/answer/answer_parts.h"

#include <float.h>
#include <string.h>

/* Why it ended, and at which of its stop texts. */
static void put_stop(const job *j, text_out *out)
{
    const drey_statistics *s = &j->statistics;
    const char *word = part_stop_text(j);
    const char *type = word                              ? "word"
                       : s->finish == DREY_FINISH_STOP   ? "eos"
                       : s->finish == DREY_FINISH_LENGTH ? "limit"
                                                         : "none";
    out_format(out, "\"stop_type\":\"%s\",\"stopping_word\":", type);
    out_string(out, word ? word : "", word ? strlen(word) : 0);
    out_text(out, ",");
}

/* The text ended because there was no more room, whatever its length. */
static bool fills_context(const job *j, const shared *s)
{
    int64_t n = (int64_t)job_n_prompt(j) + j->statistics.generated_tokens;
    return j->statistics.finish == DREY_FINISH_LENGTH && n >= s->options->n_context;
}

/* ---- What a text was written with ---- */

static void put_reals(const char *const *keys, const float *values, int32_t n, text_out *out)
{
    for (int32_t i = 0; i < n; i++)
        out_format(out, "\"%s\":%.9g,", keys[i], (double)values[i]);
}

static void put_texts(const char *key, const char *const *texts, size_t n, text_out *out)
{
    out_format(out, "\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        out_text(out, i ? "," : "");
        out_string(out, texts[i], strlen(texts[i]));
    }
    out_text(out, "],");
}

/* Samplers that are not there have the values with which llama.cpp's server switches them off. */
void part_settings(const drey_sampling *p, const drey_penalties *e, text_out *out)
{
    static const char *const keys[] = {
        "temperature",       "top_p",          "min_p",   "repeat_penalty", "presence_penalty",
        "frequency_penalty", "dry_multiplier", "dry_base"};
    const float values[] = {p->temperature, p->top_p,     p->min_p,          e->repeat,
                            e->presence,    e->frequency, e->dry_multiplier, e->dry_base};
    out_format(out, "\"seed\":%llu,\"top_k\":%d,", (unsigned long long)p->seed, p->top_k);
    put_reals(keys, values, sizeof values / sizeof *values, out);
    out_format(out,
               "\"repeat_last_n\":%d,\"dry_allowed_length\":%d,\"dry_penalty_last_n\":%d,"
               "\"dynatemp_range\":0,\"dynatemp_exponent\":1,\"top_n_sigma\":-1,"
               "\"xtc_probability\":0,\"xtc_threshold\":0.1,\"typical_p\":1,\"mirostat\":0,"
               "\"mirostat_tau\":5,\"mirostat_eta\":0.1,\"adaptive_target\":-1,"
               "\"adaptive_decay\":0.9,\"min_keep\":0,\"lora\":[],",
               e->last_n, e->dry_allowed_length, e->dry_last_n);
    put_texts("dry_sequence_breakers", e->dry_breakers, e->n_dry_breakers, out);
    out_text(out, "\"samplers\":[\"penalties\",\"dry\",\"top_k\",\"top_p\",\"min_p\","
                  "\"temperature\"],");
}

static const char *word(bool yes)
{
    return yes ? "true" : "false";
}

/* The first ones. */
static void put_biases(const task *t, text_out *out)
{
    enum { MOST = 128 };
    out_text(out, "\"logit_bias\":[");
    for (int32_t i = 0; i < t->sampling.n_biases && i < MOST; i++) {
        out_format(out, "%s{\"token\":%d,\"bias\":", i ? "," : "", t->sampling.biases[i].id);
        if (t->sampling.biases[i].bias >= -FLT_MAX)
            out_number(out, (double)t->sampling.biases[i].bias);
        else
            out_text(out, "null"); /* never */
        out_text(out, "}");
    }
    out_text(out, "],");
}

static void put_settings(const task *t, text_out *out)
{
    int32_t n_predict = t->n_predict == INT32_MAX ? -1 : t->n_predict;
    out_text(out, "\"generation_settings\":{");
    part_settings(&t->sampling.of, &t->sampling.penalties, out);
    put_texts("stop", t->stops.of, t->stops.n, out);
    put_biases(t, out);
    out_format(out,
               "\"n_predict\":%d,\"max_tokens\":%d,\"n_keep\":0,\"n_discard\":0,\"ignore_eos\":%s,"
               "\"stream\":%s,\"n_probs\":%d,\"timings_per_token\":%s,"
               "\"post_sampling_probs\":%s},",
               n_predict, n_predict, word(t->ignore_eos), word(t->stream), t->n_top,
               word(t->events.timings), word(t->sampling.shares));
}

/* A long one is not repeated. */
static void put_prompt(const job *j, const shared *s, text_out *out)
{
    char text[1024];
    size_t n = 0, n_ids;
    const int32_t *ids = job_prompt(j, &n_ids);
    out_text(out, "\"prompt\":");
    if (drey_detokenize(s->options->model, ids, n_ids, DREY_TOKENIZE_SPECIAL | DREY_TOKENIZE_INNER,
                        text, sizeof text, &n, NULL) == DREY_OK &&
        n <= sizeof text)
        out_string(out, text, n);
    else
        out_text(out, "null");
    out_text(out, ",");
}

/* The members after the text and its lists, each but the last with a comma. */
static void put_members(const job *j, const shared *s, text_out *out)
{
    const task *t = j->task;
    out_format(out, "\"id_slot\":%d,\"stop\":true,\"model\":", j->seat);
    out_string(out, s->options->name, strlen(s->options->name));
    out_format(out,
               ",\"tokens_predicted\":%lld,\"tokens_evaluated\":%zu,\"tokens_cached\":%lld,"
               "\"truncated\":%s,\"has_new_line\":%s,",
               (long long)j->statistics.generated_tokens, job_n_prompt(j),
               (long long)j->counts.n_cached, word(fills_context(j, s)),
               word(j->counts.has_new_line));
    put_prompt(j, s, out);
    put_settings(t, out);
    put_stop(j, out);
    part_job_end(j, out);
}

void part_verbose(const job *j, const shared *s, text_out *out)
{
    out_text(out, ",\"__verbose\":{");
    put_prompt(j, s, out);
    put_settings(j->task, out);
    put_stop(j, out);
    out_format(out, "\"truncated\":%s}", word(fills_context(j, s)));
}

/* ---- Those of them that are wanted ---- */

/* The end of the JSON value at text, which is one of ours: it is well formed. */
static size_t value_end(const char *text)
{
    size_t depth = 0, i = 0;
    for (bool quoted = false;; i++) {
        char c = text[i];
        if (quoted)
            i += c == '\\';
        if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '['))
            depth++;
        else if (!quoted && depth > 0 && (c == '}' || c == ']'))
            depth--;
        else if (!quoted && depth == 0 && (c == ',' || c == '}' || c == ']'))
            return i;
    }
}

/* The value of the member `key` [n] of the object whose members begin at text; NULL: there is
 * none. */
static const char *find_member(const char *text, const char *key, size_t n)
{
    while (*text == '"') {
        const char *value = strchr(text + 1, '"') + 2;
        if ((size_t)(value - text) == n + 3 && memcmp(text + 1, key, n) == 0)
            return value;
        text = value + value_end(value);
        text += *text == ',';
    }
    return NULL;
}

/* The same by a path, as in "timings/prompt_n". */
static const char *find_path(const char *text, const char *path)
{
    for (;;) {
        size_t n = strcspn(path, "/");
        const char *value = find_member(text, path, n);
        if (!value || !path[n])
            return value;
        if (*value != '{')
            return NULL;
        text = value + 1;
        path += n + 1;
    }
}

static bool is_wanted(const task *t, const char *name)
{
    bool wanted = t->fields.n == 0;
    for (size_t i = 0; i < t->fields.n && !wanted; i++)
        wanted = strcmp(t->fields.of[i], name) == 0;
    return wanted;
}

/* Puts out the members that are wanted, and the end of the object. comma: others came before. */
static void put_end(const job *j, const shared *s, bool comma, text_out *out)
{
    size_t from = out->n, n_fields = j->task->fields.n;
    if (comma && n_fields == 0)
        out_text(out, ",");
    put_members(j, s, out);
    out_text(out, "}");
    if (n_fields == 0 || out->full)
        return;
    size_t selected = out->n;
    for (size_t i = 0; i < n_fields; i++) {
        const char *name = j->task->fields.of[i], *value = find_path(out->text + from, name);
        if (!value)
            continue;
        out_text(out, comma ? "," : "");
        out_string(out, name, strlen(name));
        out_text(out, ":");
        out_bytes(out, value, value_end(value));
        comma = true;
    }
    if (out->full) { /* long texts, more than once: all members instead */
        out->n = selected;
        out->full = false;
        return;
    }
    memmove(out->text + from, out->text + selected, out->n - selected);
    out->n -= selected - from;
    out_text(out, "}");
}

/* ---- One value ---- */

enum { TEXT, PROBABILITIES, TOKENS, END };

static bool has_pass(const task *t, int32_t pass)
{
    static const char *const names[] = {"content", "completion_probabilities", "tokens"};
    return is_wanted(t, names[pass]) && (pass != PROBABILITIES || t->logprobs);
}

static void front(const answer *a, const shared *s, text_out *out)
{
    (void)s;
    out_text(out, a->task->prompts.n > 1 ? "[" : "");
}

/* Whether a member came before that pass. */
static bool follows(const task *t, int32_t pass)
{
    bool some = is_wanted(t, "index");
    for (int32_t i = TEXT; i < pass; i++)
        some = some || has_pass(t, i);
    return some;
}

static bool open(answer *a, text_out *out)
{
    static const char *const begins[] = {"\"content\":\"", "\"completion_probabilities\":[",
                                         "\"tokens\":["};
    if (a->pass == TEXT) {
        out_text(out, a->choice ? ",{" : "{");
        if (is_wanted(a->task, "index"))
            out_format(out, "\"index\":%d", a->choice);
    } else if (has_pass(a->task, a->pass - 1)) {
        out_text(out, a->pass - 1 == TEXT ? "\"" : "]");
    }
    while (a->pass < END && !has_pass(a->task, a->pass))
        a->pass++;
    if (a->pass == END)
        return false;
    out_text(out, follows(a->task, a->pass) ? "," : "");
    out_text(out, begins[a->pass]);
    return true;
}

static void put_record(answer *a, const shared *s, const record *r, text_out *out)
{
    drey_logprob all[1 + DREY_MAX_TOP];
    if (a->pass == TEXT && r->kind == RECORD_TEXT)
        out_escaped(out, r->bytes, r->n);
    if (a->pass == TEXT || r->kind != RECORD_TOKEN || (a->pass == TOKENS && !a->task->tokens))
        return;
    int32_t n = record_token(r, all);
    out_text(out, a->comma ? "," : "");
    if (a->pass == PROBABILITIES)
        part_token(s->options->model, all, n, a->task->sampling.shares, out);
    else
        out_format(out, "%d", all[0].id);
    a->comma = true;
}

static void close_choice(answer *a, const shared *s, text_out *out)
{
    put_end(a->task->jobs[a->choice], s, follows(a->task, END), out);
}

static void tail(const answer *a, const shared *s, text_out *out)
{
    (void)s;
    out_text(out, a->task->prompts.n > 1 ? "]" : "");
}

/* ---- Events ---- */

static void put_piece(answer *a, const job *j, const shared *s, const piece *p, text_out *out)
{
    (void)a;
    drey_logprob all[1 + DREY_MAX_TOP];
    out_format(out, "data: {\"index\":%d,\"content\":", j->choice);
    part_text(p->text, out);
    out_text(out, ",\"tokens\":[");
    int32_t n = p->token ? record_token(p->token, all) : 0;
    if (n)
        out_format(out, "%d", all[0].id);
    out_text(out, "],");
    if (n && j->task->logprobs) {
        out_text(out, "\"completion_probabilities\":[");
        part_token(s->options->model, all, n, j->task->sampling.shares, out);
        out_text(out, "],");
    }
    out_format(out,
               "\"id_slot\":%d,\"stop\":false,\"tokens_predicted\":%lld,"
               "\"tokens_evaluated\":%zu",
               j->seat, (long long)j->counts.n_tokens, job_n_prompt(j));
    part_piece(j, p, out);
    part_close_chunk(out);
}

static void finish(answer *a, const job *j, const shared *s, text_out *out)
{
    (void)a;
    bool index = is_wanted(j->task, "index"), content = is_wanted(j->task, "content");
    bool tokens = is_wanted(j->task, "tokens");
    out_text(out, "data: {");
    if (index)
        out_format(out, "\"index\":%d", j->choice);
    if (content)
        out_format(out, "%s\"content\":\"\"", index ? "," : "");
    if (tokens)
        out_format(out, "%s\"tokens\":[]", index || content ? "," : "");
    put_end(j, s, index || content || tokens, out);
    out_text(out, "\n\n");
}

const answer_form answer_native = {.id_prefix = "cmpl-",
                                   .front = front,
                                   .open = open,
                                   .record = put_record,
                                   .close = close_choice,
                                   .tail = tail,
                                   .piece = put_piece,
                                   .finish = finish};
