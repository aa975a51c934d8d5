#!/usr/bin/env bash
# drey run under mpirun: the text of one process, by two and three ranks, with and without drafts;
# how long rank 0 waited for the others is counted, drey plan --ranks divides without MPI; a rank
# with another model, one that is killed and one that hangs end the run, which names them.
#   cli_ranks.sh DREY MAKE_TOY
. "$(dirname "$0")/ranks.sh"
"$make_toy" "$tmp/m.gguf" 6
"$make_toy" "$tmp/d.gguf" 2
"$make_toy" "$tmp/other.gguf" 7
DREY_TEST_EXPERTS=1 "$make_toy" "$tmp/e.gguf" 6
text=(run -m "$tmp/m.gguf" -p "A text begins" -n 40 --ignore-eos -t 1)

layers=() # that ranks are told to have
compare() { # N OPTION...
    local n=$1
    shift
    ends 0 "$drey" "${text[@]}" -q "$@"
    mv "$tmp/out" "$tmp/expected"
    ends 0 "${ranks[@]}" "$n" "$drey" "${text[@]}" -v "$@" ${layers[@]+"${layers[@]}"}
    same "$n ranks, $*: another text" "$tmp/out" "$tmp/expected"
    has "$tmp/err" "$row" "rank $((n - 1)) on .*: layers [0-9]+ to 5" \
        "^  ranks +rank 0 read "
}
row="rank 0 on .*: layers 0 to "
compare 3 -d "$tmp/d.gguf" --policy specinfer
compare 2 -d lookup --temp 0.8 --seed 5 --prompt-chunk 4
compare 2 -d none --disk 1G/s --stats "$tmp/stats" --trace "$tmp/trace"
python3 - "$tmp/stats" "$tmp/trace" <<'PYTHON' || failed=1
import json, sys
stats, trace = (json.load(open(f)) for f in sys.argv[1:])
shares = [stats[name + "_share"] for name in ("stall", "verify", "draft", "provisional", "ranks")]
assert stats["ranks_share"] > 0 and sum(shares) <= 1.001, shares
spans = [e for e in trace["traceEvents"] if e.get("name") == "ranks"]
named = [e for e in trace["traceEvents"] if e.get("args", {}).get("name") == "ranks"]
assert len(spans) > stats["passes"] / 2 and len(named) == 1 and named[0]["tid"] == spans[0]["tid"]
PYTHON
"$drey" report "$tmp/trace" >"$tmp/picture"
grep -q '>ranks<' "$tmp/picture" || wrong "the picture shows no lane for ranks"

# A rank uses all cores, unless mpirun is asked to bind it.
has_cores() { # N OPTION OF MPIRUN...: rank 0
    ends 0 timeout 120 mpirun --oversubscribe "${@:2}" -n 2 "$drey" "${text[@]}" -d none --stats "$tmp/stats"
    grep -qE "\"cores\":[[:space:]]*$1," "$tmp/stats" || wrong "not $1 cores: $(grep cores "$tmp/stats")"
}
has_cores "$(nproc)"
has_cores 1 --bind-to core

# The draft on one machine, the target on the others.
row="rank 0 on .*: no layers, the draft and the head, " layers=(--rank-layers "0,6")
compare 2 -d "$tmp/d.gguf"
layers=(--rank-layers "0,5,1")
compare 3 -d lookup
row="rank 0 on .*: layers 0 to 3, " layers=(--rank-layers "4,1,1")
compare 3 -d none

# A mixture of experts.
text[2]=$tmp/e.gguf row="rank 0 on .*: layers 0 to " layers=()
compare 2 -d lookup --stats "$tmp/stats"
grep -q '"experts_used":[[:space:]]*[1-9]' "$tmp/stats" || wrong "statistics say nothing of experts"
row="rank 0 on .*: no layers, the head, " layers=(--rank-layers "0,1,5")
compare 3 -d none
text[2]=$tmp/m.gguf layers=()

# The same division without MPI. A machine that the file says no disk of has that of --disk.
printf '# name memory disk\n\none\t200M  50M/s # half\n two 1.5G\r\n' >"$tmp/machines"
plan=("$drey" plan -m "$tmp/m.gguf" -d none -t 1 --ranks)
ends 0 "${plan[@]}" "$tmp/machines" --json "$tmp/plan.json" --disk 25M/s
has "$tmp/out" "^rank 0 on one: layers 0 to 2, .* in memory" "^rank 1 on two: layers 3 to 5, " \
    "around all ranks, without the network: ceiling"
