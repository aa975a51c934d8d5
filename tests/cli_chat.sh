#!/usr/bin/env bash
# drey chat on a toy: from a pipe, where answers alone go to standard output; and on a terminal, with Ctrl-C, pasted
# lines and the history. The examples of docs/chat.md are run as they stand there.
#   cli_chat.sh DREY MAKE_TOY
set -euo pipefail
usage="usage: cli_chat.sh DREY MAKE_TOY"
drey=$(realpath "${1:?$usage}") make_toy=$(realpath "${2:?$usage}")
docs=$(cd "$(dirname "${BASH_SOURCE[0]}")/../docs" && pwd)

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export XDG_STATE_HOME=$tmp/state XDG_CACHE_HOME=$tmp/cache HOME=$tmp
cd "$tmp"
failed=0
wrong() {
    echo "cli_chat: $*"
    failed=1
}
"$make_toy" model.gguf 3
"$make_toy" other.gguf 4
chat=("$drey" chat -m model.gguf -t 1)
talk() { "${chat[@]}" "$@" >out 2>err; } # standard input: what is typed
said() { grep -qF -- "$1" err || wrong "\"$1\" was not said: $(cat err)"; }

# The answer is the one that drey run writes, and the same again on /retry.
"$drey" run -m model.gguf -t 1 -q --chat --system "Be brief." -n 12 -p hello >wanted
printf 'hello\n/retry\n' | talk --system "Be brief." -n 12 || wrong "a talk from a pipe failed"
cmp -s <(cat wanted; echo; cat wanted; echo) out || wrong "another answer than drey run's"
said "reused 0 of "
# All but the last token of what both have in common stays: of a text that is asked for again, all but one.
python3 - err <<'END' || wrong "reused tokens: $(cat err)"
import re, sys
first, again = re.findall(r"reused (\d+) of (\d+) tokens", open(sys.argv[1], errors="replace").read())
assert int(first[0]) == 0 and int(again[0]) == int(again[1]) - 1, (first, again)
END

# A second message: what stands before it is there still, the prompt of the first at least.
printf 'hello\nand \\\nthen\n' | talk -n 12 -q || wrong "-q: $(cat err)"
[ ! -s err ] || wrong "-q says something: $(cat err)"
mv out both
printf 'hello\nand \\\nthen\n' | talk -n 12
python3 - err <<'END' || wrong "reused tokens: $(cat err)"
import re, sys
first, second = re.findall(r"reused (\d+) of (\d+) tokens", open(sys.argv[1], errors="replace").read())
assert int(second[0]) >= int(first[1]) and int(second[1]) > int(second[0]), (first, second)
END
cmp -s both out || wrong "-q changes answers"

# Saved and loaded it goes on as if it had never ended; in another model, or damaged, it does not.
printf 'hello\n/save a talk\n' | talk -n 12 || wrong "/save: $(cat err)"
cp out first
printf '/load a talk\nand \\\nthen\n' | talk -n 12 || wrong "/load: $(cat err)"
cat first out | cmp -s - both || wrong "a loaded conversation goes on in another way"
printf '/load a talk\nhello\n' | "$drey" chat -m other.gguf -t 1 -n 12 >out 2>err && wrong "another model's session was taken"
said "model"
[ -s out ] || wrong "a refused file ended the talk"
printf 'x' | dd of="a talk" bs=1 seek=2000 conv=notrunc status=none
printf '/load a talk\n' | talk -n 12 && wrong "a damaged session was taken"
printf '/load none\n' | talk && wrong "a session was loaded that is not there"

# Commands.
printf '/nope\n' | talk && wrong "an unknown command"
said "/help"
printf '/retry\n' | talk && wrong "/retry without an answer"
printf '/stats\n' | talk && wrong "/stats without an answer"
printf '/help\n/system Be brief.\nhello\n/stats\n/budget\n/budget 64M\n/budget auto\n/reset\nhello\n/quit\nhello\n' | talk -n 12 ||
    wrong "commands: $(cat err)"
cmp -s <(cat wanted; echo; cat wanted; echo) out || wrong "commands change answers, or /quit does not end"
for part in "/retry" "system message is set" "tokens/s" "smallest" "a new conversation"; do said "$part"; done
printf '/budget 1M\nhello\n' | talk --system "Be brief." -n 12 && wrong "a budget that is too small"
said "budget"
cmp -s <(cat wanted; echo) out || wrong "the old budget did not come back"

