// reference/provider/contract_contiguous.hpp: the cache kind `provider.contiguous`.
//
// A session holds several caches; `new` with the number of an earlier one replaces it.
// Source   rules ZF-8 to ZF-18.
#pragma once

#include "reference/provider/contract.hpp"

namespace kvo::provider {

/// One buffer [batch][max_seq_len][dim] for K and one for V a layer, made by its first update.
class Contiguous : public Provider {
 public:
  [[nodiscard]] virtual std::int64_t num_layers() const = 0;
};

struct NewContiguous {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc = "Makes a cache of empty layers (ZF-8).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t num_layers = 0;
  std::int64_t max_seq_len = 0;  ///< positions
};
BOOST_DESCRIBE_STRUCT(NewContiguous, (), (cache, num_layers, max_seq_len))

using ContiguousOps = boost::mp11::mp_list<NewContiguous, Update, Get, Reread, Poke, Truncate,
                                           Reset, SeqLen, NumLayers>;

/// The cache kind `provider.contiguous`.
[[nodiscard]] const CacheKind& contiguous_kind();

/// Makes a cache; max_seq_len in positions.
/// Errors  kPrecondition for negative num_layers; documented: kOutOfRange for either (ZF-8).
using MakeContiguous = std::function<Result<std::unique_ptr<Contiguous>>(
    std::int64_t num_layers, std::int64_t max_seq_len, Profile profile)>;

/// A subject whose caches come from `make`.
[[nodiscard]] Subject make_contiguous_subject(std::string engine, std::string doc,
                                              MakeContiguous make);

}  // namespace kvo::provider
