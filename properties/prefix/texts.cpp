#include "properties/prefix/texts.hpp"

#include <algorithm>
#include <utility>

namespace kvo::prefix {

Tokens Texts::some(Draw& draw, std::int64_t count) const {
  constexpr std::int64_t kAlphabet = 3;
  Tokens tokens;
  for (; count > 0; --count) tokens.push_back(static_cast<Token>(draw.below(kAlphabet)));
  return tokens;
}

Tokens Texts::fresh(std::int64_t count) {
  Tokens tokens;
  for (; count > 0; --count) tokens.push_back(++last_fresh_);
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
