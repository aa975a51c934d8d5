#!/usr/bin/env bash
# Every way of reading gives the same text, with a sidecar and without: forced by --io; where the
# system refuses io_uring (seccomp), direct reads, or both; on a file system in memory; from a slow
# disk; with reads of other sizes; and with two processes on one disk.
#   cli_ways.sh DREY MAKE_TOY SHIM REFUSE
. "$(dirname "$0")/shell.sh"
refuse=$(realpath "$4")
memory=''
trap 'rm -rf "$tmp" ${memory:+"$memory"}' EXIT
toy=$tmp/toy.gguf
"$make_toy" "$toy" 100
text=(run -d none -t 1 -n 12 --ignore-eos -q --raw-ids -p "The tree")
"$drey" "${text[@]}" -m "$toy" --memory unlimited --sidecar none >"$tmp/expected"
"$drey" prepare -q "$toy"

read_by() { # the way that the statistics name, or "nothing": pread, uring, with ",buffered"
    key "$tmp/stats" '("uring" if uring else "pread") + ("" if direct else ",buffered")
        if read_bytes else "nothing"' | tr -d '"'
}
short=("$drey" run -d none -m "$toy" -p x -n 20 -t 1 -q)
way=() # what the run was started by, if anything: paths may hold blanks
# reads WHAT USED OPTION...: the text of a streamed model; USED of the ways it reads by, or "any"
reads() {
    local what=$1 used=$2 code=0 budget
    shift 2
    budget=$(least ${way[@]+"${way[@]}"} "${short[@]}" "$@") || budget=unlimited # where no filter can be installed
    for sidecar in "$toy.drey" none; do
        code=0
        ${way[@]+"${way[@]}"} "$drey" "${text[@]}" -m "$toy" --memory "$budget" --sidecar "$sidecar" \
            --stats "$tmp/stats" "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
        if [ $code = 77 ]; then
            echo "not run: $what: seccomp filters cannot be installed here"
            return
        fi
        [ $code = 0 ] || wrong "$what: $(cat "$tmp/err")"
        same "$what: another text" "$tmp/out" "$tmp/expected"
        local now
        now=$(read_by)
        [ "$now" != nothing ] || wrong "$what: nothing was streamed in a budget of $budget"
        [ "$used" = any ] || [ "$used" = "$now" ] || wrong "$what: read by $now"
    done
}

# 1. As the machine allows.
budget=$(least "${short[@]}")
code=0
"$drey" "${text[@]}" -m "$toy" --memory "$budget" --io uring >"$tmp/out" 2>"$tmp/err" || code=$?
has_uring=true
if [ $code != 0 ]; then
    has_uring=false
    echo "not run: io_uring: $(cat "$tmp/err")"
fi
reads auto any
case $(read_by) in
*,buffered) plain=pread,buffered ;;
*) plain=pread ;;
esac
[ $has_uring = false ] || reads uring any --io uring
reads pread $plain --io pread
reads buffered pread,buffered --io buffered
for size in 64K 300000 4M; do
    reads "reads of $size" any --read-size $size
done

# 2. As another system would.
for what in uring uring-absent uring-use; do
    way=("$refuse" "$what" --)
    reads "without io_uring ($what)" $plain
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
reads "without direct reads" pread,buffered
[ $has_uring = false ] || reads "io_uring without direct reads" uring,buffered --io uring
way=("$refuse" uring direct --)
reads "without either" pread,buffered
reads "without either, pread" pread,buffered --io pread

# 3. A slow disk. (By the shim: pread calls alone pass there.)
way=("${faulty[@]}" FAULT_FILE=toy.gguf FAULT_KIND=delay FAULT_US=3000)
reads "a slow disk" $plain --io pread
way=()

# 4. Two at once.
"$drey" "${text[@]}" -m "$toy" --memory "$budget" >"$tmp/out2" 2>"$tmp/err2" &
reads "two processes" any
wait $! || wrong "the other process: $(cat "$tmp/err2")"
same "the other process: another text" "$tmp/out2" "$tmp/expected"

# 5. A file system in memory.
if memory=$(mktemp -d /dev/shm/drey-test-XXXXXX 2>/dev/null); then
    cp "$toy" "$memory/toy.gguf"
    toy=$memory/toy.gguf
    "$drey" prepare -q "$toy"
    reads "a file system in memory" any
else
    echo "not run: no /dev/shm"
fi
exit $failed
