// How operations reach the caches of contract `snapshot`.
#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/snapshot/trie.hpp"

namespace kvo::snapshot {
namespace {

constexpr std::int64_t kMostNumbered = 1 << 16;

// Makes the cache of a case; `max_size` is that of the operation, if it says one.
using MakeCache = std::function<Result<std::unique_ptr<Cache>>(
    const Setup&, std::optional<std::int64_t> max_size, QuirkSet<Quirk>)>;

// Keys and values, or conv and delta, as operations show them; null where there is no buffer.
Nullable<std::vector<Nullable<Tensor>>> shown(const std::optional<State>& state) {
  if (!state) return std::nullopt;
  const auto one = [](const std::optional<Array>& array) -> Nullable<Tensor> {
    if (!array) return std::nullopt;
    return shown(*array);
  };
  return std::vector<Nullable<Tensor>>{one(state->first), one(state->second)};
}

Contents shown(const Content& content) {
  Contents out{
      .from = content.from, .to = content.to, .idx = content.idx, .offset = content.offset};
  out.size = bytes_of(content.first) + bytes_of(content.second);
  (content.offset ? out.conv : out.k) = shown(content.first);
  (content.offset ? out.delta : out.v) = shown(content.second);
  return out;
}

// A cache of all tokens. Errors  as can_store.
Result<std::unique_ptr<Cache>> make_kv(const MakeCaches& make, const StorageFormat& storage,
                                       QuirkSet<Quirk> quirks) {
  if (const Status can = can_store(make, storage); !can) return can.error();
  return make.kv(storage, quirks);
}

// A ring. Errors  as can_store; kOutOfRange: a window of no token, but for kAnyWindow.
Result<std::unique_ptr<Cache>> make_ring(const MakeCaches& make, std::int64_t window,
                                         const StorageFormat& storage, QuirkSet<Quirk> quirks) {
  if (const Status can = can_store(make, storage); !can) return can.error();
  if (window < 1 && !quirks.has(Quirk::kAnyWindow)) return fail(Code::kOutOfRange, "max_size");
  // One that is further below keeps no more; sums with it stay in 64 bits.
  constexpr std::int64_t kLeast = -(std::int64_t{1} << 60U);
  return make.rotating(std::max(window, kLeast), storage, quirks);
}

// Every second element of a wider array, as where keys and values lie by turns.
Array spread_out(const Tensor& tensor) {
  if (tensor.bytes.empty()) return array_of(tensor);
  Shape shape = tensor.shape;
  shape.push_back(2);
  Tensor wide = make_tensor(shape, tensor.dtype);
  const std::size_t size = dtype_bytes(tensor.dtype);
  for (std::size_t at = 0; at < tensor.bytes.size(); at += size)
    std::copy_n(tensor.bytes.begin() + static_cast<std::ptrdiff_t>(at), size,
                wide.bytes.begin() + static_cast<std::ptrdiff_t>(2 * at));
  Array array = array_of(std::move(wide));
  array.view.shape.pop_back();
  array.view.strides.pop_back();
  return array;
}

// A case with one cache, of the operations of its kind.
template <class Ops>
class CacheSession final : public DispatchSession<CacheSession<Ops>, Ops>, public ShownCase {
  using Base = DispatchSession<CacheSession, Ops>;
  using Base::probe;

 public:
  CacheSession(Setup setup, MakeCache make, QuirkSet<Quirk> quirks)
      : setup_(std::move(setup)), make_(std::move(make)), quirks_(quirks) {}

  /// A cache need not hold rows of every type, nor store them in every one.
  [[nodiscard]] Observation apply(const Op& op, Probe& given) override {
    if (!cache_ && op.as<New>() == nullptr) return {.error = fail(Code::kPrecondition, "no cache")};
    Observation seen = Base::apply(op, given);
    const bool takes_a_type = op.as<Update>() != nullptr || op.as<New>() != nullptr;
    seen.unsupported |= takes_a_type && seen.failed_with(Code::kNotSupported);
    return seen;
  }

  [[nodiscard]] const Cache* cache() const override { return cache_.get(); }
  [[nodiscard]] std::span<const SnapshotPtr> snapshots() const override { return snapshots_; }

