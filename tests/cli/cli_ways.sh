#!/usr/bin/env bash
# Every way of reading gives the same text, with a sidecar and without: forced by --io; where the
# system refuses io_uring (seccomp), direct reads, or both; on a file system in memory; from a slow
# disk; with reads of other sizes; and with two processes on one disk.
#   cli_ways.sh DREY MAKE_TOY SHIM REFUSE
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
usage="usage: cli_ways.sh DREY MAKE_TOY SHIM REFUSE"
drey=${1:?$usage} make_toy=${2:?$usage} shim=${3:?$usage} refuse=${4:?$usage}

tmp=$(mktemp -d)
memory=''
trap 'rm -rf "$tmp" ${memory:+"$memory"}' EXIT
failed=0
wrong() {
    echo "cli_ways: $*"
    failed=1
}
toy=$tmp/toy.gguf
"$make_toy" "$toy" 60
text=(run -d none -t 1 -n 12 --ignore-eos -q --raw-ids -p "The tree")
"$drey" "${text[@]}" -m "$toy" --memory unlimited --sidecar none >"$tmp/expected"
"$drey" prepare -q "$toy"

read_by() { # the way that the statistics tell, or "nothing": pread, uring, with ",buffered"
    tests/cli/json_value.py "$tmp/stats" '("uring" if uring else "pread") + ("" if direct else ",buffered")
        if read_bytes else "nothing"' | tr -d '"'
}
way=() # what the run was started by, if anything: paths may hold blanks
least() { # OPTION...: the smallest budget for them, in which most is streamed
    { ${way[@]+"${way[@]}"} "$drey" run -d none -m "$toy" -p x -n 20 -t 1 -q --memory 1M "$@" 2>&1 || true; } |
        grep -oP 'works here is \K[0-9]+(?= MiB)' | sed 's/$/M/'
}
# same WHAT USED OPTION...: the text of a streamed model; USED of the ways it reads by, or "any"
same() {
    local what=$1 used=$2 code=0 budget
    shift 2
    budget=$(least "$@") || budget=unlimited # where no filter can be installed
    for sidecar in "$toy.drey" none; do
        code=0
        ${way[@]+"${way[@]}"} "$drey" "${text[@]}" -m "$toy" --memory "$budget" --sidecar "$sidecar" \
            --stats "$tmp/stats" "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
        if [ $code = 77 ]; then
            echo "not run: $what: seccomp filters cannot be installed here"
            return
        fi
        [ $code = 0 ] || wrong "$what: $(cat "$tmp/err")"
        cmp -s "$tmp/out" "$tmp/expected" || wrong "$what: another text"
        local now
        now=$(read_by)
        [ "$now" != nothing ] || wrong "$what: nothing was streamed in a budget of $budget"
        [ "$used" = any ] || [ "$used" = "$now" ] || wrong "$what: read by $now"
    done
}

# 1. As the machine allows.
budget=$(least)
code=0
"$drey" "${text[@]}" -m "$toy" --memory "$budget" --io uring >"$tmp/out" 2>"$tmp/err" || code=$?
has_uring=true
if [ $code != 0 ]; then
    has_uring=false
    echo "not run: io_uring: $(cat "$tmp/err")"
fi
same auto any
case $(read_by) in
*,buffered) plain=pread,buffered ;;
*) plain=pread ;;
esac
[ $has_uring = false ] || same uring any --io uring
same pread $plain --io pread
same buffered pread,buffered --io buffered
for size in 64K 300000 4M; do
    same "reads of $size" any --read-size $size
done

# 2. As another system would.
for what in uring uring-absent uring-use; do
    way=("$refuse" "$what" --)
    same "without io_uring ($what)" $plain
done
way=("$refuse" uring --)
code=0
"${way[@]}" "$drey" "${text[@]}" -m "$toy" --memory "$budget" --io uring \
    >"$tmp/out" 2>"$tmp/err" || code=$?
if [ $code != 77 ]; then
    [ $code = 1 ] || wrong "--io uring where it is refused: exit code $code"
    grep -qE '^drey: .*io_uring.*--io auto' "$tmp/err" || wrong "no sentence: $(cat "$tmp/err")"
fi
way=("$refuse" direct --)
same "without direct reads" pread,buffered
[ $has_uring = false ] || same "io_uring without direct reads" uring,buffered --io uring
way=("$refuse" uring direct --)
same "without either" pread,buffered
same "without either, pread" pread,buffered --io pread

# 3. A slow disk. (By the shim: pread calls alone pass there. Its folder stands apart, since
# LD_PRELOAD ends a name at a blank.)
way=(env "ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-}" "LD_LIBRARY_PATH=${shim%/*}"
    "LD_PRELOAD=${shim##*/}" FAULT_FILE=toy.gguf FAULT_KIND=delay FAULT_US=3000)
same "a slow disk" $plain --io pread
way=()

# 4. Two at once.
"$drey" "${text[@]}" -m "$toy" --memory "$budget" >"$tmp/out2" 2>"$tmp/err2" &
same "two processes" any
wait $! || wrong "the other process: $(cat "$tmp/err2")"
cmp -s "$tmp/out2" "$tmp/expected" || wrong "the other process: another text"

# 5. A file system in memory.
if memory=$(mktemp -d /dev/shm/drey-test-XXXXXX 2>/dev/null); then
    cp "$toy" "$memory/toy.gguf"
    toy=$memory/toy.gguf
    "$drey" prepare -q "$toy"
    same "a file system in memory" any
else
    echo "not run: no /dev/shm"
fi
exit $failed
