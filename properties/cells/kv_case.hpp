// properties/cells/kv_case.hpp: what a random case of cells.kv or cells.iswa is set up with.
#pragma once

#include <cstdint>
#include <vector>

#include "properties/campaign/generator.hpp"
#include "reference/cells/operations.hpp"

namespace kvo::cells {

/// Config and habits of one case.
struct KvCase {
  Record config;
  KvOptions options;  ///< what the config asks for
  bool real = false;
  std::vector<std::int64_t> sequences = {};  ///< those that most operations name
  std::int32_t first_position = 0;           ///< where new sequences begin, if not at 0

  [[nodiscard]] bool has_window() const { return options.window.type != WindowType::kNone; }
  /// Cells of a stream of the half with the window, or of the only one.
  [[nodiscard]] std::int64_t narrow() const { return options.size_window.value_or(options.size); }
  /// Cells of all streams and halves.
  [[nodiscard]] std::int64_t all_cells() const {
    return options.streams() * (options.size + options.size_window.value_or(0));
  }
};

/// Draws a case of `cells.kv`, or with `pair` of `cells.iswa`.
[[nodiscard]] KvCase draw_case(Draw& draw, bool pair, Scale scale);

}  // namespace kvo::cells
