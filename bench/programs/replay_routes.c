/* Writes a text with a mixture of experts whose routers are replaced by a trace of routes that was
 * taken elsewhere, and says what came of it: hits, bytes, waiting, tokens per pass.
 *
 *   replay_routes MODEL.gguf ROUTES [options]        (--help lists them)
 *
 * ROUTES is what scripts/bench/replay.py makes of a published trace: four numbers (tokens, layers,
 * experts, experts used), then the experts of each token, layer by layer. A row at position p takes
 * what the trace has for token p, modulo its length; layer l what it has for layer l, modulo its
 * layers. In a tree all but the first of siblings, with what comes below them, take the experts of
 * another token, which follows from theirs: siblings share less than neighbours. Where the text is
 * known (--ids), it is those that are not the text that do.
 *
 * A draft of stated acceptance needs a first run that keeps the text: --keep-ids FILE, without a
 * draft; then --ids FILE --right EASY:HARD --step-ms T (support/drafts/scripted_draft.h).
 *
 * The model's experts should all compute the same function; then the text is as good as any. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "session/session_probe.h"
#include "support/drafts/scripted_draft.h"
#include "tree/accept.h"
#include "weights/experts.h"
#include "tree/turn_log.h"

enum { WIDEST_PASS = 128, MOST_ROWS = 4096, HOLD_ROUTES = ROUTER_MOST };

typedef struct routes {
    int32_t n_tokens, n_layers, n_experts, n_used;
    int32_t *expert;          /* [n_tokens][n_layers][n_used], ascending */
    int32_t other[MOST_ROWS]; /* tokens of a pass's rows: how far from its own its token is */
    scripted_text text;       /* n 0: not known */
    int32_t n_prompt;
    bool prompt_at_random, all_at_random;
    int32_t recall; /* percent of a layer's experts that the layer before it guesses; 0: none are */
} routes;

typedef struct replay {
    routes trace;
    const char *model, *draft, *prompt, *spans, *sidecar, *ids_from, *ids_to;
    drey_drafter drafter;
    drey_policy policy;
    int32_t n_slots, n_predict, n_prompt, n_between, n_threads, tree_nodes;
    uint64_t memory_bytes, read_bytes;
    bool untimed, shows_text, guesses;
    drey_engine *engine;
    int32_t *ids;
    size_t n_ids;
    stream_counters before; /* when decoding began */
    double began_s;
    int32_t n_written;
    double half_hits[2]; /* hits in the text's first half and in its second */
    turn_watch watch;
    int64_t passes_of[WIDEST_PASS + 1]; /* [rows] */
} replay;

static void die(const char *what)
{
    fprintf(stderr, "replay_routes: %s\n", what);
    exit(2);
}

static void must(drey_status status, const drey_error *err)
{
    if (status != DREY_OK)
        die(err->message);
}

/* ---- The trace ---- */

static void read_routes(routes *r, const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%d %d %d %d", &r->n_tokens, &r->n_layers, &r->n_experts, &r->n_used) != 4)
        die("the routes cannot be read");
    if (r->n_tokens < 1 || r->n_layers < 1 || r->n_used < 1 || r->n_used > HOLD_ROUTES)
        die("the routes have no sizes that fit");
    size_t n = (size_t)r->n_tokens * (size_t)r->n_layers * (size_t)r->n_used;
    r->expert = calloc(n, sizeof *r->expert);
    for (size_t i = 0; i < n; i++) {
        bool first = i % (size_t)r->n_used == 0;
        if (!r->expert || fscanf(f, "%d", &r->expert[i]) != 1 || r->expert[i] < 0 ||
            r->expert[i] >= r->n_experts || (!first && r->expert[i] <= r->expert[i - 1]))
            die("the routes are not what they say they are");
    }
    fclose(f);
}

static const int32_t *route_of(const routes *r, int32_t token, int32_t layer)
{
    size_t at = (size_t)(token % r->n_tokens) * (size_t)r->n_layers + (size_t)(layer % r->n_layers);
    return r->expert + at * (size_t)r->n_used;
}

static uint32_t mixed(uint32_t x)
{
    x = (x ^ x >> 16) * 0x45d9f3bu;
    x = (x ^ x >> 16) * 0x45d9f3bu;
    return x ^ x >> 16;
}

