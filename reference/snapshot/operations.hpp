// reference/snapshot/operations.hpp: the operations of the caches of contract `snapshot`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/contract/describe/operation.hpp"
#include "reference/contract/subject/subject.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/snapshot/cache.hpp"

namespace kvo::snapshot {

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
struct Contents {  // NOLINT(bugprone-exception-escape): as Tensor
  static constexpr AxisNames axes(std::string_view member) { return axes_named(member); }
  std::optional<std::int64_t> from = std::nullopt;
  std::optional<std::int64_t> to = std::nullopt;
  std::optional<std::int64_t> idx = std::nullopt;
  std::optional<std::int64_t> offset = std::nullopt;
  std::optional<std::int64_t> size = std::nullopt;
  std::optional<Tensor> k = std::nullopt;
  std::optional<Tensor> v = std::nullopt;
  std::optional<Tensor> conv = std::nullopt;
  std::optional<Tensor> delta = std::nullopt;
};
KVO_DESCRIBE(Contents, (from, "first token, counted from 0"), (to, "token behind the last"),
             (idx, "slot of a ring that is written next"), (offset, "tokens seen"), (size, "bytes"),
             (k, "keys"), (v, "values"), (conv, "convolution state"), (delta, "delta state"))

/// A snapshot with its number; without a snapshot the number is null and stands alone.
struct Numbered {  // NOLINT(bugprone-exception-escape): as Tensor
  static constexpr AxisNames axes(std::string_view member) { return axes_named(member); }
  Nullable<std::int64_t> handle;
  std::optional<std::int64_t> from = std::nullopt;
  std::optional<std::int64_t> to = std::nullopt;
  std::optional<std::int64_t> idx = std::nullopt;
  std::optional<std::int64_t> offset = std::nullopt;
  std::optional<std::int64_t> size = std::nullopt;
  std::optional<Tensor> k = std::nullopt;
  std::optional<Tensor> v = std::nullopt;
  std::optional<Tensor> conv = std::nullopt;
  std::optional<Tensor> delta = std::nullopt;
};
KVO_DESCRIBE(Numbered, (handle, "number of the snapshot; the same object keeps it; null: none"),
             (from, "first token, counted from 0"), (to, "token behind the last"),
             (idx, "slot of a ring that is written next"), (offset, "tokens seen"), (size, "bytes"),
             (k, "keys"), (v, "values"), (conv, "convolution state"), (delta, "delta state"))

struct New {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc =
      "Makes a fresh cache in the place of the one that was; snapshots live on (MR-3).";
  using Returns = Nothing;
  std::optional<std::int64_t> max_size = std::nullopt;
};
KVO_DESCRIBE(New, (max_size, "window of a ring; absent: that of the config"))

struct Update {  // NOLINT(bugprone-exception-escape): as Tensor
  static constexpr std::string_view kName = "update";
  static constexpr std::string_view kDoc =
      "Adds tokens and returns what attention sees (MR-10, MR-20, MR-43).";
  struct Returns {  // NOLINT(bugprone-exception-escape): as Tensor
    static constexpr auto kAxes = kRowAxes;
    Tensor k;
    Tensor v;
    std::optional<std::int64_t> handle = std::nullopt;
  };
  static constexpr auto kAxes = kRowAxes;
  static constexpr std::pair<std::string_view, std::string_view> kToldBy{"keep", "handle"};
  Tensor k;
  Tensor v;
  std::optional<bool> keep = std::nullopt;
  std::optional<bool> spread = std::nullopt;
};
KVO_DESCRIBE(Update, (k, "keys"), (v, "values"),
             (keep, "whether the returned pair gets a number; absent in a log: if its ret has one"),
             (spread, "whether the elements are every second one of wider arrays; absent: no"))
KVO_DESCRIBE(Update::Returns, (k, "keys"), (v, "values"),
             (handle, "number of the returned pair, to read it again"))

struct ShowState {
  static constexpr std::string_view kName = "state";
  static constexpr std::string_view kDoc = "Everything that the cache holds (MR-11, MR-24, MR-44).";
  struct Returns {
    Nullable<std::vector<Nullable<Tensor>>> state;
  };
};
KVO_DESCRIBE(ShowState)
KVO_DESCRIBE(ShowState::Returns, (state, "keys and values, or conv and delta; null: no buffer"))

struct Offset {
  static constexpr std::string_view kName = "offset";
  static constexpr std::string_view kDoc = "Tokens that the cache has seen.";
  struct Returns {
    std::int64_t offset = 0;
  };
};
KVO_DESCRIBE(Offset)
KVO_DESCRIBE(Offset::Returns, (offset, "tokens"))

struct Free {
  static constexpr std::string_view kName = "free";
  static constexpr std::string_view kDoc = "Drops what the cache holds (MR-17, MR-30, MR-49).";
  using Returns = Nothing;
};
KVO_DESCRIBE(Free)

struct Take {
  static constexpr std::string_view kName = "snapshot";
  static constexpr std::string_view kDoc =
      "Takes a snapshot of the tokens from one on (MR-12, MR-25, MR-45).";
  using Returns = Numbered;
  std::int64_t from = 0;
};
KVO_DESCRIBE(Take, (from, "first token, counted from 0"))

struct Restore {
  static constexpr std::string_view kName = "restore";
  static constexpr std::string_view kDoc =
      "Goes to a number of tokens, by a snapshot or without (MR-13, MR-14, MR-26, MR-27, MR-46, "
      "MR-47).";
  struct Returns {
    bool ok = false;
    std::int64_t offset = 0;
  };
  Nullable<std::int64_t> handle;
  std::int64_t target = 0;
};
KVO_DESCRIBE(Restore, (handle, "number of a snapshot; null: none"), (target, "tokens"))
KVO_DESCRIBE(Restore::Returns, (ok, "false: refused, nothing has changed"),
             (offset, "tokens that the cache holds then"))

struct Merge {
  static constexpr std::string_view kName = "merge";
  static constexpr std::string_view kDoc =
      "Makes one snapshot of two and takes both over (MR-15, MR-28, MR-49).";
  using Returns = Numbered;
  Nullable<std::int64_t> parent;
  Nullable<std::int64_t> child;
};
KVO_DESCRIBE(Merge, (parent, "number of the snapshot in front; null: none"),
             (child, "number of the snapshot behind it; null: none"))

struct Split {
  static constexpr std::string_view kName = "split";
  static constexpr std::string_view kDoc =
      "Makes two snapshots of one and takes it over (MR-16, MR-29, MR-49).";
  struct Returns {
    Nullable<Numbered> parent;
    Nullable<Numbered> child;
  };
  Nullable<std::int64_t> handle;
  std::int64_t at = 0;
};
KVO_DESCRIBE(Split, (handle, "number of a snapshot; null: none"),
             (at, "token that the second one begins with"))
KVO_DESCRIBE(Split::Returns, (parent, "what stands before; null: nothing"),
             (child, "the rest; null: nothing"))

struct Close {
  static constexpr std::string_view kName = "close";
  static constexpr std::string_view kDoc = "Gives a snapshot up (MR-4, MR-48).";
  using Returns = Nothing;
  std::int64_t handle = 0;
};
KVO_DESCRIBE(Close, (handle, "number of the snapshot"))

struct Reread {
  static constexpr std::string_view kName = "reread";
  static constexpr std::string_view kDoc =
      "Looks again at a snapshot, or at rows that an update returned where the case has no "
      "snapshot "
      "(MR-3, MR-23).";
  using Returns = Contents;
  std::int64_t handle = 0;
};
KVO_DESCRIBE(Reread, (handle, "number of the snapshot or pair"))

struct ConvState {
  static constexpr std::string_view kName = "conv_state";
  static constexpr std::string_view kDoc = "The convolution state, made if it is missing (MR-40).";
  struct Returns {  // NOLINT(bugprone-exception-escape): as Tensor
    static constexpr auto kAxes = kConvAxes;
    Tensor conv;
  };
  std::int64_t batch = 1;
  StorageType dtype = StorageType::kF32;
};
KVO_DESCRIBE(ConvState, (batch, "sequences; 0 or less counts as 1"),
             (dtype, "element type, not one of codes"))
KVO_DESCRIBE(ConvState::Returns, (conv, "convolution state"))

struct DeltaState {
  static constexpr std::string_view kName = "delta_state";
  static constexpr std::string_view kDoc = "The delta state, made if it is missing (MR-40).";
  struct Returns {  // NOLINT(bugprone-exception-escape): as Tensor
    static constexpr auto kAxes = kDeltaAxes;
    Tensor delta;
  };
  std::int64_t batch = 1;
  StorageType dtype = StorageType::kF32;
};
KVO_DESCRIBE(DeltaState, (batch, "sequences; 0 or less counts as 1"),
             (dtype, "element type, not one of codes"))
KVO_DESCRIBE(DeltaState::Returns, (delta, "delta state"))

struct SetConvState {
  static constexpr std::string_view kName = "set_conv_state";
  static constexpr std::string_view kDoc = "Replaces the convolution state (MR-41).";
  using Returns = Nothing;
  static constexpr auto kAxes = kConvAxes;
  Nullable<Tensor> v;
};
KVO_DESCRIBE(SetConvState, (v, "the state; null: nothing is done"))

struct SetDeltaState {
  static constexpr std::string_view kName = "set_delta_state";
  static constexpr std::string_view kDoc = "Replaces the delta state (MR-41).";
  using Returns = Nothing;
  static constexpr auto kAxes = kDeltaAxes;
  Nullable<Tensor> v;
};
KVO_DESCRIBE(SetDeltaState, (v, "the state; null: nothing is done"))

struct Advance {
  static constexpr std::string_view kName = "advance";
  static constexpr std::string_view kDoc = "Counts tokens of a recurrent state (MR-42).";
  using Returns = Offset::Returns;
  std::int64_t n = 0;
};
KVO_DESCRIBE(Advance, (n, "tokens"))

/// The config of a case; what describes the tensors only is not looked at.
struct RowsConfig {
  std::optional<std::int64_t> B = std::nullopt;   // NOLINT: as logs write them
  std::optional<std::int64_t> H = std::nullopt;   // NOLINT
  std::optional<std::int64_t> Dk = std::nullopt;  // NOLINT
  std::optional<std::int64_t> Dv = std::nullopt;  // NOLINT
  std::optional<std::string> dtype = std::nullopt;
  std::optional<std::int64_t> max_size = std::nullopt;
  std::optional<StorageType> storage = std::nullopt;
  std::optional<std::int64_t> group = std::nullopt;
  std::optional<bool> offset = std::nullopt;
};
KVO_DESCRIBE(RowsConfig, (B, "sequences; not used"), (H, "heads; not used"),
             (Dk, "elements of a key; not used"), (Dv, "elements of a value; not used"),
             (dtype, "element type; not used"), (max_size, "window of a ring, in tokens"),
             (storage,
              "storage type of rows: f32, f16, bf16, f8_e4m3, f8_e5m2, q8, q4, made of f32 rows; "
              "absent, f32: rows are kept in the type that comes in"),
             (group, "of q8 and q4: elements that share a scale, 32, 64 or 128; absent: 32"),
             (offset, "of q8 and q4: whether a group has an offset, too; absent: false"))

struct RecurrentConfig {
  std::optional<std::int64_t> B = std::nullopt;   // NOLINT: as logs write them
  std::optional<std::int64_t> H = std::nullopt;   // NOLINT
  std::optional<std::int64_t> Dk = std::nullopt;  // NOLINT
  std::optional<std::int64_t> Dv = std::nullopt;  // NOLINT
  std::optional<std::string> dtype = std::nullopt;
  std::optional<std::int64_t> conv_tail = std::nullopt;
  std::optional<std::int64_t> conv_dim = std::nullopt;
  std::optional<std::int64_t> num_v_heads = std::nullopt;
  std::optional<std::int64_t> head_v_dim = std::nullopt;
  std::optional<std::int64_t> head_k_dim = std::nullopt;
};
KVO_DESCRIBE(RecurrentConfig, (B, "sequences; not used"), (H, "heads; not used"),
             (Dk, "elements of a key; not used"), (Dv, "elements of a value; not used"),
             (dtype, "element type; not used"), (conv_tail, "tokens that a convolution keeps"),
             (conv_dim, "elements of a token there"), (num_v_heads, "heads of the delta state"),
             (head_v_dim, "its rows a head"), (head_k_dim, "its columns a head"))

#define KVO_SNAPSHOT_OPERATIONS                                                             \
  snapshot::New, snapshot::Update, snapshot::ShowState, snapshot::Offset, snapshot::Free,   \
      snapshot::Take, snapshot::Restore, snapshot::Merge, snapshot::Split, snapshot::Close, \
      snapshot::Reread
#define KVO_SNAPSHOT_STATE_OPERATIONS                                                         \
  snapshot::ConvState, snapshot::DeltaState, snapshot::SetConvState, snapshot::SetDeltaState, \
      snapshot::Advance
using RowsOps = boost::mp11::mp_list<KVO_SNAPSHOT_OPERATIONS>;
using RecurrentOps = boost::mp11::mp_list<KVO_SNAPSHOT_OPERATIONS, KVO_SNAPSHOT_STATE_OPERATIONS>;

/// How the caches of a case store rows.
template <class Config>
[[nodiscard]] StorageFormat storage_of(const Config& config) {
  return storage_format(config.storage, config.group, config.offset);
}

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
