// reference/layered/cache.hpp: the contract `layered`: one growing row store a layer.
//
// Words    entry    the K (or V) of one token in one layer: num_kv_heads * head_dim elements; it
//                   comes as f32 and is stored head by head (values/numeric.hpp).
//          len      tokens counted by advance(); not derived from the data.
// Shapes   k(layer) and v(layer) are flat: the appended elements of that layer, in append order, as
//          they are stored.
// Builds   `debug` and `release` are those of the followed Rust cache; they differ in its quirks.
// Views    a span from k or v is valid until the next append to that layer, clear, or destruction.
// Threads  readers may run side by side; a writer needs the cache for itself (RS-19).
// Source   rules RS-1 to RS-19.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reference/contract/subject/subject.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/result.hpp"
#include "reference/layered/operations.hpp"
#include "reference/layered/quirks.hpp"

namespace kvo::layered {

/// What a cache does where the rules leave a choice. Without quirks every build does the same.
struct Behaviour {
  Build build = Build::kRelease;
  QuirkSet<Quirk> quirks = {};
  StorageFormat storage = {};  ///< where it is not f32, sizes and lengths are always checked
};

/// Sizes of a cache; every value is accepted at construction, 0 included (RS-1).
struct Geometry {
  std::uint64_t num_layers = 0;
  std::uint64_t num_kv_heads = 0;
  std::uint64_t head_dim = 0;
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

/// A cache of the contract. A method carries out the operation of its name; the handle of the cache
/// in its record is not used. Errors of every call: nothing has changed.
class Cache {
 public:
  virtual ~Cache() = default;

  [[nodiscard]] virtual Geometry geometry() const = 0;
  /// Shape   k, v: [num_kv_heads * head_dim]; with kLengthsUnchecked release takes any lengths.
  /// Errors  kOutOfRange "layer", with kLayerAborts kPrecondition, and after the lengths;
  ///         kBadShape "k", "v": a wrong length; with kLengthsUnchecked debug: kPrecondition;
  ///         kPrecondition: a second append of a layer within one token (RS-4 to RS-7).
  [[nodiscard]] virtual Status append(const Append& op) = 0;
  /// Errors  kPrecondition unless every layer was appended to exactly once (RS-8).
  [[nodiscard]] virtual Status advance() = 0;
  /// As it is stored, rows of head_dim elements (RS-9).
  /// Errors  kOutOfRange, with kLayerAborts kPrecondition: no such layer.
  [[nodiscard]] virtual Result<std::span<const std::byte>> k(const Keys& op) const = 0;
  [[nodiscard]] virtual Result<std::span<const std::byte>> v(const Values& op) const = 0;
  [[nodiscard]] virtual std::uint64_t len() const = 0;
  /// In elements; as entry_elements reports (RS-11).
  [[nodiscard]] virtual Result<std::uint64_t> entry_size() const = 0;
  virtual void clear() = 0;
  /// Its capacity is not promised (RS-15).
  [[nodiscard]] virtual std::unique_ptr<Cache> clone() const = 0;

  [[nodiscard]] bool is_empty() const { return len() == 0; }
  [[nodiscard]] std::uint64_t num_layers() const { return geometry().num_layers; }
};

/// num_kv_heads * head_dim (RS-11).
/// Errors  kOutOfRange: it overflows; with kSizesUnchecked kPrecondition (debug), or none: it wraps
///         modulo 2^64 (release).
[[nodiscard]] Result<std::uint64_t> entry_elements(const Geometry& geometry,
                                                   const Behaviour& behaviour);
/// Elements to reserve for `max_seq_len` tokens (RS-2).
/// Errors  kOutOfRange, with kSizesUnchecked kPrecondition: the product or its bytes overflow.
[[nodiscard]] Result<std::uint64_t> reserved_elements(const Geometry& geometry,
                                                      std::uint64_t max_seq_len,
                                                      const Behaviour& behaviour);
/// Bytes that so many elements take, of whole heads where they are not f32.
[[nodiscard]] std::uint64_t stored_bytes_of(const Geometry& geometry, std::uint64_t elements,
                                            const StorageFormat& storage);
/// What k or v shows: flat, floats in their type, codes as f32.
[[nodiscard]] Tensor shown_rows(const Geometry& geometry, const StorageFormat& storage,
                                std::span<const std::byte> rows);
/// What k or v returns, of a cache that stores f32.
[[nodiscard]] inline std::span<const float> floats_of(std::span<const std::byte> rows) {
  return {reinterpret_cast<const float*>(rows.data()), rows.size() / sizeof(float)};  // NOLINT
}
/// The text of the Rust Debug format, on one line or pretty (RS-17).
[[nodiscard]] std::string debug_text(const Cache& cache, const StorageFormat& storage, bool pretty);

/// Makes caches for a session; `max_seq_len` is absent for `new`.
/// Errors  as of entry_elements and reserved_elements; kNotSupported: a storage type that the
///         cache's memory does not know.
using MakeCache = std::function<Result<std::unique_ptr<Cache>>(
    const Geometry&, std::optional<std::uint64_t> max_seq_len, const Behaviour&)>;

/// The cache kind `layered.vector`.
[[nodiscard]] const CacheKind& vector_kind();

/// A subject whose caches come from `make`.
[[nodiscard]] Subject make_subject(std::string variant, std::string doc, MakeCache make);

}  // namespace kvo::layered
