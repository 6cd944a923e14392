#include "reference/snapshot/cache.hpp"

namespace kvo::snapshot {

std::int64_t size_of(const SnapshotPtr& snapshot) {
  if (snapshot == nullptr) return 0;
  const Content content = snapshot->content();
  return bytes_of(content.first) + bytes_of(content.second);
}

Result<SnapshotPtr> merged_states(const SnapshotPtr& parent, const SnapshotPtr& child,
                                  QuirkSet<Quirk> quirks) {
  if (child == nullptr && !quirks.has(Quirk::kMergeDestroysParent)) return parent;
  if (parent != nullptr && parent == child && !quirks.has(Quirk::kSecondCloseAborts))
    return fail(Code::kBadPosition, "child");
  if (parent != nullptr) (void)parent->close();
  return child;
}

Error closed_error(QuirkSet<Quirk> quirks) {
  const bool aborts = quirks.has(Quirk::kSecondCloseAborts);
  return fail(aborts ? Code::kPrecondition : Code::kClosed, "snapshot");
}

}  // namespace kvo::snapshot