python3 - "$tmp/plan.json" <<'PYTHON' || failed=1
import json, sys
plan = json.load(open(sys.argv[1]))
one, two = plan["ranks"]
assert (one["host"], one["first_layer"], one["layers"]) == ("one", 0, 3)
assert (two["host"], two["first_layer"], two["layers"]) == ("two", 3, 3)
assert (one["budget_bytes"], two["budget_bytes"]) == (200 << 20, 1536 << 20)
assert (one["disk"], two["disk"]) == ("stated", "stated")
assert (one["disk_bytes_per_s"], two["disk_bytes_per_s"]) == (50 << 20, 25 << 20)
assert plan["alone_pass_s"] == one["alone_pass_s"] > two["alone_pass_s"] > 0
PYTHON
python3 tests/cli/man_keys.py Plans "$tmp/plan.json" || failed=1
ends 0 "${plan[@]}" "$tmp/machines" --no-measure --rank-layers 0,6
has "$tmp/out" "^rank 0 on one: no layers, the head, " "^rank 1 on two: layers 0 to 5, "
plan_fails() { # CODE PATTERN LINES
    printf '%b' "$3" >"$tmp/machines"
    refused "$1" "$2" "${plan[@]}" "$tmp/machines"
}
plan_fails 2 "machines, line 2: it has to be a name" 'one 1G\ntwo\n'
plan_fails 2 "machines, line 1: it has to be a name" 'one 1G 2G/s more\ntwo 1G\n'
plan_fails 2 "machines, line 3: it has to have the memory" '#\none 1G\ntwo lots\n'
plan_fails 2 "machines, line 1: it has to have the memory" 'one 0\ntwo 1G\n'
plan_fails 2 "machines, line 2: it has to have the speed" 'one 1G\ntwo 1G fast\n'
plan_fails 2 "machines has 1 machines" 'one 1G\n#two 1G\n'
plan_fails 1 "rank 1 \(two\): .*budget" 'one 1G\ntwo 1M\n'
plan_fails 2 "7 ranks are more than the model has layers" 'a 1G\nb 1G\nc 1G\nd 1G\ne 1G\nf 1G\ng 1G\n'
refused 2 "the ranks' layers are 7 together, and the model has 6" "${plan[@]}" "$tmp/machines" --rank-layers 0,1,1,1,1,1,2
refused 2 "takes up to 64 numbers of layers such as" "${plan[@]}" "$tmp/machines" --rank-layers 0,
refused 2 "name them with --ranks FILE" "$drey" plan -m "$tmp/m.gguf" --rank-layers 0,6
refused 2 "this is one process: start several with mpirun" "$drey" "${text[@]}" -d none --rank-layers 0,6
refused 2 "leave --memory" "${plan[@]}" "$tmp/machines" --memory 1G

# What is wrong is said once, by rank 0 or by the one that cannot start.
fails() { # WHAT PATTERN COMMAND...
    local what=$1 pattern=$2 code=0
    shift 2
    timeout 120 "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
    if [ $code = 0 ] || [ $code = 124 ]; then wrong "$what: exit code $code"; fi
    has "$tmp/err" "$pattern"
}
one=("$drey" "${text[@]}" -d none -q)
fails "another model" "^drey: error: rank 1 \(.*\) has another model" mpirun --oversubscribe -n 1 "${one[@]}" : \
    -n 1 "$drey" run -m "$tmp/other.gguf" -p x
fails "a missing model" "^drey: error: cannot open .*missing" mpirun --oversubscribe -n 1 "${one[@]}" : \
    -n 1 "$drey" run -m "$tmp/missing.gguf" -p x

# Ends a rank in the middle of a text without end.
cat >"$tmp/named" <<END
#!/bin/sh
echo \$\$ >"$tmp/pid.\$OMPI_COMM_WORLD_RANK"
exec "\$@"
END
chmod +x "$tmp/named"
long=(run -m "$tmp/m.gguf" -p x -n 1000000 -c 1000100 --ignore-eos -t 1 -d none --rank-wait 6)
stopped() { # SIGNAL PATTERN
    local code=0 tries=0
    rm -f "$tmp"/pid.* "$tmp/out"
    "${ranks[@]}" 2 "$tmp/named" "$drey" "${long[@]}" >"$tmp/out" 2>"$tmp/err" &
    until [ -s "$tmp/out" ] || [ $((tries++)) -gt 1200 ]; do sleep 0.05; done
    kill -s "$1" "$(cat "$tmp/pid.1")"
    wait $! || code=$?
    if [ $code = 0 ] || [ $code = 124 ]; then wrong "SIG$1 to rank 1: exit code $code"; fi
    has "$tmp/err" "$2"
    kill -9 "$(cat "$tmp/pid.1")" 2>/dev/null || true
}
stopped KILL "rank 1 .*signal 9"
stopped STOP "^drey: error: rank 1 \(.*\) has said nothing for 6 seconds"
exit $failed
