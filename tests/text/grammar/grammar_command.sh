#!/usr/bin/env bash
# Texts that follow a grammar: drey run and drey chat write JSON of a schema and texts of a grammar,
# the same with and without a draft and within a small budget. What is wrong is refused in one
# sentence before weights are read.
#   grammar_command.sh DREY MAKE_TOY
. "$(dirname "$0")/../../cli/shell.sh"
"$make_toy" "$tmp/toy.gguf"
"$make_toy" "$tmp/draft.gguf" 2
run=("$drey" run -m "$tmp/toy.gguf" -t 1 -q -p "the tree")
cat >"$tmp/s.json" <<'JSON'
{"type": "object", "properties": {"tree": {"type": "string", "maxLength": 5}, "n": {"type": "integer", "maximum": 9}},
 "required": ["tree", "n"]}
JSON
printf 'root ::= ("a" | "b"){3} # three\n' >"$tmp/g.gbnf"

# 1. Texts are of the form, and end with it.
ends 0 "${run[@]}" -n 100 --json-schema "$tmp/s.json" -d none --stats "$tmp/stats"
holds "a text of a schema" "$tmp/out" 'set(whole) == {"tree", "n"} and n <= 9 and len(tree) <= 5'
holds "its end" "$tmp/stats" 'finish_reason == "stop"'
cp "$tmp/out" "$tmp/want"
for more in "-d lookup" "-d $tmp/draft.gguf" "-d $tmp/draft.gguf --with lookup --memory 160M"; do
    # shellcheck disable=SC2086 # words
    ends 0 "${run[@]}" -n 100 --json-schema "$tmp/s.json" $more
    same "$more" "$tmp/want" "$tmp/out"
done
ends 0 "${run[@]}" -n 100 --grammar "$tmp/g.gbnf" --temp 1 --seed 5
has "$tmp/out" '^[ab]{3}$'
ends 0 "$drey" chat -m "$tmp/toy.gguf" -t 1 -q -n 50 --grammar "$tmp/g.gbnf" <<<$'hello\nagain'
[ "$(grep -cE '^[ab]{3}$' "$tmp/out")" = 2 ] || wrong "chat: $(cat "$tmp/out")"

# 2. What is wrong.
printf 'root ::= x' >"$tmp/bad.gbnf"
refused 2 'bad.gbnf: the grammar uses the rule "x"' "${run[@]}" --grammar "$tmp/bad.gbnf"
printf '{"type": "string", "minLength": 3, "maxLength": 2}' >"$tmp/bad.json"
refused 2 'the schema at #: "maxLength" is less' "${run[@]}" --json-schema "$tmp/bad.json"
refused 2 '\-\-strict is about --json-schema' "${run[@]}" --strict

# 3. What no grammar can hold is said, or refused; the rest holds.
cat >"$tmp/set.json" <<'JSON'
{"type": "object", "properties": {"ids": {"type": "array", "items": {"type": "string", "maxLength": 2},
 "uniqueItems": true, "maxItems": 3}}, "required": ["ids"]}
JSON
ends 0 "${run[@]}" -n 60 --json-schema "$tmp/set.json"
holds "a set" "$tmp/out" 'set(whole) == {"ids"} and len(ids) <= 3'
has "$tmp/err" 'warning: .*violate it: /properties/ids/uniqueItems'
refused 2 'hold this of the schema: /properties/ids/uniqueItems' "${run[@]}" --strict --json-schema "$tmp/set.json"
printf '{"type": "string", "minLength": 1, "maxLength": 32768, "pattern": "^\\\\p{L}+$"}' >"$tmp/long.json"
ends 0 "${run[@]}" -n 6 --strict --json-schema "$tmp/long.json"
refused 1 'nowhere' "${run[@]}" --grammar "$tmp/nowhere"
refused 2 'contradict each other' "${run[@]}" --grammar "$tmp/g.gbnf" --json-schema "$tmp/s.json"
exit $failed
