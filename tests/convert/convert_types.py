#!/usr/bin/env python3
"""drey convert: what a folder's JSON files say in another form than they have to is an error with
the member's name, and never left out; what has the same meaning in another form is converted.
  convert_types.py DREY MAKE_TOY"""
import json
import os
import shutil
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), name) for name in ("../cli", "../../scripts")]
import command  # noqa: E402
from command import drey, make_toy, tmp, wrong  # noqa: E402
from gguf_file import Gguf  # noqa: E402
from hub_folder import make_folder  # noqa: E402

CONFIG, GENERATION, WORDS, TOKENS, MAP = ("config.json", "generation_config.json", "tokenizer_config.json",
                                          "tokenizer.json", "special_tokens_map.json")
folders = {}


def convert(folder, out):
    return subprocess.run([drey, "convert", folder, out, "-q", "--force"], capture_output=True, text=True, check=False)


def copy_of(toy, changes):
    """A copy of the toy's folder; changes: file to members that are set, to text or to bytes."""
    if toy not in folders:
        folders[toy] = os.path.join(tmp, toy)
        make_folder(os.path.join(tmp, "golden", f"toy-{toy}.gguf"), folders[toy])
    folder = os.path.join(tmp, "changed")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(folders[toy], folder)
    for name, change in changes.items():
        path = os.path.join(folder, name)
        if isinstance(change, dict):
            value = {}
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    value = json.load(file)
            change = json.dumps(value | change)
        elif callable(change):
            with open(path, encoding="utf-8") as file:
                change = change(file.read())
        with open(path, "wb") as file:
            file.write(change.encode() if isinstance(change, str) else change)
    return folder


def refused(toy, pattern, changes):
    folder, out = copy_of(toy, changes), os.path.join(tmp, "none.gguf")
    ended = convert(folder, out)
    if ended.returncode != 1 or pattern not in ended.stderr or ended.stderr.count("\n") != 1 or os.path.exists(out):
        wrong(f"{toy} with {str(changes)[:100]}: {ended.returncode}, no sentence with \"{pattern}\": {ended.stderr}")
        if os.path.exists(out):
            os.remove(out)


def keys_of(toy, changes):
    folder, out = copy_of(toy, changes), os.path.join(tmp, "made.gguf")
    ended = convert(folder, out)
    if ended.returncode != 0:
        wrong(f"{toy} with {str(changes)[:100]} is refused: {ended.stderr}")
        return {}
    return {name.decode(): value for name, kind, value in Gguf(out).keys}


def members(toy, file, values):
    for name, value in values:
        refused(toy, f"{name} of {file} is ", {file: {name: value}})


def kinds():
    members("biases", CONFIG, [
        ("rope_theta", "nan"), ("rope_theta", "100000.0"), ("rope_theta", True), ("rope_theta", -1), ("rope_theta", 0),
        ("rope_theta", [1e4]), ("rope_theta", 1e39), ("rms_norm_eps", "1e-5"), ("rms_norm_eps", -1), ("rms_norm_eps", 1),
        ("rms_norm_eps", 1e-300), ("rope_scaling", "linear"), ("rope_scaling", ["linear", 2]), ("rope_scaling", True),
        ("hidden_act", ["silu"]), ("hidden_act", 1), ("hidden_act", {"name": "silu"}), ("bos_token_id", -1),
        ("bos_token_id", "1"), ("bos_token_id", [1]), ("bos_token_id", True), ("bos_token_id", 1.5),
        ("eos_token_id", -1), ("eos_token_id", "2"), ("eos_token_id", ["2"]), ("eos_token_id", []),
        ("eos_token_id", [2, -1]), ("eos_token_id", {"id": 2}), ("pad_token_id", "0"), ("pad_token_id", -2),
        ("tie_word_embeddings", "no"), ("tie_word_embeddings", 0), ("tie_word_embeddings", [False]),
        ("layer_types", "full_attention"), ("layer_types", [1, 2]), ("architectures", "LlamaForCausalLM"),
        ("quantization_config", "gptq"), ("quantization_config", True), ("head_dim", "16"), ("head_dim", 0),
        ("attention_bias", "true"), ("attention_bias", 1), ("mlp_bias", "false"), ("text_config", []),
        ("partial_rotary_factor", "1"), ("use_sliding_window", "false")])
    members("phi3", CONFIG, [("original_max_position_embeddings", 0), ("original_max_position_embeddings", 64.5)])
    members("gemma2", CONFIG, [("attn_logit_softcapping", "50"), ("query_pre_attn_scalar", "x"),
                               ("hidden_activation", ["gelu"])])
    members("granite", CONFIG, [("embedding_multiplier", "12"), ("logits_scaling", False)])
    members("qwen3moe", CONFIG, [("norm_topk_prob", "true"), ("mlp_only_layers", "0")])
    members("gpt2", CONFIG, [("layer_norm_epsilon", "1e-5"), ("activation_function", ["gelu_new"])])
    members("t5", CONFIG, [("feed_forward_proj", ["relu"]), ("relative_attention_max_distance", "128")])
    members("bart", CONFIG, [("scale_embedding", "true"), ("normalize_before", 1)])
    members("biases", GENERATION, [("eos_token_id", "2"), ("eos_token_id", [2, "3"]), ("bos_token_id", [1])])
    members("biases", WORDS, [
        ("bos_token", 1), ("bos_token", ["<s>"]), ("eos_token", {"text": "</s>"}), ("add_bos_token", "true"),
        ("add_bos_token", 1), ("add_eos_token", "no"), ("added_tokens_decoder", []), ("chat_template", 5),
        ("chat_template", {"default": "x"}), ("eos_token", "a\0b")])
    members("biases", MAP, [("bos_token", 1), ("eos_token", {"content": 2})])
    members("biases", TOKENS, [("added_tokens", {}), ("model", []), ("pre_tokenizer", "ByteLevel"),
                               ("post_processor", ["x"]), ("normalizer", "NFC")])


