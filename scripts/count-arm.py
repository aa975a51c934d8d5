#!/usr/bin/env python3
"""Counts the instructions of Arm's matrix kernels under qemu, next to what they need at least.

    scripts/count-arm.py BUILD_DIR [--classes] [--csv FILE] [--most RATIO]

Builds count_products for 64-bit Arm in BUILD_DIR (tests/kernel/cross) and runs it under
qemu-aarch64, whose trace names every block of code before it is executed. What is between two marks
is one call of a kernel: the count is exact and the same in every run. It is no speed: what an
instruction costs is not in it.

A unit is 16 multiply-adds, what one SDOT does (SMMLA does two). The bound is what no arrangement of
these kernels avoids, without addresses, loops, copies between registers and what is prepared for a
whole tile. --most RATIO fails where a count at 64 rows is above RATIO times its bound.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
K, GROUP_ROWS = 1024, 32  # of count_products.c
TIERS = ("i8mm", "dotprod", "neon")
CLASSES = ("product", "load", "store", "stack", "vector", "scalar")

# Of a type: weights of a block, bits of a weight in memory; instructions that unpack a register of
# 16 weights (a field at the top needs no mask, one at the bottom no shift); products of how many
# words fit into 16 bits on neon; sub-blocks; minima; whether an offset is a product of the
# scales with sums of activations.
Type = collections.namedtuple("Type", "block bits unpack fits subs minima offset")
TYPES = {
    "Q4_0": Type(32, 4, 1, 8, 0, False, False),
    "Q4_1": Type(32, 4, 1, 8, 0, True, False),
    "Q5_0": Type(32, 5, 1 + 1.875, 4, 0, False, False),  # nibble; shift, insert a bit
    "Q5_1": Type(32, 5, 1 + 1.875, 4, 0, True, False),
    "Q8_0": Type(32, 8, 1, 1, 0, False, False),  # the sign bit
    "IQ4_NL": Type(32, 4, 2, 1, 0, False, False),  # nibble, table
    "MXFP4": Type(32, 4, 2, 8, 0, False, False),
    "Q2_K": Type(256, 2, 1.5, 4, 16, True, False),
    "Q3_K": Type(256, 3, 1.5 + 1.875, 4, 16, False, True),
    "Q4_K": Type(256, 4, 1, 8, 8, True, False),
    "Q5_K": Type(256, 5, 1 + 1.875, 4, 8, True, False),
    "Q6_K": Type(256, 6, 1 + 1.75, 2, 16, False, True),
    "IQ4_XS": Type(256, 4, 2, 1, 8, False, False),
}


def bound(tier, name, rows):
    """Instructions per unit: of a register of 4 rows, a block, and a step of up to 8 tokens."""
    t, tokens = TYPES[name], min(rows, 8)
    pairs = tier == "i8mm" and tokens > 1
    words = t.block / 4
    units = words * tokens
    if tier == "neon":  # two products of halves per word; their sums of 16 bits then are added up
        product = 2 + 2 / max(t.fits, 2)
        acts = 1  # a word of a token, in all lanes
    else:
        product = 0.5 if pairs else 1
        acts = 1 / 8  # four words a register, two registers a load
    count = product * units
    count += acts * units * max(tokens, 2) / 16  # shared by what 16 registers of sums hold
    packed = t.bits * t.block / 32
    count += packed * (2 if pairs else 1)  # loads; two words zipped
    count += t.unpack * words
    count += 2 + (2 if t.minima else 0)  # scales of the block: load, convert
    count += (5 if t.minima else 3) * tokens  # scale, convert, add; of the minimum: scale, add
    if t.block == 32:  # sums begin; float sums stay in registers for 256
        return (count + tokens + 2 * tokens / 8) / units
    count += t.subs * (2 + tokens)  # a scale: out of its word, a multiply-add per token
    count += 2 * tokens + 2 * tokens  # two sums begin; float sums in and out
    if t.minima or t.offset:  # bytes of scales or minima with two parts of sums of activations
        count += t.subs / 4 * 2 * product * tokens + t.subs / 4 + 2 * tokens
    return count / units


SUMS_OF_16 = re.compile(r"(s|u)m[ul]l?[al]l?2?\s+v\d+\.8h|(s|u)ada?lp|(s|u)addlp|addp\s+v\d+\.(8h|4s)")


def class_of(word, text):
    """The disassembler does not know SDOT and SMMLA: by their bits."""
    if word & 0xBF20FC00 == 0x0E009400 or word & 0xBF00F400 == 0x0F00E000 or word & 0xFFE0FC00 == 0x4E80A400:
        return "product"
    if SUMS_OF_16.match(text):
        return "product"
    if word >> 25 & 0b0101 == 0b0100:
        return "stack" if "[sp" in text else "store" if text.startswith("st") else "load"
    return "vector" if word >> 25 & 0b0111 == 0b0111 else "scalar"


def count(qemu, program):
    """Yields (tier, type, rows, instructions by class)."""
    instruction = re.compile(r"0x[0-9a-f]+:  ([0-9a-f]{8})  (.*)")
    blocks, executed, block, counting = {}, [], None, False
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        cases = subprocess.run([qemu, "-cpu", "max", "-d", "in_asm,exec,nochain", "-D", log, program, *TIERS], check=True,
                               stdout=subprocess.PIPE, text=True).stdout.splitlines()
        with open(log) as f:
            for line in f:
                found = instruction.match(line)
                if line.startswith("IN:"):
                    block = collections.Counter()
                elif found:
                    if not block:
                        blocks[int(line[:line.index(":")], 16)] = block
                    block[class_of(int(found[1], 16), found[2])] += 1
                elif line.startswith("Trace"):
                    if line.rstrip().endswith(" count_mark"):
                        counting = not counting
                        executed += [collections.Counter()] if counting else []
                    elif counting:
                        executed[-1] += blocks[int(line.split("/")[1], 16)]
    assert len(cases) == len(executed) and not counting, f"{len(cases)} cases, {len(executed)} between marks"
    for case, classes in zip(cases, executed):
        tier, name, rows = case.split()
        yield tier, name, int(rows), classes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="where to build")
    parser.add_argument("--classes", action="store_true", help="also what kinds of instructions they are")
    parser.add_argument("--csv", help="a file for all numbers")
    parser.add_argument("--most", type=float, help="the most that a count at 64 rows may be, in bounds")
    args = parser.parse_args()
    qemu = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if not qemu or not shutil.which("aarch64-linux-gnu-gcc"):
        print("skipped: this needs qemu-user and gcc-aarch64-linux-gnu")
        return 77
    subprocess.run(["cmake", "-S", f"{ROOT}/tests/kernel/cross", "-B", args.build, "-G", "Ninja", "--no-warn-unused-cli",
                    f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/toolchain-aarch64.cmake"], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", args.build, "--target", "count_products"], check=True, stdout=subprocess.DEVNULL)
    lines, above = ["tier,type,rows,instructions per unit,bound," + ",".join(CLASSES)], 0
    print("instructions per 16 multiply-adds (under an emulator: counts, not speeds)")
    for tier, name, rows, classes in count(qemu, os.path.join(args.build, "count_products")):
        units = rows * K * GROUP_ROWS / 16
        each, least = sum(classes.values()) / units, bound(tier, name, rows)
        parts = [classes[c] / units for c in CLASSES]
        high = bool(args.most and rows == 64 and each > args.most * least)
        above += high
        print(f"{tier:8}{name:7}{rows:3} {each:7.2f}  bound {least:5.2f}  {each / least:4.2f}x"
              + "".join(f"  {c} {p:.2f}" for c, p in zip(CLASSES, parts) if args.classes) + ("  too many" if high else ""))
        lines.append(f"{tier},{name},{rows},{each:.3f},{least:.3f}," + ",".join(f"{p:.3f}" for p in parts))
    if args.csv:
        with open(args.csv, "w") as f:
            f.write("\n".join(lines) + "\n")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
