// The kinds whose caches can stand where a generation asks for a contiguous one.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "reference/generation/inner_caches.hpp"
#include "reference/layered/cache.hpp"
#include "reference/positional/operations.hpp"
#include "reference/provider/paged.hpp"
#include "reference/provider/tensor.hpp"
#include "reference/provider/tracing_operations.hpp"
#include "reference/snapshot/operations.hpp"
#include "reference/views/operations.hpp"

namespace kvo::generation {
namespace {

constexpr std::int64_t kBlock = 16;

Tensor shaped(const Tensor& rows, Shape shape) {
  Tensor same = rows;
  same.shape = std::move(shape);
  return same;
}

/// A session for each layer.
class StoreByLayer : public RowStore {
 public:
  [[nodiscard]] std::optional<std::string> broken_invariant() const final {
    for (const Inner& layer : layers_)
      if (auto broken = layer.broken_invariant()) return broken;
    return std::nullopt;
  }

 protected:
  explicit StoreByLayer(std::vector<Inner> layers) : layers_(std::move(layers)) {}

  [[nodiscard]] Inner& of(std::int64_t layer) { return layers_[static_cast<std::size_t>(layer)]; }
  [[nodiscard]] std::vector<Inner>& layers() { return layers_; }

 private:
  std::vector<Inner> layers_;
};

/// Other providers: their cache is number 0.
class ProviderStore final : public RowStore {
 public:
  ProviderStore(Inner inner, const CacheKind* kind, std::int64_t num_layers)
      : inner_(std::move(inner)), kind_(kind), num_layers_(num_layers) {}

  [[nodiscard]] Status add(std::int64_t layer, std::int64_t /*past*/, const Tensor& k,
                           const Tensor& v) override {
    if (kind_ == &provider::tensor_kind())
      return status_of(inner_(provider::UpdateTensor{.layer = layer, .k = k, .v = v}));
    if (kind_ == &provider::paged_kind())
      return status_of(inner_(provider::Update{.layer = layer, .k = k, .v = v}));
    const std::int64_t id = objects_;
    objects_ += 2;  // each tensor is an object of its own
    return status_of(
        inner_(provider::UpdateTraced{.layer = layer, .k = k, .v = v, .k_id = id, .v_id = id + 1}));
  }
  [[nodiscard]] Result<provider::KvPair> rows(std::int64_t layer) override {
    const auto found = inner_(provider::Get{.layer = layer, .keep = false});
    if (!found) return found.error();
    return pair_of(found->k.value_or(Tensor()), found->v.value_or(Tensor()));
  }
  /// A pool is by far larger than a cache of it: its blocks serve the next one.
  [[nodiscard]] Result<bool> begin_anew() override {
    if (kind_ != &provider::paged_kind()) return false;
    if (const auto freed = inner_(provider::Free{}); !freed) return freed.error();
    const auto made = inner_(provider::NewPaged{.num_layers = num_layers_});
    return made ? Result<bool>(true) : Result<bool>(made.error());
  }
  [[nodiscard]] Status cut(std::int64_t n) override {
    return status_of(inner_(provider::Truncate{.n = n}));
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return inner_.broken_invariant();
  }

 private:
  Inner inner_;
  const CacheKind* kind_;
  std::int64_t num_layers_;
  std::int64_t objects_ = 0;
};

/// layered.vector: a cache holds one layer. Rows cannot be taken back, so that what stays is
/// written once more.
class LayeredStore final : public StoreByLayer {
 public:
  explicit LayeredStore(std::vector<Inner> layers) : StoreByLayer(std::move(layers)) {}

  [[nodiscard]] Status add(std::int64_t layer, std::int64_t /*past*/, const Tensor& k,
                           const Tensor& v) override {
    dim_ = k.shape[2];
    return append(of(layer), k, v, k.shape[1]);
  }
  [[nodiscard]] Result<provider::KvPair> rows(std::int64_t layer) override {
    const auto k = of(layer)(layered::Keys{});
    if (!k) return k.error();
    const auto v = of(layer)(layered::Values{});
    if (!v) return v.error();
    return pair_of(in_rows(k->k), in_rows(v->v));
  }
  [[nodiscard]] Status cut(std::int64_t n) override {
    for (Inner& layer : layers()) {
      const auto k = layer(layered::Keys{});
      if (!k) return k.error();
      const auto v = layer(layered::Values{});
      if (!v) return v.error();
      if (const auto done = layer(layered::Clear{}); !done) return done.error();
      const Tensor rows = in_rows(k->k);
      if (const Status done = append(layer, rows, in_rows(v->v), std::min(n, rows.shape[1])); !done)
        return done;
    }
    return {};
  }

