// Random scripts for block_pool.stack.
#include <algorithm>
#include <map>

#include "properties/generators/generators.hpp"
#include "reference/block_pool/contract.hpp"

namespace kvo::block_pool {
namespace {

// States worth reaching.
constexpr std::string_view kDry = "pool exhausted";
constexpr std::string_view kDrained = "drained";
constexpr std::string_view kTwice = "block freed twice";
constexpr std::string_view kNeverOut = "block freed that was never handed out";
constexpr std::string_view kTwoOwners = "block handed out twice";
constexpr std::string_view kAboveCap = "more available than there are";
constexpr std::string_view kOldUsed = "old count of used positions handed out";
constexpr std::string_view kReused = "written block handed out again";
constexpr std::string_view kNullBlock = "null block";
constexpr std::string_view kNoBlock = "no such block or cell";
constexpr std::string_view kNonPositive = "size refused";
constexpr std::string_view kTooSmall = "budget too small";
constexpr std::string_view kOverflow = "size product overflows";
constexpr std::string_view kOneBlock = "pool of one block";
constexpr std::string_view kReplaced = "pool replaced";
constexpr std::string_view kConcurrent = "threads on one pool";

// What the generator knows of a block, from what was observed.
struct Known {
  bool out = false;
  bool written = false;
};

class StackScript final : public OpStream {
 public:
  StackScript(std::uint64_t seed, Profile profile)
      : draw_(seed), documented_(profile == Profile::kDocumented) {
    weights_ = swarm(draw_, {30, 25, 4, 12, 12, 12, 8, 1, 1, 2}, 2);
  }

  std::optional<Op> next() override {
    if (cap_ == 0) return make();
    constexpr std::uint64_t kConcurrentPermille = 3;
    if (draw_.below(1000) < kConcurrentPermille)
      return Op::of(Concurrent{2, draw_.between(0, 3), draw_.between(0, 3)});
    switch (draw_.weighted(weights_)) {
      case 0:
        return Op::of(Alloc{});
      case 1:
        return Op::of(FreeBlock{draw_.percent(2) ? Nullable<std::int64_t>() : block()});
      case 2:
        return Op::of(Drain{draw_.percent(90) ? draw_.between(0, 3) : draw_.between(-1, cap_)});
      case 3:
        return Op::of(SetUsed{block(), draw_.between(0, geometry_.block_size)});
      case 4:
        return write();
      case 5:
        return Op::of(ReadBlock{block()});
      case 6:
        return Op::of(Available{});
      case 7:
        return Op::of(Cap{});
      case 8:
        return Op::of(BlockSize{});
      default:
        return make();
    }
  }

  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    if (seen.failed_with(Code::kExhausted)) labels.insert(kDry);
    if (const auto* made = op.as<New>()) saw_new(*made, seen, labels);
    if (op.as<Alloc>() != nullptr && !seen.error) saw_alloc(seen.as<Alloc::Returns>(), labels);
    if (const auto* free = op.as<FreeBlock>()) saw_free(*free, seen, labels);
    if (const auto* drain = op.as<Drain>(); drain != nullptr && !seen.error) {
      if (drain->leave <= 0) labels.insert(kDrained);
      if (const std::int64_t last = seen.as<Drain::Returns>().last; last >= 0)
        remember(last).out = true;
      drained_ = true;
    }
    if (const auto* write = op.as<WriteBlock>()) {
      if (seen.error) labels.insert(kNoBlock);
      if (!seen.error) blocks_[write->block].written = true;
    }
    if (op.as<Available>() != nullptr && !seen.error && seen.as<Number>().n > cap_)
      labels.insert(kAboveCap);
    if (op.as<Concurrent>() != nullptr && !seen.error) labels.insert(kConcurrent);
  }

 private:
  Op make() {
    // Few large blocks, or some hundreds of small ones; thousands would only cost time.
    std::int64_t layers = draw_.one_of<std::int64_t>({8, 16, 32});
    std::int64_t positions = draw_.between(2, 4);
    std::int64_t dim = draw_.one_of<std::int64_t>({4, 6, 8});
    std::int64_t megabytes = 1;
    if (draw_.percent(25)) {
      layers = draw_.one_of<std::int64_t>({16, 32, 64});
      positions = draw_.one_of<std::int64_t>({16, 32});
      dim = draw_.one_of<std::int64_t>({16, 32, 64, 96});
    }
    for (std::int64_t* size : {&layers, &positions, &dim, &megabytes})
      if (draw_.percent(2)) *size = draw_.between(-1, 0);
    if (draw_.percent(2)) layers = draw_.one_of<std::int64_t>({1LL << 20, 1LL << 61});
    return Op::of(New{layers, positions, dim, megabytes});
  }

