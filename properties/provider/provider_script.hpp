// properties/provider/provider_script.hpp: what random scripts for caches of contract provider
// share: which cache, layer and handle an operation names, and what is known of each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/contract/describe/describe.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/contract/values/tensor.hpp"
#include "reference/provider/operations.hpp"

namespace kvo::provider {

/// How the caches of a case store rows.
struct CaseStorage {
  StorageFormat format = {};
  bool wide = false;      ///< rows are longer than a group
  bool odd_rows = false;  ///< rows are what narrow types find hard
  [[nodiscard]] bool is_narrow() const { return format.type != StorageType::kF32; }
};
/// f32 for most cases.
[[nodiscard]] CaseStorage draw_case_storage(Draw& draw, Scale scale);

/// A case whose config tells how rows are stored, and whose script is a Script of (terms, storage).
template <class Config, class Script>
[[nodiscard]] GeneratedCase stored_case(const CaseTerms& terms) {
  Draw draw = storage_draw(terms.seed);
  const CaseStorage storage = draw_case_storage(draw, terms.scale);
  Setup setup{.profile = terms.profile};
  if (storage.is_narrow()) {
    Config config;
    set_storage(draw, config.rows, storage.format);
    setup.config = Record::of(std::move(config));
  }
  return {.setup = std::move(setup), .ops = std::make_unique<Script>(terms, storage)};
}

/// K and V of one update.
struct RowPair {
  Nullable<Tensor> k;
  Nullable<Tensor> v;
};

/// Draws the rows of updates.
class RowDraw {
 public:
  RowDraw(Draw& draw, std::uint64_t seed, bool odd_rows)
      : draw_(draw), odd_values_(seed), odd_rows_(odd_rows) {
    poison_percent_ = draw.one_of<std::uint64_t>({0, 5, 30});
    fault_percent_ = draw.one_of<std::uint64_t>({0, 5, 15});
  }

  /// Rows of `shape`, [batch, position, dim]; now and then spoilt: null, of another rank or size.
  [[nodiscard]] RowPair rows(Shape shape);
  /// The same, never spoilt.
  [[nodiscard]] RowPair sound_rows(const Shape& shape);
  /// What a caller might write through a result.
  [[nodiscard]] float cell();

 private:
  void spoil_k(Shape& shape);
  void spoil_v(Shape& shape);
  void poison(Tensor& tensor);

  Draw& draw_;
  Tagger tagger_;
  OddValues odd_values_;
  bool odd_rows_;
  std::uint64_t poison_percent_;
  std::uint64_t fault_percent_;
  std::uint32_t nans_ = 0;
};

/// What a script knows of a layer, from what was observed.
struct KnownLayer {
  std::int64_t length = 0;
  std::int64_t batch = -1;  ///< the sizes that it is pinned to; -1: none yet
  std::int64_t dim = 0;
  std::uint64_t updates = 0;      ///< tried
  std::int64_t poison_begin = 0;  ///< [poison_begin, poison_end) held NaNs when it was written
  std::int64_t poison_end = 0;

  [[nodiscard]] bool pinned() const { return batch >= 0; }
  void pin(const Shape& shape) {
    batch = shape[0];
    dim = shape[2];
  }
  void cut(std::int64_t n) { length = std::min(length, n); }
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

  [[nodiscard]] std::optional<Op> choose() override {
    if (!this->has_plan() && !this->follows_plan() && std::ssize(known_) < most_caches_ &&
        draw().percent(known_.empty() ? 98 : 15))
      return static_cast<Derived&>(*this).make(std::ssize(known_));
    return Base::choose();
  }

  /// Cells that are made, lent, copied and kept for one of K.
  static constexpr std::uint64_t kUpdateCost = 8;
  static constexpr std::uint64_t kQueryCost = 4;

  // Steps.
  /// In a long life a new cache is rare, else none would grow old.
  Op again() {
    if (is_long() && draw().percent(97)) return static_cast<Derived&>(*this).update();
    return static_cast<Derived&>(*this).make(number());
  }
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
  /// An operation about a whole cache.
  template <class T>
  Op of_cache() {
    return Op::of(T{number()});
  }

