#include "properties/prefix/misses.hpp"

#include <algorithm>

namespace kvo::prefix {
void Misses::made(std::int64_t request, std::span<const Content> contents, TokensView tokens) {
  sequences_[request] = {.maker = std::ssize(makers_), .bare = {bare_.start({})}};
  makers_.push_back(request);
  grew(request, contents, tokens);
}

void Misses::have(Seen& seen, Content content, std::int64_t maker) {
  const auto [found, is_new] = seen.try_emplace(content, Makers{.first = maker});
  if (!is_new && found->second.first != maker) found->second.second = maker;
}

void Misses::grew(std::int64_t request, std::span<const Content> contents, TokensView tokens) {
  Sequence& own = sequences_[request];
  bare_.extend(own.bare, tokens);
  for (std::size_t i = own.bare.size() - tokens.size(); i < own.bare.size(); ++i) {
    have(seen_, contents[i], own.maker);
    have(seen_bare_, own.bare[i], own.maker);
  }
}

void Misses::computed(std::int64_t request, std::int64_t tokens) {
  Sequence& own = sequences_[request];
  own.computed = std::max(own.computed, tokens);
}

std::pair<std::int64_t, std::optional<std::int64_t>> Misses::known(
    const Seen& seen, const Sequence& own, std::span<const Content> contents) const {
  std::int64_t tokens = 0;
  std::optional<std::int64_t> whose;
  for (; tokens + 1 < std::ssize(contents); ++tokens) {
    const Makers& makers = seen.at(contents[static_cast<std::size_t>(tokens + 1)]);
    const auto other = makers.first != own.maker ? std::optional(makers.first) : makers.second;
    if (!other) break;
    whose = makers_[static_cast<std::size_t>(*other)];
  }
  return {tokens, whose};
}

Misses::Unit Misses::unit_at(std::int64_t token, const Asked& asked,
                             std::span<const Content> contents, const Held& held) const {
  Unit unit;
  for (std::int64_t group = 0; group < std::ssize(asked.units); ++group) {
    const std::int64_t size = asked.units[static_cast<std::size_t>(group)];
    if (size == 0) continue;
    const std::int64_t whole = (token / size + 1) * size;
    unit.whole = std::max(unit.whole, whole);
    if (whole > asked.most_hit || whole + asked.beyond >= std::ssize(contents)) {
      unit.some_cannot = true;
      continue;
    }
    const Content content = contents[static_cast<std::size_t>(whole + asked.beyond)];
    if (held(content, group)) {
      unit.some_hold = true;
    } else if (!unit.lacking) {
      unit.lacking = group;
      const auto fate = fates_.find({content, group});
      if (fate != fates_.end() && fate->second.went) unit.went = &fate->second;
    }
  }
  return unit;
}

void Misses::looked_up(const Asked& asked, std::span<const Content> contents, const Held& held) {
  const Sequence& own = sequences_[asked.request];
  const std::int64_t hit = std::clamp<std::int64_t>(asked.hit, 0, asked.tokens);
  Lookup lookup{
      .operation = operation_, .request = asked.request, .tokens = asked.tokens, .reused = hit};
  const auto prompt = static_cast<std::size_t>(asked.tokens) + 1;
  const auto [others, whose] = known(seen_, own, contents.first(prompt));
  const auto [bare, whose_bare] = known(seen_bare_, own, std::span(own.bare).first(prompt));
  const std::int64_t seen = std::max(others, std::min(own.computed, asked.tokens));
  const std::int64_t alike = std::max(seen, bare);
  std::int64_t grain = asked.tokens;
  for (const std::int64_t size : asked.units)
    if (size > 0) grain = std::min(grain, size);
  for (std::int64_t begin = hit; begin < asked.tokens; begin = (begin / grain + 1) * grain) {
    const std::int64_t end = std::min((begin / grain + 1) * grain, asked.tokens);
    if (!asked.reads) {
      lookup.miss({begin, end, Missing::kNotLookedUp});
      continue;
    }
    const Unit unit = unit_at(begin, asked, contents, held);
    MissedTokens missed{begin, end};
    if (unit.went != nullptr) {
      missed.operation = unit.went->operation;
      missed.request = unit.went->request;
    }
    if (unit.some_hold && !unit.some_cannot && !unit.lacking) {
      missed.why = asked.drops && begin == hit ? Missing::kDraftHeads : Missing::kBehindGap;
    } else if (unit.some_hold && unit.lacking) {
      missed.why = Missing::kGroupLacked;
      missed.group = unit.lacking;
    } else if (unit.went != nullptr) {
      missed.why = Missing::kEvicted;
    } else {
      // Token by token: seen, seen elsewhere, not seen.
      Missing why = Missing::kBlockGoesOnOtherwise;
      if (unit.whole > asked.tokens)
        why = Missing::kLastBlockNotFull;
      else if (seen >= unit.whole)
        why = unit.some_cannot ? Missing::kBlockOfTheLastToken : Missing::kNotStoredYet;
      const std::int64_t first = std::clamp(seen, begin, end);
      lookup.miss({begin, first, why});
      const std::int64_t second = std::clamp(alike, first, end);
      lookup.miss({first, second, Missing::kOtherNamespace, std::nullopt, whose_bare});
      const Missing unseen = alike == 0 ? Missing::kNeverSeen : Missing::kDiverged;
      missed = {second, end, unseen, std::nullopt,
                alike == 0    ? std::nullopt
                : bare > seen ? whose_bare
                              : whose};
    }
    lookup.miss(missed);
  }
  lookups_.push_back(std::move(lookup));
}

}  // namespace kvo::prefix
