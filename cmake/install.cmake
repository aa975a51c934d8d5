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
install(FILES include/drey/drey.h include/drey/chat.h include/drey/tune.h include/drey/train.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/drey)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(EXISTS ${CMAKE_SOURCE_DIR}/docs/reference/drey.1)
  install(FILES docs/reference/drey.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
if(EXISTS ${CMAKE_SOURCE_DIR}/completions)
  install(FILES completions/drey.bash RENAME drey
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
  install(FILES completions/_drey DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
  install(FILES completions/drey.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d OPTIONAL)
endif()

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
