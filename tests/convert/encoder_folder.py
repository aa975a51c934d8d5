"""Contents that are special to folders of models with an encoder: config.json of T5 and BART, and
the names of their tensors. hub_folder.py writes the folders."""
import struct

T5_NAMES = {"attn_norm": "0.layer_norm", "attn_rel_b": "0.SelfAttention.relative_attention_bias",
            "cross_attn_norm": "1.layer_norm"}
T5_FEED = {"ffn_norm": "layer_norm", "ffn_gate": "DenseReluDense.wi_0", "ffn_down": "DenseReluDense.wo"}
T5_ENDS = {"token_embd": "shared", "output": "lm_head", "enc.output_norm": "encoder.final_layer_norm",
           "dec.output_norm": "decoder.final_layer_norm"}
BART_NAMES = {"attn_norm": "self_attn_layer_norm", "attn_o": "self_attn.out_proj", "ffn_up": "fc1", "ffn_down": "fc2",
              "ffn_norm": "final_layer_norm", "cross_attn_norm": "encoder_attn_layer_norm",
              "cross_attn_o": "encoder_attn.out_proj"}
BART_ENDS = {"token_embd": "model.shared", "output": "lm_head", "position_embd": "embed_positions",
             "token_embd_norm": "layernorm_embedding"}
PARTS = {"enc": "encoder", "dec": "decoder"}


def t5_config(of, tensors):
    gated = any(name == b"enc.blk.0.ffn_gate.weight" for name, *_ in tensors)
    config = {"d_model": of("embedding_length"), "d_ff": of("feed_forward_length"), "num_layers": of("block_count"),
              "num_heads": of("attention.head_count"), "n_positions": of("context_length"),
              "d_kv": of("attention.key_length", of("embedding_length") // of("attention.head_count")),
              "relative_attention_num_buckets": of("attention.relative_buckets_count"), "dropout_rate": 0,
              "layer_norm_epsilon": of("attention.layer_norm_rms_epsilon"),
              "feed_forward_proj": "gated-gelu" if gated else "relu"}
    if of("decoder_block_count"):
        config["num_decoder_layers"] = of("decoder_block_count")
    return config


def bart_config(of, keys):
    config = {"encoder_layers": of("block_count"), "decoder_layers": of("decoder_block_count", of("block_count")),
              "max_position_embeddings": of("context_length"), "d_model": of("embedding_length"),
              "activation_function": "gelu", "scale_embedding": of("embedding_scale") is not None,
              "bos_token_id": keys["tokenizer.ggml.bos_token_id"], "eos_token_id": keys["tokenizer.ggml.eos_token_id"]}
    for part in PARTS.values():
        config[part + "_ffn_dim"] = of("feed_forward_length")
        config[part + "_attention_heads"] = of("attention.head_count")
    return config


def config(arch, of, keys, tensors):
    """config.json, and generation_config.json."""
    more = t5_config(of, tensors) if arch == "t5" else bart_config(of, keys)
    more |= {"is_encoder_decoder": True, "decoder_start_token_id": of("decoder_start_token_id")}
    return more, {"forced_bos_token_id": of("forced_bos_token_id")} if arch == "bart" else {}


def t5_name(role, tensors):
    """Name of the tensor of a role such as enc.blk.0.attn_q."""
    if role in T5_ENDS:
        return T5_ENDS[role]
    part, _, layer, what = role.split(".")
    gated = any(name == b"enc.blk.0.ffn_gate.weight" for name, *_ in tensors)
    last = 1 if part == "enc" else 2
    if what == "ffn_up":
        what = f"{last}.DenseReluDense.wi{'_1' if gated else ''}"
    elif what in T5_FEED:
        what = f"{last}.{T5_FEED[what]}"
    elif what in T5_NAMES:
        what = T5_NAMES[what]
    else:
        what = ("1.EncDecAttention." if what.startswith("cross") else "0.SelfAttention.") + what[-1]
    return f"{PARTS[part]}.block.{layer}.layer.{what}"


def bart_name(role):
    if role in BART_ENDS:
        return BART_ENDS[role]
    part, rest = role.split(".", 1)
    if not rest.startswith("blk."):
        return f"model.{PARTS[part]}.{BART_ENDS[rest]}"
    _, layer, what = rest.split(".")
    usual = ("encoder_attn." if what.startswith("cross") else "self_attn.") + what[-1] + "_proj"
    return f"model.{PARTS[part]}.layers.{layer}.{BART_NAMES.get(what, usual)}"


def tensor(arch, full, tensors, shape, data):
    """Name, shape and bytes in the folder."""
    role, ending = full.rsplit(".", 1)
    if arch == "t5":
        return f"{t5_name(role, tensors)}.{ending}", shape, data
    if full == "output.bias":
        return "final_logits_bias", [1] + shape, data
    if role.endswith("position_embd"):  # two rows of padding in front, as of nines
        size = len(data) // shape[0]
        return f"{bart_name(role)}.{ending}", [shape[0] + 2, shape[1]], struct.pack("<f", 9) * (size // 2) + data
    return f"{bart_name(role)}.{ending}", shape, data
