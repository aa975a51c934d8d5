#!/usr/bin/env python3
"""Makes src/grammar/unicode/unicode_table.h: the general category and the script of each
character, for \\p{..}.

    scripts/make-unicode-table.py > src/grammar/unicode/unicode_table.h

Each number is the first character of a run, times 32, and the category or script of that run.
Categories are those of Python's unicodedata. It has no scripts: they are those of PyPI's "regex".
"""
import unicodedata

import regex

CATEGORIES = ("Cn Cc Cf Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So "
              "Zl Zp Zs").split()
SCRIPTS = ("Common Inherited Latin Greek Cyrillic Armenian Hebrew Arabic Devanagari Bengali Gurmukhi "
           "Gujarati Tamil Telugu Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Georgian Hangul "
           "Ethiopic Khmer Mongolian Hiragana Katakana Bopomofo Han").split()


def scripts():
    """Script of each character; 0: another one."""
    text = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    out = [0] * 0x110000
    for i, script in enumerate(SCRIPTS, 1):
        for character in regex.findall(rf"\p{{Script={script}}}", text):
            out[ord(character)] = i
    return out


def table(declared, items):
    print(f"static const {declared} = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) > 99:
            print(line)
            line = "   "
        line += item
    print(line.rstrip(",") + "};")


def rows(name, values):
    table(f"uint32_t {name}[]", [f" {code << 5 | value:#x}," for code, value in enumerate(values)
                                 if code == 0 or value != values[code - 1]])


def names(name, values):
    table(f"char {name}[][12]", [f' "{value}",' for value in values])


print(f"/* Made by scripts/make-unicode-table.py (Unicode {unicodedata.unidata_version}): a run's "
      "first character times 32, and\n * its category or script. */")
print("#pragma once\n\n#include <stdint.h>\n\n/* clang-format off */")
names("category_names", CATEGORIES)
names("script_names", ["?"] + SCRIPTS)
rows("category_runs", [CATEGORIES.index(unicodedata.category(chr(code))) for code in range(0x110000)])
rows("script_runs", scripts())
print("/* clang-format on */")
