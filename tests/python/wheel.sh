#!/usr/bin/env bash
# The Python package: made, installed into a new environment, and tried on toys (try_wheel.py,
# try_openai.py, try_command.py, try_closing.py).
#   wheel.sh BUILD_DIR DREY MAKE_TOY
set -euo pipefail
usage="usage: wheel.sh BUILD_DIR DREY MAKE_TOY"
build=${1:?$usage} drey=$(realpath "${2:?$usage}") make_toy=${3:?$usage}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/env" 2>"$tmp/log" || {
    echo "skipped: python3 -m venv does not work here: $(tail -n 1 "$tmp/log")"
    exit 77
}
"$tmp/env/bin/pip" install -q --disable-pip-version-check 'cffi>=1.15' >"$tmp/log" 2>&1 || {
    echo "skipped: cffi cannot be installed here: $(tail -n 1 "$tmp/log")"
    exit 77
}
wheel=$("$tmp/env/bin/python" scripts/package/wheel.py "$tmp/made" --build "$build" 2>"$tmp/log") || {
    tail -n 20 "$tmp/log"
    exit 1
}
"$tmp/env/bin/pip" install -q --disable-pip-version-check --no-index "$wheel"
size=$(stat -c %s "$wheel")
[ "$size" -le $((5 << 20)) ] || {
    echo "wheel: $size bytes, more than 5 MiB"
    exit 1
}
"$make_toy" "$tmp/target.gguf" 3
"$make_toy" "$tmp/draft.gguf" 2
cd "$tmp" # the package that is installed, not the sources
"$tmp/env/bin/python" -B "$OLDPWD/tests/python/try_wheel.py" "$drey" "$tmp"
"$tmp/env/bin/python" -B "$OLDPWD/tests/python/try_openai.py" "$drey" "$tmp"
"$tmp/env/bin/python" -B "$OLDPWD/tests/python/try_command.py" "$tmp"
# Memory that is used after it was freed is seen.
MALLOC_PERTURB_=165 "$tmp/env/bin/python" -B "$OLDPWD/tests/python/try_closing.py" "$tmp"
