#include <algorithm>

#include "tools/tidy/rules.hpp"

namespace kvo::tidy {
namespace {

bool excuses(const NotYet& row, const std::string& complaint) {
  return complaint.starts_with(row.path + ":") && complaint.find(row.what) != std::string::npos;
}

}  // namespace

const std::vector<NotYet>& not_yet() {
  static const std::vector<NotYet> kNotYet{
      // Whatever a subject throws becomes what was observed of it.
      {"reference/contract/subject/dispatch.cpp", "swallows verdicts"},
      {"reference/contract/subject/dispatch.hpp", "swallows verdicts"},
      // NO_COLOR and TERM are asked for by every terminal program.
      {"tools/console.cpp", "use an option"},
      // CTest hands no options to a test.
      {"tools/testing/environment.hpp", "use an option"},
  };
  return kNotYet;
}

Complaints without(const std::vector<NotYet>& excused, Complaints complaints) {
  std::erase_if(complaints, [&excused](const std::string& text) {
    return std::ranges::any_of(excused, [&text](const NotYet& row) { return excuses(row, text); });
  });
  return complaints;
}

Complaints unused(const std::vector<NotYet>& excused, const Complaints& complaints) {
  Complaints left;
  for (const NotYet& row : excused)
    if (std::ranges::none_of(complaints,
                             [&row](const std::string& text) { return excuses(row, text); }))
      left.push_back(row.path + ": " + row.what);
  return left;
}

}  // namespace kvo::tidy
