#!/usr/bin/env bash
# Configures and builds into a folder; says nothing unless it fails, then everything.
#   build.sh BUILD_DIR [--target=TARGET]... [CMAKE_OPTION...]
# The compiler is gcc unless the options name another.
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${1:?usage: build.sh BUILD_DIR [--target=TARGET]... [CMAKE_OPTION...]}
shift
targets=()
while [[ ${1-} == --target=* ]]; do
    targets+=(--target "${1#--target=}")
    shift
done

options=(-DCMAKE_C_COMPILER=gcc "$@")
# A copied or moved source folder brings a cache that points elsewhere.
if [ -f "$build/CMakeCache.txt" ] &&
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$source_dir" "$build/CMakeCache.txt"; then
    options=(--fresh "${options[@]}")
fi
mkdir -p "$build"
echo "building into $build" >&2
if ! {
    cmake -S "$source_dir" -B "$build" -G Ninja "${options[@]}" && cmake --build "$build" ${targets[@]+"${targets[@]}"}
} >"$build/build.log" 2>&1; then
    cat "$build/build.log" >&2
    exit 1
fi
