/* The GGUF parser over bytes in memory: types, values, and every fault that a header can have. */
#include "gguf/gguf.h"

#include "support/scene.h"
/* ---- Types ---- */

/* The table against what the reference implementation says (data/make_ggml_types.py). */
TEST(types_match_ggml)
{
    FILE *f = fopen(TEST_DATA "/ggml_types.csv", "r");
    assert_non_null(f);
    char name[32];
    uint32_t number, n = 0;
    int32_t elements, bytes;
    while (fscanf(f, "%u,%31[^,],%d,%d\n", &number, name, &elements, &bytes) == 4) {
        const type_traits *t = type_find(number);
        if (!t) /* ggml has gained a type that inspect cannot name yet */
            fail_msg("type %u (%s) is missing", number, name);
        assert_string_equal(t->name, name);
        assert_int_equal(t->block_elements, elements);
        assert_int_equal(t->block_bytes, bytes);
        n++;
    }
    fclose(f);
    assert_true(n >= 30);
    assert_null(type_find(4));
    assert_null(type_find(31));
    assert_null(type_find(1000));
    assert_null(type_find(UINT32_MAX));
}

TEST(runnable_types)
{
    static const uint32_t runnable[] = {
        TYPE_F32,    TYPE_F16,   TYPE_BF16,    TYPE_Q4_0,   TYPE_Q4_1,  TYPE_Q5_0,    TYPE_Q5_1,
        TYPE_Q8_0,   TYPE_Q2_K,  TYPE_Q3_K,    TYPE_Q4_K,   TYPE_Q5_K,  TYPE_Q6_K,    TYPE_IQ4_NL,
        TYPE_IQ4_XS, TYPE_MXFP4, TYPE_IQ2_XXS, TYPE_IQ2_XS, TYPE_IQ2_S, TYPE_IQ3_XXS, TYPE_IQ3_S,
        TYPE_IQ1_S,  TYPE_IQ1_M, TYPE_TQ1_0,   TYPE_TQ2_0,  TYPE_NVFP4};
    int n = 0;
    for (uint32_t i = 0; i < 100; i++)
        n += type_find(i) && type_find(i)->runnable;
    assert_int_equal(n, sizeof runnable / sizeof runnable[0]);
    for (size_t i = 0; i < sizeof runnable / sizeof runnable[0]; i++)
        assert_true(type_find(runnable[i])->runnable);
    assert_int_equal(type_row_bytes(type_find(TYPE_Q4_K), 1536), 864);
}

/* ---- Values ---- */

static gguf *parse_or_fail(const gguf_writer *w)
{
    gguf *g;
    MUST(gguf_parse, &g, w->bytes, w->n, w->n);
    return g;
}

static void put_kinds(gguf_writer *w)
{
    writer_begin(w, 0, 14);
    writer_key(w, "u8", GGUF_U8), writer_put(w, "\xff", 1);
    writer_key(w, "i8", GGUF_I8), writer_put(w, "\xff", 1);
    writer_key(w, "u16", GGUF_U16), writer_put(w, "\xfe\xff", 2);
    writer_key(w, "i16", GGUF_I16), writer_put(w, "\xfe\xff", 2);
    writer_key_u32(w, "u32", 4000000000u);
    writer_key_i32(w, "i32", -2000000000);
    writer_key_f32(w, "f32", 0.5f);
    writer_key_bool(w, "yes", true);
    writer_key_text(w, "text", "h\xc3\xa9");
    writer_key(w, "u64", GGUF_U64), writer_u64(w, UINT64_MAX);
    writer_key(w, "i64", GGUF_I64), writer_u64(w, (uint64_t)INT64_MIN);
    double third = 1.0 / 3;
    writer_key(w, "f64", GGUF_F64), writer_put(w, &third, 8);
    writer_key_array(w, "numbers", GGUF_I16, 3), writer_put(w, "\1\0\xff\xff\3\0", 6);
    writer_key_array(w, "texts", GGUF_STRING, 3);
    writer_string(w, "a"), writer_string(w, ""), writer_string(w, "bc");
}

