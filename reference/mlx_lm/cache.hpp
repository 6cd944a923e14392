// reference/mlx_lm/cache.hpp: the contract `mlx_lm`: the caches of one layer, for one sequence or
// for a batch.
//
// Words    array    an object; a cache may share it with others (arrays.hpp, ML-A1).
//          offset   tokens of a sequence so far.
//          padding  columns at the left of a row of a batch that hold no token.
// Shapes   keys and values are [B, H, S, D].
// Threads  none.
// Source   rules ML-1 to ML-71 (docs/rules/mlx_lm.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <boost/json/fwd.hpp>

#include "reference/contract/describe/describe.hpp"
#include "reference/contract/values/result.hpp"
#include "reference/mlx_lm/arrays.hpp"
#include "reference/mlx_lm/quirks.hpp"

namespace kvo::mlx_lm {

/// Quantized rows (ML-30).
KVO_RECORD(Quantized, (Tensor, w, "packed words"), (Tensor, scales, "one a group"),
           (Tensor, biases, "one a group"))

/// What a cache of Python returns: null, a flag, a number, a word, an array, quantized rows, or a
/// list of these.
struct Value {  // NOLINT(bugprone-exception-escape): as Tensor
  using List = std::vector<Value>;
  std::variant<std::monostate, bool, std::int64_t, std::string, Tensor, Quantized, List> held = {};

  Value() = default;
  Value(bool flag) : held(flag) {}                      // NOLINT: reads as its value
  Value(std::int64_t number) : held(number) {}          // NOLINT: as above
  Value(const char* word) : held(std::string(word)) {}  // NOLINT: as above
  Value(Tensor tensor) : held(std::move(tensor)) {}     // NOLINT: as above
  Value(Quantized rows) : held(std::move(rows)) {}      // NOLINT: as above
  Value(List list) : held(std::move(list)) {}           // NOLINT: as above
  Value(const Array& array) {                           // NOLINT: as above
    if (array) held = *array;
  }
  [[nodiscard]] boost::json::value to_json() const;
  bool from_json(const boost::json::value& in);
  friend bool operator==(const Value& a, const Value& b);
};

/// Keys or values: one array, or three of quantized rows.
using Arrays = std::vector<Array>;

/// Slots of arrays that a cache shows: the objects themselves, or copies of their first ones.
struct Side {
  Arrays arrays;                                     ///< one, or words, scales and biases
  std::optional<std::int64_t> count = std::nullopt;  ///< slots [0, count); none: the objects
  /// What it shows now.
  [[nodiscard]] Value shown() const;
};
struct Pair {
  Side k;
  Side v;
};

/// What can be read of any cache (ML-3).
KVO_RECORD(Info, (std::int64_t, size, "tokens, 0 of caches that do not count them"),
           (bool, empty, "whether there is no buffer"), (std::int64_t, nbytes, "bytes of arrays"),
           (bool, trimmable, "whether tokens can be taken off the end"),
           (std::optional<std::int64_t>, batch_size, "rows; arrays caches only"))

/// How a cache of a kind is made.
struct Options {
  std::string kind;           ///< "kv", "batch-kv", ... (ML-1 to ML-60)
  std::int64_t step = 256;    ///< slots by which buffers grow
  std::int64_t max_size = 0;  ///< W of a ring
  std::int64_t keep = 0;      ///< first slots that a ring never overwrites
  std::int64_t chunk_size = 0;
  std::int64_t group_size = 64;
  std::int64_t bits = 8;
  std::int64_t size = 0;   ///< arrays of an arrays cache
  Ints left_padding = {};  ///< of each row of a batch
};

class Cache;
using CachePtr = std::unique_ptr<Cache>;

/// A cache of the contract. What a kind does not offer is kNotSupported, anything else that Python
/// ends with an exception kPrecondition. A failed call changes nothing, but for ML-A4.
class Cache {
 public:
  virtual ~Cache() = default;

