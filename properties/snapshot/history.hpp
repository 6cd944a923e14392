// properties/snapshot/history.hpp: what the histories of all layer caches know: snapshots by
// number, and what became of them.
//
// A history follows a case from the definitions: a list of tokens, a state that was put. It says
// what each operation must answer, and says nothing where a quirk has been at work.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "properties/runner/oracle.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/values/tensor.hpp"
#include "reference/snapshot/operations.hpp"
#include "reference/snapshot/trie.hpp"

namespace kvo::snapshot {

/// Keys or values, [B, H, S, D], token by token.
struct Side {   // NOLINT(bugprone-exception-escape): as Tensor
  Shape shape;  ///< of no tokens
  DType type = DType::kF32;
  /// The elements of each in the order of [B, H, D]; lists share them.
  std::vector<std::shared_ptr<const std::vector<std::byte>>> tokens = {};

  /// Requires  four axes.
  [[nodiscard]] static Side of(const Tensor& tensor);
  /// As a tensor, which begins with token `first` and goes round.
  [[nodiscard]] Tensor shown(std::size_t first = 0) const;
  /// Tokens [begin, end).
  [[nodiscard]] Side part(std::int64_t begin, std::int64_t end) const;
  /// The same in another type, rounded to nearest even.
  [[nodiscard]] Side cast(DType to) const;
};

/// Keys and values of as many tokens.
struct TokenRows {  // NOLINT(bugprone-exception-escape): as Tensor
  Side k;
  Side v;

  /// Requires  four axes each, and as many tokens.
  [[nodiscard]] static TokenRows of(const Tensor& k, const Tensor& v) {
    return {Side::of(k), Side::of(v)};
  }
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(k.tokens.size()); }
  [[nodiscard]] std::int64_t bytes() const;
  [[nodiscard]] TokenRows part(std::int64_t begin, std::int64_t end) const {
    return {k.part(begin, end), v.part(begin, end)};
  }
  /// The newest, `most` at most.
  [[nodiscard]] TokenRows newest(std::int64_t most) const;
  /// As tensors, which begin with token `first` and go round.
  [[nodiscard]] std::pair<Tensor, Tensor> shown(std::size_t first = 0) const {
    return {k.shown(first), v.shown(first)};
  }
  /// Takes the types of `more` that are wider, but only those that `shown` has, if it is given.
  void widen(const TokenRows& more, const Update::Returns* shown = nullptr);
  /// Adds `more` at the end, cast to the types of these.
  void append(const TokenRows& more);
  /// Whether B, H and D are alike, of keys and of values.
  [[nodiscard]] bool alike(const TokenRows& other) const {
    return k.shape == other.k.shape && v.shape == other.v.shape;
  }
};

/// Whether K and V have four axes, and the same B, H and S.
[[nodiscard]] bool are_rows(const Tensor& k, const Tensor& v);

using Words = std::optional<std::string>;

/// An oracle whose unit is an answer.
class JudgedAnswers : public Oracle {
 protected:
  /// The answer must be these values.
  template <class R>
  [[nodiscard]] Words must_show(R returns, const Observation& seen) {
    return judge({.returns = Record::of(std::move(returns))}, seen);
  }
  [[nodiscard]] Words must_succeed(const Observation& seen) { return must_show(Nothing(), seen); }
  [[nodiscard]] Words must_fail(Code code, const Observation& seen) {
    return judge({.error = fail(code)}, seen);
  }
  [[nodiscard]] Words judge(const Observation& want, const Observation& seen);

  bool begun_ = false;  ///< there is a cache
  bool lost_ = false;   ///< nothing is known of it
};

/// Calls the overload `observe` of Derived for the type of an operation. The first of Ops makes the
/// cache. Without a cache every other operation fails.
template <class Derived, class Ops, std::derived_from<JudgedAnswers> Base>
class History : public Base {
 public:
  using Base::Base;
  [[nodiscard]] Words check(const Op& op, const Observation& seen) final {
    Words words;
    if (seen.unsupported) return words;
    visit_op(Ops(), op, [&]<class T>(const T& operation) {
      constexpr bool kMakes = std::is_same_v<T, boost::mp11::mp_front<Ops>>;
      if (!kMakes && !this->begun_)
        words = this->must_fail(Code::kPrecondition, seen);
      else if (!kMakes && this->lost_)
        words = this->skip();
      else
        words = static_cast<Derived&>(*this).observe(operation, seen);
    });
    return words;
  }
};

/// What a history leaves open about a ring.
enum class Doubt : std::uint8_t {
  kNone,
  kShort,  ///< it may have fewer tokens than its window, until a chunk fills it (MR-22)
  kAll,    ///< nothing is known of its rows
};

/// A snapshot.
struct Kept {  // NOLINT(bugprone-exception-escape): as Tensor
  enum class Life : std::uint8_t { kOpen, kClosed, kUnknown };
  Contents contents = {};  ///< as they were shown first: they never change
  Life life = Life::kOpen;
  std::optional<TokenRows> rows = std::nullopt;  ///< in order of time; nothing: not known
  std::int64_t window = 0;                       ///< of the ring that it was taken of
  bool wrapped = false;                          ///< so was that
  Doubt doubt = Doubt::kNone;
};

