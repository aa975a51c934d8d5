/* Reports of the server about itself: metrics for Prometheus (llama.cpp's names, and drey's own),
 * slots, properties, models. */
#include <stdio.h>
#include <string.h>

#include "serve/answer/answer_parts.h"
#include "serve/net/network.h"

/* ---- Metrics ---- */

static void metric(text_out *out, const char *name, const char *type, const char *help,
                   double value)
{
    out_format(out, "# HELP %s %s\n# TYPE %s %s\n%s ", name, help, name, type, name);
    out->begun = false;
    out_json(out, "%g", value);
    out_text(out, "\n");
}

static void counter(text_out *out, const char *name, const char *help, double value)
{
    metric(out, name, "counter", help, value);
}

static void gauge(text_out *out, const char *name, const char *help, double value)
{
    metric(out, name, "gauge", help, value);
}

static double per(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void llama_metrics(const shared *s, text_out *out)
{
    const serve_totals *t = &s->totals;
    double prompt = (double)t->prompt_tokens, predicted = (double)t->predicted_tokens;
    counter(out, "llamacpp:prompt_tokens_total", "Prompt tokens that were computed.", prompt);
    counter(out, "llamacpp:prompt_tokens_cached_total", "Prompt tokens that were known already.",
            (double)t->cached_tokens);
    counter(out, "llamacpp:prompt_seconds_total", "Seconds of texts in their prompt.", t->prompt_s);
    counter(out, "llamacpp:tokens_predicted_total", "Tokens written.", predicted);
    counter(out, "llamacpp:tokens_predicted_seconds_total", "Seconds of texts after it.",
            t->predicted_s);
    counter(out, "llamacpp:n_decode_total", "Steps of the engine.", (double)t->steps);
    counter(out, "llamacpp:n_tokens_max", "Most tokens of a prompt and its text.",
            (double)t->most_tokens);
    gauge(out, "llamacpp:n_busy_slots_per_decode", "Sessions that took part in a step, mean.",
          per((double)t->busy_slots, (double)t->steps));
    gauge(out, "llamacpp:prompt_tokens_seconds", "Prompt tokens per second of a text, mean.",
          per(prompt, t->prompt_s));
    gauge(out, "llamacpp:predicted_tokens_seconds", "Tokens per second of a text, mean.",
          per(predicted, t->predicted_s));
    gauge(out, "llamacpp:requests_processing", "Texts that are being written.", s->n_running);
    gauge(out, "llamacpp:requests_deferred", "Texts that wait for a session.", s->n_queued);
    counter(out, "llamacpp:spec_decode_num_drafts_total", "Turns with drafted tokens.",
            (double)t->drafts);
    counter(out, "llamacpp:spec_decode_num_draft_tokens_total", "Drafted tokens verified.",
            (double)t->drafted);
    counter(out, "llamacpp:spec_decode_num_accepted_tokens_total", "Drafted tokens accepted.",
            (double)t->accepted);
    out_text(out, "# HELP llamacpp:spec_decode_num_accepted_tokens_per_pos_total Accepted tokens "
                  "by their depth.\n"
                  "# TYPE llamacpp:spec_decode_num_accepted_tokens_per_pos_total counter\n");
    for (int i = 0; i < DREY_SPECULATION_DEPTHS && t->depth_accepted[i] > 0; i++)
        out_format(out,
                   "llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position=\"%d\"} "
                   "%lld\n",
                   i, (long long)t->depth_accepted[i]);
}

static void budget_metrics(const drey_plan *p, text_out *out)
{
    const struct {
        const char *part;
        uint64_t bytes;
    } parts[] = {{"pinned", p->pinned_bytes},       {"draft", p->draft_bytes},
                 {"ring", p->ring_bytes},           {"kv", p->kv_bytes},
                 {"work", p->work_bytes},           {"server", p->held_bytes},
                 {"prefixes", p->prefix_bytes},     {"program", p->program_bytes},
                 {"tokenizer", p->tokenizer_bytes}, {"stack", p->stack_bytes},
                 {"queue", p->queue_bytes},         {"reserve", p->reserve_bytes},
                 {"encoder", p->encoder_bytes},     {"experts", p->expert_bytes},
                 {"spare", p->spare_bytes}};
    out_text(out, "# HELP drey:budget_bytes The memory budget by its parts, as planned.\n"
                  "# TYPE drey:budget_bytes gauge\n");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        out_format(out, "drey:budget_bytes{part=\"%s\"} %llu\n", parts[i].part,
                   (unsigned long long)parts[i].bytes);
    if (p->budget_bytes != DREY_MEMORY_UNLIMITED)
        gauge(out, "drey:budget_limit_bytes", "The memory budget.", (double)p->budget_bytes);
}

static void drey_metrics(const shared *s, text_out *out)
{
    const serve_totals *t = &s->totals;
    const drey_counts *e = &t->engine;
    counter(out, "drey:disk_read_bytes_total", "Bytes read from the disk.", (double)e->read_bytes);
    gauge(out, "drey:disk_bytes_per_second", "Of the disk while it was asked, mean.",
          per((double)e->read_bytes, e->read_s));
    counter(out, "drey:stall_seconds_total", "Seconds in which passes waited for weights.",
            e->stall_s);
    counter(out, "drey:pass_seconds_total", "Seconds of passes of the target after prompts.",
            e->pass_s);
    counter(out, "drey:experts_used_total", "Experts that layers of a mixture computed with.",
            (double)e->experts_used);
    counter(out, "drey:experts_read_total", "Of these those that had to be read.",
            (double)e->experts_read);
    counter(out, "drey:joules_total",
            "What the processor reports of the machine's energy while texts are written.",
            e->joules);
    counter(out, "drey:passes_total", "Passes of the target after prompts.", (double)e->passes);
    counter(out, "drey:rows_total", "Their rows.", (double)e->rows);
    gauge(out, "drey:rows_per_pass", "Rows of a pass, mean.",
          per((double)e->rows, (double)e->passes));
    gauge(out, "drey:accepted_tokens_per_pass", "Accepted tokens of a pass, mean.",
          per((double)t->accepted, (double)e->passes));
    counter(out, "drey:prompt_pass_seconds_total", "Seconds of passes over prompts.", e->prompt_s);
    counter(out, "drey:draft_seconds_total", "Seconds of drafting between passes.", e->draft_s);
    counter(out, "drey:hidden_draft_seconds_total", "Seconds of drafting while passes waited.",
            e->hidden_s);
    gauge(out, "drey:ceiling_tokens_per_second", "Of the last text, what disk and compute allow.",
          t->ceiling);
    gauge(out, "drey:pinned_bytes", "Of the target, kept in memory.", (double)s->plan.pinned_bytes);
    gauge(out, "drey:streamed_bytes_per_pass", "Of the target, read by each pass.",
          (double)s->plan.streamed_bytes_per_pass);
    budget_metrics(&s->plan, out);
    counter(out, "drey:prefix_restored_tokens_total", "Tokens restored from kept beginnings.",
            (double)t->prefixes.restored_tokens);
    counter(out, "drey:prefix_copied_tokens_total", "Tokens copied from one session to another.",
            (double)t->prefixes.copied_tokens);
    gauge(out, "drey:prefix_memory_bytes", "Set aside for kept beginnings.",
          (double)t->prefixes.memory_bytes);
    gauge(out, "drey:prefix_disk_bytes", "Kept beginnings in their folder.",
          (double)t->prefixes.disk_bytes);
    gauge(out, "drey:prefix_disk_failed", "1: the folder of beginnings cannot be written to.",
          t->prefixes.disk_failed);
    counter(out, "drey:prefix_lost_blocks_total", "Beginnings that could not be written there.",
            (double)t->prefixes.lost_blocks);
    counter(out, "drey:prefix_damaged_files_total", "Files of that folder that were damaged.",
            (double)t->prefixes.damaged_files);
    gauge(out, "drey:budget_peak_bytes", "The process' own high-water mark.",
          (double)e->peak_memory_bytes);
    out_format(out,
               "# HELP drey:cancelled_total Texts whose client hung up, by where they were.\n"
               "# TYPE drey:cancelled_total counter\n"
               "drey:cancelled_total{where=\"queue\"} %lld\n"
               "drey:cancelled_total{where=\"prompt\"} %lld\n"
               "drey:cancelled_total{where=\"writing\"} %lld\n",
               (long long)t->cancelled_queued, (long long)t->cancelled_prompt,
               (long long)t->cancelled_writing);
    counter(out, "drey:requests_total", "Texts that were asked for.", (double)t->requests);
    counter(out, "drey:refused_total", "Texts that had no room in the queue.", (double)t->refused);
    counter(out, "drey:bad_requests_total", "Requests without a key, a right, or JSON.",
            (double)t->bad);
    counter(out, "drey:slow_clients_total", "Clients that did not read, and were left.",
            (double)t->too_slow);
}

void report_metrics(network *n, text_out *out)
{
    pthread_mutex_lock(&n->shared->lock);
    const shared *s = n->shared;
    llama_metrics(s, out);
    drey_metrics(s, out);
    pthread_mutex_unlock(&n->shared->lock);
}

/* ---- Slots ---- */

static void put_slot(const shared *s, int32_t i, text_out *out)
{
    const server_slot *slot = &s->slots[i];
    const sequence *j = slot->sequence;
    out_json(out, "{id:%d,n_ctx:%d,speculative:%hhd,is_processing:%hhd", i, s->options->n_context,
             (bool)(s->plan.tree_rows > 1), (bool)j);
    if (j) {
        const sequence_counts *c = &j->counts;
        out_json(out,
                 "id_task:%s,prompt_progress:{total:%lld,cache:%lld,processed:%lld},"
                 "next_token:[{has_next_token:true,n_decoded:%lld}]",
                 j->request->id.text, (long long)(c->prompt_total + c->n_cached),
                 (long long)c->n_cached, (long long)(c->prompt_done + c->n_cached),
                 (long long)c->n_tokens);
    }
    out_json(out, "}");
}

void report_slots(network *n, text_out *out)
{
    out_json(out, "[");
    pthread_mutex_lock(&n->shared->lock);
    for (int32_t i = 0; i < n->options->n_sessions; i++)
        put_slot(n->shared, i, out);
    pthread_mutex_unlock(&n->shared->lock);
    out_json(out, "]");
}

/* ---- Properties ---- */

/* Nothing of one that is very long. */
static void put_template(const drey_model *m, text_out *out)
{
    const char *text;
    size_t n;
    drey_model_chat_template(m, &text, &n);
    out_json(out, "chat_template:%.*s", (int)(n < NETWORK_PAGE_BYTES / 8 ? n : 0), text);
    drey_model_named_template(m, "tool_use", &text, &n);
    if (n == 0)
        return;
    out_json(out, "chat_template_tool_use:%.*s", (int)(n < NETWORK_PAGE_BYTES / 8 ? n : 0), text);
}

void report_props(network *n, text_out *out)
{
    const serve_options *o = n->options;
    const drey_plan *p = &n->shared->plan;
    drey_model_info info;
    drey_model_describe(o->model, &info);
    out_json(out, "{default_generation_settings:{n_ctx:%d,params:{", o->n_context);
    part_settings(&o->sampling, &o->penalties, out);
    out_json(out,
             "n_predict:%d}},modalities:{vision:false,audio:false},total_slots:%d,model_path:%s",
             o->n_predict > 0 ? o->n_predict : -1, o->n_sessions, info.path);
    put_template(o->model, out);
    out_json(
        out,
        "model_alias:%s,build_info:'drey-%s',drey:{version:%s,sessions:%d,queue:%d,"
        "connections:%d,body_bytes:%llu,budget_bytes:%g,target_bytes:%llu,pinned_bytes:%llu,"
        "streamed_bytes_per_pass:%llu,session_bytes:%llu,tree_rows:%d,threads:%d,sidecar:%hhd}}",
        o->name, drey_version(), drey_version(), o->n_sessions, o->n_queue, o->n_connections,
        (unsigned long long)o->body_bytes,
        p->budget_bytes == DREY_MEMORY_UNLIMITED ? 0 : (double)p->budget_bytes,
        (unsigned long long)p->target_bytes, (unsigned long long)p->pinned_bytes,
        (unsigned long long)p->streamed_bytes_per_pass, (unsigned long long)p->session_bytes,
        p->tree_rows, p->n_threads, (bool)p->sidecar);
}

void report_model(network *n, const char *name, text_out *out)
{
    const serve_options *o = n->options;
    drey_model_info info;
    drey_model_describe(o->model, &info);
    out_json(out,
             "{id:%s,object:'model',created:%lld,owned_by:'drey',meta:{n_vocab:%d,n_ctx:%d,"
             "n_ctx_train:%d,n_embd:%d,n_params:%lld,size:%llu}}",
             name, (long long)n->shared->began, info.n_vocab, o->n_context, info.n_context_train,
             info.n_embd, (long long)info.n_parameters, (unsigned long long)info.weight_bytes);
}
