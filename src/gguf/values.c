/* Values of keys: kinds by name, items of arrays, strings one after another. */
#include "gguf/header.h"

#include <string.h>

const char *gguf_kind_name(gguf_kind kind)
{
    static const char *const names[] = {
        [GGUF_U8] = "u8",       [GGUF_I8] = "i8",       [GGUF_U16] = "u16", [GGUF_I16] = "i16",
        [GGUF_U32] = "u32",     [GGUF_I32] = "i32",     [GGUF_F32] = "f32", [GGUF_BOOL] = "bool",
        [GGUF_STRING] = "text", [GGUF_ARRAY] = "array", [GGUF_U64] = "u64", [GGUF_I64] = "i64",
        [GGUF_F64] = "f64",
    };
    return names[kind];
}

bool gguf_is_int(gguf_kind kind)
{
    return kind == GGUF_U8 || kind == GGUF_I8 || kind == GGUF_U16 || kind == GGUF_I16 ||
           kind == GGUF_U32 || kind == GGUF_I32 || kind == GGUF_U64 || kind == GGUF_I64;
}

static bool is_wanted(gguf_kind kind, gguf_want want)
{
    switch (want) {
    case GGUF_WANT_INT:
        return gguf_is_int(kind);
    case GGUF_WANT_NUMBER:
        return gguf_is_int(kind) || kind == GGUF_F32 || kind == GGUF_F64;
    case GGUF_WANT_BOOL:
        return kind == GGUF_BOOL;
    case GGUF_WANT_TEXT:
        break;
    }
    return kind == GGUF_STRING;
}

bool gguf_key_is(const gguf_key *key, gguf_want want)
{
    if (key->kind != GGUF_ARRAY)
        return is_wanted(key->kind, want);
    if (key->n_items == 0)
        return true;
    size_t size = header_kind_bytes(key->item_kind);
    if (want == GGUF_WANT_TEXT || !is_wanted(key->item_kind, want) || size == 0)
        return false;
    for (uint64_t i = 1; i < key->n_items; i++)
        if (memcmp(key->value, key->value + i * size, size) != 0)
            return false;
    return true;
}

drey_status gguf_check_kind(const gguf_key *key, gguf_want want, drey_error *err)
{
    static const char *const words[] = {[GGUF_WANT_INT] = "a whole number",
                                        [GGUF_WANT_NUMBER] = "a number",
                                        [GGUF_WANT_BOOL] = "true or false",
                                        [GGUF_WANT_TEXT] = "a text"};
    char name[96];
    if (gguf_key_is(key, want))
        return DREY_OK;
    FAIL(err, DREY_ERR_FORMAT,
         "key %s is of kind %s, where %s has to be; convert the model again or fetch another file "
         "of it",
         gguf_printable(name, sizeof name, key->name.text, key->name.n_bytes),
         gguf_kind_name(key->kind), words[want]);
}

/* The i-th value's bytes; NULL when there is no such value of a scalar kind. */
static const uint8_t *item(const gguf_key *key, uint64_t i, gguf_kind *kind)
{
    *kind = key->kind == GGUF_ARRAY ? key->item_kind : key->kind;
    size_t size = header_kind_bytes(*kind);
    return size && i < key->n_items ? key->value + i * size : NULL;
}

bool gguf_is_int_array(const gguf_key *key)
{
    return key->kind == GGUF_ARRAY && gguf_is_int(key->item_kind);
}

int64_t gguf_item_int(const gguf_key *key, uint64_t i)
{
    gguf_kind kind;
    const uint8_t *at = item(key, i, &kind);
    if (!at)
        return 0;
    switch (kind) {
    case GGUF_U8:
    case GGUF_BOOL:
        return at[0];
    case GGUF_I8:
        return (int8_t)at[0];
    case GGUF_U16:
        return (uint16_t)(at[0] | at[1] << 8);
    case GGUF_I16:
        return (int16_t)(at[0] | at[1] << 8);
    case GGUF_U32:
        return header_u32(at);
    case GGUF_I32:
        return (int32_t)header_u32(at);
    case GGUF_U64:
        return header_u64(at) > INT64_MAX ? INT64_MAX : (int64_t)header_u64(at);
    case GGUF_I64:
        return (int64_t)header_u64(at);
    default:
        return 0;
    }
}

double gguf_item_number(const gguf_key *key, uint64_t i)
{
    gguf_kind kind;
    const uint8_t *at = item(key, i, &kind);
    if (at && kind == GGUF_F32) {
        uint32_t bits = header_u32(at);
        float value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (at && kind == GGUF_F64) {
        uint64_t bits = header_u64(at);
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    return at && kind == GGUF_U64 ? (double)header_u64(at) : (double)gguf_item_int(key, i);
}

gguf_string gguf_text_of(const gguf_key *key)
{
    if (key->kind != GGUF_STRING)
        return (gguf_string){0};
    return (gguf_string){.text = (const char *)key->value + 8,
                         .n_bytes = (size_t)header_u64(key->value)};
}

gguf_cursor gguf_strings(const gguf_key *key)
{
    bool fits = key->kind == GGUF_ARRAY && key->item_kind == GGUF_STRING;
    return (gguf_cursor){.at = key->value, .left = fits ? key->n_items : 0};
}

bool gguf_next_string(gguf_cursor *cursor, gguf_string *out)
{
    if (cursor->left == 0)
        return false;
    *out = (gguf_string){.text = (const char *)cursor->at + 8,
                         .n_bytes = (size_t)header_u64(cursor->at)};
    cursor->at += 8 + out->n_bytes;
    cursor->left--;
    return true;
}