/// The history of a case with one layer cache: what does not depend on its kind.
class LayerHistory : public JudgedAnswers {
 protected:
  explicit LayerHistory(QuirkSet<Quirk> quirks, const StorageFormat& storage = {})
      : quirks_(quirks), storage_(storage) {}

  /// A number as an operation uses it.
  struct Used {
    Kept* kept = nullptr;  ///< null: no snapshot, or an error
    std::optional<Code> error = std::nullopt;
    bool unknown = false;  ///< whether it is closed
  };
  [[nodiscard]] Used use(const Nullable<std::int64_t>& number);
  /// The snapshots of a merge, and the error of the first that has one; kPrecondition goes first.
  struct Sides {
    Used parent;
    Used child;
    std::optional<Code> error = std::nullopt;
    /// Whether they are closed is not known any more.
    void lose() const;
  };
  [[nodiscard]] Sides use(const Merge& op);
  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] Code closed_code() const { return closed_error(quirks_).code; }
  [[nodiscard]] std::int64_t next_number() const { return std::ssize(snapshots_) + 1; }
  /// Whether a cache can be made that stores rows as the case says.
  [[nodiscard]] bool can_store() const { return kvo::check(storage_).has_value(); }
  /// Why tensors are no rows that a cache takes, whatever it holds: only f32 is encoded.
  [[nodiscard]] std::optional<Code> refusal_of(const Update& op) const;
  /// Rows of four axes, which are taken, as the cache shows them.
  [[nodiscard]] Tensor as_shown(const Tensor& rows) const;
  /// Bytes that are held of rows (MR-A7).
  [[nodiscard]] std::int64_t bytes_of(const TokenRows& rows) const;
  /// Gives a snapshot that was shown the next number; nothing where the number is another.
  void remember(const Numbered& seen, Kept kept);
  /// Gives kept.rows the next number. Returns  what must be shown.
  Numbered add(Kept kept, std::int64_t from, std::int64_t to,
               std::optional<std::int64_t> idx = std::nullopt);
  [[nodiscard]] Kept& known(std::int64_t number) {
    return snapshots_[static_cast<std::size_t>(number - 1)];
  }
  /// The pair that an update returned; `changes` if later updates may write to it (MR-23).
  void remember_pair(const Update& op, const Observation& seen, bool changes);
  /// The last update must return these rows, and their number if it was requested.
  [[nodiscard]] Words must_return(std::pair<Tensor, Tensor> rows, const Observation& seen) {
    return must_show(Update::Returns{std::move(rows.first), std::move(rows.second), pair_}, seen);
  }
  [[nodiscard]] Words must_have_state(Nullable<Tensor> first, Nullable<Tensor> second,
                                      const Observation& seen) {
    return must_show(
        ShowState::Returns{std::vector<Nullable<Tensor>>{std::move(first), std::move(second)}},
        seen);
  }

  /// The cache holds nothing, and all is known of it.
  virtual void clear() = 0;
  [[nodiscard]] Words begin_empty(const Observation& seen) {
    begun_ = true;
    clear();
    return must_succeed(seen);
  }

  // Operations that all kinds have.
  [[nodiscard]] Words observe(const Free& /*op*/, const Observation& seen) {
    return begin_empty(seen);
  }
  [[nodiscard]] Words observe(const Close& op, const Observation& seen);
  [[nodiscard]] Words observe(const Reread& op, const Observation& seen);
  /// Merge and split of snapshots that hold a whole state (MR-28, MR-29, MR-49).
  [[nodiscard]] Words saw_whole(const Merge& op, const Observation& seen);
  [[nodiscard]] Words saw_whole(const Split& op, const Observation& seen);

 private:
  struct KeptPair {  // NOLINT(bugprone-exception-escape): as Tensor
    Contents contents;
    bool changes = false;
  };

  QuirkSet<Quirk> quirks_;
  StorageFormat storage_;
  std::vector<Kept> snapshots_ = {};
  std::map<std::int64_t, KeptPair> pairs_ = {};
  std::optional<std::int64_t> pair_ = std::nullopt;  ///< number of the last update's
};

// One for each kind.
[[nodiscard]] std::unique_ptr<Oracle> kv_history(const RowsConfig& config, QuirkSet<Quirk> quirks);
[[nodiscard]] std::unique_ptr<Oracle> ring_history(const RowsConfig& config,
                                                   QuirkSet<Quirk> quirks);
[[nodiscard]] std::unique_ptr<Oracle> state_history(const RecurrentConfig& config,
                                                    QuirkSet<Quirk> quirks);

[[nodiscard]] std::unique_ptr<Oracle> trie_history(const TrieConfig& config,
                                                   QuirkSet<Quirk> quirks);

}  // namespace kvo::snapshot
