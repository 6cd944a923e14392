// properties/provider/provider_script.hpp: what random scripts for caches of contract provider
// share: which cache, layer and handle an operation names, and what is known of each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/provider/generators.hpp"
#include "properties/provider/rows.hpp"
#include "reference/provider/operations.hpp"

namespace kvo::provider {

/// What a script knows of a layer, from what was observed.
struct KnownLayer {
  std::int64_t length = 0;
  std::int64_t batch = -1;  ///< the sizes that it is pinned to; -1: none yet
  std::int64_t dim = 0;
  std::uint64_t updates = 0;  ///< tried
  Poison poison = {};

  [[nodiscard]] bool pinned() const { return batch >= 0; }
  void pin(const Shape& shape) {
    batch = shape[0];
    dim = shape[2];
  }
  void cut(std::int64_t n) {
    length = std::min(length, n);
    poison.cut(n);
  }
};

/// A result that a script may look at again.
struct Handle {
  std::int64_t cache = 0;
  std::int64_t layer = 0;
  Tensor k = {};              ///< as it was first shown
  std::uint64_t updates = 0;  ///< of its layer, when it was first shown
  bool orphan = false;        ///< its cache was replaced
  bool poked = false;         ///< a caller has written through some result since
};

/// Base of the scripts. Known is what a script knows of a cache; it has
///   std::vector<Layer> layers;   of KnownLayer, or of a struct that is derived from it
/// Derived has Op make(std::int64_t cache), which makes the cache of that number. Labels that the
/// functions here reach must be in Label only if Derived calls them.
template <class Derived, class Ops, class Label, class Known>
class ProviderScript : public ScriptGenerator<Derived, Ops, Label> {
  using Base = ScriptGenerator<Derived, Ops, Label>;

 public:
  using Layer = typename decltype(Known::layers)::value_type;

  [[nodiscard]] std::optional<Op> next() override {
    if (!this->has_plan() && std::ssize(known_) < most_caches_ &&
        draw().percent(known_.empty() ? 98 : 15))
      return static_cast<Derived&>(*this).make(std::ssize(known_));
    return Base::next();
  }

  // Steps.
  Op again() { return static_cast<Derived&>(*this).make(number()); }
  Op get() {
    const std::int64_t cache = number();
    return Op::of(Get{cache, layer(cache), keep()});
  }
  Op reread() { return Op::of(Reread{handle()}); }
  Op poke() {
    const std::int64_t to = handle();
    const bool exists = to >= 0 && to < std::ssize(handles_);
    std::int64_t cells = exists ? handles_[static_cast<std::size_t>(to)].k.elements() : 0;
    cells = std::max<std::int64_t>(cells, 1);
    return Op::of(Poke{to, draw().percent(50) ? "k" : "v",
                       draw().between(0, cells - (draw().percent(3) ? 0 : 1)), rows_.cell()});
  }
  Op truncate() {
    const std::int64_t cache = number();
    return Op::of(Truncate{cache, end(cache)});
  }
  Op reset() { return Op::of(Reset{number()}); }
  Op seq_len() { return Op::of(SeqLen{number()}); }
  Op num_layers() { return Op::of(NumLayers{number()}); }

  // What became of an operation.
  void saw(const Poke& /*op*/, const Observation& seen) {
    if (seen.error) return;
    for (Handle& handle : handles_) handle.poked = true;
  }
  template <OneOf<SeqLen, NumLayers> T>
  void saw(const T& /*nothing to follow*/, const Observation& /*seen*/) {}

 protected:
  explicit ProviderScript(const CaseTerms& terms)
      : Base(terms.seed),
        rows_(draw(), terms.seed),
        documented_(terms.profile == Profile::kDocumented) {
    most_caches_ = draw().percent(60) ? 1 : draw().size(1, 5);
  }

  using Base::draw;
  using Base::reach;

  [[nodiscard]] bool documented() const { return documented_; }
  [[nodiscard]] std::map<std::int64_t, Known>& all_known() { return known_; }
  [[nodiscard]] std::vector<Handle>& handles() { return handles_; }

  // ---- Draws ----

