#!/usr/bin/env python3
"""Makes a GGUF file of a BART model, as docs/reference/bart.md describes it.

    convert-bart.py MODEL_DIR OUT.gguf [--type f32|f16|q8_0]

MODEL_DIR is a folder as transformers saves it: config.json, model.safetensors (or its parts with
model.safetensors.index.json), and vocab.json with merges.txt or tokenizer.json. Only numpy is
needed. What drey does not compute (layers that norm before they multiply, positions that are not
learned, another activation) is refused.
"""
import argparse
import json
import math
import os
import shutil
import struct
import sys
import tempfile

import numpy as np

from gguf_file import header

U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5  # kinds of values
NORMAL, CONTROL, UNUSED = 1, 3, 5  # kinds of tokens
TYPES = {"f32": 0, "f16": 1, "q8_0": 8}
ALIGN = 32

# Names in files of transformers, after "model.encoder.layers.N." and here, after "enc.blk.N.".
LAYER = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.out_proj": "attn_o", "self_attn_layer_norm": "attn_norm",
         "fc1": "ffn_up", "fc2": "ffn_down", "final_layer_norm": "ffn_norm"}
CROSS = {"encoder_attn.q_proj": "cross_attn_q", "encoder_attn.k_proj": "cross_attn_k",
         "encoder_attn.v_proj": "cross_attn_v", "encoder_attn.out_proj": "cross_attn_o",
         "encoder_attn_layer_norm": "cross_attn_norm"}


def stop(message):
    sys.exit(f"convert-bart.py: {message}")


class Safetensors:
    """A JSON header and raw numbers; a model may be cut into several such files."""

    def __init__(self, folder):
        index = os.path.join(folder, "model.safetensors.index.json")
        names = ["model.safetensors"]
        if os.path.exists(index):
            names = sorted(set(read_json(index)["weight_map"].values()))
        self.at = {}
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.exists(path):
                stop(f"{path} is not there; the weights have to be in safetensors files")
            with open(path, "rb") as file:
                n_bytes = struct.unpack("<Q", file.read(8))[0]
                entries = json.loads(file.read(n_bytes))
            for tensor, entry in entries.items():
                if tensor != "__metadata__":
                    self.at[tensor.removeprefix("model.")] = (path, 8 + n_bytes, entry)

    def numbers(self, name):
        """As float32, in the file's shape."""
        if name not in self.at:
            stop(f"the weights lack {name}; is this a BART model?")
        path, base, entry = self.at[name]
        codes = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8"}
        if entry["dtype"] not in codes:
            stop(f"{name} has numbers of type {entry['dtype']}, which is not supported")
        first, end = entry["data_offsets"]
        with open(path, "rb") as file:
            file.seek(base + first)
            raw = np.frombuffer(file.read(end - first), codes[entry["dtype"]])
        if entry["dtype"] == "BF16":
            raw = (raw.astype("<u4") << 16).view("<f4")
        return raw.astype(np.float32).reshape(entry["shape"])


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def check(config):
    if config.get("model_type") != "bart":
        stop(f"config.json says model_type {config.get('model_type')}, not bart")
    if config.get("activation_function", "gelu") != "gelu":
        stop(f"the activation {config['activation_function']} is not supported: gelu is")
    for key in ("normalize_before", "add_final_layer_norm", "static_position_embeddings"):
        if config.get(key):
            stop(f"config.json has {key}, which is not supported")
    for what in ("attention_heads", "ffn_dim"):
        if config["encoder_" + what] != config["decoder_" + what]:
            stop(f"encoder and decoder have different {what}, which is not supported")


def tokens_of(folder, n_vocab, config):
    """Texts by id, their kinds, and merges as "left right"."""
    whole = os.path.join(folder, "tokenizer.json")
    added = {}
    plain = [os.path.join(folder, name) for name in ("vocab.json", "merges.txt")]
    if all(os.path.exists(path) for path in plain):
        vocab = read_json(plain[0])
        with open(plain[1], encoding="utf-8") as file:
            merges = [line.rstrip("\n") for line in file if not line.startswith("#version")]
        merges = [line for line in merges if line]
    elif os.path.exists(whole):
        tokenizer = read_json(whole)
        vocab = tokenizer["model"]["vocab"]
        merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
        added = {token["content"]: token["id"] for token in tokenizer.get("added_tokens", [])}
    else:
        stop(f"{folder} has neither vocab.json with merges.txt nor tokenizer.json")
    special = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"} | added.keys()
    ends = [config.get(which + "_token_id") for which in ("bos", "eos", "pad")]
    texts, kinds = [f"[PAD{i}]" for i in range(n_vocab)], [UNUSED] * n_vocab
    for text, i in {**vocab, **added}.items():
        if i >= n_vocab:
            stop(f"token {i} is after the {n_vocab} rows of the embedding")
        texts[i] = text
        kinds[i] = CONTROL if text in special or i in ends else NORMAL
    return texts, kinds, merges


