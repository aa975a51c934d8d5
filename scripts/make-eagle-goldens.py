#!/usr/bin/env python3
"""Makes tests/data/logits/eagle*.txt: what a plain numpy model says of an EAGLE layer's guesses.

    make-eagle-goldens.py TARGET.gguf LAYER.gguf OUT.txt

Both files are written by `make_toy --golden DIR`. Only numpy is needed. Everything is computed in
double precision, from the definitions (docs/reference/eagle3.md); nothing of drey takes part. The
target is computed by make-toy-goldens.py.

The target reads a prompt and says what follows; the layer computes a row for each token but the
first, from the states of the token before, and then a small tree below the last one from its own
states. The output has the prompt, the token that follows, the tree as (token, parent) with node 0
being that token, and logits of each node: the 20 largest and 50 others, by token.
"""
import importlib.util
import math
import os
import sys

import numpy as np

from gguf_file import Gguf
from golden_logits import toy_ids

PROMPT = 40
TREE = [(None, -1), (70, 0), (101, 0), (33, 1), (90, 3), (12, 2)]

spec = importlib.util.spec_from_file_location(
    "toy_goldens", os.path.join(os.path.dirname(os.path.abspath(__file__)), "make-toy-goldens.py"))
toy_goldens = importlib.util.module_from_spec(spec)
spec.loader.exec_module(toy_goldens)


def states(model, ids, taps):
    """The residual stream of the target where so many layers are complete, of each tap."""
    x, kept = model.t["token_embd.weight"][ids], {}
    for i in range(model.n_layers):
        kept[i] = x
        layer = f"blk.{i}."
        x = x + model.attend(model.norm(x, layer + "attn_norm.weight"), i)
        x = x + model.feed_forward(model.norm(x, layer + "ffn_norm.weight"), layer)
    kept[model.n_layers] = x
    return np.concatenate([kept[tap] for tap in taps], axis=1)


def d2t_of(file):
    for name, dims, _, offset in file.tensors:
        if name == b"d2t":
            return np.frombuffer(file.bytes_at(file.base + offset, 8 * dims[0]), "<i8")
    return None


class Layer(toy_goldens.Model):
    def __init__(self, file, target):
        self.d2t = d2t_of(file)
        file.tensors = [t for t in file.tensors if t[0] != b"d2t"]
        super().__init__(file)
        self.embedding = self.t.get("token_embd.weight", target.t["token_embd.weight"])
        self.keys, self.values, self.positions = [], [], []

    def rotate_at(self, x, position):
        return self.rotate(np.repeat(x[None], position + 1, axis=0), 0)[position]

    def row(self, token, x, position, seen):
        """A row's state. seen: the rows before it on its path."""
        name = "blk.0.attn_norm_2.weight" if "blk.0.attn_norm_2.weight" in self.t \
            else "blk.0.hidden_norm.weight"
        e = self.norm(self.embedding[token], "blk.0.attn_norm.weight")
        g = self.norm(x, name)
        both = np.concatenate([e, g])
        if self.get("norm_before_residual", False):
            x = g
        q, k, v = (self.t[f"blk.0.attn_{c}.weight"] @ both for c in "qkv")
        q = self.rotate_at(q.reshape(self.n_heads, -1), position)
        self.keys.append(self.rotate_at(k.reshape(self.n_heads_kv, -1), position))
        self.values.append(v.reshape(self.n_heads_kv, -1))
        path, out = seen + [len(self.keys) - 1], []
        for head in range(self.n_heads):
            shared = head * self.n_heads_kv // self.n_heads
            scores = np.array([q[head] @ self.keys[i][shared] for i in path])
            p = np.exp((scores - scores.max()) / math.sqrt(self.head_dim))
            out.append(p / p.sum() @ np.array([self.values[i][shared] for i in path]))
        x = x + self.t["blk.0.attn_output.weight"] @ np.concatenate(out)
        m = self.norm(x, "blk.0.ffn_norm.weight")
        gate = self.t["blk.0.ffn_gate.weight"] @ m
        act = gate / (1 + np.exp(-gate)) * (self.t["blk.0.ffn_up.weight"] @ m)
        return x + self.t["blk.0.ffn_down.weight"] @ act, path

    def logits(self, x):
        return self.t["output.weight"] @ self.norm(x, "output_norm.weight")


def main():
    target_path, layer_path, out_path = sys.argv[1:4]
    target = toy_goldens.Model(Gguf(target_path))
    layer = Layer(Gguf(layer_path), target)
    prompt = toy_ids(target.t["token_embd.weight"].shape[0])[:PROMPT]
    root = int(target.logits(prompt)[-1].argmax())
    tapped = states(target, prompt, layer.get("extract_layers"))
    path, nodes = [], []
    for i, token in enumerate(prompt[1:] + [root]):
        x, path = layer.row(token, layer.t["fc.weight"] @ tapped[i], i, path)
    nodes.append((x, path))
    for token, parent in TREE[1:]:
        x, path = nodes[parent]
        nodes.append(layer.row(token, x, len(path), path))
    ids = layer.d2t if layer.d2t is not None else np.arange(len(layer.t["output.weight"]))
    with open(out_path, "w", encoding="ascii") as out:
        print("model", os.path.basename(layer_path), os.path.getsize(layer_path), file=out)
        print("prompt", len(prompt), file=out)
        print(*prompt, file=out)
        print("root", root, file=out)
        for (token, parent), (x, _) in zip(TREE, nodes):
            print("node", root if token is None else token, parent, file=out)
            row = layer.logits(x)
            for i in np.argsort(-row, kind="stable")[:20]:
                print(f"top {ids[i]} {row[i]:.6f}", file=out)
            for i in range(50):
                at = i * (len(row) - 1) // 49
                print(f"other {ids[at]} {row[at]:.6f}", file=out)


if __name__ == "__main__":
    main()
