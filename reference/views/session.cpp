// How operations of `views.paged` reach a cache, and what of its answers can be compared.
#include <algorithm>
#include <utility>

#include "reference/contract/values/check.hpp"
#include "reference/contract/values/strided_view.hpp"
#include "reference/views/operations.hpp"

namespace kvo::views {
namespace {

constexpr std::size_t kMostNumbered = 1 << 16;

class PagedSession final : public DispatchSession<PagedSession, Ops>, public CachesOfCase {
 public:
  PagedSession(MakePool make, Options options, bool robustness)
      : make_(std::move(make)), options_(std::move(options)), robustness_(robustness) {}

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    if (pool)
      if (auto broken = pool->broken_invariant()) return broken;
    return caches.broken_invariant();
  }

  // A cache whose memory does not know the storage type says nothing about the rules.
  Observation apply(const Op& op, Probe& probe) override {
    Observation seen = DispatchSession::apply(op, probe);
    seen.unsupported |= op.as<New>() != nullptr && seen.failed_with(Code::kNotSupported);
    return seen;
  }
  template <class T>
  Result<Cache*> cache_of(const T& op) {
    Followed* const cache = find(op.cache);
    if (cache == nullptr) return none(op.cache);
    return cache->cache.get();
  }
  Status operator()(const New& op) {
    const std::int64_t number = op.cache.value_or(0);
    if (!caches.may_have(number)) return caches.none(number);
    if (Status good = check(options_); !good) return good;
    // The pool of the case comes with its first cache, or not at all.
    std::unique_ptr<Pool> first;
    if (!pool) {
      auto made = probe()([&] { return make_(options_); });
      if (!made) return made.error();
      first = std::move(*made);
    }
    auto cache = probe()([&] { return (first ? first : pool)->make_cache(); });
    if (first) pool = std::move(first);
    put(number, std::move(cache), 0, false);
    return {};
  }
  Status operator()(const Fork& op) {
    const std::int64_t number = op.cache.value_or(0);
    Followed* from = caches.find(op.from);
    if (from == nullptr) return caches.none(op.from);
    if (!caches.may_have(number)) return caches.none(number);
    auto made = probe()([&] { return (*from)->fork(op.tokens); });
    if (!made) return made.error();
    from->shares = true;
    put(number, std::move(*made), op.tokens, true);
    return {};
  }
  Result<Reread::Returns> operator()(const Reread& op) {
    if (op.handle < 1 || op.handle > std::ssize(numbered))
      return fail(Code::kPrecondition, "no handle " + std::to_string(op.handle));
    const NumberedViews& earlier = numbered[static_cast<std::size_t>(op.handle - 1)];
    if (earlier.stale) return Reread::Returns{.stale = true};
    return Reread::Returns{.views = shown(earlier.views)};
  }
  Result<Number> operator()(const FreeBlocks& /*op*/) {
    if (!pool) return fail(Code::kPrecondition, "no pool");
    return Number{probe()([&] { return pool->free_blocks(); })};
  }
  Result<Append::Returns> on(Followed& cache, const Append& op) {
    if (numbered.size() == kMostNumbered) return too_many();
    if (op.k.dtype != DType::kF32 || op.v.dtype != DType::kF32)
      return fail(Code::kPrecondition, "rows are f32");
    const auto done = probe()([&] { return cache->append(op.layer, op.k, op.v); });
    if (!done) return done.error();
    follow_append(cache, op.layer, op.k.shape[0]);
    Append::Returns returns{.start = done->start, .views = shown(done->views)};
    returns.handle = keep(op.keep, cache, op.layer, done->views);
    return returns;
  }
  Status on(Followed& cache, const Commit& op) {
    const std::int64_t most = std::ranges::min(cache.pending);
    if (!robustness_ && !cache.closed && (op.n < 0 || op.n > most))
      return fail(Code::kPrecondition, "n: MK-18");
    if (Status done = probe()([&] { return cache->commit(op.n); }); !done) return done;
    if (cache.closed) return {};
    cache.seq_len += op.n;
    for (std::int64_t& pending : cache.pending)
      pending = options_.commit_keeps_rest ? pending - op.n : 0;
    find_stale(cache);
    return {};
  }
  Result<ContiguousKv::Returns> on(Followed& cache, const ContiguousKv& op) {
    const auto found =
        probe()([&] { return cache->contiguous_kv(op.layer, op.kv_len, op.kv_dim); });
    if (!found) return found.error();
    ContiguousKv::Returns returns;
    if (op.kv_len > options_.block_size) returns.ok = found->has_value();
    if (found->has_value()) {
      returns.k = rows((*found)->k, op.kv_len);
      returns.v = rows((*found)->v, op.kv_len);
    } else if (!returns.ok.has_value()) {
      read_instead(cache, op, returns);
    }
    // Views do not show pending tokens then, so that nothing replaces what is not offered.
    if (options_.views_committed_only && op.kv_len > cache.seq_len) returns.k = returns.v = {};
    return returns;
  }
  Result<ShowViews::Returns> on(Followed& cache, const ShowViews& op) {
    if (numbered.size() == kMostNumbered) return too_many();
    const auto found = probe()([&] { return cache->views(op.layer); });
    return ShowViews::Returns{shown(found), keep(op.keep, cache, op.layer, found)};
  }
  Result<ShowPacked::Returns> on(Followed& cache, const ShowPacked& op) {
    const auto found = probe()([&] { return cache->views_packed(op.layer); });
    ShowPacked::Returns returns;
    for (const PackedView& view : found) returns.views.push_back(shown(view));
    return returns;
  }
  Result<LayerDevice::Returns> on(Followed& cache, const LayerDevice& op) {
    if (op.layer < 0 || op.layer >= options_.num_layers)
      return fail(Code::kPrecondition, "layer: MK-14");
    const Placement at = probe()([&] { return cache->layer_device(op.layer); });
    return LayerDevice::Returns{at.device, at.gpu};
  }
  Result<IsOnGpu::Returns> on(Followed& cache, const IsOnGpu& /*op*/) {
    const bool on_gpu = probe()([&] { return cache->is_on_gpu(); });
    const auto gpus = std::ranges::count(options_.devices, Device::kGpu, &Placement::device);
    IsOnGpu::Returns returns;
    if (gpus == 0 || gpus == options_.num_layers) returns.on_gpu = on_gpu;
    return returns;
  }
  Status on(Followed& cache, const Truncate& op) {
    probe()([&] { cache->truncate(op.n); });
    cut(cache, op.n);
    return {};
  }
  Status on(Followed& cache, const Free& /*op*/) {
    probe()([&] { cache->free(); });
    cut(cache, 0);
    cache.closed = true;
    return {};
  }
  /// An operation on a cache, which the session follows.
  template <class T>
  auto operator()(const T& op) -> decltype(this->on(std::declval<Followed&>(), op)) {
    Followed* const cache = find(op.cache);
    if (cache == nullptr) return none(op.cache);
    return on(*cache, op);
  }

