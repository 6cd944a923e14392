// Random scripts for layered.vector.
#include "properties/generators/generators.hpp"
#include "reference/contract/tags.hpp"
#include "reference/layered/contract.hpp"

namespace kvo::layered {
namespace {
// States worth reaching.
constexpr std::string_view kRagged = "layers of unequal length";
constexpr std::string_view kBeyondReserve = "appended beyond the reserved room";
constexpr std::string_view kFilledAgain = "appended after clear";
constexpr std::string_view kClonedPending = "cloned with data not yet advanced";
constexpr std::string_view kWrongLengthTaken = "wrong length stored";
constexpr std::string_view kWrongLengthRefused = "wrong length refused";
constexpr std::string_view kLayerRefused = "layer out of range";
constexpr std::string_view kOverflow = "size product overflows";
constexpr std::string_view kPinHeld = "pinned address held";
constexpr std::string_view kAdvanceRefused = "advance refused";
constexpr std::string_view kSecondAppend = "second append of a token refused";

// What the generator knows of a cache, from what was observed.
struct Known {
  Geometry geometry;
  std::uint64_t reserved = 0;
  std::vector<std::uint64_t> elements = {};
  bool cleared = false;
  bool pending = false;
};

class LayeredOps final : public OpStream {
 public:
  LayeredOps(std::uint64_t seed, Profile profile)
      : draw_(seed), documented_(profile == Profile::kDocumented) {
    weights_ = swarm(draw_, {40, 20, 6, 6, 3, 2, 1, 2, 3, 2, 2, 2, 4, 5, 1, 1}, 4);
  }

  std::optional<Op> next() override {
    if (caches_.empty()) return make();
    const std::uint64_t cache = number();
    switch (draw_.weighted(weights_)) {
      case 0:
        return append(cache);
      case 1:
        return token(cache);
      case 2:
        return Op::of(Keys{cache, layer(cache)});
      case 3:
        return Op::of(Values{cache, layer(cache)});
      case 4:
        return Op::of(Len{cache});
      case 5:
        return Op::of(IsEmpty{cache});
      case 6:
        return Op::of(NumLayers{cache});
      case 7:
        return Op::of(EntrySize{cache});
      case 8:
        return Op::of(Clear{cache});
      case 9:
        return Op::of(Clone{cache});
      case 10:
        return Op::of(CloneFrom{cache, number()});
      case 11:
        return Op::of(Debug{cache, draw_.percent(50)});
      case 12:
        return Op::of(Pin{cache, layer(cache)});
      case 13:
        return Op::of(Pinned{cache, layer(cache)});
      default:
        return make();
    }
  }

  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    if (const auto* append = op.as<Append>()) saw_append(*append, seen, labels);
    if (seen.error) {
      if (op.as<Advance>() != nullptr && documented_) labels.insert(kAdvanceRefused);
      if (op.as<WithCapacity>() != nullptr || op.as<EntrySize>() != nullptr)
        labels.insert(kOverflow);
      return;
    }
    if (const auto* made = op.as<New>())
      remember({{made->num_layers, made->num_kv_heads, made->head_dim}});
    if (const auto* made = op.as<WithCapacity>())
      remember({{made->num_layers, made->num_kv_heads, made->head_dim},
                made->max_seq_len * made->num_kv_heads * made->head_dim});
    if (const auto* clone = op.as<Clone>()) {
      if (caches_[clone->cache].pending) labels.insert(kClonedPending);
      caches_.push_back(caches_[clone->cache]);
      caches_.back().reserved = 0;
    }
    if (const auto* clone = op.as<CloneFrom>()) caches_[clone->cache] = caches_[clone->source];
    if (const auto* advance = op.as<Advance>()) caches_[advance->cache].pending = false;
    if (const auto* clear = op.as<Clear>()) {
      caches_[clear->cache].elements.assign(caches_[clear->cache].elements.size(), 0);
      caches_[clear->cache].cleared = true;
    }
    if (op.as<Pinned>() != nullptr && seen.as<Pinned::Returns>().same.has_value())
      labels.insert(kPinHeld);
  }

 private:
  void remember(Known known) {
    known.elements.assign(std::min<std::uint64_t>(known.geometry.num_layers, 8), 0);
    caches_.push_back(std::move(known));
  }

