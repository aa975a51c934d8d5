#!/usr/bin/env bash
# Dependencies between folders go one way: a file may include headers of its own folder, and the
# one header for others of each folder that is before it in this list. The server may use the
# public headers and common/, the command those, the server, bench/bench.h and tune/measured.h;
# examples use the public headers alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

order=(common base os gguf kernel quantise unit weights state text grammar template reply model convert sample tree exit draft policy plan store
    ranks engine session worker tune bench train)

# The one header of a folder that other folders include; common, base and os are sets of tools, each
# of which is included alone, and kernels need no more of GGUF files than their types.
doors=(gguf/types.h gguf/gguf.h kernel/kernel.h quantise/importance.h unit/units.h weights/weights.h text/text.h grammar/grammar.h template/conversation.h reply/reply_forms.h
    state/cache.h state/kv.h state/kv_file.h state/recurrent.h model/model.h sample/sampler.h tree/tree.h tree/turn_log.h exit/exit.h draft/draft.h policy/policy.h
    plan/plan.h store/store.h ranks/ranks.h engine/engine.h session/session_probe.h tune/machine_limits.h)

mapfile -t sources < <(find common src tune bench train -name '*.[ch]' | sort)
awk -v order="${order[*]}" -v doors="${doors[*]}" '
    BEGIN {
        n = split(order, names, " "); for (i = 1; i <= n; i++) rank[names[i]] = i
        n = split(doors, names, " ")
        for (i = 1; i <= n; i++) { split(names[i], part, "/"); has_door[part[1]]; is_door[names[i]] }
    }
    FNR == 1 { path = FILENAME; sub(/^src\//, "", path); split(path, part, "/"); from = part[1]; n_files++ }
    FNR == 1 && !(from in rank) { bad(from " is a folder that tests/layers.sh does not know") }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, quoted, "\""); to = quoted[2]
        if (to ~ /^drey\/[a-z_]+\.h$/) next
        if (split(to, target, "/") < 2) { bad("\"" to "\": name the folder as well"); next }
        if (!(target[1] in rank)) bad("\"" to "\": no such folder")
        else if (rank[target[1]] > rank[from])
            bad("\"" to "\": " from " is below " target[1] " and may not use it")
        else if (target[1] != from && target[1] in has_door && !(to in is_door))
            bad("\"" to "\": other folders do not use this header of " target[1])
    }
    function bad(why) { print FILENAME ":" FNR ": " why; failed = 1 }
    END {
        if (n_files < 10) { print "only " n_files " files seen"; failed = 1 }
        exit failed
    }' "${sources[@]}"

mapfile -t users < <(find cli serve examples -name '*.[ch]' | sort)
awk '
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, quoted, "\""); to = quoted[2]; split(FILENAME, part, "/"); from = part[1]
        if (to ~ /^drey\/[a-z_]+\.h$/) next
        if (from != "examples" && to ~ /^(common|serve)\//) next
        if (from == "cli" && to ~ /^(cli\/|bench\/bench\.h$|tune\/measured\.h$)/) next
        print FILENAME ":" FNR ": \"" to "\" may not be used here"
        failed = 1
    }
    END { exit failed }' "${users[@]}"
