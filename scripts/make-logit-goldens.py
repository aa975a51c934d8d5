#!/usr/bin/env python3
"""Makes tests/data/logits/NAME.txt: what an independent implementation computes for a GGUF model.

    make-logit-goldens.py MODEL.gguf TEXT.txt OUT.txt

Needs the public packages torch, transformers, gguf and tokenizers (made with 2.4.1, 4.46.3, 0.10.0
and 0.20.3). transformers dequantises the file's tensors with the gguf package and runs its own
model code on the CPU; here in double precision, so that what is left is the reference's own
definition. Nothing of drey takes part.

Keys and values are rounded to half precision where they enter the cache, as drey's cache is F16 by
definition; the perplexity is given with and without that.

The output, one item after another, numbers separated by blanks:
    model FILE BYTES
    prompt N                    then N token ids
    position P                  logits after prompt[P], for the prompt above
      top ID LOGIT              20 times, best first
      other ID LOGIT            50 times, ids spread over the vocabulary
    text N                      then N token ids of TEXT
    logprob_sum X               natural log, of ids[1..N) given what stands before each
    logprob_sum_float_cache X   the same without rounding keys and values
    perplexity X                exp(-logprob_sum / (N - 1))
"""
import math
import os
import sys

import gguf
import tokenizers
import torch
import transformers

PROMPTS = [
    "The capital of France is Paris, and the capital of Italy is",
    "#include <stdio.h>\n\n/* Prints the first n prime numbers. */\nint main(int argc, char **argv)\n{\n"
    "    int n = argc > 1 ? atoi(argv[1]) : 10;\n    for (int i = 2, found = 0; found < n; i++) {\n"
    "        int prime = 1;\n        for (int k = 2; k * k <= i; k++) {\n            if (i % k == 0) {\n"
    "                prime = 0;\n                break;\n            }\n        }\n        if (prime) {\n",
    "Zwei Eichhörnchen saßen auf einem Ast. 第一只松鼠说:\u201c今天很冷。\u201d Le deuxième répondit : «",
]
POSITIONS_PER_PROMPT = 4
DIGITS_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+")


class HalfCache(transformers.DynamicCache):
    """Keys (after RoPE) and values are kept in half precision."""

    def update(self, key, value, layer, kwargs=None):
        return super().update(key.half().to(key.dtype), value.half().to(value.dtype), layer, kwargs)


def file_tokenizer(reader):
    """The file's byte-level BPE, its pre-tokenizer chosen by the name the file gives."""
    def strings(key):
        field = reader.fields[key]
        return [bytes(field.parts[i]).decode("utf-8") for i in field.data]

    vocab = {token: i for i, token in enumerate(strings("tokenizer.ggml.tokens"))}
    merges = [tuple(m.split(" ", 1)) for m in strings("tokenizer.ggml.merges")]
    tok = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, merges))
    pre = tokenizers.pre_tokenizers
    name = strings("tokenizer.ggml.pre")[0]
    if name == "smollm":
        steps = [pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False)]
    elif name == "qwen2":
        steps = [pre.Split(tokenizers.Regex(DIGITS_QWEN2), "isolated"),
                 pre.ByteLevel(add_prefix_space=False, use_regex=False)]
    else:
        sys.exit(f"pre-tokenizer {name} is not known here")
    tok.pre_tokenizer = pre.Sequence(steps)
    return tok


def load(path, reader):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        os.path.dirname(path) or ".", gguf_file=os.path.basename(path), torch_dtype=torch.float64,
        attn_implementation="eager")
    if not any(t.name == "output.weight" for t in reader.tensors):
        model.lm_head.weight = model.model.embed_tokens.weight  # tied; transformers does not see it
    c = model.config
    print(c.model_type, "layers", c.num_hidden_layers, "rms_eps", c.rms_norm_eps, "rope_theta",
          c.rope_theta, "heads", c.num_attention_heads, c.num_key_value_heads)
    return model.eval()


def run(model, ids, cache):
    with torch.no_grad():
        out = model(torch.tensor([ids]), past_key_values=cache, use_cache=True)
    return out.logits[0]


def logprob_sum(logits, ids):
    logp = torch.log_softmax(logits[:-1], dim=-1)
    return float(logp.gather(1, torch.tensor(ids[1:])[:, None]).sum())


def write_prompt(out, logits, ids):
    n_vocab = logits.shape[1]
    print("prompt", len(ids), file=out)
    print(*ids, file=out)
    for k in range(POSITIONS_PER_PROMPT):
        position = (len(ids) - 1) * (k + 1) // POSITIONS_PER_PROMPT
        print("position", position, file=out)
        values, order = torch.sort(logits[position], descending=True, stable=True)
        for value, token in zip(values[:20].tolist(), order[:20].tolist()):
            print(f"top {token} {value:.6f}", file=out)
        for i in range(50):
            token = i * (n_vocab - 1) // 49
            print(f"other {token} {logits[position][token].item():.6f}", file=out)


def main():
    path, text_path, out_path = sys.argv[1:4]
    torch.set_num_threads(2)
    reader = gguf.GGUFReader(path)
    tok = file_tokenizer(reader)
    model = load(path, reader)
    with open(out_path, "w", encoding="ascii") as out:
        print("model", os.path.basename(path), os.path.getsize(path), file=out)
        for prompt in PROMPTS:
            ids = tok.encode(prompt, add_special_tokens=False).ids
            write_prompt(out, run(model, ids, HalfCache()), ids)
        with open(text_path, encoding="utf-8") as f:
            ids = tok.encode(f.read(), add_special_tokens=False).ids
        total = logprob_sum(run(model, ids, HalfCache()), ids)
        exact = logprob_sum(run(model, ids, transformers.DynamicCache()), ids)
        print("text", len(ids), file=out)
        print(*ids, file=out)
        print(f"logprob_sum {total:.6f}", file=out)
        print(f"logprob_sum_float_cache {exact:.6f}", file=out)
        print(f"perplexity {math.exp(-total / (len(ids) - 1)):.6f}", file=out)


if __name__ == "__main__":
    main()
