#!/usr/bin/env python3
"""Answers that are bound by schemas are valid, and the same with every draft.

    bound_answers.py PROGRAM [--answers N] [--seed N] [--models TARGET DRAFT HEADS SIDECAR]

Makes schemas by chance, has PROGRAM (bound_answers) write N sampled answers to them without a draft
and with each drafter, and checks each whole one with the package jsonschema. HEADS and SIDECAR may
be "-". What is cut off by the limit of tokens is the beginning of an answer, and only compared.
Skipped (77) where jsonschema is not installed.
"""
import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile
from decimal import Decimal

try:
    import jsonschema
except ImportError:
    print("skipped: the Python package jsonschema is not installed (pip install jsonschema)")
    sys.exit(77)

NAMES = ["id", "name", "kind", "é", "x y", "a\"b", "return", "print", "tree", "token", "the", "n_1"]
PATTERNS = ["^[a-z]{1,6}$", "^[A-Z][a-z]+-\\d{2}$", "b", "^(red|green|blue)$", "^\\w+@\\w+\\.org$", "^[^\"\\\\]{2,5}$"]
FORMATS = ["date", "time", "date-time", "uuid", "ipv4", "ipv6", "email", "hostname", "uri", "duration"]


class Schemas:
    """Schemas that only have words which drey enforces, and whose values are not long."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def string(self):
        kind = self.r.randrange(6)
        if kind == 0:
            return {"type": "string", "maxLength": self.r.randrange(1, 9)}
        if kind == 1:
            least = self.r.randrange(3)
            return {"type": "string", "minLength": least, "maxLength": least + self.r.randrange(1, 9)}
        if kind == 2:
            return {"type": "string", "pattern": self.r.choice(PATTERNS), "maxLength": 12}
        if kind == 3:
            return {"type": "string", "format": self.r.choice(FORMATS[:6])}
        if kind == 4:
            return {"type": "string", "format": self.r.choice(FORMATS), "minLength": 1, "maxLength": 2083} if self.r.random() < .3 else {
                "type": "string", "allOf": [{"pattern": "^[a-f]"}, {"pattern": "[0-9]$"}, {"maxLength": 6}]}
        return {"enum": self.r.sample(NAMES, self.r.randrange(1, 6))}

    def number(self):
        whole = self.r.random() < .6
        out = {"type": "integer" if whole else "number"}
        low = self.r.choice([None, -100, -5, 0, 1, 12] + ([] if whole else [-0.5, 0.25, 1.5]))
        high = self.r.choice([None, 150, 13, 20] + ([] if whole else [12.75, 99.5]))
        if low is not None:
            out[self.r.choice(["minimum", "exclusiveMinimum"])] = low
        if high is not None:
            out[self.r.choice(["maximum", "exclusiveMaximum"])] = high
        if self.r.random() < .25:
            out["multipleOf"] = self.r.choice([2, 3, 5, 7] if whole else [0.5, 0.25, 0.01, 2])
        return out if not (low == 12 and high == 13 and "multipleOf" in out) else {"type": out["type"]}

    def leaf(self):
        return self.r.choice([self.string, self.string, self.number, self.number,
                              lambda: {"type": "boolean"}, lambda: {"type": "null"},
                              lambda: {"const": self.r.choice([1, "a", None, [1, {"b": 2}], 2.5])},
                              lambda: {"enum": [1, "two", None, True, [3], {"four": 4}]},
                              lambda: {"type": ["string", "integer", "null"], "maxLength": 5, "minimum": 0,
                                       "maximum": 99}])()

    def array(self, depth):
        if self.r.random() < .25:
            return {"type": "array", "prefixItems": [self.value(depth - 1) for _ in range(self.r.randrange(1, 4))],
                    "items": False}
        least = self.r.randrange(3)
        return {"type": "array", "items": self.value(depth - 1), "minItems": least,
                "maxItems": least + self.r.randrange(3)}

    def object(self, depth):
        names = self.r.sample(NAMES, self.r.randrange(1, 5))
        out = {"type": "object", "properties": {n: self.value(depth - 1) for n in names},
               "required": self.r.sample(names, self.r.randrange(len(names) + 1))}
        kind = self.r.randrange(8)
        if kind == 0:
            out.update(additionalProperties=self.leaf(), maxProperties=len(names) + 1)
        elif kind == 1:
            out.update(patternProperties={"^x_[a-z]{1,3}$": self.leaf()}, additionalProperties=False,
                       maxProperties=len(names) + 1)
        elif kind == 2:
            out["minProperties"] = max(1, len(out["required"]))
        elif kind == 3:
            out["anyOf"] = [{"required": [n]} for n in names]
        elif kind == 4:
            out["allOf"] = [{"properties": {"kind": {"enum": ["a", "b"]}}, "required": ["kind"]}]
            out["properties"].pop("kind", None)
            out["required"] = [n for n in out["required"] if n != "kind"]
        return out

    def value(self, depth):
        if depth <= 0 or self.r.random() < .25:
            return self.leaf()
        kind = self.r.randrange(10)
        if kind < 5:
            return self.object(depth)
        if kind < 8:
            return self.array(depth)
        return {"anyOf": [self.value(depth - 1) for _ in range(self.r.randrange(1, 4))]}

    def whole(self):
        out = self.object(2) if self.r.random() < .8 else self.value(2)
        if self.r.random() < .2:
            node = {"type": "object", "properties": {"v": self.leaf(), "next": {"anyOf": [
                {"type": "null"}, {"$ref": "#/$defs/node"}]}}, "required": ["v", "next"]}
            out = {"$ref": "#/$defs/node", "$defs": {"node": node}}
        return out


def check(schemas, answers):
    counts, shown = collections.Counter(), 0
    exact = [json.loads(json.dumps(s), parse_float=Decimal) for s in schemas]
    checks = [jsonschema.Draft202012Validator(s, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
              for s in exact]
    for line in answers:
        a = json.loads(line)
        if not a["whole"]:
            counts["cut off"] += 1
            continue
        try:
            valid = checks[a["schema"]].is_valid(json.loads(a["text"], parse_float=Decimal))
        except ValueError:
            valid = False
        counts["valid" if valid else "invalid"] += 1
        if not valid and shown < 5:
            shown += 1
            print("invalid:", json.dumps(schemas[a["schema"]]), a["text"])
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--answers", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--models", nargs=4, default=[])
    args = parser.parse_args()
    make = Schemas(args.seed)
    schemas = [make.whole() for _ in range(min(args.answers, 2000))]
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / name for name in ("schemas", "answers")]
        paths[0].write_text("".join(json.dumps(s) + "\n" for s in schemas))
        run = subprocess.run([args.program, str(args.answers), *map(str, paths), *args.models], check=False)
        if run.returncode not in (0, 1):
            return run.returncode
        counts = check(schemas, paths[1].read_text().splitlines())
    print(f"{args.answers} answers to {len(schemas)} schemas:", ", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    return 1 if run.returncode or counts["invalid"] or counts["valid"] < args.answers / 2 else 0


if __name__ == "__main__":
    sys.exit(main())
