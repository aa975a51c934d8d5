#!/usr/bin/env python3
"""Runs the tests of llama.cpp's server against drey serve, and counts.

    scripts/llama-tests/llama_tests.py LLAMA_CPP [--only test_basic,...] [--drey build/cli/drey]
        [--models FOLDER] [--env FOLDER] [--csv FILE] [--keep FOLDER] [-k EXPRESSION]
        [--record-texts] [--tool-model FILE [--tool-draft FILE] [--tool-every N] [--tool-seconds S]]

LLAMA_CPP is a checkout of llama.cpp with tools/server/tests and models/templates. Its tests start
as_llama_server.py in llama-server's place, which translates options. FOLDER of --models holds
karpathy's stories260K (stories260K/stories260K.bin and tok512.bin) and another model with its
tokens (llama2xs-279K/model.bin), which become GGUF files: the first is the model that most of
these tests are for. --env is a Python environment, which is made if it is not there.

Each case is run as it stands, in a copy of the tests. What fails is run once more in a copy that
llama_cases.py has changed, first in what belongs to another program or model. That file also names
each case that still fails for a reason that is known. A case is one of:

    as is        passes as it stands
    substance    passes with the changes of llama_cases.py
    deviates     fails, and no reason is known
    by design    drey answers differently on purpose: passes when the test expects that, or is known
    other model  is about a model that is not here, or about llama-server's inside
    missing      drey does not have that

Where llama.cpp's text is sampled, drey's is compared with own_texts.json, which has what it writes
by the same seeds. --record-texts writes that file.

--tool-model names a model that can call tools, which then stands for those of llama.cpp's slow
cases; --tool-every N takes every n-th of them, as each may take minutes. What passes does so in
substance; what fails is the other model's, with what the test said.
"""
import argparse
import csv
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import venv

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import llama2c_gguf  # noqa: E402
import llama_cases  # noqa: E402

PACKAGES = ["aiohttp~=3.9.3", "pytest~=8.3.3", "pytest-timeout", "numpy~=1.26.4", "openai~=2.14.0",
            "prometheus-client~=0.20.0", "requests~=2.32.3", "wget~=3.2"]
CLASSES = ["as is", "substance", "deviates", "by design", "other model", "missing"]
CORE = ["basic", "tokenize", "security", "chat_completion", "completion", "ctx_shift", "speculative", "metrics",
        "ignore_eos", "template"]
SECONDS = 120  # of a case
OWN_TEXTS = os.path.join(HERE, "own_texts.json")

RECORDER = '''
import json, os
def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        why = str(getattr(report.longrepr, "reprcrash", None) and report.longrepr.reprcrash.message or "")
        with open(os.environ["DREY_TEST_RECORD"], "a") as out:
            print(json.dumps([report.nodeid, report.outcome, report.when, why[:400]]), file=out)
'''

# Nothing is downloaded: what stands for a file of the hub is in the models' folder.
LOCAL = '''
ServerPreset.load_all = staticmethod(lambda: None)
def download_file(url, output_file_path=None):
    return os.path.join(os.environ["DREY_TEST_MODELS"], "draft.gguf")
'''


