#!/usr/bin/env python3
"""Makes a model of random weights in the shape of a published one: for reads, speeds and replayed
routes. What it writes is noise.

    random_gguf.py SHAPE VOCABULARY.gguf OUT.gguf [--layers N] [--NAME NUMBER ...]     (needs numpy)

Shapes: qwen2-7b (4.7 GB), qwen3moe-30b (18.6 GB), qwen35-27b, qwen35moe-35b. --NAME changes a
number of the shape (SHAPES, below). The tokenizer is that of VOCABULARY, a qwen2 or qwen3 model, of
which the part before the weights is enough. Matrices are Q4_K, and Q6_K where Q4_K_M has it: the
head, V and Down of half of the layers. All bytes are written; layers of a kind share theirs, so
that random numbers are drawn once, and differ in their routers."""
import argparse
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from gguf_file import Gguf, write
from widen_gguf import row_bytes

F32, Q4_K, Q6_K = 0, 12, 14
ONES, ZEROS, DECAYS = "ones", "zeros", "decays"  # what vectors hold, in F32

QWEN35 = {"arch": "qwen35", "head": 256, "rotated": 64, "k_heads": 16, "state": 128, "taps": 4, "period": 4}
SHAPES = {
    "qwen2-7b": {"arch": "qwen2", "layers": 28, "width": 3584, "hidden": 18944, "heads": 28, "key_heads": 4, "head": 128},
    "qwen3moe-30b": {"arch": "qwen3moe", "layers": 48, "width": 2048, "hidden": 6144, "heads": 32, "key_heads": 4,
                     "head": 128, "experts": 128, "used": 8, "expert_hidden": 768},
    "qwen35-27b": QWEN35 | {"layers": 64, "width": 5120, "hidden": 17408, "heads": 24, "key_heads": 4, "v_heads": 48},
    "qwen35moe-35b": QWEN35 | {"arch": "qwen35moe", "layers": 40, "width": 2048, "heads": 16, "key_heads": 2,
                               "v_heads": 32, "experts": 256, "used": 8, "expert_hidden": 512, "shared_hidden": 512},
}


def n_bytes(dims, kind):
    return row_bytes(dims, kind) * int(np.prod(dims[1:], dtype=np.int64))


def random_bytes(random, dims, kind):
    """Weights around 0 whose products with a normed row are about as large as the row."""
    if kind in (ONES, ZEROS, DECAYS):
        return np.full(dims, {ONES: 1, ZEROS: 0, DECAYS: -0.2}[kind], "<f4").tobytes()
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


def mixer(s, down):
    width, q, keys = s["width"], s["heads"] * s["head"], s["key_heads"] * s["head"]
    gated = "state" in s  # Q has the gates of attention's result as well
    yield from (("attn_q.weight", [width, 2 * q if gated else q], Q4_K), ("attn_k.weight", [width, keys], Q4_K),
                ("attn_v.weight", [width, keys], down), ("attn_output.weight", [q, width], Q4_K))
    if s["arch"] == "qwen2":
        yield from (("attn_q.bias", [q], ZEROS), ("attn_k.bias", [keys], ZEROS), ("attn_v.bias", [keys], ZEROS))
    else:
        yield from (("attn_q_norm.weight", [s["head"]], ONES), ("attn_k_norm.weight", [s["head"]], ONES))


def delta_net(s):
    width, k, v = s["width"], s["k_heads"] * s["state"], s["v_heads"] * s["state"]
    yield from (("attn_qkv.weight", [width, 2 * k + v], Q4_K), ("attn_gate.weight", [width, v], Q4_K),
                ("ssm_beta.weight", [width, s["v_heads"]], F32), ("ssm_alpha.weight", [width, s["v_heads"]], F32),
                ("ssm_conv1d.weight", [s["taps"], 2 * k + v], F32), ("ssm_dt.bias", [s["v_heads"]], ZEROS),
                ("ssm_a", [s["v_heads"]], DECAYS), ("ssm_norm.weight", [s["state"]], ONES),
                ("ssm_out.weight", [v, width], Q4_K))


