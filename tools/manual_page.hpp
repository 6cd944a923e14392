// tools/manual_page.hpp: the declared commands and options as a page for man(1).
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace kvo::tools {

/// All commands below `root`, in troff's language with the macros of man(7).
[[nodiscard]] std::string manual_page(const CLI::App& root);

}  // namespace kvo::tools
