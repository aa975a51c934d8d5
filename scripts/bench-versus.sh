#!/usr/bin/env bash
# Measures drey against llama.cpp, ik_llama.cpp or both on this machine, all taking turns (A B C A B C), and
# prints ratios: above 1 where drey is faster.
#   bench-versus.sh PEER_BIN_DIR... [--models FILE,FILE...] [--rounds N] [--threads N] [--csv FILE] [--quick]
#                   [memory] [limit]
#     PEER_BIN_DIR  holds a peer's llama-bench; for limit llama.cpp's llama-completion too. A peer that can
#                   repack weights at run time (ik_llama.cpp) runs both ways, and the better one counts
#     memory        everything in memory: prefill of 512, decode of 128, passes of 1 to 64 rows
#     limit         more than memory: wide6b with draft under 2560 MiB, target with draft under
#                   800 MiB, each in a cgroup of its own with a cold page cache (root); llama.cpp
#                   maps the same file in the same limit. --memory is the limit / 1.05
#     --models      for memory (default target and smol)
#     --rounds      turns of each side (default 3)     --threads   of all sides (default 2)
#     --csv         every single value (default bench-versus.csv)
#     --quick       tiny runs that only try the script
# Models: $DREY_MODELS, else the user's cache directory; what is missing is fetched, wide6b is made.
# A machine that does something else meanwhile gives ratios that mean nothing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
usage() {
    sed -n '2,18s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
die() {
    echo "bench-versus: $*" >&2
    exit 1
}

rounds=3 threads=2 csv=bench-versus.csv quick=false files=() parts=() peers=() names=()
while [ $# -gt 0 ]; do
    case $1 in
    --rounds) rounds=${2:?} && shift ;;
    --threads) threads=${2:?} && shift ;;
    --csv) csv=${2:?} && shift ;;
    --quick) quick=true ;;
    --models) IFS=, read -ra files <<<"${2:?}" && shift ;;
    memory | limit) parts+=("$1") ;;
    -*) usage ;;
    *) peers+=("$(cd "$1" && pwd)") ;;
    esac
    shift
