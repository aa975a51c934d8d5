#!/usr/bin/env python3
"""Makes Medusa heads fit a model that widen_gguf.py made twice as wide: they guess the same.

    widen_heads.py IN.drey-medusa WIDE.gguf OUT.drey-medusa          (needs numpy)

The wide model's hidden state is [h; h] / 2, and a row of its head over its root mean square is [e;
e]. With W' = [[W, W, U / 2, U / 2], [W, W, U / 2, U / 2]] for a block [W, U] and b' = [b; b] its
units are those of the narrow one, and with half its scale it adds [x; x] / 2, which is to the wide
head what x is to the narrow one."""
import sys

import numpy as np

from gguf_file import Gguf, write

# type: (elements, bytes) of a block; of quantised ones the first two bytes are the scale
ROW_BYTES = {0: (1, 4), 1: (1, 2), 8: (32, 34), 20: (32, 18), 23: (256, 136)}


def halved(rows, kind):
    """The same numbers over two."""
    if ROW_BYTES[kind][0] > 1:
        blocks = rows.reshape(*rows.shape[:-1], -1, ROW_BYTES[kind][1]).copy()
        scale = np.ascontiguousarray(blocks[..., :2]).view("<f2") / np.float16(2)
        blocks[..., :2] = scale.astype("<f2").view(np.uint8)
        return blocks.reshape(rows.shape)
    number = np.ascontiguousarray(rows).view({0: "<f4", 1: "<f2"}[kind])
    return (number / number.dtype.type(2)).view(np.uint8)


def widened(heads, n_heads):
    """The tensors of heads, as (name, dims, kind, bytes)."""
    out = []
    for name, dims, kind, offset in heads.tensors:
        n, size = ROW_BYTES[kind]
        assert dims[0] % (2 * n) == 0 or len(dims) == 1
        row_bytes, n_rows = dims[0] // n * size, dims[1] if len(dims) > 1 else 1
        rows = np.frombuffer(heads.bytes_at(heads.base + offset, row_bytes * n_rows), np.uint8)
        if len(dims) > 1:
            state, token = np.split(rows.reshape(n_rows, row_bytes), 2, axis=1)
            token = halved(token, kind)
            rows = np.concatenate([state, state, token, token], axis=1)
            rows = np.concatenate([rows, rows])
            dims = [2 * dims[0], 2 * dims[1]]
        else:
            rows = rows.reshape(n_heads, -1)
            rows = np.concatenate([rows, rows], axis=1)
            dims = [2 * dims[0]]
        out.append((name, dims, kind, rows.tobytes()))
    return out


def main(source, wide, target):
    heads, model = Gguf(source), Gguf(wide)
    prefix = b"drey-medusa."
    n_heads = heads.key(prefix + b"head_count")[2]
    heads.key(prefix + b"target")[2] = model.identity()
    heads.key(prefix + b"embedding_length")[2] *= 2
    heads.key(prefix + b"scale")[2] *= 0.5
    tensors = widened(heads, n_heads)
    n_bytes = write(target, heads.keys, [(*about, len(numbers)) for *about, numbers in tensors],
                    [numbers for *_, numbers in tensors])
    print(f"{target}: {n_bytes / 1e6:.1f} MB")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
