#include "reference/cells/batch_tokens.hpp"

#include <algorithm>
#include <map>
#include <set>

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
  return quirks.has(Quirk::kRepeatedPositions) || different.size() == positions.size();
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

// An ubatch in the making: the rows that each taken set has left, and how many it gives.
struct Share {
  Sequences seqs;
  Ubatch left = {};
  std::size_t taken = 0;
};

// Whether the set of a token joins those that are taken (LC-33 (a), LC-69).
bool joins(const std::vector<Share>& shares, const Sequences& seqs, bool sequential) {
  if (shares.empty()) return true;
  if (sequential) return *seqs.begin() == *shares.back().seqs.begin() + 1;
  return std::ranges::none_of(shares, [&](const Share& share) {
    return std::ranges::any_of(seqs, [&](std::int32_t s) { return share.seqs.contains(s); });
  });
}

// The last keep_tail tokens of a sequence are not parted (LC-97).
void keep_tails(std::vector<Share>& shares, const EqualSplit& how) {
  const auto keep = static_cast<std::size_t>(how.keep_tail);
  const auto whole = [&](const Share& share) {
    const std::size_t rest = share.left.size() - share.taken;
    return rest == 0 || rest >= keep;
  };
  const auto kept = std::ranges::find_if_not(shares, whole) - shares.begin();
  shares.resize(static_cast<std::size_t>(std::max<std::ptrdiff_t>(kept, 1)));
  if (kept > 0) return;
  Share& first = shares.front();
  const bool fits = static_cast<std::int64_t>(first.left.size()) <= how.n_ubatch;
  first.taken = fits ? first.left.size() : first.left.size() - keep;
}

std::vector<Share> next_shares(const std::vector<Sequences>& sets, const std::vector<bool>& used,
                               const EqualSplit& how) {
  const std::int64_t most = how.n_ubatch + (how.one_too_many ? 1 : 0);
  std::vector<Share> shares;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (static_cast<std::int64_t>(shares.size()) == most) break;
    if (!used[i] && joins(shares, sets[i], how.sequential)) shares.push_back({.seqs = sets[i]});
  }
  std::size_t fewest = sets.size();
  for (Share& share : shares) {
    for (std::size_t i = 0; i < sets.size(); ++i)
      if (!used[i] && sets[i] == share.seqs) share.left.push_back(static_cast<std::int32_t>(i));
    fewest = std::min(fewest, share.left.size());
  }
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
  std::vector<Ubatch> ubatches;
  std::vector<Sequences> sets;
  for (const Token& token : tokens) sets.push_back(set_of(token));
  std::vector<bool> used(tokens.size());
  for (std::size_t left = tokens.size(); left > 0; left -= ubatches.back().size()) {
    Ubatch& ubatch = ubatches.emplace_back();
    for (const Share& share : next_shares(sets, used, how))
      ubatch.insert(ubatch.end(), share.left.begin(),
                    share.left.begin() + static_cast<std::ptrdiff_t>(share.taken));
    for (const std::int32_t row : ubatch) used[static_cast<std::size_t>(row)] = true;
  }
  return ubatches;
}

}  // namespace kvo::cells