  Op write() {
    const std::int64_t side = geometry_.num_layers * geometry_.block_size * geometry_.head_dim;
    const std::int64_t edge = draw_.one_of<std::int64_t>({0, geometry_.head_dim, side - 1});
    const std::int64_t index = draw_.percent(4)    ? draw_.one_of<std::int64_t>({-1, side})
                               : draw_.percent(50) ? edge
                                                   : draw_.between(0, side - 1);
    return Op::of(WriteBlock{block(), draw_.percent(50) ? Side::kK : Side::kV, index,
                             static_cast<float>(++written_)});
  }

  // Mostly one that was handed out, also if it was given back.
  std::int64_t block() {
    if (!seen_.empty() && draw_.percent(90)) return seen_[draw_.below(seen_.size())];
    if (draw_.percent(20)) return draw_.one_of<std::int64_t>({-1, cap_});
    return draw_.between(0, std::min<std::int64_t>(cap_ - 1, 8));
  }

  Known& remember(std::int64_t block) {
    const auto [entry, is_new] = blocks_.try_emplace(block);
    if (is_new) seen_.push_back(block);
    return entry->second;
  }

  void saw_new(const New& made, const Observation& seen, Labels& labels) {
    if (seen.error) {
      if (seen.error->detail == "non_positive") labels.insert(kNonPositive);
      if (seen.error->reason == "budget_too_small") labels.insert(kTooSmall);
      if (seen.error->detail == "a size product overflows") labels.insert(kOverflow);
      return;
    }
    if (cap_ > 0) labels.insert(kReplaced);
    cap_ = seen.as<New::Returns>().cap;
    if (cap_ == 1) labels.insert(kOneBlock);
    geometry_ = {made.num_layers, made.block_size, made.head_dim, made.max_memory_mb};
    blocks_.clear();
    seen_.clear();
    drained_ = false;
  }

  void saw_alloc(const Alloc::Returns& got, Labels& labels) {
    Known& known = remember(got.block);
    if (known.out && !documented_) labels.insert(kTwoOwners);
    if (known.written) labels.insert(kReused);
    if (got.used > 0) labels.insert(kOldUsed);
    known.out = true;
  }

  void saw_free(const FreeBlock& free, const Observation& seen, Labels& labels) {
    if (!free.block.has_value()) labels.insert(kNullBlock);
    if (!free.block.has_value()) return;
    if (seen.error) {
      labels.insert(kNoBlock);
      return;
    }
    const auto known = blocks_.find(*free.block);
    if (known == blocks_.end() && !drained_) labels.insert(kNeverOut);
    if (known == blocks_.end()) return;
    if (!known->second.out) labels.insert(kTwice);
    known->second.out = false;
  }

  Draw draw_;
  bool documented_;
  std::vector<std::uint64_t> weights_;
  std::int64_t cap_ = 0;  // 0: no pool yet
  Geometry geometry_;
  std::map<std::int64_t, Known> blocks_;
  std::vector<std::int64_t> seen_;  // the keys of blocks_
  bool drained_ = false;            // more blocks are out than seen_ knows
  std::int64_t written_ = 0;
};

GeneratedCase make_case(std::uint64_t seed, Profile profile) {
  return {.setup = {.profile = profile}, .ops = std::make_unique<StackScript>(seed, profile)};
}

Generator make_generator() {
  const std::vector<std::string_view> both{
      kDry,         kDrained,  kTwice,    kNeverOut, kReused,   kNullBlock, kNoBlock,
      kNonPositive, kTooSmall, kOverflow, kOneBlock, kReplaced, kConcurrent};
  Generator generator{
      .kind = &stack_kind(), .make = make_case, .original_labels = both, .documented_labels = both};
  generator.original_labels.insert(generator.original_labels.end(),
                                   {kTwoOwners, kAboveCap, kOldUsed});
  return generator;
}

}  // namespace
}  // namespace kvo::block_pool

namespace kvo {

Generator block_pool_generator() {
  return block_pool::make_generator();
}

}  // namespace kvo
