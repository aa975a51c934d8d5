#!/usr/bin/env bash
# The memory budget holds (DESIGN contract 2): the command in a memory cgroup of budget x 1.05 and in
# one of twice the budget, without swap, with a cold page cache. The highest memory that the kernel
# charged stays under the budget, the limit is never hit, nothing is killed, and decoding takes no
# major fault. Needs root, memory cgroups, and the small real model.
#   budget.sh DREY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
drey=${1:?usage: budget.sh DREY}

skip() {
    echo "skipped: $*"
    exit 77
}
models=${DREY_MODELS:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/drey/models}
smol=$models/SmolLM2-135M-Instruct.Q4_1.gguf
draft=$models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf
target=$models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf
[ "$(id -u)" = 0 ] || skip "memory cgroups need root"
[ -f "$smol" ] || skip "$smol is not there (scripts/get-models.sh smol)"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 scripts/memlimit.py 64 --json "$tmp/probe" -- true 2>"$tmp/err" ||
    skip "this system allows no memory cgroup: $(tail -n 1 "$tmp/err")"

failed=0
# check BUDGET_MIB LIMIT_MIB TOKENS OPTION...
check() {
    local budget=$1 limit=$2 tokens=$3
    shift 3
    rm -f "$tmp/limit" "$tmp/stats"
    python3 scripts/memlimit.py "$limit" --timeout 300 --json "$tmp/limit" -- "$drey" run "$@" \
        --memory "${budget}M" -t 2 -n "$tokens" --ignore-eos --stats "$tmp/stats" \
        -p "The three most important things about squirrels are" >"$tmp/text" 2>"$tmp/err" || {
        echo "budget: $budget MiB in $limit MiB: drey failed"
        tail -n 5 "$tmp/err"
        failed=1
        return
    }
    python3 - "$budget" "$limit" "$tmp/limit" "$tmp/stats" <<'PYTHON' || failed=1
import json, sys
budget, limit = int(sys.argv[1]), int(sys.argv[2])
charged, stats = json.load(open(sys.argv[3])), json.load(open(sys.argv[4]))
faults = stats["decode_major_faults"]
wrong = [what for what, bad in (
    ("charged more than the budget", charged["peak_mib"] > budget),
    ("hit the limit", charged["limit_hits"]),
    ("killed", charged["oom_kills"]),
    ("major faults while decoding", faults),
    ("nothing was streamed, the budget is no test",
     budget < limit and stats["streamed_bytes_per_pass"] == 0)) if bad]
print("%d MiB in %d MiB: charged %.1f MiB, limit hits %d, kills %d, major faults %d%s" % (
    budget, limit, charged["peak_mib"], charged["limit_hits"], charged["oom_kills"], faults,
    "".join(": " + w for w in wrong)))
sys.exit(1 if wrong else 0)
PYTHON
}

# The limit is rounded up to whole MiB.
both() { # BUDGET_MIB OPTION...
    local budget=$1
    shift
    check "$budget" $(((budget * 105 + 99) / 100)) "$@"
    check "$budget" $((budget * 2)) "$@"
}
both 80 24 -m "$smol"
"$drey" prepare -q "$smol" -o "$tmp/packed"
both 80 24 -m "$smol" --sidecar "$tmp/packed"
# Writing one takes some MiB whatever the model's size, page cache included.
python3 scripts/memlimit.py 48 --timeout 300 --json "$tmp/limit" -- "$drey" prepare -q --force \
    "$smol" -o "$tmp/packed" 2>"$tmp/err" || {
    echo "budget: drey prepare failed in 48 MiB: $(tail -n 3 "$tmp/err")"
    failed=1
}
if [ -f "$target" ] && [ -f "$draft" ]; then
    both 800 24 -m "$target" -d "$draft"
else
    echo "not run: target and draft under 800 MiB, they are not in $models"
fi
exit $failed
