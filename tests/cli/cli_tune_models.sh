#!/usr/bin/env bash
# drey tune -m: what it measured of a pair of models is kept, shown and used by drey run; a file
# that is broken or foreign is passed over with one sentence; and no text changes.
#   cli_tune_models.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
export XDG_CACHE_HOME="$tmp/the cache"
mkdir "$tmp/models"
"$make_toy" "$tmp/models/target.gguf" 4
"$make_toy" "$tmp/models/draft.gguf" 2
pair=(-m "$tmp/models/target.gguf" -d "$tmp/models/draft.gguf" -t 1)
echo '{"prompt": "The quick brown fox"}' >"$tmp/prompts.jsonl"
write_on() { # OUT
    ends 0 "$drey" run "${pair[@]}" -n 24 --ignore-eos -q --memory unlimited -p 'A text begins'
    mv "$tmp/out" "$1"
}

write_on "$tmp/usual"
ends 1 "$drey" tune "${pair[@]}" --show
has "$tmp/err" 'nothing was measured'

ends 0 "$drey" tune "${pair[@]}" --prompts "$tmp/prompts.jsonl" --json "$tmp/copy.json"
kept=$(find "$XDG_CACHE_HOME/drey/profiles" -name '*.json')
[ "$(wc -l <<<"$kept")" = 1 ] || wrong "not one file but: $kept"
same "--json differs from what was kept" "$kept" "$tmp/copy.json"
has "$tmp/out" '^static trees' '^drafting (pays up to [0-9]+ rows: [0-9.e+]+ times as fast|does not pay)'
"$drey" tune "${pair[@]}" --show >"$tmp/show" 2>"$tmp/err" || wrong "--show"
grep -qE '^kept .*\.json, measured (now|[0-9]+ minutes? ago)$' "$tmp/err" || wrong "--show: $(cat "$tmp/err")"
same "--show differs from tune" "$tmp/out" "$tmp/show"
# A copy of the models under other names is the same pair; another tier or number of threads is not.
mkdir "$tmp/copies"
cp "$tmp/models/target.gguf" "$tmp/copies/a.gguf"
cp "$tmp/models/draft.gguf" "$tmp/copies/b.gguf"
"$drey" tune --show -m "$tmp/copies/a.gguf" -d "$tmp/copies/b.gguf" -t 1 >"$tmp/show" || wrong "copies"
same "--show of copies differs" "$tmp/out" "$tmp/show"
for other in "-t 2 -d $tmp/models/draft.gguf" "-t 1 -d lookup" "-t 1 --cpu ref -d $tmp/models/draft.gguf"; do
    # shellcheck disable=SC2086 # several words
    refused 1 '' "$drey" tune --show -m "$tmp/models/target.gguf" $other
done

write_on "$tmp/text"
same "another text with a profile" "$tmp/text" "$tmp/usual"
[ ! -s "$tmp/err" ] || wrong "with a profile: $(cat "$tmp/err")"

set_key() { # KEY JSON: in the kept file, from the good one
    edit "$tmp/copy.json" "$kept" "*parts, last = (int(p) if p.isdigit() else p for p in '$1'.split('/'))
at = root
for part in parts:
    at = at[part]
at[last] = json.loads('$2')"
}
passed_over() { # WHAT WORDS
    write_on "$tmp/text"
    same "another text, file $1" "$tmp/text" "$tmp/usual"
    one_line "file $1" "$2"
}
broken='is not what drey tune writes'
while IFS='|' read -r where value what words; do
    set_key "$where" "$value"
    passed_over "$what" "${words:-$broken}"
done <<'TABLE'
cpu|"a processor that nobody made"|of another processor|another processor
version|"0.0.0"|of another version|another processor or by another version
format|"drey profile 0"|of another format
pass_s|[1, 2]|with two passes
pass_s/5|-1|with a pass of less than no time
step_s/7|"slow"|with a word for a time
right/40|1e30|with more right than guessed
guessed/40|1e300|with more guesses than there are numbers
step_s/2|1e300|with a step without end
trees/3/parent/0|5|with a parent after its child
trees/3/rank/0|9|with a rank that there is not
best|7|with a best tree that there is not
TABLE
head -c 200 "$tmp/copy.json" >"$kept"
passed_over "cut short" "$broken"
: >"$kept"
passed_over "of no bytes" "$broken"
head -c 2000000 /dev/zero >"$kept"
passed_over "of zeros" "$broken"

# The routes of a mixture: plans of any draft go by them.
DREY_TEST_EXPERTS=1 "$make_toy" "$tmp/models/mixture.gguf" 3
mixture=("$drey" plan -m "$tmp/models/mixture.gguf" -d none --memory 64M --disk 1G --json "$tmp/plan.json")
planned() { # TOKENS WORDS
    "${mixture[@]}" >"$tmp/out" 2>"$tmp/err" || wrong "plan of a mixture"
    has "$tmp/out" "$2"
    python3 - "$tmp/plan.json" "$1" <<'PYTHON' || failed=1
import json, sys
plan = json.load(open(sys.argv[1]))
assert plan["route_tokens"] == int(sys.argv[2]), plan["route_tokens"]
assert plan["expert_layers"] == 3 and plan["experts_used"] * 3 <= plan["expert_slots"] <= plan["experts"]
assert 0 < plan["expert_hits"] <= 1
PYTHON
}
planned 0 "assumed of any mixture; drey tune -m .* measures"
ends 0 "$drey" tune -m "$tmp/models/mixture.gguf" -d lookup -t 1 --prompts "$tmp/prompts.jsonl" --json "$tmp/copy.json"
has "$tmp/out" "^experts    of 63 tokens, slots for 10, 20, 30, 50 %"
python3 -c 'import json, sys
routes = json.load(open(sys.argv[1]))["routes"]
assert routes["tokens"] == 63 and len(routes["distance"]) == routes["experts"] == 8
assert sum(routes["distance"]) == 63 * 3 * 2, routes' "$tmp/copy.json" || wrong "--json of routes"
cp "$tmp/out" "$tmp/shown"
ends 0 "$drey" tune -m "$tmp/models/mixture.gguf" -d lookup -t 1 --show
same "--show differs from tune of a mixture" "$tmp/shown" "$tmp/out"
planned 63 "as its routes for 63 tokens say"
routes=$(find "$XDG_CACHE_HOME/drey/routes" -name '*.json')
cp "$routes" "$tmp/copy.json"
while IFS='|' read -r where value words; do
    edit "$tmp/copy.json" "$routes" "root['$where'] = json.loads('$value')"
    planned 0 "assumed of any mixture"
    one_line "routes with $where $value" "${words:-$broken}"
done <<'TABLE'
cpu|"a processor that nobody made"|another processor
distance|[1, 2]
distance|[0, 0, 0, 0, 0, 0, 0, 0]
distance|[0, 0, 0, 0, 0, 0, 0, -1]
experts|0
tokens|0.5
TABLE

# What is forgotten is the model's, with any draft.
ends 0 "$drey" tune --forget -m "$tmp/models/target.gguf"
has "$tmp/out" '^removed .*profiles/.*\.json$'
[ ! -e "$kept" ] || wrong "--forget left $kept"
[ -s "$routes" ] || wrong "--forget took another model's"

# Nowhere to keep it.
ends 2 env -u HOME -u XDG_CACHE_HOME "$drey" tune "${pair[@]}" --prompts "$tmp/prompts.jsonl" -q
has "$tmp/err" "no cache directory"
exit $failed
