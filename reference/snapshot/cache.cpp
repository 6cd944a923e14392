#include "reference/snapshot/cache.hpp"

namespace kvo::snapshot {

std::int64_t size_of(const SnapshotPtr& snapshot) {
  if (snapshot == nullptr) return 0;
  const Content content = snapshot->content();
  return bytes_of(content.first) + bytes_of(content.second);
}

Error closed_error(QuirkSet<Quirk> quirks) {
  const bool aborts = quirks.has(Quirk::kSecondCloseAborts);
  return fail(aborts ? Code::kPrecondition : Code::kClosed, "snapshot");
}

}  // namespace kvo::snapshot
