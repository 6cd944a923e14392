# kvo_seeded_copies(result name beside|instead FAULTS files SOURCES files)
# Makes copies of SOURCES (from the root) in which the faults of FAULTS can be switched on:
# properties/seeding/fault_file.hpp. FAULTS are relative to the calling CMakeLists.txt. Of
# properties/x/faults.txt the header properties/seeded/x/faults.hpp is made, too. Copies that are
# linked instead of their sources have the same names for the linker, and headers are not among
# them. <result> gets the list of what is made.
function(kvo_seeded_copies result name housing)
  cmake_parse_arguments(PARSE_ARGV 3 A "" "" "FAULTS;SOURCES")
  kvo_check_arguments(kvo_seeded_copies ${name})
  set(out "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  list(TRANSFORM A_SOURCES PREPEND "${out}/properties/seeded/" OUTPUT_VARIABLE made)
  list(TRANSFORM A_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE originals)
  foreach(file IN LISTS A_FAULTS)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND originals "${file}")
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE from_root)
    list(APPEND faults "${from_root}")
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/properties")
    cmake_path(REPLACE_EXTENSION file .hpp)
    list(APPEND made "${out}/properties/seeded/${file}")
  endforeach()
  add_custom_command(
    OUTPUT ${made}
    COMMAND kvo_seeder ${housing} "${PROJECT_SOURCE_DIR}" "${out}" ${faults} ${A_SOURCES}
    DEPENDS kvo_seeder ${originals}
    COMMENT "Seeding faults into copies for ${name}"
    VERBATIM)
  set(${result} ${made} PARENT_SCOPE)
endfunction()

# kvo_seeded_library(name FAULTS files SOURCES files [DEPS ...])
# A static library of such copies, .hpp and .cpp, that are linked beside their sources. Targets that
# link it include its headers as "properties/seeded/<file>". Nothing without KVO_MUTANTS.
function(kvo_seeded_library name)
  if(NOT KVO_MUTANTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 A "" "" "FAULTS;SOURCES;DEPS")
  kvo_check_arguments(kvo_seeded_library ${name})
  kvo_seeded_copies(copies ${name} beside FAULTS ${A_FAULTS} SOURCES ${A_SOURCES})
  set(archive "")
  if(KVO_TAKEN_FROM)  # nobody sanitizes faults: no room is theirs
    set(KVO_ROOMS "")
    kvo_taken(archive ${name})
    set_property(SOURCE ${copies} PROPERTY HEADER_FILE_ONLY ON)
  endif()

  # Neither warned about nor linted: the originals are, in their own place.
  add_library(${name} STATIC ${copies})
  set_target_properties(${name} PROPERTIES CXX_CLANG_TIDY "" LINKER_LANGUAGE CXX)
  kvo_untimed_target(${name})
  target_compile_options(${name} PRIVATE -Wpedantic -w)  # the first for precompiled headers only
  kvo_precompile(${name} kvo_precompiled_untimed)
  kvo_unite_folders(${name} ${copies})
  target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  target_include_directories(${name} SYSTEM PUBLIC "$<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/${name}>")
  target_link_libraries(${name} INTERFACE "$<BUILD_INTERFACE:${archive}>" PUBLIC ${A_DEPS})
  target_compile_features(${name} PUBLIC cxx_std_20)
  kvo_export(${name})  # the archive, because mutants link it; the headers of the copies are ours
endfunction()
