#!/usr/bin/env bash
# drey serve on toys: endpoints, streams, bad input, limits, hang-ups, its end; a mixture of
# experts; the examples of docs/reference/server.md, a short soak, and the official openai client
# where it is installed.
#   serve.sh DREY MAKE_TOY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
drey=${1:?usage: serve.sh DREY MAKE_TOY} make_toy=${2:?usage: serve.sh DREY MAKE_TOY}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$make_toy" "$tmp/toy.gguf" 3
"$make_toy" "$tmp/draft.gguf" 2
python3 -B tests/serve/serve_api.py "$drey" "$tmp"
python3 -B tests/serve/serve_bad.py "$drey" "$tmp"
python3 -B tests/serve/serve_experts.py "$drey" "$make_toy" "$tmp"
python3 -B tests/serve/serve_docs.py "$drey" "$tmp"
python3 -B tests/serve/serve_soak.py "$drey" "$tmp"
code=0
python3 -B tests/serve/serve_openai.py "$drey" "$tmp/toy.gguf" || code=$?
[ $code = 0 ] || [ $code = 77 ]
