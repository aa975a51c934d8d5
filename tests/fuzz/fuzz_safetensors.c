/* Property: any bytes are refused with a message, or are a header of safetensors whose tensors fill
 * the file without a gap, none over another, each with the bytes of its shape and found by name. */
#include "convert/safetensors.h"
#include "fuzz/fuzz.h"

#include <string.h>

static uint64_t number_of(const safetensor *t)
{
    uint64_t n = 1;
    for (int32_t i = 0; i < t->n_dims; i++) {
        FUZZ_CHECK(t->dims[i] > 0);
        n *= (uint64_t)t->dims[i];
    }
    return n;
}

static void check(safetensors *s, uint64_t data, uint64_t file_bytes)
{
    uint64_t covered = data;
    for (uint64_t i = 0; i < s->n; i++) {
        const safetensor *t = &s->tensors[i];
        FUZZ_CHECK(safetensors_find(s, t->name) == t && !t->taken);
        fuzz_check_printable(t->name);
        FUZZ_CHECK(strlen(t->name) < SAFETENSORS_MOST_NAME);
        FUZZ_CHECK(t->n_dims >= 0 && t->n_dims <= SAFETENSORS_MOST_DIMS);
        FUZZ_CHECK(t->offset >= data && t->offset <= file_bytes &&
                   t->n_bytes <= file_bytes - t->offset);
        FUZZ_CHECK(t->type == NUMBER_OTHER ? t->n_bytes % number_of(t) == 0
                                           : t->n_bytes == number_of(t) * number_bytes(t->type));
        covered += t->n_bytes;
        for (uint64_t k = 0; k < s->n && s->n < 100; k++)
            FUZZ_CHECK(k == i || s->tensors[k].offset >= t->offset + t->n_bytes ||
                       s->tensors[k].offset + s->tensors[k].n_bytes <= t->offset);
    }
    FUZZ_CHECK(covered == file_bytes && !safetensors_find(s, ""));
}

/* The first two bytes: how many bytes of tensors come after the header, in fours. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    safetensors s;
    drey_error err = {0};
    if (n < 2)
        return 0;
    const uint64_t data = 8 + (uint64_t)(n - 2);
    const uint64_t file_bytes = data + 4 * (bytes[0] + 256u * bytes[1]);
    if (safetensors_parse(&s, (const char *)bytes + 2, n - 2, file_bytes, &err) == DREY_OK)
        check(&s, data, file_bytes);
    else
        FUZZ_CHECK(s.n == 0 && !s.tensors && strlen(err.message) > 0);
    safetensors_free(&s);
    return 0;
}
