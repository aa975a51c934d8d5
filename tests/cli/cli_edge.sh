#!/usr/bin/env bash
# drey bench edge on toys: each side once, the same texts, medians that can be made again from the CSV
# file, and a run that is broken off and goes on.
#   cli_edge.sh DREY MAKE_TOY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
drey=${1:?usage: cli_edge.sh DREY MAKE_TOY} make_toy=${2:?usage: cli_edge.sh DREY MAKE_TOY}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
wrong() {
    echo "cli_edge: $*"
    failed=1
}
"$make_toy" "$tmp/t.gguf"
"$make_toy" "$tmp/d.gguf" 2
cat >"$tmp/prompts" <<'PROMPTS'
{"id": "a", "group": "code", "turns": ["Reverse a list.", "And back."]}
{"id": "b,\"c", "group": "code", "prompt": "int main(void)"}

{"question_id": 81, "category": "writing", "turns": ["Write a letter.", "Another."]}
{"question_id": 121, "category": "coding", "turns": ["Write a loop."]}
{"question": "2 + 2?", "answer": "4"}
PROMPTS
# What ASan keeps of freed memory would grow from text to text.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=0:thread_local_quarantine_size_kb=0
# A budget in which most is streamed: the least of a run, and something for the benchmark's own.
least=$({ "$drey" run -m "$tmp/t.gguf" -d "$tmp/d.gguf" -p x -n 24 -t 1 -q --memory 1M 2>&1 || true; } |
    grep -oP 'works here is \K[0-9]+(?= MiB)')
mib=$((least + 4))
edge=("$drey" bench edge -m "$tmp/t.gguf" -d "$tmp/d.gguf" --prompts "$tmp/prompts" -t 1 -n 24
    --plain-tokens 20)

# 1. All sides; tables and files agree.
"${edge[@]}" --memory ${mib}M,unlimited --csv "$tmp/csv" --json "$tmp/json" --svg "$tmp/svg" >"$tmp/out" 2>"$tmp/err" ||
    wrong "exit code $?: $(tail -n 3 "$tmp/err")"
grep -q "all sides that are not lossy wrote the same texts" "$tmp/out" || wrong "texts: $(tail -n 2 "$tmp/out")"
python3 - "$tmp/csv" "$tmp/json" "$tmp/svg" "$tmp/out" "$mib" <<'PYTHON' || failed=1
import csv, json, statistics, sys, xml.dom.minidom
rows = list(csv.DictReader(open(sys.argv[1])))
told = json.load(open(sys.argv[2]))
xml.dom.minidom.parse(sys.argv[3])
sides = ["std", "spl", "draft", "sequence", "bld", "specinfer", "llmcad", "edgellm", "static", "optimal",
         "optimal without tree", "llmcad without fallback", "edgellm without fallback",
         "optimal without batching", "optimal without provisional", "optimal without slice"]
prompts = {"a": "code", "b__c": "code", "81": "chat", "121": "code", "6": "math"}
assert {(r["side"], r["prompt"], r["budget_mib"]) for r in rows} == {
    (s, p, b) for s in sides for p in prompts for b in (sys.argv[-1], "0")} and len(rows) == 160
for r in rows:
    plain = r["side"] in ("std", "spl")
    assert r["group"] == prompts[r["prompt"]] and r["draft"] == ("none" if plain else "d.gguf")
    assert r["tokens"] == r["n_predict"] == ("20" if plain else "24")
    assert (r["lossy"] == "yes") == (r["side"] in ("draft", "bld"))
    assert (r["differed"] == "-1") == (r["side"] == "draft")