def environment(folder):
    """The Python of an environment with what the tests need."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        venv.create(folder, with_pip=True)
    have = subprocess.run([python, "-c", "import pytest, pytest_timeout, openai, aiohttp, wget"], stderr=subprocess.DEVNULL)
    if have.returncode:
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return python


def make_models(source, folder):
    """The models, by the names that as_llama_server.py gives them."""
    os.makedirs(os.path.join(folder, "several"))
    tokens = os.path.join(source, "stories260K", "tok512.bin")
    stories = os.path.join(source, "stories260K", "stories260K.bin")
    target = llama2c_gguf.convert(stories, tokens, os.path.join(folder, "stories260K.gguf"))
    llama2c_gguf.convert(stories, tokens, os.path.join(folder, "split-%05d-of-%05d.gguf"), 3)
    llama2c_gguf.convert(stories, tokens, os.path.join(folder, "infill.gguf"), fill=llama_cases.FILL_TOKENS)
    other = os.path.join(source, "llama2xs-279K", "model.bin")
    llama2c_gguf.convert(other, tokens, os.path.join(folder, "draft.gguf"))
    for name in llama_cases.SEVERAL:
        shutil.copy(target, os.path.join(folder, "several", name + ".gguf"))


class Suite:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.python = environment(options.env)
        self.models = os.path.join(folder, "models")
        make_models(options.models, self.models)
        self.server = os.path.join(folder, "llama-server")
        with open(self.server, "w") as out:
            out.write(f'#!/bin/sh\nexec "{sys.executable}" "{HERE}/as_llama_server.py" "$@"\n')
        os.chmod(self.server, os.stat(self.server).st_mode | stat.S_IXUSR)

    def copy(self, name, *changes):
        """A copy of the tests, changed or not, and of the templates, as the tests look for them."""
        top = os.path.join(self.folder, name)
        tests = os.path.join(top, "tools", "server", "tests")
        shutil.copytree(os.path.join(self.options.llama, "tools", "server", "tests"), tests)
        shutil.copytree(os.path.join(self.options.llama, "models", "templates"), os.path.join(top, "models", "templates"))
        os.makedirs(os.path.join(tests, "tmp"), exist_ok=True)
        with open(os.path.join(tests, "utils.py"), "a") as out:
            out.write(LOCAL + (llama_cases.UTILS if changes else ""))
        with open(os.path.join(tests, "drey_recorder.py"), "w") as out:
            out.write(RECORDER)
        for some in changes:
            llama_cases.change(os.path.join(tests, "unit"), some)
        return tests

    def pytest(self, tests, arguments, seconds=SECONDS, **more_env):
        record = os.path.join(self.folder, os.path.basename(os.path.dirname(os.path.dirname(os.path.dirname(tests)))) + ".jsonl")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        env = dict(os.environ, LLAMA_SERVER_BIN_PATH=self.server, DREY=os.path.abspath(self.options.drey),
                   DREY_TEST_MODELS=self.models, DREY_TEST_RECORD=record, PORT=str(port), LLAMA_CACHE=tests,
                   DREY_TEST_TEXTS=OWN_TEXTS, PYTHONPATH=tests, **more_env)
        log = open(record[:-6] + ".log", "w")
        subprocess.run([self.python, "-m", "pytest", "-p", "drey_recorder", "-v", "--timeout", str(seconds), "--tb=short",
                        *arguments], cwd=tests, env=env, stdout=log, stderr=subprocess.STDOUT)
        lines = [json.loads(line) for line in open(record)] if os.path.exists(record) else []
        return {node: (outcome, why) for node, outcome, _, why in lines}

    def cases(self, tests, files):
        """All cases, and which of them are marked as slow: they want models of gigabytes."""
        out = []
        for marks in ([], ["-m", "slow"]):
            run = subprocess.run([self.python, "-m", "pytest", "--collect-only", "-q", *marks, *files], cwd=tests,
                                 capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=tests))
            out.append([line for line in run.stdout.splitlines() if "::" in line])
        return out[0], set(out[1])


def classify(node, slow, plain, changed, tools):
    """(class, reason)"""
    if plain.get(node, ("",))[0] == "passed":
        return "as is", ""
    if changed.get(node, ("",))[0] == "passed":
        why = llama_cases.difference(node)
        return ("by design", why) if why else ("substance", "")
    if node in tools:
        outcome, why = tools[node]
        return ("substance", "another model calls the tools") if outcome == "passed" else \
            ("other model", f"with the runner's model: {' '.join(why.split())[:300]}")
    if llama_cases.known(node):
        return llama_cases.known(node)
    if node in slow:
        return "other model", "marked as slow: it wants a model of gigabytes"
    return "deviates", (changed.get(node) or plain.get(node) or ("", "was not run"))[1].replace("\n", " ")[:300]


def run_tools(suite, slow, options):
    """The slow cases that call tools, or every n-th, with a model that can."""
    nodes = [node for node in sorted(slow) if node.startswith("unit/test_tool_call.py")][::options.tool_every]
    if not nodes or not options.tool_model:
        return {}
    tests = suite.copy("tools", llama_cases.CHANGES, llama_cases.DIFFERENCES, llama_cases.TOOL_CHANGES)
    found = suite.pytest(tests, nodes, options.tool_seconds, DREY_TEST_TOOL_MODEL=os.path.abspath(options.tool_model),
                         DREY_TEST_TOOL_DRAFT=options.tool_draft and os.path.abspath(options.tool_draft) or "")
    n_passed = sum(outcome == "passed" for outcome, _ in found.values())
    print(f"tool calls with {os.path.basename(options.tool_model)}: {n_passed} of {len(found)} cases pass\n")
    return found


def record_texts(path):
    """own_texts.json of what the cases wrote."""
    texts = {}
    for case, text in (json.loads(line) for line in open(path)):
        if text not in texts.setdefault(case, []):
            texts[case].append(text)
    with open(OWN_TEXTS, "w") as out:
        json.dump(texts, out, indent=1, sort_keys=True)
        out.write("\n")


def table(results):
    """Rows of a Markdown table: each file, the core, all."""
    files = {}
    for node, (kind, _) in results.items():
        files.setdefault(node.split("::")[0][len("unit/test_"):-3], []).append(kind)
    names = [n for n in CORE if n in files] + sorted(n for n in files if n not in CORE)
    rows = [(name, files[name]) for name in names]
    core = [kind for name in CORE for kind in files.get(name, [])]
    if all(name in files for name in CORE):
        rows.insert(len(CORE), ("**the core: these ten**", core))
    rows.append(("**all**", [kind for kinds in files.values() for kind in kinds]))
    print("| file | cases | " + " | ".join(CLASSES) + " |\n|---" * 1 + "|---" * (len(CLASSES) + 1) + "|")
    for name, kinds in rows:
        print(f"| {name} | {len(kinds)} | " + " | ".join(str(kinds.count(c) or "") for c in CLASSES) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llama", metavar="LLAMA_CPP")
    parser.add_argument("--only", default="", help="files, as test_basic,test_tokenize")
    parser.add_argument("-k", default="", help="pytest's -k")
    parser.add_argument("--drey", default=os.path.join(ROOT, "build", "cli", "drey"))
    parser.add_argument("--models", default=os.path.join(ROOT, "..", "shared", "models"))
    parser.add_argument("--env", default=os.path.join(ROOT, "build", "llama-tests-env"))
    parser.add_argument("--csv", help="all cases with class and reason")
    parser.add_argument("--keep", help="an empty folder for copies and logs, which stay")
    parser.add_argument("--record-texts", action="store_true", help="write own_texts.json (run all files)")
    parser.add_argument("--tool-model", metavar="FILE", help="a model that stands for those of the slow cases")
    parser.add_argument("--tool-draft", metavar="FILE", help="its draft")
    parser.add_argument("--tool-every", metavar="N", type=int, default=1, help="every n-th of these cases (default 1)")
    parser.add_argument("--tool-seconds", metavar="S", type=int, default=1800, help="of each (default 1800)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        suite = Suite(options, os.path.abspath(options.keep or scratch))
        plain_tests, changed_tests = suite.copy("plain"), suite.copy("changed", llama_cases.CHANGES,
                                                                      llama_cases.DIFFERENCES)
        files = [f"unit/{name}.py" for name in options.only.split(",") if name] or ["unit"]
        selected = files + (["-k", options.k] if options.k else [])
        nodes, slow = suite.cases(plain_tests, selected)
        plain = suite.pytest(plain_tests, ["-m", "not slow", *selected])
        failed = [node for node in nodes if plain.get(node, ("",))[0] != "passed" and node not in slow]
        record = os.path.join(suite.folder, "texts.jsonl")
        more = {"DREY_TEST_RECORD_TEXTS": record} if options.record_texts else {}
        changed = suite.pytest(changed_tests, failed, **more) if failed else {}
        if options.record_texts:
            record_texts(record)
        tools = run_tools(suite, slow, options)
        results = {node: classify(node, slow, plain, changed, tools) for node in nodes}
    if not options.k:
        for name in llama_cases.unknown_names(nodes):
            print(f"llama_cases.py names a case that is not there: {name}")
    table(results)
    for node, (kind, reason) in results.items():
        if kind == "deviates":
            print(f"deviates: {node[5:]}: {reason}")
    if options.csv:
        with open(options.csv, "w", newline="") as out:
            rows = csv.writer(out, lineterminator="\n")
            rows.writerow(["case", "class", "reason"])
            rows.writerows([node[5:], *result] for node, result in results.items())


if __name__ == "__main__":
    main()
