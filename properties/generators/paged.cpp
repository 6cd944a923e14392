// Random scripts for provider.paged.
#include <algorithm>
#include <deque>
#include <map>

#include "properties/generators/generators.hpp"
#include "properties/generators/provider_rows.hpp"
#include "reference/provider/contract_paged.hpp"

namespace kvo::provider {
namespace {

using block_pool::Alloc;
using block_pool::Available;
using block_pool::FreeBlock;
using block_pool::ReadBlock;

// States worth reaching.
constexpr std::string_view kDryHalfWay = "pool exhausted half-way through an append";
constexpr std::string_view kRefusedWhole = "append refused whole by a pool with too few blocks";
constexpr std::string_view kContinued = "append continued after exhaustion";
constexpr std::string_view kAtBoundary = "truncated at a block boundary";
constexpr std::string_view kInsideBlock = "truncated inside a block";
constexpr std::string_view kBeyond = "truncate beyond the length";
constexpr std::string_view kNegative = "negative truncate";
constexpr std::string_view kResurrected = "freed block resurrected by an upward truncate";
constexpr std::string_view kNullEntry = "null entry in the table";
constexpr std::string_view kPinnedByFailure = "layout pinned by a failed append";
constexpr std::string_view kNotPinned = "layout not pinned by a failed append";
constexpr std::string_view kOtherLayout = "other layout after everything was freed";
constexpr std::string_view kManyChannels = "several channels";
constexpr std::string_view kInterleaved = "two caches interleaved on one pool";
constexpr std::string_view kScattered = "table out of order";
constexpr std::string_view kRagged = "layers at different cursors";
constexpr std::string_view kPoisonReplaced = "poisoned row truncated and overwritten";
constexpr std::string_view kVRefused = "V refused";
constexpr std::string_view kNullTensor = "null tensor";
constexpr std::string_view kNoPositions = "update without positions";
constexpr std::string_view kDrained = "drained";
constexpr std::string_view kForeignFree = "block of a cache freed by others";
constexpr std::string_view kTwice = "block freed twice";
constexpr std::string_view kTwoOwners = "block handed out twice";
constexpr std::string_view kBeyondPool = "layer beyond the pool";
constexpr std::string_view kLayerRefused = "layer out of range";
constexpr std::string_view kNoPool = "cache without a pool";

// What the generator knows of a cache, from what was observed.
struct Known {
  std::vector<std::int64_t> cursors = {};
  std::vector<Poison> poison = {};
  std::int64_t channels = 0;                // 0: no successful update yet
  std::optional<std::int64_t> failed = {};  // channels of a failed update, nothing being pinned
  std::vector<std::int64_t> blocks = {};    // as seen last; may be out of date
  bool emptied = false;
  bool dry = false;
  bool stretched = false;  // an upward truncate may have taken old entries back

  [[nodiscard]] std::int64_t longest() const {
    return cursors.empty() ? 0 : *std::ranges::max_element(cursors);
  }
};

class PagedScript final : public OpStream {
 public:
  PagedScript(std::uint64_t seed, Profile profile)
      : draw_(seed), rows_(draw_), documented_(profile == Profile::kDocumented) {
    weights_ = swarm(draw_, {50, 20, 14, 6, 3, 5, 3, 3, 2, 3, 4, 3, 2, 2, 1, 1}, 2);
    most_caches_ = draw_.one_of<std::uint64_t>({1, 1, 2, 3});
    // Many pool layers make few blocks; a cache need not use them all.
    pool_.num_layers = draw_.one_of<std::int64_t>({1, 2, 32, 64, 128});
    pool_.block_size = draw_.one_of<std::int64_t>({1, 2, 2, 3, 4});
    pool_.head_dim = draw_.one_of<std::int64_t>({1, 2, 4, 4, 6});
    if (pool_.num_layers <= 2) pool_.head_dim = draw_.one_of<std::int64_t>({12, 16, 24});
    channels_ = some_channels();
  }

  std::optional<Op> next() override {
    if (!planned_.empty()) {
      Op op = std::move(planned_.front());
      planned_.pop_front();
      return op;
    }
    if (cap_ == 0 && (known_.empty() ? !draw_.percent(1) : draw_.percent(50))) return make_pool();
    if (known_.size() < most_caches_ && (known_.empty() || draw_.percent(20)))
      return make(static_cast<std::int64_t>(known_.size()));
    return random_op(number());
  }

  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    saw_pool(op, seen, labels);
    if (const auto* made = op.as<NewPaged>()) saw_new(*made, seen, labels);
    if (const auto* update = op.as<Update>()) saw_update(*update, seen, labels);
    if (op.as<Get>() != nullptr)
      handles_ += !seen.error && seen.as<Found>().handle.has_value() ? 1 : 0;
    if (const auto* truncate = op.as<Truncate>()) saw_truncate(*truncate, seen, labels);
    if (const auto* table = op.as<Table>()) saw_table(*table, seen, labels);
    if (const auto* reset = op.as<Reset>()) saw_free(reset->cache, seen, labels);
    if (const auto* free = op.as<Free>()) saw_free(free->cache, seen, labels);
  }

