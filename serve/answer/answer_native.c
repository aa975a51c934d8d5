/* llama.cpp's /completion: see serializer.h. */
#include "serve/answer/serializer.h"
#include "serve/answer/answer_parts.h"

#include <string.h>

/* Writes why it ended, and at which of its stop texts. */
static void put_stop(const sequence *j, text_out *out)
{
    const drey_statistics *s = &j->statistics;
    const char *word = part_stop_text(j);
    const char *type = word                              ? "word"
                       : s->finish == DREY_FINISH_STOP   ? "eos"
                       : s->finish == DREY_FINISH_LENGTH ? "limit"
                                                         : "none";
    out_json(out, "stop_type:%s,stopping_word:%s", type, word ? word : "");
}

/* The text ended because there was no more room, whatever its length. */
static bool fills_context(const sequence *j)
{
    int64_t n = (int64_t)sequence_n_prompt(j) + j->statistics.generated_tokens;
    return j->statistics.finish == DREY_FINISH_LENGTH &&
           n >= j->request->shared->options->n_context;
}

/* ---- What a text was written with ---- */

static void put_texts(const char *key, const char *const *texts, size_t n, text_out *out)
{
    out_json(out, "%s:[", key);
    for (size_t i = 0; i < n; i++)
        out_json(out, "%s", texts[i]);
    out_json(out, "]");
}

/* Samplers that are not there have the values with which llama.cpp's server switches them off. */
void part_settings(const drey_sampling *p, const drey_penalties *e, text_out *out)
{
    out_json(out,
             "seed:%llu,top_k:%d,temperature:%g,top_p:%g,min_p:%g,repeat_penalty:%g,"
             "presence_penalty:%g,frequency_penalty:%g,dry_multiplier:%g,dry_base:%g,"
             "repeat_last_n:%d,dry_allowed_length:%d,dry_penalty_last_n:%d,"
             "dynatemp_range:0,dynatemp_exponent:1,top_n_sigma:-1,xtc_probability:0,"
             "xtc_threshold:0.1,typical_p:1,mirostat:0,mirostat_tau:5,mirostat_eta:0.1,"
             "adaptive_target:-1,adaptive_decay:0.9,min_keep:0,lora:[]",
             (unsigned long long)p->seed, p->top_k, (double)p->temperature, (double)p->top_p,
             (double)p->min_p, (double)e->repeat, (double)e->presence, (double)e->frequency,
             (double)e->dry_multiplier, (double)e->dry_base, e->last_n, e->dry_allowed_length,
             e->dry_last_n);
    put_texts("dry_sequence_breakers", e->dry_breakers, e->n_dry_breakers, out);
    out_json(out, "samplers:['penalties','dry','top_k','top_p','min_p','temperature']");
}

/* The first ones. */
static void put_biases(const request *t, text_out *out)
{
    enum { MOST = 128 };
    out_json(out, "logit_bias:[");
    for (int32_t i = 0; i < t->sampling.n_biases && i < MOST; i++) /* null: never */
        out_json(out, "{token:%d,bias:%g}", t->sampling.biases[i].id,
                 (double)t->sampling.biases[i].bias);
    out_json(out, "]");
}

static void put_settings(const request *t, text_out *out)
{
    int32_t n_predict = t->length.n_predict == INT32_MAX ? -1 : t->length.n_predict;
    out_json(out, "generation_settings:{");
    part_settings(&t->sampling.filters, &t->sampling.penalties, out);
    put_texts("stop", t->stops.of, t->stops.n, out);
    put_biases(t, out);
    out_json(out,
             "n_predict:%d,max_tokens:%d,n_keep:0,n_discard:0,ignore_eos:%hhd,stream:%hhd,"
             "n_probs:%d,timings_per_token:%hhd,post_sampling_probs:%hhd}",
             n_predict, n_predict, t->length.ignore_eos, t->stream, t->tokens.n_top,
             t->events.timings, t->tokens.filtered);
}

/* A long one is not repeated. */
static void put_prompt(const sequence *j, text_out *out)
{
    char text[1024];
    size_t n = 0, n_ids;
    const int32_t *ids = sequence_prompt(j, &n_ids);
    bool good = drey_detokenize(j->request->shared->options->model, ids, n_ids,
                                DREY_TOKENIZE_SPECIAL | DREY_TOKENIZE_INNER, text, sizeof text, &n,
                                NULL) == DREY_OK;
    out_json(out, "prompt:%.*s", (int)n, good && n <= sizeof text ? text : NULL);
}

/* The members after the text and its lists. */
static void put_members(const sequence *j, text_out *out)
{
    out_json(out,
             "id_slot:%d,stop:true,model:%s,tokens_predicted:%lld,tokens_evaluated:%zu,"
             "tokens_cached:%lld,truncated:%hhd,has_new_line:%hhd",
             j->slot, j->request->shared->options->name, (long long)j->statistics.generated_tokens,
             sequence_n_prompt(j), (long long)j->counts.n_cached, fills_context(j),
             j->counts.has_new_line);
    put_prompt(j, out);
    put_settings(j->request, out);
    put_stop(j, out);
    part_job_end(j, out);
}

