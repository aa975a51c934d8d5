#!/usr/bin/env bash
# A disk that fails while text is being written, with a model that is streamed: short and
# interrupted reads change nothing; an error or a file that has become shorter is one clear
# sentence, exit code 1, and what was verified before stays. Also: the budget that an error names
# works.
#   cli_faults.sh DREY MAKE_TOY SHIM
. "$(dirname "$0")/shell.sh"
stat() { # KEY: of the statistics
    key "$tmp/stats" "$1"
}
toy=$tmp/toy.gguf
"$make_toy" "$toy" 100 # large enough that the smallest budget streams most of it

draft=none
asked=("$drey" run -m "$toy" -p x -n 40 -t 1 -q)
budget=$(least "${asked[@]}" -d none)
"$drey" run -m "$toy" -t 1 -n 24 --ignore-eos -q --raw-ids -p "The tree" >"$tmp/expected"
# run CODE OPTION...: in that budget, with the faults that the environment asks for
run() {
    rm -f "$tmp/stats"
    ends "$1" "${faulty[@]}" FAULT_FILE="${FAULT_FILE-toy.gguf}" FAULT_KIND="${FAULT_KIND-none}" "$drey" run -m "$toy" -d $draft \
        -t 1 -n 24 --ignore-eos -q --raw-ids -p "The tree" --memory "$budget" --stats "$tmp/stats" "${@:2}"
}
continues() { # WHAT OPTION...
    local what=$1
    shift
    run 0 "$@"
    same "$what: another text" "$tmp/out" "$tmp/expected"
    [ "$(stat read_bytes)" -gt 0 ] || wrong "$what: nothing was streamed in a budget of $budget"
}
stops() { # WHAT PATTERN OPTION...: after some tokens
    local what=$1 pattern=$2 n
    shift 2
    run 1 "$@"
    one_line "$what" "^drey: .*$pattern"
    n=$(wc -l <"$tmp/out")
    if [ "$n" = 0 ] || [ "$n" -ge 24 ] || ! cmp -s "$tmp/out" <(head -n "$n" "$tmp/expected"); then
        wrong "$what: $n tokens, or other ones"
    fi
    [ "$(stat finish_reason)" = '"error"' ] || wrong "$what: finish_reason $(stat finish_reason)"
    [ "$(stat generated_tokens)" = "$n" ] || wrong "$what: $(stat generated_tokens) tokens counted"
}

continues "no fault, io_uring if it is allowed"
after=$(($(stat load_bytes) + $(stat read_bytes) / 2))
FAULT_FILE=other.gguf FAULT_KIND=eio continues "an error in another file" --io pread
for io in pread buffered; do
    continues "no fault, $io" --io $io
    FAULT_KIND=short continues "short reads, $io" --io $io
    FAULT_KIND=interrupt continues "interrupted reads, $io" --io $io
    FAULT_KIND=eio FAULT_AFTER=$after stops "an error, $io" "$toy" --io $io
    FAULT_KIND=end FAULT_AFTER=$after stops "a shorter file, $io" "$toy.*short" --io $io
done
draft=lookup
budget=$(least "${asked[@]}" -d lookup)
FAULT_KIND=eio FAULT_AFTER=$after stops "an error with a draft" "$toy" --io pread
exit $failed
