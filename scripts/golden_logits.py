"""Golden values of logits: the files of tests/data/logits, whose form make-logit-goldens.py
describes."""
import math
import os

import numpy as np

TOY_IDS = 140
POSITIONS = [0, 1, 10, 40, 63, 64, 128]  # and the last; drey folds keys in blocks of 64


def toy_ids(n_vocab):
    return [(i * 7919 + 13) % n_vocab for i in range(TOY_IDS)]


def write_model(out, path):
    print("model", os.path.basename(path), os.path.getsize(path), file=out)


def write_prompt(out, logits, ids, positions=tuple(POSITIONS)):
    """logits: [position][token], in double precision."""
    n_vocab, last = logits.shape[1], len(ids) - 1
    print("prompt", len(ids), file=out)
    print(*ids, file=out)
    for position in [p for p in positions if p < last] + [last]:
        print("position", position, file=out)
        row = logits[position]
        for token in np.argsort(-row, kind="stable")[:20]:
            print(f"top {token} {row[token]:.6f}", file=out)
        for i in range(50):
            token = i * (n_vocab - 1) // 49
            print(f"other {token} {row[token]:.6f}", file=out)


def write_text(out, logits, ids):
    last, most = len(ids) - 1, logits.max(axis=1)
    log_sums = most + np.log(np.exp(logits - most[:, None]).sum(axis=1))
    total = sum(logits[i][ids[i + 1]] - log_sums[i] for i in range(last))
    print("text", len(ids), file=out)
    print(*ids, file=out)
    print(f"logprob_sum {total:.6f}", file=out)
    print(f"perplexity {math.exp(-total / last):.6f}", file=out)
