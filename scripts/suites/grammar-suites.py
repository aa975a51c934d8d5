#!/usr/bin/env python3
"""Compares drey's grammars with the test suites of other programs, case by case.

    scripts/suites/grammar-suites.py [--list] CHECK_GRAMMAR SUITE FOLDER

CHECK_GRAMMAR is build/tests/check_grammar. SUITE says what a checkout in FOLDER is:

    jsonschema   json-schema-org/JSON-Schema-Test-Suite (draft 2020-12 and its formats)
    llama.cpp    ggml-org/llama.cpp: its tests of schemas and of GBNF
    llguidance   guidance-ai/llguidance: its tests of JSON Schema, in Rust
    xgrammar     mlc-ai/xgrammar: its tests of schemas, regular expressions and EBNF, run with
                 pytest over a module that takes xgrammar's place

A schema is refused or accepted. If it is accepted, no invalid text may be (that is wrong); a valid
one that is not is counted as narrower: drey writes members in one order, closes objects, and reads
schemas without a type as what their words are about. The suite says whether a text is valid, and
where it does not say that of a schema's texts, the package jsonschema. --list names the cases. The
exit status is 1 if an invalid text is accepted.
"""
import argparse
import ast
import json
import pathlib
import re
import subprocess
import sys
import types
from decimal import Decimal

import jsonschema


class Checker:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, kind, grammar, texts):
        """None and the sentence of a refusal, or which texts are accepted."""
        self.process.stdin.write(json.dumps({"kind": kind, "grammar": grammar, "texts": texts}) + "\n")
        self.process.stdin.flush()
        got = json.loads(self.process.stdout.readline())
        return (None, got["refused"]) if "refused" in got else (got["takes"], "")


class Counts:
    def __init__(self, listed):
        self.listed, self.n, self.reasons = listed, {}, {}

    def add(self, what, where, detail=""):
        self.n[what] = self.n.get(what, 0) + 1
        if what == "refused":
            word = re.search(r'"([$a-zA-Z]+)"', detail.split(": ", 1)[-1])
            reason = word.group(1) if word else detail[:60]
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
        if self.listed and what not in ("right", "accepted"):
            print(f"{what}: {where}: {detail}")

    def report(self):
        print(", ".join(f"{k} {v}" for k, v in sorted(self.n.items())))
        if self.reasons:
            print("refused:", ", ".join(f"{k} {v}" for k, v in sorted(self.reasons.items(), key=lambda x: -x[1])))
        return 1 if self.n.get("wrong") else 0


# ---- How an instance may be written ----

def target(schema, root):
    seen = 0
    while isinstance(schema, dict) and isinstance(schema.get("$ref"), str) and seen < 20:
        seen += 1
        at = root
        if not schema["$ref"].startswith("#"):
            return schema
        for part in schema["$ref"][1:].split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            at = at.get(part) if isinstance(at, dict) else None
        if at is None:
            return schema
        schema = at
    return schema


def names_of(schema, root, depth=0):
    """Members' names in the order in which a schema has them."""
    schema = target(schema, root)
    if not isinstance(schema, dict) or depth > 8:
        return {}
    names = dict(schema.get("properties") or {}) if isinstance(schema.get("properties"), dict) else {}
    for word in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(word) or []:
            for k, v in names_of(part, root, depth + 1).items():
                names.setdefault(k, v)
    for k in schema.get("required") or []:
        if isinstance(k, str):
            names.setdefault(k, True)
    return names


def ordered(value, schema, root, depth=0):
    if isinstance(value, dict) and depth < 30:
        names = names_of(schema, root)
        keys = [k for k in names if k in value] + [k for k in value if k not in names]
        return {k: ordered(value[k], names.get(k, True), root, depth + 1) for k in keys}
    if isinstance(value, list) and depth < 30:
        items = target(schema, root)
        items = items.get("items", True) if isinstance(items, dict) else True
        return [ordered(v, items if isinstance(items, (dict, bool)) else True, root, depth + 1) for v in value]
    return value


def forms(value, schema):
    texts = []
    for v in (value, ordered(value, schema, schema)):
        for ascii_ in (False, True):
            texts += [json.dumps(v, separators=(",", ":"), ensure_ascii=ascii_), json.dumps(v, ensure_ascii=ascii_)]
    return [t for t in dict.fromkeys(texts) if not re.search(r"[\ud800-\udfff]", t)] or ["null"]


# ---- One schema with its instances ----

def exact(value):
    return json.loads(json.dumps(value), parse_float=Decimal)


def validator(schema):
    try:
        cls = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        cls.check_schema(schema)
        check = cls(exact(schema), format_checker=cls.FORMAT_CHECKER)
        return lambda v: check.is_valid(exact(v))
    except Exception:  # not a schema to it
        return lambda v: None


