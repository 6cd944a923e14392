// Random cases for the caches of contract mlx_lm. A case begins with a cache of its kind; merges,
// extracts and conversions add caches of other kinds.
#include "properties/campaign/generator.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/contract/values/strided_view.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/mlx_lm/operations.hpp"

namespace kvo::mlx_lm {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(CachesLabel, std::uint8_t, kTrimmed, kTrimmedBelowZero,
                              kAllSlotsShown, kNoTokens, kMisfit, kAnotherType, kCopied,
                              kSharedAndWritten, kMadeFromState, kPairReread, kMaskMatrix,
                              kMaskCausal, kMaskOfAWindow, kMoreThan64Tokens,
                              // Rings.
                              kRingFull, kFullRingTrimmed, kKeptSlots,
                              // Others.
                              kFrontDropped, kQuantized, kShownAsNumbers, kEntrySet, kAdvanced,
                              kMaskOfLengths,
                              // Batches.
                              kMerged, kMergedWithNothing, kExtracted, kFiltered,
                              kFilteredToNothing, kExtended, kPaddedAtTheLeft, kPaddedAtTheRight,
                              kTokenBeforeFinalize, kMovedToTheLeft)

namespace {

using L = CachesLabel;

bool is_batch(std::string_view kind) {
  return kind == "batch-kv" || kind == "batch-rotating";
}

// The single caches of a batch, or the batch of single ones.
std::string other_kind(std::string_view kind) {
  if (kind == "batch-kv") return "kv";
  if (kind == "batch-rotating") return "rotating";
  return std::string(kind == "rotating" ? "batch-rotating" : "batch-kv");
}

}  // namespace

class CachesScript final : public ScriptGenerator<CachesScript, Ops, CachesLabel> {
  using S = CachesScript;
  using Label = CachesLabel;

 public:
  CachesScript(const CaseTerms& terms, std::string kind, Config config)
      : ScriptGenerator(terms),
        kind_(std::move(kind)),
        config_(std::move(config)),
        heads_(draw().percent(70) ? 1 : draw().between(2, 3)),
        k_dim_(draw().size(1, 5)),
        v_dim_(draw().percent(70) ? k_dim_ : draw().size(1, 5)),
        type_(draw().percent(75) ? DType::kF32 : draw().one_of({DType::kF16, DType::kBF16})),
        calm_(draw().percent(50)),
        keeps_pairs_(draw().percent(25)) {
    // Only whole groups can be quantized.
    if (kind_ == "quantized" || (kind_ == "kv" && draw().percent(15))) {
      k_dim_ = draw().one_of<std::int64_t>({32, 32, 64, 128});
      v_dim_ = draw().one_of<std::int64_t>({32, 32, 64});
      if (draw().percent(4)) v_dim_ = 16;
    }
  }

