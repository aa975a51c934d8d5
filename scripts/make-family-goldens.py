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

FEW = (1, 40, 64)  # positions; and the last
# GGUF's names of a layer's tensors, without ".weight" or ".bias", and those of most classes.
USUAL = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
         "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
         "post_attention_norm": "post_attention_layernorm",
         "post_ffw_norm": "post_feedforward_layernorm",
         "ffn_gate_inp": "mlp.gate", "ffn_gate_shexp": "mlp.shared_experts.gate_proj",
         "ffn_up_shexp": "mlp.shared_experts.up_proj",
         "ffn_down_shexp": "mlp.shared_experts.down_proj", "attn_sinks": "self_attn.sinks",
         "attn_gate": "self_attn.g_proj", "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


class Family:
    """A class of transformers: its name, arguments of its configuration from the file's keys, and
    names of tensors that it has otherwise."""

    def __init__(self, name, arguments=None, names=None, permuted=False, change=None,
                 config="Config", model="ForCausalLM", experts="mlp.experts",
                 fit=lambda model, get: None):
        self.name, self.names = name, {**USUAL, **(names or {})}
        self.config, self.model, self.experts = name + config, name + model, experts
        self.arguments = arguments or (lambda get: {})
        self.permuted = permuted  # the file's rows of Q and K are those of rotated neighbours
        self.fit = fit  # changes the model before its tensors come
        self.change = change or (lambda tensors, get: None)


def biased(get):
    return {"attention_bias": True}


def partial(get, **more):
    """A part of each head is rotated."""
    return {"rope_parameters": {"rope_type": "default", "rope_theta": get("rope.freq_base"),
                                "partial_rotary_factor": get("rope.dimension_count") / head_dim(get)},
            **more}


def has(get, tensor):
    return get("?" + tensor) is not None