TEST(values_of_every_kind)
{
    gguf_writer w = {0};
    put_kinds(&w);
    gguf *g = parse_or_fail(&w);
    assert_int_equal(gguf_n_keys(g), 14);
    assert_int_equal(gguf_version(g), 3);
    assert_int_equal(gguf_int(g, "u8", 0), 255);
    assert_int_equal(gguf_int(g, "i8", 0), -1);
    assert_int_equal(gguf_int(g, "u16", 0), 65534);
    assert_int_equal(gguf_int(g, "i16", 0), -2);
    assert_int_equal(gguf_int(g, "u32", 0), 4000000000);
    assert_int_equal(gguf_int(g, "i32", 0), -2000000000);
    assert_int_equal(gguf_int(g, "u64", 0), INT64_MAX);
    assert_int_equal(gguf_int(g, "i64", 0), INT64_MIN);
    assert_true(gguf_number(g, "f32", 0) == 0.5);
    assert_true(gguf_number(g, "f64", 0) == 1.0 / 3);
    assert_true(gguf_number(g, "i8", 0) == -1.0);
    assert_true(gguf_number(g, "u64", 0) == 18446744073709551616.0);
    assert_true(gguf_bool(g, "yes", false));
    gguf_string text = gguf_text(g, "text");
    assert_int_equal(text.n_bytes, 3);
    assert_memory_equal(text.text, "h\xc3\xa9", 3);
    /* Fallbacks: no such key, or of another kind. */
    assert_int_equal(gguf_int(g, "none", 7), 7);
    assert_int_equal(gguf_int(g, "f32", 7), 7);
    assert_int_equal(gguf_int(g, "yes", 7), 7);
    assert_int_equal(gguf_int(g, "numbers", 7), 7);
    assert_true(gguf_number(g, "text", 2.5) == 2.5);
    assert_true(gguf_bool(g, "u8", true));
    assert_null(gguf_text(g, "none").text);
    assert_null(gguf_text(g, "texts").text);
    assert_null(gguf_find_key(g, "u"));
    assert_null(gguf_find_key(g, "u888"));
    gguf_close(&g);
    assert_null(g);
    writer_free(&w);
}

TEST(items_of_arrays)
{
    gguf_writer w = {0};
    put_kinds(&w);
    gguf *g = parse_or_fail(&w);
    const gguf_key *numbers = gguf_find_key(g, "numbers"), *texts = gguf_find_key(g, "texts");
    assert_int_equal(numbers->n_items, 3);
    assert_int_equal(gguf_item_int(numbers, 0), 1);
    assert_int_equal(gguf_item_int(numbers, 1), -1);
    assert_true(gguf_item_number(numbers, 2) == 3.0);
    assert_int_equal(gguf_item_int(numbers, 3), 0); /* there is none */
    assert_int_equal(gguf_item_int(texts, 0), 0);
    static const char *const expected[] = {"a", "", "bc"};
    gguf_cursor cursor = gguf_strings(texts);
    gguf_string string;
    for (int i = 0; i < 3; i++) {
        assert_true(gguf_next_string(&cursor, &string));
        assert_int_equal(string.n_bytes, strlen(expected[i]));
        assert_memory_equal(string.text, expected[i], string.n_bytes);
    }
    assert_false(gguf_next_string(&cursor, &string));
    cursor = gguf_strings(numbers);
    assert_false(gguf_next_string(&cursor, &string));
    gguf_close(&g);
    writer_free(&w);
}

TEST(required_integers)
{
    gguf_writer w = {0};
    put_kinds(&w);
    gguf *g = parse_or_fail(&w);
    int64_t value;
    MUST(gguf_require_int, g, "u8", 1, 255, &value);
    assert_int_equal(value, 255);
    REFUSED(DREY_ERR_FORMAT, "the key none is missing", gguf_require_int, g, "none", 1, 2, &value);
    REFUSED(DREY_ERR_FORMAT, "key text is not a whole number", gguf_require_int, g, "text", 1, 2,
            &value);
    REFUSED(DREY_ERR_FORMAT, "key u8 is 255, not in 1 to 254", gguf_require_int, g, "u8", 1, 254,
            &value);
    assert_int_equal(gguf_require_int(g, "i8", 0, 254, &value, NULL), DREY_ERR_FORMAT);
    gguf_close(&g);
    writer_free(&w);
}

