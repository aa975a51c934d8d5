# Cross building for 64-bit Arm with Debian's compiler, for running under qemu-user:
#   cmake -S tests/kernel/cross -B build-arm -DCMAKE_TOOLCHAIN_FILE=$PWD/cmake/toolchain-aarch64.cmake
# Static, so that the emulator needs no Arm libraries.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
find_program(QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static)
if(QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${QEMU_AARCH64} -cpu max)
endif()
