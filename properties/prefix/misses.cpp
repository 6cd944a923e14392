#include "properties/prefix/misses.hpp"

#include <algorithm>

namespace kvo::prefix {
namespace {

void add(std::vector<MissedTokens>& all, const MissedTokens& more) {
  if (more.begin >= more.end) return;
  if (!all.empty() && all.back().same_cause(more))
    all.back().end = more.end;
  else
    all.push_back(more);
}

}  // namespace

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

void Misses::looked_up(const Asked& asked, std::span<const Content> contents,
                       const std::function<bool(Content)>& held) {
  const Sequence& own = sequences_[asked.request];
  const std::int64_t hit = std::clamp<std::int64_t>(asked.hit, 0, asked.tokens);
  Lookup lookup{
      .operation = operation_, .request = asked.request, .tokens = asked.tokens, .reused = hit};
  const auto prompt = static_cast<std::size_t>(asked.tokens) + 1;
  const auto [others, whose] = known(seen_, own, contents.first(prompt));
  const auto [bare, whose_bare] = known(seen_bare_, own, std::span(own.bare).first(prompt));
  const std::int64_t seen = std::max(others, std::min(own.computed, asked.tokens));
  const std::int64_t alike = std::max(seen, bare);
  for (std::int64_t begin = hit; begin < asked.tokens;
       begin = (begin / asked.unit + 1) * asked.unit) {
    const std::int64_t whole = (begin / asked.unit + 1) * asked.unit;
    const std::int64_t end = std::min(whole, asked.tokens);
    if (!asked.reads) {
      add(lookup.missed, {begin, end, Missing::kNotLookedUp});
      continue;
    }
    const bool may_hit = whole <= asked.most_hit && whole + asked.beyond < std::ssize(contents);
    const Content content =
        may_hit ? contents[static_cast<std::size_t>(whole + asked.beyond)] : kNoContent;
    if (may_hit && held(content)) {
      const bool dropped = asked.drops && begin == hit;
      add(lookup.missed, {begin, end, dropped ? Missing::kDraftHeads : Missing::kBehindGap});
      continue;
    }
    const auto fate = fates_.find(content);
    if (may_hit && fate != fates_.end() && fate->second.went) {
      add(lookup.missed,
          {begin, end, Missing::kEvicted, fate->second.operation, fate->second.request});
      continue;
    }
    // Token by token: seen, seen elsewhere, not seen.
    Missing why = Missing::kBlockGoesOnOtherwise;
    if (whole > asked.tokens)
      why = Missing::kLastBlockNotFull;
    else if (seen >= whole)
      why = may_hit ? Missing::kNotStoredYet : Missing::kBlockOfTheLastToken;
    const std::int64_t first = std::clamp(seen, begin, end);
    add(lookup.missed, {begin, first, why});
    const std::int64_t second = std::clamp(alike, first, end);
    add(lookup.missed, {first, second, Missing::kOtherNamespace, std::nullopt, whose_bare});
    if (alike == 0)
      add(lookup.missed, {second, end, Missing::kNeverSeen});
    else
      add(lookup.missed,
          {second, end, Missing::kDiverged, std::nullopt, bare > seen ? whose_bare : whose});
  }
  lookups_.push_back(std::move(lookup));
}

}  // namespace kvo::prefix