 private:
  Op random_op(std::int64_t cache) {
    switch (draw_.weighted(weights_)) {
      case 0:
        return update(cache);
      case 1:
        return Op::of(
            Get{cache, layer(cache), draw_.percent(30) ? std::optional(false) : std::nullopt});
      case 2:
        return Op::of(Truncate{cache, cut(cache)});
      case 3:
        return Op::of(Table{cache});
      case 4:
        return Op::of(Reset{cache});
      case 5:
        return Op::of(Free{cache});
      case 6:
        return Op::of(DrainPool{draw_.between(-1, 4)});
      case 7:
        return Op::of(FreeBlock{draw_.percent(2) ? Nullable<std::int64_t>() : block()});
      case 8:
        return Op::of(Alloc{});
      case 9:
        return Op::of(Available{});
      case 10:
        return Op::of(ReadBlock{block()});
      case 11:
        return Op::of(Reread{draw_.between(0, handles_)});
      case 12:
        return Op::of(SeqLen{cache});
      case 13:
        return Op::of(Poke{draw_.between(0, handles_), draw_.percent(50) ? "k" : "v",
                           draw_.between(0, 8), rows_.cell()});
      case 14:
        return Op::of(NumLayers{cache});
      default:
        return draw_.percent(20) ? make_pool() : make(cache);
    }
  }

  std::int64_t number() {
    return draw_.percent(97) && !known_.empty()
               ? draw_.between(0, static_cast<std::int64_t>(known_.size()) - 1)
               : draw_.between(-1, 4);
  }

  Known* known(const std::optional<std::int64_t>& cache) {
    const auto found = known_.find(cache.value_or(0));
    return found == known_.end() ? nullptr : &found->second;
  }

  std::int64_t layer(std::int64_t cache) {
    const Known* there = known(cache);
    const auto layers = there == nullptr ? 0 : static_cast<std::int64_t>(there->cursors.size());
    return layers > 0 && draw_.percent(96) ? draw_.between(0, layers - 1)
                                           : draw_.one_of<std::int64_t>({layers, layers + 1, -1});
  }

  std::int64_t some_channels() {
    std::vector<std::int64_t> divisors;
    for (std::int64_t c = 1; c <= pool_.head_dim; ++c)
      if (pool_.head_dim % c == 0) divisors.push_back(c);
    return divisors[draw_.below(divisors.size())];
  }

  // Mostly a block that some cache holds or that was handed out.
  std::int64_t block() {
    if (!out_.empty() && draw_.percent(85)) {
      auto at = out_.begin();
      std::advance(at, draw_.below(out_.size()));
      return at->first;
    }
    return draw_.percent(20) ? draw_.one_of<std::int64_t>({-1, cap_}) : draw_.between(0, 5);
  }

  Op make_pool() {
    std::int64_t megabytes = 1;
    if (draw_.percent(2)) megabytes = draw_.between(-1, 0);
    return Op::of(NewPool{pool_.num_layers, pool_.block_size, pool_.head_dim, megabytes});
  }

  Op make(std::int64_t cache) {
    std::int64_t layers = std::min<std::int64_t>(pool_.num_layers, draw_.between(1, 3));
    if (draw_.percent(6)) layers = pool_.num_layers < 4 ? pool_.num_layers + 1 : 0;
    if (draw_.percent(1)) layers = -1;
    return Op::of(NewPaged{cache, layers});
  }

  Op update(std::int64_t cache) {
    const Known* there = known(cache);
    std::int64_t channels = draw_.percent(90) ? channels_ : some_channels();
    if (there != nullptr && there->channels > 0 && draw_.percent(93)) channels = there->channels;
    const std::int64_t size = pool_.block_size;
    const std::int64_t to = layer(cache);
    std::int64_t seq = draw_.between(draw_.percent(8) ? 0 : 1, 2 * size + 1);
    if (draw_.percent(50)) seq = draw_.between(1, std::min<std::int64_t>(size, 2));
    auto [k, v, poisoned] = rows_.rows({channels, seq, pool_.head_dim / channels});
    poisoned_ = poisoned;
    return Op::of(Update{cache, to, std::move(k), std::move(v)});
  }

