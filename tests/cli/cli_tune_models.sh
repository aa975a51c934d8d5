#!/usr/bin/env bash
# drey tune -m: what it measured of a pair of models is kept, shown and used by drey run; a file
# that is broken or foreign is passed over with one sentence; and no text changes.
#   cli_tune_models.sh DREY MAKE_TOY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
usage='usage: cli_tune_models.sh DREY MAKE_TOY'
drey=${1:?$usage} make_toy=${2:?$usage}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
wrong() {
    echo "cli_tune_models: $*"
    failed=1
}
export XDG_CACHE_HOME="$tmp/the cache"
mkdir "$tmp/models"
"$make_toy" "$tmp/models/target.gguf" 4
"$make_toy" "$tmp/models/draft.gguf" 2
pair=(-m "$tmp/models/target.gguf" -d "$tmp/models/draft.gguf" -t 1)
echo '{"prompt": "The quick brown fox"}' >"$tmp/prompts.jsonl"
write_on() { # OUT
    "$drey" run "${pair[@]}" -n 24 --ignore-eos -q --memory unlimited -p 'A text begins' >"$1" 2>"$tmp/err"
}

write_on "$tmp/usual" || wrong "run: $(cat "$tmp/err")"
if "$drey" tune "${pair[@]}" --show >"$tmp/out" 2>"$tmp/err"; then
    wrong "something is shown before anything was measured"
fi
grep -q 'nothing was measured' "$tmp/err" || wrong "--show before: $(cat "$tmp/err")"

"$drey" tune "${pair[@]}" --prompts "$tmp/prompts.jsonl" --json "$tmp/copy.json" \
    >"$tmp/out" 2>"$tmp/err" || wrong "tune -m: $(cat "$tmp/err")"
kept=$(find "$XDG_CACHE_HOME/drey/profiles" -name '*.json')
[ "$(wc -l <<<"$kept")" = 1 ] || wrong "not one file but: $kept"
cmp -s "$kept" "$tmp/copy.json" || wrong "--json differs from what was kept"
grep -q '^static trees' "$tmp/out" || wrong "no table: $(cat "$tmp/out")"
"$drey" tune "${pair[@]}" --show >"$tmp/show" || wrong "--show"
cmp -s "$tmp/out" "$tmp/show" || wrong "--show differs from tune"
# A copy of the models under other names is the same pair; another tier or number of threads is not.
mkdir "$tmp/copies"
cp "$tmp/models/target.gguf" "$tmp/copies/a.gguf"
cp "$tmp/models/draft.gguf" "$tmp/copies/b.gguf"
"$drey" tune --show -m "$tmp/copies/a.gguf" -d "$tmp/copies/b.gguf" -t 1 >"$tmp/show" || wrong "copies"
cmp -s "$tmp/out" "$tmp/show" || wrong "--show of copies differs"
for other in "-t 2 -d $tmp/models/draft.gguf" "-t 1 -d lookup" "-t 1 --cpu ref -d $tmp/models/draft.gguf"; do
    # shellcheck disable=SC2086 # several words
    if "$drey" tune --show -m "$tmp/models/target.gguf" $other >"$tmp/show" 2>"$tmp/err"; then
        wrong "shown for $other"
    fi
    [ "$(wc -l <"$tmp/err")" = 1 ] || wrong "for $other: $(cat "$tmp/err")"
done

write_on "$tmp/text" || wrong "run with a profile: $(cat "$tmp/err")"
cmp -s "$tmp/text" "$tmp/usual" || wrong "another text with a profile"
[ ! -s "$tmp/err" ] || wrong "with a profile: $(cat "$tmp/err")"

set_key() { # KEY JSON: in the kept file, from the good one
    python3 -c 'import json, sys
good, path, key, value = sys.argv[1:]
root = json.load(open(good))
at = root
parts = key.split("/")
for part in parts[:-1]:
    at = at[int(part) if part.isdigit() else part]
at[int(parts[-1]) if parts[-1].isdigit() else parts[-1]] = json.loads(value)
json.dump(root, open(path, "w"))' "$tmp/copy.json" "$kept" "$@"
}
passed_over() { # WHAT WORDS
    write_on "$tmp/text" || wrong "run, file $1: $(cat "$tmp/err")"
    cmp -s "$tmp/text" "$tmp/usual" || wrong "another text, file $1"
    if [ "$(wc -l <"$tmp/err")" != 1 ] || ! grep -q "$2" "$tmp/err"; then
        wrong "file $1: $(cat "$tmp/err")"
    fi
}
broken='is not what drey tune writes'
set_key cpu '"a processor that nobody made"'
passed_over "of another processor" "another processor"
set_key version '"0.0.0"'
passed_over "of another version" "another processor or by another version"
set_key format '"drey profile 0"'
passed_over "of another format" "$broken"
set_key pass_s '[1, 2]'
passed_over "with two passes" "$broken"
set_key pass_s/5 '-1'
passed_over "with a pass of less than no time" "$broken"
set_key step_s/7 '"slow"'
passed_over "with a word for a time" "$broken"
set_key right/40 1e30
passed_over "with more right than guessed" "$broken"
set_key guessed/40 1e300
passed_over "with more guesses than there are numbers" "$broken"
set_key step_s/2 1e300
passed_over "with a step without end" "$broken"
set_key trees/3/parent/0 5
passed_over "with a parent behind its child" "$broken"
set_key trees/3/rank/0 9
passed_over "with a rank that there is not" "$broken"
set_key best 7
passed_over "with a best tree that there is not" "$broken"
head -c 200 "$tmp/copy.json" >"$kept"
passed_over "cut short" "$broken"
: >"$kept"
passed_over "of no bytes" "$broken"
head -c 2000000 /dev/zero >"$kept"
passed_over "of zeros" "$broken"

# Nowhere to keep it.
if env -u HOME -u XDG_CACHE_HOME "$drey" tune "${pair[@]}" --prompts "$tmp/prompts.jsonl" -q \
    >"$tmp/out" 2>"$tmp/err"; then
    wrong "tune -m kept something nowhere"
fi
grep -q "no cache directory" "$tmp/err" || wrong "nowhere to keep it: $(cat "$tmp/err")"
exit $failed
