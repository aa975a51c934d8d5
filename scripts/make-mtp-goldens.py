#!/usr/bin/env python3
"""Makes tests/data/logits/mtp-*.txt: what a plain numpy model says of an MTP block's guesses.

    make-mtp-goldens.py TOY.gguf OUT.txt

Toys are written by `make_toy --golden DIR`. Only numpy is needed. Everything is computed in double
precision, from the definitions (DeepSeek-V3's report, 2.2; Gated DeltaNet, arXiv 2412.06464, as
Qwen3.5 has it); nothing of drey takes part. Attention and feed-forward parts of targets that have
nothing else are computed by make-toy-goldens.py.

The target reads a prompt and says what follows; the block computes a row for each token but the
first, from the target's normed state at the token before, and then a small tree below the last one
from its own normed states. The output is that of make-eagle-goldens.py.
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


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Target(toy_goldens.Model):
    """The model in front of the block."""

    def delta(self, n, layer):
        """A gated delta net, one row after the other. Head h of values has head h mod K of keys."""
        size, n_keys, n_values, taps = (self.get("ssm." + key) for key in (
            "state_size", "group_count", "time_step_rank", "conv_kernel"))
        u = self.product(n, layer + "attn_qkv")
        w = self.t[layer + "ssm_conv1d.weight"]
        before = np.concatenate([np.zeros((taps - 1, u.shape[1])), u])
        y = sum(before[j:j + len(u)] * w[:, j] for j in range(taps))
        y = y * sigmoid(y)
        q, k, v = np.split(y, [n_keys * size, 2 * n_keys * size], axis=1)
        q, k = (x.reshape(len(n), n_keys, size) for x in (q, k))
        q, k = (x / np.sqrt((x * x).sum(axis=2, keepdims=True) + 1e-6) for x in (q, k))
        v, z = v.reshape(len(n), n_values, size), self.product(n, layer + "attn_gate")
        beta = sigmoid(self.product(n, layer + "ssm_beta"))
        decay = np.exp(self.t[layer + "ssm_a"] * np.log1p(np.exp(
            self.product(n, layer + "ssm_alpha") + self.t[layer + "ssm_dt.bias"])))
        state, out = np.zeros((n_values, size, size)), np.zeros((len(n), n_values, size))
        for row in range(len(n)):
            for head in range(n_values):
                s = decay[row, head] * state[head]
                key = k[row, head % n_keys]
                s = s + np.outer(key, beta[row, head] * (v[row, head] - s.T @ key))
                state[head] = s
                out[row, head] = s.T @ q[row, head % n_keys] / math.sqrt(size)
        out = self.norm(out, layer + "ssm_norm.weight").reshape(len(n), -1) * z * sigmoid(z)
        return self.product(out, layer + "ssm_out")

    def attention(self, n, number):
        """Attention of rows one by one, as the block has it."""
        rows, seen, out = Rows(self, number), [], []
        for position, row in enumerate(n):
            y, seen = rows.attend(row, position, seen)
            out.append(y)
        return np.array(out)

    def states(self, ids):
        """The rows after the last norm."""
        x = self.t["token_embd.weight"][ids]
        for i in range(self.n_layers):
            layer = f"blk.{i}."
            n = self.norm(x, layer + "attn_norm.weight")
            recurrent = layer + "ssm_a" in self.t
            x = x + (self.delta(n, layer) if recurrent else self.attention(n, i))
            m = self.norm(x, layer + "post_attention_norm.weight")
            x = x + self.feed_forward(m, layer)
        return self.norm(x, "output_norm.weight")


class Rows:
    """Keys and values of one layer, of rows in the order in which they come."""

    def __init__(self, model, number):
        self.model, self.of = model, f"blk.{number}."
        self.keys, self.values = [], []

    def tensor(self, role):
        return self.model.t.get(self.of + role)

    def turn(self, x, position):
        """Rotates pairs (i, i + n / 2) of each head."""
        half = self.model.n_rot // 2
        angle = position * self.model.get("rope.freq_base") ** (-np.arange(half) / half)
        first, second = x[:, :half], x[:, half:2 * half]
        return np.concatenate([first * np.cos(angle) - second * np.sin(angle),
                               first * np.sin(angle) + second * np.cos(angle),
                               x[:, 2 * half:]], axis=1)

    def heads(self, n, what, n_heads):
        y = self.tensor(f"attn_{what}.weight") @ n
        bias = self.tensor(f"attn_{what}.bias")
        return (y if bias is None else y + bias).reshape(n_heads, -1)

    def normed(self, x, what):
        name = f"{self.of}attn_{what}_norm.weight"
        return self.model.norm(x, name) if name in self.model.t else x

    def attend(self, n, position, seen):
        """Returns what attention adds to a row. seen: the rows before it on its path."""
        model = self.model
        q, gate = self.heads(n, "q", model.n_heads), None
        if model.arch == "qwen35":  # each head's gates come after its queries
            q, gate = q[:, :model.head_dim], q[:, model.head_dim:]
        k = self.heads(n, "k", model.n_heads_kv)
        q = self.turn(self.normed(q, "q"), position)
        self.keys.append(self.turn(self.normed(k, "k"), position))
        self.values.append(self.heads(n, "v", model.n_heads_kv))
        path, out = seen + [len(self.keys) - 1], []
        for head in range(model.n_heads):
            shared = head * model.n_heads_kv // model.n_heads
            scores = np.array([q[head] @ self.keys[i][shared] for i in path])
            p = np.exp((scores - scores.max()) / math.sqrt(model.head_dim))
            out.append(p / p.sum() @ np.array([self.values[i][shared] for i in path]))
        out = np.array(out) if gate is None else np.array(out) * sigmoid(gate)
        return self.tensor("attn_output.weight") @ out.reshape(-1), path


class Block(Rows):
    def __init__(self, model):
        super().__init__(model, model.n_layers)

    def row(self, token, state, position, seen):
        """A row's normed state."""
        model = self.model
        both = np.concatenate([model.norm(model.t["token_embd.weight"][token],
                                          self.of + "nextn.enorm.weight"),
                               model.norm(state, self.of + "nextn.hnorm.weight")])
        x = self.tensor("nextn.eh_proj.weight") @ both
        y, path = self.attend(model.norm(x, self.of + "attn_norm.weight"), position, seen)
        x = x + y
        m = model.norm(x, self.of + "post_attention_norm.weight")
        x = x + model.feed_forward(m[None], self.of)[0]
        own = self.of + "nextn.shared_head_norm.weight"
        return model.norm(x, own if own in model.t else "output_norm.weight"), path


