/* Property: any JSON that asks for a chat, a text, vectors, a session's file, or a prompt as text
 * or as a number of tokens is refused with a status and a sentence, or makes a request whose parts
 * have room: tokens of the model, ends that rise, a file's name without a folder. */
#include "fuzz/fuzz.h"
#include "serve/parse/parse_request.h"
#include "serve/api/embeddings.h"
#include "serve/api/slots.h"
#include "support/temp_dir.h"
#include "support/toy.h"

#include <string.h>

enum { MOST_VALUES = 4096, N_CONTEXT = 512, N_JOBS = 8, RECORDS = 64 << 10, SCRATCH = 64 << 10 };

static json_value values[MOST_VALUES];
static char scratch_text[SCRATCH];
static int32_t ids[N_CONTEXT], more_ids[2 * N_CONTEXT];
static char grammar[REQUEST_GRAMMAR_BYTES];
static request one_request;
static sequence sequences[N_JOBS];
static shared all = {
    .requests = &one_request, .n_requests = 1, .sequences = sequences, .n_sequences = N_JOBS};
static serve_options options = {.name = "toy",
                                .slots.folder = "slots",
                                .n_sessions = N_JOBS,
                                .n_context = N_CONTEXT,
                                .pooling = DREY_POOLING_MEAN};
static int32_t n_vocab;

static void open_model(void)
{
    toy_options toy = toy_default();
    drey_model_info info;
    toy.n_layers = 1;
    toy_write(temp_path("ask.gguf"), &toy);
    FUZZ_CHECK(drey_model_open(&options.model, temp_path("ask.gguf"), NULL) == DREY_OK);
    temp_dir_remove();
    drey_model_describe(options.model, &info);
    n_vocab = info.n_vocab;
    options.sampling.top_p = 1;
    drey_penalties_init(&options.penalties);
    one_request.prompts.ids = ids;
    one_request.grammar.text = grammar;
    for (int i = 0; i < N_JOBS; i++) {
        sequences[i].records = malloc(RECORDS);
        sequences[i].capacity = RECORDS;
    }
}

static void check_refusal(const refusal *r)
{
    FUZZ_CHECK((r->status == 400 || r->status == 500 || r->status == 501 || r->status == 503) &&
               strlen(r->message) > 10 && r->type);
}

static void check_texts(const char *memory, size_t n_memory, const char *const *of, size_t n)
{
    for (size_t i = 0; i < n; i++)
        FUZZ_CHECK(of[i] >= memory && of[i] + strlen(of[i]) < memory + n_memory);
}

static void check_task(const request *t)
{
    size_t end = 0;
    FUZZ_CHECK(t->prompts.n_ids <= N_CONTEXT && t->grammar.n <= REQUEST_GRAMMAR_BYTES);
    for (size_t i = 0; i < t->prompts.n_ids + t->prompts.n_predicted; i++)
        FUZZ_CHECK(i < N_CONTEXT && t->prompts.ids[i] >= 0 && t->prompts.ids[i] < n_vocab);
    FUZZ_CHECK(t->prompts.n >= 0 && t->prompts.n <= REQUEST_MOST_CHOICES);
    for (int32_t i = 0; i < t->prompts.n; i++) {
        FUZZ_CHECK(t->prompts.end[i] > end && t->prompts.end[i] <= t->prompts.n_ids);
        end = t->prompts.end[i];
    }
    FUZZ_CHECK(t->kind > REQUEST_NATIVE || (end == t->prompts.n_ids && t->prompts.n_ids > 0));
    FUZZ_CHECK(t->parts.n >= 0 && t->parts.n <= REQUEST_MOST_MESSAGES);
    for (int32_t i = 0; i < t->parts.n; i++)
        FUZZ_CHECK(t->parts.end[i] >= -1 && t->parts.end[i] <= (int32_t)t->prompts.n_ids);
    check_texts(t->stops.text, sizeof t->stops.text, t->stops.of, t->stops.n);
    check_texts(t->fields.text, sizeof t->fields.text, t->fields.of, t->fields.n);
    FUZZ_CHECK(t->sampling.n_biases >= 0 && t->sampling.n_biases <= REQUEST_MOST_BIASES);
    FUZZ_CHECK(t->session.wanted >= -1 && t->session.wanted < N_JOBS);
    FUZZ_CHECK(t->length.n_predict >= 0 && t->tokens.n_top >= 0);
    if (t->kind == REQUEST_SAVE || t->kind == REQUEST_RESTORE)
        FUZZ_CHECK(t->admin.file[0] && t->admin.file[0] != '.' && !strchr(t->admin.file, '/') &&
                   strlen(t->admin.file) < sizeof t->admin.file);
}

static bool ask(request *t, int kind, json_value *body, http_span query, refusal *r)
{
    text_out scratch = {.text = scratch_text, .capacity = SCRATCH};
    switch (kind) {
    case 0:
    case 1:
    case 2:
        return parse_request(t,
                             kind == 0   ? REQUEST_CHAT
                             : kind == 1 ? REQUEST_COMPLETION
                                         : REQUEST_NATIVE,
                             body, &options, &scratch, r);
    case 3:
    case 4:
        return parse_embedding(t, body, kind == 3, &options, r);
    default:
        return parse_slot(t, (http_span){"1", 1}, query, body, &options, r);
    }
}

/* kinds 0 to 5 */
static void check_kind(int kind, json_value *body, http_span query)
{
    static const request_kind kinds[] = {REQUEST_CHAT, REQUEST_COMPLETION, REQUEST_NATIVE};
    refusal r = {.status = 0};
    int32_t n = 1;
    if (kind < 3 && !parse_choices(body, kinds[kind], &options, &n, &r)) {
        check_refusal(&r);
        return;
    }
    FUZZ_CHECK(n >= 1 && n <= REQUEST_MOST_CHOICES);
    request *t = request_take(&all, n);
    FUZZ_CHECK(t);
    if (ask(t, kind, body, query, &r))
        check_task(t);
    else
        check_refusal(&r);
    FUZZ_CHECK(request_release(&all, t));
}

static void check_template(json_value *body)
{
    text_out scratch = {.text = scratch_text, .capacity = SCRATCH};
    refusal r;
    char *text = NULL;
    size_t n = 0;
    if (parse_template(body, &options, &scratch, &text, &n, &r))
        FUZZ_CHECK(text && memchr(text, 0, n + 1) != NULL);
    else
        check_refusal(&r);
    drey_free(text);
}

static void check_tokens(json_value *body)
{
    text_out scratch = {.text = scratch_text, .capacity = SCRATCH};
    refusal r;
    size_t n;
    if (!parse_prompt_tokens(body, &options, &scratch, more_ids, 2 * N_CONTEXT, &n, &r))
        check_refusal(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes < 3 || n_bytes > 10000)
        return 0;
    if (!options.model)
        open_model();
    char *text = fuzz_copy(bytes + 2, n_bytes - 2);
    json_values v = {.values = values, .capacity = MOST_VALUES};
    json_value *body = json_parse(&v, text, n_bytes - 2);
    int kind = bytes[0] % 8;
    static const char *const queries[] = {"action=save", "action=restore", "action=erase", "a=b"};
    const char *query = queries[bytes[1] % 4];
    if (body && body->type == JSON_OBJECT) {
        if (kind < 6)
            check_kind(kind, body, (http_span){query, strlen(query)});
        else if (kind == 6)
            check_template(body);
        else
            check_tokens(body);
    }
    free(text);
    return 0;
}
