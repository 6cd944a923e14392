// How operations of `provider.paged` reach a cache and its pool.
#include <algorithm>

#include "reference/contract/subject/dispatch.hpp"
#include "reference/provider/paged_operations.hpp"

namespace kvo::provider {
namespace {

using block_pool::BlockPool;
using block_pool::kNoCache;
using PoolQuirks = QuirkSet<block_pool::Quirk>;

class PagedSession final : public DispatchSession<PagedSession, PagedOps, SharedOps> {
 public:
  PagedSession(block_pool::MakePool make_pool, MakePaged make, const StorageFormat& storage,
               PoolQuirks pool_quirks, QuirkSet<Quirk> quirks)
      : make_pool_(std::move(make_pool)),
        make_(std::move(make)),
        pool_quirks_(pool_quirks),
        quirks_(quirks) {
    set_storage(storage);
  }

  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    Observation seen = DispatchSession::apply(op, probe);
    // A storage type that a pool lacks is no fault of it.
    seen.unsupported |= op.as<NewPool>() != nullptr && seen.failed_with(Code::kNotSupported);
    return seen;
  }

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    if (pool_)
      if (auto broken = pool_->broken_invariant()) return broken;
    return caches_.broken_invariant();
  }

  using SharedOps::operator();
  Result<NewPool::Returns> operator()(const NewPool& op) {
    const block_pool::Geometry geometry{op.num_layers, op.block_size, op.head_dim, op.max_memory_mb,
                                        storage()};
    auto made = probe()([&] { return make_pool_(geometry, pool_quirks_); });
    if (!made) return made.error();
    pool_ = std::move(*made);
    return NewPool::Returns{pool_->cap()};
  }
  Status operator()(const NewPaged& op) {
    const std::int64_t number = op.cache.value_or(0);
    if (!caches_.may_have(number)) return no_cache(op.cache);
    const PagedOptions options{pool_, op.num_layers, last_owner_ + 1};
    auto made = probe()([&] { return make_(options, quirks_); });
    if (!made) return made.error();
    caches_.put(number, std::move(*made));
    ++last_owner_;
    return {};
  }
  Status operator()(const Free& op) {
    Paged* cache = paged(op.cache);
    if (cache == nullptr) return no_cache(op.cache);
    return probe()([&] { return cache->free(); });
  }
  Result<NumLayers::Returns> operator()(const NumLayers& op) {
    Paged* cache = paged(op.cache);
    if (cache == nullptr) return no_cache(op.cache);
    return Number{probe()([&] { return cache->num_layers(); })};
  }
  Result<Table::Returns> operator()(const Table& op) {
    Paged* cache = paged(op.cache);
    if (cache == nullptr) return no_cache(op.cache);
    return probe()([&] { return cache->table(); });
  }

  Result<block_pool::Number> operator()(const block_pool::Available& /*op*/) {
    if (!pool_) return no_pool();
    return block_pool::Number{probe()([&] { return pool_->available(); })};
  }
  Result<block_pool::Alloc::Returns> operator()(const block_pool::Alloc& /*op*/) {
    if (!pool_) return no_pool();
    std::int64_t block = 0;
    const Status done = probe()([&] { return pool_->alloc(kNoCache, {&block, 1}); });
    if (!done) return done.error();
    return block_pool::Alloc::Returns{block, pool_->used(block)};
  }
  Status operator()(const block_pool::FreeBlock& op) {
    if (!pool_) return no_pool();
    if (!op.block.has_value() && !pool_quirks_.has(block_pool::Quirk::kFreeNullAborts)) return {};
    if (!op.block.has_value() || !has(*op.block)) return no_block();
    probe()([&] { pool_->free(kNoCache, {&*op.block, 1}); });
    return {};
  }
  Result<block_pool::ReadBlock::Returns> operator()(const block_pool::ReadBlock& op) {
    if (!pool_) return no_pool();
    if (!has(op.block)) return no_block();
    return probe()([&] { return block_pool::read_block(*pool_, op.block); });
  }
  Result<DrainPool::Returns> operator()(const DrainPool& op) {
    if (!pool_) return no_pool();
    const std::int64_t leave = std::max<std::int64_t>(op.leave, 0);
    const std::int64_t taken = std::max<std::int64_t>(pool_->available() - leave, 0);
    std::vector<std::int64_t> blocks(static_cast<std::size_t>(taken));
    const Status done = probe()([&] { return pool_->alloc(kNoCache, blocks); });
    if (!done) return done.error();
    return DrainPool::Returns{taken};
  }

 private:
  using SharedOps::find;
  Provider* find(std::int64_t cache) override { return paged(cache); }
  Paged* paged(const std::optional<std::int64_t>& cache) {
    const auto* found = caches_.find(cache.value_or(0));
    return found != nullptr ? found->get() : nullptr;
  }
  [[nodiscard]] bool has(std::int64_t block) const { return block >= 0 && block < pool_->cap(); }
  static Error no_pool() { return fail(Code::kPrecondition, "no pool"); }
  static Error no_block() { return fail(Code::kPrecondition, "no such block"); }

  block_pool::MakePool make_pool_;
  MakePaged make_;
  PoolQuirks pool_quirks_;
  QuirkSet<Quirk> quirks_;
  std::shared_ptr<BlockPool> pool_;
  NumberedCaches<std::unique_ptr<Paged>> caches_;
  block_pool::Owner last_owner_ = kNoCache;
};

}  // namespace

const CacheKind& paged_kind() {
  static constexpr auto kRows = joined(rows_of(kQuirkRows, kPagedQuirks), block_pool::kQuirkRows);
  static const CacheKind kKind{.contract = "provider",
                               .cache = "paged",
                               .doc = "a block table over a shared pool (zerfoo PagedKVCache)",
                               .operations = op_kinds(PagedOps()),
                               .config = &type_of<PagedConfig>(),
                               .quirks = kRows};
  return kKind;
}

Subject make_paged_subject(std::string variant, std::string doc, block_pool::MakePool make_pool,
                           MakePaged make) {
  return {.kind = &paged_kind(),
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [make_pool = std::move(make_pool),
                   make = std::move(make)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto of_pool =
                quirks_of<block_pool::Quirk>(setup, block_pool::kQuirkRows, kQuirkRows);
            if (!of_pool) return of_pool.error();
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows, block_pool::kQuirkRows);
            if (!quirks) return quirks.error();
            const auto config = setup.config_as<PagedConfig>();
            return std::make_unique<PagedSession>(make_pool, make, config.rows.format(), *of_pool,
                                                  *quirks);
          }};
}

}  // namespace kvo::provider

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_PAGED_OPERATIONS)
}  // namespace kvo
