#!/usr/bin/env bash
# The memory budget holds: the command in a memory cgroup of budget x 1.05 and in
# one of twice the budget, without swap, with a cold page cache. The highest memory that the kernel
# charged stays under the budget, the limit is never hit, nothing is killed, and decoding takes no
# major fault. scripts/bench budget does that for a few budgets here, for many when run by hand.
# And --memory auto is what a group leaves. Needs root, memory cgroups, and the small real model.
#   budget.sh DREY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
drey=${1:?usage: budget.sh DREY}

skip() {
    echo "skipped: $*"
    exit 77
}
models=${DREY_MODELS:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/drey/models}
smol=$models/SmolLM2-135M-Instruct.Q4_1.gguf
[ "$(id -u)" = 0 ] || skip "memory cgroups need root"
[ -f "$smol" ] || skip "$smol is not there (scripts/get-models.sh smol)"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 scripts/memlimit.py 64 --json "$tmp/probe" -- true 2>"$tmp/err" ||
    skip "this system allows no memory cgroup: $(tail -n 1 "$tmp/err")"

failed=0
wrong() {
    echo "budget: $*"
    failed=1
}

# Charged within the budget, no limit hit, nothing killed, no page read back, one text.
for cases in "3 smol" "1 smol, page cache;smol, sidecar;target and draft"; do
    python3 scripts/bench budget --drey "$drey" --models "$models" --steps "${cases%% *}" \
        --cases "${cases#* }" || wrong "${cases#* }: see the table"
done

# The same of a mixture of experts, made of that model.
mixture=
if python3 -c 'import numpy' 2>/dev/null; then
    mkdir "$tmp/models"
    ln -s "$(realpath "$smol")" "$tmp/models"
    mixture=$tmp/models/smol-experts.gguf
    python3 scripts/experts_gguf.py "$smol" "$mixture" >"$tmp/out"
    python3 scripts/bench budget --drey "$drey" --models "$tmp/models" --steps 3 --load \
        --cases "mixture;mixture and draft" || wrong "mixture: see the table"
else
    echo "budget: no numpy, no mixture of experts is made"
fi

# Large reads through the page cache, and a plan that measures, in the least budget, while every
# processor has something else to do: reads then wait in the page cache for their threads.
busy=()
for ((i = 0; i < $(nproc); i++)); do
    while :; do :; done &
    busy+=($!)
done
trap 'kill "${busy[@]}" 2>/dev/null || true; rm -rf "$tmp"' EXIT
held() { # WHAT BUDGET_MIB: the last run in a group
    python3 - "$tmp/limit" "$2" <<'PYTHON' || wrong "$1 with $2 MiB: see above"
import json, sys
got, budget = json.load(open(sys.argv[1])), int(sys.argv[2])
print("budget %d MiB: charged %.1f MiB, limit hits %d" % (budget, got["peak_mib"], got["limit_hits"]))
sys.exit(not (got["exit"] == 0 and got["peak_mib"] <= budget and got["limit_hits"] == 0))
PYTHON
}
least() { # OPTION...: the smallest budget, in MiB
    "$drey" plan "$@" --memory unlimited --no-measure --json - 2>/dev/null |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["smallest_budget_bytes"] >> 20)'
}
holds() { # WHAT BUDGET_MIB COMMAND OPTION...: in a group of twice the budget
    python3 scripts/memlimit.py $((2 * $2)) --json "$tmp/limit" -- "$drey" "${@:3}" \
        --memory "${2}M" >"$tmp/out" 2>&1 || true
    held "$1" "$2"
}
for options in "--io auto" "--io buffered" "--io buffered --read-size 16M"; do
    read -ra words <<<"-m $smol -t 2 -c 64 $options"
    budget=$(least "${words[@]}")
    holds "plan $options" "$budget" plan "${words[@]}"
    holds "run $options" "$budget" run "${words[@]}" -n 4 -q -p "The squirrel"
done

kill "${busy[@]}"
wait "${busy[@]}" 2>/dev/null || true
busy=()

# Writing a sidecar takes some MiB whatever the model's size, page cache included.
python3 scripts/memlimit.py 48 --timeout 300 --json "$tmp/limit" -- "$drey" prepare -q --force \
    "$smol" -o "$tmp/packed" 2>"$tmp/err" || wrong "drey prepare failed in 48 MiB: $(tail -n 3 "$tmp/err")"