def contents():
    model = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]}
    text = "full_attention"
    for pattern, changes in [
            ("layer_types of config.json has 1 layers", {CONFIG: {"layer_types": [text]}}),
            ("is \"sliding_window\"", {CONFIG: {"layer_types": ["sliding_window", text]}}),
            ("has 4 layers", {CONFIG: {"layer_types": [text] * 4}}),
            ("the eos token is 999999", {CONFIG: {"eos_token_id": 999999}}),
            ("the eos token is 999999", {CONFIG: {"eos_token_id": [2, 999999]}}),
            ("the bos token is 999999", {CONFIG: {"bos_token_id": 999999}}),
            ("the eos token is 999999", {GENERATION: {"eos_token_id": [999999]}}),
            ("more than three tokens", {GENERATION: {"eos_token_id": [0, 1, 2, 3, 4, 5]}}),
            ("has no token \"<none>\", which is its eos_token",
             {CONFIG: {"eos_token_id": None}, WORDS: {"eos_token": "<none>"}}),
            ("has \"grow\", which drey does not know",
             {CONFIG: {"rope_scaling": {"rope_type": "linear", "factor": 2, "grow": 1}}}),
            ("factor of rope_scaling or rope_parameters of config.json is \"2\"",
             {CONFIG: {"rope_scaling": {"rope_type": "linear", "factor": "2"}}}),
            ("rope_type of rope_scaling or rope_parameters of config.json is 5",
             {CONFIG: {"rope_scaling": {"rope_type": 5, "factor": 2}}}),
            ("has factor, and no rope_type", {CONFIG: {"rope_scaling": {"factor": 2.0}}}),
            ("RoPE scaling \"unknown\"", {CONFIG: {"rope_scaling": {"type": "unknown", "factor": 2}}}),
            ("RoPE scaling \"linear\"", {CONFIG: {"rope_scaling": {"type": "linear"}}}),
            ("and another rope_scaling", {CONFIG: {"rope_scaling": {"type": "linear", "factor": 2},
                                                   "rope_parameters": {"rope_type": "default"}}}),
            ("does not have", {CONFIG: {"rope_parameters": {"full_attention": {"rope_theta": 5.0},
                                                            "sliding_attention": {"rope_theta": 5.0}}}}),
            ("mlp_bias of config.json is false", {CONFIG: {"mlp_bias": False}}),
            ("attention_bias of config.json is false", {CONFIG: {"attention_bias": False}}),
            ("is quantised already", {CONFIG: {"quantization_config": {"quant_method": "gptq"}}}),
            ("use_bidirectional_attention", {CONFIG: {"use_bidirectional_attention": True}}),
            ("the chat template has 1048577 bytes", {WORDS: {"chat_template": "x" * (1 << 20) + "y"}}),
            ("the chat template has 2097152 bytes",
             {WORDS: {"chat_template": [{"name": "default", "template": "x" * (1 << 21)}]}}),
            ("is no template with a name", {WORDS: {"chat_template": ["x"]}}),
            ("template of a chat_template is 5", {WORDS: {"chat_template": [{"name": "default", "template": 5}]}}),
            ("special of added_tokens_decoder of tokenizer_config.json is \"true\"",
             {WORDS: {"added_tokens_decoder": {"3": {"content": "x", "special": "true"}}}}),
            ("has an item that is no object", {TOKENS: {"added_tokens": ["<s>"]}}),
            ("the post_processor \"BertProcessing\"", {TOKENS: {"post_processor": {"type": "BertProcessing"}}}),
            ("a token on each side",
             {TOKENS: {"post_processor": model | {"single": model["single"][:1] * 2 + model["single"][1:]}}}),
            ("byte_fallback of tokenizer.json's model is \"true\"",
             {TOKENS: lambda t: t.replace('"byte_fallback": false', '"byte_fallback": "true"')}),
            ("ignore_merges of tokenizer.json's model is 0",
             {TOKENS: lambda t: t.replace('"ignore_merges": false', '"ignore_merges": 0')}),
            ("has end_of_word_suffix",
             {TOKENS: lambda t: t.replace('"end_of_word_suffix": ""', '"end_of_word_suffix": "</w>"')}),
            ("use_regex of a step of tokenizer.json is \"false\"",
             {TOKENS: lambda t: t.replace('"use_regex": false', '"use_regex": "false"')}),
            ("chat_template.jinja has a NUL byte", {"chat_template.jinja": b"a\0b"}),
            ("after rope_theta: a number is too large", {CONFIG: with_first("rope_theta", "1e400")}),
            ("after rms_norm_eps: NaN and Infinity", {CONFIG: with_first("rms_norm_eps", "NaN")}),
            ("after rms_norm_eps: NaN and Infinity", {CONFIG: with_first("rms_norm_eps", "-Infinity")}),
            ("rope_theta is in config.json twice", {CONFIG: with_first("rope_theta", "17")}),
            ("config.json is UTF-16 with half a character", {CONFIG: b"\xff\xfe{\0\0\xd8x\0"}),
    ]:
        refused("biases", pattern, changes)
    refused("gpt2", "in another way than GPT-2", {CONFIG: {"scale_attn_by_inverse_layer_idx": True}})
    refused("granite", "head_dim is 2", {CONFIG: {"head_dim": 2}})
    refused("gemma3", "layers with a window have the RoPE scaling \"linear\"",
            {CONFIG: {"rope_scaling": None, "rope_parameters": {
                "full_attention": {"rope_theta": 1e6},
                "sliding_attention": {"rope_theta": 1e4, "rope_type": "linear", "factor": 2}}}})


