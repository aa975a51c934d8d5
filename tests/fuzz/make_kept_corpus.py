#!/usr/bin/env python3
"""Writes the first inputs of fuzz_session and fuzz_prefix: what was saved, by its format alone; the
targets put in origins and hashes. make_kept_corpus.py FOLDER, which has session/ and prefix/"""
import struct
import sys

FOLDER = sys.argv[1]
PIECES, GROUP_BYTES = 2, 16 * 32 * 2  # of the toy in fuzz_session.c: keys and values of a head of 32 numbers, 16 positions in a group
BLOCK_BYTES = 2 * 64 * 4 * 2  # of the shape in fuzz_prefix.c


def numbers(n, start=0):
    """Small halfs, all of them finite."""
    return b"".join(struct.pack("<e", (i * 7 + start) % 13 / 8 - 0.75) for i in range(n // 2))


def session(name, flags, ids, n_kept, note=b"", version=1, temperature=0.0, more=b""):
    head = struct.pack("<8sII32xiifffiQQ", b"dreysess", version, 128, len(ids), n_kept, temperature, 1.0, 0.0, 0, 7, len(note))
    head += bytes(128 - len(head))
    groups = (n_kept + 15) // 16
    pieces = b"".join(numbers(groups * GROUP_BYTES, i) + bytes(8) for i in range(PIECES)) if groups else b""
    with open(f"{FOLDER}/session/{name}", "wb") as f:
        f.write(bytes([flags]) + head + struct.pack(f"<{len(ids)}i", *ids) + note + pieces + more)


def prefix(name, flags, ids, n_block=BLOCK_BYTES):
    with open(f"{FOLDER}/prefix/{name}", "wb") as f:
        f.write(bytes([flags]) + bytes(64) + struct.pack(f"<{len(ids)}i", *ids) + numbers(n_block))


text = [10 + i for i in range(20)]
session("good", 3, text, 19, b"a note", temperature=0.7)
session("empty", 3, [], 0)
session("unread", 3, text, 0)
session("full", 3, text * 3 + text[:4], 63)
session("too-long", 3, text * 4, 79)
session("all-computed", 3, text, 20)
session("strange-ids", 3, [-1, 1 << 30], 1)
session("foreign", 2, text, 19)
session("version", 3, text, 19, version=2)
session("damaged", 1, text, 19)
session("longer", 3, text, 19, more=b"x")
asked = [3 * i + 1 for i in range(64)]
prefix("good", 1, asked)
prefix("no-hash", 0, asked)
prefix("other-ids", 1, asked[1:] + asked[:1])
prefix("short", 1, asked, BLOCK_BYTES - 2)
prefix("long", 1, asked, BLOCK_BYTES + 2)
