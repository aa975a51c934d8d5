#!/usr/bin/env python3
"""Reads from a build what each test depends on: files that were compiled (ninja's dependencies),
objects that were linked (symbols), scripts and data (what they name).

    tests/build_graph.py BUILD changed [COMMIT]   the tests that the change since COMMIT (HEAD) can
                                                  touch, with what git does not know yet; "all" if
                                                  that is every test
    tests/build_graph.py BUILD again FILE...      how many files are compiled again after a change
    tests/build_graph.py BUILD why TEST FILE...   which of the files the test depends on

It errs on one side: a file that no test is known to read means all tests. The build has to be of
the tree as it is (./test.sh --changed builds first).
"""
import collections
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = (".c", ".h", ".cl", ".cu", ".cuh", ".js", ".css", ".html")
SCRIPTS = (".sh", ".py", ".js")
# Compiled differently, found by cmake or run before any test: nothing is left out.
EVERYTHING = re.compile(r"cmake/|.*CMakeLists\.txt$|.*\.cmake$|test\.sh$|scripts/(build|install-deps|get-models)\.sh$")

# What a build folder holds for those that install from it.
INSTALLED = {f"{folder}/" for folder in ("common", "src", "include", "tune", "train", "bench", "serve", "cli", "python")}


def output_of(*command, cwd=ROOT):
    return subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, check=True, text=True).stdout


