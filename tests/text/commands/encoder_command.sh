#!/usr/bin/env bash
# A model with an encoder on the command line: the prompt is its input, the text is the decoder's
# whatever drafts and however little memory there is, and what cannot be is said in one line.
#   encoder_command.sh DREY MAKE_TOY
. "$(dirname "$0")/../../cli/shell.sh"
"$make_toy" "$tmp/plain.gguf" 2
echo "a tree of a tree" >"$tmp/text"

try() { # KIND: one of make_toy's
    toy=$tmp/$1.gguf
    "$make_toy" "--$1" "$toy"
    "$make_toy" "--$1" "$tmp/draft.gguf" 2
    text=(run -m "$toy" -p "translate the tree" -n 32 --ignore-eos -t 1)
    "$drey" "${text[@]}" -d none -q >"$tmp/expected"
    [ -s "$tmp/expected" ] || wrong "no text"
    for draft in lookup "$tmp/draft.gguf" "$toy"; do
        ends 0 "$drey" "${text[@]}" -d "$draft" -q
        same "with $draft" "$tmp/out" "$tmp/expected"
    done
    ends 0 "$drey" "${text[@]}" -d none -v
    has "$tmp/err" "prompt +[0-9]+ tokens"
    ends 0 "$drey" run -m "$toy" -p "translate the draft" -n 32 --ignore-eos -t 1 -d none -q
    cmp -s "$tmp/out" "$tmp/expected" && wrong "the input does not matter"
    # The input and the text have each the context, not both together.
    ends 0 "$drey" run -m "$toy" -p "$(printf 'a tree %.0s' {1..200})" -n 1990 -t 1 -d none -q
    [ ! -s "$tmp/err" ] || wrong "a long text of a long input: $(cat "$tmp/err")"
    ends 0 "$drey" plan -m "$toy" -c 512 --no-measure
    has "$tmp/out" "cache, input" "encoder +[0-9]"
    refused 1 "raise -c|encoder" "$drey" run -m "$toy" -c 8 -p "a tree that is longer than this"
    refused 1 "only one of target and draft has an encoder|different" "$drey" "${text[@]}" -d "$tmp/plain.gguf" -q
    refused 2 "has an encoder" "$drey" perplexity -m "$toy" -q -f "$tmp/text"
}
try t5
try bart
exit $failed
