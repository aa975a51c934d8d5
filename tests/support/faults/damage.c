/* See damage.h. */
#include "support/faults/damage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "gguf/gguf.h"
#include "kernel/packing.h"

/* The bits of the number, as many bytes as the type's scales have. */
static size_t bad_bits(uint32_t type, bool infinite, uint32_t *bits)
{
    switch (type) {
    case TYPE_F32:
        *bits = infinite ? 0x7f800000 : 0x7fc00000;
        return 4;
    case TYPE_BF16:
        *bits = infinite ? 0xff80 : 0x7fc0;
        return 2;
    case TYPE_MXFP4:
        *bits = E8M0_NONE;
        return 1;
    default:
        *bits = infinite ? 0xfc00 : 0x7e00;
        return 2;
    }
}

void damage(const char *path, const char *tensor, int64_t row, int scale, bool infinite)
{
    gguf *g = NULL;
    if (gguf_open(&g, path, NULL) != DREY_OK)
        abort();
    const gguf_tensor *t = gguf_find_tensor(g, tensor);
    if (!t)
        abort();
    const type_layout *layout = layout_find(t->type);
    const bool is_spread = layout->parts[scale].kind == PART_SPREAD;
    if (layout->block_k > 1 && layout->parts[scale].kind != PART_U16 &&
        layout->parts[scale].kind != PART_U8 && !is_spread)
        abort();
    uint64_t at = t->offset + (uint64_t)(row * type_row_bytes(type_find(t->type), t->dims[0])) +
                  layout->parts[scale].file_offset;
    uint32_t bits;
    size_t n = bad_bits(t->type, infinite, &bits);
    uint8_t bytes[8];
    int fd = open(gguf_shard_path(g, t->part), O_RDWR);
    memcpy(bytes, &bits, sizeof bits);
    if (is_spread) {
        n = sizeof bytes;
        if (pread(fd, bytes, n, (off_t)at) != (ssize_t)n)
            abort();
        scales_scatter(bytes, (scales_gather(bytes) & ~UINT64_C(0xffff)) | bits);
    }
    if (fd < 0 || pwrite(fd, bytes, n, (off_t)at) != (ssize_t)n || close(fd) != 0)
        abort();
    gguf_close(&g);
}
