// reference/snapshot/operations.hpp: the operations of the caches of contract `snapshot`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/contract/describe/operation.hpp"
#include "reference/contract/describe/storage.hpp"
#include "reference/contract/subject/subject.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/snapshot/cache.hpp"

namespace kvo::snapshot {

using SnapshotNumber = HandleOf<"snapshot">;
struct FirstToken {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.meaning = "first token, counted from 0"};
};

inline constexpr std::array<std::string_view, 4> kRowAxes{"batch", "head", "position", "dim"};
inline constexpr std::array<std::string_view, 3> kConvAxes{"batch", "tail", "dim"};
inline constexpr std::array<std::string_view, 4> kDeltaAxes{"batch", "head", "v_dim", "k_dim"};

/// The axes of a member by its name.
constexpr AxisNames axes_named(std::string_view member) {
  if (member == "conv") return kConvAxes;
  if (member == "delta") return kDeltaAxes;
  return kRowAxes;
}

/// What a snapshot holds, or a pair that an update returned: then k and v alone.
KVO_RECORD_WITH(
    (static constexpr bool kInline = true;
     static constexpr AxisNames axes(std::string_view member) { return axes_named(member); }),
    Contents, (Maybe<FirstToken>, from), (std::optional<std::int64_t>, to, "token after the last"),
    (std::optional<std::int64_t>, idx, "slot of a ring that is written next"),
    (std::optional<std::int64_t>, offset, "tokens seen"),
    (std::optional<std::int64_t>, size, "bytes"), (std::optional<Tensor>, k, "keys"),
    (std::optional<Tensor>, v, "values"), (std::optional<Tensor>, conv, "convolution state"),
    (std::optional<Tensor>, delta, "delta state"))

/// A snapshot with its number. Without a snapshot the number is null, and nothing is shown.
KVO_RECORD(Numbered,
           (OrNull<SnapshotNumber>, handle,
            "number of the snapshot; the same object keeps it; null: none"),
           (Contents, shown))

KVO_OPERATION(New, new_,
              "Makes a fresh cache in the place of the one that was; snapshots live on (MR-3).",
              Nothing,
              (std::optional<std::int64_t>, max_size,
               "window of a ring; absent: that of the config"))
KVO_RECORD_WITH((static constexpr auto kAxes = kRowAxes;), UpdateReturns, (Tensor, k, "keys"),
                (Tensor, v, "values"),
                (Maybe<SnapshotNumber>, handle, "number of the returned pair, to read it again"))
KVO_OPERATION_WITH((static constexpr auto kAxes = kRowAxes;
                    static constexpr std::pair<std::string_view, std::string_view> kToldBy{
                        "keep", "handle"};),
                   Update, update,
                   "Adds tokens and returns what attention sees (MR-10, MR-20, MR-43).",
                   UpdateReturns, (Tensor, k, "keys"), (Tensor, v, "values"),
                   (std::optional<bool>, keep,
                    "whether the returned pair gets a number; absent in a log: if its ret has one"),
                   (std::optional<bool>, spread,
                    "whether the elements are every second one of wider arrays; absent: no"))

KVO_RECORD(ShowStateReturns, (Nullable<std::vector<Nullable<Tensor>>>, state,
                              "keys and values, or conv and delta; null: no buffer"))
KVO_OPERATION(ShowState, state, "Everything that the cache holds (MR-11, MR-24, MR-44).",
              ShowStateReturns)
KVO_RECORD(OffsetReturns, (std::int64_t, offset, "tokens"))
KVO_OPERATION(Offset, offset, "Tokens that the cache has seen.", OffsetReturns)
KVO_OPERATION(Free, free, "Drops what the cache holds (MR-17, MR-30, MR-49).", Nothing)
KVO_OPERATION(Take, snapshot, "Takes a snapshot of the tokens from one on (MR-12, MR-25, MR-45).",
              Numbered, (FirstToken, from))
KVO_RECORD(RestoreReturns, (bool, ok, "false: refused, nothing has changed"),
           (std::int64_t, offset, "tokens that the cache holds then"))
KVO_OPERATION(Restore, restore,
              "Goes to a number of tokens, by a snapshot or without (MR-13, MR-14, MR-26, MR-27, "
              "MR-46, MR-47).",
              RestoreReturns, (OrNull<SnapshotNumber>, handle, "number of a snapshot; null: none"),
              (std::int64_t, target, "tokens"))
KVO_OPERATION(Merge, merge, "Makes one snapshot of two and takes both over (MR-15, MR-28, MR-49).",
              Numbered,
              (OrNull<SnapshotNumber>, parent, "number of the snapshot in front; null: none"),
              (OrNull<SnapshotNumber>, child, "number of the snapshot after it; null: none"))
KVO_RECORD(SplitReturns, (Nullable<Numbered>, parent, "what stands before; null: nothing"),
           (Nullable<Numbered>, child, "the rest; null: nothing"))
