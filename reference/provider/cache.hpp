// reference/provider/cache.hpp: the contract `provider`: one cache a sequence batch, layer by
// layer.
//
// Words    cursor   positions that a layer holds; layers move on their own within a forward pass.
//          handle   number of a query's result that a case may look at again (reread) or write
//                   through (poke); counted from 0 over all caches of the case.
// Shapes   keys and values are [batch, position, dim], f32, row-major.
// Views    a query's result may share the cache's memory: later writes may show through it.
// Threads  none of the caches is safe for concurrent use (ZF-7).
// Source   rules ZF-1 to ZF-18 and ZF-27 to ZF-74.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/device/device.hpp"
#include "reference/contract/values/result.hpp"
#include "reference/contract/values/tensor.hpp"
#include "reference/provider/quirks.hpp"

namespace kvo::provider {

/// The rows of one update; a null pointer is a null tensor. Borrowed for the call. Where a device
/// address is set the cells live there, and the tensor only gives their shape.
struct Rows {
  const Tensor* k = nullptr;
  const Tensor* v = nullptr;
  DevicePtr k_device = {};
  DevicePtr v_device = {};
};

/// Errors  kBadShape "rank": K has not three axes; the same where K is null, with kNullAborts
///         kPrecondition.
[[nodiscard]] inline Status check_k(const Rows& rows, QuirkSet<Quirk> quirks) {
  if (rows.k == nullptr && quirks.has(Quirk::kNullAborts))
    return fail(Code::kPrecondition, "k is null");
  if (rows.k == nullptr || rows.k->shape.size() != 3) return fail(Code::kBadShape, "rank");
  return {};
}
/// Errors  kBadShape "v": V has not the shape of K, unless `ignored`; V is null, with kNullAborts
///         kPrecondition.
[[nodiscard]] inline Status check_v(const Rows& rows, QuirkSet<Quirk> quirks, Quirk ignored) {
  if (rows.v == nullptr && quirks.has(Quirk::kNullAborts))
    return fail(Code::kPrecondition, "v is null");
  if (rows.v == nullptr || (rows.v->shape != rows.k->shape && !quirks.has(ignored)))
    return fail(Code::kBadShape, "v");
  return {};
}

/// What a layer holds: [batch, cursor, dim] each.
struct KvPair {
  TensorView k;
  TensorView v;
};

/// A cache of the contract (ZF-6). Unless a rule says otherwise an error changes nothing.
class Provider {
 public:
  virtual ~Provider() = default;

  /// Adds rows.k's positions behind the layer's cursor. Errors by cache: ZF-9, ZF-28, ZF-54.
  [[nodiscard]] virtual Status update(std::int64_t layer, const Rows& rows) = 0;
  /// All positions of a layer, or nothing when it has none or does not exist.
  /// Errors  kPrecondition where the original aborts (ZF-18, ZF-64).
  [[nodiscard]] virtual Result<std::optional<KvPair>> get(std::int64_t layer) = 0;
  /// The cursor of layer 0, in positions; 0 without layers.
  [[nodiscard]] virtual std::int64_t seq_len() const = 0;
  /// Empties every layer. Errors  as the device's, where rows lie on one.
  [[nodiscard]] virtual Status reset() = 0;
  /// Cuts every layer to at most `n` positions (ZF-17, ZF-39, ZF-64).
  /// Errors  kPrecondition where the original aborts.
  [[nodiscard]] virtual Status truncate(std::int64_t n) = 0;
  /// Nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }
};

}  // namespace kvo::provider
