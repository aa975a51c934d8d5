#!/usr/bin/env python3
"""Makes src/template/case_table.h: which characters Python's str.upper and str.lower change, and
into what.

    scripts/make-case-table.py > src/template/case_table.h

Runs of characters whose change is the same distance are one entry (step 2: every other one).
Characters that become several are runs as well: the first of them, and what follows it.
"""
import sys
import unicodedata

CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def changes(change):
    return {code: ord(change(chr(code))) for code in CODES
            if len(change(chr(code))) == 1 and change(chr(code)) != chr(code)}


def runs(changes):
    distance = {code: other - code for code, other in changes.items()}
    out, codes = [], sorted(distance)
    while codes:
        first = codes[0]
        best, best_step = [first], 1
        for step in (1, 2):
            run = [first]
            while distance.get(run[-1] + step) == distance[first]:
                run.append(run[-1] + step)
            if len(run) > len(best):
                best, best_step = run, step
        out.append((first, best[-1], distance[first], best_step))
        codes = sorted(set(codes) - set(best))
    return sorted(out)


def specials(change):
    out = []
    for code in CODES:
        text = change(chr(code))
        if len(text) == 1:
            continue
        if out and out[-1][1] + 1 == code and out[-1][3] == text[1:] and \
                out[-1][2] + code - out[-1][0] == ord(text[0]):
            out[-1][1] = code
        else:
            out.append([code, code, ord(text[0]), text[1:]])
    return out


def literal(text):
    return '"' + "".join("\\x%02x" % b if b >= 0x80 else '""%c""' % b for b in text.encode()) + '"'


def rows(declaration, items):
    print(f"static const {declaration}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) > 99:
            print(line)
            line = "   "
        line += " " + item
    print(line)
    print("};")


def main():
    upper, lower = changes(str.upper), changes(str.lower)
    both = {code: other for code, other in upper.items() if lower.get(other) == code}
    tables = {"both_ways": both,
              "only_to_upper": {code: other for code, other in upper.items() if code not in both},
              "only_to_lower": {code: other for code, other in lower.items()
                                if both.get(other) != code}}
    print("""/* Made by scripts/make-case-table.py (Unicode %s): upper and lower case as Python has them. */
#ifndef DREY_TEMPLATE_CASE_TABLE_H
#define DREY_TEMPLATE_CASE_TABLE_H

#include <stdint.h>

/* The characters first, first + step, ... last become the character whose code is greater by
 * `by`; those of both_ways are upper case then, and go back the same way. */
typedef struct case_run {
    uint32_t first, last;
    int32_t by, step;
} case_run;

/* The characters first, ... last become to, to + 1, ..., each with this text after it. */
typedef struct case_special {
    uint32_t first, last, to;
    const char *after; /* UTF-8 */
} case_special;

/* clang-format off */""" % unicodedata.unidata_version)
    for name, table in tables.items():
        rows(f"case_run {name}", ["{0x%X, 0x%X, %d, %d}," % run for run in runs(table)])
    print("/* Characters that become several in upper case; in lower case there is U+0130 alone. */")
    rows("case_special upper_specials",
         ["{0x%X, 0x%X, 0x%X, %s}," % (*run[:3], literal(run[3])) for run in specials(str.upper)])
    assert [run[0] for run in specials(str.lower)] == [0x130]
    print("/* clang-format on */\n\n#endif")


if __name__ == "__main__":
    sys.exit(main())
