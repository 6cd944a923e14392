// Random scripts for layered.vector.
#include "properties/campaign/generator.hpp"

#include <algorithm>
#include <span>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/layered/cache.hpp"

namespace kvo::layered {
namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(Label, std::uint8_t, kLayersOfUnequalLength,
                              kAppendedBeyondTheReservedRoom, kAppendedAfterClear,
                              kClonedWithDataNotYetAdvanced, kWrongLengthStored,
                              kWrongLengthRefused, kLayerOutOfRange, kSizeProductOverflows,
                              kPinnedAddressHeld, kAdvanceRefused, kSecondAppendOfATokenRefused,
                              kFiveLayers, kRowsOfAThousandCells, kBeyondAThousandTokens,
                              kBeyondSixteenCaches, kClearedBeyondOneByte, kCountedBeyondTwoBytes)

constexpr std::uint64_t kMostLayers = 9;
constexpr std::int64_t kMostHeads = 9;
constexpr std::int64_t kMostDim = 17;
constexpr std::int64_t kMostTokens = 33;

// What the script knows of a cache, from what was observed.
struct Known {
  Geometry geometry = {};
  std::uint64_t reserved = 0;
  std::vector<std::uint64_t> elements = {};
  bool cleared = false;
  bool pending = false;
  std::uint64_t next_layer = 0;  // that lacks the token under way, if they come in order

  [[nodiscard]] std::int64_t entry() const {
    return static_cast<std::int64_t>(geometry.num_kv_heads * geometry.head_dim);
  }
};

class VectorScript final : public ScriptGenerator<VectorScript, Ops, Label> {
  using S = VectorScript;

 public:
  VectorScript(const CaseTerms& terms, const StorageFormat& storage, bool odd_rows)
      : ScriptGenerator(terms),
        storage_(storage),
        odd_rows_(odd_rows),
        documented_(terms.profile == Profile::kDocumented),
        odd_values_(terms.seed) {
    if (is_long()) most_tokens_ = draw().one_of<std::uint64_t>({8, 300, 1'500, 5'000});
    if (is_large() && draw().percent(20)) new_caches_ = draw().between(17, 40);
  }

  std::optional<Op> choose() override {
    const bool more = std::ssize(caches_) < new_caches_ && !has_plan() && !follows_plan();
    return more ? make() : ScriptGenerator::choose();
  }

