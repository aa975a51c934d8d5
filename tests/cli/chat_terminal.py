"""drey chat on a terminal, in a folder with model.gguf and other.gguf: each case types something
once the screen shows what it waits for. Nothing depends on how long that takes.
    chat_terminal.py DREY"""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True  # the tree is not the test's to write to
from terminal import Screen, as_shown, read_some, set_size

COLUMNS = 60
drey = sys.argv[1]
bad = []


def is_edited(terminal):
    """The editor has the keys. The prompt comes before: until then backspace and Ctrl-D are the
    terminal's own."""
    return not termios.tcgetattr(terminal)[3] & termios.ICANON


def run(steps, *options, edited=True, **environment):
    """steps: (what to wait for after the last thing seen, what is typed then). All that was shown,
    and the exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        set_size(0, 40, COLUMNS)
        os.environ.update(TERM="xterm", LC_ALL="C.UTF-8", **environment)
        os.environ.pop("NO_COLOR", None)
        os.execv(drey, [drey, "chat", "-m", "model.gguf", "-t", "1", *options])
    shown, seen, steps = b"", 0, list(steps)
    end = time.monotonic() + 300
    while time.monotonic() < end:
        found = steps and shown.find(steps[0][0], seen) >= 0
        early = found and edited and steps[0][0] in (b"> ", b"| ") and not is_edited(terminal)
        if found and not early:
            wanted, typed = steps.pop(0)
            seen = shown.find(wanted, seen) + len(wanted)
            os.write(terminal, typed)
            continue
        if select.select([terminal], [], [], 0.01 if early else 1)[0]:
            more = read_some(terminal)
            if not more:
                break
            shown = (shown + more).replace(b"\r\n  ", b" ")  # messages are broken at blanks
    else:
        os.kill(pid, signal.SIGKILL)
        bad.append(f"waited in vain for {steps[:1]}: {shown[-600:]}")
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def answer_to(message, n):
    """The same from a pipe."""
    return subprocess.run([drey, "chat", "-m", "model.gguf", "-t", "1", "-q", "-n", str(n)], input=message + b"\n",
                          stdout=subprocess.PIPE, check=True).stdout


def check(good, what, shown):
    if not good:
        bad.append(f"{what}: {shown[-800:]}")


def kept(path):
    """Reads what a saved conversation's messages say: as it is, and with JSON's escapes undone."""
    whole = open(path, "rb").read() if os.path.exists(path) else b""
    return whole, whole.decode(errors="replace").replace("\\n", "\n")


def test_interrupts():
    # Ctrl-C stops an answer without an end in sight; what was written stays; the talk continues.
    shown, code = run([(b"> ", b"what is\n"), (b"333", b"\x03"), (b"stopped, and what was written stays", b""),
                       (b"> ", b"/save stopped\n"), (b"saved 2 messages", b""), (b"> ", b"/quit\n")],
                      "-n", "100000", "-c", "150000")
    check(code == 0, "Ctrl-C in an answer", shown)
    stays = re.search(rb'"role":"assistant","content":"([^"]*)', kept("stopped")[0])
    check(stays and stays[1] and answer_to(b"what is", 40)[:10] == stays[1][:10], "the answer that was stopped", str(stays))
    # At the prompt it ends nothing, whenever it comes.
    for _ in range(5):
        shown, code = run([(b"> ", b"he\x03"), (b"Ctrl-D ends", b""), (b"> ", b"exit\n")])
        check(code == 0, "Ctrl-C at the prompt", shown)
    shown, code = run([(b"> ", b"\x04")])
    check(code == 0, "Ctrl-D", shown)


def test_lines():
    # A backslash, and pasted text: one message each.
    shown, code = run([(b"> ", b"one \\\n"), (b"| ", b"two\n"), (b"; context", b""),
                       (b"> ", b"\x1b[200~three\rfour\x1b[201~ five\n"), (b"; context", b""), (b"> ", b"/save kept\n"),
                       (b"saved 4 messages", b""), (b"> ", b"/quit\n")], "-n", "8")
    check(code == 0, "messages of two lines", shown)
    whole, text = kept("kept")
    check("one \ntwo" in text and "three\nfour five" in text, "the messages that were saved", whole[-300:])
    # What is typed while an answer is written waits for it: a question that is asked then.
    shown, code = run([(b"> ", b"what is\n"), (b"333", b"QQQ\n"), (b"; context", b""), (b"QQQ", b""), (b"\x1b[?2004l", b"\x03"),
                       (b"> ", b"/quit\n")], "-n", "6000", "-c", "24000")
    check(code == 0 and shown.find(b"QQQ") > shown.find(b"; context"), "typing in an answer", shown)
    # A wrong command is not a failure of the talk: who typed it has seen it.
    shown, code = run([(b"> ", b"/nonsense\n"), (b"/help lists them", b""), (b"> ", b"/quit\n")])
    check(code == 0, "a wrong command", shown)
    # What no context holds is refused, pasted or typed; the next message is another one.
    for long in b"\x1b[200~" + b"a\r" * 2000 + b"\x1b[201~", b"a" * 3500:
        shown, code = run([(b"> ", long + b"\n"), (b"the message has more than", b""), (b"> ", b"hello\n"),
                           (b"; context", b""), (b"> ", b"/save short\n"), (b"saved 2 messages", b""), (b"> ", b"/quit\n")],
                          "-n", "8", "-c", "80")
        check(code == 1 and '"hello"' in kept("short")[1], "a message that is too long", shown)
    # A character is what one backspace takes, however many bytes and columns it has.
    shown, code = run([(b"> ", "Grüße, 世界\x7f人ä\x7f!\n".encode()), (b"; context", b""), (b"> ", b"/save utf8\n"),
                       (b"saved 2 messages", b""), (b"> ", b"/quit\n")], "-n", "8")
    whole, text = kept("utf8")
    check(code == 0 and '"Grüße, 世人!"' in text, "a message in UTF-8", whole[-300:])


def test_tab():
    # Commands and names of files are completed; where there are several they are shown.
    os.makedirs("names/inner", exist_ok=True)
    for name in "names/grün.txt", "names/grau.txt":
        open(name, "w").write(name)
    shown, code = run([(b"> ", b"/und\t\n"), (b"no message to take back", b""), (b"> ", b"/re\t"), (b"/reset  /retry  /read", b"a\tna\tg\t\t"),
                       ("grün.txt".encode(), "ü\t\n".encode()), ("[grün.txt goes with".encode(), b""),
                       (b"> ", b"what?\n"), (b"; context", b""), (b"> ", b"/save tab\n"), (b"saved 2 messages", b""), (b"> ", b"/quit\n")], "-n", "2")
    check(code == 0 and "names/grün.txt\n```\n\nwhat?" in kept("tab")[1], "Tab", shown)
    # A message between three quotes, and one that is ended while it is typed.
    shown, code = run([(b"> ", b'"""one\n'), (b"| ", b"/two\n"), (b"| ", b'three"""\n'), (b"; context", b""), (b"> ", b"/save quoted\n"),
                       (b"saved 2 messages", b""), (b"> ", b'"""\n'), (b"| ", b"\x03"), (b"> ", b"/quit\n")], "-n", "2", "-v")
    check(code == 0 and '"one\n/two\nthree"' in kept("quoted")[1], "three quotes", shown)
    # What all prompts begin with has been computed while that was typed.
    check(re.search(rb"[(][1-9][0-9]* reused[)]", shown), "the weights are loaded early", shown)


