#!/usr/bin/env bash
# On a terminal of 20 columns the screen shows in the end what standard output gets elsewhere, though
# provisional text stood there dim and was taken back; without drafts, with --no-provisional-text,
# NO_COLOR or a dumb terminal there is nothing but the text.
#   cli_live.sh DREY MAKE_TOY
set -euo pipefail
usage="usage: cli_live.sh DREY MAKE_TOY"
drey=${1:?$usage} make_toy=${2:?$usage}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
wrong() {
    echo "cli_live: $*"
    failed=1
}
"$make_toy" "$tmp/toy.gguf" 3
run=("$drey" run -m "$tmp/toy.gguf" -n 80 --ignore-eos -q -t 1)

cat >"$tmp/terminal.py" <<'END'
"""Runs a command on a terminal; prints the screen as it is in the end, and tells what was written."""
import fcntl, os, pty, re, struct, sys, termios, unicodedata

COLUMNS = 20
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, COLUMNS, 0, 0))
written = b""
while True:
    try:
        more = os.read(terminal, 65536)
    except OSError:
        break
    if not more:
        break
    written += more
os.waitpid(pid, 0)
open(sys.argv[1], "wb").write(written)

rows, row, column, dim = [[]], 0, 0, False
for piece in re.findall("\033\\[[0-9]*[A-Za-z]|.", written.decode(errors="replace"), re.S):
    if piece[0] == "\033":
        number = int(piece[2:-1] or 0)
        if piece[-1] in "AB":
            row += -number if piece[-1] == "A" else number
            column = min(column, COLUMNS - 1)
        elif piece[-1] == "C":
            column += number
        elif piece[-1] == "J":
            del rows[row + 1:], rows[row][min(column, COLUMNS - 1):]
        elif piece[-1] == "m":
            dim = number == 2
        continue
    if piece == "\r":
        column = 0
        continue
    if piece == "\n":
        row += 1
    elif piece == "\t":
        column = min((column // 8 + 1) * 8, COLUMNS - 1)
    elif piece >= " " and unicodedata.category(piece) not in ("Cc", "Cf", "Mn", "Me"):
        width = 2 if unicodedata.east_asian_width(piece) in "WF" else 1
        if column + width > COLUMNS:
            row, column = row + 1, 0
        while len(rows) <= row:
            rows.append([])
        cells = rows[row]
        cells += [" "] * (column + width - len(cells))
        cells[column:column + width] = ["(dim)" if dim else piece] + [""] * (width - 1)
        column += width
    while len(rows) <= row:
        rows.append([])
print("\n".join("".join(cells).rstrip() for cells in rows).rstrip())
END

# The same of a text that is written at once.
plain_screen() { python3 "$tmp/terminal.py" "$tmp/plain" cat "$1"; }
on_terminal() { # OUT COMMAND...: the screen; what was written is in $tmp/written
    local out=$1
    shift
    LC_ALL=C.UTF-8 NO_COLOR='' TERM=xterm "$@" >"$out"
}

n_dim=0
for prompt in "The tree" "a quick brown" "12 of them" "jumps over" "lazy"; do
    "${run[@]}" -p "$prompt" >"$tmp/text"
    ! grep -qa $'\033' "$tmp/text" || continue # it would move the cursor itself
    plain_screen "$tmp/text" >"$tmp/expected"
    for draft in "$tmp/toy.gguf" lookup; do
        on_terminal "$tmp/screen" python3 "$tmp/terminal.py" "$tmp/written" \
            "${run[@]}" -p "$prompt" -d "$draft" --policy edgellm
        cmp -s "$tmp/screen" "$tmp/expected" ||
            wrong "\"$prompt\" with $draft: $(diff "$tmp/screen" "$tmp/expected")"
        n_dim=$((n_dim + $(grep -ac $'\033\[2m' "$tmp/written" || true)))
    done
done
[ $n_dim -gt 0 ] || wrong "nothing was provisional"

draft=(-d "$tmp/toy.gguf" --policy edgellm -p "The tree")
nothing_but_text() { # WHAT COMMAND...
    local what=$1
    shift
    python3 "$tmp/terminal.py" "$tmp/written" "$@" >"$tmp/screen"
    ! grep -aq $'\033' "$tmp/written" || wrong "$what: there is more than text"
}
export LC_ALL=C.UTF-8
nothing_but_text "--no-provisional-text" env TERM=xterm "${run[@]}" "${draft[@]}" --no-provisional-text
nothing_but_text "NO_COLOR" env NO_COLOR=1 TERM=xterm "${run[@]}" "${draft[@]}"
nothing_but_text "a dumb terminal" env TERM=dumb "${run[@]}" "${draft[@]}"
nothing_but_text "not UTF-8" env LC_ALL=C TERM=xterm "${run[@]}" "${draft[@]}"
"${run[@]}" "${draft[@]}" >"$tmp/text"
! grep -aq $'\033' "$tmp/text" || wrong "a pipe: there is more than text"
exit $failed
