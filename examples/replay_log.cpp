// Replays a recorded log on every subject of its contract, in constant memory.
#include <cstdio>

#include "properties/campaign/conform.hpp"
#include "properties/contracts.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const kvo::Contracts& contracts = kvo::contracts();
  auto log = kvo::traces::LogReader::open(argv[1], contracts.kind_finder());
  int faults = 0;
  while (log) {
    const auto result = kvo::conform_next(
        contracts, *log, [&](const kvo::CacheKind& kind) { return contracts.subjects_of(kind); });
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