  // The edges of blocks and of the length, or anything between.
  std::int64_t cut(std::int64_t cache) {
    const Known* there = known(cache);
    const std::int64_t longest = there == nullptr ? 0 : there->longest();
    const std::int64_t size = pool_.block_size;
    const std::int64_t blocks = longest / size;
    switch (draw_.below(10)) {
      case 0:
        return draw_.between(-2, 0);
      case 1:
        return longest + draw_.between(0, 3 * size);
      case 2:
        return longest;
      case 3:
      case 4:
      case 5:
        return size * draw_.between(0, blocks);
      default:
        return draw_.between(0, longest);
    }
  }

  void saw_pool(const Op& op, const Observation& seen, Labels& labels) {
    if (op.as<NewPool>() != nullptr && !seen.error) {
      cap_ = seen.as<NewPool::Returns>().cap;
      out_.clear();
      for (auto& [number, cache] : known_) cache.blocks.clear();
    }
    if (op.as<DrainPool>() != nullptr && !seen.error) labels.insert(kDrained);
    if (op.as<Alloc>() != nullptr && !seen.error) {
      const std::int64_t block = seen.as<Alloc::Returns>().block;
      if (out_.contains(block) && out_[block] && !documented_) labels.insert(kTwoOwners);
      out_[block] = true;
    }
    if (const auto* free = op.as<FreeBlock>(); free != nullptr && !seen.error) {
      if (!free->block.has_value()) return;
      for (const auto& [number, cache] : known_)
        if (std::ranges::find(cache.blocks, *free->block) != cache.blocks.end())
          labels.insert(kForeignFree);
      if (out_.contains(*free->block) && !out_[*free->block]) labels.insert(kTwice);
      out_[*free->block] = false;
    }
  }

  void saw_new(const NewPaged& made, const Observation& seen, Labels& labels) {
    if (cap_ == 0) labels.insert(kNoPool);
    if (seen.error) {
      if (made.num_layers > pool_.num_layers) labels.insert(kBeyondPool);
      return;
    }
    const auto layers = static_cast<std::size_t>(made.num_layers);
    known_[made.cache.value_or(0)] = {.cursors = std::vector<std::int64_t>(layers),
                                      .poison = std::vector<Poison>(layers)};
  }

  void saw_update(const Update& update, const Observation& seen, Labels& labels) {
    Known* there = known(update.cache);
    if (there == nullptr) return;
    if (update.layer < 0 || update.layer >= static_cast<std::int64_t>(there->cursors.size())) {
      labels.insert(kLayerRefused);
      return;
    }
    if (!update.k.has_value() || !update.v.has_value()) labels.insert(kNullTensor);
    if (!update.k.has_value() || update.k->shape.size() != 3) return;
    if (seen.error) {
      saw_refusal(*there, update, *seen.error, labels);
      return;
    }
    const Shape& shape = update.k->shape;
    if (shape[1] == 0) labels.insert(kNoPositions);
    if (shape[1] == 0) return;
    saw_rows(*there, static_cast<std::size_t>(update.layer), shape, labels);
    const std::int64_t number = update.cache.value_or(0);
    if (number != last_updated_ && there->longest() > pool_.block_size && last_updated_ >= 0)
      labels.insert(kInterleaved);
    last_updated_ = number;
  }

  void saw_rows(Known& there, std::size_t layer, const Shape& shape, Labels& labels) {
    if (there.failed && *there.failed != shape[0] && documented_) labels.insert(kNotPinned);
    if (there.emptied && there.channels != shape[0]) labels.insert(kOtherLayout);
    if (shape[0] > 1) labels.insert(kManyChannels);
    if (there.dry) labels.insert(kContinued);
    const std::int64_t start = there.cursors[layer];
    there.cursors[layer] += shape[1];
    there.channels = shape[0];
    there.failed = std::nullopt;
    there.emptied = there.dry = false;
    for (const std::int64_t cursor : there.cursors)
      if (cursor != there.cursors[layer]) labels.insert(kRagged);
    if (there.poison[layer].overwritten(start, start + shape[1])) labels.insert(kPoisonReplaced);
    if (poisoned_) there.poison[layer].put(start, start + shape[1]);
  }

  void saw_refusal(Known& there, const Update& update, const Error& error, Labels& labels) {
    const Shape& shape = update.k->shape;
    if (error.detail == "layer beyond the pool") labels.insert(kBeyondPool);
    if (error.code == Code::kExhausted) {
      there.dry = true;
      if (documented_) labels.insert(kRefusedWhole);
      planned_.push_back(Op::of(Table{update.cache}));
      const bool in_last = there.longest() % pool_.block_size != 0;
      if (!documented_ && in_last) labels.insert(kDryHalfWay);
    } else if (update.v.has_value() && update.v->shape != shape && error.detail != "size") {
      labels.insert(kVRefused);
    }
    if (there.channels > 0) return;
    if (error.detail == "layout" && there.failed) labels.insert(kPinnedByFailure);
    if (error.detail != "size" && !there.failed) there.failed = shape[0];
  }

