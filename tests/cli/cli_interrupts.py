#!/usr/bin/env python3
"""SIGINT, SIGTERM and SIGHUP at any moment of a run, from the first one on, also while nobody reads
what it writes: the exit code says so, what was written is a beginning of the text, and the
statistics are whole or not there. A model that is written to meanwhile ends the run with one
sentence. Files that cannot be written whole are reported and do not appear.
    cli_interrupts.py DREY MAKE_TOY SHIM"""
import atexit
import contextlib
import fcntl
import glob
import json
import os
import re
import resource
import signal
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True  # the tree is not the test's to write to
from command import done, drey, make, more, tmp, wrong

# Where the test itself ignores them, the commands would as well.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
toy, draft, (shim,) = make("toy.gguf", 100), make("draft.gguf", 2), more
drafts = "none", "lookup", draft
text = ["-t", "1", "--ignore-eos", "-q", "--raw-ids", "-p", "The tree", "-m", toy]
with open(drey, "rb") as program:  # what was freed stays then, and budgets need MiB more
    sanitized = bool(re.search(rb"__[at]san_init", program.read()))


def least(draft):
    """The smallest budget, in which most is streamed."""
    asked = subprocess.run([drey, "run", "-m", toy, "-p", "The tree", "-n", "60", "-t", "1", "-q", "--memory", "1M",
                            "-d", draft], capture_output=True, text=True)
    mib = re.search(r"smallest that works here is (\d+)(\.0+)?M", asked.stderr)[1]
    return f"{int(mib) + 2 * sanitized}M"


budgets = [least(d) for d in drafts]
expected = subprocess.run([drey, "run", *text, "-n", "60"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
env = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(shim), LD_PRELOAD=os.path.basename(shim),
           FAULT_FILE="toy.gguf", FAULT_KIND="delay", FAULT_US="300",
           ASAN_OPTIONS="verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", ""))
command = [drey, "run", *text, "-n", "60", "--io", "pread", "--stats", tmp + "/stats"]

# ---- Signals and a changing file