done
[ ${#peers[@]} -gt 0 ] || usage
[ ${#parts[@]} -gt 0 ] || parts=(memory limit)
run_in() { # PEER_BIN_DIR COMMAND...: its own libraries come first
    local folder=$1
    shift
    env LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"
}
repacks() { # PEER_BIN_DIR
    run_in "$1" "$1/llama-bench" --help 2>&1 | grep -e --run-time-repack >/dev/null
}
limit_peer=''
for peer in "${peers[@]}"; do
    [ -x "$peer/llama-bench" ] || die "$peer has no llama-bench"
    name=llama.cpp
    ! repacks "$peer" || name=ik_llama.cpp
    [[ " ${names[*]-} " != *" $name "* ]] || name=$name-$((${#names[@]} + 1))
    names+=("$name")
    [ -n "$limit_peer" ] || [ ! -x "$peer/llama-completion" ] || limit_peer=$peer
done
[[ " ${parts[*]} " != *" limit "* ]] || [ -n "$limit_peer" ] ||
    die "no folder has llama-completion, which 'limit' needs; or run 'memory' alone"

prompt_tokens=512 decode_tokens=128 widths=1,2,4,8,16,32,64 repeats=3 limit_tokens=128 plain_tokens=16 peer_tokens=10
if $quick; then
    prompt_tokens=32 decode_tokens=8 limit_tokens=12 plain_tokens=3 peer_tokens=2 rounds=1 repeats=1
fi

models=${DREY_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/drey/models}
smol=$models/SmolLM2-135M-Instruct.Q4_1.gguf
draft=$models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf
target=$models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf
wide6b=$models/wide6b.gguf
drey=$here/build/cli/drey

"$here/scripts/build.sh" "$here/build"
if [ ${#files[@]} = 0 ] || [[ " ${parts[*]} " = *" limit "* ]]; then
    "$here/scripts/get-models.sh" --dir "$models" smol draft target
fi
if [[ " ${parts[*]} " = *" limit "* ]]; then
    [ "$(id -u)" = 0 ] || die "the part 'limit' needs root, for memory cgroups; or run 'memory' alone"
    if [ ! -f "$wide6b" ]; then
        python3 -c 'import numpy' 2>/dev/null || die "making wide6b needs numpy (python3-numpy)"
        python3 "$here/scripts/widen_gguf.py" "$target" "$wide6b.new" >&2
        mv "$wide6b.new" "$wide6b"
    fi
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/prompt" <<'PROMPT'
<|im_start|>system
You are a helpful assistant.<|im_end|>
<|im_start|>user
Write a C function that reverses a singly linked list in place, and explain it in a few sentences.<|im_end|>
<|im_start|>assistant
PROMPT

echo "case,side,round,metric,value" >"$csv"
record() { # CASE SIDE ROUND METRIC VALUE
    echo "$1,$2,$3,$4,$5" >>"$csv"
}
# record_json CASE SIDE ROUND FILE KEY...: what the file says under each key
record_json() {
    local case=$1 side=$2 round=$3 file=$4
    shift 4
    python3 - "$file" "$@" <<'PYTHON' | while read -r key value; do
import json, sys
values = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    print(key, values.get(key, ""))
PYTHON
        record "$case" "$side" "$round" "$key" "$value"
    done
}
must() { # runs a command; what it wrote to the error output is shown when it fails
    "$@" 2>"$tmp/err" || {
        tail -n 20 "$tmp/err" >&2
        die "failed: ${*:0:12} ..."
    }
}

# ---- In memory
flatten_drey() { # passes of rows as keys of their own
    python3 - "$1" >"$tmp/flat.json" <<'PYTHON'
import json, sys
r = json.load(open(sys.argv[1]))
flat = {k: r[k] for k in ("prefill_tokens_per_s", "decode_tokens_per_s", "bandwidth_share")}
flat.update(("pass_%d_s" % p["rows"], p["pass_s"]) for p in r["passes"])
print(json.dumps(flat))
PYTHON
}
flatten_peer() { # prints the peer's version; a prompt of n tokens is a pass of n rows, though with logits for the last alone
    python3 - "$1" "$2" "$tmp/flat.json" <<'PYTHON'
import json, sys
long, short = (json.load(open(name)) for name in sys.argv[1:3])
flat = {"prefill_tokens_per_s": next(t["avg_ts"] for t in long if t["n_prompt"]),
        "decode_tokens_per_s": next(t["avg_ts"] for t in long if t["n_gen"])}
flat.update(("pass_%d_s" % t["n_prompt"], t["n_prompt"] / t["avg_ts"]) for t in short)
json.dump(flat, open(sys.argv[3], "w"))
print("build %s, commit %s" % (long[0]["build_number"], long[0]["build_commit"]))
PYTHON
}
pass_keys=()
for n in ${widths//,/ }; do pass_keys+=("pass_${n}_s"); done

peer_in_memory() { # CASE SIDE ROUND MODEL PEER_BIN_DIR OPTION...
    local case=$1 side=$2 round=$3 model=$4 peer=$5
    shift 5
    local bench=("$peer/llama-bench" -m "$model" -t "$threads" -o json "$@")
    must run_in "$peer" "${bench[@]}" -p $prompt_tokens -n $decode_tokens -r 1 >"$tmp/long.json"
    must run_in "$peer" "${bench[@]}" -p $widths -n 0 -r $repeats >"$tmp/short.json"
    flatten_peer "$tmp/long.json" "$tmp/short.json" >"$tmp/${side%+repack}"
    record_json "$case" "$side" "$round" "$tmp/flat.json" prefill_tokens_per_s decode_tokens_per_s \
        "${pass_keys[@]}"
}
in_memory() { # CASE MODEL ROUND
    must "$drey" bench model -m "$2" -t "$threads" --prompt-tokens $prompt_tokens \
        --decode-tokens $decode_tokens --contexts 0 --memory unlimited --sidecar none \
        --json "$tmp/drey.json" >/dev/null
    flatten_drey "$tmp/drey.json"
    record_json "$1" drey "$3" "$tmp/flat.json" prefill_tokens_per_s decode_tokens_per_s \
        bandwidth_share "${pass_keys[@]}"
    for i in "${!peers[@]}"; do
        peer_in_memory "$1" "${names[i]}" "$3" "$2" "${peers[i]}"
        ! repacks "${peers[i]}" || peer_in_memory "$1" "${names[i]}+repack" "$3" "$2" "${peers[i]}" -rtr 1
    done
}

# ---- More than memory
limited() { # LIMIT_MIB COMMAND...
    local limit=$1
    shift
    python3 "$here/scripts/memlimit.py" "$limit" --timeout 1800 --json "$tmp/limit.json" -- "$@"
}
drey_limited() { # CASE SIDE ROUND MODEL LIMIT_MIB TOKENS OPTION...
    local case=$1 side=$2 round=$3 model=$4 limit=$5 tokens=$6
    shift 6
    local budget=$((limit * 1048576 * 100 / 105))
    must limited "$limit" "$drey" run -m "$model" --memory $budget -t "$threads" -f "$tmp/prompt" \
        --special -n "$tokens" --ignore-eos --stats "$tmp/stats.json" "$@" >"$tmp/text"
    record_json "$case" "$side" "$round" "$tmp/stats.json" tokens_per_s prompt_s tokens_per_pass \
        drafted accepted generated_tokens read_bytes read_bytes_per_s stall_share verify_share \
        draft_share ceiling_tokens_per_s disk_bytes_per_s pinned_bytes streamed_bytes_per_pass \
        budget_bytes peak_memory_bytes decode_major_faults
    record_json "$case" "$side" "$round" "$tmp/limit.json" peak_mib limit_hits oom_kills wall_s
}
peer_limited() { # CASE ROUND MODEL LIMIT_MIB
    # A kill for memory is a result too, not the end of the measurement.
    limited "$4" env LD_LIBRARY_PATH="$limit_peer${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        "$limit_peer/llama-completion" -m "$3" -t "$threads" -c 512 -bf "$tmp/prompt" -n $peer_tokens \
        --temp 0 --ignore-eos -no-cnv --no-warmup --no-display-prompt --perf --load-mode mmap \
        >"$tmp/text" 2>"$tmp/err" </dev/null || true
    # From milliseconds and runs: the rate that it prints has too few digits.
    record "$1" llama.cpp "$2" tokens_per_s "$(sed -nE \
        's/.*[^t] eval time = *([0-9.]+) ms \/ *([0-9]+) runs.*/\1 \2/p' "$tmp/err" |
        tail -n 1 | awk '$1 > 0 { print $2 * 1000 / $1 }')"
    record_json "$1" llama.cpp "$2" "$tmp/limit.json" peak_mib limit_hits oom_kills wall_s read_mb
}
under_limit() { # CASE MODEL LIMIT_MIB ROUND
    drey_limited "$1" drey "$4" "$2" "$3" $limit_tokens -d "$draft"
    peer_limited "$1" "$4" "$2" "$3"
    drey_limited "$1" drey-no-draft "$4" "$2" "$3" $plain_tokens
}

for round in $(seq "$rounds"); do
    for part in "${parts[@]}"; do
        echo "bench-versus: round $round of $rounds: $part" >&2
        case $part in
        memory)
            if [ ${#files[@]} = 0 ]; then
                in_memory target-memory "$target" "$round"
                in_memory smol-memory "$smol" "$round"
            fi
            for file in "${files[@]}"; do
                in_memory "$(basename "$file" .gguf)" "$file" "$round"
            done
            ;;
        limit)
            under_limit wide6b-2560M "$wide6b" 2560 "$round"
            under_limit target-800M "$target" 800 "$round"
            ;;
        esac
    done
done

# ---- The table
echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores," \
    "$(awk '/^MemTotal/ { printf "%.1f GiB", $2 / 1048576 }' /proc/meminfo), $(uname -sr)"
echo "drey: $("$drey" --version), commit $(git -C "$here" rev-parse --short HEAD 2>/dev/null || echo none)"
for i in "${!peers[@]}"; do
    [ -f "$tmp/${names[i]}" ] || continue
    echo "${names[i]}: $(cat "$tmp/${names[i]}")"
done
[[ " ${parts[*]} " != *" limit "* ]] || echo "llama.cpp of limit: $(run_in "$limit_peer" "$limit_peer/llama-completion" --version 2>&1 |
    sed -n 's/^version: //p')"
echo "date: $(date -u +%F), threads: $threads, rounds: $rounds$(! $quick || echo ', QUICK: not a measurement')"
python3 - "$csv" <<'PYTHON'
import csv, statistics, sys
values = {}  # (case, side, metric) -> {round: value}
for row in csv.DictReader(open(sys.argv[1])):
    if row["value"]:
        key = (row["case"], row["side"], row["metric"])
        values.setdefault(key, {})[row["round"]] = float(row["value"])
cases = list(dict.fromkeys(k[0] for k in values))

def median(case, side, metric):
    found = values.get((case, side, metric))
    return statistics.median(found.values()) if found else None

def better(metric, values):  # of two ways of running one peer
    values = [v for v in values if v]
    return (min if metric.startswith("pass_") else max)(values) if values else None

sides = list(dict.fromkeys(k[1] for k in values))
peers = [s for s in sides if not s.startswith("drey") and not s.endswith("+repack")]
metrics = list(dict.fromkeys(k[2] for k in values if k[2] in (
    "prefill_tokens_per_s", "decode_tokens_per_s", "tokens_per_s") or k[2].startswith("pass_")))
NAMES = {"prefill_tokens_per_s": "prefill", "decode_tokens_per_s": "decode", "tokens_per_s": "text"}
for case in cases:
    for peer in peers:
        lines = []
        for metric in metrics:
            ours = values.get((case, "drey", metric), {})
            ways = [values.get((case, peer + way, metric), {}) for way in ("", "+repack")]
            theirs = {r: better(metric, [w.get(r) for w in ways]) for r in ours}
            pairs = [(ours[r], theirs[r]) for r in sorted(ours) if theirs.get(r)]
            passes = metric.startswith("pass_")
            ratios = [b / a if passes else a / b for a, b in pairs]
            if ratios:
                unit = 1e-3 if passes else 1
                lines.append("%-22s %10.2f %12.2f %7.2f   %s" % (
                    "pass of %s, ms" % metric.split("_")[1] if passes else NAMES[metric] + ", tokens/s",
                    statistics.median(a for a, _ in pairs) / unit,
                    statistics.median(b for _, b in pairs) / unit, statistics.median(ratios),
                    " ".join("%.2f" % r for r in ratios)))
        if lines:
            print("\n%-22s %10s %12s %7s   %s" % (case, "drey", peer, "ratio", "of each round"))
            print("\n".join(lines))
ROWS = (("tokens/s", "tokens_per_s", 1, 2), ("ceiling tokens/s", "ceiling_tokens_per_s", 1, 2),
        ("tokens a pass", "tokens_per_pass", 1, 2), ("drafted", "drafted", 1, 0),
        ("accepted", "accepted", 1, 0), ("GB read", "read_bytes", 1e9, 2),
        ("GB/s", "read_bytes_per_s", 1e9, 2), ("GB read, all told", "read_mb", 1e3, 2),
        ("stall %", "stall_share", 0.01, 0),
        ("verify %", "verify_share", 0.01, 0), ("draft %", "draft_share", 0.01, 0),
        ("pinned MiB", "pinned_bytes", 2**20, 0), ("budget MiB", "budget_bytes", 2**20, 0),
        ("peak charged MiB", "peak_mib", 1, 0), ("limit hits", "limit_hits", 1, 0),
        ("OOM kills", "oom_kills", 1, 0), ("major faults", "decode_major_faults", 1, 0))
for case in cases:
    if (case, "drey", "peak_mib") not in values:
        continue
    sides = ("drey", "drey-no-draft", "llama.cpp")  # the peer of the limit
    print("\n%-20s" % case + "".join("%15s" % s for s in sides))
    for title, metric, unit, digits in ROWS:
        found = [median(case, s, metric) for s in sides]
        print("%-20s" % title + "".join(
            "%15s" % ("-" if v is None else "%.*f" % (digits, v / unit)) for v in found))
PYTHON
echo
echo "all values: $csv"