static void take_at_random(const routes *r, int32_t position, int32_t layer, int32_t *expert)
{
    uint32_t seed = mixed((uint32_t)position * 4099u + (uint32_t)layer);
    int32_t n = 0;
    for (int32_t e = 0; e < r->n_experts && n < r->n_used; e++, seed = mixed(seed + 1))
        if ((int32_t)(seed % (uint32_t)(r->n_experts - e)) < r->n_used - n)
            expert[n++] = e;
}

/* Returns whether the row's token is one that the trace's token at its position may stand for, its
 * parent's being. */
static bool is_the_text(const routes *r, const model_pass *p, int32_t row)
{
    const workspace *ws = p->r->ws;
    const pass_group *g = &p->groups[ws->group[row]];
    int32_t own = row - g->first_row;
    if (r->text.n)
        return g->rows[own].parent < 0 || ws->position[row] < r->n_prompt ||
               scripted_has(&r->text, ws->position[row], g->rows[own].token);
    for (int32_t j = 0; j < own && p->n_rows <= WIDEST_PASS; j++)
        if (g->rows[j].parent == g->rows[own].parent)
            return false;
    return true;
}

/* Once per pass: how far each row's token is from its own position's. */
static void place_rows(routes *r, const model_pass *p)
{
    const workspace *ws = p->r->ws;
    for (int32_t i = 0; i < p->n_rows && i < MOST_ROWS; i++) {
        const pass_group *g = &p->groups[ws->group[i]];
        int32_t own = i - g->first_row, parent = g->rows[own].parent - g->first_pending;
        r->other[i] = parent >= 0 ? r->other[g->first_row + parent] : 0;
        if (!is_the_text(r, p, i))
            r->other[i] = (int32_t)((uint32_t)(r->other[i] + 1) +
                                    mixed((uint32_t)g->rows[own].token) % (uint32_t)r->n_tokens) %
                          r->n_tokens;
    }
}

static bool take_route(void *user, const model_pass *p, int32_t row, int32_t *expert)
{
    routes *r = user;
    int32_t position = p->r->ws->position[row];
    if (row == 0 && p->layer == 0)
        place_rows(r, p);
    if (r->all_at_random || (r->prompt_at_random && position < r->n_prompt))
        take_at_random(r, position, p->layer, expert);
    else
        memcpy(expert, route_of(r, position + r->other[row], p->layer),
               (size_t)r->n_used * sizeof *expert);
    return true;
}

/* Guesses a row's next layer from the layer before it: each of its experts with a chance of
 * `recall`, otherwise one that it will not take; in any order. Rows beyond the first have none. */
static int32_t guess_next(void *user, const model_pass *p, int32_t *expert)
{
    const routes *r = user;
    int32_t position = p->r->ws->position[0], layer = p->layer + 1, n = 0;
    const int32_t *of = route_of(r, position + r->other[0], layer);
    uint32_t seed = mixed((uint32_t)position * 5099u + (uint32_t)layer);
    bool listed[1024] = {false};
    for (int32_t i = 0; i < r->n_used; i++)
        listed[of[i]] = true;
    for (int32_t i = 0; i < r->n_used && r->recall > 0; i++, n++) {
        int32_t e = of[i];
        bool right = (int32_t)((seed = mixed(seed + 1)) % 100) < r->recall;
        while (!right && listed[e])
            e = (int32_t)((seed = mixed(seed + 1)) % (uint32_t)r->n_experts);
        listed[e] = true;
        int32_t place = (int32_t)(mixed(seed + 1) % (uint32_t)(n + 1));
        expert[n] = expert[place];
        expert[place] = e;
    }
    return n;
}

/* ---- Slots alone ---- */

typedef struct lru {
    int64_t used_at[1024]; /* times of use of experts; 0: not there */
    int32_t n_there;
} lru;

/* True where it was there. */
static bool lru_use(lru *l, int32_t expert, int32_t n_experts, int32_t n_slots, int64_t now)
{
    bool there = l->used_at[expert] > 0;
    l->used_at[expert] = now;
    if (!there && l->n_there == n_slots) {
        int32_t oldest = -1;
        for (int32_t e = 0; e < n_experts; e++)
            if (e != expert && l->used_at[e] > 0 &&
                (oldest < 0 || l->used_at[e] < l->used_at[oldest]))
                oldest = e;
        l->used_at[oldest] = 0;
    } else if (!there) {
        l->n_there++;
    }
    return there;
}

