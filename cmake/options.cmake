# Flags that every target shares. No -march: a file that needs an instruction set carries its own flags
# (cmake/sources.cmake). -ffp-contract=off: a fused multiply-add appears only where the source says fma.
add_library(drey_options INTERFACE)
target_compile_options(drey_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wvla -Wmissing-prototypes -Wstrict-prototypes
  -ffp-contract=off -fno-math-errno -fvisibility=hidden -fno-strict-aliasing)
target_compile_definitions(drey_options INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
if(DREY_WERROR)
  target_compile_options(drey_options INTERFACE -Werror)
endif()
if(DREY_SANITIZE)
  target_compile_options(drey_options INTERFACE -fsanitize=${DREY_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(drey_options INTERFACE -fsanitize=${DREY_SANITIZE})
endif()
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
