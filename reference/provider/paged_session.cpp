// How operations of `provider.paged` reach a cache and its pool.
#include <algorithm>

#include "reference/provider/paged.hpp"
#include "reference/provider/shared_session.hpp"

namespace kvo::provider {
namespace {

using block_pool::BlockPool;
using block_pool::kNoCache;
using PoolQuirks = QuirkSet<block_pool::Quirk>;

class PagedSession final : public DispatchSession<PagedSession, PagedOps, SharedSession<Paged>> {
 public:
  PagedSession(block_pool::MakePool make_pool, MakePaged make, const StorageFormat& storage,
               PoolQuirks pool_quirks, QuirkSet<Quirk> quirks)
      : make_pool_(std::move(make_pool)),
        make_(std::move(make)),
        pool_quirks_(pool_quirks),
        quirks_(quirks) {
    storage_ = storage;
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
    return SharedSession::broken_invariant();
  }
  using SharedSession::cache_of;
  [[nodiscard]] Result<BlockPool*> cache_of(const block_pool::Available& /*op*/) {
    if (!pool_) return no_pool();
    return pool_.get();
  }
  using SharedSession::operator();
  Result<NewPool::Returns> operator()(const NewPool& op) {
    const block_pool::Geometry geometry{op.num_layers, op.block_size, op.head_dim, op.max_memory_mb,
                                        storage_};
    auto made = probe()([&] { return make_pool_(geometry, pool_quirks_); });
    if (!made) return made.error();
    pool_ = std::move(*made);
    return NewPool::Returns{pool_->cap()};
  }
  Status operator()(const NewPaged& op) {
    const PagedOptions options{pool_, op.num_layers, last_owner_ + 1};
    Status done = put(op, [&] { return probe()([&] { return make_(options, quirks_); }); });
    if (done) ++last_owner_;
    return done;
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
  [[nodiscard]] bool has(std::int64_t block) const { return block >= 0 && block < pool_->cap(); }
  static Error no_pool() { return fail(Code::kPrecondition, "no pool"); }
  static Error no_block() { return fail(Code::kPrecondition, "no such block"); }

  block_pool::MakePool make_pool_;
  MakePaged make_;
  PoolQuirks pool_quirks_;
  QuirkSet<Quirk> quirks_;
  std::shared_ptr<BlockPool> pool_;
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
  return subject_of<Quirk>(
      paged_kind(), std::move(variant), std::move(doc),
      [make_pool = std::move(make_pool), make = std::move(make)](
          const Setup& setup, QuirkSet<Quirk> quirks) -> Result<std::unique_ptr<Session>> {
        const auto of_pool =
            quirks_of<block_pool::Quirk>(setup, block_pool::kQuirkRows, kQuirkRows);
        if (!of_pool) return of_pool.error();
        const auto config = setup.config_as<PagedConfig>();
        return std::make_unique<PagedSession>(make_pool, make, config.rows.format(), *of_pool,
                                              quirks);
      },
      kQuirkRows, block_pool::kQuirkRows);
}

}  // namespace kvo::provider

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_PAGED_OPERATIONS)
}  // namespace kvo
