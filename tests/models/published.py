#!/usr/bin/env python3
"""Headers of published models (tests/data/published.txt), each in front of an empty file of the
model's size: `drey inspect` says that it runs, or why it does not yet.
    published.py DREY [MODEL ...]"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the tree is not the test's to write to
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(root, "scripts"))
from gguf_file import header

U32, I32, F32, BOOL, TEXT, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
TYPES = {"F32": (0, 1, 4), "Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144), "MXFP4": (39, 32, 17)}  # number, block, bytes
MERGES = [b"t h", b"th e"]


def item(word):
    """Its kind and value."""
    if word in ("true", "false"):
        return BOOL, word == "true"
    if re.fullmatch(r"-?\d+", word):
        return U32, int(word)
    if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", word):
        return F32, float(word)
    return TEXT, word.encode()


def repeated(words):
    out = []
    for word in words.split(","):
        one, _, times = word.partition("*")
        out += [item(one)] * int(times or 1)
    return out


def value(word):
    if not word.startswith("["):
        return item(word)
    items = []
    for group, times, others in re.findall(r"\[([^]]*)\](?:\*(\d+))?|,([^\[\]]+)", word):
        items += repeated(group) * int(times or 1) if group else repeated(others)
    kind = items[0][0]
    if kind == U32 and max(one for _, one in items) >= 1 << 31:
        return ARRAY, (U64, [one for _, one in items])
    return ARRAY, (I32 if kind == U32 else kind, [one for _, one in items])


def vocabulary(n, model, pre):
    """Keys of a tokenizer with so many tokens."""
    if model == "gpt2":  # each byte is a character
        signs = [b for b in range(256) if 33 <= b < 127 or 161 <= b < 173 or b >= 174]
        tokens = [chr(b) for b in signs] + [chr(256 + i) for i in range(256 - len(signs))] + ["th", "the"]
        tokens, types = [token.encode() for token in tokens], [1] * 258
    else:
        tokens = [b"<pad>", b"<eos>", b"<bos>", b"<unk>"] + [b"<0x%02X>" % b for b in range(256)] + [b"t", b"h", b"e", b"th", b"the"]
        types = [3, 3, 3, 2] + [6] * 256 + [1] * 5
    types += [1] * (n - len(tokens) - 1) + [3]
    tokens += [b"t%d" % i for i in range(len(tokens), n)]
    keys = [(b"model", TEXT, model.encode()), (b"tokens", ARRAY, (TEXT, tokens)), (b"token_type", ARRAY, (I32, types)),
            (b"bos_token_id", U32, 2), (b"eos_token_id", U32, n - 1)]
    if pre != "-":
        keys.append((b"pre", TEXT, pre.encode()))
    if model == "llama":
        keys.append((b"scores", ARRAY, (F32, [-float(i) for i in range(n)])))
    else:
        keys.append((b"merges", ARRAY, (TEXT, MERGES)))
    return [(b"tokenizer.ggml." + name, kind, is_) for name, kind, is_ in keys]


def parts(words):
    """A part's tensors, NAME: DIMS."""
    what, *rest = words
    n = [int(word) for word in rest if word.isdigit()]
    if what == "ends":
        out = {"token_embd": n, "output_norm": n[:1]}
        return out if "tied" in rest else out | {"output": n}
    if what == "attn":
        d, heads, kv, dim, v = n if len(n) == 5 else n + n[3:]
        return {"attn_q": [d, heads * dim], "attn_k": [d, kv * dim], "attn_v": [d, kv * v], "attn_output": [heads * v, d]}
    if what == "ffn":
        out = {"ffn_up": n, "ffn_down": n[::-1]}
        return out if "plain" in rest else out | {"ffn_gate": n}
    if what == "experts":
        d, f, e = n
        return {"ffn_gate_inp": [d, e, "F32"], "ffn_gate_exps": n, "ffn_up_exps": n, "ffn_down_exps": [f, d, e]}
    if what == "shared":
        return {"ffn_gate_shexp": n, "ffn_up_shexp": n, "ffn_down_shexp": n[::-1]}
    if what == "norms":
        return {name: n for name in rest[1:]}
    if what == "biases":
        return {name + ".bias!": [int(dim)] for name, dim in (word.split("=") for word in rest)}
    if what == "nextn":
        d = n[0]
        return {"nextn.eh_proj": [2 * d, d]} | {"nextn." + name: [d] for name in ("enorm", "hnorm", "shared_head_norm")}
    dims, _, kind = rest[0].partition(":")
    return {what: [int(dim) for dim in dims.split("x")] + ([kind] if kind else [])}


