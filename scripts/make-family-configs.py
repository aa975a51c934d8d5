#!/usr/bin/env python3
"""Makes tests/data/hub_configs.json: config.json of each toy of a family, as transformers saves it,
and the names of its tensors.

    make-family-configs.py OUT.json TOY.gguf...
    make-family-configs.py --folders DIR TOY.gguf...     whole folders, without a tokenizer

Needs torch and transformers (made with 2.15 and 5.24.0). The model of a toy is made as
make-family-goldens.py makes it; nothing of drey takes part.
"""
import importlib.util
import json
import os
import sys
import tempfile

import safetensors.torch  # noqa: F401  before the goldens change what float32 is
import torch

REAL = torch.float32
_spec = importlib.util.spec_from_file_location(
    "family_goldens", os.path.join(os.path.dirname(os.path.abspath(__file__)), "make-family-goldens.py"))
goldens = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(goldens)

Family, mixture, windows = goldens.Family, goldens.mixture, goldens.windows


def deep(get, **more):
    """Arguments of DeepSeek's kind of mixture."""
    return mixture(get, n_shared_experts=(get("expert_shared_feed_forward_length") or get("expert_feed_forward_length"))
                   // get("expert_feed_forward_length"), num_shared_experts=1, n_group=1, topk_group=1,
                   first_k_dense_replace=get("leading_dense_block_count", 0), norm_topk_prob=True,
                   routed_scaling_factor=get("expert_weights_scale", 1.0),
                   router_scaling_factor=get("expert_weights_scale", 1.0), **more)


def ministral(get):
    return {"rope_parameters": {
        "rope_type": "yarn", "rope_theta": get("rope.freq_base"), "factor": get("rope.scaling.factor"),
        "original_max_position_embeddings": get("rope.scaling.original_context_length"),
        "mscale": 1.0, "mscale_all_dim": get("rope.scaling.yarn_log_multiplier"),
        "llama_4_scaling_beta": get("attention.temperature_scale")}}


BIASED = {"exp_probs_b": "mlp.gate.e_score_correction_bias"}
FLAT = {"exp_probs_b": "mlp.e_score_correction_bias"}
goldens.FAMILIES.update({
    "mistral3": Family("Ministral3", ministral, permuted=True),
    "smollm3": Family("SmolLM3", permuted=True),
    "seed_oss": Family("SeedOss", lambda get: {"attention_bias": True, "attention_out_bias": False}),
    "ernie4_5": Family("Ernie4_5"),
    "ernie4_5-moe": Family("Ernie4_5_Moe", lambda get: mixture(
        get, moe_k=get("expert_used_count"), moe_num_experts=get("expert_count"),
        moe_num_shared_experts=0, moe_layer_start_index=1, moe_layer_interval=2,
        mlp_layer_types=None), {"exp_probs_b": "mlp.gate.moe_statics.e_score_correction_bias"}),
    "glm4moe": Family("Glm4Moe", lambda get: goldens.partial(get, attention_bias=True, use_qk_norm=goldens.has(
        get, "blk.0.attn_q_norm.weight"), **deep(get)), BIASED),
    "hy_v3": Family("HYV3", deep, FLAT),
    "minimax-m2": Family("MiniMaxM2", lambda get: goldens.partial(get, **mixture(
        get, intermediate_size=get("expert_feed_forward_length"))), FLAT),
    "dots1": Family("Dots1", lambda get: deep(get), BIASED),
    "exaone-moe": Family("ExaoneMoe", lambda get: windows(get, **deep(get)), BIASED),
})


def load(path):
    """The model, whose blocks after the layers are left out."""
    real = goldens.rename

    def rename(file, family):
        n = file.get("block_count")
        file.t = {name: t for name, t in file.t.items()
                  if not name.startswith("blk.") or int(name.split(".")[1]) < n}
        file.t = {name if name != f"{name[:-11]}exp_probs_b" else name + ".bias": t
                  for name, t in file.t.items()}
        tensors = real(file, family)
        if file.arch == "ernie4_5-moe":
            tensors = {name: t[None] if "e_score" in name else t for name, t in tensors.items()}
        return tensors
    goldens.rename = rename
    get = goldens.File.get

    def counted(file, key, other=None):
        value = get(file, key, other)
        if key == "block_count":
            value -= get(file, "nextn_predict_layers", 0)
        return value[0] if key == "attention.head_count_kv" and file.arch in ("step35", "laguna") and isinstance(
            value, list) else value
    goldens.File.get = counted
    try:
        model, _ = goldens.load(path)
    finally:
        goldens.rename, goldens.File.get = real, get
    return model


def save(path, folder):
    model = load(path)
    for parameter in list(model.parameters()) + list(model.buffers()):
        parameter.data = parameter.data.to(REAL)
    model.save_pretrained(folder)
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    with open(path, "w", encoding="utf-8") as file:  # ids of tokens are in the toy's own tokenizer
        json.dump({name: value for name, value in config.items() if not name.endswith("_token_id")
                   and name != "transformers_version"}, file)
    if os.path.exists(os.path.join(folder, "generation_config.json")):
        os.remove(os.path.join(folder, "generation_config.json"))


def role(name):
    """A tensor's name without numbers of layers, experts and heads."""
    return ".".join("*" if part.isdigit() else part for part in name.split("."))


def main():
    whole = sys.argv[1] == "--folders"
    target, toys, out = sys.argv[1 + whole], sys.argv[2 + whole:], {}
    for path in toys:
        name = os.path.basename(path).removesuffix(".gguf")
        with tempfile.TemporaryDirectory() as temporary:
            folder = os.path.join(target, name) if whole else temporary
            try:
                save(path, folder)
            except (Exception, SystemExit) as error:  # noqa: BLE001
                print(name, type(error).__name__, str(error)[:300], file=sys.stderr)
                continue
            with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
                config = json.load(file)
            with safetensors.safe_open(os.path.join(folder, "model.safetensors"), "np") as file:
                out[name] = {"config": config, "tensors": sorted({role(key) for key in file.keys()})}
    if not whole:
        with open(target, "w", encoding="utf-8") as file:
            file.write("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in out.items())
                       + "\n}\n")


if __name__ == "__main__":
    main()