class Graph:
    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.tracked = set(output_of("git", "ls-files", "--cached", "--others", "--exclude-standard").split("\n")) - {""}
        self.edges = {}  # output: (inputs, inputs that only have to be there, its block's text)
        self.read_edges()
        self.read_dependencies()
        self.read_symbols()

    def name(self, path):
        """A path as ninja has it: relative to the build, or to the root with @ before it."""
        path = os.path.normpath(os.path.join(self.build, path))
        for folder, mark in ((self.build, ""), (ROOT, "@")):
            if path.startswith(f"{folder}/"):
                return mark + path[len(str(folder)) + 1:]
        return path

    def read_edges(self):
        text = (self.build / "build.ninja").read_text().replace("$\n", "")
        for block in re.split(r"\n(?=build )", text)[1:]:
            first, _, rest = block.partition("\n")
            outputs, inputs = re.split(r"(?<!\$): ", first[len("build "):], maxsplit=1)
            words = [w.replace("\0", " ").replace("$:", ":") for w in inputs.replace("$ ", "\0").split()[1:]]
            cut = words.index("||") if "||" in words else len(words)
            edge = ([self.name(w) for w in words[:cut] if w != "|"], [self.name(w) for w in words[cut + 1:]], rest)
            for out in outputs.replace("$ ", "\0").split():
                if out != "|":
                    self.edges[self.name(out.replace("\0", " "))] = edge

    def read_dependencies(self):
        self.deps = {}
        for block in output_of("ninja", "-C", self.build, "-t", "deps").split("\n\n"):
            first, *lines = block.strip("\n").split("\n")
            if first.startswith("ninja:"):
                first, *lines = lines or [""]
            out = self.name(first.split(": #deps")[0])
            if out in self.edges:
                self.deps[out] = {self.name(line.strip()) for line in lines}

    def read_symbols(self):
        self.defines, self.needs, self.owners = (collections.defaultdict(set) for _ in range(3))
        objects = [o for o in self.deps if (self.build / o).exists()]
        for line in output_of("nm", "-A", "-g", *objects, cwd=self.build).splitlines():
            path, _, entry = line.partition(":")
            kind, symbol = entry.split()[-2:]
            if kind in "Uwv":
                self.needs[path].add(symbol)
            else:
                self.defines[path].add(symbol)
                self.owners[symbol].add(path)

    @functools.cache
    def objects_in(self, output):
        """All objects that an output is made of, and modules that are built with it."""
        seen, todo, found = {output}, [output], set()
        while todo:
            at = todo.pop()
            if at in self.deps:
                found.add(at)
                continue
            inputs, later, _ = self.edges.get(at, ([], [], ""))
            for way in inputs + [m for name in later for m in self.modules_of(name)]:
                if way not in seen:
                    seen.add(way)
                    todo.append(way)
        return frozenset(found)

    def modules_of(self, name):
        """Lists what is opened at run time: a target's library that nothing is linked to."""
        inputs, _, _ = self.edges.get(name, ([], [], ""))
        return [f for f in [name, *inputs] if f.endswith(".so") and f in self.edges]

    @functools.cache
    def linked(self, output, only=None):
        """The objects that the linker takes: all that are named, of libraries what is needed. Of a
        program of several files of tests one runs, ONLY, with what it calls of the others."""
        inputs, later, text = self.edges[output]
        direct = {i for i in inputs if i in self.deps}
        roots = {o for o in direct if pathlib.Path(o).name == f"{only}.c.o"} or direct
        roots |= {o for i in inputs + [m for name in later for m in self.modules_of(name)]
                  if i.endswith(".so") or ".so." in i or i.endswith("_localised.o") for o in self.objects_in(i)}
        pool, taken, todo = self.objects_in(output), set(), list(roots)
        for symbol in ["main", *re.findall(r"-u,(\w+)", text)]:
            todo += self.owners[symbol] & pool
        while todo:
            at = todo.pop()
            if at in taken:
                continue
            taken.add(at)
            for symbol in self.needs[at]:
                for name in (symbol, f"__wrap_{symbol}", symbol.removeprefix("__real_")):
                    todo += self.owners[name] & pool - taken
        return frozenset(taken)

    @functools.cache
    def sources_of(self, outputs):
        """Files of the tree that these are made of, with those of which a part is generated."""
        seen, todo = set(), list(outputs)
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            todo += self.deps.get(at, ())
            if not at.endswith((".o", ".a")) and at in self.edges:
                todo += self.edges[at][0]
            elif at.endswith(".o") and at in self.edges:
                todo += [i for i in self.edges[at][0] if not i.endswith(".o")]
        return {at[1:] for at in seen if at.startswith("@")}

    @functools.cached_property
    def folders(self):
        return {str(p) for f in self.tracked for p in pathlib.PurePath(f).parents} - {"."}

    @functools.cached_property
    def by_name(self):
        names = collections.defaultdict(set)
        for f in self.tracked:
            names[f.rsplit("/", 1)[-1]].add(f)
        return names

    @functools.cache
    def named_in(self, path):
        """Files and folders (with / at the end) that a file names."""
        found = set()
        text = re.sub(r"^\s*(#|//).*", "", (ROOT / path).read_text(errors="replace"), flags=re.M)
        imported = {f"{m}.py" for line in re.findall(r"^\s*(?:from|import) (.*)", text, re.M) for m in re.findall(r"\w+", line)}
        for word in imported | set(re.findall(r"[\w.*/-]+", text)):
            word = word.strip("/.") if word.strip("./") in self.folders else re.sub(r"^(\.*/)+", "", word)
            head = word.split("*")[0].rstrip("/") if "*" in word else word
            found |= self.by_name.get(word.rsplit("/", 1)[-1], set())
            if head in self.folders:
                found.add(head + "/")
        return found

    def read_by(self, script):
        """Lists what a script reads: its folder, and files named in it or in scripts it names."""
        found, todo = {str(pathlib.PurePath(script).parent) + "/"}, [script]
        while todo:
            at = todo.pop()
            if at in found:
                continue
            found.add(at)
            if at.endswith(SCRIPTS) and (ROOT / at).exists():
                todo += self.named_in(at) - found
        return found - {"tests/"}

    @functools.cached_property
    def tests(self):
        """Maps each test to what it depends on, and to whether it only looks at the tree."""
        shown = json.loads(output_of("ctest", "--test-dir", self.build, "--show-only=json-v1"))
        found = {}
        for test in shown["tests"]:
            labels = [v for p in test["properties"] if p["name"] == "LABELS" for v in p["value"]]
            found[test["name"]] = (self.files_of(test["command"]), "form" in labels)
        return found

    def files_of(self, command):
        files = set()
        for i, word in enumerate(command):
            if not word.startswith("/"):
                continue
            at = self.name(word)
            if at in self.edges:
                only = command[1] if i == 0 and len(command) > 1 else None
                files |= self.sources_of(self.linked(at, only) if at not in self.deps else frozenset([at]))
            elif word.rstrip("/") == str(self.build):
                files |= INSTALLED | {f for f in self.sources_of(frozenset(self.deps)) if not f.startswith("tests/")}
            elif at.startswith("@"):
                files |= {at[1:] + "/"} if (ROOT / at[1:]).is_dir() else self.read_by(at[1:])
        if any(f.endswith(".c") and self.uses_data(f) for f in files):
            files.add("tests/data/")
        return files

    @functools.cache
    def uses_data(self, path):
        return path.startswith("tests/") and "TEST_DATA" in (ROOT / path).read_text(errors="replace")

    def reads(self, test, path):
        files, _ = self.tests[test]
        return path in files or any(f"{p}/" in files for p in pathlib.PurePath(path).parents)

    def touched(self, paths):
        """The tests that a change of these files can touch, or None: all of them."""
        found = set()
        for path in paths:
            of = {t for t in self.tests if self.reads(t, path)}
            known = of if not path.endswith(CODE) else [t for t in of if not self.tests[t][1]]
            if EVERYTHING.match(path) or not known:
                print(f"{path}: {'changes how everything is built' if known else 'no test is known to read it'}: all tests", file=sys.stderr)
                return None
            found |= of
        return found

    def compiled_again(self, path):
        return [o for o, files in self.deps.items() if f"@{path}" in files]


def changed_since(commit):
    names = output_of("git", "diff", "--name-only", "--no-renames", commit, "--")
    return sorted(set((names + output_of("git", "ls-files", "--others", "--exclude-standard")).split("\n")) - {""})


def main():
    if len(sys.argv) < 3 or sys.argv[2] not in ("changed", "again", "why"):
        sys.exit(__doc__)
    graph, what, rest = Graph(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if what == "again":
        for path in rest:
            print(f"{len(graph.compiled_again(path))} of {len(graph.deps)}: {path}")
    elif what == "why":
        print("\n".join(f for f in rest[1:] if graph.reads(rest[0], f)))
    else:
        touched = graph.touched(changed_since(*(rest or ["HEAD"])))
        print("all" if touched is None else "\n".join(sorted(touched)))


if __name__ == "__main__":
    main()
