// reference/snapshot/usable.hpp: who may use which snapshot.
#pragma once

#include "reference/snapshot/cache.hpp"

namespace kvo::snapshot {

/// Whether a snapshot, which may be null, can be used by a cache whose snapshots are `Own`.
/// Errors  kNotSupported: of another kind (MR-5); kClosed, with kSecondCloseAborts kPrecondition:
///         given up (MR-4).
template <class Own>
[[nodiscard]] Status usable(const SnapshotPtr& snapshot, QuirkSet<Quirk> quirks) {
  if (snapshot == nullptr) return {};
  if (dynamic_cast<const Own*>(snapshot.get()) == nullptr)
    return fail(Code::kNotSupported, "a snapshot of another kind");
  if (snapshot->closed()) return closed_error(quirks);
  return {};
}

}  // namespace kvo::snapshot
