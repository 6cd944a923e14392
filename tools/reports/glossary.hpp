// tools/reports/glossary.hpp: every name that output shows, with its meaning: for `explain`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "properties/campaign/contracts.hpp"
#include "traces/io/embedded_file.hpp"

namespace kvo::tools {

/// A word of the output that no contract defines: a column, an outcome, an error code.
struct Term {
  std::string name;
  std::string sort;  ///< "column of run and check"
  std::string text;  ///< one or two sentences
};

/// Those of terms.txt.
[[nodiscard]] const std::vector<Term>& terms();
/// That file.
[[nodiscard]] std::span<const traces::EmbeddedFile> term_files();

/// A name, and one thing that it means.
struct Meaning {
  std::string name;
  std::string sort;  ///< "rule of positional", "law", "state"
  std::string text;  ///< lines, each ended by LF
};

/// Rules, laws, states, quirks, mutants, caches and terms, in this order. A name may have several
/// meanings.
[[nodiscard]] std::vector<Meaning> meanings(const Contracts& contracts);

/// Whether both are one name: case, blanks and the signs - _ do not matter.
[[nodiscard]] bool same_name(std::string_view one, std::string_view other);

}  // namespace kvo::tools
