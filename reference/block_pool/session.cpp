// How operations of the contract reach a pool: one overload an operation.
#include <algorithm>
#include <atomic>
#include <thread>

#include "reference/block_pool/operations.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"

namespace kvo::block_pool {
namespace {

constexpr std::int64_t kMostWorkers = 64;
constexpr std::int64_t kMostIterations = 100'000;
constexpr std::int64_t kMostHeld = 1'024;
constexpr std::int64_t kMostAllocs = 10'000'000;  // of all workers together

using Flags = std::vector<std::atomic<bool>>;

// One worker: takes blocks one by one and gives them back together. Whoever finds the flag of a
// block of its own set has met a second owner.
bool take_and_free(BlockPool& pool, Owner owner, std::int64_t iterations,
                   std::span<std::int64_t> held, Flags& flags) {
  bool met = false;
  for (std::int64_t i = 0; i < iterations; ++i) {
    std::size_t count = 0;
    while (count < held.size() && pool.alloc(owner, held.subspan(count, 1))) {
      met = flags[static_cast<std::size_t>(held[count])].exchange(true) || met;
      ++count;
    }
    for (const std::int64_t block : held.first(count))
      flags[static_cast<std::size_t>(block)].store(false);
    pool.free(owner, held.first(count));
  }
  return met;
}

bool run_workers(BlockPool& pool, const Concurrent& op) {
  const auto workers = static_cast<std::size_t>(op.workers);
  Flags flags(static_cast<std::size_t>(pool.cap()));
  std::vector<std::vector<std::int64_t>> held(
      workers, std::vector<std::int64_t>(static_cast<std::size_t>(op.hold)));
  std::atomic<bool> met = false;
  std::vector<std::jthread> threads;
  threads.reserve(workers);
  for (std::size_t w = 0; w < workers; ++w)
    threads.emplace_back([&, w] {
      if (take_and_free(pool, kNoCache + 1 + w, op.iterations, held[w], flags)) met = true;
    });
  threads.clear();  // joins
  return met;
}

void sort_free_blocks(BlockPool& pool) {
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(pool.available()));
  if (!pool.alloc(kNoCache, blocks)) return;
  std::ranges::sort(blocks, std::greater<>());
  pool.free(kNoCache, blocks);
}

class StackSession final : public DispatchSession<StackSession, Ops> {
 public:
  StackSession(MakePool make, const StorageFormat& storage, QuirkSet<Quirk> quirks)
      : make_(std::move(make)), storage_(storage), quirks_(quirks) {}

  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    if (!pool_ && op.as<New>() == nullptr) return {.error = fail(Code::kPrecondition, "no pool")};
    Observation seen = DispatchSession::apply(op, probe);
    // A storage type that a pool lacks is no fault of it.
    seen.unsupported |= op.as<New>() != nullptr && seen.failed_with(Code::kNotSupported);
    return seen;
  }

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return pool_ ? pool_->broken_invariant() : std::nullopt;
  }

  template <class T>
  [[nodiscard]] Result<BlockPool*> cache_of(const T& op) const {
    if constexpr (requires { has(op.block); })
      if (!has(op.block)) return no_block();
    return pool_.get();
  }
  Result<New::Returns> operator()(const New& op) {
    const Geometry geometry{op.num_layers, op.block_size, op.head_dim, op.max_memory_mb, storage_};
    auto made = probe()([&] { return make_(geometry, quirks_); });
    if (!made) return made.error();
    std::vector<bool> none_out(static_cast<std::size_t>((*made)->cap()));
    pool_ = std::move(*made);
    out_ = std::move(none_out);
    misused_ = false;
    return New::Returns{pool_->cap(), op.num_layers * op.block_size * op.head_dim};
  }
  Result<Alloc::Returns> operator()(const Alloc& /*op*/) {
    std::int64_t block = 0;
    const Status done = probe()([&] { return pool_->alloc(kNoCache, {&block, 1}); });
    if (!done) return done.error();
    out_[static_cast<std::size_t>(block)] = true;
    return Alloc::Returns{block, pool_->used(block)};
  }
  Status operator()(const FreeBlock& op) {
    if (!op.block.has_value() && !quirks_.has(Quirk::kFreeNullAborts)) return {};  // ZF-24
    if (!op.block.has_value() || !has(*op.block)) return no_block();
    probe()([&] { pool_->free(kNoCache, {&*op.block, 1}); });
    const auto block = static_cast<std::size_t>(*op.block);
    misused_ = misused_ || (!out_[block] && quirks_.has(Quirk::kFreeTakesFreeBlocks));
    out_[block] = false;
    return {};
  }
  Result<Drain::Returns> operator()(const Drain& op) {
    const std::int64_t leave = std::max<std::int64_t>(op.leave, 0);
    const std::int64_t taken = std::max<std::int64_t>(pool_->available() - leave, 0);
    std::vector<std::int64_t> blocks(static_cast<std::size_t>(taken));
    const Status done = probe()([&] { return pool_->alloc(kNoCache, blocks); });
    if (!done) return done.error();
    for (const std::int64_t block : blocks) out_[static_cast<std::size_t>(block)] = true;
    return Drain::Returns{taken, blocks.empty() ? -1 : blocks.back()};
  }
  Status operator()(const WriteBlock& op) {
    const Geometry geometry = pool_->geometry();
    const std::int64_t side = geometry.num_layers * geometry.block_size * geometry.head_dim;
    if (!has(op.block) || op.index < 0 || op.index >= side) return no_block();
    if (in_groups(storage_.type)) return fail(Code::kPrecondition, "rows are codes");
    probe()([&] { pool_->write(op.block, op.side, op.index, {&op.value, 1}); });
    return {};
  }
  Result<ReadBlock::Returns> operator()(const ReadBlock& op) {
    if (!has(op.block)) return no_block();
    return probe()([&] { return read_block(*pool_, op.block); });
  }
  Result<Concurrent::Returns> operator()(const Concurrent& op) {
    if (std::min({op.workers, op.iterations, op.hold}) < 0 || op.workers > kMostWorkers ||
        op.iterations > kMostIterations || op.hold > kMostHeld ||
        op.workers * op.iterations * op.hold > kMostAllocs)
      return fail(Code::kPrecondition, "too much work");
    // A block that was freed twice has two owners by chance or not (ZF-24): nothing to compare.
    if (misused_) return fail(Code::kPrecondition, "a block was freed that was not out");
    const bool met = run_workers(*pool_, op);
    sort_free_blocks(*pool_);
    return Concurrent::Returns{pool_->available(), met};
  }

 private:
  [[nodiscard]] bool has(std::int64_t block) const { return block >= 0 && block < pool_->cap(); }
  static Error no_block() { return fail(Code::kPrecondition, "no such block or cell"); }

  MakePool make_;
  StorageFormat storage_;
  QuirkSet<Quirk> quirks_;
  std::unique_ptr<BlockPool> pool_;
  std::vector<bool> out_;  // by block: handed out by an operation
  bool misused_ = false;   // a block was freed that was not out
};

}  // namespace

ReadBlock::Returns read_block(BlockPool& pool, std::int64_t block) {
  const Geometry geometry = pool.geometry();
  const auto side =
      static_cast<std::size_t>(geometry.num_layers * geometry.block_size * geometry.head_dim);
  ReadBlock::Returns seen{std::vector<float>(side), std::vector<float>(side), pool.used(block)};
  pool.read(block, Side::kK, 0, seen.k);
  pool.read(block, Side::kV, 0, seen.v);
  return seen;
}

const CacheKind& stack_kind() {
  static const CacheKind kKind{.contract = "block_pool",
                               .cache = "stack",
                               .doc = "a stack of free blocks (zerfoo BlockPool)",
                               .operations = op_kinds(Ops()),
                               .config = &type_of<Config>(),
                               .quirks = kQuirkRows};
  return kKind;
}

Subject make_subject(std::string variant, std::string doc, MakePool make) {
  return {.kind = &stack_kind(),
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [make = std::move(make)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
            if (!quirks) return quirks.error();
            const auto config = setup.config_as<Config>();
            return std::make_unique<StackSession>(make, config.rows.format(), *quirks);
          }};
}

}  // namespace kvo::block_pool

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_BLOCK_POOL_OPERATIONS)
}  // namespace kvo
