#!/usr/bin/env python3
"""A text that can never be used is refused while it is read, in one sentence and with little
memory: an endless pipe, /dev/zero, a file far beyond the budget or the context. One that can be
used is read whole, also where it is long.
    cli_memory.py DREY MAKE_TOY"""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True  # the tree is not the test's to write to
from command import done, drey, make, tmp, wrong

MiB = 1 << 20
toy = ["-m", make("toy.gguf"), "-t", "1"]
# What a sanitizer keeps of freed memory is not the command's.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0"
with open(tmp + "/large", "wb") as f:
    f.truncate(100 * MiB)


def peak(words, source=None):
    """Exit code, standard output and error, and the most memory that the process had resident (the
    kernel counts this program's own at the time as well: it has to stay small)."""
    files = [open(f"{tmp}/{name}", "w+") for name in ("out", "err")]
    feeder = subprocess.Popen(source, stdout=subprocess.PIPE) if source else None
    child = subprocess.Popen([drey] + words, stdin=feeder.stdout if feeder else subprocess.DEVNULL,
                             stdout=files[0], stderr=files[1])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = 0  # it has been waited for
    if feeder:
        feeder.stdout.close()
        feeder.kill()
        feeder.wait()
    for f in files:
        f.seek(0)
    return os.waitstatus_to_exitcode(status), *(f.read() for f in files), usage.ru_maxrss << 10


usual = peak(["run"] + toy + ["-n", "1", "-q", "-p", "x", "--memory", "64M"])
if usual[0] != 0:
    wrong("a short prompt:", usual[2])


def refused(what, pattern, words, source=None, more=32 * MiB):
    code, out, err, bytes_ = peak(words, source)
    if code != 1 or out or len(err.splitlines()) != 1 or pattern not in err:
        wrong(what, "exit code", code, err[:300])
    if bytes_ > usual[3] + more:
        wrong(what, bytes_ >> 20, "MiB resident; a short prompt takes", usual[3] >> 20)


large = ["-f", tmp + "/large"]
zero = ["-f", "/dev/zero"]
small = ["--memory", "64M"]
refused("100 MB:", "made for", ["run"] + toy + small + large)
refused("100 MB with -c:", "budget of 64.0M", ["run"] + toy + small + large + ["-c", "1000000000"])
refused("100 MB against -c:", "raise -c", ["run"] + toy + small + large + ["-c", "200"])
refused("/dev/zero:", "made for", ["run"] + toy + zero)
refused("/dev/zero against the budget:", "--memory",
        ["run"] + toy + small + zero + ["-c", "1000000000"])
refused("/dev/zero, perplexity:", "budget of 64.0M", ["perplexity"] + toy + small + zero)
refused("an endless pipe:", "made for", ["run"] + toy, ["yes"])
refused("an endless pipe, perplexity:", "budget of 64.0M", ["perplexity"] + toy + small, ["yes"])
# The context before the budget, which would otherwise speak of the prompt's own needs.
refused("a small budget:", "raise -c", ["run"] + toy + ["--memory", "1M", "-c", "16", "-p", "a " * 40])

with open(tmp + "/prompts", "w") as f:  # six megabytes of lines; one line of two megabytes
    f.writelines('{"prompt": "%s"}\n' % ("word " * 200) for i in range(6000))
with open(tmp + "/line", "w") as f:
    f.write('{"prompt": "a", "numbers": [%s0]}\n' % ("0," * MiB))
train = ["train", "exit"] + toy + small + ["-o", tmp + "/none", "--prompts"]
refused("prompts:", "the file of prompts has more than 4.00M", train + [tmp + "/prompts"])
refused("a prompt's line:", "line 1 of the prompts has more than 2.00M", train + [tmp + "/line"])
chat = ["chat"] + toy + small + ["-q", "-d", "none"]
refused("a message without an end:", "the message has more than", chat + ["-c", "200"],
        ["head", "-c", "100M", "/dev/zero"])

# A long text of many tokens: all of them come out.
code, out, err, bytes_ = peak(["tokenize"] + toy[:2], ["head", "-c", str(4 * MiB), "/dev/zero"])
if code != 0 or len(json.loads(out)) != 4 * MiB:
    wrong("4 MiB of NUL: exit code", code, err[:300])
if bytes_ > usual[3] + 48 * MiB:  # the text, its ids, and what a tokenizer works with
    wrong("4 MiB of NUL:", bytes_ >> 20, "MiB resident")
done()
