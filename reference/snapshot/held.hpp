// reference/snapshot/held.hpp: snapshots of the reference caches of rows.
#pragma once

#include <memory>
#include <utility>

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

/// A snapshot that holds its content. `Issuer` sets the kinds apart (MR-5).
template <class Issuer>
class Held final : public Snapshot {
 public:
  Held(Content content, QuirkSet<Quirk> quirks, std::int64_t window = 0)
      : content_(std::move(content)), quirks_(quirks), window_(window) {}
  [[nodiscard]] Content content() const override { return content_; }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] Status close() override {
    if (closed_) return closed_error(quirks_);
    closed_ = true;
    content_ = {};
    return {};
  }
  /// Closed, but its content can still be looked at (MR-28, profile original).
  void close_and_keep() { closed_ = true; }
  /// Of the ring that it was taken of.
  [[nodiscard]] std::int64_t window() const { return window_; }

 private:
  Content content_;
  QuirkSet<Quirk> quirks_;
  std::int64_t window_;
  bool closed_ = false;
};

}  // namespace kvo::snapshot