def feed_forward(s, down):
    width, ends = s["width"], (("gate", Q4_K), ("up", Q4_K), ("down", down))

    def part(ending, hidden, *more):
        for name, kind in ends:
            yield f"ffn_{name}{ending}.weight", [*((hidden, width) if name == "down" else (width, hidden)), *more], kind
    if "experts" not in s:
        yield from part("", s["hidden"])
        return
    yield "ffn_gate_inp.weight", [width, s["experts"]], F32
    yield from part("_exps", s["expert_hidden"], s["experts"])
    if "shared_hidden" in s:
        yield "ffn_gate_inp_shexp.weight", [width], ONES
        yield from part("_shexp", s["shared_hidden"])


def pieces_of(s, n_vocab):
    """(name, shape, type, or what a vector holds)"""
    yield "token_embd.weight", [s["width"], n_vocab], Q4_K
    yield "output.weight", [s["width"], n_vocab], Q6_K
    yield "output_norm.weight", [s["width"]], ONES
    for i in range(s["layers"]):
        down = Q6_K if more_bits(i, s["layers"]) else Q4_K
        recurrent = "state" in s and (i + 1) % s["period"] != 0
        second = "post_attention_norm.weight" if "state" in s else "ffn_norm.weight"
        for piece in (("attn_norm.weight", [s["width"]], ONES), (second, [s["width"]], ONES),
                      *(delta_net(s) if recurrent else mixer(s, down)), *feed_forward(s, down)):
            yield (f"blk.{i}.{piece[0]}", *piece[1:])


KEYS = {"layers": "block_count", "width": "embedding_length", "hidden": "feed_forward_length",
        "heads": "attention.head_count", "key_heads": "attention.head_count_kv", "rotated": "rope.dimension_count",
        "experts": "expert_count", "used": "expert_used_count", "expert_hidden": "expert_feed_forward_length",
        "shared_hidden": "expert_shared_feed_forward_length", "k_heads": "ssm.group_count",
        "v_heads": "ssm.time_step_rank", "state": "ssm.state_size", "taps": "ssm.conv_kernel",
        "period": "full_attention_interval"}


def keys_of(f, s):
    counts = {key: s[name] for name, key in KEYS.items() if name in s}
    counts |= {"context_length": 32768, "attention.key_length": s["head"], "attention.value_length": s["head"]}
    if "v_heads" in s:
        counts["ssm.inner_size"] = s["v_heads"] * s["state"]
    numbers = {"attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 1e6}
    of_arch = [(name, 4, n) for name, n in counts.items()] + [(name, 6, n) for name, n in numbers.items()]
    if "rotated" in s and "state" in s:  # sections of positions in images: text has the same in each
        of_arch.append(("rope.dimension_sections", 9, (5, [11, 11, 10, 0])))
    return ([[b"general.architecture", 8, s["arch"].encode()], [b"general.name", 8, b"random weights"]] +
            [[f"{s['arch']}.{name}".encode(), kind, n] for name, kind, n in of_arch] +
            [key for key in f.keys if key[0].startswith((b"tokenizer.", b"general.quantization"))])


def main(a, s):
    f, random, drawn = Gguf(a.vocabulary), np.random.default_rng(a.seed), {}
    pieces = list(pieces_of(s, len(f.key(b"tokenizer.ggml.tokens")[2][1])))

    def numbers(name, dims, kind):
        which = (name if "ffn_gate_inp." in name else name.split(".", 2)[-1], kind, *dims)
        if which not in drawn:
            drawn[which] = random_bytes(random, dims, kind)
        return drawn[which]

    tensors = [(name.encode(), dims, stored, n_bytes(dims, stored)) for name, dims, kind in pieces
               for stored in [kind if isinstance(kind, int) else F32]]
    size = write(a.target, keys_of(f, s), tensors, (numbers(*piece) for piece in pieces), f.align)
    print(f"{a.target}: {size / 1e9:.2f} GB, {a.shape}, {s['layers']} layers")


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("shape", choices=SHAPES)
    p.add_argument("vocabulary")
    p.add_argument("target")
    p.add_argument("--seed", type=int, default=1)
    for number in sorted({name for shape in SHAPES.values() for name in shape} - {"arch"}):
        p.add_argument(f"--{number.replace('_', '-')}", type=int)
    args = p.parse_args()
    main(args, SHAPES[args.shape] | {name: n for name, n in vars(args).items()
                                     if name in SHAPES[args.shape] and n is not None})
