#!/usr/bin/env bash
# --units on toys: one text whoever computes; drey tune keeps how to divide passes and drey run
# takes it from there; bad words are one sentence.
#   cli_units.sh DREY MAKE_TOY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
usage='usage: cli_units.sh DREY MAKE_TOY'
drey=${1:?$usage} make_toy=${2:?$usage}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
wrong() {
    echo "cli_units: $*"
    failed=1
}
export XDG_CACHE_HOME="$tmp/the cache"
"$make_toy" "$tmp/t.gguf"
"$make_toy" "$tmp/d.gguf" 2
write_on() { # OUT WORD...
    local out=$1
    shift
    "$drey" run -m "$tmp/t.gguf" -n 12 --ignore-eos --memory unlimited -p 'A text begins' "$@" >"$out" 2>"$tmp/err" ||
        wrong "run $*: $(cat "$tmp/err")"
}
write_on "$tmp/usual" -q -t 1
for units in cpu cpu+cpu cpu=1+cpu=9+static cpu/ref+cpu/slow=3 auto; do
    write_on "$tmp/text" --units "$units" -d lookup --stats "$tmp/stats"
    cmp -s "$tmp/text" "$tmp/usual" || wrong "another text with --units $units"
done
write_on "$tmp/text" --units cpu=1+cpu=3 --stats "$tmp/stats"
grep -q '^  units .*cpu .*its share of a row is 25' "$tmp/err" || wrong "no units in: $(cat "$tmp/err")"
python3 - "$tmp/stats" <<'PYTHON' || wrong "the statistics"
import json, sys
units = json.load(open(sys.argv[1]))["units"]
assert [u["threads"] for u in units] == [1, 1] and units[1]["share"] == [0.75] * 7
assert all(u["groups"] >= 0 and "failed" not in u for u in units) and sum(u["groups"] for u in units) > 0
PYTHON
tests/cli/man_keys.py Statistics "$tmp/stats" 2>"$tmp/err" || wrong "$(cat "$tmp/err")"

mixed=cpu/ref+cpu
echo '{"prompt": "The quick brown fox"}' >"$tmp/prompts"
"$drey" tune -m "$tmp/t.gguf" -d lookup --units "$mixed" -c 255 --prompts "$tmp/prompts" >"$tmp/out" 2>"$tmp/err" ||
    wrong "tune -c 255: $(cat "$tmp/err")"
for line in 'passes of 1 row' 'passes of 4 rows' 'behind 256 positions and more, and the context is to hold 255'; do
    grep -q "$line\$" "$tmp/err" || wrong "tune -c 255 does not say '$line': $(cat "$tmp/err")"
done
"$drey" tune -m "$tmp/t.gguf" -d "$tmp/d.gguf" --units "$mixed" -c 300 --prompts "$tmp/prompts" --json "$tmp/tuned" -q \
    >"$tmp/out" 2>"$tmp/err" || wrong "tune --units: $(cat "$tmp/err")"
grep -q '^| 16 | ' "$tmp/out" || wrong "no table: $(cat "$tmp/out")"
"$drey" tune -m "$tmp/t.gguf" -d "$tmp/d.gguf" --units "$mixed" --show >"$tmp/show" || wrong "--show"
cmp -s "$tmp/out" "$tmp/show" || wrong "--show differs from tune"
kept=$(find "$XDG_CACHE_HOME/drey/units" -name '*.json')
[ "$(wc -l <<<"$kept")" = 1 ] || wrong "not one file but: $kept"
write_on "$tmp/text" --units "$mixed" --stats "$tmp/stats"
cmp -s "$tmp/text" "$tmp/usual" || wrong "another text with what was tuned"
python3 - "$tmp/stats" "$kept" <<'PYTHON' || wrong "run did not take what was tuned"
import json, sys
used, kept = (json.load(open(path)) for path in sys.argv[1:])
for u, unit in enumerate(used["units"]):
    for w in range(7):
        pair = kept["shares"][2 * w:2 * w + 2]
        assert abs(unit["share"][w] - pair[u] / sum(pair)) < 1e-9
behind = kept["attention"]
assert [c["positions"] for c in behind] == [256] and abs(behind[0]["boundary"]) <= 1
assert len(behind[0]["sides"]) == 4 and all(s["attention_s"] > 1e-8 for s in behind[0]["sides"])
PYTHON
for bad in 's/"drey units 2"/"drey units 0"/' 's/"shares":/"pieces":/' 's/"rows":/"columns":/' \
    's/"boundary":/"border":/' 's/"positions":.*256/"positions": 257/'; do
    sed "$bad" "$kept" >"$tmp/bad"
    cp "$kept" "$tmp/good"
    cp "$tmp/bad" "$kept"
    write_on "$tmp/text" --units "$mixed" -q
    cmp -s "$tmp/text" "$tmp/usual" || wrong "another text with a broken file"
    if [ "$(wc -l <"$tmp/err")" != 1 ] || ! grep -q 'is not what drey tune writes' "$tmp/err"; then
        wrong "file with $bad: $(cat "$tmp/err")"
    fi
    cp "$tmp/good" "$kept"
done

sed 's/"cpu":\t*"[^"]*"/"cpu":"another one"/' "$kept" >"$tmp/bad"
cmp -s "$tmp/bad" "$kept" && wrong "no processor in $(cat "$kept")"
cp "$tmp/bad" "$kept"
write_on "$tmp/text" --units "$mixed" -q
cmp -s "$tmp/text" "$tmp/usual" || wrong "another text with another processor's shares"
if [ "$(wc -l <"$tmp/err")" != 1 ] || ! grep -q 'measured on another processor' "$tmp/err"; then
    wrong "another processor's shares: $(cat "$tmp/err")"
fi

refused() { # PATTERN WORD...
    local pattern=$1 got=0
    shift
    "$drey" "$@" >"$tmp/out" 2>"$tmp/err" || got=$?
    if [ $got != 2 ] || [ "$(wc -l <"$tmp/err")" != 1 ] || ! grep -qE "$pattern" "$tmp/err"; then
        wrong "$*: exit code $got, $(cat "$tmp/err")"
    fi
}
refused 'leave the shares out' tune -m "$tmp/t.gguf" --units cpu=1+cpu=3
refused 'leave the shares out' tune -m "$tmp/t.gguf" --units cpu/slow=2+cpu=3
refused 'nothing to divide' tune -m "$tmp/t.gguf" --units cpu -q
refused 'units is about models' tune --units cpu+cpu
refused 'context is about models' tune -c 300
exit $failed
