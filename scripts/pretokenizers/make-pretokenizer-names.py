#!/usr/bin/env python3
"""Makes tests/data/pretokenizers.tsv: every name of tokenizer.ggml.pre that llama.cpp's loader
knows, and what it means there.

    scripts/pretokenizers/make-pretokenizer-names.py LLAMA_CPP_FOLDER

Columns: name, a name of splits.txt with the same rule ("-": none, and why in the last column),
whether whole words are looked up first, whether texts begin with BOS. Then "architecture NAME",
and the names that converters give to its models' vocabularies.
"""
import os
import re
import sys

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "data", "pretokenizers.tsv")
# llama.cpp's types, by the rule of splits.txt that each is.
RULES = {
    "gpt-2": "GPT2 MPT OLMO JAIS TRILLION GRANITE_DOCLING", "qwen2": "QWEN2 STABLELM2 HUNYUAN SOLAR_OPEN GROK_2",
    "smollm": "SMOLLM STARCODER REFACT COMMAND_R CODESHELL EXAONE MINERVA MELLUM2", "llama-bpe": "LLAMA3 DBRX SMAUG CHATGLM4",
    "gpt-4o": "GPT4O MINIMAX_M2 GRANITE_EMB_MULTI", "tekken": "TEKKEN", "qwen35": "QWEN35", "seed-coder": "SEED_CODER",
    "bailingmoe": "BAILINGMOE", "exaone-moe": "EXAONE_MOE", "jais-2": "JAIS2", "minicpm5": "MINICPM5", "laguna": "LAGUNA",
    "kimi-k2": "KIMI_K2", "deepseek-llm": "DEEPSEEK_LLM", "deepseek-coder": "DEEPSEEK_CODER",
    "deepseek-v3": "DEEPSEEK3_LLM HUNYUAN_DENSE JOYAI_LLM", "youtu": "YOUTU", "falcon": "FALCON",
    "bloom": "BLOOM PORO GPT3_FINNISH", "viking": "VIKING", "chameleon": "CHAMELEON", "superbpe": "SUPERBPE",
    "tiny_aya": "TINY_AYA", "afmoe": "AFMOE"}
RULE_OF = {kind: rule for rule, kinds in RULES.items() for kind in kinds.split()}
# A file that names none, or this, has GPT-2's rule here; llama.cpp has one that is no model's.
RULE_OF["DEFAULT"] = "gpt-2"
OTHERS = {kind: "BPE over characters" for kind in ("GEMMA4", "SARVAM_MOE", "WHITESPACE")}
ARCHITECTURES = {
    "llama": "llama-bpe smollm smaug-bpe deepseek-llm deepseek-coder seed-coder tekken pixtral falcon3 minerva-7b megrez "
             "gigachat trillion midm-2.0 mellum minicpm5 viking granite-docling gpt-4o gpt-2 default",
    "qwen2": "qwen2 deepseek-r1-qwen a.x-4.0", "qwen3": "qwen2 deepseek-r1-qwen f2llmv2", "qwen2moe": "qwen2", "qwen3moe": "qwen2",
    "granite": "refact dbrx granite-docling", "granitemoe": "refact dbrx", "gpt-oss": "gpt-4o", "olmoe": "olmo dbrx",
    "gemma2": "default", "gemma3": "default", "gemma4": "default", "phi3": "gpt-4o dbrx default", "gpt2": "gpt-2 jais",
    "eagle3": "llama-bpe qwen2",
    "t5": "default", "bart": "gpt-2 roberta-bpe", "qwen2vl": "qwen2", "qwen3vl": "qwen2", "qwen3vlmoe": "qwen2",
    "qwen3next": "qwen2", "qwen35": "qwen35", "qwen35moe": "qwen35", "qwen4exp": "qwen35", "mistral3": "tekken", "internlm2": "default",
    "smollm3": "smaug-bpe llama-bpe", "seed_oss": "seed-coder", "ernie4_5": "default", "ernie4_5-moe": "default",
    "glm4": "glm4 chatglm-bpe", "glm4moe": "glm4", "hy_v3": "hunyuan hunyuan-dense", "hunyuan-moe": "hunyuan",
    "hunyuan-dense": "hunyuan-dense", "minimax-m2": "minimax-m2", "dots1": "qwen2", "exaone4": "exaone4",
    "exaone-moe": "exaone-moe", "bailingmoe2": "bailingmoe2", "olmo2": "dbrx olmo", "arcee": "llama-bpe",
    "starcoder2": "starcoder", "stablelm": "stablelm2 gpt-2", "command-r": "command-r", "cohere2": "command-r",
    "cohere2moe": "cohere2moe tiny_aya", "phi2": "phi-2 gpt-2", "phimoe": "default", "nemotron": "default tekken",
    "apertus": "tekken", "llama4": "llama4", "afmoe": "afmoe", "step35": "deepseek-v3", "mimo2": "qwen2",
    "laguna": "laguna", "lfm2": "lfm2", "lfm2moe": "lfm2", "nemotron_h": "pixtral tekken llama-bpe",
    "nemotron_h_moe": "pixtral tekken", "granitehybrid": "dbrx refact", "falcon-h1": "falcon-h1 falcon3",
    "deepseek2": "deepseek-llm deepseek-v3 kimi-k2 glm4 tekken", "deepseek32": "deepseek-v3", "glm-dsa": "glm4",
    "mistral4": "tekken"}


def main():
    with open(os.path.join(sys.argv[1], "src", "llama-vocab.cpp"), encoding="utf-8") as f:
        source = f.read()
    begin = source.index("for now, only BPE models have pre-tokenizers")
    part = source[begin:source.index("LLAMA_VOCAB_TYPE_SPM", begin)]
    lines, seen = [], set()
    for branch in re.split(r"\belse\b", part):
        names, kind = re.findall(r'tokenizer_pre == "([^"]+)"', branch), re.search(r"LLAMA_VOCAB_PRE_TYPE_(\w+)", branch)
        for name in names:
            kind_name = kind.group(1)
            rule = RULE_OF.get(kind_name, "-")
            seen.add(name)
            lines.append("\t".join([name, rule, str(int("ignore_merges = true" in branch)),
                                    str(int("add_bos = true" in branch)), "" if rule != "-" else OTHERS[kind_name]]))
    assert len(lines) == len(seen) > 80
    with open(OUT, "w") as f:
        f.write("# made by scripts/pretokenizers/make-pretokenizer-names.py\n" + "\n".join(sorted(lines)) + "\n")
        for name, names in ARCHITECTURES.items():
            assert not set(names.split()) - seen, name
            f.write("architecture %s\t%s\n" % (name, names))
    print(OUT, len(lines), "names")


main()
