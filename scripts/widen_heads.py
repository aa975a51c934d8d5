#!/usr/bin/env python3
"""Makes Medusa heads fit a model that widen_gguf.py made twice as wide: they guess the same.

    widen_heads.py IN.drey-medusa WIDE.gguf OUT.drey-medusa          (needs numpy)

The wide model's hidden state is [h; h] / 2, and a row of its head over its root mean square is [e;
e]. With W' = [[W, W, U / 2, U / 2], [W, W, U / 2, U / 2]] for a block [W, U] and b' = [b; b] its
units are those of the narrow one, and with half its scale it adds [x; x] / 2, which is to the wide
head what x is to the narrow one."""
import struct
import sys

import numpy as np

from widen_gguf import read, read_value, write_value

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                      0x27D4EB2F165667C5)
# type: (elements, bytes) of a block; of quantised ones the first two bytes are the scale
ROW_BYTES = {0: (1, 4), 1: (1, 2), 8: (32, 34), 20: (32, 18), 23: (256, 136)}


def rotated(x, n):
    return ((x << n) | (x >> (64 - n))) & MASK


def a_round(lane, word):
    return rotated((lane + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    """XXH64 with seed 0, as its specification has it."""
    n, at = len(data), 0
    h = P5
    if n >= 32:
        lanes = [(P1 + P2) & MASK, P2, 0, (-P1) & MASK]
        words = struct.unpack_from(f"<{n // 32 * 4}Q", data)
        for i in range(0, len(words), 4):
            lanes = [a_round(lane, word) for lane, word in zip(lanes, words[i:i + 4])]
        h = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            h = ((h ^ a_round(0, lane)) * P1 + P4) & MASK
        at = n // 32 * 32
    h = (h + n) & MASK
    while at + 8 <= n:
        h = (rotated(h ^ a_round(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= n:
        h = (rotated(h ^ struct.unpack_from("<I", data, at)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        h = rotated(h ^ byte * P5 & MASK, 11) * P1 & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


class Gguf:
    """A file's header: keys as [name, kind, value], tensors as (name, dims, kind, offset)."""

    def __init__(self, path):
        self.file = open(path, "rb")
        assert self.file.read(4) == b"GGUF" and read(self.file, "<I") == 3, f"{path} is not GGUF v3"
        n_tensors, n_keys = read(self.file, "<Q"), read(self.file, "<Q")
        self.keys, self.tensors = [], []
        for _ in range(n_keys):
            name = self.file.read(read(self.file, "<Q"))
            kind = read(self.file, "<I")
            self.keys.append([name, kind, read_value(self.file, kind)])
        for _ in range(n_tensors):
            name = self.file.read(read(self.file, "<Q"))
            dims = [read(self.file, "<Q") for _ in range(read(self.file, "<I"))]
            self.tensors.append((name, dims, read(self.file, "<I"), read(self.file, "<Q")))
        align = next((key[2] for key in self.keys if key[0] == b"general.alignment"), 32)
        self.base = (self.file.tell() + align - 1) // align * align
        self.n_bytes = self.file.seek(0, 2)

    def key(self, name):
        return next(key for key in self.keys if key[0] == name)

    def bytes_at(self, offset, n):
        self.file.seek(offset)
        return self.file.read(n)

    def identity(self):
        """The number by which side files know their model (src/weights/identity.h), of a file in
        one part."""
        page, n_samples = 4096, 32
        first = self.base + min(tensor[3] for tensor in self.tensors)
        data = self.n_bytes - first
        if data <= n_samples * page:
            samples = self.bytes_at(first, data)
        else:
            samples = b"".join(self.bytes_at(first + (data - page) * i // (n_samples - 1), page)
                               for i in range(n_samples))
        return xxh64(struct.pack("<4Q", 0, self.n_bytes, xxh64(self.bytes_at(0, first)), xxh64(samples)))


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
    head = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(heads.tensors), len(heads.keys)))
    for name, kind, value in heads.keys:
        head += struct.pack("<Q", len(name)) + name + struct.pack("<I", kind)
        write_value(head, kind, value)
    tensors, data = widened(heads, n_heads), bytearray()
    for name, dims, kind, numbers in tensors:
        head += struct.pack("<Q", len(name)) + name + struct.pack("<I", len(dims))
        for dim in dims:
            head += struct.pack("<Q", dim)
        head += struct.pack("<IQ", kind, len(data))
        data += numbers + b"\0" * (-len(numbers) % 32)
    with open(target, "wb") as out:
        out.write(head + b"\0" * (-len(head) % 32) + data)
    print(f"{target}: {(len(head) + len(data)) / 1e6:.1f} MB")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
