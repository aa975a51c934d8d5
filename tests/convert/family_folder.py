"""A folder as model hubs hold it, made of a toy of one of the families that share their layer's
names: what each has otherwise is a line of FAMILIES. It undoes what drey convert does, without
drey's code; tests/data/hub_configs.json has config.json and the names of tensors as transformers
saves the same toys (scripts/make-family-configs.py)."""
import json
import math
import os
import struct

import hub_folder
from gguf_file import Gguf  # hub_folder knows where it is

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/hub_configs.json"), encoding="utf-8") as _f:
    SAVED = json.load(_f)

LAYER = hub_folder.LAYER | {
    "post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
    "ffn_gate_inp": "mlp.gate", "exp_probs_b": "mlp.gate.e_score_correction_bias",
    "attn_sinks": "self_attn.attention_sink_bias", "attn_gate": "self_attn.g_proj",
    **{f"ffn_{part}_shexp": f"mlp.shared_experts.{part}_proj" for part in ("gate", "up", "down")},
    "nextn.eh_proj": "eh_proj", "nextn.enorm": "enorm", "nextn.hnorm": "hnorm",
    "nextn.shared_head_norm": "shared_head.norm"}
FLAT = {"exp_probs_b": "mlp.e_score_correction_bias"}
SHARED_ONE = {f"ffn_{part}_shexp": f"mlp.shared_expert.{part}_proj" for part in ("gate", "up", "down")}
SHARED_MLP = {f"ffn_{part}_shexp": f"mlp.shared_mlp.{part}_proj" for part in ("gate", "up", "down")}
QUERY_NORMS = {"attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm"}
HUNYUAN = QUERY_NORMS | SHARED_MLP | {"ffn_gate_inp": "mlp.gate.wg"}
FORWARD = {"ffn_gate": "feed_forward.w1", "ffn_up": "feed_forward.w3", "ffn_down": "feed_forward.w2"}
NUMBERED = {"ffn_gate_exps": "w1", "ffn_up_exps": "w3", "ffn_down_exps": "w2"}
SPARSE = {role: f"block_sparse_moe.experts.%d.{name}" for role, name in NUMBERED.items()} | {
    "ffn_gate_inp": "block_sparse_moe.gate", "exp_probs_b": "block_sparse_moe.e_score_correction_bias"}
LFM2 = FORWARD | {role: f"feed_forward.experts.%d.{name}" for role, name in NUMBERED.items()} | {
    "attn_norm": "operator_norm", "attn_q_norm": "self_attn.q_layernorm", "attn_k_norm": "self_attn.k_layernorm",
    "attn_output": "self_attn.out_proj", "ffn_norm": "ffn_norm", "shortconv.in_proj": "conv.in_proj",
    "shortconv.conv": "conv.conv", "shortconv.out_proj": "conv.out_proj", "ffn_gate_inp": "feed_forward.gate",
    "exp_probs_b": "feed_forward.expert_bias", "token_embd_norm": "model.embedding_norm"}
DELTA = SHARED_ONE | {
    "attn_qkv": "linear_attn.in_proj_qkv", "attn_gate": "linear_attn.in_proj_z", "ssm_beta": "linear_attn.in_proj_b",
    "ssm_alpha": "linear_attn.in_proj_a", "ssm_ba": "linear_attn.in_proj_ba", "ssm_conv1d": "linear_attn.conv1d",
    "ssm_dt": "linear_attn.dt_bias", "ssm_a": "linear_attn.A_log", "ssm_norm": "linear_attn.norm",
    "ssm_out": "linear_attn.out_proj"}
LLAMA4 = {f"ffn_{part}": f"feed_forward.{part}_proj" for part in ("gate", "up", "down")} | {
    f"ffn_{part}_shexp": f"feed_forward.shared_expert.{part}_proj" for part in ("gate", "up", "down")} | {
    "ffn_gate_inp": "feed_forward.router"}
STEP35 = {f"ffn_{part}_shexp": f"share_expert.{part}_proj" for part in ("gate", "up", "down")} | {
    f"ffn_{part}_exps": f"moe.{part}_proj" for part in ("gate", "up", "down")} | {
    "ffn_gate_inp": "moe.gate", "exp_probs_b": "moe.router_bias"}
INTERN = FORWARD | {"attn_norm": "attention_norm", "ffn_norm": "ffn_norm", "attn_output": "attention.wo",
                    "token_embd": "model.tok_embeddings", "output": "output"}
BAILING = {"attn_qkv": "attention.query_key_value", "attn_output": "attention.dense",
           "attn_q_norm": "attention.query_layernorm", "attn_k_norm": "attention.key_layernorm",
           "exp_probs_b": "mlp.gate.expert_bias", "token_embd": "model.word_embeddings"}
