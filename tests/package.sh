#!/usr/bin/env bash
# What scripts/package makes: the one file writes the command's text where there is nothing else, in
# an empty root (if this is root; else in place), and says of devices that it has none.
#   package.sh BUILD_DIR DREY MAKE_TOY
set -euo pipefail
usage="usage: package.sh BUILD_DIR DREY MAKE_TOY"
build=${1:?$usage} drey=$(realpath "${2:?$usage}") make_toy=${3:?$usage}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
wrong() {
    echo "package: $*"
    exit 1
}
file=$(scripts/package/static.sh "$tmp" "$build" 2>"$tmp/log") || wrong "$(tail -n 20 "$tmp/log")"
readelf -d "$file" >"$tmp/dynamic"
! grep -q NEEDED "$tmp/dynamic" || wrong "it needs a library"
mkdir "$tmp/bare"
cp "$file" "$tmp/bare/drey"
"$make_toy" "$tmp/bare/toy.gguf" 3
here=("$tmp/bare/drey") model=$tmp/bare/toy.gguf
if [ "$(id -u)" = 0 ]; then
    here=(chroot "$tmp/bare" /drey) model=/toy.gguf
fi
text=(run -p "A text begins" -n 24 --ignore-eos -t 1 -q -d lookup --memory 64M)
"$drey" "${text[@]}" -m "$tmp/bare/toy.gguf" >"$tmp/expected"
"${here[@]}" "${text[@]}" -m "$model" >"$tmp/got" || wrong "it cannot write a text"
cmp "$tmp/expected" "$tmp/got" || wrong "another text"
code=0
"${here[@]}" run -m "$model" -p a -n 1 --units cpu+opencl 2>"$tmp/err" >"$tmp/got" || code=$?
if [ $code = 0 ] || ! grep -q "one static file, which cannot load the OpenCL library" "$tmp/err"; then
    wrong "a device: $code, $(cat "$tmp/err")"
fi
