#!/usr/bin/env bash
# drey bench exit on toys: each side once, the same texts from those that are not lossy, figures that can
# be made again from the CSV file, and a run that is broken off and goes on.
#   cli_exit.sh DREY MAKE_TOY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
drey=${1:?usage: cli_exit.sh DREY MAKE_TOY} make_toy=${2:?usage: cli_exit.sh DREY MAKE_TOY}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
wrong() {
    echo "cli_exit: $*"
    failed=1
}
"$make_toy" "$tmp/t.gguf" 8
"$make_toy" "$tmp/d.gguf" 4
cat >"$tmp/prompts" <<'PROMPTS'
{"id": "a", "group": "code", "turns": ["Reverse a list.", "And back."]}
{"id": "b", "group": "code", "prompt": "int main(void)"}
{"question_id": 81, "category": "writing", "turns": ["Write a letter.", "Another."]}
PROMPTS
models=(-m "$tmp/t.gguf" -d "$tmp/d.gguf" -t 1 --prompts "$tmp/prompts" -n 24)
train=("$drey" train exit "${models[@]}" -q)
"${train[@]}" || wrong "training: exit code $?"
"${train[@]}" --features confidence -o "$tmp/confidence" || wrong "training a baseline: exit code $?"
bench=("$drey" bench exit "${models[@]}" --exit-threshold 0.3 --memory unlimited)

# 1. All sides; tables and files agree.
"${bench[@]}" --confidence-file "$tmp/confidence" --csv "$tmp/csv" --json "$tmp/json" --svg "$tmp/svg" >"$tmp/out" \
    2>"$tmp/err" || wrong "exit code $?: $(tail -n 3 "$tmp/err")"
grep -q "all sides that are not lossy wrote the same texts" "$tmp/out" || wrong "texts: $(tail -n 2 "$tmp/out")"
python3 - "$tmp/csv" "$tmp/json" "$tmp/svg" "$tmp/out" <<'PYTHON' || failed=1
import csv, json, statistics, sys, xml.dom.minidom
rows = list(csv.DictReader(open(sys.argv[1])))
told = json.load(open(sys.argv[2]))
xml.dom.minidom.parse(sys.argv[3])
sides = ["off", "off-draft", "watched", "fast-every-layer", "fast", "exact", "fast-confidence", "fast-random", "tree",
         "tree-fast", "tree-exact", "oracle"]
prompts = {"a": "code", "b": "code", "81": "chat"}
assert {(r["side"], r["prompt"]) for r in rows} == {(s, p) for s in sides for p in prompts} and len(rows) == 36
number = lambda r, k: float(r[k])
near = lambda a, b: abs(a - b) <= 1e-4 * abs(b)
for r in rows:
    off = r["side"] in ("off", "off-draft", "tree")
    assert r["draft"] == "d.gguf" and r["group"] == prompts[r["prompt"]]
    assert (r["lossy"] == "yes") == ("fast" in r["side"]), r
    assert r["n_layers"] == ("0" if off else "8") and bool(r["by_layer"]) != off
    counts = {int(k): int(v) for k, v in (x.split(":") for x in r["by_layer"].split(";") if x)}
    assert sum(counts.values()) == number(r, "counted")
    assert sum(k * v for k, v in counts.items()) == number(r, "layers")
    if r["side"] != "oracle":
        assert r["tokens"] == r["n_predict"] == "24" and number(r, "tokens_per_s") > 0
        assert number(r, "left") == sum(v for k, v in counts.items() if k < 8)
    if r["side"] == "watched":
        assert set(counts) == {8} and number(r, "looks") > 0
for p in prompts:
    assert len({r["text"] for r in rows if r["prompt"] == p and r["lossy"] == "no" and r["text"]}) == 1
assert any(number(r, "left") > 0 for r in rows if r["side"] == "fast")
assert told["other_texts"] == told["failed"] == 0 and len(told["cases"]) == 2
for case in told["cases"]:
    of = lambda side: [r for r in rows if r["side"] == side and r["group"] == case["group"]]
    mean = lambda side: sum(number(r, "layers") for r in of(side)) / sum(number(r, "counted") for r in of(side))
    assert case["layers"] == 8 and [s["side"] for s in case["sides"]] == sides
    for s in case["sides"]:
        got = of(s["side"])
        assert s["prompts"] == len(got)
        assert near(s["tokens_per_s"], statistics.median(number(r, "tokens_per_s") for r in got))
        if s["side"] in ("off", "off-draft", "tree"):
            continue
        assert near(s["layers_per_token"], mean(s["side"])) and near(sum(s["at_layer"]), 1)
        assert abs(s["of_oracle"] - (8 - mean(s["side"])) / (8 - mean("oracle"))) < 1e-4
        compared = sum(number(r, "compared") for r in got)
        apart = compared - sum(number(r, "agreed") for r in got)
        if compared:
            assert near(s["agreement"], 1 - apart / sum(number(r, "counted") for r in got))
    table = [line for line in open(sys.argv[4]) if line.startswith("| fast (lossy) |")]
    assert len(table) == 2 and all(line.count("|") == 12 for line in table)
