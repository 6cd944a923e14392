// How operations reach the caches of contract `mlx_lm`.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "reference/contract/subject/named_quirks.hpp"
#include "reference/mlx_lm/operations.hpp"

namespace kvo::mlx_lm {
namespace {

constexpr std::size_t kMostPairs = 1 << 12;
constexpr std::int64_t kMostTokens = 1 << 10;
constexpr std::int64_t kMostStep = 1 << 12;
constexpr std::int64_t kMostSize = 1 << 12;
constexpr std::int64_t kWindowOfStore = 4;

Error out_of_range(const char* name) {
  return fail(Code::kPrecondition, name);
}

// Errors  kPrecondition: a size that no cache is made with.
Result<Options> options_of(const Config& config, const New& op) {
  Options options{.kind = op.kind,
                  .step = config.step,
                  .max_size = op.max_size.value_or(config.max_size),
                  .keep = op.keep.value_or(config.keep),
                  .chunk_size = config.chunk_size,
                  .group_size = config.group_size,
                  .bits = op.bits.value_or(config.bits),
                  .size = config.size,
                  .left_padding = {}};
  if (op.left_padding)
    options.left_padding = *op.left_padding;
  else if (config.left_padding)
    options.left_padding = *config.left_padding;
  if (options.step < 1 || options.step > kMostStep) return out_of_range("step");
  if (options.max_size < 0 || options.max_size > Columns::kMost) return out_of_range("max_size");
  if (options.keep < 0 || options.keep > Columns::kMost) return out_of_range("keep");
  if (options.chunk_size < 0 || options.chunk_size > Columns::kMost)
    return out_of_range("chunk_size");
  if (options.size < 0 || options.size > kMostSize) return out_of_range("size");
  if (std::ssize(options.left_padding) > kMostSize ||
      (options.left_padding.empty() && options.kind.starts_with("batch")))
    return out_of_range("left_padding");
  for (const std::int64_t padding : options.left_padding)
    if (padding < 0 || padding > Columns::kMost) return out_of_range("left_padding");
  return options;
}

struct Numbered {
  CachePtr cache;
  Cache* operator->() const { return cache.get(); }
};

class CachesSession final : public DispatchSession<CachesSession, Ops>, public CachesOfCase {
 public:
  CachesSession(Config config, MakeCache make, QuirkSet<Quirk> quirks)
      : config_(std::move(config)), make_(std::move(make)), quirks_(quirks) {}

  [[nodiscard]] std::int64_t caches() const override { return std::ssize(entries_); }
  [[nodiscard]] const Cache& cache(std::int64_t number) const override {
    return *entries_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] std::int64_t pairs() const override { return std::ssize(pairs_); }

