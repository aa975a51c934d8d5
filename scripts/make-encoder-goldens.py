#!/usr/bin/env python3
"""Makes tests/data/logits/toy-t5*.txt and toy-bart*.txt: what plain numpy models compute for toy
files of T5 and BART.

    make-encoder-goldens.py TOY.gguf OUT.txt

Toys are written by `make_toy --golden DIR`. Only numpy is needed. Everything is computed in double
precision, from the definitions: T5 as Raffel et al. have it (2020; buckets of relative positions as
in their code), its gated form as in Shazeer's "GLU variants" (2020), with the names of llama.cpp's
GGUF files; BART as Lewis et al. have it (2020), with the names of docs/reference/bart.md. Nothing
of drey takes part.

The encoder reads N_INPUT ids; the ids of the output (described in make-logit-goldens.py) are the
decoder's.
"""
import importlib.util
import math
import os
import sys

import numpy as np

from gguf_file import Gguf
from golden_logits import toy_ids, write_model, write_prompt, write_text

N_INPUT = 150
MAX_DISTANCE = 128

_spec = importlib.util.spec_from_file_location(
    "toy_goldens", os.path.join(os.path.dirname(os.path.abspath(__file__)), "make-toy-goldens.py"))
_toys = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_toys)


def bucket(relative, n_buckets, both_ways):
    """Returns the bucket of a key's position less the query's."""
    first = 0
    if both_ways:
        n_buckets //= 2
        first = n_buckets if relative > 0 else 0
        distance = abs(relative)
    else:
        distance = max(-relative, 0)
    exact = n_buckets // 2
    if distance < exact:
        return first + distance
    wide = math.log(distance / exact) / math.log(MAX_DISTANCE / exact) * (n_buckets - exact)
    return first + min(exact + int(wide + 1e-9), n_buckets - 1)


