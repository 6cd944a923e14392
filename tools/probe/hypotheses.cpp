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

std::size_t common_prefix(Texts a, Texts b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::string rows_text(std::size_t first, std::size_t last, std::size_t request) {
  return fmt::format("rows {} to {} of request {}", first, last - 1, request);
}

/// Makes the faults of one request.
class Faults {
 public:
  Faults(const probe::Tables& tables, const ProbeRequest& request, bool all,
         const std::function<bool(const Hypothesis& hypothesis)>& visit)
      : tables_(tables), request_(request), prompt_(request.prompt), all_(all), visit_(visit) {}

  // Each returns true where the visitor has seen enough.
  bool of_text(const ToldText& other) {
    const std::size_t common = common_prefix(prompt_, other.tokens);
    return stale_tail(other, common) || lost_prefix(common) || moved(other, common) ||
           foreign_block(other, common);
  }
  bool slid() {
    Rows rows = right(prompt_.size() - 1);
    rows.shift_out(1, 2);
    return tell("rows one position off", "row 1 is lost", std::move(rows), prompt_.size() - 1);
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
  bool stale_tail(const ToldText& other, std::size_t common) {
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

  // A prefix counts as held and is not.
  bool lost_prefix(std::size_t common) {
    if (common < 2) return false;
    for (const std::size_t block : kBlockSizes) {
      const std::size_t end = all_ ? common / block * block : common;
      if (end < 2) break;
      Rows rows = right(end);
      rows.evict(1, end);
      if (tell("lost prefix", fmt::format("rows 1 to {}", end - 1), std::move(rows), end))
        return true;
      if (!all_) break;
    }
    return false;
  }

  // Rows behind a part that this prompt lacks, moved forward: they have seen that part.
  bool moved(const ToldText& other, std::size_t common) {
    constexpr std::size_t kLeast = 8;
    if (common + kLeast >= prompt_.size()) return false;
    const Texts wanted = prompt_.subspan(common, kLeast);
    const Texts told = other.tokens;
    for (std::size_t at = common + 1; at + kLeast <= told.size(); ++at) {
      if (!std::ranges::equal(wanted, told.subspan(at, kLeast))) continue;
      const std::size_t same = common_prefix(prompt_.subspan(common), told.subspan(at));
      const std::size_t most = std::min(same, prompt_.size() - 1 - common);
      Rows rows = other.rows;
      rows.crop(at + most);
      rows.shift_out(common, at);
      return tell("moved rows", rows_text(at, at + most, other.request), std::move(rows),
                  common + most);
    }
    return false;
  }

  // A block of the other text at the same positions.
  bool foreign_block(const ToldText& other, std::size_t common) {
    const std::size_t block = kBlockSizes.front();
    for (std::size_t begin = common / block * block;
         begin + block <= std::min(prompt_.size(), other.tokens.size()); begin += block) {
      Rows rows = right(begin + block);
      for (std::size_t position = std::max<std::size_t>(begin, 1); position < begin + block;
           ++position)
        rows.overwrite(position, other.rows, position);
      if (tell("foreign block", rows_text(begin, begin + block, other.request), std::move(rows),
               begin + block))
        return true;
      if (!all_) break;
    }
    return false;
  }

  const probe::Tables& tables_;
  const ProbeRequest& request_;
  Texts prompt_;
  bool all_;
  const std::function<bool(const Hypothesis& hypothesis)>& visit_;
};

}  // namespace

void each_hypothesis(const probe::Tables& tables, const ProbeRequest& request,
                     const std::vector<ToldText>& told, bool all,
                     const std::function<bool(const Hypothesis& hypothesis)>& visit) {
  Faults faults(tables, request, all, visit);
  for (auto other = told.rbegin(); other != told.rend(); ++other)
    if (faults.of_text(*other)) return;
  if (all) (void)faults.slid();
}

}  // namespace kvo::tools
