// reference/provider/tracing.hpp: the cache kind `provider.tracing`.
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

#include <boost/json/fwd.hpp>

#include "reference/provider/cache.hpp"

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

/// Everything traced since the tracer was made.
struct TraceLog {
  std::vector<TraceOp> ops = {};
  std::int64_t next_slot = 0;
  std::vector<SlotShape> shapes = {};
  std::vector<std::int64_t> frozen_slots = {};
  bool opaque = false;
};

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

}  // namespace kvo::provider
