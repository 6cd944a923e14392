// properties/campaign/generator.hpp: random scripts, drawn from what the reference does.
//
// A script is drawn against a session of the kind's reference that is its own: it is a function of
// its seed, whatever the subjects do. Swarm weights make cases unlike each other: each case
// switches some operations off and favours others.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <boost/describe/enum.hpp>

#include "reference/contract/subject/op_stream.hpp"
#include "reference/contract/subject/subject.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/random.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo {

/// Random draws of a case; a function of its seed alone, on every machine.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  /// low to high, both included; low if high is below it.
  [[nodiscard]] std::int64_t between(std::int64_t low, std::int64_t high) {
    if (high < low) return low;
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  [[nodiscard]] bool percent(std::uint64_t percent) { return random_.chance(percent); }
  /// A size from `low` to `most`, over scales: mostly a few, now and then 2^k - 1, 2^k or 2^k + 1,
  /// where blocks, words and growth steps end.
  [[nodiscard]] std::int64_t size(std::int64_t low, std::int64_t most);
  /// 2^k - 1, 2^k or 2^k + 1, from k = 2 on, for a scale between `low` and `most`, each as likely;
  /// now and then 2^k + 2^(k / 2), such as 64 * 64 + 64: beyond the edge of two levels of words.
  [[nodiscard]] std::int64_t edge(std::int64_t low, std::int64_t most);
  /// About 2^8, 2^15, 2^16 or 2^31: where narrow integers end.
  [[nodiscard]] std::int64_t border() {
    return (std::int64_t{1} << one_of({8, 15, 16, 31})) + between(-1, 1);
  }
  /// One of the values, each as likely.
  template <class T>
  [[nodiscard]] T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  /// An index into `weights`, as likely as its weight; the last if all are 0.
  [[nodiscard]] std::size_t weighted(const std::vector<std::uint64_t>& weights);

 private:
  traces::Random random_;
};

/// Values that only bits tell apart, among the tags of every second case: NaNs that all differ, -0,
/// an infinity, a denormal. They are drawn apart from the script, which is the same without them.
/// For cells that are stored and not computed with.
class OddValues {
 public:
  explicit OddValues(std::uint64_t seed);

  /// Now and then one of them takes the place of a cell.
  void put_into(std::span<float> cells);

 private:
  [[nodiscard]] float next();

  Draw draw_;
  std::uint64_t percent_;
  std::uint32_t nans_ = 0;
};

/// Weights of a case's steps: `usual` ones, with about a fifth switched off, unless `always`, and a
/// few made much likelier.
/// Source  swarm testing: Groce et al., ISSTA 2012, doi:10.1145/2338965.2336763.
[[nodiscard]] std::vector<std::uint64_t> swarm(Draw& draw, std::vector<std::uint64_t> usual,
                                               const std::vector<bool>& always);
/// The same, where the first `always_first` are never switched off.
[[nodiscard]] std::vector<std::uint64_t> swarm(Draw& draw, std::vector<std::uint64_t> usual,
                                               std::uint64_t always_first = 0);

/// How far a case goes. Most are small: quick, and their scripts shrink well.
enum class Scale : std::uint8_t {
  kSmall,  ///< sizes of a few, short scripts
  kLarge,  ///< sizes over scales up to thousands, longer scripts; both as far as kCaseBudget goes
  kLong,   ///< tiny rows and kLongLife cheap operations: counters wrap, what is idle grows old
};

/// Operations of a long life: beyond 2^16 of one sort.
inline constexpr std::uint64_t kLongLife = 100'000;
/// So many of its operations, from its first ones, come once more at its end: something old is
/// asked for.
inline constexpr std::uint64_t kAskedAgain = 64;

/// Operations that are drawn one by one, each carried out at once on a session of the reference
/// that the script has for itself. What runs the script has nothing to tell it.
class DrawnOps : public OpStream {
 public:
  /// Says which reference it is; the last call before next() counts. `reference` must live as long.
  void follow(const Subject& reference, const Setup& setup, Scale scale);

  /// Leaves out operations that `outside` holds of: they are outside of what a cache takes. It is
  /// asked of each operation, and again with the error if the reference refuses it. To be called
  /// before next().
  using Outside = std::function<bool(const Op& op, const Error* refusal)>;
  void leave_out(Outside outside) { outside_ = std::move(outside); }

  /// The next operation. None follows where the reference does not take the setup, after an
  /// operation that it has no memory for or throws at, or where the script ends by itself. A long
  /// life ends with its first operations, those that return something before the others.
  [[nodiscard]] std::optional<Op> next() final;
  [[nodiscard]] std::span<const Op> ahead(std::size_t most) final;
  /// Adds the states that the script has reached since the last call.
  void observe(const Op& op, const Observation& seen, Labels& labels) final;

 protected:
  [[nodiscard]] virtual std::optional<Op> choose() = 0;
  /// What the reference observed of the operation that choose() gave last.
  virtual void learn(const Op& op, const Observation& seen) = 0;
  /// The session of the reference, as what its contract lets scripts look at.
  /// Requires  it is a T; an operation was chosen.
  template <class T>
  [[nodiscard]] T& reference() const {
    return dynamic_cast<T&>(session_->shown_session());
  }
  /// The case has gone through this state. To be called from learn().
  void reach(std::string_view state) { labels_.insert(state); }

