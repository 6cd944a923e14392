// reference/provider/contract.hpp: the contract `provider`: one cache a sequence batch, layer by
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

#include "reference/contract/subject.hpp"
#include "reference/contract/tensor.hpp"
#include "reference/provider/contract_device_memory.hpp"

namespace kvo::provider {

/// The rows of one update; a null pointer is a null tensor. Borrowed for the call. Where a device
/// address is set the cells live there, and the tensor only gives their shape.
struct Rows {
  const Tensor* k = nullptr;
  const Tensor* v = nullptr;
  DevicePtr k_device = {};
  DevicePtr v_device = {};
};

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
  /// Empties every layer.
  [[nodiscard]] virtual Status reset() = 0;
  /// Cuts every layer to at most `n` positions (ZF-17, ZF-39, ZF-64).
  [[nodiscard]] virtual Status truncate(std::int64_t n) = 0;
  /// Nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }
};

// ---- Operations that several caches share. An absent `cache` is cache 0. ----

/// A query that answers one number.
struct Number {
  std::int64_t n = 0;
};
BOOST_DESCRIBE_STRUCT(Number, (), (n))

/// A query for rows: k and v are [batch, position, dim]; handle, k and v are absent when not found.
struct Found {
  static constexpr std::array<std::string_view, 3> kAxes{"batch", "position", "dim"};
  bool found = false;
  std::optional<std::int64_t> handle = std::nullopt;
  std::optional<Tensor> k = std::nullopt;
  std::optional<Tensor> v = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(Found, (), (found, handle, k, v))

/// Rows read again through a handle, or only that their memory was given back.
struct Again {
  static constexpr std::array<std::string_view, 3> kAxes{"batch", "position", "dim"};
  std::optional<Tensor> k = std::nullopt;
  std::optional<Tensor> v = std::nullopt;
  std::optional<bool> dangling = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(Again, (), (k, v, dangling))

struct Update {
  static constexpr std::string_view kName = "update";
  static constexpr std::string_view kDoc = "Adds rows behind a layer's cursor (ZF-9, ZF-28).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
  Nullable<Tensor> k;
  Nullable<Tensor> v;
};
BOOST_DESCRIBE_STRUCT(Update, (), (cache, layer, k, v))

struct Get {
  static constexpr std::string_view kName = "get";
  static constexpr std::string_view kDoc =
      "Reads all rows of a layer; keep: false gives no handle (ZF-13, ZF-35, ZF-61).";
  using Returns = Found;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
  std::optional<bool> keep = std::nullopt;  ///< absent: true
};
BOOST_DESCRIBE_STRUCT(Get, (), (cache, layer, keep))

struct Reread {
  static constexpr std::string_view kName = "reread";
  static constexpr std::string_view kDoc = "Reads an earlier result again (ZF-14, ZF-61).";
  using Returns = Again;
  std::int64_t handle = 0;
};
BOOST_DESCRIBE_STRUCT(Reread, (), (handle))

struct Poke {
  static constexpr std::string_view kName = "poke";
  static constexpr std::string_view kDoc = "Writes one cell through an earlier result (ZF-14).";
  using Returns = Nothing;
  std::int64_t handle = 0;
  std::string side = "k";  ///< "k" or "v"
  std::int64_t index = 0;  ///< flat
  float value = 0;
};
BOOST_DESCRIBE_STRUCT(Poke, (), (handle, side, index, value))

struct Truncate {
  static constexpr std::string_view kName = "truncate";
  static constexpr std::string_view kDoc =
      "Cuts every layer to at most n positions (ZF-17, ZF-39).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t n = 0;
};
BOOST_DESCRIBE_STRUCT(Truncate, (), (cache, n))

struct Reset {
  static constexpr std::string_view kName = "reset";
  static constexpr std::string_view kDoc = "Empties every layer (ZF-16, ZF-37, ZF-63).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(Reset, (), (cache))

struct SeqLen {
  static constexpr std::string_view kName = "seq_len";
  static constexpr std::string_view kDoc = "The cursor of layer 0 (ZF-15, ZF-36, ZF-63).";
  using Returns = Number;
  std::optional<std::int64_t> cache = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(SeqLen, (), (cache))

struct NumLayers {
  static constexpr std::string_view kName = "num_layers";
  static constexpr std::string_view kDoc = "The number of layers (ZF-8, ZF-36).";
  using Returns = Number;
  std::optional<std::int64_t> cache = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(NumLayers, (), (cache))

/// The results of queries that a case may look at again, and what the shared operations do.
/// Sessions inherit it and answer find(); `using SharedOps::operator();` brings its overloads in.
class SharedOps {
 public:
  virtual ~SharedOps() = default;

  Status operator()(const Update& op);
  Result<Found> operator()(const Get& op);
  Result<Again> operator()(const Reread& op);
  Status operator()(const Poke& op);
  Status operator()(const Truncate& op);
  Status operator()(const Reset& op);
  Result<Number> operator()(const SeqLen& op);

 protected:
  /// The cache of that number, or null.
  [[nodiscard]] virtual Provider* find(std::int64_t cache) = 0;
  [[nodiscard]] Provider* find(const std::optional<std::int64_t>& cache) {
    return find(cache.value_or(0));
  }
  /// Shows a pair as the answer of a query, with a handle when `keep`.
  [[nodiscard]] Found show(const std::optional<KvPair>& pair, bool keep);
  [[nodiscard]] static Error no_cache(const std::optional<std::int64_t>& cache);

  Probe& probe() { return *probe_; }
  Probe* probe_ = nullptr;  ///< set by the session before each operation

 private:
  std::vector<KvPair> kept_;
};

}  // namespace kvo::provider
