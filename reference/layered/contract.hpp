// reference/layered/contract.hpp: the contract `layered`: one growing row store a layer.
//
// Words    entry    the K (or V) of one token in one layer: num_kv_heads * head_dim elements, f32.
//          len      tokens counted by advance(); not derived from the data.
// Shapes   k(layer) and v(layer) are flat: [appended elements of that layer], in append order.
// Modes    `debug` and `release` are the two builds of the followed Rust cache (profile original);
//          `documented` is what its documentation promises.
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

#include "reference/contract/operation.hpp"
#include "reference/contract/subject.hpp"

namespace kvo::layered {

enum class Mode : std::uint8_t { kDebug, kRelease, kDocumented };
BOOST_DESCRIBE_ENUM(Mode, kDebug, kRelease, kDocumented)

/// Sizes of a cache; every value is accepted at construction, 0 included (RS-1).
struct Geometry {
  std::uint64_t num_layers = 0;
  std::uint64_t num_kv_heads = 0;
  std::uint64_t head_dim = 0;
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

/// A cache of the contract. Errors of every call: nothing has changed.
class Cache {
 public:
  virtual ~Cache() = default;

  [[nodiscard]] virtual Geometry geometry() const = 0;

  /// Adds `k` and `v` behind the data of `layer` (RS-4 to RS-7).
  /// Shape   k, v: [num_kv_heads * head_dim]; release takes any lengths.
  /// Errors  kPrecondition (debug, release) or kBadShape (documented) for a wrong length;
  ///         kPrecondition or kOutOfRange for a layer out of range;
  ///         kPrecondition (documented) for a second append of a layer within one token.
  [[nodiscard]] virtual Status append(std::uint64_t layer, std::span<const float> k,
                                      std::span<const float> v) = 0;

  /// Counts one more token (RS-8).
  /// Errors  kPrecondition (documented) unless every layer was appended to exactly once.
  [[nodiscard]] virtual Status advance() = 0;

  /// The whole K or V of a layer, flat (RS-9).
  /// Errors  kPrecondition, documented kOutOfRange: no such layer.
  [[nodiscard]] virtual Result<std::span<const float>> k(std::uint64_t layer) const = 0;
  [[nodiscard]] virtual Result<std::span<const float>> v(std::uint64_t layer) const = 0;

  /// Tokens counted by advance (RS-11).
  [[nodiscard]] virtual std::uint64_t len() const = 0;

  /// num_kv_heads * head_dim, in elements (RS-11); release wraps modulo 2^64.
  /// Errors  kPrecondition (debug): the product overflows.
  [[nodiscard]] virtual Result<std::uint64_t> entry_size() const = 0;

  /// Drops all data and the count; keeps geometry and capacity (RS-12).
  virtual void clear() = 0;

