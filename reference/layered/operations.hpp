// reference/layered/operations.hpp: the operations of contract `layered`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/describe/enum.hpp>

#include "reference/contract/describe/operation.hpp"
#include "reference/contract/describe/storage.hpp"

namespace kvo::layered {

using CacheHandle = CacheOfCase<std::uint64_t>;
using LayerNumber = LayerOfModel<std::uint64_t>;
/// Elements in order, flat.
struct Flat {
  using Value = Tensor;
  static constexpr std::array<std::string_view, 1> kAxes{"element"};
  static constexpr Domain kDomain{.axes = kAxes};
};
using Size = std::uint64_t;

KVO_RECORD(CacheNumber, (CacheHandle, cache))
KVO_RECORD(KeysOfLayer, (Flat, k, "keys"))
KVO_RECORD(ValuesOfLayer, (Flat, v, "values"))
KVO_RECORD(Length, (Size, len, "length in tokens"))
KVO_RECORD(Emptiness, (bool, is_empty, "whether no token was counted"))
KVO_RECORD(LayerCount, (Size, num_layers, "layers"))
KVO_RECORD(Entry, (Size, entry_size, "elements of one token's K in one layer"))
KVO_RECORD(Text, (std::string, text, "text"))
struct SameAddresses {
  using Value = std::optional<bool>;
  static constexpr Domain kDomain{
      .meaning = "whether the addresses are unchanged; absent where nothing is promised",
      .depends_on_addresses = true};
};
KVO_RECORD(Sameness, (SameAddresses, same))

KVO_OPERATION(New, new_, "Makes a cache of empty layers (RS-1).", CacheNumber,
              (Size, num_layers, "layers"), (Size, num_kv_heads, "heads of K and V"),
              (Size, head_dim, "elements of one head"))
KVO_OPERATION(WithCapacity, with_capacity, "Makes a cache with room for max_seq_len tokens (RS-2).",
              CacheNumber, (Size, num_layers, "layers"), (Size, num_kv_heads, "heads of K and V"),
              (Size, head_dim, "elements of one head"),
              (Size, max_seq_len, "positions of a sequence at most"))
KVO_OPERATION(Append, append, "Adds the K and V of one token to a layer (RS-4).", Nothing,
              (CacheHandle, cache), (LayerNumber, layer), (Flat, k, "keys"), (Flat, v, "values"))
KVO_OPERATION(Advance, advance, "Counts one more token (RS-8).", Nothing, (CacheHandle, cache))
KVO_OPERATION(Keys, k, "Reads the whole K of a layer, flat (RS-9).", KeysOfLayer,
              (CacheHandle, cache), (LayerNumber, layer))
KVO_OPERATION(Values, v, "Reads the whole V of a layer, flat (RS-9).", ValuesOfLayer,
              (CacheHandle, cache), (LayerNumber, layer))
KVO_OPERATION(Len, len, "Tokens counted by advance (RS-11).", Length, (CacheHandle, cache))
KVO_OPERATION(IsEmpty, is_empty, "Whether no token was counted (RS-11).", Emptiness,
              (CacheHandle, cache))
KVO_OPERATION(NumLayers, num_layers, "The number of layers (RS-11).", LayerCount,
              (CacheHandle, cache))
KVO_OPERATION(EntrySize, entry_size, "Elements of one token's K in one layer (RS-11).", Entry,
              (CacheHandle, cache))
KVO_OPERATION(Clear, clear, "Drops all data, keeps geometry and capacity (RS-12).", Nothing,
              (CacheHandle, cache))
KVO_OPERATION(Clone, clone, "Makes a deep copy with a number of its own (RS-15).", CacheNumber,
              (CacheHandle, cache))
KVO_OPERATION(CloneFrom, clone_from, "Makes `cache` a deep copy of `source` (RS-16).", Nothing,
              (CacheHandle, cache), (CacheHandle, source, "cache that is copied, by number"))
KVO_OPERATION(Debug, debug, "The cache as debug text (RS-17).", Text, (CacheHandle, cache),
              (bool, pretty, "whether the text spans lines"))
KVO_OPERATION(Pin, pin, "Remembers the base addresses of a layer (RS-13).", Nothing,
              (CacheHandle, cache), (LayerNumber, layer))
KVO_OPERATION(
    Pinned, pinned,
    "Whether the pinned addresses are still the same; absent where nothing is promised (RS-13).",
    Sameness, (CacheHandle, cache), (LayerNumber, layer))

enum class Build : std::uint8_t { kDebug, kRelease };
BOOST_DESCRIBE_ENUM(Build, kDebug, kRelease)
enum class Constructor : std::uint8_t { kNew, kWithCapacity };
BOOST_DESCRIBE_ENUM(Constructor, kNew, kWithCapacity)

/// The config of a case. All but the build repeats what the first operation says.
KVO_RECORD(Config,
           (std::optional<Build>, build,
            "debug or release; absent: release; not looked at in documented"),
           (std::optional<Constructor>, constructor, "how the first cache is made; not used"),
           (std::optional<Size>, num_layers, "of the first cache; not used"),
           (std::optional<Size>, num_kv_heads, "of the first cache; not used"),
           (std::optional<Size>, head_dim, "of the first cache; not used"),
           (std::optional<Size>, max_seq_len, "of the first cache; not used"), (RowStorage, rows))

#define KVO_LAYERED_OPERATIONS                                                                 \
  layered::New, layered::WithCapacity, layered::Append, layered::Advance, layered::Keys,       \
      layered::Values, layered::Len, layered::IsEmpty, layered::NumLayers, layered::EntrySize, \
      layered::Clear, layered::Clone, layered::CloneFrom, layered::Debug, layered::Pin,        \
      layered::Pinned
using Ops = boost::mp11::mp_list<KVO_LAYERED_OPERATIONS>;

}  // namespace kvo::layered

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_LAYERED_OPERATIONS)
}  // namespace kvo