assert len({r["text"] for r in rows if r["prompt"] == "a" and r["lossy"] == "no"}) == 2  # of 20 and 24
assert told["other_texts"] == told["failed"] == 0
for case in told["cases"]:
    speed = {}
    for r in rows:
        if float(r["budget_mib"]) == case["budget_mib"]:
            speed[r["side"], r["prompt"]] = float(r["tokens_per_s"])
    assert [s["side"] for s in case["sides"]] == sides
    for s in case["sides"]:
        for group, got in s["groups"].items():
            of = [p for p in prompts if prompts[p] == group]
            near = lambda a, b: abs(a - b) <= 1e-4 * abs(b)
            assert got["prompts"] == len(of)
            assert near(got["tokens_per_s"], statistics.median(speed[s["side"], p] for p in of))
            assert near(got["of_optimal"], statistics.median(
                speed[s["side"], p] / speed["optimal", p] for p in of))
assert "| bld (lossy) |" in open(sys.argv[4]).read()
PYTHON

# 2. Broken off within a line: the rest is measured, what was there is not.
head -n 20 "$tmp/csv" >"$tmp/part"
head -n 21 "$tmp/csv" | tail -n 1 | head -c 40 >>"$tmp/part"
"${edge[@]}" --memory ${mib}M,unlimited --csv "$tmp/part" -q >"$tmp/out" 2>"$tmp/err" || wrong "going on: exit code $?"
[ -s "$tmp/err" ] && wrong "-q: $(cat "$tmp/err")"
[ "$(wc -l <"$tmp/part")" = 161 ] || wrong "going on: $(wc -l <"$tmp/part") lines"
cmp -s <(head -n 20 "$tmp/csv") <(head -n 20 "$tmp/part") || wrong "what was there has changed"
cp "$tmp/part" "$tmp/same"
"${edge[@]}" --memory ${mib}M,unlimited --csv "$tmp/part" >"$tmp/out" 2>"$tmp/err" || wrong "again: exit code $?"
[ -s "$tmp/err" ] && wrong "measured again: $(cat "$tmp/err")"
cmp -s "$tmp/part" "$tmp/same" || wrong "another file when there was nothing to do"
# So where the file cannot hold all digits of a budget.
for time in first second; do
    "${edge[@]}" --memory $((mib * 1024 + 1))K --policies optimal --csv "$tmp/digits" >"$tmp/out" 2>"$tmp/err" ||
        wrong "a budget in KiB, $time: exit code $?"
done
[ -s "$tmp/err" ] && wrong "a budget in KiB, measured again: $(cat "$tmp/err")"

# 3. A text that is another one.
python3 - "$tmp/part" <<'PYTHON'
import sys
lines = open(sys.argv[1]).read().split("\n")
at = next(i for i, line in enumerate(lines) if ",optimal,a," in line)
lines[at] = lines[at][:-16] + "0123456789abcdef"
open(sys.argv[1], "w").write("\n".join(lines))
PYTHON
got=0
"${edge[@]}" --memory ${mib}M --csv "$tmp/part" --json "$tmp/json" >"$tmp/out" 2>"$tmp/err" || got=$?
[ $got = 1 ] || wrong "another text: exit code $got"
grep -q "wrote another text than" "$tmp/out" || wrong "another text is not told"
tests/cli/json_value.py "$tmp/json" 'other_texts > 0' >"$tmp/null" || failed=1

