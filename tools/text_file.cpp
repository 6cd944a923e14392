#include "tools/text_file.hpp"

#include "tools/console.hpp"
#include "tools/usage.hpp"
#include "traces/io/output_file.hpp"

namespace kvo::tools {

void write_text_file(const std::string& path, std::string_view text) {
  if (path == kStandardOutput) return print_out(text);
  auto file = must(traces::OutputFile::open(path));
  must(file.write(text));
  must(file.commit());
}

}  // namespace kvo::tools
