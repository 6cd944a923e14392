// reference/provider/device.hpp: the cache kind `provider.device`.
//
// A cache whose rows and position counter live in device memory. A session has one cache and one
// device; `new` replaces the cache and quietly closes the earlier one.
//
// Words    width    num_heads * head_dim: the f32 cells of one position.
//          length   positions held; in profile documented, those that every layer holds.
//          calls    the calls to the device in an operation, also of one that failed.
// Source   rules ZF-42 to ZF-52.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "reference/provider/cache.hpp"

namespace kvo::provider {

/// What a device cache is made of; null memory may be asked for.
struct DeviceOptions {
  std::shared_ptr<Device> memory;
  std::int64_t num_layers = 0;
  std::int64_t max_seq_len = 0;  ///< positions
  std::int64_t num_heads = 0;
  std::int64_t head_dim = 0;
};

/// The buffers of one layer, [max_seq_len][width] f32 cells each, and the length.
struct LayerPointers {
  DevicePtr k;
  DevicePtr v;
  std::int64_t length = 0;
};

/// Device arrays with the K and the V pointers of all layers.
struct PointerArrays {
  DevicePtr k;
  DevicePtr v;
};

/// A cache of the kind. Errors change nothing but cells at the position that was being written;
/// those of the device (other:memcpy_failed and so on) are passed on. The destructor frees nothing.
class DeviceKv {
 public:
  virtual ~DeviceKv() = default;

  /// Writes the position `pos` of a layer from host memory (ZF-44).
  /// Shape   k, v: [width].
  /// Errors  kOutOfRange "layer"; kBadPosition: pos is not the next one; kFull; kBadShape "k", "v";
  ///         documented: kClosed before all.
  [[nodiscard]] virtual Status append(std::int64_t layer, std::span<const float> k,
                                      std::span<const float> v, std::int64_t pos) = 0;
  /// Writes a layer's next position, which the kernels take from the counter (ZF-46, ZF-47).
  /// Shape   k, v: [width] f32 cells in device memory.
  /// Errors  kOutOfRange "layer"; kFull; kNotSupported "kernels"; documented: kClosed before all,
  ///         kBadPosition: the layer has the position already.
  [[nodiscard]] virtual Status append_gpu(std::int64_t layer, DevicePtr k, DevicePtr v) = 0;
  /// Positions held (ZF-48).
  [[nodiscard]] virtual std::int64_t seq_len() const = 0;
  /// Takes the length from the counter (ZF-48).
  /// Errors  kClosed; documented: kBadPosition: the counter is outside [0, max_seq_len].
  [[nodiscard]] virtual Status sync_counter() = 0;
  /// The counter's address; null after close.
  [[nodiscard]] virtual DevicePtr counter() const = 0;
  /// Null, null, 0 for a layer out of range (ZF-49).
  [[nodiscard]] virtual LayerPointers pointers(std::int64_t layer) const = 0;
  /// Copies the pointers of all layers to the device (ZF-50). Documented: once; kClosed.
  [[nodiscard]] virtual Result<PointerArrays> pointer_arrays() = 0;
  /// Length and counter 0; cells stay; a failed copy is no error (ZF-51).
  virtual void reset() = 0;
  /// Frees everything, goes on after errors, and returns the first one (ZF-52).
  [[nodiscard]] virtual Status close() = 0;
};

/// Errors  as MakeDevice says of options (ZF-42).
[[nodiscard]] inline Status check(const DeviceOptions& options, QuirkSet<Quirk> quirks) {
  if (!options.memory) return fail_other("nil_allocator");
  for (const auto& [size, name] :
       {std::pair(options.num_layers, "num_layers"), std::pair(options.max_seq_len, "max_seq_len"),
        std::pair(options.num_heads, "num_heads"), std::pair(options.head_dim, "head_dim")})
    if (size <= 0) return fail(Code::kOutOfRange, name);
  const std::array<std::int64_t, 4> bytes{options.max_seq_len, options.num_heads, options.head_dim,
                                          sizeof(float)};
  if (!element_count(bytes))
    return fail(quirks.has(Quirk::kOverflowAborts) ? Code::kPrecondition : Code::kOutOfRange,
                "max_seq_len");
  return {};
}

/// Makes a cache.
/// Errors  other:nil_allocator; kOutOfRange with the name of a size that is not positive (ZF-42);
///         kOutOfRange "max_seq_len", with kOverflowAborts kPrecondition: a product overflows;
///         those of the memory, after everything was given back (ZF-43).
using MakeDevice = std::function<Result<std::unique_ptr<DeviceKv>>(const DeviceOptions& options,
                                                                   QuirkSet<Quirk> quirks)>;

}  // namespace kvo::provider
