# DREY_BUILT_FROM: what `drey --version` adds to the version, " (COMMIT)" where a checkout of git is built; nothing where
# a source tarball is, even if it was unpacked inside another checkout. Each commit lets cmake run again, and main.c alone
# is compiled with it.
set(DREY_BUILT_FROM "")
find_program(GIT git)
mark_as_advanced(GIT)
function(git_says out)
  execute_process(COMMAND ${GIT} ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${out} "${said}" PARENT_SCOPE)
endfunction()
if(GIT AND EXISTS ${CMAKE_SOURCE_DIR}/.git) # a folder, or in a work tree a file
  git_says(commit rev-parse --short HEAD)
  git_says(log rev-parse --git-path logs/HEAD)
  if(commit)
    set(DREY_BUILT_FROM " (${commit})")
  endif()
  cmake_path(ABSOLUTE_PATH log BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
  if(EXISTS ${log})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
  endif()
endif()
set_source_files_properties(main.c PROPERTIES COMPILE_DEFINITIONS "DREY_BUILT_FROM=\"${DREY_BUILT_FROM}\"")
