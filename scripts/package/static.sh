#!/usr/bin/env bash
# Makes drey as one file that needs no other: for any Linux of one architecture.
#   static.sh [--arch aarch64] DIR [BUILD_DIR]
# Writes DIR/drey-linux-ARCHITECTURE. BUILD_DIR, which is configured and built first: default
# build, and build-ARCHITECTURE for another one than this machine's. That takes Debian's cross
# compiler and the libraries of that architecture; what is missing is named, with exit status 77.
# The file has everything but devices (OpenCL, CUDA): their libraries are loaded at run time, which
# a static program cannot do.
set -euo pipefail
usage="usage: static.sh [--arch aarch64] DIR [BUILD_DIR]"
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$source_dir/scripts/package/cross.sh"
here=$(uname -m)
arch=$here
if [ "${1-}" = --arch ]; then
    arch=${2:?$usage}
    shift 2
fi
dir=${1:?$usage} build=${2:-$source_dir/build} tools='' options=()
if [ "$arch" != "$here" ]; then
    if [ "$arch" != aarch64 ]; then
        echo "static: for $arch there is no cross compiler that this script knows; only aarch64 has one" >&2
        exit 1
    fi
    build=${2:-$source_dir/build-$arch}
    cross_begin static
    # The toolchain's -static is for tests; this program is linked as -static-pie.
    options=("-DCMAKE_TOOLCHAIN_FILE=$source_dir/cmake/toolchain-aarch64.cmake" "-DCMAKE_C_COMPILER=${tools}gcc"
        -DCMAKE_EXE_LINKER_FLAGS=)
fi
"$source_dir/scripts/build.sh" "$build" --target=drey-static ${options[@]+"${options[@]}"}
mkdir -p "$dir"
file=$dir/drey-linux-$arch
"${tools}strip" -o "$file.part" "$build/cli/drey-static"
mv "$file.part" "$file"
echo "$file"
