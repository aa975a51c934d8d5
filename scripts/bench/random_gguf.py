#!/usr/bin/env python3
"""Makes a model of random weights, of any size: for reads, speeds and replayed routes on machines
to which no real one can be brought. What it writes is noise.

    random_gguf.py VOCABULARY.gguf OUT.gguf [--width 3584] [--hidden 18944] [--heads 28]
                                            [--key-heads 4] [--layers 28]       (needs numpy)
    random_gguf.py VOCABULARY.gguf OUT.gguf --experts 128 [--used 8] [--layers 48]

The defaults are the shapes of Qwen2.5 7B (4.7 GB) and, with experts, of Qwen3-30B-A3B (18.6 GB).
Keys and tokenizer are those of VOCABULARY, a qwen2 model, of which the part before the weights is
enough; with experts only its tokenizer. Matrices are Q4_K, and Q6_K where Q4_K_M has it: the head,
V and Down of half of the layers. Layers of a kind share their weights, so that random numbers are
drawn once; they differ in their routers."""
import argparse
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from gguf_file import Gguf, write
from widen_gguf import row_bytes

F32, Q4_K, Q6_K = 0, 12, 14
ONES, ZEROS = "ones", "zeros"  # vectors
N_EMBD, N_HEADS, N_KEY_HEADS, HEAD, N_FF = 2048, 32, 4, 128, 768  # with experts


def n_bytes(dims, kind):
    return row_bytes(dims, kind) * int(np.prod(dims[1:], dtype=np.int64))


def random_bytes(random, dims, kind):
    """Weights around 0 whose products with a normed row are about as large as the row."""
    if kind in (ONES, ZEROS):
        return np.full(dims, kind == ONES, "<f4").tobytes()
    if kind == F32:
        return (random.standard_normal(int(np.prod(dims))) / dims[0] ** 0.5).astype("<f4").tobytes()
    blocks = np.frombuffer(random.bytes(n_bytes(dims, kind)), np.uint8).reshape(-1, row_bytes([256], kind)).copy()
    if kind == Q4_K:  # d (32 q - 240), q in 0 .. 15: scales 32, minima 60 of 4 d
        d = np.array([1 / (32 * 4.6 * dims[0] ** 0.5)], "<f2")
        blocks[:, :4] = np.frombuffer(d.tobytes() + (4 * d).tobytes(), np.uint8)
        blocks[:, 4:16] = np.repeat([0xA0, 0xFC, 0xC0], 4)
    else:  # d 32 (q - 32), q in 0 .. 63
        blocks[:, 192:208] = 32
        blocks[:, 208:] = np.frombuffer(np.array([1 / (32 * 18.5 * dims[0] ** 0.5)], "<f2").tobytes(), np.uint8)
    return blocks.tobytes()


def more_bits(layer, n_layers):
    eighth = n_layers // 8
    return layer < eighth or layer >= 7 * eighth or (layer - eighth) % 3 == 2


def dense_layer(a, more):
    keys = a.width // a.heads * a.key_heads
    return {"attn_norm.weight": ([a.width], ONES), "attn_q.weight": ([a.width, a.width], Q4_K),
            "attn_k.weight": ([a.width, keys], Q4_K), "attn_v.weight": ([a.width, keys], more),
            "attn_q.bias": ([a.width], ZEROS), "attn_k.bias": ([keys], ZEROS), "attn_v.bias": ([keys], ZEROS),
            "attn_output.weight": ([a.width, a.width], Q4_K), "ffn_norm.weight": ([a.width], ONES),
            "ffn_gate.weight": ([a.width, a.hidden], Q4_K), "ffn_up.weight": ([a.width, a.hidden], Q4_K),
            "ffn_down.weight": ([a.hidden, a.width], more)}


def experts_layer(a, more):
    q, kv, n = N_HEADS * HEAD, N_KEY_HEADS * HEAD, a.experts
    return {"attn_norm.weight": ([N_EMBD], ONES), "attn_q.weight": ([N_EMBD, q], Q4_K),
            "attn_k.weight": ([N_EMBD, kv], Q4_K), "attn_v.weight": ([N_EMBD, kv], more),
            "attn_q_norm.weight": ([HEAD], ONES), "attn_k_norm.weight": ([HEAD], ONES),
            "attn_output.weight": ([q, N_EMBD], Q4_K), "ffn_norm.weight": ([N_EMBD], ONES),
            "ffn_gate_inp.weight": ([N_EMBD, n], F32), "ffn_gate_exps.weight": ([N_EMBD, N_FF, n], Q4_K),
            "ffn_up_exps.weight": ([N_EMBD, N_FF, n], Q4_K), "ffn_down_exps.weight": ([N_FF, N_EMBD, n], more)}


def dense_keys(f, a):
    for name, n in (("block_count", a.layers), ("embedding_length", a.width), ("feed_forward_length", a.hidden),
                    ("attention.head_count", a.heads), ("attention.head_count_kv", a.key_heads)):
        f.key(f"qwen2.{name}".encode())[2] = n
    return f.keys


def experts_keys(f, a):
    keys = [key for key in f.keys if key[0].startswith((b"tokenizer.", b"general.quantization"))]
    counts = {"block_count": a.layers, "context_length": 32768, "embedding_length": N_EMBD,
              "feed_forward_length": 6144, "attention.head_count": N_HEADS, "attention.head_count_kv": N_KEY_HEADS,
              "attention.key_length": HEAD, "attention.value_length": HEAD, "expert_count": a.experts,
              "expert_used_count": a.used, "expert_feed_forward_length": N_FF}
    numbers = {"attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 1e6}
    return ([[b"general.architecture", 8, b"qwen3moe"], [b"general.name", 8, b"random, Qwen3-30B-A3B's shape"]] +
            [[f"qwen3moe.{name}".encode(), 4, n] for name, n in counts.items()] +
            [[f"qwen3moe.{name}".encode(), 6, n] for name, n in numbers.items()] + keys)


def main(a):
    f, random, drawn = Gguf(a.vocabulary), np.random.default_rng(1), {}
    n_vocab, width = len(f.key(b"tokenizer.ggml.tokens")[2][1]), N_EMBD if a.experts else a.width
    pieces = [("output.weight", [width, n_vocab], Q6_K), ("token_embd.weight", [width, n_vocab], Q4_K),
              ("output_norm.weight", [width], ONES)]
    for i in range(a.layers):
        layer = (experts_layer if a.experts else dense_layer)(a, Q6_K if more_bits(i, a.layers) else Q4_K)
        pieces += [(f"blk.{i}.{name}", *about) for name, about in layer.items()]

    def numbers(name, dims, kind):
        which = (name if kind == F32 else name.split(".")[-2], kind, *dims)
        if which not in drawn:
            drawn[which] = random_bytes(random, dims, kind)
        return drawn[which]

    tensors = [(name.encode(), dims, stored, n_bytes(dims, stored)) for name, dims, kind in pieces
               for stored in [F32 if kind in (ONES, ZEROS) else kind]]
    size = write(a.target, (experts_keys if a.experts else dense_keys)(f, a), tensors,
                 (numbers(*piece) for piece in pieces), f.align)
    print(f"{a.target}: {size / 1e9:.2f} GB")


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("vocabulary")
    p.add_argument("target")
    for option, default in (("width", 3584), ("hidden", 18944), ("heads", 28), ("key-heads", 4), ("layers", 0),
                            ("experts", 0), ("used", 8)):
        p.add_argument(f"--{option}", type=int, default=default)
    args = p.parse_args()
    args.layers = args.layers or (48 if args.experts else 28)
    main(args)
