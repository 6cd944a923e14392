#include "reference/cells/batch_tokens.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>

#include "reference/contract/values/mark.hpp"

namespace kvo::cells {
namespace {

using Sequences = std::set<std::int32_t>;

Sequences set_of(const Token& token) {
  return {token.seqs.begin(), token.seqs.end()};
}

// Token i goes on where the sequence that is listed first ends (LC-32).
Status fill_positions(std::vector<Token>& tokens, const ExtremesOf& extremes_of) {
  std::map<std::int32_t, std::int64_t> next;
  for (Token& token : tokens) {
    const std::int32_t seq = token.seqs.front();
    if (!next.contains(seq)) next[seq] = extremes_of(seq).max + 1;
    const std::int64_t pos = next[seq]++;
    if (pos > kMaxPosition) return refused("no position is left");
    token.pos = static_cast<std::int32_t>(pos);
  }
  return {};
}

// Whether the positions of a sequence in a batch, in its order, go on from `max` (LC-31).
bool go_on(const std::vector<std::int32_t>& positions, std::int64_t max, QuirkSet<Quirk> quirks) {
  if (!std::ranges::is_sorted(positions)) return false;
  const std::set<std::int32_t> different(positions.begin(), positions.end());
  if (max >= 0 && *different.begin() != max + 1) return false;
  const std::int64_t span = std::int64_t{*different.rbegin()} - *different.begin() + 1;
  if (span != static_cast<std::int64_t>(different.size())) return false;
  if (!quirks.has(Quirk::kNegativePosition) && *different.begin() < 0) return false;
  if (different.size() == positions.size()) return true;
  if (!quirks.has(Quirk::kRepeatedPositions)) return false;
  KVO_MARK_IN(Profile::kOriginal, "cells.kv cells.iswa", "repeated position");
  return true;
}

// Whether no two sets overlap without one containing the other.
bool nested(const std::vector<Token>& tokens) {
  std::set<Sequences> sets;
  for (const Token& token : tokens) sets.insert(set_of(token));
  for (const Sequences& a : sets)
    for (const Sequences& b : sets) {
      const bool overlap = std::ranges::any_of(a, [&](std::int32_t s) { return b.contains(s); });
      if (overlap && !std::ranges::includes(a, b) && !std::ranges::includes(b, a)) return false;
    }
  return true;
}

bool is_valid(const std::vector<Token>& tokens, QuirkSet<Quirk> quirks,
              const ExtremesOf& extremes_of) {
  std::map<std::int32_t, std::vector<std::int32_t>> positions;
  for (const Token& token : tokens)
    for (const std::int32_t seq : token.seqs) positions[seq].push_back(token.pos);
  std::map<std::int32_t, Extremes> stored;
  for (const auto& [seq, its] : positions) {
    stored[seq] = extremes_of(seq);
    if (!go_on(its, stored[seq].max, quirks)) return false;
  }
  for (const Token& token : tokens)
    for (const std::int32_t seq : token.seqs)
      if (stored[seq] != stored[token.primary]) return false;
  return quirks.has(Quirk::kOverlappingSets) || nested(tokens);
}

// The tokens of one set of sequences that no ubatch has taken yet, in order.
struct Group {
  Sequences seqs;
  std::deque<std::int32_t> left = {};
};

// What a set gives to the ubatch in the making: its first tokens.
struct Share {
  Group* group = nullptr;
  std::size_t taken = 0;
};

std::vector<Group> groups_of(const std::vector<Token>& tokens) {
  std::vector<Group> groups;
  std::map<Sequences, std::size_t> index;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto [entry, is_new] = index.try_emplace(set_of(tokens[i]), groups.size());
    if (is_new) groups.push_back({.seqs = entry->first});
    groups[entry->second].left.push_back(static_cast<std::int32_t>(i));
  }
  return groups;
}

// Whether the set of a token joins those that are taken (LC-33 (a), LC-69).
bool joins(const std::vector<Share>& shares, const Sequences& seqs, bool sequential) {
  if (shares.empty()) return true;
  if (sequential) return *seqs.begin() == *shares.back().group->seqs.begin() + 1;
  return std::ranges::none_of(shares, [&](const Share& share) {
    const Sequences& taken = share.group->seqs;
    return std::ranges::any_of(seqs, [&](std::int32_t s) { return taken.contains(s); });
  });
}

// The sets of the next ubatch: those of the first tokens that join, in order.
std::vector<Share> take_sets(std::vector<Group>& groups, const EqualSplit& how) {
  const std::int64_t most = how.n_ubatch + (how.one_too_many ? 1 : 0);
  std::vector<Share> shares;
  for (std::int32_t row = -1; std::ssize(shares) < most;) {
    Group* next = nullptr;
    std::int32_t first = std::numeric_limits<std::int32_t>::max();
    for (Group& group : groups) {
      const auto behind = std::ranges::upper_bound(group.left, row);
      if (behind == group.left.end() || *behind >= first) continue;
      if (!joins(shares, group.seqs, how.sequential)) continue;
      next = &group;
      first = *behind;
    }
    if (next == nullptr) break;
    shares.push_back({.group = next});
    row = first;
  }
  return shares;
}

// The last keep_tail tokens of a sequence are not parted (LC-97).
void keep_tails(std::vector<Share>& shares, const EqualSplit& how) {
  const auto keep = static_cast<std::size_t>(how.keep_tail);
  const auto whole = [&](const Share& share) {
    const std::size_t rest = share.group->left.size() - share.taken;
    return rest == 0 || rest >= keep;
  };
  const auto whole_shares = std::ranges::find_if_not(shares, whole) - shares.begin();
  shares.resize(static_cast<std::size_t>(std::max<std::ptrdiff_t>(whole_shares, 1)));
  if (whole_shares > 0) return;
  Share& first = shares.front();
  const std::size_t left = first.group->left.size();
  first.taken = static_cast<std::int64_t>(left) <= how.n_ubatch ? left : left - keep;
}

std::vector<Share> next_shares(std::vector<Group>& groups, const EqualSplit& how) {
  std::vector<Share> shares = take_sets(groups, how);
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const Share& share : shares) fewest = std::min(fewest, share.group->left.size());
  const std::size_t room = static_cast<std::size_t>(how.n_ubatch) / shares.size();
  for (Share& share : shares) share.taken = std::min(fewest, std::max<std::size_t>(room, 1));
  if (how.keep_tail > 0) keep_tails(shares, how);
  return shares;
}

}  // namespace

