#!/usr/bin/env bash
# drey prepare: what it says, that run uses what it wrote, and that a full disk, an unreadable
# model, Ctrl-C and a crash leave a good sidecar or none, and nothing next to it that hinders the
# next one.
#   cli_prepare.sh DREY MAKE_TOY SHIM
. "$(dirname "$0")/shell.sh"
toy=$tmp/toy.gguf side=$tmp/toy.gguf.drey
"$make_toy" "$toy" $((60 + 60 * sanitized)) # a sanitizer's own memory moves by megabytes
# prepare CODE OPTION...: ends with that code; with the faults that the environment asks for
prepare() {
    ends "$1" "${faulty[@]}" FAULT_FILE="${FAULT_FILE-.partial}" FAULT_KIND="${FAULT_KIND-none}" \
        "$drey" prepare "$toy" "${@:2}"
}
run() { # OPTION...: a text of a streamed model
    ends 0 "$drey" run -d none -m "$toy" -t 1 -n 12 --ignore-eos -q --raw-ids -p "The tree" --memory "$budget" \
        --stats "$tmp/stats" "$@"
}
uses() { # true|false: whether the last run used a sidecar
    holds "a sidecar in use: not $1" "$tmp/stats" "sidecar is ${1^}"
}
nothing_left() {
    [ ! -e "$side.partial" ] || wrong "$1 left a .partial"
}

budget=$(least "$drey" run -d none -m "$toy" -p x -n 20 -t 1 -q)
run
uses false
cp "$tmp/out" "$tmp/text"

# What one would bring is said, in one line; not where nothing is streamed.
grep -qP "\"sidecar_tokens_per_s\":\s*[1-9]" "$tmp/stats" || wrong "no speed with a sidecar"
says='^  sidecar +none; with one .* [0-9]+\.[0-9]{2} times as fast$'
for memory in "$budget" unlimited; do
    ends 0 "$drey" run -d none -m "$toy" -t 1 -n 12 --ignore-eos -p "The tree" --memory "$memory" -v
    n=$(grep -cE "$says" "$tmp/err" || true)
    [ "$n" = "$([ "$memory" = unlimited ] && echo 0 || echo 1)" ] || wrong "$memory: $n hints"
done

# 1. What can stop it: nothing appears under the name, and nothing stays next to it.
for after in 0 200000; do
    FAULT_KIND=full FAULT_AFTER=$after prepare 1
    has "$tmp/err" "needs .* of disk space; .* free" "^drey: error: the disk of .* is full; free some space"
    nothing_left "a full disk"
    FAULT_FILE=toy.gguf FAULT_KIND=eio FAULT_AFTER=$((after + 300000)) prepare 1
    has "$tmp/err" "^drey: error: cannot read $toy"
    nothing_left "an unreadable model"
done
[ ! -e "$side" ] || wrong "a sidecar was left"

# 2. A crash leaves its .partial, which the next one takes over.
for after in 0 100000 1000000; do
    FAULT_KIND=kill FAULT_AFTER=$after prepare 137
    [ -e "$side.partial" ] || wrong "no .partial after a crash"
    [ ! -e "$side" ] || wrong "a crash left a sidecar"
done
prepare 0
has "$tmp/err" "needs [0-9.]+M of disk space; [0-9.]+[MGT] are free" "prepare: "
has "$tmp/out" "^written: "
nothing_left "prepare"
run
uses true
same "another text with a sidecar" "$tmp/out" "$tmp/text"
run --sidecar none
uses false
same "another text with --sidecar none" "$tmp/out" "$tmp/text"

# 3. One that is there: kept, checked, or written again; a crash then leaves the old one.
sum=$(cksum <"$side")
prepare 0
has "$tmp/out" "^nothing to do"
prepare 0 --check
has "$tmp/out" "^OK: "
reported() { # FILE WRITTEN CHECKED: what the last prepare said as JSON
    holds --json "$1" "path == '$side'" "sidecar_bytes == $(wc -c <"$side")" 'seconds >= 0' \
        'bool(version and machine)' "[written, checked] == [${2^}, ${3^}]"
}
prepare 0 --json -
reported "$tmp/out" false false
has "$tmp/err" "^nothing to do"
prepare 0 --check -q --json "$tmp/json"
reported "$tmp/json" false true
prepare 1 --json "$tmp/nowhere/json"
has "$tmp/err" "cannot write"
prepare 2 --check --force
FAULT_KIND=kill FAULT_AFTER=500000 prepare 137 --force
FAULT_KIND=full FAULT_AFTER=500000 prepare 1 --force
[ "$sum" = "$(cksum <"$side")" ] || wrong "the old sidecar was changed"
nothing_left "the next prepare"
prepare 0 --force --quiet --json "$tmp/json"
reported "$tmp/json" true false
[ -z "$(cat "$tmp/out" "$tmp/err")" ] || wrong "--quiet is not quiet"
[ "$sum" = "$(cksum <"$side")" ] || wrong "another sidecar of the same model"

# 4. Ctrl-C, kill and a closed terminal while the model is read slowly: what was written goes.
# (Under nohup a closed terminal would be ignored.)
for signal in INT TERM HUP; do
    # shellcheck disable=SC2016 # evaluated there
    ends_by $signal '[ -e "$side.partial" ]' "${faulty[@]}" FAULT_FILE=toy.gguf FAULT_KIND=delay FAULT_US=20000 \
        env --default-signal=HUP "$drey" prepare "$toy" --force
    nothing_left "SIG$signal"
    [ "$sum" = "$(cksum <"$side")" ] || wrong "SIG$signal changed the old sidecar"
done

# 5. A stale one: a warning and the same text; named, an error.
touch "$toy"
run
uses false
has "$tmp/err" "^drey: warning: .*toy.gguf.drey is stale.*drey prepare.*--sidecar none"
same "another text with a stale sidecar" "$tmp/out" "$tmp/text"
ends 1 "$drey" run -m "$toy" -p x -n 2 -q --sidecar "$side"
has "$tmp/err" "^drey: .*is stale"
ends 0 "$drey" plan -m "$toy" -t 1 --memory $((50 + 14 * sanitized))M --disk 1G/s
has "$tmp/err" "warning: .*is stale"
prepare 1 --check
has "$tmp/err" "is stale"
prepare 0
ends 0 "$drey" plan -m "$toy" -t 1 --memory $((50 + 14 * sanitized))M --disk 1G/s
has "$tmp/out" "packed in its sidecar"

# 6. Elsewhere, and where something else stands.
mkdir "$tmp/other"
prepare 0 -o "$tmp/other/packed"
rm "$side"
run --sidecar "$tmp/other/packed"
uses true
same "another text with a sidecar elsewhere" "$tmp/out" "$tmp/text"
echo notes >"$tmp/notes"
prepare 2 -o "$tmp/notes"
has "$tmp/err" "exists and is no sidecar"
prepare 2 -o "$toy" --force
has "$tmp/err" "would write over .*, which is read"
mv "$toy" "$tmp/model.partial" # what "model" would grow as
ends 2 "$drey" prepare "$tmp/model.partial" -o "$tmp/model"
has "$tmp/err" "is the model itself"
[ -s "$tmp/model.partial" ] || wrong "prepare destroyed the model"
mv "$tmp/model.partial" "$toy"
exit $failed
