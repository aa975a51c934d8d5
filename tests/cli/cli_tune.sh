#!/usr/bin/env bash
# drey tune: what it measured is kept, shown and used; a file that is broken or foreign is passed
# over with one sentence; and no choice changes a text.
#   cli_tune.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
export XDG_CACHE_HOME="$tmp/the cache"
kept=$XDG_CACHE_HOME/drey/tuning.json
"$make_toy" "$tmp/toy.gguf" 3
write_on() { # OUT: 24 tokens after a prompt of several tiles
    ends 0 "$drey" run -m "$tmp/toy.gguf" -t 2 -n 24 --ignore-eos -q \
        -p 'The quick brown fox jumps over the lazy dog, and a squirrel looks on.'
    mv "$tmp/out" "$1"
}
set_key() { # KEY JSON: in the kept file
    edit "$kept" "$kept" "root['$1'] = json.loads('$2')"
}

"$drey" tune --show >"$tmp/show" || wrong "--show before tuning"
has "$tmp/show" "processor's family"
ends 0 "$drey" tune --forget
has "$tmp/out" '^nothing is kept of this machine$'
write_on "$tmp/usual"

"$drey" tune -t 1 -v >"$tmp/out" || wrong "tune"
has "$tmp/out" '^fetch +Q4_K,  1 row: ' 'nothing changes$|times as fast from now on'
[ -s "$kept" ] || wrong "nothing was kept in $kept"
"$drey" tune --show >"$tmp/show" || wrong "--show"
grep -qF "$kept" "$tmp/show" || wrong "--show does not name the file: $(cat "$tmp/show")"
has "$tmp/show" ', measured (now|[0-9]+ minutes? ago)$'
[ "$(head -n 1 "$tmp/show")" = "$(grep '^fetch [a-z]*, tile' "$tmp/out")" ] || wrong "--show differs from tune"

# Every choice: shown as it is kept, and the same text.
set_key early_amx false
for fetch in sparse near far; do
    for tile in halves lines chains; do
        set_key fetch "\"$fetch\""
        set_key tile "\"$tile\""
        words="fetch $fetch, tile $tile, AMX from 25 rows"
        "$drey" tune --show >"$tmp/show"
        grep -qF "$words" "$tmp/show" || wrong "$words is not shown"
        write_on "$tmp/text"
        same "another text with $words" "$tmp/text" "$tmp/usual"
        [ ! -s "$tmp/err" ] || wrong "with $words: $(cat "$tmp/err")"
    done
done

# Passed over, with one sentence, and the same text.
passed_over() { # WHAT WORDS
    write_on "$tmp/text"
    same "another text, file $1" "$tmp/text" "$tmp/usual"
    one_line "file $1" "$2"
}
cp "$kept" "$tmp/good"
set_key cpu '"a processor that nobody made"'
passed_over "of another processor" "another processor"
cp "$tmp/good" "$kept"
set_key version '"0.0.0"'
passed_over "of another version" "another processor or by another version"
cp "$tmp/good" "$kept"
set_key fetch '"perhaps"'
passed_over "with a word for a choice" "is not what drey tune writes"
head -c 40 "$tmp/good" >"$kept"
passed_over "cut short" "is not what drey tune writes"
: >"$kept"
passed_over "of no bytes" "is not what drey tune writes"
cp "$tmp/good" "$kept"
set_key cpu_tier '"another tier"'
write_on "$tmp/text"
[ ! -s "$tmp/err" ] || wrong "file of another tier: $(cat "$tmp/err")"

"$drey" tune --forget >"$tmp/out" || wrong "--forget"
grep -qF "removed    $kept" "$tmp/out" || wrong "--forget: $(cat "$tmp/out")"
[ ! -e "$kept" ] || wrong "--forget left $kept"

# Nowhere to keep it.
ends 2 env -u HOME -u XDG_CACHE_HOME "$drey" tune -t 1
has "$tmp/err" "no cache directory"
exit $failed
