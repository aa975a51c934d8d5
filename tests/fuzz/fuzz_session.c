/* Property: any bytes are refused as a saved session with one sentence that says what to do, and
 * the session is as it was before; or the session is what the file says, and can continue to write.
 *
 * Bits of the first byte make the file more likely to be taken: 1 puts in the origin that the
 * session has, 2 the hashes that belong to what is there. */
#include "state/kept_positions.h"
#include "store/kv_origin.h"
#include "session/session.h"
#include "fuzz/fuzz.h"
#include "support/bytes_file.h"
#include "support/temp_dir.h"
#include "support/toy.h"

#include <string.h>

#include "common/hash.h"

enum { N_CONTEXT = 64, N_KEPT = 5 };
/* Offsets in a file. */
enum { ORIGIN_AT = 16, TOKENS_AT = 48, NOTE_AT = 80, BODY_HASH_AT = 88, HASH_AT = 120, HEAD = 128 };

static drey_model *model;
static drey_engine *engine;
static drey_session *session;
static saved_origin origin;
static const int32_t before[N_KEPT] = {5, 6, 7, 8, 9};

static void must(drey_status status, const drey_error *err)
{
    if (status != DREY_OK)
        fprintf(stderr, "%s\n", err->message);
    FUZZ_CHECK(status == DREY_OK);
}

static void close_all(void)
{
    drey_session_close(&session);
    drey_engine_close(&engine);
    drey_model_close(&model);
    temp_dir_remove();
}

static void open_all(void)
{
    drey_error err = {0};
    drey_engine_options o;
    toy_options toy;
    temp_dir();
    atexit(close_all);
    toy = toy_default();
    toy.n_layers = 1;
    toy.n_embd = 32;
    toy.n_heads = toy.n_heads_kv = 1;
    toy.n_ff = 32;
    toy_write(temp_path("toy.gguf"), &toy);
    must(drey_model_open(&model, temp_path("toy.gguf"), &err), &err);
    drey_engine_options_init(&o);
    o.target = model;
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    o.n_context = N_CONTEXT;
    o.n_threads = 1;
    must(drey_engine_open(&engine, &o, &err), &err);
    must(drey_session_open(&session, engine, &err), &err);
    must(engine_saved_origin(engine, &origin, &err), &err);
}

/* ---- Files that are more likely to be taken ---- */

static void put_hash(uint8_t *bytes, size_t at, size_t from, size_t n)
{
    uint64_t hash = hash64_of(bytes + from, n);
    memcpy(bytes + at, &hash, sizeof hash);
}

static void put_hashes(uint8_t *bytes, size_t n)
{
    int32_t count[2]; /* tokens, and those that were computed */
    uint64_t n_note;
    memcpy(count, bytes + TOKENS_AT, sizeof count);
    memcpy(&n_note, bytes + NOTE_AT, sizeof n_note);
    if (count[0] >= 0 && count[1] >= 0 && n_note <= n) {
        size_t n_body = (size_t)count[0] * 4 + (size_t)n_note, at = HEAD + n_body;
        size_t piece = cache_piece_bytes(&session->target_cache, 0, count[1]);
        if (at <= n)
            put_hash(bytes, BODY_HASH_AT, HEAD, n_body);
        for (; piece > 0 && at + piece + 8 <= n; at += piece + 8)
            put_hash(bytes, at + piece, at, piece);
    }
    put_hash(bytes, HASH_AT, 0, HASH_AT);
}

static void mend(uint8_t *bytes, size_t n, uint8_t how)
{
    if (n < HEAD)
        return;
    if (how & 1)
        memcpy(bytes + ORIGIN_AT, &origin, sizeof origin);
    if (how & 2)
        put_hashes(bytes, n);
}

/* ---- What became of it ---- */

static void check_refused(drey_status status, const drey_error *err)
{
    FUZZ_CHECK(status == DREY_ERR_FORMAT || status == DREY_ERR_MISMATCH ||
               status == DREY_ERR_CONTEXT);
    FUZZ_CHECK(strlen(err->message) > 20);
    fuzz_check_refused(status, err);
    FUZZ_CHECK(session->n_timeline == N_KEPT && cache_end(&session->target_cache) == N_KEPT - 1);
    FUZZ_CHECK(memcmp(session->timeline, before, sizeof before) == 0);
}

static void check_taken(const uint8_t *bytes, size_t n, const drey_saved_session *saved)
{
    size_t n_ids = (size_t)session->n_timeline;
    FUZZ_CHECK(saved->n_tokens == session->n_timeline && n_ids <= N_CONTEXT);
    FUZZ_CHECK(saved->n_kept == cache_end(&session->target_cache));
    FUZZ_CHECK(HEAD + n_ids * 4 + saved->n_note_bytes <= n);
    FUZZ_CHECK(memcmp(session->timeline, bytes + HEAD, n_ids * 4) == 0);
    FUZZ_CHECK(!saved->note == (saved->n_note_bytes == 0));
    FUZZ_CHECK(!saved->note ||
               memcmp(saved->note, bytes + HEAD + n_ids * 4, saved->n_note_bytes) == 0);
    FUZZ_CHECK(session_is_valid(session));
}

/* A file with right hashes may hold any numbers in its cache: then any text is right. */
static void write_on(void)
{
    drey_error err = {0};
    drey_generate_options g;
    drey_generate_options_init(&g);
    g.n_predict = 2;
    g.ignore_eos = true;
    if (session->n_timeline > 0 && session->n_timeline < N_CONTEXT)
        must(drey_session_generate(session, NULL, 0, &g, NULL, &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    drey_error err = {0};
    drey_saved_session saved = {.note = NULL};
    drey_generate_options g;
    if (!model)
        open_all();
    if (n_bytes == 0)
        return 0;
    uint8_t *given = fuzz_copy(bytes + 1, n_bytes - 1);
    mend(given, n_bytes - 1, bytes[0]);
    bytes_file_write(temp_path("saved"), given, n_bytes - 1);
    drey_generate_options_init(&g);
    g.n_predict = 1;
    g.ignore_eos = true;
    drey_session_reset(session);
    must(drey_session_generate(session, before, N_KEPT - 1, &g, NULL, &err), &err);
    session->timeline[N_KEPT - 1] = before[N_KEPT - 1];
    drey_status status = drey_session_load(session, temp_path("saved"), &saved, &err);
    if (status == DREY_OK) {
        check_taken(given, n_bytes - 1, &saved);
        write_on();
    } else {
        check_refused(status, &err);
    }
    drey_free(saved.note);
    free(given);
    return 0;
}
