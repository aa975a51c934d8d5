#!/usr/bin/env bash
# Builds the kernels for 64-bit Arm and runs their tests under qemu: neon, dotprod and i8mm against
# the scalar reference, the reference against the bits that every architecture must produce, and the
# choice of a tier on processors with fewer instructions.
#   arm_kernels.sh BUILD_DIR
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:?a build folder}

if [ "$(uname -m)" = aarch64 ]; then
    echo "skipped: this is an Arm machine, the kernel tests run here as they are"
    exit 77
fi
if ! command -v aarch64-linux-gnu-gcc >/dev/null; then
    echo "skipped: aarch64-linux-gnu-gcc is not installed (Debian: gcc-aarch64-linux-gnu)"
    exit 77
fi
if ! command -v qemu-aarch64 >/dev/null && ! command -v qemu-aarch64-static >/dev/null; then
    echo "skipped: qemu-aarch64 is not installed (Debian: qemu-user)"
    exit 77
fi
unset CFLAGS LDFLAGS CC # they are for this machine
cmake -S tests/kernel/cross -B "$build" -G Ninja --no-warn-unused-cli \
    -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/toolchain-aarch64.cmake" >/dev/null
cmake --build "$build" -j 2
ctest --test-dir "$build" --output-on-failure --no-tests=error
