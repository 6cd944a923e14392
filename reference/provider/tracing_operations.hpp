// reference/provider/tracing_operations.hpp: the operations of `provider.tracing`, described.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "reference/block_pool/operations.hpp"
#include "reference/provider/operations.hpp"
#include "reference/provider/tracing.hpp"

namespace kvo::provider {

KVO_DESCRIBE(TraceOp, (op, "KVCacheAppendK, KVCacheAppendV, KVCacheGetK or KVCacheGetV"),
             (inputs, "slots that it reads"), (output, "slot that it makes"),
             (layer, "layer, counted from 0"))
KVO_DESCRIBE(TraceLog, (ops, "traced operations: name, input slots, output slot, layer"),
             (next_slot, "slot that the next traced tensor gets"), (shapes, "shape of each slot"),
             (frozen_slots, "slots of the frozen tensors"),
             (opaque, "whether the trace holds operations it cannot explain"))

struct NewTracing {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc =
      "Makes a tracer over a new real provider; frozen tensors are objects 0, 1, ... (ZF-71).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::vector<std::vector<std::int64_t>> frozen_shapes;
};
KVO_DESCRIBE(NewTracing, (cache, "which cache of the case, as numbered when it was made"),
             (frozen_shapes, "shapes of the frozen tensors"))

struct UpdateTraced {
  static constexpr std::string_view kName = "update";
  static constexpr std::string_view kDoc =
      "Forwards an update and traces it; the same id is the same tensor object (ZF-68).";
  using Returns = Nothing;
  static constexpr auto kAxes = kRowAxes;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
  Nullable<Tensor> k;
  Nullable<Tensor> v;
  std::int64_t k_id = 0;
  std::int64_t v_id = 0;
};
KVO_DESCRIBE(UpdateTraced, (cache, "which cache of the case, as numbered when it was made"),
             (layer, "layer, counted from 0"), (k, "keys"), (v, "values"),
             (k_id, "number of the key tensor as an object"),
             (v_id, "number of the value tensor as an object"))

struct Trace {
  static constexpr std::string_view kName = "trace";
  static constexpr std::string_view kDoc = "Everything traced since new (ZF-68 to ZF-71).";
  using Returns = TraceLog;
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(Trace, (cache, "which cache of the case, as numbered when it was made"))

#define KVO_TRACING_OPERATIONS provider::NewTracing, provider::UpdateTraced, provider::Trace
using TracingOps = boost::mp11::mp_list<NewTracing, UpdateTraced, Get, Reread, Poke, Truncate,
                                        Reset, SeqLen, Trace>;

/// The cache kind `provider.tracing`.
[[nodiscard]] const CacheKind& tracing_kind();

/// The provider behind a tracer.
enum class Real : std::uint8_t {
  kKv,      ///< contiguous
  kPaged,   ///< over a pool of its own
  kTensor,  ///< on the host, fp32
};
BOOST_DESCRIBE_ENUM(Real, kKv, kPaged, kTensor)

/// The config of a case: what the real provider is made of.
struct TracingConfig {
  Real real = Real::kKv;
  std::int64_t num_layers = 0;
  std::optional<std::int64_t> max_seq_len = std::nullopt;  ///< kv and tensor; absent: 0
  std::optional<block_pool::New> pool = std::nullopt;      ///< paged
  std::optional<std::int64_t> frozen = std::nullopt;       ///< what `new` will be told; not used
};
KVO_DESCRIBE(TracingConfig, (real, "the provider behind the tracer"),
             (num_layers, "layers of that provider"),
             (max_seq_len, "positions that it holds, of kv and tensor; absent: 0"),
             (pool, "sizes of its pool, of paged"),
             (frozen, "frozen tensors that `new` will be told; not used"))

/// Makes the real provider; errors as of its maker.
using MakeReal = std::function<Result<std::unique_ptr<Provider>>(
    const TracingConfig& config, QuirkSet<Quirk> quirks, QuirkSet<block_pool::Quirk> pool_quirks)>;
/// A subject whose tracers come from `make`, over providers from `make_real`.
[[nodiscard]] Subject make_tracing_subject(std::string variant, std::string doc, MakeTracing make,
                                           MakeReal make_real);

}  // namespace kvo::provider

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_TRACING_OPERATIONS)
}  // namespace kvo
