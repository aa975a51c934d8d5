#!/usr/bin/env python3
"""Draws a terminal on which `drey chat` is writing an answer (docs/guide/chat.svg).

    draw-chat.py [--columns N] [--rows N] -o PICTURE.svg MESSAGE... -- drey chat -m big.gguf ...

The command runs in tmux, on a terminal of that size. Messages are typed one after the other, each
once the answer before it has ended. What is drawn is the screen of the moment at which most of the
last answer was provisional, after two lines at least that were verified. All that it shows was
there."""
import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unicodedata
from xml.sax.saxutils import escape

CELL, LINE, EDGE, BAR = 8.4, 19, 16, 34
COLOURS = {None: "#e6e1d8", "1": "#ff8f8f", "2": "#94c476", "3": "#e5c07b", "4": "#8fb0e8", "5": "#dd8fb5", "6": "#6fb7bb"}
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="a conversation in a terminal">
<style>
  text {{ font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre }}
  .dim {{ fill: #8f8a82 }} .strong {{ font-weight: 600 }} .name {{ fill: #a39d93; font-size: 12px }}
</style>
<rect width="{width}" height="{height}" rx="9" fill="#1a1917"/>
<circle cx="20" cy="17" r="5.5" fill="#4a463f"/><circle cx="38" cy="17" r="5.5" fill="#4a463f"/><circle cx="56" cy="17" r="5.5" fill="#4a463f"/>
<text class="name" x="{middle}" y="21" text-anchor="middle">{name}</text>
"""


class Terminal:
    def __init__(self, command, columns, rows, folder):
        self.words = ["tmux", "-f", "/dev/null", "-S", f"{folder}/socket"]
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": folder}
        environment.pop("NO_COLOR", None)
        # The shell stays, so that the last screen can be read.
        subprocess.run([*self.words, "new-session", "-d", "-x", str(columns), "-y", str(rows),
                        f"{shlex.join(command)}; sleep 3600"], check=True, env=environment)

    def tmux(self, *words):
        return subprocess.run([*self.words, *words], check=True, capture_output=True, text=True).stdout

    def type(self, text):
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def screen(self):
        """[[(text, codes)]]: rows of pieces."""
        rows, codes = [], frozenset()
        for line in self.tmux("capture-pane", "-p", "-e").rstrip("\n").split("\n"):
            pieces = []
            for piece in re.split("(\x1b\\[[0-9;]*m)", line):
                if not piece.startswith("\x1b"):
                    pieces += [(piece, codes)] if piece else []
                    continue
                for code in piece[2:-1].split(";"):
                    if code in ("", "0"):
                        codes = frozenset()
                    elif code == "22":
                        codes -= {"1", "2"}
                    elif code == "39":
                        codes = frozenset(c for c in codes if len(c) == 1)
                    elif code != "49":
                        codes |= {code}
            rows.append(pieces)
        return rows


def screens(terminal, patience_s=600):
    """What is shown, again and again, until a prompt waits for a message; that is the last one."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        screen = terminal.screen()
        yield screen
        if lines_of(screen)[-1].rstrip() == ">":
            return
        time.sleep(0.02)
    sys.exit("draw-chat: waited in vain for a prompt")


def lines_of(screen):
    return ["".join(text for text, _ in row) for row in screen]


def cells(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def n_provisional(screen):
    lines = lines_of(screen)
    asked = max((i for i, line in enumerate(lines) if line.startswith("> ")), default=len(lines))
    n = sum(len(text) for row in screen for text, codes in row if "2" in codes)
    return n if len(lines) - asked > 3 else 0


def draw(screen, columns, name):
    while screen and not screen[-1]:
        screen.pop()
    width, height = columns * CELL + 2 * EDGE, len(screen) * LINE + BAR + EDGE
    out = [HEAD.format(width=round(width), height=height, middle=round(width / 2), name=escape(name))]
    for at, row in enumerate(screen):
        column = 0
        for text, codes in row:
            n = cells(text)
            kind = "dim" if "2" in codes else "strong" if "1" in codes else ""
            colour = COLOURS[next((c[1] for c in codes if re.fullmatch("[39][1-6]", c)), None)]
            look = f' class="{kind}"' if kind else ""
            look += "" if kind == "dim" else f' fill="{colour}"'
            if text.strip():
                out.append(f'<text x="{EDGE + column * CELL:.1f}" y="{BAR + at * LINE + 14}" '
                           f'textLength="{n * CELL:.1f}"{look}>{escape(text)}</text>\n')
            column += n
    return "".join([*out, "</svg>\n"])


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("--columns", type=int, default=96)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("-o", required=True)
    parser.add_argument("messages", nargs="+")
    if "--" not in sys.argv:
        parser.error("the command to run comes after --")
    border = sys.argv.index("--")
    options, command = parser.parse_args(sys.argv[1:border]), sys.argv[border + 1:]

    with tempfile.TemporaryDirectory() as folder:
        terminal = Terminal(command, options.columns, options.rows, folder)
        try:
            for message in options.messages:
                list(screens(terminal))
                terminal.type(message)
                time.sleep(1)  # the prompt is gone
            best = max(screens(terminal), key=n_provisional)
        finally:
            terminal.tmux("kill-server")
    if n_provisional(best) == 0:
        sys.exit("draw-chat: nothing was provisional after two lines of the last answer")
    with open(options.o, "w", encoding="utf-8") as f:
        f.write(draw(best, options.columns, shlex.join([os.path.basename(command[0]), *command[1:]])))


if __name__ == "__main__":
    main()
