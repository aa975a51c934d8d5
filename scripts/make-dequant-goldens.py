#!/usr/bin/env python3
"""Writes tests/data/dequant/TYPE.bin: seeded blocks of each tensor type and their values.

A file is N_BLOCKS raw blocks, then the float32 values that gguf.quants.dequantize (the GGUF
authors' own Python implementation) gives for them. Needs the packages numpy and gguf.
Usage: make-dequant-goldens.py [FOLDER]
"""
import pathlib
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

N_BLOCKS = 3

# Where the half-precision numbers of a block lie: random bytes would make some of them infinite.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "IQ4_NL": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_XS": [0], "F16": [0], "BF16": [], "F32": [], "MXFP4": [],
    "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "IQ1_S": [0],
    "IQ1_M": [], "TQ1_0": [52], "TQ2_0": [64], "NVFP4": [],
}


def blocks_of(name, rng):
    """N_BLOCKS blocks of random bytes with finite scales, the last with a denormal one."""
    block_k, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    n = N_BLOCKS * (256 // block_k if block_k < 32 else 1)
    if name in ("F32", "BF16"):
        values = rng.standard_normal(n).astype(np.float32)
        raw = values.view(np.uint8).reshape(n, 4)
        return raw if name == "F32" else raw[:, 2:].copy()
    blocks = rng.integers(0, 256, (n, block_bytes), dtype=np.uint8)
    for offset in HALVES[name]:
        halves = rng.standard_normal(n).astype(np.float16)
        halves[-1] = np.float16(3e-7)
        blocks[:, offset:offset + 2] = halves.view(np.uint8).reshape(n, 2)
    if name == "MXFP4":  # an exponent: 255 stands for no number
        blocks[:, 0] = [0, 120, 254]
    if name == "NVFP4":  # scales: the special ones, and the least and the largest among others
        blocks[:, :4] = [[0, 0x7F, 1, 0x7E], [7, 8, 9, 0x38], [0x40, 0x31, 0x2F, 0x21]]
    if name == "IQ1_M":  # a half in the top nibbles of four numbers
        halves = rng.standard_normal(n).astype(np.float16)
        halves[-1] = np.float16(3e-7)
        for i, half in enumerate(halves.view(np.uint16)):
            for j in range(4):
                blocks[i, 49 + 2 * j] = blocks[i, 49 + 2 * j] & 15 | (int(half) >> 4 * j & 15) << 4
    return blocks


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                          pathlib.Path(__file__).parent.parent / "tests/data/dequant")
    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(HALVES):
        blocks = blocks_of(name, np.random.default_rng(seed))
        values = quants.dequantize(blocks.reshape(-1) if name != "F32" else
                                   blocks.reshape(-1).view(np.float32),
                                   GGMLQuantizationType[name])
        (folder / f"{name}.bin").write_bytes(
            blocks.tobytes() + np.ascontiguousarray(values, dtype="<f4").tobytes())


main()
