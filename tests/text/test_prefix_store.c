/* Kept prefixes: what is restored equals what would be computed, whichever session began the text,
 * whatever was evicted meanwhile, and after a restart. Incomplete files and files of another model
 * are not used. */
#include <dirent.h>

#include "session/session.h"
#include "state/cache_room.h"
#include "state/kept_positions.h"
#include "support/bytes_file.h"
#include "support/faults/disk.h"
#include "support/toy_models.h"
#include "support/writing.h"

enum { N_CONTEXT = 320, N_TEXT = 12, MOST_PROMPT = 290 };
#ifdef TESTS_SANITIZED
enum { N_ROUNDS = 40 };
#else
enum { N_ROUNDS = 60 };
#endif

static drey_engine_options options_of(drey_model *model, const drey_prefix_options *prefixes)
{
    drey_engine_options o = plain_options(model, N_CONTEXT, 1);
    o.n_sessions = 2;
    o.prefixes = prefixes;
    return o;
}

static engine_place open_place(drey_model *model, const drey_prefix_options *prefixes, bool drafts)
{
    drey_engine_options o = options_of(model, prefixes);
    o.draft = drafts ? draft : NULL;
    o.drafter = drafts ? DREY_DRAFTER_MODEL : DREY_DRAFTER_NONE;
    return place_open(&o, NULL);
}

static size_t block_bytes(void)
{
    const cache_spec spec = model_cache_spec(&target->shape, KV_F16);
    return prefix_sizes_of(&spec, N_CONTEXT).block;
}

static size_t state_bytes(void)
{
    const cache_spec spec = model_cache_spec(&target->shape, KV_F16);
    return prefix_sizes_of(&spec, N_CONTEXT).state + N_CONTEXT * sizeof(int32_t) + 256;
}

static bool has_states(void)
{
    return shape_has_states(&target->shape);
}

/* Room for so many blocks, and as much for states where there are some. */
static drey_prefix_options room_for(int n, const char *folder, int n_files)
{
    size_t block = block_bytes() + N_CONTEXT * sizeof(int32_t) + 256;
    size_t kept = block_bytes() + N_CONTEXT * sizeof(int32_t) + sizeof(prefix_header);
    const size_t blocks = (size_t)n * block,
                 states = blocks > state_bytes() ? blocks : state_bytes();
    return (drey_prefix_options){.memory_bytes = (has_states() ? 2 * states : blocks) + 4096,
                                 .folder = folder,
                                 .disk_bytes = (has_states() ? 2u : 1u) * (size_t)n_files * kept};
}

/* Files and blocks; states are some more. */
static void must_be_n(int64_t n, int64_t want)
{
    assert_true(has_states() ? n > want : n == want);
}

/* Positions of n that were known: all, or those up to one of its states. */
static void must_be_known(int64_t known, int32_t n)
{
    if (toy_states_are_rare())
        assert_true(known % KV_GROUP == 0 && known <= n);
    else if (has_states())
        assert_true(known % KV_GROUP == 0 && known <= n && known > n - 2 * PREFIX_POSITIONS);
    else
        assert_int_equal(known, n);
}

/* ---- Texts ---- */

static void write_text(drey_session *s, const int32_t *ids, int32_t n, writing *t)
{
    const drey_sampling sampling = {.temperature = 0.7f, .top_p = 1, .seed = 3};
    t->n_ids = 0;
    t->n_bytes = 0;
    drey_session_reset(s);
    writing_continue(t, s, ids, (size_t)n, N_TEXT, &sampling);
    assert_int_equal(t->n_ids, N_TEXT);
}

static void random_ids(rng *r, int32_t *ids, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        ids[i] = 1 + rng_below(r, 250);
}

/* ---- In memory ---- */

static void check_same_cache(const text_cache *a, const text_cache *b, int32_t n_groups)
{
    for (int32_t i = 0; i < cache_n_pieces(a); i++)
        assert_memory_equal(cache_piece(a, i, 0), cache_piece(b, i, 0),
                            cache_piece_bytes(a, i, n_groups * KV_GROUP));
}

static void must_have_restored(const drey_statistics *s, int64_t cached, int64_t restored,
                               int64_t of_folder)
{
    assert_int_equal(s->cached_tokens, cached);
    assert_int_equal(s->restored_tokens, restored);
    assert_int_equal(s->folder_tokens, of_folder);
}

