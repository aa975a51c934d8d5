#!/usr/bin/env python3
"""Makes tests/data/logits/toy-NAME.txt: what a plain numpy model computes for a toy GGUF file.

    make-toy-goldens.py TOY.gguf OUT.txt
    make-toy-goldens.py MODEL.gguf OUT.txt IDS.txt      (a real model, and the tokens of a text)

Toys are written by `make_toy --golden DIR`. Only numpy is needed where matrices are F32, F16
or BF16, else the public package gguf, which dequantises them (made with 0.19.0). Everything is
computed in double precision, from the definitions: the models as their papers have them (Llama,
Qwen2, Qwen3, Mistral, Granite, Gemma 2 and 3, Phi 3, GPT-2, and the mixtures of experts: Mixtral,
Granite, Qwen2, Qwen3, OLMoE, gpt-oss, and routers as DeepSeek-V3's), biases as llama.cpp adds them
(to the product of the matrix of that name), RoPE scaling as llama.cpp derives it from the file's
keys, but gpt-oss's as its authors do.
Nothing of drey takes part. The toys without quantised types that make-logit-goldens.py covers come
out the same here, to the last digit written or nearly: that holds the two against each other.

The output is described in make-logit-goldens.py.
"""
import math
import os
import sys

import numpy as np

from gguf_file import Gguf
from golden_logits import toy_ids, write_model, write_prompt, write_text

REAL_PROMPT = 60
# Of these the pairs (i, i + n / 2) of a head are rotated, of others (2 i, 2 i + 1).
HALVES = ("qwen2", "qwen3", "phi3", "gemma2", "gemma3", "qwen2moe", "qwen3moe", "olmoe",
          "gpt-oss", "qwen2vl", "qwen3vl", "qwen3vlmoe", "seed_oss", "glm4moe", "hy_v3", "minimax-m2",
          "dots1", "exaone-moe", "bailingmoe2", "hunyuan-dense", "hunyuan-moe")
# Routers that are sigmoids; those of the second list do not divide weights by their sum unless a
# key says so.
SIGMOID = ("glm4moe", "hy_v3", "minimax-m2", "dots1", "exaone-moe", "bailingmoe2")
NOT_NORMED = ("qwen2moe", "olmoe", "gpt-oss", "glm4moe", "hy_v3", "dots1", "exaone-moe",
              "bailingmoe2")
POST_IS_FFN_NORM = ("gpt-oss", "glm4moe", "seed_oss")
FEW = (1, 40, 64)  # positions of goldens whose family differs in numbers alone
FEW_TOYS = ("qwen2vl", "qwen3vl", "qwen3vlmoe", "mistral3", "internlm2", "smollm3", "seed-oss",
            "ernie", "ernie-moe", "glm4moe", "glm4moe-norms", "hy-v3", "minimax", "dots1",
            "exaone-moe", "bailingmoe2", "hunyuan", "hunyuan-moe", "uneven", "scales", "scales-moe", "softplus")


