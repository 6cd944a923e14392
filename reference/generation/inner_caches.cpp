#include "reference/generation/inner_caches.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "reference/provider/contiguous.hpp"
#include "reference/provider/operated_provider.hpp"
#include "reference/provider/paged.hpp"
#include "reference/provider/tensor.hpp"

namespace kvo::generation {
namespace {

constexpr std::int64_t kBlockSize = 16;  // ZF-75

/// Of provider.contiguous and provider.tensor: every cache takes the place of the one before.
class PlainSource final : public CacheSource {
 public:
  PlainSource(Inner inner, const CacheSizes& sizes, bool tensor)
      : inner_(std::make_shared<Inner>(std::move(inner))),
        sizes_(sizes),
        dtype_(sizes.dtype),
        tensor_(tensor) {}

  [[nodiscard]] Result<std::unique_ptr<provider::Provider>> make() override {
    const auto made =
        tensor_ ? status_of((*inner_)(provider::NewTensor{.num_layers = sizes_.num_layers,
                                                          .max_seq_len = sizes_.max_seq_len,
                                                          .dtype = dtype_}))
                : status_of((*inner_)(provider::NewContiguous{.num_layers = sizes_.num_layers,
                                                              .max_seq_len = sizes_.max_seq_len}));
    if (!made) return made.error();
    return std::make_unique<provider::OperatedProvider>(inner_, tensor_, false);
  }
  [[nodiscard]] std::int64_t most_positions() const override { return sizes_.max_seq_len; }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return inner_->broken_invariant();
  }

 private:
  std::shared_ptr<Inner> inner_;
  CacheSizes sizes_;
  std::string dtype_;
  bool tensor_;
};

/// Of provider.paged: the blocks of a cache that was not given back stay taken.
class PagedSource final : public CacheSource {
 public:
  PagedSource(Inner inner, std::int64_t num_layers, std::int64_t cap)
      : inner_(std::make_shared<Inner>(std::move(inner))), num_layers_(num_layers), cap_(cap) {}

  [[nodiscard]] Result<std::unique_ptr<provider::Provider>> make() override {
    if (const auto made = (*inner_)(provider::NewPaged{.num_layers = num_layers_}); !made)
      return made.error();
    return std::make_unique<provider::OperatedProvider>(inner_, false, false);
  }
  [[nodiscard]] Status give_back(provider::Provider& /*cache*/) override {
    return status_of((*inner_)(provider::Free{}));
  }
  [[nodiscard]] std::int64_t most_positions() const override { return cap_ * kBlockSize; }
  [[nodiscard]] Result<std::optional<PoolState>> pool() override {
    const auto available = (*inner_)(block_pool::Available{});
    if (!available) return available.error();
    return std::optional(PoolState{available->n, cap_});
  }
  [[nodiscard]] Result<std::int64_t> drain(std::int64_t leave) override {
    const auto drained = (*inner_)(provider::DrainPool{leave});
    if (!drained) return drained.error();
    return drained->taken;
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return inner_->broken_invariant();
  }

 private:
  std::shared_ptr<Inner> inner_;
  std::int64_t num_layers_;
  std::int64_t cap_;
};

/// A cache of any store that takes what a contiguous cache takes (ZF-9, ZF-17).
class BoundedCache final : public provider::Provider {
 public:
  BoundedCache(RowStore& store, const CacheSizes& sizes)
      : store_(store),
        max_seq_len_(sizes.max_seq_len),
        cursors_(static_cast<std::size_t>(std::max<std::int64_t>(sizes.num_layers, 0))) {}

  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override {
    if (!has(layer)) return fail(Code::kOutOfRange, "layer");
    std::int64_t& cursor = cursors_[static_cast<std::size_t>(layer)];
    const std::int64_t length = rows.k->shape[1];
    if (cursor + length > max_seq_len_) return fail(Code::kFull);
    if (const Status done = store_.add(layer, cursor, *rows.k, *rows.v); !done) return done;
    cursor += length;
    return {};
  }
  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override {
    if (!has(layer) || cursors_[static_cast<std::size_t>(layer)] == 0)
      return std::optional<provider::KvPair>();
    const auto pair = store_.rows(layer);
    if (!pair) return pair.error();
    return std::optional(*pair);
  }
  [[nodiscard]] std::int64_t seq_len() const override {
    return cursors_.empty() ? 0 : cursors_.front();
  }
  [[nodiscard]] Status reset() override { return truncate(0); }
  [[nodiscard]] Status truncate(std::int64_t n) override {
    if (std::ranges::all_of(cursors_, [n](std::int64_t cursor) { return cursor <= n; })) return {};
    if (const Status done = store_.cut(std::max<std::int64_t>(n, 0)); !done) return done;
    for (std::int64_t& cursor : cursors_) cursor = std::min(cursor, std::max<std::int64_t>(n, 0));
    return {};
  }

