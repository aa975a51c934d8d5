#!/usr/bin/env python3
"""Writes ggml_types.csv: number, name, block elements and block bytes of every tensor type, as the
Python package `gguf` (pip install gguf; 0.17 or later) knows them. Q8_1 is left out: it never lies
in a file, and that package gives the size it had in 2023.

    python3 make_ggml_types.py > ggml_types.csv
"""
import gguf

for kind in gguf.GGMLQuantizationType:
    if kind.name != "Q8_1":
        print(int(kind), kind.name, *gguf.GGML_QUANT_SIZES[kind], sep=",")