/* ---- Toys ---- */

static uint64_t hash_toy(const toy_options *o)
{
    gguf_writer w = {0};
    toy_build(&w, o, 0);
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < w.n; i++)
        hash = (hash ^ w.bytes[i]) * 0x100000001b3u;
    writer_free(&w);
    return hash;
}

/* Tests on other machines compare texts, so a toy may not depend on compiler or architecture. */
TEST(toys_are_the_same_everywhere)
{
    toy_options o = toy_default();
    assert_int_equal(hash_toy(&o), 0x5d9258b9623b8b81);
    o.n_embd = o.n_ff = 256;
    o.n_layers = 2;
    o.type = TOY_TYPE_MIXED;
    assert_int_equal(hash_toy(&o), 0x193577bf36f882bc);
}

/* ---- Lies ---- */

/* A valid file with two keys and two tensors, which the cases damage at these offsets. */
enum {
    AT_MAGIC = 0,
    AT_ALIGNMENT = 24 + 8 + 17 + 4, /* the value of general.alignment */
    AT_KEY = AT_ALIGNMENT + 4,      /* "name": "value", from the length of its name */
    AT_KIND = AT_KEY + 8 + 4,
    AT_VALUE = AT_KIND + 4,
    AT_TENSOR = AT_VALUE + 8 + 5, /* "aa", from the length of its name */
    TENSOR_BYTES = 42,            /* "bb" is as long */
    /* offsets in a tensor: */
    NAME = 8,
    N_DIMS = NAME + 2,
    DIM = N_DIMS + 4,
    TYPE = DIM + 16,
    OFFSET = TYPE + 4,
    AA = AT_TENSOR,
    BB = AT_TENSOR + TENSOR_BYTES,
};

static gguf_writer sample(void)
{
    static const int64_t dims[] = {32, 2};
    static const uint8_t data[128 + 256];
    gguf_writer w = {0};
    writer_begin(&w, 2, 2);
    writer_key_u32(&w, "general.alignment", 64);
    writer_key_text(&w, "name", "value");
    assert_int_equal(w.n, AA);
    writer_tensor(&w, "aa", TYPE_Q8_0, dims, 2, 0);
    assert_int_equal(w.n, BB);
    writer_tensor(&w, "bb", TYPE_F32, dims, 2, 128);
    writer_align(&w, 64);
    writer_put(&w, data, sizeof data);
    return w;
}

static void refused(const gguf_writer *w, drey_status code, const char *part)
{
    gguf *g;
    drey_error err = {0};
    must_refuse(gguf_parse(&g, w->bytes, w->n, w->n, &err), code, part, &err);
    assert_int_equal(err.code, code);
    assert_null(g);
    assert_non_null(strpbrk(err.message, ",;")); /* what to do */
    assert_int_equal(gguf_parse(&g, w->bytes, w->n, w->n, NULL), code);
}

/* The sample with one number replaced. */
static void refused_u32(size_t at, uint32_t value, drey_status code, const char *part)
{
    gguf_writer w = sample();
    writer_patch_u32(&w, at, value);
    refused(&w, code, part);
    writer_free(&w);
}

static void refused_u64(size_t at, uint64_t value, const char *part)
{
    gguf_writer w = sample();
    writer_patch_u64(&w, at, value);
    refused(&w, DREY_ERR_FORMAT, part);
    writer_free(&w);
}

TEST(sample_is_valid)
{
    gguf_writer w = sample();
    gguf *g = parse_or_fail(&w);
    const gguf_tensor *b = gguf_find_tensor(g, "bb");
    assert_int_equal(b->n_bytes, 256);
    assert_int_equal(b->offset, w.n - 256);
    assert_int_equal(b->dims[2], 1);
    gguf_close(&g);
    writer_free(&w);
}

