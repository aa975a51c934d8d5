#!/usr/bin/env bash
# Makes drey as one file that needs no other: for any Linux of one architecture.
#   static.sh [--arch aarch64] DIR [BUILD_DIR]
# Writes DIR/drey-VERSION-ARCHITECTURE. BUILD_DIR, which is configured and built first: default
# build, and build-ARCHITECTURE for another one than this machine's. That takes Debian's cross
# compiler and the libraries of that architecture; what is missing is named, with exit status 77.
# The file has everything but devices (OpenCL, CUDA): their libraries are loaded at run time, which
# a static program cannot do.
set -euo pipefail
usage="usage: static.sh [--arch aarch64] DIR [BUILD_DIR]"
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
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
    build=${2:-$source_dir/build-$arch} tools=aarch64-linux-gnu-
    libraries=/usr/lib/aarch64-linux-gnu
    missing=''
    for name in edit pcre2-8 uring xxhash; do
        [ -e "$libraries/lib$name.a" ] || missing+=" lib$name"
    done
    if ! command -v ${tools}gcc >/dev/null || [ -n "$missing" ]; then
        echo "static: needs a cross compiler and libraries for $arch${missing:+ (missing:$missing)}. On Debian, as root:" >&2
        echo "  dpkg --add-architecture arm64 && apt-get update && apt-get install gcc-aarch64-linux-gnu \\" >&2
        echo "    libedit-dev:arm64 libpcre2-dev:arm64 liburing-dev:arm64 libxxhash-dev:arm64" >&2
        exit 77
    fi
    export PKG_CONFIG_LIBDIR=$libraries/pkgconfig:/usr/share/pkgconfig
    unset CFLAGS LDFLAGS CC # they are for this machine
    # The toolchain's -static is for tests; this program is linked as -static-pie.
    options=("-DCMAKE_TOOLCHAIN_FILE=$source_dir/cmake/toolchain-aarch64.cmake" "-DCMAKE_C_COMPILER=${tools}gcc"
        -DCMAKE_EXE_LINKER_FLAGS=)
fi
# A folder of tests stays one; a new one does without what only tests need.
[ -f "$build/CMakeCache.txt" ] || options+=(-DBUILD_TESTING=OFF)
"$source_dir/scripts/build.sh" "$build" --target=drey-static ${options[@]+"${options[@]}"}
mkdir -p "$dir"
version=$(sed -n 's/^project(drey VERSION \([0-9.]*\).*/\1/p' "$source_dir/CMakeLists.txt")
file=$dir/drey-$version-$arch
"${tools}strip" -o "$file.part" "$build/cli/drey-static"
mv "$file.part" "$file"
echo "$file"
