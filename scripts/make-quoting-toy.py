#!/usr/bin/env python3
"""Makes a BART toy that quotes its input, as summaries do, to measure what lookup finds there.

    make-quoting-toy.py TOY.gguf OUT.gguf [--quoted Q] [--own O] [--input I]

TOY.gguf is one of make_toy --bart, whose tokenizer is taken. The model writes spans of Q quoted
tokens from rising places of its input, with O tokens from anywhere in it between them. It has one
layer each: tokens and positions are codes of as many ones as minus ones, so that norms only scale
them; the decoder's position j has the code of the input's place that it looks at, and attention to
the encoder's output brings that place's token.
"""
import argparse

import numpy as np

from gguf_file import Gguf, header

CODE, N_POSITIONS, D, FF = 64, 512, 192, 32


def codes(rng, n):
    return np.array([rng.permutation(np.repeat([1.0, -1.0], CODE // 2)) for _ in range(n)], "<f4")


def places(rng, quoted, own, n_input):
    """Places of the input that the positions of the text look at."""
    out, at = [], 1
    while len(out) < N_POSITIONS:
        out += range(at, at + quoted)
        at = (at + quoted + rng.integers(5, 20)) % (n_input - quoted)
        out += list(rng.integers(1, n_input, own))
    return np.array(out[:N_POSITIONS])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("toy")
    parser.add_argument("out")
    parser.add_argument("--quoted", type=int, default=10)
    parser.add_argument("--own", type=int, default=4)
    parser.add_argument("--input", type=int, default=100, help="tokens of the input that are looked at (100)")
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    toy = Gguf(args.toy)
    keys = [key for key in toy.keys if key[0].startswith((b"tokenizer.", b"general.arch"))]
    keys += [(b"bart." + name, 4, value) for name, value in (
        (b"block_count", 1), (b"context_length", N_POSITIONS), (b"embedding_length", D),
        (b"feed_forward_length", FF), (b"attention.head_count", 1), (b"decoder_start_token_id", 2))]
    n_vocab = len(toy.key(b"tokenizer.ggml.tokens")[2][1])
    token, position = codes(rng, n_vocab), codes(rng, N_POSITIONS)
    part = lambda i, block, gain=1.0: np.pad(gain * block, ((0, D - block.shape[0]), (i * CODE, D - (i + 1) * CODE)))
    unit = np.eye(CODE, dtype="<f4")
    wide = lambda rows, i: np.pad(rows, ((0, 0), (i * CODE, D - (i + 1) * CODE)))
    t = {"token_embd.weight": wide(token, 0), "output.weight": wide(token, 2),
         "enc.position_embd.weight": wide(position, 1),
         "dec.position_embd.weight": wide(position[places(rng, args.quoted, args.own, args.input)], 1)}
    for which in ("enc", "dec"):
        norms = ["token_embd_norm", "blk.0.attn_norm", "blk.0.ffn_norm"]
        names = ["attn_"] + (["cross_attn_"] if which == "dec" else [])
        for name in norms + (["blk.0.cross_attn_norm"] if which == "dec" else []):
            t[f"{which}.{name}.weight"], t[f"{which}.{name}.bias"] = np.ones(D), np.zeros(D)
        for name in names:
            for end in "qkvo":
                t[f"{which}.blk.0.{name}{end}.weight"] = np.zeros((D, D))
                t[f"{which}.blk.0.{name}{end}.bias"] = np.zeros(D)
        t[f"{which}.blk.0.ffn_up.weight"], t[f"{which}.blk.0.ffn_up.bias"] = np.zeros((FF, D)), np.zeros(FF)
        t[f"{which}.blk.0.ffn_down.weight"], t[f"{which}.blk.0.ffn_down.bias"] = np.zeros((D, FF)), np.zeros(D)
    cross = "dec.blk.0.cross_attn_{}.weight"
    t[cross.format("q")] = t[cross.format("k")] = part(1, unit, 3.0)  # places meet,
    t[cross.format("v")] = part(0, unit)  # and their token
    t[cross.format("o")] = np.roll(part(0, unit, 2.0), 2 * CODE, axis=0)  # goes to the last third
    tensors, data = [], b""
    for name, numbers in t.items():
        tensors.append((name.encode(), list(numbers.shape[::-1]), 0, len(data)))
        data += numbers.astype("<f4").tobytes()
        data += bytes(-len(data) % 32)
    with open(args.out, "wb") as out:
        out.write(header([tuple(key) for key in keys], tensors) + data)


if __name__ == "__main__":
    main()