  void saw_append(const Append& append, const Observation& seen, Labels& labels) {
    if (append.cache >= caches_.size()) return;
    Known& known = caches_[append.cache];
    const auto entry =
        static_cast<std::int64_t>(known.geometry.num_kv_heads * known.geometry.head_dim);
    const bool exact = append.k.elements() == entry && append.v.elements() == entry;
    if (append.layer >= known.geometry.num_layers) labels.insert(kLayerRefused);
    if (seen.error) {
      if (!exact) labels.insert(kWrongLengthRefused);
      if (exact && append.layer < known.geometry.num_layers) labels.insert(kSecondAppend);
      return;
    }
    if (!exact) labels.insert(kWrongLengthTaken);
    std::uint64_t& elements = known.elements[append.layer];
    elements += static_cast<std::uint64_t>(append.k.elements());
    if (known.reserved > 0 && elements > known.reserved) labels.insert(kBeyondReserve);
    if (known.cleared) labels.insert(kFilledAgain);
    for (const std::uint64_t other : known.elements)
      if (other != elements) labels.insert(kRagged);
    known.pending = true;
  }

  std::uint64_t number() {
    return draw_.percent(97) ? draw_.below(caches_.size()) : caches_.size();
  }

  std::uint64_t layer(std::uint64_t cache) {
    const std::uint64_t layers = cache < caches_.size() ? caches_[cache].geometry.num_layers : 0;
    return layers > 0 && draw_.percent(95) ? draw_.below(std::min<std::uint64_t>(layers, 8))
                                           : layers + draw_.below(2);
  }

  Op make() {
    std::uint64_t heads = static_cast<std::uint64_t>(draw_.between(0, 3));
    std::uint64_t dim = static_cast<std::uint64_t>(draw_.between(0, 4));
    const auto layers = static_cast<std::uint64_t>(draw_.between(0, 3));
    if (draw_.percent(3)) heads = dim = std::uint64_t{1} << 32U;
    if (draw_.percent(50)) return Op::of(New{layers, heads, dim});
    std::uint64_t tokens = static_cast<std::uint64_t>(draw_.between(0, 6));
    if (draw_.percent(3)) tokens = std::uint64_t{1} << 62U;
    return Op::of(WithCapacity{layers, heads, dim, tokens});
  }

  Op append(std::uint64_t cache) {
    std::int64_t k = 1;
    if (cache < caches_.size())
      k = static_cast<std::int64_t>(caches_[cache].geometry.num_kv_heads *
                                    caches_[cache].geometry.head_dim);
    std::int64_t v = k;
    if (draw_.percent(8)) k = draw_.between(0, 9);
    if (draw_.percent(8)) v = draw_.between(0, 9);
    auto [keys, spare] = tagger_.pair({std::min<std::int64_t>(k, 64)});
    auto [unused, values] = tagger_.pair({std::min<std::int64_t>(v, 64)});
    return Op::of(Append{cache, layer(cache), std::move(keys), std::move(values)});
  }

  // Appends to every layer in turn and then advances: what an engine does.
  Op token(std::uint64_t cache) {
    if (cache >= caches_.size() || in_token_ >= caches_[cache].geometry.num_layers) {
      in_token_ = 0;
      return Op::of(Advance{cache});
    }
    const Geometry& geometry = caches_[cache].geometry;
    const auto entry = static_cast<std::int64_t>(geometry.num_kv_heads * geometry.head_dim);
    auto [keys, values] = tagger_.pair({std::min<std::int64_t>(entry, 64)});
    return Op::of(Append{cache, in_token_++, std::move(keys), std::move(values)});
  }

  Draw draw_;
  bool documented_;
  Tagger tagger_;
  std::vector<std::uint64_t> weights_;
  std::vector<Known> caches_;
  std::uint64_t in_token_ = 0;
};

GeneratedCase make_case(std::uint64_t seed, Profile profile) {
  Draw draw(seed);
  GeneratedCase made{.setup = {.profile = profile}, .ops = nullptr};
  if (profile == Profile::kOriginal)
    made.setup.config["build"] = draw.percent(50) ? "debug" : "release";
  made.ops = std::make_unique<LayeredOps>(draw.below(~std::uint64_t{0}), profile);
  return made;
}

}  // namespace
}  // namespace kvo::layered

namespace kvo {

Generator layered_generator() {
  return {.kind = &layered::vector_kind(),
          .make = layered::make_case,
          .original_labels = {layered::kRagged, layered::kBeyondReserve, layered::kFilledAgain,
                              layered::kClonedPending, layered::kWrongLengthTaken,
                              layered::kWrongLengthRefused, layered::kLayerRefused,
                              layered::kOverflow, layered::kPinHeld},
          .documented_labels = {layered::kBeyondReserve, layered::kFilledAgain,
                                layered::kClonedPending, layered::kWrongLengthRefused,
                                layered::kLayerRefused, layered::kOverflow, layered::kPinHeld,
                                layered::kAdvanceRefused, layered::kSecondAppend}};
}

}  // namespace kvo