def main():
    path, out_path = sys.argv[1:3]
    target = Target(Gguf(path))
    block, head = Block(target), target.t["output.weight"]
    prompt = toy_ids(len(head))[:PROMPT]
    states = target.states(prompt)
    root = int((head @ states[-1]).argmax())
    seen, nodes = [], []
    for i, token in enumerate(prompt[1:] + [root]):
        x, seen = block.row(token, states[i], i + 1, seen)
    nodes.append((x, seen))
    for token, parent in TREE[1:]:
        x, seen = nodes[parent]
        nodes.append(block.row(token, x, len(seen) + 1, seen))
    with open(out_path, "w", encoding="ascii") as out:
        print("model", os.path.basename(path), os.path.getsize(path), file=out)
        print("prompt", len(prompt), file=out)
        print(*prompt, file=out)
        print("root", root, file=out)
        for (token, parent), (x, _) in zip(TREE, nodes):
            print("node", root if token is None else token, parent, file=out)
            row = head @ x
            for i in np.argsort(-row, kind="stable")[:20]:
                print(f"top {i} {row[i]:.6f}", file=out)
            for i in range(50):
                at = i * (len(row) - 1) // 49
                print(f"other {at} {row[at]:.6f}", file=out)


if __name__ == "__main__":
    main()
