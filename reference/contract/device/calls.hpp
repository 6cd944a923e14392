// reference/contract/device/calls.hpp: calls of a device and addresses, as logs show them.
//
// Source   provider.md, section 16 (calls).
#pragma once

#include <cstdint>
#include <optional>

#include <boost/json.hpp>

#include "reference/contract/describe/describe.hpp"

namespace kvo {

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

enum class DeviceCallName : std::uint8_t {
  kAlloc,
  kFree,
  kMemcpy,
  kOffsetMemcpy,
  kIncrementCounter,
  kToHalf,
  kToFloat
};
BOOST_DESCRIBE_ENUM(DeviceCallName, kAlloc, kFree, kMemcpy, kOffsetMemcpy, kIncrementCounter,
                    kToHalf, kToFloat)

/// One call of a device; absent members do not belong to it.
struct DeviceCall {
  DeviceCallName fn = DeviceCallName::kAlloc;
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
KVO_DESCRIBE(DeviceCall, (fn, "what the device was asked to do"),
             (size, "bytes; of conversions: cells"),
             (buf, "the buffer that a successful alloc made"), (ptr, "what free gave back"),
             (dst, "where the copy went"), (src, "where it came from"),
             (kind, "0 to the device, 1 to the host, 2 on it"),
             (counter, "the counter that gives the position"), (dim, "cells of a row"),
             (max_seq_len, "positions of the buffer"), (delta, "what the counter is moved by"),
             (error, "true for a failed call"))

}  // namespace kvo