/* Hits of the text's tokens one by one, each layer keeping the latest; the prompt's came before. */
static double simulated_hits(const routes *r, int32_t n_layers, int32_t n_slots, int32_t n_prompt,
                             int32_t n)
{
    int64_t hits = 0, uses = 0;
    if (r->n_experts > 1024)
        die("too many experts to simulate");
    for (int32_t layer = 0; layer < n_layers; layer++) {
        lru l = {.n_there = 0};
        int64_t now = 0;
        for (int32_t t = 0; t < n_prompt + n; t++) {
            int32_t random[HOLD_ROUTES];
            const int32_t *expert = route_of(r, t, layer);
            if (r->prompt_at_random && t < n_prompt) {
                take_at_random(r, t, layer, random);
                expert = random;
            }
            for (int32_t i = 0; i < r->n_used; i++) {
                bool there = lru_use(&l, expert[i], r->n_experts, n_slots, ++now);
                hits += there && t >= n_prompt;
                uses += t >= n_prompt;
            }
        }
    }
    return uses ? (double)hits / (double)uses : 0;
}

/* ---- The text ---- */

static bool on_token(void *user, int32_t id)
{
    replay *r = user;
    r->ids[r->n_ids + (size_t)r->n_written] = id;
    if (r->n_written++ == 0)
        weights_count(&r->engine->target.weights, &r->before);
    return true;
}

static bool on_text(void *user, const char *bytes, size_t n)
{
    const replay *r = user;
    if (r->shows_text)
        fwrite(bytes, 1, n, stderr);
    return true;
}

static void on_turn(turn_watch *w, const token_tree *tree, const accepted *a)
{
    replay *r = (replay *)((char *)w - offsetof(replay, watch));
    (void)a;
    int32_t n = 0;
    for (int32_t i = 0; i < tree->n_nodes; i++)
        n += tree->nodes[i].submitted;
    r->passes_of[min_i32(n, WIDEST_PASS)]++;
}

/* Makes a prompt of as many tokens as were asked for, of the prompt again and again. */
static void make_prompt(replay *r, const drey_model *m)
{
    drey_error err = {0};
    int32_t once[MOST_ROWS];
    size_t n_once;
    must(drey_tokenize(m, r->prompt, strlen(r->prompt), DREY_TOKENIZE_BOS, once, MOST_ROWS, &n_once,
                       &err),
         &err);
    r->n_ids = r->n_prompt > 0 ? (size_t)r->n_prompt : n_once;
    r->ids = calloc(r->n_ids + (size_t)r->n_predict, sizeof *r->ids);
    for (size_t i = 0; i < r->n_ids && r->ids; i++)
        r->ids[i] = once[i % n_once];
    r->trace.n_prompt = (int32_t)r->n_ids;
}

static void keep_ids(const replay *r)
{
    FILE *f = fopen(r->ids_to, "w");
    for (size_t i = 0; f && i < r->n_ids + (size_t)r->n_written; i++)
        fprintf(f, "%d\n", r->ids[i]);
    if (!f || fclose(f))
        die("the ids cannot be written");
}

static void read_ids(replay *r, int32_t n_vocab)
{
    FILE *f = fopen(r->ids_from, "r");
    int32_t *ids = calloc(MOST_ROWS, sizeof *ids);
    if (!f || !ids)
        die("the ids cannot be read");
    while (r->trace.text.n < MOST_ROWS && fscanf(f, "%d", &ids[r->trace.text.n]) == 1)
        r->trace.text.n++;
    fclose(f);
    r->trace.text.ids = ids;
    r->trace.text.n_vocab = n_vocab;
}

/* Compares the text with that of the first run, as far as that went. */
static void compare_ids(const replay *r)
{
    for (int32_t i = 0; i < r->n_written; i++)
        if (i + (int32_t)r->n_ids < r->trace.text.n &&
            r->trace.text.ids[i + (int32_t)r->n_ids] != r->ids[r->n_ids + (size_t)i])
            die("the text is not that of the first run");
}

static void print_trees(const replay *r)
{
    printf("\"passes_of_rows\": {");
    for (int32_t n = 1, any = 0; n <= WIDEST_PASS; n++)
        if (r->passes_of[n])
            printf("%s\"%d\": %" PRId64, any++ ? ", " : "", n, r->passes_of[n]);
    printf("}, \"cost_ms\": [");
    for (int32_t n = 1; n <= 32; n *= 2)
        printf("%s%.2f", n > 1 ? ", " : "", 1e3 * cost_pass(&r->engine->cost, n));
    printf("], \"step_ms\": %.2f", 1e3 * cost_step(&r->engine->cost, 1));
}

