/* Answers that are bound by schemas, sampled, by every drafter:
 *
 *     bound_answers N SCHEMAS ANSWERS [TARGET.gguf DRAFT.gguf HEADS SIDECAR]
 *
 * SCHEMAS has a JSON Schema per line. N answers are written without a draft, four at a time, to
 * ANSWERS (a line each: {"schema": line, "whole": true, "text": "..."}), and then by each drafter,
 * which has to write the same: the exit status is 1 if one does not. Without models they are toys
 * that have everything. HEADS and SIDECAR may be "-". tests/text/grammar/bound_answers.py
 * makes schemas, runs this program, and has the answers checked by another validator. */
#include "common/json_writer.h"
#include "engine/config.h"
#include "support/bytes_file.h"
#include "support/drafts/eagle_file.h"
#include "support/heads_file.h"
#include "support/writing.h"

enum { AT_ONCE = 4, MOST_TOKENS = 300, MOST_PROMPT = 64, MOST_SCHEMAS = 4096 };

typedef struct part {
    drey_drafter drafter;
    uint64_t with;
    const char *name;
} part;
static const part parts[] = {
    {DREY_DRAFTER_NONE, 0, "none"},
    {DREY_DRAFTER_MODEL, 0, "model"},
    {DREY_DRAFTER_SELF, 0, "self"},
    {DREY_DRAFTER_LOOKUP, 0, "lookup"},
    {DREY_DRAFTER_MEDUSA, 0, "heads"},
    {DREY_DRAFTER_EAGLE, 0, "eagle"},
    {DREY_DRAFTER_MODEL, DREY_WITH(DREY_PART_LOOKUP), "model with lookup"}};
enum { N_PARTS = sizeof parts / sizeof *parts };

static struct {
    drey_model *target, *draft, *layer;
    char sidecar[512], heads[512]; /* "": none */
    int32_t prompt[MOST_PROMPT], n_prompt;
    const char *schema[MOST_SCHEMAS];
    int32_t line[MOST_SCHEMAS]; /* lines of the file */
    int32_t n_schemas;
} all;

typedef struct answer { /* as nobody drafts */
    int32_t *ids, n_ids;
    drey_finish finish;
    char *text;
    size_t n_bytes;
} answer;

/* ---- What there is ---- */

static void open_toys(void)
{
    toy_options toy = toy_default(), of_draft;
    heads_file h;
    eagle_file e;
    toy.n_embd = toy.n_ff = 256;
    toy.type = TOY_TYPE_MIXED;
    toy.n_vocab = 900;
    toy.n_context = 512;
    toy.layer_gain = 0.3f;
    of_draft = toy;
    of_draft.noise = 0.01f;
    of_draft.noise_seed = 3;
    all.target = toy_open("target.gguf", &toy);
    all.draft = toy_open("draft.gguf", &of_draft);
    snprintf(all.sidecar, sizeof all.sidecar, "%s", temp_path("planes"));
    toy_prepare(all.target, all.sidecar, true);
    snprintf(all.heads, sizeof all.heads, "%s", temp_path("heads"));
    heads_file_init(&h, all.target->file, &all.target->shape);
    h.shape.n_heads = 4;
    h.spread = 0.002f;
    heads_file_write(all.heads, &h);
    eagle_file_init_knowing(&e, &toy, all.target->file, &all.target->shape);
    eagle_file_write(temp_path("layer.gguf"), &e);
    MUST(drey_model_open, &all.layer, temp_path("layer.gguf"));
    for (; all.n_prompt < 8; all.n_prompt++)
        all.prompt[all.n_prompt] = 65 + all.n_prompt % 4;
}

