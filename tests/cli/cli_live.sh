#!/usr/bin/env bash
# On a terminal of 20 columns the screen shows in the end what standard output gets elsewhere,
# though provisional text was there, dim, and was taken back; without drafts, with
# --no-provisional-text, NO_COLOR or a dumb terminal there is nothing but the text.
#   cli_live.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
terminal=tests/cli/terminal.py
"$make_toy" "$tmp/toy.gguf" 3
run=("$drey" run -m "$tmp/toy.gguf" -n 80 --ignore-eos -q -t 1)

# The same of a text that is written at once.
plain_screen() { python3 "$terminal" --text "$1"; }
on_terminal() { # OUT COMMAND...: the screen; what was written is in $tmp/written
    local out=$1
    shift
    LC_ALL=C.UTF-8 NO_COLOR='' TERM=xterm "$@" >"$out"
}

n_dim=0
for prompt in "The tree" "a quick brown" "12 of them" "jumps over" "lazy"; do
    "${run[@]}" -p "$prompt" >"$tmp/text"
    plain_screen "$tmp/text" >"$tmp/expected"
    for draft in "$tmp/toy.gguf" lookup; do
        on_terminal "$tmp/screen" python3 "$terminal" "$tmp/written" \
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
    python3 "$terminal" "$tmp/written" "$@" >"$tmp/screen"
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
