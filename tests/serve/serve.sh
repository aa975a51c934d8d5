#!/usr/bin/env bash
# drey serve on toys: endpoints, streams, tools, bad input, limits, hang-ups, its end; a mixture of
# experts; several models; the examples of docs/reference/server.md, a short soak, and the official
# openai client where it is installed.
#   serve.sh DREY MAKE_TOY [PART]
# PART: bad or front, which are tests of their own and mostly wait; without it, all others.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
drey=${1:?usage: serve.sh DREY MAKE_TOY} make_toy=${2:?usage: serve.sh DREY MAKE_TOY} part=${3-}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$make_toy" "$tmp/toy.gguf" 3
"$make_toy" "$tmp/draft.gguf" 2
"$make_toy" --sentencepiece "$tmp/words.gguf" 2
run() { # PART ARGUMENT...
    if [ -z "$part" ] && [[ $1 =~ ^(bad|front)$ ]] || [ "${part:-$1}" != "$1" ]; then
        return 0
    fi
    python3 -B "tests/serve/serve_$1.py" "$drey" "${@:2}"
}
run api "$tmp"
run bad "$tmp"
run crowd "$tmp"
run sampling "$tmp"
run anthropic "$tmp"
run tools "$tmp/toy.gguf"
run ollama "$tmp"
run responses "$tmp"
run prompts "$tmp"
run native "$tmp"
run shapes "$tmp"
run experts "$make_toy" "$tmp"
run models "$make_toy" "$tmp"
run streams "$tmp"
run front "$make_toy" "$tmp"
run slots "$tmp"
run begun "$tmp"
run templates "$tmp"
run passed "$make_toy" "$tmp"
run agent "$tmp"
run embed "$tmp"
run docs "$tmp"
run soak "$tmp"
run openai "$tmp/toy.gguf"