KVO_OPERATION(Split, split, "Makes two snapshots of one and takes it over (MR-16, MR-29, MR-49).",
              SplitReturns, (OrNull<SnapshotNumber>, handle, "number of a snapshot; null: none"),
              (std::int64_t, at, "token that the second one begins with"))
KVO_OPERATION(Close, close, "Gives a snapshot up (MR-4, MR-48).", Nothing,
              (SnapshotNumber, handle, "number of the snapshot"))
KVO_OPERATION(Reread, reread,
              "Looks again at a snapshot, or at rows that an update returned where the case has no "
              "snapshot (MR-3, MR-23).",
              Contents, (SnapshotNumber, handle, "number of the snapshot or pair"))
KVO_RECORD_WITH((static constexpr auto kAxes = kConvAxes;), ConvStateReturns,
                (Tensor, conv, "convolution state"))
KVO_OPERATION(ConvState, conv_state, "The convolution state, made if it is missing (MR-40).",
              ConvStateReturns, (std::int64_t, batch, "sequences; 0 or less counts as 1", 1),
              (StorageType, dtype, "element type, not one of codes", StorageType::kF32))
KVO_RECORD_WITH((static constexpr auto kAxes = kDeltaAxes;), DeltaStateReturns,
                (Tensor, delta, "delta state"))
KVO_OPERATION(DeltaState, delta_state, "The delta state, made if it is missing (MR-40).",
              DeltaStateReturns, (std::int64_t, batch, "sequences; 0 or less counts as 1", 1),
              (StorageType, dtype, "element type, not one of codes", StorageType::kF32))
KVO_OPERATION_WITH((static constexpr auto kAxes = kConvAxes;), SetConvState, set_conv_state,
                   "Replaces the convolution state (MR-41).", Nothing,
                   (Nullable<Tensor>, v, "the state; null: nothing is done"))
KVO_OPERATION_WITH((static constexpr auto kAxes = kDeltaAxes;), SetDeltaState, set_delta_state,
                   "Replaces the delta state (MR-41).", Nothing,
                   (Nullable<Tensor>, v, "the state; null: nothing is done"))
KVO_OPERATION(Advance, advance, "Counts tokens of a recurrent state (MR-42).", Offset::Returns,
              (std::int64_t, n, "tokens"))

/// What recorded configs say of the tensors of a case.
KVO_RECORD_WITH((static constexpr bool kInline = true;), RecordedTensors,
                (std::optional<std::int64_t>, B, "sequences; not used"),
                (std::optional<std::int64_t>, H, "heads; not used"),
                (std::optional<std::int64_t>, Dk, "elements of a key; not used"),
                (std::optional<std::int64_t>, Dv, "elements of a value; not used"),
                (std::optional<std::string>, dtype, "element type; not used"))
/// The configs of a case.
KVO_RECORD(RowsConfig, (RecordedTensors, recorded),
           (std::optional<std::int64_t>, max_size, "window of a ring, in tokens"),
           (RowStorage, rows))
KVO_RECORD(RecurrentConfig, (RecordedTensors, recorded), (StateSizes, sizes))

#define KVO_SNAPSHOT_OPERATIONS                                                             \
  snapshot::New, snapshot::Update, snapshot::ShowState, snapshot::Offset, snapshot::Free,   \
      snapshot::Take, snapshot::Restore, snapshot::Merge, snapshot::Split, snapshot::Close, \
      snapshot::Reread
#define KVO_SNAPSHOT_STATE_OPERATIONS                                                         \
  snapshot::ConvState, snapshot::DeltaState, snapshot::SetConvState, snapshot::SetDeltaState, \
      snapshot::Advance
using RowsOps = boost::mp11::mp_list<KVO_SNAPSHOT_OPERATIONS>;
using RecurrentOps = boost::mp11::mp_list<KVO_SNAPSHOT_OPERATIONS, KVO_SNAPSHOT_STATE_OPERATIONS>;

/// What scripts look at in the session of a case.
class ShownCase {
 public:
  virtual ~ShownCase() = default;
  [[nodiscard]] virtual const Cache* cache() const = 0;                      ///< null: none
  [[nodiscard]] virtual std::span<const SnapshotPtr> snapshots() const = 0;  ///< 1 comes first
};

[[nodiscard]] const CacheKind& kv_kind();
[[nodiscard]] const CacheKind& rotating_kind();
[[nodiscard]] const CacheKind& recurrent_kind();

/// Subjects whose caches come from `make`.
[[nodiscard]] std::vector<Subject> make_subjects(const std::string& variant, const std::string& doc,
                                                 const MakeCaches& make);

}  // namespace kvo::snapshot

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_SNAPSHOT_OPERATIONS, KVO_SNAPSHOT_STATE_OPERATIONS)
}  // namespace kvo