  template <class T>
  [[nodiscard]] Result<Cache*> cache_of(const T& /*op*/) const {
    return cache_.get();
  }
  Status operator()(const New& op) {
    auto made = probe()([&] { return make_(setup_, op.max_size, quirks_); });
    if (!made) return made.error();
    cache_ = std::move(*made);
    return {};
  }
  Result<Update::Returns> operator()(const Update& op) {
    if (std::ssize(pairs_) == kMostNumbered) return too_many();
    if (!is_float(op.k) || !is_float(op.v)) return no_float();
    const bool spread = op.spread.value_or(false);
    const Array k = spread ? spread_out(op.k) : array_of(op.k);
    const Array v = spread ? spread_out(op.v) : array_of(op.v);
    auto seen = probe()([&] { return cache_->update(k, v); });
    if (!seen) return seen.error();
    Update::Returns returns{shown((*seen)->k), shown((*seen)->v)};
    if (op.keep.value_or(false)) {
      pairs_.push_back(std::move(*seen));
      returns.handle = std::ssize(pairs_);
    }
    return returns;
  }
  Result<ShowState::Returns> operator()(const ShowState& /*op*/) {
    const auto state = probe()([&] { return cache_->state(); });
    return ShowState::Returns{shown(state)};
  }
  Result<Numbered> operator()(const Take& op) {
    auto taken = probe()([&] { return cache_->snapshot(op.from); });
    if (!taken) return taken.error();
    return number(*taken);
  }
  Result<Restore::Returns> operator()(const Restore& op) {
    const auto snapshot = find(op.handle);
    if (!snapshot) return snapshot.error();
    const auto done = probe()([&] { return cache_->restore(*snapshot, op.target); });
    if (!done) return done.error();
    return Restore::Returns{*done, cache_->offset()};
  }
  Result<Numbered> operator()(const Merge& op) {
    const auto parent = find(op.parent);
    if (!parent) return parent.error();
    const auto child = find(op.child);
    if (!child) return child.error();
    auto merged = probe()([&] { return cache_->merge(*parent, *child); });
    if (!merged) return merged.error();
    return number(*merged);
  }
  Result<Split::Returns> operator()(const Split& op) {
    const auto snapshot = find(op.handle);
    if (!snapshot) return snapshot.error();
    auto halves = probe()([&] { return cache_->split(*snapshot, op.at); });
    if (!halves) return halves.error();
    Split::Returns returns;
    if (halves->first) returns.parent = number(halves->first);
    if (halves->second) returns.child = number(halves->second);
    return returns;
  }
  Status operator()(const Close& op) {
    const auto snapshot = find(op.handle);
    if (!snapshot) return snapshot.error();
    return probe()([&] { return (*snapshot)->close(); });
  }
  Result<Contents> operator()(const Reread& op) {
    if (snapshots_.empty()) {
      if (op.handle < 1 || op.handle > std::ssize(pairs_)) return no_handle(op.handle);
      const Pair& pair = *pairs_[static_cast<std::size_t>(op.handle - 1)];
      return Contents{.k = shown(pair.k), .v = shown(pair.v)};
    }
    const auto snapshot = find(op.handle);
    if (!snapshot) return snapshot.error();
    if ((*snapshot)->closed()) return closed_error(quirks_);
    return shown(probe()([&] { return (*snapshot)->content(); }));
  }

  // Of states.
  Result<ConvState::Returns> operator()(const ConvState& op) {
    return part_of_state(op, &StateCache::conv_state);
  }
  Result<DeltaState::Returns> operator()(const DeltaState& op) {
    return part_of_state(op, &StateCache::delta_state);
  }
  Status operator()(const SetConvState& op) { return put(op.v, &StateCache::set_conv_state); }
  Status operator()(const SetDeltaState& op) { return put(op.v, &StateCache::set_delta_state); }
  Result<Offset::Returns> operator()(const Advance& op) {
    const Status done = probe()([&] { return state().advance(op.n); });
    if (!done) return done.error();
    return Offset::Returns{cache_->offset()};
  }

