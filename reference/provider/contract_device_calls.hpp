// reference/provider/contract_device_calls.hpp: calls of a device and addresses, as logs show them.
//
// Source   provider.md, section 16 (calls).
#pragma once

#include <cstdint>
#include <optional>

#include <boost/json.hpp>

#include "reference/contract/describe.hpp"

namespace kvo::provider {

/// A device address as logs show it: {"buf":0,"off":8}, "host", "k_src", "v_src", or null;
/// {"buf":null,"off":8} is null + 8.
struct ShownPtr {
  enum class Where : std::uint8_t { kNull, kBuffer, kHost, kKSource, kVSource };
  Where where = Where::kNull;
  std::int64_t buf = 0;  ///< buffers are numbered in order of successful allocs
  std::int64_t off = 0;  ///< bytes

  [[nodiscard]] boost::json::value to_json() const;
  bool from_json(const boost::json::value& in);
  friend bool operator==(const ShownPtr&, const ShownPtr&) = default;
};

enum class CallName : std::uint8_t {
  kAlloc,
  kFree,
  kMemcpy,
  kOffsetMemcpy,
  kIncrementCounter,
  kToHalf,
  kToFloat
};
BOOST_DESCRIBE_ENUM(CallName, kAlloc, kFree, kMemcpy, kOffsetMemcpy, kIncrementCounter, kToHalf,
                    kToFloat)

/// One call of a device; absent members do not belong to it.
struct Call {
  CallName fn = CallName::kAlloc;
  std::optional<std::int64_t> size = std::nullopt;  ///< bytes; of conversions: cells
  std::optional<std::int64_t> buf = std::nullopt;   ///< what a successful alloc made
  std::optional<ShownPtr> ptr = std::nullopt;       ///< what free gave back
  std::optional<ShownPtr> dst = std::nullopt;
  std::optional<ShownPtr> src = std::nullopt;
  std::optional<std::int64_t> kind = std::nullopt;  ///< 0 to the device, 1 to the host, 2 on it
  std::optional<ShownPtr> counter = std::nullopt;
  std::optional<std::int64_t> dim = std::nullopt;
  std::optional<std::int64_t> max_seq_len = std::nullopt;
  std::optional<std::int64_t> delta = std::nullopt;
  std::optional<bool> error = std::nullopt;  ///< true for a failed call
};
BOOST_DESCRIBE_STRUCT(Call, (),
                      (fn, size, buf, ptr, dst, src, kind, counter, dim, max_seq_len, delta, error))

}  // namespace kvo::provider
