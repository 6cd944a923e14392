#include "tools/probe/hypotheses.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <fmt/format.h>

namespace kvo::tools {
namespace {

using probe::Rows;
using probe::Token;
using Texts = std::span<const Token>;

constexpr std::array<std::size_t, 5> kBlockSizes{16, 32, 64, 128, 256};

std::string rows_text(std::size_t first, std::size_t last, std::size_t request) {
  return fmt::format("rows {} to {} of request {}", first, last - 1, request);
}

/// Makes the faults of one request.
class Faults {
 public:
  Faults(const probe::Tables& tables, const ProbeRequest& request, std::size_t reused, bool all,
         const std::function<bool(const Hypothesis& hypothesis)>& visit)
      : tables_(tables),
        request_(request),
        prompt_(request.prompt),
        reused_(reused),
        all_(all),
        visit_(visit) {}

  // Each returns true where the visitor has seen enough.
  bool of_text(const AnsweredText& other) {
    const std::size_t common = common_prefix(prompt_, other.tokens);
    return stale_tail(other, common) || of_prefix(common) || moved(other, common) ||
           foreign_block(other, common);
  }

 private:
  [[nodiscard]] Rows right(std::size_t size) const {
    Rows rows(tables_);
    rows.extend(prompt_.first(size));
    return rows;
  }

  // The rest of the prompt follows rows that stand for its first `done` tokens.
  bool tell(std::string_view fault, std::string detail, Rows rows, std::size_t done) {
    rows.extend(prompt_.subspan(done));
    return visit_({fault, std::move(detail), rows.generate(request_.tokens)});
  }

  // Reused beyond the tokens that both texts have.
  bool stale_tail(const AnsweredText& other, std::size_t common) {
    const std::size_t most = std::min(prompt_.size(), other.tokens.size());
    std::vector<std::size_t> ends;
    for (const std::size_t block : kBlockSizes) ends.push_back((common / block + 1) * block);
    ends.insert(ends.end(), {common + 1, prompt_.size() - 1, prompt_.size()});
    for (const std::size_t end : ends) {
      if (end <= common || end > most) continue;
      Rows rows = other.rows;
      rows.crop(end);
      if (tell("stale tail", rows_text(common, end, other.request), std::move(rows), end))
        return true;
      if (!all_) break;
    }
    return false;
  }

  // What happens to the rows that a text shares with another: whole blocks, or all.
  bool of_prefix(std::size_t common) {
    for (const std::size_t block : {std::size_t{1}, std::size_t{16}, std::size_t{32},
                                    std::size_t{64}, std::size_t{128}, std::size_t{256}}) {
      const std::size_t end = std::min(common, prompt_.size() - 1) / block * block;
      if (end < 2) break;
      Rows lost = right(end);
      lost.evict(1, end);
      if (tell("lost prefix", fmt::format("no rows 1 to {}", end - 1), std::move(lost), end))
        return true;
      Rows moved = right(end);
      moved.shift_out(1, 2);
      if (tell("rows one position off", fmt::format("rows 2 to {} at 1 to {}", end - 1, end - 2),
               std::move(moved), end))
        return true;
      if (!all_) break;
    }
    return false;
  }

  // Rows after a part that this prompt lacks, moved forward: they have seen that part.
  bool moved(const AnsweredText& other, std::size_t common) {
    constexpr std::size_t kLeast = 8;
    if (common + kLeast >= prompt_.size()) return false;
    const Texts wanted = prompt_.subspan(common, kLeast);
    const Texts theirs = other.tokens;
    for (std::size_t at = common + 1; at + kLeast <= theirs.size(); ++at) {
      if (!std::ranges::equal(wanted, theirs.subspan(at, kLeast))) continue;
      const std::size_t same = common_prefix(prompt_.subspan(common), theirs.subspan(at));
      const std::size_t most = std::min(same, prompt_.size() - 1 - common);
      Rows rows = other.rows;
      rows.crop(at + most);
      rows.shift_out(common, at);
      return tell("moved rows", rows_text(at, at + most, other.request), std::move(rows),
                  common + most);
    }
    return false;
  }

  // A block of the other text at the same positions: when it is written, or when the rows after it
  // are there already.
  bool foreign_block(const AnsweredText& other, std::size_t common) {
    const std::size_t block = kBlockSizes.front();
    const std::size_t most = std::min(prompt_.size() - 1, other.tokens.size());
    for (std::size_t begin = common / block * block; begin + block <= most; begin += block) {
      for (const std::size_t end : {begin + block, reused_ / block * block, prompt_.size() - 1}) {
        if (end < begin + block) continue;
        Rows rows = right(end);
        for (std::size_t at = std::max<std::size_t>(begin, 1); at < begin + block; ++at)
          rows.overwrite(at, other.rows, at);
        if (tell("foreign block", rows_text(begin, begin + block, other.request), std::move(rows),
                 end))
          return true;
      }
      if (!all_) break;
    }
    return false;
  }

  const probe::Tables& tables_;
  const ProbeRequest& request_;
  Texts prompt_;
  std::size_t reused_;  // tokens that it shares with another text at most
  bool all_;
  const std::function<bool(const Hypothesis& hypothesis)>& visit_;
};

}  // namespace

void each_hypothesis(const probe::Tables& tables, const ProbeRequest& request, std::size_t number,
                     const std::deque<AnsweredText>& answered, bool all,
                     const std::function<bool(const Hypothesis& hypothesis)>& visit) {
  std::size_t reused = 0;
  for (const AnsweredText& other : answered)
    if (other.request != number)
      reused = std::max(reused, common_prefix(request.prompt, other.tokens));
  Faults faults(tables, request, reused, all, visit);
  for (auto other = answered.rbegin(); other != answered.rend(); ++other)
    if (other->request != number && faults.of_text(*other)) return;
}

}  // namespace kvo::tools
