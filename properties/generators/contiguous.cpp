// Random scripts for provider.contiguous.
#include <algorithm>
#include <limits>
#include <map>

#include "properties/generators/generators.hpp"
#include "properties/generators/provider_rows.hpp"
#include "reference/provider/contract_contiguous.hpp"

namespace kvo::provider {
namespace {

// States worth reaching.
constexpr std::string_view kExactlyFull = "cache full exactly";
constexpr std::string_view kFullPins = "first update full pins the shape";
constexpr std::string_view kFullPinsNothing = "first update full pins nothing";
constexpr std::string_view kView = "get is a view";
constexpr std::string_view kCompacted = "get is compacted";
constexpr std::string_view kOverwriteShows = "view shows a later overwrite";
constexpr std::string_view kPoked = "cell written through a view";
constexpr std::string_view kPoisonReplaced = "poisoned row truncated and overwritten";
constexpr std::string_view kRagged = "layers at different cursors";
constexpr std::string_view kVRefused = "V refused";
constexpr std::string_view kNullTensor = "null tensor";
constexpr std::string_view kNegative = "negative truncate";
constexpr std::string_view kNegativeCursor = "negative cursor";
constexpr std::string_view kBeyond = "truncate beyond the length";
constexpr std::string_view kShortened = "truncated between rows";
constexpr std::string_view kOtherDim = "reset then update with other dim refused";
constexpr std::string_view kOrphan = "result read after its cache was replaced";
constexpr std::string_view kNoPositions = "update without positions";
constexpr std::string_view kOverflow = "size product overflows";
constexpr std::string_view kLayerRefused = "layer out of range";

struct KnownLayer {
  std::int64_t cursor = 0;
  std::int64_t batch = -1;  // -1: not pinned
  std::int64_t dim = 0;
  std::optional<std::pair<std::int64_t, std::int64_t>> refused_full =
      std::nullopt;  // a first update that was too long
  Poison poison = {};
};

// What the generator knows of a cache, from what was observed.
struct Known {
  std::int64_t max_seq_len = 0;
  std::vector<KnownLayer> layers = {};
  bool was_reset = false;
};

class ContiguousScript final : public OpStream {
 public:
  ContiguousScript(std::uint64_t seed, Profile profile)
      : draw_(seed), rows_(draw_), documented_(profile == Profile::kDocumented) {
    weights_ = swarm(draw_, {50, 25, 8, 8, 12, 3, 4, 1, 2}, 2);
    most_caches_ = draw_.one_of<std::uint64_t>({1, 1, 2, 3});
    batch_ = draw_.between(1, 3);
    dim_ = draw_.between(1, 3);
  }

  std::optional<Op> next() override {
    if (known_.size() < most_caches_ && (known_.empty() || draw_.percent(20)))
      return make(static_cast<std::int64_t>(known_.size()));
    const std::int64_t cache = number();
    switch (draw_.weighted(weights_)) {
      case 0:
        return update(cache);
      case 1:
        return Op::of(Get{cache, layer(cache), keep()});
      case 2:
        return Op::of(Reread{handle()});
      case 3:
        return poke();
      case 4:
        return Op::of(Truncate{cache, cut(cache)});
      case 5:
        return Op::of(Reset{cache});
      case 6:
        return Op::of(SeqLen{cache});
      case 7:
        return Op::of(NumLayers{cache});
      default:
        return make(cache);
    }
  }

  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    if (const auto* made = op.as<NewContiguous>()) saw_new(*made, seen);
    if (const auto* update = op.as<Update>()) saw_update(*update, seen, labels);
    if (const auto* get = op.as<Get>()) saw_get(*get, seen, labels);
    if (const auto* reread = op.as<Reread>()) saw_reread(*reread, seen, labels);
    if (const auto* truncate = op.as<Truncate>()) saw_truncate(*truncate, seen, labels);
    if (const auto* poke = op.as<Poke>(); poke != nullptr && !seen.error) {
      labels.insert(kPoked);
      const Handle& through = handles_[static_cast<std::size_t>(poke->handle)];
      for (Handle& handle : handles_)
        if (handle.cache == through.cache) handle.poked = true;
    }
    if (const auto* reset = op.as<Reset>(); reset != nullptr && !seen.error) {
      Known& known = known_.at(reset->cache.value_or(0));
      for (KnownLayer& layer : known.layers) {
        layer.poison.cut(0);
        layer.cursor = 0;
      }
      known.was_reset = true;
    }
  }

 private:
  std::int64_t number() {
    return draw_.percent(97) ? draw_.between(0, static_cast<std::int64_t>(known_.size()) - 1)
                             : draw_.between(-1, 4);
  }