 private:
  [[nodiscard]] static Error too_many() {
    return fail(Code::kPrecondition, "too many handles in a case");
  }
  [[nodiscard]] static Error no_handle(std::int64_t number) {
    return fail(Code::kPrecondition, "no handle " + std::to_string(number));
  }
  /// Whether its elements are of a type that caches hold.
  [[nodiscard]] static bool is_float(const Tensor& tensor) { return tensor.dtype != DType::kI32; }
  [[nodiscard]] static Error no_float() { return fail(Code::kPrecondition, "dtype"); }
  [[nodiscard]] Result<SnapshotPtr> find(const Nullable<std::int64_t>& number) const {
    if (!number.has_value()) return SnapshotPtr();
    if (*number < 1 || *number > std::ssize(snapshots_)) return no_handle(*number);
    return snapshots_[static_cast<std::size_t>(*number - 1)];
  }
  // The same object keeps its number.
  Numbered number(const SnapshotPtr& snapshot) {
    if (snapshot == nullptr) return {};
    auto known = std::ranges::find(snapshots_, snapshot);
    if (known == snapshots_.end()) known = snapshots_.insert(snapshots_.end(), snapshot);
    return {known - snapshots_.begin() + 1, shown(snapshot->content())};
  }
  // A recurrent case makes no other caches.
  [[nodiscard]] StateCache& state() { return static_cast<StateCache&>(*cache_); }
  template <class Question>
  Result<typename Question::Returns> part_of_state(const Question& op,
                                                   Result<Array> (StateCache::*part)(std::int64_t,
                                                                                     DType)) {
    if (in_groups(op.dtype)) return no_float();
    const auto seen = probe()([&] { return (state().*part)(op.batch, dtype_of(op.dtype)); });
    if (!seen) return seen.error();
    return typename Question::Returns{materialize(seen->view)};
  }
  Status put(const Nullable<Tensor>& part, Status (StateCache::*set)(const Array&)) {
    if (!part.has_value()) return {};
    if (!is_float(*part)) return no_float();
    const Array array = array_of(*part);
    return probe()([&] { return (state().*set)(array); });
  }

  Setup setup_;
  MakeCache make_;
  QuirkSet<Quirk> quirks_;
  std::unique_ptr<Cache> cache_ = nullptr;
  std::vector<SnapshotPtr> snapshots_ = {};
  std::vector<std::shared_ptr<const Pair>> pairs_ = {};
};

using Q = Quirk;
constexpr std::array kKvQuirks =
    rows_of(kQuirkRows, std::array{Q::kMisfitIsSilent, Q::kSecondCloseAborts, Q::kTypeWidens,
                                   Q::kNothingMakesABuffer, Q::kRestoresBelowFrom,
                                   Q::kMergeLosesOneSide, Q::kMergeUnchecked});
constexpr std::array kRotatingQuirks =
    rows_of(kQuirkRows, std::array{Q::kMisfitIsSilent, Q::kSecondCloseAborts, Q::kChunkDropsOlder,
                                   Q::kShortRing, Q::kNothingMovesTheRing, Q::kLiveChunk,
                                   Q::kForeignWindow, Q::kAnyWindow, Q::kMergeDestroysParent});
constexpr std::array kRecurrentQuirks = rows_of(
    kQuirkRows, std::array{Q::kSecondCloseAborts, Q::kSharedReference, Q::kMergeDestroysParent,
                           Q::kStateIsWiped, Q::kStateUnchecked, Q::kAdvancesBackwards});

// A subject whose session is a TheSession of (setup, made..., quirks).
template <class TheSession, class... Made>
Subject subject(const CacheKind& kind, const std::string& variant, const std::string& doc,
                const Made&... made) {
  return {.kind = &kind,
          .variant = variant,
          .doc = doc,
          .open = [=](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
            if (!quirks) return quirks.error();
            return std::make_unique<TheSession>(setup, made..., *quirks);
          }};
}

}  // namespace

namespace {

// Pairs of the rows of K and V, in an order that does not depend on their places; each of the
// batch and each head by itself. Tensors that do not fit each other stay as they are.
void sort_rows(Tensor& k, Tensor& v) {
  if (k.shape.size() != 4 || v.shape.size() != 4 ||
      !std::equal(k.shape.begin(), k.shape.end() - 1, v.shape.begin()))
    return;
  const auto rows = static_cast<std::size_t>(k.shape[2]);
  const std::size_t all = rows * static_cast<std::size_t>(k.shape[0] * k.shape[1]);
  if (all == 0) return;
  const std::array<std::size_t, 2> bytes{k.bytes.size() / all, v.bytes.size() / all};
  for (std::size_t begin = 0; begin < all; begin += rows) {
    std::vector<std::vector<std::byte>> pairs;
    for (std::size_t row = begin; row < begin + rows; ++row) {
      std::vector<std::byte>& pair = pairs.emplace_back();
      for (const auto& [tensor, size] : {std::pair(&k, bytes[0]), std::pair(&v, bytes[1])})
        pair.insert(pair.end(), tensor->bytes.begin() + std::ptrdiff_t(row * size),
                    tensor->bytes.begin() + std::ptrdiff_t((row + 1) * size));
    }
    std::ranges::sort(pairs);
    for (std::size_t row = begin; row < begin + rows; ++row) {
      const std::vector<std::byte>& pair = pairs[row - begin];
      std::copy_n(pair.begin(), bytes[0], k.bytes.begin() + std::ptrdiff_t(row * bytes[0]));
      std::copy_n(pair.begin() + std::ptrdiff_t(bytes[0]), bytes[1],
                  v.bytes.begin() + std::ptrdiff_t(row * bytes[1]));
    }
  }
}

void sort_rows(Contents& shown) {
  shown.idx.reset();
  if (shown.k && shown.v) sort_rows(*shown.k, *shown.v);
}

Observation without_row_order(const Op& op, const Observation& seen) {
  const auto sorted = [&](auto returns, const auto& sort) {
    sort(returns);
    return Observation{.returns = Record::of(std::move(returns))};
  };
  if (op.as<Update>() != nullptr)
    return sorted(seen.as<UpdateReturns>(), [](UpdateReturns& one) { sort_rows(one.k, one.v); });
  if (op.as<ShowState>() != nullptr)
    return sorted(seen.as<ShowStateReturns>(), [](ShowStateReturns& one) {
      if (!one.state.value || one.state.value->size() != 2) return;
      std::optional<Tensor>& k = one.state.value->front().value;
      std::optional<Tensor>& v = one.state.value->back().value;
      if (k && v) sort_rows(*k, *v);
    });
  if (op.as<Split>() != nullptr)
    return sorted(seen.as<SplitReturns>(), [](SplitReturns& one) {
      for (Nullable<Numbered>* part : {&one.parent, &one.child})
        if (part->value) sort_rows(part->value->shown);
    });
  if (op.as<Take>() != nullptr || op.as<Merge>() != nullptr)
    return sorted(seen.as<Numbered>(), [](Numbered& one) { sort_rows(one.shown); });
  if (op.as<Reread>() != nullptr)
    return sorted(seen.as<Contents>(), [](Contents& one) { sort_rows(one); });
  return seen;
}

// What comes of rows of another type than those before. Only a difference at that update counts: a
// later one may be a fault.
class OneType final : public Relation {
 public:
  [[nodiscard]] Observation settled(const Op& op, const Observation& /*want*/,
                                    Observation got) override {
    const auto* update = op.as<Update>();
    mixes_ = update != nullptr && (update->k.dtype != type_.value_or(update->k.dtype) ||
                                   update->v.dtype != update->k.dtype);
    if (update != nullptr) type_ = update->k.dtype;
    return got;
  }
  [[nodiscard]] bool ends(const Op& /*op*/, const Observation& want,
                          const Observation& got) const override {
    return mixes_ && observation_difference(want, got).has_value();
  }

