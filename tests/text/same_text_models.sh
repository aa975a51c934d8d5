#!/usr/bin/env bash
# The promise on real models: drey verify, in memory and in small budgets, with lookup and models,
# and with heads that were trained for them where they are. Guesses are partly right, with policies
# that look at no clock. The small model always, the pair where it is.
#   same_text_models.sh DREY
set -euo pipefail
drey=${1:?usage: same_text_models.sh DREY}

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
failed=0
echo '{"id": "list", "turns": ["Write a C function that reverses a singly linked list. Then say in a sentence how it works."]}' \
    >"$tmp/prompts"

# same TEXTS_ACCEPTED OPTION...: every way writes the same, and of the first guesses some are right
same() {
    local guessed=$1
    shift
    "$drey" verify -q -t 2 --prompts "$tmp/prompts" --json "$tmp/json" "$@" >"$tmp/out" 2>&1 || {
        echo "drey verify $*:"
        cat "$tmp/out"
        failed=1
        return
    }
    python3 - "$tmp/json" "$guessed" <<'PYTHON' || failed=1
import json, sys
ways = json.load(open(sys.argv[1]))["ways"]
of = [w for w in ways if w["way"].startswith("draft " + sys.argv[2])]
if any("not_run" in w for w in ways) or not of or any(w["accepted"] <= 0 for w in of):
    sys.exit("not run, or no guess was right: %s" % [w["way"] for w in ways])
print(sum(w["texts"] for w in ways), "texts compared")
PYTHON
}

# with_heads MODEL OPTION...: the heads that drey train medusa has left next to the model
with_heads() {
    if [ -f "$1.drey-medusa" ]; then
        same "medusa" -m "$1" -d "$1.drey-medusa" "${@:2}"
    else
        echo "not run: heads: $1.drey-medusa is not there (drey train medusa makes it)"
    fi
}

same "lookup, policy sequence" -m "$smol" -n 24 -d lookup
same "lookup, policy edgellm" -m "$smol" -n 24 -d lookup --memory 64M --io buffered --top-p 0.95 --seed 11
same "model, policy sequence" -m "$smol" -n 24 -d "$smol" --memory 180M --policy sequence
with_heads "$smol" -n 24 --policy specinfer --memory 96M
if [ -f "$target" ] && [ -f "$draft" ]; then
    same "model, policy sequence" -m "$target" -n 16 -d "$draft" --memory 762M --temp 0.7 --top-k 40
    with_heads "$target" -n 16 --policy sequence --memory 800M
    same "lookup" -m "$target" -n 16 -d lookup --policy sequence --memory 400M --io pread
else
    echo "not run: the pair of models is not in $models (scripts/get-models.sh)"
fi
exit "$failed"