TEST(test_same_bytes)
{
    rng r = rng_from(1);
    int32_t ids[MOST_PROMPT];
    static writing first, again, plain;
    drey_prefixes count;
    drey_prefix_options o = room_for(8, NULL, 0);
    engine_place p = open_place(target, &o, true), alone = open_place(target, NULL, false);
    random_ids(&r, ids, MOST_PROMPT);
    write_text(p.session[0], ids, 200, &first);
    assert_int_equal(first.stats.cached_tokens, 0);
    random_ids(&r, ids + 190, 40); /* another end */
    drey_session_reset(p.session[0]);
    write_text(p.session[1], ids, 230, &again);
    must_have_restored(&again.stats, toy_kept(190), toy_kept(190), 0);
    write_text(alone.session[0], ids, 230, &plain);
    must_be_same(&plain, &again, "restored");
    check_same_cache(&p.session[1]->target_cache, &alone.session[0]->target_cache, 230 / KV_GROUP);
    drey_engine_prefixes(p.engine, &count);
    assert_int_equal(count.blocks, 6); /* two, and of each text a third and a part */
    assert_int_equal(count.restored_tokens, toy_kept(190));
    assert_true(count.files == 0 && count.memory_bytes <= o.memory_bytes);
    /* A session's own beginning, to which the store adds. */
    MUST(drey_session_truncate, p.session[1], 150);
    MUST(drey_session_sync, p.session[1], ids, 230, NULL);
    const int32_t own = cache_end(&p.session[1]->target_cache);
    assert_int_equal(own, has_states() ? 0 : 149); /* it has no state from before its own rows */
    drey_generate_options g;
    drey_generate_options_init(&g);
    MUST(drey_session_begin, p.session[1], &g, &again.stats);
    must_be_known(cache_end(&p.session[1]->target_cache), 229);
    drey_session_end(p.session[1]);
    must_have_restored(&again.stats, cache_end(&p.session[1]->target_cache),
                       cache_end(&p.session[1]->target_cache) - own, 0);
    place_close(&p);
    place_close(&alone);
}

/* The last token is computed in any case, for what follows it. */
TEST(test_last_token)
{
    rng r = rng_from(5);
    int32_t ids[129];
    static writing first, again;
    drey_prefix_options o = room_for(8, NULL, 0);
    engine_place p = open_place(target, &o, false);
    random_ids(&r, ids, 129);
    write_text(p.session[0], ids, 128, &first);
    drey_session_reset(p.session[0]);
    write_text(p.session[1], ids, 128, &again);
    must_have_restored(&again.stats, toy_kept(127), toy_kept(127), 0);
    must_be_same(&first, &again, "restored");
    write_text(p.session[1], ids, 129, &again);
    must_have_restored(&again.stats, 128, 128, 0);
    place_close(&p);
}

/* Few places, a small folder: blocks come and go, texts stay. */
TEST(test_many_texts)
{
    rng r = rng_from(2);
    int32_t base[3][MOST_PROMPT], ids[MOST_PROMPT];
    int64_t n_cached = 0;
    static writing got, plain;
    drey_prefixes count;
    drey_prefix_options o = room_for(5, temp_path("small"), 9);
    engine_place p = open_place(target, &o, true), alone = open_place(target, NULL, false);
    for (int i = 0; i < 3; i++)
        random_ids(&r, base[i], MOST_PROMPT);
    for (int i = 0; i < N_ROUNDS; i++) {
        int32_t n = 1 + rng_below(&r, MOST_PROMPT - 1), same = rng_below(&r, n + 1);
        memcpy(ids, base[rng_below(&r, 3)], (size_t)same * sizeof *ids);
        random_ids(&r, ids + same, n - same);
        write_text(p.session[rng_below(&r, 2)], ids, n, &got);
        write_text(alone.session[0], ids, n, &plain);
        must_be_same(&plain, &got, "restored");
        n_cached += got.stats.cached_tokens;
        drey_engine_prefixes(p.engine, &count);
        assert_true(count.blocks <= 5 && count.disk_bytes <= o.disk_bytes && !count.disk_failed);
    }
    assert_true(count.restored_tokens > 0 && (count.copied_tokens > 0 || toy_states_are_rare()));
    assert_int_equal(count.restored_tokens + count.copied_tokens, n_cached);
    assert_true(toy_states_are_rare() ||
                (count.kept_blocks > 5 && count.read_blocks > 0 && count.written_blocks > 9));
    place_close(&p);
    place_close(&alone);
}

/* ---- After a restart ---- */