static void open_models(char **argv)
{
    static const char text[] = "An example of such a record, written as JSON:\n";
    size_t n;
    MUST(drey_model_open, &all.target, argv[0]);
    MUST(drey_model_open, &all.draft, argv[1]);
    snprintf(all.heads, sizeof all.heads, "%s", strcmp(argv[2], "-") ? argv[2] : "");
    snprintf(all.sidecar, sizeof all.sidecar, "%s", strcmp(argv[3], "-") ? argv[3] : "");
    MUST(drey_tokenize, all.target, text, sizeof text - 1, 0, all.prompt, MOST_PROMPT, &n);
    all.n_prompt = (int32_t)n;
}

/* Reads the schemas, but for those that are refused. */
static void read_schemas(char *text)
{
    int32_t i = 0, n_refused = 0;
    for (char *line = strtok(text, "\n"); line && all.n_schemas < MOST_SCHEMAS; i++) {
        drey_grammar *g;
        drey_error err;
        if (drey_grammar_open(&g, all.target, DREY_GRAMMAR_JSON_SCHEMA, line, strlen(line), &err) ==
            DREY_OK) {
            all.schema[all.n_schemas] = line;
            all.line[all.n_schemas++] = i;
        } else if (n_refused++ == 0) {
            printf("refused: %s\n", err.message);
        }
        drey_grammar_close(&g);
        line = strtok(NULL, "\n");
    }
    printf("%d schemas, %d refused\n", all.n_schemas, n_refused);
    assert_true(all.n_schemas > 0);
}

static bool has(const part *p)
{
    return (p->drafter != DREY_DRAFTER_SELF || all.sidecar[0]) &&
           (p->drafter != DREY_DRAFTER_MEDUSA || all.heads[0]) &&
           (p->drafter != DREY_DRAFTER_EAGLE || all.layer);
}

static engine_place open_place(const part *p)
{
    drey_engine_options o = plain_options(all.target, all.n_prompt + MOST_TOKENS, 1);
    o.drafter = p->drafter;
    o.research = &(drey_research){.with = p->with};
    if (p->drafter != DREY_DRAFTER_NONE) /* the usual one pauses where drafting does not pay */
        o.policy = DREY_POLICY_SPECINFER;
    o.n_sessions = AT_ONCE;
    o.draft = p->drafter == DREY_DRAFTER_MODEL   ? all.draft
              : p->drafter == DREY_DRAFTER_EAGLE ? all.layer
                                                 : NULL;
    o.heads = p->drafter == DREY_DRAFTER_MEDUSA ? all.heads : NULL;
    o.sidecar = p->drafter == DREY_DRAFTER_SELF ? all.sidecar : NULL;
    return place_open(&o, NULL);
}

/* ---- Writing ---- */

/* Texts i .. i + n - 1, at once. */
static void write_texts(engine_place *p, int32_t i, int32_t n, writing *into)
{
    static const drey_sampling samplings[] = {
        {.temperature = 0.8f, .top_p = 1},
        {.temperature = 1.2f, .top_k = 30, .top_p = 0.9f, .min_p = 0.01f},
        {.temperature = 0.7f, .top_k = 40, .top_p = 0.95f},
        {.temperature = 2, .top_p = 1}};
    drey_grammar *grammars[AT_ONCE];
    int32_t n_writing = n;
    for (int32_t k = 0; k < n; k++) {
        const char *schema = all.schema[(i + k) % all.n_schemas];
        memset(&into[k], 0, sizeof into[k]);
        drey_generate_options o = writing_into(&into[k], MOST_TOKENS);
        o.ignore_eos = false;
        o.sampling = samplings[(i + k) / all.n_schemas % 4];
        o.sampling.seed = (uint64_t)(i + k);
        MUST(drey_grammar_open, &grammars[k], all.target, DREY_GRAMMAR_JSON_SCHEMA, schema,
             strlen(schema));
        o.grammar = grammars[k];
        MUST(drey_session_sync, p->session[k], all.prompt, (size_t)all.n_prompt, NULL);
        MUST(drey_session_begin, p->session[k], &o, &into[k].stats);
    }
    while (n_writing > 0)
        MUST(drey_engine_step, p->engine, &n_writing);
    for (int32_t k = 0; k < n; k++)
        drey_grammar_close(&grammars[k]);
}

