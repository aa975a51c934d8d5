#!/usr/bin/env bash
# --units on toys: one text whatever computes; drey tune keeps how to divide passes and drey run
# takes it from there; bad words are one sentence.
#   cli_units.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
export XDG_CACHE_HOME="$tmp/the cache"
"$make_toy" "$tmp/t.gguf"
"$make_toy" "$tmp/d.gguf" 2
write_on() { # OUT WORD...
    local out=$1
    shift
    ends 0 "$drey" run -m "$tmp/t.gguf" -n 12 --ignore-eos --memory unlimited -p 'A text begins' "$@"
    mv "$tmp/out" "$out"
}
write_on "$tmp/usual" -q -t 1
for units in cpu cpu+cpu cpu=1+cpu=9+static cpu/ref+cpu/slow=3 auto; do
    write_on "$tmp/text" --units "$units" -d lookup --stats "$tmp/stats"
    same "another text with --units $units" "$tmp/text" "$tmp/usual"
done
write_on "$tmp/text" --units cpu=1+cpu=3 --stats "$tmp/stats" -v
has "$tmp/err" '^  units .*cpu .*its share of a row is 25'
holds "the statistics" "$tmp/stats" '[u["threads"] for u in units] == [1, 1] and units[1]["share"] == [0.75] * 7' \
    'all(u["groups"] >= 0 and "failed" not in u for u in units) and sum(u["groups"] for u in units) > 0'
tests/cli/man_keys.py Statistics "$tmp/stats" 2>"$tmp/err" || wrong "$(cat "$tmp/err")"

mixed=cpu/ref+cpu
echo '{"prompt": "The quick brown fox"}' >"$tmp/prompts"
ends 0 "$drey" tune -m "$tmp/t.gguf" -d lookup --units "$mixed" -c 255 --prompts "$tmp/prompts"
has "$tmp/err" 'passes of 1 row$' 'passes of 4 rows$' 'after 256 positions and more, and the context is to hold 255$'
ends 0 "$drey" tune -m "$tmp/t.gguf" -d "$tmp/d.gguf" --units "$mixed" -c 300 --prompts "$tmp/prompts" --json "$tmp/tuned" -q
has "$tmp/out" '^\| 16 \| '
"$drey" tune -m "$tmp/t.gguf" -d "$tmp/d.gguf" --units "$mixed" --show >"$tmp/show" || wrong "--show"
same "--show differs from tune" "$tmp/out" "$tmp/show"
kept=$(find "$XDG_CACHE_HOME/drey/units" -name '*.json')
[ "$(wc -l <<<"$kept")" = 1 ] || wrong "not one file but: $kept"
write_on "$tmp/text" --units "$mixed" --stats "$tmp/stats"
same "another text with what was tuned" "$tmp/text" "$tmp/usual"
python3 - "$tmp/stats" "$kept" <<'PYTHON' || wrong "run did not take what was tuned"
import json, sys
used, kept = (json.load(open(path)) for path in sys.argv[1:])
for u, unit in enumerate(used["units"]):
    for w in range(7):
        pair = kept["shares"][2 * w:2 * w + 2]
        assert abs(unit["share"][w] - pair[u] / sum(pair)) < 1e-9
attention = kept["attention"]
assert [c["positions"] for c in attention] == [256] and abs(attention[0]["boundary"]) <= 1
assert len(attention[0]["sides"]) == 4 and all(s["attention_s"] > 1e-8 for s in attention[0]["sides"])
PYTHON
for bad in 's/"drey units 2"/"drey units 0"/' 's/"shares":/"pieces":/' 's/"rows":/"columns":/' \
    's/"boundary":/"border":/' 's/"positions":.*256/"positions": 257/'; do
    sed "$bad" "$kept" >"$tmp/bad"
    cp "$kept" "$tmp/good"
    cp "$tmp/bad" "$kept"
    write_on "$tmp/text" --units "$mixed" -q
    same "another text with a broken file" "$tmp/text" "$tmp/usual"
    one_line "file with $bad" 'is not what drey tune writes'
    cp "$tmp/good" "$kept"
done

sed 's/"cpu":\t*"[^"]*"/"cpu":"another one"/' "$kept" >"$tmp/bad"
cmp -s "$tmp/bad" "$kept" && wrong "no processor in $(cat "$kept")"
cp "$tmp/bad" "$kept"
write_on "$tmp/text" --units "$mixed" -q
same "another text with another processor's shares" "$tmp/text" "$tmp/usual"
one_line "another processor's shares" 'measured on another processor'

refused 2 'leave the shares out' "$drey" tune -m "$tmp/t.gguf" --units cpu=1+cpu=3
refused 2 'leave the shares out' "$drey" tune -m "$tmp/t.gguf" --units cpu/slow=2+cpu=3
refused 2 'nothing to divide' "$drey" tune -m "$tmp/t.gguf" --units cpu -q
refused 2 'units is about models' "$drey" tune --units cpu+cpu
refused 2 'context is about models' "$drey" tune -c 300
exit $failed
