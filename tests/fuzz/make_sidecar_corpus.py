#!/usr/bin/env python3
"""Writes the first inputs of corpus/sidecar: the tables that fuzz_sidecar.c's model asks for,
written here once more from the format's description (src/weights/sidecar.h), and spoiled ones.

    make_sidecar_corpus.py FOLDER
"""
import os, struct, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
from gguf_file import xxh64

ALIGN = 4096


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
