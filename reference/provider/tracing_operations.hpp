// reference/provider/tracing_operations.hpp: the cache kind `provider.tracing`.
//
// A provider in front of another one that writes down what goes through, for a tracing compiler. A
// session holds several; `new` with the number of an earlier one replaces it.
//
// Words    object   a tensor with an identity; the operations give objects numbers.
//          slot     the tracer's number for an object: frozen ones first, then as they are seen.
// Source   rules ZF-68 to ZF-71.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "reference/block_pool/operations.hpp"
#include "reference/provider/operations.hpp"

namespace kvo::provider {

/// A slot and the shape that its tensor had when it was first seen: [3,[1,2,2]] in logs.
struct SlotShape {
  std::int64_t slot = 0;
  std::vector<std::int64_t> shape = {};

  [[nodiscard]] boost::json::value to_json() const;
  bool from_json(const boost::json::value& in);
  friend bool operator==(const SlotShape&, const SlotShape&) = default;
};

/// One traced operation.
KVO_RECORD(TraceOp, (std::string, op, "KVCacheAppendK, KVCacheAppendV, KVCacheGetK or KVCacheGetV"),
           (std::vector<std::int64_t>, inputs, "slots that it reads"),
           (std::int64_t, output, "slot that it makes"), (LayerNumber, layer))
/// Everything traced since the tracer was made.
KVO_RECORD(TraceLog,
           (std::vector<TraceOp>, ops, "traced operations: name, input slots, output slot, layer"),
           (std::int64_t, next_slot, "slot that the next traced tensor gets"),
           (std::vector<SlotShape>, shapes, "shape of each slot"),
           (std::vector<std::int64_t>, frozen_slots, "slots of the frozen tensors"),
           (bool, opaque, "whether the trace holds operations it cannot explain"))

/// A tracer over a provider. A tensor's identity is its address, so tensors that were traced must
/// live as long as the tracer (ZF-71). An update or query that the real provider refuses leaves no
/// trace (ZF-68, ZF-69).
class Tracing : public Provider {
 public:
  [[nodiscard]] virtual TraceLog trace() const = 0;
};

/// Puts a tracer in front of it; frozen tensors get the first slots.
using MakeTracing = std::function<Result<std::unique_ptr<Tracing>>(
    std::unique_ptr<Provider> real, const std::vector<const Tensor*>& frozen)>;

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
