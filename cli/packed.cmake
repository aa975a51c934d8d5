# What scripts/package makes, of the same objects: the command as one file that needs no other (drey-static), and
# the library with what it links to inside (drey-bundled). Neither is built by default.
add_executable(drey-static EXCLUDE_FROM_ALL main.c typing/libedit_linked.c
  ${CMAKE_SOURCE_DIR}/src/unit/opencl/no_opencl_api.c ${CMAKE_SOURCE_DIR}/src/ranks/no_transport_load.c) # the archives' own are not taken then
target_include_directories(drey-static PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_include_directories(drey-static SYSTEM PRIVATE ${EDIT_INCLUDE_DIRS})
add_dependencies(drey-static drey_cli drey_serve drey_internal)
# Of libedit only what libedit_linked.c names: others of its names are also drey's.
set(edit ${CMAKE_CURRENT_BINARY_DIR}/edit_localised.o)
find_library(EDIT_ARCHIVE libedit.a)
add_custom_command(OUTPUT ${edit}
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${edit} -Wl,--whole-archive ${EDIT_ARCHIVE}
  COMMAND ${CMAKE_OBJCOPY} -w -G "el_*" -G "history*" ${edit} VERBATIM)
target_sources(drey-static PRIVATE ${edit})
target_link_options(drey-static PRIVATE -static-pie)
target_link_libraries(drey-static PRIVATE drey_options $<TARGET_FILE:drey_cli> $<TARGET_FILE:drey_serve>
  $<TARGET_FILE:drey_internal> pcre2-8 uring tinfo bsd md m)

add_library(drey-bundled SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:drey_objects>)
target_link_options(drey-bundled PRIVATE LINKER:--exclude-libs,ALL)
target_link_libraries(drey-bundled PRIVATE -Wl,-Bstatic pcre2-8 uring -Wl,-Bdynamic m)
