// What a session of kind `prefix.radix` does beside calling its cache: it checks lists, finds the
// namespace, and numbers keys.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/describe/handles.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/prefix/keys_session.hpp"
#include "reference/prefix/radix.hpp"

namespace kvo::prefix {
namespace {

// Most slots that one call may ask for, so that its answer is bounded.
constexpr std::int64_t kMostSlotsAtOnce = std::int64_t{1} << 26U;

// Lists of one length, with 0 <= prefix <= length and a last slot from -1 on.
Status check_growth(IdsView prefixes, IdsView lengths, IdsView last) {
  if (prefixes.size() != lengths.size() || lengths.size() != last.size())
    return fail(Code::kPrecondition, "lists of several lengths");
  std::int64_t grown = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (Status checked = check_count("prefix_lens", prefixes[i]); !checked) return checked;
    if (Status checked = check_count("seq_lens", lengths[i]); !checked) return checked;
    if (Status checked = check_count("last_slots", last[i] + 1); !checked) return checked;
    if (lengths[i] < prefixes[i]) return fail(Code::kPrecondition, "seq_lens: below prefix_lens");
    grown += lengths[i] - prefixes[i];
    if (grown > kMostSlotsAtOnce) return fail(Code::kPrecondition, "seq_lens: too many slots");
  }
  return {};
}

class RadixSession final : public DispatchSession<RadixSession, RadixOps>,
                           public ShowsCache<RadixCache> {
 public:
  RadixSession(const RadixConfig& config, std::unique_ptr<RadixCache> cache)
      : config_(config), cache_(std::move(cache)) {}

  template <class T>
  [[nodiscard]] Result<RadixCache*> cache_of(const T& /*op*/) const {
    return cache_.get();
  }
  Result<SlotsOnly> operator()(const AllocExtend& op) {
    if (const Status checked = check_growth(op.prefix_lens, op.seq_lens, op.last_slots); !checked)
      return checked.error();
    return call_method(op);
  }
  Result<SlotsOnly> operator()(const AllocDecode& op) {
    Ids prefixes;
    for (const std::int64_t length : op.seq_lens) prefixes.push_back(std::max(length, kLeast) - 1);
    if (const Status checked = check_growth(prefixes, op.seq_lens, op.last_slots); !checked)
      return checked.error();
    return call_method(op);
  }
  Answer<Extend::Returns> operator()(const Extend& op) {
    const auto done = probe()([&] { return op.call(*cache_); });
    if (!done) return {.error = done.error()};
    Answer<Extend::Returns> answer{.returns = {.nodes = detail::owned(done->nodes)}};
    if (done->exhausted)
      answer.error = fail(Code::kExhausted);
    else
      answer.returns.slots = detail::owned(done->slots);
    return answer;
  }
  Result<TakeEvents::Returns> operator()(const TakeEvents& /*op*/) {
    const auto events = probe()([&] { return cache_->events(); });
    return TakeEvents::Returns{keys_.shown(events, config_.page_size)};
  }

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return cache_->broken_invariant();
  }
  [[nodiscard]] const RadixCache& shown() const override { return *cache_; }
  void follow(const Op& /*op*/, const Observation& answer, Session& /*chooser*/) override {
    Ids slots;
    if (!answer.error)
      for (const Handle& handle : handles_of(answer.returns))
        if (handle.of == "slot") slots.push_back(handle.value);
    cache_->prefer(slots);
  }

 private:
  static constexpr std::int64_t kLeast = 1;

  RadixConfig config_;
  std::unique_ptr<RadixCache> cache_;
  KeyNumbers keys_;
};

// Lists whose order shows which slots go next.
Observation without_slot_order(const Op& op, const Observation& seen) {
  if (op.as<ShowTree>() == nullptr) return seen;
  ShowTreeReturns tree = seen.as<ShowTreeReturns>();
  tree.free.insert(tree.free.end(), tree.staged.begin(), tree.staged.end());
  tree.staged.clear();
  std::ranges::sort(tree.free);
  return {.returns = Record::of(std::move(tree))};
}

constexpr std::array<ConventionInfo, 1> kRadixConventions{
    {{.name = "own_slots",
      .rules = "PX-80, PX-81",
      .sentence = "chooses which free slots, or pages, it hands out",
      .relation = CanonicalRelation<without_slot_order>::make,
      .chooses = true}}};

Error not_offered(const char* what) {
  return fail(Code::kNotSupported, what);
}

}  // namespace

Result<RadixConfig> checked(const RadixConfig& config, QuirkSet<Quirk> quirks) {
  if (config.policy == Policy::kTlru && !quirks.has(Quirk::kTlruAborts))
    return not_offered("policy: tlru");
  if (config.page_size < 1 || config.page_size > kMostTokens) return not_offered("page_size");
  if (!check_count("", config.slots) || config.slots / config.page_size > kMostUnits)
    return not_offered("slots");
  if (config.eagle && config.events) return not_offered("eagle with events");
  return config;
}

const CacheKind& radix_kind() {
  static constexpr auto kRows = rows_of(kQuirkRows, kRadixQuirks);
  static const CacheKind kKind{.contract = "prefix",
                               .cache = "radix",
                               .doc = "a tree of token runs over a pool of slots (SGLang)",
                               .operations = op_kinds(RadixOps()),
                               .config = &type_of<RadixConfig>(),
                               .quirks = kRows,
                               .conventions = kRadixConventions};
  return kKind;
}

Subject make_radix_subject(std::string variant, std::string doc, MakeRadix make) {
  return keyed_subject<RadixSession, RadixConfig>(radix_kind(), std::move(variant), std::move(doc),
                                                  std::move(make), checked);
}

}  // namespace kvo::prefix

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_PREFIX_RADIX_OPERATIONS)
}  // namespace kvo