def head_dim(get):
    heads = get("attention.head_count")
    return get("attention.key_length",
               get("embedding_length") // (heads[0] if isinstance(heads, list) else heads))


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


def kinds(get, list_key="attention.sliding_window_pattern", period=4, local="sliding_attention",
          first=False):
    """The kind of each layer's attention."""
    n = get("block_count")
    listed = get(list_key)
    if not isinstance(listed, list):
        listed = [i % period != (0 if first else period - 1) for i in range(n)]
    return [local if of else "full_attention" for of in listed]


def windows(get, **more):
    return {"sliding_window": get("attention.sliding_window"), "layer_types": kinds(get), **more}


def mixture(get, **more):
    """Arguments under the names that most classes have for them."""
    n, dense = get("block_count"), get("leading_dense_block_count", 0)
    return {"num_experts": get("expert_count"), "num_local_experts": get("expert_count"),
            "n_routed_experts": get("expert_count"),
            "num_experts_per_tok": get("expert_used_count"),
            "moe_intermediate_size": get("expert_feed_forward_length"),
            "mlp_layer_types": ["dense"] * dense + ["sparse"] * (n - dense), **more}


def rope(get, what="", **more):
    """Rotation of layers that see all, or of local ones ("_swa")."""
    kind = None if what else get("rope.scaling.type")
    found = {"rope_type": kind or "default",
             "rope_theta": get("rope.freq_base" + what, get("rope.freq_base"))}
    if kind:
        found.update(factor=get("rope.scaling.factor"),
                     original_max_position_embeddings=get("rope.scaling.original_context_length"))
    return {**found, **more}


def part(get, what=""):
    return get("rope.dimension_count" + what, head_dim(get)) / head_dim(get)


def cohere2moe(get):
    return layer_norms(get, **windows(get, **mixture(
        get, intermediate_size=get("expert_feed_forward_length"),
        prefix_dense_intermediate_size=get("feed_forward_length"),
        num_shared_experts=get("expert_shared_feed_forward_length")
        // get("expert_feed_forward_length"), expert_selection_fn="sigmoid",
        logit_scale=get("logit_scale"), rope_theta=get("rope.freq_base"))))


def llama4(get):
    n, step = get("block_count"), get("interleave_moe_layer_step")
    return mixture(
        get, intermediate_size=get("expert_feed_forward_length"),
        intermediate_size_mlp=get("feed_forward_length"), interleave_moe_layer_step=step,
        moe_layers=list(range(step - 1, n, step)),
        attention_chunk_size=get("attention.sliding_window"), attn_scale=0.1,
        floor_scale=get("attention.temperature_length"), mlp_layer_types=None,
        layer_types=kinds(get, local="chunked_attention"))


def llama4_experts(tensors, get):
    """The class's matrices of experts are turned."""
    for name in tensors:
        if "experts." in name:
            tensors[name] = tensors[name].transpose(1, 2)


def afmoe(get):
    return windows(get, **mixture(
        get, num_dense_layers=get("leading_dense_block_count"),
        num_shared_experts=get("expert_shared_feed_forward_length")
        // get("expert_feed_forward_length"), route_scale=get("expert_weights_scale"),
        mup_enabled=True, mlp_layer_types=None))


def two_ropes(get, whole=1.0):
    return {"full_attention": rope(get, partial_rotary_factor=whole * part(get)),
            "sliding_attention": rope(get, "_swa", partial_rotary_factor=part(
                get, "_swa" if get("rope.dimension_count_swa") else ""))}


def step35(get):
    heads = get("attention.head_count")
    return windows(get, **mixture(
        get, num_attention_heads=heads[0], num_sliding_attention_heads=heads[1],
        intermediate_size=get("feed_forward_length")[0], share_expert_dim=get(
            "expert_shared_feed_forward_length"),
        pad_token_id=0, moe_router_scaling_factor=get("expert_weights_scale"), rope_parameters=two_ropes(get, 0.5),
        swiglu_limits=get("swiglu_clamp_exp"), swiglu_limits_shared=get("swiglu_clamp_shexp")))


def mimo2(get):
    return windows(get, **mixture(
        get, v_head_dim=get("attention.value_length"), rope_parameters=two_ropes(get),
        attention_value_scale=get("attention.value_scale")))


def same_heads(model, get):
    """The class doubles the key heads of local layers, where a toy has as many in all."""
    n, d = get("attention.head_count_kv"), get("embedding_length")
    for layer in model.model.layers:
        of = layer.self_attn
        of.k_proj = torch.nn.Linear(d, n * of.head_dim, bias=False)
        of.v_proj = torch.nn.Linear(d, n * of.v_head_dim, bias=False)
        of.num_key_value_groups = get("attention.head_count") // n


def laguna(get):
    heads, n = get("attention.head_count"), get("block_count")
    heads = heads if isinstance(heads, list) else [heads] * n
    window = get("attention.sliding_window")
    return mixture(
        get, num_attention_heads=heads[0], num_attention_heads_per_layer=heads,
        sliding_window=window or 1, layer_types=kinds(get, first=True) if window else
        ["full_attention"] * n, rope_parameters=two_ropes(get),
        shared_expert_intermediate_size=get("expert_shared_feed_forward_length"),
        gating="per-element" if get("?blk.0.attn_gate.weight").shape[0] > heads[0] else "per-head",
        moe_routed_scaling_factor=get("expert_weights_scale"),
        intermediate_size=get("feed_forward_length")[0]
        if isinstance(get("feed_forward_length"), list) else get("feed_forward_length"))


DELTA = {"attn_qkv": "linear_attn.in_proj_qkv", "attn_gate": "linear_attn.in_proj_z",
         "ssm_beta": "linear_attn.in_proj_b", "ssm_alpha": "linear_attn.in_proj_a",
         "ssm_ba": "linear_attn.in_proj_ba", "ssm_in": "linear_attn.in_proj_qkvz",
         "ssm_conv1d": "linear_attn.conv1d", "ssm_dt": "linear_attn.dt", "ssm_a": "linear_attn.A_log",
         "ssm_norm": "linear_attn.norm", "ssm_out": "linear_attn.out_proj",
         "ffn_gate_inp": "mlp.gate", "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
         "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
         "ffn_up_shexp": "mlp.shared_expert.up_proj",
         "ffn_down_shexp": "mlp.shared_expert.down_proj"}


def delta_sizes(get):
    return {"linear_conv_kernel_dim": get("ssm.conv_kernel"),
            "linear_key_head_dim": get("ssm.state_size"),
            "linear_value_head_dim": get("ssm.state_size"),
            "linear_num_key_heads": get("ssm.group_count"),
            "linear_num_value_heads": get("ssm.time_step_rank"),
            "layer_types": ["linear_attention" if get(f"?blk.{i}.ssm_a") is not None else "full_attention"
                            for i in range(get("block_count"))],
            "num_experts": get("expert_count"), "num_experts_per_tok": get("expert_used_count"),
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
        if name.endswith("shared_expert_gate.weight"):
            tensors[name] = t.reshape(1, -1)
        if role == "conv1d.weight":
            tensors[name] = t[:, None]
        if not turns and role == "in_proj_qkv.weight":
            z = tensors.pop(layer + "linear_attn.in_proj_z.weight")
            parts = [part.reshape(n_keys, -1, part.shape[-1])
                     for part in (*tensors.pop(name)[:keys].chunk(2), t[keys:], z)]
            tensors[layer + "linear_attn.in_proj_qkvz.weight"] = torch.cat(parts, 1).flatten(0, 1)


HYPER = {**DELTA, "ple_key": "ple.key_proj", "ple_value": "ple.value_proj",
         "ple_norm_key": "ple.norm_key", "ple_norm_query": "ple.norm_query",
         "ple_norm_conv": "ple.norm_conv", "ple_conv1d": "ple.conv1d",
         "indexer.q_proj": "self_attn.indexer.q_proj", "indexer.k_proj": "self_attn.indexer.k_proj",
         "indexer.q_norm": "self_attn.indexer.q_layernorm",
         "indexer.k_norm": "self_attn.indexer.k_layernorm",
         "per_layer_token_embd": "model.layers.1.ple.ple_embedding.ngram_embedding",
         **{f"{ours}_{mine}": f"{theirs}.{its}"
            for ours, theirs in (("hc_attn", "attn_hyper_connection"),
                                 ("hc_ffn", "mlp_hyper_connection"),
                                 ("output_hc", "model.hyper_connection_mixer"))
            for mine, its in (("norm", "hc_norm"), ("down", "input_mix_weight_down"),
                              ("up", "input_mix_weight_up"), ("inject", "block_inject_weight"))}}


def hyper_sizes(get):
    return {**delta_sizes(get), "hc_count": get("hyper_connection.count"),
            "hc_lowrank": get("hyper_connection.low_rank"),
            "ple_layer_ids": [layer + 1 for layer in get("ple.layers")],  # counted from 1
            "ple_embed_dim": (get("ple.ngram_size") - 1) * get("ple.heads_per_ngram")
            * get("embedding_length_per_layer_input"),
            "ple_conv_kernel_size": get("ple.conv_kernel"), "ngram_size": get("ple.ngram_size"),
            "heads_per_ngram": get("ple.heads_per_ngram"), "ngram_vocab_size_base": 50,
            "eos_token_id": get("ple.eos_token_id"), "output_gate_type": "sigmoid",
            "indexer_n_heads": get("attention.indexer.head_count"), "indexer_kv_heads": 1,
            "indexer_head_dim": get("attention.indexer.key_length"),
            "indexer_budget": get("attention.indexer.top_k"),
            "indexer_compress_ratio": max(get("attention.compress_ratios"))}


def file_table(model, get):
    """The table's size is the file's, not that of the configuration's primes."""
    table = get("?per_layer_token_embd.weight")
    for layer in get("ple.layers"):
        model.model.layers[layer].ple.ple_embedding.ngram_embedding = torch.nn.Embedding(*table.shape)


def hyper(tensors, get):
    delta(tensors, get)
    for name in list(tensors):
        if ".ple.norm_" in name:
            tensors[name] = tensors[name] - 1
        if name.endswith("ple.conv1d.weight"):
            tensors[name] = tensors[name][:, None]
        if name.endswith("indexer.q_proj.weight"):
            of = name.removesuffix("q_proj.weight")
            tensors[of + "index_qk_proj.weight"] = torch.cat(
                [tensors.pop(name), tensors.pop(of + "k_proj.weight")])
    of = "model.layers.1.ple.ple_embedding."
    for its, key in (("layer_multipliers", "layer_multipliers"),
                     ("ngram_heads_vocab_sizes", "head_vocab_sizes"),
                     ("ngram_heads_offsets", "head_offsets")):
        tensors[of + its] = torch.tensor(get("ple." + key), dtype=torch.long)


def mamba_names(at, **more):
    """Names of a state space's tensors in a class that has it at that place."""
    return {"ssm_in": f"{at}.in_proj", "ssm_conv1d": f"{at}.conv1d", "ssm_dt": f"{at}.dt",
            "ssm_a": f"{at}.A_log", "ssm_d": f"{at}.D", "ssm_norm": f"{at}.norm",
            "ssm_out": f"{at}.out_proj", **more}


NEMOTRON_H = mamba_names(
    "mixer", attn_norm="norm", attn_q="mixer.q_proj", attn_k="mixer.k_proj", attn_v="mixer.v_proj",
    attn_output="mixer.o_proj", ffn_up="mixer.up_proj", ffn_down="mixer.down_proj",
    ffn_gate_inp="mixer.gate", exp_probs_b="mixer.gate.e_score_correction_bias",
    ffn_up_shexp="mixer.shared_experts.up_proj", ffn_down_shexp="mixer.shared_experts.down_proj",
    ffn_latent_down="mixer.fc1_latent_proj", ffn_latent_up="mixer.fc2_latent_proj",
    token_embd="model.embeddings", output_norm="model.norm_f")
GRANITE = mamba_names(
    "mamba", ffn_gate_inp="block_sparse_moe.router", ffn_gate="shared_mlp.gate",
    ffn_up="shared_mlp.up", ffn_down="shared_mlp.output_linear", ffn_gate_shexp="shared_mlp.gate",
    ffn_up_shexp="shared_mlp.up", ffn_down_shexp="shared_mlp.output_linear")
FALCON_H1 = mamba_names(
    "mamba", ffn_norm="pre_ff_layernorm", ffn_gate="feed_forward.gate_proj",
    ffn_up="feed_forward.up_proj", ffn_down="feed_forward.down_proj",
    output_norm="model.final_layernorm")


def mamba(tensors, get):
    """Numbers of heads are a column in files, those of norms a row for each group."""
    for name in list(tensors):
        if name.endswith("A_log"):
            tensors[name] = torch.log(-tensors[name]).flatten()
        elif name.endswith((".D", "mamba.norm.weight", "mixer.norm.weight")):
            tensors[name] = tensors[name].flatten()
        elif name.endswith("dt.bias"):
            tensors[name.replace("dt.bias", "dt_bias")] = tensors.pop(name)
        elif name.endswith("conv1d.weight"):
            tensors[name] = tensors[name][:, None]


def granite_mlp(tensors, get):
    mamba(tensors, get)
    for name in [name for name in tensors if name.endswith("shared_mlp.gate.weight")]:
        tensors[name.replace("gate", "input_linear")] = torch.cat(
            [tensors.pop(name), tensors.pop(name.replace("gate", "up"))])


def nemotron_h(get):
    kinds = ["linear_attention" if has(get, f"blk.{i}.ssm_in.weight") else
             "full_attention" if has(get, f"blk.{i}.attn_q.weight") else
             "moe" if has(get, f"blk.{i}.ffn_gate_inp.weight") else "mlp"
             for i in range(get("block_count"))]
    found = {"layers_block_type": kinds, "num_key_value_heads": max(get("attention.head_count_kv")),
            "intermediate_size": max(get("feed_forward_length")), "num_hidden_layers": None,
            "layer_norm_epsilon": get("attention.layer_norm_rms_epsilon"),
            "ssm_state_size": get("ssm.state_size"), "mamba_num_heads": get("ssm.time_step_rank"),
            "mamba_head_dim": get("ssm.inner_size") // get("ssm.time_step_rank"),
            "n_groups": get("ssm.group_count"), "conv_kernel": get("ssm.conv_kernel"),
            "time_step_min": 1e-30, "n_routed_experts": get("expert_count"),
            "num_experts_per_tok": get("expert_used_count"),
            "moe_intermediate_size": get("expert_feed_forward_length"),
            "moe_shared_expert_intermediate_size": get("expert_shared_feed_forward_length"),
            "moe_latent_size": get("moe_latent_size"), "norm_topk_prob": True,
            "routed_scaling_factor": get("expert_weights_scale")}
    return {name: value for name, value in found.items()
            if value is not None or name == "num_hidden_layers"}


def mamba_sizes(get, **more):
    heads = get("ssm.time_step_rank")
    return {"mamba_n_heads": heads, "mamba_d_head": get("ssm.inner_size") // heads,
            "mamba_n_groups": get("ssm.group_count"), "mamba_d_state": get("ssm.state_size"),
            "mamba_d_conv": get("ssm.conv_kernel"), **more}


def granitehybrid(get):
    heads = get("attention.head_count_kv")
    return mamba_sizes(
        get, layer_types=["full_attention" if n else "linear_attention" for n in heads],
        num_key_value_heads=max(heads), embedding_multiplier=get("embedding_scale"),
        logits_scaling=get("logit_scale"), residual_multiplier=get("residual_scale"),
        attention_multiplier=get("attention.scale"), num_local_experts=get("expert_count", 0),
        num_experts_per_tok=get("expert_used_count", 0), shared_intermediate_size=get(
            "expert_shared_feed_forward_length", get("feed_forward_length")),
        position_embedding_type="rope" if get("rope.scaling.finetuned", True) else None)


# Factors of the class, which files have in their tensors.
FALCON_FACTORS = {"attention_in_multiplier": 0.9, "attention_out_multiplier": 1.1,
                  "embedding_multiplier": 1.3, "key_multiplier": 0.8, "lm_head_multiplier": 0.7,
                  "mlp_multipliers": [0.6, 1.2], "ssm_in_multiplier": 1.25,
                  "ssm_out_multiplier": 0.75, "ssm_multipliers": [0.5, 1.5, 0.8, 1.2, 2.0]}


def falcon_factors(tensors, get):
    mamba(tensors, get)
    f = FALCON_FACTORS
    gate, down = f["mlp_multipliers"]
    of = {"embed_tokens": f["embedding_multiplier"], "lm_head": f["lm_head_multiplier"],
          "q_proj": f["attention_in_multiplier"], "v_proj": f["attention_in_multiplier"],
          "k_proj": f["attention_in_multiplier"] * f["key_multiplier"],
          "o_proj": f["attention_out_multiplier"], "gate_proj": gate, "down_proj": down,
          "out_proj": f["ssm_out_multiplier"]}
    inner, keys = get("ssm.inner_size"), get("ssm.group_count") * get("ssm.state_size")
    sizes = torch.tensor([inner, inner, keys, keys, get("ssm.time_step_rank")])
    parts = torch.repeat_interleave(torch.tensor(f["ssm_multipliers"]), sizes)
    for name in [name for name in tensors if name.endswith("layernorm")]:
        tensors[name + ".weight"] = tensors.pop(name)
    for name in tensors:
        module = name.split(".")[-2] if "." in name else name
        if module in of and name.endswith("weight"):
            tensors[name] = tensors[name] / of[module]
        if module == "in_proj":
            tensors[name] = tensors[name] / (f["ssm_in_multiplier"] * parts[:, None])


PHI = {"attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2",
       "output_norm": "model.final_layernorm"}

HUNYUAN = {"attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm",
           "ffn_gate_inp": "mlp.gate.wg", "ffn_gate_shexp": "mlp.shared_mlp.gate_proj",
           "ffn_up_shexp": "mlp.shared_mlp.up_proj", "ffn_down_shexp": "mlp.shared_mlp.down_proj"}
LFM2 = {"attn_norm": "operator_norm", "attn_q_norm": "self_attn.q_layernorm",
        "attn_k_norm": "self_attn.k_layernorm", "attn_output": "self_attn.out_proj",
        "shortconv.in_proj": "conv.in_proj", "shortconv.conv": "conv.conv",
        "shortconv.out_proj": "conv.out_proj", "ffn_norm": "ffn_norm",
        "ffn_gate": "feed_forward.w1", "ffn_up": "feed_forward.w3", "ffn_down": "feed_forward.w2",
        "token_embd_norm": "model.embedding_norm"}


def lfm2(get, **more):
    heads = get("attention.head_count_kv")
    return {"layer_types": ["full_attention" if n else "conv" for n in heads],
            "num_key_value_heads": max(heads), "conv_L_cache": get("shortconv.l_cache"),
            "conv_bias": False, "block_auto_adjust_ff_dim": False,
            "norm_eps": get("attention.layer_norm_rms_epsilon"), **more}


def conv_rows(tensors, get):
    for name in tensors:
        if name.endswith("conv.conv.weight"):
            tensors[name] = tensors[name][:, None]


GEMMA4 = {"ffn_norm": "pre_feedforward_layernorm", "layer_output_scale": "layer_scalar",
          "per_layer_token_embd": "model.embed_tokens_per_layer",
          "per_layer_model_proj": "model.per_layer_model_projection",
          "per_layer_proj_norm": "model.per_layer_projection_norm",
          "inp_gate": "per_layer_input_gate", "proj": "per_layer_projection",
          "post_norm": "post_per_layer_input_norm", "ffn_gate_inp": "router.proj",
          "post_ffw_norm_1": "post_feedforward_layernorm_1",
          "pre_ffw_norm_2": "pre_feedforward_layernorm_2",
          "post_ffw_norm_2": "post_feedforward_layernorm_2"}


def gemma4(get):
    n, width, experts = (get(key, 0) for key in (
        "block_count", "embedding_length_per_layer_input", "expert_count"))
    widths, heads = get("feed_forward_length"), get("attention.head_count_kv")
    types = kinds(get)
    every = heads if isinstance(heads, list) else [heads] * n
    return windows(
        get, head_dim=get("attention.key_length_swa"),
        global_head_dim=get("attention.key_length"), num_key_value_heads=max(every),
        num_global_key_value_heads=every[types.index("full_attention")],
        intermediate_size=min(widths) if isinstance(widths, list) else widths,
        use_double_wide_mlp=isinstance(widths, list),
        num_kv_shared_layers=get("attention.shared_kv_layers"),
        attention_k_eq_v=not has(get, f"blk.{types.index('full_attention')}.attn_v.weight"),
        hidden_size_per_layer_input=width,
        vocab_size_per_layer_input=get("?token_embd.weight").shape[0],
        final_logit_softcapping=get("final_logit_softcapping"),
        enable_moe_block=bool(experts), num_experts=experts,
        top_k_experts=get("expert_used_count"),
        moe_intermediate_size=get("expert_feed_forward_length"),
        hidden_activation="gelu_pytorch_tanh",
        rope_parameters={
            "full_attention": {"rope_type": "proportional", "rope_theta": get("rope.freq_base"),
                               "partial_rotary_factor": 0.25},
            "sliding_attention": {"rope_type": "default", "rope_theta": get("rope.freq_base_swa")}})


def gemma4_tensors(tensors, get):
    """The class has factors that are no weights, and no keys that nobody reads."""
    del tensors["rope_freqs.weight"]
    first = get("block_count") - (get("attention.shared_kv_layers") or 0)
    for name in list(tensors):
        layer, _, role = name.removeprefix("model.layers.").partition(".")
        if role == "layer_scalar.weight":
            tensors[name.removesuffix(".weight")] = tensors.pop(name)
        if role == "router.proj.scale":
            tensors[name.replace("proj.scale", "scale")] = tensors.pop(name)
        if layer.isdigit() and int(layer) >= first and role.split(".")[:2] in (
                ["self_attn", "k_proj"], ["self_attn", "v_proj"], ["self_attn", "k_norm"]):
            del tensors[name]
    for i in range(get("block_count")):
        scale = get(f"?blk.{i}.ffn_down_exps.scale")
        if scale is not None:
            tensors[f"model.layers.{i}.router.per_expert_scale"] = scale


LATENT = {"attn_q_a": "self_attn.q_a_proj", "attn_q_a_norm": "self_attn.q_a_layernorm",
          "attn_q_b": "self_attn.q_b_proj", "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
          "attn_kv_a_norm": "self_attn.kv_a_layernorm", "attn_kv_b": "self_attn.kv_b_proj",
          "exp_probs_b": "mlp.gate.e_score_correction_bias"}


def latent(get, **more):
    """Sizes of latent attention; YaRN's factor of scores, of which files have a tenth."""
    n_rot = get("rope.dimension_count")
    rotation, part = rope(get), get("rope.scaling.yarn_log_multiplier")
    if part:
        rotation.update(mscale=10 * part, mscale_all_dim=10 * part, beta_fast=32, beta_slow=1)
    if get("attention.temperature_scale"):
        rotation.update(llama_4_scaling_beta=get("attention.temperature_scale"))
    groups = get("expert_group_count")
    return mixture(
        get, q_lora_rank=get("attention.q_lora_rank"), kv_lora_rank=get("attention.kv_lora_rank"),
        qk_nope_head_dim=get("attention.key_length_mla", get("attention.key_length")) - n_rot,
        qk_rope_head_dim=n_rot, head_dim=n_rot, num_key_value_heads=get("attention.head_count"),
        v_head_dim=get("attention.value_length_mla", get("attention.value_length")),
        n_group=groups or 1, topk_group=get("expert_group_used_count") or 1,
        topk_method="group_limited_greedy" if groups else "greedy",
        n_shared_experts=get("expert_shared_count"), rope_parameters=rotation,
        first_k_dense_replace=get("leading_dense_block_count", 0),
        num_hidden_layers=get("block_count") - get("nextn_predict_layers", 0),
        routed_scaling_factor=get("expert_weights_scale", 1.0),
        norm_topk_prob=bool(get("expert_weights_norm")), **more)


def latent_tensors(tensors, get):
    """The matrices of heads as one; without the blocks after the layers and what chooses
    positions."""
    n, ends = get("block_count") - get("nextn_predict_layers", 0), "self_attn."
    for name in list(tensors):
        parts = name.split(".")
        if parts[:2] == ["model", "layers"] and (int(parts[2]) >= n or "indexer" in parts):
            del tensors[name]
        elif name.endswith(ends + "k_b.weight"):
            k, v = tensors.pop(name), tensors.pop(name.replace("k_b", "v_b"))
            tensors[name.replace("k_b", "kv_b_proj")] = torch.cat(
                [k.transpose(1, 2), v], 1).flatten(0, 1)


def same_eps(model, get):
    """The classes' norms of latents have a number that is not the file's."""
    for layer in model.model.layers:
        for part in (layer.self_attn.q_a_layernorm, layer.self_attn.kv_a_layernorm):
            if part is not None:
                part.variance_epsilon = get("attention.layer_norm_rms_epsilon")


LATENT.update(attn_k_b="self_attn.k_b", attn_v_b="self_attn.v_b")
LATENT.update({name: name for name in (
    "nextn.eh_proj", "indexer.attn_q_b", "indexer.attn_k", "indexer.k_norm", "indexer.proj")})

FAMILIES = {
    "glm4": Family("Glm4", lambda get: partial(get, attention_bias=True), {
        "post_attention_norm": "post_self_attn_layernorm", "post_ffw_norm": "post_mlp_layernorm",
        "ffn_up": "mlp.gate_up_proj"}),
    "olmo2": Family("Olmo2"),
    "olmo3": Family("Olmo3", lambda get: windows(get, rope_parameters=two_ropes(get))),
    "exaone4": Family("Exaone4", lambda get: windows(get) if get("attention.sliding_window") else {
        "sliding_window": None, "layer_types": ["full_attention"] * get("block_count")}),
    "arcee": Family("Arcee", permuted=True),
    "apertus": Family("Apertus", names={"attn_norm": "attention_layernorm",
                                        "ffn_norm": "feedforward_layernorm"}, change=xielu),
    "starcoder2": Family("Starcoder2", lambda get: layer_norms(get, "norm_epsilon", use_bias=True), {
        "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}),
    "nemotron": Family("Nemotron", lambda get: layer_norms(get, "norm_eps", **partial(get)),
                       change=less_one),
    "stablelm": Family("StableLm", lambda get: layer_norms(
        get, **partial(get, use_qkv_bias=has(get, "blk.0.attn_q.bias"),
                       use_parallel_residual=not has(get, "blk.0.ffn_norm.weight"),
                       qk_layernorm=has(get, "blk.0.attn_q_norm.weight"))), {
        "attn_q_norm": "self_attn.q_layernorm", "attn_k_norm": "self_attn.k_layernorm"},
        change=norm_per_head),
    "gemma4": Family("Gemma4", gemma4, {**GEMMA4, "rope_freqs": "rope_freqs"},
                     change=gemma4_tensors, config="TextConfig", experts="experts"),
    "phi2": Family("Phi", lambda get: layer_norms(get, **partial(get)), PHI),
    "lfm2": Family("Lfm2", lfm2, LFM2, change=conv_rows),
    "lfm2moe": Family("Lfm2Moe", lambda get: lfm2(
        get, intermediate_size=get("feed_forward_length"), num_experts=get("expert_count"),
        moe_intermediate_size=get("expert_feed_forward_length"), use_expert_bias=True,
        num_experts_per_tok=get("expert_used_count"), norm_topk_prob=True,
        routed_scaling_factor=1.0, num_dense_layers=get("leading_dense_block_count"),
        experts_implementation="eager"), {
            **LFM2, "ffn_gate_inp": "feed_forward.gate", "exp_probs_b": "feed_forward.expert_bias"},
        change=conv_rows, experts="feed_forward.experts"),
    "command-r": Family("Cohere", lambda get: layer_norms(
        get, logit_scale=get("logit_scale"), use_qk_norm=has(get, "blk.0.attn_q_norm.weight"))),
    "cohere2": Family("Cohere2", lambda get: layer_norms(
        get, **windows(get, logit_scale=get("logit_scale")))),
    "cohere2moe": Family("Cohere2Moe", cohere2moe),
    "phimoe": Family("Phimoe", lambda get: mixture(
        get, attention_bias=True, lm_head_bias=True, mlp_layer_types=None,
        rms_norm_eps=get("attention.layer_norm_epsilon")), {"ffn_gate_inp": "mlp.router"}),
    "hunyuan-dense": Family("HunYuanDenseV1", names=HUNYUAN),
    "hunyuan-moe": Family("HunYuanMoEV1", lambda get: mixture(
        get, moe_topk=get("expert_used_count"), mlp_layer_types=None,
        intermediate_size=get("expert_feed_forward_length")), HUNYUAN),
    "llama4": Family("Llama4", llama4, {
        "ffn_gate_inp": "feed_forward.router", "ffn_gate": "feed_forward.gate_proj",
        "ffn_up": "feed_forward.up_proj", "ffn_down": "feed_forward.down_proj",
        "ffn_gate_shexp": "feed_forward.shared_expert.gate_proj",
        "ffn_up_shexp": "feed_forward.shared_expert.up_proj",
        "ffn_down_shexp": "feed_forward.shared_expert.down_proj"}, change=llama4_experts,
        config="TextConfig", experts="feed_forward.experts"),
    "afmoe": Family("Afmoe", afmoe, {
        "attn_gate": "self_attn.gate_proj", "ffn_norm": "pre_mlp_layernorm",
        "post_ffw_norm": "post_mlp_layernorm", "ffn_gate_inp": "mlp.router.gate",
        "exp_probs_b": "mlp.expert_bias"}),
    "step35": Family("Step3p7", step35, {
        "exp_probs_b": "mlp.gate.e_score_correction_bias"}, change=less_one, config="TextConfig",
        model="TextModel"),
    "mimo2": Family("MiMoV2Flash", mimo2, {"exp_probs_b": "mlp.gate.e_score_correction_bias"},
                    fit=same_heads),
    "qwen35": Family("Qwen3_5", delta_sizes, DELTA, change=delta, config="TextConfig"),
    "qwen35moe": Family("Qwen3_5Moe", delta_sizes, DELTA, change=delta, config="TextConfig"),
    "qwen3next": Family("Qwen3Next", delta_sizes, DELTA, change=delta),
    "qwen4exp": Family("Qwen4Exp", hyper_sizes, HYPER, change=hyper, config="TextConfig",
                       fit=file_table),
    "nemotron_h": Family("NemotronH", nemotron_h, NEMOTRON_H, change=mamba),
    "nemotron_h_moe": Family("NemotronH", nemotron_h, NEMOTRON_H, change=mamba,
                             experts="mixer.experts"),
    "granitehybrid": Family("GraniteMoeHybrid", granitehybrid, GRANITE, change=granite_mlp,
                            permuted=True, experts="block_sparse_moe.experts"),
    "falcon-h1": Family("FalconH1", lambda get: mamba_sizes(
        get, mamba_d_ssm=get("ssm.inner_size"), mamba_norm_before_gate=False,
        mamba_rms_norm=has(get, "blk.0.ssm_norm.weight"), **FALCON_FACTORS), FALCON_H1,
        change=falcon_factors),
    "deepseek2": Family("DeepseekV2", latent, LATENT, change=latent_tensors, fit=same_eps),
    "deepseek3": Family("DeepseekV3", latent, LATENT, change=latent_tensors, fit=same_eps),
    "glm47-flash": Family("Glm4MoeLite", latent, LATENT, change=latent_tensors, fit=same_eps),
    "deepseek32": Family("DeepseekV3", latent, LATENT, change=latent_tensors, fit=same_eps),
    "glm-dsa": Family("DeepseekV3", latent, LATENT, change=latent_tensors, fit=same_eps),
    "mistral4": Family("Mistral4", lambda get: {
        **latent(get), "head_dim": get("attention.key_length_mla")}, LATENT, change=latent_tensors,
        fit=same_eps),
    "laguna": Family("Laguna", laguna, {"exp_probs_b": "mlp.gate.e_score_correction_bias"}),
}


def unpermute(rows, n_heads):
    """The order in which the halves of a head are rotated."""
    shape = rows.shape
    return rows.reshape(n_heads, -1, 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def class_name(family, name):
    layer, _, role = name.partition(".")
    if layer == "blk":
        number, _, role = role.partition(".")
    role, _, kind = (role if layer == "blk" else name).rpartition(".")
    if not role:  # "blk.0.ssm_a"
        return f"model.layers.{number}.{family.names[kind]}"
    of = family.names[role]
    if role in ("exp_probs_b", "attn_sinks"):  # no module's
        return f"model.layers.{number}.{of}"
    return f"model.layers.{number}.{of}.{kind}" if layer == "blk" else f"{of}.{kind}"


class File:
    def __init__(self, path):
        file = Gguf(path)
        self.keys = {name.decode(): _toys.plain(value) for name, _, value in file.keys}
        self.arch = self.keys["general.architecture"]
        self.t = {name.decode(): torch.tensor(_toys.tensor(file, file.base + offset, dims, kind))
                  for name, dims, kind, offset in file.tensors}

    def get(self, key, other=None):
        """A key; "?NAME": a tensor; "/NAME": a key of that name."""
        if key[0] == "?":
            return self.t.get(key[1:])
        return self.keys.get(key[1:] if key[0] == "/" else f"{self.arch}.{key}", other)


def rename(file, family):
    """The file's tensors under the class's names; gates and ups of experts are one."""
    tensors, get = {}, file.get
    for name, numbers in file.t.items():
        if "_exps." in name:
            layer = name.split(".")[1]
            of = f"model.layers.{layer}.{family.experts}."
            tensors[of + "down_proj"] = file.t[f"blk.{layer}.ffn_down_exps.weight"]
            whats = ["gate_up"] if "gate_up" in name else ["gate", "up"]
            if has(get, f"blk.{layer}.ffn_up_exps.weight") and not has(
                    get, f"blk.{layer}.ffn_gate_exps.weight"):
                tensors[of + "up_proj"] = file.t[f"blk.{layer}.ffn_up_exps.weight"]
            elif "down" not in name:
                tensors[of + "gate_up_proj"] = torch.cat(
                    [file.t[f"blk.{layer}.ffn_{what}_exps.weight"] for what in whats], dim=1)
            continue
        if family.permuted and (".attn_q." in name or ".attn_k." in name):
            heads = "attention.head_count" if ".attn_q." in name else "attention.head_count_kv"
            n_heads = get(heads)
            numbers = unpermute(numbers, max(n_heads) if isinstance(n_heads, list) else n_heads)
        tensors[class_name(family, name)] = numbers
    family.change(tensors, get)
    if "lm_head.weight" not in tensors:
        tensors["lm_head.weight"] = tensors[family.names["token_embd"] + ".weight"]
    return tensors


def variant(file):
    """The family; DeepSeek's models and GLM-4.7-Flash share an architecture."""
    if file.arch != "deepseek2" or file.get("expert_gating_func") != 2:
        return file.arch
    return "deepseek3" if file.get("expert_group_count") else "glm47-flash"


def load(path):
    """The model, and its head where it has none."""
    file = File(path)
    get = file.get
    olmo3 = file.arch == "olmo2" and get("attention.sliding_window")
    family = FAMILIES["olmo3" if olmo3 else variant(file)]
    arguments = {
        "vocab_size": file.t["token_embd.weight"].shape[0], "hidden_size": get("embedding_length"),
        "intermediate_size": get("feed_forward_length"), "num_hidden_layers": get("block_count"),
        "num_attention_heads": get("attention.head_count"), "head_dim": head_dim(get),
        "num_key_value_heads": get("attention.head_count_kv"),
        "max_position_embeddings": get("context_length"),
        "rms_norm_eps": get("attention.layer_norm_rms_epsilon"),
        "rope_parameters": {"rope_type": "default", "rope_theta": get("rope.freq_base")},
        "tie_word_embeddings": "output.weight" not in file.t, "pad_token_id": None,
        "attn_implementation": "eager", **family.arguments(get)}
    config = getattr(transformers, family.config)(
        **{name: value for name, value in arguments.items() if value is not None or name[:3] != "rms"})
    config._experts_implementation = "eager"
    model = getattr(transformers, family.model)(config)
    family.fit(model, get)
    tensors, head = rename(file, family), None
    if family.model.endswith("TextModel"):
        head = tensors.pop("lm_head.weight")
        tensors = {name.removeprefix("model."): numbers for name, numbers in tensors.items()}
    wrong = model.load_state_dict(tensors, strict=False)
    missing = [name for name in wrong.missing_keys if "inv_freq" not in name]
    if missing or wrong.unexpected_keys:
        sys.exit(f"{path}: missing {missing}, left over {wrong.unexpected_keys}")
    return model.double().eval(), head


def main():
    path, out_path = sys.argv[1:3]
    model, head = load(path)
    ids = toy_ids(model.config.vocab_size)
    with torch.no_grad():
        out = model(torch.tensor([ids]), use_cache=False)
        logits = (out.logits if head is None else out.last_hidden_state @ head.T)[0].numpy()
    with open(out_path, "w", encoding="ascii") as out:
        write_model(out, path)
        write_prompt(out, logits, ids, FEW)
        write_text(out, logits, ids)


if __name__ == "__main__":
    main()