def keys_of(config, generation, tokenizer):
    get = lambda name, other=None: generation.get(name, config.get(name, other))
    n_layers, n_decoder = config["encoder_layers"], config["decoder_layers"]
    out = [("general.architecture", STRING, "bart"),
           ("general.name", STRING, os.path.basename(config.get("_name_or_path") or "BART")),
           ("general.alignment", U32, ALIGN),
           ("bart.block_count", U32, n_layers),
           ("bart.decoder_block_count", U32, n_decoder),
           ("bart.context_length", U32, config["max_position_embeddings"]),
           ("bart.embedding_length", U32, config["d_model"]),
           ("bart.feed_forward_length", U32, config["encoder_ffn_dim"]),
           ("bart.attention.head_count", U32, config["encoder_attention_heads"]),
           ("bart.attention.layer_norm_epsilon", F32, 1e-5),
           ("bart.decoder_start_token_id", U32, get("decoder_start_token_id", 2))]
    if get("forced_bos_token_id") is not None:
        out.append(("bart.forced_bos_token_id", U32, get("forced_bos_token_id")))
    if config.get("scale_embedding"):
        out.append(("bart.embedding_scale", F32, math.sqrt(config["d_model"])))
    texts, kinds, merges = tokenizer
    out += [("tokenizer.ggml.model", STRING, "gpt2"),
            ("tokenizer.ggml.pre", STRING, "gpt-2"),
            ("tokenizer.ggml.tokens", ARRAY, (STRING, texts)),
            ("tokenizer.ggml.token_type", ARRAY, (I32, kinds)),
            ("tokenizer.ggml.merges", ARRAY, (STRING, merges)),
            ("tokenizer.ggml.bos_token_id", U32, config.get("bos_token_id", 0)),
            ("tokenizer.ggml.eos_token_id", U32, config.get("eos_token_id", 2)),
            ("tokenizer.ggml.padding_token_id", U32, config.get("pad_token_id", 1)),
            ("tokenizer.ggml.add_bos_token", BOOL, True),
            ("tokenizer.ggml.add_eos_token", BOOL, True)]
    code = lambda v: v.encode() if isinstance(v, str) else v
    return [(name.encode(), kind, (value[0], [code(v) for v in value[1]]) if kind == ARRAY else code(value))
            for name, kind, value in out]


def tensors_of(weights, config):
    """(name, float32 numbers) in the order of the file."""
    yield "token_embd.weight", weights.numbers("shared.weight")
    if not config.get("tie_word_embeddings", True):
        yield "output.weight", weights.numbers("lm_head.weight")
    if "final_logits_bias" in weights.at:
        bias = weights.numbers("final_logits_bias").reshape(-1)
        if bias.any():
            yield "output.bias", bias
    for part, layers in (("encoder", config["encoder_layers"]), ("decoder", config["decoder_layers"])):
        short = part[:3]
        # Positions begin at row 2: the first rows have been for padding.
        yield f"{short}.position_embd.weight", weights.numbers(f"{part}.embed_positions.weight")[2:]
        for end in ("weight", "bias"):
            yield f"{short}.token_embd_norm.{end}", weights.numbers(f"{part}.layernorm_embedding.{end}")
        for i in range(layers):
            for name, to in (LAYER | (CROSS if part == "decoder" else {})).items():
                for end in ("weight", "bias"):
                    yield f"{short}.blk.{i}.{to}.{end}", weights.numbers(f"{part}.layers.{i}.{name}.{end}")


def q8_0(numbers):
    """Blocks of 32: a half as scale, then bytes."""
    blocks = numbers.reshape(-1, 32)
    d = (np.abs(blocks).max(axis=1, keepdims=True) / 127).astype(np.float32)
    codes = np.rint(np.divide(blocks, d, out=np.zeros_like(blocks), where=d > 0)).astype(np.int8)
    return np.concatenate([d.astype("<f2").view(np.uint8), codes.view(np.uint8)], axis=1).tobytes()


def packed(name, numbers, kind):
    """Type and bytes: what is added, and positions, are floats."""
    if numbers.ndim == 1 or "position_embd" in name:
        kind = "f32"
    if kind == "q8_0" and numbers.shape[1] % 32:
        stop(f"{name} has rows of {numbers.shape[1]} numbers, which q8_0 does not divide; use f16")
    data = q8_0(numbers) if kind == "q8_0" else numbers.astype("<f4" if kind == "f32" else "<f2").tobytes()
    return TYPES[kind], data


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--type", choices=TYPES, default="f16", help="of matrices (f16)")
    args = parser.parse_args()
    config = read_json(os.path.join(args.folder, "config.json"))
    generation = os.path.join(args.folder, "generation_config.json")
    generation = read_json(generation) if os.path.exists(generation) else {}
    check(config)
    weights = Safetensors(args.folder)
    n_vocab = weights.at["shared.weight"][2]["shape"][0] if "shared.weight" in weights.at else 0
    keys = keys_of(config, generation, tokens_of(args.folder, n_vocab, config))
    folder = os.path.dirname(os.path.abspath(args.out))
    tensors = []
    with tempfile.TemporaryDirectory(dir=folder) as part:
        with open(os.path.join(part, "tensors"), "w+b") as data, \
             open(os.path.join(part, "model"), "wb") as out:
            for name, numbers in tensors_of(weights, config):
                kind, raw = packed(name, numbers, args.type)
                tensors.append((name.encode(), list(numbers.shape[::-1]), kind, data.tell()))
                data.write(raw + bytes(-len(raw) % ALIGN))
            data.seek(0)
            out.write(header(keys, tensors, ALIGN))
            shutil.copyfileobj(data, out)
        os.replace(os.path.join(part, "model"), args.out)


if __name__ == "__main__":
    main()
