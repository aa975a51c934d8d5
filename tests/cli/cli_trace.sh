#!/usr/bin/env bash
# Traces: what drey run --trace writes is a text's turns, and drey report draws them; what is no
# trace is refused in one sentence.
#   cli_trace.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
"$make_toy" "$tmp/target.gguf"
"$make_toy" "$tmp/draft.gguf" 2
run=("$drey" run -m "$tmp/target.gguf" -t 2 -n 40 --ignore-eos -q -p "the quick brown fox")

# 1. The text is the same, and its turns are all of it.
"${run[@]}" >"$tmp/text"
"${run[@]}" -d "$tmp/draft.gguf" --trace "$tmp/t.json" --stats "$tmp/stats" >"$tmp/out"
same "another text with a trace" "$tmp/text" "$tmp/out"
python3 - "$tmp/t.json" "$tmp/stats" <<'PYTHON' || failed=1
import json, sys
trace, stats = (json.load(open(f)) for f in sys.argv[1:])
events = trace["traceEvents"]
assert trace["otherData"]["format"] == "drey trace 1" and trace["otherData"]["policy"] == "auto"
spans = [e for e in events if e["ph"] == "X"]
assert all(e["ts"] >= 0 and e["dur"] >= 0 and e["pid"] == 1 for e in spans)
named = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert set(named.values()) == {"text", "draft", "verify", "provisional", "stall", "read", "prompt",
                               "draft's reads"}
turns = [e for e in spans if e["name"] == "turn"]
verified = [e for e in spans if e["name"] == "verify"]
assert len(turns) == len(verified) == stats["passes"] > 1
assert [t["args"]["turn"] for t in turns] == list(range(len(turns)))
assert sum(t["args"]["written"] for t in turns) == stats["generated_tokens"] - 1
accepted = 0
for t in turns:
    tree = t["args"]["tree"]
    assert tree[0][1] == -1 and all(node[1] < i for i, node in enumerate(tree))
    path = [node for node in tree[1:] if node[4] == 2]
    accepted += len(path)
    assert isinstance(t["args"]["next"], str)
assert accepted == stats["accepted"]
for name in ("read", "stall", "draft", "verify"):  # events of a lane follow each other
    lane = sorted((e["ts"], e["ts"] + e["dur"]) for e in spans if e["name"] == name)
    assert all(a[1] <= b[0] + 0.01 for a, b in zip(lane, lane[1:])), name
read = sum(e["args"]["bytes"] for e in spans if e["name"].startswith("read"))
assert read >= stats["load_bytes"] + stats["read_bytes"]
PYTHON

# 2. Pictures: well-formed, and of what was asked for.
drawn() { # PATTERN WORD...
    local pattern=$1
    shift
    "$drey" report "$tmp/t.json" "$@" >"$tmp/t.svg" || wrong "report $*: exit code $?"
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$tmp/t.svg" ||
        wrong "report $*: not XML"
    grep -qE "$pattern" "$tmp/t.svg" || wrong "report $*: no $pattern"
}
drawn "turns [0-9]+ to [0-9]+ of"
drawn "turns 0 to 1 of" --turns 0-1
drawn "turns 1 to 1 of" --turns 1
drawn "turn 1: [0-9]+ drafted, [0-9]+ submitted, [0-9]+ accepted" --turn 1
"$drey" report "$tmp/t.json" --turn 1 -o "$tmp/tree.svg"
same "another picture in a file" "$tmp/tree.svg" "$tmp/t.svg"

# The grey line of the draft leads to where the red one begins, also if the draft paused; a line end
# has a width; the root is marked.
"${run[@]}" -d "$tmp/draft.gguf" --policy specinfer --trace "$tmp/one.json" >"$tmp/out"
edit "$tmp/one.json" "$tmp/two.json" "
for e in [e for e in root['traceEvents'] if e['name'] == 'draft' and e['ph'] == 'X']:
    e['dur'] /= 4
    root['traceEvents'].append(dict(e, ts=e['ts'] + 2 * e['dur']))
for e in root['traceEvents']:
    if e['name'] == 'turn':
        e['args']['next'] = '}\\n\\n'"
"$drey" report "$tmp/two.json" -o "$tmp/two.svg" || wrong "a draft that paused"
"$drey" report "$tmp/two.json" --turn 1 -o "$tmp/two-tree.svg" || wrong "a tree that ends in line ends"
python3 - "$tmp/two.svg" "$tmp/two-tree.svg" <<'PYTHON' || failed=1
import re, sys
lanes, tree = (open(f).read() for f in sys.argv[1:])
drafts = re.findall(r'<path class="line draft" d="M[-0-9. L]+ V([0-9.]+) H([0-9.]+)"/>', lanes)
begins = {(y, x) for x, y in re.findall(r'<path class="line verify" d="M([0-9.]+) ([0-9.]+) L', lanes)}
assert drafts and set(drafts) <= begins, (drafts, begins)
assert all(f">{word}</text>" in lanes for word in ("text", "drafted", "being verified", "drafted meanwhile"))
assert ">root</text>" in tree
own = re.search(r'<rect class="node rectified" x="[^"]*" y="[^"]*" width="([^"]*)"', tree)
assert float(own[1]) > 80, own[0]
PYTHON

# On a terminal the picture goes into a file next to the trace.
(cd "$tmp" && python3 "$root/tests/cli/terminal.py" written "$drey" report t.json --turn 1 >screen) || wrong "report on a terminal"
same "the picture of a terminal" "$tmp/t-turn1.svg" "$tmp/t.svg"
has "$tmp/screen" "wrote t-turn1.svg"

