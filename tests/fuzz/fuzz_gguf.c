/* Property: any bytes are refused with a message, or are a GGUF file all of whose names, values and
 * tensors lie inside it, do not overlap, are found by name, and are shown as printable text. */
#include "drey/drey_model.h"
#include "fuzz/fuzz.h"
#include "gguf/gguf.h"

#include <string.h>

typedef struct shown {
    uint64_t n_keys, n_tensors;
} shown;

static void on_key(void *user, const char *name, const char *type, const char *value)
{
    ((shown *)user)->n_keys++;
    fuzz_check_printable(name);
    fuzz_check_printable(type);
    fuzz_check_printable(value);
}

static void on_tensor(void *user, const char *name, const char *type, const int64_t *dims,
                      int n_dims, uint64_t n_bytes, uint64_t offset, bool runnable)
{
    (void)offset;
    (void)runnable;
    ((shown *)user)->n_tensors++;
    fuzz_check_printable(name);
    FUZZ_CHECK(strlen(name) > 0 && type && n_dims >= 1 && n_dims <= 4 && n_bytes > 0);
    for (int i = 0; i < 4; i++)
        FUZZ_CHECK(dims[i] > 0 && (i < n_dims || dims[i] == 1));
}

static volatile uint64_t touched; /* so that the sums below are computed */

/* Touches every byte that a key gives out, so that a sanitizer sees one that is not the file's. */
static uint64_t touch(const gguf_key *key)
{
    uint64_t sum = 0;
    gguf_cursor cursor = gguf_strings(key);
    gguf_string string = gguf_text_of(key);
    for (size_t i = 0; i < string.n_bytes; i++)
        sum += (uint8_t)string.text[i];
    while (gguf_next_string(&cursor, &string))
        for (size_t i = 0; i < string.n_bytes; i++)
            sum += (uint8_t)string.text[i];
    for (uint64_t i = 0; key->kind != GGUF_STRING && i < key->n_items; i++)
        sum += (uint64_t)gguf_item_int(key, i) + (gguf_item_number(key, i) > 0);
    return sum;
}

static void check_file(const gguf *g, uint64_t file_bytes)
{
    uint64_t sum = 0, covered = 0;
    for (uint64_t i = 0; i < gguf_n_keys(g); i++) {
        const gguf_key *key = gguf_key_at(g, i);
        char name[256];
        sum += touch(key);
        if (key->name.n_bytes < sizeof name && !memchr(key->name.text, 0, key->name.n_bytes)) {
            memcpy(name, key->name.text, key->name.n_bytes);
            name[key->name.n_bytes] = '\0';
            FUZZ_CHECK(gguf_find_key(g, name) == key);
        }
    }
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++) {
        const gguf_tensor *t = gguf_tensor_at(g, i);
        FUZZ_CHECK(gguf_find_tensor(g, t->name) == t);
        FUZZ_CHECK(t->offset % 8 == 0 && t->part == 0);
        FUZZ_CHECK(t->offset <= file_bytes && t->n_bytes <= file_bytes - t->offset);
        covered += t->n_bytes; /* no overflow, or the next check fails */
    }
    FUZZ_CHECK(covered <= file_bytes);
    shown seen = {0};
    drey_inspector inspector = {.key = on_key, .tensor = on_tensor, .user = &seen};
    gguf_show(g, &inspector);
    FUZZ_CHECK(seen.n_keys == gguf_n_keys(g) && seen.n_tensors == gguf_n_tensors(g));
    FUZZ_CHECK(!gguf_find_key(g, "") && !gguf_find_tensor(g, ""));
    touched = sum;
}

static bool parses(const uint8_t *bytes, size_t n_bytes, uint64_t file_bytes)
{
    gguf *g;
    drey_error err = {0};
    drey_status status = gguf_parse(&g, bytes, n_bytes, file_bytes, &err);
    FUZZ_CHECK((status == DREY_OK) == (g != NULL));
    if (status != DREY_OK) {
        FUZZ_CHECK(strlen(err.message) > 10);
        fuzz_check_refused(status, &err);
        return false;
    }
    check_file(g, file_bytes);
    gguf_close(&g);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    /* As a whole file, and as the front of one with a gigabyte of tensors. */
    bool whole = parses(bytes, n_bytes, n_bytes);
    bool front = parses(bytes, n_bytes, n_bytes + ((uint64_t)1 << 30));
    FUZZ_CHECK(front || !whole);
    return 0;
}