# 4. Some sides; a side that cannot run does not end the others.
"${edge[@]}" --policies optimal,sp --without tree --csv "$tmp/few" --memory unlimited --rounds 2 -q >"$tmp/out"
[ "$(tail -n +2 "$tmp/few" | cut -d, -f3 | sort | uniq -c | tr -s ' ')" = " 10 optimal
 10 optimal without tree
 10 sequence" ] || wrong "some sides: $(cut -d, -f3 "$tmp/few" | sort | uniq -c)"
"${edge[@]}" --policies edgellm,specinfer,sp --without tree,provisional,fallback --csv "$tmp/theirs" --memory unlimited -q \
    >"$tmp/out"
[ "$(tail -n +2 "$tmp/theirs" | cut -d, -f3 | sort | uniq -c | tr -s ' ')" = " 5 edgellm
 5 edgellm without fallback
 5 edgellm without provisional
 5 edgellm without tree
 5 sequence
 5 sequence without provisional
 5 specinfer
 5 specinfer without provisional
 5 specinfer without tree" ] || wrong "their sides: $(cut -d, -f3 "$tmp/theirs" | sort | uniq -c)"
got=0
"${edge[@]}" --policies optimal --memory 1M >"$tmp/out" 2>"$tmp/err" || got=$?
[ $got = 1 ] || wrong "a budget too small for all: exit code $got"
! grep -q "same texts" "$tmp/out" || wrong "texts that were not written are the same: $(cat "$tmp/out")"
got=0
"${edge[@]}" --policies optimal --memory 1M,unlimited --csv "$tmp/small" >"$tmp/out" 2>"$tmp/err" || got=$?
[ $got = 1 ] || wrong "a budget too small: exit code $got"
[ "$(wc -l <"$tmp/small")" = 6 ] || wrong "a budget too small: $(wc -l <"$tmp/small") lines"
grep -q "a, optimal, 1 MiB: .*smallest" "$tmp/err" || wrong "a budget too small: $(head -n 1 "$tmp/err")"
grep -q "5 texts could not be written" "$tmp/err" || wrong "a budget too small is not counted"

# 5. Files that are something else.
refused() { # CODE PATTERN WORD...
    local code=$1 pattern=$2 got=0
    shift 2
    "$@" >"$tmp/out" 2>"$tmp/err" || got=$?
    if [ $got != "$code" ] || [ "$(wc -l <"$tmp/err")" != 1 ] || ! grep -q "$pattern" "$tmp/err"; then
        wrong "$pattern: $got, $(cat "$tmp/err")"
    fi
}
refused 1 "is there already and holds no results" "${edge[@]}" --csv "$tmp/json"
echo '{"id": "x"}' >"$tmp/odd"
refused 1 "line 1 of .* is no prompt" "$drey" bench edge -m "$tmp/t.gguf" --prompts "$tmp/odd"
: >"$tmp/empty"
refused 1 "holds no prompt" "$drey" bench edge -m "$tmp/t.gguf" --prompts "$tmp/empty"
refused 2 "takes policies with commas between" "${edge[@]}" --policies optimal,,sp
refused 2 "takes policies with commas between" "${edge[@]}" --policies auto
refused 1 "none.gguf" "$drey" bench edge -m "$tmp/none.gguf" --prompts "$tmp/prompts" --csv "$tmp/head"
cmp -s <(head -n 1 "$tmp/csv") "$tmp/head" || wrong "scripts/bench asks for the columns: $(cat "$tmp/head")"
refused 2 "python3 scripts/bench edge /a/b, in drey's source" "${edge[@]}" --peer /a/b
refused 2 "without fallback makes no difference" "${edge[@]}" --policies optimal,sp --without fallback
lookup=("$drey" bench edge -m "$tmp/t.gguf" -d lookup --prompts "$tmp/prompts")
refused 2 "the policy draft needs a draft: add -d DRAFT.gguf$" "${lookup[@]}" --policies draft
refused 2 "without slice makes no difference" "${lookup[@]}" --policies optimal --without slice
refused 2 "the policy si needs a draft" "$drey" bench edge -m "$tmp/t.gguf" --prompts "$tmp/prompts" --policies si
sed "5s/,$mib,0,/,soon,0,/" "$tmp/csv" >"$tmp/bad"
refused 1 "line 5 of .* is damaged at" "${edge[@]}" --csv "$tmp/bad"

# 6. The prompts that come with drey: ten of each group.
python3 - scripts/bench/prompts.jsonl <<'PYTHON' || failed=1
import collections, json, sys
prompts = [json.loads(line) for line in open(sys.argv[1])]
assert collections.Counter(p["group"] for p in prompts) == {"code": 10, "chat": 10}
assert len({p["id"] for p in prompts}) == 20
PYTHON
exit $failed