# 2b. A mixture of experts in a small budget: each layer's experts, and each read of one.
DREY_TEST_EXPERTS=1 "$make_toy" "$tmp/mixture.gguf" 24
mixture=("$drey" run -m "$tmp/mixture.gguf" -t 2 -c 128 -n 24 --ignore-eos -q -d none -p "the quick brown fox"
    --trace "$tmp/x.json" --stats "$tmp/stats")
ends 1 "${mixture[@]}" --memory 1M
floor=$(grep -oE 'works here is [0-9]+' "$tmp/err" | grep -oE '[0-9]+$')
"${mixture[@]}" --memory "${floor}M" >/dev/null 2>&1 || floor=$((floor + 1)) # a sanitizer's memory may have grown
ends 0 "${mixture[@]}" --memory "${floor}M"
python3 - "$tmp/x.json" "$tmp/stats" <<'PYTHON' || failed=1
import json, sys
trace, stats = (json.load(open(f)) for f in sys.argv[1:])
spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
named = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
waves = sorted((e for e in spans if e["name"] == "experts"), key=lambda e: e["ts"])
reads = [e for e in spans if e["name"] == "expert"]
assert {named[e["tid"]] for e in waves} == {"experts"}
assert all(named[e["tid"]].startswith("expert reads ") for e in reads)
verified = [e for e in spans if e["name"] == "verify"]
used = read = 0
for v in verified:  # a pass of one row: a wave for each layer, in order
    own = [w["args"] for w in waves if v["ts"] - 0.01 <= w["ts"] <= v["ts"] + v["dur"]]
    assert [w["layer"] for w in own] == list(range(24)), own
    assert all(w["used"] == 2 and 0 <= w["read"] <= 2 for w in own)
    used += sum(w["used"] for w in own)
    read += sum(w["read"] for w in own)
assert used == stats["experts_used"] and read == stats["experts_read"] > 0
seen = {(e["args"]["layer"], e["args"]["expert"]) for e in reads}
assert len({layer for layer, _ in seen}) == 24 and {e for _, e in seen} <= set(range(8)) and len(seen) > 48
assert all(e["args"]["bytes"] > 0 for e in reads)
for tid in {e["tid"] for e in reads}:
    lane = sorted((e["ts"], e["ts"] + e["dur"]) for e in reads if e["tid"] == tid)
    assert all(a[1] <= b[0] + 0.01 for a, b in zip(lane, lane[1:])), tid
PYTHON
"$drey" report "$tmp/x.json" -o "$tmp/x.svg" || wrong "report of a mixture"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$tmp/x.svg" || wrong "not XML"
has "$tmp/x.svg" '>experts<'
! grep -q '>experts<' "$tmp/t.svg" || wrong "experts in a picture of a model that has none"
edit "$tmp/x.json" "$tmp/bad.json" "for e in root['traceEvents']:
    if e['name'] == 'experts' and e['ph'] == 'X':
        e['args']['read'] = 9"
refused 1 "is damaged: its event" "$drey" report "$tmp/bad.json"

# 3. Words that could end the picture's markup.
edit_turns() { # TO PYTHON: what happens to an event e that is a turn
    edit "$tmp/t.json" "$1" "for e in root['traceEvents']:
    if e['name'] == 'turn':
        $2"
}
edit_turns "$tmp/odd.json" 'e["args"]["next"] = "</text><script>\u0001\n\ufffe&\""'
"$drey" report "$tmp/odd.json" --turn 1 -o "$tmp/odd.svg" || wrong "odd words are refused"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$tmp/odd.svg" ||
    wrong "odd words break the picture"

# 4. What is no trace, or not all of one.
report() { # CODE PATTERN WORD...
    refused "$1" "$2" "$drey" report "${@:3}"
}
size=$(wc -c <"$tmp/t.json")
for part in 0 1 100 $((size / 2)) $((size - 4)); do
    head -c $part "$tmp/t.json" >"$tmp/part.json"
    report 1 "not JSON to its end" "$tmp/part.json"
done
echo '{"traceEvents":[]}' >"$tmp/foreign.json"
report 1 "is not a trace of drey run" "$tmp/foreign.json"
echo '[1,2]' >"$tmp/list.json"
report 1 "is not a trace of drey run" "$tmp/list.json"
head -c 9000 "$tmp/target.gguf" >"$tmp/model.json"
report 1 "not JSON to its end" "$tmp/model.json"
report 1 "none.json" "$tmp/none.json"
report 2 "the trace has no turn 900; it has 0 to" "$tmp/t.json" --turn 900
report 2 "the trace has no turn 900" "$tmp/t.json" --turns 0-900
for turns in "" x 1- -1 2-1 1-2-3 1x; do
    report 2 "turns takes a turn or two" "$tmp/t.json" --turns "$turns"
done
damaged() { # PYTHON: what happens to an event e that is a turn
    edit_turns "$tmp/bad.json" "$1"
    report 1 "is damaged: its event" "$tmp/bad.json"
}
damaged 'e["args"]["tree"] = []'
damaged 'e["args"]["tree"][0][1] = 0'
damaged 'e["args"]["tree"].append(["x", 5000, 0.5, 1, 1])'
damaged 'e["args"]["tree"].append(["x", 0, 1.5, 1, 1])'
damaged 'e["args"]["tree"].append(["x", 0, 0.5, 1, 7])'
damaged 'e["args"]["tree"].append("x")'
damaged 'e["args"]["next"] = 4'
damaged 'del e["args"]'
damaged 'e["dur"] = -1'
damaged 'e["ts"] = "soon"'

# 5. Where a trace cannot be.
ends 2 "${run[@]}" --trace -
has "$tmp/err" "--trace takes a file"
exit $failed
