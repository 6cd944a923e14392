# kvo_seeded_copies(result name beside|instead CONTRACT c FAULTS files SOURCES files)
# Makes copies of SOURCES (from the root) in which the faults of a contract's table can be switched
# on: properties/seeding/fault.hpp. FAULTS define kvo::<c>::faults(); they are relative to the
# calling CMakeLists.txt. The copies that stand instead of their sources have the same names for the
# linker, and headers are not among them. <result> gets the list of the copies.
function(kvo_seeded_copies result name housing)
  cmake_parse_arguments(PARSE_ARGV 3 A "" "CONTRACT" "FAULTS;SOURCES")
  kvo_check_arguments(kvo_seeded_copies ${name})
  add_executable(${name}_seeder ${A_FAULTS})
  target_compile_definitions(${name}_seeder PRIVATE KVO_SEEDED_CONTRACT=${A_CONTRACT})
  kvo_unoptimized_target(${name}_seeder)
  target_link_libraries(${name}_seeder PRIVATE kvo_seeder kvo_warnings)

  set(out "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  list(TRANSFORM A_SOURCES PREPEND "${out}/properties/seeded/" OUTPUT_VARIABLE copies)
  list(TRANSFORM A_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE originals)
  add_custom_command(
    OUTPUT ${copies}
    COMMAND ${name}_seeder ${housing} "${PROJECT_SOURCE_DIR}" "${out}" ${A_SOURCES}
    DEPENDS ${name}_seeder ${originals}
    COMMENT "Seeding faults into copies of ${A_CONTRACT}"
    VERBATIM)
  set(${result} ${copies} PARENT_SCOPE)
endfunction()

# kvo_seeded_library(name CONTRACT c FAULTS files SOURCES files [DEPS ...])
# A static library of such copies, .hpp and .cpp, that stand beside their sources. Those who link it
# include its headers as "properties/seeded/<file>".
function(kvo_seeded_library name)
  cmake_parse_arguments(PARSE_ARGV 1 A "" "CONTRACT" "FAULTS;SOURCES;DEPS")
  kvo_check_arguments(kvo_seeded_library ${name})
  kvo_seeded_copies(copies ${name} beside
    CONTRACT ${A_CONTRACT} FAULTS ${A_FAULTS} SOURCES ${A_SOURCES})

  # Neither warned about nor linted: what the copies are made of is, in its own place.
  add_library(${name} STATIC ${copies} ${A_FAULTS})
  set_target_properties(${name} PROPERTIES CXX_CLANG_TIDY "")
  kvo_untimed_target(${name})
  target_compile_options(${name} PRIVATE -Wpedantic -w)  # the first for precompiled headers only
  kvo_precompile(${name} kvo_precompiled_untimed)
  kvo_unite_folders(${name} ${copies})
  target_include_directories(${name} PUBLIC
    "$<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/${name}>" "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  target_link_libraries(${name} PUBLIC ${A_DEPS})
  target_compile_features(${name} PUBLIC cxx_std_20)
  kvo_export(${name})  # the archive, because mutants link it; the headers of the copies are ours
endfunction()
