#!/usr/bin/env python3
"""Writes a model of the SmolLM2 family, whose weights are zeros and mostly a hole in the file.
    family_model.py PATH WIDTH FF LAYERS [LAST_TOKEN]
Its 49,152 tokens are bytes and names; LAST_TOKEN is another last one."""
import struct
import sys

path, width, n_ff, n_layers = sys.argv[1], *map(int, sys.argv[2:5])
N_TOKENS, U32, F32, TEXT, ARRAY, I32, Q2_K = 49152, 4, 6, 8, 9, 5, 10


def text(s):
    data = s.encode()
    return struct.pack("<Q", len(data)) + data


def key(name, kind, data):
    return text(name) + struct.pack("<I", kind) + data


def number(name, n):
    return key(name, U32, struct.pack("<I", n))


def bytes_as_text():
    """GPT-2's letters for bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return [chr(b) if b in plain else chr(256 + others.index(b)) for b in range(256)]


letters = bytes_as_text()
tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *letters, letters[104] + letters[101]]
tokens += [f"t{i}" for i in range(N_TOKENS - len(tokens))]
if len(sys.argv) > 5:
    tokens[-1] = sys.argv[5]
keys = [
    key("general.architecture", TEXT, text("llama")), key("general.name", TEXT, text("Smollm2 Toy")),
    number("llama.block_count", n_layers), number("llama.context_length", 2048),
    number("llama.embedding_length", width), number("llama.feed_forward_length", n_ff),
    number("llama.attention.head_count", width // 64), number("general.file_type", 10),
    key("llama.attention.layer_norm_rms_epsilon", F32, struct.pack("<f", 1e-5)),
    key("tokenizer.ggml.model", TEXT, text("gpt2")), key("tokenizer.ggml.pre", TEXT, text("smollm")),
    key("tokenizer.ggml.tokens", ARRAY, struct.pack("<IQ", TEXT, N_TOKENS) + b"".join(map(text, tokens))),
    key("tokenizer.ggml.token_type", ARRAY, struct.pack("<IQ", I32, N_TOKENS) +
        struct.pack(f"<{N_TOKENS}i", 3, 3, 3, *[1] * (N_TOKENS - 3))),
    key("tokenizer.ggml.merges", ARRAY, struct.pack("<IQ", TEXT, 1) + text(f"{letters[104]} {letters[101]}")),
    number("tokenizer.ggml.eos_token_id", 2)]
tensors = [("token_embd.weight", [width, N_TOKENS]), ("output_norm.weight", [width])]
for i in range(n_layers):
    tensors += [(f"blk.{i}.{name}.weight", dims) for name, dims in (
        ("attn_norm", [width]), ("attn_q", [width, width]), ("attn_k", [width, width]), ("attn_v", [width, width]),
        ("attn_output", [width, width]), ("ffn_norm", [width]), ("ffn_gate", [width, n_ff]), ("ffn_up", [width, n_ff]),
        ("ffn_down", [n_ff, width]))]
at, infos = 0, b""
for name, dims in tensors:
    infos += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
    infos += struct.pack("<IQ", Q2_K if len(dims) == 2 else 0, at)
    at += (dims[0] * dims[1] // 256 * 84 if len(dims) == 2 else 4 * dims[0]) + 31 & ~31
head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys)) + b"".join(keys) + infos
head += bytes(-len(head) % 32)
with open(path, "wb") as f:
    f.write(head)
    f.truncate(len(head) + at)