# "auto" is what the group leaves, for an endless text as well.
python3 scripts/memlimit.py 200 -- "$drey" perplexity -m "$smol" -f /dev/zero 2>"$tmp/err" &&
    wrong "an endless text was read"
grep -q 'more than 2[0-9.]*M: the 1[0-9]*M of memory that are free' "$tmp/err" ||
    wrong "an endless text: $(head -n 1 "$tmp/err")"

# A target that drafts for itself, in the least budget and with some planes more.
"$drey" prepare -q --planes "$smol" -o "$tmp/planes"
words=(-m "$smol" -t 2 -c 256 -d self --sidecar "$tmp/planes")
budget=$(least "${words[@]}")
for more in 0 9; do
    holds self $((budget + more)) run "${words[@]}" -n 24 -q -p "The squirrel"
done

# Keys and values in a file: 1,401 positions, of which some hundreds stay in memory.
[ "$(stat -f -c %T "$tmp")" = tmpfs ] || {
    for ((i = 0; i < 100; i++)); do
        echo -n "The squirrel looks at the tree and counts the nuts of the year. "
    done >"$tmp/long"
    "$drey" run -m "$smol" -t 2 -n 8 -q -f "$tmp/long" >"$tmp/want" 2>"$tmp/err" || wrong "a long prompt"
    words=(-m "$smol" -t 2 -c 2048 --kv-folder "$tmp" --kv-memory 1)
    budget=$(least "${words[@]}")
    for more in 0 20; do
        holds "kv-folder" $((budget + more)) run "${words[@]}" -n 8 -q -f "$tmp/long"
        grep -qF "$(cat "$tmp/want")" "$tmp/out" || wrong "--kv-folder in $((budget + more)) MiB: another text"
    done
}

# Training reads a model as a run does, and also holds samples and the head's logits of many rows.
for i in 1 2 3; do echo '{"prompt": "The squirrel number '$i' looks"}'; done >"$tmp/prompts"
for budget in 90 140; do
    holds "train exit" $budget train exit -m "$smol" -t 2 -n 40 --prompts "$tmp/prompts" -q -o "$tmp/trained"
done

# Heads: what is written is on the disk and not in the page cache, and texts in memory count.
holds "train medusa" 440 train medusa -m "$smol" -t 2 -n 1000 --epochs 1 -q -o "$tmp/heads"
words=(-m "$smol" -t 2 -c 256 -d "$tmp/heads")
budget=$(least "${words[@]}")
for more in 0 30; do
    holds medusa $((budget + more)) run "${words[@]}" -n 24 -q -p "The squirrel"
done

# A server in about the least budget and with some more: three texts at once, over beginnings that
# are kept.
for model in "$smol" ${mixture:+"$mixture"}; do
    words=(-m "$model" -t 2 -c 256 --sessions 3 --prefix-memory 4M --host "$tmp/s.sock" -q)
    budget=$("$drey" serve "${words[@]}" --memory 1M 2>&1 | sed -n 's/.* is \([0-9]*\)[.0]*M .*/\1/p' || true)
    for more in 20 40; do
        python3 - "$tmp/s.sock" python3 scripts/memlimit.py $((2 * budget)) --json "$tmp/limit" -- "$drey" serve \
            "${words[@]}" --memory "$((budget + more))M" >"$tmp/out" 2>&1 <<'PYTHON' || wrong "serve: $(tail -n 3 "$tmp/out")"
import http.client, json, os, signal, socket, subprocess, sys, threading, time
server = subprocess.Popen(sys.argv[2:])
def ask(i):
    body = json.dumps({"prompt": "The squirrel " * 40 + "number %d" % i, "max_tokens": 12, "ignore_eos": True})
    while server.poll() is None: # until it listens, and has read the weights
        try:
            to = http.client.HTTPConnection("localhost", timeout=100)
            to.sock = socket.socket(socket.AF_UNIX)
            to.sock.connect(sys.argv[1])
            to.request("POST", "/v1/completions", body)
            answer = to.getresponse()
            if answer.status == 200:
                answers.append(json.load(answer)["usage"]["completion_tokens"])
                return
        except OSError:
            pass
        time.sleep(0.1)
