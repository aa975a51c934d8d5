#!/usr/bin/env bash
# The demo: a 1.1 GB model answers a coding question within 800 MiB of memory, with a small model's
# help. Installs what is missing, builds into build/, fetches both models (1.6 GB), runs.
#   ./demo.sh [MODEL_FOLDER]     (default: $DREY_MODELS, else the user's cache directory)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case ${1-} in -*)
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
models=${1:-${DREY_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/drey/models}}
build=$here/build

"$here/scripts/install-deps.sh"
"$here/scripts/build.sh" "$build" -DBUILD_TESTING=OFF
"$here/scripts/get-models.sh" --dir "$models" draft target

question="Write a C function that reverses a singly linked list in place, and explain it in a few \
sentences."
run=("$build/cli/drey" run
    -m "$models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    -d "$models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    --memory 800M --chat -n 200 -p "$question")
printf '\n%s\n\n' "${run[*]@Q}" >&2
exec "${run[@]}"
