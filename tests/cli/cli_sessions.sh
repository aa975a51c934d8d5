#!/usr/bin/env bash
# drey bench sessions on toys: the same texts by one session and by several, and a table that adds up.
#   cli_sessions.sh DREY MAKE_TOY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
drey=${1:?usage: cli_sessions.sh DREY MAKE_TOY} make_toy=${2:?usage: cli_sessions.sh DREY MAKE_TOY}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$make_toy" "$tmp/t.gguf"
"$make_toy" "$tmp/d.gguf" 2
for i in 1 2 3 4 5 6 7; do
    echo "{\"id\": \"$i\", \"group\": \"code\", \"prompt\": \"Text number $i, of $((i * i)) words or so:\"}"
done >"$tmp/prompts"
"$drey" bench sessions -m "$tmp/t.gguf" -d "$tmp/d.gguf" --prompts "$tmp/prompts" -t 1 -n 12 --sessions 3 \
    --memory unlimited --json "$tmp/json" >"$tmp/out" 2>"$tmp/err" || {
    echo "cli_sessions: exit code $?: $(tail -n 3 "$tmp/err" "$tmp/out")"
    exit 1
}
grep -q "wrote the same texts" "$tmp/out" || {
    echo "cli_sessions: $(tail -n 2 "$tmp/out")"
    exit 1
}
python3 - "$tmp/json" "$tmp/out" <<'PYTHON'
import json, sys
told = json.load(open(sys.argv[1]))
assert told["other_texts"] == 0
assert [c["sessions"] for c in told["cases"]] == [1, 2, 3]
for c in told["cases"]:
    assert c["tokens"] == 7 * 12 and c["seconds"] > 0 and c["prompt_tokens"] > 7 * 12
    assert c["tokens_per_pass"] >= 1 and c["session_bytes"] > 0
    assert f"| {c['sessions']} | " in open(sys.argv[2]).read()
assert told["cases"][0]["times_one"] == 1
PYTHON