  // A subject need not offer every kind.
  Observation apply(const Op& op, Probe& probe) override {
    Observation seen = DispatchSession::apply(op, probe);
    seen.unsupported |= op.as<New>() != nullptr && seen.failed_with(Code::kNotSupported);
    return seen;
  }
  template <class T>
  [[nodiscard]] Result<Cache*> cache_of(const T& op) const {
    return find(op.cache);
  }
  Result<CacheMade> operator()(const New& op) {
    const auto options = options_of(config_, op);
    if (!options) return options.error();
    return add<CacheMade>([&] { return make_(*options, quirks_); });
  }
  Result<StateReturns> operator()(const ShowState& op) {
    const auto cache = find(op.cache);
    if (!cache) return cache.error();
    return StateReturns{probe()([&] { return (*cache)->state(); })};
  }
  Result<UpdateReturns> operator()(const Update& op) {
    const auto cache = find(op.cache);
    if (!cache) return cache.error();
    for (const Tensor* side : {&op.k, &op.v})
      if (side->shape.size() != kAxes || is_whole(side->dtype))
        return fail(Code::kPrecondition, "rows are numbers with a fraction, of four axes");
    const bool keep = op.keep.value_or(false);
    if (keep && pairs_.size() + 2 > kMostPairs)
      return fail(Code::kPrecondition, "too many pairs in a case");
    const Array k = array_of(op.k);
    const Array v = array_of(op.v);
    const auto seen = probe()([&] { return (*cache)->update(k, v); });
    if (!seen) return seen.error();
    UpdateReturns returns{seen->k.shown(), seen->v.shown()};
    if (keep) {
      pairs_.push_back({held(seen->k), held(seen->v)});
      returns.handle = std::ssize(pairs_);
      pairs_.push_back({{{k}}, {{v}}});
      returns.input_handle = std::ssize(pairs_);
    }
    return returns;
  }
  Result<RowsShown> operator()(const KeysAndValues& op) {
    const auto cache = find(op.cache);
    if (!cache) return cache.error();
    const auto seen = probe()([&] { return (*cache)->keys_and_values(); });
    if (!seen) return seen.error();
    return RowsShown{seen->k.shown(), seen->v.shown()};
  }
  Result<RowsShown> operator()(const Reread& op) {
    if (op.handle < 1 || op.handle > std::ssize(pairs_))
      return fail(Code::kPrecondition, "no handle " + std::to_string(op.handle));
    const Pair& pair = pairs_[static_cast<std::size_t>(op.handle - 1)];
    return RowsShown{pair.k.shown(), pair.v.shown()};
  }
  Result<MaskReturns> operator()(const MakeMask& op) {
    const auto cache = find(op.cache);
    if (!cache) return cache.error();
    auto mask =
        probe()([&] { return (*cache)->make_mask(op.N, op.window_size.value, op.return_array); });
    if (!mask) return mask.error();
    return MaskReturns{*std::move(mask)};
  }
  Result<CacheMade> operator()(const Copy& op) {
    const auto cache = find(op.cache);
    if (!cache) return cache.error();
    return add<CacheMade>([&] { return Result<CachePtr>((*cache)->copy(op.deep)); });
  }
  Result<CacheMade> operator()(const FromState& op) {
    const auto cache = find(op.cache);
    if (!cache) return cache.error();
    return add<CacheMade>([&] { return (*cache)->from_state(); });
  }
  Result<KindMade> operator()(const Merge& op) {
    std::vector<const Cache*> all;
    if (op.caches.empty() || op.caches.size() > kMostPairs)
      return fail(Code::kPrecondition, "caches");
    for (const std::int64_t number : op.caches) {
      const auto cache = find(number);
      if (!cache) return cache.error();
      all.push_back(*cache);
    }
    return add<KindMade>([&] { return all.front()->merge(all); });
  }
  Result<KindMade> operator()(const Extract& op) {
    const auto cache = find(op.cache);
    if (!cache) return cache.error();
    return add<KindMade>([&] { return (*cache)->extract(op.idx); });
  }
  Result<CacheMade> operator()(const ToQuantized& op) {
    const auto cache = find(op.cache);
    if (!cache) return cache.error();
    return add<CacheMade>([&] { return (*cache)->to_quantized(op.group_size, op.bits); });
  }
  Result<DequantizedReturns> operator()(const Dequantized& op) {
    const auto cache = find(op.cache);
    if (!cache) return cache.error();
    auto rows = probe()([&] { return (*cache)->dequantized(); });
    if (!rows) return rows.error();
    return DequantizedReturns{std::move(rows->at(0)), std::move(rows->at(1))};
  }
  Result<FrontReturns> operator()(const MaybeTrimFront& op) {
    const auto cache = find(op.cache);
    if (!cache) return cache.error();
    const auto seen = probe()([&] { return (*cache)->maybe_trim_front(); });
    if (!seen) return seen.error();
    return FrontReturns{seen->at(0), seen->at(1)};
  }
  Status operator()(const Extend& op) {
    const auto cache = find(op.cache);
    if (!cache) return cache.error();
    const auto other = find(op.other);
    if (!other) return other.error();
    return probe()([&] { return (*cache)->extend(**other); });
  }
  Status operator()(const Prepare& op) {
    const auto cache = find(op.cache);
    if (!cache) return cache.error();
    for (const auto* list : {&op.left_padding, &op.lengths, &op.right_padding})
      if (*list && (*list)->empty()) return out_of_range("a list without numbers");
    return probe()(
        [&] { return (*cache)->prepare(op.left_padding, op.lengths, op.right_padding); });
  }
  Status operator()(const Set& op) {
    const auto cache = find(op.cache);
    if (!cache) return cache.error();
    const Array array = array_of(op.v);
    return probe()([&] { return (*cache)->set(op.idx, array); });
  }