static void keep(answer *a, const writing *w)
{
    a->ids = malloc((size_t)(w->n_ids + 1) * sizeof *a->ids);
    a->text = malloc(w->n_bytes + 1);
    if (!a->ids || !a->text)
        abort();
    memcpy(a->ids, w->ids, (size_t)w->n_ids * sizeof *a->ids);
    memcpy(a->text, w->text, w->n_bytes);
    a->n_ids = w->n_ids;
    a->n_bytes = w->n_bytes;
    a->finish = w->stats.finish;
}

static bool is_same(const answer *a, const writing *w)
{
    return a->n_ids == w->n_ids && a->finish == w->stats.finish &&
           memcmp(a->ids, w->ids, (size_t)a->n_ids * sizeof *a->ids) == 0;
}

/* Returns how many differ from those without a draft. */
static int32_t write_all(const part *p, answer *answers, int32_t n)
{
    static writing now[AT_ONCE];
    engine_place place = open_place(p);
    int32_t n_other = 0;
    int64_t n_tokens = 0, n_accepted = 0;
    for (int32_t i = 0; i < n; i += AT_ONCE) {
        int32_t n_now = n - i < AT_ONCE ? n - i : AT_ONCE;
        write_texts(&place, i, n_now, now);
        for (int32_t k = 0; k < n_now; k++) {
            n_tokens += now[k].n_ids;
            n_accepted += (int64_t)now[k].stats.accepted;
            if (p == parts)
                keep(&answers[i + k], &now[k]);
            else if (!is_same(&answers[i + k], &now[k]) && n_other++ == 0)
                printf("%s: answer %d differs: %.*s\n", p->name, i + k, (int)now[k].n_bytes,
                       now[k].text);
        }
    }
    place_close(&place);
    printf("%s: %d answers, %lld tokens, %lld of them accepted from drafts, %d differ\n", p->name,
           n, (long long)n_tokens, (long long)n_accepted, n_other);
    fflush(stdout);
    return n_other;
}

static void put(void *user, const char *bytes, size_t n, const char *from)
{
    fwrite(bytes, 1, n, user);
}

static void save(const char *path, const answer *answers, int32_t n)
{
    FILE *f = fopen(path, "w");
    if (!f)
        abort();
    for (int32_t i = 0; i < n; i++) {
        json_writer w = {.put = put, .user = f};
        fprintf(f, "{\"schema\":%d,\"whole\":%s,\"text\":", all.line[i % all.n_schemas],
                answers[i].finish == DREY_FINISH_STOP ? "true" : "false");
        json_raw_string(&w, answers[i].text, answers[i].n_bytes);
        fputs("}\n", f);
    }
    fclose(f);
}

int main(int argc, char **argv)
{
    size_t n_bytes;
    if (argc != 4 && argc != 8)
        return 2;
    const int32_t n = atoi(argv[1]);
    char *text = (char *)bytes_file_read(argv[2], &n_bytes);
    answer *answers = calloc((size_t)n + 1, sizeof *answers);
    int32_t n_other = 0;
    if (!answers)
        return 2;
    temp_dir();
    if (argc == 4)
        open_toys();
    else
        open_models(argv + 4);
    read_schemas(text);
    for (int i = 0; i < N_PARTS; i++)
        if (has(&parts[i]))
            n_other += write_all(&parts[i], answers, n);
    save(argv[3], answers, n);
    for (int32_t i = 0; i < n; i++) {
        free(answers[i].ids);
        free(answers[i].text);
    }
    free(answers);
    free(text);
    drey_model_close(&all.layer);
    drey_model_close(&all.draft);
    drey_model_close(&all.target);
    temp_dir_remove();
    return n_other > 0;
}
