#!/usr/bin/env python3
"""Makes tests/data/logits/NAME.txt: what an independent implementation computes for a GGUF model.

    make-logit-goldens.py MODEL.gguf OUT.txt TEXT.txt
    make-logit-goldens.py TOY.gguf OUT.txt             (a toy: token ids by a formula, no text)

Toys are written by `make_toy --golden DIR`. Those with biases or further RoPE keys, which
transformers does not read from a GGUF file, are made by make-toy-goldens.py.

Needs the public packages torch, transformers, gguf and tokenizers (made with 2.4.1, 4.46.3, 0.10.0
and 0.20.3), and accelerate and sentencepiece, which these load. transformers dequantises the file's
tensors with the gguf package and runs its own model code on the CPU; here in double precision, keys
and values too, so that what is left is the reference's own definition. Nothing of drey takes part.

The output, one item after another, numbers separated by blanks:
    model FILE BYTES
    prompt N                    then N token ids
    position P                  logits after prompt[P], for the prompt above
      top ID LOGIT              20 times, best first
      other ID LOGIT            50 times, ids spread over the vocabulary
    text N                      then N token ids of TEXT (of a toy: the prompt again)
    logprob_sum X               natural log, of ids[1..N) given what comes before each
    perplexity X                exp(-logprob_sum / (N - 1))
"""
import os
import sys

import gguf
import tokenizers
import torch
import transformers

from golden_logits import toy_ids, write_model, write_prompt, write_text

PROMPTS = [
    "The capital of France is Paris, and the capital of Italy is",
    "#include <stdio.h>\n\n/* Prints the first n prime numbers. */\nint main(int argc, char **argv)\n{\n"
    "    int n = argc > 1 ? atoi(argv[1]) : 10;\n    for (int i = 2, found = 0; found < n; i++) {\n"
    "        int prime = 1;\n        for (int k = 2; k * k <= i; k++) {\n            if (i % k == 0) {\n"
    "                prime = 0;\n                break;\n            }\n        }\n        if (prime) {\n",
    "Zwei Eichhörnchen saßen auf einem Ast. 第一只松鼠说:\u201c今天很冷。\u201d Le deuxième répondit : «",
]
DIGITS_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+")


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
    folder, name = os.path.split(os.path.abspath(path))
    config = transformers.AutoConfig.from_pretrained(folder, gguf_file=name)
    tensors = {t.name: t for t in reader.tensors}

    def key(what):
        field = reader.fields.get(f"{config.model_type}.{what}")
        return field and field.parts[field.data[0]]

    if key("attention.key_length") is not None:
        config.head_dim = int(key("attention.key_length")[0])
    scaling = key("rope.scaling.type")
    if scaling is not None:
        config.rope_scaling = {"rope_type": bytes(scaling).decode(),
                               "factor": float(key("rope.scaling.factor")[0])}
        # For transformers' yarn this is the context before scaling.
        config.max_position_embeddings = int(key("rope.scaling.original_context_length")[0])
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=name, config=config, torch_dtype=torch.float64,
        attn_implementation="eager")
    if "output.weight" not in tensors:
        model.lm_head.weight = model.model.embed_tokens.weight  # tied; transformers does not see it
    if "rope_freqs.weight" in tensors:
        model.model.rotary_emb.inv_freq /= torch.tensor(tensors["rope_freqs.weight"].data.copy())
    print(config)
    return model.eval()


def run(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].numpy()


def main():
    path, out_path = sys.argv[1:3]
    torch.set_num_threads(2)
    reader = gguf.GGUFReader(path)
    model = load(path, reader)
    with open(out_path, "w", encoding="ascii") as out:
        write_model(out, path)
        if len(sys.argv) == 3:
            prompts = [toy_ids(model.config.vocab_size)]
            text = prompts[0]
        else:
            tok = file_tokenizer(reader)
            prompts = [tok.encode(p, add_special_tokens=False).ids for p in PROMPTS]
            with open(sys.argv[3], encoding="utf-8") as f:
                text = tok.encode(f.read(), add_special_tokens=False).ids
        for ids in prompts:
            write_prompt(out, run(model, ids), ids)
        write_text(out, run(model, text), text)


if __name__ == "__main__":
    main()
