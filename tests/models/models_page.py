#!/usr/bin/env python3
"""Compares the tables of docs/reference/models.md with the code: its architectures (arch.c), their
toys and goldens, what convert reads, the forms of calls, the names of pre-tokenizers. Says for each
difference what a row should be.
    models_page.py"""
import os
import re
import sys

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
bad = []
ENCODERS = {"T5", "Bart"}  # make-encoder-goldens.py
LOADED = {"Llama", "Qwen2"}  # make-logit-goldens.py, which loads files with transformers
FORM = "| `ARCHITECTURE` | CLASS or definition | yes or - | yes or - | FORMS of calls or - | PRE-TOKENIZERS or - |"


def read(path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def rows_of(page, head):
    """The cells of a table's rows below its heading row."""
    lines = iter(page.splitlines())
    for line in lines:
        if line.startswith(head):
            break
    out = []
    for line in lines:
        if not line.startswith("|"):
            return out
        out.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return out


def listed(cell):
    return [] if cell == "-" else cell.removesuffix(" ...").split(", ")


page = read("docs/reference/models.md")
archs = re.findall(r'\{\.name = "([^"]+)"', read("src/model/arch.c"))
converted = set(re.findall(r'\.?arch_name = "([^"]+)"', read("src/convert/family.c")))
forms = set(re.findall(r'(?:\.name = |_FAMILY\()"([^"]+)"', read("src/reply/families.c"))) | {"lfm2"}
classes = set(re.findall(r'Family\("(\w+)"', read("scripts/make-family-goldens.py"))) | ENCODERS | LOADED | {"eagle"}
toys = {}
for line in read("tests/data/toys.txt").splitlines():
    words = line.split()
    if words and not line.startswith("#"):
        toys.setdefault(words[1], []).append(words[0])
toys["eagle3"] = ["eagle"]
pres = {}
for line in read("tests/data/pretokenizers.tsv").splitlines():
    if line.startswith("architecture "):
        arch, names = line[13:].split("\t")[:2]
        pres[arch] = names.split()

checked = rows_of(page, "| architecture | golden")[1:]
names = [row[0].strip("`") for row in checked]
models = {name for row in rows_of(page, "| architecture | models")[1:] for name in re.findall(r"`([\w.-]+)`", row[0])}
for arch in archs:
    if arch not in names:
        bad.append(f"What was checked has no row of {arch}: add it by its name's order, as\n    {FORM}")
    if arch not in models and arch != "eagle3":
        bad.append(f"Models that run has no row of {arch}: | `{arch}` | models | differences |")
for name in set(names) | models:
    if name not in archs:
        bad.append(f"{name} is in the page, but not in arch.c")
if names != sorted(names):
    bad.append("the rows of What was checked are not in the order of their names")
for row in checked:
    if len(row) != 6:
        bad.append(f"a row is not\n    {FORM}\n  but | {' | '.join(row)} |")
        continue
    arch, golden, llama, convert, calls, pre = row
    arch = arch.strip("`")
    golds = [] if golden == "definition" else listed(golden)
    if not all(name in classes for name in golds):
        bad.append(f"{arch}: {golden} is no Family of make-family-goldens.py, nor \"definition\"")
    if not any(os.path.exists(os.path.join(root, f"tests/data/logits/{toy}.txt")) for toy in toys.get(arch, [])):
        bad.append(f"{arch} has no toy in tests/data/toys.txt with goldens in tests/data/logits")
    if llama not in ("yes", "-") or convert != ("yes" if arch in converted else "-"):
        bad.append(f"{arch}: compared with llama.cpp is yes or -; convert is {'yes' if arch in converted else '-'} "
                   f"by the table of src/convert/family.c, {convert} in the page")
    bad += [f"{arch}: no form of calls is named {name} in families.c" for name in listed(calls) if name not in forms]
    known = pres.get(arch, [])
    usual = "-" if known == ["default"] or not known else ", ".join(known)
    if pre != usual and not (pre.endswith(" ...") and usual.startswith(pre.removesuffix(" ..."))):
        bad.append(f"{arch}: pre-tokenizers are \"{usual}\" by tests/data/pretokenizers.tsv, \"{pre}\" in the page "
                   "(\"...\" ends a list that is too long)")
for model, arch, expected in re.findall(r"^= (\S+) (\S+): (.+)$", read("tests/data/published.txt"), re.M):
    if expected != "runs" and arch in archs:
        bad.append(f"tests/data/published.txt expects that {model} is refused, but arch.c has {arch}: write "
                   "\"runs\", if it is to run")
for line in bad:
    print(line)
sys.exit(1 if bad else 0)
