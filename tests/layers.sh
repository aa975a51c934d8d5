#!/usr/bin/env bash
# Dependencies between folders go one way: a file may include headers of its own folder, and the
# doors of folders that are before it in this list; no header includes others for its readers' sake
# alone. The server may use the public headers and common/, the command those, the server,
# bench/bench.h and tune/measured.h; examples use the public headers alone. What is declared in one
# folder may be defined in another: the same holds of the symbols that a folder's objects need.
#   layers.sh LIBRARY: the static library with an object per file
set -euo pipefail
library=$(realpath "${1:?usage: layers.sh LIBRARY}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

order=(common base os gguf kernel quantise unit weights state text grammar template reply model convert sample tree exit draft policy plan store
    ranks engine session worker tune bench train)

# The doors of a folder: headers that declare what other folders call. Its other headers are its
# own. common, base and os are sets of tools, every header of which is a door.
doors=(gguf/{types,gguf,new_gguf}.h kernel/{kernel,code_books,delta,planes,packing}.h quantise/importance.h unit/{units,device,unit_words,attend_split}.h
    weights/{weights,residency,product,stream,sidecar,row_lookup,row_table,gather_rows,experts,expert_slots,identity}.h
    state/{cache,cache_room,kept_positions,text_cache,kv,kv_file,recurrent}.h text/{tokenizer,detokenizer,ids,pretokenizer_rules}.h grammar/{grammar,vocab_trie}.h
    template/conversation.h reply/reply_forms.h model/{arch,layout,router,pass,workspace,deferred}.h sample/{sampler,penalties}.h
    tree/{tree,accept,calibration,static_tree,values,turn_log}.h exit/{exit,exit_file,exit_open}.h
    draft/{drafter,drafter_kind,blend,model_drafter,medusa_drafter,medusa_heads,eagle_drafter}.h
    policy/{policy,cost,shared_drafting,provisional,slices}.h plan/plan.h store/{prefix_store,session_file}.h ranks/ranks.h
    engine/{engine,config,encoder}.h session/session_probe.h tune/machine_limits.h)

# Programs that measure with toys are no part of it.
mapfile -t sources < <(find common src tune bench train -name '*.[ch]' ! -path 'bench/programs/*' | sort)
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

# "FILE SYMBOL" each, that are left to be removed.
exceptions=()
(cd "$(dirname "$library")" && nm -A -g "$(basename "$library")") | awk -v order="${order[*]}" -v paths="${sources[*]}" \
    -v exceptions="$(printf '%s|' ${exceptions[@]+"${exceptions[@]}"})" '
    BEGIN {
        n = split(order, names, " "); for (i = 1; i <= n; i++) rank[names[i]] = i
        n = split(paths, names, " ")
        for (i = 1; i <= n; i++) { # a name is in the tree once
            path = names[i]; sub(/^src\//, "", path); split(path, part, "/"); sub(/.*\//, "", path)
            folder[path] = part[1]
        }
        n = split(exceptions, names, "|"); for (i = 1; i < n; i++) if (names[i]) left[names[i]]
    }
    { split($1, part, ":"); file = part[2]; sub(/\.o$/, "", file); symbol = $NF; kind = $(NF - 1) }
    !(file in folder) { next } # generated: it holds texts
    kind ~ /^[TDBRVWC]$/ { owner[symbol] = folder[file]; n_defined++ }
    kind ~ /^[Uw]$/ || kind ~ /:$/ { needs[file, symbol] }
    END {
        for (need in needs) {
            split(need, part, SUBSEP); file = part[1]; symbol = part[2]
            if (!(symbol in owner) || rank[owner[symbol]] <= rank[folder[file]]) continue
            if ((file " " symbol) in left) { delete left[file " " symbol]; continue }
            print file ": " symbol " is defined in " owner[symbol] ", which is above " folder[file]; failed = 1
        }
        for (name in left) { print "take " name " out of the exceptions: it is gone"; failed = 1 }
        if (n_defined < 100) { print "only " n_defined + 0 " symbols seen"; failed = 1 }
        exit failed
    }'

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
