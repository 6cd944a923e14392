# Writes the bytes of a file as a C++ array: a string literal of that length is beyond what
# compilers must accept. Run as a script:
#   cmake -DINPUT=FILE -DOUTPUT=FILE.cpp -P embed.cmake
file(READ "${INPUT}" bytes HEX)
string(REPEAT "[0-9a-f]" 28 fourteen_bytes)
string(REGEX REPLACE "(${fourteen_bytes})" "\\1\n    " bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE "${OUTPUT}" "#include \"traces/formats/sample.hpp\"

namespace kvo::traces {

namespace {

constexpr char kBytes[] = {
    ${bytes}};

}  // namespace

std::string_view sample_trace() { return {kBytes, sizeof kBytes}; }

}  // namespace kvo::traces
")