 private:
  std::optional<DType> type_;
  bool mixes_ = false;
};

constexpr ConventionInfo kOneType{
    .name = "rows_of_one_type",
    .rules = "MR-A4, MR-22",
    .sentence =
        "promises nothing for an update with rows of another type than before: the case "
        "ends there",
    .relation = [](const CacheKind& /*kind*/, const Setup& /*setup*/) -> std::unique_ptr<Relation> {
      return std::make_unique<OneType>();
    }};

constexpr std::array<ConventionInfo, 1> kKvConventions{{kOneType}};
constexpr std::array<ConventionInfo, 2> kRotatingConventions{
    {{.name = "rows_in_any_order",
      .rules = "MR-20, MR-21, MR-22, MR-25",
      .sentence = "shows the rows of a ring in an order of its own, K and V alike",
      .relation = CanonicalRelation<without_row_order>::make},
     kOneType}};

}  // namespace

const CacheKind& kv_kind() {
  static const CacheKind kKind{.contract = "snapshot",
                               .cache = "kv",
                               .doc = "all tokens of a layer (mlxrunner's KVCache)",
                               .operations = op_kinds(RowsOps()),
                               .config = &type_of<RowsConfig>(),
                               .quirks = kKvQuirks,
                               .conventions = kKvConventions};
  return kKind;
}

const CacheKind& rotating_kind() {
  static const CacheKind kKind{.contract = "snapshot",
                               .cache = "rotating",
                               .doc = "the newest tokens in a ring (mlxrunner's RotatingKVCache)",
                               .operations = op_kinds(RowsOps()),
                               .config = &type_of<RowsConfig>(),
                               .quirks = kRotatingQuirks,
                               .conventions = kRotatingConventions};
  return kKind;
}

const CacheKind& recurrent_kind() {
  static const CacheKind kKind{.contract = "snapshot",
                               .cache = "recurrent",
                               .doc = "a state of fixed size (mlxrunner's RecurrentCache)",
                               .operations = op_kinds(RecurrentOps()),
                               .config = &type_of<RecurrentConfig>(),
                               .quirks = kRecurrentQuirks};
  return kKind;
}

std::vector<Subject> make_subjects(const std::string& variant, const std::string& doc,
                                   const MakeCaches& make) {
  using MaxSize = std::optional<std::int64_t>;
  const auto kv = [make](const Setup& setup, MaxSize /*max_size*/, QuirkSet<Quirk> quirks) {
    return make_kv(make, setup.config_as<RowsConfig>().rows.format(), quirks);
  };
  const auto ring = [make](const Setup& setup, MaxSize max_size, QuirkSet<Quirk> quirks) {
    const auto config = setup.config_as<RowsConfig>();
    if (!max_size) max_size = config.max_size.value_or(0);
    return make_ring(make, *max_size, config.rows.format(), quirks);
  };
  const auto state = [make](const Setup& setup, MaxSize /*max_size*/, QuirkSet<Quirk> quirks) {
    return make.recurrent(setup.config_as<RecurrentConfig>().sizes, quirks);
  };
  std::vector<Subject> all{subject<CacheSession<RowsOps>>(kv_kind(), variant, doc, kv),
                           subject<CacheSession<RowsOps>>(rotating_kind(), variant, doc, ring)};
  if (make.recurrent)
    all.push_back(subject<CacheSession<RecurrentOps>>(recurrent_kind(), variant, doc, state));
  return all;
}

// ---- the trie ----

namespace {

constexpr std::size_t kMostLayers = 1024;
// What the model makes of a recurrent layer.
constexpr StateSizes kStateSizes{2, 1, 1, 1, 2};

// "rotating:4" is a ring of 4 tokens.
Result<std::unique_ptr<Cache>> layer_of(const std::string& word, const MakeCaches& make,
                                        const StorageFormat& storage, QuirkSet<Quirk> quirks) {
  constexpr std::string_view kRing = "rotating:";
  if (word == "none") return std::unique_ptr<Cache>();
  if (word == "kv") return make_kv(make, storage, quirks);
  if (word == "recurrent") return std::unique_ptr<Cache>(make.recurrent(kStateSizes, quirks));
  std::int64_t window = 0;
  const char* end = word.data() + word.size();
  if (!word.starts_with(kRing) ||
      std::from_chars(word.data() + kRing.size(), end, window).ptr != end ||
      word.size() == kRing.size())
    return fail(Code::kNotSupported, "layer " + word);
  return make_ring(make, window, storage, quirks);
}

Array values(const Shape& shape, const std::vector<float>& numbers) {
  return array_of(tensor_of(shape, numbers));
}

// The model's rows: keys are tokens, values positions from `first` on.
std::pair<Array, Array> rows(const Tokens& tokens, std::int64_t first) {
  std::vector<float> k(tokens.begin(), tokens.end());
  std::vector<float> v;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    v.push_back(static_cast<float>(first + static_cast<std::int64_t>(i) + 1));
  const Shape shape{1, 1, std::ssize(tokens), 1};
  return {values(shape, k), values(shape, v)};
}

// What the model makes of a recurrent state: the last two tokens, their sum and number.
Status feed_state(StateCache& layer, const Tokens& tokens) {
  const auto conv = layer.conv_state(1, DType::kF32);
  if (!conv) return conv.error();
  const auto delta = layer.delta_state(1, DType::kF32);
  if (!delta) return delta.error();
  const Tensor last = materialize(conv->view);
  const Tensor sums = materialize(delta->view);
  std::array<float, 2> tail{last.floats()[0], last.floats()[1]};
  std::array<float, 2> sum{sums.floats()[0], sums.floats()[1]};
  for (const std::int32_t token : tokens) {
    tail = {tail[1], static_cast<float>(token)};
    sum = {sum[0] + static_cast<float>(token), sum[1] + 1};
  }
  if (Status done = layer.set_conv_state(values({1, 2, 1}, {tail[0], tail[1]})); !done) return done;
  if (Status done = layer.set_delta_state(values({1, 1, 1, 2}, {sum[0], sum[1]})); !done)
    return done;
  return layer.advance(std::ssize(tokens));
}

class TrieSession final : public DispatchSession<TrieSession, TrieOps> {
 public:
  TrieSession(const Setup& setup, MakeCaches make, MakeTrie make_trie, QuirkSet<Quirk> quirks)
      : config_(setup.config_as<TrieConfig>()),
        make_(std::move(make)),
        make_trie_(std::move(make_trie)),
        quirks_(quirks) {}

