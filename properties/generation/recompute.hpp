// properties/generation/recompute.hpp: a text computed without a cache that lasts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/generation/generator.hpp"
#include "reference/generation/options.hpp"

namespace kvo::generation {

/// What a text is computed from.
struct Plain {
  ModelConfig model;
  TokenizerConfig tokenizer;
  std::int64_t bos = 0;
  std::int64_t eos = 0;
  std::optional<std::int64_t> most_positions;  ///< that may be fed; nothing: any number
  Profile profile = Profile::kDocumented;
};

/// Rows of all layers in plain lists: [1, positions, dim] each, of any number.
class PlainRows final : public provider::Provider {
 public:
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override;
  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override;
  [[nodiscard]] Status reset() override;
  /// Requires  n >= 0.
  [[nodiscard]] Status truncate(std::int64_t n) override;

 private:
  struct Layer {
    std::vector<float> k;
    std::vector<float> v;
    std::int64_t dim = 0;
    std::int64_t positions = 0;
  };
  std::vector<Layer> layers_;
};

/// Most tokens, prompt included, that plain_text goes to.
inline constexpr std::int64_t kMostPlainTokens = 96;

/// The text behind a prompt, each token computed from the beginning; nothing where it would fail,
/// or grow too long. `chunk`: most tokens of a forward, 0 for all at once.
[[nodiscard]] std::optional<std::string> plain_text(const Plain& plain, const Request& request,
                                                    std::int64_t chunk = 0);

}  // namespace kvo::generation
