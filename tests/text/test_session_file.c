/* Sessions in files: a session that is loaded continues as if it had never been saved, and a file
 * that is not exactly what was saved changes nothing. */
#include <unistd.h>

#include "common/hash.h"
#include "session/session.h"
#include "support/bytes_file.h"
#include "support/faults/disk.h"
#include "support/toy_models.h"
#include "support/writing.h"

enum { N_CONTEXT = 160, N_PROMPT = 37, N_TEXT = 30, HEADER_BYTES = 128 };

static int32_t prompt[N_PROMPT];

static engine_place open_place(drey_model *model, drey_drafter kind, drey_kv kv, double share,
                               int32_t n_context)
{
    drey_engine_options o = plain_options(model, n_context, 1);
    o.draft = kind == DREY_DRAFTER_MODEL ? draft : NULL;
    o.drafter = kind;
    o.kv = kv;
    o.prompt_chunk = 9;
    return place_open(&o, &(engine_hooks){.set_share = share <= 1, .share = share});
}

static const drey_sampling sampled = {
    .temperature = 0.8f, .top_k = 40, .top_p = 0.9f, .min_p = 0.01f, .seed = 77};

static void write_text(drey_session *s, const int32_t *ids, size_t n, const drey_sampling *how,
                       writing *t)
{
    t->n_ids = 0;
    t->n_bytes = 0;
    writing_continue(t, s, ids, n, N_TEXT, how);
    assert_int_equal(t->n_ids, N_TEXT);
}

/* ---- Saved and loaded ---- */

static void round_trip(drey_kv kv, drey_drafter from, drey_drafter to, double share)
{
    drey_saved_session saved;
    const int32_t *ids;
    size_t n_ids;
    static writing first, second, again;
    engine_place a = open_place(target, from, kv, 2, N_CONTEXT);
    write_text(a.session[0], prompt, N_PROMPT, &sampled, &first);
    MUST(drey_session_save, a.session[0], temp_path("s"), "a note", 6);
    write_text(a.session[0], prompt, 3, &sampled, &second);
    place_close(&a);
    engine_place b = open_place(target, to, kv, share, N_CONTEXT + 20);
    write_text(b.session[0], prompt + 5, 9, &sampled, &again); /* something else was there */
    MUST(drey_session_load, b.session[0], temp_path("s"), &saved);
    assert_int_equal(saved.n_tokens, N_PROMPT + N_TEXT);
    assert_int_equal(saved.n_kept, toy_kept(N_PROMPT + N_TEXT - 1));
    assert_int_equal(saved.n_note_bytes, 6);
    assert_string_equal(saved.note, "a note");
    assert_memory_equal(&saved.sampling, &sampled, sizeof sampled);
    drey_free(saved.note);
    MUST(drey_saved_session_read, temp_path("s"), 6, &saved);
    assert_int_equal(saved.n_tokens, N_PROMPT + N_TEXT);
    assert_string_equal(saved.note, "a note");
    drey_free(saved.note);
    MUST(drey_saved_session_read, temp_path("s"), 5, &saved);
    assert_true(saved.n_note_bytes == 6 && !saved.note);
    drey_session_timeline(b.session[0], &ids, &n_ids);
    assert_int_equal(n_ids, N_PROMPT + N_TEXT);
    assert_memory_equal(ids, prompt, sizeof prompt);
    assert_memory_equal(ids + N_PROMPT, first.ids, N_TEXT * sizeof *first.ids);
    write_text(b.session[0], prompt, 3, &saved.sampling, &again);
    must_be_same(&second, &again, "loaded");
    place_close(&b);
}

TEST(test_round_trip)
{
    round_trip(DREY_KV_F16, DREY_DRAFTER_NONE, DREY_DRAFTER_MODEL, 0.4);
    round_trip(DREY_KV_F16, DREY_DRAFTER_MODEL, DREY_DRAFTER_LOOKUP, 2);
    round_trip(DREY_KV_Q8_0, DREY_DRAFTER_LOOKUP, DREY_DRAFTER_MODEL, 0);
}

