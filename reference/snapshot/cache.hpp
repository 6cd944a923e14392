// reference/snapshot/cache.hpp: the contract `snapshot`: the state of one layer, of which snapshots
// can be taken, restored, merged and split.
//
// Words    offset     tokens that the layer has seen.
//          snapshot   the content of a cache at a moment; it lives on its own (MR-3).
//          merge, split  take over their inputs: those are closed, or come out again (MR-4).
// Shapes   keys and values are [B, H, S, D], S tokens; a recurrent state is conv [batch, conv_tail,
//          conv_dim] and delta [batch, num_v_heads, head_v_dim, head_k_dim].
// Views    what an array shows never changes, with one exception (MR-23).
// Threads  none.
// Source   rules MR-1 to MR-49.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "reference/contract/describe/describe.hpp"
#include "reference/contract/values/result.hpp"
#include "reference/snapshot/arrays.hpp"
#include "reference/snapshot/quirks.hpp"

namespace kvo::snapshot {

/// What a snapshot holds. Numbers that its kind does not have are absent.
struct Content {  // NOLINT(bugprone-exception-escape): as Tensor
  std::optional<std::int64_t> from = std::nullopt;
  std::optional<std::int64_t> to = std::nullopt;
  std::optional<std::int64_t> idx = std::nullopt;     ///< slot that a ring writes next
  std::optional<std::int64_t> offset = std::nullopt;  ///< of a recurrent state
  Array first;                                        ///< keys, or conv
  Array second;                                       ///< values, or delta
};

/// A snapshot of any cache. It is shared by whoever knows it, but closed once.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  /// Requires  it is not closed.
  [[nodiscard]] virtual Content content() const = 0;
  [[nodiscard]] virtual bool closed() const = 0;
  /// Gives the content up (MR-4, MR-48).
  /// Errors  kClosed, with kSecondCloseAborts kPrecondition: it was given up before.
  [[nodiscard]] virtual Status close() = 0;
};
using SnapshotPtr = std::shared_ptr<Snapshot>;  ///< null: no snapshot

/// The bytes that a snapshot counts for; 0 of none (MR-A7).
[[nodiscard]] std::int64_t size_of(const SnapshotPtr& snapshot);

/// What a cache holds: keys and values, or conv and delta, each of which may be missing.
struct State {  // NOLINT(bugprone-exception-escape): as Tensor
  std::optional<Array> first;
  std::optional<Array> second;
};

/// A cache of the contract. Errors, and restores that are refused, change nothing (MR-2). A
/// snapshot that is given must not be closed: kClosed, with kSecondCloseAborts kPrecondition; one
/// of another kind is kNotSupported (MR-5).
class Cache {
 public:
  virtual ~Cache() = default;

  /// Adds tokens and returns what attention sees (MR-10, MR-20 to MR-23, MR-43).
  /// Errors  kBadShape: rows that do not fit; kPrecondition: no array of four axes; either: of
  ///         another type than f32 where the cache stores a narrow one.
  [[nodiscard]] virtual Result<std::shared_ptr<const Pair>> update(const Array& k,
                                                                   const Array& v) = 0;
  /// Nothing while there is no buffer (MR-11, MR-24, MR-44).
  [[nodiscard]] virtual std::optional<State> state() const = 0;
  [[nodiscard]] virtual std::int64_t offset() const = 0;
  /// Drops everything (MR-17, MR-30, MR-49).
  virtual void free() = 0;

  /// The tokens from `from` on, or null where there are none (MR-12, MR-25, MR-45).
  /// Errors  kPrecondition: half a recurrent state.
  [[nodiscard]] virtual Result<SnapshotPtr> snapshot(std::int64_t from) = 0;
  /// Goes to `target` tokens, with a snapshot's content or without any; false: refused, nothing
  /// has changed (MR-13, MR-14, MR-26, MR-27, MR-46, MR-47).
  /// Errors  kBadShape: content that does not fit.
  [[nodiscard]] virtual Result<bool> restore(const SnapshotPtr& snapshot, std::int64_t target) = 0;
  /// One snapshot of two that adjoin (MR-15, MR-28, MR-49).
  /// Errors  kBadPosition: they do not.
  [[nodiscard]] virtual Result<SnapshotPtr> merge(const SnapshotPtr& parent,
                                                  const SnapshotPtr& child) = 0;
  /// What stands before token `at`, and the rest (MR-16, MR-29, MR-49).
  /// Errors  kClosed, kNotSupported: a snapshot that cannot be used.
  [[nodiscard]] virtual Result<std::pair<SnapshotPtr, SnapshotPtr>> split(
      const SnapshotPtr& snapshot, std::int64_t at) = 0;
};

