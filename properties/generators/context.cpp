// Random scripts for provider.context.
#include <algorithm>

#include "properties/generators/generators.hpp"
#include "reference/provider/contract_context.hpp"

namespace kvo::provider {
namespace {

// States worth reaching.
constexpr std::string_view kShadowed = "context shadowed by another cache";
constexpr std::string_view kShadowedByNull = "context shadowed by a null cache";
constexpr std::string_view kTypedNull = "typed null found";
constexpr std::string_view kNullNotFound = "null contiguous cache not found";
constexpr std::string_view kOtherType = "another element type not found";
constexpr std::string_view kNotContiguous = "stored cache is not contiguous";
constexpr std::string_view kEmpty = "nothing stored";
constexpr std::string_view kRefused = "other cache refused as a contiguous one";

class ContextScript final : public OpStream {
 public:
  explicit ContextScript(std::uint64_t seed) : draw_(seed) {
    weights_ = swarm(draw_, {12, 12, 8, 3, 20, 6, 14}, 2);
  }

  std::optional<Op> next() override {
    switch (draw_.weighted(weights_)) {
      case 0:
        return Op::of(WithCache{stored()});
      case 1:
        return Op::of(WithKvCache{draw_.percent(5) ? Stored::kPaged : kv_or_null()});
      case 2:
        return Op::of(WithCacheNested{stored(), stored()});
      case 3:
        return Op::of(Background{});
      case 4:
        return Op::of(GetCache{});
      case 5:
        return Op::of(GetCacheOtherType{});
      default:
        return Op::of(GetKvCache{});
    }
  }

  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    if (seen.error) {
      labels.insert(kRefused);
      return;
    }
    if (op.as<Background>() != nullptr) stored_.clear();
    if (const auto* with = op.as<WithCache>()) stored_.push_back({with->kind, false});
    if (const auto* with = op.as<WithKvCache>()) stored_.push_back({with->kind, true});
    if (const auto* with = op.as<WithCacheNested>())
      stored_.insert(stored_.end(), {{with->outer, false}, {with->inner, false}});
    if (op.as<GetCache>() != nullptr) saw_get(seen.as<GetCache::Returns>(), labels);
    if (op.as<GetCacheOtherType>() != nullptr && !stored_.empty() &&
        !seen.as<GetCacheOtherType::Returns>().found)
      labels.insert(kOtherType);
    if (op.as<GetKvCache>() != nullptr && !stored_.empty() &&
        stored_.back().kind == Stored::kPaged && !seen.as<GetKvCache::Returns>().found)
      labels.insert(kNotContiguous);
  }

 private:
  struct Entry {
    Stored kind = Stored::kNil;
    bool typed = false;  // stored as a contiguous cache
  };

  Stored stored() { return draw_.one_of({Stored::kKv, Stored::kPaged, Stored::kNil}); }
  Stored kv_or_null() { return draw_.one_of({Stored::kKv, Stored::kNil}); }

  void saw_get(const GetCache::Returns& got, Labels& labels) const {
    if (stored_.empty()) {
      labels.insert(kEmpty);
      return;
    }
    const bool null = stored_.back().kind == Stored::kNil;
    const bool hidden =
        std::ranges::any_of(stored_.begin(), stored_.end() - 1, [&](const Entry& outer) {
          return outer.kind != Stored::kNil && outer.kind != stored_.back().kind;
        });
    if (hidden && got.found && !null) labels.insert(kShadowed);
    if (hidden && !got.found) labels.insert(kShadowedByNull);
    if (null && got.found) labels.insert(kTypedNull);
    if (null && stored_.back().typed && !got.found) labels.insert(kNullNotFound);
  }

  Draw draw_;
  std::vector<std::uint64_t> weights_;
  std::vector<Entry> stored_;  // from the outermost context to the current one
};

GeneratedCase make_case(std::uint64_t seed, Profile profile) {
  return {.setup = {.profile = profile}, .ops = std::make_unique<ContextScript>(seed)};
}

Generator make_generator() {
  const std::vector<std::string_view> both{kShadowed,      kShadowedByNull, kOtherType,
                                           kNotContiguous, kEmpty,          kRefused};
  Generator generator{.kind = &context_kind(),
                      .make = make_case,
                      .original_labels = both,
                      .documented_labels = both};
  generator.original_labels.push_back(kTypedNull);
  generator.documented_labels.push_back(kNullNotFound);
  return generator;
}

}  // namespace
}  // namespace kvo::provider

namespace kvo {

Generator context_generator() {
  return provider::make_generator();
}

}  // namespace kvo