/* Of a session that has written nothing, and of tokens that were not computed yet. */
TEST(test_little_to_save)
{
    drey_saved_session saved;
    static writing right, got;
    engine_place a = open_place(target, DREY_DRAFTER_NONE, DREY_KV_F16, 2, N_CONTEXT);
    MUST(drey_session_save, a.session[0], temp_path("empty"), NULL, 0);
    MUST(drey_session_sync, a.session[0], prompt, N_PROMPT, NULL);
    MUST(drey_session_save, a.session[0], temp_path("unread"), NULL, 0);
    MUST(drey_session_load, a.session[0], temp_path("empty"), &saved);
    assert_true(saved.n_tokens == 0 && saved.n_kept == 0 && !saved.note);
    assert_true(saved.sampling.temperature == 0 && saved.sampling.top_p == 1);
    MUST(drey_session_load, a.session[0], temp_path("unread"), &saved);
    assert_true(saved.n_tokens == N_PROMPT && saved.n_kept == 0);
    write_text(a.session[0], NULL, 0, &sampled, &got);
    drey_session_reset(a.session[0]);
    write_text(a.session[0], prompt, N_PROMPT, &sampled, &right);
    must_be_same(&right, &got, "loaded");
    place_close(&a);
}

TEST(test_while_writing)
{
    drey_error err = {0};
    static writing t;
    bool done;
    engine_place a = open_place(target, DREY_DRAFTER_MODEL, DREY_KV_F16, 2, N_CONTEXT);
    drey_generate_options g = writing_into(&t, N_TEXT);
    MUST(drey_session_sync, a.session[0], prompt, N_PROMPT, NULL);
    MUST(drey_session_save, a.session[0], temp_path("s"), NULL, 0);
    MUST(drey_session_begin, a.session[0], &g, &t.stats);
    MUST(drey_session_step, a.session[0], &done);
    assert_int_equal(drey_session_save(a.session[0], temp_path("w"), NULL, 0, &err),
                     DREY_ERR_USAGE);
    assert_int_equal(access(temp_path("w"), F_OK), -1);
    MUST(drey_session_load, a.session[0], temp_path("s"), NULL);
    assert_false(drey_session_is_writing(a.session[0]));
    assert_int_equal(t.stats.finish, DREY_FINISH_INTERRUPTED);
    place_close(&a);
}

/* ---- Refused ---- */

typedef struct refused { /* a session that files are offered to, and what it writes after that */
    engine_place at;
    uint8_t *bytes;
    size_t n_bytes;
} refused;

static void offer(refused *r, const char *path, drey_status expected, const char *says)
{
    drey_error err = {0};
    drey_saved_session saved = {.n_tokens = -1};
    int32_t n_before = r->at.session[0]->n_timeline,
            kept = cache_end(&r->at.session[0]->target_cache);
    drey_status status = drey_session_load(r->at.session[0], path, &saved, &err);
    must_refuse(status, expected, says, &err);
    assert_int_equal(saved.n_tokens, -1);
    assert_int_equal(r->at.session[0]->n_timeline, n_before);
    assert_int_equal(cache_end(&r->at.session[0]->target_cache), kept);
}

static void offer_bytes(refused *r, const uint8_t *bytes, size_t n, drey_status expected)
{
    bytes_file_write(temp_path("bad"), bytes, n);
    offer(r, temp_path("bad"), expected, ";");
}

/* A header that says this at an offset, and has the hash that belongs to it. */
static void forge(refused *r, size_t at, uint32_t value, drey_status expected)
{
    uint8_t *bytes = malloc(r->n_bytes);
    memcpy(bytes, r->bytes, r->n_bytes);
    memcpy(bytes + at, &value, sizeof value);
    uint64_t hash = hash64_of(bytes, HEADER_BYTES - 8);
    memcpy(bytes + HEADER_BYTES - 8, &hash, 8);
    offer_bytes(r, bytes, r->n_bytes, expected);
    free(bytes);
}

static void forge_numbers(refused *r)
{
    enum { VERSION_AT = 8, ORIGIN_AT = 16, TOKENS_AT = 48, NOTE_AT = 80 };
    static const uint32_t wrong[] = {0, 1, 66, 68, 1000, 0x7fffffff, 0x80000000, 0xffffffff};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        forge(r, TOKENS_AT, wrong[i], DREY_ERR_FORMAT);
        if (wrong[i] != 66) /* which it is */
            forge(r, TOKENS_AT + 4, wrong[i], DREY_ERR_FORMAT);
        forge(r, NOTE_AT, wrong[i] + 10, DREY_ERR_FORMAT);
        forge(r, NOTE_AT + 4, wrong[i] | 8, DREY_ERR_FORMAT);
        forge(r, ORIGIN_AT + 16, wrong[i] + 100, DREY_ERR_FORMAT); /* layers */
    }
    forge(r, VERSION_AT, 2, DREY_ERR_MISMATCH);
    forge(r, VERSION_AT + 4, 120, DREY_ERR_FORMAT);
    forge(r, ORIGIN_AT, 1, DREY_ERR_MISMATCH);
}

