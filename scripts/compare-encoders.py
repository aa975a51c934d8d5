#!/usr/bin/env python3
"""Compares the texts that drey, llama.cpp and transformers write with models that have an encoder.

    compare-encoders.py DREY MAKE_TOY [--llama LLAMA_COMPLETION] [--seeds N]

Makes seeded toys of T5 and BART, whose weights are turned into F32, and writes the likeliest 40
tokens for each of a few inputs: drey on its float tier, llama.cpp (T5 alone) from the same file
with a cache of F32, transformers (with torch) from the same numbers by its own names. Prints for
each toy how many texts are the same, and where the others part. Not part of the tests: they do
without torch.
"""
import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from gguf_file import Gguf, header

HERE = os.path.dirname(os.path.abspath(__file__))
N_TOKENS, CONTEXT = 40, 256
INPUTS = ["translate the tree", "a token of the target is not a draft", "return None", "hello world " * 12,
          "import print and self: the 12 trees are helpful."]


def load(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3].replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


goldens = load(os.path.join(HERE, "make-encoder-goldens.py"))
sys.path.append(os.path.join(HERE, "..", "tests", "convert"))
folders = load(os.path.join(HERE, "..", "tests", "convert", "hub_folder.py"))


def numbers_of(file):
    return {name.decode(): goldens._toys.tensor(file, file.base + offset, dims, kind).astype("<f4")
            for name, dims, kind, offset in file.tensors}


def to_f32(path):
    """Rewrites a file, its matrices as F32."""
    file = Gguf(path)
    numbers, tensors, data = numbers_of(file), [], b""
    for name, dims, _, _ in file.tensors:
        tensors.append((name, dims, 0, len(data)))
        data += numbers[name.decode()].tobytes()
        data += bytes(-len(data) % 32)
    with open(path, "wb") as out:
        out.write(header(file.keys, tensors) + data)


def run(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode("utf-8", "replace").strip().split("\n")[-2:])
    return done.stdout


def drey_text(args, path, text):
    return run(args.drey, "run", "-m", path, "-p", text, "-n", str(N_TOKENS), "--ignore-eos", "-d", "none", "-q",
               "--cpu", "float", "-c", str(CONTEXT))


def llama_text(args, path, text):
    """The longest of five: it may end before all of its output is written. It keeps the blank that
    SentencePiece puts in front of a text."""
    texts = [run(args.llama, "-m", path, "-p", text, "-n", str(N_TOKENS), "--ignore-eos", "--temp", "0", "-no-cnv",
                 "--no-display-prompt", "-c", str(CONTEXT), "-t", "1", "-ctk", "f32", "-ctv", "f32", "-fa", "off",
                 "--no-warmup") for _ in range(5)]
    return max(texts, key=len).removeprefix(b" ")


def their_model(kind, path, keys, folder):
    """The file as a folder that transformers reads, and the decoder's first tokens."""
    from transformers import AutoModelForSeq2SeqLM
    folders.make_folder(path, folder)
    given = [keys[f"{kind}.decoder_start_token_id"]]
    forced = keys.get(f"{kind}.forced_bos_token_id")
    return AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), given + ([] if forced is None else [forced])


def their_text(args, path, model, given, text):
    import torch
    ids = json.loads(run(args.drey, "tokenize", "-m", path, "--bos", text=text.encode()))
    out = list(given)
    with torch.no_grad():
        state = model.get_encoder()(torch.tensor([ids]))
        for _ in range(N_TOKENS):
            logits = model(encoder_outputs=state, decoder_input_ids=torch.tensor([out])).logits[0, -1]
            out.append(int(logits.argmax()))
    return run(args.drey, "tokenize", "-m", path, "--ids", text=json.dumps(out[len(given):]).encode()).rstrip(b"\n")


def same_bytes(a, b):
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def compare(what, ours, theirs):
    """theirs: a text of an input."""
    same, parts = 0, []
    try:
        for text, own in ours.items():
            other = theirs(text).rstrip(b"\n")
            same += own == other
            if own != other:
                parts.append(f"{same_bytes(own, other)} of {len(own)}")
    except RuntimeError as error:
        return f"{what}: {error}"
    return f"{what}: {same} of {len(ours)} the same" + (f", bytes before they part: {'; '.join(parts)}" if parts else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("drey")
    parser.add_argument("make_toy")
    parser.add_argument("--llama", help="llama-completion")
    parser.add_argument("--seeds", type=int, default=4)
    args = parser.parse_args()
    torch = importlib.util.find_spec("torch") and importlib.util.find_spec("transformers")
    for kind in ("t5", "bart"):
        for seed in range(args.seeds):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "toy.gguf")
                run(args.make_toy, "--" + kind, path, str(2 + seed % 3), str(seed * 0.3))
                to_f32(path)
                file = Gguf(path)
                keys = {name.decode(): value for name, _, value in file.keys}
                ours = {text: drey_text(args, path, text).rstrip(b"\n") for text in INPUTS}
                print(f"{kind} {seed}, {keys[kind + '.block_count']} layers:", flush=True)
                if args.llama and kind == "t5":
                    print("  " + compare("llama.cpp", ours, lambda text: llama_text(args, path, text)))
                if torch:
                    model, given = their_model(kind, path, keys, os.path.join(folder, "saved"))
                    print("  " + compare("transformers", ours,
                                         lambda text: their_text(args, path, model, given, text)))


if __name__ == "__main__":
    sys.exit(main())
