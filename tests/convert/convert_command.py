#!/usr/bin/env python3
"""drey convert: toys of each architecture that it knows become folders as hubs hold them
(hub_folder.py) and files again, with the same tensors and the same text; and folders with faults
are refused with one sentence.
  convert_command.py DREY MAKE_TOY"""
import json
import os
import shutil
import struct
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), name) for name in ("../cli", "../../scripts", "../../scripts/pretokenizers")]
import command  # noqa: E402
from command import drey, make_toy, tmp, wrong  # noqa: E402
from gguf_file import Gguf  # noqa: E402
from hub_folder import MXFP4, TYPES, make_folder  # noqa: E402
from pretokenizer_chains import CHAINS  # noqa: E402

TOYS = ["biases", "linear", "qwen2-biases", "qwen3", "granite", "mistral", "gemma2", "gemma3", "phi3", "phi3-long",
        "gpt2", "yarn", "qwen3moe", "olmoe", "granitemoe", "granitemoe-shared", "gpt-oss", "mxfp4", "gpt-oss-yarn", "t5",
        "t5-tied", "t5-deeper", "bart", "bart-deeper"]
# What the files' writers choose, and what is said in another way or is a default.
OTHER = {"general.name", "general.type", "general.file_type", "general.quantization_version",
         "tokenizer.ggml.token_type", "tokenizer.ggml.scores"}


def convert(*words, code=0):
    """Standard error of the command."""
    ended = subprocess.run([drey, "convert", *words], capture_output=True, text=True, check=False)
    if ended.returncode != code:
        wrong(f"convert {' '.join(words)}: exit code {ended.returncode}: {ended.stderr.strip()}")
    return ended.stderr


def tensors(gguf):
    """Type, shape and bytes of each, by name."""
    out = {}
    for name, dims, kind, offset in gguf.tensors:
        n = 1
        for dim in dims:
            n *= dim
        n = n // 32 * 17 if kind == MXFP4 else n * TYPES[kind][1]
        out[name.decode()] = kind, dims, gguf.bytes_at(gguf.base + offset, n)
    return out


def text_of(path):
    return subprocess.run([drey, "run", "-m", path, "-p", "The sky", "-n", "24", "--sidecar", "none", "--memory",
                           "unlimited", "-q"], capture_output=True, check=True).stdout


def equal(name, a, b):
    """Gemma's norms have lost a bit where 1 was taken off; T5's biases are F32 in the toy, and F16
    as a matrix of the file."""
    if a != b and name.endswith("attn_rel_b.weight"):
        n = len(b[2]) // 2
        return a[1] == b[1] and struct.pack(f"<{n}e", *struct.unpack(f"<{n}f", a[2])) == b[2]
    if a == b or not name.endswith("_norm.weight"):
        return a == b
    n = len(a[2]) // 4
    return a[:2] == b[:2] and all(abs(x - y) < 1e-7 for x, y in zip(struct.unpack(f"<{n}f", a[2]),
                                                                    struct.unpack(f"<{n}f", b[2])))


def compare(what, old, new, other=OTHER):
    a, b = Gguf(old), Gguf(new)
    old_tensors, new_tensors = tensors(a), tensors(b)
    if old_tensors.keys() != new_tensors.keys():
        wrong(what, "has other tensors:", sorted(old_tensors.keys() ^ new_tensors.keys()))
    for name in old_tensors.keys() & new_tensors.keys():
        if not equal(name, old_tensors[name], new_tensors[name]):
            wrong(what, "differs in", name)
    values = {name.decode(): value for name, kind, value in b.keys}
    has_width = any(name.endswith(b".expert_feed_forward_length") for name, kind, value in a.keys)
    for name, kind, value in a.keys:
        name = name.decode()
        if name.endswith(".feed_forward_length") and has_width:
            continue  # config.json has only that of experts
        if name not in other and name in values and values[name] != value:
            wrong(what, "has another", name)
    if text_of(old) != text_of(new):
        wrong(what, "writes another text")


def main_type(path):
    kind = next(tensor[2] for tensor in Gguf(path).tensors if tensor[0] == b"token_embd.weight")
    return TYPES[kind][0].lower()


