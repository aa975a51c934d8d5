#!/usr/bin/env python3
"""Makes predictors of early exits fit a model that widen_gguf.py made twice as wide: its logits are
the same after every layer, and so are their scores.

    widen_exits.py IN.drey-exit WIDE.gguf OUT.drey-exit          (needs numpy)"""
import struct
import sys

from gguf_file import Gguf


def main(source, wide, target):
    with open(source, "rb") as f:
        data = bytearray(f.read())
    assert Gguf(source).key(b"general.architecture")[2].endswith(b"drey-exit"), f"{source} holds no predictors"
    key = b"drey-exit.target_identity"
    struct.pack_into("<Q", data, data.index(key) + len(key) + 4, Gguf(wide).identity())
    with open(target, "wb") as out:
        out.write(data)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
