// Requests as operations of provider.paged: all slots share one pool, which is too small for all of
// them at their longest. A sequence ends by giving its blocks back.
#include <algorithm>

#include "properties/provider/lowering.hpp"
#include "properties/provider/shared_lowering.hpp"
#include "reference/provider/paged_operations.hpp"

namespace kvo::provider {
namespace {

using replay::LoweringInput;

class PagedStream final : public KindStream<PagedStream, PagedOps> {
 public:
  explicit PagedStream(const LoweringInput& input) : KindStream(input) {
    const std::int64_t width = policy().num_heads * policy().head_dim;
    const std::int64_t block_bytes =
        2 * policy().num_layers * policy().block_size * width * std::int64_t{sizeof(float)};
    blocks_ = blocks_wanted(input);
    constexpr std::int64_t kMegabyte = std::int64_t{1} << 20U;
    emit(NewPool{policy().num_layers, policy().block_size, width,
                 (blocks_ * block_bytes + kMegabyte - 1) / kMegabyte});
    // Pools come in whole megabytes; the blocks that are too many are taken out of it.
    emit(DrainPool{blocks_});
    for (std::int64_t slot = 0; slot < input.schedule.max_running; ++slot)
      emit(NewPaged{slot, policy().num_layers});
  }

  static std::optional<std::int64_t> appends_to(const Update& op) { return op.cache; }
  template <OneOf<NewPool, NewPaged, Get, Reread, Poke, Truncate, Reset, Free, SeqLen, NumLayers,
                  Table, block_pool::Available, block_pool::Alloc, block_pool::FreeBlock,
                  block_pool::ReadBlock, DrainPool>
                T>
  static std::optional<std::int64_t> appends_to(const T& /*no append*/) {
    return std::nullopt;
  }

 protected:
  [[nodiscard]] Shape rows(std::int64_t tokens) const override {
    return {policy().num_heads, tokens, policy().head_dim};
  }
  // One block after the other, whoever holds it.
  void ask(std::int64_t slot) override {
    emit(Table{slot});
    emit(block_pool::Available{});
    emit(block_pool::ReadBlock{asked_++ % blocks_});
  }
  void end(std::int64_t slot) override { emit(Free{slot}); }

 private:
  // Blocks for the longest sequences of as many requests as there are slots, times the policy's
  // percentage; at least those of the longest one.
  static std::int64_t blocks_wanted(const LoweringInput& input) {
    std::vector<std::int64_t> blocks;
    for (const replay::Request& request : input.requests) {
      const std::int64_t tokens = replay::scaled(request.input_tokens, input.schedule.scale) +
                                  replay::scaled(request.output_tokens, input.schedule.scale) +
                                  input.schedule.draft_tokens;
      blocks.push_back(replay::scaled(tokens, input.policy.block_size));
    }
    std::ranges::sort(blocks, std::greater());
    const auto slots =
        std::min(blocks.size(), static_cast<std::size_t>(input.schedule.max_running));
    std::int64_t most = 0;
    for (std::size_t i = 0; i < slots; ++i) most += blocks[i];
    const std::int64_t longest = blocks.empty() ? 1 : blocks.front();
    return std::max(longest, most * input.policy.pool_percent / 100);
  }

  std::int64_t blocks_ = 1;
  std::int64_t asked_ = 0;
};

}  // namespace

replay::Lowering paged_lowering() {
  return {.kind = &paged_kind(),
          .setup = [](const LoweringInput& /*input*/) { return Setup{}; },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<PagedStream>(input);
          }};
}

}  // namespace kvo::provider