  // Steps.
  Op single() { return add(some(), 1); }
  Op chunk() { return add(some(), tokens()); }
  Op nothing() { return calm_ ? single() : add(some(), 0); }
  Op misfit() {
    if (calm_) return single();
    const std::int64_t cache = some();
    auto [k, v] = rows(rows_of(cache) + (draw().percent(30) ? 1 : 0), draw().between(1, 3), type_);
    if (draw().percent(50)) k = rows(rows_of(cache), draw().between(1, 3), type_, 1).first;
    return Op::of(Update{cache, std::move(k), std::move(v)});
  }
  Op another_type() {
    if (calm_) return single();
    const std::int64_t cache = some();
    auto [k, v] = rows(rows_of(cache), draw().between(1, 3),
                       type_ == DType::kF32 ? DType::kF16 : DType::kF32);
    return Op::of(Update{cache, std::move(k), std::move(v)});
  }
  // What a model does: the mask of the next tokens, and then these.
  Op attend() {
    const std::int64_t cache = some();
    if (kind_of(cache) == "arrays") return mask();
    const std::int64_t count = draw().percent(50) ? 1 : tokens();
    plan(add(cache, count));
    return Op::of(MakeMask{cache, count, window(), draw().percent(30)});
  }
  Op state() { return Op::of(ShowState{some()}); }
  Op info() { return Op::of(ShowInfo{some()}); }
  Op offset() { return Op::of(Offset{some()}); }
  Op shown() { return Op::of(KeysAndValues{some()}); }
  Op trimmable() { return Op::of(IsTrimmable{some()}); }
  Op mask() {
    const std::int64_t cache = some();
    if (kind_of(cache) == "arrays") return Op::of(MakeMask{cache, draw().between(0, 4)});
    return Op::of(MakeMask{cache, draw().size(0, 6), window(), draw().percent(50)});
  }
  Op trim() {
    const std::int64_t n = !calm_ && draw().percent(8) ? draw().between(-4, -1) : draw().size(0, 6);
    const std::int64_t cache = some();
    was_full_ = cache < caches() && !reference<CachesOfCase>().cache(cache).is_trimmable();
    return Op::of(Trim{cache, n});
  }
  Op copy() {
    const std::int64_t cache = some();
    const bool deep = calm_ || draw().percent(60);
    if (!deep && kind_of(cache) != "arrays") {  // one writes, the other shows it
      plan(add(cache, 1));
      plan(ShowState{caches()});
    }
    return Op::of(Copy{cache, deep});
  }
  Op from_state() {
    if (calm_) return attend();
    return Op::of(FromState{some()});
  }
  Op reread() {
    const std::int64_t pairs = reference<CachesOfCase>().pairs();
    if (pairs == 0) return state();
    return Op::of(Reread{draw().percent(3) ? pairs + 1 : draw().between(1, pairs)});
  }
  // Between single caches and batches.
  Op convert() {
    const std::int64_t cache = some();
    const std::string kind = kind_of(cache);
    if (kind == "chunked") return Op::of(MaybeTrimFront{cache});
    if (kind == "quantized" || kind == "concatenate") return Op::of(Dequantized{cache});
    if (kind == "kv" && k_dim_ >= 32 && draw().percent(50))
      return Op::of(ToQuantized{cache, draw().percent(95) ? 32 : 64,
                                draw().one_of<std::int64_t>({2, 3, 4, 5, 6, 8})});
    if (is_batch(kind) || (kind == "arrays" && draw().percent(40))) {
      plan(ShowState{caches()});
      return Op::of(Extract{cache, row(cache)});
    }
    Merge merge{{cache}};
    for (std::int64_t more = draw().between(0, 2); more > 0; --more)
      merge.caches.push_back(one_of_kind(kind));
    plan(ShowState{caches()});
    return Op::of(std::move(merge));
  }
  Op filter() {
    const std::int64_t cache = some();
    Filter filter{cache};
    for (std::int64_t more = draw().percent(6) ? 0 : draw().between(1, 3); more > 0; --more)
      filter.indices.push_back(row(cache));
    return Op::of(std::move(filter));
  }
  Op extend() {
    const std::int64_t cache = some();
    return Op::of(Extend{cache, one_of_kind(kind_of(cache))});
  }
  // Rows of several lengths in one or two chunks, padded at the right, and moved to the left.
  Op prepare() {
    const std::int64_t cache = some();
    const std::int64_t count = rows_of(cache);
    if (kind_of(cache) == "arrays")
      return Op::of(Prepare{.cache = cache, .lengths = some_numbers(count, 0, 4)});
    if (!is_batch(kind_of(cache)) || draw().percent(15))
      return Op::of(Prepare{.cache = cache, .left_padding = some_numbers(count, 0, 3)});
    const std::int64_t columns = draw().between(2, 5);
    Ints lengths = some_numbers(count, 1, columns);
    Ints padding;
    for (const std::int64_t length : lengths) padding.push_back(columns - length);
    const std::int64_t first = draw().percent(40) ? draw().between(1, columns - 1) : columns;
    plan(add(cache, first));
    if (first < columns) plan(add(cache, columns - first));
    plan(Finalize{cache});
    return Op::of(Prepare{cache, std::nullopt, std::move(lengths), std::move(padding)});
  }
  Op finalize() { return Op::of(Finalize{some()}); }
  Op advance() { return Op::of(Advance{some(), draw().between(0, 2)}); }
  Op make() {
    if (kind_ == "arrays" || kind_ == "quantized" || draw().percent(70)) return fresh(kind_);
    return fresh(other_kind(kind_));
  }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {24, "single token", &S::single, true},
      {8, "chunk", &S::chunk},
      {1, "no tokens", &S::nothing},
      {1, "misfit", &S::misfit},
      {1, "another type", &S::another_type},
      {14, "attend", &S::attend, true},
      {8, "state", &S::state, true},
      {3, "info", &S::info},
      {2, "offset", &S::offset},
      {4, "keys and values", &S::shown},
      {2, "is trimmable", &S::trimmable},
      {3, "mask", &S::mask},
      {7, "trim", &S::trim},
      {4, "copy", &S::copy},
      {2, "from state", &S::from_state},
      {4, "reread", &S::reread},
      {7, "convert", &S::convert},
      {3, "filter", &S::filter},
      {3, "extend", &S::extend},
      {4, "prepare", &S::prepare},
      {1, "finalize", &S::finalize},
      {1, "advance", &S::advance},
      {2, "new", &S::make},
  });

  // What became of an operation.
  void observe(const New& /*op*/, const Observation& seen) { begun_ |= !seen.error; }
  void observe(const Update& op, const Observation& seen) {
    const bool batch = is_batch(kind_of(op.cache));
    if (op.k.shape[2] == 1 && seen.error && batch) reach(Label::kTokenBeforeFinalize);
    if (seen.error || op.k.shape[3] != k_dim_) reach(Label::kMisfit);
    if (seen.error) return;
    if (op.k.dtype != type_) reach(Label::kAnotherType);
    if (op.k.shape[2] == 0) reach(Label::kNoTokens);
    if (shared_) reach(Label::kSharedAndWritten);
    const auto* k = std::get_if<Tensor>(&seen.as<UpdateReturns>().k.held);
    if (const auto* words = std::get_if<Quantized>(&seen.as<UpdateReturns>().k.held)) k = &words->w;
    if (k == nullptr) return;
    spend(static_cast<std::uint64_t>(1'000 + 12 * k->elements()));
    if (k->shape[2] > 64) reach(Label::kMoreThan64Tokens);
    if (k->shape[2] % config_.step == 0 && k->shape[2] > 0) reach(Label::kAllSlotsShown);
    if (!reference<CachesOfCase>().cache(op.cache).is_trimmable()) {
      reach(Label::kRingFull);
      if (config_.keep > 0) reach(Label::kKeptSlots);
    }
  }
  void observe(const Trim& op, const Observation& seen) {
    if (seen.error) return;
    const std::int64_t n = seen.as<TrimReturns>().n;
    if (n > 0) reach(Label::kTrimmed);
    if (op.n < 0) reach(Label::kTrimmedBelowZero);
    if (std::exchange(was_full_, false)) reach(Label::kFullRingTrimmed);
  }
  void observe(const Copy& op, const Observation& seen) {
    if (seen.error) return;
    reach(Label::kCopied);
    shared_ |= !op.deep;
  }
  void observe(const FromState& /*op*/, const Observation& seen) {
    if (seen.error) return;
    reach(Label::kMadeFromState);
    shared_ = true;
  }
  void observe(const Reread& /*op*/, const Observation& seen) {
    if (!seen.error) reach(Label::kPairReread);
  }
  void observe(const MakeMask& op, const Observation& seen) {
    if (seen.error) return;
    const Value& mask = seen.as<MaskReturns>().mask;
    if (std::holds_alternative<std::string>(mask.held)) reach(Label::kMaskCausal);
    if (!std::holds_alternative<Tensor>(mask.held)) return;
    reach(kind_of(op.cache) == "arrays" ? Label::kMaskOfLengths : Label::kMaskMatrix);
    if (op.window_size.has_value()) reach(Label::kMaskOfAWindow);
  }
  void observe(const MaybeTrimFront& /*op*/, const Observation& seen) {
    if (!seen.error && seen.as<FrontReturns>().start_position > 0) reach(Label::kFrontDropped);
  }
  void observe(const ToQuantized& /*op*/, const Observation& seen) {
    if (!seen.error) reach(Label::kQuantized);
  }
  void observe(const Dequantized& /*op*/, const Observation& seen) {
    if (!seen.error) reach(Label::kShownAsNumbers);
  }
  void observe(const Set& /*op*/, const Observation& seen) {
    if (!seen.error) reach(Label::kEntrySet);
  }
  void observe(const Advance& /*op*/, const Observation& seen) {
    if (!seen.error) reach(Label::kAdvanced);
  }
  void observe(const Merge& op, const Observation& seen) {
    if (seen.error) return;
    reach(Label::kMerged);
    for (const std::int64_t part : op.caches)
      if (const auto info = reference<CachesOfCase>().cache(part).info(); info && info->empty)
        reach(Label::kMergedWithNothing);
  }
  void observe(const Extract& /*op*/, const Observation& seen) {
    if (!seen.error) reach(Label::kExtracted);
  }
  void observe(const Filter& op, const Observation& seen) {
    if (op.indices.empty() && is_batch(kind_of(op.cache))) reach(Label::kFilteredToNothing);
    if (!seen.error && !op.indices.empty()) reach(Label::kFiltered);
  }
  void observe(const Extend& /*op*/, const Observation& seen) {
    if (!seen.error) reach(Label::kExtended);
  }
  void observe(const Prepare& op, const Observation& seen) {
    if (seen.error) return;
    if (op.left_padding) reach(Label::kPaddedAtTheLeft);
    if (op.right_padding) reach(Label::kPaddedAtTheRight);
    prepared_ |= op.right_padding.has_value();
  }
  void observe(const Finalize& op, const Observation& seen) {
    if (!seen.error && is_batch(kind_of(op.cache)) && std::exchange(prepared_, false))
      reach(Label::kMovedToTheLeft);
  }

 protected:
  [[nodiscard]] std::optional<Op> choose() override {
    if (!begun_) return fresh(kind_);
    return ScriptGenerator::choose();
  }

 private:
  static constexpr std::int64_t kMostCaches = 24;

  [[nodiscard]] std::int64_t caches() const { return reference<CachesOfCase>().caches(); }
  [[nodiscard]] std::string kind_of(std::int64_t cache) const {
    if (cache < 0 || cache >= caches()) return {};
    return std::string(reference<CachesOfCase>().cache(cache).kind());
  }
  // Mostly one of the last.
  [[nodiscard]] std::int64_t some() {
    if (draw().percent(1)) return caches();
    if (draw().percent(60)) return caches() - 1;
    return std::max<std::int64_t>(caches() - 1 - draw().size(0, kMostCaches), 0);
  }
  [[nodiscard]] std::int64_t one_of_kind(const std::string& kind) {
    for (int tries = 0; tries < 4; ++tries)
      if (const std::int64_t cache = draw().between(0, caches() - 1); kind_of(cache) == kind)
        return cache;
    return some();
  }
  [[nodiscard]] std::int64_t rows_of(std::int64_t cache) const {
    if (kind_of(cache) == "arrays")
      return reference<CachesOfCase>().cache(cache).info()->batch_size.value_or(1);
    if (!is_batch(kind_of(cache))) return 1;
    const auto offset = reference<CachesOfCase>().cache(cache).offset();
    return std::ssize(std::get<Value::List>(offset->held));
  }
  [[nodiscard]] std::int64_t row(std::int64_t cache) {
    const std::int64_t count = rows_of(cache);
    return draw().percent(4) ? draw().between(-2, count) : draw().between(0, count - 1);
  }
  [[nodiscard]] Ints some_numbers(std::int64_t count, std::int64_t least, std::int64_t most) {
    if (draw().percent(2)) ++count;
    Ints numbers;
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(draw().between(least, most));
    return numbers;
  }
  [[nodiscard]] std::int64_t tokens() {
    return is_large() ? draw().size(2, 70) : draw().size(2, 9);
  }
  [[nodiscard]] Nullable<std::int64_t> window() {
    if (draw().percent(60)) return std::nullopt;
    return draw().size(0, std::max<std::int64_t>(config_.max_size, 4) + 1);
  }
  Op fresh(const std::string& kind) {
    New made{.kind = kind};
    if (is_batch(kind) && (begun_ || !config_.left_padding))
      made.left_padding = some_numbers(draw().between(1, 3), 0, 3);
    if (begun_ && draw().percent(4)) made.max_size = draw().between(1, 6);
    if (kind == "quantized" && begun_) made.bits = draw().one_of<std::int64_t>({2, 3, 4, 5, 6, 8});
    return Op::of(std::move(made));
  }
  // Tokens for a cache; an entry for a cache of states.
  Op add(std::int64_t cache, std::int64_t count) {
    if (kind_of(cache) == "arrays") {
      const Tensor v = tagger_.pair({rows_of(cache), draw().between(1, 2)}).first;
      return Op::of(Set{cache, draw().between(0, config_.size), v});
    }
    auto [k, v] = rows(rows_of(cache), count, type_);
    std::optional<bool> keep;
    if (keeps_pairs_) keep = draw().percent(70);
    return Op::of(Update{cache, std::move(k), std::move(v), keep});
  }
  std::pair<Tensor, Tensor> rows(std::int64_t batch, std::int64_t count, DType type,
                                 std::int64_t wider = 0) {
    auto [k, unused] = tagger_.pair({batch, heads_, count, k_dim_ + wider});
    auto [spare, v] = tagger_.pair({batch, heads_, count, v_dim_});
    return {of_type(k, type), of_type(v, type)};
  }
  static Tensor of_type(const Tensor& tensor, DType type) {
    if (type == DType::kF32) return tensor;
    Tensor cast = make_tensor(tensor.shape, type);
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i)
      store_element(type, tensor.floats()[i], &cast.bytes[i * dtype_bytes(type)]);
    return cast;
  }

  std::string kind_;
  Config config_;
  std::int64_t heads_;
  std::int64_t k_dim_;
  std::int64_t v_dim_;
  DType type_;
  bool calm_;  // nothing is done that leaves a cache without a promise
  bool keeps_pairs_;
  Tagger tagger_;
  bool begun_ = false;
  bool shared_ = false;    // some caches hold the same arrays
  bool prepared_ = false;  // right padding was announced
  bool was_full_ = false;  // the ring that is trimmed
};