 private:
  [[nodiscard]] bool has(std::int64_t layer) const {
    return layer >= 0 && layer < std::ssize(cursors_);
  }

  RowStore& store_;
  std::int64_t max_seq_len_;
  std::vector<std::int64_t> cursors_;
};

/// A fresh store for every cache, or one that begins anew.
class BoundedSource final : public CacheSource {
 public:
  BoundedSource(Subject subject, Setup setup, const CacheSizes& sizes, const ProbeSlot& probe)
      : subject_(std::move(subject)), setup_(std::move(setup)), sizes_(sizes), probe_(probe) {}

  [[nodiscard]] Result<std::unique_ptr<provider::Provider>> make() override {
    const Result<bool> anew = store_ ? store_->begin_anew() : Result<bool>(false);
    if (!anew) return anew.error();
    if (!*anew) {
      auto store = make_store(subject_, setup_, sizes_, probe_);
      if (!store) return store.error();
      store_ = std::move(*store);
    }
    return std::make_unique<BoundedCache>(*store_, sizes_);
  }
  [[nodiscard]] std::int64_t most_positions() const override { return sizes_.max_seq_len; }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return store_ ? store_->broken_invariant() : std::nullopt;
  }

 private:
  Subject subject_;
  Setup setup_;
  CacheSizes sizes_;
  const ProbeSlot& probe_;
  std::unique_ptr<RowStore> store_;
};

template <class Source, class... Arguments>
Result<std::unique_ptr<CacheSource>> source_over(Result<Inner> inner, Arguments&&... arguments) {
  if (!inner) return inner.error();
  return std::unique_ptr<CacheSource>(
      std::make_unique<Source>(std::move(*inner), std::forward<Arguments>(arguments)...));
}

}  // namespace

Result<std::unique_ptr<CacheSource>> contiguous_caches(const Subject& subject, const Setup& setup,
                                                       const CacheSizes& sizes,
                                                       const ProbeSlot& probe) {
  if (subject.kind == &provider::contiguous_kind())
    return source_over<PlainSource>(Inner::open(subject, setup, probe), sizes, false);
  return std::unique_ptr<CacheSource>(
      std::make_unique<BoundedSource>(subject, setup, sizes, probe));
}

Result<std::unique_ptr<CacheSource>> tensor_caches(const Subject& subject, const Setup& setup,
                                                   const CacheSizes& sizes,
                                                   const ProbeSlot& probe) {
  return source_over<PlainSource>(Inner::open(subject, setup, probe), sizes, true);
}

Result<std::unique_ptr<CacheSource>> paged_caches(const Subject& subject, const Setup& setup,
                                                  const CacheSizes& sizes,
                                                  const PagedOption& option,
                                                  const ProbeSlot& probe) {
  auto inner = Inner::open(subject, setup, probe);
  if (!inner) return inner.error();
  const auto pool = (*inner)(provider::NewPool{.num_layers = sizes.num_layers,
                                               .block_size = kBlockSize,
                                               .head_dim = option.head_dim,
                                               .max_memory_mb = option.max_memory_mb});
  if (!pool) return pool.error();
  return source_over<PagedSource>(std::move(inner), sizes.num_layers, pool->cap);
}

}  // namespace kvo::generation
