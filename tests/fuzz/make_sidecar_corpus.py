#!/usr/bin/env python3
"""Writes the first inputs of corpus/sidecar: the tables that fuzz_sidecar.c's model asks for,
written here once more from the format's description (src/weights/sidecar.h), and spoiled ones.

    make_sidecar_corpus.py FOLDER
"""
import os, struct, sys

ALIGN, MASK = 4096, (1 << 64) - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4 = 0x85EBCA77C2B2AE63


def rotated(x, bits):
    return (x << bits | x >> (64 - bits)) & MASK


def mixed(lane, word):
    return rotated((lane + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    """XXH64 with seed 0, after xxHash's specification, of whole stripes of 32 bytes."""
    assert data and len(data) % 32 == 0
    lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
    for i in range(len(data) // 8):
        lanes[i % 4] = mixed(lanes[i % 4], struct.unpack_from("<Q", data, 8 * i)[0])
    h = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
    for lane in lanes:
        h = ((h ^ mixed(0, lane)) * P1 + P4) & MASK
    h = (h + len(data)) & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


def aligned(n):
    return (n + ALIGN - 1) // ALIGN * ALIGN


# name, type, rows, k, bytes of a row in the file
MATRICES = [("blk.0.attn_q.weight", 12, 96, 256, 144), ("blk.0.ffn_up.weight", 8, 70, 64, 68),
            ("output.weight", 0, 1, 8, 32)]


def table(magic=b"dreyside", order=0x01020304, version=2, layout=1, hashes=(21, 22, 23),
          means=bytes(4)):
    n_bytes = 64 + 2 * 40 + 112 * len(MATRICES)
    stamps = struct.pack("<QqqQQ", 100000, 1700000000, 5, 11, 13) * 2
    entries, at = b"", aligned(n_bytes)
    for (name, kind, rows, k, row_bytes), value in zip(MATRICES, hashes):
        size = (rows + 31) // 32 * 32 * row_bytes
        entries += struct.pack("<64sI4sqqQQQ", name.encode(), kind, means, rows, k, at, size, value)
        at = aligned(at + size)

    def head(checksum):
        return struct.pack("<8s6IQQQQ", magic, order, version, layout, 32, 2, len(MATRICES), n_bytes,
                           at, checksum, 0)
    return head(xxh64(head(0) + stamps + entries)) + stamps + entries


def main(folder):
    good = table()
    inputs = {"good": good, "longer": good + bytes(50), "cut": good[:300], "head": good[:64],
              "magic": good[:8], "foreign": table(magic=b"GGUF\3\0\0\0"), "older": table(version=1),
              "newer": table(version=4), "layout": table(layout=2),
              "big-endian": table(order=0x04030201), "damaged": good[:150] + b"\1" + good[151:],
              "planes": table(version=3), "planes-means": table(version=3, means=bytes((2, 3, 0, 1))),
              "planes-no-means": table(version=3, means=bytes((2, 4, 0, 1)))}
    for name, data in inputs.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


main(sys.argv[1])