TEST(refuses_other_formats)
{
    refused_u32(AT_MAGIC, 0x4b504b50, DREY_ERR_FORMAT, "is not a GGUF file");
    refused_u32(AT_MAGIC, 0x67676d6c, DREY_ERR_FORMAT, "GGML file from before GGUF");
    refused_u32(AT_MAGIC, 0x73726576, DREY_ERR_FORMAT, "Git LFS pointer");
    refused_u32(AT_MAGIC, 0x04034b50, DREY_ERR_FORMAT, "ZIP or PyTorch");
    refused_u32(WRITER_AT_VERSION, 1, DREY_ERR_UNSUPPORTED, "GGUF version 1");
    refused_u32(WRITER_AT_VERSION, 2, DREY_ERR_UNSUPPORTED, "GGUF version 2");
    refused_u32(WRITER_AT_VERSION, 4, DREY_ERR_UNSUPPORTED, "GGUF version 4");
    refused_u32(WRITER_AT_VERSION, 0, DREY_ERR_UNSUPPORTED, "GGUF version 0");
    refused_u32(WRITER_AT_VERSION, 0x03000000, DREY_ERR_UNSUPPORTED, "big-endian");
}

TEST(refuses_counts)
{
    refused_u64(WRITER_AT_N_TENSORS, UINT64_MAX, "tensors, more than it has room for");
    refused_u64(WRITER_AT_N_TENSORS, 1000, "claims 1000 tensors");
    refused_u64(WRITER_AT_N_KEYS, UINT64_MAX / 2, "keys, more than it has room for");
    refused_u64(WRITER_AT_N_KEYS, 1000, "claims 1000 keys");
    refused_u64(WRITER_AT_N_KEYS, 1, "");
    refused_u64(WRITER_AT_N_TENSORS, 4, "");
}

TEST(refuses_keys)
{
    refused_u64(AT_KEY, UINT64_MAX, "ends inside its header");
    refused_u64(AT_KEY, 0, "name of 0 bytes");
    refused_u32(AT_KIND, 13, DREY_ERR_FORMAT, "key name has the unknown kind 13");
    refused_u32(AT_KIND, GGUF_BOOL, DREY_ERR_FORMAT, "key name is a boolean of value 5");
    refused_u64(AT_VALUE, UINT64_MAX - 7, "ends inside its header");
    refused_u32(AT_ALIGNMENT, 24, DREY_ERR_FORMAT, "general.alignment");
    refused_u32(AT_ALIGNMENT, 4, DREY_ERR_FORMAT, "general.alignment");
    refused_u32(AT_ALIGNMENT, 0, DREY_ERR_FORMAT, "general.alignment");
    refused_u32(AT_ALIGNMENT, 0x80000000, DREY_ERR_FORMAT, "general.alignment");
    refused_u32(AT_ALIGNMENT - 4, GGUF_F32, DREY_ERR_FORMAT, "general.alignment");
}

TEST(refuses_tensors)
{
    refused_u64(AA, 0, "has a tensor named ''");
    refused_u64(AA, 64, "has a tensor named 'aa");
    refused_u32(AA + N_DIMS, 0, DREY_ERR_FORMAT, "tensor aa has 0 dimensions");
    refused_u32(AA + N_DIMS, 5, DREY_ERR_FORMAT, "tensor aa has 5 dimensions");
    refused_u64(AA + DIM, 0, "tensor aa has an impossible shape");
    refused_u64(AA + DIM + 8, UINT64_MAX, "impossible shape");
    refused_u64(AA + DIM + 8, (uint64_t)1 << 58, "impossible shape");
    refused_u64(BB + DIM + 8, (uint64_t)1 << 57, "impossible shape");
    refused_u64(BB + DIM + 8, (uint64_t)1 << 40, "ends before its tensor bb");
    refused_u64(AA + DIM, 33,
                "tensor aa has rows of 33 elements, which do not divide into Q8_0 blocks of 32");
    refused_u32(AA + TYPE, 99, DREY_ERR_UNSUPPORTED, "tensor aa has the unknown type 99");
    refused_u32(AA + TYPE, 5, DREY_ERR_UNSUPPORTED, "unknown type 5");
    refused_u32(AA + TYPE, 31, DREY_ERR_UNSUPPORTED,
                "made for an old llama.cpp; take the file in Q4_0");
    refused_u32(AA + TYPE, 38, DREY_ERR_UNSUPPORTED, "type 38, made for an old llama.cpp");
    refused_u64(AA + OFFSET, 32, "aa is not a multiple of 64");
    refused_u64(AA + OFFSET, 128, "the tensors aa and bb overlap");
    refused_u64(AA + OFFSET, 64, "the tensors aa and bb overlap");
    refused_u64(BB + OFFSET, 192, "ends before its tensor bb");
    refused_u64(BB + OFFSET, UINT64_MAX - 63, "ends before its tensor bb");
}

