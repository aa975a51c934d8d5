#!/usr/bin/env bash
# -d auto, which is what drey run, drey chat and drey plan do: the small model next to the target,
# or lookup, or none; a line says why, and the text is the target's. A program that links the
# library alone (support/print_choice.c) gets the same.
#   cli_draft.sh DREY MAKE_TOY PRINT_CHOICE
. "$(dirname "$0")/shell.sh"
choose=$(realpath "$3")
export XDG_CACHE_HOME="$tmp/cache"
mkdir "$tmp/family" "$tmp/alone"
target=$tmp/family/target.gguf
"$make_toy" "$target" 12
"$make_toy" "$tmp/family/small.gguf" 2
"$make_toy" "$tmp/family/large.gguf" 9 # more than half of the target
echo "no model" >"$tmp/family/broken.gguf"
cp "$target" "$tmp/alone"
text=(run -v -p "A text begins" -n 24 --ignore-eos -t 1)

# says WHAT PATTERN ARGUMENT...: a run whose line about the draft is like that, "" for none
says() {
    local what=$1 pattern=$2 line
    shift 2
    ends 0 "$drey" "${text[@]}" --memory unlimited "$@"
    line=$(grep '^draft ' "$tmp/err" || true)
    [[ $line =~ ^$pattern$ ]] || wrong "$what: \"$line\""
    same "$what: another text" "$tmp/out" "$tmp/expected"
}

# same_choice WHAT MODEL [POLICY]
same_choice() {
    "$drey" plan -m "$2" ${3:+--policy "$3"} -c 256 -t 1 --memory unlimited --no-measure 2>"$tmp/err" | grep '^draft ' >"$tmp/plan" ||
        wrong "$1: no line about the draft: $(cat "$tmp/err")"
    "$choose" "$2" "$XDG_CACHE_HOME/drey" ${3:+"$3"} >"$tmp/chosen" 2>&1 || wrong "$1: $(cat "$tmp/chosen")"
    diff "$tmp/plan" "$tmp/chosen" || wrong "$1: the library alone chooses otherwise"
}

"$drey" "${text[@]}" -m "$target" -d none -q >"$tmp/expected"
found='draft small\.gguf, which is next to the target: about [0-9.]+ times as fast as no draft, lookup [0-9.]+'
none_found='draft (lookup|none): (about .* times as fast as no draft|nothing is faster).*'
says "a small model next to it" "$found" -m "$target"
says "the same, asked for" "$found" -m "$target" -d auto
says "no model next to it" "$none_found" -m "$tmp/alone/target.gguf"
says "a model that was named" '' -m "$target" -d "$tmp/family/large.gguf"
says "none" '' -m "$target" -d none
says "a policy without a draft" '' -m "$target" --policy none
says "quiet" '' -m "$target" -q
[ ! -s "$tmp/err" ] || wrong "-q says something: $(cat "$tmp/err")"
same_choice "the library, a small model next to it" "$target"
same_choice "the library, no model next to it" "$tmp/alone/target.gguf"
(cd "$tmp/family" && "$drey" plan -m target.gguf --memory unlimited --no-measure --disk 1T/s) >"$tmp/out"
[[ $(grep '^draft ' "$tmp/out") =~ ^$found$ ]] || wrong "plan: $(grep '^draft ' "$tmp/out")"
# At stated speeds, the choice says what the plan says, of passes that read: the disk counts.
disks=(1G/s 5M/s)
[ $sanitized = 0 ] || {
    echo "not run: a plan after a choice has less room than the choice under a sanitizer, which keeps what was freed"
    disks=()
}
mkdir "$tmp/streams"
"$make_toy" "$tmp/streams/target.gguf" 400
"$make_toy" "$tmp/streams/small.gguf" 2
streams=("$drey" plan -m "$tmp/streams/target.gguf" -c 256 -t 1)
room=$(least "${streams[@]}" -d "$tmp/streams/small.gguf")
fast=0
for disk in ${disks[@]+"${disks[@]}"}; do
    "${streams[@]}" --memory "$((${room%M} + 4))M" --disk "$disk" --json "$tmp/json" >"$tmp/out" 2>"$tmp/err" ||
        wrong "plan at $disk: $(cat "$tmp/err")"
    said=$(grep -oE '^draft .*: about [0-9.e+]+ tokens/s' "$tmp/out" | grep -oE '[0-9.e+]+ tokens' | cut -d' ' -f1)
    holds "plan at $disk: $(grep '^draft ' "$tmp/out")" "$tmp/json" "streamed_bytes_per_pass > 1 << 20" \
        "abs(${said:-0} - expected_tokens_per_s) <= 0.25 * expected_tokens_per_s" \
        'expected_tokens_per_s == tokens_per_s > 0 < alone_tokens_per_s and verdict.count(" tokens/s") > 0' \
        "$fast == 0 or 2 < $fast / expected_tokens_per_s < 300" # a busy machine computes as slowly
    fast=$(key "$tmp/json" expected_tokens_per_s)