 private:
  Followed* find(const std::optional<std::int64_t>& cache) {
    return caches.find(cache.value_or(0));
  }
  static Error none(const std::optional<std::int64_t>& cache) {
    return NumberedCaches<Followed>::none(cache.value_or(0));
  }
  static Error too_many() { return fail(Code::kPrecondition, "too many handles in a case"); }

  // ---- What follows from an operation that succeeded ----

  void put(std::int64_t number, std::unique_ptr<Cache> cache, std::int64_t tokens, bool shares) {
    if (Followed* old = caches.find(number))
      cut(*old, 0);
    else
      ++count;
    caches.put(number,
               {std::move(cache), ++last_life_, tokens,
                std::vector<std::int64_t>(static_cast<std::size_t>(options_.num_layers)), shares});
  }
  void follow_append(Followed& cache, std::int64_t layer, std::int64_t n) {
    KVO_CHECK(layer >= 0 && layer < options_.num_layers);
    std::int64_t& pending = cache.pending[static_cast<std::size_t>(layer)];
    const std::int64_t start = cache.seq_len + (options_.append_stacks ? pending : 0);
    pending = start + n - cache.seq_len;
    // The block that it goes on in may have moved (MK-31).
    const std::int64_t block = start - start % options_.block_size;
    if (cache.shares && start != block)
      for (NumberedViews& one : numbered)
        if (one.life == cache.life && one.layer == layer && one.reaches(block)) one.stale = true;
    find_stale(cache);
  }
  void cut(Followed& cache, std::int64_t tokens) {
    cache.seq_len = std::min(cache.seq_len, std::max<std::int64_t>(tokens, 0));
    std::ranges::fill(cache.pending, 0);
    find_stale(cache);
  }
  void find_stale(const Followed& cache) {
    for (NumberedViews& one : numbered) {
      // A layer that there is not shows nothing (MK-14).
      const bool shows = one.layer >= 0 && one.layer < options_.num_layers;
      if (one.life != cache.life || !shows) continue;
      if (one.reaches(cache.held(one.layer))) one.stale = true;
    }
  }

  // ---- What is shown ----