TEST(refuses_names)
{
    gguf_writer w = sample();
    memcpy(w.bytes + BB + NAME, "aa", 2);
    refused(&w, DREY_ERR_FORMAT, "has the tensor aa twice");
    memcpy(w.bytes + BB + NAME, "b\0", 2);
    refused(&w, DREY_ERR_FORMAT, "has a tensor named 'b?'");
    memcpy(w.bytes + BB + NAME, "\x1b[", 2);
    refused(&w, DREY_ERR_FORMAT, "has a tensor named '?['");
    writer_free(&w);

    writer_begin(&w, 0, 3);
    writer_key_u32(&w, "x\x1b[31m", 1);
    writer_key_u32(&w, "y", 1);
    writer_key_u32(&w, "x\x1b[31m", 1);
    refused(&w, DREY_ERR_FORMAT, "has the key x?[31m twice");
    writer_free(&w);
}

TEST(refuses_arrays)
{
    static const struct {
        gguf_kind kind;
        uint64_t n;
        drey_status code;
        const char *part;
    } cases[] = {
        {GGUF_ARRAY, 1, DREY_ERR_UNSUPPORTED, "key list is an array of arrays"},
        {(gguf_kind)13, 0, DREY_ERR_FORMAT, "key list is an array of the unknown kind 13"},
        {GGUF_U32, (uint64_t)1 << 62, DREY_ERR_FORMAT, "key list claims 4611686018427387904"},
        {GGUF_U64, 9, DREY_ERR_FORMAT, "key list claims 9 values"},
        {GGUF_STRING, UINT64_MAX, DREY_ERR_FORMAT, "ends inside its header"},
        {GGUF_BOOL, 64, DREY_ERR_FORMAT, "key list is a boolean of value 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gguf_writer w = {0};
        writer_begin(&w, 0, 1);
        writer_key_array(&w, "list", cases[i].kind, cases[i].n);
        uint8_t items[64] = {0};
        items[63] = cases[i].kind == GGUF_BOOL ? 2 : 0;
        writer_put(&w, items, sizeof items);
        refused(&w, cases[i].code, cases[i].part);
        writer_free(&w);
    }
}

/* Cut anywhere, a file is refused, and as long as the header is whole the message says that the
 * file is not all there. */
TEST(refuses_every_truncation)
{
    gguf_writer w = sample();
    size_t whole = w.n;
    for (size_t n = 0; n < whole; n++) {
        gguf *g;
        drey_error err = {0};
        uint8_t *cut = malloc(n ? n : 1); /* ASan sees reads past its end */
        memcpy(cut, w.bytes, n);
        assert_int_equal(gguf_parse(&g, cut, n, n, &err), DREY_ERR_FORMAT);
        assert_null(g);
        if (n == 0)
            assert_non_null(strstr(err.message, "is empty"));
        if (n >= whole - 256)
            assert_non_null(strstr(err.message, "ends before its tensor bb does"));
        free(cut);
    }
    writer_free(&w);
}

/* Many keys and tensors must not take quadratic time: the test's timeout checks that. */
TEST(many_names)
{
    enum { n = 1 << 16 }; /* the most that are allowed */
    gguf_writer w = {0};
    char name[32];
    writer_begin(&w, n, n);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "k%d", i * 7919 % n);
        writer_key_bool(&w, name, i & 1);
    }
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "t%d", i);
        writer_tensor(&w, name, TYPE_F32, (int64_t[]){1}, 1, (uint64_t)(n - 1 - i) * 32);
    }
    writer_align(&w, 32);
    gguf *g;
    MUST(gguf_parse, &g, w.bytes, w.n, w.n + 32 * (uint64_t)n);
    assert_non_null(gguf_find_key(g, "k54321"));
    assert_null(gguf_find_key(g, "k65536"));
    assert_string_equal(gguf_find_tensor(g, "t44444")->name, "t44444");
    gguf_close(&g);
    writer_free(&w);
}
