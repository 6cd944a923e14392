# Headers of others that nearly every source includes, parsed once instead of two hundred times: a
# fifth less time to compile. Off beside a compiler cache, which cannot look into them, and beside
# clang-tidy; there a header that a source forgot to include is missed.
set(KVO_PRECOMPILE OFF)
if(NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT KVO_LINT)
  set(KVO_PRECOMPILE ON)
endif()
set(KVO_COMMON_HEADERS
  <algorithm> <array> <cstdint> <deque> <functional> <map> <memory> <optional> <set> <span> <string>
  <string_view> <utility> <variant> <vector>
  <boost/container/small_vector.hpp> <boost/describe.hpp> <boost/json.hpp> <boost/mp11.hpp>
  <boost/pfr/tuple_size.hpp> <boost/system/result.hpp> <fmt/format.h>)

# One set of precompiled headers: they serve only sources compiled with the same options.
function(kvo_precompiled name)
  cmake_parse_arguments(PARSE_ARGV 1 A "UNTIMED;UNOPTIMIZED" "" "HEADERS;DEPS")
  if(NOT KVO_PRECOMPILE)
    return()
  endif()
  add_library(${name} OBJECT "${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp")
  target_precompile_headers(${name} PRIVATE ${KVO_COMMON_HEADERS} ${A_HEADERS})
  target_link_libraries(${name} PRIVATE Boost::headers Boost::json Boost::container fmt::fmt kvo_warnings ${A_DEPS})
  if(A_UNTIMED)
    kvo_untimed_target(${name})
  elseif(A_UNOPTIMIZED)
    kvo_unoptimized_target(${name})
  endif()
endfunction()
kvo_precompiled(kvo_precompiled_timed)
kvo_precompiled(kvo_precompiled_untimed UNTIMED)
if(KVO_TESTS)
  kvo_precompiled(kvo_precompiled_test
    UNOPTIMIZED HEADERS <gmock/gmock.h> <gtest/gtest.h> DEPS GTest::gmock GTest::gtest)
endif()

# kvo_unite(target): its sources are compiled 32 at a time, for what they include and instantiate alike
# takes most of their time (8 at a time take half as long again). Names of unnamed namespaces must then
# differ within the target. With a compiler cache, where sources are compiled again and again, each is
# compiled alone.
set(KVO_UNITE OFF)
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(KVO_UNITE ON)
endif()
# Sources with a UNITY_GROUP of their own are compiled with those of that group.
function(kvo_unite name)
  if(NOT KVO_UNITE)
    return()
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${name} SOURCES)
  set(count 0)
  foreach(source IN LISTS sources)
    get_source_file_property(group "${source}" UNITY_GROUP)
    if(NOT group)
      math(EXPR batch "${count} / 32")
      math(EXPR count "${count} + 1")
      set_property(SOURCE "${source}" PROPERTY UNITY_GROUP "${batch}")
    endif()
  endforeach()
endfunction()

# kvo_unite_folders(target sources): those of a folder are compiled together, for the same reason.
# Names of unnamed namespaces must differ within a folder.
function(kvo_unite_folders name)
  if(NOT KVO_UNITE)
    return()
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "in_${folder}" group)
    set_property(SOURCE "${source}" PROPERTY UNITY_GROUP "${group}")
  endforeach()
endfunction()

# kvo_alone(files): sources of this folder whose unnamed namespaces have the names of others'.
function(kvo_alone)
  set_property(SOURCE ${ARGN} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# kvo_precompile(target from): its sources use the headers of kvo_precompiled(from).
function(kvo_precompile name from)
  if(KVO_PRECOMPILE)
    target_precompile_headers(${name} REUSE_FROM ${from})
    foreach(library Boost::json Boost::container fmt::fmt)  # g++ refuses headers read otherwise
      target_compile_definitions(${name} PRIVATE
        $<TARGET_PROPERTY:${library},INTERFACE_COMPILE_DEFINITIONS>)
    endforeach()
  endif()
endfunction()