  template <class T>
  [[nodiscard]] Result<PrefixTrie*> cache_of(const T& /*op*/) const {
    if (!trie_) return no_trie();
    return trie_.get();
  }
  Status operator()(const NewTrie& /*op*/) {
    if (config_.layers.size() > kMostLayers) return fail(Code::kPrecondition, "layers");
    const StorageFormat storage = config_.rows.format();
    if (const Status can = can_store(make_, storage); !can) return can.error();
    Layers layers;
    for (const std::string& word : config_.layers) {
      auto layer = probe()([&] { return layer_of(word, make_, storage, quirks_); });
      if (!layer) return layer.error();
      layers.push_back(std::move(*layer));
    }
    trie_ = probe()([&] { return make_trie_(std::move(layers), config_.limit_bytes, quirks_); });
    return {};
  }
  template <OneOf<Begin, CloseSession> T>
  Result<typename T::Returns> operator()(const T& op) {
    auto done = call_method(op);
    if (done) done->offsets = offsets();
    return done;
  }
  Result<OffsetsOnly> operator()(const Feed& op) {
    if (!trie_) return no_trie();
    for (const auto& layer : trie_->layers()) {
      if (!layer) continue;
      if (auto* state = dynamic_cast<StateCache*>(layer.get())) {
        if (const Status done = probe()([&] { return feed_state(*state, op.tokens); }); !done)
          return done.error();
        continue;
      }
      const auto made = rows(op.tokens, layer->offset());
      const auto done = probe()([&] { return layer->update(made.first, made.second); });
      if (!done) return done.error();
    }
    return OffsetsOnly{offsets()};
  }
  Result<LayerStates::Returns> operator()(const LayerStates& /*op*/) {
    if (!trie_) return no_trie();
    LayerStates::Returns returns;
    for (const auto& layer : trie_->layers()) {
      auto& state = returns.layers.emplace_back(std::nullopt);
      if (layer) state = LayerState{layer->offset(), shown(layer->state())};
    }
    return returns;
  }
  Result<Tree::Returns> operator()(const Tree& /*op*/) {
    if (!trie_) return no_trie();
    TreeView view = probe()([&] { return trie_->tree(); });
    for (std::size_t at = 0; at < view.snapshots.size(); ++at)
      view.shown.nodes[at].snapshots = contents(view.snapshots[at]);
    return std::move(view.shown);
  }

