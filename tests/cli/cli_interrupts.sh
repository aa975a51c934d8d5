#!/usr/bin/env bash
# SIGINT, SIGTERM and SIGHUP at any moment of a run, from the first one on, also while nobody reads
# what it writes: the exit code says so, what was written is a beginning of the text, and the
# statistics are whole or not there. A model that is
# written to meanwhile ends the run with one sentence. Files that cannot be written whole are told
# and do not appear.
#   cli_interrupts.sh DREY MAKE_TOY SHIM
. "$(dirname "$0")/shell.sh"
toy=$tmp/toy.gguf
"$make_toy" "$toy" 100
"$make_toy" "$tmp/draft.gguf" 2
least() { # OPTION...: the smallest budget for them, in which most is streamed
    { "$drey" run -m "$toy" -p "The tree" -n 60 -t 1 -q --memory 1M "$@" 2>&1 || true; } |
        sed -n 's/.*smallest that works here is \([0-9]*\) MiB.*/\1M/p'
}
plain=$(least) lookup=$(least -d lookup) draft=$(least -d "$tmp/draft.gguf")
"$drey" run -t 1 -n 60 --ignore-eos -q --raw-ids -p "The tree" -m "$toy" >"$tmp/expected"

# 1. Signals and a changing file, from a program that does not let the shell ignore SIGINT.
python3 - "$drey" "$toy" "$tmp" "$shim" "$plain" "$lookup" "$draft" <<'PYTHON' || failed=1
import fcntl, json, os, signal, subprocess, sys, termios, time

drey, toy, tmp, shim, *budgets = sys.argv[1:]
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup the children would be told to ignore it
expected = open(tmp + "/expected").read().split()
failed = False
env = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(shim), LD_PRELOAD=os.path.basename(shim),
           FAULT_FILE="toy.gguf", FAULT_KIND="delay", FAULT_US="300",
           ASAN_OPTIONS="verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", ""))
command = [drey, "run", "-t", "1", "-n", "60", "--ignore-eos", "-q", "--raw-ids", "-p", "The tree",
           "-m", toy, "--io", "pread", "--stats", tmp + "/stats"]


def wrong(*what):
    global failed
    print("cli_interrupts:", *what)
    failed = True


def start(kind=0):
    more = (["none"], ["lookup"], [tmp + "/draft.gguf"])[kind]
    if os.path.exists(tmp + "/stats"):
        os.remove(tmp + "/stats")
    return subprocess.Popen(command + ["--memory", budgets[kind], "-d"] + more, env=env, stdout=subprocess.PIPE,
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
        if child.returncode != 0 and stats["finish_reason"] != finish:
            wrong(what, "finish_reason", stats["finish_reason"])
        if stats["generated_tokens"] != len(ids):
            wrong(what, stats["generated_tokens"], "tokens counted,", len(ids), "written")
    return len(ids), err


def the_rest(child):
    """What comes behind a line that was read; communicate() would lose what was read with it."""
    rest, err = child.stdout.read(), child.stderr.read()
    child.wait(timeout=300)
    return rest, err


def undisturbed():
    """How long it takes, about: a machine with other work makes it longer, or what comes later shorter."""
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
    # Before the program has its handlers the signal itself ends it; it may have ended, too.
    seen = check(what, child, [128 + number, -number, 0], "interrupted")
    middle += child.returncode == 128 + number
if middle == 0:
    wrong("no signal came in time")

# A reader that reads no more: the first signal ends the run all the same, and neither text nor
# statistics wait for the reader.
for stderr in (subprocess.PIPE, subprocess.STDOUT):
    for number in (signal.SIGTERM, signal.SIGHUP):
        child = subprocess.Popen([drey, "run", "-t", "1", "-n", "20000", "--ignore-eos", "--raw-ids",
                                  "-p", "The tree", "-m", tmp + "/draft.gguf"], stdout=subprocess.PIPE,
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
            wrong(number.name, "while blocked in writing: it goes on")
        child.communicate()

# Hung up, but told to ignore that.
child = subprocess.Popen(command[:-2], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN), env=env)
child.stdout.readline()
child.send_signal(signal.SIGHUP)
rest, err = the_rest(child)
if child.returncode != 0 or rest.split() != expected[1:]:
    wrong("SIGHUP that is ignored: exit code", child.returncode, err)

# Between the windows of a perplexity and at their ends, too. One may be over before the signal
# comes.
with open(tmp + "/corpus", "w") as f:
    f.write("the tree is not for the draft and that is " * 20000)
n_over = 0
for i in range(30):
    child = subprocess.Popen([drey, "perplexity", "-m", tmp + "/draft.gguf", "-t", "1", "--window", "2",
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

env["FAULT_US"] = "5000"  # a text of half a minute
child = start()
child.stdout.readline()  # the first token
os.utime(toy, (1, 1))
rest, err = the_rest(child)
n = 1 + len(rest.split())
if child.returncode != 1 or len(err.splitlines()) != 1 or toy + " has changed" not in err:
    wrong("a file that changes: exit code", child.returncode, err)
if n >= 60 or rest.split() != expected[1:n]:
    wrong("a file that changes:", n, "tokens, or other ones")
if json.load(open(tmp + "/stats"))["finish_reason"] != "error":
    wrong("a file that changes: not an error")
sys.exit(failed)
PYTHON

# 2. A disk that takes no more: a limit on the size of files, which every user may set; and a file
# system that is full, where one can be mounted. Text goes through a pipe.
fails() { # WHAT FILE PATTERN: what the last command said; FILE is not there, nor a part of it
    [ "$(cat "$tmp/code")" = 1 ] || wrong "$1: exit code $(cat "$tmp/code"): $(cat "$tmp/err")"
    grep -qE "^drey: .*$3" "$tmp/err" || wrong "$1: no sentence: $(cat "$tmp/err")"
    ls "$2"* >/dev/null 2>&1 && wrong "$1: left $(ls "$2"*)"
    return 0
}
run=("$drey" run -t 1 -n 4 --ignore-eos -q --raw-ids -p "The tree" -m "$toy")
limited() { # COMMAND...: files take nothing
    (
        ulimit -f 0
        "$@"
    ) 2> >(cat >"$tmp/err") | cat >"$tmp/out"
    echo "${PIPESTATUS[0]}" >"$tmp/code"
    sleep 0.2 # the error's pipe
}
set +e
limited "${run[@]}" --stats "$tmp/full.json"
fails "statistics beyond the limit" "$tmp/full" "cannot write .*full.json"
cmp -s <(head -n 4 "$tmp/expected") "$tmp/out" || wrong "beyond the limit: the text is not there"
limited "$drey" prepare -q "$toy" -o "$tmp/limited.drey"
fails "a sidecar beyond the limit" "$tmp/limited" "limited.drey"
set -e
mkdir "$tmp/small"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=64k none "$tmp/small" 2>/dev/null; then
    trap 'umount "$tmp/small"; rm -rf "$tmp"' EXIT
    head -c 65536 /dev/zero >"$tmp/small/other" 2>/dev/null || true
    ends 1 "${run[@]}" --stats "$tmp/small/full.json"
    echo 1 >"$tmp/code"
    fails "statistics on a full disk" "$tmp/small/full" "full.json.*No space left"
    ends 1 "$drey" prepare -q "$toy" -o "$tmp/small/packed"
    fails "a sidecar on a full disk" "$tmp/small/packed" "free some"
else
    echo "not run: a full file system: none can be mounted here"
fi
exit $failed
