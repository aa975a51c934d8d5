#!/usr/bin/env python3
"""Makes tests/data/logits/toy-FAMILY.txt: what transformers computes for toys of families of models
whose GGUF files it cannot read.

    make-family-goldens.py TOY.gguf OUT.txt

Toys are written by `make_toy --golden DIR`. Needs torch and transformers (made with 2.15 and
5.24.0). The model's class is made from the file's keys, with the file's tensors under the names
that it has for them, and computed in double precision, what it converts to float among it. Nothing
of drey takes part. The output is described in make-logit-goldens.py.
"""
import importlib.util
import os
import sys

import torch

torch.float32 = torch.float = torch.float64  # classes convert norms, angles and weights to these
torch.Tensor.float = torch.Tensor.double
torch.set_default_dtype(torch.float64)

import transformers  # noqa: E402

from gguf_file import Gguf  # noqa: E402
from golden_logits import toy_ids, write_model, write_prompt, write_text  # noqa: E402

_spec = importlib.util.spec_from_file_location(
    "toy_goldens", os.path.join(os.path.dirname(os.path.abspath(__file__)), "make-toy-goldens.py"))
_toys = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_toys)

# GGUF's names of a layer's tensors, without ".weight" or ".bias", and those of most classes.
USUAL = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
         "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
         "post_attention_norm": "post_attention_layernorm",
         "post_ffw_norm": "post_feedforward_layernorm",
         "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


class Family:
    """A class of transformers: its name, arguments of its configuration from the file's keys, and
    names of tensors that it has otherwise."""

    def __init__(self, name, arguments=None, names=None, permuted=False, change=None, config=None):
        self.name, self.names = name, {**USUAL, **(names or {})}
        self.config = config or name
        self.arguments = arguments or (lambda get: {})
        self.permuted = permuted  # the file's rows of Q and K are those of rotated neighbours
        self.change = change or (lambda tensors, get: None)


def biased(get):
    return {"attention_bias": True}


def partial(get, **more):
    """A part of each head is rotated."""
    return {"rope_parameters": {"rope_type": "default", "rope_theta": get("rope.freq_base"),
                                "partial_rotary_factor": get("rope.dimension_count") / head_dim(get)},
            **more}


