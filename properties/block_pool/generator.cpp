// Random scripts for block_pool.stack.
#include "properties/campaign/generator.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/block_pool/operations.hpp"

namespace kvo::block_pool {
namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(Label, std::uint8_t, kPoolExhausted, kDrained, kBlockFreedTwice,
                              kBlockFreedThatWasNeverHandedOut, kBlockHandedOutTwice,
                              kMoreAvailableThanThereAre, kOldCountOfUsedPositionsHandedOut,
                              kWrittenBlockHandedOutAgain, kNullBlock, kNoSuchBlockOrCell,
                              kSizeRefused, kBudgetTooSmall, kSizeProductOverflows, kPoolOfOneBlock,
                              kPoolReplaced, kThreadsOnOnePool, kBeyondAThousandBlocks,
                              kBlockBeyondTwoBytes, kBlockOfAThousandCells, kUsedBeyondFourBits,
                              kUsedBeyondOneByte, kReusedBeyondOneByte, kCountedBeyondTwoBytes,
                              kNarrowCellWritten, kWriteIntoCodesRefused, kPoolOfCodes)

// What the script knows of a block, from what was observed.
struct Known {
  bool out = false;
  bool written = false;
  std::uint64_t times_out = 0;
};

class StackScript final : public ScriptGenerator<StackScript, Ops, Label> {
  using S = StackScript;

 public:
  StackScript(const CaseTerms& terms, const StorageFormat& storage)
      : ScriptGenerator(terms),
        documented_(terms.profile == Profile::kDocumented),
        storage_(storage) {}

  std::optional<Op> choose() override {
    return cap_ == 0 && !has_plan() ? make() : ScriptGenerator::choose();
  }

  // Steps.
  Op alloc() {
    // In a long life the blocks of a pool that ran dry come back.
    if (is_long() && dry_ && draw().percent(90)) return free_block();
    return Op::of(Alloc{});
  }
  Op free_block() {
    return Op::of(FreeBlock{draw().percent(2) ? Nullable<std::int64_t>() : block()});
  }
  Op drain() {
    if (is_long()) return alloc();
    if (is_large() && draw().percent(60)) return Op::of(Drain{draw().edge(4, cap_)});
    return Op::of(Drain{draw().percent(90) ? draw().between(0, 3) : draw().between(-1, cap_)});
  }
  Op set_used() {
    const std::int64_t most = geometry_.block_size;
    return Op::of(SetUsed{block(), draw().percent(20) ? most : draw().between(0, most)});
  }
  Op write() {
    const std::int64_t side = geometry_.num_layers * geometry_.block_size * geometry_.head_dim;
    const auto edge = draw().one_of<std::int64_t>({0, geometry_.head_dim, side - 1});
    const std::int64_t index = draw().percent(4)    ? draw().one_of<std::int64_t>({-1, side})
                               : draw().percent(50) ? edge
                                                    : draw().between(0, side - 1);
    return Op::of(WriteBlock{block(), draw().percent(50) ? Side::kK : Side::kV, index,
                             static_cast<float>(++written_)});
  }
  Op read_block() { return Op::of(ReadBlock{block()}); }
  Op available() { return Op::of(Available{}); }
  Op cap() { return Op::of(Cap{}); }
  Op block_size() { return Op::of(BlockSize{}); }
  Op concurrent() {
    if (is_long()) return alloc();
    return Op::of(Concurrent{2, draw().between(0, 3), draw().between(0, 3)});
  }
  Op make() {
    if (is_long()) return make_to_last();
    if (is_large() && draw().percent(80)) return make_large();
    constexpr std::int64_t kBudget = 1 << 20;
    constexpr std::int64_t kMost = 33;
    std::int64_t positions = draw().size(1, kMost);
    std::int64_t dim = draw().size(1, kMost);
    std::int64_t layers = draw().size(1, kMost);
    std::int64_t megabytes = 1;
    // Thousands of blocks would only cost time; one block may fill the budget, or be too much.
    constexpr std::int64_t kMostBlocks = 2'000;
    const auto row_bytes =
        static_cast<std::int64_t>(stored_bytes(storage_, static_cast<std::size_t>(dim)));
    const std::int64_t position_bytes = 2 * positions * row_bytes;
    layers = std::max(layers, kBudget / kMostBlocks / position_bytes + 1);
    if (draw().percent(6)) layers = kBudget / position_bytes + draw().between(0, 1);
    for (std::int64_t* size : {&layers, &positions, &dim, &megabytes})
      if (draw().percent(2)) *size = draw().between(-1, 0);
    if (draw().percent(2)) layers = draw().one_of<std::int64_t>({1LL << 20, 1LL << 61});
    return Op::of(New{layers, positions, dim, megabytes});
  }

