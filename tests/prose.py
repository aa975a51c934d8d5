#!/usr/bin/env python3
"""Checks comments and documents: tests/style.sh calls it.

    prose.py words PATH...    words that CONTRIBUTING.md (Words) replaces, in these files and
                              folders
    prose.py columns PATH...  comments wider than 100 columns, documents wider than 120
    prose.py names PATH...    files (*.c, *.h, *.sh, *.py, *.md) that are named and are in no folder
    prose.py links PATH...    links of documents to files or headings that are not there
    prose.py starts PATH...   comments of C on functions and fields, docstrings of Python, that do
                              not begin with a verb or the noun that names their result
    prose.py identifiers PATH...   names in C that are gestures

Looked at are documents outside of blocks of code, the manual page, and the comments of C, shell,
CMake, JavaScript and Python. Prints FILE:LINE: and what is wrong, one line each."""
import ast
import os
import re
import subprocess
import sys

BANNED = re.compile(
    r"\b(behind|beside|anew|likewise|whoever|tells?|told)\b|, too(?=\W*$|[.,:;)])"
    r"|\b(go|goes|going|gone|went) on\b|\b(hold|holds|held) against\b"
    r"|\b(an?|the) [a-z]+( [a-z]+)? of (its|their|one's) own\b"
    r"|\b(stands?|stood|lies?|lay) (in|on|at|there|before|below|dim|to)\b"
    r"|\b(tokens?|times|rows|bytes|bits|passes|requests|nodes|layers|once|one) an? (second|minute|pass|turn|step"
    r"|token|line|weight|model)\b", re.I)
NAMED = re.compile(r"(?<![\w*.<>{}$-])((?:[\w.-]+/)*[\w-]+\.(?:c|h|sh|py|md))\b(?![\w*(=/-]|\.\w)")
ELSEWHERE = {"gguf.md"}  # in other projects
FRAGMENT = re.compile(
    r"(?i:of|that|those|these|what|whatever|whether|which|whichever|who|whose|whoever|how|why|where|wherever)\b"
    r"|(?:So|And|But|Or|Nor|As|With|Without|From|By|On|In|While|When|Between|Before|To|It|They)\b")
GESTURE = re.compile(
    r"\b(?:\w+_)?(?:tell|told)(?:_\w+)?\b|\b[A-Z]\w*_A_[A-Z]\w*|\b\w+_go_on\b|\b(?i:go|goes)_on_\w+"
    r"|(?<![.>*])\bgo_on\(|\b\w+_GOES_ON\b")
C_PROSE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.S)


def files_of(paths):
    for path in paths:
        if os.path.isfile(path):
            yield path
        for folder, _, names in sorted(os.walk(path)):
            yield from (os.path.join(folder, name) for name in sorted(names))


def prose_of_document(text):
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside and not (line.startswith("    ") and not line.lstrip().startswith(("-", "*"))):
            yield number, line


def prose_of_c(text):
    for found in C_PROSE.finditer(text):
        if found[0].startswith("/"):
            first = text.count("\n", 0, found.start()) + 1
            yield from enumerate(found[0].split("\n"), first)


def c_comments_outside(text):
    """First lines of the comments that are in no function, whose braces are alone in column 0. One
    on a TEST states a property in a sentence of any form."""
    body = [(a.start(), a.end()) for a in re.finditer(r"^\{$.*?^\}", text, re.M | re.S)]
    for found in C_PROSE.finditer(text):
        is_on_test = text.startswith("\nTEST", found.end())
        if found[0].startswith("/") and not is_on_test and not any(a <= found.start() < b for a, b in body):
            shift = len(re.match(r"/[/*][\s*]*", found[0])[0])
            yield text.count("\n", 0, found.start() + shift) + 1, found[0][shift:].split("\n")[0]


def c_code(text):
    """The lines of code, without comments and strings."""
    blank = C_PROSE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return enumerate(blank.split("\n"), 1)


def docstrings(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            yield node.body[0].lineno, ast.get_docstring(node).split("\n")[0]


def prose_of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            said = node.body[0]
            yield from enumerate(text.split("\n")[said.lineno - 1:said.end_lineno], said.lineno)
    yield from prose_of_shell(text)


def prose_of_shell(text):
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if re.match(r"\s*#", line))


def kind_of(path, text):
    if path.endswith((".md", ".1")):
        return prose_of_document
    if path.endswith((".c", ".h", ".cl", ".cu", ".js")):
        return prose_of_c
    first = text.split("\n", 1)[0]
    if path.endswith(".py") or (first.startswith("#!") and "python" in first):
        return prose_of_python
    return prose_of_shell if path.endswith((".sh", ".cmake", "CMakeLists.txt")) or first.startswith("#!") else None


def check_words(path, number, line, _):
    if "CONTRIBUTING.md" in path and line.startswith("| "):
        return None  # the table of these words
    found = BANNED.search(line)
    return f'"{found[0]}"' if found else None


def check_columns(path, number, _, lines):
    n = len(lines[number - 1])
    free = path.endswith((".1", ".cmake", "CMakeLists.txt"))
    most = 1000 if free else 120 if path.endswith(".md") else 100
    return f"{n} columns" if n > most else None


def check_names(path, number, line, _, here=[]):
    if not here:
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
        here.append({os.path.basename(name) for name in listed.stdout.split("\n")} | ELSEWHERE)
    gone = [name for name in NAMED.findall(line) if os.path.basename(name) not in here[0]]
    gone = [name for name in gone if not re.search(r"_[A-Z]+\.", name)]  # policy_NAME.c: any of them
    return ", ".join(gone) or None


def headings(path):
    """The anchors of a document, as web sites make them of its headings."""
    with open(path, encoding="utf-8") as f:
        found = [line for _, line in prose_of_document(f.read()) if line.startswith("#")]
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line.lstrip("# ")).lower() for line in found)
    return {re.sub(r"[^\w\- ]", "", line).replace(" ", "-") for line in plain}


def check_links(path, number, line, _):
    if not path.endswith(".md"):
        return None
    gone = []
    for link in re.findall(r"\]\(([^)\s:]+)\)", line):
        name, _, heading = link.partition("#")
        file = os.path.join(os.path.dirname(path), name) if name else path
        if not os.path.exists(file) or (heading and heading not in headings(file)):
            gone.append(link)
    return ", ".join(gone) or None


def check_starts(_, number, line, lines):
    found = FRAGMENT.match(line)
    return f'begins with "{found[0]}"' if found else None


def check_identifiers(_, number, line, lines):
    found = GESTURE.search(line)
    return f'"{found[0].rstrip("(")}"' if found else None


def kind_for(check, path, text):
    """The lines to look at: of starts and identifiers those of code that they are about."""
    kind = kind_of(path, text)
    if check in ("starts", "identifiers"):
        if kind is prose_of_c and check == "identifiers":
            return c_code
        if kind is prose_of_c and not path.endswith(".js"):  # whose functions begin in any column
            return c_comments_outside
        return docstrings if check == "starts" and kind is prose_of_python else None
    return kind


def main():
    checks = {"words": check_words, "columns": check_columns, "names": check_names, "links": check_links,
              "starts": check_starts, "identifiers": check_identifiers}
    check = checks[sys.argv[1]]
    for path in files_of(sys.argv[2:]):
        try:
            with open(path, encoding="utf-8") as f:
                text = f.read()
        except UnicodeDecodeError:
            continue  # a picture, a model
        kind = kind_for(sys.argv[1], path, text)
        for number, line in kind(text) if kind else ():
            wrong = check(path, number, line, text.split("\n"))
            if wrong:
                print(f"  {path}:{number}: {wrong}")


main()
