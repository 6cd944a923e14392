// properties/seeding/seed_main.cpp: copies sources with the faults of text files.
//
// Usage: seed beside|instead ROOT OUT FILE...: as of seed(). Prints complaints.
#include <cstdio>
#include <string>
#include <vector>

#include "properties/seeding/seeder.hpp"

int main(int count, char** words) {
  using kvo::seeding::Housing;
  const std::vector<std::string> arguments(words + 1, words + count);
  if (arguments.size() < 4 || (arguments[0] != "beside" && arguments[0] != "instead")) return 2;
  const auto complaints =
      kvo::seeding::seed(arguments[0] == "beside" ? Housing::kBeside : Housing::kInstead,
                         arguments[1], arguments[2], {arguments.begin() + 3, arguments.end()});
  for (const std::string& complaint : complaints) std::fprintf(stderr, "%s\n", complaint.c_str());
  return complaints.empty() ? 0 : 1;
}