class Model:
    """Tensors by name, and what both kinds of models have."""

    def __init__(self, file, architecture):
        self.t = {name.decode(): _toys.tensor(file, file.base + offset, dims, kind)
                  for name, dims, kind, offset in file.tensors}
        keys = {name.decode(): _toys.plain(value) for name, _, value in file.keys}
        self.key = lambda name, other=None: keys.get(f"{architecture}.{name}", other)
        self.n_heads = self.key("attention.head_count")
        self.n_layers = {"enc": self.key("block_count")}
        self.n_layers["dec"] = self.key("decoder_block_count", self.n_layers["enc"])

    def mix(self, scores, values):
        """Softmax of [head][query][key], times [head][key][number], as rows."""
        p = np.exp(scores - scores.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return (p @ values).transpose(1, 0, 2).reshape(scores.shape[1], -1)


class T5(Model):
    def __init__(self, file):
        super().__init__(file, "t5")
        get = self.key
        self.head_dim = get("attention.key_length", get("embedding_length") // self.n_heads)
        self.n_buckets = get("attention.relative_buckets_count")
        self.eps = get("attention.layer_norm_rms_epsilon")

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.eps) * self.t[name + ".weight"]

    def bias(self, part, n):
        """[head][query][key]"""
        table = self.t[f"{part}.blk.0.attn_rel_b.weight"]  # [bucket][head]
        rows = [[bucket(k - q, self.n_buckets, part == "enc") for k in range(n)] for q in range(n)]
        return table[np.array(rows)].transpose(2, 0, 1)

    def attend(self, x, memory, name, added):
        """x asks memory; added: to scores, [head][query][key]."""
        heads = lambda rows, which: (rows @ self.t[f"{name}_{which}.weight"].T).reshape(
            len(rows), self.n_heads, self.head_dim).transpose(1, 0, 2)
        scores = heads(x, "q") @ heads(memory, "k").transpose(0, 2, 1) + added  # not scaled
        return self.mix(scores, heads(memory, "v")) @ self.t[f"{name}_o.weight"].T

    def feed_forward(self, x, layer):
        up = x @ self.t[layer + "ffn_up.weight"].T
        if layer + "ffn_gate.weight" in self.t:
            g = x @ self.t[layer + "ffn_gate.weight"].T
            up = up * 0.5 * g * (1 + np.tanh(math.sqrt(2 / math.pi) * (g + 0.044715 * g ** 3)))
        else:
            up = np.maximum(up, 0)
        return up @ self.t[layer + "ffn_down.weight"].T

    def stack(self, part, ids, output=None):
        x = self.t["token_embd.weight"][ids]
        added = self.bias(part, len(ids))
        if part == "dec":
            added = added + np.where(np.tri(len(ids), dtype=bool), 0, -np.inf)
        for i in range(self.n_layers[part]):
            layer = f"{part}.blk.{i}."
            n = self.norm(x, layer + "attn_norm")
            x = x + self.attend(n, n, layer + "attn", added)
            if output is not None:
                n = self.norm(x, layer + "cross_attn_norm")
                x = x + self.attend(n, output, layer + "cross_attn", 0)
            x = x + self.feed_forward(self.norm(x, layer + "ffn_norm"), layer)
        return self.norm(x, part + ".output_norm")

    def logits(self, input_ids, ids):
        x = self.stack("dec", ids, self.stack("enc", input_ids))
        if "output.weight" in self.t:
            return x @ self.t["output.weight"].T
        return x / math.sqrt(x.shape[1]) @ self.t["token_embd.weight"].T


class Bart(Model):
    def __init__(self, file):
        super().__init__(file, "bart")
        self.scale = self.key("embedding_scale", 1.0)
        self.eps = self.key("attention.layer_norm_epsilon")

    def linear(self, x, name):
        return x @ self.t[name + ".weight"].T + self.t[name + ".bias"]

    def norm(self, x, name):
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.eps)
        return x * self.t[name + ".weight"] + self.t[name + ".bias"]

    def attend(self, x, memory, name, hidden):
        """x asks memory; hidden: what it does not see, [query][key]."""
        heads = lambda rows, which: self.linear(rows, f"{name}_{which}").reshape(
            len(rows), self.n_heads, -1).transpose(1, 0, 2)
        q, k = heads(x, "q"), heads(memory, "k")
        scores = np.where(hidden, -np.inf, q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1]))
        return self.linear(self.mix(scores, heads(memory, "v")), f"{name}_o")

    def feed_forward(self, x, layer):
        up = self.linear(x, layer + "ffn_up")
        up *= 0.5 * (1 + np.vectorize(math.erf)(up / math.sqrt(2)))
        return self.linear(up, layer + "ffn_down")

    def stack(self, part, ids, output=None):
        x = self.t["token_embd.weight"][ids] * self.scale
        x = self.norm(x + self.t[part + ".position_embd.weight"][:len(ids)], part + ".token_embd_norm")
        hidden = ~np.tri(len(ids), dtype=bool) if part == "dec" else False
        for i in range(self.n_layers[part]):
            layer = f"{part}.blk.{i}."
            x = self.norm(x + self.attend(x, x, layer + "attn", hidden), layer + "attn_norm")
            if output is not None:
                x = self.norm(x + self.attend(x, output, layer + "cross_attn", False),
                              layer + "cross_attn_norm")
            x = self.norm(x + self.feed_forward(x, layer), layer + "ffn_norm")
        return x

    def logits(self, input_ids, ids):
        x = self.stack("dec", ids, self.stack("enc", input_ids))
        head = self.t.get("output.weight", self.t["token_embd.weight"])
        return x @ head.T + self.t["output.bias"]


def main():
    path, out_path = sys.argv[1:3]
    file = Gguf(path)
    model = {b"t5": T5, b"bart": Bart}[file.key(b"general.architecture")[2]](file)
    n_vocab = model.t["token_embd.weight"].shape[0]
    ids = toy_ids(n_vocab)
    logits = model.logits([(i * 6007 + 29) % n_vocab for i in range(N_INPUT)], ids)
    with open(out_path, "w", encoding="ascii") as out:
        write_model(out, path)
        write_prompt(out, logits, ids)
        write_text(out, logits, ids)


if __name__ == "__main__":
    main()
