#!/usr/bin/env bash
# What the tests of the command share: their arguments, a folder, what a command said, and the
# report of what is wrong. A test begins with
#   . "$(dirname "$0")/shell.sh" # DREY MAKE_TOY [MORE...]
# and ends with: exit $failed. What commands write is in $tmp/out and $tmp/err.
# shellcheck disable=SC2034 # for the scripts that source it
set -euo pipefail
test_name=$(basename "$0" .sh)
usage="usage: $test_name.sh DREY MAKE_TOY [MORE...]"
drey=$(realpath "${1:?$usage}") make_toy=$(realpath "${2:?$usage}") shim=${3:+$(realpath "$3")}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
sanitized=0 # what a process has written to differs by MiB then, as what was freed stays
! grep -aqE '__[at]san_init' "$drey" || sanitized=1
# A command with the faults that FAULT_... ask for. A sanitizer's library would have to come before
# the shim; it need not, for this. The shim's folder stands apart, since LD_PRELOAD ends a name at a
# blank.
faulty=(env "ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-}" "LD_LIBRARY_PATH=${shim%/*}"
    "LD_PRELOAD=${shim##*/}")

wrong() {
    echo "$test_name: $*"
    failed=1
}
ends() { # CODE COMMAND...: with that exit code
    local want=$1 code=0
    shift
    timeout 900 "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
    [ $code = "$want" ] || wrong "$*: exit code $code: $(sed -n '1,3p;$p' "$tmp/err")"
}
one_line() { # WHAT PATTERN: all of standard error
    if [ "$(wc -l <"$tmp/err")" != 1 ] || ! grep -qE -e "$2" "$tmp/err"; then
        wrong "$1: no single line with \"$2\": $(head -n 5 "$tmp/err")"
    fi
}
refused() { # CODE PATTERN COMMAND...: one line on standard error, nothing on standard output
    local code=$1 pattern=$2
    shift 2
    ends "$code" "$@" </dev/null
    one_line "$*" "$pattern"
    [ ! -s "$tmp/out" ] || wrong "$*: standard output has $(head -c 200 "$tmp/out")"
}
has() { # FILE PATTERN...: the file has each
    local file=$1 pattern
    shift
    for pattern in "$@"; do
        grep -qE -e "$pattern" "$file" || wrong "no \"$pattern\" in: $(head -n 5 "$file")"
    done
}
same() { # WHAT FILE FILE
    cmp -s "$2" "$3" || wrong "$1: $(head -c 200 "$2") / $(head -c 200 "$3")"
}
key() { # FILE KEY: its value, as JSON
    tests/cli/json_value.py "$@"
}
holds() { # WHAT FILE EXPRESSION...: of the file's keys
    local what=$1
    shift
    tests/cli/json_value.py "$@" >/dev/null 2>"$tmp/err2" || wrong "$what: $(cat "$tmp/err2")"
}
edit() { # FROM TO PYTHON: a file of JSON, changed by statements about its root
    python3 -c 'import json, sys
root = json.load(open(sys.argv[1]))
exec(sys.argv[3])
json.dump(root, open(sys.argv[2], "w"))' "$@"
}
write() { # OPTION...: a text of $tmp/m.gguf, to $tmp/text
    ends 0 "$drey" run -m "$tmp/m.gguf" -t 2 -n 40 --ignore-eos -p "The quick brown" -q "$@"
    mv "$tmp/out" "$tmp/text"
}
trained() { # FILE LIST WORD N: what a training said that made a file with N guesses, and left
    has "$tmp/out" "^texts +[0-9]+ tokens to learn from, [0-9]+ held out"
    has "$tmp/out" "^$3 $4( +[0-9.]+){9}$"
    has "$tmp/out" "^written +$1, guessing among [0-9]+ tokens"
    has "$tmp/err" "^train: "
    holds "train --json" "$tmp/json" "len($2) == $4 and train_positions > 1000 and vocabulary > 0" \
        "all(len(g['accuracy_by_rank']) == 8 and sum(g['accuracy_by_rank']) <= 1 for g in $2)"
    local file
    for file in "$1.texts" "$1.checkpoint"; do
        [ ! -e "$file" ] || wrong "$file is still there"
    done
    "$drey" inspect "$1" >"$tmp/inspect" || wrong "inspect"
}
least() { # COMMAND...: the smallest budget for it, which it names when it has too little
    local n
    n=$({ "$@" --memory 1M 2>&1 || true; } | grep -oP 'works here is \K[0-9]+(?=(\.0+)?M)')
    echo "$((n + 2 * sanitized))M"
}
ends_by() { # SIGNAL CONDITION COMMAND...: it is sent once the condition holds, and ends the command
    local signal=$1 condition=$2 code=0 tries=0
    shift 2
    "$@" >"$tmp/out" 2>"$tmp/err" &
    until eval "$condition" || [ $((tries++)) -gt 2400 ]; do sleep 0.05; done
    kill -s "$signal" $! || wrong "it is gone before SIG$signal"
    wait $! || code=$?
    [ $code = $((128 + $(kill -l "$signal"))) ] || wrong "SIG$signal: exit code $code: $(tail -n 3 "$tmp/err")"
}