def with_first(name, value):
    """The member in front of all others."""
    return lambda text: f"{{\"{name}\": {value}, " + text[1:]


def same_meaning():
    usual = keys_of("biases", {})
    theta = usual.get("llama.rope.freq_base")
    with_ends = keys_of("biases", {GENERATION: {"eos_token_id": [usual["tokenizer.ggml.eos_token_id"], 3, 4]}})
    if (with_ends.get("tokenizer.ggml.eot_token_id"), with_ends.get("tokenizer.ggml.eom_token_id")) != (3, 4):
        wrong("further ends of generation_config.json are not EOT and EOM")
    many = keys_of("biases", {GENERATION: {"eos_token_id": [378, 3, 4]}})  # 378: <|endoftext|>, whose name readers know
    if (many.get("tokenizer.ggml.eot_token_id"), many.get("tokenizer.ggml.eom_token_id")) != (3, 4):
        wrong("an end that readers know takes the place of another")
    only_config = {CONFIG: {"eos_token_id": [2, 5]}, WORDS: {"eos_token": None}}
    ids = keys_of("biases", only_config)
    if (ids.get("tokenizer.ggml.eos_token_id"), ids.get("tokenizer.ggml.eot_token_id")) != (2, 5):
        wrong("a list of ends in config.json is not read:", ids.get("tokenizer.ggml.eos_token_id"))
    named = {CONFIG: {"eos_token_id": None}, WORDS: {"eos_token": None}, MAP: {"eos_token": {"content": "<|endoftext|>"}}}
    by_map = keys_of("biases", named).get("tokenizer.ggml.eos_token_id")
    if by_map != keys_of("biases", {WORDS: {"eos_token": "<|endoftext|>"}}).get("tokenizer.ggml.eos_token_id") or by_map is None:
        wrong("special_tokens_map.json is not read:", by_map)
    for what, changes in [("nulls", {CONFIG: {"rope_scaling": None, "sliding_window": None, "head_dim": None}}),
                          ("the other name of SiLU", {CONFIG: {"hidden_act": "swish"}}),
                          ("no padding", {CONFIG: {"pad_token_id": -1}}),
                          ("a scaling that is none", {CONFIG: {"rope_scaling": {"rope_type": "default", "factor": 2}}}),
                          ("the base twice", {CONFIG: with_first("rope_theta", str(theta or 10000.0))}),
                          ("a byte order mark", {CONFIG: lambda t: "\ufeff" + t, TOKENS: lambda t: "\ufeff" + t}),
                          ("UTF-16", {CONFIG: lambda t: ("\ufeff" + t).encode("utf-16-le"),
                                      TOKENS: lambda t: ("\ufeff" + t).encode("utf-16-be")})]:
        keys = keys_of("biases", changes)
        if keys != usual:
            wrong(what, "make another file:", [k for k in usual if keys.get(k) != usual[k]])


golden = os.path.join(tmp, "golden")
os.mkdir(golden)
subprocess.run([make_toy, "--golden", golden], check=True)
kinds()
contents()
same_meaning()
command.done()
