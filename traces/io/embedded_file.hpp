// traces/io/embedded_file.hpp: files of this tree inside the program (traces/embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace kvo::traces {

struct EmbeddedFile {
  std::string_view name;  ///< relative to the root of the tree
  std::string_view text;
};

}  // namespace kvo::traces
