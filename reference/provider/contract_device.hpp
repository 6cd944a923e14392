// reference/provider/contract_device.hpp: the cache kind `provider.device`.
//
// A cache whose rows and position counter live in device memory. A session has one cache and one
// device; `new` replaces the cache and quietly closes the earlier one.
//
// Words    width    num_heads * head_dim: the f32 cells of one position.
//          length   positions held; in profile documented, those that every layer holds.
//          calls    what the device saw of an operation, also of one that failed.
// Source   rules ZF-42 to ZF-52.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reference/provider/contract.hpp"
#include "reference/provider/contract_device_calls.hpp"

namespace kvo::provider {

/// What a device cache is made of; null memory may be asked for.
struct DeviceSetup {
  std::shared_ptr<DeviceMemory> memory;
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

// ---- Operations ----

/// What operations answer that return nothing but the calls they made.
struct Calls {
  std::vector<Call> calls;
};
BOOST_DESCRIBE_STRUCT(Calls, (), (calls))

enum class Kernels : std::uint8_t { kHost, kUnavailable };
BOOST_DESCRIBE_ENUM(Kernels, kHost, kUnavailable)

struct NewDevice {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc =
      "Makes a cache and allocates its buffers (ZF-42, ZF-43).";
  using Returns = Calls;
  std::int64_t num_layers = 0;
  std::int64_t max_seq_len = 0;
  std::int64_t num_heads = 0;
  std::int64_t head_dim = 0;
  bool nil_allocator = false;
  Kernels kernels = Kernels::kHost;
};
BOOST_DESCRIBE_STRUCT(NewDevice, (),
                      (num_layers, max_seq_len, num_heads, head_dim, nil_allocator, kernels))

struct Append {
  static constexpr std::string_view kName = "append";
  static constexpr std::string_view kDoc = "Writes a layer's position from host memory (ZF-44).";
  using Returns = Calls;
  std::int64_t layer = 0;
  std::int64_t seq_pos = 0;
  std::vector<float> k;
  std::vector<float> v;
};
BOOST_DESCRIBE_STRUCT(Append, (), (layer, seq_pos, k, v))

struct AppendGpu {
  static constexpr std::string_view kName = "append_gpu";
  static constexpr std::string_view kDoc =
      "Writes a layer's next position from device memory with kernels (ZF-46).";
  using Returns = Calls;
  std::int64_t layer = 0;
  std::vector<float> k;
  std::vector<float> v;
};
BOOST_DESCRIBE_STRUCT(AppendGpu, (), (layer, k, v))

struct Pointers {
  static constexpr std::string_view kName = "pointers";
  static constexpr std::string_view kDoc = "The buffers of a layer, and the length (ZF-49).";
  struct Returns {
    ShownPtr k;
    ShownPtr v;
    std::int64_t n = 0;
  };
  std::int64_t layer = 0;
};
BOOST_DESCRIBE_STRUCT(Pointers, (), (layer))
BOOST_DESCRIBE_STRUCT(Pointers::Returns, (), (k, v, n))

struct CounterPtr {
  static constexpr std::string_view kName = "counter_ptr";
  static constexpr std::string_view kDoc = "The address of the counter (ZF-48).";
  struct Returns {
    ShownPtr ptr;
  };
};
BOOST_DESCRIBE_STRUCT(CounterPtr, (), ())
BOOST_DESCRIBE_STRUCT(CounterPtr::Returns, (), (ptr))

struct ReadCounter {
  static constexpr std::string_view kName = "read_counter";
  static constexpr std::string_view kDoc = "What the counter holds; null when it is freed (ZF-47).";
  struct Returns {
    Nullable<std::int64_t> n;
  };
};
BOOST_DESCRIBE_STRUCT(ReadCounter, (), ())
BOOST_DESCRIBE_STRUCT(ReadCounter::Returns, (), (n))

struct DevicePointerArrays {
  static constexpr std::string_view kName = "device_pointer_arrays";
  static constexpr std::string_view kDoc = "Copies all layers' pointers to the device (ZF-50).";
  struct Returns {
    std::vector<Call> calls;
    std::optional<ShownPtr> k = std::nullopt;
    std::optional<ShownPtr> v = std::nullopt;
    std::optional<std::vector<ShownPtr>> k_content = std::nullopt;
    std::optional<std::vector<ShownPtr>> v_content = std::nullopt;
  };
};
BOOST_DESCRIBE_STRUCT(DevicePointerArrays, (), ())
BOOST_DESCRIBE_STRUCT(DevicePointerArrays::Returns, (), (calls, k, v, k_content, v_content))

struct ReadBuffer {
  static constexpr std::string_view kName = "read_buffer";
  static constexpr std::string_view kDoc = "A layer's whole buffers, stale cells included (ZF-51).";
  struct Returns {
    static constexpr std::array<std::string_view, 2> kAxes{"position", "cell"};
    bool found = false;
    std::optional<Tensor> k = std::nullopt;
    std::optional<Tensor> v = std::nullopt;
  };
  std::int64_t layer = 0;
};
BOOST_DESCRIBE_STRUCT(ReadBuffer, (), (layer))
BOOST_DESCRIBE_STRUCT(ReadBuffer::Returns, (), (found, k, v))

struct LiveBuffers {
  static constexpr std::string_view kName = "live_buffers";
  static constexpr std::string_view kDoc = "The numbers of the buffers not given back, ascending.";
  struct Returns {
    std::vector<std::int64_t> bufs;
  };
};
BOOST_DESCRIBE_STRUCT(LiveBuffers, (), ())
BOOST_DESCRIBE_STRUCT(LiveBuffers::Returns, (), (bufs))

struct SyncDeviceCounter {
  static constexpr std::string_view kName = "sync_counter";
  static constexpr std::string_view kDoc = "Takes the length from the counter (ZF-48).";
  using Returns = Calls;
};
BOOST_DESCRIBE_STRUCT(SyncDeviceCounter, (), ())

struct ResetDevice {
  static constexpr std::string_view kName = "reset";
  static constexpr std::string_view kDoc = "Length and counter 0; the cells stay (ZF-51).";
  using Returns = Calls;
};
BOOST_DESCRIBE_STRUCT(ResetDevice, (), ())

struct Close {
  static constexpr std::string_view kName = "close";
  static constexpr std::string_view kDoc = "Frees everything (ZF-52).";
  using Returns = Calls;
};
BOOST_DESCRIBE_STRUCT(Close, (), ())

struct InjectDevice {
  static constexpr std::string_view kName = "inject";
  static constexpr std::string_view kDoc =
      "The n-th such call from now fails; an absent one stays as it was, 0 takes it back.";
  using Returns = Nothing;
  std::optional<std::int64_t> alloc_fail_at = std::nullopt;
  std::optional<std::int64_t> free_fail_at = std::nullopt;
  std::optional<std::int64_t> memcpy_fail_at = std::nullopt;
  std::optional<std::int64_t> kernel_fail_at = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(InjectDevice, (),
                      (alloc_fail_at, free_fail_at, memcpy_fail_at, kernel_fail_at))

using DeviceOps = boost::mp11::mp_list<NewDevice, Append, AppendGpu, SeqLen, Pointers, CounterPtr,
                                       ReadCounter, DevicePointerArrays, ReadBuffer, LiveBuffers,
                                       SyncDeviceCounter, ResetDevice, Close, InjectDevice>;

/// The cache kind `provider.device`.
[[nodiscard]] const CacheKind& device_kind();

/// Makes a cache.
/// Errors  other:nil_allocator; kOutOfRange with the name of a size that is not positive (ZF-42);
///         a product of sizes overflows: kPrecondition, documented kOutOfRange "max_seq_len";
///         those of the memory, after everything was given back (ZF-43).
using MakeDevice =
    std::function<Result<std::unique_ptr<DeviceKv>>(const DeviceSetup& setup, Profile profile)>;

/// A subject whose caches come from `make` and lie in the memory of `make_memory`.
[[nodiscard]] Subject make_device_subject(std::string engine, std::string doc, MakeDevice make,
                                          MakeDeviceMemory make_memory);

}  // namespace kvo::provider
