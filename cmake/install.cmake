# What `cmake --install` puts where: the libraries, their headers, the command, its man page and shell
# completions, and files for pkg-config and find_package. All paths inside are relative to the
# files, so that an installed tree can be moved.
include(CMakePackageConfigHelpers)

set_target_properties(drey_shared PROPERTIES EXPORT_NAME drey)
set_target_properties(drey_static PROPERTIES EXPORT_NAME static)
set_target_properties(drey_train_shared PROPERTIES EXPORT_NAME train)
set_target_properties(drey_train_static PROPERTIES EXPORT_NAME train-static)
install(TARGETS ${DREY_INSTALLED} EXPORT drey-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS drey RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/drey DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_BINARY_DIR}/drey.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
# Shell completions are what the built command prints, in a cross build by an emulator.
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(STATUS "cross build: shell completions are not installed; drey --completion bash|zsh|fish prints them")
else()
  foreach(completion bash/bash-completion/completions/drey zsh/zsh/site-functions/_drey
      fish/fish/vendor_completions.d/drey.fish)
    string(REGEX MATCH "^([a-z]+)/(.*)/([^/]+)$" whole ${completion})
    set(shell ${CMAKE_MATCH_1})
    set(folder ${CMAKE_INSTALL_DATADIR}/${CMAKE_MATCH_2})
    set(file ${CMAKE_BINARY_DIR}/completions/${CMAKE_MATCH_3})
    add_custom_command(OUTPUT ${file} COMMAND drey --completion ${shell} > ${file} DEPENDS drey)
    list(APPEND completion_files ${file})
    install(FILES ${file} DESTINATION ${folder})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/completions)
  add_custom_target(completions ALL DEPENDS ${completion_files})
endif()

# What is linked to the shared libraries starts at once: the linker's cache learns of them, unless this is an installation
# into another root (a package's), or into a folder that is none of the system's.
install(CODE [[
  if("$ENV{DESTDIR}" STREQUAL "" AND CMAKE_INSTALL_PREFIX MATCHES "^/usr(/local)?/?$")
    execute_process(COMMAND /sbin/ldconfig RESULT_VARIABLE failed)
    if(failed)
      message("run as root, once: ldconfig")
    endif()
  endif()]])
# cmake --build BUILD_DIR --target uninstall removes what the last installation wrote.
add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DMANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt
  -P ${CMAKE_SOURCE_DIR}/cmake/uninstall.cmake VERBATIM)

# find_package(drey): targets drey::drey (shared) and drey::static; drey::train and drey::train-static have the
# trainers as well.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/drey)
install(EXPORT drey-targets NAMESPACE drey:: DESTINATION ${package_dir})
configure_package_config_file(cmake/drey-config.cmake.in ${CMAKE_BINARY_DIR}/drey-config.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# As the soname: before 1.0 the minor version, then the major one.
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
endif()
write_basic_package_version_file(${CMAKE_BINARY_DIR}/drey-config-version.cmake
  COMPATIBILITY ${compatibility})
install(FILES ${CMAKE_BINARY_DIR}/drey-config.cmake ${CMAKE_BINARY_DIR}/drey-config-version.cmake
  DESTINATION ${package_dir})

# pkg-config drey, or drey-train in its place: the way from the .pc file's own folder to the prefix.
file(RELATIVE_PATH pc_to_prefix
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
foreach(package drey drey-train)
  configure_file(cmake/drey.pc.in ${CMAKE_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
