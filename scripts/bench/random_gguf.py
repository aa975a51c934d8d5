#!/usr/bin/env python3
"""Makes a qwen2 model of random weights, of any size: for speeds of machines to which no real
one can be brought. What it writes is noise.

    random_gguf.py VOCABULARY.gguf OUT.gguf [--width 3584] [--hidden 18944] [--heads 28]
                                            [--key-heads 4] [--layers 28]       (needs numpy)

The defaults are Qwen2.5 7B's shape (4.7 GB). Keys and tokenizer are those of VOCABULARY, a qwen2
model, of which the part before the weights is enough. Matrices are Q4_K, and Q6_K where Q4_K_M has
it; layers of a kind share their weights."""
import argparse
import os
import sys

import numpy as np

from random_experts_gguf import F32, Q4_K, Q6_K, more_bits, n_bytes, random_bytes

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from gguf_file import Gguf, header

ONES, ZEROS = "ones", "zeros"


def pieces_of(a, n_vocab):
    """(name, shape, type, or what a vector holds)"""
    keys = a.width // a.heads * a.key_heads
    yield "output.weight", [a.width, n_vocab], Q6_K
    yield "token_embd.weight", [a.width, n_vocab], Q4_K
    yield "output_norm.weight", [a.width], ONES
    for i in range(a.layers):
        more = Q6_K if more_bits(i, a.layers) else Q4_K
        for name, shape, kind in (("attn_norm.weight", [a.width], ONES), ("attn_q.weight", [a.width, a.width], Q4_K),
                                  ("attn_k.weight", [a.width, keys], Q4_K), ("attn_v.weight", [a.width, keys], more),
                                  ("attn_q.bias", [a.width], ZEROS), ("attn_k.bias", [keys], ZEROS),
                                  ("attn_v.bias", [keys], ZEROS), ("attn_output.weight", [a.width, a.width], Q4_K),
                                  ("ffn_norm.weight", [a.width], ONES), ("ffn_gate.weight", [a.width, a.hidden], Q4_K),
                                  ("ffn_up.weight", [a.width, a.hidden], Q4_K),
                                  ("ffn_down.weight", [a.hidden, a.width], more)):
            yield f"blk.{i}.{name}", shape, kind


def main(a):
    f, random = Gguf(a.vocabulary), np.random.default_rng(1)
    for name, n in (("block_count", a.layers), ("embedding_length", a.width), ("feed_forward_length", a.hidden),
                    ("attention.head_count", a.heads), ("attention.head_count_kv", a.key_heads)):
        f.key(f"qwen2.{name}".encode())[2] = n
    pieces = list(pieces_of(a, len(f.key(b"tokenizer.ggml.tokens")[2][1])))
    tensors, offset, drawn = [], 0, {}
    for name, shape, kind in pieces:
        stored = F32 if kind in (ONES, ZEROS) else kind
        tensors.append((name.encode(), shape, stored, offset))
        offset += -(-n_bytes(shape, stored) // f.align) * f.align
    with open(a.target, "wb") as out:
        out.write(header(f.keys, tensors, f.align))
        for name, shape, kind in pieces:
            which = (name.split(".")[-2], kind, *shape)
            if which not in drawn:
                drawn[which] = (np.full(shape, kind == ONES, "<f4").tobytes() if kind in (ONES, ZEROS) else
                                random_bytes(random, shape, kind))
            out.write(drawn[which] + bytes(-len(drawn[which]) % f.align))
    print(f"{a.target}: {offset / 1e9:.2f} GB")


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("vocabulary")
    p.add_argument("target")
    for option, default in (("width", 3584), ("hidden", 18944), ("heads", 28), ("key-heads", 4), ("layers", 28)):
        p.add_argument(f"--{option}", type=int, default=default)
    main(p.parse_args())