answers = []
for turn in range(2):
    texts = [threading.Thread(target=ask, args=(i,)) for i in range(3)]
    for t in texts: t.start()
    for t in texts: t.join()
for process in filter(str.isdigit, os.listdir("/proc")): # memlimit.py's child
    try:
        with open("/proc/%s/stat" % process) as f:
            if int(f.read().rsplit(")", 1)[1].split()[1]) == server.pid:
                os.kill(int(process), signal.SIGTERM)
    except OSError: # it has ended
        pass
server.wait()
print(answers)
sys.exit(answers != [12] * 6)
PYTHON
        held "serve ${model##*/}" $((budget + more))
    done
done

# --memory auto: the group's limit over 1.05, less what others in the group hold; of a group in a
# group the smaller limit.
python3 scripts/memlimit.py 120 --timeout 300 --json "$tmp/limit" -- "$drey" run -m "$smol" -n 24 -t 2 \
    --ignore-eos -q --memory auto --stats "$tmp/stats" -p "The squirrel" >"$tmp/text" 2>"$tmp/err" ||
    wrong "auto: $(tail -n 3 "$tmp/err")"
python3 - "$tmp/limit" "$tmp/stats" <<'PYTHON' || failed=1
import json, sys
charged, stats = (json.load(open(f)) for f in sys.argv[1:])
budget = stats["budget_bytes"] / 2**20
print("auto in 120 MiB: budget %.1f MiB, charged %.1f MiB, limit hits %d" % (
    budget, charged["peak_mib"], charged["limit_hits"]))
sys.exit(not (112 < budget <= 120 / 1.05 and charged["peak_mib"] <= budget
              and charged["limit_hits"] == charged["oom_kills"] == 0))
PYTHON
auto() { # LOW HIGH LIMIT_MIB PYTHON: the budget in MiB that `plan` makes of auto when PYTHON runs it
    python3 scripts/memlimit.py "$3" --timeout 300 -- python3 -c 'import json, os, subprocess, sys
plan = [sys.argv[1], "plan", "-m", sys.argv[2], "--memory", "auto", "--no-measure", "--json", "-"]
def auto(**how):
    out = subprocess.run(plan, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, **how)
    return json.loads(out.stdout)["budget_bytes"] / 2**20
'"$4" "$drey" "$smol" >"$tmp/out" 2>"$tmp/err" || wrong "auto: $(tail -n 3 "$tmp/err")"
    echo "auto in $3 MiB: $(cat "$tmp/out"), wanted $1 to $2"
    awk -v low="$1" -v high="$2" '{ ok = $1 >= low && $1 <= high } END { exit !ok }' "$tmp/out" ||
        wrong "auto in $3 MiB"
}
# python itself holds some MiB.
auto 265 285.8 300 'print(auto())'
auto 170 190.5 300 'held = b"x" * (100 << 20); print(auto())'
[ -e /sys/fs/cgroup/cgroup.controllers ] || auto 85 95.3 300 '
where = [l.split(":")[2].strip() for l in open("/proc/self/cgroup") if ":memory:" in l][0]
inner = "/sys/fs/cgroup/memory" + where + "/inner"
os.mkdir(inner)
try:
    open(inner + "/memory.limit_in_bytes", "w").write(str(100 << 20))
    print(auto(preexec_fn=lambda: open(inner + "/cgroup.procs", "w").write(str(os.getpid()))))
finally:
    os.rmdir(inner)'

# Without /proc nobody says what is available: auto is then what the kernel calls free, and says so.
no_proc=(unshare --mount sh -c 'mount -t tmpfs none /proc && exec "$@"' sh)
if "${no_proc[@]}" true 2>/dev/null; then
    "${no_proc[@]}" "$drey" plan -m "$smol" --memory auto --no-measure --json - >"$tmp/plan" 2>"$tmp/err" ||
        wrong "auto without /proc: $(tail -n 3 "$tmp/err")"
    grep -q 'warning: /proc does not say' "$tmp/err" || wrong "auto without /proc says nothing"
    python3 -c 'import json, sys; b = json.load(open(sys.argv[1]))["budget_bytes"]
total = int(open("/proc/meminfo").readline().split()[1]) << 10
print("auto without /proc: %.0f MiB" % ((b or 0) / 2**20))
sys.exit(not (b and 0 < b < total))' "$tmp/plan" || wrong "auto without /proc has no bound"
fi
exit $failed