 private:
  /// Adds the first `count` rows.
  [[nodiscard]] static Status append(Inner& layer, const Tensor& k, const Tensor& v,
                                     std::int64_t count) {
    const auto row = [](const Tensor& rows, std::int64_t at) {
      const auto dim = static_cast<std::size_t>(rows.shape[2]);
      return tensor_of({rows.shape[2]},
                       rows.floats().subspan(static_cast<std::size_t>(at) * dim, dim));
    };
    for (std::int64_t at = 0; at < count; ++at) {
      if (const auto done = layer(layered::Append{.k = row(k, at), .v = row(v, at)}); !done)
        return done.error();
      if (const auto done = layer(layered::Advance{}); !done) return done.error();
    }
    return {};
  }
  [[nodiscard]] Tensor in_rows(const Tensor& flat) const {
    return shaped(flat, {1, dim_ > 0 ? flat.elements() / dim_ : 0, dim_});
  }

  std::int64_t dim_ = 0;
};

/// views.paged: a cache holds one layer, and each pass is committed by itself.
class ViewsStore final : public StoreByLayer {
 public:
  explicit ViewsStore(std::vector<Inner> layers) : StoreByLayer(std::move(layers)) {}

  [[nodiscard]] Status add(std::int64_t layer, std::int64_t /*past*/, const Tensor& k,
                           const Tensor& v) override {
    Inner& cache = of(layer);
    const Shape shape{k.shape[1], k.shape[2]};
    if (const auto done = cache(views::Append{.k = shaped(k, shape), .v = shaped(v, shape)}); !done)
      return done.error();
    return status_of(cache(views::Commit{.n = k.shape[1]}));
  }
  [[nodiscard]] Result<provider::KvPair> rows(std::int64_t layer) override {
    const auto shown = of(layer)(views::ShowViews{});
    if (!shown) return shown.error();
    std::vector<float> k;
    std::vector<float> v;
    Shape shape{1, 0, 0};
    for (const views::ShownView& view : shown->views) {
      k.insert(k.end(), view.k.floats().begin(), view.k.floats().end());
      v.insert(v.end(), view.v.floats().begin(), view.v.floats().end());
      shape = {1, shape[1] + view.length, view.k.shape[1]};
    }
    return pair_of(tensor_of(shape, k), tensor_of(shape, v));
  }
  [[nodiscard]] Status cut(std::int64_t n) override {
    for (Inner& layer : layers())
      if (const auto done = layer(views::Truncate{.n = n}); !done) return done.error();
    return {};
  }
};

/// snapshot.kv and rotating: a cache holds one layer.
class SnapshotStore final : public StoreByLayer {
 public:
  explicit SnapshotStore(std::vector<Inner> layers) : StoreByLayer(std::move(layers)) {}

  [[nodiscard]] Status add(std::int64_t layer, std::int64_t /*past*/, const Tensor& k,
                           const Tensor& v) override {
    const Shape shape{1, 1, k.shape[1], k.shape[2]};
    return status_of(of(layer)(snapshot::Update{.k = shaped(k, shape), .v = shaped(v, shape)}));
  }
  [[nodiscard]] Result<provider::KvPair> rows(std::int64_t layer) override {
    const auto shown = of(layer)(snapshot::ShowState{});
    if (!shown) return shown.error();
    const auto& state = shown->state;
    if (!state.has_value() || state->size() != 2 || !(*state)[0].has_value() ||
        !(*state)[1].has_value())
      return pair_of(Tensor(), Tensor());
    return pair_of(*(*state)[0], *(*state)[1]);
  }
  [[nodiscard]] Status cut(std::int64_t n) override {
    for (Inner& layer : layers()) {
      const auto held = layer(snapshot::Offset{});
      if (!held) return held.error();
      if (held->offset <= n) continue;
      if (const auto cut = layer(snapshot::Restore{.handle = {}, .target = n}); !cut)
        return cut.error();
    }
    return {};
  }
};

/// Those of contract positional with one cache: sequence 0 of a pool. A pass begins with layer 0.
class PositionalStore final : public RowStore {
 public:
  explicit PositionalStore(Inner inner) : inner_(std::move(inner)) {}