def toys():
    folder = os.path.join(tmp, "golden")
    os.mkdir(folder)
    subprocess.run([make_toy, "--golden", folder], check=True)
    subprocess.run([make_toy, "--gpt-oss", os.path.join(folder, "toy-mxfp4.gguf")], check=True)
    for i, name in enumerate(TOYS):
        path = os.path.join(folder, f"toy-{name}.gguf")
        hub, out = os.path.join(tmp, name), os.path.join(tmp, "out.gguf")
        make_folder(path, hub, n_parts=i % 3 + 1)
        convert(hub, out, *(["--type", main_type(path)] if i % 2 or "bart" in name else []), "--force", "-q")
        compare(name, path, out)


def pairs():
    """vocab.json with merges.txt makes the same file as tokenizer.json."""
    for name in ("gpt2", "bart"):
        path, hub = os.path.join(tmp, "golden", f"toy-{name}.gguf"), os.path.join(tmp, f"{name}-pair")
        make_folder(path, hub, pair=True)
        convert(hub, os.path.join(tmp, "out.gguf"), "--type", main_type(path), "--force", "-q")
        # The toy has GPT-2's layers and another model's pre-tokenizer.
        compare(name + " of vocab.json", path, os.path.join(tmp, "out.gguf"), OTHER | {"tokenizer.ggml.pre"})
        with open(os.path.join(hub, "merges.txt"), "w", encoding="utf-8") as file:
            file.write("#version: 0.2\n")
        refused(name + " with merges.txt empty", hub, "merges.txt has no merges")
        os.remove(os.path.join(hub, "merges.txt"))
        refused(name + " without merges.txt", hub, "neither merges.txt nor tokenizer.json")
    make_folder(os.path.join(tmp, "golden", "toy-biases.gguf"), os.path.join(tmp, "llama-pair"), pair=True)
    refused("llama of vocab.json", os.path.join(tmp, "llama-pair"), "put its tokenizer.json into")