void part_verbose(const sequence *j, text_out *out)
{
    out_json(out, "__verbose:{");
    put_prompt(j, out);
    put_settings(j->request, out);
    put_stop(j, out);
    out_json(out, "truncated:%hhd}", fills_context(j));
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

static bool is_wanted(const request *t, const char *name)
{
    bool wanted = t->fields.n == 0;
    for (size_t i = 0; i < t->fields.n && !wanted; i++)
        wanted = strcmp(t->fields.of[i], name) == 0;
    return wanted;
}

/* Puts out the members that are wanted, and the end of the object. */
static void put_end(const sequence *j, text_out *out)
{
    size_t from = out->n, n_fields = j->request->fields.n;
    bool begun = out->begun;
    out->begun = begun && n_fields == 0;
    put_members(j, out);
    out_json(out, "}");
    if (n_fields == 0 || out->full)
        return;
    size_t selected = out->n;
    out->begun = begun;
    for (size_t i = 0; i < n_fields; i++) {
        const char *name = j->request->fields.of[i], *value = find_path(out->text + from, name);
        if (!value)
            continue;
        out_json(out, "%s:", name);
        out_bytes(out, value, value_end(value));
        out->begun = true;
    }
    if (out->full) { /* long texts, more than once: all members instead */
        out->n = selected;
        out->full = false;
        return;
    }
    memmove(out->text + from, out->text + selected, out->n - selected);
    out->n -= selected - from;
    out_json(out, "}");
}

/* ---- One value ---- */

enum { TEXT, PROBABILITIES, TOKENS, END };

static bool has_pass(const request *t, int32_t pass)
{
    static const char *const names[] = {"content", "completion_probabilities", "tokens"};
    return is_wanted(t, names[pass]) && (pass != PROBABILITIES || t->tokens.logprobs);
}

static void front(const answer *a, text_out *out)
{
    out_json(out, a->request->prompts.n > 1 ? "[" : "");
}

static bool open(answer *a, text_out *out)
{
    if (a->pass == TEXT) {
        out_json(out, "{");
        if (is_wanted(a->request, "index"))
            out_json(out, "index:%d", a->choice);
    } else if (has_pass(a->request, a->pass - 1)) {
        out_json(out, a->pass - 1 == TEXT ? "\"" : "]");
    }
    while (a->pass < END && !has_pass(a->request, a->pass))
        a->pass++;
    if (a->pass == TEXT)
        out_json(out, "content:'");
    else if (a->pass < END)
        out_json(out, a->pass == PROBABILITIES ? "completion_probabilities:[" : "tokens:[");
    return a->pass < END;
}

static void put_record(answer *a, const record *r, text_out *out)
{
    drey_logprob all[1 + DREY_MAX_TOP];
    if (a->pass == TEXT && r->kind == RECORD_TEXT)
        out_escaped(out, r->bytes, r->n);
    if (a->pass == TEXT || r->kind != RECORD_TOKEN ||
        (a->pass == TOKENS && !a->request->tokens.ids))
        return;
    int32_t n = record_token(r, all);
    if (a->pass == PROBABILITIES)
        part_token(a->request->shared->options->model, all, n, a->request->tokens.filtered, out);
    else
        out_json(out, "%d", all[0].id);
}

static void close_choice(answer *a, text_out *out)
{
    put_end(a->request->sequences[a->choice], out);
}

static void tail(const answer *a, text_out *out)
{
    out_json(out, a->request->prompts.n > 1 ? "]" : "");
}

/* ---- Events ---- */

static void put_piece(answer *a, const sequence *j, const piece *p, text_out *out)
{
    (void)a;
    drey_logprob all[1 + DREY_MAX_TOP];
    part_open_event(NULL, out);
    out_json(out, "{index:%d,content:", j->choice);
    part_text(p->text, out);
    out_json(out, "tokens:[");
    int32_t n = p->token ? record_token(p->token, all) : 0;
    if (n)
        out_json(out, "%d", all[0].id);
    out_json(out, "]");
    if (n && j->request->tokens.logprobs) {
        out_json(out, "completion_probabilities:[");
        part_token(a->request->shared->options->model, all, n, j->request->tokens.filtered, out);
        out_json(out, "]");
    }
    out_json(out, "id_slot:%d,stop:false,tokens_predicted:%lld,tokens_evaluated:%zu", j->slot,
             (long long)j->counts.n_tokens, sequence_n_prompt(j));
    part_piece(j, p, out);
    part_close_event(out);
}

static void finish(answer *a, const sequence *j, text_out *out)
{
    (void)a;
    part_open_event(NULL, out);
    out_json(out, "{");
    if (is_wanted(j->request, "index"))
        out_json(out, "index:%d", j->choice);
    if (is_wanted(j->request, "content"))
        out_json(out, "content:''");
    if (is_wanted(j->request, "tokens"))
        out_json(out, "tokens:[]");
    put_end(j, out);
    out_text(out, "\n\n");
}

const serializer answer_native = {.id_prefix = "cmpl-",
                                  .front = front,
                                  .open = open,
                                  .record = put_record,
                                  .close = close_choice,
                                  .tail = tail,
                                  .piece = put_piece,
                                  .finish = finish};