 private:
  [[nodiscard]] Result<Cache*> find(std::int64_t number) const {
    if (number < 0 || number >= std::ssize(entries_)) return NumberedCaches<Numbered>::none(number);
    return entries_[static_cast<std::size_t>(number)].get();
  }
  // Numbers what `made()` makes.
  template <class Made, class Make>
  Result<Made> add(const Make& make) {
    if (!NumberedCaches<Numbered>::may_have(std::ssize(entries_)))
      return fail(Code::kPrecondition, "too many caches in a case");
    auto cache = probe()(make);
    if (!cache) return cache.error();
    Made made{.cache = std::ssize(entries_)};
    if constexpr (requires { made.kind; }) made.kind = (*cache)->kind();
    entries_.push_back(std::move(*cache));
    return made;
  }
  // What a caller holds: the objects, or copies.
  static Side held(const Side& side) {
    if (!side.count) return side;
    Side copy;
    for (const Array& array : side.arrays)
      copy.arrays.push_back(array_of(sliced(*array, 0, *side.count)));
    return copy;
  }

  Config config_;
  MakeCache make_;
  QuirkSet<Quirk> quirks_;
  std::vector<CachePtr> entries_ = {};
  std::vector<Pair> pairs_ = {};
};

class StoreSession final : public DispatchSession<StoreSession, StoreOps> {
 public:
  StoreSession(const StoreConfig& config, MakeCache make, MakePromptStore make_store,
               QuirkSet<Quirk> quirks)
      : step_(config.step),
        make_(std::move(make)),
        make_store_(std::move(make_store)),
        quirks_(quirks) {}

  template <class T>
  [[nodiscard]] Result<PromptStore*> cache_of(const T& /*op*/) const {
    if (!store_) return fail(Code::kPrecondition, "no store");
    return store_.get();
  }
  Status operator()(const NewStore& op) {
    if (op.kind != "prompt-lru" || op.max_size < 0 || op.max_bytes.value.value_or(0) < 0)
      return fail(Code::kPrecondition, "kind, max_size, max_bytes");
    store_ = probe()([&] { return make_store_(op.max_size, op.max_bytes.value, quirks_); });
    return {};
  }
  Result<FetchReturns> operator()(const Fetch& op) {
    const auto store = cache_of(op);
    if (!store) return store.error();
    Found found = probe()([&] { return (*store)->fetch(op.tokens); });
    FetchReturns returns{.rest = std::move(found.rest)};
    if (!found.cache) return returns;
    if (const auto rows = found.cache->keys_and_values()) {
      returns.k = std::get<Tensor>(rows->k.shown().held);
      const auto offset = found.cache->offset();
      returns.offset = std::get<std::int64_t>(offset->held);
    } else {
      returns.k = std::get<Tensor>(std::get<Value::List>(found.cache->state()[0].held)[0].held);
    }
    return returns;
  }
  Result<TotalsShown> operator()(const Insert& op) {
    const auto store = cache_of(op);
    if (!store) return store.error();
    if (std::ssize(op.tokens) > kMostTokens) return fail(Code::kPrecondition, "tokens");
    auto cache = probe()([&] { return filled(op.kind, op.tokens); });
    if (!cache) return cache.error();
    const auto totals =
        probe()([&] { return (*store)->insert(op.tokens, std::move(*cache), op.cache_type); });
    if (!totals) return totals.error();
    return TotalsShown{totals->len, totals->nbytes};
  }

