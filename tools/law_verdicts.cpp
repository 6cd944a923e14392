#include "tools/law_verdicts.hpp"

#include <algorithm>

namespace kvo::tools {

bool says_something(const SubjectRecord& subject) {
  const Evidence& evidence = subject.evidence;
  const bool agrees = subject.outcome == Outcome::kAgrees;
  return kvo::failed(subject.outcome) ||
         (agrees && evidence.compared + evidence.judged + evidence.failures > 0);
}

LawVerdict& LawVerdicts::row_of(const std::string& subject, const std::string& law) {
  const auto known = std::ranges::find_if(
      rows_, [&](const LawVerdict& row) { return row.subject == subject && row.law == law; });
  return known != rows_.end() ? *known
                              : rows_.emplace_back(LawVerdict{.subject = subject, .law = law});
}

void LawVerdicts::add(const CaseRecord& record) {
  for (const SubjectRecord& subject : record.subjects) {
    LawVerdict& row = row_of(subject.subject, record.law);
    ++row.cases;
    row.judged += says_something(subject) ? 1 : 0;
    row.failed += kvo::failed(subject.outcome) ? 1 : 0;
    row.died += subject.outcome == Outcome::kDied ? 1 : 0;
    for (const TimingRecord& timing : subject.timings) row.nanoseconds += timing.total_nanoseconds;
  }
}

}  // namespace kvo::tools
