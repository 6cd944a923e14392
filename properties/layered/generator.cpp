// Random scripts for layered.vector.
#include <algorithm>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/layered/contract.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/layered/operations.hpp"

namespace kvo::layered {
namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(Label, std::uint8_t, kLayersOfUnequalLength,
                              kAppendedBeyondTheReservedRoom, kAppendedAfterClear,
                              kClonedWithDataNotYetAdvanced, kWrongLengthStored,
                              kWrongLengthRefused, kLayerOutOfRange, kSizeProductOverflows,
                              kPinnedAddressHeld, kAdvanceRefused, kSecondAppendOfATokenRefused)

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

  [[nodiscard]] std::int64_t entry() const {
    return static_cast<std::int64_t>(geometry.num_kv_heads * geometry.head_dim);
  }
};

class VectorScript final : public ScriptGenerator<VectorScript, Ops, Label> {
  using S = VectorScript;

 public:
  explicit VectorScript(const CaseTerms& terms)
      : ScriptGenerator(terms.seed),
        documented_(terms.profile == Profile::kDocumented),
        odd_values_(terms.seed) {}

  std::optional<Op> next() override { return caches_.empty() ? make() : ScriptGenerator::next(); }

  // Steps.
  Op append() {
    const std::uint64_t cache = number();
    const std::int64_t entry = cache < caches_.size() ? caches_[cache].entry() : 1;
    const auto length = [&] { return draw().percent(8) ? draw().size(0, kMostDim) : entry; };
    return row(cache, layer(cache), length(), length());
  }
  // An append to every layer in turn and then advance: what an engine does.
  Op token() {
    const std::uint64_t cache = number();
    if (cache >= caches_.size()) return Op::of(Advance{cache});
    const Known& known = caches_[cache];
    for (std::uint64_t to = 0; to < known.geometry.num_layers; ++to)
      plan(row(cache, to, known.entry(), known.entry()));
    plan(Advance{cache});
    return Op::of(Len{cache});
  }
  Op advance() { return Op::of(Advance{number()}); }
  Op keys() { return of_layer<Keys>(); }
  Op values() { return of_layer<Values>(); }
  Op len() { return Op::of(Len{number()}); }
  Op is_empty() { return Op::of(IsEmpty{number()}); }
  Op num_layers() { return Op::of(NumLayers{number()}); }
  Op entry_size() { return Op::of(EntrySize{number()}); }
  Op clear() { return Op::of(Clear{number()}); }
  Op clone() { return Op::of(Clone{number()}); }
  Op clone_from() { return Op::of(CloneFrom{number(), number()}); }
  Op debug() { return Op::of(Debug{number(), draw().percent(50)}); }
  Op pin() { return of_layer<Pin>(); }
  Op pinned() { return of_layer<Pinned>(); }
  Op make() {
    std::uint64_t heads = size(kMostHeads);
    std::uint64_t dim = size(kMostDim);
    const std::uint64_t layers = size(kMostLayers);
    if (draw().percent(3)) heads = dim = std::uint64_t{1} << 32U;
    if (draw().percent(50)) return Op::of(New{layers, heads, dim});
    std::uint64_t tokens = size(kMostTokens);
    if (draw().percent(3)) tokens = std::uint64_t{1} << 62U;
    return Op::of(WithCapacity{layers, heads, dim, tokens});
  }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {40, "append", &S::append, true},
      {10, "token", &S::token, true},
      {2, "advance", &S::advance},
      {6, "k", &S::keys, true},
      {6, "v", &S::values, true},
      {3, "len", &S::len},
      {2, "is_empty", &S::is_empty},
      {1, "num_layers", &S::num_layers},
      {2, "entry_size", &S::entry_size},
      {3, "clear", &S::clear},
      {2, "clone", &S::clone},
      {2, "clone_from", &S::clone_from},
      {2, "debug", &S::debug},
      {4, "pin", &S::pin},
      {5, "pinned", &S::pinned},
      {2, "new", &S::make},
  });

  // What became of an operation.
  void saw(const New& made, const Observation& seen) {
    if (!seen.error) remember({{made.num_layers, made.num_kv_heads, made.head_dim}});
  }
  void saw(const WithCapacity& made, const Observation& seen) {
    if (seen.error) return reach(Label::kSizeProductOverflows);
    remember({{made.num_layers, made.num_kv_heads, made.head_dim},
              made.max_seq_len * made.num_kv_heads * made.head_dim});
  }
  void saw(const Append& append, const Observation& seen) {
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
    std::uint64_t& elements = known.elements[append.layer];
    elements += static_cast<std::uint64_t>(append.k.elements());
    if (known.reserved > 0 && elements > known.reserved)
      reach(Label::kAppendedBeyondTheReservedRoom);
    if (known.cleared) reach(Label::kAppendedAfterClear);
    for (const std::uint64_t other : known.elements)
      if (other != elements) reach(Label::kLayersOfUnequalLength);
    known.pending = true;
  }
  void saw(const Advance& advance, const Observation& seen) {
    if (seen.error && documented_) reach(Label::kAdvanceRefused);
    if (!seen.error) caches_[advance.cache].pending = false;
  }
  void saw(const EntrySize& /*op*/, const Observation& seen) {
    if (seen.error) reach(Label::kSizeProductOverflows);
  }
  void saw(const Clear& clear, const Observation& seen) {
    if (seen.error) return;
    Known& known = caches_[clear.cache];
    std::ranges::fill(known.elements, 0);
    known.cleared = true;
  }
  void saw(const Clone& clone, const Observation& seen) {
    if (seen.error) return;
    if (caches_[clone.cache].pending) reach(Label::kClonedWithDataNotYetAdvanced);
    caches_.push_back(caches_[clone.cache]);
    caches_.back().reserved = 0;
  }
  void saw(const CloneFrom& clone, const Observation& seen) {
    if (!seen.error) caches_[clone.cache] = caches_[clone.source];
  }
  void saw(const Pinned& /*op*/, const Observation& seen) {
    if (!seen.error && seen.as<Pinned::Returns>().same.has_value())
      reach(Label::kPinnedAddressHeld);
  }
  template <OneOf<Keys, Values, Len, IsEmpty, NumLayers, Debug, Pin> T>
  void saw(const T& /*nothing to follow*/, const Observation& /*seen*/) {}

 private:
  void remember(Known known) {
    known.elements.assign(known.geometry.num_layers, 0);
    caches_.push_back(std::move(known));
  }
  std::uint64_t size(std::int64_t most) { return static_cast<std::uint64_t>(draw().size(0, most)); }
  std::uint64_t number() {
    return draw().percent(97) ? draw().below(caches_.size()) : caches_.size();
  }
  std::uint64_t layer(std::uint64_t cache) {
    const std::uint64_t layers = cache < caches_.size() ? caches_[cache].geometry.num_layers : 0;
    return layers > 0 && draw().percent(95) ? draw().below(layers) : layers + draw().below(2);
  }
  template <class T>
  Op of_layer() {
    const std::uint64_t cache = number();
    return Op::of(T{cache, layer(cache)});
  }
  Op row(std::uint64_t cache, std::uint64_t to, std::int64_t k, std::int64_t v) {
    constexpr std::int64_t kMostElements = kMostHeads * kMostDim;
    auto [keys, spare] = tagger_.pair({std::min(k, kMostElements)});
    auto [unused, values] = tagger_.pair({std::min(v, kMostElements)});
    odd_values_.put_into(keys.floats());
    odd_values_.put_into(values.floats());
    return Op::of(Append{cache, to, std::move(keys), std::move(values)});
  }

  bool documented_;
  Tagger tagger_;
  OddValues odd_values_;
  std::vector<Known> caches_;
};

GeneratedCase make_case(const CaseTerms& terms) {
  GeneratedCase made = script_case<VectorScript>(terms);
  if (terms.profile == Profile::kOriginal)
    made.setup.config = Record::of(
        Config{.build = Draw(~terms.seed).percent(50) ? Build::kDebug : Build::kRelease});
  return made;
}

}  // namespace

std::vector<Generator> generators() {
  return {script_generator<Label>(vector_kind(), make_case,
                                  {Label::kLayersOfUnequalLength, Label::kWrongLengthStored},
                                  {Label::kAdvanceRefused, Label::kSecondAppendOfATokenRefused})};
}

}  // namespace kvo::layered
