#!/usr/bin/env bash
# drey run under mpirun: the text of one process, by two and three ranks, with and without drafts;
# a rank with another model, one that is killed and one that hangs end the run, which names them.
#   cli_ranks.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
if ! command -v mpirun >/dev/null || [ ! -e "$(dirname "$drey")/../libdrey-mpi.so.0.1.0" ]; then
    echo "cli_ranks: skipped: no mpirun here, or no MPI headers when drey was built (openmpi-bin, libopenmpi-dev)"
    exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" # MPI leaks; the last word counts
ranks=(timeout 120 mpirun --oversubscribe -n)
"$make_toy" "$tmp/m.gguf" 6
"$make_toy" "$tmp/d.gguf" 2
"$make_toy" "$tmp/other.gguf" 7
text=(run -m "$tmp/m.gguf" -p "A text begins" -n 40 --ignore-eos -t 1)

compare() { # N OPTION...
    local n=$1
    shift
    ends 0 "$drey" "${text[@]}" -q "$@"
    mv "$tmp/out" "$tmp/expected"
    ends 0 "${ranks[@]}" "$n" "$drey" "${text[@]}" "$@"
    same "$n ranks, $*: another text" "$tmp/out" "$tmp/expected"
    has "$tmp/err" "rank 0 on .*: layers 0 to " "rank $((n - 1)) on .*: layers [0-9]+ to 5" \
        "^ranks +rank 0 read "
}
compare 3 -d "$tmp/d.gguf" --policy specinfer
compare 2 -d lookup --temp 0.8 --seed 5 --prompt-chunk 4

# What is wrong is said once, by rank 0 or by the one that cannot start.
fails() { # WHAT PATTERN COMMAND...
    local what=$1 pattern=$2 code=0
    shift 2
    timeout 120 "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
    if [ $code = 0 ] || [ $code = 124 ]; then wrong "$what: exit code $code"; fi
    has "$tmp/err" "$pattern"
}
one=("$drey" "${text[@]}" -d none -q)
fails "another model" "^drey: rank 1 \(.*\) has another model" mpirun --oversubscribe -n 1 "${one[@]}" : \
    -n 1 "$drey" run -m "$tmp/other.gguf" -p x
fails "a missing model" "^drey: cannot open .*missing" mpirun --oversubscribe -n 1 "${one[@]}" : \
    -n 1 "$drey" run -m "$tmp/missing.gguf" -p x

# Ends a rank in the middle of a text without end.
cat >"$tmp/named" <<END
#!/bin/sh
echo \$\$ >"$tmp/pid.\$OMPI_COMM_WORLD_RANK"
exec "\$@"
END
chmod +x "$tmp/named"
long=(run -m "$tmp/m.gguf" -p x -n 1000000 -c 1000100 --ignore-eos -t 1 -d none --rank-wait 2)
stopped() { # SIGNAL PATTERN
    local code=0 tries=0
    rm -f "$tmp"/pid.* "$tmp/out"
    "${ranks[@]}" 2 "$tmp/named" "$drey" "${long[@]}" >"$tmp/out" 2>"$tmp/err" &
    until [ -s "$tmp/out" ] || [ $((tries++)) -gt 1200 ]; do sleep 0.05; done
    kill -s "$1" "$(cat "$tmp/pid.1")"
    wait $! || code=$?
    if [ $code = 0 ] || [ $code = 124 ]; then wrong "SIG$1 to rank 1: exit code $code"; fi
    has "$tmp/err" "$2"
    kill -9 "$(cat "$tmp/pid.1")" 2>/dev/null || true
}
stopped KILL "rank 1 .*signal 9"
stopped STOP "^drey: rank 1 \(.*\) has said nothing for 2 seconds"
exit $failed
