// reference/provider/operations.hpp: operations that several caches of contract `provider` share.
//
// An absent `cache` is cache 0.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/provider/cache.hpp"

namespace kvo::provider {

/// A query that answers one number.
struct Number {
  std::int64_t n = 0;
};
KVO_DESCRIBE(Number, (n, "how many, or at most how many"))

/// Axes of all rows that go in and come out.
inline constexpr std::array<std::string_view, 3> kRowAxes{"batch", "position", "dim"};

/// A query for rows: k and v are [batch, position, dim]; handle, k and v are absent when not found.
struct Found {
  static constexpr auto kAxes = kRowAxes;
  bool found = false;
  std::optional<std::int64_t> handle = std::nullopt;
  std::optional<Tensor> k = std::nullopt;
  std::optional<Tensor> v = std::nullopt;
};
KVO_DESCRIBE(Found, (found, "whether there was anything"),
             (handle, "number of a result that can be looked at again"), (k, "keys"), (v, "values"))

/// Rows read again through a handle, or only that their memory was given back.
struct Again {
  static constexpr auto kAxes = kRowAxes;
  std::optional<Tensor> k = std::nullopt;
  std::optional<Tensor> v = std::nullopt;
  std::optional<bool> dangling = std::nullopt;
};
KVO_DESCRIBE(Again, (k, "keys"), (v, "values"),
             (dangling, "whether the memory behind the result was given back"))

struct Update {
  static constexpr std::string_view kName = "update";
  static constexpr std::string_view kDoc = "Adds rows behind a layer's cursor (ZF-9, ZF-28).";
  using Returns = Nothing;
  static constexpr auto kAxes = kRowAxes;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
  Nullable<Tensor> k;
  Nullable<Tensor> v;
};
KVO_DESCRIBE(Update, (cache, "which cache of the case, as numbered when it was made"),
             (layer, "layer, counted from 0"), (k, "keys"), (v, "values"))

struct Get {
  static constexpr std::string_view kName = "get";
  static constexpr std::string_view kDoc =
      "Reads all rows of a layer; keep: false gives no handle (ZF-13, ZF-35, ZF-61).";
  using Returns = Found;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
  std::optional<bool> keep = std::nullopt;  ///< absent: true
};
KVO_DESCRIBE(Get, (cache, "which cache of the case, as numbered when it was made"),
             (layer, "layer, counted from 0"),
             (keep, "false: the result gets no handle; absent: true"))

struct Reread {
  static constexpr std::string_view kName = "reread";
  static constexpr std::string_view kDoc = "Reads an earlier result again (ZF-14, ZF-61).";
  using Returns = Again;
  std::int64_t handle = 0;
};
KVO_DESCRIBE(Reread, (handle, "number of a result that can be looked at again"))

struct Poke {
  static constexpr std::string_view kName = "poke";
  static constexpr std::string_view kDoc =
      "Writes one cell through an earlier result (ZF-14); precondition where rows are codes.";
  using Returns = Nothing;
  std::int64_t handle = 0;
  std::string side = "k";  ///< "k" or "v"
  std::int64_t index = 0;  ///< flat
  float value = 0;
};
KVO_DESCRIBE(Poke, (handle, "number of a result that can be looked at again"), (side, "k or v"),
             (index, "flat index of the element"), (value, "what the element is set to"))

struct Truncate {
  static constexpr std::string_view kName = "truncate";
  static constexpr std::string_view kDoc =
      "Cuts every layer to at most n positions (ZF-17, ZF-39).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t n = 0;
};
KVO_DESCRIBE(Truncate, (cache, "which cache of the case, as numbered when it was made"),
             (n, "how many, or at most how many"))

struct Reset {
  static constexpr std::string_view kName = "reset";
  static constexpr std::string_view kDoc = "Empties every layer (ZF-16, ZF-37, ZF-63).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(Reset, (cache, "which cache of the case, as numbered when it was made"))

struct SeqLen {
  static constexpr std::string_view kName = "seq_len";
  static constexpr std::string_view kDoc = "The cursor of layer 0 (ZF-15, ZF-36, ZF-63).";
  using Returns = Number;
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(SeqLen, (cache, "which cache of the case, as numbered when it was made"))

struct NumLayers {
  static constexpr std::string_view kName = "num_layers";
  static constexpr std::string_view kDoc = "The number of layers (ZF-8, ZF-36).";
  using Returns = Number;
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(NumLayers, (cache, "which cache of the case, as numbered when it was made"))

/// The results of queries that a case may look at again, and what the shared operations do.
/// Sessions inherit it and answer find(); `using SharedOps::operator();` brings its overloads in.
class SharedOps : public ProbedSession {
 public:
  Status operator()(const Update& op);
  Result<Found> operator()(const Get& op);
  Result<Again> operator()(const Reread& op);
  Status operator()(const Poke& op);
  Status operator()(const Truncate& op);
  Status operator()(const Reset& op);
  Result<Number> operator()(const SeqLen& op);

 protected:
  /// The format in which the caches store rows.
  void set_storage(const StorageFormat& storage) { storage_ = storage; }
  [[nodiscard]] const StorageFormat& storage() const { return storage_; }
  /// The cache of that number, or null.
  [[nodiscard]] virtual Provider* find(std::int64_t cache) = 0;
  [[nodiscard]] Provider* find(const std::optional<std::int64_t>& cache) {
    return find(cache.value_or(0));
  }
  /// Shows a pair as the answer of a query, with a handle when `keep`.
  [[nodiscard]] Found show(const std::optional<KvPair>& pair, bool keep);
  [[nodiscard]] static Error no_cache(const std::optional<std::int64_t>& cache);

 private:
  StorageFormat storage_;
  std::vector<KvPair> kept_;
};

#define KVO_SHARED_OPERATIONS                                                            \
  provider::Update, provider::Get, provider::Reread, provider::Poke, provider::Truncate, \
      provider::Reset, provider::SeqLen, provider::NumLayers

}  // namespace kvo::provider

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_SHARED_OPERATIONS)
}  // namespace kvo
