#!/usr/bin/env python3
"""Draws what `drey` shows on a terminal.

    draw-screens.py still [--columns N] [--rows N] -o PICTURE.svg MESSAGE... -- drey chat ...
    draw-screens.py film [--columns N] [--rows N] -o PICTURE.svg -- drey run ...

Commands run in tmux, on a terminal of that size. All that is drawn was there.

still (docs/guide/chat.svg): messages are typed one after the other, each once the answer before it
has ended. What is drawn is the screen of the moment at which most of the last answer was
provisional, after two lines at least that were verified.

film (docs/guide/screencast.svg): the command is typed into a shell, and its screen is read
every 50 ms until the shell waits again. The picture shows that in the same time, again
and again, by CSS alone; where motion is not wanted, the last screen. Colours follow the page's."""
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
ON_LIGHT = {None: "#2b2926", "1": "#b3261e", "2": "#3d7a1f", "3": "#8a6100", "4": "#2b57a8", "5": "#9c2f68", "6": "#16707a"}
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="a conversation in a terminal">
<style>
  text {{ font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre }}
  .dim {{ fill: #8f8a82 }} .strong {{ font-weight: 600 }} .name {{ fill: #a39d93; font-size: 12px }}
</style>
<rect width="{width}" height="{height}" rx="9" fill="#1a1917"/>
<circle cx="20" cy="17" r="5.5" fill="#4a463f"/><circle cx="38" cy="17" r="5.5" fill="#4a463f"/><circle cx="56" cy="17" r="5.5" fill="#4a463f"/>
<text class="name" x="{middle}" y="21" text-anchor="middle">{name}</text>
"""
FILM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="drey in a terminal">
<style>
  rect {{ fill: #fbfaf7; stroke: #d8d3c8 }} circle {{ fill: #d8d3c8 }}
  text {{ font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre; fill: {light} }}
  .b {{ font-weight: 600 }} .d {{ fill: #8a857c }}
  {light_colours}
  @media (prefers-color-scheme: dark) {{
    rect {{ fill: #1a1917; stroke: #1a1917 }} circle {{ fill: #4a463f }} text {{ fill: {dark} }} .d {{ fill: #8f8a82 }}
    {dark_colours}
  }}
  @media (prefers-reduced-motion: no-preference) {{
    g {{ animation-duration: {seconds:.2f}s; animation-timing-function: step-end; animation-iteration-count: infinite }}
{frames}  }}
  .h {{ opacity: 0 }}
</style>
<rect x=".5" y=".5" width="{inner_width}" height="{inner_height}" rx="9"/>
<circle cx="20" cy="17" r="5.5"/><circle cx="38" cy="17" r="5.5"/><circle cx="56" cy="17" r="5.5"/>
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

    def cursor(self):
        """(column, row), counted from 0."""
        return tuple(int(n) for n in self.tmux("display-message", "-p", "#{cursor_x} #{cursor_y}").split())

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
    """Yields what is shown, again and again, until a prompt waits for a message; that is the last
    one."""
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


def until(is_so, patience_s=300):
    end = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > end:
            sys.exit("draw-screens: the shell did not come back")
        time.sleep(0.05)


def record(terminal, command, pause_s=3.0):
    """[(time, screen)] from the first key to the shell's next prompt, and how long it took."""
    until(lambda: lines_of(terminal.screen())[-1].rstrip() == "$")
    begin = time.monotonic()
    frames = [(0.0, terminal.screen())]
    for key in command:
        terminal.tmux("send-keys", "-l", key)
        time.sleep(0.02)
        frames.append((time.monotonic() - begin, terminal.screen()))
    time.sleep(0.3)
    terminal.tmux("send-keys", "Enter")
    time.sleep(0.1)

    def look():
        frames.append((time.monotonic() - begin, terminal.screen()))
        return terminal.cursor()[0] == 2 and lines_of(frames[-1][1])[-1].rstrip() == "$"

    until(look)
    return frames, frames[-1][0] + pause_s


def spans(frames, end):
    """[(row, column, text, codes, from, to)]: what is on the screen when. In a row that only grows,
    what was there stays."""
    shown, there = [], {}  # there: row: [(column, text, codes, since)]
    for at, screen in [*frames, (end, [])]:
        for row in {*there, *range(len(screen))}:
            old, pieces, column = there.get(row, []), [], 0
            for text, codes in screen[row] if row < len(screen) and at < end else []:
                pieces.append((column, text, codes, at))
                column += cells(text)
            if [piece[:3] for piece in old] == [piece[:3] for piece in pieces]:
                continue
            kept = []
            for piece in old:
                same = next((p for p in pieces if p[0] == piece[0] and p[2] == piece[2] and p[1].startswith(piece[1])), None)
                if same:  # it is there still, with perhaps more after it
                    kept.append(piece)
                    pieces.remove(same)
                    more = same[1][len(piece[1]):]
                    pieces += [(piece[0] + cells(piece[1]), more, same[2], at)] if more else []
                else:
                    shown.append((row, *piece, at))
            there[row] = sorted(kept + pieces, key=lambda piece: piece[0])
    return shown


def look_of(codes):
    colour = next((c[1] for c in codes if re.fullmatch("[39][1-6]", c)), None)
    return " ".join(["d"] * ("2" in codes) + ["b"] * ("1" in codes) + ([f"c{colour}"] if colour else []))


def draw_film(frames, end, columns):
    """Texts that come and go at the same times are one group, with one animation."""
    groups, n_rows = {}, max(len(screen) for _, screen in frames)
    for row, column, text, codes, since, until in spans(frames, end):
        if text.strip():
            groups.setdefault((since, until), []).append((row, column, text, codes))
    rules, out = [], []
    for number, ((since, until), texts) in enumerate(sorted(groups.items())):
        a, b = 100 * since / end, 100 * until / end
        name = f"f{number}"
        stays = until >= end
        if since > 0 or not stays:
            rules.append(f"    .{name} {{ animation-name: {name} }} @keyframes {name} {{ "
                         + ("0% {opacity:0} " if since > 0 else "") + f"{a:.2f}% {{opacity:1}}"
                         + ("" if stays else f" {b:.2f}% {{opacity:0}} to {{opacity:0}}") + " }\n")
        out.append(f'<g class="{name}{"" if stays else " h"}">')
        for row, column, text, codes in texts:
            kind = f' class="{look_of(codes)}"' if look_of(codes) else ""
            lead = len(text) - len(text.lstrip())
            text = text.strip()
            out.append(f'<text x="{EDGE + (column + lead) * CELL:.1f}" y="{BAR + row * LINE + 14}" '
                       f'textLength="{cells(text) * CELL:.1f}"{kind}>{escape(text)}</text>')
        out.append("</g>\n")
    width, height = round(columns * CELL + 2 * EDGE), n_rows * LINE + BAR + EDGE
    colours = [" ".join(f".c{c} {{ fill: {of[c]} }}" for c in of if c) for of in (ON_LIGHT, COLOURS)]
    return FILM.format(width=width, height=height, inner_width=width - 1, inner_height=height - 1, seconds=end,
                       light=ON_LIGHT[None], dark=COLOURS[None], light_colours=colours[0], dark_colours=colours[1],
                       frames="".join(rules)) + "".join(out) + "</svg>\n"


def still(options, command, folder):
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
        sys.exit("draw-screens: nothing was provisional after two lines of the last answer")
    return draw(best, options.columns, shlex.join([os.path.basename(command[0]), *command[1:]]))


def film(options, command, folder):
    path = f"{os.path.dirname(os.path.abspath(command[0]))}:{os.environ['PATH']}"
    shell = ["env", "PS1=$ ", f"PATH={path}", "bash", "--norc", "--noprofile"]
    terminal = Terminal(shell, options.columns, options.rows, folder)
    try:
        frames, end = record(terminal, shlex.join([os.path.basename(command[0]), *command[1:]]))
    finally:
        terminal.tmux("kill-server")
    last = frames.pop()  # its last row is the prompt
    frames.append((last[0], last[1][:-1]))
    return draw_film(frames, end, options.columns)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("what", choices=["still", "film"])
    parser.add_argument("--columns", type=int, default=96)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("-o", required=True)
    parser.add_argument("messages", nargs="*")
    if "--" not in sys.argv:
        parser.error("the command to run comes after --")
    border = sys.argv.index("--")
    options, command = parser.parse_intermixed_args(sys.argv[1:border]), sys.argv[border + 1:]
    with tempfile.TemporaryDirectory() as folder:
        picture = (still if options.what == "still" else film)(options, command, folder)
    with open(options.o, "w", encoding="utf-8") as f:
        f.write(picture)


if __name__ == "__main__":
    main()