 private:
  // A cache of that kind which holds the tokens.
  Result<CachePtr> filled(const std::string& kind, const TokenList& tokens) {
    if (kind != "kv" && kind != "rotating" && kind != "chunked" && kind != "arrays")
      return fail(Code::kPrecondition, "kind");
    if (step_ < 1 || step_ > kMostStep) return out_of_range("step");
    auto cache = make_({.kind = kind,
                        .step = step_,
                        .max_size = kWindowOfStore,
                        .chunk_size = kWindowOfStore,
                        .size = 1},
                       quirks_);
    if (!cache) return cache;
    std::vector<float> numbers(tokens.begin(), tokens.end());
    const Tensor rows = tensor_of({1, 1, std::ssize(tokens), 1}, numbers);
    Status done = Status();
    if (kind == "arrays") {
      done = (*cache)->set(0, array_of(rows));
    } else if (const auto seen = (*cache)->update(array_of(rows), array_of(rows)); !seen) {
      done = seen.error();
    }
    if (done && kind == "chunked") (void)(*cache)->maybe_trim_front();
    if (!done) return done.error();
    return cache;
  }

  std::int64_t step_;
  MakeCache make_;
  MakePromptStore make_store_;
  QuirkSet<Quirk> quirks_;
  std::unique_ptr<PromptStore> store_ = nullptr;
};

// Kinds with a batch have the quirks of single caches, too: a case has caches of several kinds.
const std::vector<CacheKind>& all_kinds() {
  static const std::vector<CacheKind> kKinds = [] {
    std::vector<CacheKind> all;
    const auto add = [&](std::string_view cache, std::string_view doc) {
      all.push_back({.contract = "mlx_lm",
                     .cache = cache,
                     .doc = doc,
                     .operations = op_kinds(Ops()),
                     .config = &type_of<Config>(),
                     .quirks = kQuirkRows});
    };
    add("kv", "all tokens of a sequence (mlx-lm's KVCache)");
    add("concatenate", "the same without spare slots (ConcatenateKVCache)");
    add("rotating", "a ring of the newest tokens after the first ones (RotatingKVCache)");
    add("chunked", "the newest chunk of tokens (ChunkedKVCache)");
    add("quantized", "all tokens, in groups of few bits (QuantizedKVCache)");
    add("batch_kv", "several sequences, padded at the left (BatchKVCache)");
    add("batch_rotating", "a ring of several sequences (BatchRotatingKVCache)");
    add("arrays", "states of a layer without keys (ArraysCache)");
    all.push_back({.contract = "mlx_lm",
                   .cache = "prompt_lru",
                   .doc = "caches of earlier prompts (LRUPromptCache)",
                   .operations = op_kinds(StoreOps()),
                   .config = &type_of<StoreConfig>(),
                   .quirks = kQuirkRows});
    return all;
  }();
  return kKinds;
}

}  // namespace

std::vector<const CacheKind*> kinds() {
  std::vector<const CacheKind*> all;
  for (const CacheKind& kind : all_kinds()) all.push_back(&kind);
  return all;
}

const CacheKind& kind_of(std::string_view cache) {
  return *std::ranges::find(all_kinds(), cache, &CacheKind::cache);
}

std::vector<Subject> make_subjects(const std::string& variant, const std::string& doc,
                                   const MakeCache& make, const MakePromptStore& make_store) {
  std::vector<Subject> all;
  for (const CacheKind& kind : all_kinds()) {
    const bool is_store = kind.cache == "prompt_lru";
    all.push_back(subject_of<Quirk>(
        kind, variant, doc,
        [=](const Setup& setup, QuirkSet<Quirk> quirks) -> Result<std::unique_ptr<Session>> {
          if (is_store)
            return std::make_unique<StoreSession>(setup.config_as<StoreConfig>(), make, make_store,
                                                  quirks);
          return std::make_unique<CachesSession>(setup.config_as<Config>(), make, quirks);
        },
        kQuirkRows));
  }
  return all;
}

}  // namespace kvo::mlx_lm

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_MLX_LM_OPERATIONS)
KVO_DEFINE_OPERATIONS(KVO_MLX_LM_STORE_OPERATIONS)
}  // namespace kvo