def test_history():
    # It is there the next time, and nobody else's to read.
    path = os.environ["XDG_STATE_HOME"] + "/drey/history"
    check(os.path.exists(path) and os.stat(path).st_mode & 0o077 == 0, "the history's file", b"")
    shown, code = run([(b"> ", b"\x1b[A\x1b[A\x1b[A\n"), (b"; context", b""), (b"> ", b"/save again\n"),
                       (b"saved 2 messages", b""), (b"> ", b"/quit\n")], "-n", "8")
    check(code == 0 and '"Grüße, 世人!"' in kept("again")[1], "the history", shown)


def drafted(draft, message):
    """An answer's screen, drafted by a policy that asks no clock; blanks and rows do not count."""
    wanted = Screen(1000).feed(as_shown(answer_to(message, 60)).replace(b"\n", b"\r\n")).text()
    shown, code = run([(b"> ", message + b"\n"), (b"\x1b[?2004l", b""), (b"\x1b[?2004h", b"/quit\n")],
                      "-q", "-n", "60", "-d", draft, "--policy", "sequence", "--without", "provisional")
    check(code == 0, f"an answer drafted by {draft}", shown)
    answer = re.search(rb"\x1b\[\?2004l(.*?)\x1b\[\?2004h", shown, re.S)
    screen = Screen(COLUMNS).feed(answer[1] if answer else b"")
    check("".join(screen.text().split()) == "".join(wanted.split()), f"{draft}: another text than the pipe's", screen.text())
    check(screen.n_dim > 0 and screen.n_dim == screen.n_settled + screen.n_taken_back and
          "(dim)" not in screen.text(), f"{draft}: not all that was dim has ended", shown)
    return screen


def test_provisional():
    # What the target's own copy guesses is dim first, and then as it stands; a stranger's guesses
    # go.
    same, other = drafted("model.gguf", b"hello"), drafted("other.gguf", b"a quick brown")
    check(same.n_settled > 0 and same.n_taken_back == 0, "guesses that were right", str(vars(same)))
    check(other.n_taken_back > 0, "guesses that were wrong", str(vars(other)))


def test_colours():
    # Code has a colour, unless that is switched off; the text is the same.
    message = next(m for m in (b"hello", b"one", b"x", b"why") if re.search(b"`[^`\n ]", answer_to(m, 60)))
    shown, code = run([(b"> ", message + b"\n"), (b"; context", b""), (b"> ", b"/set markdown off\n"), (b"> ", b"/retry\n"),
                       (b"; context", b""), (b"> ", b"/quit\n")], "-n", "60", "-d", "none")
    first, _, second = shown.partition(b"/set markdown off")
    check(code == 0 and b"\x1b[36m" in first and b"\x1b[36m" not in second, "colours of code", shown)


def test_without_libedit():
    # Lines as the terminal gives them; Ctrl-C as ever.
    os.makedirs("without", exist_ok=True)
    open("without/libedit.so.2", "w").close()
    shown, code = run([(b"> ", b"he\x03"), (b"Ctrl-D ends", b""),
                       (b"> ", b"one \\\n"), (b"| ", b"two\n"), (b"; context", b""), (b"> ", b"/save plain\n"),
                       (b"saved 2 messages", b""), (b"> ", b"\x04")], "-n", "8", edited=False, LD_LIBRARY_PATH="without")
    check(code == 0 and "one \ntwo" in kept("plain")[1] and b"\x1b[?2004h" not in shown, "without libedit", shown)


test_without_libedit()
if "--without-libedit" not in sys.argv:
    for test in test_interrupts, test_lines, test_history, test_tab, test_provisional, test_colours:
        test()
print("\n".join(bad))
sys.exit(bool(bad))
