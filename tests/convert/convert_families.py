#!/usr/bin/env python3
"""drey convert makes of the folder of each family the file that its toy is, whose logits
tests/data/logits has; the guide lists what it knows.

  convert_families.py DREY MAKE_TOY"""
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../../scripts"))
import hub_folder  # noqa: E402
from family_folder import SAVED, FamilyFolder, make_family_folder, numbers, rows_of  # noqa: E402
from gguf_file import Gguf  # noqa: E402

drey, make_toy = sys.argv[1:3]
tmp = tempfile.mkdtemp(prefix="drey-families-")
failed = False
BY_HAND = ("qwen2vl", "qwen3vl", "qwen3vlmoe", "internlm2", "bailingmoe2", "hy-v3", "glm4moe-norms")
# Keys that say the same in another form, or nothing.
SAME = ("sliding_window_pattern", "leading_dense_block_count", "interleave_moe_layer_step", "n_deepstack_layers",
        "layer_norm_epsilon", "feed_forward_length", "attention.head_count_kv", "expert_weights_norm",
        "swiglu_clamp_exp", "expert_weights_scale")


def wrong(*what):
    global failed
    failed = True
    print("convert_families:", *what)


def convert(folder, out, *options):
    return subprocess.run([drey, "convert", folder, out, "--force", *options], capture_output=True, text=True)


def tensors(gguf):
    """The numbers of each, and its dimensions but those of 1."""
    reader, out = FamilyFolder(gguf, ""), {}
    for name, dims, kind, offset in gguf.tensors:
        name, (type_name, size, data) = name.decode(), reader.read(dims, kind, offset)
        name = name + ".bias" if name.endswith("exp_probs_b") else name
        parts = [(name, dims, data)]
        if "gate_up_exps" in name:
            both = [rows_of(rows, 2) for rows in rows_of(data, dims[2])]
            parts = [(name.replace("gate_up", part), [dims[0], dims[1] // 2, dims[2]],
                      b"".join(rows[i] for rows in both)) for i, part in enumerate(("gate", "up"))]
        for name, dims, data in parts:
            out[name] = ([n for n in dims if n != 1], type_name, data)
    return out


def close(a, b):
    """Decays went through a logarithm, norms through a difference."""
    if a[:2] != b[:2] or len(a[2]) != len(b[2]):
        return False
    left, right = [], []
    numbers(a[2], 4, lambda x: left.append(x) or x)
    numbers(b[2], 4, lambda x: right.append(x) or x)
    return all(abs(x - y) <= 2e-6 * max(1, abs(x)) for x, y in zip(left, right))


def text_of(path):
    return subprocess.run([drey, "run", "-m", path, "-d", "none", "-n", "16", "-p", "It was a dark and stormy night"],
                          stdin=subprocess.DEVNULL, capture_output=True).stdout


def check(name):
    path, folder, out = (os.path.join(tmp, part) for part in (f"toys/toy-{name}.gguf", name, "out.gguf"))
    source, names = make_family_folder(path, "toy-" + name, folder)
    saved = SAVED.get("toy-" + name)
    if saved:
        roles = {re.sub(r"\.\d+(?=\.)", ".*", role) for role in names if ".*" not in role}
        as_saved = set(saved["tensors"])
        n_mtp = source.of("nextn_predict_layers", 0)
        if source.arch != "step35" and not n_mtp and roles != as_saved:
            wrong(name, "has tensors that transformers does not save, or lacks some:", sorted(roles ^ as_saved))
    kind = next(tensor[2] for tensor in source.gguf.tensors if tensor[0] == b"token_embd.weight")
    said = convert(folder, out, "--type", "f16" if kind == 1 else "f32")
    if said.returncode != 0:
        wrong(name, "is not converted:", said.stderr.strip())
        return
    if ("left out" in said.stdout) != source.vision:
        wrong(name, "does not say what is left out, or says so:", said.stdout)
    made = Gguf(out)
    old, new = tensors(source.gguf), tensors(made)
    for tensor in sorted(old.keys() | new.keys()):
        if tensor not in old or tensor not in new:
            wrong(name, "has", tensor, "in one of both alone")
        elif old[tensor] != new[tensor] and not (tensor.endswith(("ssm_a", "norm.weight")) and
                                                 close(old[tensor], new[tensor])):
            wrong(name, "differs in", tensor, old[tensor][:2], new[tensor][:2])
    keys = {key.decode(): value for key, _, value in made.keys}
    for key, _, value in source.gguf.keys:
        key = key.decode()
        if not key.startswith(("tokenizer.", "general.")) and not key.endswith(SAME) and keys.get(key) != value:
            wrong(name, "has another", key, value, keys.get(key))
    if text_of(path) != text_of(out) or not text_of(out):
        wrong(name, "writes another text")


def window_of_all():
    """StarCoder 2's window, which is that of all its layers."""
    folder, out = os.path.join(tmp, "starcoder2"), os.path.join(tmp, "out.gguf")
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config | {"sliding_window": 33}, file)
    said = convert(folder, out, "-q")
    keys = {key: value for key, _, value in Gguf(out).keys} if said.returncode == 0 else {}
    if keys.get(b"starcoder2.attention.sliding_window") != 33:
        wrong("starcoder2 with a window:", said.stderr)


