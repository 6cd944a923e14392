#include "properties/prefix/texts.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace kvo::prefix {
namespace {

constexpr Token kLargest = std::numeric_limits<Token>::max();

/// Ids of texts that begin alike, and what comes before the ids of fresh ones.
struct TokenIds {
  std::array<Token, 3> alphabet;
  Token before_fresh;
};

// Around 2^8, 2^15, 2^16 and 2^31: equal in their low bits, or on both sides of a sign.
constexpr std::array kRareIds{
    TokenIds{{0, 1 << 8, 1 << 9}, (1 << 8) - 3}, TokenIds{{0, 1 << 16, 1 << 17}, (1 << 16) - 3},
    TokenIds{{(1 << 15) - 1, 1 << 15, (1 << 16) - 1}, (1 << 15) - 3},
    TokenIds{{kLargest, kLargest - (1 << 16), 1 << 30}, kLargest - (1 << 24)}};

}  // namespace

Texts::Texts(std::int64_t unit, std::uint64_t seed) : unit_(unit) {
  Draw draw(~seed);
  constexpr std::uint64_t kRarePercent = 25;
  const TokenIds ids = draw.percent(kRarePercent) ? kRareIds[draw.below(kRareIds.size())]
                                                  : TokenIds{{0, 1, 2}, 1'000};
  alphabet_ = ids.alphabet;
  last_fresh_ = ids.before_fresh;
}

Tokens Texts::some(Draw& draw, std::int64_t count) const {
  Tokens tokens;
  for (; count > 0; --count) tokens.push_back(alphabet_[draw.below(alphabet_.size())]);
  return tokens;
}

Tokens Texts::fresh(std::int64_t count) {
  Tokens tokens;
  for (; count > 0; --count) {
    do ++last_fresh_;
    while (std::ranges::find(alphabet_, last_fresh_) != alphabet_.end());
    tokens.push_back(last_fresh_);
  }
  return tokens;
}

Tokens Texts::next(Draw& draw, std::int64_t most) {
  Tokens tokens;
  if (!known_.empty() && draw.percent(75)) {
    tokens = known_[draw.below(known_.size())];
    if (draw.percent(60)) {
      std::int64_t kept = draw.between(0, std::ssize(tokens));
      if (draw.percent(60)) kept = std::min(kept / unit_ * unit_ + draw.between(0, 1), kept);
      tokens.resize(static_cast<std::size_t>(kept));
    }
  }
  const std::int64_t units = draw.between(0, 3);
  std::int64_t more = std::max<std::int64_t>(units * unit_ + draw.between(-1, 1), 0);
  if (most > 64 && draw.percent(30)) more = draw.edge(16, most);
  const Tokens behind = some(draw, more);
  tokens.insert(tokens.end(), behind.begin(), behind.end());
  if (std::ssize(tokens) > most) tokens.resize(static_cast<std::size_t>(most));
  return tokens;
}

void Texts::keep(Tokens tokens) {
  if (known_.size() < kMost)
    known_.push_back(std::move(tokens));
  else
    known_[kept_ % kMost] = std::move(tokens);
  ++kept_;
}

}  // namespace kvo::prefix