# Names of the tensors. Of PERMUTED, rows of Q and K are pairs in files, halves in folders.
FAMILIES = {
    "glm4": {"post_attention_norm": "post_self_attn_layernorm", "post_ffw_norm": "post_mlp_layernorm",
             "ffn_up": "mlp.gate_up_proj"},
    "apertus": {"attn_norm": "attention_layernorm", "ffn_norm": "feedforward_layernorm"},
    "starcoder2": {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
    "stablelm": {"attn_q_norm": "self_attn.q_layernorm.norms.%d", "attn_k_norm": "self_attn.k_layernorm.norms.%d"},
    "phi2": {"attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2",
             "output_norm": "model.final_layernorm"},
    "phimoe": SPARSE, "minimax-m2": SPARSE, "lfm2": LFM2, "lfm2moe": LFM2, "hunyuan-dense": HUNYUAN,
    "hunyuan-moe": HUNYUAN, "llama4": LLAMA4, "step35": STEP35, "internlm2": INTERN, "bailingmoe2": BAILING,
    "qwen35": DELTA, "qwen35moe": DELTA, "qwen3next": DELTA, "exaone-moe": FLAT,
    "afmoe": {"attn_gate": "self_attn.gate_proj", "ffn_norm": "pre_mlp_layernorm",
              "post_ffw_norm": "post_mlp_layernorm", "ffn_gate_inp": "mlp.router.gate", "exp_probs_b": "mlp.expert_bias"},
    "hy_v3": SHARED_MLP | {"ffn_gate_inp": "mlp.router.gate", "exp_probs_b": "mlp.expert_bias",
                           "nextn.shared_head_norm": "final_layernorm"},
    "ernie4_5-moe": {"exp_probs_b": "mlp.moe_statics.e_score_correction_bias"},
    "laguna": SHARED_ONE | {"exp_probs_b": "mlp.experts.e_score_correction_bias"}}
PERMUTED = ("arcee", "mistral3", "smollm3", "internlm2")
LESS_ONE = ("nemotron", "step35", "qwen35", "qwen35moe", "qwen3next")
NO_SUFFIX = ("attn_sinks", "exp_probs_b", "ssm_a", "ssm_dt")
# Families that transformers has not, or saves with parts that see images.
VISION = {"architectures": [""], "text_config": {"rope_parameters": {
    "rope_type": "default", "rope_theta": 1e6, "mrope_section": [6, 5, 5], "mrope_interleaved": True}}}
BY_HAND = {
    "qwen2vl": ("Qwen2VLForConditionalGeneration", VISION), "qwen3vl": ("Qwen3VLForConditionalGeneration", VISION),
    "qwen3vlmoe": ("Qwen3VLMoeForConditionalGeneration", VISION),
    "internlm2": ("InternLM2ForCausalLM", {"bias": False, "rope_theta": 1e6}),
    "bailingmoe2": ("BailingMoeV2ForCausalLM", {"rope_theta": 1e6, "n_group": 4, "topk_group": 2,
                                                "score_function": "sigmoid", "norm_topk_prob": True,
                                                "num_shared_experts": 1}),
    "hy_v3": ("HYV3ForCausalLM", {"route_norm": True, "router_scaling_factor": 1.5, "num_shared_experts": 1,
                                  "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "glm4moe": ("Glm4MoeForCausalLM", {"rope_theta": 1e6, "norm_topk_prob": True, "attention_bias": True,
                                       "routed_scaling_factor": 1.5, "n_shared_experts": 1, "use_qk_norm": True})}
SIZES = {"block_count": "num_hidden_layers", "context_length": "max_position_embeddings",
         "embedding_length": "hidden_size", "feed_forward_length": "intermediate_size",
         "attention.head_count": "num_attention_heads", "attention.head_count_kv": "num_key_value_heads",
         "attention.key_length": "head_dim", "attention.layer_norm_rms_epsilon": "rms_norm_eps",
         "expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
         "expert_feed_forward_length": "moe_intermediate_size", "nextn_predict_layers": "num_nextn_predict_layers"}


def numbers(data, size, change):
    """Numbers of 2 or 4 bytes, changed."""
    code = f"<{len(data) // size}{'e' if size == 2 else 'f'}"
    return struct.pack(code, *(change(x) for x in struct.unpack(code, data)))


def rows_of(data, n):
    size = len(data) // n
    return [data[i * size:(i + 1) * size] for i in range(n)]


class FamilyFolder(hub_folder.Folder):
    def __init__(self, gguf, name):
        super().__init__(gguf)
        self.names = LAYER | hub_folder.ENDS | FAMILIES.get(self.arch, {})
        self.saved = SAVED.get(name)
        heads = self.of("attention.head_count")
        self.heads = {"attn_q": heads, "attn_k": self.of("attention.head_count_kv")}
        self.vision = not self.saved and "vl" in self.arch

    def config(self):
        tied = not any(t[0] == b"output.weight" for t in self.gguf.tensors)
        n_mtp = self.of("nextn_predict_layers", 0)
        if self.saved:
            config = dict(self.saved["config"])
            if self.arch == "step35":
                config = {"architectures": ["Step3p7ForConditionalGeneration"], "text_config": config}
            elif n_mtp:
                config["num_nextn_predict_layers"] = n_mtp
            return config
        name, config = BY_HAND[self.arch]
        sizes = {to: self.of(key) for key, to in SIZES.items() if self.of(key) is not None}
        sizes |= {"vocab_size": self.tensor_rows("token_embd.weight"), "tie_word_embeddings": tied,
                  "num_hidden_layers": self.of("block_count") - n_mtp, "hidden_act": "silu"}
        if "text_config" in config:
            return config | {"architectures": [name], "text_config": config["text_config"] | sizes}
        return config | sizes | {"architectures": [name]}

    # ---- Tensors ----

    def turned_back(self, data, n, dim):
        """Heads of values that take turns are neighbours again; n: heads before them."""
        keys, heads = self.of("ssm.group_count"), self.of("ssm.time_step_rank")
        rows = rows_of(data, n + heads * dim)
        front, rows = rows[:n], rows[n:]
        order = [(h % (heads // keys) * keys + h // (heads // keys)) * dim + i for h in range(heads) for i in range(dim)]
        return b"".join(front + [rows[i] for i in order])

    def delta(self, role, data, dims, size):
        dim, keys = self.of("ssm.state_size"), self.of("ssm.group_count")
        if role == "ssm_a":
            data = numbers(data, 4, lambda x: math.log(-x))
        if self.arch == "qwen3next":
            return data
        if role in ("attn_qkv", "ssm_conv1d") and dims[-1] == (2 * keys + self.of("ssm.time_step_rank")) * dim:
            return self.turned_back(data, 2 * keys * dim, dim)
        if role == "attn_gate":
            return self.turned_back(data, 0, dim)
        if role in ("ssm_beta", "ssm_alpha", "ssm_a", "ssm_dt"):
            return self.turned_back(data, 0, 1)
        if role == "ssm_out":
            return b"".join(self.turned_back(row, 0, dim) for row in rows_of(data, dims[1]))
        return data

    def changed(self, role, ending, dims, kind, data):
        """(dims, data) as the folder has them."""
        size = 2 if kind == "F16" else 4
        if self.arch in PERMUTED and role in ("attn_q", "attn_k"):
            data = hub_folder.unpaired(data, self.heads[role], dims[-1])
        if self.arch in LESS_ONE and role.endswith("norm") and role != "ssm_norm" and ending == "weight":
            data = numbers(data, size, lambda x: x - 1)
        if role.startswith("ssm_") or role in ("attn_qkv", "attn_gate") and "ssm.state_size" in str(self.keys):
            data = self.delta(role, data, dims, size)
        if role in ("ssm_conv1d", "shortconv.conv"):
            dims = [dims[0], 1, dims[1]]
        if role == "ffn_gate_inp_shexp" or role == "exp_probs_b" and "ernie" in self.arch:
            dims = [dims[0], 1]
        return dims, data

    def halves(self, dims, data):
        """Gates and ups of each expert, of a tensor of both."""
        both = [rows_of(rows, 2) for rows in rows_of(data, dims[2])]
        return [([dims[0], dims[1] // 2, dims[2]], b"".join(rows[i] for rows in both)) for i in range(2)]

    def stacked(self, layer, places):
        """Experts in one tensor: of llama4 and qwen3vlmoe with rows and columns turned."""
        gate, up, down = (places[f"blk.{layer}.ffn_{part}_exps.weight"] for part in ("gate", "up", "down"))
        names = ("feed_forward" if self.arch == "llama4" else "mlp") + ".experts."
        for name, parts in ((names + "gate_up_proj", (gate, up)), (names + "down_proj", (down,))):
            dims, kind, size = list(parts[0][0]), parts[0][1], parts[0][2]
            out = b""
            for e in range(dims[2]):
                rows = b"".join(rows_of(part[3], dims[2])[e] for part in parts)
                out += hub_folder.turned(rows, size, [dims[0], dims[1] * len(parts)])
            yield name, kind, [dims[2], dims[0], dims[1] * len(parts)], out

    def qkv(self, layer, places):
        """internlm2: a group of heads for each key."""
        parts = [places[f"blk.{layer}.attn_{p}.weight"] for p in "qkv"]
        heads, keys = self.heads["attn_q"], self.heads["attn_k"]
        q, k = (hub_folder.unpaired(part[3], n, part[0][1]) for part, n in zip(parts, (heads, keys)))
        groups = [rows_of(data, keys) for data in (q, k, parts[2][3])]
        dims = [parts[0][0][0], sum(part[0][1] for part in parts)]
        yield ("attention.wqkv.weight", parts[0][1], dims[::-1],
               b"".join(b"".join(group[i] for group in groups) for i in range(keys)))

    def qkvz(self, layer, places):
        """qwen3next: queries, keys, values and gates of each head of keys."""
        whole, z = (places[f"blk.{layer}.{name}.weight"] for name in ("attn_qkv", "attn_gate"))
        keys, dim = self.of("ssm.group_count"), self.of("ssm.state_size")
        rows = rows_of(whole[3], whole[0][1])
        parts = [rows[:keys * dim], rows[keys * dim:2 * keys * dim], rows[2 * keys * dim:], rows_of(z[3], z[0][1])]
        out = b"".join(b"".join(part[i * len(part) // keys:(i + 1) * len(part) // keys])
                       for i in range(keys) for part in parts)
        yield "linear_attn.in_proj_qkvz.weight", whole[1], [whole[0][1] + z[0][1], whole[0][0]], out

    def tensors(self):
        places = {}
        for full, dims, kind, offset in self.gguf.tensors:
            read = list(dims), *self.read(dims, kind, offset)
            if "gate_up_exps" in full.decode():
                for part, (some, data) in zip(("gate", "up"), self.halves(read[0], read[3])):
                    places[full.decode().replace("gate_up", part)] = (some, *read[1:3], data)
            else:
                places[full.decode()] = read
        front = "model.language_model" if self.vision or self.arch == "step35" else "model"
        special = set()
        for layer in range(self.of("block_count")):
            for condition, names, make in (
                    (self.arch in ("llama4", "qwen3vlmoe"), ["ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"], self.stacked),
                    (self.arch == "internlm2", ["attn_q", "attn_k", "attn_v"], self.qkv),
                    (self.arch == "qwen3next", ["attn_qkv", "attn_gate"], self.qkvz)):
                full = [f"blk.{layer}.{name}.weight" for name in names]
                if condition and full[0] in places:
                    special.update(full)
                    for name, *rest in make(layer, places):
                        yield (f"{front}.layers.{layer}.{name}", *rest)
        for full, (dims, kind, size, data) in places.items():
            if full not in special:
                yield from self.tensor(full, dims, kind, data, front)
        if self.arch == "apertus":
            for layer in range(self.of("block_count")):
                for name in ("alpha_p", "alpha_n", "beta", "eps"):
                    yield (f"model.layers.{layer}.mlp.act_fn.{name}", "F32", [1],
                           struct.pack("<f", self.keys[f"xielu.{name}"][1][layer]))
        if self.vision:
            yield "model.visual.patch_embed.proj.weight", "F32", [2, 2], bytes(16)

    def tensor(self, full, dims, kind, data, front):
        layer = full.split(".")[1] if full.startswith("blk.") else None
        role = full.split(".", 2)[2] if layer else full
        role, _, ending = role.rpartition(".") if role.endswith((".weight", ".bias")) else (role, "", "weight")
        name = self.names[role]
        name = name if role in NO_SUFFIX else f"{name}.{ending}"
        dims, data = self.changed(role, ending, dims, kind, data)
        if layer:
            name = f"{front}.layers.{layer}.{name}"
        else:
            name = name.replace("model.", front + ".", 1)
        if "%d" not in name:
            yield name, kind, dims[::-1], data
            return
        for i, part in enumerate(rows_of(data, dims[-1])):
            yield name % i, kind, dims[-2::-1], part


def make_family_folder(path, name, folder):
    source = FamilyFolder(Gguf(path), name)
    os.makedirs(folder, exist_ok=True)
    tokenizer, config, model = source.tokenizer(False)
    hub_folder.write(folder, "config.json", source.config())
    hub_folder.write(folder, "tokenizer_config.json", config)
    hub_folder.write(folder, "tokenizer.json", tokenizer)
    made = list(source.tensors())
    hub_folder.safetensors(os.path.join(folder, "model.safetensors"), made)
    return source, [tensor[0] for tensor in made]
