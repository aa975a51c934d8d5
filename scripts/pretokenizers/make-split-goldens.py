#!/usr/bin/env python3
"""Makes tests/data/splits.txt: how the pre-tokenizers of published models divide texts, by Hugging
Face `tokenizers`, which has another engine for expressions (Oniguruma).

    pip install tokenizers==0.23.3
    scripts/pretokenizers/make-split-goldens.py

The chains are in pretokenizer_chains.py. Lines of the file: "text HEX"; then for each rule "rule
NAME" and a line for each text with the lengths of its words in bytes, or "?".
"""
import os
import random
import sys

from tokenizers import Regex, pre_tokenizers

from pretokenizer_chains import CHAINS

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "data")

def divider(chain):
    steps = [step if isinstance(step, tuple) else (step, "isolated") for step in chain]
    sequence = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(e), behavior) for e, behavior in steps])

    def divide(text):
        """The lengths of the words, in bytes."""
        pieces = sequence.pre_tokenize_str(text)
        assert "".join(p for p, _ in pieces) == text, (text, pieces)
        return [len(p.encode()) for p, _ in pieces]
    return divide


# Every kind of character next to every other.
POOL = ["a", "b", "the", "The", "X", "XY", "\u00e9", "\u00df", "\u01c5", "\u02b0", "\u0391", "\u03b2", "\u0416", "\u05d0", "\u0645",
        "\u064e", "\u0301", "\u0928", "\u094d", "\u0e01", "\u0e31", "\u4e2d", "\u56fd", "\u3005", "\u3007", "\u3042", "\u30ab", "\ud55c",
        "\u1112\u1161", "\u3131", "\u3105", "\U00020000", "1", "22", "333", "4444", "55555", "1234567", "\u0663", "\u0661\u0662\u0663\u0664",
        "\u00bd", "\u2163", "\u00b2", " ", "  ", "   ", "    ", "\t", "\n", "\n\n", "\r\n", "\r", "\u00a0", "\u3000", "\u2003", "\u0085",
        "\u2028", "'s", "'S", "'ll", "'LL", "'", "'t", "'re", "\u2019s", ".", ",", "!", "?", "...", "/", "//", "-", "_", "(", ")", "{", "\"",
        "$", "+", "=", "<", ">", "|", "`", "~", "^", "\u3002", "\uff0c", "\uff01", "\u2026", "\u2014", "\u201c", "\u0964", "\u060c", "\u20ac",
        "\U0001f600", "\U0001f468\u200d\U0001f469", "\u2764\ufe0f", "\u200b", "\u200d", "\x00", "\x1b", "\u0378", "\ue000", "\ufeff"]
PLAIN = ["", " ", "a", "1", "\n", "if (x1 == 42) {\r\n\treturn \"gr\u00f6\u00dfe\"; // 12345\r\n}",
         "def f(a_b2, *args):\n    return a_b2**10 + 3.14e-5", "  leading and   many    spaces\t\ttabs\n\n\nlines ",
         "email@example.com https://a.b/c?d=e&f=%20#g", "it's I'M we've THEY'LL he'D 'tis", "camelCase PascalCase HTTPServer iOS",
         "\u65e5\u672c\u8a9e\u3068English\u6df7\u5728 123\u5186\u3001\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8",
         "1 12 123 1234 12345 123456 1234567 12345678", "a1b22c333d4444 x123456y 7890_ 12345abc", "1,234,567.89 -12345 (123)",
         "\n \n  \n\n   x", "a \r\n b\n\r c\r", "!\n\n?\r\n/\n", "   ", "x   ", "   x", "<sentinel:12> IMGIMGABCZ", "a" * 40 + " " * 40 + "1" * 40]


def texts(n, seed):
    rng = random.Random(seed)
    yield from PLAIN
    for _ in range(n):
        yield "".join(rng.choice(POOL) for _ in range(rng.randint(2, 14)))


def divisible(text, name):
    """superbpe does not cut digits off from numerals that follow; drey does."""
    return name != "superbpe" or not any(
        a.isdecimal() != b.isdecimal() and a.isnumeric() and b.isnumeric() for a, b in zip(text, text[1:]))


def main():
    path = os.path.join(ROOT, "splits.txt")
    all_texts = list(dict.fromkeys(texts(240, 20261128)))
    with open(path, "w") as f:
        f.write("# made by scripts/pretokenizers/make-split-goldens.py: texts in hex, then each rule's lengths of words\n")
        for text in all_texts:
            f.write("text %s\n" % text.encode().hex())
        for name, chain in CHAINS.items():
            divide = divider(chain)
            f.write("rule %s\n" % name)
            for text in all_texts:
                f.write(" ".join(map(str, divide(text))) if divisible(text, name) else "?")
                f.write("\n")
    print(path, len(all_texts), "texts,", len(CHAINS), "rules,", os.path.getsize(path), "bytes")


if __name__ == "__main__":
    sys.exit(main())