  static const CacheKind& order_kind() { return stack_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::seen_count>("seen_blocks"),
        order_word<&S::seen_block>("seen"),
    });
    return kWords;
  }
  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {90, "alloc", &S::alloc, true},
      {75, "free_block", &S::free_block, true},
      {12, "drain", &S::drain},
      {36, "set_used", &S::set_used},
      {36, "write_block", &S::write},
      {36, "read_block", &S::read_block},
      {24, "available", &S::available},
      {3, "cap", &S::cap},
      {3, "block_size", &S::block_size},
      {6, "new", &S::make},
      {1, "concurrent", &S::concurrent},
  });

  // What became of an operation.
  void observe(const New& made, const Observation& seen) {
    if (seen.error) {
      if (seen.error->detail == "non_positive") reach(Label::kSizeRefused);
      if (seen.error->reason == "budget_too_small") reach(Label::kBudgetTooSmall);
      if (seen.error->detail == "a size product overflows") reach(Label::kSizeProductOverflows);
      return;
    }
    if (cap_ > 0) reach(Label::kPoolReplaced);
    cap_ = seen.as<New::Returns>().cap;
    constexpr std::int64_t kThousand = 1'024;
    if (cap_ > kThousand) reach(Label::kBeyondAThousandBlocks);
    constexpr std::int64_t kBytesOfAMegabyte = 1 << 20;
    spend(static_cast<std::uint64_t>(made.max_memory_mb * kBytesOfAMegabyte) / sizeof(float));
    dry_ = false;
    if (cap_ == 1) reach(Label::kPoolOfOneBlock);
    if (in_groups(storage_.type)) reach(Label::kPoolOfCodes);
    geometry_ = {made.num_layers, made.block_size, made.head_dim, made.max_memory_mb};
    blocks_.clear();
    seen_.clear();
    drained_ = false;
  }
  void observe(const Alloc& /*op*/, const Observation& seen) {
    if (seen.failed_with(Code::kExhausted)) reach(Label::kPoolExhausted);
    dry_ = seen.failed_with(Code::kExhausted);
    if (seen.error) return;
    const auto& got = seen.as<Alloc::Returns>();
    Known& known = remember(got.block);
    if (known.out && !documented_) reach(Label::kBlockHandedOutTwice);
    if (known.written) reach(Label::kWrittenBlockHandedOutAgain);
    if (got.used > 0) reach(Label::kOldCountOfUsedPositionsHandedOut);
    known.out = true;
    constexpr std::int64_t kOneByte = 0xFF;
    constexpr std::int64_t kTwoBytes = 0xFFFF;
    if (got.block > kTwoBytes) reach(Label::kBlockBeyondTwoBytes);
    if (++known.times_out > kOneByte) reach(Label::kReusedBeyondOneByte);
  }
  void observe(const FreeBlock& free, const Observation& seen) {
    if (!free.block.has_value()) return reach(Label::kNullBlock);
    if (seen.error) return reach(Label::kNoSuchBlockOrCell);
    const auto known = blocks_.find(*free.block);
    if (known == blocks_.end()) {
      if (!drained_) reach(Label::kBlockFreedThatWasNeverHandedOut);
      return;
    }
    if (!known->second.out) reach(Label::kBlockFreedTwice);
    dry_ = false;
    known->second.out = false;
  }
  void observe(const Drain& drain, const Observation& seen) {
    if (seen.error) return;
    if (drain.leave <= 0) reach(Label::kDrained);
    spend(static_cast<std::uint64_t>(kDrainCost * seen.as<Drain::Returns>().taken));
    if (const std::int64_t last = seen.as<Drain::Returns>().last; last >= 0)
      remember(last).out = true;
    drained_ = true;
  }
  void observe(const WriteBlock& write, const Observation& seen) {
    if (seen.error && seen.error->detail == "rows are codes")
      return reach(Label::kWriteIntoCodesRefused);
    if (seen.error) return reach(Label::kNoSuchBlockOrCell);
    if (storage_.type != StorageType::kF32) reach(Label::kNarrowCellWritten);
    blocks_[write.block].written = true;
  }
  void observe(const Available& /*op*/, const Observation& seen) {
    if (!seen.error && seen.as<Number>().n > cap_) reach(Label::kMoreAvailableThanThereAre);
  }
  void observe(const Concurrent& /*op*/, const Observation& seen) {
    if (seen.error) return;
    reach(Label::kThreadsOnOnePool);
    spend(static_cast<std::uint64_t>(kThreadsCost + kDrainCost * cap_));  // sorted afterwards
  }
  void observe(const ReadBlock& /*op*/, const Observation& seen) {
    if (seen.error) return;
    const auto& read = seen.as<ReadBlock::Returns>();
    constexpr std::int64_t kThousand = 1'024;
    constexpr std::int64_t kFourBits = 0xF;
    constexpr std::int64_t kOneByte = 0xFF;
    spend(static_cast<std::uint64_t>(kReadCost * std::ssize(read.k)));
    if (std::ssize(read.k) > kThousand) reach(Label::kBlockOfAThousandCells);
    if (read.used > kFourBits) reach(Label::kUsedBeyondFourBits);
    if (read.used > kOneByte) reach(Label::kUsedBeyondOneByte);
  }

 private:
  static constexpr std::int64_t kDrainCost = 16;  // of a block, in cells
  static constexpr std::int64_t kReadCost = 8;    // of a cell of K
  static constexpr std::int64_t kThreadsCost = 10'000;

  // Many blocks, or few large ones.
  Op make_large() {
    if (draw().percent(10)) return Op::of(New{1, 1, draw().between(1, 3), draw().between(1, 2)});
    const std::int64_t positions = draw().edge(4, 1'025);
    const std::int64_t dim = draw().edge(4, 257);
    return Op::of(New{draw().size(1, 9), positions, dim, draw().between(1, 8)});
  }
  // Small blocks, so many that most are taken once, or so few that they come again and again.
  Op make_to_last() {
    if (cap_ > 0 && draw().percent(97)) return alloc();
    if (draw().percent(50)) return Op::of(New{1, 1, 1, 1});
    plan(Drain{draw().between(1, 100)});
    return Op::of(New{draw().between(1, 4), draw().between(4, 16), 16, 1});
  }
  // Mostly one that was handed out, also if it was given back.
  std::int64_t block() {
    if (!seen_.empty() && draw().percent(90)) return seen_[draw().below(seen_.size())];
    if (draw().percent(20)) return draw().one_of<std::int64_t>({-1, cap_});
    return draw().between(0, std::min<std::int64_t>(cap_ - 1, 8));
  }
  Known& remember(std::int64_t block) {
    const auto [entry, is_new] = blocks_.try_emplace(block);
    if (is_new) seen_.push_back(block);
    return entry->second;
  }

  bool documented_;
  StorageFormat storage_;
  std::int64_t cap_ = 0;  // 0: no pool yet
  Geometry geometry_;
  std::map<std::int64_t, Known> blocks_;
  // ---- For orders ----
  [[nodiscard]] std::int64_t seen_count() const { return std::ssize(seen_); }
  [[nodiscard]] std::int64_t seen_block(std::int64_t index) const {
    return index < seen_count() ? seen_[static_cast<std::size_t>(index)] : 0;
  }

  std::vector<std::int64_t> seen_;  // blocks handed out
  bool drained_ = false;            // more blocks are out than seen_ knows
  bool dry_ = false;                // the last alloc found no block
  std::int64_t written_ = 0;
};

// Every fourth case stores rows that are no f32.
GeneratedCase stack_case(const CaseTerms& terms) {
  Draw draw = storage_draw(terms.seed);
  Setup setup{.profile = terms.profile};
  StorageFormat storage;
  if (terms.scale != Scale::kLong && draw.percent(25)) {
    storage = draw_narrow_storage(draw);
    Config config;
    set_storage(draw, config.rows, storage);
    setup.config = Record::of(config);
  }
  return {.setup = std::move(setup), .ops = std::make_unique<StackScript>(terms, storage)};
}

}  // namespace

std::vector<Generator> generators() {
  return {with_orders<StackScript>(
      script_generator<Label>(stack_kind(), stack_case,
                              {Label::kBlockHandedOutTwice, Label::kMoreAvailableThanThereAre,
                               Label::kOldCountOfUsedPositionsHandedOut},
                              {}))};
}

}  // namespace kvo::block_pool