static int64_t cached_after_restart(drey_model *model, const drey_prefix_options *o,
                                    const int32_t *ids, int32_t n, const writing *right)
{
    static writing got;
    engine_place p = open_place(model, o, false);
    write_text(p.session[0], ids, n, &got);
    if (right)
        must_be_same(right, &got, "restored");
    MUST(drey_engine_write_prefixes, p.engine, INT64_MAX, NULL);
    place_close(&p);
    assert_int_equal(got.stats.folder_tokens, got.stats.cached_tokens);
    return got.stats.cached_tokens;
}

static int for_each_file(const char *folder, void (*change)(const char *path))
{
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *at; (at = readdir(dir));)
        if (strstr(at->d_name, ".kept")) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", folder, at->d_name);
            if (change)
                change(path);
            n++;
        }
    closedir(dir);
    return n;
}

static rng damage_rng;

static void flip_a_bit(const char *path)
{
    size_t n;
    uint8_t *bytes = bytes_file_read(path, &n);
    bytes[rng_below(&damage_rng, (int32_t)n)] ^= (uint8_t)(1 << rng_below(&damage_rng, 8));
    bytes_file_write(path, bytes, n);
    free(bytes);
}

static void cut_off(const char *path)
{
    size_t n;
    uint8_t *bytes = bytes_file_read(path, &n);
    bytes_file_write(path, bytes, (size_t)rng_below(&damage_rng, (int32_t)n));
    free(bytes);
}

TEST(test_restart)
{
    damage_rng = rng_from(8);
    int32_t ids[200];
    static writing right;
    const char *folder = temp_path("restart");
    drey_prefix_options o = room_for(8, folder, 20);
    random_ids(&damage_rng, ids, 200);
    engine_place p = open_place(target, &o, false);
    int64_t n_left;
    write_text(p.session[0], ids, 200, &right);
    MUST(drey_engine_write_prefixes, p.engine, INT64_MAX, &n_left);
    assert_int_equal(n_left, 0);
    place_close(&p);
    must_be_n(for_each_file(folder, NULL), 4);
    must_be_known(cached_after_restart(target, &o, ids, 200, &right), 199);
    for (int i = 0; i < 5; i++) {
        for_each_file(folder, i % 2 ? cut_off : flip_a_bit);
        assert_int_equal(cached_after_restart(target, &o, ids, 200, &right), 0);
        must_be_known(cached_after_restart(target, &o, ids, 200, &right), 199);
    }
    assert_int_equal(cached_after_restart(other, &o, ids, 200, NULL), 0);
    must_be_known(cached_after_restart(target, &o, ids, 200, &right), 199);
    must_be_n(for_each_file(folder, NULL), 8);
}

/* ---- What cannot be ---- */

TEST(test_refused)
{
    drey_plan with, without;
    drey_prefix_options o = room_for(4, temp_path("used"), 4);
    drey_engine_options options = options_of(target, &o);
    int32_t ids[PREFIX_POSITIONS + 1] = {1};
    static writing t;
    engine_place p = open_place(target, &o, false);
    write_text(p.session[0], ids, PREFIX_POSITIONS + 1, &t);
    MUST(drey_engine_write_prefixes, p.engine, INT64_MAX, NULL);
    must_refuse_engine(&options, NULL, DREY_ERR_IO, "another process");
    place_close(&p);
    MUST(drey_plan_make, &options, NULL, &with);
    options.prefixes = NULL;
    MUST(drey_plan_make, &options, NULL, &without);
    assert_true(with.prefix_bytes > 4 * block_bytes() && with.prefix_bytes <= o.memory_bytes);
    assert_int_equal(without.prefix_bytes, 0);
    assert_true(with.smallest_budget_bytes >=
                without.smallest_budget_bytes + with.prefix_bytes - (1 << 20));
    o.memory_bytes = block_bytes();
    options.prefixes = &o;
    must_refuse_engine(&options, NULL, DREY_ERR_USAGE, "too little to keep prefixes");
    int n_files = for_each_file(temp_path("used"), NULL);
    o = room_for(4, temp_path("used"), 1);
    MUST(drey_plan_make, &options, NULL, &with);
    o.disk_bytes = block_bytes();
    must_refuse_engine(&options, NULL, DREY_ERR_USAGE, "of disk are too little");
    assert_int_equal(for_each_file(temp_path("used"), NULL), n_files);
}