// ---- prompt_lru ----

BOOST_DEFINE_FIXED_ENUM_CLASS(StoreLabel, std::uint8_t, kFoundExactly, kFoundShorter, kFoundLonger,
                              kNothingFound, kReplaced, kEvicted, kEvictedByBytes, kTrimmedTo,
                              kFoundAfterOneToken, kStoredState, kStoredRing, kStoredChunk)

class StoreScript final : public ScriptGenerator<StoreScript, StoreOps, StoreLabel> {
  using S = StoreScript;
  using Label = StoreLabel;

 public:
  explicit StoreScript(const CaseTerms& terms) : ScriptGenerator(terms) {}

  // Steps.
  Op insert() {
    const std::string kind = draw().percent(60)   ? "kv"
                             : draw().percent(50) ? "rotating"
                             : draw().percent(50) ? "chunked"
                                                  : "arrays";
    return Op::of(Insert{prompt(), draw().percent(2) ? "quantized" : kind,
                         draw().one_of({Role::kAssistant, Role::kUser, Role::kSystem})});
  }
  Op fetch() { return Op::of(Fetch{prompt()}); }
  Op trim_to() {
    if (draw().percent(50)) return Op::of(TrimTo{draw().between(-1, 4), std::nullopt});
    return Op::of(TrimTo{std::nullopt, draw().between(0, 200)});
  }
  Op make() {
    max_size_ = draw().percent(5) ? 0 : draw().between(1, 6);
    bytes_ = draw().percent(40);
    NewStore made{.max_size = max_size_};
    if (bytes_) made.max_bytes = draw().size(0, 300);
    return Op::of(std::move(made));
  }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {10, "insert", &S::insert, true},
      {12, "fetch", &S::fetch, true},
      {1, "trim to", &S::trim_to},
      {1, "new", &S::make},
  });

  void observe(const NewStore& /*op*/, const Observation& seen) {
    if (seen.error) return;
    begun_ = true;
    len_ = 0;
  }
  void observe(const Fetch& op, const Observation& seen) {
    if (seen.error) return;
    const auto& found = seen.as<FetchReturns>();
    spend(1'000);
    if (!found.k.has_value()) return reach(Label::kNothingFound);
    if (found.rest.empty()) return reach(Label::kFoundExactly);
    const TokenList held(op.tokens.begin(), op.tokens.end() - std::ssize(found.rest));
    const bool stored = std::ranges::find(stored_, held) != stored_.end();
    reach(stored ? Label::kFoundShorter : Label::kFoundLonger);
    if (held.size() == 1) reach(Label::kFoundAfterOneToken);
  }
  void observe(const Insert& op, const Observation& seen) {
    if (seen.error) return;
    spend(1'000);
    const std::int64_t len = seen.as<TotalsShown>().len;
    if (std::ranges::find(stored_, op.tokens) != stored_.end()) reach(Label::kReplaced);
    if (len == max_size_ && len_ == max_size_) reach(Label::kEvicted);
    if (bytes_ && len < len_) reach(Label::kEvictedByBytes);
    if (op.kind == "arrays") reach(Label::kStoredState);
    if (op.kind == "rotating") reach(Label::kStoredRing);
    if (op.kind == "chunked" && op.tokens.size() > 4) reach(Label::kStoredChunk);
    stored_.push_back(op.tokens);
    len_ = len;
  }
  void observe(const TrimTo& /*op*/, const Observation& seen) {
    if (!seen.error && seen.as<TotalsShown>().len < len_) reach(Label::kTrimmedTo);
  }

 protected:
  [[nodiscard]] std::optional<Op> choose() override {
    if (!begun_) return make();
    return ScriptGenerator::choose();
  }

 private:
  // Tokens of an earlier prompt, fewer, others or more of them.
  TokenList prompt() {
    TokenList tokens;
    if (!stored_.empty() && draw().percent(80)) tokens = stored_[draw().below(stored_.size())];
    if (!tokens.empty() && draw().percent(50)) tokens.resize(draw().below(tokens.size() + 1));
    for (std::int64_t more = draw().percent(40) ? 0 : draw().size(0, is_large() ? 20 : 3); more > 0;
         --more)
      tokens.push_back(draw().between(1, 3));
    return tokens;
  }

  bool begun_ = false;
  bool bytes_ = false;  // are limited
  std::int64_t max_size_ = 0;
  std::int64_t len_ = 0;
  std::vector<TokenList> stored_;  // that were ever stored
};

namespace {

Config some_config(Draw& draw, std::string_view kind, Scale scale) {
  const bool large = scale == Scale::kLarge;
  Config config{.step = draw.percent(5) ? 256 : draw.one_of<std::int64_t>({1, 2, 3, 4, 4, 8}),
                .max_size = draw.size(1, large ? 80 : 9),
                .keep = draw.percent(60) ? 0 : draw.between(0, 4),
                .chunk_size = draw.size(1, 8),
                .group_size = 32,
                .bits = draw.one_of<std::int64_t>({2, 3, 4, 5, 6, 8}),
                .size = draw.between(1, 3)};
  if (draw.percent(2)) config.group_size = draw.one_of<std::int64_t>({64, 128, 48});
  if (kind == "arrays" ? draw.percent(30) : draw.percent(60)) {
    config.left_padding.emplace();
    for (std::int64_t rows = draw.between(1, 4); rows > 0; --rows)
      config.left_padding->push_back(draw.percent(40) ? 0 : draw.between(1, 3));
  }
  return config;
}

// The kind as `new` names it.
std::string spelled(std::string_view cache) {
  std::string kind(cache);
  std::ranges::replace(kind, '_', '-');
  return kind;
}

std::vector<std::string_view> labels_of(std::string_view kind) {
  std::vector<L> all{L::kCopied, L::kMadeFromState};
  const auto more = [&](std::initializer_list<L> labels) {
    all.insert(all.end(), labels.begin(), labels.end());
  };
  if (kind == "arrays") {
    more({L::kEntrySet, L::kAdvanced, L::kMaskOfLengths, L::kMerged, L::kMergedWithNothing,
          L::kExtracted, L::kFiltered, L::kExtended});
  } else {
    more({L::kTrimmed, L::kTrimmedBelowZero, L::kNoTokens, L::kMisfit, L::kSharedAndWritten,
          L::kPairReread, L::kMoreThan64Tokens});
    if (kind != "quantized") more({L::kAnotherType});
    if (kind != "chunked") more({L::kMaskMatrix, L::kMaskOfAWindow});
    if (kind == "rotating" || kind == "batch_rotating") more({L::kRingFull, L::kFullRingTrimmed});
    if (kind == "rotating") more({L::kKeptSlots});
    if (kind == "kv" || kind == "rotating") more({L::kMaskCausal, L::kMerged});
    if (kind == "kv") more({L::kQuantized, L::kShownAsNumbers, L::kAllSlotsShown});
    if (kind == "quantized") more({L::kShownAsNumbers});
    if (kind == "chunked") more({L::kFrontDropped});
    if (kind.starts_with("batch"))
      more({L::kExtracted, L::kFiltered, L::kFilteredToNothing, L::kExtended, L::kPaddedAtTheLeft,
            L::kPaddedAtTheRight, L::kMovedToTheLeft, L::kMergedWithNothing});
    if (kind == "batch_rotating") more({L::kTokenBeforeFinalize});
  }
  std::vector<std::string_view> texts;
  for (const L label : all) texts.push_back(label_text(label));
  return texts;
}

}  // namespace

std::vector<Generator> generators() {
  std::vector<Generator> all;
  for (const CacheKind* kind : kinds()) {
    if (kind->cache == "prompt_lru") {
      const auto labels = label_texts_but<StoreLabel>({});
      all.push_back({.kind = kind,
                     .make = [](const CaseTerms& terms) -> GeneratedCase {
                       Draw draw(~terms.seed);
                       StoreConfig config{draw.one_of<std::int64_t>({1, 2, 4, 256})};
                       return {.setup = {.profile = terms.profile, .config = Record::of(config)},
                               .ops = std::make_unique<StoreScript>(terms)};
                     },
                     .original_labels = labels,
                     .documented_labels = labels});
      continue;
    }
    const auto make = [kind](const CaseTerms& terms) -> GeneratedCase {
      Draw draw(~terms.seed);
      Config config = some_config(draw, kind->cache, terms.scale);
      return {.setup = {.profile = terms.profile, .config = Record::of(config)},
              .ops = std::make_unique<CachesScript>(terms, spelled(kind->cache), config)};
    };
    const auto labels = labels_of(kind->cache);
    all.push_back(
        {.kind = kind, .make = make, .original_labels = labels, .documented_labels = labels});
  }
  return all;
}

}  // namespace kvo::mlx_lm