  [[nodiscard]] Status add(std::int64_t layer, std::int64_t past, const Tensor& k,
                           const Tensor& v) override {
    const std::int64_t length = k.shape[1];
    if (layer == 0) {
      positional::StartForward pass;
      pass.positions.resize(static_cast<std::size_t>(length));
      std::iota(pass.positions.begin(), pass.positions.end(), static_cast<std::int32_t>(past));
      pass.seqs.assign(static_cast<std::size_t>(length), 0);
      if (const Status done = status_of(inner_(std::move(pass))); !done) return done;
    }
    if (const auto done = inner_(positional::SetLayer{layer}); !done) return done.error();
    const Shape shape{length, 1, k.shape[2]};
    return status_of(inner_(positional::Put{.k = shaped(k, shape), .v = shaped(v, shape)}));
  }
  /// What the last token of the pass sees, in order of cells: a sequence that only grows and is cut
  /// lies in order of positions.
  [[nodiscard]] Result<provider::KvPair> rows(std::int64_t layer) override {
    if (const auto done = inner_(positional::SetLayer{layer}); !done) return done.error();
    const auto shown = inner_(positional::Get{});
    if (!shown) return shown.error();
    if (!shown->k.has_value() || !shown->v.has_value() || !shown->mask.has_value())
      return pair_of(Tensor(), Tensor());
    return pair_of(seen(*shown->k, *shown->mask), seen(*shown->v, *shown->mask));
  }
  [[nodiscard]] Status cut(std::int64_t n) override {
    return status_of(inner_(positional::Remove{
        .seq = 0, .begin = static_cast<std::int32_t>(n), .end = positional::kMaxPosition}));
  }
  [[nodiscard]] Status discard(std::int64_t begin, std::int64_t end) override {
    return status_of(inner_(positional::Remove{.seq = 0,
                                               .begin = static_cast<std::int32_t>(begin),
                                               .end = static_cast<std::int32_t>(end)}));
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return inner_.broken_invariant();
  }

 private:
  [[nodiscard]] static Tensor seen(const Tensor& rows, const Tensor& mask) {
    const auto cells = static_cast<std::size_t>(mask.shape[1]);
    const auto dim = static_cast<std::size_t>(rows.shape[2]);
    const auto last = mask.floats().last(std::min(cells, mask.floats().size()));
    std::vector<float> values;
    for (std::size_t cell = 0;
         cell < std::min(last.size(), static_cast<std::size_t>(rows.shape[0])); ++cell)
      if (last[cell] == 0) {
        const auto row = rows.floats().subspan(cell * dim, dim);
        values.insert(values.end(), row.begin(), row.end());
      }
    const auto count = static_cast<std::int64_t>(values.size() / std::max<std::size_t>(dim, 1));
    return tensor_of({1, count, rows.shape[2]}, values);
  }

