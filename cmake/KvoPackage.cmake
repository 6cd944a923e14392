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

# The last step of `cmake --install`: debug information is the most of what is built. The command keeps it,
# compressed, so that it can say where it crashed; the archives keep the names of functions. The package has half
# the size then.
function(kvo_shrink_package)
  if(NOT CMAKE_OBJCOPY)
    return()
  endif()
  install(CODE "
    file(GLOB archives \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libkvo_*.a\")
    foreach(archive IN LISTS archives)
      execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --strip-debug \"\${archive}\")
    endforeach()
    execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --compress-debug-sections=zlib
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/kvoracle\")")
endfunction()