# What does not fit is said, and nothing is cut.
printf 'hello\n%s\nhello\n' "$(printf 'word %.0s' {1..60})" | talk -n 12 -c 120 && wrong "a message beyond the context"
said "nothing was cut"
printf 'hello\n' | talk -n 64 -c 64 || wrong "a context that is nearly full: $(cat err)"
said "nearly full"
printf 'a\0b\n' | talk && wrong "a NUL byte"
"$drey" chat -m model.gguf </dev/null >out 2>err || wrong "no message at all: $(cat err)"

# The examples of the page.
mkdir bin
ln -s "$drey" bin/drey
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$docs/chat.md" >examples
[ "$(wc -l <examples)" -ge 4 ] || wrong "docs/chat.md has no examples"
PATH=$PWD/bin:$PATH bash -e examples >out 2>err || wrong "an example of docs/chat.md: $(cat err)"
[ "$(wc -l <out)" -ge 6 ] || wrong "examples wrote too little"

cat >terminal.py <<'END'
"""drey chat on a terminal: each case types something once the screen shows what it waits for."""
import os, pty, select, signal, sys, time

drey = sys.argv[1]
bad = []


def run(steps, *options):
    """steps: (what to wait for behind the last thing seen, what is typed then). All that was shown, and the exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", LC_ALL="C.UTF-8")
        os.environ.pop("NO_COLOR", None)
        os.execv(drey, [drey, "chat", "-m", "model.gguf", "-t", "1", *options])
    shown, seen, steps = b"", 0, list(steps)
    end = time.monotonic() + 300
    while time.monotonic() < end:
        if steps and shown.find(steps[0][0], seen) >= 0:
            wanted, typed = steps.pop(0)
            seen = shown.find(wanted, seen) + len(wanted)
            os.write(terminal, typed)
            continue
        if select.select([terminal], [], [], 1)[0]:
            try:
                more = os.read(terminal, 65536)
            except OSError:
                break
            if not more:
                break
            shown += more
    else:
        os.kill(pid, signal.SIGKILL)
        bad.append(f"waited in vain for {steps[:1]}: {shown[-600:]}")
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check(good, what, shown):
    if not good:
        bad.append(f"{what}: {shown[-800:]}")


# Ctrl-C stops an answer without an end in sight; what was written stays, and the talk goes on.
shown, code = run([(b"> ", b"what is\n"), (b"333", b"\x03"), (b"stopped, and what was written stays", b""),
                   (b"> ", b"/save stopped\n"), (b"saved 2 messages", b""), (b"> ", b"/quit\n")],
                  "-n", "100000", "-c", "150000")
check(code == 0, "Ctrl-C in an answer", shown)
# At the prompt it ends nothing, whenever it comes.
for _ in range(5):
    shown, code = run([(b"> ", b"he\x03"), (b"Ctrl-D ends", b""), (b"> ", b"/quit\n")])
    check(code == 0, "Ctrl-C at the prompt", shown)
# A backslash, and pasted text: one message each.
shown, code = run([(b"> ", b"one \\\n"), (b"| ", b"two\n"), (b"written", b""),
                   (b"> ", b"\x1b[200~three\rfour\x1b[201~ five\n"), (b"written", b""), (b"> ", b"/save kept\n"),
                   (b"saved 4 messages", b""), (b"> ", b"/quit\n")], "-n", "8")
check(code == 0, "messages of two lines", shown)
kept = open("kept", "rb").read() if os.path.exists("kept") else b""
check(b"one \\ntwo" in kept and b"three\\nfour five" in kept, "the messages that were saved", kept[-300:])
# The history is there the next time, and nobody else's to read.
path = os.environ["XDG_STATE_HOME"] + "/drey/history"
check(os.path.exists(path) and os.stat(path).st_mode & 0o077 == 0, "the history's file", b"")
shown, code = run([(b"> ", b"\x1b[A\x1b[A\x1b[A\n"), (b"written", b""), (b"> ", b"/quit\n")], "-n", "8")
check(code == 0, "the history", shown)
print("\n".join(bad))
sys.exit(bool(bad))
END
if python3 -c 'import ctypes; ctypes.CDLL("libedit.so.2")' 2>/dev/null; then
    # libedit forgets the names of functions that were added to it.
    echo "leak:wcsdup" >forgotten
    LSAN_OPTIONS="suppressions=$PWD/forgotten:print_suppressions=0" python3 terminal.py "$drey" || wrong "on a terminal"
else
    echo "not run: there is no libedit.so.2, so nothing was typed at a terminal"
fi
exit $failed
