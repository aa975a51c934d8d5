#!/usr/bin/env bash
# drey serve on toys: endpoints, streams, tools, bad input, limits, hang-ups, its end; a mixture of
# experts; several models; the examples of docs/reference/server.md, a short soak, and the official
# openai client where it is installed.
#   serve.sh DREY MAKE_TOY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
drey=${1:?usage: serve.sh DREY MAKE_TOY} make_toy=${2:?usage: serve.sh DREY MAKE_TOY}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$make_toy" "$tmp/toy.gguf" 3
"$make_toy" "$tmp/draft.gguf" 2
"$make_toy" --sentencepiece "$tmp/words.gguf" 2
python3 -B tests/serve/serve_api.py "$drey" "$tmp"
python3 -B tests/serve/serve_bad.py "$drey" "$tmp"
python3 -B tests/serve/serve_crowd.py "$drey" "$tmp"
python3 -B tests/serve/serve_sampling.py "$drey" "$tmp"
python3 -B tests/serve/serve_anthropic.py "$drey" "$tmp"
python3 -B tests/serve/serve_tools.py "$drey" "$tmp/toy.gguf"
python3 -B tests/serve/serve_ollama.py "$drey" "$tmp"
python3 -B tests/serve/serve_responses.py "$drey" "$tmp"
python3 -B tests/serve/serve_prompts.py "$drey" "$tmp"
python3 -B tests/serve/serve_native.py "$drey" "$tmp"
python3 -B tests/serve/serve_shapes.py "$drey" "$tmp"
python3 -B tests/serve/serve_experts.py "$drey" "$make_toy" "$tmp"
python3 -B tests/serve/serve_models.py "$drey" "$make_toy" "$tmp"
python3 -B tests/serve/serve_streams.py "$drey" "$tmp"
python3 -B tests/serve/serve_front.py "$drey" "$make_toy" "$tmp"
python3 -B tests/serve/serve_slots.py "$drey" "$tmp"
python3 -B tests/serve/serve_begun.py "$drey" "$tmp"
python3 -B tests/serve/serve_templates.py "$drey" "$tmp"
python3 -B tests/serve/serve_passed.py "$drey" "$make_toy" "$tmp"
python3 -B tests/serve/serve_agent.py "$drey" "$tmp"
python3 -B tests/serve/serve_embed.py "$drey" "$tmp"
python3 -B tests/serve/serve_docs.py "$drey" "$tmp"
python3 -B tests/serve/serve_soak.py "$drey" "$tmp"
python3 -B tests/serve/serve_openai.py "$drey" "$tmp/toy.gguf"
