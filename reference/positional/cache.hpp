// reference/positional/cache.hpp: the contract `positional`: many sequences in one pool of cells.
//
// Words    cell       one row of every layer: a position and the set of sequences that own it; free
//                     when nobody does (OK-2).
//          pass       what the last start_forward set up: batch, target cells, visible range, mask.
//          window     positions before a token that it sees, itself not counted (OK-32).
//          memory     positions before the newest that are kept; bounded memory evicts (OK-13).
//          member     one of the caches that a wrapper holds.
// Shapes   put: k and v are [token][kv_head][head_dim]. get: k and v are [cell][kv_head][head_dim],
//          with permuted_v v is [kv_head][head_dim][cell]; mask is [token][cell] (OK-1).
// Rows     are stored head by head (values/numeric.hpp) and shown as dtype_of(storage.type).
// Views    what get shows is valid until the next call that is no query. Rows of floats are shown
//          where they lie; those of q8 and q4 are decoded into a buffer, each time.
// Errors   kPrecondition for everything outside the contract, and where the original panics; in
//          both profiles nothing has changed then. In profile documented no error changes anything.
//          In documented every call after close but close is kClosed.
// Source   rules OK-1 to OK-91 and their section "Profile documented".
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <boost/describe/enum.hpp>

#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/result.hpp"
#include "reference/contract/values/strided_view.hpp"
#include "reference/contract/values/tensor.hpp"
#include "reference/positional/quirks.hpp"

namespace kvo::positional {

/// As an end: to the end. No token may have this position (OK-6).
inline constexpr std::int32_t kMaxPosition = std::numeric_limits<std::int32_t>::max();

/// Element type of the mask; unset is f32 (OK-9).
enum class MaskType : std::uint8_t { kUnset, kF32, kF16 };
BOOST_DESCRIBE_ENUM(MaskType, kUnset, kF32, kF16)

using kvo::dtype_of;
[[nodiscard]] DType dtype_of(MaskType type);

/// What a backend asks of a cache (OK-9).
struct BackendConfig {
  std::int64_t cache_padding = 0;  ///< cells that a visible range is rounded to; 0 is 1
  bool permuted_v = false;
  MaskType mask_dtype = MaskType::kUnset;
  friend bool operator==(const BackendConfig&, const BackendConfig&) = default;
};

/// Moves keys to other positions, in place.
/// Shape   keys: [cells][kv_heads][k_head_dim], widened from storage; offsets: one a cell.
/// Errors  are passed through by remove; the keys are then not used (OK-66).
using Shift = std::function<Status(std::int64_t layer, const Shape& shape, std::span<float> keys,
                                   std::span<const std::int32_t> offsets)>;

/// What a shift function does to an element, told to a cache whose keys it cannot reach.
/// key + scale * offset, in f32.
struct AddedOffset {
  float scale = 1.0F;
};
/// The pairs (d, d + n) of a head of 2n elements turn by offset * base^(-d/n), in double precision;
/// an odd last element stays.
struct TurnedPairs {
  double base = 10'000.0;
};
using ShiftRule = std::variant<AddedOffset, TurnedPairs>;

/// Counts as a call of the shift function, for the same layer, shape and offsets, and says what the
/// caller has to do itself, to the last bit. Errors as Shift.
using BeginShift = std::function<Result<ShiftRule>(std::int64_t layer, const Shape& shape,
                                                   std::span<const std::int32_t> offsets)>;

enum class MemberKind : std::uint8_t { kCausal, kSwa, kSwaMem, kChunked, kEncoder };
BOOST_DESCRIBE_ENUM(MemberKind, kCausal, kSwa, kSwaMem, kChunked, kEncoder)

/// One cache, as its constructor gets it (OK-7). Numbers that its kind lacks are 0.
struct MemberOptions {
  MemberKind kind = MemberKind::kCausal;
  std::int32_t window = 0;
  std::int32_t memory = 0;
  std::int32_t chunk = 0;
  Shift shift = nullptr;             ///< null: the cache cannot move keys
  BeginShift begin_shift = nullptr;  ///< the same; null: nobody knows what shift does
};

/// A cache with its backend: one member, or those of a wrapper.
struct CacheOptions {
  QuirkSet<Quirk> quirks = QuirkSet<Quirk>(Profile::kOriginal);
  BackendConfig backend = {};
  std::vector<MemberOptions> members = {};
};

struct InitOptions {
  std::int64_t max_sequences = 1;
  std::int64_t capacity = 0;  ///< tokens a sequence; sizes the pool, bounds nothing (OK-26)
  std::int64_t max_batch = 1;
  StorageFormat storage = {};  ///< of the rows; an encoder keeps f32 (OK-73)
};

/// The tokens of a pass: positions[i] is that of a token of sequences[i].
struct Batch {
  std::span<const std::int32_t> positions;
  std::span<const std::int64_t> sequences;
  std::span<const std::int64_t> multimodal = {};  ///< batch indices, for encoders (OK-71)
  bool reserve = false;                           ///< only plans the pass (OK-27)
};

/// Rows of one side: [tokens][heads][dim], f32.
struct Rows {
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  std::span<const float> values;
};

/// What get shows; an encoder has no mask, and without storage nothing at all (OK-73).
struct Shown {
  std::optional<StridedView> k = std::nullopt;
  std::optional<StridedView> v = std::nullopt;
  std::optional<StridedView> mask = std::nullopt;
};

/// A cache of the contract. The public calls refuse what the contract leaves undefined, whatever
/// the cache, and hand the rest to do_*.
class Cache {
 public:
  explicit Cache(QuirkSet<Quirk> quirks) : quirks_(quirks) {}
  virtual ~Cache() = default;

