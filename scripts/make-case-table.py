#!/usr/bin/env python3
"""Makes src/template/case_table.h: which characters Python's str.upper and str.lower change, and
into what.

    scripts/make-case-table.py > src/template/case_table.h

Runs of characters whose change is the same distance are a line each (step 2: every other one);
characters that become several are listed one by one.
"""
import sys
import unicodedata


def runs(change):
    changed = {}
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        other = change(chr(code))
        if len(other) == 1 and ord(other) != code:
            changed[code] = ord(other) - code
    out, codes = [], sorted(changed)
    while codes:
        first = codes[0]
        best = [first]
        for step in (1, 2):
            run = [first]
            while changed.get(run[-1] + step) == changed[first]:
                run.append(run[-1] + step)
            if len(run) > len(best):
                best, best_step = run, step
        out.append((first, best[-1], changed[first], best_step if len(best) > 1 else 1))
        taken = set(best)
        codes = [c for c in codes if c not in taken]
    return sorted(out)


def specials(change):
    return [(code, change(chr(code))) for code in range(0x110000)
            if not 0xD800 <= code < 0xE000 and len(change(chr(code))) > 1]


def table(kind, name, items):
    """Items of C, as many on a line as fit."""
    print(f"static const {kind} {name}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 1 > 100:
            print(line)
            line = "   "
        line += " " + item
    print(line)
    print("};")


def rows(name, items):
    table("case_run", name, ["{0x%X, 0x%X, %d, %d}," % item for item in items])


def utf8_literal(text):
    return "".join("\\x%02x" % b if b >= 0x80 else '""%c""' % b for b in text.encode())


def main():
    print("""/* Made by scripts/make-case-table.py (Unicode %s): upper and lower case as Python has them. */
#ifndef DREY_TEMPLATE_CASE_TABLE_H
#define DREY_TEMPLATE_CASE_TABLE_H

#include <stdint.h>

/* The characters first, first + step, ... last become the character whose code is greater by
 * `by`. */
typedef struct case_run {
    uint32_t first, last;
    int32_t by, step;
} case_run;

typedef struct case_special {
    uint32_t code;
    const char *text; /* UTF-8 */
} case_special;

/* clang-format off */""" % unicodedata.unidata_version)
    rows("upper_runs", runs(str.upper))
    rows("lower_runs", runs(str.lower))
    print("/* Those that become several in upper case; in lower case there is only U+0130. */")
    table("case_special", "upper_specials",
          ['{0x%X, "%s"},' % (code, utf8_literal(text)) for code, text in specials(str.upper)])
    assert [code for code, _ in specials(str.lower)] == [0x130]
    print("/* clang-format on */\n\n#endif")


if __name__ == "__main__":
    sys.exit(main())