def half_factors():
    """Step 3.5's factors are those of the half that is rotated, and ones."""
    folder, out = os.path.join(tmp, "step35"), os.path.join(tmp, "out.gguf")
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config["text_config"]["rope_parameters"]["full_attention"] |= {
        "rope_type": "llama3", "rope_theta": 100.0, "factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    said = convert(folder, out, "-q")
    found = tensors(Gguf(out)).get("rope_freqs.weight") if said.returncode == 0 else None
    got = []
    numbers(found[2] if found else b"", 4, lambda x: got.append(x) or x)
    want = []
    for i in range(4):
        length = 2 * math.pi * 100.0 ** (2 * i / 8)
        smooth = (64 / length - 1) / 3
        want.append(1 if length < 16 else 2 if length > 64 else 1 / ((1 - smooth) / 2 + smooth))
    want += [1] * 4
    if len(got) != 8 or any(abs(a - b) > 1e-6 for a, b in zip(got, want)):
        wrong("step35's factors are", got, "not", want, said.stderr)


def blocks_after():
    """Qwen's block for multi-token prediction, under names that no layer has, follows them."""
    path, folder, out = (os.path.join(tmp, part) for part in ("toys/toy-qwen35.gguf", "qwen35", "out.gguf"))
    source = FamilyFolder(Gguf(path), "toy-qwen35")
    made, layer = list(source.tensors()), "model.layers.1."
    of_layer = [("mtp.layers.0." + name[len(layer):], *rest) for name, *rest in made if name.startswith(layer)]
    norm = next(tensor for tensor in of_layer if tensor[0].endswith("input_layernorm.weight"))
    width = norm[2][0]
    more = [(f"mtp.{name}.weight", *norm[1:]) for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")]
    more.append(("mtp.fc.weight", "F32", [width, 2 * width], norm[3] * 2 * width))
    hub_folder.safetensors(os.path.join(folder, "model.safetensors"), made + of_layer + more)
    hub_folder.write(folder, "config.json", source.config() | {"mtp_num_hidden_layers": 1})
    said = convert(folder, out)
    if said.returncode != 0 or "left out" in said.stdout:
        wrong("a block after the layers:", said.stdout, said.stderr)
        return
    gguf = Gguf(out)
    keys, found = {key: value for key, _, value in gguf.keys}, tensors(gguf)
    n = source.of("block_count")
    want = {f"blk.{n}.nextn.{name}.weight" for name in ("eh_proj", "enorm", "hnorm", "shared_head_norm")}
    if keys[b"qwen35.block_count"] != n + 1 or keys[b"qwen35.nextn_predict_layers"] != 1 or want - found.keys():
        wrong("a block after the layers is missing:", sorted(want - found.keys()))
    elif found[f"blk.{n}.nextn.enorm.weight"] != found["blk.1.attn_norm.weight"]:
        wrong("a norm of the block after the layers is another")
    if text_of(out) != text_of(path):
        wrong("a block after the layers changes the text")


def refused():
    """A member that is known and not computed is named."""
    for name, member, value, pattern in (
            ("internlm2", "partial_rotary_factor", 0.5, "partial_rotary_factor is 0.5"),
            ("command-r", "use_parallel_block", False, "config.json has use_parallel_block"),
            ("llama4", "layer_types", ["full_attention", "other"] * 2, "is \"other\""),
            ("llama4", "attn_scale", "0.1", "attn_scale of config.json is \"0.1\""),
            ("smollm3", "no_rope_layers", [1, 0, 1, 1, 1], "no_rope_layers"),
            ("glm4moe", "scoring_func", "tanh", "the function \"tanh\""),
            ("glm4moe", "n_group", [1, 2], "n_group of config.json is a list"),
            ("qwen35", "linear_num_value_heads", 3, "heads"),
            ("qwen35", "linear_num_value_heads", "4", "linear_num_value_heads of config.json is \"4\""),
            ("step35", "swiglu_limits", [1.0], "no list of 4 numbers"),
            ("afmoe", "mup_enabled", False, "config.json has mup_enabled"),
            ("olmo2", "rope_theta", [1e4, 1e5, 1e4], "rope_theta of config.json is an array")):
        folder = os.path.join(tmp, "bad")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(os.path.join(tmp, name), folder)
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        config.get("text_config", config)[member] = value
        if member == "rope_theta":
            config.pop("rope_parameters")
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        said = convert(folder, os.path.join(tmp, "none.gguf"), "-q")
        if said.returncode == 0 or pattern not in said.stderr or said.stderr.count("\n") != 1:
            wrong(name, "with", member, value, "has no sentence with", pattern, ":", said.stderr)


def documented():
    """The guide's table is the program's."""
    with open(os.path.join(here, "../../docs/guide/models/convert.md"), encoding="utf-8") as file:
        listed = set(re.findall(r"`(\w+(?:ForCausalLM|ForConditionalGeneration|LMHeadModel|Model))`", file.read()))
    with open(os.path.join(here, "../../src/convert/family.c"), encoding="utf-8") as file:
        known = set(re.findall(r'\.name = "(\w+)"', file.read()))
    if listed != known:
        wrong("docs/guide/models/convert.md lists other architectures:", sorted(listed ^ known))


try:
    os.mkdir(os.path.join(tmp, "toys"))
    subprocess.run([make_toy, "--golden", os.path.join(tmp, "toys")], check=True)
    for toy in [name.removeprefix("toy-") for name in SAVED] + list(BY_HAND):
        check(toy)
    window_of_all()
    refused()
    blocks_after()
    half_factors()
    documented()
finally:
    shutil.rmtree(tmp, ignore_errors=True)
sys.exit(failed)
