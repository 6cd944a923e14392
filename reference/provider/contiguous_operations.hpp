// reference/provider/contiguous_operations.hpp: the operations of `provider.contiguous`, described.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/storage.hpp"
#include "reference/provider/contiguous.hpp"
#include "reference/provider/operations.hpp"

namespace kvo::provider {

KVO_OPERATION(NewContiguous, new_, "Makes a cache of empty layers (ZF-8).", Nothing,
              (Maybe<CacheHandle>, cache), (std::int64_t, num_layers, "layers"),
              (std::int64_t, max_seq_len, "positions of a sequence at most"))

/// The config of a case: how its caches store rows. The sizes repeat what its first operations say,
/// for people; they are not used.
KVO_RECORD(ContiguousConfig, (std::optional<std::int64_t>, num_layers, "layers"),
           (std::optional<std::int64_t>, max_seq_len, "positions of a sequence at most"),
           (RowStorage, rows))

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