  /// "kv", "batch-kv", ..
  [[nodiscard]] virtual std::string_view kind() const = 0;
  /// The tuple that would be saved.
  [[nodiscard]] virtual Value::List state() const = 0;
  /// Errors  kPrecondition: ML-30.
  [[nodiscard]] virtual Result<Info> info() const = 0;
  [[nodiscard]] virtual bool is_trimmable() const { return false; }
  /// copy.copy, or copy.deepcopy (ML-7).
  [[nodiscard]] virtual CachePtr copy(bool deep) const = 0;
  /// A cache that is made from the state and shares its arrays.
  /// Errors  kPrecondition: ML-8.
  [[nodiscard]] virtual Result<CachePtr> from_state() const = 0;

  /// A number, or one for each row. Errors  kNotSupported.
  [[nodiscard]] virtual Result<Value> offset() const;
  /// Adds tokens and returns what attention sees. The cache may take the arrays as its own.
  /// Errors  kNotSupported; kPrecondition: rows that do not fit, or as the kind's rules say.
  [[nodiscard]] virtual Result<Pair> update(const Array& k, const Array& v);
  /// What attention sees. Errors  kNotSupported; kPrecondition: there is no buffer.
  [[nodiscard]] virtual Result<Pair> keys_and_values() const;
  /// Takes tokens off the end; how many. Errors  kNotSupported.
  [[nodiscard]] virtual Result<std::int64_t> trim(std::int64_t n);
  /// Null, "causal", or a matrix. Errors  kNotSupported; kPrecondition: too large.
  [[nodiscard]] virtual Result<Value> make_mask(std::int64_t queries,
                                                std::optional<std::int64_t> window,
                                                bool return_array) const;
  /// One batch of caches of the kind, this one first. Errors  kNotSupported; kPrecondition.
  [[nodiscard]] virtual Result<CachePtr> merge(std::span<const Cache* const> caches) const;
  /// A row of a batch. Errors  kNotSupported; kPrecondition: no such row, or no buffer.
  [[nodiscard]] virtual Result<CachePtr> extract(std::int64_t row) const;
  /// Errors  kNotSupported; kPrecondition: rows that cannot be quantized.
  [[nodiscard]] virtual Result<CachePtr> to_quantized(std::int64_t group_size,
                                                      std::int64_t bits) const;
  /// Errors  kNotSupported; kPrecondition: there is no buffer.
  [[nodiscard]] virtual Result<std::vector<Tensor>> dequantized() const;
  /// Offset and start after slots beyond the chunk were dropped. Errors  kNotSupported.
  [[nodiscard]] virtual Result<std::vector<std::int64_t>> maybe_trim_front();
  /// Errors  kNotSupported; kPrecondition: no such row, or ML-43.
  [[nodiscard]] virtual Status filter(const Ints& rows);
  /// Adds the rows of another cache of the kind. Errors  kNotSupported; kPrecondition.
  [[nodiscard]] virtual Status extend(Cache& other);
  /// Errors  kNotSupported; kPrecondition: ML-45, ML-54.
  [[nodiscard]] virtual Status prepare(const std::optional<Ints>& left_padding,
                                       const std::optional<Ints>& lengths,
                                       const std::optional<Ints>& right_padding);
  /// Errors  kNotSupported; kPrecondition: ML-45, ML-46.
  [[nodiscard]] virtual Status finalize();
  /// Errors  kNotSupported; kPrecondition: there is no such entry.
  [[nodiscard]] virtual Status set(std::int64_t entry, const Array& array);
  /// Errors  kNotSupported.
  [[nodiscard]] virtual Status advance(std::int64_t n);
};

/// Makes a cache of options.kind.
/// Errors  kPrecondition: no such kind; kNotSupported: the subject does not offer it.
using MakeCache = std::function<Result<CachePtr>(const Options&, QuirkSet<Quirk>)>;

// ---- What the reference caches share ----

/// Mask of a cache that sees all tokens (ML-5).
[[nodiscard]] Value causal_mask(const Mask& mask, bool return_array);
/// Of ML-4: how much trimming n of `most` tokens takes off.
[[nodiscard]] inline std::int64_t trimmed(std::int64_t n, std::int64_t most,
                                          QuirkSet<Quirk> quirks) {
  const std::int64_t taken = n < most ? n : most;
  return taken < 0 && !quirks.has(Quirk::kNegativeTrimGrows) ? 0 : taken;
}

}  // namespace kvo::mlx_lm