def head_dim(get):
    return get("attention.key_length",
               get("embedding_length") // get("attention.head_count"))


def layer_norms(get, name="layer_norm_eps", **more):
    return {name: get("attention.layer_norm_epsilon"), **more}


def less_one(tensors, get):
    """Weights of norms are in the file as they count, in the class less 1."""
    for name in tensors:
        if name.endswith("norm.weight"):
            tensors[name] = tensors[name] - 1


def norm_per_head(tensors, get):
    """Each head's norm is a module."""
    for name in [name for name in tensors if "_layernorm.weight" in name and "self_attn" in name]:
        for i, row in enumerate(tensors.pop(name)):
            tensors[name.replace("weight", f"norms.{i}.weight")] = row


def xielu(tensors, get):
    for i in range(get("block_count")):
        for what in ("alpha_p", "alpha_n", "beta", "eps"):
            number = torch.tensor(get(f"/xielu.{what}")[i])
            tensors[f"model.layers.{i}.mlp.act_fn.{what}"] = number[None] if "alpha" in what else number


DELTA = {"attn_qkv": "linear_attn.in_proj_qkv", "attn_gate": "linear_attn.in_proj_z",
         "ssm_beta": "linear_attn.in_proj_b", "ssm_alpha": "linear_attn.in_proj_a",
         "ssm_ba": "linear_attn.in_proj_ba", "ssm_in": "linear_attn.in_proj_qkvz",
         "ssm_conv1d": "linear_attn.conv1d", "ssm_dt": "linear_attn.dt", "ssm_a": "linear_attn.A_log",
         "ssm_norm": "linear_attn.norm", "ssm_out": "linear_attn.out_proj",
         "ffn_gate_inp": "mlp.gate", "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
         "ffn_gate_exps": "mlp.gate_exps", "ffn_up_exps": "mlp.up_exps",
         "ffn_gate_up_exps": "mlp.gate_up_exps", "ffn_down_exps": "mlp.down_exps",
         "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
         "ffn_up_shexp": "mlp.shared_expert.up_proj",
         "ffn_down_shexp": "mlp.shared_expert.down_proj"}


def delta_sizes(get):
    return {"linear_conv_kernel_dim": get("ssm.conv_kernel"),
            "linear_key_head_dim": get("ssm.state_size"),
            "linear_value_head_dim": get("ssm.state_size"),
            "linear_num_key_heads": get("ssm.group_count"),
            "linear_num_value_heads": get("ssm.time_step_rank"),
            "layer_types": ["linear_attention" if get(f"?blk.{i}.ssm_a") else "full_attention"
                            for i in range(get("block_count") - get("nextn_predict_layers", 0))],
            "experts_implementation": "eager", "num_experts": get("expert_count"),
            "num_experts_per_tok": get("expert_used_count"),
            "moe_intermediate_size": get("expert_feed_forward_length"),
            "shared_expert_intermediate_size": get("expert_shared_feed_forward_length"),
            "rope_parameters": {"rope_type": "default", "rope_theta": get("rope.freq_base"),
                                "partial_rotary_factor": get("rope.dimension_count") / head_dim(get),
                                "mrope_section": (get("rope.dimension_sections") or [])[:3]}}


def by_keys(numbers, n_heads, n_shared, dim=0):
    """Heads of values in the order of the class, where those of one head of keys are neighbours."""
    shape = numbers.shape
    lead = [shape[0]] if dim else []
    return numbers.reshape(*lead, n_shared, n_heads, -1, *shape[dim + 1:]).swapaxes(
        dim, dim + 1).reshape(shape)


def delta(tensors, get):
    """The files' tensors as the class has them: norms less 1, A_log, heads of values by heads of
    keys (of qwen35's they take turns in files), q, k, v and z by heads of keys in one matrix."""
    dim, n_keys, n_values = (get("ssm." + key)
                             for key in ("state_size", "group_count", "time_step_rank"))
    n_shared, keys = n_values // n_keys, 2 * n_keys * dim
    turns = get("/general.architecture") != "qwen3next"
    for name in list(tensors):
        layer, _, role = name.rpartition("linear_attn.")
        t = tensors.get(name)  # None: it went with another
        if name.endswith("norm.weight") and role != "norm.weight":
            tensors[name] = t - 1
        if role == "A_log":
            tensors[name] = t = torch.log(-t)
        if role == "dt.bias":
            tensors[layer + "linear_attn.dt_bias"] = tensors.pop(name)
            name = layer + "linear_attn.dt_bias"
        if turns and role in ("in_proj_qkv.weight", "conv1d.weight"):
            tensors[name] = t = torch.cat([t[:keys], by_keys(t[keys:], n_keys, n_shared)])
        if turns and role in ("in_proj_z.weight", "in_proj_b.weight", "in_proj_a.weight", "A_log",
                              "dt.bias"):
            tensors[name] = by_keys(t, n_keys, n_shared)
        if turns and role == "out_proj.weight":
            tensors[name] = by_keys(t, n_keys, n_shared, 1)
        if role == "conv1d.weight":
            tensors[name] = t[:, None]
        if not turns and role == "in_proj_qkv.weight":
            z = tensors.pop(layer + "linear_attn.in_proj_z.weight")
            parts = [part.reshape(n_keys, -1, part.shape[-1])
                     for part in (*tensors.pop(name)[:keys].chunk(2), t[keys:], z)]
            tensors[layer + "linear_attn.in_proj_qkvz.weight"] = torch.cat(parts, 1).flatten(0, 1)
    experts(tensors)


def experts(tensors):
    """Gates and ups in one tensor."""
    for name in list(tensors):
        layer, _, role = name.partition("mlp.")
        if role == "shared_expert_gate.weight":
            tensors[name] = tensors[name].reshape(1, -1)
        if role == "gate_exps.weight":
            tensors[layer + "mlp.experts.gate_up_proj"] = torch.cat(
                [tensors.pop(name), tensors.pop(layer + "mlp.up_exps.weight")], 1)
        if role in ("gate_up_exps.weight", "down_exps.weight"):
            tensors[layer + f"mlp.experts.{role[:-12]}_proj"] = tensors.pop(name)


PHI = {"attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2",
       "output_norm": "model.final_layernorm"}

FAMILIES = {
    "glm4": Family("Glm4", lambda get: partial(get, attention_bias=True), {
        "post_attention_norm": "post_self_attn_layernorm", "post_ffw_norm": "post_mlp_layernorm",
        "ffn_up": "mlp.gate_up_proj"}),
    "olmo2": Family("Olmo2"),
    "exaone4": Family("Exaone4", lambda get: {
        "sliding_window": None, "layer_types": ["full_attention"] * get("block_count")}),
    "arcee": Family("Arcee", permuted=True),
    "apertus": Family("Apertus", names={"attn_norm": "attention_layernorm",
                                        "ffn_norm": "feedforward_layernorm"}, change=xielu),
    "starcoder2": Family("Starcoder2", lambda get: layer_norms(get, "norm_epsilon", use_bias=True), {
        "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}),
    "nemotron": Family("Nemotron", lambda get: layer_norms(get, "norm_eps", **partial(get)),
                       change=less_one),
    "stablelm": Family("StableLm", lambda get: layer_norms(
        get, **partial(get, use_qkv_bias=get("?blk.0.attn_q.bias"),
                       use_parallel_residual=not get("?blk.0.ffn_norm.weight"),
                       qk_layernorm=get("?blk.0.attn_q_norm.weight"))), {
        "attn_q_norm": "self_attn.q_layernorm", "attn_k_norm": "self_attn.k_layernorm"},
        change=norm_per_head),
    "phi2": Family("Phi", lambda get: layer_norms(get, **partial(get)), PHI),
    "command-r": Family("Cohere", lambda get: layer_norms(
        get, logit_scale=get("logit_scale"), use_qk_norm=get("?blk.0.attn_q_norm.weight"))),
    "qwen35": Family("Qwen3_5", delta_sizes, DELTA, change=delta, config="Qwen3_5Text"),
    "qwen35moe": Family("Qwen3_5Moe", delta_sizes, DELTA, change=delta, config="Qwen3_5MoeText"),
    "qwen3next": Family("Qwen3Next", delta_sizes, DELTA, change=delta),
}


def unpermute(rows, n_heads):
    """The order in which the halves of a head are rotated."""
    shape = rows.shape
    return rows.reshape(n_heads, -1, 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def class_name(family, name):
    layer, _, role = name.partition(".")
    if layer == "blk":
        number, _, role = role.partition(".")
    role, dot, kind = (role if layer == "blk" else name).partition(".")
    of = family.names[role] + dot + kind
    return f"model.layers.{number}.{of}" if layer == "blk" else of


class File:
    def __init__(self, path):
        file = Gguf(path)
        self.keys = {name.decode(): _toys.plain(value) for name, _, value in file.keys}
        self.arch = self.keys["general.architecture"]
        self.t = {name.decode(): torch.tensor(_toys.tensor(file, file.base + offset, dims, kind))
                  for name, dims, kind, offset in file.tensors}

    def get(self, key, other=None):
        """A key; "?TENSOR": whether there is one; "/KEY": of that name."""
        if key[0] == "?":
            return key[1:] in self.t
        return self.keys.get(key[1:] if key[0] == "/" else f"{self.arch}.{key}", other)


def load(path):
    file = File(path)
    get, family = file.get, FAMILIES[file.arch]
    n_layers = get("block_count") - get("nextn_predict_layers", 0)
    arguments = {
        "vocab_size": file.t["token_embd.weight"].shape[0], "hidden_size": get("embedding_length"),
        "intermediate_size": get("feed_forward_length"), "num_hidden_layers": n_layers,
        "num_attention_heads": get("attention.head_count"), "head_dim": head_dim(get),
        "num_key_value_heads": get("attention.head_count_kv"),
        "max_position_embeddings": get("context_length"),
        "rms_norm_eps": get("attention.layer_norm_rms_epsilon"),
        "rope_parameters": {"rope_type": "default", "rope_theta": get("rope.freq_base")},
        "tie_word_embeddings": "output.weight" not in file.t, "pad_token_id": None,
        "attn_implementation": "eager", **family.arguments(get)}
    config = getattr(transformers, f"{family.config}Config")(
        **{name: value for name, value in arguments.items() if value is not None or name[:3] != "rms"})
    model = getattr(transformers, f"{family.name}ForCausalLM")(config)
    tensors = {}
    for name, numbers in file.t.items():
        if name.startswith("blk.") and int(name.split(".")[1]) >= n_layers:
            continue
        if family.permuted and (".attn_q." in name or ".attn_k." in name):
            heads = "attention.head_count" if ".attn_q." in name else "attention.head_count_kv"
            numbers = unpermute(numbers, get(heads))
        tensors[class_name(family, name)] = numbers
    family.change(tensors, get)
    if "lm_head.weight" not in tensors:
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    wrong = model.load_state_dict(tensors, strict=False)
    missing = [name for name in wrong.missing_keys if "inv_freq" not in name]
    if missing or wrong.unexpected_keys:
        sys.exit(f"{path}: missing {missing}, left over {wrong.unexpected_keys}")
    return model.double().eval()


def main():
    path, out_path = sys.argv[1:3]
    model = load(path)
    ids = toy_ids(model.config.vocab_size)
    with torch.no_grad():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0].numpy()
    with open(out_path, "w", encoding="ascii") as out:
        write_model(out, path)
        write_prompt(out, logits, ids)
        write_text(out, logits, ids)


if __name__ == "__main__":
    main()
