#!/usr/bin/env python3
"""Makes a mixture of experts of a dense GGUF model (llama or qwen2) that computes the same.

    experts_gguf.py IN.gguf OUT.gguf [--experts 8] [--used 2] [--seed 1]        (needs numpy)

Each layer's feed-forward part becomes N experts of the same function, each with its blocks of 256
neurons in another order, so that gate, up and down of different experts do not fit together. A
router of random directions chooses; its weights add up to 1, as Mixtral's (architecture llama). The
text, and how often a draft is right, are the dense model's up to rounding; bytes, choices and reads
are a mixture's. Whether the right expert was taken cannot be seen in the text. A 1.5B model in
Q4_K_M (1.1 GB) with 8 experts becomes 6.0 GB, of which a token uses 1.9."""
import argparse

import numpy as np

from gguf_file import Gguf, write
from widen_gguf import row_bytes

PARTS = (b"ffn_gate", b"ffn_up", b"ffn_down")


def as_neighbours(rows, n_heads):
    """Rows of Q or K that are rotated in halves of a head, in the order of llama's pairs."""
    return rows.reshape(n_heads, 2, rows.shape[0] // n_heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)


def in_other_order(rows, part, kind, by):
    if part != b"ffn_down":
        return np.roll(rows, -256 * by, axis=0)
    return np.roll(rows.reshape(rows.shape[0], -1, row_bytes([256], kind)), -by, axis=1).reshape(rows.shape)


def set_keys(f, arch, a):
    for key in f.keys:
        if key[0].startswith(arch + b"."):
            key[0] = b"llama" + key[0][len(arch):]
        if key[0] == b"general.architecture":
            key[2] = b"llama"
        if key[0] == b"general.name":
            key[2] += f" ({a.experts} experts, same function)".encode()
    f.keys += [[b"llama.expert_count", 4, a.experts], [b"llama.expert_used_count", 4, a.used]]


def place(f, a, n_layers, n_embd):
    """(name, dims, kind, source, size) of the new tensors in their order; source None: a router."""
    new = []
    for name, dims, kind, offset in f.tensors:
        part = name.split(b".")[2] if name.startswith(b"blk.") else b""
        is_part = part in PARTS
        shape = list(dims) + [a.experts] * is_part
        size = row_bytes(dims, kind) * int(np.prod(shape[1:], dtype=np.int64))
        new.append((name.replace(part, part + b"_exps") if is_part else name, shape, kind, (dims, offset, part), size))
    routers = [(f"blk.{i}.ffn_gate_inp.weight".encode(), [n_embd, a.experts], 0, None, 4 * n_embd * a.experts)
               for i in range(n_layers)]
    return new + routers


def main(a):
    f = Gguf(a.source)
    arch = f.key(b"general.architecture")[2]
    assert arch in (b"llama", b"qwen2"), f"{arch}: only llama and qwen2 shapes"
    number = {key[0][len(arch) + 1:]: key[2] for key in f.keys if key[0].startswith(arch + b".")}
    n_ff, n_embd, n_layers = (number[k] for k in (b"feed_forward_length", b"embedding_length", b"block_count"))
    n_heads = number[b"attention.head_count"]
    heads = {b"attn_q": n_heads, b"attn_k": number.get(b"attention.head_count_kv", n_heads)}
    assert n_ff % 256 == 0, "feed_forward_length has to be a multiple of 256"
    set_keys(f, arch, a)
    new = place(f, a, n_layers, n_embd)
    random = np.random.default_rng(a.seed)

    def numbers(kind, source):
        if source is None:
            return (random.standard_normal((a.experts, n_embd)) / n_embd ** 0.5).astype("<f4").tobytes()
        (shape, at, part) = source
        n_rows = shape[1] if len(shape) > 1 else 1
        rows = np.frombuffer(f.bytes_at(f.base + at, row_bytes(shape, kind) * n_rows), np.uint8)
        turned = part in heads and arch == b"qwen2"
        rows = rows.reshape(shape[0] if turned and len(shape) == 1 else n_rows, -1)
        rows = as_neighbours(rows, heads[part]) if turned else rows
        if part not in PARTS:
            return rows.tobytes()
        return b"".join(in_other_order(rows, part, kind, e % (n_ff // 256)).tobytes() for e in range(a.experts))

    n_bytes = write(a.target, f.keys, [(name, dims, kind, size) for name, dims, kind, _, size in new],
                    (numbers(kind, source) for _, _, kind, source, _ in new), f.align)
    print(f"{a.target}: {n_bytes / 1e9:.2f} GB, {a.experts} experts, {a.used} used")


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("source")
    p.add_argument("target")
    p.add_argument("--experts", type=int, default=8)
    p.add_argument("--used", type=int, default=2)
    p.add_argument("--seed", type=int, default=1)
    main(p.parse_args())