def unscaled_head():
    """T5 1.1 as newer folders have it, without a head: the embedding is one, not scaled."""
    hub, out = os.path.join(tmp, "unscaled"), os.path.join(tmp, "out.gguf")
    make_folder(os.path.join(tmp, "golden", "toy-t5-tied.gguf"), hub)
    with open(os.path.join(hub, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    with open(os.path.join(hub, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config | {"scale_decoder_outputs": False}, file)
    convert(hub, out, "--force", "-q")
    made = tensors(Gguf(out))
    if made.get("output.weight") != made["token_embd.weight"]:
        wrong("T5 whose logits are not scaled has no head")


def encoder_faults():
    config, head = "config.json", "model.safetensors"
    bart, t5 = os.path.join(tmp, "whole-bart"), os.path.join(tmp, "whole-t5")
    for name, folder in (("bart", bart), ("t5", t5)):
        make_folder(os.path.join(tmp, "golden", f"toy-{name}.gguf"), folder)
    for what, pattern, file, change in [
            ("mBART", "\"MBartForConditionalGeneration\" is not converted", config,
             lambda c: c.update(architectures=["MBartForConditionalGeneration"])),
            ("norms before", "has normalize_before", config, lambda c: c.update(normalize_before=True)),
            ("a norm more", "has add_final_layer_norm", config, lambda c: c.update(add_final_layer_norm=True)),
            ("fixed positions", "has static_position_embeddings", config,
             lambda c: c.update(static_position_embeddings=True)),
            ("another activation", "activation is \"relu\"", config, lambda c: c.update(activation_function="relu")),
            ("other heads in the decoder", "the same in both", config, lambda c: c.update(decoder_attention_heads=1)),
            ("a first token that is none", "decoder_start_token_id of config.json is -3", config, lambda c: c.update(decoder_start_token_id=-3)),
            ("too few positions", "position_embd.weight has shape", config, lambda c: c.update(max_position_embeddings=3)),
            ("no head", "lm_head.weight is missing", config, lambda c: c.update(tie_word_embeddings=False)),
    ]:
        changed(bart, "BART: " + what, pattern, file, change)
    gate = "encoder.block.0.layer.1.DenseReluDense.wi_0.weight"
    for what, pattern, file, change in [
            ("another gate", "feed_forward_proj is \"gated-silu\"", config,
             lambda c: c.update(feed_forward_proj="gated-silu")),
            ("another function", "dense_act_fn is \"gelu\"", config, lambda c: c.update(dense_act_fn="gelu")),
            ("no gate", "are those of another", config, lambda c: c.update(feed_forward_proj="relu")),
            ("other distances", "relative_attention_max_distance is 64", config,
             lambda c: c.update(relative_attention_max_distance=64)),
            ("an epsilon that is none", "layer_norm_epsilon", config, lambda c: c.update(layer_norm_epsilon=2)),
            ("a tensor that is unknown", "is not one that drey knows", head,
             lambda h: h.update({"more.weight": h.pop(gate.replace("0.layer", "1.layer"))})),
    ]:
        changed(t5, "T5: " + what, pattern, file, change)
    pieces = os.path.join(t5, "spiece.model")
    with open(pieces, "rb") as file:
        whole = file.read()
    at = whole.rindex(b"\x12\x02\x18\x01\x1a")
    for what, pattern, data in [("BPE", "is no unigram one", whole[:at] + b"\x12\x02\x18\x02" + whole[at + 4:]),
                                ("blanks after words", "writes blanks", whole + b"\x12\x03\xc0\x01\x01"),
                                ("no map of characters", "no character map", whole[:at] + b"\x12\x02\x18\x01"),
                                ("bytes of something else", "no SentencePiece vocabulary", b"{}")]:
        with open(pieces, "wb") as file:
            file.write(data)
        refused("T5: " + what, t5, pattern)
    os.remove(pieces)
    refused("T5: no tokenizer", t5, "neither spiece.model nor tokenizer.model")


# ---- Faults ----

def header_of(folder):
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        n = struct.unpack("<Q", file.read(8))[0]
        return json.loads(file.read(n)), file.read()


def set_header(folder, header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def refused(what, folder, pattern):
    out = os.path.join(tmp, "none.gguf")
    said = convert(folder, out, "-q", code=1)
    if pattern not in said or said.count("\n") != 1:
        wrong(f"{what}: no sentence with \"{pattern}\": {said}")
    if os.path.exists(out) or os.path.exists(out + ".partial"):
        wrong(what, "leaves a file")


def changed(good, what, pattern, file, change):
    """A copy of the folder with another JSON file, or another header of the tensors."""
    folder = os.path.join(tmp, "bad")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(good, folder)
    if file == "model.safetensors":
        header, data = header_of(folder)
        set_header(folder, change(header) or header, data)
    else:
        path = os.path.join(folder, file)
        with open(path) as f:
            value = json.load(f)
        value = change(value) or value
        with open(path, "w") as f:
            f.write(value) if isinstance(value, str) else json.dump(value, f)
    refused(what, folder, pattern)


def pre_tokenizers(good):
    """The name of each chain of steps that published models have."""
    folder, out = os.path.join(tmp, "chain"), os.path.join(tmp, "out.gguf")
    path = os.path.join(folder, "tokenizer.json")
    shutil.copytree(good, folder)
    with open(path, encoding="utf-8") as f:
        tokenizer = json.load(f)
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    tokenizer["normalizer"] = {"type": "Sequence", "normalizers": []}
    n = 0
    for name, chain in CHAINS.items():
        if name == "afmoe":  # its file is not at hand
            continue
        steps = [step if isinstance(step, tuple) else (step, "isolated") for step in chain]
        steps = [{"type": "Split", "pattern": {"Regex": expression}, "invert": False,
                  "behavior": "".join(word.capitalize() for word in behavior.split("_"))} for expression, behavior in steps]
        tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps + [level]}
        tokenizer["model"]["ignore_merges"] = name in ("llama-bpe", "tekken", "youtu", "minicpm5")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(tokenizer, f)
        convert(folder, out, "--force", "-q")
        got = next(value for key, kind, value in Gguf(out).keys if key == b"tokenizer.ggml.pre").decode()
        if got != name:
            wrong("the pre-tokenizer of", name, "is", got)
        n += 1
    if n < 20:
        wrong("only", n, "pre-tokenizers")


def several_ends(good):
    """A list of ends, here or there: the first is EOS if none has a name, all of them are kept."""
    folder, out = os.path.join(tmp, "ends"), os.path.join(tmp, "out.gguf")
    shutil.copytree(good, folder)
    for name in ("generation_config.json", "config.json"):
        for file in ("config.json", "tokenizer_config.json", name):
            path = os.path.join(folder, file)
            value = {}
            if os.path.exists(path):
                with open(path, encoding="utf-8") as f:
                    value = json.load(f)
            if file == "tokenizer_config.json":
                value.pop("eos_token", None)
            if file != "tokenizer_config.json":
                value["eos_token_id"] = [2, 1, 3, 1] if file == name else None
            with open(path, "w", encoding="utf-8") as f:
                json.dump({k: v for k, v in value.items() if v is not None}, f)
        convert(folder, out, "--force", "-q")
        keys = {key.decode(): value for key, kind, value in Gguf(out).keys}
        got = [keys.get(f"tokenizer.ggml.{end}_token_id") for end in ("eos", "eot", "eom")]
        if got != [2, 1, 3]:
            wrong("ends of", name, "are", got)
        if name == "generation_config.json":
            os.remove(os.path.join(folder, name))


def faults(good):
    name = "model.norm.weight"
    head, config, vocab = "model.safetensors", "config.json", "tokenizer.json"
    for what, pattern, file, change in [
            ("a type that is none", "has a dtype that drey does not know", head, lambda h: h[name].update(dtype="F7")),
            ("integers", "is I32, where", head, lambda h: h[name].update(dtype="I32")),
            ("no type", "has no dtype", head, lambda h: h[name].pop("dtype") and None),
            ("a shape beyond everything", "larger than any file", head,
             lambda h: h[name].update(shape=[1 << 40, 1 << 40])),
            ("a negative shape", "the shape of tensor", head, lambda h: h[name].update(shape=[-1])),
            ("an empty shape", "is empty", head, lambda h: h[name].update(shape=[0])),
            ("bytes that do not fit", "and its shape", head, lambda h: h[name].update(shape=[65])),
            ("a tensor after the end", "ends after the file", head,
             lambda h: h[name].update(data_offsets=[1 << 40, (1 << 40) + 4])),
            ("tensors that overlap", "overlaps another one", head,
             lambda h: h[name].update(data_offsets=h["model.layers.0.input_layernorm.weight"]["data_offsets"])),
            ("a tensor less", "no tensor's", head,
             lambda h: h.pop("model.layers.0.input_layernorm.weight") and None),
            ("a header that is no JSON", "no JSON", head, lambda h: b"{" * 8),
            ("a header that is too deep", "no JSON, or too deep", head,
             lambda h: b'{"a":' + b"[" * 500 + b"]" * 500 + b"}"),
            ("a tensor that is unknown", "is not one that drey knows", head,
             lambda h: h.update({"model.more": h.pop("model.layers.1.self_attn.q_proj.weight")})),
            ("another architecture", "gpt2, lfm2, lfm2moe", config, lambda c: c.update(architectures=["Other"])),
            ("a quantised model", "quantised already", config, lambda c: c.update(quantization_config={})),
            ("no size", "has no hidden_size", config, lambda c: c.pop("hidden_size") and None),
            ("a size that is none", "no whole number", config, lambda c: c.update(hidden_size=2.5)),
            ("heads that do not fit", "are not those of", config, lambda c: c.update(num_attention_heads=3)),
            ("another activation", "activation is \"relu\"", config, lambda c: c.update(hidden_act="relu")),
            ("another rotation", "RoPE scaling \"dynamic\"", config,
             lambda c: c.update(rope_scaling={"type": "dynamic", "factor": 2})),
            ("half a rotation", "partial_rotary_factor", config, lambda c: c.update(partial_rotary_factor=0.5)),
            ("a window", "layer 0 of the model", config, lambda c: c.update(layer_types=["sliding_attention"])),
            ("a config that is none", "no JSON", config, lambda c: "{"),
            ("a small vocabulary", "vocab_size", config, lambda c: c.update(vocab_size=300)),
            ("another split", "by an expression", vocab,
             lambda t: t["pre_tokenizer"]["pretokenizers"][0]["pattern"].update(Regex="x")),
            ("small letters", "normalizer \"Lowercase\"", vocab, lambda t: t.update(normalizer={"type": "Lowercase"})),
            ("another tokenizer", "is no BPE", vocab, lambda t: t["model"].update(type="WordPiece")),
            ("no merges", "has no merges", vocab, lambda t: t["model"].update(merges=[])),
    ]:
        changed(good, what, pattern, file, change)


def fused_faults():
    """Faults of tensors that hold all experts."""
    oss, granite = (os.path.join(tmp, name) for name in ("oss", "granitemoe-alone"))
    make_folder(os.path.join(tmp, "golden", "toy-mxfp4.gguf"), oss)
    make_folder(os.path.join(tmp, "golden", "toy-granitemoe.gguf"), granite)
    head, config, experts = "model.safetensors", "config.json", "model.layers.1.mlp.experts."
    both = "model.layers.1.block_sparse_moe.input_linear.weight"
    down, scales = experts + "down_proj_blocks", experts + "down_proj_scales"
    for what, pattern, file, change in [
            ("no scales", scales + " is missing", head, lambda h: h.update(other=h.pop(scales))),
            ("no blocks", "down_proj_scales is not one that drey knows", head, lambda h: h.update(other=h.pop(down))),
            ("blocks of 8 bytes", "do not have the shapes of MXFP4", head,
             lambda h: h[down].update(shape=[8, 64, 6, 8])),
            ("scales of other blocks", "do not have the shapes of MXFP4", head,
             lambda h: h[scales].update(shape=[8, 3, 64])),
            ("blocks of signed bytes", "is I8, where MXFP4 has U8", head, lambda h: h[down].update(dtype="I8")),
            ("biases of one row", "has 1 dimensions", head,
             lambda h: h[experts + "down_proj_bias"].update(shape=[8 * 64])),
            ("other experts", "has 8 experts, and config.json 4", config, lambda c: c.update(num_local_experts=4)),
            ("another quantisation", "quantised already (quantization_config of config.json: awq)", config,
             lambda c: c["quantization_config"].update(quant_method="awq")),
            ("a quantisation without a name", "no quant_method", config, lambda c: c.update(quantization_config={})),
            ("another limit", "swiglu_limit is 6", config, lambda c: c.update(swiglu_limit=6)),
            ("windows on other layers", "layer 0 of the model", config,
             lambda c: c.update(layer_types=["full_attention"])),
            ("no rotation", "has no rope_scaling", config, lambda c: c.pop("rope_scaling") and None),
            ("a rounded rotation", "truncate of rope_scaling is true", config,
             lambda c: c.update(rope_scaling={"rope_type": "yarn", "factor": 8})),
    ]:
        changed(oss, what, pattern, file, change)
    changed(granite, "an odd row", "which are not gate and up", head, lambda h: h[both].update(shape=[8, 1, 2**14]))
    changed(granite, "other experts", "has 8 experts, and", config, lambda c: c.update(num_local_experts=9))
    header, data = header_of(oss)
    at = header[scales]["data_offsets"][1] - 1
    set_header(oss, header, data[:at] + b"\xff" + data[at + 1:])
    refused("a scale that is none", oss, "has a scale that is none")
    set_header(oss, header, data[:at])
    refused("a file that was cut off", oss, "ends after the file")


def places(good):
    out = os.path.join(tmp, "kept.gguf")
    with open(out, "w") as file:
        file.write("mine")
    if "is there already" not in convert(good, out, code=2):
        wrong("a file that is there is written over")
    convert(good, out, "--force", "-q")
    if "no config.json" not in convert(tmp, os.path.join(tmp, "x.gguf"), code=1):
        wrong("a folder of something else")
    if "is no folder" not in convert(out, os.path.join(tmp, "x.gguf"), code=2):
        wrong("a file instead of a folder")
    if "name a model's folder" not in convert(good, code=2):
        wrong("no output")
    if "take f16" not in convert(good, os.path.join(tmp, "x.gguf"), "--type", "q4_k", code=2):
        wrong("a type that is none of them")


def tokens_of(path, text):
    return subprocess.run([drey, "tokenize", "-m", path, "--bos", "--special"], input=text, capture_output=True,
                          check=True).stdout


def same_tokens(source, out):
    for text in ("The sky is blue.", " the  sky\n\tof\u00e9\U0001f43f", "<s> and</s>", "",
                 "the others there and then, another there", "aaaaaaaaaa thethethe"):
        if tokens_of(source, text.encode()) != tokens_of(out, text.encode()):
            wrong("other tokens of", repr(text))


def order_of_pieces(path):
    """Returns the tokens of several characters by their scores."""
    keys = {name.decode(): value for name, kind, value in Gguf(path).keys}
    tokens, types, scores = (keys[f"tokenizer.ggml.{name}"][1] for name in ("tokens", "token_type", "scores"))
    return [token for score, token in sorted((-score, token) for token, kind, score in zip(tokens, types, scores)
                                             if kind == 1 and len(token.decode()) > 1)]


def merged_pieces(source):
    """SentencePiece's tokens that are only in tokenizer.json."""
    good, out = (os.path.join(tmp, name) for name in ("merged", "merged.gguf"))
    make_folder(source, good, merged=True)
    convert(good, out, "-q")
    same_tokens(source, out)
    if order_of_pieces(source) != order_of_pieces(out):
        wrong("pieces are joined in another order")
    spaces = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
    folder = os.path.join(tmp, "metaspace")
    shutil.copytree(good, folder)
    path = os.path.join(folder, "tokenizer.json")
    with open(path) as file:
        tokenizer = json.load(file)
    tokenizer |= {"normalizer": None, "pre_tokenizer": spaces}
    tokenizer["model"]["merges"] = [merge.split(" ") for merge in tokenizer["model"]["merges"]]
    with open(path, "w") as file:
        json.dump(tokenizer, file)
    convert(folder, out, "--force", "-q")
    same_tokens(source, out)
    other = "in another way than SentencePiece"
    for what, pattern, change in [
            ("pieces that are cut before", other, lambda t: t.update(
                pre_tokenizer={"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious"})),
            ("blanks that cut", other, lambda t: t.update(normalizer=None, pre_tokenizer=spaces | {"split": True})),
            ("blanks twice", other, lambda t: t.update(pre_tokenizer=spaces)),
            ("blanks that stay", other, lambda t: t.update(normalizer=None)),
            ("texts in NFKC", other, lambda t: t.update(normalizer={"type": "NFKC"})),
            ("merges without order", "no order of pieces", lambda t: t["model"]["merges"].append("t h")),
            ("a merge into nothing", "no order of pieces", lambda t: t["model"]["merges"].append("t <s>")),
            ("a merge of one", "is no pair of texts", lambda t: t["model"]["merges"].append("the")),
            ("a token without a number", "has no number", lambda t: t["model"]["vocab"].update(x="y")),
            ("no merges at all", "or no merges", lambda t: t["model"].update(merges=[])),
    ]:
        changed(good, what, pattern, "tokenizer.json", change)


def sentencepiece():
    """SentencePiece's tokens; Q8_0; and files that were cut off."""
    source, good, out = (os.path.join(tmp, name) for name in ("words.gguf", "pieces", "pieces.gguf"))
    subprocess.run([make_toy, "--sentencepiece", source], check=True)
    merged_pieces(source)
    make_folder(source, good)
    convert(good, out, "-q")
    same_tokens(source, out)
    convert(good, out, "--type", "q8_0", "--force", "-q")
    if not text_of(out):
        wrong("no text in Q8_0")
    whole = os.path.join(good, "model.safetensors")
    os.truncate(whole, os.path.getsize(whole) - 1)
    refused("a file that was cut off", good, "ends after the file")
    os.truncate(whole, 5)
    refused("a file of five bytes", good, "is cut off")
    os.remove(whole)
    refused("no tensors", good, "has neither model.safetensors nor")


toys()
usual = os.path.join(tmp, "usual")
make_folder(os.path.join(tmp, "golden", "toy-biases.gguf"), usual)
pre_tokenizers(usual)
several_ends(usual)
faults(usual)
fused_faults()
places(usual)
sentencepiece()
pairs()
unscaled_head()
encoder_faults()
command.done()