  // Parts of orders. Derived has
  //   Op rows_for(std::int64_t cache, std::int64_t layer, std::int64_t positions);
  /// What orders about a layer may name.
  static constexpr auto layer_words() {
    using S = ProviderScript;
    return std::to_array<OrderWord>({
        order_word<&S::choose_layer>("choose_layer"),
        order_word<&S::rows_of_chosen>("rows"),
        order_word<&S::chosen_cache>("chosen"),
        order_word<&S::chosen_layer>("chosen_layer"),
        order_word<&S::chosen_length>("length"),
        order_word<&S::chosen_room>("room"),
        order_word<&S::most_positions>("most_positions"),
        order_word<&S::handle_count>("handles"),
    });
  }
  /// Chooses a cache and a layer. False: there is no such layer that holds rows.
  bool choose_layer() {
    const std::int64_t cache = number();
    about_ = {cache, layer(cache)};
    return chosen() != nullptr;
  }
  std::optional<Op> rows_of_chosen(std::int64_t positions) {
    if (chosen() == nullptr) return std::nullopt;
    return static_cast<Derived&>(*this).rows_for(about_.cache, about_.layer, positions);
  }
  [[nodiscard]] std::int64_t chosen_cache() const { return about_.cache; }
  [[nodiscard]] std::int64_t chosen_layer() const { return about_.layer; }
  std::int64_t chosen_length() { return chosen() != nullptr ? chosen()->length : 0; }
  std::int64_t chosen_room() {
    const Known* there = known(about_.cache);
    if constexpr (requires { there->max_seq_len; })
      return there != nullptr ? there->max_seq_len - chosen_length() : 0;
    else
      return 0;
  }
  [[nodiscard]] std::int64_t most_positions() const { return most_positions_; }
  [[nodiscard]] std::int64_t handle_count() const { return std::ssize(handles_); }

  // What became of an operation.
  void observe(const Poke& /*op*/, const Observation& seen) {
    if (seen.error) return;
    for (Handle& handle : handles_) handle.poked = true;
  }

 protected:
  explicit ProviderScript(const CaseTerms& terms, const CaseStorage& storage = {})
      : Base(terms),
        storage_(storage),
        rows_(draw(), terms.seed, storage.odd_rows),
        documented_(terms.profile == Profile::kDocumented) {
    most_caches_ = draw().percent(is_long() ? 80 : 60) ? 1 : draw().size(1, 5);
    if (is_large() && draw().percent(20)) most_caches_ = draw().edge(16, 65);
  }

  using Base::draw;
  using Base::is_large;
  using Base::is_long;
  using Base::reach;
  using Base::spend;

  [[nodiscard]] bool documented() const { return documented_; }
  [[nodiscard]] std::map<std::int64_t, Known>& all_known() { return known_; }
  [[nodiscard]] std::vector<Handle>& handles() { return handles_; }

