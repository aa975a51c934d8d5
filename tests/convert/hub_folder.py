"""A folder as model hubs hold them, made of a GGUF file: config.json, safetensors, tokenizer. It
undoes what drey convert does, by the names of Hugging Face transformers and without drey's code.

  hub_folder.py MODEL.gguf FOLDER [PARTS]

Q8_0 becomes F32. Other quantised types need the package gguf of PyPI; their numbers become
F16."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
import encoder_folder  # noqa: E402
from gguf_file import Gguf  # noqa: E402

FAMILIES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
            "granite": "GraniteForCausalLM", "gemma2": "Gemma2ForCausalLM", "gemma3": "Gemma3ForCausalLM",
            "phi3": "Phi3ForCausalLM", "gpt2": "GPT2LMHeadModel", "qwen2moe": "Qwen2MoeForCausalLM",
            "qwen3moe": "Qwen3MoeForCausalLM", "olmoe": "OlmoeForCausalLM", "granitemoe": "GraniteMoeForCausalLM",
            "gpt-oss": "GptOssForCausalLM", "t5": "T5ForConditionalGeneration", "bart": "BartForConditionalGeneration"}
KINDS = {"MistralForCausalLM": "mistral", "MixtralForCausalLM": "mixtral", "Gemma3ForCausalLM": "gemma3_text",
         "Qwen2MoeForCausalLM": "qwen2_moe", "Qwen3MoeForCausalLM": "qwen3_moe",
         "GraniteMoeSharedForCausalLM": "granitemoeshared", "GptOssForCausalLM": "gpt_oss"}
TYPES = {0: ("F32", 4), 1: ("F16", 2), 30: ("BF16", 2)}
ACTIVATIONS = {"gemma2": "gelu_pytorch_tanh", "gemma3": "gelu_pytorch_tanh", "gpt2": "gelu_new"}
LAYER = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "ffn_norm": "post_attention_layernorm",
         "ffn_gate_inp": "mlp.gate", "ffn_gate_exps": "mlp.experts.%d.gate_proj",
         "ffn_up_exps": "mlp.experts.%d.up_proj", "ffn_down_exps": "mlp.experts.%d.down_proj",
         "ffn_gate_inp_shexp": "mlp.shared_expert_gate", "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
         "ffn_up_shexp": "mlp.shared_expert.up_proj", "ffn_down_shexp": "mlp.shared_expert.down_proj"}
GEMMA = {"ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm",
         "post_ffw_norm": "post_feedforward_layernorm"}
MIXTRAL = {"ffn_gate_inp": "block_sparse_moe.gate", "ffn_gate_exps": "block_sparse_moe.experts.%d.w1",
           "ffn_up_exps": "block_sparse_moe.experts.%d.w3", "ffn_down_exps": "block_sparse_moe.experts.%d.w2"}
GRANITEMOE = {"ffn_gate_inp": "block_sparse_moe.router.layer", "ffn_down_shexp": "shared_mlp.output_linear"}
GPT_OSS = {"post_attention_norm": "post_attention_layernorm", "attn_sinks": "self_attn.sinks",
           "ffn_gate_inp": "mlp.router"}
OTHERS = {"gemma2": GEMMA, "gemma3": GEMMA, "llama": MIXTRAL, "granitemoe": GRANITEMOE, "gpt-oss": GPT_OSS}
# Of gate, up and down: what holds gate and up, and down.
FUSED = {"granitemoe": {"_exps.weight": ("block_sparse_moe.input_linear.weight",
                                         "block_sparse_moe.output_linear.weight"),
                        "_shexp.weight": ("shared_mlp.input_linear.weight", "shared_mlp.output_linear.weight")},
         "gpt-oss": {"_exps.weight": ("mlp.experts.gate_up_proj", "mlp.experts.down_proj"),
                     "_exps.bias": ("mlp.experts.gate_up_proj_bias", "mlp.experts.down_proj_bias")}}
MXFP4 = 39
GPT2 = {"attn_norm": "ln_1", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj", "ffn_norm": "ln_2",
        "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}
ENDS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
GPT2_ENDS = {"token_embd": "wte", "position_embd": "wpe", "output_norm": "ln_f", "output": "lm_head"}
SKIPPED = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORDS = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|"
CAPITALS, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SPLITS = {"qwen2": WORDS + r"\p{N}" + TAIL, "llama-bpe": WORDS + r"\p{N}{1,3}" + TAIL,
          "gpt-4o": "|".join(rf"[^\r\n\p{{L}}\p{{N}}]?{CAPITALS}{first}{SMALL}{last}{CONTRACTION}?"
                             for first, last in ("*+", "+*")) +
                    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"}


class Folder:
    def __init__(self, gguf):
        self.gguf = gguf
        self.keys = {name.decode(): value for name, kind, value in gguf.keys}
        self.arch = self.keys["general.architecture"].decode()
        self.generation = {}
        self.n_heads = self.of("attention.head_count")
        self.n_heads_kv = self.of("attention.head_count_kv", self.n_heads)

    def of(self, suffix, fallback=None):
        value = self.keys.get(f"{self.arch}.{suffix}", fallback)
        return value.decode() if isinstance(value, bytes) else value

    def factors(self, name):
        for tensor, dims, kind, offset in self.gguf.tensors:
            if tensor == name.encode():
                return list(struct.unpack(f"<{dims[0]}f", self.gguf.bytes_at(self.gguf.base + offset, 4 * dims[0])))
        return None

    # ---- config.json ----

    def scaling(self):
        kind, long = self.of("rope.scaling.type"), self.factors("rope_factors_long.weight")
        context = self.of("rope.scaling.original_context_length")
        if long:
            return {"type": "longrope", "long_factor": long, "short_factor": self.factors("rope_factors_short.weight"),
                    "attention_factor": self.of("rope.scaling.attn_factor", 1)}
        if kind == "linear":
            return {"rope_type": "linear", "factor": self.of("rope.scaling.factor")}
        if kind == "yarn":
            out = {"rope_type": "yarn", "factor": self.of("rope.scaling.factor")}
            if self.arch == "gpt-oss":
                out["truncate"] = False
            return out | ({"original_max_position_embeddings": context} if context else {})
        return {"rope_type": "default"} if self.arch == "gpt-oss" else None

    def config(self):
        arch, of = self.arch, self.of
        encodes = arch in ("t5", "bart")
        family = FAMILIES[arch]
        if arch == "llama" and of("attention.sliding_window"):
            family = "MistralForCausalLM"
        if arch == "llama" and of("expert_count"):
            family = "MixtralForCausalLM"
        if arch == "granitemoe" and of("expert_shared_feed_forward_length"):
            family = "GraniteMoeSharedForCausalLM"
        c = {"architectures": [family], "model_type": KINDS.get(family, arch),
             "hidden_act": ACTIVATIONS.get(arch, "silu"),
             "vocab_size": self.tensor_rows("token_embd.weight"),
             "tie_word_embeddings": not any(t[0] == b"output.weight" for t in self.gguf.tensors)}
        if encodes:
            del c["hidden_act"]
            more, self.generation = encoder_folder.config(arch, of, self.keys, self.gguf.tensors)
            return c | more
        names = {"block_count": "num_hidden_layers", "context_length": "max_position_embeddings",
                 "embedding_length": "hidden_size", "feed_forward_length": "intermediate_size",
                 "attention.head_count": "num_attention_heads", "attention.head_count_kv": "num_key_value_heads",
                 "attention.key_length": "head_dim", "attention.layer_norm_rms_epsilon": "rms_norm_eps",
                 "rope.freq_base": "rope_theta", "rope.freq_base_swa": "rope_local_base_freq",
                 "attention.sliding_window": "sliding_window", "expert_count": "num_experts",
                 "expert_used_count": "num_experts_per_tok", "expert_feed_forward_length": "moe_intermediate_size",
                 "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
                 "attn_logit_softcapping": "attn_logit_softcapping",
                 "final_logit_softcapping": "final_logit_softcapping", "attention.scale": "attention_multiplier",
                 "embedding_scale": "embedding_multiplier", "residual_scale": "residual_multiplier",
                 "logit_scale": "logits_scaling", "attention.sliding_window_pattern": "sliding_window_pattern"}
        if arch == "gpt2":
            names = {"block_count": "n_layer", "context_length": "n_ctx", "embedding_length": "n_embd",
                     "attention.head_count": "n_head", "attention.layer_norm_epsilon": "layer_norm_epsilon",
                     "feed_forward_length": "n_inner"}
            c["activation_function"] = c.pop("hidden_act")
        for key, name in names.items():
            if of(key) is not None:
                c[name] = of(key)
        if arch.startswith("gemma") or arch == "gpt-oss":
            c.setdefault("head_dim", of("embedding_length") // self.n_heads)
        if arch == "phi3":
            c["original_max_position_embeddings"] = of("rope.scaling.original_context_length",
                                                       of("context_length"))
            n_rot = of("rope.dimension_count")
            if n_rot:
                c["partial_rotary_factor"] = n_rot * self.n_heads / of("embedding_length")
        if self.scaling():
            c["rope_scaling"] = self.scaling()
        if arch in FUSED:
            c["num_local_experts"] = c.pop("num_experts")
            c["intermediate_size"] = c.pop("moe_intermediate_size", c["intermediate_size"])
        if arch == "granitemoe" and "shared_expert_intermediate_size" in c:
            c["shared_intermediate_size"] = c.pop("shared_expert_intermediate_size")
        if arch == "gpt-oss":
            c |= {"swiglu_limit": 7.0, "layer_types": ["full_attention" if i % 2 else "sliding_attention"
                                                       for i in range(of("block_count"))]}
            if any(kind == MXFP4 for name, dims, kind, offset in self.gguf.tensors):
                c["quantization_config"] = {"quant_method": "mxfp4"}
        elif arch in ("qwen2moe", "qwen3moe", "olmoe"):
            c["norm_topk_prob"] = arch == "qwen3moe"
        return c

    # ---- Tensors ----

    def tensor_rows(self, name):
        return next(dims[1] for tensor, dims, kind, offset in self.gguf.tensors if tensor == name.encode())

    def read(self, dims, kind, offset):
        n = 1
        for dim in dims:
            n *= dim
        if kind == MXFP4:
            return "U8", 17, self.gguf.bytes_at(self.gguf.base + offset, n // 32 * 17)
        if kind in TYPES:
            name, size = TYPES[kind]
            return name, size, self.gguf.bytes_at(self.gguf.base + offset, n * size)
        if kind == 8:
            return "F32", 4, q8_0_numbers(self.gguf.bytes_at(self.gguf.base + offset, n // 32 * 34))
        import gguf
        import numpy
        elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)]
        raw = numpy.frombuffer(self.gguf.bytes_at(self.gguf.base + offset, n // elements * size), numpy.uint8)
        numbers = gguf.quants.dequantize(raw.reshape(-1, size), gguf.GGMLQuantizationType(kind))
        return "F16", 2, numbers.astype(numpy.float16).tobytes()

    def fused(self):
        """(name, type, shape, bytes) of tensors that hold all experts, or gate and up."""
        places = {name.decode(): place for name, *place in self.gguf.tensors}
        alternate = self.arch == "gpt-oss"
        for layer in range(self.of("block_count")):
            for ending, names in FUSED.get(self.arch, {}).items():
                if f"blk.{layer}.ffn_down{ending}" not in places:
                    continue
                gate, up, down = ([places[full][0], *self.read(*places[full])] for full in
                                  (f"blk.{layer}.ffn_{role}{ending}" for role in ("gate", "up", "down")))
                row = 0 if ending.endswith("bias") else 1  # which of the dimensions are rows
                wide = [2 * n if i == row else n for i, n in enumerate(gate[0])]
                both = joined(gate[3], up[3], gate[0][-1] if "exps" in ending else 1, gate[0][row], alternate)
                for name, dims, data in (names[0], wide, both), (names[1], down[0], down[3]):
                    yield from self.as_published(f"model.layers.{layer}.{name}", dims, *gate[1:3], data)

    def as_published(self, name, dims, kind, size, data):
        """gpt-oss has blocks without their scales, or its matrices turned."""
        if kind == "U8":
            shape = [*dims[:0:-1], dims[0] // 32]
            yield f"{name}_blocks", kind, [*shape, 16], unpacked(data)
            yield f"{name}_scales", kind, shape, data[::17]
        elif self.arch == "gpt-oss" and len(dims) == 3:
            step = len(data) // dims[2]
            yield name, kind, [dims[2], *dims[:2]], b"".join(turned(data[i:i + step], size, dims[:2])
                                                             for i in range(0, len(data), step))
        else:
            yield name, kind, dims[::-1], data

    def tensors(self):
        """(name, type, shape, bytes) of each."""
        gpt2 = self.arch == "gpt2"
        layer = (GPT2 if gpt2 else LAYER) | OTHERS.get(self.arch, {})
        yield from self.fused()
        for full, dims, kind, offset in self.gguf.tensors:
            full = full.decode()
            if full in SKIPPED or any(full.endswith(ending) for ending in FUSED.get(self.arch, {})):
                continue
            role, ending = full.rsplit(".", 1)
            kind_name, size, data = self.read(dims, kind, offset)
            if self.arch in ("t5", "bart"):
                name, shape, data = encoder_folder.tensor(self.arch, full, self.gguf.tensors, dims[::-1], data)
                yield name, kind_name, shape, data
                continue
            if full.startswith("blk."):
                number, role = role.split(".", 2)[1:]
                if self.arch == "phi3" and role == "ffn_up":
                    role_name = "mlp.gate_up_proj"
                else:
                    role_name = layer[role]
                name = f"{'h' if gpt2 else 'model.layers'}.{number}.{role_name}.{ending}"
                name = name.removesuffix(".weight") if role == "attn_sinks" else name
            else:
                name = f"{(GPT2_ENDS if gpt2 else ENDS)[role]}.{ending}"
            if self.arch in ("llama", "granite", "granitemoe") and role in ("attn_q", "attn_k"):
                data = unpaired(data, self.n_heads if role == "attn_q" else self.n_heads_kv,
                                dims[-1] if len(dims) > 1 else dims[0])
            if self.arch.startswith("gemma") and role.endswith("norm"):
                data = struct.pack(f"<{len(data) // 4}f", *(x - 1 for x in struct.unpack(f"<{len(data) // 4}f", data)))
            shape = dims[::-1]
            if gpt2 and len(dims) == 2 and role in GPT2 and ending == "weight":
                data, shape = turned(data, size, dims), dims
            if "%d" in name:
                step = len(data) // shape[0]
                for i in range(shape[0]):
                    yield name % i, kind_name, shape[1:], data[i * step:(i + 1) * step]
            else:
                yield name, kind_name, shape, data

    # ---- The tokenizer ----

    def tokenizer(self, merged):
        keys = self.keys
        tokens = [t.decode() for t in keys["tokenizer.ggml.tokens"][1]]
        types = keys["tokenizer.ggml.token_type"][1]
        added = [{"id": i, "content": t, "special": kind == 3, "normalized": False, "single_word": False,
                  "lstrip": False, "rstrip": False}
                 for i, (t, kind) in enumerate(zip(tokens, types)) if kind in (3, 4)]
        bos, eos = keys.get("tokenizer.ggml.bos_token_id"), keys.get("tokenizer.ggml.eos_token_id")
        config = {"tokenizer_class": "PreTrainedTokenizerFast",
                  "added_tokens_decoder": {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in added}}
        for name, token in (("bos", bos), ("eos", eos)):
            if token is not None:
                config[f"{name}_token"] = tokens[token]
        if "tokenizer.ggml.add_bos_token" in keys:
            config["add_bos_token"] = keys["tokenizer.ggml.add_bos_token"]
        if "tokenizer.chat_template" in keys:
            config["chat_template"] = keys["tokenizer.chat_template"].decode()
        scores = keys.get("tokenizer.ggml.scores", [0, []])[1]
        if keys["tokenizer.ggml.model"] in (b"llama", b"t5") and not merged:
            unigram = keys["tokenizer.ggml.model"] == b"t5"
            end = unigram_settings(bytes(keys["tokenizer.ggml.precompiled_charsmap"][1])) if unigram else BPE_SETTINGS
            return None, config, pieces(tokens, scores, types) + end
        if keys["tokenizer.ggml.model"] == b"llama":
            return merged_pieces(tokens, scores, types, added), config, None
        last = max(i for i, kind in enumerate(types) if kind == 1)
        vocab = {t: i for i, (t, kind) in enumerate(zip(tokens[:last + 1], types)) if kind != 5}
        merges = [m.decode().split(" ") for m in keys["tokenizer.ggml.merges"][1]]
        return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
                "pre_tokenizer": pre_tokenizer(keys["tokenizer.ggml.pre"].decode()), "post_processor": None,
                "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
                "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                          "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False,
                          "ignore_merges": keys["tokenizer.ggml.pre"] == b"llama-bpe",
                          "vocab": vocab, "merges": merges}}, config, None


def pre_tokenizer(name):
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": name in ("gpt-2", "smollm")}
    if name == "gpt-2":
        return level
    first = {"type": "Digits", "individual_digits": True} if name == "smollm" else {
        "type": "Split", "pattern": {"Regex": SPLITS[name]},
        "behavior": "Removed" if name == "gpt-4o" else "Isolated", "invert": name == "gpt-4o"}
    return {"type": "Sequence", "pretokenizers": [first, level]}


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


BPE_SETTINGS = b"\x12\x05\x18\x02\x98\x02\x01"  # BPE, with bytes for what has no piece


def unigram_settings(charsmap):
    """Unigram, a map of characters, a blank in front, runs of blanks as one."""
    spec = b"\x12" + varint(len(charsmap)) + charsmap + b"\x18\x01\x20\x01"
    return b"\x12\x02\x18\x01\x1a" + varint(len(spec)) + spec


def pieces(tokens, scores, types):
    """Pieces of a SentencePiece vocabulary, without what is added to it at the end."""
    n = len(tokens)
    while n and types[n - 1] in (3, 4, 5):
        n -= 1
    out = b""
    for token, score, kind in zip(tokens[:n], scores, types):
        piece = b"\x0a" + varint(len(token.encode())) + token.encode() + b"\x15" + struct.pack("<f", score)
        piece += b"\x18" + varint(kind) if kind != 1 else b""
        out += b"\x0a" + varint(len(piece)) + piece
    return out


def merged_pieces(tokens, scores, types, added):
    """The same as tokenizer.json: of each piece, by its score, all pairs that it is made of."""
    words = {token: i for i, (token, kind) in enumerate(zip(tokens, types)) if kind == 1}
    merges = []
    for word in sorted(words, key=lambda word: -scores[words[word]]):
        cuts = [(word[:i], word[i:]) for i in range(1, len(word))]
        merges += sorted((cut for cut in cuts if cut[0] in words and cut[1] in words),
                         key=lambda cut: (words[cut[0]], words[cut[1]]))
    steps = [{"type": "Prepend", "prepend": "\u2581"},
             {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": i, "content": token, "special": True, "normalized": False, "single_word": False,
                              "lstrip": False, "rstrip": False}
                             for i, token in enumerate(tokens[:3])] + [t for t in added if t["id"] > 2],
            "normalizer": {"type": "Sequence", "normalizers": steps}, "pre_tokenizer": None, "post_processor": None,
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
                {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
            "model": {"type": "BPE", "dropout": None, "unk_token": tokens[0], "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                      "vocab": {token: i for i, (token, kind) in enumerate(zip(tokens, types)) if kind != 5},
                      "merges": [" ".join(cut) for cut in merges]}}


def q8_0_numbers(data):
    out = bytearray()
    for i in range(0, len(data), 34):
        scale, *numbers = struct.unpack_from("<e32b", data, i)
        out += struct.pack("<32f", *(scale * x for x in numbers))
    return bytes(out)


def unpaired(data, n_heads, rows):
    """Rows of each head: pairs become halves."""
    size, half = len(data) // rows, rows // n_heads // 2
    row = [data[i * size:(i + 1) * size] for i in range(rows)]
    return b"".join(row[h * 2 * half + 2 * i + j] for h in range(n_heads) for j in range(2) for i in range(half))


def joined(a, b, n_groups, n_rows, alternate):
    """Joins, in each group, the rows of a and those of b, one after the other or in turn."""
    size, out = len(a) // (n_groups * n_rows), []
    for i in range(0, len(a), size * n_rows):
        rows = [[data[i + r * size:i + (r + 1) * size] for r in range(n_rows)] for data in (a, b)]
        out += [row for pair in zip(*rows) for row in pair] if alternate else rows[0] + rows[1]
    return b"".join(out)


def unpacked(data):
    """Blocks of MXFP4 without their scales: neighbours in a byte, where GGUF has i and i + 16."""
    out = bytearray()
    for i in range(0, len(data), 17):
        codes = [byte & 15 for byte in data[i + 1:i + 17]] + [byte >> 4 for byte in data[i + 1:i + 17]]
        out += bytes(codes[k] | codes[k + 1] << 4 for k in range(0, 32, 2))
    return bytes(out)


def turned(data, size, dims):
    columns, rows = dims
    return b"".join(data[(r * columns + c) * size:(r * columns + c + 1) * size]
                    for c in range(columns) for r in range(rows))


def safetensors(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, kind, shape, data in tensors:
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors:
            file.write(tensor[3])


def write(folder, name, value):
    with open(os.path.join(folder, name), "w") as file:
        json.dump(value, file)


def write_pair(folder, tokenizer):
    """vocab.json and merges.txt instead of tokenizer.json."""
    write(folder, "vocab.json", tokenizer["model"]["vocab"] | {t["content"]: t["id"] for t in tokenizer["added_tokens"]})
    with open(os.path.join(folder, "merges.txt"), "w", encoding="utf-8") as file:
        file.write("#version: 0.2\n" + "".join(" ".join(pair) + "\n" for pair in tokenizer["model"]["merges"]))


def make_folder(path, folder, n_parts=1, pair=False, merged=False):
    """pair: vocab.json with merges.txt; merged: SentencePiece in tokenizer.json."""
    source = Folder(Gguf(path))
    os.makedirs(folder, exist_ok=True)
    write(folder, "config.json", source.config())
    tokenizer, config, model = source.tokenizer(merged)
    write(folder, "tokenizer_config.json", config)
    if source.generation:
        write(folder, "generation_config.json", source.generation)
    if tokenizer and pair:
        write_pair(folder, tokenizer)
    elif tokenizer:
        write(folder, "tokenizer.json", tokenizer)
    if model:
        with open(os.path.join(folder, "spiece.model" if source.arch == "t5" else "tokenizer.model"), "wb") as file:
            file.write(model)
    tensors = list(source.tensors())
    if n_parts == 1:
        safetensors(os.path.join(folder, "model.safetensors"), tensors)
        return
    places = {}
    for i in range(n_parts):
        name = f"model-{i + 1:05}-of-{n_parts:05}.safetensors"
        mine = tensors[i::n_parts]
        safetensors(os.path.join(folder, name), mine)
        places |= {tensor[0]: name for tensor in mine}
    write(folder, "model.safetensors.index.json", {"metadata": {}, "weight_map": places})


if __name__ == "__main__":
    make_folder(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1)