def plain(value):
    """A key's value with texts as str, arrays as lists."""
    if isinstance(value, tuple):
        return [plain(item) for item in value[1]]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def tensor(file, offset, dims, kind):
    """Numbers as float64, rows first."""
    n = math.prod(dims)
    if kind in (0, 1):
        code = ("<f4", "<f2")[kind]
        numbers = np.frombuffer(file.bytes_at(offset, n * int(code[2])), code)
    elif kind == 30:
        words = np.frombuffer(file.bytes_at(offset, 2 * n), "<u2").astype("<u4") << 16
        numbers = words.view("<f4")
    else:
        import gguf
        kind = gguf.GGMLQuantizationType(kind)
        block, size = gguf.GGML_QUANT_SIZES[kind]
        raw = np.frombuffer(file.bytes_at(offset, n // block * size), np.uint8)
        numbers = gguf.quants.dequantize(raw.reshape(-1, size), kind)
    return numbers.astype(np.float64).reshape(dims[::-1])


def softmax(x):
    p = np.exp(x - x.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


class Model:
    def __init__(self, file):
        self.t = {name.decode(): tensor(file, file.base + offset, dims, kind)
                  for name, dims, kind, offset in file.tensors}
        keys = {name.decode(): plain(value) for name, _, value in file.keys}
        self.arch = keys["general.architecture"]
        self.get = lambda name, other=None: keys.get(f"{self.arch}.{name}", other)
        self.n_layers = self.get("block_count") - self.get("nextn_predict_layers", 0)
        heads = self.get("attention.head_count")
        self.layer_heads = heads if isinstance(heads, list) else [heads] * self.n_layers
        self.n_heads = self.layer_heads[0]
        self.n_heads_kv = self.get("attention.head_count_kv", self.n_heads)
        self.head_dim = self.get("attention.key_length", self.get("embedding_length") // self.n_heads)
        self.v_dim = self.get("attention.value_length", self.head_dim)
        self.n_rot = self.get("rope.dimension_count", self.head_dim)
        self.eps = self.get("attention.layer_norm_rms_epsilon",
                            self.get("attention.layer_norm_epsilon"))
        self.gemma = self.arch in ("gemma2", "gemma3")
        self.ropes = {False: self.rope(), True: self.rope()}
        if self.arch == "gemma3":  # local layers: an own base, no scaling
            pair = np.arange(self.n_rot // 2)
            self.ropes[True] = self.get("rope.freq_base_swa", 10000.0) ** (-2.0 * pair / self.n_rot), 1.0
        self.scale = self.get("attention.scale", 1 / math.sqrt(self.head_dim))
        self.closest, self.used = math.inf, []  # of choices of experts

    def rope(self):
        """Angle per position of each pair, and what cosines and sines are multiplied with."""
        base = self.get("rope.freq_base", 10000.0)
        pair = np.arange(self.n_rot // 2)
        angle = base ** (-2.0 * pair / self.n_rot)
        for factors in ("rope_freqs.weight", "rope_factors_short.weight"):
            if factors in self.t:
                angle = angle / self.t[factors]
        kind = self.get("rope.scaling.type", "linear")
        factor = self.get("rope.scaling.factor", self.get("rope.scale_linear", 0.0)) or 1.0
        if kind == "none":
            factor = 1.0
        extrapolated = self.get("rope.scaling.yarn_ext_factor", -1.0)
        if extrapolated < 0:
            extrapolated = 1.0 if kind == "yarn" else 0.0
        magnitude = self.get("rope.scaling.yarn_attn_factor", 1.0)
        if extrapolated != 0:
            of_scores = 0.1 * self.get("rope.scaling.yarn_log_multiplier", 0.0)
            magnitude = (0.1 * math.log(factor) + 1.0) / (of_scores * math.log(factor) + 1.0) \
                if factor > 1 else 1.0
            original = self.get("rope.scaling.original_context_length", 0)
            original = original or self.get("context_length")

            def turning(n_turns):
                return (self.n_rot * math.log(original / (n_turns * 2 * math.pi))
                        / (2 * math.log(base)))

            low = turning(self.get("rope.scaling.yarn_beta_fast", 32.0))
            high = turning(self.get("rope.scaling.yarn_beta_slow", 1.0))
            if self.arch != "gpt-oss":  # its authors do not round
                low, high = math.floor(low), math.ceil(high)
            low, high = max(0, low), min(self.n_rot - 1, high)
            ramp = 1 - np.clip((pair - low) / max(0.001, high - low), 0, 1)
        else:
            ramp = np.zeros(len(pair))
        mix = ramp * extrapolated
        angle = angle / factor * (1 - mix) + angle * mix
        return angle, magnitude * self.get("rope.scaling.attn_factor", 1.0)

    def rotate(self, x, layer):
        """x: [T][heads][head_dim]"""
        if self.arch == "gpt2" or (self.arch == "smollm3" and (layer + 1) % 4 == 0) \
                or (self.arch == "exaone-moe" and not self.is_local(layer)):
            return x
        frequencies, magnitude = self.ropes[self.is_local(layer)]
        angle = np.arange(x.shape[0])[:, None, None] * frequencies
        c, s = np.cos(angle) * magnitude, np.sin(angle) * magnitude
        half = self.n_rot // 2
        if self.arch in HALVES:
            first, second = np.arange(half), np.arange(half) + half
        else:
            first, second = 2 * np.arange(half), 2 * np.arange(half) + 1
        out = x.copy()
        out[..., first] = x[..., first] * c - x[..., second] * s
        out[..., second] = x[..., first] * s + x[..., second] * c
        return out

    def is_local(self, layer):
        usual = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2}.get(self.arch, 0)
        period = self.get("attention.sliding_window_pattern", usual)
        if isinstance(period, list):
            return bool(period[layer])
        return period == 0 or layer % period < period - 1

    def window(self, layer):
        """Number of positions that a row of this layer sees; 0: all."""
        return self.get("attention.sliding_window", 0) if self.is_local(layer) else 0

    @staticmethod
    def cap(x, most):
        return most * np.tanh(x / most) if most else x

    def norm(self, x, name):
        bias = name.replace(".weight", ".bias")
        if bias in self.t:  # LayerNorm
            x = x - x.mean(axis=-1, keepdims=True)
            return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.eps) * self.t[name] \
                + self.t[bias]
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.eps) * self.t[name]

    def product(self, x, name):
        y = x @ self.t[name + ".weight"].T * self.t.get(name + ".scale", 1)
        return y + self.t[name + ".bias"] if name + ".bias" in self.t else y

    def heads(self, x, name, n_heads):
        """[T][n_heads][width], rotated: of Q and K the width of keys, of V that of values."""
        whole = name[:-1] + "qkv"  # Q, K and V one below the other
        if whole + ".weight" in self.t:
            sizes = [self.n_heads * self.head_dim, self.n_heads_kv * self.head_dim,
                     self.n_heads_kv * self.v_dim]
            y = np.split(self.product(x, whole), np.cumsum(sizes)[:2], axis=1)["qkv".index(name[-1])]
        else:
            y = self.product(x, name)
        norm = name + "_norm.weight"
        wide = self.arch in ("olmoe", "minimax-m2") and norm in self.t  # one norm for all heads together
        y = self.norm(y, norm) if wide else y
        y = y.reshape(x.shape[0], n_heads, self.v_dim if name.endswith("_v") else self.head_dim)
        if norm in self.t and not wide and not self.arch.startswith("hunyuan"):
            y = self.norm(y, norm)
        if name.endswith("_v"):
            return y
        y = self.rotate(y, int(name.split(".")[1]))
        return self.norm(y, norm) if self.arch.startswith("hunyuan") else y

    def post(self, y, name):
        return self.norm(y, name) if name in self.t else y

    def attend(self, x, number):
        layer = f"blk.{number}."
        n = x.shape[0]
        self.n_heads = self.layer_heads[number]
        q = self.heads(x, layer + "attn_q", self.n_heads)
        k = self.heads(x, layer + "attn_k", self.n_heads_kv)
        length = self.get("attention.temperature_length",
                          self.get("rope.scaling.original_context_length", 1)) or 1
        q = q * (1 + self.get("attention.temperature_scale", 0.0)
                 * np.log(np.arange(n) // length + 1))[:, None, None]
        seen = np.arange(n)[:, None] - np.arange(n)  # how far back
        hidden = (seen < 0) | (seen >= (self.window(number) or n))
        v = self.heads(x, layer + "attn_v", self.n_heads_kv)
        out = np.zeros((n, self.n_heads, self.v_dim))
        for head in range(self.n_heads):
            shared = head * self.n_heads_kv // self.n_heads
            scores = self.cap(q[:, head] @ k[:, shared].T * self.scale,
                              self.get("attn_logit_softcapping", 0))
            scores[hidden] = -np.inf
            if layer + "attn_sinks.weight" in self.t:  # one more score, whose value is zero
                sink = np.full((n, 1), self.t[layer + "attn_sinks.weight"][head])
                out[:, head] = softmax(np.hstack([scores, sink]))[:, :-1] @ v[:, shared]
            else:
                out[:, head] = softmax(scores) @ v[:, shared]
        y = self.product(out.reshape(n, -1), layer + "attn_output")
        return self.post(y, layer + "post_attention_norm.weight") if self.gemma else y

    def choose(self, logits, bias):
        """The experts of each row, [row][k], and what each of them counts."""
        usual = 3 if self.arch == "gpt-oss" else 2 if self.arch in SIGMOID else 1
        gate = self.get("expert_gating_func", usual)
        p = {1: softmax, 2: lambda x: 1 / (1 + np.exp(-x)), 3: lambda x: x,
             4: lambda x: np.sqrt(np.log1p(np.exp(x)))}[gate](logits)
        worth = p + bias
        n_groups = self.get("expert_group_count", 1)
        if n_groups > 1:
            groups = np.sort(worth.reshape(len(p), n_groups, -1), axis=2)[:, :, -2:].sum(axis=2)
            kept = self.largest(groups, self.get("expert_group_used_count"))
            size = p.shape[1] // n_groups
            allowed = (kept[:, :, None] == np.arange(p.shape[1]) // size).any(axis=1)
            worth = np.where(allowed, worth, -np.inf)
        chosen = self.largest(worth, self.get("expert_used_count"))
        weight = np.take_along_axis(p, chosen, axis=1)
        if gate == 3:
            weight = softmax(weight)
        if self.get("expert_weights_norm", self.arch not in NOT_NORMED):
            weight = weight / weight.sum(axis=1, keepdims=True)
        return chosen, weight * self.get("expert_weights_scale", 1.0)

    def largest(self, x, n):
        """Places of the n largest numbers in each row."""
        places = np.argsort(-x, axis=1, kind="stable")
        ordered = np.take_along_axis(x, places, axis=1)
        if n < x.shape[1]:
            self.closest = min(self.closest, (ordered[:, n - 1] - ordered[:, n]).min())
        return places[:, :n]

    def gated(self, x, gate, up, down):
        g = x @ gate.T
        return (g / (1 + np.exp(-g)) * (x @ up.T)) @ down.T

    def expert(self, x, layer, number):
        of = {name: self.t[f"{layer}ffn_{name}_exps.weight"][number]
              for name in ("gate", "up", "gate_up", "down")
              if f"{layer}ffn_{name}_exps.weight" in self.t}
        for name in of:
            of[name] = of[name] * self.t.get(f"{layer}ffn_{name}_exps.scale", [1] * 999)[number]
        if "gate_up" in of:  # one below the other
            of["gate"], of["up"] = np.split(of["gate_up"], 2)
        if self.arch != "gpt-oss":
            return self.gated(x, of["gate"], of["up"], of["down"])
        bias = {name: self.t[f"{layer}ffn_{name}_exps.bias"][number]
                for name in ("gate", "up", "down")}
        gate = np.minimum(x @ of["gate"].T + bias["gate"], 7)
        up = np.clip(x @ of["up"].T + bias["up"], -7, 7)
        return ((up + 1) * gate / (1 + np.exp(-1.702 * gate))) @ of["down"].T + bias["down"]

    def mixture(self, x, layer):
        logits = self.product(x, layer + "ffn_gate_inp")
        bias = self.t.get(layer + "exp_probs_b.bias", self.t.get(layer + "exp_probs_b", 0))
        chosen, weight = self.choose(logits, bias)
        self.used.append(np.bincount(chosen.ravel(), minlength=logits.shape[1]))
        out = np.zeros_like(x)
        for expert in range(logits.shape[1]):
            row, place = np.nonzero(chosen == expert)
            out[row] += weight[row, place, None] * self.expert(x[row], layer, expert)
        if layer + "ffn_up_shexp.weight" in self.t:
            y = self.gated(x, *[self.t[f"{layer}ffn_{kind}_shexp.weight"]
                                for kind in ("gate", "up", "down")])
            of_gate = self.t.get(layer + "ffn_gate_inp_shexp.weight")
            out += y if of_gate is None else y / (1 + np.exp(-x @ of_gate))[:, None]
        return out

    def feed_forward(self, x, layer):
        if layer + "ffn_gate_inp.weight" in self.t:
            return self.mixture(x, layer)
        up = self.product(x, layer + "ffn_up")
        if self.arch == "gpt2":
            gate, up = up, 1
        elif self.arch == "phi3":
            gate, up = np.split(up, 2, axis=1)
        else:
            gate = self.product(x, layer + "ffn_gate")
        if self.gemma or self.arch == "gpt2":
            act = 0.5 * gate * (1 + np.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate ** 3)))
        else:
            act = gate / (1 + np.exp(-gate))
        return self.post(self.product(act * up, layer + "ffn_down"), layer + "post_ffw_norm.weight")

    def logits(self, ids):
        x = self.t["token_embd.weight"][ids] * self.get("embedding_scale", 1.0)
        if self.gemma:
            x = x * math.sqrt(x.shape[1])
        if "position_embd.weight" in self.t:
            x = x + self.t["position_embd.weight"][:len(ids)]
        residual = self.get("residual_scale", 1.0)
        for i in range(self.n_layers):
            layer = f"blk.{i}."
            x = x + residual * self.attend(self.norm(x, layer + "attn_norm.weight"), i)
            name = "post_attention_norm" if self.arch in POST_IS_FFN_NORM else "ffn_norm"
            x = x + residual * self.feed_forward(self.norm(x, f"{layer}{name}.weight"), layer)
        head = "output.weight" if "output.weight" in self.t else "token_embd.weight"
        logits = self.norm(x, "output_norm.weight") @ self.t[head].T / self.get("logit_scale", 1.0)
        return self.cap(logits, self.get("final_logit_softcapping", 0))


def main():
    path, out_path = sys.argv[1:3]
    model = Model(Gguf(path))
    prompt = ids = toy_ids(model.t["token_embd.weight"].shape[0])
    if len(sys.argv) > 3:
        with open(sys.argv[3], encoding="ascii") as f:
            ids = [int(word) for word in f.read().split()]
        prompt = ids[:REAL_PROMPT]
    with open(out_path, "w", encoding="ascii") as out:
        logits = model.logits(ids)
        write_model(out, path)
        few = os.path.basename(path)[4:-5] in FEW_TOYS
        write_prompt(out, logits, prompt, *([FEW] if few else []))
        write_text(out, logits, ids)


if __name__ == "__main__":
    main()
