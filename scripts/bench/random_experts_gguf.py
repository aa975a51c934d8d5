#!/usr/bin/env python3
"""Makes a mixture of experts of Qwen3-30B-A3B's shape with random weights: for reads, speeds and
replayed routes. What it writes is noise.

    random_experts_gguf.py VOCABULARY.gguf OUT.gguf [--layers 48] [--experts 128] [--used 8]
                                                                                    (needs numpy)

The tokenizer is that of VOCABULARY (a qwen2 or qwen3 model). Matrices are Q4_K, and Q6_K where
Q4_K_M has it: the head, V and Down of half of the layers. All bytes are written (18.6 GB); layers
of a kind share theirs, so that random numbers are drawn once, and differ in their routers."""
import argparse
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from gguf_file import Gguf, header
from widen_gguf import row_bytes

F32, Q4_K, Q6_K = 0, 12, 14
N_EMBD, N_HEADS, N_KEY_HEADS, HEAD, N_FF = 2048, 32, 4, 128, 768


def n_bytes(dims, kind):
    return row_bytes(dims, kind) * int(np.prod(dims[1:], dtype=np.int64))


def random_bytes(random, dims, kind):
    """Weights around 0 whose products with a normed row are about as large as the row."""
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


def layer_tensors(n_experts, down):
    q, kv = N_HEADS * HEAD, N_KEY_HEADS * HEAD
    return {"attn_norm": ([N_EMBD], None), "attn_q": ([N_EMBD, q], Q4_K), "attn_k": ([N_EMBD, kv], Q4_K),
            "attn_v": ([N_EMBD, kv], down), "attn_q_norm": ([HEAD], None), "attn_k_norm": ([HEAD], None),
            "attn_output": ([q, N_EMBD], Q4_K), "ffn_norm": ([N_EMBD], None),
            "ffn_gate_inp": ([N_EMBD, n_experts], F32), "ffn_gate_exps": ([N_EMBD, N_FF, n_experts], Q4_K),
            "ffn_up_exps": ([N_EMBD, N_FF, n_experts], Q4_K), "ffn_down_exps": ([N_FF, N_EMBD, n_experts], down)}


def keys_of(f, a):
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
    f, random = Gguf(a.vocabulary), np.random.default_rng(a.seed)
    n_vocab = len(f.key(b"tokenizer.ggml.tokens")[2][1])
    pieces = [("token_embd.weight", [N_EMBD, n_vocab], Q4_K, 0), ("output.weight", [N_EMBD, n_vocab], Q6_K, 0),
              ("output_norm.weight", [N_EMBD], None, 0)]
    for i in range(a.layers):
        down = Q6_K if more_bits(i, a.layers) else Q4_K
        pieces += [(f"blk.{i}.{name}.weight", *shape, i if name == "ffn_gate_inp" else 0)
                   for name, shape in layer_tensors(a.experts, down).items()]
    tensors, offset = [], 0
    for name, dims, kind, _ in pieces:
        tensors.append((name.encode(), dims, kind or F32, offset))
        offset += -(-n_bytes(dims, kind or F32) // f.align) * f.align
    drawn = {}
    with open(a.target, "wb") as out:
        out.write(header(keys_of(f, a), tensors, f.align))
        for name, dims, kind, of_layer in pieces:
            which = (name.split(".")[-2], kind, of_layer)
            if which not in drawn:
                drawn[which] = (np.ones(dims, "<f4").tobytes() if kind is None else random_bytes(random, dims, kind))
            out.write(drawn[which] + bytes(-len(drawn[which]) % f.align))
    print(f"{a.target}: {offset / 1e9:.2f} GB, {a.layers} layers, {a.experts} experts, {a.used} used")


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("vocabulary")
    p.add_argument("target")
    p.add_argument("--layers", type=int, default=48)
    p.add_argument("--experts", type=int, default=128)
    p.add_argument("--used", type=int, default=8)
    p.add_argument("--seed", type=int, default=1)
    main(p.parse_args())
