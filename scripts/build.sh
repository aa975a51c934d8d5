#!/usr/bin/env bash
# Configures and builds into a folder. One line says meanwhile how far it is; a failure is shown
# whole, and so are warnings. BUILD_DIR/build.log has everything.
#   build.sh BUILD_DIR [--target=TARGET]... [CMAKE_OPTION...]
# A folder keeps its options. A new one has gcc, with ccache if that is installed, and no
# tests, unless the options say otherwise.
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$source_dir/scripts/terminal/moving_line.sh"
build=${1:?usage: build.sh BUILD_DIR [--target=TARGET]... [CMAKE_OPTION...]}
shift
targets=()
while [[ ${1-} == --target=* ]]; do
    targets+=(--target "${1#--target=}")
    shift
done

# A copied or moved source folder brings a cache that points elsewhere: it counts as a new one.
options=()
if ! grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$source_dir" "$build/CMakeCache.txt"; then
    [ ! -f "$build/CMakeCache.txt" ] || options=(--fresh)
    options+=(-DCMAKE_C_COMPILER=gcc -DBUILD_TESTING=OFF)
    if [ -z "${CMAKE_C_COMPILER_LAUNCHER-}" ] && command -v ccache >/dev/null; then
        options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
    fi
fi
options+=("$@")
mkdir -p "$build"
echo "building into $build" >&2

# A step takes about a third of a second of one core, those of the kernels in the middle far more.
cores=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)} began=$SECONDS n_done=0 n_steps=0
says() { # LINE of cmake or ninja, which counts its steps as [12/440]
    local so_far usual left
    if [[ $1 =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
        [ "$n_steps" = "${BASH_REMATCH[2]}" ] || began=$SECONDS # it counts anew once cmake has run
        n_done=${BASH_REMATCH[1]} n_steps=${BASH_REMATCH[2]}
    fi
    text=configuring
    [ "$n_steps" != 0 ] || return 0
    so_far=$((SECONDS - began)) usual=$((n_steps * 35 / 100 / cores))
    if [ $so_far -lt 10 ] || [ "$n_done" = 0 ]; then
        text="[$n_done/$n_steps] compiling, $(about $usual) on $cores core$([ "$cores" = 1 ] || echo s)"
    else
        left=$((so_far * (n_steps - n_done) / n_done))
        [ $left -ge $((usual - so_far)) ] || left=$((usual - so_far))
        text="[$n_done/$n_steps] compiling, $(about $left) left"
    fi
}
without_steps() { grep -vE '^\[[0-9]+/[0-9]+\] ' "$build/build.log" || true; }

configure_and_build() {
    cmake -S "$source_dir" -B "$build" -G Ninja ${options[@]+"${options[@]}"} &&
        cmake --build "$build" ${targets[@]+"${targets[@]}"}
}
if ! configure_and_build </dev/null 2>&1 | moving "$build/build.log" says; then
    without_steps >&2
    echo "build: failed, see above; $build/build.log has all of it" >&2
    exit 1
fi
if grep -qE 'warning: .*\[-W' "$build/build.log"; then # a compiler's, which names its option
    without_steps >&2
fi
