#!/usr/bin/env python3
"""Compares make-toy-goldens.py with the package transformers on toys of mixtures of experts.

    compare-experts.py TOY.gguf...

Toys are written by `make_toy --golden DIR`. For each, the largest difference of logits after every
one of the goldens' ids is printed; 1e-9 and more ends the command with an error. Needs torch and
transformers (made with 4.51.3; gpt-oss with 5.23.0, and with gguf where it is quantised). Where a
toy's router is of DeepSeek-V3's kind, that model's router takes the place of the architecture's
own.
"""
import importlib.util
import os
import sys
from types import SimpleNamespace

import numpy as np
import torch

# Norms and routers ask for single precision in any case. Here they get double as well.
torch.float32 = torch.float = torch.float64
torch.Tensor.float = torch.Tensor.double

import transformers

_spec = importlib.util.spec_from_file_location(
    "toy_goldens", os.path.join(os.path.dirname(os.path.abspath(__file__)), "make-toy-goldens.py"))
_toys = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_toys)

SIGMOID, CHOSEN = 2, 3  # values of expert_gating_func
KINDS = {"llama": "Mixtral", "granitemoe": "GraniteMoe", "qwen2moe": "Qwen2Moe",
         "qwen3moe": "Qwen3Moe", "olmoe": "Olmoe"}
ATTENTION = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "output": "o_proj", "q_norm": "q_norm",
             "k_norm": "k_norm"}


class Routed(torch.nn.Module):
    """Experts of another model after DeepSeek-V3's router."""

    def __init__(self, model, block, layer):
        super().__init__()
        from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3TopkRouter
        get, weight = model.get, model.t[layer + "ffn_gate_inp.weight"]
        self.experts = block.experts
        self.router = DeepseekV3TopkRouter(SimpleNamespace(
            num_experts_per_tok=get("expert_used_count"), n_routed_experts=len(weight),
            routed_scaling_factor=get("expert_weights_scale", 1.0),
            n_group=get("expert_group_count", 1), topk_group=get("expert_group_used_count", 1),
            norm_topk_prob=True, hidden_size=weight.shape[1]))
        self.router.weight.data = torch.tensor(weight)
        self.router.e_score_correction_bias = torch.tensor(model.t[layer + "exp_probs_b.bias"])

    def forward(self, x):
        rows = x.view(-1, x.shape[-1])
        out = torch.zeros_like(rows)
        for row, (chosen, weights) in enumerate(zip(*self.router(x))):
            for expert, weight in zip(chosen, weights):
                out[row] += weight * self.experts[expert](rows[row])
        return out.view(x.shape), None


def config_of(m, kind):
    get = m.get
    n_ff = get("expert_feed_forward_length", get("feed_forward_length"))
    n_shared = get("expert_shared_feed_forward_length", 0)
    n_dense = get("leading_dense_block_count", 0)
    more = {}
    if kind.startswith("GraniteMoe"):
        more = {"attention_multiplier": m.scale, "embedding_multiplier": get("embedding_scale"),
                "residual_multiplier": get("residual_scale"), "logits_scaling": get("logit_scale"),
                "shared_intermediate_size": n_shared}
    widths = {"intermediate_size": n_ff}
    if kind.startswith("Qwen"):
        widths = {"intermediate_size": get("feed_forward_length"), "moe_intermediate_size": n_ff,
                  "shared_expert_intermediate_size": n_shared,
                  "mlp_only_layers": list(range(n_dense)), "head_dim": m.head_dim}
    n_experts = get("expert_count")
    return getattr(transformers, kind + "Config")(
        vocab_size=len(m.t["token_embd.weight"]), hidden_size=get("embedding_length"),
        num_hidden_layers=m.n_layers, num_attention_heads=m.n_heads,
        num_key_value_heads=m.n_heads_kv, rms_norm_eps=m.eps, num_experts=n_experts,
        num_local_experts=n_experts, num_experts_per_tok=get("expert_used_count"),
        norm_topk_prob=kind == "Qwen3Moe" or get("expert_gating_func") == CHOSEN,
        rope_theta=get("rope.freq_base"), sliding_window=None, attn_implementation="eager",
        tie_word_embeddings=False, **widths, **more)