  std::int64_t layer(std::int64_t cache) {
    const auto found = known_.find(cache);
    const auto layers =
        found == known_.end() ? 0 : static_cast<std::int64_t>(found->second.layers.size());
    return layers > 0 && draw_.percent(95) ? draw_.between(0, layers - 1)
                                           : draw_.one_of<std::int64_t>({layers, layers + 1, -1});
  }

  std::optional<bool> keep() {
    return draw_.one_of<std::optional<bool>>({std::nullopt, std::nullopt, true, false});
  }

  std::int64_t handle() {
    return handles_.empty() || draw_.percent(3)
               ? draw_.one_of<std::int64_t>({-1, static_cast<std::int64_t>(handles_.size())})
               : draw_.between(0, static_cast<std::int64_t>(handles_.size()) - 1);
  }

  Op make(std::int64_t cache) {
    std::int64_t layers = draw_.one_of<std::int64_t>({1, 1, 2, 2, 3});
    std::int64_t positions = draw_.between(1, 6);
    if (draw_.percent(3)) layers = draw_.between(-1, 0);
    if (draw_.percent(3)) positions = draw_.between(-2, 0);
    // So many that two cells a position overflow; with one they would only ask for memory.
    if (draw_.percent(1) && batch_ * dim_ > 1) positions = std::numeric_limits<std::int64_t>::max();
    return Op::of(NewContiguous{cache, layers, positions});
  }

  Op update(std::int64_t cache) {
    const std::int64_t to = layer(cache);
    Shape shape{draw_.percent(90) ? batch_ : draw_.between(0, 3), 1,
                draw_.percent(90) ? dim_ : draw_.between(0, 3)};
    std::int64_t left = 3;
    const auto found = known_.find(cache);
    if (found != known_.end() && to >= 0 &&
        to < static_cast<std::int64_t>(found->second.layers.size())) {
      const Known& known = found->second;
      const KnownLayer& there = known.layers[static_cast<std::size_t>(to)];
      if (there.batch >= 0 && draw_.percent(92)) {
        shape.front() = there.batch;
        shape.back() = there.dim;
      }
      left = std::clamp<std::int64_t>(known.max_seq_len - there.cursor, 0, 8);
    }
    if (draw_.percent(25)) {
      shape[1] = left + (draw_.percent(30) ? 1 : 0);  // the edge of what fits
    } else {
      shape[1] = draw_.between(draw_.percent(10) ? 0 : 1, std::clamp<std::int64_t>(left, 1, 3));
    }
    auto [k, v, poisoned] = rows_.rows(shape);
    poisoned_ = poisoned;
    return Op::of(Update{cache, to, std::move(k), std::move(v)});
  }

  // Mostly between the ends of what some layer holds.
  std::int64_t cut(std::int64_t cache) {
    std::int64_t longest = 0;
    if (const auto found = known_.find(cache); found != known_.end())
      for (const KnownLayer& layer : found->second.layers)
        longest = std::max(longest, layer.cursor);
    longest = std::min<std::int64_t>(longest, 8);
    if (draw_.percent(6)) return draw_.between(-3, -1);
    if (draw_.percent(6)) return longest + draw_.between(0, 3);
    return draw_.between(0, longest);
  }

  Op poke() {
    const std::int64_t handle = this->handle();
    std::int64_t cells = 1;
    if (handle >= 0 && handle < static_cast<std::int64_t>(handles_.size()))
      cells = std::max<std::int64_t>(1, handles_[static_cast<std::size_t>(handle)].k.elements());
    const std::int64_t index = draw_.between(0, cells - 1 + (draw_.percent(3) ? 1 : 0));
    return Op::of(Poke{handle, draw_.percent(50) ? "k" : "v", index, rows_.cell()});
  }

  void saw_new(const NewContiguous& made, const Observation& seen) {
    const std::int64_t number = made.cache.value_or(0);
    if (seen.error) return;
    for (Handle& handle : handles_)
      if (handle.cache == number) handle.orphan = true;
    known_[number] = {.max_seq_len = made.max_seq_len,
                      .layers = std::vector<KnownLayer>(static_cast<std::size_t>(made.num_layers))};
  }

  void saw_update(const Update& update, const Observation& seen, Labels& labels) {
    const auto found = known_.find(update.cache.value_or(0));
    if (found == known_.end()) return;
    Known& known = found->second;
    if (update.layer < 0 || update.layer >= static_cast<std::int64_t>(known.layers.size())) {
      labels.insert(kLayerRefused);
      return;
    }
    KnownLayer& layer = known.layers[static_cast<std::size_t>(update.layer)];
    if (!update.k.has_value() || !update.v.has_value()) labels.insert(kNullTensor);
    if (!update.k.has_value() || update.k->shape.size() != 3) return;
    if (seen.error) {
      saw_refusal(known, layer, update, *seen.error, labels);
      return;
    }
    const Shape& shape = update.k->shape;
    const std::pair sizes{shape[0], shape[2]};
    if (layer.refused_full && *layer.refused_full != sizes && documented_)
      labels.insert(kFullPinsNothing);
    const std::int64_t start = layer.cursor;
    layer.batch = shape[0];
    layer.dim = shape[2];
    layer.cursor += shape[1];
    if (shape[1] == 0) labels.insert(kNoPositions);
    if (layer.cursor == known.max_seq_len) labels.insert(kExactlyFull);
    for (const KnownLayer& other : known.layers)
      if (other.cursor != layer.cursor) labels.insert(kRagged);
    if (layer.poison.overwritten(start, layer.cursor)) labels.insert(kPoisonReplaced);
    if (poisoned_) layer.poison.put(start, layer.cursor);
  }

