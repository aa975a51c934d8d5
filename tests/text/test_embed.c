/* Vectors of texts: the same bits whatever the chunks, threads and sessions; poolings agree with
 * the vectors of single tokens; what cannot be is refused. */
#include "session/session.h"
#include "support/toy_models.h"

enum { N_CONTEXT = 160, N_IDS = 100, MOST_EMBD = 512 };

static int32_t ids[N_IDS];
static size_t n_embd;

static engine_place open_with(int32_t chunk, int32_t n_threads)
{
    drey_engine_options o = plain_options(target, N_CONTEXT, n_threads);
    o.prompt_chunk = chunk;
    return place_open(&o, NULL);
}

static void embed(drey_session *s, drey_pooling pooling, float *out)
{
    MUST(drey_session_embed, s, ids, N_IDS, pooling, out);
    assert_int_equal(s->n_timeline, 0);
}

TEST(test_same_bits)
{
    static float rows[N_IDS * MOST_EMBD], again[N_IDS * MOST_EMBD], one[MOST_EMBD];
    engine_place p = open_with(0, 1);
    embed(p.session[0], DREY_POOLING_NONE, rows);
    embed(p.session[0], DREY_POOLING_MEAN, again);
    for (int32_t chunk = 1; chunk <= 64; chunk *= 4) {
        engine_place q = open_with(chunk, 1 + chunk % 3);
        embed(q.session[0], DREY_POOLING_MEAN, one);
        assert_memory_equal(one, again, n_embd * sizeof *one);
        embed(q.session[0], DREY_POOLING_LAST, one);
        assert_memory_equal(one, rows + (N_IDS - 1) * n_embd, n_embd * sizeof *one);
        embed(q.session[0], DREY_POOLING_CLS, one);
        assert_memory_equal(one, rows, n_embd * sizeof *one);
        place_close(&q);
    }
    for (size_t d = 0; d < n_embd; d++) {
        double sum = 0;
        for (int i = 0; i < N_IDS; i++)
            sum += (double)rows[(size_t)i * n_embd + d];
        assert_true(fabs(sum / N_IDS - (double)again[d]) < 1e-5);
    }
    assert_int_equal(drey_model_pooling(target), DREY_POOLING_LAST);
    embed(p.session[0], DREY_POOLING_MODEL, one);
    assert_memory_equal(one, rows + (N_IDS - 1) * n_embd, n_embd * sizeof *one);
    place_close(&p);
}

enum { N_TEXTS = 12, TOGETHER = N_TEXTS * 20 };

/* Embeds the texts in as many passes as they need. Returns how many those were. */
static int embed_texts(drey_session *s, const drey_text_ids *texts, drey_pooling pooling,
                       float *out)
{
    size_t done = 0, n;
    int n_calls = 0;
    for (; done < N_TEXTS; done += n, n_calls++) {
        MUST(drey_session_embed_texts, s, texts + done, N_TEXTS - done, pooling, out, &n);
        assert_true(n > 0);
        assert_int_equal(s->n_timeline, 0);
        for (size_t t = done; t < done + n; t++)
            out += (pooling == DREY_POOLING_NONE ? texts[t].n : 1) * n_embd;
    }
    return n_calls;
}

TEST(test_texts_together)
{
    static float alone[TOGETHER * MOST_EMBD], out[TOGETHER * MOST_EMBD];
    drey_text_ids texts[N_TEXTS];
    engine_place p = open_with(1, 1);
    for (int t = 0; t < N_TEXTS; t++)
        texts[t] = (drey_text_ids){ids + 7 * t, 1 + (size_t)(t * 5) % 20};
    for (drey_pooling pooling = DREY_POOLING_NONE; pooling <= DREY_POOLING_LAST; pooling++) {
        size_t n = 0;
        for (int t = 0; t < N_TEXTS; t++) {
            MUST(drey_session_embed, p.session[0], texts[t].ids, texts[t].n, pooling,
                 alone + n * n_embd);
            n += pooling == DREY_POOLING_NONE ? texts[t].n : 1;
        }
        for (int32_t chunk = 1; chunk <= 64; chunk *= 4) {
            engine_place q = open_with(chunk, 1 + chunk % 3);
            int n_calls = embed_texts(q.session[0], texts, pooling, out);
            assert_memory_equal(out, alone, n * n_embd * sizeof *out);
            assert_true(chunk == 1 ? n_calls == N_TEXTS : chunk < 64 || n_calls <= 3);
            place_close(&q);
        }
    }
    place_close(&p);
}