 private:
  [[nodiscard]] std::optional<Op> of_long_life();
  [[nodiscard]] std::optional<Op> next_drawn();
  /// The next operation, left out or not. `leaves_out`: it is.
  [[nodiscard]] std::optional<Op> drawn(bool& leaves_out);

  const Subject* reference_ = nullptr;
  Outside outside_;
  Setup setup_;
  bool is_long_ = false;
  std::vector<Op> first_;  ///< operations of a long life
  std::size_t again_ = 0;  ///< how many of them were asked again
  std::unique_ptr<Session> session_;
  Probe probe_;
  std::uint64_t operations_ = 0;
  std::vector<Op> ahead_;  ///< drawn by ahead()
  std::size_t given_ = 0;  ///< how many of them next() has given
  Labels labels_;
  std::size_t shown_ = 0;  ///< how many of them there were when observe() was called last
  bool ended_ = false;
};

/// A random case: its setup, and its endless operations.
struct GeneratedCase {
  Setup setup;
  std::unique_ptr<DrawnOps> ops;
};

/// What a case may cost, in cells that a plain reference looks at or copies. Each generator knows
/// what its operations cost there (ScriptGenerator::spend).
inline constexpr std::uint64_t kCaseBudget = 8'000'000;

/// What a case is drawn from.
struct CaseTerms {
  std::uint64_t seed = 0;
  Profile profile = Profile::kOriginal;
  Scale scale = Scale::kSmall;
};

/// How random cases of one cache kind are made.
struct Generator {
  const CacheKind* kind;
  std::function<GeneratedCase(const CaseTerms& terms)> make;
  /// States that matter, beside the marks of the reference: a campaign that never reached one of
  /// them proved little. The two lists are for profile original and documented.
  std::vector<std::string_view> original_labels = {};
  std::vector<std::string_view> documented_labels = {};
  bool lives_long = false;  ///< it draws cases of Scale::kLong

  [[nodiscard]] const std::vector<std::string_view>& labels(Profile profile) const {
    return profile == Profile::kOriginal ? original_labels : documented_labels;
  }
};

/// A generator for any kind. Config and arguments are drawn from their types and domains: integers
/// from their bounds up, and now and then one step outside; handles among the first few; lists and
/// tensors of a few sizes, a tag in each cell of a tensor. A kind whose arguments depend on each
/// other finds more with a generator of its own.
[[nodiscard]] Generator plain_generator(const CacheKind& kind);

/// Independent seed of case `index` in a run of `seed`.
[[nodiscard]] std::uint64_t case_seed(std::uint64_t seed, std::uint64_t index);

/// The schedule of a case, by its seed: a number that any reader of JSON keeps.
[[nodiscard]] Schedule schedule_of(std::uint64_t own_seed);

/// States of narrow rows that are worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(StorageLabel, std::uint8_t, kEightBitFloats, kRowsOfCodes,
                              kGroupsCutShort, kOddRows)

/// Calls reach(label) for each of them that a row of `dim` elements, which was stored, is in.
template <class Reach>
void reach_stored(const StorageFormat& format, std::int64_t dim, bool odd_rows, Reach&& reach) {
  if (dtype_bytes(dtype_of(format.type)) == 1) reach(StorageLabel::kEightBitFloats);
  if (odd_rows) reach(StorageLabel::kOddRows);
  if (!in_groups(format.type)) return;
  reach(StorageLabel::kRowsOfCodes);
  if (dim > format.group && dim % format.group != 0) reach(StorageLabel::kGroupsCutShort);
}

/// The generator, which must reach these states, too, in both profiles.
[[nodiscard]] Generator with_storage_labels(Generator made);

/// What the storage of a case is drawn from: apart from its script, so that no other case changes.
[[nodiscard]] inline Draw storage_draw(std::uint64_t seed) {
  return Draw(seed + 0x9E3779B97F4A7C15U);
}
/// A type narrower than f32; codes in groups of any size, with an offset or without.
[[nodiscard]] StorageFormat draw_narrow_storage(Draw& draw);

/// Fills a row with what narrow types find hard: one side of zero alone, scales that are subnormal
/// in f16 or less, a few values and zeroes of either sign, one large value, and now and then what
/// is no number.
void fill_oddly(Draw& draw, std::span<float> row);
/// The same with each row of a tensor of f32, whose last axis is a row.
void fill_oddly(Draw& draw, Tensor& rows);

/// Sets the storage, group and offset of a config. Values that equal the default are sometimes
/// absent.
template <class Config>
void set_storage(Draw& draw, Config& config, const StorageFormat& format) {
  config.storage = format.type;
  if (!in_groups(format.type)) return;
  if (format.group != 32 || draw.percent(50)) config.group = format.group;
  if (format.offset || draw.percent(20)) config.offset = format.offset;
}

}  // namespace kvo
