#!/usr/bin/env python3
"""Prompts for `drey train medusa --prompts` and `drey train eagle --prompts`.

    scripts/training_prompts.py FOLDER -o prompts.jsonl

Clones three public sets of questions into FOLDER, where they are not there yet, and mixes them:
what people ask for (yizhongw/self-instruct, Apache-2.0), tasks of programming
(teknium1/GPTeacher, MIT), and arithmetic in words (the training half of openai/grade-school-math,
MIT). Only the questions are used; the answers are the model's own. None of these is in the sets
that drafts are judged by: MT-Bench, GSM8K's test half, MBPP, HumanEval. The same commits give the
same file."""
import argparse
import json
import os
import random
import subprocess
import sys

SETS = {"chat": "yizhongw/self-instruct", "code": "teknium1/GPTeacher", "math": "openai/grade-school-math"}
N_PYTHON, N_OTHER_CODE, N_MATH = 700, 300, 600
LEAST, MOST, MOST_CODE = 20, 900, 600  # characters, not included


def text_of(task, given):
    return f"{task}\n\n{given}" if given else task


def lines_of(folder, path):
    with open(os.path.join(folder, path), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def chat(folder, _):
    texts = [text_of(t["instruction"], t["instances"][0]["input"])
             for path in ("data/seed_tasks.jsonl", "human_eval/user_oriented_instructions.jsonl")
             for t in lines_of(folder, path)]
    return [t for t in texts if LEAST < len(t) < MOST]


def code(folder, order):
    with open(os.path.join(folder, "Codegen/codegen-instruct.json"), encoding="utf-8") as f:
        texts = [text_of(t["instruction"], t.get("input")) for t in json.load(f)]
    texts = list(dict.fromkeys(t for t in texts if LEAST < len(t) < MOST_CODE))
    order.shuffle(texts)
    return [t for t in texts if "ython" in t][:N_PYTHON] + [t for t in texts if "ython" not in t][:N_OTHER_CODE]


def math(folder, order):
    texts = [q["question"] for q in lines_of(folder, "grade_school_math/data/train.jsonl")]
    order.shuffle(texts)
    return texts[:N_MATH]


def clone(folder, name, origin):
    to = os.path.join(folder, name)
    if not os.path.isdir(to):
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"{origin}/{name}", to], check=True)
    return to


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", metavar="FOLDER")
    p.add_argument("-o", "--output", metavar="FILE", required=True)
    p.add_argument("--origin", metavar="URL", default="https://github.com", help="where the repositories are")
    args = p.parse_args()
    order, prompts = random.Random(1), []
    for group, take in (("chat", chat), ("code", code), ("math", math)):
        prompts += [(group, t) for t in take(clone(args.folder, SETS[group], args.origin), order)]
    order.shuffle(prompts)
    with open(args.output, "w", encoding="utf-8") as f:
        for i, (group, text) in enumerate(prompts):
            f.write(json.dumps({"id": i, "group": group, "turns": [text]}) + "\n")
    print(f"{len(prompts)} prompts in {args.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