  /// The number of a cache, mostly of one that there is.
  std::int64_t number() {
    return draw().percent(98) && !known_.empty() ? draw().between(0, std::ssize(known_) - 1)
                                                 : draw().between(-1, 4);
  }
  /// A layer of a cache; the first ones are chosen most, so that something happens to them.
  std::int64_t layer(std::int64_t cache) {
    const Known* there = known(cache);
    const std::int64_t layers = there == nullptr ? 0 : std::ssize(there->layers);
    if (layers == 0 || draw().percent(4))
      return draw().template one_of<std::int64_t>({layers, layers + 1, -1});
    return draw().between(0, (draw().percent(60) ? std::min<std::int64_t>(layers, 2) : layers) - 1);
  }
  std::optional<bool> keep() {
    return draw().template one_of<std::optional<bool>>({std::nullopt, std::nullopt, true, false});
  }
  /// A handle, mostly one that there is.
  std::int64_t handle() {
    const std::int64_t count = std::ssize(handles_);
    return count == 0 || draw().percent(3) ? draw().template one_of<std::int64_t>({-1, count})
                                           : draw().between(0, count - 1);
  }
  /// Where to cut a cache: mostly between the ends of what some layer holds.
  std::int64_t end(std::int64_t cache) {
    const Known* there = known(cache);
    std::int64_t longest = 0;
    if (there != nullptr)
      for (const Layer& one : there->layers) longest = std::max(longest, one.length);
    if (draw().percent(6)) return draw().between(-3, -1);
    if (draw().percent(6)) return longest + draw().between(0, 3);
    return draw().percent(30) ? std::max<std::int64_t>(0, longest - draw().between(1, 2))
                              : draw().between(0, longest);
  }
  /// How many layers a cache is made with.
  std::int64_t some_layers() {
    return draw().percent(50) ? draw().between(1, 2) : draw().size(1, 9);
  }
  /// How many positions an update has, where `room` are free: now and then what fits exactly.
  std::int64_t some_positions(std::int64_t room) {
    room = std::clamp<std::int64_t>(room, 0, kMostPositions);
    if (draw().percent(20)) return room + (draw().percent(30) ? 1 : 0);
    const std::int64_t some =
        draw().percent(40) ? 1 : draw().size(draw().percent(10) ? 0 : 1, kMostPositions);
    return draw().percent(92) ? std::min(some, std::max<std::int64_t>(room, 1)) : some;
  }
  /// Most positions of a cache that has a limit.
  static constexpr std::int64_t kMostPositions = 33;

  RowDraw& rows() { return rows_; }

  // ---- What is known ----

  Known* known(const std::optional<std::int64_t>& cache) {
    const auto found = known_.find(cache.value_or(0));
    return found == known_.end() ? nullptr : &found->second;
  }
  Layer* known(const std::optional<std::int64_t>& cache, std::int64_t layer) {
    Known* there = known(cache);
    if (there == nullptr || layer < 0 || layer >= std::ssize(there->layers)) return nullptr;
    return &there->layers[static_cast<std::size_t>(layer)];
  }
  /// A new cache, perhaps in the place of another.
  void remember(const std::optional<std::int64_t>& cache, Known fresh) {
    orphan(cache);
    known_[cache.value_or(0)] = std::move(fresh);
  }
  /// The results of a cache are left alone.
  void orphan(const std::optional<std::int64_t>& cache) {
    for (Handle& handle : handles_)
      if (handle.cache == cache.value_or(0)) handle.orphan = true;
  }
  /// The layer of an update whose K has three axes, or null: then there is nothing to follow.
  template <class T>
  Layer* updated(const T& update) {
    if (known(update.cache) == nullptr) return nullptr;
    Layer* layer = known(update.cache, update.layer);
    if (layer == nullptr) {
      reach(Label::kLayerOutOfRange);
      return nullptr;
    }
    if (!update.k.has_value() || !update.v.has_value()) reach(Label::kNullTensor);
    if (!update.k.has_value() || update.k->shape.size() != 3) return nullptr;
    ++layer->updates;
    return layer;
  }
  /// Rows were added to a layer of `there`.
  void added(const Known& there, Layer& layer, const Tensor& k) {
    const std::int64_t start = layer.length;
    layer.length += k.shape[1];
    for (const Layer& other : there.layers)
      if (other.length != layer.length) reach(Label::kLayersAtDifferentLengths);
    if (layer.poison.overwritten(start, layer.length))
      reach(Label::kPoisonedRowTruncatedAndOverwritten);
    if (k.elements() > 0 && std::isnan(k.floats().front())) layer.poison.put(start, layer.length);
  }
  /// A query has found something.
  void keep(const std::optional<std::int64_t>& cache, std::int64_t layer, const Found& found) {
    if (!found.handle) return;
    const Layer* there = known(cache, layer);
    handles_.push_back({cache.value_or(0), layer, *found.k, there == nullptr ? 0 : there->updates});
  }

 private:
  RowDraw rows_;
  bool documented_;
  std::int64_t most_caches_;
  std::map<std::int64_t, Known> known_;
  std::vector<Handle> handles_;
};

}  // namespace kvo::provider
