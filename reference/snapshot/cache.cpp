#include "reference/snapshot/cache.hpp"

namespace kvo::snapshot {

std::int64_t size_of(const SnapshotPtr& snapshot) {
  if (snapshot == nullptr) return 0;
  const Content content = snapshot->content();
  return bytes_of(content.first) + bytes_of(content.second);
}

Status can_store(const MakeCaches& make, const StorageFormat& format) {
  if (Status known = check(format); !known) return known;
  return make.stores ? make.stores(format) : Status();
}

Result<Pair> as_stored(const StorageFormat& format, const Array& k, const Array& v,
                       QuirkSet<Quirk> quirks) {
  std::optional<Array> keys = stored(format, k);
  std::optional<Array> values = stored(format, v);
  if (keys && values) return Pair{*std::move(keys), *std::move(values)};
  return fail(quirks.has(Quirk::kMisfitIsSilent) ? Code::kPrecondition : Code::kBadShape,
              "k, v: not f32 of four axes");
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
