#!/usr/bin/env bash
# drey chat and drey serve under mpirun: the answers of one process; what does not work there is
# refused.
#   cli_ranks_talk.sh DREY MAKE_TOY
. "$(dirname "$0")/ranks.sh"
"$make_toy" "$tmp/m.gguf" 6
"$make_toy" "$tmp/d.gguf" 2

# Two turns, another answer to the second, one that is taken back, and a new conversation.
talk() { # OPTION...
    printf 'hello\nand\n/retry\n/undo\nthen\n/reset\nhello\n/budget 1G\n/save %s\n' "$tmp/s" >"$tmp/typed"
    local chat=("$drey" chat -m "$tmp/m.gguf" -t 1 -n 12 -c 1024 --temp 0.7 --seed 3 "$@")
    ends 0 "${chat[@]}" <"$tmp/typed"
    mv "$tmp/out" "$tmp/expected"
    ends 1 "${ranks[@]}" 2 "${chat[@]}" <"$tmp/typed"
    same "chat on two ranks, $*: another talk" "$tmp/out" "$tmp/expected"
    has "$tmp/err" "^rank 1 on .*: layers [0-9]+ to 5" "several ranks keep the budgets" \
        "a session of several ranks cannot be saved"
}
talk -d none
talk -d "$tmp/d.gguf"

for command in verify perplexity "serve --models $tmp"; do
    read -ra words <<<"$command"
    [ "${words[0]}" = serve ] || words+=(-m "$tmp/m.gguf")
    ends 2 "${ranks[@]}" 2 "$drey" "${words[@]}" </dev/null
    has "$tmp/err" "drey run, chat and serve of one model work on several ranks"
done
ends 2 "${ranks[@]}" 2 "$drey" serve --port 0 -m "$tmp/m.gguf" --prefix-memory 16M
has "$tmp/err" "prefixes cannot be kept with several ranks"

python3 -B tests/serve/serve_ranks.py "$drey" "$tmp" || failed=1
exit $failed
