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

KVO_OPERATION(
    NewTracing, new_,
    "Makes a tracer over a new real provider; frozen tensors are objects 0, 1, ... (ZF-71).",
    Nothing, (Maybe<CacheHandle>, cache),
    (std::vector<std::vector<std::int64_t>>, frozen_shapes, "shapes of the frozen tensors"))
KVO_OPERATION_WITH(
    (static constexpr auto kAxes = kRowAxes;), UpdateTraced, update,
    "Forwards an update and traces it; the same id is the same tensor object (ZF-68).", Nothing,
    (Maybe<CacheHandle>, cache), (LayerNumber, layer), (Nullable<Tensor>, k, "keys"),
    (Nullable<Tensor>, v, "values"), (std::int64_t, k_id, "number of the key tensor as an object"),
    (std::int64_t, v_id, "number of the value tensor as an object"))
KVO_OPERATION(Trace, trace, "Everything traced since new (ZF-68 to ZF-71).", TraceLog,
              (Maybe<CacheHandle>, cache))

#define KVO_TRACING_OPERATIONS provider::NewTracing, provider::UpdateTraced, provider::Trace
using TracingOps = boost::mp11::mp_list<NewTracing, UpdateTraced, Get, Reread, Poke, Truncate,
                                        Reset, SeqLen, Trace>;

/// The cache kind `provider.tracing`.
[[nodiscard]] const CacheKind& tracing_kind();

/// The provider inside a tracer.
enum class Real : std::uint8_t {
  kKv,      ///< contiguous
  kPaged,   ///< over a pool of its own
  kTensor,  ///< on the host, fp32
};
BOOST_DESCRIBE_ENUM(Real, kKv, kPaged, kTensor)

/// The config of a case: what the real provider is made of.
KVO_RECORD(TracingConfig, (Real, real, "the provider inside the tracer", Real::kKv),
           (std::int64_t, num_layers, "layers of that provider"),
           (std::optional<std::int64_t>, max_seq_len,
            "positions that it holds, of kv and tensor; absent: 0"),
           (std::optional<block_pool::New>, pool, "sizes of its pool, of paged"),
           (std::optional<std::int64_t>, frozen, "frozen tensors that `new` gets; not used"))

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
