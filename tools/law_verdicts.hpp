// tools/law_verdicts.hpp: how each subject came out of each law, over all cases.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/run_file.hpp"

namespace kvo::tools {

/// Whether an outcome rests on anything: a failure speaks for itself.
[[nodiscard]] bool says_something(const SubjectRecord& subject);

/// One subject under one law.
struct LawVerdict {
  std::string subject;
  std::string law;
  std::uint64_t cases = 0;
  std::uint64_t judged = 0;       ///< cases whose outcome rests on something
  std::uint64_t failed = 0;       ///< cases, those in which it died included
  std::uint64_t died = 0;         ///< cases
  std::uint64_t nanoseconds = 0;  ///< that its operations took
};

/// Adds cases up.
class LawVerdicts {
 public:
  void add(const CaseRecord& record);
  /// In order of first appearance.
  [[nodiscard]] const std::vector<LawVerdict>& rows() const { return rows_; }

 private:
  LawVerdict& row_of(const std::string& subject, const std::string& law);

  std::vector<LawVerdict> rows_;
};

}  // namespace kvo::tools