  /// Replaces the backend's config, once and before init (OK-8); `member` for one of a wrapper's.
  [[nodiscard]] Status set_config(const BackendConfig& config, std::optional<std::int64_t> member);
  /// Sizes the pool (OK-10 to OK-15). The first call but for set_config; only once.
  [[nodiscard]] Status init(const InitOptions& arguments);
  /// Finds cells for a batch and builds its mask (OK-16 to OK-41).
  /// Errors  kFull (OK-22): evictions stay done and the pass is unusable; documented: nothing
  ///         changed.
  [[nodiscard]] Status start_forward(const Batch& batch);
  /// Chooses the layer of put and get; any number (OK-42).
  [[nodiscard]] Status set_layer(std::int64_t layer);
  /// Chooses the member of a wrapper for put and get (OK-82).
  [[nodiscard]] Status set_layer_type(std::int64_t type);
  /// The number of the member chosen (OK-81).
  [[nodiscard]] Result<std::int64_t> underlying_cache() const;
  /// Stores the batch's rows (OK-43 to OK-46); k and v agree in tokens and heads.
  [[nodiscard]] Status put(const Rows& k, const Rows& v);
  /// The rows of the visible range, and the mask (OK-47).
  [[nodiscard]] Result<Shown> get();
  /// Lets rows of the batch see later positions (OK-38 to OK-41).
  [[nodiscard]] Status set_causal(std::span<const std::int64_t> except, bool with_context);
  /// Shares the first `length` positions of `source` with `target` (OK-51 to OK-54).
  [[nodiscard]] Status copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length);
  /// Whether `sequence` may go on at `position` (OK-55 to OK-58).
  [[nodiscard]] Result<bool> can_resume(std::int64_t sequence, std::int32_t position) const;
  /// Takes positions [begin, end) out of a sequence and moves later ones down (OK-59 to OK-68).
  /// Errors  kNotSupported without a shift function; those of the shift function; kOther for a
  ///         shared cell behind the range; documented kOutOfRange for begin > end. In the original
  ///         they leave the sequence half changed (OK-66, OK-67). kPrecondition if a position
  ///         would leave 0 .. kMaxPosition - 1.
  [[nodiscard]] Status remove(std::int64_t sequence, std::int32_t begin, std::int32_t end);
  /// Whether an encoder holds a result (OK-73).
  [[nodiscard]] Result<bool> encoder_cached() const;
  /// Releases layer contexts (OK-69).
  [[nodiscard]] Status close();

  /// Walks the internal state; nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }

 protected:
  Cache(const Cache&) = default;
  Cache& operator=(const Cache&) = default;
  Cache(Cache&&) = default;
  Cache& operator=(Cache&&) = default;

  // What a cache does not offer is kPrecondition.
  virtual Status do_set_config(const BackendConfig& config, std::optional<std::int64_t> member) = 0;
  virtual Status do_init(const InitOptions& arguments) = 0;
  virtual Status do_start_forward(const Batch& batch) = 0;
  virtual Status do_set_layer(std::int64_t layer) = 0;
  virtual Status do_set_layer_type(std::int64_t type);
  [[nodiscard]] virtual Result<std::int64_t> do_underlying_cache() const;
  virtual Status do_put(const Rows& k, const Rows& v) = 0;
  virtual Result<Shown> do_get() = 0;
  virtual Status do_set_causal(std::span<const std::int64_t> except, bool with_context);
  virtual Status do_copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length) = 0;
  [[nodiscard]] virtual Result<bool> do_can_resume(std::int64_t sequence,
                                                   std::int32_t position) const = 0;
  virtual Status do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) = 0;
  [[nodiscard]] virtual Result<bool> do_encoder_cached() const;

  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  /// Whether it has no quirk at all.
  [[nodiscard]] bool documented() const { return quirks_.empty(); }

 private:
  /// Refuses calls before init and, in documented, after close.
  [[nodiscard]] Status ready() const;
  /// As ready; and the pass must be usable (OK-28), the cache not closed (OK-69).
  [[nodiscard]] Status in_pass() const;

  QuirkSet<Quirk> quirks_;
  bool initialized_ = false;
  bool closed_ = false;
  bool started_ = false;
  bool usable_ = true;
};

/// What answers an operation that the contract leaves undefined.
[[nodiscard]] inline Error refused(std::string detail) {
  return fail(Code::kPrecondition, std::move(detail));
}
/// What remove answers for a shared cell behind the range (OK-67, OK-90).
[[nodiscard]] Error shared_later_cell();

/// Makes a cache; of a wrapper's, options has all members.
using MakeCache = std::function<Result<std::unique_ptr<Cache>>(const CacheOptions& options)>;

}  // namespace kvo::positional
