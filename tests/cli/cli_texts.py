#!/usr/bin/env python3
"""Texts that the command reads: with a byte order mark and in UTF-16, from files and pipes; and
what it says: of texts that are missing, on narrow terminals, into pipes that nobody reads.
  cli_texts.py DREY MAKE_TOY"""
import json
import os
import pathlib
import pty
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
import command  # noqa: E402
from command import drey, make, make_toy, tmp, wrong  # noqa: E402
from terminal import Screen, read_some, set_size  # noqa: E402

toy = make("toy.gguf")
WRITTEN = {"mark": lambda text: b"\xef\xbb\xbf" + text.encode(), "LE": lambda text: b"\xff\xfe" + text.encode("utf-16-le"),
           "BE": lambda text: b"\xfe\xff" + text.encode("utf-16-be")}


def run(*words, stdin=b""):
    return subprocess.run([drey, *words], input=stdin, capture_output=True, check=False)


def file_of(name, data):
    path = os.path.join(tmp, name)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def same(what, text, call):
    """call(bytes) is the same for the text in every form, and succeeds."""
    usual = call(text.encode())
    if usual.returncode != 0 or not usual.stdout:
        wrong(what, "fails:", usual.stderr)
    for form, write in WRITTEN.items():
        other = call(write(text))
        if (other.returncode, other.stdout) != (usual.returncode, usual.stdout):
            wrong(f"{what}, {form}: {other.stdout[:80]} instead of {usual.stdout[:80]}: {other.stderr.decode()}")


def by_file(*words):
    return lambda data: run(*words, file_of("text", data))


def by_pipe(*words):
    return lambda data: run(*words, stdin=data)


def forms():
    write = ["run", "-m", toy, "-n", "6", "-q", "--sidecar", "none"]
    text = "The caf\u00e9 \u4e2d \U0001f43f and more"
    same("-f", text, by_file(*write, "-f"))
    same("a prompt from a pipe", text, by_pipe(*write))
    same("tokenize", text, by_pipe("tokenize", "-m", toy))
    same("ids", "[1, 2]", by_pipe("tokenize", "-m", toy, "--ids"))
    same("a schema", json.dumps({"enum": ["yes", "no"]}), by_file(*write, "-p", "x", "--json-schema"))
    same("a grammar", "root ::= \"yes\" | \"\u00e9\"\n", by_file(*write, "-p", "x", "--grammar"))
    same("perplexity", "The sky is blue and the caf\u00e9 is open.", by_file("perplexity", "-m", toy, "-q", "-f"))
    same("imatrix", "The sky is blue. " * 40,
         by_file("imatrix", "-m", toy, "-o", os.path.join(tmp, "imatrix"), "--force", "-f"))
    for form, write in WRITTEN.items():
        prompts = file_of("prompts", write("{\"prompt\": \"The sky\"}\n{\"prompt\": \"caf\u00e9\"}\n"))
        ended = run("verify", "-m", toy, "-d", "lookup", "-n", "4", "--prompts", prompts)
        if ended.returncode != 0:
            wrong("prompts,", form, ended.stderr)
    same("a list of ranks", "a 1G 1G/s\nb 1G 1G/s\n", by_file("plan", "-m", toy, "--no-measure", "--ranks"))
    same("a chat from a pipe", "Hello \u00e9\n/reset\nAgain\n", by_pipe("chat", "-m", toy, "-n", "4", "-q"))


def broken():
    half = b"\xff\xfeH\0\x3d\xd8x\0"
    for what, pattern, data in [("half a character", "UTF-16 with half a character", half),
                                ("an odd byte", "ends in the middle of a character", b"\xff\xfeH\0e"),
                                ("UTF-32", "is UTF-32; save it as UTF-8", b"\xff\xfe\0\0H\0\0\0")]:
        ended = run("run", "-m", toy, "-n", "1", "-f", file_of("broken", data))
        if ended.returncode != 1 or pattern not in ended.stderr.decode() or ended.stdout:
            wrong(what, ended.returncode, ended.stderr)
    for mark in "utf-32-le", "utf-32-be":
        ended = run("chat", "-m", toy, "-n", "1", "-q", stdin="\ufeffHello\n".encode(mark))
        if ended.returncode != 1 or ended.stderr != b"drey: error: standard input is UTF-32; save it as UTF-8\n" or ended.stdout:
            wrong("a chat in", mark, ended.returncode, ended.stderr)
    chat = b"/read " + file_of("binary", b"\x00\x01\x02").encode() + b"\n"
    if b"is no text file" not in run("chat", "-m", toy, "-n", "1", stdin=chat).stderr:
        wrong("a binary file is taken")
    chat = b"/read " + file_of("wide", WRITTEN["LE"]("caf\u00e9\n")).encode() + b"\n"
    if b"goes with the next message" not in run("chat", "-m", toy, "-n", "1", stdin=chat).stderr:
        wrong("/read of UTF-16 is refused")


def vocabulary():
    """A file with a vocabulary alone, as llama.cpp's tests have them: the toy's keys."""
    with open(toy, "rb") as file:
        data = file.read()
    from gguf_file import Gguf
    first = Gguf(toy).tensors[0][0]
    end = data.index(len(first).to_bytes(8, "little") + first)
    alone = file_of("vocabulary.gguf", data[:8] + bytes(8) + data[16:end])
    text = "The sky <|im_start|>".encode()
    if run("tokenize", "-m", alone, stdin=text).stdout != run("tokenize", "-m", toy, stdin=text).stdout:
        wrong("tokenize of a vocabulary:", run("tokenize", "-m", alone, stdin=text).stderr)
    shown = run("inspect", alone)
    if shown.returncode != 0 or b"has a vocabulary and no tensors" not in shown.stdout:
        wrong("inspect of a vocabulary:", shown.stdout[-200:])
    if b"has a vocabulary and no tensors" not in run("run", "-m", alone, "-p", "x").stderr:
        wrong("run of a vocabulary")