  [[nodiscard]] const CaseStorage& storage() const { return storage_; }

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
    constexpr std::int64_t kMany = 1'000;  // a result that is kept takes memory
    if (std::ssize(handles_) > kMany && draw().percent(95)) return false;
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
    if (is_long()) return draw().between(1, 2);
    if (is_large() && draw().percent(30)) return draw().edge(5, 65);
    return draw().percent(50) ? draw().between(1, 2) : draw().size(1, 9);
  }
  /// How many positions an update has, where `room` are free: now and then what fits exactly.
  std::int64_t some_positions(std::int64_t room) {
    if (is_long() && draw().percent(95)) return 1;
    room = std::clamp<std::int64_t>(room, 0, most_positions_);
    if (draw().percent(20)) return room + (draw().percent(30) ? 1 : 0);
    const std::int64_t some =
        draw().percent(40) ? 1 : draw().size(draw().percent(10) ? 0 : 1, most_positions_);
    return draw().percent(92) ? std::min(some, std::max<std::int64_t>(room, 1)) : some;
  }
  /// How many positions a cache has room for, where one has so many cells in all batch rows. The
  /// updates that follow have at most so many.
  std::int64_t some_room(std::int64_t cells) {
    constexpr std::int64_t kMostPositions = 33;
    constexpr std::int64_t kManyPositions = 4'097;
    constexpr std::int64_t kMostCells = std::int64_t{1} << 17U;  // of a side of a layer
    if (is_long()) return draw().between(8, kMostPositions);
    if (!is_large()) return draw().size(1, kMostPositions);
    const std::int64_t room = draw().percent(60) ? draw().edge(kMostPositions, kManyPositions)
                                                 : draw().size(1, kMostPositions);
    most_positions_ =
        std::clamp<std::int64_t>(kMostCells / std::max<std::int64_t>(cells, 1), 1, room);
    return most_positions_;
  }
  /// Rows of a batch.
  std::int64_t some_batch(std::int64_t most) {
    if (is_long()) return draw().between(1, 2);
    return is_large() && draw().percent(25) ? draw().edge(8, 129) : draw().size(1, most);
  }
  /// Cells of a row: in large cases also the head sizes of common models, for which copies are
  /// often written out. A large batch has no wider rows.
  std::int64_t some_dim(std::int64_t most, std::int64_t batch) {
    if (is_long()) return draw().between(1, 2);
    if (is_large() && draw().percent(40)) return draw().template one_of<std::int64_t>(kHeadSizes);
    const bool wide = is_large() && batch <= most && draw().percent(40);
    return wide ? draw().edge(16, 1'025) : draw().size(1, most);
  }
  /// What a first update costs: the reference clears the buffers of a layer, also where it refuses.
  void spend_on_buffers(const Shape& shape, std::int64_t max_seq_len) {
    constexpr std::int64_t kNobodyHas = 1 << 20;
    const std::int64_t positions = std::clamp<std::int64_t>(max_seq_len, 0, kNobodyHas);
    spend(static_cast<std::uint64_t>(2 * shape.front() * shape.back() * positions));
  }
  static constexpr std::initializer_list<std::int64_t> kHeadSizes{32, 64, 80, 96, 128};

  RowDraw& rows() { return rows_; }

  /// Which cache and layer a plan is about.
  struct Planned {
    std::int64_t cache = 0;
    std::int64_t layer = 0;
  };
  /// The layer that choose_layer() chose, if it holds rows.
  Layer* chosen() {
    Layer* found = known(about_.cache, about_.layer);
    return found != nullptr && found->pinned() ? found : nullptr;
  }

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
    spend(kUpdateCost * static_cast<std::uint64_t>(update.k->elements()));
    return layer;
  }
  /// Rows were added to a layer of `there`.
  void added(const Known& there, Layer& layer, const Tensor& k) {
    constexpr std::int64_t kThousand = 1'024;
    constexpr std::int64_t kSixtyFour = 64;
    const std::int64_t start = layer.length;
    layer.length += k.shape[1];
    if (layer.length > kThousand) reach(Label::kBeyondAThousandPositions);
    if (k.shape[0] * k.shape[2] > kThousand) reach(Label::kPositionsOfAThousandCells);
    if (k.shape[0] > kSixtyFour) reach(Label::kBatchBeyondSixtyFour);
    if (std::ranges::find(kHeadSizes, k.shape[2]) != kHeadSizes.end() && k.shape[0] > 1 &&
        layer.length > 1)
      reach(Label::kRowsOfACommonHeadSize);
    if (&layer - there.layers.data() >= 4) reach(Label::kFiveLayers);
    if (known_.size() > 16) reach(Label::kBeyondSixteenCaches);
    for (const Layer& other : there.layers)
      if (other.length != layer.length) reach(Label::kLayersAtDifferentLengths);
    // What was cut off must never show again, not even once other rows are there.
    if (start < layer.poison_end && layer.length > layer.poison_begin) {
      reach(Label::kPoisonedRowTruncatedAndOverwritten);
      layer.poison_end = layer.poison_begin;
    }
    if (k.elements() == 0 || !std::isnan(k.floats().front())) return;
    layer.poison_begin = start;
    layer.poison_end = layer.length;
  }
  /// Rows went into a cache.
  void stored(const Tensor& k) {
    if (k.elements() == 0) return;
    reach_stored(storage_.format, k.shape[2], storage_.odd_rows,
                 [&](StorageLabel label) { reach(label); });
  }
  /// A write through a result was refused, or done.
  void saw_poke(const Observation& seen) {
    if (seen.error && seen.error->detail == "rows are codes") reach(Label::kWriteIntoCodesRefused);
    if (!seen.error && storage_.is_narrow()) reach(Label::kCellRoundedThroughAResult);
  }
  /// A result was read again.
  void spend_on(const Handle& handle) {
    spend(kQueryCost * static_cast<std::uint64_t>(handle.k.elements()));
  }
  /// A cache was emptied.
  void emptied() {
    constexpr std::uint64_t kOneByte = 0xFF;
    if (++emptied_ > kOneByte) reach(Label::kEmptiedBeyondOneByte);
  }
  /// A query has found something.
  void keep(const std::optional<std::int64_t>& cache, std::int64_t layer, const Found& found) {
    constexpr std::int64_t kOneByte = 0xFF;
    if (found.k) spend(kQueryCost * static_cast<std::uint64_t>(found.k->elements()));
    if (!found.handle) return;
    if (*found.handle > kOneByte) reach(Label::kResultsBeyondOneByte);
    const Layer* there = known(cache, layer);
    handles_.push_back({cache.value_or(0), layer, *found.k, there == nullptr ? 0 : there->updates});
  }

 private:
  CaseStorage storage_;
  RowDraw rows_;
  bool documented_;
  std::int64_t most_caches_;
  std::int64_t most_positions_ = 33;
  std::uint64_t emptied_ = 0;
  Planned about_;
  std::map<std::int64_t, Known> known_;
  std::vector<Handle> handles_;
};

}  // namespace kvo::provider
