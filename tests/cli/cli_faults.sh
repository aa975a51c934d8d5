#!/usr/bin/env bash
# A disk that fails while text is being written, with a model that is streamed: short and
# interrupted reads change nothing; an error or a file that has become shorter is one clear
# sentence, exit code 1, and what was verified before stays. Also: the budget that an error names
# works.
#   cli_faults.sh DREY MAKE_TOY SHIM
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
usage="usage: cli_faults.sh DREY MAKE_TOY SHIM"
drey=${1:?$usage} make_toy=${2:?$usage} shim=${3:?$usage}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
wrong() {
    echo "cli_faults: $*"
    failed=1
}
key() { # KEY: its value in the statistics, as JSON
    tests/cli/json_value.py "$tmp/stats" "$1"
}
toy=$tmp/toy.gguf
"$make_toy" "$toy" 100 # large enough that the smallest budget streams most of it
"$make_toy" "$tmp/draft.gguf" 2

draft=none
least() {
    "$drey" run -m "$toy" -p x -n 40 -t 1 -q -d $draft --memory 1M 2>&1 | grep -oP 'works here is \K[0-9]+' || true
}
budget=$(least)M
"$drey" run -m "$toy" -t 1 -n 24 --ignore-eos -q --raw-ids -p "The tree" >"$tmp/expected"
# run OPTION...: in that budget, with the faults that the environment asks for
run() {
    local code=0
    rm -f "$tmp/stats"
    # A sanitizer's library would have to come before the shim; it need not, for this. The shim's
    # folder stands apart, since LD_PRELOAD ends a name at a blank.
    ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" LD_LIBRARY_PATH=${shim%/*} \
        LD_PRELOAD=${shim##*/} FAULT_FILE=toy.gguf FAULT_KIND=${FAULT_KIND-none} \
        timeout 300 "$drey" run -m "$toy" -d $draft -t 1 -n 24 --ignore-eos -q --raw-ids -p "The tree" \
        --memory "$budget" --stats "$tmp/stats" "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
    return $code
}
goes_on() { # WHAT OPTION...
    local what=$1
    shift
    run "$@" || wrong "$what: $(cat "$tmp/err")"
    cmp -s "$tmp/out" "$tmp/expected" || wrong "$what: another text"
    [ "$(key read_bytes)" -gt 0 ] || wrong "$what: nothing was streamed in a budget of $budget"
}
ends() { # WHAT PATTERN OPTION...: after some tokens
    local what=$1 pattern=$2 code=0 n
    shift 2
    run "$@" || code=$?
    [ $code = 1 ] || wrong "$what: exit code $code"
    if [ "$(wc -l <"$tmp/err")" != 1 ] || ! grep -qE "^drey: .*$pattern" "$tmp/err"; then
        wrong "$what: no sentence with \"$pattern\": $(head -n 5 "$tmp/err")"
    fi
    n=$(wc -l <"$tmp/out")
    if [ "$n" = 0 ] || [ "$n" -ge 24 ] || ! cmp -s "$tmp/out" <(head -n "$n" "$tmp/expected"); then
        wrong "$what: $n tokens, or other ones"
    fi
    [ "$(key finish_reason)" = '"error"' ] || wrong "$what: finish_reason $(key finish_reason)"
    [ "$(key generated_tokens)" = "$n" ] || wrong "$what: $(key generated_tokens) tokens counted"
}

goes_on "no fault, io_uring if it is allowed"
after=$(($(key load_bytes) + $(key read_bytes) / 2))
for io in pread buffered; do
    goes_on "no fault, $io" --io $io
    FAULT_KIND=short goes_on "short reads, $io" --io $io
    FAULT_KIND=interrupt goes_on "interrupted reads, $io" --io $io
    FAULT_KIND=eio FAULT_AFTER=$after ends "an error, $io" "$toy" --io $io
    FAULT_KIND=end FAULT_AFTER=$after ends "a shorter file, $io" "$toy.*short" --io $io
done
draft=lookup
budget=$(least)M
FAULT_KIND=eio FAULT_AFTER=$after ends "an error with a draft" "$toy" --io pread
exit $failed
