/* Property: any bytes are refused as a sidecar with one sentence that says what to do, or begin
 * with the very table that the model asks for, with its matrices whole or in planes, but for their
 * hashes and for what stands for missing bits, of which there are two. */
#include "fuzz/fuzz.h"
#include "gguf/gguf.h"
#include "gguf/types.h"
#include "kernel/kernel.h"
#include "weights/sidecar.h"
#include "weights/weights.h"

#include <string.h>

enum { N_MATRICES = 3, N_PARTS = 2 };

/* A model of three matrices in two files, as it was when its sidecar was written. */
static void make_wanted(sidecar_table *t, bool planes)
{
    static gguf_tensor tensors[N_MATRICES] = {
        {.name = "blk.0.attn_q.weight", .type = TYPE_Q4_K, .dims = {256, 96, 1, 1}},
        {.name = "blk.0.ffn_up.weight", .type = TYPE_Q8_0, .dims = {64, 70, 1, 1}, .part = 1},
        {.name = "output.weight", .type = TYPE_F32, .dims = {8, 1, 1, 1}, .part = 1}};
    weight matrix[N_MATRICES];
    for (int i = 0; i < N_MATRICES; i++) {
        FUZZ_CHECK(weight_describe(&matrix[i], &tensors[i], kernel_select("ref"), NULL) == DREY_OK);
        if (planes)
            weight_split(&matrix[i]);
    }
    FUZZ_CHECK(sidecar_table_make(t, N_PARTS, matrix, N_MATRICES, NULL) == DREY_OK);
    for (int i = 0; i < N_PARTS; i++)
        t->stamp[i] = (sidecar_stamp){.n_bytes = 100000,
                                      .changed_s = 1700000000,
                                      .changed_ns = 5,
                                      .header_hash = 11,
                                      .sample_hash = 13};
}

/* True when everything but checksum, hashes and good means is as wanted: what may be taken. */
static bool fits(const sidecar_table *want, const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes < want->n_bytes)
        return false;
    uint8_t *cleared = fuzz_copy(bytes, want->n_bytes);
    memset(cleared + offsetof(sidecar_head, checksum), 0, sizeof want->head->checksum);
    for (int i = 0; i < N_MATRICES; i++) {
        size_t entry = (size_t)((uint8_t *)&want->entry[i] - want->bytes);
        uint8_t *means = cleared + entry + offsetof(sidecar_entry, means);
        memset(cleared + entry + offsetof(sidecar_entry, hash), 0, sizeof want->entry[i].hash);
        for (size_t j = 0; j < sizeof want->entry[i].means; j++)
            means[j] = means[j] < 4 ? 0 : means[j];
    }
    bool same = memcmp(cleared, want->bytes, want->n_bytes) == 0;
    free(cleared);
    return same;
}

static void check(const sidecar_table *want, const uint8_t *bytes, size_t n_bytes,
                  uint64_t file_bytes)
{
    drey_error err = {0};
    drey_status status = sidecar_compare(want, bytes, n_bytes, file_bytes, "m.gguf.drey", &err);
    if (status == DREY_OK) {
        FUZZ_CHECK(fits(want, bytes, n_bytes) && file_bytes == want->head->file_bytes);
        return;
    }
    FUZZ_CHECK(status == DREY_ERR_FORMAT || status == DREY_ERR_MISMATCH);
    FUZZ_CHECK(err.hint == DREY_HINT_SIDECAR);
    fuzz_check_refused(status, &err);
}

static void try_as(bool planes, const uint8_t *bytes, size_t n_bytes)
{
    sidecar_table want = {0};
    make_wanted(&want, planes);
    check(&want, bytes, n_bytes, n_bytes);
    check(&want, bytes, n_bytes, want.head->file_bytes);
    if (n_bytes >= want.n_bytes) { /* with a checksum that fits, so that later checks are reached */
        sidecar_table fixed = {.bytes = fuzz_copy(bytes, n_bytes), .n_bytes = want.n_bytes};
        fixed.head = (sidecar_head *)(void *)fixed.bytes;
        fixed.head->checksum = sidecar_table_checksum(&fixed);
        check(&want, fixed.bytes, n_bytes, want.head->file_bytes);
        FUZZ_CHECK(!fits(&want, bytes, n_bytes) ||
                   sidecar_compare(&want, fixed.bytes, n_bytes, want.head->file_bytes, "", NULL) ==
                       DREY_OK);
        free(fixed.bytes);
    }
    sidecar_table_free(&want);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    try_as(false, bytes, n_bytes);
    try_as(true, bytes, n_bytes);
    return 0;
}