 private:
  [[nodiscard]] static Error no_trie() { return fail(Code::kPrecondition, "no trie"); }
  [[nodiscard]] Offsets offsets() const {
    Offsets all;
    for (const auto& layer : trie_->layers())
      all.push_back(layer ? Nullable(layer->offset()) : std::nullopt);
    return all;
  }
  static Nullable<std::vector<Nullable<Contents>>> contents(
      const std::optional<std::vector<SnapshotPtr>>& snapshots) {
    if (!snapshots) return std::nullopt;
    std::vector<Nullable<Contents>> all;
    for (const SnapshotPtr& one : *snapshots)
      all.push_back(one ? Nullable(shown(one->content())) : std::nullopt);
    return all;
  }

  TrieConfig config_;
  MakeCaches make_;
  MakeTrie make_trie_;
  QuirkSet<Quirk> quirks_;
  std::unique_ptr<PrefixTrie> trie_ = nullptr;
};

}  // namespace

const CacheKind& trie_kind() {
  static const CacheKind kKind{.contract = "snapshot",
                               .cache = "trie",
                               .doc = "prefixes of a group of layers (mlxrunner's prefix trie)",
                               .operations = op_kinds(TrieOps()),
                               .config = &type_of<TrieConfig>(),
                               .quirks = kQuirkRows,
                               .repeatable = false};
  return kKind;
}

Subject make_trie_subject(const std::string& variant, const std::string& doc,
                          const MakeCaches& make, const MakeTrie& make_trie) {
  return subject<TrieSession>(trie_kind(), variant, doc, make, make_trie);
}

}  // namespace kvo::snapshot

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_SNAPSHOT_OPERATIONS, KVO_SNAPSHOT_STATE_OPERATIONS)
KVO_DEFINE_OPERATIONS(KVO_SNAPSHOT_TRIE_OPERATIONS)
}  // namespace kvo