  // Steps.
  Op append() {
    if (is_long() && draw().percent(95)) return next_of_token();
    const std::uint64_t cache = number();
    const std::int64_t entry = cache < caches_.size() ? caches_[cache].entry() : 1;
    const auto length = [&] { return draw().percent(8) ? draw().size(0, kMostDim) : entry; };
    return row(cache, layer(cache), length(), length());
  }
  // An append to every layer in turn and then advance: what an engine does.
  Op token() {
    if (is_long()) return next_of_token();
    const std::uint64_t cache = number();
    if (cache >= caches_.size()) return Op::of(Advance{cache});
    const Known& known = caches_[cache];
    for (std::uint64_t to = 0; to < known.geometry.num_layers; ++to)
      plan(row(cache, to, known.entry(), known.entry()));
    plan(Advance{cache});
    return Op::of(Len{cache});
  }
  template <class T>
  Op of_cache() {
    return Op::of(T{number()});
  }
  template <class T>
  Op of_layer() {
    const std::uint64_t cache = number();
    return Op::of(T{cache, layer(cache)});
  }
  Op clear() {
    // In a long life most_tokens_ says when.
    return is_long() && draw().percent(97) ? next_of_token() : Op::of(Clear{number()});
  }
  Op clone() {
    // In a long life caches are seldom added, else none would grow old.
    return is_long() && draw().percent(97) ? next_of_token() : Op::of(Clone{number()});
  }
  Op clone_from() { return Op::of(CloneFrom{number(), number()}); }
  Op debug() { return Op::of(Debug{number(), draw().percent(50)}); }
  Op make() {
    if (is_long()) {
      if (!caches_.empty() && draw().percent(97)) return next_of_token();
      return Op::of(New{draw().below(2) + 2, 1, draw().below(2) + 1});
    }
    std::uint64_t heads = size(kMostHeads);
    std::uint64_t dim = size(kMostDim);
    std::uint64_t layers = size(kMostLayers);
    if (is_large() && draw().percent(40)) heads = edge(5, 33);
    if (is_large() && draw().percent(40))
      dim = draw().percent(50) ? draw().one_of<std::uint64_t>({32, 64, 80, 96, 128}) : edge(9, 513);
    if (is_large() && draw().percent(20)) layers = edge(5, 65);
    if (in_groups(storage_.type) && draw().percent(50)) {
      dim = static_cast<std::uint64_t>(draw().between(33, 140));
      heads = std::min<std::uint64_t>(heads, 3);
    }
    std::uint64_t tokens = is_large() && draw().percent(40) ? edge(33, 4'097) : size(kMostTokens);
    constexpr std::uint64_t kMostCells = std::uint64_t{1} << 20U;  // all of them are reserved
    tokens = std::min(tokens, kMostCells / std::max<std::uint64_t>(layers * heads * dim, 1));
    if (draw().percent(3)) heads = dim = std::uint64_t{1} << 32U;
    if (draw().percent(50)) return Op::of(New{layers, heads, dim});
    if (draw().percent(3)) tokens = std::uint64_t{1} << 62U;
    return Op::of(WithCapacity{layers, heads, dim, tokens});
  }

  static const CacheKind& order_kind() { return vector_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::choose_cache>("choose_cache"),
        order_word<&S::row_of>("row"),
        order_word<&S::about_>("chosen"),
        order_word<&S::caches>("caches"),
        order_word<&S::layers_of>("layers"),
        order_word<&S::is_large>("large"),
        order_word<&S::documented_>("documented"),
    });
    return kWords;
  }
  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {40, "append", &S::append, true},
      {10, "token", &S::token, true},
      {2, "advance", &S::of_cache<Advance>},
      {6, "k", &S::of_layer<Keys>, true},
      {6, "v", &S::of_layer<Values>, true},
      {3, "len", &S::of_cache<Len>},
      {2, "is_empty", &S::of_cache<IsEmpty>},
      {1, "num_layers", &S::of_cache<NumLayers>},
      {2, "entry_size", &S::of_cache<EntrySize>},
      {3, "clear", &S::clear},
      {2, "clone", &S::clone},
      {2, "clone_from", &S::clone_from},
      {2, "debug", &S::debug},
      {4, "pin", &S::of_layer<Pin>},
      {5, "pinned", &S::of_layer<Pinned>},
      {2, "new", &S::make},
  });

  // What became of an operation.
  void observe(const New& made, const Observation& seen) {
    if (!seen.error) remember({{made.num_layers, made.num_kv_heads, made.head_dim}});
  }
  void observe(const WithCapacity& made, const Observation& seen) {
    if (seen.error) return reach(Label::kSizeProductOverflows);
    remember({{made.num_layers, made.num_kv_heads, made.head_dim},
              made.max_seq_len * made.num_kv_heads * made.head_dim});
  }
  void observe(const Append& append, const Observation& seen) {
    spend(kAppendCost * static_cast<std::uint64_t>(append.k.elements() + append.v.elements()));
    if (append.cache >= caches_.size()) return;
    Known& known = caches_[append.cache];
    const bool exact = append.k.elements() == known.entry() && append.v.elements() == known.entry();
    if (append.layer >= known.geometry.num_layers) reach(Label::kLayerOutOfRange);
    if (seen.error) {
      if (!exact) reach(Label::kWrongLengthRefused);
      if (exact && append.layer < known.geometry.num_layers)
        reach(Label::kSecondAppendOfATokenRefused);
      return;
    }
    if (!exact) reach(Label::kWrongLengthStored);
    saw_stored(append, known);
    std::uint64_t& elements = known.elements[append.layer];
    elements += static_cast<std::uint64_t>(append.k.elements());
    if (known.reserved > 0 && elements > known.reserved)
      reach(Label::kAppendedBeyondTheReservedRoom);
    if (known.cleared) reach(Label::kAppendedAfterClear);
    for (const std::uint64_t other : known.elements)
      if (other != elements) reach(Label::kLayersOfUnequalLength);
    known.pending = true;
    if (append.layer == known.next_layer) ++known.next_layer;
    constexpr std::int64_t kThousand = 1'024;
    if (append.layer >= 4) reach(Label::kFiveLayers);
    if (known.entry() > kThousand) reach(Label::kRowsOfAThousandCells);
    if (exact && known.entry() > 0 &&
        elements > static_cast<std::uint64_t>(kThousand * known.entry()))
      reach(Label::kBeyondAThousandTokens);
  }
  void observe(const Advance& advance, const Observation& seen) {
    if (seen.error && documented_) reach(Label::kAdvanceRefused);
    if (seen.error) return;
    caches_[advance.cache].pending = false;
    caches_[advance.cache].next_layer = 0;
  }
  void observe(const EntrySize& /*op*/, const Observation& seen) {
    if (seen.error) reach(Label::kSizeProductOverflows);
  }
  void observe(const Clear& clear, const Observation& seen) {
    if (seen.error) return;
    Known& known = caches_[clear.cache];
    std::ranges::fill(known.elements, 0);
    known.cleared = true;
    known.next_layer = 0;
    constexpr std::uint64_t kOneByte = 0xFF;
    if (++cleared_ > kOneByte) reach(Label::kClearedBeyondOneByte);
  }
  void observe(const Clone& clone, const Observation& seen) {
    if (seen.error) return;
    spend_on(caches_[clone.cache]);
    if (caches_[clone.cache].pending) reach(Label::kClonedWithDataNotYetAdvanced);
    caches_.push_back(caches_[clone.cache]);
    caches_.back().reserved = 0;
    if (caches_.size() > 16) reach(Label::kBeyondSixteenCaches);
  }
  void observe(const CloneFrom& clone, const Observation& seen) {
    if (seen.error) return;
    spend_on(caches_[clone.source]);
    caches_[clone.cache] = caches_[clone.source];
  }
  template <OneOf<Keys, Values> T>
  void observe(const T& asked, const Observation& seen) {
    if (!seen.error) spend(kQueryCost * caches_[asked.cache].elements[asked.layer]);
  }
  void observe(const Pinned& /*op*/, const Observation& seen) {
    if (!seen.error && seen.as<Pinned::Returns>().same.has_value())
      reach(Label::kPinnedAddressHeld);
  }

 private:
  static constexpr std::uint64_t kAppendCost = 4;
  static constexpr std::uint64_t kQueryCost = 4;

  // The storage type of an entry.
  void saw_stored(const Append& append, const Known& known) {
    if (append.k.elements() == 0) return;
    reach_stored(storage_, static_cast<std::int64_t>(known.geometry.head_dim), odd_rows_,
                 [&](StorageLabel label) { reach(label); });
  }
  // What an engine does next in a long life: a layer's row, an advance, or all over again.
  Op next_of_token() {
    const std::uint64_t cache = number();
    if (cache >= caches_.size()) return Op::of(Advance{cache});
    const Known& known = caches_[cache];
    if (known.next_layer >= known.geometry.num_layers) return Op::of(Advance{cache});
    const std::uint64_t held = known.elements.front();
    if (known.next_layer == 0 && held >= most_tokens_) return Op::of(Clear{cache});
    return row(cache, known.next_layer, known.entry(), known.entry());
  }
  void choose_cache() { about_ = draw().below(caches_.size()); }
  Op row_of(std::uint64_t cache) {
    return row(cache, 0, caches_[cache].entry(), caches_[cache].entry());
  }
  [[nodiscard]] std::int64_t caches() const { return std::ssize(caches_); }
  [[nodiscard]] std::uint64_t layers_of(std::uint64_t cache) const {
    return caches_[cache].geometry.num_layers;
  }
  void spend_on(const Known& copied) {
    for (const std::uint64_t elements : copied.elements) spend(kAppendCost * elements);
  }
  std::uint64_t edge(std::int64_t low, std::int64_t most) {
    return static_cast<std::uint64_t>(draw().edge(low, most));
  }
  void remember(Known known) {
    known.elements.assign(known.geometry.num_layers, 0);
    caches_.push_back(std::move(known));
    if (caches_.size() > 16) reach(Label::kBeyondSixteenCaches);
  }
  std::uint64_t size(std::int64_t most) { return static_cast<std::uint64_t>(draw().size(0, most)); }
  std::uint64_t number() {
    return draw().percent(97) ? draw().below(caches_.size()) : caches_.size();
  }
  std::uint64_t layer(std::uint64_t cache) {
    const std::uint64_t layers = cache < caches_.size() ? caches_[cache].geometry.num_layers : 0;
    return layers > 0 && draw().percent(95) ? draw().below(layers) : layers + draw().below(2);
  }
  Op row(std::uint64_t cache, std::uint64_t to, std::int64_t k, std::int64_t v) {
    constexpr std::int64_t kMostElements = std::int64_t{1} << 15U;
    auto [keys, spare] = tagger_.pair({std::min(k, kMostElements)});
    auto [unused, values] = tagger_.pair({std::min(v, kMostElements)});
    odd_values_.put_into(keys.floats());
    odd_values_.put_into(values.floats());
    if (odd_rows_ && cache < caches_.size())
      for (Tensor* side : {&keys, &values}) fill_by_heads(caches_[cache].geometry, *side);
    return Op::of(Append{cache, to, std::move(keys), std::move(values)});
  }

  // Rows that are hard on narrow types, if the heads are whole.
  void fill_by_heads(const Geometry& geometry, Tensor& entry) {
    const auto dim = static_cast<std::int64_t>(geometry.head_dim);
    if (dim <= 0 || entry.elements() % dim != 0) return;
    entry.shape = {entry.elements() / dim, dim};
    fill_oddly(draw(), entry);
    entry.shape = {entry.elements()};
  }

  StorageFormat storage_;
  bool odd_rows_;
  bool documented_;
  Tagger tagger_;
  OddValues odd_values_;
  std::vector<Known> caches_;
  std::int64_t new_caches_ = 1;    // made at first
  std::uint64_t most_tokens_ = 0;  // of a long life, in cells of a layer
  std::uint64_t cleared_ = 0;
  std::uint64_t about_ = 0;  // cache of a plan
};

GeneratedCase make_case(const CaseTerms& terms) {
  Config config;
  if (terms.profile == Profile::kOriginal)
    config.build = Draw(~terms.seed).percent(50) ? Build::kDebug : Build::kRelease;
  Draw draw = storage_draw(terms.seed);
  bool odd_rows = false;
  if (draw.percent(20)) {
    set_storage(draw, config.rows, draw_narrow_storage(draw));
    odd_rows = draw.percent(60);
  }
  const StorageFormat storage = config.rows.format();
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::make_unique<VectorScript>(terms, storage, odd_rows)};
}

}  // namespace

std::vector<Generator> generators() {
  return {with_storage_labels(with_orders<VectorScript>(script_generator<Label>(
      vector_kind(), make_case, {Label::kLayersOfUnequalLength, Label::kWrongLengthStored},
      {Label::kAdvanceRefused, Label::kSecondAppendOfATokenRefused})))};
}

}  // namespace kvo::layered
