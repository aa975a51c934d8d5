#!/usr/bin/env bash
# A mixture of experts with the command: one text, whatever drafts, holds or reads it; the commands
# that take a model; and one sentence about what is wrong with a file or does not go together.
#   experts_command.sh DREY MAKE_TOY
. "$(dirname "$0")/../../cli/shell.sh"
toy=$tmp/m.gguf
DREY_TEST_EXPERTS=1 "$make_toy" "$toy" 3
cp "$toy" "$tmp/draft.gguf"

words=(-d none --sidecar none)
write "${words[@]}"
mv "$tmp/text" "$tmp/expected"
# one_text OPTION...: the same bytes, in memory and in the least budget, where experts are read
one_text() {
    least=$(least "$drey" run -m "$toy" -t 2 -n 40 -p "The quick brown" "$@")
    local memory
    for memory in unlimited "$least"; do
        write --stats "$tmp/stats" --memory "$memory" "$@"
        same "$*, $memory: another text" "$tmp/text" "$tmp/expected"
        holds "$*, $memory" "$tmp/stats" "experts_used > experts_read"
    done
    holds "$*, $least" "$tmp/stats" "experts_read > 0"
}
one_text "${words[@]}"
one_text -d none --cpu ref
one_text -d lookup --prompt-chunk 2
one_text -d "$tmp/draft.gguf"
holds "a draft" "$tmp/stats" "accepted > 0"
write -d "$tmp/draft.gguf" --units cpu/slow=2+cpu/ref+static --stats "$tmp/stats"
same "units: another text" "$tmp/text" "$tmp/expected"
holds "units" "$tmp/stats" "units[1]['groups'] > 0"
ends 0 "$drey" prepare -q "$toy"
one_text -d none
holds "a sidecar" "$tmp/stats" "sidecar"

# Whatever takes a model.
least=$(least "$drey" plan -m "$toy" --no-measure)
ends 0 "$drey" plan -m "$toy" --memory "$least" --no-measure
has "$tmp/out" "slots for [0-9]+ of 24 experts"
ends 0 "$drey" inspect "$toy"
for i in {1..20}; do echo "A text of $i words."; done >"$tmp/words"
words=("$drey" perplexity -m "$toy" -f "$tmp/words")
ends 0 "${words[@]}" --memory "$(least "${words[@]}")"
cp "$tmp/out" "$tmp/expected"
ends 0 "${words[@]}"
[ "$(grep -o 'perplexity.*[0-9]' "$tmp/out")" = "$(grep -o 'perplexity.*[0-9]' "$tmp/expected")" ] ||
    wrong "another perplexity: $(cat "$tmp/out" "$tmp/expected")"
ends 0 "$drey" bench model -m "$toy" --prompt-tokens 8 --decode-tokens 4 --contexts 0 --json "$tmp/json"
holds bench "$tmp/json" "decode_tokens_per_s > 0"
printf 'Hello\nAnd then?\n' >"$tmp/turns"
ends 0 "$drey" chat -m "$toy" -n 8 -d "$tmp/draft.gguf" <"$tmp/turns"

# What does not go together.
says() { # PATTERN WORD...
    refused "${code:-1}" "^drey: .*($1)" "$drey" "${@:2}"
}
code=2 says "needs planes of the target's weights, which a mixture of experts does not have; choose another draft" \
    run -m "$toy" -p x -d self
code=2 says "early exits and a mixture of experts do not go together; write without exits" run -m "$toy" -p x --exit exact

# Files: a count that does not fit, a tensor under another name, numbers that are none.
changed() { # NAME PYTHON: the toy with other bytes b
    python3 -c 'import struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
def value(key, n):
    at = b.index(key.encode()) + len(key) + 4
    b[at:at + 4] = struct.pack("<I", n)
'"$2"'
open(sys.argv[2], "wb").write(b)' "$toy" "$tmp/$1.gguf"
}
changed more 'value("llama.expert_used_count", 9)'
says "more.gguf: .*expert_used_count says that a token uses 9 of 8 experts" run -m "$tmp/more.gguf" -p x
changed fewer 'value("llama.expert_count", 4)'
says "fewer.gguf: .*tensor blk.0.ffn_gate_exps.weight has shape" run -m "$tmp/fewer.gguf" -p x
changed missing 'at = b.index(b"blk.1.ffn_up_exps.weight"); b[at + 23:at + 24] = b"_"'
says "missing.gguf: .*tensor blk.1.ffn_up_exps.weight is missing" run -m "$tmp/missing.gguf" -p x
for tensor in blk.1.ffn_gate_inp blk.2.ffn_up_exps; do
    cp "$toy" "$tmp/damaged.gguf"
    "$make_toy" --damage "$tmp/damaged.gguf" $tensor.weight
    code=0
    "$drey" run -m "$tmp/damaged.gguf" -p "The quick brown" -n 200 --ignore-eos -q >"$tmp/out" 2>"$tmp/err" || code=$?
    [ $code = 1 ] || wrong "$tensor: exit code $code"
    one_line "$tensor" "^drey: error: $tmp/damaged.gguf: tensor $tensor.weight holds numbers that are not finite"
done
exit $failed
