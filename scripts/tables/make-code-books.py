#!/usr/bin/env python3
"""Writes src/kernel/code_books.c's table: the code books of the IQ types, from the package gguf.

A book's entries are rows of digits, one per weight, and in rising order of the number that the
digits make, the first weight's being the lowest. So a book is a set: bit n says that number n is in
it. Usage: make-code-books.py, which prints the words of all books in the order of the file.
"""
import numpy as np
from gguf import quants

BOOKS = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S")


def words_of(name):
    """The set of a book, 64 numbers per word."""
    book = getattr(quants, name)
    book.init_grid()
    grid = np.asarray(book.grid).reshape(book.grid_shape)
    levels = np.unique(grid)
    digits = np.searchsorted(levels, grid)
    numbers = (digits * len(levels) ** np.arange(grid.shape[1])).sum(axis=1)
    assert (np.diff(numbers) > 0).all(), name
    bits = np.zeros(-(-len(levels) ** grid.shape[1] // 64) * 64, dtype=np.uint8)
    bits[numbers] = 1
    return np.packbits(bits, bitorder="little").view("<u8")


def main():
    for name in BOOKS:
        words = words_of(name)
        print(f"    /* {name} */")
        for i in range(0, len(words), 4):
            print("    " + " ".join(f"0x{word:016x}u," for word in words[i:i + 4]))


main()
