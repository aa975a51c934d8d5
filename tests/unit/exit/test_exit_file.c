/* The side file of predictors: what was written is read back, and a file that is damaged, cut,
 * another model's or none at all is refused in one sentence. */
#include <unistd.h>

#include "common/path.h"
#include "support/bytes_file.h"
#include "support/predictors.h"
#include "support/scene.h"
#include "weights/identity.h"

static gguf *toy_file(const char *name, uint64_t seed)
{
    toy_options toy = toy_default();
    gguf *g;
    toy.n_layers = 6;
    toy.seed = seed;
    toy_write(temp_path(name), &toy);
    MUST(gguf_open, &g, temp_path(name));
    return g;
}

static void refused(const char *path, const gguf *target, drey_status status, const char *says)
{
    exit_predictors p;
    REFUSED(status, says, exit_open, &p, path, target);
    assert_null(p.memory.base);
}

TEST(what_is_written_is_read)
{
    gguf *g = toy_file("m.gguf", 1);
    exit_predictors p, q;
    static const int32_t n_features[] = {12, 12, 16};
    for (int i = 0; i < 3; i++) {
        make_predictors(&p, 6, 2, n_features[i], 24, 5);
        p.source = (drey_exit_source)i;
        p.source_layer = p.source == DREY_EXIT_FROM_TARGET ? 2 : 0;
        char *path = path_with(gguf_shard_path(g, 0), EXIT_FILE_ENDING);
        assert_string_equal(path + strlen(path) - 17, "/m.gguf.drey-exit");
        MUST(exit_write, &p, path, g);
        MUST(exit_open, &q, path, g);
        assert_int_equal(exit_memory_bytes(&q), exit_memory_bytes(&p));
        assert_memory_equal(q.offline, p.offline, sizeof p.offline);
        assert_memory_equal(q.expected, p.expected, sizeof p.expected);
        assert_string_equal(q.drafter, "Toy");
        assert_string_equal(q.drafter_file, "toy.gguf");
        assert_true(q.drafter_identity == p.drafter_identity && p.drafter_identity != 0);
        assert_true(q.source == p.source && q.first == 2 && q.n_layers == 6);
        assert_true(q.source_layer == p.source_layer && q.threshold == 0.75f);
        float x[EXIT_FEATURES] = {0.3f, -1, 2, 0.5f, 0.1f};
        for (int32_t layer = 0; layer <= 6; layer++)
            assert_true(exit_score_of(&p, layer, x) == exit_score_of(&q, layer, x));
        assert_true(exit_score_of(&q, 2, x) > 0 && exit_score_of(&q, 5, x) > 0);
        exit_close(&p);
        exit_close(&q);
        exit_close(&q);
        free(path);
    }
    gguf_close(&g);
}

TEST(a_copy_of_the_model_is_the_model)
{
    gguf *g = toy_file("m.gguf", 1), *copy = toy_file("copy.gguf", 1),
         *other = toy_file("o.gguf", 2);
    uint64_t a, b, c;
    MUST(model_identity, g, &a);
    MUST(model_identity, copy, &b);
    MUST(model_identity, other, &c);
    assert_true(a == b && a != c);
    gguf_close(&g);
    gguf_close(&copy);
    gguf_close(&other);
}

static void write_as_version(const char *path, uint8_t version)
{
    static const char key[] = "drey-exit.version";
    size_t n, at = 0;
    uint8_t *bytes = bytes_file_read(path, &n);
    while (memcmp(bytes + at, key, sizeof key - 1) != 0)
        assert_true(++at + sizeof key + 8 < n);
    bytes[at + sizeof key - 1 + 4] = version; /* after the key's kind */
    bytes_file_write(path, bytes, n);
    free(bytes);
}

TEST(other_files_are_refused)
{
    gguf *g = toy_file("m.gguf", 1), *other = toy_file("o.gguf", 2);
    const char *path = temp_path("p");
    exit_predictors p;
    make_predictors(&p, 6, 3, 12, 8, 5);
    MUST(exit_write, &p, path, g);
    refused(path, other, DREY_ERR_MISMATCH, "for another model (");
    refused(temp_path("o.gguf"), g, DREY_ERR_FORMAT, "holds no predictors");
    bytes_file_write(temp_path("text"), "hello, this is a text", 21);
    refused(temp_path("text"), g, DREY_ERR_FORMAT, "holds no predictors");
    bytes_file_write(temp_path("empty"), "", 0);
    refused(temp_path("empty"), g, DREY_ERR_FORMAT, "holds no predictors");
    refused(temp_path("missing"), g, DREY_ERR_IO, "missing");
    write_as_version(path, 1);
    refused(path, g, DREY_ERR_MISMATCH, "by another version of drey; have predictors trained");
    exit_close(&p);
    gguf_close(&g);
    gguf_close(&other);
}

TEST(damage_is_noticed)
{
    gguf *g = toy_file("m.gguf", 1);
    const char *path = temp_path("p");
    exit_predictors p;
    uint64_t identity;
    size_t n;
    make_predictors(&p, 6, 3, 12, 4, 5);
    MUST(exit_write, &p, path, g);
    MUST(model_identity, g, &identity);
    exit_close(&p);
    uint8_t *bytes = bytes_file_read(path, &n);
    /* At its end w1, 576 bytes, b1 and w2, 48 each, and b2, 12, each from a multiple of 32. */
    static const int32_t data[4][2] = {{736, 576}, {160, 48}, {96, 48}, {32, 12}};
    MUST(exit_parse, &p, bytes, n, identity, path);
    exit_close(&p);
    for (size_t cut = 0; cut < n - 20; cut++) /* of the last tensor's padding nothing depends */
        assert_int_not_equal(exit_parse(&p, bytes, cut, identity, path, NULL), DREY_OK);
    for (size_t i = 0; i < 4 * 576; i++) {
        const int32_t *tensor = data[i / 576];
        uint8_t *byte = &bytes[n - (size_t)tensor[0] + i % 576 % (size_t)tensor[1]];
        *byte ^= 0x10;
        assert_int_equal(exit_parse(&p, bytes, n, identity, path, NULL), DREY_ERR_FORMAT);
        *byte ^= 0x10;
    }
    bytes_file_write(path, bytes, n / 2);
    refused(path, g, DREY_ERR_FORMAT, "is damaged; have predictors trained");
    free(bytes);
    gguf_close(&g);
}