/// A cache with a state of fixed size instead of rows (MR-40 to MR-49).
class StateCache : public Cache {
 public:
  /// The state, made where it is missing; a batch of 0 or less counts as 1 (MR-40).
  /// Errors  kBadShape: a state of another batch or type is there.
  [[nodiscard]] virtual Result<Array> conv_state(std::int64_t batch, DType type) = 0;
  /// The other one. Errors  as conv_state.
  [[nodiscard]] virtual Result<Array> delta_state(std::int64_t batch, DType type) = 0;
  /// Puts a state in the place of what was there (MR-41).
  /// Errors  kBadShape: not the expected shape, but for the batch.
  [[nodiscard]] virtual Status set_conv_state(const Array& state) = 0;
  /// The other one. Errors  as set_conv_state.
  [[nodiscard]] virtual Status set_delta_state(const Array& state) = 0;
  /// Counts tokens (MR-42). Errors  kOutOfRange: fewer than none.
  [[nodiscard]] virtual Status advance(std::int64_t tokens) = 0;
};

/// Sizes of a recurrent state (section 5 of the rules).
KVO_RECORD_WITH((static constexpr bool kInline = true;), StateSizes,
                (std::int64_t, conv_tail, "tokens that a convolution keeps", 0, may_be_absent),
                (std::int64_t, conv_dim, "elements of a token there", 0, may_be_absent),
                (std::int64_t, num_v_heads, "heads of the delta state", 0, may_be_absent),
                (std::int64_t, head_v_dim, "its rows a head", 0, may_be_absent),
                (std::int64_t, head_k_dim, "its columns a head", 0, may_be_absent))

/// A cache of such a state, for the tries of all variants: nothing of it could be faster.
[[nodiscard]] std::unique_ptr<StateCache> make_state_cache(const StateSizes& sizes,
                                                           QuirkSet<Quirk> quirks);

/// What makes the caches of a subject. Those of rows store f32 rows in a format, and take no others
/// then; with f32 they keep rows in the type that comes in.
struct MakeCaches {
  std::function<std::unique_ptr<Cache>(const StorageFormat&, QuirkSet<Quirk>)> kv;
  /// Of a window; what is at least 1 if the quirks do not allow less.
  std::function<std::unique_ptr<Cache>(std::int64_t window, const StorageFormat&, QuirkSet<Quirk>)>
      rotating;
  /// Null: there is none.
  std::function<std::unique_ptr<StateCache>(const StateSizes&, QuirkSet<Quirk>)> recurrent;
  /// Whether its caches can store a format, kNotSupported if not; null: every one.
  std::function<Status(const StorageFormat&)> stores = nullptr;
};

/// What makes these caches.
template <class Kv, class Rotating, class Recurrent>
[[nodiscard]] MakeCaches caches_of() {
  return {.kv = [](const auto&... with) { return std::make_unique<Kv>(with...); },
          .rotating = [](const auto&... with) { return std::make_unique<Rotating>(with...); },
          .recurrent = [](const auto&... with) { return std::make_unique<Recurrent>(with...); }};
}

/// The references.
[[nodiscard]] MakeCaches reference_caches();

/// Whether caches can be made that store rows so.
/// Errors  kOutOfRange: no format (values/numeric.hpp); kNotSupported: not by these caches.
[[nodiscard]] Status can_store(const MakeCaches& make, const StorageFormat& format);

/// Keys and values as a cache stores them.
/// Errors  kBadShape, with kMisfitIsSilent kPrecondition: for a format other than f32 they must be
///         arrays of f32 of four axes.
[[nodiscard]] Result<Pair> as_stored(const StorageFormat& format, const Array& k, const Array& v,
                                     QuirkSet<Quirk> quirks);

/// What merging two usable snapshots gives where one holds all that the other does (MR-28, MR-49).
/// Errors  kBadPosition: they are one and the same.
[[nodiscard]] Result<SnapshotPtr> merged_states(const SnapshotPtr& parent, const SnapshotPtr& child,
                                                QuirkSet<Quirk> quirks);

/// The error of a snapshot that was closed.
[[nodiscard]] Error closed_error(QuirkSet<Quirk> quirks);

}  // namespace kvo::snapshot
