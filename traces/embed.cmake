# Writes the bytes of files as C++ arrays: a string literal of that length is beyond what compilers
# must accept. Run as a script:
#   cmake -DINPUTS=FILE,FILE -DROOT=FOLDER -DHEADER=DECLARATION.hpp -DFUNCTION=NAMESPACE::NAME
#         -DOUTPUT=FILE.cpp -P embed.cmake
# The function returns a std::span of EmbeddedFile (traces/io/embedded_file.hpp); names are relative
# to ROOT.
string(REPLACE "," ";" inputs "${INPUTS}")
string(REPEAT "[0-9a-f]" 28 fourteen_bytes)
set(arrays "")
set(rows "")
foreach(input IN LISTS inputs)
  file(READ "${input}" bytes HEX)
  string(REGEX REPLACE "(${fourteen_bytes})" "\\1\n    " bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  list(LENGTH arrays number)
  cmake_path(RELATIVE_PATH input BASE_DIRECTORY "${ROOT}" OUTPUT_VARIABLE name)
  list(APPEND arrays "  static constexpr char kFile${number}[] = {\n    ${bytes}}")
  list(APPEND rows "    {\"${name}\", {kFile${number}, sizeof kFile${number}}},\n")
endforeach()
list(JOIN arrays "$<SEMICOLON>\n" arrays)
string(REPLACE "$<SEMICOLON>" ";" arrays "${arrays};")
list(JOIN rows "" rows)
list(LENGTH inputs count)
file(WRITE "${OUTPUT}" "#include <array>

#include \"${HEADER}\"

// NOLINTNEXTLINE(readability-function-size): a table
std::span<const kvo::traces::EmbeddedFile> ${FUNCTION}() {
${arrays}
  static constexpr std::array<kvo::traces::EmbeddedFile, ${count}> kFiles{{
${rows}}};
  return kFiles;
}
")
