// reference/provider/contiguous.hpp: the cache kind `provider.contiguous`.
//
// A session holds several caches; `new` with the number of an earlier one replaces it.
// Source   rules ZF-8 to ZF-18.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/storage.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/provider/operations.hpp"

namespace kvo::provider {

/// One buffer [batch][max_seq_len][dim] for K and one for V a layer, made by its first update. Rows
/// come in as f32 and are kept, and seen through views, as they are stored; a row is the last axis.
class Contiguous : public Provider {
 public:
  [[nodiscard]] virtual std::int64_t num_layers() const = 0;
};

/// What a cache is made of.
struct ContiguousOptions {
  std::int64_t num_layers = 0;
  std::int64_t max_seq_len = 0;  ///< positions
  StorageFormat storage = {};    ///< of rows
};

/// Errors  as MakeContiguous says of sizes (ZF-8).
[[nodiscard]] inline Status check(const ContiguousOptions& options, QuirkSet<Quirk> quirks) {
  const bool aborts = quirks.has(Quirk::kNegativeSizesAbort);
  if (options.num_layers < 0)
    return fail(aborts ? Code::kPrecondition : Code::kOutOfRange, "num_layers");
  if (options.max_seq_len < 0 && !aborts) return fail(Code::kOutOfRange, "max_seq_len");
  return {};
}

/// Makes a cache.
/// Errors  kOutOfRange: as check() says of the storage; a size is negative; with
///         kNegativeSizesAbort kPrecondition for num_layers alone (ZF-8). kNotSupported: it stores
///         no such rows.
using MakeContiguous = std::function<Result<std::unique_ptr<Contiguous>>(
    const ContiguousOptions& options, QuirkSet<Quirk> quirks)>;

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