def start(kind=0):
    if os.path.exists(tmp + "/stats"):
        os.remove(tmp + "/stats")
    return subprocess.Popen([*command, "--memory", budgets[kind], "-d", drafts[kind]], env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def check(what, child, codes, finish):
    try:
        out, err = child.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        child.kill()
        return wrong(what, "it hangs")
    ids = out.split()
    if child.returncode not in codes:
        wrong(what, "exit code", child.returncode, err[-300:])
    if ids != expected[:len(ids)]:
        wrong(what, "other tokens")
    if out and not out.endswith("\n"):
        wrong(what, "half a line")
    left = [f for f in os.listdir(tmp) if f.startswith("stats.")]
    if left:
        wrong(what, "left", left)
    if os.path.exists(tmp + "/stats"):
        stats = json.load(open(tmp + "/stats"))
        # A signal may also come after the whole text, while the program ends.
        ends = {finish, "length"} if len(ids) == len(expected) else {finish}
        if child.returncode != 0 and stats["finish_reason"] not in ends:
            wrong(what, "finish_reason", stats["finish_reason"])
        if stats["generated_tokens"] != len(ids):
            wrong(what, stats["generated_tokens"], "tokens counted,", len(ids), "written")
    return len(ids), err


def the_rest(child):
    """Reads what comes after a line that was read; communicate() would lose what came with it."""
    rest, err = child.stdout.read(), child.stderr.read()
    child.wait(timeout=300)
    return rest, err


def undisturbed():
    """Time that it takes, about: other work of the machine makes it longer, or the rest shorter."""
    begin = time.time()
    check("undisturbed", start(), [0], "length")
    if json.load(open(tmp + "/stats"))["read_bytes"] == 0:
        wrong("nothing was streamed in a budget of", budgets[0])
    return time.time() - begin


whole, middle = undisturbed(), 0
for n in range(60):
    i = n % 12
    if n and i == 0:
        if middle:
            break
        whole = undisturbed()
    number = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[(i + i // 3) % 3]
    what = f"{number.name} after {i}/12 of a run:"
    child = start(i % 3)
    time.sleep(whole * i / 12)
    child.send_signal(number)
    # Before the program has its handlers the signal itself ends it; it may have ended as well.
    seen = check(what, child, [128 + number, -number, 0], "interrupted")
    middle += child.returncode == 128 + number
if middle == 0:
    wrong("no signal came in time")

# A reader that reads no more: the first signal ends the run all the same, and neither text nor
# statistics wait for the reader.
for stderr in (subprocess.PIPE, subprocess.STDOUT):
    for number in (signal.SIGTERM, signal.SIGHUP):
        child = subprocess.Popen([drey, "run", "-t", "1", "-n", "20000", "--ignore-eos", "--raw-ids",
                                  "-p", "The tree", "-m", draft], stdout=subprocess.PIPE,
                                 stderr=stderr)
        fcntl.fcntl(child.stdout, 1031, 4096)  # F_SETPIPE_SZ
        count, before = 0, -1
        while count == 0 or count != before:  # until the pipe is full
            time.sleep(0.5)
            before = count
            count = int.from_bytes(fcntl.ioctl(child.stdout, termios.FIONREAD, b"    "), sys.byteorder)
        child.send_signal(number)
        try:
            if child.wait(timeout=300) != 128 + number:
                wrong(number.name, "while blocked in writing: exit code", child.returncode)
        except subprocess.TimeoutExpired:
            child.kill()
            wrong(number.name, "while blocked in writing: it continues")
        child.communicate()

# Hung up, but asked to ignore that.
child = subprocess.Popen(command[:-2], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN), env=env)
child.stdout.readline()
child.send_signal(signal.SIGHUP)
rest, err = the_rest(child)
if child.returncode != 0 or rest.split() != expected[1:]:
    wrong("SIGHUP that is ignored: exit code", child.returncode, err)

# Between the windows of a perplexity and at their ends. One may be over before the signal
# comes.
with open(tmp + "/corpus", "w") as f:
    f.write("the tree is not for the draft and that is " * 20000)
n_over = 0
for i in range(30):
    child = subprocess.Popen([drey, "perplexity", "-m", draft, "-t", "1", "--window", "2",
                              "-f", tmp + "/corpus"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
    child.stderr.readline()  # it has begun
    time.sleep(0.0017 * i)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=300)
    over = child.returncode == 0 and out.startswith("perplexity ") and " over 100001 tokens" in out
    n_over += over
    if not over and (child.returncode not in (130, -2) or out):
        wrong("SIGINT in perplexity: exit code", child.returncode, out, err[-300:])
if n_over == 30:
    wrong("SIGINT in perplexity: no signal came in time")

# While an importance matrix is measured: there is no file then, nor a part of one.
n_over = 0
for i in range(10):
    child = subprocess.Popen([drey, "imatrix", "-m", draft, "-t", "1", "--window", "64", "-o", tmp + "/im", "--force",
                              "-f", tmp + "/corpus"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.stderr.readline()  # it has begun
    time.sleep(0.0017 * i)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=300)
    over = child.returncode == 0 and out.startswith("written: ")
    n_over += over
    if not over and (child.returncode not in (130, -2) or out):
        wrong("SIGINT in imatrix: exit code", child.returncode, out, err[-300:])
    left = [name for name in os.listdir(tmp) if name.startswith("im")]
    if left != (["im"] if over else []):
        wrong("SIGINT in imatrix: files", left)
    if over:
        os.remove(tmp + "/im")
if n_over == 10:
    wrong("SIGINT in imatrix: no signal came in time")

env["FAULT_US"] = "5000"  # a text of half a minute
child = start()
child.stdout.readline()  # the first token
os.utime(toy, (1, 1))
rest, err = the_rest(child)
n = 1 + len(rest.split())
if child.returncode != 1 or len(err.splitlines()) != 1 or toy + " has changed" not in err:
    wrong("a file that changes: exit code", child.returncode, err)
if n >= len(expected) or rest.split() != expected[1:n]:
    wrong("a file that changes:", n, "tokens, or other ones")
if json.load(open(tmp + "/stats"))["finish_reason"] != "error":
    wrong("a file that changes: not an error")

# ---- A disk that takes no more: a limit on the size of files, which every user may set; and a file
# system that is full, where one can be mounted. Text goes through a pipe.

def fails(what, path, pattern, *words, **how):
    """A command fails with that sentence, and the file is not there, nor a part of it. Its text."""
    child = subprocess.run([drey, *words], capture_output=True, text=True, timeout=900, **how)
    if child.returncode != 1:
        wrong(what, "exit code", child.returncode, child.stderr)
    if not re.search(f"^drey: .*{pattern}", child.stderr, re.M):
        wrong(what, "no sentence:", child.stderr)
    if glob.glob(path + "*"):
        wrong(what, "left", glob.glob(path + "*"))
    return child.stdout


def nothing_fits():
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


short = ["run", *text, "-n", "4", "--stats"]
out = fails("statistics beyond the limit", tmp + "/full", "cannot write .*full.json", *short, tmp + "/full.json",
            preexec_fn=nothing_fits)
if out.split() != expected[:4]:
    wrong("beyond the limit: the text is not there")
fails("a sidecar beyond the limit", tmp + "/limited", "limited.drey", "prepare", "-q", toy, "-o", tmp + "/limited.drey",
      preexec_fn=nothing_fits)
small = tmp + "/small"
os.mkdir(small)
if os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small],
                                        stderr=subprocess.DEVNULL).returncode == 0:
    atexit.register(subprocess.run, ["umount", small])
    with contextlib.suppress(OSError), open(small + "/other", "wb") as f:
        f.write(bytes(65536))
    fails("statistics on a full disk", small + "/full", "full.json.*No space left", *short, small + "/full.json")
    fails("a sidecar on a full disk", small + "/packed", "free some", "prepare", "-q", toy, "-o", small + "/packed")
else:
    print("not run: a full file system: none can be mounted here")
done()
