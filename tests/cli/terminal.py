"""A terminal for tests: what its screen shows of the bytes that a program wrote, and what became of
dim text.
    terminal.py OUT COMMAND...      runs it on one of 20 columns: what it wrote goes to OUT, the
                                    screen as it is in the end to standard output
    terminal.py --text FILE         the same screen of a model's text that is written at once"""
import fcntl
import os
import pty
import re
import struct
import sys
import termios
import unicodedata


def set_size(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def read_some(terminal):
    """Reads what is there, or returns b"" once the program has gone."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def as_shown(text):
    """Text of a model as it is written to a terminal, which nothing in it may steer."""
    return re.sub(rb"(?<=\xc2)[\x80-\x9f]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", b"?", text)


class Screen:
    """Rows of (character, dim); the second column of a wide character is ("", dim)."""

    def __init__(self, columns):
        self.columns, self.cells = columns, [[]]
        self.row, self.column, self.dim = 0, 0, False
        self.n_dim = self.n_settled = self.n_taken_back = 0  # characters that were dim, and how they ended

    def drop(self, cells):
        self.n_taken_back += sum(dim and text != "" for text, dim in cells)

    def put(self, text, width):
        if self.column + width > self.columns:
            self.row, self.column = self.row + 1, 0
        self.cells += [[] for _ in range(self.row + 1 - len(self.cells))]
        line = self.cells[self.row]
        line += [(" ", False)] * (self.column + width - len(line))
        before, was_dim = line[self.column]
        if was_dim and before == text:
            self.n_settled += not self.dim
        else:
            self.drop(line[self.column:self.column + width])
            self.n_dim += self.dim
        line[self.column:self.column + width] = [(text, self.dim)] + [("", self.dim)] * (width - 1)
        self.column += width

    def erase_rest(self):
        for gone in self.cells[self.row + 1:]:
            self.drop(gone)
        del self.cells[self.row + 1:]
        if self.row < len(self.cells):
            column = min(self.column, self.columns - 1)
            self.drop(self.cells[self.row][column:])
            del self.cells[self.row][column:]

    def command(self, number, letter):
        if letter in "AB":
            self.row += -number if letter == "A" else number
            self.column = min(self.column, self.columns - 1)
        elif letter == "C":
            self.column += number
        elif letter == "J":
            self.erase_rest()
        elif letter == "m":
            self.dim = number == 2

    def feed(self, written):
        for piece in re.findall("\033\\[[?0-9]*[A-Za-z]|.", written.decode(errors="replace"), re.S):
            if piece[0] == "\033":
                number = piece[2:-1]
                self.command(int(number) if number.isdigit() else 0, piece[-1])
            elif piece == "\r":
                self.column = 0
            elif piece == "\n":
                self.row += 1
            elif piece == "\t":
                self.column = min((self.column // 8 + 1) * 8, self.columns - 1)
            elif piece >= " " and unicodedata.category(piece) not in ("Cc", "Cf", "Mn", "Me"):
                self.put(piece, 2 if unicodedata.east_asian_width(piece) in "WF" else 1)
        return self

    def text(self):
        rows = ("".join("(dim)" if dim else text for text, dim in line).rstrip() for line in self.cells)
        return "\n".join(rows).rstrip()


def main():
    columns = 20
    if sys.argv[1] == "--text":
        with open(sys.argv[2], "rb") as f:
            print(Screen(columns).feed(as_shown(f.read()).replace(b"\n", b"\r\n")).text())
        return
    pid, terminal = pty.fork()
    if pid == 0:
        set_size(0, 30, columns)
        os.execvp(sys.argv[2], sys.argv[2:])
    written = b""
    while more := read_some(terminal):
        written += more
    os.waitpid(pid, 0)
    with open(sys.argv[1], "wb") as f:
        f.write(written)
    print(Screen(columns).feed(written).text())


if __name__ == "__main__":
    main()
