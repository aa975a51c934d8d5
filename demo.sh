#!/usr/bin/env bash
# The demo: a 1.1 GB model answers a coding question within 800 MiB of memory, with a small model's
# help. Installs what is missing, builds into build/, fetches both models (1.6 GB), runs. With the
# models there that takes two to three minutes on two cores, most of them for the build.
#   ./demo.sh [MODEL_FOLDER]     (default: $DREY_MODELS, else the user's cache directory)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case ${1-} in -*)
    sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
models=${1:-${DREY_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/drey/models}}
build=$here/build

"$here/scripts/install-deps.sh"
"$here/scripts/build.sh" "$build" --target=drey
"$here/scripts/get-models.sh" --dir "$models" draft target

# word WORD: as one types it, in quotes only where a shell needs them
word() {
    case $1 in
    '' | *[!A-Za-z0-9_./:=@%+,-]*) printf '%s' "${1@Q}" ;;
    *) printf '%s' "$1" ;;
    esac
}
drey=$build/cli/drey
typed=$(word "$drey")
[ "$PWD" != "$here" ] || typed=build/cli/drey
target=$models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf
draft=$models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf
question="Show a C function that reverses a singly linked list in place: only that function, without \
main. Then explain in three sentences how it works."
printf '\n%s run -m %s \\\n    -d %s \\\n    --memory 800M --chat -n 400 -p %s\n\n' \
    "$typed" "$(word "$target")" "$(word "$draft")" "$(word "$question")" >&2
"$drey" run -m "$target" -d "$draft" --memory 800M --chat -n 400 -p "$question" --stats "$build/demo.json"

number() { sed -n "s/.*\"$1\":[[:space:]]*\([0-9.e+-]*\).*/\1/p" "$build/demo.json" | head -n 1; }
awk -v peak="$(number peak_memory_bytes)" -v speed="$(number tokens_per_s)" -v drey="$typed" 'BEGIN {
    printf "\nShown: a model of 1.1 GB in %.0fM of memory, %.3g tokens/s, with a small model that drafts.\n",
        peak / 1048576, speed
    printf "Your own model: %s plan -m MODEL.gguf    says what to expect (--memory 8G: within 8 GiB)\n", drey
    printf "                %s chat -m MODEL.gguf    talks with it\n", drey
}' >&2