def schema_case(check, counts, where, schema, instances, expect_refused=False):
    """instances: (value, valid or None)."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    takes, why = check("schema", text, [])
    if takes is None:
        counts.add("refused as expected" if expect_refused else "refused", where, why)
        return
    counts.add("accepted where a refusal was expected" if expect_refused else "accepted", where)
    parsed = json.loads(text)
    is_valid = validator(parsed)
    for value, valid in instances:
        if valid is None:
            try:
                valid = is_valid(value)
            except Exception:
                valid = None
            if valid is None:
                counts.add("not decided", where, json.dumps(value))
                continue
        takes, _ = check("schema", text, forms(value, parsed))
        if any(takes) == bool(valid):
            counts.add("right", where)
        else:
            counts.add("narrower" if valid else "wrong", where, text[:300] + "   " + json.dumps(value)[:200])


# ---- The suites ----

def run_jsonschema(check, counts, folder):
    tests = folder / "tests/draft2020-12"
    for path in sorted(tests.glob("*.json")) + sorted((tests / "optional").rglob("*.json")):
        for group in json.loads(path.read_text()):
            instances = [(t["data"], t["valid"]) for t in group["tests"]]
            schema_case(check, counts, f"{path.relative_to(tests)}: {group['description']}", group["schema"], instances)


def cpp_items(text, at):
    """Arguments of a call from its bracket on: strings, and lists of strings in braces."""
    out, stack = [], None
    while at < len(text):
        c = text[at]
        if text.startswith("//", at):
            at = text.index("\n", at)
        elif m := re.compile(r'R"([^(\s]{0,16})\(').match(text, at):
            end = text.index(")" + m.group(1) + '"', m.end())
            value, at = text[m.end():end], end + len(m.group(1)) + 2
            (out if stack is None else stack).append(value)
            continue
        elif c == '"':
            m = re.compile(r'"((?:[^"\\]|\\.)*)"').match(text, at)
            value = ast.literal_eval('b"' + m.group(1).encode("unicode_escape").decode().replace("\\\\", "\\") + '"')
            value = value.decode("utf-8", "surrogateescape")
            target_ = out if stack is None else stack
            if target_ and re.search(r'"\s*$', text[:at]) and text[:at].rstrip().endswith('"'):
                target_[-1] += value
            else:
                target_.append(value)
            at = m.end()
            continue
        elif c == "{":
            stack = []
        elif c == "}" and stack is not None:
            out.append(stack)
            stack = None
        elif c == ")" and stack is None:
            return out
        at += 1
    return out


def cpp_calls(path, name):
    text = path.read_text()
    for m in re.finditer(r"\b" + name + r"\(", text):
        if not re.search(r"static \w+(?: \w+)*$|void $|bool $", text[:m.start()].splitlines()[-1] if m.start() else ""):
            yield cpp_items(text, m.end())


def gbnf_case(check, counts, where, grammar, passing, failing):
    takes, why = check("gbnf", grammar, passing + failing)
    if takes is None:
        counts.add("refused", where, why)
        return
    counts.add("accepted", where)
    for text, got, want in zip(passing + failing, takes, [True] * len(passing) + [False] * len(failing)):
        counts.add("right" if got == want else "narrower" if want else "wrong", where, repr(text))


def run_llama_cpp(check, counts, folder):
    tests = folder / "tests"
    for call in cpp_calls(tests / "test-grammar-integration.cpp", "test_schema"):
        name, schema, passing, failing = call[:4]
        takes, why = check("schema", schema, passing + failing)
        if takes is None:
            counts.add("refused", name, why)
            continue
        counts.add("accepted", name)
        for text, got, want in zip(passing + failing, takes, [True] * len(passing) + [False] * len(failing)):
            if got == want:
                counts.add("right", name)
                continue
            try:
                valid = validator(json.loads(schema))(json.loads(text))
            except ValueError:
                valid = False
            other = any(check("schema", schema, forms(json.loads(text), json.loads(schema)))[0]) if valid and want else False
            if other or (not want and valid):
                counts.add("right in another form" if other else "wider, and valid by jsonschema", name, text)
            else:
                counts.add("narrower" if want else "wrong", name, schema[:200] + "   " + text[:200])
    for call in cpp_calls(tests / "test-grammar-integration.cpp", "test_grammar"):
        if len(call) >= 4 and isinstance(call[2], list):
            gbnf_case(check, counts, call[0], call[1], call[2], call[3])
    for path, name in (("integration", "test_build_grammar_fails"), ("parser", "verify_failure")):
        for call in cpp_calls(tests / f"test-grammar-{path}.cpp", name):
            if call:
                refuse_case(check, counts, "gbnf", call[0])
    for call in cpp_calls(tests / "test-grammar-parser.cpp", "verify_parsing"):
        if call:
            gbnf_case(check, counts, "parser", call[0], [], [])
    text = (tests / "test-json-schema-to-grammar.cpp").read_text()
    for m in re.finditer(r"\b(SUCCESS|FAILURE),\s*", text):
        items = cpp_items(text, m.end())
        if len(items) >= 2:
            schema_case(check, counts, items[0], items[1], [], m.group(1) == "FAILURE")


def refuse_case(check, counts, kind, grammar):
    takes, _ = check(kind, grammar, [])
    counts.add("refused as expected" if takes is None else "accepted where a refusal was expected", kind, grammar[:100])


def rust_json(text, at):
    """The value of json!( at text[at:]; None if it is no plain JSON."""
    depth, start, quoted = 1, at, False
    while depth and at < len(text):
        c = text[at]
        if quoted:
            at += c == "\\"
            quoted = c != '"'
        elif c == '"':
            quoted = True
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        at += 1
    body = re.sub(r"^\s*//.*$", "", text[start:at - 1], flags=re.M)
    body = re.sub(r",(\s*[}\]])", r"\1", re.sub(r"\\u\{(\w+)\}", lambda m: chr(int(m.group(1), 16)), body))
    try:
        return json.loads(body, strict=False), at
    except ValueError:
        return None, at


def run_llguidance(check, counts, folder):
    for path in sorted((folder / "parser/tests").glob("test_json_*.rs")):
        text = path.read_text()
        statics = {m.group(1): rust_json(text, m.end())[0]
                   for m in re.finditer(r"static ref (\w+): Value\s*=\s*json!\(", text)}
        for part in re.split(r"(?=#\[rstest\])", text):
            fn = re.search(r"fn (\w+)", part)
            if not fn:
                continue
            head, body = part[:fn.start()], part[fn.start():]
            schemas = [rust_json(body, m.end())[0] for m in re.finditer(r"schema(?:: Value)?\s*=\s*&?json!\(", body)]
            schemas += [statics[n] for n in statics if re.search(r"\b" + n + r"\b", body)]
            values = [rust_json(head, m.end())[0] for m in re.finditer(r"json!\(", head)]
            values += [json.loads(m.group(1)) for m in re.finditer(r'#\[case\(("(?:[^"\\]|\\["\\/bfnrt])*")[,)]', head)]
            values += [rust_json(body, m.end())[0] for m in re.finditer(r"(?:&schema|schema|_SCHEMA), &json!\(", body)]
            for schema in schemas:
                if isinstance(schema, (dict, bool)):
                    schema_case(check, counts, f"{path.name}: {fn.group(1)}", schema,
                                [(v, None) for v in values if v is not None], "json_err_test" in body)


def run_xgrammar(check, counts, folder):
    import pytest

    class Grammar:
        def __init__(self, kind, text):
            self.kind, self.text = kind, text
            takes, why = check(kind, text, [])
            counts.add("accepted" if takes is not None else "refused", kind, why if takes is None else "")
            if takes is None:
                raise RuntimeError(why)

        @staticmethod
        def from_json_schema(schema, **_):
            if not isinstance(schema, (str, dict)):
                schema = schema.model_json_schema()
            return Grammar("schema", schema if isinstance(schema, str) else json.dumps(schema))

        @staticmethod
        def from_ebnf(text, root_rule_name="root"):
            return Grammar("gbnf", text)

        @staticmethod
        def from_regex(text, **_):
            return Grammar("regex", text)

    def accepts(grammar, text, **_):
        if not isinstance(grammar, Grammar):
            grammar = Grammar("gbnf", grammar)
        got = check(grammar.kind, grammar.text, [text])[0][0]
        if grammar.kind == "schema":
            try:
                schema, value = json.loads(grammar.text), json.loads(text)
                valid = validator(schema)(value)
            except Exception:
                valid = False
            other = not got and valid and any(check("schema", grammar.text, forms(value, schema))[0])
            right = other or got == bool(valid)
            counts.add("right" if right else "narrower" if valid else "wrong", "xgrammar", grammar.text[:200] + "  " + text)
        return got

    def missing(name):
        def stub(*_, **__):
            pytest.skip(f"{name} is xgrammar's own")
        return stub

    class Stub(types.ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return missing(name)

    xgr, testing, transformers = Stub("xgrammar"), Stub("xgrammar.testing"), Stub("transformers")
    xgr.Grammar, xgr.testing = Grammar, testing
    testing._is_grammar_accept_string = accepts
    sys.modules.update({"xgrammar": xgr, "xgrammar.testing": testing, "transformers": transformers, "torch": Stub("torch")})
    files = ["json_schema_converter", "json_schema_direct_converter", "regex_converter", "grammar_matcher_ebnf",
             "grammar_matcher_regex"]
    tests = [str(folder / f"tests/python/test_{f}.py") for f in files]

    class Outcomes:
        def pytest_runtest_logreport(self, report):
            if report.when == "call" or report.outcome == "skipped":
                counts.add(f"tests {report.outcome}", report.nodeid)

    pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", "--tb=line",
                 "--continue-on-collection-errors", *tests], plugins=[Outcomes()])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("program")
    parser.add_argument("suite", choices=["jsonschema", "llama.cpp", "llguidance", "xgrammar"])
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    check, counts = Checker(args.program), Counts(args.list)
    {"jsonschema": run_jsonschema, "llama.cpp": run_llama_cpp, "llguidance": run_llguidance,
     "xgrammar": run_xgrammar}[args.suite](check, counts, args.folder)
    return counts.report()


if __name__ == "__main__":
    sys.exit(main())
