// reference/mlx_lm/operations.hpp: the operations of contract `mlx_lm`.
//
// A case has several caches, of one kind or several. Each gets a number when it is made.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/value.hpp>

#include "reference/contract/describe/operation.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/mlx_lm/cache.hpp"
#include "reference/mlx_lm/prompt_store.hpp"

namespace kvo::mlx_lm {

using CacheNumber = CacheOfCase<std::int64_t>;
using RowsNumber = HandleOf<"rows">;

/// Sums of such numbers stay in 64 bits. @{
struct Tokens {
  using Value = std::int64_t;
  static constexpr std::int64_t kMost = std::int64_t{1} << 31U;
  static constexpr Domain kDomain{.meaning = "tokens", .least = -kMost, .most = kMost};
};
struct Queries {
  using Value = std::int64_t;
  static constexpr Domain kDomain{
      .meaning = "tokens that are to be added", .least = 0, .most = std::int64_t{1} << 16U};
};
struct Columns {
  using Value = std::int64_t;
  static constexpr std::int64_t kMost = std::int64_t{1} << 24U;
  static constexpr Domain kDomain{.meaning = "columns of a row", .least = -kMost, .most = kMost};
};
/// @}

inline constexpr std::array<std::string_view, 4> kRowAxes{"batch", "head", "position", "dim"};

KVO_RECORD(CacheMade, (CacheNumber, cache))
KVO_RECORD(KindMade, (CacheNumber, cache), (std::string, kind, "what it is: kv, batch-kv, .."))
KVO_RECORD(RowsShown, (Value, k, "keys: an array, quantized rows, or null"), (Value, v, "values"))

KVO_OPERATION(New, new_, "Makes an empty cache (ML-1 to ML-60).", CacheMade,
              (std::string, kind,
               "kv, rotating, chunked, quantized, concatenate, batch-kv, "
               "batch-rotating or arrays"),
              (std::optional<std::int64_t>, max_size, "as in the config, for this cache"),
              (std::optional<std::int64_t>, keep, "as in the config, for this cache"),
              (std::optional<std::int64_t>, bits, "as in the config, for this cache"),
              (std::optional<std::vector<std::int64_t>>, left_padding,
               "as in the config, for this cache"))
KVO_RECORD(OffsetReturns, (Value, offset, "tokens so far: a number, or a list with one a row"))
KVO_OPERATION(Offset, offset, "Tokens of a cache so far (ML-1, ML-40).", OffsetReturns,
              (CacheNumber, cache))
KVO_OPERATION(ShowInfo, info, "Size, bytes, and whether it is empty and trimmable (ML-3).", Info,
              (CacheNumber, cache))
KVO_RECORD(StateReturns, (std::vector<Value>, state, "the tuple that would be saved"))
KVO_OPERATION(ShowState, state, "All that would be saved of a cache (ML-3).", StateReturns,
              (CacheNumber, cache))
KVO_RECORD(UpdateReturns, (Value, k, "keys that attention sees"), (Value, v, "values"),
           (Maybe<RowsNumber>, handle, "number of the returned pair, to read it again"),
           (Maybe<RowsNumber>, input_handle, "number of the pair that was given"))
KVO_OPERATION_WITH((static constexpr auto kAxes = kRowAxes;
                    static constexpr std::pair<std::string_view, std::string_view> kToldBy{
                        "keep", "handle"};),
                   Update, update,
                   "Adds tokens and returns what attention sees (ML-1, ML-10, ML-40, ML-50).",
                   UpdateReturns, (CacheNumber, cache), (Tensor, k, "keys"), (Tensor, v, "values"),
                   (std::optional<bool>, keep,
                    "whether both pairs get a number; absent in a log: if its ret has one"))
KVO_OPERATION(KeysAndValues, keys_and_values, "What attention sees of a cache (ML-2).", RowsShown,
              (CacheNumber, cache))
KVO_OPERATION(Reread, reread, "Looks again at a pair that has a number (ML-A1).", RowsShown,
              (RowsNumber, handle, "number of the pair"))
KVO_RECORD(TrimReturns, (std::int64_t, n, "tokens that were taken off"))
KVO_OPERATION(Trim, trim, "Takes tokens off the end (ML-4, ML-8, ML-14, ML-22, ML-41, ML-56).",
              TrimReturns, (CacheNumber, cache), (Tokens, n))
KVO_RECORD(IsTrimmableReturns, (bool, trimmable, "whether it is"))
KVO_OPERATION(IsTrimmable, is_trimmable, "Whether tokens can be taken off the end (ML-3).",
              IsTrimmableReturns, (CacheNumber, cache))
KVO_RECORD(MaskReturns, (Value, mask, "null, \"causal\", or flags"))
KVO_OPERATION(MakeMask, make_mask, "The mask of the next tokens (ML-5, ML-15, ML-41, ML-55).",
              MaskReturns, (CacheNumber, cache), (Queries, N),
              (OrNull<Tokens>, window_size,
               "a token sees itself and those before, so many; null: "
               "all, of a ring its window",
               std::nullopt, may_be_absent),
              (bool, return_array, "whether a matrix is wanted in the place of \"causal\"", false,
               may_be_absent))
KVO_OPERATION(Copy, copy, "copy.deepcopy, or copy.copy, which shares the arrays (ML-7).", CacheMade,
              (CacheNumber, cache), (bool, deep, "whether it shares nothing"))
KVO_OPERATION(FromState, from_state,
              "Makes a cache from the state of another, and shares its arrays (ML-3, ML-46).",
              CacheMade, (CacheNumber, cache))
KVO_OPERATION(Merge, merge, "Makes a batch of single caches (ML-42, ML-52, ML-60).", KindMade,
              (ListOf<CacheNumber>, caches, "the caches, one a row"))
KVO_OPERATION(Extract, extract, "Makes a single cache of a row of a batch (ML-43, ML-53).",
              KindMade, (CacheNumber, cache), (Columns, idx, "the row; -1 is the last one"))
KVO_OPERATION(ToQuantized, to_quantized, "Makes a cache of quantized rows (ML-6, ML-31).",
              CacheMade, (CacheNumber, cache),
              (std::int64_t, group_size, "elements that share a scale: 32, 64 or 128", 64),
              (std::int64_t, bits, "of a number: 2, 3, 4, 5, 6 or 8", 8))
KVO_RECORD_WITH((static constexpr auto kAxes = kRowAxes;), DequantizedReturns, (Tensor, k, "keys"),
                (Tensor, v, "values"))
KVO_OPERATION(Dequantized, dequantized, "The rows of a quantized cache as numbers (ML-31).",
              DequantizedReturns, (CacheNumber, cache))
KVO_RECORD(FrontReturns, (std::int64_t, offset, "tokens so far"),
           (std::int64_t, start_position, "position of the first slot"))
KVO_OPERATION(MaybeTrimFront, maybe_trim_front, "Drops tokens before the chunk (ML-21).",
              FrontReturns, (CacheNumber, cache))
KVO_OPERATION(Filter, filter, "Keeps these rows of a batch, in this order (ML-43, ML-54).", Nothing,
              (CacheNumber, cache), (ListOf<Columns>, indices, "rows; -1 is the last one"))
KVO_OPERATION(Extend, extend, "Adds the rows of another batch (ML-44, ML-54).", Nothing,
              (CacheNumber, cache), (CacheNumber, other, "the cache whose rows are added"))
KVO_OPERATION(Prepare, prepare, "Announces the padding of the next tokens (ML-45, ML-54, ML-60).",
              Nothing, (CacheNumber, cache), (Maybe<ListOf<Columns>>, left_padding, "one a row"),
              (Maybe<ListOf<Columns>>, lengths, "tokens to come of each row"),
              (Maybe<ListOf<Columns>>, right_padding, "one a row"))
KVO_OPERATION(Finalize, finalize, "Moves padding from the right to the left (ML-45, ML-54).",
              Nothing, (CacheNumber, cache))
KVO_OPERATION(Set, set, "Puts an array in the place of an entry (ML-60).", Nothing,
              (CacheNumber, cache), (Columns, idx, "the entry; -1 is the last one"),
              (Tensor, v, "the array"))
KVO_OPERATION(Advance, advance, "Takes tokens off padding and lengths (ML-60).", Nothing,
              (CacheNumber, cache), (Tokens, n))

/// What recorded configs say of the tensors of a case.
KVO_RECORD_WITH((static constexpr bool kInline = true;), RecordedTensors,
                (std::optional<std::int64_t>, B, "sequences; not used"),
                (std::optional<std::int64_t>, H, "heads; not used"),
                (std::optional<std::int64_t>, Dk, "elements of a key; not used"),
                (std::optional<std::int64_t>, Dv, "elements of a value; not used"),
                (std::optional<std::string>, dtype, "element type; not used"))
/// What caches of a case are made with.
KVO_RECORD(Config, (RecordedTensors, recorded),
           (std::int64_t, step, "slots by which buffers grow", 256, may_be_absent),
           (std::int64_t, max_size, "window of a ring, in tokens", 0, may_be_absent),
           (std::int64_t, keep, "first tokens that a ring never overwrites", 0, may_be_absent),
           (std::int64_t, chunk_size, "tokens that a chunked cache keeps", 0, may_be_absent),
           (std::int64_t, group_size, "elements that share a scale", 64, may_be_absent),
           (std::int64_t, bits, "of a quantized number", 8, may_be_absent),
           (std::int64_t, size, "entries of an arrays cache", 0, may_be_absent),
           (std::optional<std::vector<std::int64_t>>, left_padding,
            "columns of padding of each row of a batch"))

#define KVO_MLX_LM_OPERATIONS                                                                     \
  mlx_lm::New, mlx_lm::Offset, mlx_lm::ShowInfo, mlx_lm::ShowState, mlx_lm::Update,               \
      mlx_lm::KeysAndValues, mlx_lm::Reread, mlx_lm::Trim, mlx_lm::IsTrimmable, mlx_lm::MakeMask, \
      mlx_lm::Copy, mlx_lm::FromState, mlx_lm::Merge, mlx_lm::Extract, mlx_lm::ToQuantized,       \
      mlx_lm::Dequantized, mlx_lm::MaybeTrimFront, mlx_lm::Filter, mlx_lm::Extend,                \
      mlx_lm::Prepare, mlx_lm::Finalize, mlx_lm::Set, mlx_lm::Advance
using Ops = boost::mp11::mp_list<KVO_MLX_LM_OPERATIONS>;

// ---- prompt_lru ----

using TokenList = std::vector<std::int64_t>;

KVO_OPERATION(NewStore, new_, "Makes an empty store (ML-71).", Nothing,
              (std::string, kind, "prompt-lru", "prompt-lru", may_be_absent),
              (std::int64_t, max_size, "most entries", 10),
              (Nullable<std::int64_t>, max_bytes, "most bytes of arrays; null: any number",
               std::nullopt, may_be_absent))
KVO_RECORD(FetchReturns, (Nullable<Tensor>, k, "keys of the found copy; null: nothing is found"),
           (std::optional<std::int64_t>, offset, "its tokens, unless it is an arrays cache"),
           (TokenList, rest, "tokens that it does not hold"))
KVO_OPERATION(Fetch, fetch, "A copy of the cache that serves a prompt best (ML-70).", FetchReturns,
              (TokenList, tokens, "the prompt"))
KVO_RECORD(TotalsShown, (std::int64_t, len, "entries"), (std::int64_t, nbytes, "bytes of arrays"))
KVO_OPERATION(Insert, insert, "Stores a cache that holds these tokens (ML-71).", TotalsShown,
              (TokenList, tokens, "the tokens; each is its own key and value"),
              (std::string, kind, "kv, rotating (a ring of 4), chunked (by 4) or arrays"),
              (Role, cache_type, "its queue"))
KVO_OPERATION(TrimTo, trim_to, "Evicts while there are more entries or bytes (ML-71).", TotalsShown,
              (std::optional<std::int64_t>, n_sequences, "entries that may stay"),
              (std::optional<std::int64_t>, n_bytes, "bytes that may stay"))
KVO_RECORD(StoreConfig, (std::int64_t, step, "slots by which buffers grow", 256, may_be_absent))

#define KVO_MLX_LM_STORE_OPERATIONS mlx_lm::NewStore, mlx_lm::Fetch, mlx_lm::Insert, mlx_lm::TrimTo
using StoreOps = boost::mp11::mp_list<KVO_MLX_LM_STORE_OPERATIONS>;

/// What scripts look at in the session of a case.
class CachesOfCase {
 public:
  virtual ~CachesOfCase() = default;
  [[nodiscard]] virtual std::int64_t caches() const = 0;  ///< how many there are
  [[nodiscard]] virtual const Cache& cache(std::int64_t number) const = 0;
  [[nodiscard]] virtual std::int64_t pairs() const = 0;  ///< that have a number
};

/// The kinds whose cases have caches of one kind first, in the order of the rules; then prompt_lru.
[[nodiscard]] std::vector<const CacheKind*> kinds();
/// The kind of that name, "kv". Requires  there is one.
[[nodiscard]] const CacheKind& kind_of(std::string_view cache);

/// Subjects of all kinds, whose caches and stores come from these.
[[nodiscard]] std::vector<Subject> make_subjects(const std::string& variant, const std::string& doc,
                                                 const MakeCache& make,
                                                 const MakePromptStore& make_store);

}  // namespace kvo::mlx_lm

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_MLX_LM_OPERATIONS)
KVO_DECLARE_OPERATIONS(KVO_MLX_LM_STORE_OPERATIONS)
}  // namespace kvo
