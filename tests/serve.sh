#!/usr/bin/env bash
# drey serve on toys: endpoints, streams, bad input, limits, hang-ups, its end.
#   serve.sh DREY MAKE_TOY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
drey=${1:?usage: serve.sh DREY MAKE_TOY} make_toy=${2:?usage: serve.sh DREY MAKE_TOY}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$make_toy" "$tmp/toy.gguf" 3
"$make_toy" "$tmp/draft.gguf" 2
python3 -B tests/serve_api.py "$drey" "$tmp"
python3 -B tests/serve_bad.py "$drey" "$tmp"
