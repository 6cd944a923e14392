// Replays a recorded log on every subject of its contract, in constant memory.
#include <cstdio>

#include "properties/all_subjects.hpp"
#include "properties/conform.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto log = kvo::traces::LogReader::open(argv[1], kvo::find_kind);
  int faults = 0;
  while (log) {
    const auto result = kvo::conform_next(*log, kvo::subjects_of, kvo::Profile::kOriginal);
    if (!result) {
      std::fprintf(stderr, "%s\n", result.error().text().c_str());
      return 2;
    }
    if (!*result) break;
    for (const kvo::SubjectResult& subject : (*result)->subjects) {
      if (!subject.verdict.failed()) continue;
      ++faults;
      std::printf("%s: %s: %s\n", (*result)->name.c_str(), subject.subject.c_str(),
                  subject.verdict.text().c_str());
    }
  }
  std::printf("%d faults\n", faults);
  return log && faults == 0 ? 0 : 1;
}
