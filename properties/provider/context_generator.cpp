// Random scripts for provider.context.
#include <algorithm>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/provider/context.hpp"

namespace kvo::provider {
namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(ContextLabel, std::uint8_t, kContextShadowedByAnotherCache,
                              kContextShadowedByANullCache, kTypedNullFound,
                              kNullContiguousCacheNotFound, kAnotherElementTypeNotFound,
                              kStoredCacheIsNotContiguous, kNothingStored,
                              kOtherCacheRefusedAsAContiguousOne)

class ContextScript final : public ScriptGenerator<ContextScript, ContextOps, ContextLabel> {
  using S = ContextScript;

 public:
  explicit ContextScript(const CaseTerms& terms) : ScriptGenerator(terms.seed) {}

  // Steps.
  Op with_cache() { return Op::of(WithCache{stored()}); }
  Op with_kv_cache() {
    const Stored kv_or_null = draw().one_of({Stored::kKv, Stored::kNil});
    return Op::of(WithKvCache{draw().percent(5) ? Stored::kPaged : kv_or_null});
  }
  Op with_cache_nested() { return Op::of(WithCacheNested{stored(), stored()}); }
  Op background() { return Op::of(Background{}); }
  Op get_cache() { return Op::of(GetCache{}); }
  Op get_cache_other_type() { return Op::of(GetCacheOtherType{}); }
  Op get_kv_cache() { return Op::of(GetKvCache{}); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {12, "with_cache", &S::with_cache, true},
      {12, "with_kv_cache", &S::with_kv_cache, true},
      {8, "with_cache_nested", &S::with_cache_nested},
      {3, "background", &S::background},
      {20, "get_cache", &S::get_cache},
      {6, "get_cache_other_type", &S::get_cache_other_type},
      {14, "get_kv_cache", &S::get_kv_cache},
  });

  // What became of an operation.
  void observe(const Background& /*op*/, const Observation& /*seen*/) { stored_.clear(); }
  void observe(const WithCache& with, const Observation& seen) {
    if (!seen.error) stored_.push_back({with.kind, false});
  }
  void observe(const WithKvCache& with, const Observation& seen) {
    if (seen.error) return reach(ContextLabel::kOtherCacheRefusedAsAContiguousOne);
    stored_.push_back({with.kind, true});
  }
  void observe(const WithCacheNested& with, const Observation& seen) {
    if (!seen.error) stored_.insert(stored_.end(), {{with.outer, false}, {with.inner, false}});
  }
  void observe(const GetCache& /*op*/, const Observation& seen) {
    if (seen.error) return;
    if (stored_.empty()) return reach(ContextLabel::kNothingStored);
    const bool found = seen.as<GetCache::Returns>().found;
    const Entry& inner = stored_.back();
    const bool null = inner.kind == Stored::kNil;
    const bool hidden = std::ranges::any_of(
        stored_.begin(), stored_.end() - 1,
        [&](const Entry& outer) { return outer.kind != Stored::kNil && outer.kind != inner.kind; });
    if (hidden && found && !null) reach(ContextLabel::kContextShadowedByAnotherCache);
    if (hidden && !found) reach(ContextLabel::kContextShadowedByANullCache);
    if (null && found) reach(ContextLabel::kTypedNullFound);
    if (null && inner.typed && !found) reach(ContextLabel::kNullContiguousCacheNotFound);
  }
  void observe(const GetCacheOtherType& /*op*/, const Observation& seen) {
    if (!seen.error && !stored_.empty() && !seen.as<GetCacheOtherType::Returns>().found)
      reach(ContextLabel::kAnotherElementTypeNotFound);
  }
  void observe(const GetKvCache& /*op*/, const Observation& seen) {
    if (!seen.error && !stored_.empty() && stored_.back().kind == Stored::kPaged &&
        !seen.as<GetKvCache::Returns>().found)
      reach(ContextLabel::kStoredCacheIsNotContiguous);
  }

 private:
  struct Entry {
    Stored kind = Stored::kNil;
    bool typed = false;  // stored as a contiguous cache
  };

  Stored stored() { return draw().one_of({Stored::kKv, Stored::kPaged, Stored::kNil}); }

  std::vector<Entry> stored_;  // from the outermost context to the current one
};

}  // namespace

Generator context_generator() {
  return script_generator<ContextLabel>(context_kind(), script_case<ContextScript>,
                                        {ContextLabel::kTypedNullFound},
                                        {ContextLabel::kNullContiguousCacheNotFound});
}

}  // namespace kvo::provider