static void print_result(const replay *r, const drey_statistics *s, int32_t n_layers)
{
    stream_counters now;
    weights_count(&r->engine->target.weights, &now);
    double n = (double)(s->generated_tokens - 1),
           read = (double)(now.read_bytes - r->before.read_bytes);
    printf("{\"tokens_per_s\": %.4f, \"tokens\": %" PRId64 ", \"passes\": %" PRId64
           ", \"tokens_per_pass\": %.4f, ",
           s->tokens_per_s, s->generated_tokens, s->n_passes, s->tokens_per_pass);
    printf("\"drafted\": %" PRId64 ", \"accepted\": %" PRId64 ", \"experts_used\": %" PRIu64
           ", \"experts_read\": %" PRIu64 ", \"hits\": %.4f, ",
           s->drafted, s->accepted, s->experts_used, s->experts_read,
           1 - (double)s->experts_read / (double)(s->experts_used ? s->experts_used : 1));
    printf("\"simulated_hits\": %.4f, \"bytes_per_token\": %.0f, \"decode_s\": %.4f, "
           "\"wait_s\": %.4f, \"draft_s\": %.4f, \"disk_busy_s\": %.4f, \"vain_bytes\": %" PRIu64
           ", ",
           simulated_hits(&r->trace, n_layers, r->engine->plan.expert_slots[PLAN_TARGET] / n_layers,
                          (int32_t)r->n_ids, (int32_t)s->generated_tokens - 1),
           read / n, s->decode_s, s->stall_share * s->decode_s, s->draft_share * s->decode_s,
           (double)(now.busy_ns - r->before.busy_ns) * 1e-9, now.vain_bytes - r->before.vain_bytes);
    printf("\"guessed\": %" PRIu64 ", \"guessed_right\": %" PRIu64 ", ", s->experts_guessed,
           s->guesses_used);
    printf("\"slots\": %d, \"experts\": %d, \"prompt_s\": %.3f, \"half_hits\": [%.4f, %.4f], ",
           r->engine->plan.expert_slots[PLAN_TARGET], r->trace.n_experts, s->prompt_s,
           r->half_hits[0], r->half_hits[1]);
    print_trees(r);
    printf("}\n");
}

static void keep_span(void *user, const drey_trace_span *span)
{
    fprintf(user, "%s %" PRId64 " %" PRId64 " %" PRId64 "\n", span->what, span->t0_ns, span->t1_ns,
            span->amount);
}

/* Writes until there are so many tokens; the share of experts that were in memory. */
static double write_until(replay *r, drey_session *s, int32_t until)
{
    const expert_set *x = r->engine->target.weights.experts;
    uint64_t used = x->counts.used, read = x->counts.read;
    drey_error err = {0};
    for (bool done = false; !done && r->n_written < until;)
        must(drey_session_step(s, &done, &err), &err);
    used = x->counts.used - used;
    return used ? 1 - (double)(x->counts.read - read) / (double)used : 0;
}

/* Another session's prompt of the text's tokens, with experts that are drawn. */
static void read_between(replay *r, drey_session *other)
{
    drey_error err = {0};
    drey_generate_options g;
    int32_t *ids = calloc((size_t)r->n_between, sizeof *ids);
    drey_generate_options_init(&g);
    g.n_predict = 1;
    for (int32_t i = 0; i < r->n_between && ids; i++)
        ids[i] = r->ids[(size_t)i % r->n_ids];
    r->trace.all_at_random = true;
    must(drey_session_sync(other, ids, (size_t)r->n_between, NULL, &err), &err);
    must(drey_session_begin(other, &g, NULL, &err), &err);
    for (bool done = false; !done;)
        must(drey_session_step(other, &done, &err), &err);
    r->trace.all_at_random = false;
    free(ids);
}

static void write_text(replay *r, drey_session *s, const drey_generate_options *g,
                       drey_statistics *stats)
{
    drey_error err = {0};
    must(drey_session_sync(s, r->ids, r->n_ids, NULL, &err), &err);
    must(drey_session_begin(s, g, stats, &err), &err);
    write_until(r, s, 1); /* the prompt */
    r->half_hits[0] = write_until(r, s, r->n_predict / 2);
    if (r->n_between > 0) {
        drey_session *other;
        must(drey_session_open(&other, r->engine, &err), &err);
        read_between(r, other);
        drey_session_close(&other);
    }
    r->half_hits[1] = write_until(r, s, r->n_predict);
    drey_session_end(s);
}

