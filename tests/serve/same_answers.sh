#!/usr/bin/env bash
# The same answer from drey run, drey chat, drey serve and a program that uses the library:
# examples/chat.c. On toys, and on a real model where one is.
#   same_answers.sh DREY MAKE_TOY CHAT
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
usage="usage: same_answers.sh DREY MAKE_TOY CHAT"
drey=${1:?$usage} make_toy=${2:?$usage} chat=${3:?$usage}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
smol=${DREY_MODELS:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/drey/models}/SmolLM2-135M-Instruct.Q4_1.gguf
export XDG_STATE_HOME=$tmp/state XDG_CACHE_HOME=$tmp/cache # no history, no measurements of this user
"$make_toy" "$tmp/toy.gguf" 3
"$make_toy" "$tmp/draft.gguf" 2
python3 -B tests/serve/same_answers.py "$drey" "$chat" "$tmp/toy.gguf" "$tmp/draft.gguf"
if [ -f "$smol" ]; then
    python3 -B tests/serve/same_answers.py "$drey" "$chat" "$smol" lookup
else
    echo "not run on a real model: $smol is not there (scripts/get-models.sh smol)"
fi
