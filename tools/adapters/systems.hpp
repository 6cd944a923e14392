// tools/adapters/systems.hpp: engines whose installed release is a subject by its name.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvo::tools {

/// An engine that an adapter of the Python library drives: `python3 -m kvoracle.systems.MODULE`.
struct System {
  std::string_view name;    ///< "mlx-lm"
  std::string_view module;  ///< "mlx_lm"
  std::string_view cache;   ///< what of it is driven
};

[[nodiscard]] std::span<const System> systems();

/// Null: none has this name.
[[nodiscard]] const System* find_system(std::string_view name);

/// The file of this program.
[[nodiscard]] std::string path_of_program();

/// The shell's words that start the `python3` beside this program, or else the first on PATH. A
/// program that was built in a source tree adds the tree's Python library to the module path.
[[nodiscard]] std::string python_of_systems();

/// The shell's words that start its adapter with that Python.
[[nodiscard]] std::string command_of(const System& system);

/// Why an adapter of an engine did not start, of the error of starting it: its own last words, or
/// what to do where Python lacks the library.
[[nodiscard]] std::string why_absent(const std::string& error);

}  // namespace kvo::tools