def by_halves(rows, n_heads):
    """Rows of Q or K that are rotated as neighbours, in the order of halves."""
    return rows.reshape(n_heads, -1, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def layer_tensors(m, kind, n):
    """The tensors of a layer, by the names of transformers."""
    prefix = f"blk.{n}."
    t = {name[len(prefix):]: value for name, value in m.t.items() if name.startswith(prefix)}
    norm = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
    out = {f"{new}.weight": t[f"{old}.weight"] for old, new in norm.items()}
    for old, new in ATTENTION.items():
        for end in ("weight", "bias"):
            rows = t.get(f"attn_{old}.{end}")
            if rows is not None and old in ("q", "k") and m.arch not in _toys.HALVES:
                rows = by_halves(rows, m.n_heads if old == "q" else m.n_heads_kv)
            out[f"self_attn.{new}.{end}"] = rows
    part = lambda what: [t.get(f"ffn_{which}{what}.weight") for which in ("gate", "up", "down")]
    stack = lambda gate, up: torch.cat([torch.tensor(gate), torch.tensor(up)], dim=-2)
    names = ("w1", "w3", "w2") if kind == "Mixtral" else ("gate_proj", "up_proj", "down_proj")
    prefix = "mlp." if kind.startswith(("Qwen", "Olmoe")) else "block_sparse_moe."
    gate, up, down = part("_exps")
    if m.get("expert_gating_func") == CHOSEN:  # the softmax of the chosen is what sums to 1
        down = down * m.get("expert_weights_scale", 1.0)
    if gate is None:
        out.update(zip([f"mlp.{name}.weight" for name in names], part("")))
    elif kind.startswith("GraniteMoe"):
        out[prefix + "router.layer.weight"] = t["ffn_gate_inp.weight"]
        out[prefix + "input_linear.weight"] = stack(gate, up)
        out[prefix + "output_linear.weight"] = down
    else:
        out[prefix + "gate.weight"] = t["ffn_gate_inp.weight"]
        for i in range(len(gate)):
            out.update(zip([f"{prefix}experts.{i}.{name}.weight" for name in names],
                           (gate[i], up[i], down[i])))
    gate, up, down = part("_shexp")
    if kind == "Qwen2Moe":
        out.update(zip([f"mlp.shared_expert.{name}.weight" for name in names], (gate, up, down)))
        out["mlp.shared_expert_gate.weight"] = t["ffn_gate_inp_shexp.weight"][None]
    elif gate is not None:
        out["shared_mlp.input_linear.weight"] = stack(gate, up)
        out["shared_mlp.output_linear.weight"] = down
    return {f"model.layers.{n}.{name}": value for name, value in out.items() if value is not None}


def reference(m):
    kind = KINDS[m.arch] + ("Shared" if m.arch == "granitemoe" and
                            m.get("expert_shared_feed_forward_length") else "")
    model = getattr(transformers, kind + "ForCausalLM")(config_of(m, kind)).double().eval()
    tensors = {"model.embed_tokens.weight": m.t["token_embd.weight"],
               "model.norm.weight": m.t["output_norm.weight"],
               "lm_head.weight": m.t["output.weight"]}
    for n in range(m.n_layers):
        tensors.update(layer_tensors(m, kind, n))
    model.load_state_dict({name: torch.as_tensor(value) for name, value in tensors.items()})
    for n, layer in enumerate(model.model.layers):
        if m.get("expert_gating_func") == SIGMOID:
            part = "block_sparse_moe" if kind == "Mixtral" else "mlp"
            setattr(layer, part, Routed(m, getattr(layer, part), f"blk.{n}."))
    return model


def gpt_oss_config(m):
    get, rope = m.get, {"rope_type": "default", "rope_theta": m.get("rope.freq_base")}
    if get("rope.scaling.type") == "yarn":
        rope.update(rope_type="yarn", factor=get("rope.scaling.factor"), beta_fast=32.0,
                    beta_slow=1.0, truncate=False, original_max_position_embeddings=get(
                        "rope.scaling.original_context_length"))
    return transformers.GptOssConfig(
        vocab_size=len(m.t["token_embd.weight"]), hidden_size=get("embedding_length"),
        num_hidden_layers=m.n_layers, num_attention_heads=m.n_heads, head_dim=m.head_dim,
        num_key_value_heads=m.n_heads_kv, rms_norm_eps=m.eps, rope_parameters=rope,
        max_position_embeddings=get("context_length"), num_local_experts=get("expert_count"),
        num_experts_per_tok=get("expert_used_count"),
        intermediate_size=get("expert_feed_forward_length"),
        sliding_window=get("attention.sliding_window"), attn_implementation="eager",
        experts_implementation="eager", dtype=torch.float64)


def in_turns(gate, up):
    """A gate's and an up's row in turns, along the last axis."""
    return np.stack([gate, up], axis=-1).reshape(*gate.shape[:-1], -1)


def gpt_oss_tensors(m, n):
    """The tensors of a layer, by the names of transformers."""
    t = lambda name: m.t[f"blk.{n}.{name}"]
    out = {"input_layernorm.weight": t("attn_norm.weight"),
           "post_attention_layernorm.weight": t("post_attention_norm.weight"),
           "self_attn.sinks": t("attn_sinks.weight"),
           "mlp.router.weight": t("ffn_gate_inp.weight"), "mlp.router.bias": t("ffn_gate_inp.bias"),
           "mlp.experts.gate_up_proj": in_turns(t("ffn_gate_exps.weight").swapaxes(1, 2),
                                                t("ffn_up_exps.weight").swapaxes(1, 2)),
           "mlp.experts.gate_up_proj_bias": in_turns(t("ffn_gate_exps.bias"),
                                                     t("ffn_up_exps.bias")),
           "mlp.experts.down_proj": t("ffn_down_exps.weight").swapaxes(1, 2),
           "mlp.experts.down_proj_bias": t("ffn_down_exps.bias")}
    for old, new in (("q", "q_proj"), ("k", "k_proj"), ("v", "v_proj"), ("output", "o_proj")):
        for end in ("weight", "bias"):
            out[f"self_attn.{new}.{end}"] = t(f"attn_{old}.{end}")
    return {f"model.layers.{n}.{name}": value for name, value in out.items()}


def gpt_oss(m):
    model = transformers.GptOssForCausalLM(gpt_oss_config(m)).double().eval()
    tensors = {"model.embed_tokens.weight": m.t["token_embd.weight"],
               "model.norm.weight": m.t["output_norm.weight"],
               "lm_head.weight": m.t["output.weight"]}
    for n in range(m.n_layers):
        tensors.update(gpt_oss_tensors(m, n))
    model.load_state_dict({name: torch.as_tensor(np.ascontiguousarray(value))
                           for name, value in tensors.items()})
    return model


def main():
    worst = 0
    for path in sys.argv[1:]:
        m = _toys.Model(_toys.Gguf(path))
        ids = _toys.toy_ids(len(m.t["token_embd.weight"]))
        with torch.no_grad():
            model = gpt_oss(m) if m.arch == "gpt-oss" else reference(m)
            theirs = model(torch.tensor([ids]), use_cache=False).logits[0].double().numpy()
        difference = abs(theirs - m.logits(ids)).max()
        print(f"{os.path.basename(path)}: logits differ by at most {difference:.2g}; "
              f"the closest choice is {m.closest:.2g} apart")
        worst = max(worst, difference)
    sys.exit(0 if worst < 1e-9 else "differences are too large")


if __name__ == "__main__":
    main()