PYTHON

"$drey" run -m "$tmp/t.gguf" -d "$tmp/d.gguf" --policy single --exit fast -p "Reverse" -n 8 -q --ignore-eos \
    --stats "$tmp/stats" >"$tmp/out" || wrong "run with exits"
tests/cli/man_keys.py Statistics "$tmp/stats" 2>"$tmp/err" || wrong "$(cat "$tmp/err")"

# Of a model made twice as wide the same predictors, widened, let the same tokens leave.
if python3 -c 'import numpy' 2>/dev/null; then
    python3 -B scripts/widen_gguf.py "$tmp/t.gguf" "$tmp/wide.gguf" >/dev/null
    python3 -B scripts/widen_exits.py "$tmp/t.gguf.drey-exit" "$tmp/wide.gguf" "$tmp/wide.gguf.drey-exit"
    for m in t wide; do
        "$drey" run -m "$tmp/$m.gguf" -d "$tmp/d.gguf" --policy single --exit fast --exit-threshold 0.3 -p "Reverse" -n 40 \
            -q --ignore-eos --stats "$tmp/$m.json" >"$tmp/$m.txt" || wrong "run of $m"
        python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["exits"]["left"])' "$tmp/$m.json" >"$tmp/$m.left"
    done
    cmp -s "$tmp/t.txt" "$tmp/wide.txt" || wrong "the wide model writes another text"
    cmp -s "$tmp/t.left" "$tmp/wide.left" || wrong "others left: $(cat "$tmp/t.left" "$tmp/wide.left")"
else
    echo "cli_exit: no numpy, widened predictors are not tried"
fi

# 2. Broken off within a line: the rest is measured, what was there is not.
head -n 9 "$tmp/csv" >"$tmp/part"
head -n 10 "$tmp/csv" | tail -n 1 | head -c 40 >>"$tmp/part"
"${bench[@]}" --sides off,fast,exact --csv "$tmp/part" -q >"$tmp/out" 2>"$tmp/err" || wrong "going on: exit code $?"
[ -s "$tmp/err" ] && wrong "-q: $(cat "$tmp/err")"
cmp -s <(head -n 9 "$tmp/csv") <(head -n 9 "$tmp/part") || wrong "what was there has changed"
[ "$(wc -l <"$tmp/part")" = 15 ] || wrong "going on: $(wc -l <"$tmp/part") lines"

# 3. Faults in one sentence; a side that cannot run leaves the others.
refused() { # WORDS OPTION...
    local words=$1 code=0
    shift
    "${bench[@]}" "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
    if [ $code = 0 ] || ! grep -q "$words" "$tmp/err"; then
        wrong "$*: exit code $code, $(tail -n 1 "$tmp/err")"
    fi
}
refused "sides takes names" --sides off,slow
refused "no results of drey bench exit" --csv "$tmp/json" --sides off
refused "3 texts could not be written" --exit-file "$tmp/d.gguf" --sides off,fast
grep -q "^| off |" "$tmp/out" || wrong "no table of what could run"
grep -q "^t.gguf, in memory, draft d.gguf, code$" "$tmp/out" || wrong "layers nobody has said: $(cat "$tmp/out")"
refused "3 texts could not be written" --exit-file "$tmp/d.gguf" --sides exact
! grep -q "same texts" "$tmp/out" || wrong "texts that were not written are the same: $(cat "$tmp/out")"
refused "the side fast-confidence needs predictors" --sides off,fast-confidence
[ "$(wc -l <"$tmp/err")" = 1 ] || wrong "more than a sentence: $(cat "$tmp/err")"
bench=("$drey" bench exit -m "$tmp/t.gguf" -d none --prompts "$tmp/prompts")
for side in tree off-draft; do # before anything runs, in one line
    refused "the side $side needs a draft" --sides off,$side
    [ "$(wc -l <"$tmp/err")" = 1 ] || wrong "more than a sentence: $(cat "$tmp/err")"
done
exit $failed
