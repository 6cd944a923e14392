// tools/reports/failure_text.hpp: a failure as people read it, on the console and in JUnit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "properties/runner/case_result.hpp"

namespace kvo::tools {

/// A line an operation with its number in the original script and its marks, notes below it.
[[nodiscard]] std::vector<std::string> script_text(const Shrunk& shrunk);

/// The case that a failure is shown from.
struct FailedCase {
  std::string_view name;
  std::string_view law;            ///< of the case
  std::uint64_t operations = 0;    ///< of its script
  std::string_view config = "{}";  ///< what is not default, as JSON
};

/// What happened: the law with its sentence, the config, the operation in the script as found and
/// in the shrunk one, that script, and the rules of the operation. `law_doc`: the sentence of the
/// law that SubjectResult::last_law names.
[[nodiscard]] std::vector<std::string> failure_text(const FailedCase& found,
                                                    const SubjectResult& result,
                                                    std::string_view law_doc);

}  // namespace kvo::tools
