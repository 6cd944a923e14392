// properties/seeding/seed_main.cpp: copies sources with the faults of one contract's table.
//
// Usage: seed beside|instead ROOT OUT FILE...: ROOT/FILE is read and OUT/properties/seeded/FILE
// written, if it changes. KVO_SEEDED_CONTRACT names the table: kvo::<contract>::faults().
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "properties/seeding/seeder.hpp"

namespace kvo::KVO_SEEDED_CONTRACT {
const std::vector<seeding::Fault>& faults();
}

namespace kvo::seeding {
namespace {

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// False if the file cannot be written. Leaves one alone that holds the text already.
bool write(const std::filesystem::path& file, const std::string& text) {
  if (read(file) == text) return true;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << text;
  return static_cast<bool>(out.flush());
}

int seed(Housing housing, const std::filesystem::path& root, const std::filesystem::path& out,
         const std::vector<std::string>& files) {
  const auto& faults = KVO_SEEDED_CONTRACT::faults();
  std::vector<std::string> complaints = complaints_about(faults, files);
  for (const std::string& file : files) {
    const Copy copy = copy_of(file, read(root / file), faults, files, housing);
    complaints.insert(complaints.end(), copy.complaints.begin(), copy.complaints.end());
    if (copy.complaints.empty() && !write(out / kCopies / file, copy.text))
      complaints.push_back("cannot write the copy of " + file);
  }
  for (const std::string& complaint : complaints) std::fprintf(stderr, "%s\n", complaint.c_str());
  return complaints.empty() ? 0 : 1;
}

}  // namespace
}  // namespace kvo::seeding

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  if (arguments.size() < 4 || (arguments[0] != "beside" && arguments[0] != "instead")) return 2;
  using kvo::seeding::Housing;
  return kvo::seeding::seed(arguments[0] == "beside" ? Housing::kBeside : Housing::kInstead,
                            arguments[1], arguments[2], {arguments.begin() + 3, arguments.end()});
}
