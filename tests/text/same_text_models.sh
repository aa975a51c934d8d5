#!/usr/bin/env bash
# The promise on real models: the same token ids for every drafter, policy, budget, thread count,
# prompt chunk and CPU tier, greedy and with a seed. The small model always, the pair where it is.
# Heads are those of heads/; with a policy that looks at no clock some of what they guess is right.
#   same_text_models.sh DREY
set -euo pipefail
drey=${1:?usage: same_text_models.sh DREY}
heads=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../heads" && pwd)

models=${DREY_MODELS:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/drey/models}
smol=$models/SmolLM2-135M-Instruct.Q4_1.gguf
draft=$models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf
target=$models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf
if [ ! -f "$smol" ]; then
    echo "skipped: $smol is not there (scripts/get-models.sh smol)"
    exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
question="Write a C function that reverses a singly linked list. Then say in a sentence how it works."
failed=0
runs=0

# write FILE OPTION...: ids into FILE
write() {
    local to=$1
    shift
    "$drey" run -q --raw-ids --chat -p "$question" --ignore-eos "$@" >"$to" 2>"$tmp/err" || {
        echo "drey run $*: $(tail -n 1 "$tmp/err")"
        exit 1
    }
}
# reference OPTION...: plain decoding in memory on one thread
reference() {
    write "$tmp/want" -d none -t 1 "$@"
    [ "$(sort -u "$tmp/want" | wc -l)" -gt 5 ] || { # a text that stands still proves nothing
        echo "the reference text has fewer than six different tokens"
        exit 1
    }
}
same() {
    write "$tmp/got" "$@"
    runs=$((runs + 1))
    cmp -s "$tmp/want" "$tmp/got" || {
        echo "another text with: $*"
        failed=1
    }
}

# same_and_guessed OPTION...: the same, and drafted tokens were accepted
same_and_guessed() {
    same --stats "$tmp/stats" "$@"
    python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["accepted"] <= 0)' \
        "$tmp/stats" || {
        echo "no guess was right with: $*"
        failed=1
    }
}

for how in "--temp 0" "--temp 0.8 --top-p 0.95 --seed 11"; do
    read -ra sampling <<<"$how"
    base=(-m "$smol" -n 40 "${sampling[@]}")
    reference "${base[@]}"
    same "${base[@]}" -d lookup -t 2
    same "${base[@]}" -d lookup --policy sequence --draft-tokens 4 --memory 48M -t 2
    same "${base[@]}" -d none --memory 64M -t 1 --prompt-chunk 5
    same "${base[@]}" -d none --memory 96M -t 2 --io buffered
    same "${base[@]}" -d "$smol" --memory 180M -t 2
    same_and_guessed "${base[@]}" -d "$heads/${smol##*/}.drey-medusa" --policy specinfer -t 2
    same "${base[@]}" -d "$heads/${smol##*/}.drey-medusa" --memory 72M -t 1
    for tier in avxvnni avx2 i8mm dotprod neon; do
        if "$drey" run -q "${base[@]}" -n 1 -p a --cpu "$tier" >/dev/null 2>&1; then
            same "${base[@]}" -d none --cpu "$tier" -t 2
        fi
    done
done
# The scalar reference is slow: a few tokens of it.
base=(-m "$smol" -n 8)
reference "${base[@]}"
same "${base[@]}" -d none --cpu ref -t 2

if [ -f "$target" ] && [ -f "$draft" ]; then
    base=(-m "$target" -n 48)
    reference "${base[@]}"
    same "${base[@]}" -d "$draft" -t 2
    same "${base[@]}" -d "$draft" --policy sequence -t 2 --memory 1100M
    same "${base[@]}" -d "$draft" -t 1 --memory 762M
    same "${base[@]}" -d none -t 2 --memory 400M --io pread
    same_and_guessed "${base[@]}" -d "$heads/${target##*/}.drey-medusa" --policy sequence -t 2
    base+=(--temp 0.7 --top-k 40 --seed 3)
    reference "${base[@]}"
    same "${base[@]}" -d "$draft" -t 2 --memory 762M
    same "${base[@]}" -d "$heads/${target##*/}.drey-medusa" -t 2 --memory 800M
else
    echo "not run: the pair of models is not in $models (scripts/get-models.sh)"
fi
echo "$runs texts compared"
exit "$failed"