  void saw_refusal(const Known& known, KnownLayer& layer, const Update& update, const Error& error,
                   Labels& labels) {
    const Shape& shape = update.k->shape;
    if (error.code == Code::kFull && layer.batch < 0) {
      if (!layer.refused_full) layer.refused_full = {shape[0], shape[2]};
    }
    if (error.code == Code::kBadShape && layer.refused_full && layer.batch < 0 && !documented_)
      labels.insert(kFullPins);
    if (error.code == Code::kBadShape && known.was_reset && layer.batch >= 0 &&
        shape[2] != layer.dim)
      labels.insert(kOtherDim);
    if (error.detail == "max_seq_len" || error.detail == "seq") labels.insert(kOverflow);
    if (layer.cursor < 0) labels.insert(kNegativeCursor);
    if (layer.cursor >= 0 && update.v.has_value() && update.v->shape != shape &&
        error.code != Code::kFull)
      labels.insert(kVRefused);
  }

  void saw_get(const Get& get, const Observation& seen, Labels& labels) {
    if (seen.error) labels.insert(kNegativeCursor);
    if (seen.error || !seen.as<Found>().found) return;
    const auto& found = seen.as<Found>();
    const bool view =
        found.k->shape[0] == 1 || found.k->shape[1] == known_.at(get.cache.value_or(0)).max_seq_len;
    labels.insert(view ? kView : kCompacted);
    if (found.handle) handles_.push_back({get.cache.value_or(0), *found.k});
  }

  void saw_reread(const Reread& reread, const Observation& seen, Labels& labels) {
    if (seen.error) return;
    const Handle& handle = handles_[static_cast<std::size_t>(reread.handle)];
    if (handle.orphan) labels.insert(kOrphan);
    if (!handle.poked && *seen.as<Again>().k != handle.k) labels.insert(kOverwriteShows);
  }

  void saw_truncate(const Truncate& truncate, const Observation& seen, Labels& labels) {
    if (seen.error) return;
    const std::int64_t n = documented_ ? std::max<std::int64_t>(truncate.n, 0) : truncate.n;
    bool longer = false;
    for (KnownLayer& layer : known_.at(truncate.cache.value_or(0)).layers) {
      longer = longer || layer.cursor > n;
      if (n > 0 && n < layer.cursor) labels.insert(kShortened);
      cut_layer(layer, n);
    }
    if (!longer) labels.insert(kBeyond);
    if (truncate.n < 0) labels.insert(kNegative);
  }

  static void cut_layer(KnownLayer& layer, std::int64_t n) {
    layer.cursor = std::min(layer.cursor, n);
    layer.poison.cut(n);
  }

  Draw draw_;
  RowDraw rows_;
  bool documented_;
  std::vector<std::uint64_t> weights_;
  std::uint64_t most_caches_ = 1;
  std::int64_t batch_ = 1;  // what most layers of the case are pinned to
  std::int64_t dim_ = 1;
  bool poisoned_ = false;  // the rows of the update under way
  std::map<std::int64_t, Known> known_;
  std::vector<Handle> handles_;
};

GeneratedCase make_case(std::uint64_t seed, Profile profile) {
  return {.setup = {.profile = profile}, .ops = std::make_unique<ContiguousScript>(seed, profile)};
}

Generator make_generator() {
  const std::vector<std::string_view> both{
      kExactlyFull, kView,     kCompacted,   kOverwriteShows, kPoked,       kPoisonReplaced,
      kRagged,      kVRefused, kNullTensor,  kNegative,       kBeyond,      kShortened,
      kOtherDim,    kOrphan,   kNoPositions, kOverflow,       kLayerRefused};
  Generator generator{.kind = &contiguous_kind(),
                      .make = make_case,
                      .original_labels = both,
                      .documented_labels = both};
  generator.original_labels.insert(generator.original_labels.end(), {kFullPins, kNegativeCursor});
  generator.documented_labels.push_back(kFullPinsNothing);
  return generator;
}

}  // namespace
}  // namespace kvo::provider

namespace kvo {

Generator contiguous_generator() {
  return provider::make_generator();
}

}  // namespace kvo