Result<std::vector<Token>> tokens_of(const Batch& batch, std::int64_t n_seq_max,
                                     QuirkSet<Quirk> quirks, const ExtremesOf& extremes_of) {
  if (batch.tokens() == 0) return fail_other("invalid_batch");
  std::vector<Token> tokens(batch.tokens());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Token& token = tokens[i];
    for (const std::int64_t seq : batch.sequences_of(i)) {
      if (seq < 0 || seq >= n_seq_max) return fail_other("invalid_batch");
      if (std::ranges::find(token.seqs, seq) == token.seqs.end())
        token.seqs.push_back(static_cast<std::int32_t>(seq));
    }
    token.primary = quirks.has(Quirk::kLastIsPrimary) ? token.seqs.back() : token.seqs.front();
    if (batch.positions) token.pos = (*batch.positions)[i];
  }
  if (!batch.positions)
    if (const Status filled = fill_positions(tokens, extremes_of); !filled) return filled.error();
  if (!is_valid(tokens, quirks, extremes_of)) return fail_other("invalid_batch");
  return tokens;
}

std::vector<Ubatch> split_in_order(std::size_t tokens, std::int64_t n_ubatch) {
  std::vector<Ubatch> ubatches;
  for (std::size_t row = 0; row < tokens; ++row) {
    if (ubatches.empty() || static_cast<std::int64_t>(ubatches.back().size()) == n_ubatch)
      ubatches.emplace_back();
    ubatches.back().push_back(static_cast<std::int32_t>(row));
  }
  return ubatches;
}

Result<std::vector<Ubatch>> split_equal(const std::vector<Token>& tokens, const EqualSplit& how) {
  if (how.sequential)
    for (const Token& token : tokens)
      if (token.seqs.size() > 1) return fail(Code::kFull, "a token of several sequences");
  if (how.keep_tail > 0 && how.n_ubatch <= how.keep_tail)
    return refused("n_ubatch is not above n_rs_seq + 1");
  std::vector<Ubatch> ubatches;
  std::vector<Group> groups = groups_of(tokens);
  for (std::size_t left = tokens.size(); left > 0; left -= ubatches.back().size()) {
    Ubatch& ubatch = ubatches.emplace_back();
    for (const Share& share : next_shares(groups, how)) {
      auto& its = share.group->left;
      const auto end = its.begin() + static_cast<std::ptrdiff_t>(share.taken);
      ubatch.insert(ubatch.end(), its.begin(), end);
      its.erase(its.begin(), end);
    }
  }
  return ubatches;
}

}  // namespace kvo::cells
