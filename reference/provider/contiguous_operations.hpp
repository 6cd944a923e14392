// reference/provider/contiguous_operations.hpp: the operations of `provider.contiguous`, described.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/provider/contiguous.hpp"
#include "reference/provider/operations.hpp"

namespace kvo::provider {

struct NewContiguous {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc = "Makes a cache of empty layers (ZF-8).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t num_layers = 0;
  std::int64_t max_seq_len = 0;  ///< positions
};
KVO_DESCRIBE(NewContiguous, (cache, "which cache of the case, as numbered when it was made"),
             (num_layers, "layers"), (max_seq_len, "positions of a sequence at most"))

/// The config of a case: how its caches store rows. The sizes repeat what its first operations say,
/// for people; they are not used.
struct ContiguousConfig {
  std::optional<std::int64_t> num_layers = std::nullopt;
  std::optional<std::int64_t> max_seq_len = std::nullopt;
  std::optional<StorageType> storage = std::nullopt;
  std::optional<std::int64_t> group = std::nullopt;
  std::optional<bool> offset = std::nullopt;
};
KVO_DESCRIBE(ContiguousConfig, (num_layers, "layers"),
             (max_seq_len, "positions of a sequence at most"),
             (storage,
              "storage type of rows: f32, f16, bf16, f8_e4m3, f8_e5m2, q8, q4; absent: f32"),
             (group, "of q8 and q4: elements that share a scale, 32, 64 or 128; absent: 32"),
             (offset, "of q8 and q4: whether a group has an offset, too; absent: false"))

#define KVO_CONTIGUOUS_OPERATIONS provider::NewContiguous
using ContiguousOps = boost::mp11::mp_list<NewContiguous, Update, Get, Reread, Poke, Truncate,
                                           Reset, SeqLen, NumLayers>;

/// The cache kind `provider.contiguous`.
[[nodiscard]] const CacheKind& contiguous_kind();

/// A subject whose caches come from `make`.
[[nodiscard]] Subject make_contiguous_subject(std::string variant, std::string doc,
                                              MakeContiguous make);

}  // namespace kvo::provider

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_CONTIGUOUS_OPERATIONS)
}  // namespace kvo
