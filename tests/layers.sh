#!/usr/bin/env bash
# Dependencies between the folders of src/ go one way: a file may include headers of its own folder
# and of those that stand before it here. The command and the examples use the public headers alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

order=(base os gguf kernel unit weights text chat model sample exit draft verify accept engine profile train)

mapfile -t sources < <(find src -name '*.[ch]' | sort)
awk -v order="${order[*]}" '
    BEGIN { n = split(order, names, " "); for (i = 1; i <= n; i++) rank[names[i]] = i }
    FNR == 1 { split(FILENAME, part, "/"); from = part[2]; n_files++ }
    FNR == 1 && !(from in rank) { bad(from " is a folder that tests/layers.sh does not know") }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, quoted, "\""); to = quoted[2]
        if (to ~ /^drey\/(drey|bench|chat|profile|train)\.h$/) next
        if (split(to, target, "/") < 2) { bad("\"" to "\": name the folder too"); next }
        if (!(target[1] in rank)) bad("\"" to "\": no such folder in src/")
        else if (rank[target[1]] > rank[from])
            bad("\"" to "\": " from " stands below " target[1] " and may not use it")
    }
    function bad(why) { print FILENAME ":" FNR ": " why; failed = 1 }
    END {
        if (n_files < 10) { print "only " n_files " files seen"; failed = 1 }
        exit failed
    }' "${sources[@]}"

# Files in cli/ and in serve/ may share headers of their own; the command starts the server.
mapfile -t users < <(find cli serve examples -name '*.[ch]' | sort)
own=$(find cli serve -name '*.h' -printf '%f ')
awk -v own="$own" '
    BEGIN { n = split(own, names, " "); for (i = 1; i <= n; i++) known[names[i]] = 1 }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, quoted, "\"")
        if (FILENAME ~ /^serve/ && quoted[2] ~ /^cli\//) {
            print FILENAME ":" FNR ": \"" quoted[2] "\": the server stands below the command"
            failed = 1
        }
        sub(/^(cli|serve)\//, "", quoted[2])
        if (quoted[2] !~ /^drey\/(drey|chat|bench|profile|train)\.h$/ && !(quoted[2] in known)) {
            print FILENAME ":" FNR ": \"" quoted[2] "\": only drey/drey.h, drey/chat.h, drey/bench.h, drey/profile.h and drey/train.h may be used here"
            failed = 1
        }
    }
    END { exit failed }' "${users[@]}"
