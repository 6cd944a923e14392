// reference/provider/contract_tracing.hpp: the cache kind `provider.tracing`.
//
// A provider in front of another one that writes down what goes through, for a tracing compiler. A
// session holds several; `new` with the number of an earlier one replaces it.
//
// Words    object   a tensor with an identity; the operations give objects numbers.
//          slot     the tracer's number for an object: frozen ones first, then as they are seen.
// Source   rules ZF-68 to ZF-71.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reference/block_pool/contract.hpp"
#include "reference/provider/contract.hpp"

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
struct TraceOp {
  std::string op;  ///< KVCacheAppendK, KVCacheAppendV, KVCacheGetK or KVCacheGetV
  std::vector<std::int64_t> inputs = {};  ///< slots
  std::int64_t output = 0;                ///< slot
  std::int64_t layer = 0;
};
BOOST_DESCRIBE_STRUCT(TraceOp, (), (op, inputs, output, layer))

/// Everything traced since the tracer was made.
struct TraceLog {
  std::vector<TraceOp> ops = {};
  std::int64_t next_slot = 0;
  std::vector<SlotShape> shapes = {};
  std::vector<std::int64_t> frozen_slots = {};
  bool opaque = false;
};
BOOST_DESCRIBE_STRUCT(TraceLog, (), (ops, next_slot, shapes, frozen_slots, opaque))

/// A tracer over a provider. A tensor's identity is its address, so tensors that were traced must
/// live as long as the tracer (ZF-71). An update or query that the real provider refuses leaves no
/// trace (ZF-68, ZF-69).
class Tracing : public Provider {
 public:
  [[nodiscard]] virtual TraceLog trace() const = 0;
};

// ---- Operations. An absent `cache` is cache 0. ----

struct NewTracing {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc =
      "Makes a tracer over a new real provider; frozen tensors are objects 0, 1, ... (ZF-71).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::vector<std::vector<std::int64_t>> frozen_shapes;
};
BOOST_DESCRIBE_STRUCT(NewTracing, (), (cache, frozen_shapes))

struct UpdateTraced {
  static constexpr std::string_view kName = "update";
  static constexpr std::string_view kDoc =
      "Forwards an update and traces it; the same id is the same tensor object (ZF-68).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
  Nullable<Tensor> k;
  Nullable<Tensor> v;
  std::int64_t k_id = 0;
  std::int64_t v_id = 0;
};
BOOST_DESCRIBE_STRUCT(UpdateTraced, (), (cache, layer, k, v, k_id, v_id))

struct Trace {
  static constexpr std::string_view kName = "trace";
  static constexpr std::string_view kDoc = "Everything traced since new (ZF-68 to ZF-71).";
  using Returns = TraceLog;
  std::optional<std::int64_t> cache = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(Trace, (), (cache))

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
struct RealSetup {
  Real real = Real::kKv;
  std::int64_t num_layers = 0;
  std::optional<std::int64_t> max_seq_len = std::nullopt;  ///< kv and tensor; absent: 0
  std::optional<block_pool::New> pool = std::nullopt;      ///< paged
  std::optional<std::int64_t> frozen = std::nullopt;       ///< what `new` will be told; not used
};
BOOST_DESCRIBE_STRUCT(RealSetup, (), (real, num_layers, max_seq_len, pool, frozen))

/// Makes the real provider; errors as of its maker.
using MakeReal =
    std::function<Result<std::unique_ptr<Provider>>(const RealSetup& setup, Profile profile)>;
/// Puts a tracer in front of it; frozen tensors get the first slots.
using MakeTracing = std::function<Result<std::unique_ptr<Tracing>>(
    std::unique_ptr<Provider> real, const std::vector<const Tensor*>& frozen)>;

/// A subject whose tracers come from `make`, over providers from `make_real`.
[[nodiscard]] Subject make_tracing_subject(std::string engine, std::string doc, MakeTracing make,
                                           MakeReal make_real);

}  // namespace kvo::provider