  Inner inner_;
};

Result<std::unique_ptr<RowStore>> provider_store(Inner inner, const CacheKind* kind,
                                                 const CacheSizes& sizes) {
  if (kind == &provider::tensor_kind()) {
    if (const auto made = inner(provider::NewTensor{
            .num_layers = sizes.num_layers, .max_seq_len = sizes.max_seq_len, .dtype = ""});
        !made)
      return made.error();
  } else if (kind == &provider::paged_kind()) {
    // A pool with room for every position that the cache may take.
    const std::int64_t blocks = sizes.max_seq_len / kBlock + 1;
    const std::int64_t layers = std::max<std::int64_t>(sizes.num_layers, 1);
    const std::int64_t bytes = 2 * layers * kBlock * sizes.dim * 4;
    const std::int64_t mb = blocks * bytes / (std::int64_t{1} << 20U) + 1;
    if (const auto made = inner(provider::NewPool{.num_layers = layers,
                                                  .block_size = kBlock,
                                                  .head_dim = sizes.dim,
                                                  .max_memory_mb = mb});
        !made)
      return made.error();
    if (const auto made = inner(provider::NewPaged{.num_layers = sizes.num_layers}); !made)
      return made.error();
  } else if (const auto made = inner(provider::NewTracing{}); !made) {
    return made.error();
  }
  return std::unique_ptr<RowStore>(
      std::make_unique<ProviderStore>(std::move(inner), kind, sizes.num_layers));
}

/// Positions that a cache which cannot have none has room for.
std::int64_t room_of(const CacheSizes& sizes) {
  return std::max<std::int64_t>(sizes.max_seq_len, 1);
}

/// Windows and chunks see all that a contiguous cache holds.
Record config_of(const CacheKind* kind, const CacheSizes& sizes) {
  const std::int64_t room = room_of(sizes);
  if (kind == &provider::tracing_kind())
    return Record::of(provider::TracingConfig{.real = provider::Real::kKv,
                                              .num_layers = sizes.num_layers,
                                              .max_seq_len = sizes.max_seq_len});
  if (kind->contract == "positional") {
    const auto whole = static_cast<std::int32_t>(
        std::min<std::int64_t>(room, std::numeric_limits<std::int32_t>::max()));
    return Record::of(positional::CacheConfig{
        .window = whole,
        .memory = whole,
        .chunk = whole,
        .shift = Nullable(positional::ShiftConfig{.kind = positional::ShiftKind::kAdd})});
  }
  if (kind->contract == "views")
    return Record::of(views::Config{.num_layers = 1,
                                    .block_size = kBlock,
                                    .num_kv_heads = 1,
                                    .head_dim = sizes.dim,
                                    .max_seq_len = room,
                                    .blocks = room / kBlock + 1});
  return {};
}

/// A session for each layer, with a cache made by `make`.
template <class Store, class Make>
Result<std::unique_ptr<RowStore>> store_by_layer(const Subject& subject, const Setup& setup,
                                                 const CacheSizes& sizes, const ProbeSlot& probe,
                                                 const Make& make) {
  std::vector<Inner> layers;
  for (std::int64_t layer = 0; layer < sizes.num_layers; ++layer) {
    auto inner = Inner::open(subject, setup, probe, config_of(subject.kind, sizes));
    if (!inner) return inner.error();
    if (const auto made = (*inner)(make); !made) return made.error();
    layers.push_back(std::move(*inner));
  }
  return std::unique_ptr<RowStore>(std::make_unique<Store>(std::move(layers)));
}

}  // namespace

const std::vector<std::string_view>& stand_ins() {
  static const std::vector<std::string_view> kKinds{
      "provider.contiguous", "provider.paged",     "provider.tensor",   "provider.tracing",
      "snapshot.kv",         "snapshot.rotating",  "positional.causal", "positional.swa",
      "positional.swa_mem",  "positional.chunked", "layered.vector",    "views.paged"};
  return kKinds;
}

Result<std::unique_ptr<RowStore>> make_store(const Subject& subject, const Setup& setup,
                                             const CacheSizes& sizes, const ProbeSlot& probe) {
  const std::string kind = subject.kind->name();
  if (std::ranges::find(stand_ins(), kind) == stand_ins().end())
    return fail(Code::kNotSupported, kind);
  if (subject.kind->contract == "snapshot")
    return store_by_layer<SnapshotStore>(subject, setup, sizes, probe,
                                         snapshot::New{.max_size = room_of(sizes)});
  if (subject.kind->contract == "layered")
    return store_by_layer<LayeredStore>(
        subject, setup, sizes, probe,
        layered::New{
            .num_layers = 1, .num_kv_heads = 1, .head_dim = static_cast<std::uint64_t>(sizes.dim)});
  if (subject.kind->contract == "views")
    return store_by_layer<ViewsStore>(subject, setup, sizes, probe, views::New{});
  auto inner = Inner::open(subject, setup, probe, config_of(subject.kind, sizes));
  if (!inner) return inner.error();
  if (subject.kind->contract == "provider")
    return provider_store(std::move(*inner), subject.kind, sizes);
  const std::int64_t room = room_of(sizes);
  if (const auto made =
          (*inner)(positional::Init{.max_sequences = 1, .capacity = room, .max_batch = room});
      !made)
    return made.error();
  return std::unique_ptr<RowStore>(std::make_unique<PositionalStore>(std::move(*inner)));
}

}  // namespace kvo::generation
