# What `cmake --install` makes of the tree: a package that find_package(kvoracle) finds.
# KvoTargets.cmake puts the targets into it.
include(CMakePackageConfigHelpers)
set(KVO_INSTALLED_HEADERS "${CMAKE_INSTALL_INCLUDEDIR}/kvoracle")
set(KVO_INSTALLED_PACKAGE "${CMAKE_INSTALL_LIBDIR}/cmake/kvoracle")

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/kvoracleConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/kvoracleConfig.cmake"
  INSTALL_DESTINATION "${KVO_INSTALLED_PACKAGE}"
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/kvoracleConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(
  FILES
    "${PROJECT_BINARY_DIR}/kvoracleConfig.cmake"
    "${PROJECT_BINARY_DIR}/kvoracleConfigVersion.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindCsv.cmake"
  DESTINATION "${KVO_INSTALLED_PACKAGE}")
install(EXPORT kvoracle
  NAMESPACE kvoracle::
  FILE kvoracleTargets.cmake
  DESTINATION "${KVO_INSTALLED_PACKAGE}")

# The last step of `cmake --install`: debug information is the most of what is built. The names of functions stay, so
# that a crash says where it was.
function(kvo_shrink_package)
  if(NOT CMAKE_OBJCOPY)
    return()
  endif()
  install(CODE "
    file(GLOB built \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libkvo_*.a\")
    list(APPEND built \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/kvoracle\")
    foreach(one IN LISTS built)
      execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --strip-debug \"\${one}\")
    endforeach()")
endfunction()