/* A disk that is full costs what would have been kept there, and nothing else; it is said. */
TEST(test_full_disk)
{
    rng r = rng_from(3);
    int32_t ids[200];
    static writing first, again;
    drey_prefixes count;
    drey_prefix_options o = room_for(8, temp_path("full"), 20);
    engine_place p = open_place(target, &o, false);
    drey_error err = {0};
    random_ids(&r, ids, 200);
    disk_set_full(true);
    write_text(p.session[0], ids, 200, &first);
    assert_int_equal(drey_engine_write_prefixes(p.engine, INT64_MAX, NULL, &err), DREY_ERR_IO);
    assert_non_null(strstr(err.message, has_states()
                                            ? "blocks of kept prefixes could not be written"
                                            : "4 blocks of kept prefixes could not"));
    disk_set_full(false);
    drey_engine_prefixes(p.engine, &count);
    assert_true(count.disk_failed && count.files == 0 && count.lost_blocks >= 4);
    drey_session_reset(p.session[0]);
    write_text(p.session[1], ids, 200, &again);
    must_have_restored(&again.stats, toy_kept(199), toy_kept(199), 0);
    must_be_same(&first, &again, "restored");
    place_close(&p);
    assert_int_equal(for_each_file(temp_path("full"), NULL), 0);
}

/* Where a text parts from one in the folder, within any block; with memory for one block alone. */
TEST(test_parts_in_folder)
{
    rng r = rng_from(11);
    int32_t base[MOST_PROMPT], ids[MOST_PROMPT];
    static writing got, plain;
    drey_prefix_options o = room_for(1, temp_path("parts"), 40);
    engine_place p = open_place(target, &o, true), alone = open_place(target, NULL, false);
    random_ids(&r, base, MOST_PROMPT);
    write_text(p.session[0], base, 250, &got);
    MUST(drey_engine_write_prefixes, p.engine, INT64_MAX, NULL);
    must_be_n(for_each_file(temp_path("parts"), NULL), 5);
    for (int i = 0; i < 12; i++) {
        int32_t same = i < 6 ? 190 + i : rng_below(&r, 250);
        memcpy(ids, base, sizeof ids);
        random_ids(&r, ids + same, MOST_PROMPT - same);
        ids[same] = 1 + (base[same] + i) % 250; /* unlike those before it */
        drey_session_reset(p.session[i % 2]);
        drey_session_reset(p.session[1 - i % 2]);
        write_text(p.session[i % 2], ids, 260, &got);
        write_text(alone.session[0], ids, 260, &plain);
        must_be_same(&plain, &got, "restored");
        must_be_known(got.stats.cached_tokens, same);
        must_be_known(got.stats.same_tokens, same);
    }
    place_close(&p);
    place_close(&alone);
}

/* ---- From another session ---- */

/* Sessions copy rows that another one has, also while that one writes. */
TEST(test_other_session)
{
    rng r = rng_from(21);
    int32_t ids[MOST_PROMPT];
    static writing got, plain;
    engine_place p = open_place(target, NULL, true), alone = open_place(target, NULL, false);
    drey_generate_options g;
    drey_prefixes count;
    bool done = false;
    random_ids(&r, ids, MOST_PROMPT);
    drey_generate_options_init(&g);
    g.n_predict = 40;
    g.ignore_eos = true;
    MUST(drey_session_sync, p.session[0], ids, 200, NULL);
    MUST(drey_session_begin, p.session[0], &g, NULL);
    for (int i = 0; i < 20 && p.session[0]->state != SESSION_DECODE; i++)
        MUST(drey_session_step, p.session[0], &done);
    assert_int_equal(p.session[0]->state, SESSION_DECODE);
    ids[133]++;
    write_text(p.session[1], ids, 220, &got);
    assert_true(drey_session_is_writing(p.session[0]));
    const int32_t copied = toy_states_are_rare() ? 0 : toy_kept(133);
    assert_int_equal(got.stats.copied_tokens, copied);
    assert_int_equal(got.stats.cached_tokens, copied);
    assert_int_equal(got.stats.same_tokens, 133);
    write_text(alone.session[0], ids, 220, &plain);
    must_be_same(&plain, &got, "copied");
    check_same_cache(&p.session[1]->target_cache, &alone.session[0]->target_cache, 220 / KV_GROUP);
    drey_session_end(p.session[0]);
    drey_engine_prefixes(p.engine, &count);
    assert_true(count.copied_tokens == copied && count.blocks == 0);
    place_close(&p);
    place_close(&alone);
}

/* ---- */

static int make_models(void **state)
{
    toy_options toy = toy_asked();
    toys_open_pair(&toy);
    toy.seed++;
    other = toy_open("other.gguf", &toy);
    return 0;
}

TEST_GROUP(make_models, toys_close)
