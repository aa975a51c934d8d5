#!/usr/bin/env python3
"""Shows that build_graph.py leaves no test out, and how many files a header costs. What it says of
samples is compared with what others say: the preprocessor of headers, the linker of objects,
Python of the files that a script opens.

    build_graph_check.py BUILD
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from build_graph import ROOT, Graph, output_of

# Files that are compiled again when the header changes, at most.
AGAIN = {"src/state/cache.h": 40, "include/drey/drey_engine.h": 250}
N_COMPILED = 6
LINKED = [("tree", "test_accept"), ("grammar", "test_grammar"), ("session", "test_logprobs"), ("same_text", "test_overlap")]
# Tests that begin at once; what a script reads that runs the command is its folder, by rule.
OPENED = ["llama_names", "templates"]

failed = 0


def check(good, what):
    global failed
    failed += not good
    if not good:
        print(f"build_graph_check: {what}")


def command_of(graph, output):
    """The words of the command that makes an output, without those around it (ccache, ':')."""
    line = output_of("ninja", "-C", graph.build, "-t", "commands", "-s", output).strip().splitlines()[-1]
    words = shlex.split(line)
    begin = next(i for i, w in enumerate(words) if re.search(r"(gcc|clang|cc)(-\d+)?$", w))
    return words[begin:words.index("&&", begin)] if "&&" in words[begin:] else words[begin:]


def check_headers(graph):
    names = sorted(graph.deps)
    for output in names[::len(names) // N_COMPILED]:
        words = command_of(graph, output)
        drop = {i + d for i, w in enumerate(words) if w in ("-o", "-MF", "-MT") for d in (0, 1)}
        kept = [w for i, w in enumerate(words) if i not in drop and w not in ("-MD", "-c")]
        made = output_of(*kept, "-M", cwd=graph.build).replace("\\\n", " ").split(":", 1)[1]
        made = [f.replace("\0", " ") for f in made.replace("\\ ", "\0").split()]  # a path may have blanks
        own = {graph.name(f)[1:] for f in made if graph.name(f).startswith("@")}
        check(own, f"{output}: the preprocessor names no file of the tree")
        missing = own - graph.sources_of(frozenset([output]))
        check(not missing, f"{output}: it includes {missing}")


def check_objects(graph, folder):
    for label, test in LINKED:
        words = command_of(graph, f"tests/{label}_tests")
        drop = {words.index("-o") + d for d in (0, 1)}
        kept = [w for i, w in enumerate(words) if i not in drop and (not w.endswith(".c.o") or f"/{test}.c.o" in w)]
        output_of(*kept, "-o", f"{folder}/{test}", f"-Wl,-Map={folder}/map", cwd=graph.build)
        text = pathlib.Path(folder, "map").read_text()
        members = set(re.findall(r"^\S*lib\w+\.a\((\S+\.o)\)$", text[:text.index("Memory Configuration")], re.M))
        own = members & {pathlib.Path(o).name for o in graph.deps}
        check(len(own) > 5, f"{test}: the linker names {own} alone")
        missing = own - {pathlib.Path(o).name for o in graph.linked(f"tests/{label}_tests", test)}
        check(not missing, f"{test}: it is linked to {missing}")


def check_scripts(graph, folder):
    pathlib.Path(folder, "sitecustomize.py").write_text(
        "import sys\nlog = open(%r, 'a')\nsys.addaudithook(lambda what, of: what == 'open' and log.write(f'{of[0]}\\n'))\n" % f"{folder}/opened")
    for test in OPENED:
        subprocess.run(["ctest", "--test-dir", graph.build, "-R", f"^{test}$"], stdout=subprocess.DEVNULL,
                       env={**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}, check=True)
        log = pathlib.Path(folder, "opened")
        opened = {graph.name(ROOT / f) for f in log.read_text().splitlines()}
        log.unlink()
        own = {f[1:] for f in opened if f.startswith("@") and f[1:] in graph.tracked}
        check(own, f"{test}: it opened no file of the tree")
        missing = {f for f in own if not graph.reads(test, f)}
        check(not missing, f"{test}: it opens {missing}")


def check_choices(graph):
    def touched(path):
        found = graph.touched([path])
        return found if found is None else {t for t in found if not graph.tests[t][1]}

    check(touched("a-file-that-nobody-knows") is None, "a file that nobody knows does not run all tests")
    check(touched("tests/CMakeLists.txt") is None, "tests/CMakeLists.txt does not run all tests")
    check("style" in graph.touched(["CHANGELOG.md"]) and not any(t.startswith("test_") for t in touched("CHANGELOG.md")), "CHANGELOG.md")
    check(touched("tests/unit/tree/test_accept.c") == {"test_accept"}, "a file of tests runs others")
    check({"test_matrix", "cli", "serve", "test_kv_file", "soak"} <= touched("src/state/cache.h"), "a header leaves out tests of engines")
    check({"test_accept", "cli"} <= touched("src/tree/accept.c") and "test_utf8" not in touched("src/tree/accept.c"), "src/tree/accept.c")
    check({"serve", "page"} <= touched("serve/page/markdown.js"), "what is put into the program leaves out tests of it")
    check(touched("tests/fuzz/corpus/ask/new") == {"fuzz_ask_replay"}, "a file of a corpus")
    check("doc_examples" in touched("docs/guide/heads.md"), "a document leaves out doc_examples")


def main():
    if subprocess.run(["git", "-C", ROOT, "rev-parse"], stderr=subprocess.DEVNULL).returncode:
        print("skipped: this is not a git checkout, so what belongs to the tree cannot be listed")
        sys.exit(77)
    graph = Graph(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        check_headers(graph)
        check_objects(graph, folder)
        check_scripts(graph, folder)
    check_choices(graph)
    for path, most in AGAIN.items():
        n = len(graph.compiled_again(path))
        print(f"{path}: {n} files of {len(graph.deps)} are compiled again when it changes")
        check(n <= most, f"{path}: {n} files include it, at most {most} may: declare less in headers that include it")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