done
echo hello | "$drey" chat -m "$target" --memory unlimited -n 24 -t 1 -v >"$tmp/out" 2>"$tmp/err" || wrong "chat: $(tail -n 1 "$tmp/err")"
[[ $(grep '^draft ' "$tmp/err") =~ ^${found%%about*}about ]] || wrong "chat: $(cat "$tmp/err")"
echo hello | "$drey" chat -m "$target" --memory unlimited -n 24 -t 1 -d none -q | cmp -s - "$tmp/out" || wrong "chat: another text"

# Why no model drafts: none there, other tokens, no room. The verdict says it where passes read.
reason() { # PATTERN FOLDER MEMORY
    ends 0 "$drey" plan -m "$2/target.gguf" --memory "$3" -c 256 -t 1 --disk 1M/s
    has "$tmp/out" "^no draft: $1"
}
mkdir "$tmp/none" "$tmp/family2" "$tmp/others"
for folder in none family2 others; do cp "$tmp/streams/target.gguf" "$tmp/$folder"; done
"$make_toy" "$tmp/family2/small.gguf" 199
"$make_toy" --sentencepiece "$tmp/others/small.gguf" 2
small=$(least "$drey" plan -m "$tmp/none/target.gguf" -c 256 -t 1 -d none)
[ $sanitized = 0 ] || small=$((${small%M} + 8))M
reason "there is no smaller model next to it" "$tmp/none" "$small"
reason "the budget has no room for the smaller model next to it; --memory [0-9.]*[MG] makes room, and so may a smaller -c" \
    "$tmp/family2" "$small"
has "$tmp/out" "\(smallest [0-9.]+[MG], for a context of 256\)"
room=$(grep -oE 'memory [0-9.]+[MG] makes room' "$tmp/out" | grep -oE '[0-9.]+[MG]')
[ $sanitized = 0 ] || room=$((${room%M} + 8))M
ends 0 "$drey" plan -m "$tmp/family2/target.gguf" --memory "$room" -c 256 -t 1 --disk 1M/s
! grep -q "the budget has no room" "$tmp/out" || wrong "$room is said to have room for the draft: $(cat "$tmp/out")"
reason "the smaller models next to it have other tokens" "$tmp/others" "$small"

# A budget that has no room for the model takes what it has room for, down to the least there is.
least=$(least "$drey" "${text[@]}" -m "$target")
ends 0 "$drey" "${text[@]}" -m "$target" --memory "$least"
same "the least budget: another text" "$tmp/out" "$tmp/expected"
# The draft would take 6 MiB more; what a process has written to is not the same in each, above all
# under sanitizers.
least=$(echo hello | least "$drey" chat -m "$target" -d none --prefix-memory 16M)
echo hello | "$drey" chat -m "$target" --prefix-memory 16M --memory "$((${least%M} + 3))M" -n 24 >/dev/null 2>"$tmp/err" ||
    wrong "what chat keeps itself is not counted: $(tail -n 1 "$tmp/err")"

# What drey tune measured of a draft is what is expected of it, for better and worse.
echo '{"prompt": "The quick brown fox"}' >"$tmp/prompts"
measured() { # DRAFT TOKENS: its trees wrote so many, at passes that are all alike
    touch "$tmp/before"
    ends 0 "$drey" tune -m "$target" -d "$1" -t 1 --prompts "$tmp/prompts" -q
    kept=$(find "$XDG_CACHE_HOME/drey/profiles" -name '*.json' -newer "$tmp/before")
    edit "$kept" "$kept" 'root["pass_s"] = [0.01] * 64
root["step_s"] = [0.0001] * 8 if root["step_s"][0] else root["step_s"]
for tree in root["trees"]:
    tree["tokens"] = min('"$2"', tree["rows"])'
}
measured "$tmp/family/small.gguf" 1
says "a small model that was never right" 'draft lookup: about .* tokens/s, the model next to it 100, no draft 100' -m "$target"
measured lookup 1
says "nothing that was ever right" \
    'draft none: about 100 tokens/s, the model next to it 100, lookup 100' -m "$target"
says "the same with a policy that drafts" \
    'draft lookup: by what was measured about 100 tokens/s, the model next to it 100, no draft 100' -m "$target" --policy optimal
same_choice "the library, nothing that was ever right" "$target"
same_choice "the library, the same with a policy" "$target" optimal
measured lookup 1.5
says "lookup that was right" 'draft lookup: by what was measured about 150 tokens/s, .* no draft 100' -m "$target"
measured "$tmp/family/small.gguf" 1.9
says "a small model that was right" \
    'draft small\.gguf, .*: by what was measured about 188 tokens/s, lookup 150, no draft 100' -m "$target"
same_choice "the library, a small model that was right" "$target"
# What no draft could change is not blamed on the draft.
"$drey" plan -m "$target" --policy single --units cpu/slow=0 --no-measure >"$tmp/out" 2>"$tmp/err" && wrong "units that are wrong"
has "$tmp/err" slow
ends 2 "$drey" bench model -m "$target" -d auto
exit $failed
