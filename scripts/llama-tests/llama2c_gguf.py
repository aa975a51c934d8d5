"""A model of karpathy's llama2 programs (their .bin files) as GGUF, in one file or several parts:
what llama.cpp's tests load is such a model."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import gguf_file  # noqa: E402

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
F32 = 0
CONTEXT = 2048  # what llama.cpp's own file of this model says


def tokens(path):
    """[(text, score, kind)] of a tokenizer's .bin, with blanks as SentencePiece writes them."""
    data, at, out = open(path, "rb").read(), 4, []
    while at < len(data):
        score, n = struct.unpack_from("<fi", data, at)
        piece, at = data[at + 8:at + 8 + n], at + 8 + n
        is_byte = len(piece) == 6 and piece.startswith(b"<0x")
        kind = BYTE if is_byte else NORMAL
        out.append((piece.replace(b" ", "\u2581".encode()), score, kind))
    for i, (piece, kind) in enumerate([(b"<unk>", UNKNOWN), (b"<s>", CONTROL), (b"</s>", CONTROL)]):
        out[i] = (piece, 0.0, kind)
    return out


def weights(data, dim, hidden, n_layers, n_heads, n_kv_heads, n_vocab):
    """{name: (dims, bytes)} in the order of a .bin file, whose head is the embedding."""
    kv = dim // n_heads * n_kv_heads
    parts = [("token_embd.weight", [dim, n_vocab], 1)]
    for name, dims in (("attn_norm", [dim]), ("attn_q", [dim, dim]), ("attn_k", [dim, kv]), ("attn_v", [dim, kv]),
                       ("attn_output", [dim, dim]), ("ffn_norm", [dim]), ("ffn_gate", [dim, hidden]),
                       ("ffn_down", [hidden, dim]), ("ffn_up", [dim, hidden])):
        parts.append((f"blk.%d.{name}.weight", dims, n_layers))
    parts.append(("output_norm.weight", [dim], 1))
    at, out = 28, {}
    for name, dims, n in parts:
        size = 4 * dims[0] * (dims[1] if len(dims) > 1 else 1)
        for i in range(n):
            out[name % i if "%" in name else name] = (dims, data[at:at + size])
            at += size
    return out


def keys(shape, vocabulary, name, fill):
    dim, hidden, n_layers, n_heads, n_kv_heads = shape
    t = [(b"general.architecture", 8, b"llama"), (b"general.name", 8, name.encode()),
         (b"llama.context_length", 4, CONTEXT), (b"llama.embedding_length", 4, dim),
         (b"llama.feed_forward_length", 4, hidden), (b"llama.block_count", 4, n_layers),
         (b"llama.attention.head_count", 4, n_heads), (b"llama.attention.head_count_kv", 4, n_kv_heads),
         (b"llama.rope.dimension_count", 4, dim // n_heads),
         (b"llama.attention.layer_norm_rms_epsilon", 6, 1e-5), (b"tokenizer.ggml.model", 8, b"llama"),
         (b"tokenizer.ggml.tokens", 9, (8, [piece for piece, _, _ in vocabulary])),
         (b"tokenizer.ggml.scores", 9, (6, [score for _, score, _ in vocabulary])),
         (b"tokenizer.ggml.token_type", 9, (5, [kind for _, _, kind in vocabulary])),
         (b"tokenizer.ggml.bos_token_id", 4, 1), (b"tokenizer.ggml.eos_token_id", 4, 2),
         (b"tokenizer.ggml.unknown_token_id", 4, 0)]
    for part, token in zip((b"prefix", b"suffix", b"middle"), fill):
        t.append((b"tokenizer.ggml." + part + b"_token_id", 4, token))
    return t


def write(path, keys, tensors):
    gguf_file.write(path, keys, [(name.encode(), dims, F32, len(data)) for name, (dims, data) in tensors],
                    [data for _, (_, data) in tensors])


def convert(model, tokenizer, path, n_parts=1, fill=()):
    """Writes path; of several parts path is "...-%05d-of-%05d.gguf". Gives the first one's name.
    fill: tokens that stand for prefix, suffix and middle."""
    data = open(model, "rb").read()
    dim, hidden, n_layers, n_heads, n_kv_heads, n_vocab, _ = struct.unpack_from("<7i", data)
    tensors = list(weights(data, dim, hidden, n_layers, n_heads, n_kv_heads, abs(n_vocab)).items())
    head = keys((dim, hidden, n_layers, n_heads, n_kv_heads), tokens(tokenizer), os.path.basename(model)[:-4], fill)
    if n_parts == 1:
        write(path, head, tensors)
        return path
    for i in range(n_parts):
        split = [(b"split.no", 2, i), (b"split.count", 2, n_parts), (b"split.tensors.count", 5, len(tensors))]
        part = tensors[len(tensors) * i // n_parts:len(tensors) * (i + 1) // n_parts]
        write(path % (i + 1, n_parts), (head if i == 0 else []) + split, part)
    return path % (1, n_parts)
