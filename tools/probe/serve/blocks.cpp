// Serves `prefix.blocks`: tables of blocks, found by what they contain. The rows are stored here.
#include "reference/prefix/blocks.hpp"

#include <map>
#include <utility>

#include "tools/probe/serve/cache.hpp"

namespace kvo::tools {
namespace {

constexpr auto kBlockTokens = static_cast<std::size_t>(ServedCache::kBlock);

class ServedBlocks final : public ServedCache {
 public:
  ServedBlocks(std::unique_ptr<CalledCache> cache, const ServedSize& size, std::int64_t blocks)
      : cache_(std::move(cache)),
        size_(size),
        rows_(static_cast<std::size_t>(blocks) * kBlockTokens) {}

  [[nodiscard]] Result<Begun> begin(const ProbeTokens& prompt, const RowSharing& sharing) override {
    constexpr std::int64_t kNumbers = 4096;
    const std::int64_t request = next_++ % kNumbers;
    prefix::MakeRequest make{.request = request,
                             .tokens = {prompt.begin(), prompt.end()},
                             .skip_reading = !sharing.shares};
    if (!sharing.salt.empty()) make.salt = sharing.salt;
    if (const auto made = (*cache_)(std::move(make)); !made) return made.error();
    const auto hit = (*cache_)(prefix::MatchBlocks{.request = request});
    if (!hit) return hit.error();
    if (hit->length < 0 || static_cast<std::size_t>(hit->length) >= prompt.size())
      return fail(Code::kOther, "match: a length beyond the prompt");
    hit_ = hit->blocks;
    known_[request] = prompt.size();
    return Begun{.sequence = request, .reused = static_cast<std::size_t>(hit->length)};
  }
  [[nodiscard]] Status start(std::int64_t sequence, std::span<const probe::Token> tokens,
                             std::size_t first) override {
    if (first >= known_.at(sequence)) {
      const auto added =
          (*cache_)(prefix::Append{.request = sequence, .tokens = {tokens.begin(), tokens.end()}});
      if (!added) return added.error();
    }
    prefix::Allocate allocate{.request = sequence,
                              .tokens = static_cast<std::int64_t>(tokens.size())};
    if (!hit_.empty()) {
      allocate.hit_tokens = std::ssize(hit_) * kBlock;
      allocate.hit_blocks = std::exchange(hit_, {});
    }
    const auto allotted = (*cache_)(std::move(allocate));
    if (!allotted) return allotted.error();
    end_ = first + tokens.size();
    first_ = first;
    const auto set = (*cache_)(prefix::SetRequest{.request = sequence,
                                                  .computed = static_cast<std::int64_t>(end_),
                                                  .status = prefix::RequestStatus::kRunning});
    if (!set) return set.error();
    auto table = (*cache_)(prefix::ShowTable{.request = sequence});
    if (!table) return table.error();
    table_ = std::move(table->blocks);
    for (const std::int64_t block : table_)
      if (block < 0 || static_cast<std::size_t>(block) >= rows_.size() / kBlockTokens)
        return fail(Code::kOther, "table: block " + std::to_string(block));
    if (table_.size() * kBlockTokens < end_) return fail(Code::kOther, "table: too few blocks");
    return {};
  }
  [[nodiscard]] Status put(std::size_t layer, std::span<const HeadCells> rows) override {
    for (std::size_t i = 0; i < rows.size(); ++i) rows_[slot_of(first_ + i)][layer] = rows[i];
    return {};
  }
  [[nodiscard]] Result<SeenRows> get(std::size_t layer) override {
    SeenRows seen;
    seen.rows.reserve(end_);
    for (std::size_t position = 0; position < end_; ++position)
      seen.rows.push_back(rows_[slot_of(position)][layer]);
    for (std::size_t token = first_; token < end_; ++token)
      for (std::size_t row = 0; row < end_; ++row)
        seen.sees.push_back(size_.sees(token, row) ? 1 : 0);
    return seen;
  }
  void end(std::int64_t sequence, const ProbeTokens& /*text*/) override {
    (void)(*cache_)(prefix::FreeRequest{.request = sequence});
    known_.erase(sequence);
    hit_.clear();
  }

 private:
  [[nodiscard]] std::size_t slot_of(std::size_t position) const {
    return static_cast<std::size_t>(table_[position / kBlockTokens]) * kBlockTokens +
           position % kBlockTokens;
  }

  std::unique_ptr<CalledCache> cache_;
  ServedSize size_;
  std::vector<ServedRow> rows_;                // [block][token of a block]
  std::map<std::int64_t, std::size_t> known_;  // by sequence: tokens that the cache knows
  std::int64_t next_ = 0;
  std::vector<std::int64_t> hit_;    // of the sequence that began last, until its first pass
  std::vector<std::int64_t> table_;  // of the pass
  std::size_t first_ = 0;            // position of the pass
  std::size_t end_ = 0;              // position after it
};

}  // namespace

Result<std::unique_ptr<ServedCache>> open_served_blocks(const Subject& subject,
                                                        const ServedSize& size) {
  const std::int64_t blocks = size.rows / ServedCache::kBlock + 1;  // block 0 holds nothing
  prefix::BlocksConfig config{
      .num_blocks = blocks, .block_size = ServedCache::kBlock, .max_model_len = size.rows};
  if (size.window) {
    config.attention = prefix::Attention::kSlidingWindow;
    config.window = static_cast<std::int64_t>(*size.window);
  }
  auto cache = CalledCache::open(subject, Record::of(config));
  if (!cache) return cache.error();
  return std::make_unique<ServedBlocks>(*std::move(cache), size, blocks);
}

}  // namespace kvo::tools
