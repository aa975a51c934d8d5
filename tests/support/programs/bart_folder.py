"""Writes a toy BART file as a folder of transformers' form, by the names that it uses itself.

    bart_folder.py TOY.gguf FOLDER
"""
import json
import os
import struct
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts"))
from gguf_file import Gguf  # noqa: E402

NAMES = [("cross_attn_norm", "encoder_attn_layer_norm"), ("cross_attn_o", "encoder_attn.out_proj"),
         ("cross_attn_", "encoder_attn."), ("attn_norm", "self_attn_layer_norm"),
         ("attn_o", "self_attn.out_proj"), ("attn_", "self_attn."), ("ffn_up", "fc1"), ("ffn_down", "fc2"),
         ("ffn_norm", "final_layer_norm")]
WHOLE = {"token_embd.weight": "model.shared.weight", "output.bias": "final_logits_bias"}


def name_of(name):
    if name in WHOLE:
        return WHOLE[name]
    part, rest = name.split(".", 1)
    part = {"enc": "encoder", "dec": "decoder"}[part]
    if rest.startswith("blk."):
        _, layer, what, end = rest.split(".")
        for ours, theirs in NAMES:
            if what.startswith(ours):
                what = theirs + (what[len(ours):] + "_proj" if theirs.endswith(".") else "")
                break
        return f"model.{part}.layers.{layer}.{what}.{end}"
    rest = rest.replace("position_embd", "embed_positions").replace("token_embd_norm", "layernorm_embedding")
    return f"model.{part}.{rest}"


def write(path, folder):
    file = Gguf(path)
    keys = {name.decode(): value for name, _, value in file.keys}
    os.makedirs(folder)
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, dims, kind, offset in file.tensors:
        code = {0: "<f4", 1: "<f2"}[kind]
        n = int(np.prod(dims))
        raw = np.frombuffer(file.bytes_at(file.base + offset, n * int(code[2])), code).reshape(dims[::-1])
        name = name_of(name.decode())
        if "embed_positions" in name:
            raw = np.concatenate([np.full((2, raw.shape[1]), 9, raw.dtype), raw])
        if name == "final_logits_bias":
            raw = raw.reshape(1, -1)
        header[name] = {"dtype": {"<f4": "F32", "<f2": "F16"}[code], "shape": list(raw.shape),
                        "data_offsets": [len(data), len(data) + raw.nbytes]}
        data += raw.tobytes()
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)
    n_layers, tokens = keys["bart.block_count"], keys["tokenizer.ggml.tokens"][1]
    config = {"model_type": "bart", "vocab_size": len(tokens), "encoder_layers": n_layers,
              "decoder_layers": keys.get("bart.decoder_block_count", n_layers),
              "max_position_embeddings": keys["bart.context_length"], "d_model": keys["bart.embedding_length"],
              "bos_token_id": keys["tokenizer.ggml.bos_token_id"], "eos_token_id": keys["tokenizer.ggml.eos_token_id"],
              "decoder_start_token_id": keys["bart.decoder_start_token_id"]}
    for part in ("encoder", "decoder"):
        config[part + "_ffn_dim"] = keys["bart.feed_forward_length"]
        config[part + "_attention_heads"] = keys["bart.attention.head_count"]
    texts = [text.decode() for text in tokens]
    files = {"config.json": config,
             "generation_config.json": {"forced_bos_token_id": keys.get("bart.forced_bos_token_id")},
             "vocab.json": {text: i for i, text in enumerate(texts)}}
    for name, value in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            json.dump(value, out)
    with open(os.path.join(folder, "merges.txt"), "w", encoding="utf-8") as out:
        out.write("#version: 0.2\n" + "".join(m.decode() + "\n" for m in keys["tokenizer.ggml.merges"][1]))


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2])