  std::optional<std::int64_t> keep(const std::optional<bool>& asked, const Followed& cache,
                                   std::int64_t layer, std::span<const View> views) {
    if (!asked.value_or(false)) return std::nullopt;
    numbered.push_back({cache.life, layer, {views.begin(), views.end()}});
    return std::ssize(numbered);
  }
  [[nodiscard]] Tensor rows(const std::byte* data, std::int64_t tokens) const {
    KVO_CHECK(tokens >= 0);
    Tensor shown =
        show_rows(options_.storage, {tokens, options_.num_kv_heads, options_.head_dim}, data);
    shown.shape = {tokens, options_.kv_dim()};
    return shown;
  }
  [[nodiscard]] std::vector<ShownView> shown(std::span<const View> views) const {
    std::vector<ShownView> all;
    for (const View& view : views)
      all.push_back({view.start, view.length, view.placement.device, view.placement.gpu,
                     rows(view.k, view.length), rows(view.v, view.length)});
    return all;
  }
  [[nodiscard]] ShowPacked::Shown shown(const PackedView& view) const {
    const std::int64_t heads = view.num_kv_heads;
    const std::int64_t dim = view.head_dim;
    KVO_CHECK(heads == options_.num_kv_heads && dim == options_.head_dim && view.length > 0);
    const std::int64_t stride =
        options_.packed_stride == PackedStride::kLength ? view.length : view.block_size;
    const auto least = static_cast<std::size_t>(((heads - 1) * stride + view.length) * dim);
    KVO_CHECK(view.k.size() >= least && view.v.size() >= least);
    const auto gathered = [&](std::span<const float> cells) {
      return materialize(StridedView{{heads, view.length, dim},
                                     {stride * dim, dim, 1},
                                     DType::kF32,
                                     reinterpret_cast<const std::byte*>(cells.data())});  // NOLINT
    };
    return {view.start, view.length,      view.block_size, dim,
            heads,      gathered(view.k), gathered(view.v)};
  }
  // The rows that a cache may offer and does not.
  void read_instead(Followed& cache, const ContiguousKv& op, ContiguousKv::Returns& returns) {
    returns.k = make_tensor({op.kv_len, options_.kv_dim()}, dtype_of(options_.storage.type));
    returns.v = returns.k;
    for (const View& view : cache->views(op.layer)) {
      if (view.start != 0 || op.kv_len == 0) continue;
      const std::int64_t tokens = std::min(view.length, op.kv_len);
      std::ranges::copy(rows(view.k, tokens).bytes, returns.k->bytes.begin());
      std::ranges::copy(rows(view.v, tokens).bytes, returns.v->bytes.begin());
    }
  }

  MakePool make_;
  Options options_;
  bool robustness_;
  std::uint64_t last_life_ = 0;
};

}  // namespace

Options options_of(const Config& config) {
  Options options{.num_layers = config.num_layers,
                  .block_size = config.block_size,
                  .num_kv_heads = config.num_kv_heads,
                  .head_dim = config.head_dim,
                  .max_seq_len = config.max_seq_len,
                  .blocks = config.blocks,
                  .storage = config.rows.format(),
                  .append_stacks = config.append_stacks.value_or(false),
                  .append_views_blocks = config.append_views_blocks.value_or(false),
                  .commit_keeps_rest = config.commit_keeps_rest.value_or(false),
                  .views_committed_only = config.views_committed_only.value_or(false),
                  .packed_stride = config.packed_stride.value_or(PackedStride::kBlockSize)};
  constexpr std::int64_t kMostLayers = 1 << 16;
  if (config.devices)
    for (const std::int64_t gpu : *config.devices)
      options.devices.push_back(gpu < 0 ? Placement{} : Placement{Device::kGpu, gpu});
  else if (config.num_layers > 0)
    options.devices.resize(static_cast<std::size_t>(std::min(config.num_layers, kMostLayers)));
  return options;
}

const CacheKind& paged_kind() {
  static const CacheKind kKind{
      .contract = "views",
      .cache = "paged",
      .doc = "a sequence in blocks of a pool, read by views (makarna's PagedKVCache)",
      .operations = op_kinds(Ops()),
      .config = &type_of<Config>()};
  return kKind;
}

Subject make_subject(std::string variant, std::string doc, MakePool make) {
  return {.kind = &paged_kind(),
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [make = std::move(make)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            if (!setup.quirks.empty())
              return fail(Code::kNotSupported, "quirk " + setup.quirks.front());
            const auto config = setup.config_as<Config>();
            return std::make_unique<PagedSession>(make, options_of(config),
                                                  config.robustness.value_or(false));
          }};
}

}  // namespace kvo::views

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_VIEWS_OPERATIONS)
}  // namespace kvo
