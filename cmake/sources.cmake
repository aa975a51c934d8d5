# The library's sources, folder by folder, and what they need.
include(cmake/tiers.cmake)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(XXHASH REQUIRED libxxhash) # its header alone: nothing is linked

file(GLOB_RECURSE DREY_SOURCES CONFIGURE_DEPENDS common/*.c src/*.c tune/*.c)
file(GLOB TRAIN_SOURCES CONFIGURE_DEPENDS train/*.c)
file(GLOB BENCH_SOURCES CONFIGURE_DEPENDS bench/*.c)
file(GLOB_RECURSE DREY_X86_SOURCES CONFIGURE_DEPENDS src/kernel/x86/*.c src/kernel/peaks/x86/*.c)
file(GLOB_RECURSE DREY_ARM_SOURCES CONFIGURE_DEPENDS src/kernel/arm/*.c src/kernel/peaks/arm/*.c)
list(REMOVE_ITEM DREY_SOURCES ${DREY_X86_SOURCES} ${DREY_ARM_SOURCES}
  ${CMAKE_SOURCE_DIR}/src/unit/opencl/no_opencl_api.c ${CMAKE_SOURCE_DIR}/src/ranks/mpi/mpi_transport.c
  ${CMAKE_SOURCE_DIR}/src/ranks/no_transport_load.c)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND DREY_SOURCES ${DREY_X86_SOURCES})
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  list(APPEND DREY_SOURCES ${DREY_ARM_SOURCES})
endif()

# The texts that devices compile go into the library.
foreach(name dot attend)
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/${name}_source.c
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DFOLDER=${CMAKE_SOURCE_DIR}/src/unit/opencl
      -DTO=${CMAKE_BINARY_DIR}/${name}_source.c -P ${CMAKE_SOURCE_DIR}/cmake/device_source.cmake
    DEPENDS src/unit/opencl/lanes.cl src/unit/opencl/${name}.cl cmake/device_source.cmake VERBATIM)
  list(APPEND DREY_SOURCES ${CMAKE_BINARY_DIR}/${name}_source.c)
endforeach()

# Position-independent objects make all libraries: what runs models, what trains side files for them, and what
# measures for the command alone.
function(drey_objects_of name)
  add_library(${name} OBJECT ${ARGN})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON INTERPROCEDURAL_OPTIMIZATION OFF)
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
  target_include_directories(${name} SYSTEM PUBLIC ${XXHASH_INCLUDE_DIRS})
  target_compile_definitions(${name} PRIVATE DREY_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${name} PUBLIC PkgConfig::PCRE2 PkgConfig::URING Threads::Threads m PRIVATE drey_options)
endfunction()
drey_objects_of(drey_objects ${DREY_SOURCES})
drey_objects_of(drey_train_objects ${TRAIN_SOURCES})
drey_objects_of(drey_bench_objects ${BENCH_SOURCES})

drey_tier_flags(drey_objects ${DREY_SOURCES})
# Training, the predictors' arithmetic and fits of codes are loops over lanes that -O2 leaves as they are.
# Only the trainer has floats whose order of sums is nobody's contract: fused multiply-adds are twice as fast.
set_source_files_properties(train/gemm.c train/medusa_trainer.c train/eagle_trainer.c PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=fast")
set_source_files_properties(train/adam.c train/mlp.c src/exit/features.c src/quantise/level_fit.c src/quantise/book_search.c PROPERTIES COMPILE_OPTIONS -O3)

# What is installed names drey_... alone: the objects become one, whose hidden symbols turn local, so that a program may
# have a file_open of its own. libdrey-train is libdrey and the trainers: a program links to one of the two.
# drey_internal, for the command and the tests, has everything and keeps the objects apart.
function(drey_library base output)
  set(objects "")
  foreach(part ${ARGN})
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
  endforeach()
  set(one ${CMAKE_BINARY_DIR}/${base}_localised.o)
  add_custom_command(OUTPUT ${one}
    COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${one} ${objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${one}
    DEPENDS ${ARGN} ${objects} COMMAND_EXPAND_LISTS VERBATIM)
  add_library(${base}_static STATIC ${one})
  set_target_properties(${base}_static PROPERTIES LINKER_LANGUAGE C)
  add_library(${base}_shared SHARED ${objects})
  set_target_properties(${base}_static ${base}_shared PROPERTIES OUTPUT_NAME ${output})
endfunction()
drey_library(drey drey drey_objects)
drey_library(drey_train drey-train drey_objects drey_train_objects)
add_library(drey_internal STATIC
  $<TARGET_OBJECTS:drey_objects> $<TARGET_OBJECTS:drey_train_objects> $<TARGET_OBJECTS:drey_bench_objects>)
set(DREY_INSTALLED drey_static drey_shared drey_train_static drey_train_shared)
foreach(lib drey_internal ${DREY_INSTALLED})
  target_include_directories(${lib} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${lib} PRIVATE PkgConfig::PCRE2 PkgConfig::URING Threads::Threads m $<BUILD_INTERFACE:drey_options>)
endforeach()
# Before 1.0 a new minor version may change structures; from then on only a new major one.
set(soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(soversion 0.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(drey_shared drey_train_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${soversion})
