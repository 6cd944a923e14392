// properties/prefix/texts.hpp: prompts that begin alike.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "properties/campaign/script_generator.hpp"
#include "reference/prefix/cache.hpp"

namespace kvo::prefix {

// Sizes beyond which something may break.
inline constexpr std::int64_t kOneByte = 0xFF;
inline constexpr std::int64_t kThousand = 1'024;
inline constexpr std::int64_t kTwoBytes = 0xFFFF;

/// The generator must reach every State, too, some in profile original only.
template <DescribedEnum State>
void add_states(Generator& generator, std::initializer_list<State> original_only) {
  const auto add = [](std::vector<std::string_view>& labels,
                      const std::vector<std::string_view>& more) {
    labels.insert(labels.end(), more.begin(), more.end());
  };
  add(generator.original_labels, label_texts_but<State>({}));
  add(generator.documented_labels, label_texts_but<State>(original_only));
}

/// Draws prompts that share beginnings with those before them, and mostly end near the end of a
/// unit: what is shared is told by few tokens.
class Texts {
 public:
  /// unit: tokens of a block or page. In some cases token ids differ in their high bits alone, or
  /// are as large as they can be.
  Texts(std::int64_t unit, std::uint64_t seed);

  /// 0 to `most` tokens: mostly the beginning of an earlier text, and something else behind it.
  [[nodiscard]] Tokens next(Draw& draw, std::int64_t most);
  /// So many tokens.
  [[nodiscard]] Tokens some(Draw& draw, std::int64_t count) const;
  /// So many tokens that no text has had.
  [[nodiscard]] Tokens fresh(std::int64_t count);
  /// A text that others may begin like.
  void keep(Tokens tokens);

 private:
  static constexpr std::size_t kMost = 12;

  std::int64_t unit_;
  std::array<Token, 3> alphabet_;
  std::vector<Tokens> known_ = {};
  std::size_t kept_ = 0;
  Token last_fresh_;
};

}  // namespace kvo::prefix
