// reference/layered/operations.hpp: the operations of contract `layered`, described.
//
// `cache` is the number that new, with_capacity and clone returned.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reference/contract/subject/subject.hpp"
#include "reference/layered/cache.hpp"

namespace kvo::layered {

struct CacheNumber {
  std::uint64_t cache = 0;
};
KVO_DESCRIBE(CacheNumber, (cache, "which cache of the case, as numbered when it was made"))

struct New {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc = "Makes a cache of empty layers (RS-1).";
  using Returns = CacheNumber;
  std::uint64_t num_layers = 0;
  std::uint64_t num_kv_heads = 0;
  std::uint64_t head_dim = 0;
};
KVO_DESCRIBE(New, (num_layers, "layers"), (num_kv_heads, "heads of K and V"),
             (head_dim, "elements of one head"))

struct WithCapacity {
  static constexpr std::string_view kName = "with_capacity";
  static constexpr std::string_view kDoc = "Makes a cache with room for max_seq_len tokens (RS-2).";
  using Returns = CacheNumber;
  std::uint64_t num_layers = 0;
  std::uint64_t num_kv_heads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t max_seq_len = 0;
};
KVO_DESCRIBE(WithCapacity, (num_layers, "layers"), (num_kv_heads, "heads of K and V"),
             (head_dim, "elements of one head"), (max_seq_len, "positions of a sequence at most"))

struct Append {  // NOLINT(bugprone-exception-escape): as Tensor
  static constexpr std::string_view kName = "append";
  static constexpr std::string_view kDoc = "Adds the K and V of one token to a layer (RS-4).";
  using Returns = Nothing;
  static constexpr std::array<std::string_view, 1> kAxes{"element"};
  std::uint64_t cache = 0;
  std::uint64_t layer = 0;
  Tensor k;
  Tensor v;
};
KVO_DESCRIBE(Append, (cache, "which cache of the case, as numbered when it was made"),
             (layer, "layer, counted from 0"), (k, "keys"), (v, "values"))

struct Advance {
  static constexpr std::string_view kName = "advance";
  static constexpr std::string_view kDoc = "Counts one more token (RS-8).";
  using Returns = Nothing;
  std::uint64_t cache = 0;
};
KVO_DESCRIBE(Advance, (cache, "which cache of the case, as numbered when it was made"))

struct Keys {
  static constexpr std::string_view kName = "k";
  static constexpr std::string_view kDoc = "Reads the whole K of a layer, flat (RS-9).";
  struct Returns {
    static constexpr std::array<std::string_view, 1> kAxes{"element"};
    Tensor k;
  };
  std::uint64_t cache = 0;
  std::uint64_t layer = 0;
};
KVO_DESCRIBE(Keys, (cache, "which cache of the case, as numbered when it was made"),
             (layer, "layer, counted from 0"))
KVO_DESCRIBE(Keys::Returns, (k, "keys"))

struct Values {
  static constexpr std::string_view kName = "v";
  static constexpr std::string_view kDoc = "Reads the whole V of a layer, flat (RS-9).";
  struct Returns {
    static constexpr std::array<std::string_view, 1> kAxes{"element"};
    Tensor v;
  };
  std::uint64_t cache = 0;
  std::uint64_t layer = 0;
};
KVO_DESCRIBE(Values, (cache, "which cache of the case, as numbered when it was made"),
             (layer, "layer, counted from 0"))
KVO_DESCRIBE(Values::Returns, (v, "values"))

struct Len {
  static constexpr std::string_view kName = "len";
  static constexpr std::string_view kDoc = "Tokens counted by advance (RS-11).";
  struct Returns {
    std::uint64_t len = 0;
  };
  std::uint64_t cache = 0;
};
KVO_DESCRIBE(Len, (cache, "which cache of the case, as numbered when it was made"))
KVO_DESCRIBE(Len::Returns, (len, "length in tokens"))

struct IsEmpty {
  static constexpr std::string_view kName = "is_empty";
  static constexpr std::string_view kDoc = "Whether no token was counted (RS-11).";
  struct Returns {
    bool is_empty = false;
  };
  std::uint64_t cache = 0;
};
KVO_DESCRIBE(IsEmpty, (cache, "which cache of the case, as numbered when it was made"))
KVO_DESCRIBE(IsEmpty::Returns, (is_empty, "whether no token was counted"))

struct NumLayers {
  static constexpr std::string_view kName = "num_layers";
  static constexpr std::string_view kDoc = "The number of layers (RS-11).";
  struct Returns {
    std::uint64_t num_layers = 0;
  };
  std::uint64_t cache = 0;
};
KVO_DESCRIBE(NumLayers, (cache, "which cache of the case, as numbered when it was made"))
KVO_DESCRIBE(NumLayers::Returns, (num_layers, "layers"))

struct EntrySize {
  static constexpr std::string_view kName = "entry_size";
  static constexpr std::string_view kDoc = "Elements of one token's K in one layer (RS-11).";
  struct Returns {
    std::uint64_t entry_size = 0;
  };
  std::uint64_t cache = 0;
};
KVO_DESCRIBE(EntrySize, (cache, "which cache of the case, as numbered when it was made"))
KVO_DESCRIBE(EntrySize::Returns, (entry_size, "elements of one token's K in one layer"))

struct Clear {
  static constexpr std::string_view kName = "clear";
  static constexpr std::string_view kDoc = "Drops all data, keeps geometry and capacity (RS-12).";
  using Returns = Nothing;
  std::uint64_t cache = 0;
};
KVO_DESCRIBE(Clear, (cache, "which cache of the case, as numbered when it was made"))

struct Clone {
  static constexpr std::string_view kName = "clone";
  static constexpr std::string_view kDoc = "Makes a deep copy with a number of its own (RS-15).";
  using Returns = CacheNumber;
  std::uint64_t cache = 0;
};
KVO_DESCRIBE(Clone, (cache, "which cache of the case, as numbered when it was made"))

struct CloneFrom {
  static constexpr std::string_view kName = "clone_from";
  static constexpr std::string_view kDoc = "Makes `cache` a deep copy of `source` (RS-16).";
  using Returns = Nothing;
  std::uint64_t cache = 0;
  std::uint64_t source = 0;
};
KVO_DESCRIBE(CloneFrom, (cache, "which cache of the case, as numbered when it was made"),
             (source, "cache that is copied, by number"))

struct Debug {
  static constexpr std::string_view kName = "debug";
  static constexpr std::string_view kDoc = "The cache as debug text (RS-17).";
  struct Returns {
    std::string text;
  };
  std::uint64_t cache = 0;
  bool pretty = false;
};
KVO_DESCRIBE(Debug, (cache, "which cache of the case, as numbered when it was made"),
             (pretty, "whether the text spans lines"))
KVO_DESCRIBE(Debug::Returns, (text, "text"))

struct Pin {
  static constexpr std::string_view kName = "pin";
  static constexpr std::string_view kDoc = "Remembers the base addresses of a layer (RS-13).";
  using Returns = Nothing;
  std::uint64_t cache = 0;
  std::uint64_t layer = 0;
};
KVO_DESCRIBE(Pin, (cache, "which cache of the case, as numbered when it was made"),
             (layer, "layer, counted from 0"))

struct Pinned {
  static constexpr std::string_view kName = "pinned";
  static constexpr std::string_view kDoc =
      "Whether the pinned addresses are still the same; absent where nothing is promised (RS-13).";
  struct Returns {
    std::optional<bool> same;
  };
  std::uint64_t cache = 0;
  std::uint64_t layer = 0;
};
KVO_DESCRIBE(Pinned, (cache, "which cache of the case, as numbered when it was made"),
             (layer, "layer, counted from 0"))
KVO_DESCRIBE(Pinned::Returns,
             (same, "whether the addresses are unchanged; absent where nothing is promised"))

enum class Constructor : std::uint8_t { kNew, kWithCapacity };
BOOST_DESCRIBE_ENUM(Constructor, kNew, kWithCapacity)

/// The config of a case. All but the build repeats what the first operation says.
struct Config {
  std::optional<Build> build = std::nullopt;
  std::optional<Constructor> constructor = std::nullopt;
  std::optional<std::uint64_t> num_layers = std::nullopt;
  std::optional<std::uint64_t> num_kv_heads = std::nullopt;
  std::optional<std::uint64_t> head_dim = std::nullopt;
  std::optional<std::uint64_t> max_seq_len = std::nullopt;
  std::optional<StorageType> storage = std::nullopt;
  std::optional<std::int64_t> group = std::nullopt;
  std::optional<bool> offset = std::nullopt;
};
KVO_DESCRIBE(
    Config, (build, "debug or release; absent: release; not looked at in documented"),
    (constructor, "how the first cache is made; not used"),
    (num_layers, "of the first cache; not used"), (num_kv_heads, "of the first cache; not used"),
    (head_dim, "of the first cache; not used"), (max_seq_len, "of the first cache; not used"),
    (storage, "storage type of rows: f32, f16, bf16, f8_e4m3, f8_e5m2, q8, q4; absent: f32"),
    (group, "of q8 and q4: elements that share a scale, 32, 64 or 128; absent: 32"),
    (offset, "of q8 and q4: whether a group has an offset, too; absent: false"))

#define KVO_LAYERED_OPERATIONS                                                                 \
  layered::New, layered::WithCapacity, layered::Append, layered::Advance, layered::Keys,       \
      layered::Values, layered::Len, layered::IsEmpty, layered::NumLayers, layered::EntrySize, \
      layered::Clear, layered::Clone, layered::CloneFrom, layered::Debug, layered::Pin,        \
      layered::Pinned
using Ops = boost::mp11::mp_list<KVO_LAYERED_OPERATIONS>;

/// The cache kind `layered.vector`.
[[nodiscard]] const CacheKind& vector_kind();

/// A subject whose caches come from `make`. Its sessions read "build" ("debug", "release") from the
/// config of the case; absent: release.
[[nodiscard]] Subject make_subject(std::string variant, std::string doc, MakeCache make);

}  // namespace kvo::layered

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_LAYERED_OPERATIONS)
}  // namespace kvo