TEST(test_damage)
{
    enum { N_FLIPS = 300 };
    rng random = rng_from(4);
    static writing right, got;
    refused r = {.at = open_place(target, DREY_DRAFTER_MODEL, DREY_KV_F16, 2, N_CONTEXT)};
    write_text(r.at.session[0], prompt, N_PROMPT, &sampled, &right);
    MUST(drey_session_save, r.at.session[0], temp_path("good"), "note", 4);
    r.bytes = bytes_file_read(temp_path("good"), &r.n_bytes);
    for (int i = 0; i < N_FLIPS; i++) {
        size_t at = i < HEADER_BYTES ? (size_t)i : (size_t)rng_below(&random, (int32_t)r.n_bytes);
        uint8_t bit = (uint8_t)(1 << rng_below(&random, 8));
        r.bytes[at] ^= bit;
        offer_bytes(&r, r.bytes, r.n_bytes,
                    at >= 8 && at < 12 ? DREY_ERR_MISMATCH : DREY_ERR_FORMAT);
        r.bytes[at] ^= bit;
    }
    for (int i = 0; i < 40; i++)
        offer_bytes(&r, r.bytes,
                    i < 20 ? (size_t)i * 16 : (size_t)rng_below(&random, (int32_t)r.n_bytes),
                    DREY_ERR_FORMAT);
    forge_numbers(&r);
    write_text(r.at.session[0], prompt, 3, &sampled, &got);
    MUST(drey_session_load, r.at.session[0], temp_path("good"), NULL);
    write_text(r.at.session[0], prompt, 3, &sampled, &right);
    must_be_same(&right, &got, "loaded");
    free(r.bytes);
    place_close(&r.at);
}

TEST(test_foreign)
{
    static writing t;
    engine_place a = open_place(target, DREY_DRAFTER_NONE, DREY_KV_F16, 2, N_CONTEXT);
    write_text(a.session[0], prompt, N_PROMPT, &sampled, &t);
    MUST(drey_session_save, a.session[0], temp_path("s"), NULL, 0);
    place_close(&a);
    refused r = {.at = open_place(other, DREY_DRAFTER_NONE, DREY_KV_F16, 2, N_CONTEXT)};
    offer(&r, temp_path("s"), DREY_ERR_MISMATCH, "another model");
    place_close(&r.at);
    r.at = open_place(target, DREY_DRAFTER_NONE, DREY_KV_Q8_0, 2, N_CONTEXT);
    offer(&r, temp_path("s"), DREY_ERR_MISMATCH, "q8_0");
    place_close(&r.at);
    r.at = open_place(target, DREY_DRAFTER_NONE, DREY_KV_F16, 2, N_PROMPT + N_TEXT - 1);
    offer(&r, temp_path("s"), DREY_ERR_CONTEXT, "larger context");
    offer(&r, temp_path("missing"), DREY_ERR_IO, "cannot open");
    offer(&r, temp_path("."), DREY_ERR_IO, "not a regular file");
    place_close(&r.at);
}

/* ---- A disk that is full ---- */

TEST(test_full_disk)
{
    drey_error err = {0};
    drey_saved_session saved;
    static writing t;
    engine_place a = open_place(target, DREY_DRAFTER_NONE, DREY_KV_F16, 2, N_CONTEXT);
    write_text(a.session[0], prompt, N_PROMPT, &sampled, &t);
    MUST(drey_session_save, a.session[0], temp_path("s"), NULL, 0);
    write_text(a.session[0], prompt, 1, &sampled, &t);
    disk_set_full(true);
    drey_status status = drey_session_save(a.session[0], temp_path("s"), NULL, 0, &err);
    disk_set_full(false);
    must_refuse(status, DREY_ERR_IO, "cannot write", &err);
    MUST(drey_session_load, a.session[0], temp_path("s"), &saved); /* what was there */
    assert_int_equal(saved.n_tokens, N_PROMPT + N_TEXT);
    place_close(&a);
}

/* ---- */

static int make_models(void **state)
{
    toy_options toy = toy_asked();
    rng r = rng_from(9);
    for (int i = 0; i < N_PROMPT; i++)
        prompt[i] = 1 + rng_below(&r, 250);
    toy.head_dim = 32;
    toy.v_dim = 64;
    toys_open_pair(&toy);
    toy.seed++;
    other = toy_open("other.gguf", &toy);
    return 0;
}

TEST_GROUP(make_models, toys_close)
