/* Property: any JSON in a request of Anthropic's, of OpenAI's newer interface or of ollama's is
 * refused with 400 and a sentence, or becomes JSON; whatever room there is for that, no byte is
 * written after it, and what does not fit is said. A conversation that was kept continues as JSON,
 * until it is forgotten. */
#include "fuzz/fuzz.h"
#include "serve/adapters/adapter.h"

#include <string.h>

enum { MOST_VALUES = 4096, ROOM = 1 << 18, PAST_BYTES = 1 << 15 };

static json_value values[MOST_VALUES], again[MOST_VALUES];
static char written[ROOM], past_memory[PAST_BYTES];
static response_store kept;
static previous_conversation before;

static bool responses(const json_value *body, text_out *out, refusal *r)
{
    return responses_request(body, &before, out, r);
}

static adapter_fn *const dialects[] = {anthropic_request, ollama_chat_request,
                                       ollama_generate_request, responses};
enum { N_DIALECTS = sizeof dialects / sizeof *dialects };

static const json_value *parse(json_value *room, char *text, size_t n)
{
    json_values v = {.values = room, .capacity = MOST_VALUES};
    return json_parse(&v, text, n);
}

/* A text of this many bytes: no conversation that it makes has room for more values. */
static void check_json(const char *text, size_t n)
{
    json_reader reader;
    json_reader_init(&reader, text, n, JSON_MOST_LEVELS);
    json_event e;
    do
        e = json_next(&reader);
    while (e != JSON_DONE && e != JSON_BROKEN);
    FUZZ_CHECK(e == JSON_DONE);
    char *copy = fuzz_copy(text, n);
    const json_value *chat = parse(again, copy, n);
    FUZZ_CHECK(!chat || chat->type == JSON_OBJECT);
    free(copy);
}

static bool rewrite(adapter_fn *dialect, const json_value *body, char *room, size_t n_room,
                    text_out *out)
{
    refusal r = {.status = 0};
    *out = (text_out){.text = room, .capacity = n_room};
    if (dialect(body, out, &r)) {
        FUZZ_CHECK(r.status == 0 && out->n <= n_room);
        return true;
    }
    FUZZ_CHECK(r.status == 400 && strlen(r.message) > 20 && r.type);
    return false;
}

/* Checks that the request is written whole, and into less room. */
static bool check_request(adapter_fn *dialect, const json_value *body, size_t less, text_out *out)
{
    text_out small;
    char *room = malloc(less ? less : 1);
    FUZZ_CHECK(room);
    bool fits = rewrite(dialect, body, room, less, &small);
    before = (previous_conversation){.n = 0};
    bool good = rewrite(dialect, body, written, sizeof written, out);
    FUZZ_CHECK(good == fits && !out->full);
    FUZZ_CHECK(!good || small.full == (less < out->n));
    free(room);
    if (good)
        check_json(out->text, out->n);
    return good;
}

/* The same request once more, after the conversation that it made. */
static void check_past(const json_value *body, const text_out *first)
{
    text_out out;
    kept = (response_store){.memory = past_memory, .capacity = sizeof past_memory};
    if (!adapter_keep(&kept, &before, first))
        return;
    response_store_name(&kept, "resp-1");
    text_out room;
    if (!response_store_open(&kept, "resp-1", &room))
        return;
    static const char message[] = ",{\"role\":\"assistant\",\"content\":\"a\"}";
    out_text(&room, message);
    size_t n_messages = room.n;
    out_text(&room, "{}");
    FUZZ_CHECK(room.n <= room.capacity);
    if (room.full)
        return;
    response_store_close(&kept, &room, n_messages);
    const stored_response *e = response_store_find(&kept, "resp-1", 6);
    FUZZ_CHECK(e && e->at + e->n_messages + e->n_response <= kept.n);
    before = (previous_conversation){.messages = kept.memory + e->at, .n = e->n_messages};
    if (rewrite(responses, body, written, sizeof written, &out) && !out.full)
        check_json(out.text, out.n);
    response_store_forget(&kept, e);
    FUZZ_CHECK(!response_store_find(&kept, "resp-1", 6) && kept.n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes < 3 || n_bytes > 10000)
        return 0;
    char *text = fuzz_copy(bytes + 2, n_bytes - 2);
    const json_value *body = parse(values, text, n_bytes - 2);
    text_out out;
    adapter_fn *dialect = dialects[bytes[0] % N_DIALECTS];
    before = (previous_conversation){.n = 0};
    if (body && body->type == JSON_OBJECT &&
        check_request(dialect, body, (size_t)bytes[1] * 8, &out) && dialect == responses)
        check_past(body, &out);
    free(text);
    return 0;
}
