// tools/completion.hpp: the declared commands and options as a script that completes command lines.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace kvo::tools {

/// By what an option takes ("SUBJECT", "LAW"): the words that there are.
using KnownWords = std::map<std::string, std::vector<std::string>>;

/// A script for bash that completes commands, options and what they take. What takes a FILE or
/// FOLDER is left to bash.
[[nodiscard]] std::string bash_completion(const CLI::App& root, const KnownWords& known);

}  // namespace kvo::tools