static void write_spans(const char *path, const drey_session *s)
{
    FILE *f = fopen(path, "w");
    if (!f)
        die("the spans cannot be written");
    drey_trace_visitor visitor = {.span = keep_span, .user = f};
    drey_session_trace(s, &visitor);
    fclose(f);
}

/* Experts of a token, whatever the file says. */
static void use_so_many(drey_model *m, int32_t n)
{
    drey_error err = {0};
    char name[96];
    const gguf_key *key =
        gguf_find_key(m->file, arch_key(m->shape.arch, "expert_used_count", name));
    if (!key || gguf_int(m->file, name, 0) > 255)
        die("the model is none that scripts/... made");
    *(uint8_t *)key->value = (uint8_t)n; /* of little-endian bytes, which are the model's */
    must(model_shape_read(&m->shape, m->file, &err), &err);
}

/* A system gives memory when it is first used, which takes the time of a read here; a text that is
 * written for a while has all of its slots. */
static void touch_slots(const expert_set *e)
{
    for (int32_t i = 0; i < e->n_layers; i++)
        if (e->layer[i].n_experts > 0)
            memset(e->layer[i].memory, 0,
                   (size_t)e->layer[i].slots.n_slots * e->layer[i].slot_bytes);
}

static void run(replay *r)
{
    drey_error err = {0};
    drey_engine_options o;
    drey_model *target, *draft = NULL;
    drey_session *session;
    drey_statistics stats;
    drey_engine_options_init(&o);
    must(drey_model_open(&target, r->model, &err), &err);
    if (r->draft)
        must(drey_model_open(&draft, r->draft, &err), &err);
    const router_shape *shape = &target->shape.experts.router;
    if (shape->n_experts < r->trace.n_experts)
        die("the trace has more experts than the model");
    use_so_many(target, r->trace.n_used);
    make_prompt(r, target);
    o.target = target;
    o.draft = draft;
    o.drafter = draft ? DREY_DRAFTER_MODEL : r->drafter;
    if (r->ids_from)
        read_ids(r, target->shape.n_vocab);
    o.policy = r->policy;
    o.memory_bytes = r->memory_bytes ? r->memory_bytes : DREY_MEMORY_UNLIMITED;
    o.n_context = max_i32((int32_t)r->n_ids + r->n_predict, r->n_between) + 160;
    o.n_sessions = r->n_between > 0 ? 2 : 1;
    o.n_threads = r->n_threads;
    o.sidecar = r->sidecar;
    o.no_sidecar = !r->sidecar;
    o.read_bytes = r->read_bytes;
    o.tree_nodes = r->tree_nodes;
    o.trace_spans = r->spans ? 1 << 20 : 0;
    engine_hooks hooks = {.set_share = r->n_slots > 0,
                          .share = min_f64((r->n_slots + 0.5) / shape->n_experts, 1),
                          .untimed = r->untimed,
                          .drafter = r->guesses ? scripted_kind(&r->trace.text) : NULL,
                          .route = {.see = take_route, .user = &r->trace, .guess = guess_next}};
    must(engine_open(&r->engine, &o, &hooks, &err), &err);
    touch_slots(r->engine->target.weights.experts);
    must(drey_session_open(&session, r->engine, &err), &err);
    r->watch.turn = on_turn;
    probe_watch(session, &r->watch);
    drey_generate_options g;
    drey_generate_options_init(&g);
    g.n_predict = r->n_predict;
    g.ignore_eos = true;
    g.sampling.temperature = 0;
    g.on_token = on_token;
    g.on_text = on_text;
    g.user = r;
    write_text(r, session, &g, &stats);
    print_result(r, &stats, target->shape.n_layers);
    if (r->ids_to)
        keep_ids(r);
    compare_ids(r);
    if (r->spans)
        write_spans(r->spans, session);
    drey_session_close(&session);
    drey_engine_close(&r->engine);
    drey_model_close(&target);
    drey_model_close(&draft);
}