/* A session that wrote a text makes the same vector, and keeps nothing of a text that it read. */
TEST(test_next_to_texts)
{
    float before[MOST_EMBD], after[MOST_EMBD];
    drey_generate_options o;
    drey_statistics stats;
    engine_place p = open_with(0, 1);
    embed(p.session[0], DREY_POOLING_LAST, before);
    drey_generate_options_init(&o);
    o.n_predict = 8;
    MUST(drey_session_generate, p.session[0], ids, N_IDS, &o, &stats);
    assert_int_equal(stats.cached_tokens, 0);
    embed(p.session[0], DREY_POOLING_LAST, after);
    assert_memory_equal(before, after, n_embd * sizeof *before);
    place_close(&p);
}

TEST(test_lengths)
{
    float v[] = {3, -4, 0}, w[] = {3, -4, 0}, x[] = {3, -4, 0}, y[] = {3, -4, 0}, z[] = {0, 0};
    drey_embed_normalize(v, 3, 2);
    assert_true(v[0] == 0.6f && v[1] == -0.8f && v[2] == 0);
    drey_embed_normalize(w, 3, 1);
    assert_true(w[0] == 3 / 7.0f && w[1] == -4 / 7.0f);
    drey_embed_normalize(x, 3, 0);
    assert_true(x[1] == -32760 && x[0] == 24570);
    drey_embed_normalize(y, 3, -1);
    assert_true(y[0] == 3 && y[1] == -4);
    drey_embed_normalize(z, 2, 2);
    assert_true(z[0] == 0 && z[1] == 0);
}

static void must_not_embed(drey_session *s, size_t n, drey_pooling pooling, drey_status why)
{
    static int32_t many[N_CONTEXT + 1];
    float v[MOST_EMBD];
    drey_error err = {0};
    memcpy(many, ids, sizeof ids);
    assert_int_equal(drey_session_embed(s, many, n, pooling, v, &err), why);
    assert_true(err.message[0] != 0);
}

TEST(test_refused)
{
    float v[MOST_EMBD];
    engine_place p = open_with(0, 1);
    must_not_embed(p.session[0], 0, DREY_POOLING_MEAN, DREY_ERR_USAGE);
    must_not_embed(p.session[0], 4, (drey_pooling)77, DREY_ERR_USAGE);
    must_not_embed(p.session[0], 4, DREY_POOLING_RANK, DREY_ERR_UNSUPPORTED);
    must_not_embed(p.session[0], N_CONTEXT + 1, DREY_POOLING_MEAN, DREY_ERR_CONTEXT);
    const int32_t wrong[] = {1, -1};
    assert_int_equal(drey_session_embed(p.session[0], wrong, 2, DREY_POOLING_LAST, v, NULL),
                     DREY_ERR_USAGE);
    const drey_text_ids texts[] = {{ids, 4}, {wrong, 2}};
    size_t n = 7;
    assert_int_equal(
        drey_session_embed_texts(p.session[0], texts, 2, DREY_POOLING_LAST, v, &n, NULL),
        DREY_ERR_USAGE);
    assert_int_equal(n, 0);
    assert_int_equal(
        drey_session_embed_texts(p.session[0], texts, 0, DREY_POOLING_LAST, v, &n, NULL),
        DREY_ERR_USAGE);
    place_close(&p);
}

static int make_models(void **state)
{
    drey_model_info info;
    toy_options toy = toy_asked();
    toys_open_pair(&toy);
    drey_model_describe(target, &info);
    n_embd = (size_t)info.n_embd;
    assert_true(n_embd <= MOST_EMBD);
    for (int32_t i = 0; i < N_IDS; i++)
        ids[i] = 1 + (7 * i + i * i) % 200;
    return 0;
}

TEST_GROUP(make_models, toys_close)