  /// A deep, independent copy; its capacity is not promised (RS-15).
  [[nodiscard]] virtual std::unique_ptr<Cache> clone() const = 0;
};

/// num_kv_heads * head_dim under the rules of `mode` (RS-11).
[[nodiscard]] Result<std::uint64_t> entry_elements(const Geometry& geometry, Mode mode);
/// Elements to reserve for `max_seq_len` tokens (RS-2).
/// Errors  kPrecondition, documented kOutOfRange: the product or its bytes overflow.
[[nodiscard]] Result<std::uint64_t> reserved_elements(const Geometry& geometry,
                                                      std::uint64_t max_seq_len, Mode mode);
/// The text of the Rust Debug format, on one line or pretty (RS-17).
[[nodiscard]] std::string debug_text(const Cache& cache, bool pretty);

// ---- Operations. `cache` is the number that new, with_capacity and clone returned. ----

struct CacheNumber {
  std::uint64_t cache = 0;
};
BOOST_DESCRIBE_STRUCT(CacheNumber, (), (cache))

struct New {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc = "Makes a cache of empty layers (RS-1).";
  using Returns = CacheNumber;
  std::uint64_t num_layers = 0;
  std::uint64_t num_kv_heads = 0;
  std::uint64_t head_dim = 0;
};
BOOST_DESCRIBE_STRUCT(New, (), (num_layers, num_kv_heads, head_dim))

struct WithCapacity {
  static constexpr std::string_view kName = "with_capacity";
  static constexpr std::string_view kDoc = "Makes a cache with room for max_seq_len tokens (RS-2).";
  using Returns = CacheNumber;
  std::uint64_t num_layers = 0;
  std::uint64_t num_kv_heads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t max_seq_len = 0;
};
BOOST_DESCRIBE_STRUCT(WithCapacity, (), (num_layers, num_kv_heads, head_dim, max_seq_len))

struct Append {  // NOLINT(bugprone-exception-escape): as Tensor
  static constexpr std::string_view kName = "append";
  static constexpr std::string_view kDoc = "Adds the K and V of one token to a layer (RS-4).";
  using Returns = Nothing;
  std::uint64_t cache = 0;
  std::uint64_t layer = 0;
  Tensor k;
  Tensor v;
};
BOOST_DESCRIBE_STRUCT(Append, (), (cache, layer, k, v))

struct Advance {
  static constexpr std::string_view kName = "advance";
  static constexpr std::string_view kDoc = "Counts one more token (RS-8).";
  using Returns = Nothing;
  std::uint64_t cache = 0;
};
BOOST_DESCRIBE_STRUCT(Advance, (), (cache))

struct Keys {
  static constexpr std::string_view kName = "k";
  static constexpr std::string_view kDoc = "Reads the whole K of a layer, flat (RS-9).";
  struct Returns {
    static constexpr std::array<std::string_view, 1> kAxes{"element"};
    Tensor k;
  };
  std::uint64_t cache = 0;
  std::uint64_t layer = 0;
};
BOOST_DESCRIBE_STRUCT(Keys, (), (cache, layer))
BOOST_DESCRIBE_STRUCT(Keys::Returns, (), (k))

struct Values {
  static constexpr std::string_view kName = "v";
  static constexpr std::string_view kDoc = "Reads the whole V of a layer, flat (RS-9).";
  struct Returns {
    static constexpr std::array<std::string_view, 1> kAxes{"element"};
    Tensor v;
  };
  std::uint64_t cache = 0;
  std::uint64_t layer = 0;
};
BOOST_DESCRIBE_STRUCT(Values, (), (cache, layer))
BOOST_DESCRIBE_STRUCT(Values::Returns, (), (v))

struct Len {
  static constexpr std::string_view kName = "len";
  static constexpr std::string_view kDoc = "Tokens counted by advance (RS-11).";
  struct Returns {
    std::uint64_t len = 0;
  };
  std::uint64_t cache = 0;
};
BOOST_DESCRIBE_STRUCT(Len, (), (cache))
BOOST_DESCRIBE_STRUCT(Len::Returns, (), (len))

struct IsEmpty {
  static constexpr std::string_view kName = "is_empty";
  static constexpr std::string_view kDoc = "Whether no token was counted (RS-11).";
  struct Returns {
    bool is_empty = false;
  };
  std::uint64_t cache = 0;
};
BOOST_DESCRIBE_STRUCT(IsEmpty, (), (cache))
BOOST_DESCRIBE_STRUCT(IsEmpty::Returns, (), (is_empty))

struct NumLayers {
  static constexpr std::string_view kName = "num_layers";
  static constexpr std::string_view kDoc = "The number of layers (RS-11).";
  struct Returns {
    std::uint64_t num_layers = 0;
  };
  std::uint64_t cache = 0;
};
BOOST_DESCRIBE_STRUCT(NumLayers, (), (cache))
BOOST_DESCRIBE_STRUCT(NumLayers::Returns, (), (num_layers))

struct EntrySize {
  static constexpr std::string_view kName = "entry_size";
  static constexpr std::string_view kDoc = "Elements of one token's K in one layer (RS-11).";
  struct Returns {
    std::uint64_t entry_size = 0;
  };
  std::uint64_t cache = 0;
};
BOOST_DESCRIBE_STRUCT(EntrySize, (), (cache))
BOOST_DESCRIBE_STRUCT(EntrySize::Returns, (), (entry_size))

struct Clear {
  static constexpr std::string_view kName = "clear";
  static constexpr std::string_view kDoc = "Drops all data, keeps geometry and capacity (RS-12).";
  using Returns = Nothing;
  std::uint64_t cache = 0;
};
BOOST_DESCRIBE_STRUCT(Clear, (), (cache))

struct Clone {
  static constexpr std::string_view kName = "clone";
  static constexpr std::string_view kDoc = "Makes a deep copy with a number of its own (RS-15).";
  using Returns = CacheNumber;
  std::uint64_t cache = 0;
};
BOOST_DESCRIBE_STRUCT(Clone, (), (cache))

struct CloneFrom {
  static constexpr std::string_view kName = "clone_from";
  static constexpr std::string_view kDoc = "Makes `cache` a deep copy of `source` (RS-16).";
  using Returns = Nothing;
  std::uint64_t cache = 0;
  std::uint64_t source = 0;
};
BOOST_DESCRIBE_STRUCT(CloneFrom, (), (cache, source))

struct Debug {
  static constexpr std::string_view kName = "debug";
  static constexpr std::string_view kDoc = "The cache as debug text (RS-17).";
  struct Returns {
    std::string text;
  };
  std::uint64_t cache = 0;
  bool pretty = false;
};
BOOST_DESCRIBE_STRUCT(Debug, (), (cache, pretty))
BOOST_DESCRIBE_STRUCT(Debug::Returns, (), (text))

struct Pin {
  static constexpr std::string_view kName = "pin";
  static constexpr std::string_view kDoc = "Remembers the base addresses of a layer (RS-13).";
  using Returns = Nothing;
  std::uint64_t cache = 0;
  std::uint64_t layer = 0;
};
BOOST_DESCRIBE_STRUCT(Pin, (), (cache, layer))

struct Pinned {
  static constexpr std::string_view kName = "pinned";
  static constexpr std::string_view kDoc =
      "Whether the pinned addresses are still the same; absent where nothing is promised (RS-13).";
  struct Returns {
    std::optional<bool> same;
  };
  std::uint64_t cache = 0;
  std::uint64_t layer = 0;
};
BOOST_DESCRIBE_STRUCT(Pinned, (), (cache, layer))
BOOST_DESCRIBE_STRUCT(Pinned::Returns, (), (same))

using Ops = boost::mp11::mp_list<New, WithCapacity, Append, Advance, Keys, Values, Len, IsEmpty,
                                 NumLayers, EntrySize, Clear, Clone, CloneFrom, Debug, Pin, Pinned>;

/// The cache kind `layered.vector`.
[[nodiscard]] const CacheKind& vector_kind();

/// Makes caches for a session; `max_seq_len` is absent for `new`.
using MakeCache = std::function<Result<std::unique_ptr<Cache>>(
    const Geometry&, std::optional<std::uint64_t> max_seq_len, Mode)>;

/// A subject whose caches come from `make`. Its sessions read "build" ("debug", "release") from the
/// config of the case; profile `documented` overrides it.
[[nodiscard]] Subject make_subject(std::string engine, std::string doc, MakeCache make);

}  // namespace kvo::layered
