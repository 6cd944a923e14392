// Requests as operations of provider.paged: all slots share one pool, which is too small for all of
// them at their longest. A sequence ends by giving its blocks back.
#include <algorithm>

#include "reference/provider/contract_paged.hpp"
#include "traces/lower_kinds.hpp"
#include "traces/lower_provider.hpp"

namespace kvo::traces {
namespace {

class PagedOps final : public ProviderOps {
 public:
  explicit PagedOps(const LoweringInput& input) : ProviderOps(input) {
    const std::int64_t width = policy().num_heads * policy().head_dim;
    const std::int64_t block_bytes =
        2 * policy().num_layers * policy().block_size * width * std::int64_t{sizeof(float)};
    const std::int64_t blocks = blocks_wanted(input);
    constexpr std::int64_t kMegabyte = std::int64_t{1} << 20U;
    emit(provider::NewPool{policy().num_layers, policy().block_size, width,
                           (blocks * block_bytes + kMegabyte - 1) / kMegabyte});
    // Pools come in whole megabytes; the blocks that are too many are taken out of it.
    emit(provider::DrainPool{blocks});
    for (std::int64_t slot = 0; slot < input.schedule.max_running; ++slot)
      emit(provider::NewPaged{slot, policy().num_layers});
  }

 protected:
  [[nodiscard]] Shape rows(std::int64_t tokens) const override {
    return {policy().num_heads, tokens, policy().head_dim};
  }
  void end(std::int64_t slot) override { emit(provider::Free{slot}); }

 private:
  // Blocks for the longest sequences of as many requests as there are slots, times the policy's
  // percentage; at least those of the longest one.
  static std::int64_t blocks_wanted(const LoweringInput& input) {
    std::vector<std::int64_t> blocks;
    for (const Request& request : input.requests) {
      const std::int64_t tokens = scaled(request.input_tokens, input.schedule.scale) +
                                  scaled(request.output_tokens, input.schedule.scale) +
                                  input.schedule.draft_tokens;
      blocks.push_back(scaled(tokens, input.policy.block_size));
    }
    std::ranges::sort(blocks, std::greater());
    const auto slots =
        std::min(blocks.size(), static_cast<std::size_t>(input.schedule.max_running));
    std::int64_t most = 0;
    for (std::size_t i = 0; i < slots; ++i) most += blocks[i];
    const std::int64_t longest = blocks.empty() ? 1 : blocks.front();
    return std::max(longest, most * input.policy.pool_percent / 100);
  }
};

}  // namespace

Lowering paged_lowering() {
  return {.kind = &provider::paged_kind(),
          .setup = [](const LoweringInput& /*input*/) { return Setup{}; },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<PagedOps>(input);
          }};
}

}  // namespace kvo::traces
