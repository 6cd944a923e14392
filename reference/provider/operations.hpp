// reference/provider/operations.hpp: operations that several caches of contract `provider` share.
//
// An absent `cache` is cache 0.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/provider/cache.hpp"

namespace kvo::provider {

using CacheHandle = CacheOfCase<std::int64_t>;
using LayerNumber = LayerOfModel<std::int64_t>;
struct ResultHandle {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.meaning = "number of a result that can be looked at again",
                                  .handle_of = "result"};
};

/// A query that answers one number.
KVO_RECORD(Number, (std::int64_t, n, "how many, or at most how many"))

/// Axes of all rows that go in and come out.
inline constexpr std::array<std::string_view, 3> kRowAxes{"batch", "position", "dim"};

/// A query for rows: k and v are [batch, position, dim]; handle, k and v are absent when not found.
KVO_RECORD_WITH((static constexpr auto kAxes = kRowAxes;), Found,
                (bool, found, "whether there was anything"), (Maybe<ResultHandle>, handle),
                (std::optional<Tensor>, k, "keys"), (std::optional<Tensor>, v, "values"))

/// Rows read again through a handle, or only that their memory was given back.
KVO_RECORD_WITH((static constexpr auto kAxes = kRowAxes;), Again,
                (std::optional<Tensor>, k, "keys"), (std::optional<Tensor>, v, "values"),
                (std::optional<bool>, dangling, "whether the memory of the result was freed"))
KVO_OPERATION_WITH((static constexpr auto kAxes = kRowAxes;), Update, update,
                   "Adds rows after a layer's cursor (ZF-9, ZF-28).", Nothing,
                   (Maybe<CacheHandle>, cache), (LayerNumber, layer), (Nullable<Tensor>, k, "keys"),
                   (Nullable<Tensor>, v, "values"))
KVO_OPERATION(Get, get,
              "Reads all rows of a layer; keep: false gives no handle (ZF-13, ZF-35, ZF-61).",
              Found, (Maybe<CacheHandle>, cache), (LayerNumber, layer),
              (std::optional<bool>, keep, "false: the result gets no handle; absent: true"))
KVO_OPERATION(Reread, reread, "Reads an earlier result again (ZF-14, ZF-61).", Again,
              (ResultHandle, handle))
KVO_OPERATION(
    Poke, poke,
    "Writes one cell through an earlier result (ZF-14); precondition where rows are codes.",
    Nothing, (ResultHandle, handle), (std::string, side, "k or v", "k"),
    (std::int64_t, index, "flat index of the element"),
    (float, value, "what the element is set to"))
KVO_OPERATION(Truncate, truncate, "Cuts every layer to at most n positions (ZF-17, ZF-39).",
              Nothing, (Maybe<CacheHandle>, cache),
              (std::int64_t, n, "how many, or at most how many"))
KVO_OPERATION(Reset, reset, "Empties every layer (ZF-16, ZF-37, ZF-63).", Nothing,
              (Maybe<CacheHandle>, cache))
KVO_OPERATION(SeqLen, seq_len, "The cursor of layer 0 (ZF-15, ZF-36, ZF-63).", Number,
              (Maybe<CacheHandle>, cache))
KVO_OPERATION(NumLayers, num_layers, "The number of layers (ZF-8, ZF-36).", Number,
              (Maybe<CacheHandle>, cache))

#define KVO_SHARED_OPERATIONS                                                            \
  provider::Update, provider::Get, provider::Reread, provider::Poke, provider::Truncate, \
      provider::Reset, provider::SeqLen, provider::NumLayers

}  // namespace kvo::provider

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_SHARED_OPERATIONS)
}  // namespace kvo