typedef enum option_kind { TEXT, COUNT, BYTES, MIB, MS, FLAG, LOOKUP, POLICY, CHANCES } option_kind;
#define AT(field) offsetof(replay, field)
static const struct option_row {
    const char *name;
    option_kind kind;
    size_t at;
    const char *argument, *help;
} rows[] = {
    {"slots", COUNT, AT(n_slots), "N", "experts of a layer that are kept; otherwise by --memory"},
    {"memory", MIB, AT(memory_bytes), "MIB", "the budget"},
    {"draft", TEXT, AT(draft), "FILE", "a small model drafts"},
    {"lookup", LOOKUP, 0, "", "the text itself does"},
    {"policy", POLICY, 0, "NAME", "of drafting (auto)"},
    {"nodes", COUNT, AT(tree_nodes), "N", "most nodes of a tree"},
    {"n", COUNT, AT(n_predict), "N", "tokens to write (128)"},
    {"prompt", TEXT, AT(prompt), "TEXT", "the prompt,"},
    {"prompt-tokens", COUNT, AT(n_prompt), "N", "repeated up to so many tokens"},
    {"recall", COUNT, AT(trace.recall), "PERCENT",
     "of a layer's experts that the layer before it guesses (0)"},
    {"prompt-at-random", FLAG, AT(trace.prompt_at_random), "",
     "its tokens' experts are drawn, and are none of the trace"},
    {"between", COUNT, AT(n_between), "N",
     "in the middle of the text another session reads a prompt of N such tokens"},
    {"threads", COUNT, AT(n_threads), "N", ""},
    {"read-bytes", BYTES, AT(read_bytes), "N", ""},
    {"untimed", FLAG, AT(untimed), "", ""},
    {"sidecar", TEXT, AT(sidecar), "FILE", "the model's; otherwise none is used"},
    {"spans", TEXT, AT(spans), "FILE", "the latest spans: kind, from and to in ns, amount"},
    {"keep-ids", TEXT, AT(ids_to), "FILE", "writes the text's tokens there"},
    {"ids", TEXT, AT(ids_from), "FILE", "the text that will be written, as --keep-ids wrote it"},
    {"right", CHANCES, 0, "EASY:HARD", "a draft that guesses it with these probabilities"},
    {"step-ms", MS, AT(trace.text.step_s), "T", "what a step of it takes,"},
    {"step-bytes", BYTES, AT(trace.text.bytes), "N", "reads,"},
    {"seed", COUNT, AT(trace.text.seed), "N", "and when it errs"},
    {"text", FLAG, AT(shows_text), "", "the text, to standard error"},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void show_usage(void)
{
    fprintf(stderr, "replay_routes MODEL.gguf ROUTES [options]\n");
    for (int i = 0; i < N_ROWS; i++)
        fprintf(stderr, "  --%s %-*s %s\n", rows[i].name, 24 - (int)strlen(rows[i].name),
                rows[i].argument, rows[i].help);
    exit(2);
}

static void take_option(replay *r, const struct option_row *o)
{
    void *to = (char *)r + o->at;
    scripted_text *t = &r->trace.text;
    if (o->kind == TEXT)
        *(const char **)to = optarg;
    else if (o->kind == COUNT)
        *(int32_t *)to = atoi(optarg);
    else if (o->kind == BYTES || o->kind == MIB)
        *(uint64_t *)to = (uint64_t)atoll(optarg) << (o->kind == MIB ? 20 : 0);
    else if (o->kind == MS)
        *(double *)to = atof(optarg) / 1000;
    else if (o->kind == FLAG)
        *(bool *)to = true;
    else if (o->kind == LOOKUP)
        r->drafter = DREY_DRAFTER_LOOKUP;
    else if (o->kind == CHANCES)
        r->guesses = sscanf(optarg, "%lf:%lf", &t->easy, &t->hard) == 2;
    else if (!drey_policy_parse(optarg, &r->policy))
        die("no such policy");
}

int main(int argc, char **argv)
{
    static replay r = {.n_predict = 128,
                       .prompt = "The three most important things about squirrels are these. "};
    struct option options[N_ROWS + 1] = {{0}};
    int which;
    for (int i = 0; i < N_ROWS; i++)
        options[i] = (struct option){rows[i].name, *rows[i].argument ? 1 : 0, NULL, 0};
    for (int c; (c = getopt_long_only(argc, argv, "", options, &which)) != -1;)
        c == 0 ? take_option(&r, &rows[which]) : show_usage();
    if (argc - optind != 2)
        show_usage();
    r.model = argv[optind];
    read_routes(&r.trace, argv[optind + 1]);
    run(&r);
    free(r.ids);
    free(r.trace.expert);
    free((void *)r.trace.text.ids);
    return 0;
}