  void saw_table(const Table& table, const Observation& seen, Labels& labels) {
    Known* there = known(table.cache);
    if (there == nullptr || seen.error) return;
    const auto& returns = seen.as<Table::Returns>();
    there->blocks.clear();
    bool null_entry = false;
    for (const Nullable<std::int64_t>& block : returns.blocks) {
      null_entry = null_entry || !block.has_value();
      if (!block.has_value()) continue;
      if (!there->blocks.empty() && *block != there->blocks.back() + 1) labels.insert(kScattered);
      there->blocks.push_back(*block);
      out_[*block] = true;
    }
    const auto held = static_cast<std::int64_t>(returns.blocks.size()) * pool_.block_size;
    if (null_entry) labels.insert(kNullEntry);
    if (there->stretched && held >= there->longest() + pool_.block_size)
      labels.insert(null_entry ? kNullEntry : kResurrected);
    if (there->dry && held >= there->longest() + pool_.block_size && !documented_)
      labels.insert(kDryHalfWay);
  }

  void saw_truncate(const Truncate& truncate, const Observation& seen, Labels& labels) {
    Known* there = known(truncate.cache);
    if (there == nullptr) return;
    const std::int64_t n = std::max<std::int64_t>(truncate.n, 0);
    if (truncate.n < 0) labels.insert(kNegative);
    if (n > there->longest()) labels.insert(kBeyond);
    if (seen.error) return;
    if (n > 0 && n < there->longest())
      labels.insert(n % pool_.block_size == 0 ? kAtBoundary : kInsideBlock);
    for (std::int64_t& cursor : there->cursors) cursor = std::min(cursor, n);
    for (Poison& poison : there->poison) poison.cut(n);
    there->dry = false;
    if (n == 0) there->emptied = there->emptied || there->channels > 0;
    if (n > there->longest() && !documented_) {
      there->stretched = true;
      planned_.push_back(Op::of(Table{truncate.cache}));
    } else {
      there->stretched = false;
    }
  }

  void saw_free(const std::optional<std::int64_t>& cache, const Observation& seen, Labels& labels) {
    Known* there = known(cache);
    if (there == nullptr) return;
    if (seen.error) labels.insert(kNullEntry);
    if (seen.error) return;
    for (const std::int64_t block : there->blocks) out_[block] = false;
    there->blocks.clear();
    std::ranges::fill(there->cursors, 0);
    for (Poison& poison : there->poison) poison.cut(0);
    there->emptied = there->channels > 0;
    there->dry = there->stretched = false;
  }

  Draw draw_;
  RowDraw rows_;
  bool documented_;
  std::vector<std::uint64_t> weights_;
  std::uint64_t most_caches_ = 1;
  block_pool::Geometry pool_;
  std::int64_t channels_ = 1;  // of most updates
  bool poisoned_ = false;      // the rows of the update under way
  std::int64_t cap_ = 0;       // 0: no pool yet
  std::map<std::int64_t, Known> known_;
  std::map<std::int64_t, bool> out_;  // blocks seen, and whether they were out when last seen
  std::int64_t last_updated_ = -1;
  std::int64_t handles_ = 0;
  std::deque<Op> planned_;
};

GeneratedCase make_case(std::uint64_t seed, Profile profile) {
  return {.setup = {.profile = profile}, .ops = std::make_unique<PagedScript>(seed, profile)};
}

Generator make_generator() {
  const std::vector<std::string_view> both{kContinued,  kAtBoundary,  kInsideBlock,    kBeyond,
                                           kNegative,   kOtherLayout, kManyChannels,   kInterleaved,
                                           kScattered,  kRagged,      kPoisonReplaced, kVRefused,
                                           kNullTensor, kNoPositions, kDrained,        kForeignFree,
                                           kTwice,      kBeyondPool,  kLayerRefused,   kNoPool};
  Generator generator{
      .kind = &paged_kind(), .make = make_case, .original_labels = both, .documented_labels = both};
  generator.original_labels.insert(
      generator.original_labels.end(),
      {kDryHalfWay, kResurrected, kNullEntry, kPinnedByFailure, kTwoOwners});
  generator.documented_labels.insert(generator.documented_labels.end(),
                                     {kRefusedWhole, kNotPinned});
  return generator;
}

}  // namespace
}  // namespace kvo::provider

namespace kvo {

Generator paged_generator() {
  return provider::make_generator();
}

}  // namespace kvo