def layers(words):
    """The layers of A-B/STEP,..., without those after a "!"."""
    out = []
    some, _, others = words.partition("!")
    for word in some.split(","):
        first, last, step = re.fullmatch(r"(\d+)(?:-(\d+))?(?:/(\d+))?", word).groups()
        out += range(int(first), int(last or first) + 1, int(step or 1))
    return sorted(set(out) - set(layers(others) if others else []))


def bytes_of(dims, kind):
    _, elements, size = TYPES[kind]
    assert dims[0] % elements == 0, (dims, kind)
    n = dims[0] // elements * size
    for dim in dims[1:]:
        n *= dim
    return n


class Model:
    def __init__(self, head):
        self.name, self.arch, self.expected = re.fullmatch(r"= (\S+) (\S+): (.+)", head).groups()
        self.keys = [(b"general.architecture", TEXT, self.arch.encode()), (b"general.name", TEXT, self.name.encode())]
        self.tensors = []

    def add(self, line):
        first, rest = line.split(" ", 1)
        if first == "keys":
            for word in rest.split():
                name, _, is_ = word.partition("=")
                name = name[1:] if name[0] == "/" else self.arch + "." + name
                self.keys.append((name.encode(), *value(is_)))
        elif first == "vocabulary":
            n, model, pre = rest.split()
            self.keys += vocabulary(int(n), model, pre)
        else:
            for layer in [None] if first == "*:" else layers(first[:-1]):
                for part in rest.split(", "):
                    self.add_part("" if layer is None else f"blk.{layer}.", part.split())

    def add_part(self, before, words):
        for name, dims in parts(words).items():
            kind = dims[-1] if isinstance(dims[-1], str) else None
            dims = [dim for dim in dims if dim != kind]
            name = name[:-1] if name.endswith("!") else name + ".weight"
            kind = kind or ("F32" if len(dims) == 1 else "Q4_K" if dims[0] % 256 == 0 else "Q8_0")
            self.tensors.append((before + name, dims, kind))

    def write(self, path):
        placed, at = [], 0
        for name, dims, kind in self.tensors:
            placed.append((name.encode(), dims, TYPES[kind][0], at))
            at += -(-bytes_of(dims, kind) // 32) * 32
        with open(path, "wb") as out:
            out.write(header(self.keys, placed))
            out.truncate(out.tell() + at)


def read_models():
    out = []
    with open(os.path.join(root, "tests", "data", "published.txt"), encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("= "):
                out.append(Model(line.strip()))
            elif line.strip() and line[0] != "#":
                out[-1].add(line.strip())
    return out


def said(text):
    """Returns in one line what inspect says about whether it runs."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line == "drey runs this file":
            return "runs"
        if line == "drey cannot run this file":
            return "; ".join(one.strip() for one in lines[i + 1:] if one.startswith("  "))[:400]
    return "nothing: " + text[:300]


def main():
    drey, only = sys.argv[1], sys.argv[2:]
    bad = n_run = 0
    with tempfile.TemporaryDirectory() as folder:
        for model in read_models():
            if only and model.name not in only:
                continue
            path = os.path.join(folder, model.name + ".gguf")
            model.write(path)
            done = subprocess.run([drey, "inspect", path], capture_output=True, text=True, timeout=120)
            os.remove(path)
            says = said(done.stdout + done.stderr)
            n_run += says == "runs"
            if says != "runs" if model.expected == "runs" else model.expected not in says:
                print(f"{model.name} ({model.arch}): expected \"{model.expected}\", inspect says: {says}")
                bad += 1
    print(f"{n_run} models run")
    sys.exit(1 if bad else 0)


main()
