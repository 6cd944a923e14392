# The helpers every room declares its targets with. Source names are written out, relative to the
# calling CMakeLists.txt: the tidy test looks for them.
include(GoogleTest)

# Warnings for our own code. Headers of others come from imported targets and so are system headers.
add_library(kvo_warnings INTERFACE)
# Untimed sources go without where another preset warns of them (KVO_UNTIMED_WARNINGS): they take a
# twentieth of the time to compile.
set(warned "$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:KVO_UNWARNED>>>>")
target_compile_options(kvo_warnings INTERFACE
  $<${warned}:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${KVO_WERROR}>>:-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wconversion>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${KVO_WERROR}>>:--Werror=all-warnings>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # Wrong for operator+ of a literal and a string (GCC bug 105651).
  target_compile_options(kvo_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # A generator has an observe() for each operation beside the virtual one, which calls them.
  target_compile_options(kvo_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-overloaded-virtual>)
endif()
if(KVO_WERROR AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # These depend on what was inlined and are often wrong beside sanitizers: shown, not fatal.
  target_compile_options(kvo_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:
    -Wno-error=array-bounds;-Wno-error=dangling-pointer;-Wno-error=free-nonheap-object;
    -Wno-error=maybe-uninitialized;-Wno-error=stringop-overflow;-Wno-error=stringop-overread;
    -Wno-error=use-after-free>)
endif()

if(KVO_LINT)
  find_program(KVO_CLANG_TIDY NAMES clang-tidy-14 clang-tidy REQUIRED)
  # The flags are g++'s; clang need not know all of them.
  set(CMAKE_CXX_CLANG_TIDY
    "${KVO_CLANG_TIDY};--quiet;--extra-arg=-Wno-unknown-warning-option")
endif()

# gold links programs in half the time that the default linker takes.
if(KVO_LINKER)
  find_program(KVO_LINKER_PROGRAM "ld.${KVO_LINKER}")
  if(KVO_LINKER_PROGRAM)
    add_link_options($<$<LINK_LANGUAGE:CXX>:-fuse-ld=${KVO_LINKER}>)
  endif()
endif()

# What `ctest -L concurrency` needs; kvo_test adds to it.
add_custom_target(concurrency_tests)
# What `cmake --install` needs; tools/run builds it.
add_custom_target(installed)

function(kvo_check_arguments helper name)
  if(A_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${helper}(${name}): unknown arguments: ${A_UNPARSED_ARGUMENTS}")
  endif()
endfunction()

# A target whose speed nobody measures.
function(kvo_untimed_target name)
  separate_arguments(flags UNIX_COMMAND "${KVO_UNTIMED_FLAGS}")
  target_compile_options(${name} PRIVATE ${flags})
  if(NOT KVO_UNTIMED_WARNINGS)
    set_target_properties(${name} PROPERTIES KVO_UNWARNED ON)
  endif()
endfunction()
# One of which not even the harness's speed depends: a test.
# clang compiles it in half the time that g++ takes, and what both make links together.
if(KVO_QUICK_TESTS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(KVO_QUICK_COMPILER NAMES clang++-14 clang++)
endif()
function(kvo_unoptimized_target name)
  kvo_untimed_target(${name})
  target_compile_options(${name} PRIVATE -O0)
  if(KVO_QUICK_COMPILER)
    set_target_properties(${name} PROPERTIES
      CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/instead;${KVO_QUICK_COMPILER}")
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-warning-option>)
  endif()
endfunction()
include(KvoPrecompile)

# Puts a target into the package: kvo_tools is kvoracle::tools there, and in this tree too. Further
# arguments go to install(TARGETS). Installed headers are <kvoracle/..>, and include each other as they do here,
# from the root.
function(kvo_export name)
  string(REGEX REPLACE "^kvo_" "" short "${name}")
  set_target_properties(${name} PROPERTIES EXPORT_NAME "${short}")
  add_library(kvoracle::${short} ALIAS ${name})
  add_dependencies(installed ${name})
  install(TARGETS ${name} EXPORT kvoracle
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    OBJECTS DESTINATION "${CMAKE_INSTALL_LIBDIR}/kvoracle"
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" "${KVO_INSTALLED_HEADERS}"
    ${ARGN})
endfunction()

# kvo_taken(result name): the archive of a library that this tree does not compile: with KVO_TAKEN_FROM those of
# all folders but KVO_ROOMS.
function(kvo_taken result name)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE folder)
  string(REGEX REPLACE "/.*" "" room "${folder}")
  set(archive "")
  if(KVO_TAKEN_FROM AND NOT room IN_LIST KVO_ROOMS)
    set(archive "${KVO_TAKEN_FROM}/${folder}/lib${name}.a")
  endif()
  set(${result} "${archive}" PARENT_SCOPE)
endfunction()

# kvo_library(name [SOURCES ...] [UNTIMED ...] [HEADERS ...] [DEPS ...] [PRECOMPILED set])
# A static library; without sources a header-only one. Headers and archive are in the package.
# UNTIMED: further sources, whose speed nobody measures (sessions, generators, laws). They are
# compiled with KVO_UNTIMED_FLAGS: a quarter less time to compile in release, a third in dev.
# Not without any optimization: of an inline function the linker takes the first copy that it meets,
# also for the harness. PRECOMPILED: the headers that they use (KvoPrecompile.cmake).
function(kvo_library name)
  cmake_parse_arguments(PARSE_ARGV 1 A "" "PRECOMPILED" "SOURCES;UNTIMED;HEADERS;DEPS")
  if(NOT A_PRECOMPILED)
    set(A_PRECOMPILED kvo_precompiled_untimed)
  endif()
  kvo_check_arguments(kvo_library ${name})
  kvo_taken(archive ${name})
  if(archive)
    set_property(SOURCE ${A_SOURCES} ${A_UNTIMED} PROPERTY HEADER_FILE_ONLY ON)
  endif()
  if(A_SOURCES OR A_UNTIMED)
    set(scope PUBLIC)
    add_library(${name} STATIC ${A_SOURCES})
    target_link_libraries(${name} INTERFACE "$<BUILD_INTERFACE:${archive}>")
    target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:kvo_warnings>)
    if(A_SOURCES)
      kvo_precompile(${name} kvo_precompiled_timed)
      kvo_unite_folders(${name} ${A_SOURCES})
    endif()
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
    if(A_UNTIMED)
      add_library(${name}_untimed OBJECT ${A_UNTIMED})
      kvo_untimed_target(${name}_untimed)
      kvo_precompile(${name}_untimed ${A_PRECOMPILED})
      kvo_unite(${name}_untimed)
      target_include_directories(${name}_untimed PRIVATE "${PROJECT_SOURCE_DIR}")
      target_link_libraries(${name}_untimed PRIVATE ${A_DEPS} kvo_warnings)
      target_sources(${name} PRIVATE $<TARGET_OBJECTS:${name}_untimed>)
    endif()
  else()
    set(scope INTERFACE)
    add_library(${name} INTERFACE)
  endif()
  target_sources(${name} ${scope}
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${A_HEADERS})
  target_include_directories(${name} ${scope} "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  target_link_libraries(${name} ${scope} ${A_DEPS})
  target_compile_features(${name} ${scope} cxx_std_20)
  kvo_export(${name} FILE_SET HEADERS DESTINATION "${KVO_INSTALLED_HEADERS}")
endfunction()

# kvo_embed(output header function file...)
# Makes a source that defines `function`, declared in `header`: the files' names and bytes.
function(kvo_embed output header function)
  list(JOIN ARGN "," inputs)
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DINPUTS=${inputs}" "-DROOT=${PROJECT_SOURCE_DIR}"
            "-DHEADER=${header}" "-DFUNCTION=${function}" "-DOUTPUT=${output}"
            -P "${PROJECT_SOURCE_DIR}/traces/embed.cmake"
    DEPENDS ${ARGN} "${PROJECT_SOURCE_DIR}/traces/embed.cmake"
    COMMENT "Embedding files for ${function}"
    VERBATIM)
endfunction()

# A test program as so many CTest tests (default 1), each of which runs every n-th of its tests.
function(kvo_whole_program name shards labels environment)
  if(NOT shards)
    set(shards 1)
  endif()
  foreach(shard RANGE 1 ${shards})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}.${shard} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name}.${shard} PROPERTIES LABELS "${labels}" TIMEOUT 900
      ENVIRONMENT "${environment};GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# kvo_test(name LABEL unit [more labels] SOURCES ... [DEPS ...] [ENVIRONMENT NAME=VALUE ...]
#          [SHARDS n])
# A GoogleTest program with its main; each of n shards of it is a CTest test that carries the labels.
# Each TEST of a program labelled cuda is one, so that CTest says which were skipped for want of a
# card. Its sources are untimed. A program with a label in KVO_LABELS_LEFT_OUT is not built.
function(kvo_test name)
  if(NOT KVO_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 A "" "SHARDS" "LABEL;SOURCES;DEPS;ENVIRONMENT")
  kvo_check_arguments(kvo_test ${name})
  if(NOT A_LABEL)
    message(FATAL_ERROR "kvo_test(${name}): LABEL is missing")
  endif()
  foreach(label IN LISTS A_LABEL)
    if(label IN_LIST KVO_LABELS_LEFT_OUT)
      return()
    endif()
  endforeach()
  add_executable(${name} ${A_SOURCES})
  kvo_unoptimized_target(${name})
  kvo_precompile(${name} kvo_precompiled_test)
  kvo_unite(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${A_DEPS} kvo_warnings GTest::gmock_main GTest::gtest)
  if("concurrency" IN_LIST A_LABEL)
    add_dependencies(concurrency_tests ${name})
  endif()
  if(NOT "cuda" IN_LIST A_LABEL)
    kvo_whole_program(${name} "${A_SHARDS}" "${A_LABEL}" "${A_ENVIRONMENT}")
    return()
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
  # gtest_discover_tests takes lists apart, so these two are set when ctest reads the tests.
  set(more "${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake")
  file(CONFIGURE OUTPUT "${more}" @ONLY CONTENT [=[
foreach(test IN LISTS @name@_TESTS)
  set_tests_properties("${test}" PROPERTIES
    LABELS [==[@A_LABEL@]==] ENVIRONMENT [==[@A_ENVIRONMENT@]==])
endforeach()
]=])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${more}")
endfunction()

# kvo_benchmark(name SOURCES ... [DEPS ...])
# A Google Benchmark program with its main.
function(kvo_benchmark name)
  if(NOT KVO_BENCHMARKS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 A "" "" "SOURCES;DEPS")
  kvo_check_arguments(kvo_benchmark ${name})
  add_executable(${name} ${A_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  kvo_precompile(${name} kvo_precompiled_timed)
  target_link_libraries(${name} PRIVATE ${A_DEPS} kvo_warnings benchmark::benchmark_main)
endfunction()