def wrong_kinds():
    """A key of a wrong kind is an error, not a missing one."""
    with open(toy, "rb") as file:
        data = file.read()
    name, f32 = b"tokenizer.ggml.eos_token_id", (6).to_bytes(4, "little")
    at = data.index(name) + len(name)
    path = file_of("kind.gguf", data[:at] + f32 + data[at + 4:])
    ended = run("run", "-m", path, "-p", "x", "-n", "1")
    if ended.returncode != 1 or b"eos_token_id is of kind f32" not in ended.stderr:
        wrong("a key of a wrong kind:", ended.stderr)


def hints():
    other = os.path.join(tmp, "other.gguf")
    file_of("other.gguf", "mine")
    for pattern, code, words in [
            ("(--force)", 2, ["quantize", toy, other, "Q4_0"]),
            ("name another file\n", 2, ["quantize", toy, toy, "Q4_0"]),
            ("(--allow-requantize)", 1, ["quantize", toy, os.path.join(tmp, "new.gguf"), "Q4_0"]),
            (f"(drey train medusa -m {toy})", 1, ["run", "-m", toy, "-d", "medusa", "-p", "x", "-n", "1"]),
            ("with -f FILE, or on standard input", 2, ["imatrix", "-m", toy, "-o", os.path.join(tmp, "none")]),
            ("with -f FILE, or on standard input", 1, ["perplexity", "-m", toy]),
            ("on standard input, as in echo", 0, ["tokenize", "-m", toy]),
            ("drey pull OWNER/NAME fetches it", 1, ["run", "-m", "hf.co/OWNER/NAME", "-p", "x"])]:
        ended = run(*words)
        if ended.returncode != code or pattern not in ended.stderr.decode():
            wrong(f"{' '.join(words)}: {ended.returncode}: {ended.stderr.decode()}")


def pipes():
    """Reads as "| head" does: the reader goes away, and the command ends without a word."""
    trace = os.path.join(tmp, "trace.json")
    run("run", "-m", toy, "-p", "x", "-n", "8", "--ignore-eos", "-q", "-d", "lookup", "--trace", trace)
    for words in (["inspect", toy], ["report", trace], ["run", "-m", toy, "-p", "x", "-n", "400", "--ignore-eos", "-q"]):
        read_end, write_end = os.pipe()
        os.close(read_end)
        ended = subprocess.run([drey, *words], stdout=write_end, stderr=subprocess.PIPE, check=False)
        os.close(write_end)
        if ended.returncode == 0 or ended.stderr:
            wrong(f"drey {words[0]} into a closed pipe: {ended.returncode}: {ended.stderr.decode()}")


def on_terminal(columns, *words, typed=b""):
    forgotten = os.path.join(tmp, "forgotten")  # libedit forgets the names of functions that were added to it
    pathlib.Path(forgotten).write_text("leak:wcsdup\n")
    pid, terminal = pty.fork()
    if pid == 0:
        set_size(0, 40, columns)
        os.environ["LC_ALL"] = "C.UTF-8"
        os.environ["LSAN_OPTIONS"] = f"suppressions={forgotten}:print_suppressions=0"
        os.execvp(drey, [drey, *words])
    os.write(terminal, typed)
    written = b""
    while more := read_some(terminal):
        written += more
    os.waitpid(pid, 0)
    os.close(terminal)
    return written


def rows_of(written):
    """Rows as they are in the end: without colours, and without lines that were removed."""
    rows = written.decode().replace("\x1b[?2004h", "").replace("\x1b[?2004l", "").split("\r\n")
    return [re.sub("\x1b\\[[0-9;]*m", "", row.split("\x1b[K")[-1]).strip("\r") for row in rows]


def fits(what, columns, wide, rows):
    for row in rows:
        words = [word for word in row.split() if word.isalpha()]
        if len(row) > columns or not wide.issuperset(words):
            wrong(f"{what} in {columns} columns has the row {row!r}")


def narrow():
    """No row is longer than the terminal, and no word is cut; the loading line leaves nothing."""
    large = make("large.gguf", 12)
    plan = ["plan", "-m", toy, "--no-measure", "--memory", "unlimited"]
    write = ["run", "-m", large, "-p", "x", "-n", "2", "-v"]
    talk = {"typed": b"/help\n/set warmth\n/show\n/quit\n"}
    for columns in (40, 50, 64):
        fits("a plan", columns, set(" ".join(rows_of(on_terminal(400, *plan))).split()), rows_of(on_terminal(columns, *plan)))
        written = on_terminal(columns, *write)
        fits("a run", columns, set(" ".join(rows_of(on_terminal(400, *write))).split()), rows_of(written))
        if "with --chat" not in " ".join(" ".join(rows_of(written)).split()):
            wrong(f"a prompt that a chat could answer: no hint in {written!r}")
        shown = Screen(columns).feed(written).text()
        if "loading" in shown or "planning" in shown:
            wrong(f"in {columns} columns the loading line stays:\n{shown}")
        error = rows_of(on_terminal(columns, "run", "-m", os.path.join("/nowhere", "x"), "-p", "x"))
        if any(len(row) > columns for row in error) or "directory" not in " ".join(error):
            wrong(f"a message in {columns} columns: {error!r}")
    wide = set(" ".join(rows_of(on_terminal(400, "chat", "-m", toy, **talk))).split())
    fits("a chat", 50, wide, rows_of(on_terminal(50, "chat", "-m", toy, **talk)))


forms()
broken()
vocabulary()
wrong_kinds()
hints()
pipes()
narrow()
command.done()
