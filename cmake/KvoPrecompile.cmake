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
  cmake_parse_arguments(PARSE_ARGV 1 A "UNTIMED" "" "HEADERS;DEPS")
  if(NOT KVO_PRECOMPILE)
    return()
  endif()
  add_library(${name} OBJECT "${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp")
  target_precompile_headers(${name} PRIVATE ${KVO_COMMON_HEADERS} ${A_HEADERS})
  target_link_libraries(${name} PRIVATE Boost::headers Boost::json Boost::container fmt::fmt kvo_warnings ${A_DEPS})
  if(A_UNTIMED)
    kvo_untimed_target(${name})
  endif()
endfunction()
kvo_precompiled(kvo_precompiled_timed)
kvo_precompiled(kvo_precompiled_untimed UNTIMED)
if(KVO_TESTS)
  kvo_precompiled(kvo_precompiled_test
    UNTIMED HEADERS <gmock/gmock.h> <gtest/gtest.h> DEPS GTest::gmock GTest::gtest)
  if(KVO_PRECOMPILE)
    target_compile_options(kvo_precompiled_test PRIVATE -O0)
  endif()
endif()

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
