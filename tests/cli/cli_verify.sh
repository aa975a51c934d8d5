#!/usr/bin/env bash
# drey verify: every way writes the reference's texts; what differs is found and shown, as a lossy
# policy does; what cannot be tried here is listed.
#   cli_verify.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
export XDG_CACHE_HOME="$tmp/cache"
"$make_toy" "$tmp/target.gguf" 3
"$make_toy" "$tmp/draft.gguf" 2
head -n 2 cli/prompts/tuning_prompts.jsonl >"$tmp/prompts"
verify=("$drey" verify -m "$tmp/target.gguf" -d "$tmp/draft.gguf" --prompts "$tmp/prompts" -n 12 --memory 64M -t 2)

ends 0 "${verify[@]}" --json "$tmp/json"
has "$tmp/out" '^no draft, one thread: the reference +4 of 4 +48 tokens$' '^no draft, the least memory +4 of 4' \
    '^draft model, policy sequence +4 of 4 +48 tokens +[1-9][0-9]* accepted$' \
    '^draft lookup, policy edgellm +4 of 4' '^draft model, 4 texts at the same time +4 of 4' \
    '^all [0-9]+ texts of [0-9]+ ways are the reference.s, token for token$'
holds "every way" "$tmp/json" 'all(w["equal"] == w["texts"] > 0 for w in ways)' \
    'all(w["greedy_equal"] == w["greedy_texts"] == w["texts"] / 2 for w in ways)' 'len(ways) > 8' 'tokens == 12'

ends 1 "${verify[@]}" --policy bld --json "$tmp/json"
one_line "a lossy policy" 'of [0-9]+ texts differ from the reference.s: policy bld may change texts'
has "$tmp/out" '^  [^ ]+, (greedy|sampled): token [0-9]+ is [0-9]+ ".*", and [0-9]+ ".*" in the reference$'
holds "a lossy policy" "$tmp/json" \
    'any("first_difference" in w and w["equal"] < w["texts"] for w in ways)'

"$make_toy" "$tmp/heads.gguf" 4
echo "no heads" >"$tmp/heads.gguf.drey-medusa"
ends 0 "$drey" verify -m "$tmp/heads.gguf" -d lookup --prompts "$tmp/prompts" --quick -q
has "$tmp/out" '^draft medusa, policy optimal +not run: .*heads.gguf.drey-medusa' '^no draft, all threads +2 of 2 ' \
    '^draft lookup, 2 texts at the same time +2 of 2 ' '^all .* \(quick: one prompt, texts of 8 tokens\)$'
[ ! -s "$tmp/err" ] || wrong "-q: $(cat "$tmp/err")"

refused 1 'nothing-there' "$drey" verify -m "$tmp/nothing-there"
refused 2 'takes no --trace' "$drey" verify -m "$tmp/target.gguf" --trace t.json
refused 1 'is no prompt' "$drey" verify -m "$tmp/target.gguf" --prompts "$tmp/target.gguf" -q
exit $failed
